"""Ranking: worked fractions, ties order by order, what must not matter, the released scoring, messages."""

import math
import re
from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, label_ranking_average_precision_score

from cdlm_lab.metrics import ranking
from cdlm_lab.metrics.paired import compare
from cdlm_lab.metrics.ranking import (
    READINGS,
    RankedList,
    average_precision,
    mean_average_precision,
    precision_at,
    reciprocal_rank,
    values_per_group,
    values_per_list,
)

# Up to six candidates with few different scores, so that there are many ties; at least one is relevant.
CANDIDATES = st.lists(st.tuples(st.integers(-1, 2), st.booleans()), min_size=1, max_size=6).filter(
    lambda candidates: any(relevant for _, relevant in candidates)
)


def ranked(scores, relevant) -> RankedList:
    """Make a ranked list; `relevant` has 0 and 1, for brevity."""
    return RankedList(scores=scores, relevant=np.array(relevant, dtype=bool))


def of(candidates) -> RankedList:
    return ranked(*zip(*candidates, strict=True))


def p_at(one: RankedList, places) -> dict[str, list[float]]:
    return {reading: [precision_at(one, n, reading=reading) for n in places] for reading in READINGS}


def rank_of_first(order) -> int:
    return order.index(True) + 1


def mean_of_precisions(order) -> Fraction:
    ranks = [rank for rank, relevant in enumerate(order, start=1) if relevant]
    return sum(Fraction(sum(order[:rank]), rank) for rank in ranks) / len(ranks)


def expected(candidates, measure) -> float:
    """Return the mean of a measure over all orders of the candidates in which scores do not increase."""
    values = []
    for order in permutations(candidates):
        if all(before[0] >= after[0] for before, after in pairwise(order)):
            values.append(Fraction(measure([relevant for _, relevant in order])))
    return float(sum(values) / len(values))


SLOW_AT = {
    "hit": lambda order, n: int(any(order[:n])),
    "precision": lambda order, n: Fraction(sum(order[:n]), n),
}


def test_worked_list_without_ties():
    one = ranked([0.6, 0.9, 0.8, 0.7], [1, 0, 0, 1])  # by score: no, no, yes, yes
    assert reciprocal_rank(one) == pytest.approx(1 / 3)
    assert average_precision(one) == pytest.approx((1 / 3 + 2 / 4) / 2)
    at = p_at(one, range(1, 6))
    assert at["hit"] == [0, 0, 1, 1, 1]
    assert at["precision"] == pytest.approx([0, 0, 1 / 3, 2 / 4, 2 / 5])  # four candidates, still over five


def test_worked_list_with_ties():
    # One above, then three with one score, two of them relevant: TTF, TFT and FTT are as likely.
    one = ranked([1, 1, 3, 1], [1, 0, 0, 1])
    # Rank 2, 2, 3. Not 1 / (mean rank 7/3) = 3/7, nor that of the middle of the group, 1/3.
    assert reciprocal_rank(one) == pytest.approx((1 / 2 + 1 / 2 + 1 / 3) / 3) == pytest.approx(4 / 9)
    assert average_precision(one) == pytest.approx((7 / 12 + 6 / 12 + 5 / 12) / 3)
    at = p_at(one, range(1, 5))
    assert at["hit"] == pytest.approx([0, 2 / 3, 1, 1])
    assert at["precision"] == pytest.approx([0, (2 / 3) / 2, (4 / 3) / 3, 2 / 4])
    # A model that gives all the same score has chance. One of four: (1 + 1/2 + 1/3 + 1/4) / 4 = 25/48.
    for place in range(4):
        one = ranked([0.5] * 4, np.arange(4) == place)
        assert reciprocal_rank(one) == average_precision(one) == pytest.approx(25 / 48)
        assert p_at(one, (1, 2, 3, 4))["hit"] == pytest.approx([1 / 4, 2 / 4, 3 / 4, 1])
    # Zero of either sign is a tie and the nearest float is not.
    assert reciprocal_rank(ranked([0.0, -0.0], [0, 1])) == pytest.approx(3 / 4)
    assert reciprocal_rank(ranked([np.nextafter(1, 2), 1.0], [0, 1])) == 1 / 2


@given(CANDIDATES, st.integers(1, 8))
def test_every_measure_equals_the_mean_over_all_orders(candidates, n):
    one = of(candidates)
    first = expected(candidates, lambda order: Fraction(1, rank_of_first(order)))
    assert reciprocal_rank(one) == pytest.approx(first, abs=1e-12)
    assert average_precision(one) == pytest.approx(expected(candidates, mean_of_precisions), abs=1e-12)
    for reading, slow in SLOW_AT.items():
        mean = expected(candidates, lambda order, slow=slow: slow(order, n))
        assert precision_at(one, n, reading=reading) == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize(
    ("above", "size", "relevant"), [(0, 900, 3), (7, 2000, 1), (5, 400, 390), (3, 50, 50)]
)
def test_large_ties_keep_their_precision(above, size, relevant):
    one = ranked([2] * above + [1] * size, [0] * above + [1] * relevant + [0] * (size - relevant))
    # The first relevant at place j of the group: the others are among the size - j places after it.
    chances = [
        Fraction(math.comb(size - j, relevant - 1), math.comb(size, relevant))
        for j in range(1, size - relevant + 2)
    ]
    assert sum(chances) == 1
    first = sum(chance / (above + j) for j, chance in enumerate(chances, start=1))
    assert reciprocal_rank(one) == pytest.approx(float(first), rel=1e-10)
    hit = precision_at(one, above + 10, reading="hit")
    assert hit == pytest.approx(float(sum(chances[:10])), rel=1e-10)


@given(st.lists(st.booleans(), min_size=2, max_size=12).filter(any), st.randoms(use_true_random=False))
def test_average_precision_without_ties_is_that_of_scikit_learn(relevant, random):
    scores = random.sample(range(50), len(relevant))
    theirs = average_precision_score(relevant, scores)
    assert average_precision(ranked(scores, relevant)) == pytest.approx(theirs)
    theirs = label_ranking_average_precision_score([relevant], [scores])
    assert mean_average_precision([(scores, relevant)]) == pytest.approx(theirs)


@given(CANDIDATES, st.integers(1, 8), st.randoms(use_true_random=False))
def test_limits_and_what_is_inert(candidates, n, random):
    shuffled = random.sample(candidates, len(candidates))
    scaled = [(math.exp(score) - 5, relevant) for score, relevant in candidates]
    for reading in READINGS:
        values = [values_per_list([of(c)], reading=reading) for c in (candidates, shuffled, scaled)]
        assert values[0] == values[1] == values[2]
    values = values_per_list([of(candidates)], at=[n, n + 1])
    assert all(0 <= value <= 1 + 1e-12 for (value,) in values.values())
    assert values[f"at_{n}"] <= values[f"at_{n + 1}"] + 1e-12
    perfect = of([(int(relevant), relevant) for _, relevant in candidates])
    assert reciprocal_rank(perfect) == average_precision(perfect) == pytest.approx(1)
    assert precision_at(perfect, n, reading="hit") == 1
    scores, right = map(np.array, zip(*candidates, strict=True))  # a group is a ranked list
    values = values_per_group([(scores, right.astype(np.int64))])
    assert values["average_precision"] == average_precision(of(candidates))
    assert values["reciprocal_rank"] == reciprocal_rank(of(candidates))
    assert values["precision_at_1"] == precision_at(of(candidates), 1, reading="precision")


THREE = [
    ranked([3, 2, 1], [1, 0, 0]),  # rank 1
    ranked([3, 2, 1], [0, 1, 1]),  # ranks 2 and 3
    ranked([1, 1], [0, 1]),  # rank 1 or 2
]


def test_values_of_lists():
    values = values_per_list(iter(THREE), at=(1, 2))
    assert values["reciprocal_rank"] == pytest.approx([1, 1 / 2, 3 / 4])
    assert values["average_precision"] == pytest.approx([1, (1 / 2 + 2 / 3) / 2, 3 / 4])
    assert values["at_1"] == pytest.approx([1, 0, 1 / 2])
    assert values["at_2"].tolist() == [1, 1, 1]
    assert values_per_list(THREE, at=[2], reading="precision")["at_2"] == pytest.approx([1 / 2] * 3)
    assert list(values_per_list(THREE)) == ["reciprocal_rank", "average_precision", "at_1", "at_5", "at_10"]
    better = values["reciprocal_rank"]
    a, b = (np.stack([each, np.ones(3)], axis=1) for each in (better, better * [True, False, True]))
    assert compare(a, b, lambda sums: sums[..., 0] / sums[..., 1]).difference == pytest.approx((1 / 2) / 3)


def released(values, **settings) -> dict[str, float]:
    points = ranking.released_points(values, **settings)
    return {name: points.sum() / out_of.sum() for name, (points, out_of) in points.items()}


def test_the_released_code_scores_unrelated_pairs_too():
    """Three related pairs, the second one missed, and two unrelated ones, the second called related."""
    decisions = {"detected": np.array([True, False, True]), "rejected": np.array([True, False])}
    scores = released(values_per_list(THREE, at=[1, 2]), reading="hit", **decisions)
    assert scores == {
        "reciprocal_rank": pytest.approx((1 + 1 / 21 + 3 / 4 + 1 + 1 / 21) / 5),
        "at_1": pytest.approx((1 + 0 + 1 / 2 + 1 + 0) / 5),
        "at_2": pytest.approx((1 + 0 + 1 + 1 + 0) / 5),
    }
    scores = released(
        values_per_list(THREE, at=[1, 2], reading="precision"), reading="precision", **decisions
    )
    assert scores == {
        "reciprocal_rank": pytest.approx((1 + 1 / 60 + 3 / 4 + 1 + 1 / 60) / 5),
        "at_1": pytest.approx((1 + 0 + 1 / 2 + 1 + 0) / 5),
        # sentences of pairs that were found, and pairs: 1 of 2, 0 of 1, 1 of 2; 1 of 1, 0 of 1
        "at_2": pytest.approx((1 + 0 + 1 + 1 + 0) / (2 + 1 + 2 + 1 + 1)),
    }


def slowly_released(pairs, *, n: int, reading: str) -> tuple[Fraction, Fraction]:
    """Compute MRR and P@N by counting, as the released scripts do. `pairs`: (is the pair related, was it
    called so, whether each sentence is true in the order of the ranking)."""
    mrr = hits = out_of = Fraction(0)
    for related, called, order in pairs:
        if related and called:
            mrr += Fraction(1, rank_of_first(order))
            if reading == "hit":
                hits, out_of = hits + any(order[:n]), out_of + 1
            else:
                hits, out_of = hits + sum(order[:n]), out_of + n
        elif related == called:
            mrr, hits, out_of = mrr + 1, hits + 1, out_of + 1
        else:
            mrr, out_of = mrr + Fraction(1, 21 if reading == "hit" else 60), out_of + 1
    return mrr / len(pairs), hits / out_of


ORDER = st.lists(st.booleans(), min_size=1, max_size=9).filter(any)
DECIDED = st.lists(st.tuples(st.booleans(), st.booleans(), ORDER), min_size=1, max_size=12)


@given(
    DECIDED.filter(lambda pairs: any(related for related, _, _ in pairs)),
    st.integers(1, 10),
    st.sampled_from(READINGS),
)
def test_released_points_equal_the_slow_definition(pairs, n, reading):
    related = [(called, order) for is_related, called, order in pairs if is_related]
    lists = [ranked(-np.arange(len(order)), order) for _, order in related]
    scores = released(
        values_per_list(lists, at=[n], reading=reading),
        reading=reading,
        detected=[called for called, _ in related],
        rejected=[not called for is_related, called, _ in pairs if not is_related],
    )
    mrr, at = slowly_released(pairs, n=n, reading=reading)
    assert scores["reciprocal_rank"] == pytest.approx(float(mrr))
    assert scores[f"at_{n}"] == pytest.approx(float(at))


def test_random_scores_have_the_random_row_of_table_4():
    """Documents of 2, 7 and 15 sentences, one of them gold, in the mixture that gives the paper's P@N if a
    coin decides whether documents are related: its MRR is then the paper's, too."""
    lengths = {2: 132, 7: 394, 15: 474}
    lists = [ranked(np.zeros(n), np.arange(n) == 0) for n, count in lengths.items() for _ in range(count)]
    values = values_per_list(lists)
    coin = np.arange(1000) % 2 == 0
    for chance in (np.full(1000, 0.5), np.random.default_rng(0).permutation(coin)):
        scores = released(values, reading="hit", detected=chance, rejected=coin)
        paper = {"reciprocal_rank": 0.3611, "at_10": 0.4603, "at_5": 0.3930, "at_1": 0.2883}
        assert scores == pytest.approx(paper, abs=0.001 if chance[0] == 0.5 else 0.01)
    # what is left of P@N without the half of all pairs that is unrelated, and what a coin throws away
    left = [(at - 0.25) / 0.25 for at in (0.2883, 0.3930, 0.4603)]
    assert left == pytest.approx([values[name].mean() for name in ("at_1", "at_5", "at_10")], abs=0.002)


# By score: right, wrong, right; wrong, right; nothing right; one right, tied with one that is wrong.
GROUPS = [
    ([0.9, 0.5, 0.7], [1, 1, 0]),
    ([-2.0, -1.0], [True, False]),
    ([3.0, 1.0], [0, 0]),
    ([0.0, 0.0], [0, 1]),
]


def test_worked_groups():
    values = values_per_group(GROUPS)
    assert list(values) == ["precision_at_1", "average_precision", "reciprocal_rank"]
    assert values["precision_at_1"].tolist() == [1, 0, 0, 1 / 2]
    assert values["average_precision"].tolist() == pytest.approx([(1 + 2 / 3) / 2, 1 / 2, 0, 3 / 4])
    assert values["reciprocal_rank"].tolist() == pytest.approx([1, 1 / 2, 0, 3 / 4])
    assert mean_average_precision(iter(GROUPS)) == pytest.approx((5 / 6 + 1 / 2 + 0 + 3 / 4) / 4)
    # Numbers of trec_eval 9 (P_1, map, recip_rank) for three questions; it prints four digits.
    groups = [
        ([0.1, 0.8, 0.3, 0.7, 0.5, 0.2], [1, 0, 0, 1, 0, 1]),
        ([4.0, 3.0, 2.0, 1.0], [1, 0, 1, 1]),
        ([0.2, 0.1, 0.9], [0, 0, 0]),
    ]
    means = [values.mean() for values in values_per_group(groups).values()]
    assert [round(value, 4) for value in means] == [0.3333, 0.4241, 0.5]


NOTHING = ranked([1, 2], [0, 0])
NO_RELEVANT = "has no relevant candidate; leave such lists out"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RankedList(scores=[], relevant=[]), "scores has shape (0,); it must be (candidates,), not"),
        (lambda: RankedList(scores=[[1.0]], relevant=[[True]]), "scores has shape (1, 1); it must be"),
        (lambda: RankedList(scores=1.0, relevant=True), "scores has shape (); it must be (candidates,), not"),
        (lambda: ranked([1, math.nan], [1, 0]), "scores[1] is nan; a score must be finite"),
        (lambda: ranked([-math.inf, 1], [1, 0]), "scores[0] is -inf; a score must be finite"),
        (lambda: ranked([1, 2], [1]), "relevant must be bool of shape (2,), True = relevant; got bool (1,)"),
        (lambda: RankedList(scores=[1, 2], relevant=[0, 1]), "must be bool of shape (2,), True = relevant;"),
        (lambda: values_per_list([]), "there are no lists to score"),
        (lambda: values_per_list([THREE[0], NOTHING]), f"lists[1] {NO_RELEVANT}"),
        (lambda: values_per_list(THREE, at=[1, 0]), "N is 0; it must be whole and at least 1"),
        (lambda: values_per_list(THREE, at=[2.5]), "N is 2.5; it must be whole and at least 1"),
        (lambda: values_per_list(THREE, reading="recall"), "reading is 'recall'; choose one of"),
        (lambda: reciprocal_rank(NOTHING), f"the list {NO_RELEVANT}"),
        (lambda: average_precision(NOTHING), f"the list {NO_RELEVANT}"),
        (lambda: precision_at(NOTHING, 1, reading="hit"), f"the list {NO_RELEVANT}"),
        (lambda: precision_at(NOTHING, 1, reading="at"), "reading is 'at'"),
        (lambda: precision_at(THREE[0], -1, reading="hit"), "N is -1; it must be whole and at least 1"),
        (lambda: values_per_group([]), "there are no groups to score"),
        (lambda: values_per_group([GROUPS[0], ([1, 2], [1, -100])]), "groups[1] has the label -100; it must"),
        (lambda: values_per_group([([1, 2], [0, 2])]), "groups[0] has the label 2; it must be 0 or 1, and"),
        (lambda: values_per_group([([], [])]), "groups[0]: scores has shape (0,); it must be (candidates,),"),
        (lambda: values_per_group([([1, np.nan], [0, 1])]), "groups[0]: scores[1] is nan; a score must be"),
        (lambda: values_per_group([([1, 2], [1])]), "groups[0]: relevant must be bool of shape (2,), True ="),
    ],
)
def test_messages(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
