"""The t-test over seeds by its formula, and where it says nothing."""

import math

import pytest
from scipy.stats import t

from cdlm_lab.metrics.significance import t_test_of_seeds


def test_it_is_welchs_test():
    a, b = [0.80, 0.84, 0.79, 0.83, 0.84], [0.77, 0.79, 0.78, 0.75]
    means = [sum(one) / len(one) for one in (a, b)]
    errors = [  # the square of the standard error of each mean
        sum((x - mean) ** 2 for x in one) / (len(one) - 1) / len(one)
        for one, mean in zip((a, b), means, strict=True)
    ]
    statistic = (means[0] - means[1]) / math.sqrt(sum(errors))
    freedom = sum(errors) ** 2 / (errors[0] ** 2 / 4 + errors[1] ** 2 / 3)
    expected = 2 * t.sf(abs(statistic), df=freedom)
    assert t_test_of_seeds(a, b) == pytest.approx(expected)
    assert t_test_of_seeds(b, a) == pytest.approx(expected)
    assert t_test_of_seeds(a, sorted(b)) == pytest.approx(expected), "a seed has no partner"


@pytest.mark.parametrize(("a", "b"), [([0.5], [0.4]), ([0.5, 0.6], [0.4]), ([0.5, 0.5], [0.6, 0.6])])
def test_a_single_seed_or_no_variation_says_nothing(a: list[float], b: list[float]):
    assert t_test_of_seeds(a, b) is None
