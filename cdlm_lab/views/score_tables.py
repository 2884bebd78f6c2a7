"""The score tables that notebooks show. The view of an experiment holds its `Layout`, columns and the size of
its test set, from which `score_table` makes the table of any of its reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cdlm_lab.encoders.variants import VARIANT_NAMES
from cdlm_lab.runs.report import Report
from cdlm_lab.views import tables
from cdlm_lab.views.html import paper_order, points_in_words
from cdlm_lab.views.tables import (
    PER_CENT,
    Cell,
    Column,
    Form,
    ScoreTable,
    Shown,
    SystemRow,
    measured,
    text_table,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The layout of an experiment's score table."""

    shown: Sequence[Column]  # columns; those with the papers' numbers come last
    # (report, split, group) -> size of the data that was measured: a number for comparison, and in words.
    size: Callable[[Report, str, str], tuple[int, str]]
    note: str  # explanation of the columns
    test: str = ""  # what p is about; shown where there is one
    paper: str = ""  # explanation of the papers' numbers
    split: str = "test"  # the split that is shown; "" = the reports have no splits
    first: str = "system"  # heading of the column of systems
    # System -> name to show, of a report; None = `labels_of` has their own names.
    labels: Callable[[Report], Mapping[str, str]] | None = None

    def columns(self, group: str) -> list[Column]:
        """Return the columns that are shown with a group of scores."""
        return [column for column in self.shown if column.group in ("", group)]


def labels_of(report: Report, layout: Layout) -> Mapping[str, str]:
    """System -> name to show, in the order of the rows; without names in the layout all systems under their
    own, variants of CDLM with the names and in the order of the CDLM paper."""
    if layout.labels is not None:
        return layout.labels(report)
    names = paper_order(score.system for score in report.rows if score.system)
    return {name: VARIANT_NAMES.get(name, name) for name in names}


def score_table(
    report: Report,
    layout: Layout,
    *,
    labels: Mapping[str, str] | None = None,
    group: str = "",
    split: str | None = None,
    caption: str = "",
    others: Sequence[SystemRow] = (),
) -> ScoreTable:
    """Return the score table of a report: one row per system, and next to it the papers' numbers.

    Args:
        labels: system -> name to show, in the order of the rows; None = `labels_of` the layout.
        group: the group of scores to show. Raises ValueError if there are none.
        split: None = the split of the experiment's layout; other splits have no numbers of papers.
        caption: what was measured; the size of the test set is appended.
        others: rows below ours, such as those of a paper.
    """
    wanted = layout.split if split is None else split
    shown = labels_of(report, layout) if labels is None else labels
    labels = {system: f"{label}{origin(report, system)}" for system, label in shown.items()}
    rows = tables.system_rows(report.rows, split=wanted, group=group, labels=labels)
    columns = [one for one in layout.columns(group) if wanted == layout.split or not one.heading.published]
    caption = f"{caption}, n = {layout.size(report, wanted, group)[1]}".removeprefix(", ")
    table = tables.table_of([*rows, *others], columns, first=layout.first, caption=caption)
    of_paper = layout.paper if any(heading.published for heading in table.columns) else ""
    of_test = layout.test if any(cell.test for row in table.rows for cell in row) else ""
    notes = (layout.note, of_test, of_paper, tables.explained(rows))
    return replace(table, note=" ".join(filter(None, notes)))


def origin(report: Report, system: str) -> str:
    """Return what follows the name of a system: what its model began with, if the name does not say it, such
    as " (from CDLM, after claims)"; "" if there is nothing to say, or it is not known."""
    name = system.partition("/")[0]
    began = report.data.get("began_with", {}).get(name)
    if not began:
        return ""
    if name == began["base"]:
        return f" (after {', '.join(began['after'])})" if began["after"] else ""
    variants = name in VARIANT_NAMES and began["base"] in VARIANT_NAMES
    return f" (from {origin_in_words(began)})" if began["after"] or variants else ""


def origin_in_words(began: Mapping[str, Any]) -> str:
    """Return what a model began with as text: `CDLM, after language modelling, claims`."""
    after = f", after {', '.join(began['after'])}" if began["after"] else ""
    return f"{VARIANT_NAMES.get(began['base'], began['base'])}{after}"


def control_table(
    report: Report, split: str, table: Callable[..., ScoreTable], **form: Any
) -> ScoreTable | Shown:
    """The table of a control split, such as test without questions; a line of text if the run has none."""
    if any(row.split == split for row in report.rows):
        return table(report, split=split, **form)
    return Shown("<p>This run was not measured so.</p>")


def comparison_table(
    report: Report,
    labels: Mapping[str, str],
    measures: Mapping[str, str],
    *,
    split: str = "test",
    group: str = "",
    first: str = "system",
) -> ScoreTable:
    """The comparisons of a report on a split, in a group: a row for each pair of systems, a column for each
    measure (`measures`: name -> heading) with the difference in points and its interval, below it the
    corrected p, and with several seeds those over items and seeds. `first`: heading of the first column."""
    rows: dict[tuple[str, str], dict[str, Cell]] = {}
    for row in report.tables["comparisons"]:
        if (row.get("split", split), row.get("group", group)) != (split, group):
            continue
        difference = points_in_words(row["difference"])
        bounds = [points_in_words(row[name]) for name in ("low", "high") if row[name] is not None]
        ps = [f"p {tables.p_text(row['p_holm'])}"]
        over = [] if row.get("p_seeds") is None else ["items", "seeds"]
        ps += [f"over {one} {tables.p_text(row[f'p_{one}'])}" for one in over if f"p_{one}" in row]
        ps += [row["verdict"]] if row.get("verdict") == "too few units" else []
        text = f"{difference} [{', '.join(bounds)}]" if bounds else difference
        cell = Cell(text=text, below="; ".join(ps))
        rows.setdefault((labels[row["a"]], labels[row["b"]]), {})[row["measure"]] = cell
    body = [[*pair, *(cells.get(name, Cell()) for name in measures)] for pair, cells in rows.items()]
    return text_table([first, "against", *measures.values()], body, texts=2)


def each(names: Mapping[str, str], form: Form = PER_CENT) -> list[Column]:
    """Return one column of our scores, with p-values, for each metric; `names`: metric -> heading."""
    return [measured(heading, metric, form, with_p=True) for metric, heading in names.items()]


def counts(what: str, of: str) -> Callable[[Report, str, str], tuple[int, str]]:
    """Return a `size` that writes `766 pairs in 214 clusters` from a report's counts of a split or of all."""

    def size(report: Report, split: str, _: str) -> tuple[int, str]:
        count, groups = (report.data[name][split] if split else report.data[name] for name in (what, of))
        return count, f"{count:,} {'claims' if what == 'scored' else what} in {groups:,} {of}"

    return size
