"""Figures of joint reading (Di Liello et al. 2022): the two losses of pretraining, whether a model has
collapsed, and how long joint reading takes beside pairwise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from cdlm_lab.widgets.figure_parts import faded, lay_out, line_styles, plain_text, short_name
from cdlm_lab.widgets.html import HUES, TEXT
from cdlm_lab.widgets.joint_numbers import Latency, PlacedAccuracy, TaskLosses, task_losses
from cdlm_lab.widgets.pretraining_losses import pretraining_losses_figure
from cdlm_lab.widgets.score_spread import score_spread_figure

__all__ = [
    "Latency",
    "PlacedAccuracy",
    "TaskLosses",
    "accuracy_by_place_figure",
    "latency_figure",
    "pretraining_losses_figure",
    "score_spread_figure",
    "task_losses",
]


def accuracy_by_place_figure(
    systems: Mapping[str, PlacedAccuracy], *, title: str = "Accuracy by place in the sequence"
) -> go.Figure:
    """At each place, which share of the candidates a system calls as they are, a line for each system; dashed
    the accuracy of calling each candidate wrong, dotted the share of right candidates. A collapsed model has
    the dashed line, or another accuracy at each place.

    Args:
        systems: name of a system -> its accuracies, all of the same candidates at the same places.
        title: shown above (plain text).

    Raises:
        ValueError: no systems, no places, systems with other candidates, a share outside [0, 1].
    """
    if not systems:
        raise ValueError("there is nothing to show: systems is empty")
    name, first = next(iter(systems.items()))
    wrong = _shares(f"{name}: always_wrong", first.always_wrong)
    places = list(range(1, len(wrong) + 1))
    figure = go.Figure()
    for (name, system), style in zip(systems.items(), line_styles(len(systems)), strict=True):
        other = _shares(f"{name}: always_wrong", system.always_wrong)
        if len(other) != len(wrong) or not np.allclose(other, wrong, equal_nan=True):
            raise ValueError(f"{name}: its candidates are not those of {next(iter(systems))}; give the same")
        accuracy = _shares(f"{name}: accuracy", system.accuracy)
        figure.add_scatter(
            x=places,
            y=_per_cent(accuracy),
            name=short_name(name),
            hovertemplate=f"{plain_text(name)}<br>place %{{x}}: %{{y:.1f}}% right<extra></extra>",
            **style,
        )
    for label, shares, dash in (
        ("calling each wrong", wrong, "dash"),
        ("right candidates", 1 - wrong, "dot"),
    ):
        figure.add_scatter(
            x=places,
            y=_per_cent(shares),
            name=label,
            mode="lines+markers",
            line={"color": TEXT, "width": 1.6, "dash": dash},
            marker={"color": TEXT, "symbol": "line-ew-open", "size": 9},
            hovertemplate=f"place %{{x}}: {label} %{{y:.1f}}%<extra></extra>",
        )
    lay_out(figure, title=title, x="place of the candidate in the sequence", y="share of candidates (%)")
    figure.update_xaxes(tickvals=places, range=[0.7, len(places) + 0.3], showgrid=False)
    figure.update_yaxes(range=[0, 103])
    figure.update_layout(legend={"y": -0.22, "yanchor": "top"}, margin_t=56)  # it may take several lines
    return figure


def latency_figure(
    latencies: Sequence[Latency], *, against: str = "pairwise", title: str = "Time for one question"
) -> go.Figure:
    """A bar for each system up to the median of its runs, with a whisker from the fastest to the slowest, and
    how many times as long as `against` it takes.

    Args:
        latencies: one for each system, from top to bottom.
        against: name of the system with which the others are compared.
        title: shown above (plain text).

    Raises:
        ValueError: nothing to show, two of one system, none of `against`.
    """
    by_name = {one.system: one for one in latencies}
    if not by_name or len(by_name) < len(latencies):
        raise ValueError("give each system once, and at least one")
    if against not in by_name:
        raise ValueError(f"there is no {against!r} to compare with; choose from {', '.join(by_name)}")
    places = list(range(len(latencies)))
    figure = go.Figure([_bars(latencies), _times(latencies, by_name[against])])
    lay_out(
        figure, title=title, x=f"milliseconds for one question; \u00d7: times {plain_text(against)}", y=""
    )
    figure.update_yaxes(
        tickvals=places,
        ticktext=[short_name(one.system) for one in latencies],
        range=[len(latencies) - 0.4, -0.6],
        showgrid=False,
        ticks="",
    )
    room = 1.35  # for the numbers at the right
    figure.update_xaxes(range=[0, room * max(_milliseconds(one.slowest) for one in latencies)])
    figure.update_layout(showlegend=False, height=150 + 52 * len(latencies), margin_t=56)
    return figure


def _bars(latencies: Sequence[Latency]) -> go.Bar:
    return go.Bar(
        x=[_milliseconds(one.seconds) for one in latencies],
        y=list(range(len(latencies))),
        orientation="h",
        width=0.55,
        marker={"color": [faded(HUES[place % len(HUES)], 0.75) for place in range(len(latencies))]},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [_milliseconds(one.slowest - one.seconds) for one in latencies],
            "arrayminus": [_milliseconds(one.seconds - one.fastest) for one in latencies],
            "color": TEXT,
            "thickness": 1.5,
            "width": 4,
        },
        hovertext=[_latency_in_words(one) for one in latencies],
        hoverinfo="text",
    )


def _times(latencies: Sequence[Latency], against: Latency) -> go.Scatter:
    """In figures, right of each bar."""
    texts = [
        _written(one.seconds) + ("" if one is against else f", {one.seconds / against.seconds:.2f} \u00d7")
        for one in latencies
    ]
    return go.Scatter(
        x=[_milliseconds(one.slowest) for one in latencies],
        y=list(range(len(latencies))),
        mode="text",
        text=[f"  {text}" for text in texts],
        textposition="middle right",
        textfont={"size": 12.5},
        cliponaxis=False,
        hoverinfo="skip",
    )


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


def _milliseconds(seconds: float) -> float:
    return round(1000 * seconds, 4)


def _written(seconds: float) -> str:
    """0.0814 -> `81.4 ms`, 2.5 -> `2,500 ms`."""
    return f"{1000 * seconds:,.1f} ms" if seconds < 0.1 else f"{1000 * seconds:,.0f} ms"


def _latency_in_words(one: Latency) -> str:
    """What stands beside a bar on hovering."""
    runs = f"{one.runs} run{'' if one.runs == 1 else 's'}"
    between = f"{_written(one.fastest)} to {_written(one.slowest)}"
    return f"{plain_text(one.system)}<br>median {_written(one.seconds)} of {runs}, {between}"
