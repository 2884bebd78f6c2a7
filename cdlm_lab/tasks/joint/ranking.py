"""Systems that rank the candidate answers of a question (Di Liello et al. 2022, "MSPP"): notebook 09."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import CandidateSet
from cdlm_lab.encoders.precision import Precision
from cdlm_lab.progress import ALONE, Share
from cdlm_lab.runs.items import write_frame
from cdlm_lab.runs.runs import System, outputs_by_length
from cdlm_lab.tasks.joint import examples as candidates
from cdlm_lab.tasks.joint.diagnosis import ABSENT
from cdlm_lab.tasks.joint.examples import JointExamples, fixed_order
from cdlm_lab.tasks.joint.model import JointModel, scores_of
from cdlm_lab.tasks.joint.systems import examples_of
from cdlm_lab.training.config import TrainingConfig

PAIRWISE, RANDOM = "pairwise", "random"


@dataclass(frozen=True, slots=True)
class AnswerSystem(System):
    """A system that ranks the candidate answers of a question."""

    head: str  # `ie_1` reads one candidate at a time, `ie_k` and `ae_k` read k
    pretrained: str = ""  # head of the MSPP pretraining, `ie` or `ae`; "" = the plain encoder
    plain: str = ""  # the system that differs from it only in having no MSPP pretraining; "" = none

    @property
    def is_joint(self) -> bool:
        """True if it reads several candidates at once."""
        return self.head != "ie_1"


ANSWER_SYSTEMS = {
    system.name: system
    for system in (
        AnswerSystem(PAIRWISE, PAIRWISE, "ie_1"),
        AnswerSystem("joint-ie", "joint IE_k", "ie_k"),
        AnswerSystem("joint-ae", "joint AE_k", "ae_k"),
        AnswerSystem("mspp-ie", "MSPP IE_k", "ie_k", "ie", "joint-ie"),
        AnswerSystem("mspp-ae", "MSPP AE_k", "ae_k", "ae", "joint-ae"),
    )
}


@dataclass(frozen=True, kw_only=True)
class Ranker:
    """A model with its tokenizer, which scores the candidates of questions."""

    model: JointModel
    tokenizer: PreTrainedTokenizerBase
    seed: int = 0  # with which it was trained

    @property
    def k(self) -> int:
        """The number of candidates it reads at once."""
        return self.model.head.form.layout.candidates

    def examples(
        self, sets: Sequence[CandidateSet], *, config: TrainingConfig | None = None
    ) -> JointExamples:
        """Groups of candidates: for training with `config`, else each candidate once, in a fixed order."""
        return examples_of(sets, self.tokenizer, self.model.head.form.layout, config)

    @property
    def collate(self) -> candidates.JointCollate:
        """Turns examples into batches."""
        return candidates.JointCollate(pad_token_id=self.tokenizer.pad_token_id)


@dataclass(frozen=True, kw_only=True)
class AnswerPredictions:
    """The scores that a model gives to candidates."""

    sets: Sequence[CandidateSet]  # questions, in order
    # For each question float64 (candidates,), log-odds of being right; nan = not read by the model.
    scores: Sequence[np.ndarray]

    def groups(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """(scores, labels) of each question, as `metrics.ranking` takes them."""
        return [(scores, np.array(one.correct)) for one, scores in zip(self.sets, self.scores, strict=True)]

    def after(self, pairwise: AnswerPredictions) -> AnswerPredictions:
        """One ranking of all candidates: first those that this model has read, in its order, then the others
        in pairwise's order. The new scores are integers."""
        both = zip(pairwise.scores, self.scores, strict=True)
        return replace(self, scores=[candidates.cascade_scores(*scores) for scores in both])

    def read_together(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The groups that a joint model has read, as `joint_diagnosis.diagnose` takes them: scores and labels
        (groups, k), and the index of the question (groups,)."""
        rows = []
        for number, (one, scores) in enumerate(zip(self.sets, self.scores, strict=True)):
            for members in candidates.chunks(fixed_order(one.candidates, key=one.id), k=k):
                room = (0, k - len(members))
                labels = np.pad(np.array(one.correct, dtype=int)[members], room, constant_values=ABSENT)
                rows.append((np.pad(scores[members], room), labels, number))
        scores, labels, questions = zip(*rows, strict=True)
        return np.stack(scores), np.stack(labels), np.array(questions)

    def save(self, file: Path) -> None:
        """Write one row a question, atomically."""
        write_frame(pd.DataFrame({"item": [one.id for one in self.sets], "scores": self.scores}), file)


def scores_given(file: Path, one: CandidateSet, line: int, scores: Any) -> np.ndarray:
    """Scores of the candidates of a question, float64 (candidates,), from a list in their order or from
    candidate -> score. Raises DataError, with file and line, unless each is a number."""
    if isinstance(scores, Mapping):
        scores = [scores.get(text) for text in one.candidates]
    numbers = scores if isinstance(scores, list) else []
    if len(numbers) != len(one.candidates) or not all(type(value) in (int, float) for value in numbers):
        what = f"question {one.id!r} has {len(one.candidates)} candidates, each of which needs a number"
        raise DataError(file, what, "write one for each, in their order", field="scores", line=line)
    return np.array(numbers, dtype=np.float64)


def score_answers(
    ranker: Ranker, sets: Sequence[CandidateSet], *, groupings: int = 1, key: str = "", **reading: Any
) -> AnswerPredictions:
    """Score every candidate of every question, in groups of as many as the model reads at once; scores are
    means over several groupings. `key`: of the `fixed_order` of candidates, "" = the id of each question;
    `reading`: batch size, precision, name beside a progress bar."""
    examples = replace(ranker.examples(sets), key=key)
    times = range(groupings if ranker.k > 1 else 1)
    every = [score_examples(ranker, replace(examples, seed=n), **reading).scores for n in times]
    scores = [np.mean(one, axis=0) for one in zip(*every, strict=True)]
    return AnswerPredictions(sets=sets, scores=scores)


def score_examples(
    ranker: Ranker, examples: JointExamples, *, share: Share = ALONE, **reading: Any
) -> AnswerPredictions:
    """Score the candidates of examples; these must be unshuffled, with each candidate once."""
    scores = [np.full(len(one.candidates), np.nan) for one in examples.records]
    reading |= {"unit": "group", "share": share}
    outputs = outputs_by_length(ranker.model, examples, ranker.collate, **reading)
    own = [(numbers, scores_of(output.logits)) for numbers, _, output in outputs]
    for numbers, logits in share.gathered(own):
        rows = logits.reshape(len(numbers), -1)  # (examples, k); pairwise models have k = 1
        for row, number in zip(rows, numbers, strict=True):
            question, members = examples.owner(number)
            scores[question][members] = row[: len(members)]
    return AnswerPredictions(sets=examples.records, scores=scores)


def rerank_answers(ranker: Ranker, pairwise: AnswerPredictions, **reading: Any) -> AnswerPredictions:
    """Score the k candidates that a pairwise model ranks highest; ties go to the first in `fixed_order`, in
    which they also stand in the sequence, so that their positions do not reveal their pairwise ranks."""
    best, sets = [], []
    for one, scores in zip(pairwise.sets, pairwise.scores, strict=True):
        members = np.sort(candidates.top_k(scores, fixed_order(one.candidates, key=one.id), k=ranker.k))
        texts, correct = (tuple(column[n] for n in members) for column in (one.candidates, one.correct))
        best.append(members)
        sets.append(replace(one, candidates=texts, correct=correct))
    scored = score_answers(ranker, sets, **reading)
    every = [np.full(len(one.candidates), np.nan) for one in pairwise.sets]
    for row, members, scores in zip(every, best, scored.scores, strict=True):
        row[members] = scores
    return AnswerPredictions(sets=pairwise.sets, scores=every)


# ---- how long it takes ----

MOST_CANDIDATES = 400  # in all test questions that are timed
RUNS = 3


def expected_ratios(k: int) -> tuple[float, float]:
    """The expected ratio of joint (k candidates) to pairwise reading time (appendix C.3): for cost that is
    quadratic in the sequence length (self-attention), and for linear cost (all other layers)."""
    return (k + 1) ** 2 / (4 * k), (k + 1) / (2 * k)


def timed_sets(sets: Sequence[CandidateSet]) -> Sequence[CandidateSet]:
    """The first questions, with at most MOST_CANDIDATES candidates in all, but at least one question."""
    counts = accumulate(len(one.candidates) for one in sets)
    return sets[: max(1, sum(count <= MOST_CANDIDATES for count in counts))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Seconds that a system takes for one question: median, minimum and maximum over its runs."""

    system: str
    seconds: float
    fastest: float
    slowest: float
    runs: int


def measured_in_turns(
    rankers: Mapping[str, Ranker], sets: Sequence[CandidateSet], *, precision: Precision
) -> list[Latency]:
    """Seconds per question of each system, by label, with all groups of a question in one batch, without
    tokenising. Systems take turns, so that other load on the machine affects all alike."""
    seconds: dict[str, list[float]] = {label: [] for label in rankers}
    examples = {label: [ranker.examples([one]) for one in sets] for label, ranker in rankers.items()}
    for number in range(1 + RUNS):  # the first run tokenises and is not counted
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
