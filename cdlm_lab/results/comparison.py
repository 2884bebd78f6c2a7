"""Runs side by side: their loss curves in one figure, the parameters in which they differ, and their scores,
each of which opens the examples behind it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import anywidget
import plotly.graph_objects as go
import traitlets
from ipywidgets import HTML, Layout, Output, SelectMultiple, VBox, Widget
from plotly.subplots import make_subplots

from cdlm_lab.parameters import ParameterError, names_in
from cdlm_lab.results.examples import examples_of, has_examples
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
from cdlm_lab.views.html import div, escaped, muted, table_html, visible
from cdlm_lab.views.live_curve import smoothed, thinned
from cdlm_lab.views.rerun import close_whole, close_with_cell
from cdlm_lab.views.score_tables import LAYOUTS
from cdlm_lab.views.still_figure import figure_image
from cdlm_lab.views.tables import ScoreTable, SystemRow, table_of, text_table

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

    @property
    def when(self) -> str:
        """The time at which it finished, as text."""
        return self.report.finished[:16].replace("T", " ") if self.report else "not finished"


def runs_in(reports: ReportFolder) -> list[ComparedRun]:
    """All runs in a folder, unfinished ones first, then the newest first."""
    runs = []
    for one in (*reports.reports, *reports.others):
        folder = reports.folder if one.name == REPORT_FILE else reports.folder / one.name
        parts = {"experiment": one.report.name, "parameters": one.report.parameters, "report": one.report}
        runs.append(ComparedRun(name=one.name, folder=folder, **parts))
    for one in reports.aside:
        folder = reports.folder / one.name
        if one.why == "is not finished" and folder.is_dir():
            try:
                experiment, parameters, _ = read_run_file(folder)
            except RunError:
                continue
            parts = {"experiment": experiment, "parameters": parameters, "report": None}
            runs.append(ComparedRun(name=one.name, folder=folder, **parts))
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


def curves_figure(runs: Sequence[ComparedRun]) -> go.Figure | None:
    """The losses of all trainings by optimizer step; None if nothing was trained."""
    trainings = [(run, name, records) for run in runs for name, records in run.curves.items()]
    if not trainings:
        return None
    titles = ["training loss, smoothed", "validation loss"]
    figure = make_subplots(rows=1, cols=2, horizontal_spacing=0.08, subplot_titles=titles)
    for place, (run, name, records) in enumerate(trainings):
        label = charts.plain_text(": ".join(filter(None, (run.name, training_name(name, run.report)))))
        style = charts.line_style(place)
        for column, key in enumerate(("loss", "eval_loss"), start=1):
            points = [(one["step"], one[key]) for one in records if one.get(key) is not None]
            values = smoothed([value for _, value in points]) if column == 1 else [v for _, v in points]
            shown = (
                [(points[i][0], round(float(values[i]), 5)) for i in thinned(len(points))] if points else []
            )
            words = [f"{label}<br>step {step:,}: {value:.4g}" for step, value in shown]
            trace = charts.marks([x for x, _ in shown], [y for _, y in shown], words, name=label, **style)
            mode = "lines" if column == 1 else "lines+markers"
            trace.update(legendgroup=label, showlegend=column == 1, mode=mode)
            figure.add_trace(trace, row=1, col=column)
    figure.update_annotations(font_size=13)
    legend = {"orientation": "v", "x": 0, "xanchor": "left", "y": -0.2, "yanchor": "top"}
    height = 400 + 20 * len(trainings)
    margin = {"t": 48, "b": 76 + 20 * len(trainings)}
    return charts.lay_out(figure, title="", x="update", height=height, margin=margin, legend=legend)


def parameter_table(runs: Sequence[ComparedRun]) -> ScoreTable:
    """A table of the parameters that differ between runs."""
    names = list(dict.fromkeys(name for run in runs for name in run.parameters))
    values = {name: [str(run.parameters.get(name, "\u2013")) or '""' for run in runs] for name in names}
    rows = [[name, *of] for name, of in values.items() if len(set(of)) > 1 and name != "run_folder"]
    equal = sum(len(set(of)) == 1 for of in values.values())
    columns = ["parameter", *(run.name for run in runs)]
    caption = f"parameters that differ; {equal} are the same"
    return text_table(columns, rows, texts=len(columns), caption=caption)


@dataclass(frozen=True, kw_only=True)
class ComparedScores:
    """The scores of runs of one experiment, one row for each run, system and group."""

    table: ScoreTable
    behind: Sequence[tuple[ComparedRun, SystemRow]]  # for each table row, the run and the scores it shows


def score_comparisons(runs: Sequence[ComparedRun]) -> list[ComparedScores]:
    """The scores for each experiment of which there is a finished run."""
    compared = []
    for name in dict.fromkeys(run.experiment for run in runs if run.report):
        if name not in EXPERIMENTS:
            continue
        behind = [
            (run, row)
            for run in runs
            if run.experiment == name and run.report
            for row in report_rows(run.report)
        ]
        names = {row.system: row.label for _, row in behind}
        rows = [
            replace(
                row,
                system=f"{number}",
                label=", ".join(filter(None, (row.label, row.group, run.name))),
                scores={
                    metric: replace(score, against=names.get(score.against, score.against))
                    for metric, score in row.scores.items()
                },
            )
            for number, (run, row) in enumerate(behind)
        ]
        columns = [column for column in LAYOUTS[name].shown if not column.heading.published]
        if rows:
            note = "Click a score to see the examples behind it. Scores of different test data are not to be "
            note += "compared: look at the parameters."
            parts = {"first": "system, run", "caption": name, "note": note}
            compared.append(ComparedScores(table=table_of(rows, columns, **parts), behind=behind))
    return compared


class OpeningTable(anywidget.AnyWidget):
    """A table of scores; a click on a score sets `opened` to the index of its row and increments `clicks`."""

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
    """A list of runs to choose from, with the comparison of the chosen ones below."""

    def __init__(self, runs: Sequence[ComparedRun], chosen: Iterable[ComparedRun]) -> None:
        self.runs = {run.name: run for run in runs}
        labels = {f"{visible(run.name)} \u2013 {run.experiment}, {run.when}": run.name for run in runs}
        self.list = SelectMultiple(
            options=list(labels.items()),
            value=[run.name for run in chosen],
            rows=min(max(len(labels), 3), 8),
            layout=Layout(width="auto", max_width="960px"),
        )
        hint = HTML(muted("Runs to compare; hold Ctrl or Shift and click to choose several."))
        self.message, self.examples, self.seen = HTML(), VBox(), VBox()
        super().__init__([hint, self.list, self.seen, self.message, self.examples])
        close_with_cell(lambda: close_whole(self))
        self._fill()
        self.list.observe(lambda change: self._fill(), names="value")

    @property
    def chosen(self) -> list[ComparedRun]:
        """The runs that are compared."""
        return [self.runs[name] for name in self.list.value]

    def _fill(self) -> None:
        earlier = [*self.seen.children, *self.examples.children]
        self.examples.children, self.scores = [], score_comparisons(self.chosen)
        shown: list[Widget] = []
        if (figure := curves_figure(self.chosen)) is not None:
            shown.append(_shown_figure(figure))
        if len(self.chosen) > 1:
            shown.append(HTML(div(parameter_table(self.chosen).html(), "line-height:1.5")))
        for scores in self.scores:
            table = OpeningTable(scores)
            table.observe(lambda change, scores=scores: self._open(scores, change["owner"]), names="clicks")
            shown.append(table)
        self.seen.children = shown
        for widget in earlier:
            close_whole(widget)

    def _open(self, scores: ComparedScores, table: OpeningTable) -> None:
        """Show the examples behind a row."""
        run, row = scores.behind[table.opened]
        split = row.group if run.experiment == CLAIMS else LAYOUTS[run.experiment].split
        parts = {"experiment": run.experiment, "parameters": run.parameters, "system": row.system}
        earlier, self.examples.children = self.examples.children, []
        for widget in earlier:
            close_whole(widget)
        with printed_in(self.message):
            view = examples_of(run.folder, split=split, **parts)
        title = f"{row.label}, {split}: the examples of {run.name}"
        self.examples.children = [HTML(div(escaped(title), "font-weight:600;margin:12px 0 4px")), view]

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        """The widget, and its tables as HTML and text for papermill and notebooks without a kernel."""
        tables = [parameter_table(self.chosen)] if len(self.chosen) > 1 else []
        tables += [scores.table for scores in self.scores]
        data = dict(super()._repr_mimebundle_(**options) or {})
        figure = curves_figure(self.chosen)
        curves = figure_image(figure.to_dict()) if figure is not None else ""
        data["text/html"] = curves + "".join(table.html() for table in tables)
        data["text/plain"] = "\n\n".join(table.text() for table in tables) or "no run to compare"
        return data


def compared(reports: ReportFolder, names: str, folder: Path) -> RunComparison:
    """The runs in a folder side by side, initially those that match `names`; the figure of their curves is
    saved in the folder of this run."""
    runs = runs_in(reports)
    chosen = chosen_runs(runs, names)
    if (figure := curves_figure(chosen)) is not None:
        keep_figure(folder, "curves", figure)
    return RunComparison(runs, chosen)
