"""Orders that know nothing of labels, groups of k, the first k, and one ranking of two models."""

import hashlib
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.examples.candidates import (
    cascade_scores,
    chunks,
    fixed_order,
    shuffled_order,
    top_k,
)
from cdlm_lab.examples.passes import Passes

NAN = np.nan


def test_the_fixed_order_is_that_of_the_hashes():
    texts = ["Ada won.", "Bo came second.", "It rained."]
    by_hand = sorted(range(3), key=lambda n: hashlib.sha256(f"q1\0{texts[n]}".encode()).hexdigest())
    found = fixed_order(texts, key="q1")
    assert found.tolist() == by_hand == [0, 2, 1], "the same on every machine"
    assert found.dtype == np.int64
    assert fixed_order([], key="q1").shape == (0,)


@given(st.lists(st.text(max_size=3), unique=True, max_size=7), st.randoms(use_true_random=False))
def test_the_fixed_order_does_not_depend_on_the_order_of_the_file(texts, random):
    moved = random.sample(texts, len(texts))
    first, second = fixed_order(texts, key="q"), fixed_order(moved, key="q")
    assert [texts[n] for n in first] == [moved[n] for n in second]
    assert sorted(first) == list(range(len(texts)))


def test_equal_texts_stay_in_order_and_questions_differ():
    assert fixed_order(["same"] * 4, key="q").tolist() == [0, 1, 2, 3]
    orders = {tuple(fixed_order(["a", "b", "c", "d"], key=f"q{n}")) for n in range(50)}
    assert len(orders) > 15, "24 there are"
    assert fixed_order(["a\ud800", "b"], key="q").tolist() in ([0, 1], [1, 0]), "half a pair of JSON"


def test_a_shuffled_order_is_a_pure_function_of_seed_epoch_and_question():
    settings = {"seed": 1, "epoch": 2, "index": 3}
    first = shuffled_order(30, **settings)
    assert sorted(first) == list(range(30))
    assert (first == shuffled_order(30, **settings)).all()
    for other in ({"seed": 2}, {"epoch": 3}, {"index": 4}):
        assert (first != shuffled_order(30, **{**settings, **other})).any()


def test_groups_have_each_candidate_once():
    order = np.array([3, 0, 4, 1, 2])
    assert [group.tolist() for group in chunks(order, k=2)] == [[3, 0], [4, 1], [2]]
    assert [group.tolist() for group in chunks(order, k=5)] == [[3, 0, 4, 1, 2]]
    assert [group.tolist() for group in chunks(order, k=9)] == [[3, 0, 4, 1, 2]]
    assert chunks(order[:0], k=2) == []
    with pytest.raises(ValueError, match=r"^k is 0; it must be at least 1$"):
        chunks(order, k=0)


def test_the_first_k_and_their_ties():
    scores = np.array([0.2, 0.9, 0.2, 0.5, 0.2])
    assert top_k(scores, np.array([0, 1, 2, 3, 4]), k=3).tolist() == [1, 3, 0]
    assert top_k(scores, np.array([4, 3, 2, 1, 0]), k=3).tolist() == [1, 3, 4], "the order decides ties alone"
    assert top_k(scores, np.array([2, 4, 0, 1, 3]), k=9).tolist() == [1, 3, 2, 4, 0]
    assert top_k(np.array([0.0, -0.0]), np.array([1, 0]), k=1).tolist() == [1], "zeros are equal"


@given(st.lists(st.integers(-2, 2), min_size=1, max_size=6), st.integers(1, 7))
def test_the_first_k_are_none_worse_than_the_others(scores, k):
    scores = np.array(scores, dtype=float)
    chosen = top_k(scores, fixed_order([str(n) for n in range(len(scores))], key="q"), k=k)
    assert len(set(chosen.tolist())) == min(k, len(scores))
    assert (np.diff(scores[chosen]) <= 0).all()
    assert np.delete(scores, chosen).max(initial=-np.inf) <= scores[chosen].min()


def test_a_cascade_by_hand():
    pairwise = np.array([0.9, 0.8, 0.2, 0.2, 0.7, 0.1])
    joint = np.array([-5.0, 3.0, NAN, NAN, -5.0, NAN])
    found = cascade_scores(pairwise, joint)
    # candidate 1, then 0 and 4 tied, below all of them 2 and 3 tied, then 5
    assert found.dtype == np.float64
    assert found[1] > found[0] == found[4] > found[2] == found[3] > found[5]


def test_a_cascade_without_one_of_its_models():
    scores = np.array([0.3, -0.5, 0.3])
    nothing = cascade_scores(scores, np.full(3, NAN))
    assert nothing[0] == nothing[2] > nothing[1]
    everything = cascade_scores(scores, np.array([1.0, 2.0, 0.0]))
    assert np.argsort(-everything).tolist() == [1, 0, 2]


@given(st.lists(st.tuples(st.integers(-1, 1), st.none() | st.integers(-1, 1)), min_size=1, max_size=6))
def test_any_two_of_a_cascade_are_ordered_by_its_definition(candidates):
    pairwise = np.array([first for first, _ in candidates], dtype=float)
    joint = np.array([NAN if second is None else second for _, second in candidates], dtype=float)
    keys = [(1, b) if b is not None else (0, a) for a, b in candidates]
    found = cascade_scores(pairwise, joint)
    for first, key in zip(found, keys, strict=True):
        for second, other in zip(found, keys, strict=True):
            assert (first > second) == (key > other)
            assert (first == second) == (key == other)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: top_k(np.ones(2), np.arange(2), k=0), "k is 0; it must be at least 1"),
        (lambda: top_k(np.array([1, NAN]), np.arange(2), k=1), "scores[1] is nan; a score must be finite"),
        (
            lambda: top_k(np.ones(3), np.array([0, 1]), k=1),
            "order must have each number below 3 once, one for each score",
        ),
        (
            lambda: top_k(np.ones(2), np.array([1, 1]), k=1),
            "order must have each number below 2 once, one for each score",
        ),
        (
            lambda: cascade_scores(np.ones(2), np.ones(3)),
            "pairwise (2,) and joint (3,) must have the same shape (n,)",
        ),
        (
            lambda: cascade_scores(np.array([NAN, 1]), np.ones(2)),
            "pairwise[0] is nan; a score must be finite",
        ),
        (
            lambda: cascade_scores(np.ones(2), np.array([NAN, np.inf])),
            "joint[1] is inf; a score must be finite",
        ),
        (
            lambda: Passes(items=0, seed=0, stream=1, size=None, shuffle=True),
            "there are no examples to make",
        ),
        (
            lambda: Passes(items=1, seed=-1, stream=1, size=None, shuffle=True),
            "seed is -1; it must not be negative",
        ),
        (
            lambda: Passes(items=1, seed=0, stream=1, size=0, shuffle=True),
            "size is 0; it must be at least 1, or None for one pass",
        ),
    ],
)
def test_messages(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()


def test_passes_have_each_item_once_in_a_new_order():
    passes = Passes(items=5, seed=3, stream=1, size=12, shuffle=True)
    found = [passes.item(index) for index in range(12)]
    assert [epoch for epoch, _ in found] == [0] * 5 + [1] * 5 + [2] * 2
    first, second = ([item for _, item in found[start : start + 5]] for start in (0, 5))
    assert sorted(first) == sorted(second) == [0, 1, 2, 3, 4]
    assert first != second
    again = Passes(items=5, seed=3, stream=1, size=12, shuffle=True)
    assert [again.item(index) for index in reversed(range(12))] == found[::-1], "in any order of access"
    assert [Passes(items=5, seed=4, stream=1, size=5, shuffle=True).item(n)[1] for n in range(5)] != first


def test_passes_without_shuffling():
    passes = Passes(items=2, seed=0, stream=1, size=3, shuffle=False)
    assert [passes.item(index) for index in range(3)] == [(0, 0), (0, 1), (1, 0)]
    assert len(passes) == 3
    assert len(Passes(items=2, seed=0, stream=1, size=None, shuffle=True)) == 2
    for index in (-1, 3):
        with pytest.raises(IndexError, match=rf"^there is no example {index}; there are 3, counted from 0$"):
            passes.item(index)
