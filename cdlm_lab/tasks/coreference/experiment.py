"""Coreference from a corpus to clusters of mentions: settings, training, pair scores, the threshold.

A pair scorer is trained on the train topics; pairs of the dev and test mentions are scored, mentions are
clustered by average linkage, and the threshold is the one with the best CoNLL F1 on dev. Test topics are
evaluated once, with that threshold.

Choices where the paper is silent, all but the last as in the released code: AdamW without weight decay
(beta_2 0.999, epsilon 1e-8); a learning rate that falls linearly without warm-up; the epoch with the best
CoNLL F1 on dev is kept (`select_by="loss"`: lowest loss on a sample of dev pairs, which is cheaper);
training pairs are made within gold topics, as those of dev; test is searched within predicted topics where
they are known; singletons count. Negatives are sampled, as the paper says; the released code takes all.

The scorer `one-reading` is in no paper: it reads two documents once for all pairs of their mentions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import pandas as pd
from pydantic import Field
from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.clusters import STORYWORLD
from cdlm_lab.data.convert.conll import Chains
from cdlm_lab.data.reading import splits_of
from cdlm_lab.data.records import Kind, PassedOver, Topic, gold_clusters, mentions_of
from cdlm_lab.encoders.encoder import AttentionDropout
from cdlm_lab.encoders.model_folder import Adapter
from cdlm_lab.encoders.precision import Precision, precision_in_words
from cdlm_lab.examples.collate import Collate, like_lengths_together
from cdlm_lab.parameters import ParameterError, names_in, parameters_of, settings
from cdlm_lab.progress import ALONE, Share
from cdlm_lab.runs import evaluation
from cdlm_lab.runs.evaluation import Measure, Planned
from cdlm_lab.runs.identity import Inputs
from cdlm_lab.runs.items import UNTRAINED
from cdlm_lab.runs.made import encoder_facts
from cdlm_lab.runs.own import by_item
from cdlm_lab.runs.report import write_json
from cdlm_lab.runs.runs import ModelRun, Scores, once, report, train_small
from cdlm_lab.runs.runs import train_model as train
from cdlm_lab.runs.scores import Score
from cdlm_lab.tasks.coreference import clustering
from cdlm_lab.tasks.coreference import examples as mention_pairs
from cdlm_lab.tasks.coreference.corpus import CoreferenceSplit, read_coreference_split, with_found_mentions
from cdlm_lab.tasks.coreference.evaluation import (
    BASELINES,
    baseline_responses,
    documents_of,
    items_of_clusters,
    measures,
    read_clusters,
    read_pooled,
    told_apart,
    write_for_scorers,
)
from cdlm_lab.tasks.coreference.examples import MentionGroup, MentionPairExamples, pairs_within
from cdlm_lab.tasks.coreference.model import OneReadingScorer, PairScorer, ScorerName, load_pair_scorer
from cdlm_lab.tasks.coreference.readings import ReadingExamples
from cdlm_lab.tasks.coreference.scoring import (
    Examples,
    GroupPrediction,
    Predictions,
    Scorer,
    key_of,
    pair_examples,
    predict_groups,
    response_at,
)
from cdlm_lab.tasks.coreference.thresholds import choose_threshold, of_trained, threshold_for
from cdlm_lab.training.config import TrainingConfig, Workers
from cdlm_lab.training.fine_tuning import TrainingJob, config_of_passes
from cdlm_lab.training.trained import trained_model
from cdlm_lab.training.validation import Judge

__all__ = ["Settings", "evaluate", "predict", "prepare", "report", "train", "train_small"]

SPLITS = get_args(CoreferenceSplit)
SYSTEM = "this run"  # its name in tables
CONLL_F1 = "conll/f1"
# Dev pairs for the validation loss after each epoch; also at most a quarter of the number of training pairs.
DEV_PAIRS, LEAST_DEV_PAIRS = 2_000, 64
HEAD_RATE = 10.0  # of the MLP of `one-reading`, which is new, times the rate of its encoder


@settings
class Settings:
    """The parameters of notebook 03, whose comments say what they mean."""

    run_folder: str = "runs/coreference"
    trained: str = ""  # a run whose scorer is opened; "" = one is trained
    corpus: str = "storyworld"
    kind: Kind = "event"
    model: str = "storyworld/cdlm"
    scorer: ScorerName = "pairwise"
    context: Literal["documents", "sentences"] = "documents"
    chains: Chains = "auto"
    topic_level: Literal["auto", "topic", "subtopic", "predicted"] = "auto"
    predicted_topics: str = ""
    dev_topics: str = ""
    test_topics: str = ""
    train_stories: int = 60
    held_out_stories: int = 24
    max_length: int = 256
    window: int = 32
    reset_globals: bool = False
    attention: str = "auto"
    attention_dropout: AttentionDropout = 0.0
    adapter: Adapter = ""
    epochs: int = Field(default=1, ge=1)
    negatives_per_positive: float = 4.0
    train_pairs: int = Field(default=2000, ge=0, description="0 means all")
    batch_size: int = 8
    micro_batch_size: int = Field(default=8, ge=1)
    learning_rate: float = 0.0005
    warmup_steps: int = 0
    precision: Precision = "auto"
    select_by: Literal["conll", "loss"] = "conll"
    parallel: str = ""
    workers: Workers = "auto"
    hide_mentions: float = Field(default=0.0, ge=0, le=1)
    threshold_by: Literal["dev", "trained", "unlabelled"] = "dev"
    singletons: bool = True
    compare_with: str = ""
    mentions_run: str = ""
    pooled_with: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.adapter and self.reset_globals:
            raise ParameterError("adapter keeps the encoder as it is, reset_globals does not; choose one")
        if self.predicted_topics and self.topic_level not in ("auto", "predicted"):
            raise ParameterError(
                f"predicted_topics is given but topic_level is {self.topic_level!r}; set it to 'predicted'"
            )
        if self.threshold_by != "dev" and not self.trained:
            raise ParameterError(
                f"threshold_by is {self.threshold_by!r}, which needs a run's threshold, but trained is ''; "
                "name a run folder there, or write 'dev'"
            )


# ---- before anything is trained ----


@dataclass(frozen=True, kw_only=True)
class CoreferenceRun(ModelRun, Scorer):
    """A coreference run: the corpus, the scorer and its pairs; mappings are by split."""

    NAME: ClassVar[str] = "coreference"
    SHAPES: ClassVar[tuple[str, ...]] = ("kind", "scorer", "context", "max_length", "window")
    MEASURES: ClassVar[tuple[Measure, ...]] = measures()

    settings: Settings
    topics: Mapping[str, list[Topic]]
    groups: Mapping[str, list[MentionGroup]]  # mentions among which coreference is searched
    level: Mapping[str, str]  # how the groups were made, in words
    passed_over: Mapping[str, PassedOver]  # parts of the corpus that could not be used
    examples: Mapping[str, Examples]  # every pair of each group
    train_examples: Examples  # of all epochs; those of a batch have similar lengths
    dev_examples: Examples  # for the validation loss
    config: TrainingConfig

    def records(self, split: str) -> list[Topic]:
        """The topics of a split."""
        return self.topics[split]

    @classmethod
    def read(cls, settings: Settings) -> CoreferenceRun:
        """Read the corpus, load the encoder, and sample the pairs."""
        loaded = load_scorer(settings)
        tokenizer = loaded.tokenizer
        passed_over = {split: PassedOver() for split in SPLITS}
        topics = {split: read_topics(settings, split, counted) for split, counted in passed_over.items()}
        for split, counted in passed_over.items():
            for line in counted.lines():
                print(f"{split}: {line}")
        found = dict(topics)
        for split in ("dev", "test") if settings.mentions_run else ():
            form = {"run": settings.mentions_run, "kind": settings.kind}
            found[split] = with_found_mentions(topics[split], split=split, **form)
        searched = {split: searched_together(settings, found[split], split) for split in SPLITS}
        groups = {split: of_split for split, (_, of_split) in searched.items()}
        examples = {
            split: pair_examples(settings, tokenizer, found[split], groups[split]) for split in SPLITS
        }
        train_examples, dev_examples = _drawn(settings, examples, groups)
        passes = parameters_of(settings, "epochs", "batch_size", "micro_batch_size", "learning_rate")
        passes |= parameters_of(settings, "warmup_steps", "precision", "parallel", "workers")
        passes |= parameters_of(settings, "seed", "adapter")
        if settings.scorer == "one-reading" and not settings.adapter:  # which itself takes a higher rate
            passes["learning_rate_factors"] = (("scorer", HEAD_RATE),)
        config = config_of_passes(items=len(train_examples) // settings.epochs, **passes)
        return cls(
            **vars(loaded),
            topics=topics,
            groups=groups,
            level={split: level for split, (level, _) in searched.items()},
            passed_over=passed_over,
            examples=examples,
            train_examples=train_examples,
            dev_examples=dev_examples,
            config=config,
        )

    def check(self) -> None:
        """Raise ParameterError if a run to compare with is not finished or has other mentions."""
        if self.settings.threshold_by != "dev":
            of_trained(self.settings)
        if pooled := self.settings.pooled_with:
            read_pooled(Path(pooled), self.settings.kind)
        for split in ("dev", "test"):
            places = {mention.place for group in self.groups[split] for mention in group.mentions}
            for other in names_in(self.settings.compare_with):
                read_clusters(Path(other), split, among=places)

    @property
    def encoders(self) -> dict[str, Any]:
        """What made the model that the scorer begins with."""
        given = self.settings
        trained = trained_model(given.trained) if given.trained else ""
        return {SYSTEM: encoder_facts(given.model, trained=trained)}

    @property
    def inputs(self) -> Inputs:
        """The model, what `corpora_of` names, found mentions, and clusters to compare with."""
        given, splits = self.settings, ("dev", "test")
        others = product(names_in(given.compare_with), splits)
        clusters = [f"{run}/clusters-{split}.json" for run, split in others]
        clusters += [f"{given.pooled_with}/clusters-test.json"] * bool(given.pooled_with)
        found = [f"{given.mentions_run}/tags-{one}.jsonl" for one in splits if given.mentions_run]
        return replace(super().inputs, data=[*corpora_of(given), *found], compared=clusters)

    @staticmethod
    def load(settings: Settings) -> tuple[PairScorer | OneReadingScorer, PreTrainedTokenizerBase]:
        """The scorer and its tokenizer."""
        scorer = load_scorer(settings)
        return scorer.model, scorer.tokenizer

    def small_job(self) -> TrainingJob:
        """As of every run; ParameterError if the corpus has nothing to train on."""
        if not len(self.train_examples):
            raise ParameterError(f"{self.settings.corpus} has no split to train on")
        return super().small_job()

    def job(self) -> TrainingJob:
        """The training job: the scorer and its examples."""
        return TrainingJob(
            model=self.model,
            tokenizer=self.tokenizer,
            train_examples=self.train_examples,
            validation_examples=self.dev_examples,
            collate=Collate(pad_token_id=self.tokenizer.pad_token_id, window=self.settings.window),
            config=self.config,
            judge=dev_judge(self),
        )

    @property
    def planned(self) -> list[Planned]:
        """CoNLL F1 of this run against each baseline, each a family of its own."""
        return [_against(name, self.settings.kind) for name in BASELINES]

    def items(self, predictions: Mapping[tuple[str, int], Mapping[str, Any]]) -> pd.DataFrame:
        """What the measures count in each topic, from the clusters of each system and split."""
        splits = dict.fromkeys(split for of_split in predictions.values() for split in of_split)
        tables = []
        for split in splits:
            topics, kind = self.topics[split], self.settings.kind
            tables.append(
                items_of_clusters(
                    key_of(topics, kind),
                    {key: of_split[split] for key, of_split in predictions.items()},
                    groups=self.groups[split],
                    topic_of={name: document.topic for name, document in documents_of(topics).items()},
                    singletons=self.settings.singletons,
                    mentions=bool(self.settings.mentions_run),
                    split=split,
                    group=kind,
                )
            )
        return pd.concat(tables)

    def items_in_other_ways(self, response: Sequence[Sequence[tuple]]) -> pd.DataFrame:
        """What the measures count in the clusters of test also without singletons (or with them), and if a
        run on the other kind is named, in those of both kinds together."""
        given, key = self.settings, key_of(self.topics["test"], self.settings.kind)
        sides = {given.kind: (key, response)}
        if given.pooled_with:
            theirs = read_pooled(Path(given.pooled_with), given.kind)
            mine = [[[(*place, given.kind) for place in one] for one in side] for side in (key, response)]
            sides["all"] = tuple([*a, *b] for a, b in zip(mine, theirs, strict=True))
        tables = [
            items_of_clusters(
                both[0],
                {(SYSTEM, UNTRAINED): both[1]},
                groups=self.groups["test"],
                topic_of={name: one.topic for name, one in documents_of(self.topics["test"]).items()},
                singletons=singletons,
                mentions=bool(given.mentions_run),
                split="test",
                group=name + ("" if singletons else ", without singletons"),
            )
            for name, both in sides.items()
            for singletons in (True, False)
            if (name, singletons) != (given.kind, given.singletons)
        ]
        return pd.concat(tables)

    def own_predictions(
        self, file: Path, lines: Sequence[tuple[int, Mapping[str, Any]]], split: str
    ) -> list[list[tuple]]:
        """Lines {"item": id of a mention, "cluster": "any name"}; mentions of one name corefer. Where ids are
        not unique in the split, an item is a document and an id, such as "36_1ecb/37"."""
        mentions = [mention for group in self.groups[split] for mention in group.mentions]
        names = [mention.id for mention in mentions]
        if len({*names}) < len(names):
            names = [f"{mention.document}/{mention.id}" for mention in mentions]
        given = by_item(file, lines, names, field="cluster")
        return [
            [mention.place for mention in cluster]
            for cluster in clustering.clusters_of(mentions, [str(name) for _, name in given.values()])
        ]

    @property
    def notes(self) -> dict[str, str]:
        """Within what the chains of a split were read, in words, by split; "" if the corpus says it."""
        return {split: "; ".join(counted.notes) for split, counted in self.passed_over.items()}

    @property
    def data(self) -> dict[str, Any]:
        """Facts about the corpus, stored in the report."""
        settings = self.settings
        return {
            "corpus": settings.corpus,
            "precision": precision_in_words(settings.precision),
            "singletons": settings.singletons,
            "topic_level": dict(self.level),
            "chains": {split: notes for split, notes in self.notes.items() if notes},
            "passed_over": {split: counted.lines() for split, counted in self.passed_over.items()},
            "merged": {split: merged_in_gold(groups) for split, groups in self.groups.items()},
            "pairs_scored": {split: len(pairs_within(self.groups[split])) for split in ("dev", "test")},
            "topics": {split: [topic.id for topic in topics] for split, topics in self.topics.items()},
        }


def _against(name: str, kind: str) -> Planned:
    form = {"measure": CONLL_F1, "group": kind, "family": f"{CONLL_F1}/{name}"}
    return Planned(a=SYSTEM, b=name, beside=False, **form)


def prepare(settings: Settings) -> CoreferenceRun:
    """Claim the run folder, read the corpus, load the encoder, sample the pairs; prints what of the corpus
    could not be used. Raises ValueError with a one-line message if anything does not fit."""
    return CoreferenceRun.open(settings)


def corpora_of(settings: Settings) -> list[str]:
    """The corpus and the file of predicted topics, if one is named."""
    return [one for one in (settings.corpus, settings.predicted_topics) if one]


def load_scorer(settings: Settings) -> Scorer:
    """The scorer that `trained` names, or a new one on the encoder."""
    names = ("scorer", "reset_globals", "max_length", "window", "attention", "seed", "attention_dropout")
    source = trained_model(settings.trained) if settings.trained else settings.model
    model, tokenizer = load_pair_scorer(source, **parameters_of(settings, *names))
    return Scorer(settings=settings, model=model, tokenizer=tokenizer)


def lacks_train(settings: Settings) -> bool:
    """Whether the corpus is divided and has no split to train on, as ECB+META."""
    return settings.corpus != STORYWORLD and "train" not in splits_of("coreference", settings.corpus)


def read_topics(
    settings: Settings, split: CoreferenceSplit, passed_over: PassedOver | None = None
) -> list[Topic]:
    """All topics of train, none if a trained scorer is opened and the corpus lacks them; of dev and test only
    those that the settings name, if any. `passed_over` counts what cannot be used."""
    if split == "train" and settings.trained and lacks_train(settings):
        return []
    return read_coreference_split(
        settings.corpus,
        split,
        stories=settings.train_stories if split == "train" else settings.held_out_stories,
        kind=settings.kind,
        chosen={split: names_in(getattr(settings, f"{split}_topics")) for split in ("dev", "test")},
        passed_over=PassedOver() if passed_over is None else passed_over,
        chains=settings.chains,
    )


def merged_in_gold(groups: Sequence[MentionGroup]) -> float:
    """The share of the mentions that join the gold cluster of an earlier one of their group."""
    mentions = sum(len(group.mentions) for group in groups)
    clusters = sum(len({mention.cluster for mention in group.mentions}) for group in groups)
    return (mentions - clusters) / max(1, mentions)


def searched_together(
    settings: Settings, topics: Sequence[Topic], split: str
) -> tuple[str, list[MentionGroup]]:
    """How mentions are grouped, in words, and the groups within which they may corefer. Raises ParameterError
    if there are no mentions of the kind. Raises DataError if a file of predicted topics lists only some of
    the documents that have mentions."""
    if not topics:
        return "the corpus has none", []
    documents = {mention.document for mention in mentions_of(topics, kind=settings.kind)}
    if not documents:
        raise ParameterError(f"{settings.corpus}: no {settings.kind} mentions in {len(topics)} topics")
    level = settings.topic_level if split != "train" else "topic"
    files: list[Path] = []
    if level in ("auto", "predicted"):
        named = settings.predicted_topics
        files = [Path(named)] if named else sorted(Path(settings.corpus).glob("predicted_topics*.json"))
    listing = (file for file in files if documents & clustering.read_predicted_topics(file).keys())
    described = level = "topic" if level == "auto" else level
    predicted = None
    if file := next(listing, None):
        predicted = clustering.read_predicted_topics(file, documents=documents)
        described, level = f"predicted topics of {file.name}", "predicted"
    elif files:
        described, level = f"topic, as {files[0].name} lists none of these documents", "topic"
    elif level == "predicted":
        raise ParameterError(
            f"topic_level is 'predicted', but {settings.corpus} has no predicted_topics*.json; name a file "
            "as predicted_topics, or choose another level"
        )
    return described, mention_pairs.group_mentions(topics, settings.kind, level, predicted)


def _drawn(
    settings: Settings, examples: Mapping[str, Examples], groups: Mapping[str, Sequence[MentionGroup]]
) -> tuple[Examples, Examples]:
    """The training examples of all epochs, and those of dev for the validation loss, both with labels."""
    most, train, dev = settings.train_pairs or None, examples["train"], examples["dev"]
    if isinstance(dev, MentionPairExamples):
        for split in ("dev", "test"):
            _check_room(examples[split], groups[split])
    if not len(train):  # nothing is trained
        return train, train
    if isinstance(train, ReadingExamples):
        form = {"seed": settings.seed, "batch_size": settings.batch_size}
        train = replace(train.drawn(**form, epochs=settings.epochs, most=most), hidden=settings.hide_mentions)
        watched = dev.drawn(seed=settings.seed, batch_size=1, epochs=1, most=_watched(len(train)))
    else:
        train = replace(train, **_drawn_pairs(settings, groups["train"], settings.epochs, most=most))
        train = train.in_order(like_lengths_together(_lengths_of(train), settings.batch_size))
        watched = replace(dev, **_drawn_pairs(settings, groups["dev"], 1, most=_watched(len(train))))
    longest_first = np.argsort(_lengths_of(watched), kind="stable")[::-1]  # needs little padding
    return train, watched.in_order(longest_first)


def _watched(train: int) -> int:
    """How many examples of dev are read for the validation loss after each of the passes over training."""
    return min(DEV_PAIRS, max(LEAST_DEV_PAIRS, train // 4))


def _drawn_pairs(
    settings: Settings, groups: Sequence[MentionGroup], epochs: int, *, most: int | None
) -> dict[str, np.ndarray]:
    """`pairs` and `labels` of all epochs, concatenated; negatives are sampled anew in each epoch."""
    form = parameters_of(settings, "negatives_per_positive", "seed")
    drawn = [mention_pairs.sampled_pairs(groups, **form, epoch=epoch) for epoch in range(epochs)]
    return {
        "pairs": np.concatenate([one.pairs[:most] for one in drawn]),
        "labels": np.concatenate([one.labels[:most] for one in drawn]),
    }


def _lengths_of(examples: Examples) -> list[int]:
    return [examples.length_of(number) for number in range(len(examples))]


def _check_room(examples: MentionPairExamples, groups: Sequence[MentionGroup]) -> None:
    """Raise ValueError, before hours of training, if the two longest mentions of a group do not fit."""
    lengths = [np.ptp(examples.documents[one.document].subwords(one.tokens)) for one in examples.mentions]
    ends = np.cumsum([len(group.mentions) for group in groups])
    numbers = [range(end - len(group.mentions), end) for group, end in zip(groups, ends, strict=True)]
    longest = [sorted(own, key=lengths.__getitem__)[-2:] for own in numbers if len(own) > 1]
    pairs = replace(examples, pairs=np.array(longest, dtype=int).reshape(-1, 2))
    for number in range(len(longest)):
        pairs.size_of(number)


# ---- training ----


def dev_judge(prepared: CoreferenceRun) -> Judge | None:
    """A function from a scorer to its CoNLL F1 on all of dev at the best threshold; None if the checkpoint is
    selected by loss, or there is only one epoch."""
    if prepared.settings.select_by != "conll" or prepared.settings.epochs == 1:
        return None

    def conll_f1(model: PairScorer | OneReadingScorer, share: Share) -> float:
        form = {"name": "dev after this epoch", "share": share}
        predictions = predict_split(replace(prepared, model=model), "dev", None, **form)
        return choose_threshold(prepared, predictions).score

    return conll_f1


# ---- scores of pairs, and the threshold ----


def predict(prepared: CoreferenceRun) -> Predictions:
    """Score every pair of every group of dev and test, and choose the threshold; scores are saved in
    `scores/`, so that a stopped run continues."""
    dev, test = (predict_split(prepared, split, prepared.folder / "scores") for split in ("dev", "test"))
    return Predictions(dev=dev, test=test, choice=threshold_for(prepared, dev, test))


def predict_split(
    prepared: CoreferenceRun, split: str, folder: Path | None, *, name: str = "", share: Share = ALONE
) -> list[GroupPrediction]:
    """The predictions for a split; scores are saved in `folder`."""
    return predict_groups(
        prepared,
        prepared.examples[split],
        prepared.groups[split],
        file=folder and folder / f"{split}.npy",
        name=name or f"scoring {split}",
        share=share,
    )


# ---- scores and the report ----


@once
def evaluate(prepared: CoreferenceRun, predictions: Predictions) -> Scores:
    """Scores of dev and test at the chosen threshold, beside baselines and the runs of `compare_with`; also
    writes the clusters into the run folder.

    Raises ParameterError if a run to compare with has no clusters, or its clusters lack some mentions.
    """
    kind, threshold = prepared.settings.kind, predictions.threshold
    own, baselines = {}, {name: {} for name in BASELINES}
    for split in ("test", "dev"):
        own[split] = write_predicted(prepared, split, getattr(predictions, split), threshold)
        for name, clusters in baseline_responses(prepared.topics[split], prepared.groups[split]).items():
            baselines[name][split] = clusters
    responses = {(name, UNTRAINED): of_split for name, of_split in {SYSTEM: own, **baselines}.items()}
    made = prepared.evaluated(responses)
    rows, comparisons, items = made.rows, made.comparisons, [made.items]
    others = told_apart(names_in(prepared.settings.compare_with), taken={SYSTEM, *BASELINES})
    for folder, name in others.items():
        theirs = {split: read_clusters(Path(folder), split, among=_places(of)) for split, of in own.items()}
        both = prepared.items({(SYSTEM, UNTRAINED): own, (name, UNTRAINED): theirs})
        beside = evaluation.evaluate(both, prepared.MEASURES, [_against(name, kind)])
        rows = rows + [row for row in beside.rows if row.system == name]
        comparisons = beside.comparisons + comparisons
        items.append(beside.items[beside.items["system"] == name])
    if prepared.settings.mentions_run or prepared.settings.pooled_with:
        further = evaluation.evaluate(prepared.items_in_other_ways(own["test"]), prepared.MEASURES, [])
        rows, items = rows + further.rows, [*items, further.items]
    rows = [_shown(row, {test["b"]: test["p_holm"] for test in comparisons}) for row in rows]
    chosen = {"threshold": threshold, "threshold/dev_conll_f1": predictions.choice.score}
    rows += [Score(metric=metric, value=value, group=kind) for metric, value in chosen.items()]
    tables = {
        "comparisons": comparisons,
        "thresholds": [{"threshold": one, "dev_conll_f1": value} for one, value in predictions.choice.tried],
    }
    return Scores(rows=rows, tables=tables, items=pd.concat(items))


def _places(clusters: Sequence[Sequence[tuple]]) -> set[tuple]:
    return {place for one in clusters for place in one}


def _shown(row: Score, p_of: Mapping[str, float]) -> Score:
    """Only CoNLL F1 has an interval; the p of a comparison stands beside the other system."""
    if row.metric != CONLL_F1:
        return replace(row, low=None, high=None, n=None, clusters=None)
    tested = {"p": p_of[row.system], "against": SYSTEM} if row.split == "test" and row.system in p_of else {}
    return replace(row, **tested)


def write_predicted(
    prepared: CoreferenceRun, split: str, groups: Sequence[GroupPrediction], threshold: float
) -> list[list[tuple]]:
    """The predicted clusters, written into the run folder, also for reference scorers beside the key."""
    folder, topics, clusters = prepared.folder, prepared.topics[split], response_at(groups, threshold)
    key, kind = gold_clusters(topics, kind=prepared.settings.kind), prepared.settings.kind
    write_json(
        folder / f"clusters-{split}.json", {"clusters": clusters, "key": key_of(topics, kind), "kind": kind}
    )
    write_for_scorers(folder / f"key-{split}.conll", topics, key)
    response = {
        f"{one.group.id}/{number}": cluster
        for one in groups
        for number, cluster in enumerate(one.clusters(threshold))
    }
    write_for_scorers(folder / f"response-{split}.conll", topics, response)
    return clusters
