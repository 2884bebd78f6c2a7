"""The definition of Longformer's local + global attention (Beltagy et al. 2020, section 3.1), as a matrix.

Quadratic in length: a reference for the tests, and a direct reading of the equation. In words:

- a LOCAL token attends, in one softmax, to the local tokens within window // 2 of it and to every global
  token, all with the local projections;
- a GLOBAL token attends to every token with the global projections;
- padding gets no weight, and its own output is zero.

Axes: batch, query (= key = seq), head, dim.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from cdlm_lab.attention.plan import Projections, check_masks, check_window


def visible_to_local(*, attention_mask: Tensor, global_mask: Tensor, window: int) -> Tensor:
    """The keys that each local query attends to: (batch, query, key) bool, True = attends."""
    position = torch.arange(attention_mask.shape[1], device=attention_mask.device)
    near = (position[:, None] - position[None, :]).abs() <= window // 2
    return (near[None] | global_mask[:, None, :]) & attention_mask[:, None, :]


def dense_weights(
    projections: Projections,
    *,
    attention_mask: Tensor,
    global_mask: Tensor,
    window: int,
    cut: Tensor | None = None,
) -> Tensor:
    """Attention weights as a full matrix, of projections (batch, seq, head, dim). Masks: (batch, seq) bool,
    True = takes part, True = global. `cut`: (batch, query, key) bool, True = the query does not attend to
    the key, whatever the masks say; a token always attends to itself. Returns (batch, head, query, key); each
    row of a token that takes part sums to 1, rows of padding are zero. Raises ValueError for bad masks or
    window."""
    query, key, _, query_global, key_global, _ = projections
    check_masks(attention_mask, global_mask)
    check_window(window)
    global_mask = global_mask & attention_mask
    scale = 1 / math.sqrt(query.shape[-1])
    local_scores = torch.einsum("bqhd,bkhd->bhqk", query * scale, key)
    global_scores = torch.einsum("bqhd,bkhd->bhqk", query_global * scale, key_global)
    sees = visible_to_local(attention_mask=attention_mask, global_mask=global_mask, window=window)[:, None]
    # A padding query may see no key, and a softmax over nothing is NaN, in the backward pass too: let it see
    # all and zero its weights later.
    sees = sees | ~attention_mask[:, None, :, None]
    from_global = global_mask[:, None, :, None]
    seen_by_global = attention_mask[:, None, None, :]
    if cut is not None:
        cut = cut[:, None] & ~torch.eye(cut.shape[-1], dtype=torch.bool, device=cut.device)
        sees, seen_by_global = sees & ~cut, seen_by_global & ~cut
    scores = torch.where(
        from_global,
        global_scores.masked_fill(~seen_by_global, float("-inf")),
        local_scores.masked_fill(~sees, float("-inf")),
    )
    # Softmax in float32 (or better) whatever the input, as Hugging Face does.
    weights = scores.softmax(dim=-1, dtype=torch.promote_types(scores.dtype, torch.float32))
    weights = torch.where(attention_mask[:, None, :, None], weights, torch.zeros_like(weights))
    return weights.to(query.dtype)


def dense_attention(
    projections: Projections,
    *,
    attention_mask: Tensor,
    global_mask: Tensor,
    window: int,
    dropout: float = 0.0,
    cut: Tensor | None = None,
) -> Tensor:
    """Outputs of every token, (batch, seq, head, dim), from projections of that shape; zero for padding.
    `dropout` is applied to the weights, as in Hugging Face's layer."""
    masks = {"attention_mask": attention_mask, "global_mask": global_mask}
    weights = dense_weights(projections, **masks, window=window, cut=cut)
    weights = torch.nn.functional.dropout(weights, p=dropout)
    from_global = (global_mask & attention_mask)[:, None, :, None]
    local_output = torch.einsum("bhqk,bkhd->bqhd", weights * ~from_global, projections.value)
    return local_output + torch.einsum("bhqk,bkhd->bqhd", weights * from_global, projections.value_global)
