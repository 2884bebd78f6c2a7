"""What is to be done for each run and why: fingerprints, what a run needs here, how long it will take."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from tiny_grid import BODY, PARAMETERS, plan_of, pretend, write_grid, write_notebook

from cdlm_lab.batch import plan as fingerprint
from cdlm_lab.batch.marked_yaml import GridError
from cdlm_lab.batch.plan import (
    Checksums,
    Remaining,
    changes,
    checksums_of,
    code_of,
    expected_seconds,
    local_gpus,
    missing_need,
    seconds_left,
    without_missing,
)
from cdlm_lab.report import open_run

TASKS = {"a": {"parameters": {"rate": 0.25}}, "b": {"parameters": {"reads": "{a}"}}, "c": {}}


@pytest.fixture
def grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three finished runs: b reads a."""
    monkeypatch.chdir(tmp_path)
    path = write_grid(tmp_path, TASKS)
    pretend(plan_of(path))
    return path


def told(steps: dict) -> dict[str, tuple]:
    """name -> (state, reasons) of what is not simply kept."""
    return {name: (step.state, *step.reasons) for name, step in steps.items() if step.runs}


def changed(grid: Path, task: str, **values: object) -> dict[str, tuple]:
    write_grid(grid.parent, TASKS | {task: TASKS[task] | values})
    return told(plan_of(grid))


B_WAITS = ("again", "a, which it reads, is made first")


def test_new_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert told(plan_of(write_grid(tmp_path, TASKS))) == {"a": ("new",), "b": ("new",), "c": ("new",)}


def test_finished_runs_stay(grid: Path):
    assert told(plan_of(grid)) == {}


def test_a_parameter_that_changed(grid: Path):
    assert changed(grid, "a", parameters={"rate": 1}) == {
        "a": ("again", "parameter rate 0.25 -> 1"),
        "b": B_WAITS,
    }


def test_a_parameter_written_out_as_its_default_changes_nothing(grid: Path):
    assert changed(grid, "c", parameters={"rate": 0.5, "steps": 3}) == {}


def test_a_notebook_whose_code_changed(grid: Path):
    write_notebook(grid.parent / "tiny.ipynb", body=BODY + "\nx = 1")
    expected = ("again", "the notebook's code changed")
    assert told(plan_of(grid)) == {"a": expected, "b": (*expected, B_WAITS[1]), "c": expected}
    assert told(plan_of(grid, ignore_code=True)) == {}


def test_resources_and_retries_change_nothing(grid: Path):
    assert changed(grid, "a", resources={"cores": 2, "retries": 3}) == {}


def test_code_of_the_library_that_changed(grid: Path):
    stamp = json.loads((grid.parent / "runs/c/.grid.json").read_text())
    name = "cdlm_lab/report.py"
    stamp["fingerprint"]["code"][name] = "0" * 16
    (grid.parent / "runs/c/.grid.json").write_text(json.dumps(stamp))
    assert told(plan_of(grid)) == {"c": ("again", f"code: {name} changed")}
    assert told(plan_of(grid, ignore_code=True)) == {}


def test_data_that_changed(grid: Path):
    corpus = grid.parent / "corpus"
    corpus.mkdir()
    (corpus / "a.txt").write_text("one")
    needs = {"needs": {"corpus": "corpus"}}
    assert changed(grid, "c", **needs) == {}, "which data it had before is not known"
    (grid.parent / "runs/c").rename(grid.parent / "runs/old")
    write_grid(grid.parent, TASKS | {"c": needs})
    pretend(plan_of(grid), "c")
    assert told(plan_of(grid)) == {}
    (corpus / "a.txt").touch()
    assert told(plan_of(grid)) == {}, "a new time is no new content"
    (corpus / "a.txt").write_text("two")
    assert told(plan_of(grid)) == {"c": ("again", "data: corpus changed")}
    (corpus / "a.txt").unlink()
    assert told(plan_of(grid)) == {}, "a finished run needs no data, and nobody knows whether they changed"


def test_a_run_that_was_made_anew_by_hand_makes_its_readers_run(grid: Path):
    report = grid.parent / "runs/a/report.json"
    values = json.loads(report.read_text())
    report.write_text(json.dumps(values | {"finished": "2030-01-01T00:00:00+00:00"}))
    assert told(plan_of(grid)) == {"b": ("again", "a, which it reads, was made anew")}


def test_a_run_that_is_gone_makes_its_readers_run(grid: Path):
    (grid.parent / "runs/a").rename(grid.parent / "runs/elsewhere")
    assert told(plan_of(grid)) == {"a": ("new",), "b": B_WAITS}


def test_a_run_that_waits_for_more(grid: Path):
    assert changed(grid, "b", after=["c"]) == {"b": ("again", "it reads c now")}


def test_rerun_and_only(grid: Path):
    assert told(plan_of(grid, rerun=("a",))) == {"a": ("again", "--rerun asks for it"), "b": B_WAITS}
    assert list(plan_of(grid, only=("b",))) == ["a", "b"], "and what it needs"
    assert told(plan_of(grid, only=("c",), rerun=("a",))) == {"a": ("again", "--rerun asks for it")}
    with pytest.raises(GridError, match="--only bb: no task and no run is called so: did you mean 'b'"):
        plan_of(grid, only=("bb",))


def test_a_run_made_by_hand_is_taken_if_its_parameters_agree(grid: Path):
    (grid.parent / "runs/c/.grid.json").unlink()
    assert told(plan_of(grid)) == {}
    assert changed(grid, "c", parameters={"rate": 9}) == {"c": ("again", "parameter rate 0.5 -> 9")}


def test_a_run_made_by_hand_before_a_parameter_was_one_had_what_it_had_then(grid: Path):
    (grid.parent / "runs/c/.grid.json").unlink()
    write_notebook(grid.parent / "tiny.ipynb", parameters=f"{PARAMETERS}\nattention_dropout = 0.0")
    given = {"attention_dropout": "checkpoint"}
    assert "c" not in changed(grid, "c", parameters=given)
    assert changed(grid, "c")["c"] == ("again", 'parameter attention_dropout "checkpoint" -> 0.0')


def interrupt(grid: Path, name: str) -> None:
    (grid.parent / "runs" / name / "report.json").unlink()


def test_an_interrupted_run_goes_on(grid: Path):
    interrupt(grid, "a")
    assert told(plan_of(grid)) == {"a": ("goes on",), "b": B_WAITS}


def test_an_interrupted_run_goes_on_with_other_code_and_says_so(grid: Path):
    interrupt(grid, "c")
    write_notebook(grid.parent / "tiny.ipynb", body=BODY + "\nx = 1")
    assert told(plan_of(grid))["c"] == ("goes on", "the notebook's code changed")


def test_an_interrupted_run_with_other_parameters_starts_anew(grid: Path):
    interrupt(grid, "c")
    assert changed(grid, "c", parameters={"rate": 9}) == {"c": ("again", "parameter rate 0.5 -> 9")}
    (grid.parent / "runs/c/.grid.json").unlink()
    assert changed(grid, "c", parameters={"rate": 9}) == {"c": ("again", "parameter rate 0.5 -> 9")}


def test_a_folder_that_is_no_run_is_refused(grid: Path):
    other = grid.parent / "runs" / "d"
    other.mkdir()
    (other / "run.log").touch()
    write_grid(grid.parent, {**TASKS, "d": {}})
    assert told(plan_of(grid)) == {"d": ("new",)}
    (other / "thesis.txt").touch()
    with pytest.raises(GridError, match=r"runs/d holds other files \(thesis.txt\)"):
        plan_of(grid)
    write_grid(grid.parent, {**TASKS, "e": {}})
    (grid.parent / "runs" / "e").touch()
    with pytest.raises(GridError, match="runs/e is a file"):
        plan_of(grid)


def test_a_run_in_use_is_refused(grid: Path):
    write_grid(grid.parent, {**TASKS, "d": {}})
    run = open_run("runs/d", name="tiny", parameters={})
    with pytest.raises(GridError, match="runs/d is in use"):
        plan_of(grid)
    run.close()


@pytest.mark.parametrize("file", ["report.json", "run.json"])
def test_files_that_cannot_be_read(file: str, grid: Path):
    interrupt(grid, "c")
    (grid.parent / "runs/c/.grid.json").unlink()
    (grid.parent / "runs/c" / file).write_text("{")
    with pytest.raises(GridError, match=rf"runs/c/{file}.*move (the folder|this one) away"):
        plan_of(grid)


def test_missing_data_leave_out_what_needs_them_and_what_reads_that(grid: Path):
    tasks = TASKS | {"d": {"needs": {"x": "none"}}, "e": {"after": ["d"]}, "f": {"resources": {"gpus": 1}}}
    write_grid(grid.parent, tasks)
    steps = plan_of(grid, gpus=0)
    assert steps["d"].missing == ("x: there is no none",)
    assert steps["f"].missing == ("1 GPU: this machine has none",)
    kept, left = without_missing(steps)
    assert (list(kept), left) == (["a", "b", "c"], ["d", "e", "f"])
    assert plan_of(grid, gpus=None)["f"].missing == ()


def test_stamps_that_cannot_be_read_count_as_none(tmp_path: Path):
    assert fingerprint.read_stamp(tmp_path) is None
    for text in ("{", "[]", '{"fingerprint": 3}', '{"fingerprint": {"code": {}}}'):
        (tmp_path / ".grid.json").write_text(text)
        assert fingerprint.read_stamp(tmp_path) is None


def test_code_is_what_is_imported_directly_or_not():
    code = code_of(["from cdlm_lab.report import open_run\nopen_run"])
    assert {
        "cdlm_lab/__init__.py",
        "cdlm_lab/report.py",
        "cdlm_lab/data/files.py",  # that values imports
    } <= set(code)
    assert not any(name.startswith(("cdlm_lab/models", "cdlm_lab/batch")) for name in code)


def test_imports_inside_functions_and_of_modules_count():
    code = code_of(["def f():\n    from cdlm_lab.widgets import explorer"])
    assert "cdlm_lab/widgets/explorer/__init__.py" in code
    assert any(name.endswith(".js") for name in code), "files beside modules too"
    assert "cdlm_lab/parameters.py" in code_of(["import cdlm_lab.parameters as p"])


def test_cells_with_magics_could_import_anything():
    assert "cdlm_lab/models/joint.py" in code_of(["%matplotlib inline"])


def test_a_notebook_without_the_library_depends_on_none_of_it():
    assert code_of(["import os, numpy"]) == {}


def test_a_file_that_is_gone_has_no_checksum():
    assert checksums_of(["cdlm_lab/no_such.py"]) == {"cdlm_lab/no_such.py": ""}


OLD = {
    "notebook": "1",
    "parameters": {"steps": 60, "rate": 1},
    "code": {"a.py": "1", "b.py": "1"},
    "data": {"corpus": "1", "model": None},
    "runs": {"x": "noon"},
}


def difference(**new: object) -> list[str]:
    return changes(OLD, OLD | new)


def test_differences_in_words():
    assert difference() == []
    assert difference(notebook="2") == ["the notebook's code changed"]
    assert difference(parameters={"steps": 80, "rate": 1.0, "new": "a"}) == [
        'parameter new (absent) -> "a"',
        "parameter rate 1 -> 1.0",
        "parameter steps 60 -> 80",
    ]
    by_others = OLD["parameters"] | {"parallel": "ddp 8", "workers": 2}
    assert difference(parameters=by_others) == [], "by how many it is made is not what is made"
    assert difference(code={"a.py": "2", "c.py": "1"}) == ["code: a.py, b.py, c.py changed"]
    assert difference(code={}) == ["code: a.py, b.py changed"]
    many = {f"{n}.py": "1" for n in range(5)} | OLD["code"]
    assert difference(code=many) == ["code: 0.py, 1.py, 2.py and 2 more changed"]
    assert difference(data={"corpus": "2", "model": "3"}) == ["data: corpus changed"]
    assert difference(data={"corpus": None}) == []
    assert difference(runs={"x": "one", "y": None}) == ["x, which it reads, was made anew", "it reads y now"]
    assert difference(runs={"x": None}) == []
    assert difference(parameters={"steps": "x" * 100, "rate": 1})[0].endswith("...")


def test_code_may_be_ignored():
    new = OLD | {"notebook": "2", "code": {}}
    assert changes(OLD, new, ignore_code=True) == []
    assert changes(OLD, new | {"data": {"corpus": "2"}}, ignore_code=True) == ["data: corpus changed"]


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


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert missing_need("x") == "there is no x"
    Path("x").mkdir()
    assert missing_need("x") == "x is empty"
    Path("x/a").touch()
    assert missing_need("x") is None
    assert missing_need("x/a") is None


def test_checkpoints_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    need = "hub:org/model"
    assert missing_need(need) == f"org/model is not among the models in {tmp_path}: hf download org/model"
    folder = tmp_path / "models--org--model"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("abc")
    assert missing_need(need) is not None, "known by name only"
    snapshot = folder / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    (snapshot / "pytorch_model.bin").touch()
    told = missing_need(need)
    assert told is not None
    assert "its weights are a pickle" in told
    assert told.endswith(f"python -m cdlm_lab.models.to_safetensors {snapshot} NEW_FOLDER")
    save_file({"a": np.ones(2)}, snapshot / "model.safetensors")
    assert missing_need(need) is not None, "no tokenizer"
    (snapshot / "vocab.txt").touch()
    assert missing_need(need) is None
    assert Checksums(tmp_path / "none").of(need) == "revision abc"


def test_checksums_see_content_and_names_not_times(tmp_path: Path):
    folder = tmp_path / "corpus"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "a").write_text("one")
    memory = tmp_path / "memory.json"

    def now() -> str:
        return Checksums(memory).of(str(folder))

    first = now()
    os.utime(folder / "inner" / "a", (1, 1))
    assert now() == first
    (folder / "inner" / "a").write_text("two")
    second = now()
    assert second != first
    (folder / "inner" / "a").rename(folder / "inner" / "b")
    assert now() not in (first, second)


def test_the_checksum_of_a_model_sees_its_weights_and_its_tokenizer(tmp_path: Path):
    folder = tmp_path / "model"
    folder.mkdir()
    names = ("config.json", "model.safetensors", "tokenizer.json")
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


@pytest.mark.parametrize("text", ["{", "[]", "3"])
def test_a_memory_that_cannot_be_read_is_none(text: str, tmp_path: Path):
    (tmp_path / "memory.json").write_text(text)
    (tmp_path / "a").write_text("one")
    assert len(Checksums(tmp_path / "memory.json").of(str(tmp_path / "a"))) == 64


def test_gpus_that_are_left_visible():
    assert local_gpus({"CUDA_VISIBLE_DEVICES": ""}) == []
    assert local_gpus({"CUDA_VISIBLE_DEVICES": "0,3"}) == ["0", "3"]
