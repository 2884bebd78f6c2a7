"""What a person checks before training: packed examples, token by token, with their masks, global tokens and
losses of text, and examples of paragraph pretraining (Di Liello et al. 2022, section 3.4), sentence by
sentence.

Each property of a token has its own place, so that all can meet on one token and none depends on hue alone:

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
from itertools import groupby

import numpy as np

from cdlm_lab.widgets.html import (
    CROSS,
    FONT,
    FRAME,
    GLOBAL,
    MASKED,
    MUTED,
    TEXT,
    bytes_in_words,
    check_between,
    count_in_words,
    escaped,
    image_from_svg,
    seconds_in_words,
    share_bar,
    share_in_words,
    table_html,
    view_html,
)

SWAPPED_SIGN = "\u2192"  # an arrow, then the word that stands in place
KEPT_SIGN = "="
LONGEST_SPECIAL_RUN = 3  # more equal special tokens in a row (padding) are shown once, with their number
SHOWN_WHOLE = 700  # tokens up to which an example is shown without folding
SHOWN_OF_EACH = 110  # tokens of each document that stay in sight when it is folded
CHARACTERS_OF_EACH = 4000  # and, folded or not, no more characters than this: one token may hold thousands
LONGEST_TITLE = 110  # characters
MIDDOT = " \u00b7 "
_TOKEN_STYLE = f"""
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
    """The tokens of one packed example and what each is; every field has one entry per token."""

    # Token texts (untrusted), joining signs such as `##` or a leading space already taken off.
    tokens: Sequence[str]
    starts_word: np.ndarray  # bool (seq,), True = a space stands before the token
    masked: np.ndarray  # bool (seq,), True = the model must give this token back
    # What the model reads in place of a masked token: `mask_token`, another word, or the token itself; for
    # the others None or the token itself.
    replacement: Sequence[str | None]
    mask_token: str  # the text of the mask token
    global_: np.ndarray  # bool (seq,), True = attends to every token and is attended to by every token
    special: np.ndarray  # bool (seq,), True = a mark of the tokenizer, not text
    # Bool (seq,), True = part of a fact that another document of the example states too.
    cross_document: np.ndarray

    def replaced_by(self, i: int) -> str | None:
        """What became of token `i`: `hidden`, `swapped`, `kept`, or None if it is not masked."""
        if not self.masked[i]:
            return None
        if self.replacement[i] == self.mask_token:
            return "hidden"
        return "kept" if self.replacement[i] == self.tokens[i] else "swapped"


@dataclass(frozen=True, kw_only=True)
class DocumentLoss:
    """How many text tokens of a document (its untrusted title or id) the packing kept and cut, and why."""

    title: str
    kept: int
    cut: int = 0
    reason: str = ""

    def __post_init__(self) -> None:
        if self.kept < 0 or self.cut < 0:
            raise ValueError(f"tokens kept and cut must not be negative, got {self.kept} and {self.cut}")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PackedPreview(MarkedTokens):
    """A packed training example that shows itself as the last value of a notebook cell.

    A field whose length is not that of `tokens`, an array that is not bool, a document that is not in
    `documents`, a replacement where nothing is masked or none where something is, and a `kept` that is not
    the number of the document's text tokens are refused with a ValueError.
    """

    document: np.ndarray  # int (seq,), index into `documents`; -1 = belongs to none (`[CLS]`, `[SEP]`)
    # One record for each document, also for those of which nothing was kept.
    documents: Sequence[DocumentLoss]
    cross_document: np.ndarray | None = None  # None = not known
    starts_word: np.ndarray | None = None  # None = a space stands before every token
    mask_token: str = "<mask>"
    title: str = ""  # a line above everything, such as the variant and the corpus
    # memory_bytes, step_seconds: estimated peak and time of one training step; None = not shown.
    memory_bytes: float | None = None
    step_seconds: float | None = None

    def __post_init__(self) -> None:
        length = len(self.tokens)
        for name, missing in (("cross_document", False), ("starts_word", True)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, np.full(length, missing))
        for name in ("masked", "global_", "special", "cross_document", "starts_word"):
            object.__setattr__(self, name, _flags(name, getattr(self, name), length))
        document = np.asarray(self.document)
        if document.shape != (length,):
            raise ValueError(f"document has shape {document.shape}, but there are {length} tokens")
        object.__setattr__(self, "document", document.astype(np.int64))
        self._check_documents()
        self._check_replacements()

    def _check_documents(self) -> None:
        if outside := sorted({int(n) for n in self.document if not -1 <= n < len(self.documents)}):
            raise ValueError(
                f"document number {outside[0]} is not one of the {len(self.documents)} documents or -1"
            )
        for number, loss in enumerate(self.documents):
            present = int(((self.document == number) & ~self.special).sum())
            if loss.kept != present:
                is_kept = f"documents[{number}].kept is {loss.kept}"
                raise ValueError(f"{is_kept}, but {present} text tokens of it are in the sequence")

    def _check_replacements(self) -> None:
        counts = len(self.replacement), len(self.tokens)
        if counts[0] != counts[1]:
            raise ValueError(f"replacement has {counts[0]} entries, but there are {counts[1]} tokens")
        for i, (masked, instead) in enumerate(zip(self.masked, self.replacement, strict=True)):
            if masked and instead is None:
                raise ValueError(
                    f"token {i} is masked, but replacement[{i}] is None: say what the model reads there"
                )
            if not masked and instead not in (None, self.tokens[i]):
                raise ValueError(
                    f"token {i} is not masked, but replacement[{i}] is another text than the token"
                )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self.tokens)} tokens, {len(self.documents)} documents, "
            f"{int(self.masked.sum())} masked, {int(self.global_.sum())} global)"
        )

    def _repr_html_(self) -> str:
        return packed_example_html(self)


def _flags(name: str, values: object, length: int) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype != np.bool_ and length:
        raise ValueError(f"{name} must be bool (True = the token has the property), got {array.dtype}")
    if array.shape != (length,):
        raise ValueError(f"{name} has shape {array.shape}, but there are {length} tokens")
    return array.astype(bool)


def tokens_html(marked: MarkedTokens, positions: Sequence[int]) -> str:
    """The tokens at `positions` (in order, of one document) as HTML; every text in it is escaped."""
    pieces = []
    for is_global, run in groupby(positions, lambda i: bool(marked.global_[i])):
        spaced, body = _run_html(marked, list(run))
        pieces.append((spaced, f"<u>{body}</u>" if is_global else body))
    return _spaced(pieces)


def _run_html(marked: MarkedTokens, positions: Sequence[int]) -> tuple[bool, str]:
    """(whether a space stands before, HTML) of tokens that are all global or all not."""

    def alike(i: int) -> object:
        # A masked token stands alone, so that masks can be counted; other neighbours of one kind share a tag.
        if marked.masked[i]:
            return i
        return marked.tokens[i] if marked.special[i] else bool(marked.cross_document[i])

    pieces = [_piece(marked, list(run)) for _, run in groupby(positions, alike)]
    return pieces[0][0], _spaced(pieces)


def _piece(marked: MarkedTokens, run: list[int]) -> tuple[bool, str]:
    first = run[0]
    if marked.special[first] and not marked.masked[first]:
        # Direction given, so that a document whose own text runs right to left is still recognised as such.
        tablet = f'<small dir="ltr">{escaped(marked.tokens[first])}</small>'
        many = len(run) > LONGEST_SPECIAL_RUN
        return True, f"{tablet} \u00d7 {count_in_words(len(run))}" if many else " ".join([tablet] * len(run))
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
    """Pieces in a row, with a space before each that asks for one, except the first."""
    return "".join((" " if spaced and i else "") + body for i, (spaced, body) in enumerate(pieces))


def _mask_entries(marked: MarkedTokens) -> list[tuple[str, str, int]]:
    """Sample, meaning and count of each thing that can stand in place of a masked token."""
    became = [marked.replaced_by(i) for i in np.flatnonzero(marked.masked)]
    hidden = f"hidden behind {escaped(marked.mask_token)}: the word to give back"
    swapped = f"<mark>word<i>{SWAPPED_SIGN}other</i></mark>"
    return [
        ("<mark>word</mark>", hidden, became.count("hidden")),
        (swapped, "masked by a random other word", became.count("swapped")),
        (f"<mark>word<i>{KEPT_SIGN}</i></mark>", "masked, but left as it is", became.count("kept")),
    ]


def _legend(entries: Iterable[tuple[str, str, int]]) -> str:
    items = "".join(
        f'<div>{sample}&ensp;<span style="{MUTED}">{meaning} ({count_in_words(count)})</span></div>'
        for sample, meaning, count in entries
    )
    columns = "display:grid;grid-template-columns:repeat(auto-fit,minmax(400px,1fr));gap:5px 24px"
    return f'<div style="font-size:12.5px;margin:14px 0 16px;{columns}">{items}</div>'


def _headed(title: str) -> str:
    return f'<div style="font-size:16px;font-weight:600">{_title(title)}</div>' if title else ""


def _title(text: str) -> str:
    shown = text if len(text) <= LONGEST_TITLE else text[: LONGEST_TITLE - 1] + "\u2026"
    return f"<bdi>{escaped(shown)}</bdi>"


BINS = 240  # bars a lane: fine enough to see a prefix end, coarse enough for 10 kB
_LEFT, _WIDTH, _LANE, _GAP = 132, 856, 17, 7


def overview_svg(document: np.ndarray, lanes: Sequence[tuple[str, np.ndarray, str]]) -> str:
    """A sequence as a picture 1,000 units wide with a lane of documents and one lane for each property.

    The height of a bar is the share of the tokens in its place that have the property, the fullest place of a
    lane being full height (with masks at 15% nothing would be seen otherwise).

    Args:
        document: int (seq,), number of the document a token belongs to; -1 = none.
        lanes: (label, bool (seq,) with True = has the property, colour), drawn from top to bottom.
    """
    parts = [_lane_label("documents", 0), *_document_blocks(document)]
    for row, (label, flags, colour) in enumerate(lanes, start=1):
        if len(flags) != len(document):
            raise ValueError(f"lane {label!r} has {len(flags)} tokens, document has {len(document)}")
        place = f'x="{_LEFT}" y="{_top(row)}" width="{_WIDTH}" height="{_LANE}"'
        ground = f'<rect {place} rx="2" fill="#808080" opacity=".1"/>'
        parts += [_lane_label(label, row), ground, _bars(np.asarray(flags, bool), row, colour)]
    height = (len(lanes) + 1) * (_LANE + _GAP)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 {height}" font-family="{FONT}" '
        f'font-size="12.5" fill="{TEXT}">{"".join(parts)}</svg>'
    )


def _top(row: int) -> int:
    return row * (_LANE + _GAP) + 2


def _lane_label(text: str, row: int) -> str:
    return f'<text x="0" y="{_top(row) + 13}">{text}</text>'


def _document_blocks(document: np.ndarray) -> list[str]:
    blocks, scale = [], _WIDTH / max(len(document), 1)
    edges = np.flatnonzero(np.diff(document)) + 1
    for start, stop in zip([0, *edges], [*edges, len(document)], strict=True):
        if start == stop or document[start] < 0:
            continue
        x, width = _LEFT + start * scale, (stop - start) * scale
        blocks.append(
            f'<rect x="{x:.1f}" y="{_top(0)}" width="{max(width - 2, 1):.1f}" height="{_LANE}" rx="3" '
            'fill="#808080" opacity=".24"/>'
        )
        if width > 14:
            place = f'x="{x + width / 2 - 1:.1f}" y="{_top(0) + 13}" text-anchor="middle"'
            blocks.append(f"<text {place}>{document[start] + 1}</text>")
    return blocks


def _bars(flags: np.ndarray, row: int, colour: str) -> str:
    """One path for the lane: a bar wherever any token of the bin has the property."""
    bins = min(BINS, max(len(flags), 1))
    edges = np.linspace(0, len(flags), bins + 1).astype(int)
    counts = np.diff(np.concatenate([[0], np.cumsum(flags)])[edges])
    shares = counts / np.maximum(np.diff(edges), 1)
    step, bottom = _WIDTH / bins, _top(row) + _LANE
    tall = np.maximum(shares / max(shares.max(), 1e-9) * _LANE, 1.5)
    moves = "".join(
        f"M{_LEFT + i * step:.1f} {bottom}v-{tall[i]:.1f}h{step * 0.82:.1f}v{tall[i]:.1f}z"
        for i in np.flatnonzero(shares)
    )
    return f'<path fill="{colour}" d="{moves}"/>'


def packed_example_html(preview: PackedPreview) -> str:
    """The example as one block of HTML: headline numbers, overview, legend, documents, and what was cut."""
    entries = _mask_entries(preview) if preview.masked.any() else []  # sequences of tasks mask nothing
    sees = "global: sees every token, and is seen by every token"
    entries.append(("<u>word</u>", sees, int(preview.global_.sum())))
    if preview.cross_document.any():
        stated = "part of a fact that another document states too"
        entries.append(("<b>word</b>", stated, int(preview.cross_document.sum())))
    entries.append(("<small>mark</small>", "special token", int(preview.special.sum())))
    parts = (_headline(preview), _overview(preview), _legend(entries), _documents(preview), _losses(preview))
    return view_html("packed", _headed(preview.title) + "".join(parts), width=1180, style=_TOKEN_STYLE)


def _headline(preview: PackedPreview) -> str:
    text, every = int((~preview.special).sum()), len(preview.tokens)
    masked, global_ = int(preview.masked.sum()), int(preview.global_.sum())
    cut = sum(loss.cut for loss in preview.documents)
    present = sum(loss.kept > 0 for loss in preview.documents)
    short = sum(loss.kept > 0 and loss.cut > 0 for loss in preview.documents)
    left_out = len(preview.documents) - present
    fates = ((present - short, "whole"), (short, "cut short"), (left_out, "left out"))
    tiles = [
        ("tokens", count_in_words(every), f"{count_in_words(text)} of them text"),
        ("documents", count_in_words(present), ", ".join(f"{n} {fate}" for n, fate in fates if n)),
        ("masked", count_in_words(masked), f"{share_in_words(masked, text)} of the text"),
        ("global", count_in_words(global_), f"{share_in_words(global_, every)} of all tokens"),
        ("text cut", count_in_words(cut), f"{share_in_words(cut, text + cut)} of all text"),
    ]
    if not masked:
        del tiles[2]
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


def _overview(preview: PackedPreview) -> str:
    lanes = [("global", preview.global_, GLOBAL)]
    if preview.masked.any():
        lanes.insert(0, ("masked", preview.masked, MASKED))
    if preview.cross_document.any():
        lanes.append(("also elsewhere", preview.cross_document, CROSS))
    names = ", ".join(name for name, _, _ in lanes)
    description = f"The sequence from first to last token: documents, {names}"
    return image_from_svg(overview_svg(preview.document, lanes), description=description)


def _documents(preview: PackedPreview) -> str:
    """Cards side by side, in the order of the sequence; tokens of no document stand before, between or after
    them."""
    blocks: list[str] = []
    for number, run in groupby(range(len(preview.tokens)), lambda i: int(preview.document[i])):
        if number < 0:
            text = tokens_html(preview, list(run))
            blocks.append(f'<div class="cdlm-text" style="grid-column:1/-1">{text}</div>')
        else:
            blocks.append(_card(preview, number, list(run)))
    # Three or six documents stand three abreast, others two; fewer where the page is narrow.
    narrowest = 290 if sum(loss.kept > 0 for loss in preview.documents) % 3 == 0 else 340
    columns = f"grid-template-columns:repeat(auto-fit,minmax({narrowest}px,1fr));gap:12px;align-items:start"
    return f'<div style="display:grid;{columns}">{"".join(blocks)}</div>'


def _card(preview: PackedPreview, number: int, positions: list[int]) -> str:
    def masked(places: list[int], before: str) -> str:
        count = count_in_words(int(preview.masked[places].sum()))
        return f"{before}{count} masked" if preview.masked.any() else ""

    loss = preview.documents[number]
    kept = f"{count_in_words(loss.kept)} tokens, whole"
    if loss.cut:
        kept = f"{count_in_words(loss.kept)} of {count_in_words(loss.kept + loss.cut)} tokens"
    in_sight = _tokens_in_sight(preview, positions)
    head, rest = positions[:in_sight], positions[in_sight:]
    body = f'<div class="cdlm-text" dir="auto">{tokens_html(preview, head)}</div>'
    if rest:
        more = f"{count_in_words(len(rest))} more tokens{masked(rest, ', ')}"
        text = f'<div class="cdlm-text" dir="auto">{tokens_html(preview, rest)}</div>'
        body += f"<details><summary>{more}</summary>{text}</details>"
    global_ = count_in_words(int(preview.global_[positions].sum()))
    return (
        f'<div class="cdlm-card" style="{FRAME};border-radius:8px;padding:10px 14px 12px">'
        f'<div style="font-weight:600">{number + 1}&ensp;{_title(loss.title)}</div>'
        f'<div style="font-size:12px;margin-bottom:6px;{MUTED}">{kept}{masked(positions, MIDDOT)}'
        f"{MIDDOT}{global_} global</div>{body}</div>"
    )


def _tokens_in_sight(preview: PackedPreview, positions: list[int]) -> int:
    """How many tokens of a document stand outside the fold."""
    characters = np.cumsum([len(preview.tokens[i]) + 1 for i in positions])
    fitting = int(np.searchsorted(characters, CHARACTERS_OF_EACH, side="right"))
    few_left = len(positions) <= SHOWN_OF_EACH + 20  # a fold for a line or two is more bother than it saves
    whole = len(preview.tokens) <= SHOWN_WHOLE or few_left
    return fitting if whole else min(fitting, SHOWN_OF_EACH)


def _losses(preview: PackedPreview) -> str:
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


_SMALL = f"font-size:12px;{MUTED}"
_RIGHT = f'<span style="color:{CROSS};font-weight:600">\u2713&nbsp;1</span>'
_LABELS = {None: "", 0: "0", 1: _RIGHT}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSentence:
    """A sentence of an example of paragraph pretraining."""

    source: str  # where it comes from, seen from s_0, for people
    document: str  # id of its document
    label: int | None  # 1 = of one paragraph with s_0, 0 = not; None = it is s_0
    cut: int = 0  # tokens of it that are not read
    probability: float | None = None  # that the model gives label 1, in [0, 1]; None = it was not asked

    def __post_init__(self) -> None:
        if self.label not in _LABELS:
            raise ValueError(f"the label is {self.label}; it must be 0 or 1, or None of s_0")
        if self.cut < 0:
            raise ValueError(f"{self.cut} tokens are cut; there must be 0 or more")
        if self.probability is not None:
            check_between("the probability", self.probability)


@dataclass(frozen=True, kw_only=True, eq=False)
class ParagraphExampleView:
    """An example of paragraph pretraining that shows itself as the last value of a notebook cell."""

    marked: MarkedTokens  # the tokens of the sequence, and which of them are masked
    sentence: np.ndarray  # int (tokens,), which sentence each token is of, from 0
    sentences: Sequence[TaskSentence]  # s_0 ... s_k.
    title: str = ""  # a line above (untrusted text)

    def __post_init__(self) -> None:
        if len(self.sentence) != len(self.marked.tokens):
            raise ValueError(
                f"there are {len(self.marked.tokens)} tokens, but the sentences of {len(self.sentence)}"
            )
        if wrong := sorted({int(n) for n in self.sentence if not 0 <= n < len(self.sentences)}):
            raise ValueError(f"a token is of sentence {wrong[0]}; there are {len(self.sentences)}, from 0")

    def _repr_html_(self) -> str:
        return paragraph_example_html(self)


def paragraph_example_html(view: ParagraphExampleView) -> str:
    """The example as one block of HTML: what the signs mean, then a row for each sentence: where it comes
    from, its label, its probability if any sentence has one, and its words."""
    judged = any(sentence.probability is not None for sentence in view.sentences)
    columns = [
        "",
        "comes from",
        "label",
        *(["probability"] if judged else []),
        "what the model reads",
        "tokens",
    ]
    rows = [_sentence_row(view, number, judged=judged) for number in range(len(view.sentences))]
    table = table_html(columns, rows, text_columns=range(len(columns) - 1))
    body = _headed(view.title) + _legend(_mask_entries(view.marked)) + table
    return view_html("packed", body, width=1100, style=_TOKEN_STYLE)


def _sentence_row(view: ParagraphExampleView, number: int, *, judged: bool) -> list[str]:
    sentence = view.sentences[number]
    positions = np.flatnonzero(view.sentence == number).tolist()
    cut = f'<div style="{_SMALL}">{count_in_words(sentence.cut)}&nbsp;cut</div>' if sentence.cut else ""
    bar = "" if sentence.probability is None else share_bar(sentence.probability)
    source = f'<span style="white-space:nowrap">{escaped(sentence.source)}</span>'
    return [
        f"s<sub>{number}</sub>",
        f'{source}<div style="{_SMALL}"><bdi>{escaped(sentence.document)}</bdi></div>',
        _LABELS[sentence.label],
        *([bar] if judged else []),
        f'<div class="cdlm-text" dir="auto">{tokens_html(view.marked, positions)}</div>',
        f"{count_in_words(len(positions))}{cut}",
    ]
