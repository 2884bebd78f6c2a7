"""Document matching: which documents belong together (Zhou et al. 2020, "CDA", section 5.2, Tables 2 and 3;
CDLM section 3.3, Table 4): notebook 04.

Each system is trained with each seed; the epoch with the lowest loss on dev is kept. Choices where the papers
are silent, or where a small corpus needs others: the number of epochs is fixed (CDA stops after five without
a lower dev loss); the learning rate falls linearly to 0 without warm-up, as in CDLM's released code (CDA's
keeps it constant); CDLM's 8 epochs in batches of 32 are parameters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, product
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from cdlm_lab.data import pairs as links_of
from cdlm_lab.data import splits
from cdlm_lab.data.files import DataError
from cdlm_lab.data.reading import format_of, read_records
from cdlm_lab.data.records import DocumentLink, DocumentPair, PairDocument, PassedOver
from cdlm_lab.data.storyworld.task_sets import Unrelated, read_storyworld_pairs
from cdlm_lab.encoders.encoder import check_lengths
from cdlm_lab.encoders.precision import precision_in_words
from cdlm_lab.encoders.variants import checkpoint_of
from cdlm_lab.metrics.counts import precision_and_recall
from cdlm_lab.parameters import ParameterError, settings
from cdlm_lab.runs import runs
from cdlm_lab.runs.evaluation import Measure, Planned
from cdlm_lab.runs.identity import Inputs
from cdlm_lab.runs.items import apart, items_of, read_frame
from cdlm_lab.runs.own import add_predictions, by_item
from cdlm_lab.runs.runs import Scores, SystemRun, Training, once, predict, report, train, train_small
from cdlm_lab.tasks.matching import systems as matching
from cdlm_lab.tasks.matching.examples import shortened
from cdlm_lab.tasks.matching.systems import (
    SYSTEMS,
    CosineThreshold,
    Matcher,
    MatchPredictions,
    MatchSystem,
)
from cdlm_lab.training.config import TrainingConfig, Workers
from cdlm_lab.training.fine_tuning import TrainingJob, config_of_passes, in_training_order
from cdlm_lab.training.processes import processes_of

__all__ = ["Settings", "add_predictions", "evaluate", "predict", "prepare", "report", "train", "train_small"]

STORYWORLD = "storyworld"
SPLITS = ("train", "dev", "test")
DRAW = 0  # seed of splits, unrelated pairs and drawn training pairs
# Control: test without the first documents. What is right there was not read across documents.
ONE_DOCUMENT = "test_one_document"
NOTHING = PairDocument(id="nothing", sentences=(".",))
_OF_VECTORS = ("vectors", "average")  # `MatchSystem.encoder` of those that read frozen encodings
Pairs = Mapping[str, tuple[DocumentPair, ...]]  # by split


@settings
class Settings(matching.MatcherSettings):
    """The parameters of notebook 04, whose first cell says what each is."""

    run_folder: str = "runs/document_matching"
    trained: str = ""  # a run whose models are opened; "" = they are trained
    seeds: int = Field(default=1, ge=1)
    # `storyworld`; the folder of SciSumm; a folder of `documents.jsonl` and `links.jsonl`; one's own pairs,
    # as the notebooks' README shows them; or a folder of
    # `train.csv`, `dev.csv` and `test.csv` as the benchmark has them (and `test_positions.csv`, as of PAN,
    # where there are such files).
    corpus: str = STORYWORLD
    train_stories: int = Field(default=150, ge=2)
    held_out_stories: int = Field(default=40, ge=2)
    train_pairs: int = Field(default=0, ge=0, description="0 means all")
    # In storyworld, `similar` reports are of two events of a kind, `recurring` ones of two with the same
    # people and places, `contradicting` ones of one event, with names and numbers swapped. `auto` = recurring
    # for storyworld, else random: of the cited documents.
    unrelated: Unrelated | Literal["auto"] = "auto"
    negatives_per_positive: int = Field(default=1, ge=1)
    # Length of the passage around the citation, which represents the citing paper, and of the start of the
    # cited one; 0 = whole papers, and also links whose citing sentence is unknown.
    passage_sentences: int = Field(default=10, ge=0, description="0 means all")
    # Of each training document a random number of sentences is read, at least this.
    fewest_sentences: int = Field(default=0, ge=0, description="0 means that documents stay whole")
    # epochs, batch_size, learning_rate: for the hierarchical systems. encoder_epochs, ...: for the systems
    # whose encoder is trained: Longformers and fine-tuned BERT-HAN.
    epochs: int = Field(default=6, ge=1)
    batch_size: int = 16
    learning_rate: float = 0.002
    encoder_epochs: int = Field(default=1, ge=1)
    encoder_batch_size: int = 8
    encoder_micro_batch_size: int = 8
    encoder_learning_rate: float = 0.0005
    warmup_share: float = Field(default=0.0, ge=0, le=0.5)
    parallel: str = ""  # for systems whose encoder is trained
    workers: Workers = "auto"  # for the same systems; the inputs of the others exist already

    def __post_init__(self) -> None:
        super().__post_init__()
        check_lengths(self.max_length, self.window)
        processes_of(self.parallel)
        if self.corpus != STORYWORLD and self.drawn != "random":
            raise ParameterError(f"unrelated is {self.unrelated!r}, which storyworld alone has; write random")

    @property
    def drawn(self) -> Unrelated:
        """Which kind of unrelated pairs is sampled."""
        if self.unrelated != "auto":
            return self.unrelated
        return "recurring" if self.corpus == STORYWORLD else "random"

    def config(self, system: MatchSystem, *, seed: int, pairs: int) -> TrainingConfig:
        """The training config of a system for `pairs` pairs. Raises ParameterError for impossible values."""
        long = system.trains_encoder
        config = config_of_passes(
            items=pairs,
            epochs=self.encoder_epochs if long else self.epochs,
            batch_size=self.encoder_batch_size if long else self.batch_size,
            micro_batch_size=self.encoder_micro_batch_size if long else self.batch_size,
            learning_rate=self.encoder_learning_rate if long else self.learning_rate,
            parallel=self.parallel if long else "",
            workers=self.workers if long else 0,
            precision=self.precision,
            seed=seed,
        )
        return replace(config, warmup_steps=int(self.warmup_share * config.steps))


# ---- pairs of documents ----

SHARES = {"train": 0.6, "dev": 0.15, "test": 0.25}  # fractions of the links
SAME_TEXT = "document with the text of another one, which counts as it"


def read_pairs(given: Settings) -> tuple[Pairs, PassedOver]:
    """Pairs of train, dev and test, and what could not be used.

    No document is in two splits, except in the benchmark's CSV files, which were split by pairs:
    `shared_documents` measures that overlap. A corpus is a collection with links, or pairs.
    """
    folder, lost, by_pairs = Path(given.corpus), PassedOver(), False
    if given.corpus == STORYWORLD:
        stories = dict.fromkeys(SPLITS, given.held_out_stories) | {"train": given.train_stories}
        form = {"unrelated": given.drawn}
        pairs = {split: tuple(read_storyworld_pairs(split, n, **form)) for split, n in stories.items()}
    elif links_of.collection_rows(folder) or format_of("collection", folder):
        some = read_records("collection", folder, "", passed_over=lost)
        pairs = linked_pairs(*links_of.collected(some), given, lost)
    else:
        by_pairs = format_of("pairs", folder) == "benchmark"
        pairs = {split: tuple(read_records("pairs", folder, split)) for split in SPLITS}
    for alone in [{split: of_split} for split, of_split in pairs.items()] if by_pairs else [pairs]:
        splits.check_splits(alone)
    return pairs | {"train": runs.drawn(pairs["train"], given.train_pairs, seed=DRAW)}, lost


def linked_pairs(
    documents: Mapping[str, PairDocument], links: Sequence[DocumentLink], given: Settings, lost: PassedOver
) -> Pairs:
    """Pairs by split; documents whose text repeats another document's are counted in `lost`.

    Links are split first, then unrelated pairs sampled within each split. Documents of one text, or of one
    opening where only that is read, are in the same split, and never count as unrelated to what one of them
    is linked with. The cluster of a pair is its first document, in whole.
    """
    used = [link for link in links if link.in_first or not given.passage_sentences]
    twin_of = _read_alike(documents, used, opening=given.passage_sentences)
    form = {"shares": SHARES, "seed": DRAW, "drop_crossing": True}
    split = splits.split_without_leaks(used, **form, twin_of=twin_of)
    known = [*links, *_links_of_twins(links, twin_of)]
    pairs = {
        name: tuple(_pairs_of(documents, split["validation" if name == "dev" else name], known, given))
        for name in SPLITS
    }
    for twin, first in twin_of.items():
        lost.add(SAME_TEXT, f"{twin} = {first}")
    return pairs


def _read_alike(
    documents: Mapping[str, PairDocument], links: Sequence[DocumentLink], *, opening: int
) -> dict[str, str]:
    """Document -> the first one with the same text or, if cited, with the same sentences that are read."""
    whole = splits.twins(documents.values())
    cited = dict.fromkeys(whole.get(link.second, link.second) for link in links)
    starts = splits.twins((documents[name] for name in cited), sentences=opening)
    owner = {name: starts.get(of, of) for name in documents for of in (whole.get(name, name),)}
    return {name: of for name, of in owner.items() if name != of}


def _links_of_twins(links: Sequence[DocumentLink], twin_of: Mapping[str, str]) -> Iterator[DocumentLink]:
    """Links between duplicates, and between all documents that have the texts of two linked ones."""
    of_text: defaultdict[str, list[str]] = defaultdict(list)
    for twin, first in twin_of.items():
        of_text[first] = [*(of_text[first] or [first]), twin]
    same = [(first, second) for names in of_text.values() for first, second in combinations(names, 2)]
    for link in links:
        texts = [twin_of.get(document, document) for document in link.documents]
        if any(text in of_text for text in texts):
            same += product(*(of_text.get(text, [text]) for text in texts))
    for first, second in dict.fromkeys(same):
        if first != second:
            yield DocumentLink(first=first, second=second, source="the same text")


def _pairs_of(
    documents: Mapping[str, PairDocument],
    links: Sequence[DocumentLink],
    known: Sequence[DocumentLink],
    given: Settings,
) -> Iterator[DocumentPair]:
    """The pairs from the links of one split; `known`: the links of all splits."""
    whole: Mapping[str, str] = {}
    if length := given.passage_sentences:
        form = {"length": length, "opening": length, "seed": DRAW}
        passages = links_of.citing_passages(documents, links, **form, known=known)
        documents, links, known = passages.documents, passages.links, passages.known
        whole = passages.paper_of
    form = {"negatives_per_positive": given.negatives_per_positive, "seed": DRAW, "known": known}
    for pair in links_of.pairs_from_links(documents, links, **form):
        yield replace(pair, cluster=whole.get(pair.cluster, pair.cluster))


def shared_documents(pairs: Pairs) -> dict[str, float]:
    """The fraction of dev and test pairs in which a document also occurs in train."""
    seen = {one.sentences for pair in pairs["train"] for one in (pair.first, pair.second)}
    return {
        split: fmean(bool(seen & {pair.first.sentences, pair.second.sentences}) for pair in pairs[split])
        for split in ("dev", "test")
    }


# ---- the run ----

Predictions = Mapping[tuple[str, int], Mapping[str, MatchPredictions]]  # (system, seed) -> split


@dataclass(frozen=True, kw_only=True)
class MatchingRun(SystemRun):
    """A run of notebook 04: its pairs, and how its systems are trained and predict."""

    NAME: ClassVar[str] = "document matching"
    SHAPES: ClassVar[tuple[str, ...]] = (
        *("sentence_encoder", "word_vectors", "hidden_size"),
        *("most_sentences", "most_words", "max_length", "window"),
    )
    UNIT: ClassVar[str] = "pairs"
    MEASURES: ClassVar[tuple[Measure, ...]] = (
        Measure("accuracy"),
        Measure("f1", "f1", of=("precision", "recall"), counts="accuracy"),
    )

    settings: Settings
    pairs: Pairs
    lost: PassedOver = field(default_factory=PassedOver)  # what of the corpus could not be used

    @classmethod
    def read(cls, given: Settings) -> MatchingRun:
        """Check that every system has what it needs, and read the pairs."""
        for system in given.chosen:
            if system.encoder == "longformer" and not given.trained:
                checkpoint_of(given.encoders, system.name)
            given.config(system, seed=0, pairs=1)
        pairs, lost = read_pairs(given)
        for line in lost.lines():
            print(f"{given.corpus}: {line}")
        alone = (replace(pair, first=NOTHING, aligned=None if pair.related else ()) for pair in pairs["test"])
        return cls(settings=given, pairs={**pairs, ONE_DOCUMENT: tuple(alone)}, lost=lost)

    def records(self, split: str) -> Sequence[DocumentPair]:
        """The pairs of a split."""
        return self.pairs[split]

    @property
    def data(self) -> dict[str, Any]:
        """Facts about the pairs, stored in the report."""
        return {
            "corpus": self.settings.corpus,
            "precision": precision_in_words(self.settings.precision),
            "pairs": {split: len(pairs) for split, pairs in self.pairs.items()},
            "clusters": {split: len({pair.cluster for pair in pairs}) for split, pairs in self.pairs.items()},
            "shared_documents": shared_documents(self.pairs),
            "lost": self.lost.lines(),
        }

    @property
    def inputs(self) -> Inputs:
        """Those of every run, and word vectors."""
        inputs, words = super().inputs, self.settings.word_vectors
        if not words or self.settings.trained or all(one.encoder != "gru" for one in self.systems):
            return inputs
        if Path(words).is_file():
            return replace(inputs, data=[*inputs.data, words])
        return replace(inputs, models=[*inputs.models, words])

    def reads(self, system: MatchSystem) -> str:
        """The encoder of sentences, if the system reads its vectors."""
        frozen = system.encoder in (*_OF_VECTORS, "means") and not system.finetuned
        return self.settings.sentence_encoder if frozen else ""

    def begins_with(self, training: Training) -> str:
        """The encoder that is trained along, if any."""
        system = training.system
        if system.encoder == "longformer":
            return checkpoint_of(self.settings.encoders, system.name)
        return self.settings.sentence_encoder if system.finetuned else ""

    def check(self) -> None:
        """Raise an error if a model is not there or does not fit."""
        super().check()
        matchers, trained = replace(self.matchers, cache=None), bool(self.settings.trained)
        _ = self.frozen and matchers.encodings
        for training in self.trainings:
            system, folder = training.system, self.model_folder(training) if trained else None
            if system.is_model and not training.seed and (trained or system.encoder not in _OF_VECTORS):
                matchers.make(system, seed=0, trained=folder)

    def sets(self, training: Training) -> tuple[str, ...]:
        """Dev, test, and test with only one document of each pair."""
        return "dev", "test", ONE_DOCUMENT

    @cached_property
    def matchers(self) -> matching.Matchers:
        """The builder of its matchers."""
        kept = self.folder if self.settings.run_folder else None
        train, dev, test = (tuple(self.pairs.get(split, ())) for split in SPLITS)
        form = {"settings": self.settings, "cache": kept}
        return matching.Matchers(**form, training=train, dev=dev, compared=dev + test)

    def job(self, training: Training, *, trial: bool = False) -> TrainingJob:
        """A training job for a new matcher on the training pairs; `trial`: only on the first batch."""
        system, pairs = training.system, self.pairs["train"]
        if fewest := self.settings.fewest_sentences:
            pairs = tuple(shortened(pairs, fewest=fewest, seed=training.seed))
        config = self.settings.config(system, seed=training.seed, pairs=len(pairs))
        sample = config.micro_batch_size if trial else matching.STANDARD_PAIRS
        matcher = self.matchers.make(system, seed=training.seed, sample=sample)
        chosen = pairs[: config.micro_batch_size] if trial else list(in_training_order(pairs, config))
        return TrainingJob(
            model=matcher.model,
            tokenizer=matcher.tokenizer,
            train_examples=matcher.examples(chosen),
            validation_examples=[] if trial else matcher.examples(self.pairs["dev"]),
            collate=matcher.collate,
            config=config,
        )

    def trial(self, training: Training) -> TrainingJob:
        """A job with only the first batch, so that frozen BERT encodes no other sentences."""
        return self.job(training, trial=True)

    def parallel(self, training: Training) -> str:
        """The processes that train; only this one if the encoder is frozen, as the rest trains fast."""
        return self.settings.parallel if training.system.trains_encoder else ""

    def load(self, training: Training) -> Matcher | CosineThreshold:
        """The trained matcher, or the fitted threshold."""
        if not training.system.is_model:
            return self.matchers.threshold(training.system)
        return self.matchers.make(training.system, seed=0, trained=self.model_folder(training))

    def predict_set(self, loaded: Matcher | CosineThreshold, name: str, bar: str) -> MatchPredictions:
        """Predictions for the pairs of a split."""
        return self.predict_pairs(loaded, self.pairs[name], name=bar)

    def predict_pairs(
        self, loaded: Matcher | CosineThreshold, pairs: Sequence[DocumentPair], *, name: str | None = None
    ) -> MatchPredictions:
        """Predictions for any pairs; `name`: text beside a progress bar, which only slow systems show."""
        if isinstance(loaded, CosineThreshold):
            return loaded.predict(pairs)
        config = self.settings.config(loaded.system, seed=0, pairs=len(pairs))
        form = {"batch_size": config.micro_batch_size, "precision": config.precision}
        bar = name if loaded.system.trains_encoder else None
        return matching.predict_pairs(loaded, pairs, **form, name=bar)

    def read_predictions(self, file: Path, name: str) -> MatchPredictions:
        """Read the predictions for the pairs of a split."""
        return MatchPredictions.of_frame(read_frame(file))

    @property
    def planned(self) -> list[Planned]:
        """Each system on test against the system it builds on."""
        against = [(one.name, _extended(one, self.systems)) for one in self.systems]
        measures = [measure.name for measure in self.MEASURES]
        return [Planned(a=a, b=b, measure=measure) for measure in measures for a, b in against if b]

    def items(self, predictions: Predictions) -> pd.DataFrame:
        """Of each pair, whether the decision is right, and what precision and recall count."""
        tables = []
        for (system, seed), of_split in predictions.items():
            for split, one in of_split.items():
                pairs, found = self.pairs[split], one.decisions
                gold = np.array([pair.related for pair in pairs])
                values = {"accuracy": gold == found}
                values |= precision_and_recall(np.stack([gold & found, found, gold], axis=1))
                form = {"system": system, "seed": seed, "split": split, "items": [one.id for one in pairs]}
                tables.append(items_of(values, **form, clusters=[pair.cluster for pair in pairs]))
        return pd.concat(tables)

    def own_predictions(
        self, file: Path, lines: Sequence[tuple[int, Mapping[str, Any]]], split: str
    ) -> MatchPredictions:
        """Lines {"item": id of a pair, "related": true}, or {"item": ..., "score": 0.7}, where above 0.5
        means related."""
        names = apart(pair.id for pair in self.pairs[split])
        field = "score" if any("score" in values for _, values in lines) else "related"
        given = by_item(file, lines, names, field=field)
        for line, value in given.values():
            if not isinstance(value, (int, float) if field == "score" else bool):
                hint = "write a number" if field == "score" else "write true or false"
                raise DataError(file, f"is {value!r}", hint, line=line, field=field)
        scores = np.array([value for _, value in given.values()], dtype=np.float64)
        return MatchPredictions(probabilities=scores, alignments={})


def prepare(given: Settings) -> MatchingRun:
    """Claim the run folder, read the corpus, and check that every system has what it needs."""
    return MatchingRun.open(given)


# ---- scores ----


@once
def evaluate(run: MatchingRun, predictions: Predictions) -> Scores:
    """Accuracy and F1 of all systems, and on test the comparison of each with the system it builds on."""
    return Scores.of(run.evaluated(predictions))


def _extended(system: MatchSystem, present: Sequence[MatchSystem]) -> str:
    """The nearest system of this run that `system` extends, such as HAN for HAN with deep attention where
    shallow attention was not run; "" if there is none."""
    against = system.against
    while against and SYSTEMS[against] not in present:
        against = SYSTEMS[against].against
    return against
