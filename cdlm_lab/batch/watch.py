"""What a person sees while a grid runs: a live table on a terminal, else a line for each event."""

from __future__ import annotations

import math
import re
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from cdlm_lab.batch import one_run
from cdlm_lab.batch.forecast import Remaining, expected_seconds, seconds_left
from cdlm_lab.batch.plan import Step

WAITING = "waiting"
_SUMMARY_EVERY = 300.0  # seconds between two lines of summary without a terminal
_STYLES = {"running": "bold", "done": "green", "failed": "red", "stopped": "yellow", "waiting": "dim"}
_VANISHED = "it vanished: killed from outside, or its node was lost"
_ENDED = (one_run.DONE, one_run.FAILED, one_run.STOPPED)


class Progress:
    """How the runs of a plan stand.

    Args:
        steps: of the plan.
        log: of Snakemake, which knows of runs that could note nothing themselves.
        cores: of the machine, infinity on a cluster.
        at_once: so many runs at most, or infinity.
        gpus: of the machine, infinity on a cluster.
    """

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
        self.states: dict[str, dict[str, Any]] = {}
        self._all, self._cores, self._at_once, self._gpus = steps, cores, at_once, gpus
        self._errors = _Errors(log)
        self._lost: dict[str, tuple[str, int | None]] = {}

    def update(self, states: Mapping[str, dict[str, Any]]) -> list[tuple[str, str]]:
        """Take in what the runs noted; (name, its new state) of those that changed."""
        changed = []
        for name, why in self._errors.new():
            # What is said of one attempt does not hold for the next.
            self._lost[name] = (why, states.get(name, {}).get("attempt"))
        for name in self.steps:
            now = dict(states.get(name, {"state": WAITING}))
            why, attempt = self._lost.get(name, ("", -1))
            if now["state"] == WAITING and attempt is None:
                now |= {"state": one_run.FAILED, "reason": f"it could not begin: {why}"}
            elif now["state"] == one_run.RUNNING and (attempt == now["attempt"] or _is_gone(now)):
                now |= {"state": one_run.FAILED, "reason": f"{_VANISHED}{why and f'; {why}'}"}
            before = self.states.get(name, {"state": WAITING})
            if (now["state"], now.get("attempt")) != (before["state"], before.get("attempt")):
                changed.append((name, now["state"]))
            self.states[name] = now
        return changed

    def close(self) -> None:
        """Snakemake has ended: what still says that it runs does not, or is no longer of this grid."""
        for name in self.named(one_run.RUNNING):
            self.states[name] |= {"state": one_run.FAILED, "reason": _VANISHED}

    def named(self, state: str) -> list[str]:
        """The runs in a state."""
        return [name for name in self.steps if self.states.get(name, {}).get("state", WAITING) == state]

    def seconds_of(self, name: str) -> float | None:
        """How long a run runs, or ran; None if it has not begun."""
        state = self.states.get(name, {})
        if "started" not in state:
            return None
        end = time.time() if state["state"] == one_run.RUNNING else state["noted"]
        return max(end - state["started"], 0.0)

    def left(self) -> tuple[dict[str, float], float]:
        """(name -> seconds that a run which is not finished still takes, seconds until all are)."""
        measured = {name: self.seconds_of(name) or 0.0 for name in self.named(one_run.DONE)}
        expected = expected_seconds(self._all, measured)
        blocked = self.blocked()
        each = {}
        for name in self.steps:
            if self.states.get(name, {}).get("state", WAITING) not in _ENDED and name not in blocked:
                each[name] = max(expected[name] - (self.seconds_of(name) or 0.0), 0.0)
        todo = {
            name: Remaining(
                seconds=seconds,
                cores=self.steps[name].job.resources.cores,
                after=self.steps[name].job.after,
                gpus=self.steps[name].job.resources.gpus,
            )
            for name, seconds in each.items()
        }
        return each, seconds_left(todo, cores=self._cores, at_once=self._at_once, gpus=self._gpus)

    def blocked(self) -> dict[str, str]:
        """Runs that will not begin -> the run at which it began, which failed or was stopped."""
        failed = {*self.named(one_run.FAILED), *self.named(one_run.STOPPED)}
        found: dict[str, str] = {}
        for name in self.named(WAITING):
            for other in self.steps[name].job.after:
                if other in failed or other in found:
                    found[name] = found.get(other, other)
        return found

    def summary(self) -> str:
        """One line: how many wait, run, are done, and how long it will take."""
        _, seconds = self.left()
        counts = [f"{len(self.named(state))} {state}" for state in ("running", "done", "failed", "waiting")]
        kept = f" ({self.kept} finished before)" if self.kept else ""
        return f"{', '.join(counts)}{kept}; about {shown_time(seconds)} left"


class Lines:
    """A line for each change, and now and then one for all; for logs."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._said = progress, time.monotonic()

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def show(self, changed: list[tuple[str, str]]) -> None:
        """Print what changed."""
        for name, state in changed:
            seconds = self._progress.seconds_of(name)
            took = f" after {shown_time(seconds)}" if state in _ENDED and seconds is not None else ""
            why = self._progress.states[name].get("reason")
            print(f"{time.strftime('%H:%M:%S')} {name}: {state}{took}{f': {why}' if why else ''}", flush=True)
        if time.monotonic() - self._said > _SUMMARY_EVERY:
            self._said = time.monotonic()
            print(f"{time.strftime('%H:%M:%S')} {self._progress.summary()}", flush=True)


class Table:
    """A table that stands still on the terminal and changes."""

    def __init__(self, progress: Progress) -> None:
        from rich.live import Live

        self._progress = progress
        self._live = Live(auto_refresh=False, transient=False)

    def __enter__(self) -> Table:
        self._live.__enter__()
        self._live.update(self._drawn(), refresh=True)
        return self

    def __exit__(self, *error: object) -> None:
        self._live.__exit__(*error)

    def show(self, changed: list[tuple[str, str]]) -> None:
        """Draw it anew."""
        self._live.update(self._drawn(), refresh=True)

    def _drawn(self) -> Any:
        from rich.console import Group
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable()
        for column in ("run", "state", "time", "left"):
            table.add_column(column, justify="left" if column in ("run", "state") else "right")
        left, _ = self._progress.left()
        blocked = self._progress.blocked()
        names = list(self._chosen())
        for name in names:
            state = self._progress.states.get(name, {}).get("state", WAITING)
            seconds = self._progress.seconds_of(name)
            said = f"waits for {blocked[name]}, which failed" if name in blocked else state
            rest = f"~{shown_time(left[name])}" if name in left else ""
            ran = "" if seconds is None else shown_time(seconds)
            table.add_row(Text(name), Text(said, style=_STYLES[state]), ran, rest)
        if hidden := len(self._progress.steps) - len(names):
            table.add_row(Text(f"... and {hidden} more", style="dim"), "", "", "")
        return Group(table, self._progress.summary())

    def _chosen(self) -> Iterator[str]:
        """What fits the window: failed and running runs first, the rest in order."""
        room = max(self._live.console.height - 8, 5)
        everything = list(self._progress.steps)
        if len(everything) <= room:
            yield from everything
            return
        rank = {one_run.FAILED: 0, one_run.RUNNING: 1, WAITING: 2}
        state = lambda name: self._progress.states.get(name, {}).get("state", WAITING)  # noqa: E731
        chosen = set(sorted(everything, key=lambda name: rank.get(state(name), 3))[:room])
        yield from (name for name in everything if name in chosen)


def shown_time(seconds: float) -> str:
    """75 -> "1:15", 7260 -> "2:01 h"."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600}:{whole % 3600 // 60:02d} h"
    return f"{whole // 60}:{whole % 60:02d}"


class _Errors:
    """Reads from Snakemake's log which runs ended badly, and what is said of them."""

    def __init__(self, log: Path) -> None:
        self._log, self._place, self._block = log, 0, None

    def new(self) -> Iterator[tuple[str, str]]:
        """(name, what was said) of runs of which it was said since the last call."""
        try:
            with self._log.open("rb") as file:
                file.seek(self._place)
                text = file.read()
        except OSError:
            return
        whole = text[: text.rfind(b"\n") + 1]
        self._place += len(whole)
        for line in whole.decode("utf-8", errors="replace").splitlines():
            if not line.startswith(" "):
                self._block = {} if line.startswith("Error in rule") else None
            elif self._block is not None:
                key, _, value = line.strip().partition(": ")
                self._block[key] = value
                # The last thing that matters; `log` stands there for a cluster's job, after `output`.
                if key == "shell:" and (
                    found := re.match(r"(\S+)/report\.json", self._block.get("output", ""))
                ):
                    yield found[1], self._said(self._block)

    @staticmethod
    def _said(block: Mapping[str, str]) -> str:
        message = block.get("message", "None").partition(". ")[0]
        log = block.get("log", "").partition(" (")[0]
        return "; ".join([*([message] if message != "None" else []), *([f"see {log}"] if log else [])])


def _is_gone(state: Mapping[str, Any]) -> bool:
    """True if a run of this machine says that it is running, and is not."""
    return state.get("host") == socket.gethostname() and not psutil.pid_exists(state.get("pid", 0))
