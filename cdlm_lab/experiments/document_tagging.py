"""Document-attentive tagging (Doc-ARC): notebook 07.

Each system is trained with each seed; of its passes over the training documents the one with the highest F1
on dev is kept. All that is finished stays in the run folder: a stopped run goes on where it was.

The paper gives passes, patience, batch size and rate, and says no more of the training. From the released
code come: what is kept and patience by span F1 on dev (`select_by`), a learning rate that stays as it is
(`schedule`), AdamW with weight decay 0.01 on all but biases and norms (`weight_decay`) and epsilon 1e-6, and
gradients of any length. Ours: a batch has neighbouring sequences of a document, whose contexts overlap, and
batches are shuffled (that costs a fraction of drawing sequences from everywhere; all systems are trained so);
patience ends after that many passes, in the released code after one more.

From the corpus that notebook 07 names to documents with tags, in three splits.

The systems of document-attentive tagging, as notebook 07 names them (Doc-ARC section 4).

From a system's name to a tagger, and to how it reads documents (Doc-ARC section 2).

The tags that a trained model gives, kept on disk, and how much each occurrence of a word weighed.

The analyses of section 5 of the Doc-ARC paper on the test documents of a run: entities of high TF-IDF
(Figures 2 and 3, Table 5), and attention by distance (Figure 4).

The figures of section 5 of the Doc-ARC paper, from the report of a run.

Before and after a run of notebook 07: what is tagged and what it costs, the scores, and their tests.

Sentences to read as a model tagged them: of dev, or of a text of one's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from statistics import fmean, stdev
from typing import Any
from weakref import WeakSet

import numpy as np
import plotly.graph_objects as go
import torch
from ipywidgets import Widget
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.analysis.tf_idf import (
    QuantileShare,
    labelled_words,
    shares_by_quantile,
    strata,
    tf_idf,
    top_entities,
    weights_by_distance,
)
from cdlm_lab.data.document_pairs import split_sentences
from cdlm_lab.data.files import read_text, replaced_file
from cdlm_lab.data.records import token_spans
from cdlm_lab.data.storyworld.task_sets import read_storyworld_tags
from cdlm_lab.data.tagged import (
    OUTSIDE,
    TaggedDocument,
    TaggedSentence,
    TagReading,
    labels_of,
    read_tagged_split,
    spans_of,
    tag_set,
)
from cdlm_lab.examples.tagging import (
    BUCKETS,
    SplitDocument,
    TagExample,
    TagExamples,
    document_runs,
    joined,
    split_long,
    words_read,
)
from cdlm_lab.metrics.counts import (
    READINGS,
    f1_of,
    precision_of,
    recall_of,
    span_counts,
    word_counts,
)
from cdlm_lab.metrics.significance import compare_counts, count_scores, holm
from cdlm_lab.models.checkpoint import default_device
from cdlm_lab.models.encoder import AttentionDropout, load_encoder
from cdlm_lab.models.estimate import parameter_count
from cdlm_lab.models.frozen import (
    ENDS,
    WordEncoder,
    WordEncodings,
    lengths_of,
    load_word_encoder,
    word_pieces,
)
from cdlm_lab.models.precision import Precision, precision_told
from cdlm_lab.models.tagging import (
    CONTEXT_ENCODERS,
    CONTEXT_ORDERS,
    DynamicCollate,
    StaticCollate,
    StaticTaggerConfig,
    TaggerHead,
    equal_head,
    equal_hidden_size,
    load_dynamic_tagger,
    load_static_tagger,
    new_static_tagger,
)
from cdlm_lab.parameters import (
    ParameterError,
    check_choice,
    check_least,
    check_types,
    parameters_of,
)
from cdlm_lab.progress import Progress, tracked
from cdlm_lab.report import Report, Run
from cdlm_lab.training.checkpoints import MODEL_FOLDER
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.fine_tuning import TrainingJob, config_of_passes, fine_tune
from cdlm_lab.training.history import seconds_of_batch
from cdlm_lab.widgets.ask import own_text_box
from cdlm_lab.widgets.browse import tagged_browser
from cdlm_lab.widgets.html import escaped, seconds_in_words
from cdlm_lab.widgets.score_tables import score_table
from cdlm_lab.widgets.tables import ScoreTable
from cdlm_lab.widgets.tagged import (
    QUANTILES,
    DistanceWeights,
    ReadOccurrence,
    ReadSentence,
    ReadWord,
    SweepPoint,
    WordGain,
    gain_by_tf_idf_figure,
    labels_of_reads,
    shares_by_tf_idf_figure,
    sweep_figure,
    tagged_page,
    weights_by_distance_figure,
)
from cdlm_lab.widgets.tagged import (
    tagged_sentence_html as sentence_html,
)

SPLITS = ("train", "dev", "test")
STORIES = {"train": 60, "dev": 20, "test": 20}  # of storyworld, where nothing else is said
STRAY = ("accept", "refuse")
DRAW = 0  # seed of the documents that are drawn
TaggedSplits = Mapping[str, tuple[TaggedDocument, ...]]


@dataclass(frozen=True, kw_only=True)
class TagCorpus:
    """Which documents are tagged.

    Attributes:
        corpus: `storyworld`, or a folder of `train`, `dev` and `test` in one of the forms of
            data/tagged_folder.py: Doc-ARC's, LitBank's, CoNLL's, JNLPBA's.
        train_documents, held_out_documents: at most so many are drawn of the training documents, and of those
            of dev and of test, always the same ones; 0 = all. A document of storyworld, which never ends, is
            a story, its first report labelled; 0 = 60 and 20 of them.
        most_context: sentences without labels that are kept of a document: those nearest to a labelled one,
            the earlier first; 0 = all.
        stray_tags: what happens to an `I-` that follows no span of its label: `accept` = it starts one, and
            the preview says how many there were; `refuse` = an error that names the line.
    """

    corpus: str = "storyworld"
    train_documents: int = 0
    held_out_documents: int = 0
    most_context: int = 0
    stray_tags: str = "accept"

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("train_documents", "held_out_documents", "most_context"):
            if getattr(self, name) < 0:
                raise ParameterError(f"{name} is {getattr(self, name)}; write 0 for all, or how many")
        check_choice(self, STRAY, "stray_tags")


@dataclass(frozen=True, kw_only=True)
class TaggedCorpus:
    """What was read.

    Attributes:
        documents: by split.
        mended: tags `I-` that followed no span of their label, by split.
        divided: sentences that were made documents, by split; see `data/tagged_folder.py`.
    """

    documents: TaggedSplits
    mended: Mapping[str, int] = field(default_factory=dict)
    divided: Mapping[str, int] = field(default_factory=dict)

    @property
    def labels(self) -> tuple[str, ...]:
        """Of all splits; one that train has not cannot be learned, and counts against everybody."""
        return labels_of(chain.from_iterable(self.documents.values()))


def read_tagged(settings: TagCorpus) -> TaggedCorpus:
    """Documents of train, dev and test.

    Raises:
        ParameterError: a corpus that is neither, or a split with less than two documents or without any span.
        DataError: as its reader.
    """
    documents, mended, divided = {}, {}, {}
    for split in SPLITS:
        reading = TagReading(stray=settings.stray_tags)
        found = tuple(
            _near_labels(one, settings.most_context) for one in _documents(settings, split, reading)
        )
        if len(found) < 2:
            raise ParameterError(
                f"corpus is {settings.corpus!r}, whose {split} has one document to read; it needs two: give "
                f"a file for each in {split}/ or a line -DOCSTART- before each in {split}.conll, and 0 or at "
                f"least 2 as {'train_documents' if split == 'train' else 'held_out_documents'}"
            )
        if not labels_of(found):
            raise ParameterError(
                f"corpus is {settings.corpus!r}, whose {split} has no span; all labelled words have the tag O"
            )
        documents[split], mended[split], divided[split] = found, reading.mended, reading.divided
    return TaggedCorpus(documents=documents, mended=mended, divided=divided)


def _documents(settings: TagCorpus, split: str, reading: TagReading) -> Iterator[TaggedDocument]:
    most = settings.train_documents if split == "train" else settings.held_out_documents
    if settings.corpus == "storyworld":
        yield from read_storyworld_tags(split, most or STORIES[split])
        return
    folder = Path(settings.corpus)
    if not folder.is_dir():
        raise ParameterError(
            f"corpus is {settings.corpus!r}, which is no folder; write storyworld, or a folder with train, "
            "dev and test"
        )
    with Progress(desc=f"reading {split}", unit=" documents") as bar:
        chosen = _drawn(split, most)
        for document in read_tagged_split(folder, split, reading=reading, chosen=chosen):
            bar.update(1)
            yield document


def _drawn(split: str, most: int) -> Callable[[int], list[int]] | None:
    """From a number of documents to those that are used, in order; None = all."""
    if not most:
        return None
    rng = np.random.default_rng([DRAW, SPLITS.index(split)])
    return lambda count: sorted(rng.permutation(count)[:most].tolist())


def _near_labels(document: TaggedDocument, most: int) -> TaggedDocument:
    """With its labelled sentences and the `most` unlabelled ones that are nearest to one; 0 = with all."""
    if not most:
        return document
    labelled = np.array(document.labelled)
    context = np.setdiff1d(np.arange(len(document.sentences)), labelled)
    distance = np.abs(context[:, None] - labelled[None, :]).min(axis=1) if len(context) else context
    nearest = islice(context[np.argsort(distance, kind="stable")].tolist(), most)
    kept = sorted([*labelled.tolist(), *nearest])
    return replace(document, sentences=tuple(document.sentences[number] for number in kept))


@dataclass(frozen=True, slots=True, kw_only=True)
class TagSystem:
    """What reads and tags sentences.

    Attributes:
        name, label: as a parameter and as in tables.
        trains_encoder: False = the encoder is frozen and its encodings are kept on disk ("static"); True = it
            is trained with the rest ("dynamic").
        context: whether words attend to their occurrences elsewhere in the document.
        sequence_encoder: whether a biLSTM stands between encodings and tags.
        small: True = `small_encoder` of the settings, False = `encoder`.
    """

    name: str
    label: str
    trains_encoder: bool
    context: bool
    sequence_encoder: bool = True
    small: bool = False


TAG_SYSTEMS = {
    system.name: system
    for system in (
        TagSystem(name="bert-lstm", label="BERT + LSTM", trains_encoder=False, context=False),
        TagSystem(name="doc-arc", label="Doc-ARC", trains_encoder=False, context=True),
        TagSystem(
            name="dynamic-bert",
            label="small BERT, fine-tuned",
            trains_encoder=True,
            context=False,
            sequence_encoder=False,
            small=True,
        ),
        TagSystem(
            name="dynamic-bert-lstm",
            label="small BERT + LSTM, fine-tuned",
            trains_encoder=True,
            context=False,
            small=True,
        ),
        TagSystem(
            name="dynamic-doc-arc", label="Doc-ARC, dynamic", trains_encoder=True, context=True, small=True
        ),
        TagSystem(
            name="bert", label="BERT, fine-tuned", trains_encoder=True, context=False, sequence_encoder=False
        ),
    )
}


def tag_systems(names: str) -> tuple[TagSystem, ...]:
    """The systems of a list of names separated by spaces, in the order of the paper's tables.

    Raises:
        ParameterError: an unknown name, or none.
    """
    asked = names.split()
    if not asked or (unknown := [name for name in asked if name not in TAG_SYSTEMS]):
        told = repr(unknown[0]) if asked else "nothing"
        raise ParameterError(f"systems names {told}; choose among {', '.join(TAG_SYSTEMS)}")
    return tuple(system for name, system in TAG_SYSTEMS.items() if name in asked)


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
        return load_word_encoder(
            settings.encoder,
            layers=settings.layers,
            max_tokens=settings.most_tokens,
            precision=settings.precision,
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


BATCH = 32  # sequences tagged at once; neighbours share their context

SentenceTags = list[list[str]]  # of the sentences of a document


@dataclass(frozen=True, kw_only=True, eq=False)
class TagPredictions:
    """Of the labelled sequences of documents, in the order of `examples`.

    Attributes:
        tags: int16 (words,), numbers of tags of all words, one sequence after the other.
        weights: float16 (words, K), of each word's occurrences; 0 where there is none. None for a system
            without context.
    """

    examples: TagExamples
    tags: np.ndarray
    weights: np.ndarray | None

    @cached_property
    def starts(self) -> np.ndarray:
        """int64 (sequences + 1,): where in `tags` each sequence begins."""
        lengths = [
            len(self.examples.documents[document].document.sentences[number].words)
            for document, number in self.examples.sequences.tolist()
        ]
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    @property
    def documents(self) -> list[int]:
        """Numbers of the documents that have labelled sequences here, in order."""
        return np.unique(self.examples.sequences[:, 0]).tolist()

    def predicted(self) -> list[SentenceTags]:
        """For each document the predicted tags of its labelled sentences, as the source divides them."""
        names, starts = self.examples.tags, self.starts
        of_document: dict[int, SentenceTags] = {}
        for number, document in enumerate(self.examples.sequences[:, 0].tolist()):
            chosen = self.tags[starts[number] : starts[number + 1]]
            of_document.setdefault(document, []).append([names[tag] for tag in chosen])
        return [joined(self.examples.documents[number], of_document[number]) for number in self.documents]

    def gold(self) -> list[SentenceTags]:
        """The tags of the source, for the same sentences."""
        splits = [self.examples.documents[number] for number in self.documents]
        return [
            joined(split, [split.document.sentences[number].tags or () for number in split.document.labelled])
            for split in splits
        ]

    def buckets(self) -> np.ndarray:
        """int64 (words, K): the distance bucket of each occurrence, -1 = there is none."""
        rows = []
        for number in range(len(self.examples)):
            example = self.examples[number]
            rows.append(np.where(example.places[..., 0] >= 0, example.buckets, -1))
        return np.concatenate(rows)

    def save(self, file: Path) -> None:
        """Write `.npz`, in one go."""
        arrays = {"tags": self.tags} | ({} if self.weights is None else {"weights": self.weights})
        file.parent.mkdir(parents=True, exist_ok=True)
        with replaced_file(file, binary=True) as opened:
            np.savez(opened, **arrays)

    @classmethod
    def load(cls, file: Path, *, examples: TagExamples) -> TagPredictions:
        """Read what `save` wrote.

        Raises:
            ValueError: it is of another number of words.
        """
        with np.load(file, allow_pickle=False) as arrays:
            found = cls(examples=examples, tags=arrays["tags"], weights=arrays.get("weights"))
        if found.starts[-1] != len(found.tags):
            raise ValueError(f"{file} is of other documents, so of another run: choose another run folder")
        return found


def predict_tags(tagger: Tagger, examples: TagExamples, *, name: str | None = None) -> TagPredictions:
    """Tag every sequence with its most probable tags; of equally probable ones the first is taken.

    Args:
        name: beside the progress bar; None = no bar.
    """
    tagger.ready(examples)
    model, collate = tagger.model.to(default_device()).eval(), tagger.collate_of(examples)
    tags: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    with Progress(total=len(examples), desc=name, unit=" sentences", disable=name is None) as bar:
        for start in range(0, len(examples), BATCH):
            rows = [examples[number] for number in range(start, min(start + BATCH, len(examples)))]
            output = _read(model, collate(rows))
            for row, example in enumerate(rows):
                words = len(example.words)
                tags.append(output["logits"][row, :words].argmax(-1).cpu().numpy().astype(np.int16))
                if output["weights"] is not None:
                    weights.append(output["weights"][row, :words].cpu().numpy().astype(np.float16))
            bar.update(len(rows))
    return TagPredictions(
        examples=examples, tags=np.concatenate(tags), weights=np.concatenate(weights) if weights else None
    )


@torch.no_grad()  # not inference_mode: the judge of a training asks between updates
def _read(model: torch.nn.Module, batch: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
    device = next(model.parameters()).device
    output = model(**{name: tensor.to(device) for name, tensor in batch.items()})
    return {"logits": output.logits.float(), "weights": output.weights}


HELD_OUT = ("dev", "test")  # that are tagged
SELECT_BY = ("f1", "loss")
SCHEDULES = ("constant", "linear")


@dataclass(frozen=True, kw_only=True)
class TaggingTraining:
    """Which systems are trained, and how; the paper's values are in brackets.

    Attributes:
        systems: their names, separated by spaces (see experiments/tagging_systems.py).
        seeds: how many times each is trained, with seeds from 0 [5].
        sweep: further numbers of occurrences K that Doc-ARC is trained with, for Figure 5; "" = none.
        epochs, batch_size, learning_rate: of the static systems [30, 16, 0.001].
        encoder_epochs, encoder_learning_rate: where the encoder is trained, in batches of the same size
            [dynamic: 30, 0.0001, batches of 4; fine-tuned BERT: 10, 0.00002].
        patience: passes without a better one on dev after which a training ends; 0 = it goes to its end.
        select_by: which pass is better: that of the higher span F1 on dev, `f1`, or of the lower `loss`.
        schedule: of the learning rate: `constant`, or `linear`, a warm-up of a tenth and then down to 0.
        weight_decay: of AdamW; biases and norms are not decayed.
        reading: of spans, for the scores: `seqeval`, `strict` or `released` (see metrics/span_f1.py).
    """

    systems: str = "bert-lstm doc-arc"
    seeds: int = 1
    sweep: str = ""
    epochs: int = 4
    batch_size: int = 16
    learning_rate: float = 0.003
    encoder_epochs: int = 3
    encoder_learning_rate: float = 0.001
    patience: int = 0
    select_by: str = "f1"
    schedule: str = "constant"
    weight_decay: float = 0.01
    reading: str = "seqeval"

    def __post_init__(self) -> None:
        check_types(self)
        tag_systems(self.systems)
        check_least(self, 1, "seeds", "epochs", "batch_size", "encoder_epochs")
        check_least(self, 0, "patience")
        check_choice(self, SELECT_BY, "select_by")
        check_choice(self, SCHEDULES, "schedule")
        check_choice(self, READINGS, "reading")
        if any(not (one.isdigit() and int(one)) for one in self.sweep.split()):
            raise ParameterError(f'sweep is {self.sweep!r}; write whole numbers above 0, such as "2 5 25"')


@dataclass(frozen=True, kw_only=True)
class TaggingSettings:
    """All parameters of a run but its folder."""

    corpus: TagCorpus = field(default_factory=TagCorpus)
    models: TaggingModels = field(default_factory=TaggingModels)
    training: TaggingTraining = field(default_factory=TaggingTraining)

    @property
    def parameters(self) -> dict[str, Any]:
        """By name, those of all parts."""
        return parameters_of(self)


# The parameters of notebook 07.
PARAMETERS = ("run_folder", *TaggingSettings().parameters, "own_text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """One system with a number of occurrences K (0 = it reads no context) and a seed."""

    system: TagSystem
    most: int
    seed: int

    @property
    def name(self) -> str:
        """As a folder."""
        return f"{self.system.name}{f'-{self.most}' if self.most else ''}-{self.seed}"

    @property
    def label(self) -> str:
        """Beside a progress bar."""
        return f"{self.system.label}{f', K = {self.most}' if self.most else ''}, seed {self.seed}"


@dataclass(frozen=True, kw_only=True)
class TaggingRun:
    """The documents of a run and the folder that it works in."""

    settings: TaggingSettings
    corpus: TaggedCorpus
    folder: Path
    _cut: dict[tuple[bool, bool], list[SplitDocument]] = field(default_factory=dict, repr=False)
    _examples: dict[tuple[bool, bool, int], Mapping[str, TagExamples]] = field(
        default_factory=dict, repr=False
    )

    @property
    def systems(self) -> tuple[TagSystem, ...]:
        """In the order of the tables."""
        return tag_systems(self.settings.training.systems)

    @property
    def trainings(self) -> list[Training]:
        """Each system with each seed, then those of the sweep."""
        given, models = self.settings.training, self.settings.models
        seeds = range(given.seeds)
        found = [
            Training(system=system, most=models.occurrences if system.context else 0, seed=seed)
            for system in self.systems
            for seed in seeds
        ]
        swept = [
            Training(system=system, most=most, seed=seed)
            for system in self.systems
            if system.name == "doc-arc"
            for most in sorted({int(one) for one in given.sweep.split()} - {models.occurrences})
            for seed in seeds
        ]
        return found + swept

    def row_of(self, training: Training) -> str:
        """The name of its scores: that of the system, in the sweep with K."""
        swept = training.most not in (0, self.settings.models.occurrences)
        return f"{training.system.name}-{training.most}" if swept else training.system.name

    def folder_of(self, training: Training) -> Path:
        """Where a trained system is kept."""
        return self.folder / "systems" / training.name

    @cached_property
    def parts(self) -> TaggerParts:
        """Of its taggers."""
        return TaggerParts(settings=self.settings.models, labels=self.corpus.labels, cache=self.folder)

    def tagger(self, training: Training, *, trained: bool) -> Tagger:
        """A new one, or the one that was trained. Errors as of `new_tagger`."""
        kept = self.folder_of(training) / MODEL_FOLDER if trained else None
        return new_tagger(training.system, self.parts, most=training.most, seed=training.seed, trained=kept)

    def is_trained(self, training: Training) -> bool:
        """Whether its model is there."""
        return (self.folder_of(training) / MODEL_FOLDER).is_dir()

    def examples(self, tagger: Tagger, training: Training) -> Mapping[str, TagExamples]:
        """Those of each split. Trainings that read documents alike share them."""
        encoder = training.system.trains_encoder, training.system.small
        key = *encoder, training.most
        if key not in self._examples:
            splits = self.corpus.documents
            if encoder not in self._cut:
                documents = list(chain.from_iterable(splits.values()))
                cut = tagger.cut(tracked(documents, desc="sentences in pieces", unit=" documents"))
                self._cut[encoder] = cut
            every = tagger.examples_of(self._cut[encoder])
            sizes = np.cumsum([len(documents) for documents in splits.values()])
            split_of = np.searchsorted(sizes, every.sequences[:, 0], side="right")
            self._examples[key] = {
                name: every.in_order(np.flatnonzero(split_of == number)) for number, name in enumerate(splits)
            }
        return self._examples[key]

    @property
    def shown(self) -> Training:
        """Whose tags are shown: of the system that is the last in the table, or the last that attends to the
        document, if one does; with seed 0."""
        system = sorted(self.systems, key=lambda one: one.context)[-1]
        return next(one for one in self.trainings if one.system is system)


def prepare_tagging(settings: TaggingSettings, folder: Path) -> TaggingRun:
    """Read the documents; nothing is trained.

    Raises ValueError with one clear line for whatever does not fit.
    """
    run = TaggingRun(settings=settings, corpus=read_tagged(settings.corpus), folder=folder)
    for system in run.systems:
        training_config(settings, system, seed=0, items=1)
    return run


def tag_documents(run: TaggingRun) -> dict[Training, dict[str, TagPredictions]]:
    """Training -> split -> tags; trained where that was not done yet.

    Raises Stopped when it was asked to stop; the same call goes on from there.
    """
    return {training: _tagged(run, training) for training in run.trainings}


def _tagged(run: TaggingRun, training: Training) -> Mapping[str, TagPredictions]:
    if not run.is_trained(training):
        _train(run, training)
    tagger = run.tagger(training, trained=True)
    examples, found = run.examples(tagger, training), {}
    for split in HELD_OUT:
        file = run.folder_of(training) / f"{split}.npz"
        if not file.is_file():
            predict_tags(tagger, examples[split], name=f"{training.label}: {split}").save(file)
        found[split] = TagPredictions.load(file, examples=examples[split])
    return found


def _train(run: TaggingRun, training: Training) -> None:
    tagger = run.tagger(training, trained=False)
    examples = run.examples(tagger, training)
    for split in ("train", "dev"):
        tagger.ready(examples[split])
    train = examples["train"]
    config = training_config(run.settings, training.system, seed=training.seed, items=len(train))

    def judge(model: nn.Module) -> float:
        tagged = predict_tags(replace(tagger, model=model), examples["dev"])
        counts = span_counts(tagged.gold(), tagged.predicted(), reading=run.settings.training.reading)
        return float(f1_of(counts.sum(axis=0)))

    job = TrainingJob(
        model=tagger.model,
        tokenizer=tagger.tokenizer,
        train_examples=train.in_order(in_runs(train, config)),
        validation_examples=examples["dev"],
        collate=tagger.collate_of(train),  # the documents of all splits are the same list
        config=config,
        judge=judge if run.settings.training.select_by == "f1" else None,
    )
    fine_tune(job, folder=run.folder_of(training), name=training.label)


def in_runs(examples: TagExamples, config: TrainingConfig) -> np.ndarray:
    """Numbers of at least as many examples as training takes; the batches of each pass are drawn anew.

    A pass leaves out what does not fill a batch, others in each: batches of the next one must begin where
    training begins one. With fewer examples than a batch has, passes follow each other without a gap.
    """
    size = config.batch_size
    whole = len(examples) // size * size or len(examples)
    passes = -(-config.steps * size // whole)
    return np.concatenate(
        [
            document_runs(examples, batch_size=size, rng=np.random.default_rng([config.seed, number]))[:whole]
            for number in range(passes)
        ]
    )


def training_config(settings: TaggingSettings, system: TagSystem, *, seed: int, items: int) -> TrainingConfig:
    """How a system is trained on so many sequences.

    Raises ParameterError for values that cannot be.
    """
    given = settings.training
    epochs, rate = given.epochs, given.learning_rate
    if system.trains_encoder:
        epochs, rate = given.encoder_epochs, given.encoder_learning_rate
    falls = given.schedule == "linear"
    config = config_of_passes(
        items=items,
        epochs=epochs,
        batch_size=given.batch_size,
        micro_batch_size=given.batch_size,
        learning_rate=rate,
        warmup_steps=None if falls else 0,
        patience=given.patience,
        precision=settings.models.precision,
        workers=0,  # what taggers read is made already, and too large to be sent
        seed=seed,
    )
    return replace(
        config,
        decay_power=1.0 if falls else 0.0,
        weight_decay=given.weight_decay,
        adam_epsilon=1e-6,
        max_gradient_norm=0.0,
    )


# What Figure 3 subtracts; the paper has the second alone.
GAINS = (("doc-arc", "bert-lstm"), ("doc-arc", "bert"), ("dynamic-doc-arc", "dynamic-bert-lstm"))
Found = Mapping[Training, Mapping[str, TagPredictions]]


def analysis_tables(run: TaggingRun, found: Found) -> dict[str, list[dict[str, Any]]]:
    """Tables of a report: `shares` (Figure 2), `gains` (Figure 3), `top` (Table 5), `weights` (Figure 4)."""
    test = run.corpus.documents["test"]
    others = chain(run.corpus.documents["train"], run.corpus.documents["dev"])
    words = labelled_words(test, tf_idf(test, others=others))
    return {
        "shares": [asdict(share) for share in shares_by_quantile(words)],
        "gains": _gains(run, found, strata(test, words)),
        "top": [
            {"word": one.spelling, "labels": list(one.labels), "score": one.score}
            for one in top_entities(words)
        ],
        "weights": _weights(run, found),
    }


def _gains(run: TaggingRun, found: Found, parts: Sequence[Any]) -> list[dict[str, Any]]:
    """Differences of word-level F1, mean over seeds, over all words and over entities of high TF-IDF;
    documents are drawn."""
    chosen = [("all words", None), *((_top(part.percentile), part.chosen) for part in parts)]
    rows = []
    for a, b in GAINS:
        sides = [[(one.gold(), one.predicted()) for one in _of_table(run, found, name)] for name in (a, b)]
        if not all(sides):
            continue
        for name, of_words in chosen:
            counts = [[word_counts(*tags, chosen=of_words) for tags in side] for side in sides]
            occurrences = int(counts[0][0][:, 2].sum())  # in the gold, which every seed has
            if not occurrences:
                continue
            compared = compare_counts(*counts, f1_of, seed=0)
            f1 = {
                f"f1_{side}": float(np.mean([f1_of(one.sum(axis=0)) for one in seeds]))
                for side, seeds in zip("ab", counts, strict=True)
            }
            rows.append({"a": a, "b": b, "words": name, "occurrences": occurrences, **f1, **asdict(compared)})
    return rows


def _top(percentile: float) -> str:
    return f"top {100 - percentile:g}%"


def _of_table(run: TaggingRun, found: Found, name: str) -> list[TagPredictions]:
    """Of all seeds, on test, without those of the sweep."""
    return [of_split["test"] for training, of_split in found.items() if run.row_of(training) == name]


def _weights(run: TaggingRun, found: Found) -> list[dict[str, Any]]:
    """Of the words that occur more than once, with seed 0: a word that occurs once has weight 1 whatever was
    learned."""
    rows = []
    for training, of_split in found.items():
        predictions = of_split["test"]
        swept = run.row_of(training) != training.system.name
        if training.seed or swept or predictions.weights is None:
            continue
        buckets = predictions.buckets()
        several = (buckets >= 0).sum(axis=1) > 1
        if several.any():
            found_here = weights_by_distance(predictions.weights[several], buckets[several])
            rows += [{"system": training.system.name, **asdict(one)} for one in found_here]
    return rows


def report_figures(report: Report) -> list[go.Figure]:
    """Figures 2 to 5, in this order; those of which the run has no numbers are left out."""
    return [
        _shares(report),
        *_gains_tagging_figures(report),
        *_weights_tagging_figures(report),
        *_sweep(report),
    ]


def _corpus(report: Report) -> str:
    return Path(report.data["corpus"]).name


def _shares(report: Report) -> go.Figure:
    return shares_by_tf_idf_figure(
        {_corpus(report): [QuantileShare(**row) for row in report.tables["shares"]]}
    )


def _gains_tagging_figures(report: Report) -> list[go.Figure]:
    rows = report.tables["gains"]
    return [
        gain_by_tf_idf_figure(
            {_corpus(report): [_gain(row) for row in rows if (row["a"], row["b"]) == pair]},
            system=TAG_SYSTEMS[pair[0]].label,
            other=TAG_SYSTEMS[pair[1]].label,
        )
        for pair in dict.fromkeys((row["a"], row["b"]) for row in rows)
    ]


def _gain(row: Mapping[str, Any]) -> WordGain:
    return WordGain(
        stratum=row["words"],
        gain=row["difference"],
        low=row["low"],
        high=row["high"],
        words=row["occurrences"],
    )


def _weights_tagging_figures(report: Report) -> list[go.Figure]:
    rows = report.tables["weights"]
    figures = []
    for name in dict.fromkeys(row["system"] for row in rows):
        by_bucket = {row["bucket"]: row for row in rows if row["system"] == name}
        weights = [_at_distance(number, by_bucket.get(number)) for number in range(len(BUCKETS))]
        title = f"Attention weight of occurrences, by distance: {TAG_SYSTEMS[name].label}"
        figures.append(weights_by_distance_figure(weights, title=title))
    return figures


def _at_distance(number: int, row: Mapping[str, Any] | None) -> DistanceWeights:
    if row is None:
        return DistanceWeights(bucket=BUCKETS[number], quantiles=(0.0,) * len(QUANTILES), mean=0.0, count=0)
    return DistanceWeights(
        bucket=BUCKETS[number], quantiles=row["quantiles"], mean=row["mean"], count=row["count"]
    )


def _sweep(report: Report) -> list[go.Figure]:
    of_width: dict[int, list[float]] = {}
    for row in report.tables["sweep"]:
        of_width.setdefault(row["occurrences"], []).append(row["f1"])
    if len(of_width) < 2:
        return []
    points = [
        SweepPoint(
            k=width,
            f1=fmean(of_seeds),
            deviation=stdev(of_seeds) if len(of_seeds) > 1 else None,
            seeds=len(of_seeds),
        )
        for width, of_seeds in sorted(of_width.items())
    ]
    return [sweep_figure({_corpus(report): points})]


MEASURES = {"precision": precision_of, "recall": recall_of, "f1": f1_of}
# What is tested: the first against the second.
TESTED = (("doc-arc", "bert-lstm"), ("dynamic-doc-arc", "dynamic-bert-lstm"), ("doc-arc", "bert"))
SEED = 0  # of resampling
PAPER_LABELS = {  # by which the paper's corpora are known
    "litbank": {"PER", "LOC", "FAC", "GPE", "ORG", "VEH"},
    "jnlpba": {"protein", "DNA", "RNA", "cell_type", "cell_line"},
}
Counts = Mapping[str, Mapping[Training, np.ndarray]]  # split -> training -> (documents, 3)


def corpus_facts(run: TaggingRun) -> list[tuple[str, str]]:
    """What is tagged, as (name, text)."""
    rows = []
    for split, documents in run.corpus.documents.items():
        labelled = [one.sentences[number] for one in documents for number in one.labelled]
        words = sum(len(sentence.words) for sentence in labelled)
        every = sum(len(sentence.words) for one in documents for sentence in one.sentences)
        mended, divided = run.corpus.mended.get(split, 0), run.corpus.divided.get(split, 0)
        rows.append(
            (
                split,
                f"{len(documents):,} documents of {every:,} words; {words:,} of them labelled, in "
                f"{len(labelled):,} sentences with {span_count(run, split):,} spans"
                + (f"; {mended:,} tags I- that began a span were read as B-" if mended else "")
                + ("; it was one document, so each sentence is read as one" if divided else ""),
            )
        )
    return [*rows, ("labels", ", ".join(run.corpus.labels))]


def cost_facts(run: TaggingRun) -> list[tuple[str, str]]:
    """What training each system takes, as (name, text); one batch of each is learned from to know that. The
    encodings of that batch are made, no others."""
    rows = [("precision", precision_told(run.settings.models.precision))]
    for system in run.systems:
        training = next(one for one in run.trainings if one.system is system)
        tagger = run.tagger(training, trained=False)
        examples = run.examples(tagger, training)["train"]
        config = training_config(run.settings, system, seed=0, items=len(examples))
        first = examples.in_order(range(min(config.batch_size, len(examples))))
        tagger.ready(first)
        chosen, collate = [first[number] for number in range(len(first))], tagger.collate_of(first)
        seconds, _ = seconds_of_batch(tagger.model, partial(collate, chosen), precision=config.precision)
        alike = sum(one.system is system for one in run.trainings)
        cut = sum(shortened_words(run, examples).values())
        room = run.settings.models.most_tokens - ENDS
        rows.append(
            (
                system.label,
                f"{parameter_count(tagger.model) / 1e6:.2f} million parameters"
                f"{'' if system.trains_encoder else ' besides the frozen encoder'}; {config.steps:,} updates "
                f"with {config.batch_size} sentences, about {seconds_in_words(seconds * config.steps)}"
                f"{f'; times {alike} (seeds, K)' if alike > 1 else ''}"
                f"{f'; of {cut:,} long words the first {room} pieces are read' if cut else ''}",
            )
        )
    return rows


def shortened_words(run: TaggingRun, examples: TagExamples) -> dict[str, int]:
    """How many words of each split have more pieces than `most_tokens` has room for: these alone are read.

    Args:
        examples: of any split; they know the documents of all.
    """
    documents = iter(examples.documents)
    return {
        split: sum(one.shortened for one in islice(documents, len(of_split)))
        for split, of_split in run.corpus.documents.items()
    }


def write_tagging_report(run: TaggingRun, opened: Run, found: Found) -> Report:
    """Scores of all systems on dev and test, the tests between them, the sweep, and the analyses of
    section 5."""
    counts = _counts(run, found)
    return opened.write_report(
        scores={
            f"{row}/{split}/{measure}": score
            for row in dict.fromkeys(map(run.row_of, found))
            for split in HELD_OUT
            for measure, score in count_scores(_of_row(run, counts[split], row), MEASURES, seed=SEED).items()
        },
        data={
            "corpus": run.settings.corpus.corpus,
            "precision": precision_told(run.settings.models.precision),
            "documents": {split: len(documents) for split, documents in run.corpus.documents.items()},
            "facts": dict(corpus_facts(run)),
            "labels": list(run.corpus.labels),
            "shortened_words": {
                training.system.name: shortened_words(run, of_split["dev"].examples)
                for training, of_split in found.items()
            },
        },
        tables={
            "comparisons": _comparisons(run, counts["test"]),
            "runs": [
                {
                    "system": training.system.name,
                    "occurrences": training.most,
                    "seed": training.seed,
                    "split": split,
                    **{
                        measure: float(score(counts[split][training].sum(axis=0)))
                        for measure, score in MEASURES.items()
                    },
                }
                for training in found
                for split in HELD_OUT
            ],
            "sweep": _sweep_tagging_report(counts["dev"]),
            **analysis_tables(run, found),
        },
    )


def tag_table(report: Report, split: str = "test", *, corpus: str = "") -> ScoreTable:
    """A row for each system of a report that is not of the sweep, in the order of the paper's tables."""
    labels = {name: system.label for name, system in TAG_SYSTEMS.items()}
    caption = f"Spans found: {corpus or report.data['corpus']}"
    return score_table(report, labels=labels, split=split, caption=caption)


def comparison_rows(report: Report) -> list[list[str]]:
    """The tests of a report as rows of a table."""
    return [
        [
            TAG_SYSTEMS[row["a"]].label,
            TAG_SYSTEMS[row["b"]].label,
            f"{100 * row['difference']:+.1f} [{100 * row['low']:.1f}, {100 * row['high']:.1f}]",
            f"{row['p_holm']:.3f}" if row["p_holm"] >= 0.001 else "< 0.001",
        ]
        for row in report.tables["comparisons"]
    ]


def top_rows(report: Report) -> list[list[str]]:
    """The entities of the highest TF-IDF as rows of a table (Table 5)."""
    return [[escaped(row["word"]), escaped(", ".join(row["labels"]))] for row in report.tables["top"]]


def corpus_name(run: TaggingRun) -> str:
    """What the paper calls the corpus, if its labels are those of one of the paper's; else that of its
    folder."""
    labels = set(run.corpus.labels)
    known = [name for name, theirs in PAPER_LABELS.items() if labels == theirs]
    return known[0] if known else Path(run.settings.corpus.corpus).name


def span_count(run: TaggingRun, split: str) -> int:
    """True spans of a split."""
    return sum(
        len(spans_of(one.sentences[number].tags or ()))
        for one in run.corpus.documents[split]
        for number in one.labelled
    )


def _counts(run: TaggingRun, found: Found) -> Counts:
    """Correct, predicted and gold spans of each document."""
    reading = run.settings.training.reading
    return {
        split: {
            training: span_counts(of_split[split].gold(), of_split[split].predicted(), reading=reading)
            for training, of_split in found.items()
        }
        for split in HELD_OUT
    }


def _of_row(run: TaggingRun, counts: Mapping[Training, np.ndarray], row: str) -> list[np.ndarray]:
    """Those with all seeds: (documents, 3) each."""
    return [one for training, one in counts.items() if run.row_of(training) == row]


def _comparisons(run: TaggingRun, counts: Mapping[Training, np.ndarray]) -> list[dict[str, Any]]:
    """Mean F1 on test over the seeds, documents being what is drawn. `p_holm`: corrected for these tests."""
    names = {system.name for system in run.systems}
    rows = []
    for a, b in TESTED:
        if {a, b} <= names:
            sides = [_of_row(run, counts, name) for name in (a, b)]
            compared = compare_counts(*sides, f1_of, seed=SEED)
            rows.append({"a": a, "b": b, "measure": "f1", **asdict(compared)})
    corrected = holm([row["p"] for row in rows])
    return [{**row, "p_holm": p} for row, p in zip(rows, corrected, strict=True)]


def _sweep_tagging_report(counts: Mapping[Training, np.ndarray]) -> list[dict[str, Any]]:
    """Doc-ARC's F1 on dev for each K and seed (Figure 5)."""
    swept = [training for training in counts if training.system.name == "doc-arc"]
    return [
        {"occurrences": one.most, "seed": one.seed, "f1": float(f1_of(counts[one].sum(axis=0)))}
        for one in sorted(swept, key=lambda training: (training.most, training.seed))
    ]


ON_A_PAGE = 100
SHOWN_OF_OWN = 40  # sentences below the box
# What stands in the box before anything is typed.
EXAMPLE_TEXT = """\
Oskmere Works will close its yard on the Tolvane in spring. Yessel Brandir, 54, a welder, heard of it on the \
radio. "Nobody from Oskmere called," Brandir said.

Brandir came to Tolvane Bridge as a child. In 1998 the yard had 2,310 workers; 140 are left. Oskmere has not \
answered questions.
"""


def tags_in_place(predictions: TagPredictions, *, file: Path) -> Widget:
    """Sentences to leaf through; the first ON_A_PAGE with a span also go to `file`, which needs no kernel."""
    reads = read_sentences(predictions)
    shown = [read for read in reads if read.predicted or read.gold] or reads
    with replaced_file(file) as opened:
        opened.write(tagged_page(shown[:ON_A_PAGE], title="Tagged sentences"))
    return tagged_browser(reads)


def read_sentences(predictions: TagPredictions, *, known: bool = True) -> list[ReadSentence]:
    """Each labelled sequence with its tags and the occurrences that were attended to.

    Args:
        known: False = the tags of the documents are no gold.
    """
    starts = predictions.starts
    return [
        _read_sentences(predictions, number, start=int(starts[number]), known=known)
        for number in range(len(predictions.examples))
    ]


def _read_sentences(predictions: TagPredictions, number: int, *, start: int, known: bool) -> ReadSentence:
    examples = predictions.examples
    example = examples[number]
    words = []
    for place, word in enumerate(example.words):
        words.append(
            ReadWord(
                word=word,
                gold=examples.tags[example.labels[place]] if known else None,
                predicted=examples.tags[predictions.tags[start + place]],
                occurrences=_occurrences(predictions, example, place, row=start + place),
            )
        )
    document = examples.documents[example.document].document
    return ReadSentence(document=document.id, number=example.sentence, words=tuple(words))


def _occurrences(
    predictions: TagPredictions, example: TagExample, place: int, *, row: int
) -> tuple[ReadOccurrence, ...]:
    if predictions.weights is None:
        return ()
    sentences = predictions.examples.documents[example.document].document.sentences
    return tuple(
        ReadOccurrence(
            words=sentences[sentence].words,
            place=at,
            distance=abs(sentence - example.sentence),
            weight=float(weight),
            sentence=sentence,
        )
        for (sentence, at), weight in zip(
            example.places[place].tolist(), predictions.weights[row], strict=True
        )
        if sentence >= 0
    )


def own_text_in_place(run: TaggingRun, training: Training, text: str) -> Widget:
    """A box for a text of one's own, tagged by a trained system, that in the box at first included.

    Raises ValueError if it cannot be read.
    """
    tag = own_tagger(run, training)
    return own_text_box(tag, text=text, tagged=tag(text))


def own_text_of(file: str) -> str:
    """The text of a file, or the example if it is "". Errors as of `read_text`."""
    return read_text(file) if file else EXAMPLE_TEXT


def own_tagger(run: TaggingRun, training: Training) -> Callable[[str], str]:
    """From a text to HTML: its first sentences with a predicted span. All words with their tags are written
    to `own_text.tsv` in the folder of the run, a page to `own_text.html`.

    The function raises ValueError for a text without words.
    """
    loaded: list[Tagger] = []

    def tag(text: str) -> str:
        document = own_document(text)
        if not loaded:
            loaded.append(run.tagger(training, trained=True))
        predictions = predict_tags(loaded[0], loaded[0].read([document]))
        reads = read_sentences(predictions, known=False)
        _write_own(document, predictions.predicted()[0], file=run.folder / "own_text.tsv")
        found = [read for read in reads if read.predicted] or reads
        with replaced_file(run.folder / "own_text.html") as opened:
            opened.write(tagged_page(found[:ON_A_PAGE], title="Your text, tagged"))
        labels = labels_of_reads(reads)
        return "".join(sentence_html(read, labels=labels) for read in found[:SHOWN_OF_OWN])

    return tag


def own_document(text: str) -> TaggedDocument:
    """A text in sentences and words, all to be tagged. Raises ValueError if there is no word."""
    sentences = []
    for sentence in split_sentences(text):
        words = tuple(sentence[start:end] for start, end in token_spans(sentence))
        if words:
            sentences.append(TaggedSentence(words=words, tags=(OUTSIDE,) * len(words)))
    if not sentences:
        raise ValueError("the text has no words; write or paste one")
    return TaggedDocument(id="your text", sentences=tuple(sentences))


def _write_own(document: TaggedDocument, tags: SentenceTags, *, file: Path) -> None:
    """A line for each word, a blank one after each sentence."""
    with replaced_file(file) as opened:
        for sentence, found in zip(document.sentences, tags, strict=True):
            rows = zip(sentence.words, found, strict=True)
            opened.writelines(f"{word}\t{tag}\n" for word, tag in rows)
            opened.write("\n")
