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
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import plotly.graph_objects as go
from ipywidgets import Widget
from pydantic import Field

from cdlm_lab.data import records
from cdlm_lab.data.convert import candidates as corpora
from cdlm_lab.data.files import read_text
from cdlm_lab.data.marked import filled_lines, first_and_others
from cdlm_lab.data.records import CandidateCounts, CandidateSet
from cdlm_lab.data.storyworld.task_sets import read_storyworld_candidates
from cdlm_lab.encoders.checkpoint import default_device
from cdlm_lab.encoders.precision import precision_in_words
from cdlm_lab.metrics.ranking import mean_average_precision, values_per_group
from cdlm_lab.parameters import ParameterError, local_path, names_in, settings
from cdlm_lab.runs import runs
from cdlm_lab.runs.identity import Inputs
from cdlm_lab.runs.report import Report, write_json
from cdlm_lab.runs.runs import Training, predict, report, train, train_small
from cdlm_lab.runs.scores import Score, split_in_words
from cdlm_lab.runs.scoring import Cell, paired_tests, score_rows
from cdlm_lab.tasks.joint import answers_view as pictures
from cdlm_lab.tasks.joint import ranking
from cdlm_lab.tasks.joint.answers_view import Latency, RankingBrowser, ReadRanking
from cdlm_lab.tasks.joint.diagnosis import JointDiagnosis, diagnose
from cdlm_lab.tasks.joint.examples import CandidateExamples
from cdlm_lab.tasks.joint.model import JointHead, load_joint_model, paragraph_head
from cdlm_lab.tasks.joint.ranking import (
    ANSWER_SYSTEMS,
    PAIRWISE,
    RANDOM,
    AnswerPredictions,
    AnswerSystem,
    Ranker,
    expected_ratios,
    ranked_own,
    ranking_table,
    read_ranking,
)
from cdlm_lab.tasks.joint.systems import JointRun, JointSettings, sentence_rows
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.views import score_tables
from cdlm_lab.views.ask import own_candidates_box
from cdlm_lab.views.before_training import cost_facts, facts_table
from cdlm_lab.views.figures import folder_of, keep_figure
from cdlm_lab.views.html import points_in_words, still_page, warning
from cdlm_lab.views.score_tables import score_table
from cdlm_lab.views.tables import Cell as TableCell
from cdlm_lab.views.tables import ScoreTable, Shown, html_table, p_text, text_table

__all__ = ["Settings", "evaluate", "predict", "prepare", "preview", "report", "train", "train_small"]
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
    own_question: str = ""

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
    corpus: str  # `storyworld`, `wikiqa`, `trecqa` or `asnq`
    checksum: str  # of the files; "" for storyworld, which is generated


def read_answers(settings: Settings) -> dict[str, AnswerSplit]:
    """Questions of train, dev and test. Raises ParameterError if a split has fewer than two usable ones."""
    splits = {split: _split(settings, split) for split in ("train", *HELD_OUT)}
    unasked = tuple(replace(one, question="") for one in splits["test"].sets)
    return splits | {NO_QUESTION: replace(splits["test"], sets=unasked)}


def _split(settings: Settings, split: str) -> AnswerSplit:
    source = settings.source_of(split)
    if source == STORYWORLD:
        stories = settings.train_stories if split == "train" else settings.held_out_stories
        sets, corpus, checksum = list(read_storyworld_candidates(split, stories)), STORYWORLD, ""
    else:
        sets = corpora.read_candidate_sets(source, split)
        corpus, checksum = corpora.format_of(source), corpora.checksum_of(source, split)
    used = sets if split == "train" and settings.train_on == "all" else records.clean_sets(sets)
    if len(used) < 2:
        raise ParameterError(
            f"{source}: {len(used)} of the {len(sets)} questions of {split} can be used: others have "
            "no right or no wrong candidate; give at least two"
        )
    used = runs.drawn(used, settings.train_questions if split == "train" else 0, seed=0)
    return AnswerSplit(sets=used, read=records.counts_of(sets), corpus=corpus, checksum=checksum)


def cluster_of(one: CandidateSet) -> str:
    """The cluster of a question for intervals: its story in storyworld, else the question itself."""
    return runs.story_or_id(one.id, mark="-c")


# ---- the run ----


@dataclass(frozen=True, kw_only=True)
class AnswerRun(JointRun):
    """A run of notebook 09: its questions, and how its systems are trained and rank candidates."""

    NAME: ClassVar[str] = "answer selection"
    SHAPES: ClassVar[tuple[str, ...]] = (
        *("candidates", "sentence_length", "pairwise_length"),
        "head_layers",
    )

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
            "checksums": {split: one.checksum for split, one in splits.items()},
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

    def items(self, system: AnswerSystem) -> str:
        """What an example is called in texts: a group of candidates, or a pair."""
        return "groups" if system.is_joint else "pairs"

    def sets(self, training: Training) -> tuple[str, ...]:
        """Dev, test, and test without questions; for joint systems also dev and test reranked."""
        again = [f"{split}_{RERANKED}" for split in HELD_OUT] if training.system.is_joint else []
        return *HELD_OUT, NO_QUESTION, *again

    def judged(self, reader: Ranker, examples: CandidateExamples) -> float:
        """Mean average precision (MAP) of the model on these examples."""
        scored = ranking.score_examples(reader, examples, **self.settings.predicting)
        return mean_average_precision(scored.groups())

    def predict_set(self, loaded: Ranker, name: str, bar: str) -> AnswerPredictions:
        """Score all candidates of a split, or only those that pairwise with the same seed ranks highest."""
        split, reading = name.removesuffix(f"_{RERANKED}"), {"name": bar, **self.settings.predicting}
        if split == name:
            times = self.settings.groupings
            return ranking.score_answers(loaded, self.of_split(split), groupings=times, **reading)
        first = self.files(Training(ANSWER_SYSTEMS[PAIRWISE], loaded.seed))[split]
        return ranking.rerank_answers(loaded, self.read_predictions(first, split), **reading)

    def read_predictions(self, file: Path, name: str) -> AnswerPredictions:
        """Read the candidate scores of a split."""
        return AnswerPredictions.load(file, sets=self.of_split(name.removesuffix(f"_{RERANKED}")))


Predictions = Mapping[tuple[str, int], Mapping[str, AnswerPredictions]]  # (system, seed) -> data set


def prepare(settings: Settings) -> AnswerRun:
    """Claim the run folder, read the questions, and check that all models are available and fit."""
    own_texts(settings.own_question)
    return AnswerRun.open(settings)


# ---- before training ----

LOOKED_AT = 500  # questions per split whose sentence lengths are measured: tokenising more would be slow


def preview(run: AnswerRun) -> Shown:
    """The questions, the pretraining of the MSPP systems where it differs, and the cost of training."""
    return facts_table([*question_facts(run), *pretraining_facts(run), *cost_facts(run)])


def question_facts(run: AnswerRun) -> list[tuple[str, str]]:
    """How many questions are used and left out, and how many of the first candidates are truncated."""
    rankers = {system: run.shown_reader(system) for system in run.systems[:2]}
    rows = []
    for split, one in ((split, run.splits[split]) for split in ("train", *HELD_OUT)):
        cut = (f"{_share_cut(ranker, one.sets):.0%} ({system.label})" for system, ranker in rankers.items())
        rows.append((split, _questions_in_words(one)))
        rows.append((f"{split}: candidates that lose their end", ", ".join(cut)))
    for system, ranker in rankers.items():
        examples = ranker.examples(run.of_split("train")[:LOOKED_AT])
        tokens = np.mean([examples.length_of(number) for number in range(len(examples))])
        count = f"{run.examples_of(system):,} {run.items(system)} of about {tokens:.0f} tokens"
        rows.append((f"an epoch, {'joint' if system.is_joint else system.label}", count))
    return rows


def pretraining_facts(run: AnswerRun) -> list[tuple[str, str]]:
    """The input layout with which MSPP systems were pretrained, where it differs from the one used here."""
    rows = []
    for system in run.systems if run.settings.mspp else ():
        wanted = run.settings.head_of(system)
        pretrained = paragraph_head(run.settings.checkpoint(system.pretrained)) if system.pretrained else None
        if pretrained and (head := pretrained[0]) != wanted:
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
    lengths = [len(text) for one in examples.sets for text in examples.encoded[one.id][1:]]
    return float((np.array(lengths) > ranker.model.head.form.length - 1).mean())


def example(run: AnswerRun) -> Shown:
    """The first group of training candidates, sentence by sentence, as the first joint system reads it."""
    system, sets = run.systems[1], run.of_split("train")
    ranker = run.shown_reader(system)
    examples = ranker.examples(sets, config=run.config(system))
    number, members = examples.owner(0)
    labels = ["", *("right" if sets[number].correct[member] else "wrong" for member in members)]
    rows = [
        [f"s<sub>{place}</sub>", labels[place], *cells]
        for place, *cells in sentence_rows(ranker.tokenizer, examples.describe(0))
    ]
    return html_table(["", "label", "what the model reads", "tokens", "positions"], rows, texts=3)


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
    """P@1, MAP and MRR of all systems and of a random order, the significance tests between systems on test,
    the diagnosis whether joint models collapsed, and latencies, which are measured if `latencies` is None."""
    values: dict[Cell, list[np.ndarray]] = {}
    splits = [split for split in (*HELD_OUT, NO_QUESTION) if split in run.splits]
    for system in run.systems:
        parts = [(ALL, split) for split in splits]
        parts += [(RERANKED, split) for split in HELD_OUT if system.is_joint]
        for group, split in parts:
            seeds = [
                values_per_group(ranked(predictions, system.name, seed, split, group).groups())
                for seed in range(run.settings.seeds)
            ]
            for measure, name in MEASURES.items():
                values[Cell(system.name, split, measure, group)] = [one[name] for one in seeds]
    clusters = {split: list(map(cluster_of, run.of_split(split))) for split in splits}
    tests = [
        row
        for group, measure in product((ALL, RERANKED), MEASURES)
        for pairs in _tested(run.systems, group, measure)
        for row in paired_tests(pairs, values, clusters)
    ]
    against_pairwise = [row for row in tests if row["b"] == PAIRWISE]
    diagnosed = diagnoses(run, predictions).items()
    timed = measured_latencies(run) if latencies is None else latencies
    return runs.Scores(
        rows=[*score_rows(values, clusters, against_pairwise), *_random_rows(run)],
        tables={
            "comparisons": tests,
            "diagnosis": [{"system": name, "seed": seed, **one.row} for (name, seed), one in diagnosed],
            "latency": [asdict(one) for one in timed],
        },
    )


def ranked(
    predictions: Predictions, system: str, seed: int, split: str, group: str = ALL
) -> AnswerPredictions:
    """The ranking of all candidates of a split by one system. With group `reranked`, a joint system orders
    pairwise's best candidates, and the others follow in pairwise's order."""
    of_system = predictions[system, seed]
    if group == ALL or f"{split}_{RERANKED}" not in of_system:
        return of_system[split]
    return of_system[f"{split}_{RERANKED}"].after(predictions[PAIRWISE, seed][split])


def control_table(report: Report) -> ScoreTable | Shown:
    """The score table on test without the questions."""
    return score_tables.control_table(report, NO_QUESTION, answers_table)


def _tested(systems: Sequence[AnswerSystem], group: str, measure: str) -> list[list[tuple[Cell, Cell]]]:
    """The pairs compared on test: each joint system with pairwise, and with MSPP against without."""
    cells = {one.name: Cell(one.name, "test", measure, group) for one in systems if one.is_joint}
    pairwise = Cell(PAIRWISE, "test", measure, ALL)
    return [
        [(cell, pairwise) for cell in cells.values()],
        [(cells[one.name], cells[one.plain]) for one in systems if one.plain in cells],
    ]


def _random_rows(run: AnswerRun) -> list[Score]:
    """The expected scores of a random order, which have no interval."""
    rows = []
    for split in (one for one in (*HELD_OUT, NO_QUESTION) if one in run.splits):
        # Where all scores are tied, every measure is its expectation over random orders.
        groups = [(np.zeros(len(one.candidates)), np.array(one.correct)) for one in run.of_split(split)]
        values = values_per_group(groups)
        form = {"system": RANDOM, "split": split, "group": ALL}
        rows += [Score(**form, metric=one, value=values[name].mean()) for one, name in MEASURES.items()]
    return rows


# ---- views ----


def row_label(system: str, ranking: str, *, k: int) -> str:
    """The label of a system in tables and figures, which says what it ranked."""
    if system == RANDOM:
        return "random order"
    label = ANSWER_SYSTEMS[system].label
    return label if ranking == ALL else f"{label} on pairwise's top {k}"


def answers_table(report: Report, *, ranking: str = ALL, split: str = "test") -> ScoreTable:
    """The score table of one split. With ranking `all`, the paper's Table 1; with `reranked`, Tables 2 and 7:
    pairwise, and the joint systems on its best candidates."""
    k, corpus = report.parameters["candidates"], report.data["format"][split]
    labels = {
        name: row_label(name, ALL if name == PAIRWISE else ranking, k=k) for name in (*ANSWER_SYSTEMS, RANDOM)
    }
    caption = f"Answers chosen: {corpus}, {split_in_words(split)}"
    return score_table(report, labels=labels, group=ranking, split=split, caption=caption)


def comparisons(report: Report, *, ranking: str = ALL) -> ScoreTable:
    """The tests on test: for each pair of systems the differences in points, with both p-values."""
    rows: dict[tuple[str, str], list[str | TableCell]] = {}
    for row in report.tables["comparisons"]:
        if row["group"] == ranking:
            difference, low, high = (points_in_words(row[name]) for name in ("difference", "low", "high"))
            seeds = "" if row["p_seeds"] is None else f"; over seeds {p_text(row['p_seeds'])}"
            labels = [ANSWER_SYSTEMS[row[side]].label for side in "ab"]
            cells = rows.setdefault((row["a"], row["b"]), labels)
            p = f"p {p_text(row['p_holm'])}{seeds}"
            cells.append(TableCell(text=f"{difference} [{low}, {high}]", below=p))
    first = "all candidates" if ranking == ALL else "ranked anew"
    return text_table([first, "against", "P@1", "MAP", "MRR"], rows.values(), texts=2)


def collapses(report: Report) -> ScoreTable:
    """The verdict on each joint system with each seed: whether it collapsed."""
    rows = [
        [ANSWER_SYSTEMS[row["system"]].label, str(row["seed"]), row["verdict"]]
        for row in report.tables["diagnosis"]
    ]
    return text_table(["system", "seed", "on test"], rows, texts=3)


def diagnoses(run: AnswerRun, predictions: Predictions) -> dict[tuple[str, int], JointDiagnosis]:
    """(joint system, seed) -> diagnosis of its scores on test."""
    diagnosed = {}
    for key in (training.key for training in run.trainings if training.system.is_joint):
        scores, labels, question = predictions[key]["test"].read_together(run.settings.candidates)
        diagnosed[key] = diagnose(scores, labels, question=question)
    return diagnosed


def collapse_figures(run: AnswerRun, predictions: Predictions) -> list[go.Figure]:
    """Spread of scores and accuracy by position of the candidate, for the joint systems with seed 0."""
    diagnosed = diagnoses(run, predictions).items()
    first = {ANSWER_SYSTEMS[name].label: one for (name, seed), one in diagnosed if not seed}
    spread = pictures.score_spread_figure({label: one.spread for label, one in first.items()})
    shown = {"spread": spread, "accuracy-by-place": pictures.accuracy_by_place_figure(first)}
    return [keep_figure(run.folder, name, figure) for name, figure in shown.items()]


def timing_figure(report: Report) -> go.Figure:
    """A figure of the seconds per question of each system."""
    latencies = [pictures.Latency(**row) for row in report.tables["latency"]]
    return keep_figure(folder_of(report), "latency", pictures.latency_figure(latencies, against=PAIRWISE))


def timing(report: Report) -> Shown:
    """The ratio of joint to pairwise reading time, as measured and by the paper's arithmetic."""
    seconds = {row["system"]: row["seconds"] for row in report.tables["latency"]}
    joint = [value for label, value in seconds.items() if label != PAIRWISE]
    quadratic, linear = expected_ratios(report.parameters["candidates"])
    return Shown(
        f"Joint reading takes {np.mean(joint) / seconds[PAIRWISE]:.2f} times as long as pairwise. By the "
        f"paper's arithmetic, for sentences of one length: (k + 1)&sup2; / 4k = {quadratic:.2f} where time "
        f"grows with the square of the sequence, (k + 1) / 2k = {linear:.2f} where it grows with its length; "
        f"it measured 1.14 (k = 5, WikiQA, one A100)."
    )


ON_A_PAGE = 100
CHANGED = (pictures.OUTCOMES[False, True], pictures.OUTCOMES[True, False])
# The text in the input boxes before the reader types.
EXAMPLE_QUESTION = "How many miners were killed?"
EXAMPLE_CANDIDATES = """\
The mine was opened in 1974.
Some 287 miners were rescued, blinking in the light.
The blast killed 75 miners at once.
The market, with its 294 stalls, opened late.
At the Bortiofara school, 973 pupils spent the day drawing.
"Everybody stood there and looked," he recalled.
"""


def read_rankings(run: AnswerRun, predictions: Predictions, split: str = "test") -> list[ReadRanking]:
    """Each question with the scores of all systems with seed 0, from both rankings."""
    scores: dict[str, Sequence[np.ndarray]] = {}
    for system in run.systems:
        of_system = predictions[system.name, 0]
        scores[system.label] = of_system[split].scores
        if again := of_system.get(f"{split}_{RERANKED}"):
            scores[row_label(system.name, RERANKED, k=run.settings.candidates)] = again.scores
    return [
        read_ranking(one, {label: of_all[number] for label, of_all in scores.items()})
        for number, one in enumerate(run.of_split(split))
    ]


def rankings(run: AnswerRun, predictions: Predictions) -> Widget:
    """A browser of the test questions. Those where a joint system corrects or breaks pairwise's top answer
    (Table 4) also go to `changed/<system>.html`, which needs no kernel, at most ON_A_PAGE of them."""
    reads = read_rankings(run, predictions)
    for system in run.systems[1:]:
        changed = [read for read in reads if read.outcome(system.label, beside=PAIRWISE) in CHANGED]
        if changed:
            form = {"beside": PAIRWISE, "title": f"Where {system.label} changed the answer"}
            page = pictures.rankings_page(changed[:ON_A_PAGE], system=system.label, **form)
            runs.write_page(run.folder / "changed" / f"{system.name}.html", page)
    return RankingBrowser(reads, beside=PAIRWISE)


def own_question(run: AnswerRun) -> Widget:
    """Input boxes for the reader's own question and candidates, and how every system ranks them."""
    question, candidates = own_texts(run.settings.own_question)
    ask = partial(rank_own, run)
    answered = ask(question, candidate_lines(candidates))
    return own_candidates_box(ask, query=question, candidates=candidates, answered=answered)


def rank_own(run: AnswerRun, question: str, candidates: Sequence[str]) -> str:
    """HTML of how every system with seed 0 ranks the candidates; also written to `own_question.html`."""
    rankers = {system.label: run.loaded(system) for system in run.systems}
    table = ranking_table(ranked_own(rankers, question, candidates, **run.settings.predicting))
    html = f"{warning(run.foreign([question, *candidates]))}{table}"
    runs.write_page(
        run.folder / "own_question.html", still_page(html, title=question, note="Ranked candidates")
    )
    return html


def own_texts(file: str) -> tuple[str, str]:
    """The question and the candidates, one a line, from a text file; "" gives the built-in example."""
    if not file:
        return EXAMPLE_QUESTION, EXAMPLE_CANDIDATES
    file = local_path(file, "own_question")  # in other notebooks this parameter is a question
    return first_and_others(read_text(file), source=file, first="a question", other="candidate")


def candidate_lines(text: str) -> list[str]:
    """The non-empty lines of a text, one candidate each. Raises DataError if there are none."""
    return filled_lines(text, source="candidates", remedy="write one candidate on each line")
