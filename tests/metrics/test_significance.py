"""Paired tests: enumerated p-values, a slow second definition, invariants, error rates, messages."""

import math
import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.metrics.significance import compare_perplexities, holm, paired_bootstrap, paired_permutation

PAIRS = st.lists(
    st.tuples(st.floats(0, 9), st.floats(0, 9), st.integers(1, 30)), min_size=1, max_size=10
)  # mean loss of a, mean loss of b, tokens


def total(sums: np.ndarray) -> np.ndarray:
    """A statistic that is the sum itself."""
    return sums[..., 0]


def f1(sums: np.ndarray) -> np.ndarray:
    """From true positives, false positives, false negatives."""
    return 2 * sums[..., 0] / (2 * sums[..., 0] + sums[..., 1] + sums[..., 2])


def column(*values: float) -> np.ndarray:
    return np.array(values, dtype=float)[:, None]


def losses(pairs) -> tuple[list[float], list[float], list[int]]:
    return [a * n for a, _, n in pairs], [b * n for _, b, n in pairs], [n for *_, n in pairs]


def test_permutation_p_by_enumeration():
    # Differences 1, 2, 3, 4: of the 16 signings only all plus and all minus reach |10|, so p = 2/16.
    found = paired_permutation(column(1, 2, 3, 4), column(0, 0, 0, 0), total, n_resamples=40_000)
    assert found.difference == 10
    # Three standard errors: 3 * sqrt(1/8 * 7/8 / 40000) = 0.005.
    assert found.p == pytest.approx(2 / 16, abs=0.005)


def test_permutation_of_a_ratio_by_enumeration():
    a = np.array([[8.0, 1, 1], [5, 2, 4], [1, 3, 0], [6, 0, 2], [9, 4, 4]])
    b = np.array([[6.0, 2, 3], [4, 2, 5], [2, 2, 1], [3, 3, 3], [9, 3, 5]])
    observed = abs(f1(a.sum(axis=0)) - f1(b.sum(axis=0)))
    reached = 0
    for swaps in product([False, True], repeat=5):
        swapped = np.array(swaps)[:, None]
        x, y = np.where(swapped, b, a), np.where(swapped, a, b)
        reached += abs(f1(x.sum(axis=0)) - f1(y.sum(axis=0))) >= observed - 1e-12
    found = paired_permutation(a, b, f1, n_resamples=40_000)
    assert found.p == pytest.approx(reached / 32, abs=3 * math.sqrt(0.25 / 40_000))
    assert 2 / 32 <= reached / 32 <= 0.5  # neither end of the scale: the test can tell a wrong p


def test_bootstrap_p_by_enumeration():
    # Differences 3 and -1: draws give 6, 2, 2, -2; one in four is at most 0, so p = 2 * 1/4.
    found = paired_bootstrap(column(3, 0), column(0, 1), total, n_resamples=40_000)
    assert found.difference == 2
    assert (found.low, found.high) == (-2, 6)
    assert found.p == pytest.approx(2 / 4, abs=2 * 3 * math.sqrt(0.25 * 0.75 / 40_000))


def test_bootstrap_equals_a_loop_over_resampled_indices():
    rng = np.random.default_rng(2)
    a, b = rng.integers(1, 20, size=(7, 3)).astype(float), rng.integers(1, 20, size=(7, 3)).astype(float)
    found = paired_bootstrap(a, b, f1, n_resamples=500, seed=9)
    draws = np.random.default_rng(9)
    slow = []
    for _ in range(500):
        index = draws.integers(7, size=7)
        slow.append(float(f1(a[index].sum(axis=0)) - f1(b[index].sum(axis=0))))
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(slow, [2.5, 97.5])))
    rarer = min(sum(d <= 0 for d in slow), sum(d >= 0 for d in slow))
    assert found.p == min(1, 2 * (rarer + 1) / 501)


def test_sums_that_differ_by_rounding_are_ties():
    # The same numbers as whole ones, whose sums are exact, and as tenths, whose sums are not.
    for test, a, b in [(paired_permutation, (9, 2, 7), (9, 1, 4)), (paired_bootstrap, (4, 8, 5), (1, 7, 7))]:
        whole = test(column(*a), column(*b), total, n_resamples=199)
        tenths = test(column(*a) / 10, column(*b) / 10, total, n_resamples=199)
        assert tenths.p == whole.p


def test_p_is_never_zero():
    # b is worse by exactly 1 everywhere: no resample but the data themselves reaches it.
    better, worse = np.ones((40, 1)), np.full((40, 1), 2.0)
    assert paired_permutation(better, worse, total, n_resamples=999).p == 1 / 1000
    assert paired_bootstrap(better, worse, total, n_resamples=999).p == 2 / 1000


@pytest.mark.parametrize("test", [paired_permutation, paired_bootstrap])
def test_no_difference_is_rejected_about_5_times_in_100(test):
    rng = np.random.default_rng(4)
    rejected = 0
    for seed in range(300):
        a, b = rng.normal(size=(2, 50, 1)) + 5
        rejected += test(a, b, total, n_resamples=199, seed=seed).p <= 0.05
    # 3 * sqrt(0.05 * 0.95 / 300) = 0.038 around 0.05.
    assert 0.012 <= rejected / 300 <= 0.088


def test_worked_comparison_of_perplexities():
    # a: (1 + 6) / 4 nats a token, b: (2 + 8) / 4; difference -3/4.
    found = compare_perplexities([1.0, 6.0], [2.0, 8.0], [1, 3])
    assert found.difference == pytest.approx(-3 / 4)
    # Resamples: first twice (1 - 2) / 1 = -1, both -3/4, second twice (12 - 16) / 6 = -2/3.
    assert (found.low, found.high) == (pytest.approx(-1), pytest.approx(-2 / 3))
    assert found.clusters == 2
    # Swaps of two clusters: none and both reach 3/4; one alone gives (2 + 6 - 1 - 8) / 4 = -1/4 or 1/4.
    assert found.p == pytest.approx(1 / 2, abs=0.015)
    assert found.p_bootstrap == 2 / 10_001


def test_a_large_cluster_weighs_more_than_a_small_one():
    # By clusters a wins two of three; by tokens it loses.
    found = compare_perplexities([1.0, 1.0, 300.0], [2.0, 2.0, 200.0], [1, 1, 100])
    assert found.difference == pytest.approx(98 / 102)


@given(PAIRS)
def test_exchanging_the_models_turns_all_round(pairs):
    a, b, tokens = losses(pairs)
    there, back = (compare_perplexities(*x, tokens, n_resamples=99) for x in ((a, b), (b, a)))
    assert back.difference == pytest.approx(-there.difference)
    assert (back.low, back.high) == (pytest.approx(-there.high), pytest.approx(-there.low))
    assert back.p == there.p
    assert back.p_bootstrap == there.p_bootstrap


@given(PAIRS, st.integers(0, 4))
def test_clusters_without_tokens_change_nothing(pairs, empty):
    plain = compare_perplexities(*losses(pairs), n_resamples=99)
    assert plain == compare_perplexities(*losses([*pairs, *[(0.0, 0.0, 0)] * empty]), n_resamples=99)


@given(PAIRS)
def test_a_model_against_itself(pairs):
    a, _, tokens = losses(pairs)
    found = compare_perplexities(a, a, tokens, n_resamples=99)
    assert (found.difference, found.low, found.high) == (0, 0, 0)
    assert (found.p, found.p_bootstrap) == (1, 1)


def test_holm_worked():
    # 3 * 0.01, 2 * 0.02 and 1 * 0.03, which may not fall below the one before it.
    assert holm([0.02, 0.03, 0.01]) == pytest.approx([0.04, 0.04, 0.03])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([0.01, 0.01]) == pytest.approx([0.02, 0.02])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_is_the_step_down_procedure(p_values):
    """At each level, reject from the smallest on while p <= level / (tests left)."""
    adjusted = holm(p_values)
    for level in (0.01, 0.05, 0.3, 0.9):
        rejected: set[int] = set()
        for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
            if (len(p_values) - rank) * p_values[index] > level:
                break
            rejected.add(index)
        assert {index for index, p in enumerate(adjusted) if p <= level} == rejected
    assert all(p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: holm([0.1, 1.2]), "p_values[1] is 1.2; a p-value lies in [0, 1]"),
        (lambda: holm([math.nan]), "p_values[0] is nan; a p-value lies in [0, 1]"),
        (
            lambda: paired_bootstrap([[1.0]], [[1.0], [2.0]], total),
            "counts_a has shape (1, 1) and counts_b (2, 1); both must be (clusters, columns), not empty",
        ),
        (
            lambda: paired_permutation([1.0], [1.0], total),
            "counts_a has shape (1,) and counts_b (1,); both must be (clusters, columns), not empty",
        ),
        (
            lambda: paired_bootstrap(np.ones((0, 2)), np.ones((0, 2)), total),
            "counts_a has shape (0, 2) and counts_b (0, 2); both must be (clusters, columns), not empty",
        ),
        (
            lambda: paired_permutation([[1.0], [2.0]], [[1.0], [math.inf]], total),
            "counts_b[1] is [inf]; counts must be finite",
        ),
        (
            lambda: paired_bootstrap([[0.0, 0, 0], [1, 0, 0]], [[0.0, 0, 0], [1, 0, 0]], f1, n_resamples=99),
            "the statistic of some resample is not finite; leave out clusters with nothing to score, "
            "or define the statistic where its denominator is 0",
        ),
        (
            lambda: paired_permutation([[1.0]], [[1.0]], total, n_resamples=0),
            "n_resamples is 0; it must be at least 1 (10,000 is usual)",
        ),
        (
            lambda: compare_perplexities([1.0], [-1.0], [1]),
            "loss_b[0] is -1.0; a loss must be finite and not negative",
        ),
        (
            lambda: compare_perplexities([1.0, 2.0], [1.0], [1, 1]),
            "loss_b has shape (1,) and token_counts (2,); both must be (clusters,)",
        ),
    ],
)
def test_messages(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()
