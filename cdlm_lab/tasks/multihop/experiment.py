"""Multi-hop questions, which need two documents (CDLM section 3.4 and C.3, Table 5): notebook 06.

Each encoder is trained with each seed; the epoch with the lowest loss on dev is kept. Each trained model
answers the test questions once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from cdlm_lab.data.convert.hotpotqa import write_predictions
from cdlm_lab.data.files import DataError
from cdlm_lab.data.questions import asked_by_its_clue, has_gold
from cdlm_lab.data.reading import read_records
from cdlm_lab.data.records import MultihopQuestion
from cdlm_lab.data.storyworld.task_sets import read_storyworld_questions
from cdlm_lab.encoders.conversion import reset_globals
from cdlm_lab.encoders.encoder import check_lengths
from cdlm_lab.encoders.precision import precision_in_words
from cdlm_lab.encoders.variants import checkpoint_of
from cdlm_lab.parameters import ParameterError, settings
from cdlm_lab.runs import runs
from cdlm_lab.runs.evaluation import Measure, Planned
from cdlm_lab.runs.items import items_of
from cdlm_lab.runs.own import Lines, by_item
from cdlm_lab.runs.report import Report
from cdlm_lab.runs.runs import (
    EpochSettings,
    System,
    SystemRun,
    Training,
    predict,
    report,
    train,
    train_small,
)
from cdlm_lab.tasks.multihop import systems as answering
from cdlm_lab.tasks.multihop.metrics import HOTPOTQA_SCORES
from cdlm_lab.tasks.multihop.model import load_question_answerer
from cdlm_lab.tasks.multihop.systems import (
    Answerer,
    QuestionPredictions,
)
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.fine_tuning import TrainingJob, in_training_order
from cdlm_lab.training.trained import trained_parameters

__all__ = ["Settings", "evaluate", "predict", "prepare", "report", "train", "train_small"]
__all__ += ["trained_alike"]

STORYWORLD = "storyworld"
SPLITS = ("train", "dev", "test")
# Control: test without the documents that hold the clues. What is right there was not read across documents.
ONE_DOCUMENT = "test_one_document"
Questions = Mapping[str, tuple[MultihopQuestion, ...]]  # by split


@settings
class Settings(EpochSettings):
    """The parameters of notebook 06, whose first cell says what each is."""

    run_folder: str = "runs/multihop_qa"
    trained: str = ""  # a run whose models are opened; "" = they are trained
    # `storyworld`, or a folder of `train.json`, `dev.json` and `test.json` in HotpotQA's format or the hub's
    # (`.jsonl` too, and compressed).
    corpus: str = STORYWORLD
    train_stories: int = Field(default=200, ge=2)
    held_out_stories: int = Field(default=40, ge=2)
    passage_sentences: int = 2
    paragraphs: int = Field(default=4, ge=2)
    # Without the document that holds the clue nobody can do better than guess.
    seen: Literal["both documents", "one document"] = "both documents"
    kinds: Literal["all", "bridge", "comparison"] = "all"  # questions of other kinds are left out
    # In training each bridge question is also asked in the words of the sentence that holds its clue: finding
    # a name again is one step, which a small model learns first and then uses in two-step questions.
    clue_questions: bool = False
    train_questions: int = Field(default=0, ge=0, description="0 means all")
    # The paper reports on the official development set, so nothing may be selected on it, and the official
    # test set has no gold: so dev is sampled from train.
    dev_from_train: int = Field(default=0, ge=0)
    systems: str = "local-cdlm"
    # Or a folder with a folder for each, such as `cdlm` or `cdlm/model`; a run of this notebook; a model.
    encoders: str = STORYWORLD
    reset_globals: bool = True
    max_length: int = 512  # longer sequences lose the ends of their paragraphs, which is reported
    window: int = 512
    paragraph_types: int = Field(default=4, ge=0)  # so many paragraphs have their own token type; paper: none
    support: Literal["threshold", "two_paragraphs"] = "threshold"

    def __post_init__(self) -> None:
        if self.dev_from_train and self.corpus == STORYWORLD:
            raise ParameterError("dev_from_train is of a folder: storyworld has stories of its own for dev")
        super().__post_init__()
        check_lengths(self.max_length, self.window)
        _ = self.chosen

    @property
    def chosen(self) -> tuple[System, ...]:
        """The encoders, in the paper's order."""
        return runs.chosen_systems(self.systems, answering.ENCODERS)

    def config(self, *, items: int, seed: int) -> TrainingConfig:
        """The training config. Weight decay and epsilon follow the released code; the paper is silent."""
        config = super().config(items=items, seed=seed)
        return replace(config, weight_decay=0.01, adam_epsilon=1e-6)


# ---- questions ----


def read_questions(given: Settings) -> Questions:
    """Questions of train, dev and test. Supporting facts that name a missing sentence, as a few official ones
    do, become `unknown_supporting`. Raises ParameterError for an unknown kind of corpus, a file without gold
    answers, or a question in two splits."""
    if given.corpus == STORYWORLD:
        stories = dict.fromkeys(SPLITS, given.held_out_stories) | {"train": given.train_stories}
        form = {"sentences": given.passage_sentences, "paragraphs": given.paragraphs}
        form |= {"withheld": given.seen == "one document"}
        read = {split: list(read_storyworld_questions(split, n, **form)) for split, n in stories.items()}
    else:
        read = _of_files(given)
    if given.corpus == STORYWORLD and given.seen == "both documents":
        withheld = form | {"withheld": True}
        read[ONE_DOCUMENT] = list(read_storyworld_questions("test", given.held_out_stories, **withheld))
    if given.kinds != "all":
        read = {split: [one for one in some if one.kind == given.kinds] for split, some in read.items()}
        if empty := [split for split, some in read.items() if not some]:
            raise ParameterError(f"kinds is {given.kinds!r}, of which {given.corpus} has none in {empty[0]}")
    questions = {split: tuple(some) for split, some in read.items()}
    questions["train"] = runs.drawn(questions["train"], given.train_questions, seed=[0, 0])
    if given.clue_questions:
        questions["train"] += tuple(filter(None, map(asked_by_its_clue, questions["train"])))
    return questions


def _of_files(given: Settings) -> dict[str, list[MultihopQuestion]]:
    """Questions by split. `dev_from_train` questions of train, drawn at random, are used as dev and
    not for train; 0 = the dev of the corpus. Raises ParameterError if a question has no gold, or two splits
    share a question."""
    drawn, corpus = given.dev_from_train, given.corpus
    splits = [split for split in SPLITS if split != "dev" or not drawn]
    read = {}
    for split in splits:
        try:
            read[split] = list(read_records("questions", corpus, split))
        except DataError as error:
            if split != "dev" or error.field != "split":
                raise
            raise ParameterError(f"{error}; or take dev from train with dev_from_train") from None
    for question in chain.from_iterable(read.values()):
        if not has_gold(question):
            what = f"question {question.id} has no answer or no supporting facts"
            raise ParameterError(f"{corpus}: {what}, which training and scores need; leave it out")
    if drawn:
        train = read["train"]
        if drawn >= len(train):
            raise ParameterError(f"dev_from_train is {drawn}; train has {len(train):,} questions in all")
        order = np.random.default_rng([0, len(SPLITS)]).permutation(len(train))
        for split, numbers in (("dev", order[:drawn]), ("train", order[drawn:])):
            read[split] = [train[number] for number in sorted(numbers)]
    for one, other in combinations(SPLITS, 2):
        if shared := {question.id for question in read[one]} & {question.id for question in read[other]}:
            raise ParameterError(
                f"corpus is {corpus!r}, where {one} and {other} share {len(shared):,} questions, as "
                f"{min(shared)}: what is learned or chosen on a question cannot be tested on it; take other "
                "questions, or as dev some of train with dev_from_train"
            )
    return {split: read[split] for split in SPLITS}


def cluster_of(question: MultihopQuestion) -> str:
    """The cluster of a question for intervals: its story in storyworld, else the question itself."""
    return runs.story_or_id(question.id, mark="-q")


# ---- the run ----

Predictions = Mapping[tuple[str, int], Mapping[str, QuestionPredictions]]  # (encoder, seed) -> split


@dataclass(frozen=True, kw_only=True)
class MultihopRun(SystemRun):
    """A run of notebook 06: its questions, and how its encoders are trained and answer."""

    NAME: ClassVar[str] = "multihop question answering"
    SHAPES: ClassVar[tuple[str, ...]] = ("max_length", "window", "paragraph_types")
    MEASURES: ClassVar[tuple[Measure, ...]] = tuple(map(Measure, HOTPOTQA_SCORES))

    settings: Settings
    questions: Questions

    @classmethod
    def read(cls, given: Settings) -> MultihopRun:
        """Check that the encoders are available, and read the questions."""
        for encoder in given.chosen if not given.trained else ():
            checkpoint_of(given.encoders, encoder.name)
        run = cls(settings=given, questions=read_questions(given))
        given.config(items=len(run.questions["train"]), seed=0)  # raises for impossible values
        return run

    def records(self, split: str) -> Sequence[MultihopQuestion]:
        """The questions of a split."""
        return self.questions[split]

    @property
    def data(self) -> dict[str, Any]:
        """Facts about the questions, stored in the report."""
        return {
            "corpus": self.settings.corpus,
            "precision": precision_in_words(self.settings.precision),
            "questions": {split: len(questions) for split, questions in self.questions.items()},
            "clusters": {split: len(set(map(cluster_of, some))) for split, some in self.questions.items()},
        }

    def check(self) -> None:
        """Raise an error if an encoder does not fit."""
        super().check()
        for training in self.trainings[:: self.settings.seeds]:
            self.answerer(training, trained=bool(self.settings.trained))

    def begins_with(self, training: Training) -> str:
        """The encoder of that name."""
        return checkpoint_of(self.settings.encoders, training.system.name)

    def sets(self, training: Training) -> tuple[str, ...]:
        """All splits except train."""
        return tuple(split for split in self.questions if split != "train")

    def answerer(self, training: Training, *, trained: bool) -> Answerer:
        """A new answerer on an encoder, or the trained one."""
        given, name = self.settings, training.system.name
        model, tokenizer = load_question_answerer(
            self.model_folder(training) if trained else checkpoint_of(given.encoders, name),
            max_length=given.max_length,
            window=given.window,
            paragraph_types=given.paragraph_types,
            attention_dropout=given.attention_dropout,
            seed=training.seed,
        )
        if given.reset_globals and not trained:
            reset_globals(model, name)
        return Answerer(model=model, tokenizer=tokenizer, max_length=given.max_length)

    @cached_property
    def untrained(self) -> Answerer:
        """The first answerer, for views and estimates before training; not to be trained."""
        return self.answerer(self.trainings[0], trained=bool(self.settings.trained))

    def job(self, training: Training, *, answerer: Answerer | None = None) -> TrainingJob:
        """A training job for a new answerer on the questions of train."""
        answerer, questions = answerer or self.answerer(training, trained=False), self.questions["train"]
        config = self.settings.config(items=len(questions), seed=training.seed)

        return TrainingJob(
            model=answerer.model,
            tokenizer=answerer.tokenizer,
            train_examples=answerer.examples(list(in_training_order(questions, config))),
            validation_examples=answerer.examples(self.questions["dev"]),
            collate=answerer.collate,
            config=config,
        )

    def load(self, training: Training) -> Answerer:
        """The trained answerer."""
        return self.answerer(training, trained=True)

    def predict_set(self, loaded: Answerer, name: str, bar: str) -> QuestionPredictions:
        """Answer the questions of a split."""
        return self.answers(loaded, self.questions[name], name=bar)

    def answers(
        self, loaded: Answerer, questions: Sequence[MultihopQuestion], *, name: str | None = None
    ) -> QuestionPredictions:
        """Answer any questions; `name`: text beside the progress bar, None = no bar."""
        given = self.settings
        return answering.predict_answers(
            loaded,
            loaded.examples(questions, labelled=False),
            support=given.support,
            batch_size=given.micro_batch_size,
            precision=given.precision,
            name=name,
        )

    def read_predictions(self, file: Path, name: str) -> QuestionPredictions:
        """Read the answers to the questions of a split."""
        return QuestionPredictions.load(file, questions=self.questions[name])

    def own_predictions(self, file: Path, lines: Lines, split: str) -> QuestionPredictions:
        """Lines `{"item": id of the question, "answer": text, "facts": [[title, n], ...]}`, n from 0; a line
        without facts has none."""
        questions = self.questions[split]
        given = by_item(file, lines, [one.id for one in questions], field="answer")
        facts = {str(values["item"]): values.get("facts", []) for _, values in lines}
        answers = [answering.answer_given(file, one, *given[one.id], facts[one.id]) for one in questions]
        return QuestionPredictions(questions=questions, answers=answers)

    def items(self, predictions: Predictions) -> pd.DataFrame:
        """The official scores of each question."""
        return pd.concat(
            [
                items_of(
                    one.scores(),
                    system=system,
                    seed=seed,
                    split=split,
                    items=[each.id for each in one.questions],
                    clusters=[*map(cluster_of, one.questions)],
                )
                for (system, seed), of_encoder in predictions.items()
                for split, one in of_encoder.items()
            ]
        )

    @property
    def planned(self) -> list[Planned]:
        """On test, each encoder against the baseline by the columns of the paper's Table 5."""
        others = [one.name for one in self.systems if one.name != AGAINST]
        return [Planned(a=name, b=AGAINST, measure=measure) for measure in TESTED for name in others]


def prepare(given: Settings) -> MultihopRun:
    """Claim the run folder, read the questions, and check that all models are available."""
    return MultihopRun.open(given)


# ---- scores ----

_YES_NO = "of all, yes or no"  # a part of the other kinds, which by themselves add up to all questions
TESTED = ("f1", "sp_f1", "joint_f1")  # the columns of the paper's Table 5
AGAINST = "longformer"  # the baseline in the significance tests


@runs.once
def evaluate(run: MultihopRun, predictions: Predictions) -> runs.Scores:
    """Scores of all encoders with their means by kind of question; also writes, beside the answers of each
    training, a prediction file for test in the official format."""
    for training in run.trainings:
        official = predictions[training.key]["test"].official()
        write_predictions(
            run.folder_of(training) / "test_predictions.json", official["answer"], official["sp"]
        )
    made = run.evaluated(predictions)
    return runs.Scores.of(made, kinds=_by_kind(run, made.items))


def _by_kind(run: MultihopRun, items: pd.DataFrame) -> list[dict[str, Any]]:
    """Mean scores of each encoder on each split by kind of question, and of yes-or-no questions."""
    rows = []
    means = items.groupby(["system", "split", "item", "metric"], sort=False)["num"].mean().unstack()
    for (system, split), of_split in means.groupby(["system", "split"], sort=False):
        questions = {one.id: one for one in run.questions[split]}
        of_items = [questions[name] for name in of_split.index.get_level_values("item")]
        groups = {kind: [one.kind == kind for one in of_items] for kind in sorted({q.kind for q in of_items})}
        groups[_YES_NO] = [one.type in ("yes", "no") for one in of_items]
        for kind, chosen in groups.items():
            if any(chosen):
                values = of_split[chosen].mean()[[*HOTPOTQA_SCORES]].to_dict()
                rows.append(
                    {"system": system, "split": split, "kind": kind, "questions": sum(chosen), **values}
                )
    return rows


def trained_alike(run: MultihopRun, own: Report, *, name: str) -> Report:
    """A report that compares encoders trained alike: `own`, if this run has the baseline and another encoder.
    Else that of the run `name`, whose models answer the questions of this run, in `trained_alike/` of its
    folder; or, on another corpus than theirs, `own` again."""
    given, made = run.settings, trained_parameters(name)
    names = {one.name for one in run.systems}
    if (AGAINST in names and len(names) > 1) or given.corpus != made["corpus"]:
        return own
    models = {setting: made[setting] for setting in (*MultihopRun.SHAPES, "systems", "encoders")}
    of_them = {
        "trained": name,
        "seeds": 1,
        "run_folder": f"{given.run_folder}/trained_alike",
    }
    other = MultihopRun.open(replace(given, **models, **of_them))
    return runs.report(other, evaluate(other, runs.predict(other)))
