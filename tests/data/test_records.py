"""Records are frozen, take keywords only and hold nothing but what they name."""

import dataclasses
import hashlib
from collections import Counter

import pytest

from cdlm_lab.data import records, splits


def test_a_document_needs_an_id_and_a_text_only():
    document = records.Document(id="d", text="Rain fell.")
    assert (document.title, document.sentences, document.facts) == (None, (), ())
    with pytest.raises(dataclasses.FrozenInstanceError):
        document.text = "Snow fell."
    assert len({document, records.Document(id="d", text="Rain fell.")}) == 1


def test_a_hashed_split_follows_from_the_id_alone_in_shares_of_90_5_5():
    n = 20_000
    shares = Counter(splits.hashed_split(f"cluster {index}") for index in range(n))
    # Three standard errors of a share p are 3 * sqrt(p (1 - p) / n): 0.0064 for 0.9 and 0.0046 for 0.05.
    assert shares["train"] / n == pytest.approx(0.90, abs=0.0064)
    assert shares["validation"] / n == pytest.approx(0.05, abs=0.0046)
    assert shares["test"] / n == pytest.approx(0.05, abs=0.0046)
    for name in ("é", "", *(f"cluster {index}" for index in range(200))):
        share = int(hashlib.sha256(name.encode()).hexdigest()[:16], 16) / 16**16
        expected = "train" if share < 0.9 else "validation" if share < 0.95 else "test"
        assert splits.hashed_split(name) == expected


def test_names_of_splits():
    names = {"validation": "validation valid val dev development", "train": "train", "test": "test"}
    for split, also in names.items():
        assert {splits.split_named(name) for name in also.split()} == {split}
    with pytest.raises(ValueError, match=r"^split is 'all'; choose one of train, dev, test$"):
        splits.split_named("all")
