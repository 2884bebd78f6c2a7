"""Questions to leaf through: all of them, or those that were answered wrongly, and one of them below.

The controls need a running kernel. For a page that does without, see `read_question.questions_page`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import ipywidgets

from cdlm_lab.data.multihop_questions import QUESTION_KINDS
from cdlm_lab.widgets.markup import MUTED, count_in_words, visible
from cdlm_lab.widgets.read_question import ReadQuestion, question_html
from cdlm_lab.widgets.shown_mention import shortened

LONGEST_QUESTION = 90  # characters of a question in the list
EMPTY = f'<div style="{MUTED}">No question is like that; choose "all" in one of the lists above.</div>'
_SIGNS = {True: "\u2713", False: "\u2717", None: "\u00b7"}  # answered rightly, wrongly, not known
_RIGHT_OR_WRONG = {"all": None, "right": True, "wrong": False}
_KINDS = {"all": None} | {kind: kind for kind in QUESTION_KINDS}
# Name of a list -> its entries with the value that they ask for (None = any), and where that value stands.
_FILTERS: dict[str, tuple[dict[str, object], Callable[[ReadQuestion], object]]] = {
    "answer": (_RIGHT_OR_WRONG, lambda read: read.answer_em),
    "support": (_RIGHT_OR_WRONG, lambda read: read.support_em),
    "kind": (_KINDS, lambda read: read.kind),
}


def question_browser(reads: Sequence[ReadQuestion]) -> ipywidgets.Widget:
    """Lists to choose questions by answer, support and kind, a list of those chosen, and one question.

    An entry says how many questions it would leave, given the other lists. Right is what matches exactly.
    The question that is read stays where it is as long as it is among those chosen, and comes back after a
    choice without questions.

    Raises:
        ValueError: no questions.
    """
    if not reads:
        raise ValueError("there is no question to show: reads is empty")
    return QuestionBrowser(reads).box


class QuestionBrowser:
    """The parts of `question_browser`.

    Attributes:
        filters: the lists `answer`, `support` and `kind`; their values are "all", "right" and the like.
        picker: the list of questions; its value is the number of one in `reads`, None = there is none.
        box: everything.
    """

    def __init__(self, reads: Sequence[ReadQuestion]) -> None:
        self._reads = reads
        self._numbers: list[int] = []  # of the questions chosen
        self._read = 0  # number of the question that is read, or was read last
        self._filling = False  # True while lists are filled anew, which is no choice of the person's
        narrow = {"layout": ipywidgets.Layout(width="205px"), "style": {"description_width": "56px"}}
        self.filters = {
            name: ipywidgets.Dropdown(options=list(entries), description=name, **narrow)
            for name, (entries, _) in _FILTERS.items()
        }
        self.previous = _step_button("arrow-left", "the question before")
        self.next = _step_button("arrow-right", "the next question")
        self.picker = ipywidgets.Dropdown(
            layout=ipywidgets.Layout(flex="1 1 280px", width="auto", min_width="0")
        )
        self.position = ipywidgets.Label()
        self.question = ipywidgets.HTML()
        rows = ([*self.filters.values()], [self.previous, self.next, self.picker, self.position])
        wrapped = ipywidgets.Layout(flex_flow="row wrap", width="100%", max_width="960px")
        self.box = ipywidgets.VBox([*(ipywidgets.HBox(row, layout=wrapped) for row in rows), self.question])
        self._choose()
        for part in self.filters.values():
            part.observe(lambda change: self._choose(), names="value")
        self.picker.observe(lambda change: self._pick(), names="value")
        self.previous.on_click(lambda button: self._step(-1))
        self.next.on_click(lambda button: self._step(1))

    def _chosen(self, choice: Mapping[str, str]) -> list[int]:
        """Numbers of the questions that have all that is asked for."""
        wanted = [(_FILTERS[name][0][entry], _FILTERS[name][1]) for name, entry in choice.items()]
        return [
            number
            for number, read in enumerate(self._reads)
            if all(value is None or value == value_of(read) for value, value_of in wanted)
        ]

    def _choose(self) -> None:
        """Fill all lists anew; go on with the question that was read, or with the first of those chosen."""
        if self._filling:
            return
        self._filling = True
        choice = {name: part.value for name, part in self.filters.items()}
        for name, part in self.filters.items():
            counts = {entry: len(self._chosen({**choice, name: entry})) for entry in _FILTERS[name][0]}
            entries = [(f"{entry} ({count_in_words(count)})", entry) for entry, count in counts.items()]
            _fill(part, entries, choice[name])
        self._numbers = self._chosen(choice)
        kept = self._read if self._read in self._numbers else next(iter(self._numbers), None)
        _fill(self.picker, [(self._line(number), number) for number in self._numbers], kept)
        self._filling = False
        self._pick()

    def _pick(self) -> None:
        """Show the question that the list of questions names, if any."""
        if self._filling:
            return
        number, count = self.picker.value, len(self._numbers)
        place = -1 if number is None else self._numbers.index(number)
        self.picker.disabled = number is None
        self.previous.disabled, self.next.disabled = place <= 0, place == count - 1
        self.position.value = f"{count_in_words(place + 1)} of {count_in_words(count)}"
        if number is None:
            self.question.value = EMPTY
        else:
            self._read, self.question.value = number, question_html(self._reads[number])

    def _step(self, by: int) -> None:
        place = self._numbers.index(self._read) + by
        if 0 <= place < len(self._numbers):  # a second click may come before the button is seen to be off
            self.picker.value = self._numbers[place]

    def _line(self, number: int) -> str:
        """A question as an entry of a list, which shows text as it is."""
        read = self._reads[number]
        text = shortened(visible(" ".join(read.question.split())), LONGEST_QUESTION)
        return f"{_SIGNS[read.answer_em]} {number + 1}. {text}"


def _step_button(icon: str, tooltip: str) -> ipywidgets.Button:
    return ipywidgets.Button(icon=icon, tooltip=tooltip, layout=ipywidgets.Layout(width="40px"))


def _fill(part: ipywidgets.Dropdown, entries: list[tuple[str, object]], value: object) -> None:
    """New entries for a list; the browser learns of them and of the value at once."""
    with part.hold_sync():
        if list(part.options) != entries:
            part.options = entries  # this chooses the first
        part.value = value
