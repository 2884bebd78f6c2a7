"""What a person sees before training: one packed example, with its masks, its global tokens and its losses of
text.

The picture is plain HTML without scripts. It keeps its meaning in a notebook that JupyterLab does not trust
(see `markup`), follows light and dark themes by inheriting their text colour, and folds long documents away.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np

from cdlm_lab.widgets.markup import (
    FRAME,
    MUTED,
    bytes_in_words,
    count_in_words,
    escaped,
    image_from_svg,
    seconds_in_words,
    share_in_words,
    table_html,
)
from cdlm_lab.widgets.packed_sequence import DocumentLoss, PackedSequence
from cdlm_lab.widgets.sequence_overview import overview_svg
from cdlm_lab.widgets.theme import CROSS, GLOBAL, MASKED
from cdlm_lab.widgets.token_text import KEPT_SIGN, SWAPPED_SIGN, TOKEN_STYLE, MarkedTokens, tokens_html

__all__ = ["DocumentLoss", "PackedPreview", "packed_example_html"]

MIDDOT = " \u00b7 "
SHOWN_WHOLE = 700  # tokens up to which an example is shown without folding
SHOWN_OF_EACH = 110  # tokens of each document that stay in sight when it is folded
CHARACTERS_OF_EACH = 4000  # and, folded or not, no more characters than this: one token may hold thousands
LONGEST_TITLE = 110  # characters

_STYLE = """
div.cdlm-packed{font-size:13.5px;line-height:1.5;color:var(--jp-ui-font-color1,inherit);max-width:1180px}
div.cdlm-packed .cdlm-card{background:var(--jp-layout-color1,transparent)}
div.cdlm-packed bdi{overflow-wrap:anywhere}
div.cdlm-packed summary{cursor:pointer;margin-top:6px;color:var(--jp-content-link-color,inherit)}
div.cdlm-packed table.cdlm-table tr{background:none!important}
"""


class PackedPreview(PackedSequence):
    """A packed training example that shows itself as the last value of a notebook cell; fields as its parent
    has."""

    def _repr_html_(self) -> str:
        return packed_example_html(self)


def packed_example_html(preview: PackedSequence) -> str:
    """The example as one block of HTML: headline numbers, overview, legend, documents, and what was cut."""
    title = f'<div style="font-size:16px;font-weight:600">{_title(preview.title)}</div>'
    return "".join(
        (
            f'<div class="cdlm-packed"><style>{_STYLE}{TOKEN_STYLE}</style>',
            title if preview.title else "",
            _headline(preview),
            _overview(preview),
            _legend(preview),
            _documents(preview),
            _losses(preview),
            "</div>",
        )
    )


def _headline(preview: PackedSequence) -> str:
    text = int((~preview.special).sum())
    masked, global_ = int(preview.masked.sum()), int(preview.global_.sum())
    cut = sum(loss.cut for loss in preview.documents)
    present = sum(loss.kept > 0 for loss in preview.documents)
    short = sum(loss.kept > 0 and loss.cut > 0 for loss in preview.documents)
    left_out = len(preview.documents) - present
    fates = ((present - short, "whole"), (short, "cut short"), (left_out, "left out"))
    tiles = [
        ("tokens", count_in_words(len(preview.tokens)), f"{count_in_words(text)} of them text"),
        ("documents", count_in_words(present), ", ".join(f"{n} {fate}" for n, fate in fates if n)),
        *(
            [("masked", count_in_words(masked), f"{share_in_words(masked, text)} of the text")]
            if masked
            else []
        ),
        ("global", count_in_words(global_), f"{share_in_words(global_, len(preview.tokens))} of all tokens"),
        ("text cut", count_in_words(cut), f"{share_in_words(cut, text + cut)} of all text"),
    ]
    if preview.memory_bytes is not None:
        tiles.append(("memory", bytes_in_words(preview.memory_bytes), "estimated peak"))
    if preview.step_seconds is not None:
        tiles.append(("time", seconds_in_words(preview.step_seconds), "estimated a step"))
    return f'<div style="margin:10px 0 14px">{"".join(_tile(*tile) for tile in tiles)}</div>'


def _tile(name: str, value: str, note: str) -> str:
    return (
        '<div style="display:inline-block;vertical-align:top;margin:0 20px 8px 0">'
        f'<div style="font-size:12px;{MUTED}">{name}</div>'
        f'<div style="font-size:19px;font-weight:600;line-height:1.25">{value}</div>'
        f'<div style="font-size:12px;{MUTED}">{note}</div></div>'
    )


def _overview(preview: PackedSequence) -> str:
    lanes = [("global", preview.global_, GLOBAL)]
    if preview.masked.any():
        lanes.insert(0, ("masked", preview.masked, MASKED))
    if preview.cross_document.any():
        lanes.append(("also elsewhere", preview.cross_document, CROSS))
    description = "The sequence from first to last token: documents, " + ", ".join(
        name for name, _, _ in lanes
    )
    return image_from_svg(overview_svg(preview.document, lanes), description=description)


def _legend(preview: PackedSequence) -> str:
    entries = _masked_entries(preview) if preview.masked.any() else []  # sequences of tasks mask nothing
    shown = int(preview.global_.sum())
    entries.append(("<u>word</u>", "global: sees every token, and is seen by every token", shown))
    if preview.cross_document.any():
        shown = int(preview.cross_document.sum())
        entries.append(("<b>word</b>", "part of a fact that another document states too", shown))
    entries.append(("<small>mark</small>", "special token", int(preview.special.sum())))
    items = "".join(
        f'<div>{sample}&ensp;<span style="{MUTED}">{meaning} ({count_in_words(count)})</span></div>'
        for sample, meaning, count in entries
    )
    columns = "display:grid;grid-template-columns:repeat(auto-fit,minmax(400px,1fr));gap:5px 24px"
    return f'<div style="font-size:12.5px;margin:14px 0 16px;{columns}">{items}</div>'


def _masked_entries(preview: PackedSequence) -> list[tuple[str, str, int]]:
    """Sample, meaning and count of each thing that can stand in place of a masked token."""
    marked = preview.marked
    became = [marked.replaced_by(i) for i in np.flatnonzero(preview.masked)]
    hidden = f"hidden behind {escaped(preview.mask_token)}: the word to give back"
    swapped = f"<mark>word<i>{SWAPPED_SIGN}other</i></mark>"
    return [
        ("<mark>word</mark>", hidden, became.count("hidden")),
        (swapped, "masked by a random other word", became.count("swapped")),
        (f"<mark>word<i>{KEPT_SIGN}</i></mark>", "masked, but left as it is", became.count("kept")),
    ]


def _documents(preview: PackedSequence) -> str:
    """Cards side by side, in the order of the sequence; tokens of no document stand before, between or after
    them."""
    marked = preview.marked
    folded = len(preview.tokens) > SHOWN_WHOLE
    blocks: list[str] = []
    for number, run in groupby(range(len(preview.tokens)), lambda i: int(preview.document[i])):
        positions = list(run)
        if number < 0:
            blocks.append(
                f'<div class="cdlm-text" style="grid-column:1/-1">{tokens_html(marked, positions)}</div>'
            )
        else:
            blocks.append(_card(preview, marked, number, positions, folded))
    # Three or six documents stand three abreast, others two; fewer where the page is narrow.
    narrowest = 290 if sum(loss.kept > 0 for loss in preview.documents) % 3 == 0 else 340
    columns = f"grid-template-columns:repeat(auto-fit,minmax({narrowest}px,1fr));gap:12px;align-items:start"
    return f'<div style="display:grid;{columns}">{"".join(blocks)}</div>'


def _card(
    preview: PackedSequence, marked: MarkedTokens, number: int, positions: list[int], folded: bool
) -> str:
    loss = preview.documents[number]
    global_ = int(preview.global_[positions].sum())
    kept = (
        f"{count_in_words(loss.kept)} of {count_in_words(loss.kept + loss.cut)} tokens"
        if loss.cut
        else f"{count_in_words(loss.kept)} tokens, whole"
    )
    in_sight = _tokens_in_sight(preview, positions, folded)
    head, rest = positions[:in_sight], positions[in_sight:]
    body = f'<div class="cdlm-text" dir="auto">{tokens_html(marked, head)}</div>'
    if rest:
        more = f"{count_in_words(len(rest))} more tokens{_masked(preview, rest, ', ')}"
        body += (
            f"<details><summary>{more}</summary>"
            f'<div class="cdlm-text" dir="auto">{tokens_html(marked, rest)}</div></details>'
        )
    return (
        f'<div class="cdlm-card" style="{FRAME};border-radius:8px;padding:10px 14px 12px">'
        f'<div style="font-weight:600">{number + 1}&ensp;{_title(loss.title)}</div>'
        f'<div style="font-size:12px;margin-bottom:6px;{MUTED}">{kept}{_masked(preview, positions, MIDDOT)}'
        f"{MIDDOT}{count_in_words(global_)} global</div>{body}</div>"
    )


def _masked(preview: PackedSequence, positions: list[int], before: str) -> str:
    """How many of these tokens are masked, for people; "" where nothing in the sequence is."""
    count = count_in_words(int(preview.masked[positions].sum()))
    return f"{before}{count} masked" if preview.masked.any() else ""


def _tokens_in_sight(preview: PackedSequence, positions: list[int], folded: bool) -> int:
    """How many tokens of a document stand outside the fold."""
    characters = np.cumsum([len(preview.tokens[i]) + 1 for i in positions])
    fitting = int(np.searchsorted(characters, CHARACTERS_OF_EACH, side="right"))
    few_left = len(positions) <= SHOWN_OF_EACH + 20  # a fold for a line or two is more bother than it saves
    return fitting if not folded or few_left else min(fitting, SHOWN_OF_EACH)


def _title(text: str) -> str:
    shown = text if len(text) <= LONGEST_TITLE else text[: LONGEST_TITLE - 1] + "\u2026"
    return f"<bdi>{escaped(shown)}</bdi>"


def _losses(preview: PackedSequence) -> str:
    if not preview.documents:
        return ""
    rows = [
        (
            f"{number}&ensp;{_title(loss.title)}",
            count_in_words(loss.kept),
            count_in_words(loss.cut) if loss.cut else "\u2013",
            share_in_words(loss.cut, loss.kept + loss.cut) if loss.cut else "\u2013",
            f"<bdi>{escaped(loss.reason)}</bdi>",
        )
        for number, loss in enumerate(preview.documents, start=1)
    ]
    table = table_html(("document", "kept", "cut", "share", "why"), rows, text_columns=(0, 4))
    return f'<div style="margin-top:16px;font-weight:600">Tokens kept and cut</div>{table}'
