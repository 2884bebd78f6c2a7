"""A button, and below it the answer to what stands in some boxes: what boxes for texts of one's own share.

They need a running kernel.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence

import ipywidgets

from cdlm_lab.widgets.markup import escaped

WIDTH = {"width": "auto", "max_width": "960px"}  # of the boxes


class _LastLine(io.TextIOBase):
    """A stream that shows what was written last, such as a bar, and nothing else."""

    encoding = "utf-8"  # bars are drawn with blocks, not with #

    def __init__(self, message: ipywidgets.HTML) -> None:
        self._message = message

    def write(self, text: str) -> int:
        """Show the last line of `text` that is not empty."""
        lines = [line for line in text.replace("\r", "\n").split("\n") if line.strip()]
        if lines:
            self._message.value = f'<code style="white-space:pre-wrap">{escaped(lines[-1])}</code>'
        return len(text)


@contextlib.contextmanager
def printed_in(message: ipywidgets.HTML) -> Iterator[None]:
    """Within, `message` shows the last line that is printed, so that a bar moves where a person looks; what a
    click prints would go to JupyterLab's log. Afterwards it is empty."""
    message.value = "reading\u2026"
    try:
        with contextlib.redirect_stdout(_LastLine(message)):
            yield
    finally:
        message.value = ""


@contextlib.contextmanager
def asking(button: ipywidgets.Button, message: ipywidgets.HTML) -> Iterator[None]:
    """Within, as `printed_in`, and the button is off. A ValueError is told in one line."""
    button.disabled, problem = True, ""
    try:
        with printed_in(message):
            yield
    except ValueError as error:
        problem = f'<span style="color:#c22">{escaped(" ".join(str(error).split()))}</span>'
    finally:
        button.disabled, message.value = False, problem


class AnswerOnClick:
    """Nothing is asked before a click, nor twice in a row. What cannot be read is told in one line, and the
    answer before stays.

    Args:
        boxes: widgets with a value.
        answer: takes their values in this order and returns the HTML of the answer; it may raise ValueError
            with a line for the person who typed.
        description, icon: of the button.
        answered: HTML of the answer to what stands in the boxes at first, if it is known already.

    Attributes:
        button, message, answer: to be put below the boxes, in this order.
    """

    def __init__(
        self,
        boxes: Sequence[ipywidgets.Widget],
        *,
        answer: Callable[..., str],
        description: str,
        icon: str,
        answered: str = "",
    ) -> None:
        self._boxes, self._find = boxes, answer
        # what the answer in sight answers
        self._asked: list[str] | None = self._values() if answered else None
        self.button = ipywidgets.Button(description=description, button_style="primary", icon=icon)
        self.message, self.answer = ipywidgets.HTML(), ipywidgets.HTML(value=answered)
        self.button.on_click(lambda button: self._on_click())

    def _values(self) -> list[str]:
        return [box.value for box in self._boxes]

    def _on_click(self) -> None:
        asked = self._values()
        if self.button.disabled or asked == self._asked:  # the second of two clicks asks nothing new
            return
        with asking(self.button, self.message):
            self.answer.value = self._find(*asked)
            self._asked = asked
