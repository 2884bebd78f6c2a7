"""Text, numbers, tables, mentions and pages as HTML that is safe wherever a notebook is opened.

JupyterLab strips `<style>`, `<script>` and `<svg>` from untrusted outputs but keeps plain tags, most inline
styles and images with data addresses, so these carry the meaning. Headings are not used, because they would
appear in the notebook's table of contents. The hues are Okabe and Ito's; every colour is accompanied by a
symbol, a line or a word.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import regex

from cdlm_lab.encoders.variants import VARIANTS

MUTED = "opacity:0.72"
SMALL = f"font-size:11.5px;{MUTED}"
FRAME = "border:1px solid rgba(128,128,128,0.32)"
RULE = "rgba(128,128,128,0.22)"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"

# Variants of the CDLM paper in the order of its Table 1: name, colour and symbol in every picture.
_LOOKS = {
    "longformer": ("#8c8c8c", "circle"),
    "local-cdlm": ("#e69f00", "square"),
    "rand-cdlm": ("#cc79a7", "diamond"),
    "prefix-cdlm": ("#009e73", "cross"),
    "cdlm": ("#3b8ed0", "star"),
}
VARIANT_COLOURS = {variant: colour for variant, (colour, _) in _LOOKS.items()}
VARIANT_SYMBOLS = {variant: symbol for variant, (_, symbol) in _LOOKS.items()}
OTHER_COLOURS = ("#d55e00", "#56b4e9", "#b8a700", "#8c6bb1")  # for names other than these five variants
HUES = (*list(VARIANT_COLOURS.values())[:0:-1], *OTHER_COLOURS)  # without grey, which means: gold not known

MASKED, CROSS, WRONG = "#e69f00", "#009e73", OTHER_COLOURS[0]
GLOBAL = "#3b8ed0"  # Okabe-Ito blue, lightened until it is legible on a dark page
DEEPEST = 0.5  # opacity of the blue for the largest weight; text on it is legible on light and dark pages
TEXT = "#7a7a7a"  # contrast 4.3 on white, 4.4 on JupyterLab's #111111
UNKNOWN = "#8c8c8c"

SIGNS = {True: "\u2713", False: "\u2717", None: "\u00b7"}  # right, wrong, not known
PREDICTED = f'<span style="color:{GLOBAL}">\u25cf</span> predicted'
GOLD = f'<span style="color:{CROSS}">\u25c6</span> gold'

# Characters that change the direction of the text around them. Right-to-left scripts do not need them.
_DIRECTION_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def _visible(character: str) -> str:
    code = ord(character)
    if character in _DIRECTION_CONTROLS:
        return f"\u2039U+{code:04X}\u203a"
    if code < 0x20 and character not in "\n\t":
        return chr(0x2400 + code)  # the Unicode picture of the control character
    if code == 0x7F:
        return "\u2421"
    # Unpaired surrogates cannot be encoded as UTF-8.
    return "\ufffd" if 0x80 <= code <= 0x9F or 0xD800 <= code <= 0xDFFF else character


def visible(text: str) -> str:
    """Replace control characters by visible ones, for places where text is not interpreted as markup."""
    return "".join(map(_visible, text))


def escaped(text: str) -> str:
    """Escape `text` for HTML text and attributes; control characters and direction changes become visible."""
    return html.escape(visible(text), quote=True)


def text_of(markup: str) -> str:
    """Return the text content of HTML as one line."""
    return " ".join(html.unescape(_BLOCK.sub(" ", _INLINE.sub("", markup))).split())


def lines_of(markup: str) -> list[str]:
    """Return the text content of HTML, with one line for each block and each table row; none is empty."""
    parts = re.split(r"</(?:div|tr|p|li|summary|h\d)>|<br\s*/?>|<style>.*?</style>", markup, flags=re.DOTALL)
    return [line for part in parts if (line := text_of(part))]


_INLINE, _BLOCK = re.compile(r"</?(?:b|i|bdi|sub|sup|code)(?:\s[^>]*)?>"), re.compile(r"<[^>]*>")


def counted(count: int, noun: str) -> str:
    """Write a count with its noun: (1, "word") -> `1 word`, (4096, "word") -> `4,096 words`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def points_in_words(share: float) -> str:
    """Write a difference of proportions in percentage points: 0.0312 -> `+3.1`."""
    text = f"{100 * share:+.1f}".replace("-", "\u2212")
    return "0.0" if text[1:] == "0.0" else text


def bytes_in_words(size: float) -> str:
    """Write a size in bytes: 2_130_000_000 -> `2.1 GB` (powers of ten, as disks and GPUs are sold)."""
    amount, unit = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 999.5:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.0f} {unit}" if unit == "B" or amount >= 99.5 else f"{amount:.1f} {unit}"


def seconds_in_words(seconds: float) -> str:
    """Write a duration: 0.25 -> `0.25 s`, 95 -> `1 min 35 s`, 7260 -> `2 h 1 min`, 100000 -> `1 d 3 h`."""
    if seconds < 9.95:
        return "0 s" if seconds < 0.01 else f"{seconds:.2g} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    units = ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))
    size, unit, smaller, smaller_unit = next(entry for entry in units if whole >= entry[0])
    return f"{whole // size} {unit} {whole % size // smaller} {smaller_unit}"


def check_some(items: Sequence[object], noun: str) -> None:
    """Raise a ValueError if `items` is empty; `noun` is what the message calls an item."""
    if not items:
        raise ValueError(f"there is no {noun} to show: reads is empty")


def paper_order(variants: Iterable[str]) -> list[str]:
    """Sort variants as in the CDLM paper's Table 1, without duplicates; other names follow in given order."""
    places = {variant: place for place, variant in enumerate(VARIANTS)}
    return sorted(dict.fromkeys(variants), key=lambda variant: places.get(variant, len(places)))


def variant_colours(variants: Iterable[str]) -> dict[str, str]:
    """Return a colour for each variant, the same in every figure; other names take the spare hues in turn."""
    others = [variant for variant in paper_order(variants) if variant not in VARIANTS]
    return VARIANT_COLOURS | {name: OTHER_COLOURS[i % len(OTHER_COLOURS)] for i, name in enumerate(others)}


def image_from_svg(svg: str, *, description: str) -> str:
    """Return an `<img>` whose address contains the SVG, which needs the xmlns attribute. Scripts never run in
    an image, and untrusted notebooks keep it, unlike inline `<svg>`."""
    data = base64.b64encode(svg.encode("utf-8")).decode("ascii")
    look = "width:100%;max-width:100%;display:block"
    return f'<img alt="{escaped(description)}" src="data:image/svg+xml;base64,{data}" style="{look}">'


def div(body: str, style: str) -> str:
    """Wrap HTML in a `<div>` with inline CSS."""
    return f'<div style="{style}">{body}</div>'


def span(body: str, style: str) -> str:
    """Wrap HTML in a `<span>` with inline CSS."""
    return f'<span style="{style}">{body}</span>'


def document_name(name: str, first_sentence: str) -> str:
    """Return the title to show for a document: for a storyworld report its headline, which is its first
    sentence, for any other document its name."""
    return name if shown_id(name) else one_line(first_sentence, LONGEST_HEADLINE)


def shown_id(name: str) -> str:
    """Return an item's id in its corpus; "" for storyworld's running numbers and for the user's own texts."""
    return "" if name.startswith("storyworld-") or name == "own" else name


def name_html(text: str, style: str = "overflow-wrap:anywhere") -> str:
    """Return an untrusted name as HTML that cannot change the direction of the text around it."""
    return f'<bdi style="{style}">{escaped(text)}</bdi>'


def muted(text: str, *, size: float = 12) -> str:
    """Return a muted line in small type; `text` is HTML."""
    return div(text, f"font-size:{size}px;{MUTED}")


def warning(text: str) -> str:
    """Return a plain text as a line that nobody overlooks; "" for an empty text."""
    sign = '<b aria-hidden="true">\u26a0</b>'
    line = f"border-left:4px solid {WRONG};padding:4px 10px;margin:4px 0;max-width:940px"
    return div(f"{sign} {escaped(text)}", line) if text else ""


def cut_in_words(what: str, *, lost: int, of: int, policy: str, unit: str = "tokens") -> str:
    """Return a line, plain text, on how much of the total is not read, and by which rule; "" for nothing."""
    return f"{what}: {lost:,} of {of:,} {unit} are not read; {policy}" if lost else ""


def unread(text: str) -> str:
    """Return HTML that no model has read, struck out and pale; a legend or a number says what that means."""
    return f'<s title="not read" style="opacity:0.55">{text}</s>'


def text_box(text: str, style: str) -> str:
    """Return a text, which is HTML, in a box of its own; `style` may add a background and a border."""
    look = f"line-height:1.5;overflow-wrap:anywhere;border-radius:3px;{style}"
    return f'<div style="{look}" dir="auto">{text}</div>'


def headline(text: str) -> str:
    """Return an untrusted text as the headline of a view."""
    return f'<div style="font-size:16px;font-weight:600" dir="auto">{escaped(text)}</div>'


def legend(parts: Iterable[str]) -> str:
    """Return a legend of marks and backgrounds, from items (HTML) side by side; "" without items."""
    items = "".join(span(part, "display:inline-block;margin:1px 16px 1px 0") for part in parts)
    return f'<div class="cdlm-legend" style="font-size:12px;margin:2px 0 7px">{items}</div>' if items else ""


def fold(summary: str, body: str) -> str:
    """Return HTML that is folded until a click on `summary`, which is HTML too."""
    return f'<details style="margin:6px 0"><summary>{summary}</summary>{body}</details>'


def tile(name: str, value: str, note: str = "") -> str:
    """Return a number in large type, with its name above it and a note below."""
    number = div(value, "font-size:19px;font-weight:600;line-height:1.25")
    place = "display:inline-block;vertical-align:top;margin:0 20px 8px 0"
    return div(f"{muted(name)}{number}{muted(note) if note else ''}", place)


def card(body: str) -> str:
    """Return HTML with a border around it, for one of several items of a view."""
    return f'<div class="cdlm-card" style="{FRAME};border-radius:8px;padding:10px 14px 12px">{body}</div>'


def right_or_wrong(right: bool) -> str:
    """Return a green tick and "right", or a red cross and "wrong", as HTML."""
    colour, word = (CROSS, "right") if right else (WRONG, "wrong")
    return f'<b style="color:{colour}">{SIGNS[right]}</b> {word}'


def share_bar(share: float, text: str = "", *, width: int = 40) -> str:
    """Return a bar of `width` pixels, filled to `share`, in [0, 1], below its percentage or below `text`."""
    bar = div("", f"height:3px;width:{100 * share:.0f}%;background:{GLOBAL}")
    number = text or f"{100 * share:.0f}%"
    track = div(bar, f"height:3px;background:{RULE}")
    return div(f"{number}{track}", f"width:{width}px;font-size:12px;text-align:right")


def blue_ground(share: float) -> str:
    """Return CSS for a blue background, deeper for a larger share, in [0, 1]; text stays legible on it."""
    return f"background:{GLOBAL}{round(255 * DEEPEST * share):02x}"


def swatches() -> str:
    """Return samples of the blue backgrounds for 0, 50 and 100%, for a legend."""
    return "".join(
        span(f"{100 * share:.0f}%", f"{blue_ground(share)};padding:1px 7px") for share in (0, 0.5, 1)
    )


# Attributes of tables and their parts: without rules and all aligned left, or with rules, words and numbers.
_TABLE = 'class="cdlm-table" style="border-collapse:collapse;'
BARE = f'{_TABLE}font-size:13.5px;margin:2px 0"'
CELL = 'style="text-align:left;white-space:normal;padding:2px 8px 2px 0;vertical-align:baseline"'
TOP = CELL.replace("baseline", "top")
LIGHT = f'{CELL[:-1]};font-weight:400;{SMALL}"'  # of headings
RULED = f'{_TABLE}font-size:13px;margin:4px 0"'
ROW = f'style="border-top:1px solid {RULE}"'
_PADDING = "padding:5px 18px 5px 0"
WORD = f'style="text-align:left;white-space:normal;vertical-align:top;{_PADDING}"'
NUMBER = f'style="text-align:right;white-space:nowrap;vertical-align:top;{_PADDING}"'
HEAD = f'style="text-align:left;font-weight:600;vertical-align:bottom;{_PADDING}"'
RIGHT = HEAD.replace("left", "right", 1)


def table_html(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: Sequence[int] = (0,)
) -> str:
    """Return a table from headings and cells that are HTML. Columns whose index is in `text_columns` are
    aligned left, the others, which hold numbers, right."""
    looks = [WORD if i in text_columns else NUMBER for i in range(len(columns))]
    sides = [HEAD if look is WORD else RIGHT for look in looks]
    head = "".join(f"<th {side}>{name}</th>" for side, name in zip(sides, columns, strict=True))
    lines = (
        "".join(f"<td {look}>{cell}</td>" for look, cell in zip(looks, row, strict=True)) for row in rows
    )
    body = "".join(f"<tr {ROW}>{line}</tr>" for line in lines)
    head = f"<thead><tr>{head}</tr></thead>" if head else ""
    return f"<table {RULED}>{head}<tbody>{body}</tbody></table>"


def bare_table(rows: Iterable[Sequence[str]], *, align: str = "baseline") -> str:
    """Return a table without rules and headings from cells that are HTML, all aligned left."""
    look = CELL.replace("baseline", align)
    lines = ("".join(f"<td {look}>{cell}</td>" for cell in row) for row in rows)
    return f"<table {BARE}><tbody>{''.join(f'<tr>{line}</tr>' for line in lines)}</tbody></table>"


LONGEST_CONTEXT = 160  # characters on either side of a mention
LONGEST_NAME = 28  # characters of the name of a gold cluster
NAME_START = 7  # how many of them are from its start; names of one corpus begin alike
LONGEST_HEADLINE = 60  # characters of a headline that is shown in place of a name
LONGEST_TEXT = 300  # characters of a mention
_LONGEST_WORD = 20  # most characters that are dropped to cut between words

_CLOSING = re.compile(r"\s+([,.;:!?%)\]}\u2019\u201d]|'s\b|n't\b|'')")
_OPENING = re.compile(r"([(\[{$\u2018\u201c]|``)\s+|([\u00a3\u00a5\u20a0-\u20c0#])\s+(?=\d)")


def joined(tokens: Iterable[str]) -> str:
    """Join tokens with the spaces of running text: `He did n't , she said .` -> `He didn't, she said.`"""
    return _OPENING.sub(r"\1\2", _CLOSING.sub(r"\1", " ".join(tokens)))


def gap_between(left: str, right: str) -> str:
    """Return the space that running text has between two words or other parts of a text; "" for none."""
    pair = (left.split() or [""])[-1], (right.split() or [""])[0]
    return " " if left and right and joined(pair) != "".join(pair) else ""


def cut_at(text: str, longest: int, *, at_start: bool = False) -> str:
    """Return at most `longest` characters from the start of a text (from its end with `at_start`), without a
    part of what a reader takes for one sign: a letter with its marks, or an emoji of several characters."""
    if len(text) <= longest:
        return text
    if at_start:
        begins = (sign.start() for sign in regex.finditer(r"\X", text))
        return text[next((place for place in begins if place >= len(text) - longest), len(text)) :]
    ends = (sign.end() for sign in regex.finditer(r"\X", text[: longest + 1]))
    return text[: max((place for place in ends if place <= longest), default=0)]


def shortened(text: str, longest: int, *, at_start: bool = False) -> str:
    """Truncate a text to `longest` characters, at its start or its end, and put an ellipsis where it was cut.
    The cut is between words unless the next space is more than 20 characters away, and never in a sign."""
    if len(text) <= longest:
        return text
    part = cut_at(text, longest - 1, at_start=at_start)
    if at_start:
        space = part.find(" ", 0, _LONGEST_WORD)
        return f"\u2026{part[space:] if space >= 0 else part}"
    space = part.rfind(" ", max(1, len(part) - _LONGEST_WORD))
    return f"{part[: space + 1] if space >= 0 else part}\u2026"


def one_line(text: str, longest: int) -> str:
    """Return a text as an entry of a list of plain texts: on one line, truncated, all characters visible."""
    return shortened(visible(" ".join(text.split())), longest)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMention:
    """A mention in its sentence, as untrusted texts."""

    text: str  # the words of the mention
    before: str = ""  # the start of its sentence
    after: str = ""  # the rest of its sentence
    document: str = ""  # name of its document
    gold: str | None = None  # name of its gold cluster; None = not known, as in the user's own documents

    @classmethod
    def from_tokens(
        cls, tokens: Sequence[str], span: tuple[int, int], *, document: str = "", gold: str | None = None
    ) -> ShownMention:
        """Make a mention from a sentence's tokens and its half-open `span` in them."""
        start, end = span
        before, text, after = map(joined, (tokens[:start], tokens[start:end], tokens[end:]))
        return cls(text=text, before=before, after=after, document=document, gold=gold)

    @property
    def sentence(self) -> str:
        """The whole sentence as text."""
        return joined([part for part in (self.before, self.text, self.after) if part])


def sentence_html(mention: ShownMention, colour: str) -> str:
    """Return the sentence with the mention marked, its context truncated, then the document's name, muted."""
    before = escaped(shortened(mention.before, LONGEST_CONTEXT, at_start=True))
    after = escaped(shortened(mention.after, LONGEST_CONTEXT))
    mark = f"background:{colour}42;color:inherit;border-radius:3px;padding:1px 3px;font-weight:600"
    text = f'<mark style="{mark}">{escaped(shortened(mention.text, LONGEST_TEXT))}</mark>'
    left, right = gap_between(mention.before, mention.text), gap_between(mention.text, mention.after)
    where = "&ensp;" + span(f"<bdi>{escaped(mention.document)}</bdi>", SMALL) if mention.document else ""
    return f'<bdi style="overflow-wrap:anywhere">{before}{left}{text}{right}{after}</bdi>{where}'


def gold_chip(gold: str | None, colour: str, note: str = "") -> str:
    """Return a dot in a gold cluster's colour and its name, shortened if long; `note` (HTML) is muted."""
    name, title = "gold not known", ""
    if gold is not None:
        long = len(gold) > LONGEST_NAME  # then shown without its middle
        end = cut_at(gold, LONGEST_NAME - NAME_START - 1, at_start=True)
        shown = f"{cut_at(gold, NAME_START)}\u2026{end}" if long else gold
        name, title = f"<bdi>{escaped(shown)}</bdi>", f' title="{escaped(gold)}"' if long else ""
    rest = f" {span(note, MUTED)}" if note else ""
    style = "display:inline-block;margin:0 12px 2px 0;font-size:12px"
    return f'<span style="{style}"{title}><span style="color:{colour}">\u25cf</span> {name}{rest}</span>'


def gold_colours(
    together: Iterable[Iterable[str | None]], known: Mapping[str | None, str] | None = None
) -> dict[str | None, str]:
    """Return a colour for each gold cluster; grey for None. `known`: those in other pictures, which stay.

    There are more gold clusters than distinguishable colours, so colours are reused, but if possible not
    within one item of `together`, which holds the names of clusters that are shown side by side.
    """
    beside: dict[str, set[str]] = {}
    for names in together:
        each = dict.fromkeys(name for name in names if name is not None)
        for name in each:
            beside.setdefault(name, set()).update(each)
    colours: dict[str | None, str] = {None: UNKNOWN, **(known or {})}
    used = Counter(colours.values())
    for name, neighbours in beside.items():
        if name in colours:
            continue
        taken = {colours[other] for other in neighbours if other in colours}
        free = [hue for hue in HUES if hue not in taken] or list(HUES)
        colours[name] = min(free, key=used.__getitem__)
        used[colours[name]] += 1
    return colours


_VIEW_STYLE = """
div.cdlm-view{color:var(--jp-ui-font-color1,inherit)}
div.cdlm-view .cdlm-card{background:var(--jp-layout-color1,transparent)}
div.cdlm-view table.cdlm-table tr{background:none!important}
div.cdlm-view summary{cursor:pointer}
div.cdlm-card>details>summary,div.cdlm-clusters>details>summary,div.cdlm-aligned>details>summary
 {margin-top:6px;color:var(--jp-content-link-color,inherit)}
"""

# ipywidgets draws the arrow of its selection lists in black, even in a dark notebook.
LIGHT_ARROWS = (
    '<style>[data-jp-theme-light=false]{--jp-widgets-dropdown-arrow:url("data:image/svg+xml,'
    "%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 18 18'%3E%3Cpath fill='%23bbb' "
    "d='M5.2 5.9 9 9.7l3.8-3.8 1.2 1.2-4.9 5-4.9-5z'/%3E%3C/svg%3E\")}</style>"
)


def view_html(name: str, body: str, *, width: int = 960, style: str = "") -> str:
    """Wrap a view's HTML in an element of class `cdlm-NAME`; `style`: CSS beyond that of all views."""
    look = f"font-size:13.5px;line-height:1.5;max-width:{width}px;overflow-x:auto"
    styles = f"<style>{_VIEW_STYLE}{style}</style>"
    return f'<div class="cdlm-view cdlm-{name}" style="{look}">{styles}{body}</div>'


_PAGE_STYLE = f"""
:root{{color-scheme:light dark}}
body{{font-family:{FONT};margin:24px auto;padding:0 16px;max-width:960px}}
"""


STILL_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def whole_page(
    body: str, *, title: str, policy: str, style: str, name: str = "", scripts: Sequence[str] = ()
) -> str:
    """Return an HTML document with the content security policy `policy`, which runs no scripts but `scripts`,
    at its end, by their checksums. `title` is untrusted text; `name` is the class of the body."""
    if scripts:
        sums = (base64.b64encode(hashlib.sha256(one.encode("utf-8")).digest()).decode() for one in scripts)
        policy += "; script-src " + " ".join(f"'sha256-{one}'" for one in sums)
    code = "".join(f"<script>{one}</script>" for one in scripts)
    named = f' class="{name}"' if name else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">'
        f"<title>{escaped(title)}</title><style>{style}</style></head><body{named}>{body}{code}</body></html>"
    )


def still_page(body: str, *, title: str, note: str, style: str = "", scripts: Sequence[str] = ()) -> str:
    """Return a page around HTML that is already safe. The page runs no scripts but `scripts`, at its end,
    loads nothing, and is light or dark as the browser prefers. `title`, and `note` below it, are untrusted
    texts; `style` is CSS in addition to that of all pages."""
    policy = f"{STILL_POLICY}; img-src data: blob:" if scripts else STILL_POLICY
    head = div(f"<bdi>{escaped(title)}</bdi>", "font-size:20px;font-weight:600")
    head += div(muted(escaped(note), size=13), "margin:2px 0 16px")
    return whole_page(head + body, title=title, policy=policy, style=_PAGE_STYLE + style, scripts=scripts)


Read = TypeVar("Read")


def page_of(
    reads: Sequence[Read],
    show: Callable[[Read], str],
    *,
    noun: str,
    facts: Iterable[str],
    title: str,
) -> str:
    """Return a page with all `reads`; below its title stand their number, with `noun`, and the `facts`."""
    check_some(reads, noun)
    style = "div.cdlm-view{border-top:1px solid rgba(128,128,128,0.4);padding:14px 0 22px}"
    note = "; ".join([counted(len(reads), noun), *facts])
    return still_page("".join(map(show, reads)), title=title, note=note, style=style)


def right_of_known(rights: Iterable[bool | None], words: str) -> list[str]:
    """Count what is right: (True, None, False), "{} of {} right" -> [`1 of 2 right`]; [] if all are None."""
    known = [right for right in rights if right is not None]
    return [words.format(f"{sum(known):,}", f"{len(known):,}")] if known else []
