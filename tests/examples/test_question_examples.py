"""The data set of questions and its batches."""

from __future__ import annotations

import re
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from cdlm_lab.data.questions import MultihopQuestion, Paragraph
from cdlm_lab.examples.questions import EncodedQuestions, QuestionCollate, QuestionExamples, question_marks_of
from cdlm_lab.examples.tokens import from_tokenizer


def paragraph(title: str, *sentences: str) -> Paragraph:
    return Paragraph(title=title, sentences=sentences)


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
    assert np.flatnonzero(one["answerable"]).tolist() == [
        6, 9, 10, 13, 18, 21, 22, 27, 30, 33, 34, 37, 38,
    ]  # fmt: skip
    assert one["paragraph_positions"].tolist() == [5, 17, 26]
    assert one["sentence_positions"].tolist() == [8, 12, 20, 29, 32, 36]
    assert np.flatnonzero(one["global_attention_mask"]).tolist() == [
        0, 1, 2, 3, 5, 8, 12, 17, 20, 26, 29, 32, 36,
    ]  # fmt: skip
    assert one["labels"].tolist() == 0
    assert one["answer_positions"].tolist() == [[10, 10], [33, 33], [38, 38]], "not that of w20"
    assert one["sentence_labels"].tolist() == [1, 0, 0, 0, 0, 1]
    assert one["paragraph_labels"].tolist() == [1, 0, 1]


def test_a_question_of_yes_or_no(examples):
    one = examples[1]
    assert one["labels"].tolist() == 1
    assert one["answer_positions"].shape == (0, 2)
    assert one["paragraph_labels"].tolist() == [0, 1]
    assert one["sentence_labels"].tolist() == [0, 1]
    negative = replace(examples, questions=[replace(YES_QUESTION, answer="no")])
    assert negative[0]["labels"].tolist() == 2


def test_kinds_of_arrays(examples):
    assert {key: (array.dtype.name, array.ndim) for key, array in examples[1].items()} == {
        "input_ids": ("int64", 1),
        "global_attention_mask": ("int64", 1),
        "answerable": ("bool", 1),
        "paragraph_positions": ("int64", 1),
        "sentence_positions": ("int64", 1),
        "labels": ("int64", 0),
        "answer_positions": ("int64", 2),
        "sentence_labels": ("int64", 1),
        "paragraph_labels": ("int64", 1),
    }


def test_without_labels_there_are_no_such_keys(examples):
    bare = replace(examples, questions=[UNKNOWN, SPAN_QUESTION], labelled=False)
    assert set(bare[0]) == {
        "input_ids", "global_attention_mask", "answerable", "paragraph_positions", "sentence_positions",
    }  # fmt: skip
    assert bare[1]["input_ids"].tolist() == examples[0]["input_ids"].tolist()


@pytest.mark.parametrize(
    ("answer", "supporting", "lacking"),
    [(None, (("w60", 0),), "answer"), ("w61", (), "supporting facts"), (None, (), "answer")],
)
def test_labels_need_an_answer_and_supporting_facts(examples, answer, supporting, lacking):
    question = replace(UNKNOWN, answer=answer, supporting=supporting)
    message = f"question u has no {lacking}; leave it out, or set labelled to False"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        replace(examples, questions=[SPAN_QUESTION, question])


def test_sentences_that_are_cut_have_no_labels(examples):
    # The frame is 4 + 1 + 15 = 20 and 3 paragraphs need 3 each: only the first token of each is there.
    one = replace(examples, max_length=29)[0]
    assert one["sentence_labels"].tolist() == [1, 0, 0]
    assert one["paragraph_labels"].tolist() == [1, 0, 1]
    assert one["answer_positions"].shape == (0, 2)


@pytest.mark.parametrize(("max_length", "lengths"), [(29, [29, 24]), (42, [42, 24]), (512, [42, 24])])
def test_an_example_is_at_most_of_that_length(examples, max_length, lengths):
    shorter = replace(examples, max_length=max_length)
    assert [len(shorter[n]["input_ids"]) for n in range(2)] == lengths
    assert [len(shorter.describe(n).input_ids) for n in range(2)] == lengths


def test_questions_in_another_order(examples):
    turned = examples.in_order(np.array([1, 0, 1]))
    assert [question.id for question in turned.questions] == ["y", "s", "y"]
    assert turned[1]["input_ids"].tolist() == examples[0]["input_ids"].tolist()
    assert turned.encoded is examples.encoded, "nothing is tokenised again"
    with pytest.raises(IndexError, match="there is no question -1"):
        examples.in_order([0, -1])


@pytest.mark.parametrize("index", [-1, 2])
def test_indices_outside(examples, index):
    for read in (examples.__getitem__, examples.describe):
        with pytest.raises(IndexError, match=f"^there is no question {index}; there are 2, counted from 0$"):
            read(index)


def test_facts_when_all_fits(examples):
    assert asdict(examples.fit_facts()) == {
        "questions": 2,
        "questions_cut": 0,
        "tokens": 14,
        "tokens_lost": 0,
        "sentences": 8,
        "sentences_lost": 0,
        "supporting": 3,
        "supporting_lost": 0,
        "span_questions": 1,
        "without_occurrence": 0,
    }


def test_facts_of_what_is_cut(examples):
    known = replace(UNKNOWN, answer="w61")  # a span, but nobody knows of which paragraph
    shorter = replace(
        examples, questions=[SPAN_QUESTION, YES_QUESTION, known, UNKNOWN], max_length=29, labelled=False
    )
    assert asdict(shorter.fit_facts()) == {
        "questions": 4,
        "questions_cut": 1,
        "tokens": 10 + 4 + 1 + 1,
        "tokens_lost": 7,
        "sentences": 6 + 2 + 1 + 1,
        "sentences_lost": 3,
        "supporting": 3,
        "supporting_lost": 1,
        "span_questions": 1,
        "without_occurrence": 1,
    }


def test_supporting_facts_named_twice_count_once(examples):
    twice = replace(SPAN_QUESTION, supporting=(("w10", 0), ("w10", 0)))
    assert replace(examples, questions=[twice]).fit_facts().supporting == 1


def test_a_batch_by_hand():
    one = {
        "input_ids": [5, 7, 9],
        "global_attention_mask": [1, 0, 1],
        "answerable": [False, True, True],
        "paragraph_positions": [0],
        "sentence_positions": [1, 2],
        "labels": 0,
        "answer_positions": [[1, 2]],
        "sentence_labels": [1, 0],
        "paragraph_labels": [1],
    }
    other = {
        "input_ids": [5, 9],
        "global_attention_mask": [1, 1],
        "answerable": [True, False],
        "paragraph_positions": [0, 1],
        "sentence_positions": [1],
        "labels": 2,
        "answer_positions": np.empty((0, 2)),
        "sentence_labels": [0],
        "paragraph_labels": [0, 1],
    }
    batch = QuestionCollate(pad_token_id=3)(
        [{key: np.array(value) for key, value in example.items()} for example in (one, other)]
    )
    assert {key: values.tolist() for key, values in batch.items()} == {
        "input_ids": [[5, 7, 9], [5, 9, 3]],
        "attention_mask": [[1, 1, 1], [1, 1, 0]],
        "global_attention_mask": [[1, 0, 1], [1, 1, 0]],
        "answerable": [[False, True, True], [True, False, False]],
        "paragraph_positions": [[0, -1], [0, 1]],
        "sentence_positions": [[1, 2], [1, -1]],
        "labels": [0, 2],
        "answer_positions": [[[1, 2]], [[-1, -1]]],
        "sentence_labels": [[1, 0], [0, -100]],
        "paragraph_labels": [[1, -100], [0, 1]],
    }
    kinds = {key: values.dtype for key, values in batch.items()}
    assert kinds.pop("answerable") == torch.bool
    assert set(kinds.values()) == {torch.int64}


def test_a_row_alone_is_the_row_in_a_batch(examples):
    collate = QuestionCollate(pad_token_id=0)
    batch = collate([examples[0], examples[1]])
    for number in range(2):
        for key, values in collate([examples[number]]).items():
            row = batch[key][number]
            inside = tuple(slice(0, size) for size in values[0].shape)
            assert torch.equal(row[inside], values[0]), key
            assert values[0].numel() == row.numel() or row.flatten()[-1] in (-100, -1, 0)
    assert batch["answer_positions"].shape == (2, 3, 2)


def test_a_batch_without_any_occurrence_or_label(examples):
    collate = QuestionCollate(pad_token_id=0)
    assert collate([examples[1]])["answer_positions"].shape == (1, 0, 2)
    bare = collate([replace(examples, labelled=False)[n] for n in range(2)])
    assert set(bare) == {
        "input_ids", "attention_mask", "global_attention_mask", "answerable", "paragraph_positions",
        "sentence_positions",
    }  # fmt: skip


def test_a_batch_owns_its_numbers(examples):
    example = examples[0]
    QuestionCollate(pad_token_id=0)([example])["input_ids"].zero_()
    assert example["input_ids"].any()


def test_what_cannot_be_a_batch(examples):
    collate = QuestionCollate(pad_token_id=0)
    with pytest.raises(ValueError, match=r"^no examples to collate$"):
        collate([])
    with pytest.raises(ValueError, match=r"^examples\[1\] has the keys .*, but examples\[0\] "):
        collate([examples[0], replace(examples, labelled=False)[1]])
    without = {
        key: {name: array for name, array in examples[0].items() if name != key}
        for key in ("labels", "input_ids")
    }
    with pytest.raises(ValueError, match=r"has some of the labels .*; give all or none"):
        collate([without["labels"]])
    for wrong in (without["input_ids"], examples[0] | {"mention_mask": np.zeros(3)}):
        with pytest.raises(ValueError, match=r"they must be answerable, .*, and maybe answer_positions, "):
            collate([wrong])
