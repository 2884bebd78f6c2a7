"""Attention from a few global tokens without projecting the keys and values of all tokens.

With W_k, b_k, W_v, b_v of one head's rows of the global projections and h_i the state of token i,

    q . (W_k h_i + b_k) = (W_k^T q) . h_i + q . b_k
    sum_i p_i (W_v h_i + b_v) = W_v (sum_i p_i h_i) + b_v

where the second line holds because weights sum to 1. So instead of every token, only the queries and their
sums are projected, once a head: cheaper while a text has fewer global tokens than a head has dimensions, as
in coreference, where a pair of long documents has about nine. Exact; it needs weights that sum to 1, so no
dropout.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from cdlm_lab.attention.plan import Plan

SHARE = 0.7  # of a head's dimensions: so many global tokens a text, and it is faster with room to spare


def globals_are_few(plan: Plan, *, head_size: int) -> bool:
    """True if there are globals and this way of theirs is the cheaper one for the batch."""
    texts = sum(1 for row in plan.rows if row.n_global)
    return 0 < len(plan.global_order) <= SHARE * head_size * texts


def attend_from_few_globals(
    query: Tensor, states: Tensor, *, key: nn.Linear, value: nn.Linear, plan: Plan
) -> Tensor:
    """What `attend_from_globals` gives, from the states before their projection.

    Args:
        query: (n_global, head, dim), in `plan.global_order`, not scaled.
        states: (n_tokens, embed), in `plan.order`.
        key, value: the global projections, embed to head * dim.

    Returns:
        (n_global, head, dim).
    """
    _, heads, size = query.shape
    scaled = query.transpose(0, 1) / math.sqrt(size)  # (head, n_global, dim)
    asked = torch.bmm(scaled, key.weight.view(heads, size, -1))  # (head, n_global, embed)
    if key.bias is not None:  # one number for all keys: the softmax cancels it, but autograd wants to know
        offset = torch.bmm(scaled, key.bias.view(heads, size, 1))  # (head, n_global, 1)
    else:
        offset = scaled.new_zeros(heads, len(query), 1)
    sums = []
    for row in plan.rows:
        if row.n_global:
            of_row = slice(row.global_start, row.global_start + row.n_global)
            sums.append(_sums_of_row(asked[:, of_row], offset[:, of_row], states[row.tokens]))
    outputs = torch.bmm(torch.cat(sums, dim=1), value.weight.view(heads, size, -1).transpose(1, 2))
    if value.bias is not None:
        outputs = outputs + value.bias.view(heads, 1, size)
    return outputs.to(query.dtype).transpose(0, 1)


def _sums_of_row(asked: Tensor, offset: Tensor, states: Tensor) -> Tensor:
    """(head, n_global of the row, embed): the states (tokens of the row, embed), weighted."""
    heads, count, embed = asked.shape
    scores = torch.addmm(offset.reshape(-1, 1), asked.reshape(-1, embed), states.T)
    return (scores.softmax(dim=-1) @ states).view(heads, count, embed)
