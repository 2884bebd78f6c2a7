"""Perplexities with their intervals, one row for each variant, and the training curves that led to them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from cdlm_lab.widgets.html import (
    TEXT,
    VARIANT_SYMBOLS,
    in_paper_order,
    lab_template,
    paper_order,
    variant_colours,
    variant_name,
)
from cdlm_lab.widgets.live_curve import POINTS, smoothed, smoothing_span, ticks
from cdlm_lab.widgets.perplexity_table import Perplexity, PerplexityRow, perplexity_in_words


@dataclass(frozen=True, kw_only=True)
class LossHistory:
    """The course of one training run.

    Attributes:
        steps, losses: optimiser step and training loss (nats per masked token), of equal length.
        eval_steps, eval_perplexities: the same for validation; may be empty.

    Raises:
        ValueError: lists of unequal length.
    """

    steps: Sequence[int]
    losses: Sequence[float]
    eval_steps: Sequence[int] = ()
    eval_perplexities: Sequence[float] = ()

    def __post_init__(self) -> None:
        for left, right in (("steps", "losses"), ("eval_steps", "eval_perplexities")):
            lengths = len(getattr(self, left)), len(getattr(self, right))
            if lengths[0] != lengths[1]:
                raise ValueError(
                    f"{left} has {lengths[0]} entries, {right} has {lengths[1]}: they must be equal"
                )


def perplexity_figure(
    rows: Sequence[PerplexityRow],
    *,
    title: str = "",
    paper: Mapping[str, tuple[float, float]] | None = None,
) -> go.Figure:
    """Dot and 95% interval for each variant, on a logarithmic axis; lower is better.

    A second panel with the cross-document tokens is added where any row has them.

    Args:
        rows: one for each variant; drawn in paper order from top to bottom.
        title: shown above (plain text).
        paper: published (validation, test) perplexities, drawn as faint rings in the first panel; None =
            none.

    Raises:
        ValueError: no row, or two of one variant.
    """
    ordered = in_paper_order(rows)
    panels = [("all masked tokens", {row.variant: row.all_masked for row in ordered})]
    crossing = {row.variant: row.cross_document for row in ordered if row.cross_document is not None}
    if crossing:
        panels.append(("tokens that another document states too", crossing))
    figure = make_subplots(
        rows=1,
        cols=len(panels),
        shared_yaxes=True,
        horizontal_spacing=0.06,
        subplot_titles=[name for name, _ in panels],
    )
    names = [variant_name(row.variant) for row in ordered]
    for column, (_, measured) in enumerate(panels, start=1):
        published = (paper or {}) if column == 1 else {}
        _add_panel(figure, column, measured, {v: published[v] for v in measured if v in published})
    figure.update_yaxes(
        categoryorder="array", categoryarray=names[::-1], showgrid=False, ticks="", tickfont_size=14
    )
    figure.update_yaxes(range=[-0.6, len(ordered) - 0.35])  # room for the number above the topmost dot
    figure.update_annotations(font_size=13, font_color=TEXT)
    figure.update_layout(
        template=lab_template(),
        title_text=_plain(title) or None,
        height=150 + 46 * len(ordered) + (30 if title else 0),
        margin={"l": 110, "t": 90 if title else 60, "b": 64 if not paper else 92},
        legend={"y": -0.28, "yanchor": "top"},
    )
    return figure


def _add_panel(
    figure: go.Figure,
    column: int,
    measured: Mapping[str, Perplexity],
    paper: Mapping[str, tuple[float, float]],
) -> None:
    colours = variant_colours(measured)
    for variant, perplexity in measured.items():
        figure.add_trace(_dot(variant, perplexity, colours[variant]), row=1, col=column)
    if paper:
        figure.add_trace(_published(paper), row=1, col=column)
    bounds = [b for p in measured.values() for b in (p.low, p.high) if math.isfinite(b)]
    bounds += [value for pair in paper.values() for value in pair]
    low, high = min(bounds) / 1.06, max(bounds) * 1.06
    values = logarithmic_ticks(low, high)
    figure.update_xaxes(
        type="log",
        range=[math.log10(low), math.log10(high)],
        tickvals=values,
        ticktext=[f"{value:,g}" for value in values],
        title_text="perplexity (lower is better)",
        row=1,
        col=column,
    )


def _dot(variant: str, perplexity: Perplexity, colour: str) -> go.Scatter:
    name = _plain(variant_name(variant))
    words = [perplexity_in_words(value) for value in (perplexity.value, perplexity.low, perplexity.high)]
    return go.Scatter(
        x=[perplexity.value],
        y=[variant_name(variant)],
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [perplexity.high - perplexity.value],
            "arrayminus": [perplexity.value - perplexity.low],
            "color": colour,
            "thickness": 2.5,
            "width": 0,
        },
        mode="markers+text",
        marker={"color": colour, "size": 12, "symbol": VARIANT_SYMBOLS.get(variant, "circle")},
        text=[words[0]],
        textposition="top center",
        textfont={"size": 12},
        hovertext=f"{name}: {words[0]} ({words[1]} to {words[2]}), {perplexity.tokens:,} tokens",
        hoverinfo="text",
        showlegend=False,
        cliponaxis=False,
    )


def _published(paper: Mapping[str, tuple[float, float]]) -> go.Scatter:
    points = [
        (value, variant_name(variant), split)
        for variant, pair in paper.items()
        for value, split in zip(pair, ("validation", "test"), strict=True)
    ]
    return go.Scatter(
        x=[point[0] for point in points],
        y=[point[1] for point in points],
        mode="markers",
        marker={"symbol": "line-ns-open", "size": 13, "color": TEXT, "line": {"width": 1.5}},
        opacity=0.75,
        name="the paper, on Multi-News (validation and test)",
        hovertext=[f"paper, {split}: {value:.2f}" for value, _, split in points],
        hoverinfo="text",
    )


def logarithmic_ticks(low: float, high: float) -> list[float]:
    """Round numbers in [low, high] for a logarithmic axis: 1, 2, 5 times powers of ten over a decade or more,
    evenly spaced round numbers over less.

    Raises:
        ValueError: bounds that are not positive and ascending.
    """
    if not 0 < low < high:
        raise ValueError(f"a logarithmic axis needs 0 < low < high, got {low} and {high}")
    if high / low < 10:
        return ticks(low, high, about=5)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [m * 10.0**decade for decade in decades for m in ((1, 2, 5) if high / low < 1000 else (1,))]
    return [round(value, 10) for value in values if low <= value <= high]


def loss_curves(histories: Mapping[str, LossHistory], *, title: str = "") -> go.Figure:
    """Training curves of several variants in one plot.

    Lines are the smoothed training loss; markers are validation, placed at the logarithm of the perplexity,
    which is the same scale.

    Raises:
        ValueError: no history.
    """
    if not histories:
        raise ValueError("there is no training run to show: histories is empty")
    figure = go.Figure()
    colours = variant_colours(histories)
    for variant in paper_order(histories):
        for trace in _curves(variant, histories[variant], colours[variant]):
            figure.add_trace(trace)
    figure.update_layout(
        template=lab_template(),
        title_text=_plain(title) or None,
        height=420,
        xaxis_title_text="optimiser step",
        yaxis_title_text="loss (nats per masked token)",
        hovermode="closest",
        margin_t=96 if title else 60,
    )
    return figure


def _curves(variant: str, history: LossHistory, colour: str) -> list[go.Scatter]:
    name = _plain(variant_name(variant))
    average = smoothed(history.losses, span=smoothing_span(len(history.losses)))
    chosen = np.unique(np.linspace(0, len(average) - 1, min(len(average), POINTS)).round().astype(int))
    line = go.Scatter(
        x=[int(history.steps[i]) for i in chosen],
        y=[round(float(average[i]), 4) for i in chosen],
        mode="lines",
        line={"color": colour, "width": 2.2},
        name=name,
        legendgroup=variant,
        hovertemplate=f"{name}<br>step %{{x:,}}: loss %{{y:.3f}}<extra></extra>",
    )
    points = go.Scatter(
        x=[int(step) for step in history.eval_steps],
        y=[round(math.log(p), 4) for p in history.eval_perplexities],
        customdata=list(history.eval_perplexities),
        mode="markers",
        marker={"color": colour, "size": 9, "symbol": VARIANT_SYMBOLS.get(variant, "circle")},
        name=name,
        legendgroup=variant,
        showlegend=not len(history.steps),
        hovertemplate=f"{name}<br>step %{{x:,}}: validation perplexity %{{customdata:.2f}}<extra></extra>",
    )
    return ([line] if len(history.steps) else []) + ([points] if len(history.eval_steps) else [])


def _plain(text: str) -> str:
    """Text in which plotly finds none of the tags it would draw (`<b>`, `<a href>`)."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
