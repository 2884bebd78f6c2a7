"""Document-attentive tagging systems (Doc-ARC sections 2 and 4): from a name to a tagger, to how it reads
documents, and to the tags it predicts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Literal
from weakref import WeakSet

import numpy as np
import pandas as pd
import torch
from pydantic import Field
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.data.records import TaggedDocument
from cdlm_lab.data.tags import OUTSIDE, tag_set
from cdlm_lab.encoders import frozen
from cdlm_lab.encoders.checkpoint import named_faults, on_default_device
from cdlm_lab.encoders.encoder import AttentionDropout, load_encoder
from cdlm_lab.encoders.model_folder import CONFIG_FILE
from cdlm_lab.encoders.precision import Precision
from cdlm_lab.parameters import ParameterError, parameters_of, settings
from cdlm_lab.progress import ALONE, Progress, Share
from cdlm_lab.runs.items import write_frame
from cdlm_lab.runs.runs import System, chosen_systems, output_of
from cdlm_lab.tasks.tagging import model as models
from cdlm_lab.tasks.tagging.examples import (
    SplitDocument,
    TagExamples,
    joined,
    split_long,
    words_read,
)


@dataclass(frozen=True, slots=True)
class TagSystem(System):
    """A system that tags the words of sentences."""

    trains_encoder: bool  # True = fine-tuned along ("dynamic"); False = frozen, encodings on disk ("static")
    context: bool  # whether words attend to their occurrences elsewhere in the document
    sequence_encoder: bool = True  # whether a biLSTM stands between encodings and tags
    small: bool = False  # True = `small_model` of the settings, False = `model`


TAG_SYSTEMS = {
    system.name: system
    for system in (
        TagSystem("bert-lstm", "BERT + LSTM", False, False),
        TagSystem("doc-arc", "Doc-ARC", False, True),
        TagSystem("dynamic-bert", "small BERT, fine-tuned", True, False, sequence_encoder=False, small=True),
        TagSystem("dynamic-bert-lstm", "small BERT + LSTM, fine-tuned", True, False, small=True),
        TagSystem("dynamic-doc-arc", "Doc-ARC, dynamic", True, True, small=True),
        TagSystem("bert", "BERT, fine-tuned", True, False, sequence_encoder=False),
    )
}


@settings
class TaggerSettings:
    """The parameters of the systems of notebook 07, whose comments explain them.

    Of a word that alone is longer than `most_tokens` only the first pieces are read. Systems without context
    have wider biLSTMs, so that they have as many parameters as with it; dynamic ones have half of
    `hidden_size`. Trained systems predict in float32.

    The paper has BERT base as the encoder and BERT tiny as the small one, sentences of up to 512 pieces (256
    in the context), and LSTMs of 256 (of the dynamic systems 128).
    """

    systems: str = "bert-lstm doc-arc"
    model: str = "storyworld/longformer"
    small_model: str = "storyworld/longformer"
    layers: int = Field(default=3, ge=1)
    most_tokens: int = Field(default=128, ge=frozen.ENDS + 1)
    occurrences: int = Field(default=10, ge=1)
    context_encoder: Literal["bilstm", "linear"] = "bilstm"
    hidden_size: int = Field(default=64, ge=1)
    attention_dropout: AttentionDropout = 0.0
    precision: Precision = "auto"

    @property
    def chosen(self) -> tuple[TagSystem, ...]:
        """The systems, in the order of the paper's tables. Raises ParameterError: unknown name, or none."""
        return chosen_systems(self.systems, TAG_SYSTEMS)


# ---- predictions ----

SentenceTags = list[list[str]]  # for each sentence of a document, the tag of each word


@dataclass(frozen=True, kw_only=True, eq=False)
class TagPredictions:
    """Predictions for the labelled sequences of documents, in the order of `examples`."""

    examples: TagExamples
    tags: np.ndarray  # int16 (words,), tag indices of all words, sequences concatenated
    # Float16 (words, K), attention weights of each word's occurrences; 0 where there is none. None for a
    # system without context.
    weights: np.ndarray | None

    @cached_property
    def starts(self) -> np.ndarray:
        """int64 (sequences + 1,), index in `tags` at which each sequence begins."""
        splits = self.examples.documents
        sentences = (splits[n].document.sentences[at] for n, at in self.examples.sequences.tolist())
        return np.cumsum([0, *(len(sentence.words) for sentence in sentences)])

    @property
    def labels(self) -> list[str]:
        """All labels that the tagger knows, sorted, so that each has the same colour in every view."""
        return sorted({tag.partition("-")[2] for tag in self.examples.tags if tag != OUTSIDE})

    @property
    def documents(self) -> list[int]:
        """Indices of the documents that have labelled sequences here, in order."""
        return np.unique(self.examples.sequences[:, 0]).tolist()

    def predicted(self) -> list[SentenceTags]:
        """For each document the predicted tags of its labelled sentences, rejoined as in the source."""
        of_document: dict[int, SentenceTags] = {}
        of_sequences = np.split(self.tags, self.starts[1:-1])
        for document, numbers in zip(self.examples.sequences[:, 0].tolist(), of_sequences, strict=True):
            of_document.setdefault(document, []).append([self.examples.tags[tag] for tag in numbers])
        return [joined(self.examples.documents[number], of_document[number]) for number in self.documents]

    def gold(self) -> list[SentenceTags]:
        """For each document the gold tags of the same sentences."""
        splits = [self.examples.documents[number] for number in self.documents]
        return [
            joined(split, [split.document.sentences[number].tags or () for number in split.document.labelled])
            for split in splits
        ]

    def buckets(self) -> np.ndarray:
        """int64 (words, K), the distance bucket of each occurrence; -1 where there is none."""
        every = (self.examples[number] for number in range(len(self.examples)))
        return np.concatenate([np.where(one.places[..., 0] >= 0, one.buckets, -1) for one in every])

    @property
    def frame(self) -> pd.DataFrame:
        """One row a word: the index of its tag and, if it attends to occurrences, their weights."""
        weights = {} if self.weights is None else {"weights": [*self.weights]}
        return pd.DataFrame({"tag": self.tags, **weights})

    def save(self, file: Path) -> None:
        """Write the frame, atomically."""
        write_frame(self.frame, file)

    @classmethod
    def of_frame(cls, frame: pd.DataFrame, *, examples: TagExamples) -> TagPredictions:
        """The predictions of this `frame`."""
        weights = np.stack(frame["weights"].to_list()) if "weights" in frame else None
        return cls(examples=examples, tags=frame["tag"].to_numpy(), weights=weights)


# ---- from a system to a tagger ----


def labels_of_tagger(folder: Path) -> tuple[str, ...]:
    """The labels of the spans that a trained tagger finds. Raises CheckpointError if it is no tagger."""
    with named_faults(str(folder), CONFIG_FILE):
        values = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
        tags = values["tags"] if "tags" in values else values[models.DynamicTagger.head_entry]["tags"]
        return tuple(tag[2:] for tag in tags if tag.startswith("B-"))


ENCODINGS_FOLDER = "encodings"
BATCH = 32  # sequences per prediction batch; neighbouring ones share their context


@dataclass(frozen=True, kw_only=True)
class Tagger:
    """A model and how it reads documents."""

    system: TagSystem
    model: PreTrainedModel
    taggers: Taggers
    most: int  # K; 0 for a system without context
    tokenizer: PreTrainedTokenizerBase | None = None  # of a fine-tuned encoder; None = the encoder is frozen

    def cut(self, documents: Iterable[TaggedDocument]) -> list[SplitDocument]:
        """Cut documents into sequences that fit into the encoder."""
        room = self.taggers.settings.most_tokens - frozen.ENDS
        pieces = frozen.PieceCounts(self.tokenizer or self.taggers.encoder.tokenizer)
        return [split_long(one, pieces=pieces, most=room) for one in documents]

    def examples_of(self, splits: Sequence[SplitDocument]) -> TagExamples:
        """One example for each labelled sequence."""
        return TagExamples(splits, self.taggers.tags, most=self.most)

    def read(self, documents: Iterable[TaggedDocument]) -> TagExamples:
        """Cut documents into sequences and turn them into examples."""
        return self.examples_of(self.cut(documents))

    def make_ready(self, examples: TagExamples) -> None:
        """Compute the encodings that are missing, with a bar; call it before examples are collated."""
        if not self.system.trains_encoder:
            self.taggers.encode(examples)

    def collate_of(self, examples: TagExamples) -> models.StaticCollate | models.DynamicCollate:
        """The function that makes batches of these examples, or of some of them in another order."""
        documents, context = examples.documents, self.system.context
        if self.tokenizer is not None:
            return models.DynamicCollate(self.tokenizer, documents, context=context)
        return models.StaticCollate(self.taggers.encodings, documents, context=context)

    def predict(
        self, examples: TagExamples, *, name: str | None = None, share: Share = ALONE
    ) -> TagPredictions:
        """Tag every sequence with the most probable tag of each word; ties go to the first tag. `name`: text
        beside the progress bar; None = no bar."""
        self.make_ready(examples)
        on_default_device(self.model)
        collate = self.collate_of(examples)
        own: list[tuple[int, np.ndarray, np.ndarray | None]] = []  # first row of a batch, tags, weights
        with Progress(total=len(examples), desc=name, unit=" sentences", disable=name is None) as bar:
            for start in share.of(range(0, len(examples), BATCH)):
                rows = [examples[number] for number in range(start, min(start + BATCH, len(examples)))]
                output = output_of(self.model, rows, collate)
                counts = torch.tensor([len(one.words) for one in rows])
                word = torch.arange(output.logits.shape[1]) < counts[:, None]  # False = padding
                tags = output.logits.float().argmax(-1).cpu()[word].numpy().astype(np.int16)
                weights = output.weights
                if weights is not None:
                    weights = weights.cpu()[word].numpy().astype(np.float16)
                own.append((start, tags, weights))
                bar.update(len(rows))
        _, tags, weights = zip(*sorted(share.gathered(own), key=itemgetter(0)), strict=True)
        every = None if weights[0] is None else np.concatenate(weights)
        return TagPredictions(examples=examples, tags=np.concatenate(tags), weights=every)


@dataclass(frozen=True, kw_only=True)
class Taggers:
    """Builds taggers; what several of them share is built once, on first use."""

    settings: TaggerSettings
    labels: tuple[str, ...]  # labels of the spans
    cache: Path | None  # folder of encodings; None = they are not stored
    _encoded: WeakSet[TagExamples] = field(default_factory=WeakSet, repr=False)

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """All tags with these labels."""
        return tag_set(self.labels)

    @cached_property
    def encoder(self) -> frozen.WordEncoder:
        """The frozen encoder."""
        given = self.settings
        form = {"layers": given.layers, "max_tokens": given.most_tokens, "precision": given.precision}
        return frozen.load_word_encoder(given.model, **form)

    @cached_property
    def encodings(self) -> frozen.WordEncodings | frozen.PassingWords:
        """Encodings by the frozen encoder, stored in `cache` in half precision."""
        if self.cache is None:
            return frozen.PassingWords(self.encoder)
        return frozen.WordEncodings(self.encoder, self.cache / ENCODINGS_FOLDER)

    def encode(self, examples: TagExamples) -> None:
        """Encode the words that examples read and that are not encoded yet, with a progress bar."""
        if self.cache is None or examples not in self._encoded:
            self.encodings.ensure(words_read(examples), name=f"encoding with {self.settings.model}")
            self._encoded.add(examples)

    def make(self, system: TagSystem, *, most: int, seed: int, trained: Path | None = None) -> Tagger:
        """A new tagger, or a trained one from its folder. Raises ValueError, in one line, if something does
        not fit.

        Args:
            most: K; 0 for a system without context.
            seed: of all randomly initialised weights.
        """
        given, tokenizer = self.settings, None
        if system.trains_encoder:
            name = given.small_model if system.small else given.model
            lengths = frozen.lengths_of(max_tokens=given.most_tokens, window=None)
            head = None if trained else self._head(system, name, lengths)
            form = lengths | {"attention_dropout": given.attention_dropout, "seed": seed}
            model, tokenizer = models.load_dynamic_tagger(trained or name, head=head, **form)
        elif trained:
            model = models.load_static_tagger(trained)
            if tuple(model.config.tags) != self.tags:
                known = ", ".join(tag[2:] for tag in model.config.tags if tag.startswith("B-"))
                labels = ", ".join(self.labels)
                raise ParameterError(
                    f"{trained}: it tags {known}, but the documents have {labels}; read more, or train"
                )
        else:
            model = models.new_static_tagger(self.static_config(system), seed=seed)
        if not system.trains_encoder:
            self.encodings.encoder.recognise(model.config, trained=trained)
        return Tagger(system=system, model=model, taggers=self, most=most, tokenizer=tokenizer)

    def static_config(self, system: TagSystem) -> models.StaticTaggerConfig:
        """Sizes of a static tagger; one without context is widened to equal the one with context."""
        form = {"size": self.encoder.size, "tags": self.tags}
        context = parameters_of(self.settings, "hidden_size", "context_encoder")
        config = models.StaticTaggerConfig(**form, **context)
        if system.context:
            return config
        equal = models.equal_hidden_size(config)
        return models.StaticTaggerConfig(**form, hidden_size=equal, context=False)

    def _head(self, system: TagSystem, name: str, lengths: Mapping[str, int]) -> models.TaggerHead:
        """The head on a fine-tuned encoder; one without context is widened to equal the one with it."""
        hidden_size = max(1, self.settings.hidden_size // 2)
        head = models.TaggerHead(tags=self.tags, hidden_size=hidden_size, context=system.context)
        if not system.sequence_encoder:
            return replace(head, sequence_encoder="none")
        if system.context:
            return head
        encoder, _ = load_encoder(name, **lengths)
        return models.equal_head(replace(head, context=True), size=encoder.config.hidden_size)
