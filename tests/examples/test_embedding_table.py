"""Tables of embeddings: the two rows in front, and what is left of vectors that are made smaller."""

import re

import numpy as np
import pytest

from cdlm_lab.examples.document_pairs import embedding_table


def test_rows_in_front():
    table = embedding_table(np.array([[1.0, 2], [3, 8], [5, -1]]), size=2)
    assert table.dtype == np.float32
    assert table.tolist() == [[0, 0], [3, 3], [1, 2], [3, 8], [5, -1]]


def plane(mean: float) -> np.ndarray:
    """Forty vectors of size 6 that lie in a plane, about a mean."""
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 6))
    return (flat - flat.mean(axis=0) + mean).astype(np.float32)


@pytest.mark.parametrize("size", [2, 3])
def test_vectors_of_a_plane_keep_their_scalar_products(size: int):
    vectors = plane(mean=0)
    reduced = embedding_table(vectors, size=size)[2:]
    assert reduced.shape == (40, size)
    # As many squares, but fewer entries: for the mean of them to stay, each becomes size / 6 of itself.
    np.testing.assert_allclose(reduced @ reduced.T, vectors @ vectors.T * size / 6, atol=1e-4)


def test_the_mean_goes_and_the_size_of_entries_stays():
    vectors = plane(mean=0.7)
    table = embedding_table(vectors, size=2)
    np.testing.assert_allclose(table[1], 0, atol=1e-5)
    assert np.square(table[2:]).mean() == pytest.approx(np.square(vectors).mean(), rel=1e-5)
    centred = vectors - vectors.mean(axis=0)
    products, stretch = table[2:] @ table[2:].T, np.square(vectors).sum() / np.square(centred).sum()
    np.testing.assert_allclose(products, centred @ centred.T * stretch * 2 / 6, atol=1e-4)


def test_it_keeps_the_directions_that_differ_most():
    vectors = np.zeros((4, 3), dtype=np.float32)
    vectors[:, 1] = [3, -3, 3, -3]
    vectors[:, 2] = [1, 1, -1, -1]
    ((first,), *rest) = embedding_table(vectors, size=1)[2:]
    # mean square 40 / 12
    assert [abs(first), *(row[0] / first for row in rest)] == pytest.approx([(10 / 3) ** 0.5, -1, 1, -1])


def test_the_same_every_time():
    vectors = np.random.default_rng(1).normal(size=(600, 550))  # so large that sklearn draws
    np.testing.assert_array_equal(embedding_table(vectors, size=4), embedding_table(vectors, size=4))


@pytest.mark.parametrize(
    ("vectors", "size", "message"),
    [
        (np.ones((3, 2)), 3, "size is 3, but the vectors have 2; take 1 to 2"),
        (np.ones((3, 2)), 0, "size is 0, but the vectors have 2; take 1 to 2"),
        (
            np.eye(3, 9),
            4,
            "3 vectors do not span size 4; give more, or take a smaller size",
        ),
        (np.ones((3, 2)), 1, "all 3 vectors are alike, so that no direction tells them apart"),
        (np.ones(3), 1, "vectors has shape (3,); it must be (words, size), neither of them 0"),
        (np.ones((0, 3)), 1, "vectors has shape (0, 3); it must be (words, size), neither of them 0"),
        (np.array([[1.0], [np.nan]]), 1, "the vector of word 1 is not finite"),
    ],
)
def test_what_cannot_be_made(vectors: np.ndarray, size: int, message: str):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        embedding_table(vectors, size=size)
