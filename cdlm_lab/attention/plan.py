"""The compact order of a batch's tokens, computed once per batch, best where the batch is made, and shared by
all layers.

Each row of a batch is written as [its global tokens, its local tokens in text order], without padding, and
rows are concatenated. In this order the keys of a local query are two slices: the row's globals, and one
contiguous run of locals, because locals keep their order. Nothing is gathered inside a kernel, no column is
padded to the row with most tokens, and rows of unequal length waste nothing.

Two neighbours in the compact order can be far apart in the text (a global token or padding was between them),
so windows are always computed from true text positions. The unit of computation is a tile: one or several
short runs of queries, from one or several texts, each with the keys it attends to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

# Maximum scores per head in a tile: larger tiles do not fit into the cache, smaller ones have more overhead.
TILE_SCORES = 2**17
# Global queries of a row in one tile: many at once are faster, while `memory_kept` keeps their scores (in
# bfloat16 with 12 heads and 4,096 tokens 24 MiB; 614 at once have 58, zeroed anew); with dropout few.
GLOBAL_QUERIES = 256
GLOBAL_QUERIES_WITH_DROPOUT = 64
# Runs of unequal size share a tile if it has at most this many times the scores of the runs themselves.
TILE_WASTE = 1.15
# Sides of products are rounded up to multiples of this: oneDNN compiles a product for every shape, which
# takes longer than the product itself, and keeps no more than the latest 1,024.
SIDE = 16


class Projections(NamedTuple):
    """Queries, keys and values, none scaled: packed (token, head, dim), or (batch, seq, head, dim)."""

    query: Tensor  # of the local tokens
    key: Tensor  # this and the next of all tokens, for local queries
    value: Tensor
    query_global: Tensor  # of the global tokens
    key_global: Tensor  # of all tokens, for global queries
    value_global: Tensor


@dataclass(frozen=True)
class Run:
    """Adjacent queries with the keys that they attend to."""

    queries: slice  # of the local (or the global) tokens of the batch
    keys: tuple[slice, ...]  # of the packed order; none is empty
    # Text positions of the queries and of the local keys, and how far a query attends; None = all to all.
    near: tuple[np.ndarray, np.ndarray, int] | None = None
    cut: Tensor | None = None  # (query, key) bool, True = does not attend; None = nothing is cut

    @property
    def bias(self) -> Tensor | None:
        """(query, key) float32, 0 = attends, -inf = does not; None = all attend to all. Made when it is read,
        on the CPU or where the cut is: FlexAttention needs none."""
        if self.is_full:
            return None
        bias = torch.zeros(self.query_count, self.key_count)  # all see every global
        if self.near is not None:
            queries, keys, side = self.near
            far = torch.from_numpy(np.abs(queries[:, None] - keys) > side)
            bias[:, -len(keys) :].masked_fill_(far, float("-inf"))
        return bias if self.cut is None else bias.to(self.cut.device).masked_fill_(self.cut, float("-inf"))

    @property
    def is_full(self) -> bool:
        """True if every query attends to every key."""
        return self.near is None and self.cut is None

    @cached_property
    def query_count(self) -> int:
        """The number of queries."""
        return _length(self.queries)

    @cached_property
    def key_count(self) -> int:
        """The number of keys."""
        return sum(map(_length, self.keys))

    @property
    def pairs(self) -> int:
        """The number of pairs of a query and a key that it attends to."""
        return self.query_count * self.key_count if (bias := self.bias) is None else int((bias == 0).sum())


@dataclass(frozen=True)
class Row:
    """One example: the places of its tokens in the packed tensors."""

    start: int  # first token in the packed order
    n_global: int
    n_local: int
    local_start: int  # first token among all local tokens of the batch
    global_start: int  # first token among all global tokens of the batch
    runs: tuple[Run, ...]  # of its local tokens; each attends to the row's globals and some locals
    cut: Tensor | None = None  # (query, key) bool of its tokens in the packed order; None = nothing is cut

    @property
    def tokens(self) -> slice:
        """The row's tokens in the packed order: globals, then locals."""
        return slice(self.start, self.start + self.n_global + self.n_local)

    @property
    def globals_(self) -> slice:
        """The row's global tokens in the packed order."""
        return slice(self.start, self.start + self.n_global)


class Piece(NamedTuple):
    """Adjacent tokens inside a tile; a piece with `filling` is padding, and its tokens are arbitrary."""

    tokens: slice
    filling: bool = False


@dataclass(frozen=True)
class Tile:
    """Runs of queries with their keys, all padded to one size and computed as one product."""

    runs: int  # number of runs
    queries: tuple[Piece, ...]  # of the local (or the global) tokens of the batch, one run after the other
    keys: tuple[Piece, ...]  # of the packed order, likewise
    bias: Tensor | None  # (run, query, key) float32, 0 or -inf; None if all attend to all


@dataclass(frozen=True)
class Gathered:
    """Runs of queries with their keys, by their places, all filled up to one size: one product on a GPU."""

    queries: Tensor  # (run, query) long, of the local (or the global) tokens of the batch
    keys: Tensor  # (run, key) long, of the packed order
    visible: Tensor | None  # (run, 1, query, key) bool, True = attends; None = all attend to all
    real: Tensor | None  # (n,) long, the places in (run * query,) of what is no filling; None = all


@dataclass(frozen=True)
class Plan:
    """The compact order of a batch of `shape` (batch, seq)."""

    shape: tuple[int, int]
    window: int
    order: Tensor  # (n_tokens,) flat indices into batch * seq, in packed order
    local_places: Tensor  # (n_local,) places in the packed order of the local tokens, row after row
    global_places: Tensor  # the same of the global ones
    rows: tuple[Row, ...]
    # (n_local, 2): a local query's first local key in the packed order, and one past its last
    reach: np.ndarray
    cut: Tensor | None = None  # (batch, query, key) bool, True = does not attend; None = nothing is cut
    whole: tuple[Plan, tuple[int, ...]] | None = None  # if some heads alone are cut: the order of the others
    # what a backend has made of the plan and reads again in the next layer, by name
    kept: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def local_order(self) -> Tensor:
        """(n_local,) flat indices into batch * seq of the local tokens, row after row."""
        return self.order[self.local_places]

    @cached_property
    def global_order(self) -> Tensor:
        """(n_global,) flat indices into batch * seq of the global tokens, row after row."""
        return self.order[self.global_places]

    def to(self, device: torch.device | str, non_blocking: bool = True) -> Plan:
        """The same plan for tokens on `device`, as loaders of batches move what they load."""
        if self.order.device == torch.device(device):
            return self
        names = ("order", "local_places", "global_places")
        moved = {name: getattr(self, name).to(device, non_blocking=non_blocking) for name in names}
        return replace(self, **moved, kept={})

    def pack(self, values: Tensor, *, multiple: int = 1) -> Tensor:
        """Values (batch, seq, ...) of each token as (1, tokens, ...) in packed order. The first token fills
        up the number of tokens to a `multiple`."""
        flat = values.flatten(0, 1)
        missing = -len(self.order) % multiple
        if not missing and not len(self.global_places) and len(self.order) == len(flat):
            return flat[None]  # the packed order is that of the batch
        order = torch.cat([self.order, self.order[:1].expand(missing)]) if missing else self.order
        return flat.index_select(0, order)[None]

    def unpack(self, packed: Tensor) -> Tensor:
        """The inverse of `pack`: (1, tokens, ...) as (batch, seq, ...), 0 at padding."""
        batch, seq = self.shape
        tokens = packed[0, : len(self.order)]
        if len(tokens) < batch * seq or len(self.global_places):
            empty = tokens.new_zeros(batch * seq, *tokens.shape[1:])
            tokens = empty.index_copy(0, self.order, tokens)
        return tokens.unflatten(0, (batch, seq))

    @cached_property
    def local_tiles(self) -> tuple[Tile, ...]:
        """Tiles of the local queries with their windows and the globals of their row."""
        return _tiles(run for row in self.rows for run in row.runs)

    @cached_property
    def global_tiles(self) -> tuple[Tile, ...]:
        """Tiles of the global queries with their whole row."""
        return _tiles(_global_runs(self.rows, GLOBAL_QUERIES))

    @cached_property
    def global_tiles_with_dropout(self) -> tuple[Tile, ...]:
        """The same in smaller tiles, for dropout on the CPU."""
        return _tiles(_global_runs(self.rows, GLOBAL_QUERIES_WITH_DROPOUT))

    @cached_property
    def gathered_locals(self) -> tuple[Gathered, ...]:
        """The local queries with their windows and the globals of their row, for other devices than a CPU."""
        runs = [run for row in self.rows for run in row.runs]
        return tuple(_gathered(group, self.order.device) for group in _alike(runs, waste=TILE_WASTE))

    @cached_property
    def gathered_globals(self) -> tuple[Gathered, ...]:
        """The global queries with their whole row; rows of other sizes apart, so that no mask is needed."""
        runs = list(_global_runs(self.rows, max((row.n_global for row in self.rows), default=0)))
        return tuple(_gathered(group, self.order.device) for group in _alike(runs, waste=1.0))

    @property
    def masks(self) -> tuple[Tensor, Tensor]:
        """The attention mask and the global mask, (batch, seq) bool both."""
        flat = torch.zeros(2, math.prod(self.shape), dtype=torch.bool, device=self.order.device)
        flat[0, self.order] = flat[1, self.global_order] = True
        return flat[0].view(self.shape), flat[1].view(self.shape)

    def without(self, cut: Tensor, *, heads: tuple[int, ...] | None = None) -> Plan:
        """The same order, in which a query does not attend to those keys where `cut` (batch, query, key) is
        True. A token always attends to itself. `heads`: those in which it is so; None = all."""
        cut = cut & ~torch.eye(self.shape[1], dtype=torch.bool, device=cut.device)
        rows = []
        for number, row in enumerate(self.rows):
            places = self.order[row.tokens] % self.shape[1]
            of_row = cut[number][places][:, places]
            first = row.n_global - row.local_start  # of the local tokens in the row
            runs = []
            for run in row.runs:
                keys = [of_row[:, one.start - row.start : one.stop - row.start] for one in run.keys]
                columns = torch.cat(keys, dim=1)
                runs.append(replace(run, cut=columns[first + run.queries.start : first + run.queries.stop]))
            rows.append(replace(row, runs=tuple(runs), cut=of_row))
        whole = None if heads is None else (self, heads)
        return replace(self, rows=tuple(rows), cut=cut, whole=whole, kept={})

    @property
    def pairs(self) -> int:
        """Query-key pairs of one head in the definition of the attention (without masked corners of runs)."""
        of_globals = sum(row.n_global * (row.n_local + row.n_global) for row in self.rows)
        return of_globals + sum(run.pairs for row in self.rows for run in row.runs)


def by_head(compute: Callable[[Plan], Sequence[Tensor]], plan: Plan) -> list[Tensor]:
    """What `compute(plan)` returns, tensors with heads in their second dimension; where only some heads are
    cut, the others are computed with the whole plan."""
    made = [*compute(plan)]
    if plan.whole is None:
        return made
    whole, heads = plan.whole
    is_cut = torch.zeros(made[0].shape[1], dtype=torch.bool, device=made[0].device)
    is_cut[list(heads)] = True
    pairs = zip(made, compute(whole), strict=True)
    return [torch.where(is_cut.view(1, -1, *[1] * (one.dim() - 2)), one, other) for one, other in pairs]


def make_plan(*, attention_mask: Tensor, global_mask: Tensor, window: int) -> Plan:
    """Compute the compact order of a batch.

    `attention_mask`, `global_mask`: (batch, seq) bool; True = takes part, True = global. A global token that
    is padding is padding. `window`: total width, even; a local token attends to window // 2 tokens on each
    side. Raises ValueError for masks of other shapes or types, or an odd or non-positive window.
    """
    check_masks(attention_mask, global_mask)
    check_window(window)
    present = attention_mask.cpu().numpy()
    is_global = global_mask.cpu().numpy() & present
    rows, orders, places, reach = [], [], ([], []), []
    starts = [0, 0]  # number of global and of local tokens before the row
    for index, (tokens, globals_) in enumerate(zip(present, is_global, strict=True)):
        of_globals, of_locals = np.flatnonzero(globals_), np.flatnonzero(tokens & ~globals_)
        start, middle = sum(starts), sum(starts) + len(of_globals)
        near = _near(of_locals, window // 2)
        reach.append(middle + near)
        rows.append(
            Row(
                start=start,
                n_global=len(of_globals),
                n_local=len(of_locals),
                local_start=starts[1],
                global_start=starts[0],
                runs=_local_runs(of_locals, near, starts[1], slice(start, middle), window=window),
            )
        )
        orders += [of_globals + index * len(tokens), of_locals + index * len(tokens)]
        places[0].append(np.arange(start, middle))
        places[1].append(np.arange(middle, middle + len(of_locals)))
        starts = [starts[0] + len(of_globals), starts[1] + len(of_locals)]
    order, global_places, local_places = (torch.from_numpy(np.concatenate(of)) for of in (orders, *places))
    plan = Plan(
        shape=tuple(attention_mask.shape),
        window=window,
        order=order,
        local_places=local_places,
        global_places=global_places,
        rows=tuple(rows),
        reach=np.concatenate(reach),
    )
    return plan.to(attention_mask.device)


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


def _local_runs(
    positions: np.ndarray, near: np.ndarray, first_query: int, globals_: slice, *, window: int
) -> tuple[Run, ...]:
    """Split the local tokens of a row, at text `positions`, into runs of window // 2 queries, at least 32 and
    at most 128; where all attend to all, into equal runs of at most 256. `near`: what `_near` gives for
    them; `first_query`: index of the first one among the local tokens of the batch; `globals_`: the row's
    global tokens in the packed order, directly before its local tokens."""
    side, size, made = window // 2, min(128, max(32, window // 2)), []
    if len(positions) and positions[-1] - positions[0] <= side:
        size = math.ceil(len(positions) / math.ceil(len(positions) / 256))
    for start in range(0, len(positions), size):
        end = min(start + size, len(positions))
        first, last = int(near[start, 0]), int(near[end - 1, 1])
        furthest = max(positions[end - 1] - positions[first], positions[last - 1] - positions[start])
        keys = slice(globals_.stop + first, globals_.stop + last)
        made.append(
            Run(
                queries=slice(first_query + start, first_query + end),
                keys=(globals_, keys) if _length(globals_) else (keys,),
                near=(positions[start:end], positions[first:last], side) if furthest > side else None,
            )
        )
    return tuple(made)


def _near(positions: np.ndarray, side: int) -> np.ndarray:
    """(tokens, 2): the first of the tokens at text `positions` that is at most `side` away from each, and one
    past the last."""
    first = np.searchsorted(positions, positions - side)
    return np.stack([first, np.searchsorted(positions, positions + side, side="right")], axis=1)


def _global_runs(rows: tuple[Row, ...], queries: int) -> Iterator[Run]:
    for row in rows:
        if row.n_global:
            most = max(queries, TILE_SCORES // (row.n_global + row.n_local))
            end = row.global_start + row.n_global
            for start in range(row.global_start, end, most):
                of_run = slice(start, min(start + most, end))
                cut = None
                if row.cut is not None:
                    cut = row.cut[of_run.start - row.global_start : of_run.stop - row.global_start]
                yield Run(queries=of_run, keys=(row.tokens,), cut=cut)


def _tiles(runs: Iterator[Run]) -> tuple[Tile, ...]:
    """Combine runs of similar size into one tile each."""
    together: list[list[Run]] = []
    for run in sorted(runs, key=_sides):
        if together and _fit([*together[-1], run]):
            together[-1].append(run)
        else:
            together.append([run])
    together.sort(key=lambda runs: runs[0].queries.start)  # neighbours share keys in the cache
    return tuple(_tile(runs) for runs in together)


def _alike(runs: list[Run], *, waste: float) -> list[list[Run]]:
    """Runs of similar size together: filled up, a group has at most `waste` times their scores."""
    groups: list[list[Run]] = []
    for run in sorted(runs, key=lambda run: (run.key_count, run.query_count)):
        group = [*groups[-1], run] if groups else [run]
        if groups and _filled_scores(group) <= waste * sum(one.query_count * one.key_count for one in group):
            groups[-1].append(run)
        else:
            groups.append([run])
    return groups


def _filled_scores(runs: list[Run]) -> int:
    return len(runs) * max(run.query_count for run in runs) * max(run.key_count for run in runs)


def _gathered(runs: list[Run], device: torch.device) -> Gathered:
    most = max(run.query_count for run in runs), max(run.key_count for run in runs)
    queries, keys = (np.zeros((len(runs), size), dtype=np.int64) for size in most)
    visible = np.zeros((len(runs), *most), dtype=bool)
    is_query = np.zeros_like(queries, dtype=bool)
    for number, run in enumerate(runs):
        queries[number, : run.query_count] = np.arange(run.queries.start, run.queries.stop)
        keys[number, : run.key_count] = np.concatenate([np.arange(of.start, of.stop) for of in run.keys])
        is_query[number, : run.query_count] = True
        visible[number, :, : run.key_count] = True
        if run.near is not None:
            positions, near, side = run.near
            far = np.abs(positions[:, None] - near) > side
            visible[number, : run.query_count, run.key_count - len(near) : run.key_count] = ~far
        if run.cut is not None:
            visible[number, : run.query_count, : run.key_count] &= ~run.cut.cpu().numpy()

    def there(values: np.ndarray) -> Tensor:
        return torch.from_numpy(values).to(device, non_blocking=True)

    return Gathered(
        queries=there(queries),
        keys=there(keys),
        visible=None if visible.all() else there(visible[:, None]),
        real=None if is_query.all() else there(np.flatnonzero(is_query)),
    )


def _sides(*runs: Run) -> tuple[int, ...]:
    """The numbers of queries and keys to which all of the runs are padded in a tile."""
    most = (max(run.query_count for run in runs), max(run.key_count for run in runs))
    # A side below stays: what fills a tile are tokens of the batch, and there may be no more of them.
    return tuple(side if side < SIDE else side + -side % SIDE for side in most)


def _fit(runs: list[Run]) -> bool:
    scores = len(runs) * math.prod(_sides(*runs))
    return scores <= min(TILE_SCORES, TILE_WASTE * sum(math.prod(_sides(run)) for run in runs))


def _tile(runs: list[Run]) -> Tile:
    most_queries, most_keys = _sides(*runs)
    queries, keys = [], []
    for run in runs:
        queries += _filled((run.queries,), most_queries)
        keys += _filled(run.keys, most_keys)
    bias = _bias(runs, most_queries, most_keys)
    return Tile(runs=len(runs), queries=tuple(queries), keys=tuple(keys), bias=bias)


def _filled(pieces: tuple[slice, ...], length: int) -> list[Piece]:
    missing = length - sum(map(_length, pieces))
    return [Piece(tokens) for tokens in pieces] + [Piece(slice(0, missing), filling=True)] * (missing > 0)


def _bias(runs: list[Run], most_queries: int, most_keys: int) -> Tensor | None:
    if all(run.is_full and run.key_count == most_keys for run in runs):
        return None
    bias = torch.zeros(len(runs), most_queries, most_keys)
    for of_run, run in zip(bias, runs, strict=True):
        if not run.is_full:
            of_run[: run.query_count, : run.key_count] = run.bias
        of_run[:, run.key_count :] = float("-inf")
    return bias


def _length(tokens: slice) -> int:
    return int(tokens.stop - tokens.start)
