"""How well each system finds the true sentences, as bars: after Figure 3 of the CDA paper."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

import plotly.graph_objects as go

from cdlm_lab.widgets.alignment_table import RANDOM, AlignmentRow, mrr_in_words
from cdlm_lab.widgets.html import CROSS, GLOBAL, MASKED, OTHER_COLOURS, TEXT, escaped, lab_template, visible
from cdlm_lab.widgets.matching_table import check_distinct

_COLOURS = (GLOBAL, MASKED, CROSS, *OTHER_COLOURS)
_LINE = 14  # characters of a name side by side
_PATTERNS = ("", "/", ".", "x")  # so that bars are told apart without their hue


def alignment_figure(rows: Sequence[AlignmentRow], *, title: str = "") -> go.Figure:
    """The MRR of each system as a group of bars, one for each way of ranking, with 95% intervals.

    Args:
        rows: in the order of the groups. Those of the system `random` become a dashed line.
        title: shown above (plain text).

    Raises:
        ValueError: no bars, two rows of one system and `by`, a row without MRR.
    """
    check_distinct([row.name for row in rows])
    if without := [row.name for row in rows if "mrr" not in row.values]:
        raise ValueError(f"{without[0]} has no mrr; leave the row out")
    bars = [row for row in rows if row.system != RANDOM]
    if not bars:
        raise ValueError("there is no system to show: all rows are random")
    systems = list(dict.fromkeys(row.system for row in bars))
    places, width = _places(bars, systems)
    figure = go.Figure()
    for number, by in enumerate(dict.fromkeys(row.by for row in bars)):
        shown = [row for row in bars if row.by == by]
        figure.add_trace(_bars(shown, [places[row.name] for row in shown], width=width, number=number))
    for row in rows:
        if row.system == RANDOM:
            figure.add_trace(_chance(row, len(systems)))
    labels = {row.system: _label(row.label) for row in reversed(bars)}
    figure.update_xaxes(
        tickvals=list(range(len(systems))),
        ticktext=[labels[system] for system in systems],
        range=[-0.55, len(systems) - 0.45],
        showgrid=False,
        ticks="",
        tickfont_size=13,
    )
    figure.update_yaxes(range=[0, 1], title_text="MRR, documents known to be related")
    figure.update_layout(
        template=lab_template(),
        title_text=escaped(title) or None,
        height=420,
        barmode="overlay",  # places are given, so that a system with fewer bars has them in the middle
        margin_t=96 if title else 60,
    )
    return figure


def _label(name: str) -> str:
    """A system's name in short lines, so that it need not be turned."""
    return "<br>".join(escaped(line) for line in wrap(visible(name), _LINE))


def _places(rows: Sequence[AlignmentRow], systems: Sequence[str]) -> tuple[dict[str, float], float]:
    """Where the middle of each bar is, by the name of its row, and the width that all have."""
    groups = [[row.name for row in rows if row.system == system] for system in systems]
    width = 0.7 / max(map(len, groups))
    return {
        name: place + (number - (len(group) - 1) / 2) * width
        for place, group in enumerate(groups)
        for number, name in enumerate(group)
    }, width


def _bars(rows: Sequence[AlignmentRow], places: Sequence[float], *, width: float, number: int) -> go.Bar:
    """The bars of one way of ranking; `number` of it chooses colour and pattern."""
    values = [row.values["mrr"] for row in rows]
    bounds = [row.intervals.get("mrr", (value, value)) for row, value in zip(rows, values, strict=True)]
    return go.Bar(
        x=list(places),
        y=values,
        width=0.92 * width,
        name=escaped(rows[0].by) or "all",
        marker={
            "color": _COLOURS[number % len(_COLOURS)],
            "opacity": 0.7,  # so that the lower end of an interval is seen
            "pattern": {
                "shape": _PATTERNS[number % len(_PATTERNS)],
                "fillmode": "overlay",
                "fgcolor": "white",
                "solidity": 0.15,
                "size": 7,
            },
        },
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [high - value for value, (_, high) in zip(values, bounds, strict=True)],
            "arrayminus": [value - low for value, (low, _) in zip(values, bounds, strict=True)],
            "color": TEXT,
            "thickness": 2,
            "width": 5,
        },
        hovertext=[_in_words(row) for row in rows],
        hoverinfo="text",
    )


def _in_words(row: AlignmentRow) -> str:
    """`GRU-HAN, attention: MRR 0.5430 (0.5200 to 0.5600)`."""
    name = f"{row.label}, {row.by}" if row.by else row.label
    interval = ""
    if "mrr" in row.intervals:
        interval = " ({} to {})".format(*map(mrr_in_words, row.intervals["mrr"]))
    return escaped(f"{name}: MRR {mrr_in_words(row.values['mrr'])}{interval}")


def _chance(row: AlignmentRow, systems: int) -> go.Scatter:
    return go.Scatter(
        x=[-0.55, systems - 0.45],
        y=[row.values["mrr"]] * 2,
        mode="lines",
        line={"color": TEXT, "width": 2, "dash": "dash"},
        name=escaped(row.label),
        hovertext=_in_words(row),
        hoverinfo="text",
    )
