"""References between runs, and the order that they make."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_grid import PARAMETERS, jobs_of, plan_of, write_grid, write_notebook

from cdlm_lab.batch.marked_yaml import GridError


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


TRAIN = {"axes": {"name": ["big", "small"]}}


def reads(text: str, tmp_path: Path, **more: object) -> dict:
    """name -> (reads, after) of the runs of a task that holds a reference to `train`."""
    tasks = {"use": {"parameters": {"reads": text}, **more}, "train": TRAIN}
    jobs = jobs_of(write_grid(tmp_path, tasks, seeds=[0, 1]))
    return {n: (job.parameters["reads"], job.after) for n, job in jobs.items() if job.task.name == "use"}


def test_a_reference_means_the_run_with_the_same_seed(tmp_path: Path):
    assert reads("{train:name=big}/model", tmp_path) == {
        "use-s0": ("runs/train-big-s0/model", ("train-big-s0",)),
        "use-s1": ("runs/train-big-s1/model", ("train-big-s1",)),
    }


def test_a_reference_means_the_run_with_the_same_value_of_an_axis(tmp_path: Path):
    found = reads("{train}", tmp_path, axes={"name": ["small"]})
    assert found["use-small-s1"] == ("runs/train-small-s1", ("train-small-s1",))


def test_stars_mean_all(tmp_path: Path):
    found = reads("{train:name=*}", tmp_path)
    assert found["use-s1"][0] == "runs/train-big-s1 runs/train-small-s1"
    found = reads("{train:name=*,seed=*}", tmp_path, seeds=False)
    assert len(found["use"][1]) == 4
    found = reads("{train:seed=*}", tmp_path, seeds=False)
    assert len(found["use"][1]) == 4, "a star somewhere says that several are meant"


def test_several_references_in_one_text(tmp_path: Path):
    found = reads("{train:name=big} and {train:name=small,seed=1}", tmp_path)
    assert found["use-s0"] == (
        "runs/train-big-s0 and runs/train-small-s1",
        ("train-big-s0", "train-small-s1"),
    )


def test_a_reference_that_could_mean_several_says_which(tmp_path: Path):
    with pytest.raises(GridError) as raised:
        reads("{train}", tmp_path)
    assert "which of train-big-s0, train-small-s0? Say it, for example {train:name=big}, or * for all" in str(
        raised.value
    )


def test_a_seed_that_the_other_task_does_not_have(tmp_path: Path):
    tasks = {"use": {"parameters": {"reads": "{train}"}}, "train": {"seeds": [0]}}
    with pytest.raises(GridError, match="no run of train has seed 1: there are 0"):
        jobs_of(write_grid(tmp_path, tasks, seeds=[0, 1]))


def test_runs_of_one_task_may_read_another(tmp_path: Path):
    """The variants start from the base, which is one of them."""
    points = {"base": {"name": "base"}, "late": {"name": "late", "reads": "{train:kind=base}/model"}}
    jobs = jobs_of(write_grid(tmp_path, {"train": {"axes": {"kind": points}}}))
    assert jobs["train-late"].after == ("train-base",)


def test_order_is_that_of_the_dependencies_then_of_the_file(tmp_path: Path):
    tasks = {"z": {"after": ["m"]}, "a": {}, "m": {"parameters": {"reads": "{q}"}}, "q": {}}
    assert list(jobs_of(write_grid(tmp_path, tasks))) == ["q", "m", "z", "a"]


def test_a_circle_is_shown(tmp_path: Path):
    tasks = {"a": {"parameters": {"reads": "{b}"}}, "b": {"after": ["c"]}, "c": {"after": ["a"]}}
    with pytest.raises(GridError, match="runs wait for each other: a -> b -> c -> a"):
        jobs_of(write_grid(tmp_path, tasks))


def test_a_long_chain(tmp_path: Path):
    tasks = {f"t{n}": {"after": [f"t{n + 1}"]} for n in range(1500)} | {"t1500": {}}
    (tmp_path / "grid.yaml").write_text(
        json.dumps({"runs": "r", "tasks": {n: {"notebook": "tiny.ipynb", **t} for n, t in tasks.items()}})
    )
    write_notebook(tmp_path / "tiny.ipynb")
    assert list(jobs_of(tmp_path / "grid.yaml")) == [f"t{n}" for n in range(1500, -1, -1)]


def test_more_runs_than_anybody_means(tmp_path: Path):
    values = [float(n) for n in range(50)]
    axes = {name: {f"v{n}": {name: value} for n, value in enumerate(values)} for name in ("rate", "maybe")}
    axes |= {"x": {f"v{n}": {"steps": n} for n in range(50)}}
    with pytest.raises(GridError, match="task a: 125000 runs, at most 100000: shorten an axis"):
        jobs_of(write_grid(tmp_path, {"a": {"axes": axes}}))


def calls_of(function: Callable[[], object]) -> int:
    """How many calls it takes, of functions in Python and in C."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def test_twice_the_seeds_are_twice_the_work(tmp_path: Path):
    """Reading, making runs of it and planning them; one of the tasks reads the run with its own seed."""
    tasks = {"use": {"parameters": {"reads": "{train:name=big}"}, "after": ["last"]}, "train": TRAIN}
    tasks["last"] = {"seeds": False}
    few, many = (write_grid(tmp_path, tasks, seeds=list(range(n))).read_text() for n in (200, 400))
    counts = []
    for text in (few, few, many):
        (tmp_path / "grid.yaml").write_text(text)
        counts.append(calls_of(lambda: plan_of(tmp_path / "grid.yaml")))
    assert counts[2] < 2.2 * counts[1], counts  # the first call also imports


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{v}/x", "data/x"),
        ("{runs}", "runs"),
        ("{name}", "n"),
        ("{{v}}", "{v}"),
        ('{"a": {"b": 1}}', '{"a": {"b": 1}}'),
        ("{}", "{}"),
    ],
)
def test_what_else_stands_in_braces(text: str, expected: str, tmp_path: Path):
    tasks = {"a": {"axes": {"name": ["n"]}, "parameters": {"reads": text, "maybe": [{"k": text}]}}}
    (job,) = jobs_of(write_grid(tmp_path, tasks, variables={"v": "data"})).values()
    assert job.parameters["reads"] == expected
    assert job.parameters["maybe"] == [{"k": expected}], "inside lists and mappings too"
    assert not job.after


def test_effective_parameters_are_the_notebook_s_with_the_grid_s_over_them(tmp_path: Path):
    (job,) = jobs_of(write_grid(tmp_path, {"a": {"parameters": {"rate": 2}}})).values()
    assert (job.effective["rate"], job.effective["steps"]) == (2, 3)
    assert "run_folder" not in job.effective


@pytest.mark.parametrize(
    ("parallel", "asked", "gpus"),
    [("", 1, 1), ("ddp 8", 1, 8), ("fsdp 2", 4, 4), ("fsdp 8 on 2 machines at a:1", 1, 8), ("ddp 8", 0, 0)],
)
def test_a_run_asks_for_a_gpu_for_each_of_its_processes(parallel: str, asked: int, gpus: int, tmp_path: Path):
    write_notebook(tmp_path / "tiny.ipynb", parameters=f'{PARAMETERS}\nparallel = ""')
    task = {"parameters": {"parallel": parallel}, "resources": {"gpus": asked, "cores": 3}}
    (job,) = jobs_of(write_grid(tmp_path, {"train": task}, seeds=[0])).values()
    assert (job.resources.gpus, job.resources.cores) == (gpus, 3)
