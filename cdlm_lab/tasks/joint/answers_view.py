"""A question with its candidates as one system ranks them, next to their ranks by another system, as in Table
4 of the MSPP paper (Di Liello et al. 2022); figures of scores and of speed.

Every bar has a number, every background and frame a word or a sign; all texts are untrusted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np
import plotly.graph_objects as go

from cdlm_lab.tasks.joint.diagnosis import JointDiagnosis
from cdlm_lab.views import charts, html
from cdlm_lab.views.browse import Filters, Leafing, choices
from cdlm_lab.views.charts import lay_out, marks, plain_text, short_name, small
from cdlm_lab.views.html import (
    CROSS,
    GLOBAL,
    HUES,
    MUTED,
    SIGNS,
    SMALL,
    TEXT,
    WRONG,
    check_some,
    div,
    escaped,
    span,
    visible,
)

# (first candidate of the system compared with is right, that of the system itself is) -> outcome.
OUTCOMES = {
    (False, True): "repaired",
    (True, False): "broken",
    (True, True): "both right",
    (False, False): "both wrong",
}
OPEN = 10  # number of top ranks that are always shown
UNREAD = "not read"
_BESIDE = "width:66px"  # of the column with the ranks by the other system
_GROUND = f"background:{CROSS}30"
_RIGHT = f'<b style="color:{CROSS}">{SIGNS[True]}</b>'


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRanking:
    """A question, its candidates, and the scores that systems predicted for them."""

    id: str  # "" = none, as for the user's own questions
    question: str
    candidates: tuple[str, ...]  # in an order that is independent of the labels, because it breaks ties
    right: tuple[bool, ...] | None  # True = the candidate answers the question; None = not known
    # Name of a system -> for each candidate the log-odds that it is right. None = the system has not read the
    # candidate, as when a cascade drops it; each system must have read at least one.
    scores: Mapping[str, Sequence[float | None]]
    # How many characters of each candidate were read by a system, the first ones; None = all of all.
    read: tuple[int, ...] | None = None
    cut: str = ""  # a line on what was not read

    def __post_init__(self) -> None:
        if problem := next(self._problems(), ""):
            raise ValueError(f"question {self.id or self.question!r}: {problem}")

    def _problems(self) -> Iterator[str]:
        count = len(self.candidates)
        if not count:
            yield "there are no candidates; give at least one"
        if not self.scores:
            yield "there are no scores; give those of at least one system"
        if self.read is not None and len(self.read) != count:
            yield f"{len(self.read)} numbers of characters read for {count} candidates; give one for each"
        if self.right is not None and len(self.right) != count:
            yield f"{len(self.right)} labels for {count} candidates; give one for each"
        for system, scores in self.scores.items():
            if len(scores) != count:
                counts = f"{len(scores)} scores for {count} candidates"
                yield f"{system}: {counts}; give one for each, None = not read"
            known = [score for score in scores if score is not None]
            if not known:
                yield f"{system} has read no candidate; leave it out"
            for score in known:
                if not math.isfinite(score):
                    yield f"{system}: a score is {score}; it must be finite, or None = not read"

    def order(self, system: str, *, beside: str | None = None) -> tuple[int, ...]:
        """Return the candidates' indices by descending score, ties in the order of `candidates`. Those that
        the system has not read follow all that it has, in the order of the system `beside`."""
        scores = self.scores_of(system)
        read = [number for number, score in enumerate(scores) if score is not None]
        others = range(len(scores)) if beside in (None, system) else self.order(beside)
        unread = [number for number in others if scores[number] is None]
        return (*sorted(read, key=lambda number: -scores[number]), *unread)

    def probabilities(self, system: str) -> list[float | None]:
        """Return the probability, in [0, 1], that each candidate is right; None = not read."""
        # The logistic function 1 / (1 + e^-score), without overflow.
        return [None if score is None else (1 + math.tanh(score / 2)) / 2 for score in self.scores_of(system)]

    def text_html(self, number: int) -> str:
        """Return a candidate as HTML, with the end that was not read struck out."""
        text = self.candidates[number]
        end = len(text) if self.read is None else self.read[number]
        return escaped(text[:end]) + (html.unread(escaped(text[end:])) if text[end:].strip() else "")

    def right_on_top(self, system: str) -> bool | None:
        """Return whether the system's first candidate is right (P@1 of this question); None = not known."""
        first = self.order(system)[0]
        return None if self.right is None else self.right[first]

    def outcome(self, system: str, *, beside: str) -> str | None:
        """Compare `system` with `beside` by their first candidates: one of OUTCOMES; None = not known."""
        return OUTCOMES.get((self.right_on_top(beside), self.right_on_top(system)))

    def scores_of(self, system: str) -> Sequence[float | None]:
        """Return the scores of a system. Raises ValueError if there are none of that name."""
        if system not in self.scores:
            known, name = ", ".join(self.scores), self.id or self.question
            raise ValueError(f"question {name!r}: no scores of {system!r}; it has {known}")
        return self.scores[system]


def ranking_html(read: ReadRanking, *, system: str, beside: str) -> str:
    """Return the question, its outcome, and the candidates with their probabilities, ranked by `system`.

    If `beside` is another system, such as "pairwise", its ranks are shown next to those of `system`, and its
    first candidate is framed. Below rank OPEN only right candidates and the first one of `beside` are shown;
    the others unfold on a click."""
    other = None if beside == system else beside
    before = {number: place for place, number in enumerate(read.order(other), 1)} if other else {}
    head = ["", "probability", '<span style="padding-left:6px">candidate</span>']
    if other is not None:
        head.insert(2, div(f"<bdi>{escaped(other)}</bdi>", f"{_BESIDE};overflow-wrap:anywhere"))
    lines = []  # (is it shown unfolded, rank, cells) of each candidate
    for place, number in enumerate(read.order(system, beside=other), start=1):
        in_sight = place <= OPEN or before.get(number) == 1 or bool(read.right and read.right[number])
        lines.append((in_sight, place, _cells(read, number, place, read.probabilities(system), before)))
    tables = []
    for in_sight, group in groupby(lines, lambda line: line[0]):
        run = list(group)
        first, last = run[0][1], run[-1][1]
        table = html.bare_table((cells for _, _, cells in run), head=head if first == 1 else ())
        places = f"places {first} to {last}" if len(run) > 1 else f"place {first}"
        tables.append(table if in_sight else html.fold(span(places, SMALL), table))
    above = f"{_head(read, system, other)}{_legend(read, system, other)}"
    return html.view_html("ranking", f"{above}{''.join(tables)}")


def _cells(
    read: ReadRanking,
    number: int,
    place: int,
    probabilities: Sequence[float | None],
    before: Mapping[int, int],
) -> list[str]:
    """Return the cells of a candidate: rank, probability, rank by the other system and difference, text."""
    probability, right = probabilities[number], bool(read.right and read.right[number])
    bar = span(UNREAD, SMALL) if probability is None else html.share_bar(probability)
    cells = [div(f"{place}", f"width:20px;font-size:12px;{MUTED}"), div(bar, "width:62px")]
    if before:
        by = before[number] - place
        moved = f" \u25b2{by}" if by > 0 else f" \u25bc{-by}" if by < 0 else ""
        moved = span(f"{before[number]}{span(moved, MUTED)}", "font-size:12px;white-space:nowrap")
        cells.append(div(moved, _BESIDE))
    frame = _frame(None if read.right is None else right) if before.get(number) == 1 else ""
    box = f"padding:0 6px;{_GROUND if right else ''};{frame}"
    return [*cells, html.text_box(f"{f'{_RIGHT} ' if right else ''}{read.text_html(number)}", box)]


def _frame(right: bool | None) -> str:
    """Return the CSS of the frame around the other system's first candidate; `right`: whether it is right."""
    colour = {True: CROSS, False: WRONG, None: GLOBAL}[right]
    return f"border:1px solid {colour};padding:0 5px"


def rankings_page(reads: Sequence[ReadRanking], *, system: str, beside: str, title: str) -> str:
    """Return a page with all questions, which begins with the number of right first candidates by system."""
    facts = []
    for name in dict.fromkeys((system, beside)):
        rights = [read.right_on_top(name) for read in reads]
        facts += [f"{name} {words}" for words in html.right_of_known(rights, "right on {} of {}")]
    if beside != system:
        outcomes = Counter(read.outcome(system, beside=beside) for read in reads)
        facts += [f"{outcomes[name]:,} {name}" for name in OUTCOMES.values() if outcomes[name]]
    show = partial(ranking_html, system=system, beside=beside)
    return html.page_of(reads, show, noun="question", facts=facts, title=title)


def _head(read: ReadRanking, system: str, beside: str | None) -> str:
    """Return the question, and whether each system's first candidate is right."""
    head = f"{html.muted(escaped(html.shown_id(read.id)))}{html.headline(read.question)}"
    if read.right is None:
        return head
    parts = []
    for name in filter(None, (beside, system)):
        verdict = f"<bdi>{escaped(name)}</bdi> {html.right_or_wrong(read.right_on_top(name))}"
        parts.append(span(verdict, "white-space:nowrap"))
    if beside is not None:
        parts.append(f"<b>{read.outcome(system, beside=beside)}</b>")
    if not any(read.right):
        parts.append("none of the candidates is right")
    return f"{head}{div('&ensp;&middot;&ensp;'.join(parts), 'margin:2px 0')}"


def _legend(read: ReadRanking, system: str, beside: str | None) -> str:
    """Return a legend of the background, the frame and those signs that occur in this view."""
    parts, box, other = [], "border-radius:3px;padding:0 6px", f"<bdi>{escaped(beside or '')}</bdi>"
    if any(read.right or ()):
        parts.append(span(f"{_RIGHT} right answer", f"{_GROUND};{box}"))
    if beside is not None:
        parts.append(span(f"first by {other}", f"{box};{_frame(read.right_on_top(beside))}"))
        parts.append(f"\u25b2 \u25bc places up and down from {other}")
    if None in read.scores[system]:
        parts.append(f"{UNREAD}: below what was read{'' if beside is None else f', in the order of {other}'}")
    if any("<s " in read.text_html(number) for number in range(len(read.candidates))):
        parts.append(f"{html.unread('struck out')}: not read")
    return html.legend(parts)


def accuracy_by_place_figure(systems: Mapping[str, JointDiagnosis]) -> go.Figure:
    """Plot the accuracy of each system at each position of the sequence: the proportion of candidates there
    whose predicted label is the gold one. Dashed: accuracy of predicting wrong for every candidate; dotted:
    proportion of right candidates. A collapsed model follows the dashed line, or its accuracy depends on the
    position. Raises ValueError unless all systems read the same candidates at the same positions."""
    if not systems:
        raise ValueError("there is nothing to show: systems is empty")

    def shares(name: str, measure: str) -> np.ndarray:
        values = getattr(systems[name], measure)
        return charts.checked_array(f"{name}: {measure}", values, shape="(k,)", low=0, high=1)

    def per_cent(values: np.ndarray) -> list[float | None]:
        """Convert to per cent; NaN becomes None, where plotly breaks the line."""
        return [None if math.isnan(value) else round(100 * value, 3) for value in values.tolist()]

    first = next(iter(systems))
    wrong, figure = shares(first, "always_wrong"), go.Figure()
    for place, name in enumerate(systems):
        other = shares(name, "always_wrong")
        if len(other) != len(wrong) or not np.allclose(other, wrong, equal_nan=True):
            raise ValueError(f"{name}: its candidates are not those of {first}; give the same")
        label = f"{plain_text(name)}<br>place %{{x}}: %{{y:.1f}}% right<extra></extra>"
        accuracy = per_cent(shares(name, "accuracy"))
        figure.add_scatter(y=accuracy, name=short_name(name), hovertemplate=label, **charts.line_style(place))
    marker = {"color": TEXT, "symbol": "line-ew-open", "size": 9}
    for name, values, dash in (("calling each wrong", wrong, "dash"), ("right candidates", 1 - wrong, "dot")):
        style = {"mode": "lines+markers", "marker": marker}
        style |= {"line": {"color": TEXT, "width": 1.6, "dash": dash}}
        label = f"place %{{x}}: {name} %{{y:.1f}}%<extra></extra>"
        figure.add_scatter(y=per_cent(values), name=name, hovertemplate=label, **style)
    places = list(range(1, len(wrong) + 1))
    figure.update_traces(x=places)
    figure.update_xaxes(tickvals=places, range=[0.7, len(places) + 0.3], showgrid=False)
    figure.update_yaxes(title_text="share of candidates (%)", range=[0, 103])
    x, title = "place of the candidate in the sequence", "Accuracy by place in the sequence"
    # The legend may take several lines.
    legend = {"y": -0.22, "yanchor": "top"}
    return lay_out(figure, title=title, x=x, showlegend=True, legend=legend, margin_t=56)


BINS = 40
HIGHEST = 0.85  # height of an area, as a proportion of the height of its row


def score_spread_figure(spreads: Mapping[str, Sequence[float]]) -> go.Figure:
    """Plot the spread of each system's scores within groups of candidates: one row per system, with an area
    that is a histogram scaled to its fullest bin, and a line at the median. With a spread near 0, a system
    gives all candidates of a group the same score.

    `spreads`: name of a system -> standard deviation of the log-odds in each group; rows from top to bottom.
    """
    shown = {name: np.asarray(values, dtype=float) for name, values in spreads.items() if len(values)}
    if not shown:
        raise ValueError("there is nothing to show: spreads is empty")
    for name, values in shown.items():
        if wrong := [value for value in values.tolist() if not 0 <= value < math.inf]:
            raise ValueError(f"{name}: a spread is {wrong[0]}; it must be finite and not negative")
    widest = max(float(values.max()) for values in shown.values()) or 1.0
    edges = np.linspace(0, widest, BINS + 1)
    figure, labels = go.Figure(), []
    for place, (name, values) in enumerate(shown.items()):
        figure.add_traces(_ridge(values, edges, base=len(shown) - 1 - place, colour=HUES[place % len(HUES)]))
        median = f"median {np.median(values):.3g}, {html.counted(len(values), 'group')}"
        labels.append(short_name(name) + small(median))
    figure.update_xaxes(range=[-0.01 * widest, 1.02 * widest])
    rows = [len(shown) - 1 - place + HIGHEST / 2 for place in range(len(shown))]
    ends = [-0.15, len(shown)]
    figure.update_yaxes(tickvals=rows, ticktext=labels, range=ends, ticks="", showgrid=False)
    title, x = "How far scores lie apart within a group", "standard deviation of log-odds within a group"
    return lay_out(figure, title=title, x=x, height=150 + 84 * len(shown), margin_t=56, showlegend=False)


def _ridge(values: np.ndarray, edges: np.ndarray, *, base: int, colour: str) -> list[go.Scatter]:
    """Return the traces of a row: its base line, the area above it, and the line at the median."""
    share = np.histogram(values, bins=edges)[0] / len(values)
    median, heights = float(np.median(values)), base + HIGHEST * np.repeat(share / share.max(), 2)
    ground = marks([0, float(edges[-1])], [base, base], line={"color": colour, "width": 0})
    area = go.Scatter(
        x=np.round(np.repeat(edges, 2), 6).tolist(),
        y=[base, *np.round(heights, 4).tolist(), base],
        line={"color": colour, "width": 1.8},
        fill="tonexty",
        fillcolor=charts.faded(colour, 0.3),
        text=[f"{100 * one:.1f}% of the groups" for one in (0, *np.repeat(share, 2), 0)],
        hovertemplate="%{x:.3g}: %{text}<extra></extra>",
    )
    line = {"color": colour, "width": 2, "dash": "dot"}
    tick = marks([round(median, 6)] * 2, [base, base + HIGHEST], f"median {median:.3g}", line=line)
    return [trace.update(mode="lines", showlegend=False) for trace in (ground, area, tick)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Seconds that a system takes for one question: median, minimum and maximum over its runs."""

    system: str
    seconds: float
    fastest: float
    slowest: float
    runs: int

    def __post_init__(self) -> None:
        if not 0 < self.fastest <= self.seconds <= self.slowest < math.inf:
            times = f"{self.fastest}, {self.seconds}, {self.slowest}"
            order = f"fastest, median and slowest ({times}) must be above 0 and not fall"
            raise ValueError(f"{self.system}: {order}")
        if self.runs < 1:
            raise ValueError(f"{self.system}: runs is {self.runs}; it must be at least 1")


def latency_figure(latencies: Sequence[Latency], *, against: str) -> go.Figure:
    """Plot a bar for each system up to the median time of its runs, with a whisker from the fastest to the
    slowest run, and the ratio of its median to that of the system `against`."""
    seconds = {one.system: one.seconds for one in latencies}
    if not seconds or len(seconds) < len(latencies):
        raise ValueError("give each system once, and at least one")
    if against not in seconds:
        raise ValueError(f"there is no {against!r} to compare with; choose from {', '.join(seconds)}")
    places, texts, words = list(range(len(latencies))), [], []
    for one in latencies:
        times = f", {one.seconds / seconds[against]:.2f} \u00d7" if one.system != against else ""
        measured = (one.seconds, one.fastest, one.slowest)
        median, fastest, slowest = (f"{1000 * time:,.1f} ms" for time in measured)
        texts.append(f"  {median}{times}")
        of_runs = f"of {html.counted(one.runs, 'run')}, {fastest} to {slowest}"
        words.append(f"{plain_text(one.system)}<br>median {median} {of_runs}")
    medians, fastest, slowest = (
        [round(1000 * getattr(one, name), 4) for one in latencies]
        for name in ("seconds", "fastest", "slowest")
    )
    bars = go.Bar(
        x=medians,
        y=places,
        orientation="h",
        width=0.55,
        marker={"color": [charts.faded(HUES[place % len(HUES)], 0.75) for place in places]},
        error_x=charts.interval(medians, fastest, slowest, color=TEXT, thickness=1.5, width=4),
        hovertext=words,
        hoverinfo="text",
    )
    style = {"mode": "text", "textposition": "middle right", "textfont": {"size": 12.5}}
    figure = go.Figure([bars, marks(slowest, places, text=texts, **style)])
    figure.update_xaxes(range=[0, 1.35 * max(slowest)])  # leave room for the numbers on the right
    names = [short_name(one.system) for one in latencies]
    figure.update_yaxes(charts.rows_of_an_axis(names), range=[len(latencies) - 0.4, -0.6], ticks="")
    title, x = "Time for one question", f"milliseconds for one question; \u00d7: times {plain_text(against)}"
    return lay_out(figure, title=title, x=x, height=150 + 52 * len(names), margin_t=56, showlegend=False)


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
        self.system = choices("system", options, "min(450px, 100%)", "56px")
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
