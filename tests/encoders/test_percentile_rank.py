"""Percentile ranks, their chance level and their means: fractions by hand, direct implementations with loops,
symmetries, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from cdlm_lab.encoders.percentile_rank import (
    candidate_mask,
    chance_rank,
    percentile_rank,
    ranks_within,
    source_scores,
    target_rank,
    word_scores,
)

WHOLE = st.integers(-5, 5)
NAN = math.nan


def attention(*, layers=2, heads=3, seq=9, seed=0) -> np.ndarray:
    """Make random attention weights alpha[layer, head, i, j] that i gives to j; each row sums to 1."""
    raw = np.random.default_rng(seed).gamma(0.3, size=(layers, heads, seq, seq))
    return raw / raw.sum(axis=-1, keepdims=True)


def of_source(alpha: np.ndarray, source: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights that a source gives and receives, (layers, heads, source tokens, seq) each."""
    return alpha[:, :, source], alpha[:, :, :, source].swapaxes(2, 3)


def mask(length: int, *positions: int) -> np.ndarray:
    return np.isin(np.arange(length), positions)


# The second definition: the formulas of the paper, letter by letter.


def score_in_loops(alpha: np.ndarray, i: int, source: list[int]) -> float:
    total = 0.0
    for k in range(alpha.shape[1]):
        for j in source:
            total += alpha[-1, k, i, j] + alpha[-1, k, j, i]
    return math.exp(total)


def rank_in_loops(alpha: np.ndarray, source: list[int], target: list[int], document: list[int]) -> float:
    of_target = sum(score_in_loops(alpha, j, source) for j in target) / len(target)
    below = equal = count = 0
    for i in range(alpha.shape[-1]):
        if document[i] == document[target[0]] and i not in target and i not in source:
            count += 1
            below += score_in_loops(alpha, i, source) < of_target
            equal += score_in_loops(alpha, i, source) == of_target
    return 100 * (below + equal / 2) / count


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("source", "target"), [([2], [6]), ([2, 3], [6, 7]), ([6, 7], [1, 2]), ([1], [3])])
def test_rank_equals_the_formula_in_loops(seed, source, target):
    alpha = attention(seed=seed)
    document = [-1, 0, 0, 0, -1, 1, 1, 1, -1]
    scores = source_scores(*of_source(alpha, source))
    masks = {"source": mask(9, *source), "target": mask(9, *target)}
    result = target_rank(scores, masks["target"], candidate_mask(np.array(document), **masks))
    assert result == pytest.approx(rank_in_loops(alpha, source, target, document))


@pytest.mark.parametrize(
    ("options", "logs"),
    [
        ({}, [1.0, 0.75, 0.25]),
        ({"directions": "from"}, [0.5, 0.25, 0.25]),
        ({"directions": "to"}, [0.5, 0.5, 0]),
        ({"layers": [0]}, [0.1, 0.2, 1.7]),
        ({"layers": "all"}, [1.1, 0.95, 1.95]),
        ({"layers": [1, -2], "reduce": "mean"}, [0.55, 0.475, 0.975]),
        ({"layers": "all", "reduce": "max"}, [1.0, 0.75, 1.7]),
    ],
)
def test_scores_by_hand(options, logs):
    given = np.array([[[[0.1, 0.2, 0.7]]], [[[0.5, 0.25, 0.25]]]])  # two layers, one head, one source token
    received = np.array([[[[0.0, 0.0, 1.0]]], [[[0.5, 0.5, 0.0]]]])
    np.testing.assert_allclose(source_scores(given, received, **options), np.exp(logs))


def test_rank_by_hand():
    assert {percentile_rank(3, candidates) for candidates in ([1, 2, 4, 5], [3], [1, 3, 3, 5])} == {50}
    assert (percentile_rank(9, [1, 2]), percentile_rank(0, [1, 2])) == (100, 0)
    assert percentile_rank(2, [1, 2, 3, 3]) == 37.5


GIVEN, _ = of_source(attention(), [1])


@examples(WHOLE, st.lists(WHOLE, min_size=1))
def test_rank_of_negated_scores_is_the_complement(target, candidates):
    result = percentile_rank(target, candidates)
    assert 0 <= result <= 100
    assert percentile_rank(-target, np.negative(candidates)) == pytest.approx(100 - result)


@examples(st.lists(WHOLE, min_size=2))
def test_chance_is_exactly_fifty(scores):
    """The mean rank over all one-token targets is 50, whatever the scores and their ties."""
    scores = np.array(scores)
    places = [mask(len(scores), place) for place in range(len(scores))]
    assert np.mean([target_rank(scores, place, ~place) for place in places]) == pytest.approx(50)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: source_scores(GIVEN * NAN, GIVEN), "not finite"),
        (lambda: percentile_rank(1, []), "no candidates"),
        (lambda: percentile_rank(NAN, [1]), "not a number"),
        (lambda: percentile_rank(1, [NAN]), "not a number"),
        (lambda: target_rank(np.ones(3), mask(3, 1), mask(3, 1)), "no candidates"),
        (lambda: chance_rank(np.ones(4), mask(4, 0, 1), mask(4), document=mask(4, 0, 1)), "no candidates"),
    ],
)
def test_what_has_no_sense_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# `[CLS]` <doc-s> a b , </doc-s> <doc-s> c , <m> d </m> </doc-s> <doc-s> e </doc-s> [SEP]
DOCUMENT = np.array([-1, -1, 0, 0, 0, -1, -1, 1, 1, -1, 1, -1, -1, -1, 2, -1, -1])


@pytest.mark.parametrize(
    ("source", "target", "wanted"),
    [
        ([2], [10], [7, 8]),
        ([10], [2], [3, 4]),
        ([10], [2, 3], [4]),
        ([2], [3], [4]),  # one document: the source has no score
    ],
)
def test_candidates(source, target, wanted):
    masks = {"source": mask(17, *source), "target": mask(17, *target)}
    assert np.flatnonzero(candidate_mask(DOCUMENT, **masks)).tolist() == wanted


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ([2], [7, 14], r"the target lies in the documents \[1, 2\]"),
        ([2], [9], "the target holds a special token"),
        ([0, 2], [7], "the source holds a special token"),
        ([], [7], "the source is empty"),
        ([2], [], "the target is empty"),
        ([2, 3], [3], "token 3 is both source and target"),
    ],
)
def test_wrong_spans_are_named(source, target, message):
    with pytest.raises(ValueError, match=message):
        candidate_mask(DOCUMENT, source=mask(17, *source), target=mask(17, *target))


def test_scores_of_words():
    scores, words = np.array([9.0, 1, 3, -2, 5]), np.array([-1, 0, 0, 2, -1])
    np.testing.assert_array_equal(word_scores(scores, words, 4), [2, NAN, -2, NAN])
    np.testing.assert_array_equal(word_scores(scores, words, 4, reduce="max"), [3, NAN, -2, NAN])
    assert word_scores(scores, np.full(5, -1), 0).shape == (0,)


@examples(
    st.lists(st.tuples(st.sampled_from([0.0, 1.0, 2.5, math.inf, NAN]), st.integers(-1, 3)), max_size=12)
)
def test_ranks_within_groups_are_those_one_by_one(elements):
    scores = np.array([score for score, _ in elements], dtype=float)
    groups = np.array([group for _, group in elements], dtype=int)
    result = ranks_within(scores, groups)
    for place, (score, group) in enumerate(elements):
        others = (groups == group) & ~np.isnan(scores) & ~mask(len(elements), place)
        is_ranked = group >= 0 and not math.isnan(score) and others.any()
        wanted = percentile_rank(score, scores[others]) if is_ranked else NAN
        assert result[place] == pytest.approx(wanted, nan_ok=True)


# ---- what a target drawn at random has


def test_chance_by_hand():
    # Scores 1 2 4 8, spans of two: (1, 2) -> 1.5 among {4, 8}: 0; (2, 4) -> 3 among {1, 8}: 1/2;
    # (4, 8) -> 6 among {1, 2}: 1. The mean is 1/2.
    scores = np.array([99.0, 1.0, 2.0, 4.0, 8.0])
    document = mask(5, 1, 2, 3, 4)
    assert chance_rank(scores, mask(5, 2, 3), mask(5, 1, 4), document=document) == pytest.approx(50)
    # Scores 0 0 6 0 0, spans of two: (0, 0) -> 0 among {6, 0, 0}: one tie in two of three, 1/3; twice;
    # (0, 6) -> 3 among {0, 0, 0}: 1; twice. The mean is 2/3, not 1/2.
    skewed = np.array([0.0, 0.0, 6.0, 0.0, 0.0])
    result = chance_rank(skewed, mask(5, 0, 1), mask(5, 2, 3, 4), document=mask(5, *range(5)))
    assert result == pytest.approx(200 / 3)


@examples(
    st.lists(st.integers(0, 6), min_size=6, max_size=14),
    st.integers(1, 4),
    st.integers(0, 3),
    st.integers(0, 5),
)
def test_chance_equals_a_loop_over_all_spans(values, length, skipped, start):
    scores = np.array(values, dtype=float)
    places = [i for i in range(len(values)) if i != skipped]
    target = places[start : start + length] or places[:1]
    among = [i for i in places if i not in target and i % 5 != 4]  # some are no candidates: punctuation
    ranks = []
    for first in range(len(places) - len(target) + 1):
        span = places[first : first + len(target)]
        others = [i for i in {*among, *target} if i not in span]
        if others:
            ranks.append(percentile_rank(scores[span].mean(), scores[others]))
    if not ranks:
        return
    masks = (mask(len(values), *group) for group in (target, among))
    result = chance_rank(scores, *masks, document=mask(len(values), *places))
    assert result == pytest.approx(np.mean(ranks))
