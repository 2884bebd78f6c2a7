"""A score in a table of systems that were trained with several seeds and tested against one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cdlm_lab.widgets.html import MUTED
from cdlm_lab.widgets.matching_table import (
    NONE,
    best_written,
    check_measured,
    check_seeds,
    measured_html,
    p_in_words,
    per_cent,
)

_SMALL = f"font-size:11px;font-weight:400;white-space:nowrap;{MUTED}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredScore:
    """A score of a system.

    Attributes:
        value: mean over the seeds, in [0, 1].
        interval: its 95% interval (low, high) in [0, 1]; None = it has none, as what a random order is
            expected to reach.
        deviation: standard deviation over the seeds; None with one seed.
        p: two-sided p-value against pairwise reading; None = not tested.

    Raises:
        ValueError: a number outside [0, 1], an interval that runs backwards.
    """

    value: float
    interval: tuple[float, float] | None = None
    deviation: float | None = None
    p: float | None = None

    def __post_init__(self) -> None:
        check_measured("the score", self.value, self.interval)


def check_scores(name: str, scores: Mapping[str, MeasuredScore], *, seeds: int | None) -> None:
    """Refuses scores that do not go with the number of seeds; None = nothing was trained.

    Raises:
        ValueError: a deviation over fewer than two seeds, or a negative one; a p-value outside [0, 1]; no
            seeds. The message begins with `name`.
    """
    trained = 1 if seeds is None else seeds
    for measure, score in scores.items():
        check_seeds(name, trained, {measure: score.deviation}, p=score.p)


def best_score(scores: Iterable[MeasuredScore | None]) -> str | None:
    """The highest of them as it is written; None if there are not two to choose from."""
    return best_written([score.value for score in scores if score is not None], per_cent)


def score_html(score: MeasuredScore | None, *, best: str | None) -> str:
    """The score, bold if it is written like `best`; below it deviation and interval, then the p-value."""
    if score is None:
        return NONE
    html = measured_html(
        score.value, form=per_cent, interval=score.interval, deviation=score.deviation, best=best
    )
    if score.p is None:
        return html
    return f'{html}<div style="{_SMALL}">p {"" if score.p < 0.001 else "= "}{p_in_words(score.p)}</div>'


def seeds_in_words(seeds: int | None) -> str:
    """How many models were trained; a dash where nothing was."""
    return NONE if seeds is None else str(seeds)


def explained_scores(rows: Iterable[Mapping[str, MeasuredScore]]) -> list[str]:
    """Sentences on what stands in the cells of a table of these rows."""
    rows = list(rows)
    scores = [score for row in rows for score in row.values()]
    parts = ["Brackets: 95% interval."] if any(score.interval for score in scores) else []
    if any(score.deviation is not None for score in scores):
        parts.append("\u00b1: standard deviation over the seeds, of which the mean is shown.")
    if any(score.p is not None for score in scores):
        parts.append("p: two-sided, against pairwise reading.")
    return [*parts, *(["Bold: best."] if len(rows) > 1 else [])]
