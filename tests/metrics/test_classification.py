"""Document matching: worked fractions, loops as second definitions, enumerated tests, clusters, messages."""

import math
import re
from dataclasses import astuple
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score

from cdlm_lab.metrics.counts import binary_intervals, binary_scores, compare_binary

PAIRS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=12)

# True positive 1, false negatives 2, false positive 1, true negatives 3.
LABELS, PREDICTIONS = [1, 1, 1, 0, 0, 0, 0], [1, 0, 0, 1, 0, 0, 0]

# Seven pairs in four clusters, and two systems.
GOLD, A, B = [1, 0, 1, 1, 0, 1, 0], [1, 0, 1, 0, 0, 1, 1], [0, 1, 1, 1, 0, 0, 1]
CLUSTERS = ["p", "p", "q", "r", "r", "s", "q"]


def slow_scores(labels, predictions) -> list[float]:
    """Accuracy, precision, recall, F1: pair by pair."""
    right = both = predicted = relevant = 0
    for label, prediction in zip(labels, predictions, strict=True):
        right += label == prediction
        both += label == 1 and prediction == 1
        predicted += prediction == 1
        relevant += label == 1
    precision = Fraction(both, predicted) if predicted else Fraction(0)
    recall = Fraction(both, relevant) if relevant else Fraction(0)
    f1 = 2 * precision * recall / (precision + recall) if both else Fraction(0)
    return [float(x) for x in (Fraction(right, len(labels)), precision, recall, f1)]


def test_worked_example():
    found = binary_scores(LABELS, PREDICTIONS)
    assert (found.accuracy, found.precision, found.recall, found.f1, found.pairs) == pytest.approx(
        (4 / 7, 1 / 2, 1 / 3, 2 / 5, 7)
    )
    turned = binary_scores(PREDICTIONS, LABELS)  # gold and system are not the same
    assert (turned.precision, turned.recall) == pytest.approx((1 / 3, 1 / 2))


@given(PAIRS)
def test_scores_equal_a_loop_over_pairs(pairs):
    labels, predictions = zip(*pairs, strict=True)
    for kind in (int, bool, float):
        found = binary_scores(np.array(labels, dtype=kind), np.array(predictions, dtype=kind))
        assert astuple(found) == pytest.approx((*slow_scores(labels, predictions), len(pairs)))


@given(PAIRS, st.randoms(use_true_random=False))
def test_order_is_inert(pairs, random):
    shuffled = random.sample(pairs, len(pairs))
    assert binary_scores(*zip(*shuffled, strict=True)) == binary_scores(*zip(*pairs, strict=True))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("labels", "predictions", "expected"),
    [
        ([0, 0], [0, 0], (1, 0, 0, 0)),  # right about everything, and yet no match to find
        ([1, 1], [1, 1], (1, 1, 1, 1)),
        ([1, 1], [0, 0], (0, 0, 0, 0)),
        ([0, 0], [0, 1], (1 / 2, 0, 0, 0)),
        ([1], [1], (1, 1, 1, 1)),
    ],
)
def test_one_class_alone_is_scored_and_nothing_over_nothing_is_0(labels, predictions, expected):
    assert astuple(binary_scores(labels, predictions)) == (*expected, len(labels))
    twice = binary_intervals(labels * 2, predictions * 2, clusters=[0] * len(labels) + [1] * len(labels))
    assert astuple(twice)[:4] == tuple((score, score) for score in expected)


def test_interval_of_two_clusters_by_enumeration():
    # Draws are pp, pq, qp, qq, so the limits are the scores of p and of q alone.
    labels, predictions = [1, 1, 0, 1, 0, 0], [1, 1, 1, 1, 0, 1]
    found = binary_intervals(labels, predictions, clusters=["p", "p", "p", "q", "q", "q"])
    p, q = slow_scores(labels[:3], predictions[:3]), slow_scores(labels[3:], predictions[3:])
    assert p == pytest.approx([2 / 3, 2 / 3, 1, 4 / 5])
    assert q == pytest.approx([2 / 3, 1 / 2, 1, 2 / 3])
    assert found.accuracy == pytest.approx((2 / 3, 2 / 3))
    assert found.precision == pytest.approx((1 / 2, 2 / 3))
    assert found.recall == (1, 1)
    assert found.f1 == pytest.approx((2 / 3, 4 / 5))
    assert (found.pairs, found.clusters) == (6, 2)


def test_intervals_equal_a_loop_over_drawn_clusters():
    members = [[i for i, cluster in enumerate(CLUSTERS) if cluster == name] for name in "pqrs"]
    rng = np.random.default_rng(5)
    drawn = []
    for _ in range(300):
        pairs = [i for cluster in rng.integers(4, size=4) for i in members[cluster]]
        gold, predicted = np.array(GOLD)[pairs], np.array(A)[pairs]
        scores = [accuracy_score(gold, predicted)]
        scores += [of(gold, predicted, zero_division=0) for of in (precision_score, recall_score, f1_score)]
        drawn.append(scores)
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    found = binary_intervals(GOLD, A, clusters=CLUSTERS, n_resamples=300, seed=5)
    for place, interval in enumerate((found.accuracy, found.precision, found.recall, found.f1)):
        assert interval == pytest.approx((low[place], high[place]))
        assert interval[0] < interval[1]


def test_without_clusters_each_pair_is_one():
    alone = binary_intervals(GOLD, A, n_resamples=200)
    assert alone == binary_intervals(GOLD, A, clusters=list("gfedcba"), n_resamples=200)
    assert (alone.pairs, alone.clusters) == (7, 7)
    assert alone != binary_intervals(GOLD, A, n_resamples=200, seed=1)


def test_pairs_that_go_together_make_intervals_wider():
    # Forty clusters of nine pairs, all right or all wrong: forty observations, not 360.
    labels, right = np.tile([1, 0, 1], 120), np.repeat(np.arange(40) % 4 > 0, 9)
    predictions = np.where(right, labels, 1 - labels)
    alone = binary_intervals(labels, predictions)
    together = binary_intervals(labels, predictions, clusters=np.repeat(np.arange(40), 9))
    for measure in ("accuracy", "f1"):
        (low, high), (lowest, highest) = getattr(alone, measure), getattr(together, measure)
        assert (highest - lowest) / (high - low) == pytest.approx(3, rel=0.15)


@pytest.mark.parametrize(("measure", "score"), [("accuracy", accuracy_score), ("f1", f1_score)])
def test_comparison_by_enumeration_of_swapped_clusters(measure, score):
    gold, a, b = np.array(GOLD), np.array(A), np.array(B)
    observed = score(gold, a) - score(gold, b)
    assert observed > 0.1
    reached = 0
    for swaps in product([False, True], repeat=4):
        swapped = np.array([swaps["pqrs".index(cluster)] for cluster in CLUSTERS])
        x, y = np.where(swapped, b, a), np.where(swapped, a, b)
        reached += abs(score(gold, x) - score(gold, y)) >= observed - 1e-12
    assert 2 < reached < 16, "neither end of the scale: the test can tell a wrong p"
    found = compare_binary(GOLD, A, B, measure=measure, clusters=CLUSTERS, n_resamples=40_000)
    assert found.difference == pytest.approx(observed)
    assert found.p_permutation == pytest.approx(reached / 16, abs=3 * math.sqrt(0.25 / 40_000))
    assert (found.measure, found.pairs, found.clusters) == (measure, 7, 4)


@pytest.mark.parametrize(("measure", "score"), [("accuracy", accuracy_score), ("f1", f1_score)])
def test_bootstrap_equals_a_loop_that_draws_the_same_clusters_for_both(measure, score):
    members = [[i for i, cluster in enumerate(CLUSTERS) if cluster == name] for name in "pqrs"]
    gold, a, b = np.array(GOLD), np.array(A), np.array(B)
    rng = np.random.default_rng(8)
    slow = []
    for _ in range(300):
        pairs = [i for cluster in rng.integers(4, size=4) for i in members[cluster]]
        slow.append(score(gold[pairs], a[pairs]) - score(gold[pairs], b[pairs]))
    found = compare_binary(GOLD, A, B, measure=measure, clusters=CLUSTERS, n_resamples=300, seed=8)
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(slow, [2.5, 97.5])))
    rarer = min(sum(d <= 1e-12 for d in slow), sum(d >= -1e-12 for d in slow))
    assert found.p_bootstrap == pytest.approx(min(1, 2 * (rarer + 1) / 301))


def test_systems_are_swapped_by_cluster():
    # a is right four times, b never. Only all or none swapped reach the difference: 2/16, by cluster 2/4.
    gold, right, wrong = [1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]
    by_pair = compare_binary(gold, right, wrong, n_resamples=40_000)
    by_cluster = compare_binary(gold, right, wrong, clusters=[("c", 1), ("c", 2)] * 2, n_resamples=40_000)
    assert by_pair.difference == by_cluster.difference == 1
    assert by_pair.p_permutation == pytest.approx(2 / 16, abs=0.005)
    assert by_cluster.p_permutation == pytest.approx(2 / 4, abs=0.0075)


@pytest.mark.parametrize("measure", ["accuracy", "f1"])
def test_a_system_does_not_differ_from_itself_and_order_turns_the_sign(measure):
    same = compare_binary(GOLD, A, A, measure=measure, n_resamples=99)
    assert (same.difference, same.low, same.high, same.p_permutation, same.p_bootstrap) == (0, 0, 0, 1, 1)
    there, back = (compare_binary(GOLD, *two, measure=measure, n_resamples=500) for two in ((A, B), (B, A)))
    assert (there.difference, there.low, there.high) == pytest.approx(
        (-back.difference, -back.high, -back.low)
    )
    assert (there.p_permutation, there.p_bootstrap) == (back.p_permutation, back.p_bootstrap)


def test_f1_is_compared_even_where_a_system_finds_nothing():
    found = compare_binary([1, 0, 1, 0], [1, 0, 1, 0], [0, 0, 0, 0], measure="f1", n_resamples=200)
    assert found.difference == 1
    assert found.low >= 0  # draws without a match: 0 / 0 is 0 on both sides


@pytest.mark.parametrize(
    ("labels", "predictions", "message"),
    [
        ([], [], "labels has shape (0,); it must be (pairs,), not empty"),
        ([[1]], [[1]], "labels has shape (1, 1); it must be (pairs,), not empty"),
        ([1], [], "predictions has shape (0,); it must be (pairs,), not empty"),
        ([1, 0], [1], "there are 2 labels, but 1 predictions"),
        ([1, 2], [1, 0], "labels[1] is 2; it must be 0 or 1 (1 = match)"),
        ([1, 0], [-1, 0], "predictions[0] is -1; it must be 0 or 1 (1 = match)"),
        ([1, 0], [1, 0.7], "predictions[1] is 0.7; it must be 0 or 1 (1 = match)"),
        ([1, math.nan], [1, 0], "labels[1] is nan; it must be 0 or 1 (1 = match)"),
        ([1, None], [1, 0], "labels[1] is None; it must be 0 or 1 (1 = match)"),
        (["1", "0"], [1, 0], "labels[0] is '1'; it must be 0 or 1 (1 = match)"),
    ],
)
@pytest.mark.parametrize("function", [binary_scores, binary_intervals])
def test_messages(function, labels, predictions, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        function(labels, predictions)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"clusters": ["a"]}, "there are 7 labels, but 1 clusters are named"),
        ({"clusters": ["a"] * 7}, "all pairs are of one cluster; an interval needs two, and better twenty"),
        ({"n_resamples": 0}, "n_resamples is 0; it must be at least 1 (10,000 is usual)"),
    ],
)
def test_messages_about_clusters_and_resamples(settings, message):
    for function, systems in ((binary_intervals, [A]), (compare_binary, [A, B])):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            function(GOLD, *systems, **settings)


def test_messages_of_the_comparison():
    with pytest.raises(ValueError, match=r"^unknown measure 'recall'; choose one of accuracy, f1$"):
        compare_binary(GOLD, A, B, measure="recall")
    with pytest.raises(ValueError, match=r"^there are 7 labels, but 6 predictions_b$"):
        compare_binary(GOLD, A, B[1:])
    with pytest.raises(ValueError, match=r"^predictions_a\[0\] is 3; it must be 0 or 1 \(1 = match\)$"):
        compare_binary(GOLD, [3, *A[1:]], B)


def test_intervals_and_tests_over_seeds_are_of_the_mean_score() -> None:
    rng = np.random.default_rng(5)
    labels = rng.random(60) < 0.5
    seeds = np.stack([rng.random(60) < 0.3, labels ^ (rng.random(60) < 0.2)])
    clusters = [number // 3 for number in range(60)]
    one = binary_intervals(labels, seeds[1], clusters=clusters)
    assert binary_intervals(labels, seeds[[1, 1]], clusters=clusters) == one  # twice the same model
    mean = np.mean([binary_scores(labels, each).f1 for each in seeds])
    both = binary_intervals(labels, seeds, clusters=clusters)
    assert both.f1[0] < mean < both.f1[1]
    assert both.pairs == 60
    compared = compare_binary(labels, seeds[[1, 1]], seeds, measure="f1", clusters=clusters)
    assert compared.difference == pytest.approx(binary_scores(labels, seeds[1]).f1 - mean)
    # a slow second definition: draw clusters, score each seed, take the mean
    found = []
    generator = np.random.default_rng(1)
    for _ in range(3_000):
        drawn = np.concatenate([3 * c + np.arange(3) for c in generator.integers(20, size=20)])
        found.append(np.mean([slow_scores(labels[drawn], each[drawn])[3] for each in seeds]))
    assert both.f1 == pytest.approx(tuple(np.quantile(found, (0.025, 0.975))), abs=0.015)
