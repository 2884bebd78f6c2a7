"""Counts that add up over documents, and accuracy, precision, recall and F1 computed from them.

A row has the numbers of correct, predicted and gold items: spans or words of a document (`span_counts`,
`word_counts`), or matching pairs of documents (`match_counts`, and the number of all pairs). The score of a
corpus is that of summed rows, never a mean over rows; so F1 of spans is micro-averaged. 0 / 0 is 0.

A predicted span is correct if there is a gold span with the same words and the same label. `reading` says
what counts as a span where tags are ill-formed, i.e. where an `I-` does not follow a span of its label:

- `seqeval`: as seqeval does by default and conlleval before it. Such an `I-` starts a span.
- `strict`: seqeval's mode `strict` with its scheme IOB2. Such an `I-` is in no span; it ends the one before.
- `released`: what the released code of Joerke et al. (2020, "Doc-ARC") scores, `scripts/metrics.py`. `B-`
  starts a span; only `O` and `B-` end it, so an `I-` of another label continues it, and so does one at the
  start of the next sentence: all words of the corpus are one row. An `I-` after `O` is in no span. The label
  is what follows the last hyphen.

On well-formed IOB2 the three agree (the last, if no label has a hyphen).
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from seqeval.metrics.sequence_labeling import get_entities

from cdlm_lab.metrics.significance import Statistic, sums_by_cluster

Tags = Sequence[Sequence[Sequence[str]]]  # for each document, for each sentence, the tag of each word
Spans = list[set[tuple]]  # of each document; positions are numbered in the same way on both sides
_TAG = re.compile(r"O|[BI]-.+")


def precision_of(counts: ArrayLike) -> np.ndarray:
    """Fraction of the predicted items that are correct: (..., 3 or 4) counts to (...), in [0, 1]."""
    correct, predicted, _ = _columns(counts)
    return _ratio(correct, predicted)


def recall_of(counts: ArrayLike) -> np.ndarray:
    """Fraction of the gold items that are predicted: (..., 3 or 4) counts to (...), in [0, 1]."""
    correct, _, gold = _columns(counts)
    return _ratio(correct, gold)


def f1_of(counts: ArrayLike) -> np.ndarray:
    """Harmonic mean of precision and recall: (..., 3 or 4) counts to (...), in [0, 1]."""
    correct, predicted, gold = _columns(counts)
    return _ratio(2 * correct, predicted + gold)


def accuracy_of(counts: np.ndarray) -> np.ndarray:
    """Fraction of correct decisions: (..., 4) counts from `match_counts` to (...), in [0, 1]."""
    correct, predicted, gold, pairs = np.moveaxis(counts, -1, 0)
    return _ratio(pairs - predicted - gold + 2 * correct, pairs)


# Scores of binary decisions, as reported for document matching (CDLM section 3.3, CDA section 4).
DECISION_SCORES: dict[str, Statistic] = {
    "accuracy": accuracy_of,
    "precision": precision_of,
    "recall": recall_of,
    "f1": f1_of,
}


def _columns(counts: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    counts = np.asarray(counts, dtype=np.float64)
    if counts.ndim == 0 or counts.shape[-1] not in (3, 4):
        expected = "its last axis must hold correct, predicted and gold"
        raise ValueError(f"counts has shape {counts.shape}; {expected}")
    return counts[..., 0], counts[..., 1], counts[..., 2]


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    return np.divide(numerator, denominator, out=np.zeros(np.shape(denominator)), where=denominator != 0)


def match_counts(
    labels: ArrayLike, predictions: ArrayLike, *, clusters: Sequence[Hashable] | None = None
) -> np.ndarray:
    """Numbers of pairs of documents that are correctly predicted to match, predicted to match, matching, and
    all: float64 (clusters, 4), from decisions (pairs,), 1 or True = match.

    `clusters`: name of the cluster of each pair; pairs that share a document are not independent and should
    be in one. None = each pair is its own cluster.
    """
    gold, predicted = _decisions(labels, name="labels"), _decisions(predictions, name="predictions")
    if len(gold) != len(predicted):
        raise ValueError(f"there are {len(gold)} labels, but {len(predicted)} predictions")
    columns = [gold & predicted, predicted, gold, np.ones(len(gold))]
    return sums_by_cluster(columns, clusters, name="labels")


def _decisions(values: ArrayLike, *, name: str) -> np.ndarray:
    values = np.asarray(values)
    if values.ndim != 1 or not values.size:
        raise ValueError(f"{name} has shape {values.shape}; it must be (pairs,), not empty")
    ones, zeros = values == 1, values == 0
    if not (ones | zeros).all():
        index = int(np.argmin(ones | zeros))
        raise ValueError(f"{name}[{index}] is {values.tolist()[index]!r}; it must be 0 or 1 (1 = match)")
    return ones


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
                    if not _TAG.fullmatch(tag):
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
