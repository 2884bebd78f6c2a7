"""One call of `cdlm-lab run`: read the grid, plan, say the plan, have it executed, say what came of it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from cdlm_lab.batch import engine
from cdlm_lab.batch import plan as planning
from cdlm_lab.batch.expansion import expand
from cdlm_lab.batch.grid import Grid, GridError, read_grid
from cdlm_lab.batch.plan import Choice, Step
from cdlm_lab.progress import usable_cores

FAILED, WRONG = 1, 2  # exit codes
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # that end the program in an orderly way
_WORDS = {planning.NEW: "will run", planning.AGAIN: "will run again", planning.RESUMED: "will go on"}


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
        """Print what would be done, and what is missing, but start nothing; exit code."""
        steps, gpus = self._planned(read_grid(self.grid, variables=self.variables))
        # A list of everything that must be provided before the grid can run, each item once.
        lacking = Counter(line for step in steps.values() if step.runs for line in step.missing)
        if any(count > 1 for count in lacking.values()):
            print("missing in all:")
            for line, count in lacking.items():
                print(f"    {line} ({count} run{'s' * (count > 1)})")
        where = f"here: {usable_cores()} cores, {len(gpus) or 'no'} GPUs"
        if not self.place.local:
            where = f"on {self.place.executor or f'what {self.place.profile} says'}"
        print(f"{sum(step.runs for step in steps.values())} of {len(steps)} runs to make ({where})")
        return WRONG if _missing(steps) else 0

    def run(self) -> int:
        """Execute the plan; return the exit code. Raises GridError if a run lacks something."""
        grid = read_grid(self.grid, variables=self.variables)
        with engine.only_user(grid.runs):
            steps, gpus = self._planned(grid)
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
                print(f"{before} is now {after}", flush=True)
            engine.write_jobs(grid, steps, place=self.place, gpus=gpus)
            for number in _SIGNALS:
                # Signals that are ignored because of `nohup` or the shell's `&` remain ignored.
                if signal.getsignal(number) != signal.SIG_IGN:
                    signal.signal(number, _stop)
            # In a session of its own, so that Ctrl-C reaches this process alone.
            snakemake = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
            try:
                code = snakemake.wait()
            except _Stopped as stopped:
                print("stopping; a moment", flush=True)
                engine.stop(snakemake, local=self.place.local)
                (number,) = stopped.args
                print(f"stopped by {signal.Signals(number).name}. To go on: {self.command}")
                return 128 + number
            if code:
                print(f"not all is done (exit code {code} of Snakemake). To go on: {self.command}")
                return FAILED
            print(f"all runs are finished: {grid.runs}")
            return 0

    def _planned(self, grid: Grid) -> tuple[dict[str, Step], list[str]]:
        """Return the steps, after printing them, and the GPUs of this machine."""
        jobs = expand(grid)
        gpus = planning.local_gpus() if self.place.local else []
        checksums = planning.Checksums(grid.runs / engine.GRID_FOLDER / "checksums.json")
        choice = replace(self.choice, gpus=len(gpus) if self.place.local else None)
        steps = planning.make_plan(jobs, choice=choice, checksums=checksums)
        checksums.save()
        kept, left_out = planning.without_missing(steps) if self.leave_out else (steps, [])
        for name, step in kept.items():
            if step.runs:
                why = f": {'; '.join(step.reasons)}" if step.reasons else ""
                print(f"{name}: {_WORDS[step.state]}{why}")
                for missing in step.missing:
                    print(f"    missing: {missing}")
        for name in left_out:
            print(f"{name}: left out")
        if done := sum(not step.runs for step in kept.values()):
            print(f"{done} of {len(kept)} runs are finished and stay as they are")
        sys.stdout.flush()
        return kept, gpus


class _Stopped(KeyboardInterrupt):
    """A signal has come, whose number it holds."""


def _stop(number: int, frame: object) -> None:
    """Handle a signal: the first one ends the wait for Snakemake, later ones are ignored."""
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise _Stopped(number)


def _missing(steps: Mapping[str, Step]) -> list[str]:
    return [name for name, step in steps.items() if step.runs and step.missing]
