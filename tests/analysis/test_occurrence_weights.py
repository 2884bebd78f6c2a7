"""Attention weights by distance: worked quantiles, empty slots and buckets, and what is refused."""

import numpy as np
import pytest

from cdlm_lab.analysis.tf_idf import QUANTILES, BucketWeights, weights_by_distance


def test_worked_distribution():
    weights = np.array([[0.5, 0.3, 0.2], [1.0, 7.0, np.nan], [0.1, 0.9, 0.0]])
    buckets = np.array([[0, 4, 4], [0, -1, -1], [0, 4, -1]])
    near, far = weights_by_distance(weights, buckets)
    # near: 0.1, 0.5, 1.0; the 5% quantile lies a tenth of the way from the first to the second
    assert (near.bucket, near.count, near.mean) == (0, 3, pytest.approx(1.6 / 3))
    assert near.quantiles == pytest.approx((0.14, 0.3, 0.5, 0.75, 0.95))
    assert far == BucketWeights(bucket=4, count=3, mean=far.mean, quantiles=far.quantiles)
    assert far.mean == pytest.approx(1.4 / 3)
    assert far.quantiles == pytest.approx((0.21, 0.25, 0.3, 0.6, 0.84))


def test_every_occurrence_is_in_its_bucket():
    rng = np.random.default_rng(5)
    weights, buckets = rng.random((300, 7), dtype=np.float32), rng.integers(-1, 9, size=(300, 7))
    found = weights_by_distance(weights, buckets)
    assert [one.bucket for one in found] == list(range(9))
    for one in found:
        mine = sorted(weights[buckets == one.bucket].astype(float))
        assert one.count == len(mine)
        assert one.mean == pytest.approx(sum(mine) / len(mine))
        for share, quantile in zip(QUANTILES, one.quantiles, strict=True):
            assert sum(weight < quantile for weight in mine) <= share * len(mine) + 1
            assert sum(weight > quantile for weight in mine) <= (1 - share) * len(mine) + 1


def test_half_precision_may_round_above_one():
    (found,) = weights_by_distance(np.array([[1.0005]]), np.array([[0]]))
    assert found.count == 1


@pytest.mark.parametrize(
    ("weights", "buckets", "message"),
    [
        (np.ones((2, 3)), np.zeros((3, 2), int), r"\(2, 3\) and buckets \(3, 2\)"),
        (np.ones(2), np.zeros(2, int), r"both must be \(words, K\)"),
        (np.ones((1, 1)), np.zeros((1, 1)), "whole numbers"),
        (np.ones((1, 1)), np.array([[-2]]), "or -1 where there is no occurrence"),
        (np.ones((1, 2)), np.array([[-1, -1]]), "no word has an occurrence"),
        (np.ones((0, 2)), np.zeros((0, 2), int), "no word has an occurrence"),
        (np.array([[0.5, 1.5]]), np.array([[0, 1]]), r"weights\[0, 1\] is 1.5"),
        (np.array([[0.5], [np.nan]]), np.array([[0], [1]]), r"weights\[1, 0\] is nan"),
        (np.array([[-0.1]]), np.array([[0]]), "lies in"),
    ],
)
def test_refused(weights, buckets, message):
    with pytest.raises(ValueError, match=message):
        weights_by_distance(weights, buckets)
