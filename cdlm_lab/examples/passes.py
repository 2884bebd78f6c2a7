"""The order in which a data set's items become examples, over one pass through the items or several.

Everything is a pure function of seed, pass and index: the same on every machine, in every process, in any
order of access, so that a resumed run sees what an uninterrupted one would have.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field

import numpy as np

from cdlm_lab.errors import check_least


def checked_index(index: int, count: int, kind: str) -> int:
    """`index` as an int; raises IndexError, naming the `kind` of item, unless it is 0 to `count - 1`."""
    number = operator.index(index)
    if not 0 <= number < count:
        raise IndexError(f"there is no {kind} {number}; there are {count}, counted from 0")
    return number


@dataclass(frozen=True, kw_only=True, eq=False)
class Passes:
    """Maps the index of an example to its pass and item."""

    items: int  # number of items
    seed: int  # not negative; determines all orders
    stream: int  # random stream for the orders; streams of one seed are independent
    size: int | None = None  # total examples (steps x batch size), in as many passes as needed; None = one
    shuffle: bool = True  # True = a new order of items in each pass; False = their original order
    _orders: dict[int, np.ndarray] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        if self.items < 1:
            raise ValueError("there are no examples to make")
        check_least(0, seed=self.seed)
        check_least(size=1 if self.size is None else self.size)

    def __len__(self) -> int:
        return self.items if self.size is None else self.size

    def item(self, index: int) -> tuple[int, int]:
        """Pass and item of an example, both counted from 0."""
        epoch, place = divmod(checked_index(index, len(self), "example"), self.items)
        return epoch, int(self._order(epoch)[place]) if self.shuffle else place

    def generator(self, stream: int, *key: int) -> np.random.Generator:
        """A fresh random generator that depends only on the seed, the stream and the key."""
        return np.random.default_rng([self.seed, stream, *key])

    def _order(self, epoch: int) -> np.ndarray:
        """The order of one pass; those of the last two are cached, for workers that are between passes."""
        order = self._orders.get(epoch)
        if order is None:
            for older in list(self._orders)[:-1]:
                self._orders.pop(older, None)
            order = self._orders[epoch] = self.generator(self.stream, epoch).permutation(self.items)
        return order
