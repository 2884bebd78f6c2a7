"""Global tokens of the pretraining policies, in NumPy and torch."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from cdlm_lab.attention.global_tokens import GLOBAL_POLICIES, check_policy, global_tokens

N = -100
LABELS = np.array([[N, 7, N, N, 5, N, N], [8, N, N, N, N, N, N]])
PRESENT = np.array([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0]], dtype=bool)

PICTURES = {
    "masked": ["0100100", "1000000"],
    "prefix": ["1100000", "1000000"],  # ceil(0.15 x 7 = 1.05) = 2 and ceil(0.15 x 4 = 0.6) = 1
    "none": ["0000000", "0000000"],
}


def picture(mask) -> list[str]:
    return ["".join("01"[int(flag)] for flag in row) for row in mask]


@pytest.mark.parametrize("policy", GLOBAL_POLICIES)
def test_pictures_in_numpy_and_torch(policy):
    check_policy(policy)
    array = global_tokens(policy, labels=LABELS, present=PRESENT)
    tensor = global_tokens(policy, labels=torch.tensor(LABELS), present=torch.tensor(PRESENT))
    assert isinstance(array, np.ndarray)
    assert array.dtype == bool
    assert tensor.dtype == torch.bool
    assert picture(array) == picture(tensor) == PICTURES[policy]
    for labels in (LABELS[0], torch.tensor(LABELS[0])):
        assert picture([global_tokens(policy, labels=labels)]) == PICTURES[policy][:1], (
            "a sequence is its row"
        )
    assert not global_tokens(policy, labels=LABELS, present=np.zeros((2, 7), dtype=bool)).any()


@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.15, 1 / 3, 1.0])
def test_prefix_is_the_exact_ceiling(fraction):
    """0.1 x 30 and 0.15 x 20 are whole numbers, which floating point must not turn into one more."""
    exact = Fraction(str(fraction)).limit_denominator(1_000_000)
    for length in [1, 2, 19, 20, 21, 30, 60, 100, 4096]:
        for labels in (np.zeros(length, dtype=int), torch.zeros(length, dtype=torch.int64)):
            prefix = global_tokens("prefix", labels=labels, prefix_fraction=fraction)
            assert int(prefix.sum()) == math.ceil(exact * length)
            assert bool(prefix[: int(prefix.sum())].all())


def test_padding_on_the_left_does_not_count():
    present = np.array([0, 0, 0, 1, 1, 1, 1], dtype=bool)
    assert picture([global_tokens("prefix", labels=LABELS[1], present=present)]) == ["0001000"]


@pytest.mark.parametrize(
    ("policy", "arguments", "message"),
    [
        ("mask", {}, "unknown global policy 'mask'; choose one of masked, prefix, none"),
        ("prefix", {"prefix_fraction": 1.5}, "prefix_fraction is 1.5; it must lie between 0 and 1"),
        ("prefix", {"present": PRESENT[0]}, r"present has shape \(7,\), but labels \(2, 7\)"),
        ("prefix", {"present": PRESENT.astype(int)}, "present is int64; it must be bool"),
    ],
)
def test_bad_input(policy, arguments, message):
    with pytest.raises(ValueError, match=message):
        global_tokens(policy, labels=LABELS, **arguments)
