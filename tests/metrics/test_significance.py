"""Intervals and paired tests: enumeration, slow second definitions, invariants, error rates, messages."""

import math
import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t
from sklearn.metrics import f1_score

from cdlm_lab.metrics import significance
from cdlm_lab.metrics.counts import DECISION_SCORES, f1_of, match_counts
from cdlm_lab.metrics.significance import (
    compare,
    compare_counts,
    compare_means,
    compare_perplexities,
    count_scores,
    holm,
    mean_score,
    percentile_interval,
    perplexity,
    ratio_score,
    resampled_sums,
    row_blocks,
    score_of_seeds,
    t_test_of_seeds,
)

PAIRS = st.lists(
    st.tuples(st.floats(0, 9), st.floats(0, 9), st.integers(1, 30)), min_size=1, max_size=10
)  # mean loss of a, mean loss of b, tokens
# (loss, tokens) of a cluster; a mean loss of at most 20 nats keeps perplexities finite.
LOSSES = st.lists(
    st.tuples(st.floats(0, 20), st.integers(0, 50)).map(lambda pair: (pair[0] * pair[1], pair[1])),
    min_size=1,
    max_size=12,
).filter(lambda clusters: any(tokens for _, tokens in clusters))


def total(sums: np.ndarray) -> np.ndarray:
    """A statistic that is the sum itself."""
    return sums[..., 0]


def f1(sums: np.ndarray) -> np.ndarray:
    """From true positives, false positives, false negatives; nan where there are none."""
    return 2 * sums[..., 0] / (2 * sums[..., 0] + sums[..., 1] + sums[..., 2])


def column(*values: float) -> np.ndarray:
    return np.array(values, dtype=float)[:, None]


def losses(pairs) -> tuple[list[float], list[float], list[int]]:
    return [a * n for a, _, n in pairs], [b * n for _, b, n in pairs], [n for *_, n in pairs]


def test_blocks_cover_every_row_once():
    for rows, width in [(10, 3), (7, 1 << 21), (1, 1), (5, 0)]:
        blocks = list(row_blocks(rows, width=width))
        assert [row for block in blocks for row in range(block.start, block.stop)] == list(range(rows))
    assert len(list(row_blocks(7, width=1 << 21))) == 7  # one row at a time where not even one fits


def test_sums_are_those_of_a_loop_over_draws(monkeypatch):
    counts = np.array([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]])
    whole = resampled_sums(counts, n_resamples=50, rng=np.random.default_rng(3))
    rng = np.random.default_rng(3)
    slow = [[sum(column) for column in zip(*counts[rng.integers(3, size=3)], strict=True)] for _ in range(50)]
    assert whole.tolist() == slow
    monkeypatch.setattr(significance, "_NUMBERS_AT_ONCE", 6)  # two resamples at a time
    assert resampled_sums(counts, n_resamples=50, rng=np.random.default_rng(3)).tolist() == slow


def test_interval_of_hand_counted_values():
    # 0, 1, ..., 1000: the 2.5th and 97.5th percentiles are 25 and 975.
    assert percentile_interval(np.arange(1001.0)[::-1]) == (25.0, 975.0)


def test_permutation_p_by_enumeration():
    # Differences 1, 2, 3, 4: of the 16 signings only all plus and all minus reach |10|, so p = 2/16.
    found = compare(column(1, 2, 3, 4), column(0, 0, 0, 0), total, n_resamples=40_000)
    assert found.difference == 10
    # Three standard errors: 3 * sqrt(1/8 * 7/8 / 40000) = 0.005.
    assert found.p == pytest.approx(2 / 16, abs=0.005)


def test_permutation_of_a_ratio_by_enumeration():
    a = np.array([[8.0, 1, 1], [5, 2, 4], [1, 3, 0], [6, 0, 2], [9, 4, 4]])
    b = np.array([[6.0, 2, 3], [4, 2, 5], [2, 2, 1], [3, 3, 3], [9, 3, 5]])
    observed = abs(f1(a.sum(axis=0)) - f1(b.sum(axis=0)))
    reached = 0
    for swaps in product([False, True], repeat=5):
        swapped = np.array(swaps)[:, None]
        x, y = np.where(swapped, b, a), np.where(swapped, a, b)
        reached += abs(f1(x.sum(axis=0)) - f1(y.sum(axis=0))) >= observed - 1e-12
    found = compare(a, b, f1, n_resamples=40_000)
    assert found.p == pytest.approx(reached / 32, abs=3 * math.sqrt(0.25 / 40_000))
    assert 2 / 32 <= reached / 32 <= 0.5  # neither end of the scale: the test can tell a wrong p


def test_bootstrap_p_by_enumeration():
    # Differences 3 and -1: draws give 6, 2, 2, -2; one in four is at most 0, so p = 2 * 1/4.
    found = compare(column(3, 0), column(0, 1), total, n_resamples=40_000)
    assert found.difference == 2
    assert (found.low, found.high) == (-2, 6)
    assert found.p_bootstrap == pytest.approx(2 / 4, abs=2 * 3 * math.sqrt(0.25 * 0.75 / 40_000))


def test_bootstrap_equals_a_loop_over_resampled_indices():
    rng = np.random.default_rng(2)
    a, b = rng.integers(1, 20, size=(7, 3)).astype(float), rng.integers(1, 20, size=(7, 3)).astype(float)
    found = compare(a, b, f1, n_resamples=500, seed=9)
    draws = np.random.default_rng(9)
    slow = []
    for _ in range(500):
        index = draws.integers(7, size=7)
        slow.append(float(f1(a[index].sum(axis=0)) - f1(b[index].sum(axis=0))))
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(slow, [2.5, 97.5])))
    rarer = min(sum(d <= 0 for d in slow), sum(d >= 0 for d in slow))
    assert found.p_bootstrap == min(1, 2 * (rarer + 1) / 501)


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
        a, b = rng.normal(size=(2, 50, 1)) + 5
        found = compare(a, b, total, n_resamples=199, seed=seed)
        p.append((found.p, found.p_bootstrap))
    # 3 * sqrt(0.05 * 0.95 / 300) = 0.038 around 0.05.
    for rejected in (np.array(p) <= 0.05).mean(axis=0):
        assert 0.012 <= rejected <= 0.088


def test_worked_comparison_of_perplexities():
    # a: (1 + 6) / 4 nats a token, b: (2 + 8) / 4; difference -3/4.
    found = compare_perplexities([1.0, 6.0], [2.0, 8.0], [1, 3])
    assert found.difference == pytest.approx(-3 / 4)
    # Resamples: first twice (1 - 2) / 1 = -1, both -3/4, second twice (12 - 16) / 6 = -2/3.
    assert (found.low, found.high) == (pytest.approx(-1), pytest.approx(-2 / 3))
    assert found.clusters == 2
    # Swaps of two clusters: none and both reach 3/4; one alone gives (2 + 6 - 1 - 8) / 4 = -1/4 or 1/4.
    assert found.p == pytest.approx(1 / 2, abs=0.015)
    assert found.p_bootstrap == 2 / 10_001


def test_a_large_cluster_weighs_more_than_a_small_one():
    # By clusters a wins two of three; by tokens it loses.
    found = compare_perplexities([1.0, 1.0, 300.0], [2.0, 2.0, 200.0], [1, 1, 100])
    assert found.difference == pytest.approx(98 / 102)


@given(PAIRS)
def test_exchanging_the_models_turns_all_round(pairs):
    a, b, tokens = losses(pairs)
    there, back = (compare_perplexities(*x, tokens, n_resamples=99) for x in ((a, b), (b, a)))
    assert back.difference == pytest.approx(-there.difference)
    assert (back.low, back.high) == (pytest.approx(-there.high), pytest.approx(-there.low))
    assert back.p == there.p
    assert back.p_bootstrap == there.p_bootstrap


@given(PAIRS, st.integers(0, 4))
def test_clusters_without_tokens_change_nothing(pairs, empty):
    plain = compare_perplexities(*losses(pairs), n_resamples=99)
    assert plain == compare_perplexities(*losses([*pairs, *[(0.0, 0.0, 0)] * empty]), n_resamples=99)


@given(PAIRS)
def test_a_model_against_itself(pairs):
    a, _, tokens = losses(pairs)
    found = compare_perplexities(a, a, tokens, n_resamples=99)
    assert (found.difference, found.low, found.high) == (0, 0, 0)
    assert (found.p, found.p_bootstrap) == (1, 1)


# Seven pairs of documents in four clusters, and two systems.
GOLD, A, B = [1, 0, 1, 1, 0, 1, 0], [1, 0, 1, 0, 0, 1, 1], [0, 1, 1, 1, 0, 0, 1]
CLUSTERS = ["p", "p", "q", "r", "r", "s", "q"]
MEMBERS = [[i for i, cluster in enumerate(CLUSTERS) if cluster == name] for name in "pqrs"]


def counts_of(*seeds, gold=GOLD, clusters=CLUSTERS) -> list[np.ndarray]:
    return [match_counts(gold, predictions, clusters=clusters) for predictions in seeds]


def test_the_f1_of_decisions_is_compared_by_swapped_clusters():
    gold, a, b = np.array(GOLD), np.array(A), np.array(B)
    observed = f1_score(gold, a) - f1_score(gold, b)
    assert observed > 0.1
    reached = 0
    for swaps in product([False, True], repeat=4):
        swapped = np.array([swaps["pqrs".index(cluster)] for cluster in CLUSTERS])
        x, y = np.where(swapped, b, a), np.where(swapped, a, b)
        reached += abs(f1_score(gold, x) - f1_score(gold, y)) >= observed - 1e-12
    assert 2 < reached < 16, "neither end of the scale: the test can tell a wrong p"
    found = compare_counts(counts_of(A), counts_of(B), f1_of, seed=0)
    assert found.difference == pytest.approx(observed)
    assert found.p == pytest.approx(reached / 16, abs=3 * math.sqrt(0.25 / 10_000))
    assert found.clusters == 4
    back = compare_counts(counts_of(B), counts_of(A), f1_of, seed=0)
    assert (back.difference, back.low, back.high) == pytest.approx(
        (-found.difference, -found.high, -found.low)
    )


def test_f1_is_compared_even_where_a_system_predicts_nothing():
    gold = [1, 0, 1, 0]
    right, nothing = counts_of(gold, gold=gold, clusters=None), counts_of([0] * 4, gold=gold, clusters=None)
    found = compare_counts(right, nothing, f1_of, seed=0)
    assert found.difference == 1
    assert found.low >= 0  # draws without a match: 0 / 0 is 0 on both sides


def test_score_of_one_seed_by_enumerated_clusters():
    # Draws are pp, pq, qp, qq, so the limits are the scores of p and of q alone.
    labels, predictions = [1, 1, 0, 1, 0, 0], [1, 1, 1, 1, 0, 1]
    scores = count_scores(
        counts_of(predictions, gold=labels, clusters=list("pppqqq")), DECISION_SCORES, seed=0
    )
    limits = {name: (score["low"], score["high"]) for name, score in scores.items()}
    assert limits["accuracy"] == pytest.approx((2 / 3, 2 / 3))
    assert limits["precision"] == pytest.approx((1 / 2, 2 / 3))
    assert limits["recall"] == (1, 1)
    assert limits["f1"] == pytest.approx((2 / 3, 4 / 5))
    assert scores["f1"]["value"] == pytest.approx(2 * 3 / (5 + 3))
    assert (scores["f1"]["deviation"], scores["f1"]["seeds"]) == (None, 1)


def test_scores_and_tests_over_seeds_are_of_the_mean_score():
    seeds = counts_of(A, B)
    (score,) = count_scores(seeds, {"f1": f1_of}, seed=5).values()
    of_seeds = [f1_score(GOLD, A), f1_score(GOLD, B)]
    assert score["value"] == pytest.approx(np.mean(of_seeds))
    assert score["deviation"] == pytest.approx(np.std(of_seeds, ddof=1))
    rng = np.random.default_rng(5)
    drawn = []
    for _ in range(significance.RESAMPLES):
        chosen = rng.integers(4, size=4)
        drawn.append(np.mean([f1_of(one[chosen].sum(axis=0)) for one in seeds]))
    assert (score["low"], score["high"]) == pytest.approx(tuple(np.percentile(drawn, [2.5, 97.5])))
    twice = count_scores(counts_of(A, A), {"f1": f1_of}, seed=5)["f1"]
    once = count_scores(counts_of(A), {"f1": f1_of}, seed=5)["f1"]
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
    assert score_of_seeds([0.5, 1.0, 0.75], (0.25, 0.875)) == {
        "value": 0.75,
        "low": 0.25,
        "high": 0.875,
        "deviation": 0.25,  # of n - 1 = 2: (1/16 + 1/16 + 0) / 2
        "seeds": 3,
    }
    assert score_of_seeds([0.5], (0.5, 0.5))["deviation"] is None


def test_the_interval_draws_clusters_with_the_items_means():
    score = mean_score(SEEDS, TWO, seed=0)
    assert score["value"] == pytest.approx(1 / 2)
    assert score["deviation"] == pytest.approx(np.std([2 / 3, 1 / 3], ddof=1))
    assert score["seeds"] == 2
    # a has 1 + 1/2 in 2 items, b 0 in 1; drawn are a twice, both, or b twice: 3/4, 1/2 or 0
    assert (score["low"], score["high"]) == (0, 3 / 4)


def test_a_ratio_weighs_items_by_what_they_are_out_of():
    ones, weights = np.ones(3), np.array([1.0, 3.0, 4.0])
    alike = ratio_score([(values, ones) for values in SEEDS], TWO, seed=0)
    assert alike == pytest.approx(mean_score(SEEDS, TWO, seed=0))
    score = ratio_score([(values * weights, weights) for values in SEEDS], TWO, seed=0)
    assert score["value"] == pytest.approx((4 / 8 + 1 / 8) / 2)
    # a has 4 and 1 of 4, b 0 of 4
    assert (score["low"], score["high"]) == (0, pytest.approx((4 / 4 + 1 / 4) / 2))


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
    found = compare_means(better, [np.zeros(8)], [0, 0, 0, 0, 1, 1, 1, 1], seed=0)
    assert found.difference == pytest.approx(15 / 16)
    # 4/4 and 3.5/4: drawn are the first twice to the second twice
    assert (found.low, found.high) == (pytest.approx(7 / 8), 1)
    # of four ways to swap two clusters, two leave a difference as large
    assert found.p == pytest.approx(1 / 2, abs=0.03)
    assert found.clusters == 2


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
    assert t_test_of_seeds(a, b) == pytest.approx(expected)
    assert t_test_of_seeds(b, a) == pytest.approx(expected)
    assert t_test_of_seeds(a, sorted(b)) == pytest.approx(expected), "a seed has no partner"


@pytest.mark.parametrize(("a", "b"), [([0.5], [0.4]), ([0.5, 0.6], [0.4]), ([0.5, 0.5], [0.6, 0.6])])
def test_a_single_seed_or_no_variation_says_nothing(a: list[float], b: list[float]):
    assert t_test_of_seeds(a, b) is None


def perplexity_of(clusters, **settings):
    return perplexity(*zip(*clusters, strict=True), **{"n_resamples": 200, **settings})


def test_worked_perplexity():
    # Tokens with probabilities 1/2 1/2 | 1/8 | 1/8: the product is (1/2)^8, so perplexity (2^8)^(1/4) = 4.
    # The mean of the clusters' perplexities, (2 + 8 + 8) / 3 = 6, and exp of the mean of their mean losses,
    # 2^((1 + 3 + 3) / 3) = 5.04, are something else.
    found = perplexity([2 * math.log(2), math.log(8), math.log(8)], [2, 1, 1])
    assert found.value == pytest.approx(4)
    assert (found.clusters, found.tokens) == (3, 4)
    # Resamples of three clusters range from all of the first (2) to none of it (8), which comes with a chance
    # of (1/3)^3 = 3.7% and (2/3)^3 = 29.6%, both above 2.5%.
    assert (found.low, found.high) == (pytest.approx(2), pytest.approx(8))


def test_interval_of_a_perplexity_by_enumeration():
    # Both, each twice: draws (1,1), (1,2), (2,1), (2,2) with means 1, 2, 2, 3 nats, a quarter each.
    found = perplexity([1.0, 3.0], [1, 1])
    assert (found.low, found.value, found.high) == tuple(pytest.approx(math.exp(x)) for x in (1, 2, 3))


def test_the_interval_of_a_perplexity_covers_the_truth_about_95_times_in_100():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        tokens = rng.integers(20, 60, size=60)
        loss = rng.gamma(4, 0.5, size=60) * tokens  # mean loss 4 * 0.5 = 2 nats, independent of the tokens
        found = perplexity(loss, tokens, n_resamples=400)
        covered += found.low <= math.exp(2) <= found.high
    # A binomial share of 0.95 in 400 lies within 3 * sqrt(0.95 * 0.05 / 400) = 0.033; percentile intervals of
    # 60 skewed clusters fall a little short of it.
    assert 0.90 <= covered / 400 <= 0.985


def test_the_interval_of_a_perplexity_equals_a_loop_over_resamples():
    loss, tokens = np.array([3.0, 8.0, 1.0, 9.0]), np.array([2, 5, 3, 4])
    rng = np.random.default_rng(11)
    means = []
    for _ in range(300):
        drawn = [int(index) for index in rng.integers(4, size=4)]
        means.append(sum(loss[i] for i in drawn) / sum(tokens[i] for i in drawn))
    found = perplexity(loss, tokens, n_resamples=300, seed=11)
    assert found.low == pytest.approx(math.exp(np.percentile(means, 2.5)))
    assert found.high == pytest.approx(math.exp(np.percentile(means, 97.5)))


@given(LOSSES)
def test_value_lies_between_the_clusters_and_within_its_interval_scale(clusters):
    found = perplexity_of(clusters)
    each = [math.exp(loss / tokens) for loss, tokens in clusters if tokens]
    slack = 1 + 1e-9
    assert min(each) / slack <= found.low <= found.high * slack
    assert found.high <= max(each) * slack
    assert min(each) / slack <= found.value <= max(each) * slack
    assert found.clusters == len(each)


@given(LOSSES, st.integers(0, 3), st.integers(0, 5))
def test_clusters_without_tokens_change_no_perplexity(clusters, empty, place):
    place = min(place, len(clusters))
    assert perplexity_of(clusters) == perplexity_of(
        [*clusters[:place], *[(0.0, 0)] * empty, *clusters[place:]]
    )


@given(LOSSES, st.floats(0, 5))
def test_a_loss_added_to_every_token_multiplies_all_by_its_exponential(clusters, more):
    before, after = (
        perplexity_of(clusters),
        perplexity_of([(loss + more * tokens, tokens) for loss, tokens in clusters]),
    )
    for name in ("value", "low", "high"):
        assert getattr(after, name) == pytest.approx(getattr(before, name) * math.exp(more))


@given(LOSSES, st.randoms(use_true_random=False))
def test_order_changes_no_perplexity(clusters, random):
    shuffled = random.sample(clusters, len(clusters))
    assert perplexity_of(shuffled).value == pytest.approx(perplexity_of(clusters).value)


def test_the_same_seed_gives_the_same_interval_of_a_perplexity():
    first, again, other = (
        perplexity([3.0, 8.0, 1.0, 9.0, 2.0], [2, 5, 3, 4, 2], seed=seed, n_resamples=99)
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_limits_of_perplexity():
    certain = perplexity([0.0, 0.0], [3, 4])
    assert (certain.low, certain.value, certain.high) == (1, 1, 1)
    guess = perplexity([7 * math.log(100)], [7])  # a uniform guess over 100 words, one cluster
    assert (guess.low, guess.value, guess.high) == (pytest.approx(100),) * 3
    assert perplexity([2000.0], [1]).value == math.inf  # beyond a float, without a warning


def test_holm_worked():
    # 3 * 0.01, 2 * 0.02 and 1 * 0.03, which may not fall below the one before it.
    assert holm([0.02, 0.03, 0.01]) == pytest.approx([0.04, 0.04, 0.03])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([0.01, 0.01]) == pytest.approx([0.02, 0.02])
    assert holm([]) == []


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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: holm([0.1, 1.2]), "p_values[1] is 1.2; a p-value lies in [0, 1]"),
        (lambda: holm([math.nan]), "p_values[0] is nan; a p-value lies in [0, 1]"),
        (
            lambda: compare([[1.0]], [[1.0], [2.0]], total),
            "counts_a has shape (1, 1) and counts_b (2, 1); both must be (clusters, columns), not empty",
        ),
        (
            lambda: compare([1.0], [1.0], total),
            "counts_a has shape (1,) and counts_b (1,); both must be (clusters, columns), not empty",
        ),
        (
            lambda: compare(np.ones((0, 2)), np.ones((0, 2)), total),
            "counts_a has shape (0, 2) and counts_b (0, 2); both must be (clusters, columns), not empty",
        ),
        (
            lambda: compare([[1.0], [2.0]], [[1.0], [math.inf]], total),
            "counts_b[1] is [inf]; counts must be finite",
        ),
        (
            lambda: compare([[0.0, 0, 0], [1, 0, 0]], [[0.0, 0, 0], [1, 0, 0]], f1, n_resamples=99),
            "the statistic of some resample is not finite; leave out clusters with nothing to score, "
            "or define the statistic where its denominator is 0",
        ),
        (
            lambda: compare([[1.0]], [[1.0]], total, n_resamples=0),
            "n_resamples is 0; it must be at least 1",
        ),
        (
            lambda: compare_perplexities([1.0], [-1.0], [1]),
            "loss_b[0] is -1.0; a loss must be finite and not negative",
        ),
        (
            lambda: compare_perplexities([1.0, 2.0], [1.0], [1, 1]),
            "loss_b has shape (1,) and token_counts (2,); both must be (clusters,)",
        ),
        (
            lambda: perplexity([1.0, 2.0], [1]),
            "loss_sums has shape (2,) and token_counts (1,); both must be (clusters,)",
        ),
        (
            lambda: perplexity([[1.0]], [[1]]),
            "loss_sums has shape (1, 1) and token_counts (1, 1); both must be (clusters,)",
        ),
        (
            lambda: perplexity([1.0, math.nan], [1, 1]),
            "loss_sums[1] is nan; a loss must be finite and not negative",
        ),
        (
            lambda: perplexity([1.0, math.inf], [1, 1]),
            "loss_sums[1] is inf; a loss must be finite and not negative",
        ),
        (
            lambda: perplexity([-0.5, 1.0], [1, 1]),
            "loss_sums[0] is -0.5; a loss must be finite and not negative",
        ),
        (
            lambda: perplexity([1.0, 1.0], [1, -1]),
            "token_counts[1] is -1.0; a count must be whole and not negative",
        ),
        (
            lambda: perplexity([1.0, 1.0], [1, 1.5]),
            "token_counts[1] is 1.5; a count must be whole and not negative",
        ),
        (
            lambda: perplexity([1.0, 1.0], [1, math.nan]),
            "token_counts[1] is nan; a count must be whole and not negative",
        ),
        (
            lambda: perplexity([1.0, 1.0], [1, 0]),
            "loss_sums[1] is 1.0, but token_counts says that no token was predicted",
        ),
        (lambda: perplexity([0.0], [0]), "no cluster has a predicted token; perplexity needs at least one"),
        (lambda: perplexity([], []), "no cluster has a predicted token; perplexity needs at least one"),
        (
            lambda: perplexity([1.0], [1], n_resamples=0),
            "n_resamples is 0; it must be at least 1",
        ),
        (lambda: mean_score(SEEDS, TWO[:2], seed=0), "there are 3 items, but 2 clusters are named"),
        (
            lambda: match_counts([1, 0], [1, 0], clusters=["a"]),
            "there are 2 labels, but 1 clusters are named",
        ),
        (
            lambda: compare_means(SEEDS, SEEDS, ["a"] * 3, seed=0),
            "all pairs are of one cluster; an interval needs two, and better twenty",
        ),
    ],
)
def test_messages(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()
