"""Figures of the ranks that attention gives: how they spread over pairs, and which heads set pairs apart."""

from __future__ import annotations

import html
import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from cdlm_lab.widgets.html import (
    TEXT,
    lab_template,
    paper_order,
    shortened,
    variant_colours,
    variant_name,
    visible,
)
from cdlm_lab.widgets.live_curve import ticks
from cdlm_lab.widgets.rank_density import RIGHT_END, density, half_violin
from cdlm_lab.widgets.rank_table import KIND_NAMES, KINDS, SORTS, check_cell_names, pairs_in_words

PANELS_A_ROW = 3
_LONGEST_LABEL = 24
_COUNTS = "font-size:11px;font-weight:normal"
# Vermilion to blue, both from Okabe and Ito; around zero the ground shows through, be it light or dark.
_DIVERGING = (
    (0.0, "rgba(213,94,0,1)"),
    (0.25, "rgba(222,130,50,0.62)"),
    (0.5, "rgba(128,128,128,0.16)"),
    (0.75, "rgba(70,145,205,0.62)"),
    (1.0, "rgba(20,115,195,1)"),
)


def rank_distributions(ranks: Mapping[str, Mapping[str, np.ndarray]], *, title: str = "") -> go.Figure:
    """How percentile ranks spread over pairs: a row for each variant, a panel for each kind.

    Above the line of a row stand the pairs that corefer, below it those that do not. All areas are equal, and
    one scale of heights holds for the whole figure. A tick marks each mean, which is written at the right.

    Args:
        ranks: variant -> `positive/event`, `positive/entity`, `negative/event`, `negative/entity` -> (pairs,)
            percentile ranks of the targets, 0 to 100. Missing and empty ones are left out.
        title: shown above (plain text).

    Raises:
        ValueError: nothing to show, an unknown cell, ranks that are no vector or lie outside 0 to 100.
    """
    shown = {variant: _checked_ranks(variant, ranks[variant]) for variant in paper_order(ranks)}
    kinds = [k for k in KINDS if any(f"{sort}/{k}" in cells for cells in shown.values() for sort in SORTS)]
    if not kinds:
        raise ValueError("there are no ranks to show: every variant is empty")
    figure = make_subplots(
        rows=len(shown),
        cols=len(kinds),
        shared_xaxes=True,
        horizontal_spacing=0.05,
        vertical_spacing=0.02,
        column_titles=[_column_title(kind, shown.values()) for kind in kinds],
    )
    curves = {(v, cell): density(values) for v, cells in shown.items() for cell, values in cells.items()}
    highest = max(float(curve.max()) for curve in curves.values())
    colours, deepest = variant_colours(shown), 0.5  # half the height is room enough for a number
    for (variant, cell), curve in curves.items():
        sort, _, kind = cell.partition("/")
        row, column = list(shown).index(variant) + 1, kinds.index(kind) + 1
        above = sort == "positive"
        deepest = deepest if above else max(deepest, float(curve.max()) / highest)
        half = half_violin(
            shown[variant][cell],
            heights=curve / highest * (1 if above else -1),
            colour=colours[variant] if above else TEXT,
            name=f"{_plain(variant_name(variant))}, {_sort_in_words(sort, kind)}",
        )
        figure.add_traces(half, rows=row, cols=column)
    for trace in _legend():
        figure.add_trace(trace, row=1, col=1)
    _lay_out_distributions(figure, list(shown), title, deepest)
    return figure


def head_maps(maps: Mapping[str, np.ndarray], *, title: str = "") -> go.Figure:
    """Which heads rank coreferring targets higher than others: a panel for each variant, one scale for all.

    Args:
        maps: variant -> (layers, heads) mean rank of the targets that corefer minus that of those that do
            not, in percentage points. NaN = not measured, drawn as a small cross.
        title: shown above (plain text).

    Raises:
        ValueError: nothing to show, an array that is not (layers, heads), differences outside -100 to 100.
    """
    shown = {variant: _checked_map(variant, maps[variant]) for variant in paper_order(maps)}
    finite = [abs(value) for values in shown.values() for value in values[np.isfinite(values)]]
    if not finite:
        raise ValueError("there are no heads to show: no difference was measured")
    columns = min(len(shown), PANELS_A_ROW)
    rows = math.ceil(len(shown) / columns)
    figure = make_subplots(
        rows=rows,
        cols=columns,
        horizontal_spacing=0.07,
        vertical_spacing=0.3 / rows,
        subplot_titles=[_label(variant) for variant in shown],
    )
    for place, (variant, values) in enumerate(shown.items()):
        row, column = place // columns + 1, place % columns + 1
        for trace in _map_traces(variant, values):
            figure.add_trace(trace, row=row, col=column)
        layers, heads = values.shape
        below = place + columns >= len(shown)  # no panel stands under this one
        figure.update_xaxes(
            tickvals=_ticks(heads),
            range=[0.5, heads + 0.5],
            title_text="head" if below else None,
            row=row,
            col=column,
        )
        figure.update_yaxes(
            tickvals=_ticks(layers),
            range=[0.5, layers + 0.5],
            title_text="layer" if column == 1 else None,
            row=row,
            col=column,
        )
    tallest = max(values.shape[0] for values in shown.values())
    _lay_out_maps(figure, max(*finite, 1.0), title, rows * (90 + 22 * min(max(tallest, 4), 16)))
    return figure


def _checked_ranks(variant: str, cells: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    check_cell_names(variant, cells)
    arrays = {cell: np.asarray(values, dtype=float) for cell, values in cells.items()}
    for cell, values in arrays.items():
        if values.ndim != 1:
            raise ValueError(f"{variant}, {cell}: ranks must have shape (pairs,), got {values.shape}")
        if wrong := values[~((values >= 0) & (values <= 100))].tolist():
            raise ValueError(f"{variant}, {cell}: percentile ranks lie in [0, 100], got {wrong[0]}")
    return {cell: values for cell, values in arrays.items() if len(values)}


def _sort_in_words(sort: str, kind: str) -> str:
    return f"same {kind}" if sort == "positive" else f"different {KIND_NAMES[kind]}"


def _column_title(kind: str, variants: Collection[Mapping[str, np.ndarray]]) -> str:
    """The kind, and under it how many pairs of each sort there are."""
    counts = []
    for sort in SORTS:
        lengths = [len(cells[f"{sort}/{kind}"]) for cells in variants if f"{sort}/{kind}" in cells]
        name = f"same {kind}" if sort == "positive" else "different"
        counts.append(f"{name}: {pairs_in_words(lengths)}")
    return f'<b>{KIND_NAMES[kind]}</b><br><span style="{_COUNTS}">{", ".join(counts)}</span>'


def _legend() -> list[go.Scatter]:
    """Entries that say in words what a row shows; they draw nothing."""
    entries = (
        ("triangle-up", "above the line: same event or entity"),
        ("triangle-down", "below it: different"),
        ("line-ns-open", "tick and number: mean"),
    )
    return [
        go.Scatter(
            x=[None], y=[None], mode="markers", marker={"symbol": symbol, "size": 9, "color": TEXT}, name=name
        )
        for symbol, name in entries
    ]


def _lay_out_distributions(figure: go.Figure, variants: Sequence[str], title: str, deepest: float) -> None:
    above, below, room = 96 if title else 60, 112, 78 * len(variants)
    figure.update_layout(
        template=lab_template(),
        title_text=_plain(title) or None,
        height=above + room + below,
        margin={"t": above, "b": below},
        legend={"y": -58 / room, "yanchor": "top", "itemclick": False, "itemdoubleclick": False},
        hovermode="closest",
    )
    figure.update_xaxes(range=[0, RIGHT_END], tickvals=[0, 25, 50, 75, 100], showticklabels=False, ticks="")
    figure.update_xaxes(showticklabels=True, ticks="outside", title_text="percentile rank", row=len(variants))
    figure.update_yaxes(
        range=[-deepest - 0.05, 1.05],
        tickvals=[],
        showgrid=False,
        zeroline=True,
        zerolinecolor=TEXT,
        zerolinewidth=1,
        ticks="",
        ticklabelstandoff=6,
    )
    for row, variant in enumerate(variants, start=1):
        figure.update_yaxes(tickvals=[0], ticktext=[_label(variant)], tickfont_size=14, row=row, col=1)
    figure.update_annotations(font_size=13, font_color=TEXT)


def _checked_map(variant: str, values: np.ndarray) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    if array.ndim != 2 or not array.size:
        raise ValueError(f"{variant}: a map must have shape (layers, heads), got {array.shape}")
    if wrong := array[~np.isnan(array) & ~(np.abs(array) <= 100)].tolist():
        raise ValueError(f"{variant}: differences of ranks lie in [-100, 100], got {wrong[0]}")
    return array


def _map_traces(variant: str, values: np.ndarray) -> list[go.Heatmap | go.Scatter]:
    """The map of one variant, and crosses where nothing was measured."""
    name = _plain(variant_name(variant))
    where = f"{name}<br>layer %{{y}}, head %{{x}}: "
    measured = go.Heatmap(
        x0=1,
        dx=1,
        y0=1,
        dy=1,
        z=[[None if math.isnan(value) else round(float(value), 2) for value in line] for line in values],
        text=[[_difference_in_words(float(value)) for value in line] for line in values],
        hovertemplate=f"{where}coreferring targets rank %{{text}}<extra></extra>",
        hoverongaps=False,
        coloraxis="coloraxis",
        xgap=1,
        ygap=1,
    )
    layers, heads = np.nonzero(np.isnan(values))
    if not len(layers):
        return [measured]
    missing = go.Scatter(
        x=(heads + 1).tolist(),
        y=(layers + 1).tolist(),
        mode="markers",
        marker={"symbol": "x-thin", "size": 5, "line": {"color": TEXT, "width": 1}},
        hovertemplate=f"{where}not measured<extra></extra>",
        showlegend=False,
    )
    return [measured, missing]


def _difference_in_words(difference: float) -> str:
    """12.34 -> `12.3 points higher`, -3 -> `3.0 points lower`."""
    if math.isnan(difference):
        return ""
    size = f"{abs(difference):.1f}"
    if size == "0.0":
        return "as high as others"
    return f"{size} {'point' if size == '1.0' else 'points'} {'higher' if difference > 0 else 'lower'}"


def _lay_out_maps(figure: go.Figure, largest: float, title: str, height: int) -> None:
    marks = ticks(-largest, largest, about=5)
    figure.update_layout(
        template=lab_template(),
        title_text=_plain(title) or None,
        height=height + 70 + (36 if title else 0),
        margin={"t": 84 if title else 48, "b": 56},
        coloraxis={
            "colorscale": [list(stop) for stop in _DIVERGING],
            "cmin": -largest,
            "cmax": largest,
            "colorbar": {
                "title": {"text": "points higher<br>when they<br>corefer", "side": "top", "font_size": 12},
                "thickness": 14,
                "outlinewidth": 0,
                "tickvals": marks,
                "ticktext": [f"{mark:+g}".replace("-", "\u2212") if mark else "0" for mark in marks],
            },
        },
    )
    figure.update_xaxes(showgrid=False, showline=False, ticks="")
    figure.update_yaxes(showgrid=False, showline=False, ticks="")
    figure.update_annotations(font_size=13, font_color=TEXT)


def _ticks(count: int) -> list[int]:
    """Numbers of some layers or heads, first and last among them if they can be: 12 -> 1, 3, 6, 9, 12."""
    step = 1 if count <= 6 else math.ceil(count / 4)
    return sorted({1, *range(step, count + 1, step)})


def _label(variant: str) -> str:
    """A variant's name where room is short; hovering shows the whole of it."""
    return _plain(shortened(variant_name(variant), _LONGEST_LABEL))


def _plain(text: str) -> str:
    """Text in which plotly finds none of the tags it would draw, and no invisible characters."""
    return html.escape(visible(text), quote=False)
