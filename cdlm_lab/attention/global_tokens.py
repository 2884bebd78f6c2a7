"""Which tokens are global, attending to and attended by the whole sequence: named policies of pretraining.

- `masked` (CDLM, section 2.2): the tokens to be predicted, whatever replaced them.
- `prefix` (Prefix CDLM, section 3): the first 15% of the tokens, rounded up.
- `none` (Longformer and Local CDLM): no token.

The released collator of CDLM makes a union of both global: as many tokens from the START of the sequence as
were masked, and the masked ones except a list of pronouns. We follow the paper, which compares the two.

All functions take NumPy arrays or torch tensors and return bool of the same type, True = global.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import numpy as np
import torch

from cdlm_lab.errors import check_choice

Array = TypeVar("Array", np.ndarray, torch.Tensor)

GLOBAL_POLICIES = ("masked", "prefix", "none")
PREFIX_PER_CENT = 15
_NOT_MASKED = -100


def global_tokens(policy: str, *, labels: Array) -> Array:
    """The global tokens of sequences without padding, the shape of `labels`: int (seq,) or (batch, seq),
    -100 = not masked.

    >>> global_tokens("masked", labels=np.array([-100, 7, -100, 9]))
    array([False,  True, False,  True])
    """
    check_choice("global policy", policy, GLOBAL_POLICIES)
    if policy == "masked":
        return labels != _NOT_MASKED
    chosen = labels != labels
    if policy == "prefix":
        chosen[..., : -(-PREFIX_PER_CENT * labels.shape[-1] // 100)] = True
    return chosen


def mention_tokens(input_ids: Array, mention_mask: Array, *, others: Iterable[int]) -> Array:
    """The tokens of both mentions of a coreference pair, given by `mention_mask` (..., 2, seq), True = token
    of mention i, and the tokens with ids in `others` (`[CLS]`, `<m>`, `</m>`): (..., seq).

    >>> mention_tokens(np.array([2, 7, 8, 9]), np.array([[0, 0, 1, 0], [0, 0, 1, 0]]) > 0, others=[2])
    array([ True, False,  True, False])
    """
    chosen = mention_mask.any(-2)
    for token in others:
        chosen = chosen | (input_ids == token)
    return chosen
