"""From tasks to runs: the cross product of the axes, and what stands in braces.

In any text of a task's parameters and needs:

- `{pretrain}` is the run folder of another task's run: of the one that agrees with this run in all axes that
  both have, the seed among them. `{pretrain:variant=cdlm}` says which where that is not enough,
  `{pretrain:variant=*}` means all of them, their folders separated by spaces. This run then waits for those.
- `{data}` is a variable of the grid, `{runs}` its folder of runs, `{variant}` the value of this run's axis.
- `{{name}}` is the text `{name}`; anything else in braces (JSON) stays as it is.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cdlm_lab.batch.grid import Grid, Resources, Task
from cdlm_lab.batch.marked_yaml import Given, GridError
from cdlm_lab.parameters import closest_name

_BRACES = re.compile(r"\{(\{[A-Za-z]\w*(?::[^{}]*)?\})\}|\{([A-Za-z]\w*)(?::([^{}]*))?\}")
_UNSAFE = re.compile(r"[^A-Za-z0-9._]+")
_PROCESSES = re.compile(r"\s*(?:ddp|fsdp) (\d+)")
_LONGEST = 120  # of a name, which is that of a folder
_MOST = 100_000  # runs of a task


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run of one task."""

    name: str  # and that of its folder: "pretrain-cdlm-s0"
    task: Task
    folder: Path
    labels: Mapping[str, str]  # axis -> name of its value
    parameters: Mapping[str, Any]  # that the grid gives, references resolved, without `run_folder`
    needs: Mapping[str, str]  # name -> path or hub:NAME
    after: tuple[str, ...]  # names of the runs it waits for

    @property
    def effective(self) -> dict[str, Any]:
        """All parameters of the notebook but `run_folder`: its defaults, and what is given over them."""
        values = {**self.task.notebook.defaults, **self.parameters}
        values.pop("run_folder", None)
        return values

    @property
    def resources(self) -> Resources:
        """Those of its task; where that asks for a GPU, one for each process that `parallel` starts."""
        asked = self.task.resources
        several = _PROCESSES.match(str(self.effective.get("parallel", "")))
        return replace(asked, gpus=max(asked.gpus, int(several[1]))) if asked.gpus and several else asked


def expand(grid: Grid) -> dict[str, Job]:
    """All runs of a grid by their names, each after those it waits for.

    Raises GridError for too many runs, two of one name, references to nothing or to several, and circles.
    """
    drafts: dict[str, _Draft] = {}
    taken: set[str] = set()  # in small letters, as some file systems have names
    for task in grid.tasks.values():
        if (count := math.prod(map(len, task.axes.values()))) > _MOST:
            raise GridError(f"{task.where}: task {task.name}: {count} runs, at most {_MOST}: shorten an axis")
        for labels in itertools.product(*task.axes.values()):
            draft = _Draft(task, dict(zip(task.axes, labels, strict=True)))
            if draft.name.lower() in taken:
                raise GridError(
                    f"{task.where}: task {task.name}: two runs would be called {draft.name}: rename a task, "
                    "or write the axis as name: {parameter: value}"
                )
            if len(draft.name) > _LONGEST:
                raise GridError(
                    f"{task.where}: task {task.name}: {draft.name[:40]}... is too long for a name: write the "
                    "axis as name: {parameter: value}"
                )
            drafts[draft.name] = draft
            taken.add(draft.name.lower())
    jobs = {name: _resolved(grid, draft) for name, draft in drafts.items()}
    return {name: jobs[name] for name in _in_order(jobs)}


class _Draft:
    """A run whose references are not resolved yet."""

    def __init__(self, task: Task, labels: Mapping[str, str]) -> None:
        self.task, self.labels, self.name = task, labels, _name(task, labels)

    @property
    def given(self) -> dict[str, Given]:
        values = dict(self.task.parameters)
        for axis, label in self.labels.items():
            values |= self.task.axes[axis][label]
        return values


def _name(task: Task, labels: Mapping[str, str]) -> str:
    pieces = [f"s{label}" if axis == "seed" else _slug(label) for axis, label in labels.items()]
    return "-".join([task.name, *pieces])


def _slug(label: str) -> str:
    return _UNSAFE.sub("-", label).strip("-.") or "none"


def _resolved(grid: Grid, draft: _Draft) -> Job:
    after: list[str] = []

    def resolve(value: Any, where: str) -> Any:
        if isinstance(value, list):
            return [resolve(item, where) for item in value]
        if isinstance(value, dict):
            return {key: resolve(item, where) for key, item in value.items()}
        if not isinstance(value, str):
            return value
        return _BRACES.sub(lambda found: replacement(found, where), value)

    def replacement(found: re.Match[str], where: str) -> str:
        escaped, name, choices = found.groups()
        if escaped:
            return escaped
        if choices is None and name in draft.labels:
            return draft.labels[name]
        if choices is None and name in grid.variables:
            return str(grid.variables[name])
        names = _referred(grid, draft, found, where)
        after.extend(names)
        return " ".join(str(grid.runs / name) for name in names)

    parameters = {name: resolve(given.value, given.where) for name, given in draft.given.items()}
    needs = {name: resolve(given.value, given.where) for name, given in draft.task.needs.items()}
    for given in draft.task.after:
        after.extend(_all_of(grid, draft, given))
    return Job(
        name=draft.name,
        task=draft.task,
        folder=grid.runs / draft.name,
        labels=draft.labels,
        parameters=parameters,
        needs=needs,
        after=tuple(dict.fromkeys(after)),
    )


def _all_of(grid: Grid, draft: _Draft, given: Given) -> list[str]:
    """The runs of a task that stands under `after`: all of them."""
    if given.value not in grid.tasks:
        hint = closest_name(given.value, list(grid.tasks))
        raise GridError(f"{given.where}: task {draft.task.name}: no task is called {given.value!r}: {hint}")
    return _names(grid.tasks[given.value], {})


def _names(task: Task, wanted: Mapping[str, str]) -> list[str]:
    """The runs of a task that have these values; of an axis that is not among them, or has a star, all."""
    labels = [
        list(points) if wanted.get(axis, "*") == "*" else [wanted[axis]] for axis, points in task.axes.items()
    ]
    return [_name(task, dict(zip(task.axes, one, strict=True))) for one in itertools.product(*labels)]


def _referred(grid: Grid, draft: _Draft, found: re.Match[str], where: str) -> list[str]:
    """The runs that a reference in braces means, one unless it has a star."""
    _, name, choices = found.groups()
    place = f"{where}: task {draft.task.name}: {found[0]}"
    if name not in grid.tasks:
        known = [*grid.tasks, *grid.variables, *draft.labels]
        raise GridError(
            f"{place}: no task, variable or axis is called {name!r}: {closest_name(name, known)}; "
            f"write {{{found[0]}}} for the text itself"
        )
    task = grid.tasks[name]
    asked = dict(_choices(choices or "", task, place))
    wanted = {axis: draft.labels[axis] for axis in task.axes if axis in draft.labels} | asked
    for axis, label in wanted.items():
        if label != "*" and label not in task.axes[axis]:
            known = ", ".join(task.axes[axis])
            raise GridError(f"{place}: no run of {task.name} has {axis} {label}: there are {known}")
    names = _names(task, wanted)
    if len(names) > 1 and "*" not in asked.values():
        axis = next(axis for axis in task.axes if axis not in wanted)
        example = f"{{{task.name}:{axis}={next(iter(task.axes[axis]))}}}"
        raise GridError(
            f"{place}: which of {', '.join(names[:4])}? Say it, for example {example}, or * for all"
        )
    return names


def _choices(text: str, task: Task, place: str) -> Iterator[tuple[str, str]]:
    """(axis, label) of "variant=cdlm,seed=0"."""
    for piece in filter(None, (piece.strip() for piece in text.split(","))):
        axis, mark, label = (part.strip() for part in piece.partition("="))
        if not mark:
            raise GridError(f"{place}: {piece!r} must look like axis=value")
        if axis not in task.axes:
            hint = closest_name(axis, list(task.axes)) if task.axes else "it has none"
            raise GridError(f"{place}: task {task.name} has no axis {axis!r}: {hint}")
        yield axis, label


def _in_order(jobs: Mapping[str, Job]) -> list[str]:
    """Names of the runs, each after those it waits for, else in the order of the file."""
    order: dict[str, None] = {}
    for name in jobs:
        path = {name: iter(jobs[name].after)}  # each waits for the next; what else it waits for
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
