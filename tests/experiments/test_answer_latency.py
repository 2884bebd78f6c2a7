"""Times of systems: what is expected, which questions are timed, and how they are counted."""

import itertools

import pytest

from cdlm_lab.data.records import CandidateSet
from cdlm_lab.experiments import answer_selection as answer_latency
from cdlm_lab.experiments.answer_selection import expected_ratios, timed_sets


def question(count: int) -> CandidateSet:
    return CandidateSet(
        id=f"q{count}",
        question="Who?",
        candidates=tuple(map(str, range(count))),
        correct=(True, *[False] * (count - 1)),
    )


def test_the_papers_formulas():
    assert expected_ratios(5) == (pytest.approx(36 / 20), pytest.approx(6 / 10))


def test_questions_are_timed_up_to_so_many_candidates(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(answer_latency, "MOST_CANDIDATES", 10)
    sets = [question(4), question(6), question(1), question(2)]
    assert list(timed_sets(sets)) == sets[:2]
    assert list(timed_sets(sets[2:])) == sets[2:]
    assert list(timed_sets([question(11), question(1)])) == [question(11)], "at least one"


class Clock:
    """Each reading of a system moves it on."""

    now = 0.0

    def read(self, model, examples, collate, *, batch_size, precision):
        assert batch_size == len(examples), "all groups of a question at once"
        assert precision == "float32"
        self.now += next(model)


class Ranker:
    def __init__(self, seconds):
        self.model, self.collate = iter(seconds), None

    def examples(self, sets):
        return [0] * len(sets[0].candidates)


def test_the_first_round_is_not_counted_and_systems_take_turns(monkeypatch: pytest.MonkeyPatch):
    clock = Clock()
    monkeypatch.setattr(answer_latency, "score_examples", clock.read)
    monkeypatch.setattr(answer_latency.time, "perf_counter", lambda: clock.now)
    sets = [question(2), question(3)]
    slow = [90, 90, 1, 3, 2, 2, 5, 7]  # rounds of two questions
    rankers = {"a": Ranker(slow), "b": Ranker(itertools.repeat(0.5))}
    found = answer_latency._measured(rankers, sets, precision="float32")
    assert (found["a"].seconds, found["a"].fastest, found["a"].slowest) == (2, 2, 6)
    assert (found["b"].seconds, found["b"].runs) == (0.5, 3)
