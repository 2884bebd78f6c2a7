"""What figures of several lines share: their styles, the look of a figure, names as plotly shows them."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import plotly.graph_objects as go

from cdlm_lab.widgets.html import HUES, VARIANT_SYMBOLS, lab_template, shortened, visible

SYMBOLS = tuple(VARIANT_SYMBOLS.values())
LONGEST_NAME = 28  # characters
Numbers = TypeVar("Numbers")


def line_styles(count: int) -> list[dict[str, Any]]:
    """How each of several lines is drawn; no two have one colour and one symbol up to 40 lines."""
    return [
        {
            "mode": "lines+markers",
            "line": {"color": HUES[i % len(HUES)], "width": 2},
            "marker": {"color": HUES[i % len(HUES)], "symbol": SYMBOLS[i % len(SYMBOLS)], "size": 9},
        }
        for i in range(count)
    ]


def lay_out(figure: go.Figure, *, title: str, x: str, y: str) -> None:
    """The look of a figure of one panel; `title` is plain text, `x` and `y` are markup that names axes."""
    figure.update_layout(
        template=lab_template(),
        title={"text": plain_text(title), "y": 0.97, "yanchor": "top"},
        height=420,
        margin_t=88,
        hovermode="closest",
        showlegend=True,
    )
    figure.update_xaxes(title_text=x)
    figure.update_yaxes(title_text=y)


def faded(colour: str, opacity: float) -> str:
    """A colour `#rrggbb` as rgba."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def short_name(name: str) -> str:
    """A name where room is short; hovering shows the whole of it."""
    return plain_text(shortened(name, LONGEST_NAME))


def plain_text(text: str) -> str:
    """Text in which plotly finds none of the tags it would draw, and no invisible characters."""
    return html.escape(visible(text), quote=False)


def points_in_words(share: float) -> str:
    """A difference of shares in percentage points: 0.0312 -> `+3.1`."""
    text = f"{100 * share:+.1f}".replace("-", "\u2212")
    return "0.0" if text[1:] == "0.0" else text


def not_empty(numbers: Mapping[str, Sequence[Numbers]], name: str) -> dict[str, Sequence[Numbers]]:
    """The lines that have any numbers.

    Raises:
        ValueError: there are none; the message calls them `name`.
    """
    shown = {key: values for key, values in numbers.items() if len(values)}
    if not shown:
        raise ValueError(f"there is nothing to show: {name} is empty")
    return shown
