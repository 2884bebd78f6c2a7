"""Tiny notebooks that make real runs without importing torch, grids of them, and the command to run these."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from cdlm_lab.batch.expansion import Job, expand
from cdlm_lab.batch.grid import read_grid
from cdlm_lab.batch.plan import Checksums, Choice, Step, make_plan
from cdlm_lab.runs.identity import Inputs
from cdlm_lab.runs.report import open_run

BUSY = 1200  # timeout in seconds; a run takes 5 on an idle machine, but many times that on a busy one

GPUS = ""  # those that the command sees

PARAMETERS = """run_folder = "runs/tiny"  # where results go
rate = 0.5  # is doubled
steps = 3
name = "a"
reads = ""  # run folders of others
trouble = ""  # what goes wrong
maybe = None
seed = 0"""

# Trouble only occurs while a file exists, so that a test can remove it between two calls.
BODY = """import json, os, pathlib, signal, time
from cdlm_lab.runs.report import open_run
given = dict(rate=rate, steps=steps, name=name, reads=reads, seed=seed)
run = open_run(run_folder, name="tiny", parameters=given)
reports = [json.loads(pathlib.Path(f, "report.json").read_text()) for f in reads.split()]
before = [report["scores"][0]["value"] for report in reports]
print("resumed" if run.resumed else "from the beginning", flush=True)
if trouble.startswith("raise") and pathlib.Path(trouble.split()[1]).exists():
    raise ValueError("this cell is broken")
if trouble.startswith("kill") and pathlib.Path(trouble.split()[1]).exists():
    os.kill(os.getpid(), signal.SIGKILL)
if trouble.startswith("wait"):
    def end_step(*signal):  # as a training does: it saves before it ends
        time.sleep(3)
        os._exit(pathlib.Path(run_folder, "saved").write_text("") + 1)
    signal.signal(signal.SIGTERM, end_step)
    pathlib.Path(run_folder, "waiting").write_text(str(os.getpid()))
    while pathlib.Path(trouble.split()[1]).exists():
        time.sleep(0.1)
if trouble == "silent":
    raise SystemExit(0)
if trouble.startswith("fill") and pathlib.Path(trouble.split()[1]).exists():
    with open(pathlib.Path(run_folder, "large"), "wb") as file:
        while True:
            file.write(bytes(1 << 16))"""

END = """from cdlm_lab.runs.scores import Score
score = Score(metric="value", value=2 * rate + sum(before))
run.write_report(scores=[score], data={"text": "abc"})"""


def write_notebook(path: Path, *, parameters: str = PARAMETERS, body: str = BODY, end: str = END) -> Path:
    """Write a notebook of three code cells and a Markdown cell."""
    cells = [new_code_cell(parameters, metadata={"tags": ["parameters"]}), new_markdown_cell("# Tiny")]
    cells += [new_code_cell(body), new_code_cell(end)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path.write_text(json.dumps(new_notebook(cells=cells, metadata={"kernelspec": kernel})))
    return path


def write_grid(path: Path, tasks: dict[str, Any], **more: Any) -> Path:
    """Write a grid in a folder; tasks that name no notebook run tiny.ipynb."""
    if not (path / "tiny.ipynb").exists():
        write_notebook(path / "tiny.ipynb")
    written = {name: {"notebook": "tiny.ipynb", **task} for name, task in tasks.items()}
    (path / "grid.yaml").write_text(
        yaml.safe_dump({"runs": "runs", **more, "tasks": written}, sort_keys=False)
    )
    return path / "grid.yaml"


def jobs_of(path: Path) -> dict[str, Job]:
    """Return the runs of a grid file."""
    return expand(read_grid(path))


def plan_of(path: Path, **choice: Any) -> dict[str, Step]:
    """Return the plan of a grid file."""
    return make_plan(jobs_of(path), choice=Choice(**choice), checksums=Checksums(Path("none.json")))


NOTHING = Inputs()


def pretend(steps: dict[str, Step], *names: str, inputs: Inputs = NOTHING) -> None:
    """Make runs as the grid would, but without executing notebooks: in order, each with its report."""
    for name in names or steps:
        job = steps[name].job
        run = open_run(job.folder, name="tiny", parameters=job.effective, inputs=inputs)
        run.write_report(scores=[])


def command(*arguments: str) -> list[str]:
    """Return the command `cdlm-lab` for this interpreter."""
    return [sys.executable, "-m", "cdlm_lab.batch.command", *arguments]


def environment() -> dict[str, str]:
    """Return the environment of a user who does not work in the checkout."""
    return os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2]), "CUDA_VISIBLE_DEVICES": GPUS}


def run_grid(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run `cdlm-lab run grid.yaml ...` in a folder; return (exit code, everything printed)."""
    form = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "timeout": BUSY}
    done = subprocess.run(command("run", "grid.yaml", *arguments), cwd=folder, env=environment(), **form)
    return done.returncode, done.stdout


def start_grid(folder: Path, *arguments: str) -> subprocess.Popen:
    """Start `cdlm-lab run grid.yaml ...` in its own process group; its output goes to out.txt."""
    with (folder / "out.txt").open("w") as out:
        return subprocess.Popen(
            command("run", "grid.yaml", *arguments),
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # Background processes of a shell ignore SIGINT, and so would their children.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )


def wait_for(found: Callable[[], Any], what: str) -> Any:
    """Call `found` until its value is true, and return that; AssertionError, with `what`, on a timeout."""
    end = time.monotonic() + BUSY
    while time.monotonic() < end:
        if value := found():
            return value
        time.sleep(0.1)
    raise AssertionError(f"{what} did not come within {BUSY} s")


def processes_in(folder: Path) -> list[psutil.Process]:
    """Return all other processes whose working directory is a folder or below it."""
    found = []
    for process in psutil.process_iter():
        try:
            inside = process.pid != os.getpid() and Path(process.cwd()).is_relative_to(folder)
            if inside and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def report(folder: Path, name: str) -> dict[str, Any]:
    """Read the report of a run."""
    return json.loads((folder / "runs" / name / "report.json").read_text())
