"""`grid.yaml`: which notebooks run with which parameters and seeds, on what resources, and in which order.

    runs: runs/small                     # the folder of all run folders
    seeds: [0, 1]                        # every task whose notebook has the parameter `seed` runs with each
    variables: {data: data}              # names of values; `cdlm-lab run --set data=FOLDER` overrides one
    defaults: {minutes: 10}              # defaults of `resources`
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
      read: {apply: {model: "{coreference}", texts: "{data}/reports.jsonl"}}
      results: {notebook: 12_results, seeds: false, after: [perplexity]}

An axis is a list of values for the parameter of the same name, or a mapping of names to parameters
(`data: {wikiqa: {corpus: ...}, trecqa: {corpus: ...}}`). `apply` in place of a notebook applies a model to
each line of a file, as the command `apply` does, and writes `answers.jsonl`; it may name a `system`. Relative
paths are relative to the working directory, as with papermill. References in braces are explained in
expansion.py.

A grid reads a notebook's parameters with their defaults, and its code to detect changes. Both are read from
the file; nothing is executed. The parameters are those of the only code cell tagged `parameters`, which must
contain only literals: papermill would run a notebook without such a cell with its defaults and exit code 0.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from cdlm_lab.batch.marked_yaml import Given, GridError, Section, read_section, read_yaml
from cdlm_lab.parameters import ParameterError, check_like, closest_name, local_path, settings

RUN_FOLDER = "run_folder"  # the parameter of every notebook that names the folder of the results


@dataclass(frozen=True, kw_only=True)
class Notebook:
    """A notebook on disk: its parameters with their defaults, and its other code cells."""

    path: Path
    defaults: Mapping[str, Any]
    sources: tuple[str, ...]

    @property
    def code(self) -> str:
        """SHA-256 of the code cells without the parameters; ignores outputs, metadata and Markdown."""
        return hashlib.sha256(json.dumps(list(self.sources)).encode()).hexdigest()


def find_notebook(name: str, *, where: str) -> Path:
    """Return the file of a notebook: `name` is a path that ends in .ipynb, or a name in `notebooks/` of the
    working directory or of the checkout. Raises GridError, whose message begins with `where`, without one."""
    checkout = Path(__file__).resolve().parents[2]
    places = [folder / "notebooks" / f"{name}.ipynb" for folder in (Path(), checkout)]
    places = [Path(name)] if name.endswith(".ipynb") else places
    for place in places:
        if place.is_file():
            return place
    known = sorted({path.stem for place in places for path in place.parent.glob("*.ipynb")})
    hint = closest_name(Path(name).stem, known) if known else "give the path of a file that ends in .ipynb"
    raise GridError(f"{where}: there is no notebook {name}: {hint}")


def read_notebook(path: Path) -> Notebook:
    """Read parameters and code of a notebook. Raises GridError if a grid cannot run it."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        codes = [cell for cell in cells if cell["cell_type"] == "code"]
        sources = ["".join(cell["source"]) for cell in codes]
    except OSError as error:
        raise GridError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, LookupError, TypeError):
        what = "this is no notebook of format 4: open it in JupyterLab and save it"
        raise GridError(f"{path}: {what}") from None
    tagged = [n for n, cell in enumerate(codes) if "parameters" in cell.get("metadata", {}).get("tags", ())]
    if len(tagged) != 1:
        raise GridError(f"{path}: {len(tagged)} code cells are tagged 'parameters'; there must be one")
    try:
        statements = ast.parse(sources.pop(tagged[0])).body
        defaults = {line.targets[0].id: ast.literal_eval(line.value) for line in statements}
    except SyntaxError as error:
        raise GridError(f"{path}: cell 'parameters', line {error.lineno}: not Python ({error.msg})") from None
    except (AttributeError, ValueError):
        what = "the cell 'parameters' must hold nothing but lines like `steps = 400`"
        raise GridError(f"{path}: {what}") from None
    if RUN_FOLDER not in defaults:
        raise GridError(f"{path}: has no parameter {RUN_FOLDER!r}, which says where its results go")
    return Notebook(path=path, defaults=defaults, sources=tuple(sources))


def check_given(notebook: Notebook, given: Mapping[str, Given]) -> None:
    """Raise GridError for parameters that the notebook does not have, values of another type than the
    default, and `run_folder`, which the grid sets itself."""
    for name, item in given.items():
        if name == RUN_FOLDER:
            raise GridError(f"{item.where}: the grid chooses {RUN_FOLDER}: leave it out")
        if name not in notebook.defaults:
            hint = closest_name(name, [known for known in notebook.defaults if known != RUN_FOLDER])
            raise GridError(f"{item.where}: {notebook.path.name} has no parameter {name!r}: {hint}")
        try:
            check_like(name, item.value, notebook.defaults[name])
        except ParameterError as error:
            what = str(error).replace("papermill -y reads", "YAML reads")
            raise GridError(f"{item.where}: {notebook.path.name}: {what}") from None


_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_TOP = ("runs", "seeds", "variables", "defaults", "tasks")
_TASK = ("notebook", "apply", "files", "parameters", "axes", "seeds", "resources", "needs", "after")
_REFERENCE = re.compile(r"\{([A-Za-z]\w*)")
_SCALAR = bool | int | float | str | None


@settings
class Resources:
    """Resources that one run of a task requests."""

    gpus: int = Field(default=0, ge=0)  # exclusive GPUs; if `parallel` starts more processes, one for each
    cores: int = Field(default=1, ge=1)  # CPU cores, and as many threads
    memory_gb: float = Field(default=4.0, gt=0)  # most memory, in 10^9 bytes
    minutes: float = Field(default=30.0, gt=0)  # limit on a cluster; here only used for time estimates
    retries: int = Field(default=0, ge=0)  # how often a failed run is repeated


# The values of an axis: name of a value -> the parameters that it sets.
Points = Mapping[str, Mapping[str, Given]]


@dataclass(frozen=True, kw_only=True)
class Task:
    """One notebook and how it runs; `where`: the `file:line` of its name. Values may have references."""

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
    """A grid as written in its file, and checked; tasks are in the order of the file."""

    path: Path
    runs: Path  # the folder of all run folders
    variables: Mapping[str, Any]
    tasks: Mapping[str, Task]


def read_grid(path: str | os.PathLike[str], *, variables: Mapping[str, str] | None = None) -> Grid:
    """Read and check a grid; `variables` (name -> value in YAML) override those of the file. Raises
    GridError, with file and line, for any error in it, in a file of parameters or in a notebook."""
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
    runs = _path_of(runs, "runs", top.where("runs"))
    values, read = _variables(top, variables or {}, runs), {}
    for name in tasks:
        if not _NAME.fullmatch(name):
            raise tasks.fault(name, f"{name!r} is no name of a task: a letter, then letters, digits and _")
        read[name] = _task(tasks.section(name, name=f"task {name}"), name, top, values)
    if clash := sorted(set(values) & set(read)):
        raise tasks.fault(clash[0], f"{clash[0]!r} is the name of a variable too: rename one of them")
    return Grid(path=Path(path), runs=Path(runs), variables=values, tasks=read)


def _path_of(text: str, name: str, where: str) -> str:
    try:
        return local_path(text, name)
    except ParameterError as error:
        raise GridError(f"{where}: {error}") from None


def _variables(top: Section, given: Mapping[str, str], runs: str) -> dict[str, Any]:
    """Return the variables of the file, overridden by those of the command line, and `runs`."""
    values = {name: item.value for name, item in top.mapping("variables").items()}
    for name, value in values.items():
        if name == "runs" or not _NAME.fullmatch(name) or not isinstance(value, _SCALAR):
            what = f"{name!r} = {value!r} is no variable: a name and a text"
            raise top.section("variables").fault(name, what)
    for name, text in given.items():
        option = f"--set {name}={text}"
        if name not in values:
            hint = closest_name(name, values) if values else "it has none"
            raise GridError(f"{option}: {top.file} has no such variable: {hint}")
        # If the value in the file is text, the new one is too: a folder may be called 2024.
        value = text if isinstance(values[name], str) else read_yaml(text, where=option)
        if not isinstance(value, _SCALAR):
            raise GridError(f"{option}: {value!r} is no single value: write it in quotes if it is text")
        values[name] = value
    return {"runs": runs, **values}


def _task(section: Section, name: str, top: Section, variables: Mapping[str, Any]) -> Task:
    section.allow(_TASK)
    notebook, applied = _notebook(section, name), section.mapping("apply")
    parameters = _checked(notebook, applied, variables)
    for file in _texts(section, "files"):  # later files override earlier ones
        path = _path_of(file.value, "files", file.where)
        if not Path(path).is_file():
            raise GridError(f"{file.where}: {section.name}: there is no file {path}")
        given = read_section(path, name="parameters").all()
        parameters |= _checked(notebook, given, variables)
    parameters |= _checked(notebook, section.mapping("parameters"), variables)
    axes = {
        axis: _points(section.section("axes"), axis, notebook, variables) for axis in section.mapping("axes")
    }
    if (seeds := _seeds(section, top, notebook)) is not None:
        axes["seed"] = seeds
    _refuse_set_twice(section, axes)
    for need, given in section.mapping("needs").items():
        if not isinstance(given.value, str) or not given.value:
            raise section.section("needs").fault(need, f"{given.value!r}; it must be a path or hub:NAME")
    return Task(
        name=name,
        where=section.where(),
        notebook=notebook,
        parameters=parameters,
        axes=axes,
        resources=_resources(section, top),
        needs=section.mapping("needs") | _own_needs(applied, variables),
        after=_texts(section, "after"),
    )


def _notebook(section: Section, name: str) -> Notebook:
    """Return the notebook of a task, or for `apply` the one that applies a model to texts."""
    if "apply" not in section:
        written = section.take("notebook", str)
        return read_notebook(find_notebook(written, where=f"{section.where('notebook')}: task {name}"))
    for other in ("notebook", "files", "parameters"):
        if other in section:
            raise section.fault(other, f"apply and {other} do not go together: leave one out")
    given = {*section.mapping("apply"), *section.mapping("axes")}
    if missing := {"model", "texts"} - given:
        raise section.fault("apply", f"apply needs {' and '.join(sorted(missing))}")
    return read_notebook(Path(__file__).with_name("apply.ipynb"))


def _own_needs(applied: Mapping[str, Given], variables: Mapping[str, Any]) -> dict[str, Given]:
    """Return the file of texts of an `apply` task as a need, unless a task of the grid creates it."""
    texts = {name: given for name, given in applied.items() if name == "texts"}
    made = [name for given in texts.values() for name in _REFERENCE.findall(str(given.value))]
    return {} if set(made) - set(variables) else texts


def _texts(section: Section, key: str) -> tuple[Given, ...]:
    """Return a list of texts, each with the `file:line` of the list."""
    items = section.take(key, list, [])
    for item in items:
        if not isinstance(item, str):
            raise section.fault(key, f"{key} holds {item!r}; it must be a list of texts")
    return tuple(Given(value=item, where=section.where(key)) for item in items)


def _checked(
    notebook: Notebook, given: Mapping[str, Given], variables: Mapping[str, Any]
) -> dict[str, Given]:
    """Check parameters against the notebook. A text that is only a variable becomes the variable's value."""
    known = {f"{{{name}}}": value for name, value in variables.items()}
    checked = dict(given)
    for name, item in given.items():
        if isinstance(item.value, str) and item.value in known:
            checked[name] = Given(value=known[item.value], where=item.where)
    check_given(notebook, checked)
    return checked


def _points(axes: Section, axis: str, notebook: Notebook, variables: Mapping[str, Any]) -> Points:
    """Return the values of an axis; a list holds values of the parameter of the same name."""
    if not _NAME.fullmatch(axis):
        raise axes.fault(axis, f"{axis!r} is no name of an axis: a letter, then letters, digits and _")
    if isinstance(axes.given(axis).value, Mapping):
        points = axes.section(axis)
        given = {label: points.section(label).all() for label in points}
    else:
        values = axes.take(axis, list)
        for value in values:
            if not isinstance(value, _SCALAR):
                raise axes.fault(axis, f"{axis} holds {value!r}; write name: {{parameter: value}} for it")
        given = {str(value): {axis: Given(value=value, where=axes.where(axis))} for value in values}
        if len(given) < len(values):
            raise axes.fault(axis, f"{axis} is {values!r}; one of them stands there twice")
    if not given:
        raise axes.fault(axis, f"{axis} has no values")
    return {label: _checked(notebook, parameters, variables) for label, parameters in given.items()}


def _seeds(section: Section, top: Section, notebook: Notebook) -> Points | None:
    """Return the axis of seeds: the task's own, or the grid's if the notebook has the parameter; or None."""
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
    return {str(value): {"seed": Given(value=value, where=holder.where("seeds"))} for value in values}


def _refuse_set_twice(section: Section, axes: Mapping[str, Points]) -> None:
    """Raise GridError if two axes, or an axis and `parameters`, set one parameter; files may be overruled."""
    by: dict[str, str] = dict.fromkeys(section.mapping("parameters"), "parameters")
    for axis, points in axes.items():
        for name in sorted({name for parameters in points.values() for name in parameters}):
            if name in by:
                what = f"{name} is set by {by[name]} and by the axis {axis}: leave one out"
                raise section.fault(None, what)
            by[name] = f"the axis {axis}"


def _resources(section: Section, top: Section) -> Resources:
    """Return the resources of a task, which override the grid's defaults and those of `Resources`."""
    names = [field.name for field in dataclasses.fields(Resources)]
    values: dict[str, Any] = {}
    for holder, key in ((top, "defaults"), (section, "resources")):
        for name, given in holder.mapping(key).items():
            part = holder.section(key)
            part.allow(names)
            try:
                Resources(**{name: given.value})
            except ParameterError as error:
                raise part.fault(name, str(error)) from None
            values[name] = given.value
    return Resources(**values)
