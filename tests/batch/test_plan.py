"""What is done for a run, and why: nothing is started here."""

import json
from pathlib import Path

import pytest
from tiny_grid import BODY, PARAMETERS, plan_of, pretend, write_grid, write_notebook

from cdlm_lab.batch import plan as fingerprint
from cdlm_lab.batch.marked_yaml import GridError
from cdlm_lab.batch.plan import aside, without_missing
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


def test_names_for_what_is_put_aside_are_free(tmp_path: Path):
    assert aside(tmp_path / "x", stamp="1").name == "x.old-1"
    (tmp_path / "x.old-1").mkdir()
    assert aside(tmp_path / "x", stamp="1").name == "x.old-1-2"


def test_stamps_that_cannot_be_read_count_as_none(tmp_path: Path):
    assert fingerprint.read_stamp(tmp_path) is None
    for text in ("{", "[]", '{"fingerprint": 3}', '{"fingerprint": {"code": {}}}'):
        (tmp_path / ".grid.json").write_text(text)
        assert fingerprint.read_stamp(tmp_path) is None
