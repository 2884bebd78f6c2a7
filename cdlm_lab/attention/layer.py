"""Drop-in replacement for Hugging Face's Longformer self-attention, with the same parameter names.

`replace_self_attention(model)` swaps the self-attention of every layer of any Longformer model in place, and
of every encoder layer of an LED model, such as PRIMERA. The six projections are the model's own modules,
so checkpoints load both ways and nothing is copied.

Computations that Hugging Face's model does in vain are skipped: local queries of global tokens, global
queries of local tokens, projections of padding, global projections where no token is global, padding to a
multiple of the window. `read_only_globals(model)` goes further for models whose head reads only global
tokens, such as that of coreference: their last layer computes the states of these alone.

A module is changed by giving it another class, never a function of its own, and nothing of a batch is kept in
it: so threads can share a model, and it can be copied, pickled and replicated (`torch.nn.DataParallel`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import cache, partial
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn

from cdlm_lab.attention.cut import cut_plan
from cdlm_lab.attention.dense import dense_attention
from cdlm_lab.attention.flex import flex_packed_attention
from cdlm_lab.attention.plan import SIDE, Plan, Projections, by_head, check_window, make_plan
from cdlm_lab.attention.sparse import (
    attend_from_few_globals,
    attend_from_globals,
    attend_from_locals,
    globals_are_few,
    sparse_attention,
)
from cdlm_lab.attention.weights import AttentionRecorder, banded_weights, recorder_of
from cdlm_lab.errors import check_choice

_MASK_MAKER = "create_bidirectional_mask"  # of transformers.masking_utils


def mask_by_row(encoder: nn.Module) -> None:
    """Make a `LongformerModel` compute only the one row that it reads of its mask (batch, 1, seq, seq), in
    place: at 4,096 tokens this saves 67 MB and 50 ms per example on one core. The forward stays Hugging
    Face's, except for the function that makes the mask."""
    forward = inspect.unwrap(type(encoder).forward)
    if _MASK_MAKER in forward.__code__.co_names and forward.__globals__[_MASK_MAKER] is not _row:
        encoder.__class__ = _changed(type(encoder), _forward_with_row)


def _forward_with_row(kind: type[nn.Module]) -> Callable[..., Any]:
    forward = inspect.unwrap(kind.forward)
    names = {**forward.__globals__, _MASK_MAKER: _row}
    own = FunctionType(forward.__code__, names, forward.__name__, forward.__defaults__, forward.__closure__)
    own.__kwdefaults__ = forward.__kwdefaults__
    return own


@cache
def _changed(
    kind: type[nn.Module], forward_of: Callable[[type[nn.Module]], Callable[..., Any]]
) -> type[nn.Module]:
    """The subclass of `kind` whose forward is `forward_of(kind)`. Its name and module stay those of `kind`,
    which `save_pretrained` writes into the config; so it is pickled by `kind` and the function."""

    def reduced(module: nn.Module) -> tuple[Any, ...]:
        return _empty, (kind, forward_of), module.__dict__

    of_kind = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    return type(kind.__name__, (kind,), {"forward": forward_of(kind), "__reduce__": reduced, **of_kind})


def _empty(kind: type[nn.Module], forward_of: Callable[..., Any]) -> nn.Module:
    made = _changed(kind, forward_of)
    return made.__new__(made)


def _row(*, inputs_embeds: Tensor, attention_mask: Tensor, **_: Any) -> Tensor:
    """(batch, 1, 1, seq), 0 = token, lowest number = padding, from a mask (batch, seq), 0 = padding."""
    row = inputs_embeds.new_zeros(attention_mask.shape)
    return row.masked_fill_(attention_mask == 0, torch.finfo(row.dtype).min)[:, None, None]


BACKENDS = ("auto", "sparse", "flex", "dense")
LOCAL_PROJECTIONS, GLOBAL_PROJECTIONS = Projections._fields[:3], Projections._fields[3:]


def plan_of(extended_mask: Tensor, *, window: int) -> Plan:
    """The plan of a Hugging Face mask: (batch, seq), negative = padding, 0 = local, positive = global.

    It is made by the first layer and kept with the mask itself, which Hugging Face's encoder passes to every
    layer (and again to each layer that gradient checkpointing recomputes): every forward has its own."""
    plans: dict[int, Plan] = extended_mask.__dict__.setdefault("_plans_by_window", {})
    if window not in plans:
        plans[window] = make_plan(
            attention_mask=extended_mask >= 0, global_mask=extended_mask > 0, window=window
        )
    return plans[window]


class LocalGlobalSelfAttention(nn.Module):
    """Longformer self-attention, in place of Hugging Face's `LongformerSelfAttention`. Raises ValueError for
    an unknown backend or a bad window."""

    def __init__(
        self,
        *,
        projections: dict[str, nn.Module],  # the six linear modules by name
        heads: int,
        window: int,  # total width
        dropout: float,  # of the attention weights while training
        backend: str = "auto",  # one of BACKENDS
    ) -> None:
        super().__init__()
        check_choice("attention backend", backend, BACKENDS)
        check_window(window)
        for name in Projections._fields:
            setattr(self, name, projections[name])
        self.heads = heads
        self.window = window
        self.dropout = dropout
        self.backend = backend

    @property
    def recorder(self) -> AttentionRecorder | None:
        """What records this layer's attention in the current thread (`record_attention`); None = nothing."""
        return recorder_of(self)

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
        `output_attentions` the weights as `banded_weights` returns them, those from global tokens without
        padding at the end. `attention_mask`: (batch, seq), negative = padding, 0 = local, positive = global;
        others are ignored."""
        batch, seq, embed = hidden_states.shape
        plan, recorder = cut_plan(self, plan_of(attention_mask, window=self.window)), self.recorder
        if output_attentions and plan.whole:
            raise ValueError("attention that is cut in some heads alone cannot be returned; cut all heads")
        flat = hidden_states.flatten(0, 1)
        tokens = flat.index_select(0, plan.order)
        of_locals = self._projected(LOCAL_PROJECTIONS, flat, tokens, plan.local_order)
        if recorder is None and not output_attentions and self._globals_are_few(tokens, plan):
            local_output = attend_from_locals(*of_locals, plan=plan, dropout=self._dropout_now)
            global_output = self._from_few_globals(flat, tokens, plan)
        else:
            packed = Projections(*of_locals, *self._for_globals(flat, tokens, plan))
            local_output, global_output = by_head(partial(self._attend, packed), plan)
        context = hidden_states.new_zeros(batch * seq, embed, dtype=local_output.dtype)
        context.index_copy_(0, plan.local_order, local_output.flatten(1))
        if len(plan.global_order):
            context.index_copy_(0, plan.global_order, global_output.flatten(1))
        context = context.view(batch, seq, embed)
        if recorder is not None:
            recorder.record(packed, plan)
        if not output_attentions:
            return (context,)
        return (context, *banded_weights(packed, plan))

    def of_globals(self, hidden_states: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        """The context of the global tokens alone, (n_global, embed), computing nothing else, and their
        positions in the flattened batch, (n_global,). Nothing is recorded."""
        plan = cut_plan(self, plan_of(attention_mask, window=self.window))
        flat = hidden_states.flatten(0, 1)
        if not len(plan.global_order):
            return flat[:0], plan.global_order
        tokens = flat.index_select(0, plan.order)
        if self._globals_are_few(tokens, plan):
            context = self._from_few_globals(flat, tokens, plan)
        else:
            packed = self._for_globals(flat, tokens, plan)
            attend = partial(attend_from_globals, *packed, dropout=self._dropout_now)
            (context,) = by_head(lambda one: [attend(plan=one)], plan)
        return context.flatten(1), plan.global_order

    @property
    def _dropout_now(self) -> float:
        return self.dropout if self.training else 0.0

    def _projected(self, names: Iterable[str], flat: Tensor, tokens: Tensor, order: Tensor) -> list[Tensor]:
        """Queries of the tokens in `order`, keys and values of all tokens, packed: (tokens, head, dim).
        `flat`: (batch * seq, embed); `tokens`: (n_tokens, embed), in packed order."""
        sources = (flat.index_select(0, order), tokens, tokens)
        return [self._heads(name, states) for name, states in zip(names, sources, strict=True)]

    def _for_globals(self, flat: Tensor, tokens: Tensor, plan: Plan) -> list[Tensor]:
        """Queries, keys and values for the global tokens; all empty if there are none."""
        if not len(plan.global_order):
            return [tokens[:0].unflatten(-1, (self.heads, -1))] * 3
        return self._projected(GLOBAL_PROJECTIONS, flat, tokens, plan.global_order)

    def _heads(self, name: str, states: Tensor) -> Tensor:
        return getattr(self, name)(states).unflatten(-1, (self.heads, -1))

    def _globals_are_few(self, tokens: Tensor, plan: Plan) -> bool:
        """True if `attend_from_few_globals` applies, which needs no projected keys and values for globals."""
        return (
            self._chosen_backend(tokens) == "sparse"
            and not self._dropout_now
            and type(self.key_global) in PLAIN_LINEAR
            and type(self.value_global) in PLAIN_LINEAR
            and globals_are_few(plan, head_size=tokens.shape[-1] // self.heads)
        )

    def _from_few_globals(self, flat: Tensor, tokens: Tensor, plan: Plan) -> Tensor:
        query = self._heads("query_global", flat.index_select(0, plan.global_order))
        return attend_from_few_globals(query, tokens, key=self.key_global, value=self.value_global, plan=plan)

    def _attend(self, packed: Projections, plan: Plan) -> tuple[Tensor, Tensor]:
        """Run the backend on packed projections: outputs of the local and of the global tokens."""
        backend = self._chosen_backend(packed.query)
        if backend == "flex":
            return flex_packed_attention(packed, plan=plan)
        attend = _dense_on_packed if backend == "dense" else sparse_attention
        return attend(packed, plan=plan, dropout=self._dropout_now)

    def _chosen_backend(self, query: Tensor) -> str:
        """The fastest exact backend for the device; FlexAttention does not support dropout."""
        if self.backend == "dense":
            return "dense"
        wanted = self.backend == "flex" or (self.backend == "auto" and query.device.type == "cuda")
        return "flex" if wanted and not self._dropout_now else "sparse"


def _dense_on_packed(packed: Projections, *, plan: Plan, dropout: float) -> tuple[Tensor, Tensor]:
    """The dense reference on packed projections: unpack them to (batch, seq), attend, pack again."""
    batch, seq = plan.shape
    present, is_global = plan.masks
    for_globals = plan.order if len(plan.global_order) else plan.global_order
    orders = (plan.local_order, plan.order, plan.order, plan.global_order, for_globals, for_globals)

    def spread(packed: Tensor, order: Tensor) -> Tensor:
        empty = packed.new_zeros(batch * seq, *packed.shape[1:])
        return empty.index_copy(0, order, packed).unflatten(0, (batch, seq))

    output = dense_attention(
        Projections(*(spread(one, order) for one, order in zip(packed, orders, strict=True))),
        attention_mask=present,
        global_mask=is_global,
        window=plan.window,
        dropout=dropout,
        cut=plan.cut,
    ).flatten(0, 1)
    return output[plan.local_order], output[plan.global_order]


def replace_self_attention(model: nn.Module, backend: str = "auto") -> nn.Module:
    """Replace every Longformer self-attention in `model`, recognised by its six projections and its window,
    by ours, in place, and let linear layers read rounded numbers of rows; returns the model. Called again,
    it only changes the backend. Raises ValueError if there is none."""
    check_choice("attention backend", backend, BACKENDS)
    count = 0
    for parent in list(model.modules()):
        if hasattr(parent, "_pad_to_window_size"):
            parent._pad_to_window_size = _not_padded
            mask_by_row(parent)
        if type(parent) is nn.Linear:
            parent.__class__ = RoundedRowsLinear
        for name, child in list(parent.named_children()):
            if isinstance(child, LocalGlobalSelfAttention):
                child.backend = backend
                count += 1
            elif all(hasattr(child, of) for of in (*Projections._fields, "one_sided_attn_window_size")):
                setattr(parent, name, _converted(child, backend=backend))
                count += 1
    if not count:
        raise ValueError(f"{type(model).__name__} holds no Longformer self-attention to replace")
    return model


def _not_padded(*, pad_token_id: int, **given: Tensor | None) -> tuple[int | Tensor | None, ...]:
    """Hugging Face's `_pad_to_window_size` without any padding: our attention takes texts of any length."""
    return 0, *given.values()


class RoundedRowsLinear(nn.Linear):
    """`nn.Linear`, which oneDNN computes with rows of zeros up to a multiple of `SIDE`."""

    def forward(self, states: Tensor) -> Tensor:
        """(..., in_features) -> (..., out_features)."""
        missing = -states.shape[:-1].numel() % SIDE
        if not missing or not torch.is_autocast_enabled("cpu"):
            return super().forward(states)
        padded = nn.functional.pad(states.reshape(-1, states.shape[-1]), (0, 0, 0, missing))
        return super().forward(padded)[:-missing].view(*states.shape[:-1], -1)


PLAIN_LINEAR = (nn.Linear, RoundedRowsLinear)


def _converted(module: Any, *, backend: str) -> LocalGlobalSelfAttention:
    replacement = LocalGlobalSelfAttention(
        projections={name: getattr(module, name) for name in Projections._fields},
        heads=module.num_heads,
        window=2 * module.one_sided_attn_window_size,
        dropout=module.dropout,
        backend=backend,
    )
    return replacement.train(module.training)


def read_only_globals(model: nn.Module) -> nn.Module:
    """Make the last layer of a `LongformerModel`, after `replace_self_attention`, compute global tokens only,
    in place; returns the model. The last hidden states of global tokens and their gradients stay the same;
    those of all other tokens become 0. A model with other attention is not changed."""
    if not hasattr(model, "encoder"):
        return model
    layer = model.encoder.layer[-1]
    replaced = isinstance(layer.attention.self, LocalGlobalSelfAttention)
    if replaced and inspect.unwrap(type(layer).forward) is not _globals_only:
        layer.__class__ = _changed(type(layer), _forward_of_globals)
    return model


def _forward_of_globals(_: type[nn.Module]) -> Callable[..., Any]:
    return _globals_only


def _globals_only(
    layer: Any, hidden_states: Tensor, attention_mask: Tensor, output_attentions: bool = False, **_: Any
) -> tuple[Tensor]:
    """The forward of a `LongformerLayer` for global tokens only; other tokens get 0."""
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
