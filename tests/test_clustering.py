"""From pair scores to clusters: the matrix, scikit-learn's clusters, the tree that gives the same, the choice
of a threshold."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.clustering import (
    LINKAGES,
    best_threshold,
    cluster_mentions,
    clusters_of,
    labels_at,
    merge_tree,
    square_scores,
)


def matrix(mentions, scores):
    """{(i, j): score}, all other pairs 0, as a symmetric matrix."""
    square = np.zeros((mentions, mentions))
    for (i, j), score in scores.items():
        square[i, j] = square[j, i] = score
    return square


@st.composite
def score_matrices(draw, least=2, most=9, ties=True):
    mentions = draw(st.integers(least, most))
    count = mentions * (mentions - 1) // 2
    if ties:
        values = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]) | st.floats(0, 1)
        scores = draw(st.lists(values, min_size=count, max_size=count))
    else:  # of distinct powers of two, no two averages are equal
        scores = [2.0**-k for k in draw(st.permutations(range(1, count + 1)))]
    return matrix(mentions, dict(zip(combinations(range(mentions), 2), scores, strict=True)))


def slow_average_linkage(square, threshold):
    """Join the two clusters of the highest average score while it is above the threshold."""
    clusters = [[i] for i in range(len(square))]
    while len(clusters) > 1:
        highest, a, b = max(
            (square[np.ix_(clusters[a], clusters[b])].mean(), a, b)
            for a, b in combinations(range(len(clusters)), 2)
        )
        if highest <= threshold:
            break
        clusters[a] += clusters.pop(b)
    return {frozenset(cluster) for cluster in clusters}


def partition(labels):
    return {frozenset(cluster) for cluster in clusters_of(range(len(labels)), labels)}


# ---- clustering

THREE = matrix(4, {(0, 2): 0.9, (0, 3): 0.6, (2, 3): 0.3, (1, 3): 0.2})


@pytest.mark.parametrize(
    ("threshold", "labels"),
    # 0-2 joins at 0.9; 3 joins them at (0.6 + 0.3) / 2 = 0.45; 1 joins all at 0.2 / 3
    [(0.95, [0, 1, 2, 3]), (0.5, [0, 1, 0, 2]), (0.44, [0, 1, 0, 0]), (0.07, [0, 1, 0, 0]), (0.06, [0] * 4)],
)
def test_average_linkage_by_hand(threshold, labels):
    assert cluster_mentions(THREE, threshold=threshold).tolist() == labels
    assert labels_at(merge_tree(THREE), threshold).tolist() == labels


def test_the_tree_by_hand():
    assert merge_tree(THREE) == pytest.approx(
        np.array([[0, 2, 0.1, 2], [3, 4, 0.55, 3], [1, 5, 1 - 0.2 / 3, 4]])
    )


def test_other_linkages_by_hand():
    assert cluster_mentions(THREE, threshold=0.5, linkage="single").tolist() == [0, 1, 0, 0]
    assert cluster_mentions(THREE, threshold=0.35, linkage="complete").tolist() == [0, 1, 0, 2]
    assert cluster_mentions(THREE, threshold=0.25, linkage="complete").tolist() == [0, 1, 0, 0]


@given(square=score_matrices(ties=False), threshold=st.floats(0, 1))
def test_clusters_equal_the_slow_definition(square, threshold):
    assert partition(cluster_mentions(square, threshold=threshold)) == slow_average_linkage(square, threshold)


@given(
    square=score_matrices(),
    thresholds=st.lists(st.floats(0, 1), max_size=4),
    linkage=st.sampled_from(LINKAGES),
)
def test_one_tree_gives_the_clusters_of_every_threshold(square, thresholds, linkage):
    tree = merge_tree(square, linkage=linkage)
    at_the_joints = [float(1 - height) for height in tree[:, 2]]
    for threshold in [0.0, 0.5, 1.0, *thresholds, *at_the_joints]:
        expected = cluster_mentions(square, threshold=threshold, linkage=linkage)
        assert labels_at(tree, threshold).tolist() == expected.tolist()


@given(square=score_matrices(ties=False), threshold=st.floats(0, 1), random=st.randoms(use_true_random=False))
def test_the_order_of_mentions_is_inert_without_ties(square, threshold, random):
    order = list(range(len(square)))
    random.shuffle(order)
    shuffled = cluster_mentions(square[np.ix_(order, order)], threshold=threshold)
    back = {frozenset(order[i] for i in cluster) for cluster in partition(shuffled)}
    assert back == partition(cluster_mentions(square, threshold=threshold))


@given(square=score_matrices(), threshold=st.floats(0, 1))
def test_labels_are_numbered_by_first_mention(square, threshold):
    labels = cluster_mentions(square, threshold=threshold)
    assert labels.dtype == np.int64
    assert list(dict.fromkeys(labels.tolist())) == list(range(labels.max() + 1))


def test_ties_go_by_the_order_of_mentions():
    chain = matrix(3, {(0, 1): 0.8, (1, 2): 0.8})  # 1 may go with 0 or with 2; all three average 0.4
    assert cluster_mentions(chain, threshold=0.5).tolist() == [0, 0, 1]
    ring = matrix(4, {(0, 1): 0.8, (1, 2): 0.8, (2, 3): 0.8, (0, 3): 0.8})
    assert cluster_mentions(ring, threshold=0.5).tolist() == [0, 0, 1, 1]


def test_a_score_equal_to_the_threshold_joins_nothing():
    for score in (0.0, 0.3, 0.5, 0.7, 1.0):
        square = matrix(2, {(0, 1): score})
        assert cluster_mentions(square, threshold=score).tolist() == [0, 1]
        assert labels_at(merge_tree(square), score).tolist() == [0, 1]
        if score:
            below = math.nextafter(score, 0)
            assert cluster_mentions(square, threshold=score - 1e-12).tolist() == [0, 0]
            assert (
                labels_at(merge_tree(square), below).tolist()
                == cluster_mentions(square, threshold=below).tolist()
            )


def test_no_mention_and_one():
    for nothing in ([], np.empty((0, 0))):
        assert cluster_mentions(nothing, threshold=0.5).shape == (0,)
    assert cluster_mentions([[0.0]], threshold=0.5).tolist() == [0]
    assert merge_tree([[math.nan]]).shape == (0, 4)
    assert labels_at(merge_tree([[1.0]]), 0.5).tolist() == [0]
    with pytest.raises(ValueError, match="there are no mentions"):
        merge_tree([])


def test_the_diagonal_is_ignored_and_the_input_unchanged():
    square = THREE.copy()
    np.fill_diagonal(square, math.nan)
    before = square.copy()
    assert cluster_mentions(square, threshold=0.5).tolist() == [0, 1, 0, 2]
    assert merge_tree(square).tolist() == merge_tree(THREE).tolist()
    assert np.array_equal(square, before, equal_nan=True)


@pytest.mark.parametrize("cluster", [merge_tree, lambda square: cluster_mentions(square, threshold=0.5)])
@pytest.mark.parametrize(
    ("square", "message"),
    [
        (np.zeros((2, 3)), r"shape \(2, 3\)"),
        (np.zeros(3), r"shape \(3,\)"),
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (matrix(3, {(1, 2): math.nan}), r"scores\[1, 2\] is nan"),
        (matrix(3, {(1, 2): 1.5}), r"scores\[1, 2\] is 1.5; a score lies in \[0, 1\]"),
        (matrix(3, {(0, 2): -0.1}), r"scores\[0, 2\] is -0.1"),
        ([[0, 0.2], [0.3, 0]], r"scores\[0, 1\] is 0.2, but scores\[1, 0\] is 0.3"),
    ],
)
def test_scores_that_make_no_sense_are_refused(cluster, square, message):
    with pytest.raises(ValueError, match=message):
        cluster(square)


def test_settings_that_make_no_sense_are_refused():
    for threshold in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=f"threshold is {threshold}"):
            cluster_mentions(THREE, threshold=threshold)
        with pytest.raises(ValueError, match=f"threshold is {threshold}"):
            labels_at(merge_tree(THREE), threshold)
    for cluster in (merge_tree, lambda square, **more: cluster_mentions(square, threshold=0.5, **more)):
        with pytest.raises(
            ValueError, match="unknown linkage 'ward'; choose one of average, complete, single"
        ):
            cluster(THREE, linkage="ward")
    with pytest.raises(ValueError, match=r"tree has shape \(3, 3\)"):
        labels_at(np.zeros((3, 3)), 0.5)


# ---- the matrix of scores


def test_each_pair_once_in_either_order():
    square = square_scores([[0, 1], [2, 0], [1, 2]], [0.25, 0.5, 0.75], mentions=3)
    assert square.tolist() == [[1, 0.25, 0.5], [0.25, 1, 0.75], [0.5, 0.75, 1]]


def test_both_orders_are_averaged():
    square = square_scores([[0, 1], [1, 0]], [0.25, 0.75], mentions=2, average_orders=True)
    assert square.tolist() == [[1, 0.5], [0.5, 1]]


def test_few_mentions_have_no_pairs():
    for mentions in (0, 1):
        assert square_scores([], [], mentions=mentions).tolist() == np.eye(mentions).tolist()
        assert (
            square_scores(np.empty((0, 2), int), [], mentions=mentions, average_orders=True).size == mentions
        )


@given(square=score_matrices(), random=st.randoms(use_true_random=False))
def test_a_matrix_is_made_again_from_its_pairs(square, random):
    pairs = [(i, j) if random.random() < 0.5 else (j, i) for i, j in combinations(range(len(square)), 2)]
    random.shuffle(pairs)
    np.fill_diagonal(square, 1)
    scores = [square[pair] for pair in pairs]
    assert np.array_equal(square_scores(pairs, scores, mentions=len(square)), square)
    both = square_scores(
        pairs + [(j, i) for i, j in pairs], scores * 2, mentions=len(square), average_orders=True
    )
    assert np.array_equal(both, square)


@pytest.mark.parametrize(
    ("pairs", "scores", "average_orders", "message"),
    [
        ([[0, 1], [0, 2]], [0, 0], False, "mentions 1 and 2 have no score, one of 1 such pairs of 3"),
        ([[0, 1], [1, 0], [1, 2]], [0, 0, 0], False, "mentions 0 and 1 are paired twice in one order or the"),
        ([[0, 1], [1, 0], [1, 2]], [0, 0, 0], True, "mentions 0 and 2 have no score in this order, one of 3"),
        ([[2, 1], [2, 1]], [0, 0], True, "mentions 2 and 1 are paired twice in this order"),
        ([[0, 3]], [0], False, r"pairs\[0\] is \(0, 3\); it must be two of the 3 mentions"),
        ([[0, 1], [-1, 2]], [0, 0], False, r"pairs\[1\] is \(-1, 2\)"),
        ([[1, 1]], [0], False, r"pairs\[0\] is \(1, 1\)"),
        ([[0, 1], [0, 2], [1, 2]], [0, 0.5, math.nan], False, "mentions 1 and 2 score nan"),
        ([[0, 1], [0, 2], [1, 2]], [0, 1.5, 0], False, r"mentions 0 and 2 score 1.5; a score lies in"),
        ([[0, 1]], [0, 0], False, r"pairs has shape \(1, 2\) and scores \(2,\)"),
        ([0, 1], [0, 0], False, r"pairs has shape \(2,\)"),
        ([[0.0, 1.0]], [0], False, "pairs holds float64"),
    ],
)  # fmt: skip
def test_pairs_that_make_no_sense_are_refused(pairs, scores, average_orders, message):
    with pytest.raises(ValueError, match=message):
        square_scores(pairs, scores, mentions=3, average_orders=average_orders)


def test_a_negative_number_of_mentions_is_refused():
    with pytest.raises(ValueError, match="mentions is -1"):
        square_scores([], [], mentions=-1)


# ---- the threshold


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ({0.5: 0.1, 0.6: 0.3, 0.7: 0.2}, 0.6),
        ({0.7: 0.3, 0.6: 0.3, 0.5: 0.3, 0.4: 0.1}, 0.6),  # the middle of 0.5 to 0.7
        ({0.4: 0.3, 0.5: 0.3, 0.6: 0.3, 0.7: 0.3}, 0.5),  # the lower of two
        ({0.1: 0.3, 0.2: 0.1, 0.3: 0.3, 0.4: 0.3, 0.5: 0.3}, 0.4),  # the longest run
        ({0.1: 0.3, 0.2: 0.1, 0.3: 0.3}, 0.1),  # of equal runs, the lowest
        ({0.5: 0.0}, 0.5),
        ({0.2: -1.0, 0.3: -2.0}, 0.2),
    ],
)
def test_best_threshold(scores, best):
    choice = best_threshold(scores, scores.__getitem__)
    assert (choice.threshold, choice.score) == (best, max(scores.values()))
    assert choice.tried == tuple(sorted(scores.items()))


def test_each_threshold_is_scored_once():
    calls = []
    best_threshold([0.6, 0.5, 0.6], lambda threshold: calls.append(threshold) or 0.0)
    assert calls == [0.5, 0.6]


def test_thresholds_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="no thresholds to choose from"):
        best_threshold([], float)
    with pytest.raises(ValueError, match=r"threshold is 1\.5"):
        best_threshold([0.5, 1.5], float)
    with pytest.raises(ValueError, match=r"the score of threshold 0\.5 is nan"):
        best_threshold([0.5], lambda _: math.nan)


# ---- clusters


def test_clusters_of_items():
    assert clusters_of("abcd", [3, 1, 3, 0]) == [("a", "c"), ("b",), ("d",)]
    assert clusters_of([], []) == []
    with pytest.raises(ValueError, match=r"2 items, but labels has shape \(3,\)"):
        clusters_of("ab", [0, 1, 2])
