"""The tables of the four papers filled from reports, and one that no paper has: every encoder on every task.

A paper's table is filled once for each setting in which something was measured; if nothing was, it has only
the paper's scores. In the table of encoders, a column is a task on a corpus, measured on the same items: if a
corpus has several test sets, the one on which most encoders were measured is used, then the largest. If an
encoder was used in several systems or settings, its score is that of the one that is best on dev.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from cdlm_lab.encoders.variants import VARIANT_NAMES
from cdlm_lab.results import reports
from cdlm_lab.results.layouts import LAYOUTS
from cdlm_lab.results.reports import NamedReport
from cdlm_lab.results.series import CONTEXTS, Series, TakenRow, age, corpus_of, series_of, test_of
from cdlm_lab.tasks.joint.answers import ANSWER_SYSTEMS
from cdlm_lab.tasks.joint.claims import CLAIM_SYSTEMS
from cdlm_lab.tasks.matching.systems import SYSTEMS
from cdlm_lab.tasks.tagging.systems import TAG_SYSTEMS
from cdlm_lab.views import tables
from cdlm_lab.views.html import cut_at
from cdlm_lab.views.tables import Cell, Column, Form, Heading, ScoreTable, SystemRow

NOTE = (
    "Brackets: 95% interval. \u00b1: standard deviation over the seeds, of which the mean is shown. p: "
    "corrected, as the report has it, of the test against the row that is named; of several runs the "
    "largest. Bold: best. Muted: the paper's, on its own data, and what was not run yet. \u2020: made by a "
    "program with uncommitted changes, so it supports no verdict."
)
_MOST_ROWS = 6  # most rows listed by name below a table; for more, only their number
_LONGEST = 60  # most characters of a parameter's value in a caption


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """The specification of a table of a paper."""

    name: str  # short name for reports, such as `cdlm-1`
    title: str  # paper, table number, and topic
    # The experiment whose reports fill it, and the group of their rows.
    experiment: str
    group: str = ""
    systems: Mapping[str, str]  # name -> label of the rows that can be measured, in the paper's order
    # Further rows of reports to show, such as baselines: True = all, or their names.
    others: bool | tuple[str, ...] = True
    papers: Sequence[SystemRow] = ()  # rows that only the paper has
    columns: Sequence[Column] | None = None  # None = the default columns of the experiment
    is_published: bool = True  # False = in no paper, so the table is left out if it was not run

    @property
    def shown(self) -> Sequence[Column]:
        """The columns that are shown."""
        return LAYOUTS[self.experiment].columns(self.group) if self.columns is None else self.columns


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledTable:
    """A table of a paper filled in one setting."""

    table: ScoreTable
    name: str  # name of the paper's table
    corpus: str  # display name of the corpus; "" = nothing was measured
    rows: Mapping[str, TakenRow]  # system -> the row that was used; {} = nothing was measured


def fill_table(paper: PaperTable, frame: pd.DataFrame, *, choose: str = "") -> list[FilledTable]:
    """The table in each setting, newest last; if nothing was measured, one with only the paper's scores.
    `frame`: of `rows_of_reports`; `choose`: names of reports, separated by spaces, that are preferred over
    newer ones."""
    filling = []
    for series in series_of(frame, experiment=paper.experiment, group=paper.group, choose=choose):
        # At least one row must be the table's own, not only a further row such as a baseline.
        models = (one for system, one in series.rows.items() if not reports.is_cosine(system))
        other = paper.others is True and any(one.encoder for one in models)
        if other or paper.systems.keys() & series.rows.keys():
            filling.append(series)
    if not filling and paper.is_published:
        table = tables.table_of(_paper_rows(paper, {}), paper.shown, caption=f"{paper.title}: not run yet")
        return [FilledTable(table=table, name=paper.name, corpus="", rows={})]
    settings = [series.setting for series in filling]
    names = dict.fromkeys(name for setting in settings for name in setting if name != "corpus")
    differing = [name for name in names if len({repr(setting.get(name)) for setting in settings}) > 1]
    return [_filled(paper, series, differing=differing) for series in filling]


def _paper_rows(paper: PaperTable, taken: Mapping[str, TakenRow]) -> list[SystemRow]:
    """The rows of the paper's table, without scores if not measured; then the further rows."""
    rows = [
        taken[system].row if system in taken else SystemRow(system=system, label=label)
        for system, label in paper.systems.items()
    ]
    others = taken.keys() if paper.others is True else paper.others or ()
    rows += [taken[system].row for system in others if system in taken and system not in paper.systems]
    return [*rows, *paper.papers]


def _filled(paper: PaperTable, series: Series, *, differing: Sequence[str]) -> FilledTable:
    rows = _paper_rows(paper, series.rows)
    shown = {row.system: series.rows[row.system] for row in rows if row.system in series.rows}
    newest, corpus = series.newest.report, corpus_of(series.newest)
    known = [name for name in differing if name in series.setting]
    parameters = ", ".join(f"{name} {_short(newest.parameters[name])}" for name in known)
    table = tables.table_of(
        rows,
        paper.shown,
        caption=f"{paper.title} \u00b7 {corpus}, n = {reports.size_of(newest, paper.group)[1]}",
        note=NOTE,
        sources={system: source_text(one) for system, one in shown.items()},
        lines=[*([f"With {parameters}"] if parameters else []), *_source_lines(shown)],
    )
    return FilledTable(table=table, name=paper.name, corpus=corpus, rows=shown)


def source_text(one: TakenRow) -> str:
    """The reports a row comes from, and the number of seeds."""
    names = ", ".join(source.name for source in one.sources)
    of_runs = [source.report.seed for source in one.sources]
    own = next((score.seeds for score in one.row.scores.values() if score.seeds), None)
    if len(of_runs) > 1:
        return f"{names}: mean of {len(of_runs)} runs, seeds {', '.join(map(str, of_runs))}"
    return f"{names}: mean of {own} trainings" if own and own > 1 else names


def _source_lines(shown: Mapping[str, TakenRow]) -> list[str]:
    """Lines on which rows come from which reports, if there are several, and which reports were not used."""
    taken: dict[str, list[str]] = {}
    passed: dict[str, list[str]] = {}
    for one in shown.values():
        taken.setdefault(source_text(one), []).append(one.row.label)
        for other in one.passed_over:
            passed.setdefault(other.name, []).append(one.row.label)

    def names(rows: Sequence[str]) -> str:
        return f" ({'; '.join(rows)})" if len(rows) <= _MOST_ROWS else f" ({len(rows)} rows)"

    lines = [f"From {source}{names(rows) if len(taken) > 1 else ''}" for source, rows in taken.items()]
    return lines + [f"Not taken, another has it: {name}{names(rows)}" for name, rows in passed.items()]


def _short(value: Any) -> str:
    text = "none" if value in ("", None) else str(value)
    return text if len(text) <= _LONGEST else f"{cut_at(text, _LONGEST - 3)}..."


def top_words(found: Iterable[NamedReport]) -> ScoreTable:
    """Doc-ARC's Table 5: the words with the highest TF-IDF that are always tagged as entities."""
    ours: dict[str, NamedReport] = {}
    for one in sorted(found, key=age):
        if one.report.name == reports.TAGGING and one.report.tables.get("top"):
            ours[corpus_of(one)] = one  # the newest for each corpus remains
    rows = []
    for corpus, one in ours.items():
        words = [f"{row['word']} ({'/'.join(row['labels'])})" for row in one.report.tables["top"]]
        rows.append([Cell(text=corpus), Cell(text=", ".join(words), source=one.name)])
    papers: dict[str, list[str]] = {}
    for (corpus, _, _), word in tables.published_numbers()["doc-arc", "5"].items():
        papers.setdefault(corpus, []).append(word)
    rows += [
        [Cell(text=f"paper: {corpus}", published=True), Cell(text=", ".join(words), published=True)]
        for corpus, words in papers.items()
    ]
    return ScoreTable(
        caption="Doc-ARC, Table 5: words of the highest TF-IDF that are nothing but names",
        columns=[Heading(name=name, is_text=True) for name in ("corpus", "first, second, third")],
        rows=rows,
        sources=[f"{corpus}: {one.name}" for corpus, one in ours.items()],
    )


# ---- the papers' tables ----


def _coreference(kind: str, what: str) -> PaperTable:
    numbers = tables.published_rows("cdlm", "2", f"ECB+ {kind}")
    labels = {"cdlm/documents": "CDLM, whole documents"}
    return PaperTable(
        name=f"cdlm-2-{kind}",
        title=f"CDLM, Table 2: cross-document coreference of {what}",
        experiment=reports.COREFERENCE,
        group=kind,
        systems=labels,
        papers=[replace(row, label=f"paper: {labels.get(row.system, row.label)}") for row in numbers],
    )


def _ablation() -> PaperTable:
    paper = tables.published(
        "ECB+", ("cdlm", "3"), dataset="ECB+ event", columns=("conll/f1",), below="paper: CoNLL F1"
    )
    systems = {f"cdlm/{context}": f"CDLM, {words}" for context, words in CONTEXTS.items()}
    systems |= {f"{name}/documents": label for name, label in VARIANT_NAMES.items() if name != "cdlm"}
    return PaperTable(
        name="cdlm-3",
        title="CDLM, Table 3: event coreference, ablations",
        experiment=reports.COREFERENCE,
        group="event",
        systems=systems,
        columns=[tables.measured("CoNLL F1", "conll/f1", with_p=True), tables.seeds(), paper],
        others=False,
    )


def _matching(name: str, title: str, systems: Sequence[str]) -> PaperTable:
    labels = {system: SYSTEMS[system].label for system in systems}
    return PaperTable(name=name, title=title, experiment=reports.MATCHING, systems=labels, others=("tf-idf",))


def _alignment(group: str, title: str) -> PaperTable:
    ranked = dict.fromkeys(row for _, row, _ in tables.published_numbers()["cda", "4"] if "/" in row)
    systems = {row: f"{SYSTEMS[name].label}, {by}" for row in ranked for name, by in [row.split("/")]}
    return PaperTable(
        name=f"cda-4-5-{group}",
        title=f"CDA, Tables 4 and 5: which sentence, {title}",
        experiment=reports.ALIGNMENT,
        group=group,
        systems={"random": "Random (exact)"} | systems if group == "released" else systems,
        is_published=group == "released",
    )


def _tagging(number: int, title: str) -> PaperTable:
    systems = {row for _, row, _ in tables.published_numbers()["doc-arc", str(number)]}
    return PaperTable(
        name=f"doc-arc-{number}",
        title=f"Doc-ARC, Table {number}: {title}",
        experiment=reports.TAGGING,
        systems={name: system.label for name, system in TAG_SYSTEMS.items() if name in systems},
        others=False,
    )


def _answers(name: str, title: str, group: str) -> PaperTable:
    systems = {name: system.label for name, system in ANSWER_SYSTEMS.items()}
    return PaperTable(name=name, title=title, experiment=reports.ANSWERS, group=group, systems=systems)


def _claims(group: str, title: str) -> PaperTable:
    rows = dict.fromkeys(row for _, row, _ in tables.published_numbers()["mspp", "8"])
    return PaperTable(
        name=f"mspp-3-8-{group}",
        title=f"MSPP, Tables 3 and 8: fact verification, {title}",
        experiment=reports.CLAIMS,
        group=group,
        systems={name: system.label for name, system in CLAIM_SYSTEMS.items() if name != "claim-only"},
        papers=[SystemRow(system=row, label=row, published=True) for row in rows if row not in CLAIM_SYSTEMS],
        is_published=group == "test",
    )


def _by_variant(number: int, title: str, experiment: str) -> PaperTable:
    title = f"CDLM, Table {number}: {title}"
    return PaperTable(name=f"cdlm-{number}", title=title, experiment=experiment, systems=VARIANT_NAMES)


_FROZEN = ("bert-avg", "bert-han", "bert-han-shallow", "gru-han", "gru-han-shallow", "gru-han-deep")
_TRAINED = ("bert-han-finetuned", "bert-han-finetuned-shallow")
PAPER_TABLES: tuple[PaperTable, ...] = (
    _by_variant(1, "perplexity", reports.PERPLEXITY),
    _coreference("event", "events"),
    _coreference("entity", "entities"),
    _ablation(),
    _matching("cdlm-4", "CDLM, Table 4: do two documents belong together", tuple(VARIANT_NAMES)),
    _by_variant(5, "questions that need two documents", reports.QUESTIONS),
    _by_variant(6, "percentile rank of the other mention", reports.ATTENTION),
    _matching("cda-2", "CDA, Table 2: do two documents belong together", _FROZEN),
    _matching("cda-3", "CDA, Table 3: the same with BERT trained along", _TRAINED),
    _alignment("released", "scored with the unrelated pairs, as by the released code"),
    _alignment("joint", "jointly with whether the documents belong together"),
    _alignment("oracle", "of documents that are known to belong together"),
    _tagging(2, "named entities, encoder frozen"),
    _tagging(3, "named entities, small encoder trained along"),
    _tagging(4, "named entities, encoder fine-tuned"),
    _answers("mspp-1", "MSPP, Table 1: choosing answers among all candidates", "all"),
    _answers("mspp-2-7", "MSPP, Tables 2 and 7: the best of pairwise, ranked anew", "reranked"),
    _claims("test", "test claims"),
    _claims("dev", "dev claims"),
    _claims("symmetric", "FeverSymmetric"),
)


# ---- every encoder on every task ----


@dataclass(frozen=True, slots=True)
class Task:
    """A task, the reports that measure it, and the metric that represents it."""

    name: str
    unit: str
    experiment: str
    group: str
    metric: str
    form: Form = tables.PER_CENT


_HIGHER = "points higher if they corefer"
TASKS = (
    Task("hidden words", "perplexity", reports.PERPLEXITY, "", "perplexity", tables.PERPLEXITY),
    Task("coreference, events", "CoNLL F1", reports.COREFERENCE, "event", "conll/f1"),
    Task("coreference, entities", "CoNLL F1", reports.COREFERENCE, "entity", "conll/f1"),
    Task("matching", "F1", reports.MATCHING, "", "f1"),
    Task("alignment", "MRR", reports.ALIGNMENT, "oracle", "mrr", tables.THOUSANDTHS),
    Task("questions", "joint F1", reports.QUESTIONS, "", "joint_f1"),
    Task("entities", "span F1", reports.TAGGING, "", "f1"),
    Task("answers", "MAP", reports.ANSWERS, "all", "map"),
    Task("claims", "accuracy", reports.CLAIMS, "test", "label_accuracy"),
    Task("attention, events", _HIGHER, reports.ATTENTION, "", "gap/event", tables.POINTS),
)
_ONE_SYSTEM = (reports.PERPLEXITY, reports.QUESTIONS, reports.ATTENTION)  # here each encoder is one system


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskColumn:
    """A column of the table of encoders: a task on a corpus."""

    task: Task
    corpus: str
    size: tuple[int, str]  # size of the test set, as a number and in words
    taken: Mapping[str, TakenRow]  # encoder -> the row that represents it
    left: int = 0  # number of scores on other test sets of the corpus, which are not shown

    @property
    def heading(self) -> str:
        """Task and corpus, as the heading."""
        return f"{self.task.name}, {self.corpus}"

    @property
    def weight(self) -> tuple[int, int, str]:
        """Sort key of the test sets of a corpus; the one with the highest is shown."""
        finished = (one.sources[-1].report.finished for one in self.taken.values())
        return len(self.taken), self.size[0], max(finished, default="")


def task_columns(frame: pd.DataFrame, *, choose: str = "") -> list[TaskColumn]:
    """The columns, in the order of the papers; `choose`: reports that are preferred over newer ones."""
    columns = []
    for task in TASKS:
        by_test: dict[tuple, list[Series]] = {}
        for series in series_of(frame, experiment=task.experiment, group=task.group, choose=choose):
            test = corpus_of(series.newest), test_of(series.newest)
            by_test.setdefault(test, []).append(series)
        by_corpus: dict[str, list[TaskColumn]] = {}
        for (corpus, _), every in by_test.items():
            taken = _by_encoder(task, every)
            size = reports.size_of(every[-1].newest.report, task.group)
            column = TaskColumn(task=task, corpus=corpus, size=size, taken=taken)
            by_corpus.setdefault(corpus, []).append(column)
        for tests in by_corpus.values():
            best = max(tests, key=lambda column: column.weight)
            left = sum(len(column.taken) for column in tests if column is not best)
            columns += [replace(best, left=left)] if best.taken else []
    return columns


def encoder_table(columns: Sequence[TaskColumn]) -> ScoreTable | None:
    """The table of encoders; None if nothing was measured with any encoder."""
    names = {name for column in columns for name in column.taken}
    # those that ship with the project first
    encoders = sorted(names, key=lambda name: (not name.startswith("storyworld/"), name))
    if not encoders:
        return None
    headings = [Heading(name=column.heading, below=column.task.unit) for column in columns]
    sources = [f"{one.heading}: n = {one.size[1]}" for one in columns]
    other = "numbers on other test items are not shown here"
    sources += [f"{one.heading}: {one.left} {other}" for one in columns if one.left]
    return ScoreTable(
        caption="Every encoder on every task",
        columns=[Heading(name="encoder", is_text=True), *headings],
        rows=[
            [Cell(text=encoder), *(_cell(column, column.taken.get(encoder)) for column in columns)]
            for encoder in encoders
        ],
        note=(
            "Lower is better for perplexity, higher for all others. Of several systems and settings with an "
            "encoder the one best on dev, whose name stands below. Brackets: 95% interval. A column is "
            "of one test set, but settings of training may differ: see the tables above. \u2013: not run yet."
        ),
        sources=sources,
    )


def _by_encoder(task: Task, every: Sequence[Series]) -> dict[str, TakenRow]:
    """Encoder -> its row: of its systems and settings the best on dev; if there are no dev scores, the first
    of the newest report, as in the paper."""
    dev = f"{tables.DEV}{task.metric}"
    of_encoder: dict[str, list[TakenRow]] = {}
    for series in reversed(every):  # the newest first
        for one in (*series.rows.values(), *series.others):
            if one.encoder and task.metric in one.row.scores:
                of_encoder.setdefault(one.encoder, []).append(one)

    def on_dev(one: TakenRow) -> float:
        return one.row.scores[dev].value if dev in one.row.scores else -math.inf

    return {encoder: max(rows, key=on_dev) for encoder, rows in of_encoder.items()}


def _cell(column: TaskColumn, one: TakenRow | None) -> Cell:
    if one is None:
        return Cell(text=tables.NONE, missing=True)
    cell = tables.number_cell(one.row.scores[column.task.metric], column.task.form)
    below = cell.below if column.task.experiment in _ONE_SYSTEM else f"{cell.below} {one.row.label}".strip()
    return replace(cell, below=below, source=source_text(one))
