"""Widgets to browse items: filters, a list of the items that pass them, buttons for the previous and the next
item, and the current item below. The controls need a running kernel; each task also has a page that works
without one, such as `questions.questions_page`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ipywidgets import HTML, Button, Dropdown, HBox, Label, Layout, VBox

from cdlm_lab.data.convert.questions import QUESTION_KINDS
from cdlm_lab.tasks.joint.answers_view import OUTCOMES, ReadRanking, ranking_html
from cdlm_lab.tasks.joint.claims_view import ReadClaim, verdict_html
from cdlm_lab.tasks.multihop.view import ReadQuestion, question_html
from cdlm_lab.tasks.tagging.view import ReadSentence, labels_of_reads, tagged_sentence_html
from cdlm_lab.views.html import LIGHT_ARROWS, MUTED, SIGNS, check_some, div, joined, one_line, visible
from cdlm_lab.views.rerun import close_whole, close_with_cell

LONGEST = 90  # characters of an item in the list of items
LONGEST_PART = 40  # characters of a word, or of a document's name, in their lists
# Name of a filter -> its entries, to which "all" is added -> whether an item passes that entry.
Filters = Mapping[str, Mapping[str, Callable[[Any], bool]]]


class Leafing(VBox):
    """Widget that filters items and shows one of them.

    Each entry of a filter shows how many items would pass it, given the other filters. The current item stays
    as long as it passes all filters, and is restored after a choice that left no items.

    Args:
        noun: what an item is called, such as "question".
        text, right: what `picker`, the list of items, shows of one: a text, and whether the model was right.
        html: renders an item as HTML, for `view`.
        wide: filters that need more room -> width of the filter and of its name, in CSS.
    """

    def __init__(
        self,
        items: Sequence[Any],
        *,
        noun: str,
        filters: Filters,
        text: Callable[[Any], str],
        right: Callable[[Any], bool | None],
        html: Callable[[Any], str],
        wide: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        check_some(items, noun)
        super().__init__()
        close_with_cell(lambda: close_whole(self))
        self._items, self._noun, self._text, self._right, self._html = items, noun, text, right, html
        self._chosen: list[int] = []  # indices of the items that pass all filters
        self._last = 0  # index of the current item, or of the last one if none is shown now
        self._seen: int | None = -1  # index of the current item; None = none, -1 = nothing was shown yet
        self._filling = False  # True while lists are refilled, so that this is not taken for a user's choice
        self.filters = {
            name: _list(name, ["all", *entries], *(wide or {}).get(name, ("205px", "56px")))
            for name, entries in filters.items()
        }
        self.previous, self.next = (
            Button(icon=f"arrow-{side}", tooltip=tooltip, layout=Layout(width="40px"))
            for side, tooltip in (("left", f"the {noun} before"), ("right", f"the next {noun}"))
        )
        self.picker = Dropdown(layout=Layout(flex="1 1 280px", width="auto", min_width="0"))
        self.position, self.view = Label(), HTML()
        wrapped = Layout(flex_flow="row wrap", width="100%", max_width="960px")
        choosing = [self.previous, self.next, self.picker, self.position]
        rows = [HBox(row, layout=wrapped) for row in ([*self.filters.values()], choosing)]
        self.children = [*rows, HTML(LIGHT_ARROWS, layout=Layout(display="none")), self.view]
        self.choose_by(filters)
        for part in self.filters.values():
            part.observe(lambda change: self._choose(), names="value")
        self.picker.observe(lambda change: self._pick(), names="value")
        self.previous.on_click(lambda button: self._step(-1))
        self.next.on_click(lambda button: self._step(1))

    def choose_by(self, filters: Filters) -> None:
        """Redefine the filters; their names and entries stay. Choices and current item stay if they can."""
        every = dict(enumerate(self._items))
        self._left = {
            name: {"all": frozenset(every)}
            | {
                entry: frozenset(n for n, item in every.items() if leaves(item))
                for entry, leaves in entries.items()
            }
            for name, entries in filters.items()
        }
        self._seen = -1
        self._choose()

    def show_item(self, item: Any | None) -> None:
        """Show an item; None = no item passes the filters."""
        none = f'No {self._noun} is like that; choose "all" in one of the lists above.'
        self.view.value = div(none, MUTED) if item is None else self._html(item)

    def _choose(self) -> None:
        """Refill all lists; show the last item again, or the first one that passes if that does not."""
        if self._filling:
            return
        self._filling = True
        left = {name: self._left[name][part.value] for name, part in self.filters.items()}
        everything = frozenset(range(len(self._items)))
        for name, part in self.filters.items():
            others = everything.intersection(*(left[other] for other in left if other != name))
            counts = {entry: len(others & numbers) for entry, numbers in self._left[name].items()}
            fill_list(part, [(f"{entry} ({count:,})", entry) for entry, count in counts.items()], part.value)
        self._chosen = sorted(everything.intersection(*left.values()))
        number = self._last if self._last in self._chosen else next(iter(self._chosen), None)
        entries = []
        for n in self._chosen:
            item = self._items[n]
            text = one_line(self._text(item), LONGEST)
            entries.append((f"{SIGNS[self._right(item)]} {n + 1}. {text}", n))
        fill_list(self.picker, entries, number)
        self._filling = False
        self._pick()

    def _pick(self) -> None:
        """Show the item that is chosen in the list of items, if any."""
        if self._filling:
            return
        number, count = self.picker.value, len(self._chosen)
        place = -1 if number is None else self._chosen.index(number)
        self.picker.disabled = number is None
        self.previous.disabled, self.next.disabled = place <= 0, place == count - 1
        self.position.value = f"{place + 1:,} of {count:,}"
        self._last = self._last if number is None else number
        if number != self._seen:
            self._seen = number
            self.show_item(None if number is None else self._items[number])

    def _step(self, by: int) -> None:
        place = -1 if self.picker.value is None else self._chosen.index(self.picker.value) + by
        if 0 <= place < len(self._chosen):  # a second click may come before the button is disabled
            self.picker.value = self._chosen[place]


def _list(name: str, entries: Sequence[Any], width: str, description_width: str) -> Dropdown:
    layout, style = Layout(width=width), {"description_width": description_width}
    return Dropdown(options=entries, description=name, layout=layout, style=style)


def fill_list(part: Dropdown, entries: Sequence[tuple[str, object]], value: object) -> None:
    """Replace the entries and the value of a list; the browser receives both in one message."""
    with part.hold_sync():
        if list(part.options) != list(entries):
            part.options = list(entries)  # ipywidgets then selects the first
        if value is None:  # the value None would select nothing, even if an entry has this value
            part.index = next((place for place, entry in enumerate(entries) if entry[1] is None), None)
        else:
            part.value = value


def _is(attribute: str, value: object) -> Callable[[Any], bool]:
    return lambda read: getattr(read, attribute) == value


def _right_or_wrong(attribute: str) -> dict[str, Callable[[Any], bool]]:
    return {"right": _is(attribute, True), "wrong": _is(attribute, False)}


def question_browser(reads: Sequence[ReadQuestion]) -> Leafing:
    """Return a browser of questions, filtered by answer, support and kind; right means an exact match."""
    return Leafing(
        reads,
        noun="question",
        filters={
            "answer": _right_or_wrong("answer_em"),
            "support": _right_or_wrong("support_em"),
            "kind": {kind: _is("kind", kind) for kind in QUESTION_KINDS},
        },
        text=lambda read: read.question,
        right=lambda read: read.answer_em,
        html=question_html,
    )


def verdict_browser(reads: Sequence[ReadClaim], *, shares: str) -> Leafing:
    """Browse claims by verdict, gold and predicted label; `shares`: the legend's text for sentence shares."""
    labels = list(dict.fromkeys(label for read in reads for label in read.probabilities))
    of_labels = {
        name: {visible(label): _is(name, label) for label in labels} for name in ("gold", "predicted")
    }
    return Leafing(
        reads,
        noun="claim",
        filters={"verdict": _right_or_wrong("right")} | of_labels,
        text=lambda read: read.claim,
        right=lambda read: read.right,
        html=lambda read: verdict_html(read, shares=shares),
        wide=dict.fromkeys(of_labels, ("260px", "68px")),  # for long labels
    )


# Entry of the filter -> least and greatest number of candidates; a group of the MSPP paper has five.
_SIZES = {"up to 5": (1, 5), "6 to 10": (6, 10), "11 to 20": (11, 20), "more than 20": (21, math.inf)}


class RankingBrowser(Leafing):
    """Browser of questions whose candidates are ranked by a `system`, which is chosen in a list and compared
    with `beside`, the last in it. Filters: outcome and number of candidates; "repaired" passes questions
    whose first candidate is right by the system and wrong by `beside`, "broken" the opposite. Raises
    ValueError unless all questions have scores of the same systems, `beside` among them."""

    def __init__(self, reads: Sequence[ReadRanking], *, beside: str) -> None:
        check_some(reads, "question")
        names = list(reads[0].scores)
        for read in reads:
            if set(read.scores) != set(names):
                has = ", ".join(read.scores)
                raise ValueError(f"question {read.id!r} has scores of {has}, the first of {', '.join(names)}")
        if beside not in names:
            raise ValueError(f"there are no scores of {beside!r}; choose from {', '.join(names)}")
        self._beside = beside
        options = [(visible(name), name) for name in sorted(names, key=lambda name: name == beside)]
        self.system = _list("system", options, "min(450px, 100%)", "56px")
        super().__init__(
            reads,
            noun="question",
            filters=self._filters(),
            text=lambda read: read.question,
            right=lambda read: read.right_on_top(self.system.value),
            html=lambda read: ranking_html(read, system=self.system.value, beside=beside),
            wide={"candidates": ("240px", "76px")},
        )
        self.children = [self.system, *self.children]
        self.system.observe(lambda change: self.choose_by(self._filters()), names="value")

    def _filters(self) -> Filters:
        system, beside = self.system.value, self._beside

        def became(outcome: str) -> Callable[[ReadRanking], bool]:
            return lambda read: read.outcome(system, beside=beside) == outcome

        def between(least: int, most: float) -> Callable[[ReadRanking], bool]:
            return lambda read: least <= len(read.candidates) <= most

        sizes = {entry: between(*bounds) for entry, bounds in _SIZES.items()}
        return {"answer": {outcome: became(outcome) for outcome in OUTCOMES.values()}, "candidates": sizes}


class TaggedBrowser(Leafing):
    """Browser of tagged sentences, filtered by correctness and document. The list `words` has the words of
    the current sentence; its value is a word's index, None = none. Below is the sentence with the occurrences
    of that word. The list is disabled if the model attended to no occurrences. A sentence is right if exactly
    its gold spans were predicted; "with entities" passes those with a gold or predicted span. `labels`: those
    with a colour, in order; () = those of the sentences."""

    def __init__(self, reads: Sequence[ReadSentence], *, labels: Sequence[str] = ()) -> None:
        self._read: ReadSentence | None = None
        labels = labels or labels_of_reads(reads)
        self.words = _list("word", (), "min(520px, 100%)", "56px")
        documents = enumerate(dict.fromkeys(read.document for read in reads), start=1)
        tagged = {"wrong": _is("right", False), "right": _is("right", True)}
        super().__init__(
            reads,
            noun="sentence",
            filters={
                "show": tagged | {"with entities": lambda read: bool(read.predicted or read.gold)},
                # Numbered, so that names differ from each other and from "all".
                "document": {f"{n}. {one_line(d, LONGEST_PART)}": _is("document", d) for n, d in documents},
            },
            text=lambda read: joined(word.word for word in read.words),
            right=lambda read: read.right,
            html=lambda read: tagged_sentence_html(read, chosen=self.words.value, labels=labels, every=True),
            wide={"document": ("min(420px, 100%)", "68px")},
        )
        self.children = [*self.children[:-1], self.words, self.view]
        self.words.observe(lambda change: self._choose_word(), names="value")

    def show_item(self, item: ReadSentence | None) -> None:
        """Show another sentence and list its words; None = no sentence passes the filters."""
        self._read = None  # nothing is drawn while the list of words is refilled
        entries, first, words = [], None if item is None else item.first_choice, item.words if item else ()
        if item is not None and first is None:
            entries.append(("choose a word", None))
        for n, word in enumerate(words):
            name = f"{n + 1}. {one_line(word.word, LONGEST_PART)}"
            entries.append(
                (f"{name} \u00b7 {visible(word.predicted)} \u00b7 {item.elsewhere(n):,} elsewhere", n)
            )
        fill_list(self.words, entries, first)
        self.words.disabled = not any(word.occurrences for word in words)
        self._read = item
        super().show_item(item)

    def _choose_word(self) -> None:
        if self._read is not None:
            super().show_item(self._read)
