"""Vectors of words as the weights that an embedding starts from, made smaller where that is wanted."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA

from .vocabulary import FIRST_WORD, UNKNOWN


def embedding_table(vectors: np.ndarray, *, size: int) -> np.ndarray:
    """Rows for all numbers of a `Vocabulary`, float32 (words + 2, size).

    Filling is zero, an unknown word is the mean of all, then come the vectors. If `size` is less than theirs,
    they are turned onto the `size` directions in which they differ most (PCA, so that their mean becomes
    zero), and stretched until their mean squared entry is what it was.

    Args:
        vectors: (words, size), of word 0 of the vocabulary on.
        size: of an embedding.

    Raises:
        ValueError: vectors that are no table, are none, or hold a value that is not finite; a size below 1 or
            above theirs, or, if they are to be reduced, fewer of them than `size`, or all of them alike.
    """
    if vectors.ndim != 2 or not vectors.size:
        raise ValueError(f"vectors has shape {vectors.shape}; it must be (words, size), neither of them 0")
    if not np.isfinite(vectors).all():
        raise ValueError(f"the vector of word {np.argmin(np.isfinite(vectors).all(axis=1))} is not finite")
    count, given = vectors.shape
    if not 1 <= size <= given:
        raise ValueError(f"size is {size}, but the vectors have {given}; take 1 to {given}")
    table = np.zeros((count + FIRST_WORD, size), dtype=np.float32)
    table[FIRST_WORD:] = vectors if size == given else _reduced(vectors, size)
    table[UNKNOWN] = table[FIRST_WORD:].mean(axis=0, dtype=np.float64)
    return table


def _reduced(vectors: np.ndarray, size: int) -> np.ndarray:
    if len(vectors) < size:
        raise ValueError(f"{len(vectors)} vectors do not span size {size}; give more, or take a smaller size")
    if not np.ptp(vectors, axis=0).any():
        raise ValueError(f"all {len(vectors)} vectors are alike, so that no direction tells them apart")
    reduced = PCA(n_components=size, random_state=0).fit_transform(vectors)
    return reduced * np.sqrt(_mean_square(vectors) / _mean_square(reduced))


def _mean_square(values: np.ndarray) -> float:
    return float(np.square(values, dtype=np.float64).mean())
