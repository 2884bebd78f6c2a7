"""The tables of the papers filled from reports: one for each setting in which something was measured, and an
empty one where nothing was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any

from cdlm_lab.experiments.found_reports import FoundReport, FoundReports
from cdlm_lab.experiments.paper_table_form import PaperTable
from cdlm_lab.experiments.report_settings import KnownRuns, corpus_of
from cdlm_lab.experiments.report_size import size_of
from cdlm_lab.experiments.reported_scores import TAGGING, ReportedRow
from cdlm_lab.experiments.result_cells import Column, paper_cell, table_of
from cdlm_lab.experiments.result_series import Series, TakenRow, series_of
from cdlm_lab.widgets.result_table import ResultCell, ResultColumn, ResultTable

NOTE = (
    "Brackets: 95% interval. \u00b1: standard deviation over the seeds, of which the mean is shown. p: "
    "corrected, as the report has it, of the test against the row that is named; of several runs the "
    "largest. Muted: the paper's, on its own data, and what nobody ran."
)
_MOST_ROWS = 6  # named below a table; of more their number is told
_LONGEST = 60  # of a parameter's value in a caption
# Joerke et al. 2020 ("Doc-ARC"), Table 5: the words of the highest TF-IDF that are nothing but names.
PAPER_TOP_WORDS: Mapping[str, Sequence[str]] = {
    "LitBank": ("Lucilla (Person)", "Cresswell (Facility)", "Marjoribanks (Person)"),
    "JNLPBA": ("Akt-1 (Protein)", "Plasmin (Protein)", "Siah-1 (Protein)"),
    "OntoNotes1000": ("Linpien (GPE/NORP/LOC)", "Dongguan (GPE/ORG)", "Koreans (NORP)"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledTable:
    """A table of a paper in one setting.

    Attributes:
        table: to be shown.
        name: of the paper's table.
        corpus: on which was measured; "" = nothing was.
        rows: system -> what was taken; {} = nothing was measured.
    """

    table: ResultTable
    name: str
    corpus: str
    rows: Mapping[str, TakenRow]


def fill_table(
    paper: PaperTable, found: FoundReports, runs: KnownRuns, *, choose: str = ""
) -> list[FilledTable]:
    """The table in each setting, newest last; one without numbers of ours if nothing was measured.

    Args:
        choose: as of `series_of`.
    """
    every = series_of(found, runs, experiment=paper.experiment, group=paper.group, choose=choose)
    kept = [series for series in every if _fills(paper, series)]
    filled = [
        _filled(
            paper, series, runs, differing=_differing(series, kept), corpus=corpus_of(series.newest, runs)
        )
        for series in kept
    ]
    if filled or not paper.is_published:
        return filled
    return [
        FilledTable(
            table=table_of(
                _paper_rows(paper, {}),
                _with_seeds(paper.columns),
                of_others=paper.only_published,
                caption=f"{paper.title}: nobody ran this",
            ),
            name=paper.name,
            corpus="",
            rows={},
        )
    ]


def top_words(found: FoundReports, runs: KnownRuns) -> ResultTable:
    """Table 5 of Doc-ARC: the words of the highest TF-IDF that are nothing but names."""
    columns = [
        ResultColumn(name="corpus", is_text=True),
        ResultColumn(name="first, second, third", is_text=True),
    ]
    ours: dict[str, FoundReport] = {}
    for one in sorted(found.reports, key=lambda one: (one.report.finished, one.name)):
        if one.report.name == TAGGING and one.report.tables.get("top"):
            ours[corpus_of(one, runs)] = one  # the newest of a corpus
    rows = [
        [
            ResultCell(text=corpus),
            ResultCell(
                text=", ".join(
                    f"{row['word']} ({'/'.join(row['labels'])})" for row in one.report.tables["top"]
                ),
                source=one.name,
            ),
        ]
        for corpus, one in ours.items()
    ]
    papers = [
        [paper_cell(f"paper: {corpus}"), paper_cell(", ".join(words))]
        for corpus, words in PAPER_TOP_WORDS.items()
    ]
    return ResultTable(
        caption="Doc-ARC, Table 5: words of the highest TF-IDF that are nothing but names",
        columns=columns,
        rows=[*rows, *papers],
        sources=[f"{corpus}: {one.name}" for corpus, one in ours.items()],
    )


def _fills(paper: PaperTable, series: Series) -> bool:
    """True if it has a row that belongs into the table, not only one beside it."""
    wanted = paper.systems.keys() & series.rows.keys()
    return bool(wanted) or (paper.others is True and any(one.encoder for one in series.rows.values()))


def _paper_rows(paper: PaperTable, taken: Mapping[str, TakenRow]) -> list[ReportedRow]:
    """Rows of the paper, those that were not measured without scores; then others."""

    def empty(system: str, label: str) -> ReportedRow:
        return ReportedRow(group=paper.group, system=system, label=label, checkpoint="")

    rows = [
        taken[system].row if system in taken else empty(system, label)
        for system, label in paper.systems.items()
    ]
    others = taken.keys() if paper.others is True else paper.others or ()
    rows += [taken[system].row for system in others if system in taken and system not in paper.systems]
    return [*rows, *(empty(*names) for names in paper.only_published.items())]


def _filled(
    paper: PaperTable, series: Series, runs: KnownRuns, *, differing: Sequence[str], corpus: str
) -> FilledTable:
    rows = _paper_rows(paper, series.rows)
    shown = {row.system: series.rows[row.system] for row in rows if row.system in series.rows}
    parameters = series.newest.report.parameters
    told = [f"{name} {_short(parameters[name])}" for name in differing if name in dict(series.setting)]
    _, size = size_of(series.newest.report, paper.group)
    table = table_of(
        rows,
        _with_seeds(paper.columns),
        of_others=paper.only_published,
        caption=f"{paper.title} \u00b7 {corpus}, n = {size}",
        note=NOTE,
        sources={system: source_told(one) for system, one in shown.items()},
        lines=[*([f"With {', '.join(told)}"] if told else []), *_source_lines(shown)],
    )
    return FilledTable(table=table, name=paper.name, corpus=corpus, rows=shown)


def source_told(one: TakenRow) -> str:
    """Which reports a row is from, and of how many seeds."""
    names = ", ".join(found.name for found in one.sources)
    seeds = [found.report.seed for found in one.sources]
    own = next((score.seeds for score in one.row.scores.values() if score.seeds), None)
    if len(seeds) > 1:
        return f"{names}: mean of {len(seeds)} runs, seeds {', '.join(map(str, seeds))}"
    return f"{names}: mean of {own} trainings" if own and own > 1 else names


def _source_lines(shown: Mapping[str, TakenRow]) -> list[str]:
    """Which rows are from which reports, and which reports were passed over."""
    by_source: dict[str, list[str]] = {}
    passed: dict[str, list[str]] = {}
    for one in shown.values():
        by_source.setdefault(source_told(one), []).append(one.row.label)
        for other in one.passed_over:
            passed.setdefault(other.name, []).append(one.row.label)
    told = [f"From {source}" + _rows_told(rows, among=by_source) for source, rows in by_source.items()]
    other = [f"Not taken, another has it: {name}" + _rows_told(rows) for name, rows in passed.items()]
    return [*told, *other]


def _rows_told(rows: Sequence[str], *, among: Sized = ()) -> str:
    """Labels of rows in parentheses; nothing if there is but one source."""
    if len(among) == 1:
        return ""
    return f" ({'; '.join(rows)})" if len(rows) <= _MOST_ROWS else f" ({len(rows)} rows)"


def _with_seeds(columns: Sequence[Column]) -> list[Column]:
    """With the number of seeds between ours and theirs."""

    def cell(row: ReportedRow) -> ResultCell:
        seeds = max((score.seeds or 0 for score in row.scores.values()), default=0)
        return ResultCell(text=str(seeds or 1) if seeds or row.checkpoint else "")

    ours = [column for column in columns if not column.heading.published]
    theirs = [column for column in columns if column.heading.published]
    return [*ours, Column(heading=ResultColumn(name="seeds"), cell=cell), *theirs]


def _differing(series: Series, every: Sequence[Series]) -> list[str]:
    """Names of the parameters in which the settings of a table differ."""
    settings = [dict(one.setting) for one in every]
    names = dict.fromkeys(name for setting in settings for name in setting)
    return [name for name in names if name != "corpus" and len({one.get(name) for one in settings}) > 1]


def _short(value: Any) -> str:
    text = "none" if value in ("", None) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
