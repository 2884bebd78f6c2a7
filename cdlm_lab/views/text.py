"""Tables as CSV and LaTeX, and small links that save them from a notebook, offline.

The links contain the file in their own address, so they work without kernel and network. Cells are escaped:
none contains a LaTeX command, or is read as a formula when a spreadsheet program opens the file.
"""

from __future__ import annotations

import base64
import csv
import io
import re
from collections.abc import Iterable, Sequence

from cdlm_lab.views.html import MUTED, div, escaped, visible

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet program takes for the start of a formula
_LATEX = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "\u2212": "$-$",
    "\u00b1": r"$\pm$",
    "\u00d7": r"$\times$",
    "\u00b2": "$^2$",
    "\u00b3": "$^3$",
    "\u2265": r"$\ge$",
    "\u2264": r"$\le$",
    "\u2013": "--",
    "\u2026": r"\ldots{}",
    "\u2713": r"$\surd$",
} | {sign: f"\\{sign}" for sign in "&%$#_{}"}
_LATEX_SIGNS = str.maketrans(_LATEX)


def csv_text(rows: Iterable[Sequence[str]]) -> str:
    """Return rows of texts, the headings first, as CSV. A text that would be a formula is prefixed by `'`."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([_inert(text) for text in row] for row in rows)
    return stream.getvalue()


def _inert(text: str) -> str:
    shown = visible(text)
    try:
        float(shown)
    except ValueError:
        return f"'{shown}" if shown.startswith(_FORMULA) else shown
    return shown


def latex_text(text: str) -> str:
    """Escape a text for LaTeX and put it on one line."""
    return " ".join(visible(text).split()).translate(_LATEX_SIGNS)


def latex_cell(text: str, below: str = "", *, bold: bool = False) -> str:
    """Return a table cell: the text, bold for the best score, followed by `below` in small type."""
    shown = rf"\textbf{{{latex_text(text)}}}" if bold else latex_text(text)
    return rf"{shown} {{\scriptsize {latex_text(below)}}}" if below else shown


def latex_table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, sides: str, comments: Iterable[str] = ()
) -> str:
    r"""Return a `tabular` with booktabs rules, from cells that are already LaTeX.

    `sides`: the alignment of each column, `l` or `r`; `comments`: texts that stand above it, after a %."""
    lines = [f"% {' '.join(visible(text).split())}" for text in comments if text]
    body = [rf"{' & '.join(row)} \\" for row in rows]
    return "\n".join(
        [
            *lines,
            r"% needs \usepackage{booktabs}",
            rf"\begin{{tabular}}{{{sides}}}",
            r"\toprule",
            rf"{' & '.join(heads)} \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def file_name(title: str, *, otherwise: str = "table") -> str:
    """Return a file name without suffix for a title: `Storyworld, test` becomes `storyworld-test`."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower())[:60].strip("-") or otherwise


def download_links(title: str, *, csv: str, latex: str) -> str:
    """Return small links that save a table as CSV and LaTeX; their addresses contain the files."""
    name, links = file_name(title.partition(", n = ")[0]), []
    for label, suffix, kind, text in (("CSV", "csv", "text/csv", csv), ("LaTeX", "tex", "text/plain", latex)):
        data = base64.b64encode(text.encode("utf-8")).decode("ascii")
        address, file = f"data:{kind};charset=utf-8;base64,{data}", escaped(f"{name}.{suffix}")
        links.append(f'<a download="{file}" href="{address}" style="color:inherit">{label}</a>')
    return div(f"save as {' &middot; '.join(links)}", f"font-size:11px;margin-top:2px;{MUTED}")
