"""Items to leaf through: lists to choose some of them, a list of those chosen, and arrows.

What is shown below is up to whoever is told which item is to be seen. The controls need a running kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

import ipywidgets

from cdlm_lab.widgets.markup import MUTED, count_in_words

Item = TypeVar("Item")
# Name of a list -> its entries, the first of which is chosen at first -> which items an entry leaves.
Filters = Mapping[str, Mapping[str, Callable[[Item], bool]]]
SIGNS = {True: "\u2713", False: "\u2717", None: "\u00b7"}  # right, wrong, not known


def any_item(item: object) -> bool:
    """True: what the entry "all" of a list leaves."""
    return True


def nothing_left(noun: str) -> str:
    """HTML to show where no item is chosen; `noun` names one, such as "question"."""
    return f'<div style="{MUTED}">No {noun} is like that; choose "all" in one of the lists above.</div>'


def fill_list(part: ipywidgets.Dropdown, entries: Sequence[tuple[str, object]], value: object) -> None:
    """New entries for a list; the browser learns of them and of the value at once."""
    with part.hold_sync():
        if list(part.options) != list(entries):
            part.options = list(entries)  # this chooses the first
        if value is None:  # as a value None chooses nothing, also where an entry has it
            part.index = next((place for place, entry in enumerate(entries) if entry[1] is None), None)
        else:
            part.value = value


class Leafing(Generic[Item]):
    """The controls.

    An entry of a list says how many items it would leave, given the other lists. The item that is seen stays
    as long as it is among those chosen, and comes back after a choice without items.

    Args:
        items: at least one.
        noun: what one of them is, such as "question", for the arrows.
        filters: the lists.
        line: an item, by its number in `items`, as an entry of the list of items, which shows text as it is.
        show: called with the item that is to be seen whenever it is another; None = no item is chosen.

    Attributes:
        filters: the lists by name; their values are the names of entries.
        picker: the list of items; its value is the number of one in `items`, None = there is none.
        rows: all controls, to be put above what `show` shows.

    Raises:
        ValueError: no items.
    """

    def __init__(
        self,
        items: Sequence[Item],
        *,
        noun: str,
        filters: Filters[Item],
        line: Callable[[int], str],
        show: Callable[[Item | None], None],
    ) -> None:
        if not items:
            raise ValueError(f"there is no {noun} to show: items is empty")
        self._items, self._line, self._show = items, line, show
        self._left = {
            name: {entry: _numbers(items, leaves) for entry, leaves in entries.items()}
            for name, entries in filters.items()
        }
        self._numbers: list[int] = []  # of the items chosen
        self._last = 0  # number of the item that is seen, or was seen last
        self._seen: int | None = -1  # number of the item that is seen; -1 = nothing was shown yet
        self._filling = False  # True while lists are filled anew, which is no choice of the person's
        self.filters = {name: _filter_list(name, list(entries)) for name, entries in filters.items()}
        self.previous = _step_button("arrow-left", f"the {noun} before")
        self.next = _step_button("arrow-right", f"the next {noun}")
        self.picker = ipywidgets.Dropdown(
            layout=ipywidgets.Layout(flex="1 1 280px", width="auto", min_width="0")
        )
        self.position = ipywidgets.Label()
        rows = ([*self.filters.values()], [self.previous, self.next, self.picker, self.position])
        wrapped = ipywidgets.Layout(flex_flow="row wrap", width="100%", max_width="960px")
        self.rows = tuple(ipywidgets.HBox(row, layout=wrapped) for row in rows)
        self._choose()
        for part in self.filters.values():
            part.observe(lambda change: self._choose(), names="value")
        self.picker.observe(lambda change: self._pick(), names="value")
        self.previous.on_click(lambda button: self._step(-1))
        self.next.on_click(lambda button: self._step(1))

    def _chosen(self, choice: Mapping[str, str]) -> set[int]:
        """Numbers of the items that all entries leave."""
        return set(range(len(self._items))).intersection(
            *(self._left[name][entry] for name, entry in choice.items())
        )

    def _choose(self) -> None:
        """Fill all lists anew; go on with the item that was seen, or with the first of those chosen."""
        if self._filling:
            return
        self._filling = True
        choice = {name: part.value for name, part in self.filters.items()}
        for name, part in self.filters.items():
            others = self._chosen({other: entry for other, entry in choice.items() if other != name})
            counts = {entry: len(others & left) for entry, left in self._left[name].items()}
            entries = [(f"{entry} ({count_in_words(count)})", entry) for entry, count in counts.items()]
            fill_list(part, entries, choice[name])
        self._numbers = sorted(self._chosen(choice))
        kept = self._last if self._last in self._numbers else next(iter(self._numbers), None)
        fill_list(self.picker, [(self._line(number), number) for number in self._numbers], kept)
        self._filling = False
        self._pick()

    def _pick(self) -> None:
        """Show the item that the list of items names, if any."""
        if self._filling:
            return
        number, count = self.picker.value, len(self._numbers)
        place = -1 if number is None else self._numbers.index(number)
        self.picker.disabled = number is None
        self.previous.disabled, self.next.disabled = place <= 0, place == count - 1
        self.position.value = f"{count_in_words(place + 1)} of {count_in_words(count)}"
        self._last = self._last if number is None else number
        if number != self._seen:
            self._seen = number
            self._show(None if number is None else self._items[number])

    def _step(self, by: int) -> None:
        if self.picker.value is None:
            return
        place = self._numbers.index(self.picker.value) + by
        if 0 <= place < len(self._numbers):  # a second click may come before the button is seen to be off
            self.picker.value = self._numbers[place]


def _numbers(items: Sequence[Item], leaves: Callable[[Item], bool]) -> frozenset[int]:
    return frozenset(number for number, item in enumerate(items) if leaves(item))


def _filter_list(name: str, entries: Sequence[str]) -> ipywidgets.Dropdown:
    narrow, style = ipywidgets.Layout(width="205px"), {"description_width": "56px"}
    return ipywidgets.Dropdown(options=entries, description=name, layout=narrow, style=style)


def _step_button(icon: str, tooltip: str) -> ipywidgets.Button:
    return ipywidgets.Button(icon=icon, tooltip=tooltip, layout=ipywidgets.Layout(width="40px"))
