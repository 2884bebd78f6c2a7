"""A claim with its evidence and what a model makes of it: the probability of each label, and the share that
each sentence has in the verdict (Di Liello et al. 2022, section 3.1, "Fact Verification").

Every ground and every bar has a number, every mark a word. Plain HTML without scripts (see `markup`); all
texts are untrusted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cdlm_lab.widgets.html import (
    CROSS,
    GLOBAL,
    MUTED,
    OTHER_COLOURS,
    blue_ground,
    count_in_words,
    escaped,
    muted,
    share_bar,
    still_page,
)

SHARES = "share in the verdict"
_WRONG = OTHER_COLOURS[0]
_SMALL = f"font-size:11.5px;{MUTED}"
_CELL = "vertical-align:baseline;text-align:left;white-space:normal;padding:2px 8px 2px 0"
_TABLE = "border-collapse:collapse;font-size:13.5px;margin:2px 0"
_PREDICTED = f'<span style="color:{GLOBAL}">\u25cf</span> predicted'
_GOLD = f'<span style="color:{CROSS}">\u25c6</span> gold'
_STYLE = """
div.cdlm-claim table.cdlm-table tr{background:none!important}
div.cdlm-claim{color:var(--jp-ui-font-color1,inherit)}
"""
_PAGE_STYLE = "div.cdlm-claim{border-top:1px solid rgba(128,128,128,0.4);padding:14px 0 22px}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadClaim:
    """A claim and what a model made of it.

    Attributes:
        id: "" = none, as of a claim of one's own.
        evidence: sentences in the order in which they were retrieved; () = none were.
        probabilities: label -> its probability; they sum to 1.
        shares: of each sentence in the verdict, in [0, 1]; None = the model has none to tell.
        gold: the true label; None = not known.

    Raises:
        ValueError: no labels, probabilities or shares outside [0, 1], probabilities that do not sum to 1,
            shares of another number than sentences, a gold label without probability.
    """

    id: str
    claim: str
    evidence: tuple[str, ...]
    probabilities: Mapping[str, float]
    shares: tuple[float, ...] | None
    gold: str | None

    def __post_init__(self) -> None:
        if problem := next(_problems(self), ""):
            raise ValueError(f"claim {self.id or self.claim!r}: {problem}")

    @property
    def predicted(self) -> str:
        """The label of the highest probability; of equals the first."""
        return max(self.probabilities, key=self.probabilities.__getitem__)

    @property
    def right(self) -> bool | None:
        """True = the gold label is predicted; None = not known."""
        return None if self.gold is None else self.predicted == self.gold


def verdict_html(read: ReadClaim, *, shares: str = SHARES) -> str:
    """The claim, the labels with their probabilities, and the evidence, on blue by its share in the verdict.

    Args:
        shares: what the shares are (plain text), for the legend.
    """
    style = "font-size:13.5px;line-height:1.5;max-width:960px;overflow-x:auto"
    body = f"{_head(read)}{_labels(read)}{_evidence(read, shares)}"
    return f'<div class="cdlm-claim" style="{style}"><style>{_STYLE}</style>{body}</div>'


def verdicts_page(reads: Sequence[ReadClaim], *, title: str, shares: str = SHARES) -> str:
    """A page of its own with all claims in the order given; it runs nothing and loads nothing.

    Args:
        title: of the page (untrusted text).
        shares: as of `verdict_html`.

    Raises:
        ValueError: no claims.
    """
    if not reads:
        raise ValueError("there is no claim to show: reads is empty")
    note = f"{count_in_words(len(reads))} claim{'' if len(reads) == 1 else 's'}"
    known = [read.right for read in reads if read.right is not None]
    if known:
        note += f"; {count_in_words(sum(known))} of {count_in_words(len(known))} verdicts right"
    body = "".join(verdict_html(read, shares=shares) for read in reads)
    return still_page(body, title=title, note=note, style=_PAGE_STYLE)


def _problems(read: ReadClaim) -> Iterator[str]:
    """What is wrong with a claim, if anything."""
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


def _head(read: ReadClaim) -> str:
    """The claim, and whether the verdict is right."""
    claim = f'<div style="font-size:16px;font-weight:600" dir="auto">{escaped(read.claim)}</div>'
    verdict = f"<b>{escaped(read.predicted)}</b>"
    if read.right is not None:
        colour, sign, word = (CROSS, "\u2713", "right") if read.right else (_WRONG, "\u2717", "wrong")
        verdict += f'&ensp;<b style="color:{colour}">{sign}</b> {word}'
    return f'{muted(escaped(read.id))}{claim}<div style="margin:2px 0">{verdict}</div>'


def _labels(read: ReadClaim) -> str:
    """A row for each label: probability, name, and which is predicted and which is gold."""
    rows = []
    for label, probability in read.probabilities.items():
        marks = [_PREDICTED] if label == read.predicted else []
        marks += [_GOLD] if label == read.gold else []
        rows.append(
            [
                share_bar(probability),
                escaped(label),
                f'<span style="font-size:11.5px">{" ".join(marks)}</span>',
            ]
        )
    return _table(rows)


def _evidence(read: ReadClaim, shares: str) -> str:
    """What the grounds are, and a row for each sentence."""
    if not read.evidence:
        return f'<div style="margin:6px 0;{_SMALL}">no evidence was retrieved</div>'
    rows = []
    for number, text in enumerate(read.evidence):
        share = None if read.shares is None else read.shares[number]
        ground = "" if share is None else f";{blue_ground(share)}"
        box = f"line-height:1.5;overflow-wrap:anywhere;border-radius:3px;padding:0 6px{ground}"
        number_html = f'<div style="width:20px;font-size:12px;{MUTED}">{number + 1}</div>'
        bar = [] if share is None else [share_bar(share)]
        rows.append([number_html, *bar, f'<div style="{box}" dir="auto">{escaped(text)}</div>'])
    swatches = "".join(
        f'<span style="{blue_ground(depth)};padding:1px 7px">{100 * depth:.0f}%</span>'
        for depth in (0, 0.5, 1)
    )
    legend = "evidence" if read.shares is None else f"{swatches} {escaped(shares)}"
    return f'<div class="cdlm-legend" style="font-size:12px;margin:8px 0 4px">{legend}</div>{_table(rows)}'


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells that are HTML already."""
    lines = ("".join(f'<td style="{_CELL}">{cell}</td>' for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<table class="cdlm-table" style="{_TABLE}"><tbody>{body}</tbody></table>'
