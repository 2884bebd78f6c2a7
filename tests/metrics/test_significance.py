"""Intervals and paired tests: enumeration, direct implementations, invariants, error rates, messages."""

import math
import re
from itertools import product

import numpy as np
import pytest
from scipy.stats import t
from sklearn.metrics import f1_score

from cdlm_lab.metrics import significance
from cdlm_lab.metrics.counts import DECISION_SCORES, f1_of, match_counts
from cdlm_lab.metrics.paired import holm, t_test_of_seeds
from cdlm_lab.metrics.significance import (
    compare,
    compare_counts,
    compare_means,
    count_scores,
    mean_score,
    ratio_score,
    resampled_sums,
    row_blocks,
    score_of_seeds,
)


def total(sums: np.ndarray) -> np.ndarray:
    """Statistic that is the sum itself."""
    return sums[..., 0]


def f1(sums: np.ndarray) -> np.ndarray:
    """Compute F1 from true positives, false positives and false negatives; NaN if all are 0."""
    return 2 * sums[..., 0] / (2 * sums[..., 0] + sums[..., 1] + sums[..., 2])


def column(*values: float) -> np.ndarray:
    return np.array(values, dtype=float)[:, None]


def near(*values: float) -> list:
    return [pytest.approx(value) for value in values]


def test_blocks_cover_every_row_once():
    for rows, width in [(10, 3), (7, 1 << 21), (1, 1), (5, 0)]:
        blocks = list(row_blocks(rows, width=width))
        assert [row for block in blocks for row in range(block.start, block.stop)] == list(range(rows))
    assert len(list(row_blocks(7, width=1 << 21))) == 7  # one row at a time where not even one fits


def test_sums_are_those_of_a_loop_over_draws(monkeypatch):
    counts = np.array([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]])
    rng = np.random.default_rng(3)
    slow = [[sum(column) for column in zip(*counts[rng.integers(3, size=3)], strict=True)] for _ in range(50)]
    for at_once in (significance._NUMBERS_AT_ONCE, 6):  # all resamples at a time, or two
        monkeypatch.setattr(significance, "_NUMBERS_AT_ONCE", at_once)
        assert resampled_sums(counts, n_resamples=50, rng=np.random.default_rng(3)).tolist() == slow


def test_permutation_p_by_enumeration():
    # Differences 1, 2, 3, 4: of the 16 signings only all plus and all minus reach |10|, so p = 2/16.
    compared = compare(column(1, 2, 3, 4), column(0, 0, 0, 0), total, n_resamples=40_000)
    assert compared.difference == 10
    # Three standard errors: 3 * sqrt(1/8 * 7/8 / 40000) = 0.005.
    assert compared.p == pytest.approx(2 / 16, abs=0.005)
    a = np.array([[8.0, 1, 1], [5, 2, 4], [1, 3, 0], [6, 0, 2], [9, 4, 4]])
    b = np.array([[6.0, 2, 3], [4, 2, 5], [2, 2, 1], [3, 3, 3], [9, 3, 5]])
    observed = abs(f1(a.sum(axis=0)) - f1(b.sum(axis=0)))
    reached = 0
    for swaps in product([False, True], repeat=5):
        swapped = np.array(swaps)[:, None]
        x, y = np.where(swapped, b, a), np.where(swapped, a, b)
        reached += abs(f1(x.sum(axis=0)) - f1(y.sum(axis=0))) >= observed - 1e-12
    compared = compare(a, b, f1, n_resamples=40_000)
    assert compared.p == pytest.approx(reached / 32, abs=3 * math.sqrt(0.25 / 40_000))
    assert 2 / 32 <= reached / 32 <= 0.5  # neither end of the scale: the test can tell a wrong p


def test_bootstrap_p_by_enumeration():
    # Differences 3 and -1: draws give 6, 2, 2, -2; one in four is at most 0, so p = 2 * 1/4.
    compared = compare(column(3, 0), column(0, 1), total, n_resamples=40_000)
    assert (compared.difference, compared.low, compared.high) == (2, -2, 6)
    assert compared.p_bootstrap == pytest.approx(2 / 4, abs=2 * 3 * math.sqrt(0.25 * 0.75 / 40_000))


def test_bootstrap_equals_a_loop_over_resampled_indices():
    rng = np.random.default_rng(2)
    a, b = rng.integers(1, 20, size=(7, 3)).astype(float), rng.integers(1, 20, size=(7, 3)).astype(float)
    compared = compare(a, b, f1, n_resamples=500, seed=9)
    draws = np.random.default_rng(9)
    indices = [draws.integers(7, size=7) for _ in range(500)]
    slow = [float(f1(a[index].sum(axis=0)) - f1(b[index].sum(axis=0))) for index in indices]
    assert (compared.low, compared.high) == pytest.approx(tuple(np.percentile(slow, [2.5, 97.5])))
    rarer = min(sum(d <= 0 for d in slow), sum(d >= 0 for d in slow))
    assert compared.p_bootstrap == min(1, 2 * (rarer + 1) / 501)


def test_sums_that_differ_by_rounding_are_ties():
    # The same numbers as whole ones, whose sums are exact, and as tenths, whose sums are not.
    for a, b in [((9, 2, 7), (9, 1, 4)), ((4, 8, 5), (1, 7, 7))]:
        whole = compare(column(*a), column(*b), total, n_resamples=199)
        tenths = compare(column(*a) / 10, column(*b) / 10, total, n_resamples=199)
        assert (tenths.p, tenths.p_bootstrap) == (whole.p, whole.p_bootstrap)


def test_p_is_never_zero():
    # b is worse by exactly 1 everywhere: no resample but the data themselves reaches it.
    sure = compare(np.ones((40, 1)), np.full((40, 1), 2.0), total, n_resamples=999)
    assert (sure.p, sure.p_bootstrap) == (1 / 1000, 2 / 1000)


def test_no_difference_is_rejected_about_5_times_in_100():
    rng = np.random.default_rng(4)
    p = []
    for seed in range(300):
        compared = compare(*rng.normal(size=(2, 50, 1)) + 5, total, n_resamples=199, seed=seed)
        p.append((compared.p, compared.p_bootstrap))
    # 3 * sqrt(0.05 * 0.95 / 300) = 0.038 around 0.05.
    for rejected in (np.array(p) <= 0.05).mean(axis=0):
        assert 0.012 <= rejected <= 0.088


# Seven pairs of documents in four clusters, and two systems.
GOLD, A, B = [1, 0, 1, 1, 0, 1, 0], [1, 0, 1, 0, 0, 1, 1], [0, 1, 1, 1, 0, 0, 1]
CLUSTERS = ["p", "p", "q", "r", "r", "s", "q"]


def counts_of(*seeds, gold=GOLD, clusters=CLUSTERS) -> list[np.ndarray]:
    return [match_counts(gold, predictions, clusters=clusters) for predictions in seeds]


def test_the_f1_of_decisions_is_compared_by_swapped_clusters():
    gold, a, b = np.array(GOLD), np.array(A), np.array(B)
    observed = f1_score(gold, a) - f1_score(gold, b)
    reached = 0
    for swaps in product([False, True], repeat=4):
        swapped = np.array([swaps["pqrs".index(cluster)] for cluster in CLUSTERS])
        x, y = np.where(swapped, b, a), np.where(swapped, a, b)
        reached += abs(f1_score(gold, x) - f1_score(gold, y)) >= observed - 1e-12
    assert observed > 0.1
    assert 2 < reached < 16, "neither end of the scale: the test can tell a wrong p"
    compared = compare_counts(counts_of(A), counts_of(B), f1_of, seed=0)
    assert compared.difference == pytest.approx(observed)
    assert compared.p == pytest.approx(reached / 16, abs=3 * math.sqrt(0.25 / 10_000))
    assert compared.clusters == 4
    back = compare_counts(counts_of(B), counts_of(A), f1_of, seed=0)
    turned = near(-compared.difference, -compared.high, -compared.low)
    assert [back.difference, back.low, back.high] == turned
    gold = [1, 0, 1, 0]  # and where a system predicts nothing
    right, nothing = (counts_of(one, gold=gold, clusters=None) for one in (gold, [0] * 4))
    compared = compare_counts(right, nothing, f1_of, seed=0)
    assert (compared.difference, compared.low >= 0) == (1, True)  # draws without a match: 0 / 0 is 0


def test_score_of_one_seed_by_enumerated_clusters():
    # Draws are pp, pq, qp, qq, so the limits are the scores of p and of q alone.
    labels, predictions = [1, 1, 0, 1, 0, 0], [1, 1, 1, 1, 0, 1]
    counts = counts_of(predictions, gold=labels, clusters=list("pppqqq"))
    scores = count_scores(counts, DECISION_SCORES, seed=0)
    limits = {name: (score["low"], score["high"]) for name, score in scores.items()}
    expected = {
        "accuracy": (2 / 3, 2 / 3),
        "precision": (1 / 2, 2 / 3),
        "recall": (1, 1),
        "f1": (2 / 3, 4 / 5),
    }
    assert limits == {name: pytest.approx(of) for name, of in expected.items()}
    assert scores["f1"]["value"] == pytest.approx(2 * 3 / (5 + 3))
    assert (scores["f1"]["deviation"], scores["f1"]["seeds"]) == (None, 1)


def test_scores_and_tests_over_seeds_are_of_the_mean_score():
    seeds = counts_of(A, B)
    (score,) = count_scores(seeds, {"f1": f1_of}, seed=5).values()
    of_seeds = [f1_score(GOLD, A), f1_score(GOLD, B)]
    assert score["value"] == pytest.approx(np.mean(of_seeds))
    assert score["deviation"] == pytest.approx(np.std(of_seeds, ddof=1))
    rng = np.random.default_rng(5)
    chosen = [rng.integers(4, size=4) for _ in range(significance.RESAMPLES)]
    drawn = [np.mean([f1_of(one[rows].sum(axis=0)) for one in seeds]) for rows in chosen]
    assert (score["low"], score["high"]) == pytest.approx(tuple(np.percentile(drawn, [2.5, 97.5])))
    once, twice = (count_scores(counts_of(*of), {"f1": f1_of}, seed=5)["f1"] for of in ([A], [A, A]))
    assert [twice[key] for key in ("value", "low", "high")] == [once[key] for key in ("value", "low", "high")]
    compared = compare_counts(counts_of(A, A), seeds, f1_of, seed=0)
    assert compared.difference == pytest.approx(of_seeds[0] - np.mean(of_seeds))


def test_pairs_that_go_together_make_intervals_wider():
    # Forty clusters of nine pairs, all right or all wrong: forty observations, not 360.
    labels, right = np.tile([1, 0, 1], 120), np.repeat(np.arange(40) % 4 > 0, 9)
    predictions = np.where(right, labels, 1 - labels)
    alone, together = (
        count_scores(counts_of(predictions, gold=labels, clusters=clusters), DECISION_SCORES, seed=0)
        for clusters in (None, np.repeat(np.arange(40), 9).tolist())
    )
    for measure in ("accuracy", "f1"):
        narrow, wide = (one[measure]["high"] - one[measure]["low"] for one in (alone, together))
        assert wide / narrow == pytest.approx(3, rel=0.15)


# Three items in two clusters: with the first seed two are right, with the second one.
SEEDS, TWO = [np.array([1.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0])], ["a", "a", "b"]


def test_a_score_as_a_report_holds_it():
    of_three = {"value": 0.75, "low": 0.25, "high": 0.875, "deviation": 0.25, "seeds": 3}
    assert score_of_seeds([0.5, 1.0, 0.75], (0.25, 0.875)) == of_three  # of n - 1 = 2: (1/16 + 1/16 + 0) / 2
    assert score_of_seeds([0.5], (0.5, 0.5))["deviation"] is None
    # 0, 1, ..., 1000: the 2.5th and 97.5th percentiles are 25 and 975.
    assert significance.percentile_interval(np.arange(1001.0)[::-1]) == (25.0, 975.0)


def test_the_interval_draws_clusters_with_the_items_means():
    score = mean_score(SEEDS, TWO, seed=0)
    assert [score["value"], score["deviation"]] == near(1 / 2, np.std([2 / 3, 1 / 3], ddof=1))
    # a has 1 + 1/2 in 2 items, b 0 in 1; drawn are a twice, both, or b twice: 3/4, 1/2 or 0
    assert (score["low"], score["high"], score["seeds"]) == (0, 3 / 4, 2)
    ones, weights = np.ones(3), np.array([1.0, 3.0, 4.0])
    assert ratio_score([(values, ones) for values in SEEDS], TWO, seed=0) == pytest.approx(score)
    weighed = ratio_score([(values * weights, weights) for values in SEEDS], TWO, seed=0)
    assert weighed["value"] == pytest.approx((4 / 8 + 1 / 8) / 2)
    # a has 4 and 1 of 4, b 0 of 4
    assert (weighed["low"], weighed["high"]) == (0, pytest.approx((4 / 4 + 1 / 4) / 2))


def test_the_draws_have_a_seed():
    values = [np.random.default_rng(5).random(30)]
    first, again, other = (mean_score(values, range(30), seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert first["value"] == other["value"]
    assert first["low"] != other["low"]


def test_the_score_lies_in_its_interval_to_the_last_digit():
    for value, count in ((0.1, 6), (1 / 3, 7), (0.7, 10)):  # sums of these are not exact
        score = mean_score([np.full(count, value)] * 3, range(count), seed=0)
        assert score["low"] <= score["value"] <= score["high"]
        assert score["high"] == pytest.approx(score["low"])


def test_means_are_compared_with_clusters_as_the_unit():
    better = [np.ones(8), np.array([1.0] * 7 + [0.0])]
    compared = compare_means(better, [np.zeros(8)], [0, 0, 0, 0, 1, 1, 1, 1], seed=0)
    # 4/4 and 3.5/4: drawn are the first twice to the second twice
    assert [compared.difference, compared.low, compared.high] == near(15 / 16, 7 / 8, 1)
    # of four ways to swap two clusters, two leave a difference as large
    assert compared.p == pytest.approx(1 / 2, abs=0.03)
    assert compared.clusters == 2


def test_it_is_welchs_test():
    a, b = [0.80, 0.84, 0.79, 0.83, 0.84], [0.77, 0.79, 0.78, 0.75]
    means = [sum(one) / len(one) for one in (a, b)]
    errors = [  # the square of the standard error of each mean
        sum((x - mean) ** 2 for x in one) / (len(one) - 1) / len(one)
        for one, mean in zip((a, b), means, strict=True)
    ]
    statistic = (means[0] - means[1]) / math.sqrt(sum(errors))
    freedom = sum(errors) ** 2 / (errors[0] ** 2 / 4 + errors[1] ** 2 / 3)
    expected = 2 * t.sf(abs(statistic), df=freedom)
    for sides in ((a, b), (b, a), (a, sorted(b))):  # a seed has no partner
        assert t_test_of_seeds(*sides) == pytest.approx(expected)
    for nothing in (([0.5], [0.4]), ([0.5, 0.6], [0.4]), ([0.5, 0.5], [0.6, 0.6])):
        assert t_test_of_seeds(*nothing) is None


NO_SHAPE = "both must be (clusters, columns), not empty"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: holm([0.1, 1.2]), "p_values[1] is 1.2; a p-value lies in [0, 1]"),
        (lambda: holm([math.nan]), "p_values[0] is nan; a p-value lies in [0, 1]"),
        (lambda: compare([[1.0]], [[1.0], [2.0]], total), "has shape (1, 1) and counts_b (2, 1);"),
        (lambda: compare([1.0], [1.0], total), f"counts_a has shape (1,) and counts_b (1,); {NO_SHAPE}"),
        (lambda: compare(np.ones((0, 2)), np.ones((0, 2)), total), f"(0, 2) and counts_b (0, 2); {NO_SHAPE}"),
        (lambda: compare([[1.0], [2]], [[1.0], [math.inf]], total), "counts_b[1] is [inf]; counts must be"),
        (lambda: compare([[0.0, 0, 0]], [[0.0, 0, 0]], f1, n_resamples=9), "of some resample is not finite;"),
        (lambda: compare([[1.0]], [[1.0]], total, n_resamples=0), "n_resamples is 0; it must be at least 1"),
        (lambda: mean_score(SEEDS, TWO[:2], seed=0), "there are 3 items, but 2 clusters are named"),
        (lambda: match_counts([1, 0], [1, 0], clusters=["a"]), "there are 2 labels, but 1 clusters are"),
        (lambda: compare_means(SEEDS, SEEDS, ["a"] * 3, seed=0), "all pairs are of one cluster; an interval"),
    ],
)
def test_messages(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
