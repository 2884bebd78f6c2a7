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
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any, ClassVar, Literal

import numpy as np
import plotly.graph_objects as go
from IPython.display import HTML
from ipywidgets import Widget
from pydantic import Field
from torch import nn
from transformers import PreTrainedTokenizerBase

from cdlm_lab.analysis.joint_diagnosis import ABSENT, JointDiagnosis, diagnose
from cdlm_lab.data.candidates import (
    CandidateCounts,
    checksum_of,
    clean_sets,
    counts_of,
    format_of,
    read_candidate_sets,
)
from cdlm_lab.data.files import read_text, replaced_file
from cdlm_lab.data.records import CandidateSet
from cdlm_lab.data.storyworld.task_sets import read_storyworld_candidates
from cdlm_lab.data.typed_documents import filled_lines, first_and_others
from cdlm_lab.examples.candidates import (
    CandidateExamples,
    EncodedCandidates,
    JointCollate,
    cascade_scores,
    chunks,
    fixed_order,
    top_k,
)
from cdlm_lab.examples.tokens import from_tokenizer
from cdlm_lab.experiments.runs import (
    Cell,
    JointSettings,
    Scores,
    SystemRun,
    Training,
    chosen_systems,
    cost_facts,
    facts_table,
    of_another_run,
    outputs_by_length,
    paired_tests,
    predict,
    read_rows,
    report,
    score_rows,
    sentence_rows,
    train,
    write_rows,
)
from cdlm_lab.metrics.ranking import mean_average_precision, values_per_group
from cdlm_lab.models.checkpoint import default_device
from cdlm_lab.models.joint import JointHead, JointModel, load_joint_model, paragraph_head, scores_of
from cdlm_lab.models.precision import Precision, precision_told
from cdlm_lab.parameters import ParameterError, settings
from cdlm_lab.report import Report, write_json
from cdlm_lab.scores import Score
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.fine_tuning import TrainingJob
from cdlm_lab.widgets.ask import own_candidates_box
from cdlm_lab.widgets.browse import ranking_browser
from cdlm_lab.widgets.html import MUTED, escaped, points_in_words, share_bar, still_page, table_html
from cdlm_lab.widgets.rankings import (
    OUTCOMES,
    Latency,
    ReadRanking,
    accuracy_by_place_figure,
    latency_figure,
    rankings_page,
    score_spread_figure,
)
from cdlm_lab.widgets.score_tables import ANSWER_CORPORA, score_table
from cdlm_lab.widgets.tables import ScoreTable, p_in_words

__all__ = ["Settings", "evaluate", "predict", "prepare", "preview", "report", "train"]

STORYWORLD, PAIRWISE, RANDOM = "storyworld", "pairwise", "random"
HELD_OUT = ("dev", "test")  # splits that are ranked
ALL, RERANKED = "all", "reranked"
RANKINGS = (ALL, RERANKED)
MEASURES = {"p_at_1": "precision_at_1", "map": "average_precision", "mrr": "reciprocal_rank"}
WEIGHT_DECAY = 0.01  # the paper's

# ---- systems, settings and questions ----


@dataclass(frozen=True, slots=True)
class AnswerSystem:
    """What ranks the candidates of a question.

    Attributes:
        name, label: as a parameter, and in tables and figures.
        published: name of its row in the paper's tables.
        head: `ie_1` reads one candidate at a time, `ie_k` and `ae_k` read k.
        pretrained: head of the pre-training with paragraphs, `ie` or `ae`; "" = the plain encoder.
        plain: the system that differs from it by pre-training alone; "" = none.
    """

    name: str
    label: str
    published: str
    head: str
    pretrained: str = ""
    plain: str = ""

    @property
    def is_joint(self) -> bool:
        """True = it reads several candidates at once."""
        return self.head != "ie_1"


ANSWER_SYSTEMS = {
    system.name: system
    for system in (
        AnswerSystem(PAIRWISE, PAIRWISE, PAIRWISE, "ie_1"),
        AnswerSystem("joint-ie", "joint IE_k", "joint-ie_k", "ie_k"),
        AnswerSystem("joint-ae", "joint AE_k", "joint-ae_k", "ae_k"),
        AnswerSystem("mspp-ie", "MSPP IE_k", "mspp-ie_k", "ie_k", "ie", "joint-ie"),
        AnswerSystem("mspp-ae", "MSPP AE_k", "mspp-ae_k", "ae_k", "ae", "joint-ae"),
    )
}


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
    train_questions: int = Field(default=0, ge=0)
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
    """The questions of one split.

    Attributes:
        sets: those that are used, in order.
        read: what was read, questions that are left out too.
        corpus: `storyworld`, `wikiqa`, `trecqa` or `asnq`.
        checksum: of the files; "" = storyworld, which is made.
    """

    sets: tuple[CandidateSet, ...]
    read: CandidateCounts
    corpus: str
    checksum: str


def read_answers(settings: Settings) -> dict[str, AnswerSplit]:
    """Questions of train, dev and test.

    Raises:
        ParameterError: a split has no two questions that can be used.
        DataError: a file that cannot be read.
    """
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


# ---- models and how they score candidates ----


@dataclass(frozen=True, kw_only=True)
class Ranker:
    """A model and how it reads questions with candidates."""

    model: JointModel
    tokenizer: PreTrainedTokenizerBase

    def examples(
        self, sets: Sequence[CandidateSet], *, config: TrainingConfig | None = None
    ) -> CandidateExamples:
        """Groups of candidates: those of a training, in each epoch others and in another order; or each
        candidate once, in groups of an order that knows nothing of labels."""
        return CandidateExamples(
            sets=sets,
            encoded=EncodedCandidates(sets, self.tokenizer),
            layout=self.model.head.form.layout,
            special=from_tokenizer(self.tokenizer),
            shuffle=config is not None,
            size=config.steps * config.batch_size if config else None,
            seed=config.seed if config else 0,
        )

    @property
    def collate(self) -> JointCollate:
        """From examples to batches."""
        return JointCollate(pad_token_id=self.tokenizer.pad_token_id)


@dataclass(frozen=True, kw_only=True)
class AnswerPredictions:
    """How a model scores candidates.

    Attributes:
        sets: questions, in order.
        scores: of each float64 (candidates,), log-odds of being right; nan = the model was not given it.
    """

    sets: Sequence[CandidateSet]
    scores: Sequence[np.ndarray]

    def groups(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """(scores, labels) of each question, as `metrics.ranking` takes them."""
        return [(scores, np.array(one.correct)) for one, scores in zip(self.sets, self.scores, strict=True)]

    def after(self, pairwise: AnswerPredictions) -> AnswerPredictions:
        """One ranking of all candidates: those that this model was given in its order, below them the others
        in that of the pairwise one; scores are whole numbers then."""
        both = zip(pairwise.scores, self.scores, strict=True)
        return replace(self, scores=[cascade_scores(*scores) for scores in both])

    def read_together(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The groups of k in which a joint model has read all candidates, as `joint_diagnosis.diagnose` takes
        them: scores and labels (groups, k), number of the question (groups,)."""
        rows, question = [], []
        for number, (one, scores) in enumerate(zip(self.sets, self.scores, strict=True)):
            for members in chunks(fixed_order(one.candidates, key=one.id), k=k):
                room = (0, k - len(members))
                labels = np.pad(np.array(one.correct, dtype=int)[members], room, constant_values=ABSENT)
                rows.append((np.pad(scores[members], room), labels))
                question.append(number)
        scores, labels = (np.stack(kind) for kind in zip(*rows, strict=True))
        return scores, labels, np.array(question)

    def save(self, file: Path) -> None:
        """Write a line for each question, atomically."""
        plain = ([None if np.isnan(one) else one for one in scores.tolist()] for scores in self.scores)
        write_rows(file, ({"id": one.id, "scores": row} for one, row in zip(self.sets, plain, strict=True)))

    @classmethod
    def load(cls, file: Path, *, sets: Sequence[CandidateSet]) -> AnswerPredictions:
        """Read what `save` wrote. Raises ValueError if it is of other questions."""
        rows = read_rows(file, [one.id for one in sets], what="questions")
        scores = [np.array(row["scores"], dtype=np.float64) for row in rows]
        if [len(row) for row in scores] != [len(one.candidates) for one in sets]:
            raise of_another_run(file, "questions")
        return cls(sets=sets, scores=scores)


def score_answers(
    ranker: Ranker, sets: Sequence[CandidateSet], *, name: str | None = None, **reading: Any
) -> AnswerPredictions:
    """Score every candidate of every question, in groups of as many as the model reads at once.

    Args:
        name: beside the progress bar; None = no bar.
        reading: batch size and precision; scores are float32 in each.
    """
    return score_examples(ranker, ranker.examples(sets), name=name, **reading)


def score_examples(
    ranker: Ranker, examples: CandidateExamples, *, name: str | None = None, **reading: Any
) -> AnswerPredictions:
    """Score the candidates of examples that are not shuffled."""
    scores = [np.full(len(one.candidates), np.nan) for one in examples.sets]
    form = {"name": name, "unit": "group", **reading}
    for numbers, output in outputs_by_length(ranker.model, examples, ranker.collate, **form):
        rows = scores_of(output.logits).reshape(len(numbers), -1)  # (examples, k), the pairwise k being 1
        for row, number in zip(rows, numbers, strict=True):
            question, candidates = examples.owner(number)
            scores[question][candidates] = row[: len(candidates)]
    return AnswerPredictions(sets=examples.sets, scores=scores)


def rerank_answers(
    ranker: Ranker, pairwise: AnswerPredictions, *, name: str | None = None, **reading: Any
) -> AnswerPredictions:
    """Score the candidates that a pairwise model ranks highest, as many as the model reads at once; ties go
    to the first in `fixed_order`. They stand in the sequence in that order too, so that their places do not
    say how the pairwise model ranks them."""
    k = ranker.model.head.form.layout.candidates
    best = [
        np.sort(top_k(scores, fixed_order(one.candidates, key=one.id), k=k))
        for one, scores in zip(pairwise.sets, pairwise.scores, strict=True)
    ]
    sets = [
        replace(
            one,
            candidates=tuple(one.candidates[number] for number in numbers),
            correct=tuple(one.correct[number] for number in numbers),
        )
        for one, numbers in zip(pairwise.sets, best, strict=True)
    ]
    scored = score_answers(ranker, sets, name=name, **reading)
    every = [np.full(len(one.candidates), np.nan) for one in pairwise.sets]
    for row, numbers, scores in zip(every, best, scored.scores, strict=True):
        row[numbers] = scores
    return AnswerPredictions(sets=pairwise.sets, scores=every)


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


Predictions = Mapping[tuple[str, int], Mapping[str, AnswerPredictions]]  # (system, seed) -> data set


def prepare(settings: Settings) -> AnswerRun:
    """Take the folder, read the questions and look whether all is there and fits; nothing is trained.

    Raises:
        ValueError: whatever does not fit, in one line.
        RunError: the folder is not free for this run.
    """
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


# ---- how long a question takes ----

MOST_CANDIDATES = 400  # of the test questions that are timed, together
RUNS = 3


def expected_ratios(k: int) -> tuple[float, float]:
    """How many times as long as pairwise reading joint reading of k candidates should take (appendix C.3), if
    every sentence has one length: of what grows with the square of a sequence (self-attention), (k + 1)^2 /
    4k, and of what grows with its length (all other layers), (k + 1) / 2k."""
    return (k + 1) ** 2 / (4 * k), (k + 1) / (2 * k)


def measured_latencies(run: AnswerRun) -> list[Latency]:
    """Seconds for one question, of every system with seed 0: the first test questions, one after the other,
    all groups of a question at once, without the time for tokenising. Systems take turns, so that whatever
    else the machine does hits all. Measured once and kept in `latency.json`."""
    file = run.folder / "latency.json"
    if not file.is_file():
        sets = timed_sets(run.questions("test"))
        rankers = {system.label: run.ranker(system, trained=True) for system in run.systems}
        measured = _measured(rankers, sets, precision=run.settings.precision)
        write_json(file, {"questions": len(sets), "latencies": [asdict(one) for one in measured]})
    return [Latency(**row) for row in json.loads(file.read_text(encoding="utf-8"))["latencies"]]


def timed_sets(sets: Sequence[CandidateSet]) -> Sequence[CandidateSet]:
    """The first ones, with up to MOST_CANDIDATES candidates together, and at least one."""
    counts = accumulate(len(one.candidates) for one in sets)
    return sets[: max(1, sum(count <= MOST_CANDIDATES for count in counts))]


def _measured(
    rankers: Mapping[str, Ranker], sets: Sequence[CandidateSet], *, precision: Precision
) -> list[Latency]:
    seconds: dict[str, list[float]] = {label: [] for label in rankers}
    examples = {label: [ranker.examples([one]) for one in sets] for label, ranker in rankers.items()}
    for number in range(1 + RUNS):  # the first one tokenises, and is not counted
        for label, ranker in rankers.items():
            start = time.perf_counter()
            for question in examples[label]:
                score_examples(ranker, question, batch_size=len(question), precision=precision)
            if number:
                seconds[label].append((time.perf_counter() - start) / len(sets))
    return [
        Latency(system=label, seconds=median(each), fastest=min(each), slowest=max(each), runs=RUNS)
        for label, each in seconds.items()
    ]


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
        {"system": system, "seed": seed, **_plain(one)}
        for (system, seed), one in diagnoses(run, predictions).items()
    ]
    timed = measured_latencies(run) if latencies is None else latencies
    return Scores(
        rows=[*score_rows(values, clusters, against_pairwise), *_random_rows(run)],
        tables={
            "comparisons": [{**row, "ranking": row["group"]} for row in tests],
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


def diagnoses(run: AnswerRun, predictions: Predictions) -> dict[tuple[str, int], JointDiagnosis]:
    """(joint system, seed) -> what its scores on test look like."""
    diagnosed = {}
    for training in run.trainings:
        if training.system.is_joint:
            scores, labels, question = predictions[training.key]["test"].read_together(
                run.settings.candidates
            )
            diagnosed[training.key] = diagnose(scores, labels, question=question)
    return diagnosed


def _plain(one: JointDiagnosis) -> dict[str, Any]:
    """For the report; None where no group has a candidate."""
    by_place = {
        name: [None if math.isnan(value) else value for value in getattr(one, name).tolist()]
        for name in ("accuracy", "always_wrong", "first", "first_random")
    }
    return {
        "collapsed": one.collapsed,
        "verdict": one.verdict,
        "map": one.scores["average_precision"],
        "random_map": one.random["average_precision"],
        "gain": one.gain,
        "median_spread": float(np.median(one.spread)),
        "by_place": one.by_place,
        **by_place,
    }


# ---- views of the report ----


def row_label(system: str, ranking: str, *, k: int) -> str:
    """What tables and figures call a system with a ranking."""
    if system == RANDOM:
        return "random order"
    label = ANSWER_SYSTEMS[system].label
    return label if ranking == ALL else f"{label} on pairwise's top {k}"


def answers_table(report: Report, *, ranking: str = ALL, split: str = "test") -> ScoreTable:
    """The table of one split. With ranking `all`, the paper's Table 1; with `reranked`, Tables 2 and 7:
    pairwise, and the joint systems on its best candidates. Numbers of the paper stand beside those of
    test."""
    ranked = {row.system for row in report.rows if row.group == ranking}
    labels = {
        system: row_label(system, ranking if system in ranked else ALL, k=report.parameters["candidates"])
        for system in (*ANSWER_SYSTEMS, RANDOM)
    }
    name = report.data["format"][split]
    caption = f"Answers chosen: {ANSWER_CORPORA.get(name, name)}, {split}"
    return score_table(report, labels=labels, group=ranking, split=split, caption=caption)


def comparisons(report: Report, *, ranking: str = ALL) -> HTML:
    """The tests on test: for each pair of systems and measure the difference in points with its interval, and
    both p-values."""
    rows: dict[tuple[str, str], list[str]] = {}
    for row in report.tables["comparisons"]:
        if row["group"] == ranking:
            labels = [ANSWER_SYSTEMS[row[side]].label for side in "ab"]
            rows.setdefault((row["a"], row["b"]), labels).append(_test_cell(row))
    first = "all candidates" if ranking == ALL else "ranked anew"
    return HTML(table_html([first, "against", "P@1", "MAP", "MRR"], [*rows.values()], text_columns=(0, 1)))


def _test_cell(row: Mapping[str, Any]) -> str:
    difference, low, high = (points_in_words(row[name]) for name in ("difference", "low", "high"))
    seeds = "" if row["p_seeds"] is None else f"; over seeds {p_in_words(row['p_seeds'])}"
    p = f"p {p_in_words(row['p_holm'])}{seeds}"
    return f'{difference} [{low}, {high}]<div style="font-size:11px;{MUTED}">{p}</div>'


def collapses(report: Report) -> HTML:
    """What became of each joint system with each seed."""
    rows = [
        [ANSWER_SYSTEMS[row["system"]].label, str(row["seed"]), escaped(row["verdict"])]
        for row in report.tables["diagnosis"]
    ]
    return HTML(table_html(["system", "seed", "on test"], rows, text_columns=(0, 1, 2)))


def collapse_figures(run: AnswerRun, predictions: Predictions) -> list[go.Figure]:
    """Spread of scores and accuracy by place, of the joint systems with seed 0."""
    diagnosed = diagnoses(run, predictions).items()
    first = {ANSWER_SYSTEMS[name].label: one for (name, seed), one in diagnosed if not seed}
    return [
        score_spread_figure({label: one.spread for label, one in first.items()}),
        accuracy_by_place_figure(first),
    ]


def timing_figure(report: Report) -> go.Figure:
    """Seconds a question, of each system."""
    return latency_figure([Latency(**row) for row in report.tables["latency"]], against=PAIRWISE)


def timing(report: Report) -> HTML:
    """How many times as long as pairwise reading joint reading takes, measured and by the paper."""
    seconds = {row["system"]: row["seconds"] for row in report.tables["latency"]}
    joint = [value for label, value in seconds.items() if label != PAIRWISE]
    quadratic, linear = expected_ratios(report.parameters["candidates"])
    return HTML(
        f"Joint reading takes {np.mean(joint) / seconds[PAIRWISE]:.2f} times as long as pairwise. By the "
        f"paper's arithmetic, for sentences of one length: (k + 1)&sup2; / 4k = {quadratic:.2f} where time "
        f"grows with the square of the sequence, (k + 1) / 2k = {linear:.2f} where it grows with its length; "
        f"it measured 1.14 (k = 5, WikiQA, one A100)."
    )


# ---- questions one by one ----

ON_A_PAGE = 100
CHANGED = (OUTCOMES[False, True], OUTCOMES[True, False])
# What stands in the boxes before anything is typed.
EXAMPLE_QUESTION = "How many passengers were aboard the ferry?"
EXAMPLE_CANDIDATES = """\
The ferry to Telk sails again from Monday, the harbour office said.
Divers searched the harbour of Telk until dark.
In all, 214 passengers and a crew of nine were aboard when the ferry left Telk.
The ferry, built in 1987, had passed its last inspection in spring.
A ticket for the crossing costs 14 crowns.
"No alarm was heard on board," said Marta Elling, a teacher, one of the passengers.
"""


def read_rankings(run: AnswerRun, predictions: Predictions, split: str = "test") -> list[ReadRanking]:
    """Each question with the scores of all systems with seed 0, and of the joint ones on the best of
    pairwise."""
    scores: dict[str, Sequence[np.ndarray]] = {}
    for system in run.systems:
        of_system = predictions[system.name, 0]
        scores[system.label] = of_system[split].scores
        if again := of_system.get(f"{split}_{RERANKED}"):
            scores[row_label(system.name, RERANKED, k=run.settings.candidates)] = again.scores
    return [
        _read_ranking(one, {label: of_all[number] for label, of_all in scores.items()})
        for number, one in enumerate(run.questions(split))
    ]


def rankings(run: AnswerRun, predictions: Predictions) -> Widget:
    """Questions of test to leaf through. Those on which a joint system changed what pairwise has right on top
    (Table 4) also go to `changed/<system>.html` in the folder of the run, which need no kernel; the first
    ON_A_PAGE of them."""
    reads = read_rankings(run, predictions)
    for system in run.systems[1:]:
        changed = [read for read in reads if read.outcome(system.label, beside=PAIRWISE) in CHANGED]
        if changed:
            title = f"Where {system.label} changed the answer"
            page = rankings_page(changed[:ON_A_PAGE], system=system.label, beside=PAIRWISE, title=title)
            _write(run.folder / "changed" / f"{system.name}.html", page)
    return ranking_browser(reads, beside=PAIRWISE)


def own_question(run: AnswerRun) -> Widget:
    """Boxes for a question and candidates of one's own, and what every system makes of them, that of what
    stands in the boxes at first included."""
    answer = own_ranking(run)
    question, candidates = own_texts(run.settings.own_question)
    answered = answer(question, candidate_lines(candidates))
    return own_candidates_box(answer, query=question, candidates=candidates, answered=answered)


def own_ranking(run: AnswerRun) -> Callable[[str, Sequence[str]], str]:
    """From a question and candidates to HTML: what every system trained with seed 0 makes of them. Models are
    loaded when they are first needed; the answer is also written to `own_question.html` in the folder of the
    run."""
    rankers: dict[str, Ranker] = {}

    def answer(question: str, candidates: Sequence[str]) -> str:
        if not rankers:
            rankers.update({one.label: run.ranker(one, trained=True) for one in run.systems})
        correct = (False,) * len(candidates)
        one = CandidateSet(id="own", question=question, candidates=tuple(candidates), correct=correct)
        reading = run.settings.predicting
        scored = {label: score_answers(ranker, [one], **reading) for label, ranker in rankers.items()}
        scores = {label: predictions.scores[0] for label, predictions in scored.items()}
        html = _table(_read_ranking(one, scores, known=False))
        _write(run.folder / "own_question.html", still_page(html, title=question, note="Ranked candidates"))
        return html

    return answer


def own_texts(file: str) -> tuple[str, str]:
    """A question and candidates, one a line, from a text file with the question on the first; the example if
    `file` is "". Raises DataError if it cannot be read or has no candidates."""
    if not file:
        return EXAMPLE_QUESTION, EXAMPLE_CANDIDATES
    return first_and_others(read_text(file), source=file, first="a question", other="candidate")


def candidate_lines(text: str) -> list[str]:
    """One candidate a line, empty lines left out. Raises DataError if there are none."""
    return filled_lines(text, source="candidates", remedy="write one candidate on each line")


def _read_ranking(one: CandidateSet, scores: dict[str, np.ndarray], *, known: bool = True) -> ReadRanking:
    """The candidates in an order that knows nothing of labels, for what ties leave open."""
    order = fixed_order(one.candidates, key=one.id)
    return ReadRanking(
        id=one.id if known else "",
        question=one.question,
        candidates=tuple(one.candidates[number] for number in order),
        right=tuple(one.correct[number] for number in order) if known else None,
        scores={
            label: [None if np.isnan(score) else float(score) for score in values[order]]
            for label, values in scores.items()
        },
    )


def _table(read: ReadRanking) -> str:
    """Candidates in the order of the last system, and of each system place and probability."""
    systems = list(read.scores)
    places = {name: {number: at for at, number in enumerate(read.order(name), 1)} for name in systems}
    probabilities = {name: read.probabilities(name) for name in systems}
    rows = [
        [
            f'<div dir="auto">{escaped(read.candidates[number])}</div>',
            *(_cell(places[name][number], probabilities[name][number]) for name in systems),
        ]
        for number in read.order(systems[-1])
    ]
    heading = f"in the order of {escaped(systems[-1])}; of each system, place and probability"
    return table_html([heading, *map(escaped, systems)], rows)


def _cell(place: int, probability: float) -> str:
    number = f"<b>{place}</b>" if place == 1 else str(place)
    return f'<div style="display:inline-flex;gap:8px">{number}{share_bar(probability)}</div>'


def _write(file: Path, page: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with replaced_file(file) as opened:
        opened.write(page)
