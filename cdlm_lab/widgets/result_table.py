"""Tables of the results book: ours beside theirs, each number with the report that it is from; as HTML for a
notebook and as Markdown for a README."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cdlm_lab.widgets.html import MUTED, escaped, visible
from cdlm_lab.widgets.matching_table import captioned_table, muted_heading

NOT_RUN = "not run"
_SMALL = f"font-size:11px;white-space:nowrap;{MUTED}"
# What Markdown would take for markup; an underscore within a word it leaves alone.
_MARKDOWN = re.compile(r"[\\`*|]|(?<!\w)_|_(?!\w)|\[(?=[^\]]*\]\()|<(?=[A-Za-z/!?])")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultCell:
    """What stands in one place of a table; plain text throughout.

    Attributes:
        text: the number or name.
        below: what belongs to it, such as deviation and interval: in small type below it, in Markdown behind
            it.
        source: where the number is from, shown when one points at it.
        published: a number of a paper: muted, in Markdown italic.
        missing: not measured, where it could be: muted.
        best: bold in HTML.
    """

    text: str
    below: str = ""
    source: str = ""
    published: bool = False
    missing: bool = False
    best: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultColumn:
    """A column: its heading, what stands small below that, and what it holds; numbers are set flush right."""

    name: str
    below: str = ""
    published: bool = False
    is_text: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultTable:
    """A table.

    Attributes:
        caption: what it is, above it; "" = none.
        columns: texts before numbers.
        rows: as long as `columns`.
        note: below it; "" = none.
        sources: the reports that the numbers are from, and what was passed over, each a line.

    Raises:
        ValueError: no rows, or a row with more or fewer cells than there are columns.
    """

    caption: str
    columns: Sequence[ResultColumn]
    rows: Sequence[Sequence[ResultCell]]
    note: str = ""
    sources: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not self.rows:
            raise ValueError(f"{self.caption or 'a table'}: there is no row to show")
        if wrong := [len(row) for row in self.rows if len(row) != len(self.columns)]:
            raise ValueError(
                f"{self.caption or 'a table'}: a row has {wrong[0]} cells, but there are "
                f"{len(self.columns)} columns"
            )


def result_table_html(table: ResultTable) -> str:
    """The table as HTML, its sources below it."""
    columns = [
        muted_heading(column.name, column.below) if column.published else _heading(column)
        for column in table.columns
    ]
    body = [[_cell_html(cell) for cell in row] for row in table.rows]
    texts = sum(column.is_text for column in table.columns)
    html = captioned_table(table.caption, columns, body, note=table.note, texts=texts)
    lines = "".join(f"<div>{escaped(line)}</div>" for line in table.sources)
    return html + (f'<div style="font-size:11px;{MUTED}">{lines}</div>' if lines else "")


def result_table_markdown(table: ResultTable) -> str:
    """The rows in GitHub's Markdown, without caption, note and sources, and without a line break at the
    end."""
    heads = [
        f"*{markdown_text(text)}*" if column.published else markdown_text(text)
        for column in table.columns
        for text in [f"{column.name}: {column.below}" if column.below else column.name]
    ]
    rules = ["---" if column.is_text else "---:" for column in table.columns]
    lines = [
        f"| {' | '.join(heads)} |",
        f"|{'|'.join(rules)}|",
        *(f"| {' | '.join(map(_cell_markdown, row))} |" for row in table.rows),
    ]
    return "\n".join(lines)


def _heading(column: ResultColumn) -> str:
    below = f'<div style="{_SMALL};font-weight:400">{escaped(column.below)}</div>' if column.below else ""
    return f"<div>{escaped(column.name)}</div>{below}"


def _cell_html(cell: ResultCell) -> str:
    text = f"<b>{escaped(cell.text)}</b>" if cell.best else f"<bdi>{escaped(cell.text)}</bdi>"
    if cell.below:
        text += f'<div style="{_SMALL}">{escaped(cell.below)}</div>'
    style = f' style="{MUTED}"' if cell.published or cell.missing else ""
    title = f' title="{escaped(cell.source)}"' if cell.source else ""
    return f"<div{style}{title}>{text}</div>" if style or title else text


def _cell_markdown(cell: ResultCell) -> str:
    text = markdown_text(" ".join(filter(None, (cell.text, cell.below))))
    return f"*{text}*" if text and (cell.published or cell.missing) else text


def markdown_text(text: str) -> str:
    """Plain text as Markdown in a cell: nothing in it is markup, and it is one line."""
    return _MARKDOWN.sub(r"\\\g<0>", " ".join(visible(text).split()))
