"""Widgets to browse items: filters, a list of the items that pass them, buttons for the previous and the next
item, and the current item below. The controls need a running kernel; each task also has a page that works
without one, such as `questions.questions_page`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ipywidgets import HTML, Button, Dropdown, HBox, Label, Layout, VBox

from cdlm_lab.views.html import LIGHT_ARROWS, MUTED, SIGNS, check_some, div, one_line
from cdlm_lab.views.rerun import close_whole, close_with_cell

LONGEST = 90  # characters of an item in the list of items
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
            name: choices(name, ["all", *entries], *(wide or {}).get(name, ("205px", "56px")))
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

    def still(self) -> str:
        """One item that is right and one that is not, from the current one on, as HTML."""
        first, parts = self.picker.value or 0, []
        for is_right, words in (
            (True, f"A {self._noun} that is right"),
            (False, f"A {self._noun} that fails"),
        ):
            order = [*self._items[first:], *self._items[:first]]
            item = next((one for one in order if self._right(one) is is_right), None)
            none = div(f"none of {len(self._items):,}", MUTED)
            shown = none if item is None else self._html(item)
            parts.append(f"{div(f'<b>{SIGNS[is_right]} {words}</b>', 'margin:14px 0 4px')}{shown}")
        return f'<div class="cdlm-still">{"".join(parts)}</div>'

    def _repr_mimebundle_(self, **form: Any) -> dict[str, str]:
        """The widget, and `still` for places where no widget is shown, such as a page."""
        return {**super()._repr_mimebundle_(**form), "text/html": self.still()}

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


def choices(name: str, entries: Sequence[Any], width: str, description_width: str) -> Dropdown:
    """A list with a name before it; both widths in CSS."""
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


def has_value(attribute: str, value: object) -> Callable[[Any], bool]:
    """An entry of a filter: passes the items whose attribute has this value."""
    return lambda read: getattr(read, attribute) == value


def right_or_wrong(attribute: str) -> dict[str, Callable[[Any], bool]]:
    """A filter by an attribute that says whether an item is right."""
    return {"right": has_value(attribute, True), "wrong": has_value(attribute, False)}
