"""Numbers of correct, predicted and gold spans or words of documents.

They add up over documents: the score of a corpus is that of summed numbers, never a mean over documents; so
F1 of spans is micro-averaged. 0 / 0 is 0. A predicted span is correct if there is a gold span with the same
words and the same label. Spans are read as seqeval does by default and conlleval before it: an `I-` that
follows no span of its label starts one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from seqeval.metrics.sequence_labeling import get_entities

Tags = Sequence[Sequence[Sequence[str]]]  # for each document, for each sentence, the tag of each word
Spans = list[set[tuple]]  # of each document; positions are numbered in the same way on both sides
TAG = re.compile(r"O|[BI]-.+")


def f1_of(counts: ArrayLike) -> np.ndarray:
    """The harmonic mean of precision and recall: (..., 3) numbers of correct, predicted and gold items to
    (...), in [0, 1]."""
    correct, predicted, gold = np.moveaxis(np.asarray(counts, dtype=np.float64), -1, 0)
    return np.divide(2 * correct, predicted + gold, out=np.zeros(np.shape(gold)), where=predicted + gold != 0)


def precision_and_recall(counts: np.ndarray, prefix: str = "") -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The base metrics of the table of items, num and den of each, from the numbers of correct, predicted and
    gold things in each item: (items, 3)."""
    correct, predicted, gold = np.asarray(counts).T
    return {f"{prefix}precision": (correct, predicted), f"{prefix}recall": (correct, gold)}


def span_counts(gold: Tags, predicted: Tags) -> np.ndarray:
    """Numbers of correct, predicted and gold spans, int64 (documents, 3).

    Tags are IOB2, possibly ill-formed: `O`, or `B-` or `I-` and a label; spans are as in conlleval.
    """
    _check_sides(gold, predicted)
    sides = zip(_spans(predicted), _spans(gold), strict=True)
    rows = [(len(ours & theirs), len(ours), len(theirs)) for ours, theirs in sides]
    return np.array(rows, dtype=np.int64).reshape(len(rows), 3)


def word_counts(
    gold: Tags, predicted: Tags, *, chosen: Sequence[Sequence[Sequence[bool]]] | None = None
) -> np.ndarray:
    """Numbers of words with the correct label, with a predicted and with a gold one, int64 (documents, 3):
    for word-level F1 (Joerke et al. 2020, section 5.1), which ignores where spans start and end.

    A word's label is that of its tag; a word outside has none. `chosen`: for each word, True = it counts.
    """
    _check_sides(gold, predicted)
    if chosen is not None:
        _check_lengths(gold, chosen, name="chosen")
    rows = np.zeros((len(gold), 3), dtype=np.int64)
    for number in range(len(gold)):
        expected, ours = _word_labels(gold[number]), _word_labels(predicted[number])
        if chosen is not None:
            counted = np.array([flag for sentence in chosen[number] for flag in sentence], dtype=bool)
            expected, ours = expected[counted], ours[counted]
        inside = expected != ""
        rows[number] = (inside & (expected == ours)).sum(), (ours != "").sum(), inside.sum()
    return rows


def _word_labels(sentences: Sequence[Sequence[str]]) -> np.ndarray:
    """The label of each word, (words,) str, "" = outside."""
    return np.array([tag.partition("-")[2] for sentence in sentences for tag in sentence], dtype=str)


def _spans(documents: Tags) -> Spans:
    # seqeval looks for lists; it puts an O after each sentence, so no span runs into the next.
    return [set(get_entities([list(sentence) for sentence in sentences])) for sentences in documents]


def _check_sides(gold: Tags, predicted: Tags) -> None:
    _check_lengths(gold, predicted, name="predicted")
    for side, documents in (("gold", gold), ("predicted", predicted)):
        for number, sentences in enumerate(documents):
            for at, tags in enumerate(sentences):
                for place, tag in enumerate(tags):
                    if not TAG.fullmatch(tag):
                        where = f"{side}[{number}][{at}][{place}] (document, sentence, word)"
                        raise ValueError(f"{where} is {tag!r}; a tag is O, or B- or I- and a label")


def _check_lengths(
    gold: Sequence, other: Sequence, *, name: str, units: Sequence[str] = ("documents", "sentences", "words")
) -> None:
    """Raise ValueError unless `other` has as many documents, sentences and words as the gold."""
    if len(gold) != len(other):
        counted = f"has {len(other)} {units[0]} and the gold {len(gold)}"
        raise ValueError(f"{name} {counted}; they must be the same ones")
    for number, pair in enumerate(zip(gold, other, strict=True) if units[1:] else ()):
        _check_lengths(*pair, name=f"{name}[{number}]", units=units[1:])
