"""Intervals by the jackknife and paired tests over clusters."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cdlm_lab.metrics.paired import (
    compare,
    effective_clusters,
    holm,
    jackknife_interval,
    least_p,
    t_test_of_seeds,
)


def ratio(sums: np.ndarray) -> np.ndarray:
    return sums[..., 0] / sums[..., 1]


def f1(sums: np.ndarray) -> np.ndarray:
    return 2 * sums[..., 0] / (sums[..., 1] + sums[..., 2])


def mean_counts(values: list[float]) -> np.ndarray:
    return np.stack([np.array(values, dtype=float), np.ones(len(values))], axis=1)


def test_of_a_mean_it_is_students_interval():
    values = [0.2, 0.5, 0.9, 0.4, 0.7]
    expected = stats.t.interval(0.95, 4, loc=np.mean(values), scale=stats.sem(values))
    # the effective number of clusters is a little below 5, as the values differ: with equal ones it is 5
    low, high = jackknife_interval(mean_counts(values), ratio)
    assert low + high == pytest.approx(sum(expected))
    effective = effective_clusters(mean_counts(values))
    half = stats.t.ppf(0.975, effective - 1) * stats.sem(values)
    assert (high - low) / 2 == pytest.approx(half)


def test_of_a_ratio_it_equals_leaving_out_one_cluster_after_another():
    counts = np.array([[3, 4, 5], [1, 2, 1], [7, 9, 8], [2, 6, 3]], dtype=float)
    left_out = [f1(np.delete(counts, n, axis=0).sum(axis=0)) for n in range(4)]
    spread = 3 / 4 * sum((one - np.mean(left_out)) ** 2 for one in left_out)
    shares = [float(np.mean([row[c] / counts[:, c].sum() for c in range(3)])) for row in counts]
    half = stats.t.ppf(0.975, 1 / sum(s * s for s in shares) - 1) * np.sqrt(spread)
    value = float(Fraction(2 * 13, 21 + 17))
    assert jackknife_interval(counts, f1) == pytest.approx((value - half, value + half))


def test_one_cluster_says_nothing_about_others():
    assert jackknife_interval(np.array([[1.0, 2.0]]), ratio) == (-np.inf, np.inf)


def test_clusters_of_one_size_count_in_full_and_a_large_one_for_little_more_than_itself():
    assert effective_clusters(np.full((9, 2), 3.0)) == pytest.approx(9)
    assert effective_clusters(np.array([[97.0], [1.0], [1.0], [1.0]])) < 1.1


@pytest.mark.parametrize("clusters", [8, 12, 20])
@pytest.mark.parametrize("statistic", [ratio, f1], ids=["accuracy", "F1"])
def test_intervals_cover_the_truth_about_95_times_in_100(clusters: int, statistic):
    """Clusters of very different size and difficulty, as topics of ECB+ are."""

    def drawn(rng: np.random.Generator, number: int) -> np.ndarray:
        gold = rng.lognormal(2.5, 0.6, number).astype(int) + 3
        right = rng.binomial(gold, rng.beta(8, 3, number))
        extra = rng.binomial(gold, 0.25)
        columns = [right, gold] if statistic is ratio else [right, right + extra, gold]
        return np.stack(columns, axis=1).astype(float)

    rng = np.random.default_rng(clusters)
    truth = statistic(drawn(rng, 400_000).sum(axis=0))
    intervals = [jackknife_interval(drawn(rng, clusters), statistic) for _ in range(800)]
    assert 0.93 <= np.mean([low <= truth <= high for low, high in intervals]) <= 0.975


def p_by_hand(a: np.ndarray, b: np.ndarray, statistic) -> float:
    """The permutation test as it is told: each cluster of both systems kept or swapped."""
    difference = abs(statistic(a.sum(axis=0)) - statistic(b.sum(axis=0)))
    as_large = []
    for swapped in product((False, True), repeat=len(a)):
        ours = sum((b if s else a)[n] for n, s in enumerate(swapped))
        theirs = sum((a if s else b)[n] for n, s in enumerate(swapped))
        as_large.append(abs(statistic(ours) - statistic(theirs)) >= difference - 1e-12)
    return float(np.mean(as_large))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("clusters", [2, 5, 7])
def test_p_is_that_of_all_ways_to_swap(seed: int, clusters: int):
    rng = np.random.default_rng(seed)
    gold = rng.integers(4, 20, clusters)
    a, b = (
        np.stack([rng.binomial(gold, rate), rng.integers(4, 20, clusters), gold], axis=1).astype(float)
        for rate in (0.8, 0.5)
    )
    compared = compare(a, b, f1)
    assert compared.p == pytest.approx(p_by_hand(a, b, f1))
    assert compared.p >= least_p(clusters)
    assert compared.difference == pytest.approx(f1(a.sum(axis=0)) - f1(b.sum(axis=0)))
    back = compare(b, a, f1)
    assert (back.p, back.difference, back.low, back.high) == pytest.approx(
        (compared.p, -compared.difference, -compared.high, -compared.low)
    )


def test_many_clusters_are_swapped_at_random_and_agree_with_the_sign_test():
    """20 clusters, each won by a by one item: p is twice 2^-20, too rare for 10,000 draws."""
    a, b = mean_counts([1.0] * 20), mean_counts([0.0] * 20)
    assert compare(a, b, ratio).p == pytest.approx(1 / 10_001) == least_p(20)
    won = [1.0] * 15 + [0.0] * 5
    lost = [1 - one for one in won]
    assert compare(mean_counts(won), mean_counts(lost), ratio).p == pytest.approx(
        stats.binomtest(15, 20).pvalue, abs=0.006
    )


def test_a_system_against_itself():
    a = mean_counts([0.3, 0.6, 0.1])
    compared = compare(a, a, ratio)
    assert (compared.difference, compared.low, compared.high, compared.p) == (0.0, 0.0, 0.0, 1.0)


def test_no_difference_is_rejected_about_5_times_in_100():
    rng, rejected = np.random.default_rng(3), 0
    for _ in range(400):
        a, b = (mean_counts(list(rng.normal(size=10))) for _ in range(2))
        rejected += compare(a, b, ratio).p < 0.05
    assert 8 <= rejected <= 34


def test_the_least_p_says_where_no_difference_can_be_shown():
    assert [least_p(n) for n in (1, 4, 5, 6)] == [1.0, 1 / 8, 1 / 16, 1 / 32]


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (np.ones((2, 2)), np.ones((3, 2)), "a has shape"),
        (np.ones((0, 2)), np.ones((0, 2)), "not empty"),
        (np.array([[1.0, 0.0], [0.0, 0.0]]), np.ones((2, 2)), "not finite"),
    ],
)
def test_what_cannot_be_compared_is_refused(a, b, message):
    with pytest.raises(ValueError, match=message):
        compare(a, b, ratio)


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_is_the_step_down_procedure(p_values):
    """At each level, reject from the smallest on while p <= level / (tests left)."""
    adjusted = holm(p_values)
    for level in (0.01, 0.05, 0.3, 0.9):
        rejected: set[int] = set()
        for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
            if (len(p_values) - rank) * p_values[index] > level:
                break
            rejected.add(index)
        assert {index for index, p in enumerate(adjusted) if p <= level} == rejected
    assert all(p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))


def test_holm_worked():
    # 3 * 0.01, 2 * 0.02 and 1 * 0.03, which may not fall below the one before it.
    assert holm([0.02, 0.03, 0.01]) == pytest.approx([0.04, 0.04, 0.03])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([0.01, 0.01]) == pytest.approx([0.02, 0.02])
    assert holm([]) == []
    with pytest.raises(ValueError, match=r"p_values\[1\]"):
        holm([0.1, 1.2])


def test_seeds_are_compared_by_welchs_test():
    a, b = [0.50, 0.52, 0.55], [0.40, 0.47, 0.41]
    difference = np.mean(a) - np.mean(b)
    parts = [np.var(one, ddof=1) / 3 for one in (a, b)]
    freedom = sum(parts) ** 2 / sum(one**2 / 2 for one in parts)
    expected = 2 * stats.t.sf(difference / np.sqrt(sum(parts)), freedom)
    assert t_test_of_seeds(a, b) == pytest.approx(expected)
    assert t_test_of_seeds([0.5], b) is None
    assert t_test_of_seeds([0.5, 0.5], [0.4, 0.4]) is None
