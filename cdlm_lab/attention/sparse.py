"""Exact local + global attention in linear memory, on any device and in any precision, with dropout.

A tile of the plan (see plan.py) holds some queries with all the keys they see: those of their windows and the
globals of their row, or for a global query its whole row. So one softmax a tile is the joint softmax of the
definition, with nothing to merge afterwards. A tile goes through plain matrix products over all heads at
once; the backward computes it again. Nothing of size length x length is ever held: between forward and
backward only queries, keys and values, and at work the scores of one tile.

Per score this costs two products forward and five backward, a softmax in both, and its derivative. PyTorch's
fused CPU kernel costs more (on AVX512 its backward takes twice as long in float32 and far longer in
bfloat16, and it knows no dropout), which is why it is not used.

With dropout a weight is kept if the random bits of its place say so. Forward and backward draw the same bits
from one seed, which comes from PyTorch's global generator; nothing is stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cdlm_lab.attention.plan import Piece, Plan, Tile

BITS = 15  # of a random draw: dropout is rounded to a multiple of 2**-15
AS_INTEGER = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def sparse_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    query_global: Tensor,
    key_global: Tensor,
    value_global: Tensor,
    *,
    plan: Plan,
    dropout: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Attention over packed tokens; returns the outputs of the local and of the global tokens.

    `query`: (n_local, head, dim), in `plan.local_order`; `key`, `value`, `key_global`, `value_global`:
    (n_tokens, head, dim) in `plan.order`; `query_global`: (n_global, head, dim) in `plan.global_order`; none
    scaled. `dropout`: share of the weights that are dropped. Returns (n_local, head, dim) and (n_global,
    head, dim).
    """
    local_output = attend_from_locals(query, key, value, plan=plan, dropout=dropout)
    global_output = attend_from_globals(query_global, key_global, value_global, plan=plan, dropout=dropout)
    return local_output, global_output


def attend_from_locals(
    query: Tensor, key: Tensor, value: Tensor, *, plan: Plan, dropout: float = 0.0
) -> Tensor:
    """Local queries over their windows and the globals of their row: (n_local, head, dim)."""
    return _attend(query, key, value, plan.local_tiles, dropout)


def attend_from_globals(
    query: Tensor, key: Tensor, value: Tensor, *, plan: Plan, dropout: float = 0.0
) -> Tensor:
    """Global queries over every token of their row: (n_global, head, dim)."""
    return _attend(query, key, value, plan.global_tiles, dropout)


def _attend(query: Tensor, key: Tensor, value: Tensor, tiles: Sequence[Tile], dropout: float) -> Tensor:
    if not tiles:
        return query
    seed = int(torch.randint(2**63 - 1, ())) if dropout else 0
    output: Tensor = _Tiled.apply(query, key, value, tiles, dropout, seed)
    return output


class _Tiled(torch.autograd.Function):
    """Outputs of all queries of some tiles: (n_queries, head, dim)."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        tiles: Sequence[Tile],
        dropout: float,
        seed: int,
    ) -> Tensor:
        query, key, value = map(_heads_first, (query / math.sqrt(query.shape[-1]), key, value))
        output = torch.empty_like(query)
        kept = _KeptWeights(dropout, seed, query.device)
        for tile in tiles:
            weights = _weights(tile, _of(query, tile.queries, tile), _of(key, tile.keys, tile))
            if dropout:
                _drop(weights, kept.next(weights.shape))
            _set(output, torch.bmm(weights, _of(value, tile.keys, tile)), tile)
        if dropout:
            output /= 1 - dropout
        ctx.save_for_backward(query, key, value)
        ctx.tiles, ctx.dropout, ctx.seed = tiles, dropout, seed
        return output.transpose(0, 1)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value = ctx.saved_tensors
        grad_output = _heads_first(grad_output / (1 - ctx.dropout) if ctx.dropout else grad_output)
        grad_query = torch.empty_like(query)
        # many tiles add into one gradient: in float32 at least
        sums = torch.promote_types(key.dtype, torch.float32)
        grad_key, grad_value = (torch.zeros_like(of, dtype=sums) for of in (key, value))
        kept = _KeptWeights(ctx.dropout, ctx.seed, query.device)
        for tile in ctx.tiles:
            queries, keys = _of(query, tile.queries, tile), _of(key, tile.keys, tile)
            weights = dropped = _weights(tile, queries, keys)
            grad = _of(grad_output, tile.queries, tile, zeros=True)
            of_weights = torch.bmm(grad, _of(value, tile.keys, tile).transpose(1, 2))
            if ctx.dropout:
                mask = kept.next(weights.shape)
                _drop(of_weights, mask)
                dropped = _drop(weights.clone(), mask)
            _add(grad_value, torch.bmm(dropped.transpose(1, 2), grad), tile)
            of_scores = torch.ops.aten._softmax_backward_data(of_weights, weights, -1, weights.dtype)
            _set(grad_query, torch.bmm(of_scores, keys), tile)
            _add(grad_key, torch.bmm(of_scores.transpose(1, 2), queries), tile)
        grad_query /= math.sqrt(query.shape[-1])
        gradients = (grad_query, grad_key.to(key.dtype), grad_value.to(value.dtype))
        return *(gradient.transpose(0, 1) for gradient in gradients), None, None, None


def _heads_first(packed: Tensor) -> Tensor:
    """(token, head, dim) -> (head, token, dim), in memory too: bfloat16 products are several times as fast."""
    return packed.transpose(0, 1).contiguous()


def _of(heads_first: Tensor, pieces: Sequence[Piece], tile: Tile, *, zeros: bool = False) -> Tensor:
    """A tile's queries or keys of (head, n, dim), one run after the other: (head * run, token, dim).
    `zeros`: True = 0 for the filling, which otherwise may be any tokens."""
    parts = [heads_first[:, piece.tokens] for piece in pieces]
    if zeros:
        parts = [part * 0 if piece.filling else part for part, piece in zip(parts, pieces, strict=True)]
    together = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
    return together.unflatten(1, (tile.runs, -1)).flatten(0, 1)


def _weights(tile: Tile, query: Tensor, key: Tensor) -> Tensor:
    """Softmax of a tile's scores: (head * run, query, key), summed in float32 at least."""
    scores = torch.bmm(query, key.transpose(1, 2))
    if tile.bias is not None:
        scores.unflatten(0, (-1, tile.runs)).add_(tile.bias.to(scores.dtype))
    return scores.softmax(dim=-1)


def _set(output: Tensor, of_tile: Tensor, tile: Tile) -> None:
    """Write what a tile's queries got, (head * run, query, dim), to their places in (head, n, dim)."""
    for tokens, part in _parts(of_tile, tile.queries, tile):
        output[:, tokens] = part


def _add(gradient: Tensor, of_tile: Tensor, tile: Tile) -> None:
    """Add what a tile's keys got, (head * run, key, dim), to their places in (head, n, dim)."""
    for tokens, part in _parts(of_tile, tile.keys, tile):
        gradient[:, tokens] += part


def _parts(of_tile: Tensor, pieces: Sequence[Piece], tile: Tile) -> Iterator[tuple[slice, Tensor]]:
    """What belongs to each piece, without the filling: its tokens and (head, token, dim)."""
    by_head = of_tile.unflatten(0, (-1, tile.runs)).flatten(1, 2)
    start = 0
    for tokens, filling in pieces:
        end = start + tokens.stop - tokens.start
        if not filling:
            yield tokens, by_head[:, start:end]
        start = end


class _KeptWeights:
    """Random masks, one after the other from one seed: all bits set where a weight is kept, else none."""

    def __init__(self, dropout: float, seed: int, device: torch.device) -> None:
        self._limit = round((1 - dropout) * 2**BITS)
        self._device = device
        if device.type == "cpu":
            self._bits = np.random.Generator(np.random.SFC64(seed))  # twice as fast as PyTorch's
        else:
            self._generator = torch.Generator(device).manual_seed(seed)

    def next(self, shape: torch.Size) -> Tensor:
        """int16, -1 = kept, 0 = dropped."""
        if self._device.type == "cpu":
            count = math.prod(shape)
            words = self._bits.integers(0, 2**64, -(-count // 4), dtype=np.uint64)
            draws = torch.from_numpy(words.view(np.int16))[:count]
            draws = draws.view(shape)
        else:
            limits = torch.iinfo(torch.int16)
            draws = torch.randint(
                limits.min,
                limits.max + 1,
                shape,
                dtype=torch.int16,
                device=self._device,
                generator=self._generator,
            )
        # 15 bits below the limit leave the sign bit, which is spread over all
        return draws.bitwise_and_(2**BITS - 1).sub_(self._limit).bitwise_right_shift_(15)


def _drop(weights: Tensor, kept: Tensor) -> Tensor:
    """Put dropped weights to 0, in place."""
    weights.view(AS_INTEGER[weights.element_size()]).bitwise_and_(kept)
    return weights
