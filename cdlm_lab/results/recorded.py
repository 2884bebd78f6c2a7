"""Recorded results shown in a notebook beside what runs there: tables of a report in data/results, marked so,
with what it was trained on. They are never tested against what runs: other data, other trainings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cdlm_lab.results.layouts import LAYOUTS
from cdlm_lab.results.reports import RECORDED_FOLDER
from cdlm_lab.results.series import corpus_name
from cdlm_lab.runs.report import UNCLEAN, Report, read_report
from cdlm_lab.runs.scores import split_in_words
from cdlm_lab.views.score_tables import labels_of, score_table
from cdlm_lab.views.tables import ScoreTable, Shown


def recorded_table(
    recorded: str,
    *,
    shown: Sequence[str] = (),
    split: str = "",
    group: str = "",
    systems: Mapping[str, str] | None = None,
    folder: Path = RECORDED_FOLDER,
) -> ScoreTable | Shown:
    """The scores of a recorded run, with their intervals and tests, as its own notebook shows them.

    Args:
        recorded: name of the report in data/results, such as `storyworld_tiny/questions`.
        shown: parameters of that run to name in the caption, such as `train_stories`.
        split: "" = the one that its notebook shows first. Raises ValueError if it was not measured.
        systems: names of the rows -> what to call them here; None = all, as their notebook calls them.

    Where the project was installed without its recorded results, returns a line that says so.
    """
    where = _place(recorded)
    if (report := _report(recorded, folder)) is None:
        return Shown(f"<p>{_MISSING.format(where)}</p>")
    layout = LAYOUTS[report.name]
    ours = replace(layout, shown=[one for one in layout.shown if not one.heading.published])
    split, named = split or layout.split, systems or labels_of(report, layout)
    labels = {one: f"{label} {report.mark}".strip() for one, label in named.items()}
    facts = [f"{one} = {json.dumps(report.parameters[one])}" for one in shown]
    what = f"recorded: {_corpus(report)}, {split_in_words(split)}"
    caption = ", ".join([what, *facts])
    form = {"labels": labels, "group": group, "split": split, "caption": caption}
    table = score_table(report, ours, **form)
    marked = f" {UNCLEAN}: made by a program with uncommitted changes." if report.mark else ""
    sources = [f"Recorded in {where}; not tested against the rows of this run."]
    return replace(table, note=table.note + marked, sources=sources)


_MISSING = "Recorded results ({}) are part of a clone of the project only."


def _place(name: str) -> str:
    return f"data/results/{name}.json"


def _report(name: str, folder: Path) -> Report | None:
    file = folder / f"{name}.json"
    return read_report(file) if file.is_file() else None


def _corpus(report: Report) -> str:
    known = (given.get("corpus") for given in (report.data, report.parameters))
    return corpus_name(next((name for name in known if isinstance(name, str)), "another corpus"))
