"""Buttons that hand what is chosen in the explorer to another view, and that view below them.

The buttons need a running kernel; the view is ordinary output and stays in the notebook.

A button, and below it the answer to what stands in some boxes: what boxes for texts of one's own share.

They need a running kernel.

A question of one's own with candidate answers, or a claim with evidence, and what a model makes of them.

The boxes and the button need a running kernel.

A box to type documents with marked mentions into, and the clusters that come of them.

The box and its controls need a running kernel; the clusters are ordinary output and stay in the notebook.

Two boxes to type documents into, and what a matcher makes of the pair.

The boxes and the button need a running kernel; the answer is ordinary output and stays in the notebook.

A question of one's own over documents of one's own, and what a model answers.

The boxes and the button need a running kernel.

A text of one's own, such as a chapter or a paper, and the tags that a model gives its words.

The box and the button need a running kernel.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import ipywidgets
from IPython.display import display

from cdlm_lab.data.typed_documents import lines_of, pasted_documents
from cdlm_lab.widgets.html import MUTED, escaped
from cdlm_lab.widgets.live_curve import ReplacedOutput

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


QUESTION_HINT = "One document below the other, each under a line <code>== its title ==</code>."


def own_question_box(
    answer: Callable[[str, Sequence[tuple[str, str]]], str],
    *,
    question: str,
    documents: str,
    answered: str = "",
) -> ipywidgets.Widget:
    """A line for the question, a box for the documents, a button, and the answer below them.

    Nothing is asked before a click. What cannot be read is told in one line, and the answer before stays.

    Args:
        answer: takes the question and (title, text) of each document and returns the HTML of the answer; it
            may raise ValueError with a line for the person who typed.
        question, documents: what stands in the boxes at first; documents as of `pasted_documents`.
        answered: HTML of the answer to these, if it is known already.
    """
    return OwnQuestion(answer, question=question, documents=documents, answered=answered).box


class OwnQuestion(AnswerOnClick):
    """The parts of `own_question_box`, which see.

    Attributes:
        question, documents: the boxes.
        box: everything.
    """

    def __init__(
        self,
        answer: Callable[[str, Sequence[tuple[str, str]]], str],
        *,
        question: str,
        documents: str,
        answered: str = "",
    ) -> None:
        self._of_documents = answer
        wide = ipywidgets.Layout(**WIDTH)
        self.question = ipywidgets.Text(value=question, placeholder="your question", layout=wide)
        self.documents = ipywidgets.Textarea(value=documents, rows=14, layout=wide)
        self.documents.add_class("cdlm-own-documents")
        super().__init__(
            (self.question, self.documents),
            answer=self._answered,
            description="Answer",
            icon="search",
            answered=answered,
        )
        parts = (
            self.question,
            ipywidgets.HTML(QUESTION_HINT),
            self.documents,
            self.button,
            self.message,
            self.answer,
        )
        self.box = ipywidgets.VBox(parts)

    def _answered(self, question: str, documents: str) -> str:
        if not question.strip():
            raise ValueError("the question is empty; write one")
        return self._of_documents(question, pasted_documents(documents))


TEXT_HINT = "One document, the longer the better: how a word is used elsewhere in it helps to tag it."


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
        self.box = ipywidgets.VBox(
            [ipywidgets.HTML(TEXT_HINT), self.text, self.button, self.message, self.answer]
        )

    def _tagged(self, text: str) -> str:
        if not text.strip():
            raise ValueError("the text is empty; write or paste one")
        return self._tag(text)


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
