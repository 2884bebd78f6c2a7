"""What is to be done for every run of a grid, and why, before anything is touched."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdlm_lab.batch.expansion import Job
from cdlm_lab.batch.fingerprint import changes, code_of, read_stamp
from cdlm_lab.batch.marked_yaml import GridError
from cdlm_lab.batch.needs import Checksums, missing_need
from cdlm_lab.parameters import closest_name, with_those_of_before
from cdlm_lab.report import RunError, read_report
from cdlm_lab.report.document import REPORT_FILE
from cdlm_lab.report.folder import ASIDE, RUN_FILE, is_held, read_run_file, refuse_foreign

DONE, NEW, RESUMED, AGAIN = "done", "new", "goes on", "again"


@dataclass(frozen=True, kw_only=True)
class Step:
    """What is to be done for one run.

    Attributes:
        job: the run.
        state: "done" (it stays as it is), "new", "goes on" (it was interrupted), "again" (what is there is
            put aside first).
        reasons: why it runs again; why what is there cannot go on; what changed under a run that goes on.
        missing: what it needs and this machine lacks, in words.
        fingerprint: of the run as it would be made now; `runs` of those that are finished.
        seconds: that the finished run took; None if it is not done.
    """

    job: Job
    state: str
    reasons: tuple[str, ...]
    missing: tuple[str, ...]
    fingerprint: Mapping[str, Any]
    seconds: float | None = None

    @property
    def runs(self) -> bool:
        """True if there is work to do."""
        return self.state != DONE


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What the user asks for beyond the grid.

    Attributes:
        only: names of tasks or runs: these and what they need; empty means all.
        rerun: names of tasks or runs that run in any case, from the beginning.
        ignore_code: changes to notebooks and library do not count.
        gpus: that this machine has; None = it is a cluster's affair.
    """

    only: tuple[str, ...] = ()
    rerun: tuple[str, ...] = ()
    ignore_code: bool = False
    gpus: int | None = None


def make_plan(jobs: Mapping[str, Job], *, choice: Choice, checksums: Checksums) -> dict[str, Step]:
    """A step for every run that was asked for, in an order in which they could be made.

    Args:
        jobs: as `expand` gives them.
        choice: what the user asks for.
        checksums: of data, with what it remembers.

    Raises:
        GridError: `only` or `rerun` names nothing; a folder holds something that is no run, or is in use.
    """
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
    """(the steps that need nothing that is missing; the names of the others and of what waits for them)."""
    left: list[str] = []
    for name, step in steps.items():
        if step.runs and (step.missing or any(other in left for other in step.job.after)):
            left.append(name)
    return {name: step for name, step in steps.items() if name not in left}, left


def _named(jobs: Mapping[str, Job], names: Collection[str], option: str) -> set[str]:
    """The runs that names of runs or tasks mean."""
    found: set[str] = set()
    for name in names:
        meant = {job.name for job in jobs.values() if name in (job.name, job.task.name)}
        if not meant:
            known = [*dict.fromkeys(job.task.name for job in jobs.values()), *jobs]
            raise GridError(f"{option} {name}: no task and no run is called so: {closest_name(name, known)}")
        found |= meant
    return found


def _step(job: Job, steps: Mapping[str, Step], choice: Choice, checksums: Checksums, *, forced: bool) -> Step:
    missing = _missing(job, choice)
    now = _fingerprint(job, steps, checksums)
    make = functools.partial(Step, job=job, missing=tuple(missing), fingerprint=now)
    waits = [f"{name}, which it reads, is made first" for name in job.after if steps[name].runs]
    asked = ["--rerun asks for it"] if forced else []
    if (job.folder / REPORT_FILE).exists():
        stamp = _finished_stamp(job)
        reasons = asked + changes(stamp["fingerprint"], now, ignore_code=choice.ignore_code) + waits
        state = AGAIN if reasons else DONE
        return make(state=state, reasons=tuple(reasons), seconds=stamp["seconds"])
    _refuse_taken(job)
    if not (job.folder / RUN_FILE).exists():
        return make(state=NEW, reasons=())
    stamp = read_stamp(job.folder)
    old = stamp["fingerprint"] if stamp else _by_hand(job, _parameters(job))
    reasons = asked + changes(old, now, ignore_code=True) + waits
    if reasons:
        return make(state=AGAIN, reasons=tuple(reasons))
    return make(state=RESUMED, reasons=() if choice.ignore_code else tuple(changes(old, now)))


def _missing(job: Job, choice: Choice) -> list[str]:
    found = [f"{name}: {why}" for name, need in job.needs.items() if (why := missing_need(need)) is not None]
    asked = job.resources.gpus
    if choice.gpus is not None and asked > choice.gpus:
        found.append(f"{asked} GPU{'s' * (asked > 1)}: this machine has {choice.gpus or 'none'}")
    return found


def _fingerprint(job: Job, steps: Mapping[str, Step], checksums: Checksums) -> dict[str, Any]:
    """Of the run as it would be made now; when a run that is yet to be made is finished, nobody knows."""
    return {
        "notebook": job.task.notebook.code,
        "parameters": job.effective,
        "code": code_of(job.task.notebook.sources),
        "data": {
            name: None if missing_need(need) else checksums.of(need) for name, need in job.needs.items()
        },
        "runs": {name: None if steps[name].runs else finished_at(steps[name].job) for name in job.after},
    }


def finished_at(job: Job) -> str | None:
    """When a run was finished; None if it is not."""
    try:
        return read_report(job.folder).finished
    except RunError:
        return None


def _finished_stamp(job: Job) -> dict[str, Any]:
    """The stamp of a finished run with its `seconds`; made up for one that was run by hand."""
    try:
        report = read_report(job.folder)
    except RunError as error:
        raise GridError(f"{error}; move the folder away") from None
    stamp = read_stamp(job.folder) or {"fingerprint": _by_hand(job, report.parameters)}
    return {**stamp, "seconds": report.seconds}


def _parameters(job: Job) -> Mapping[str, Any]:
    """Those of an interrupted run."""
    try:
        return read_run_file(job.folder)[1]
    except RunError as error:
        raise GridError(str(error)) from None


def _by_hand(job: Job, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The fingerprint of a run that no grid made: its parameters are all that is known, and a run may report
    fewer than its notebook has."""
    known = with_those_of_before(parameters, job.effective)
    return {
        "notebook": None,
        "parameters": {name: known.get(name, value) for name, value in job.effective.items()},
        "code": None,
        "data": {},
        "runs": dict.fromkeys(job.after),
    }


def _refuse_taken(job: Job) -> None:
    """A folder that `open_run` would refuse, found before anything starts."""
    if job.folder.exists() and not job.folder.is_dir():
        raise GridError(f"{job.folder} is a file; the run {job.name} needs a folder of this name")
    try:
        refuse_foreign(job.folder)
    except RunError as error:
        raise GridError(f"{error}, or move it away") from None
    if is_held(job.folder):
        raise GridError(f"{job.folder} is in use: wait for the process that holds it, or end it")


def aside(folder: Path, *, stamp: str) -> Path:
    """A free name for what was in a folder: runs/x.old-20261122-090400."""
    base = folder.with_name(f"{folder.name}{ASIDE}{stamp}")
    free, number = base, 1
    while free.exists():
        number += 1
        free = base.with_name(f"{base.name}-{number}")
    return free
