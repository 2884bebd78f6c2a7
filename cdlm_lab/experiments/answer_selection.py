"""Choosing answers with several candidates at once (Di Liello et al. 2022, "MSPP", section 4 and appendix
B.1): notebook 09.

Each system is trained with each seed; of its epochs the one with the highest MAP on dev is kept. Dev and test
are ranked once by each (`all`, Table 1), and its best candidates once more by each joint system with the same
seed (`reranked`, Tables 2 and 7), without further training; candidates beyond them stay below, in the order
of pairwise. (The paper does not say what its joint systems were trained on there. The released scripts train
them on pairwise's best candidates, and drop the others from the metrics too.)

Dev and test are always "clean": their questions have a right candidate and a wrong one (section 4.1). Of
training the paper says two things of WikiQA, clean in appendix A.2 and all 2,118 questions in Table 5, so
that is a parameter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from IPython.display import HTML
from pydantic import Field
from torch import nn

from cdlm_lab.data.candidates import (
    CandidateCounts,
    checksum_of,
    clean_sets,
    counts_of,
    format_of,
    read_candidate_sets,
)
from cdlm_lab.data.records import CandidateSet
from cdlm_lab.data.storyworld.task_sets import read_storyworld_candidates
from cdlm_lab.experiments.runs import (
    Cell,
    Scores,
    SystemRun,
    Training,
    chosen_systems,
    cost_facts,
    facts_table,
    paired_tests,
    predict,
    report,
    score_rows,
    train,
)
from cdlm_lab.experiments.systems.joint import JointSettings, sentence_rows
from cdlm_lab.experiments.systems.ranking import (
    ANSWER_SYSTEMS,
    PAIRWISE,
    RANDOM,
    AnswerPredictions,
    AnswerSystem,
    Ranker,
    measured_in_turns,
    rerank_answers,
    score_answers,
    score_examples,
    timed_sets,
)
from cdlm_lab.experiments.views.candidates import (
    ALL,
    RERANKED,
    Predictions,
    answers_table,
    collapse_figures,
    collapses,
    comparisons,
    diagnoses,
    own_question,
    own_texts,
    rankings,
    timing,
    timing_figure,
)
from cdlm_lab.metrics.ranking import mean_average_precision, values_per_group
from cdlm_lab.models.checkpoint import default_device
from cdlm_lab.models.joint import JointHead, load_joint_model, paragraph_head
from cdlm_lab.models.precision import precision_told
from cdlm_lab.parameters import ParameterError, settings
from cdlm_lab.report import write_json
from cdlm_lab.scores import Score
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.fine_tuning import TrainingJob
from cdlm_lab.widgets.html import table_html
from cdlm_lab.widgets.rankings import Latency

__all__ = ["ANSWER_SYSTEMS", "Settings"]
__all__ += ["evaluate", "example", "predict", "prepare", "preview", "report", "train"]
__all__ += ["answers_table", "collapse_figures", "collapses", "comparisons", "own_question"]
__all__ += ["rankings", "timing", "timing_figure"]

STORYWORLD = "storyworld"
HELD_OUT = ("dev", "test")  # splits that are ranked
RANKINGS = (ALL, RERANKED)
MEASURES = {"p_at_1": "precision_at_1", "map": "average_precision", "mrr": "reciprocal_rank"}
WEIGHT_DECAY = 0.01  # the paper's

# ---- settings and questions ----


@settings
class Settings(JointSettings):
    """The parameters of notebook 09.

    Attributes:
        corpus: `storyworld`, or a folder of WikiQA, TREC-QA or ASNQ.
        test_corpus: the same, whose test questions are ranked; "" = those of `corpus`.
        train_stories, held_out_stories: of storyworld, three questions each.
        train_on: `clean` = questions that have right and wrong candidates, or `all`.
        train_questions: at most so many are drawn of those for training, the same ones in each run; 0 = all.
        candidates: k, how many are read at once.
        pairwise_length: tokens of a sentence in a pair. The paper gives every model L(k + 1) tokens in all,
            which is L(k + 1) / 2 for each of two sentences: 192 with its values.
        positions: of joint sequences; a pair is always compact, as cross-encoders are.
        own_question: a text file with a question and candidates; "" = an example.
    """

    run_folder: str = "runs/answer_selection"
    corpus: str = STORYWORLD
    test_corpus: str = ""
    train_stories: int = Field(default=60, ge=2)
    held_out_stories: int = Field(default=24, ge=2)
    train_on: Literal["clean", "all"] = "clean"
    train_questions: int = Field(default=0, ge=0, description="0 means all")
    systems: str = "pairwise joint-ie joint-ae"
    candidates: int = Field(default=5, ge=2)
    pairwise_length: int = Field(default=32, ge=2)
    own_question: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if PAIRWISE not in self.systems.split() or len(self.chosen) < 2:
            joint = ", ".join(name for name in ANSWER_SYSTEMS if name != PAIRWISE)
            raise ParameterError(
                f"systems is {self.systems!r}; name pairwise, whose best candidates are ranked anew, and at "
                f"least one of {joint}"
            )

    @property
    def chosen(self) -> tuple[AnswerSystem, ...]:
        """The systems, in the order of the paper's tables; pairwise is the first."""
        return chosen_systems(self.systems, ANSWER_SYSTEMS) if self.systems.split() else ()

    def head_of(self, system: AnswerSystem) -> JointHead:
        """The head of a system, which knows the layout of its sequences."""
        return JointHead(
            kind=system.head,
            sentences=1 + (self.candidates if system.is_joint else 1),
            length=self.sentence_length if system.is_joint else self.pairwise_length,
            positions=self.positions if system.is_joint else "compact",
            layers=self.head_layers,
        )

    def source_of(self, split: str) -> str:
        """The corpus that a split is of."""
        return self.test_corpus if split == "test" and self.test_corpus else self.corpus


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSplit:
    """The questions of one split."""

    sets: tuple[CandidateSet, ...]  # those that are used, in order
    read: CandidateCounts  # what was read, questions that are left out too
    corpus: str  # `storyworld`, `wikiqa`, `trecqa` or `asnq`
    checksum: str  # of the files; "" = storyworld, which is made


def read_answers(settings: Settings) -> dict[str, AnswerSplit]:
    """Questions of train, dev and test. Raises ParameterError: a split has no two questions that can be used.
    Raises DataError: a file that cannot be read."""
    return {split: _split(settings, split) for split in ("train", *HELD_OUT)}


def _split(settings: Settings, split: str) -> AnswerSplit:
    source = settings.source_of(split)
    if source == STORYWORLD:
        stories = settings.train_stories if split == "train" else settings.held_out_stories
        sets, corpus, checksum = list(read_storyworld_candidates(split, stories)), STORYWORLD, ""
    else:
        sets = read_candidate_sets(source, split)
        corpus, checksum = format_of(source), checksum_of(source, split)
    used = sets if split == "train" and settings.train_on == "all" else clean_sets(sets)
    if len(used) < 2:
        raise ParameterError(
            f"{source}: {len(used)} of the {len(sets)} questions of {split} can be used: others have "
            "no right or no wrong candidate; give at least two"
        )
    if split == "train" and 0 < settings.train_questions < len(used):
        drawn = np.random.default_rng(0).permutation(len(used))[: settings.train_questions]
        used = [used[number] for number in sorted(drawn)]
    return AnswerSplit(sets=tuple(used), read=counts_of(sets), corpus=corpus, checksum=checksum)


def cluster_of(one: CandidateSet) -> str:
    """What a question has in common with others, for intervals: of storyworld the story, else the question
    itself."""
    return one.id.rpartition("-c")[0] if one.id.startswith(f"{STORYWORLD}-") else one.id


# ---- the run ----


@dataclass(frozen=True, kw_only=True)
class AnswerRun(SystemRun):
    """The questions of a run, and how its systems are trained and rank."""

    NAME: ClassVar[str] = "answer selection"

    settings: Settings
    splits: Mapping[str, AnswerSplit]

    @classmethod
    def read(cls, settings: Settings) -> AnswerRun:
        """Read the questions."""
        return cls(settings=settings, splits=read_answers(settings))

    @property
    def systems(self) -> tuple[AnswerSystem, ...]:
        """In the order of the paper's tables; pairwise is the first."""
        return self.settings.chosen

    @property
    def data(self) -> dict[str, Any]:
        """What the report says of the questions."""
        splits = self.splits
        return {
            "precision": precision_told(self.settings.precision),
            "corpus": {split: self.settings.source_of(split) for split in splits},
            "format": {split: one.corpus for split, one in splits.items()},
            "checksums": {split: one.checksum for split, one in splits.items()},
            "questions": {split: len(one.sets) for split, one in splits.items()},
            "candidates": {s: sum(len(each.candidates) for each in one.sets) for s, one in splits.items()},
            "questions_read": {split: one.read.questions for split, one in splits.items()},
            "clusters": {split: len(set(map(cluster_of, one.sets))) for split, one in splits.items()},
        }

    def questions(self, split: str) -> tuple[CandidateSet, ...]:
        """The questions of a split."""
        return self.splits[split].sets

    def ranker(self, system: AnswerSystem, seed: int = 0, *, trained: bool = False) -> Ranker:
        """A new one on the CPU, or the one that was trained on the default device."""
        given, folder = self.settings, self.model_folder(Training(system, seed))
        source = folder if trained else given.checkpoint(system.pretrained)
        model, tokenizer = load_joint_model(source, head=given.head_of(system), seed=seed, **given.loading)
        return Ranker(model=model.to(default_device()) if trained else model, tokenizer=tokenizer)

    def examples_of(self, system: AnswerSystem) -> int:
        """How many training examples there are, each candidate being in one."""
        k = self.settings.head_of(system).layout.candidates
        return sum(-(-len(one.candidates) // k) for one in self.questions("train"))

    def config(self, system: AnswerSystem, seed: int = 0) -> TrainingConfig:
        """How a system is trained. Raises ParameterError for values that cannot be."""
        config = self.settings.config(items=self.examples_of(system), seed=seed)
        return replace(config, weight_decay=WEIGHT_DECAY)

    def items(self, system: AnswerSystem) -> str:
        """What an update has a batch of."""
        return "groups" if system.is_joint else "pairs"

    def sets(self, training: Training) -> tuple[str, ...]:
        """Dev and test, and of joint systems also those of pairwise's best candidates."""
        again = [f"{split}_{RERANKED}" for split in HELD_OUT] if training.system.is_joint else []
        return *HELD_OUT, *again

    def job(self, training: Training) -> TrainingJob:
        """A new ranker, judged by its MAP on dev."""
        ranker, config = self.ranker(*training), self.config(*training)
        dev = ranker.examples(self.questions("dev"))

        def judge(model: nn.Module) -> float:
            scored = score_examples(replace(ranker, model=model), dev, **self.settings.predicting)
            return mean_average_precision(scored.groups())

        return TrainingJob(
            model=ranker.model,
            tokenizer=ranker.tokenizer,
            train_examples=ranker.examples(self.questions("train"), config=config),
            validation_examples=dev,
            collate=ranker.collate,
            config=config,
            judge=judge,
        )

    def load(self, training: Training) -> tuple[Ranker, int]:
        """The trained one, and its seed."""
        return self.ranker(*training, trained=True), training.seed

    def predict_set(self, loaded: tuple[Ranker, int], name: str, bar: str) -> AnswerPredictions:
        """Scores of all candidates of a split, or of the best of the pairwise system with the same seed."""
        (ranker, seed), split = loaded, name.removesuffix(f"_{RERANKED}")
        if split == name:
            return score_answers(ranker, self.questions(split), name=bar, **self.settings.predicting)
        first = self.files(Training(ANSWER_SYSTEMS[PAIRWISE], seed))[split]
        return rerank_answers(
            ranker, self.read_predictions(first, split), name=bar, **self.settings.predicting
        )

    def read_predictions(self, file: Path, name: str) -> AnswerPredictions:
        """Scores of the candidates of a split."""
        return AnswerPredictions.load(file, sets=self.questions(name.removesuffix(f"_{RERANKED}")))


def prepare(settings: Settings) -> AnswerRun:
    """Take the folder, read the questions and look whether all is there and fits; nothing is trained. Raises
    ValueError: whatever does not fit, in one line. Raises RunError: the folder is not free for this run."""
    for system in settings.chosen:  # before the reading, which may take long
        settings.checkpoint(system.pretrained)
    own_texts(settings.own_question)
    run = AnswerRun.open(settings)
    for system in run.systems:
        run.config(system)
        run.ranker(system)  # has it positions enough?
    return run


# ---- before the start ----

LOOKED_AT = 500  # questions of a split in which sentences are measured: more would take long to tokenise


def preview(run: AnswerRun) -> HTML:
    """What is asked, what systems with MSPP were pretrained with, and what training will cost."""
    return facts_table([*question_facts(run), *pretraining_facts(run), *cost_facts(run)])


def question_facts(run: AnswerRun) -> list[tuple[str, str]]:
    """What is asked, what was left out, and how many sentences of the first LOOKED_AT questions of each split
    do not fit, as (name, text)."""
    rankers = {system: run.ranker(system) for system in run.systems[:2]}
    rows = []
    for split, one in run.splits.items():
        rows.append((split, _questions_in_words(one)))
        cut = (f"{_share_cut(ranker, one.sets):.0%} ({system.label})" for system, ranker in rankers.items())
        rows.append((f"{split}: candidates that lose their end", ", ".join(cut)))
    for system, ranker in rankers.items():
        examples = ranker.examples(run.questions("train")[:LOOKED_AT])
        tokens = np.mean([examples.length_of(number) for number in range(len(examples))])
        count = f"{run.examples_of(system):,} {run.items(system)} of about {tokens:.0f} tokens"
        rows.append((f"an epoch, {'joint' if system.is_joint else system.label}", count))
    return rows


def pretraining_facts(run: AnswerRun) -> list[tuple[str, str]]:
    """What each system with MSPP was pretrained to read, where that is not what it reads here, as (name,
    text)."""
    rows = []
    for system in run.systems:
        wanted = run.settings.head_of(system)
        pretrained = paragraph_head(run.settings.checkpoint(system.pretrained)) if system.pretrained else None
        if pretrained and pretrained[0] != wanted:
            head = pretrained[0]
            unused = "" if head.layers == wanted.layers else "; its head is not used"
            text = f"{head.sentences - 1} candidates of {head.length} tokens, {head.positions} positions"
            rows.append((f"{system.label}: pretrained with", f"{text}, {head.layers} head{unused}"))
    return rows


def _questions_in_words(split: AnswerSplit) -> str:
    candidates = [len(one.candidates) for one in split.sets]
    right = sum(sum(one.correct) for one in split.sets)
    text = f"{len(candidates):,} questions with {sum(candidates):,} candidates, {right:,} of them right"
    if len(candidates) == split.read.questions:
        return text
    return (
        f"{text}; of the {split.read.questions:,} that are there, {split.read.without_right:,} have no right "
        f"candidate and {split.read.without_wrong:,} no wrong one"
    )


def _share_cut(ranker: Ranker, sets: Sequence[CandidateSet]) -> float:
    examples = ranker.examples(sets[:LOOKED_AT])
    room = ranker.model.head.form.length - 1
    lengths = [len(text) for one in examples.sets for text in examples.encoded[one.id][1:]]
    return float((np.array(lengths) > room).mean())


def example(run: AnswerRun) -> HTML:
    """The first group of training candidates as the first joint system reads it, sentence by sentence."""
    system = run.systems[1]
    ranker = run.ranker(system)
    examples = ranker.examples(run.questions("train"), config=run.config(system))
    number, members = examples.owner(0)
    correct = run.questions("train")[number].correct
    labels = ["", *("right" if correct[member] else "wrong" for member in members)]
    rows = [
        [f"s<sub>{place}</sub>", labels[place], *cells]
        for place, *cells in sentence_rows(ranker.tokenizer, examples.describe(0))
    ]
    columns = ["", "label", "what the model reads", "tokens", "positions"]
    return HTML(table_html(columns, rows, text_columns=(0, 1, 2)))


def measured_latencies(run: AnswerRun) -> list[Latency]:
    """Seconds for one question, of every system with seed 0 on the first test questions; measured once and
    kept in `latency.json`."""
    file = run.folder / "latency.json"
    if not file.is_file():
        sets = timed_sets(run.questions("test"))
        rankers = {system.label: run.ranker(system, trained=True) for system in run.systems}
        measured = measured_in_turns(rankers, sets, precision=run.settings.precision)
        write_json(file, {"questions": len(sets), "latencies": [asdict(one) for one in measured]})
    return [Latency(**row) for row in json.loads(file.read_text(encoding="utf-8"))["latencies"]]


# ---- scores ----


def evaluate(
    run: AnswerRun, predictions: Predictions, *, latencies: Sequence[Latency] | None = None
) -> Scores:
    """P@1, MAP and MRR of all systems and of a random order on dev and test, the tests between systems on
    test, what shows a collapse, and latencies; None = they are measured."""
    values: dict[Cell, list[np.ndarray]] = {}
    for system in run.systems:
        for ranking in RANKINGS if system.is_joint else (ALL,):
            for split in HELD_OUT:
                seeds = [
                    values_per_group(ranked(predictions, system.name, seed, split, ranking).groups())
                    for seed in range(run.settings.seeds)
                ]
                for measure, name in MEASURES.items():
                    values[Cell(system.name, split, measure, ranking)] = [one[name] for one in seeds]
    clusters = {split: list(map(cluster_of, run.questions(split))) for split in HELD_OUT}
    tests = [
        row
        for ranking in RANKINGS
        for measure in MEASURES
        for pairs in _tested(run.systems, ranking, measure)
        for row in paired_tests(pairs, values, clusters)
    ]
    against_pairwise = [row for row in tests if row["b"] == PAIRWISE]
    diagnosis = [
        {"system": system, "seed": seed, **one.row}
        for (system, seed), one in diagnoses(run, predictions).items()
    ]
    timed = measured_latencies(run) if latencies is None else latencies
    return Scores(
        rows=[*score_rows(values, clusters, against_pairwise), *_random_rows(run)],
        tables={
            "comparisons": tests,
            "diagnosis": diagnosis,
            "latency": [asdict(one) for one in timed],
        },
    )


def ranked(
    predictions: Predictions, system: str, seed: int, split: str, ranking: str = ALL
) -> AnswerPredictions:
    """What ranks all candidates of a split: a system, or, `reranked`, the best of pairwise by a joint system
    and the others as pairwise has them."""
    of_system = predictions[system, seed]
    if ranking == ALL or f"{split}_{RERANKED}" not in of_system:
        return of_system[split]
    return of_system[f"{split}_{RERANKED}"].after(predictions[PAIRWISE, seed][split])


def _tested(systems: Sequence[AnswerSystem], ranking: str, measure: str) -> list[list[tuple[Cell, Cell]]]:
    """What is compared on test: each joint system with pairwise, and with MSPP with without."""
    names = {system.name for system in systems}
    cells = {one.name: Cell(one.name, "test", measure, ranking) for one in systems if one.is_joint}
    pairwise = Cell(PAIRWISE, "test", measure, ALL)
    return [
        [(cell, pairwise) for cell in cells.values()],
        [(cells[one.name], cells[one.plain]) for one in systems if one.plain in names],
    ]


def _random_rows(run: AnswerRun) -> list[Score]:
    """What is expected of a random order; it has no interval."""
    rows = []
    for split in HELD_OUT:
        # Of equal scores alone, every measure is its expectation over random orders.
        groups = [(np.zeros(len(one.candidates)), np.array(one.correct)) for one in run.questions(split)]
        values = values_per_group(groups)
        for measure, name in MEASURES.items():
            value = values[name].mean()
            rows.append(Score(system=RANDOM, split=split, group=ALL, metric=measure, value=value))
    return rows
