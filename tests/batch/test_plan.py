"""The plan for each run and its reasons: what made it and what would make it now, what it needs here."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from tiny_grid import PARAMETERS, plan_of, pretend, write_grid, write_notebook

from cdlm_lab.batch import plan
from cdlm_lab.batch.grid import GridError
from cdlm_lab.batch.plan import Checksums, missing_need
from cdlm_lab.encoders import model_folder
from cdlm_lab.runs import identity
from cdlm_lab.runs.identity import Inputs
from cdlm_lab.runs.report import open_run

TASKS = {"a": {"parameters": {"rate": 0.25}}, "b": {"parameters": {"reads": "{a}"}}, "c": {}}
B_WAITS = ("again", "a, which it reads, is made first")


@pytest.fixture
def grid(here: Path) -> Path:
    """A grid with three finished runs, of which b depends on a."""
    path = write_grid(here, TASKS)
    pretend(plan_of(path))
    return path


def to_do(grid: Path, **choice: object) -> dict[str, tuple]:
    """Return name -> (state, reasons) of all runs that are not kept as they are."""
    steps = plan_of(grid, **choice)
    return {name: (step.state, *step.reasons) for name, step in steps.items() if step.runs}


def changed(grid: Path, task: str, **values: object) -> dict[str, tuple]:
    write_grid(grid.parent, TASKS | {task: TASKS[task] | values})
    return to_do(grid)


def rewrite(file: str, **values: object) -> None:
    path = Path("runs", file)
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_runs_are_new_until_they_are_finished_and_then_stay(grid: Path):
    assert to_do(grid) == {}
    Path("runs").rename("elsewhere")
    assert to_do(grid) == {"a": ("new",), "b": ("new",), "c": ("new",)}


@pytest.mark.parametrize(("task", "values", "expected"), [
    ("a", {"parameters": {"rate": 1}}, {"a": ("again", "rate is 1, in the run 0.25"), "b": B_WAITS}),
    ("c", {"parameters": {"rate": 0.5, "steps": 3}}, {}),  # written out as the defaults
    ("a", {"resources": {"cores": 2, "retries": 3}}, {}),
    ("c", {"needs": {"corpus": "grid.yaml"}}, {}),  # what it read is in its run.json
])  # fmt: skip
def test_a_task_that_changed(task: str, values: dict, expected: dict[str, tuple], grid: Path):
    assert changed(grid, task, **values) == expected


def test_data_and_models_that_changed(grid: Path, monkeypatch: pytest.MonkeyPatch):
    """A corpus, and a model that ships with the project."""
    corpus, model = grid.parent / "corpus", grid.parent / "model"
    corpus.mkdir()
    (corpus / "a.txt").write_text("one")
    monkeypatch.setattr(model_folder, "FOLDER", grid.parent)
    model.mkdir()
    (model / "config.json").write_text("{}")
    Path("runs/c").rename("runs/old")
    pretend(plan_of(grid), "c", inputs=Inputs(data=["corpus"], models=["storyworld/model"]))
    assert to_do(grid) == {}
    (corpus / "a.txt").touch()
    assert to_do(grid) == {}, "a new time is no new content"
    (corpus / "a.txt").write_text("two")
    assert to_do(grid) == {"c": ("again", "corpus has changed")}
    (model / "config.json").write_text("[]")
    changed = ("corpus has changed", "the model storyworld/model has changed")
    assert to_do(grid) == {"c": ("again", *changed)}
    Path("runs/c/report.json").unlink()
    assert to_do(grid) == {"c": ("again", *changed)}, "an interrupted run could not go on with it"
    (corpus / "a.txt").unlink()
    corpus.rmdir()
    assert to_do(grid) == {"c": ("again", changed[1])}, "whether it changed cannot be seen"


def test_a_version_that_was_raised(grid: Path, monkeypatch: pytest.MonkeyPatch):
    now = identity.VERSIONS["training"]
    monkeypatch.setitem(identity.VERSIONS, "training", now + 1)
    raised = ("again", f"version {now + 1} of training, in the run {now}")
    assert to_do(grid) == {"a": raised, "b": B_WAITS, "c": raised}
    assert to_do(grid, ignore_code=True) == {}


def test_readers_run_when_what_they_read_was_made_anew_or_is_gone(grid: Path):
    rewrite("a/report.json", finished="2130-01-01T00:00:00+00:00")
    assert to_do(grid) == {"b": ("again", "a, which it reads, was made anew")}
    Path("runs/b/report.json").unlink()
    assert to_do(grid) == {"b": ("again", "a, which it reads, was made anew")}, "it began with the one before"
    Path("runs/a").rename("runs/elsewhere")
    assert to_do(grid) == {"a": ("new",), "b": B_WAITS}


def test_rerun_and_only(grid: Path):
    assert to_do(grid, rerun=("a",)) == {"a": ("again", "--rerun asks for it"), "b": B_WAITS}
    assert list(plan_of(grid, only=("b",))) == ["a", "b"], "and what it needs"
    assert to_do(grid, only=("c",), rerun=("a",)) == {"a": ("again", "--rerun asks for it")}
    with pytest.raises(GridError, match="--only bb: no task and no run is called so: did you mean 'b'"):
        plan_of(grid, only=("bb",))


def test_a_run_that_is_only_compared_with_others_goes_on(grid: Path):
    write_notebook(grid.parent / "tiny.ipynb", parameters=f'{PARAMETERS}\ncompare_with = ""')
    Path("runs").rename("old")
    pretend(plan_of(grid))
    compares = {"parameters": {"compare_with": "{a}"}}
    goes_on = ("goes on", "compare_with is 'runs/a', in the run ''")
    assert changed(grid, "c", **compares) == {"c": goes_on}
    assert to_do(grid, rerun=("c",))["c"] == ("again", "--rerun asks for it")
    assert changed(grid, "c", parameters={"compare_with": "{a}", "name": "{a}"})["c"][0] == "again"
    assert changed(grid, "c", parameters={"compare_with": "{a}", "rate": 1})["c"][0] == "again"
    Path("runs/a").rename("runs/elsewhere")
    expected = (*goes_on, "a, with which it is compared, is made first")
    assert changed(grid, "c", **compares)["c"] == expected
    Path("runs/elsewhere").rename("runs/a")
    assert to_do(grid) == {"c": goes_on}
    rewrite("c/report.json", parameters=plan_of(grid)["c"].job.effective)
    rewrite("c/run.json", compared={"runs/a/report.json": "0"})
    assert to_do(grid) == {"c": ("goes on", "runs/a/report.json has changed")}
    assert changed(grid, "c")["c"][0] == "again", "its report would keep the comparisons"


def test_an_interrupted_run_goes_on_unless_its_parameters_changed(grid: Path):
    Path("runs/a/report.json").unlink()
    assert to_do(grid) == {"a": ("goes on",), "b": B_WAITS}
    rate = ("again", "rate is 9, in the run 0.25")
    assert changed(grid, "a", parameters={"rate": 9}) == {"a": rate, "b": B_WAITS}


def test_a_folder_that_is_no_run_or_in_use_is_refused(grid: Path):
    other = Path("runs/d")
    other.mkdir()
    (other / "run.log").touch()
    write_grid(grid.parent, {**TASKS, "d": {}})
    assert to_do(grid) == {"d": ("new",)}
    run = open_run(other, name="tiny", parameters={})
    with pytest.raises(GridError, match="runs/d is in use"):
        plan_of(grid)
    run.close()
    (other / "run.json").unlink()
    (other / "thesis.txt").touch()
    with pytest.raises(GridError, match=r"runs/d holds other files \(thesis.txt\)"):
        plan_of(grid)


@pytest.mark.parametrize("file", ["report.json", "run.json"])
def test_files_that_cannot_be_read(file: str, grid: Path):
    Path("runs/c/report.json").unlink()
    Path("runs/c", file).write_text("{")
    with pytest.raises(GridError, match=rf"runs/c/{file}.*move the folder away"):
        plan_of(grid)


def test_missing_data_leave_out_what_needs_them_and_what_reads_that(grid: Path):
    tasks = TASKS | {"d": {"needs": {"x": "none"}}, "e": {"after": ["d"]}, "f": {"resources": {"gpus": 1}}}
    write_grid(grid.parent, tasks)
    steps = plan_of(grid, gpus=0)
    assert steps["d"].missing == ("x: there is no none",)
    assert steps["f"].missing == ("1 GPU: this machine has none",)
    kept, left = plan.without_missing(steps)
    assert (sorted(kept), sorted(left)) == (["a", "b", "c"], ["d", "e", "f"])
    assert plan_of(grid, gpus=None)["f"].missing == ()


# ---- what a run needs ----


def test_paths():
    assert missing_need("x") == "there is no x"
    Path("x").mkdir()
    assert missing_need("x") == "x is empty"
    Path("x/a").touch()
    assert missing_need("x") is None
    assert missing_need("x/a") is None


def test_checkpoints_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    need = "hub:org/model"
    assert missing_need(need) == f"org/model is not among the models in {tmp_path}: hf download org/model"
    assert missing_need("hub:no such/model").startswith("no such/model is not among the models in ")
    folder = tmp_path / "models--org--model"
    snapshot = folder / "snapshots" / "abc"
    for made in (folder / "refs", snapshot):
        made.mkdir(parents=True)
    (folder / "refs" / "main").write_text("abc")
    assert missing_need(need) is not None, "known by name only"
    (snapshot / "config.json").write_text("{}")
    (snapshot / "pytorch_model.bin").touch()
    assert "its weights are a pickle" in str(missing_need(need))
    save_file({"a": np.ones(2)}, snapshot / "model.safetensors")
    assert missing_need(need) is not None, "no tokenizer"
    (snapshot / "vocab.txt").touch()
    assert missing_need(need) is None


def test_what_is_remembered_is_not_read_again(tmp_path: Path):
    file, memory = tmp_path / "a", tmp_path / "memory.json"
    file.write_text("one")
    checksums = Checksums(memory)
    real = checksums.of_file(file)
    checksums.save()
    known = json.loads(memory.read_text())
    ((state, checksum),) = known.values()
    assert checksum == real
    memory.write_text(json.dumps({name: [state, "remembered"] for name in known}))
    assert Checksums(memory).of_file(file) == "remembered"
    os.utime(file, (1, 1))
    assert Checksums(memory).of_file(file) == real
    memory.write_text("{")  # a memory that cannot be read is none
    assert Checksums(memory).of_file(file) == real


def test_gpus_that_are_left_visible():
    assert plan.local_gpus({"CUDA_VISIBLE_DEVICES": ""}) == []
    assert plan.local_gpus({"CUDA_VISIBLE_DEVICES": "0,3"}) == ["0", "3"]
