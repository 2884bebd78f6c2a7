"""How a model scores the candidates of questions, all of them or the best of a pairwise model, kept on disk:
a line of JSON for each question."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from cdlm_lab.analysis.joint_diagnosis import ABSENT
from cdlm_lab.collate import batches_by_length
from cdlm_lab.data.files import replaced_file
from cdlm_lab.data.records import CandidateSet
from cdlm_lab.examples.candidate_examples import CandidateExamples, JointCollate
from cdlm_lab.examples.candidate_groups import cascade_scores, chunks, fixed_order, top_k
from cdlm_lab.experiments.answer_models import Ranker
from cdlm_lab.models.device import default_device
from cdlm_lab.models.joint_model import JointModel, scores_of
from cdlm_lab.models.precision import Precision, computing_in
from cdlm_lab.progress import Progress


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
