"""Names of splits, and the stable choice of one."""

import hashlib
from collections import Counter

import pytest

from cdlm_lab.data.records import hashed_split


def test_shares_are_90_5_5():
    n = 20_000
    shares = Counter(hashed_split(f"cluster {index}") for index in range(n))
    # Three standard errors of a share p are 3 * sqrt(p (1 - p) / n): 0.0064 for 0.9 and 0.0046 for 0.05.
    assert shares["train"] / n == pytest.approx(0.90, abs=0.0064)
    assert shares["validation"] / n == pytest.approx(0.05, abs=0.0046)
    assert shares["test"] / n == pytest.approx(0.05, abs=0.0046)


def test_the_choice_follows_from_the_id_alone():
    for name in ("é", "", *(f"cluster {index}" for index in range(200))):
        share = int(hashlib.sha256(name.encode()).hexdigest()[:16], 16) / 16**16
        expected = "train" if share < 0.9 else "validation" if share < 0.95 else "test"
        assert hashed_split(name) == expected


def test_unknown_split():
    check_split("validation")
    with pytest.raises(ValueError, match=r"^split is 'val'; choose one of train, validation, test$"):
        check_split("val")
