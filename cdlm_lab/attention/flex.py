"""Exact local + global attention on CUDA: one FlexAttention call over the packed batch, skipping blocks
without visible pairs.

All rows are concatenated in the compact order (see plan.py), so one call serves a ragged batch. A block table
says which 128 x 128 tiles contain any visible pair, and which nothing else, so that no pair is asked about: a
row's globals fill the first tiles of its keys, its windows lie on the diagonal. The table is made from the
plan's intervals; no length x length mask is built.
Global queries attend to their whole row without a mask, which PyTorch's own fused attention does.

FlexAttention has no backward on the CPU: there it only serves as a check of the table (forward, uncompiled).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch._dynamo import config
from torch._dynamo.exc import FailOnRecompileLimitHit
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from cdlm_lab.attention.plan import Plan, Projections
from cdlm_lab.attention.sparse import attend_from_globals

TILE = 128
MOST_KINDS = 64  # of inputs that FlexAttention is compiled for; torch's own limit is 8


def flex_packed_attention(packed: Projections, *, plan: Plan) -> tuple[Tensor, Tensor]:
    """Outputs of the local and of the global tokens, from projections packed in the plan's orders."""
    local_output = packed.query
    if "block_mask" not in plan.kept:  # made by the first layer, for all
        plan.kept["block_mask"] = make_block_mask(plan)
    if (block_mask := plan.kept["block_mask"]) is not None:
        kernel = fused_flex_attention if packed.query.is_cuda else flex_attention
        heads_first = (one.transpose(0, 1).unsqueeze(0) for one in packed[:3])
        local_output = kernel(*heads_first, block_mask=block_mask)[0].transpose(0, 1)
    return local_output, attend_from_globals(*packed[3:], plan=plan)


def fused_flex_attention(
    *inputs: Tensor, block_mask: BlockMask, backend: str | Callable = "inductor"
) -> Tensor:
    """FlexAttention compiled for any length, once per process for each kind of input: number of heads, their
    size, dtype, and whether there are gradients. Raises RuntimeError for more kinds than MOST_KINDS: a kind
    that is not compiled would need memory for all scores. `backend`: what compiles, for `torch.compile`."""
    try:
        with config.patch(recompile_limit=MOST_KINDS):
            return _compiled(backend)(*inputs, block_mask=block_mask)
    except FailOnRecompileLimitHit as error:
        raise RuntimeError(
            f"FlexAttention is compiled for {MOST_KINDS} kinds of inputs (heads, head size, dtype, gradient) "
            "in this process, and this is another; start a new process, or choose attention 'sparse'"
        ) from error


@cache
def _compiled(backend: str | Callable) -> Callable[..., Tensor]:
    # without `fullgraph`, a kind beyond the limit is computed unfused, in silence
    return torch.compile(flex_attention, dynamic=True, fullgraph=True, backend=backend)


@torch.no_grad()
def make_block_mask(plan: Plan) -> BlockMask | None:
    """The tiles and pairs that the local queries of a batch attend to; None without local tokens."""
    if len(plan.local_places) == 0:
        return None
    device, seq = plan.order.device, plan.shape[1]
    query_row, query_position = plan.local_order // seq, plan.local_order % seq
    key_row, key_position = plan.order // seq, plan.order % seq
    key_is_global = torch.zeros_like(plan.order, dtype=torch.bool).index_fill_(0, plan.global_places, True)
    half = plan.window // 2

    def sees(_batch: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        near = (query_position[query] - key_position[key]).abs() <= half
        sees = (query_row[query] == key_row[key]) & (near | key_is_global[key])
        if plan.cut is None:
            return sees
        return sees & ~plan.cut[query_row[query], query_position[query], key_position[key]]

    whole = whole_tiles(plan)
    of_part, of_whole = (_listed(tiles, device) for tiles in (visible_tiles(plan) & ~whole, whole))
    return BlockMask.from_kv_blocks(
        *of_part,
        *of_whole,
        BLOCK_SIZE=TILE,
        mask_mod=sees,
        seq_lengths=(len(plan.local_places), len(plan.order)),
    )


def _listed(tiles: Tensor, device: torch.device) -> list[Tensor]:
    """The number of tiles of each row of a table, (1, 1, query tile), and their columns, (1, 1, query tile,
    key tile), in order; the rest is never read."""
    columns = tiles.to(torch.int8).argsort(dim=1, descending=True, stable=True)
    lists = (tiles.sum(dim=1), columns)
    return [of.to(torch.int32)[None, None].to(device, non_blocking=True) for of in lists]


def visible_tiles(plan: Plan) -> Tensor:
    """(query tile, key tile) bool on the CPU: True where any local query attends to any key."""
    tiles = _no_tiles(plan)
    for row in plan.rows:
        for run in row.runs:
            first, last = run.queries.start // TILE, (run.queries.stop - 1) // TILE
            for keys in run.keys:
                tiles[first : last + 1, keys.start // TILE : (keys.stop - 1) // TILE + 1] = True
    return torch.from_numpy(tiles)


def whole_tiles(plan: Plan) -> Tensor:
    """(query tile, key tile) bool on the CPU: True where every local query attends to every key."""
    tiles = _no_tiles(plan)
    for row in plan.rows if plan.cut is None else ():  # a tile of two rows is not whole
        globals_, end = row.globals_, row.local_start + row.n_local
        for number in range(-(-row.local_start // TILE), end // TILE):
            first, last = plan.reach[number * TILE : (number + 1) * TILE].T
            seen = [(globals_.start, globals_.stop), (first.max(), last.min())]
            if first.max() == globals_.stop:  # globals stand directly before locals
                seen = [(globals_.start, last.min())]
            for start, stop in seen:
                tiles[number, -(-start // TILE) : stop // TILE] = True
    return torch.from_numpy(tiles)


def _no_tiles(plan: Plan) -> np.ndarray:
    return np.zeros((-(-len(plan.local_places) // TILE), -(-len(plan.order) // TILE)), dtype=bool)
