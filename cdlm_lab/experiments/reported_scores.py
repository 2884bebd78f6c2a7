"""Scores out of the reports of all notebooks, in one form: rows of systems, columns of measures.

A row belongs to a group of its report, that is to one table: a kind of mentions, a ranking, a set of claims.
`reported_rows` makes them of a report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

DEV = "dev "  # before the name of a measure: the same on dev
PERPLEXITY, COREFERENCE = "cross-document perplexity", "coreference"
MATCHING, ALIGNMENT = "document matching", "sentence alignment"
QUESTIONS, TAGGING = "multihop question answering", "document-attentive tagging"
ANSWERS, CLAIMS, ATTENTION = "answer selection", "fact verification", "attention analysis"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedScore:
    """A number of a report.

    Attributes:
        value: the number, as the report has it.
        interval: its 95% interval; None = the report has none.
        deviation: standard deviation over `seeds`; None of one.
        seeds: of how many trainings it is the mean; None = it is of one run, or nothing was trained.
        p: of the test against the row `against`, corrected as the report has it; None = not tested.
    """

    value: float
    interval: tuple[float, float] | None = None
    deviation: float | None = None
    seeds: int | None = None
    p: float | None = None
    against: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRow:
    """A system of a report.

    Attributes:
        group: the table of the report that it belongs to.
        system: name, by which tables of papers know it.
        label: what to call it.
        checkpoint: the pretrained encoder that it is made of, as the parameters name it; "" = none.
        scores: by measure; those on dev under `DEV` and the measure.
    """

    group: str
    system: str
    label: str
    checkpoint: str
    scores: Mapping[str, ReportedScore] = field(default_factory=dict)


def score_of(score: Mapping[str, Any], *, p: float | None = None, against: str = "") -> ReportedScore:
    """A score as a report holds it (see `seed_scores.score_of_seeds`), and its test if there is one."""
    return ReportedScore(
        value=float(score["value"]),
        interval=(float(score["low"]), float(score["high"])) if "low" in score else None,
        deviation=score.get("deviation"),
        seeds=score.get("seeds"),
        p=p,
        against=against if p is not None else "",
    )


def p_values_of(rows: Iterable[Mapping[str, Any]], *keys: str) -> dict[tuple[str, ...], tuple[float, str]]:
    """The values of `keys` -> p, corrected, and against what; of the rows `a` against `b`."""
    return {tuple(row[key] for key in keys): (row["p_holm"], row["b"]) for row in rows}


def tested_score(score: Mapping[str, Any], test: tuple[float, str] | None) -> ReportedScore:
    """The same with a value of `p_values_of`."""
    return score_of(score) if test is None else score_of(score, p=test[0], against=test[1])
