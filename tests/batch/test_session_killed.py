"""What is left when something of a grid is killed, and that the same command goes on from there."""

import json
import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest
import tiny_grid
from tiny_grid import processes_in, report, run_grid, start_grid, wait_for, write_grid

pytestmark = pytest.mark.slow


def the_run(grid: subprocess.Popen, module: str) -> psutil.Process:
    """The process below a grid that runs a module."""
    for process in psutil.Process(grid.pid).children(recursive=True):
        if module in process.cmdline():
            return process
    raise AssertionError(f"no process runs {module}")


TARGETS = {
    "Ctrl-C": (None, signal.SIGINT, 130),
    "SIGTERM of the command": (None, signal.SIGTERM, 143),
    "SIGKILL of the command": (None, signal.SIGKILL, -9),
    "SIGKILL of Snakemake": ("cdlm_lab.batch.told", signal.SIGKILL, 1),
    "SIGKILL of a run": ("cdlm_lab.batch.one_run", signal.SIGKILL, 1),
}


@pytest.mark.parametrize("target", TARGETS)
def test_whatever_is_killed_nothing_computes_on_and_the_same_command_resumes(target: str, tmp_path: Path):
    module, number, expected = TARGETS[target]
    hold = tmp_path / "hold"
    hold.touch()
    slow = {"parameters": {"trouble": f"wait {hold}"}}
    write_grid(tmp_path, {"slow": slow, "after": {"parameters": {"reads": "{slow}"}}})
    grid = start_grid(tmp_path)
    waiting = tmp_path / "runs" / "slow" / "waiting"
    wait_for(waiting.exists, "the kernel")
    assert len(processes_in(tmp_path)) >= 4, "command, Snakemake, run and kernel"
    killed = grid.pid if module is None else the_run(grid, module).pid
    os.kill(killed, number)
    assert grid.wait(timeout=tiny_grid.BUSY) == expected
    said = (tmp_path / "out.txt").read_text()
    # A kernel whose run is gone notices so within seconds.
    wait_for(lambda: not processes_in(tmp_path), "the end of all processes")
    if expected > 2:
        assert f"stopped by {number.name}. To go on: cdlm-lab run grid.yaml" in said
    elif module == "cdlm_lab.batch.told":
        assert "not all is done (exit code -9 of Snakemake). To go on: cdlm-lab run grid.yaml" in said
    elif module:
        assert "slow failed: it vanished: killed from outside" in said
        assert "after did not start: it waits for slow" in said
    assert not (tmp_path / "runs" / "slow" / "report.json").exists()
    assert waiting.with_name("saved").exists() == (module != "cdlm_lab.batch.one_run"), (
        "a kernel ends its step"
    )

    hold.unlink()
    code, said = run_grid(tmp_path)
    assert code == 0, said
    assert "slow: will go on\n" in said
    assert "resumed" in (tmp_path / "runs" / "slow" / "run.log").read_text()
    assert report(tmp_path, "after")["scores"][0]["value"] == 2.0


def test_a_kernel_that_is_killed_is_tried_again_and_then_named(tmp_path: Path):
    mark = tmp_path / "mark"
    mark.touch()
    tried_twice = {"parameters": {"trouble": f"kill {mark}"}, "resources": {"retries": 1}}
    write_grid(tmp_path, {"a": tried_twice, "b": {}})
    code, said = run_grid(tmp_path)
    assert code == 1
    assert "a failed: the kernel was killed; out of memory?" in said
    assert "1 failed, 1 done, 0 not started" in said
    assert report(tmp_path, "b")["scores"][0]["value"] == 1.0
    tried = json.loads((tmp_path / "runs" / "a" / "run.json").read_text())["sessions"]
    assert len(tried) == 2, "what it printed before it was killed may be lost"
    kept = {path.name for path in (tmp_path / "runs" / "a").glob("*.ipynb")}
    assert kept == {"executed.ipynb", "executed.1.ipynb"}


def test_other_runs_go_on_when_one_may_write_no_more_and_it_goes_on_when_there_is_room(tmp_path: Path):
    """With a limit on the size of files in place of a full disk, which needs no root."""
    full = tmp_path / "full"
    full.touch()
    write_grid(tmp_path, {"a": {"parameters": {"trouble": f"fill {full}"}}, "b": {}})
    limited = "ulimit -f 4000; exec " + " ".join(tiny_grid.command("run", "grid.yaml"))
    form = {"cwd": tmp_path, "env": tiny_grid.environment(), "timeout": tiny_grid.BUSY}
    done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, **form)
    assert done.returncode == 1, done.stderr
    assert "File too large" in done.stdout
    assert "1 failed, 1 done" in done.stdout
    full.unlink()
    (tmp_path / "runs" / "a" / "large").unlink()
    code, said = run_grid(tmp_path)
    assert code == 0, said
