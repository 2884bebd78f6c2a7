"""How long it will take."""

import math
from pathlib import Path

import pytest
from tiny_grid import plan_of, pretend, write_grid, write_notebook

from cdlm_lab.batch.plan import Remaining, expected_seconds, seconds_left


def work(seconds: float, *after: str, cores: int = 1, gpus: int = 0) -> Remaining:
    return Remaining(seconds=seconds, cores=cores, after=after, gpus=gpus)


@pytest.mark.parametrize(
    ("cores", "at_once", "expected"),
    [
        (math.inf, math.inf, 15),  # a, then c
        (2, math.inf, 15),  # a and b, then c beside what is left of nothing
        (1, math.inf, 22),  # one after the other
        (4, 1, 22),
    ],
)
def test_runs_start_as_soon_as_they_can(cores: float, at_once: float, expected: float):
    todo = {"a": work(10), "b": work(7), "c": work(5, "a", "finished before")}
    assert seconds_left(todo, cores=cores, at_once=at_once) == expected


def test_a_run_that_asks_for_more_than_there_is_gets_all():
    todo = {"a": work(10, cores=8), "b": work(1)}
    assert seconds_left(todo, cores=2, at_once=math.inf) == 11


@pytest.mark.parametrize(("gpus", "expected"), [(math.inf, 10), (2, 14), (1, 24), (0, 24)])
def test_runs_that_need_a_device_wait_for_one(gpus: float, expected: float):
    """Where there is none they will not be made, and it is told how long one would take."""
    todo = {"a": work(10, gpus=1), "b": work(9, gpus=1), "c": work(5, gpus=1), "d": work(2)}
    assert seconds_left(todo, cores=16, at_once=math.inf, gpus=gpus) == expected


def test_nothing_to_do_takes_no_time():
    assert seconds_left({}, cores=1, at_once=1) == 0


def test_what_cannot_begin_is_not_waited_for():
    assert seconds_left({"a": work(3), "b": work(1, "b")}, cores=1, at_once=1) == 3


def test_earlier_runs_tell_how_long_later_ones_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    write_notebook(tmp_path / "other.ipynb")
    tasks = {
        "a": {},
        "same": {"resources": {"minutes": 2}},  # as a task it is new, its notebook is known
        "other": {"notebook": "other.ipynb", "resources": {"minutes": 2}},
    }
    path = write_grid(tmp_path, tasks, seeds=[0, 1, 2])
    assert expected_seconds(plan_of(path), {})["a-s0"] == 30 * 60, "the default"
    pretend(plan_of(path), "a-s0", "a-s1")
    steps = plan_of(path)
    expected = expected_seconds(steps, {"a-s0": 10.0, "a-s1": 30.0})
    assert expected == {
        **{f"a-s{n}": 20.0 for n in range(3)},
        **{f"same-s{n}": 20.0 for n in range(3)},
        **{f"other-s{n}": 120.0 for n in range(3)},
    }
