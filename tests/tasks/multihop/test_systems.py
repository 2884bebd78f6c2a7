"""Answers of a model to a few questions: in whatever batches, and back from the disk."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cdlm_lab.data.records import MultihopQuestion, Paragraph
from cdlm_lab.runs.items import read_frame
from cdlm_lab.tasks.multihop import model as models
from cdlm_lab.tasks.multihop.examples import QuestionExamples
from cdlm_lab.tasks.multihop.model import AnswerSpan, DecodedAnswer, Place
from cdlm_lab.tasks.multihop.systems import Answerer, QuestionPredictions, predict_answers

BODY = ("The mayor of the town left. ", "A fire broke out. ", "The storm hit the harbour at night. ")
SIZES = (2, 1, 4, 3, 5, 20)  # the last is cut to 96 tokens, and has more characters than the others
QUESTIONS = [
    MultihopQuestion(
        id=f"q{size}",
        text="Who left the town?",
        paragraphs=(Paragraph(title="Fire", sentences=BODY[:1] * size), Paragraph(title="B", sentences=BODY)),
    )
    for size in SIZES
]
FORM = {"support": "two_paragraphs"}


@pytest.fixture(scope="module")
def answerer():
    """A model whose heads are drawn."""
    model, tokenizer = models.load_question_answerer("storyworld/cdlm", max_length=96, window=32, seed=0)
    return Answerer(model=model.eval(), tokenizer=tokenizer, max_length=96)


@pytest.fixture(scope="module")
def examples(answerer: Answerer) -> QuestionExamples:
    return answerer.examples(QUESTIONS, labelled=False)


def predicted(answerer: Answerer, examples: QuestionExamples, *, batch_size: int = 2):
    return predict_answers(answerer, examples, **FORM, batch_size=batch_size).answers


def assert_same(answers, others) -> None:
    """All equal; logits and probabilities but for rounding, as a batch may change their last digits."""
    for one, other in zip(answers, others, strict=True):
        for name in ("text", "type", "place", "supporting"):
            assert getattr(one, name) == getattr(other, name)
        for numbers in ("type_probabilities", "sentence_probabilities", "paragraph_probabilities"):
            assert getattr(one, numbers) == pytest.approx(getattr(other, numbers), abs=1e-5)
        assert one.n_best[0].score == pytest.approx(other.n_best[0].score, abs=1e-4)


def test_neither_batches_nor_order_nor_labels_change_an_answer(answerer, examples):
    with torch.inference_mode():
        outputs = [answerer.model(**answerer.collate([example])).row(0) for example in examples]
    numbered = enumerate(zip(QUESTIONS, outputs, strict=True))
    alone = [models.decode(one, examples.describe(n), output, **FORM) for n, (one, output) in numbered]
    for batch_size in (1, 2, 3, 4, 6):
        assert_same(predicted(answerer, examples, batch_size=batch_size), alone)
    order = [3, 0, 5, 2, 4, 1]
    moved = replace(examples, questions=[QUESTIONS[number] for number in order])
    assert_same(predicted(answerer, moved), [alone[number] for number in order])
    gold = [replace(one, answer="town", supporting=(("B", 0),)) for one in QUESTIONS]
    labelled = replace(examples, questions=gold, labelled=True)
    assert predicted(answerer, labelled) == predicted(answerer, examples)
    assert predicted(answerer, replace(examples, questions=[])) == []


TOWN, FIRE = Place(1, "body", 13, 21), Place(0, "title", 0, 4)
SPAN = DecodedAnswer(
    text="the town",
    type="span",
    type_probabilities={"span": 0.5, "yes": 0.25, "no": 0.25},
    place=TOWN,
    n_best=(AnswerSpan("the town", 1.5, TOWN), AnswerSpan("Fire", -0.5, FIRE)),
    sentence_probabilities={(0, 0): 0.25, (1, 2): 0.75},
    paragraph_probabilities=(0.125, 1.0),
    supporting=((0, 1), (1, 2)),
    probability=0.125,
)
YES = replace(SPAN, text="yes", type="yes", place=None, n_best=(), supporting=())


def test_answers_come_back_as_they_were(tmp_path: Path):
    file = tmp_path / "new" / "dev.parquet"
    QuestionPredictions(questions=QUESTIONS[:2], answers=[SPAN, YES]).save(file)
    first, second = QuestionPredictions.load(file, questions=QUESTIONS[:2]).answers
    assert (first, second) == (SPAN, YES)
    places = (first.place, *(span.place for span in first.n_best))
    assert {type(place) for place in places} == {Place}
    assert {type(span) for span in first.n_best} == {AnswerSpan}
    assert {type(getattr(second, name)) for name in ("n_best", "paragraph_probabilities", "supporting")} == {
        tuple
    }
    assert read_frame(file)["item"].tolist() == [one.id for one in QUESTIONS[:2]]
    assert json.loads(read_frame(file)["decoded"][0]) == {
        "text": "the town",
        "type": "span",
        "type_probabilities": {"span": 0.5, "yes": 0.25, "no": 0.25},
        "place": [1, "body", 13, 21],
        "n_best": [["the town", 1.5, [1, "body", 13, 21]], ["Fire", -0.5, [0, "title", 0, 4]]],
        "sentence_probabilities": [[0, 0, 0.25], [1, 2, 0.75]],
        "paragraph_probabilities": [0.125, 1.0],
        "supporting": [[0, 1], [1, 2]],
        "probability": 0.125,
    }
