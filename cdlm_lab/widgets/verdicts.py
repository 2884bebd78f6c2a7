"""A claim with its evidence and what a model makes of it: the probability of each label, and the share that
each sentence has in the verdict (Di Liello et al. 2022, section 3.1, "Fact Verification").

Every ground and every bar has a number, every mark a word; all texts are untrusted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cdlm_lab.widgets.html import (
    GOLD,
    MUTED,
    PREDICTED,
    SMALL,
    bare_table,
    blue_ground,
    escaped,
    headline,
    legend,
    muted,
    page_of,
    right_of_known,
    right_or_wrong,
    share_bar,
    swatches,
    view_html,
)

SHARES = "share in the verdict"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadClaim:
    """A claim and what a model made of it."""

    id: str  # "" = none, as of a claim of one's own
    claim: str
    evidence: tuple[str, ...]  # sentences in the order in which they were retrieved; () = none were
    probabilities: Mapping[str, float]  # label -> its probability; they sum to 1
    # Of each sentence in the verdict, in [0, 1]; None = the model gives none.
    shares: tuple[float, ...] | None
    gold: str | None  # the gold label; None = not known

    def __post_init__(self) -> None:
        if problem := next(_problems(self), ""):
            raise ValueError(f"claim {self.id or self.claim!r}: {problem}")

    @property
    def predicted(self) -> str:
        """The label of the highest probability; ties go to the first."""
        return max(self.probabilities, key=self.probabilities.__getitem__)

    @property
    def right(self) -> bool | None:
        """True = the gold label is predicted; None = not known."""
        return None if self.gold is None else self.predicted == self.gold


def _problems(read: ReadClaim) -> Iterator[str]:
    if not read.probabilities:
        yield "there are no labels; give each with its probability"
    for label, probability in read.probabilities.items():
        if not 0 <= probability <= 1:
            yield f"the probability of {label!r} is {probability}; it must lie in [0, 1]"
    total = sum(read.probabilities.values())
    if not math.isclose(total, 1, abs_tol=1e-3):
        yield f"the probabilities sum to {total:g}; they must sum to 1"
    if read.gold is not None and read.gold not in read.probabilities:
        yield f"the gold label {read.gold!r} has no probability; there are {', '.join(read.probabilities)}"
    if read.shares is not None and len(read.shares) != len(read.evidence):
        yield f"{len(read.shares)} shares for {len(read.evidence)} sentences; give one for each"
    for number, share in enumerate(read.shares or ()):
        if not 0 <= share <= 1:
            yield f"the share of sentence {number} is {share}; it must lie in [0, 1]"


def verdict_html(read: ReadClaim, *, shares: str = SHARES) -> str:
    """The claim, the labels with their probabilities, and the evidence, on blue by its share in the verdict,
    which the legend calls `shares` (plain text)."""
    verdict = f"<b>{escaped(read.predicted)}</b>"
    if read.right is not None:
        verdict += f"&ensp;{right_or_wrong(read.right)}"
    head = f'{muted(escaped(read.id))}{headline(read.claim)}<div style="margin:2px 0">{verdict}</div>'
    labels = []
    for label, probability in read.probabilities.items():
        marks = [mark for mark, of in ((PREDICTED, read.predicted), (GOLD, read.gold)) if of == label]
        note = f'<span style="font-size:11.5px">{" ".join(marks)}</span>'
        labels.append([share_bar(probability), escaped(label), note])
    return view_html("claim", f"{head}{bare_table(labels)}{_evidence(read, shares)}")


def _evidence(read: ReadClaim, shares: str) -> str:
    if not read.evidence:
        return f'<div style="margin:6px 0;{SMALL}">no evidence was retrieved</div>'
    rows = []
    for number, text in enumerate(read.evidence):
        share = None if read.shares is None else read.shares[number]
        ground = "" if share is None else f";{blue_ground(share)}"
        box = f"line-height:1.5;overflow-wrap:anywhere;border-radius:3px;padding:0 6px{ground}"
        place = f'<div style="width:20px;font-size:12px;{MUTED}">{number + 1}</div>'
        bar = [] if share is None else [share_bar(share)]
        rows.append([place, *bar, f'<div style="{box}" dir="auto">{escaped(text)}</div>'])
    meaning = "evidence" if read.shares is None else f"{swatches()} {escaped(shares)}"
    return legend([meaning]) + bare_table(rows)


def verdicts_page(reads: Sequence[ReadClaim], *, title: str, shares: str = SHARES) -> str:
    """A page of its own with all claims in the order given."""
    facts = right_of_known((read.right for read in reads), "{} of {} verdicts right")
    return page_of(
        reads, lambda read: verdict_html(read, shares=shares), noun="claim", facts=facts, title=title
    )
