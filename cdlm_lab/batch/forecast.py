"""How long runs will take, from those that were made already, and how long all of them together."""

from __future__ import annotations

import heapq
import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from cdlm_lab.batch.plan import Step


@dataclass(frozen=True, kw_only=True)
class Remaining:
    """Work that is left of one run: seconds, cores and GPUs that it takes, runs that it waits for."""

    seconds: float
    cores: int
    after: tuple[str, ...]
    gpus: int = 0


def expected_seconds(steps: Mapping[str, Step], measured: Mapping[str, float]) -> dict[str, float]:
    """How long each run will take.

    The median of the runs of its task that are finished; else of the runs of its notebook; else the minutes
    that the grid allows.

    Args:
        steps: of the plan; those that are finished count.
        measured: name -> seconds of runs that were finished since.
    """
    known: dict[str, list[float]] = {}
    for name, step in steps.items():
        seconds = measured.get(name, step.seconds)
        if seconds is not None:
            for key in (f"task {step.job.task.name}", str(step.job.task.notebook.path)):
                known.setdefault(key, []).append(seconds)
    found = {}
    for name, step in steps.items():
        task = step.job.task
        times = known.get(f"task {task.name}") or known.get(str(task.notebook.path))
        found[name] = statistics.median(times) if times else 60 * task.resources.minutes
    return found


def seconds_left(
    todo: Mapping[str, Remaining], *, cores: float, at_once: float, gpus: float = math.inf
) -> float:
    """When the last of some runs will be finished, in seconds, if each starts as soon as it can.

    Args:
        todo: name -> what is left, in an order in which they could be made; what they wait for and is not
            among them is finished.
        cores: of the machine, or infinity; a run that asks for more gets all.
        at_once: so many runs at most, or infinity.
        gpus: as cores. Runs that need one where there is none will not be made; their time is told as if one
            were made after the other.
    """
    ended: dict[str, float] = {}
    running: list[tuple[float, str, float, float]] = []
    waiting, now, free, free_gpus = dict(todo), 0.0, cores, max(gpus, 1)
    while waiting or running:
        for name, run in list(waiting.items()):
            taken, devices = min(run.cores, cores), min(run.gpus, max(gpus, 1))
            ready = all(other in ended for other in run.after if other in todo)
            if ready and taken <= free and devices <= free_gpus and len(running) < at_once:
                heapq.heappush(running, (now + run.seconds, name, taken, devices))
                free, free_gpus = free - taken, free_gpus - devices
                del waiting[name]
        if not running:  # what is left waits for something that will not come
            return now
        now, name, taken, devices = heapq.heappop(running)
        ended[name] = now
        free, free_gpus = free + taken, free_gpus + devices
    return now
