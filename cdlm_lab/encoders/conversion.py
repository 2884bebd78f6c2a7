"""Converting BERT and RoBERTa checkpoints to Longformer (Beltagy et al. 2020, section 5).

Weights are copied by name. Position embeddings are repeated up to the wanted length, so that each stretch of
the old length keeps the positions it was trained with; global projections start as copies of the local ones.
On texts within the old limit, with a window that covers them, the converted model computes the same as
before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import chain
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector
from transformers import (
    BertForMaskedLM,
    LongformerConfig,
    PretrainedConfig,
    PreTrainedModel,
    RobertaForMaskedLM,
)

from cdlm_lab.encoders.variants import variant_of

AnyModule = TypeVar("AnyModule", bound=nn.Module)
CONVERTED_FROM = {"bert": BertForMaskedLM, "roberta": RobertaForMaskedLM}
LOCAL_TO_GLOBAL = {"query": "query_global", "key": "key_global", "value": "value_global"}
# Prefix of weight names in BertForMaskedLM or RobertaForMaskedLM -> prefix in LongformerForMaskedLM
RENAMED = {
    "bert.": "longformer.",
    "roberta.": "longformer.",
    "cls.predictions.transform.dense.": "lm_head.dense.",
    "cls.predictions.transform.LayerNorm.": "lm_head.layer_norm.",
    "cls.predictions.decoder.": "lm_head.decoder.",
    "cls.predictions.bias": "lm_head.bias",
    "lm_head.": "lm_head.",
}
COPIED_SETTINGS = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"),
    *("hidden_act", "hidden_dropout_prob", "attention_probs_dropout_prob", "type_vocab_size"),
    *("initializer_range", "layer_norm_eps", "pad_token_id"),
)
# Values these settings must have for the converted model to compute the same as the original
NEEDED_SETTINGS = {"position_embedding_type": "absolute", "is_decoder": False, "tie_word_embeddings": True}
POSITIONS = "longformer.embeddings.position_embeddings.weight"


def longformer_config(config: PretrainedConfig, *, max_length: int, window: int) -> LongformerConfig:
    """The Longformer config for a BERT or RoBERTa config: same sizes, `max_length` positions, one window for
    all layers. Raises ValueError for other model types, relative positions, a decoder, or untied
    embeddings."""
    if config.model_type not in CONVERTED_FROM:
        raise ValueError(
            f"model_type is {config.model_type!r}: 'longformer' and 'modernbert' are taken as they are, "
            "'bert' and 'roberta' are converted, others are not"
        )
    for setting, needed in NEEDED_SETTINGS.items():
        if (value := getattr(config, setting, needed)) != needed:
            raise ValueError(f"{setting} is {value!r}; only a checkpoint with {needed!r} can be converted")
    return LongformerConfig(
        **{name: getattr(config, name) for name in COPIED_SETTINGS},
        max_position_embeddings=max_length + config.pad_token_id + 1,
        attention_window=[window] * config.num_hidden_layers,
        bos_token_id=config.bos_token_id,
        eos_token_id=config.eos_token_id,
        sep_token_id=config.eos_token_id,
    )


def converted_weights(original: PreTrainedModel, *, max_length: int) -> dict[str, Tensor]:
    """The weights of a BERT or RoBERTa language model under their names in `LongformerForMaskedLM`."""
    config, converted = original.config, {}
    for name, tensor in original.state_dict().items():
        old, new = next((old, new) for old, new in RENAMED.items() if name.startswith(old))
        converted[new + name.removeprefix(old)] = tensor
    converted[POSITIONS] = tiled_positions(
        converted[POSITIONS],
        # RoBERTa numbers positions from padding_idx + 1, as Longformer does; BERT from 0
        first=0 if config.model_type == "bert" else config.pad_token_id + 1,
        padding_idx=config.pad_token_id,
        max_length=max_length,
    )
    for name in list(converted):
        before, self_attention, rest = name.partition(".attention.self.")
        if self_attention:
            projection, _, kind = rest.partition(".")  # "query", "weight"
            new_name = f"{before}{self_attention}{LOCAL_TO_GLOBAL[projection]}.{kind}"
            converted[new_name] = converted[name].clone()
    return converted


def tiled_positions(table: Tensor, *, first: int, padding_idx: int, max_length: int) -> Tensor:
    """Longformer's position table, (padding_idx + 1 + max_length, dim): the rows of `table` from `first` on,
    repeated. Rows up to and including `padding_idx` are zero, for no real token has these position ids.

    >>> tiled_positions(torch.tensor([[1.0], [2.0]]), first=0, padding_idx=0, max_length=5).flatten().tolist()
    [0.0, 1.0, 2.0, 1.0, 2.0, 1.0]
    """
    used = table[first:]
    repeats = math.ceil(max_length / len(used))
    return torch.cat([table.new_zeros(padding_idx + 1, table.shape[1]), used.repeat(repeats, 1)[:max_length]])


def extend_positions(model: PreTrainedModel, max_length: int) -> None:
    """Give a model `max_length` positions, those it has repeated, as BERT's are in a converted model, or
    further rotary ones: it then has to be trained on longer texts. One that has as many stays as it is."""
    table, config = getattr(model.base_model.embeddings, "position_embeddings", None), model.config
    if table is None:
        config.max_position_embeddings = max(max_length, config.max_position_embeddings)
        return
    first = config.pad_token_id + 1
    if max_length > table.num_embeddings - first:
        form = {"first": first, "padding_idx": config.pad_token_id, "max_length": max_length}
        table.weight = nn.Parameter(tiled_positions(table.weight.detach(), **form))
        table.num_embeddings = config.max_position_embeddings = len(table.weight)


def copy_local_to_global(model: AnyModule) -> AnyModule:
    """Set every global projection in `model` to a copy of its local one, in place, as the paper does with
    Longformer and Local CDLM before fine-tuning (section 3, "Baseline LMs"); returns the model. Raises
    ValueError when the model has no global projections."""
    return _copy_projections(model, LOCAL_TO_GLOBAL)


def copy_global_to_local(model: AnyModule) -> AnyModule:
    """Set local projections to the global ones, in place: all tokens then attend as CDLM's masked ones do."""
    return _copy_projections(model, {after: before for before, after in LOCAL_TO_GLOBAL.items()})


def copied_globals(model: nn.Module) -> dict[nn.Module, Tensor]:
    """The attention layers of `model` whose global projections equal the local ones, and what both are."""
    values = {layer: _values(layer) for layer in _layers_with_globals(model)}
    return {layer: one for layer, one in values.items() if one.equal(_values(layer, "_global"))}


def update_unused_globals(before: Mapping[nn.Module, Tensor]) -> None:
    """Copy the local projections again in the layers whose global ones a training left as they were `before`
    (see `copied_globals`): global tokens of a later training then read by what this one has learned."""
    for layer, values in before.items():
        if values.equal(_values(layer, "_global").to(values.device)):
            copy_local_to_global(layer)


def _layers_with_globals(model: nn.Module) -> list[nn.Module]:
    return [module for module in model.modules() if hasattr(module, "query_global")]


def _values(layer: nn.Module, suffix: str = "") -> Tensor:
    every = (getattr(layer, f"{name}{suffix}").parameters() for name in LOCAL_TO_GLOBAL)
    return parameters_to_vector(chain.from_iterable(every)).detach()


def _copy_projections(model: AnyModule, names: Mapping[str, str]) -> AnyModule:
    if not (layers := _layers_with_globals(model)):
        raise ValueError(f"{type(model).__name__} has no global projections: it is no Longformer")
    with torch.no_grad():
        for layer in layers:
            for source, target in names.items():
                getattr(layer, target).load_state_dict(getattr(layer, source).state_dict())
    return model


def reset_globals(model: nn.Module, name: str) -> None:
    """Copy the local projections of a variant that was trained without global tokens over its global ones, in
    place; other variants are left unchanged, and models without separate global projections."""
    if variant_of(name).global_policy == "none" and _layers_with_globals(model):
        copy_local_to_global(model)
