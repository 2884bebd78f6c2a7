"""Perplexity: worked numbers, a slow second definition, invariants, limits, messages."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.metrics.significance import perplexity

# (loss, tokens) of a cluster; a mean loss of at most 20 nats keeps perplexities finite.
CLUSTERS = st.lists(
    st.tuples(st.floats(0, 20), st.integers(0, 50)).map(lambda pair: (pair[0] * pair[1], pair[1])),
    min_size=1,
    max_size=12,
).filter(lambda clusters: any(tokens for _, tokens in clusters))


def of(clusters, **settings):
    return perplexity(*zip(*clusters, strict=True), **{"n_resamples": 200, **settings})


def test_worked_example():
    # Tokens with probabilities 1/2 1/2 | 1/8 | 1/8: the product is (1/2)^8, so perplexity (2^8)^(1/4) = 4.
    # The mean of the clusters' perplexities, (2 + 8 + 8) / 3 = 6, and exp of the mean of their mean losses,
    # 2^((1 + 3 + 3) / 3) = 5.04, are something else.
    found = perplexity([2 * math.log(2), math.log(8), math.log(8)], [2, 1, 1])
    assert found.value == pytest.approx(4)
    assert (found.clusters, found.tokens) == (3, 4)
    # Resamples of three clusters range from all of the first (2) to none of it (8), which comes with a chance
    # of (1/3)^3 = 3.7% and (2/3)^3 = 29.6%, both above 2.5%.
    assert (found.low, found.high) == (pytest.approx(2), pytest.approx(8))


def test_interval_of_two_clusters_by_enumeration():
    # Both, each twice: draws (1,1), (1,2), (2,1), (2,2) with means 1, 2, 2, 3 nats, a quarter each.
    found = perplexity([1.0, 3.0], [1, 1])
    assert (found.low, found.value, found.high) == tuple(pytest.approx(math.exp(x)) for x in (1, 2, 3))


def test_the_interval_covers_the_truth_about_95_times_in_100():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        tokens = rng.integers(20, 60, size=60)
        loss = rng.gamma(4, 0.5, size=60) * tokens  # mean loss 4 * 0.5 = 2 nats, independent of the tokens
        found = perplexity(loss, tokens, n_resamples=400)
        covered += found.low <= math.exp(2) <= found.high
    # A binomial share of 0.95 in 400 lies within 3 * sqrt(0.95 * 0.05 / 400) = 0.033; percentile intervals of
    # 60 skewed clusters fall a little short of it.
    assert 0.90 <= covered / 400 <= 0.985


def test_the_interval_equals_a_loop_over_resamples():
    loss, tokens = np.array([3.0, 8.0, 1.0, 9.0]), np.array([2, 5, 3, 4])
    rng = np.random.default_rng(11)
    means = []
    for _ in range(300):
        drawn = [int(index) for index in rng.integers(4, size=4)]
        means.append(sum(loss[i] for i in drawn) / sum(tokens[i] for i in drawn))
    found = perplexity(loss, tokens, n_resamples=300, seed=11)
    assert found.low == pytest.approx(math.exp(np.percentile(means, 2.5)))
    assert found.high == pytest.approx(math.exp(np.percentile(means, 97.5)))


@given(CLUSTERS)
def test_value_lies_between_the_clusters_and_within_its_interval_scale(clusters):
    found = of(clusters)
    each = [math.exp(loss / tokens) for loss, tokens in clusters if tokens]
    slack = 1 + 1e-9
    assert min(each) / slack <= found.low <= found.high * slack
    assert found.high <= max(each) * slack
    assert min(each) / slack <= found.value <= max(each) * slack
    assert found.clusters == len(each)


@given(CLUSTERS, st.integers(0, 3), st.integers(0, 5))
def test_clusters_without_tokens_change_nothing(clusters, empty, place):
    place = min(place, len(clusters))
    assert of(clusters) == of([*clusters[:place], *[(0.0, 0)] * empty, *clusters[place:]])


@given(CLUSTERS, st.floats(0, 5))
def test_a_loss_added_to_every_token_multiplies_all_by_its_exponential(clusters, more):
    before, after = of(clusters), of([(loss + more * tokens, tokens) for loss, tokens in clusters])
    for name in ("value", "low", "high"):
        assert getattr(after, name) == pytest.approx(getattr(before, name) * math.exp(more))


@given(CLUSTERS, st.randoms(use_true_random=False))
def test_order_does_not_change_the_value(clusters, random):
    shuffled = random.sample(clusters, len(clusters))
    assert of(shuffled).value == pytest.approx(of(clusters).value)


def test_the_same_seed_gives_the_same_interval():
    loss, tokens = [3.0, 8.0, 1.0, 9.0, 2.0], [2, 5, 3, 4, 2]
    assert perplexity(loss, tokens, seed=1, n_resamples=99) == perplexity(
        loss, tokens, seed=1, n_resamples=99
    )
    assert perplexity(loss, tokens, seed=1, n_resamples=99) != perplexity(
        loss, tokens, seed=2, n_resamples=99
    )


def test_limits():
    certain = perplexity([0.0, 0.0], [3, 4])
    assert (certain.low, certain.value, certain.high) == (1, 1, 1)
    guess = perplexity([7 * math.log(100)], [7])  # a uniform guess over 100 words, one cluster
    assert (guess.low, guess.value, guess.high) == (pytest.approx(100),) * 3
    assert perplexity([2000.0], [1]).value == math.inf  # beyond a float, without a warning


@pytest.mark.parametrize(
    ("loss", "tokens", "message"),
    [
        ([1.0, 2.0], [1], "loss_sums has shape (2,) and token_counts (1,); both must be (clusters,)"),
        ([[1.0]], [[1]], "loss_sums has shape (1, 1) and token_counts (1, 1); both must be (clusters,)"),
        ([1.0, math.nan], [1, 1], "loss_sums[1] is nan; a loss must be finite and not negative"),
        ([1.0, math.inf], [1, 1], "loss_sums[1] is inf; a loss must be finite and not negative"),
        ([-0.5, 1.0], [1, 1], "loss_sums[0] is -0.5; a loss must be finite and not negative"),
        ([1.0, 1.0], [1, -1], "token_counts[1] is -1.0; a count must be whole and not negative"),
        ([1.0, 1.0], [1, 1.5], "token_counts[1] is 1.5; a count must be whole and not negative"),
        ([1.0, 1.0], [1, math.nan], "token_counts[1] is nan; a count must be whole and not negative"),
        ([1.0, 1.0], [1, 0], "loss_sums[1] is 1.0, but token_counts says that no token was predicted"),
        ([0.0], [0], "no cluster has a predicted token; perplexity needs at least one"),
        ([], [], "no cluster has a predicted token; perplexity needs at least one"),
    ],
)
def test_messages(loss, tokens, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        perplexity(loss, tokens)


def test_too_few_resamples():
    with pytest.raises(ValueError, match=r"^n_resamples is 0; it must be at least 1"):
        perplexity([1.0], [1], n_resamples=0)
