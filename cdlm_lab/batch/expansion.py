"""Expansion of tasks to runs: the Cartesian product of the axes, and references in braces.

In any text of a task's parameters and needs:

- `{pretrain}` is the run folder of another task's run: of the one with the same values as this run on all
  axes that both have, including the seed. `{pretrain:variant=cdlm}` selects one if there are several,
  `{pretrain:variant=*}` stands for all, as a list. This run then waits for them.
- `{data}` is a variable of the grid, `{runs}` its folder of runs, `{variant}` the value of this run's axis.
- `{{name}}` is the text `{name}`; anything else in braces (JSON) is kept unchanged.
"""

from __future__ import annotations

import itertools
import math
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from cdlm_lab.batch.grid import RUN_FOLDER, Grid, Resources, Task
from cdlm_lab.parameters import EVALUATED_WITH, LISTS, ParameterError, as_one_text, closest_name

_BRACES = re.compile(r"\{(\{[A-Za-z]\w*(?::[^{}]*)?\})\}|\{([A-Za-z]\w*)(?::([^{}]*))?\}")
_CHOICE = re.compile(r"\s*([^,=]+?)\s*=\s*([^,]*?)\s*(?:,|$)")
_UNSAFE = re.compile(r"[^A-Za-z0-9._]+")
_PROCESSES = re.compile(r"\s*ddp (\d+)")
_LONGEST = 120  # characters of a run's name, which is also that of its folder
_MOST = 100_000  # most runs of a task


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run of one task."""

    name: str  # name of the run and of its folder, such as "pretrain-cdlm-s0"
    task: Task
    folder: Path
    labels: Mapping[str, str]  # axis -> name of its value
    parameters: Mapping[str, Any]  # parameters set by the grid, references resolved, without `run_folder`
    needs: Mapping[str, str]  # name -> path or hub:NAME
    after: tuple[str, ...]  # names of the runs that it waits for
    beside: frozenset[str]  # those of them that it is only compared with

    @property
    def effective(self) -> dict[str, Any]:
        """All parameters of the notebook except `run_folder`: its defaults, overridden by the grid's."""
        values = {**self.task.notebook.defaults, **self.parameters}
        return {name: as_one_text(name, value) for name, value in values.items() if name != RUN_FOLDER}

    @cached_property
    def resources(self) -> Resources:
        """Resources of its task; if that asks for GPUs, at least one per process that `parallel` starts."""
        of_task = self.task.resources
        several = _PROCESSES.match(str(self.effective.get("parallel", "")))
        if not of_task.gpus or not several:
            return of_task
        return of_task.model_copy(update={"gpus": max(of_task.gpus, int(several[1]))})


def expand(grid: Grid) -> dict[str, Job]:
    """Return all runs of a grid by name, each after those that it waits for. Raises GridError for too many
    runs, two of the same name, unknown or ambiguous references, and circular dependencies."""
    runs: dict[str, tuple[Task, Mapping[str, str]]] = {}
    taken: set[str] = set()  # names in lower case, as some file systems ignore case
    for task in grid.tasks.values():
        shorter = "write the axis as name: {parameter: value}"
        if (count := math.prod(map(len, task.axes.values()))) > _MOST:
            raise task.fault(f"{count} runs, at most {_MOST}: shorten an axis")
        for values in itertools.product(*task.axes.values()):
            labels = dict(zip(task.axes, values, strict=True))
            name = _name(task, labels)
            if name.lower() in taken:
                raise task.fault(f"two runs would be called {name}: rename a task, or {shorter}")
            if len(name) > _LONGEST:
                raise task.fault(f"{name[:40]}... is too long for a name: {shorter}")
            runs[name] = task, labels
            taken.add(name.lower())
    jobs = {name: _resolved(grid, name, task, labels) for name, (task, labels) in runs.items()}
    try:
        order = [*TopologicalSorter({name: job.after for name, job in jobs.items()}).static_order()]
    except CycleError as error:
        circle = error.args[1][::-1]
        words = f"runs wait for each other: {' -> '.join(circle)}"
        raise jobs[circle[0]].task.fault(words) from None
    return {name: jobs[name] for name in order}


def _name(task: Task, labels: Mapping[str, str]) -> str:
    pieces = [
        f"s{label}" if axis == "seed" else _UNSAFE.sub("-", label).strip("-.") or "none"
        for axis, label in labels.items()
    ]
    return "-".join([task.name, *pieces])


def _resolved(grid: Grid, name: str, task: Task, labels: Mapping[str, str]) -> Job:
    after: list[str] = []

    def put(match: re.Match[str]) -> str | list[str]:
        """What stands for a reference: a text, or the folders of the runs that it names."""
        escaped, called, choices = match.groups()
        if escaped:
            return escaped
        if choices is None and called in labels:
            return labels[called]
        if choices is None and called in grid.variables:
            return str(grid.variables[called])
        names = _referred(grid, labels, match)
        after.extend(names)
        return [str(grid.runs / name) for name in names]

    def resolve(value: Any, *, listed: bool = False) -> Any:
        if isinstance(value, list):
            return [resolve(item) for item in value]
        if isinstance(value, dict):
            return {key: resolve(item) for key, item in value.items()}
        if not isinstance(value, str):
            return value
        return _BRACES.sub(lambda match: _text(put(match), listed=listed), value)

    def plain(given: Mapping[str, Any], *, kind: str = "") -> dict[str, Any]:
        """The values with references resolved, lists as one text, and paths of this machine; `kind`: the
        parameter whose rules hold, "" = that of the same name."""
        values = {}
        for one, value in given.items():
            try:
                values[one] = as_one_text(kind or one, resolve(value, listed=one in LISTS))
            except ParameterError as error:
                raise task.fault(str(error).replace(f"{kind} is", f"{one} is", 1), one) from None
        return values

    given = dict(task.parameters)
    for axis, label in labels.items():
        given |= task.axes[axis][label]
    compared = {name: given.pop(name) for name in EVALUATED_WITH if name in given}
    parameters, needs = plain(given), plain(task.needs, kind="corpus")
    after.extend(_named_after(grid, task))
    read = set(after)
    parameters |= plain(compared)
    form = {"name": name, "task": task, "folder": grid.runs / name, "labels": labels, "needs": needs}
    beside = frozenset(after) - read
    return Job(**form, parameters=parameters, after=tuple(dict.fromkeys(after)), beside=beside)


def _named_after(grid: Grid, task: Task) -> Iterator[str]:
    """The runs of the tasks that `after` names."""
    for other in task.after:
        if other not in grid.tasks:
            raise task.fault(f"no task is called {other!r}: {closest_name(other, list(grid.tasks))}", "after")
        yield from _names(grid.tasks[other], {})


def _text(value: str | list[str], *, listed: bool) -> str:
    """The text of a reference. Several folders, or those in a list of names, are quoted as in a shell."""
    if isinstance(value, str):
        return value
    return shlex.join(value) if listed or len(value) > 1 else value[0]


def _names(task: Task, wanted: Mapping[str, str]) -> list[str]:
    """Return the runs of a task with these values of axes; axes not given, or given as `*`, match all."""
    labels = [
        list(points) if wanted.get(axis, "*") == "*" else [wanted[axis]] for axis, points in task.axes.items()
    ]
    return [_name(task, dict(zip(task.axes, one, strict=True))) for one in itertools.product(*labels)]


def _referred(grid: Grid, labels: Mapping[str, str], match: re.Match[str]) -> list[str]:
    """Return the runs that a reference in braces stands for: a single one unless it has a `*`. Raises
    ParameterError if it stands for none."""
    whole, name, choices = match[0], match[2], match[3]
    if name not in grid.tasks:
        hint = closest_name(name, [*grid.tasks, *grid.variables, *labels])
        raise ParameterError(
            f"{whole}: no task, variable or axis is called {name!r}: {hint}; write {{{whole}}} for the text"
        )
    task, wanted = grid.tasks[name], {}
    chosen = dict(_CHOICE.findall(choices or ""))
    if choices and not chosen:
        raise ParameterError(f"{whole}: {choices!r} must look like axis=value")
    for axis, label in {**labels, **chosen}.items():
        if axis not in task.axes and axis in chosen:
            hint = closest_name(axis, list(task.axes)) if task.axes else "it has none"
            raise ParameterError(f"{whole}: task {task.name} has no axis {axis!r}: {hint}")
        if axis in task.axes and label not in ("*", *task.axes[axis]):
            known = ", ".join(task.axes[axis])
            raise ParameterError(f"{whole}: no run of {task.name} has {axis} {label}: there are {known}")
        wanted[axis] = label
    names = _names(task, wanted)
    if len(names) > 1 and "*" not in chosen.values():
        axis = next(axis for axis in task.axes if axis not in wanted)
        example = f"{{{task.name}:{axis}={next(iter(task.axes[axis]))}}}"
        which = ", ".join(names[:4])
        raise ParameterError(f"{whole}: which of {which}? Say it, for example {example}, or * for all")
    return names
