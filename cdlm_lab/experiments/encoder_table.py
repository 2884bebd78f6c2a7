"""The table that no paper has: every encoder on every task, by one measure of each.

A column is a task on a corpus. What stands in one column was measured on the same items: of several test sets
of a corpus the one on which most encoders were measured is taken, then the largest. Where an encoder was used
in several systems, its number is that of the system that is best on dev.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cdlm_lab.experiments.found_reports import FoundReports
from cdlm_lab.experiments.report_settings import KnownRuns, corpus_of
from cdlm_lab.experiments.report_size import size_of
from cdlm_lab.experiments.reported_scores import (
    ALIGNMENT,
    ANSWERS,
    ATTENTION,
    CLAIMS,
    COREFERENCE,
    DEV,
    MATCHING,
    PERPLEXITY,
    QUESTIONS,
    TAGGING,
)
from cdlm_lab.experiments.result_cells import (
    Form,
    as_perplexity,
    in_per_cent,
    in_points,
    in_thousandths,
    number_cell,
)
from cdlm_lab.experiments.result_series import Series, TakenRow, series_of
from cdlm_lab.experiments.result_tables import source_told
from cdlm_lab.widgets.matching_table import NONE
from cdlm_lab.widgets.result_table import ResultCell, ResultColumn, ResultTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task and the measure that stands for it: `experiment` and `group` as of `ReportedRow`."""

    name: str
    unit: str
    experiment: str
    group: str
    measure: str
    form: Form


TASKS = (
    Task(
        name="hidden words",
        unit="perplexity",
        experiment=PERPLEXITY,
        group="",
        measure="perplexity",
        form=as_perplexity,
    ),
    *(
        Task(
            name=f"coreference, {names}",
            unit="CoNLL F1",
            experiment=COREFERENCE,
            group=kind,
            measure="conll/f1",
            form=in_per_cent,
        )
        for kind, names in (("event", "events"), ("entity", "entities"))
    ),
    Task(name="matching", unit="F1", experiment=MATCHING, group="", measure="f1", form=in_per_cent),
    Task(
        name="alignment", unit="MRR", experiment=ALIGNMENT, group="oracle", measure="mrr", form=in_thousandths
    ),
    Task(
        name="questions",
        unit="joint F1",
        experiment=QUESTIONS,
        group="",
        measure="joint_f1",
        form=in_per_cent,
    ),
    Task(name="entities", unit="span F1", experiment=TAGGING, group="", measure="f1", form=in_per_cent),
    Task(name="answers", unit="MAP", experiment=ANSWERS, group="all", measure="map", form=in_per_cent),
    Task(
        name="claims",
        unit="accuracy",
        experiment=CLAIMS,
        group="test",
        measure="label_accuracy",
        form=in_per_cent,
    ),
    Task(
        name="attention, events",
        unit="points higher if they corefer",
        experiment=ATTENTION,
        group="",
        measure="gap/event",
        form=in_points,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskColumn:
    """A task on a corpus.

    Attributes:
        task, corpus: what.
        size: how much was measured on: a number, and in words.
        taken: encoder -> the row that stands for it.
        left: how many numbers were measured on other items of the corpus and are not shown.
    """

    task: Task
    corpus: str
    size: tuple[int, str]
    taken: Mapping[str, TakenRow]
    left: int


def task_columns(found: FoundReports, runs: KnownRuns, *, choose: str = "") -> list[TaskColumn]:
    """The columns, in the order of the papers. `choose`: as of `series_of`."""
    columns = []
    for task in TASKS:
        by_test: dict[tuple, list[Series]] = {}
        for series in series_of(found, runs, experiment=task.experiment, group=task.group, choose=choose):
            test = corpus_of(series.newest, runs), runs.test_of(series.newest)
            by_test.setdefault(test, []).append(series)
        by_corpus: dict[str, list[TaskColumn]] = {}
        for (corpus, _), every in by_test.items():
            taken = _by_encoder(task, every, runs)
            size = size_of(every[-1].newest.report, task.group)
            column = TaskColumn(task=task, corpus=corpus, size=size, taken=taken, left=0)
            by_corpus.setdefault(corpus, []).append(column)
        for corpus, tests in by_corpus.items():
            best = max(tests, key=lambda column: (len(column.taken), column.size[0], _finished(column)))
            left = sum(len(column.taken) for column in tests if column is not best)
            if best.taken:
                columns.append(
                    TaskColumn(task=task, corpus=corpus, size=best.size, taken=best.taken, left=left)
                )
    return columns


def encoder_table(columns: Sequence[TaskColumn]) -> ResultTable | None:
    """The table; None if nothing was measured with any encoder."""
    encoders = sorted(dict.fromkeys(name for column in columns for name in column.taken), key=_place)
    if not encoders:
        return None
    headings = [ResultColumn(name="encoder", is_text=True)]
    headings += [
        ResultColumn(name=f"{column.task.name}, {column.corpus}", below=column.task.unit)
        for column in columns
    ]
    rows = [
        [ResultCell(text=encoder), *(_cell(column, column.taken.get(encoder)) for column in columns)]
        for encoder in encoders
    ]
    told = [f"{column.task.name}, {column.corpus}: n = {column.size[1]}" for column in columns]
    left = [
        f"{column.task.name}, {column.corpus}: {column.left} numbers on other test items are not shown here"
        for column in columns
        if column.left
    ]
    return ResultTable(
        caption="Every encoder on every task",
        columns=headings,
        rows=rows,
        note=(
            "Lower is better for perplexity, higher for all others. Of several systems with an encoder "
            "the one that is best on dev, whose name stands below. Brackets: 95% interval. A column is of "
            "one test set, but settings of training may differ: see the tables above. \u2013: nobody ran it."
        ),
        sources=[*told, *left],
    )


def _finished(column: TaskColumn) -> str:
    return max((one.sources[-1].report.finished for one in column.taken.values()), default="")


def _by_encoder(task: Task, every: Sequence[Series], runs: KnownRuns) -> dict[str, TakenRow]:
    """Encoder -> its row: of the newest of the reports, and there of the system that is best on dev."""
    found: dict[str, TakenRow] = {}
    for series in every:  # the oldest first
        of_encoder: dict[str, list[TakenRow]] = {}
        for one in series.rows.values():
            encoder = one.encoder or _encoder_of_match(one, runs)
            if encoder and task.measure in one.row.scores:
                of_encoder.setdefault(encoder, []).append(one)
        found |= {encoder: _best(rows, task.measure) for encoder, rows in of_encoder.items()}
    return found


def _best(rows: Sequence[TakenRow], measure: str) -> TakenRow:
    """The highest on dev; where nothing is known of dev, the first, which is how the paper does it."""
    known = [one for one in rows if f"{DEV}{measure}" in one.row.scores]
    return max(known, key=lambda one: one.row.scores[f"{DEV}{measure}"].value) if known else rows[0]


def _encoder_of_match(one: TakenRow, runs: KnownRuns) -> str:
    """Of an alignment the encoder is that of the run of notebook 04."""
    source = one.sources[-1].report
    matching = (
        runs.run_at(str(source.parameters.get("matching_run", ""))) if source.name == ALIGNMENT else None
    )
    if matching is None or matching.report.name != MATCHING:
        return ""
    system = one.row.system.partition("/")[0]
    return next((runs.encoder_of(row.checkpoint) for row in matching.rows if row.system == system), "")


def _cell(column: TaskColumn, one: TakenRow | None) -> ResultCell:
    if one is None:
        return ResultCell(text=NONE, missing=True)
    cell = number_cell(one.row.scores[column.task.measure], column.task.form)
    several = column.task.experiment in (MATCHING, ALIGNMENT, TAGGING, ANSWERS, CLAIMS, COREFERENCE)
    below = f"{cell.below} {one.row.label}".strip() if several else cell.below
    return ResultCell(text=cell.text, below=below, source=source_told(one))


def _place(encoder: str) -> tuple[bool, str]:
    """Those that come with the project first."""
    return not encoder.startswith("storyworld/"), encoder
