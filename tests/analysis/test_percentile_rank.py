"""Percentile rank: fractions by hand, a second definition in loops, symmetries, what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from cdlm_lab.analysis.percentile_rank import (
    candidate_mask,
    percentile_rank,
    ranks_within,
    source_scores,
    target_rank,
    word_scores,
)

WHOLE = st.integers(-5, 5)
NAN = math.nan


def attention(*, layers=2, heads=3, seq=9, seed=0) -> np.ndarray:
    """alpha[layer, head, i, j], the weight that i gives to j; each row sums to 1."""
    raw = np.random.default_rng(seed).gamma(0.3, size=(layers, heads, seq, seq))
    return raw / raw.sum(axis=-1, keepdims=True)


def of_source(alpha: np.ndarray, source: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """What AttentionRecorder holds of it: given and received, (layers, heads, source tokens, seq)."""
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
    candidates = candidate_mask(np.array(document), **masks)
    found = target_rank(scores, masks["target"], candidates)
    assert found == pytest.approx(rank_in_loops(alpha, source, target, document))


def test_scores_by_hand():
    given = np.array([[[[0.1, 0.2, 0.7]]], [[[0.5, 0.25, 0.25]]]])  # two layers, one head, one source token
    received = np.array([[[[0.0, 0.0, 1.0]]], [[[0.5, 0.5, 0.0]]]])
    np.testing.assert_allclose(source_scores(given, received), np.exp([1.0, 0.75, 0.25]))
    np.testing.assert_allclose(source_scores(given, received, directions="from"), np.exp([0.5, 0.25, 0.25]))
    np.testing.assert_allclose(source_scores(given, received, directions="to"), np.exp([0.5, 0.5, 0]))
    np.testing.assert_allclose(source_scores(given, received, layers=[0]), np.exp([0.1, 0.2, 1.7]))
    np.testing.assert_allclose(source_scores(given, received, layers="all"), np.exp([1.1, 0.95, 1.95]))
    mean = source_scores(given, received, layers=[1, -2], reduce="mean")
    np.testing.assert_allclose(mean, np.exp([0.55, 0.475, 0.975]))
    largest = source_scores(given, received, layers="all", reduce="max")
    np.testing.assert_allclose(largest, np.exp([1.0, 0.75, 1.7]))


def test_heads_and_source_tokens_are_summed():
    given, received = of_source(attention(), [2, 5])
    logs = np.log(source_scores(given, received))
    np.testing.assert_allclose(logs, (given + received)[-1].sum(axis=(0, 1)))
    parts = [np.log(source_scores(given, received, heads=heads)) for heads in ([0, 2], [1])]
    np.testing.assert_allclose(sum(parts), logs)
    tokens = [np.log(source_scores(given[:, :, [j]], received[:, :, [j]])) for j in range(2)]
    np.testing.assert_allclose(sum(tokens), logs)


def test_scores_that_exp_cannot_hold_keep_their_order():
    given = np.zeros((1, 1, 1, 4))
    given[..., 1:] = [900.0, 901.0, 903.0]
    scores = source_scores(given, given)
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(np.log(scores[2:] / scores[1]), [2, 6])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layers": "first"}, "unknown layers 'first'; choose one of last, all"),
        ({"layers": [2]}, "there is no layer 2; there are 2, 0 to 1"),
        ({"layers": []}, "no layer is chosen"),
        ({"heads": [0, -3]}, "a head is named twice"),
        ({"heads": [-4]}, "there is no head -4"),
        ({"directions": "in"}, "unknown directions 'in'; choose one of both, from, to"),
        ({"reduce": "median"}, "unknown reduce 'median'"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        source_scores(*of_source(attention(), [1]), **options)


def test_wrong_weights_are_named():
    given, received = of_source(attention(), [1])
    with pytest.raises(ValueError, match="both must be"):
        source_scores(given, received[:, :, :, :-1])
    with pytest.raises(ValueError, match="both must be"):
        source_scores(given[:, :, :0], received[:, :, :0])
    with pytest.raises(ValueError, match="not finite"):
        source_scores(given * NAN, received)


@pytest.mark.parametrize(
    ("target", "candidates", "rank"),
    [
        (3, [1, 2, 4, 5], 50),
        (3, [3], 50),
        (3, [1, 3, 3, 5], 50),
        (9, [1, 2], 100),
        (0, [1, 2], 0),
        (2, [1, 2, 3, 3], 37.5),
    ],
)
def test_rank_by_hand(target, candidates, rank):
    assert percentile_rank(target, candidates) == rank


@examples(WHOLE, st.lists(WHOLE, min_size=1))
def test_rank_of_negated_scores_is_the_complement(target, candidates):
    found = percentile_rank(target, candidates)
    assert 0 <= found <= 100
    assert percentile_rank(-target, np.negative(candidates)) == pytest.approx(100 - found)


@examples(st.lists(WHOLE, min_size=2), st.data())
def test_rank_of_one_token_only_knows_the_order(scores, data):
    scores, place = np.array(scores), data.draw(st.integers(0, len(scores) - 1))
    target = mask(len(scores), place)
    found = target_rank(scores, target, ~target)
    assert target_rank(scores**3 * 7.0 + 1, target, ~target) == found
    assert target_rank(np.exp(scores), target, np.ones(len(scores), dtype=bool)) == found


@examples(st.lists(WHOLE, min_size=2))
def test_chance_is_exactly_fifty(scores):
    """The mean rank over all targets of one token, whatever the scores and their ties."""
    scores = np.array(scores)
    places = [mask(len(scores), place) for place in range(len(scores))]
    assert np.mean([target_rank(scores, place, ~place) for place in places]) == pytest.approx(50)


def test_ranks_without_sense_are_refused():
    with pytest.raises(ValueError, match="no candidates"):
        percentile_rank(1, [])
    for target, candidates in ((NAN, [1]), (1, [NAN])):
        with pytest.raises(ValueError, match="not a number"):
            percentile_rank(target, candidates)
    with pytest.raises(ValueError, match="target is empty"):
        target_rank(np.ones(3), mask(3), mask(3, 1))
    with pytest.raises(ValueError, match="no candidates"):
        target_rank(np.ones(3), mask(3, 1), mask(3, 1))
    with pytest.raises(ValueError, match=r"target must be a bool mask of shape \(3,\)"):
        target_rank(np.ones(3), [0, 1, 1], mask(3, 1))


# `[CLS]` <doc-s> a b , </doc-s> <doc-s> c , <m> d </m> </doc-s> <doc-s> e </doc-s> [SEP]
DOCUMENT = np.array([-1, -1, 0, 0, 0, -1, -1, 1, 1, -1, 1, -1, -1, -1, 2, -1, -1])
COMMAS = mask(17, 4, 8)


@pytest.mark.parametrize(
    ("source", "target", "candidates", "wanted"),
    [
        ([2], [10], "document", [7, 8]),
        ([2], [10], "words", [7]),
        ([2], [10], "both_documents", [3, 4, 7, 8]),
        ([10], [2], "document", [3, 4]),
        ([10], [2, 3], "words", []),
        ([2], [3], "document", [4]),  # one document: the source has no score
        ([2, 3], [14], "both_documents", [4]),
    ],
)
def test_candidates(source, target, candidates, wanted):
    found = candidate_mask(
        DOCUMENT,
        source=mask(17, *source),
        target=mask(17, *target),
        candidates=candidates,
        is_punctuation=COMMAS,
    )
    assert np.flatnonzero(found).tolist() == wanted


@pytest.mark.parametrize(
    ("source", "target", "options", "message"),
    [
        ([2], [7, 14], {}, r"the target lies in the documents \[1, 2\]"),
        ([2], [9], {}, "the target holds a special token"),
        ([0, 2], [7], {}, "the source holds a special token"),
        ([], [7], {}, "the source is empty"),
        ([2], [], {}, "the target is empty"),
        ([2, 3], [3], {}, "token 3 is both source and target"),
        ([2], [7], {"candidates": "all"}, "unknown candidates 'all'; choose one of document, words"),
        ([2], [7], {"candidates": "words"}, "need is_punctuation"),
        (
            [2],
            [7],
            {"candidates": "words", "is_punctuation": COMMAS[:5]},
            "is_punctuation must be a bool mask",
        ),
    ],
)
def test_wrong_spans_are_named(source, target, options, message):
    with pytest.raises(ValueError, match=message):
        candidate_mask(DOCUMENT, source=mask(17, *source), target=mask(17, *target), **options)


def test_scores_of_words():
    scores, words = np.array([9.0, 1, 3, -2, 5]), np.array([-1, 0, 0, 2, -1])
    np.testing.assert_array_equal(word_scores(scores, words, 4), [2, NAN, -2, NAN])
    np.testing.assert_array_equal(word_scores(scores, words, 4, reduce="max"), [3, NAN, -2, NAN])
    assert word_scores(scores, np.full(5, -1), 0).shape == (0,)
    with pytest.raises(ValueError, match="between -1 and 1"):
        word_scores(scores, words, 2)
    with pytest.raises(ValueError, match="unknown reduce 'sum'"):
        word_scores(scores, words, 4, reduce="sum")
    with pytest.raises(ValueError, match="scores has shape"):
        word_scores(scores[1:], words, 4)


@examples(
    st.lists(st.tuples(st.sampled_from([0.0, 1.0, 2.5, math.inf, NAN]), st.integers(-1, 3)), max_size=12)
)
def test_ranks_within_groups_are_those_one_by_one(elements):
    scores = np.array([score for score, _ in elements], dtype=float)
    groups = np.array([group for _, group in elements], dtype=int)
    found = ranks_within(scores, groups)
    for place, (score, group) in enumerate(elements):
        others = (groups == group) & ~np.isnan(scores) & ~mask(len(elements), place)
        there = group >= 0 and not math.isnan(score) and others.any()
        wanted = percentile_rank(score, scores[others]) if there else NAN
        assert found[place] == pytest.approx(wanted, nan_ok=True)
