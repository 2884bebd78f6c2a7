"""Choosing answers with several candidates at once (Di Liello et al. 2022, "MSPP", section 4 and appendix
B.1): notebook 09.

Each system is trained with each seed; of its passes over the training questions the one with the highest MAP
on dev is kept. Dev and test are ranked once by each, and its best candidates, once more, by each joint system
(Tables 2 and 7), with the same seed and without further training; candidates beyond them stay below, in
the order of pairwise. (The paper does not say what its joint systems were trained on there. The released
scripts train them on pairwise's best candidates, and drop the others from the metrics too.) All that is
finished stays in the run folder: a stopped run goes on where it was.

From the corpus that notebook 09 names to questions with candidates in three splits: storyworld, or files
of WikiQA, TREC-QA or ASNQ.

Dev and test are always "clean": their questions have a right candidate and a wrong one (MSPP paper, section
4.1). Of training the paper says two things of WikiQA, clean in appendix A.2 and all 2,118 questions in Table
5, so that is a parameter.

The systems that choose answers, as notebook 09 names them (Di Liello et al. 2022, "MSPP", Table 1).

From the name of a system to a model, and to what it reads at once (MSPP paper, sections 3.2 and 3.3).

How a model scores the candidates of questions, all of them or the best of a pairwise model, kept on disk:
a line of JSON for each question.

What there is to know before a run of notebook 09: what is asked, what is cut, what training takes; and a
group of candidates as a joint model reads it.

How long systems take for one question, measured, beside what the MSPP paper expects (appendix C.3).

P@1, MAP and MRR of every system, with intervals over questions, deviations over seeds, and tests.

Each joint system is scored twice: `all`, all candidates in groups of k, ranked together (the paper's Table
1), and `reranked`, the k that the pairwise system ranks highest above all others (Tables 2 and 7).

After a run of notebook 09: the report, and what its tables and figures show.

Questions with the candidates in the order of systems: those of test, where joint reading changed the
answer (Table 4 of the MSPP paper), or one of one's own.

Percentile ranks of many targets under many models, kept on disk as they come (CDLM section 3.5).
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import plotly.graph_objects as go
import torch
from ipywidgets import Widget
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.analysis.joint_diagnosis import ABSENT, JointDiagnosis, diagnose
from cdlm_lab.analysis.percentile_rank import (
    candidate_mask,
    chance_rank,
    source_scores,
    target_rank,
)
from cdlm_lab.analysis.source_attention import SourceAttention, attend_to_source
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
    POSITIONS,
    CandidateExamples,
    EncodedCandidates,
    JointCollate,
    cascade_scores,
    chunks,
    fixed_order,
    top_k,
)
from cdlm_lab.examples.collate import batches_by_length
from cdlm_lab.examples.mention_pairs import AlignedPair
from cdlm_lab.examples.packing import DocumentSequence, document_sequence
from cdlm_lab.examples.tokens import EncodedDocument, SpecialTokens, from_tokenizer
from cdlm_lab.experiments.pretraining import token_texts
from cdlm_lab.experiments.runs import FineTuning, KeptNumbers, paragraph_checkpoint, time_told
from cdlm_lab.metrics.ranking import mean_average_precision, values_per_group
from cdlm_lab.metrics.significance import compare_means, holm, mean_score, t_test_of_seeds
from cdlm_lab.models.checkpoint import default_device
from cdlm_lab.models.dropout import AttentionDropout
from cdlm_lab.models.estimate import parameter_count
from cdlm_lab.models.joint import (
    LAYERS,
    JointHead,
    JointModel,
    load_joint_model,
    paragraph_head,
    scores_of,
)
from cdlm_lab.models.precision import Precision, computing_in, precision_told
from cdlm_lab.parameters import (
    ParameterError,
    check_choice,
    check_least,
    check_types,
    parameters_of,
)
from cdlm_lab.progress import Progress
from cdlm_lab.report import Report, Run, write_json
from cdlm_lab.training.checkpoints import MODEL_FOLDER
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.fine_tuning import Recipe, TrainingJob, fine_tune
from cdlm_lab.training.history import seconds_of_batch
from cdlm_lab.training.processes import Processes
from cdlm_lab.widgets.answer_table import CORPUS_NAMES, AnswerRow, answer_table_html
from cdlm_lab.widgets.ask import own_candidates_box
from cdlm_lab.widgets.browse import ranking_browser
from cdlm_lab.widgets.html import MUTED, escaped, points_in_words, share_bar, still_page, table_html
from cdlm_lab.widgets.matching_table import p_in_words
from cdlm_lab.widgets.measured_score import MeasuredScore
from cdlm_lab.widgets.rankings import (
    OUTCOMES,
    Latency,
    ReadRanking,
    accuracy_by_place_figure,
    latency_figure,
    rankings_page,
    score_spread_figure,
)

SPLITS = ("train", "dev", "test")
STORYWORLD = "storyworld"
TRAIN_ON = ("clean", "all")


@dataclass(frozen=True, kw_only=True)
class AnswerCorpus:
    """Which questions are learned from, and which are ranked.

    Attributes:
        corpus: `storyworld`, or a folder of WikiQA, TREC-QA or ASNQ (see data/candidate_files.py).
        test_corpus: the same, whose test questions are ranked; "" = those of `corpus`.
        train_stories, held_out_stories: of storyworld, three questions each.
        train_on: `clean` = questions that have right and wrong candidates, or `all`.
        train_questions: at most so many are drawn of those for training, the same ones in each run; 0 = all.
    """

    corpus: str = STORYWORLD
    test_corpus: str = ""
    train_stories: int = 60
    held_out_stories: int = 24
    train_on: str = "clean"
    train_questions: int = 0

    def __post_init__(self) -> None:
        check_types(self)
        check_choice(self, TRAIN_ON, "train_on")
        check_least(self, 2, "train_stories", "held_out_stories")
        check_least(self, 0, "train_questions")

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


def read_answers(settings: AnswerCorpus) -> dict[str, AnswerSplit]:
    """Questions of train, dev and test.

    Raises:
        ParameterError: a split has no question that can be used.
        DataError: as of `read_candidate_sets`.
    """
    return {split: _split(settings, split) for split in SPLITS}


def cluster_of(one: CandidateSet) -> str:
    """What a question has in common with others, for intervals: of storyworld the story, else the question
    itself."""
    return one.id.rpartition("-c")[0] if one.id.startswith(f"{STORYWORLD}-") else one.id


def _split(settings: AnswerCorpus, split: str) -> AnswerSplit:
    source = settings.source_of(split)
    if source == STORYWORLD:
        stories = settings.train_stories if split == "train" else settings.held_out_stories
        found, corpus, checksum = list(read_storyworld_candidates(split, stories)), STORYWORLD, ""
    else:
        found = read_candidate_sets(source, split)
        corpus, checksum = format_of(source), checksum_of(source, split)
    kept = found if split == "train" and settings.train_on == "all" else clean_sets(found)
    if len(kept) < 2:
        raise ParameterError(
            f"{source}: {len(kept)} of the {len(found)} questions of {split} can be used: others have "
            "no right or no wrong candidate; give at least two"
        )
    if split == "train":
        kept = _drawn(kept, settings.train_questions)
    return AnswerSplit(sets=tuple(kept), read=counts_of(found), corpus=corpus, checksum=checksum)


def _drawn(sets: Sequence[CandidateSet], most: int) -> Sequence[CandidateSet]:
    """The questions that are learned from, in their order."""
    if not most or most >= len(sets):
        return sets
    return [sets[number] for number in sorted(np.random.default_rng(0).permutation(len(sets))[:most])]


PAIRWISE = "pairwise"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSystem:
    """What ranks the candidates of a question.

    Attributes:
        name, label: as a parameter, and in tables and figures.
        published: name of its row in the paper's tables, as of `widgets.answer_table`.
        head: as of `JointHead`; `ie_1` reads one candidate at a time, the others k.
        pretrained: True = with MSPP, before it is fine-tuned.
        plain: the system that differs from it by pre-training alone; "" = none.
    """

    name: str
    label: str
    published: str
    head: str
    pretrained: bool = False
    plain: str = ""

    @property
    def is_joint(self) -> bool:
        """True = it reads several candidates at once."""
        return self.head != "ie_1"


ANSWER_SYSTEMS = {
    system.name: system
    for system in (
        AnswerSystem(name=PAIRWISE, label=PAIRWISE, published=PAIRWISE, head="ie_1"),
        AnswerSystem(name="joint-ie", label="joint IE_k", published="joint-ie_k", head="ie_k"),
        AnswerSystem(name="joint-ae", label="joint AE_k", published="joint-ae_k", head="ae_k"),
        AnswerSystem(
            name="mspp-ie",
            label="MSPP IE_k",
            published="mspp-ie_k",
            head="ie_k",
            pretrained=True,
            plain="joint-ie",
        ),
        AnswerSystem(
            name="mspp-ae",
            label="MSPP AE_k",
            published="mspp-ae_k",
            head="ae_k",
            pretrained=True,
            plain="joint-ae",
        ),
    )
}


def answer_systems(names: str) -> tuple[AnswerSystem, ...]:
    """The systems of a list of names separated by spaces, in the order of the paper's tables.

    Raises:
        ParameterError: an unknown name; not `pairwise`, or nothing but it.
    """
    asked = names.split()
    if unknown := [name for name in asked if name not in ANSWER_SYSTEMS]:
        raise ParameterError(f"systems names {unknown[0]!r}; choose among {', '.join(ANSWER_SYSTEMS)}")
    found = tuple(system for name, system in ANSWER_SYSTEMS.items() if name in asked)
    if PAIRWISE not in asked or len(found) < 2:
        raise ParameterError(
            f"systems is {names!r}; name pairwise, whose best candidates are ranked anew, and at least one "
            f"of {', '.join(name for name in ANSWER_SYSTEMS if name != PAIRWISE)}"
        )
    return found


@dataclass(frozen=True, kw_only=True)
class AnswerModels:
    """What the systems are made of.

    Attributes:
        systems: their names, separated by spaces (see experiments/answer_systems.py).
        encoder: of the systems without MSPP: a folder, a hub name, `minilm`, or one that comes with the
            project.
        mspp: a run folder of notebook 08, or a folder that holds several, of which the head tells the one for
            a system; systems without MSPP need none.
        candidates: k, how many are read at once.
        sentence_length: L, tokens of a sentence in a joint sequence, the one in front included.
        pairwise_length: the same of a pair. The paper gives every model L(k + 1) tokens in all, which is
            L(k + 1) / 2 for each of two sentences: 192 with its values.
        positions: of joint sequences, `strided` (the paper) or `compact` (its released code); a pair is
            always compact, as cross-encoders are.
        head_layers: `linear` (the paper) or `tanh` (its released code).
    """

    systems: str = "pairwise joint-ie joint-ae"
    encoder: str = "storyworld/longformer"
    mspp: str = ""
    candidates: int = 5
    sentence_length: int = 32
    pairwise_length: int = 32
    positions: str = "strided"
    head_layers: str = "linear"

    def __post_init__(self) -> None:
        check_types(self)
        answer_systems(self.systems)
        check_least(self, 2, "candidates", "sentence_length", "pairwise_length")
        check_choice(self, POSITIONS, "positions")
        check_choice(self, LAYERS, "head_layers")

    @property
    def chosen(self) -> tuple[AnswerSystem, ...]:
        """The systems, in the order of the paper's tables; pairwise is the first."""
        return answer_systems(self.systems)

    def head_of(self, system: AnswerSystem) -> JointHead:
        """The head of a system, which knows the layout of its sequences."""
        return JointHead(
            kind=system.head,
            sentences=1 + (self.candidates if system.is_joint else 1),
            length=self.sentence_length if system.is_joint else self.pairwise_length,
            positions=self.positions if system.is_joint else "compact",
            layers=self.head_layers,
        )

    def checkpoint_of(self, system: AnswerSystem) -> str:
        """What a system starts from; errors as of `paragraph_checkpoint`."""
        if not system.pretrained:
            return self.encoder
        return paragraph_checkpoint(self.mspp, head=system.head.removesuffix("_k"))


@dataclass(frozen=True, kw_only=True)
class Ranker:
    """A model and how it reads questions with candidates."""

    model: JointModel
    tokenizer: PreTrainedTokenizerBase

    def examples(self, sets: Sequence[CandidateSet]) -> CandidateExamples:
        """Each candidate once, in groups of an order that knows nothing of labels."""
        return self._examples(sets, shuffle=False)

    def training_examples(self, sets: Sequence[CandidateSet], *, size: int, seed: int) -> CandidateExamples:
        """`size` examples, in each pass in other groups and in another order."""
        return self._examples(sets, shuffle=True, size=size, seed=seed)

    def _examples(
        self, sets: Sequence[CandidateSet], *, shuffle: bool, size: int | None = None, seed: int = 0
    ) -> CandidateExamples:
        return CandidateExamples(
            sets=sets,
            encoded=EncodedCandidates(sets, self.tokenizer),
            layout=self.model.head.form.layout,
            special=from_tokenizer(self.tokenizer),
            shuffle=shuffle,
            size=size,
            seed=seed,
        )

    @property
    def collate(self) -> JointCollate:
        """From examples to batches."""
        return JointCollate(pad_token_id=self.tokenizer.pad_token_id)


def new_ranker(
    source: str | Path,
    head: JointHead,
    *,
    seed: int,
    dropout: float | None = None,
    attention_dropout: AttentionDropout = 0.0,
) -> Ranker:
    """A new one on an encoder, or a trained one from its folder; arguments and errors as of
    `load_joint_model`."""
    model, tokenizer = load_joint_model(
        source, head=head, seed=seed, dropout=dropout, attention_dropout=attention_dropout
    )
    return Ranker(model=model, tokenizer=tokenizer)


@dataclass(frozen=True, kw_only=True)
class AnswerPredictions:
    """What a model says of candidates.

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
        """Write a line for each question, in one go."""
        file.parent.mkdir(parents=True, exist_ok=True)
        with replaced_file(file) as opened:
            for one, scores in zip(self.sets, self.scores, strict=True):
                plain = [None if np.isnan(score) else score for score in scores.tolist()]
                opened.write(json.dumps({"id": one.id, "scores": plain}, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, file: Path, *, sets: Sequence[CandidateSet]) -> AnswerPredictions:
        """Read what `save` wrote.

        Raises:
            ValueError: it is of other questions.
        """
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n")[:-1]]
        found = [(row["id"], len(row["scores"])) for row in rows]
        if found != [(one.id, len(one.candidates)) for one in sets]:
            raise ValueError(f"{file} is of other questions, so of another run: choose another run folder")
        return cls(sets=sets, scores=[np.array(row["scores"], dtype=np.float64) for row in rows])


def score_answers(
    ranker: Ranker,
    sets: Sequence[CandidateSet],
    *,
    batch_size: int,
    precision: Precision = "float32",
    name: str | None = None,
) -> AnswerPredictions:
    """Score every candidate of every question, in groups of as many as the model reads at once.

    Args:
        batch_size: groups read at once; changes nothing but speed and memory.
        precision: of the forward pass, as of `resolve_precision`; scores are float32 in each.
        name: beside the progress bar; None = no bar.
    """
    form = {"batch_size": batch_size, "precision": precision, "name": name}
    return score_examples(ranker.model, ranker.examples(sets), ranker.collate, **form)


def rerank_answers(
    ranker: Ranker, pairwise: AnswerPredictions, *, batch_size: int, precision: Precision = "float32"
) -> AnswerPredictions:
    """Score the candidates that a pairwise model ranks highest, as many as the model reads at once; of equal
    ones what comes first in `fixed_order`. They stand in the sequence in that order too, so that their places
    do not say how the pairwise model ranks them. `batch_size`, `precision`: as of `score_answers`."""
    k = ranker.model.head.form.layout.candidates
    best = [
        np.sort(top_k(scores, fixed_order(one.candidates, key=one.id), k=k))
        for one, scores in zip(pairwise.sets, pairwise.scores, strict=True)
    ]
    sets = [_only(one, numbers) for one, numbers in zip(pairwise.sets, best, strict=True)]
    found = []
    scored = score_answers(ranker, sets, batch_size=batch_size, precision=precision).scores
    for one, numbers, scores in zip(pairwise.sets, best, scored, strict=True):
        every = np.full(len(one.candidates), np.nan)
        every[numbers] = scores
        found.append(every)
    return AnswerPredictions(sets=pairwise.sets, scores=found)


def score_examples(
    model: JointModel,
    examples: CandidateExamples,
    collate: JointCollate,
    *,
    batch_size: int,
    precision: Precision = "float32",
    name: str | None = None,
) -> AnswerPredictions:
    """Score the candidates of examples that are not shuffled, longest first, so that batches hold little
    padding; arguments as of `score_answers`."""
    model = model.to(default_device()).eval()
    found = [np.full(len(one.candidates), np.nan) for one in examples.sets]
    lengths = [examples.length_of(number) for number in range(len(examples))]
    with (
        Progress(total=len(examples), desc=name, unit="group", disable=name is None) as bar,
        computing_in(precision, model.device),
    ):
        for numbers in batches_by_length(lengths, [0] * len(lengths), batch_size):
            scores = _scores(model, collate, [examples[number] for number in numbers])
            for row, number in zip(scores, numbers, strict=True):
                question, candidates = examples.owner(number)
                found[question][candidates] = row[: len(candidates)]
            bar.update(len(numbers))
    return AnswerPredictions(sets=examples.sets, scores=found)


@torch.inference_mode()
def _scores(model: JointModel, collate: JointCollate, examples: Sequence[dict]) -> np.ndarray:
    """(examples, k), the pairwise model's k being 1."""
    batch = {name: values.to(model.device) for name, values in collate(examples).items() if name != "labels"}
    return scores_of(model(**batch).logits).reshape(len(examples), -1)


def _only(one: CandidateSet, numbers: np.ndarray) -> CandidateSet:
    """A question with some of its candidates."""
    return replace(
        one,
        candidates=tuple(one.candidates[number] for number in numbers),
        correct=tuple(one.correct[number] for number in numbers),
    )


HELD_OUT = ("dev", "test")  # that are ranked
WEIGHT_DECAY = 0.01  # the paper's


@dataclass(frozen=True, kw_only=True)
class AnswerSettings:
    """All parameters of a run but its folder."""

    corpus: AnswerCorpus = field(default_factory=AnswerCorpus)
    models: AnswerModels = field(default_factory=AnswerModels)
    training: FineTuning = field(default_factory=FineTuning)

    @property
    def parameters(self) -> dict[str, Any]:
        """By name, those of all parts."""
        return parameters_of(self)


# The parameters of notebook 09.
PARAMETERS = ("run_folder", *AnswerSettings().parameters, "own_question")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """What a trained system says of the questions of one split.

    Attributes:
        every: scores of all candidates.
        best: of those alone that the pairwise system with the same seed ranks highest; None = this is it.
    """

    every: AnswerPredictions
    best: AnswerPredictions | None


@dataclass(frozen=True, kw_only=True)
class AnswerRun:
    """The questions of a run and the folder that it works in."""

    settings: AnswerSettings
    splits: dict[str, AnswerSplit]
    folder: Path

    @property
    def systems(self) -> tuple[AnswerSystem, ...]:
        """In the order of the paper's tables; pairwise is the first."""
        return self.settings.models.chosen

    @property
    def trainings(self) -> list[tuple[AnswerSystem, int]]:
        """Each system with each seed."""
        return [(system, seed) for system in self.systems for seed in range(self.settings.training.seeds)]

    def sets(self, split: str) -> tuple[CandidateSet, ...]:
        """The questions of a split."""
        return self.splits[split].sets

    def folder_of(self, system: AnswerSystem, seed: int) -> Path:
        """Where a system trained with a seed is kept."""
        return self.folder / "systems" / f"{system.name}-{seed}"

    def ranker(self, system: AnswerSystem, seed: int, *, trained: bool) -> Ranker:
        """A new one, or the one that was trained. Errors as of `new_ranker` and `checkpoint_of`."""
        models = self.settings.models
        kept = self.folder_of(system, seed) / MODEL_FOLDER
        source = kept if trained else models.checkpoint_of(system)
        training = self.settings.training
        return new_ranker(
            source,
            models.head_of(system),
            seed=seed,
            dropout=training.dropout,
            attention_dropout=training.attention_dropout,
        )

    @cached_property
    def untrained(self) -> dict[str, Ranker]:
        """Pairwise and the first joint system, loaded once for all that looks before the start; not to be
        trained."""
        return {system.name: self.ranker(system, 0, trained=False) for system in self.systems[:2]}

    def examples_of(self, system: AnswerSystem, split: str) -> int:
        """How many examples a split gives, each candidate being in one."""
        k = self.settings.models.head_of(system).layout.candidates
        return sum(-(-len(one.candidates) // k) for one in self.sets(split))

    def config_of(self, system: AnswerSystem, seed: int) -> TrainingConfig:
        """How a system is trained. Raises ParameterError for values that cannot be."""
        config = self.settings.training.config(items=self.examples_of(system, "train"), seed=seed)
        return replace(config, weight_decay=WEIGHT_DECAY)


# (system, seed) -> split
Found = dict[tuple[str, int], dict[str, Ranked]]


def prepare_answers(settings: AnswerSettings, folder: Path) -> AnswerRun:
    """Read the questions and look whether all is there and fits; nothing is trained.

    Raises ValueError with one clear line for whatever does not fit.
    """
    models = settings.models
    for system in models.chosen:  # before the reading, which may take long
        models.checkpoint_of(system)
    run = AnswerRun(settings=settings, splits=read_answers(settings.corpus), folder=folder)
    for system in run.systems:
        run.config_of(system, 0)
        run.ranker(system, 0, trained=False)  # are there positions enough?
    return run


def rank_answers(run: AnswerRun) -> Found:
    """(system, seed) -> split -> scores; trained where that was not done yet.

    Raises Stopped when it was asked to stop; the same call goes on from there.
    """
    found: Found = {}
    for system, seed in run.trainings:
        if not all(file.is_file() for split in HELD_OUT for file in _files(run, system, seed, split)):
            _rank(run, system, seed, pairwise=found.get((PAIRWISE, seed)))
        found[system.name, seed] = {split: _read(run, system, seed, split) for split in HELD_OUT}
    return found


def _files(run: AnswerRun, system: AnswerSystem, seed: int, split: str) -> list[Path]:
    """Where the scores of a split are kept: those of all candidates, and for a joint system those of the best
    of pairwise."""
    kinds = ("", "_reranked") if system.is_joint else ("",)
    return [run.folder_of(system, seed) / f"{split}{kind}.jsonl" for kind in kinds]


def _read(run: AnswerRun, system: AnswerSystem, seed: int, split: str) -> Ranked:
    every, *best = (
        AnswerPredictions.load(file, sets=run.sets(split)) for file in _files(run, system, seed, split)
    )
    return Ranked(every=every, best=best[0] if best else None)


def _rank(run: AnswerRun, system: AnswerSystem, seed: int, *, pairwise: Mapping[str, Ranked] | None) -> None:
    """Write the scores of all splits; `pairwise`: what a joint system ranks anew."""
    if not (run.folder_of(system, seed) / MODEL_FOLDER).is_dir():
        _train(run, system, seed)
    ranker, training = run.ranker(system, seed, trained=True), run.settings.training
    form = {"batch_size": training.micro_batch_size, "precision": training.precision}
    for split in HELD_OUT:
        name = f"{system.label}, seed {seed}: {split}"
        every, *best = _files(run, system, seed, split)
        score_answers(ranker, run.sets(split), **form, name=name).save(every)
        if best and pairwise:
            rerank_answers(ranker, pairwise[split].every, **form).save(best[0])


def _train(run: AnswerRun, system: AnswerSystem, seed: int) -> None:
    arguments = {"settings": run.settings, "folder": str(run.folder), "system": system.name, "seed": seed}
    fine_tune(
        _job(run, system, seed),
        folder=run.folder_of(system, seed),
        name=f"{system.label}, seed {seed}",
        parallel=run.settings.training.parallel,
        recipe=Recipe(function=prepare_job, arguments=arguments),
    )


def prepare_job(*, settings: AnswerSettings, folder: str, system: str, seed: int) -> TrainingJob:
    """That of a system and a seed, for each of several processes. Errors as of `prepare_answers`."""
    run = AnswerRun(settings=settings, splits=read_answers(settings.corpus), folder=Path(folder))
    return _job(run, next(one for one in run.systems if one.name == system), seed)


def _job(run: AnswerRun, system: AnswerSystem, seed: int) -> TrainingJob:
    ranker, config = run.ranker(system, seed, trained=False), run.config_of(system, seed)
    dev, size = ranker.examples(run.sets("dev")), config.steps * config.batch_size

    def judge(model: Any) -> float:
        form = {"batch_size": config.micro_batch_size, "precision": config.precision}
        scored = score_examples(model, dev, ranker.collate, **form)
        return mean_average_precision(scored.groups())

    return TrainingJob(
        model=ranker.model,
        tokenizer=ranker.tokenizer,
        train_examples=ranker.training_examples(run.sets("train"), size=size, seed=seed),
        validation_examples=dev,
        collate=ranker.collate,
        config=config,
        judge=judge,
    )


LOOKED_AT = 500  # questions of a split in which sentences are measured: more would take long to tokenise
_LABELS = {True: "right", False: "wrong"}


def facts(run: AnswerRun) -> list[tuple[str, str]]:
    """What there is to know before the start, as (name, text)."""
    return [*question_facts(run), *pretraining_facts(run), *training_facts(run)]


def question_facts(run: AnswerRun) -> list[tuple[str, str]]:
    """What is asked, what was left out, and how many sentences of the first LOOKED_AT questions of each split
    do not fit, as (name, text)."""
    rows = []
    for split in SPLITS:
        rows.append((split, _questions_told(run.splits[split])))
        told = [
            f"{_share_cut(run.untrained[system.name], run.sets(split)):.0%} ({system.label})"
            for system in run.systems[:2]
        ]
        rows.append((f"{split}: candidates that lose their end", ", ".join(told)))
    return rows


def pretraining_facts(run: AnswerRun) -> list[tuple[str, str]]:
    """What each system with MSPP was pretrained to read, where that is not what it reads here, as (name,
    text)."""
    rows = []
    for system in run.systems:
        source = run.settings.models.checkpoint_of(system)
        found = paragraph_head(source) if system.pretrained else None
        wanted = run.settings.models.head_of(system)
        if found and found[0] != wanted:
            head = found[0]
            told = (
                f"{head.sentences - 1} candidates of {head.length} tokens, {head.positions} positions, "
                f"{head.layers} head"
            )
            kept = "" if head.layers == wanted.layers else "; its head is not used"
            rows.append((f"{system.label}: pretrained with", f"{told}{kept}"))
    return rows


def training_facts(run: AnswerRun) -> list[tuple[str, str]]:
    """What training pairwise and joint systems takes, as (name, text); takes a few seconds, for one batch is
    learned from to know how long a step takes. Joint systems are of one size."""
    rows = [("precision of training", precision_told(run.settings.training.precision))]
    for system in run.systems[:2]:
        alike = sum(other.is_joint == system.is_joint for other, _ in run.trainings)
        rows.append((f"training {'joint' if system.is_joint else system.label}", _told(run, system, alike)))
    return rows


def group_preview(run: AnswerRun, *, index: int = 0) -> str:
    """HTML: a group of training candidates as the first joint system reads it, sentence by sentence.

    Args:
        index: of the group, in the order of the first pass with seed 0.
    """
    ranker, config = run.untrained[run.systems[1].name], run.config_of(run.systems[1], 0)
    examples = ranker.training_examples(
        run.sets("train"), size=config.steps * config.batch_size, seed=config.seed
    )
    sequence, (number, members) = examples.describe(index), examples.owner(index)
    texts, spaced = token_texts(ranker.tokenizer, sequence.input_ids)
    labels = ["", *(_LABELS[run.sets("train")[number].correct[member]] for member in members)]
    rows = []
    for place, label in enumerate(labels):
        at = np.flatnonzero(sequence.sentence == place)
        read = "".join((" " if spaced[token] else "") + texts[token] for token in at)
        positions = sequence.position_ids[at]
        rows.append(
            [
                f"s<sub>{place}</sub>",
                label,
                f'<div dir="auto">{escaped(read.strip())}</div>',
                f"{positions[0]}&ndash;{positions[-1]}",
                f"{sequence.cut[place]}" if sequence.cut[place] else "",
            ]
        )
    columns = ["", "label", "what the model reads", "positions", "cut"]
    return table_html(columns, rows, text_columns=(0, 1, 2))


def _questions_told(split: AnswerSplit) -> str:
    candidates = [len(one.candidates) for one in split.sets]
    right = sum(sum(one.correct) for one in split.sets)
    told = f"{len(candidates):,} questions with {sum(candidates):,} candidates, {right:,} of them right"
    if len(candidates) == split.read.questions:
        return told
    return (
        f"{told}; of the {split.read.questions:,} that are there, {split.read.without_right:,} have no right "
        f"candidate and {split.read.without_wrong:,} no wrong one"
    )


def _share_cut(ranker: Ranker, sets: Sequence) -> float:
    examples = ranker.examples(sets[:LOOKED_AT])
    room = ranker.model.head.form.length - 1
    lengths = [len(text) for one in examples.sets for text in examples.encoded[one.id][1:]]
    return float((np.array(lengths) > room).mean())


def _told(run: AnswerRun, system: AnswerSystem, alike: int) -> str:
    ranker, config = run.untrained[system.name], run.config_of(system, 0)
    examples = ranker.training_examples(run.sets("train"), size=config.micro_batch_size, seed=0)
    chosen = [examples[number] for number in range(len(examples))]
    model = ranker.model
    seconds, batch = seconds_of_batch(model, partial(ranker.collate, chosen), precision=config.precision)
    model.to("cpu").eval()  # it stays; nothing of it on the accelerator
    total = seconds * config.steps * config.accumulation(processes=1)
    tokens = float(batch["attention_mask"].sum(1).float().mean())
    kind = "groups" if system.is_joint else "pairs"
    return (
        f"{parameter_count(model) / 1e6:.1f} million parameters; {run.examples_of(system, 'train'):,} {kind} "
        f"of about {tokens:.0f} tokens; {config.steps:,} updates with {config.batch_size} of them, about "
        f"{time_told(total, Processes.of(run.settings.training.parallel))} without evaluation; times {alike} "
        "(systems and seeds)"
    )


FILE = "latency.json"
MOST_CANDIDATES = 400  # of the test questions that are timed, together
RUNS = 3


def expected_ratios(k: int) -> tuple[float, float]:
    """How many times as long as pairwise reading joint reading of k candidates should take, if every sentence
    has one length: of what grows with the square of a sequence (self-attention), (k + 1)^2 / 4k, and of what
    grows with its length (all other layers), (k + 1) / 2k."""
    return (k + 1) ** 2 / (4 * k), (k + 1) / (2 * k)


def measured_latencies(run: AnswerRun) -> list[Latency]:
    """Seconds for one question, of every system with seed 0: the first test questions, one after the other,
    all groups of a question at once, without the time for tokenising. Systems take turns, so that whatever
    else the machine does hits all. Measured once and kept in the folder of the run."""
    file = run.folder / FILE
    if not file.is_file():
        sets = timed_sets(run.sets("test"))
        rankers = {system.label: run.ranker(system, 0, trained=True) for system in run.systems}
        measured = _measured(rankers, sets, precision=run.settings.training.precision)
        rows = {label: asdict(one) for label, one in measured.items()}
        write_json(file, {"questions": len(sets), "latencies": list(rows.values())})
    return [Latency(**row) for row in json.loads(file.read_text(encoding="utf-8"))["latencies"]]


def timed_sets(sets: Sequence[CandidateSet]) -> Sequence[CandidateSet]:
    """The first ones, with up to MOST_CANDIDATES candidates together, and at least one."""
    counts = accumulate(len(one.candidates) for one in sets)
    return sets[: max(1, sum(count <= MOST_CANDIDATES for count in counts))]


def _measured(
    rankers: dict[str, Ranker], sets: Sequence[CandidateSet], *, precision: Precision
) -> dict[str, Latency]:
    seconds: dict[str, list[float]] = {label: [] for label in rankers}
    examples = {label: [ranker.examples([one]) for one in sets] for label, ranker in rankers.items()}
    for number in range(1 + RUNS):  # the first one tokenises, and is not counted
        for label, ranker in rankers.items():
            start = time.perf_counter()
            for question in examples[label]:
                form = {"batch_size": len(question), "precision": precision}
                score_examples(ranker.model, question, ranker.collate, **form)
            if number:
                seconds[label].append((time.perf_counter() - start) / len(sets))
    return {
        label: Latency(
            system=label, seconds=median(each), fastest=min(each), slowest=max(each), runs=len(each)
        )
        for label, each in seconds.items()
    }


ALL, RERANKED = "all", "reranked"
RANKINGS = (ALL, RERANKED)
RANDOM = "random"
MEASURES = {"p_at_1": "precision_at_1", "map": "average_precision", "mrr": "reciprocal_rank"}
# Measure -> with each seed float64 (questions,).
OfSeeds = Mapping[str, list[np.ndarray]]


@dataclass(frozen=True, kw_only=True)
class AnswerScores:
    """Every score of every question, worked out once for all tables.

    Attributes:
        run, found: what is scored.
        values: (system, ranking, split) -> measure -> seeds.
    """

    run: AnswerRun
    found: Found
    values: dict[tuple[str, str, str], OfSeeds] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for system in self.run.systems:
            for ranking in RANKINGS if system.is_joint else (ALL,):
                for split in HELD_OUT:
                    seeds = [
                        _values(predictions_of(self.found, system.name, seed, split, ranking=ranking))
                        for seed in range(self.run.settings.training.seeds)
                    ]
                    self.values[system.name, ranking, split] = {
                        measure: [one[name] for one in seeds] for measure, name in MEASURES.items()
                    }

    def scores(self) -> dict[str, dict[str, Any]]:
        """As a report has them, `system/ranking/split/measure`; of a random order what is expected, which has
        no interval."""
        found = {}
        for (system, ranking, split), of_measure in self.values.items():
            for measure, seeds in of_measure.items():
                score = mean_score(seeds, self._clusters(split), seed=0)
                found[f"{system}/{ranking}/{split}/{measure}"] = score
        for split in HELD_OUT:
            sets = self.run.sets(split)
            # Of equal scores alone, every measure is its expectation over random orders.
            order = AnswerPredictions(sets=sets, scores=[np.zeros(len(one.candidates)) for one in sets])
            values = _values(order)
            for measure, name in MEASURES.items():
                found[f"{RANDOM}/{ALL}/{split}/{measure}"] = {"value": float(values[name].mean())}
        return found

    def runs(self) -> list[dict[str, Any]]:
        """A row for each training, ranking and split, with its means."""
        return [
            {
                "system": system,
                "ranking": ranking,
                "split": split,
                "seed": seed,
                **{measure: float(seeds[seed].mean()) for measure, seeds in of_measure.items()},
            }
            for (system, ranking, split), of_measure in self.values.items()
            for seed in range(self.run.settings.training.seeds)
        ]

    def comparisons(self) -> list[dict[str, Any]]:
        """On test, each joint system against pairwise, and with MSPP against without. `p_holm`: corrected for
        the systems tested against the same kind of other with one measure and ranking; `p_seeds`: of
        `t_test_of_seeds`."""
        names = {system.name for system in self.run.systems}
        joint = [system for system in self.run.systems if system.is_joint]
        families = (
            [(system.name, PAIRWISE) for system in joint],
            [(system.name, system.plain) for system in joint if system.plain in names],
        )
        return [
            row
            for ranking in RANKINGS
            for measure in MEASURES
            for family in families
            for row in self._family(family, ranking=ranking, measure=measure)
        ]

    def _family(
        self, pairs: Sequence[tuple[str, str]], *, ranking: str, measure: str
    ) -> list[dict[str, Any]]:
        rows = []
        for a, b in pairs:
            other = ALL if b == PAIRWISE else ranking
            sides = [self.values[name, how, "test"][measure] for name, how in ((a, ranking), (b, other))]
            compared = compare_means(*sides, self._clusters("test"), seed=0)
            p_seeds = t_test_of_seeds(*([float(one.mean()) for one in side] for side in sides))
            rows.append(
                {
                    "a": a,
                    "b": b,
                    "ranking": ranking,
                    "measure": measure,
                    **asdict(compared),
                    "p_seeds": p_seeds,
                }
            )
        corrected = holm([row["p"] for row in rows])
        return [{**row, "p_holm": p} for row, p in zip(rows, corrected, strict=True)]

    def _clusters(self, split: str) -> list[str]:
        return list(map(cluster_of, self.run.sets(split)))


def predictions_of(
    found: Found, system: str, seed: int, split: str, *, ranking: str = ALL
) -> AnswerPredictions:
    """What ranks all candidates of a split.

    Args:
        ranking: `all`, or `reranked`: the best of pairwise by a joint system, the others as pairwise has
            them.
    """
    ranked = found[system, seed][split]
    if ranking == ALL or ranked.best is None:
        return ranked.every
    return ranked.best.after(found[PAIRWISE, seed][split].every)


def row_label(system: str, ranking: str, *, k: int) -> str:
    """What tables and figures call a system with a ranking."""
    label = ANSWER_SYSTEMS[system].label
    return label if ranking == ALL else f"{label} on pairwise's top {k}"


def _values(predictions: AnswerPredictions) -> dict[str, np.ndarray]:
    return values_per_group(predictions.groups())


RANDOM_ORDER = "random order"


def diagnoses(run: AnswerRun, found: Found) -> dict[tuple[str, int], JointDiagnosis]:
    """(joint system, seed) -> what its scores on test look like."""
    k = run.settings.models.candidates
    diagnosed = {}
    for system, seed in run.trainings:
        if system.is_joint:
            scores, labels, question = found[system.name, seed]["test"].every.read_together(k)
            diagnosed[system.name, seed] = diagnose(scores, labels, question=question)
    return diagnosed


def write_answer_report(
    run: AnswerRun,
    opened: Run,
    found: Found,
    *,
    diagnosed: dict[tuple[str, int], JointDiagnosis],
    latencies: Sequence[Latency],
) -> Report:
    """Scores of all systems on dev and test, the tests between them, what shows a collapse, and latencies."""
    scored = AnswerScores(run=run, found=found)
    return opened.write_report(
        scores=scored.scores(),
        data={
            "precision": precision_told(run.settings.training.precision),
            "corpus": {split: run.settings.corpus.source_of(split) for split in run.splits},
            "format": {split: one.corpus for split, one in run.splits.items()},
            "checksums": {split: one.checksum for split, one in run.splits.items()},
            "questions": {split: len(one.sets) for split, one in run.splits.items()},
            "candidates": {
                split: sum(len(each.candidates) for each in one.sets) for split, one in run.splits.items()
            },
            "questions_read": {split: one.read.questions for split, one in run.splits.items()},
            "clusters": {split: len(set(map(cluster_of, one.sets))) for split, one in run.splits.items()},
        },
        tables={
            "comparisons": scored.comparisons(),
            "runs": scored.runs(),
            "diagnosis": [
                {"system": name, "seed": seed, **_plain(one)} for (name, seed), one in diagnosed.items()
            ],
            "latency": [asdict(one) for one in latencies],
        },
    )


def answers_table(report: Report, *, ranking: str = ALL, split: str = "test") -> str:
    """The table of one split as HTML. With ranking `all`, the paper's Table 1; with `reranked`, Tables 2 and
    7: pairwise, and the joint systems on its best candidates. Numbers of the paper stand beside those of
    test."""
    name, k = report.data["format"][split], report.parameters["candidates"]
    p_of = {
        (row["a"], row["measure"]): row["p_holm"]
        for row in report.tables["comparisons"]
        if split == "test" and row["ranking"] == ranking and row["b"] == PAIRWISE
    }
    rows = [
        AnswerRow(
            label=RANDOM_ORDER if system == RANDOM else row_label(system, how, k=k),
            system=RANDOM if system == RANDOM else ANSWER_SYSTEMS[system].published,
            reranked=ranking == RERANKED,
            scores={
                measure: _measured_answer_report(
                    report, f"{system}/{how}/{split}/{measure}", p_of.get((system, measure))
                )
                for measure in MEASURES
            },
            seeds=None if system == RANDOM else report.parameters["seeds"],
        )
        for system, how in _rows(report, ranking)
    ]
    corpus = name if split == "test" else f"{CORPUS_NAMES.get(name, name)}, {split}"
    return answer_table_html(rows, questions=report.data["questions"][split], corpus=corpus)


def comparison_rows(report: Report, *, ranking: str = ALL) -> list[list[str]]:
    """The tests on test as cells of HTML: both systems, and for each measure the difference in points with
    its interval, and both p-values."""
    tests = [row for row in report.tables["comparisons"] if row["ranking"] == ranking]
    pairs = dict.fromkeys((row["a"], row["b"]) for row in tests)
    of_pair = {(row["a"], row["b"], row["measure"]): row for row in tests}
    return [
        [
            ANSWER_SYSTEMS[a].label,
            ANSWER_SYSTEMS[b].label,
            *(_test_cell(of_pair[a, b, measure]) for measure in MEASURES),
        ]
        for a, b in pairs
    ]


def diagnosis_rows(report: Report) -> list[list[str]]:
    """Joint system, seed, and what became of it, as cells of HTML."""
    return [
        [ANSWER_SYSTEMS[row["system"]].label, str(row["seed"]), escaped(row["verdict"])]
        for row in report.tables["diagnosis"]
    ]


def collapse_figures(diagnosed: dict[tuple[str, int], JointDiagnosis]) -> list[go.Figure]:
    """Spread of scores and accuracy by place, of the joint systems with seed 0."""
    first = {ANSWER_SYSTEMS[name].label: one for (name, seed), one in diagnosed.items() if not seed}
    return [
        score_spread_figure({label: one.spread for label, one in first.items()}),
        accuracy_by_place_figure(first),
    ]


def timing_figure(report: Report) -> go.Figure:
    """Seconds a question, of each system."""
    return latency_figure([Latency(**row) for row in report.tables["latency"]], against=PAIRWISE)


def timing_told(report: Report) -> str:
    """HTML: how many times as long as pairwise reading joint reading takes, measured and by the paper."""
    k, rows = report.parameters["candidates"], report.tables["latency"]
    seconds = {row["system"]: row["seconds"] for row in rows}
    joint = [value for label, value in seconds.items() if label != PAIRWISE]
    quadratic, linear = expected_ratios(k)
    return (
        f"Joint reading takes {np.mean(joint) / seconds[PAIRWISE]:.2f} times as long as pairwise. By the "
        f"paper's arithmetic, for sentences of one length: (k + 1)&sup2; / 4k = {quadratic:.2f} where time "
        f"grows with the square of the sequence, (k + 1) / 2k = {linear:.2f} where it grows with its length; "
        f"it measured 1.14 (k = 5, WikiQA, one A100)."
    )


def _rows(report: Report, ranking: str) -> list[tuple[str, str]]:
    """(system, ranking) of the rows of a table."""
    joint = [name for name in ANSWER_SYSTEMS if f"{name}/{RERANKED}/test/map" in report.scores]
    return [(PAIRWISE, ALL), *((name, ranking) for name in joint), (RANDOM, ALL)]


def _measured_answer_report(report: Report, key: str, p: float | None) -> MeasuredScore:
    score = report.scores[key]
    interval = (score["low"], score["high"]) if "low" in score else None
    return MeasuredScore(value=score["value"], interval=interval, deviation=score.get("deviation"), p=p)


def _test_cell(row: dict[str, Any]) -> str:
    difference, low, high = (points_in_words(row[name]) for name in ("difference", "low", "high"))
    seeds = "" if row["p_seeds"] is None else f"; over seeds {p_in_words(row['p_seeds'])}"
    p = f"p {p_in_words(row['p_holm'])}{seeds}"
    return f'{difference} [{low}, {high}]<div style="font-size:11px;{MUTED}">{p}</div>'


def _plain(one: JointDiagnosis) -> dict[str, Any]:
    """For the report; None where no group has a candidate."""
    return {
        "collapsed": one.collapsed,
        "verdict": one.verdict,
        "map": one.scores["average_precision"],
        "random_map": one.random["average_precision"],
        "gain": one.gain,
        "median_spread": float(np.median(one.spread)),
        "by_place": one.by_place,
        **{
            name: [None if math.isnan(value) else value for value in getattr(one, name).tolist()]
            for name in ("accuracy", "always_wrong", "first", "first_random")
        },
    }


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


def read_rankings(run: AnswerRun, found: Found, split: str = "test", *, seed: int = 0) -> list[ReadRanking]:
    """Each question with the scores of all systems, and of the joint ones on the best of pairwise."""
    k = run.settings.models.candidates
    scores: dict[str, Sequence[np.ndarray]] = {}
    for system in run.systems:
        ranked = found[system.name, seed][split]
        scores[system.label] = ranked.every.scores
        if ranked.best is not None:
            scores[row_label(system.name, RERANKED, k=k)] = ranked.best.scores
    return [
        _read_ranked(one, {label: of_all[number] for label, of_all in scores.items()})
        for number, one in enumerate(run.sets(split))
    ]


def rankings_in_place(run: AnswerRun, found: Found) -> Widget:
    """Questions of test to leaf through. Those on which a joint system changed what pairwise has right on
    top also go to `changed/<system>.html` in the folder of the run, which need no kernel; the first ON_A_PAGE
    of them."""
    reads = read_rankings(run, found)
    for system in run.systems[1:]:
        changed = [read for read in reads if read.outcome(system.label, beside=PAIRWISE) in CHANGED]
        if changed:
            title = f"Where {system.label} changed the answer"
            page = rankings_page(changed[:ON_A_PAGE], system=system.label, beside=PAIRWISE, title=title)
            _write(run.folder / "changed" / f"{system.name}.html", page)
    return ranking_browser(reads, beside=PAIRWISE)


def own_question_in_place(run: AnswerRun, question: str, candidates: str) -> Widget:
    """Boxes for a question and candidates of one's own, and what every system makes of them, that of what
    stands in the boxes at first included.

    Raises ValueError if these cannot be read.
    """
    answer = own_ranking(run)
    return own_candidates_box(
        answer,
        asked=question,
        candidates=candidates,
        answered=answer(question, candidate_lines(candidates)),
    )


def own_ranking(run: AnswerRun) -> Callable[[str, Sequence[str]], str]:
    """From a question and candidates to HTML: what every system trained with seed 0 makes of them. Models are
    loaded when they are first needed; the answer is also written to `own_question.html` in the folder of the
    run."""
    rankers: dict[str, Ranker] = {}

    def answer(question: str, candidates: Sequence[str]) -> str:
        if not rankers:
            rankers.update({one.label: run.ranker(one, 0, trained=True) for one in run.systems})
        one = CandidateSet(
            id="own", question=question, candidates=tuple(candidates), correct=(False,) * len(candidates)
        )
        training = run.settings.training
        form = {"batch_size": training.micro_batch_size, "precision": training.precision}
        scored = {label: score_answers(ranker, [one], **form) for label, ranker in rankers.items()}
        html = _table(
            _read_ranked(one, {label: found.scores[0] for label, found in scored.items()}, known=False)
        )
        _write(run.folder / "own_question.html", still_page(html, title=question, note="Ranked candidates"))
        return html

    return answer


def own_texts(file: str) -> tuple[str, str]:
    """A question and candidates, one a line, from a text file with the question on the first; the example if
    `file` is "". Raises DataError as of `read_text` and `first_and_others`."""
    if not file:
        return EXAMPLE_QUESTION, EXAMPLE_CANDIDATES
    return first_and_others(read_text(file), source=file, first="a question", other="candidate")


def candidate_lines(text: str) -> list[str]:
    """One candidate a line, empty lines left out. Raises DataError as of `lines_of`."""
    return filled_lines(text, source="candidates", remedy="write one candidate on each line")


def _read_ranked(one: CandidateSet, scores: dict[str, np.ndarray], *, known: bool = True) -> ReadRanking:
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


# What stands in a row of ranks.
PAPER, RANDOM_SPAN, FIRST_HEAD = 0, 1, 2


def target_ranks(
    model: PreTrainedModel,
    pairs: Sequence[AlignedPair],
    documents: Mapping[str, EncodedDocument],
    *,
    special: SpecialTokens,
    max_length: int,
    candidates: str,
    precision: Precision = "float32",
    file: Path | None,
    bar: Progress | None = None,
) -> np.ndarray:
    """Rank of each pair's target, with the source global.

    Both documents stand in one sequence, in the order of their names, unmarked; what is too long is cut
    around the mentions.

    Args:
        documents: by id.
        candidates: as of `candidate_mask`.
        precision: of the forward pass, as of `resolve_precision`.
        file: `.npy`; pairs that it holds are not run again. It belongs to one
            model and one list of pairs. None = nothing is kept.
        bar: counts pairs, those that `file` holds too; None = no progress is shown.

    Returns:
        float32 (pairs, 2 + layers x heads): the paper's percentile rank; that of a random span of the same
        length, on average; then the target's by each head of each layer alone, layer after layer.

    Raises:
        ValueError: the file is of other pairs or of another model.
    """
    width = FIRST_HEAD + model.config.num_hidden_layers * model.config.num_attention_heads
    bar = bar or Progress(disable=True)
    with KeptNumbers(file, (len(pairs), width)) as ranks, computing_in(precision, model.device):
        bar.update(len(pairs) - len(ranks.missing))
        for number in ranks.missing:
            read = _read_ranks(pairs[number], documents, special, max_length)
            attention = attend_to_source(model, read.sequence.input_ids, source=read.source)
            ranks.values[number] = _ranks(attention, read, candidates=candidates)
            ranks.save_when_due()
            bar.update(1)
    return ranks.values


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Read:
    """What the model reads, the positions of source and target in it, and which are punctuation."""

    sequence: DocumentSequence
    source: np.ndarray
    target: np.ndarray
    is_punctuation: np.ndarray


def _ranks(attention: SourceAttention, read: _Read, *, candidates: str) -> np.ndarray:
    """A row of ranks; see `target_ranks`."""
    document = read.sequence.document
    source, target = (np.isin(np.arange(len(document)), places) for places in (read.source, read.target))
    among = candidate_mask(
        document,
        source=source,
        target=target,
        candidates=candidates,
        is_punctuation=read.is_punctuation,
    )
    paper = source_scores(attention.given, attention.received)
    alone = [
        target_rank(source_scores(given[None, None], received[None, None]), target, among)
        for layer in zip(attention.given, attention.received, strict=True)
        for given, received in zip(*layer, strict=True)  # of a head: (source tokens, seq)
    ]
    of_target = document == document[read.target[0]]
    random = chance_rank(paper, target, among, document=of_target)
    return np.array([target_rank(paper, target, among), random, *alone])


def _read_ranks(
    pair: AlignedPair, documents: Mapping[str, EncodedDocument], special: SpecialTokens, max_length: int
) -> _Read:
    mentions = sorted((pair.source, pair.target), key=lambda mention: mention.document)
    encoded = [documents[mention.document] for mention in mentions]
    sequence = document_sequence(
        encoded, special=special, max_length=max_length, around=[mention.tokens for mention in mentions]
    )
    words = [not any(map(str.isalnum, word)) for one in encoded for word in one.document.tokens]
    numbers = sequence.word_numbers([len(one.document.tokens) for one in encoded])
    places = {mention.id: sequence.positions(n, mention.tokens) for n, mention in enumerate(mentions)}
    return _Read(
        sequence=sequence,
        source=places[pair.source.id],
        target=places[pair.target.id],
        is_punctuation=np.array(words)[numbers] & (numbers >= 0),
    )
