"""Has a joint model collapsed? (Di Liello et al. 2022, "MSPP", section 4.3.)

Fine-tuned without MSPP, RoBERTa as a joint model "faces convergence issues": P@1 19.7, MAP 39.4, MRR 40.3 on
the clean test questions of WikiQA (Table 1), where random ranking has 18.3, 38.4, 39.2. Neither loss nor
accuracy shows that, as one candidate in eight is right. These do: the ranking, compared with the expected
scores of a random one; the spread of scores within a group, near 0 if all candidates get the same; how much
they depend on the place in the sequence, which is random or fixed by a hash; and the accuracy at each place,
compared with calling each candidate wrong. The paper has no criterion. Here a model has collapsed if its MAP
exceeds that of random ranking by less than a tenth of the possible gain; otherwise it has not if a 95%
interval over questions is above random ranking.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cdlm_lab.metrics.paired import jackknife_interval
from cdlm_lab.metrics.ranking import values_per_group

ABSENT = -100
LEAST_GAIN = 0.1
LEAST_SPREAD = 0.05  # in log-odds: 0.50 against 0.51
MOST_BY_PLACE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointDiagnosis:
    """A description of the scores of a joint model, by group and by place."""

    # `precision_at_1`, `average_precision`, `reciprocal_rank`: means over questions, all candidates of each
    # ranked together.
    scores: Mapping[str, float]
    random: Mapping[str, float]  # the exact expectation of the same for random ranking
    gain: float  # of MAP, between random ranking (0) and a perfect one (1); below 0 if worse
    above_random: bool  # True = the 95% interval of MAP less that of random ranking is above 0
    spread: np.ndarray  # float64 (groups,), standard deviation of the log-odds in each group of two or more
    # Fraction of the variance within these groups that the place alone explains, 0 to 1 (adjusted R squared,
    # which is corrected for chance).
    by_place: float
    # Float64 (k,) each, by place in the sequence:
    accuracy: np.ndarray  # fraction classified correctly by log-odds above 0; nan = no candidates
    always_wrong: np.ndarray  # the same if each candidate were classified as wrong

    @property
    def row(self) -> dict[str, object]:
        """The values for a report, with only the median spread; None for places without any candidate."""
        places = {
            name: [None if np.isnan(value) else value for value in getattr(self, name).tolist()]
            for name in ("accuracy", "always_wrong")
        }
        return {
            "collapsed": self.collapsed,
            "verdict": self.verdict,
            "map": self.scores["average_precision"],
            "random_map": self.random["average_precision"],
            "gain": self.gain,
            "median_spread": float(np.median(self.spread)),
            "by_place": self.by_place,
            **places,
        }

    @property
    def collapsed(self) -> bool:
        """True = the ranking is hardly better than a random one, if at all."""
        return self.gain < LEAST_GAIN

    @property
    def verdict(self) -> str:
        """One sentence: collapsed, not collapsed or undecided, with the deciding numbers and the symptom."""
        own, random = (values["average_precision"] for values in (self.scores, self.random))
        ranking = f"MAP {own:.3f}, random ranking {random:.3f}"
        place = f"{self.by_place:.0%} of the variance within groups follows the place in the sequence"
        if not self.collapsed and not self.above_random:
            return f"Undecided: {ranking}; these are too few questions to tell them apart."
        if not self.collapsed:
            warning = f"; but {place}" if self.by_place > MOST_BY_PLACE else ""
            return f"Not collapsed: {ranking}{warning}."
        how = "scores differ within a group, but hardly with what is right"
        if np.median(self.spread) < LEAST_SPREAD:
            how = f"the scores of a group are nearly the same (spread {np.median(self.spread):.3f} log-odds)"
        elif self.by_place > MOST_BY_PLACE:
            how = place
        return f"Collapsed: {ranking}; {how}."


def diagnose(scores: ArrayLike, labels: ArrayLike, *, question: ArrayLike | None = None) -> JointDiagnosis:
    """Describe the scores that a joint model gave to groups of candidates.

    Args:
        scores: float (groups, k), log-odds of being right, by place in the sequence; ignored where there is
            no candidate.
        labels: int (groups, k), 1 = right, 0 = wrong, -100 = no candidate.
        question: int (groups,), number of each group's question; None = each group is a question.
    """
    scores, labels = np.asarray(scores, dtype=np.float64), np.asarray(labels)
    question = np.arange(len(scores)) if question is None else np.asarray(question)
    present, right = labels != ABSENT, labels == 1
    several = present.sum(axis=1) > 1  # groups
    if not several.any():
        raise ValueError("no group has two candidates; a model that reads them one at a time has no places")
    of_several, present_there = scores[several], present[several]
    sizes = present_there.sum(axis=1, keepdims=True)
    means = np.where(present_there, of_several, 0).sum(axis=1, keepdims=True) / sizes
    centred = np.where(present_there, of_several - means, 0.0)
    return JointDiagnosis(
        **_ranking(scores, right, present, question),
        spread=np.sqrt((centred**2).sum(axis=1) / sizes[:, 0]),
        by_place=_by_place(centred, present_there),
        accuracy=_mean_by_place((scores > 0) == right, present),
        always_wrong=_mean_by_place(~right, present),
    )


def _ranking(
    scores: np.ndarray, right: np.ndarray, present: np.ndarray, question: np.ndarray
) -> dict[str, object]:
    """The fields of JointDiagnosis about the ranking of whole questions."""
    order = np.argsort(question, kind="stable")
    rows_of = np.split(order, np.flatnonzero(np.diff(question[order])) + 1)
    groups = [(scores[rows][present[rows]], right[rows][present[rows]]) for rows in rows_of]
    values = values_per_group(groups)
    perfect = values_per_group([(labels, labels) for _, labels in groups])
    # If all scores are equal, every measure is its expectation over random orders.
    random = values_per_group([(np.zeros(len(labels)), labels) for _, labels in groups])
    own, chance, best = (each["average_precision"] for each in (values, random, perfect))
    if not (best > chance).any():
        raise ValueError("no question has right and wrong candidates; there is nothing to rank")
    above = np.stack([own - chance, np.ones_like(own)], axis=1)
    return {
        "scores": {name: float(of_all.mean()) for name, of_all in values.items()},
        "random": {name: float(of_all.mean()) for name, of_all in random.items()},
        "gain": float((own - chance).sum() / (best - chance).sum()),
        "above_random": jackknife_interval(above, lambda sums: sums[..., 0] / sums[..., 1])[0] > 0,
    }


def _by_place(centred: np.ndarray, present: np.ndarray) -> float:
    """The fraction of variance that places explain, in scores minus the mean of their group (groups, k)."""
    counts = present.sum(axis=0)  # (k,)
    explained = (centred.sum(axis=0) ** 2 / np.maximum(counts, 1)).sum()
    freedom = present.sum() - len(present)
    rest = freedom - ((counts > 0).sum() - 1)
    if rest < 1 or np.allclose(centred, 0):
        return 0.0
    return max(0.0, float(1 - (1 - explained / (centred**2).sum()) * freedom / rest))


def _mean_by_place(flags: np.ndarray, present: np.ndarray) -> np.ndarray:
    """(k,), fraction of True among the candidates at each place; nan = no candidate in any group."""
    counts = present.sum(axis=0)
    return np.where(counts, (flags & present).sum(axis=0) / np.maximum(counts, 1), np.nan)
