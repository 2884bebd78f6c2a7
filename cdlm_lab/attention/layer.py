"""The drop-in: Hugging Face's Longformer self-attention with our attention inside, same parameter names.

`replace_self_attention(model)` swaps the self-attention of every layer of any Longformer model in place. The
six projections are the model's own modules, so checkpoints go both ways and nothing is copied.

Work that Hugging Face's layer does in vain is not done: local queries of global tokens, global queries of
local tokens, projections of padding, global projections where no token is global; nor are texts filled up to
a multiple of the window, nor is there a mask of length x length. `read_only_globals` also spares the last
layer the states of local tokens, where the head reads none, as that of coreference: of a model of six layers
a seventh of the time or more.

Attention weights to look at are recomputed from the packed queries and keys, a block of queries at a time,
from and to a few chosen tokens (`record_attention`), or all of them in Hugging Face's layout: memory is
linear in length. They carry no gradient, and are the weights before dropout.
"""

from __future__ import annotations

import inspect
import math
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor, nn

from cdlm_lab.attention.dense import dense_attention
from cdlm_lab.attention.flex import flex_packed_attention, make_block_mask
from cdlm_lab.attention.plan import Block, Plan, Row, check_window, make_plan
from cdlm_lab.attention.sparse import (
    attend_from_few_globals,
    attend_from_globals,
    attend_from_locals,
    globals_are_few,
    sparse_attention,
)

GLOBAL_BLOCK = 128  # global queries whose scores are held at once


class AttentionRecorder:
    """Collects, layer by layer, the attention from and to `tokens`, (batch, chosen) long text positions.

    After the run `from_tokens` and `to_tokens` have one tensor a recorded layer, (batch, head, chosen, seq)
    float32: the weight the chosen token gives to each position, and the weight each position gives to it. Two
    tokens too far apart, neither global, have weight exactly 0; so has padding. `layers`: numbers of the
    layers that are recorded.
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
            is_chosen = positions == self.tokens[index].to(positions.device)[:, None]  # (chosen, row tokens)
            if not (present := is_chosen.any(dim=1)).all():
                token = int(self.tokens[index, int(present.int().argmin())])
                raise ValueError(
                    f"token {token} of row {index} is padding or outside the text of length {seq}"
                )
            places = is_chosen.int().argmax(dim=1).tolist()
            given[index][..., positions] = _given_by(places, packed, row, positions, plan.window)
            received[index][..., positions] = _received_by(places, packed, row)
        self.from_tokens.append(given)
        self.to_tokens.append(received)


def recordable_layers(model: nn.Module) -> list[nn.Module]:
    """The self-attentions of `model` that can be recorded, first layer first. Raises ValueError when there is
    none."""
    layers = [module for module in model.modules() if hasattr(module, "recorder")]
    if not layers:
        raise ValueError("the model's attention cannot be recorded; call replace_self_attention(model) first")
    return layers


@contextmanager
def record_attention(
    model: nn.Module, tokens: Tensor, *, layers: Iterable[int] | None = None
) -> Iterator[AttentionRecorder]:
    """Within, record the attention from and to `tokens` ((batch, chosen) long positions) in layers of
    `model`.

    `layers`: their numbers, -1 being the last; recorded first layer first, each once; None = all. Raises
    ValueError when the model's attention is not ours, or for layers it does not have.
    """
    available = recordable_layers(model)
    numbers = _layer_numbers(layers, count=len(available))
    recorder = AttentionRecorder(tokens, layers=numbers)
    for number in numbers:
        available[number].recorder = recorder
    try:
        yield recorder
    finally:
        for layer in available:
            layer.recorder = None


def _layer_numbers(layers: Iterable[int] | None, *, count: int) -> list[int]:
    """Numbers from 0, ascending, each once."""
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
    """(query, head, dim) and (key, head, dim) to (head, query, key) in float32, scaled, whatever the
    model computes in: weights are looked at and ranked."""
    with torch.autocast(query.device.type, enabled=False):
        return torch.einsum("qhd,khd->hqk", query.float() / math.sqrt(query.shape[-1]), key.float())


def _given_by(
    places: list[int], packed: dict[str, Tensor], row: Row, positions: Tensor, window: int
) -> Tensor:
    """Weights that chosen tokens of the row give: (head, chosen, row tokens). `places`: their indices in the
    compact order of the row."""
    heads = packed["query"].shape[1]
    given = torch.empty(heads, len(places), len(positions), device=positions.device)
    of_globals = [column for column, place in enumerate(places) if place < row.n_global]
    if of_globals:
        queries = packed["query_global"][[row.global_start + places[column] for column in of_globals]]
        given[:, of_globals] = _scores(queries, packed["key_global"][row.tokens]).softmax(-1)
    of_locals = [column for column, place in enumerate(places) if place >= row.n_global]
    if of_locals:
        here = [places[column] for column in of_locals]
        queries = packed["query"][[row.local_start + place - row.n_global for place in here]]
        near = (positions - positions[here][:, None]).abs() <= window // 2  # (chosen locals, row tokens)
        near[:, : row.n_global] = True
        scores = _scores(queries, packed["key"][row.tokens]).masked_fill(~near, float("-inf"))
        given[:, of_locals] = scores.softmax(-1)
    return given


def _received_by(places: list[int], packed: dict[str, Tensor], row: Row) -> Tensor:
    """Weights that chosen tokens of the row receive from every token of it: (head, chosen, row tokens).

    One pass over the blocks for all of them; blocks from which none can be seen are left out.
    """
    heads, width = packed["query"].shape[1], row.n_global + row.n_local
    received = torch.zeros(heads, len(places), width, device=packed["query"].device)
    end = 0
    for scores in _global_scores(packed, row):
        start, end = end, end + scores.shape[1]
        received[:, :, start:end] = scores.softmax(-1)[:, :, places].transpose(1, 2)
    for block in row.blocks:
        seen = _columns_of(places, block, row)
        if seen:
            weights = _block_scores(packed, row, block).softmax(-1)[:, :, list(seen.values())]
            queries = slice(row.n_global + block.query_start, row.n_global + block.query_end)
            received[:, list(seen), queries] = weights.transpose(1, 2)
    return received


def _columns_of(places: list[int], block: Block, row: Row) -> dict[int, int]:
    """Which of the chosen tokens are among a block's keys: number of the choice -> column of its scores.

    Columns are all globals, then the run of locals; out of the run nothing is seen, and what it holds beyond
    a query's own window has weight exp(-inf) = 0.
    """
    columns = {}
    for choice, place in enumerate(places):
        if place < row.n_global:
            columns[choice] = place
        elif block.key_start <= place - row.n_global < block.key_end:
            columns[choice] = place - block.key_start
    return columns


def _global_scores(packed: dict[str, Tensor], row: Row) -> Iterator[Tensor]:
    """Scores of the row's global queries, (head, query, row tokens), a few queries at a time."""
    of_row = packed["query_global"][row.global_start : row.global_start + row.n_global]
    for queries in of_row.split(GLOBAL_BLOCK) if row.n_global else ():
        yield _scores(queries, packed["key_global"][row.tokens])


def _block_scores(packed: dict[str, Tensor], row: Row, block: Block) -> Tensor:
    """Scores of a block's local queries: (head, query, globals + run of locals)."""
    queries = packed["query"][row.local_start + block.query_start : row.local_start + block.query_end]
    run = packed["key"][row.locals_(block.key_start, block.key_end)]
    scores = _scores(queries, torch.cat([packed["key"][row.globals_], run]))
    if block.bias is not None:
        scores[..., row.n_global :] += block.bias
    return scores


@torch.no_grad()
def banded_weights(packed: dict[str, Tensor], plan: Plan) -> tuple[Tensor, ...]:
    """All weights of a layer in the layout of Hugging Face's Longformer layer.

    Returns (batch, seq, head, n_global + window + 1): the weight on each of the row's global tokens, in text
    order, then on the key at query - window // 2 + column; rows of global tokens and padding are zero, and so
    are the window's columns of global keys. When the batch has globals also (batch, head, n_global, seq), the
    weights that global tokens give; both zero-padded to the batch's largest number of globals.
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
        for block in row.blocks:
            weights = _block_scores(packed, row, block).softmax(-1).permute(1, 0, 2)
            at = texts[block.query_start : block.query_end]
            local[index, at, :, : row.n_global] = weights[..., : row.n_global]
            run = texts[block.key_start : block.key_end]
            offset = run[None, :] - at[:, None] + half
            query, key = ((offset >= 0) & (offset <= plan.window)).nonzero(as_tuple=True)
            local[index, at[query], :, most + offset[query, key]] = weights[query, :, row.n_global + key]
        if row.n_global:
            given = torch.cat([scores.softmax(-1) for scores in _global_scores(packed, row)], dim=1)
            from_globals[index, :, : row.n_global, positions] = given
    return (local, from_globals) if most else (local,)


_MASK_MAKER = "create_bidirectional_mask"  # of transformers.masking_utils


def mask_by_row(encoder: nn.Module) -> None:
    """Let a `LongformerModel` make the one row of its mask that it reads, in place.

    Hugging Face's makes a mask (batch, 1, seq, seq) and reads one row of it, which keeps all of it alive
    until the backward is over: at 4,096 tokens 67 MB and 50 ms an example on one core. The forward stays
    Hugging Face's, but for the function by which it makes the mask.
    """
    forward = inspect.unwrap(type(encoder).forward)
    if _MASK_MAKER in forward.__globals__:
        names = {**forward.__globals__, _MASK_MAKER: _row}
        own = FunctionType(
            forward.__code__, names, forward.__name__, forward.__defaults__, forward.__closure__
        )
        own.__kwdefaults__ = forward.__kwdefaults__
        encoder.forward = MethodType(own, encoder)  # type: ignore[method-assign]


def _row(*, inputs_embeds: Tensor, attention_mask: Tensor, **_: Any) -> Tensor:
    """(batch, 1, 1, seq): 0 = a token, the lowest number = padding.

    `attention_mask`: (batch, seq), 0 = padding.
    """
    row = inputs_embeds.new_zeros(attention_mask.shape)
    return row.masked_fill_(attention_mask == 0, torch.finfo(row.dtype).min)[:, None, None]


# "blockwise" is an older name of "sparse".
BACKENDS = ("auto", "sparse", "flex", "blockwise", "dense")
LOCAL_PROJECTIONS = ("query", "key", "value")
GLOBAL_PROJECTIONS = ("query_global", "key_global", "value_global")


class PlanCache:
    """The compact order of the batch at hand, made by the first layer and used by all.

    Keyed by the identity of the mask tensor, which Hugging Face's encoder hands to every layer (and again to
    each layer recomputed by gradient checkpointing), and by the window.
    """

    def __init__(self) -> None:
        self._mask: weakref.ref[Tensor] | None = None
        self._plans: dict[int, Plan] = {}
        self._block_masks: dict[int, Any] = {}

    def plan(self, extended_mask: Tensor, *, window: int) -> Plan:
        """The plan of a Hugging Face mask: (batch, seq), negative = padding, 0 = local, positive = global."""
        if self._mask is None or self._mask() is not extended_mask:
            self._mask = weakref.ref(extended_mask)
            self._plans, self._block_masks = {}, {}
        if window not in self._plans:
            self._plans[window] = make_plan(
                attention_mask=extended_mask >= 0, global_mask=extended_mask > 0, window=window
            )
        return self._plans[window]

    def block_mask(self, plan: Plan) -> Any:
        """FlexAttention's block table of a plan made by this cache."""
        if plan.window not in self._block_masks:
            self._block_masks[plan.window] = make_block_mask(plan)
        return self._block_masks[plan.window]


class LocalGlobalSelfAttention(nn.Module):
    """Longformer self-attention; takes the place of Hugging Face's `LongformerSelfAttention`. Raises
    ValueError for an unknown backend or a bad window."""

    def __init__(
        self,
        *,
        projections: dict[str, nn.Module],  # the six linear modules by name
        heads: int,
        window: int,  # total width
        dropout: float,  # of the attention weights while training
        backend: str = "auto",  # one of BACKENDS
        plans: PlanCache | None = None,  # shared by the layers of a model
    ) -> None:
        super().__init__()
        if backend not in BACKENDS:
            raise ValueError(f"unknown attention backend {backend!r}; choose one of {', '.join(BACKENDS)}")
        check_window(window)
        for name in LOCAL_PROJECTIONS + GLOBAL_PROJECTIONS:
            setattr(self, name, projections[name])
        self.heads = heads
        self.window = window
        self.dropout = dropout
        self.backend = backend
        self.plans = plans or PlanCache()
        self.recorder: AttentionRecorder | None = None

    def forward(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor,
        is_index_masked: Tensor | None = None,
        is_index_global_attn: Tensor | None = None,
        is_global_attn: bool | None = None,
        output_attentions: bool = False,
    ) -> tuple[Tensor, ...]:
        """Hugging Face's signature and results: the context (batch, seq, embed), zero at padding, and with
        `output_attentions` the weights as `banded_weights` gives them, those from global tokens without the
        filling at their end. `attention_mask`: (batch, seq), negative = padding, 0 = local, positive =
        global; the other masks are derived from it and ignored.
        """
        batch, seq, embed = hidden_states.shape
        plan = self.plans.plan(attention_mask, window=self.window)
        flat = hidden_states.flatten(0, 1)
        tokens = flat.index_select(0, plan.order)
        packed = self._local_projections(flat, tokens, plan)
        if self.recorder is None and not output_attentions and self._globals_are_few(tokens, plan):
            local_output = attend_from_locals(*packed.values(), plan=plan, dropout=self._dropout_now)
            global_output = self._from_few_globals(flat, tokens, plan)
        else:
            packed |= self._global_projections(flat, tokens, plan)
            local_output, global_output = self._attend(packed, plan)
        context = hidden_states.new_zeros(batch * seq, embed, dtype=local_output.dtype)
        context.index_copy_(0, plan.local_order, local_output.flatten(1))
        if len(plan.global_order):
            context.index_copy_(0, plan.global_order, global_output.flatten(1))
        context = context.view(batch, seq, embed)
        if self.recorder is not None:
            self.recorder.record(packed, plan)
        if not output_attentions:
            return (context,)
        return (context, *banded_weights(packed, plan))

    def of_globals(self, hidden_states: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        """The context of the global tokens alone, at the price of these: (n_global, embed), and their places
        in the flattened batch, (n_global,). Nothing is recorded."""
        plan = self.plans.plan(attention_mask, window=self.window)
        flat = hidden_states.flatten(0, 1)
        if not len(plan.global_order):
            return flat[:0], plan.global_order
        tokens = flat.index_select(0, plan.order)
        if self._globals_are_few(tokens, plan):
            context = self._from_few_globals(flat, tokens, plan)
        else:
            arguments = self._global_projections(flat, tokens, plan).values()
            context = attend_from_globals(*arguments, plan=plan, dropout=self._dropout_now)
        return context.flatten(1), plan.global_order

    @property
    def _dropout_now(self) -> float:
        return self.dropout if self.training else 0.0

    def _local_projections(self, flat: Tensor, tokens: Tensor, plan: Plan) -> dict[str, Tensor]:
        """Queries of the local tokens, keys and values of all, packed: (tokens, head, dim).

        `flat`: (batch * seq, embed); `tokens`: (n_tokens, embed), in packed order.
        """
        sources = (flat.index_select(0, plan.local_order), tokens, tokens)
        return {name: self._heads(name, x) for name, x in zip(LOCAL_PROJECTIONS, sources, strict=True)}

    def _global_projections(self, flat: Tensor, tokens: Tensor, plan: Plan) -> dict[str, Tensor]:
        """The same of the global tokens; all empty where there are none."""
        if not len(plan.global_order):
            return dict.fromkeys(GLOBAL_PROJECTIONS, tokens[:0].unflatten(-1, (self.heads, -1)))
        sources = (flat.index_select(0, plan.global_order), tokens, tokens)
        return {name: self._heads(name, x) for name, x in zip(GLOBAL_PROJECTIONS, sources, strict=True)}

    def _heads(self, name: str, states: Tensor) -> Tensor:
        return getattr(self, name)(states).unflatten(-1, (self.heads, -1))

    def _globals_are_few(self, tokens: Tensor, plan: Plan) -> bool:
        """True where keys and values for global queries need not be projected; see
        `attend_from_few_globals`."""
        return (
            self._chosen_backend(tokens) == "sparse"
            and not self._dropout_now
            and type(self.key_global) is type(self.value_global) is nn.Linear
            and globals_are_few(plan, head_size=tokens.shape[-1] // self.heads)
        )

    def _from_few_globals(self, flat: Tensor, tokens: Tensor, plan: Plan) -> Tensor:
        query = self._heads("query_global", flat.index_select(0, plan.global_order))
        return attend_from_few_globals(query, tokens, key=self.key_global, value=self.value_global, plan=plan)

    def _attend(self, packed: dict[str, Tensor], plan: Plan) -> tuple[Tensor, Tensor]:
        """Run the backend on packed projections: outputs of the local and of the global tokens."""
        dropout = self._dropout_now
        backend = self._chosen_backend(packed["query"])
        arguments = tuple(packed[name] for name in LOCAL_PROJECTIONS + GLOBAL_PROJECTIONS)
        if backend == "flex":
            return flex_packed_attention(*arguments, plan=plan, block_mask=self.plans.block_mask(plan))
        if backend == "dense":
            return _dense_on_packed(*arguments, plan=plan, dropout=dropout)
        return sparse_attention(*arguments, plan=plan, dropout=dropout)

    def _chosen_backend(self, query: Tensor) -> str:
        """The fastest exact backend for the device; FlexAttention has no dropout."""
        if self.backend == "dense":
            return "dense"
        wanted = self.backend == "flex" or (self.backend == "auto" and query.device.type == "cuda")
        return "flex" if wanted and not self._dropout_now else "sparse"


def _dense_on_packed(*arguments: Tensor, plan: Plan, dropout: float) -> tuple[Tensor, Tensor]:
    """The oracle on packed projections: spread them over (batch, seq), attend, pack again."""
    batch, seq = plan.shape
    orders = (plan.local_order, plan.order, plan.order, plan.global_order, plan.order, plan.order)
    if not len(plan.global_order):
        orders = (*orders[:3], *(plan.global_order,) * 3)

    def spread(packed: Tensor, order: Tensor) -> Tensor:
        empty = packed.new_zeros(batch * seq, *packed.shape[1:])
        return empty.index_copy(0, order, packed).unflatten(0, (batch, seq))

    present = torch.zeros(batch * seq, dtype=torch.bool, device=plan.order.device)
    is_global = present.clone()
    present[plan.order] = True
    is_global[plan.global_order] = True
    output = dense_attention(
        *(spread(packed, order) for packed, order in zip(arguments, orders, strict=True)),
        attention_mask=present.view(batch, seq),
        global_mask=is_global.view(batch, seq),
        window=plan.window,
        dropout=dropout,
    ).flatten(0, 1)
    return output[plan.local_order], output[plan.global_order]


def replace_self_attention(model: nn.Module, backend: str = "auto") -> nn.Module:
    """Swap every Longformer self-attention inside `model` for ours, in place; returns the model.

    A self-attention is known by its six projections and its window, so any Longformer model serves. Called
    again, it only changes the backend. Raises ValueError when the model holds no Longformer self-attention.
    """
    if backend not in BACKENDS:
        raise ValueError(f"unknown attention backend {backend!r}; choose one of {', '.join(BACKENDS)}")
    plans, count = PlanCache(), 0
    for parent in list(model.modules()):
        if hasattr(parent, "_pad_to_window_size"):
            parent._pad_to_window_size = _not_padded
            mask_by_row(parent)
        for name, child in list(parent.named_children()):
            if isinstance(child, LocalGlobalSelfAttention):
                child.backend = backend
                count += 1
            elif _is_longformer_self_attention(child):
                setattr(parent, name, _converted(child, backend=backend, plans=plans))
                count += 1
    if not count:
        raise ValueError(f"{type(model).__name__} holds no Longformer self-attention to replace")
    return model


def _not_padded(
    *,
    input_ids: Tensor | None,
    attention_mask: Tensor,
    token_type_ids: Tensor,
    position_ids: Tensor | None,
    inputs_embeds: Tensor | None,
    pad_token_id: int,
) -> tuple[int, Tensor | None, Tensor, Tensor, Tensor | None, Tensor | None]:
    """Hugging Face's `_pad_to_window_size` with nothing padded: our attention takes texts of any length."""
    return 0, input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds


def _is_longformer_self_attention(module: nn.Module) -> bool:
    names = (*LOCAL_PROJECTIONS, *GLOBAL_PROJECTIONS, "one_sided_attn_window_size")
    return all(hasattr(module, name) for name in names)


def _converted(module: Any, *, backend: str, plans: PlanCache) -> LocalGlobalSelfAttention:
    replacement = LocalGlobalSelfAttention(
        projections={name: getattr(module, name) for name in LOCAL_PROJECTIONS + GLOBAL_PROJECTIONS},
        heads=module.num_heads,
        window=2 * module.one_sided_attn_window_size,
        dropout=module.dropout,
        backend=backend,
        plans=plans,
    )
    return replacement.train(module.training)


def read_only_globals(model: nn.Module) -> nn.Module:
    """Let the last layer of a `LongformerModel`, after `replace_self_attention`, compute global tokens only,
    in place; returns the model. The last hidden states of global tokens and their gradients stay what they
    were; those of all other tokens become 0. A model with Hugging Face's own attention stays as it is."""
    layer = model.encoder.layer[-1]
    if isinstance(layer.attention.self, LocalGlobalSelfAttention):
        layer.forward = MethodType(_globals_only, layer)
    return model


def _globals_only(
    layer: Any, hidden_states: Tensor, attention_mask: Tensor, output_attentions: bool = False, **_: Any
) -> tuple[Tensor]:
    """The forward of a `LongformerLayer` for global tokens; 0 elsewhere."""
    if output_attentions or layer.attention.self.recorder is not None:
        raise ValueError(
            "the last layer computes global tokens only, so it has no attention to show; load the encoder "
            "with load_encoder"
        )
    context, places = layer.attention.self.of_globals(hidden_states, attention_mask)
    of_globals = hidden_states.flatten(0, 1).index_select(0, places)
    states = layer.ff_chunk(layer.attention.output(context, of_globals))
    flat = states.new_zeros(hidden_states.flatten(0, 1).shape)
    return (flat.index_copy_(0, places, states).view(hidden_states.shape),)
