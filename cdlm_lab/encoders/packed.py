"""Local + global attention on packed tokens, in encoders of Hugging Face's.

`replace_self_attention(model)` makes every Longformer and ModernBERT in `model`, and the encoder of every
LED, such as PRIMERA, pack its tokens once a forward: all layers then see (1, tokens, embed) without padding,
in the order of the plan (see cdlm_lab.attention.plan). The plan comes with the batch, where its collate
function made it, or is made from the masks. Texts within half a window, without global tokens, such as
sentences, need neither: all their tokens attend to each other, as in BERT, by PyTorch's own attention.

A Longformer has the weights and results of Hugging Face's, without what that computes in vain. In ModernBERT
(Warner et al. 2024) each third layer sees the whole text and the others 64 tokens on each side; here all see
half a `window` and the global tokens, so that variants of CDLM differ in their global tokens alone. A global
token attends with the same projections as others: there are no separate ones to reset or to copy.

`read_only_globals(model)` goes further for models whose head reads only global tokens, such as that of
coreference: their last layer computes the states of these alone.

A model is changed by giving it a class of this module, which has the name of Hugging Face's, since
`save_pretrained` writes it into the config.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from transformers.models.led import modeling_led
from transformers.models.longformer import modeling_longformer
from transformers.models.longformer.modeling_longformer import (
    LongformerBaseModelOutputWithPooling,
    create_position_ids_from_input_ids,
)
from transformers.models.modernbert import modeling_modernbert
from transformers.models.modernbert.modeling_modernbert import apply_rotary_pos_emb

from cdlm_lab.attention.cut import cut_plan
from cdlm_lab.attention.layer import (
    BACKENDS,
    EveryToken,
    LocalGlobalAttention,
    rows_of_products,
    with_our_attention,
)
from cdlm_lab.attention.plan import Plan, Projections, make_plan
from cdlm_lab.errors import check_choice


class _Packing:
    """How a batch is packed for layers with the given attentions; or not, where they are all to see all."""

    def __init__(
        self,
        given: Tensor,  # (batch, seq, ...), on the device of the model
        masks: tuple[Tensor | None, Tensor | None],  # Hugging Face's attention_mask, global_attention_mask
        plan: Plan | None,
        attentions: list[LocalGlobalAttention],
        *,
        weights: bool,  # whether they are to return their weights
    ) -> None:
        batch, seq = given.shape[:2]
        if plan is not None and plan.shape != (batch, seq):
            raise ValueError(f"the plan is of a batch {plan.shape}, but this is {(batch, seq)}")
        self.plan: Plan | None = None
        sees_all = masks[1] is None and not weights and all(one.sees_all(seq) for one in attentions)
        if plan is None and sees_all and not _packing_pays(given, masks[0]):
            self.of_layers: list[Any] = [EveryToken(_key_mask(masks[0]))] * len(attentions)
            return
        plans = {} if plan is None else {plan.window: plan.to(given.device)}
        for window in {one.window for one in attentions} - plans.keys():
            plans[window] = make_plan(**_bool_masks(given, *masks), window=window)
        self.of_layers = [plans[one.window] for one in attentions]
        self.plan = self.of_layers[0]
        self._multiple = rows_of_products() if given.device.type == "cpu" else 1

    def pack(self, values: Tensor | None) -> Tensor | None:
        """(batch, seq, ...) as the layers take it; None stays None."""
        if values is None or self.plan is None:
            return values
        return self.plan.pack(values, multiple=self._multiple)

    def unpack(self, states: Tensor) -> Tensor:
        """What layers return as (batch, seq, ...)."""
        return states if self.plan is None else self.plan.unpack(states)


PADDING = 0.15  # share of a batch
SHORT = 128  # tokens


def _packing_pays(given: Tensor, attention_mask: Tensor | None) -> bool:
    """Whether a batch that needs no plan is read faster with one, as measured on a core with AMX. In half
    precision PyTorch's own attention gains more than padding loses, except in its backward: 32 sentences of
    32 tokens take 1.5 times as long. Elsewhere than on a CPU it is never asked, since a GPU would wait."""
    if given.device.type != "cpu" or attention_mask is None:
        return False
    padding = 1 - attention_mask.sum().item() / attention_mask.numel()
    if not torch.is_autocast_enabled("cpu"):
        return padding > PADDING
    return torch.is_grad_enabled() and (padding > PADDING or given.shape[1] <= SHORT)


def _key_mask(attention_mask: Tensor | None) -> Tensor | None:
    if attention_mask is None or (attention_mask.device.type == "cpu" and bool(attention_mask.all())):
        return None
    return attention_mask.bool()[:, None, None]


def _bool_masks(given: Tensor, attention_mask: Tensor | None, is_global: Tensor | None) -> dict[str, Tensor]:
    """The masks of a plan, (batch, seq) bool, from Hugging Face's, 1 = token or global."""
    shape, device = given.shape[:2], given.device
    everywhere = torch.ones(shape, dtype=torch.bool, device=device)
    return {
        "attention_mask": everywhere if attention_mask is None else attention_mask > 0,
        "global_mask": ~everywhere if is_global is None else is_global > 0,
    }


def _either(input_ids: Tensor | None, inputs_embeds: Tensor | None) -> Tensor:
    if (input_ids is None) == (inputs_embeds is None):
        raise ValueError("give either input_ids or inputs_embeds")
    return inputs_embeds if input_ids is None else input_ids


def _read(
    kind: type[Any],
    layers: list[nn.Module],
    packing: _Packing,
    states: Tensor,
    *,
    last: Any = None,
    hidden: bool = False,
    attentions: bool = False,
) -> Any:
    """Let `states` go through all layers: an output of the given kind. `last`: computes the last layer
    instead of its own forward; `hidden`, `attentions`: return the states before and after each layer, the
    weights of each."""
    every, weights = [], []
    for number, (layer, plan) in enumerate(zip(layers, packing.of_layers, strict=True), 1):
        every += [packing.unpack(states)] if hidden else []
        if last is not None and number == len(layers):
            states = last(layer, states, plan)
            continue
        states, *of_layer = layer(states, attention_mask=plan, output_attentions=attentions)
        weights.append(of_layer)
    output = kind(last_hidden_state=packing.unpack(states))
    if hidden:
        output.hidden_states = (*every, output.last_hidden_state)
    if attentions:  # (batch, head, seq, key), and with globals (batch, head, seq, global)
        output.attentions, *of_globals = (tuple(each) for each in zip(*weights, strict=True))
        output.attentions = tuple(each.transpose(1, 2) for each in output.attentions)
        if of_globals:
            output.global_attentions = tuple(each.transpose(2, 3) for each in of_globals[0])
    return output


class LongformerModel(modeling_longformer.LongformerModel):
    """A Longformer that packs its tokens once a forward."""

    only_globals = False  # True = the last layer computes global tokens only

    def forward(
        self,
        input_ids: Tensor | None = None,  # (batch, seq)
        attention_mask: Tensor | None = None,  # (batch, seq), 1 = token, 0 = padding; None = no padding
        global_attention_mask: Tensor | None = None,  # (batch, seq), 1 = global; None = none
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,  # (batch, seq, embed), instead of `input_ids`
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        plan: Plan | None = None,  # of the masks, where the batch was made; None = it is made here
        **_: Any,
    ) -> Any:
        """Hugging Face's arguments and results; the states of padding mean nothing."""
        given = _either(input_ids, inputs_embeds)
        config, layers = self.config, list(self.encoder.layer)
        attentions = config.output_attentions if output_attentions is None else output_attentions
        hidden = config.output_hidden_states if output_hidden_states is None else output_hidden_states
        last = self._last_of_globals if self.only_globals else None
        if last and (attentions or layers[-1].attention.self.recorder is not None):
            raise ValueError(
                "the last layer computes global tokens only, so it has no attention to show; load the "
                "encoder with load_encoder"
            )
        masks = (attention_mask, global_attention_mask)
        of_layers = [layer.attention.self for layer in layers]
        packing = _Packing(given, masks, plan, of_layers, weights=attentions or last is not None)
        if position_ids is None:
            position_ids = (
                create_position_ids_from_input_ids(input_ids, self.embeddings.padding_idx)
                if input_ids is not None
                else self.embeddings.create_position_ids_from_inputs_embeds(inputs_embeds)
            )
        embedded = {"input_ids": input_ids, "position_ids": position_ids.expand(given.shape[:2])}
        embedded |= {"token_type_ids": token_type_ids, "inputs_embeds": inputs_embeds}
        states = self.embeddings(**{name: packing.pack(values) for name, values in embedded.items()})
        form = {"last": last, "hidden": hidden, "attentions": attentions}
        output = _read(LongformerBaseModelOutputWithPooling, layers, packing, states, **form)
        if self.pooler is not None:
            output.pooler_output = self.pooler(output.last_hidden_state)
        return output if (config.return_dict if return_dict is None else return_dict) else output.to_tuple()

    def _last_of_globals(self, layer: Any, states: Tensor, plan: Plan) -> Tensor:
        """What a `LongformerLayer` computes for global tokens, from packed states; others get 0."""
        context = layer.attention.self.of_globals(states, plan)
        of_globals = states[0].index_select(0, plan.global_places)
        computed = layer.ff_chunk(layer.attention.output(context, of_globals))
        return computed.new_zeros(states.shape[1:]).index_copy(0, plan.global_places, computed)[None]


class LEDEncoder(modeling_led.LEDEncoder):
    """The encoder of an LED that packs its tokens once a forward."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        global_attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        plan: Plan | None = None,
        **_: Any,
    ) -> Any:
        """Hugging Face's arguments and results; the states of padding mean nothing. No layer is left out at
        random in training, as `encoder_layerdrop` asks."""
        given = _either(input_ids, inputs_embeds)
        embedded = self.embed_tokens(given) if inputs_embeds is None else given
        config, layers = self.config, list(self.layers)
        attentions = config.output_attentions if output_attentions is None else output_attentions
        hidden = config.output_hidden_states if output_hidden_states is None else output_hidden_states
        masks = (attention_mask, global_attention_mask)
        of_layers = [layer.self_attn.longformer_self_attn for layer in layers]
        packing = _Packing(embedded, masks, plan, of_layers, weights=attentions)
        states = packing.pack(embedded + self.embed_positions(embedded.shape[:2]))
        states = self.layernorm_embedding(states)
        states = nn.functional.dropout(states, p=self.dropout, training=self.training)
        form = {"hidden": hidden, "attentions": attentions}
        output = _read(modeling_led.LEDEncoderBaseModelOutput, layers, packing, states, **form)
        return output if (config.return_dict if return_dict is None else return_dict) else output.to_tuple()


class ModernBertAttention(LocalGlobalAttention, modeling_modernbert.ModernBertAttention):
    """ModernBERT's self-attention, local + global."""

    def forward(
        self,
        hidden_states: Tensor,  # packed (1, tokens, embed), or (batch, seq, embed) with an `EveryToken`
        position_embeddings: tuple[Tensor, Tensor],
        attention_mask: Plan | EveryToken,
        **_: Any,
    ) -> tuple[Tensor, None]:
        """What Hugging Face's returns, without weights."""
        projected = self.Wqkv(hidden_states).unflatten(-1, (3, self.heads, -1))
        query, key, value = projected.unbind(dim=-3)
        query, key = apply_rotary_pos_emb(query, key, *position_embeddings, unsqueeze_dim=2)
        if isinstance(attention_mask, EveryToken):
            context = self.to_every_token(query, key, value, attention_mask)
        else:
            plan, (query, key, value) = cut_plan(self, attention_mask), (query[0], key[0], value[0])
            of_locals, of_globals = (query[of] for of in (plan.local_places, plan.global_places))
            for_globals = (key, value) if len(of_globals) else (key[:0], value[:0])
            packed = Projections(of_locals, key, value, of_globals, *for_globals)
            context = self.context(packed, plan, tokens=len(query))[None]
        return self.out_drop(self.Wo(context)), None


class ModernBertModel(modeling_modernbert.ModernBertModel):
    """A ModernBERT with local + global attention that packs its tokens once a forward."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        global_attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,  # not read: there are no types of tokens
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        plan: Plan | None = None,
        **others: Any,
    ) -> Any:
        """Hugging Face's arguments and results, and those of Longformer; weights are not returned."""
        given = _either(input_ids, inputs_embeds)
        if others.get("output_attentions", self.config.output_attentions):
            raise ValueError("ModernBERT with these masks returns no weights; attend_to_source records them")
        masks, of_layers = (attention_mask, global_attention_mask), [layer.attn for layer in self.layers]
        packing = _Packing(given, masks, plan, of_layers, weights=False)
        if position_ids is None:
            position_ids = torch.arange(given.shape[1], device=given.device)
        output = super().forward(
            input_ids=packing.pack(input_ids),
            inputs_embeds=packing.pack(inputs_embeds),
            position_ids=packing.pack(position_ids.expand(given.shape[:2])),
            attention_mask=dict.fromkeys(self.config.layer_types, packing.of_layers[0]),
            **others,
        )
        output.last_hidden_state = packing.unpack(output.last_hidden_state)
        if output.hidden_states is not None:
            output.hidden_states = tuple(map(packing.unpack, output.hidden_states))
        return output


_OURS = {
    modeling_longformer.LongformerModel: LongformerModel,
    modeling_led.LEDEncoder: LEDEncoder,
    modeling_modernbert.ModernBertModel: ModernBertModel,
}


def replace_self_attention(model: nn.Module, backend: str = "auto") -> nn.Module:
    """Make every Longformer and ModernBERT in `model`, and the encoder of every LED, pack its tokens and
    attend with ours, in place; returns the model. Called again, it only changes the backend. A ModernBERT's
    config has the `attention_window` of each layer. Raises ValueError if there is none, or for an unknown
    backend."""
    check_choice("attention backend", backend, BACKENDS)
    found = [module for module in model.modules() if isinstance(module, tuple(_OURS))]
    if not found:
        raise ValueError(f"{type(model).__name__} holds no Longformer or ModernBERT to replace attention in")
    for encoder in found:
        encoder.__class__ = _OURS.get(type(encoder), type(encoder))
        for parent, name, attention in list(_attentions(encoder)):
            if isinstance(attention, modeling_modernbert.ModernBertAttention):
                attention.__class__ = ModernBertAttention
                config = attention.config
                attention.heads, attention.dropout = config.num_attention_heads, config.attention_dropout
                attention.window, attention.backend = config.attention_window[attention.layer_idx], backend
            elif isinstance(attention, LocalGlobalAttention):
                attention.backend = backend
            else:
                setattr(parent, name, with_our_attention(attention, backend=backend))
    return model


def _attentions(encoder: nn.Module) -> Iterator[tuple[nn.Module, str, nn.Module]]:
    """The self-attentions of an encoder with parent and name: Longformer's by their six projections."""
    for parent in encoder.modules():
        for name, child in parent.named_children():
            of_longformer = all(hasattr(child, projection) for projection in Projections._fields)
            if of_longformer or isinstance(child, modeling_modernbert.ModernBertAttention):
                yield parent, name, child


def read_only_globals(model: nn.Module) -> nn.Module:
    """Make the last layer of a Longformer, after `replace_self_attention`, compute global tokens only, in
    place; returns the model. The last hidden states of global tokens and their gradients stay the same; those
    of all other tokens become 0. A model with Hugging Face's own attention is not changed."""
    if isinstance(model, LongformerModel):
        model.only_globals = True
    return model
