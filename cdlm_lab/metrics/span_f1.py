"""Spans in tagged words, scored: counts that add up over documents, and precision, recall and F1 of them.

A predicted span is correct if the gold has one with the same words and the same label. What counts as a span
where tags are ill-formed, an `I-` after no span of its label, is the `reading`:

- `seqeval`: as seqeval does by default and conlleval before it. Such an `I-` starts a span.
- `strict`: seqeval's mode `strict` with its scheme IOB2. Such an `I-` is in no span; it ends the one before.
- `released`: what the released code of Joerke et al. (2020, "Doc-ARC") scores, `scripts/metrics.py`. `B-`
  starts a span; only `O` and `B-` end it, so an `I-` of another label goes on with it, and so does one at the
  start of the next sentence: all words of the corpus are one row. An `I-` after `O` is in no span. The label
  is what follows the last hyphen.

On well-formed IOB2 the three agree (the last, if no label has a hyphen). Counts are a row for each document,
as the paired tests of `significance` take them, and `f1_of` is their statistic. The F1 of a corpus is that of
summed rows: micro-averaged over labels. 0 / 0 is 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOB2, Entities

# For each document, for each sentence, the tag of each word.
Tags = Sequence[Sequence[Sequence[str]]]
Spans = list[set[tuple]]  # of each document; places are counted in any way that is the same on both sides
_TAG = re.compile(r"O|[BI]-.+")


def span_counts(gold: Tags, predicted: Tags, *, reading: str = "seqeval") -> np.ndarray:
    """How many spans are correct, predicted, and in the gold.

    Args:
        gold, predicted: for each document its sentences, for each sentence one tag a word, in IOB2, which may
            be ill-formed: `O`, or `B-` or `I-` and a label.
        reading: one of READINGS; the top of this module says which is which.

    Returns:
        int64 (documents, 3). With `released`, a span that runs into the next document counts in the one where
        it starts.

    Raises:
        ValueError: an unknown reading, other documents, sentences or words on one side than on the other, or
            something that is no tag.
    """
    if reading not in READINGS:
        raise ValueError(f"reading is {reading!r}; choose one of {', '.join(READINGS)}")
    _check_sides(gold, predicted)
    found, expected = READINGS[reading](predicted), READINGS[reading](gold)
    rows = [
        (len(ours & theirs), len(ours), len(theirs)) for ours, theirs in zip(found, expected, strict=True)
    ]
    return np.array(rows, dtype=np.int64).reshape(len(rows), 3)


def word_counts(
    gold: Tags, predicted: Tags, *, chosen: Sequence[Sequence[Sequence[bool]]] | None = None
) -> np.ndarray:
    """How many words have the right label, have a predicted one, and have one in the gold: for word-level F1
    (Joerke et al. 2020, section 5.1), which asks not where a span starts and ends.

    A word's label is that of its tag; a word outside has none, and is neither predicted nor gold.

    Args:
        gold, predicted: as of `span_counts`.
        chosen: for each word, True = it counts; None = all do.

    Returns:
        int64 (documents, 3).

    Raises:
        ValueError: as `span_counts`, also for the lengths of `chosen`.
    """
    _check_sides(gold, predicted)
    if chosen is not None:
        _check_lengths(gold, chosen, name="chosen")
    rows = np.zeros((len(gold), 3), dtype=np.int64)
    for number in range(len(gold)):
        expected, found = _word_labels(gold[number]), _word_labels(predicted[number])
        if chosen is not None:
            counted = np.array([flag for sentence in chosen[number] for flag in sentence], dtype=bool)
            expected, found = expected[counted], found[counted]
        inside = expected != ""
        rows[number] = (inside & (expected == found)).sum(), (found != "").sum(), inside.sum()
    return rows


def precision_of(counts: ArrayLike) -> np.ndarray:
    """Correct ones among the predicted: (..., 3) counts to (...), in [0, 1]. Errors as `f1_of`."""
    correct, predicted, _ = _columns(counts)
    return _ratio(correct, predicted)


def recall_of(counts: ArrayLike) -> np.ndarray:
    """Correct ones among those of the gold: (..., 3) counts to (...), in [0, 1]. Errors as `f1_of`."""
    correct, _, gold = _columns(counts)
    return _ratio(correct, gold)


def f1_of(counts: ArrayLike) -> np.ndarray:
    """Harmonic mean of precision and recall.

    Args:
        counts: (..., 3), rows of `span_counts` or `word_counts`, or sums of them.

    Returns:
        (...), in [0, 1].

    Raises:
        ValueError: the last axis does not hold three numbers.
    """
    correct, predicted, gold = _columns(counts)
    return _ratio(2 * correct, predicted + gold)


def _seqeval_spans(documents: Tags) -> Spans:
    # seqeval looks for lists; it puts an O after each sentence, so no span runs into the next.
    return [set(get_entities([list(sentence) for sentence in sentences])) for sentences in documents]


def _strict_spans(documents: Tags) -> Spans:
    return [
        {
            entity.to_tuple()
            for of_sentence in Entities([list(sentence) for sentence in sentences], scheme=IOB2).entities
            for entity in of_sentence
        }
        for sentences in documents
    ]


def _released_spans(documents: Tags) -> Spans:
    spans: Spans = [set() for _ in documents]
    opened: tuple[int, int, str] | None = None  # document, place of the first word, label
    place = 0
    for number, sentences in enumerate(documents):
        for tag in (tag for sentence in sentences for tag in sentence):
            if opened and not tag.startswith("I-"):
                spans[opened[0]].add((*opened[1:], place))
                opened = None
            if tag.startswith("B-"):
                opened = number, place, tag.rpartition("-")[2]
            place += 1
    if opened:
        spans[opened[0]].add((*opened[1:], place))
    return spans


READINGS = {"seqeval": _seqeval_spans, "strict": _strict_spans, "released": _released_spans}


def _word_labels(sentences: Sequence[Sequence[str]]) -> np.ndarray:
    """(words,) str, "" = outside."""
    return np.array([tag.partition("-")[2] for sentence in sentences for tag in sentence], dtype=str)


def _columns(counts: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    counts = np.asarray(counts, dtype=np.float64)
    if counts.ndim == 0 or counts.shape[-1] != 3:
        raise ValueError(
            f"counts has shape {counts.shape}; its last axis must hold correct, predicted and gold"
        )
    return counts[..., 0], counts[..., 1], counts[..., 2]


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    return np.divide(numerator, denominator, out=np.zeros(np.shape(denominator)), where=denominator > 0)


def _check_sides(gold: Tags, predicted: Tags) -> None:
    _check_lengths(gold, predicted, name="predicted")
    for side, documents in (("gold", gold), ("predicted", predicted)):
        for number, sentences in enumerate(documents):
            for at, tags in enumerate(sentences):
                for place, tag in enumerate(tags):
                    if not _TAG.fullmatch(tag):
                        raise ValueError(
                            f"{side}[{number}][{at}][{place}] (document, sentence, word) is {tag!r}; "
                            "a tag is O, or B- or I- and a label"
                        )


def _check_lengths(gold: Sequence, other: Sequence, *, name: str) -> None:
    """Raises ValueError if `other` has not as many documents, sentences and words as the gold."""
    _check_equal(len(gold), len(other), "documents", name=name)
    for number, (sentences, others) in enumerate(zip(gold, other, strict=True)):
        _check_equal(len(sentences), len(others), "sentences", name=f"{name}[{number}]")
        for at, (words, tags) in enumerate(zip(sentences, others, strict=True)):
            _check_equal(len(words), len(tags), "words", name=f"{name}[{number}][{at}]")


def _check_equal(expected: int, found: int, what: str, *, name: str) -> None:
    if expected != found:
        raise ValueError(f"{name} has {found} {what} and the gold {expected}; they must be the same ones")
