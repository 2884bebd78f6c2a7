"""`grid.yaml`: which notebooks run with which parameters, how often, on what, and after which others.

    runs: runs/small                     # the folder of all run folders
    seeds: [0, 1]                        # every task whose notebook has the parameter `seed` runs with each
    variables: {data: data}              # names for texts; `cdlm-lab run --set data=FOLDER` says otherwise
    defaults: {minutes: 10}              # of `resources`
    tasks:
      pretrain:
        notebook: 01_pretraining         # of notebooks/, or a path
        files: [notebooks/parameters/cdlm_paper.yaml]
        parameters: {corpus: "{data}/multi_news", steps: 60}
        axes: {variant: [cdlm, longformer]}
        resources: {gpus: 1, cores: 4, memory_gb: 16, minutes: 120, retries: 1}
        needs: {corpus: "{data}/multi_news", model: "hub:allenai/longformer-base-4096"}
      perplexity:
        notebook: 02_cross_document_perplexity
        parameters: {cdlm: "{pretrain:variant=cdlm}/model"}
      results: {notebook: 12_results, seeds: false, after: [perplexity]}

An axis is a list of values for the parameter of its name, or a mapping of names to parameters
(`data: {wikiqa: {corpus: ...}, trecqa: {corpus: ...}}`). Relative paths start where the command is called, as
with papermill. What stands in braces is explained in `expansion`.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdlm_lab.batch.marked_yaml import Given, GridError, Section, read_section, read_yaml
from cdlm_lab.batch.notebook import Notebook, check_given, find_notebook, read_notebook
from cdlm_lab.parameters import ParameterError, check_least, check_types, closest_name

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_TOP = ("runs", "seeds", "variables", "defaults", "tasks")
_TASK = ("notebook", "files", "parameters", "axes", "seeds", "resources", "needs", "after")
_SCALAR = bool | int | float | str | None


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What one run of a task asks for.

    Attributes:
        gpus: devices it has to itself; where its `parallel` starts more processes, one for each of these.
        cores: and as many threads.
        memory_gb: at most, in 10^9 bytes.
        minutes: at most; on a cluster it is ended then, on this machine it only serves the forecast.
        retries: how often it is tried again after it failed.
    """

    gpus: int = 0
    cores: int = 1
    memory_gb: float = 4.0
    minutes: float = 30.0
    retries: int = 0

    def __post_init__(self) -> None:
        check_types(self)
        check_least(self, 0, "gpus", "retries")
        check_least(self, 1, "cores")
        for name in ("memory_gb", "minutes"):
            value = getattr(self, name)
            if not (0 < value < math.inf):
                raise ParameterError(f"{name} is {value}; it must be more than 0")


# Of an axis: the names of its values, and the parameters that each sets.
Points = Mapping[str, Mapping[str, Given]]


@dataclass(frozen=True, kw_only=True)
class Task:
    """One notebook and how it runs; `where` is the line of its name. Values may hold references in braces."""

    name: str
    where: str
    notebook: Notebook
    parameters: Mapping[str, Given]
    axes: Mapping[str, Points]
    resources: Resources
    needs: Mapping[str, Given]
    after: tuple[Given, ...]


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A grid as it was written, checked.

    Attributes:
        path: of the file.
        runs: the folder of all run folders.
        variables: name -> value.
        tasks: name -> task, in the order of the file.
    """

    path: Path
    runs: Path
    variables: Mapping[str, Any]
    tasks: Mapping[str, Task]


def read_grid(path: str | os.PathLike[str], *, variables: Mapping[str, str] | None = None) -> Grid:
    """Read and check a grid.

    Args:
        path: of the YAML file.
        variables: name -> value as YAML writes it, in place of the file's.

    Raises:
        GridError: whatever is wrong in the file, a file of parameters or a notebook; with file and line.
    """
    top = read_section(path, name="the grid")
    top.allow(_TOP)
    tasks = top.section("tasks") if "tasks" in top else None
    if tasks is None or not list(tasks):
        raise GridError(f"{top.where()}: the grid has no tasks")
    runs = top.take("runs", str)
    if not runs.strip():
        raise top.fault("runs", "runs is empty; it must be the folder of all run folders")
    if not runs.isprintable() or set(runs) & set("{}"):
        what = "it is taken as it stands, so no braces and no line breaks: write the folder out"
        raise top.fault("runs", f"runs is {runs!r}; {what}")
    values, found = _variables(top, variables or {}, runs), {}
    for name in tasks:
        if not _NAME.fullmatch(name):
            raise tasks.fault(name, f"{name!r} is no name of a task: a letter, then letters, digits and _")
        found[name] = _task(tasks.section(name, name=f"task {name}"), name, top, values)
    grid = Grid(path=Path(path), runs=Path(runs), variables=values, tasks=found)
    if clash := sorted(set(grid.variables) & set(found)):
        raise tasks.fault(clash[0], f"{clash[0]!r} is the name of a variable too: rename one of them")
    return grid


def _variables(top: Section, told: Mapping[str, str], runs: str) -> dict[str, Any]:
    """The variables of the file with those of the command line in their place, and `runs`."""
    section = top.section("variables") if "variables" in top else ()
    values = {name: top.section("variables").given(name).value for name in section}
    for name, value in values.items():
        if name == "runs" or not _NAME.fullmatch(name) or not isinstance(value, _SCALAR):
            what = f"{name!r} = {value!r} is no variable: a name and a text"
            raise top.section("variables").fault(name, what)
    for name, text in told.items():
        if name not in values:
            hint = closest_name(name, values) if values else "it has none"
            raise GridError(f"--set {name}={text}: {top.file} has no such variable: {hint}")
        # What is text in the file stays text: a folder may be called 2024.
        values[name] = text if isinstance(values[name], str) else _told_value(name, text)
    return {"runs": runs, **values}


def _told_value(name: str, text: str) -> Any:
    value = read_yaml(text, where=f"--set {name}={text}")
    if not isinstance(value, _SCALAR):
        raise GridError(
            f"--set {name}={text}: {value!r} is no single value: write it in quotes if it is text"
        )
    return value


def _task(section: Section, name: str, top: Section, variables: Mapping[str, Any]) -> Task:
    section.allow(_TASK)
    written = section.take("notebook", str)
    notebook = read_notebook(find_notebook(written, where=f"{section.where('notebook')}: task {name}"))
    parameters = _from_files(section, notebook, variables)
    if "parameters" in section:
        parameters |= _checked(notebook, section.section("parameters").all(), variables)
    axes = {
        axis: _points(section.section("axes"), axis, notebook, variables) for axis in _keys(section, "axes")
    }
    if (seeds := _seeds(section, top, notebook)) is not None:
        axes["seed"] = seeds
    _refuse_set_twice(section, axes)
    needs = section.section("needs").all() if "needs" in section else {}
    for need, given in needs.items():
        if not isinstance(given.value, str) or not given.value:
            raise section.section("needs").fault(need, f"{given.value!r}; it must be a path or hub:NAME")
    return Task(
        name=name,
        where=section.where(),
        notebook=notebook,
        parameters=parameters,
        axes=axes,
        resources=_resources(section, top),
        needs=needs,
        after=_texts(section, "after"),
    )


def _keys(section: Section, key: str) -> list[str]:
    return list(section.section(key)) if key in section else []


def _texts(section: Section, key: str) -> tuple[Given, ...]:
    """A list of texts, each with the place of the list."""
    items = section.take(key, list, [])
    for item in items:
        if not isinstance(item, str):
            raise section.fault(key, f"{key} holds {item!r}; it must be a list of texts")
    return tuple(Given(value=item, where=section.where(key)) for item in items)


def _checked(
    notebook: Notebook, given: Mapping[str, Given], variables: Mapping[str, Any]
) -> dict[str, Given]:
    """Parameters that the notebook takes; a text that is nothing but a variable has the variable's value."""
    known = {f"{{{name}}}": value for name, value in variables.items()}
    found = {
        name: Given(value=known[item.value], where=item.where)
        if isinstance(item.value, str) and item.value in known
        else item
        for name, item in given.items()
    }
    check_given(notebook, found)
    return found


def _from_files(section: Section, notebook: Notebook, variables: Mapping[str, Any]) -> dict[str, Given]:
    """Parameters of files, later ones over earlier ones."""
    found: dict[str, Given] = {}
    for file in _texts(section, "files"):
        if not Path(file.value).is_file():
            raise GridError(f"{file.where}: {section.name}: there is no file {file.value}")
        found |= _checked(notebook, read_section(file.value, name="parameters").all(), variables)
    return found


def _points(axes: Section, axis: str, notebook: Notebook, variables: Mapping[str, Any]) -> Points:
    """The values of an axis; a list gives values of the parameter of its name."""
    if not _NAME.fullmatch(axis):
        raise axes.fault(axis, f"{axis!r} is no name of an axis: a letter, then letters, digits and _")
    if axes.is_mapping(axis):
        points = axes.section(axis)
        given = {label: points.section(label).all() for label in points}
    else:
        values = axes.take(axis, list)
        for value in values:
            if not isinstance(value, _SCALAR):
                raise axes.fault(axis, f"{axis} holds {value!r}; write name: {{parameter: value}} for it")
        place = axes.where(axis)
        given = {str(value): {axis: Given(value=value, where=place)} for value in values}
        if len(given) < len(values):
            raise axes.fault(axis, f"{axis} is {values!r}; one of them stands there twice")
    if not given:
        raise axes.fault(axis, f"{axis} has no values")
    return {label: _checked(notebook, parameters, variables) for label, parameters in given.items()}


def _seeds(section: Section, top: Section, notebook: Notebook) -> Points | None:
    """The axis of seeds: the task's own, else the grid's if the notebook has the parameter."""
    own = "seeds" in section
    holder = section if own else top
    if "seeds" not in holder or (own and section.given("seeds").value is False):
        return None
    values = holder.take("seeds", list)
    if not values or any(isinstance(value, bool) or not isinstance(value, int) for value in values):
        raise holder.fault("seeds", f"seeds is {values!r}; it must be a list of whole numbers, or false")
    if len(set(values)) < len(values):
        raise holder.fault("seeds", f"seeds is {values!r}; one of them stands there twice")
    if "seed" not in notebook.defaults:
        if own:
            raise section.fault("seeds", f"{notebook.path.name} has no parameter 'seed'")
        return None
    place = holder.where("seeds")
    return {str(value): {"seed": Given(value=value, where=place)} for value in values}


def _refuse_set_twice(section: Section, axes: Mapping[str, Points]) -> None:
    """One parameter, one place that says what it is; only files may be overruled."""
    by: dict[str, str] = dict.fromkeys(_keys(section, "parameters"), "parameters")
    for axis, points in axes.items():
        for name in sorted({name for parameters in points.values() for name in parameters}):
            if name in by:
                what = f"{name} is set by {by[name]} and by the axis {axis}: leave one out"
                raise section.fault(None, what)
            by[name] = f"the axis {axis}"


def _resources(section: Section, top: Section) -> Resources:
    """Those of the task over the grid's defaults over those of `Resources`."""
    names = [field.name for field in dataclasses.fields(Resources)]
    values: dict[str, Any] = {}
    for holder, key in ((top, "defaults"), (section, "resources")):
        if key not in holder:
            continue
        part = holder.section(key)
        part.allow(names)
        for name, given in part.all().items():
            try:
                Resources(**{name: given.value})
            except ParameterError as error:
                raise part.fault(name, str(error)) from None
            values[name] = given.value
    return Resources(**values)
