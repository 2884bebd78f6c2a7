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
expansion.py. The file is YAML 1.2, where 1e-4 is a number and `no` is text; anchors and `<<` are allowed.

The parameters of a notebook are those of the only code cell tagged `parameters`, which must contain only
literals: papermill would run a notebook without such a cell with its defaults and exit code 0.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from cdlm_lab.data.files import DataError, printable, read_text, shipped_path
from cdlm_lab.parameters import ParameterError, check_like, closest_name, local_path

RUN_FOLDER = "run_folder"  # the parameter of every notebook that names the folder of the results
_REFERENCE = re.compile(r"\{([A-Za-z]\w*)")
_LONGEST, _DEEPEST = 60, 50  # characters of a value that a message shows; most nested levels
# What ruamel raises for a character that YAML does not allow, for `%YAML 1.3`, ..., and JSON for a cycle.
_OTHER_FAULTS = (YAMLError, ValueError, TypeError, LookupError, ArithmeticError, AssertionError)
_OTHER_FAULTS += (RecursionError,)


class GridError(ValueError):
    """A grid cannot be run as written. The message, one line, says where, what is wrong and what to do."""


# ---- YAML with the lines of its values ----


class _Constructor(SafeConstructor):
    """Leaves dates as text, since JSON has none."""


_Constructor.add_constructor("tag:yaml.org,2002:timestamp", SafeConstructor.construct_yaml_str)


class YamlFile:
    """A YAML file that holds a mapping. Raises GridError, with file and line, if it does not."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            text = read_text(self.path)
        except DataError as error:
            raise GridError(str(error)) from None
        self.values, self._root = read_yaml(text, where=str(path))
        if not isinstance(self.values, dict):
            raise GridError(f"{path}:1: this must be a mapping (name: value)")

    def where(self, *keys: str | int) -> str:
        """The `file:line` of a value, named by the keys that lead to it; of the last one that is there."""
        node, line = self._root, self._root.start_mark.line
        for key in keys:
            if (found := _inside(node, key)) is None:
                break
            line, node = found
        return f"{self.path}:{line + 1}"


def read_yaml(text: str, *, where: str) -> tuple[Any, Node]:
    """Parse a text in YAML 1.2; return its value and its nodes. Raises GridError, whose message begins with
    `where` and a line, for text that is not YAML, repeated keys, and values that JSON does not have."""
    yaml, line = YAML(typ="safe", pure=True), 1
    yaml.Constructor, yaml.max_depth = _Constructor, _DEEPEST
    try:
        values, root = yaml.load(text), yaml.compose(text)
        json.dumps(values)  # raises if something holds itself
        return values, root
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, what = (mark.line + 1 if mark else 1), f"{error.problem or error.context}"
    except _OTHER_FAULTS as error:
        what = str(error).partition("\n")[0]
    raise GridError(f"{where}:{line}: not YAML as a grid needs it: {printable(' '.join(what.split()))}")


def _inside(node: Node, key: str | int) -> tuple[int, Node] | None:
    """Line and node of the value of a key, perhaps one that `<<` brings in or deeper below, or of an item of
    a list."""
    if isinstance(node, SequenceNode) and isinstance(key, int):
        return node.value[key].start_mark.line, node.value[key]
    pairs = node.value if isinstance(node, MappingNode) else []
    for name, value in pairs:
        if name.value == str(key):
            return name.start_mark.line, value
    below = [value for _, value in pairs] + (node.value if isinstance(node, SequenceNode) else [])
    return next(filter(None, (_inside(other, key) for other in below)), None)


# ---- the form of a grid ----


def _each_once(values: list[int]) -> list[int]:
    if len(set(values)) < len(values):
        raise ValueError("one of them stands there twice")
    return values


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Resources(_Form):
    """Resources that one run of a task requests."""

    gpus: int = Field(default=0, ge=0)  # exclusive GPUs; if `parallel` starts more processes, one for each
    cores: int = Field(default=1, ge=1)  # CPU cores, and as many threads
    memory_gb: float = Field(default=4.0, gt=0)  # most memory, in 10^9 bytes
    minutes: float = Field(default=30.0, gt=0)  # limit on a cluster
    retries: int = Field(default=0, ge=0)  # how often a failed run is repeated


_Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
_Scalar = bool | int | float | str | None
_Seeds = Annotated[list[int], Field(min_length=1), AfterValidator(_each_once)]


class _TaskForm(_Form):
    notebook: str = ""
    apply: dict[str, Any] = {}
    files: list[str] = []
    parameters: dict[str, Any] = {}
    axes: dict[_Name, list[_Scalar] | dict[str, dict[str, Any]]] = {}
    seeds: _Seeds | Literal[False] | None = None
    resources: Resources = Resources()
    needs: dict[str, str] = {}
    after: list[str] = []


class _GridForm(_Form):
    runs: str = Field(pattern=r"^[^{}\n]*[^{}\s][^{}\n]*$")  # taken as it stands, without references
    seeds: _Seeds | None = None
    variables: dict[_Name, _Scalar] = {}
    defaults: Resources = Resources()
    tasks: dict[_Name, _TaskForm] = Field(min_length=1)


def _checked_form(file: YamlFile) -> _GridForm:
    """The grid as its file says it. Raises GridError for a wrong name or value."""
    try:
        return _GridForm.model_validate(file.values)
    except ValidationError as error:
        fault = max(error.errors(), key=lambda one: len(one["loc"]))
    keys, what = fault["loc"], fault["msg"]
    if fault["type"] == "extra_forbidden":
        resources = {"resources", "defaults"} & set(keys[:-1])
        known = (Resources if resources else (_GridForm, _TaskForm)[len(keys) > 1]).model_fields
        what = f"nothing is called so here: {closest_name(str(keys[-1]), known)}"
    elif fault["type"] == "string_pattern_mismatch":
        form = "a folder, without braces" if keys == ("runs",) else "a letter, then letters, digits and _"
        what = f"{fault['input']!r}: it must be {form}"
    elif fault["type"] != "missing":
        what = f"{repr(fault['input'])[:_LONGEST]}: {what[0].lower()}{what[1:]}"
    way = ": ".join(str(key) for key in keys if "[" not in str(key))
    raise GridError(f"{file.where(*keys)}: {way}: {what}")


# ---- notebooks ----


class Notebook(NamedTuple):
    """A notebook on disk, and its parameters with their defaults."""

    path: Path
    defaults: Mapping[str, Any]


def find_notebook(name: str, *, where: str) -> Path:
    """Return the file of a notebook: `name` is a path that ends in .ipynb, or a name in `notebooks/` of the
    working directory or of the project. Raises GridError, whose message begins with `where`, without one."""
    places = [folder / f"{name}.ipynb" for folder in (Path("notebooks"), shipped_path("notebooks"))]
    places = [Path(name)] if name.endswith(".ipynb") else places
    for place in places:
        if place.is_file():
            return place
    known = sorted({path.stem for place in places for path in place.parent.glob("*.ipynb")})
    hint = closest_name(Path(name).stem, known) if known else "give the path of a file that ends in .ipynb"
    raise GridError(f"{where}: there is no notebook {name}: {hint}")


def read_notebook(path: Path) -> Notebook:
    """Read the parameters of a notebook; nothing is executed. Raises GridError if a grid cannot run it."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        tagged = [one for one in cells if "parameters" in one["metadata"].get("tags", ())]
        sources = ["".join(one["source"]) for one in tagged if one["cell_type"] == "code"]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise GridError(f"{path}: no notebook of format 4 ({error}): save it in JupyterLab") from None
    if len(sources) != 1:
        raise GridError(f"{path}: {len(sources)} code cells are tagged 'parameters'; there must be one")
    try:
        lines = ast.parse(sources[0]).body
        defaults = {line.targets[0].id: ast.literal_eval(line.value) for line in lines}
    except (SyntaxError, AttributeError, ValueError):
        what = "the cell 'parameters' must hold nothing but lines like `steps = 400`"
        raise GridError(f"{path}: {what}") from None
    if RUN_FOLDER not in defaults:
        raise GridError(f"{path}: has no parameter {RUN_FOLDER!r}, which says where its results go")
    return Notebook(path, defaults)


# ---- a grid as it is used ----


# The values of an axis: name of a value -> the parameters that it sets.
Points = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Task:
    """One notebook and how it runs. Values may have references."""

    name: str
    file: YamlFile
    notebook: Notebook
    parameters: Mapping[str, Any]
    axes: Mapping[str, Points]
    resources: Resources
    needs: Mapping[str, str]
    after: list[str]

    def fault(self, what: str, *keys: str) -> GridError:
        """An error in what the file says of this task under some keys, which may lie below others."""
        return GridError(f"{self.file.where('tasks', self.name, *keys)}: task {self.name}: {what}")


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
    file = YamlFile(path)
    form = _checked_form(file)
    runs = _local(form.runs, "runs", file.where("runs"))
    values = {"runs": runs, **form.variables, **_of_command_line(form, variables or {}, file)}
    if twice := [name for name in ("runs", *form.tasks) if name in form.variables]:
        raise GridError(f"{file.where('variables', twice[0])}: {twice[0]!r} is taken: rename the variable")
    tasks = {name: _task(name, form, file, values) for name in form.tasks}
    return Grid(path=file.path, runs=Path(runs), variables=values, tasks=tasks)


def _local(text: str, name: str, where: str) -> str:
    try:
        return local_path(text, name)
    except ParameterError as error:
        raise GridError(f"{where}: {error}") from None


def _of_command_line(form: _GridForm, given: Mapping[str, str], file: YamlFile) -> dict[str, Any]:
    """The variables of `--set`. If the value in the file is text, so is the new one, as a folder 2024."""
    values = {}
    for name, text in given.items():
        option = f"--set {name}={text}"
        if name not in form.variables:
            hint = closest_name(name, form.variables) if form.variables else "it has none"
            raise GridError(f"{option}: {file.path} has no such variable: {hint}")
        values[name] = text if isinstance(form.variables[name], str) else read_yaml(text, where=option)[0]
        if not isinstance(values[name], _Scalar):
            raise GridError(f"{option}: this is no single value: write it in quotes if it is text")
    return values


def _task(name: str, form: _GridForm, file: YamlFile, variables: Mapping[str, Any]) -> Task:
    """A task, checked against its notebook."""
    own, known = form.tasks[name], {f"{{{one}}}": value for one, value in variables.items()}
    notebook = _notebook_of(own, file, name)

    def checked(given: Mapping[str, Any], source: YamlFile, *keys: str) -> dict[str, Any]:
        """Parameters; a text that is only a variable becomes the variable's value."""
        values = {
            one: known.get(value, value) if isinstance(value, str) else value for one, value in given.items()
        }
        for one, value in values.items():
            if fault := _fault_of_parameter(notebook, one, value):
                raise GridError(f"{source.where(*keys, one)}: {notebook.path.name}: {fault}")
        return values

    here = ("tasks", name)
    parameters = checked(own.apply, file, *here, "apply")
    for path in own.files:  # later files override earlier ones
        where = file.where(*here, "files")
        if not Path(path := _local(path, "files", where)).is_file():
            raise GridError(f"{where}: task {name}: there is no file {path}")
        source = YamlFile(path)
        parameters |= checked(source.values, source)
    parameters |= checked(own.parameters, file, *here, "parameters")
    axes = {}
    for axis, points in _axes(form, own, notebook).items():
        axes[axis] = {
            label: checked(given, file, *here, _KEY.get(axis, axis), label) for label, given in points.items()
        }
    task = Task(
        name=name,
        file=file,
        notebook=notebook,
        parameters=parameters,
        axes=axes,
        resources=Resources(**form.defaults.model_dump() | own.resources.model_dump(exclude_unset=True)),
        needs=dict(own.needs),
        after=own.after,
    )
    if not set(_REFERENCE.findall(text := str(own.apply.get("texts", "")))) - variables.keys() and text:
        task.needs["texts"] = text  # no task of the grid makes it
    _refuse_wrong_axes(task, own)
    return task


def _notebook_of(own: _TaskForm, file: YamlFile, name: str) -> Notebook:
    """The notebook of a task, or for `apply` the one that applies a model to texts."""
    place = f"{file.where('tasks', name, 'apply' if own.apply else 'notebook')}: task {name}"
    if not own.apply:
        if not own.notebook:
            raise GridError(f"{place}: 'notebook' is missing")
        return read_notebook(find_notebook(own.notebook, where=place))
    if twice := {"notebook", "files", "parameters"} & own.model_fields_set:
        raise GridError(f"{place}: apply and {min(twice)} do not go together: leave one out")
    if missing := {"model", "texts"} - {*own.apply, *own.axes}:
        raise GridError(f"{place}: apply needs {' and '.join(sorted(missing))}")
    return read_notebook(Path(__file__).with_name("apply.ipynb"))


def _fault_of_parameter(notebook: Notebook, name: str, value: Any) -> str:
    """What is wrong with a parameter, "" if the notebook has it and its default is of this kind."""
    if name == RUN_FOLDER:
        return f"the grid chooses {RUN_FOLDER}: leave it out"
    if name not in notebook.defaults:
        hint = closest_name(name, [one for one in notebook.defaults if one != RUN_FOLDER])
        return f"it has no parameter {name!r}: {hint}"
    try:
        check_like(name, value, notebook.defaults[name])
    except ParameterError as error:
        return str(error).replace("papermill -y reads", "YAML reads")
    return ""


def _axes(form: _GridForm, own: _TaskForm, notebook: Notebook) -> dict[str, Points]:
    """The axes of a task with its seeds: its own, or the grid's if the notebook has the parameter `seed`."""
    seeds = form.seeds or [] if own.seeds is None and "seed" in notebook.defaults else own.seeds or []
    given = {**own.axes, **({"seed": seeds} if seeds else {})}
    listed = {axis: values for axis, values in given.items() if isinstance(values, list)}
    return given | {axis: {str(one): {axis: one} for one in values} for axis, values in listed.items()}


_KEY = {"seed": "seeds"}  # the key under which a task has the values of an axis


def _refuse_wrong_axes(task: Task, own: _TaskForm) -> None:
    """Raise GridError for an axis without values or with one twice, and if two axes, or an axis and
    `parameters`, set one parameter; files may be overruled."""
    by: dict[str, str] = dict.fromkeys(own.parameters, "parameters")
    for axis, points in task.axes.items():
        if not points:
            raise task.fault(f"the axis {axis} has no values", axis)
        if axis in own.axes and len(points) < len(own.axes[axis]):
            raise task.fault(f"one of the values of {axis} stands there twice", _KEY.get(axis, axis))
        for name in sorted({name for parameters in points.values() for name in parameters}):
            if name in by:
                raise task.fault(
                    f"{name} is set by {by[name]} and by the axis {axis}: leave one out", _KEY.get(axis, axis)
                )
            by[name] = f"the axis {axis}"
