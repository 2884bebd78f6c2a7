"""Execution by Snakemake: its input, how it is started, and how it is stopped with all of its processes.

All files that belong to the grid and not to a run are in the folder `.grid` in the folder of runs:

    lock            held while the grid runs
    jobs.json       all data that the Snakefile and the runs need; lists only the runs to be made
    notebooks/      a copy of each task's notebook, so that the original can be edited meanwhile
    parameters/     the parameters of each run's notebook
    state/          the current state of each run
    jupyter/        a kernel specification of this Python interpreter
    checksums.json  checksums of data
    snakemake.log   the output of Snakemake

The machines that make the runs must have this folder, the working folder and the project at the same paths as
here: on a cluster by a shared file system, with Kubernetes by a volume. A run writes more than its report,
and later runs read it there.

For each run Snakemake calls `python -m cdlm_lab.batch.engine`, which executes a notebook by papermill and
monitors it. Its exit code is papermill's if the notebook wrote a `report.json`, else not 0. The outcome is in
its state file, the output in `run.log`, the cells in `executed.ipynb`. When it is told to stop, or the
process that started it has ended, it ends papermill and the kernel too, so that no process remains.
"""

from __future__ import annotations

import ctypes
import fcntl
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import IO, Any

import psutil
import yaml

from cdlm_lab.batch import plan as planning
from cdlm_lab.batch.grid import RUN_FOLDER, Grid
from cdlm_lab.batch.marked_yaml import GridError
from cdlm_lab.batch.plan import AGAIN, Step, checksums_of, finished_at, read_stamp, write_stamp
from cdlm_lab.data.files import replaced_file
from cdlm_lab.errors import print_any_sign
from cdlm_lab.progress import usable_cores
from cdlm_lab.runs.report import ASIDE, REPORT_FILE, write_json

LOG_FILE, EXECUTED_FILE = "run.log", "executed.ipynb"
GRID_FOLDER, JOBS_FILE, STATE_FOLDER, ENGINE_LOG_FILE = ".grid", "jobs.json", "state", "snakemake.log"
ENDED_FILE = f"{GRID_FOLDER}/{STATE_FOLDER}/{{name}}.ended"  # a run's output for Snakemake, empty
RUNNING, DONE, FAILED, STOPPED = "running", "done", "failed", "stopped"
LOCAL = "local"
_POLL, _GRACE = 0.5, 5.0  # seconds between two checks; seconds from asking a process to end to killing it
_LAST_STEP, _PATIENCE = 60.0, 90.0  # the same for a kernel; and for Snakemake
_THREADS = ("OMP", "MKL", "OPENBLAS", "NUMEXPR")
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux
_DEAD_KERNEL = ("DeadKernelError", "Kernel died")  # texts in the log if a kernel was killed
# Arguments of a kernel that runs this interpreter under the usual name, whatever kernels the machine has. At
# a lower log level each kernel first warns that its loopback connection is not encrypted.
_KERNEL = ["-m", "ipykernel_launcher", "--IPKernelApp.log_level=40", "-f", "{connection_file}"]
_SNAKEFILE = Path(__file__).with_name("Snakefile")
_CLUSTER_JOBS, _CLUSTER_LATENCY = 100, 60  # most runs submitted at once; seconds until a file may appear


# ---- one run ----


def main(arguments: list[str] | None = None) -> int:
    """Execute `python -m cdlm_lab.batch.engine JOBS_FILE NAME` and return its exit code."""
    print_any_sign()
    jobs_file, name = sys.argv[1:] if arguments is None else arguments
    plan = json.loads(Path(jobs_file).read_text(encoding="utf-8"))
    os.chdir(plan["folder"])
    # Created first, so that a process that is missing later must have ended meanwhile.
    watch = Watch(plan["starter"])
    run = OneRun(plan, name)
    try:
        return run.execute(watch)
    except OSError as error:
        run.note(FAILED, reason=f"{error.strerror or error}: {error.filename or plan['grid_folder']}")
        print(f"{name}: {error}", file=sys.stderr)
        return 1


class Watch:
    """Decides when a run must stop: after a signal, or when the parent process or `cdlm-lab run` has ended.
    `starter`: [process id, start time] of `cdlm-lab run` if that is on this machine, else None."""

    def __init__(self, starter: list[Any] | None) -> None:
        self.reason: str | None = None
        self._parent, self._starter = os.getppid(), starter
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop)

    def over(self) -> bool:
        """Return whether the run must stop; once True, it stays True."""
        if self.reason is None and os.getppid() != self._parent:
            self.reason = "what had started it is gone"
        if self.reason is None and self._starter and not is_alive(self._starter):
            self.reason = "cdlm-lab run is gone"
        return self.reason is not None

    def _stop(self, number: int, frame: object) -> None:
        self.reason = f"stopped by {signal.Signals(number).name}"


class OneRun:
    """One run of the jobs file that `write_jobs` writes."""

    def __init__(self, plan: Mapping[str, Any], name: str) -> None:
        self._plan, self._job = plan, plan["jobs"][name]
        self._grid, self._folder = Path(plan["grid_folder"]), Path(self._job["folder"])
        self._state_file = self._grid / STATE_FOLDER / f"{name}.json"
        self._name, attempt = name, 1
        with suppress(OSError, ValueError, LookupError, TypeError):
            attempt = json.loads(self._state_file.read_text(encoding="utf-8"))["attempt"] + 1
        self._state = {"attempt": attempt, "started": time.time()}
        self._state |= {"pid": os.getpid(), "host": socket.gethostname()}

    def execute(self, watch: Watch) -> int:
        """Execute the notebook to its end, or until `watch` stops it; return the exit code."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self.note(RUNNING)
        self._stamp()
        executed = self._folder / EXECUTED_FILE
        if executed.exists() and executed.stat().st_size:  # keep the notebook of an earlier attempt
            executed.rename(_free(executed.with_name(f"{executed.stem}.{n}.ipynb") for n in count(1)))
        command = [sys.executable, "-m", "papermill", self._job["notebook"], str(executed)]
        command += ["-f", self._job["parameters"], "--kernel", "python3", "--log-output", "--no-progress-bar"]
        command += ["--autosave-cell-every", "30"]
        environment = {f"{name}_NUM_THREADS": str(self._job["cores"]) for name in _THREADS}
        environment |= {"PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}
        environment |= {"JUPYTER_PATH": str(self._grid.resolve() / "jupyter")}
        locks = self._take_devices(watch)
        if self._plan["gpus"] is not None:
            environment["CUDA_VISIBLE_DEVICES"] = ",".join(locks)
        with (self._folder / LOG_FILE).open("a", encoding="utf-8") as log:
            print(f"=== {_now()} {self._state['host']}: {' '.join(command)}", file=log, flush=True)
            child = subprocess.Popen(
                command,
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent(signal.SIGTERM),
            )
            code = _wait(child, watch)
            state, reason = self._outcome(code, watch)
            if reason:
                print(f"=== {_now()} {reason}", file=log, flush=True)
        for lock in locks.values():
            lock.close()
        self.note(state, reason=reason)
        return 0 if state == DONE else code or 1

    def note(self, state: str, **more: Any) -> None:
        """Write the run's state to its state file; errors such as a full disk are ignored."""
        with suppress(OSError):
            write_json(self._state_file, {**self._state, "state": state, "noted": time.time(), **more})

    def _stamp(self) -> None:
        """Record the current fingerprint of the run, as code may have changed since the plan was made."""
        planned = self._job["fingerprint"]
        fingerprint = {
            **planned,
            "code": checksums_of(list(planned["code"])),
            "runs": {name: finished_at(self._folder.parent / name) for name in planned["runs"]},
        }
        stamp = {"name": self._name, "grid": self._plan["grid"], "notebook": self._job["notebook_name"]}
        stamp["fingerprint"] = fingerprint
        before = read_stamp(self._folder)
        if before is not None:  # resumed, perhaps with other code than it began with
            stamp["began_with"] = before.get("began_with", before["fingerprint"])
        write_stamp(self._folder, stamp)

    def _take_devices(self, watch: Watch) -> dict[str, IO[str]]:
        """Wait for the GPUs that this run needs to itself; return their locks. {} on clusters."""
        taken: dict[str, IO[str]] = {}
        wanted = 0 if self._plan["gpus"] is None else self._job["gpus"]
        while len(taken) < wanted and not watch.over():
            for device in self._plan["gpus"]:
                if device in taken or len(taken) == wanted:
                    continue
                lock = (self._grid / f"gpu-{device}.lock").open("w", encoding="utf-8")
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    taken[device] = lock
                except BlockingIOError:
                    lock.close()
            time.sleep(0.0 if len(taken) == wanted else _POLL)
        return taken

    def _outcome(self, code: int, watch: Watch) -> tuple[str, str | None]:
        """Return (state, reason) of the run after papermill has ended; no reason if it is done."""
        if code == 0 and (self._folder / REPORT_FILE).exists():
            return DONE, None
        if watch.reason:
            return STOPPED, watch.reason
        if code == 0:
            return FAILED, f"the notebook ended but left no {REPORT_FILE}"
        if code < 0:
            return FAILED, f"papermill was killed ({signal.Signals(-code).name}); out of memory?"
        if any(mark in last_lines(self._folder / LOG_FILE, 40) for mark in _DEAD_KERNEL):
            return FAILED, "the kernel was killed; out of memory?"
        return FAILED, f"the notebook ended with exit code {code}"


def _wait(child: subprocess.Popen, watch: Watch) -> int:
    while True:
        try:
            return child.wait(timeout=_POLL)
        except subprocess.TimeoutExpired:
            if watch.over():
                # First the kernel, in a session of its own: a training ends its step and writes a checkpoint.
                parent = psutil.Process(child.pid)
                end_all(parent.children(), patience=_LAST_STEP)
                end_all([parent, *parent.children(recursive=True)])
                return child.wait()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _free(paths: Iterable[Path]) -> Path:
    """Return the first path that does not exist."""
    return next(path for path in paths if not path.exists())


def last_lines(path: Path, count: int) -> str:
    """Return at most the last `count` lines of a text file; "" if it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 400 * count))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-count:])


# ---- processes ----


def is_alive(process: list[Any]) -> bool:
    """Return whether a process, [process id, start time], is alive and its id was not given to another."""
    try:
        known = psutil.Process(process[0])
        return abs(known.create_time() - process[1]) < 1 and known.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def die_with_parent(number: int) -> Callable[[], None]:
    """Return a `preexec_fn` for subprocesses. On Linux the process gets the signal `number` when its parent
    dies, however that happens. It also reacts to SIGINT, which shells make background processes ignore."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None

    def prepare() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if library is not None:
            library.prctl(_DEATH_SIGNAL, number, 0, 0, 0)

    return prepare


def end_all(processes: list[psutil.Process], *, patience: float = _GRACE) -> None:
    """Terminate processes, and kill those that do not end within `patience` seconds."""
    for process in processes:
        with suppress(psutil.Error):
            process.terminate()
    for process in psutil.wait_procs(processes, timeout=patience)[1]:
        with suppress(psutil.Error):
            process.kill()


def start(command: Sequence[str], log: IO[str]) -> subprocess.Popen:
    """Start Snakemake in its own session; it is interrupted when this process dies, however that happens."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=die_with_parent(signal.SIGINT),
    )


def stop(engine: subprocess.Popen, *, local: bool) -> None:
    """Stop Snakemake and its runs: those on this machine directly, those on a cluster through Snakemake."""
    deadline = time.monotonic() + _PATIENCE
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


# ---- all runs of a grid ----


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


def take_grid(runs: Path) -> IO[str]:
    """Lock the folder of runs until the returned file is closed or the process ends. Raises GridError if
    another process has locked it."""
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
    except OSError:  # this file system has no locks
        return lock
    lock.truncate(0)
    lock.write(f"process {os.getpid()}")
    lock.flush()
    return lock


def put_aside(steps: Mapping[str, Step]) -> list[tuple[Path, Path]]:
    """Rename the folders of runs that are repeated, as in runs/x.old-20261122-090400; nothing is deleted.
    Return the old and the new path of each."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    moved = []
    for folder in (step.job.folder for step in steps.values() if step.state == AGAIN):
        name = f"{folder.name}{ASIDE}{stamp}"
        new = _free(folder.with_name(f"{name}-{n}" if n > 1 else name) for n in count(1))
        moved.append((folder, folder.rename(new)))
    return moved


def write_jobs(grid: Grid, steps: Mapping[str, Step], *, place: Place, gpus: Sequence[str]) -> Path:
    """Write all data that the Snakefile and the runs need to the grid's folder; return jobs.json's path."""
    folder = grid.runs / GRID_FOLDER
    shutil.rmtree(folder / STATE_FOLDER, ignore_errors=True)
    kernel = folder / "jupyter" / "kernels" / "python3" / "kernel.json"
    for made in (folder / STATE_FOLDER, folder / "notebooks", folder / "parameters", kernel.parent):
        made.mkdir(parents=True, exist_ok=True)
    write_json(kernel, {"argv": [sys.executable, *_KERNEL], "display_name": "cdlm_lab", "language": "python"})
    tasks: dict[str, Any] = {}
    jobs: dict[str, Any] = {}
    to_make = {name: step for name, step in steps.items() if step.runs}
    expected = planning.expected_seconds(steps, {})
    chains = planning.longest_chains(steps, {name: expected[name] for name in to_make})
    for name, step in to_make.items():
        job, task = step.job, step.job.task
        copy, parameters = folder / "notebooks" / f"{task.name}.ipynb", folder / "parameters" / f"{name}.yaml"
        if task.name not in tasks:
            shutil.copyfile(task.notebook.path, copy)
            alike = [one.job.resources for one in to_make.values() if one.job.task is task]
            most = max(alike, key=lambda one: one.gpus)
            # `runs` is our own resource, which implements --jobs.
            limits = {"mem_mb": round(most.memory_gb * 1000), "runtime": max(1, round(most.minutes))}
            limits |= {"runs": 1} | ({"gpu": most.gpus} if most.gpus else {})
            tasks[task.name] = {"names": [], "cores": most.cores, "retries": most.retries}
            tasks[task.name] |= {"resources": limits, "notebook": copy.relative_to(grid.runs).as_posix()}
        tasks[task.name]["names"].append(name)
        with replaced_file(parameters) as file:  # papermill reads it with PyYAML
            yaml.safe_dump({**job.parameters, RUN_FOLDER: str(job.folder)}, file, sort_keys=False)
        jobs[name] = {"task": task.name, "folder": str(job.folder), "after": list(job.after)}
        jobs[name] |= {"notebook": str(copy), "notebook_name": str(task.notebook.path)}
        jobs[name] |= {"parameters": str(parameters), "fingerprint": step.fingerprint}
        jobs[name] |= {**asdict(job.resources), "priority": chains[name]}
    values = {
        "folder": os.getcwd(),
        "grid": str(grid.path),
        "grid_folder": str(folder),
        "ended": ENDED_FILE,
        "python": sys.executable,
        "jobs_file": str((folder / JOBS_FILE).resolve()),
        "starter": [os.getpid(), psutil.Process().create_time()] if place.local else None,
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
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(_SNAKEFILE)]
    command += ["--directory", str(grid.runs), "--config", f"jobs={GRID_FOLDER}/{JOBS_FILE}"]
    # The grid has its own lock; and as only runs to be made are listed, no file times need to be compared.
    command += ["--nolock", "--rerun-incomplete", "--keep-going", "--scheduler", "greedy"]
    command += ["--rerun-triggers", "mtime", "--nocolor"]
    if place.local:
        limits = [f"mem_mb={psutil.virtual_memory().available // 10**6}", f"gpu={gpus}"]
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


def read_states(runs: Path, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the last state that each run has written, by name; runs without a state are omitted."""
    states = {}
    for name in names:
        path = runs / GRID_FOLDER / STATE_FOLDER / f"{name}.json"
        with suppress(OSError, ValueError):
            states[name] = json.loads(path.read_text(encoding="utf-8"))
    return states


if __name__ == "__main__":
    sys.exit(main())
