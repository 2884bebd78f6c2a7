"""The folder of a run and its `report.json`, from which tables of results are made.

A run claims its folder before any work, locks it for one process, and is finished by its report; all files
are written atomically. The same command resumes an interrupted run, and opens a finished one for display; for
other runs to compare with it repeats the evaluation. Under torchrun only rank 0 reads and writes the folder.

An experiment writes its scores as rows, `run.write_report(scores=[Score(system="cdlm", split="test",
metric="f1", value=0.5, low=0.4, high=0.6, n=120, seed=0), ...])`. They are read back from a report as
`report.rows`, or as the pandas DataFrame `report.frame`.
"""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import platform
import re
import resource
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import psutil
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import from_json

import cdlm_lab
from cdlm_lab.data.files import denied, replaced_file
from cdlm_lab.errors import PlainError
from cdlm_lab.parameters import (
    EVALUATED_WITH,
    RUN_FILE,
    local_path,
)
from cdlm_lab.progress import is_first, usable_cores
from cdlm_lab.runs.identity import Identity, Inputs, changed_inputs, changed_parameters
from cdlm_lab.runs.items import ITEMS_FILE, read_items, write_items
from cdlm_lab.runs.scores import Score, check_apart, frame_of, json_of

if TYPE_CHECKING:
    import pandas as pd

REPORT_FILE, LOCK_FILE = "report.json", ".lock"
ASIDE = ".old-"  # part of the name of a run's folder that a grid has moved aside for another run
UNCLEAN = "\u2020"  # marks the rows of runs made by a program with uncommitted changes
FORMAT = 2  # of report.json; raise it when a field changes its meaning
PACKAGES = ("torch", "transformers", "accelerate", "datasets", "tokenizers", "numpy", "scipy")
# Endings of files that papermill and schedulers put into the folder before the notebook begins.
_NOT_OURS = (".ipynb", ".log", ".out", ".err")
_LONGEST = 300  # characters of a message about the values of a report
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_EMPTY: Mapping[str, Any] = {}
_NOTHING = Inputs()
_INPUTS = ("data", "models")  # the parts of an identity that are made of bytes


class RunError(PlainError, RuntimeError):
    """A run's folder or report cannot be used; the message says which, why, and what to do."""


# ---- values and files ----


def plain(value: Any, where: str) -> Any:
    """Convert a value to JSON types: tuples become lists, paths strings, NumPy scalars and arrays plain
    numbers. Raises RunError, which names the place (`where`), for nan, infinity, integers of more than 64
    bits, strings that UTF-8 cannot encode, keys that are not strings, and types that JSON does not have."""
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str) or _HALF_PAIR.search(key):
                raise RunError(f"{where} has the key {key!r}; keys must be text")
        return {key: plain(item, f"{where}[{key!r}]") for key, item in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist(), where)
    if isinstance(value, list | tuple):
        return [plain(item, f"{where}[{number}]") for number, item in enumerate(value)]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    source = "find out where it comes from"
    if isinstance(value, float) and not math.isfinite(value):
        raise RunError(f"{where} is {value}, which is no score and not in JSON: {source}")
    if isinstance(value, int) and abs(value) >= 2**64:
        raise RunError(f"{where} has more than 64 bits: {source}")
    if isinstance(value, str) and _HALF_PAIR.search(value):
        raise RunError(f"{where} has half a surrogate pair, which is no character: {source}")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise RunError(f"{where} is {value!r} ({type(value).__name__}), which JSON has not")


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write a JSON file atomically: if writing fails, an existing file stays as it was."""
    with replaced_file(path) as file:
        json.dump(values, file, indent=2, ensure_ascii=False, allow_nan=False)
        file.write("\n")


@contextmanager
def kept(path: Path) -> Iterator[None]:
    """Context for writing a file of a run: an OSError, such as of a full disk or missing permissions, is
    raised as a RunError that says what to do."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        what = "the disk is full" if full else f"{error.strerror or error}"
        remedy = "free some space" if full else "see to it that it may be written, or choose another folder"
        again = "give the same command again to go on"
        raise RunError(f"{path} was not written: {what}; {remedy}, and {again}") from error


# ---- reports ----


@dataclass(frozen=True, kw_only=True)
class Report:
    """The contents of `report.json`."""

    __pydantic_config__: ClassVar = ConfigDict(strict=True, allow_inf_nan=False)

    name: str  # of the experiment
    parameters: dict[str, Any]  # all parameters of the run
    seed: int | None  # the parameter `seed`, or None if the run has none
    # Of the score table, one for each number.
    rows: Annotated[list[Score], Field(validation_alias="scores")]
    data: dict[str, Any]  # name -> checksum, or what else identifies the data
    tables: dict[str, list[dict[str, Any]]]  # name -> rows, each a mapping of column to value
    versions: dict[str, str]  # of Python and of the packages that matter
    hardware: dict[str, Any]  # processor, cores, memory, devices
    # Wall seconds over all sessions of the run; a killed session counts up to the last file that it wrote.
    seconds: float
    peak_memory: dict[str, int]  # {"cpu": bytes, "cuda": bytes} of this process in the last session
    git_commit: str | None  # of cdlm_lab, with "-dirty" if it was changed since; None where there is none
    started: str  # started, finished: UTC, ISO 8601
    finished: str
    # Fingerprints of data and models, and versions (`Identity.as_json`), not known of recorded runs; and in
    # "encoders" what made the encoder of each system (`facts_of`).
    identity: dict[str, Any] = field(default_factory=dict)
    file: Path | None = field(default=None, compare=False)  # where it was read or written

    @property
    def mark(self) -> str:
        """What follows the names of this run's rows in tables: "" or, if the program that made it had
        uncommitted changes, so that nobody can make it again, a dagger. Such a run supports no verdict."""
        return UNCLEAN if (self.git_commit or "").endswith("-dirty") else ""

    @property
    def frame(self) -> pd.DataFrame:
        """The score table, with a column for each field of `Score`."""
        return frame_of(self.rows)

    @property
    def items(self) -> pd.DataFrame:
        """The table of items (`cdlm_lab.runs.items`) from which the scores were made. Raises DataError if it
        was not recorded, as for runs of before; RunError if the report has no file."""
        if self.file is None:
            raise RunError("this report has no file, so its items are not known")
        return read_items(items_file(self.file))


def items_file(report: Path) -> Path:
    """Where the items of a report lie: `items.parquet` in the folder of a run, `<name>.items.parquet` beside
    a recorded `<name>.json`."""
    return report.with_name(ITEMS_FILE if report.name == REPORT_FILE else f"{report.stem}.{ITEMS_FILE}")


_REPORT = TypeAdapter(Report)


def read_report(path: str | os.PathLike[str]) -> Report:
    """Read a `report.json`, given by its path or its folder. Raises RunError if there is none, it is not JSON
    or of an unknown format, or a field is missing or invalid."""
    file = Path(path)
    file = file / REPORT_FILE if file.is_dir() and file.name != REPORT_FILE else file
    try:
        if not file.exists():
            raise RunError(f"there is no {file}: the run has not finished, or the path is wrong")
        if not file.is_file():
            raise RunError(f"{file}: is no file")
        content = file.read_bytes()
        values = from_json(content, allow_inf_nan=False)
    except OSError as error:
        raise RunError(denied(file) or f"{file}: cannot be read ({error.strerror or error})") from None
    except ValueError as error:
        raise RunError(f"{file}: not JSON ({error})") from None
    written = values.get("format") if isinstance(values, dict) else None
    if written != FORMAT:
        shown = repr(written)[:_LONGEST]
        raise RunError(f"{file}: format is {shown}, this version of cdlm_lab reads {FORMAT}")
    try:
        report = _REPORT.validate_json(content)
        check_apart(report.rows)
    except ValidationError as error:
        first = error.errors()[0]
        place, *inside = first["loc"]
        where = f"{place}{''.join(f'[{part!r}]' for part in inside)}"
        raise RunError(f"{file}: {where}: {first['msg'].removeprefix('Value error, ')}"[:_LONGEST]) from None
    except ValueError as error:
        raise RunError(f"{file}: {error}") from None
    return replace(report, file=file)


# ---- software and hardware ----


def versions() -> dict[str, str]:
    """Name -> version of Python, cdlm_lab, and each of PACKAGES that is installed."""
    installed = {"python": platform.python_version(), "cdlm_lab": cdlm_lab.__version__}
    for package in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            installed[package] = metadata.version(package)
    return installed


def hardware() -> dict[str, Any]:
    """Processor, CPU cores (all, and those this process may use), memory in bytes, system, CUDA devices."""
    lines: list[str] = []
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cuda = _cuda()
    return {
        "processor": names[0] if names else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "cores_available": usable_cores(),
        "memory": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.machine()}",
        "cuda": [cuda.get_device_name(number) for number in range(cuda.device_count())] if cuda else [],
    }


def peak_memory() -> dict[str, int]:
    """Peak memory of this process in bytes: "cpu" (resident) and, where torch uses CUDA, "cuda" (allocated by
    torch on the device with the highest peak)."""
    unit = 1 if sys.platform == "darwin" else 1024
    peak = {"cpu": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}
    if cuda := _cuda():
        peak["cuda"] = max(cuda.max_memory_allocated(number) for number in range(cuda.device_count()))
    return peak


def _cuda() -> Any:
    """torch.cuda if torch has been imported and sees a device, else None."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and torch.cuda.is_available() else None


def git_commit() -> str | None:
    """The commit hash of the git checkout that cdlm_lab runs from, followed by "-dirty" if tracked files
    differ from it; None outside a checkout."""
    source = Path(__file__).resolve()

    def git(*command: str) -> str:
        words, form = ["git", *command], {"capture_output": True, "text": True, "check": True}
        return subprocess.run(words, cwd=source.parent, timeout=20, **form).stdout.strip()

    try:
        # An installed copy may lie inside somebody else's checkout, which says nothing about it.
        git("ls-files", "--error-unmatch", source.name)
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "HEAD") + ("-dirty" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None


# ---- runs ----


@dataclass(kw_only=True)
class Run:
    """The folder of a run, locked until `close` or the end of the process; made by `open_run`."""

    folder: Path  # the experiment may write any files there
    name: str  # of the experiment
    parameters: dict[str, Any]  # in JSON types (tuples are lists)
    identity: Identity  # as it was when the run was opened
    resumed: bool  # True if an earlier run is resumed or opened again (known in rank 0 only)
    writer: bool  # False in ranks other than 0, which write nothing
    finished: Report | None = field(default=None, repr=False)  # report of a finished run, opened again
    _sessions: list[dict[str, Any]] = field(default_factory=list, repr=False)
    _lock: int | None = field(default=None, repr=False)

    def write_report(
        self,
        *,
        scores: Sequence[Score],
        data: Mapping[str, Any] = _EMPTY,
        tables: Mapping[str, Sequence[Mapping[str, Any]]] = _EMPTY,
        encoders: Mapping[str, Mapping[str, Any]] = _EMPTY,
        items: pd.DataFrame | None = None,
    ) -> Report:
        """Finish the run: write `report.json` atomically, and unlock the folder. A report of before is kept.

        Args:
            scores: rows of the score table, one for each number.
            data: name -> checksum, or another JSON value that identifies the data.
            tables: name -> rows of a further table, each a mapping of column to value.
            encoders: system -> what made the encoder that it reads with or began with (`encoder_facts`).
            items: the table from which the scores were made, written beside the report; None = there is none.

        Raises RunError if two scores have the same key, a value has no JSON type, data or models changed
        while the run was going on, or the folder holds a finished run of another identity.
        """
        if made := self.finished or (self.writer and _finished(self.folder, self.identity)):
            return made
        self._refuse_changed()
        values = {
            "name": self.name,
            "parameters": self.parameters,
            "seed": self.parameters.get("seed"),
            "scores": plain(json_of(scores), "scores"),
            "data": plain(data, "data"),
            "tables": {name: plain(rows, f"tables[{name!r}]") for name, rows in tables.items()},
            **self._how_it_ran,
            "identity": self.identity.as_json | {"encoders": plain(encoders, "encoders")},
        }
        try:
            check_apart(scores)
        except ValueError as error:
            raise RunError(str(error)) from None
        known = {name: values[name] for name in values if name != "scores"}
        report = Report(**known, rows=[*scores], file=self.folder / REPORT_FILE)
        if self.writer:
            with kept(self.folder / REPORT_FILE):
                if items is not None:  # first: a folder with a report has its items
                    write_items(items, self.folder / ITEMS_FILE)
                write_json(self.folder / REPORT_FILE, {"format": FORMAT, **values})
            self.close()
        return report

    @property
    def _how_it_ran(self) -> dict[str, Any]:
        """Software, hardware, and time up to now."""
        now = _now()
        *before, last = self._sessions or [{"started": now}]
        return {
            "versions": versions(),
            "hardware": hardware(),
            "seconds": round(sum(one["seconds"] for one in before) + _since(last["started"], now), 3),
            "peak_memory": peak_memory(),
            "git_commit": git_commit(),
            "started": [*before, last][0]["started"],
            "finished": now,
        }

    def _refuse_changed(self) -> None:
        """Raise RunError if data or models are no more what they were when the run was opened."""
        now = self.identity.now() if self.writer else self.identity
        if changed := changed_inputs(self.identity.as_json, now.as_json, _INPUTS):
            what = f"{'; '.join(changed)} while this run was going on, so it may be of both"
            raise RunError(f"{self.folder}: {what}: choose another run_folder for a new run")

    def close(self) -> None:
        """Unlock the folder; without this call it is unlocked when the process ends, however it ends."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def open_run(
    folder: str | os.PathLike[str],
    *,
    name: str,
    parameters: Mapping[str, Any],
    inputs: Inputs = _NOTHING,
    anew: bool = False,
) -> Run:
    """Claim and lock a folder for a run, once its data and models have been read and checked.

    Args:
        folder: created if missing. It may already contain notebooks and logs.
        name: of the experiment.
        parameters: all parameters, as JSON values. The same ones resume an interrupted run and open a
            finished one; those in `BY_HOW_MANY` may differ, and the folder may have been moved.
            A finished run with others in `EVALUATED_WITH` (not "") is resumed, and its report written anew.
        inputs: the data and models of the run; they must be what they were when it was begun.
        anew: True = overwrite a run of this name in the folder, whatever its parameters.

    Raises RunError if the folder holds other files, a run of another identity, or one that a live process has
    locked, or if the disk is full. Raises DataError if an input is not there.
    """
    path, values = Path(local_path(os.fspath(folder), "run_folder")), plain(parameters, "parameters")
    first = is_first()
    identity = Identity.of(name, values, inputs if first else _NOTHING)
    run = Run(folder=path, name=name, parameters=values, identity=identity, resumed=first, writer=first)
    if not first:
        return run
    if denial := denied(path / RUN_FILE) or denied(path / REPORT_FILE):
        raise RunError(denial)
    refuse_foreign(path)
    free = not is_held(path) or _is_own(_holder(path))
    if anew and free and (path / RUN_FILE).exists() and read_run_file(path)[0] == name:
        for file in (REPORT_FILE, RUN_FILE):
            (path / file).unlink(missing_ok=True)
    if made := _finished(path, identity):
        when = made.finished[:16].replace("T", " ")
        print(f"{path}: this run was finished on {when} UTC; it is shown again, and nothing is trained")
        return replace(run, finished=made)
    _claim(run)
    return run


def _claim(run: Run) -> None:
    """Lock the folder of a run, and note its identity and this session in `run.json`."""
    _earlier_sessions(run.folder, run.identity)  # raises before anything is touched; read again once locked
    with kept(run.folder):
        run.folder.mkdir(parents=True, exist_ok=True)
    session = {"started": _now(), "pid": os.getpid(), "host": socket.gethostname(), "seconds": None}
    run._lock = _take_lock(run.folder, session)
    try:
        run._sessions = [*_earlier_sessions(run.folder, run.identity), session]
        values = {"name": run.name, "parameters": run.parameters, **run.identity.as_json}
        with kept(run.folder / RUN_FILE):
            write_json(
                run.folder / RUN_FILE, values | {"git_commit": git_commit(), "sessions": run._sessions}
            )
    except BaseException:
        run.close()
        raise
    run.resumed = len(run._sessions) > 1


def refuse_taken(folder: str | os.PathLike[str], *, name: str, parameters: Mapping[str, Any]) -> None:
    """Raise RunError if `open_run` would refuse a folder whatever the data are; writes nothing. To be called
    before they are read, which may take long."""
    path, values = Path(local_path(os.fspath(folder), "run_folder")), plain(parameters, "parameters")
    if not is_first():
        return
    refuse_foreign(path)
    if (path / REPORT_FILE).exists():
        _finished_with(path, name, values)
    elif (path / RUN_FILE).exists():
        _interrupted(path, name, values)
    if is_held(path) and not _is_own(holder := _holder(path)):
        raise _in_use(path, holder)


def refuse_foreign(folder: Path) -> None:
    """Raise RunError if a folder holds no run but other files than notebooks, logs and hidden files, or is no
    folder."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file; a run needs a folder")
    if folder.is_dir() and not any((folder / file).exists() for file in (RUN_FILE, REPORT_FILE)):
        names = sorted(path.name for path in folder.iterdir() if path.suffix not in _NOT_OURS)
        if foreign := [name for name in names if not name.startswith(".")]:
            listed = ", ".join(foreign[:3]) + (", ..." if len(foreign) > 3 else "")
            raise RunError(f"{folder} holds other files ({listed}): choose an empty or a new folder")


def _finished(folder: Path, now: Identity) -> Report | None:
    """The report of the run in a folder, None if it has not finished, or its evaluation is to be made again.
    Raises RunError if the report is damaged, or of another identity. One of another version is shown, since
    nothing is added to it."""
    if not (folder / REPORT_FILE).exists():
        return None
    made, otherwise = _finished_with(folder, now.name, now.parameters)
    known = made.identity if "data" in made.identity else {}
    if not known and not otherwise:
        print(f"{folder}: this run does not say what its data and models were; they may have changed")
        return made
    if changed := changed_inputs(known or now.as_json, now.as_json, _INPUTS):
        raise _other_inputs(folder, "was finished", changed)
    if otherwise or changed_inputs(known, now.as_json, ("compared",)):
        return None
    if changed := changed_inputs(known, now.as_json, ("versions",)):
        print(f"{folder}: {'; '.join(changed)}: a new run may have other numbers")
    return made


def _finished_with(folder: Path, name: str, parameters: Mapping[str, Any]) -> tuple[Report, bool]:
    """The report of a finished run, and whether it is to be compared with other runs than it was. Raises
    RunError if it is damaged, or its name or parameters differ; parameters that only the run or only this
    version has are not compared."""
    try:
        made = read_report(folder)
    except RunError as error:
        remedy = "delete that file to make it anew from what the run left, or choose another run_folder"
        raise RunError(f"{error}; {remedy}") from None
    common = made.parameters.keys() & parameters.keys()
    old, new = ({name: side[name] for name in common} for side in (made.parameters, parameters))
    _refuse_other(folder, "a finished", (made.name, old), (name, new))
    return made, any(new[one] not in ("", old[one]) for one in common.intersection(EVALUATED_WITH))


def _interrupted(folder: Path, name: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The sessions so far of an interrupted run. Raises RunError if its name or parameters differ."""
    old_name, old, sessions = read_run_file(folder)
    _refuse_other(folder, "an interrupted", (old_name, old), (name, parameters))
    return sessions


def _other_inputs(folder: Path, how: str, changed: Sequence[str]) -> RunError:
    what = f"{folder} holds a run that {how} with other data or models: {'; '.join(changed)}"
    return RunError(f"{what}. Choose another run_folder for a new run, or bring back what this one had")


def changed_since(folder: Path, now: Identity, *, shared: bool = False) -> list[str]:
    """What differs between the identity of the run in a folder and another one, in words; `shared`: True =
    only in the data and models that the other names. Raises RunError if `run.json` cannot be read."""
    read_run_file(folder)
    begun_with = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
    if "versions" not in begun_with:
        return ["it does not say which"]
    if not shared:
        return changed_inputs(begun_with, now.as_json)
    of_both = {part: {name: begun_with[part].get(name) for name in now.as_json[part]} for part in _INPUTS}
    return changed_inputs(of_both, now.as_json, _INPUTS)


def _refuse_other(
    folder: Path, what: str, old: tuple[str, Mapping[str, Any]], new: tuple[str, Mapping[str, Any]]
) -> None:
    """Raise RunError if the name or parameters of the run in a folder (`old`) differ from those asked for."""
    if old[0] != new[0]:
        raise RunError(f"{folder} holds a run of {old[0]!r}, not of {new[0]!r}: choose another run_folder")
    if changed := changed_parameters(old[1], new[1]):
        remedy = "Write what the run has to go on with it, or choose another run_folder for a new one"
        raise RunError(f"{folder} holds {what} run with other parameters: {'; '.join(changed)}. {remedy}")


def is_held(folder: Path) -> bool:
    """True if a live process has locked the folder of a run; False also where file locks do not work."""
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
    """Lock the folder until the process ends, and name the holder in the lock file. Returns its file
    descriptor, or None if this process holds the lock already or file locks do not work. Raises RunError if
    another holds it."""
    with kept(folder / LOCK_FILE):
        number = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o666)  # less the umask
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        holder = _holder(folder)
        # A cell that is run a second time in the same kernel goes on with the lock that the kernel holds.
        if _is_own(holder):
            return None
        raise _in_use(folder, holder) from None
    except OSError as error:
        os.close(number)
        remedy = "see to it that no other run uses it"
        warnings.warn(f"{folder}: cannot be locked ({error}); {remedy}", stacklevel=3)
        return None
    with suppress(OSError):  # on a full disk the lock is valid all the same
        os.ftruncate(number, 0)
        os.write(number, json.dumps(session).encode())
    return number


def _in_use(folder: Path, holder: Mapping[str, Any]) -> RunError:
    who = "process {pid} on {host}, started {started}" if holder else "another process, just started"
    remedy = "wait for it, end it, or choose another folder"
    return RunError(f"{folder} is in use by {who.format(**holder)}: {remedy}")


def _is_own(holder: Mapping[str, Any]) -> bool:
    """True if the holder of a lock is this process."""
    return (holder.get("pid"), holder.get("host")) == (os.getpid(), socket.gethostname())


def _holder(folder: Path) -> dict[str, Any]:
    """The holder of the lock: `pid`, `host`, `started`; {} if unknown, as in the moment between taking the
    lock and writing the file, which may still name the previous holder."""
    try:
        values = json.loads((folder / LOCK_FILE).read_text(encoding="utf-8"))
        holder = {name: values[name] for name in ("pid", "host", "started")}
        gone = holder["host"] == socket.gethostname() and not psutil.pid_exists(holder["pid"])
        return {} if gone else holder
    except (OSError, ValueError, LookupError, TypeError):
        return {}


def _earlier_sessions(folder: Path, now: Identity) -> list[dict[str, Any]]:
    """The sessions so far of the interrupted run in a folder, [] for a new one. RunError: it is another."""
    if not (folder / RUN_FILE).exists():
        return []
    sessions = _interrupted(folder, now.name, now.parameters)
    if changed := changed_since(folder, now):
        raise _other_inputs(folder, "was begun", changed)
    if sessions[-1]["seconds"] is None:  # finished, or killed about when a file of the run was last written
        written = list(folder.glob(REPORT_FILE)) or folder.rglob("*")
        files = (path for path in written if path.suffix not in _NOT_OURS and path.is_file())
        last = max(path.stat().st_mtime for path in files if path.name != LOCK_FILE)
        killed = datetime.fromtimestamp(last, UTC).isoformat()
        sessions[-1]["seconds"] = _since(sessions[-1]["started"], killed)
    return sessions


def read_run_file(folder: Path) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
    """Read name, parameters and sessions of a run. Raises RunError if its `run.json` cannot be read."""
    try:
        values = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
        name, sessions = str(values["name"]), list(values["sessions"])
        parameters = dict(values["parameters"])
        for session in sessions:
            _since(session["started"], session["started"])
            session["seconds"] = None if session["seconds"] is None else float(session["seconds"])
        if not sessions:
            raise ValueError("no session")
        return name, parameters, sessions
    except (OSError, ValueError, LookupError, TypeError, OverflowError, RecursionError):
        if denial := denied(folder / RUN_FILE):
            raise RunError(denial) from None
        remedy = "move the folder away, or choose another"
        raise RunError(f"{folder / RUN_FILE} cannot be read: {remedy}") from None


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _since(start: str, end: str) -> float:
    return max((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds(), 0.0)
