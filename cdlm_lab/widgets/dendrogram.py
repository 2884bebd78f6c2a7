"""In which order the mentions of a topic were joined, and where the threshold cut the tree."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from cdlm_lab.clustering import labels_at
from cdlm_lab.widgets.html import (
    GLOBAL,
    UNKNOWN,
    ShownMention,
    escaped,
    gold_colours,
    lab_template,
    shortened,
)

LONGEST_LABEL = 36  # characters
HOVER_WIDTH = 70  # characters
SYMBOLS = ("circle", "square", "diamond", "cross", "triangle-up", "star")
_BAND = "rgba(128,128,128,0.13)"
_AXIS = (
    "average score between the clusters joined<br>"
    '<span style="font-size:11px">colour: gold cluster \u00b7 band: cluster at the threshold</span>'
)


def dendrogram_figure(
    tree: ArrayLike, mentions: Sequence[ShownMention], *, threshold: float, title: str = ""
) -> go.Figure:
    """The tree with its leaves on the left, as wide as the scores go down from 1 to 0.

    A branch has the colour of a gold cluster if all mentions below it are of that cluster, and is grey
    otherwise; grey bands hold the clusters that the threshold leaves. Gold clusters of one mention, and
    unknown ones, are hollow grey dots. The figure grows with the mentions: 200 of them are legible.

    Args:
        tree: (mentions - 1, 4), of `clustering.merge_tree`.
        mentions: the leaves, in the order of the scores the tree was made from.
        threshold: drawn as a line; clusters are joined to its left.
        title: shown above (plain text).

    Raises:
        ValueError: not one mention for each leaf, a threshold outside [0, 1], a tree that is none.
    """
    tree = np.asarray(tree, dtype=np.float64)
    labels = labels_at(tree, threshold)
    if len(labels) != len(mentions):
        raise ValueError(f"the tree has {len(labels)} leaves, but there are {len(mentions)} mentions")
    order = leaf_order(tree)
    rows = {leaf: row for row, leaf in enumerate(order)}
    colours, symbols = _marks([mentions[leaf].gold for leaf in order])
    golds = [mention.gold for mention in mentions]
    figure = go.Figure([*_branches(tree, rows, golds, colours), _leaves(order, mentions, colours, symbols)])
    _draw_clusters(figure, [int(labels[leaf]) for leaf in order], threshold)
    step = 19 if len(order) <= 60 else 16 if len(order) <= 120 else 13  # pixels a row
    figure.update_layout(
        template=lab_template(),
        title_text=_plain(title) or None,
        height=164 + (30 if title else 0) + step * len(order),
        margin={"l": 40, "t": 100 if title else 62, "b": 72},
        showlegend=False,
        hovermode="closest",
    )
    figure.update_xaxes(range=[1.02, -0.02], title_text=_AXIS)
    figure.update_yaxes(
        range=[len(order) - 0.3, -0.7],
        tickvals=list(range(len(order))),
        ticktext=[_plain(shortened(mentions[leaf].text, LONGEST_LABEL)) for leaf in order],
        tickfont_size=12 if step > 13 else 10,
        showgrid=False,
        ticks="",
    )
    return figure


def _draw_clusters(figure: go.Figure, labels: Sequence[int], threshold: float) -> None:
    """A band for each cluster of several mentions, and the line of the threshold; `labels` from the top."""
    for label in dict.fromkeys(labels):
        rows = [row for row, other in enumerate(labels) if other == label]  # a run: branches do not cross
        if len(rows) > 1:
            corners = {"x0": 1.012, "x1": threshold, "y0": rows[0] - 0.45, "y1": rows[-1] + 0.45}
            figure.add_shape(type="rect", **corners, fillcolor=_BAND, line_width=0, layer="below")
    figure.add_vline(threshold, line={"color": GLOBAL, "width": 1.8, "dash": "dash"})
    where = {"x": threshold, "y": 1, "yref": "paper", "yanchor": "bottom", "yshift": 4}
    font = {"color": GLOBAL, "size": 13}
    figure.add_annotation(text=f"threshold {threshold:.2f}", showarrow=False, font=font, **where)


def leaf_order(tree: np.ndarray) -> list[int]:
    """Leaves from top to bottom, so that no branches cross; of two branches, that with the first mention."""
    mentions = len(tree) + 1
    first = list(range(mentions))  # the first mention below each node
    for left, right, *_ in tree:
        first.append(min(first[int(left)], first[int(right)]))
    order, open_nodes = [], [2 * mentions - 2]
    while open_nodes:
        node = open_nodes.pop()
        if node < mentions:
            order.append(node)
            continue
        children = [int(child) for child in tree[node - mentions, :2]]
        open_nodes += sorted(children, key=first.__getitem__, reverse=True)
    return order


def _marks(golds: Sequence[str | None]) -> tuple[dict[str | None, str], dict[str | None, str]]:
    """Colour and symbol of each gold cluster of several mentions, by order on the page; grey for others."""
    several = [gold for gold in dict.fromkeys(golds) if gold is not None and golds.count(gold) > 1]
    # Neighbours on the page get different colours, as far as there are enough.
    nearby = [several[place : place + 8] for place in range(max(1, len(several) - 7))]
    colours = dict.fromkeys(golds, UNKNOWN) | gold_colours(nearby)
    symbols = dict.fromkeys(golds, "circle-open")
    symbols |= {gold: SYMBOLS[place // 8 % len(SYMBOLS)] for place, gold in enumerate(several)}
    return colours, symbols


def _branches(
    tree: np.ndarray, rows: dict[int, int], golds: Sequence[str | None], colours: dict[str | None, str]
) -> list[go.Scatter]:
    """One trace of lines for each colour: an elbow for each join."""
    mentions = len(tree) + 1
    places = [(1.0, float(rows[leaf])) for leaf in range(mentions)]  # score and row of each node
    below: list[str | None] = list(golds)  # the one gold cluster below each node, None if there are more
    lines: dict[str, tuple[list, list]] = {}
    for left, right, distance, _ in tree:
        (x_a, y_a), (x_b, y_b) = places[int(left)], places[int(right)]
        score = round(1 - float(distance), 4)
        gold = below[int(left)] if below[int(left)] == below[int(right)] else None
        xs, ys = lines.setdefault(colours[gold] if gold is not None else UNKNOWN, ([], []))
        xs += [x_a, score, score, x_b, None]
        ys += [y_a, y_a, y_b, y_b, None]
        places.append((score, (y_a + y_b) / 2))
        below.append(gold)
    return [
        go.Scatter(x=xs, y=ys, mode="lines", line={"color": colour, "width": 1.8}, hoverinfo="skip")
        for colour, (xs, ys) in lines.items()
    ]


def _leaves(
    order: Sequence[int],
    mentions: Sequence[ShownMention],
    colours: dict[str | None, str],
    symbols: dict[str | None, str],
) -> go.Scatter:
    golds = [mentions[leaf].gold for leaf in order]
    return go.Scatter(
        x=[1.0] * len(order),
        y=list(range(len(order))),
        mode="markers",
        marker={
            "color": [colours[gold] for gold in golds],
            "symbol": [symbols[gold] for gold in golds],
            "size": 9,
            "line": {"width": 1.4, "color": [colours[gold] for gold in golds]},
        },
        hovertext=[_hover(mentions[leaf]) for leaf in order],
        hoverinfo="text",
        cliponaxis=False,
    )


def _hover(mention: ShownMention) -> str:
    sentence = "<br>".join(_plain(line) for line in textwrap.wrap(mention.sentence, HOVER_WIDTH)[:8])
    gold = "not known" if mention.gold is None else _plain(mention.gold)
    return (
        f"<b>{_plain(mention.text)}</b><br>{sentence}<br>document {_plain(mention.document)}<br>gold: {gold}"
    )


def _plain(text: str) -> str:
    """Text in which plotly finds none of the tags it would draw (`<b>`, `<a href>`)."""
    return escaped(text).replace("&quot;", '"').replace("&#x27;", "'")
