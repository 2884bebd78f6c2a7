"""Which tokens attend to the whole sequence, and are attended to by all of it: named policies of pretraining.

- `masked` (CDLM, section 2.2): the tokens to be predicted, whatever replaced them.
- `prefix` (Prefix CDLM, section 3): the first 15% of the tokens, rounded up; padding does not count.
- `none` (Longformer and Local CDLM): no token.

The released collator of CDLM makes a union of both global: as many tokens from the START of the sequence as
were masked, and the masked ones except a list of pronouns. We follow the paper, which compares the two.

All functions take NumPy arrays or torch tensors and return bool of the same kind, True = global.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TypeVar

import numpy as np
import torch

Array = TypeVar("Array", np.ndarray, torch.Tensor)

GLOBAL_POLICIES = ("masked", "prefix", "none")
PREFIX_FRACTION = 0.15
_NOT_MASKED = -100


def global_tokens(
    policy: str, *, labels: Array, present: Array | None = None, prefix_fraction: float = PREFIX_FRACTION
) -> Array:
    """The global tokens of sequences, the shape of `labels`: int (seq,) or (batch, seq), -100 = not masked.
    `present`: bool of that shape, True = a token, False = padding; None = no padding. `prefix_fraction`:
    share of the tokens that `prefix` takes.

    >>> global_tokens("masked", labels=np.array([-100, 7, -100, 9]))
    array([False,  True, False,  True])
    """
    check_policy(policy)
    if not 0 <= prefix_fraction <= 1:
        raise ValueError(
            f"prefix_fraction is {prefix_fraction}; it must lie between 0 and 1 (the paper: 0.15)"
        )
    if present is None:
        present = labels == labels
    if present.shape != labels.shape:
        raise ValueError(f"present has shape {tuple(present.shape)}, but labels {tuple(labels.shape)}")
    if present.dtype not in (bool, torch.bool):
        raise ValueError(f"present is {present.dtype}; it must be bool, True = a token, False = padding")
    if policy == "masked":
        return (labels != _NOT_MASKED) & present
    if policy == "none":
        return present & ~present
    # In whole numbers, because 0.1 x 30 is 3.0000000000000004 in floating point and would be rounded up to 4.
    part, whole = Fraction(str(prefix_fraction)).limit_denominator(1_000_000).as_integer_ratio()
    wanted = (present.sum(-1) * part + whole - 1) // whole  # (...,)
    rank = present.cumsum(-1)  # (..., seq), 1 for the first token
    return present & (rank <= wanted[..., None])


def check_policy(policy: str) -> None:
    """Raise ValueError, with the names there are, unless `policy` is one of them."""
    if policy not in GLOBAL_POLICIES:
        raise ValueError(f"unknown global policy {policy!r}; choose one of {', '.join(GLOBAL_POLICIES)}")


def mention_tokens(input_ids: Array, mention_mask: Array, *, others: Iterable[int]) -> Array:
    """The tokens of both mentions of a coreference pair, by `mention_mask` (..., 2, seq), True = token of
    mention i, and those of the ids `others` (`[CLS]`, `<m>`, `</m>`): (..., seq).

    >>> mention_tokens(np.array([2, 7, 8, 9]), np.array([[0, 0, 1, 0], [0, 0, 1, 0]]) > 0, others=[2])
    array([ True, False,  True, False])
    """
    chosen = mention_mask.any(-2)
    for token in others:
        chosen = chosen | (input_ids == token)
    return chosen
