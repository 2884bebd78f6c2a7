"""How the language models learned, from the reports of notebook 01."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go

from cdlm_lab.results.reports import ReportFolder
from cdlm_lab.widgets.charts import LearningCurve, learning_figure

PRETRAINING = "pretraining"


def learning_figures(reports: ReportFolder) -> list[go.Figure]:
    """The loss on validation by tokens read: a figure for each corpus, validation split and length, and in it
    a line for each run."""
    of_corpus: dict[tuple[str, str, str], list[LearningCurve]] = {}
    for one in reports.others:
        report = one.report
        history = report.tables.get("history", []) if report.name == PRETRAINING else []
        seen = [row for row in history if _is_known(row)]
        if seen:
            corpus, length = report.data.get("corpus"), report.parameters.get("max_length")
            key = (str(corpus), str(report.data.get("validation_checksum")), str(length))
            tokens, losses = zip(*((row["tokens"], row["eval_loss"]) for row in seen), strict=True)
            variant = str(report.parameters.get("variant"))
            name = f"{one.name}, seed {report.seed}"
            curve = LearningCurve(variant=variant, name=name, tokens=tokens, losses=losses)
            of_corpus.setdefault(key, []).append(curve)
    return [
        learning_figure(curves, title=f"Pretraining on {corpus}, {length} tokens long")
        for (corpus, _, length), curves in of_corpus.items()
    ]


def _is_known(row: Mapping[str, Any]) -> bool:
    """Whether a record is one of a validation, with numbers."""
    return isinstance(row.get("eval_loss"), float) and isinstance(row.get("tokens"), int)
