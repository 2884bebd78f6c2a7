"""The compact order: which token stands where, computed once for a batch and shared by all layers.

Each row of a batch is written as [its global tokens, its local tokens in text order], padding left out, and
rows are laid end to end. In this order the keys of a local query are two slices: the row's globals, and one
contiguous run of locals, because locals keep their order. Nothing is gathered inside a kernel, no column is
padded to the heaviest row, and rows of unequal length waste nothing.

Two neighbours in the compact order can be far apart in the text (a global token or padding stood between
them), so windows are always worked out from true text positions. What is computed at once is a tile: one or
several short runs of queries, of one text or of several, each with the keys it sees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

# Scores of one head that a tile may hold: larger ones fall out of the cache, smaller ones cost Python's time.
TILE_SCORES = 2**17
# Global queries of a row in one tile: many at once are faster, with dropout few, which stay in the cache.
GLOBAL_QUERIES = 1024
GLOBAL_QUERIES_WITH_DROPOUT = 64
# A run is put beside others of another size while the tile has at most so many times the scores of its runs.
TILE_WASTE = 1.15


@dataclass(frozen=True)
class Block:
    """A run of local queries of one row and the run of local keys that covers all their windows: half-open
    ranges among the row's local tokens."""

    query_start: int
    query_end: int
    key_start: int
    key_end: int
    bias: Tensor | None  # (query, key) float32, 0 in the query's window and -inf elsewhere; None = all 0


@dataclass(frozen=True)
class Row:
    """One example: where its tokens stand in the packed tensors."""

    start: int  # first token in the packed order
    n_global: int
    n_local: int
    local_start: int  # first token among all local tokens of the batch
    global_start: int  # first token among all global tokens of the batch
    positions: Tensor  # (n_local,) text positions of the local tokens, ascending
    blocks: tuple[Block, ...]

    @property
    def tokens(self) -> slice:
        """The row's tokens in the packed order: globals, then locals."""
        return slice(self.start, self.start + self.n_global + self.n_local)

    @property
    def globals_(self) -> slice:
        """The row's global tokens in the packed order."""
        return slice(self.start, self.start + self.n_global)

    def locals_(self, start: int, end: int) -> slice:
        """The row's local tokens `start` to `end` (half-open) in the packed order."""
        return slice(self.start + self.n_global + start, self.start + self.n_global + end)


@dataclass(frozen=True)
class _Run:
    """Neighbouring queries and the keys that they see: `queries`: a slice of the local (or the global) tokens
    of the batch; `keys`: slices of the packed order; `bias`: (query, key), None = each sees all."""

    queries: slice
    keys: tuple[slice, ...]
    bias: Tensor | None = None

    @property
    def query_count(self) -> int:
        return _length(self.queries)

    @property
    def key_count(self) -> int:
        return sum(map(_length, self.keys))


class Piece(NamedTuple):
    """Neighbouring tokens inside a tile; those of a filling are any that make up the number."""

    tokens: slice
    filling: bool = False


@dataclass(frozen=True)
class Tile:
    """Runs of queries with their keys, all filled up to one size, computed as one product."""

    runs: int  # how many
    queries: tuple[Piece, ...]  # of the local (or the global) tokens of the batch, one run after the other
    keys: tuple[Piece, ...]  # of the packed order, likewise
    bias: Tensor | None  # (run, query, key) float32, 0 or -inf; None when each query sees each key


@dataclass(frozen=True)
class Plan:
    """The compact order of a batch of `shape` (batch, seq)."""

    shape: tuple[int, int]
    window: int
    order: Tensor  # (n_tokens,) flat indices into batch * seq, in packed order
    local_order: Tensor  # the same of the local tokens alone, row after row
    global_order: Tensor  # and of the global ones
    rows: tuple[Row, ...]

    @cached_property
    def local_tiles(self) -> tuple[Tile, ...]:
        """What the local queries see: their windows and the globals of their row."""
        return _tiles(_local_runs(self.rows), device=self.order.device)

    @cached_property
    def global_tiles(self) -> tuple[Tile, ...]:
        """What the global queries see: their whole row."""
        return _tiles(_global_runs(self.rows, GLOBAL_QUERIES), device=self.order.device)

    @cached_property
    def global_tiles_with_dropout(self) -> tuple[Tile, ...]:
        """The same in smaller tiles, for weights that are dropped at random on the CPU."""
        return _tiles(_global_runs(self.rows, GLOBAL_QUERIES_WITH_DROPOUT), device=self.order.device)

    @property
    def pairs(self) -> int:
        """Query-key pairs of one head that the definition asks for (masked corners of blocks not counted)."""
        total = 0
        for row in self.rows:
            lower, upper = _window_bounds(row.positions, window=self.window)
            total += int((upper - lower).sum()) + row.n_global * (2 * row.n_local + row.n_global)
        return total


def make_plan(*, attention_mask: Tensor, global_mask: Tensor, window: int, block: int | None = None) -> Plan:
    """Work out the compact order of a batch.

    `attention_mask`, `global_mask`: (batch, seq) bool; True = takes part, True = global. A global token that
    is padding is padding. `window`: total width, even; a local token sees window // 2 tokens on each side.
    `block`: queries of one run; by default half the window, at least 32 and at most 128. Raises ValueError
    for masks of other shapes or types, or an odd or non-positive window.
    """
    check_masks(attention_mask, global_mask)
    check_window(window)
    block = block or min(128, max(32, window // 2))
    (batch, seq), device = attention_mask.shape, attention_mask.device
    # Loops over rows and blocks want plain integers: one copy to the CPU here spares one per layer and block.
    present = attention_mask.cpu()
    is_global = global_mask.cpu() & present
    rows, global_orders, local_orders = [], [], []
    global_start = local_start = 0
    for index in range(batch):
        of_globals = is_global[index].nonzero().flatten()
        of_locals = (present[index] & ~is_global[index]).nonzero().flatten()
        rows.append(
            Row(
                start=global_start + local_start,
                n_global=len(of_globals),
                n_local=len(of_locals),
                local_start=local_start,
                global_start=global_start,
                positions=of_locals,
                blocks=_blocks(of_locals, window=window, block=block, device=device),
            )
        )
        global_start += len(of_globals)
        local_start += len(of_locals)
        global_orders.append(of_globals + index * seq)
        local_orders.append(of_locals + index * seq)
    order = [of for both in zip(global_orders, local_orders, strict=True) for of in both]
    return Plan(
        shape=(batch, seq),
        window=window,
        order=torch.cat(order).to(device),
        local_order=torch.cat(local_orders).to(device),
        global_order=torch.cat(global_orders).to(device),
        rows=tuple(rows),
    )


def check_window(window: int) -> None:
    """Raise ValueError unless `window` is a positive even number."""
    if window < 2 or window % 2:
        raise ValueError(
            f"window ({window}) must be even and at least 2: it is window // 2 tokens on each side"
        )


def check_masks(attention_mask: Tensor, global_mask: Tensor) -> None:
    """Raise ValueError unless both masks are bool and of one (batch, seq) shape."""
    if attention_mask.dtype != torch.bool or global_mask.dtype != torch.bool:
        raise ValueError(
            f"masks must be bool (True = takes part), got {attention_mask.dtype} and {global_mask.dtype}"
        )
    if attention_mask.dim() != 2 or attention_mask.shape != global_mask.shape:
        raise ValueError(
            f"attention_mask {tuple(attention_mask.shape)} and global_mask {tuple(global_mask.shape)} "
            "must both be (batch, seq)"
        )


def _window_bounds(positions: Tensor, *, window: int) -> tuple[Tensor, Tensor]:
    """For each local token the half-open range of local tokens within window // 2 of it. (n_local,) twice."""
    lower = torch.searchsorted(positions, positions - window // 2)
    upper = torch.searchsorted(positions, positions + window // 2, right=True)
    return lower, upper


def _blocks(positions: Tensor, *, window: int, block: int, device: torch.device) -> tuple[Block, ...]:
    """Cut the local tokens of a row into blocks of queries."""
    if len(positions) == 0:
        return ()
    lower, upper = _window_bounds(positions, window=window)
    made = []
    bias_of: dict[bytes, Tensor] = {}  # interior blocks of dense text share one: keep it once
    for start in range(0, len(positions), block):
        end = min(start + block, len(positions))
        first, last = int(lower[start]), int(upper[end - 1])
        distance = positions[start:end, None] - positions[None, first:last]
        outside = distance.abs() > window // 2
        bias = None
        if outside.any():
            key = bytes(outside.shape[1].to_bytes(4, "little")) + outside.numpy().tobytes()
            if key not in bias_of:
                zeros = torch.zeros(outside.shape, dtype=torch.float32)
                bias_of[key] = zeros.masked_fill(outside, float("-inf")).to(device)
            bias = bias_of[key]
        made.append(Block(query_start=start, query_end=end, key_start=first, key_end=last, bias=bias))
    return tuple(made)


def _local_runs(rows: tuple[Row, ...]) -> Iterator[_Run]:
    for row in rows:
        for block in row.blocks:
            bias = block.bias
            if bias is not None:  # every query sees every global
                bias = torch.nn.functional.pad(bias, (row.n_global, 0))
            window = row.locals_(block.key_start, block.key_end)
            yield _Run(
                queries=slice(row.local_start + block.query_start, row.local_start + block.query_end),
                keys=(row.globals_, window) if row.n_global else (window,),
                bias=bias,
            )


def _global_runs(rows: tuple[Row, ...], queries: int) -> Iterator[_Run]:
    for row in rows:
        if row.n_global:
            most = max(queries, TILE_SCORES // (row.n_global + row.n_local))
            end = row.global_start + row.n_global
            for start in range(row.global_start, end, most):
                yield _Run(queries=slice(start, min(start + most, end)), keys=(row.tokens,))


def _tiles(runs: Iterator[_Run], *, device: torch.device) -> tuple[Tile, ...]:
    """Put neighbouring runs of about one size into one tile each."""
    together: list[list[_Run]] = []
    for run in runs:
        if together and _fit([*together[-1], run]):
            together[-1].append(run)
        else:
            together.append([run])
    return tuple(_tile(runs, device=device) for runs in together)


def _fit(runs: list[_Run]) -> bool:
    scores = len(runs) * max(run.query_count for run in runs) * max(run.key_count for run in runs)
    needed = sum(run.query_count * run.key_count for run in runs)
    return scores <= min(TILE_SCORES, TILE_WASTE * needed)


def _tile(runs: list[_Run], *, device: torch.device) -> Tile:
    most_queries = max(run.query_count for run in runs)
    most_keys = max(run.key_count for run in runs)
    queries, keys = [], []
    for run in runs:
        queries += _filled((run.queries,), most_queries)
        keys += _filled(run.keys, most_keys)
    bias = _bias(runs, most_queries, most_keys, device=device)
    return Tile(runs=len(runs), queries=tuple(queries), keys=tuple(keys), bias=bias)


def _filled(pieces: tuple[slice, ...], length: int) -> list[Piece]:
    missing = length - sum(map(_length, pieces))
    return [Piece(tokens) for tokens in pieces] + [Piece(slice(0, missing), filling=True)] * (missing > 0)


def _bias(runs: list[_Run], most_queries: int, most_keys: int, *, device: torch.device) -> Tensor | None:
    if all(run.bias is None and run.key_count == most_keys for run in runs):
        return None
    bias = torch.zeros(len(runs), most_queries, most_keys, device=device)
    for of_run, run in zip(bias, runs, strict=True):
        if run.bias is not None:
            of_run[: run.query_count, : run.key_count] = run.bias
        of_run[:, run.key_count :] = float("-inf")
    return bias


def _length(tokens: slice) -> int:
    return int(tokens.stop - tokens.start)
