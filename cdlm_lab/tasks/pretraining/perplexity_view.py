"""The figure of the variants' perplexities."""

from __future__ import annotations

import math
from collections.abc import Iterable

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from cdlm_lab.runs.scores import Score
from cdlm_lab.views import html
from cdlm_lab.views.charts import interval, lay_out, logarithmic_ticks, marks, variant_label
from cdlm_lab.views.html import paper_order, variant_colours
from cdlm_lab.views.tables import PERPLEXITY


def perplexity_figure(scores: Iterable[Score], *, title: str = "") -> go.Figure:
    """Plot perplexity (lower is better) and 95% interval per variant, in the paper's order, on a log axis.

    A second panel with the perplexity of cross-document tokens is added if any variant has it. `scores`: rows
    of a report. Raises ValueError if no row is a perplexity.
    """
    named = {(score.metric, score.system): score for score in scores}
    ordered = paper_order(system for metric, system in named if metric == "perplexity")
    if not ordered:
        raise ValueError("there is no variant to show: no row is a perplexity")
    panels = {"all masked tokens": [named["perplexity", variant] for variant in ordered]}
    metric = "cross_document_perplexity"
    if crossing := [named[metric, variant] for variant in ordered if (metric, variant) in named]:
        panels["tokens that another document states too"] = crossing
    figure = make_subplots(
        rows=1, cols=len(panels), shared_yaxes=True, horizontal_spacing=0.06, subplot_titles=list(panels)
    )
    colours = variant_colours(ordered)
    for column, measured in enumerate(panels.values(), start=1):
        for score in measured:
            figure.add_trace(_dot(score, colours[score.system]), row=1, col=column)
        bounds = [bound for one in measured for bound in (one.low, one.value, one.high)]
        bounds = [bound for bound in bounds if bound is not None and math.isfinite(bound)]
        low, high = min(bounds) / 1.06, max(bounds) * 1.06
        numbers = logarithmic_ticks(low, high)
        figure.update_xaxes(
            type="log",
            range=[math.log10(low), math.log10(high)],
            tickvals=numbers,
            ticktext=[f"{value:,g}" for value in numbers],
            row=1,
            col=column,
        )
    names = [variant_label(variant) for variant in ordered][::-1]
    # Leave room for the number above the topmost dot.
    ends = [-0.6, len(ordered) - 0.35]
    figure.update_yaxes(categoryorder="array", categoryarray=names, range=ends, showgrid=False, ticks="")
    figure.update_yaxes(tickfont_size=14)
    figure.update_annotations(font_size=13)
    height, margin = 150 + 46 * len(ordered) + (30 if title else 0), {"l": 110, "t": 90 if title else 60}
    return lay_out(figure, title=title, x="perplexity (lower is better)", height=height, margin=margin)


def _dot(score: Score, colour: str) -> go.Scatter:
    value, name = score.value, variant_label(score.system)
    low, high = (value, value) if score.low is None else (score.low, score.high)
    number, lowest, highest = (PERPLEXITY.write([bound])[0] for bound in (value, low, high))
    return marks(
        [value],
        [name],
        f"{name}: {number} ({lowest} to {highest}), {score.n or 0:,} tokens",
        error_x=interval([value], [low], [high], color=colour),
        mode="markers+text",
        marker={"color": colour, "size": 12, "symbol": html.VARIANT_SYMBOLS.get(score.system, "circle")},
        text=[number],
        textposition="top center",
        showlegend=False,
    )
