"""Execution by Snakemake: what is written for it, how it is started, and how it is stopped.

All files that belong to the grid and not to a run are in the folder `.grid` in the folder of runs:

    lock            held while the grid runs
    jobs.json       all data that the Snakefile and the runs need; lists only the runs to be made
    notebooks/      a copy of each task's notebook, so that the original can be edited meanwhile
    ended/          an empty file for each run that was made, its output for Snakemake
    jupyter/        a kernel specification of this Python interpreter
    checksums.json  checksums of data

The machines that make the runs must have this folder, the working folder and the project at the same paths as
here: on a cluster by a shared file system, with Kubernetes by a volume. A run writes more than its report,
and later runs read it there.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import count, cycle, islice
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from cdlm_lab.batch.grid import RUN_FOLDER, Grid, GridError
from cdlm_lab.batch.plan import AGAIN, Step
from cdlm_lab.progress import usable_cores
from cdlm_lab.runs.report import ASIDE, write_json

GRID_FOLDER, JOBS_FILE = ".grid", "jobs.json"
ENDED_FILE = f"{GRID_FOLDER}/ended/{{name}}"
LOCAL = "local"
_SNAKEFILE = Path(__file__).with_name("Snakefile")
_CLUSTER_JOBS, _CLUSTER_LATENCY = 100, 60  # most runs submitted at once; seconds until a file may appear
_PATIENCE = 90.0  # seconds in which Snakemake and its runs must end when they are told to
# A kernel that runs this interpreter under the usual name, whatever kernels the machine has. At a lower log
# level each kernel first warns that its loopback connection is not encrypted.
_KERNEL = {
    "display_name": "cdlm_lab",
    "language": "python",
    "argv": [sys.executable, "-m", "ipykernel_launcher"],
}
_KERNEL["argv"] += ["--IPKernelApp.log_level=40", "-f", "{connection_file}"]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where runs are executed."""

    # "local", "slurm", "kubernetes" or another executor of Snakemake; None = the one of the profile.
    executor: str | None = LOCAL
    profile: str | None = None  # a folder with a profile of Snakemake, or None
    jobs: int | None = None  # most runs at the same time; None = as many as fit, on a cluster 100
    more: tuple[str, ...] = ()  # further options for Snakemake

    @property
    def local(self) -> bool:
        """Whether the runs are executed on this machine."""
        return self.executor == LOCAL


@contextmanager
def only_user(runs: Path) -> Iterator[None]:
    """Lock the folder of runs, also against processes that are killed. Raises GridError if it is locked."""
    (runs / GRID_FOLDER).mkdir(parents=True, exist_ok=True)
    lock = FileLock(runs / GRID_FOLDER / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise GridError(f"{runs} is in use by another command: wait for it, or end it") from None
    with lock:
        yield


def put_aside(steps: Mapping[str, Step]) -> list[tuple[Path, Path]]:
    """Rename the folders of runs that are repeated, as in runs/x.old-20261122-090400; nothing is deleted.
    Return the old and the new path of each."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    moved = []
    for folder in (step.job.folder for step in steps.values() if step.state == AGAIN):
        name = f"{folder.name}{ASIDE}{stamp}"
        names = (folder.with_name(f"{name}-{n}" if n > 1 else name) for n in count(1))
        moved.append((folder, folder.rename(next(new for new in names if not new.exists()))))
    return moved


def write_jobs(grid: Grid, steps: Mapping[str, Step], *, place: Place, gpus: Sequence[str]) -> Path:
    """Write all data that the Snakefile and the runs need to the grid's folder; return jobs.json's path."""
    folder = grid.runs / GRID_FOLDER
    for name in ("ended", "notebooks"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir(parents=True)
    kernel = folder / "jupyter" / "kernels" / "python3" / "kernel.json"
    kernel.parent.mkdir(parents=True, exist_ok=True)
    write_json(kernel, _KERNEL)
    jobs, tasks = {}, {}
    made = [step.job for step in steps.values() if step.runs]
    places = cycle(range(len(gpus)))  # of the GPUs of this machine, which runs are given in turn
    for job in made:
        asked, notebook = job.resources, f"{job.task.name}.ipynb"
        shutil.copyfile(job.task.notebook.path, folder / "notebooks" / notebook)
        jobs[job.name] = {
            "folder": str(job.folder),
            "after": list(job.after),
            "notebook": str(folder / "notebooks" / notebook),
            "parameters": {**job.parameters, RUN_FOLDER: str(job.folder)},
            "cores": asked.cores,
            "gpus": list(islice(places, asked.gpus)) if place.local else None,
        }
        # `runs` is a resource of ours, which implements --jobs.
        limits = {"mem_mb": round(asked.memory_gb * 1000), "runtime": max(1, round(asked.minutes)), "runs": 1}
        task = {"names": [], "notebook": notebook, "cores": asked.cores, "retries": asked.retries}
        task = tasks.setdefault(job.task.name, {**task, "resources": limits})
        task["names"].append(job.name)
        if most := max(asked.gpus, task["resources"].get("gpu", 0)):
            task["resources"]["gpu"] = most
    values = {
        "folder": os.getcwd(),
        "grid": str(grid.path),
        "ended": ENDED_FILE,
        "python": sys.executable,
        "jobs_file": str((folder / JOBS_FILE).resolve()),
        "gpus": list(gpus) if place.local else None,
        "tasks": tasks,
        "jobs": jobs,
    }
    write_json(folder / JOBS_FILE, values)
    return folder / JOBS_FILE


def snakemake_command(grid: Grid, *, place: Place, gpus: int) -> list[str]:
    """Return the command that makes the runs of jobs.json. Raises GridError if Snakemake, or its plugin for
    the executor, is not installed."""
    _require("snakemake", "pip install 'cdlm_lab[cluster]'")
    command = [sys.executable, "-m", "cdlm_lab.batch.told", str(grid.runs / GRID_FOLDER / JOBS_FILE)]
    command += ["--snakefile", str(_SNAKEFILE)]
    command += ["--directory", str(grid.runs), "--config", f"jobs={GRID_FOLDER}/{JOBS_FILE}"]
    # The grid has its own lock; and as only runs to be made are listed, no file times need to be compared.
    command += ["--nolock", "--rerun-incomplete", "--keep-going", "--scheduler", "greedy"]
    command += ["--rerun-triggers", "mtime", "--logger", "cdlm-lab"]
    if place.local:
        limits = [f"mem_mb={psutil.virtual_memory().available // 10**6}", f"gpu={gpus}"]
        limits += [f"gpu_{place}=1" for place in range(gpus)]
        limits += [f"runs={place.jobs}"] if place.jobs else []
        return [*command, "--cores", str(usable_cores()), "--resources", *limits, *place.more]
    if place.executor:
        plugin = f"snakemake-executor-plugin-{place.executor}"
        _require(plugin, f"pip install {plugin}")
        command += ["--executor", place.executor]
    if place.executor == "slurm" and "--slurm-status-command" not in place.more and not _has_accounting():
        command += ["--slurm-status-command", "squeue"]
    if place.profile:
        command += ["--profile", place.profile]
    if place.jobs or place.executor:
        command += ["--jobs", str(place.jobs or _CLUSTER_JOBS)]
    return [*command, "--latency-wait", str(_CLUSTER_LATENCY), *place.more]


def _require(package: str, remedy: str) -> None:
    if importlib.util.find_spec(package.replace("-", "_")) is None:
        raise GridError(f"{package} is not installed: {remedy}")


def _has_accounting() -> bool:
    """Return whether Slurm has accounting. Without it `sacct` would be polled forever; `squeue` works."""
    try:
        return subprocess.run(["sacct", "--allocations"], capture_output=True, timeout=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def stop(snakemake: subprocess.Popen, *, local: bool) -> None:
    """Stop Snakemake and its runs: those on this machine directly, those on a cluster through Snakemake."""
    runs: list[psutil.Process] = []
    with suppress(psutil.Error):
        runs = psutil.Process(snakemake.pid).children(recursive=not local)
    # At SIGINT Snakemake cancels the jobs of a cluster, but waits for those of this machine.
    snakemake.send_signal(signal.SIGKILL if local else signal.SIGINT)
    for run in runs if local else ():
        with suppress(psutil.Error):
            run.terminate()
    for left in psutil.wait_procs([psutil.Process(snakemake.pid), *runs], timeout=_PATIENCE)[1]:
        with suppress(psutil.Error):
            left.kill()
    snakemake.wait()
