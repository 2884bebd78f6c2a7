"""One call of `cdlm-lab run`: read the grid, plan, report the plan, execute it, report the results.

While a grid runs, progress is shown as a live table on a terminal, else as one line per event.
"""

from __future__ import annotations

import math
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from cdlm_lab.batch import engine
from cdlm_lab.batch import plan as planning
from cdlm_lab.batch.expansion import expand
from cdlm_lab.batch.grid import Grid, read_grid
from cdlm_lab.batch.marked_yaml import GridError
from cdlm_lab.batch.plan import Choice, Step

WAITING = "waiting"
FAILED, WRONG = 1, 2  # exit codes
_SUMMARY_EVERY = 300.0  # seconds between two summary lines if there is no terminal
_STYLES = {"running": "bold", "done": "green", "failed": "red", "stopped": "yellow", "waiting": "dim"}
_VANISHED = "it vanished: killed from outside, or its node was lost"
_ENDED = (engine.DONE, engine.FAILED, engine.STOPPED)
_POLL, _SETTLE = 1.0, 15.0  # seconds between two reads of the state files; seconds until they are final
_LOG_LINES = 15  # lines of a failed run's log that are shown


class Progress:
    """The state of a plan's runs. `log`: Snakemake's log, which reports runs that failed before they could
    write a state; `cores`, `gpus`: of this machine, infinity on a cluster; `at_once`: most runs at a time."""

    def __init__(
        self,
        steps: Mapping[str, Step],
        *,
        log: Path,
        cores: float = math.inf,
        at_once: float = math.inf,
        gpus: float = math.inf,
    ) -> None:
        self.steps = {name: step for name, step in steps.items() if step.runs}
        self.kept = len(steps) - len(self.steps)
        self.states: dict[str, dict[str, Any]] = {name: {"state": WAITING} for name in self.steps}
        self._all, self._limits = steps, {"cores": cores, "at_once": at_once, "gpus": gpus}
        self._errors = _Errors(log)
        self._lost: dict[str, tuple[str, int | None]] = {}

    def update(self, states: Mapping[str, dict[str, Any]]) -> list[tuple[str, str]]:
        """Update from the states that the runs wrote; return (name, new state) of those that changed."""
        changed = []
        for name, why in self._errors.new():
            # An error of one attempt does not hold for the next.
            self._lost[name] = (why, states.get(name, {}).get("attempt"))
        for name, before in self.states.items():
            now = dict(states.get(name, {"state": WAITING}))
            why, attempt = self._lost.get(name, ("", -1))
            gone = now.get("host") == socket.gethostname() and not psutil.pid_exists(now.get("pid", 0))
            if now["state"] == WAITING and attempt is None:
                now |= {"state": engine.FAILED, "reason": f"it could not begin{why and f': {why}'}"}
            elif now["state"] == engine.RUNNING and (attempt == now["attempt"] or gone):
                now |= {"state": engine.FAILED, "reason": f"{_VANISHED}{why and f'; {why}'}"}
            if (now["state"], now.get("attempt")) != (before["state"], before.get("attempt")):
                changed.append((name, now["state"]))
            self.states[name] = now
        return changed

    def close(self) -> None:
        """Mark runs that still run after Snakemake's end as failed: they are dead, or not this grid's."""
        for name in self.named(engine.RUNNING):
            self.states[name] |= {"state": engine.FAILED, "reason": _VANISHED}

    def named(self, state: str) -> list[str]:
        """Return the names of the runs in a state."""
        return [name for name, now in self.states.items() if now["state"] == state]

    def seconds_of(self, name: str) -> float | None:
        """Return for how many seconds a run has been running, or ran; None if it has not begun."""
        state = self.states[name]
        if "started" not in state:
            return None
        end = time.time() if state["state"] == engine.RUNNING else state["noted"]
        return max(end - state["started"], 0.0)

    def left(self) -> tuple[dict[str, float], float]:
        """Return (name -> estimated remaining seconds of each unfinished run, seconds until all are done)."""
        measured = {name: self.seconds_of(name) or 0.0 for name in self.named(engine.DONE)}
        expected = planning.expected_seconds(self._all, measured)
        blocked, each = self.blocked(), {}
        for name in self.steps:
            if self.states[name]["state"] not in _ENDED and name not in blocked:
                each[name] = max(expected[name] - (self.seconds_of(name) or 0.0), 0.0)
        return each, planning.seconds_left(self.steps, each, **self._limits)

    def blocked(self) -> dict[str, str]:
        """Return {run that cannot begin: the failed or stopped run that it directly or indirectly needs}."""
        failed = {*self.named(engine.FAILED), *self.named(engine.STOPPED)}
        blocked: dict[str, str] = {}
        for name in self.named(WAITING):
            for other in self.steps[name].job.after:
                if other in failed or other in blocked:
                    blocked[name] = blocked.get(other, other)
        return blocked

    def summary(self) -> str:
        """Return one line with the number of runs in each state, and the estimated time left."""
        counts = [f"{len(self.named(state))} {state}" for state in ("running", "done", "failed", "waiting")]
        kept = f" ({self.kept} finished before)" if self.kept else ""
        return f"{', '.join(counts)}{kept}; about {shown_time(self.left()[1])} left"


class _Errors:
    """Reads from Snakemake's log which runs failed, and its message about each."""

    _BLOCK = re.compile(r"^Error in rule \S+:$.*?^    shell:$", re.MULTILINE | re.DOTALL)
    _RUN = re.compile(f"^    output: {engine.ENDED_FILE.format(name='(.+)')}$", re.MULTILINE)
    # An executor's message may have several lines, and end with the command that it gave.
    _MESSAGE = re.compile(r"(?ms)^    message: (?!None$)(.*?)(?=For further error|^    \S+(?: call)?:)")
    _LOG = re.compile(r"^    log: (.*?)(?: \(.*)?$", re.MULTILINE)

    def __init__(self, log: Path) -> None:
        self._log, self._place, self._text = log, 0, ""

    def new(self) -> Iterator[tuple[str, str]]:
        """Yield (name, message) of the failures that were logged since the last call."""
        try:
            with self._log.open("rb") as file:
                file.seek(self._place)
                read = file.read()
        except OSError:
            return
        whole = read[: read.rfind(b"\n") + 1]
        self._place += len(whole)
        self._text += whole.decode("utf-8", errors="replace")
        read_to = 0
        for block in self._BLOCK.finditer(self._text):
            read_to = block.end()
            if run := self._RUN.search(block[0]):
                message, log = self._MESSAGE.search(block[0]), self._LOG.search(block[0])
                parts = [message and " ".join(message[1].split()).rstrip("."), log and f"see {log[1]}"]
                yield run[1], "; ".join(filter(None, parts))
        begun = self._text.rfind("Error in rule", read_to)  # a block whose end is still to come
        self._text = self._text[begun:] if begun >= 0 else ""


class Lines:
    """Progress for logs: one line for each change, and regularly a summary."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._summarised = progress, time.monotonic()

    def show(self, changed: list[tuple[str, str]]) -> None:
        """Print one line for each run whose state changed."""
        for name, state in changed:
            seconds = self._progress.seconds_of(name)
            took = f" after {shown_time(seconds)}" if state in _ENDED and seconds is not None else ""
            why = self._progress.states[name].get("reason")
            print(f"{time.strftime('%H:%M:%S')} {name}: {state}{took}{f': {why}' if why else ''}", flush=True)
        if time.monotonic() - self._summarised > _SUMMARY_EVERY:
            self._summarised = time.monotonic()
            print(f"{time.strftime('%H:%M:%S')} {self._progress.summary()}", flush=True)


class Table:
    """Progress for terminals: a table that is updated in place."""

    def __init__(self, progress: Progress) -> None:
        from rich.live import Live

        self._progress = progress
        self._live = Live(auto_refresh=False, transient=False)

    def __enter__(self) -> Table:
        self._live.__enter__()
        self.show([])
        return self

    def __exit__(self, *error: object) -> None:
        self._live.__exit__(*error)

    def show(self, changed: list[tuple[str, str]]) -> None:
        """Redraw the table."""
        self._live.update(self._drawn(), refresh=True)

    def _drawn(self) -> Any:
        from rich.console import Group
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable()
        for column in ("run", "state", "time", "left"):
            table.add_column(column, justify="left" if column in ("run", "state") else "right")
        left, blocked, names = self._progress.left()[0], self._progress.blocked(), self._chosen()
        for name in names:
            state, seconds = self._progress.states[name]["state"], self._progress.seconds_of(name)
            words = f"waits for {blocked[name]}, which failed" if name in blocked else state
            rest = f"~{shown_time(left[name])}" if name in left else ""
            ran = "" if seconds is None else shown_time(seconds)
            table.add_row(Text(name), Text(words, style=_STYLES[state]), ran, rest)
        if hidden := len(self._progress.steps) - len(names):
            table.add_row(Text(f"... and {hidden} more", style="dim"), "", "", "")
        return Group(table, self._progress.summary())

    def _chosen(self) -> list[str]:
        """Return the runs that fit the window, in order: failed, running and waiting ones are preferred."""
        rank = {engine.FAILED: 0, engine.RUNNING: 1, WAITING: 2}
        states = self._progress.states
        ordered = sorted(states, key=lambda name: rank.get(states[name]["state"], 3))
        chosen = set(ordered[: max(self._live.console.height - 8, 5)])
        return [name for name in states if name in chosen]


def shown_time(seconds: float) -> str:
    """Write a duration in seconds: 75 -> "1:15", 7260 -> "2:01 h"."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600}:{whole % 3600 // 60:02d} h"
    return f"{whole // 60}:{whole % 60:02d}"


@dataclass(kw_only=True)
class Session:
    """One call of `cdlm-lab run`, with the user's arguments."""

    grid: str  # path of the grid's file
    variables: Mapping[str, str]  # variables of the grid, name -> text
    place: engine.Place  # where the runs are made
    choice: Choice  # which runs are made
    leave_out: bool  # True = leave out runs for which something is missing
    command: str  # the command line, to be repeated to continue

    def show(self) -> int:
        """Print what would be done, how long it takes and what is missing, but start nothing; exit code."""
        grid = read_grid(self.grid, variables=self.variables)
        steps, left_out, gpus = self._plan(grid)
        _print_plan(steps, left_out)
        # A list of everything that must be provided before the grid can run, each item once.
        lacking = Counter(line for step in steps.values() if step.runs for line in step.missing)
        if any(count > 1 for count in lacking.values()):
            print("missing in all:")
            for line, count in lacking.items():
                print(f"    {line} ({count} run{'s' * (count > 1)})")
        where = f"here: {engine.usable_cores()} cores, {len(gpus) or 'no'} GPUs"
        if not self.place.local:
            where = f"on {self.place.executor or f'what {self.place.profile} says'}"
        progress = self._progress(grid, steps, gpus)
        time_left = shown_time(progress.left()[1])
        total = len(steps) + len(left_out)
        print(f"{len(progress.steps)} of {total} runs to make, about {time_left} ({where})")
        return WRONG if _missing(steps) else 0

    def run(self) -> int:
        """Execute the plan; return the exit code. Raises GridError if a run lacks something."""
        grid = read_grid(self.grid, variables=self.variables)
        with engine.take_grid(grid.runs):
            steps, left_out, gpus = self._plan(grid)
            _print_plan(steps, left_out)
            if missing := _missing(steps):
                raise GridError(
                    f"nothing was started: {', '.join(missing)} need what is not here (see above): put it "
                    "there, or leave them out with --without-missing"
                )
            if not any(step.runs for step in steps.values()):
                print(f"nothing to do: {len(steps)} runs are finished in {grid.runs}")
                return 0
            command = engine.snakemake_command(grid, place=self.place, gpus=len(gpus))
            for before, after in engine.put_aside(steps):
                print(f"{before} is now {after}")
            engine.write_jobs(grid, steps, place=self.place, gpus=gpus)
            return self._make(grid, self._progress(grid, steps, gpus), command)

    def _plan(self, grid: Grid) -> tuple[dict[str, Step], list[str], list[str]]:
        """Return the steps, the names of runs that are left out, and the GPUs of this machine."""
        jobs = expand(grid)
        gpus = planning.local_gpus() if self.place.local else []
        checksums = planning.Checksums(grid.runs / engine.GRID_FOLDER / "checksums.json")
        choice = replace(self.choice, gpus=len(gpus) if self.place.local else None)
        steps = planning.make_plan(jobs, choice=choice, checksums=checksums)
        if (grid.runs / engine.GRID_FOLDER).is_dir():
            with suppress(OSError):  # the cache only saves time
                checksums.save()
        kept, left_out = planning.without_missing(steps) if self.leave_out else (steps, [])
        return kept, left_out, gpus

    def _progress(self, grid: Grid, steps: Mapping[str, Step], gpus: list[str]) -> Progress:
        return Progress(
            steps,
            log=grid.runs / engine.GRID_FOLDER / engine.ENGINE_LOG_FILE,
            cores=engine.usable_cores() if self.place.local else math.inf,
            at_once=self.place.jobs or math.inf,
            gpus=len(gpus) if self.place.local else math.inf,
        )

    def _make(self, grid: Grid, progress: Progress, command: list[str]) -> int:
        path = grid.runs / engine.GRID_FOLDER / engine.ENGINE_LOG_FILE
        with path.open("w", encoding="utf-8") as log, _Signals() as signals:
            running = engine.start(command, log)
            try:
                _follow(running, progress, grid.runs, signals)
            finally:
                if running.poll() is None:
                    engine.stop(running, local=self.place.local)
        # After Snakemake was killed, its runs need a moment to notice and to write their states.
        end = time.monotonic() + _SETTLE
        progress.update(engine.read_states(grid.runs, list(progress.steps)))
        while progress.named(engine.RUNNING) and time.monotonic() < end:
            time.sleep(_POLL)
            progress.update(engine.read_states(grid.runs, list(progress.steps)))
        progress.close()
        if signals.number is None:
            return _result(grid, progress, running.returncode, path)
        finished, failed, stopped = (len(progress.named(state)) for state in _ENDED)
        print(
            f"stopped by {signal.Signals(signals.number).name}: {finished} runs were finished, "
            f"{stopped + failed} cut off. To go on: {self.command}"
        )
        return 128 + signals.number


class _Signals:
    """Context that records SIGINT, SIGTERM and SIGHUP, so that the program can end in an orderly way."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> _Signals:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # Signals that are ignored because of `nohup` or the shell's `&` remain ignored.
            if signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: object) -> None:
        self.number = number


def _follow(running: subprocess.Popen, progress: Progress, runs: Path, signals: _Signals) -> None:
    """Show the progress of the runs until Snakemake ends or a signal arrives."""
    with Table(progress) if sys.stdout.isatty() else nullcontext(Lines(progress)) as view:
        while running.poll() is None and signals.number is None:
            view.show(progress.update(engine.read_states(runs, list(progress.steps))))
            time.sleep(_POLL)
        view.show(progress.update(engine.read_states(runs, list(progress.steps))))
    if signals.number is not None:
        print("stopping; a moment", flush=True)


def _missing(steps: Mapping[str, Step]) -> list[str]:
    return [name for name, step in steps.items() if step.runs and step.missing]


def _print_plan(steps: Mapping[str, Step], left_out: list[str]) -> None:
    """Print a line for every run that is made or left out, and the number of those that are kept."""
    expected = planning.expected_seconds(steps, {})
    words = {planning.NEW: "will run", planning.AGAIN: "will run again", planning.RESUMED: "will go on"}
    for name, step in steps.items():
        if step.runs:
            why = f": {'; '.join(step.reasons)}" if step.reasons else ""
            print(f"{name}: {words[step.state]}{why} (about {shown_time(expected[name])})")
            for missing in step.missing:
                print(f"    missing: {missing}")
    for name in left_out:
        print(f"{name}: left out")
    if kept := sum(not step.runs for step in steps.values()):
        print(f"{kept} of {len(steps)} runs are finished and stay as they are")
    sys.stdout.flush()


def _result(grid: Grid, progress: Progress, code: int, log: Path) -> int:
    """Print the results, failed runs with the end of their logs, and return the exit code."""
    done = progress.named(engine.DONE)
    unfinished = [name for name in progress.steps if name not in done]
    if not unfinished and code == 0:
        print(f"all {len(progress.steps)} runs are finished: {grid.runs}")
        return 0
    began = [name for name in unfinished if progress.states[name]["state"] != WAITING]
    for name in began:
        state = progress.states[name]
        folder = progress.steps[name].job.folder
        word = "was stopped" if state["state"] == engine.STOPPED else "failed"
        print(f"\n{name} {word}: {state.get('reason')}")
        if lines := _quoted(folder / engine.LOG_FILE):
            print(f"    the end of {folder / engine.LOG_FILE}:\n{lines}")
        if (folder / engine.EXECUTED_FILE).exists():
            print(f"    the notebook as far as it came: {folder / engine.EXECUTED_FILE}")
    blocked = progress.blocked()
    for name in progress.named(WAITING):
        print(f"{name} did not start{f': it waits for {blocked[name]}' if name in blocked else ''}")
    if code < 0 or not all("started" in progress.states[name] for name in began or unfinished):
        print(f"Snakemake ended with exit code {code}; the end of {log}:\n{_quoted(log)}")
    failed = f"{len(began)} failed" if began else "Snakemake itself failed (see above)"
    print(f"\n{failed}, {len(done)} done, {len(unfinished) - len(began)} not started")
    return FAILED


def _quoted(log: Path) -> str:
    """Return the last lines of a log, indented."""
    return "\n".join(f"    | {line}" for line in engine.last_lines(log, _LOG_LINES).splitlines())
