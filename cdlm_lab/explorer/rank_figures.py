"""Figures of percentile ranks: their distribution over pairs of mentions, and the heads that attend to
coreferring words."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from cdlm_lab.encoders.variants import variant_name
from cdlm_lab.explorer.ranks import SORTS
from cdlm_lab.views.charts import checked_array, faded, lay_out, marks, short_name, small, variant_label
from cdlm_lab.views.html import TEXT, paper_order, variant_colours
from cdlm_lab.views.score_tables import RANK_CELLS, pairs_in_words
from cdlm_lab.views.still_figure import ticks

KIND_NAMES = {"event": "events", "entity": "entities"}
PANELS_A_ROW = 3
_GRID = np.arange(101.0)  # densities are computed at the ranks 0, 1, ..., 100
# Vermilion to blue, both from Okabe and Ito; nearly transparent around zero, for light and dark pages.
_DIVERGING = ("213,94,0,1", "222,130,50,0.62", "128,128,128,0.16", "70,145,205,0.62", "20,115,195,1")


def density(ranks: np.ndarray) -> np.ndarray:
    """Estimate the density of (pairs,) percentile ranks at 0, 1, ..., 100; its integral is 1.

    A Gaussian kernel density of the ranks, rounded to integers; mass beyond the ends is mirrored back. The
    bandwidth follows Silverman's rule, `0.9 min(sd, IQR / 1.34) n^(-1/5)` (Density Estimation, 1986, eq.
    3.31), clipped to 2.5 to 12 ranks."""
    if not len(ranks):
        raise ValueError("no ranks have no density")
    lower, upper = np.percentile(ranks, [25, 75])
    spread = min(float(np.std(ranks)), float(upper - lower) / 1.34)
    width = min(max(0.9 * spread * len(ranks) ** -0.2, 2.5), 12.0)
    counts = np.bincount(np.rint(np.asarray(ranks)).astype(int), minlength=len(_GRID))
    curve = np.zeros(len(_GRID))
    for mirrored in (_GRID, -_GRID, 200 - _GRID):
        curve += np.exp(-0.5 * ((_GRID[:, None] - mirrored[None, :]) / width) ** 2) @ counts
    return curve / (curve.sum() - (curve[0] + curve[-1]) / 2)


def rank_distributions(ranks: Mapping[str, Mapping[str, np.ndarray]], *, title: str = "") -> go.Figure:
    """Plot the distribution of percentile ranks over pairs: one row per variant, one panel per kind.

    The density of pairs that corefer is above the line of a row, that of the others below. All areas are
    equal and all heights have the same scale. A tick marks each mean, whose value is on the right. `ranks`:
    variant -> name of RANK_CELLS -> (pairs,) percentile ranks of the targets, 0 to 100; missing and empty
    ones are omitted."""
    shown = {variant: _checked_ranks(variant, ranks[variant]) for variant in paper_order(ranks)}
    measured = {cell for cells in shown.values() for cell in cells}
    kinds = [kind for kind in KIND_NAMES if any(f"{sort}/{kind}" in measured for sort in SORTS)]
    if not kinds:
        raise ValueError("there are no ranks to show: every variant is empty")
    titles = [_column_title(kind, shown.values()) for kind in kinds]
    panels = {"rows": len(shown), "cols": len(kinds), "horizontal_spacing": 0.05, "vertical_spacing": 0.02}
    figure = make_subplots(**panels, shared_xaxes=True, column_titles=titles)
    curves = {(v, cell): density(values) for v, cells in shown.items() for cell, values in cells.items()}
    highest = max(float(curve.max()) for curve in curves.values())
    colours, deepest = variant_colours(shown), 0.5  # half the height leaves enough room for a number
    for (variant, cell), curve in curves.items():
        sort, _, kind = cell.partition("/")
        above = sort == "positive"
        deepest = deepest if above else max(deepest, float(curve.max()) / highest)
        whose = f"same {kind}" if above else f"different {KIND_NAMES[kind]}"
        half = _half_violin(
            shown[variant][cell],
            heights=curve / highest * (1 if above else -1),
            colour=colours[variant] if above else TEXT,
            name=f"{variant_label(variant)}, {whose}",
        )
        figure.add_traces(half, rows=list(shown).index(variant) + 1, cols=kinds.index(kind) + 1)
    upper, lower = "above the line: same event or entity", "below it: different"
    legend = {"triangle-up": upper, "triangle-down": lower, "line-ns-open": "tick and number: mean"}
    for symbol, name in legend.items():  # traces without points, for the legend
        marker = {"symbol": symbol, "size": 9, "color": TEXT}
        figure.add_scatter(x=[None], y=[None], mode="markers", marker=marker, name=name, row=1, col=1)
    _lay_out_distributions(figure, list(shown), title, deepest)
    return figure


def _checked_ranks(variant: str, cells: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    if unknown := [name for name in cells if name not in RANK_CELLS]:
        raise ValueError(f"{variant}: unknown cell {unknown[0]!r}; choose from {', '.join(RANK_CELLS)}")
    form = {"shape": "(pairs,)", "low": 0, "high": 100, "gaps": False}
    names = {cell: f"{variant}, {cell}: percentile ranks" for cell in cells}
    arrays = {cell: checked_array(names[cell], values, **form) for cell, values in cells.items()}
    return {cell: values for cell, values in arrays.items() if len(values)}


def _column_title(kind: str, variants: Collection[Mapping[str, np.ndarray]]) -> str:
    """Return the title of a panel: its kind, and below it the numbers of pairs that corefer or do not."""
    counts = []
    for sort in SORTS:
        lengths = [len(cells[f"{sort}/{kind}"]) for cells in variants if f"{sort}/{kind}" in cells]
        counts.append(f"{f'same {kind}' if sort == 'positive' else 'different'}: {pairs_in_words(lengths)}")
    return f"<b>{KIND_NAMES[kind]}</b>{small(', '.join(counts))}"


def _half_violin(ranks: np.ndarray, *, heights: np.ndarray, colour: str, name: str) -> list[go.Scatter]:
    """Return the traces of one density: its area (`heights` are negative for the lower half), the tick at the
    mean, and the mean's value on the right. `name` (plotly's markup) begins the text shown on hovering."""
    mean, side = float(ranks.mean()), 1 if heights.max() > 0 else -1
    words = f"mean {mean:.1f}, median {float(np.median(ranks)):.1f}, {pairs_in_words([len(ranks)])}"
    words, height = f"{name}<br>{words}", round(float(np.interp(mean, _GRID, heights)), 3)
    outline = {"color": colour, "width": 1.4, "simplify": False}
    ground = {"fill": "tozeroy", "fillcolor": faded(colour, 0.5 if side == 1 else 0.16), "x0": 0, "dx": 1}
    area = marks(None, [round(float(y), 3) for y in heights], words, mode="lines", line=outline, **ground)
    tick = marks([round(mean, 2)] * 2, [0, height], words, mode="lines", line={"color": colour, "width": 3})
    text = {"mode": "text", "text": [f"{mean:.1f}"], "textposition": "middle right"}
    number = marks([101.5], [0.3 * side], words, textfont={"size": 12, "color": colour}, **text)
    return [trace.update(showlegend=False) for trace in (area, tick, number)]


def _lay_out_distributions(figure: go.Figure, variants: Sequence[str], title: str, deepest: float) -> None:
    above, below, room = 96 if title else 60, 112, 78 * len(variants)
    # The axis is extended to the right to leave room for the means.
    figure.update_xaxes(range=[0, 111], tickvals=[0, 25, 50, 75, 100], showticklabels=False, ticks="")
    figure.update_xaxes(showticklabels=True, ticks="outside", title_text="percentile rank", row=len(variants))
    line = {"showgrid": False, "zeroline": True, "ticklabelstandoff": 6}
    figure.update_yaxes(range=[-deepest - 0.05, 1.05], tickvals=[], ticks="", **line)
    for row, variant in enumerate(variants, start=1):
        name = short_name(variant_name(variant))
        figure.update_yaxes(tickvals=[0], ticktext=[name], tickfont_size=14, row=row, col=1)
    figure.update_annotations(font_size=13)
    margin, legend = {"t": above, "b": below}, {"itemclick": False, "itemdoubleclick": False}
    legend |= {"y": -58 / room, "yanchor": "top"}
    lay_out(figure, title=title, height=above + room + below, margin=margin, legend=legend)


def head_maps(maps: Mapping[str, np.ndarray], *, title: str = "") -> go.Figure:
    """Plot which heads rank coreferring targets above others: a heat map per variant, with a common scale.

    `maps`: variant -> (layers, heads), mean percentile rank of targets that corefer minus that of targets
    that do not, in percentage points; NaN = not measured, drawn as a small cross."""
    form = {"shape": "(layers, heads)", "low": -100, "high": 100}
    shown = {
        variant: checked_array(f"{variant}: differences of ranks", maps[variant], **form)
        for variant in paper_order(maps)
    }
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
