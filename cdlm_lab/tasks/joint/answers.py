"""Answer selection with several candidates read at once (Di Liello et al. 2022, "MSPP", section 4 and
appendix B.1): notebook 09.

Each system is trained with each seed; the epoch with the highest MAP on dev is kept. Each trained model ranks
dev and test once (`all`, Table 1). Each joint system then reranks the best candidates of pairwise with the
same seed, without further training (`reranked`, Tables 2 and 7); the other candidates stay below them, in
pairwise's order. (The paper does not say what its joint systems were trained on there. The released scripts
train them on pairwise's best candidates, and leave the others out of the metrics too.)

Dev and test are always "clean": every question has a right and a wrong candidate (section 4.1). For training
on WikiQA the paper says two things, clean in appendix A.2 and all 2,118 questions in Table 5: a parameter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from cdlm_lab.data import records
from cdlm_lab.data.reading import open_records, read_records
from cdlm_lab.data.records import CandidateCounts, CandidateSet
from cdlm_lab.data.storyworld.task_sets import read_storyworld_candidates
from cdlm_lab.encoders.checkpoint import default_device
from cdlm_lab.encoders.precision import precision_in_words
from cdlm_lab.metrics.ranking import mean_average_precision, values_per_group
from cdlm_lab.parameters import ParameterError, names_in, settings
from cdlm_lab.progress import ALONE, Share
from cdlm_lab.runs import runs
from cdlm_lab.runs.evaluation import Evaluation, Measure, Planned
from cdlm_lab.runs.identity import Inputs
from cdlm_lab.runs.items import UNTRAINED, apart, items_of, read_frame
from cdlm_lab.runs.own import Lines, by_item
from cdlm_lab.runs.report import write_json
from cdlm_lab.runs.runs import Training, predict, report, train, train_small
from cdlm_lab.tasks.joint import ranking
from cdlm_lab.tasks.joint.diagnosis import JointDiagnosis, diagnose
from cdlm_lab.tasks.joint.examples import JointExamples
from cdlm_lab.tasks.joint.model import JointHead, load_joint_model
from cdlm_lab.tasks.joint.ranking import (
    ANSWER_SYSTEMS,
    PAIRWISE,
    RANDOM,
    AnswerPredictions,
    AnswerSystem,
    Latency,
    Ranker,
)
from cdlm_lab.tasks.joint.systems import JointRun, JointSettings
from cdlm_lab.training.config import TrainingConfig

__all__ = ["Settings", "evaluate", "predict", "prepare", "report", "train", "train_small"]
__all__ += ["ANSWER_SYSTEMS"]

STORYWORLD = "storyworld"
HELD_OUT = ("dev", "test")  # splits whose candidates are ranked
ALL, RERANKED = "all", "reranked"  # what a system reads: all candidates, or only pairwise's best
NO_QUESTION = "test_no_question"  # control: test with empty questions shows what the answers alone reveal
MEASURES = {"p_at_1": "precision_at_1", "map": "average_precision", "mrr": "reciprocal_rank"}

# ---- settings and questions ----


@settings
class Settings(JointSettings):
    """The parameters of notebook 09, whose first cell says what each is."""

    run_folder: str = "runs/answer_selection"
    trained: str = ""  # a run whose models are opened; "" = they are trained
    corpus: str = STORYWORLD  # or a folder of WikiQA, TREC-QA or ASNQ
    test_corpus: str = ""
    train_stories: int = Field(default=60, ge=2)
    held_out_stories: int = Field(default=24, ge=2)
    train_on: Literal["clean", "all"] = "clean"  # questions that have right and wrong candidates, or all
    train_questions: int = Field(default=0, ge=0, description="0 means all")
    systems: str = "pairwise joint-ie"
    candidates: int = Field(default=5, ge=2)  # k
    groupings: int = Field(default=1, ge=1)  # of candidates; a joint system's scores are means over them
    joint_epochs: int = Field(default=0, ge=0)  # of the joint systems; 0 = epochs
    # Tokens of a sentence in a pair, which is always compact, as cross-encoders are. The paper gives every
    # model L(k + 1) tokens in all, which is L(k + 1) / 2 for each of two sentences: 192 with its values.
    pairwise_length: int = Field(default=32, ge=2)

    def __post_init__(self) -> None:
        super().__post_init__()
        if PAIRWISE not in names_in(self.systems) or len(self.chosen) < 2:
            joint = ", ".join(name for name in ANSWER_SYSTEMS if name != PAIRWISE)
            raise ParameterError(
                f"systems is {self.systems!r}; name pairwise, whose best candidates are ranked anew, and at "
                f"least one of {joint}"
            )

    @property
    def chosen(self) -> tuple[AnswerSystem, ...]:
        """The systems, in the order of the paper's tables; pairwise is the first."""
        return runs.chosen_systems(self.systems, ANSWER_SYSTEMS)

    def head_of(self, system: AnswerSystem) -> JointHead:
        """The model head of a system; it also fixes the layout of the input sequences."""
        return JointHead(
            kind=system.head,
            sentences=1 + (self.candidates if system.is_joint else 1),
            length=self.sentence_length if system.is_joint else self.pairwise_length,
            positions="strided" if system.is_joint else "compact",
            layers=self.head_layers,
        )

    def source_of(self, split: str) -> str:
        """The corpus that a split is read from."""
        return self.test_corpus if split == "test" and self.test_corpus else self.corpus


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSplit:
    """The questions of one split."""

    sets: tuple[CandidateSet, ...]  # the questions that are used, in order
    read: CandidateCounts  # counts of all questions in the files, including those that are left out
    corpus: str  # `storyworld`, or the name of its format, such as `wikiqa`


def read_answers(settings: Settings) -> dict[str, AnswerSplit]:
    """Questions of train, dev and test. Raises ParameterError if a split has fewer than two usable ones."""
    splits = {split: _split(settings, split) for split in ("train", *HELD_OUT)}
    unasked = tuple(replace(one, question="") for one in splits["test"].sets)
    return splits | {NO_QUESTION: replace(splits["test"], sets=unasked)}


def _split(settings: Settings, split: str) -> AnswerSplit:
    source = settings.source_of(split)
    if source == STORYWORLD:
        stories = settings.train_stories if split == "train" else settings.held_out_stories
        sets, corpus = list(read_storyworld_candidates(split, stories)), STORYWORLD
    else:
        sets = list(read_records("candidates", source, split))
        corpus = open_records("candidates", source).format
    used = sets if split == "train" and settings.train_on == "all" else records.clean_sets(sets)
    if len(used) < 2:
        raise ParameterError(
            f"{source}: {len(used)} of the {len(sets)} questions of {split} can be used: others have "
            "no right or no wrong candidate; give at least two"
        )
    used = runs.drawn(used, settings.train_questions if split == "train" else 0, seed=0)
    return AnswerSplit(sets=used, read=records.counts_of(sets), corpus=corpus)


def cluster_of(one: CandidateSet) -> str:
    """The cluster of a question for intervals: its story in storyworld, else the question itself."""
    return runs.story_or_id(one.id, mark="-c")


# ---- the run ----


@dataclass(frozen=True, kw_only=True)
class AnswerRun(JointRun):
    """A run of notebook 09: its questions, and how its systems are trained and rank candidates."""

    NAME: ClassVar[str] = "answer selection"
    SHAPES: ClassVar[tuple[str, ...]] = ("candidates", "sentence_length", "pairwise_length", "head_layers")
    MEASURES: ClassVar[tuple[Measure, ...]] = tuple(map(Measure, MEASURES))

    settings: Settings
    splits: Mapping[str, AnswerSplit]

    @classmethod
    def read(cls, settings: Settings) -> AnswerRun:
        """Read the questions."""
        return cls(settings=settings, splits=read_answers(settings))

    @property
    def inputs(self) -> Inputs:
        """Those of every run, and the corpus of the test questions."""
        inputs = super().inputs
        return replace(inputs, data=[*inputs.data, *filter(None, [self.settings.test_corpus])])

    @property
    def data(self) -> dict[str, Any]:
        """Facts about the questions, stored in the report."""
        splits = self.splits
        return {
            "precision": precision_in_words(self.settings.precision),
            "corpus": {split: self.settings.source_of(split.partition("_")[0]) for split in splits},
            "format": {split: one.corpus for split, one in splits.items()},
            "questions": {split: len(one.sets) for split, one in splits.items()},
            "candidates": {s: sum(len(each.candidates) for each in one.sets) for s, one in splits.items()},
            "questions_read": {split: one.read.questions for split, one in splits.items()},
            "clusters": {split: len(set(map(cluster_of, one.sets))) for split, one in splits.items()},
        }

    def of_split(self, name: str) -> tuple[CandidateSet, ...]:
        """The questions of a split."""
        return self.splits[name].sets

    def reader(self, system: AnswerSystem, seed: int = 0, *, trained: bool = False) -> Ranker:
        """A new model on the CPU, or the trained one on the default device."""
        given, folder = self.settings, self.model_folder(Training(system, seed))
        source = folder if trained else given.checkpoint(system.pretrained)
        form = {"head": given.head_of(system), "new_head": not trained, "seed": seed}
        model, tokenizer = load_joint_model(source, **form, **given.loading)
        return Ranker(model=model.to(default_device()) if trained else model, tokenizer=tokenizer, seed=seed)

    def examples_of(self, system: AnswerSystem) -> int:
        """The number of training examples per epoch; each candidate is in exactly one."""
        k = self.settings.head_of(system).layout.candidates
        return sum(-(-len(one.candidates) // k) for one in self.of_split("train"))

    def config(self, system: AnswerSystem, seed: int = 0) -> TrainingConfig:
        """The training config of a system, with the paper's weight decay of 0.01."""
        epochs = (system.is_joint and self.settings.joint_epochs) or self.settings.epochs
        config = replace(self.settings, epochs=epochs).config(items=self.examples_of(system), seed=seed)
        return replace(config, weight_decay=0.01)

    def unit(self, system: AnswerSystem) -> str:
        """What an example is called in texts: a group of candidates, or a pair."""
        return "groups" if system.is_joint else "pairs"

    def sets(self, training: Training) -> tuple[str, ...]:
        """Dev, test, and test without questions; for joint systems also dev and test reranked."""
        again = [f"{split}_{RERANKED}" for split in HELD_OUT] if training.system.is_joint else []
        return *HELD_OUT, NO_QUESTION, *again

    def judged(self, reader: Ranker, examples: JointExamples, share: Share = ALONE) -> float:
        """Mean average precision (MAP) of the model on these examples."""
        scored = ranking.score_examples(reader, examples, share=share, **self.settings.predicting)
        return mean_average_precision(scored.groups())

    def predict_set(self, loaded: Ranker, name: str, bar: str) -> AnswerPredictions:
        """Score all candidates of a split, or only those that pairwise with the same seed ranks highest."""
        split, reading = name.removesuffix(f"_{RERANKED}"), {"name": bar, **self.settings.predicting}
        if split == name:
            times = self.settings.groupings
            return ranking.score_answers(loaded, self.of_split(split), groupings=times, **reading)
        first = self.files(Training(ANSWER_SYSTEMS[PAIRWISE], loaded.seed))[split]
        return ranking.rerank_answers(loaded, self.read_predictions(first, split), **reading)

    def own_predictions(self, file: Path, lines: Lines, split: str) -> AnswerPredictions:
        """Lines `{"item": id of the question, "scores": [...]}`, one number for each candidate in its order,
        the highest ranked first; or candidate -> number, as a mapping of their texts."""
        sets = self.of_split(split)
        given = by_item(file, lines, apart(one.id for one in sets), field="scores")
        pairs = zip(sets, given.values(), strict=True)
        scores = [ranking.scores_given(file, one, line, values) for one, (line, values) in pairs]
        return AnswerPredictions(sets=sets, scores=scores)

    def read_predictions(self, file: Path, name: str) -> AnswerPredictions:
        """Read the candidate scores of a split."""
        scores = [np.array(one, dtype=np.float64) for one in read_frame(file)["scores"]]
        return AnswerPredictions(sets=self.of_split(name.removesuffix(f"_{RERANKED}")), scores=scores)

    def items(self, predictions: Predictions) -> pd.DataFrame:
        """Precision at 1, average precision and reciprocal rank of each question."""
        parts = []
        for (system, seed), of_system in predictions.items():
            for name, one in of_system.items():
                split = name.removesuffix(f"_{RERANKED}")
                ranked = one if split == name else one.after(predictions[PAIRWISE, seed][split])
                values = values_per_group(ranked.groups())
                parts.append(
                    items_of(
                        {measure: values[of] for measure, of in MEASURES.items()},
                        system=system,
                        seed=seed,
                        split=split,
                        group=ALL if split == name else RERANKED,
                        items=apart(each.id for each in one.sets),
                        clusters=[*map(cluster_of, one.sets)],
                    )
                )
        return pd.concat(parts)

    @property
    def planned(self) -> list[Planned]:
        """On test, each joint system against pairwise, which has ranked all candidates, and with MSPP against
        without it."""
        names = {one.name for one in self.systems}
        joint = [one for one in self.systems if one.is_joint]
        comparisons = []
        for group, measure in product((ALL, RERANKED), MEASURES):
            form, of = {"measure": measure, "group": group}, f"{measure}/{group}"
            comparisons += [
                *(Planned(a=one.name, b=PAIRWISE, group_of_b=ALL, family=of, **form) for one in joint),
                *(
                    Planned(a=one.name, b=one.plain, family=f"{of}/MSPP", **form)
                    for one in joint
                    if one.plain in names
                ),
            ]
        return comparisons

    def evaluated(self, predictions: Predictions) -> Evaluation:
        """Beside the systems a random order, without an interval: where all scores are tied, each measure is
        its expectation."""
        random = {
            split: AnswerPredictions(sets=one.sets, scores=[np.zeros(len(q.candidates)) for q in one.sets])
            for split, one in self.splits.items()
            if split != "train"
        }
        made = super().evaluated({**predictions, (RANDOM, UNTRAINED): random})
        bare = dict.fromkeys(("low", "high", "n", "clusters"))
        rows = [replace(row, **bare) if row.system == RANDOM else row for row in made.rows]
        return replace(made, rows=rows)


Predictions = Mapping[tuple[str, int], Mapping[str, AnswerPredictions]]  # (system, seed) -> data set


def prepare(settings: Settings) -> AnswerRun:
    """Claim the run folder, read the questions, and check that all models are available and fit."""
    return AnswerRun.open(settings)


def measured_latencies(run: AnswerRun) -> list[Latency]:
    """Latencies of all systems (seed 0) on the first test questions, kept in `latency.json`."""
    file = run.folder / "latency.json"
    if not file.is_file():
        sets = ranking.timed_sets(run.of_split("test"))
        rankers = {system.label: run.loaded(system) for system in run.systems}
        measured = ranking.measured_in_turns(rankers, sets, precision=run.settings.precision)
        write_json(file, {"questions": len(sets), "latencies": [asdict(one) for one in measured]})
    return [Latency(**row) for row in json.loads(file.read_text(encoding="utf-8"))["latencies"]]


# ---- scores ----


@runs.once
def evaluate(
    run: AnswerRun, predictions: Predictions, *, latencies: Sequence[Latency] | None = None
) -> runs.Scores:
    """P@1, MAP and MRR of all systems and of a random order, the diagnosis whether joint models collapsed,
    and latencies, which are measured if `latencies` is None."""
    diagnosed = diagnoses(run, predictions).items()
    timed = measured_latencies(run) if latencies is None else latencies
    return runs.Scores.of(
        run.evaluated(predictions),
        diagnosis=[{"system": name, "seed": seed, **one.row} for (name, seed), one in diagnosed],
        latency=[asdict(one) for one in timed],
    )


def diagnoses(run: AnswerRun, predictions: Predictions) -> dict[tuple[str, int], JointDiagnosis]:
    """(joint system, seed) -> diagnosis of its scores on test."""
    diagnosed = {}
    for key in (training.key for training in run.trainings if training.system.is_joint):
        scores, labels, question = predictions[key]["test"].read_together(run.settings.candidates)
        diagnosed[key] = diagnose(scores, labels, question=question)
    return diagnosed
