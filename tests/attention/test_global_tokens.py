"""Global tokens of the pretraining policies, in NumPy and torch."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from cdlm_lab.attention.global_tokens import GLOBAL_POLICIES, global_tokens

N = -100
LABELS = np.array([[N, 7, N, N, 5, N, N], [8, N, N, N, N, N, N]])

PICTURES = {
    "masked": ["0100100", "1000000"],
    "prefix": ["1100000", "1100000"],  # ceil(0.15 x 7 = 1.05) = 2
    "none": ["0000000", "0000000"],
}


def picture(mask) -> list[str]:
    return ["".join("01"[int(flag)] for flag in row) for row in mask]


@pytest.mark.parametrize("policy", GLOBAL_POLICIES)
def test_pictures_in_numpy_and_torch(policy):
    array = global_tokens(policy, labels=LABELS)
    tensor = global_tokens(policy, labels=torch.tensor(LABELS))
    assert isinstance(array, np.ndarray)
    assert array.dtype == bool
    assert tensor.dtype == torch.bool
    assert picture(array) == picture(tensor) == PICTURES[policy]
    for labels in (LABELS[0], torch.tensor(LABELS[0])):
        assert picture([global_tokens(policy, labels=labels)]) == PICTURES[policy][:1], (
            "a sequence is its row"
        )


def test_prefix_is_the_exact_ceiling():
    """0.15 x 20 is a whole number, which floating point must not turn into one more."""
    for length in [1, 2, 19, 20, 21, 30, 60, 100, 4096]:
        for labels in (np.zeros(length, dtype=int), torch.zeros(length, dtype=torch.int64)):
            prefix = global_tokens("prefix", labels=labels)
            assert int(prefix.sum()) == math.ceil(Fraction(15, 100) * length)
            assert bool(prefix[: int(prefix.sum())].all())


def test_another_name():
    with pytest.raises(ValueError, match="global policy is 'mask'; choose one of masked, prefix, none"):
        global_tokens("mask", labels=LABELS)
