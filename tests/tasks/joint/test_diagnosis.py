"""Has a joint model collapsed: numbers by hand, and models that collapse in one way or another."""

import re

import numpy as np
import pytest

from cdlm_lab.tasks.joint.diagnosis import diagnose

NAN = np.nan
# Two groups of a question and one of another, which has a place without a candidate.
SCORES = [[2.0, -2.0, 0.0], [1.0, -1.0, -3.0], [3.0, 1.0, NAN]]
LABELS = [[1, 0, 0], [0, 0, 1], [0, 1, -100]]
QUESTION = [0, 0, 1]


def drawn(groups: int = 300, k: int = 5, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels with one right candidate of each group, at a random place; and noise (groups, k)."""
    rng = np.random.default_rng(seed)
    labels = (np.arange(k) == rng.integers(k, size=(groups, 1))).astype(np.int64)
    return labels, rng.standard_normal((groups, k))


def test_all_numbers_by_hand():
    diagnosis = diagnose(SCORES, LABELS, question=QUESTION)
    # Question 0 by score: right, wrong, wrong, wrong, wrong, right; question 1: wrong, right.
    assert diagnosis.scores["precision_at_1"] == pytest.approx(1 / 2)
    assert diagnosis.scores["average_precision"] == pytest.approx(((1 + 2 / 6) / 2 + 1 / 2) / 2)
    assert diagnosis.scores["reciprocal_rank"] == pytest.approx((1 + 1 / 2) / 2)
    assert diagnosis.random["precision_at_1"] == pytest.approx((2 / 6 + 1 / 2) / 2)
    # The first of two right ones among six is at rank 1 to 5 in 5, 4, 3, 2 and 1 of 15 orders.
    first = (5 / 1 + 4 / 2 + 3 / 3 + 2 / 4 + 1 / 5) / 15
    assert diagnosis.random["reciprocal_rank"] == pytest.approx((first + 3 / 4) / 2)
    own, chance = diagnosis.scores["average_precision"], diagnosis.random["average_precision"]
    assert diagnosis.gain == pytest.approx((own - chance) / (1 - chance))
    assert diagnosis.spread == pytest.approx([np.sqrt(8 / 3), np.sqrt(8 / 3), 1])
    # It calls the first right, nothing but the first right, both right; a score of 0 is "wrong".
    assert diagnosis.accuracy == pytest.approx([1 / 3, 1, 1 / 2])
    assert diagnosis.always_wrong == pytest.approx([2 / 3, 2 / 3, 1 / 2])


def test_the_share_of_the_place_by_hand():
    # Less the means of the groups: 2, -2, 0; 2, 0, -2; 1, -1. By place: 5 of 3, -3 of 3, -2 of 2.
    diagnosis = diagnose(SCORES, LABELS, question=QUESTION)
    explained, whole = 25 / 3 + 9 / 3 + 4 / 2, 8 + 8 + 2
    assert diagnosis.by_place == pytest.approx(1 - (1 - explained / whole) * 5 / 3)
    opposite = diagnose([[2.0, -2.0, 0.0], [-1.0, 1.0, 0.0]], LABELS[:2])
    assert opposite.by_place == 0, "less than by chance"


def test_a_model_that_reads_candidates_has_not_collapsed():
    labels, noise = drawn()
    diagnosis = diagnose(3.0 * labels + noise - 2, labels)
    assert not diagnosis.collapsed
    assert diagnosis.above_random
    assert diagnosis.gain > 0.8
    assert diagnosis.by_place < 0.02
    assert diagnosis.random["precision_at_1"] == pytest.approx(1 / 5)
    assert diagnosis.verdict == (
        f"Not collapsed: MAP {diagnosis.scores['average_precision']:.3f}, random ranking 0.457."
    )


def test_questions_with_nothing_right_are_nothing_to_gain():
    labels, noise = drawn(40)
    scores = labels + noise
    more = diagnose(np.concatenate([scores, noise[:9]]), np.concatenate([labels, np.zeros_like(labels[:9])]))
    plain = diagnose(scores, labels)
    assert more.gain == pytest.approx(plain.gain)
    assert more.scores["average_precision"] == pytest.approx(plain.scores["average_precision"] * 40 / 49)


def test_scores_that_follow_the_place_or_nothing():
    labels, noise = drawn()
    placed = diagnose(np.arange(5) + 0.1 * noise, labels)
    assert placed.collapsed
    assert placed.by_place > 0.98
    assert f"{placed.by_place:.0%} of the variance within groups follows the place" in placed.verdict
    nothing = diagnose(noise, labels)
    assert nothing.collapsed
    assert nothing.by_place < 0.02
    assert nothing.verdict.endswith("; scores differ within a group, but hardly with what is right.")
    # a model that works, in which the place counts more than the candidate
    both = diagnose(2.0 * np.arange(5) + 3 * labels + 0.1 * noise, labels)
    assert not both.collapsed
    assert re.search(r"; but \d\d% of the variance within groups follows the place", both.verdict)


def test_few_questions_prove_nothing():
    labels, _ = drawn(3, seed=1)
    scores = labels.astype(float)
    scores[0] = -scores[0]  # two of three are perfect
    diagnosis = diagnose(scores, labels)
    assert diagnosis.gain > 0.1
    assert not diagnosis.above_random
    assert not diagnosis.collapsed
    assert re.fullmatch(
        r"Undecided: MAP 0\.\d{3}, random ranking 0\.457; these are too few .*", diagnosis.verdict
    )


def test_absent_candidates_count_nowhere():
    labels, noise = drawn(40)
    scores = labels + noise
    padded = np.concatenate([scores, np.full((40, 2), 1e6)], axis=1)
    absent = np.concatenate([labels, np.full((40, 2), -100)], axis=1)
    plain, wide = diagnose(scores, labels), diagnose(padded, absent)
    assert (wide.scores, wide.random, wide.gain) == (plain.scores, plain.random, plain.gain)
    assert wide.by_place == pytest.approx(plain.by_place)
    for name in ("accuracy", "always_wrong", "spread"):
        own = getattr(plain, name)
        assert getattr(wide, name)[: len(own)] == pytest.approx(own)
    assert np.isnan(wide.accuracy[5:]).all()
