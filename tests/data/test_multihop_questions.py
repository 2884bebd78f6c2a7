"""Questions over paragraphs: what follows from a record, and what is refused."""

import re
from dataclasses import FrozenInstanceError, replace

import pytest

from cdlm_lab.data.questions import MultihopQuestion, Paragraph, check_question

MILL = Paragraph(title="Blue Mill", sentences=("Blue Mill is a novel.", " ", " Ann Lee wrote it."))
LEE = Paragraph(title="Ann Lee", sentences=("Ann Lee is from Ghent.",))
RAIN = Paragraph(title="Rain", sentences=("It is wet.",))
QUESTION = MultihopQuestion(
    id="q1",
    text="Where is the author of Blue Mill from?",
    paragraphs=(RAIN, MILL, LEE),
    answer="Ghent",
    supporting=(("Ann Lee", 0), ("Blue Mill", 2)),
    kind="bridge",
)


def test_text_of_a_paragraph_is_its_sentences_and_nothing_between_them():
    assert MILL.text == "Blue Mill is a novel.  Ann Lee wrote it."
    assert Paragraph(title="Blue Mill", sentences=()).text == ""


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("yes", "yes"), ("no", "no"), ("Ghent", "span"), ("No", "span"), ("noanswer", "span"), (None, None)],
)
def test_type_is_that_of_the_answer(answer, expected):
    assert replace(QUESTION, answer=answer).type == expected


def test_gold_paragraphs_are_ascending_and_each_there_once():
    assert QUESTION.gold_paragraphs == (1, 2)
    assert replace(QUESTION, supporting=(("Ann Lee", 0), ("Ann Lee", 0))).gold_paragraphs == (2,)
    assert replace(QUESTION, supporting=()).gold_paragraphs == ()


def test_records_are_frozen():
    with pytest.raises(FrozenInstanceError):
        QUESTION.answer = "Rome"
    assert hash(QUESTION) == hash(replace(QUESTION))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"answer": None, "supporting": ()},
        {"answer": "words that stand nowhere"},
        {"supporting": (("Blue Mill", 1),)},  # a sentence of blanks is one
        {"supporting": (("Ann Lee", 0), ("Ann Lee", 0))},
        {"paragraphs": (LEE,), "supporting": ()},
    ],
)
def test_questions_that_can_be_scored_pass(changes):
    check_question(replace(QUESTION, **changes), where="here")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"text": " \n"}, "the question is empty"),
        ({"answer": ""}, "the answer is empty; leave the field out if it is not known"),
        ({"answer": " "}, "the answer is empty; leave the field out if it is not known"),
        ({"paragraphs": ()}, "the context is empty; give at least one paragraph"),
        ({"paragraphs": (*QUESTION.paragraphs, Paragraph(title="Dry", sentences=(" ", "\n")))},
         "paragraph 3, 'Dry', has no text"),
        ({"paragraphs": (Paragraph(title="Dry", sentences=()), *QUESTION.paragraphs)},
         "paragraph 0, 'Dry', has no text"),
        ({"paragraphs": (*QUESTION.paragraphs, replace(MILL, title="Rain"))},
         "two paragraphs are called 'Rain'; titles tell paragraphs apart"),
        ({"supporting": (("Ann Lee", 0), ("ann lee", 0))},
         "a supporting fact names 'ann lee', which is no paragraph of the context"),
        ({"supporting": (("Blue Mill", 3),)},
         "a supporting fact names sentence 3 of 'Blue Mill', which has 3, counted from 0"),
        ({"supporting": (("Blue Mill", -1),)},
         "a supporting fact names sentence -1 of 'Blue Mill', which has 3, counted from 0"),
    ],
)  # fmt: skip
def test_what_is_refused(changes, problem):
    complaint = f"dev.json: question 'q1': {problem}"
    with pytest.raises(ValueError, match=f"^{re.escape(complaint)}$"):
        check_question(replace(QUESTION, **changes), where="dev.json")


def test_a_question_without_id_is_refused():
    with pytest.raises(ValueError, match=r"^here: question '': it has no id; give each its own$"):
        check_question(replace(QUESTION, id=""), where="here")
