"""Running text in which every token's part in training can be seen, as compact HTML.

Each property has its own place, so that all can meet on one token and none depends on hue alone:

| property | tag | with our stylesheet | without it (untrusted notebook) |
|---|---|---|---|
| masked | `<mark>` | amber ground, a sign if swapped or kept | yellow ground, the same signs |
| global | `<u>` | blue line below | line below |
| stated in another document too | `<b>` | green dots above | bold |
| special token | `<small>` | grey tablet | small print |

Tags without attributes also keep an example of 4,096 tokens below 100 kB.

Text, numbers and tables as HTML that is safe wherever a notebook is opened.

Two facts about JupyterLab shape what is written here. A notebook that was run elsewhere (by papermill, by a
colleague) is shown untrusted: `<style>`, `<script>` and `<svg>` are taken out of its HTML, while plain tags,
most inline styles and images from data addresses stay. So meaning is carried by tags and inline styles, and a
stylesheet only adds polish. And headings of any level in an output join the notebook's table of contents, so
none is used.

Colours, names and the plotly template that every picture of the lab shares.

The hues are Okabe and Ito's, which people with the common kinds of colour blindness tell apart; grey and the
text colour are middle greys that read on white and on near-black alike, because a picture inside a saved
notebook cannot know the theme it will be opened in. Every colour is backed by a second cue: a symbol, a line,
or a word.

Mentions as people read them: marked in their sentence, in the colour of their gold cluster.

A page of its own around HTML: it runs nothing, loads nothing, and is light or dark as its reader likes.

A share or a probability as a number with a bar below it, and as the depth of a ground.
"""

from __future__ import annotations

import base64
import html
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol, TypeVar

import numpy as np
import plotly.graph_objects as go

MUTED = "opacity:0.72"
FRAME = "border:1px solid rgba(128,128,128,0.32)"

# Characters that turn the direction of the text around them. Natural right-to-left letters need none of them.
_DIRECTION_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def _visible(character: str) -> str:
    code = ord(character)
    if character in _DIRECTION_CONTROLS:
        return f"\u2039U+{code:04X}\u203a"
    if code < 0x20 and character not in "\n\t":
        return chr(0x2400 + code)  # the Unicode picture of the control character
    if code == 0x7F:
        return "\u2421"
    if 0x80 <= code <= 0x9F or 0xD800 <= code <= 0xDFFF:
        return "\ufffd"  # lone surrogates cannot be written as UTF-8
    return character


def escaped(text: str) -> str:
    """`text` as HTML text or attribute value: nothing in it is markup, and no character in it is invisible or
    turns the direction of what follows (control characters are replaced by visible ones)."""
    return html.escape(visible(text), quote=True)


def visible(text: str) -> str:
    """`text` with control characters replaced by visible ones; for where text cannot be taken for markup."""
    return "".join(map(_visible, text))


def count_in_words(count: int) -> str:
    """4096 -> `4,096`."""
    return f"{int(count):,}"


def share_in_words(part: int, whole: int) -> str:
    """(612, 4096) -> `14.9%`; a share of nothing is `0.0%`."""
    return f"{100 * part / whole:.1f}%" if whole else "0.0%"


def bytes_in_words(size: float) -> str:
    """2_130_000_000 -> `2.1 GB` (powers of ten, as disks and cards are sold)."""
    amount, unit = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 999.5:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.0f} {unit}" if unit == "B" or amount >= 99.5 else f"{amount:.1f} {unit}"


def seconds_in_words(seconds: float) -> str:
    """0.25 -> `0.25 s`, 95 -> `1 min 35 s`, 7260 -> `2 h 1 min`, 100000 -> `1 d 3 h`."""
    if seconds < 0.01:
        return "0 s"
    if seconds < 9.95:
        return f"{seconds:.2g} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    for size, unit, smaller, smaller_unit in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // smaller} {smaller_unit}"
    raise AssertionError("unreachable: every whole number of seconds from 60 on has a largest unit")


def image_from_svg(svg: str, *, description: str, width: str = "100%") -> str:
    """An `<img>` that carries the picture in its own address. Scripts never run inside an image, and unlike
    inline `<svg>` it is kept in untrusted notebooks. `svg` needs the xmlns attribute; `width` is a CSS
    width."""
    data = base64.b64encode(svg.encode("utf-8")).decode("ascii")
    return (
        f'<img alt="{escaped(description)}" src="data:image/svg+xml;base64,{data}" '
        f'style="width:{width};max-width:100%;display:block">'
    )


def table_html(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: Sequence[int] = (0,)
) -> str:
    """A table from cells that are HTML already (see `escaped`).

    Args:
        columns: headings, HTML.
        rows: cells, HTML; every row as long as `columns`.
        text_columns: numbers of the columns set flush left; the others hold numbers and are set flush right.

    Raises:
        ValueError: a row with more or fewer cells than there are columns.
    """
    if wrong := [i for i, row in enumerate(rows) if len(row) != len(columns)]:
        raise ValueError(
            f"row {wrong[0]} has {len(rows[wrong[0]])} cells, but there are {len(columns)} columns"
        )
    sides = ["left" if i in text_columns else "right" for i in range(len(columns))]
    cell_style = "padding:5px 18px 5px 0"
    breaks = ["normal" if i in text_columns else "nowrap" for i in range(len(columns))]
    head = "".join(
        f'<th style="text-align:{side};font-weight:600;vertical-align:bottom;{cell_style}">{column}</th>'
        for side, column in zip(sides, columns, strict=True)
    )
    body = "".join(
        '<tr style="border-top:1px solid rgba(128,128,128,0.22)">'
        + "".join(
            f'<td style="text-align:{side};white-space:{space};vertical-align:top;{cell_style}">{cell}</td>'
            for side, space, cell in zip(sides, breaks, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return (
        '<table class="cdlm-table" style="border-collapse:collapse;font-size:13px;margin:4px 0">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


VARIANTS = (
    "longformer",
    "local-cdlm",
    "rand-cdlm",
    "prefix-cdlm",
    "cdlm",
)  # the order of the paper's Table 1
VARIANT_NAMES = {
    "longformer": "Longformer",
    "local-cdlm": "Local CDLM",
    "rand-cdlm": "Rand CDLM",
    "prefix-cdlm": "Prefix CDLM",
    "cdlm": "CDLM",
}
VARIANT_COLOURS = {
    "longformer": "#8c8c8c",
    "local-cdlm": "#e69f00",
    "rand-cdlm": "#cc79a7",
    "prefix-cdlm": "#009e73",
    "cdlm": "#3b8ed0",
}
VARIANT_SYMBOLS = {
    "longformer": "circle",
    "local-cdlm": "square",
    "rand-cdlm": "diamond",
    "prefix-cdlm": "cross",
    "cdlm": "star",
}
OTHER_COLOURS = ("#d55e00", "#56b4e9", "#b8a700", "#8c6bb1")  # for names that are none of the five

MASKED = "#e69f00"
GLOBAL = "#3b8ed0"  # Okabe-Ito blue, lightened until it reads on a dark page
DEEPEST = 0.5  # opacity of the blue of the largest weight; text reads on it on light and on dark pages
CROSS = "#009e73"
TEXT = "#7a7a7a"  # contrast 4.3 on white, 4.4 on JupyterLab's #111111
RULE = "rgba(128,128,128,0.22)"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"


def variant_name(variant: str) -> str:
    """The name to show for a variant: the paper's (`prefix-cdlm` is `Prefix CDLM`), or the string itself."""
    return VARIANT_NAMES.get(variant, variant)


def paper_order(variants: Iterable[str]) -> list[str]:
    """The variants in the order of the paper's Table 1; names the paper lacks follow in the order given."""
    given = list(dict.fromkeys(variants))
    known = [variant for variant in VARIANTS if variant in given]
    return known + [variant for variant in given if variant not in VARIANTS]


class OfVariant(Protocol):
    """A row of a table."""

    @property
    def variant(self) -> str:
        """Its variant, as in VARIANTS."""


Row = TypeVar("Row", bound=OfVariant)


def in_paper_order(rows: Sequence[Row]) -> list[Row]:
    """Rows of a table in the order of the paper's Table 1.

    Raises:
        ValueError: no row, or two of one variant.
    """
    if not rows:
        raise ValueError("there is no variant to show: rows is empty")
    by_variant = {row.variant: row for row in rows}
    if len(by_variant) < len(rows):
        names = [row.variant for row in rows]
        raise ValueError(
            f"two rows of one variant: {', '.join(sorted({n for n in names if names.count(n) > 1}))}"
        )
    return [by_variant[variant] for variant in paper_order(by_variant)]


def variant_colours(variants: Iterable[str]) -> dict[str, str]:
    """One colour for each variant, the same in every picture; names the paper lacks take the spare hues in
    turn."""
    others = [variant for variant in paper_order(variants) if variant not in VARIANTS]
    spare = {variant: OTHER_COLOURS[i % len(OTHER_COLOURS)] for i, variant in enumerate(others)}
    return VARIANT_COLOURS | spare


def lab_template() -> go.layout.Template:
    """A plotly template: transparent ground, quiet grid, middle-grey text. Pass it as `layout.template`."""
    axis = {
        "gridcolor": RULE,
        "linecolor": RULE,
        "zeroline": False,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": RULE,
        "title": {"standoff": 12, "font": {"size": 13}},
        "automargin": True,
    }
    layout = {
        "font": {"family": FONT, "size": 13, "color": TEXT},
        "title": {"font": {"size": 16}, "x": 0, "xref": "paper", "xanchor": "left"},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "colorway": list(VARIANT_COLOURS.values()) + list(OTHER_COLOURS),
        "xaxis": axis,
        "yaxis": axis,
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"},
        "margin": {"l": 64, "r": 24, "t": 72, "b": 56},
        "hoverlabel": {"font": {"family": FONT}},
    }
    return go.layout.Template(layout=layout)


HUES = (*list(VARIANT_COLOURS.values())[:0:-1], *OTHER_COLOURS)  # all but grey, which means: gold not known
UNKNOWN = "#8c8c8c"
LONGEST_CONTEXT = 160  # characters on either side of a mention
LONGEST_NAME = 28  # characters of the name of a gold cluster
NAME_START = 7  # of which so many from its start: names of one corpus begin alike
LONGEST_TEXT = 300  # characters of a mention
_LONGEST_WORD = 20  # characters that may be given up so as not to cut a word in two

_CLOSING = re.compile(r"\s+([,.;:!?%)\]}\u2019\u201d]|'s\b|n't\b|'')")
_OPENING = re.compile(r"([(\[{$\u2018\u201c]|``)\s+")
_ENDS_OPEN = re.compile(r"([(\[{$\u2018\u201c]|``)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMention:
    """A mention in its sentence, as texts (untrusted).

    Attributes:
        text: the words of the mention.
        before, after: the rest of its sentence.
        document: where it stands.
        gold: name of its gold cluster; None = not known, as in documents of one's own.
    """

    text: str
    before: str = ""
    after: str = ""
    document: str = ""
    gold: str | None = None

    @classmethod
    def from_tokens(
        cls, tokens: Sequence[str], span: tuple[int, int], *, document: str = "", gold: str | None = None
    ) -> ShownMention:
        """From the tokens of a sentence and the half-open `span` of the mention in them.

        Raises:
            ValueError: the span is empty or lies outside the sentence.
        """
        start, end = span
        if not 0 <= start < end <= len(tokens):
            raise ValueError(f"{span} is no span of the {len(tokens)} tokens of the sentence")
        parts = (tokens[:start], tokens[start:end], tokens[end:])
        before, text, after = (joined(part) for part in parts)
        return cls(text=text, before=before, after=after, document=document, gold=gold)

    @property
    def sentence(self) -> str:
        """The whole sentence."""
        return joined([part for part in (self.before, self.text, self.after) if part])


def joined(tokens: Iterable[str]) -> str:
    """Tokens with the spaces that print has: `He did n't , she said .` -> `He didn't, she said.`"""
    text = " ".join(tokens)
    return _OPENING.sub(r"\1", _CLOSING.sub(r"\1", text))


def shortened(text: str, longest: int, *, at_start: bool = False) -> str:
    """At most `longest` characters of a text, an ellipsis where it was cut (at its start or its end).

    It is cut between words, unless the next space is far.
    """
    if len(text) <= longest:
        return text
    if at_start:
        kept = text[len(text) - longest + 1 :]
        space = kept.find(" ", 0, _LONGEST_WORD)
        return f"\u2026{kept[space:] if space >= 0 else kept}"
    kept = text[: longest - 1]
    space = kept.rfind(" ", max(1, len(kept) - _LONGEST_WORD))
    return f"{kept[: space + 1] if space >= 0 else kept}\u2026"


def sentence_html(mention: ShownMention, colour: str) -> str:
    """The sentence, cut to some words around the mention, which is marked; then its document, muted."""
    before = escaped(shortened(mention.before, LONGEST_CONTEXT, at_start=True))
    after = escaped(shortened(mention.after, LONGEST_CONTEXT))
    mark = f"background:{colour}42;color:inherit;border-radius:3px;padding:1px 3px;font-weight:600"
    text = f'<mark style="{mark}">{escaped(shortened(mention.text, LONGEST_TEXT))}</mark>'
    sentence = f"{before}{_gap(mention.before, mention.text)}{text}{_gap(mention.text, mention.after)}{after}"
    where = f'&ensp;<span style="font-size:11.5px;{MUTED}"><bdi>{escaped(mention.document)}</bdi></span>'
    return f'<bdi style="overflow-wrap:anywhere">{sentence}</bdi>{where if mention.document else ""}'


def _gap(left: str, right: str) -> str:
    """What print has between two parts of a sentence: a space or nothing."""
    apart = left and right and not _CLOSING.match(f" {right}") and not _ENDS_OPEN.search(left)
    return " " if apart else ""


def gold_chip(gold: str | None, colour: str, note: str = "") -> str:
    """A dot in the colour of a gold cluster and its name, cut if it is long; `note` (HTML) follows, muted."""
    dot = f'<span style="color:{colour}">\u25cf</span>'
    name = "gold not known" if gold is None else f"<bdi>{escaped(_short_name(gold))}</bdi>"
    title = f' title="{escaped(gold)}"' if gold is not None and len(gold) > LONGEST_NAME else ""
    style = "display:inline-block;margin:0 12px 2px 0;font-size:12px"
    rest = f' <span style="{MUTED}">{note}</span>' if note else ""
    return f'<span style="{style}"{title}>{dot} {name}{rest}</span>'


def _short_name(name: str) -> str:
    """A long name without its middle."""
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[:NAME_START]}\u2026{name[NAME_START + 1 - LONGEST_NAME :]}"


def gold_colours(together: Iterable[Iterable[str | None]]) -> dict[str | None, str]:
    """A colour for each gold cluster; grey for None.

    There are more gold clusters than colours that people tell apart, so colours are used again, but if
    possible not twice among the names of one item of `together`, which are seen side by side.
    """
    groups = [list(dict.fromkeys(name for name in names if name is not None)) for names in together]
    beside: dict[str, set[str]] = {}
    for names in groups:
        for name in names:
            beside.setdefault(name, set()).update(names)
    colours: dict[str | None, str] = {None: UNKNOWN}
    used: Counter[str] = Counter()
    for name, neighbours in beside.items():
        taken = {colours[other] for other in neighbours if other in colours}
        free = [hue for hue in HUES if hue not in taken] or list(HUES)
        colours[name] = min(free, key=used.__getitem__)
        used[colours[name]] += 1
    return colours


def muted(text: str, *, size: float = 12) -> str:
    """A line of small print; `text` is HTML already."""
    return f'<div style="font-size:{size}px;{MUTED}">{text}</div>'


_STYLE = f"""
:root{{color-scheme:light dark}}
body{{font-family:{FONT};margin:24px auto;padding:0 16px;max-width:960px}}
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def still_page(body: str, *, title: str, note: str, style: str = "") -> str:
    """The page.

    Args:
        body: HTML that is safe already (see `markup`).
        title: of the page, also shown above (untrusted text).
        note: a line below the title (untrusted text).
        style: CSS beyond that of all pages.
    """
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">'
        f"<title>{escaped(title)}</title><style>{_STYLE}{style}</style></head><body>"
        f'<div style="font-size:20px;font-weight:600"><bdi>{escaped(title)}</bdi></div>'
        f'<div style="margin:2px 0 16px">{muted(escaped(note), size=13)}</div>{body}</body></html>'
    )


def share_bar(share: float) -> str:
    """A number in [0, 1] in per cent and as a bar, 40 pixels wide."""
    full = f"height:3px;width:{100 * share:.0f}%;background:{GLOBAL}"
    bar = f'<div style="height:3px;background:rgba(128,128,128,0.22)"><div style="{full}"></div></div>'
    return f'<div style="width:40px;font-size:12px;text-align:right">{100 * share:.0f}%{bar}</div>'


def blue_ground(share: float) -> str:
    """CSS of a ground that is the deeper the larger the share, in [0, 1]; text reads on all of them."""
    return f"background:{GLOBAL}{round(255 * DEEPEST * share):02x}"


SWAPPED_SIGN = "\u2192"  # an arrow, then the word that stands in place
KEPT_SIGN = "="
LONGEST_SPECIAL_RUN = 3  # more equal special tokens in a row (padding) are shown once, with their number

TOKEN_STYLE = f"""
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
    """The tokens of one packed example and what each is; every field has one entry per token.

    Attributes:
        texts: token texts (untrusted), joining signs such as `##` or a leading space already taken off.
        starts_word: bool (seq,), True = a space stands before the token.
        masked: bool (seq,), True = the model must give this token back.
        replacement: what the model reads in place of a masked token; None where nothing is masked.
        mask_token: the replacement that says "hidden"; another one is a random word, or the token itself.
        global_: bool (seq,), True = attends to every token and is attended to by every token.
        special: bool (seq,), True = a mark of the tokenizer, not text.
        cross_document: bool (seq,), True = part of a fact that another document of the example states too.
    """

    texts: Sequence[str]
    starts_word: np.ndarray
    masked: np.ndarray
    replacement: Sequence[str | None]
    mask_token: str
    global_: np.ndarray
    special: np.ndarray
    cross_document: np.ndarray

    def replaced_by(self, i: int) -> str | None:
        """What became of token `i`: `hidden`, `swapped`, `kept`, or None if it is not masked."""
        if not self.masked[i]:
            return None
        if self.replacement[i] == self.mask_token:
            return "hidden"
        return "kept" if self.replacement[i] == self.texts[i] else "swapped"


def tokens_html(marked: MarkedTokens, positions: Sequence[int]) -> str:
    """The tokens at `positions` (in order, of one document) as HTML; every text in it is escaped."""
    return _joined(
        _framed("u", *_joined_runs(marked, run)) if is_global else _joined_runs(marked, run)
        for is_global, run in _runs(positions, lambda i: bool(marked.global_[i]))
    )


def _runs(positions: Sequence[int], key: Callable[[int], object]) -> Iterator[tuple[object, list[int]]]:
    for value, run in groupby(positions, key):
        yield value, list(run)


def _joined_runs(marked: MarkedTokens, positions: Sequence[int]) -> tuple[bool, str]:
    """(whether a space stands before, HTML) of tokens that are all global or all not."""

    def alike(i: int) -> object:
        # A masked token stands alone, so that masks can be counted; other neighbours of one kind share a tag.
        if marked.masked[i]:
            return i
        if marked.special[i]:
            return "special", marked.texts[i]
        return "plain", bool(marked.cross_document[i])

    pieces = [_piece(marked, run) for _, run in _runs(positions, alike)]
    return pieces[0][0], _joined([(False, pieces[0][1]), *pieces[1:]])


def _piece(marked: MarkedTokens, run: list[int]) -> tuple[bool, str]:
    first = run[0]
    spaced = bool(marked.starts_word[first])
    if marked.special[first] and not marked.masked[first]:
        return True, _special_html(marked.texts[first], len(run))
    text = escaped(
        "".join((" " if marked.starts_word[i] and i != first else "") + marked.texts[i] for i in run)
    )
    body = f"<b>{text}</b>" if marked.cross_document[first] else text
    return spaced, mark_html(marked, first, body) if marked.masked[first] else body


def mark_html(marked: MarkedTokens, i: int, body: str) -> str:
    """Masked token `i` as HTML; `body` is its text, escaped. The sign after it says what the model reads
    instead."""
    became = marked.replaced_by(i)
    if became == "hidden":
        return f"<mark>{body}</mark>"
    sign = (
        KEPT_SIGN if became == "kept" else f"{SWAPPED_SIGN}<bdi>{escaped(marked.replacement[i] or '')}</bdi>"
    )
    return f"<mark>{body}<i>{sign}</i></mark>"


def _special_html(text: str, times: int) -> str:
    # Direction given, so that a document whose own text runs right to left is still recognised as such.
    tablet = f'<small dir="ltr">{escaped(text)}</small>'
    if times > LONGEST_SPECIAL_RUN:
        return f"{tablet} \u00d7 {count_in_words(times)}"
    return " ".join([tablet] * times)


def _framed(tag: str, spaced: bool, body: str) -> tuple[bool, str]:
    return spaced, f"<{tag}>{body}</{tag}>"


def _joined(pieces: Iterable[tuple[bool, str]]) -> str:
    """Pieces in a row, with a space before each that asks for one, except the first."""
    return "".join((" " if spaced and i else "") + body for i, (spaced, body) in enumerate(pieces))
