"""Two boxes to type documents into, and what a matcher makes of the pair.

The boxes and the button need a running kernel; the answer is ordinary output and stays in the notebook.
"""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets
from IPython.display import display

from cdlm_lab.widgets.answer_on_click import asking, printed_in
from cdlm_lab.widgets.live_curve import ReplacedOutput


class OwnPair:
    """Type, click, read.

    Args:
        first, second: what stands in the boxes at first; they are compared when the boxes are shown.
        compare: takes the two texts and returns the HTML of the answer; it may raise ValueError with a line
            for the person who typed them.
        show: called with the HTML of the answer; by default it is the output below the boxes.
    """

    def __init__(
        self,
        first: str,
        second: str,
        *,
        compare: Callable[[str, str], str],
        show: Callable[[str], None] | None = None,
    ) -> None:
        self._compare = compare
        self._show = show or ReplacedOutput()
        self.first = _box(first, "first document")
        self.second = _box(second, "second document")
        self.button = ipywidgets.Button(description="Compare", button_style="primary", icon="exchange")
        self.message = ipywidgets.HTML()
        beside = ipywidgets.Layout(flex_flow="row wrap", width="100%", max_width="1180px")
        self.box = ipywidgets.VBox(
            [ipywidgets.HBox([self.first, self.second], layout=beside), self.button, self.message]
        )
        self.button.on_click(self._on_click)

    def show(self) -> None:
        """Show the boxes and, below them, the answer to the texts that are in them.

        Raises:
            ValueError: a text cannot be read, so that a run without a person stops.
        """
        display(self.box)
        with printed_in(self.message):
            answer = self._compare(self.first.value, self.second.value)
        self._show(answer)

    def _on_click(self, button: ipywidgets.Button) -> None:
        with asking(self.button, self.message):  # after a mistake the answer before stays in sight
            self._show(self._compare(self.first.value, self.second.value))


def _box(text: str, name: str) -> ipywidgets.Textarea:
    """A box with its name above it; two stand side by side where there is room."""
    box = ipywidgets.Textarea(
        value=text,
        description=name,
        rows=10,
        layout=ipywidgets.Layout(flex="1 1 380px", width="auto", flex_flow="column", align_items="stretch"),
        style={"description_width": "fit-content"},  # of a wider label the text stands at the right
    )
    box.add_class("cdlm-own-documents")
    return box
