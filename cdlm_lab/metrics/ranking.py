"""Ranked candidates with several relevant ones: MRR, P@N in its published readings, average precision.

For finding the sentences of a document that another document is about (CDA: Zhou et al. 2020, sections 4 and
5), and for choosing answers. Every number is the expectation over random orders of candidates with equal
scores, computed exactly (McSherry and Najork 2008); labels never decide an order. Equal means the same float.

Take m candidates with one score, r of them relevant and `above` candidates with higher scores. In random
order, the number of relevant ones in the first k of them is hypergeometric. So
- none is relevant with a chance of S(k) = C(m - r, k) / C(m, k);
- k * r / m of them are relevant on average;
- the first relevant one comes at place k with a chance of S(k - 1) * r / (m - k + 1), at rank above + k.

Only related documents have sentences to find, so lists are of these alone. `found` scores them jointly with
the decision on the documents: "If a model fails to predict the document alignment, the sentence-level
alignment is counted as incorrect" (section 5.3), so it is 0. The released code is no match for this: its MRR
takes unrelated documents too, as 1 if called so, and counts a wrong decision as 1/21 (PAN: 1/60).
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
        _check_bool(relevant, scores.shape, name="relevant", true="relevant")
        for name, array in (("scores", scores), ("relevant", relevant)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingScores:
    """Means over lists, each in [0, 1].

    Attributes:
        mrr: mean reciprocal rank of the first relevant candidate.
        mean_average_precision: of `average_precision`.
        at: N to the mean P@N.
        reading: of P@N, as of `precision_at`.
        lists: how many, those that were not found too.
    """

    mrr: float
    mean_average_precision: float
    at: Mapping[int, float]
    reading: str
    lists: int


def reciprocal_rank(ranked: RankedList) -> float:
    """1 / rank of the first relevant candidate, the best rank being 1.

    Raises:
        ValueError: no candidate is relevant.
    """
    return _reciprocal_rank(_checked_ties(ranked))


def hits_at(ranked: RankedList, n: int) -> float:
    """1 if a relevant candidate is among the first n, else 0; between them if ties decide: hit@n.

    Raises:
        ValueError: no candidate is relevant, or `n` is not whole or below 1.
    """
    return precision_at(ranked, n, reading="hit")


def precision_at(ranked: RankedList, n: int, *, reading: str) -> float:
    """P@n, "the number of relevant sentences in the top N" (CDA section 4), which has several readings.

    Args:
        n: how many of the first candidates count.
        reading: what is made of the relevant ones among them:
            `hit`: 1 if there are any. So the released CDA code reads P@N for S2ORC, with one citing sentence.
            `share_of_relevant`: divided by min(n, relevant ones of the list), the most that there can be; so
            it reads P@N for PAN. A perfect order has 1, even if n exceeds the number of relevant candidates.
            `precision`: divided by n, as in textbooks, even if the list is shorter. The best value is below
            1 where fewer than n are relevant; a list without relevant candidates has 0.

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


def ranking_scores(
    lists: Iterable[RankedList],
    *,
    at: Sequence[int] = (1, 5, 10),
    reading: str = "hit",
    found: ArrayLike | None = None,
) -> RankingScores:
    """Means of `values_per_list`; arguments and errors as there."""
    values = values_per_list(lists, at=at, reading=reading, found=found)
    return RankingScores(
        mrr=float(values["reciprocal_rank"].mean()),
        mean_average_precision=float(values["average_precision"].mean()),
        at={int(n): float(values[f"at_{n}"].mean()) for n in at},
        reading=reading,
        lists=len(values["reciprocal_rank"]),
    )


def values_per_list(
    lists: Iterable[RankedList],
    *,
    at: Sequence[int] = (1, 5, 10),
    reading: str = "hit",
    found: ArrayLike | None = None,
) -> dict[str, np.ndarray]:
    """Every measure of every list, for intervals and paired tests.

    With a column of ones next to them they are counts as `significance.paired_bootstrap` takes them.

    Args:
        lists: of related documents only.
        at: the N of P@N.
        reading: of P@N, as of `precision_at`.
        found: bool (lists,), True = the two documents were predicted as related. A list that was not found
            has 0 in every measure. None = score the order alone, the oracle of CDA section 5.3.

    Returns:
        `reciprocal_rank`, `average_precision` and `at_1`, `at_5`, ... to float64 (lists,), each in [0, 1].

    Raises:
        ValueError: no lists, a list without relevant candidates, an N that is not whole or below 1, an
            unknown reading, or a `found` that is not bool (lists,).
    """
    measure_at = _reading(reading)
    for n in at:
        _check_n(n)
    ties = [_checked_ties(ranked, name=f"lists[{index}]") for index, ranked in enumerate(lists)]
    if not ties:
        raise ValueError("there are no lists to score")
    kept = np.ones(len(ties), dtype=bool) if found is None else np.asarray(found)
    _check_bool(kept, (len(ties),), name="found", true="predicted as related")
    values = {
        "reciprocal_rank": [_reciprocal_rank(t) for t in ties],
        "average_precision": [_average_precision(t) for t in ties],
        **{f"at_{n}": [measure_at(t, n) for t in ties] for n in at},
    }
    return {name: np.where(kept, each, 0.0) for name, each in values.items()}


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


def _relevant_in_top(ties: _Ties, n: int) -> float:
    return float((ties.relevant * np.clip(n - ties.above, 0, ties.size) / ties.size).sum())


def _share_of_relevant(ties: _Ties, n: int) -> float:
    return _relevant_in_top(ties, n) / min(n, int(ties.relevant.sum()))


def _precision(ties: _Ties, n: int) -> float:
    return _relevant_in_top(ties, n) / n


def _average_precision(ties: _Ties) -> float:
    """The candidate at each rank is relevant with a chance of r / m. If it is, so are on average (r - 1) /
    (m - 1) of those of its group before it."""
    group = np.repeat(np.arange(len(ties.size)), ties.size)  # (candidates,), by rank
    m, r = ties.size[group], ties.relevant[group]
    rank = np.arange(1, len(group) + 1)
    before = (rank - 1 - ties.above[group]) * (r - 1) / np.maximum(m - 1, 1)
    precision = (ties.relevant_above[group] + 1 + before) / rank
    return float((r / m * precision).sum() / ties.relevant.sum())


_READINGS: dict[str, Callable[[_Ties, int], float]] = {
    "hit": _hit,
    "share_of_relevant": _share_of_relevant,
    "precision": _precision,
}


def _reading(name: str) -> Callable[[_Ties, int], float]:
    if name not in _READINGS:
        raise ValueError(f"unknown reading {name!r} of P@N; choose one of {', '.join(_READINGS)}")
    return _READINGS[name]


def _check_n(n: int) -> None:
    if not isinstance(n, Integral) or n < 1:
        raise ValueError(f"N is {n}; it must be whole and at least 1")


def _check_bool(array: np.ndarray, shape: tuple[int, ...], *, name: str, true: str) -> None:
    if array.dtype != bool or array.shape != shape:
        raise ValueError(
            f"{name} must be bool of shape {shape}, True = {true}; got {array.dtype} {array.shape}"
        )
