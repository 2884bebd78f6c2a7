"""A used folder is refused before any work; an interrupted run is taken up; one process at a time."""

import errno
import fcntl
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cdlm_lab.parameters import ParameterError
from cdlm_lab.runs import report as folder
from cdlm_lab.runs.identity import VERSIONS, Inputs
from cdlm_lab.runs.report import RunError, open_run, read_report
from cdlm_lab.runs.scores import Score

PARAMETERS = {"steps": 3, "rate": 0.1, "seed": 7, "factors": (("a", 1.0),)}
ROWS = [Score(metric="f1", value=0.5)]
ROOT = Path(__file__).resolve().parents[2]


def start(folder: Path, then: str) -> subprocess.Popen[str]:
    """Another process that opens the folder, says so, and does `then`."""
    code = f"""
import os, signal, sys, time
from cdlm_lab.runs.report import open_run
run = open_run({str(folder)!r}, name="x", parameters={PARAMETERS!r})
print("open", flush=True)
{then}
"""
    environ, command = os.environ | {"PYTHONPATH": str(ROOT)}, [sys.executable, "-c", code]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ)
    assert process.stdout is not None
    with process.stdout as printed:
        assert printed.readline() == "open\n"
    return process


def interrupted(folder: Path) -> None:
    """Leave what a killed run leaves."""
    assert start(folder, "os.kill(os.getpid(), signal.SIGKILL)").wait() == -9


def test_a_new_folder(tmp_path: Path):
    run = open_run(tmp_path / "a" / "b", name="x", parameters=PARAMETERS)
    assert (run.resumed, run.writer, run.parameters["factors"]) == (False, True, [["a", 1.0]])
    written = json.loads((run.folder / "run.json").read_text())
    assert written["parameters"] == json.loads(json.dumps(PARAMETERS))
    assert written["sessions"][0]["pid"] == os.getpid()


def test_a_folder_may_be_in_the_home_folder_and_is_no_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert open_run("~/runs/x", name="tiny", parameters={}).folder == tmp_path / "home" / "runs" / "x"
    with pytest.raises(ParameterError, match=r"^run_folder is 's3://bucket/x', an address; .*$"):
        open_run("s3://bucket/x", name="tiny", parameters={})
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_a_finished_run_is_opened_again_and_stays_as_it_is(tmp_path: Path, capsys):
    for name in ("out.ipynb", "job.log", ".ipynb_checkpoints"):  # they are no other files
        (tmp_path / name).touch()
    given = {**PARAMETERS, "run_folder": "a", "workers": 1}
    run = open_run(tmp_path, name="x", parameters=given)
    assert not run.resumed
    made = run.write_report(scores=ROWS)
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.iterdir()}
    shown = {"run_folder": "../a", "workers": 4}
    again = open_run(tmp_path, name="x", parameters={**given, **shown, "added_later": 1})
    assert again.finished == again.write_report(scores=[]) == run.write_report(scores=[]) == made
    assert f"{tmp_path}: this run was finished on 20" in capsys.readouterr().out
    assert before == {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.iterdir()}
    told = (
        r"finished run with other parameters: seed is 8, in the run 7; steps is 4, in the run 3\. Write what"
    )
    with pytest.raises(RunError, match=told):
        open_run(tmp_path, name="x", parameters=PARAMETERS | {"steps": 4, "seed": 8})
    with pytest.raises(RunError, match="a run of 'x', not of 'y': choose another run_folder"):
        open_run(tmp_path, name="y", parameters=PARAMETERS)


def test_other_runs_to_compare_with_repeat_the_evaluation_of_a_finished_run(tmp_path: Path):
    given = {**PARAMETERS, "compare_with": "a"}
    seconds = open_run(tmp_path, name="x", parameters=given).write_report(scores=ROWS).seconds
    assert open_run(tmp_path, name="x", parameters=given | {"compare_with": ""}).finished, "nothing is lost"
    (tmp_path / "own_clusters.json").touch()
    os.utime(tmp_path / "own_clusters.json", (2e9, 2e9))  # written long after the run
    run = open_run(tmp_path, name="x", parameters=given | {"compare_with": "a b"})
    assert (run.finished, run.resumed) == (None, True)
    made = run.write_report(scores=ROWS[:1])
    assert (made.rows, made.parameters["compare_with"], made) == (ROWS[:1], "a b", read_report(tmp_path))
    assert made.seconds < seconds + 60


def test_other_contents_of_what_a_run_was_compared_with_repeat_its_evaluation(tmp_path: Path):
    other = tmp_path / "clusters.json"
    other.write_text("[]")
    given = {"name": "x", "parameters": PARAMETERS, "inputs": Inputs(compared=[str(other)])}
    open_run(tmp_path / "run", **given).write_report(scores=ROWS)
    assert open_run(tmp_path / "run", **given).finished
    other.write_text("[[]]")
    run = open_run(tmp_path / "run", **given)
    assert (run.finished, run.resumed) == (None, True)
    assert run.write_report(scores=ROWS[:1]).rows == ROWS[:1]
    assert open_run(tmp_path / "run", **given).finished.rows == ROWS[:1]


def test_a_run_of_another_version_is_shown_but_does_not_go_on(tmp_path: Path, capsys, monkeypatch):
    open_run(tmp_path / "a", name="x", parameters=PARAMETERS).write_report(scores=ROWS)
    open_run(tmp_path / "b", name="x", parameters=PARAMETERS).close()
    monkeypatch.setitem(VERSIONS, "training", VERSIONS["training"] + 1)
    assert open_run(tmp_path / "a", name="x", parameters=PARAMETERS).finished.rows == ROWS
    assert "version 3 of training, in the run 2: a new run may have other numbers" in capsys.readouterr().out
    with pytest.raises(RunError, match="was begun with other data or models: version 3 of training, in the"):
        open_run(tmp_path / "b", name="x", parameters=PARAMETERS)


def test_a_run_may_not_say_what_its_data_were(tmp_path: Path, capsys):
    for name in ("finished", "interrupted"):
        run = open_run(tmp_path / name, name="x", parameters=PARAMETERS)
        file = tmp_path / name / "run.json"
        if name == "finished":
            run.write_report(scores=ROWS)
            file = tmp_path / name / "report.json"
        run.close()
        values = json.loads(file.read_text())
        if name == "finished":
            values["identity"] = {}
        else:
            for part in ("data", "models", "compared", "versions"):
                del values[part]
        file.write_text(json.dumps(values))
    assert open_run(tmp_path / "finished", name="x", parameters=PARAMETERS).finished.rows == ROWS
    assert "does not say what its data and models were; they may have changed" in capsys.readouterr().out
    with pytest.raises(RunError, match="with other data or models: it does not say which"):
        open_run(tmp_path / "interrupted", name="x", parameters=PARAMETERS)


def test_a_finished_run_whose_report_is_damaged(tmp_path: Path):
    open_run(tmp_path, name="x", parameters=PARAMETERS).write_report(scores=ROWS)
    (tmp_path / "report.json").write_text("{")
    with pytest.raises(RunError, match=r"report.json: not JSON .*; delete that file to make it anew from"):
        open_run(tmp_path, name="x", parameters=PARAMETERS)
    (tmp_path / "report.json").unlink()
    assert open_run(tmp_path, name="x", parameters=PARAMETERS).write_report(scores=ROWS).rows == ROWS


def test_what_takes_seconds_is_made_anew_in_its_place(tmp_path: Path):
    open_run(tmp_path, name="x", parameters=PARAMETERS).write_report(scores=ROWS)
    run = open_run(tmp_path, name="x", parameters={"steps": 4}, anew=True)
    assert (run.finished, run.resumed) == (None, False)
    assert run.write_report(scores=[]).rows == read_report(tmp_path).rows == []
    open_run(tmp_path, name="x", parameters={"steps": 5}, anew=True)  # ended by an error, in this process
    assert not open_run(tmp_path, name="x", parameters={"steps": 6}, anew=True).resumed
    with pytest.raises(RunError, match="a run of 'x', not of 'y'"):
        open_run(tmp_path, name="y", parameters={}, anew=True)


def test_a_file_and_other_files_are_refused_and_untouched(tmp_path: Path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("years of work")
    with pytest.raises(RunError, match=r"holds other files \(thesis.txt\)"):
        open_run(other, name="x", parameters=PARAMETERS)
    assert [path.name for path in other.iterdir()] == ["thesis.txt"]
    with pytest.raises(RunError, match="is a file"):
        open_run(other / "thesis.txt", name="x", parameters={})


def test_an_interrupted_run_is_taken_up_also_by_other_processes(tmp_path: Path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PARAMETERS, "parallel", "ddp 8")
        interrupted(tmp_path)
    changed = {"parallel": "ddp 2", "workers": 4, "micro_batch_size": 1}  # as after a lack of memory
    run = open_run(tmp_path, name="x", parameters=PARAMETERS | changed)
    assert run.resumed
    assert run.write_report(scores=[]).parameters["parallel"] == "ddp 2"


def test_a_whole_number_is_equal_to_a_float(tmp_path: Path):
    """A grid may say 4 where the settings of the notebook have 4.0."""
    open_run(tmp_path / "run", name="x", parameters={"ratio": 4, "flag": True}).close()
    assert open_run(tmp_path / "run", name="x", parameters={"ratio": 4.0, "flag": True}).resumed
    with pytest.raises(RunError, match="flag is 1, in the run True"):
        open_run(tmp_path / "run", name="x", parameters={"ratio": 4, "flag": 1})


def test_other_parameters_are_listed(tmp_path: Path):
    interrupted(tmp_path)
    changed = PARAMETERS | {"steps": 4, "extra": None}
    del changed["rate"]
    with pytest.raises(
        RunError,
        match=r"interrupted run with other parameters: extra is None, in the run not given; "
        r"rate is not given, in the run 0.1; steps is 4, in the run 3\. Write",
    ):
        open_run(tmp_path, name="x", parameters=changed)
    with pytest.raises(RunError, match="a run of 'x', not of 'y'"):
        open_run(tmp_path, name="y", parameters=PARAMETERS)
    assert open_run(tmp_path, name="x", parameters=PARAMETERS).resumed  # nothing was spoilt


@pytest.mark.parametrize(
    "text",
    [
        '{"name": ',
        "[" * 100_000,
        "[]",
        '{"name": "x", "parameters": {}, "sessions": []}',
        '{"name": "x", "parameters": {}, "sessions": [{"started": 5, "seconds": null}]}',
        '{"name": "x", "parameters": {}, "sessions": [{"started": "soon", "seconds": null}]}',
        '{"name": "x", "parameters": 5, "sessions": 5}',
    ],
)
def test_a_damaged_run_file(tmp_path: Path, text: str):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(RunError, match=r"run\.json cannot be read: move the folder away, or choose"):
        open_run(tmp_path, name="x", parameters={})


@pytest.mark.parametrize(
    ("number", "what"),
    [
        (errno.ENOSPC, "the disk is full; free some space, and give the same"),
        (errno.EDQUOT, "the disk is full; free some space, and give the same"),
        (errno.EROFS, "Read-only file system; see to it that it may be written"),
    ],
)
def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, what: str):
    def full(file: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match=rf"run\.json was not written: {what}"):
        open_run(tmp_path / "a", name="x", parameters=PARAMETERS)
    assert [path.name for path in (tmp_path / "a").iterdir()] == [".lock"]
    monkeypatch.undo()
    run = open_run(tmp_path / "a", name="x", parameters=PARAMETERS)
    assert not run.resumed
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match=rf"report\.json was not written: {what}"):
        run.write_report(scores=[])
    monkeypatch.undo()
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [".lock", "run.json"]
    run.write_report(scores=[])


def test_a_disk_that_takes_no_more_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*arguments: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(RunError, match=r"\.lock was not written: the disk is full"):
        open_run(tmp_path / "a", name="x", parameters=PARAMETERS)
    monkeypatch.setattr(os, "mkdir", full)
    with pytest.raises(RunError, match=r"b was not written: the disk is full"):
        open_run(tmp_path / "b", name="x", parameters=PARAMETERS)


GONE = {"pid": 2**22 + 1, "host": socket.gethostname(), "started": "2026-01-01T00:00:00+00:00"}


@pytest.mark.parametrize(
    ("noted", "who"),
    [
        ("", "another process, just started"),
        ('{"pid": 5', "another process, just started"),
        ("[]", "another process, just started"),
        (json.dumps(GONE), "another process, just started"),  # of a run before this one
        (json.dumps(GONE | {"host": "elsewhere"}), "process 4194305 on elsewhere, started 2026-01-01T"),
    ],
)
def test_who_loses_a_race_hears_by_whom(tmp_path: Path, noted: str, who: str):
    """Also before the winner has noted anything, and where an earlier run has left its session."""
    interrupted(tmp_path)
    with (tmp_path / ".lock").open("w") as held:
        held.write(noted)
        held.flush()
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(RunError, match=f"is in use by {who}.*: wait for it, end it, or choose") as raised:
            open_run(tmp_path, name="x", parameters=PARAMETERS)
    assert "None" not in str(raised.value)


def test_a_live_process_holds_the_folder(tmp_path: Path):
    process = start(tmp_path, "time.sleep(60)")
    try:
        with pytest.raises(RunError, match=f"in use by process {process.pid} on"):
            open_run(tmp_path, name="x", parameters=PARAMETERS)
    finally:
        process.kill()
        process.wait()
    assert open_run(tmp_path, name="x", parameters=PARAMETERS).resumed


def test_a_cell_run_again_goes_on(tmp_path: Path):
    first = open_run(tmp_path, name="x", parameters=PARAMETERS)
    again = open_run(tmp_path, name="x", parameters=PARAMETERS)
    assert again.resumed
    assert again.write_report(scores=[]) == first.write_report(scores=ROWS)


def test_time_is_summed_over_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    interrupted(tmp_path)
    kept = json.loads((tmp_path / "run.json").read_text())
    kept["sessions"][0]["started"] = "2020-01-01T00:00:00+00:00"
    (tmp_path / "run.json").write_text(json.dumps(kept))
    for path in tmp_path.iterdir():
        os.utime(path, (1577836890, 1577836890))  # 2020-01-01T00:01:30: the last sign of life
    # papermill writes it before the notebook begins: no sign of the killed run
    (tmp_path / "out.ipynb").touch()
    clock = iter(["2020-01-02T00:00:00+00:00", "2020-01-02T00:00:07+00:00"])
    monkeypatch.setattr(folder, "_now", lambda: next(clock))
    report = open_run(tmp_path, name="x", parameters=PARAMETERS).write_report(scores=[])
    assert report.seconds == 90 + 7
    assert report.started == "2020-01-01T00:00:00+00:00"


def test_other_ranks_write_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RANK", "1")
    run = open_run(tmp_path / "a", name="x", parameters=PARAMETERS)
    assert not run.writer
    assert run.write_report(scores=ROWS).rows == ROWS
    assert not (tmp_path / "a").exists()
