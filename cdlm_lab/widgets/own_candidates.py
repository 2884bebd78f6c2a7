"""A question of one's own with candidate answers, or a claim with evidence, and what a model makes of them.

The boxes and the button need a running kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import ipywidgets

from cdlm_lab.data.pasted_documents import lines_of
from cdlm_lab.widgets.answer_on_click import WIDTH, AnswerOnClick


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnWords:
    """What the boxes are called.

    Attributes:
        asked, candidate: what stands in the first box, and on each line of the second.
        description: of the button.
    """

    asked: str
    candidate: str
    description: str


ANSWERS = OwnWords(asked="question", candidate="candidate answer", description="Rank")
EVIDENCE = OwnWords(asked="claim", candidate="sentence of evidence", description="Judge")


def own_candidates_box(
    answer: Callable[[str, Sequence[str]], str],
    *,
    asked: str,
    candidates: str,
    words: OwnWords = ANSWERS,
    answered: str = "",
) -> ipywidgets.Widget:
    """A line for the question or the claim, a box for the candidates, a button, and the answer below them.

    Nothing is asked before a click. What cannot be read is told in one line, and the answer before stays.

    Args:
        answer: takes the question and the candidates and returns the HTML of the answer; it may raise
            ValueError with a line for the person who typed.
        asked, candidates: what stands in the boxes at first; one candidate on each line, empty lines are
            passed over.
        words: ANSWERS or EVIDENCE.
        answered: HTML of the answer to these, if it is known already.
    """
    return OwnCandidates(answer, asked=asked, candidates=candidates, words=words, answered=answered).box


class OwnCandidates(AnswerOnClick):
    """The parts of `own_candidates_box`, which see.

    Attributes:
        asked, candidates: the boxes.
        box: everything.
    """

    def __init__(
        self,
        answer: Callable[[str, Sequence[str]], str],
        *,
        asked: str,
        candidates: str,
        words: OwnWords = ANSWERS,
        answered: str = "",
    ) -> None:
        self._of_candidates, self._words = answer, words
        wide = ipywidgets.Layout(**WIDTH)
        self.asked = ipywidgets.Text(value=asked, placeholder=f"your {words.asked}", layout=wide)
        self.candidates = ipywidgets.Textarea(value=candidates, rows=8, layout=wide)
        self.candidates.add_class("cdlm-own-documents")
        super().__init__(
            (self.asked, self.candidates),
            answer=self._answered,
            description=words.description,
            icon="search",
            answered=answered,
        )
        hint = ipywidgets.HTML(f"One {words.candidate} on each line.")
        parts = (self.asked, hint, self.candidates, self.button, self.message, self.answer)
        self.box = ipywidgets.VBox(parts)

    def _answered(self, asked: str, candidates: str) -> str:
        if not asked.strip():
            raise ValueError(f"the {self._words.asked} is empty; write one")
        remedy = f"write one {self._words.candidate} on each line"
        lines = lines_of(candidates, source=self._words.candidate, remedy=remedy)
        return self._of_candidates(asked.strip(), [line.strip() for _, line in lines if line.strip()])
