"""Questions with a model's answers in place: of dev or test, or one of one's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ipywidgets import Widget

from cdlm_lab.data.files import read_text, replaced_file
from cdlm_lab.data.hotpotqa import hotpot_record
from cdlm_lab.data.multihop_questions import MultihopQuestion, Paragraph, check_question
from cdlm_lab.data.pair_csv import split_sentences
from cdlm_lab.data.pasted_documents import pasted_documents
from cdlm_lab.experiments.multihop_qa import Answerer, MultihopRun
from cdlm_lab.experiments.question_predictions import QuestionPredictions, predict_answers
from cdlm_lab.metrics.question_answering import question_scores
from cdlm_lab.models.answer_decoding import DecodedAnswer
from cdlm_lab.parameters import ParameterError
from cdlm_lab.widgets.own_question import own_question_box
from cdlm_lab.widgets.question_browser import question_browser
from cdlm_lab.widgets.read_question import ReadQuestion, question_html, questions_page

ON_A_PAGE = 50
# What stands in the boxes before anything is typed.
EXAMPLE_QUESTION = "Where does the author of the early warning teach?"
EXAMPLE_DOCUMENTS = """\
== Warning came years ago ==
A paper dated 1995 had warned of just this; its author is Kryla Truldei, an engineer. The council read it \
and put it away.

== Students bring soup ==
Students of Triard University came by bus with an engineer, Kryla Truldei, who teaches there. They stayed \
until the morning.

== Ferry back in service ==
The ferry to Telk sails again from Monday. Tickets cost what they did before.
"""


def read_questions_of(predictions: QuestionPredictions) -> list[ReadQuestion]:
    """Each question with its answer, its gold, and how well they agree."""
    return [
        _read(question, answer)
        for question, answer in zip(predictions.questions, predictions.answers, strict=True)
    ]


def answers_in_place(predictions: QuestionPredictions, *, file: Path) -> Widget:
    """Questions to leaf through; the first ON_A_PAGE of them also go to `file`, which needs no kernel."""
    reads = read_questions_of(predictions)
    _write_page(reads[:ON_A_PAGE], file, title="Questions and answers")
    return question_browser(reads)


def own_question_in_place(run: MultihopRun, name: str, question: str, documents: str) -> Widget:
    """Boxes for a question and documents of one's own, and the answer of an encoder trained with seed 0,
    that to what stands in the boxes at first included.

    Raises ValueError if these cannot be read.
    """
    answer = own_answer(run, name)
    return own_question_box(
        answer,
        question=question,
        documents=documents,
        answered=answer(question, pasted_documents(documents)),
    )


def own_answer(run: MultihopRun, name: str) -> Callable[[str, Sequence[tuple[str, str]]], str]:
    """From a question and (title, text) of documents to HTML: the answer of an encoder trained with seed 0.
    The model is loaded when it is first needed; the answer is also written to `own_question.html` in the
    folder of the run.

    The function raises ValueError for what cannot be read.
    """
    loaded: list[Answerer] = []

    def answer(text: str, documents: Sequence[tuple[str, str]]) -> str:
        question = _own(text, documents)
        if not loaded:
            loaded.append(run.answerer(name, 0, trained=True))
        settings = run.settings.answerer
        found = predict_answers(
            loaded[0].model,
            loaded[0].examples([question], labelled=False),
            loaded[0].collate,
            support=settings.support,
            most_tokens=settings.most_answer_tokens,
            batch_size=1,
            precision=settings.precision,
        )
        (read,) = read_questions_of(found)
        _write_page([read], run.folder / "own_question.html", title=text)
        return question_html(read)

    return answer


def own_texts(question: str, documents: str) -> tuple[str, str]:
    """A question and the text of a file of documents, or the example if both are "".

    Raises ParameterError if one alone is given, DataError as `read_text`.
    """
    if not question and not documents:
        return EXAMPLE_QUESTION, EXAMPLE_DOCUMENTS
    if not (question and documents):
        missing = "own_documents" if question else "own_question"
        raise ParameterError(f'{missing} is ""; give a question and a file of documents, or neither')
    return question, read_text(documents)


def _write_page(reads: Sequence[ReadQuestion], file: Path, *, title: str) -> None:
    with replaced_file(file) as opened:
        opened.write(questions_page(reads, title=title))


def _own(text: str, documents: Sequence[tuple[str, str]]) -> MultihopQuestion:
    paragraphs = []
    for title, body in documents:
        sentences = split_sentences(body)
        spaced = (f"{sentence} " for sentence in sentences[:-1])
        paragraphs.append(Paragraph(title=title, sentences=(*spaced, *sentences[-1:])))
    question = MultihopQuestion(id="own", text=text.strip(), paragraphs=tuple(paragraphs))
    check_question(question, where="your documents")
    return question


def _read(question: MultihopQuestion, answer: DecodedAnswer) -> ReadQuestion:
    known = question.answer is not None and bool(question.supporting or question.unknown_supporting)
    numbers = {paragraph.title: number for number, paragraph in enumerate(question.paragraphs)}
    gold = frozenset((numbers[title], sentence) for title, sentence in question.supporting)
    facts = [(question.paragraphs[paragraph].title, sentence) for paragraph, sentence in answer.supporting]
    scores = question_scores(hotpot_record(question), answer=answer.text, supporting=facts) if known else {}
    return ReadQuestion(
        id=question.id,
        question=question.text,
        kind=question.kind,
        gold_answer=question.answer,
        answer=answer.text,
        place=answer.place,
        paragraphs=question.paragraphs,
        sentence_probabilities=answer.sentence_probabilities,
        paragraph_probabilities=answer.paragraph_probabilities,
        supporting=frozenset(answer.supporting),
        gold_supporting=gold if known else None,
        answer_f1=scores.get("f1"),
        answer_em=scores["em"] == 1 if known else None,
        support_em=scores["sp_em"] == 1 if known else None,
        support_f1=scores.get("sp_f1"),
    )
