"""Figures of percentile ranks: their distribution over pairs of mentions, and the heads that attend to
coreferring words."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from cdlm_lab.encoders.variants import variant_name
from cdlm_lab.explorer.ranks import SORTS
from cdlm_lab.views.charts import (
    faded,
    lay_out,
    marks,
    rows_of_an_axis,
    short_name,
    small,
    variant_label,
)
from cdlm_lab.views.html import TEXT, paper_order, variant_colours
from cdlm_lab.views.still_figure import ticks
from cdlm_lab.views.tables import NONE

COREFERRING = {"positive/event": "events that corefer", "positive/entity": "entities that corefer"}
OTHERS = {"negative/event": "other events", "negative/entity": "other entities"}
RANK_CELLS = COREFERRING | OTHERS

KIND_NAMES = {"event": "events", "entity": "entities"}
PANELS_A_ROW = 3
# Vermilion to blue, both from Okabe and Ito; nearly transparent around zero, for light and dark pages.
_DIVERGING = ("213,94,0,1", "222,130,50,0.62", "128,128,128,0.16", "70,145,205,0.62", "20,115,195,1")


def rank_distributions(ranks: Mapping[str, Mapping[str, np.ndarray]], *, title: str = "") -> go.Figure:
    """Plot the distribution of percentile ranks over pairs: one panel per kind of mention, and in it two
    boxes per variant, of the pairs that corefer and of the others. A box is from the first quartile to the
    third, its line the median, its whiskers reach from the 5th percentile to the 95th, a diamond is the mean.
    `ranks`: variant -> name of RANK_CELLS -> (pairs,) percentile ranks of the targets, 0 to 100; missing and
    empty ones are omitted."""
    shown = {
        variant: {cell: np.asarray(values) for cell, values in ranks[variant].items() if len(values)}
        for variant in paper_order(ranks)
    }
    measured = {cell for cells in shown.values() for cell in cells}
    kinds = [kind for kind in KIND_NAMES if any(f"{sort}/{kind}" in measured for sort in SORTS)]
    if not kinds:
        raise ValueError("there are no ranks to show: every variant is empty")
    titles = [_column_title(kind, shown.values()) for kind in kinds]
    panels = {"cols": len(kinds), "horizontal_spacing": 0.05, "shared_yaxes": True}
    figure, colours = make_subplots(**panels, column_titles=titles), variant_colours(shown)
    for place, (variant, cells) in enumerate(shown.items()):
        for cell, values in cells.items():
            sort, _, kind = cell.partition("/")
            is_same = sort == "positive"
            whose = f"same {kind}" if is_same else f"different {KIND_NAMES[kind]}"
            box = _box(
                values,
                at=place - 0.2 if is_same else place + 0.2,
                colour=colours[variant] if is_same else TEXT,
                name=f"{variant_label(variant)}, {whose}",
            )
            figure.add_traces(box, rows=1, cols=kinds.index(kind) + 1)
    names = [short_name(variant_name(variant)) for variant in shown]
    figure.update_xaxes(**rows_of_an_axis(names), ticks="")
    figure.update_yaxes(range=[-2, 102], tickvals=[0, 25, 50, 75, 100])
    figure.update_yaxes(title_text="percentile rank", col=1)
    figure.update_annotations(font_size=13)
    legend = {"square": "left: same event or entity", "square-open": "right: different", "diamond": "mean"}
    for symbol, text in legend.items():  # traces without points, for the legend
        marker = {"symbol": symbol, "size": 9, "color": TEXT}
        figure.add_scatter(x=[None], y=[None], mode="markers", marker=marker, name=text, row=1, col=1)
    below = {"y": -0.12, "yanchor": "top", "itemclick": False, "itemdoubleclick": False}
    return lay_out(figure, title=title, height=420, margin={"t": 96 if title else 60, "b": 84}, legend=below)


def _box(ranks: np.ndarray, *, at: float, colour: str, name: str) -> list[go.Box | go.Scatter]:
    """A box at a place of the horizontal axis, and the mean in it. `name`: markup, for hovering."""
    low, first, median, third, high = np.percentile(ranks, [5, 25, 50, 75, 95]).round(2).tolist()
    mean = float(ranks.mean())
    words = f"{name}<br>mean {mean:.1f}, median {median:.1f}, {pairs_in_words([len(ranks)])}"
    ends = {"lowerfence": [low], "q1": [first], "median": [median], "q3": [third], "upperfence": [high]}
    ground = faded(colour, 0.12 if colour == TEXT else 0.45)
    look = {"line": {"color": colour, "width": 1.4}, "fillcolor": ground, "width": 0.34}
    box = go.Box(x=[at], **ends, **look, hoverinfo="skip", showlegend=False)
    dot = {"symbol": "diamond", "size": 8, "color": colour}
    return [box, marks([at], [round(mean, 2)], words, mode="markers", marker=dot, showlegend=False)]


def _column_title(kind: str, variants: Collection[Mapping[str, np.ndarray]]) -> str:
    """Return the title of a panel: its kind, and below it the numbers of pairs that corefer or do not."""
    counts = []
    for sort in SORTS:
        lengths = [len(cells[f"{sort}/{kind}"]) for cells in variants if f"{sort}/{kind}" in cells]
        counts.append(f"{f'same {kind}' if sort == 'positive' else 'different'}: {pairs_in_words(lengths)}")
    return f"<b>{KIND_NAMES[kind]}</b>{small(', '.join(counts))}"


def head_maps(maps: Mapping[str, np.ndarray], *, title: str = "") -> go.Figure:
    """Plot which heads rank coreferring targets above others: a heat map per variant, with a common scale.

    `maps`: variant -> (layers, heads), mean percentile rank of targets that corefer minus that of targets
    that do not, in percentage points; NaN = not measured, drawn as a small cross."""
    shown = {variant: maps[variant] for variant in paper_order(maps)}
    finite = [abs(value) for values in shown.values() for value in values[np.isfinite(values)]]
    if not finite:
        raise ValueError("there are no heads to show: no difference was measured")
    columns = min(len(shown), PANELS_A_ROW)
    rows = math.ceil(len(shown) / columns)
    titles = [short_name(variant_name(variant)) for variant in shown]
    spacing = {"horizontal_spacing": 0.07, "vertical_spacing": 0.3 / rows}
    figure = make_subplots(rows=rows, cols=columns, subplot_titles=titles, **spacing)
    for place, (variant, values) in enumerate(shown.items()):
        where = {"row": place // columns + 1, "col": place % columns + 1}
        for trace in _map_traces(variant, values):
            figure.add_trace(trace, **where)
        layers, heads = values.shape
        below = "head" if place + columns >= len(shown) else None  # there is no panel below this one
        figure.update_xaxes(tickvals=_numbers(heads), range=[0.5, heads + 0.5], title_text=below, **where)
        side = "layer" if where["col"] == 1 else None
        figure.update_yaxes(tickvals=_numbers(layers), range=[0.5, layers + 0.5], title_text=side, **where)
    for update in (figure.update_xaxes, figure.update_yaxes):
        update(showgrid=False, showline=False, ticks="")
        for place in range(len(shown), rows * columns):  # the last row may have places without a panel
            update(visible=False, row=place // columns + 1, col=place % columns + 1)
    figure.update_annotations(font_size=13)
    tallest = max(values.shape[0] for values in shown.values())
    return lay_out(
        figure,
        title=title,
        height=rows * (90 + 22 * min(max(tallest, 4), 16)) + 70 + (36 if title else 0),
        margin={"t": 84 if title else 48, "b": 56},
        coloraxis=_difference_axis(max(*finite, 1.0)),
    )


def _map_traces(variant: str, values: np.ndarray) -> list[go.Heatmap | go.Scatter]:
    """Return the heat map of one variant, and crosses where nothing was measured."""
    where = f"{variant_label(variant)}<br>layer %{{y}}, head %{{x}}: "
    squares = {"x0": 1, "dx": 1, "y0": 1, "dy": 1, "xgap": 1, "ygap": 1}
    measured = go.Heatmap(
        z=[[None if math.isnan(value) else round(float(value), 2) for value in line] for line in values],
        text=[[_difference_in_words(float(value)) for value in line] for line in values],
        hovertemplate=f"{where}coreferring targets rank %{{text}}<extra></extra>",
        hoverongaps=False,
        coloraxis="coloraxis",
        **squares,
    )
    layers, heads = np.nonzero(np.isnan(values))
    if not len(layers):
        return [measured]
    cross = {"symbol": "x-thin", "size": 5, "line": {"color": TEXT, "width": 1}}
    places = {"x": (heads + 1).tolist(), "y": (layers + 1).tolist(), "showlegend": False}
    hover = f"{where}not measured<extra></extra>"
    return [measured, go.Scatter(mode="markers", marker=cross, hovertemplate=hover, **places)]


def _difference_in_words(difference: float) -> str:
    """Write a difference of ranks: 12.34 -> `12.3 points higher`, -3 -> `3.0 points lower`; NaN -> ""."""
    if math.isnan(difference):
        return ""
    size = f"{abs(difference):.1f}"
    if size == "0.0":
        return "as high as others"
    return f"{size} {'point' if size == '1.0' else 'points'} {'higher' if difference > 0 else 'lower'}"


def _difference_axis(largest: float) -> dict[str, Any]:
    values = ticks(-largest, largest, about=5)
    numbers = [f"{value:+g}".replace("-", "\u2212") if value else "0" for value in values]
    title = {"text": "points higher<br>when they<br>corefer", "side": "top", "font_size": 12}
    bar = {"title": title, "thickness": 14, "outlinewidth": 0, "tickvals": values, "ticktext": numbers}
    scale = [[place / 4, f"rgba({colour})"] for place, colour in enumerate(_DIVERGING)]
    return {"colorscale": scale, "cmin": -largest, "cmax": largest, "colorbar": bar}


def _numbers(count: int) -> list[int]:
    """Choose ticks for layers or heads, with the first and, if possible, the last: 12 -> 1, 3, 6, 9, 12."""
    step = 1 if count <= 6 else math.ceil(count / 4)
    return sorted({1, *range(step, count + 1, step)})


def pairs_in_words(counts: Iterable[int]) -> str:
    """[1000, 1000] -> `1,000 pairs`, [990, 1000] -> `990\u20131,000 pairs`, [1] -> `1 pair`."""
    ordered = [f"{count:,}" for count in sorted(set(counts))]
    if not ordered:
        return "no pairs"
    ends = ordered if len(ordered) == 1 else [ordered[0], ordered[-1]]
    return f"{NONE.join(ends)} {'pair' if ordered == ['1'] else 'pairs'}"
