"""Which sentences of a document a matcher takes to be about another one, as in Figure 4 of the CDA paper
(Zhou et al. 2020, appendix A.6).

The sentences stand one below the other; a number, a bar and the depth of a blue ground are the weight of
each."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from textwrap import wrap

import plotly.graph_objects as go

from cdlm_lab.widgets.charts import interval, lay_out, plain_text
from cdlm_lab.widgets.html import (
    CROSS,
    GLOBAL,
    MASKED,
    MUTED,
    OTHER_COLOURS,
    SMALL,
    TEXT,
    blue_ground,
    check_between,
    escaped,
    fold,
    muted,
    share_bar,
    table_html,
    view_html,
    visible,
)
from cdlm_lab.widgets.tables import SystemRow

TRUE, RANDOM = "the true sentence", "random"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedColumn:
    """What one system gives the sentences."""

    name: str  # what to call the system
    # One for each sentence, finite; the largest is drawn deepest, what is not above 0 without ground. Weights
    # that add up to 1 are written in per cent.
    weights: Sequence[float]
    decision: float | None = None  # probability that the documents are related; None = not shown

    def __post_init__(self) -> None:
        if wrong := [place for place, weight in enumerate(self.weights) if not math.isfinite(weight)]:
            what = f"the weight of sentence {wrong[0]} is {self.weights[wrong[0]]}"
            raise ValueError(f"{self.name}: {what}; it must be finite")
        if self.decision is not None:
            check_between(f"{self.name}: the probability that the documents are related", self.decision)

    def cells(self, *, ground: bool) -> list[str]:
        """The weight of each sentence as number and bar, on blue ground if wanted."""
        in_per_cent = math.isclose(sum(self.weights), 1, abs_tol=1e-3) and min(self.weights) >= 0
        cells = []
        for weight, strength in zip(self.weights, self.strengths, strict=True):
            text = f"{100 * weight:.1f}%" if in_per_cent else f"{weight:.3f}".replace("-", "\u2212")
            box = f"width:64px;margin-left:auto{_ground(strength) if ground else ''}"
            cells.append(f'<div style="{box}">{share_bar(strength, text, width=64)}</div>')
        return cells

    @property
    def strengths(self) -> list[float]:
        """Each weight as a share of the largest, in [0, 1]; all 0 if none is above 0."""
        largest = max(self.weights, default=0.0)
        return [max(weight, 0.0) / largest if largest > 0 else 0.0 for weight in self.weights]


def compared_alignments_html(
    columns: Sequence[AlignedColumn],
    sentences: Sequence[str],
    gold: Collection[int] = (),
    *,
    title: str,
    other_title: str,
    other_sentences: Sequence[str] = (),
) -> str:
    """A row for each sentence of a document: the weight that each system gives it, on a scale of its own, and
    its text. With one system the text stands on the blue of the weight, with several each weight does.

    Args:
        columns: the systems.
        sentences: of the first document (untrusted, as all texts).
        gold: numbers of the true sentences, from 0; () = none, or not known.
        title, other_title: of the first and of the second document.
        other_sentences: of the second document, folded below; () = not shown.
    """
    _check(sentences, columns, gold)
    alone = len(columns) == 1
    heads = ["weight"] if alone else [_head(column) for column in columns]
    cells = [column.cells(ground=not alone) for column in columns]
    grounds = columns[0].strengths if alone else [0.0] * len(sentences)
    rows = [
        [_number(place), *(of_system[place] for of_system in cells), _sentence(text, ground, place in gold)]
        for place, (text, ground) in enumerate(zip(sentences, grounds, strict=True))
    ]
    parts = [_titles(title, other_title)]
    if alone and columns[0].decision is not None:
        probability = f"<b>{100 * columns[0].decision:.1f}%</b>"
        parts.append(f"<div>probability that they are related: {probability}</div>")
    parts.append(table_html(["", *heads, ""], rows, text_columns=(len(columns) + 1,)))
    if other_sentences:
        box = '<div style="margin:3px 0;line-height:1.5;overflow-wrap:anywhere;max-width:980px" dir="auto">'
        text = "".join(f"{box}{_number(i)}&ensp;{escaped(s)}</div>" for i, s in enumerate(other_sentences))
        parts.append(fold(f"the other document: <bdi>{escaped(other_title)}</bdi>", text))
    meaning = "Number, bar and depth of blue: weight of the sentence; the bar is full at the largest."
    parts.append(muted(f"{meaning} <b>*</b>: {TRUE}." if gold else meaning))
    return view_html("aligned", "".join(parts), width=1100)


def _check(sentences: Sequence[str], columns: Sequence[AlignedColumn], gold: Collection[int]) -> None:
    if not columns:
        raise ValueError("there is no system to compare: columns is empty")
    if not sentences:
        raise ValueError("there are no sentences to show")
    for column in columns:
        if len(column.weights) != len(sentences):
            counts = f"{len(column.weights)} weights for {len(sentences)} sentences"
            raise ValueError(f"{column.name}: {counts}; give one for each")
    if outside := [number for number in gold if not 0 <= number < len(sentences)]:
        what = f"true sentence {outside[0]} is none of the {len(sentences)}"
        raise ValueError(f"{what}; sentences are numbered from 0")


def _number(place: int) -> str:
    """The number of a sentence as people count."""
    return f'<span style="{SMALL}">{place + 1}</span>'


def _ground(strength: float) -> str:
    return f";border-radius:3px;padding:2px 6px 3px;{blue_ground(strength)}"


def _sentence(sentence: str, strength: float, true: bool) -> str:
    """A sentence on its ground; a true one has a line before it, an asterisk and words behind it."""
    line = f"border-left:3px solid {CROSS if true else 'transparent'};padding-left:8px"
    words = f'<span style="{SMALL}">{TRUE}</span>'
    sign = f' <span style="white-space:nowrap"><b>*</b> {words}</span>' if true else ""
    box = f"line-height:1.5;overflow-wrap:anywhere;max-width:880px{_ground(strength)}"
    return f'<div style="{line}"><div style="{box}" dir="auto">{escaped(sentence)}{sign}</div></div>'


def _head(column: AlignedColumn) -> str:
    """The name of a system, and below it its decision."""
    name, below = f'<bdi style="overflow-wrap:anywhere">{escaped(column.name)}</bdi>', ""
    if column.decision is not None:
        probability = f"related: {100 * column.decision:.1f}%"
        below = f'<div style="font-size:11px;font-weight:400;{MUTED}">{probability}</div>'
    return f'<div style="max-width:96px;margin-left:auto">{name}{below}</div>'


def _titles(*titles: str) -> str:
    between = f' <span style="{MUTED}">compared with</span> '
    names = between.join(f'<bdi style="font-weight:600">{escaped(title)}</bdi>' for title in titles)
    return f"<div>{names}</div>"


_COLOURS = (GLOBAL, MASKED, CROSS, *OTHER_COLOURS)
_LINE = 14  # characters of a name side by side
_PATTERNS = ("", "/", ".", "x")  # so that bars are told apart without their hue


def alignment_figure(rows: Sequence[SystemRow], *, title: str = "") -> go.Figure:
    """The MRR of each system as a group of bars, one for each way of ranking, with 95% intervals; the groups
    stand in the order of the rows, and those of the system `random` become a dashed line.

    Args:
        rows: of systems and ways of ranking, `gru-han/cosine`, with labels of the systems alone.

    Raises:
        ValueError: no system, or one without MRR.
    """
    bars = _checked_bars(rows)
    groups: dict[str, list[SystemRow]] = {}
    for row in bars:
        groups.setdefault(row.system.partition("/")[0], []).append(row)
    width = 0.7 / max(map(len, groups.values()))
    places = {
        row.system: place + (number - (len(group) - 1) / 2) * width
        for place, group in enumerate(groups.values())
        for number, row in enumerate(group)
    }
    figure = go.Figure()
    for number, by in enumerate(dict.fromkeys(_way(row) for row in bars)):
        shown = [row for row in bars if _way(row) == by]
        figure.add_trace(
            _bars(shown, [places[row.system] for row in shown], width=0.92 * width, number=number)
        )
    ends = [-0.55, len(groups) - 0.45]
    for row in rows:
        if row.system == RANDOM:
            line = {"color": TEXT, "width": 2, "dash": "dash"}
            words = {"name": plain_text(row.label), "hovertext": _in_words(row), "hoverinfo": "text"}
            figure.add_scatter(x=ends, y=[row.scores["mrr"].value] * 2, mode="lines", line=line, **words)
    labels = [wrap(visible(group[0].label), _LINE) for group in groups.values()]  # short, so never turned
    figure.update_xaxes(
        tickvals=list(range(len(groups))),
        ticktext=["<br>".join(map(plain_text, lines)) for lines in labels],
        range=ends,
        showgrid=False,
        ticks="",
        tickfont_size=13,
    )
    figure.update_yaxes(range=[0, 1], title_text="MRR, documents known to be related")
    # Places are given, so that a system with fewer bars has them in the middle.
    lay_out(figure, title=title, barmode="overlay", margin_t=96 if title else 60)
    return figure


def _checked_bars(rows: Sequence[SystemRow]) -> list[SystemRow]:
    """Those that are bars."""
    names = [row.system for row in rows]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two rows of {repeated[0]}; give each system once")
    if without := [row.system for row in rows if "mrr" not in row.scores]:
        raise ValueError(f"{without[0]} has no mrr; leave the row out")
    bars = [row for row in rows if row.system != RANDOM]
    if not bars:
        what = "all rows are random" if rows else "rows is empty"
        raise ValueError(f"there is no system to show: {what}")
    return bars


def _way(row: SystemRow) -> str:
    return row.system.partition("/")[2]


def _bars(rows: Sequence[SystemRow], places: Sequence[float], *, width: float, number: int) -> go.Bar:
    """The bars of one way of ranking; `number` of it chooses colour and pattern."""
    values = [row.scores["mrr"].value for row in rows]
    scores = [row.scores["mrr"] for row in rows]
    lows = [score.value if score.low is None else score.low for score in scores]
    highs = [score.value if score.high is None else score.high for score in scores]
    shape = _PATTERNS[number % len(_PATTERNS)]
    return go.Bar(
        x=list(places),
        y=values,
        width=width,
        name=plain_text(_way(rows[0])) or "all",
        marker={
            "color": _COLOURS[number % len(_COLOURS)],
            "opacity": 0.7,  # so that the lower end of an interval is seen
            "pattern": {
                "shape": shape,
                "fillmode": "overlay",
                "fgcolor": "white",
                "solidity": 0.15,
                "size": 7,
            },
        },
        error_y=interval(values, lows, highs, color=TEXT, thickness=2, width=5),
        hovertext=[_in_words(row) for row in rows],
        hoverinfo="text",
    )


def _in_words(row: SystemRow) -> str:
    """`GRU-HAN, attention: MRR 0.5430 (0.5200 to 0.5600)`."""
    name, score = ", ".join(filter(None, (row.label, _way(row)))), row.scores["mrr"]
    bounds = "" if score.low is None else f" ({score.low:.4f} to {score.high:.4f})"
    return plain_text(f"{name}: MRR {score.value:.4f}{bounds}")
