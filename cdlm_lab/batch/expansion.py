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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from cdlm_lab.batch.grid import Grid, Resources, Task
from cdlm_lab.batch.marked_yaml import Given, GridError
from cdlm_lab.parameters import EVALUATED_WITH, LISTS, ParameterError, as_one_text, closest_name

_BRACES = re.compile(r"\{(\{[A-Za-z]\w*(?::[^{}]*)?\})\}|\{([A-Za-z]\w*)(?::([^{}]*))?\}")
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
        values.pop("run_folder", None)
        return values

    @cached_property
    def resources(self) -> Resources:
        """Resources of its task; if that asks for GPUs, at least one per process that `parallel` starts."""
        of_task = self.task.resources
        several = _PROCESSES.match(str(self.effective.get("parallel", "")))
        if not of_task.gpus or not several:
            return of_task
        return replace(of_task, gpus=max(of_task.gpus, int(several[1])))


def expand(grid: Grid) -> dict[str, Job]:
    """Return all runs of a grid by name, each after those that it waits for. Raises GridError for too many
    runs, two of the same name, unknown or ambiguous references, and circular dependencies."""
    runs: dict[str, tuple[Task, Mapping[str, str]]] = {}
    taken: set[str] = set()  # names in lower case, as some file systems ignore case
    for task in grid.tasks.values():
        place, shorter = f"{task.where}: task {task.name}", "write the axis as name: {parameter: value}"
        if (count := math.prod(map(len, task.axes.values()))) > _MOST:
            raise GridError(f"{place}: {count} runs, at most {_MOST}: shorten an axis")
        for values in itertools.product(*task.axes.values()):
            labels = dict(zip(task.axes, values, strict=True))
            name = _name(task, labels)
            if name.lower() in taken:
                raise GridError(f"{place}: two runs would be called {name}: rename a task, or {shorter}")
            if len(name) > _LONGEST:
                raise GridError(f"{place}: {name[:40]}... is too long for a name: {shorter}")
            runs[name] = task, labels
            taken.add(name.lower())
    jobs = {name: _resolved(grid, name, task, labels) for name, (task, labels) in runs.items()}
    return {name: jobs[name] for name in _in_order(jobs)}


def _name(task: Task, labels: Mapping[str, str]) -> str:
    pieces = [
        f"s{label}" if axis == "seed" else _UNSAFE.sub("-", label).strip("-.") or "none"
        for axis, label in labels.items()
    ]
    return "-".join([task.name, *pieces])


def _resolved(grid: Grid, name: str, task: Task, labels: Mapping[str, str]) -> Job:
    after: list[str] = []

    def resolve(value: Any, where: str, *, listed: bool) -> Any:
        if isinstance(value, list):
            return [resolve(item, where, listed=False) for item in value]
        if isinstance(value, dict):
            return {key: resolve(item, where, listed=False) for key, item in value.items()}
        if isinstance(value, str):
            return _BRACES.sub(lambda match: put(match, where, listed=listed), value)
        return value

    def put(match: re.Match[str], where: str, *, listed: bool) -> str:
        escaped, called, choices = match.groups()
        if escaped:
            return escaped
        if choices is None and called in labels:
            return labels[called]
        if choices is None and called in grid.variables:
            return str(grid.variables[called])
        names = _referred(grid, labels, match, f"{where}: task {task.name}: {match[0]}")
        after.extend(names)
        folders = [str(grid.runs / name) for name in names]
        return shlex.join(folders) if listed or len(folders) > 1 else folders[0]

    given = dict(task.parameters)
    for axis, label in labels.items():
        given |= task.axes[axis][label]
    compared = {name: given.pop(name) for name in EVALUATED_WITH if name in given}
    parameters = _plain(task, given, resolve)
    needs = _plain(task, task.needs, resolve, kind="corpus")
    for item in task.after:
        if item.value not in grid.tasks:
            hint = closest_name(item.value, list(grid.tasks))
            raise GridError(f"{item.where}: task {task.name}: no task is called {item.value!r}: {hint}")
        after.extend(_names(grid.tasks[item.value], {}))
    read = set(after)
    parameters |= _plain(task, compared, resolve)
    return Job(
        name=name,
        task=task,
        folder=grid.runs / name,
        labels=labels,
        parameters=parameters,
        needs=needs,
        after=tuple(dict.fromkeys(after)),
        beside=frozenset(after) - read,
    )


def _plain(
    task: Task, given: Mapping[str, Given], resolve: Callable[..., Any], *, kind: str = ""
) -> dict[str, Any]:
    """The values with references resolved, lists as one text, and paths of this machine; `kind`: the
    parameter whose rules hold, "" = that of the same name. Raises GridError as these do."""
    values = {}
    for name, item in given.items():
        value, rules = resolve(item.value, item.where, listed=name in LISTS), kind or name
        try:
            values[name] = as_one_text(rules, value)
        except ParameterError as error:
            what = str(error).replace(f"{rules} is", f"{name} is", 1)
            raise GridError(f"{item.where}: task {task.name}: {what}") from None
    return values


def _names(task: Task, wanted: Mapping[str, str]) -> list[str]:
    """Return the runs of a task with these values of axes; axes not given, or given as `*`, match all."""
    labels = [
        list(points) if wanted.get(axis, "*") == "*" else [wanted[axis]] for axis, points in task.axes.items()
    ]
    return [_name(task, dict(zip(task.axes, one, strict=True))) for one in itertools.product(*labels)]


def _referred(grid: Grid, labels: Mapping[str, str], match: re.Match[str], place: str) -> list[str]:
    """Return the runs that a reference in braces stands for: a single one unless it has a `*`."""
    _, name, choices = match.groups()
    if name not in grid.tasks:
        hint = closest_name(name, [*grid.tasks, *grid.variables, *labels])
        raise GridError(
            f"{place}: no task, variable or axis is called {name!r}: {hint}; write {{{match[0]}}} for the "
            "text itself"
        )
    task = grid.tasks[name]
    chosen = dict(_choices(choices or "", task, place))
    wanted = {axis: labels[axis] for axis in task.axes if axis in labels} | chosen
    for axis, label in wanted.items():
        if label != "*" and label not in task.axes[axis]:
            known = ", ".join(task.axes[axis])
            raise GridError(f"{place}: no run of {task.name} has {axis} {label}: there are {known}")
    names = _names(task, wanted)
    if len(names) > 1 and "*" not in chosen.values():
        axis = next(axis for axis in task.axes if axis not in wanted)
        example = f"{{{task.name}:{axis}={next(iter(task.axes[axis]))}}}"
        which = ", ".join(names[:4])
        raise GridError(f"{place}: which of {which}? Say it, for example {example}, or * for all")
    return names


def _choices(text: str, task: Task, place: str) -> Iterator[tuple[str, str]]:
    """Yield the (axis, label) pairs of a text such as "variant=cdlm,seed=0"."""
    for piece in filter(None, (piece.strip() for piece in text.split(","))):
        axis, mark, label = (part.strip() for part in piece.partition("="))
        if not mark:
            raise GridError(f"{place}: {piece!r} must look like axis=value")
        if axis not in task.axes:
            hint = closest_name(axis, list(task.axes)) if task.axes else "it has none"
            raise GridError(f"{place}: task {task.name} has no axis {axis!r}: {hint}")
        yield axis, label


def _in_order(jobs: Mapping[str, Job]) -> list[str]:
    """Sort the runs topologically: each after those it waits for, otherwise in the order of the file."""
    order: dict[str, None] = {}
    for name in jobs:
        path = {name: iter(jobs[name].after)}  # each waits for the next; its other dependencies
        while path:
            last = next(reversed(path))
            other = next((other for other in path[last] if other not in order), None)
            if other is None:
                order[last] = None
                del path[last]
            elif other in path:
                names = [*path, other]
                circle = " -> ".join(names[names.index(other) :])
                raise GridError(f"{jobs[other].task.where}: runs wait for each other: {circle}")
            else:
                path[other] = iter(jobs[other].after)
    return list(order)
