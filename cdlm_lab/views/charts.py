"""The common style of all plotly figures, and the figures of pretraining and of attention: perplexities,
losses, percentile ranks of attended words, heads.

A figure in a saved notebook cannot know whether it will be opened in a light or a dark theme: backgrounds are
transparent, text and grid are middle greys, and every colour is accompanied by a symbol, a line or a word."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from cdlm_lab.runs.scores import Score
from cdlm_lab.views import html
from cdlm_lab.views.figures import show_anywhere
from cdlm_lab.views.html import GLOBAL, HUES, MASKED, RULE, TEXT, paper_order, shortened, variant_colours
from cdlm_lab.views.live_curve import smoothed, thinned, ticks
from cdlm_lab.views.score_tables import RANK_CELLS, pairs_in_words
from cdlm_lab.views.tables import PERPLEXITY

SORTS = ("positive", "negative")  # pairs of mentions that corefer, and pairs that do not
KIND_NAMES = {"event": "events", "entity": "entities"}
LONGEST_NAME = 24  # characters of a name where space is limited
SYMBOLS = tuple(html.VARIANT_SYMBOLS.values())

_AXIS = {
    "gridcolor": RULE,
    "linecolor": RULE,
    "zeroline": False,
    "zerolinecolor": TEXT,
    "zerolinewidth": 1,
    "ticks": "outside",
    "ticklen": 4,
    "tickcolor": RULE,
    "title": {"standoff": 12, "font": {"size": 13}},
    "automargin": True,
}
_TITLE = {"font": {"size": 16}, "x": 0, "xref": "paper", "xanchor": "left", "y": 0.97, "yanchor": "top"}
TEMPLATE = go.layout.Template(
    layout={
        "font": {"family": html.FONT, "size": 13, "color": TEXT},
        "title": _TITLE,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "colorway": [*html.VARIANT_COLOURS.values(), *html.OTHER_COLOURS],
        "xaxis": _AXIS,
        "yaxis": _AXIS,
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"},
        "margin": {"l": 64, "r": 44, "t": 72, "b": 56},
        "hoverlabel": {"font": {"family": html.FONT}},
        "hovermode": "closest",
        "annotationdefaults": {"font": {"color": TEXT}},
        # Vertical, beside the title; plotly's default background is half black on transparent paper.
        "modebar": {
            "orientation": "v",
            "bgcolor": "rgba(0,0,0,0)",
            "color": "rgba(128,128,128,0.6)",
            "activecolor": TEXT,
        },
    },
    data={"scatter": [{"cliponaxis": False, "textfont": {"size": 12}}]},
)


def lay_out(
    figure: go.Figure, *, title: str, x: str = "", y: str = "", height: int = 420, **layout: Any
) -> go.Figure:
    """Style a figure. `title`: plain text; `x`, `y`: axis titles in markup; `layout`: plotly's options."""
    show_anywhere()  # called here, because what it loads takes a second
    if x:
        figure.update_xaxes(title_text=x)
    if y:
        figure.update_yaxes(title_text=y)
    heading = plain_text(title) or None
    return figure.update_layout(template=TEMPLATE, title_text=heading, height=height, **layout)


def rows_of_an_axis(labels: Sequence[str], *, room: tuple[float, float] = (0.5, 0.5)) -> dict[str, Any]:
    """Axis options with labels (markup) at 0, 1, ..., and `room` before the first and after the last."""
    ends = [-room[0], len(labels) - 1 + room[1]]
    return {"tickvals": list(range(len(labels))), "ticktext": labels, "range": ends, "showgrid": False}


def plain_text(text: str) -> str:
    """Escape text so that plotly interprets none of it as markup; invisible characters become visible."""
    return escape(html.visible(text), quote=False)


def short_name(name: str) -> str:
    """Return a name, truncated for places of limited space; the full name appears on hovering."""
    return plain_text(shortened(name, LONGEST_NAME))


def _named(variant: str) -> str:
    return plain_text(html.variant_name(variant))


def small(text: str) -> str:
    """Return a second line for a label, in small type; `text` is plotly's markup."""
    return f'<br><span style="font-size:11px;font-weight:normal">{text}</span>'


def faded(colour: str, opacity: float) -> str:
    """Convert a colour `#rrggbb` to rgba with the given opacity."""
    red, green, blue = bytes.fromhex(colour[1:])
    return f"rgba({red},{green},{blue},{opacity})"


def line_style(place: int) -> dict[str, Any]:
    """Return the style of the line of index `place`; up to 40 lines differ in colour or symbol."""
    colour, symbol = HUES[place % len(HUES)], SYMBOLS[place % len(SYMBOLS)]
    marker = {"color": colour, "symbol": symbol, "size": 9}
    return {"mode": "lines+markers", "line": {"color": colour, "width": 2}, "marker": marker}


def interval(
    values: Sequence[float], lows: Iterable[float], highs: Iterable[float], *, color: str, **layout: Any
) -> dict[str, Any]:
    """Return error bars from `lows` to `highs`, without caps unless `layout` sets a `width`."""
    array = [round(high - value, 6) for value, high in zip(values, highs, strict=True)]
    below = [round(value - low, 6) for value, low in zip(values, lows, strict=True)]
    bars = {"color": color, "thickness": 2.5, "width": 0} | layout
    return {"type": "data", "symmetric": False, "array": array, "arrayminus": below, **bars}


def marks(x: Sequence[Any], y: Sequence[Any], words: str | Sequence[str] = "", **style: Any) -> go.Scatter:
    """Return a trace of points, lines or texts; `words` appear on hovering, "" = nothing appears."""
    hover = {"hovertext": words, "hoverinfo": "text"} if words else {"hoverinfo": "skip"}
    return go.Scatter(x=x, y=y, **hover, **style)


def checked_array(
    name: str, values: Any, *, shape: str, low: float, high: float, gaps: bool = True
) -> np.ndarray:
    """Return a float array; ValueError unless it has the axes of `shape`, such as `(pairs,)`, and lies in
    [low, high]. `gaps`: True = NaN (not measured) is allowed, but an empty array is not."""
    array = np.asarray(values, dtype=float)
    if array.ndim != len(shape.strip("(),").split(",")) or (gaps and not array.size):
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    if wrong := array[~((array >= low) & (array <= high) | (np.isnan(array) & gaps))].tolist():
        raise ValueError(f"{name} must lie in [{low:g}, {high:g}], got {wrong[0]}")
    return array


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
    names = [_named(variant) for variant in ordered][::-1]
    # Leave room for the number above the topmost dot.
    ends = [-0.6, len(ordered) - 0.35]
    figure.update_yaxes(categoryorder="array", categoryarray=names, range=ends, showgrid=False, ticks="")
    figure.update_yaxes(tickfont_size=14)
    figure.update_annotations(font_size=13)
    height, margin = 150 + 46 * len(ordered) + (30 if title else 0), {"l": 110, "t": 90 if title else 60}
    return lay_out(figure, title=title, x="perplexity (lower is better)", height=height, margin=margin)


def _dot(score: Score, colour: str) -> go.Scatter:
    value, name = score.value, _named(score.system)
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


def logarithmic_ticks(low: float, high: float) -> list[float]:
    """Return round numbers in [low, high] for a logarithmic axis: 1, 2, 5 times powers of ten over a decade
    or more (powers of ten alone over three), evenly spaced numbers over less."""
    if not 0 < low < high:
        raise ValueError(f"a logarithmic axis needs 0 < low < high, got {low} and {high}")
    if high / low < 10:
        return ticks(low, high, about=5)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [m * 10.0**decade for decade in decades for m in ((1, 2, 5) if high / low < 1000 else (1,))]
    return [round(value, 10) for value in values if low <= value <= high]


class LearningCurve(NamedTuple):
    """The validation losses of one training run, and how many training tokens were read before each."""

    variant: str
    name: str  # of the run
    seed: int
    tokens: Sequence[int]
    losses: Sequence[float]  # in nats per masked token


_DASHES = ("solid", "dash", "dot", "dashdot")
_COMPARED_WITH = "local-cdlm"


def learning_figure(curves: Sequence[LearningCurve], *, title: str = "") -> go.Figure:
    """Plot validation loss by training tokens, one line per training run, coloured by variant and dashed by
    seed. A second panel shows the loss of each variant that continues from a base model minus that of Local
    CDLM of the same seed, if there is exactly one: below zero a variant is better than Local CDLM."""
    seeds = sorted({curve.seed for curve in curves})
    dashes = {seed: _DASHES[place % len(_DASHES)] for place, seed in enumerate(seeds)}
    colours = variant_colours(paper_order(curve.variant for curve in curves))
    further = [one for curve in curves if (one := _against_local(curve, curves))]
    figure = make_subplots(rows=1 + bool(further), cols=1, vertical_spacing=0.14)
    for row, (shown, more) in enumerate(((curves, ""), (further, " against Local CDLM")), start=1):
        for curve in sorted(shown, key=lambda one: list(colours).index(one.variant)):
            line = {"color": colours[curve.variant], "width": 2, "dash": dashes[curve.seed]}
            figure.add_trace(_learning_line(curve, line, more), row=row, col=1)
    for trace in {trace.name: trace for trace in reversed(figure.data)}.values():  # the first of each name
        trace.showlegend = True
    for seed, dash in dashes.items() if len(seeds) > 1 else ():
        line = {"color": TEXT, "width": 2, "dash": dash}
        figure.add_trace(marks([None], [None], mode="lines", name=f"seed {seed}", line=line))
    figure.update_yaxes(title_text="nats for each masked token", row=1, col=1)
    if further:
        figure.update_yaxes(title_text="the same, minus Local CDLM", row=2, col=1)
        figure.add_hline(y=0, row=2, col=1, line={"color": colours[_COMPARED_WITH], "width": 2})
    x, height = "million tokens read", 720 if further else 460
    # leave room for two rows of the legend
    return lay_out(figure, title=title, x=x, height=height, margin_t=108).update_xaxes(rangemode="tozero")


def _learning_line(curve: LearningCurve, line: Mapping[str, Any], more: str) -> go.Scatter:
    name, style = _named(curve.variant), {"mode": "lines+markers", "line": line}
    words = [
        f"{name}, {plain_text(curve.name)}<br>{tokens:,} tokens: "
        + (f"{loss:+.3f} nats{more}" if more else f"{loss:.3f} nats (perplexity {math.exp(loss):.2f})")
        for tokens, loss in zip(curve.tokens, curve.losses, strict=True)
    ]
    symbol = html.VARIANT_SYMBOLS.get(curve.variant, "circle")
    style["marker"] = {"color": line["color"], "symbol": symbol, "size": 8}
    style |= {"name": name, "legendgroup": curve.variant, "showlegend": False}
    return marks([tokens / 1e6 for tokens in curve.tokens], list(curve.losses), words, **style)


def _against_local(curve: LearningCurve, curves: Sequence[LearningCurve]) -> LearningCurve | None:
    """Subtract the losses of Local CDLM of the same seed, where both have tokens. None for Local CDLM and
    Longformer themselves, unless just one curve of Local CDLM has this seed, or without overlap."""
    local = [one for one in curves if (one.variant, one.seed) == (_COMPARED_WITH, curve.seed)]
    if len(local) != 1 or curve.variant in (_COMPARED_WITH, "longformer"):
        return None
    tokens = np.asarray(curve.tokens)
    # Batches are not equally full, so the last validations of two trainings are some hundred tokens apart.
    both = (tokens >= 0.99 * local[0].tokens[0]) & (tokens <= 1.01 * local[0].tokens[-1])
    losses = np.asarray(curve.losses) - np.interp(tokens, local[0].tokens, local[0].losses)
    return curve._replace(tokens=tokens[both].tolist(), losses=losses[both].tolist()) if any(both) else None


# loss -> its title and its unit
_LOSSES = {
    "mlm": ("masked words (MLM)", "nats for each masked token"),
    "mspp": ("candidates of the same paragraph (MSPP)", "nats for each candidate"),
}


def pretraining_losses_figure(records: Sequence[Mapping[str, Any]], *, right: float) -> go.Figure:
    """Plot the MLM loss and the MSPP loss, which predicts the sentences of the same paragraph (Di Liello et
    al. 2022, section 3.4). Lines: training, smoothed; diamonds: validation; dashed: the MSPP loss of a model
    that always predicts the probability `right`, the proportion of candidates of the same paragraph, such as
    k_1 / k. The MLM loss is omitted if nothing was masked, so that it is 0 throughout.

    `records` of a run have `step` with `loss_mlm` and `loss_mspp`, or with `eval_loss_mlm` and
    `eval_loss_mspp`; missing values and None are ignored. ValueError: neither loss has values."""
    if not 0 < right < 1:
        raise ValueError(f"right is {right}; the share of right candidates lies in (0, 1)")
    courses = {
        loss: (_course(records, f"loss_{loss}"), _course(records, f"eval_loss_{loss}")) for loss in _LOSSES
    }
    if not any(steps for both in courses.values() for steps, _ in both):
        raise ValueError("there is nothing to show: neither loss has numbers")
    if not any(value for _, losses in courses["mlm"] for value in losses):
        del courses["mlm"]
    titles = [_LOSSES[loss][0] for loss in courses]
    last = len(courses)
    figure = make_subplots(rows=last, cols=1, shared_xaxes=True, vertical_spacing=0.09, subplot_titles=titles)
    diamonds = {"color": GLOBAL, "size": 9, "symbol": "diamond"}
    validated = {"mode": "lines+markers", "line": {"color": GLOBAL, "width": 1.4}, "marker": diamonds}
    lines = {"mode": "lines", "line": {"color": MASKED, "width": 2.2}}
    for row, (loss, ((steps, losses), validation)) in enumerate(courses.items(), start=1):
        average, chosen = smoothed(losses), thinned(len(losses))
        trained = [steps[i] for i in chosen], [average[i] for i in chosen]
        for kind, (x, y), style in (
            ("training, smoothed", trained, lines),
            ("validation", validation, validated),
        ):
            hover = f"{loss.upper()}, {kind.split(',')[0]}<br>step %{{x:,}}: %{{y:.3f}}<extra></extra>"
            in_legend = {"name": kind, "legendgroup": kind, "showlegend": row == 1}  # one for both losses
            y = [round(float(value), 4) for value in y]
            figure.add_scatter(x=x, y=y, hovertemplate=hover, row=row, col=1, **in_legend, **style)
        figure.update_yaxes(title_text=_LOSSES[loss][1], row=row, col=1)
    ignorant = -right * math.log(right) - (1 - right) * math.log(1 - right)
    line = {"color": TEXT, "width": 1.2, "dash": "dash"}
    note = {"text": f"always guessing {right:.0%}: {ignorant:.2f}", "font": {"size": 11.5}}
    figure.add_hline(y=ignorant, row=last, col=1, line=line, annotation=note, annotation_position="top right")
    figure.update_xaxes(title_text="optimiser step", row=last, col=1)
    title = "The two losses of pretraining" if last == 2 else "The loss of pretraining"
    return lay_out(figure, title=title, height=150 + 205 * last, margin_t=104, legend_y=1 + 0.1 / last)


def _course(records: Iterable[Mapping[str, Any]], key: str) -> tuple[list[int], list[float]]:
    known = [record for record in records if record.get(key) is not None]
    return [int(record["step"]) for record in known], [float(record[key]) for record in known]


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
            name=f"{_named(variant)}, {whose}",
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
        name = short_name(html.variant_name(variant))
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
    titles = [short_name(html.variant_name(variant)) for variant in shown]
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
    where = f"{_named(variant)}<br>layer %{{y}}, head %{{x}}: "
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
