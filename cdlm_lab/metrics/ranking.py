"""Ranked candidates with several relevant ones: MRR, P@N in its two published readings, average precision.

For finding the sentences of a document that another document is about (CDA: Zhou et al. 2020, sections 4 and
5), and for choosing answers. Every number is the expectation over random orders of candidates with equal
scores, computed exactly (McSherry and Najork 2008); labels never decide an order. Equal means the same float.

Take m candidates with one score, r of them relevant and `above` candidates with higher scores. In random
order, the number of relevant ones in the first k of them is hypergeometric. So
- none is relevant with a chance of S(k) = C(m - r, k) / C(m, k);
- k * r / m of them are relevant on average;
- the first relevant one comes at place k with a chance of S(k - 1) * r / (m - k + 1), at rank above + k.

Only related documents have sentences to find, so lists are of these alone. The numbers of CDA's Tables 4 and
5 are others: its released code scores unrelated pairs too, see `released_points`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankedList:
    """Candidates of one query. Both arrays are copied, and read-only.

    Attributes:
        scores: float64 (candidates,), finite; the highest is ranked first.
        relevant: bool (candidates,), True = to be found. None may be, but most measures refuse such a list.

    Raises:
        ValueError: no candidates, shapes differ, a score is not finite, or `relevant` is not bool.
    """

    scores: np.ndarray
    relevant: np.ndarray

    def __post_init__(self) -> None:
        scores, relevant = np.array(self.scores, dtype=np.float64), np.array(self.relevant)
        if scores.ndim != 1 or not scores.size:
            raise ValueError(f"scores has shape {scores.shape}; it must be (candidates,), not empty")
        if not np.isfinite(scores).all():
            index = int(np.argmin(np.isfinite(scores)))
            raise ValueError(f"scores[{index}] is {scores[index]}; a score must be finite")
        if relevant.dtype != bool or relevant.shape != scores.shape:
            what = f"bool of shape {scores.shape}, True = relevant; got {relevant.dtype} {relevant.shape}"
            raise ValueError(f"relevant must be {what}")
        for name, array in (("scores", scores), ("relevant", relevant)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)


def reciprocal_rank(ranked: RankedList) -> float:
    """1 / rank of the first relevant candidate, the best rank being 1.

    Raises:
        ValueError: no candidate is relevant.
    """
    return _reciprocal_rank(_checked_ties(ranked))


def precision_at(ranked: RankedList, n: int, *, reading: str) -> float:
    """P@n, "the number of relevant sentences in the top N" (CDA section 4), which has several readings.

    Args:
        n: how many of the first candidates count.
        reading: what is made of the relevant ones among them:
            `hit`: 1 if there are any. So the released CDA code reads P@N for S2ORC, with one citing sentence.
            `precision`: divided by n, as in textbooks, even if the list is shorter; so it reads P@N for PAN,
            with several plagiarised ones. The best value is below 1 where fewer than n are relevant; a list
            without relevant candidates has 0.

    Raises:
        ValueError: unknown reading, `n` is not whole or below 1, or, except for `precision`, no candidate is
            relevant.
    """
    at = _reading(reading)
    _check_n(n)
    return at(_ties(ranked) if reading == "precision" else _checked_ties(ranked), n)


def average_precision(ranked: RankedList) -> float:
    """Precision (relevant / n in the first n) at the rank n of each relevant candidate, averaged over these.

    Raises:
        ValueError: no candidate is relevant.
    """
    return _average_precision(_checked_ties(ranked))


def values_per_list(
    lists: Iterable[RankedList],
    *,
    at: Sequence[int] = (1, 5, 10),
    reading: str = "hit",
) -> dict[str, np.ndarray]:
    """Every measure of every list, for intervals and paired tests.

    With a column of ones next to them they are counts as `significance.paired_bootstrap` takes them.

    Args:
        lists: of related documents only.
        at: the N of P@N.
        reading: of P@N, as of `precision_at`.

    Returns:
        `reciprocal_rank`, `average_precision` and `at_1`, `at_5`, ... to float64 (lists,), each in [0, 1].

    Raises:
        ValueError: no lists, a list without relevant candidates, an N that is not whole or below 1, or an
            unknown reading.
    """
    measure_at = _reading(reading)
    for n in at:
        _check_n(n)
    ties = [_checked_ties(ranked, name=f"lists[{index}]") for index, ranked in enumerate(lists)]
    if not ties:
        raise ValueError("there are no lists to score")
    values = {
        "reciprocal_rank": [_reciprocal_rank(t) for t in ties],
        "average_precision": [_average_precision(t) for t in ties],
        **{f"at_{n}": [measure_at(t, n) for t in ties] for n in at},
    }
    return {name: np.array(each) for name, each in values.items()}


def released_points(
    values: Mapping[str, np.ndarray], *, reading: str, found: ArrayLike, refused: ArrayLike
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """MRR and P@N as the released code makes CDA's Tables 4 and 5 of them, with the unrelated pairs.

    A measure is the sum of points over the sum of what they are out of. An unrelated pair that is called so
    has 1 of 1. A wrong decision has 0 of 1 in P@N; in MRR it counts like the last of 21 sentences (`hit`, as
    of S2ORC) or of 60 (`precision`, as of PAN). P@N of PAN pools sentences: a related pair that is called so
    has its relevant ones of n, and so weighs as much as n other pairs. Half of the pairs are unrelated in
    the paper, so random decisions with random orders have .25 + .25 x in P@N of S2ORC, where x is P@N of the
    order alone.

    Args:
        values: of the related pairs, as of `values_per_list` with this reading.
        reading: of P@N, `hit` or `precision`.
        found: (related pairs,), how probably each is called related; bool of what a system said.
        refused: (unrelated pairs,), how probably each is called unrelated.

    Returns:
        Measure, but average precision, to points and what they are out of: float64 (pairs,) each, the
        related pairs first.
    """
    _reading(reading)
    found, refused = np.asarray(found, dtype=np.float64), np.asarray(refused, dtype=np.float64)
    wrong = 1 / _LAST_RANK[reading]
    first = found * values["reciprocal_rank"] + (1 - found) * wrong
    every = np.ones(len(found) + len(refused))
    points = {"reciprocal_rank": (np.concatenate([first, refused + (1 - refused) * wrong]), every)}
    for name, value in values.items():
        if name.startswith("at_"):
            weight = int(name.removeprefix("at_")) if reading == "precision" else 1
            out_of = np.concatenate([found * weight + (1 - found), np.ones(len(refused))])
            points[name] = np.concatenate([found * weight * value, refused]), out_of
    return points


def precision_at_1(groups: Iterable[tuple[ArrayLike, ArrayLike]]) -> float:
    """P@1, the share of questions whose first candidate is right; see `values_per_group`."""
    return float(values_per_group(groups)["precision_at_1"].mean())


def mean_average_precision(groups: Iterable[tuple[ArrayLike, ArrayLike]]) -> float:
    """MAP, the mean over questions of `average_precision`; see `values_per_group`."""
    return float(values_per_group(groups)["average_precision"].mean())


def mean_reciprocal_rank(groups: Iterable[tuple[ArrayLike, ArrayLike]]) -> float:
    """MRR, the mean over questions of `reciprocal_rank`; see `values_per_group`."""
    return float(values_per_group(groups)["reciprocal_rank"].mean())


def values_per_group(groups: Iterable[tuple[ArrayLike, ArrayLike]]) -> dict[str, np.ndarray]:
    """P@1, average precision and reciprocal rank of every question, for intervals and paired tests. Without
    ties they are those of trec_eval (P_1, map, recip_rank); of equal scores that takes the last name first.

    Args:
        groups: of each question scores, float (candidates,), and labels (candidates,), 1 or True = right.

    Returns:
        `precision_at_1`, `average_precision` and `reciprocal_rank` to float64 (questions,), each in [0, 1]; 0
        of a question without a right candidate, as in trec_eval ("clean" settings have none).

    Raises:
        ValueError: no groups; a label that is neither 0 nor 1; scores or labels as of `RankedList`.
    """
    ties = [_ties(_group(*group, name=f"groups[{index}]")) for index, group in enumerate(groups)]
    if not ties:
        raise ValueError("there are no groups to score")
    values = [
        (_precision(t, 1), _average_precision(t), _reciprocal_rank(t)) if t.relevant.any() else (0.0,) * 3
        for t in ties
    ]
    names = ("precision_at_1", "average_precision", "reciprocal_rank")
    return dict(zip(names, np.array(values).T, strict=True))


def _group(scores: ArrayLike, labels: ArrayLike, *, name: str) -> RankedList:
    if wrong := set(np.ravel(labels).tolist()) - {0, 1}:
        raise ValueError(f"{name} has the label {min(wrong)}; it must be 0 or 1, and padding left out")
    try:
        return RankedList(scores=scores, relevant=np.asarray(labels, dtype=bool))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ties:
    """Groups of candidates with equal scores, the highest first: int64 (groups,) each.

    Attributes:
        size, relevant: how many candidates of the group, and how many relevant ones.
        above, relevant_above: the same of all groups before it.
    """

    size: np.ndarray
    relevant: np.ndarray
    above: np.ndarray
    relevant_above: np.ndarray


def _ties(ranked: RankedList) -> _Ties:
    _, group = np.unique(-ranked.scores, return_inverse=True)  # (candidates,)
    size, relevant = np.bincount(group), np.bincount(group[ranked.relevant], minlength=group.max() + 1)
    return _Ties(
        size=size,
        relevant=relevant,
        above=size.cumsum() - size,
        relevant_above=relevant.cumsum() - relevant,
    )


def _checked_ties(ranked: RankedList, *, name: str = "the list") -> _Ties:
    if not ranked.relevant.any():
        raise ValueError(f"{name} has no relevant candidate; leave such lists out")
    return _ties(ranked)


def _first_relevant(ties: _Ties) -> tuple[int, np.ndarray, np.ndarray]:
    """Of the first group with relevant candidates: how many are above it, S(k), and the chance that the first
    relevant one comes at place k + 1; both float64 (irrelevant + 1,) for k from 0."""
    group = int(np.argmax(ties.relevant > 0))
    m, r = int(ties.size[group]), int(ties.relevant[group])
    k = np.arange(m - r + 1)
    none = np.concatenate([[1.0], np.cumprod((m - r - k[:-1]) / (m - k[:-1]))])
    return int(ties.above[group]), none, none * r / (m - k)


def _reciprocal_rank(ties: _Ties) -> float:
    above, _, first = _first_relevant(ties)
    return float((first / (above + 1 + np.arange(len(first)))).sum())


def _hit(ties: _Ties, n: int) -> float:
    above, none, _ = _first_relevant(ties)
    places = max(0, n - above)  # of the top n, left for the group
    return 1.0 - float(none[places]) if places < len(none) else 1.0


def _precision(ties: _Ties, n: int) -> float:
    return float((ties.relevant * np.clip(n - ties.above, 0, ties.size) / ties.size).sum()) / n


def _average_precision(ties: _Ties) -> float:
    """The candidate at each rank is relevant with a chance of r / m. If it is, so are on average (r - 1) /
    (m - 1) of those of its group before it."""
    group = np.repeat(np.arange(len(ties.size)), ties.size)  # (candidates,), by rank
    m, r = ties.size[group], ties.relevant[group]
    rank = np.arange(1, len(group) + 1)
    before = (rank - 1 - ties.above[group]) * (r - 1) / np.maximum(m - 1, 1)
    precision = (ties.relevant_above[group] + 1 + before) / rank
    return float((r / m * precision).sum() / ties.relevant.sum())


_READINGS: dict[str, Callable[[_Ties, int], float]] = {"hit": _hit, "precision": _precision}
READINGS = tuple(_READINGS)
# The rank of a wrong decision in the released code: one beyond S2ORC's longest documents, the last of PAN's.
_LAST_RANK = {"hit": 21, "precision": 60}


def _reading(name: str) -> Callable[[_Ties, int], float]:
    if name not in _READINGS:
        raise ValueError(f"unknown reading {name!r} of P@N; choose one of {', '.join(_READINGS)}")
    return _READINGS[name]


def _check_n(n: int) -> None:
    if not isinstance(n, Integral) or n < 1:
        raise ValueError(f"N is {n}; it must be whole and at least 1")
