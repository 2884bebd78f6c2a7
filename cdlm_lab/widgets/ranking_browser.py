"""Questions to leaf through: those that one system repaired or broke beside another one, or by the number of
candidates, and the candidates of one of them below.

The controls need a running kernel. For a page that does without, see `ranked_candidates.rankings_page`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import ipywidgets

from cdlm_lab.widgets.leafing import SIGNS, Filters, Leafing, any_item, nothing_left
from cdlm_lab.widgets.markup import visible
from cdlm_lab.widgets.ranked_candidates import OUTCOMES, ReadRanking, ranking_html
from cdlm_lab.widgets.shown_mention import shortened

LONGEST_QUESTION = 90  # characters of a question in the list
EMPTY = nothing_left("question")
# Entry of the list -> how many candidates, from and to; a group of the paper has five.
_SIZES = {"up to 5": (1, 5), "6 to 10": (6, 10), "11 to 20": (11, 20), "more than 20": (21, math.inf)}


def ranking_browser(reads: Sequence[ReadRanking], *, beside: str = "pairwise") -> ipywidgets.Widget:
    """A list of systems, lists to choose questions by what became of them and by the number of candidates, a
    list of those chosen, and one question.

    "repaired" leaves the questions on which the system put a right answer on top and `beside` did not,
    "broken" the opposite. An entry says how many questions it would leave, given the other list. The question
    that is read stays where it is, under another system too, as long as it is among those chosen.

    Args:
        reads: with scores of the same systems.
        beside: the system with which all others are compared.

    Raises:
        ValueError: no questions, questions of different systems, no scores of `beside`.
    """
    if not reads:
        raise ValueError("there is no question to show: reads is empty")
    return RankingBrowser(reads, beside=beside).box


class RankingBrowser:
    """The parts of `ranking_browser`.

    Attributes:
        system: the list of systems, that of `beside` last.
        leafing: the other controls, which are made anew for each system, because it decides what is chosen.
        ranking: the question that is read.
        box: everything.
    """

    def __init__(self, reads: Sequence[ReadRanking], *, beside: str = "pairwise") -> None:
        names = list(reads[0].scores)
        for read in reads:
            if set(read.scores) != set(names):
                has = ", ".join(read.scores)
                raise ValueError(f"question {read.id!r} has scores of {has}, the first of {', '.join(names)}")
        if beside not in names:
            raise ValueError(f"there are no scores of {beside!r}; choose from {', '.join(names)}")
        self._reads, self._beside = reads, beside
        self.system = ipywidgets.Dropdown(
            options=[(visible(name), name) for name in sorted(names, key=lambda name: name == beside)],
            description="system",
            layout=ipywidgets.Layout(width="min(450px, 100%)"),
            style={"description_width": "56px"},
        )
        self.ranking = ipywidgets.HTML()
        self.box = ipywidgets.VBox()
        self.leafing: Leafing[ReadRanking] | None = None
        self._open()
        self.system.observe(lambda change: self._open(), names="value")

    def _open(self) -> None:
        """The controls for the chosen system; what was chosen and read before stays, if it can."""
        before = self.leafing
        with self.ranking.hold_sync():  # the browser learns of the last of several drawings
            self.leafing = Leafing(
                self._reads,
                noun="question",
                filters=_filters(self.system.value, self._beside),
                line=self._entry,
                show=self._draw,
            )
            self.leafing.filters["candidates"].layout.width = "240px"
            self.leafing.filters["candidates"].style.description_width = "76px"
            if before is not None:
                if before.picker.value is not None:
                    self.leafing.picker.value = before.picker.value
                for name, part in before.filters.items():
                    self.leafing.filters[name].value = part.value
        self.box.children = [self.system, *self.leafing.rows, self.ranking]

    def _draw(self, read: ReadRanking | None) -> None:
        if read is None:
            self.ranking.value = EMPTY
        else:
            self.ranking.value = ranking_html(read, system=self.system.value, beside=self._beside)

    def _entry(self, number: int) -> str:
        read = self._reads[number]
        sign = SIGNS[read.right_on_top(self.system.value)]
        text = shortened(visible(" ".join(read.question.split())), LONGEST_QUESTION)
        return f"{sign} {number + 1}. {text}"


def _filters(system: str, beside: str) -> Filters[ReadRanking]:
    return {
        "answer": {"all": any_item} | {name: _became(name, system, beside) for name in OUTCOMES.values()},
        "candidates": {"all": any_item} | {entry: _between(*bounds) for entry, bounds in _SIZES.items()},
    }


def _became(outcome: str, system: str, beside: str) -> Callable[[ReadRanking], bool]:
    return lambda read: read.outcome(system, beside=beside) == outcome


def _between(least: int, most: float) -> Callable[[ReadRanking], bool]:
    return lambda read: least <= len(read.candidates) <= most
