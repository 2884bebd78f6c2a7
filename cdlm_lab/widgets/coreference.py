"""What a coreference system made: its clusters as cards, the pairs of mentions that it got wrong, and the
tree of the order in which mentions were joined.

In a card, the gold cluster with most of the mentions is the one that the card is about; a mention of another
gold cluster gets a dashed line, a sign and a name. Ten mentions merged with ten others by mistake are a
hundred wrong pairs that say the same: of the pairs between the same two gold clusters (of one, if it was
split) the worst is shown and the others are counted."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import leaves_list

from cdlm_lab.clustering import labels_at
from cdlm_lab.widgets.charts import lay_out, marks, plain_text, small
from cdlm_lab.widgets.html import (
    FRAME,
    GLOBAL,
    MUTED,
    UNKNOWN,
    ShownMention,
    check_between,
    count_in_words,
    counted,
    escaped,
    gold_chip,
    gold_colours,
    muted,
    sentence_html,
    shortened,
    table_html,
    view_html,
)

IN_SIGHT = 5  # mentions of the main gold cluster, and as many others, that a card shows unfolded
IN_FOLD = 80  # mentions below its fold
LONGEST_TITLE = 48  # characters
CHIPS = 8  # gold clusters that the head of a card names
Colours = Mapping[str | None, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCluster:
    """Mentions that a system put together, in the order to show them; no two clusters share a name."""

    name: str
    mentions: tuple[ShownMention, ...]

    def __post_init__(self) -> None:
        if not self.mentions:
            raise ValueError(f"cluster {self.name} has no mentions; leave it out")

    @property
    def golds(self) -> Counter[str | None]:
        """How many of the mentions each gold cluster has, most first, ties in the order of the mentions."""
        return Counter(dict(Counter(mention.gold for mention in self.mentions).most_common()))

    @property
    def is_mixed(self) -> bool:
        """Whether mentions of several gold clusters are in it."""
        return len(self.golds) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PairError:
    """Two mentions and the probability, in [0, 1], that the scorer gives them to corefer."""

    first: ShownMention
    second: ShownMention
    score: float

    def __post_init__(self) -> None:
        check_between("the score of a pair", self.score)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreferenceErrors:
    """The wrong pairs of a system, in any order."""

    merged: tuple[PairError, ...]  # pairs put into one cluster that do not corefer
    split: tuple[PairError, ...]  # pairs that corefer, put into different clusters
    # Of the clustering; the page names the pairs on the right side of it, which were misled by other pairs.
    # None = not known.
    threshold: float | None = None


class _Places:
    """Which clusters hold mentions of each gold cluster."""

    def __init__(self, clusters: Sequence[ShownCluster]) -> None:
        self._names: dict[str | None, list[str]] = {}
        for cluster in clusters:
            for gold in cluster.golds:
                self._names.setdefault(gold, []).append(cluster.name)

    def others(self, gold: str | None, cluster: ShownCluster) -> str:
        """`others in A, B and elsewhere`, HTML; "" if the gold cluster lies in `cluster` alone or is
        unknown."""
        names = [] if gold is None else [name for name in self._names[gold] if name != cluster.name]
        shown = ", ".join(f"<bdi>{escaped(shortened(name, 20))}</bdi>" for name in names[:4])
        return f"others in {shown}{' and elsewhere' if len(names) > 4 else ''}" if names else ""


def clusters_html(clusters: Sequence[ShownCluster], *, limit: int = 40) -> str:
    """The clusters as one block of HTML, largest first; clusters of one mention are a folded list at the end.

    Args:
        clusters: all that a system made, so that the page can say where the rest of a gold cluster is.
        limit: at most so many clusters of several mentions are shown, and as many of one.
    """
    names = Counter(cluster.name for cluster in clusters)
    if repeated := [name for name, times in names.items() if times > 1]:
        raise ValueError(f"two clusters are called {repeated[0]!r}; name them apart")
    if limit < 1:
        raise ValueError(f"limit is {limit}; show at least one cluster")
    ordered = sorted(clusters, key=lambda cluster: -len(cluster.mentions))
    several = [cluster for cluster in ordered if len(cluster.mentions) > 1]
    single = ordered[len(several) :]
    places = _Places(ordered)
    colours = gold_colours(cluster.golds for cluster in [*several[:limit], *single[:limit]])
    cards = "".join(_card(cluster, colours, places) for cluster in several[:limit])
    grid = "display:grid;grid-template-columns:repeat(auto-fit,minmax(440px,1fr));gap:12px;align-items:start"
    parts = (
        f'<div style="margin:4px 0 10px">{_headline(several, single)}</div>',
        f'<div style="{grid}">{cards}</div>' if cards else "",
        _left_out(len(several) - limit, "cluster", " of several mentions"),
        _singles(single, colours, places, limit=limit),
    )
    return view_html("clusters", "".join(parts), width=1180)


def _headline(several: Sequence[ShownCluster], single: Sequence[ShownCluster]) -> str:
    everything = [*several, *single]
    mentions = sum(len(cluster.mentions) for cluster in everything)
    facts = [f"<b>{counted(len(everything), 'cluster')}</b> of {counted(mentions, 'mention')}"]
    if any(gold is not None for cluster in everything for gold in cluster.golds):
        mixed = sum(cluster.is_mixed for cluster in everything)
        facts.append(f"{count_in_words(mixed)} with mentions of several gold clusters")
    return " \u00b7 ".join([*facts, f"{counted(len(single), 'mention')} alone"])


def _card(cluster: ShownCluster, colours: Colours, places: _Places) -> str:
    main = next(iter(cluster.golds))
    documents = len({mention.document for mention in cluster.mentions})
    texts = Counter(mention.text.lower() for mention in cluster.mentions)
    title = escaped(shortened(texts.most_common(1)[0][0], LONGEST_TITLE))
    head = (
        f'<div><span style="{MUTED}"><bdi>{escaped(cluster.name)}</bdi></span>&ensp;'
        f'<bdi style="font-weight:600">{title}</bdi></div>'
        + muted(f"{counted(len(cluster.mentions), 'mention')}, {counted(documents, 'document')}")
        + _chips(cluster, colours, places)
    )
    in_sight, hidden = _in_sight(cluster, main)
    body = "".join(_mention(mention, colours, main=main) for mention in in_sight)
    if hidden:
        others = sum(mention.gold != main for mention in hidden)
        of_others = f", {others} of other gold clusters" if others else ""
        rows = "".join(_mention(mention, colours, main=main) for mention in hidden[:IN_FOLD])
        rest = _left_out(len(hidden) - IN_FOLD, "mention")
        more = f"{counted(len(hidden), 'more mention')}{of_others}"
        body += f"<details><summary>{more}</summary>{rows}{rest}</details>"
    frame = f"{FRAME};border-radius:8px;padding:10px 14px 12px"
    return f'<div class="cdlm-card" style="{frame}">{head}{body}</div>'


def _chips(cluster: ShownCluster, colours: Colours, places: _Places) -> str:
    """The gold clusters of a card, how many mentions each has in it, and which clusters hold the others."""
    if set(cluster.golds) == {None}:
        return ""
    chips = []
    for gold, count in list(cluster.golds.items())[:CHIPS]:
        note = ", ".join(filter(None, (f"{count} here", places.others(gold, cluster))))
        chips.append(gold_chip(gold, colours[gold], note))
    if (more := len(cluster.golds) - CHIPS) > 0:
        chips.append(f'<span style="font-size:12px;{MUTED}">and {more} more gold clusters</span>')
    return f'<div style="margin:4px 0 2px">{"".join(chips)}</div>'


def _in_sight(cluster: ShownCluster, main: str | None) -> tuple[list[ShownMention], list[ShownMention]]:
    """Mentions above and below the fold: the main gold cluster first, the wrong ones never all hidden."""
    right = [mention for mention in cluster.mentions if mention.gold == main]
    wrong = [mention for mention in cluster.mentions if mention.gold != main]
    if len(cluster.mentions) <= IN_SIGHT + 1:  # a fold for one line is more bother than it saves
        return right + wrong, []
    return right[:IN_SIGHT] + wrong[:IN_SIGHT], wrong[IN_SIGHT:] + right[IN_SIGHT:]


def _mention(mention: ShownMention, colours: Colours, *, main: str | None, before: str = "") -> str:
    """A mention of a card or of the list of single ones, where `before` (HTML) stands before it."""
    colour, wrong = colours[mention.gold], mention.gold != main
    line = f"border-left:3px {'dashed' if wrong else 'solid'} {colour};padding:1px 0 1px 10px;margin:6px 0"
    sign = f'<span style="color:{colour}">\u2260</span>&ensp;{gold_chip(mention.gold, colour)}'
    return f'<div style="{line}">{before}{sign if wrong else ""}{sentence_html(mention, colour)}</div>'


def _singles(single: Sequence[ShownCluster], colours: Colours, places: _Places, *, limit: int) -> str:
    if not single:
        return ""
    rows = []
    for cluster in single[:limit]:
        (mention,) = cluster.mentions
        others = places.others(mention.gold, cluster)
        name = f'<span style="font-size:12px;{MUTED}"><bdi>{escaped(cluster.name)}</bdi></span>&ensp;'
        chip = gold_chip(mention.gold, colours[mention.gold], others) if others else ""
        rows.append(_mention(mention, colours, main=mention.gold, before=name + chip))
    rest = _left_out(len(single) - limit, "cluster", " of one mention")
    summary = f"<summary>{counted(len(single), 'mention')} alone</summary>"
    return f"<details>{summary}{''.join(rows)}{rest}</details>"


def _left_out(count: int, noun: str, which: str = "") -> str:
    return muted(f"\u2026 and {counted(count, f'more {noun}')}{which}, not shown") if count > 0 else ""


def errors_html(errors: CoreferenceErrors, *, limit: int = 20) -> str:
    """Two tables of pairs of at most `limit` rows, each with its score and both mentions in their sentences:
    the merged pairs by falling, the split ones by rising score, so that the surest mistakes of the scorer
    come first."""
    if limit < 1:
        raise ValueError(f"limit is {limit}; show at least one pair")
    merged = sorted(errors.merged, key=lambda pair: -pair.score)
    split = sorted(errors.split, key=lambda pair: pair.score)
    at = errors.threshold

    def note(pair: PairError, is_merged: bool) -> str:
        if at is None or (pair.score > at) == is_merged:
            return ""
        return "joined by way of others" if is_merged else "kept apart by others"

    def section(name: str, meaning: str, pairs: Sequence[PairError]) -> str:
        head = f"{name}: {counted(len(pairs), 'pair')}"
        head = f'<div style="font-size:16px;font-weight:600;margin-top:14px">{head}</div>{muted(meaning)}'
        rows = [(alike, note(alike[0], pairs is merged)) for alike in _alike(pairs)]
        return head + (
            _pair_table(rows[:limit], sum(len(alike) for alike, _ in rows[limit:])) if rows else ""
        )

    body = section("Merged", "in one cluster, but they do not corefer; the highest score first", merged)
    body += section("Split", "in two clusters, but they corefer; the lowest score first", split)
    style = "div.cdlm-errors table.cdlm-table td:nth-child(n+2){width:46%}\n"
    return view_html("errors", body, width=1180, style=style)


def _alike(pairs: Sequence[PairError]) -> list[list[PairError]]:
    """Pairs of the same two gold clusters together, in the order of the first; pairs without gold stay
    alone."""
    rows: dict[object, list[PairError]] = {}
    for place, pair in enumerate(pairs):
        golds = frozenset((pair.first.gold, pair.second.gold))
        rows.setdefault(place if None in golds else golds, []).append(pair)
    return list(rows.values())


def _pair_table(rows: Sequence[tuple[Sequence[PairError], str]], left_out: int) -> str:
    """A row for each group of alike pairs, of which the first is shown with its note."""
    colours = gold_colours((alike[0].first.gold, alike[0].second.gold) for alike, _ in rows)

    def mention(one: ShownMention) -> str:
        colour = colours[one.gold]
        return f"<div>{gold_chip(one.gold, colour)}</div>{sentence_html(one, colour)}"

    cells = [
        (_score(alike[0].score, note, len(alike) - 1), mention(alike[0].first), mention(alike[0].second))
        for alike, note in rows
    ]
    table = table_html(("score", "one mention", "the other"), cells, text_columns=(0, 1, 2))
    return table + _left_out(left_out, "pair")


def _score(score: float, note: str, alike: int) -> str:
    bar = f'<div style="width:{100 * score:.0f}%;height:4px;border-radius:2px;background:{GLOBAL}"></div>'
    small = (note, f"and {counted(alike, 'more pair')} like this" if alike else "")
    track = "width:72px;border-radius:2px;background:rgba(128,128,128,0.28);margin:2px 0 3px"
    number = f'<span style="font-weight:600">{score:.3f}</span><div style="{track}">{bar}</div>'
    below = "".join(muted(text, size=11.5) for text in small if text)
    return f'<div style="width:112px">{number}{below}</div>'


LONGEST_LABEL = 36  # characters
HOVER_WIDTH = 70  # characters
SYMBOLS = ("circle", "square", "diamond", "cross", "triangle-up", "star")
_BAND = "rgba(128,128,128,0.13)"
_AXIS = "average score between the clusters joined"
_AXIS += small("colour: gold cluster \u00b7 band: cluster at the threshold")


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
    """
    tree = np.asarray(tree, dtype=np.float64)
    labels = labels_at(tree, threshold)
    if len(labels) != len(mentions):
        raise ValueError(f"the tree has {len(labels)} leaves, but there are {len(mentions)} mentions")
    order = leaf_order(tree)
    colours, symbols = _marks([mentions[leaf].gold for leaf in order])
    figure = go.Figure(_branches(tree, order, [mention.gold for mention in mentions], colours))
    figure.add_trace(_leaves([mentions[leaf] for leaf in order], colours, symbols))
    _draw_clusters(figure, [int(labels[leaf]) for leaf in order], threshold)
    step = 19 if len(order) <= 60 else 16 if len(order) <= 120 else 13  # pixels a row
    figure.update_xaxes(range=[1.02, -0.02], title_text=_AXIS)
    figure.update_yaxes(
        range=[len(order) - 0.3, -0.7],
        tickvals=list(range(len(order))),
        ticktext=[plain_text(shortened(mentions[leaf].text, LONGEST_LABEL)) for leaf in order],
        tickfont_size=12 if step > 13 else 10,
        showgrid=False,
        ticks="",
    )
    lay_out(
        figure,
        title=title,
        height=164 + (30 if title else 0) + step * len(order),
        margin={"l": 40, "t": 100 if title else 62, "b": 72},
        showlegend=False,
    )
    return figure


def leaf_order(tree: np.ndarray) -> list[int]:
    """Leaves from top to bottom, so that no branches cross; of two branches, that with the first mention."""
    if not len(tree):
        return [0]
    ordered, first = tree.copy(), list(range(len(tree) + 1))  # the first mention below each node
    for row in ordered:
        row[:2] = sorted(row[:2], key=lambda node: first[int(node)])
        first.append(first[int(row[0])])
    return leaves_list(ordered).tolist()  # scipy's `dendrogram` recurses, which long chains of joins forbid


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
    tree: np.ndarray, order: Sequence[int], golds: Sequence[str | None], colours: Colours
) -> list[go.Scatter]:
    """One trace of lines for each colour: an elbow for each join."""
    places = [(1.0, float(row)) for row in np.argsort(order)]  # score and row of each node
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
    looks = {colour: {"mode": "lines", "line": {"color": colour, "width": 1.8}} for colour in lines}
    return [marks(xs, ys, **looks[colour]) for colour, (xs, ys) in lines.items()]


def _leaves(mentions: Sequence[ShownMention], colours: Colours, symbols: Colours) -> go.Scatter:
    hues = [colours[mention.gold] for mention in mentions]
    shapes = [symbols[mention.gold] for mention in mentions]
    marker = {"color": hues, "symbol": shapes, "size": 9, "line": {"width": 1.4, "color": hues}}
    rows, words = list(range(len(mentions))), [_hover(mention) for mention in mentions]
    return marks([1.0] * len(mentions), rows, words, mode="markers", marker=marker, cliponaxis=False)


def _hover(mention: ShownMention) -> str:
    sentence = "<br>".join(map(plain_text, textwrap.wrap(mention.sentence, HOVER_WIDTH)[:8]))
    gold = "not known" if mention.gold is None else plain_text(mention.gold)
    where = f"document {plain_text(mention.document)}<br>gold: {gold}"
    return f"<b>{plain_text(mention.text)}</b><br>{sentence}<br>{where}"


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
