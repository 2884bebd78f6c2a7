"""P@1, MAP and MRR of questions with candidates: worked fractions, ties order by order, trec_eval's."""

import re
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import label_ranking_average_precision_score

from cdlm_lab.metrics.ranking import (
    RankedList,
    average_precision,
    mean_average_precision,
    mean_reciprocal_rank,
    precision_at_1,
    reciprocal_rank,
    values_per_group,
)

# By score: right, wrong, right; wrong, right; nothing right; one right, tied with one that is wrong.
GROUPS = [
    ([0.9, 0.5, 0.7], [1, 1, 0]),
    ([-2.0, -1.0], [True, False]),
    ([3.0, 1.0], [0, 0]),
    ([0.0, 0.0], [0, 1]),
]
CANDIDATES = st.lists(st.tuples(st.integers(-1, 1), st.booleans()), min_size=1, max_size=5)


def test_worked_groups():
    values = values_per_group(GROUPS)
    assert list(values) == ["precision_at_1", "average_precision", "reciprocal_rank"]
    assert values["precision_at_1"].tolist() == [1, 0, 0, 1 / 2]
    assert values["average_precision"].tolist() == pytest.approx([(1 + 2 / 3) / 2, 1 / 2, 0, 3 / 4])
    assert values["reciprocal_rank"].tolist() == pytest.approx([1, 1 / 2, 0, 3 / 4])
    assert precision_at_1(GROUPS) == pytest.approx(1.5 / 4)
    assert mean_average_precision(iter(GROUPS)) == pytest.approx((5 / 6 + 1 / 2 + 0 + 3 / 4) / 4)
    assert mean_reciprocal_rank(GROUPS) == pytest.approx((1 + 1 / 2 + 0 + 3 / 4) / 4)


def test_what_trec_eval_gives():
    """Numbers of trec_eval 9 (P_1, map, recip_rank) for three questions; it prints four digits."""
    groups = [
        ([0.1, 0.8, 0.3, 0.7, 0.5, 0.2], [1, 0, 0, 1, 0, 1]),
        ([4.0, 3.0, 2.0, 1.0], [1, 0, 1, 1]),
        ([0.2, 0.1, 0.9], [0, 0, 0]),
    ]
    found = (precision_at_1(groups), mean_average_precision(groups), mean_reciprocal_rank(groups))
    assert [round(value, 4) for value in found] == [0.3333, 0.4241, 0.5]


def _orders(candidates):
    """Every order of the candidates in which no score is higher than one before it, as lists of labels."""
    for order in permutations(candidates):
        scores = [score for score, _ in order]
        if scores == sorted(scores, reverse=True):
            yield [right for _, right in order]


SLOW = {
    "precision_at_1": lambda order: Fraction(order[0]),
    "average_precision": lambda order: (
        sum(Fraction(sum(order[:rank]), rank) for rank in range(1, len(order) + 1) if order[rank - 1])
        / sum(order)
    ),
    "reciprocal_rank": lambda order: Fraction(1, order.index(True) + 1),
}


@given(CANDIDATES)
def test_with_ties_it_is_the_mean_over_all_orders(candidates):
    found = values_per_group([tuple(zip(*candidates, strict=True))])
    orders = list(_orders(candidates))
    for name, measure in SLOW.items():
        mean = sum(measure(order) for order in orders) / len(orders) if any(orders[0]) else 0
        assert found[name][0] == pytest.approx(float(mean), abs=1e-12)


@given(st.lists(st.booleans(), min_size=2, max_size=9).filter(any), st.randoms(use_true_random=False))
def test_without_ties_map_is_that_of_scikit_learn(right, random):
    scores = random.sample(range(30), len(right))
    theirs = label_ranking_average_precision_score([right], [scores])
    assert mean_average_precision([(scores, right)]) == pytest.approx(theirs)


@given(CANDIDATES.filter(lambda candidates: any(right for _, right in candidates)))
def test_a_group_is_the_list_of_the_other_functions(candidates):
    scores, right = map(np.array, zip(*candidates, strict=True))
    ranked = RankedList(scores=scores, relevant=right)
    group = [(scores, right.astype(np.int64))]
    assert mean_average_precision(group) == average_precision(ranked)
    assert mean_reciprocal_rank(group) == reciprocal_rank(ranked)


def test_the_same_scores_for_all_have_the_expectation_of_random_ranking():
    group = [(np.full(5, 0.3), [0, 1, 0, 0, 1])]
    assert precision_at_1(group) == pytest.approx(2 / 5)
    # The first of two right ones among five is at rank 1, 2, 3, 4 in 4, 3, 2 and 1 of 10 orders.
    assert mean_reciprocal_rank(group) == pytest.approx((4 / 1 + 3 / 2 + 2 / 3 + 1 / 4) / 10)


@pytest.mark.parametrize("function", [precision_at_1, mean_average_precision, mean_reciprocal_rank])
@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([], "there are no groups to score"),
        (
            [GROUPS[0], ([1, 2], [1, -100])],
            "groups[1] has the label -100; it must be 0 or 1, and padding left out",
        ),
        ([([1, 2], [0, 2])], "groups[0] has the label 2; it must be 0 or 1, and padding left out"),
        ([([], [])], "groups[0]: scores has shape (0,); it must be (candidates,), not empty"),
        ([([1, np.nan], [0, 1])], "groups[0]: scores[1] is nan; a score must be finite"),
        (
            [GROUPS[0], ([1, 2], [1])],
            "groups[1]: relevant must be bool of shape (2,), True = relevant; got bool (1,)",
        ),
    ],
)
def test_messages(function, groups, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        function(groups)
