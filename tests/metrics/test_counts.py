"""Counts and their scores: worked fractions, seqeval, direct implementations, input that is refused."""

import math
import re
from fractions import Fraction
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import f1_score, precision_score, recall_score
from seqeval.metrics.sequence_labeling import get_entities

from cdlm_lab.metrics import counts
from cdlm_lab.metrics.counts import (
    f1_of,
    match_counts,
    precision_of,
    recall_of,
    span_counts,
    word_counts,
)
from cdlm_lab.metrics.significance import compare


def tags(text: str) -> list[list[list[str]]]:
    """Parse `O Ba Ia | O || Bb` to documents of tags; bars separate sentences, double bars documents."""
    return [
        [[tag if tag == "O" else f"{tag[0]}-{tag[1:]}" for tag in part.split()] for part in row.split("|")]
        for row in text.split("||")
    ]


@pytest.mark.parametrize(
    ("gold", "predicted", "expected"),
    [
        ("O Ba Ia O Bb", "O Ba Ia O Bb", (2, 2, 2)),
        ("O Ba Ia O Bb", "O Bb Ib O Bb", (1, 2, 2)),
        ("Ba Ia Ba Ia", "Ba Ia Ia Ia", (0, 1, 2)),
        ("O O", "O O", (0, 0, 0)),
        # an I- that goes on with no span of its label begins one: after O, another label, or a sentence
        ("O Ba Ia O", "O Ia Ia O", (1, 1, 1)),
        ("Ba Bb O", "Ba Ib O", (2, 2, 2)),
        ("Ba Ia O", "Ba Ib O", (0, 2, 1)),
        ("O Ba | O", "O Ba | Ia", (1, 2, 1)),
        ("Ba | Ba", "Ba | Ia", (2, 2, 2)),
        ("O Ba", "O Ba", (1, 1, 1)),
    ],
)
def test_worked_counts(gold, predicted, expected):
    assert tuple(span_counts(tags(gold), tags(predicted))[0]) == expected


def test_a_row_for_each_document():
    gold, predicted = tags("Ba | O || Ba O || O"), tags("Ba | Bb || Ia O || Bb")
    assert span_counts(gold, predicted).tolist() == [[1, 2, 1], [1, 1, 1], [0, 1, 0]]


TAG = st.sampled_from(["O", "B-a", "I-a", "B-b", "I-b"])
PAIR_OF_SENTENCES = st.lists(st.tuples(TAG, TAG), max_size=6)
PAIRS = st.lists(st.lists(PAIR_OF_SENTENCES, max_size=4), min_size=1, max_size=4)


def sides(pairs: list) -> tuple[list, list]:
    return tuple(
        [[[pair[side] for pair in sentence] for sentence in document] for document in pairs]
        for side in (0, 1)
    )


@settings(max_examples=50)
@given(PAIRS)
def test_scores_of_each_document_and_of_all_are_those_of_seqeval(pairs):
    gold, predicted = sides(pairs)
    rows = span_counts(gold, predicted)
    cases = [*zip(gold, predicted, rows, strict=True)]
    cases.append(([*chain(*gold)], [*chain(*predicted)], rows.sum(axis=0)))
    for wanted, found, counted in cases:
        for ours, theirs in ((f1_of, f1_score), (precision_of, precision_score), (recall_of, recall_score)):
            if wanted:
                assert ours(counted) == pytest.approx(theirs(wanted, found, zero_division=0))
        assert counted[2] == len(get_entities(wanted))
        assert counted[1] == len(get_entities(found))


def test_worked_words():
    gold, predicted = tags("Ba Ia O | Bb || O O"), tags("Ba Ba Bb | Ba || Ib O")
    # right: both words of the first span, whatever their prefixes; the last word, rightly outside, is nothing
    assert word_counts(gold, predicted).tolist() == [[2, 4, 3], [0, 1, 0]]
    chosen = [[[True, False, True], [False]], [[True, True]]]
    assert word_counts(gold, predicted, chosen=chosen).tolist() == [[1, 2, 1], [0, 1, 0]]
    assert word_counts([[[]], []], [[[]], []]).tolist() == [[0, 0, 0], [0, 0, 0]]
    hyphen = [[["B-cell-line", "I-line"]]]
    assert word_counts(hyphen, [[["I-cell-line", "I-cell-line"]]]).tolist() == [[1, 2, 2]]


def test_scores_of_counts():
    rows = np.array([[3, 4, 6], [0, 0, 5], [0, 5, 0], [0, 0, 0]])
    assert precision_of(rows).tolist() == [0.75, 0, 0, 0]
    assert recall_of(rows).tolist() == [0.5, 0, 0, 0]
    assert f1_of(rows) == pytest.approx([2 * 0.75 * 0.5 / 1.25, 0, 0, 0])
    assert f1_of([3, 4, 6]) == pytest.approx(0.6)
    assert f1_of(np.ones((2, 5, 3))).shape == (2, 5)
    for of in (precision_of, recall_of, f1_of):
        with pytest.raises(ValueError, match=r"counts has shape \(3, 2\); its last axis"):
            of(np.ones((3, 2)))


# Pairs of documents that match, 1, or do not, 0.
DECISIONS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=2, max_size=12)


def scores_of(labels, predictions, **settings) -> list[float]:
    """Return accuracy, precision, recall and F1."""
    total = match_counts(labels, predictions, **settings).sum(axis=0)
    return [float(of(total)) for of in counts.DECISION_SCORES.values()]


def slow_scores(labels, predictions) -> list[float]:
    """Return accuracy, precision, recall and F1, computed pair by pair as exact fractions."""
    right = both = predicted = relevant = 0
    for label, prediction in zip(labels, predictions, strict=True):
        right += label == prediction
        both += label == 1 and prediction == 1
        predicted += prediction == 1
        relevant += label == 1
    precision = Fraction(both, predicted) if predicted else Fraction(0)
    recall = Fraction(both, relevant) if relevant else Fraction(0)
    f1 = 2 * precision * recall / (precision + recall) if both else Fraction(0)
    return [float(x) for x in (Fraction(right, len(labels)), precision, recall, f1)]


@pytest.mark.filterwarnings("error")
def test_worked_decisions():
    # True positive 1, false negatives 2, false positive 1, true negatives 3.
    labels, predictions = [1, 1, 1, 0, 0, 0, 0], [1, 0, 0, 1, 0, 0, 0]
    assert list(counts.DECISION_SCORES) == ["accuracy", "precision", "recall", "f1"]
    assert scores_of(labels, predictions) == pytest.approx([4 / 7, 1 / 2, 1 / 3, 2 / 5])
    assert scores_of(predictions, labels)[1:3] == pytest.approx([1 / 3, 1 / 2])  # gold and system differ
    by_cluster = match_counts(labels, predictions, clusters=list("aabbbbb"))
    assert by_cluster.tolist() == [[1, 1, 2, 2], [0, 1, 1, 5]]  # right, predicted and gold matches, pairs
    # one class alone is scored, and nothing over nothing is 0
    assert scores_of([0, 0], [0, 0]) == [1, 0, 0, 0]  # right about everything, and yet no match to find
    assert scores_of([1, 1], [1, 1]) == [1, 1, 1, 1]
    assert scores_of([1, 1], [0, 0]) == [0, 0, 0, 0]
    assert scores_of([0, 0], [0, 1]) == [1 / 2, 0, 0, 0]


@given(DECISIONS, st.randoms(use_true_random=False))
def test_decision_scores_equal_a_loop_over_pairs_in_any_order_and_cluster(pairs, random):
    labels, predictions = zip(*pairs, strict=True)
    expected = slow_scores(labels, predictions)
    for kind in (int, bool, float):
        assert scores_of(np.array(labels, kind), np.array(predictions, kind)) == pytest.approx(expected)
    shuffled = zip(*random.sample(pairs, len(pairs)), strict=True)
    clusters = [("c", number % 2) for number in range(len(pairs))]
    assert scores_of(*shuffled, clusters=clusters) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("labels", "predictions", "message"),
    [
        ([], [], "labels has shape (0,); it must be (pairs,), not empty"),
        ([[1]], [[1]], "labels has shape (1, 1); it must be (pairs,), not empty"),
        ([1], [], "predictions has shape (0,); it must be (pairs,), not empty"),
        ([1, 0], [1], "there are 2 labels, but 1 predictions"),
        ([1, 2], [1, 0], "labels[1] is 2; it must be 0 or 1 (1 = match)"),
        ([1, 0], [-1, 0], "predictions[0] is -1; it must be 0 or 1 (1 = match)"),
        ([1, 0], [1, 0.7], "predictions[1] is 0.7; it must be 0 or 1 (1 = match)"),
        ([1, math.nan], [1, 0], "labels[1] is nan; it must be 0 or 1 (1 = match)"),
        ([1, None], [1, 0], "labels[1] is None; it must be 0 or 1 (1 = match)"),
        (["1", "0"], [1, 0], "labels[0] is '1'; it must be 0 or 1 (1 = match)"),
    ],
)
def test_decisions_that_are_refused(labels, predictions, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        match_counts(labels, predictions)


def test_counts_and_f1_serve_the_paired_tests():
    gold = tags("Ba O || Ba O || Ba O")
    a, b = span_counts(gold, gold), span_counts(gold, tags("Ba O || O Ba || O O"))
    compared = compare(a, b, f1_of, n_resamples=200)
    # b: one correct, two predicted, three gold
    assert compared.difference == pytest.approx(1 - 2 * 1 / (2 + 3))
    assert compared.clusters == 3


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ("O || O", "O", "predicted has 1 documents and the gold 2"),
        ("O | O || O", "O || O", r"predicted\[0\] has 1 sentences and the gold 2"),
        ("O || O | O O", "O || O | O", r"predicted\[1\]\[1\] has 1 words and the gold 2"),
        ("O | O Sa", "O | O O", r"gold\[0\]\[1\]\[1\] \(document, sentence, word\) is 'S-a'"),
        ("O", "B", r"predicted\[0\]\[0\]\[0\] .* is 'B-'; a tag is O, or B- or I- and a label"),
    ],
)
def test_tags_that_are_refused(gold, predicted, message):
    for counted in (span_counts, word_counts):
        with pytest.raises(ValueError, match=message):
            counted(tags(gold), tags(predicted))


def test_a_mask_of_other_words_is_refused():
    with pytest.raises(ValueError, match=r"chosen\[0\]\[0\] has 1 words and the gold 2"):
        word_counts(tags("O O"), tags("O O"), chosen=[[[True]]])
