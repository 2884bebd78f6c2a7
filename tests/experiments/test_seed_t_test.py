"""The t-test over seeds by its formula, and where it says nothing."""

import math

import pytest
from scipy.stats import t

from cdlm_lab.experiments.seed_t_test import t_test_of_seeds


def test_it_is_students_paired_test():
    a, b = [0.80, 0.84, 0.79, 0.83, 0.84], [0.77, 0.79, 0.78, 0.75, 0.76]
    differences = [x - y for x, y in zip(a, b, strict=True)]
    mean = sum(differences) / 5
    deviation = math.sqrt(sum((one - mean) ** 2 for one in differences) / 4)
    expected = 2 * t.sf(mean / (deviation / math.sqrt(5)), df=4)
    assert t_test_of_seeds(a, b) == pytest.approx(expected)
    assert t_test_of_seeds(b, a) == pytest.approx(expected)
    assert t_test_of_seeds(a, sorted(b)) != pytest.approx(expected), "seeds belong together"


@pytest.mark.parametrize(
    ("a", "b"),
    [([0.5], [0.4]), ([0.5, 0.6], [0.5, 0.6]), ([0.4, 0.6, 0.3], [0.3, 0.5, 0.2])],
)
def test_a_single_seed_or_one_difference_says_nothing(a: list[float], b: list[float]):
    assert t_test_of_seeds(a, b) is None


def test_as_many_seeds_of_each():
    with pytest.raises(ValueError, match="a has 2 seeds and b 1"):
        t_test_of_seeds([0.1, 0.2], [0.1])
