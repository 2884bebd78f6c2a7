"""Mean percentile rank: by hand and by enumeration, clusters as the unit, what is refused."""

import numpy as np
import pytest

from cdlm_lab.analysis.percentile_rank import (
    compare_percentile_ranks,
    mean_percentile_rank,
    rank_gap,
)

FOUR = np.array([60.0, 70, 80, 90])


def test_mean_is_over_pairs_and_the_interval_over_clusters():
    found = mean_percentile_rank([10, 20, 30, 80], clusters=["a", "a", "a", "b"])
    assert (found.mean, found.pairs, found.clusters) == (35, 4, 2)
    # of two clusters, draws are aa, ab, ba, bb: (10 + 20 + 30) / 3, 140 / 4 twice, 80
    assert (found.low, found.high) == (20, 80)


def test_without_clusters_each_pair_is_one():
    found = mean_percentile_rank(FOUR)
    assert found == mean_percentile_rank(FOUR, clusters=["d", "c", "b", "a"])
    assert found.clusters == 4
    assert 60 <= found.low < 75 < found.high <= 90


def test_pairs_that_go_together_make_the_interval_wider():
    """Ten topics of twenty pairs with one rank each are ten observations, not two hundred."""
    topics = np.repeat(np.arange(10), 20)
    ranks = np.linspace(40, 85, 10)[topics]
    alone, together = mean_percentile_rank(ranks), mean_percentile_rank(ranks, clusters=topics)
    assert alone.mean == together.mean == 62.5
    ratio = (together.high - together.low) / (alone.high - alone.low)
    assert ratio == pytest.approx(20**0.5, rel=0.1)


def test_difference_of_two_models_by_enumeration():
    # Differences 1, 2, 3, 4: of the 16 signings only all plus and all minus reach |10 / 4|, so p = 2/16.
    found = compare_percentile_ranks(FOUR, FOUR - [1, 2, 3, 4], n_resamples=40_000)
    assert found.difference == 2.5
    assert found.p == pytest.approx(2 / 16, abs=0.005)
    assert found.p_bootstrap == pytest.approx(2 / 40_001)  # no draw changes sides
    assert 1 <= found.low < 2.5 < found.high <= 4
    assert (found.pairs, found.clusters) == (4, 4)


def test_models_are_swapped_by_cluster():
    # Two clusters: signings ++ and -- reach the difference, +- and -+ do not, so p = 2/4; four pairs: 2/16.
    worse = FOUR - 5
    by_pair = compare_percentile_ranks(FOUR, worse, n_resamples=40_000)
    by_topic = compare_percentile_ranks(FOUR, worse, clusters=[("t", 1), ("t", 1), ("t", 2), ("t", 2)])
    assert by_pair.difference == by_topic.difference == 5
    assert by_pair.p == pytest.approx(2 / 16, abs=0.005)
    assert by_topic.p == pytest.approx(2 / 4, abs=0.02)


def test_a_model_does_not_differ_from_itself_and_order_turns_the_sign():
    same = compare_percentile_ranks(FOUR, FOUR)
    assert (same.difference, same.p, same.p_bootstrap) == (0, 1, 1)
    other = [66.0, 61, 83, 70]
    there, back = compare_percentile_ranks(FOUR, other), compare_percentile_ranks(other, FOUR)
    assert (there.difference, there.low, there.high) == pytest.approx(
        (-back.difference, -back.high, -back.low)
    )
    assert there == compare_percentile_ranks(FOUR, other), "the same seed gives the same numbers"


@pytest.mark.parametrize(
    ("ranks", "clusters", "message"),
    [
        ([], None, "must be \\(pairs,\\), not empty"),
        ([[1.0, 2.0]], None, "must be \\(pairs,\\)"),
        ([1, 101], None, r"ranks\[1\] is 101.0; a percentile rank lies in \[0, 100\]"),
        ([float("nan"), 1], None, r"ranks\[0\] is nan"),
        ([1, 2], ["a"], "there are 2 ranks, but 1 clusters are named"),
        ([1, 2], ["a", "a"], "all pairs are of one cluster"),
        ([1], None, "all pairs are of one cluster"),
    ],
)
def test_what_cannot_be_averaged_is_named(ranks, clusters, message):
    with pytest.raises(ValueError, match=message):
        mean_percentile_rank(ranks, clusters=clusters)


def test_numbers_of_resamples_and_shapes_are_checked():
    with pytest.raises(ValueError, match="n_resamples is 0"):
        mean_percentile_rank(FOUR, n_resamples=0)
    with pytest.raises(ValueError, match="n_resamples is 0"):
        compare_percentile_ranks(FOUR, FOUR, n_resamples=0)
    with pytest.raises(ValueError, match="ranks_a has shape"):
        compare_percentile_ranks(FOUR, FOUR[1:])


def test_the_gap_is_that_of_the_means_and_its_interval_draws_whole_clusters():
    # means 70 and 40; cluster a has a gap of 0 (60 - 60), b one of 60 (80 - 20)
    found = rank_gap([60, 80], [60, 20], positive_clusters=["a", "b"], negative_clusters=["a", "b"])
    assert (found.mean, found.pairs, found.clusters) == (30, 4, 2)
    assert (found.low, found.high) == (0, 60)  # drawn: a a, a b, b a, b b


def test_clusters_of_one_sort_only_and_another_order_change_nothing():
    rng = np.random.default_rng(0)
    positive, negative = rng.uniform(0, 100, 30), rng.uniform(0, 100, 20)
    first, second = [i % 5 for i in range(30)], [7 - i % 6 for i in range(20)]
    found = rank_gap(positive, negative, positive_clusters=first, negative_clusters=second)
    assert found.mean == pytest.approx(positive.mean() - negative.mean())
    assert found.clusters == 8  # 0 to 4 and 2 to 7
    assert found.low < found.mean < found.high
    turned = rank_gap(
        positive[::-1], negative[::-1], positive_clusters=first[::-1], negative_clusters=second[::-1]
    )
    assert turned.mean == pytest.approx(found.mean)
    assert turned.low == pytest.approx(found.low, abs=2)
