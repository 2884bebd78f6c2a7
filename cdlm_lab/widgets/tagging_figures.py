"""Figures of document-attentive tagging, after those of the Doc-ARC paper (Joerke et al. 2020, section 5):
which words are entities, who tags them better, how far words attend, and how many occurrences they need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from cdlm_lab.widgets.figure_parts import (
    faded,
    lay_out,
    line_styles,
    not_empty,
    plain_text,
    short_name,
)
from cdlm_lab.widgets.html import GLOBAL, MASKED
from cdlm_lab.widgets.tagging_numbers import (
    QUANTILES,
    DistanceWeights,
    SweepPoint,
    WordGain,
    WordShare,
)
from cdlm_lab.widgets.tf_idf_figures import gain_by_tf_idf_figure, shares_by_tf_idf_figure

__all__ = [
    "QUANTILES",
    "DistanceWeights",
    "SweepPoint",
    "WordGain",
    "WordShare",
    "gain_by_tf_idf_figure",
    "shares_by_tf_idf_figure",
    "sweep_figure",
    "weights_by_distance_figure",
]

_SMALL = "font-size:11px"


def weights_by_distance_figure(
    weights: Sequence[DistanceWeights], *, title: str = "Attention weight of occurrences, by distance"
) -> go.Figure:
    """Figure 4: attention weights by distance. A box reaches from the 25th to the 75th percentile with a line
    at the median, its whiskers from the 5th to the 95th; a diamond is the mean. There are no single weights.

    Args:
        weights: one for each distance, in the order to be drawn.
        title: shown above (plain text).

    Raises:
        ValueError: nothing to show.
    """
    filled = {place: one for place, one in enumerate(weights) if one.count}
    if not filled:
        raise ValueError("there is nothing to show: weights is empty")
    figure = go.Figure([_boxes(filled), _means(filled)])
    lay_out(figure, title=title, x="distance in sentences, and number of occurrences", y="attention weight")
    labels = [
        f'{plain_text(one.bucket)}<br><span style="{_SMALL}">n = {one.count:,}</span>' for one in weights
    ]
    figure.update_xaxes(
        tickvals=list(range(len(weights))),
        ticktext=labels,
        range=[-0.6, len(weights) - 0.4],
        showgrid=False,
    )
    highest = max(max(one.mean, one.quantiles[-1]) for one in filled.values())
    figure.update_yaxes(range=[0, 1.04 * max(highest, 0.01)])
    figure.update_layout(hovermode="x")
    return figure


def _boxes(weights: Mapping[int, DistanceWeights]) -> go.Box:
    """Boxes by their places; plotly is given quantiles and no weights."""
    names = ("lowerfence", "q1", "median", "q3", "upperfence")
    return go.Box(
        x=list(weights),
        **{
            name: [round(one.quantiles[number], 5) for one in weights.values()]
            for number, name in enumerate(names)
        },
        line={"color": GLOBAL, "width": 1.6},
        fillcolor=faded(GLOBAL, 0.3),
        width=0.55,
        name="median, middle 50% and middle 90% of the weights",
        hoverinfo="skip",
    )


def _means(weights: Mapping[int, DistanceWeights]) -> go.Scatter:
    """A diamond for each box, which on hovering says all its numbers."""
    return go.Scatter(
        x=list(weights),
        y=[round(one.mean, 5) for one in weights.values()],
        mode="markers",
        marker={"symbol": "diamond", "size": 9, "color": MASKED},
        name="mean",
        hovertext=[_weights_in_words(one) for one in weights.values()],
        hoverinfo="text",
    )


def sweep_figure(
    sweeps: Mapping[str, Sequence[SweepPoint]], *, title: str = "F1 by the number of occurrences attended to"
) -> go.Figure:
    """Figure 5: mean F1 on development documents over K, with a band of one deviation on either side; the
    best K of each line has its number written.

    Args:
        sweeps: name of a corpus or system -> its points.
        title: shown above (plain text).

    Raises:
        ValueError: nothing to show, or two points of one K.
    """
    shown = not_empty(sweeps, "sweeps")
    figure = go.Figure()
    for (name, points), style in zip(shown.items(), line_styles(len(shown)), strict=True):
        ordered = sorted(points, key=lambda point: point.k)
        if len({point.k for point in ordered}) < len(ordered):
            raise ValueError(f"{name}: two points of one K; give each once")
        band = _band(name, ordered, style["line"]["color"])
        figure.add_traces([*([band] if band else []), _sweep_line(name, ordered, style)])
    lay_out(
        figure, title=title, x="K: occurrences that a word may attend to", y="F1 on development documents (%)"
    )
    widths = sorted({point.k for points in shown.values() for point in points})
    figure.update_xaxes(tickvals=widths, showgrid=False)
    return figure


def _band(name: str, points: Sequence[SweepPoint], colour: str) -> go.Scatter | None:
    """The area of one deviation on either side of a line; None = there are no two deviations."""
    known = [(point.k, point.f1, point.deviation) for point in points if point.deviation is not None]
    if len(known) < 2:
        return None
    above = [(k, f1 + deviation) for k, f1, deviation in known]
    below = [(k, f1 - deviation) for k, f1, deviation in reversed(known)]
    return go.Scatter(
        x=[k for k, _ in above + below],
        y=[round(100 * f1, 3) for _, f1 in above + below],
        mode="lines",
        line={"width": 0},
        fill="toself",
        fillcolor=faded(colour, 0.18),
        hoverinfo="skip",
        legendgroup=name,
        showlegend=False,
    )


def _sweep_line(name: str, points: Sequence[SweepPoint], style: Mapping[str, Any]) -> go.Scatter:
    best = max(points, key=lambda point: point.f1)
    return go.Scatter(
        x=[point.k for point in points],
        y=[round(100 * point.f1, 3) for point in points],
        text=[f"{100 * point.f1:.1f}" if point is best else "" for point in points],
        textposition="top center",
        hovertext=[f"{plain_text(name)}<br>{_point_in_words(point)}" for point in points],
        hoverinfo="text",
        name=f"{short_name(name)} ({_seeds_in_words(points)})",
        legendgroup=name,
        cliponaxis=False,
        **(dict(style) | {"mode": "lines+markers+text"}),
    )


def _point_in_words(point: SweepPoint) -> str:
    spread = "" if point.deviation is None else f" \u00b1 {100 * point.deviation:.1f}"
    seeds = f"{point.seeds} seed{'' if point.seeds == 1 else 's'}"
    return f"K = {point.k}: F1 {100 * point.f1:.1f}{spread}, {seeds}"


def _seeds_in_words(points: Sequence[SweepPoint]) -> str:
    fewest, most = min(point.seeds for point in points), max(point.seeds for point in points)
    return f"n = {fewest if fewest == most else f'{fewest} to {most}'} seed{'' if most == 1 else 's'}"


def _weights_in_words(one: DistanceWeights) -> str:
    """What stands beside a box on hovering."""
    named = zip(QUANTILES, one.quantiles, strict=True)
    below = ", ".join(f"{at}%: {weight:.3f}" for at, weight in named)
    return f"distance {plain_text(one.bucket)}, n = {one.count:,}<br>mean {one.mean:.3f}<br>{below}"
