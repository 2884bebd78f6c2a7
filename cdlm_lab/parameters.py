"""Checks on parameters before any work begins: values of the wrong type and names that nobody knows.

Papermill passes a misspelt `-p lerning_rate 0.5` on as one more global name, with no more than a line in its
log, and the default trains; `-y "learning_rate: 1e-4"` arrives as the text "1e-4". So nothing is coerced
here: every frozen dataclass of parameters calls `check_types` in its `__post_init__`, and every notebook
calls `refuse_unknown` in the cell after its parameters.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import difflib
import types
import typing
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from cdlm_lab.errors import Told

# Of notebooks: by how many processes a run is made, not what it makes; a run may go on with other values.
BY_HOW_MANY = ("parallel", "workers")
# Words that may stand for a number, as which a parameter comes.
WORDS = {"attention_dropout": "checkpoint"}
_ADDED = "# Parameters"  # so the cell of papermill begins
IPYTHON_NAMES = frozenset({"In", "Out", "exit", "quit", "get_ipython", "open"})


class ParameterError(Told, ValueError):
    """A parameter has an unknown name or a value that cannot be; the message says which, why, and what to
    write."""


def check_types(instance: object) -> None:
    """Hold every field of a dataclass instance against its annotation.

    Understood annotations: int, float, str, bool, None, Any, Literal, unions, tuple, list, Sequence, dict,
    Mapping (with or without arguments) and classes. An int may stand where a float is annotated; a bool is no
    int; nan is no value. A list may stand for a Sequence, not for a tuple.

    Args:
        instance: a dataclass instance; annotations may be strings (`from __future__ import annotations`).

    Raises:
        ParameterError: names the field, its value and what to write instead.
    """
    for name, annotation in typing.get_type_hints(type(instance)).items():
        if hasattr(instance, name) and typing.get_origin(annotation) is not typing.ClassVar:
            _check(name, getattr(instance, name), annotation)


def check_like(name: str, value: object, default: object) -> None:
    """Hold a value against the type of a parameter's default. A default None takes anything, "auto" a number
    too, a float a whole number, and a tuple a list; a parameter in `WORDS` takes its word.

    Raises:
        ParameterError: as of `check_types`.
    """
    if name in WORDS and value == WORDS[name]:
        return
    if default is None or (default == "auto" and isinstance(value, int | float)):
        return
    try:
        _check(name, value, list if isinstance(default, tuple) else type(default))
    except ParameterError as fault:
        raise ParameterError(f"{fault}, or {WORDS[name]!r}") if name in WORDS else fault from None


def check_least(instance: object, least: int, *names: str) -> None:
    """Hold fields of a dataclass instance, by their names, against the least value that they may have.

    Raises:
        ParameterError: names the field, its value and the least.
    """
    for name in names:
        if (value := getattr(instance, name)) < least:
            raise ParameterError(f"{name} is {value}; it must be at least {least}")


def check_choice(instance: object, choices: Collection[str], *names: str) -> None:
    """Hold fields of a dataclass instance, by their names, against the values that they may have.

    Raises:
        ParameterError: names the field, its value and the choices.
    """
    for name in names:
        if (value := getattr(instance, name)) not in choices:
            raise ParameterError(f"{name} is {value!r}; choose one of {', '.join(choices)}")


def parameters_of(settings: Any) -> dict[str, Any]:
    """The fields of all parts of some settings, a dataclass of dataclasses, by their names."""
    parts = (getattr(settings, part.name) for part in dataclasses.fields(settings))
    return {name: value for part in parts for name, value in dataclasses.asdict(part).items()}


def with_those_of_before(parameters: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """The parameters of a run, which may be older than some of `names` are, with what it had of these:
    `dropout` was of attention weights too, and the checkpoint's where there was none."""
    values = dict(parameters)
    if "attention_dropout" in names and "attention_dropout" not in values:
        given = values.get("dropout")
        values["attention_dropout"] = "checkpoint" if given is None else given
    if "precision" in names:
        values.setdefault("precision", "auto")
    return values


def refuse_unknown(namespace: Mapping[str, object], allowed: Collection[str]) -> None:
    """Find misspelt notebook parameters, and those of the wrong type, from inside the notebook: call it as
    `refuse_unknown(globals(), allowed)`.

    Papermill injects parameters as plain globals, so any global that holds a simple literal and is not
    allowed is an unknown parameter. Where IPython's record of the executed cells (`In`) is at hand, only
    names count that a cell of nothing but literal assignments set, as a parameters cell is; so the loop
    variables of later cells do no harm when a person runs the notebook a second time in the same kernel.
    Papermill adds a cell of its own after the parameters cell; its values are held against the types of the
    defaults above it, so that no cell computes with a value that cannot be.

    Args:
        namespace: the user's globals.
        allowed: the names of the notebook's parameters.

    Raises:
        ParameterError: one line for each unknown name, with the closest allowed one, or for the first value
            of another type than its default.
    """
    known = set(allowed) | IPYTHON_NAMES
    names = [name for name, value in namespace.items() if _is_simple(value)]
    unknown = [name for name in names if name not in known and not name.startswith("_")]
    cells = namespace.get("In")
    if isinstance(cells, list) and any(cells):
        assigned = {name for cell in cells if isinstance(cell, str) for name in _literal_assignments(cell)}
        unknown = [name for name in unknown if name in assigned]
    if unknown:
        raise ParameterError("\n".join(_unknown_line(name, namespace[name], allowed) for name in unknown))
    for name, default in _defaults(cells if isinstance(cells, list) else []).items():
        if name in namespace:
            check_like(name, namespace[name], default)


Settings = typing.TypeVar("Settings")


def read_parameters(namespace: Mapping[str, Any], kind: type[Settings]) -> Settings:
    """The settings that a notebook's parameters make, from inside it: call it as `read_parameters(globals(),
    Settings)`. `kind`: a dataclass with a field for each parameter.

    Raises:
        ParameterError: an unknown name (see `refuse_unknown`), or what the settings refuse.
    """
    names = [field.name for field in dataclasses.fields(kind)]
    refuse_unknown(namespace, names)
    return kind(**{name: namespace[name] for name in names})


def _defaults(cells: Sequence[object]) -> dict[str, object]:
    """The values of the last cell of literals before a cell that papermill added; {} if it added none."""
    literal = [cell for cell in cells if isinstance(cell, str) and _literal_assignments(cell)]
    added = [number for number, cell in enumerate(literal) if cell.startswith(_ADDED)]
    if not added or not added[-1]:
        return {}
    defaults = {}
    for statement in ast.parse(literal[added[-1] - 1]).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            with contextlib.suppress(ValueError):  # arithmetic
                defaults[statement.targets[0].id] = ast.literal_eval(statement.value)
    return defaults


def closest_name(name: str, allowed: Collection[str]) -> str:
    """A hint for a name that is not among the allowed ones: "did you mean 'x'?", or the list of all."""
    close = difflib.get_close_matches(name, sorted(allowed), n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(allowed))}"


def _unknown_line(name: str, value: object, allowed: Collection[str]) -> str:
    return f"unknown parameter {name} = {value!r}: {closest_name(name, allowed)}"


def _is_simple(value: object) -> bool:
    """True for int, float, str, bool, None and lists, tuples, sets and dicts of them."""
    if isinstance(value, Mapping):
        return type(value) is dict and all(map(_is_simple, value)) and all(map(_is_simple, value.values()))
    if isinstance(value, list | tuple | set):
        return all(map(_is_simple, value))
    return value is None or isinstance(value, int | float | str)


def _literal_assignments(cell: str) -> list[str]:
    """The names that a cell assigns, if it does nothing but assign literals; else none."""
    try:
        statements = ast.parse(cell).body
    except SyntaxError:  # a cell with IPython magics is no parameters cell
        return []
    names: list[str] = []
    for statement in statements:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        targets = (
            statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        )
        value = getattr(statement, "value", None)
        if not all(isinstance(target, ast.Name) for target in targets) or not _is_literal(value):
            return []
        names += [target.id for target in targets if isinstance(target, ast.Name)]
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


def _check(where: str, value: Any, annotation: Any) -> None:
    """Raise ParameterError unless the value fits the annotation; `where` is "steps" or "factors[0][1]"."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is Any or isinstance(annotation, typing.TypeVar):
        return
    if origin is Literal:
        _check_choice(where, value, arguments)
    elif origin in (typing.Union, types.UnionType):
        _check_union(where, value, arguments)
    elif (origin or annotation) in (tuple, list, Sequence):
        _check_items(where, value, origin or annotation, arguments)
    elif (origin or annotation) in (dict, Mapping):
        _expect(isinstance(value, Mapping), where, value, "a mapping")
        for key, item in value.items():
            _check(f"the key {key!r} of {where}", key, arguments[0] if arguments else Any)
            _check(f"{where}[{key!r}]", item, arguments[1] if arguments else Any)
    elif annotation in (None, type(None)):
        _expect(value is None, where, value, "None")
    else:
        _check_plain(where, value, origin or annotation)


def _check_choice(where: str, value: Any, choices: tuple[Any, ...]) -> None:
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        listed = ", ".join(repr(choice) for choice in choices)
        raise ParameterError(f"{where} is {value!r}; it must be one of {listed}")


def _check_union(where: str, value: Any, members: tuple[Any, ...]) -> None:
    faults: list[ParameterError] = []
    for member in members:
        try:
            return _check(where, value, member)
        except ParameterError as fault:
            if member not in (None, type(None)):
                faults.append(fault)
    if len(faults) == 1:  # X | None: what X would have said is clearer
        raise faults[0]
    names = " | ".join(map(_member_name, members))
    raise ParameterError(f"{where} is {value!r} ({type(value).__name__}); it must be {names}")


def _member_name(member: Any) -> str:
    if typing.get_origin(member) is Literal:
        return " | ".join(map(repr, typing.get_args(member)))
    return "None" if member is type(None) else getattr(member, "__name__", str(member))


def _check_items(where: str, value: Any, kind: Any, arguments: tuple[Any, ...]) -> None:
    word = {tuple: "a tuple", list: "a list"}.get(kind, "a list or tuple")
    accepted = isinstance(value, list | tuple) if kind is Sequence else isinstance(value, kind)
    _expect(accepted, where, value, word)
    if kind is tuple and arguments and arguments[-1] is not Ellipsis:
        if len(value) != len(arguments):
            raise ParameterError(
                f"{where} is {value!r}; it must have {len(arguments)} items, not {len(value)}"
            )
        items = arguments
    else:
        items = (arguments[0] if arguments else Any,) * len(value)
    for number, (item, annotation) in enumerate(zip(value, items, strict=True)):
        _check(f"{where}[{number}]", item, annotation)


def _check_plain(where: str, value: Any, kind: Any) -> None:
    """A single value against a class; numbers as in the docstring of `check_types`."""
    if kind is bool or not isinstance(kind, type):
        _expect(isinstance(value, bool) or kind is not bool, where, value, "True or False")
    elif kind in (int, float):
        if isinstance(value, str):
            raise ParameterError(_text_for_number(where, value, kind))
        accepted = isinstance(value, int if kind is int else int | float) and not isinstance(value, bool)
        _expect(accepted, where, value, "a whole number" if kind is int else "a number")
        if value != value:
            raise ParameterError(f"{where} is nan, which is not a number")
    elif kind is str:
        way = f": write {value!r} in quotes, or with papermill -r {where} {value}"
        _expect(isinstance(value, str), where, value, f"text{way if isinstance(value, int | float) else ''}")
    else:
        _expect(isinstance(value, kind), where, value, f"a {kind.__name__}")


def _expect(accepted: bool, where: str, value: Any, expected: str) -> None:
    if not accepted:
        raise ParameterError(f"{where} is {value!r} ({type(value).__name__}); it must be {expected}")


def _text_for_number(where: str, text: str, kind: type) -> str:
    """Says that a number came as text; for 1e-4 also why, and how YAML wants it written."""
    expected = "a whole number" if kind is int else "a number"
    try:
        plain = format(Decimal(text), "f")
    except InvalidOperation:
        return f"{where} is the text {text!r}; it must be {expected}"
    mantissa, mark, exponent = text.strip().lower().partition("e")
    if not mark:
        return f"{where} is the text {text!r}; it must be {expected}: write {plain} without quotes"
    sign = exponent if exponent.startswith(("+", "-")) else f"+{exponent}"
    yaml = f"{mantissa if '.' in mantissa else mantissa + '.0'}e{sign}"
    also = f" or {yaml}" if kind is float else ""
    return (
        f"{where} is the text {text!r}, not a number: papermill -y reads {text} as text, write {plain}{also}"
    )
