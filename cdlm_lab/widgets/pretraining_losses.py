"""The two losses of paragraph pretraining (Di Liello et al. 2022, section 3.4) over the steps of a run."""

from __future__ import annotations

import math

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from cdlm_lab.widgets.figure_parts import lay_out
from cdlm_lab.widgets.html import GLOBAL, MASKED, TEXT
from cdlm_lab.widgets.joint_numbers import TaskLosses
from cdlm_lab.widgets.live_curve import POINTS, smoothed, smoothing_span

_AXES = {"MLM": "nats for each masked token", "MSPP": "nats for each candidate"}


def pretraining_losses_figure(
    mlm: TaskLosses,
    mspp: TaskLosses,
    *,
    right: float | None = None,
    title: str = "The two losses of pretraining",
) -> go.Figure:
    """A panel for each loss: lines are the training loss, smoothed; diamonds are validation.

    Args:
        mlm, mspp: of masked words, and of telling which sentences are of one paragraph.
        right: share of the candidates that are of the same paragraph, in (0, 1), such as k_1 / k; a dashed
            line is then drawn where MSPP would be if that share were all that the model knew. None = none.
        title: shown above (plain text).

    Raises:
        ValueError: neither loss has numbers, `right` is no share.
    """
    if not any(len(task.steps) + len(task.eval_steps) for task in (mlm, mspp)):
        raise ValueError("there is nothing to show: neither loss has numbers")
    if right is not None and not 0 < right < 1:
        raise ValueError(f"right is {right}; the share of right candidates lies in (0, 1)")
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.09, subplot_titles=[*_AXES])
    for row, (name, task) in enumerate(zip(_AXES, (mlm, mspp), strict=True), start=1):
        for trace in _course(name, task, named=row == 1):
            figure.add_trace(trace, row=row, col=1)
    lay_out(figure, title=title, x="", y="")
    if right is not None:
        ignorant = -right * math.log(right) - (1 - right) * math.log(1 - right)
        figure.add_hline(
            y=ignorant,
            row=2,
            col=1,
            line={"color": TEXT, "width": 1.2, "dash": "dash"},
            annotation={"text": f"always guessing {right:.0%}: {ignorant:.2f}", "font": {"size": 11.5}},
            annotation_position="top right",
        )
    figure.update_annotations(font_color=TEXT)
    for row, axis in enumerate(_AXES.values(), start=1):
        figure.update_yaxes(title_text=axis, row=row, col=1)
    figure.update_xaxes(title_text="optimiser step", row=2, col=1)
    figure.update_layout(height=560, margin_t=104, legend_y=1.05)
    return figure


def _course(name: str, task: TaskLosses, *, named: bool) -> list[go.Scatter]:
    """Training and validation of one loss; `named`: True = they stand in the legend, which is of both."""
    average = smoothed(task.losses, span=smoothing_span(len(task.losses)))
    chosen = np.unique(np.linspace(0, len(average) - 1, min(len(average), POINTS)).round().astype(int))
    chosen = chosen if len(average) else []
    training = go.Scatter(
        x=[int(task.steps[i]) for i in chosen],
        y=[round(float(average[i]), 4) for i in chosen],
        mode="lines",
        line={"color": MASKED, "width": 2.2},
        name="training, smoothed",
        legendgroup="training",
        showlegend=named,
        hovertemplate=f"{name}, training<br>step %{{x:,}}: %{{y:.3f}}<extra></extra>",
    )
    validation = go.Scatter(
        x=[int(step) for step in task.eval_steps],
        y=[round(float(loss), 4) for loss in task.eval_losses],
        mode="lines+markers",
        line={"color": GLOBAL, "width": 1.4},
        marker={"color": GLOBAL, "size": 9, "symbol": "diamond"},
        name="validation",
        legendgroup="validation",
        showlegend=named,
        hovertemplate=f"{name}, validation<br>step %{{x:,}}: %{{y:.3f}}<extra></extra>",
    )
    return [training, validation]
