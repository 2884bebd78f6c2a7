"""What notebook 06 shows: the tables of its report, and questions with a model's answers in place, of dev or
of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ipywidgets import Widget

from cdlm_lab.data.document_pairs import split_sentences
from cdlm_lab.data.files import read_text
from cdlm_lab.data.questions import MultihopQuestion, Paragraph, check_question, has_gold, hotpot_record
from cdlm_lab.data.typed_documents import pasted_documents
from cdlm_lab.experiments.runs import SystemRun, write_page
from cdlm_lab.experiments.systems.answering import QuestionPredictions, supporting_facts
from cdlm_lab.metrics.question_answering import question_scores
from cdlm_lab.models.question_answering import DecodedAnswer
from cdlm_lab.report import Report
from cdlm_lab.widgets.ask import own_question_box
from cdlm_lab.widgets.browse import question_browser
from cdlm_lab.widgets.html import variant_name
from cdlm_lab.widgets.questions import ReadQuestion, question_html, questions_page
from cdlm_lab.widgets.tables import ScoreTable, text_table


def kind_table(report: Report, split: str = "test") -> ScoreTable:
    """Encoder, kind, number of questions, and F1 of answer, support and both."""
    columns = ["encoder", "questions", "how many", "answer", "support", "joint"]
    rows = [
        [
            variant_name(row["system"]),
            row["kind"] or "not known",
            f"{row['questions']:,}",
            *(f"{100 * row[measure]:.1f}" for measure in ("f1", "sp_f1", "joint_f1")),
        ]
        for row in report.tables["kinds"]
        if row["split"] == split
    ]
    return text_table(columns, rows, texts=2)


# ---- answers in place ----

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


def answers_in_place(
    run: SystemRun, predictions: Mapping[tuple[str, int], Mapping[str, QuestionPredictions]]
) -> Widget:
    """Questions of dev to leaf through, as the shown encoder answers them with seed 0; the first ON_A_PAGE of
    them also go to `answers.html`, which needs no kernel."""
    reads = answered_questions(predictions[run.settings.shown.name, 0]["dev"])
    page = questions_page(reads[:ON_A_PAGE], title="Questions and answers")
    write_page(run.folder / "answers.html", page)
    return question_browser(reads)


def answered_questions(predictions: QuestionPredictions) -> list[ReadQuestion]:
    """Each question with its answer, its gold, and how well they agree."""
    return list(map(_answered, predictions.questions, predictions.answers))


def _answered(question: MultihopQuestion, answer: DecodedAnswer) -> ReadQuestion:
    known, scores = has_gold(question), {}
    if known:
        facts = supporting_facts(question, answer)
        scores = question_scores(hotpot_record(question), answer=answer.text, supporting=facts)
    numbers = {paragraph.title: number for number, paragraph in enumerate(question.paragraphs)}
    gold = frozenset((numbers[title], sentence) for title, sentence in question.supporting)
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


def own_question_in_place(run: SystemRun) -> Widget:
    """Boxes for a question and documents of one's own, and the answer of the shown encoder."""
    question, documents = own_texts(run.settings)
    answered = answer_own(run, question, pasted_documents(documents))
    return own_question_box(
        partial(answer_own, run), question=question, documents=documents, answered=answered
    )


def answer_own(run: SystemRun, text: str, documents: Sequence[tuple[str, str]]) -> str:
    """HTML of the answer of the shown encoder to a question on documents, (title, text), also in
    `own_question.html`. Raises ValueError for what cannot be read."""
    question = question_on(text, documents)
    (read,) = answered_questions(run.answers(run.loaded(run.settings.shown), [question]))
    write_page(run.folder / "own_question.html", questions_page([read], title=text))
    return question_html(read)


def question_on(text: str, documents: Sequence[tuple[str, str]]) -> MultihopQuestion:
    """A question on documents, (title, text). Raises ValueError for what cannot be read."""
    paragraphs = []
    for title, body in documents:
        sentences = split_sentences(body)
        spaced = (f"{sentence} " for sentence in sentences[:-1])
        paragraphs.append(Paragraph(title=title, sentences=(*spaced, *sentences[-1:])))
    question = MultihopQuestion(id="own", text=text.strip(), paragraphs=tuple(paragraphs))
    check_question(question, where="your documents")
    return question


def own_texts(given: Any) -> tuple[str, str]:
    """The question and the text of the file of documents, or the example."""
    if not given.own_question:
        return EXAMPLE_QUESTION, EXAMPLE_DOCUMENTS
    return given.own_question, read_text(given.own_documents)
