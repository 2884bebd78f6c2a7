"""What a trained model answers, kept on disk: a line of JSON for each question."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from cdlm_lab.collate import batches_by_length
from cdlm_lab.data.files import replaced_file
from cdlm_lab.data.multihop_questions import MultihopQuestion, SupportingFact
from cdlm_lab.examples.question_examples import QuestionExamples
from cdlm_lab.models.answer_decoding import AnswerSpan, DecodedAnswer, Place, decode
from cdlm_lab.models.device import default_device
from cdlm_lab.models.precision import Precision, computing_in
from cdlm_lab.models.question_answering import QuestionAnswerer, QuestionOutput
from cdlm_lab.progress import Progress


@dataclass(frozen=True, kw_only=True)
class QuestionPredictions:
    """Answers to questions, in order."""

    questions: Sequence[MultihopQuestion]
    answers: Sequence[DecodedAnswer]

    def texts(self) -> dict[str, str]:
        """Id of a question -> its predicted answer."""
        return {one.id: answer.text for one, answer in zip(self.questions, self.answers, strict=True)}

    def supporting(self) -> dict[str, list[SupportingFact]]:
        """Id of a question -> (title, sentence) of its predicted support."""
        return {
            one.id: [(one.paragraphs[paragraph].title, sentence) for paragraph, sentence in answer.supporting]
            for one, answer in zip(self.questions, self.answers, strict=True)
        }

    def official(self) -> dict[str, dict[str, Any]]:
        """As `metrics.question_answering.hotpotqa` and the official evaluation take them."""
        sp = {name: [list(fact) for fact in facts] for name, facts in self.supporting().items()}
        return {"answer": self.texts(), "sp": sp}

    def save(self, file: Path) -> None:
        """Write a line for each question, in one go."""
        file.parent.mkdir(parents=True, exist_ok=True)
        with replaced_file(file) as opened:
            for question, answer in zip(self.questions, self.answers, strict=True):
                opened.write(json.dumps({"id": question.id, **_plain(answer)}, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, file: Path, *, questions: Sequence[MultihopQuestion]) -> QuestionPredictions:
        """Read what `save` wrote.

        Raises:
            ValueError: it is of other questions.
        """
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        if [row.pop("id") for row in rows] != [question.id for question in questions]:
            raise ValueError(f"{file} is of other questions, so of another run: choose another run folder")
        return cls(questions=questions, answers=[_answer(row) for row in rows])


def _plain(answer: DecodedAnswer) -> dict[str, Any]:
    """Without keys that JSON has not: sentences are rows of paragraph, sentence, probability."""
    found = asdict(answer)
    found["sentence_probabilities"] = [
        [*sentence, round(value, 6)] for sentence, value in answer.sentence_probabilities.items()
    ]
    return found


def _answer(row: Mapping[str, Any]) -> DecodedAnswer:
    sentences = {(paragraph, number): value for paragraph, number, value in row["sentence_probabilities"]}
    return DecodedAnswer(
        **row
        | {
            "place": row["place"] and Place(*row["place"]),
            "n_best": tuple(AnswerSpan(text, score, Place(*place)) for text, score, place in row["n_best"]),
            "sentence_probabilities": sentences,
            "paragraph_probabilities": tuple(row["paragraph_probabilities"]),
            "supporting": tuple((paragraph, number) for paragraph, number in row["supporting"]),
        }
    )


def predict_answers(
    model: QuestionAnswerer,
    examples: QuestionExamples,
    collate: Callable[..., Mapping[str, torch.Tensor]],
    *,
    support: str,
    most_tokens: int,
    batch_size: int,
    precision: Precision = "float32",
    name: str | None = None,
) -> QuestionPredictions:
    """Answer every question.

    Questions are read longest first, so that batches hold little padding.

    Args:
        examples: their labels, if they have any, are not read.
        support, most_tokens: as of `decode`.
        batch_size: questions read at once; changes nothing but speed and memory.
        precision: of the forward pass, as of `resolve_precision`.
        name: beside the progress bar; None = no bar.
    """
    model = model.to(default_device()).eval()
    lengths = [_length(question) for question in examples.questions]
    answers: dict[int, DecodedAnswer] = {}
    with (
        Progress(total=len(examples), desc=name, unit="question", disable=name is None) as bar,
        computing_in(precision, model.device),
    ):
        for numbers in batches_by_length(lengths, [0] * len(lengths), batch_size):
            sequences = [examples.describe(number) for number in numbers]
            output = _read(model, collate([sequence.inputs for sequence in sequences]))
            for row, (number, sequence) in enumerate(zip(numbers, sequences, strict=True)):
                answers[number] = decode(
                    examples.questions[number],
                    sequence,
                    output.row(row),
                    support=support,
                    most_tokens=most_tokens,
                )
            bar.update(len(numbers))
    return QuestionPredictions(
        questions=examples.questions, answers=[answers[number] for number in range(len(answers))]
    )


def _length(question: MultihopQuestion) -> int:
    """Characters of the question, the titles and the sentences: tokens would need all sequences at once."""
    return len(question.text) + sum(len(one.title) + len(one.text) for one in question.paragraphs)


@torch.inference_mode()
def _read(model: QuestionAnswerer, batch: Mapping[str, torch.Tensor]) -> QuestionOutput:
    batch = {name: tensor.to(model.device) for name, tensor in batch.items()}
    return model(**batch)
