"""Rows of scores as tables: how numbers are written, and what columns show of a row."""

from __future__ import annotations

import html
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cdlm_lab.experiments.reported_scores import ReportedRow, ReportedScore
from cdlm_lab.widgets.matching_table import p_in_words, per_cent
from cdlm_lab.widgets.result_table import NOT_RUN, ResultCell, ResultColumn, ResultTable

# A value and its bounds -> how they are written; all of a cell are written alike.
Form = Callable[[Sequence[float]], list[str]]
_NOT_RUN = ResultCell(text=NOT_RUN, missing=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table: its heading, and what it shows of a row."""

    heading: ResultColumn
    cell: Callable[[ReportedRow], ResultCell]


def in_per_cent(values: Sequence[float]) -> list[str]:
    """(0.7157,) -> `71.6`."""
    return list(map(per_cent, values))


def in_points(values: Sequence[float]) -> list[str]:
    """What is in per cent already: (71.57,) -> `71.6`."""
    return [f"{value:.1f}" for value in values]


def in_thousandths(values: Sequence[float]) -> list[str]:
    """Reciprocal ranks: (0.32968,) -> `0.330`."""
    return [f"{value:.3f}" for value in values]


def as_perplexity(values: Sequence[float]) -> list[str]:
    """With as many decimals as suit the first: (4.835, 4.69) -> `4.84`, `4.69`; (100.6, 94.13) -> `100.6`,
    `94.1`; (1234.5,) -> `1,234`."""
    decimals = 2 if values[0] < 100 else 1 if values[0] < 1000 else 0
    return [f"{value:,.{decimals}f}" for value in values]


def number_cell(
    score: ReportedScore | None, form: Form, *, missing: str = "", with_p: bool = False
) -> ResultCell:
    """A score with its deviation and interval; what is missing is said.

    Args:
        missing: what stands where there is no score; "" = an empty cell.
        with_p: p stands in the cell, too.
    """
    if score is None:
        return ResultCell(text=missing, missing=bool(missing))
    text, *bounds = form([score.value, *(score.interval or ())])
    below = [] if score.deviation is None else [f"\u00b1 {form([score.value, score.deviation])[1]}"]
    below += [f"[{', '.join(bounds)}]"] if bounds else []
    if with_p and score.p is not None:
        against = f" to {score.against}" if score.against else ""
        below.append(f"(p {'' if score.p < 0.001 else '= '}{p_in_text(score.p)}{against})")
    return ResultCell(text=text, below=" ".join(below))


def p_in_text(p: float) -> str:
    """0.0123 -> `0.012`, 0.0001 -> `< 0.001`."""
    return html.unescape(p_in_words(p))


def measured(
    name: str, measure: str, form: Form, *, below: str = "", bare: bool = False, with_p: bool = False
) -> Column:
    """A column of scores.

    Args:
        name, below: its heading.
        measure: by which rows have them; what a row lacks is an empty cell.
        bare: the value alone, without deviation and interval.
        with_p: as of `number_cell`.
    """

    def cell(row: ReportedRow) -> ResultCell:
        score = row.scores.get(measure)
        if score is not None and bare:
            score = ReportedScore(value=score.value)
        return number_cell(score, form, with_p=with_p)

    return Column(heading=ResultColumn(name=name, below=below), cell=cell)


def p_of(measure: str) -> Column:
    """A column of p-values; empty where nothing was tested."""

    def cell(row: ReportedRow) -> ResultCell:
        score = row.scores.get(measure)
        return ResultCell(text="" if score is None or score.p is None else p_in_text(score.p))

    return Column(heading=ResultColumn(name="p"), cell=cell)


def of_paper(name: str, text: Callable[[str], str], *, below: str = "") -> Column:
    """A column of a paper's numbers: system -> as written, "" = it has none."""

    def cell(row: ReportedRow) -> ResultCell:
        return paper_cell(text(row.system))

    return Column(heading=ResultColumn(name=name, below=below, published=True), cell=cell)


def paper_cell(text: str) -> ResultCell:
    """A number of a paper as it is written; "" = an empty cell."""
    return ResultCell(text=text, published=bool(text))


def table_of(
    rows: Iterable[ReportedRow],
    columns: Sequence[Column],
    *,
    of_others: Collection[str] = (),
    first: str = "system",
    caption: str = "",
    note: str = "",
    sources: Mapping[str, str] | None = None,
    lines: Sequence[str] = (),
) -> ResultTable:
    """A table with a row for each system, its label in front.

    Args:
        rows: one that has no scores is a system that was not measured: its cells say so.
        of_others: systems that the paper alone can have: their own cells are empty.
        first: heading of the labels.
        sources: system -> where its numbers are from.
        lines: as `sources` of the table.

    Raises:
        ValueError: no rows.
    """
    body = []
    for row in rows:
        cells = [column.cell(row) for column in columns]
        if not row.scores:
            lacking = ResultCell(text="") if row.system in of_others else _NOT_RUN
            cells = [
                cell if column.heading.published else lacking
                for cell, column in zip(cells, columns, strict=True)
            ]
        elif source := (sources or {}).get(row.system):
            cells = [
                cell if cell.published or not cell.text else replace(cell, source=source) for cell in cells
            ]
        body.append([ResultCell(text=row.label, published=row.system in of_others), *cells])
    headings = [ResultColumn(name=first, is_text=True), *(column.heading for column in columns)]
    return ResultTable(caption=caption, columns=headings, rows=body, note=note, sources=lines)
