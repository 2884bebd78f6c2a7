"""From tasks to runs: the cross product of the axes, and what stands in braces.

In any text of a task's parameters and needs:

- `{pretrain}` is the run folder of another task's run: of the one that agrees with this run in all axes that
  both have, the seed among them. `{pretrain:variant=cdlm}` says which where that is not enough,
  `{pretrain:variant=*}` means all of them, their folders separated by spaces. This run then waits for those.
- `{data}` is a variable of the grid, `{runs}` its folder of runs, `{variant}` the value of this run's axis.
- `{{name}}` is the text `{name}`; anything else in braces (JSON) stays as it is.

YAML 1.2 whose every key knows its line, so that a fault in a grid can be named by file and line.

It holds what JSON has, and no more: a date, a tag, a key that is no text and a number without end are faults,
as is a key that stands twice. Anchors and `<<` may be used, as long as what they make is not vast.

YAML 1.1, by which papermill reads the files of its `-f`, understands some values otherwise: there 1e-4 is
text, 012 is 10, 1:30 is 90, and yes is True.

What a grid needs to know of a notebook: its parameters with their defaults, and when its code changed.

Read from the file, nothing is executed. The parameters are those of the one code cell tagged `parameters`,
which holds nothing but literals; papermill knows no other, and would run a notebook without such a cell with
its defaults and exit code 0.

`grid.yaml`: which notebooks run with which parameters, how often, on what, and after which others.

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

import ast
import dataclasses
import hashlib
import itertools
import json
import math
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import ConstructorError, SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, StreamMark, YAMLError
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from cdlm_lab.data.files import DataError, read_text
from cdlm_lab.parameters import ParameterError, check_least, check_like, check_types, closest_name

_KINDS = {dict: "a mapping (name: value)", list: "a list", str: "text"}
_MISSING = object()
_DEEPEST, _MOST = 50, 100_000  # levels; values, with all that aliases stand for
_LONGEST = 40  # characters of a value that are shown
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")


class GridError(ValueError):
    """A grid cannot be run as it is written; one line says where, what is wrong, and what to do."""


@dataclass(frozen=True, kw_only=True)
class Given:
    """A value with the place where somebody wrote it, `file:line`."""

    value: Any
    where: str


class _Marked(dict):
    """A mapping, with its line and those of its keys."""

    def __init__(self, line: int) -> None:
        self.line, self.lines = line, dict[str, int]()


class _Constructor(SafeConstructor):
    """Makes `_Marked` of mappings, and of scalars nothing that JSON has not."""

    yaml_constructors = SafeConstructor.yaml_constructors | dict.fromkeys(
        (f"tag:yaml.org,2002:{name}" for name in ("binary", "timestamp", "omap", "pairs", "set")),
        lambda self, node: self.construct_undefined(node),
    )

    def construct_yaml_map(self, node: MappingNode) -> Iterator[_Marked]:
        """A mapping; what `<<` brings in has the lines where it stands."""
        marked = _Marked(node.start_mark.line + 1)
        yield marked
        self.flatten_mapping(node)  # what `<<` brings in
        for key, _ in node.value:
            name = self.construct_object(key) if isinstance(key, ScalarNode) else None
            if not isinstance(name, str):
                raise _fault(key, f"{_shown(key)} is no name: write it in quotes")
            marked.lines[name] = key.start_mark.line + 1
        marked.update(self.construct_mapping(node))

    def construct_non_recursive_object(self, node: Node, tag: str | None = None) -> Any:
        """Any value."""
        try:
            value = super().construct_non_recursive_object(node, tag)
        except (ValueError, LookupError) as error:  # `!!bool maybe`, a number of 5,000 digits
            what = f"{_shown(node)} is no {_kind(node)} ({error}): write it in quotes if it is text"
            raise _fault(node, what) from None
        if isinstance(value, float) and not math.isfinite(value):
            raise _fault(node, f"{_shown(node)} is no number that can be used: write a smaller one")
        if isinstance(value, int) and abs(value) >= 2**64:
            raise _fault(node, f"{_shown(node)} has more than 64 bits: write it in quotes if it is text")
        if isinstance(value, str) and _UNWRITABLE.search(value):
            raise _fault(
                node, "it holds a NUL or half a surrogate pair, which no file has: remove \\0 or \\ud..."
            )
        return value

    def construct_undefined(self, node: Node) -> None:
        """A value that JSON has not."""
        remedy = "write it in quotes if it is text" if isinstance(node, ScalarNode) else "leave the tag out"
        raise _fault(node, f"YAML reads {_shown(node)} as a {_kind(node)}: {remedy}")


_Constructor.add_default_constructor("map")
_Constructor.add_constructor(None, _Constructor.construct_undefined)


class Section:
    """A mapping of a YAML file: values, and the lines they stand on.

    Args:
        file: that it is from.
        values: of the mapping.
        name: what messages call it: "the grid", "task pretrain".
        place: `file:line` of its name, if it has one.
    """

    def __init__(self, file: Path, values: object, *, name: str, place: str = "") -> None:
        self.file, self.name = file, name
        self._place = place or f"{file}:{getattr(values, 'line', 1)}"
        if not isinstance(values, _Marked):
            raise GridError(f"{self._place}: {name} must be {_KINDS[dict]}")
        self._values = values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def where(self, key: str | None = None) -> str:
        """`file:line` of a key, or of the mapping itself, which is that of its name."""
        return self._place if key is None else f"{self.file}:{self._values.lines[key]}"

    def fault(self, key: str | None, what: str) -> GridError:
        """An error about a key: `file:line: task pretrain: what`."""
        return GridError(f"{self.where(key)}: {self.name}: {what}")

    def allow(self, keys: Collection[str]) -> None:
        """Refuse all other keys.

        Raises:
            GridError: names the first one that is not among `keys`, and the closest that is.
        """
        for key in self:
            if key not in keys:
                raise self.fault(key, f"nothing is called {key!r} here: {closest_name(key, keys)}")

    def take(self, key: str, kind: type, default: Any = _MISSING) -> Any:
        """The value of a key, which must be of a kind; `default` if the key is not there.

        Raises:
            GridError: the key is missing and has no default, or its value is of another kind.
        """
        if key not in self:
            if default is _MISSING:
                raise GridError(f"{self.where()}: {self.name}: {key!r} is missing")
            return default
        value = self._values[key]
        if not isinstance(value, kind):
            raise self.fault(key, f"{key} is {value!r}; it must be {_KINDS[kind]}")
        return value

    def given(self, key: str) -> Given:
        """The value of a key, with its place."""
        return Given(value=self._values[key], where=self.where(key))

    def all(self) -> dict[str, Given]:
        """All keys with their values."""
        return {key: self.given(key) for key in self}

    def section(self, key: str, *, name: str = "") -> Section:
        """The mapping under a key.

        Raises:
            GridError: there is something else.
        """
        called = name or f"{self.name}: {key}"
        return Section(self.file, self._values[key], name=called, place=self.where(key))

    def is_mapping(self, key: str) -> bool:
        """True if a mapping stands under the key."""
        return isinstance(self._values[key], _Marked)


def read_section(path: str | os.PathLike[str], *, name: str) -> Section:
    """The mapping that a YAML file holds.

    Raises:
        GridError: the file is missing, empty, not UTF-8, not YAML, or holds something else.
    """
    file = Path(path)
    try:
        values = read_yaml(read_text(file), where=str(file))
    except DataError as error:
        raise GridError(str(error)) from None
    if values is None:
        raise GridError(f"{file}:1: there is nothing in {name}")
    return Section(file, values, name=name)


def read_yaml(text: str, *, where: str) -> Any:
    """What a text in YAML says; None if nothing.

    Args:
        where: begins messages, before the line.

    Raises:
        GridError: it is not YAML, or says what JSON could not.
    """
    yaml = YAML(typ="safe", pure=True)
    yaml.Constructor, yaml.max_depth = _Constructor, _DEEPEST
    root = None
    try:
        constructor, _ = yaml.get_constructor_parser(text)
        constructor.composer.warn_double_anchors = False
        root = constructor.composer.get_single_node()
        _check_aliases(root)
        return None if root is None else constructor.construct_document(root)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        way = "".join(f"{key}: " for key in _way_to(root, mark)) if root else "not YAML: "
        what, twice, _ = str(error.problem or error.context).partition(" with value ")
        what += ": leave one out" if twice else ""
    except YAMLError as error:  # a character that may not stand in YAML
        line, way = text.count("\n", 0, getattr(error, "position", 0)) + 1, "not YAML: "
        what = str(error).partition("\n")[0]
    except (ValueError, LookupError, ArithmeticError, AssertionError) as error:  # %YAML 1.3, "\U99999999"
        line, way, what = yaml.reader.line + 1, "not YAML: ", f"this cannot be read ({error})"
    raise GridError(f"{where}:{line}: {way}{' '.join(what.split())}")


def _check_aliases(root: Node | None) -> None:
    """Refuse aliases that hold themselves, and those that make a vast deal of little."""
    sizes: dict[int, tuple[int, int]] = {}  # id of a node -> values, levels; 0 while it is looked at

    def measure(node: Node) -> tuple[int, int]:
        if (known := sizes.get(id(node))) is not None:
            if not known[0]:
                raise _fault(node, "this contains itself: write what is meant in place of its alias (*name)")
            return known
        sizes[id(node)] = (0, 0)
        found = [measure(inner) for inner in _within(node)]
        values, levels = 1 + sum(size for size, _ in found), 1 + max((deep for _, deep in found), default=0)
        if values > _MOST or levels > _DEEPEST:
            limit = f"{_MOST} values" if values > _MOST else f"{_DEEPEST} levels"
            raise _fault(node, f"more than {limit} with all that its aliases (*name) stand for: write less")
        sizes[id(node)] = (values, levels)
        return values, levels

    if root is not None:
        measure(root)


def _within(node: Node) -> list[Node]:
    if isinstance(node, MappingNode):
        return [inner for pair in node.value for inner in pair]
    return node.value if isinstance(node, SequenceNode) else []


def _way_to(node: Node, mark: StreamMark) -> Iterator[str]:
    """The keys that lead to a place."""
    for _ in range(_DEEPEST):  # a node may hold itself
        if not isinstance(node, CollectionNode) or not node.value or node.start_mark.index >= mark.index:
            return
        pairs = node.value if isinstance(node, MappingNode) else [(item, item) for item in node.value]
        before = [pair for pair in pairs if pair[0].start_mark.index <= mark.index]
        key, node = max(before or pairs[:1], key=lambda pair: pair[0].start_mark.index)
        if key is not node and isinstance(key, ScalarNode):
            yield _shown(key)


def _fault(node: Node, what: str) -> ConstructorError:
    return ConstructorError(problem=what, problem_mark=node.start_mark)


def _shown(node: Node) -> str:
    text = node.value if isinstance(node, ScalarNode) else f"this {node.id}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _kind(node: Node) -> str:
    return {"timestamp": "date"}.get(name := str(node.tag).rpartition(":")[2], name)


RUN_FOLDER = "run_folder"  # the parameter, of every notebook, that says where results go


@dataclass(frozen=True, kw_only=True)
class Notebook:
    """A notebook on disk.

    Attributes:
        path: of the file.
        defaults: name -> value of its parameters.
        code: SHA-256 of its code cells but the parameters; neither outputs, nor metadata, nor prose count.
        sources: of these cells.
    """

    path: Path
    defaults: Mapping[str, Any]
    code: str
    sources: tuple[str, ...]


def find_notebook(name: str, *, where: str) -> Path:
    """The file of a notebook: a path, or a name in `notebooks/` below this folder or of the checkout.

    Args:
        name: "01_pretraining", or a path that ends in .ipynb.
        where: begins the message.

    Raises:
        GridError: there is none.
    """
    if name.endswith(".ipynb"):
        places = [Path(name)]
    else:
        checkout = Path(__file__).resolve().parents[2]
        places = [folder / "notebooks" / f"{name}.ipynb" for folder in (Path(), checkout)]
    for place in places:
        if place.is_file():
            return place
    known = sorted({path.stem for place in places for path in place.parent.glob("*.ipynb")})
    hint = closest_name(Path(name).stem, known) if known else "give the path of a file that ends in .ipynb"
    raise GridError(f"{where}: there is no notebook {name}: {hint}")


def read_notebook(path: Path) -> Notebook:
    """Parameters and code of a notebook.

    Raises:
        GridError: it cannot be read, has no cell or several cells tagged `parameters`, something other than
            literals in it, or no parameter `run_folder`.
    """
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
    defaults = _literals(sources.pop(tagged[0]), path)
    if RUN_FOLDER not in defaults:
        raise GridError(f"{path}: has no parameter {RUN_FOLDER!r}, which says where its results go")
    code = hashlib.sha256(json.dumps(sources).encode()).hexdigest()
    return Notebook(path=path, defaults=defaults, code=code, sources=tuple(sources))


def check_given(notebook: Notebook, given: Mapping[str, Given]) -> None:
    """Hold names and types of given parameters against the notebook's defaults, as `check_like` does.

    Raises:
        GridError: an unknown name, a value of another type than the default, or `run_folder`, which is the
            grid's to choose.
    """
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


def _literals(source: str, path: Path) -> dict[str, Any]:
    """name -> value of a cell of literal assignments."""
    try:
        statements = ast.parse(source).body
        pairs = [(statement.targets[0].id, ast.literal_eval(statement.value)) for statement in statements]
    except SyntaxError as error:
        raise GridError(f"{path}: cell 'parameters', line {error.lineno}: not Python ({error.msg})") from None
    except (AttributeError, ValueError):
        what = "the cell 'parameters' must hold nothing but lines like `steps = 400`"
        raise GridError(f"{path}: {what}") from None
    return dict(pairs)


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


_BRACES = re.compile(r"\{(\{[A-Za-z]\w*(?::[^{}]*)?\})\}|\{([A-Za-z]\w*)(?::([^{}]*))?\}")
_UNSAFE = re.compile(r"[^A-Za-z0-9._]+")
_PROCESSES = re.compile(r"\s*(?:ddp|fsdp) (\d+)")
_LONGEST_EXPANSION = 120  # of a name, which is that of a folder
_MOST_EXPANSION = 100_000  # runs of a task


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run of one task.

    Attributes:
        name: of the run and of its folder: "pretrain-cdlm-s0".
        task: that it is of.
        folder: of the run.
        labels: axis -> name of its value.
        parameters: those that the grid gives, references resolved, without `run_folder`.
        needs: name -> path or hub:NAME.
        after: names of the runs it waits for.
    """

    name: str
    task: Task
    folder: Path
    labels: Mapping[str, str]
    parameters: Mapping[str, Any]
    needs: Mapping[str, str]
    after: tuple[str, ...]

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

    Raises:
        GridError: too many runs; two runs have one name; a reference to nothing or to several; runs that
            wait for each other.
    """
    drafts: dict[str, _Draft] = {}
    taken: set[str] = set()  # in small letters, as some file systems have names
    for task in grid.tasks.values():
        if (count := math.prod(map(len, task.axes.values()))) > _MOST_EXPANSION:
            raise GridError(
                f"{task.where}: task {task.name}: {count} runs, at most {_MOST_EXPANSION}: shorten an axis"
            )
        for labels in itertools.product(*task.axes.values()):
            draft = _Draft(task, dict(zip(task.axes, labels, strict=True)))
            if draft.name.lower() in taken:
                raise GridError(
                    f"{task.where}: task {task.name}: two runs would be called {draft.name}: rename a task, "
                    "or write the axis as name: {parameter: value}"
                )
            if len(draft.name) > _LONGEST_EXPANSION:
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
