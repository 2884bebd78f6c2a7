"""Which candidates of a question are read together, in which order, and what that makes of their scores.

A joint model reads k candidates at a time. For training the candidates of a question are shuffled anew in
each pass; for testing their order is fixed by a hash of their texts, so that it says nothing of labels, nor
of the file's order, and is the same wherever and whenever a model is tested. (The released code of MSPP,
Di Liello et al. 2022, can shuffle at test too, by the seed of training, and sorts equal scores by label.)

More than k candidates are read in groups of k, all of them, and ranked together by their scores; or a
pairwise model ranks them and a joint one ranks its first k anew (Tables 2 and 7).
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

_CANDIDATES, _ITEMS = range(2)  # independent streams of chance of one seed


def fixed_order(texts: Sequence[str], *, key: str) -> np.ndarray:
    """Order texts by the SHA-256 of the key and the text; equal texts stay in the order in which they came.

    Args:
        texts: of the candidates of one question.
        key: of the question, as its id: one text then has another place in another question.

    Returns:
        int64 (texts,), the number of the text at each place.
    """
    digests = [
        # A lone surrogate, which JSON can hold, has no UTF-8.
        hashlib.sha256(f"{key}\0{text}".encode("utf-8", "surrogatepass")).digest()
        for text in texts
    ]
    return np.array(sorted(range(len(texts)), key=digests.__getitem__), dtype=np.int64)


def shuffled_order(n: int, *, seed: int, epoch: int, index: int) -> np.ndarray:
    """An order of n candidates for training, int64 (n,), that depends on nothing but its arguments.

    Args:
        n: candidates.
        seed, epoch: of the training and of the pass; not negative.
        index: of the question; not negative.
    """
    return np.random.default_rng([seed, _CANDIDATES, epoch, index]).permutation(n)


def chunks(order: np.ndarray, *, k: int) -> list[np.ndarray]:
    """Cut an order into groups of k; the last has what is left.

    Raises:
        ValueError: `k` below 1.

    Example:
        >>> [group.tolist() for group in chunks(np.array([2, 0, 1]), k=2)]
        [[2, 0], [1]]
    """
    _check_k(k)
    return [order[first : first + k] for first in range(0, len(order), k)]


def top_k(scores: np.ndarray, order: np.ndarray, *, k: int) -> np.ndarray:
    """The candidates with the highest scores.

    Args:
        scores: float (n,), finite.
        order: int (n,), of `fixed_order`: of equal scores, what comes first in it is taken first.
        k: how many; all there are, if fewer.

    Returns:
        int64 (at most k,), numbers of candidates, the highest score first.

    Raises:
        ValueError: `k` below 1; a score that is not finite; an order that is none of the candidates.
    """
    _check_k(k)
    _check_finite(scores, name="scores")
    order = np.asarray(order, dtype=np.int64)
    if not np.array_equal(np.sort(order), np.arange(len(scores))):
        raise ValueError(f"order must have each number below {len(scores)} once, one for each score")
    return order[np.argsort(-scores[order], kind="stable")][:k]


def cascade_scores(pairwise: np.ndarray, joint: np.ndarray) -> np.ndarray:
    """One ranking of the candidates of a question of which a joint model has read only some.

    Args:
        pairwise: float (n,), scores of all.
        joint: float (n,), scores of those that were ranked anew; nan = was not.

    Returns:
        float64 (n,), whole numbers, the highest first: those ranked anew by their joint scores, below them
        the others by their pairwise ones. Equal scores on the same side of that line stay equal.

    Raises:
        ValueError: shapes that differ; an infinite score, or a pairwise one that is nan.

    Example:
        >>> cascade_scores(np.array([0.9, 0.8, 0.2, 0.2]), np.array([-1, 3, np.nan, np.nan])).tolist()
        [3.0, 5.0, 1.0, 1.0]
    """
    if pairwise.shape != joint.shape or pairwise.ndim != 1:
        raise ValueError(f"pairwise {pairwise.shape} and joint {joint.shape} must have the same shape (n,)")
    again = ~np.isnan(joint)
    _check_finite(pairwise, name="pairwise")
    _check_finite(np.where(again, joint, 0.0), name="joint")
    # Places, not sums of scores: no rounding can make a tie or break one.
    values, places = np.unique(np.where(again, joint, pairwise), return_inverse=True)
    return (places + len(values) * again).astype(np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Passes:
    """Which item each example of a map-style data set is, over one pass through the items or over several.

    Attributes:
        items: how many there are.
        seed: not negative; decides all orders.
        size: examples in all, over as many passes as that takes (steps x batch size); None = one pass.
        shuffle: True = a new order of items in each pass; False = their own.

    Raises:
        ValueError: no items, a negative seed, a size below 1.
    """

    items: int
    seed: int
    size: int | None
    shuffle: bool
    _orders: dict[int, np.ndarray] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        if self.items < 1:
            raise ValueError("there are no examples to make")
        if self.seed < 0:
            raise ValueError(f"seed is {self.seed}; it must not be negative")
        if self.size is not None and self.size < 1:
            raise ValueError(f"size is {self.size}; it must be at least 1, or None for one pass")

    def __len__(self) -> int:
        return self.items if self.size is None else self.size

    def item(self, index: int) -> tuple[int, int]:
        """Pass and item of an example, both from 0.

        Raises:
            IndexError: an index below 0 or not below the number of examples.
        """
        index = operator.index(index)
        if not 0 <= index < len(self):
            raise IndexError(f"there is no example {index}; there are {len(self)}, counted from 0")
        epoch, place = divmod(index, self.items)
        return epoch, int(self._order(epoch)[place]) if self.shuffle else place

    def _order(self, epoch: int) -> np.ndarray:
        """The order of one pass; those of the last two are remembered, for workers between them."""
        if epoch not in self._orders:
            while len(self._orders) > 1:
                self._orders.pop(next(iter(self._orders)))
            self._orders[epoch] = np.random.default_rng([self.seed, _ITEMS, epoch]).permutation(self.items)
        return self._orders[epoch]


def _check_k(k: int) -> None:
    if k < 1:
        raise ValueError(f"k is {k}; it must be at least 1")


def _check_finite(scores: np.ndarray, *, name: str) -> None:
    if not np.isfinite(scores).all():
        index = int(np.argmin(np.isfinite(scores)))
        raise ValueError(f"{name}[{index}] is {scores[index]}; a score must be finite")
