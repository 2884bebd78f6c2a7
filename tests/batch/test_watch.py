"""What is shown while a grid runs."""

import io
import json
import os
import socket
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console
from tiny_grid import plan_of, pretend, write_grid

from cdlm_lab.batch.engine import Place, snakemake_command, start, write_jobs
from cdlm_lab.batch.grid import read_grid
from cdlm_lab.batch.session import Lines, Progress, Table, _result, shown_time

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


# As Snakemake 9.27 and its executor for Slurm 2.8 wrote it, but for the folders. `sbatch` refused the job of
# run a; the job of run b was killed on its node.
REFUSED = """\
Job 2 has been submitted with SLURM jobid 1 (log: grid/runs/.snakemake/slurm_logs/rule_c/c/1.log).
[Sun Nov 29 04:02:33 2026]
Error in rule a:
    message: SLURM sbatch failed. The error message was 'sbatch: error: Memory specification can not \
be satisfied
sbatch: error: Batch job submission failed: Requested node configuration is not available'.
    sbatch call:
        sbatch --parsable --job-name b26603d1-cd7a-4b93-8992-cba40153eaae --output a/%j.log \
--export=ALL -p all -t 10 --mem 999000 --ntasks=1 --cpus-per-task=1 \
-D grid/runs --wrap="python -m snakemake --mode 'remote'"
For further error details see the cluster/cloud log and the log files of the involved rule(s).
    jobid: 1
    input: .grid/notebooks/a.ipynb
    output: .grid/state/a.ended
    shell:
        exec python -m cdlm_lab.batch.engine grid/runs/.grid/jobs.json a
        (command exited with non-zero exit code)
Touching output file .grid/state/c.ended.
"""
KILLED = """\
[Sun Nov 29 04:03:22 2026]
Error in rule b:
    message: SLURM-job '4' failed, SLURM status is: 'FAILED'. Detailed failure reason unavailable (status \
command is not 'sacct').For further error details see the cluster/cloud log and the log files of the \
involved rule(s).
    jobid: 1
    input: .grid/notebooks/b.ipynb
    output: .grid/state/b.ended
    log: grid/runs/.snakemake/slurm_logs/rule_b/b/4.log (check log file(s) for error details)
    shell:
        exec python -m cdlm_lab.batch.engine grid/runs/.grid/jobs.json b
        (command exited with non-zero exit code)
    external_jobid: 4
"""


def test_a_job_that_the_cluster_refused_could_not_begin(progress: Progress, tmp_path: Path):
    (tmp_path / "log").write_text(REFUSED)
    progress.update({})
    assert progress.named("failed") == ["a"]
    assert progress.states["a"]["reason"] == (
        "it could not begin: SLURM sbatch failed. The error message was 'sbatch: error: Memory specification "
        "can not be satisfied sbatch: error: Batch job submission failed: Requested node configuration is "
        "not available'"
    )
    assert progress.blocked() == {"b": "a", "c": "a"}


def test_a_job_that_was_killed_on_another_machine_failed_at_once(progress: Progress, tmp_path: Path):
    log, states = tmp_path / "log", {name: running(host="node7") for name in "ab"}
    for end in range(0, len(KILLED) + 1, 50):  # read while it is written
        log.write_text(KILLED[:end])
        progress.update(states)
    log.write_text(KILLED)
    for _ in range(2):
        progress.update(states)
        assert (progress.named("failed"), progress.named("running")) == (["b"], ["a"])
    assert progress.states["b"]["reason"] == (
        "it vanished: killed from outside, or its node was lost; SLURM-job '4' failed, SLURM status "
        "is: 'FAILED'. Detailed failure reason unavailable (status command is not 'sacct'); "
        "see grid/runs/.snakemake/slurm_logs/rule_b/b/4.log"
    )
    progress.update({"b": running(host="node7", attempt=2)})
    assert progress.named("running") == ["b"], "the next attempt"


def test_several_failures_in_one_log(progress: Progress, tmp_path: Path):
    (tmp_path / "log").write_text(f"{REFUSED}{KILLED}" + REFUSED.replace("a.ended", "c.ended"))
    progress.update({})
    assert progress.named("failed") == ["a", "b", "c"]


def test_the_log_is_read_as_snakemake_writes_it_today(tmp_path: Path, capsys: pytest.CaptureFixture):
    """Snakemake itself runs a grid here, whose one run cannot begin."""
    grid = read_grid(write_grid(tmp_path, {"a": {}}))
    steps, place = plan_of(tmp_path / "grid.yaml"), Place()
    file = write_jobs(grid, steps, place=place, gpus=[])
    file.write_text(file.read_text().replace(json.dumps(sys.executable), json.dumps("no-such-python")))
    log = file.with_name("snakemake.log")
    with log.open("w") as stream:
        assert start(snakemake_command(grid, place=place, gpus=0), stream).wait() == 1
    progress = Progress(steps, log=log)
    progress.update({})
    assert progress.named("failed") == ["a"]
    assert progress.states["a"]["reason"] == "it could not begin"
    assert _result(grid, progress, 1, log) == 1
    assert "no-such-python" in capsys.readouterr().out, "what the log says"


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
