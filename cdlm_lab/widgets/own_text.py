"""A text of one's own, such as a chapter or a paper, and the tags that a model gives its words.

The box and the button need a running kernel.
"""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets

from cdlm_lab.widgets.answer_on_click import WIDTH, AnswerOnClick

HINT = "One document, the longer the better: how a word is used elsewhere in it helps to tag it."


def own_text_box(tag: Callable[[str], str], *, text: str, tagged: str = "") -> ipywidgets.Widget:
    """A box for the text, a button, and the tagged text below them.

    Nothing is tagged before a click. What cannot be read is told in one line, and what was tagged before
    stays.

    Args:
        tag: takes the text and returns HTML; it may raise ValueError with a line for the person who typed.
        text: what stands in the box at first.
        tagged: HTML of this text tagged, if it is known already.
    """
    return OwnText(tag, text=text, tagged=tagged).box


class OwnText(AnswerOnClick):
    """The parts of `own_text_box`, which see.

    Attributes:
        text: the box for the text.
        box: everything.
    """

    def __init__(self, tag: Callable[[str], str], *, text: str, tagged: str = "") -> None:
        self._tag = tag
        self.text = ipywidgets.Textarea(value=text, rows=14, layout=ipywidgets.Layout(**WIDTH))
        self.text.add_class("cdlm-own-documents")
        super().__init__((self.text,), answer=self._tagged, description="Tag", icon="search", answered=tagged)
        self.box = ipywidgets.VBox([ipywidgets.HTML(HINT), self.text, self.button, self.message, self.answer])

    def _tagged(self, text: str) -> str:
        if not text.strip():
            raise ValueError("the text is empty; write or paste one")
        return self._tag(text)
