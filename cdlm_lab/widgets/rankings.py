"""The candidates of a question in the order of one system, beside the places that another one gave them, as
in Table 4 of the MSPP paper (Di Liello et al. 2022).

Every bar has a number, every ground and every frame a word or a sign. Plain HTML without scripts (see
`markup`); all texts are untrusted.

A question with its candidates and what systems made of them; `ranked_candidates` shows it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from cdlm_lab.widgets.html import (
    CROSS,
    GLOBAL,
    MUTED,
    OTHER_COLOURS,
    count_in_words,
    escaped,
    muted,
    share_bar,
    still_page,
)

# (right answer on top by the system beside, by the system) -> what became of the question.
OUTCOMES = {
    (False, True): "repaired",
    (True, False): "broken",
    (True, True): "both right",
    (False, False): "both wrong",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRanking:
    """A question, its candidates, and the scores that systems gave them.

    Attributes:
        id: "" = none, as of a question of one's own.
        candidates: in an order that knows nothing of labels: those of equal scores keep it.
        right: True = the candidate answers the question; None = not known.
        scores: name of a system -> for each candidate the log-odds that it is right. None = the system has
            not read it, as what a cascade leaves out; of each system at least one is read.

    Raises:
        ValueError: no candidates, no systems, labels or scores of another number than candidates, a score
            that is not finite, a system that has read nothing.
    """

    id: str
    question: str
    candidates: tuple[str, ...]
    right: tuple[bool, ...] | None
    scores: Mapping[str, Sequence[float | None]]

    def __post_init__(self) -> None:
        if problem := next(_problems(self), ""):
            raise ValueError(f"question {self.id or self.question!r}: {problem}")

    def order(self, system: str, *, beside: str | None = None) -> tuple[int, ...]:
        """Numbers of the candidates, the highest score first, ties in the order of `candidates`. What the
        system has not read stands below all that it has, in the order of `beside`.

        Raises:
            ValueError: a system without scores.
        """
        scores = self._of(system)
        unread = range(len(scores)) if beside in (None, system) else self.order(beside)
        read = sorted(range(len(scores)), key=lambda number: -_or_lowest(scores[number]))
        return (
            *(number for number in read if scores[number] is not None),
            *(number for number in unread if scores[number] is None),
        )

    def probabilities(self, system: str) -> list[float | None]:
        """Of each candidate the probability that it is right, in [0, 1]; None = not read.

        Raises:
            ValueError: a system without scores.
        """
        return [None if score is None else _logistic(score) for score in self._of(system)]

    def right_on_top(self, system: str) -> bool | None:
        """True = the first candidate of `order` is right; None = not known.

        Raises:
            ValueError: a system without scores.
        """
        scores = self._of(system)
        first = max(range(len(scores)), key=lambda number: _or_lowest(scores[number]))
        return None if self.right is None else self.right[first]

    def outcome(self, system: str, *, beside: str) -> str | None:
        """What became of the question between two systems, one of OUTCOMES; None = not known.

        Raises:
            ValueError: a system without scores.
        """
        return OUTCOMES.get((self.right_on_top(beside), self.right_on_top(system)))

    def _of(self, system: str) -> Sequence[float | None]:
        if system not in self.scores:
            known = ", ".join(self.scores)
            raise ValueError(
                f"question {self.id or self.question!r}: no scores of {system!r}; it has {known}"
            )
        return self.scores[system]


def _logistic(score: float) -> float:
    """1 / (1 + e^-score), without overflow."""
    return (1 + math.tanh(score / 2)) / 2


def _or_lowest(score: float | None) -> float:
    return -math.inf if score is None else score


def _problems(read: ReadRanking) -> Iterator[str]:
    """What is wrong with a ranking, if anything."""
    count = len(read.candidates)
    if not count:
        yield "there are no candidates; give at least one"
    if not read.scores:
        yield "there are no scores; give those of at least one system"
    if read.right is not None and len(read.right) != count:
        yield f"{len(read.right)} labels for {count} candidates; give one for each"
    for system, scores in read.scores.items():
        if len(scores) != count:
            yield f"{system}: {len(scores)} scores for {count} candidates; give one for each, None = not read"
        known = [score for score in scores if score is not None]
        if not known:
            yield f"{system} has read no candidate; leave it out"
        for score in known:
            if not math.isfinite(score):
                yield f"{system}: a score is {score}; it must be finite, or None = not read"


OPEN = 10  # places that are always shown
_BESIDE = 66  # pixels for the place by the other system
UNREAD = "not read"
_WRONG = OTHER_COLOURS[0]
_SMALL = f"font-size:11.5px;{MUTED}"
_CELL = "vertical-align:baseline;text-align:left;white-space:normal;padding:2px 8px 2px 0"
_BOX = "line-height:1.5;overflow-wrap:anywhere;border-radius:3px;padding:0 6px"
_TABLE = "border-collapse:collapse;font-size:13.5px;margin:2px 0"
_GROUND = f"background:{CROSS}30"
_RIGHT = f'<b style="color:{CROSS}">\u2713</b>'
_STYLE = """
div.cdlm-ranking table.cdlm-table tr{background:none!important}
div.cdlm-ranking{color:var(--jp-ui-font-color1,inherit)}
div.cdlm-ranking summary{cursor:pointer}
"""
_PAGE_STYLE = "div.cdlm-ranking{border-top:1px solid rgba(128,128,128,0.4);padding:14px 0 22px}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A candidate in its place, from 1; `before`: the place by the other system, None = there is none."""

    text: str
    right: bool | None
    place: int
    probability: float | None
    before: int | None

    @property
    def notable(self) -> bool:
        return bool(self.right) or self.before == 1


def ranking_html(read: ReadRanking, *, system: str, beside: str | None = None, folded: bool = True) -> str:
    """The question, what became of it, and the candidates with their probabilities, the best one first.

    Args:
        system: whose order.
        beside: whose places stand beside it, and whose first candidate is framed, such as "pairwise"; None or
            `system` = nobody's.
        folded: True = below the first OPEN places only right candidates and the first one of `beside` are
            shown, the others open on a click.

    Raises:
        ValueError: a system without scores.
    """
    beside = None if beside == system else beside
    lines = _lines(read, system, beside)
    tables = []
    for shown, run in groupby(lines, lambda line: not folded or line.place <= OPEN or line.notable):
        run = list(run)
        headings = _headings(beside) if run[0].place == 1 else ""
        body = f"{headings}<tbody>{''.join(map(_row, run))}</tbody>"
        table = f'<table class="cdlm-table" style="{_TABLE}">{body}</table>'
        tables.append(table if shown else _folded(table, run))
    style = "font-size:13.5px;line-height:1.5;max-width:960px;overflow-x:auto"
    body = f"{_head(read, system, beside)}{_legend(lines, beside)}{''.join(tables)}"
    return f'<div class="cdlm-ranking" style="{style}"><style>{_STYLE}</style>{body}</div>'


def rankings_page(reads: Sequence[ReadRanking], *, system: str, beside: str | None = None, title: str) -> str:
    """A page of its own with all questions in the order given; it runs nothing and loads nothing.

    Args:
        system, beside: as of `ranking_html`.
        title: of the page (untrusted text).

    Raises:
        ValueError: no questions, a system without scores.
    """
    if not reads:
        raise ValueError("there is no question to show: reads is empty")
    beside = None if beside == system else beside
    parts = [f"{count_in_words(len(reads))} question{'' if len(reads) == 1 else 's'}"]
    for name in filter(None, (system, beside)):
        known = [top for read in reads if (top := read.right_on_top(name)) is not None]
        if known:
            parts.append(f"{name} right on {count_in_words(sum(known))} of {count_in_words(len(known))}")
    if beside is not None:
        outcomes = Counter(read.outcome(system, beside=beside) for read in reads)
        parts += [f"{count_in_words(outcomes[name])} {name}" for name in OUTCOMES.values() if outcomes[name]]
    body = "".join(ranking_html(read, system=system, beside=beside) for read in reads)
    return still_page(body, title=title, note="; ".join(parts), style=_PAGE_STYLE)


def _lines(read: ReadRanking, system: str, beside: str | None) -> list[_Line]:
    """The candidates in the order of the system."""
    before = {} if beside is None else {number: place for place, number in enumerate(read.order(beside), 1)}
    probabilities = read.probabilities(system)
    return [
        _Line(
            text=read.candidates[number],
            right=None if read.right is None else read.right[number],
            place=place,
            probability=probabilities[number],
            before=before.get(number),
        )
        for place, number in enumerate(read.order(system, beside=beside), start=1)
    ]


def _head(read: ReadRanking, system: str, beside: str | None) -> str:
    """The question, and which systems put a right answer on top."""
    question = f'<div style="font-size:16px;font-weight:600" dir="auto">{escaped(read.question)}</div>'
    head = f"{muted(escaped(read.id))}{question}"
    if read.right is None:
        return head
    names = filter(None, (beside, system))
    parts = [_verdict(name, read.right_on_top(name)) for name in names]
    if beside is not None:
        parts.append(f"<b>{read.outcome(system, beside=beside)}</b>")
    if not any(read.right):
        parts.append("none of the candidates is right")
    return f'{head}<div style="margin:2px 0">{"&ensp;&middot;&ensp;".join(parts)}</div>'


def _verdict(system: str, right: bool | None) -> str:
    colour, sign, word = (CROSS, "\u2713", "right") if right else (_WRONG, "\u2717", "wrong")
    sign = f'<b style="color:{colour}">{sign}</b>'
    return f'<span style="white-space:nowrap"><bdi>{escaped(system)}</bdi> {sign} {word}</span>'


def _legend(lines: Sequence[_Line], beside: str | None) -> str:
    """What ground and frame mean; of the marks those alone that are on the page."""
    parts = []
    if any(line.right for line in lines):
        parts.append(f'<span style="{_GROUND};{_BOX}">{_RIGHT} right answer</span>')
    if beside is not None:
        top = next(line for line in lines if line.before == 1)
        parts.append(f'<span style="{_BOX};{_frame(top)}">first by <bdi>{escaped(beside)}</bdi></span>')
        parts.append(f"\u25b2 \u25bc places up and down from <bdi>{escaped(beside)}</bdi>")
    if any(line.probability is None for line in lines):
        under = "" if beside is None else f", in the order of <bdi>{escaped(beside)}</bdi>"
        parts.append(f"{UNREAD}: below what was read{under}")
    items = "".join(
        f'<span style="display:inline-block;margin:1px 16px 1px 0">{part}</span>' for part in parts
    )
    return f'<div class="cdlm-legend" style="font-size:12px;margin:2px 0 6px">{items}</div>' if parts else ""


def _headings(beside: str | None) -> str:
    width = f"width:{_BESIDE}px;overflow-wrap:anywhere"
    other = [] if beside is None else [f'<div style="{width}"><bdi>{escaped(beside)}</bdi></div>']
    names = ["", "probability", *other, '<span style="padding-left:6px">candidate</span>']
    cells = "".join(f'<th style="{_CELL};font-weight:400;{_SMALL}">{name}</th>' for name in names)
    return f"<thead><tr>{cells}</tr></thead>"


def _folded(table: str, lines: Sequence[_Line]) -> str:
    """Candidates that open on a click; none of them is right, as far as is known."""
    places = f"{lines[0].place}" if len(lines) == 1 else f"{lines[0].place} to {lines[-1].place}"
    counted = f"place{'' if len(lines) == 1 else 's'} {places}"
    return f'<details style="margin:4px 0"><summary style="{_SMALL}">{counted}</summary>{table}</details>'


def _row(line: _Line) -> str:
    """A row: place, probability, place by the other system, and the candidate itself."""
    cells = [
        f'<div style="width:20px;font-size:12px;{MUTED}">{line.place}</div>',
        f'<div style="width:62px">{_bar(line.probability)}</div>',
    ]
    if line.before is not None:
        cells.append(f'<div style="width:{_BESIDE}px">{_before(line, line.before)}</div>')
    ground = f"{_GROUND};" if line.right else ""
    frame = f";{_frame(line)}" if line.before == 1 else ""
    sign = f"{_RIGHT} " if line.right else ""
    cells.append(f'<div style="{ground}{_BOX}{frame}" dir="auto">{sign}{escaped(line.text)}</div>')
    row = "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells)
    return f"<tr>{row}</tr>"


def _bar(probability: float | None) -> str:
    """A probability as number and bar."""
    if probability is None:
        return f'<span style="{_SMALL}">{UNREAD}</span>'
    return share_bar(probability)


def _before(line: _Line, before: int) -> str:
    """The place by the other system, and how many places above or below it the candidate is now."""
    by = before - line.place
    moved = f" \u25b2{by}" if by > 0 else f" \u25bc{-by}" if by < 0 else ""
    style = "font-size:12px;white-space:nowrap"
    return f'<span style="{style}">{before}<span style="{MUTED}">{moved}</span></span>'


def _frame(line: _Line) -> str:
    """The frame around what the other system put on top: is it right?"""
    colour = {True: CROSS, False: _WRONG, None: GLOBAL}[line.right]
    return f"border:1px solid {colour};padding:0 5px"
