"""Complete linkage on listed pairs is that of scipy on all pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from cdlm_lab.mining.linkage import complete_linkage, joined


def listed(similarity: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pairs of a square matrix that are at least as similar as the threshold."""
    first, second = np.nonzero(np.triu(similarity >= threshold, k=1))
    return first, second, similarity[first, second]


def groups(labels: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in set(labels.tolist())}


def test_a_chain_is_cut_where_the_ends_are_not_similar():
    """0 - 1 - 2: 1 and 2 are the most similar; 0 is similar to 1 alone, so it stays outside."""
    labels = complete_linkage(np.array([0, 1]), np.array([1, 2]), np.array([0.5, 0.9]), items=4)
    assert labels.tolist() == [0, 1, 1, 3]


def test_of_equal_pairs_the_first_is_joined():
    labels = complete_linkage(np.array([0, 1]), np.array([1, 2]), np.array([0.5, 0.5]), items=3)
    assert labels.tolist() == [0, 0, 2]


@pytest.mark.parametrize("seed", range(30))
def test_equals_scipy_where_no_two_similarities_are_equal(seed: int):
    random = np.random.default_rng(seed)
    items, threshold = int(random.integers(2, 40)), float(random.uniform(0.05, 0.95))
    similarity = random.permutation(items * items).reshape(items, items) / (items * items)
    similarity = np.maximum(similarity, similarity.T)
    np.fill_diagonal(similarity, 1.0)
    tree = linkage(squareform(1 - similarity, checks=False), "complete")
    expected = fcluster(tree, 1 - threshold + 1e-12, "distance")
    found = complete_linkage(*listed(similarity, threshold), items=items)
    assert groups(found) == groups(expected)


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.sampled_from([0.2, 0.5, 0.8]))))
def test_in_a_cluster_all_are_similar_and_no_two_clusters_could_be_joined(
    pairs: list[tuple[int, int, float]],
):
    near = {(min(one, other), max(one, other)): value for one, other, value in pairs if one != other}
    columns = [
        np.array(column) for column in zip(*((*pair, value) for pair, value in near.items()), strict=True)
    ]
    columns = columns or [np.zeros(0, dtype=int)] * 2 + [np.zeros(0)]
    found = sorted(map(sorted, groups(complete_linkage(*columns, items=8))))
    for place, group in enumerate(found):
        assert all((one, other) in near for one in group for other in group if one < other)
        for later in found[place + 1 :]:
            assert not all((min(one, other), max(one, other)) in near for one in group for other in later)


def test_what_is_connected_has_the_smallest_place():
    assert joined([(4, 1), (3, 4), (0, 2)], items=6).tolist() == [0, 1, 0, 1, 1, 5]
