"""Tables of scores, ours next to the papers', as HTML for notebooks, as Markdown and as plain text.

A `ScoreTable` holds texts in rows and columns; `table_of` makes one from rows of scores, and from columns
that define what is shown of a row. The papers' numbers are read from `results/published.csv`. The columns of
each experiment are defined in `score_tables`.
"""

from __future__ import annotations

import csv
import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from IPython.display import HTML

from cdlm_lab.runs.scores import Score
from cdlm_lab.views.html import MUTED, div, escaped, lines_of, table_html, text_of, visible
from cdlm_lab.views.text import csv_text, download_links, latex_cell, latex_table

NONE, NOT_RUN = "\u2013", "not run"
MOST_LINES = 40  # most lines of a view that are written to a log
DEV = "dev "  # prefix of a metric's name: the same metric on the dev split
PUBLISHED = Path(__file__).resolve().parents[1] / "results" / "published.csv"
_LONG = 24  # characters of a text that is not to be broken into single words
_SMALL = f"font-size:11px;font-weight:400;white-space:nowrap;{MUTED}"
# Style of a test result: wrapped, so that the name of the other system does not widen the column.
_TEST = f"font-size:11px;white-space:normal;min-width:92px;max-width:176px;margin-left:auto;{MUTED}"
# What Markdown would interpret as markup; underscores within words are not interpreted.
_MARKDOWN = re.compile(r"[\\`*|]|(?<!\w)_|_(?!\w)|\[(?=[^\]]*\]\()|<(?=[A-Za-z/!?])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of a table; all of its strings are plain text."""

    text: str = ""  # the number or name
    # Details such as deviation and interval: in small type below the number, in Markdown after it.
    below: str = ""
    test: str = ""  # p-value, and the system compared with: in small type below that
    source: str = ""  # where the number is from; shown on hovering
    published: bool = False  # True = a number of a paper: muted, in Markdown italic
    missing: bool = False  # True = it could be measured but was not: muted
    best: bool = False  # True = bold in HTML

    @property
    def html(self) -> str:
        """The cell as HTML."""
        name = escaped(self.text)
        if self.published and len(self.text) > _LONG:  # several numbers: one below the other
            name = name.replace(" / ", " /<br>")
        text = f"<b>{name}</b>" if self.best else f"<bdi>{name}</bdi>"
        text += div(escaped(self.below), _SMALL) if self.below else ""
        text += div(escaped(self.test), _TEST) if self.test else ""
        style = f' style="{MUTED}"' if self.published or self.missing else ""
        title = f' title="{escaped(self.source)}"' if self.source else ""
        return f"<div{style}{title}>{text}</div>" if style or title else text

    @property
    def line(self) -> str:
        """The cell as one line of text."""
        return " ".join(filter(None, (self.text, self.small)))

    @property
    def small(self) -> str:
        """What is shown in small type, as one line of text."""
        return " ".join(filter(None, (self.below, self.test)))

    @property
    def markdown(self) -> str:
        """The cell as Markdown."""
        text = markdown_text(self.line)
        return f"*{text}*" if text and (self.published or self.missing) else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """The heading of a column of texts (aligned left) or numbers (right), with a line in small type below."""

    name: str
    below: str = ""
    published: bool = False
    is_text: bool = False

    @property
    def html(self) -> str:
        """The heading as HTML."""
        name = div(escaped(self.name), MUTED) if self.published else f"<div>{escaped(self.name)}</div>"
        return name + (div(escaped(self.below), _SMALL) if self.below else "")

    @property
    def line(self) -> str:
        """The heading as one line of text."""
        return f"{self.name}: {self.below}" if self.below else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTable:
    """A table that Jupyter displays as HTML, or as text where HTML cannot be shown."""

    caption: str  # shown above the table; "" = none
    columns: Sequence[Heading]  # columns of texts come before those of numbers
    rows: Sequence[Sequence[Cell]]  # each as long as `columns`
    note: str = ""  # shown below the table; "" = none
    # Lines that name the reports that the numbers are from, and what was ignored.
    sources: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not self.rows:
            raise ValueError(f"{self.caption or 'a table'}: there is no row to show")

    def html(self) -> str:
        """Return the table as HTML with caption, note, sources and links that save it."""
        texts = [number for number, column in enumerate(self.columns) if column.is_text]
        rows = [
            [
                div(cell.html, "min-width:160px") if number in texts and len(cell.text) > _LONG else cell.html
                for number, cell in enumerate(row)
            ]
            for row in self.rows
        ]
        table = table_html([column.html for column in self.columns], rows, text_columns=texts)
        lines = "".join(f"<div>{escaped(line)}</div>" for line in self.sources)
        return (
            div(escaped(self.caption), "font-size:13px;font-weight:600;margin:8px 0 2px")
            + div(table, "overflow-x:auto;font-variant-numeric:tabular-nums")
            + div(escaped(self.note), f"font-size:12px;max-width:900px;{MUTED}")
            + (div(lines, f"font-size:11px;{MUTED}") if lines else "")
            + download_links(self.caption, csv=self.csv(), latex=self.latex())
        )

    def csv(self) -> str:
        """Return the rows as CSV, with the details in small type in separate columns from the numbers."""
        small = [any(row[number].small for row in self.rows) for number in range(len(self.columns))]
        heads = [(one.line, f"{one.line} (\u00b1, interval, p)") for one in self.columns]
        rows = [heads, *([(cell.text, cell.small) for cell in row] for row in self.rows)]
        return csv_text(
            [text for texts, more in zip(row, small, strict=True) for text in texts[: 1 + more]]
            for row in rows
        )

    def latex(self) -> str:
        """Return a LaTeX table with booktabs rules; caption, note and sources are comments above it."""
        sides = "".join("l" if column.is_text else "r" for column in self.columns)
        heads = [latex_cell(one.name, one.below) for one in self.columns]
        rows = [[latex_cell(cell.text, cell.small, bold=cell.best) for cell in row] for row in self.rows]
        return latex_table(heads, rows, sides=sides, comments=[self.caption, self.note, *self.sources])

    def markdown(self) -> str:
        """Return the rows as GitHub Markdown, without caption, note, sources and final newline."""
        names = [markdown_text(column.line) for column in self.columns]
        pairs = list(zip(names, self.columns, strict=True))
        heads = " | ".join(f"*{name}*" if column.published else name for name, column in pairs)
        rules = "|".join("---" if column.is_text else "---:" for column in self.columns)
        rows = [f"| {' | '.join(cell.markdown for cell in row)} |" for row in self.rows]
        return "\n".join([f"| {heads} |", f"|{rules}|", *rows])

    def text(self) -> str:
        """Return the table as plain text, its columns padded with spaces, with caption, note and sources."""
        lines = [[visible(one.line) for one in line] for line in (self.columns, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = [
            "  ".join(
                text.ljust(width) if column.is_text else text.rjust(width)
                for text, width, column in zip(line, widths, self.columns, strict=True)
            ).rstrip()
            for line in lines
        ]
        parts = [visible(self.caption), *table, visible(self.note), *map(visible, self.sources)]
        return "\n".join(filter(None, parts))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": self.text()}


def text_table(
    columns: Sequence[str], rows: Iterable[Sequence[str | Cell]], *, texts: int = 1, caption: str = ""
) -> ScoreTable:
    """Return a table of plain texts. The first `texts` columns hold words, the others numbers; a table
    without rows shows one row that says "none"."""
    cells = [[one if isinstance(one, Cell) else Cell(text=one) for one in row] for row in rows]
    nothing = [[Cell(text="none", missing=True), *[Cell()] * (len(columns) - 1)]]
    heads = [Heading(name=name, is_text=number < texts) for number, name in enumerate(columns)]
    return ScoreTable(caption=caption, columns=heads, rows=cells or nothing)


class Shown(HTML):
    """HTML with a plain-text version for places without HTML, such as the log of an unattended run. `text`:
    "" = the first lines of the HTML's own text."""

    def __init__(self, html: str, text: str = "") -> None:
        super().__init__(html)
        if not text:
            lines = lines_of(html)
            more = [f"({len(lines) - MOST_LINES:,} lines more)"] if len(lines) > MOST_LINES else []
            text = "\n".join(lines[:MOST_LINES] + more)
        self.text = text

    def __repr__(self) -> str:
        return self.text


def html_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int = 1) -> Shown:
    """Return a table from headings and cells that are HTML; the first `texts` columns hold words."""
    lines = [[text_of(cell) for cell in row] for row in rows]
    plain = text_table([text_of(column) for column in columns], lines, texts=texts)
    return Shown(table_html(columns, rows, text_columns=range(texts)), plain.text())


def markdown_text(text: str) -> str:
    """Escape plain text for a Markdown cell and put it on one line."""
    return _MARKDOWN.sub(r"\\\g<0>", " ".join(visible(text).split()))


@dataclass(frozen=True, slots=True)
class Form:
    """Number format of a cell's value and its bounds, and the range in which values are valid."""

    write: Callable[[Sequence[float]], list[str]]
    least: float
    most: float


def _perplexities(values: Sequence[float]) -> list[str]:
    """Write all with the decimals of the first: (4.835, 4.69) -> 4.84, 4.69; (100.6, 94.13) -> 100.6, 94.1"""
    decimals = 2 if values[0] < 100 else 1 if values[0] < 1000 else 0
    return [f"{value:,.{decimals}f}" for value in values]


PER_CENT = Form(lambda values: [f"{100 * value:.1f}" for value in values], 0, 1)  # 0.7157 -> 71.6
POINTS = Form(lambda values: [f"{value:.1f}" for value in values], -100, 100)  # 71.57 -> 71.6
THOUSANDTHS = Form(lambda values: [f"{value:.3f}" for value in values], 0, 1)  # 0.32968 -> 0.330
PERPLEXITY = Form(_perplexities, 1, float("inf"))


def p_text(p: float) -> str:
    """Write a p-value: 0.0123 -> `0.012`, 0.0001 -> `< 0.001`."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _interval(score: Score) -> tuple[float, ...]:
    """Return the bounds, if any; none for a single cluster, whose bootstrap samples are all the same."""
    return () if score.low is None or score.clusters == 1 else (score.low, score.high)


def _short_label(system: str, labels: Mapping[str, str]) -> str:
    """The label of a system without what its model began with, unless another label begins alike."""
    label = labels.get(system, system)
    short = label.partition(" (")[0]
    return short if [one.partition(" (")[0] for one in labels.values()].count(short) < 2 else label


def number_cell(score: Score | None, form: Form, *, with_p: bool = False, against: str = "") -> Cell:
    """Return the cell of a score with its deviation and interval, and, if `with_p`, the p-value of the test
    against the system whose label is `against`. None makes an empty cell. Raises ValueError for a value
    outside the range of `form`, such as a proportion above 1."""
    if score is None:
        return Cell()
    if not form.least <= score.value <= form.most:
        bounds = f"[{form.least}, {form.most}]"
        raise ValueError(f"{score.system}: {score.metric} is {score.value}; it must lie in {bounds}")
    text, *bounds = form.write([score.value, *_interval(score)])
    below = [] if score.deviation is None else [f"\u00b1 {form.write([score.value, score.deviation])[1]}"]
    below += [f"[{', '.join(bounds)}]"] if bounds else []
    test = ""
    if with_p and score.p is not None:
        to = f" to {against}" if against else ""
        test = f"(p {'' if score.p < 0.001 else '= '}{p_text(score.p)}{to})"
    return Cell(text=text, below=" ".join(below), test=test)


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemRow:
    """A row of a table: a system and its scores."""

    group: str = ""  # group that the scores are of
    system: str  # the system's name in the report, or in the tables of a paper
    label: str  # the name to show
    checkpoint: str = ""  # the pretrained encoder that the system uses; "" = none, or not known
    # Metric -> score; those on the dev split have the key `DEV` + metric.
    scores: Mapping[str, Score] = field(default_factory=dict)
    published: bool = False  # True = the row has only numbers of a paper


def system_rows(
    scores: Iterable[Score], *, split: str = "test", group: str = "", labels: Mapping[str, str] | None = None
) -> list[SystemRow]:
    """Return one row per system with the means over seeds in a report.

    Args:
        split: of the scores; unless it is dev, dev scores are added, prefixed by `DEV`. "" = no splits.
        group: group of the scores; a system without scores of this group gets those of the group `all`.
        labels: system -> name to show, in the order of the rows; systems without a label are left out.
            None = all systems, under their own names.
    """
    means = [score for score in scores if score.system and score.seed is None]
    of_group = {score.system for score in means if score.group == group}
    rows: dict[str, dict[str, Score]] = {}
    on_dev: dict[str, dict[str, Score]] = {}
    for score in means:
        if score.group == (group if score.system in of_group else "all"):
            if score.split == split:
                rows.setdefault(score.system, {})[score.metric] = score
            elif score.split == "dev":
                on_dev.setdefault(score.system, {})[f"{DEV}{score.metric}"] = score
    names = {system: system for system in rows} if labels is None else labels
    return [
        SystemRow(group=group, system=system, label=label, scores=rows[system] | on_dev.get(system, {}))
        for system, label in names.items()
        if system in rows
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: its heading, and the function that makes the cell of each row."""

    heading: Heading
    # Takes a row, and the label of each system; returns the cell.
    cell: Callable[[SystemRow, Mapping[str, str]], Cell]
    # Takes a row, returns the value whose maximum is bold; None = nothing in this column is bold.
    value: Callable[[SystemRow], float | None] | None = None
    group: str = ""  # the group of scores that this column is shown with; "" = all groups


def measured(
    name: str,
    metric: str,
    form: Form = PER_CENT,
    *,
    with_p: bool = False,
    lower: bool = False,
) -> Column:
    """Return a column of scores, with empty cells for rows without the metric; `lower`: True = the lowest
    value is the best."""

    def cell(row: SystemRow, labels: Mapping[str, str]) -> Cell:
        score = row.scores.get(metric)
        against = score.against if score else ""
        return number_cell(score, form, with_p=with_p, against=_short_label(against, labels))

    def value(row: SystemRow) -> float | None:
        score = row.scores.get(metric)
        return None if score is None else -score.value if lower else score.value

    return Column(heading=Heading(name=name), cell=cell, value=value)


def _texts(name: str, text: Callable[[SystemRow], str]) -> Column:
    """Return a column of plain texts."""
    return Column(heading=Heading(name=name), cell=lambda row, labels: Cell(text=text(row)))


def seeds() -> Column:
    """Return a column with the number of training seeds of each row; empty where nothing was trained."""

    def text(row: SystemRow) -> str:
        count = max((score.seeds or 0 for score in row.scores.values()), default=0)
        return str(count or 1) if count or row.checkpoint else ""

    return _texts("seeds", text)


def counted(name: str, metric: str) -> Column:
    """Return a column with the number of items that a score was measured on."""

    def text(row: SystemRow) -> str:
        count = row.scores[metric].n if metric in row.scores else None
        return "" if count is None else f"{count:,}"

    return _texts(name, text)


def threes(name: str, metric: str) -> Column:
    """Return a column with recall, precision and F1 in one cell."""

    def cell(row: SystemRow, _: Mapping[str, str]) -> Cell:
        scores = [row.scores.get(f"{metric}/{part}") for part in ("recall", "precision", "f1")]
        known = [score for score in scores if score]
        if len(known) < len(scores):
            return Cell()
        deviation = known[-1].deviation
        below = "" if deviation is None else f"F1 \u00b1 {PER_CENT.write([deviation])[0]}"
        return Cell(text=" / ".join(number_cell(score, PER_CENT).text for score in known), below=below)

    return Column(heading=Heading(name=name, below="R / P / F1"), cell=cell)


def table_of(
    rows: Sequence[SystemRow],
    columns: Sequence[Column],
    *,
    first: str = "system",
    caption: str = "",
    note: str = "",
    sources: Mapping[str, str] | None = None,
    lines: Sequence[str] = (),
) -> ScoreTable:
    """Return a table with one row per system, which begins with its label. The best of each column is bold,
    of ties all. Empty columns are omitted. Cells of a row without scores say "not run", unless the row is of
    a paper only.

    `first`: heading of the labels; `sources`: system -> where its numbers are from; `lines`: lines below the
    table. Raises ValueError if there are no rows."""
    labels = {row.system: row.label for row in rows if not row.published}
    measured_at_all = any(row.scores for row in rows)
    headings = [Heading(name=first, is_text=True)]
    body = [[Cell(text=row.label, published=row.published)] for row in rows]
    for column in columns:
        cells = _cells(column, rows, labels, sources or {})
        if any(cell.text and not (cell.missing and measured_at_all) for cell in cells):
            headings.append(column.heading)
            for line, cell in zip(body, cells, strict=True):
                line.append(cell)
    return ScoreTable(caption=caption, columns=headings, rows=body, note=note, sources=lines)


def _cells(
    column: Column, rows: Sequence[SystemRow], labels: Mapping[str, str], sources: Mapping[str, str]
) -> list[Cell]:
    cells = []
    for row in rows:
        cell = column.cell(row, labels)
        if column.heading.published or row.published:
            cell = replace(cell, published=bool(cell.text))
        elif not row.scores:
            cell = Cell(text=NOT_RUN, missing=True)
        elif cell.text:
            cell = replace(cell, source=sources.get(row.system, ""))
        cells.append(cell)
    values = [column.value(row) if column.value and not row.published else None for row in rows]
    known = [(value, cell.text) for value, cell in zip(values, cells, strict=True) if value is not None]
    best = max(known)[1] if len(known) > 1 and max(known)[0] else None  # a value of 0 is never the best
    return [
        replace(cell, best=value is not None and cell.text == best)
        for value, cell in zip(values, cells, strict=True)
    ]


def explained(rows: Iterable[SystemRow]) -> str:
    """Return a note that explains the cells of a table with these rows."""
    shown = [row for row in rows if not row.published]
    scores = [score for row in shown for score in row.scores.values()]
    parts = ["Brackets: 95% interval."] if any(map(_interval, scores)) else []
    if any(score.deviation is not None for score in scores):
        parts.append("\u00b1: standard deviation over the seeds, of which the mean is shown.")
    if any(score.p is not None for score in scores):
        parts.append("p: two-sided, corrected for the number of tests (Holm).")
    return " ".join([*parts, *(["Bold: best."] if len(shown) > 1 else [])])


@cache
def published_numbers() -> Mapping[tuple[str, str], Mapping[tuple[str, str, str], str]]:
    """Return the papers' numbers: (paper, table) -> (dataset, row, column) -> the number as printed."""
    numbers: dict[tuple[str, str], dict[tuple[str, str, str], str]] = {}
    with PUBLISHED.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            of_table = numbers.setdefault((line["paper"], line["table"]), {})
            of_table[line["dataset"], line["row"], line["column"]] = line["value"]
    return numbers


def published_rows(
    paper: str, table: str, dataset: str, labels: Mapping[str, str] | None = None
) -> list[SystemRow]:
    """Return rows of a paper's table in per cent; `labels`: row -> name of those to show, None = all."""
    rows: dict[str, dict[str, Score]] = {}
    for (of_dataset, row, column), number in published_numbers()[paper, table].items():
        if of_dataset == dataset:
            rows.setdefault(row, {})[column] = Score(system=row, metric=column, value=float(number) / 100)
    names = {row: row for row in rows} if labels is None else labels
    return [SystemRow(system=row, label=names[row], scores=rows[row], published=True) for row in names]


def published(
    name: str,
    *tables: tuple[str, str],
    columns: Sequence[str],
    dataset: str = "",
    below: str = "",
    decimals: Sequence[int] | None = None,
    deviations: bool = False,
    gaps: bool = True,
    group: str = "",
) -> Column:
    """Return a column with a paper's numbers, several of them in one cell.

    Args:
        tables: (paper, table) pairs; each number is taken from the first table that has it.
        columns: columns of these tables, whose numbers make up a cell.
        dataset: name of the dataset in the tables; "" = the same as `name`.
        decimals: decimals to which each number is rounded; None = as printed.
        deviations: True = add the standard deviations that the paper reports, in parentheses.
        gaps: True = a number that the paper lacks is shown as a dash; False = it is omitted.
        group: the group of our scores that the column is shown with; "" = all groups.
    """

    def cell(row: SystemRow, _: Mapping[str, str]) -> Cell:
        numbers = ChainMap(*(published_numbers()[table] for table in tables))
        texts = []
        for place, column in enumerate(columns):
            text = numbers.get((dataset or name, row.system, column))
            if text is not None and decimals is not None:
                text = f"{float(text):.{decimals[place]}f}"
            deviation = (
                numbers.get((dataset or name, row.system, f"{column} deviation")) if deviations else None
            )
            texts.append(f"{text} ({deviation})" if text and deviation else text)
        shown = [text or NONE for text in texts if text or gaps]
        return Cell(text=" / ".join(shown) if any(texts) else "")

    return Column(heading=Heading(name=name, below=below, published=True), cell=cell, group=group)
