"""The plan for each run and its reasons: fingerprints, what a run needs here, how long it will take."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from tiny_grid import BODY, PARAMETERS, plan_of, pretend, write_grid, write_notebook

from cdlm_lab.batch import plan
from cdlm_lab.batch.marked_yaml import GridError
from cdlm_lab.batch.plan import Checksums, changes, code_of, missing_need, seconds_left
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


def interrupt(name: str, *, by_hand: bool = False) -> None:
    """Make a finished run look as if it was killed; `by_hand`: True = as if no grid had made it."""
    Path("runs", name, "report.json").unlink()
    if by_hand:
        Path("runs", name, ".grid.json").unlink()


def rewrite(file: str, **values: object) -> None:
    path = Path("runs", file)
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_runs_are_new_until_they_are_finished_and_then_stay(grid: Path):
    assert to_do(grid) == {}
    Path("runs").rename("elsewhere")
    assert to_do(grid) == {"a": ("new",), "b": ("new",), "c": ("new",)}


@pytest.mark.parametrize(("task", "values", "expected"), [
    ("a", {"parameters": {"rate": 1}}, {"a": ("again", "parameter rate 0.25 -> 1"), "b": B_WAITS}),
    ("c", {"parameters": {"rate": 0.5, "steps": 3}}, {}),  # written out as the defaults
    ("a", {"resources": {"cores": 2, "retries": 3}}, {}),
    ("b", {"after": ["c"]}, {"b": ("again", "it reads c now")}),
    ("c", {"needs": {"corpus": "grid.yaml"}}, {}),  # which data it had before is not known
])  # fmt: skip
def test_a_task_that_changed(task: str, values: dict, expected: dict[str, tuple], grid: Path):
    assert changed(grid, task, **values) == expected


def test_code_that_changed(grid: Path):
    stamp, name = json.loads(Path("runs/c/.grid.json").read_text()), "cdlm_lab/runs/report.py"
    stamp["fingerprint"]["code"][name] = "0" * 16
    Path("runs/c/.grid.json").write_text(json.dumps(stamp))
    assert to_do(grid) == {"c": ("again", f"code: {name} changed")}
    assert to_do(grid, ignore_code=True) == {}
    write_notebook(grid.parent / "tiny.ipynb", body=BODY + "\nx = 1")
    expected = ("again", "the notebook's code changed")
    of_c = (*expected, f"code: {name} changed")
    assert to_do(grid) == {"a": expected, "b": (*expected, B_WAITS[1]), "c": of_c}
    assert to_do(grid, ignore_code=True) == {}


def test_data_that_changed(grid: Path):
    corpus = grid.parent / "corpus"
    corpus.mkdir()
    (corpus / "a.txt").write_text("one")
    Path("runs/c").rename("runs/old")
    write_grid(grid.parent, TASKS | {"c": {"needs": {"corpus": "corpus"}}})
    pretend(plan_of(grid), "c")
    assert to_do(grid) == {}
    (corpus / "a.txt").touch()
    assert to_do(grid) == {}, "a new time is no new content"
    (corpus / "a.txt").write_text("two")
    assert to_do(grid) == {"c": ("again", "data: corpus changed")}
    (corpus / "a.txt").unlink()
    assert to_do(grid) == {}, "a finished run needs no data; whether they changed cannot be seen"


def test_data_and_models_that_are_under_no_needs(grid: Path, monkeypatch: pytest.MonkeyPatch):
    """A corpus that only a parameter names, and a model that ships with the project."""
    corpus, model = grid.parent / "corpus", grid.parent / "model"
    corpus.mkdir()
    (corpus / "a.txt").write_text("one")
    monkeypatch.setattr(identity, "FOLDER", grid.parent)
    model.mkdir()
    (model / "config.json").write_text("{}")
    Path("runs/c").rename("runs/old")
    pretend(plan_of(grid), "c", inputs=Inputs(data=["corpus"], models=["storyworld/model"]))
    assert to_do(grid) == {}
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
    monkeypatch.setitem(identity.VERSIONS, "training", identity.VERSIONS["training"] + 1)
    raised = ("again", "version 2 of training, in the run 1")
    assert to_do(grid) == {"a": raised, "b": (*raised, B_WAITS[1]), "c": raised}
    assert to_do(grid, ignore_code=True) == {}


def test_readers_run_when_what_they_read_was_made_anew_or_is_gone(grid: Path):
    rewrite("a/report.json", finished="2030-01-01T00:00:00+00:00")
    assert to_do(grid) == {"b": ("again", "a, which it reads, was made anew")}
    Path("runs/a").rename("runs/elsewhere")
    assert to_do(grid) == {"a": ("new",), "b": B_WAITS}


def test_rerun_and_only(grid: Path):
    assert to_do(grid, rerun=("a",)) == {"a": ("again", "--rerun asks for it"), "b": B_WAITS}
    assert list(plan_of(grid, only=("b",))) == ["a", "b"], "and what it needs"
    assert to_do(grid, only=("c",), rerun=("a",)) == {"a": ("again", "--rerun asks for it")}
    with pytest.raises(GridError, match="--only bb: no task and no run is called so: did you mean 'b'"):
        plan_of(grid, only=("bb",))


def test_a_run_made_by_hand_is_taken_if_its_parameters_agree(grid: Path):
    Path("runs/c/.grid.json").unlink()
    assert to_do(grid) == {}
    assert changed(grid, "c", parameters={"rate": 9}) == {"c": ("again", "parameter rate 0.5 -> 9")}


def test_a_run_that_is_only_compared_with_others_goes_on(grid: Path):
    write_notebook(grid.parent / "tiny.ipynb", parameters=f'{PARAMETERS}\ncompare_with = ""')
    Path("runs").rename("old")
    pretend(plan_of(grid))
    compares = {"parameters": {"compare_with": "{a}"}}
    goes_on = ("goes on", 'parameter compare_with "" -> "runs/a"', "it reads a now")
    assert changed(grid, "c", **compares) == {"c": goes_on}
    assert to_do(grid, rerun=("c",))["c"] == ("again", "--rerun asks for it", *goes_on[1:])
    assert changed(grid, "c", parameters={"compare_with": "{a}", "name": "{a}"})["c"][0] == "again"
    assert changed(grid, "c", parameters={"compare_with": "{a}", "rate": 1})["c"][0] == "again"
    Path("runs/a").rename("runs/elsewhere")
    assert changed(grid, "c", **compares)["c"] == (*goes_on, B_WAITS[1])
    Path("runs/elsewhere").rename("runs/a")
    stamp = plan_of(grid)["c"].fingerprint
    rewrite("c/.grid.json", fingerprint=stamp)
    assert to_do(grid) == {"c": goes_on[:2]}, "it was killed before its report was written"
    rewrite("c/report.json", parameters=stamp["parameters"])
    assert to_do(grid) == {}
    rewrite("a/report.json", finished="2030-01-01T00:00:00+00:00")
    assert to_do(grid)["c"] == ("again", "a, which it reads, was made anew"), "its report has the one before"
    assert changed(grid, "c")["c"][0] == "again", "its report would keep the comparisons"


def test_an_interrupted_run_goes_on_also_with_other_code_and_says_so(grid: Path):
    interrupt("a")
    assert to_do(grid) == {"a": ("goes on",), "b": B_WAITS}
    write_notebook(grid.parent / "tiny.ipynb", body=BODY + "\nx = 1")
    assert to_do(grid)["a"] == ("goes on", "the notebook's code changed")


def test_a_run_that_only_shows_others_goes_on(grid: Path):
    write_notebook(grid.parent / "tiny.ipynb", parameters=f'{PARAMETERS}\nshown_model = ""')
    Path("runs").rename("old")
    pretend(plan_of(grid))
    goes_on = {"c": ("goes on", 'parameter shown_model "" -> "cdlm"')}
    assert changed(grid, "c", parameters={"shown_model": "cdlm"}) == goes_on
    interrupt("c")
    assert to_do(grid) == goes_on
    assert changed(grid, "c", parameters={"shown_model": "cdlm", "rate": 1})["c"][0] == "again"


@pytest.mark.parametrize("by_hand", [False, True])
def test_an_interrupted_run_with_other_parameters_starts_anew(by_hand: bool, grid: Path):
    interrupt("c", by_hand=by_hand)
    assert changed(grid, "c", parameters={"rate": 9}) == {"c": ("again", "parameter rate 0.5 -> 9")}


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
    write_grid(grid.parent, {**TASKS, "e": {}})
    Path("runs/e").touch()
    with pytest.raises(GridError, match="runs/e is a file"):
        plan_of(grid)


@pytest.mark.parametrize("file", ["report.json", "run.json"])
def test_files_that_cannot_be_read(file: str, grid: Path):
    interrupt("c", by_hand=True)
    Path("runs/c", file).write_text("{")
    with pytest.raises(GridError, match=rf"runs/c/{file}.*move (the folder|this one) away"):
        plan_of(grid)


def test_missing_data_leave_out_what_needs_them_and_what_reads_that(grid: Path):
    tasks = TASKS | {"d": {"needs": {"x": "none"}}, "e": {"after": ["d"]}, "f": {"resources": {"gpus": 1}}}
    write_grid(grid.parent, tasks)
    steps = plan_of(grid, gpus=0)
    assert steps["d"].missing == ("x: there is no none",)
    assert steps["f"].missing == ("1 GPU: this machine has none",)
    kept, left = plan.without_missing(steps)
    assert (list(kept), left) == (["a", "b", "c"], ["d", "e", "f"])
    assert plan_of(grid, gpus=None)["f"].missing == ()


def test_stamps_that_cannot_be_read_count_as_none(tmp_path: Path):
    assert plan.read_stamp(tmp_path) is None
    for text in ("{", "[]", '{"fingerprint": 3}', '{"fingerprint": {"code": {}}}'):
        (tmp_path / ".grid.json").write_text(text)
        assert plan.read_stamp(tmp_path) is None


# ---- code ----


def test_code_is_what_is_imported_directly_or_not():
    code = code_of(("from cdlm_lab.runs.report import open_run\nopen_run",))
    # of these report imports the last
    assert {"cdlm_lab/__init__.py", "cdlm_lab/runs/report.py", "cdlm_lab/data/files.py"} <= set(code)
    assert not any(name.startswith(("cdlm_lab/models/joint", "cdlm_lab/batch")) for name in code)
    inside = code_of(("def f():\n    from cdlm_lab.widgets import explorer",))
    assert "cdlm_lab/explorer/widget/__init__.py" in inside
    assert any(name.endswith(".js") for name in inside), "files beside modules too"
    assert "cdlm_lab/parameters.py" in code_of(("import cdlm_lab.parameters as p",))
    assert "cdlm_lab/tasks/joint/model.py" in code_of(("%matplotlib inline",)), (
        "a magic could import anything"
    )
    assert code_of(("import os, numpy",)) == {}
    assert plan.checksums_of(["cdlm_lab/no_such.py"]) == {"cdlm_lab/no_such.py": ""}


OLD = {
    "notebook": "1",
    "parameters": {"steps": 60, "rate": 1},
    "code": {"a.py": "1", "b.py": "1"},
    "data": {"corpus": "1", "model": None},
    "runs": {"x": "noon"},
}
PARAMETERS_CHANGED = ['parameter new (absent) -> "a"', "parameter rate 1 -> 1.0", "parameter steps 60 -> 80"]


@pytest.mark.parametrize(("new", "expected"), [
    ({}, []),
    ({"notebook": "2"}, ["the notebook's code changed"]),
    ({"parameters": {"steps": 80, "rate": 1.0, "new": "a"}}, PARAMETERS_CHANGED),
    # by how many it is made is not what is made
    ({"parameters": OLD["parameters"] | {"parallel": "ddp 8", "workers": 2}}, []),
    ({"parameters": {"steps": "x" * 100, "rate": 1}}, [f'parameter steps 60 -> "{"x" * 56}...']),
    ({"code": {"a.py": "2", "c.py": "1"}}, ["code: a.py, b.py, c.py changed"]),
    ({"code": {}}, ["code: a.py, b.py changed"]),
    (
        {"code": {f"{n}.py": "1" for n in range(5)} | OLD["code"]},
        ["code: 0.py, 1.py, 2.py and 2 more changed"],
    ),
    ({"data": {"corpus": "2", "model": "3"}}, ["data: corpus changed"]),
    ({"data": {"corpus": None}}, []),
    ({"runs": {"x": "one", "y": None}}, ["x, which it reads, was made anew", "it reads y now"]),
    ({"runs": {"x": None}}, []),
])  # fmt: skip
def test_differences_in_words(new: dict[str, object], expected: list[str]):
    assert changes(OLD, OLD | new) == expected
    without_code = [line for line in expected if "code" not in line]
    assert changes(OLD, OLD | new, ignore_code=True) == without_code


# ---- how long it will take ----


def work(seconds: float, *after: str, cores: int = 1, gpus: int = 0) -> tuple[float, Any]:
    job = SimpleNamespace(after=after, resources=SimpleNamespace(cores=cores, gpus=gpus))
    return seconds, SimpleNamespace(job=job)


SEVERAL = {"a": work(10), "b": work(7), "c": work(5, "a", "finished before")}
WIDE = {"a": work(10, cores=8), "b": work(1)}
# Where there is no GPU they will not be made, and it is said how long one would take.
ON_GPUS = {"a": work(10, gpus=1), "b": work(9, gpus=1), "c": work(5, gpus=1), "d": work(2)}


@pytest.mark.parametrize(("todo", "cores", "at_once", "gpus", "expected"), [
    (SEVERAL, math.inf, math.inf, math.inf, 15),  # a, then c
    (SEVERAL, 2, math.inf, math.inf, 15),  # a and b, then c beside what is left of nothing
    (SEVERAL, 1, math.inf, math.inf, 22),  # one after the other
    (SEVERAL, 4, 1, math.inf, 22),
    (WIDE, 2, math.inf, math.inf, 11),  # it gets all cores
    *((ON_GPUS, 16, math.inf, gpus, seconds) for gpus, seconds in ((math.inf, 10), (2, 14), (1, 24))),
    (ON_GPUS, 16, math.inf, 0, 24),
    ({}, 1, 1, math.inf, 0),
    ({"a": work(6), "b": work(6), "c": work(4), "d": work(8, "c")}, 2, math.inf, math.inf, 12),  # c first
    ({"a": work(3), "b": work(1, "b")}, 1, 1, math.inf, 3),  # what cannot begin is not waited for
])  # fmt: skip
def test_runs_start_as_soon_as_they_can(todo: dict, cores: float, at_once: float, gpus: float, expected: int):
    seconds, steps = ({name: both[side] for name, both in todo.items()} for side in (0, 1))
    assert seconds_left(steps, seconds, cores=cores, at_once=at_once, gpus=gpus) == expected


def test_earlier_runs_tell_how_long_later_ones_take(tmp_path: Path):
    write_notebook(tmp_path / "other.ipynb")
    tasks = {
        "a": {},
        "same": {"resources": {"minutes": 2}},  # as a task it is new, its notebook is known
        "other": {"notebook": "other.ipynb", "resources": {"minutes": 2}},
    }
    path = write_grid(tmp_path, tasks, seeds=[0, 1, 2])
    assert plan.expected_seconds(plan_of(path), {})["a-s0"] == 30 * 60, "the default"
    pretend(plan_of(path), "a-s0", "a-s1")
    expected = plan.expected_seconds(plan_of(path), {"a-s0": 10.0, "a-s1": 30.0})
    seconds = {"a": 20.0, "same": 20.0 / 15, "other": 120.0}
    assert expected == {f"{task}-s{seed}": seconds[task] for task in seconds for seed in range(3)}


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
    message = missing_need(need)
    assert message is not None
    assert "its weights are a pickle" in message
    assert message.endswith(f"python notebooks/grids/to_safetensors.py {snapshot} NEW_FOLDER")
    save_file({"a": np.ones(2)}, snapshot / "model.safetensors")
    assert missing_need(need) is not None, "no tokenizer"
    (snapshot / "vocab.txt").touch()
    assert missing_need(need) is None
    assert Checksums(tmp_path / "none").of(need) == "revision abc"


def test_checksums_see_content_and_names_not_times(tmp_path: Path):
    inner = tmp_path / "corpus" / "inner"
    inner.mkdir(parents=True)
    (inner / "a").write_text("one")

    def now() -> str:
        return Checksums(tmp_path / "memory.json").of(str(tmp_path / "corpus"))

    first = now()
    os.utime(inner / "a", (1, 1))
    assert now() == first
    (inner / "a").write_text("two")
    second = now()
    assert second != first
    (inner / "a").rename(inner / "b")
    assert now() not in (first, second)


def test_the_checksum_of_a_model_sees_its_weights_and_its_tokenizer(tmp_path: Path):
    folder, names = tmp_path / "model", ("config.json", "model.safetensors", "tokenizer.json")
    folder.mkdir()
    for name in names:
        (folder / name).write_text("one")

    def now() -> str:
        return Checksums(tmp_path / "memory.json").of(str(folder / "config.json"))

    seen = {now()}
    for name in names:
        (folder / name).write_text("another")
        seen.add(now())
    assert len(seen) == 4
    (folder / "checkpoint-1").mkdir()
    (folder / "checkpoint-1" / "model.safetensors").touch()
    assert now() in seen, "folders in it are not read with it"


def test_what_is_remembered_is_not_read_again(tmp_path: Path):
    file, memory = tmp_path / "a", tmp_path / "memory.json"
    file.write_text("one")
    checksums = Checksums(memory)
    real = checksums.of(str(file))
    checksums.save()
    known = json.loads(memory.read_text())
    (entry,) = known.values()
    assert entry[2] == real
    entry[2] = "remembered"
    memory.write_text(json.dumps(known))
    assert Checksums(memory).of(str(file)) == "remembered"
    file.write_text("other")
    assert Checksums(memory).of(str(file)) not in ("remembered", real)
    for text in ("{", "[]", "3"):  # a memory that cannot be read is none
        memory.write_text(text)
        assert len(Checksums(memory).of(str(file))) == 64


def test_gpus_that_are_left_visible():
    assert plan.local_gpus({"CUDA_VISIBLE_DEVICES": ""}) == []
    assert plan.local_gpus({"CUDA_VISIBLE_DEVICES": "0,3"}) == ["0", "3"]
