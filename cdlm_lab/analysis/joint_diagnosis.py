"""Has a joint model collapsed? (Di Liello et al. 2022, "MSPP", section 4.3.)

Fine-tuned without MSPP, RoBERTa as a joint model "faces convergence issues": P@1 19.7, MAP 39.4, MRR 40.3 on
the clean test questions of WikiQA (Table 1), of which random ranking has 18.3, 38.4, 39.2. Neither loss nor
accuracy shows that: one candidate in eight is right, so calling each wrong is correct for seven. What does is
- the ranking, next to the expected scores of a random one of the same candidates;
- the spread of scores within a group: near 0, the model says the same of each candidate;
- how far the scores follow the place in the sequence, which says nothing of a candidate, since its place is
  drawn or fixed by a hash;
- the accuracy at each place, next to that of calling each candidate wrong.

The paper has no criterion. Here a model has collapsed if its MAP is above that of random ranking by less than
a tenth of what there is to gain. Beyond that it has not, if a 95% bootstrap interval over questions says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cdlm_lab.metrics.ranking import values_per_group
from cdlm_lab.metrics.significance import compare, mean_of_sums

ABSENT = -100
LEAST_GAIN = 0.1
LEAST_SPREAD = 0.05  # in log-odds: 0.50 against 0.51
MOST_BY_PLACE = 0.5
_RESAMPLES = 2000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointDiagnosis:
    """What the scores of a joint model look like, group by group and place by place.

    Attributes:
        scores: `precision_at_1`, `average_precision` and `reciprocal_rank`, means over questions, the
            candidates of all groups of a question ranked together.
        random: the same of random ranking, in expectation, exactly.
        gain: how far MAP is on the way from random ranking (0) to a perfect one (1); below 0 if worse.
        above_random: True = the 95% bootstrap interval of MAP less that of random ranking is above 0.
        spread: float64 (groups,), standard deviation of the log-odds within each group of two or more.
        by_place: share of the variance within these groups that the place alone explains, 0 to 1, corrected
            for what it would explain by chance (adjusted R squared).
        accuracy: float64 (k,), share of the candidates at each place that are called as they are, right if
            the log-odds are above 0; nan = no group has one there.
        always_wrong: float64 (k,), the same if each candidate were called wrong.
        first: float64 (k,), share of the groups of two or more whose highest score is at that place; equal
            scores share it. They sum to 1.
        first_random: float64 (k,), the same of random ranking.
    """

    scores: Mapping[str, float]
    random: Mapping[str, float]
    gain: float
    above_random: bool
    spread: np.ndarray
    by_place: float
    accuracy: np.ndarray
    always_wrong: np.ndarray
    first: np.ndarray
    first_random: np.ndarray

    @property
    def collapsed(self) -> bool:
        """True = the ranking is hardly better than a random one, if at all."""
        return self.gain < LEAST_GAIN

    @property
    def verdict(self) -> str:
        """One sentence: collapsed, not collapsed or undecided, the numbers that decide, and how it shows."""
        ranking = f"MAP {self.scores['average_precision']:.3f}, random ranking"
        ranking += f" {self.random['average_precision']:.3f}"
        place = f"{self.by_place:.0%} of the variance within groups follows the place in the sequence"
        if not self.collapsed and not self.above_random:
            return f"Undecided: {ranking}; these are too few questions to tell them apart."
        if not self.collapsed:
            warning = f"; but {place}" if self.by_place > MOST_BY_PLACE else ""
            return f"Not collapsed: {ranking}{warning}."
        if np.median(self.spread) < LEAST_SPREAD:
            how = f"the scores of a group are nearly the same (spread {np.median(self.spread):.3f} log-odds)"
        elif self.by_place > MOST_BY_PLACE:
            how = place
        else:
            how = "scores differ within a group, but hardly with what is right"
        return f"Collapsed: {ranking}; {how}."


def diagnose(scores: ArrayLike, labels: ArrayLike, *, question: ArrayLike | None = None) -> JointDiagnosis:
    """Describe the scores that a joint model gave to groups of candidates.

    Args:
        scores: float (groups, k), log-odds of being right, at each place of the sequence; not looked at where
            no candidate is.
        labels: int (groups, k), 1 = right, 0 = wrong, -100 = no candidate.
        question: int (groups,), number of the question of each group; None = each group is a question.

    Raises:
        ValueError: shapes differ, an unknown label, a score that is not finite, no group of two candidates
            (a pairwise model has no groups), or no question with right and wrong candidates.
    """
    scores, labels = np.asarray(scores, dtype=np.float64), np.asarray(labels)
    question = np.arange(len(scores)) if question is None else np.asarray(question)
    _check(scores, labels, question)
    there = labels != ABSENT
    right = labels == 1
    several = there.sum(axis=1) > 1  # groups
    if not several.any():
        raise ValueError("no group has two candidates; a model that reads them one at a time has no places")
    centred = _centred(scores[several], there[several])
    first, first_random = _first(scores[several], there[several])
    return JointDiagnosis(
        **_ranking(scores, right, there, question),
        spread=np.sqrt((centred**2).sum(axis=1) / there[several].sum(axis=1)),
        by_place=_by_place(centred, there[several]),
        accuracy=_mean_by_place((scores > 0) == right, there),
        always_wrong=_mean_by_place(~right, there),
        first=first,
        first_random=first_random,
    )


def _check(scores: np.ndarray, labels: np.ndarray, question: np.ndarray) -> None:
    if scores.ndim != 2 or scores.shape != labels.shape or question.shape != scores.shape[:1]:
        raise ValueError(
            f"scores {scores.shape} and labels {labels.shape} must have the same shape (groups, k), and "
            f"question {question.shape} must be (groups,)"
        )
    if unknown := set(np.unique(labels).tolist()) - {0, 1, ABSENT}:
        raise ValueError(f"a label is {min(unknown)}; it must be 1, 0, or {ABSENT} where no candidate is")
    if len(wrong := np.argwhere((labels != ABSENT) & ~np.isfinite(scores))):
        row, place = wrong[0]
        raise ValueError(f"scores[{row}, {place}] is {scores[row, place]}; a score must be finite")


def _ranking(
    scores: np.ndarray, right: np.ndarray, there: np.ndarray, question: np.ndarray
) -> dict[str, object]:
    """The fields of JointDiagnosis about the ranking of whole questions."""
    order = np.argsort(question, kind="stable")
    rows_of = np.split(order, np.flatnonzero(np.diff(question[order])) + 1)
    groups = [(scores[rows][there[rows]], right[rows][there[rows]]) for rows in rows_of]
    found, perfect = values_per_group(groups), values_per_group([(kind, kind) for _, kind in groups])
    # Of equal scores alone, every measure is its expectation over random orders.
    random = values_per_group([(np.zeros(len(kind)), kind) for _, kind in groups])
    own, chance, best = (each["average_precision"] for each in (found, random, perfect))
    if not (best > chance).any():
        raise ValueError("no question has right and wrong candidates; there is nothing to rank")
    ones = np.ones_like(own)
    sides = (np.stack([values, ones], axis=1) for values in (own, chance))
    above = compare(*sides, mean_of_sums, n_resamples=_RESAMPLES)
    return {
        "scores": {name: float(values.mean()) for name, values in found.items()},
        "random": {name: float(values.mean()) for name, values in random.items()},
        "gain": float((own - chance).sum() / (best - chance).sum()),
        "above_random": above.low > 0,
    }


def _centred(scores: np.ndarray, there: np.ndarray) -> np.ndarray:
    """(groups, k), scores less the mean of their group, 0 where no candidate is."""
    means = np.where(there, scores, 0).sum(axis=1) / there.sum(axis=1)
    return np.where(there, scores - means[:, None], 0.0)


def _by_place(centred: np.ndarray, there: np.ndarray) -> float:
    counts = there.sum(axis=0)  # (k,)
    explained = (centred.sum(axis=0) ** 2 / np.maximum(counts, 1)).sum()
    freedom = there.sum() - len(there)
    rest = freedom - ((counts > 0).sum() - 1)
    if rest < 1 or np.allclose(centred, 0):
        return 0.0
    return max(0.0, float(1 - (1 - explained / (centred**2).sum()) * freedom / rest))


def _first(scores: np.ndarray, there: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`first` and `first_random`, (k,) each."""
    highest = np.where(there, scores, -np.inf)
    highest = highest == highest.max(axis=1, keepdims=True)
    return tuple((kind / kind.sum(axis=1, keepdims=True)).mean(axis=0) for kind in (highest, there))


def _mean_by_place(flags: np.ndarray, there: np.ndarray) -> np.ndarray:
    """(k,), share of True among those that are there; nan = none is."""
    counts = there.sum(axis=0)
    return np.where(counts, (flags & there).sum(axis=0) / np.maximum(counts, 1), np.nan)
