"""The common style of all plotly figures, and the parts that they are made of.

A figure in a saved notebook cannot know whether it will be opened in a light or a dark theme: backgrounds are
transparent, text and grid are middle greys, and every colour is accompanied by a symbol, a line or a word."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go

from cdlm_lab.encoders.variants import variant_name
from cdlm_lab.views import html
from cdlm_lab.views.figures import show_anywhere
from cdlm_lab.views.html import RULE, TEXT, shortened
from cdlm_lab.views.still_figure import ticks

LONGEST_NAME = 24  # characters of a name where space is limited

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


def variant_label(variant: str) -> str:
    """Return the name of a variant as plotly's markup, with the CDLM paper's names."""
    return plain_text(variant_name(variant))


def small(text: str) -> str:
    """Return a second line for a label, in small type; `text` is plotly's markup."""
    return f'<br><span style="font-size:11px;font-weight:normal">{text}</span>'


def faded(colour: str, opacity: float) -> str:
    """Convert a colour `#rrggbb` to rgba with the given opacity."""
    red, green, blue = bytes.fromhex(colour[1:])
    return f"rgba({red},{green},{blue},{opacity})"


def marks(x: Sequence[Any], y: Sequence[Any], words: str | Sequence[str] = "", **style: Any) -> go.Scatter:
    """Return a trace of points, lines or texts; `words` appear on hovering, "" = nothing appears."""
    hover = {"hovertext": words, "hoverinfo": "text"} if words else {"hoverinfo": "skip"}
    return go.Scatter(x=x, y=y, **hover, **style)


def box_figure(
    names: Sequence[str],
    quantiles: Sequence[Sequence[float]],
    *,
    title: str,
    x: str = "",
    y: str = "",
    **box: Any,
) -> go.Figure:
    """Plot a box for each of the `names` (markup), from its quantiles at 5, 25, 50, 75 and 95%: from the 25th
    to the 75th percentile, a line at the median, whiskers to the 5th and the 95th. `box`: of plotly."""
    parts = ("lowerfence", "q1", "median", "q3", "upperfence")
    edges = {part: list(values) for part, values in zip(parts, zip(*quantiles, strict=True), strict=True)}
    figure = go.Figure(go.Box(x=list(range(len(names))), **edges, line_color=html.GLOBAL, **box))
    figure.update_xaxes(rows_of_an_axis(names))
    return lay_out(figure, title=title, x=x, y=y, showlegend=False)


def logarithmic_ticks(low: float, high: float) -> list[float]:
    """Return round numbers in [low, high] for a logarithmic axis: 1, 2, 5 times powers of ten over a decade
    or more (powers of ten alone over three), evenly spaced numbers over less."""
    if high / low < 10:
        return ticks(low, high, about=5)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [m * 10.0**decade for decade in decades for m in ((1, 2, 5) if high / low < 1000 else (1,))]
    return [round(value, 10) for value in values if low <= value <= high]
