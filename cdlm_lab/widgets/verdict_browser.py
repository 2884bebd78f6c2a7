"""Claims to leaf through: all of them, or those of a label, or those that were judged wrongly, and one of
them with its evidence below.

The controls need a running kernel. For a page that does without, see `verdict.verdicts_page`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ipywidgets

from cdlm_lab.widgets.leafing import SIGNS, Filters, Leafing, any_item, nothing_left
from cdlm_lab.widgets.markup import visible
from cdlm_lab.widgets.shown_mention import shortened
from cdlm_lab.widgets.verdict import SHARES, ReadClaim, verdict_html

LONGEST_CLAIM = 90  # characters of a claim in the list
EMPTY = nothing_left("claim")


def verdict_browser(reads: Sequence[ReadClaim], *, shares: str = SHARES) -> ipywidgets.Widget:
    """Lists to choose claims by verdict, gold and predicted label, a list of those chosen, and one claim.

    An entry says how many claims it would leave, given the other lists. The claim that is read stays where it
    is as long as it is among those chosen, and comes back after a choice without claims.

    Args:
        shares: as of `verdict_html`.

    Raises:
        ValueError: no claims.
    """
    if not reads:
        raise ValueError("there is no claim to show: reads is empty")
    return VerdictBrowser(reads, shares=shares).box


class VerdictBrowser(Leafing[ReadClaim]):
    """The parts of `verdict_browser`: the controls, and

    Attributes:
        claim: the claim that is read.
        box: everything.
    """

    def __init__(self, reads: Sequence[ReadClaim], *, shares: str = SHARES) -> None:
        self._reads, self._shares = reads, shares
        self.claim = ipywidgets.HTML()
        super().__init__(reads, noun="claim", filters=_filters(reads), line=self._entry, show=self._draw)
        for name in ("gold", "predicted"):  # labels are longer than the entries of other lists
            self.filters[name].layout.width = "260px"
            self.filters[name].style.description_width = "68px"
        self.box = ipywidgets.VBox([*self.rows, self.claim])

    def _draw(self, read: ReadClaim | None) -> None:
        self.claim.value = EMPTY if read is None else verdict_html(read, shares=self._shares)

    def _entry(self, number: int) -> str:
        read = self._reads[number]
        text = shortened(visible(" ".join(read.claim.split())), LONGEST_CLAIM)
        return f"{SIGNS[read.right]} {number + 1}. {text}"


def _filters(reads: Sequence[ReadClaim]) -> Filters[ReadClaim]:
    labels = list(dict.fromkeys(label for read in reads for label in read.probabilities))
    return {
        "verdict": {
            "all": any_item,
            "right": lambda read: read.right is True,
            "wrong": lambda read: read.right is False,
        },
        "gold": {"all": any_item} | {visible(label): _gold_is(label) for label in labels},
        "predicted": {"all": any_item} | {visible(label): _predicted_is(label) for label in labels},
    }


def _gold_is(label: str) -> Callable[[ReadClaim], bool]:
    return lambda read: read.gold == label


def _predicted_is(label: str) -> Callable[[ReadClaim], bool]:
    return lambda read: read.predicted == label
