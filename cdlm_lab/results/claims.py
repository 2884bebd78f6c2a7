"""Claims of the papers, and whether the recorded runs confirm them: `claims.csv` names a report and two
systems for each claim; scores, test and verdict are read from the report. A report that was made by a program
with uncommitted changes supports no verdict: nobody can make it again. Nor does one with a known fault.

Columns of the CSV: `file` is a report, or one for each seed; `better` is claimed to score above `other`, or
below it in perplexity; `metric` and `group` are those of the score rows (for fact verification the group is
the set of claims); `test` selects the row of the table of comparisons, together with the two systems, or that
of the gains among `words` of high TF-IDF; `fault` says what is wrong with the measurement.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from cdlm_lab.results.layouts import LAYOUTS
from cdlm_lab.results.power import could_show, papers_difference
from cdlm_lab.results.reports import CLAIMS, PERPLEXITY
from cdlm_lab.results.verdicts import comparisons_of
from cdlm_lab.runs.report import Report, read_report
from cdlm_lab.runs.scores import Score
from cdlm_lab.views import tables

CLAIMS_FILE = Path(__file__).with_name("claims.csv")
_WORDS = "words="
PAPERS = {"cdlm": "CDLM", "cda": "CDA", "doc-arc": "Doc-ARC", "mspp": "MSPP"}  # as `table` in the CSV begins


def claims_of(paper: str = "") -> list[dict[str, str]]:
    """The rows of `claims.csv` on a paper, a key of PAPERS; "" = on all."""
    with CLAIMS_FILE.open(encoding="utf-8", newline="") as file:
        claims = list(csv.DictReader(file))
    return [one for one in claims if one["table"].startswith(PAPERS[paper] if paper else "")]


NO_VERDICT = "no verdict"  # of what nobody can make again, or of what has a fault
FAULT = "\u00a7"  # its mark
TOO_SMALL = "too small to tell"  # a test that could not have shown a difference as large as the paper's
VERDICTS = ("holds", "does not", "undecided", TOO_SMALL, NO_VERDICT)


def verdicts_table(results: Path, paper: str) -> tables.ScoreTable:
    """Each claim of a paper, and on which data it holds, does not, is undecided or has no verdict."""
    names = dict.fromkeys((one["table"].partition(", ")[2], one["claim"]) for one in claims_of(paper))
    found: dict[tuple[str, str], dict[str, list[str]]] = {name: {} for name in names}
    for claim in claims_of(paper):
        one = found[claim["table"].partition(", ")[2], claim["claim"]]
        reports = reports_of(results, claim)
        one.setdefault(verdict_of(reports, tested_of(reports, claim), claim), []).append(claim["corpus"])
    used = [verdict for verdict in VERDICTS if any(verdict in one for one in found.values())]
    headings = [tables.Heading(name=name, is_text=True) for name in ("table", "claim", *used)]
    texts = [(*name, *("; ".join(one.get(verdict, ())) for verdict in used)) for name, one in found.items()]
    rows = [[tables.Cell(text=text) for text in row] for row in texts]
    caption = f"{PAPERS[paper]}: where its claims hold"
    return tables.ScoreTable(caption=caption, columns=headings, rows=rows)


def effect_of(results: Path, claim: Mapping[str, str]) -> tuple[str, float]:
    """The verdict on a claim, and by how much the system that it claims to be better is: in points, or in
    percent of the perplexity of the other."""
    reports = reports_of(results, claim)
    better, other = (score.value for score in pair_of(reports, claim))
    difference = math.log(other / better) if reports[0].name == PERPLEXITY else better - other
    return verdict_of(reports, tested_of(reports, claim), claim), as_effect(reports, claim, difference)


def as_effect(reports: Sequence[Report], claim: Mapping[str, str], difference: float) -> float:
    """A difference of the scores of a claim in points, or of the logarithms of perplexities in percent of
    the perplexity of the other."""
    if reports[0].name == PERPLEXITY:
        return -100 * math.expm1(-difference)
    ranks = any(score.value > 1.5 for score in pair_of(reports[:1], claim))  # which are points already
    return difference * (1 if ranks else 100)


def mark_of(reports: Sequence[Report], claim: Mapping[str, str]) -> str:
    """The mark of the first of some reports that nobody can make again, or of a fault; "" = neither."""
    return next((report.mark for report in reports if report.mark), FAULT if claim.get("fault") else "")


def reports_of(results: Path, claim: Mapping[str, str]) -> list[Report]:
    """The report of a claim, or several, each of one seed."""
    return [read_report(results / file) for file in claim["file"].split()]


_TURNED = {"holds": "does not", "does not": "holds"}


def verdict_of(
    reports: Sequence[Report], tested: Mapping[str, Any], claim: Mapping[str, str], *, anew: bool = False
) -> str:
    """One of VERDICTS: that of the test, if no report has a mark; `anew`: True = all were just made."""
    if mark_of(reports, claim) and not anew:
        return NO_VERDICT
    turned = _TURNED if tested["a"] != claim["better"] else {}
    verdict = turned.get(tested["verdict"], tested["verdict"])
    shown, papers = power_of(reports, tested, claim)
    is_small = verdict == "undecided" and papers is not None and shown > abs(papers)
    return TOO_SMALL if is_small or verdict == "too few units" else verdict


def power_of(
    reports: Sequence[Report], tested: Mapping[str, Any], claim: Mapping[str, str]
) -> tuple[float, float | None]:
    """The smallest difference that the test of a claim could have shown, and the one of the paper, None if it
    has none: in points, or in percent of the perplexity of the other."""
    names = claim["better"], claim["other"]
    sides = [_of_seeds(reports, claim, name) for name in names]
    shown, papers = could_show(tested, sides), papers_difference(*_in_paper(claim), claim["corpus"])
    if papers is not None and reports[0].name == PERPLEXITY:
        papers = as_effect(reports, claim, papers)
    return as_effect(reports, claim, shown), papers


def _in_paper(claim: Mapping[str, str]) -> tuple[str, str]:
    """Table and text of a claim; of one that is asked in other words those of the claim that compares the
    same in the same recorded run."""
    if "table" not in claim:
        same = ("file", "better", "other", "metric", "group")
        rows = (one for one in claims_of() if all(one[name] == claim[name] for name in same))
        claim = next(rows, {"table": "", "claim": ""})
    return claim["table"], claim["claim"]


def _of_seeds(reports: Sequence[Report], claim: Mapping[str, str], system: str) -> list[float]:
    """The scores of the seeds of a system; of perplexities their logarithms."""
    if len(reports) > 1:
        values = [score_of(report, claim, system).value for report in reports]
    elif claim["test"].startswith(_WORDS):
        values = []  # of which no seed is recorded
    else:
        place = (system, *_place(reports[0], claim), claim["metric"])
        values = [one.value for one in reports[0].rows if one.key[:4] == place and one.seed is not None]
    return [math.log(one) for one in values] if reports[0].name == PERPLEXITY else values


def pair_of(reports: Sequence[Report], claim: Mapping[str, str]) -> tuple[Score, Score]:
    """The scores of the two systems of a claim: of several reports, each of one seed, their means. Raises
    StopIteration if a report lacks a score."""
    better, other = zip(*[_pair_of(report, claim) for report in reports], strict=True)
    return mean_score(better), mean_score(other)


def mean_score(scores: Sequence[Score]) -> Score:
    """The mean of scores of one seed each, with its deviation. Its interval has the means of their bounds, so
    it is at least as wide as that of the mean; p, which each had of its own, is left out."""
    first, values = scores[0], [one.value for one in scores]
    if len(scores) == 1 or max(values) == min(values):  # of what was not trained
        return first
    has_bounds = all(one.low is not None and one.high is not None for one in scores)
    bounds = {end: fmean(getattr(one, end) for one in scores) for end in ("low", "high") if has_bounds}
    several = {"deviation": stdev(values), "seeds": len(scores), "p": None, "against": ""}
    return replace(first, value=fmean(values), **bounds, **several)


def _pair_of(report: Report, claim: Mapping[str, str]) -> tuple[Score, Score]:
    names = claim["better"], claim["other"]
    if claim["test"].startswith(_WORDS):
        values = tested_of([report], claim)
        seeds = report.parameters["seeds"]
        scores = {values[side]: values[f"f1_{side}"] for side in "ab"}
        better, other = (Score(system=name, metric="f1", value=scores[name], seeds=seeds) for name in names)
        return better, other
    return score_of(report, claim, names[0]), score_of(report, claim, names[1])


def score_of(report: Report, claim: Mapping[str, str], system: str, *, split: str = "") -> Score:
    """The score of a system by the metric of a claim; `split`: "" = the one that its notebook shows."""
    usual, group = _place(report, claim)
    split = split or usual
    return next(row for row in report.rows if row.key == (system, split, group, claim["metric"], None))


def _place(report: Report, claim: Mapping[str, str]) -> tuple[str, str]:
    """The split and the group of the scores of a claim."""
    if report.name == CLAIMS:
        return claim["group"], ""
    return LAYOUTS[report.name].split if report.name in LAYOUTS else "", claim["group"]


def tested_of(reports: Sequence[Report], claim: Mapping[str, str]) -> dict[str, Any]:
    """The row that tests the two systems of a claim. Raises StopIteration if none does."""
    names = {claim["better"], claim["other"]}
    split, group = _place(reports[0], claim)
    test = {"split": split, "group": group, "set": split}
    test |= dict(part.split("=") for part in claim["test"].split("; ") if part)
    lower = reports[0].name == PERPLEXITY
    rows = (
        reports[0].tables["gains"]
        if claim["test"].startswith(_WORDS)
        else comparisons_of(reports, lower=lower)
    )
    return next(
        row
        for row in rows
        if {row["a"], row["b"]} == names and all(row.get(key) in (None, "", test[key]) for key in test)
    )
