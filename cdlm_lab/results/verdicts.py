"""The verdict on a comparison that several recorded runs made, each with one seed.

`cdlm_lab.runs.evaluation` has the rule, and a report holds the verdict of each of its comparisons. Runs of
notebooks 02 and 11 measure models of one seed: of several that differ in nothing else, p over items is the
largest, p over seeds is that of Welch's test on their scores, and both are corrected as within one run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from cdlm_lab.metrics.paired import t_test_of_seeds
from cdlm_lab.results.layouts import LAYOUTS
from cdlm_lab.runs.evaluation import judge
from cdlm_lab.runs.report import Report

_PLACE = ("a", "b", "kind", "cell", "measure", "split", "group")


def comparisons_of(reports: Sequence[Report], *, lower: bool = False) -> list[dict[str, Any]]:
    """The comparisons of a report, or of several that differ in their seed alone, with `p_holm`, `difference`
    and `verdict`. `lower`: True = the lower score is better."""
    if len(reports) == 1:
        return [dict(row) for row in reports[0].tables.get("comparisons", ())]
    families: dict[tuple, list[dict[str, Any]]] = {}
    for same in _same_rows(reports):
        sides = [_scores(reports, same[0], side, lower=lower) for side in ("a", "b")]
        p = max(*(row["p_items"] for row in same), t_test_of_seeds(*sides) or 0.0)
        row = {**same[0], "p": p, "difference": fmean(row["difference"] for row in same)}
        families.setdefault(tuple(row.get(name) for name in _PLACE[2:]), []).append(row)
    for family in families.values():
        judge(family, lower=[lower] * len(family))
    return [row for family in families.values() for row in family]


def _same_rows(reports: Sequence[Report]) -> Iterable[list[Mapping[str, Any]]]:
    """The rows of each comparison, one of each report; one that a report lacks is left out."""
    first, *others = (
        {tuple(row.get(name) for name in _PLACE): row for row in report.tables["comparisons"]}
        for report in reports
    )
    for key, row in first.items():
        if all(key in rows for rows in others):
            yield [row, *(rows[key] for rows in others)]


def _scores(reports: Sequence[Report], row: Mapping[str, Any], side: str, *, lower: bool) -> list[float]:
    """The score of a side in each report; of perplexities, which are `lower`, the logarithm."""
    metric = row.get("kind") or row.get("cell") or row["measure"]
    found = []
    for report in reports:
        key = row[side], row.get("split") or LAYOUTS[report.name].split, row.get("group") or "", metric, None
        found.append(next(one.value for one in report.rows if one.key == key))
    return [math.log(one) for one in found] if lower else found
