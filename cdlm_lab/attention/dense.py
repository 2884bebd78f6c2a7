"""The definition of Longformer's local + global attention, and of CDLM's, as a matrix, from their papers.

Quadratic in length: a reference for the tests, and a direct reading of the equations. The pattern grows in
four steps:

1. Local attention (Beltagy et al. 2020, section 3.1): given a window of width w, each token attends to
   w/2 tokens on each side, and to itself.
2. Global attention (there, symmetric): a global token attends to all tokens of the sequence, and all tokens
   of the sequence attend to it. It adds a row and a column.
3. CDLM (section 2.2): the 15% of the tokens that are masked are the global ones, so that each is predicted
   from all documents; "the non-masked tokens use local attention". Attention knows nothing of documents.
4. "Separate weights are used for global and local attention" (CDLM, section 2.1): the row of a global token
   is computed with the global projections, all other rows, global columns included, with the local ones.

Padding gets no weight, and its own output is zero. Two documents of three words, window 4, the third word of
the second masked (rows are queries, columns keys, o = attends; G are computed with the global projections):

    >>> tokens = "<s> <doc-s> a b c </doc-s> <doc-s> d e <mask> </doc-s> <pad>".split()
    >>> present = torch.tensor([[token != "<pad>" for token in tokens]])
    >>> is_global = torch.tensor([[token == "<mask>" for token in tokens]])
    >>> sees = visible(attention_mask=present, global_mask=is_global, window=4)[0]
    >>> for token, row, everything in zip(tokens, sees.tolist(), is_global[0].tolist()):
    ...     print(f"{token:8}", *("." if not one else "G" if everything else "o" for one in row))
    <s>      o o o . . . . . . o . .
    <doc-s>  o o o o . . . . . o . .
    a        o o o o o . . . . o . .
    b        . o o o o o . . . o . .
    c        . . o o o o o . . o . .
    </doc-s> . . . o o o o o . o . .
    <doc-s>  . . . . o o o o o o . .
    d        . . . . . o o o o o . .
    e        . . . . . . o o o o o .
    <mask>   G G G G G G G G G G G .
    </doc-s> . . . . . . . . o o o .
    <pad>    . . . . . . . . . o o .

(The last row is computed and thrown away.) The word c, six tokens before the mask, attends to it: so what the
mask has read of both documents reaches every token in the next layer.

Axes: batch, query (= key = seq), head, dim.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from cdlm_lab.attention.plan import Projections, check_masks, check_window


def visible(*, attention_mask: Tensor, global_mask: Tensor, window: int) -> Tensor:
    """The keys that each query attends to: (batch, query, key) bool, True = attends; rows of padding have no
    meaning. Masks: (batch, seq) bool."""
    position = torch.arange(attention_mask.shape[1], device=attention_mask.device)
    near = (position[:, None] - position[None, :]).abs() <= window // 2
    is_global = global_mask & attention_mask
    return (near[None] | is_global[:, None, :] | is_global[:, :, None]) & attention_mask[:, None, :]


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
    sees = visible(attention_mask=attention_mask, global_mask=global_mask, window=window)
    if cut is not None:
        sees &= ~cut | torch.eye(cut.shape[-1], dtype=torch.bool, device=cut.device)
    # A padding query may see no key, and a softmax over nothing is NaN, in the backward pass too: let it see
    # all and zero its weights later.
    sees = (sees | ~attention_mask[:, :, None])[:, None]
    from_global = global_mask[:, None, :, None]
    scores = torch.where(from_global, global_scores, local_scores).masked_fill(~sees, float("-inf"))
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
