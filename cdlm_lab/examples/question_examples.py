"""Questions over several paragraphs as examples of a model that answers them, and batches of such examples
(CDLM sections 3.4 and C.3)."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from cdlm_lab.data.multihop_questions import MultihopQuestion

from .encode_question import EncodedQuestion
from .question_answers import answer_positions
from .question_sequence import QUESTION_TYPES, QuestionMarks, QuestionSequence, question_sequence
from .special_tokens import SpecialTokens


@dataclass(frozen=True, slots=True, kw_only=True)
class FitFacts:
    """What of some questions is in their sequences.

    Attributes:
        questions: looked at.
        questions_cut: those that lose tokens.
        tokens, tokens_lost: of sentences; given, and of them left out.
        sentences, sentences_lost: given, and of them those of which nothing is in a sequence, blank ones too.
        supporting, supporting_lost: the same of supporting sentences.
        span_questions: those that a span answers and whose supporting sentences are known.
        without_occurrence: of them, those whose answer stands nowhere in the gold paragraphs as far as they
            are in the sequence.
    """

    questions: int
    questions_cut: int
    tokens: int
    tokens_lost: int
    sentences: int
    sentences_lost: int
    supporting: int
    supporting_lost: int
    span_questions: int
    without_occurrence: int


@dataclass(frozen=True, kw_only=True, eq=False)
class QuestionExamples:
    """Map-style dataset of questions; each sequence is written when it is read.

    `examples[i]` is a dict of
    - `input_ids` int64 (seq,), `global_attention_mask` int64 (seq,), 1 = global;
    - `answerable` bool (seq,), True = an answer may start or end here;
    - `paragraph_positions` int64 (paragraphs,) and `sentence_positions` int64 (sentences,), of their marks;
    and with labels
    - `labels` int64 (), the type of the answer, a number of QUESTION_TYPES;
    - `answer_positions` int64 (occurrences, 2), see `answer_positions`;
    - `paragraph_labels` int64 (paragraphs,), 1 = has supporting sentences;
    - `sentence_labels` int64 (sentences,), 1 = supporting.

    Attributes:
        questions: in order.
        encoded: the questions by id; `EncodedQuestions` encodes each once, when it is first needed.
        special: ids of the special tokens.
        marks: ids of the marks.
        max_length: of a sequence, special tokens included.
        labelled: False = the four keys of labels are left out.

    Raises:
        ValueError: labels are wanted of a question without an answer or without supporting facts.
    """

    questions: Sequence[MultihopQuestion]
    encoded: Mapping[str, EncodedQuestion]
    special: SpecialTokens
    marks: QuestionMarks
    max_length: int
    labelled: bool = True

    def __post_init__(self) -> None:
        for question in self.questions if self.labelled else ():
            if question.answer is None or not (question.supporting or question.unknown_supporting):
                lacking = "answer" if question.answer is None else "supporting facts"
                raise ValueError(
                    f"question {question.id} has no {lacking}; leave it out, or set labelled to False"
                )

    def __len__(self) -> int:
        return len(self.questions)

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        sequence = self.describe(index)
        labels = _labels(self.questions[index], sequence) if self.labelled else {}
        return sequence.inputs | labels

    def in_order(self, order: Sequence[int] | np.ndarray) -> QuestionExamples:
        """The questions of these numbers, in this order; they stay encoded. Raises IndexError for a question
        that is not there."""
        return replace(self, questions=[self.questions[self._number(index)] for index in order])

    def describe(self, index: int) -> QuestionSequence:
        """The sequence of one question with what was left out of it.

        Raises:
            IndexError: an index below 0 or not below the number of questions.
            ValueError: there is no room for it in `max_length`.
        """
        encoded = self.encoded[self.questions[self._number(index)].id]
        return question_sequence(encoded, special=self.special, marks=self.marks, max_length=self.max_length)

    def fit_facts(self) -> FitFacts:
        """How much of the questions is in their sequences; reads all of them. Errors as of `describe`."""
        total: Counter[str] = Counter()
        for index, question in enumerate(self.questions):
            total.update(_fit(question, self.describe(index)))
        return FitFacts(**{name: total[name] for name in FitFacts.__dataclass_fields__})

    def _number(self, index: int) -> int:
        number = operator.index(index)
        if not 0 <= number < len(self):
            raise IndexError(f"there is no question {number}; there are {len(self)}, counted from 0")
        return number


def _labels(question: MultihopQuestion, sequence: QuestionSequence) -> dict[str, np.ndarray]:
    """The four keys that the answer and the supporting facts of a question give."""
    needed, gold = _needed(question), question.gold_paragraphs
    return {
        "labels": np.array(QUESTION_TYPES.index(question.type), dtype=np.int64),
        "answer_positions": answer_positions(question, sequence),
        "sentence_labels": np.array(
            [tuple(name) in needed for name in sequence.sentence_names.tolist()], dtype=np.int64
        ),
        "paragraph_labels": np.isin(np.arange(len(question.paragraphs)), gold).astype(np.int64),
    }


def _needed(question: MultihopQuestion) -> set[tuple[int, int]]:
    """Paragraph and number in it of each supporting sentence."""
    numbers = {paragraph.title: number for number, paragraph in enumerate(question.paragraphs)}
    return {(numbers[title], sentence) for title, sentence in question.supporting}


def _fit(question: MultihopQuestion, sequence: QuestionSequence) -> dict[str, int]:
    """What one question adds to each field of FitFacts."""
    needed = _needed(question)
    there = set(map(tuple, sequence.sentence_names.tolist()))
    seeks_span = question.type == "span" and bool(needed)
    return {
        "questions": 1,
        "questions_cut": int(sequence.lost_tokens > 0),
        "tokens": int((sequence.sentence >= 0).sum()) + sequence.lost_tokens,
        "tokens_lost": sequence.lost_tokens,
        "sentences": sum(len(paragraph.sentences) for paragraph in question.paragraphs),
        "sentences_lost": sum(sequence.lost_sentences),
        "supporting": len(needed),
        "supporting_lost": len(needed - there),
        "span_questions": int(seeks_span),
        "without_occurrence": int(seeks_span and not len(answer_positions(question, sequence))),
    }


@dataclass(frozen=True, slots=True)
class QuestionCollate:
    """Pads examples of `QuestionExamples` and stacks them into what `QuestionAnswerer.forward` takes; give it
    to a `Trainer` or `DataLoader` as it is.

    Attributes:
        pad_token_id: fills `input_ids`; positions are filled with -1, labels of sentences and paragraphs with
            -100, masks with 0 or False.

    Example, for `QuestionCollate(pad_token_id=0)`, of two of the keys:

        [{"input_ids": [5, 7, 9], "answer_positions": [[1, 2]], ...},
         {"input_ids": [5, 9],    "answer_positions": [], ...}]
        gives
        {"input_ids":        [[5, 7, 9], [5, 9, 0]],
         "attention_mask":   [[1, 1, 1], [1, 1, 0]],
         "answer_positions": [[[1, 2]], [[-1, -1]]], ...}
    """

    pad_token_id: int

    def __call__(self, examples: Sequence[Mapping[str, np.ndarray]]) -> dict[str, torch.Tensor]:
        """Pad and stack.

        Args:
            examples: see `QuestionExamples`; the labels in all or in none.

        Returns:
            `input_ids`, `attention_mask` (1 = a token, 0 = padding), `global_attention_mask`: (batch, seq);
            `answerable`: bool (batch, seq); `paragraph_positions`: (batch, paragraphs);
            `sentence_positions`: (batch, sentences); and, if there, `labels`: (batch,); `answer_positions`:
            (batch, occurrences, 2), maybe with 0 occurrences; `sentence_labels`, `paragraph_labels`: as the
            positions. Integers are int64; each length is the longest of the batch.

        Raises:
            ValueError: no examples; different or other keys.
        """
        _check_keys(examples)
        fill = _FILL | {"input_ids": self.pad_token_id}
        batch = {key: _padded([one[key] for one in examples], fill=fill[key]) for key in examples[0]}
        ones = [np.ones(len(one["input_ids"]), dtype=np.int64) for one in examples]
        return batch | {"attention_mask": _padded(ones, fill=0)}


_FILL: dict[str, int | bool] = {
    "global_attention_mask": 0,
    "answerable": False,
    "paragraph_positions": -1,
    "sentence_positions": -1,
    "labels": -100,  # never padded: one for each question
    "answer_positions": -1,
    "sentence_labels": -100,
    "paragraph_labels": -100,
}
_LABELS = {"labels", "answer_positions", "sentence_labels", "paragraph_labels"}


def _check_keys(examples: Sequence[Mapping[str, np.ndarray]]) -> None:
    if not examples:
        raise ValueError("no examples to collate")
    keys = examples[0].keys()
    if keys | _LABELS != _FILL.keys() | {"input_ids"} or keys & _LABELS not in (set(), _LABELS):
        raise ValueError(
            f"examples[0] has the keys {sorted(keys)}; they must be those of QuestionExamples, with the four "
            "of labels or without"
        )
    for number, example in enumerate(examples):
        if example.keys() != keys:
            what = f"examples[{number}] has the keys {sorted(example)}, but examples[0] {sorted(keys)}"
            raise ValueError(what)


def _padded(rows: Sequence[np.ndarray], *, fill: int | bool) -> torch.Tensor:
    """Stack arrays that differ in their first axis, if they have one."""
    shape = (max(map(len, rows)), *rows[0].shape[1:]) if rows[0].ndim else ()
    out = np.full((len(rows), *shape), fill, dtype=bool if isinstance(fill, bool) else np.int64)
    for number, row in enumerate(rows):
        out[(number, *map(slice, row.shape[:1]))] = row
    return torch.from_numpy(out)
