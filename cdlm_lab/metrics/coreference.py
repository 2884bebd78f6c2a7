"""Coreference scores: MUC, B-cubed, CEAFe, LEA, and the CoNLL mean of the first three.

`key` is gold, `response` is the system's answer. Both are iterables of clusters, and a cluster is an iterable
of hashable mentions that name their document, such as (document, start, end). The numbers are those of the
CoNLL reference scorer (Pradhan et al. 2014) and, with LEA, of coval (Moosavi and Strube 2016):

- A mention is found if the other side has an equal one. Nothing is repaired: spurious mentions of the
  response and missing mentions of the key stay where they are, in the sizes of their clusters.
- Singletons are kept. `singletons=False` drops the clusters of one mention from each side before anything is
  counted; such scores are no match for the others, so label them "without singletons".
- 0 / 0 is 0. An empty side scores 0, and so does MUC where there are only singletons, even if all are right.
- Key and response are those of a whole corpus. Its score is a ratio of sums, never a mean over topics.

Each measure is four sums, `Parts`. Parts of topics add up to those of the corpus if no cluster, in key or
response, has mentions of two topics: then links, mentions and the alignment of CEAFe all stay within a topic.
A response that mixes topics, as predicted topics do, breaks this for all four measures, and `parts_by_topic`
refuses it. Score everything at once, or take topics that share clusters as one unit: `joined_topics`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import ArrayLike

from cdlm_lab.metrics.coreference_alignment import (
    Clusters,
    Overlaps,
    checked_clusters,
    joined_topics,
    largest_total,
    overlaps,
)

__all__ = [
    "CONLL", "Parts", "Score", "b_cubed", "ceaf_e", "count_table", "joined_topics", "lea", "mean_f1", "muc",
    "parts_by_topic", "score", "score_parts", "scores_of_parts", "total_parts",
]  # fmt: skip
CONLL = ("muc", "b_cubed", "ceaf_e")


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Recall, precision and F1, each in [0, 1]."""

    recall: float
    precision: float
    f1: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The sums that a measure divides; `Parts()` is of nothing."""

    recall_numerator: float = 0.0
    recall_denominator: float = 0.0
    precision_numerator: float = 0.0
    precision_denominator: float = 0.0

    def __add__(self, other: Parts) -> Parts:
        """Parts of two topics together, if they share no cluster."""
        if not isinstance(other, Parts):
            return NotImplemented
        return Parts(
            recall_numerator=self.recall_numerator + other.recall_numerator,
            recall_denominator=self.recall_denominator + other.recall_denominator,
            precision_numerator=self.precision_numerator + other.precision_numerator,
            precision_denominator=self.precision_denominator + other.precision_denominator,
        )

    @property
    def score(self) -> Score:
        """The two ratios and their harmonic mean; 0 / 0 is 0."""
        recall, precision, f1 = _recall_precision_f1(np.array(astuple(self)))
        return Score(recall=float(recall), precision=float(precision), f1=float(f1))


def score(key: Clusters, response: Clusters, *, singletons: bool = True) -> dict[str, Score]:
    """Every measure of a whole corpus: `muc`, `b_cubed`, `ceaf_e`, `lea` and `conll`.

    `conll` is the mean of MUC, B-cubed and CEAFe. Its `f1`, the mean of three F1, is the CoNLL F1 of the
    literature. Its `recall` and `precision` are means of three as well, so `f1` is not their harmonic mean.

    Args:
        key, response: clusters of mentions, gold and the system's.
        singletons: False drops the clusters of one mention from both sides first; label such scores.

    Raises:
        TypeError: clusters or a cluster are a string, a mapping or no iterable, or a mention is not hashable.
        ValueError: a cluster is empty, or a mention is twice on one side (the reference scorer drops all but
            the first).
    """
    return scores_of_parts(score_parts(key, response, singletons=singletons))


def score_parts(key: Clusters, response: Clusters, *, singletons: bool = True) -> dict[str, Parts]:
    """The sums behind `muc`, `b_cubed`, `ceaf_e` and `lea`. Arguments and errors as `score`."""
    counted = overlaps(key, response, singletons=singletons)
    return {measure: parts(counted) for measure, parts in _MEASURES.items()}


def parts_by_topic(
    key: Clusters,
    response: Clusters,
    *,
    topic: Callable[[Hashable], Hashable],
    singletons: bool = True,
) -> dict[Hashable, dict[str, Parts]]:
    """`score_parts` of each topic, in the order of the key, then the topics that only the response has.

    So two responses to the same mentions, those of the key, give the same topics in the same order, as paired
    tests need them.

    Args:
        topic: gives the topic, or another unit of a test of significance, of a mention.

    Raises:
        TypeError, ValueError: as `score`; ValueError too where a cluster has mentions of two topics.
    """
    sides: dict[str, dict[Hashable, list]] = {"key": {}, "response": {}}
    for side, clusters in (("key", key), ("response", response)):
        for number, cluster in enumerate(checked_clusters(clusters, side=side)):
            example_of = {topic(mention): mention for mention in cluster}
            if len(example_of) > 1:
                (a, in_a), (b, in_b) = list(example_of.items())[:2]
                raise ValueError(
                    f"{side}[{number}] has {in_a!r} of topic {a!r} and {in_b!r} of topic {b!r}; "
                    "take topics that share a cluster as one (joined_topics), or score all at once"
                )
            (unit,) = example_of
            sides[side].setdefault(unit, []).append(cluster)
    return {
        unit: score_parts(sides["key"].get(unit, []), sides["response"].get(unit, []), singletons=singletons)
        for unit in sides["key"] | sides["response"]
    }


def total_parts(parts_of_topics: Iterable[Mapping[str, Parts]]) -> dict[str, Parts]:
    """Parts of several topics together, for each measure; the top of this module says when that is exact."""
    topics = list(parts_of_topics)
    return {measure: sum((parts[measure] for parts in topics), Parts()) for measure in _MEASURES}


def scores_of_parts(parts: Mapping[str, Parts]) -> dict[str, Score]:
    """The score of each measure, and `conll` as in `score`; KeyError if one of `CONLL` is not there."""
    scores = {measure: sums.score for measure, sums in parts.items()}
    three = [scores[measure] for measure in CONLL]
    scores["conll"] = Score(
        recall=math.fsum(one.recall for one in three) / 3,
        precision=math.fsum(one.precision for one in three) / 3,
        f1=math.fsum(one.f1 for one in three) / 3,
    )
    return scores


def count_table(
    parts_of_topics: Iterable[Mapping[str, Parts]], *, measures: Sequence[str] = CONLL
) -> np.ndarray:
    """Rows of counts for the paired tests of `significance`, whose statistic is then `mean_f1`.

    Returns:
        (topics, 4 * measures), for each measure the four numbers of `Parts` in their order.
    """
    rows = [
        [number for measure in measures for number in astuple(parts[measure])] for parts in parts_of_topics
    ]
    return np.array(rows, dtype=np.float64).reshape(len(rows), 4 * len(measures))


def mean_f1(counts: ArrayLike) -> np.ndarray:
    """Mean over measures of the F1 of summed rows of `count_table`; by default the CoNLL F1.

    Args:
        counts: (..., 4 * measures).

    Returns:
        (...), in [0, 1]; 0 / 0 is 0.

    Raises:
        ValueError: the last axis does not hold four numbers for each measure.
    """
    counts = np.asarray(counts, dtype=np.float64)
    if counts.ndim == 0 or not counts.shape[-1] or counts.shape[-1] % 4:
        raise ValueError(f"counts has shape {counts.shape}; its last axis must hold four numbers a measure")
    *others, columns = counts.shape
    _, _, f1 = _recall_precision_f1(counts.reshape(*others, columns // 4, 4))  # (..., measures)
    return f1.mean(axis=-1)


def muc(key: Clusters, response: Clusters) -> Score:
    """Links kept, of the n - 1 that it takes to join n mentions (Vilain et al. 1995). Errors as `score`."""
    return _muc(overlaps(key, response)).score


def b_cubed(key: Clusters, response: Clusters) -> Score:
    """Share of its cluster that each mention is left with, averaged (Bagga and Baldwin 1998).

    A mention without a twin is left with nothing. Errors as `score`.
    """
    return _b_cubed(overlaps(key, response)).score


def ceaf_e(key: Clusters, response: Clusters) -> Score:
    """Similarity of clusters aligned one to one in the best way (Luo 2005).

    Similarity is phi4: twice the mentions shared, over the sizes of both clusters. Errors as `score`.
    """
    return _ceaf_e(overlaps(key, response)).score


def lea(key: Clusters, response: Clusters) -> Score:
    """Share of its links that each cluster keeps, weighted by size (Moosavi and Strube 2016).

    Every pair of its mentions is a link. A singleton has one link, to itself, which it keeps if the mention
    is a singleton on the other side too. Errors as `score`.
    """
    return _lea(overlaps(key, response)).score


def _muc(counted: Overlaps) -> Parts:
    def recall(o: Overlaps) -> tuple[float, float]:
        missing = o.key_sizes - o.sum_by_key(o.common)  # each a piece of its own
        pieces = o.sum_by_key(np.ones(len(o.common))) + missing
        return math.fsum(o.key_sizes - pieces), math.fsum(o.key_sizes - 1)

    return _both_ways(recall, counted)


def _b_cubed(counted: Overlaps) -> Parts:
    def recall(o: Overlaps) -> tuple[float, float]:
        share = o.common / o.key_sizes[o.key]  # the same for all `common` mentions
        return math.fsum(o.common * share), math.fsum(o.key_sizes)

    return _both_ways(recall, counted)


def _ceaf_e(o: Overlaps) -> Parts:
    phi4 = 2 * o.common / (o.key_sizes[o.key] + o.response_sizes[o.response])
    similarity = largest_total(o.key, o.response, phi4)
    return Parts(  # the denominators: each cluster aligned with itself, at a similarity of 1
        recall_numerator=similarity,
        recall_denominator=float(len(o.key_sizes)),
        precision_numerator=similarity,
        precision_denominator=float(len(o.response_sizes)),
    )


def _lea(counted: Overlaps) -> Parts:
    def recall(o: Overlaps) -> tuple[float, float]:
        links = np.where(o.key_sizes == 1, 1, o.key_sizes * (o.key_sizes - 1) / 2)
        both_single = (o.key_sizes[o.key] == 1) & (o.response_sizes[o.response] == 1)
        kept = o.sum_by_key(np.where(both_single, 1, o.common * (o.common - 1) / 2))
        return math.fsum(o.key_sizes * (kept / links)), math.fsum(o.key_sizes)

    return _both_ways(recall, counted)


_MEASURES: dict[str, Callable[[Overlaps], Parts]] = {
    "muc": _muc,
    "b_cubed": _b_cubed,
    "ceaf_e": _ceaf_e,
    "lea": _lea,
}


def _both_ways(recall: Callable[[Overlaps], tuple[float, float]], counted: Overlaps) -> Parts:
    """Parts of a measure whose precision is its recall with key and response exchanged."""
    recall_numerator, recall_denominator = recall(counted)
    precision_numerator, precision_denominator = recall(counted.exchanged())
    return Parts(
        recall_numerator=recall_numerator,
        recall_denominator=recall_denominator,
        precision_numerator=precision_numerator,
        precision_denominator=precision_denominator,
    )


def _recall_precision_f1(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(..., 4), the numbers of `Parts` in their order, to three of (...)."""

    def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
        return np.divide(numerator, denominator, out=np.zeros(denominator.shape), where=denominator != 0)

    recall, precision = ratio(counts[..., 0], counts[..., 1]), ratio(counts[..., 2], counts[..., 3])
    return recall, precision, ratio(2 * recall * precision, recall + precision)
