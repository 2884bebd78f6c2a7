"""Is one system better than another on the same clusters? Paired tests with the cluster as unit.

A system is given as a row of additive numbers for each cluster - loss and tokens for perplexity; true
positives, false positives and false negatives for F1 - and a statistic that turns their sums into a score. So
the score of a resample is that of the pooled clusters, never a mean of per-cluster scores.

p-values are two-sided and count the data themselves as one of the resamples (Davison and Hinkley 1997,
section 4.2; Phipson and Smyth 2010), so they are never 0 and smallest at 1 / (n_resamples + 1).

Resampling of clusters in bounded memory: the clusters are the independent units, their tokens are not.

Perplexity of masked tokens with a confidence interval over clusters (CDLM section 3.1, Table 1).

Every masked token counts once, so that a cluster weighs as much as it has masked tokens; the mean of means
that comes from averaging the losses of batches is something else. Tokens of one cluster depend on each other,
so the interval resamples clusters.

Scores of systems that were trained with several seeds, as reports hold them: the mean over the seeds, its
interval, and how far the seeds lie apart.

A score is a mean over items, as questions or pairs of documents. Items that have something in common are of
one cluster, and clusters are what intervals and tests draw. An item counts with its mean over the seeds: the
interval says what other items would have changed, not what other seeds would have; that is the deviation.

Student's t-test over seeds, which the MSPP paper has beside its tables.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import ttest_ind_from_stats

INTERVAL = (0.025, 0.975)  # quantiles: the middle 95%
_NUMBERS_AT_ONCE = 1 << 20  # so many draws are held in memory, whatever the number of clusters or resamples


def resampled_sums(counts: np.ndarray, *, n_resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Sums over as many clusters as there are, drawn with replacement, again and again.

    Args:
        counts: (clusters, columns), additive numbers of each cluster.
        n_resamples: how often to draw.

    Returns:
        (n_resamples, columns).
    """
    clusters = len(counts)
    sums = np.empty((n_resamples, counts.shape[1]))
    columns = np.ascontiguousarray(counts.T)  # (columns, clusters)
    for rows in row_blocks(n_resamples, width=clusters):
        drawn = rng.integers(clusters, size=(rows.stop - rows.start, clusters))
        for place, column in enumerate(columns):
            sums[rows, place] = column[drawn].sum(axis=1)
    return sums


def sums_by_cluster(
    columns: Sequence[np.ndarray],
    clusters: Sequence[Hashable] | None,
    *,
    name: str,
    numbers: dict[Hashable, int] | None = None,
) -> np.ndarray:
    """Numbers of items, added up within each cluster: (clusters, columns) float64.

    Args:
        columns: (items,) each.
        clusters: (items,), name of the cluster of each; None = each is its own.
        name: of the items, for messages.
        numbers: of clusters that are known already; new ones are added. None = none are.

    Raises:
        ValueError: another number of names than items, or only one cluster.
    """
    names = range(len(columns[0])) if clusters is None else clusters
    if len(names) != len(columns[0]):
        raise ValueError(f"there are {len(columns[0])} {name}, but {len(names)} clusters are named")
    numbers = {} if numbers is None else numbers
    number = [numbers.setdefault(cluster, len(numbers)) for cluster in names]
    if len(numbers) < 2:
        raise ValueError("all pairs are of one cluster; an interval needs two, and better twenty")
    return np.stack([np.bincount(number, weights=column) for column in columns], axis=1)


def row_blocks(rows: int, *, width: int) -> Iterator[slice]:
    """Consecutive blocks of `rows` rows of `width` numbers that each fit into memory."""
    step = max(1, _NUMBERS_AT_ONCE // max(1, width))
    for start in range(0, rows, step):
        yield slice(start, min(rows, start + step))


def percentile_interval(values: np.ndarray) -> tuple[float, float]:
    """The middle 95% of resampled values (resamples,): (low, high)."""
    low, high = np.quantile(values, INTERVAL)
    return float(low), float(high)


def check_resamples(n_resamples: int) -> None:
    """Raises ValueError for a number of resamples below 1."""
    if n_resamples < 1:
        raise ValueError(f"n_resamples is {n_resamples}; it must be at least 1 (10,000 is usual)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Perplexity:
    """Perplexity and its 95% bootstrap interval.

    Attributes:
        value: exp(sum of losses / number of tokens), at least 1.
        low, high: percentiles 2.5 and 97.5 over resampled clusters; of a single cluster both are `value` and
            say nothing.
        clusters: how many had tokens to predict; only these are resampled.
        tokens: how many were predicted.
    """

    value: float
    low: float
    high: float
    clusters: int
    tokens: int


def perplexity(
    loss_sums: ArrayLike, token_counts: ArrayLike, *, n_resamples: int = 10_000, seed: int = 0
) -> Perplexity:
    """Token-weighted perplexity of one model.

    Args:
        loss_sums: (clusters,), cross-entropy in nats summed over the predicted tokens of each cluster.
        token_counts: (clusters,), how many tokens that are; clusters without any are left out.
        n_resamples: for the interval.
        seed: of the resampling.

    Raises:
        ValueError: shapes differ, a loss is negative or not finite, a count is negative or not whole, a
            cluster without tokens has a loss, no cluster has a token, or `n_resamples` is below 1.
    """
    check_resamples(n_resamples)
    losses, tokens = checked_losses(loss_sums, token_counts)
    counts = np.stack([losses, tokens], axis=1)  # (clusters, 2)
    resampled = resampled_sums(counts, n_resamples=n_resamples, rng=np.random.default_rng(seed))
    low, high = percentile_interval(log_perplexity(resampled))
    return Perplexity(
        value=_exp(float(log_perplexity(counts.sum(axis=0)))),
        low=_exp(low),
        high=_exp(high),
        clusters=len(counts),
        tokens=int(tokens.sum()),
    )


def log_perplexity(sums: np.ndarray) -> np.ndarray:
    """Mean loss in nats from (..., 2) sums of loss and of tokens: (...)."""
    return sums[..., 0] / sums[..., 1]


def checked_losses(
    loss_sums: ArrayLike, token_counts: ArrayLike, *, name: str = "loss_sums"
) -> tuple[np.ndarray, np.ndarray]:
    """Both as float64 (clusters,), less the clusters without tokens; `name`: of the losses, for messages.

    Raises:
        ValueError: as `perplexity`.
    """
    losses, tokens = np.asarray(loss_sums, dtype=np.float64), np.asarray(token_counts, dtype=np.float64)
    if losses.ndim != 1 or losses.shape != tokens.shape:
        raise ValueError(
            f"{name} has shape {losses.shape} and token_counts {tokens.shape}; both must be (clusters,)"
        )
    _refuse(
        losses,
        ~(np.isfinite(losses) & (losses >= 0)),
        f"{name}[%d] is %s; a loss must be finite and not negative",
    )
    _refuse(
        tokens,
        ~(tokens >= 0) | (tokens % 1 != 0),
        "token_counts[%d] is %s; a count must be whole and not negative",
    )
    _refuse(
        losses,
        (tokens == 0) & (losses != 0),
        f"{name}[%d] is %s, but token_counts says that no token was predicted",
    )
    if not tokens.any():
        raise ValueError("no cluster has a predicted token; perplexity needs at least one")
    kept = tokens > 0
    return losses[kept], tokens[kept]


def _refuse(values: np.ndarray, faulty: np.ndarray, message: str) -> None:
    """Complain about the first faulty value; `message` takes its index and the value."""
    if faulty.any():
        index = int(np.argmax(faulty))
        raise ValueError(message % (index, values[index]))


def _exp(value: float) -> float:
    """exp, infinite where a float cannot hold it."""
    with np.errstate(over="ignore"):
        return float(np.exp(value))


# (..., columns) of summed counts -> (...) scores.
Statistic = Callable[[np.ndarray], np.ndarray]
_ROUNDING = 1e-12  # relative: sums of the same numbers in another order are ties


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapTest:
    """Difference a minus b, its 95% interval over resampled clusters, and the p-value of no difference."""

    difference: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PermutationTest:
    """Difference a minus b and the p-value of the two systems being exchangeable."""

    difference: float
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two systems on the same clusters.

    Attributes:
        difference: score of a minus that of b.
        low, high: its 95% bootstrap interval over clusters.
        p_permutation, p_bootstrap: two-sided; of the systems being exchangeable within clusters, and of no
            difference.
        clusters: how many.
    """

    difference: float
    low: float
    high: float
    p_permutation: float
    p_bootstrap: float
    clusters: int


def paired_bootstrap(
    counts_a: ArrayLike,
    counts_b: ArrayLike,
    statistic: Statistic,
    *,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> BootstrapTest:
    """Draw clusters with replacement, the same for both systems; how often does the difference change sides?

    Args:
        counts_a, counts_b: (clusters, columns), additive numbers of each cluster.
        statistic: summed counts (..., columns) to scores (...).

    Raises:
        ValueError: shapes differ, there are no clusters, a number or a score is not finite, or `n_resamples`
            < 1.
    """
    a, b = _checked_counts(counts_a, counts_b, n_resamples)
    both = np.concatenate([a, b], axis=1)  # (clusters, 2 * columns)
    sums = resampled_sums(both, n_resamples=n_resamples, rng=np.random.default_rng(seed))
    columns = a.shape[1]
    differences = _scores(statistic, sums[:, :columns]) - _scores(statistic, sums[:, columns:])
    low, high = percentile_interval(differences)
    slack = _ROUNDING * max(1.0, float(np.abs(differences).max()))
    rarer = min((differences <= slack).sum(), (differences >= -slack).sum())
    return BootstrapTest(
        difference=_difference(a, b, statistic),
        low=low,
        high=high,
        p=min(1.0, 2 * float(rarer + 1) / (n_resamples + 1)),
    )


def paired_permutation(
    counts_a: ArrayLike,
    counts_b: ArrayLike,
    statistic: Statistic,
    *,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> PermutationTest:
    """Swap the two systems in a random half of the clusters, and see how often the difference gets as large.

    Arguments and errors as `paired_bootstrap`.
    """
    a, b = _checked_counts(counts_a, counts_b, n_resamples)
    rng = np.random.default_rng(seed)
    observed = _difference(a, b, statistic)
    as_large = 0
    for rows in row_blocks(n_resamples, width=len(a)):
        swapped = rng.integers(2, size=(rows.stop - rows.start, len(a))).astype(np.float64)
        moved = swapped @ (b - a)  # (block, columns)
        differences = _scores(statistic, a.sum(axis=0) + moved) - _scores(statistic, b.sum(axis=0) - moved)
        slack = _ROUNDING * max(1.0, abs(observed))
        as_large += int((np.abs(differences) >= abs(observed) - slack).sum())
    return PermutationTest(difference=observed, p=(as_large + 1) / (n_resamples + 1))


def compare(
    counts_a: ArrayLike,
    counts_b: ArrayLike,
    statistic: Statistic,
    *,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Both tests; arguments and errors as `paired_bootstrap`."""
    bootstrap = paired_bootstrap(counts_a, counts_b, statistic, n_resamples=n_resamples, seed=seed)
    permutation = paired_permutation(counts_a, counts_b, statistic, n_resamples=n_resamples, seed=seed)
    return Comparison(
        difference=bootstrap.difference,
        low=bootstrap.low,
        high=bootstrap.high,
        p_permutation=permutation.p,
        p_bootstrap=bootstrap.p,
        clusters=len(np.asarray(counts_a)),
    )


def compare_perplexities(
    loss_a: ArrayLike, loss_b: ArrayLike, token_counts: ArrayLike, *, n_resamples: int = 10_000, seed: int = 0
) -> Comparison:
    """Token-weighted log-perplexity, in nats, of two models that predicted the same tokens: a negative
    difference = a is better, and its exp is the ratio of the perplexities. `clusters` counts those that had
    tokens to predict.

    Args:
        loss_a, loss_b: (clusters,), cross-entropy in nats summed over the predicted tokens of each cluster.
        token_counts: (clusters,), how many tokens that are, the same for both.

    Raises:
        ValueError: as `language_modelling.perplexity`.
    """
    losses_a, tokens = checked_losses(loss_a, token_counts, name="loss_a")
    losses_b, _ = checked_losses(loss_b, token_counts, name="loss_b")
    a, b = np.stack([losses_a, tokens], axis=1), np.stack([losses_b, tokens], axis=1)
    return compare(a, b, log_perplexity, n_resamples=n_resamples, seed=seed)


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for making all these tests (Holm 1979), in the order given.

    Reject those that stay below the level: the chance of even one false rejection is then at most the level.

    Raises:
        ValueError: a p-value is not in [0, 1].
    """
    for index, p in enumerate(p_values):
        if not 0 <= p <= 1:
            raise ValueError(f"p_values[{index}] is {p}; a p-value lies in [0, 1]")
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * float(p_values[index])))
        adjusted[index] = largest
    return adjusted


def _checked_counts(
    counts_a: ArrayLike, counts_b: ArrayLike, n_resamples: int
) -> tuple[np.ndarray, np.ndarray]:
    check_resamples(n_resamples)
    a, b = np.asarray(counts_a, dtype=np.float64), np.asarray(counts_b, dtype=np.float64)
    if a.ndim != 2 or a.shape != b.shape or not a.size:
        raise ValueError(
            f"counts_a has shape {a.shape} and counts_b {b.shape}; "
            "both must be (clusters, columns), not empty"
        )
    for name, counts in (("counts_a", a), ("counts_b", b)):
        if not np.isfinite(counts).all():
            row = int(np.argmax(~np.isfinite(counts).all(axis=1)))
            raise ValueError(f"{name}[{row}] is {counts[row].tolist()}; counts must be finite")
    return a, b


def _difference(a: np.ndarray, b: np.ndarray, statistic: Statistic) -> float:
    return float(_scores(statistic, a.sum(axis=0)) - _scores(statistic, b.sum(axis=0)))


def _scores(statistic: Statistic, sums: np.ndarray) -> np.ndarray:
    """Scores of summed counts (..., columns): (...); one that is no number would pass for no difference."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.asarray(statistic(sums), dtype=np.float64)
    if not np.isfinite(scores).all():
        raise ValueError(
            "the statistic of some resample is not finite; leave out clusters with nothing to score, "
            "or define the statistic where its denominator is 0"
        )
    return scores


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


def t_test_of_seeds(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Two-sided p of Welch's t-test: would other seeds, on these same items, put a and b apart as well?

    A seed of one system has nothing in common with the same seed of another (other weights are drawn, other
    batches are made), so the seeds are two independent samples; which form of the test the paper used it does
    not say. The test says nothing of other items; for these see `seed_scores.compare_means`.

    Args:
        a, b: the score of each system with each seed.

    Returns:
        None where the test says nothing: a single seed of either, or neither system varies.
    """
    if min(len(a), len(b)) < 2 or max(np.ptp(a), np.ptp(b)) < 1e-12:
        return None
    described = [value for one in (a, b) for value in (np.mean(one), np.std(one, ddof=1), len(one))]
    return float(ttest_ind_from_stats(*described, equal_var=False).pvalue)
