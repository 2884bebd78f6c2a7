"""A view to check training data before training: packed examples, token by token, with their masks, global
tokens and truncated text.

Each property has its own style, so that one token can show all of them and none depends on hue alone:

| property | tag | with our stylesheet | without it (untrusted notebook) |
|---|---|---|---|
| masked | `<mark>` | amber ground, a sign if swapped or kept | yellow ground, the same signs |
| global | `<u>` | blue line below | line below |
| stated in another document too | `<b>` | green dots above | bold |
| special token | `<small>` | grey tablet | small print |

Tags without attributes also keep an example of 4,096 tokens below 100 kB.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, Self

import numpy as np
from markupsafe import Markup

from cdlm_lab.examples.tokens import from_tokenizer, token_texts
from cdlm_lab.views import html
from cdlm_lab.views.html import CROSS, GLOBAL, MASKED, MUTED, div, escaped
from cdlm_lab.views.templates import view

SWAPPED_SIGN = "\u2192"  # an arrow, which the replacing word follows
KEPT_SIGN = "="
LONGEST_SPECIAL_RUN = 3  # a longer run of equal special tokens (padding) is shown once, with its length
SHOWN_WHOLE = 700  # most tokens of an example that is shown without folding
SHOWN_OF_EACH = 110  # tokens of each document that remain visible when it is folded
CHARACTERS_OF_EACH = 4000  # most visible characters of a document, folded or not: a token may have thousands
TOKEN_STYLE = f"""
div.cdlm-packed bdi{{overflow-wrap:anywhere}}
div.cdlm-packed .cdlm-text{{white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.85}}
div.cdlm-packed mark{{background:{MASKED}59;color:inherit;border-radius:3px;padding:1px 2px;margin:0 -1px}}
div.cdlm-packed mark i{{font-style:normal;font-size:.82em;opacity:.8;padding-left:3px}}
div.cdlm-packed u{{text-decoration:underline solid {GLOBAL} 2px;text-underline-offset:4px;
 text-decoration-skip-ink:none}}
div.cdlm-packed b{{font-weight:inherit;padding-top:1px;
 background:linear-gradient(90deg,{CROSS} 50%,transparent 50%) 0 0/5px 2px repeat-x}}
div.cdlm-packed small{{font:11px/1 ui-monospace,SFMono-Regular,Menlo,'DejaVu Sans Mono',monospace;opacity:.75;
 border:1px solid rgba(128,128,128,.5);border-radius:3px;padding:1px 3px;white-space:nowrap}}
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class MarkedTokens:
    """The tokens of one example with their properties; all fields but `mask_token` have one entry a token."""

    # Token texts (untrusted), without subword markers such as `##` or a leading space.
    tokens: Sequence[str]
    # The model's input in place of a masked token, which it must predict: `mask_token`, another word, or the
    # token itself; None = the token is not masked.
    replacement: Sequence[str | None]
    global_: np.ndarray  # bool (seq,), True = attends to every token and is attended to by every token
    special: np.ndarray  # bool (seq,), True = a special token of the tokenizer, not text
    starts_word: np.ndarray  # bool (seq,), True = the token is preceded by a space
    # Bool (seq,), True = part of a fact that another document of the example also states.
    cross_document: np.ndarray
    mask_token: str  # the text of the mask token

    @classmethod
    def of(
        cls,
        tokenizer: Any,
        input_ids: np.ndarray,
        *,
        read: np.ndarray | None = None,
        masked: np.ndarray | None = None,
        **flags: Any,
    ) -> Self:
        """The tokens of a sequence. `read`: the ids that the model sees, where some are `masked` (bool
        (seq,)), None = none are; `flags`: further fields, of which those that are missing are False
        everywhere."""
        tokens, starts_word = token_texts(tokenizer, input_ids)
        none = np.zeros(len(tokens), dtype=bool)
        seen = tokens if read is None else token_texts(tokenizer, read)[0]
        hidden = none if masked is None else masked
        given = {"special": from_tokenizer(tokenizer).is_special(input_ids)} if "special" not in flags else {}
        return cls(
            tokens=tokens,
            starts_word=starts_word,
            replacement=[text if hides else None for text, hides in zip(seen, hidden, strict=True)],
            mask_token=tokenizer.mask_token,
            **{"global_": none, "cross_document": none} | given | flags,
        )

    @cached_property
    def masked(self) -> np.ndarray:
        """bool (seq,), True = the token is masked, and the model must predict it."""
        return np.array([instead is not None for instead in self.replacement], dtype=bool)

    def replaced_by(self, i: int) -> str | None:
        """Return how token `i` is masked: `hidden`, `swapped` (another word), `kept`; None = not masked."""
        instead = self.replacement[i]
        if instead in (None, self.mask_token):
            return "hidden" if instead else None
        return "kept" if instead == self.tokens[i] else "swapped"


@dataclass(frozen=True, kw_only=True)
class DocumentLoss:
    """Number of a document's text tokens that packing truncated, and why; `title`: untrusted title or id."""

    title: str
    cut: int = 0
    reason: str = ""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PackedPreview(MarkedTokens):
    """A packed training example, which a notebook displays as the last value of a cell."""

    document: np.ndarray  # int (seq,), index into `documents`; -1 = belongs to none (`[CLS]`, `[SEP]`)
    # One record for each document, including those of which nothing was kept.
    documents: Sequence[DocumentLoss]
    title: str  # headline, such as the variant and the corpus
    memory_bytes: float  # estimated peak memory of one training step
    step_seconds: float | None = None  # estimated time of one training step; None = not shown

    @cached_property
    def kept(self) -> list[int]:
        """Number of text tokens of each document in the sequence."""
        of_text = self.document[~self.special & (self.document >= 0)]
        return np.bincount(of_text, minlength=len(self.documents)).tolist()

    def __repr__(self) -> str:
        counts = f"{int(self.masked.sum())} masked, {int(self.global_.sum())} global"
        return f"PackedPreview({len(self.tokens)} tokens, {len(self.documents)} documents, {counts})"

    def _repr_html_(self) -> str:
        return packed_example_html(self)


def tokens_html(marked: MarkedTokens, positions: Sequence[int]) -> str:
    """Return the tokens at `positions` (ascending, of one document) as HTML; all texts are escaped."""

    def alike(i: int) -> object:
        # Each masked token has its own tag, so that masks can be counted; other neighbours of a kind share.
        if marked.masked[i]:
            return i
        return marked.tokens[i] if marked.special[i] else bool(marked.cross_document[i])

    pieces = []
    for is_global, together in groupby(positions, lambda i: bool(marked.global_[i])):
        inside = [_piece(marked, list(run)) for _, run in groupby(together, alike)]
        body = _spaced(inside)
        pieces.append((inside[0][0], f"<u>{body}</u>" if is_global else body))
    return _spaced(pieces)


def _piece(marked: MarkedTokens, run: list[int]) -> tuple[bool, str]:
    """Return (is a space before it, HTML) for a run of tokens with the same properties."""
    first = run[0]
    if marked.special[first] and not marked.masked[first]:
        # With explicit direction, so that `dir="auto"` still recognises a document of right-to-left text.
        tablet = f'<small dir="ltr">{escaped(marked.tokens[first])}</small>'
        many = len(run) > LONGEST_SPECIAL_RUN
        return True, f"{tablet} \u00d7 {len(run):,}" if many else " ".join([tablet] * len(run))
    spaces = (" " if marked.starts_word[i] and i != first else "" for i in run)
    body = escaped("".join(space + marked.tokens[i] for space, i in zip(spaces, run, strict=True)))
    body = f"<b>{body}</b>" if marked.cross_document[first] else body
    became = marked.replaced_by(first)
    if became == "swapped":
        body += f"<i>{SWAPPED_SIGN}<bdi>{escaped(marked.replacement[first] or '')}</bdi></i>"
    elif became == "kept":
        body += f"<i>{KEPT_SIGN}</i>"
    return bool(marked.starts_word[first]), f"<mark>{body}</mark>" if became else body


def _spaced(pieces: Iterable[tuple[bool, str]]) -> str:
    """Concatenate pieces, (is a space before it, HTML); the first gets no space."""
    return "".join((" " if spaced and i else "") + body for i, (spaced, body) in enumerate(pieces))


def mask_entries(marked: MarkedTokens) -> list[tuple[str, str, int]]:
    """Return legend entries (sample, meaning, count) for each way in which a token can be masked."""
    became = [marked.replaced_by(i) for i in np.flatnonzero(marked.masked)]
    hidden = f"hidden behind {escaped(marked.mask_token)}: the word to give back"
    swapped = f"<mark>word<i>{SWAPPED_SIGN}other</i></mark>"
    return [
        ("<mark>word</mark>", hidden, became.count("hidden")),
        (swapped, "masked by a random other word", became.count("swapped")),
        (f"<mark>word<i>{KEPT_SIGN}</i></mark>", "masked, but left as it is", became.count("kept")),
    ]


def legend_of(entries: Iterable[tuple[str, str, int]]) -> str:
    """Return a legend of entries (sample, meaning, count); "" if nothing occurs."""
    items = "".join(
        f"<div>{sample}&ensp;{html.span(f'{meaning} ({count:,})', MUTED)}</div>"
        for sample, meaning, count in entries
        if count
    )
    if not items:
        return ""
    columns = "display:grid;grid-template-columns:repeat(auto-fit,minmax(400px,1fr));gap:5px 24px"
    return div(items, f"font-size:12.5px;margin:14px 0 16px;{columns}")


BINS = 240  # bars per lane: fine enough to see where a prefix ends, coarse enough for 10 kB
_LEFT, _WIDTH, _LANE, _GAP = 132, 856, 17, 7


def overview_svg(document: np.ndarray, lanes: Sequence[tuple[str, np.ndarray, str]]) -> str:
    """Draw a sequence as an SVG 1,000 units wide, with a lane of documents and one lane for each property.

    The height of a bar is the proportion of its tokens that have the property, scaled so that the highest bar
    of a lane has full height (otherwise 15% of masks would hardly be visible). `document`: int (seq,), index
    of each token's document; -1 = none. `lanes`: (label, bool (seq,), colour), from top to bottom."""
    tops = [row * (_LANE + _GAP) + 2 for row in range(len(lanes) + 1)]
    labels = ["documents", *(label for label, _, _ in lanes)]
    parts = [f'<text x="0" y="{top + 13}">{label}</text>' for label, top in zip(labels, tops, strict=True)]
    scale, edges = _WIDTH / max(len(document), 1), np.flatnonzero(np.diff(document)) + 1
    for start, stop in zip([0, *edges], [*edges, len(document)], strict=True):
        if start < stop and document[start] >= 0:
            x, width = _LEFT + start * scale, (stop - start) * scale
            place = f'x="{x:.1f}" y="{tops[0]}" width="{max(width - 2, 1):.1f}" height="{_LANE}" rx="3"'
            parts.append(f'<rect {place} fill="#808080" opacity=".24"/>')
            if width > 14:
                place = f'x="{x + width / 2 - 1:.1f}" y="{tops[0] + 13}" text-anchor="middle"'
                parts.append(f"<text {place}>{document[start] + 1}</text>")
    for (_, flags, colour), top in zip(lanes, tops[1:], strict=True):
        place = f'x="{_LEFT}" y="{top}" width="{_WIDTH}" height="{_LANE}"'
        parts.append(f'<rect {place} rx="2" fill="#808080" opacity=".1"/>')
        parts.append(_bars(np.asarray(flags, bool), top + _LANE, colour))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 {len(tops) * (_LANE + _GAP)}" '
        f'font-family="{html.FONT}" font-size="12.5" fill="{html.TEXT}">{"".join(parts)}</svg>'
    )


def _bars(flags: np.ndarray, bottom: int, colour: str) -> str:
    """Return one SVG path for a lane: a bar for each bin in which any token has the property."""
    bins = min(BINS, max(len(flags), 1))
    edges = np.linspace(0, len(flags), bins + 1).astype(int)
    counts = np.diff(np.concatenate([[0], np.cumsum(flags)])[edges])
    shares, step = counts / np.maximum(np.diff(edges), 1), _WIDTH / bins
    tall = np.maximum(shares / max(shares.max(), 1e-9) * _LANE, 1.5)
    moves = "".join(
        f"M{_LEFT + i * step:.1f} {bottom}v-{tall[i]:.1f}h{step * 0.82:.1f}v{tall[i]:.1f}z"
        for i in np.flatnonzero(shares)
    )
    return f'<path fill="{colour}" d="{moves}"/>'


def packed_example_html(preview: PackedPreview) -> str:
    """Return the example as HTML: headline numbers, overview, legend, documents, and what was truncated."""
    entries = mask_entries(preview) if preview.masked.any() else []  # downstream tasks mask nothing
    lanes = [("masked", preview.masked, MASKED)] if preview.masked.any() else []
    sees = "global: sees every token, and is seen by every token"
    entries.append(("<u>word</u>", sees, int(preview.global_.sum())))
    lanes.append(("global", preview.global_, GLOBAL))
    if preview.cross_document.any():
        stated = "part of a fact that another document states too"
        entries.append(("<b>word</b>", stated, int(preview.cross_document.sum())))
        lanes.append(("also elsewhere", preview.cross_document, CROSS))
    entries.append(("<small>mark</small>", "special token", int(preview.special.sum())))
    names = ", ".join(name for name, _, _ in lanes)
    description = f"The sequence from first to last token: documents, {names}"
    overview = html.image_from_svg(overview_svg(preview.document, lanes), description=description)
    places = [(n, list(run)) for n, run in groupby(range(len(preview.tokens)), preview.document.__getitem__)]
    return view(
        "packed",
        "views/packed.html.jinja",
        width=1180,
        style=TOKEN_STYLE,
        it=preview,
        tiles=_tiles(preview),
        overview=Markup(overview),
        marks=Markup(legend_of(entries)),
        blocks=[(n, positions, _tokens_in_sight(preview, positions)) for n, positions in places],
        # 3, 6, 9, ... documents are in rows of three, others in rows of two; fewer on a narrow page.
        narrowest=290 if sum(kept > 0 for kept in preview.kept) % 3 == 0 else 390,
        tokens=lambda positions: Markup(tokens_html(preview, positions)),
        share=_share,
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "0.0%"


def _tiles(preview: PackedPreview) -> list[tuple[str, str, str]]:
    """The headline numbers: what each counts, the number, a note."""
    text, every = int((~preview.special).sum()), len(preview.tokens)
    masked, global_ = int(preview.masked.sum()), int(preview.global_.sum())
    cut = sum(loss.cut for loss in preview.documents)
    cuts = [loss.cut > 0 for loss, kept in zip(preview.documents, preview.kept, strict=True) if kept]
    left_out = preview.kept.count(0)
    fates = ((cuts.count(False), "whole"), (cuts.count(True), "cut short"), (left_out, "left out"))
    tiles = [
        ("tokens", f"{every:,}", f"{text:,} of them text"),
        ("documents", f"{len(cuts):,}", ", ".join(f"{n} {fate}" for n, fate in fates if n)),
        *([("masked", f"{masked:,}", f"{_share(masked, text)} of the text")] if masked else []),
        ("global", f"{global_:,}", f"{_share(global_, every)} of all tokens"),
        ("text cut", f"{cut:,}", f"{_share(cut, text + cut)} of all text"),
        ("memory", html.bytes_in_words(preview.memory_bytes), "estimated peak"),
    ]
    if preview.step_seconds is not None:
        tiles.append(("time", html.seconds_in_words(preview.step_seconds), "estimated a step"))
    return tiles


def _tokens_in_sight(preview: PackedPreview, positions: list[int]) -> int:
    """Return how many tokens of a document are shown unfolded."""
    characters = np.cumsum([len(preview.tokens[i]) + 1 for i in positions])
    fitting = int(np.searchsorted(characters, CHARACTERS_OF_EACH, side="right"))
    few_left = len(positions) <= SHOWN_OF_EACH + 20  # a fold for a line or two is more bother than it saves
    whole = len(preview.tokens) <= SHOWN_WHOLE or few_left
    return fitting if whole else min(fitting, SHOWN_OF_EACH)
