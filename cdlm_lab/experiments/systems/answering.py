"""The systems that answer questions over several documents (CDLM section 3.4): encoders of CDLM's ablation,
how they read questions, and what they answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.questions import MultihopQuestion
from cdlm_lab.examples.collate import batches_by_length
from cdlm_lab.examples.questions import EncodedQuestions, QuestionCollate, QuestionExamples, question_marks_of
from cdlm_lab.examples.tokens import from_tokenizer
from cdlm_lab.experiments.cluster_corpora import VARIANTS
from cdlm_lab.experiments.runs import output_of, read_rows, write_rows
from cdlm_lab.models.checkpoint import default_device
from cdlm_lab.models.precision import Precision
from cdlm_lab.models.question_answering import AnswerSpan, DecodedAnswer, Place, QuestionAnswerer, decode
from cdlm_lab.progress import Progress
from cdlm_lab.widgets.html import variant_name


class Encoder(NamedTuple):
    """One of CDLM's ablation, which answers."""

    name: str
    label: str


ENCODERS = {name: Encoder(name, variant_name(name)) for name in VARIANTS}


@dataclass(frozen=True, kw_only=True)
class Answerer:
    """A model and how it reads questions."""

    model: QuestionAnswerer
    tokenizer: PreTrainedTokenizerBase
    max_length: int

    def examples(self, questions: Sequence[MultihopQuestion], *, labelled: bool = True) -> QuestionExamples:
        """What `collate` makes batches of."""
        return QuestionExamples(
            questions=questions,
            encoded=EncodedQuestions(questions, self.tokenizer),
            special=from_tokenizer(self.tokenizer),
            marks=question_marks_of(self.tokenizer),
            max_length=self.max_length,
            labelled=labelled,
        )

    @property
    def collate(self) -> QuestionCollate:
        """From examples to batches."""
        return QuestionCollate(pad_token_id=self.tokenizer.pad_token_id)


@dataclass(frozen=True, kw_only=True)
class QuestionPredictions:
    """Answers to questions, in order."""

    questions: Sequence[MultihopQuestion]
    answers: Sequence[DecodedAnswer]

    def official(self) -> dict[str, dict[str, Any]]:
        """As the official evaluation takes them: `answer`, id -> text; `sp`, id -> [[title, sentence]]."""
        pairs = list(zip(self.questions, self.answers, strict=True))
        return {
            "answer": {question.id: answer.text for question, answer in pairs},
            "sp": {question.id: supporting_facts(question, answer) for question, answer in pairs},
        }

    def save(self, file: Path) -> None:
        """Write a line for each question, atomically."""
        pairs = zip(self.questions, self.answers, strict=True)
        write_rows(file, ({"id": question.id, **_plain(answer)} for question, answer in pairs))

    @classmethod
    def load(cls, file: Path, *, questions: Sequence[MultihopQuestion]) -> QuestionPredictions:
        """Read what `save` wrote. Raises ValueError if it is of other questions."""
        rows = read_rows(file, [question.id for question in questions], what="questions")
        return cls(questions=questions, answers=[_answer(row) for row in rows])


def supporting_facts(question: MultihopQuestion, answer: DecodedAnswer) -> list[list[Any]]:
    """[title, sentence] of each predicted supporting sentence."""
    return [[question.paragraphs[paragraph].title, sentence] for paragraph, sentence in answer.supporting]


def _plain(answer: DecodedAnswer) -> dict[str, Any]:
    """Without keys that JSON has not: sentences are rows of paragraph, sentence, probability."""
    sentences = [[*place, round(value, 6)] for place, value in answer.sentence_probabilities.items()]
    return asdict(answer) | {"sentence_probabilities": sentences}


def _answer(row: Mapping[str, Any]) -> DecodedAnswer:
    sentences = {(paragraph, number): value for paragraph, number, value in row["sentence_probabilities"]}
    spans = (AnswerSpan(text, score, Place(*place)) for text, score, place in row["n_best"])
    return DecodedAnswer(
        text=row["text"],
        type=row["type"],
        type_probabilities=row["type_probabilities"],
        place=row["place"] and Place(*row["place"]),
        n_best=tuple(spans),
        sentence_probabilities=sentences,
        paragraph_probabilities=tuple(row["paragraph_probabilities"]),
        supporting=tuple((paragraph, number) for paragraph, number in row["supporting"]),
    )


def predict_answers(
    answerer: Answerer,
    examples: QuestionExamples,
    *,
    support: str,
    most_tokens: int,
    batch_size: int,
    precision: Precision = "float32",
    name: str | None = None,
) -> QuestionPredictions:
    """Answer every question, the longest first, so that batches hold little padding.

    Args:
        examples: their labels, if they have any, are not read.
        support: which sentences are support, `threshold` or `two_paragraphs`.
        most_tokens: of an answer.
        batch_size: questions read at once; changes nothing but speed and memory.
        name: beside the progress bar; None = no bar.
    """
    answerer.model.to(default_device())
    questions = examples.questions
    # in characters: tokens would need all sequences at once
    lengths = [len(one.text) + sum(len(p.title) + len(p.text) for p in one.paragraphs) for one in questions]
    answers: dict[int, DecodedAnswer] = {}
    with Progress(total=len(examples), desc=name, unit="question", disable=name is None) as bar:
        for numbers in batches_by_length(lengths, [0] * len(lengths), batch_size):
            sequences = [examples.describe(number) for number in numbers]
            inputs = [sequence.inputs for sequence in sequences]
            output = output_of(answerer.model, inputs, answerer.collate, precision=precision)
            for row, (number, sequence) in enumerate(zip(numbers, sequences, strict=True)):
                form = {"support": support, "most_tokens": most_tokens}
                answers[number] = decode(questions[number], sequence, output.row(row), **form)
            bar.update(len(numbers))
    return QuestionPredictions(questions=questions, answers=[answers[n] for n in range(len(answers))])
