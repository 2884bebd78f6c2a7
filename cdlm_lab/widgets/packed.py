"""One example of paragraph pre-training, a row for each of its sentences: where it comes from, what is to be
said of it, which of its words are masked (Di Liello et al. 2022, section 3.4).

Plain HTML without scripts (see `markup`); all texts are untrusted. Every colour has a sign beside it.

The record behind the preview of a packed example: arrays and strings, held to one another.

The whole packed sequence as one narrow picture: where documents begin, where masks and global tokens
lie.

What a person sees before training: one packed example, with its masks, its global tokens and its losses of
text.

The picture is plain HTML without scripts. It keeps its meaning in a notebook that JupyterLab does not trust
(see `markup`), follows light and dark themes by inheriting their text colour, and folds long documents away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from cdlm_lab.widgets.html import (
    CROSS,
    FONT,
    FRAME,
    GLOBAL,
    KEPT_SIGN,
    MASKED,
    MUTED,
    SWAPPED_SIGN,
    TEXT,
    TOKEN_STYLE,
    MarkedTokens,
    bytes_in_words,
    count_in_words,
    escaped,
    image_from_svg,
    seconds_in_words,
    share_bar,
    share_in_words,
    table_html,
    tokens_html,
)


@dataclass(frozen=True, kw_only=True)
class DocumentLoss:
    """How much of one document the packing kept.

    Attributes:
        title: headline or id of the document; untrusted text.
        kept: text tokens of the document in the example, special tokens not counted.
        cut: text tokens left out.
        reason: why they were left out, for people; empty if nothing was.

    Raises:
        ValueError: a negative number of tokens.
    """

    title: str
    kept: int
    cut: int = 0
    reason: str = ""

    def __post_init__(self) -> None:
        if self.kept < 0 or self.cut < 0:
            raise ValueError(f"tokens kept and cut must not be negative, got {self.kept} and {self.cut}")


@dataclass(frozen=True, kw_only=True, eq=False)
class PackedSequence:
    """One packed training example, token by token, with what is worth knowing about it.

    Attributes:
        tokens: the text of every token of the sequence (untrusted), joining signs (`##`, a leading space)
            taken off.
        document: int (seq,), index into `documents`; -1 = belongs to none (`[CLS]`, `[SEP]`).
        masked: bool (seq,), True = the model must give the token back.
        replacement: for each masked token what the model reads instead: `mask_token`, another word, or the
            token itself (written the same way as in `tokens`); for the others None or the token itself.
        global_: bool (seq,), True = the token attends to all and all attend to it.
        special: bool (seq,), True = a mark of the tokenizer, not text.
        documents: one record for each document, also for those of which nothing was kept.
        cross_document: bool (seq,), True = part of a fact that another packed document states too; None = not
            known.
        starts_word: bool (seq,), True = a space stands before the token; None = before every token.
        mask_token: the text of the mask token.
        title: a line above everything, such as the variant and the corpus.
        memory_bytes: estimated peak memory of one training step; None = not shown.
        step_seconds: estimated time of one training step; None = not shown.

    Raises:
        ValueError: a field whose length is not that of `tokens`; an array that is not bool; a document number
            outside `documents`; a masked token without replacement; a replacement where nothing is masked; a
            `kept` that is not the number of the document's text tokens in the sequence.
    """

    tokens: Sequence[str]
    document: np.ndarray
    masked: np.ndarray
    replacement: Sequence[str | None]
    global_: np.ndarray
    special: np.ndarray
    documents: Sequence[DocumentLoss]
    cross_document: np.ndarray | None = None
    starts_word: np.ndarray | None = None
    mask_token: str = "<mask>"
    title: str = ""
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
                raise ValueError(
                    f"documents[{number}].kept is {loss.kept}, "
                    f"but {present} text tokens of it are in the sequence"
                )

    def _check_replacements(self) -> None:
        if len(self.replacement) != len(self.tokens):
            raise ValueError(
                f"replacement has {len(self.replacement)} entries, but there are {len(self.tokens)} tokens"
            )
        for i, (masked, instead) in enumerate(zip(self.masked, self.replacement, strict=True)):
            if masked and instead is None:
                raise ValueError(
                    f"token {i} is masked, but replacement[{i}] is None: say what the model reads there"
                )
            if not masked and instead not in (None, self.tokens[i]):
                raise ValueError(
                    f"token {i} is not masked, but replacement[{i}] is another text than the token"
                )

    @property
    def marked(self) -> MarkedTokens:
        """The token-wise fields alone, as `token_text` takes them."""
        return MarkedTokens(
            texts=self.tokens,
            starts_word=self.starts_word,
            masked=self.masked,
            replacement=self.replacement,
            mask_token=self.mask_token,
            global_=self.global_,
            special=self.special,
            cross_document=self.cross_document,
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self.tokens)} tokens, {len(self.documents)} documents, "
            f"{int(self.masked.sum())} masked, {int(self.global_.sum())} global)"
        )


def _flags(name: str, values: object, length: int) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype != np.bool_ and length:
        raise ValueError(f"{name} must be bool (True = the token has the property), got {array.dtype}")
    if array.shape != (length,):
        raise ValueError(f"{name} has shape {array.shape}, but there are {length} tokens")
    return array.astype(bool)


BINS = 240  # bars a lane: fine enough to see a prefix end, coarse enough for 10 kB
_LEFT, _WIDTH, _LANE, _GAP = 132, 856, 17, 7


def overview_svg(document: np.ndarray, lanes: Sequence[tuple[str, np.ndarray, str]]) -> str:
    """A picture 1,000 units wide with a lane of documents and one lane for each property.

    The height of a bar is the share of the tokens in its place that have the property, the fullest place of a
    lane being full height (with masks at 15% nothing would be seen otherwise).

    Args:
        document: int (seq,), number of the document a token belongs to; -1 = none.
        lanes: (label, bool (seq,) with True = has the property, colour), drawn from top to bottom.

    Raises:
        ValueError: a lane whose length is not that of `document`.
    """
    height = (len(lanes) + 1) * (_LANE + _GAP)
    parts = [_label("documents", 0), *_document_blocks(document)]
    for row, (label, flags, colour) in enumerate(lanes, start=1):
        if len(flags) != len(document):
            raise ValueError(f"lane {label!r} has {len(flags)} tokens, document has {len(document)}")
        parts += [_label(label, row), _ground(row), _bars(np.asarray(flags, bool), row, colour)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 {height}" font-family="{FONT}" '
        f'font-size="12.5" fill="{TEXT}">{"".join(parts)}</svg>'
    )


def _top(row: int) -> int:
    return row * (_LANE + _GAP) + 2


def _label(text: str, row: int) -> str:
    return f'<text x="0" y="{_top(row) + 13}">{text}</text>'


def _ground(row: int) -> str:
    place = f'x="{_LEFT}" y="{_top(row)}" width="{_WIDTH}" height="{_LANE}"'
    return f'<rect {place} rx="2" fill="#808080" opacity=".1"/>'


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
            middle = x + width / 2 - 1
            blocks.append(
                f'<text x="{middle:.1f}" y="{_top(0) + 13}" text-anchor="middle">{document[start] + 1}</text>'
            )
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


_SMALL = f"font-size:12px;{MUTED}"
_PARAGRAPH_STYLE = """
div.cdlm-packed{color:var(--jp-ui-font-color1,inherit)}
div.cdlm-packed table.cdlm-table tr{background:none!important}
"""
_RIGHT = f'<span style="color:{CROSS};font-weight:600">\u2713&nbsp;1</span>'
_LABELS = {None: "", 0: "0", 1: _RIGHT}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSentence:
    """A sentence of an example.

    Attributes:
        source: where it comes from, seen from s_0, for people.
        document: id of its document.
        label: 1 = of one paragraph with s_0, 0 = not; None = it is s_0.
        cut: tokens of it that are not read.
        probability: what a model says for label 1, in [0, 1]; None = it was not asked.

    Raises:
        ValueError: a label that is neither 0 nor 1, a negative number of tokens, a probability outside
            [0, 1].
    """

    source: str
    document: str
    label: int | None
    cut: int = 0
    probability: float | None = None

    def __post_init__(self) -> None:
        if self.label not in _LABELS:
            raise ValueError(f"the label is {self.label}; it must be 0 or 1, or None of s_0")
        if self.cut < 0:
            raise ValueError(f"{self.cut} tokens are cut; there must be 0 or more")
        if self.probability is not None and not 0 <= self.probability <= 1:
            raise ValueError(f"the probability is {self.probability}; it must lie in [0, 1]")


@dataclass(frozen=True, kw_only=True, eq=False)
class ParagraphExampleView:
    """An example that shows itself as the last value of a notebook cell.

    Attributes:
        marked: the tokens of the sequence, and which of them are masked.
        sentence: int (tokens,), which sentence each token is of, from 0.
        sentences: s_0 ... s_k.
        title: a line above (untrusted text).

    Raises:
        ValueError: a token of no sentence; another number of tokens in `marked` than in `sentence`.
    """

    marked: MarkedTokens
    sentence: np.ndarray
    sentences: Sequence[TaskSentence]
    title: str = ""

    def __post_init__(self) -> None:
        if len(self.sentence) != len(self.marked.texts):
            raise ValueError(
                f"there are {len(self.marked.texts)} tokens, but the sentences of {len(self.sentence)}"
            )
        if wrong := sorted({int(n) for n in self.sentence if not 0 <= n < len(self.sentences)}):
            raise ValueError(f"a token is of sentence {wrong[0]}; there are {len(self.sentences)}, from 0")

    def _repr_html_(self) -> str:
        return paragraph_example_html(self)


def paragraph_example_html(view: ParagraphExampleView) -> str:
    """The example as one block of HTML: what the signs mean, then a row for each sentence."""
    asked = any(sentence.probability is not None for sentence in view.sentences)
    columns = [
        "",
        "comes from",
        "label",
        *(["probability"] if asked else []),
        "what the model reads",
        "tokens",
    ]
    rows = [_row(view, number, asked=asked) for number in range(len(view.sentences))]
    table = table_html(columns, rows, text_columns=range(len(columns) - 1))
    title = f'<div style="font-size:16px;font-weight:600"><bdi>{escaped(view.title)}</bdi></div>'
    return (
        f'<div class="cdlm-packed" style="max-width:1100px"><style>{_PARAGRAPH_STYLE}{TOKEN_STYLE}</style>'
        f"{title if view.title else ''}{_paragraph_legend(view.marked)}{table}</div>"
    )


def _row(view: ParagraphExampleView, number: int, *, asked: bool) -> list[str]:
    """The cells of one sentence."""
    sentence = view.sentences[number]
    positions = np.flatnonzero(view.sentence == number).tolist()
    cut = f'<div style="{_SMALL}">{count_in_words(sentence.cut)}&nbsp;cut</div>' if sentence.cut else ""
    bar = "" if sentence.probability is None else share_bar(sentence.probability)
    source = f'<span style="white-space:nowrap">{escaped(sentence.source)}</span>'
    return [
        f"s<sub>{number}</sub>",
        f'{source}<div style="{_SMALL}"><bdi>{escaped(sentence.document)}</bdi></div>',
        _LABELS[sentence.label],
        *([bar] if asked else []),
        f'<div class="cdlm-text" dir="auto">{tokens_html(view.marked, positions)}</div>',
        f"{count_in_words(len(positions))}{cut}",
    ]


def _paragraph_legend(marked: MarkedTokens) -> str:
    """What a mask looks like, and how many of each kind there are."""
    became = [marked.replaced_by(place) for place in np.flatnonzero(marked.masked)]
    entries = (
        ("<mark>word</mark>", f"hidden behind {escaped(marked.mask_token)}", "hidden"),
        (f"<mark>word<i>{SWAPPED_SIGN}other</i></mark>", "masked by another word", "swapped"),
        (f"<mark>word<i>{KEPT_SIGN}</i></mark>", "masked, but left as it is", "kept"),
    )
    items = "".join(
        f'<span style="display:inline-block;margin:1px 20px 1px 0">{sample}&ensp;'
        f'<span style="{MUTED}">{meaning} ({count_in_words(became.count(kind))})</span></span>'
        for sample, meaning, kind in entries
    )
    return f'<div style="font-size:12.5px;margin:8px 0 10px">{items}</div>'
