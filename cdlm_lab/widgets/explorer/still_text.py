"""Documents beside each other as plain HTML: what is chosen in them, how strongly a model looks at words.

Words that look alike and stand together share one element, so that long documents stay small.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from itertools import groupby

import numpy as np

from cdlm_lab.widgets.explorer.records import Panel, Place, Selection, ShownDocument
from cdlm_lab.widgets.html import FRAME, MUTED, count_in_words, escaped, joined, shortened

# As shading.js has them, so that a word looks the same as in the explorer.
STRONGEST, FIRST_SHADED, STEEPNESS, FAINTEST = 0.72, 80, 1.4, 0.005
SHADE = "59,142,208"

# As explorer.css has them.
SOURCE = "border:2px solid #e69f00;border-radius:3px;background-color:rgba(230,159,0,0.45)"
TARGET = "border:2px solid #009e73;border-radius:3px"
GLOBAL = "border-bottom:2px dashed #cc79a7"
MASKED = "text-decoration:line-through"
UNREACHED = "opacity:0.42"
MENTION = '<u style="text-decoration:none;border-bottom:2px solid rgba(128,128,128,0.45)">'

_LABEL = f"font-size:9px;vertical-align:super;line-height:0;{MUTED}"
_COLUMN = f"{FRAME};padding:6px 12px;vertical-align:top;text-align:left;white-space:normal;line-height:1.6"
_NARROWEST = 240  # pixels of a column

Layer = list[tuple[str, str, int]]  # what goes before and after each word; equal neighbours share it
_PLAIN = ("", "", -1)


def shade(rank: float) -> str:
    """The style of a word of that percentile rank; "" = it stays as it is."""
    opacity = 0.0 if rank <= FIRST_SHADED else STRONGEST * ((rank - FIRST_SHADED) / 20) ** STEEPNESS
    return f"background-color:rgba({SHADE},{fixed(opacity, 3)})" if opacity > FAINTEST else ""


def fixed(value: float, digits: int) -> str:
    """A number as JavaScript's toFixed writes it: a tie goes up."""
    return str(Decimal(float(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def isolated(text: str) -> str:
    """Untrusted text that does not turn the direction of what stands around it."""
    return f'<span dir="auto">{escaped(text)}</span>'


def name_of(document: ShownDocument) -> str:
    """The name of a document, cut if it is long."""
    return isolated(shortened(document.name, 60))


def text_of(documents: Sequence[ShownDocument], place: Place) -> str:
    """The words of a span, cut if they are many."""
    number, start, end = place
    return isolated(shortened(joined(documents[number].words[start:end]), 60))


def first_words(documents: Sequence[ShownDocument]) -> np.ndarray:
    """int64 (documents + 1,), number of the first word of each among all words; at the end, of all words."""
    return np.cumsum([0, *(len(document.words) for document in documents)])


def columns_html(
    documents: Sequence[ShownDocument], *, selection: Selection, panel: Panel | None, label: str = ""
) -> str:
    """The documents beside each other.

    Args:
        documents: all of them.
        selection: what is framed.
        panel: what the words are shaded by; None = nothing.
        label: at the target (HTML).
    """
    firsts = first_words(documents)
    cells = []
    for number, document in enumerate(documents):
        words = slice(firsts[number], firsts[number + 1])
        answer = None if panel is None else (panel.ranks[words], panel.reach[words])
        layers = (
            _frames(document, number, selection, label),
            _mentions(document),
            _looks(document, number, selection, answer),
        )
        gaps = document.for_browser()["gaps"]
        text = "".join(
            f'<p style="margin:0 0 5px">{_nested(range(*span), layers, document.words, gaps)}</p>'
            for span in document.sentences
        )
        size = f'<small style="{MUTED}">{count_in_words(len(document.words))} words</small>'
        head = f'<div style="margin-bottom:4px"><b>{name_of(document)}</b>&ensp;{size}</div>'
        cells.append(f'<td style="{_COLUMN}">{head}{text}</td>')
    table = (
        f"width:100%;min-width:{_NARROWEST * len(documents)}px;table-layout:fixed;border-collapse:collapse;"
        "font-size:13.5px;word-wrap:break-word;margin:0"
    )
    row = f'<tr valign="top" style="background-color:transparent">{"".join(cells)}</tr>'
    return f'<div style="overflow-x:auto"><table style="{table}">{row}</table></div>'


def _frames(document: ShownDocument, number: int, selection: Selection, label: str) -> Layer:
    layer = [_PLAIN] * len(document.words)
    for place, style, what in (
        (selection.source, SOURCE, "chosen"),
        (selection.target, TARGET, label or "compared"),
    ):
        if place and place[0] == number:
            close = f'</b><small style="{_LABEL}">&nbsp;{what}</small>'
            layer[place[1] : place[2]] = [(f'<b style="{style}">', close, 0)] * (place[2] - place[1])
    return layer


def _mentions(document: ShownDocument) -> Layer:
    """A line under each mention that is in no other one."""
    layer = [_PLAIN] * len(document.words)
    ordered = sorted(document.mentions, key=lambda mention: (mention[0], -mention[1]))
    for i, (start, end, _) in enumerate(ordered):
        layer[start:end] = [(MENTION, "</u>", i) if old is _PLAIN else old for old in layer[start:end]]
    return layer


def _looks(
    document: ShownDocument,
    number: int,
    selection: Selection,
    answer: tuple[np.ndarray, np.ndarray] | None,
) -> Layer:
    """How strong each word is, and what the model does with it."""

    def spans(places: Sequence[Place | None]) -> set[int]:
        return {word for p in places if p and p[0] == number for word in range(p[1], p[2])}

    source, masked = spans([selection.source]), spans(selection.masked)
    seeing = spans([*selection.extra_global, selection.source if selection.source_global else None])
    counts = document.counts
    layer = []
    for word in range(len(document.words)):
        styles = []
        if answer is not None and not answer[1][word]:
            styles.append(UNREACHED)
        elif answer is not None and counts[word] and word not in source:
            styles.append(shade(np.float32(answer[0][word])))
        styles += [style for style, words in ((GLOBAL, seeing), (MASKED, masked)) if word in words]
        style = ";".join(filter(None, styles))
        layer.append((f'<span style="{style}">', "</span>", -1) if style else _PLAIN)
    return layer


def _nested(words: Sequence[int], layers: Sequence[Layer], texts: Sequence[str], gaps: str) -> str:
    """The words with their spaces, in the elements of the first layer, in them those of the next."""
    if not layers:
        return "".join(f"{' ' * (i != words[0] and gaps[i] == '1')}{escaped(texts[i])}" for i in words)
    pieces = []
    for (before, after, _), group in groupby(words, key=layers[0].__getitem__):
        inside = list(group)
        gap = " " if inside[0] != words[0] and gaps[inside[0]] == "1" else ""
        pieces.append(f"{gap}{before}{_nested(inside, layers[1:], texts, gaps)}{after}")
    return "".join(pieces)
