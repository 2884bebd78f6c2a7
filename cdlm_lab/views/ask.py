"""Text boxes for the user's own texts, and a button that passes them to a model, whose answer appears below.

Boxes, buttons and sliders need a running kernel. If a model cannot read a text, a one-line message replaces
the previous answer, which was for another text."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import ipywidgets
from IPython.display import display
from ipywidgets import HTML, Button, HBox, Layout, VBox

from cdlm_lab.data.marked import lines_of, pasted_documents
from cdlm_lab.views.html import escaped
from cdlm_lab.views.live_curve import ReplacedOutput
from cdlm_lab.views.rerun import close_whole, close_with_cell

Show = Callable[[str], None]  # takes the HTML of an answer
HINT = "One document below the other, each under a line <code>== its {} ==</code>"


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


@contextlib.contextmanager
def asking(button: Button, message: HTML, *, clear: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Context in which the button is disabled and `message` shows the last printed line. On ValueError, which
    is not passed on, `message` then shows the error, and `clear` is called to remove the previous answer."""
    button.disabled, problem = True, ""
    try:
        with printed_in(message):
            yield
    except ValueError as error:
        clear()
        problem = f'<span style="color:#d64545">{escaped(" ".join(str(error).split()))}</span>'
    finally:
        button.disabled, message.value = False, problem


# Each paragraph that is typed runs in the direction of its script.
_DIRECTION = "<style>.cdlm-own textarea,.cdlm-own input{unicode-bidi:plaintext;text-align:start}</style>"


def _style() -> HTML:
    return HTML(_DIRECTION, layout=Layout(display="none"))


def primary_button(description: str, icon: str = "search", **layout: str) -> Button:
    """The button of a box, with the icon of this name; `layout`: CSS."""
    return Button(description=description, button_style="primary", icon=icon, layout=Layout(**layout))


def _text_box(text: str, rows: int, *, width: str = "960px", **options: object) -> ipywidgets.Textarea:
    if "layout" not in options:
        options["layout"] = Layout(width="auto", max_width=width)
    box = ipywidgets.Textarea(value=text, rows=rows, **options)
    box.add_class("cdlm-own-documents")
    box.add_class("cdlm-own")
    return box


def _line_box(text: str, noun: str) -> ipywidgets.Text:
    layout = Layout(width="auto", max_width="960px")
    box = ipywidgets.Text(value=text, placeholder=f"your {noun}", layout=layout)
    box.add_class("cdlm-own")
    return box


class AnswerOnClick(VBox):
    """Widget of input boxes with hints, a button, and below them the answer. The model is asked on a click
    only, and not again while the boxes are unchanged.

    `answer` takes the values of the boxes and returns HTML; it may raise ValueError, whose one-line message
    is shown to the user. `answered`: the answer to the initial values of the boxes; "" = not known yet.
    """

    def __init__(
        self,
        boxes: Sequence[ipywidgets.Widget],
        *,
        answer: Callable[..., str],
        description: str,
        answered: str,
    ) -> None:
        self.boxes = [box for box in boxes if not isinstance(box, HTML)]
        self.button, self.message, self.answer = primary_button(description), HTML(), HTML(value=answered)
        self._answer_to = answer
        self._answered = self._values() if answered else None  # the values that the shown answer is for
        super().__init__([*boxes, self.button, self.message, self.answer, _style()])
        close_with_cell(lambda: close_whole(self))
        self.button.on_click(lambda button: self._on_click())

    def _values(self) -> list[str]:
        return [box.value for box in self.boxes]

    def _on_click(self) -> None:
        values = self._values()
        if self.button.disabled or values == self._answered:  # such as the second of two clicks
            return
        with asking(self.button, self.message, clear=self._clear):
            self.answer.value = self._answer_to(*values)
            self._answered = values

    def _clear(self) -> None:
        self.answer.value, self._answered = "", None


def _filled(text: str, what: str, verb: str = "write one") -> str:
    if not text.strip():
        raise ValueError(f"the {what} is empty; {verb}")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnWords:
    """Names of the text in the first box and of each line in the second, and the label of the button."""

    query: str
    candidate: str
    description: str


ANSWERS = OwnWords(query="question", candidate="candidate answer", description="Rank")
EVIDENCE = OwnWords(query="claim", candidate="sentence of evidence", description="Judge")


def own_candidates_box(
    answer: Callable[[str, Sequence[str]], str],
    *,
    query: str,
    candidates: str,
    words: OwnWords = ANSWERS,
    answered: str = "",
) -> AnswerOnClick:
    """A line for a question or claim, and a box for its candidates, one per line; empty lines are skipped."""

    def find(query: str, candidates: str) -> str:
        query = _filled(query, words.query).strip()
        remedy = f"write one {words.candidate} on each line"
        lines = lines_of(candidates, source=words.candidate, remedy=remedy)
        return answer(query, [line.strip() for _, line in lines if line.strip()])

    hint = HTML(f"One {words.candidate} on each line.")
    boxes = (_line_box(query, words.query), hint, _text_box(candidates, rows=8))
    return AnswerOnClick(boxes, answer=find, description=words.description, answered=answered)


def own_question_box(
    answer: Callable[[str, Sequence[tuple[str, str]]], str],
    *,
    question: str,
    documents: str,
    answered: str = "",
) -> AnswerOnClick:
    """Return a line for a question and a box for documents, each below a line with its title. `answer` takes
    the question and a (title, text) pair for each document, and returns HTML."""

    def find(question: str, documents: str) -> str:
        return answer(_filled(question, "question"), pasted_documents(documents))

    hint = HTML(f"{HINT.format('title')}.")
    boxes = (_line_box(question, "question"), hint, _text_box(documents, rows=14))
    return AnswerOnClick(boxes, answer=find, description="Answer", answered=answered)


def own_text_box(tag: Callable[[str], str], *, text: str, tagged: str = "") -> AnswerOnClick:
    """A box for a text, such as a chapter, and its HTML by `tag`; `tagged`: HTML of the initial `text`."""

    def find(text: str) -> str:
        return tag(_filled(text, "text", "write or paste one"))

    hint = "One document, the longer the better: how a word is used elsewhere in it helps to tag it."
    boxes = (HTML(hint), _text_box(text, rows=14))
    return AnswerOnClick(boxes, answer=find, description="Tag", answered=tagged)


class ShownBelow:
    """Controls with a button, and the answer, as output below them that stays in the notebook or in `show`.
    `answer` may raise ValueError, whose one-line message is shown to the user."""

    keeps = False  # True = the previous answer stays visible when the next one fails

    def __init__(
        self,
        answer: Callable[[], str],
        rows: Sequence[ipywidgets.Widget],
        *,
        button: Button,
        show: Show | None,
    ) -> None:
        self._answer, self._show = answer, show or ReplacedOutput()
        self.button, self.message = button, HTML()
        self.box = VBox([*rows, self.message, _style()])
        close_with_cell(lambda: close_whole(self.box))
        button.on_click(lambda button: self._on_click())

    def show(self) -> None:
        """Display the controls and, below them, the answer for their initial values. Its ValueError is
        raised, so that an unattended run stops."""
        display(self.box)
        with printed_in(self.message):
            answer = self._answer()
        self._show(answer)

    def _on_click(self) -> None:
        clear = (lambda: None) if self.keeps else (lambda: self._show(""))
        with asking(self.button, self.message, clear=clear):
            self._show(self._answer())


class OwnDocuments(ShownBelow):
    """A box for documents with marked mentions, and the predicted coreference clusters; a slider sets the
    clustering threshold for the same mentions. `find` takes the text and returns a function from a threshold,
    in (0, 1), to the HTML of the clusters."""

    def __init__(
        self,
        text: str,
        *,
        find: Callable[[str], Callable[[float], str]],
        threshold: float,
        show: Show | None = None,
    ) -> None:
        self._find = find
        self._clusters_at: Callable[[float], str] | None = None
        self.text, button = _text_box(text, rows=14, width="1180px"), primary_button("Find clusters")
        self.threshold = ipywidgets.FloatSlider(
            value=threshold,
            min=0.02,
            max=0.98,
            step=0.02,
            description="threshold",
            continuous_update=False,
            tooltip="the higher, the fewer mentions are put together",
            layout=Layout(width="380px"),
        )
        marks = "<code>&lt;m&gt;</code> and <code>&lt;/m&gt;</code>"
        hint = HTML(f"{HINT.format('name')}; mentions stand between {marks}.")
        rows = (hint, self.text, HBox([button, self.threshold]))
        super().__init__(self._clusters, rows, button=button, show=show)
        self.threshold.observe(lambda change: self._draw(), names="value")

    def _clusters(self) -> str:
        self._clusters_at = None  # so that the slider draws no previous text's clusters
        self._clusters_at = self._find(self.text.value)
        return self._clusters_at(self.threshold.value)

    def _draw(self) -> None:
        if self._clusters_at is not None:
            self._show(self._clusters_at(self.threshold.value))


class OwnPair(ShownBelow):
    """Boxes for two documents, side by side where there is room; `compare` returns the HTML of the result."""

    def __init__(
        self, first: str, second: str, *, compare: Callable[[str, str], str], show: Show | None = None
    ) -> None:
        layout = {"flex": "1 1 380px", "width": "auto", "flex_flow": "column", "align_items": "stretch"}
        style = {"description_width": "fit-content"}  # in a wider label the text would be on the right
        self.first, self.second = (
            _text_box(text, rows=10, description=name, layout=Layout(**layout), style=style)
            for text, name in ((first, "first document"), (second, "second document"))
        )
        button = primary_button("Compare", "exchange")
        beside = Layout(flex_flow="row wrap", width="100%", max_width="1180px")
        rows = (HBox([self.first, self.second], layout=beside), button)
        super().__init__(lambda: compare(self.first.value, self.second.value), rows, button=button, show=show)
