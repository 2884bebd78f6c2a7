"""Settings classes: typed fields that are checked on construction and define a notebook's parameters.

    @settings
    class Training:
        steps: int = Field(default=100, ge=1)
        pairs: int = Field(default=0, ge=0, description="0 means all")  # messages end with what is described
        precision: Literal["auto", "bfloat16", "float32"] = "auto"

        def __post_init__(self) -> None:  # rules between fields
            if self.steps == 13:
                raise ParameterError("steps is 13; choose another number")

    given = read_settings(globals(), Training, "run_folder", "title")  # in a notebook

A wrong value raises a ParameterError of one line. Papermill turns a misspelt `-p lerning_rate 0.5` into an
unused global and trains with the default, and `-y "learning_rate: 1e-4"` into the text "1e-4": so unknown
names are refused and nothing is coerced (an int may stand for a float, a bool for neither; nan is refused).
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import dataclasses
import difflib
import os
import re
import shlex
import types
import typing
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, TypeVar, dataclass_transform

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as pydantic_dataclass

from cdlm_lab.errors import PlainError

# Notebook parameters that say how many processes or examples work at once, and change no result beyond
# rounding and the numbers that dropout draws; a run may be resumed with others.
BY_HOW_MANY = ("parallel", "workers", "micro_batch_size", "encoder_micro_batch_size")
EVALUATED_WITH = ("compare_with",)  # parameters of the evaluation alone, which other values repeat
# Notebook parameters that name a file, a folder or a model, and those that name several things.
PATHS = {"run_folder", "trained", "corpus", "test_corpus", "model", "encoders", "small_model"}
PATHS |= {"sentence_encoder", "word_vectors", "mspp", "predicted_topics", "matching_run"}
PATHS |= {"mentions_run", "pooled_with"}
PATHS |= {"longformer", "local_cdlm", "rand_cdlm", "prefix_cdlm", "cdlm", "compare_with", "results"}
PATHS |= {"texts"}
LISTS = {"systems", "sweep", "dev_topics", "test_topics", "compare_with"}
LISTS |= {"leave_out", "choose", "compare"}
RUN_FILE = "run.json"  # file in the folder of a run that records its name, parameters and sessions
# Parameter -> the word that it accepts in place of a number.
WORDS = {"attention_dropout": "checkpoint"}
IPYTHON_NAMES = frozenset({"In", "Out", "exit", "quit", "get_ipython", "open"})
_ADDED = "# Parameters"  # first line of the cell that papermill injects
_STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, arbitrary_types_allowed=True)

Kind = TypeVar("Kind")


class ParameterError(PlainError, ValueError):
    """A parameter has an unknown name or an invalid value; the message says which, why, and what to write."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(Field, dataclasses.field))
def settings(kind: type[Kind]) -> type[Kind]:
    """Make a class of typed fields a frozen dataclass that raises ParameterError for an invalid value."""
    checked = pydantic_dataclass(kind, frozen=True, kw_only=True, config=_STRICT)
    init = checked.__init__

    @wraps(init)
    def one_line(self: Any, **values: Any) -> None:
        try:
            init(self, **{name: as_one_text(name, value) for name, value in values.items()})
        except ValidationError as error:
            raise _parameter_error(error, checked) from None

    checked.__init__ = one_line  # type: ignore[method-assign]
    return checked


def as_one_text(name: str, value: Any) -> Any:
    """The value of a parameter as it is kept and compared: a list of names as one text (see `names_in`), a
    path as `local_path` gives it; others as they are. Raises ParameterError as these two do."""
    if name in LISTS and _is_list_of_names(value):
        value = shlex.join(map(str, value))
    if name in LISTS and isinstance(value, str):
        names = names_in(value, name)
        return shlex.join(local_path(one, name) for one in names) if name in PATHS else value
    return local_path(value, name) if name in PATHS and isinstance(value, str) else value


def names_in(text: str, parameter: str = "the list") -> list[str]:
    """The names in a text, separated by spaces; names with spaces are in quotes, as in a shell. Raises
    ParameterError if a quotation mark is not closed."""
    try:
        return shlex.split(text)
    except ValueError:
        remedy = f'write a list, such as ["one name", "another"], or {shlex.join(text.split())}'
        raise ParameterError(f"{parameter} is {text!r}; a quotation mark is not closed: {remedy}") from None


def local_path(text: str, parameter: str = "path") -> str:
    """A path, or the name of a model, with `~` and variables of the environment (`$SCRATCH`) replaced.
    Raises ParameterError for an address (`s3://bucket`), an unknown user and a variable that is not set."""
    what = f"{parameter} is {text!r}"
    if re.match(r"[A-Za-z][\w+.-]*://", text):
        remedy = "copy or mount it, and give its path here; a model of the hub goes by its name alone"
        raise ParameterError(f"{what}, an address; only files and folders of this machine are read: {remedy}")
    path = os.path.expanduser(text)
    if path.startswith("~"):
        raise ParameterError(f"{what}; there is no such user: write the folder out, or ./~ for the sign")
    path = path if os.path.exists(path) else os.path.expandvars(path)
    if not os.path.exists(path) and (unset := re.search(r"\$(\w+|\{\w+\})", path)):
        raise ParameterError(f"{what}; {unset[0]} is not set in the environment: write the path out")
    return path


def path_argument(text: str) -> Path:
    """The type of a path for `argparse`: see `local_path`."""
    try:
        return Path(local_path(text))
    except ParameterError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _is_list_of_names(value: object) -> bool:
    return isinstance(value, list | tuple) and all(type(one) in (str, int) for one in value)


def read_settings(namespace: Mapping[str, Any], kind: type[Kind], *also: str) -> Kind:
    """Read settings from a notebook's globals, after changing to the top folder of the project. `also`:
    parameters of the notebook that are not fields of `kind`. Raises ParameterError for unknown names and
    invalid values."""
    start_at_the_top()
    refuse_unknown(namespace, (*parameter_names(kind), *also))
    return settings_of(kind, namespace)


def start_at_the_top() -> None:
    """Change the working directory from `notebooks/`, where JupyterLab starts a notebook, to the top of the
    project, so that relative paths mean the same as in a terminal and both share one `runs/` folder."""
    here = Path.cwd()
    if here.name == "notebooks" and (here.parent / "cdlm_lab" / "parameters.py").is_file():
        os.chdir(here.parent)


def settings_of(kind: type[Kind], values: Mapping[str, Any]) -> Kind:
    """Make settings from a mapping: missing fields get their defaults, other names are ignored."""
    return kind(**{name: values[name] for name in parameter_names(kind) if name in values})


def parameter_names(kind: type[Any]) -> tuple[str, ...]:
    """The field names of a settings class, in order of declaration."""
    return tuple(field.name for field in dataclasses.fields(kind))


def parameters_of(settings: Any, *names: str) -> dict[str, Any]:
    """The field values of `settings` by name: of all fields, or only of `names` if any are given."""
    return {name: getattr(settings, name) for name in names or parameter_names(type(settings))}


def check_like(name: str, value: object, default: object) -> None:
    """Raise ParameterError unless a value fits the type of a parameter's default. The default None accepts
    anything, "auto" also a number, a float also an int, and a tuple a list; a parameter in `WORDS` also
    accepts its word, one in `LISTS` a list."""
    if (name in WORDS and value == WORDS[name]) or (name in LISTS and _is_list_of_names(value)):
        return
    if default is None or (default == "auto" and isinstance(value, int | float)):
        return
    try:
        _check(name, value, list if isinstance(default, tuple) else type(default))
    except ParameterError as fault:
        raise ParameterError(f"{fault}, or {WORDS[name]!r}") if name in WORDS else fault from None


def refuse_unknown(namespace: Mapping[str, object], allowed: Collection[str]) -> None:
    """Find misspelt notebook parameters, and those of the wrong type, from inside the notebook:
    `refuse_unknown(globals(), allowed)`. Raises ParameterError with one line for each unknown name, which
    proposes the closest allowed one, or for the first value whose type differs from its default's.

    Papermill injects parameters as plain globals, so any global that holds a simple literal and is not
    allowed is an unknown parameter. Where IPython's history of executed cells (`In`) is available, only names
    count that are assigned by the parameters cell, as it was last executed, or by papermill's cell below it;
    loop variables, cells of notes and misspellings that were corrected since do no harm. The values of
    papermill's cell are checked against the types of the defaults, so that no cell computes with an invalid
    value.
    """
    known = set(allowed) | IPYTHON_NAMES
    names = [name for name, value in namespace.items() if _is_simple(value)]
    unknown = [name for name in names if name not in known and not name.startswith("_")]
    cells = [cell for cell in namespace.get("In") or () if isinstance(cell, str)]
    defaults, injected = _parameter_cells(cells, allowed)
    if any(cells):
        assigned = {*_literal_assignments(defaults), *_literal_assignments(injected)}
        unknown = [name for name in unknown if name in assigned]
    if unknown:
        raise ParameterError("\n".join(_unknown(name, namespace[name], allowed) for name in unknown))
    for name, default in _values(defaults).items() if injected else ():
        if name in namespace:
            check_like(name, namespace[name], default)


def _parameter_cells(cells: Sequence[str], allowed: Collection[str]) -> tuple[str, str]:
    """The parameters cell as it was last executed, and the one that papermill added below it; "" without.
    The former assigns nothing but literals, and half of the parameters or more."""
    defaults = injected = ""
    for cell in cells:
        names = _literal_assignments(cell)
        if names and cell.startswith(_ADDED):
            injected = cell
        elif 2 * len(set(names).intersection(allowed)) >= max(len(allowed), 1):
            defaults, injected = cell, ""
    return defaults, injected


def _values(cell: str) -> dict[str, object]:
    """The values of the literals that a cell assigns."""
    values = {}
    for statement in ast.parse(cell).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            with contextlib.suppress(ValueError):  # literal_eval refuses arithmetic
                values[statement.targets[0].id] = ast.literal_eval(statement.value)
    return values


def closest_name(name: str, allowed: Collection[str]) -> str:
    """A hint for a name that is not allowed: "did you mean 'x'?", or the list of all allowed names."""
    close = difflib.get_close_matches(name, sorted(allowed), n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(allowed))}"


def _unknown(name: str, value: object, allowed: Collection[str]) -> str:
    return f"unknown parameter {name} = {value!r}: {closest_name(name, allowed)}"


def _is_simple(value: object) -> bool:
    """True for int, float, str, bool, None and lists, tuples, sets and dicts of them."""
    if isinstance(value, Mapping):
        return type(value) is dict and all(map(_is_simple, value)) and all(map(_is_simple, value.values()))
    if isinstance(value, list | tuple | set):
        return all(map(_is_simple, value))
    return value is None or isinstance(value, int | float | str)


def _literal_assignments(cell: str) -> list[str]:
    """The names that a cell assigns, if it does nothing but assign literals; else an empty list."""
    try:
        statements = ast.parse(cell).body
    except SyntaxError:  # a cell with IPython magics is no parameters cell
        return []
    names: list[str] = []
    for statement in statements:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or not _is_literal(statement.value):
            return []
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if not all(isinstance(target, ast.Name) for target in targets):
            return []
        names += [target.id for target in targets]
    return names


def _is_literal(node: ast.AST | None) -> bool:
    """True for literals and arithmetic on them; papermill writes `float('nan')` for a nan."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) == "float" and all(map(_is_literal, node.args))
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return all(map(_is_literal, node.elts))
    if isinstance(node, ast.Dict):
        return all(map(_is_literal, [*node.keys, *node.values]))
    if isinstance(node, ast.UnaryOp):
        return _is_literal(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_literal(node.left) and _is_literal(node.right)
    return isinstance(node, ast.Constant)


@lru_cache
def _hints(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {name: hint for name, hint in hints.items() if typing.get_origin(hint) is not typing.ClassVar}


def _check(where: str, value: Any, annotation: Any) -> None:
    """Raise ParameterError unless the value fits the annotation."""
    try:
        TypeAdapter(annotation, config=_STRICT).validate_python(value)
    except ValidationError as error:
        raise ParameterError(_line(error.errors(), where, annotation)) from None


def _parameter_error(error: ValidationError, kind: type) -> ParameterError:
    """The ParameterError for the first fault that pydantic found in settings, in one line."""
    faults = error.errors()
    first = faults[0]
    if isinstance(own := first.get("ctx", {}).get("error"), ValueError):  # raised by a rule between fields
        return own if isinstance(own, ParameterError) else ParameterError(str(own))
    if not first["loc"]:
        return ParameterError(f"{kind.__name__}: {first['msg']}")
    name, fields = str(first["loc"][0]), parameter_names(kind)
    if name not in fields:
        return ParameterError(_unknown(name, first["input"], fields))
    if first["type"] == "missing" and len(first["loc"]) == 1:
        return ParameterError(f"{name} is missing in {kind.__name__}")
    of_field = [{**fault, "loc": fault["loc"][1:]} for fault in faults if fault["loc"][0] == name]
    line = _line(of_field, name, _hints(kind)[name])
    described = kind.__pydantic_fields__[name].description  # type: ignore[attr-defined]
    return ParameterError(f"{line} ({described})" if described else line)


_WORD_OF = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "True or False",
    "string_type": "text",
    "tuple_type": "a tuple",
    "list_type": "a list",
    "sequence_str": "a list or tuple",
    "Sequence": "a list or tuple",
    "mapping_type": "a mapping",
    "dict_type": "a mapping",
    "none_required": "None",
}
_LIMITS = {
    "greater_than_equal": "at least",
    "greater_than": "above",
    "less_than_equal": "at most",
    "less_than": "below",
}


def _line(faults: Sequence[Any], where: str, annotation: Any) -> str:
    """A message about an invalid value, such as "factors[0][1] is the text 'b'; it must be a number"."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        members = [member for member in typing.get_args(annotation) if member is not type(None)]
        beyond = [{**fault, "loc": ()} for fault in faults if fault["type"] in _LIMITS]
        if not beyond and len(members) > 1 and len(faults) > 1:
            names, value = " | ".join(map(_member_name, members)), faults[0]["input"]
            return f"{where} is {value!r} ({type(value).__name__}); it must be {names}"
        faults = beyond or faults
    fault = faults[0]
    if fault["loc"][-1:] == ("[key]",):
        where = f"the key {fault['loc'][-2]!r} of {where}"
    else:
        where += "".join(f"[{step!r}]" for step in fault["loc"])
    return _fault_line(fault, where)


def _fault_line(fault: Mapping[str, Any], where: str) -> str:
    kind, value, context = fault["type"], fault["input"], fault.get("ctx", {})
    if kind in ("int_type", "float_type") and isinstance(value, str):
        return _text_for_number(where, value, whole=kind == "int_type")
    if kind == "missing":
        return f"{where.rpartition('[')[0]} is {value!r}; it needs an item {fault['loc'][-1]}"
    if kind == "too_long":
        return f"{where} is {value!r}; it must have {context['max_length']} items, not {len(value)}"
    if kind == "finite_number":
        return f"{where} is {value}, which is not a number"
    if kind == "literal_error":
        return f"{where} is {value!r}; it must be one of {context['expected'].replace(' or ', ', ')}"
    if kind in _LIMITS:
        return f"{where} is {value}; it must be {_LIMITS[kind]} {next(iter(context.values())):g}"
    word = _WORD_OF.get(context.get("class", kind), f"a {context['class']}" if "class" in context else None)
    if word is None:
        return f"{where} is {value!r}: {fault['msg'][0].lower()}{fault['msg'][1:]}"
    line = f"{where} is {value!r} ({type(value).__name__}); it must be {word}"
    if kind == "string_type" and isinstance(value, int | float):
        line += f": write {value!r} in quotes, or with papermill -r {where} {value}"
    return line


def _member_name(member: Any) -> str:
    if typing.get_origin(member) is typing.Annotated:
        return _member_name(typing.get_args(member)[0])
    if typing.get_origin(member) is typing.Literal:
        return " | ".join(map(repr, typing.get_args(member)))
    return getattr(member, "__name__", str(member))


def _text_for_number(where: str, text: str, *, whole: bool) -> str:
    """A message about a number given as text; for 1e-4 also why that happens, and how to write it in YAML."""
    expected = f"{where} is the text {text!r}; it must be {'a whole number' if whole else 'a number'}"
    try:
        plain = format(Decimal(text), "f")
    except InvalidOperation:
        return expected
    mantissa, mark, exponent = text.strip().lower().partition("e")
    if not mark:
        return f"{expected}: write {plain} without quotes"
    sign = exponent if exponent.startswith(("+", "-")) else f"+{exponent}"
    also = "" if whole else f" or {mantissa if '.' in mantissa else mantissa + '.0'}e{sign}"
    return (
        f"{where} is the text {text!r}, not a number: papermill -y reads {text} as text, write {plain}{also}"
    )
