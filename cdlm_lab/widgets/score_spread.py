"""How far the scores of a model lie apart within groups of candidates: whether it has collapsed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from cdlm_lab.widgets.figure_parts import faded, lay_out, not_empty, short_name
from cdlm_lab.widgets.html import HUES

BINS = 40
HIGHEST = 0.85  # part of a row that an area fills
_SMALL = "font-size:11px"


def score_spread_figure(
    spreads: Mapping[str, Sequence[float]], *, title: str = "How far scores lie apart within a group"
) -> go.Figure:
    """The distribution of the spread of scores over groups, a row for each system: an area as high as its
    fullest bin, and a line at the median. Near 0 a system says the same of all candidates of a group.

    Args:
        spreads: name of a system -> of each group the standard deviation of its log-odds; from top to bottom.
        title: shown above (plain text).

    Raises:
        ValueError: nothing to show, a spread that is negative or not finite.
    """
    shown = {name: np.asarray(values, dtype=float) for name, values in not_empty(spreads, "spreads").items()}
    for name, values in shown.items():
        if wrong := [value for value in values.tolist() if not 0 <= value < math.inf]:
            raise ValueError(f"{name}: a spread is {wrong[0]}; it must be finite and not negative")
    widest = max(float(values.max()) for values in shown.values()) or 1.0
    edges = np.linspace(0, widest, BINS + 1)
    figure = go.Figure()
    bases = list(range(len(shown)))[::-1]
    for place, (base, values) in enumerate(zip(bases, shown.values(), strict=True)):
        figure.add_traces(_ridge(values, edges, base=base, colour=HUES[place % len(HUES)]))
    lay_out(figure, title=title, x="standard deviation of log-odds within a group", y="")
    figure.update_xaxes(range=[-0.01 * widest, 1.02 * widest])
    figure.update_yaxes(
        tickvals=[base + HIGHEST / 2 for base in bases],
        ticktext=[_spread_label(name, values) for name, values in shown.items()],
        range=[-0.15, len(shown)],
        ticks="",
        showgrid=False,
    )
    figure.update_layout(showlegend=False, height=150 + 84 * len(shown), margin_t=56)
    return figure


def _ridge(values: np.ndarray, edges: np.ndarray, *, base: int, colour: str) -> list[go.Scatter]:
    """The ground line of a row, the area above it, and the line at the median."""
    share = np.histogram(values, bins=edges)[0] / len(values)
    median = float(np.median(values))
    common = {"mode": "lines", "showlegend": False}
    ground = go.Scatter(
        x=[0, float(edges[-1])],
        y=[base, base],
        line={"color": colour, "width": 0},
        hoverinfo="skip",
        **common,
    )
    heights = base + HIGHEST * np.repeat(share / share.max(), 2)
    area = go.Scatter(
        x=np.round(np.repeat(edges, 2), 6).tolist(),
        y=[base, *np.round(heights, 4).tolist(), base],
        line={"color": colour, "width": 1.8},
        fill="tonexty",
        fillcolor=faded(colour, 0.3),
        text=[f"{100 * one:.1f}% of the groups" for one in (0, *np.repeat(share, 2), 0)],
        hovertemplate="%{x:.3g}: %{text}<extra></extra>",
        **common,
    )
    tick = go.Scatter(
        x=[round(median, 6)] * 2,
        y=[base, base + HIGHEST],
        line={"color": colour, "width": 2, "dash": "dot"},
        hovertext=f"median {median:.3g}",
        hoverinfo="text",
        **common,
    )
    return [ground, area, tick]


def _spread_label(name: str, values: np.ndarray) -> str:
    counted = f"{len(values):,} group{'' if len(values) == 1 else 's'}"
    return f'{short_name(name)}<br><span style="{_SMALL}">median {np.median(values):.3g}, {counted}</span>'
