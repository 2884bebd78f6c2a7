"""Snakemake underneath: what it is given, how it is started, and how it is ended with all that it started.

Everything that belongs to the tool and not to a run lies in `.grid` in the folder of runs:

    lock            held while the grid runs
    jobs.json       all that Snakefile and runs need to know; only runs that are to be made
    notebooks/      a copy of each task's notebook, so that it may be edited meanwhile
    parameters/     what each run's notebook is given
    state/          how each run stands
    jupyter/        a kernel that is this very interpreter
    checksums.json  of data
    snakemake.log   all that Snakemake said

Whatever makes the runs must see this folder, the working folder and the project where they are here: on a
cluster a shared file system, with Kubernetes a volume. A run leaves more than its report, and the next run
reads it there.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import psutil
import yaml

from cdlm_lab.batch.grid_file import Grid, Resources
from cdlm_lab.batch.marked_yaml import GridError
from cdlm_lab.batch.notebook import RUN_FOLDER
from cdlm_lab.batch.one_run import STATE_FOLDER, die_with_parent, end_all
from cdlm_lab.batch.plan import AGAIN, Step, aside
from cdlm_lab.data.files import replaced_file
from cdlm_lab.ranks import usable_cores
from cdlm_lab.report.values import write_json

GRID_FOLDER, JOBS_FILE, LOG_FILE = ".grid", "jobs.json", "snakemake.log"
LOCAL = "local"
_SNAKEFILE = Path(__file__).with_name("Snakefile")
_CLUSTER_JOBS, _CLUSTER_LATENCY = 100, 60  # runs handed over at once; seconds that a file may take to appear
_PATIENCE = 60.0  # seconds until what was told to stop is killed


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where runs are made.

    Attributes:
        executor: "local", "slurm", "kubernetes" or another of Snakemake's; None = the profile says.
        profile: a folder with a profile of Snakemake, or None.
        jobs: at most so many runs at once; None = as many as fit, on a cluster 100.
        more: options that are handed on to Snakemake.
    """

    executor: str | None = LOCAL
    profile: str | None = None
    jobs: int | None = None
    more: tuple[str, ...] = ()

    @property
    def local(self) -> bool:
        """True if the runs are made by this machine."""
        return self.executor == LOCAL


def take_grid(runs: Path) -> IO[str]:
    """Hold the folder of runs until the file is closed, or the process ends.

    Raises:
        GridError: another process holds it.
    """
    folder = runs / GRID_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    lock = (folder / "lock").open("a+", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().strip() or "another process"
        lock.close()
        raise GridError(f"{runs} is in use by {holder}: wait for it, or end it") from None
    except OSError:  # no locks on this file system
        return lock
    lock.truncate(0)
    lock.write(f"process {os.getpid()}")
    lock.flush()
    return lock


def put_aside(steps: Mapping[str, Step]) -> list[tuple[Path, Path]]:
    """Rename the folders of runs that are made anew; nothing is deleted. (before, after) of each."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    moved = []
    for step in steps.values():
        if step.state == AGAIN:
            new = aside(step.job.folder, stamp=stamp)
            step.job.folder.rename(new)
            moved.append((step.job.folder, new))
    return moved


def write_jobs(grid: Grid, steps: Mapping[str, Step], *, place: Place, gpus: Sequence[str]) -> Path:
    """Write what Snakefile and runs need to know into the folder of the grid; the path of jobs.json."""
    folder = grid.runs / GRID_FOLDER
    shutil.rmtree(folder / STATE_FOLDER, ignore_errors=True)
    for name in (STATE_FOLDER, "notebooks", "parameters"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    _write_kernel(folder / "jupyter" / "kernels" / "python3" / "kernel.json")
    todo = {name: step for name, step in steps.items() if step.runs}
    tasks: dict[str, Any] = {}
    for name, step in todo.items():
        task = step.job.task
        if task.name not in tasks:
            copy = folder / "notebooks" / f"{task.name}.ipynb"
            shutil.copyfile(task.notebook.path, copy)
            alike = [one.job.resources for one in todo.values() if one.job.task is task]
            tasks[task.name] = {"names": [], **_asked(max(alike, key=lambda one: one.gpus))}
            tasks[task.name]["notebook"] = copy.relative_to(grid.runs).as_posix()
        tasks[task.name]["names"].append(name)
        with replaced_file(folder / "parameters" / f"{name}.yaml") as file:  # papermill reads it with PyYAML
            yaml.safe_dump({**step.job.parameters, RUN_FOLDER: str(step.job.folder)}, file, sort_keys=False)
    here = psutil.Process()
    values = {
        "folder": os.getcwd(),
        "grid": str(grid.path),
        "grid_folder": str(folder),
        "python": sys.executable,
        "jobs_file": str((folder / JOBS_FILE).resolve()),
        "starter": [here.pid, here.create_time()] if place.local else None,
        "gpus": list(gpus) if place.local else None,
        "tasks": tasks,
        "jobs": {name: _job(step, folder) for name, step in todo.items()},
    }
    write_json(folder / JOBS_FILE, values)
    return folder / JOBS_FILE


def snakemake_command(grid: Grid, *, place: Place, gpus: int) -> list[str]:
    """The command that makes the runs of jobs.json.

    Raises:
        GridError: Snakemake, or its plugin for the executor, is not installed.
    """
    _require("snakemake", "pip install 'cdlm_lab[cluster]'")
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(_SNAKEFILE)]
    command += ["--directory", str(grid.runs), "--config", f"jobs={GRID_FOLDER}/{JOBS_FILE}"]
    # The lock is ours; and nothing is to be made twice, so there is nothing to compare times of.
    command += ["--nolock", "--rerun-incomplete", "--keep-going", "--scheduler", "greedy"]
    command += ["--rerun-triggers", "mtime", "--nocolor"]
    if place.local:
        limits = [f"mem_mb={psutil.virtual_memory().available // 10**6}", f"gpu={gpus}"]
        limits += [f"runs={place.jobs}"] if place.jobs else []
        return [*command, "--cores", str(usable_cores()), "--resources", *limits, *place.more]
    if place.executor:
        plugin = f"snakemake-executor-plugin-{place.executor}"
        _require(plugin.replace("-", "_"), f"pip install {plugin}")
        command += ["--executor", place.executor]
    if place.executor == "slurm" and "--slurm-status-command" not in place.more and not _has_accounting():
        command += ["--slurm-status-command", "squeue"]
    if place.profile:
        command += ["--profile", place.profile]
    if place.jobs or place.executor:
        command += ["--jobs", str(place.jobs or _CLUSTER_JOBS)]
    return [*command, "--latency-wait", str(_CLUSTER_LATENCY), *place.more]


def start(command: Sequence[str], log: IO[str]) -> subprocess.Popen:
    """Start Snakemake in a session of its own; it is interrupted when this process dies, however it does."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=die_with_parent(signal.SIGINT),
    )


def stop(engine: subprocess.Popen, *, local: bool, patience: float = _PATIENCE) -> None:
    """End Snakemake and what it started: runs on this machine directly, those of a cluster through it."""
    deadline = time.monotonic() + patience
    with suppress(ProcessLookupError):
        os.kill(engine.pid, signal.SIGINT)
    while engine.poll() is None and time.monotonic() < deadline:
        for child in _children(engine.pid) if local else ():
            with suppress(psutil.Error):
                child.terminate()
        time.sleep(0.2)
    if engine.poll() is None:
        rest = [child for parent in _children(engine.pid) for child in [parent, *_children(parent.pid)]]
        engine.kill()
        end_all(rest)
        engine.wait()


def _children(number: int) -> list[psutil.Process]:
    try:
        return psutil.Process(number).children()
    except psutil.Error:
        return []


def _asked(resources: Resources) -> dict[str, Any]:
    """Resources in Snakemake's words; `runs` is ours, for `--jobs`."""
    named = {
        "mem_mb": round(resources.memory_gb * 1000),
        "runtime": max(1, round(resources.minutes)),
        "runs": 1,
    }
    if resources.gpus:
        named["gpu"] = resources.gpus
    return {"cores": resources.cores, "retries": resources.retries, "resources": named}


def _job(step: Step, folder: Path) -> dict[str, Any]:
    job = step.job
    return {
        "task": job.task.name,
        "folder": str(job.folder),
        "after": list(job.after),
        "notebook": str(folder / "notebooks" / f"{job.task.name}.ipynb"),
        "notebook_name": str(job.task.notebook.path),
        "parameters": str(folder / "parameters" / f"{job.name}.yaml"),
        "fingerprint": step.fingerprint,
        **asdict(job.resources),
    }


def _write_kernel(path: Path) -> None:
    """A kernel of the usual name that is this interpreter, whatever kernels the machine has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    argv += ["--IPKernelApp.log_level=40"]  # else each begins with a warning that the loopback line is plain
    write_json(path, {"argv": argv, "display_name": "cdlm_lab", "language": "python"})


def _require(module: str, remedy: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise GridError(f"{module.replace('_', '-')} is not installed: {remedy}")


def _has_accounting() -> bool:
    """False where Slurm keeps no accounts; then `sacct` would be asked for ever, and `squeue` knows."""
    try:
        asked = subprocess.run(["sacct", "--allocations"], capture_output=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0


def read_states(runs: Path, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """name -> what the run noted last; those that noted nothing are left out."""
    found = {}
    for name in names:
        path = runs / GRID_FOLDER / STATE_FOLDER / f"{name}.json"
        with suppress(OSError, ValueError):
            found[name] = json.loads(path.read_text(encoding="utf-8"))
    return found
