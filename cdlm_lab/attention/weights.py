"""Attention weights for analysis: from and to a few chosen tokens, or all in Hugging Face's layout.

The kernels never store weights. These functions compute them again from the packed queries and keys, a block
of queries at a time: memory is linear in length. They have no gradient and are the weights before dropout.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial

import torch
from torch import Tensor, nn

from cdlm_lab.attention.plan import Plan, Projections, Row, Run, by_head

GLOBAL_BLOCK = 128  # number of global queries whose scores are computed at once


class AttentionRecorder:
    """Records, layer by layer, the attention from and to `tokens`, (batch, chosen) long text positions.

    After the run `from_tokens` and `to_tokens` have one tensor per recorded layer, (batch, head, chosen, seq)
    float32: the weight that the chosen token gives to each position, and the weight that each position gives
    to it. Two tokens too far apart, neither global, have weight exactly 0; so has padding. `layers`: numbers
    of the recorded layers.
    """

    def __init__(self, tokens: Tensor, *, layers: Sequence[int] = ()) -> None:
        if tokens.dim() != 2 or tokens.dtype != torch.long:
            raise ValueError(
                f"tokens must be (batch, chosen) long positions, got {tuple(tokens.shape)} {tokens.dtype}"
            )
        self.tokens = tokens
        self.layers = tuple(layers)
        self.from_tokens: list[Tensor] = []
        self.to_tokens: list[Tensor] = []

    @torch.no_grad()
    def record(self, packed: Projections, plan: Plan) -> None:
        """Called by the layer with its packed projections. ValueError: a chosen token is padding."""
        given, received = by_head(partial(self.weights, packed), plan)
        self.from_tokens.append(given)
        self.to_tokens.append(received)

    def weights(self, packed: Projections, plan: Plan) -> tuple[Tensor, Tensor]:
        """What `record` adds to `from_tokens` and `to_tokens`."""
        heads = packed.query.shape[1]
        batch, seq = plan.shape
        if len(self.tokens) != batch:
            raise ValueError(f"tokens chosen for {len(self.tokens)} rows, but the batch has {batch}")
        given = torch.zeros(batch, heads, self.tokens.shape[1], seq, device=plan.order.device)
        received = torch.zeros_like(given)
        for index, row in enumerate(plan.rows):
            positions = plan.order[row.tokens] % seq
            is_chosen = positions == self.tokens[index].to(positions.device)[:, None]  # (chosen, row tokens)
            if not (present := is_chosen.any(dim=1)).all():
                token = int(self.tokens[index, int(present.int().argmin())])
                raise ValueError(
                    f"token {token} of row {index} is padding or outside the text of length {seq}"
                )
            places = is_chosen.int().argmax(dim=1).tolist()
            given[index][..., positions] = _given_by(places, packed, row, positions, plan.window)
            received[index][..., positions] = _received_by(places, packed, row)
        return given, received


def recordable_layers(model: nn.Module) -> list[nn.Module]:
    """The self-attention modules of `model` that can be recorded, first layer first; ValueError if none."""
    layers = [module for module in model.modules() if hasattr(module, "recorder")]
    if not layers:
        raise ValueError("the model's attention cannot be recorded; call replace_self_attention(model) first")
    return layers


# Of the current thread alone, so that others can use the same model meanwhile: layer -> its recorder.
_RECORDERS: ContextVar[Mapping[nn.Module, AttentionRecorder] | None] = ContextVar("recorders", default=None)


def recorder_of(layer: nn.Module) -> AttentionRecorder | None:
    """What records the attention of a layer in the current thread; None = nothing."""
    return (_RECORDERS.get() or {}).get(layer)


@contextmanager
def record_attention(
    model: nn.Module, tokens: Tensor, *, layers: Iterable[int] | None = None
) -> Iterator[AttentionRecorder]:
    """Inside the block, in this thread, record the attention from and to `tokens` ((batch, chosen) long
    positions) in `layers` of `model`, given by number, -1 = last, None = all; in ascending order, each once.
    Raises ValueError if the model's attention has not been replaced by ours, or for layers it does not
    have."""
    available = recordable_layers(model)
    numbers = layer_numbers(layers, count=len(available))
    recorder = AttentionRecorder(tokens, layers=numbers)
    before = _RECORDERS.set({**(_RECORDERS.get() or {}), **{available[n]: recorder for n in numbers}})
    try:
        yield recorder
    finally:
        _RECORDERS.reset(before)


def layer_numbers(layers: Iterable[int] | None, *, count: int) -> list[int]:
    """Layer numbers from 0, ascending, without duplicates."""
    if layers is None:
        return list(range(count))
    wanted = list(layers)
    if not wanted:
        raise ValueError("no layer is chosen; name at least one, or None for all")
    for layer in wanted:
        if not -count <= layer < count:
            raise ValueError(
                f"there is no layer {layer}; the model has {count}: 0 to {count - 1}, or -1 = last"
            )
    return sorted({layer % count for layer in wanted})


def _scores(query: Tensor, key: Tensor) -> Tensor:
    """(query, head, dim) and (key, head, dim) to (head, query, key), scaled, in float32 whatever the model
    computes in, since the weights are displayed and ranked."""
    with torch.autocast(query.device.type, enabled=False):
        return torch.einsum("qhd,khd->hqk", query.float() / math.sqrt(query.shape[-1]), key.float())


def _cut(scores: Tensor, cut: Tensor | None) -> Tensor:
    """Scores (head, query, key) without those that are cut, (query, key)."""
    return scores if cut is None else scores.masked_fill(cut, float("-inf"))


def _given_by(places: list[int], packed: Projections, row: Row, positions: Tensor, window: int) -> Tensor:
    """Weights that chosen tokens of the row give: (head, chosen, row tokens). `places`: their indices in the
    compact order of the row."""
    given = torch.empty(packed.query.shape[1], len(places), len(positions), device=positions.device)
    of_globals = [column for column, place in enumerate(places) if place < row.n_global]
    if of_globals:
        chosen = [places[column] for column in of_globals]
        queries = packed.query_global[[row.global_start + place for place in chosen]]
        scores = _scores(queries, packed.key_global[row.tokens])
        given[:, of_globals] = _cut(scores, None if row.cut is None else row.cut[chosen]).softmax(-1)
    of_locals = [column for column, place in enumerate(places) if place >= row.n_global]
    if of_locals:
        here = [places[column] for column in of_locals]
        queries = packed.query[[row.local_start + place - row.n_global for place in here]]
        near = (positions - positions[here][:, None]).abs() <= window // 2  # (chosen locals, row tokens)
        near[:, : row.n_global] = True
        scores = _scores(queries, packed.key[row.tokens]).masked_fill(~near, float("-inf"))
        given[:, of_locals] = _cut(scores, None if row.cut is None else row.cut[here]).softmax(-1)
    return given


def _received_by(places: list[int], packed: Projections, row: Row) -> Tensor:
    """Weights that chosen tokens of the row receive from every token of it: (head, chosen, row tokens)."""
    heads, width = packed.query.shape[1], row.n_global + row.n_local
    received = torch.zeros(heads, len(places), width, device=packed.query.device)
    end = 0
    for scores in _global_scores(packed, row):
        start, end = end, end + scores.shape[1]
        received[:, :, start:end] = scores.softmax(-1)[:, :, places].transpose(1, 2)
    for run in row.runs:
        start, end = end, end + run.query_count
        if seen := _columns_of([row.start + place for place in places], run):
            weights = _run_scores(packed, run).softmax(-1)[:, :, list(seen.values())]
            received[:, list(seen), start:end] = weights.transpose(1, 2)
    return received


def _columns_of(tokens: list[int], run: Run) -> dict[int, int]:
    """Which of the chosen tokens, given by their place in the packed order, are among a run's keys: index of
    the token -> column of its scores."""
    columns, first = {}, 0
    for keys in run.keys:
        for choice, token in enumerate(tokens):
            if keys.start <= token < keys.stop:
                columns[choice] = first + token - keys.start
        first += keys.stop - keys.start
    return columns


def _global_scores(packed: Projections, row: Row) -> Iterator[Tensor]:
    """Scores of the row's global queries, (head, query, row tokens), a few queries at a time."""
    for start in range(0, row.n_global, GLOBAL_BLOCK):
        end = min(start + GLOBAL_BLOCK, row.n_global)
        queries = packed.query_global[row.global_start + start : row.global_start + end]
        cut = None if row.cut is None else row.cut[start:end]
        yield _cut(_scores(queries, packed.key_global[row.tokens]), cut)


def _run_scores(packed: Projections, run: Run) -> Tensor:
    """Scores of a run of local queries: (head, query, key)."""
    scores = _scores(packed.query[run.queries], torch.cat([packed.key[keys] for keys in run.keys]))
    return scores if (bias := run.bias) is None else scores + bias.to(scores.device)


@torch.no_grad()
def banded_weights(packed: Projections, plan: Plan) -> tuple[Tensor, ...]:
    """All weights of a layer in the layout of Hugging Face's Longformer layer: (batch, seq, head, n_global +
    window + 1), the weight on each of the row's global tokens, in text order, then on the key at query -
    window // 2 + column; rows of global tokens and padding are zero, and so are the window's columns of
    global keys. If the batch has globals, also (batch, head, n_global, seq), the weights that global tokens
    give; both are zero-padded to the batch's largest number of globals."""
    batch, seq = plan.shape
    heads, half = packed.query.shape[1], plan.window // 2
    most = max(row.n_global for row in plan.rows)
    device = plan.order.device
    local = torch.zeros(batch, seq, heads, most + plan.window + 1, device=device)
    from_globals = torch.zeros(batch, heads, most, seq, device=device)
    for index, row in enumerate(plan.rows):
        positions = plan.order[row.tokens] % seq
        for run in row.runs:
            weights = _run_scores(packed, run).softmax(-1).permute(1, 0, 2)
            at, keys = plan.local_order[run.queries] % seq, plan.order[run.keys[-1]] % seq
            local[index, at, :, : row.n_global] = weights[..., : row.n_global]
            offset = keys[None, :] - at[:, None] + half
            query, key = ((offset >= 0) & (offset <= plan.window)).nonzero(as_tuple=True)
            local[index, at[query], :, most + offset[query, key]] = weights[query, :, row.n_global + key]
        if row.n_global:
            given = torch.cat([scores.softmax(-1) for scores in _global_scores(packed, row)], dim=1)
            from_globals[index, :, : row.n_global, positions] = given
    return (local, from_globals) if most else (local,)
