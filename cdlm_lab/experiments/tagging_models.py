"""From a system's name to a tagger, and to how it reads documents (Doc-ARC section 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.data.tagged_documents import TaggedDocument, tag_set
from cdlm_lab.examples.tag_examples import TagExample, TagExamples, context_of
from cdlm_lab.examples.tag_sequences import split_long
from cdlm_lab.experiments.tagging_systems import TagSystem
from cdlm_lab.models.document_tagger import (
    CONTEXT_ENCODERS,
    StaticTaggerConfig,
    equal_hidden_size,
    load_static_tagger,
    new_static_tagger,
)
from cdlm_lab.models.dynamic_tagger import TaggerHead, equal_head, load_dynamic_tagger
from cdlm_lab.models.encoder import load_encoder
from cdlm_lab.models.sentence_encoder import ENDS, lengths_of
from cdlm_lab.models.tag_collate import DynamicCollate, StaticCollate
from cdlm_lab.models.word_encoder import WordEncoder, load_word_encoder, word_pieces
from cdlm_lab.models.word_encodings import WordEncodings
from cdlm_lab.parameters import ParameterError, check_least, check_types

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
            lost [512, context 256].
        occurrences: K, of the same word, itself among them, that a word attends to [2 to 50].
        context_encoder: of the static tagger: `bilstm` over every sentence of the context [bilstm], or
            `linear`, which costs next to nothing.
        hidden_size: of the biLSTMs of the static systems with context, in one direction [256]; that of those
            without is chosen so that they have as many parameters. Dynamic ones have half of it [128].
    """

    encoder: str = "storyworld/longformer"
    small_encoder: str = "storyworld/longformer"
    layers: int = 3
    most_tokens: int = 128
    occurrences: int = 10
    context_encoder: str = "bilstm"
    hidden_size: int = 64

    def __post_init__(self) -> None:
        check_types(self)
        check_least(self, 1, "layers", "occurrences", "hidden_size")
        check_least(self, ENDS + 1, "most_tokens")
        if self.context_encoder not in CONTEXT_ENCODERS:
            raise ParameterError(
                f"context_encoder is {self.context_encoder!r}; choose one of {', '.join(CONTEXT_ENCODERS)}"
            )


@dataclass(frozen=True, kw_only=True)
class Tagger:
    """A model and how it reads documents.

    Attributes:
        read: from documents to examples, one for each labelled sequence.
        ready: to be called with examples before they are collated; makes the encodings that are missing, with
            a bar.
        collate_of: from examples to what makes batches of them, or of some of them in another order.
    """

    system: TagSystem
    model: PreTrainedModel
    read: Callable[[Sequence[TaggedDocument]], TagExamples]
    ready: Callable[[TagExamples], None]
    collate_of: Callable[[TagExamples], Callable[[Sequence[TagExample]], Mapping[str, Tensor]]]
    tokenizer: PreTrainedTokenizerBase | None = None


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

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """All tags with these labels."""
        return tag_set(self.labels)

    @cached_property
    def encoder(self) -> WordEncoder:
        """The frozen one."""
        settings = self.settings
        return load_word_encoder(settings.encoder, layers=settings.layers, max_tokens=settings.most_tokens)

    @cached_property
    def encodings(self) -> WordEncodings:
        """Its encodings, kept in `cache` in half precision."""
        return WordEncodings(self.encoder, self.cache / ENCODINGS_FOLDER)

    def examples(
        self, documents: Sequence[TaggedDocument], pieces: Callable[[Sequence[str]], list[int]], *, most: int
    ) -> TagExamples:
        """Sequences of no more than `most_tokens`, and `most` occurrences of each word; 0 = none."""
        room = self.settings.most_tokens - ENDS
        return TagExamples(
            [split_long(one, pieces=pieces, most_labelled=room, most_context=room) for one in documents],
            self.tags,
            most=most,
        )


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
    encodings, settings = parts.encodings, parts.settings
    config = static_config(system, parts)

    def ready(examples: TagExamples) -> None:
        encodings.ensure(_sentences(examples), name=f"encoding with {settings.encoder}")

    def collate_of(examples: TagExamples) -> StaticCollate:
        return StaticCollate(
            encodings,
            examples.documents,
            context=system.context,
            single_words=system.context and config.context_encoder == "linear",
        )

    return Tagger(
        system=system,
        model=load_static_tagger(trained) if trained else new_static_tagger(config, seed=seed),
        read=lambda documents: parts.examples(documents, parts.encoder.pieces, most=most),
        ready=ready,
        collate_of=collate_of,
    )


def static_config(system: TagSystem, parts: TaggerParts) -> StaticTaggerConfig:
    """Sizes of a static tagger; one without context is as large as with context it would be."""
    form = {"size": parts.encoder.size, "tags": parts.tags}
    config = StaticTaggerConfig(
        **form, hidden_size=parts.settings.hidden_size, context_encoder=parts.settings.context_encoder
    )
    if system.context:
        return config
    return StaticTaggerConfig(**form, hidden_size=equal_hidden_size(config), context=False)


def _sentences(examples: TagExamples) -> list[tuple[str, ...]]:
    """The words of all sequences that the examples look at."""
    targets = set(map(tuple, examples.sequences.tolist()))
    places = sorted(targets.union(context_of(examples[number] for number in range(len(examples)))))
    return [examples.documents[document].document.sentences[place].words for document, place in places]


def _dynamic(system: TagSystem, parts: TaggerParts, *, most: int, seed: int, trained: Path | None) -> Tagger:
    settings = parts.settings
    name = settings.small_encoder if system.small else settings.encoder
    lengths = lengths_of(max_tokens=settings.most_tokens, window=None)
    head = None if trained else _head(system, parts, lengths=lengths)
    model, tokenizer = load_dynamic_tagger(trained or name, head=head, **lengths, seed=seed)

    def pieces(words: Sequence[str]) -> list[int]:
        return np.bincount(word_pieces(tokenizer, words)[1], minlength=len(words)).tolist()

    return Tagger(
        system=system,
        model=model,
        read=lambda documents: parts.examples(documents, pieces, most=most),
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
