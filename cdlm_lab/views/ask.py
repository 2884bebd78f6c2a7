"""A box for the user's own texts: fields, a button that passes them to a model, and the answer below.

Boxes, buttons and sliders need a running kernel; the answer stays in the notebook. If a model cannot read a
text, a one-line message replaces the previous answer, which was for another text."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

import anywidget
import traitlets
from IPython.display import display
from ipywidgets import HTML, Button, FloatSlider, HBox, Layout, Text, Textarea, VBox, Widget

from cdlm_lab.data.marked import MARKS, as_pasted, filled_lines, pasted_documents
from cdlm_lab.views.html import escaped
from cdlm_lab.views.live_curve import ReplacedOutput
from cdlm_lab.views.rerun import close_whole, close_with_cell

LONGEST_LINE = 200  # characters of an example that is typed in one line
ROWS = 12  # of a field of several lines
HEADINGS = "one below the other, each under a line <code>== its title ==</code>"
# Each paragraph that is typed runs in the direction of its script.
_DIRECTION = "<style>.cdlm-own textarea,.cdlm-own input{unicode-bidi:plaintext;text-align:start}</style>"


_STYLE = """
.cdlm-marks{white-space:pre-wrap;overflow-wrap:anywhere;max-height:340px;overflow-y:auto;padding:6px 8px;
border:1px solid #8c8c8c80;border-radius:4px;line-height:1.6;unicode-bidi:plaintext}
.cdlm-marks[hidden]{display:none}
.cdlm-marks mark{background:#3b8ed042;color:inherit;border-radius:3px;padding:1px 2px;cursor:pointer}
.cdlm-marks mark:hover{outline:2px solid #d64545}
.cdlm-marks-toggle{margin:2px 0 4px;cursor:pointer}
.cdlm-marks ~ textarea{width:100%;box-sizing:border-box}
"""


class MarkedText(anywidget.AnyWidget):
    """A field for documents with mentions: one selects words to mark them, and clicks a mention to remove it;
    `value` is the text with `<m>` and `</m>` around mentions, as one may also type it."""

    _esm = (files("cdlm_lab.views") / "marked_text.js").read_text(encoding="utf-8")
    _css = _STYLE
    value = traitlets.Unicode().tag(sync=True)


class _LastLine(io.TextIOBase):
    """A stream that shows only the last line written to it, such as a progress bar, in an HTML widget."""

    encoding = "utf-8"  # makes progress bars use block characters, not #

    def __init__(self, message: HTML) -> None:
        self._message = message

    def write(self, text: str) -> int:
        lines = [line for line in text.replace("\r", "\n").split("\n") if line.strip()]
        if lines:
            self._message.value = f'<code style="white-space:pre-wrap">{escaped(lines[-1])}</code>'
        return len(text)


@contextlib.contextmanager
def printed_in(message: HTML) -> Iterator[None]:
    """Context in which `message` shows the last printed line, so that progress bars are visible: the output
    of a click would go to JupyterLab's log. Afterwards `message` is empty."""
    message.value = "reading\u2026"
    try:
        with contextlib.redirect_stdout(_LastLine(message)):
            yield
    finally:
        message.value = ""


class _Field:
    """A value of a question: the widget that it is typed into, and how it is read there."""

    def __init__(self, name: str, example: Any, hint: str, *, marks: bool = False) -> None:
        self.name, self.kind = name.replace("_", " "), type(example)
        text, hints = example, {list: "one on each line", dict: HEADINGS}
        if isinstance(example, list):
            text = "\n".join(example)
        elif isinstance(example, dict):
            text = as_pasted(example)
        if marks and isinstance(example, dict):
            self.widget: Widget = MarkedText(value=text)
        elif isinstance(example, Widget):
            self.widget = example
        elif isinstance(example, float):
            form = {"min": 0.02, "max": 0.98, "step": 0.02, "continuous_update": False, "tooltip": hint}
            self.widget = FloatSlider(value=example, description=self.name, **form)
        elif isinstance(example, str) and len(example) <= LONGEST_LINE and "\n" not in example:
            self.widget = Text(value=text, placeholder=f"your {self.name}", layout=Layout(width="auto"))
        else:
            self.widget = Textarea(value=text, rows=ROWS, layout=Layout(width="auto"))
        self.is_long = isinstance(self.widget, Textarea | MarkedText)
        said = hint or hints.get(self.kind, "")
        self.said = f"{escaped(self.name)}{': ' if said else ''}{said}"
        if isinstance(self.widget, Text | Textarea):
            self.widget.add_class("cdlm-own")

    def read(self) -> Any:
        """The value that is in the widget now. Raises ValueError for an empty text, or one without form."""
        value = self.widget.value
        if self.kind is dict:
            return dict(pasted_documents(value, source=self.name))
        if self.kind is list:
            return filled_lines(value, source=self.name, remedy="write one on each line")
        if self.kind is str and not value.strip():
            raise ValueError(f"the {self.name} is empty; write or paste one")
        return value.strip() if isinstance(self.widget, Text) else value


class AskBox:
    """Fields for the values of a question, a button, and below them the answer. See `ask_box`."""

    keeps = False  # True = the answer stays visible when the next question cannot be answered

    def __init__(
        self,
        method: Callable[..., Any] | Sequence[Callable[..., Any]],
        example: Mapping[str, Any],
        *,
        button: str = "Ask",
        hints: Mapping[str, str] | None = None,
        show: Callable[[str], None] | None = None,
        mark: Callable[[Mapping[str, str]], Mapping[str, str]] | None = None,
    ) -> None:
        hints, marks = hints or {}, mark is not None
        each = {name: _Field(name, one, hints.get(name, ""), marks=marks) for name, one in example.items()}
        self._mark = mark
        self._methods = [method] if callable(method) else [*method]
        self._read, self._show = each, show or ReplacedOutput()
        self._answered: list[Any] | None = None  # the values that the shown answer is for
        self.fields = {name: field.widget for name, field in each.items()}
        layout = Layout(width="auto", min_width="150px", flex="0 0 auto")  # its words are not cut
        self.button = Button(description=button, button_style="primary", icon="search", layout=layout)
        self.message, column = HTML(), Layout(flex="1 1 380px", width="auto")
        texts = [VBox([HTML(one.said), one.widget], layout=column) for one in each.values() if one.is_long]
        lines = [one.widget for one in each.values() if isinstance(one.widget, Text)]
        others = [one.widget for one in each.values() if not (one.is_long or isinstance(one.widget, Text))]
        if marks:
            others.insert(0, finding := Button(description="Find mentions", icon="magic"))
            finding.on_click(lambda button: self._try(self.mark))
        beside, wide = (Layout(flex_flow="row wrap"), Layout(width="100%", max_width="1180px"))
        rows = [*lines, HBox(texts, layout=beside), HBox([self.button, *others], layout=beside), self.message]
        style = HTML(_DIRECTION, layout=Layout(display="none"))
        self.box = VBox([*rows, style], layout=wide)
        close_with_cell(lambda: close_whole(self.box))
        self.button.on_click(lambda button: self._on_click())
        for widget in self.fields.values():
            if isinstance(widget, FloatSlider):
                widget.observe(lambda change: self._on_click(), names="value")

    def mark(self) -> None:
        """Find the mentions in the documents, in place of their marks, and mark them there."""
        with printed_in(self.message):
            for field in self._read.values():
                if isinstance(field.widget, MarkedText) and self._mark:
                    plain = {name: MARKS.sub("", text) for name, text in field.read().items()}
                    field.widget.value = as_pasted(self._mark(plain))

    def ask(self) -> None:
        """Answer what is in the fields, and show the answer. Raises ValueError if it cannot be read."""
        with printed_in(self.message):
            values = {name: field.read() for name, field in self._read.items()}
            answers = [method(**values) for method in self._methods]
        self._show("".join(one if isinstance(one, str) else one._repr_html_() for one in answers))
        self._answered = None if self.keeps else self._values()

    def show(self) -> None:
        """Display the fields and, below them, the answer to the example. Its ValueError is raised, so that
        an unattended run stops."""
        display(self.box)
        self.ask()

    def _values(self) -> list[Any]:
        return [widget.value for widget in self.fields.values()]

    def _on_click(self) -> None:
        if not self.button.disabled and self._values() != self._answered:  # else the second of two clicks
            self._try(self.ask)

    def _try(self, do: Callable[[], None]) -> None:
        self.button.disabled, problem = True, ""
        try:
            do()
        except ValueError as error:
            problem = f'<span style="color:#d64545">{escaped(" ".join(str(error).split()))}</span>'
            if not self.keeps:
                self._show("")
                self._answered = None
        finally:
            self.button.disabled, self.message.value = False, problem


def ask_box(
    method: Callable[..., Any] | Sequence[Callable[..., Any]], example: Mapping[str, Any], **form: Any
) -> AskBox:
    """Return a box that asks a method, such as `ask_box(model.rank, {"question": ..., "candidates": [...]})`;
    `show` displays it with the answer to the example. The method is asked on a click only, and not again
    while the fields are unchanged.

    Args:
        method: takes the fields by name; returns HTML, or what shows itself. Its ValueError becomes a line.
            Of several methods, such as those of several models, the answers stand one below the other.
        example: name of a parameter -> its value at first, whose type makes the field: a short text is one
            line, a longer one a box; a list has one entry on each line, a dict of texts one document under
            each title; a float in (0, 1) is a slider, which asks when it is moved; a widget stays as it is.
        form: `button`, its word; `hints`, name of a field -> HTML that says how to fill it; `mark`, which
            returns documents with marks around their mentions: in the field of documents one then adds and
            removes mentions by clicks, and a second button finds them.
    """
    return AskBox(method, example, **form)
