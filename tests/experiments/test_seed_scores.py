"""Scores over seeds by hand: means, deviations, intervals and tests that draw clusters."""

import numpy as np
import pytest

from cdlm_lab.metrics.significance import compare_means, mean_score, ratio_score, score_of_seeds

# Three items in two clusters: with the first seed two are right, with the second one.
SEEDS = [np.array([1.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0])]
CLUSTERS = ["a", "a", "b"]


def test_a_score_as_a_report_holds_it() -> None:
    assert score_of_seeds([0.5, 1.0, 0.75], (0.25, 0.875)) == {
        "value": 0.75,
        "low": 0.25,
        "high": 0.875,
        "deviation": 0.25,  # of n - 1 = 2: (1/16 + 1/16 + 0) / 2
        "seeds": 3,
    }
    assert score_of_seeds([0.5], (0.5, 0.5))["deviation"] is None


def test_the_interval_draws_clusters_with_the_items_means() -> None:
    score = mean_score(SEEDS, CLUSTERS, seed=0)
    assert score["value"] == pytest.approx(1 / 2)
    assert score["deviation"] == pytest.approx(np.std([2 / 3, 1 / 3], ddof=1))
    assert score["seeds"] == 2
    # a has 1 + 1/2 in 2 items, b 0 in 1; drawn are a twice, both, or b twice: 3/4, 1/2 or 0
    assert (score["low"], score["high"]) == (0, 3 / 4)


def test_a_ratio_weighs_items_by_what_they_are_out_of() -> None:
    ones = np.ones(3)
    assert ratio_score([(values, ones) for values in SEEDS], CLUSTERS, seed=0) == pytest.approx(
        mean_score(SEEDS, CLUSTERS, seed=0)
    )
    weights = np.array([1.0, 3.0, 4.0])
    score = ratio_score([(values * weights, weights) for values in SEEDS], CLUSTERS, seed=0)
    assert score["value"] == pytest.approx((4 / 8 + 1 / 8) / 2)
    # a has 4 and 1 of 4, b 0 of 4
    assert (score["low"], score["high"]) == (0, pytest.approx((4 / 4 + 1 / 4) / 2))


def test_the_draws_have_a_seed() -> None:
    values = [np.random.default_rng(5).random(30)]
    first, again, other = (mean_score(values, range(30), seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert first["value"] == other["value"]
    assert first["low"] != other["low"]


def test_the_score_lies_in_its_interval_to_the_last_digit() -> None:
    for value, count in ((0.1, 6), (1 / 3, 7), (0.7, 10)):  # sums of these are not exact
        score = mean_score([np.full(count, value)] * 3, range(count), seed=0)
        assert score["low"] <= score["value"] <= score["high"]
        assert score["high"] == pytest.approx(score["low"])


def test_systems_are_compared_with_clusters_as_the_unit() -> None:
    clusters = [0, 0, 0, 0, 1, 1, 1, 1]
    better = [np.ones(8), np.array([1.0] * 7 + [0.0])]
    found = compare_means(better, [np.zeros(8)], clusters, seed=0)
    assert found.difference == pytest.approx(15 / 16)
    # 4/4 and 3.5/4: drawn are the first twice to the second twice
    assert (found.low, found.high) == (pytest.approx(7 / 8), 1)
    # of four ways to swap two clusters, two leave a difference as large
    assert found.p_permutation == pytest.approx(1 / 2, abs=0.03)
    assert found.clusters == 2


def test_clusters_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="there are 3 items, but 2 clusters are named"):
        mean_score(SEEDS, CLUSTERS[:2], seed=0)
    with pytest.raises(ValueError, match="of one cluster; an interval needs two"):
        compare_means(SEEDS, SEEDS, ["a"] * 3, seed=0)
