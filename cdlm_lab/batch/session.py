"""One call of `cdlm-lab run`: read, plan, say what will be done, do it, say what came of it."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from cdlm_lab.batch import engine, one_run
from cdlm_lab.batch.expansion import expand
from cdlm_lab.batch.forecast import expected_seconds
from cdlm_lab.batch.grid_file import Grid, read_grid
from cdlm_lab.batch.marked_yaml import GridError
from cdlm_lab.batch.needs import Checksums, local_gpus
from cdlm_lab.batch.plan import AGAIN, DONE, RESUMED, Choice, Step, make_plan, without_missing
from cdlm_lab.batch.watch import WAITING, Lines, Progress, Table, shown_time

FAILED, WRONG = 1, 2
_POLL, _SETTLE = 1.0, 15.0  # seconds between two looks at the state files; until they are the last
_LOG_LINES = 15  # of a failed run's log


@dataclass(kw_only=True)
class Session:
    """What the user asked for.

    Attributes:
        grid: file.
        variables: of the grid, name -> text.
        place: where the runs are made.
        choice: which of them.
        leave_out: go on without those that need something that is missing.
        command: to say again to go on.
    """

    grid: str
    variables: Mapping[str, str]
    place: engine.Place
    choice: Choice
    leave_out: bool
    command: str

    def show(self) -> int:
        """Say what would be done, for how long, and what is missing; touch nothing."""
        grid = read_grid(self.grid, variables=self.variables)
        steps, gpus = self._plan(grid)
        kept, left = without_missing(steps) if self.leave_out else (steps, [])
        _say_plan(kept, left)
        _say_missing(kept)
        progress = self._progress(grid, kept, gpus)
        time_left = shown_time(progress.left()[1])
        print(f"{len(progress.steps)} of {len(steps)} runs to make, about {time_left} ({self._where(gpus)})")
        return WRONG if _missing(kept) else 0

    def run(self) -> int:
        """Make the runs; the exit code."""
        grid = read_grid(self.grid, variables=self.variables)
        with engine.take_grid(grid.runs):
            return self._run(grid)

    def _run(self, grid: Grid) -> int:
        steps, gpus = self._plan(grid)
        steps, left = without_missing(steps) if self.leave_out else (steps, [])
        _say_plan(steps, left)
        if missing := _missing(steps):
            raise GridError(
                f"nothing was started: {', '.join(missing)} need what is not here (see above): put it there, "
                "or leave them out with --without-missing"
            )
        if not any(step.runs for step in steps.values()):
            print(f"nothing to do: {len(steps)} runs are finished in {grid.runs}")
            return 0
        command = engine.snakemake_command(grid, place=self.place, gpus=len(gpus))
        for before, after in engine.put_aside(steps):
            print(f"{before} is now {after}")
        engine.write_jobs(grid, steps, place=self.place, gpus=gpus)
        return self._make(grid, self._progress(grid, steps, gpus), command)

    def _plan(self, grid: Grid) -> tuple[dict[str, Step], list[str]]:
        """What is to be done, and the GPUs of this machine."""
        jobs = expand(grid)
        gpus = local_gpus() if self.place.local else []
        checksums = Checksums(grid.runs / engine.GRID_FOLDER / "checksums.json")
        choice = replace(self.choice, gpus=len(gpus) if self.place.local else None)
        steps = make_plan(jobs, choice=choice, checksums=checksums)
        if (grid.runs / engine.GRID_FOLDER).is_dir():
            with suppress(OSError):  # what it remembers only saves time
                checksums.save()
        return steps, gpus

    def _progress(self, grid: Grid, steps: Mapping[str, Step], gpus: list[str]) -> Progress:
        return Progress(
            steps,
            log=grid.runs / engine.GRID_FOLDER / engine.LOG_FILE,
            cores=engine.usable_cores() if self.place.local else math.inf,
            at_once=self.place.jobs or math.inf,
            gpus=len(gpus) if self.place.local else math.inf,
        )

    def _where(self, gpus: list[str]) -> str:
        if not self.place.local:
            return f"on {self.place.executor or f'what {self.place.profile} says'}"
        return f"here: {engine.usable_cores()} cores, {len(gpus) or 'no'} GPUs"

    def _make(self, grid: Grid, progress: Progress, command: list[str]) -> int:
        path = grid.runs / engine.GRID_FOLDER / engine.LOG_FILE
        with path.open("w", encoding="utf-8") as log, _Signals() as signals:
            running = engine.start(command, log)
            try:
                _follow(running, progress, grid.runs, signals)
            finally:
                if running.poll() is None:
                    engine.stop(running, local=self.place.local)
        _settle(progress, grid.runs)
        if signals.number is not None:
            return self._stopped(progress, signals.number)
        return _result(grid, progress, running.returncode, path)

    def _stopped(self, progress: Progress, number: int) -> int:
        cut = len(progress.named(one_run.STOPPED)) + len(progress.named(one_run.FAILED))
        finished = len(progress.named(one_run.DONE))
        print(
            f"stopped by {signal.Signals(number).name}: {finished} runs were finished, {cut} cut off. "
            f"To go on: {self.command}"
        )
        return 128 + number


class _Signals:
    """Notes that the user, or the system, wants an end, in place of ending at once."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> _Signals:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # `nohup` and the shell's `&` have some of them ignored, and so it stays.
            if signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._told)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _told(self, number: int, frame: object) -> None:
        self.number = number


def _follow(running: subprocess.Popen, progress: Progress, runs: Path, signals: _Signals) -> None:
    view = Table(progress) if sys.stdout.isatty() else Lines(progress)
    with view:
        while running.poll() is None and signals.number is None:
            view.show(progress.update(engine.read_states(runs, list(progress.steps))))
            time.sleep(_POLL)
        view.show(progress.update(engine.read_states(runs, list(progress.steps))))
    if signals.number is not None:
        print("stopping; a moment", flush=True)


def _settle(progress: Progress, runs: Path) -> None:
    """Take in how the runs ended; those whose Snakemake was killed need a moment to notice."""
    end = time.monotonic() + _SETTLE
    progress.update(engine.read_states(runs, list(progress.steps)))
    while progress.named(one_run.RUNNING) and time.monotonic() < end:
        time.sleep(_POLL)
        progress.update(engine.read_states(runs, list(progress.steps)))
    progress.close()


def _say_plan(steps: Mapping[str, Step], left_out: list[str]) -> None:
    """A line for every run that is not simply kept."""
    expected = expected_seconds(steps, {})
    for name, step in steps.items():
        if step.state == DONE:
            continue
        why = "; ".join(step.reasons)
        word = {AGAIN: "will run again", RESUMED: "will go on"}.get(step.state, "will run")
        print(f"{name}: {word}{f': {why}' if why else ''} (about {shown_time(expected[name])})")
        for missing in step.missing:
            print(f"    missing: {missing}")
    for name in left_out:
        print(f"{name}: left out")
    if kept := sum(step.state == DONE for step in steps.values()):
        print(f"{kept} of {len(steps)} runs are finished and stay as they are")
    sys.stdout.flush()


def _say_missing(steps: Mapping[str, Step]) -> None:
    """What several runs lack, once: the list of what is to be had before the grid can run."""
    runs = Counter(line for step in steps.values() if step.runs for line in step.missing)
    if any(count > 1 for count in runs.values()):
        print("missing in all:")
        for line, count in runs.items():
            print(f"    {line} ({count} run{'s' * (count > 1)})")


def _missing(steps: Mapping[str, Step]) -> list[str]:
    return [name for name, step in steps.items() if step.runs and step.missing]


def _result(grid: Grid, progress: Progress, code: int, log: Path) -> int:
    """Say what came of it: failed runs with the end of their logs."""
    unfinished = [name for name in progress.steps if name not in progress.named(one_run.DONE)]
    if not unfinished and code == 0:
        print(f"all {len(progress.steps)} runs are finished: {grid.runs}")
        return 0
    began = [name for name in unfinished if progress.states[name]["state"] != WAITING]
    for name in began:
        state = progress.states[name]
        folder = progress.steps[name].job.folder
        word = "was stopped" if state["state"] == one_run.STOPPED else "failed"
        print(f"\n{name} {word}: {state.get('reason')}")
        if lines := one_run.last_lines(folder / one_run.LOG_FILE, _LOG_LINES).splitlines():
            print(f"    the end of {folder / one_run.LOG_FILE}:")
            print("\n".join(f"    | {line}" for line in lines))
        if (folder / one_run.EXECUTED_FILE).exists():
            print(f"    the notebook as far as it came: {folder / one_run.EXECUTED_FILE}")
    blocked = progress.blocked()
    for name in progress.named(WAITING):
        print(f"{name} did not start{f': it waits for {blocked[name]}' if name in blocked else ''}")
    if not began or code < 0:
        print(f"Snakemake ended with exit code {code}; the end of {log}:")
        print("\n".join(f"    | {line}" for line in one_run.last_lines(log, _LOG_LINES).splitlines()))
    done = len(progress.named(one_run.DONE))
    failed = f"{len(began)} failed" if began else "Snakemake itself failed (see above)"
    print(f"\n{failed}, {done} done, {len(unfinished) - len(began)} not started")
    return FAILED
