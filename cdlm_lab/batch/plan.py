"""The plan of a grid, made before anything is changed: what to do for every run, why, and what is missing.

A run needs files, folders, models and GPUs. A path to a `config.json` stands for a model: weights and
tokenizer must be beside it, in readable files. A finished run is kept as long as what made it is what would
make it now: the parameters, data, models and versions in its `run.json`, and the runs that it reads.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import constants, try_to_load_from_cache
from huggingface_hub.errors import HFValidationError

from cdlm_lab.batch.expansion import Job
from cdlm_lab.batch.grid import GridError
from cdlm_lab.data.files import DataError, sha256_of_file
from cdlm_lab.encoders.model_folder import CONFIG_FILE, fault_of_folder
from cdlm_lab.parameters import EVALUATED_WITH, closest_name
from cdlm_lab.runs import report
from cdlm_lab.runs.identity import (
    HUB,
    VERSIONS,
    changed_inputs,
    changed_parameters,
    fingerprint,
    fingerprint_of_model,
)

DONE, NEW, RESUMED, AGAIN = "done", "new", "goes on", "again"


# ---- what a run needs ----


def missing_need(need: str) -> str | None:
    """Return why a file, folder or model is missing, and what to do about it; None if it is there."""
    if need.startswith(HUB):
        name, file = need.removeprefix(HUB), None
        with suppress(HFValidationError):  # the hub could have no model of this name
            file = try_to_load_from_cache(name, CONFIG_FILE)
        if isinstance(file, str):
            return fault_of_folder(Path(file).parent)
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
    return [str(number) for number, _ in enumerate(listed.stdout.split("GPU ")[1:])]


class Checksums:
    """Checksums of files, kept in the file `memory`, which need not exist. One is used as long as size, times
    and inode of its file are the same."""

    def __init__(self, memory: Path) -> None:
        self._memory, self._known = memory, {}
        with suppress(OSError, ValueError):
            self._known = dict(json.loads(memory.read_text(encoding="utf-8")))

    def of_file(self, path: Path) -> str:
        """Return the checksum of a file."""
        status, name = path.stat(), str(path.resolve())
        state = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
        if self._known.get(name, [None])[0] != state:
            self._known[name] = [state, sha256_of_file(path)]
        return self._known[name][1]

    def save(self) -> None:
        """Write the checksums to their file, if its folder exists."""
        if self._memory.parent.is_dir():
            report.write_json(self._memory, self._known)


# ---- what is to be done ----


@dataclass(frozen=True, kw_only=True)
class Step:
    """What is to be done for one run."""

    job: Job  # the run
    # "done" (kept as it is), "new", "goes on" (resumed after an interruption, or only compared anew),
    # "again" (repeated after the existing folder is renamed).
    state: str
    reasons: tuple[str, ...] = ()  # why the run is repeated, or only compared anew
    missing: tuple[str, ...]  # what the run needs and this machine does not have, in words

    @property
    def runs(self) -> bool:
        """Whether the run has to be made, repeated or resumed."""
        return self.state != DONE


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Options of the user beyond the grid."""

    only: tuple[str, ...] = ()  # tasks or runs to make, with the runs that they need; () = all
    rerun: tuple[str, ...] = ()  # tasks or runs to repeat from the beginning even if they are finished
    ignore_code: bool = False  # True = versions of what computes do not count
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
    for name in (name for name in jobs if name in wanted):
        missing = _missing(jobs[name], choice.gpus)
        try:
            state, reasons = _state(jobs[name], steps, choice, checksums, forced=name in rerun)
        except report.RunError as error:
            raise GridError(f"{error}; or move the folder away") from None
        steps[name] = Step(job=jobs[name], state=state, reasons=tuple(reasons), missing=missing)
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


def _missing(job: Job, gpus: int | None) -> tuple[str, ...]:
    missing = [f"{name}: {why}" for name, need in job.needs.items() if (why := missing_need(need))]
    if gpus is not None and (asked := job.resources.gpus) > gpus:
        missing.append(f"{asked} GPU{'s' * (asked > 1)}: this machine has {gpus or 'none'}")
    return tuple(missing)


def _state(
    job: Job, steps: Mapping[str, Step], choice: Choice, checksums: Checksums, *, forced: bool
) -> tuple[str, list[str]]:
    """What is to be done for a run, and why. Raises RunError if its folder has other contents, cannot be read
    or is in use."""
    made = None
    if (job.folder / report.REPORT_FILE).exists():
        made = report.read_report(job.folder)
        parameters, since = made.parameters, made.finished
    else:
        report.refuse_foreign(job.folder)
        if report.is_held(job.folder):
            raise report.RunError(f"{job.folder} is in use: wait for the process that holds it, end it")
        if not (job.folder / report.RUN_FILE).exists():
            return NEW, []
        _, parameters, sessions = report.read_run_file(job.folder)
        since = sessions[-1]["started"]
    # Only what both know is compared: a run may report fewer parameters than its notebook has.
    common = parameters.keys() & job.effective.keys()
    old, new = ({name: side[name] for name in common} for side in (parameters, job.effective))
    reasons = ["--rerun asks for it"] * forced + changed_parameters(old, new)
    evaluated = [name for name in EVALUATED_WITH if made and name in common and old[name] != new[name]]
    # The comparisons of before would stay in the report of a run that is compared with nothing.
    reasons += [f"{name} was {old[name]!r}" for name in evaluated if not new[name]]
    read = [name for name in job.after if name not in job.beside]
    waits = [f"{name}, which it reads, is made first" for name in read if steps[name].runs]
    anew = [f"{name}, which it reads, was made anew" for name in read if _finished(steps[name]) > since]
    changed = {} if waits else _changes(job, checksums, ignore_code=choice.ignore_code)
    reasons += [*waits, *anew, *changed.pop("inputs", ())]
    if reasons:
        return AGAIN, reasons
    compared = [f"{name} is {new[name]!r}, in the run {old[name]!r}" for name in evaluated]
    compared += [
        f"{name}, with which it is compared, is made first" for name in job.beside if steps[name].runs
    ]
    compared += changed.pop("compared", ())
    return (DONE if made and not compared else RESUMED), compared


def _finished(step: Step) -> str:
    """When a run was finished, "" if it is to be made."""
    return "" if step.runs else report.read_report(step.job.folder).finished


def _changes(job: Job, checksums: Checksums, *, ignore_code: bool) -> dict[str, list[str]]:
    """What is no more as the existing run was begun with, by its `run.json`: data, models and versions
    ("inputs"), and what it is compared with; not what is gone, which cannot be seen."""
    try:
        begun_with = json.loads((job.folder / report.RUN_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    now: dict[str, dict[str, Any]] = {}
    hashes = {"data": fingerprint, "compared": fingerprint, "models": fingerprint_of_model}
    for part, hashed in hashes.items():
        now[part] = dict(begun_with.get(part, {}))
        for name in now[part]:
            with suppress(DataError):
                now[part][name] = hashed(name, of_file=checksums.of_file)
    versions = begun_with.get("versions", {})
    now["versions"] = versions if ignore_code else {name: VERSIONS.get(name) for name in versions}
    compared = changed_inputs(begun_with, now, ["compared"])
    return {"inputs": changed_inputs(begun_with, now), "compared": compared}
