"""Document-attentive tagging (Jörke et al. 2020, "Doc-ARC"): notebook 07.

Each system is trained with each seed; the epoch with the highest F1 on dev is kept.

Of the training, the paper gives only epochs, patience, batch size and learning rate. The released code gives
model selection and patience by span F1 on dev (`select_by`), a constant learning rate (`schedule`), AdamW
with weight decay 0.01 except on biases and norms, epsilon 1e-6, and no gradient clipping.
Our choices: a batch has neighbouring sequences of a document, whose contexts overlap, and batches are
shuffled (that costs a fraction of sampling sequences freely; all systems are trained so); training stops
after `patience` epochs without improvement, in the released code one epoch later.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pandas as pd
from pydantic import Field
from torch import nn

from cdlm_lab.data.convert.tagged import DIVIDED, STRAY
from cdlm_lab.data.files import DataError, replaced_file
from cdlm_lab.data.reading import read_records
from cdlm_lab.data.records import KINDS, PassedOver, TaggedDocument
from cdlm_lab.data.storyworld.task_sets import read_storyworld_tags, read_storyworld_topics
from cdlm_lab.data.tags import SHARED, labels_of, spans_of, tagged_mentions, tags_of
from cdlm_lab.encoders.model_folder import Adapter, is_model
from cdlm_lab.encoders.precision import precision_in_words
from cdlm_lab.metrics.counts import TAG, f1_of, precision_and_recall, span_counts, word_counts
from cdlm_lab.parameters import ParameterError, names_in, settings
from cdlm_lab.progress import Share, tracked
from cdlm_lab.runs import runs
from cdlm_lab.runs.evaluation import Evaluation, Measure, Planned
from cdlm_lab.runs.items import apart, items_of, read_frame
from cdlm_lab.runs.own import by_item
from cdlm_lab.runs.runs import once, predict, report, train, train_small
from cdlm_lab.tasks.tagging import tf_idf
from cdlm_lab.tasks.tagging.examples import SplitDocument, TagExamples, document_runs
from cdlm_lab.tasks.tagging.systems import (
    SentenceTags,
    Tagger,
    Taggers,
    TaggerSettings,
    TagPredictions,
    TagSystem,
)
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.fine_tuning import TrainingJob, config_of_passes

__all__ = ["Settings", "evaluate", "predict", "prepare", "report", "train", "train_small"]

STORYWORLD = "storyworld"
MENTIONS = "storyworld mentions"  # events and entities, in all reports
SPLITS = ("train", "dev", "test")


@settings
class Settings(TaggerSettings):
    """The parameters of notebook 07, whose comments say what they mean."""

    run_folder: str = "runs/document_tagging"
    trained: str = ""  # a run whose models are opened; "" = they are trained
    corpus: str = STORYWORLD
    train_documents: int = Field(default=0, ge=0, description="0 means all")
    held_out_documents: int = Field(default=0, ge=0, description="0 means all")
    seeds: int = Field(default=1, ge=1)
    sweep: str = ""
    epochs: int = Field(default=4, ge=1)
    batch_size: int = Field(default=16, ge=1)
    learning_rate: float = 0.003
    encoder_epochs: int = Field(default=3, ge=1)
    encoder_learning_rate: float = 0.001
    adapter: Adapter = ""
    schedule: Literal["constant", "linear"] = "constant"
    select_by: Literal["f1", "loss"] = "f1"
    patience: int = Field(default=0, ge=0)

    def __post_init__(self) -> None:
        if not any(one.trains_encoder for one in self.chosen) and self.adapter:
            raise ParameterError(f'adapter is {self.adapter!r}, but no system fine-tunes one; write ""')
        if any(not (one.isdigit() and int(one)) for one in names_in(self.sweep)):
            raise ParameterError(f'sweep is {self.sweep!r}; write whole numbers above 0, such as "2 5 25"')

    def config(self, system: TagSystem, *, seed: int, items: int) -> TrainingConfig:
        """The training config of a system for `items` sequences. Raises ParameterError: impossible values."""
        trained, falls = system.trains_encoder, self.schedule == "linear"
        config = config_of_passes(
            items=items,
            epochs=self.encoder_epochs if trained else self.epochs,
            batch_size=self.batch_size,
            micro_batch_size=self.batch_size,
            learning_rate=self.encoder_learning_rate if trained else self.learning_rate,
            warmup_steps=None if falls else 0,
            patience=self.patience,
            precision=self.precision,
            workers=0,  # the inputs of taggers exist already, and are too large to send between processes
            seed=seed,
            adapter=self.adapter if trained else "",
        )
        form = {"weight_decay": 0.01, "adam_epsilon": 1e-6, "max_gradient_norm": 0.0}
        return replace(config, decay_power=1.0 if falls else 0.0, **form)


# ---- documents ----

STORIES = {"train": 60, "dev": 20, "test": 20}  # default number of storyworld stories
DRAW = 0  # seed for sampling documents


@dataclass(frozen=True, kw_only=True)
class TaggedCorpus:
    """The documents of a corpus, by split."""

    documents: Mapping[str, tuple[TaggedDocument, ...]]
    passed_over: Mapping[str, PassedOver] = field(default_factory=dict)  # what had to be changed or left out

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of all splits; one that train lacks cannot be learned, and costs every system recall."""
        return labels_of(chain.from_iterable(self.documents.values()))


def read_tagged(given: Settings) -> TaggedCorpus:
    """Documents of train, dev and test. Raises ParameterError for an unknown kind of corpus, or a split with
    fewer than two documents or without any span. Raises DataError for a file that cannot be read."""
    documents, passed_over = {}, {}
    for split in SPLITS:
        lost = PassedOver()
        some = tuple(_documents(given, split, lost))
        if len(some) < 2:
            raise ParameterError(
                f"corpus is {given.corpus!r}, whose {split} has one document to read; it needs two: give "
                f"a file for each in {split}/ or a line -DOCSTART- before each in {split}.conll, and 0 or at "
                f"least 2 as {'train_documents' if split == 'train' else 'held_out_documents'}"
            )
        if not labels_of(some):
            raise ParameterError(
                f"corpus is {given.corpus!r}, whose {split} has no span; all labelled words have the tag O"
            )
        documents[split], passed_over[split] = some, lost
    return TaggedCorpus(documents=documents, passed_over=passed_over)


def _documents(given: Settings, split: str, lost: PassedOver) -> Iterator[TaggedDocument]:
    most = given.train_documents if split == "train" else given.held_out_documents
    if given.corpus == STORYWORLD:
        yield from read_storyworld_tags(split, most or STORIES[split])
        return
    if given.corpus == MENTIONS:
        for topic in read_storyworld_topics(split, most or STORIES[split]):
            yield from (tagged_mentions(one, lost) for one in topic.documents)
        return
    every = list(read_records("tagging", given.corpus, split, passed_over=lost))
    if most:
        rng = np.random.default_rng([DRAW, SPLITS.index(split)])
        every = [every[number] for number in sorted(rng.permutation(len(every))[:most].tolist())]
    yield from every


# ---- the run ----

ALL_WORDS = "all words"
# Pairs of systems that are compared by span F1 (Tables 2, 3 and 4) and by word F1 (Figure 3, which in the
# paper has only the second).
TESTED = (("doc-arc", "bert-lstm"), ("dynamic-doc-arc", "dynamic-bert-lstm"), ("doc-arc", "bert"))
GAINS = (("doc-arc", "bert-lstm"), ("doc-arc", "bert"), ("dynamic-doc-arc", "dynamic-bert-lstm"))


class TagTraining(NamedTuple):
    """One system with a number of occurrences K (`most`; 0 = without context) and a seed; `swept`: this K
    belongs to the sweep over K."""

    system: TagSystem
    most: int
    seed: int
    swept: bool = False

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.system.name}{f'-{self.most}' if self.most else ''}-{self.seed}"

    @property
    def label(self) -> str:
        """The text beside its progress bar."""
        return f"{self.system.label}{f', K = {self.most}' if self.most else ''}, seed {self.seed}"

    @property
    def row(self) -> str:
        """Its system name in scores: the name of the system, followed by K in the sweep."""
        return f"{self.system.name}-{self.most}" if self.swept else self.system.name

    @property
    def key(self) -> tuple[str, int]:
        """The key of its predictions in the mapping that `predict` returns."""
        return self.row, self.seed


@dataclass(frozen=True, kw_only=True)
class TaggingRun(runs.SystemRun):
    """A run of notebook 07: its documents, and how its systems are trained and tag."""

    NAME: ClassVar[str] = "document-attentive tagging"
    SHAPES: ClassVar[tuple[str, ...]] = (
        *("model", "small_model", "layers", "most_tokens"),
        *("occurrences", "context_encoder", "hidden_size"),
    )
    UNIT: ClassVar[str] = "sentences"
    MEASURES: ClassVar[tuple[Measure, ...]] = (
        Measure("precision", counts="recall"),
        Measure("recall"),
        Measure("f1", "f1", of=("precision", "recall")),
        Measure("word_f1", "f1", of=("word_precision", "word_recall")),
        Measure("last_word_f1", "f1", of=("last_word_precision", "last_word_recall")),
    )

    settings: Settings
    corpus: TaggedCorpus
    taggers: Taggers
    _cut: dict[tuple[bool, bool], list[SplitDocument]] = field(default_factory=dict, repr=False)
    _examples: dict[tuple[bool, bool, int], Mapping[str, TagExamples]] = field(
        default_factory=dict, repr=False
    )

    @classmethod
    def read(cls, given: Settings) -> TaggingRun:
        """Read the documents and check the settings."""
        for system in given.chosen:
            given.config(system, seed=0, items=1)
        corpus = read_tagged(given)
        taggers = Taggers(settings=given, labels=corpus.labels, cache=Path(given.run_folder))
        return cls(settings=given, corpus=corpus, taggers=taggers)

    def records(self, split: str) -> Sequence[TaggedDocument]:
        """The documents of a split."""
        return self.corpus.documents[split]

    @property
    def trainings(self) -> list[TagTraining]:
        """Every system with every seed, then those of the sweep over K."""
        given = self.settings
        listed = [(system, given.occurrences if system.context else 0, False) for system in self.systems]
        further = sorted({int(one) for one in names_in(given.sweep)} - {given.occurrences})
        swept = [system for system in self.systems if system.name == "doc-arc"]
        listed += [(system, most, True) for system in swept for most in further]
        seeds = range(given.seeds)
        return [TagTraining(system, most, seed, swept) for system, most, swept in listed for seed in seeds]

    @property
    def shown(self) -> TagTraining:
        """The training whose tags are shown: with seed 0, the last system in the table that attends to the
        document, or the last one if none does."""
        return self.first(sorted(self.systems, key=lambda one: one.context)[-1])

    @property
    def data(self) -> dict[str, Any]:
        """Facts about the documents, stored in the report."""
        return {
            "corpus": self.settings.corpus,
            "precision": precision_in_words(self.settings.precision),
            "documents": {split: len(documents) for split, documents in self.corpus.documents.items()},
            "facts": dict(corpus_facts(self)),
            "labels": list(self.corpus.labels),
        }

    def reads(self, system: TagSystem) -> str:
        """The encoder, if the system reads its vectors."""
        return "" if system.trains_encoder else self.settings.model

    def begins_with(self, training: TagTraining) -> str:
        """The encoder that is trained along, if any."""
        given, system = self.settings, training.system
        return (given.small_model if system.small else given.model) if system.trains_encoder else ""

    def check(self) -> None:
        """Raise an error if a model is not there or does not fit."""
        super().check()
        unkept = replace(self, taggers=replace(self.taggers, cache=None))  # writes no encodings
        for training in self.trainings:
            if not training.seed and not training.swept:
                (unkept.load if self.settings.trained else unkept.new)(training)

    def parallel(self, training: TagTraining) -> str:
        """Always "": all systems are trained in this process."""
        return ""

    def new(self, training: TagTraining) -> Tagger:
        """An untrained tagger."""
        return self.taggers.make(training.system, most=training.most, seed=training.seed)

    def load(self, training: TagTraining) -> Tagger:
        """The trained tagger."""
        form = {"most": training.most, "seed": training.seed, "trained": self.model_folder(training)}
        return self.taggers.make(training.system, **form)

    def examples(self, training: TagTraining, tagger: Tagger | None = None) -> Mapping[str, TagExamples]:
        """The examples of each split, shared between trainings that read documents alike; `tagger`: the
        tagger of this training, if at hand."""
        encoder = training.system.trains_encoder, training.system.small
        key = *encoder, training.most
        if key not in self._examples:
            trained = is_model(self.model_folder(training))
            tagger = tagger or (self.load if trained else self.new)(training)
            splits = self.corpus.documents
            if encoder not in self._cut:
                documents = list(chain.from_iterable(splits.values()))
                with_bar = tracked(documents, desc="sentences in pieces", unit=" documents")
                self._cut[encoder] = tagger.cut(with_bar)
            every = tagger.examples_of(self._cut[encoder])
            sizes = np.cumsum([len(documents) for documents in splits.values()])
            split_of = np.searchsorted(sizes, every.sequences[:, 0], side="right")
            self._examples[key] = {
                name: every.in_order(np.flatnonzero(split_of == number)) for number, name in enumerate(splits)
            }
        return self._examples[key]

    def job(self, training: TagTraining) -> TrainingJob:
        """A training job for a new tagger on the training documents; computes the encodings it needs."""
        tagger = self.new(training)
        examples = self.examples(training, tagger)
        for split in ("train", "dev"):
            tagger.make_ready(examples[split])
        some = examples["train"]
        config = self.settings.config(training.system, seed=training.seed, items=len(some))

        def judge(model: nn.Module, share: Share) -> float:
            predictions = replace(tagger, model=model).predict(examples["dev"], share=share)
            counts = span_counts(predictions.gold(), predictions.predicted())
            return float(f1_of(counts.sum(axis=0)))

        return TrainingJob(
            model=tagger.model,
            tokenizer=tagger.tokenizer,
            train_examples=some.in_order(in_runs(some, config)),
            validation_examples=examples["dev"],
            collate=tagger.collate_of(some),  # also for dev: all splits share one list of documents
            config=config,
            judge=judge if self.settings.select_by == "f1" else None,
        )

    def trial(self, training: TagTraining) -> TrainingJob:
        """A job for which only the first batch is encoded."""
        tagger = self.new(training)
        some = self.examples(training, tagger)["train"]
        config = self.settings.config(training.system, seed=0, items=len(some))
        first = some.in_order(np.arange(config.batch_size) % len(some))
        tagger.make_ready(first)
        form = {"model": tagger.model, "tokenizer": tagger.tokenizer, "collate": tagger.collate_of(first)}
        return TrainingJob(train_examples=first, validation_examples=first, config=config, **form)

    def predict_set(self, loaded: Tagger, name: str, bar: str) -> TagPredictions:
        """Predict the tags of a split."""
        training = next(one for one in self.trainings if one[:2] == (loaded.system, loaded.most))
        return loaded.predict(self.examples(training, loaded)[name], name=bar)

    def read_predictions(self, file: Path, name: str) -> TagPredictions:
        """Read the predicted tags of a split."""
        training = next(one for one in self.trainings if self.folder_of(one) == file.parent)
        return TagPredictions.of_frame(read_frame(file), examples=self.examples(training)[name])

    @property
    def planned(self) -> list[Planned]:
        """Span F1 on test; of words, a family for each pair of systems."""
        of_spans = [Planned(a=a, b=b, measure="f1") for a, b in TESTED]
        return of_spans + [
            Planned(a=a, b=b, measure="word_f1", group=group, family=f"word_f1/{a}/{b}")
            for a, b in GAINS
            for group in self.words_by_tf_idf
        ]

    @cached_property
    def test_words(self) -> pd.DataFrame:
        """The words of the labelled sentences of test, with their TF-IDF."""
        train, dev, test = self.corpus.documents.values()
        return tf_idf.labelled_words(test, others=chain(train, dev))

    @cached_property
    def words_by_tf_idf(self) -> dict[str, Any]:
        """Group of the words of test -> which they are, as `word_counts` takes it."""
        parts = tf_idf.entities_by_percentile(self.corpus.documents["test"], self.test_words)
        return {ALL_WORDS: None} | {f"top {100 - each:g}%": chosen for each, chosen in parts.items()}

    def items(self, predictions: Mapping[tuple[str, int], Mapping[str, Any]]) -> pd.DataFrame:
        """Of each document the spans; on test, but for the sweep, also the words in gold spans by TF-IDF."""
        swept = {training.row for training in self.trainings if training.swept}
        tables = []
        for (system, seed), of_split in predictions.items():
            for split, one in of_split.items():
                documents = self.corpus.documents[split]
                gold = [[each.sentences[n].tags or () for n in each.labelled] for each in documents]
                tags = one.predicted() if isinstance(one, TagPredictions) else one
                names = {"items": [each.id for each in documents], "split": split}
                of_run = partial(items_of, system=system, seed=seed, **names)
                tables.append(of_run(precision_and_recall(span_counts(gold, tags))))
                for kind in KINDS if {*self.corpus.labels} <= {*KINDS} else ():
                    for prefix, last in (("", False), ("last_word_", True)):
                        sides = ([_of_label(kind, one, last=last) for one in side] for side in (gold, tags))
                        counts = precision_and_recall(span_counts(*sides), prefix)
                        tables.append(of_run(counts, group=kind))
                by_tf_idf = {} if split != "test" or system in swept else self.words_by_tf_idf
                for group, chosen in by_tf_idf.items():
                    counts = word_counts(gold, tags, chosen=chosen)
                    if counts[:, 2].any():
                        tables.append(of_run(precision_and_recall(counts, "word_"), group=group))
        return pd.concat(tables)

    def own_predictions(
        self, file: Path, lines: Sequence[tuple[int, Mapping[str, Any]]], split: str
    ) -> list[SentenceTags]:
        """Lines {"item": id of a document, "tags": [["B-PER", "O"], ...]} with the tags of the words of each
        labelled sentence, in their order."""
        documents = self.corpus.documents[split]
        given = by_item(file, lines, apart(one.id for one in documents), field="tags")
        read = []
        for document, (line, tags) in zip(documents, given.values(), strict=True):
            words = [len(document.sentences[number].words) for number in document.labelled]
            try:
                fits = [len(sentence) for sentence in tags] == words
                fits = fits and all(map(TAG.fullmatch, chain.from_iterable(tags)))
            except TypeError:
                fits = False
            if not fits:
                what = f"no tags of {len(words)} sentences of {', '.join(map(str, words[:8]))} words"
                hint = 'write "O", or "B-" or "I-" and a label, for each word of each labelled sentence'
                raise DataError(file, what, hint, line=line, field="tags")
            read.append(tags)
        return read


def _of_label(label: str, sentences: SentenceTags, *, last: bool) -> list[Sequence[str]]:
    """The tags of the spans of one label alone; `last`: of each only the last word."""
    each = ([one for one in spans_of(tags) if one.label == label] for tags in sentences)
    kept = ([replace(one, first=one.stop - 1) for one in some] if last else some for some in each)
    return [tags_of(some, len(tags)) for some, tags in zip(kept, sentences, strict=True)]


def in_runs(examples: TagExamples, config: TrainingConfig) -> np.ndarray:
    """Indices of at least as many examples as training takes; the batches of each epoch are sampled anew.

    An epoch drops the examples that do not fill a batch, different ones each time, so that the next epoch
    starts at a batch boundary. With fewer examples than one batch takes, epochs follow without a gap.
    """
    size = config.batch_size
    whole = len(examples) // size * size or len(examples)
    epochs = range(-(-config.steps * size // whole))
    rngs = (np.random.default_rng([config.seed, epoch]) for epoch in epochs)
    return np.concatenate([document_runs(examples, batch_size=size, rng=rng)[:whole] for rng in rngs])


Predictions = Mapping[tuple[str, int], Mapping[str, TagPredictions]]  # (row of the scores, seed) -> split


def prepare(given: Settings) -> TaggingRun:
    """Claim the run folder and read the documents; trains nothing. Raises ValueError, with a one-line
    message, if anything does not fit. Raises RunError if the folder is not free for this run."""
    return TaggingRun.open(given)


# ---- before training ----


def corpus_facts(run: TaggingRun) -> list[tuple[str, str]]:
    """Facts about the documents of each split, as (name, text)."""
    rows = []
    for split, documents in run.corpus.documents.items():
        labelled = [one.sentences[number] for one in documents for number in one.labelled]
        words = sum(len(sentence.words) for sentence in labelled)
        spans = sum(len(spans_of(sentence.tags or ())) for sentence in labelled)
        every = sum(len(sentence.words) for one in documents for sentence in one.sentences)
        text = (
            f"{len(documents):,} documents of {every:,} words; {words:,} of them labelled, in "
            f"{len(labelled):,} sentences with {spans:,} spans"
        )
        lost = run.corpus.passed_over.get(split, PassedOver())
        if mended := lost.count(STRAY):
            text += f"; {mended:,} tags I- that began a span were read as B-"
        if lost.count(DIVIDED):
            text += "; it was one document, so each sentence is read as one"
        if shared := lost.count(SHARED):
            text += f"; {shared:,} mentions that share words with another one were left out"
        rows.append((split, text))
    return [*rows, ("labels", ", ".join(run.corpus.labels))]


def shortened_words(run: TaggingRun, examples: TagExamples) -> dict[str, int]:
    """Split -> number of words with more pieces than `most_tokens` has room for, which are truncated.
    `examples`: of any split; they hold the documents of all."""
    documents = iter(examples.documents)
    return {
        split: sum(one.shortened for one in islice(documents, len(of_split)))
        for split, of_split in run.corpus.documents.items()
    }


# ---- scores ----


@once
def evaluate(run: TaggingRun, predictions: Predictions) -> runs.Scores:
    """Scores of all systems on dev and test, the planned comparisons, the sweep over K, and the analyses of
    section 5."""
    made = run.evaluated(predictions)
    for split, shown in predictions[run.shown.key].items():  # as `own_predictions` reads them
        ids = [shown.examples.documents[number].document.id for number in shown.documents]
        lines = zip(ids, shown.predicted(), strict=True)
        with replaced_file(run.folder / f"tags-{split}.jsonl") as file:
            file.writelines(f"{json.dumps({'item': one, 'tags': tags})}\n" for one, tags in lines)
    f1 = {
        (row.system, row.seed): row.value
        for row in made.rows
        if (row.split, row.metric, row.group) == ("dev", "f1", "")
    }
    swept = [one for one in run.trainings if one.system.name == "doc-arc"]
    swept.sort(key=lambda one: (one.most, one.seed))
    shortened = {
        one.system.name: shortened_words(run, predictions[one.key]["dev"].examples) for one in run.trainings
    }
    return runs.Scores.of(
        replace(made, rows=[row for row in made.rows if row.group in ("", *KINDS)]),
        data={"shortened_words": shortened},
        comparisons=[row for row in made.comparisons if not row["group"]],
        sweep=[{"occurrences": one.most, "seed": one.seed, "f1": f1[one.key]} for one in swept],
        gains=gains_of(made),
        **analysis_tables(run, predictions),
    )


def gains_of(made: Evaluation) -> list[dict[str, Any]]:
    """The comparisons of word F1 (Figure 3), with the number of words in gold and the F1 of both systems."""
    scores = {(row.system, row.group): row for row in made.rows if row.group and row.seed is None}
    rows = []
    for row in made.comparisons:
        if words := row["group"]:
            a, b = (scores[row[side], words] for side in "ab")
            rows.append({**row, "words": words, "occurrences": a.n, "f1_a": a.value, "f1_b": b.value})
    return rows


def analysis_tables(run: TaggingRun, predictions: Predictions) -> dict[str, list[dict[str, Any]]]:
    """Of test documents: `shares` (Figure 2), `weights` (Figure 4), `top` (Table 5)."""
    return {
        "shares": tf_idf.shares_by_quantile(run.test_words),
        "top": tf_idf.top_entities(run.test_words),
        "weights": _weights(run, predictions),
    }


def _weights(run: TaggingRun, predictions: Predictions) -> list[dict[str, Any]]:
    """Attention weights by distance with seed 0, over words that occur more than once: a word that occurs
    once has weight 1 whatever was learned."""
    rows = []
    for training in run.trainings:
        one = predictions[training.key]["test"]
        if training.seed or training.swept or one.weights is None:
            continue
        buckets = one.buckets()
        several = (buckets >= 0).sum(axis=1) > 1
        if several.any():
            by_distance = tf_idf.weights_by_distance(one.weights[several], buckets[several])
            rows += [{"system": training.system.name, **each} for each in by_distance]
    return rows
