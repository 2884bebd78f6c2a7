"""Attention weights for people to look at: from and to a few chosen tokens, or all of them in Hugging Face's
layout.

The kernels never hold weights. These functions recompute just the ones asked for from the packed queries and
keys, a block of queries at a time: memory is linear in length. They are for analysis, carry no gradient, and
show the weights before dropout.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from cdlm_lab.attention.plan import Plan, Row

GLOBAL_BLOCK = 128  # global queries whose scores are held at once


class AttentionRecorder:
    """Collects, layer by layer, the attention from and to chosen tokens while a model runs.

    `tokens`: (batch, chosen) long text positions. After the run `from_tokens` and `to_tokens` are lists with
    one tensor a layer, (batch, head, chosen, seq) float32: the weight the chosen token gives to each
    position, and the weight each position gives to the chosen token. Two tokens too far apart, neither
    global, have weight exactly 0; so has padding.
    """

    def __init__(self, tokens: Tensor) -> None:
        if tokens.dim() != 2 or tokens.dtype != torch.long:
            raise ValueError(
                f"tokens must be (batch, chosen) long positions, got {tuple(tokens.shape)} {tokens.dtype}"
            )
        self.tokens = tokens
        self.from_tokens: list[Tensor] = []
        self.to_tokens: list[Tensor] = []

    @torch.no_grad()
    def record(self, packed: dict[str, Tensor], plan: Plan) -> None:
        """Called by the layer with its packed projections. Raises ValueError for a chosen token that is
        padding."""
        heads = packed["query"].shape[1]
        batch, seq = plan.shape
        if len(self.tokens) != batch:
            raise ValueError(f"tokens chosen for {len(self.tokens)} rows, but the batch has {batch}")
        given = torch.zeros(batch, heads, self.tokens.shape[1], seq, device=plan.order.device)
        received = torch.zeros_like(given)
        for index, row in enumerate(plan.rows):
            positions = plan.order[row.tokens] % seq
            for column, token in enumerate(self.tokens[index].tolist()):
                chosen = (positions == token).nonzero().flatten()
                if len(chosen) == 0:
                    raise ValueError(
                        f"token {token} of row {index} is padding or outside the text of length {seq}"
                    )
                given[index, :, column, positions] = _given_by(
                    int(chosen), packed, row, positions, plan.window
                )
                received[index, :, column, positions] = _received_by(int(chosen), packed, row)
        self.from_tokens.append(given)
        self.to_tokens.append(received)


@contextmanager
def record_attention(model: nn.Module, tokens: Tensor) -> Iterator[AttentionRecorder]:
    """Record the attention from and to `tokens` ((batch, chosen) long positions) in every layer of `model`.

    Use: `with record_attention(model, tokens) as recorder: model(**batch)`. Raises ValueError when the
    model's attention is not ours (see `replace_self_attention`).
    """
    layers = [module for module in model.modules() if hasattr(module, "recorder")]
    if not layers:
        raise ValueError("the model's attention cannot be recorded; call replace_self_attention(model) first")
    recorder = AttentionRecorder(tokens)
    for layer in layers:
        layer.recorder = recorder
    try:
        yield recorder
    finally:
        for layer in layers:
            layer.recorder = None


def _scores(query: Tensor, key: Tensor) -> Tensor:
    """(query, head, dim) and (key, head, dim) to (head, query, key) in float32, scaled."""
    return torch.einsum("qhd,khd->hqk", query.float() / math.sqrt(query.shape[-1]), key.float())


def _given_by(token: int, packed: dict[str, Tensor], row: Row, positions: Tensor, window: int) -> Tensor:
    """Weights that the row's `token` (an index in the compact order) gives: (head, row tokens)."""
    if token < row.n_global:
        query = packed["query_global"][row.global_start + token][None]
        return _scores(query, packed["key_global"][row.tokens]).softmax(-1)[:, 0]
    query = packed["query"][row.local_start + token - row.n_global][None]
    near = (positions - positions[token]).abs() <= window // 2
    near[: row.n_global] = True
    scores = _scores(query, packed["key"][row.tokens]).masked_fill(~near, float("-inf"))
    return scores.softmax(-1)[:, 0]


def _received_by(token: int, packed: dict[str, Tensor], row: Row) -> Tensor:
    """Weights that the row's `token` receives from every token of the row: (head, row tokens)."""
    from_globals = [scores.softmax(-1)[:, :, token] for scores in _global_scores(packed, row)]
    from_locals = []
    for _, _, first, scores in _local_scores(packed, row):
        # columns of `scores`: all globals, then the run of locals that starts at `first`; out of it nothing
        # is seen, and what the run holds beyond a query's window has weight exp(-inf) = 0
        column = token if token < row.n_global else token - first
        seen = token < row.n_global or row.n_global <= column < scores.shape[-1]
        from_locals.append(scores.softmax(-1)[:, :, column] if seen else scores.new_zeros(scores.shape[:2]))
    return torch.cat([*from_globals, *from_locals], dim=1)


def _global_scores(packed: dict[str, Tensor], row: Row) -> Iterator[Tensor]:
    """Scores of the row's global queries, (head, query, row tokens), a few queries at a time."""
    of_row = packed["query_global"][row.global_start : row.global_start + row.n_global]
    for queries in of_row.split(GLOBAL_BLOCK) if row.n_global else ():
        yield _scores(queries, packed["key_global"][row.tokens])


def _local_scores(packed: dict[str, Tensor], row: Row) -> Iterator[tuple[int, int, int, Tensor]]:
    """For each block: its first and last query, its first key, and the scores (head, query, globals +
    run)."""
    for block in row.blocks:
        queries = packed["query"][row.local_start + block.query_start : row.local_start + block.query_end]
        window = packed["key"][row.locals_(block.key_start, block.key_end)]
        scores = _scores(queries, torch.cat([packed["key"][row.globals_], window]))
        if block.bias is not None:
            scores[..., row.n_global :] += block.bias
        yield block.query_start, block.query_end, block.key_start, scores


@torch.no_grad()
def banded_weights(packed: dict[str, Tensor], plan: Plan) -> tuple[Tensor, ...]:
    """All weights of a layer in the layout of Hugging Face's Longformer layer.

    Returns (batch, seq, head, n_global + window + 1): the weight on each of the row's global tokens, in text
    order, then on the key at query - window // 2 + column; rows of global tokens and padding are zero, and so
    are the window's columns of global keys, which count among the globals. When the batch has globals also
    (batch, head, n_global, seq), the weights that global tokens give; both zero-padded to the batch's largest
    number of globals.
    """
    batch, seq = plan.shape
    heads, half = packed["query"].shape[1], plan.window // 2
    most = max(row.n_global for row in plan.rows)
    device = plan.order.device
    local = torch.zeros(batch, seq, heads, most + plan.window + 1, device=device)
    from_globals = torch.zeros(batch, heads, most, seq, device=device)
    for index, row in enumerate(plan.rows):
        positions = plan.order[row.tokens] % seq
        texts = positions[row.n_global :]
        for start, end, first, scores in _local_scores(packed, row):
            weights = scores.softmax(-1).permute(1, 0, 2)
            at = texts[start:end]
            local[index, at, :, : row.n_global] = weights[..., : row.n_global]
            run = texts[first : first + weights.shape[-1] - row.n_global]
            offset = run[None, :] - at[:, None] + half
            query, key = ((offset >= 0) & (offset <= plan.window)).nonzero(as_tuple=True)
            local[index, at[query], :, most + offset[query, key]] = weights[query, :, row.n_global + key]
        if row.n_global:
            given = torch.cat([scores.softmax(-1) for scores in _global_scores(packed, row)], dim=1)
            from_globals[index, :, : row.n_global, positions] = given
    return (local, from_globals) if most else (local,)
