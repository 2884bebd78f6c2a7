"""What is shown while a grid runs."""

import io
import json
import os
import socket
import time
from pathlib import Path

import pytest
from rich.console import Console
from tiny_grid import plan_of, pretend, write_grid

from cdlm_lab.batch.session import Lines, Progress, Table, shown_time

HERE = {"host": socket.gethostname(), "pid": os.getpid()}


@pytest.fixture
def progress(tmp_path: Path) -> Progress:
    """Of four runs, one of them finished before: b waits for a, c for b."""
    tasks = {"done": {}, "a": {}, "b": {"after": ["a"]}, "c": {"after": ["b"]}}
    path = write_grid(tmp_path, tasks, defaults={"minutes": 1})
    pretend(plan_of(path), "done")
    report = tmp_path / "runs" / "done" / "report.json"
    report.write_text(json.dumps(json.loads(report.read_text()) | {"seconds": 50.0}))
    return Progress(plan_of(path), log=tmp_path / "log", cores=1, at_once=9)


def running(**more: object) -> dict[str, object]:
    return {"state": "running", "attempt": 1, "started": time.time() - 20, "noted": time.time()} | HERE | more


def ended(state: str, **more: object) -> dict[str, object]:
    return running(state=state, started=100.0, noted=175.0) | more


def test_changes_are_told_once(progress: Progress):
    for state, expected in (
        ({}, []),
        ({"a": running()}, [("a", "running")]),
        ({"a": running()}, []),
        ({"a": running(attempt=2)}, [("a", "running")]),  # tried again
        ({"a": ended("done")}, [("a", "done")]),
    ):
        assert progress.update(state) == expected
    assert progress.seconds_of("a") == 75
    assert progress.seconds_of("b") is None


def test_a_failed_run_blocks_those_that_wait_for_it(progress: Progress):
    progress.update({"a": ended("failed")})
    assert progress.blocked() == {"b": "a", "c": "a"}, "the run at which it began"
    assert progress.left() == ({}, 0.0)


def test_a_run_whose_process_is_gone_failed(progress: Progress):
    progress.update({"a": running(pid=2**22 + 1)})
    assert progress.states["a"]["state"] == "failed"
    assert "vanished" in progress.states["a"]["reason"]
    progress.update({"a": running(pid=2**22 + 1, host="another")})
    assert progress.states["a"]["state"] == "running", "nobody here can know"
    progress.close()
    assert progress.states["a"]["state"] == "failed"


def test_snakemake_knows_of_runs_that_could_note_nothing(progress: Progress, tmp_path: Path):
    log, states = tmp_path / "log", {name: running(host="node7") for name in "ab"}
    begin = "rule tiny:\n    output: b/report.json\n"
    begin += "Error in rule tiny:\n    message: SLURM-job '1' failed. For more\n"
    log.write_text(begin + "    jobid: 2\n    outp")
    progress.update(states)
    assert progress.named("running") == ["a", "b"], "what is not a whole line yet waits"
    with log.open("a") as file:
        file.write("ut: a/report.json\n    log: x/1.log (check it)\n    shell:\n        exec\nrule tiny:\n")
    for _ in range(2):
        progress.update(states)
        assert (progress.named("failed"), progress.named("running")) == (["a"], ["b"])
    assert progress.states["a"]["reason"].endswith("node was lost; SLURM-job '1' failed; see x/1.log")
    progress.update({"a": running(host="node7", attempt=2)})
    assert progress.named("running") == ["a"], "the next attempt"
    with log.open("a") as file:
        file.write("Error in rule tiny:\n    message: None\n    output: c/report.json\n    shell:\n")
    progress.update({})
    assert progress.named("failed") == ["c"]
    assert progress.states["c"]["reason"].startswith("it could not begin: ")


def test_time_left(progress: Progress):
    progress.update({"a": running()})
    each, total = progress.left()
    # `done` ran the same notebook in 50 s, and a has been running for 20
    assert each == {"a": pytest.approx(each["a"]), "b": 50, "c": 50}
    assert 0 <= each["a"] <= 30
    assert total == pytest.approx(sum(each.values()))
    assert progress.summary().startswith("1 running, 0 done, 0 failed, 2 waiting (1 finished before); about ")


def test_lines(progress: Progress, capsys: pytest.CaptureFixture):
    lines = Lines(progress)
    lines.show(progress.update({"a": running()}))
    lines.show(progress.update({"a": ended("failed", reason="no luck")}))
    shown = [line.split(" ", 1)[1] for line in capsys.readouterr().out.splitlines()]
    assert shown == ["a: running", "a: failed after 1:15: no luck"]


def test_the_table_shows_all_or_what_matters(progress: Progress, monkeypatch: pytest.MonkeyPatch):
    table = Table(progress)
    progress.update({"a": ended("failed")})

    def drawn() -> str:
        console = Console(width=80, record=True, file=io.StringIO())
        console.print(table._drawn())
        return console.export_text()

    text = drawn()
    for part in ("waits for a, which failed", "1:15", "0 running, 0 done, 1 failed, 2 waiting (1 finished"):
        assert part in text
    monkeypatch.setattr(type(table._live.console), "height", 0)
    many = {f"n{number}": progress.steps["b"] for number in range(9)}
    waiting = {name: {"state": "waiting"} for name in many}
    for name, value in (("steps", many), ("_all", many), ("states", waiting)):
        monkeypatch.setattr(progress, name, value)
    assert "... and 4 more" in drawn()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (75.4, "1:15"), (3599, "59:59"), (3600, "1:00 h"), (7290, "2:01 h")]
)
def test_times(seconds: float, text: str):
    assert shown_time(seconds) == text
