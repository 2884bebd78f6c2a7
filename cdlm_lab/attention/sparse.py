"""Exact local + global attention in linear memory, on any device and in any precision, with dropout.

A tile of the plan has some queries with all the keys they attend to. So one softmax per tile is the joint
softmax of the definition, and dropout of its weights is the dropout of the definition. Nothing of size length
x length is ever stored: between forward and backward only queries, keys and values (and outputs), and during
computation the scores of one tile, which the backward computes again.

Which code computes a tile, by measured speed:

- on the CPU without dropout in float32, or without gradients: PyTorch's fused kernel (in float32 10 ns for a
  score and its gradient against 14, heads of 64 dimensions, one core with AVX512; in bfloat16 0.9 ns for a
  score against 1.8, heads of 32);
- otherwise on the CPU: matrix products over all heads at once (in bfloat16 5 ns for a score and its gradient
  against 13);
- on other devices: PyTorch's `scaled_dot_product_attention`, which on CUDA is fused, with dropout too, one
  call for all runs of similar size, whose queries and keys are gathered, and again in the backward. (Slices
  of single tiles, each with a gradient of the size of the batch, would cost its square.)

On the CPU random bits at each weight's place decide whether it is kept. Forward and backward draw the same
bits from one seed, which comes from PyTorch's global generator; nothing is stored.

A few global tokens can attend without projecting keys and values of all tokens: with W_k, b_k, W_v, b_v of
one head's rows of the global projections and h_i the state of token i,

    q . (W_k h_i + b_k) = (W_k^T q) . h_i + q . b_k
    sum_i p_i (W_v h_i + b_v) = W_v (sum_i p_i h_i) + b_v

where the second line holds because weights sum to 1, so not with dropout. Instead of every token, only the
queries and their sums are projected, once per head: cheaper while a text has fewer global tokens than a head
has dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import scaled_dot_product_attention

from cdlm_lab.attention.plan import SIDE, Gathered, Piece, Plan, Projections, Tile

BITS = 15  # of a random draw: dropout is rounded to a multiple of 2**-15
AS_INTEGER = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def sparse_attention(packed: Projections, *, plan: Plan, dropout: float = 0.0) -> tuple[Tensor, Tensor]:
    """Attention over packed tokens: the outputs of the local and of the global tokens, in the shapes of their
    queries. `dropout`: fraction of the weights that are dropped."""
    local_output = attend_from_locals(*packed[:3], plan=plan, dropout=dropout)
    return local_output, attend_from_globals(*packed[3:], plan=plan, dropout=dropout)


def attend_from_locals(
    query: Tensor, key: Tensor, value: Tensor, *, plan: Plan, dropout: float = 0.0
) -> Tensor:
    """Attend from local queries to their windows and the globals of their row: (n_local, head, dim)."""
    if query.device.type != "cpu":
        return by_gathering(query, key, value, plan.gathered_locals, dropout)
    return _attend(query, key, value, plan.local_tiles, dropout)


def by_gathering(
    query: Tensor, key: Tensor, value: Tensor, groups: Sequence[Gathered], dropout: float
) -> Tensor:
    """The outputs of all queries of some groups, (n_queries, head, dim), a product a group."""
    if not groups:
        return query
    seed = int(torch.randint(2**63 - 1, ())) if dropout else 0
    output: Tensor = _OfGroups.apply(query, key, value, groups, dropout, seed)
    return output


def attend_from_globals(
    query: Tensor, key: Tensor, value: Tensor, *, plan: Plan, dropout: float = 0.0
) -> Tensor:
    """Attend from global queries to every token of their row: (n_global, head, dim)."""
    if query.device.type != "cpu":
        return by_gathering(query, key, value, plan.gathered_globals, dropout)
    tiles = plan.global_tiles_with_dropout if dropout else plan.global_tiles
    return _attend(query, key, value, tiles, dropout)


def _attend(query: Tensor, key: Tensor, value: Tensor, tiles: Sequence[Tile], dropout: float) -> Tensor:
    if not tiles:
        return query
    output: Tensor
    half = query.dtype in (torch.bfloat16, torch.float16)
    if dropout or (half and torch.is_grad_enabled()):
        seed = int(torch.randint(2**63 - 1, ())) if dropout else 0
        output = _Products.apply(query, key, value, tiles, dropout, seed)
    else:
        output = _Fused.apply(query, key, value, tiles)
    return output


class _OfGroups(torch.autograd.Function):
    """What `by_gathering` returns. The backward computes every group again, with the same random weights, and
    adds its gradients to those of keys and values in float32 at least."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        groups: Sequence[Gathered],
        dropout: float,
        seed: int,
    ) -> Tensor:
        output = torch.empty_like(query)
        with _drawing_from(seed, query.device, dropout):
            for group in groups:
                of_group = _of_group(*_gathered(query, key, value, group), group, dropout)
                output.index_copy_(0, _real(group.queries, group), _real(of_group, group))
        ctx.save_for_backward(query, key, value)
        ctx.groups, ctx.dropout, ctx.seed = groups, dropout, seed
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        inputs = ctx.saved_tensors
        sums = torch.promote_types(inputs[0].dtype, torch.float32)
        gradients = [torch.zeros_like(of, dtype=sums) for of in inputs]
        with _drawing_from(ctx.seed, grad_output.device, ctx.dropout), torch.enable_grad():
            for group in ctx.groups:
                gathered = [part.requires_grad_() for part in _gathered(*inputs, group)]
                of_group = _real(_of_group(*gathered, group, ctx.dropout), group)
                wanted = grad_output.index_select(0, _real(group.queries, group))
                places = (group.queries, group.keys, group.keys)
                parts = torch.autograd.grad(of_group, gathered, wanted)
                for gradient, place, part in zip(gradients, places, parts, strict=True):
                    gradient.index_add_(0, place.flatten(), part.flatten(0, 1).to(sums))
        cast = (gradient.to(of.dtype) for gradient, of in zip(gradients, inputs, strict=True))
        return *cast, None, None, None


def _gathered(query: Tensor, key: Tensor, value: Tensor, group: Gathered) -> list[Tensor]:
    """The queries, keys and values of a group, (run, token, head, dim)."""
    places = (group.queries, group.keys, group.keys)
    each = zip((query, key, value), places, strict=True)
    return [of.index_select(0, place.flatten()).unflatten(0, place.shape) for of, place in each]


def _of_group(query: Tensor, key: Tensor, value: Tensor, group: Gathered, dropout: float) -> Tensor:
    """The outputs of a group's queries, (run, query, head, dim)."""
    heads_first = (of.transpose(1, 2) for of in (query, key, value))
    attended = scaled_dot_product_attention(*heads_first, attn_mask=group.visible, dropout_p=dropout)
    return attended.transpose(1, 2)


def _real(of_group: Tensor, group: Gathered) -> Tensor:
    """Of (run, query, ...) those of the queries that are no filling, (n, ...)."""
    flat = of_group.flatten(0, 1)
    return flat if group.real is None else flat.index_select(0, group.real)


@contextmanager
def _drawing_from(seed: int, device: torch.device, dropout: float) -> Iterator[None]:
    """Let the random numbers of a device start from a seed inside the block, if there are any."""
    if not dropout:
        yield
        return
    devices = [] if device.type == "cpu" else [device]
    with torch.random.fork_rng(devices=devices, device_type=device.type if devices else "cuda"):
        (torch.get_device_module(device) if devices else torch.default_generator).manual_seed(seed)
        yield


class _Fused(torch.autograd.Function):
    """Outputs of all queries of some tiles, (n_queries, head, dim), by the CPU's fused kernel."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, tiles: Sequence[Tile]) -> Tensor:
        query, key, value = map(_heads_first, (query, key, value))
        output = torch.empty_like(query)
        log_sum_exps = []
        for tile in tiles:
            of_tile, log_sum_exp = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
                _of(query, tile.queries, tile),
                _of(key, tile.keys, tile),
                _of(value, tile.keys, tile),
                attn_mask=_bias(tile, query.dtype),
            )
            _set(output, of_tile, tile)
            log_sum_exps.append(log_sum_exp)
        ctx.save_for_backward(query, key, value, output, *log_sum_exps)
        ctx.tiles = tiles
        return output.transpose(0, 1)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, output, *log_sum_exps = ctx.saved_tensors
        grad_output = _heads_first(grad_output)
        gradients = (torch.empty_like(query), torch.zeros_like(key), torch.zeros_like(value))
        for tile, log_sum_exp in zip(ctx.tiles, log_sum_exps, strict=True):
            parts = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
                _of(grad_output, tile.queries, tile, zeros=True),
                _of(query, tile.queries, tile),
                _of(key, tile.keys, tile),
                _of(value, tile.keys, tile),
                _of(output, tile.queries, tile),
                log_sum_exp,
                0.0,
                False,
                attn_mask=_bias(tile, query.dtype),
            )
            for write, gradient, part in zip((_set, _add, _add), gradients, parts, strict=True):
                write(gradient, part, tile)
        return *(gradient.transpose(0, 1) for gradient in gradients), None


class _Products(torch.autograd.Function):
    """Outputs of all queries of some tiles, (n_queries, head, dim), by matrix products."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, tiles: Sequence[Tile], dropout: float, seed: int
    ) -> Tensor:
        query, key, value = map(_heads_first, (query / math.sqrt(query.shape[-1]), key, value))
        output = torch.empty_like(query)
        kept = _KeptWeights(dropout, seed)
        for tile in tiles:
            weights = _weights(tile, _of(query, tile.queries, tile), _of(key, tile.keys, tile))
            if dropout:
                _drop(weights, kept.next(weights.shape))
            _set(output, _product(weights, _of(value, tile.keys, tile)), tile)
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
        # many tiles add to one gradient: in float32 at least
        sums = torch.promote_types(key.dtype, torch.float32)
        grad_key, grad_value = (torch.zeros_like(of, dtype=sums) for of in (key, value))
        kept = _KeptWeights(ctx.dropout, ctx.seed)
        for tile in ctx.tiles:
            queries, keys = _of(query, tile.queries, tile), _of(key, tile.keys, tile)
            grad = _of(grad_output, tile.queries, tile, zeros=True)
            weights = dropped = _weights(tile, queries, keys)
            of_weights = _product(grad, _of(value, tile.keys, tile).mT)
            if ctx.dropout:
                mask = kept.next(weights.shape)
                _drop(of_weights, mask)
                dropped = _drop(weights.clone(), mask)
            _add(grad_value, _product(dropped.mT, grad), tile)
            of_scores = torch.ops.aten._softmax_backward_data(of_weights, weights, -1, weights.dtype)
            _set(grad_query, _product(of_scores, keys), tile)
            _add(grad_key, _product(of_scores.mT, queries), tile)
        grad_query /= math.sqrt(query.shape[-1])
        gradients = (grad_query, grad_key.to(key.dtype), grad_value.to(value.dtype))
        return *(gradient.transpose(0, 1) for gradient in gradients), None, None, None


def _heads_first(packed: Tensor) -> Tensor:
    """(token, head, dim) -> (head, token, dim), also in memory: bfloat16 products get much faster."""
    return packed.transpose(0, 1).contiguous()


def _of(heads_first: Tensor, pieces: Sequence[Piece], tile: Tile, *, zeros: bool = False) -> Tensor:
    """The queries or keys of a tile, (head, run, token, dim), from (head, n, dim). `zeros`: True = the
    filling is 0; otherwise it is arbitrary tokens."""
    parts = [
        torch.zeros_like(part) if zeros and filling else part
        for tokens, filling in pieces
        for part in [heads_first[:, tokens]]
    ]
    together = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
    return together.unflatten(1, (tile.runs, -1))


def _bias(tile: Tile, dtype: torch.dtype) -> Tensor | None:
    """(1, run, query, key), the same for all heads; None if all attend to all."""
    return None if tile.bias is None else tile.bias.to(dtype)[None]


def _weights(tile: Tile, query: Tensor, key: Tensor) -> Tensor:
    """Softmax of a tile's scores, (head, run, query, key), summed in float32 at least."""
    scores = _product(query, key.mT)
    if (bias := _bias(tile, scores.dtype)) is not None:
        scores += bias
    return scores.softmax(dim=-1)


def _product(left: Tensor, right: Tensor) -> Tensor:
    """(head, run, i, j) x (head, run, j, k) -> (head, run, i, k)."""
    return torch.bmm(left.flatten(0, 1), right.flatten(0, 1)).unflatten(0, left.shape[:2])


def _set(output: Tensor, of_tile: Tensor, tile: Tile) -> None:
    """Write the results for a tile's queries, (head, run, query, dim), to their places in (head, n, dim)."""
    for tokens, part in _parts(of_tile, tile.queries):
        output[:, tokens] = part


def _add(gradient: Tensor, of_tile: Tensor, tile: Tile) -> None:
    """Add the results for a tile's keys, (head, run, key, dim), to their places in (head, n, dim)."""
    for tokens, part in _parts(of_tile, tile.keys):
        gradient[:, tokens] += part


def _parts(of_tile: Tensor, pieces: Sequence[Piece]) -> Iterator[tuple[slice, Tensor]]:
    """For each piece except filling: its tokens and their part of the tile, (head, token, dim)."""
    by_head = of_tile.flatten(1, 2)
    start = 0
    for tokens, filling in pieces:
        end = start + tokens.stop - tokens.start
        if not filling:
            yield tokens, by_head[:, start:end]
        start = end


class _KeptWeights:
    """A sequence of random masks from one seed: all bits set where a weight is kept, else none."""

    def __init__(self, dropout: float, seed: int) -> None:
        self._limit = round((1 - dropout) * 2**BITS)
        self._bits = np.random.Generator(np.random.SFC64(seed))  # twice as fast as PyTorch's

    def next(self, shape: torch.Size) -> Tensor:
        """int16, -1 = kept, 0 = dropped."""
        count = math.prod(shape)
        words = self._bits.integers(0, 2**64, -(-count // 4), dtype=np.uint64)
        draws = torch.from_numpy(words.view(np.int16))[:count].view(shape)
        # 15 bits below the limit become negative: the shift copies the sign bit to all
        return draws.bitwise_and_(2**BITS - 1).sub_(self._limit).bitwise_right_shift_(15)


def _drop(weights: Tensor, kept: Tensor) -> Tensor:
    """Set dropped weights to 0, in place."""
    weights.view(AS_INTEGER[weights.element_size()]).bitwise_and_(kept)
    return weights


SHARE = 0.7  # of a head's dimensions; with fewer global tokens per text, it is faster by a margin


def globals_are_few(plan: Plan, *, head_size: int) -> bool:
    """True if there are globals, and attending without projected keys and values is faster for this batch."""
    texts = sum(1 for row in plan.rows if row.n_global)
    return plan.cut is None and 0 < len(plan.global_order) <= SHARE * head_size * texts


def attend_from_few_globals(
    query: Tensor, states: Tensor, *, key: nn.Linear, value: nn.Linear, plan: Plan
) -> Tensor:
    """The same result as `attend_from_globals`, (n_global, head, dim), from unscaled queries of that shape
    and the `states` (n_tokens, embed) before their projections `key` and `value`."""
    _, heads, size = query.shape
    scaled = query.transpose(0, 1) / math.sqrt(size)  # (head, n_global, dim)
    wanted = torch.bmm(scaled, key.weight.view(heads, size, -1))  # (head, n_global, embed)
    if key.bias is not None:  # the same for all keys: the softmax cancels it, but its gradient is needed
        offset = torch.bmm(scaled, key.bias.view(heads, size, 1))  # (head, n_global, 1)
    else:
        offset = scaled.new_zeros(heads, len(query), 1)
    sums = []
    for row in plan.rows:
        if row.n_global:
            of_row = slice(row.global_start, row.global_start + row.n_global)
            count = row.n_global + row.n_local
            of_tokens = states[row.start : row.start + count + -count % SIDE]
            sums.append(_sums_of_row(wanted[:, of_row], offset[:, of_row], of_tokens, count))
    outputs = torch.bmm(torch.cat(sums, dim=1), value.weight.view(heads, size, -1).transpose(1, 2))
    if value.bias is not None:
        outputs = outputs + value.bias.view(heads, 1, size)
    return outputs.to(query.dtype).transpose(0, 1)


def _sums_of_row(wanted: Tensor, offset: Tensor, states: Tensor, count: int) -> Tensor:
    """The weighted sums of the first `count` of `states` (tokens, embed): (head, n_global, embed)."""
    scores = torch.addmm(offset.reshape(-1, 1), wanted.flatten(0, 1), states.T)
    scores[:, count:] = -math.inf
    return (scores.softmax(dim=-1) @ states).view(wanted.shape)
