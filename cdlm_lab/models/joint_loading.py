"""Loading encoders for sentences that are read together: every token sees every other, and there is a token
type for each sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeVar

import torch
from torch import nn
from transformers import LongformerModel, PreTrainedModel, PreTrainedTokenizerFast

from cdlm_lab.attention.layer import LocalGlobalSelfAttention
from cdlm_lab.models.checkpoint import CheckpointError, is_trained, named_faults, own_randomness, read_config
from cdlm_lab.models.encoder import load_encoder, load_trained
from cdlm_lab.models.model_folder import CONFIG_FILE
from cdlm_lab.models.sentence_encoder import lengths_of
from cdlm_lab.models.shipped import shipped_folder

Model = TypeVar("Model", bound=PreTrainedModel)
MADE_TO_MEASURE = ("tiny", "minilm")  # no folders: they get as many positions as are asked for


def load_on_sentences(
    model_class: type[Model],
    name: str,
    *,
    head: Any | None,
    window: int | None,
    seed: int,
    load: Callable[..., tuple[PreTrainedModel, PreTrainedTokenizerFast]] = load_encoder,
    max_length: int | None = None,
    **form: Any,
) -> tuple[Model, PreTrainedTokenizerFast]:
    """A model over joint sequences, on top of an encoder or trained, from its folder, and its tokenizer.

    Args:
        model_class: it keeps its encoder in `longformer` and the form of its head, a `head_class`, in
            `config.joint`.
        name: a folder that such a model was saved in, or an encoder as of `load_encoder`.
        head: the form; it has a `layout`. None = that of the trained model.
        window: total width of attention; None = every token sees every other.
        load: what loads the encoder; what comes with it, as an `lm_head`, becomes part of the model.
        seed: of the head's weights and of all that the checkpoint does not bring.
        max_length: as of `lengths_for`.
        form: `attention`, `dropout` and `attention_dropout`, as of `load_encoder`.

    Raises:
        ValueError: an encoder without `head`; a trained model with another one. Others as of `load_encoder`.
        CheckpointError: the encoder has too few positions for the sentences.
    """
    trained = is_trained(name, model_class)
    if trained:
        config = read_config(name)
        with named_faults(name, CONFIG_FILE):
            found = model_class.head_class(**config.joint)
        if head is not None and head != found:
            raise ValueError(f"{name}: trained with {found}, not {head}; ask for that, or give no head")
        head = found
    elif head is None:
        raise ValueError(f"{name}: not a trained {model_class.__name__}; give a head for it")
    lengths = lengths_for(name, tokens=head.layout.tokens, window=window, max_length=max_length)
    if trained:
        model, tokenizer = load_trained(model_class, name, **lengths, **form)
    else:
        source, tokenizer = load(name, **lengths, **form, seed=seed)
        model = _on_top(source, model_class, head=head, seed=seed)
    if window is None:
        see_all(model, tokens=head.layout.tokens)
    return model, tokenizer


def _on_top(source: PreTrainedModel, model_class: type[Model], *, head: Any, seed: int) -> Model:
    """A model with the parts of `source`, an encoder or a language model, and a head drawn from the seed."""
    encoder = source.base_model
    widen_token_types(encoder, head.layout.sentences)
    source.config.joint = asdict(head)
    with own_randomness(seed):  # all but the head is replaced below
        model = model_class(source.config)
    model.longformer = encoder
    if source is not encoder:
        model.lm_head = source.lm_head
    return model.eval()


def lengths_for(
    name: str, *, tokens: int, window: int | None, max_length: int | None = None
) -> dict[str, int]:
    """The arguments `max_length` and `window` of `load_encoder` for sequences of up to `tokens` tokens.

    They are those of `lengths_of`, except that a Longformer which has fewer positions than the window would
    be wide is loaded with a narrower one; `see_all` widens it afterwards.

    Args:
        max_length: positions that an encoder gets at least which is converted or made, so that longer texts
            can be read with it later.

    Raises:
        CheckpointError: a Longformer has fewer positions than `tokens`.
    """
    lengths = lengths_of(max_tokens=tokens, window=window)
    room = _room(name)
    if room is not None and room < tokens:
        raise CheckpointError(
            f"{name}: reads {room} tokens, but the sentences may have {tokens} together; take fewer or "
            "shorter ones, or a longer checkpoint"
        )
    if room is not None and window is None:
        narrower = min(lengths["window"], room - room % 2)
        lengths = {"max_length": min(lengths["max_length"], room), "window": narrower}
    lengths["max_length"] = max(lengths["max_length"], max_length or 0)
    return lengths


def _room(name: str) -> int | None:
    """How many positions a Longformer has; None of others, which get as many as are asked for."""
    if name in MADE_TO_MEASURE:
        return None
    config = read_config(str(shipped_folder(name) or name))
    if config.model_type != "longformer":
        return None
    return config.max_position_embeddings - config.pad_token_id - 1


def see_all(model: nn.Module, *, tokens: int) -> None:
    """Let every token of a sequence of up to `tokens` see every other, in place: a Longformer's window is
    twice as wide then."""
    for module in model.modules():
        if isinstance(module, LocalGlobalSelfAttention):
            module.window = 2 * tokens
        elif hasattr(module, "one_sided_attn_window_size"):  # Hugging Face's own
            module.one_sided_attn_window_size = tokens
    model.config.attention_window = [2 * tokens] * model.config.num_hidden_layers


def widen_token_types(encoder: LongformerModel, rows: int) -> None:
    """Give an encoder at least `rows` token types, in place; new ones are copies of its last."""
    table = encoder.embeddings.token_type_embeddings.weight.detach()
    if len(table) < rows:
        wider = torch.cat([table, table[-1:].expand(rows - len(table), -1)])
        encoder.embeddings.token_type_embeddings = nn.Embedding.from_pretrained(wider, freeze=False)
        encoder.config.type_vocab_size = rows
