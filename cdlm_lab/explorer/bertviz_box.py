"""Lists and a button that draw what is chosen in the explorer in bertviz."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from IPython.display import display
from ipywidgets import Dropdown, HBox, Layout

from cdlm_lab.views.ask import Show, ShownBelow, primary_button
from cdlm_lab.views.html import MUTED, div, escaped

VIEWS = {"all heads, one layer at a time": "head", "every layer and head": "model"}
DIRECTIONS = {"from the chosen words": "from", "to the chosen words": "to"}


class ChosenSentences(ShownBelow):
    """Lists of models, views and directions, and a button that draws the explorer's selection in bertviz.
    `draw` takes the name of a model, the view `head` or `model`, and `from` or `to`, and returns HTML."""

    keeps = True

    def __init__(
        self, draw: Callable[[str, str, str], str], *, models: Sequence[str], show: Show | None = None
    ) -> None:
        self.model = Dropdown(options=list(models), value=models[-1], description="model")
        self.view = Dropdown(options=VIEWS, description="view")
        self.direction = Dropdown(options=DIRECTIONS, description="attention")
        lists = (self.model, self.view, self.direction)
        button = primary_button("Show what is chosen above", "", width="220px", flex="0 0 auto")  # never cut
        row = HBox([button, *lists], layout=Layout(flex_flow="row wrap"))
        super().__init__(lambda: draw(*(one.value for one in lists)), [row], button=button, show=show)

    def offer(self, models: Sequence[str]) -> None:
        """Replace the list of models, and select the last one."""
        self.model.options, self.model.value = list(models), models[-1]

    def show(self) -> None:
        """Display the controls and, below them, the view of the selection, or a line that says what to do."""
        display(self.box)
        try:
            self._show(self._answer())
        except ValueError as error:
            self._show(div(escaped(str(error)), MUTED))
