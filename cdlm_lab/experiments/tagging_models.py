"""From a system's name to a tagger, and to how it reads documents (Doc-ARC section 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from weakref import WeakSet

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.data.tagged_documents import TaggedDocument, tag_set
from cdlm_lab.examples.tag_examples import TagExample, TagExamples, words_read
from cdlm_lab.examples.tag_sequences import SplitDocument, split_long
from cdlm_lab.experiments.tagging_systems import TagSystem
from cdlm_lab.models.device import default_device
from cdlm_lab.models.document_tagger import (
    CONTEXT_ENCODERS,
    CONTEXT_ORDERS,
    StaticTaggerConfig,
    equal_hidden_size,
    load_static_tagger,
    new_static_tagger,
)
from cdlm_lab.models.dropout import AttentionDropout
from cdlm_lab.models.dynamic_tagger import TaggerHead, equal_head, load_dynamic_tagger
from cdlm_lab.models.encoder import load_encoder
from cdlm_lab.models.sentence_encoder import ENDS, lengths_of
from cdlm_lab.models.tag_collate import DynamicCollate, StaticCollate
from cdlm_lab.models.word_encoder import WordEncoder, load_word_encoder, word_pieces
from cdlm_lab.models.word_encodings import WordEncodings
from cdlm_lab.parameters import check_choice, check_least, check_types
from cdlm_lab.training.config import Precision, resolve_precision

ENCODINGS_FOLDER = "encodings"


@dataclass(frozen=True, kw_only=True)
class TaggingModels:
    """What the systems are made of; the paper's values are in brackets.

    Attributes:
        encoder: of the static systems and of `bert`: a folder, a hub name, `minilm`, or one that comes with
            the project [BERT base].
        small_encoder: of the dynamic systems [BERT tiny].
        layers: of the frozen encoder, the last ones, whose states make up a word [4].
        most_tokens: of a sentence, [CLS] and [SEP] included; longer ones are cut in two or more, no word is
            lost, but of a word that is longer by itself only the first pieces are read [512, context 256].
        occurrences: K, of the same word, itself among them, that a word attends to [2 to 50].
        context_encoder: f_c of the static tagger: `bilstm` [bilstm], or `linear`, which costs much less.
        context_order: what a biLSTM f_c reads of the context: `target` = the occurrences of the words of the
            sentence to be tagged, in their order there [target]; `sentence` = each sentence that has one.
        hidden_size: of the biLSTMs of the static systems with context, in one direction [256]; that of those
            without is chosen so that they have as many parameters. Dynamic ones have half of it [128].
        attention_dropout: of attention weights, where the encoder is trained; `checkpoint` = as the
            checkpoint says. That of hidden states is the checkpoint's.
        precision: of the forward passes of the frozen encoder and of all training, as of `TrainingConfig`;
            trained systems read in float32.
    """

    encoder: str = "storyworld/longformer"
    small_encoder: str = "storyworld/longformer"
    layers: int = 3
    most_tokens: int = 128
    occurrences: int = 10
    context_encoder: str = "bilstm"
    context_order: str = "target"
    hidden_size: int = 64
    attention_dropout: AttentionDropout = 0.0
    precision: Precision = "auto"

    def __post_init__(self) -> None:
        check_types(self)
        check_least(self, 1, "layers", "occurrences", "hidden_size")
        check_least(self, ENDS + 1, "most_tokens")
        check_choice(self, CONTEXT_ENCODERS, "context_encoder")
        check_choice(self, CONTEXT_ORDERS, "context_order")


@dataclass(frozen=True, kw_only=True)
class Tagger:
    """A model and how it reads documents.

    Attributes:
        cut: from documents to those whose sentences the encoder has room for.
        examples_of: from these to examples, one for each labelled sequence.
        ready: to be called with examples before they are collated; makes the encodings that are missing, with
            a bar.
        collate_of: from examples to what makes batches of them, or of some of them in another order.
    """

    system: TagSystem
    model: PreTrainedModel
    cut: Callable[[Iterable[TaggedDocument]], list[SplitDocument]]
    examples_of: Callable[[Sequence[SplitDocument]], TagExamples]
    ready: Callable[[TagExamples], None]
    collate_of: Callable[[TagExamples], Callable[[Sequence[TagExample]], Mapping[str, Tensor]]]
    tokenizer: PreTrainedTokenizerBase | None = None

    def read(self, documents: Iterable[TaggedDocument]) -> TagExamples:
        """From documents to examples."""
        return self.examples_of(self.cut(documents))


@dataclass(frozen=True, kw_only=True)
class TaggerParts:
    """What taggers are made of; what several of them share is made once, when it is first needed.

    Attributes:
        labels: of the spans.
        cache: folder of encodings.
    """

    settings: TaggingModels
    labels: tuple[str, ...]
    cache: Path
    _ready: WeakSet[TagExamples] = field(default_factory=WeakSet, repr=False)

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """All tags with these labels."""
        return tag_set(self.labels)

    @cached_property
    def encoder(self) -> WordEncoder:
        """The frozen one."""
        settings = self.settings
        precision = resolve_precision(settings.precision, device=default_device())
        return load_word_encoder(
            settings.encoder,
            layers=settings.layers,
            max_tokens=settings.most_tokens,
            dtype=getattr(torch, precision),
        )

    @cached_property
    def encodings(self) -> WordEncodings:
        """Its encodings, kept in `cache` in half precision."""
        return WordEncodings(self.encoder, self.cache / ENCODINGS_FOLDER)

    def make_ready(self, examples: TagExamples) -> None:
        """Encode what they read and is not encoded yet, with a bar; of examples that are shared, once."""
        if examples not in self._ready:
            self.encodings.ensure(words_read(examples), name=f"encoding with {self.settings.encoder}")
            self._ready.add(examples)

    def cut(
        self, documents: Iterable[TaggedDocument], pieces: Callable[[Sequence[str]], list[int]]
    ) -> list[SplitDocument]:
        """Into sequences of no more than `most_tokens`."""
        room = self.settings.most_tokens - ENDS
        return [split_long(one, pieces=pieces, most_labelled=room, most_context=room) for one in documents]


def new_tagger(
    system: TagSystem, parts: TaggerParts, *, most: int, seed: int, trained: Path | None = None
) -> Tagger:
    """A tagger of a system, untrained unless told otherwise.

    Args:
        most: K; 0 for a system without context.
        seed: of all weights that are drawn.
        trained: folder of a trained one of the same settings.

    Raises:
        ValueError: with one clear line for whatever does not fit.
    """
    make = _dynamic if system.trains_encoder else _static
    return make(system, parts, most=most, seed=seed, trained=trained)


def _static(system: TagSystem, parts: TaggerParts, *, most: int, seed: int, trained: Path | None) -> Tagger:
    config = static_config(system, parts)

    def collate_of(examples: TagExamples) -> StaticCollate:
        return StaticCollate(
            parts.encodings,
            examples.documents,
            context=system.context,
            whole_sentences=config.whole_sentences,
        )

    return Tagger(
        system=system,
        model=load_static_tagger(trained) if trained else new_static_tagger(config, seed=seed),
        cut=lambda documents: parts.cut(documents, parts.encoder.pieces),
        examples_of=lambda splits: TagExamples(splits, parts.tags, most=most),
        ready=parts.make_ready,
        collate_of=collate_of,
    )


def static_config(system: TagSystem, parts: TaggerParts) -> StaticTaggerConfig:
    """Sizes of a static tagger; one without context is as large as with context it would be."""
    form = {"size": parts.encoder.size, "tags": parts.tags}
    config = StaticTaggerConfig(
        **form,
        hidden_size=parts.settings.hidden_size,
        context_encoder=parts.settings.context_encoder,
        context_order=parts.settings.context_order,
    )
    if system.context:
        return config
    return StaticTaggerConfig(**form, hidden_size=equal_hidden_size(config), context=False)


def _dynamic(system: TagSystem, parts: TaggerParts, *, most: int, seed: int, trained: Path | None) -> Tagger:
    settings = parts.settings
    name = settings.small_encoder if system.small else settings.encoder
    lengths = lengths_of(max_tokens=settings.most_tokens, window=None)
    head = None if trained else _head(system, parts, lengths=lengths)
    model, tokenizer = load_dynamic_tagger(
        trained or name,
        head=head,
        **lengths,
        attention_dropout=settings.attention_dropout,
        seed=seed,
    )

    def pieces(words: Sequence[str]) -> list[int]:
        return np.bincount(word_pieces(tokenizer, words)[1], minlength=len(words)).tolist()

    return Tagger(
        system=system,
        model=model,
        cut=lambda documents: parts.cut(documents, pieces),
        examples_of=lambda splits: TagExamples(splits, parts.tags, most=most),
        ready=lambda examples: None,
        collate_of=lambda examples: DynamicCollate(tokenizer, examples.documents, context=system.context),
        tokenizer=tokenizer,
    )


def _head(system: TagSystem, parts: TaggerParts, *, lengths: Mapping[str, int]) -> TaggerHead:
    """What stands on the encoder; without context it is as large as with context it would be."""
    settings = parts.settings
    head = TaggerHead(tags=parts.tags, hidden_size=max(1, settings.hidden_size // 2), context=system.context)
    if not system.sequence_encoder:
        return replace(head, sequence_encoder="none")
    if system.context:
        return head
    encoder, _ = load_encoder(settings.small_encoder if system.small else settings.encoder, **lengths)
    return equal_head(replace(head, context=True), size=encoder.config.hidden_size)
