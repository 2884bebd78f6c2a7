"""Scores of systems that were trained with several seeds, as reports hold them: the mean over the seeds, its
interval, and how far the seeds lie apart.

A score is a mean over items, as questions or pairs of documents. Items that have something in common are of
one cluster, and clusters are what intervals and tests draw. An item counts with its mean over the seeds: the
interval says what other items would have changed, not what other seeds would have; that is the deviation.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from statistics import fmean, stdev
from typing import Any

import numpy as np

from cdlm_lab.metrics.resampling import percentile_interval, resampled_sums, sums_by_cluster
from cdlm_lab.metrics.significance import Comparison, compare

RESAMPLES = 10_000


def score_of_seeds(of_seeds: Sequence[float], interval: tuple[float, float]) -> dict[str, Any]:
    """A score as a report holds it.

    Args:
        of_seeds: the score with each seed.
        interval: low and high end of that of their mean.

    Returns:
        `value`: their mean; `low`, `high`; `deviation`: their sample deviation, None of a single seed;
        `seeds`: how many.
    """
    low, high = interval
    return {
        "value": fmean(of_seeds),
        "low": low,
        "high": high,
        "deviation": stdev(of_seeds) if len(of_seeds) > 1 else None,
        "seeds": len(of_seeds),
    }


def mean_score(seeds: Sequence[np.ndarray], clusters: Sequence[Hashable], *, seed: int) -> dict[str, Any]:
    """The mean of the items as a score, see `score_of_seeds`, with a 95% interval over clusters.

    Args:
        seeds: with each seed the values of the items: (items,).
        clusters: (items,), name of the cluster of each.
        seed: of the draws.

    Raises:
        ValueError: another number of clusters than items, or only one cluster.
    """
    of_seeds = [float(values.mean()) for values in seeds]
    drawn = resampled_sums(_counts(seeds, clusters), n_resamples=RESAMPLES, rng=np.random.default_rng(seed))
    return _score(of_seeds, _mean(drawn))


def ratio_score(
    seeds: Sequence[tuple[np.ndarray, np.ndarray]], clusters: Sequence[Hashable], *, seed: int
) -> dict[str, Any]:
    """The same of items that weigh differently: with each seed their points, and what these are out of; the
    score is the sum of the former over that of the latter."""
    of_seeds = [float(points.sum() / out_of.sum()) for points, out_of in seeds]
    counts = sums_by_cluster([column for both in seeds for column in both], clusters, name="items")
    drawn = resampled_sums(counts, n_resamples=RESAMPLES, rng=np.random.default_rng(seed))
    return _score(of_seeds, (drawn[:, ::2] / drawn[:, 1::2]).mean(axis=1))


def _score(of_seeds: Sequence[float], drawn: np.ndarray) -> dict[str, Any]:
    """`drawn`: the score of each resample."""
    value, (low, high) = fmean(of_seeds), percentile_interval(drawn)
    # sums in another order may differ in the last digit
    return score_of_seeds(of_seeds, (min(low, value), max(high, value)))


def compare_means(
    a: Sequence[np.ndarray], b: Sequence[np.ndarray], clusters: Sequence[Hashable], *, seed: int
) -> Comparison:
    """Paired tests of two systems on the same items; they need not have as many seeds.

    Args and errors as of `mean_score`; `a` and `b`: as `seeds` there.
    """
    return compare(_counts(a, clusters), _counts(b, clusters), _mean, n_resamples=RESAMPLES, seed=seed)


def _counts(seeds: Sequence[np.ndarray], clusters: Sequence[Hashable]) -> np.ndarray:
    """(clusters, 2): sum of the items' means over the seeds, and number of the items."""
    values = np.mean(seeds, axis=0)
    return sums_by_cluster([values, np.ones(len(values))], clusters, name="items")


def _mean(sums: np.ndarray) -> np.ndarray:
    return sums[..., 0] / sums[..., 1]
