"""Runs side by side: their losses in one figure, and their scores with the parameters in which they differ in
one table. A click on a score opens the examples behind it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import anywidget
import plotly.express as px
import plotly.graph_objects as go
import traitlets
from ipywidgets import HTML, Output, VBox, Widget

from cdlm_lab.parameters import ParameterError, names_in
from cdlm_lab.results.examples import examples_of, has_examples
from cdlm_lab.results.layouts import LAYOUTS
from cdlm_lab.results.reports import (
    CLAIMS,
    EXPERIMENTS,
    SMALL,
    ReportFolder,
    report_rows,
    training_name,
    trainings_in,
)
from cdlm_lab.runs.report import REPORT_FILE, Report, RunError, read_run_file
from cdlm_lab.training.history import Record, read_history
from cdlm_lab.views import charts
from cdlm_lab.views.ask import printed_in
from cdlm_lab.views.figures import CONFIG, keep_figure
from cdlm_lab.views.html import div, escaped, muted, table_html
from cdlm_lab.views.live_curve import thinned
from cdlm_lab.views.rerun import close_whole, close_with_cell
from cdlm_lab.views.still_figure import figure_image
from cdlm_lab.views.tables import ScoreTable, SystemRow, table_of

AT_FIRST = 3  # number of runs compared if none are named
_OPENS = "background:none;border:0;border-bottom:1px dotted;padding:0;font:inherit;color:inherit;"
_OPENS += "cursor:pointer;text-align:right"


@dataclass(frozen=True, kw_only=True)
class ComparedRun:
    """A run, finished or not."""

    name: str  # its path relative to the folder that was searched
    folder: Path
    experiment: str
    parameters: Mapping[str, Any]
    report: Report | None  # None = not finished

    @cached_property
    def curves(self) -> dict[str, list[Record]]:
        """Training -> its records; {} if the run trained nothing, or its history is not here."""
        read = {name: read_history(file) for name, file in trainings_in(self.folder) if name != SMALL}
        return {name: records for name, records in read.items() if records}


def runs_in(reports: ReportFolder) -> list[ComparedRun]:
    """All runs in a folder, unfinished ones first, then the newest first."""
    runs = []
    for one in (*reports.reports, *reports.others):
        file = one.report.file
        folder = file.parent if file.name == REPORT_FILE else file  # a recorded report has no folder
        parts = {"experiment": one.report.name, "parameters": one.report.parameters, "report": one.report}
        runs.append(ComparedRun(name=one.name, folder=folder, **parts))
    for one in reports.aside:
        if one.folder is not None:
            try:
                experiment, parameters, _ = read_run_file(one.folder)
            except RunError:
                continue
            parts = {"experiment": experiment, "parameters": parameters, "report": None}
            runs.append(ComparedRun(name=one.name, folder=one.folder, **parts))
    return sorted(runs, key=lambda run: run.report.finished if run.report else "~", reverse=True)


def chosen_runs(runs: Sequence[ComparedRun], names: str) -> list[ComparedRun]:
    """The runs that match a list of names, with `*` as a wildcard; "" = the newest runs with trainings, of
    one experiment. Raises ParameterError if a name matches none."""
    if not names.strip():
        trained = [run for run in runs if run.report and run.curves] or [run for run in runs if run.report]
        return [run for run in trained if run.experiment == trained[0].experiment][:AT_FIRST]
    chosen: dict[str, ComparedRun] = {}
    for pattern in names_in(names, "compare"):
        fitting = {run.name: run for run in runs if fnmatchcase(run.name, pattern)}
        if not fitting:
            known = ", ".join(run.name for run in runs[:8]) or "none"
            raise ParameterError(f"compare names {pattern!r}, which no run is called; there are {known}")
        chosen |= fitting
    return list(chosen.values())


# ---- views of several runs ----

_LOSSES = {"loss": "training", "eval_loss": "validation"}


def curves_figure(runs: Sequence[ComparedRun]) -> go.Figure | None:
    """The losses of all trainings by optimizer step, of training and (dashed) of validation; None if nothing
    was trained."""
    rows = []
    for run in runs:
        for name, records in run.curves.items():
            label = charts.plain_text(": ".join(filter(None, (run.name, training_name(name, run.report)))))
            for key, what in _LOSSES.items():
                points = [(one["step"], one[key]) for one in records if one.get(key) is not None]
                kept = thinned(len(points)) if points else []
                rows += [
                    {"training": label, "of": what, "step": points[i][0], "loss": points[i][1]} for i in kept
                ]
    if not rows:
        return None
    figure = px.line(rows, x="step", y="loss", color="training", line_dash="of", markers=len(rows) < 400)
    legend = {"orientation": "v", "x": 0, "xanchor": "left", "y": -0.2, "yanchor": "top", "title": ""}
    below = 20 * len(figure.data)
    margin = {"t": 24, "b": 76 + below}
    return charts.lay_out(
        figure, title="", x="update", y="loss", height=400 + below, margin=margin, legend=legend
    )


def differences(runs: Sequence[ComparedRun]) -> dict[str, str]:
    """Name of a run -> its parameters that others have not, as text: `learning_rate 0.1, seed 1`."""
    values = {
        name: {str(run.parameters.get(name)) for run in runs} for run in runs for name in run.parameters
    }
    differing = [name for name, of in values.items() if len(of) > 1 and name != "run_folder"]
    return {
        run.name: ", ".join(f"{name} {run.parameters[name]}" for name in differing if name in run.parameters)
        for run in runs
    }


@dataclass(frozen=True, kw_only=True)
class ComparedScores:
    """The scores of finished runs of one experiment, one row for each run, system and group."""

    table: ScoreTable
    behind: Sequence[tuple[ComparedRun, SystemRow]]  # for each table row, the run and the scores it shows


def compared_scores(runs: Sequence[ComparedRun]) -> ComparedScores | None:
    """The scores of the finished runs of the experiment of the first; None if it fills no table."""
    finished = [run for run in runs if run.report and run.experiment in EXPERIMENTS]
    finished = [run for run in finished if run.experiment == finished[0].experiment]
    behind = [(run, row) for run in finished if run.report for row in report_rows(run.report)]
    if not behind:
        return None
    names, differing = {row.system: row.label for _, row in behind}, differences(finished)
    rows = []
    for number, (run, row) in enumerate(behind):
        where = f"{run.name} ({differing[run.name]})" if differing[run.name] else run.name
        scores = {
            metric: replace(score, against=names.get(score.against, score.against))
            for metric, score in row.scores.items()
        }
        label = ", ".join(filter(None, (row.label, row.group, where)))
        rows.append(replace(row, system=f"{number}", label=label, scores=scores))
    columns = [column for column in LAYOUTS[finished[0].experiment].shown if not column.heading.published]
    note = (
        "Click a score to see the examples behind it. Parameters that differ stand in parentheses; scores of "
    )
    note += "different test data are not to be compared."
    parts = {"first": "system, run", "caption": finished[0].experiment, "note": note}
    return ComparedScores(table=table_of(rows, columns, **parts), behind=behind)


class OpeningTable(anywidget.AnyWidget):
    """A table of scores; a click on a score sets `opened` to the index of its row and increments `clicks`.
    After a message the page scrolls to the last part of the box that the table is in."""

    _esm = """
    export default { render({ model, el }) {
      el.innerHTML = model.get("html");
      el.addEventListener("click", (event) => {
        const cell = event.target.closest("[data-open]");
        if (!cell) return;
        model.set("opened", Number(cell.dataset.open));
        model.set("clicks", model.get("clicks") + 1);
        model.save_changes();
      });
      model.on("msg:custom", () => {  // the examples, the last of this box, are there
        const box = el.parentElement && el.parentElement.closest(".widget-vbox");
        if (box) box.lastElementChild.scrollIntoView({ behavior: "smooth", block: "start" });
      });
    } };
    """
    html = traitlets.Unicode().tag(sync=True)
    opened = traitlets.Int(-1).tag(sync=True)
    clicks = traitlets.Int(0).tag(sync=True)

    def __init__(self, scores: ComparedScores) -> None:
        super().__init__(html=_opening_html(scores))


def _opening_html(scores: ComparedScores) -> str:
    rows = []
    for number, (cells, (run, _)) in enumerate(zip(scores.table.rows, scores.behind, strict=True)):
        shown = [cell.html for cell in cells]
        if has_examples(run.experiment) and run.folder.is_dir():
            form = f'<button data-open="{number}" title="show the examples" style="{_OPENS}">'
            shown[1:] = [f"{form}{cell}</button>" if cell else "" for cell in shown[1:]]
        rows.append(shown)
    table = table_html([column.html for column in scores.table.columns], rows)
    caption = div(escaped(scores.table.caption), "font-size:13px;font-weight:600;margin:8px 0 2px")
    return caption + div(table, "overflow-x:auto") + muted(escaped(scores.table.note))


def _shown_figure(figure: go.Figure) -> Output:
    """The figure drawn as JupyterLab draws those of a cell, which unlike a `FigureWidget` does not block."""
    data = {"application/vnd.plotly.v1+json": json.loads(figure.to_json()) | {"config": CONFIG}}
    data |= {"text/html": figure_image(figure.to_dict()), "text/plain": "training curves"}
    return Output(outputs=({"output_type": "display_data", "data": data, "metadata": {}},))


class RunComparison(VBox):
    """The losses and scores of runs; below them the examples behind the score that was clicked."""

    def __init__(self, runs: Sequence[ComparedRun]) -> None:
        self.figure, self.scores = curves_figure(runs), compared_scores(runs)
        self.message, self.examples = HTML(), VBox()
        shown: list[Widget] = [] if self.figure is None else [_shown_figure(self.figure)]
        if self.scores:
            self.table = OpeningTable(self.scores)
            self.table.observe(
                lambda change: self._open(self.scores.behind[self.table.opened]), names="clicks"
            )
            shown.append(self.table)
        super().__init__([*(shown or [HTML(muted("no run to compare"))]), self.message, self.examples])
        close_with_cell(lambda: close_whole(self))

    def _open(self, behind: tuple[ComparedRun, SystemRow]) -> None:
        """Show the examples behind a row."""
        run, row = behind
        split = row.group if run.experiment == CLAIMS else LAYOUTS[run.experiment].split
        parts = {"experiment": run.experiment, "parameters": run.parameters, "system": row.system}
        earlier, self.examples.children = self.examples.children, []
        for widget in earlier:
            close_whole(widget)
        with printed_in(self.message):
            view = examples_of(run.folder, split=split, **parts)
        title = f"{row.label}, {split}: the examples of {run.name}"
        self.examples.children = [HTML(div(escaped(title), "font-weight:600;margin:12px 0 4px")), view]
        self.table.send("shown")  # the page scrolls to them

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        """The widget, and its figure and table as HTML and text for notebooks without a kernel."""
        data = dict(super()._repr_mimebundle_(**options) or {})
        curves = figure_image(self.figure.to_dict()) if self.figure is not None else ""
        data["text/html"] = curves + (self.scores.table.html() if self.scores else "")
        data["text/plain"] = self.scores.table.text() if self.scores else "no run to compare"
        return data


def compared(reports: ReportFolder, names: str, folder: Path) -> RunComparison:
    """The runs in a folder that match `names` side by side; the figure of their losses is saved in the folder
    of this run."""
    comparison = RunComparison(chosen_runs(runs_in(reports), names))
    if comparison.figure is not None:
        keep_figure(folder, "curves", comparison.figure)
    return comparison
