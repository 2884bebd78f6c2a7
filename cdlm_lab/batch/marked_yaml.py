"""YAML 1.2 whose every key knows its line, so that a fault in a grid can be named by file and line.

It holds what JSON has, and no more: a date, a tag, a key that is no text and a number without end are faults,
as is a key that stands twice. Anchors and `<<` may be used, as long as what they make is not vast.

YAML 1.1, by which papermill reads the files of its `-f`, understands some values otherwise: there 1e-4 is
text, 012 is 10, 1:30 is 90, and yes is True.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import ConstructorError, SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, StreamMark, YAMLError
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode

from cdlm_lab.data.files import DataError, read_text
from cdlm_lab.parameters import closest_name

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
            what = "it holds a NUL or half a surrogate pair, which no file has: remove \\0 or \\ud..."
            raise _fault(node, what)
        return value

    def construct_undefined(self, node: Node) -> None:
        """A value that JSON has not."""
        remedy = "write it in quotes if it is text" if isinstance(node, ScalarNode) else "leave the tag out"
        raise _fault(node, f"YAML reads {_shown(node)} as a {_kind(node)}: {remedy}")


_Constructor.add_default_constructor("map")
_Constructor.add_constructor(None, _Constructor.construct_undefined)


class Section:
    """A mapping of a YAML file: values, and the lines they stand on. Messages call it by its name; `place`:
    `file:line` of that, if it has one."""

    def __init__(self, file: Path, values: object, *, name: str, place: str = "") -> None:
        self.file, self.name = file, name
        self._place = place or f"{file}:{getattr(values, 'line', 1)}"
        if not isinstance(values, _Marked):
            raise GridError(f"{self._place}: {name} must be {_KINDS[dict]}")
        self._values = values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def where(self, key: str | None = None) -> str:
        """`file:line` of a key, or of the mapping itself, which is that of its name."""
        return self._place if key is None else f"{self.file}:{self._values.lines[key]}"

    def fault(self, key: str | None, what: str) -> GridError:
        """An error about a key: `file:line: task pretrain: what`."""
        return GridError(f"{self.where(key)}: {self.name}: {what}")

    def allow(self, keys: Collection[str]) -> None:
        """Refuse all other keys."""
        for key in self:
            if key not in keys:
                raise self.fault(key, f"nothing is called {key!r} here: {closest_name(key, keys)}")

    def take(self, key: str, kind: type, default: Any = _MISSING) -> Any:
        """The value of a key, which must be of a kind; `default`, if any, where the key is not there."""
        if key not in self and default is _MISSING:
            raise self.fault(None, f"{key!r} is missing")
        if key not in self:
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
        """The mapping under a key; anything else is refused."""
        called = name or f"{self.name}: {key}"
        return Section(self.file, self._values[key], name=called, place=self.where(key))

    def mapping(self, key: str) -> dict[str, Given]:
        """What the mapping under a key holds; {} if the key is not there."""
        return self.section(key).all() if key in self else {}


def read_section(path: str | os.PathLike[str], *, name: str) -> Section:
    """The mapping that a YAML file holds; GridError if it holds something else, or cannot be read."""
    file = Path(path)
    try:
        values = read_yaml(read_text(file), where=str(file))
    except DataError as error:
        raise GridError(str(error)) from None
    if values is None:
        raise GridError(f"{file}:1: there is nothing in {name}")
    return Section(file, values, name=name)


def read_yaml(text: str, *, where: str) -> Any:
    """What a text in YAML says; None if nothing. Raises GridError if it is not YAML, or says what JSON could
    not; `where` begins the message, before the line."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Constructor, yaml.max_depth = _Constructor, _DEEPEST
    root = None
    try:
        constructor, _ = yaml.get_constructor_parser(text)
        constructor.composer.warn_double_anchors = False
        root = constructor.composer.get_single_node()
        if root is None:
            return None
        _check_aliases(root)
        return constructor.construct_document(root)
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


def _check_aliases(root: Node) -> None:
    """Refuse aliases that hold themselves, and those that make a vast deal of little."""
    sizes: dict[int, tuple[int, int]] = {}  # id of a node -> values, levels; 0 while it is looked at

    def measure(node: Node) -> tuple[int, int]:
        if (known := sizes.get(id(node))) is not None:
            if not known[0]:
                raise _fault(node, "this contains itself: write what is meant in place of its alias (*name)")
            return known
        sizes[id(node)] = (0, 0)
        inside = node.value if isinstance(node, CollectionNode) else []
        if isinstance(node, MappingNode):
            inside = [inner for pair in node.value for inner in pair]
        inner_sizes = [measure(inner) for inner in inside]
        values = 1 + sum(size for size, _ in inner_sizes)
        levels = 1 + max((deep for _, deep in inner_sizes), default=0)
        if values > _MOST or levels > _DEEPEST:
            limit = f"{_MOST} values" if values > _MOST else f"{_DEEPEST} levels"
            raise _fault(node, f"more than {limit} with all that its aliases (*name) stand for: write less")
        sizes[id(node)] = (values, levels)
        return values, levels

    measure(root)


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
