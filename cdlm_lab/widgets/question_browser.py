"""Questions to leaf through: all of them, or those that were answered wrongly, and one of them below.

The controls need a running kernel. For a page that does without, see `read_question.questions_page`.
"""

from __future__ import annotations

from collections.abc import Sequence

import ipywidgets

from cdlm_lab.data.multihop_questions import QUESTION_KINDS
from cdlm_lab.widgets.leafing import SIGNS, Filters, Leafing, any_item, nothing_left
from cdlm_lab.widgets.markup import visible
from cdlm_lab.widgets.read_question import ReadQuestion, question_html
from cdlm_lab.widgets.shown_mention import shortened

LONGEST_QUESTION = 90  # characters of a question in the list
EMPTY = nothing_left("question")
_FILTERS: Filters[ReadQuestion] = {
    "answer": {
        "all": any_item,
        "right": lambda read: read.answer_em is True,
        "wrong": lambda read: read.answer_em is False,
    },
    "support": {
        "all": any_item,
        "right": lambda read: read.support_em is True,
        "wrong": lambda read: read.support_em is False,
    },
    "kind": {"all": any_item} | {kind: lambda read, kind=kind: read.kind == kind for kind in QUESTION_KINDS},
}


def question_browser(reads: Sequence[ReadQuestion]) -> ipywidgets.Widget:
    """Lists to choose questions by answer, support and kind, a list of those chosen, and one question.

    An entry says how many questions it would leave, given the other lists. Right is what matches exactly.
    The question that is read stays where it is as long as it is among those chosen, and comes back after a
    choice without questions.

    Raises:
        ValueError: no questions.
    """
    if not reads:
        raise ValueError("there is no question to show: reads is empty")
    return QuestionBrowser(reads).box


class QuestionBrowser(Leafing[ReadQuestion]):
    """The parts of `question_browser`: the controls, and

    Attributes:
        question: the question that is read.
        box: everything.
    """

    def __init__(self, reads: Sequence[ReadQuestion]) -> None:
        self._reads = reads
        self.question = ipywidgets.HTML()
        super().__init__(reads, noun="question", filters=_FILTERS, line=self._entry, show=self._draw)
        self.box = ipywidgets.VBox([*self.rows, self.question])

    def _draw(self, read: ReadQuestion | None) -> None:
        self.question.value = EMPTY if read is None else question_html(read)

    def _entry(self, number: int) -> str:
        read = self._reads[number]
        text = shortened(visible(" ".join(read.question.split())), LONGEST_QUESTION)
        return f"{SIGNS[read.answer_em]} {number + 1}. {text}"
