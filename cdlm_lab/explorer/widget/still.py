"""The explorer as plain HTML, for places where no script runs: untrusted or converted notebooks, and GitHub.

GitHub removes styles that JupyterLab keeps, so the chosen, compared and strongest words are also named in
text. Adjacent words of the same look share one element, so that long documents stay small."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal
from itertools import groupby

import numpy as np

from cdlm_lab.explorer.reading import Panel, Place, Prediction, Selection
from cdlm_lab.explorer.widget.content import ShownDocument
from cdlm_lab.views.html import FRAME, MUTED, counted, div, escaped, joined, muted, shortened, span

# The same values as in drawing.js, so that a word looks the same as in the explorer.
STRONGEST, FIRST_SHADED, STEEPNESS, FAINTEST = 0.68, 80, 1.4, 0.005
SHADE = "59,142,208"

# The same styles as in explorer.css.
SOURCE = "border:2px solid #e69f00;border-radius:3px;background-color:rgba(230,159,0,0.45)"
TARGET = "border:2px solid #009e73;border-radius:3px"
GLOBAL = "border-bottom:2px dashed #cc79a7"
MASKED = "text-decoration:line-through"
UNREACHED = "opacity:0.68"
MENTION = '<u style="text-decoration:none;border-bottom:2px solid rgba(128,128,128,0.45)">'

NAMED = 8  # how many of the strongest words are named: as many as the explorer draws curves to
_LABEL = f"font-size:9px;vertical-align:super;line-height:0;{MUTED}"
_COLUMN = f"{FRAME};padding:6px 12px;vertical-align:top;text-align:left;white-space:normal;line-height:1.6"
_NARROWEST = 240  # least width of a column, in pixels
CUT = "attention between documents is cut"
CUT_DIRECTLY = ("documents", "layer")  # no word of another document has weight
CUTS = {
    "documents": "attention between documents cut",
    "layer": "attention between documents cut in this layer",
    "below": "attention between documents cut in the layers below",
    "random": "as much attention cut within documents",
}
_HINT = (
    "This picture stands still. To choose words, run the notebook, or open the page that <i>save as page</i> "
    "in the explorer writes."
)

Layer = list[tuple[str, str, int]]  # (start tag, end tag, group) of each word; equal neighbours share tags
_PLAIN = ("", "", -1)


def shade(rank: float) -> str:
    """Return the CSS that shades a word of this percentile rank; "" if the rank is too low for a shade."""
    opacity = 0.0 if rank <= FIRST_SHADED else STRONGEST * ((rank - FIRST_SHADED) / 20) ** STEEPNESS
    return f"background-color:rgba({SHADE},{fixed(opacity, 3)})" if opacity > FAINTEST else ""


def fixed(value: float, digits: int) -> str:
    """Write a number as JavaScript's toFixed does, which rounds ties up."""
    return str(Decimal(float(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def isolated(text: str) -> str:
    """Return untrusted text as HTML that cannot change the text direction of what surrounds it."""
    return f'<span dir="auto">{escaped(text)}</span>'


def _share(probability: float) -> str:
    if probability < 5e-5:
        return "&lt; 0.01%"
    return f"{fixed(100 * probability, 2 if probability < 0.01 else 1 if probability < 0.1 else 0)}%"


def still_html(
    documents: Sequence[ShownDocument],
    *,
    selection: Selection,
    panels: Sequence[Panel],
    layers: int,
    title: str,
) -> str:
    """Return what the explorer shows for a selection, as one block of HTML. `title` is untrusted text;
    `panels`: the answer of each model to the selection; empty = there is no answer."""
    before = documents
    documents = [one.edited(number, selection.edits) for number, one in enumerate(documents)]
    still = _Still(documents, selection)
    panels = () if selection.source is None else panels
    parts = [f"<div><b>{escaped(title)}</b></div><div>{still.lead(panels, layers)}</div>", muted(_HINT)]
    parts += [still.legend(shaded=bool(panels)), *still.rewritten(before), *map(still.panel, panels)]
    return div("".join(parts) + ("" if panels else still.columns(None)), "font-size:13.5px;line-height:1.6")


class _Still:
    """Renders the documents, and the user's selection in them, as HTML."""

    def __init__(self, documents: Sequence[ShownDocument], selection: Selection) -> None:
        self.documents, self.selection = documents, selection
        # Index of each document's first word among all words; the last entry is the number of all words.
        self.firsts = np.cumsum([0, *(len(document.words) for document in documents)])

    def text(self, place: Place) -> str:
        """Return the words of a span, shortened to 60 characters."""
        number, start, end = place
        return isolated(shortened(joined(self.documents[number].words[start:end]), 60))

    def quoted(self, place: Place) -> str:
        return f"\u201c{self.text(place)}\u201d"

    def name(self, number: int) -> str:
        return isolated(shortened(self.documents[number].name, 60))

    def lead(self, panels: Sequence[Panel], layers: int) -> str:
        """Return one line that says what is shown."""
        selection = self.selection
        if selection.source is None:
            how = "in a running notebook, click a word, or drag over several"
            return f"No word is chosen yet: {how}, to see where the model looks from there."
        name = self.quoted(selection.source)
        if not panels:
            return f"{name} is chosen, but there is no answer to show."
        most = {"both": f"go with {name}", "from": f"{name} looks at", "to": f"look at {name}"}
        facts = [f"Shaded: the words that {most[selection.direction]} most"]
        facts.append("last layer" if selection.layer == layers - 1 else f"layer {selection.layer + 1}")
        if selection.heads is None:
            facts.append("all heads")
        else:
            *others, last = (str(head + 1) for head in selection.heads)
            facts.append(f"heads {', '.join(others)} and {last}" if others else f"head {last}")
        if selection.cut:
            facts.append(CUTS[selection.cut])
        if selection.reduce == "max":
            facts.append("the strongest of heads and parts of words")
        return ", ".join(facts)

    def legend(self, *, shaded: bool) -> str:
        """Explain the frames, lines and shades that occur in this view."""
        keys, selection = [], self.selection
        frames = ((selection.source, SOURCE, "chosen"), (selection.target, TARGET, "compared"))
        for place, style, what in frames:
            if place:
                keys.append(f'<b style="{style}">{self.text(place)}</b> {what}, in {self.name(place[0])}')
        if selection.extra_global or (selection.source and selection.source_global):
            keys.append(f"{span('word', GLOBAL)} sees everything")
        if selection.masked:
            keys.append(f"{span('word', MASKED)} hidden from the model")
        if any(document.mentions for document in self.documents):
            keys.append(f"{MENTION}word</u> mention")
        if shaded:
            steps = "".join(span("&emsp;", shade(rank)) for rank in (82, 88, 93, 97, 100))
            keys.append(f"{span(steps, FRAME)} top 20% \u2026 top 1% of its document")
        return div(muted(" &emsp; ".join(keys)), "margin:2px 0 8px")

    def rewritten(self, before: Sequence[ShownDocument]) -> Iterator[str]:
        """Yield one line for each edit, with the new word and the original one."""
        for number, word, _ in self.selection.edits:
            old, new = isolated(before[number].words[word]), self.quoted((number, word, word + 1))
            yield div(f"{new} stands for \u201c{old}\u201d in {self.name(number)}", "font-size:12px")

    def panel(self, panel: Panel) -> str:
        """Return the answer of one model: the rank of the compared words, the strongest words of other
        documents, why words are muted, the predictions, and the documents."""
        verdict, label = self.verdict(panel)
        parts = [div(f"<b>{isolated(panel.name)}</b>&ensp;{verdict}", "margin:8px 0 0")]
        if strongest := self.strongest_elsewhere(panel):
            parts.append(muted(f"Strongest in other documents: {'; '.join(strongest)}"))
        sample, why = span("Muted words", UNREACHED), []
        if (panel.read & ~panel.reach).any():
            far = f"too far from {self.quoted(self.selection.source)}, and neither sees everything"
            far = CUT if self.selection.cut in CUT_DIRECTLY else far
            why.append(f"{sample} can carry no weight: {far}")
        if lost := int((~panel.read).sum()):
            why.append(f"{sample} at the ends ({lost} words) are more than the model can read")
        if panel.before is not None and panel.before.target_rank is not None:
            change = "cut" if self.selection.cut else "rewriting"
            why.append(f"Before the {change}: {self.verdict(panel.before)[0]}")
        parts += [div(line, "font-size:12px") for line in why]
        if panel.predictions:
            rows = "".join(f"<li>{self.prediction(one)}</li>" for one in panel.predictions)
            parts.append(f'<div>Predicted for the hidden words:</div><ol style="margin:0">{rows}</ol>')
        return "".join([*parts, div(self.columns(panel, label), "margin-top:4px")])

    def verdict(self, panel: Panel) -> tuple[str, str]:
        """Return the rank of the compared words, or why there is none, as a sentence and as a short label."""
        target, rank = self.selection.target, panel.target_rank
        if target is None or rank is None:
            return "", ""
        words = slice(self.firsts[target[0]] + target[1], self.firsts[target[0]] + target[2])
        name = self.quoted(target)
        if not panel.reach[words].any():
            if not panel.read[words.start]:
                return f"{name} is not read: the documents are longer than what the model takes", "not read"
            far = CUT if self.selection.cut in CUT_DIRECTLY else "too far apart, and neither sees everything"
            return f"{name} has no direct weight: {far}", "no direct weight"
        share = f"{fixed(rank, 1 if 99 < rank < 100 or 0 < rank < 1 else 0)}%"
        return f"{name} ranks above {share} of the words of its document", f"above {share}"

    def strongest_elsewhere(self, panel: Panel) -> list[str]:
        """Return the strongest words outside the document of the source, as one text per document."""
        ranked = np.concatenate([document.counts for document in self.documents]) & panel.reach
        own = self.selection.source[0]
        ranked[self.firsts[own] : self.firsts[own + 1]] = False
        order = np.argsort(-panel.scores, kind="stable")
        words: dict[int, list[str]] = {}
        for i in order[ranked[order]][:NAMED]:
            d = int(np.searchsorted(self.firsts, i, side="right")) - 1
            words.setdefault(d, []).append(self.quoted((d, i - self.firsts[d], i - self.firsts[d] + 1)))
        return [f"{', '.join(texts)} in {self.name(d)}" for d, texts in words.items()]

    def prediction(self, one: Prediction) -> str:
        """Return a model's prediction for a masked span: the original's probability and the best guesses."""
        guesses = ", ".join(f"{isolated(text)} {_share(probability)}" for text, probability in one.top)
        return f"{self.quoted(one.span)} {_share(one.truth_probability)}; most likely {guesses}"

    def columns(self, panel: Panel | None, label: str = "") -> str:
        """Return the documents side by side, shaded by a model's answer; `label` (HTML) marks the target."""
        cells = []
        for number, document in enumerate(self.documents):
            layers = (self.frames(number, label), _mentions(document), self.looks(number, panel))
            words, gaps = document.words, document.gaps
            sentences = (_nested(range(*ends), layers, words, gaps) for ends in document.sentences)
            text = "".join(f'<p dir="auto" style="margin:0 0 5px">{sentence}</p>' for sentence in sentences)
            size = f'<small style="{MUTED}">{counted(len(document.words), "word")}</small>'
            head = div(f"<b>{self.name(number)}</b>&ensp;{size}", "margin-bottom:4px")
            cells.append(f'<td style="{_COLUMN}">{head}{text}</td>')
        table = (
            f"width:100%;min-width:{_NARROWEST * len(self.documents)}px;table-layout:fixed;"
            "border-collapse:collapse;font-size:13.5px;word-wrap:break-word;margin:0"
        )
        row = f'<tr valign="top" style="background-color:transparent">{"".join(cells)}</tr>'
        return div(f'<table style="{table}">{row}</table>', "overflow-x:auto")

    def frames(self, number: int, label: str) -> Layer:
        """Return the layer that draws a frame around the source and around the target."""
        layer = [_PLAIN] * len(self.documents[number].words)
        source, target = self.selection.source, self.selection.target
        for place, style, what in ((source, SOURCE, "chosen"), (target, TARGET, label or "compared")):
            if place and place[0] == number:
                close = f'</b><small dir="auto" style="{_LABEL}">&nbsp;{what}</small>'
                layer[place[1] : place[2]] = [(f'<b style="{style}">', close, 0)] * (place[2] - place[1])
        return layer

    def looks(self, number: int, panel: Panel | None) -> Layer:
        """Return the layer that shades words by rank and marks those unreachable, global or masked."""

        def words_of(places: Iterable[Place | None]) -> set[int]:
            return {word for p in places if p and p[0] == number for word in range(p[1], p[2])}

        selection, first = self.selection, self.firsts[number]
        source, masked = words_of([selection.source]), words_of(selection.masked)
        seeing = words_of([*selection.extra_global, selection.source if selection.source_global else None])
        layer = []
        for word, ranked in enumerate(self.documents[number].counts):
            styles = []
            if panel is not None and not panel.reach[first + word]:
                styles.append(UNREACHED)
            elif panel is not None and ranked and word not in source:
                styles.append(shade(np.float32(panel.ranks[first + word])))
            styles += [style for style, words in ((GLOBAL, seeing), (MASKED, masked)) if word in words]
            style = ";".join(filter(None, styles))
            layer.append((f'<span style="{style}">', "</span>", -1) if style else _PLAIN)
        return layer


def _mentions(document: ShownDocument) -> Layer:
    """Return the layer that underlines each mention; of nested mentions only the outermost."""
    layer = [_PLAIN] * len(document.words)
    ordered = sorted(document.mentions, key=lambda mention: (mention[0], -mention[1]))
    for i, (start, end, _) in enumerate(ordered):
        layer[start:end] = [(MENTION, "</u>", i) if old is _PLAIN else old for old in layer[start:end]]
    return layer


def _nested(words: Sequence[int], layers: Sequence[Layer], texts: Sequence[str], gaps: Sequence[bool]) -> str:
    """Return the words with their spaces as HTML; elements of each layer are nested in the one before."""
    if not layers:
        return "".join(f"{' ' * (i != words[0] and gaps[i])}{escaped(texts[i])}" for i in words)
    pieces = []
    for (before, after, _), group in groupby(words, key=layers[0].__getitem__):
        inside = list(group)
        gap = " " if inside[0] != words[0] and gaps[inside[0]] else ""
        pieces.append(f"{gap}{before}{_nested(inside, layers[1:], texts, gaps)}{after}")
    return "".join(pieces)
