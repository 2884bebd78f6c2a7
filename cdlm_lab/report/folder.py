"""The folder of a run: taken before any work, held by one process, finished by its report.

A run that was interrupted is taken up again by the same command, a finished one is never written over. Under
torchrun (RANK in the environment) only rank 0 looks at the folder and writes.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from cdlm_lab.parameters import BY_HOW_MANY, with_those_of_before
from cdlm_lab.ranks import is_first
from cdlm_lab.report.document import REPORT_FILE, Report, save_report
from cdlm_lab.report.surroundings import git_commit, hardware, peak_memory, versions
from cdlm_lab.report.values import RunError, kept, plain, plain_score, write_json

RUN_FILE, LOCK_FILE = "run.json", ".lock"
ASIDE = ".old-"  # in the name of a folder that another run has taken the place of, as grids put them aside
# What papermill and schedulers put into the folder before the notebook begins.
_NOT_OURS = (".ipynb", ".log", ".out", ".err")
_EMPTY: Mapping[str, Any] = {}


@dataclass(kw_only=True)
class Run:
    """A folder held for the life of the process; made by `open_run`.

    Attributes:
        folder: of the run; anything may be written there.
        name: of the experiment.
        parameters: as JSON has them (tuples are lists).
        resumed: True if an interrupted run is taken up (known in rank 0 only).
        writer: False in ranks other than 0, which write nothing.
    """

    folder: Path
    name: str
    parameters: dict[str, Any]
    resumed: bool
    writer: bool
    _sessions: list[dict[str, Any]] = field(default_factory=list, repr=False)
    _lock: int | None = field(default=None, repr=False)

    def write_report(
        self,
        *,
        scores: Mapping[str, Any],
        data: Mapping[str, Any] = _EMPTY,
        tables: Mapping[str, Sequence[Mapping[str, Any]]] = _EMPTY,
        figures: Mapping[str, str | Path] = _EMPTY,
    ) -> Report:
        """Finish the run: write `report.json` in one go and let go of the folder.

        Args:
            scores: name -> number, or mapping with "value".
            data: name -> checksum or other JSON value.
            tables: name -> rows.
            figures: name -> file in the run's folder.

        Raises:
            RunError: a score without a value, a number that is nan or infinite, a value that JSON has not, a
                figure that is not there; the run is finished already.
        """
        if (self.folder / REPORT_FILE).exists() and self.writer:
            raise RunError(_finished(self.folder))
        now = _now()
        report = Report(
            name=self.name,
            parameters=self.parameters,
            seed=self.parameters.get("seed"),
            scores={name: plain_score(score, f"scores[{name!r}]") for name, score in scores.items()},
            data=plain(data, "data"),
            tables={
                name: [dict(row) for row in plain(rows, f"tables[{name!r}]")] for name, rows in tables.items()
            },
            figures={name: self._figure(name, file) for name, file in figures.items()},
            versions=versions(),
            hardware=hardware(),
            seconds=round(
                sum(session["seconds"] for session in self._sessions[:-1]) + _since(self._began, now), 3
            ),
            peak_memory=peak_memory(),
            git_commit=git_commit(),
            started=self._sessions[0]["started"] if self._sessions else now,
            finished=now,
        )
        if self.writer:
            save_report(report, self.folder)
            self.close()
        return report

    def close(self) -> None:
        """Let go of the folder; otherwise that happens when the process ends, however it ends."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def _began(self) -> str:
        return self._sessions[-1]["started"] if self._sessions else _now()

    def _figure(self, name: str, file: str | Path) -> str:
        path = self.folder / file  # an absolute `file` stands for itself
        if self.writer and not path.is_file():
            raise RunError(f"figures[{name!r}]: there is no file {path}; write it before the report")
        if not path.resolve().is_relative_to(self.folder.resolve()):
            raise RunError(f"figures[{name!r}]: {path} is not in the folder of the run, {self.folder}")
        return path.resolve().relative_to(self.folder.resolve()).as_posix()


def open_run(
    folder: str | os.PathLike[str], *, name: str, parameters: Mapping[str, Any], resume: bool = True
) -> Run:
    """Take a folder for a run, before any work is done.

    Args:
        folder: is made if it does not exist. Notebooks and logs in it do not count as used.
        name: of the experiment.
        parameters: all parameters, JSON values; the same again take up an interrupted run, but for those in
            `BY_HOW_MANY`, which may be others.
        resume: False = refuse an interrupted run too.

    Raises:
        RunError: the folder holds a finished run, other files, a run with another name or parameters, or a
            live one; the disk is full.
    """
    path, values = Path(folder), plain(parameters, "parameters")
    if not is_first():
        return Run(folder=path, name=name, parameters=values, resumed=False, writer=False)
    if path.exists() and not path.is_dir():
        raise RunError(f"{path} is a file; a run needs a folder")
    refuse_foreign(path)
    with kept(path):
        path.mkdir(parents=True, exist_ok=True)
    session = {"started": _now(), "pid": os.getpid(), "host": socket.gethostname(), "seconds": None}
    lock = _take_lock(path, session)
    try:
        sessions = [*_earlier_sessions(path, name=name, parameters=values, resume=resume), session]
        with kept(path / RUN_FILE):
            write_json(path / RUN_FILE, {"name": name, "parameters": values, "sessions": sessions})
    except BaseException:
        if lock is not None:
            os.close(lock)
        raise
    return Run(
        folder=path,
        name=name,
        parameters=values,
        resumed=len(sessions) > 1,
        writer=True,
        _sessions=sessions,
        _lock=lock,
    )


def is_held(folder: Path) -> bool:
    """True if a live process holds the folder of a run, as far as locks tell here."""
    try:
        number = os.open(folder / LOCK_FILE, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(number)
    return False


def _take_lock(folder: Path, session: Mapping[str, Any]) -> int | None:
    """Hold the folder until the process ends, and say in the lock file who does; None if this process holds
    it already, or locks do not work here."""
    with kept(folder / LOCK_FILE):
        number = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        holder = _holder(folder)
        # A cell that is run a second time in the same kernel goes on with what the kernel holds.
        if (holder.get("pid"), holder.get("host")) == (os.getpid(), socket.gethostname()):
            return None
        who = "process {pid} on {host}, started {started}" if holder else "another process, just started"
        raise RunError(
            f"{folder} is in use by {who.format(**holder)}: wait for it, end it, or choose another folder"
        ) from None
    except OSError as error:
        os.close(number)
        warnings.warn(
            f"{folder}: cannot be locked ({error}); see to it that no other run uses it", stacklevel=3
        )
        return None
    with suppress(OSError):  # on a full disk it holds all the same
        os.ftruncate(number, 0)
        os.write(number, json.dumps(session).encode())
    return number


def _holder(folder: Path) -> dict[str, Any]:
    """Who holds the lock: `pid`, `host`, `started`; {} if that is not known, as in the moment between taking
    it and writing that down, when the file may still name the one before."""
    try:
        holder = json.loads((folder / LOCK_FILE).read_text(encoding="utf-8"))
        process, host, started = holder["pid"], holder["host"], holder["started"]
        gone = host == socket.gethostname() and not psutil.pid_exists(process)
        return {} if gone else {"pid": process, "host": host, "started": started}
    except (OSError, ValueError, LookupError, TypeError):
        return {}


def _earlier_sessions(
    folder: Path, *, name: str, parameters: dict[str, Any], resume: bool
) -> list[dict[str, Any]]:
    """The sessions of the interrupted run in the folder, none if it is new; see `open_run` for what is
    refused."""
    if not (folder / RUN_FILE).exists():
        return []
    old_name, old, sessions = read_run_file(folder)
    if not resume:
        raise RunError(f"{folder} holds an interrupted run: resume it, delete it, or choose another folder")
    if old_name != name:
        raise RunError(f"{folder} holds a run of {old_name!r}, not of {name!r}: choose another folder")
    if changed := _changes(with_those_of_before(old, parameters), parameters):
        raise RunError(
            f"{folder} holds an interrupted run with other parameters: {', '.join(changed)}. "
            "Use the old ones to resume it, or choose another folder"
        )
    if sessions[-1]["seconds"] is None:
        sessions[-1]["seconds"] = _since(sessions[-1]["started"], _last_sign_of_life(folder))
    return sessions


def read_run_file(folder: Path) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
    """Name, parameters and sessions of a run that has begun.

    Raises:
        RunError: its `run.json` is damaged.
    """
    try:
        values = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
        name, parameters, sessions = str(values["name"]), dict(values["parameters"]), list(values["sessions"])
        for session in sessions:
            _since(session["started"], session["started"])
            session["seconds"] = None if session["seconds"] is None else float(session["seconds"])
        if not sessions:
            raise ValueError("no session")
        return name, parameters, sessions
    except (OSError, ValueError, LookupError, TypeError, OverflowError, RecursionError):
        told = f"{folder / RUN_FILE} cannot be read: move the folder away, or choose another"
        raise RunError(told) from None


def refuse_foreign(folder: Path) -> None:
    """Refuse a folder that is not free for a run.

    Raises:
        RunError: it holds a finished run, or it is no run's and has files that somebody may miss.
    """
    if (folder / REPORT_FILE).exists():
        raise RunError(_finished(folder))
    if folder.is_dir() and not (folder / RUN_FILE).exists():
        names = (path.name for path in folder.iterdir() if path.suffix not in _NOT_OURS)
        found = sorted(name for name in names if not name.startswith("."))
        if found:
            listed = ", ".join(found[:3]) + (", ..." if len(found) > 3 else "")
            raise RunError(f"{folder} holds other files ({listed}): choose an empty or a new folder")


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    def shown(values: Mapping[str, Any], name: str) -> str:
        return repr(values[name]) if name in values else "(absent)"

    names = sorted((old.keys() | new.keys()) - set(BY_HOW_MANY))
    return [f"{n} {shown(old, n)} -> {shown(new, n)}" for n in names if shown(old, n) != shown(new, n)]


def _last_sign_of_life(folder: Path) -> str:
    """When a file of the run was last written: about when a killed process died."""
    times = []
    for path in folder.rglob("*"):
        if path.suffix not in _NOT_OURS and path.name != LOCK_FILE and path.is_file():
            times.append(path.stat().st_mtime)
    return datetime.fromtimestamp(max(times), UTC).isoformat()


def _finished(folder: Path) -> str:
    return f"{folder} holds a finished run ({REPORT_FILE}): choose another folder, or delete this one"


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _since(start: str, end: str) -> float:
    return max((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds(), 0.0)
