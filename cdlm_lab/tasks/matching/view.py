"""Which sentences of a document a matcher aligns with another document, as in Figure 4 of the CDA paper (Zhou
et al. 2020, appendix A.6).

The sentences are listed in order; a number, a bar and the depth of a blue background show their weights."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from textwrap import wrap

import plotly.graph_objects as go

from cdlm_lab.views import charts, html
from cdlm_lab.views.charts import plain_text
from cdlm_lab.views.html import CROSS, MUTED, SMALL, counted, div, escaped, name_html, span
from cdlm_lab.views.tables import SystemRow

RANDOM = "random"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedColumn:
    """The weights that one system gives to the sentences."""

    name: str  # name of the system to show
    # One finite weight per sentence; the largest is drawn deepest, those of 0 or below have no background.
    # None = the system has not read the sentence.
    weights: Sequence[float | None]
    shares: bool = False  # True = the weights are parts of a whole, such as attention, written in per cent
    decision: float | None = None  # probability that the documents are related; None = not shown
    others_read: int | None = None  # how many sentences of the other document it has read; None = all

    def __post_init__(self) -> None:
        for place, weight in enumerate(self.weights):
            if weight is not None and not math.isfinite(weight):
                raise ValueError(
                    f"{self.name}: the weight of sentence {place} is {weight}; it must be finite"
                )
        read = [weight for weight in self.weights if weight is not None]
        least = min(read, default=0.0)
        if self.shares and read and not (abs(sum(read) - 1) < 0.02 and least >= 0):
            total = f"{sum(read):.3f}, the least is {least:.3f}"
            raise ValueError(f"{self.name}: shares add up to 1 and none is negative; their sum is {total}")
        if self.decision is not None:
            name = f"{self.name}: the probability that the documents are related"
            html.check_between(name, self.decision)

    def cells(self, *, ground: bool) -> list[str]:
        """Return each sentence's weight as number and bar; `ground`: True = on a blue background."""
        cells = []
        for weight, strength in zip(self.weights, self.strengths, strict=True):
            if weight is None:
                cells.append(div(span("not read", SMALL), "width:64px;margin-left:auto"))
                continue
            text = f"{100 * weight:.1f}%" if self.shares else f"{weight:.3f}".replace("-", "\u2212")
            box = f"width:64px;margin-left:auto;{_ground(strength) if ground else ''}"
            cells.append(div(html.share_bar(strength, text, width=64), box))
        return cells

    @property
    def strengths(self) -> list[float]:
        """Each weight divided by the largest, in [0, 1]; negative ones are 0, all are if none is above 0."""
        largest = max((weight for weight in self.weights if weight is not None), default=0.0)
        return [max(weight or 0.0, 0.0) / largest if largest > 0 else 0.0 for weight in self.weights]

    def unread_in_words(self, others: int) -> str:
        """What of both documents the system has not read, of which the other one has `others` sentences; ""
        if it has read all."""
        lost, count = sum(weight is None for weight in self.weights), len(self.weights)
        lost_of_other = 0 if self.others_read is None else others - self.others_read
        parts = [f"{lost:,} of {counted(count, 'sentence')} of the first document"] if lost else []
        if lost_of_other > 0:
            parts.append(f"{lost_of_other:,} of {counted(others, 'sentence')} of the second")
        return f"{self.name} has not read {' and '.join(parts)}, which count for nothing" if parts else ""


def _ground(strength: float) -> str:
    return f"border-radius:3px;padding:2px 6px 3px;{html.blue_ground(strength)}"


def compared_alignments_html(
    columns: Sequence[AlignedColumn],
    sentences: Sequence[str],
    gold: Collection[int] = (),
    *,
    title: str,
    other_title: str,
    other_sentences: Sequence[str],
) -> str:
    """Return a row for each sentence of a document: its weight by each system, each on its own scale, and its
    text. With one system the text has the blue background, with several each weight has.

    `sentences` and `title` belong to the first document, `other_...` to the second, which is folded below;
    all texts are untrusted. `gold`: indices of the gold sentences, from 0; () = none, or not known."""
    _check(sentences, columns, gold)
    numbers = [span(f"{place + 1}", SMALL) for place in range(max(len(sentences), len(other_sentences)))]
    titles = [name_html(name, "font-weight:600") for name in (title, other_title)]
    compared = span("compared with", MUTED)
    parts = [f"<div>{titles[0]} {compared} {titles[1]}</div>"]
    parts += [html.warning(column.unread_in_words(len(other_sentences))) for column in columns]
    if alone := len(columns) == 1:
        heads, grounds = ["weight"], columns[0].strengths
        if columns[0].decision is not None:
            probability = f"<b>{100 * columns[0].decision:.1f}%</b>"
            parts.append(f"<div>probability that they are related: {probability}</div>")
    else:
        heads, grounds = list(map(_head, columns)), [0.0] * len(sentences)
    cells = zip(*(column.cells(ground=not alone) for column in columns), strict=True)
    silent = [all(column.weights[place] is None for column in columns) for place in range(len(sentences))]
    each = enumerate(zip(sentences, grounds, silent, strict=True))
    texts = [_sentence(text, ground, place in gold, unread=lost) for place, (text, ground, lost) in each]
    rows = [[number, *weights, text] for number, weights, text in zip(numbers, cells, texts, strict=False)]
    parts.append(html.table_html(["", *heads, ""], rows, text_columns=(len(columns) + 1,)))
    box = '<div style="margin:3px 0;line-height:1.5;overflow-wrap:anywhere;max-width:980px" dir="auto">'
    counts = [len(other_sentences) if one.others_read is None else one.others_read for one in columns]
    shown = [*map(escaped, other_sentences)]
    shown[max(counts) :] = map(html.unread, shown[max(counts) :])
    body = "".join(f"{box}{number}&ensp;{text}</div>" for number, text in zip(numbers, shown, strict=False))
    parts.append(html.fold(f"the other document: <bdi>{escaped(other_title)}</bdi>", body))
    meaning = "Number, bar and depth of blue: weight of the sentence; the bar is full at the largest."
    signs = [meaning, "<b>*</b>: the true sentence." if gold else ""]
    signs.append(f"{html.unread('Struck out')}: not read by any system." if any(silent) else "")
    parts.append(html.muted(" ".join(filter(None, signs))))
    return html.view_html("aligned", "".join(parts), width=1100)


def _check(sentences: Sequence[str], columns: Sequence[AlignedColumn], gold: Collection[int]) -> None:
    if not columns:
        raise ValueError("there is no system to compare: columns is empty")
    if not sentences:
        raise ValueError("there are no sentences to show")
    for column in columns:
        if len(column.weights) != len(sentences):
            counts = f"{len(column.weights)} weights for {len(sentences)} sentences"
            raise ValueError(f"{column.name}: {counts}; give one for each")
    if outside := [number for number in gold if not 0 <= number < len(sentences)]:
        what = f"true sentence {outside[0]} is none of the {len(sentences)}"
        raise ValueError(f"{what}; sentences are numbered from 0")


def _sentence(sentence: str, strength: float, true: bool, *, unread: bool) -> str:
    """Return a sentence with its background; a gold one has a line before, an asterisk and words after it."""
    words = f"<b>*</b> {span('the true sentence', SMALL)}"
    plain = html.unread(escaped(sentence)) if unread else escaped(sentence)
    text = f"{plain} {span(words, 'white-space:nowrap')}" if true else plain
    line = f"border-left:3px solid {CROSS if true else 'transparent'};padding-left:8px"
    return div(html.text_box(text, f"max-width:880px;{_ground(strength)}"), line)


def _head(column: AlignedColumn) -> str:
    """Return the name of a system, and below it its probability that the documents are related."""
    related = "" if column.decision is None else f"related: {100 * column.decision:.1f}%"
    below = div(related, f"font-size:11px;font-weight:400;{MUTED}") if related else ""
    return div(f"{name_html(column.name)}{below}", "max-width:96px;margin-left:auto")


_COLOURS = (html.GLOBAL, html.MASKED, CROSS, *html.OTHER_COLOURS)
_PATTERNS = ("", "/", ".", "x")  # so that bars can be distinguished without their hue


def alignment_figure(rows: Sequence[SystemRow]) -> go.Figure:
    """Plot the MRR of each system as a group of bars, one for each way of ranking, with 95% intervals. Groups
    are in the order of the rows; the system `random` is a dashed line.

    `rows` are named by system and way of ranking, such as `gru-han/cosine`, and labelled by system. Raises
    ValueError if there is no system, one is repeated, or one has no MRR."""
    groups: dict[str, list[SystemRow]] = {}
    for row in _checked_bars(rows):
        groups.setdefault(row.system.partition("/")[0], []).append(row)
    width = 0.7 / max(map(len, groups.values()))
    ways: dict[str, list[tuple[float, SystemRow]]] = {}  # way of ranking -> (position, row) of its bars
    for place, group in enumerate(groups.values()):
        for number, row in enumerate(group):
            at = place + (number - (len(group) - 1) / 2) * width  # groups of fewer bars are centred
            ways.setdefault(row.system.partition("/")[2], []).append((at, row))
    figure = go.Figure()
    for number, (way, bars) in enumerate(ways.items()):
        figure.add_trace(_bars(bars, number).update(width=0.92 * width, name=plain_text(way) or "all"))
    names = [wrap(html.visible(group[0].label), 14) for group in groups.values()]  # wrapped, so never rotated
    labels = ["<br>".join(map(plain_text, lines)) for lines in names]
    axis = charts.rows_of_an_axis(labels, room=(0.55, 0.55))
    for row in rows:
        if row.system == RANDOM:
            line = {"mode": "lines", "line": {"color": html.TEXT, "width": 2, "dash": "dash"}}
            words = {"name": plain_text(row.label), "words": _in_words(row)}
            figure.add_trace(charts.marks(axis["range"], [row.scores["mrr"].value] * 2, **line, **words))
    figure.update_xaxes(axis, ticks="", tickfont_size=13)
    figure.update_yaxes(range=[0, 1])
    y = "MRR, documents known to be related"
    return charts.lay_out(figure, title="", y=y, barmode="overlay", margin_t=60)


def _bars(bars: Sequence[tuple[float, SystemRow]], number: int) -> go.Bar:
    """Return the bars, (position, row), of one way of ranking, whose `number` sets colour and pattern."""
    shape = _PATTERNS[number % len(_PATTERNS)]
    pattern = {"shape": shape, "fillmode": "overlay", "fgcolor": "white", "solidity": 0.15, "size": 7}
    scores = [row.scores["mrr"] for _, row in bars]
    values = [score.value for score in scores]
    lows = [score.value if score.low is None else score.low for score in scores]
    highs = [score.value if score.high is None else score.high for score in scores]
    return go.Bar(
        x=[at for at, _ in bars],
        y=values,
        # Translucent, so that the lower end of an interval is visible behind the bar.
        marker={"color": _COLOURS[number % len(_COLOURS)], "opacity": 0.7, "pattern": pattern},
        error_y=charts.interval(values, lows, highs, color=html.TEXT, thickness=2, width=5),
        hovertext=[_in_words(row) for _, row in bars],
        hoverinfo="text",
    )


def _checked_bars(rows: Sequence[SystemRow]) -> list[SystemRow]:
    """Return the rows that become bars, all but `random`; ValueError for invalid rows."""
    names = [row.system for row in rows]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two rows of {repeated[0]}; give each system once")
    if without := [row.system for row in rows if "mrr" not in row.scores]:
        raise ValueError(f"{without[0]} has no mrr; leave the row out")
    bars = [row for row in rows if row.system != RANDOM]
    if not bars:
        what = "all rows are random" if rows else "rows is empty"
        raise ValueError(f"there is no system to show: {what}")
    return bars


def _in_words(row: SystemRow) -> str:
    """Describe a row in words, such as `GRU-HAN, attention: MRR 0.5430 (0.5200 to 0.5600)`."""
    name, score = ", ".join(filter(None, (row.label, row.system.partition("/")[2]))), row.scores["mrr"]
    bounds = "" if score.low is None else f" ({score.low:.4f} to {score.high:.4f})"
    return plain_text(f"{name}: MRR {score.value:.4f}{bounds}")
