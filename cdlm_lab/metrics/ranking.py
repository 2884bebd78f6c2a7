"""Rankings with several relevant candidates: MRR, P@N in its two published readings, average precision.

For the sentences of a document that another one is about (CDA: Zhou et al. 2020, sections 4 and 5) and for
candidate answers. Every number is the exact expectation over random orders of tied candidates (McSherry and
Najork 2008); labels never break a tie. Scores tie if they are the same float.

Take m candidates with one score, r of them relevant, and `above` candidates with higher scores. In random
order, the number of relevant ones in the first k of them is hypergeometric. So
- none is relevant with probability S(k) = C(m - r, k) / C(m, k);
- k * r / m of them are relevant on average;
- the first relevant one is at place k, rank above + k, with probability S(k - 1) * r / (m - k + 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from cdlm_lab.errors import check_choice

READINGS = ("hit", "precision")
# The rank of a wrong decision in CDA's code: one beyond S2ORC's longest documents, the last of PAN's.
_LAST_RANK = {"hit": 21, "precision": 60}


@dataclass(frozen=True, kw_only=True, eq=False)
class RankedList:
    """The candidates of one query. Both arrays are copied and read-only."""

    scores: np.ndarray  # float64 (candidates,), finite; the highest is ranked first
    relevant: np.ndarray  # bool (candidates,); most measures refuse a list without relevant ones

    def __post_init__(self) -> None:
        scores, relevant = np.array(self.scores, dtype=np.float64), np.array(self.relevant)
        if scores.ndim != 1 or not scores.size:
            raise ValueError(f"scores has shape {scores.shape}; it must be (candidates,), not empty")
        if not np.isfinite(scores).all():
            index = int(np.argmin(np.isfinite(scores)))
            raise ValueError(f"scores[{index}] is {scores[index]}; a score must be finite")
        if relevant.dtype != bool or relevant.shape != scores.shape:
            expected = f"bool of shape {scores.shape}, True = relevant"
            raise ValueError(f"relevant must be {expected}; got {relevant.dtype} {relevant.shape}")
        for name, array in (("scores", scores), ("relevant", relevant)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @cached_property
    def ties(self) -> Ties:
        """The groups of candidates with equal scores."""
        _, group = np.unique(-self.scores, return_inverse=True)  # (candidates,)
        size = np.bincount(group)
        relevant = np.bincount(group[self.relevant], minlength=len(size))
        return Ties(size=size, relevant=relevant, above=size.cumsum() - size)


@dataclass(frozen=True, kw_only=True, eq=False)
class Ties:
    """Groups of tied candidates, highest score first; int64 (groups,) each."""

    size: np.ndarray
    relevant: np.ndarray  # number of relevant candidates in the group
    above: np.ndarray  # number of candidates with higher scores

    @cached_property
    def first_relevant(self) -> tuple[int, np.ndarray, np.ndarray]:
        """For the first group with relevant candidates: how many candidates are above it, S(k), and the
        probability that the first relevant one is at place k + 1; both of these float64 (irrelevant + 1,) for
        k from 0."""
        group = int(np.argmax(self.relevant > 0))
        m, r = int(self.size[group]), int(self.relevant[group])
        k = np.arange(m - r + 1)
        none = np.concatenate([[1.0], np.cumprod((m - r - k[:-1]) / (m - k[:-1]))])
        return int(self.above[group]), none, none * r / (m - k)


def reciprocal_rank(ranked: RankedList) -> float:
    """1 / rank of the first relevant candidate, ranks counted from 1; ValueError if none is relevant."""
    _check_relevant(ranked)
    above, _, first = ranked.ties.first_relevant
    return float((first / (above + 1 + np.arange(len(first)))).sum())


def precision_at(ranked: RankedList, n: int, *, reading: str) -> float:
    """P@n, "the number of relevant sentences in the top N" (CDA section 4), which has two readings.

    - `hit`: 1 if any of the first n is relevant, as in CDA's code for S2ORC, with one citing sentence;
      ValueError if no candidate is relevant.
    - `precision`: the number of relevant ones divided by n, as in textbooks, even if the list is shorter;
      used for PAN, with several plagiarised sentences. 0 for a list without relevant candidates.
    """
    check_choice("reading", reading, READINGS)
    if not isinstance(n, Integral) or n < 1:
        raise ValueError(f"N is {n}; it must be whole and at least 1")
    if reading == "precision":
        ties = ranked.ties
        return float((ties.relevant * np.clip(n - ties.above, 0, ties.size) / ties.size).sum()) / n
    _check_relevant(ranked)
    above, none, _ = ranked.ties.first_relevant
    places = max(0, n - above)  # places in the top n that are left for the group
    return 1.0 - float(none[places]) if places < len(none) else 1.0


def average_precision(ranked: RankedList) -> float:
    """Precision (relevant / n in the first n) at the rank n of each relevant candidate, averaged over these;
    ValueError if none is relevant."""
    _check_relevant(ranked)
    ties = ranked.ties
    # The candidate at each rank is relevant with probability r / m; if it is, then on average
    # (r - 1) / (m - 1) of the group's candidates before it are relevant too.
    group = np.repeat(np.arange(len(ties.size)), ties.size)  # (candidates,), by rank
    m, r = ties.size[group], ties.relevant[group]
    rank = np.arange(1, len(group) + 1)
    before = (rank - 1 - ties.above[group]) * (r - 1) / np.maximum(m - 1, 1)
    precision = ((ties.relevant.cumsum() - ties.relevant)[group] + 1 + before) / rank
    return float((r / m * precision).sum() / ties.relevant.sum())


def values_per_list(
    lists: Iterable[RankedList], *, at: Sequence[int] = (1, 5, 10), reading: str = "hit"
) -> dict[str, np.ndarray]:
    """Every measure for every list, for intervals and paired tests, of related documents only:
    `reciprocal_rank`, `average_precision` and for each N in `at` P@N as `at_1`, `at_5`, ...; float64
    (lists,), each in [0, 1]."""
    lists = list(lists)
    for index, ranked in enumerate(lists):
        _check_relevant(ranked, name=f"lists[{index}]")
    if not lists:
        raise ValueError("there are no lists to score")
    values = {
        "reciprocal_rank": [reciprocal_rank(ranked) for ranked in lists],
        "average_precision": [average_precision(ranked) for ranked in lists],
        **{f"at_{n}": [precision_at(ranked, n, reading=reading) for ranked in lists] for n in at},
    }
    return {name: np.array(each) for name, each in values.items()}


def released_points(
    values: Mapping[str, np.ndarray], *, reading: str, detected: ArrayLike, rejected: ArrayLike
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """MRR and P@N as CDA's code computes them for its Tables 4 and 5, unrelated pairs included.

    A measure is a sum of points divided by the sum of the maximum points. An unrelated pair that is predicted
    unrelated has 1 of 1. A wrong decision has 0 of 1 in P@N; in MRR it counts like the last of 21 sentences
    (`hit`, S2ORC) or of 60 (`precision`, PAN). P@N of PAN pools sentences: a related pair that is predicted
    related has its relevant ones out of n, and so weighs as much as n other pairs. Half of the pairs are
    unrelated in the paper, so random decisions with random orders have .25 + .25 x in P@N of S2ORC, where x
    is P@N of the order alone.

    Args:
        values: of the related pairs, from `values_per_list` with this reading of P@N.
        detected: (related pairs,), probability that each is predicted related; bool for a system's decisions.
        rejected: (unrelated pairs,), probability that each is predicted unrelated.

    Returns:
        `reciprocal_rank` and `at_1`, ... -> points and maximum points: float64 (pairs,), related ones first.
    """
    check_choice("reading", reading, READINGS)
    detected, rejected = np.asarray(detected, dtype=np.float64), np.asarray(rejected, dtype=np.float64)
    wrong = 1 / _LAST_RANK[reading]
    first = detected * values["reciprocal_rank"] + (1 - detected) * wrong
    every = np.ones(len(detected) + len(rejected))
    points = {"reciprocal_rank": (np.concatenate([first, rejected + (1 - rejected) * wrong]), every)}
    for name, value in values.items():
        if name.startswith("at_"):
            weight = int(name.removeprefix("at_")) if reading == "precision" else 1
            out_of = np.concatenate([detected * weight + (1 - detected), np.ones(len(rejected))])
            points[name] = np.concatenate([detected * weight * value, rejected]), out_of
    return points


def values_per_group(groups: Iterable[tuple[ArrayLike, ArrayLike]]) -> dict[str, np.ndarray]:
    """`precision_at_1`, `average_precision` and `reciprocal_rank` of every question, float64 (questions,) in
    [0, 1], for intervals and paired tests; 0 for a question without a right candidate, as in trec_eval
    ("clean" settings have none). Without ties they equal trec_eval's P_1, map and recip_rank, which breaks
    ties by name, the last one first.

    `groups`: for each question scores, float (candidates,), and labels (candidates,), 1 or True = right.
    """
    rows = []
    for index, (scores, labels) in enumerate(groups):
        if wrong := set(np.ravel(labels).tolist()) - {0, 1}:
            message = f"has the label {min(wrong)}; it must be 0 or 1, and padding left out"
            raise ValueError(f"groups[{index}] {message}")
        try:
            ranked = RankedList(scores=scores, relevant=np.asarray(labels, dtype=bool))
        except ValueError as error:
            raise ValueError(f"groups[{index}]: {error}") from None
        at_1 = precision_at(ranked, 1, reading="precision")
        some = ranked.relevant.any()
        rows.append((at_1, average_precision(ranked), reciprocal_rank(ranked)) if some else (0.0,) * 3)
    if not rows:
        raise ValueError("there are no groups to score")
    names = ("precision_at_1", "average_precision", "reciprocal_rank")
    return dict(zip(names, np.array(rows).T, strict=True))


def mean_average_precision(groups: Iterable[tuple[ArrayLike, ArrayLike]]) -> float:
    """MAP, the mean of the average precision over questions; 0 for one without a right candidate."""
    return float(values_per_group(groups)["average_precision"].mean())


def _check_relevant(ranked: RankedList, *, name: str = "the list") -> None:
    if not ranked.relevant.any():
        raise ValueError(f"{name} has no relevant candidate; leave such lists out")
