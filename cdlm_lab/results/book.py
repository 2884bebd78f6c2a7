"""The results book, notebook 12: every table of the papers from the reports of a folder, ours beside theirs,
and every encoder on every task. It reads reports and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cdlm_lab.data.files import replaced_file
from cdlm_lab.report import Report, Run, kept, plain
from cdlm_lab.results import tables
from cdlm_lab.results.readme import write_readme
from cdlm_lab.results.reports import LeftAside, ReportFolder, find_reports, malformed
from cdlm_lab.results.series import KnownRuns, TakenRow, check_chosen
from cdlm_lab.scores import Score, json_of
from cdlm_lab.widgets.html import escaped
from cdlm_lab.widgets.tables import ScoreTable, Shown, html_table, markdown_text

PARAMETERS = ("run_folder", "results", "leave_out", "choose", "compare", "readme")
PAPERS = ("cdlm", "cda", "doc-arc", "mspp")  # as names of tables begin
TABLES_FILE = "tables.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """All tables."""

    reports: ReportFolder  # what the folder holds, and what was left aside
    # Of the papers, in their order; a table that was measured in several settings stands here several times.
    tables: Sequence[tables.FilledTable]
    words: ScoreTable  # Table 5 of Doc-ARC
    columns: Sequence[tables.TaskColumn]  # of the table of encoders


def open_book(
    results: str | Path, *, leave_out: str = "", choose: str = "", own: str | Path | None = None
) -> Book:
    """Read the reports of a folder of runs, or of data/results.

    Args:
        leave_out, choose: names of reports, separated by spaces, `*` standing for anything: those that are
            not used, and those that are taken before newer ones that have the same row.
        own: the folder of this run, which may lie among the others.

    Raises ParameterError: there is no such folder, or no report of such a name.
    """
    reports = find_reports(results, leave_out=leave_out, own=own)
    reports = _without(reports, _damaged(reports))
    runs = KnownRuns(reports)
    misnamed = {one.name: why for one in reports.reports if (why := runs.misnamed(one))}
    reports = _without(reports, [LeftAside(name=name, why=why) for name, why in misnamed.items()])
    check_chosen(reports, choose)
    book = _filled(reports, choose=choose)
    return replace(book, reports=_without(reports, _in_no_table(book)))


def _filled(reports: ReportFolder, *, choose: str = "") -> Book:
    runs = KnownRuns(reports)
    of_papers = [tables.fill_table(paper, runs, choose=choose) for paper in tables.PAPER_TABLES]
    return Book(
        reports=reports,
        tables=[filled for every in of_papers for filled in every],
        words=tables.top_words(runs),
        columns=tables.task_columns(runs, choose=choose),
    )


def _in_no_table(book: Book) -> list[LeftAside]:
    """Reports without a row that a table has, such as those of a baseline alone."""
    rows = [row for one in book.tables for row in one.rows.values()]
    used = {report.name for row in rows for report in (*row.sources, *row.passed_over)}
    used |= {report.name for one in book.columns for row in one.taken.values() for report in row.sources}
    used |= {cell.source for cells in book.words.rows for cell in cells}
    why = "none of its systems has a row in a table"
    return [LeftAside(name=one.name, why=why) for one in book.reports.reports if one.name not in used]


def _damaged(reports: ReportFolder) -> list[LeftAside]:
    """Reports of which alone no book can be made: one of them would end the book of all."""
    damaged = []
    for one in (*reports.reports, *reports.others):
        fills = bool(one.rows)
        alone = replace(reports, reports=[one] * fills, others=[one] * (not fills), aside=[])
        try:
            runs = KnownRuns(alone)
            runs.misnamed(one)
            runs.comparable(one.name)
            runs.encoder_of(one.name)
            runs.by_head  # noqa: B018
            if fills:
                book = _filled(alone)
                written = [report_table(book).data, book_markdown(book), json_of(_scores(book))]
                plain(written, one.name)
        except Exception as error:
            damaged.append(malformed(one.name, error))
    return damaged


def _without(reports: ReportFolder, aside: Sequence[LeftAside]) -> ReportFolder:
    """With some of the reports left aside."""
    names = {one.name for one in aside}
    return replace(
        reports,
        reports=[one for one in reports.reports if one.name not in names],
        others=[one for one in reports.others if one.name not in names],
        aside=[*(one for one in reports.aside if one.name not in names), *aside],
    )


def report_table(book: Book) -> Shown:
    """Report, experiment, seed and when it was finished."""
    rows = []
    for one in book.reports.reports:
        seed = "" if one.report.seed is None else one.report.seed
        cells = [one.name, one.report.name, seed, one.report.finished[:16].replace("T", " ")]
        rows.append([escaped(str(cell)) for cell in cells])
    return html_table(["report", "experiment", "seed", "finished (UTC)"], rows, texts=4)


def aside_table(book: Book) -> Shown:
    """What is not used, and why."""
    rows = [[escaped(one.name), escaped(one.why)] for one in book.reports.aside]
    return html_table(["", "why"], rows, texts=2)


def damage_in_words(book: Book) -> str:
    """How many reports are damaged, and which."""
    names = [one.name for one in book.reports.aside if one.damaged]
    if not names:
        return "no report is damaged"
    return f"{len(names)} damaged report{'s' * (len(names) > 1)} left out: {', '.join(names)}"


def paper_view(book: Book, paper: str) -> Shown:
    """The tables of a paper, `cdlm`, `cda`, `doc-arc` or `mspp`."""
    shown = _tables_of(book, paper)
    return Shown("".join(table.html() for table in shown), "\n\n".join(table.text() for table in shown))


def _tables_of(book: Book, paper: str) -> list[ScoreTable]:
    shown = [one.table for one in book.tables if one.name.startswith(f"{paper}-")]
    return shown + ([book.words] if paper == "doc-arc" else [])


def encoders_view(book: Book) -> Shown:
    """The table of encoders."""
    if (table := tables.encoder_table(book.columns)) is None:
        nothing = "nothing was measured with any encoder"
        return Shown(nothing, nothing)
    return Shown(table.html(), table.text())


def write_book(run: Run, book: Book) -> Report:
    """`tables.md` with all tables, and the report: every number with the reports that it is from, and what
    is missing."""
    with kept(run.folder / TABLES_FILE), replaced_file(run.folder / TABLES_FILE) as file:
        file.write(book_markdown(book))
    folder = book.reports
    return run.write_report(
        scores=_scores(book),
        data={
            "results": folder.folder.as_posix(),
            "reports": len(folder.reports),
            "damaged": sum(one.damaged for one in folder.aside),
        },
        tables={
            "found": [
                {"report": one.name, "experiment": one.report.name, "finished": one.report.finished}
                for one in folder.reports
            ],
            "aside": [{"what": one.name, "why": one.why} for one in folder.aside],
            "not run": [{"table": table, "system": system} for table, system in missing_rows(book)],
        },
    )


def missing_rows(book: Book) -> list[tuple[str, str]]:
    """(table, system) that no report has in any setting."""
    measured = {(one.name, system) for one in book.tables for system in one.rows}
    wanted = [
        (paper.name, system)
        for paper in tables.PAPER_TABLES
        if paper.is_published
        for system in paper.systems
    ]
    return [row for row in wanted if row not in measured]


def book_markdown(book: Book) -> str:
    """All tables in GitHub's Markdown, each under its caption, with the reports that it is from."""
    encoders = tables.encoder_table(book.columns)
    shown = [table for paper in PAPERS for table in _tables_of(book, paper)]
    parts = []
    for table in [*shown, *([encoders] if encoders else [])]:
        lines = "\n".join(f"- {markdown_text(line)}" for line in table.sources)
        text = f"## {markdown_text(table.caption)}\n\n{table.markdown()}\n"
        parts.append(text + (f"\n{lines}\n" if lines else ""))
    return "\n".join(parts)


def tables_into(readme: str) -> str:
    """Write the marked tables of a README anew from the data/results beside it; says what changed. "" =
    nothing is written."""
    if not readme:
        return "no README was written: readme is empty"
    changed = write_readme(Path(readme))
    return f"{readme}: {', '.join(changed) + ' written anew' if changed else 'all tables are as they were'}"


def _scores(book: Book) -> list[Score]:
    """The group of a row is `table/corpus/setting`, settings of a table on a corpus counted from 1, the
    oldest first; or `encoder/task/corpus`. The note names the reports that the number is from."""
    rows = []
    settings: Counter[tuple[str, str]] = Counter()
    for one in book.tables:
        settings[one.name, one.corpus] += 1
        group = f"{one.name}/{one.corpus}/{settings[one.name, one.corpus]}"
        for system, taken in one.rows.items():
            place = {"system": system, "split": "", "group": group, "note": _reports(taken)}
            rows += [replace(score, metric=metric, **place) for metric, score in taken.row.scores.items()]
    for column in book.columns:
        group, metric = f"encoder/{column.task.name}/{column.corpus}", column.task.metric
        for encoder, taken in column.taken.items():
            value = taken.row.scores[metric].value
            rows.append(Score(system=encoder, group=group, metric=metric, value=value, note=_reports(taken)))
    return rows


def _reports(taken: TakenRow) -> str:
    return ", ".join(one.name for one in taken.sources)
