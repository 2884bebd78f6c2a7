from __future__ import annotations

import numpy as np
import pytest

from cdlm_lab.examples.masking import mask_tokens
from cdlm_lab.examples.tokens import SpecialTokens

SPECIAL = SpecialTokens(
    start=0, end=1, cls=2, sep=3, pad=4, mask=5, all_special=frozenset({*range(6), 500}), vocabulary_size=1000
)


def masked(ids, *, seed: int = 0, eligible=None, probability: float = 0.15):
    ids = np.asarray(ids)
    eligible = np.ones(len(ids), dtype=bool) if eligible is None else np.asarray(eligible)
    return mask_tokens(
        ids, eligible, generator=np.random.default_rng(seed), special=SPECIAL, probability=probability
    )


class TestStatistics:
    """100,000 tokens; shares within 1% of what BERT's rule says."""

    ids = np.random.default_rng(7).integers(6, 500, size=100_000)

    def test_fifteen_percent_are_drawn_each_by_itself(self):
        _, labels = masked(self.ids)
        drawn = labels != -100
        assert drawn.mean() == pytest.approx(0.15, abs=0.01)
        # Independent draws: a neighbour of a drawn token is drawn as often as any other.
        assert drawn[1:][drawn[:-1]].mean() == pytest.approx(0.15, abs=0.01)

    def test_eighty_ten_ten(self):
        masked_ids, labels = masked(self.ids)
        drawn = labels != -100
        by_mask = (masked_ids == SPECIAL.mask) & drawn
        unchanged = (masked_ids == self.ids) & drawn
        by_random = drawn & ~by_mask & ~unchanged
        count = drawn.sum()
        assert by_mask.sum() / count == pytest.approx(0.8, abs=0.01)
        # 1 in 993 random words is the word itself, far below the tolerance
        assert unchanged.sum() / count == pytest.approx(0.1, abs=0.01)
        assert by_random.sum() / count == pytest.approx(0.1, abs=0.01)

    def test_random_words_come_from_the_whole_vocabulary_but_are_never_special(self):
        masked_ids, labels = masked(self.ids, probability=1.0)
        replaced = masked_ids[(masked_ids != SPECIAL.mask) & (masked_ids != labels)]
        assert not SPECIAL.is_special(replaced).any()
        # the text has ids below 500 only; 499 of the 993 words are above 500
        assert (replaced > 500).mean() == pytest.approx(499 / 993, abs=0.02)

    def test_another_probability(self):
        _, labels = masked(self.ids, probability=0.4)
        assert (labels != -100).mean() == pytest.approx(0.4, abs=0.01)


def test_what_is_not_drawn_stays_and_labels_are_the_originals():
    ids = np.arange(6, 306)
    masked_ids, labels = masked(ids, seed=3)
    drawn = labels != -100
    assert 0 < drawn.sum() < 300
    assert (masked_ids[~drawn] == ids[~drawn]).all()
    assert (labels[drawn] == ids[drawn]).all()
    assert masked_ids.dtype == labels.dtype == np.int64
    assert (ids == np.arange(6, 306)).all(), "the input was changed"


def test_special_tokens_are_never_masked_even_when_called_eligible():
    ids = np.tile([2, 0, 77, 500, 1, 3, 4, 5], 1000)
    masked_ids, labels = masked(ids, probability=1.0)
    assert (labels.reshape(-1, 8) == [-100, -100, 77, -100, -100, -100, -100, -100]).all()
    special = SPECIAL.is_special(ids)
    assert (masked_ids[special] == ids[special]).all()


def test_only_eligible_tokens_are_masked():
    eligible = np.arange(1000) % 2 == 0
    _, labels = masked(np.full(1000, 9), eligible=eligible, probability=1.0)
    assert ((labels != -100) == eligible).all()


def test_at_least_one_token_is_masked():
    """At so low a probability chance draws nothing, and the one token is picked evenly from the eligible."""
    counts = np.zeros(7)
    for seed in range(600):
        _, labels = masked([2, 0, 50, 51, 52, 1, 3], seed=seed, probability=1e-9)
        counts += labels != -100
    assert counts[[0, 1, 5, 6]].sum() == 0
    assert counts.sum() == 600
    np.testing.assert_allclose(counts[2:5] / 600, 1 / 3, atol=0.08)


def test_nothing_eligible_masks_nothing():
    masked_ids, labels = masked([2, 0, 500, 1, 3], probability=1.0)
    assert masked_ids.tolist() == [2, 0, 500, 1, 3]
    assert (labels == -100).all()


def test_the_same_generator_state_gives_the_same_masks():
    ids = np.arange(6, 406)
    first, second, other = masked(ids, seed=5), masked(ids, seed=5), masked(ids, seed=6)
    assert (first[0] == second[0]).all()
    assert (first[1] == second[1]).all()
    assert (first[1] != other[1]).any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"eligible": [True]}, r"input_ids \(3,\) and eligible \(1,\) must have the same shape"),
        ({"eligible": [1, 1, 0]}, "eligible is int64; it must be bool"),
        ({"probability": 0.0}, r"the masking probability is 0.0; it must be above 0"),
        ({"probability": 1.5}, r"the masking probability is 1.5"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        masked([7, 8, 9], **arguments)
