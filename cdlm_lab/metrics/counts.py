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

Do two documents match? Accuracy, precision, recall and F1 of yes or no, intervals, and paired tests.

As in document matching (CDLM section 3.3 reports F1; CDA section 4, accuracy and F1). 1 is a match, the
positive class of the last three. 0 / 0 is 0: the precision if nothing is predicted as a match, the recall if
nothing is one, F1 if both hold (scikit-learn's zero_division=0).

Pairs that share a document are not independent, so intervals and tests draw clusters of pairs. The scores are
always those of all pairs together, never a mean over clusters.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOB2, Entities
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from cdlm_lab.metrics.significance import (
    Comparison,
    Statistic,
    check_resamples,
    compare,
    percentile_interval,
    resampled_sums,
    sums_by_cluster,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryScores:
    """Accuracy, and precision, recall and F1 of the matches, each in [0, 1]; `pairs`: how many."""

    accuracy: float
    precision: float
    recall: float
    f1: float
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryIntervals:
    """95% bootstrap intervals (low, high) of the numbers of `BinaryScores`.

    Attributes:
        accuracy, precision, recall, f1: percentiles 2.5 and 97.5 over resampled clusters.
        pairs, clusters: how many; an interval over few clusters (below about 20) is too narrow.
    """

    accuracy: tuple[float, float]
    precision: tuple[float, float]
    recall: tuple[float, float]
    f1: tuple[float, float]
    pairs: int
    clusters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryComparison(Comparison):
    """Two systems on the same pairs; a positive difference = a is better.

    Attributes:
        measure: `accuracy` or `f1`.
        pairs: how many.
    """

    measure: str
    pairs: int


def binary_scores(labels: ArrayLike, predictions: ArrayLike) -> BinaryScores:
    """Scores of all pairs together.

    Args:
        labels: (pairs,) of 0 and 1, or bool; 1 = the documents match. One class alone will do.
        predictions: (pairs,), the same of the system: decisions, not probabilities.

    Raises:
        ValueError: no pairs, shapes differ, or a label or prediction is neither 0 nor 1.
    """
    gold, predicted = _checked(labels, name="labels"), _checked(predictions, name="predictions")
    _check_equal_length(gold, predicted, name="predictions")
    precision, recall, f1, _ = precision_recall_fscore_support(
        gold, predicted, average="binary", zero_division=0
    )
    return BinaryScores(
        accuracy=float(accuracy_score(gold, predicted)),
        precision=float(precision),
        recall=float(recall),
        f1=float(f1),
        pairs=len(gold),
    )


def binary_intervals(
    labels: ArrayLike,
    predictions: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> BinaryIntervals:
    """How far the scores might be off, had other clusters of pairs been drawn.

    Args:
        labels: as of `binary_scores`.
        predictions: as there; or (seeds, pairs), of models trained with several seeds, whose mean scores are
            then meant.
        clusters: (pairs,), name of the cluster of each pair; pairs that share a document should be in one.
            None = each pair is its own.
        n_resamples: how often to draw.
        seed: of the draws.

    Raises:
        ValueError: as `binary_scores`; also another number of clusters than pairs, only one cluster, or
            `n_resamples` < 1.
    """
    check_resamples(n_resamples)
    counts = _cluster_counts(labels, predictions, clusters, name="predictions")
    drawn = resampled_sums(counts, n_resamples=n_resamples, rng=np.random.default_rng(seed))
    intervals = {
        measure: percentile_interval(_mean_over_seeds(of)(drawn)) for measure, of in _STATISTICS.items()
    }
    return BinaryIntervals(**intervals, pairs=np.asarray(labels).size, clusters=len(counts))


def compare_binary(
    labels: ArrayLike,
    predictions_a: ArrayLike,
    predictions_b: ArrayLike,
    *,
    measure: str = "accuracy",
    clusters: Sequence[Hashable] | None = None,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> BinaryComparison:
    """Paired tests of two systems; pair i must be the same for both, and seeds as many.

    Args:
        predictions_a, predictions_b: as of `binary_intervals`.
        measure: `accuracy` or `f1`.

    Other arguments and errors as of `binary_intervals`.

    Raises:
        ValueError: also if `measure` is none of the two.
    """
    if measure not in ("accuracy", "f1"):
        raise ValueError(f"unknown measure {measure!r}; choose one of accuracy, f1")
    a = _cluster_counts(labels, predictions_a, clusters, name="predictions_a")
    b = _cluster_counts(labels, predictions_b, clusters, name="predictions_b")
    statistic = _mean_over_seeds(_STATISTICS[measure])
    compared = compare(a, b, statistic, n_resamples=n_resamples, seed=seed)
    return BinaryComparison(**asdict(compared), measure=measure, pairs=np.asarray(labels).size)


# Each from (..., 4) sums of true positives, false positives, false negatives and true negatives to (...).
def _accuracy(sums: np.ndarray) -> np.ndarray:
    return _ratio(sums[..., 0] + sums[..., 3], sums.sum(axis=-1))


def _precision(sums: np.ndarray) -> np.ndarray:
    return _ratio(sums[..., 0], sums[..., 0] + sums[..., 1])


def _recall(sums: np.ndarray) -> np.ndarray:
    return _ratio(sums[..., 0], sums[..., 0] + sums[..., 2])


def _f1(sums: np.ndarray) -> np.ndarray:
    return _ratio(2 * sums[..., 0], 2 * sums[..., 0] + sums[..., 1] + sums[..., 2])


_STATISTICS: dict[str, Statistic] = {
    "accuracy": _accuracy,
    "precision": _precision,
    "recall": _recall,
    "f1": _f1,
}


def _mean_over_seeds(statistic: Statistic) -> Statistic:
    """Of (..., 4 * seeds) sums, as `_cluster_counts` makes them."""

    def mean(sums: np.ndarray) -> np.ndarray:
        return statistic(sums.reshape(*sums.shape[:-1], -1, 4)).mean(axis=-1)

    return mean


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """0 / 0 is 0."""
    return np.divide(numerator, denominator, out=np.zeros(denominator.shape), where=denominator != 0)


def _cluster_counts(
    labels: ArrayLike, predictions: ArrayLike, clusters: Sequence[Hashable] | None, *, name: str
) -> np.ndarray:
    """(clusters, 4 * seeds): true positives, false positives, false negatives, true negatives of each
    cluster, seed after seed."""
    gold, seeds = _checked(labels, name="labels"), np.asarray(predictions)
    cells = []
    for each in seeds if seeds.ndim == 2 else seeds[None]:
        predicted = _checked(each, name=name)
        _check_equal_length(gold, predicted, name=name)
        cells += [gold & predicted, ~gold & predicted, gold & ~predicted, ~gold & ~predicted]
    return sums_by_cluster(cells, clusters, name="labels")


def _checked(values: ArrayLike, *, name: str) -> np.ndarray:
    """bool (pairs,), True = 1; `name`: of the values, for messages."""
    values = np.asarray(values)
    if values.ndim != 1 or not values.size:
        raise ValueError(f"{name} has shape {values.shape}; it must be (pairs,), not empty")
    ones, zeros = values == 1, values == 0
    if not (ones | zeros).all():
        index = int(np.argmin(ones | zeros))
        raise ValueError(f"{name}[{index}] is {values.tolist()[index]!r}; it must be 0 or 1 (1 = match)")
    return ones


def _check_equal_length(gold: np.ndarray, predicted: np.ndarray, *, name: str) -> None:
    if len(gold) != len(predicted):
        raise ValueError(f"there are {len(gold)} labels, but {len(predicted)} {name}")


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
    return _ratio_span_f1(correct, predicted)


def recall_of(counts: ArrayLike) -> np.ndarray:
    """Correct ones among those of the gold: (..., 3) counts to (...), in [0, 1]. Errors as `f1_of`."""
    correct, _, gold = _columns(counts)
    return _ratio_span_f1(correct, gold)


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
    return _ratio_span_f1(2 * correct, predicted + gold)


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


def _ratio_span_f1(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
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
