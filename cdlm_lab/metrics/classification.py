"""Do two documents match? Accuracy, precision, recall and F1 of yes or no, intervals, and paired tests.

As in document matching (CDLM section 3.3 reports F1; CDA section 4, accuracy and F1). 1 is a match, the
positive class of the last three. 0 / 0 is 0: the precision if nothing is predicted as a match, the recall if
nothing is one, F1 if both hold (scikit-learn's zero_division=0).

Pairs that share a document are not independent, so intervals and tests draw clusters of pairs. The scores are
always those of all pairs together, never a mean over clusters.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from cdlm_lab.metrics.resampling import (
    check_resamples,
    percentile_interval,
    resampled_sums,
    sums_by_cluster,
)
from cdlm_lab.metrics.significance import Comparison, Statistic, compare


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
