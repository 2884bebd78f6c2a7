"""Longformer's self-attention on packed tokens, with the parameter names of Hugging Face's; and what it has
in common with that of other encoders that attend so (`LocalGlobalAttention`).

The six projections are the model's own modules, so checkpoints load both ways and nothing is copied. What
Hugging Face's computes in vain is skipped: local queries of global tokens, global queries of local tokens,
global projections where no token is global, padding. Nothing of a batch is kept in a layer: so threads can
share a model, and it can be copied, pickled and replicated (`torch.nn.DataParallel`).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from cdlm_lab.attention.cut import cut_plan, is_cut
from cdlm_lab.attention.dense import dense_attention
from cdlm_lab.attention.flex import flex_packed_attention
from cdlm_lab.attention.plan import SIDE, Plan, Projections, by_head, check_window
from cdlm_lab.attention.sparse import (
    attend_from_few_globals,
    attend_from_globals,
    attend_from_locals,
    globals_are_few,
    sparse_attention,
)
from cdlm_lab.attention.weights import AttentionRecorder, banded_weights, recorder_of
from cdlm_lab.errors import check_choice

BACKENDS = ("auto", "sparse", "flex", "dense")
LOCAL_PROJECTIONS, GLOBAL_PROJECTIONS = Projections._fields[:3], Projections._fields[3:]


def rows_of_products() -> int:
    """What the number of rows of a matrix product should be a multiple of: `SIDE` in half precision on the
    CPU, where oneDNN compiles a product for every number, else 1."""
    return SIDE if torch.is_autocast_enabled("cpu") else 1


class EveryToken(NamedTuple):
    """In place of a plan: each token of (batch, seq, embed) attends to every other, and none is global."""

    mask: Tensor | None  # (batch, 1, 1, seq) bool, True = token, False = padding; None = no padding


class LocalGlobalAttention(nn.Module):
    """What an encoder's self-attention needs to be local + global on packed tokens: the backends, and what
    records and cuts it. Subclasses have the projections."""

    heads: int
    window: int  # total width
    dropout: float  # of the attention weights while training
    backend: str = "auto"  # one of BACKENDS

    @property
    def recorder(self) -> AttentionRecorder | None:
        """What records this layer's attention in the current thread (`record_attention`); None = nothing."""
        return recorder_of(self)

    def sees_all(self, seq: int) -> bool:
        """True if texts of `seq` tokens need no plan, as each local token attends to every other; not where
        a backend is asked for, or attention is recorded or cut."""
        watched = self.recorder is not None or is_cut(self)
        return self.backend == "auto" and self.window // 2 >= seq - 1 and not watched

    def to_every_token(self, query: Tensor, key: Tensor, value: Tensor, given: EveryToken) -> Tensor:
        """The context (batch, seq, embed) where all tokens attend to all, from (batch, seq, head, dim)."""
        heads_first = (one.transpose(1, 2) for one in (query, key, value))
        form = {"attn_mask": given.mask, "dropout_p": self._dropout_now}
        return nn.functional.scaled_dot_product_attention(*heads_first, **form).transpose(1, 2).flatten(2)

    def context(self, packed: Projections, plan: Plan, *, tokens: int) -> Tensor:
        """The context (tokens, embed) of packed projections, recorded where that is asked for; 0 for what
        fills up the tokens. `plan`: as `cut_plan` returns it."""
        context = _joined(*by_head(partial(self._attend, packed), plan), plan, tokens=tokens)
        if self.recorder is not None:
            self.recorder.record(packed, plan)
        return context

    @property
    def _dropout_now(self) -> float:
        return self.dropout if self.training else 0.0

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


class LocalGlobalSelfAttention(LocalGlobalAttention):
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

    def forward(
        self,
        hidden_states: Tensor,
        attention_mask: Plan | EveryToken,
        output_attentions: bool = False,
        **_: Any,
    ) -> tuple[Tensor, ...]:
        """The context (1, tokens, embed) of packed `hidden_states` of that shape, 0 for what fills up the
        tokens, and with `output_attentions` the weights as `banded_weights` returns them. Hugging Face's
        layers hand on as `attention_mask` what they are given, here the plan; or `EveryToken`, for states
        (batch, seq, embed) that are not packed."""
        hidden_states = _as_products(hidden_states)
        if isinstance(attention_mask, EveryToken):
            projected = (self._heads(of, hidden_states) for of in LOCAL_PROJECTIONS)
            return (self.to_every_token(*projected, attention_mask),)
        plan, tokens = cut_plan(self, attention_mask), hidden_states[0]
        if output_attentions and plan.whole:
            raise ValueError("attention that is cut in some heads alone cannot be returned; cut all heads")
        of_locals = self._projected(LOCAL_PROJECTIONS, tokens, plan.local_places)
        if self.recorder is None and not output_attentions and self._globals_are_few(tokens, plan):
            local_output = attend_from_locals(*of_locals, plan=plan, dropout=self._dropout_now)
            global_output = self._from_few_globals(tokens, plan)
            return (_joined(local_output, global_output, plan, tokens=len(tokens))[None],)
        packed = Projections(*of_locals, *self._for_globals(tokens, plan))
        context = self.context(packed, plan, tokens=len(tokens))[None]
        return (context, *banded_weights(packed, plan)) if output_attentions else (context,)

    def of_globals(self, hidden_states: Tensor, plan: Plan) -> Tensor:
        """The context of the global tokens alone, (n_global, embed), computing nothing else, from packed
        states (1, tokens, embed). Nothing is recorded."""
        plan, tokens = cut_plan(self, plan), _as_products(hidden_states[0])
        if not len(plan.global_places):
            return tokens[:0]
        if self._globals_are_few(tokens, plan):
            context = self._from_few_globals(tokens, plan)
        else:
            packed = self._for_globals(tokens, plan)
            attend = partial(attend_from_globals, *packed, dropout=self._dropout_now)
            (context,) = by_head(lambda one: [attend(plan=one)], plan)
        return context.flatten(1)

    def _projected(self, names: tuple[str, ...], tokens: Tensor, places: Tensor) -> list[Tensor]:
        """Queries of the tokens at `places`, keys and values of all `tokens` (tokens, embed): (tokens, head,
        dim) each."""
        query, key, value = names
        return [self._queries(query, tokens, places), self._heads(key, tokens), self._heads(value, tokens)]

    def _queries(self, name: str, tokens: Tensor, places: Tensor) -> Tensor:
        if len(places) == len(tokens):
            return self._heads(name, tokens)
        if missing := -len(places) % rows_of_products():  # what fills up is dropped again
            places = torch.cat([places, places.new_zeros(missing)])
        projected = self._heads(name, tokens.index_select(0, places))
        return projected[: len(places) - missing] if missing else projected

    def _for_globals(self, tokens: Tensor, plan: Plan) -> list[Tensor]:
        """Queries, keys and values for the global tokens; all empty if there are none."""
        if not len(plan.global_places):
            return [tokens[:0].unflatten(-1, (self.heads, -1))] * 3
        return self._projected(GLOBAL_PROJECTIONS, tokens, plan.global_places)

    def _heads(self, name: str, states: Tensor) -> Tensor:
        return getattr(self, name)(states).unflatten(-1, (self.heads, -1))

    def _globals_are_few(self, tokens: Tensor, plan: Plan) -> bool:
        """True if `attend_from_few_globals` applies, which needs no projected keys and values for globals."""
        return (
            self._chosen_backend(tokens) == "sparse"
            and not self._dropout_now
            and type(self.key_global) is type(self.value_global) is nn.Linear
            and globals_are_few(plan, head_size=tokens.shape[-1] // self.heads)
        )

    def _from_few_globals(self, tokens: Tensor, plan: Plan) -> Tensor:
        query = self._queries("query_global", tokens, plan.global_places)
        return attend_from_few_globals(query, tokens, key=self.key_global, value=self.value_global, plan=plan)


def _joined(of_locals: Tensor, of_globals: Tensor, plan: Plan, *, tokens: int) -> Tensor:
    """Outputs (token, head, dim) of the local and of the global tokens as (tokens, embed) in packed order, 0
    for what fills up the tokens."""
    context = of_locals.flatten(1)
    if len(context) < tokens:
        empty = context.new_zeros(tokens, context.shape[1])
        context = empty.index_copy_(0, plan.local_places, context)
        if len(plan.global_places):
            context.index_copy_(0, plan.global_places, of_globals.flatten(1))
    return context


def _as_products(tokens: Tensor) -> Tensor:
    """Tokens in the precision in which autocast multiplies them, converted once for all projections; where
    gradients are wanted as they are, since theirs are summed in float32."""
    kind = tokens.device.type
    if torch.is_grad_enabled() or not torch.is_autocast_enabled(kind):
        return tokens
    return tokens.to(torch.get_autocast_dtype(kind))


def _dense_on_packed(packed: Projections, *, plan: Plan, dropout: float) -> tuple[Tensor, Tensor]:
    """The dense reference on packed projections: unpack them to (batch, seq), attend, pack again."""
    batch, seq = plan.shape
    present, is_global = plan.masks
    for_globals = plan.order if len(plan.global_places) else plan.global_order
    orders = (plan.local_order, plan.order, plan.order, plan.global_order, for_globals, for_globals)

    def spread(packed: Tensor, order: Tensor) -> Tensor:
        empty = packed.new_zeros(batch * seq, *packed.shape[1:])
        return empty.index_copy(0, order, packed[: len(order)]).unflatten(0, (batch, seq))

    output = dense_attention(
        Projections(*(spread(one, order) for one, order in zip(packed, orders, strict=True))),
        attention_mask=present,
        global_mask=is_global,
        window=plan.window,
        dropout=dropout,
        cut=plan.cut,
    ).flatten(0, 1)
    return output[plan.local_order], output[plan.global_order]


def with_our_attention(module: Any, *, backend: str) -> LocalGlobalSelfAttention:
    """Our attention with the projections, window and dropout of a Longformer's self-attention of Hugging
    Face's."""
    replacement = LocalGlobalSelfAttention(
        projections={name: getattr(module, name) for name in Projections._fields},
        heads=module.num_heads,
        window=2 * module.one_sided_attn_window_size,
        dropout=module.dropout,
        backend=backend,
    )
    return replacement.train(module.training)
