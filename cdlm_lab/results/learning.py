"""Learning curves of the language models, from the reports of notebook 01.

python -m cdlm_lab.results.learning data/results/storyworld_tiny FOLDER    # HTML, SVG and PNG
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import plotly.graph_objects as go

from cdlm_lab.errors import print_any_sign
from cdlm_lab.parameters import ParameterError, path_argument
from cdlm_lab.results.reports import ReportFolder, find_reports
from cdlm_lab.results.series import corpus_name
from cdlm_lab.views.charts import LearningCurve, learning_figure
from cdlm_lab.views.figures import write_figures

PRETRAINING = "pretraining"


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
    parser = argparse.ArgumentParser(description="How language models learned, as HTML, SVG and PNG.")
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
    return write_figures(named, given.folder) or f"{given.folder}: {', '.join(named) or 'nothing to draw'}"


if __name__ == "__main__":
    print(main())
