"""A question of one's own over documents of one's own, and what a model answers.

The boxes and the button need a running kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ipywidgets

from cdlm_lab.data.pasted_documents import pasted_documents
from cdlm_lab.widgets.answer_on_click import WIDTH, AnswerOnClick

HINT = "One document below the other, each under a line <code>== its title ==</code>."


def own_question_box(
    answer: Callable[[str, Sequence[tuple[str, str]]], str],
    *,
    question: str,
    documents: str,
    answered: str = "",
) -> ipywidgets.Widget:
    """A line for the question, a box for the documents, a button, and the answer below them.

    Nothing is asked before a click. What cannot be read is told in one line, and the answer before stays.

    Args:
        answer: takes the question and (title, text) of each document and returns the HTML of the answer; it
            may raise ValueError with a line for the person who typed.
        question, documents: what stands in the boxes at first; documents as of `pasted_documents`.
        answered: HTML of the answer to these, if it is known already.
    """
    return OwnQuestion(answer, question=question, documents=documents, answered=answered).box


class OwnQuestion(AnswerOnClick):
    """The parts of `own_question_box`, which see.

    Attributes:
        question, documents: the boxes.
        box: everything.
    """

    def __init__(
        self,
        answer: Callable[[str, Sequence[tuple[str, str]]], str],
        *,
        question: str,
        documents: str,
        answered: str = "",
    ) -> None:
        self._of_documents = answer
        wide = ipywidgets.Layout(**WIDTH)
        self.question = ipywidgets.Text(value=question, placeholder="your question", layout=wide)
        self.documents = ipywidgets.Textarea(value=documents, rows=14, layout=wide)
        self.documents.add_class("cdlm-own-documents")
        super().__init__(
            (self.question, self.documents),
            answer=self._answered,
            description="Answer",
            icon="search",
            answered=answered,
        )
        parts = (self.question, ipywidgets.HTML(HINT), self.documents, self.button, self.message, self.answer)
        self.box = ipywidgets.VBox(parts)

    def _answered(self, question: str, documents: str) -> str:
        if not question.strip():
            raise ValueError("the question is empty; write one")
        return self._of_documents(question, pasted_documents(documents))
