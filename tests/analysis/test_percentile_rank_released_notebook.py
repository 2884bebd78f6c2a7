"""What the notebook released with the paper does otherwise (see percentile_rank.py), each on an example
where it gives another number than ours."""

import numpy as np
import pytest

from cdlm_lab.analysis.percentile_rank import source_scores, target_rank


def mask(length: int, *positions: int) -> np.ndarray:
    return np.isin(np.arange(length), positions)


# `[CLS]` source word `</doc-s>` | 4 5 6 7, of which 5 is the target.

SOURCE, FIRST = [1], 4
TARGET, CANDIDATES = mask(8, 5), mask(8, 4, 6, 7)


def rank_as_released(weights, *, target=(5,), shifted=True) -> float:
    """Its rank of a target in the second document, in percent, from one weight for each token (seq,).

    `shifted`: True = the target is looked up where it was before tokens were deleted.
    """
    weights = np.array(weights, dtype=float)
    weights[target[0]] = weights[list(target)].mean()
    kept = np.delete(np.arange(len(weights)), [*target[1:], *SOURCE])
    order = np.argsort(weights[kept], kind="stable")
    first = FIRST if shifted else FIRST - len(SOURCE)
    order = [place for place in order if place >= first]
    sought = target[0] if shifted else target[0] - len(SOURCE)
    return 100 * order.index(sought) / len(order)


def one_head(weights) -> np.ndarray:
    """(layers or nothing, seq) as (layers, 1 head, 1 source token, seq)."""
    return np.atleast_2d(np.asarray(weights, dtype=float))[:, None, None, :]


def our_rank(given, received=None, **options) -> float:
    given = one_head(given)
    scores = source_scores(given, np.zeros_like(given) if received is None else one_head(received), **options)
    return target_rank(scores, TARGET, CANDIDATES)


def test_released_index_is_that_of_another_token():
    weights = [0, 0, 0, 0, 0.1, 0.7, 0, 0.2]  # the target has the most, the token after it nothing
    assert our_rank(weights) == 100
    assert rank_as_released(weights) == 0


def test_released_rank_never_reaches_the_top_and_sees_ties_by_position():
    assert our_rank([0, 0, 0, 0, 0.1, 0.7, 0, 0.2]) == 100
    assert rank_as_released([0, 0, 0, 0, 0.1, 0.7, 0, 0.2], shifted=False) == 75
    even = np.full(8, 1 / 8)
    assert our_rank(even) == 50
    assert rank_as_released(even, shifted=False) == 25  # its place in the document


def test_released_scores_are_of_all_layers():
    given = [[0, 0, 0, 0, 0.2, 0.0, 0.4, 0.4], [0, 0, 0, 0, 0.05, 0.3, 0.1, 0.1]]
    assert our_rank(given) == 100
    assert our_rank(given, layers="all", reduce="mean") == pytest.approx(100 / 3)  # above token 4 alone
    assert rank_as_released(np.mean(given, axis=0), shifted=False) == 25


def test_released_scores_are_of_one_direction():
    given, received = [0, 0, 0, 0, 0.2, 0.1, 0.2, 0.2], [0, 0, 0, 0, 0.1, 0.9, 0.1, 0.1]
    assert our_rank(given, received) == our_rank(given, received, directions="to") == 100
    assert our_rank(given, received, directions="from") == 0
    assert rank_as_released(given, shifted=False) == 0


def test_released_scores_are_not_exponentiated():
    """The mean of exponentials is not the exponential of the mean: targets of several tokens differ."""
    total = [0, 0, 0, 0, 0, 2.0, 0.0, 1.2]  # target 5 and 6: (e^2 + 1) / 2 = 4.2, above e^1.2 = 3.3
    scores = source_scores(one_head(total), one_head(np.zeros(8)))
    assert target_rank(scores, mask(8, 5, 6), mask(8, 4, 7)) == 100
    assert rank_as_released(total, target=(5, 6), shifted=False) == pytest.approx(100 / 3)  # of 4, 5, 7
