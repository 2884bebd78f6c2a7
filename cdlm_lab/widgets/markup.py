"""Text, numbers and tables as HTML that is safe wherever a notebook is opened.

Two facts about JupyterLab shape what is written here. A notebook that was run elsewhere (by papermill, by a
colleague) is shown untrusted: `<style>`, `<script>` and `<svg>` are taken out of its HTML, while plain tags,
most inline styles and images from data addresses stay. So meaning is carried by tags and inline styles, and a
stylesheet only adds polish. And headings of any level in an output join the notebook's table of contents, so
none is used.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence

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
