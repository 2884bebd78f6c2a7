"""A box to type documents with marked mentions into, and the clusters that come of them.

The box and its controls need a running kernel; the clusters are ordinary output and stay in the notebook.
"""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets
from IPython.display import display

from cdlm_lab.widgets.answer_on_click import asking, printed_in
from cdlm_lab.widgets.live_curve import ReplacedOutput

HINT = (
    "One document below the other, each under a line <code>== its name ==</code>; mentions stand between "
    "<code>&lt;m&gt;</code> and <code>&lt;/m&gt;</code>."
)


class OwnDocuments:
    """Type, click, read; the slider puts the same mentions together more or less readily.

    Args:
        text: what stands in the box at first; it is clustered when the box is shown.
        find: takes the text and returns a function from a threshold to the HTML of the clusters; it may
            raise ValueError with a line for the person who typed the text.
        threshold: of the slider at first, in (0, 1).
        show: called with the HTML of the clusters; by default they are the output below the box.
    """

    def __init__(
        self,
        text: str,
        *,
        find: Callable[[str], Callable[[float], str]],
        threshold: float,
        show: Callable[[str], None] | None = None,
    ) -> None:
        self._find = find
        self._found: Callable[[float], str] | None = None
        self._show = show or ReplacedOutput()
        wide = ipywidgets.Layout(width="auto", max_width="1180px")
        self.text = ipywidgets.Textarea(value=text, rows=14, layout=wide)
        self.text.add_class("cdlm-own-documents")
        self.button = ipywidgets.Button(description="Find clusters", button_style="primary", icon="search")
        self.threshold = ipywidgets.FloatSlider(
            value=threshold,
            min=0.02,
            max=0.98,
            step=0.02,
            description="threshold",
            continuous_update=False,
            tooltip="the higher, the fewer mentions are put together",
            layout=ipywidgets.Layout(width="380px"),
        )
        self.message = ipywidgets.HTML()
        self.box = ipywidgets.VBox(
            [
                ipywidgets.HTML(HINT),
                self.text,
                ipywidgets.HBox([self.button, self.threshold]),
                self.message,
            ]
        )
        self.button.on_click(self._on_click)
        self.threshold.observe(lambda change: self._draw(), names="value")

    def show(self) -> None:
        """Show the box and, below it, the clusters of the text that is in it.

        Raises:
            ValueError: the text cannot be read, so that a run without a person stops.
        """
        display(self.box)
        with printed_in(self.message):
            self._found = self._find(self.text.value)
        self._draw()

    def _on_click(self, button: ipywidgets.Button) -> None:
        with asking(self.button, self.message):  # after a mistake what was found before stays in sight
            self._found = self._find(self.text.value)
            self._draw()

    def _draw(self) -> None:
        if self._found is not None:
            self._show(self._found(self.threshold.value))
