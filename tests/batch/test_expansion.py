"""References between runs, and the order that they make."""

import json
import re
from pathlib import Path

import pytest
from tiny_grid import PARAMETERS, jobs_of, plan_of, write_grid, write_notebook
from work import calls_of

from cdlm_lab.batch.grid import GridError

TRAIN = {"axes": {"name": ["big", "small"]}}


def reads(text: str, **more: object) -> dict:
    """name -> (reads, after) of the runs of a task that holds a reference to `train`."""
    tasks = {"use": {"parameters": {"reads": text}, **more}, "train": TRAIN}
    jobs = jobs_of(write_grid(Path.cwd(), tasks, seeds=[0, 1]))
    return {n: (job.parameters["reads"], job.after) for n, job in jobs.items() if job.task.name == "use"}


@pytest.mark.parametrize(
    ("text", "more", "run", "value", "after"),
    [
        # the run with the same seed, or with the same value of an axis
        ("{train:name=big}/model", {}, "use-s1", "runs/train-big-s1/model", ["train-big-s1"]),
        ("{train}", {"axes": {"name": ["small"]}}, "use-small-s1", "runs/train-small-s1", None),
        ("{train:name=*}", {}, "use-s1", "runs/train-big-s1 runs/train-small-s1", None),
        (
            "{train:name=big} and {train:name=small,seed=1}",
            {},
            "use-s0",
            "runs/train-big-s0 and runs/train-small-s1",
            ["train-big-s0", "train-small-s1"],
        ),
    ],
)
def test_references(text: str, more: dict, run: str, value: str, after: list[str] | None):
    resolved, waits = reads(text, **more)[run]
    assert resolved == value
    assert list(waits) == (after or [name.removeprefix("runs/") for name in value.split()])


@pytest.mark.parametrize("text", ["{train:name=*,seed=*}", "{train:seed=*}"])
def test_a_star_somewhere_says_that_several_are_meant(text: str):
    assert len(reads(text, seeds=False)["use"][1]) == 4


def test_a_reference_that_means_several_or_none_says_what_there_is():
    message = "which of train-big-s0, train-small-s0? Say it, for example {train:name=big}, or * for all"
    with pytest.raises(GridError, match=re.escape(message)):
        reads("{train}")
    tasks = {"use": {"parameters": {"reads": "{train}"}}, "train": {"seeds": [0]}}
    with pytest.raises(GridError, match="no run of train has seed 1: there are 0"):
        jobs_of(write_grid(Path.cwd(), tasks, seeds=[0, 1]))


def test_runs_of_one_task_may_read_another():
    """The variants start from the base, which is one of them."""
    points = {"base": {"name": "base"}, "late": {"name": "late", "reads": "{train:kind=base}/model"}}
    jobs = jobs_of(write_grid(Path.cwd(), {"train": {"axes": {"kind": points}}}))
    assert jobs["train-late"].after == ("train-base",)


def test_order_is_that_of_the_dependencies():
    tasks = {"z": {"after": ["m"]}, "a": {}, "m": {"parameters": {"reads": "{q}"}}, "q": {}}
    assert list(jobs_of(write_grid(Path.cwd(), tasks))) == ["a", "q", "m", "z"]
    chain = {f"t{n}": {"notebook": "tiny.ipynb", "after": [f"t{n + 1}"]} for n in range(1500)}
    chain["t1500"] = {"notebook": "tiny.ipynb"}
    Path("grid.yaml").write_text(json.dumps({"runs": "r", "tasks": chain}))
    assert list(jobs_of(Path("grid.yaml"))) == [f"t{n}" for n in range(1500, -1, -1)]
    circle = {"a": {"parameters": {"reads": "{b}"}}, "b": {"after": ["c"]}, "c": {"after": ["a"]}}
    with pytest.raises(GridError, match="runs wait for each other: a -> b -> c -> a"):
        jobs_of(write_grid(Path.cwd(), circle))


def test_more_runs_than_anybody_means():
    axes = {
        name: {f"v{n}": {name: kind(n)} for n in range(50)}
        for name, kind in (("rate", float), ("maybe", float), ("steps", int))
    }
    with pytest.raises(GridError, match="task a: 125000 runs, at most 100000: shorten an axis"):
        jobs_of(write_grid(Path.cwd(), {"a": {"axes": axes}}))


def test_twice_the_seeds_are_twice_the_work(tmp_path: Path):
    """Reading, making runs of it and planning them; one of the tasks reads the run with its own seed."""
    tasks = {"use": {"parameters": {"reads": "{train:name=big}"}, "after": ["last"]}, "train": TRAIN}
    tasks["last"] = {"seeds": False}
    counts = []
    for seeds in (200, 200, 400):
        path = write_grid(tmp_path, tasks, seeds=list(range(seeds)))
        counts.append(calls_of(lambda path=path: plan_of(path)))
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
def test_what_else_stands_in_braces(text: str, expected: str):
    task = {"axes": {"name": ["n"]}, "parameters": {"reads": text, "maybe": [{"k": text}], "rate": 2}}
    (job,) = jobs_of(write_grid(Path.cwd(), {"a": task}, variables={"v": "data"})).values()
    assert job.parameters["reads"] == expected
    assert job.parameters["maybe"] == [{"k": expected}], "inside lists and mappings too"
    assert not job.after
    assert (job.effective["rate"], job.effective["steps"]) == (2, 3), "the grid's over the notebook's"
    assert "run_folder" not in job.effective


@pytest.mark.parametrize(
    ("parallel", "wanted", "gpus"),
    [("", 1, 1), ("ddp 8", 1, 8), ("ddp 2", 4, 4), ("ddp 8", 0, 0)],
)
def test_a_run_asks_for_a_gpu_for_each_of_its_processes(parallel: str, wanted: int, gpus: int):
    write_notebook(Path("tiny.ipynb"), parameters=f'{PARAMETERS}\nparallel = ""')
    task = {"parameters": {"parallel": parallel}, "resources": {"gpus": wanted, "cores": 3}}
    (job,) = jobs_of(write_grid(Path.cwd(), {"train": task}, seeds=[0])).values()
    assert (job.resources.gpus, job.resources.cores) == (gpus, 3)
