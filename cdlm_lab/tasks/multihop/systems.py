"""Multi-hop question answering systems (CDLM section 3.4): the encoders of CDLM's ablation, how they read
questions, and the answers they predict."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.convert.hotpotqa import hotpot_record
from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import MultihopQuestion
from cdlm_lab.encoders.checkpoint import on_default_device
from cdlm_lab.encoders.variants import VARIANTS
from cdlm_lab.examples.tokens import from_tokenizer
from cdlm_lab.runs.items import read_frame, write_frame
from cdlm_lab.runs.runs import System, outputs_by_length
from cdlm_lab.tasks.multihop.examples import (
    EncodedQuestions,
    QuestionCollate,
    QuestionExamples,
    question_marks_of,
)
from cdlm_lab.tasks.multihop.metrics import scores_by_question
from cdlm_lab.tasks.multihop.model import AnswerSpan, DecodedAnswer, Place, QuestionAnswerer, decode

# The encoders of CDLM's ablation; each is fine-tuned to answer questions.
ENCODERS = {name: System(name, variant.label) for name, variant in VARIANTS.items()}


@dataclass(frozen=True, kw_only=True)
class Answerer:
    """A question answering model with its tokenizer and maximum sequence length."""

    model: QuestionAnswerer
    tokenizer: PreTrainedTokenizerBase
    max_length: int

    def examples(self, questions: Sequence[MultihopQuestion], *, labelled: bool = True) -> QuestionExamples:
        """Examples of these questions, from which `collate` makes batches."""
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
        """Turns examples into batches."""
        window = self.model.config.attention_window[0]  # the same in all layers
        return QuestionCollate(pad_token_id=self.tokenizer.pad_token_id, window=window)


@dataclass(frozen=True, kw_only=True)
class QuestionPredictions:
    """Predicted answers to questions, in the same order."""

    questions: Sequence[MultihopQuestion]
    answers: Sequence[DecodedAnswer]

    def official(self) -> dict[str, dict[str, Any]]:
        """In the format of the official evaluation: `answer`, id -> text; `sp`, id -> [[title, sentence]]."""
        pairs = list(zip(self.questions, self.answers, strict=True))
        return {
            "answer": {question.id: answer.text for question, answer in pairs},
            "sp": {question.id: supporting_facts(question, answer) for question, answer in pairs},
        }

    def scores(self) -> dict[str, Any]:
        """The official scores of each question, by measure."""
        return scores_by_question([*map(hotpot_record, self.questions)], self.official())

    def save(self, file: Path) -> None:
        """Write one row a question, atomically, with all that was decoded as JSON, in which a sentence is a
        list of paragraph, number and probability."""
        decoded = []
        for one in self.answers:
            sentences = [[*place, round(value, 6)] for place, value in one.sentence_probabilities.items()]
            decoded.append(json.dumps(asdict(one) | {"sentence_probabilities": sentences}))
        columns = {"item": [one.id for one in self.questions], "answer": [one.text for one in self.answers]}
        write_frame(pd.DataFrame(columns | {"decoded": decoded}), file)

    @classmethod
    def load(cls, file: Path, *, questions: Sequence[MultihopQuestion]) -> QuestionPredictions:
        """Read what `save` wrote."""
        decoded = map(json.loads, read_frame(file)["decoded"])
        return cls(questions=questions, answers=[*map(_answer, decoded)])


def supporting_facts(question: MultihopQuestion, answer: DecodedAnswer) -> list[list[Any]]:
    """[title, sentence] of each predicted supporting sentence."""
    return [[question.paragraphs[paragraph].title, sentence] for paragraph, sentence in answer.supporting]


def _answer(row: Mapping[str, Any]) -> DecodedAnswer:
    return DecodedAnswer(
        text=row["text"],
        type=row["type"],
        type_probabilities=row["type_probabilities"],
        place=row["place"] and Place(*row["place"]),
        n_best=tuple(AnswerSpan(text, score, Place(*place)) for text, score, place in row["n_best"]),
        sentence_probabilities={tuple(place): value for *place, value in row["sentence_probabilities"]},
        paragraph_probabilities=tuple(row["paragraph_probabilities"]),
        supporting=tuple(map(tuple, row["supporting"])),
        probability=row["probability"],
    )


def answer_given(file: Path, question: MultihopQuestion, line: int, answer: Any, facts: Any) -> DecodedAnswer:
    """An answer that another program made: its text, and `facts`, [[title, number of the sentence, from 0],
    ...]. Raises DataError, with file and line, unless it is a text, and every fact a sentence."""
    numbers = {one.title: number for number, one in enumerate(question.paragraphs)}
    if not isinstance(answer, str):
        what = f"the answer to question {question.id!r} is {answer!r}"
        raise DataError(file, what, 'write a text, such as "yes"', line=line, field="answer")
    for fact in facts if isinstance(facts, list) else [facts]:
        title, sentence = fact if isinstance(fact, list) and len(fact) == 2 else (None, None)
        number = numbers.get(title) if isinstance(title, str) else None
        if number is None or sentence not in range(len(question.paragraphs[number].sentences)):
            what = f"{fact!r} is no sentence of question {question.id!r}"
            raise DataError(file, what, "write [title, number from 0]", line=line, field="facts")
    return DecodedAnswer(
        text=answer,
        type=answer if answer in ("yes", "no") else "span",
        supporting=tuple((numbers[title], sentence) for title, sentence in facts),
        type_probabilities={},
        sentence_probabilities={},
        place=None,
        n_best=(),
        paragraph_probabilities=(),
    )


def predict_answers(
    answerer: Answerer, examples: QuestionExamples, *, support: str, **reading: Any
) -> QuestionPredictions:
    """Answer every question. `reading`: batch size, precision, name beside a progress bar."""
    on_default_device(answerer.model)
    questions = examples.questions
    # in characters: counting tokens would need all sequences at once
    lengths = [len(one.text) + sum(len(p.title) + len(p.text) for p in one.paragraphs) for one in questions]
    outputs = outputs_by_length(
        answerer.model,
        examples,
        lambda sequences: answerer.collate([sequence.inputs for sequence in sequences]),
        lengths=lengths,
        read=examples.describe,
        unit="question",
        **reading,
    )
    answers: dict[int, DecodedAnswer] = {}
    for numbers, sequences, output in outputs:
        for row, (number, sequence) in enumerate(zip(numbers, sequences, strict=True)):
            answers[number] = decode(questions[number], sequence, output.row(row), support=support)
    return QuestionPredictions(questions=questions, answers=[answers[n] for n in range(len(answers))])
