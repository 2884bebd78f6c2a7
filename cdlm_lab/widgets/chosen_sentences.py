"""Buttons that hand what is chosen in the explorer to another view, and that view below them.

The buttons need a running kernel; the view is ordinary output and stays in the notebook.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ipywidgets
from IPython.display import display

from cdlm_lab.widgets.answer_on_click import asking
from cdlm_lab.widgets.live_curve import ReplacedOutput
from cdlm_lab.widgets.markup import MUTED, escaped

VIEWS = {"all heads, one layer at a time": "head", "every layer and head": "model"}
DIRECTIONS = {"from the chosen words": "from", "to the chosen words": "to"}


class ChosenSentences:
    """Choose a model, a view and a direction, click, look.

    Args:
        draw: takes the name of a model, `head` or `model`, `from` or `to`, and returns HTML; it may raise
            ValueError with a line for the person.
        models: names to choose from.
        show: called with the HTML; by default it is the output below the buttons.
    """

    def __init__(
        self,
        draw: Callable[[str, str, str], str],
        *,
        models: Sequence[str],
        show: Callable[[str], None] | None = None,
    ) -> None:
        self._draw = draw
        self._show = show or ReplacedOutput()
        self.model = ipywidgets.Dropdown(options=list(models), value=models[-1], description="model")
        self.view = ipywidgets.Dropdown(options=VIEWS, description="view")
        self.direction = ipywidgets.Dropdown(options=DIRECTIONS, description="attention")
        self.button = ipywidgets.Button(
            description="Show what is chosen above",
            button_style="primary",
            layout=ipywidgets.Layout(width="220px", flex="0 0 auto"),  # its words are never cut
        )
        self.message = ipywidgets.HTML()
        self.box = ipywidgets.VBox(
            [
                ipywidgets.HBox(
                    [self.button, self.model, self.view, self.direction],
                    layout=ipywidgets.Layout(flex_flow="row wrap"),
                ),
                self.message,
            ],
        )
        self.button.on_click(lambda button: self._on_click())

    def show(self) -> None:
        """Show the buttons and, below them, the view of what is chosen, or a line on what to do."""
        display(self.box)
        try:
            self._show(self._drawn())
        except ValueError as error:
            self._show(f'<div style="{MUTED}">{escaped(str(error))}</div>')

    def _drawn(self) -> str:
        return self._draw(self.model.value, self.view.value, self.direction.value)

    def _on_click(self) -> None:
        with asking(self.button, self.message):
            self._show(self._drawn())
