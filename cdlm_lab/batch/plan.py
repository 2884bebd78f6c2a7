"""The plan of a grid, made before anything is changed: what to do for every run, why, and how long it takes.

A run needs files, folders, models and GPUs. A path to a `config.json` stands for a model: weights and
tokenizer must be beside it, in readable files, and its checksum covers all of these files.

The fingerprint of a run holds everything that its result depends on, as plain JSON:

    {"notebook": sha256 of its code cells, "parameters": {name: value}, "code": {file: sha256},
     "data": {name: checksum, or None = not known here}, "runs": {name: when that run was finished}}

`code` covers the modules of cdlm_lab that the notebook imports, directly or indirectly and wherever in a file
the import is, with the other files of their folders. So a change to the tagger does not repeat runs of
coreference.
"""

from __future__ import annotations

import ast
import functools
import heapq
import json
import os
import statistics
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import constants, try_to_load_from_cache
from huggingface_hub.errors import HFValidationError

import cdlm_lab
from cdlm_lab.batch.expansion import Job
from cdlm_lab.batch.marked_yaml import GridError
from cdlm_lab.data.files import DataError, sha256_of_file
from cdlm_lab.encoders.model_folder import CONFIG_FILE, fault_of_folder
from cdlm_lab.parameters import BY_HOW_MANY, EVALUATED_WITH, SHOWN, closest_name
from cdlm_lab.runs import report
from cdlm_lab.runs.identity import VERSIONS, changed_inputs, fingerprint, fingerprint_of_model

HUB = "hub:"


# ---- what a run needs ----


class Checksums:
    """Checksums of files and folders, cached in the file `memory`, which need not exist. A cached checksum is
    used as long as size, times and inode of the file are the same."""

    def __init__(self, memory: Path) -> None:
        self._memory = memory
        try:
            known = json.loads(memory.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            known = None
        self._known = known if isinstance(known, dict) else {}

    def of(self, need: str) -> str:
        """Return the checksum of a path (for a model, of all files in its folder), or the revision of a
        checkpoint of the Hugging Face hub. Raises DataError if a file cannot be read."""
        if need.startswith(HUB):
            return fingerprint_of_model(need)
        path = Path(need)
        if path.name == CONFIG_FILE:  # the same config may be beside other weights
            return fingerprint_of_model(path.parent, of_file=self.of_file)
        return fingerprint(path, of_file=self.of_file)

    def save(self) -> None:
        """Write the cache to its file."""
        report.write_json(self._memory, self._known)

    def of_file(self, path: Path) -> str:
        """Return the checksum of a file."""
        status, name = path.stat(), str(path.resolve())
        sizes, times = [status.st_size, status.st_mtime_ns], [status.st_ctime_ns, status.st_ino]
        before = self._known.get(name)
        if isinstance(before, list) and before[:2] == sizes and before[3:] == times:
            return before[2]
        self._known[name] = [*sizes, sha256_of_file(path), *times]
        return self._known[name][2]


def missing_need(need: str) -> str | None:
    """Return why a file, folder or model is missing, and what to do about it; None if it is there."""
    if need.startswith(HUB):
        if snapshot := _snapshot(need):
            return fault_of_folder(snapshot)
        name = need.removeprefix(HUB)
        return f"{name} is not among the models in {constants.HF_HUB_CACHE}: hf download {name}"
    path = Path(need)
    if not path.exists():
        return f"there is no {need}"
    if path.name == CONFIG_FILE:
        return fault_of_folder(path.parent)
    return f"{need} is empty" if path.is_dir() and not any(path.iterdir()) else None


def local_gpus(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the ids of this machine's NVIDIA GPUs, or those that CUDA_VISIBLE_DEVICES lists."""
    if "CUDA_VISIBLE_DEVICES" in environ:
        return [device for device in environ["CUDA_VISIBLE_DEVICES"].split(",") if device.strip()]
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return []
    lines = listed.stdout.splitlines() if listed.returncode == 0 else []
    return [str(number) for number, _ in enumerate(line for line in lines if line.startswith("GPU"))]


def _snapshot(need: str) -> Path | None:
    """Return the folder of a checkpoint in the hub's cache; None if it is not cached."""
    file = None
    with suppress(HFValidationError):  # the hub could have no model of this name
        file = try_to_load_from_cache(need.removeprefix(HUB), CONFIG_FILE)
    return Path(file).parent if isinstance(file, str) else None


# ---- fingerprints ----


STAMP_FILE = ".grid.json"  # in the folder of a run; `open_run` ignores names that begin with a dot
_LIBRARY = Path(cdlm_lab.__file__).parent
_PARTS = ("notebook", "parameters", "code", "data", "runs")  # keys of a fingerprint
_DIGITS = 16  # length of a checksum of code
_SHOWN = 3  # most files of code that a reason names


@functools.cache  # all runs of a task have the same code
def code_of(sources: tuple[str, ...]) -> Mapping[str, str]:
    """Return {file: checksum} for the parts of cdlm_lab that the code cells import, directly or indirectly.
    If a cell is not plain Python (IPython magics), it could import anything: then for the whole library."""
    try:
        wanted = [name for source in sources for name in _imports(source)]
    except SyntaxError:
        return checksums_of(sorted(str(p.relative_to(_LIBRARY.parent)) for p in _LIBRARY.rglob("*.py")))
    reached: set[Path] = set()
    while wanted:
        for path in _files(wanted.pop()):
            if path not in reached:
                reached.add(path)
                wanted += _imports(path.read_text(encoding="utf-8"))
    others = {
        path
        for folder in {path.parent for path in reached}
        for path in folder.iterdir()
        if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    return checksums_of(sorted(str(path.relative_to(_LIBRARY.parent)) for path in reached | others))


def checksums_of(files: Sequence[str]) -> dict[str, str]:
    """Return {file of the library: beginning of its SHA-256}; "" for a file that no longer exists."""
    checksums = {}
    for file in files:
        try:
            checksums[file] = sha256_of_file(_LIBRARY.parent / file)[:_DIGITS]
        except DataError:
            checksums[file] = ""
    return checksums


@functools.cache  # several tasks import the same modules
def _imports(source: str) -> tuple[str, ...]:
    """Return the dotted names that code imports from cdlm_lab, anywhere in it; no import is relative."""
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(name for name in names if name.split(".")[0] == _LIBRARY.name)


def _files(name: str) -> Iterator[Path]:
    """Yield the files that Python reads to import a dotted name: the module, and the packages around it."""
    place = _LIBRARY.parent
    for part in name.split("."):
        place = place / part
        if (place / "__init__.py").is_file():
            yield place / "__init__.py"
        elif place.with_suffix(".py").is_file():
            yield place.with_suffix(".py")


def changes(old: Mapping[str, Any], new: Mapping[str, Any], *, ignore_code: bool = False) -> list[str]:
    """Describe the differences between the fingerprint of an existing run (`old`) and of the same run if made
    now (`new`); [] if there are none. `ignore_code`: True = changes to notebook and library do not count."""
    words = []
    for name in sorted((old["parameters"].keys() | new["parameters"].keys()) - set(BY_HOW_MANY)):
        sides = (old["parameters"], new["parameters"])
        before, now = (json.dumps(side[name]) if name in side else "(absent)" for side in sides)
        if before != now:
            words.append(f"parameter {name} {_cut(before)} -> {_cut(now)}")
    if not ignore_code:
        if old["notebook"] not in (None, new["notebook"]):
            words.append("the notebook's code changed")
        now = new["code"]
        before = now if old["code"] is None else old["code"]
        if files := sorted(file for file in before | now if before.get(file, "") != now.get(file, "")):
            more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
            words.append(f"code: {', '.join(files[:_SHOWN])}{more} changed")
    for name, now in sorted(new["data"].items()):  # data that are no longer needed are ignored
        if now is not None and old["data"].get(name) not in (None, now):
            words.append(f"data: {name} changed")
    for name, finished in new["runs"].items():
        if name not in old["runs"]:
            words.append(f"it reads {name} now")
        elif finished is not None and old["runs"][name] not in (None, finished):
            words.append(f"{name}, which it reads, was made anew")
    return words


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def read_stamp(folder: Path) -> dict[str, Any] | None:
    """Return what a grid recorded in a run folder: {"fingerprint", "began_with", "notebook", "grid", "name"};
    None if there is no readable record."""
    try:
        stamp = json.loads((folder / STAMP_FILE).read_text(encoding="utf-8"))
        return stamp if all(part in stamp["fingerprint"] for part in _PARTS) else None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def write_stamp(folder: Path, stamp: Mapping[str, Any]) -> None:
    """Record in a run folder what the run is made of; the file is written whole or not at all."""
    report.write_json(folder / STAMP_FILE, stamp)


# ---- what is to be done ----


DONE, NEW, RESUMED, AGAIN = "done", "new", "goes on", "again"


@dataclass(frozen=True, kw_only=True)
class Step:
    """What is to be done for one run."""

    job: Job  # the run
    # "done" (kept as it is), "new", "goes on" (resumed after an interruption, or only shown or compared
    # anew), "again" (repeated after the existing folder is renamed).
    state: str
    # Why the run is repeated, why it cannot be resumed, or what changed since a resumed run began.
    reasons: tuple[str, ...]
    missing: tuple[str, ...]  # what the run needs and this machine does not have, in words
    fingerprint: Mapping[str, Any]  # of the run if it were made now; None in `runs` for unfinished ones
    seconds: float | None = None  # duration of the finished run; None if it is not done

    @property
    def runs(self) -> bool:
        """Whether the run has to be made, repeated or resumed."""
        return self.state != DONE


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Options of the user beyond the grid."""

    only: tuple[str, ...] = ()  # tasks or runs to make, with the runs that they need; () = all
    rerun: tuple[str, ...] = ()  # tasks or runs to repeat from the beginning even if they are finished
    ignore_code: bool = False  # True = changes to notebooks and library do not count
    gpus: int | None = None  # number of GPUs of this machine; None = the runs are made on a cluster


def make_plan(jobs: Mapping[str, Job], *, choice: Choice, checksums: Checksums) -> dict[str, Step]:
    """Return a step for every requested run, in a possible order of execution. Raises GridError if `only` or
    `rerun` names no task or run, or if a folder of a run has other contents or is in use."""
    rerun = _named(jobs, choice.rerun, "--rerun")
    wanted = _named(jobs, choice.only, "--only") | rerun if choice.only else set(jobs)
    for name in reversed(list(jobs)):
        if name in wanted:
            wanted |= set(jobs[name].after)
    steps: dict[str, Step] = {}
    for name in jobs:
        if name in wanted:
            steps[name] = _step(jobs[name], steps, choice, checksums, forced=name in rerun)
    return steps


def without_missing(steps: Mapping[str, Step]) -> tuple[dict[str, Step], list[str]]:
    """Return (steps that lack nothing, names of the runs that lack something or depend on such a run)."""
    left: list[str] = []
    for name, step in steps.items():
        if step.runs and (step.missing or any(other in left for other in step.job.after)):
            left.append(name)
    return {name: step for name, step in steps.items() if name not in left}, left


def _named(jobs: Mapping[str, Job], names: Collection[str], option: str) -> set[str]:
    """Return the runs of the tasks or runs that are named. Raises GridError for an unknown name."""
    runs: set[str] = set()
    for name in names:
        meant = {job.name for job in jobs.values() if name in (job.name, job.task.name)}
        if not meant:
            known = [*dict.fromkeys(job.task.name for job in jobs.values()), *jobs]
            raise GridError(f"{option} {name}: no task and no run is called so: {closest_name(name, known)}")
        runs |= meant
    return runs


def _step(job: Job, steps: Mapping[str, Step], choice: Choice, checksums: Checksums, *, forced: bool) -> Step:
    missing = [f"{name}: {why}" for name, need in job.needs.items() if (why := missing_need(need))]
    gpus = job.resources.gpus
    if choice.gpus is not None and gpus > choice.gpus:
        missing.append(f"{gpus} GPU{'s' * (gpus > 1)}: this machine has {choice.gpus or 'none'}")
    now = {
        "notebook": job.task.notebook.code,
        "parameters": job.effective,
        "code": code_of(job.task.notebook.sources),
        "data": {
            name: None if missing_need(need) else checksums.of(need) for name, need in job.needs.items()
        },
        # None for a run that is still to be made: it has no time at which it was finished.
        "runs": {
            name: None if steps[name].runs else finished_at(steps[name].job.folder) for name in job.after
        },
    }
    make = functools.partial(Step, job=job, missing=tuple(missing), fingerprint=now)
    waits = [f"{name}, which it reads, is made first" for name in job.after if steps[name].runs]
    made = None
    if (job.folder / report.REPORT_FILE).exists():
        try:
            made = report.read_report(job.folder)
        except report.RunError as error:
            raise GridError(f"{error}; move the folder away") from None
    else:
        _refuse_taken(job)
        if not (job.folder / report.RUN_FILE).exists():
            return make(state=NEW, reasons=())
    old, seconds = _old_fingerprint(job, made), made.seconds if made else None
    ignore_code = choice.ignore_code or not made
    inputs = changed_inputs_of(job, steps, checksums, ignore_code=ignore_code)
    changed = [*changes(old, now, ignore_code=ignore_code), *inputs]
    reasons = (*["--rerun asks for it"] * forced, *changed, *waits)
    if reasons and (forced or inputs or not _only_shown_anew(job, steps, old, now, ignore_code=ignore_code)):
        return make(state=AGAIN, reasons=reasons, seconds=seconds)
    if ignore_code and not choice.ignore_code:  # an interrupted run goes on with other code, and says so
        reasons = (*changes(old, now), *waits)
    return make(state=DONE if made and not reasons else RESUMED, reasons=reasons, seconds=seconds)


def changed_inputs_of(
    job: Job, steps: Mapping[str, Step], checksums: Checksums, *, ignore_code: bool
) -> list[str]:
    """Return which data and models, and versions of what computes, are not what the existing run was begun
    with, by its `run.json`; not what is gone, which cannot be seen, nor what other runs are to make first."""
    try:
        begun_with = json.loads((job.folder / report.RUN_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    firsts = [steps[name].job.folder for name in job.after if steps[name].runs]
    now: dict[str, dict[str, Any]] = {"data": {}, "models": {}, "versions": {}}
    for part, hashed in (("data", fingerprint), ("models", fingerprint_of_model)):
        for name, before in begun_with.get(part, {}).items():
            now[part][name] = before
            if not any(Path(name).is_relative_to(folder) for folder in firsts):
                with suppress(DataError):
                    now[part][name] = hashed(name, of_file=checksums.of_file)
    before = begun_with.get("versions", {})
    now["versions"] = {name: before[name] if ignore_code else VERSIONS.get(name) for name in before}
    return changed_inputs(begun_with, now)


def _only_shown_anew(
    job: Job, steps: Mapping[str, Step], old: Mapping[str, Any], now: Mapping[str, Any], *, ignore_code: bool
) -> bool:
    """Whether a run differs only in what it is compared with or what it shows, which trains nothing anew."""
    had, has = old["parameters"], now["parameters"]
    given = {one: has[one] for one in (*EVALUATED_WITH, *SHOWN) if one in has and has[one] != had.get(one)}
    compared = [given[name] for name in EVALUATED_WITH if name in given]
    if not given or "" in compared:  # the comparisons of before would stay in its report
        return False
    beside = {name: now["runs"][name] for name in job.beside} if compared else {}
    before = {**old, "parameters": had | given, "runs": old["runs"] | beside}
    waits = any(steps[name].runs for name in job.after if name not in beside)
    return not waits and not changes(before, now, ignore_code=ignore_code)


def finished_at(folder: Path) -> str | None:
    """Return when a run was finished; None if it is not."""
    try:
        return report.read_report(folder).finished
    except report.RunError:
        return None


def _old_fingerprint(job: Job, made: report.Report | None) -> dict[str, Any]:
    """Return the fingerprint of the existing run, finished or interrupted. If no grid made it, only its
    parameters are known, perhaps not all of them: a run may report fewer than its notebook has."""
    if stamp := read_stamp(job.folder):
        old = stamp["fingerprint"]
        # If it was killed before it was compared anew, its report is still the one of before.
        scored = {one: made.parameters[one] for one in EVALUATED_WITH if made and one in made.parameters}
        return old | {"parameters": old["parameters"] | scored}
    try:
        parameters = made.parameters if made else report.read_run_file(job.folder)[1]
    except report.RunError as error:
        raise GridError(str(error)) from None
    return {
        "notebook": None,
        "parameters": {name: parameters.get(name, value) for name, value in job.effective.items()},
        "code": None,
        "data": {},
        "runs": dict.fromkeys(job.after),
    }


def _refuse_taken(job: Job) -> None:
    """Raise GridError before anything starts if `open_run` would refuse the folder of the run."""
    try:
        report.refuse_foreign(job.folder)
    except report.RunError as error:
        raise GridError(f"{error}, or move it away") from None
    if report.is_held(job.folder):
        raise GridError(f"{job.folder} is in use: wait for the process that holds it, or end it")


# ---- for how long ----


def expected_seconds(steps: Mapping[str, Step], measured: Mapping[str, float]) -> dict[str, float]:
    """Estimate the seconds that each run takes from the minutes that the grid allows: these times the median
    ratio of the finished runs of its task, else of its notebook, else 1. `measured`: name -> seconds of the
    runs that were finished after the plan was made."""
    known: dict[str, list[float]] = {}
    for name, step in steps.items():
        if (seconds := measured.get(name, step.seconds)) is not None:
            for key in (f"task {step.job.task.name}", str(step.job.task.notebook.path)):
                known.setdefault(key, []).append(seconds / step.job.task.resources.minutes)
    expected = {}
    for name, step in steps.items():
        task = step.job.task
        ratios = known.get(f"task {task.name}") or known.get(str(task.notebook.path))
        expected[name] = task.resources.minutes * (statistics.median(ratios) if ratios else 60)
    return expected


def longest_chains(steps: Mapping[str, Step], seconds: Mapping[str, float]) -> dict[str, float]:
    """Return name -> seconds of the longest chain of runs, each needed by the next, that begins with it."""
    chains = dict(seconds)
    for name in reversed(list(seconds)):
        for other in chains.keys() & steps[name].job.after:
            chains[other] = max(chains[other], seconds[other] + chains[name])
    return chains


def seconds_left(
    steps: Mapping[str, Step], seconds: Mapping[str, float], *, cores: float, at_once: float, gpus: float
) -> float:
    """Estimate the seconds until the last of some runs is finished, if each starts as soon as it can, those
    with the longest chain first.

    Args:
        steps: the steps of these runs, and perhaps of others.
        seconds: name -> remaining seconds, in a possible order of execution; runs that are not among them,
            but that others depend on, are finished.
        cores: cores of the machine, or infinity; a run that asks for more gets all.
        at_once: most runs at the same time, or infinity.
        gpus: GPUs of the machine, or infinity; a run that asks for more gets all. Without GPUs, runs that
            need one cannot be made; they are counted as if they ran one after the other.
    """
    ended: dict[str, float] = {}
    running: list[tuple[float, str, float, float]] = []
    chains, now, free, free_gpus = longest_chains(steps, seconds), 0.0, cores, max(gpus, 1)
    waiting = dict.fromkeys(sorted(seconds, key=chains.__getitem__, reverse=True))
    while waiting or running:
        for name in tuple(waiting):
            job = steps[name].job
            taken, devices = min(job.resources.cores, cores), min(job.resources.gpus, max(gpus, 1))
            ready = all(other in ended for other in job.after if other in seconds)
            if ready and taken <= free and devices <= free_gpus and len(running) < at_once:
                heapq.heappush(running, (now + seconds[name], name, taken, devices))
                free, free_gpus = free - taken, free_gpus - devices
                del waiting[name]
        if not running:  # the rest waits for runs that will never be finished
            return now
        now, name, taken, devices = heapq.heappop(running)
        ended[name] = now
        free, free_gpus = free + taken, free_gpus + devices
    return now
