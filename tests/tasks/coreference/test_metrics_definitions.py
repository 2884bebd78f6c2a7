"""Coreference scores: slow second definitions in exact fractions, what must not change a score, limits."""

from collections.abc import Callable
from dataclasses import astuple
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.tasks.coreference.metrics import Parts, score, score_parts

Clustering = list[list[str]]
Ratio = tuple[Fraction | int, int]


@st.composite
def clusterings(draw: st.DrawFn, prefix: str = "") -> tuple[Clustering, Clustering]:
    """Key and response over up to nine mentions, some missing on a side, at most five clusters each."""
    label = st.integers(-1, 4)  # -1: missing
    labels = draw(st.lists(st.tuples(label, label), max_size=9))
    sides = []
    for side in range(2):
        clusters = [[f"{prefix}{i}" for i, pair in enumerate(labels) if pair[side] == n] for n in range(5)]
        sides.append([cluster for cluster in clusters if cluster])
    return sides[0], sides[1]


def together(clusters: Clustering, a: str, b: str) -> bool:
    return any(a in cluster and b in cluster for cluster in clusters)


def slow_muc(key: Clustering, response: Clustering) -> Ratio:
    """Walk the links of the response inside each key cluster: each mention reached after the first counts."""
    kept = needed = 0
    for cluster in key:
        needed += len(cluster) - 1
        unvisited = list(cluster)
        while unvisited:
            walk = [unvisited.pop(0)]
            for mention in walk:
                reached = [other for other in unvisited if together(response, mention, other)]
                walk += reached
                unvisited = [other for other in unvisited if other not in reached]
            kept += len(walk) - 1
    return kept, needed


def slow_b_cubed(key: Clustering, response: Clustering) -> Ratio:
    """Mention by mention: of its key cluster, how many (itself too) does the response put with it?"""
    total, count = Fraction(0), 0
    for cluster in key:
        for mention in cluster:
            total += Fraction(sum(together(response, mention, other) for other in cluster), len(cluster))
            count += 1
    return total, count


def slow_ceaf_e(key: Clustering, response: Clustering) -> Ratio:
    """Every one-to-one alignment of the fewer clusters with the more."""

    def phi4(a: list[str], b: list[str]) -> Fraction:
        return Fraction(2 * sum(mention in b for mention in a), len(a) + len(b))

    fewer, more = sorted([key, response], key=len)
    alignments = permutations(more, len(fewer))
    best = max(sum(phi4(a, b) for a, b in zip(fewer, chosen, strict=True)) for chosen in alignments)
    return best, len(key)


def slow_lea(key: Clustering, response: Clustering) -> Ratio:
    """Pair by pair; a singleton is paired with itself, and found where the response has it alone too."""
    total, weight = Fraction(0), 0
    for cluster in key:
        if len(cluster) == 1:
            resolution = Fraction(cluster in response)
        else:
            pairs = list(combinations(cluster, 2))
            resolution = Fraction(sum(together(response, a, b) for a, b in pairs), len(pairs))
        total += len(cluster) * resolution
        weight += len(cluster)
    return total, weight


SLOW: dict[str, Callable[[Clustering, Clustering], Ratio]] = {
    "muc": slow_muc,
    "b_cubed": slow_b_cubed,
    "ceaf_e": slow_ceaf_e,
    "lea": slow_lea,
}


@pytest.mark.parametrize("measure", SLOW)
@given(sides=clusterings())
def test_parts_equal_the_slow_definition(measure, sides):
    key, response = sides
    expected = (*SLOW[measure](key, response), *SLOW[measure](response, key))
    assert astuple(score_parts(key, response)[measure]) == pytest.approx(
        [float(x) for x in expected], abs=1e-12
    )


@given(sides=clusterings())
def test_a_perfect_response_scores_1_and_no_other(sides):
    key, response = sides
    scores = score(key, key)
    links = any(len(cluster) > 1 for cluster in key)  # MUC sees nothing else
    assert astuple(scores["muc"]) == ((1, 1, 1) if links else (0, 0, 0))
    same = {frozenset(cluster) for cluster in key} == {frozenset(cluster) for cluster in response}
    for measure in ("b_cubed", "ceaf_e", "lea"):
        assert astuple(scores[measure]) == (int(bool(key)),) * 3
        assert (score(key, response)[measure].f1 > 1 - 1e-9) == (same and bool(key))


@given(first=clusterings("a"), second=clusterings("b"), singletons=st.booleans())
def test_parts_of_separate_topics_add_up(first, second, singletons):
    topics = [score_parts(*sides, singletons=singletons) for sides in (first, second)]
    corpus = score_parts(first[0] + second[0], first[1] + second[1], singletons=singletons)
    for measure in corpus:
        total = sum((one[measure] for one in topics), Parts())
        assert astuple(total) == pytest.approx(astuple(corpus[measure]), abs=1e-12)


@given(sides=clusterings())
def test_singletons_are_dropped_on_both_sides_and_a_spurious_one_costs_precision_of_all_but_muc(sides):
    kept = [[cluster for cluster in clusters if len(cluster) > 1] for clusters in sides]
    assert score(*sides, singletons=False) == score(*kept)
    key, response = sides
    before, after = score_parts(key, response), score_parts(key, [*response, ["spurious"]])
    assert after["muc"] == before["muc"]
    for measure in ("b_cubed", "ceaf_e", "lea"):
        assert astuple(after[measure])[:3] == pytest.approx(astuple(before[measure])[:3], abs=1e-12)
        assert after[measure].precision_denominator == before[measure].precision_denominator + 1


def test_empty_sides_score_zero():
    some, others = [["a", "b"], ["c"]], [["x"], ["y", "z"]]
    for key, response in (([], []), (some, []), ([], some), (some, others)):
        scores = score(key, response)
        assert list(scores) == [*SLOW, "conll"]
        assert {astuple(one) for one in scores.values()} == {(0, 0, 0)}
    assert astuple(score_parts([["a", "b"]], [])["b_cubed"]) == (0, 2, 0, 0)
    assert astuple(score_parts([], [["a", "b"]])["ceaf_e"]) == (0, 0, 0, 1)


def test_clusters_may_be_any_iterables_of_hashable_mentions():
    key = {frozenset([("doc1", 0, 2), ("doc2", 5, 6)]), frozenset([("doc2", 0, 1)])}
    response = {7: np.array([1, 2]), 8: np.array([3])}.values()
    assert score(key, (iter(cluster) for cluster in key))["conll"].f1 == 1
    assert score([[1, 2], [3]], response)["conll"].f1 == 1
