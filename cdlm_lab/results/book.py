"""The results book, notebook 12: every table of the papers, filled from the reports in a folder beside the
papers' scores, and a table of every encoder on every task. It reads only reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cdlm_lab.data.files import replaced_file
from cdlm_lab.parameters import names_in, settings
from cdlm_lab.results import tables
from cdlm_lab.results.claims import PAPERS, verdicts_table
from cdlm_lab.results.claims_figure import claims_figure
from cdlm_lab.results.reports import (
    RECORDED,
    RECORDED_FOLDER,
    LeftAside,
    NamedReport,
    ReportFolder,
    find_reports,
    malformed,
)
from cdlm_lab.results.series import TakenRow, check_chosen, misnamed, rows_of_reports
from cdlm_lab.runs.report import Report, Run, kept
from cdlm_lab.runs.scores import Score
from cdlm_lab.views.html import escaped, fold
from cdlm_lab.views.still_figure import figure_image
from cdlm_lab.views.tables import ScoreTable, Shown, html_table, markdown_text

TABLES_FILE = "tables.md"


@settings
class Settings:
    """The parameters of notebook 12, whose comments say what they mean."""

    run_folder: str = "runs/results"
    results: str = f"{RECORDED} runs"
    leave_out: str = ""
    choose: str = ""
    compare: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """All tables of the results book."""

    reports: ReportFolder  # the reports in the folder, and those not used
    # The papers' tables, in their order; a table that was measured in several settings occurs several times.
    tables: Sequence[tables.FilledTable]
    words: ScoreTable  # Doc-ARC's Table 5
    columns: Sequence[tables.TaskColumn]  # columns of the table of encoders


def open_book(results: str, *, leave_out: str = "", choose: str = "", own: str | Path | None = None) -> Book:
    """Read the reports in folders of runs.

    Args:
        results: folders, separated by spaces; RECORDED = the recorded results that come with the project.
        leave_out, choose: names of reports, separated by spaces, with `*` as a wildcard: those that are not
            used, and those that are preferred over newer ones with the same row.
        own: the folder of this run, which may lie among the others.

    Raises ParameterError if there is no such folder, or no report with such a name.
    """
    reports = find_reports(*names_in(results, "results"), leave_out=leave_out, own=own)
    reports = _without(reports, _damaged(reports))
    wrong = {one.name: why for one in reports.reports if (why := misnamed(one))}
    reports = _without(reports, [LeftAside(name=name, why=why) for name, why in wrong.items()])
    check_chosen(reports, choose)
    book = _filled(reports, choose=choose)
    return replace(book, reports=_without(reports, _in_no_table(book)))


def _filled(reports: ReportFolder, *, choose: str = "") -> Book:
    frame = rows_of_reports(reports.reports)
    of_papers = [tables.fill_table(paper, frame, choose=choose) for paper in tables.PAPER_TABLES]
    return Book(
        reports=reports,
        tables=[filled for every in of_papers for filled in every],
        words=tables.top_words(reports.reports),
        columns=tables.task_columns(frame, choose=choose),
    )


def _in_no_table(book: Book) -> list[LeftAside]:
    """Reports none of whose rows is in a table, such as reports of only a baseline."""
    rows = [row for one in book.tables for row in one.rows.values()]
    used = {report.name for row in rows for report in (*row.sources, *row.passed_over)}
    used |= {report.name for one in book.columns for row in one.taken.values() for report in row.sources}
    used |= {cell.source for cells in book.words.rows for cell in cells}
    why = "none of its systems has a row in a table"
    return [LeftAside(name=one.name, why=why) for one in book.reports.reports if one.name not in used]


def _damaged(reports: ReportFolder) -> list[LeftAside]:
    """Reports from which alone no book can be made, if none can be made from all: a single one would make the
    whole book fail."""

    def fault(some: Sequence[NamedReport]) -> Exception | None:
        try:
            _scores(_filled(replace(reports, reports=[*some])))
        except Exception as error:
            return error
        return None

    if fault(reports.reports) is None:
        return []
    alone = [(one.name, fault([one])) for one in reports.reports]
    return [malformed(name, error) for name, error in alone if error]


def _without(reports: ReportFolder, aside: Sequence[LeftAside]) -> ReportFolder:
    """The reports with some of them set aside."""
    names = {one.name for one in aside}
    return replace(
        reports,
        reports=[one for one in reports.reports if one.name not in names],
        others=[one for one in reports.others if one.name not in names],
        aside=[*(one for one in reports.aside if one.name not in names), *aside],
    )


def report_table(book: Book) -> Shown:
    """A table of the reports: name, experiment, seed and finishing time."""
    rows = []
    for one in book.reports.reports:
        seed = "" if one.report.seed is None else one.report.seed
        cells = [one.name, one.report.name, seed, one.report.finished[:16].replace("T", " ")]
        rows.append([escaped(str(cell)) for cell in cells])
    return html_table(["report", "experiment", "seed", "finished (UTC)"], rows, texts=4)


def aside_table(book: Book) -> Shown:
    """A table of what is not used, and why."""
    rows = [[escaped(one.name), escaped(one.why)] for one in book.reports.aside]
    return html_table(["", "why"], rows, texts=2)


def damage_in_words(book: Book) -> str:
    """A line on how many reports are damaged, and which."""
    names = [one.name for one in book.reports.aside if one.damaged]
    if not names:
        return "no report is damaged"
    return f"{len(names)} damaged report{'s' * (len(names) > 1)} left out: {', '.join(names)}"


def paper_view(book: Book, paper: str) -> Shown:
    """The tables of one paper: `cdlm`, `cda`, `doc-arc` or `mspp`. Of a table that was measured in several
    settings the one with the most rows is open; the others, and those without a run, are folded."""
    made = [one for one in book.tables if one.name.startswith(f"{paper}-")]
    parts, texts = [], []
    for name in dict.fromkeys(one.name for one in made if one.rows):
        first, *others = sorted((one for one in made if one.name == name), key=lambda one: -len(one.rows))
        parts.append(first.table.html() + _folded(f"{len(others)} more", [one.table for one in others]))
        texts += [one.table.text() for one in (first, *others)]
    if paper == "doc-arc":
        parts.append(book.words.html())
        texts.append(book.words.text())
    empty = [one.table for one in made if not one.rows]
    words = f"{len(empty)} without a run: {'; '.join(one.caption for one in empty)}"
    parts.append(_folded(words, empty))
    return Shown("".join(parts), "\n\n".join(texts + [words] * bool(empty)))


def _folded(words: str, shown: Sequence[ScoreTable]) -> str:
    return fold(escaped(words), "".join(one.html() for one in shown)) if shown else ""


def claims_view(paper: str = "") -> Shown:
    """The verdicts of the recorded results on a paper's claims; "" = the figure of all claims."""
    if paper:
        return Shown((table := verdicts_table(RECORDED_FOLDER, paper)).html(), table.text())
    figure = figure_image(claims_figure(RECORDED_FOLDER).to_dict())
    return Shown(figure, "The figure of the claims is shown where pictures can be.")


def _tables_of(book: Book, paper: str) -> list[ScoreTable]:
    shown = [one.table for one in book.tables if one.name.startswith(f"{paper}-")]
    return shown + ([book.words] if paper == "doc-arc" else [])


def encoders_view(book: Book) -> Shown:
    """The table of every encoder on every task."""
    if (table := tables.encoder_table(book.columns)) is None:
        nothing = "nothing was measured with any encoder"
        return Shown(nothing, nothing)
    return Shown(table.html(), table.text())


def write_book(run: Run, book: Book) -> Report:
    """Write `tables.md` with all tables, and the report: every score with the names of its source reports,
    and the rows that are missing."""
    with kept(run.folder / TABLES_FILE), replaced_file(run.folder / TABLES_FILE) as file:
        file.write(book_markdown(book))
    folder = book.reports
    return run.write_report(
        scores=_scores(book),
        data={
            "results": folder.searched,
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
    """The (table, system) pairs that no report has in any setting."""
    measured = {(one.name, system) for one in book.tables for system in one.rows}
    wanted = [
        (paper.name, system)
        for paper in tables.PAPER_TABLES
        if paper.is_published
        for system in paper.systems
    ]
    return [row for row in wanted if row not in measured]


def book_markdown(book: Book) -> str:
    """All tables as GitHub Markdown, each with its caption and its source reports."""
    encoders = tables.encoder_table(book.columns)
    shown = [table for paper in PAPERS for table in _tables_of(book, paper)]
    parts = []
    for table in [*shown, *([encoders] if encoders else [])]:
        lines = "\n".join(f"- {markdown_text(line)}" for line in table.sources)
        text = f"## {markdown_text(table.caption)}\n\n{table.markdown()}\n"
        parts.append(text + (f"\n{lines}\n" if lines else ""))
    return "\n".join(parts)


def _scores(book: Book) -> list[Score]:
    """Scores of the book's report. The group of a row is `table/corpus/setting`, with the settings of a table
    on a corpus numbered from 1, oldest first; or `encoder/task/corpus`. The note names the source reports."""
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
