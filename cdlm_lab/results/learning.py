"""Learning curves of the language models, from the reports of notebook 01.

python -m cdlm_lab.results.learning data/results/storyworld_tiny FOLDER    # HTML and SVG
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from cdlm_lab.errors import print_any_sign
from cdlm_lab.parameters import ParameterError, path_argument
from cdlm_lab.results.reports import ReportFolder, find_reports
from cdlm_lab.results.series import corpus_name
from cdlm_lab.views import html
from cdlm_lab.views.charts import lay_out, marks, plain_text, variant_label
from cdlm_lab.views.figures import write_figures
from cdlm_lab.views.html import TEXT, paper_order, variant_colours

PRETRAINING = "pretraining"


class LearningCurve(NamedTuple):
    """The validation losses of one training run, and how many training tokens were read before each."""

    variant: str
    name: str  # of the run
    seed: int
    tokens: Sequence[int]
    losses: Sequence[float]  # in nats per masked token


_DASHES = ("solid", "dash", "dot", "dashdot")
_COMPARED_WITH = "local-cdlm"


def learning_figure(curves: Sequence[LearningCurve], *, title: str = "") -> go.Figure:
    """Plot validation loss by training tokens, one line per training run, coloured by variant and dashed by
    seed. A second panel shows the loss of each variant that continues from a base model minus that of Local
    CDLM of the same seed, if there is exactly one: below zero a variant is better than Local CDLM."""
    seeds = sorted({curve.seed for curve in curves})
    dashes = {seed: _DASHES[place % len(_DASHES)] for place, seed in enumerate(seeds)}
    colours = variant_colours(paper_order(curve.variant for curve in curves))
    further = [one for curve in curves if (one := _against_local(curve, curves))]
    figure = make_subplots(rows=1 + bool(further), cols=1, vertical_spacing=0.14)
    for row, (shown, more) in enumerate(((curves, ""), (further, " against Local CDLM")), start=1):
        for curve in sorted(shown, key=lambda one: list(colours).index(one.variant)):
            line = {"color": colours[curve.variant], "width": 2, "dash": dashes[curve.seed]}
            figure.add_trace(_learning_line(curve, line, more), row=row, col=1)
    for trace in {trace.name: trace for trace in reversed(figure.data)}.values():  # the first of each name
        trace.showlegend = True
    for seed, dash in dashes.items() if len(seeds) > 1 else ():
        line = {"color": TEXT, "width": 2, "dash": dash}
        figure.add_trace(marks([None], [None], mode="lines", name=f"seed {seed}", line=line))
    figure.update_yaxes(title_text="nats for each masked token", row=1, col=1)
    if further:
        figure.update_yaxes(title_text="the same, minus Local CDLM", row=2, col=1)
        figure.add_hline(y=0, row=2, col=1, line={"color": colours[_COMPARED_WITH], "width": 2})
    x, height = "million tokens read", 720 if further else 460
    # leave room for two rows of the legend
    return lay_out(figure, title=title, x=x, height=height, margin_t=108).update_xaxes(rangemode="tozero")


def _learning_line(curve: LearningCurve, line: Mapping[str, Any], more: str) -> go.Scatter:
    name, style = variant_label(curve.variant), {"mode": "lines+markers", "line": line}
    words = [
        f"{name}, {plain_text(curve.name)}<br>{tokens:,} tokens: "
        + (f"{loss:+.3f} nats{more}" if more else f"{loss:.3f} nats (perplexity {math.exp(loss):.2f})")
        for tokens, loss in zip(curve.tokens, curve.losses, strict=True)
    ]
    symbol = html.VARIANT_SYMBOLS.get(curve.variant, "circle")
    style["marker"] = {"color": line["color"], "symbol": symbol, "size": 8}
    style |= {"name": name, "legendgroup": curve.variant, "showlegend": False}
    return marks([tokens / 1e6 for tokens in curve.tokens], list(curve.losses), words, **style)


def _against_local(curve: LearningCurve, curves: Sequence[LearningCurve]) -> LearningCurve | None:
    """Subtract the losses of Local CDLM of the same seed, where both have tokens. None for Local CDLM and
    Longformer themselves, unless just one curve of Local CDLM has this seed, or without overlap."""
    local = [one for one in curves if (one.variant, one.seed) == (_COMPARED_WITH, curve.seed)]
    if len(local) != 1 or curve.variant in (_COMPARED_WITH, "longformer"):
        return None
    tokens = np.asarray(curve.tokens)
    # Batches are not equally full, so the last validations of two trainings are some hundred tokens apart.
    both = (tokens >= 0.99 * local[0].tokens[0]) & (tokens <= 1.01 * local[0].tokens[-1])
    losses = np.asarray(curve.losses) - np.interp(tokens, local[0].tokens, local[0].losses)
    return curve._replace(tokens=tokens[both].tolist(), losses=losses[both].tolist()) if any(both) else None


def learning_figures(reports: ReportFolder) -> list[go.Figure]:
    """Validation loss by tokens read: a figure per corpus, validation split and length, a line per run."""
    of_corpus: dict[tuple[str, str, int], list[LearningCurve]] = {}
    for one in reports.others:
        report = one.report
        history = report.tables.get("history", []) if report.name == PRETRAINING else []
        seen = [  # records with a validation loss
            row
            for row in history
            if isinstance(row.get("eval_loss"), float) and isinstance(row.get("tokens"), int)
        ]
        if seen:
            corpus, checksum = (str(report.data.get(name)) for name in ("corpus", "validation_checksum"))
            key = (corpus_name(corpus), checksum, report.parameters.get("max_length", 0))
            tokens, losses = zip(*((row["tokens"], row["eval_loss"]) for row in seen), strict=True)
            variant, seed = str(report.parameters.get("variant")), report.seed or 0
            name = f"{one.name}, seed {seed}"
            curve = LearningCurve(variant=variant, name=name, seed=seed, tokens=tokens, losses=losses)
            of_corpus.setdefault(key, []).append(curve)
    return [
        learning_figure(curves, title=f"Validation loss of pretraining on {corpus}, {length:,} tokens long")
        for (corpus, _, length), curves in of_corpus.items()
    ]


def main(arguments: Sequence[str] | None = None) -> str:
    """Write the figures from a folder of reports into another folder; returns a line on what was written."""
    print_any_sign()
    parser = argparse.ArgumentParser(description="How language models learned, as HTML and SVG.")
    parser.add_argument(
        "reports", type=path_argument, help="a folder with runs of notebook 01, or with their reports"
    )
    parser.add_argument("folder", type=path_argument, help="where the figures go")
    given = parser.parse_args(arguments)
    try:
        figures = learning_figures(find_reports(given.reports))
    except ParameterError as error:
        parser.error(str(error))
    named = {f"learning-{n}" if n > 1 else "learning": one for n, one in enumerate(figures, start=1)}
    write_figures(named, given.folder)
    return f"{given.folder}: {', '.join(named) or 'nothing to draw'}"


if __name__ == "__main__":
    print(main())
