"""A claim with its evidence and a model's verdict: the probability of each label, and each sentence's share
in the verdict (Di Liello et al. 2022, section 3.1, "Fact Verification").

Every background and every bar has a number, every mark a word; all texts are untrusted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from cdlm_lab.views import html
from cdlm_lab.views.browse import Leafing, has_value, right_or_wrong
from cdlm_lab.views.html import GOLD, MUTED, PREDICTED, SMALL, div, escaped, span, visible

UNREAD = span("not read", SMALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadClaim:
    """A claim with its evidence, and a model's prediction for it."""

    id: str  # "" = none, as for the user's own claims
    claim: str
    evidence: tuple[str, ...]  # sentences in the order of retrieval; () = none were retrieved
    probabilities: Mapping[str, float]  # label -> its predicted probability; they sum to 1
    # Share of each sentence of the evidence in the verdict, in [0, 1]; None = the model has no such shares.
    shares: tuple[float | None, ...] | None  # of a sentence None = it was not read
    gold: str | None  # the gold label; None = not known
    # How many characters of each sentence of the evidence the model has read, the first ones, 0 = it has left
    # the sentence out; None = all of all.
    read: tuple[int, ...] | None = None
    cut: str = ""  # a line on what it has not read

    def __post_init__(self) -> None:
        if problem := next(self._problems(), ""):
            raise ValueError(f"claim {self.id or self.claim!r}: {problem}")

    def _problems(self) -> Iterator[str]:
        if not self.probabilities:
            yield "there are no labels; give each with its probability"
        for label, probability in self.probabilities.items():
            if not 0 <= probability <= 1:
                yield f"the probability of {label!r} is {probability}; it must lie in [0, 1]"
        total = sum(self.probabilities.values())
        if not math.isclose(total, 1, abs_tol=1e-3):
            yield f"the probabilities sum to {total:g}; they must sum to 1"
        if self.gold is not None and self.gold not in self.probabilities:
            known = ", ".join(self.probabilities)
            yield f"the gold label {self.gold!r} has no probability; there are {known}"
        if self.shares is not None and len(self.shares) != len(self.evidence):
            yield f"{len(self.shares)} shares for {len(self.evidence)} sentences; give one for each"
        if self.read is not None and len(self.read) != len(self.evidence):
            yield f"{len(self.read)} numbers of characters for {len(self.evidence)} sentences; give one each"
        for number, share in enumerate(self.shares or ()):
            if share is not None and not 0 <= share <= 1:
                yield f"the share of sentence {number} is {share}; it must lie in [0, 1]"

    @property
    def predicted(self) -> str:
        """The label with the highest probability; of several, the first."""
        return max(self.probabilities, key=self.probabilities.__getitem__)

    @property
    def right(self) -> bool | None:
        """Whether the gold label is predicted; None = the gold label is not known."""
        return None if self.gold is None else self.predicted == self.gold


def verdict_html(read: ReadClaim, *, shares: str) -> str:
    """Return the claim, the labels with their probabilities, and the evidence, each sentence on a blue that
    is deeper for a larger share in the verdict. `shares`: what the legend calls these shares (plain text)."""
    right = "" if read.right is None else f"&ensp;{html.right_or_wrong(read.right)}"
    head = f"{html.muted(escaped(html.shown_id(read.id)))}{html.headline(read.claim)}"
    head += html.warning(read.cut)
    head += div(f"<b>{escaped(read.predicted)}</b>{right}", "margin:2px 0")
    labels = []
    for label, probability in read.probabilities.items():
        marks = [mark for mark, of in ((PREDICTED, read.predicted), (GOLD, read.gold)) if of == label]
        labels.append(
            [html.share_bar(probability), escaped(label), span(" ".join(marks), "font-size:11.5px")]
        )
    rows = []
    for number, text in enumerate(read.evidence):
        share = None if read.shares is None else read.shares[number]
        ground = "" if share is None else html.blue_ground(share)
        bar = [] if read.shares is None else [UNREAD if share is None else html.share_bar(share)]
        end = len(text) if read.read is None else read.read[number]
        left = html.unread(escaped(text[end:])) if text[end:].strip() else ""
        box = html.text_box(f"{escaped(text[:end])}{left}", f"padding:0 6px;{ground}")
        rows.append([div(f"{number + 1}", f"width:20px;font-size:12px;{MUTED}"), *bar, box])
    meaning = "evidence" if read.shares is None else f"{html.swatches()} {escaped(shares)}"
    struck = [f"{html.unread('struck out')}: not read"] if "<s " in "".join(map("".join, rows)) else []
    evidence = html.legend([meaning, *struck]) + html.bare_table(rows)
    evidence = evidence if rows else div("no evidence was retrieved", f"margin:6px 0;{SMALL}")
    return html.view_html("claim", f"{head}{html.bare_table(labels)}{evidence}")


def verdicts_page(reads: Sequence[ReadClaim], *, title: str, shares: str) -> str:
    """Return a page with all claims, in the order given."""
    facts = html.right_of_known((read.right for read in reads), "{} of {} verdicts right")
    return html.page_of(reads, partial(verdict_html, shares=shares), noun="claim", facts=facts, title=title)


def verdict_browser(reads: Sequence[ReadClaim], *, shares: str) -> Leafing:
    """Browse claims by verdict, gold and predicted label; `shares`: the legend's text for sentence shares."""
    labels = list(dict.fromkeys(label for read in reads for label in read.probabilities))
    of_labels = {
        name: {visible(label): has_value(name, label) for label in labels} for name in ("gold", "predicted")
    }
    return Leafing(
        reads,
        noun="claim",
        filters={"verdict": right_or_wrong("right")} | of_labels,
        text=lambda read: read.claim,
        right=lambda read: read.right,
        html=lambda read: verdict_html(read, shares=shares),
        wide=dict.fromkeys(of_labels, ("260px", "68px")),  # for long labels
    )
