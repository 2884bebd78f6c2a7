"""The answer of a run to the question of its notebook in one sentence, from the numbers of its report."""

from __future__ import annotations

from collections.abc import Mapping

from cdlm_lab.metrics.paired import SURE
from cdlm_lab.results.layouts import LAYOUTS
from cdlm_lab.runs.report import Report
from cdlm_lab.runs.scores import Score, split_in_words
from cdlm_lab.views.score_tables import labels_of
from cdlm_lab.views.tables import PER_CENT, number_cell, p_text


def answer(
    report: Report,
    system: str,
    other: str,
    metric: str,
    *,
    name: str = "",
    group: str = "",
    systems: Mapping[str, str] | None = None,
) -> str:
    """How much higher a system scores than another, both with their intervals, and whether it may be chance.

    Args:
        metric: of the rows of the report, such as `joint_f1`; `name`: as it is called in the sentence.
        group: of the rows; "" = the only one.
        systems: their names -> what to call them; None = as their notebook calls them.

    A system that the run has not is said to be missing. p is that of the report, for the system against
    `other`; where the report has no such test the sentence says so.
    """
    layout = LAYOUTS[report.name]
    labels = systems or labels_of(report, layout)
    split, what = layout.split, name or metric.replace("_", " ")
    where = split_in_words(split) if split else "test"
    scores = [_score(report, one, metric, split, group) for one in (system, other)]
    for one, score in zip((system, other), scores, strict=True):
        if score is None:
            return f"This run cannot say it: it has no {labels.get(one, one)} on {where}."
    first, second = scores
    texts = [
        f"{labels[one.system]} has {number_cell(one, PER_CENT).line.partition(' (p')[0]}" for one in scores
    ]
    of = layout.size(report, split, group)[1]
    sentence = f"On {where} ({of}), {what} in per cent: {' and '.join(texts)}"
    if (p := _tested(report, first, other)) is None:
        return f"{sentence}; the two are not tested against each other, so look at the intervals."
    points, more = 100 * (first.value - second.value), "higher" if first.value > second.value else "lower"
    verdict = "more than chance" if p < SURE else "this may be chance"
    apart = f"the first is {abs(points):.1f} points {more}" if abs(points) >= 0.05 else "they are equal"
    return f"{sentence}; {apart}, p {_p(p)}: {verdict}."


def _tested(report: Report, score: Score, other: str) -> float | None:
    """The p of a score against that of another system, from the report's row or its table of comparisons."""
    if score.p is not None and score.against == other:
        return score.p
    wanted = {
        "a": score.system,
        "b": other,
        "measure": score.metric,
        "split": score.split,
        "group": score.group,
    }
    for row in report.tables.get("comparisons", ()):
        if "p_holm" in row and all(row.get(name, value) == value for name, value in wanted.items()):
            return row["p_holm"]
    return None


def _score(report: Report, system: str, metric: str, split: str, group: str) -> Score | None:
    rows = (row for row in report.rows if row.seed is None and (row.system, row.metric) == (system, metric))
    return next((row for row in rows if row.split == split and row.group == group), None)


def _p(p: float) -> str:
    return p_text(p) if p_text(p).startswith("<") else f"= {p_text(p)}"
