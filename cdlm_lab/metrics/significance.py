"""Scores with intervals over clusters, and paired tests of two systems on the same clusters.

A system is a row of additive numbers for each cluster - loss and tokens for perplexity; correct, predicted
and gold items for F1 - and a statistic that turns their sums into a score: that of the pooled clusters, never
a mean of the clusters' scores. Clusters, not their items or tokens, are independent and are resampled.

p-values are two-sided and count the data themselves as one of the resamples (Davison and Hinkley 1997,
section 4.2; Phipson and Smyth 2010), so they are at least 1 / (n_resamples + 1). For a system trained with
several seeds the score is the mean over these: its interval says how much other items would have changed it,
its deviation how much other seeds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cdlm_lab.errors import check_least
from cdlm_lab.metrics.paired import RESAMPLES, Statistic, scores_of

INTERVAL = (0.025, 0.975)  # quantiles: the middle 95%
_NUMBERS_AT_ONCE = 1 << 20  # draws held in memory at once, for any number of clusters or resamples
_ROUNDING = 1e-12  # relative: sums of equal numbers in another order count as ties


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """System a against b on the same clusters; `low`, `high`: 95% bootstrap interval over clusters."""

    difference: float  # score of a minus that of b
    low: float
    high: float
    p: float  # two-sided; null hypothesis: the systems are exchangeable within clusters
    p_bootstrap: float  # two-sided; null hypothesis: no difference
    clusters: int


def resampled_sums(counts: np.ndarray, *, n_resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Bootstrap: sums over as many clusters as there are, drawn with replacement, `n_resamples` times:
    (clusters, columns) to (n_resamples, columns)."""
    clusters = len(counts)
    sums = np.empty((n_resamples, counts.shape[1]))
    columns = np.ascontiguousarray(counts.T)  # (columns, clusters)
    for rows in row_blocks(n_resamples, width=clusters):
        drawn = rng.integers(clusters, size=(rows.stop - rows.start, clusters))
        for place, column in enumerate(columns):
            sums[rows, place] = column[drawn].sum(axis=1)
    return sums


def drawn_sums(counts: np.ndarray, *, seed: int) -> np.ndarray:
    """`resampled_sums` for an interval, with RESAMPLES resamples: (RESAMPLES, columns)."""
    return resampled_sums(counts, n_resamples=RESAMPLES, rng=np.random.default_rng(seed))


def row_blocks(rows: int, *, width: int) -> Iterator[slice]:
    """Split `rows` rows of `width` numbers into consecutive blocks that each fit into memory."""
    step = max(1, _NUMBERS_AT_ONCE // max(1, width))
    for start in range(0, rows, step):
        yield slice(start, min(rows, start + step))


def percentile_interval(values: np.ndarray) -> tuple[float, float]:
    """The middle 95% of resampled values (resamples,): (low, high)."""
    low, high = np.quantile(values, INTERVAL)
    return float(low), float(high)


def sums_by_cluster(
    columns: Sequence[np.ndarray], clusters: Sequence[Hashable] | None, *, name: str
) -> np.ndarray:
    """Add up numbers of items, (items,) per column, within each cluster: (clusters, columns) float64.

    `clusters`: (items,), name of each item's cluster; None = each item is its own. `name`: of the items, for
    messages.
    """
    names = range(len(columns[0])) if clusters is None else clusters
    if len(names) != len(columns[0]):
        raise ValueError(f"there are {len(columns[0])} {name}, but {len(names)} clusters are named")
    numbers: dict[Hashable, int] = {}
    number = [numbers.setdefault(cluster, len(numbers)) for cluster in names]
    if len(numbers) < 2:
        raise ValueError("all pairs are of one cluster; an interval needs two, and better twenty")
    return np.stack([np.bincount(number, weights=column) for column in columns], axis=1)


def mean_of_sums(sums: np.ndarray) -> np.ndarray:
    """A weighted mean from (..., 2), the sums of values and of their weights: (...)."""
    return sums[..., 0] / sums[..., 1]


def _mean_over_seeds(statistic: Statistic, *, columns: int) -> Statistic:
    """The mean over seeds of the statistic of (..., seeds * columns) sums, one seed after the other."""
    return lambda sums: statistic(sums.reshape(*sums.shape[:-1], -1, columns)).mean(axis=-1)


def score_of_seeds(of_seeds: Sequence[float], interval: tuple[float, float]) -> dict[str, Any]:
    """A score in the form of a report: `value`, the mean over seeds; `low` and `high`, its interval;
    `deviation`, the sample standard deviation over seeds, None for a single one; `seeds`, their number."""
    low, high = interval
    deviation = stdev(of_seeds) if len(of_seeds) > 1 else None
    return {
        "value": fmean(of_seeds),
        "low": low,
        "high": high,
        "deviation": deviation,
        "seeds": len(of_seeds),
    }


def count_scores(
    seeds: Sequence[np.ndarray], statistics: Mapping[str, Statistic], *, seed: int
) -> dict[str, dict[str, Any]]:
    """Scores, in the form of a report, from the counts (clusters, columns) of each seed, under the names of
    `statistics`; `seed`: for resampling clusters."""
    drawn = drawn_sums(np.concatenate(seeds, axis=1), seed=seed)
    scores = {}
    for name, statistic in statistics.items():
        of_seeds = [float(statistic(one.sum(axis=0))) for one in seeds]
        of_draws = _mean_over_seeds(statistic, columns=seeds[0].shape[1])(drawn)
        scores[name] = score_of_seeds(of_seeds, percentile_interval(of_draws))
    return scores


def mean_score(seeds: Sequence[np.ndarray], clusters: Sequence[Hashable], *, seed: int) -> dict[str, Any]:
    """The mean of the items, as a score in the form of a report, with a 95% interval over clusters, from the
    values (items,) of each seed and the items' cluster names (items,); `seed`: for resampling clusters."""
    of_seeds = [float(values.mean()) for values in seeds]
    return _bracketed(of_seeds, mean_of_sums(drawn_sums(_item_counts(seeds, clusters), seed=seed)))


def ratio_score(
    seeds: Sequence[tuple[np.ndarray, np.ndarray]], clusters: Sequence[Hashable], *, seed: int
) -> dict[str, Any]:
    """Like `mean_score`, for items with weights: the sum of their points divided by the sum of their maximum
    points, both (items,) for each seed."""
    of_seeds = [float(points.sum() / out_of.sum()) for points, out_of in seeds]
    counts = sums_by_cluster([column for both in seeds for column in both], clusters, name="items")
    return _bracketed(of_seeds, _mean_over_seeds(mean_of_sums, columns=2)(drawn_sums(counts, seed=seed)))


def compare_means(
    a: Sequence[np.ndarray], b: Sequence[np.ndarray], clusters: Sequence[Hashable], *, seed: int
) -> Comparison:
    """Paired tests of the means of two systems on the same items, from the values (items,) of each seed,
    whose number may differ; `clusters`: of each item, resampled together."""
    return compare(_item_counts(a, clusters), _item_counts(b, clusters), mean_of_sums, seed=seed)


def compare_counts(
    a: Sequence[np.ndarray], b: Sequence[np.ndarray], statistic: Statistic, *, seed: int
) -> Comparison:
    """Paired tests of the mean score of two systems over an equal number of seeds, from the counts (clusters,
    columns) of each seed."""
    mean = _mean_over_seeds(statistic, columns=a[0].shape[1])
    return compare(np.concatenate(a, axis=1), np.concatenate(b, axis=1), mean, seed=seed)


def _item_counts(seeds: Sequence[np.ndarray], clusters: Sequence[Hashable]) -> np.ndarray:
    """(clusters, 2): sum over items of their mean over seeds, and number of items."""
    values = np.mean(seeds, axis=0)
    return sums_by_cluster([values, np.ones(len(values))], clusters, name="items")


def _bracketed(of_seeds: Sequence[float], of_draws: np.ndarray) -> dict[str, Any]:
    """A score whose interval includes it: sums in another order may differ in the last digit."""
    value, (low, high) = fmean(of_seeds), percentile_interval(of_draws)
    return score_of_seeds(of_seeds, (min(low, value), max(high, value)))


def compare(
    counts_a: ArrayLike,
    counts_b: ArrayLike,
    statistic: Statistic,
    *,
    n_resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Paired tests of two systems, from additive numbers for each cluster (clusters, columns).

    The bootstrap draws clusters with replacement, the same for both systems, and counts how often the
    difference changes its sign. The permutation test swaps the systems in a random half of the clusters, and
    counts how often the difference is at least as large.
    """
    check_least(n_resamples=n_resamples)
    a, b = _checked_counts(counts_a, counts_b)
    columns = a.shape[1]
    difference = float(scores_of(statistic, a.sum(axis=0)) - scores_of(statistic, b.sum(axis=0)))
    rng = np.random.default_rng(seed)
    sums = resampled_sums(np.concatenate([a, b], axis=1), n_resamples=n_resamples, rng=rng)
    resampled = scores_of(statistic, sums[:, :columns]) - scores_of(statistic, sums[:, columns:])
    swapped = _swapped_differences(a, b, statistic, n_resamples=n_resamples, seed=seed)
    low, high = percentile_interval(resampled)
    slack = _ROUNDING * max(1.0, float(np.abs(resampled).max()))
    rarer = min((resampled <= slack).sum(), (resampled >= -slack).sum())
    as_large = (np.abs(swapped) >= abs(difference) - _ROUNDING * max(1.0, abs(difference))).sum()
    return Comparison(
        difference=difference,
        low=low,
        high=high,
        p=(int(as_large) + 1) / (n_resamples + 1),
        p_bootstrap=min(1.0, 2 * float(rarer + 1) / (n_resamples + 1)),
        clusters=len(a),
    )


def _swapped_differences(
    a: np.ndarray, b: np.ndarray, statistic: Statistic, *, n_resamples: int, seed: int
) -> np.ndarray:
    rng = np.random.default_rng(seed)
    differences = np.empty(n_resamples)
    for rows in row_blocks(n_resamples, width=len(a)):
        swapped = rng.integers(2, size=(rows.stop - rows.start, len(a))).astype(np.float64)
        moved = swapped @ (b - a)  # (block, columns)
        ours, theirs = a.sum(axis=0) + moved, b.sum(axis=0) - moved
        differences[rows] = scores_of(statistic, ours) - scores_of(statistic, theirs)
    return differences


def _checked_counts(counts_a: ArrayLike, counts_b: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    a, b = np.asarray(counts_a, dtype=np.float64), np.asarray(counts_b, dtype=np.float64)
    if a.ndim != 2 or a.shape != b.shape or not a.size:
        shapes = f"counts_a has shape {a.shape} and counts_b {b.shape}"
        raise ValueError(f"{shapes}; both must be (clusters, columns), not empty")
    for name, counts in (("counts_a", a), ("counts_b", b)):
        if not np.isfinite(counts).all():
            row = int(np.argmax(~np.isfinite(counts).all(axis=1)))
            raise ValueError(f"{name}[{row}] is {counts[row].tolist()}; counts must be finite")
    return a, b
