"""The answer to the question of each notebook, made from numbers: from recorded runs for its header, and from
the reports of its own run beside them.

`answers.csv` says what is asked: columns as in `claims.csv`, and the number of the notebook. A row without a
file is asked of the notebook's own run alone; one without a claim belongs to the claim above it.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from cdlm_lab.results.claims import (
    NO_VERDICT,
    TOO_SMALL,
    claims_of,
    effect_of,
    pair_of,
    reports_of,
    tested_of,
    verdict_of,
)
from cdlm_lab.results.layouts import LAYOUTS
from cdlm_lab.results.reports import PERPLEXITY, RECORDED_FOLDER
from cdlm_lab.results.tables import TASKS
from cdlm_lab.runs.report import Report
from cdlm_lab.runs.scores import Score, split_in_words
from cdlm_lab.views.charts import lay_out, plain_text
from cdlm_lab.views.figures import folder_of, keep_figure
from cdlm_lab.views.html import GLOBAL, TEXT, escaped
from cdlm_lab.views.score_tables import labels_of
from cdlm_lab.views.tables import PER_CENT, POINTS, Shown, number_cell, p_text
from cdlm_lab.views.tables import PERPLEXITY as PERPLEXITY_FORM

ANSWERS_FILE = Path(__file__).with_name("answers.csv")
RESULTS_BOOK = "12"  # the notebook whose question is about all claims
# What is written of a notebook's header: the paragraph of the answer, and a picture below it.
HEADER = re.compile(r"\*\*Answer\.\*\*[^\n]*(?:\n\n!\[[^\n]*)?")
_ALL = "Recorded results of small models; [all of them](../data/results/README.md)."
_MISSING = "Recorded results are part of a clone of the project only."
_COUNTED = {
    "holds": "hold",
    "does not": "do not",
    "undecided": "are undecided",
    TOO_SMALL: "are too small to tell a difference like the paper's",
    NO_VERDICT: "have no verdict, since nobody can make them again, or for a known fault",
}
CONTROLS = {"test_one_document": "one document alone", "test_no_question": "without the question"}  # splits
_NAMES = {  # systems that no layout names
    "this run": "our scorer",
    "coreference_sentences": "CDLM, sentences only",
    "ecb_event_more_sentences": "MiniLM, sentences only",
    "": "MSPP IE_k",  # the model of notebook 08
    "tf-idf": "TF-IDF cosine",
}
Row = Mapping[str, str]


def header_answer(notebook: str, folder: Path = RECORDED_FOLDER) -> str:
    """The paragraph of the header of a notebook, such as "03", with the answer of the recorded runs."""
    if notebook == RESULTS_BOOK:
        counts = Counter(effect_of(folder, claim)[0] for claim in claims_of())
        found = ", ".join(f"{counts[one]} {words}" for one, words in _COUNTED.items() if counts[one])
        return f"**Answer.** Of {counts.total()} recorded comparisons {found}. {_ALL}"
    said = [f"*{claim}:* {'; '.join(places)}." for claim, places in _recorded(notebook, folder)]
    return " ".join(["**Answer.**", *said, _ALL])


def answered(notebook: str, *reports: Report, folder: Path = RECORDED_FOLDER) -> Shown:
    """What the reports of this run say to the question of a notebook, with intervals, and the recorded answer
    below. A comparison that the run did not make is left out."""
    parts = []
    for claim, rows in _asked(notebook).items():
        unlike = {(row["better"], row["other"], row["metric"], row["group"]): row for row in rows}
        found = (_said([one], row, bounds=True) for one in reports for row in unlike.values())
        if places := "; ".join(text for text in found if text):
            parts.append(f"<div><b>This run.</b> {escaped(f'{claim}: {places}.')}</div>")
    if reports and not parts:
        parts = ["<div><b>This run</b> compares none of the systems that the question is about.</div>"]
    if folder.is_dir():
        recorded = [f"{claim}: {'; '.join(places)}." for claim, places in _recorded(notebook, folder)]
        parts += [f"<div><b>Recorded.</b> {escaped(one)}</div>" for one in recorded]
    else:
        parts.append(f"<div>{_MISSING}</div>")
    return Shown(f'<div style="max-width:900px;line-height:1.6">{"".join(parts)}</div>')


def _asked(notebook: str) -> dict[str, list[Row]]:
    """Claim, with the measure -> its rows, in the order of the file."""
    asked: dict[str, list[Row]] = {}
    with ANSWERS_FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["notebook"] == notebook:
                claim = f"{row['claim']} ({row['measure']})" if row["claim"] else next(reversed(asked))
                asked.setdefault(claim, []).append(row)
    return asked


def _recorded(notebook: str, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Each claim, and on which data it holds."""
    for claim, rows in _asked(notebook).items():
        kept = [row for row in rows if row["file"]]
        places = [_said(reports_of(folder, row), row, corpus=row["corpus"]) for row in kept]
        if known := [place for place in places if place]:
            yield claim, known


def _said(reports: Sequence[Report], row: Row, *, corpus: str = "", bounds: bool = False) -> str | None:
    """The verdict on a comparison and the two scores, such as `holds on WikiQA (joint 74.1 against pairwise
    73.0, p = 0.020)`; None if a report lacks a system or measure. `bounds`: with intervals."""
    try:
        scores = pair_of(reports, row)
    except (StopIteration, KeyError):
        return None
    texts = [_named(reports[0], score, bounds=bounds) for score in scores]
    try:
        tested = tested_of(reports, row)
    except StopIteration:
        verdict, p = "higher" if scores[0].value > scores[1].value else "not higher", "not tested"
    else:
        verdict, p = verdict_of(reports, tested, row, anew=not corpus), p_text(tested["p_holm"])
        verdict = f"{verdict} hold" if verdict == "does not" else verdict
        p = f"p {p}" if "<" in p else f"p = {p}"
    return f"{verdict}{f' on {corpus}' if corpus else ''} ({' against '.join(texts)}, {p})"


def _named(report: Report, score: Score, *, bounds: bool) -> str:
    """A score with its label, such as `CDLM 2.27`; `bounds`: with its interval."""
    points = score.metric.endswith(("/event", "/entity"))
    form = PERPLEXITY_FORM if report.name == PERPLEXITY else POINTS if points else PER_CENT
    label, cell = _NAMES.get(score.system), number_cell(score, form)
    label = label or labels_of(report, LAYOUTS[report.name])[score.system]
    return f"{label} {cell.text} {cell.below if bounds else ''}".strip()


def score_figure(report: Report) -> go.Figure:
    """Plot the measure that decides, of each system of a report, with its 95% interval; hollow: the same
    systems in the control, such as with one document of each pair, where the run has one."""
    layout = LAYOUTS[report.name]
    labels, task = labels_of(report, layout), next(one for one in TASKS if one.experiment == report.name)
    has_accuracy = any(one.metric == "accuracy" for one in report.rows)  # of pairs; F1 has no level of chance
    metric, measure = ("accuracy", "accuracy") if has_accuracy else (task.metric, task.unit)
    means = [one for one in report.rows if (one.metric, one.seed) == (metric, None) and one.system in labels]
    group = next(one.group for one in means if one.split == layout.split)
    points = [
        {
            "system": plain_text(labels[one.system]),
            "split": CONTROLS.get(one.split, one.split),
            "value": 100 * one.value,
            "above": 0.0 if one.high is None else 100 * (one.high - one.value),
            "below": 0.0 if one.low is None else 100 * (one.value - one.low),
            "text": f"{100 * one.value:.1f}",
        }
        for split in (layout.split, *CONTROLS)
        for one in means
        if (one.split, one.group) == (split, group)
    ]
    form = {"error_x": "above", "error_x_minus": "below", "text": "text", "color": "split", "symbol": "split"}
    form |= {"color_discrete_sequence": [GLOBAL, TEXT], "symbol_sequence": ["circle", "circle-open"]}
    figure = px.scatter(pd.DataFrame(points), x="value", y="system", **form)
    for trace in figure.data:
        trace.update(error_x={"color": trace.marker.color, "thickness": 2.5, "width": 0})
    look = {"marker_size": 12, "textposition": "top center", "showlegend": len(figure.data) > 1}
    figure.update_traces(**look, hovertemplate="%{y}: %{text}<extra></extra>")
    names = [*dict.fromkeys(one["system"] for one in points)][::-1]
    ends = {"categoryorder": "array", "categoryarray": names, "range": [-0.5, len(names) - 0.3]}
    figure.update_yaxes(**ends, title_text="", showgrid=False, ticks="")
    figure.update_xaxes(range=[0, 103], title_text="").update_layout(legend_title_text="")
    title = f"{measure} in per cent, {split_in_words(layout.split)}"
    lay_out(figure, title=title, height=150 + 46 * len(names), margin={"l": 180, "t": 84, "b": 40})
    return keep_figure(folder_of(report), "scores", figure)
