"""Positions of answers in a sequence; the data set of questions and its batches."""

from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from cdlm_lab.data.records import MultihopQuestion, Paragraph
from cdlm_lab.examples.tokens import from_tokenizer
from cdlm_lab.tasks.multihop.examples import (
    TITLE,
    EncodedQuestions,
    QuestionCollate,
    QuestionExamples,
    QuestionSequence,
    answer_positions,
    question_marks_of,
)

Place = tuple[int, str | int, str]  # paragraph, "title" or number of the first token's sentence, text


def paragraph(title: str, *sentences: str) -> Paragraph:
    return Paragraph(title=title, sentences=sentences)


@pytest.fixture(scope="module")
def write(shipped_question_tokenizer, sequence_of):
    return lambda record, max_length=512: sequence_of(record, shipped_question_tokenizer, max_length)


@pytest.fixture(scope="module")
def places(write):
    """Function that returns the places of an answer."""

    def places(
        answer: str | None, *made: Paragraph, gold: tuple[int, ...] = (0,), max_length: int = 512
    ) -> list[Place]:
        supporting = tuple((made[number].title, 0) for number in gold)
        record = MultihopQuestion(id="q", text="The", paragraphs=made, answer=answer, supporting=supporting)
        sequence = write(record, max_length)
        positions = answer_positions(record, sequence)
        assert (positions.dtype, positions.shape) == (np.int64, (len(positions), 2))
        assert sequence.answerable[positions].all()
        return [place(record, sequence, *each) for each in positions.tolist()]

    return places


def place(record: MultihopQuestion, sequence: QuestionSequence, first: int, last: int) -> Place:
    number, sentence = int(sequence.paragraph[first]), int(sequence.sentence[first])
    assert sequence.paragraph[last] == number
    assert (sequence.sentence[last] == TITLE) == (sentence == TITLE)
    text = record.paragraphs[number].title if sentence == TITLE else record.paragraphs[number].text
    start, end = sequence.offsets[first, 0], sequence.offsets[last, 1]
    return number, "title" if sentence == TITLE else sentence, text[start:end]


FIRST = paragraph("Mark Twain", "Mark wrote it. ", "The Market knew Mark, or mark.")
SECOND = paragraph("Hannibal", "Twain was here; MARK was not.")


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("Mark", (0,), [(0, "title", "Mark"), (0, 0, "Mark"), (0, 1, "Mark")]),
        ("Twain", (0, 1), [(0, "title", "Twain"), (1, 0, "Twain")]),
        ("Mark", (), []),
        ("wrote it. The", (0,), [(0, 0, "wrote it. The")]),  # over two sentences
        (None, (0,), []),
    ],
)
def test_occurrences_in_gold_paragraphs(places, answer, gold, expected):
    """What counts as an occurrence is tested in tests/data/convert/test_questions.py."""
    assert places(answer, FIRST, SECOND, gold=gold) == expected


def test_what_is_cut_is_left_out(places):
    text = paragraph("A", "the fire the fire the fire ", "New York")
    counts = [len(places("fire", text, max_length=n)) for n in range(13, 24)]
    # [CLS] [q] The [/q] <doc-s> <t> A </t> ... </doc-s> [SEP] are 10; then [s], the, fire, the, ...
    assert counts == [0, 1, 1, 2, 2, 3, 3, 3, 3, 3, 3]
    assert places("A", text, max_length=13) == [(0, "title", "A")]
    whole = [(0, 0, "the fire the fire the")]
    for max_length, expected in ((512, whole), (16, []), (17, whole)):
        assert places("the fire the fire the", text, max_length=max_length) == expected
    # That a whole word is cut does not make a part of one an answer.
    inside = paragraph("A", "bonfires the fire")
    assert places("fire", inside) == [(0, 0, "fire")]
    assert places("fire", inside, max_length=15) == []


SPAN_QUESTION = MultihopQuestion(
    id="s",
    text="w1",
    paragraphs=(
        paragraph("w10", "w11 w12 ", "w13"),
        paragraph("w20", "w21 w12"),
        paragraph("w30", "w31", " w12 w33", " w34 w12"),
    ),
    answer="w12",
    supporting=(("w30", 2), ("w10", 0)),
)
YES_QUESTION = MultihopQuestion(
    id="y",
    text="w2 w3",
    paragraphs=(paragraph("w40", "w41 w42 w43"), paragraph("w50", "w51")),
    answer="yes",
    supporting=(("w50", 0),),
)
UNKNOWN = MultihopQuestion(id="u", text="w4", paragraphs=(paragraph("w60", "w61"),))
INPUTS = {"input_ids", "global_attention_mask", "answerable", "paragraph_positions", "sentence_positions"}


@pytest.fixture
def examples(question_tokenizer) -> QuestionExamples:
    questions = [SPAN_QUESTION, YES_QUESTION]
    return QuestionExamples(
        questions=questions,
        encoded=EncodedQuestions([*questions, UNKNOWN], question_tokenizer),
        special=from_tokenizer(question_tokenizer),
        marks=question_marks_of(question_tokenizer),
        max_length=512,
    )


def test_an_example(examples, question_tokenizer):
    one = examples[0]
    assert " ".join(question_tokenizer.convert_ids_to_tokens(one["input_ids"].tolist())) == (
        "[CLS] [q] w1 [/q] <doc-s> <t> w10 </t> [s] w11 w12 [/s] [s] w13 [/s] </doc-s> "
        "<doc-s> <t> w20 </t> [s] w21 w12 [/s] </doc-s> "
        "<doc-s> <t> w30 </t> [s] w31 [/s] [s] w12 w33 [/s] [s] w34 w12 [/s] </doc-s> [SEP]"
    )
    answerable, attends = (
        [n for n in range(42) if one[name][n]] for name in ("answerable", "global_attention_mask")
    )
    assert answerable == [6, 9, 10, 13, 18, 21, 22, 27, 30, 33, 34, 37, 38]
    assert attends == [0, 1, 2, 3, 5, 8, 12, 17, 20, 26, 29, 32, 36]
    assert one["paragraph_positions"].tolist() == [5, 17, 26]
    assert one["sentence_positions"].tolist() == [8, 12, 20, 29, 32, 36]
    assert one["labels"].tolist() == 0
    assert one["answer_positions"].tolist() == [[10, 10], [33, 33], [38, 38]], "not that of w20"
    assert one["sentence_labels"].tolist() == [1, 0, 0, 0, 0, 1]
    assert one["paragraph_labels"].tolist() == [1, 0, 1]


def test_a_question_of_yes_or_no(examples):
    one = examples[1]
    assert one["labels"].tolist() == 1
    assert one["answer_positions"].shape == (0, 2)
    assert one["paragraph_labels"].tolist() == one["sentence_labels"].tolist() == [0, 1]
    assert replace(examples, questions=[replace(YES_QUESTION, answer="no")])[0]["labels"].tolist() == 2
    assert {key: array.dtype.name for key, array in one.items()} == {
        **dict.fromkeys(INPUTS, "int64"),
        **dict.fromkeys(("labels", "answer_positions", "sentence_labels", "paragraph_labels"), "int64"),
        "answerable": "bool",
    }
    assert {key: array.ndim for key, array in one.items() if array.ndim != 1} == {
        "labels": 0,
        "answer_positions": 2,
    }


def test_what_is_cut_has_no_labels(examples):
    # The frame is 4 + 1 + 15 = 20 and 3 paragraphs need 3 each: only the first token of each is there.
    one = replace(examples, max_length=29)[0]
    assert one["sentence_labels"].tolist() == [1, 0, 0]
    assert one["paragraph_labels"].tolist() == [1, 0, 1]
    assert one["answer_positions"].shape == (0, 2)
    for max_length, lengths in ((29, [29, 24]), (42, [42, 24]), (512, [42, 24])):
        shorter = replace(examples, max_length=max_length)
        assert [len(shorter[n]["input_ids"]) for n in range(2)] == lengths
        assert [len(shorter.describe(n).input_ids) for n in range(2)] == lengths


def test_facts_of_what_fits(examples):
    numbers = {
        "questions_cut": (0, 1),
        "tokens": (14, 10 + 4 + 1 + 1),
        "tokens_lost": (0, 7),
        "supporting": (3, 3),
        "supporting_lost": (0, 1),
        "span_questions": (1, 1),
        "without_occurrence": (0, 1),
    }
    known = replace(UNKNOWN, answer="w61")  # a span, but its paragraph is not known
    questions = [SPAN_QUESTION, YES_QUESTION, known, UNKNOWN]
    shorter = replace(examples, questions=questions, max_length=29, labelled=False)
    for place, one in enumerate((examples, shorter)):
        assert asdict(one.fit_facts()) == {name: both[place] for name, both in numbers.items()}
    twice = replace(SPAN_QUESTION, supporting=(("w10", 0), ("w10", 0)))  # counts once
    assert replace(examples, questions=[twice]).fit_facts().supporting == 1


def test_a_batch_by_hand():
    rows = {  # of one example, of another, and both in a batch
        "input_ids": ([5, 7, 9], [5, 9], [[5, 7, 9], [5, 9, 3]]),
        "global_attention_mask": ([1, 0, 1], [1, 1], [[1, 0, 1], [1, 1, 0]]),
        "answerable": ([False, True, True], [True, False], [[False, True, True], [True, False, False]]),
        "paragraph_positions": ([0], [0, 1], [[0, -1], [0, 1]]),
        "sentence_positions": ([1, 2], [1], [[1, 2], [1, -1]]),
        "labels": (0, 2, [0, 2]),
        "answer_positions": ([[1, 2]], np.empty((0, 2)), [[[1, 2]], [[-1, -1]]]),
        "sentence_labels": ([1, 0], [0], [[1, 0], [0, -100]]),
        "paragraph_labels": ([1], [0, 1], [[1, -100], [0, 1]]),
    }
    examples = [{key: np.array(row[place]) for key, row in rows.items()} for place in (0, 1)]
    batch = QuestionCollate(pad_token_id=3)(examples)
    assert batch.pop("attention_mask").tolist() == [[1, 1, 1], [1, 1, 0]]
    assert {key: values.tolist() for key, values in batch.items()} == {
        key: row[2] for key, row in rows.items()
    }
    assert batch.pop("answerable").dtype == torch.bool
    assert {values.dtype for values in batch.values()} == {torch.int64}
