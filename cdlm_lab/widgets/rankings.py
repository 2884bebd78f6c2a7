"""A question with its candidates in the order of one system, beside the places that another one gave them, as
in Table 4 of the MSPP paper (Di Liello et al. 2022).

Every bar has a number, every ground and every frame a word or a sign; all texts are untrusted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import plotly.graph_objects as go

from cdlm_lab.analysis.joint_diagnosis import JointDiagnosis
from cdlm_lab.widgets.charts import (
    faded,
    interval,
    lay_out,
    line_styles,
    marks,
    not_empty,
    plain_text,
    short_name,
    small,
)
from cdlm_lab.widgets.html import (
    CROSS,
    GLOBAL,
    HUES,
    MUTED,
    SIGNS,
    SMALL,
    TEXT,
    WRONG,
    bare_table,
    count_in_words,
    counted,
    escaped,
    fold,
    headline,
    legend,
    muted,
    page_of,
    right_of_known,
    right_or_wrong,
    share_bar,
    view_html,
)

# (right answer on top by the system beside, by the system) -> what became of the question.
OUTCOMES = {
    (False, True): "repaired",
    (True, False): "broken",
    (True, True): "both right",
    (False, False): "both wrong",
}
OPEN = 10  # places that are always shown
UNREAD = "not read"
_BESIDE = 66  # pixels for the place by the other system
_BOX = "line-height:1.5;overflow-wrap:anywhere;border-radius:3px;padding:0 6px"
_GROUND = f"background:{CROSS}30"
_RIGHT = f'<b style="color:{CROSS}">{SIGNS[True]}</b>'


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRanking:
    """A question, its candidates, and the scores that systems gave them."""

    id: str  # "" = none, as of a question of one's own
    question: str
    candidates: tuple[str, ...]  # in an order that knows nothing of labels: those of equal scores keep it
    right: tuple[bool, ...] | None  # True = the candidate answers the question; None = not known
    # Name of a system -> for each candidate the log-odds that it is right. None = the system has not read it,
    # as what a cascade leaves out; of each system at least one is read.
    scores: Mapping[str, Sequence[float | None]]

    def __post_init__(self) -> None:
        if problem := next(_problems(self), ""):
            raise ValueError(f"question {self.id or self.question!r}: {problem}")

    def order(self, system: str, *, beside: str | None = None) -> tuple[int, ...]:
        """Numbers of the candidates, the highest score first, ties in the order of `candidates`. What the
        system has not read stands below all that it has, in the order of `beside`."""
        scores = self.scores_of(system)
        unread = range(len(scores)) if beside in (None, system) else self.order(beside)
        read = (number for number, score in enumerate(scores) if score is not None)
        return (
            *sorted(read, key=lambda number: -scores[number]),
            *(number for number in unread if scores[number] is None),
        )

    def probabilities(self, system: str) -> list[float | None]:
        """Of each candidate the probability that it is right, in [0, 1]; None = not read."""
        # 1 / (1 + e^-score), without overflow
        return [None if score is None else (1 + math.tanh(score / 2)) / 2 for score in self.scores_of(system)]

    def right_on_top(self, system: str) -> bool | None:
        """True = the first candidate of `order` is right; None = not known."""
        first = self.order(system)[0]
        return None if self.right is None else self.right[first]

    def outcome(self, system: str, *, beside: str) -> str | None:
        """What became of the question between two systems, one of OUTCOMES; None = not known."""
        return OUTCOMES.get((self.right_on_top(beside), self.right_on_top(system)))

    def scores_of(self, system: str) -> Sequence[float | None]:
        """The scores of a system, which must be one of those known."""
        if system not in self.scores:
            known, name = ", ".join(self.scores), self.id or self.question
            raise ValueError(f"question {name!r}: no scores of {system!r}; it has {known}")
        return self.scores[system]


def _problems(read: ReadRanking) -> Iterator[str]:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A candidate in its place, from 1; `before`: the place by the other system, None = there is none."""

    text: str
    right: bool | None
    place: int
    probability: float | None
    before: int | None

    @property
    def in_sight(self) -> bool:
        return self.place <= OPEN or bool(self.right) or self.before == 1


def ranking_html(read: ReadRanking, *, system: str, beside: str | None = None, folded: bool = True) -> str:
    """The question, what became of it, and the candidates with their probabilities, the best one first.

    Args:
        system: whose order.
        beside: whose places stand beside it, and whose first candidate is framed, such as "pairwise"; None or
            `system` = nobody's.
        folded: True = below the first OPEN places only right candidates and the first one of `beside` are
            shown, the others open on a click.
    """
    beside = None if beside == system else beside
    lines = _lines(read, system, beside)
    tables = []
    for in_sight, group in groupby(lines, lambda line: not folded or line.in_sight):
        run = list(group)
        table = bare_table(map(_cells, run), head=_headings(beside) if run[0].place == 1 else ())
        if not in_sight:
            places = f"places {run[0].place} to {run[-1].place}" if len(run) > 1 else f"place {run[0].place}"
            table = fold(f'<span style="{SMALL}">{places}</span>', table)
        tables.append(table)
    return view_html("ranking", f"{_head(read, system, beside)}{_legend(lines, beside)}{''.join(tables)}")


def rankings_page(reads: Sequence[ReadRanking], *, system: str, beside: str | None = None, title: str) -> str:
    """A page of its own with all questions in the order given, and how often `system`, and `beside` if it is
    another one, put a right answer on top."""
    beside = None if beside == system else beside
    facts = []
    for name in filter(None, (system, beside)):
        rights = [read.right_on_top(name) for read in reads]
        facts += [f"{name} {words}" for words in right_of_known(rights, "right on {} of {}")]
    if beside is not None:
        outcomes = Counter(read.outcome(system, beside=beside) for read in reads)
        facts += [f"{count_in_words(outcomes[name])} {name}" for name in OUTCOMES.values() if outcomes[name]]
    return page_of(
        reads,
        lambda read: ranking_html(read, system=system, beside=beside),
        noun="question",
        facts=facts,
        title=title,
    )


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
    head = f"{muted(escaped(read.id))}{headline(read.question)}"
    if read.right is None:
        return head
    parts = []
    for name in filter(None, (beside, system)):
        verdict = f"<bdi>{escaped(name)}</bdi> {right_or_wrong(read.right_on_top(name))}"
        parts.append(f'<span style="white-space:nowrap">{verdict}</span>')
    if beside is not None:
        parts.append(f"<b>{read.outcome(system, beside=beside)}</b>")
    if not any(read.right):
        parts.append("none of the candidates is right")
    return f'{head}<div style="margin:2px 0">{"&ensp;&middot;&ensp;".join(parts)}</div>'


def _legend(lines: Sequence[_Line], beside: str | None) -> str:
    """What ground and frame mean; of the marks those alone that are on the page."""
    parts, other = [], f"<bdi>{escaped(beside or '')}</bdi>"
    if any(line.right for line in lines):
        parts.append(f'<span style="{_GROUND};{_BOX}">{_RIGHT} right answer</span>')
    if beside is not None:
        top = next(line for line in lines if line.before == 1)
        parts.append(f'<span style="{_BOX};{_frame(top)}">first by {other}</span>')
        parts.append(f"\u25b2 \u25bc places up and down from {other}")
    if any(line.probability is None for line in lines):
        parts.append(f"{UNREAD}: below what was read{'' if beside is None else f', in the order of {other}'}")
    return legend(parts)


def _headings(beside: str | None) -> list[str]:
    width = f"width:{_BESIDE}px;overflow-wrap:anywhere"
    other = [] if beside is None else [f'<div style="{width}"><bdi>{escaped(beside)}</bdi></div>']
    return ["", "probability", *other, '<span style="padding-left:6px">candidate</span>']


def _cells(line: _Line) -> list[str]:
    """Place, probability, place by the other system and how far up or down it moved, and the candidate
    itself."""
    bar = (
        f'<span style="{SMALL}">{UNREAD}</span>' if line.probability is None else share_bar(line.probability)
    )
    cells = [
        f'<div style="width:20px;font-size:12px;{MUTED}">{line.place}</div>',
        f'<div style="width:62px">{bar}</div>',
    ]
    if line.before is not None:
        by = line.before - line.place
        moved = f" \u25b2{by}" if by > 0 else f" \u25bc{-by}" if by < 0 else ""
        number = f'{line.before}<span style="{MUTED}">{moved}</span>'
        number = f'<span style="font-size:12px;white-space:nowrap">{number}</span>'
        cells.append(f'<div style="width:{_BESIDE}px">{number}</div>')
    ground = f"{_GROUND};" if line.right else ""
    frame = f";{_frame(line)}" if line.before == 1 else ""
    sign = f"{_RIGHT} " if line.right else ""
    return [*cells, f'<div style="{ground}{_BOX}{frame}" dir="auto">{sign}{escaped(line.text)}</div>']


def _frame(line: _Line) -> str:
    """The frame around what the other system put on top: is it right?"""
    colour = {True: CROSS, False: WRONG, None: GLOBAL}[line.right]
    return f"border:1px solid {colour};padding:0 5px"


def accuracy_by_place_figure(
    systems: Mapping[str, JointDiagnosis], *, title: str = "Accuracy by place in the sequence"
) -> go.Figure:
    """At each place, which share of the candidates a system calls as they are, a line for each system; dashed
    the accuracy of calling each candidate wrong, dotted the share of right candidates. A collapsed model has
    the dashed line, or another accuracy at each place. All systems must have read the same candidates at the
    same places."""
    if not systems:
        raise ValueError("there is nothing to show: systems is empty")
    name, first = next(iter(systems.items()))
    wrong = _shares(f"{name}: always_wrong", first.always_wrong)
    figure = go.Figure()
    for (name, system), style in zip(systems.items(), line_styles(len(systems)), strict=True):
        other = _shares(f"{name}: always_wrong", system.always_wrong)
        if len(other) != len(wrong) or not np.allclose(other, wrong, equal_nan=True):
            raise ValueError(f"{name}: its candidates are not those of {next(iter(systems))}; give the same")
        label = f"{plain_text(name)}<br>place %{{x}}: %{{y:.1f}}% right<extra></extra>"
        accuracy = _shares(f"{name}: accuracy", system.accuracy)
        figure.add_scatter(y=_per_cent(accuracy), name=short_name(name), hovertemplate=label, **style)
    for label, shares, dash in (
        ("calling each wrong", wrong, "dash"),
        ("right candidates", 1 - wrong, "dot"),
    ):
        figure.add_scatter(
            y=_per_cent(shares),
            name=label,
            mode="lines+markers",
            line={"color": TEXT, "width": 1.6, "dash": dash},
            marker={"color": TEXT, "symbol": "line-ew-open", "size": 9},
            hovertemplate=f"place %{{x}}: {label} %{{y:.1f}}%<extra></extra>",
        )
    places = list(range(1, len(wrong) + 1))
    figure.update_traces(x=places)
    figure.update_xaxes(
        title_text="place of the candidate in the sequence",
        tickvals=places,
        range=[0.7, len(places) + 0.3],
        showgrid=False,
    )
    figure.update_yaxes(title_text="share of candidates (%)", range=[0, 103])
    # The legend may take several lines.
    lay_out(figure, title=title, showlegend=True, legend={"y": -0.22, "yanchor": "top"}, margin_t=56)
    return figure


def _shares(name: str, values: Sequence[float]) -> np.ndarray:
    """(k,), checked; nan is allowed."""
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name} has shape {array.shape}; it must be (k,), one for each place")
    if wrong := [value for value in array.tolist() if value < 0 or value > 1]:
        raise ValueError(f"{name} has {wrong[0]}; a share lies in [0, 1]")
    return array


def _per_cent(shares: np.ndarray) -> list[float | None]:
    """In per cent; None, where a line is broken, for nan."""
    return [None if math.isnan(share) else round(100 * share, 3) for share in shares.tolist()]


BINS = 40
HIGHEST = 0.85  # part of a row that an area fills


def score_spread_figure(
    spreads: Mapping[str, Sequence[float]], *, title: str = "How far scores lie apart within a group"
) -> go.Figure:
    """How far the scores of each system lie apart within groups of candidates, a row for each: an area as
    high as its fullest bin, and a line at the median. Near 0 a system says the same of all candidates of a
    group.

    `spreads`: name of a system -> of each group the standard deviation of its log-odds; from top to bottom.
    """
    shown = {name: np.asarray(values, dtype=float) for name, values in not_empty(spreads, "spreads").items()}
    for name, values in shown.items():
        if wrong := [value for value in values.tolist() if not 0 <= value < math.inf]:
            raise ValueError(f"{name}: a spread is {wrong[0]}; it must be finite and not negative")
    widest = max(float(values.max()) for values in shown.values()) or 1.0
    edges = np.linspace(0, widest, BINS + 1)
    figure, labels = go.Figure(), []
    for place, values in enumerate(shown.values()):
        base = len(shown) - 1 - place
        figure.add_traces(_ridge(values, edges, base=base, colour=HUES[place % len(HUES)]))
        labels.append(f"median {np.median(values):.3g}, {counted(len(values), 'group')}")
    figure.update_xaxes(
        title_text="standard deviation of log-odds within a group", range=[-0.01 * widest, 1.02 * widest]
    )
    figure.update_yaxes(
        tickvals=[len(shown) - 1 - place + HIGHEST / 2 for place in range(len(shown))],
        ticktext=[short_name(name) + small(label) for name, label in zip(shown, labels, strict=True)],
        range=[-0.15, len(shown)],
        ticks="",
        showgrid=False,
    )
    lay_out(figure, title=title, height=150 + 84 * len(shown), margin_t=56, showlegend=False)
    return figure


def _ridge(values: np.ndarray, edges: np.ndarray, *, base: int, colour: str) -> list[go.Scatter]:
    """The ground line of a row, the area above it, and the line at the median."""
    share = np.histogram(values, bins=edges)[0] / len(values)
    median = float(np.median(values))
    heights = base + HIGHEST * np.repeat(share / share.max(), 2)
    ground = marks([0, float(edges[-1])], [base, base], line={"color": colour, "width": 0})
    area = go.Scatter(
        x=np.round(np.repeat(edges, 2), 6).tolist(),
        y=[base, *np.round(heights, 4).tolist(), base],
        line={"color": colour, "width": 1.8},
        fill="tonexty",
        fillcolor=faded(colour, 0.3),
        text=[f"{100 * one:.1f}% of the groups" for one in (0, *np.repeat(share, 2), 0)],
        hovertemplate="%{x:.3g}: %{text}<extra></extra>",
    )
    line = {"color": colour, "width": 2, "dash": "dot"}
    tick = marks([round(median, 6)] * 2, [base, base + HIGHEST], f"median {median:.3g}", line=line)
    return [trace.update(mode="lines", showlegend=False) for trace in (ground, area, tick)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long a system takes for one question: the median, the fastest and the slowest of its runs, in
    seconds."""

    system: str
    seconds: float
    fastest: float
    slowest: float
    runs: int

    def __post_init__(self) -> None:
        if not 0 < self.fastest <= self.seconds <= self.slowest < float("inf"):
            times = f"{self.fastest}, {self.seconds}, {self.slowest}"
            raise ValueError(
                f"{self.system}: fastest, median and slowest ({times}) must be above 0 and not fall"
            )
        if self.runs < 1:
            raise ValueError(f"{self.system}: runs is {self.runs}; it must be at least 1")


def latency_figure(
    latencies: Sequence[Latency], *, against: str = "pairwise", title: str = "Time for one question"
) -> go.Figure:
    """A bar for each system up to the median of its runs, with a whisker from the fastest to the slowest, and
    how many times as long as the system `against` it takes."""
    by_name = {one.system: one for one in latencies}
    if not by_name or len(by_name) < len(latencies):
        raise ValueError("give each system once, and at least one")
    if against not in by_name:
        raise ValueError(f"there is no {against!r} to compare with; choose from {', '.join(by_name)}")
    places = list(range(len(latencies)))
    medians, fastest, slowest = (
        [round(1000 * getattr(one, name), 4) for one in latencies]
        for name in ("seconds", "fastest", "slowest")
    )
    bars = go.Bar(
        x=medians,
        y=places,
        orientation="h",
        width=0.55,
        marker={"color": [faded(HUES[place % len(HUES)], 0.75) for place in places]},
        error_x=interval(medians, fastest, slowest, color=TEXT, thickness=1.5, width=4),
        hovertext=[_latency_in_words(one) for one in latencies],
        hoverinfo="text",
    )
    base = by_name[against].seconds
    factors = ["" if one.system == against else f", {one.seconds / base:.2f} \u00d7" for one in latencies]
    texts = [f"  {_written(one.seconds)}{factor}" for one, factor in zip(latencies, factors, strict=True)]
    look = {"mode": "text", "textposition": "middle right", "textfont": {"size": 12.5}, "cliponaxis": False}
    numbers = marks(slowest, places, text=texts, **look)
    figure = go.Figure([bars, numbers])
    axis = f"milliseconds for one question; \u00d7: times {plain_text(against)}"
    figure.update_xaxes(title_text=axis, range=[0, 1.35 * max(slowest)])  # room for the numbers at the right
    figure.update_yaxes(
        tickvals=places,
        ticktext=[short_name(one.system) for one in latencies],
        range=[len(latencies) - 0.4, -0.6],
        showgrid=False,
        ticks="",
    )
    lay_out(figure, title=title, height=150 + 52 * len(latencies), margin_t=56, showlegend=False)
    return figure


def _written(seconds: float) -> str:
    """0.0814 -> `81.4 ms`, 2.5 -> `2,500 ms`."""
    return f"{1000 * seconds:,.1f} ms" if seconds < 0.1 else f"{1000 * seconds:,.0f} ms"


def _latency_in_words(one: Latency) -> str:
    between = f"{_written(one.fastest)} to {_written(one.slowest)}"
    return (
        f"{plain_text(one.system)}<br>median {_written(one.seconds)} of {counted(one.runs, 'run')}, {between}"
    )
