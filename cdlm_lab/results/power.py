"""The smallest difference that a comparison could have shown, beside the one that the paper reports.

A difference is counted as one that could have been shown if a test at 5% finds it in four of five repetitions
(80% power, as usual: Card et al. 2020, "With Little Power Comes Great Responsibility"). That is 1.43 half
widths of the 95% interval over items; with several seeds on both sides the test over seeds has to find it as
well, so the larger of the two counts. Holm's correction, which would make it larger still, is left out.

`claimed.csv` names the numbers of the papers (in `published.csv`) that belong to a claim of `claims.csv`: of
`better` and `other` in a `column`, or the difference of two columns. On a data set that the paper has, its
difference there counts, else the mean over those that it has. Claims without a line have no number in the
paper that ours could be compared with.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import NormalDist, fmean, variance
from typing import Any

from cdlm_lab.metrics.paired import LEVEL, SURE
from cdlm_lab.views.tables import published_numbers

CLAIMED_FILE = Path(__file__).with_name("claimed.csv")
POWER = 0.8
_PER_HALF_WIDTH = 1 + NormalDist().inv_cdf(POWER) / NormalDist().inv_cdf((1 + LEVEL) / 2)


def could_show(tested: Mapping[str, Any], sides: Sequence[Sequence[float]]) -> float:
    """The smallest difference that a comparison could have shown, in its own unit.

    Args:
        tested: a row of comparisons, with its interval `low` and `high`, None = a single cluster.
        sides: of each of the two systems the scores of its seeds.

    Returns infinity if nothing could have been shown.
    """
    if tested["low"] is None:
        return math.inf
    return max(_PER_HALF_WIDTH * (tested["high"] - tested["low"]) / 2, _over_seeds(sides))


def _over_seeds(sides: Sequence[Sequence[float]]) -> float:
    """The smallest difference that Welch's test shows; 0.0 where it is not made."""
    if min(map(len, sides)) < 2:
        return 0.0
    parts = [variance(one) / len(one) for one in sides]
    if not sum(parts):
        return 0.0
    from scipy.stats import t  # imported here, since it takes a second to load

    freedom = sum(parts) ** 2 / sum(one**2 / (len(of) - 1) for one, of in zip(parts, sides, strict=True))
    return float(t.ppf(1 - SURE / 2, freedom) + t.ppf(POWER, freedom)) * math.sqrt(sum(parts))


def papers_difference(table: str, claim: str, corpus: str) -> float | None:
    """By how much the system is better in the paper, None if it does not say. In points; for perplexities the
    difference of their logarithms. Raises KeyError if `published.csv` lacks a number."""
    line = _claimed().get((table, claim))
    if line is None:
        return None
    paper, number = line["numbers"].split()
    numbers = published_numbers()[paper, number]
    datasets = line["datasets"].split("; ")
    of_corpus = [name for name in datasets if corpus.startswith(name)]
    return fmean(_difference(numbers, line, dataset) for dataset in of_corpus or datasets)


def _difference(numbers: Mapping[tuple[str, str, str], str], line: Mapping[str, str], dataset: str) -> float:
    better, other = (
        [float(numbers[dataset, line[side], column]) for column in line["column"].split(" - ")]
        for side in ("better", "other")
    )
    if "perplexity" in line["column"]:
        return math.log(other[0] / better[0])
    difference = better[0] - sum(better[1:]) - (other[0] - sum(other[1:]))
    return 100 * difference if better[0] <= 1 else difference  # MRR is printed as a fraction


@cache
def _claimed() -> dict[tuple[str, str], dict[str, str]]:
    with CLAIMED_FILE.open(encoding="utf-8", newline="") as file:
        return {(line["table"], line["claim"]): line for line in csv.DictReader(file)}
