"""The explorer where no script runs, as in an untrusted notebook, a converted one, or on GitHub: plain HTML.

Only tags and inline styles that JupyterLab's sanitizer keeps (see `markup`). GitHub takes out the styles too,
so what is chosen, compared and strongest is also said in words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cdlm_lab.widgets.explorer.records import Panel, Prediction, Selection, ShownDocument
from cdlm_lab.widgets.explorer.still_text import (
    GLOBAL,
    MASKED,
    MENTION,
    SOURCE,
    TARGET,
    UNREACHED,
    columns_html,
    first_words,
    fixed,
    isolated,
    name_of,
    shade,
    text_of,
)
from cdlm_lab.widgets.html import FRAME, escaped, muted

NAMED = 8  # strongest words that are named: as many as the explorer draws curves to
_HINT = (
    "This picture stands still. To choose words, run the notebook, or open the page that <i>save as page</i> "
    "in the explorer writes."
)


def still_html(
    documents: Sequence[ShownDocument],
    *,
    selection: Selection,
    panels: Sequence[Panel],
    layers: int,
    title: str,
) -> str:
    """What the explorer shows, as one block of HTML.

    Args:
        documents: all of them.
        selection: what is chosen.
        panels: the answer to it, of each model; empty = there is none.
        layers: of the models.
        title: above it (untrusted text).
    """
    if selection.source is None:
        panels = ()
    parts = [
        f"<div><b>{escaped(title)}</b></div>",
        f"<div>{_lead(documents, selection, panels, layers)}</div>",
    ]
    parts += [muted(_HINT), _legend(documents, selection, shaded=bool(panels))]
    parts += [_panel(documents, selection, panel) for panel in panels]
    if not panels:
        parts.append(columns_html(documents, selection=selection, panel=None))
    return f'<div style="font-size:13.5px;line-height:1.6">{"".join(parts)}</div>'


def _lead(
    documents: Sequence[ShownDocument], selection: Selection, panels: Sequence[Panel], layers: int
) -> str:
    """What is seen, in a line."""
    if selection.source is None:
        return (
            "No word is chosen yet: in a running notebook, click a word, or drag over several, to see where "
            "the model looks from there."
        )
    name = f"\u201c{text_of(documents, selection.source)}\u201d"
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
    if selection.reduce == "max":
        facts.append("the strongest of heads and parts of words")
    return ", ".join(facts)


def _legend(documents: Sequence[ShownDocument], selection: Selection, *, shaded: bool) -> str:
    """What the frames, lines and shades mean that are there."""
    keys = []
    for place, style, what in ((selection.source, SOURCE, "chosen"), (selection.target, TARGET, "compared")):
        if place:
            text, name = text_of(documents, place), name_of(documents[place[0]])
            keys.append(f'<b style="{style}">{text}</b> {what}, in {name}')
    if selection.extra_global or (selection.source and selection.source_global):
        keys.append(f'<span style="{GLOBAL}">word</span> sees everything')
    if selection.masked:
        keys.append(f'<span style="{MASKED}">word</span> hidden from the model')
    if any(document.mentions for document in documents):
        keys.append(f"{MENTION}word</u> mention")
    if shaded:
        steps = "".join(f'<span style="{shade(rank)}">&emsp;</span>' for rank in (82, 88, 93, 97, 100))
        keys.append(f'<span style="{FRAME}">{steps}</span> top 20% \u2026 top 1% of its document')
    return f'<div style="margin:2px 0 8px">{muted(" &emsp; ".join(keys))}</div>'


def _panel(documents: Sequence[ShownDocument], selection: Selection, panel: Panel) -> str:
    """The answer of one model."""
    verdict, label = _verdict(documents, selection, panel)
    parts = [f'<div style="margin:8px 0 0"><b>{isolated(panel.name)}</b>&ensp;{verdict}</div>']
    if strongest := _strongest_elsewhere(documents, selection, panel):
        parts.append(muted(f"Strongest in other documents: {'; '.join(strongest)}"))
    parts += [
        f'<div style="font-size:12px">{line}</div>' for line in _muted_words(documents, selection, panel)
    ]
    if panel.predictions:
        rows = "".join(f"<li>{_prediction(documents, one)}</li>" for one in panel.predictions)
        parts.append(f'<div>What it puts for hidden words:</div><ol style="margin:0">{rows}</ol>')
    columns = columns_html(documents, selection=selection, panel=panel, label=label)
    parts.append(f'<div style="margin-top:4px">{columns}</div>')
    return "".join(parts)


def _muted_words(documents: Sequence[ShownDocument], selection: Selection, panel: Panel) -> list[str]:
    """Why words are muted, if any are."""
    sample, lines = f'<span style="{UNREACHED}">Muted words</span>', []
    if (panel.read & ~panel.reach).any():
        far = f"too far from \u201c{text_of(documents, selection.source)}\u201d, and neither sees everything"
        lines.append(f"{sample} can carry no weight: {far}")
    if lost := int((~panel.read).sum()):
        lines.append(f"{sample} at the ends ({lost} words) are more than the model can read")
    return lines


def _verdict(documents: Sequence[ShownDocument], selection: Selection, panel: Panel) -> tuple[str, str]:
    """What there is to say of the compared words, as a sentence and as a label."""
    if selection.target is None or panel.target_rank is None:
        return "", ""
    number, start, end = selection.target
    first = first_words(documents)[number]
    name = f"\u201c{text_of(documents, selection.target)}\u201d"
    if not panel.reach[first + start : first + end].any():
        if not panel.read[first + start]:
            return f"{name} is not read: the documents are longer than what the model takes", "not read"
        return f"{name} has no direct weight: too far apart, and neither sees everything", "no direct weight"
    rank = panel.target_rank
    share = f"{fixed(rank, 1 if 99 < rank < 100 or 0 < rank < 1 else 0)}%"
    return f"{name} ranks above {share} of the words of its document", f"above {share}"


def _strongest_elsewhere(documents: Sequence[ShownDocument], selection: Selection, panel: Panel) -> list[str]:
    """The strongest words of other documents than the source's, a text for each document."""
    firsts = first_words(documents)
    ranked = np.concatenate([document.counts for document in documents]) & panel.reach
    ranked[firsts[selection.source[0]] : firsts[selection.source[0] + 1]] = False
    order = np.argsort(-panel.scores, kind="stable")
    strongest = order[ranked[order]][:NAMED]
    numbers = np.searchsorted(firsts, strongest, side="right") - 1
    words: dict[int, list[str]] = {}
    for d, i in zip(numbers, strongest, strict=True):
        place = (d, i - firsts[d], i - firsts[d] + 1)
        words.setdefault(d, []).append(f"\u201c{text_of(documents, place)}\u201d")
    return [f"{', '.join(texts)} in {name_of(documents[d])}" for d, texts in words.items()]


def _prediction(documents: Sequence[ShownDocument], one: Prediction) -> str:
    guesses = ", ".join(f"{isolated(text)} {_share(probability)}" for text, probability in one.top)
    return (
        f"\u201c{text_of(documents, one.span)}\u201d {_share(one.truth_probability)}; most likely {guesses}"
    )


def _share(probability: float) -> str:
    return f"{fixed(100 * probability, 2 if probability < 0.01 else 1 if probability < 0.1 else 0)}%"
