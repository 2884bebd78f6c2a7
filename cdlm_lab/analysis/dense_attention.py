"""Sparse attention made dense for a few tokens: from chosen query positions to chosen key positions.

Longformer's attention over a long text has no full matrix, and none is made here: each layer recomputes the
weights of the chosen queries alone. What a tool for short texts wants to see, two sentences of two documents
say, is then an ordinary small matrix of every layer and head.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from cdlm_lab.analysis.source_attention import evaluating
from cdlm_lab.attention.weights import record_attention


@torch.no_grad()
def attention_between(
    model: PreTrainedModel,
    input_ids: Sequence[int] | np.ndarray | Tensor,
    *,
    queries: Sequence[int] | np.ndarray | Tensor,
    keys: Sequence[int] | np.ndarray | Tensor,
    global_mask: Sequence[bool] | np.ndarray | Tensor,
) -> np.ndarray:
    """The weights that the tokens at `queries` give to the tokens at `keys`, in every layer and head.

    A weight is exactly 0 where the two are farther apart than half the window and neither is global. The
    model runs once, without dropout; memory grows with the length, not with its square.

    Args:
        model: with our attention inside (see `replace_self_attention`); a head on top is not run.
        input_ids: (seq,), one sequence without padding.
        queries: positions in it, in any order; half-open spans are `range(start, end)`.
        keys: likewise.
        global_mask: (seq,), True = attends to every token and is attended to by every token.

    Returns:
        (layer, head, query, key) float32. A row sums to 1 only over all keys of the text.

    Raises:
        ValueError: masks or positions that do not fit the sequence, nothing chosen, or a model whose
            attention is not ours.
    """
    ids = torch.as_tensor(input_ids, dtype=torch.long, device=model.device)
    is_global = torch.as_tensor(global_mask, dtype=torch.bool, device=model.device)
    if ids.dim() != 1 or is_global.shape != ids.shape:
        raise ValueError(
            f"input_ids {tuple(ids.shape)} and global_mask {tuple(is_global.shape)} must both be (seq,)"
        )
    chosen = _positions(queries, name="queries", length=len(ids), device=ids.device)
    seen = _positions(keys, name="keys", length=len(ids), device=ids.device)
    encoder = model.base_model  # the vocabulary projection of a language model would be work in vain
    with evaluating(model), record_attention(encoder, chosen[None]) as recorder:
        encoder(
            input_ids=ids[None],
            attention_mask=torch.ones_like(ids)[None],
            global_attention_mask=is_global.long()[None],
        )
    # (batch 1, head, query, seq) a layer
    return torch.stack([given[0, :, :, seen] for given in recorder.from_tokens]).float().cpu().numpy()


def _positions(chosen: object, *, name: str, length: int, device: torch.device) -> Tensor:
    """`chosen` as (chosen,) long positions below `length`."""
    positions = torch.as_tensor(chosen, device=device)
    if positions.dim() != 1 or len(positions) == 0 or positions.is_floating_point():
        raise ValueError(f"{name} must be at least one whole position in a row, got {chosen!r}")
    low, high = int(positions.min()), int(positions.max())
    if low < 0 or high >= length:
        raise ValueError(f"{name} run from {low} to {high}, but the sequence has positions 0 to {length - 1}")
    return positions.long()
