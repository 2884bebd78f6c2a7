"""Clusters of mentions against scikit-learn and a slow definition, thresholds, groups of documents."""

import gzip
import json
import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import AgglomerativeClustering

from cdlm_lab.data.files import DataError
from cdlm_lab.tasks.coreference.clustering import (
    best_threshold,
    clusters_of,
    labels_at,
    merge_tree,
    read_predicted_topics,
    square_scores,
    threshold_of_share,
)

THRESHOLD = st.floats(0, 1)


def matrix(mentions, scores):
    """Return {(i, j): score} as a symmetric matrix, in which all other pairs have 0."""
    square = np.zeros((mentions, mentions))
    for (i, j), score in scores.items():
        square[i, j] = square[j, i] = score
    return square


def labels_of(square, threshold):
    return labels_at(merge_tree(square), threshold).tolist()


@st.composite
def score_matrices(draw, ties=True):
    mentions = draw(st.integers(2, 9))
    count = mentions * (mentions - 1) // 2
    if ties:
        values = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]) | st.floats(0, 1)
        scores = draw(st.lists(values, min_size=count, max_size=count))
    else:  # of distinct powers of two, no two averages are equal
        scores = [2.0**-k for k in draw(st.permutations(range(1, count + 1)))]
    return matrix(mentions, dict(zip(combinations(range(mentions), 2), scores, strict=True)))


def slow_average_linkage(square, threshold):
    """Merge the two clusters of the highest average score, as long as it is above the threshold."""
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


def by_scikit_learn(square, threshold):
    options = {"metric": "precomputed", "linkage": "average", "distance_threshold": 1 - threshold}
    np.fill_diagonal(square, 1)
    return partition(AgglomerativeClustering(n_clusters=None, **options).fit_predict(1 - square))


def partition(labels):
    return {frozenset(cluster) for cluster in clusters_of(range(len(labels)), labels)}


# ---- clustering

THREE = matrix(4, {(0, 2): 0.9, (0, 3): 0.6, (2, 3): 0.3, (1, 3): 0.2})


@given(data=st.data())
def test_the_threshold_of_a_share_merges_as_much(data):
    trees = [merge_tree(data.draw(score_matrices(ties=False))) for _ in range(2)]
    mentions = sum(len(tree) + 1 for tree in trees)
    share = data.draw(st.floats(0, 1))
    threshold = threshold_of_share(trees, share)
    clusters = sum(len(set(labels_at(tree, threshold))) for tree in trees)
    merged = min(round(share * mentions), mentions - 2)
    scores = np.concatenate([1 - tree[:, 2] for tree in trees])
    if len(set(scores)) == len(scores):  # merges of one score cannot be told apart
        assert mentions - clusters == merged


def test_average_linkage_by_hand():
    # 0-2 joins at 0.9; 3 joins them at (0.6 + 0.3) / 2 = 0.45; 1 joins all at 0.2 / 3
    joints = np.array([[0, 2, 0.1, 2], [3, 4, 0.55, 3], [1, 5, 1 - 0.2 / 3, 4]])
    assert merge_tree(THREE) == pytest.approx(joints)
    expected = {0.95: [0, 1, 2, 3], 0.5: [0, 1, 0, 2], 0.44: [0, 1, 0, 0], 0.07: [0, 1, 0, 0], 0.06: [0] * 4}
    assert {threshold: labels_of(THREE, threshold) for threshold in expected} == expected


@given(square=score_matrices(ties=False), threshold=THRESHOLD)
def test_clusters_equal_the_slow_definition(square, threshold):
    assert partition(labels_of(square, threshold)) == slow_average_linkage(square, threshold)


@given(square=score_matrices(), thresholds=st.lists(THRESHOLD, max_size=4))
def test_one_tree_gives_the_clusters_of_every_threshold(square, thresholds):
    tree = merge_tree(square)
    at_the_joints = [float(1 - height) for height in tree[:, 2]]
    for threshold in [0.0, 0.5, 1.0, *thresholds, *at_the_joints]:
        assert partition(labels_at(tree, threshold)) == by_scikit_learn(square, threshold)


@given(square=score_matrices(), threshold=THRESHOLD)
def test_labels_are_numbered_by_first_mention(square, threshold):
    labels = labels_at(merge_tree(square), threshold)
    assert labels.dtype == np.int64
    assert list(dict.fromkeys(labels.tolist())) == list(range(labels.max() + 1))


def test_ties_go_by_the_order_of_mentions():
    assert labels_of(matrix(3, {(0, 1): 0.8, (1, 2): 0.8}), 0.5) == [0, 0, 1]  # all three average 0.4
    ring = matrix(4, {(0, 1): 0.8, (1, 2): 0.8, (2, 3): 0.8, (0, 3): 0.8})
    assert labels_of(ring, 0.5) == [0, 0, 1, 1]


def test_one_mention_is_a_cluster_and_the_diagonal_is_ignored():
    assert merge_tree([[math.nan]]).shape == (0, 4)
    assert labels_of([[1.0]], 0.5) == [0]
    square = THREE.copy()
    np.fill_diagonal(square, math.nan)
    before = square.copy()
    assert merge_tree(square).tolist() == merge_tree(THREE).tolist()
    assert np.array_equal(square, before, equal_nan=True)


@pytest.mark.parametrize(
    ("square", "message"),
    [
        (matrix(3, {(1, 2): math.nan}), r"scores\[1, 2\] is nan"),
        (matrix(3, {(1, 2): 1.5}), r"scores\[1, 2\] is 1.5; a score lies in \[0, 1\]"),
        (matrix(3, {(0, 2): -0.1}), r"scores\[0, 2\] is -0.1"),
    ],
)
def test_scores_that_make_no_sense_are_refused(square, message):
    with pytest.raises(ValueError, match=message):
        merge_tree(square)


def test_thresholds_that_make_no_sense_are_refused():
    for threshold in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=f"threshold is {threshold}"):
            labels_at(merge_tree(THREE), threshold)


def test_the_matrix_of_scores_and_clusters_of_items():
    square = square_scores([0.25, 0.5, 0.75], mentions=3)
    assert square.tolist() == [[1, 0.25, 0.5], [0.25, 1, 0.75], [0.5, 0.75, 1]]
    for mentions in (0, 1):
        assert square_scores([], mentions=mentions).tolist() == np.eye(mentions).tolist()
    assert clusters_of("abcd", [3, 1, 3, 0]) == [("a", "c"), ("b",), ("d",)]
    assert clusters_of([], []) == []


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
    for candidates, score_of, message in (
        ([], float, "no thresholds to choose from"),
        ([0.5, 1.5], float, r"threshold is 1\.5"),
        ([0.5], lambda _: math.nan, r"the score of threshold 0\.5 is nan"),
    ):
        with pytest.raises(ValueError, match=message):
            best_threshold(candidates, score_of)


# ---- groups of documents


def written(tmp_path, value):
    path = tmp_path / "topics.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def test_groups_are_read(tmp_path):
    path = written(tmp_path, [["a", "b"], ["c"]])
    assert read_predicted_topics(path) == {"a": "predicted-1", "b": "predicted-1", "c": "predicted-2"}
    assert read_predicted_topics(path, documents=["c", "a"]) == {"c": "predicted-2", "a": "predicted-1"}
    packed = tmp_path / "topics.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_predicted_topics(packed) == read_predicted_topics(path)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ('[["a"],\n["b"', r"topics.json:2: field column 5: not JSON \(.*\); complete the file"),
        ("[" * 100_000, "not JSON"),
        ("{}", r"topics.json:1: field file: no list of groups; write \[\["),
        ("[]", "no list of groups"),
        ('["a"]', r"field \[0\]: a group is a list of ids"),
        ('[["a"], []]', r"field \[1\]: a group is a list of ids"),
        ('[["a"], [3]]', r"field \[1\]: 3 is no id of a document"),
        ('[["a", ""]]', r'field \[0\]: "" is no id'),
        ('[["a"], ["b", "a"]]', r"field \[1\]: document a is in predicted-1 already"),
    ],
)
def test_files_that_make_no_sense_are_refused(tmp_path, value, message):
    with pytest.raises(DataError, match=message):
        read_predicted_topics(written(tmp_path, value))


def test_documents_without_a_group_are_named(tmp_path):
    with pytest.raises(DataError, match="document x is in no group, one of 2 such; add them"):
        read_predicted_topics(written(tmp_path, [["a"]]), documents=["a", "x", "y"])
    with pytest.raises(DataError, match="missing"):
        read_predicted_topics(tmp_path / "missing.json")
