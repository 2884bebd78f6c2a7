"""YAML 1.2 that records the line of every key, so that errors in a grid are reported with file and line.

Only values that JSON has are allowed: dates, tags, keys other than text and infinite numbers are errors, as
are duplicate keys. Anchors and `<<` are allowed, as long as their expansion is not too large.

YAML 1.1, by which papermill reads the files of its `-f`, interprets some values differently: there 1e-4 is
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
_DEEPEST, _MOST = 50, 100_000  # most nested levels; most values, with aliases expanded
_LONGEST = 40  # characters of a value that a message shows
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")


class GridError(ValueError):
    """A grid cannot be run as written. The message, one line, says where, what is wrong and what to do."""


@dataclass(frozen=True, kw_only=True)
class Given:
    """A value, and `where` it was written, as `file:line`."""

    value: Any
    where: str


class _Marked(dict):
    """A mapping with its own line number and those of its keys."""

    def __init__(self, line: int) -> None:
        self.line, self.lines = line, dict[str, int]()


class _Constructor(SafeConstructor):
    """Constructs `_Marked` from mappings, and from scalars only values that JSON has."""

    yaml_constructors = SafeConstructor.yaml_constructors | dict.fromkeys(
        (f"tag:yaml.org,2002:{name}" for name in ("binary", "timestamp", "omap", "pairs", "set")),
        lambda self, node: self.construct_undefined(node),
    )

    def construct_yaml_map(self, node: MappingNode) -> Iterator[_Marked]:
        """Construct a mapping; keys merged by `<<` have the lines where they are written."""
        marked = _Marked(node.start_mark.line + 1)
        yield marked
        self.flatten_mapping(node)  # merges the mappings of `<<`
        for key, _ in node.value:
            name = self.construct_object(key) if isinstance(key, ScalarNode) else None
            if not isinstance(name, str):
                raise _fault(key, f"{_shown(key)} is no name: write it in quotes")
            marked.lines[name] = key.start_mark.line + 1
        marked.update(self.construct_mapping(node))

    def construct_non_recursive_object(self, node: Node, tag: str | None = None) -> Any:
        """Construct a value; errors, non-finite or too large numbers and unwritable texts are refused."""
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
        """Refuse a value that JSON does not have."""
        remedy = "write it in quotes if it is text" if isinstance(node, ScalarNode) else "leave the tag out"
        raise _fault(node, f"YAML reads {_shown(node)} as a {_kind(node)}: {remedy}")


_Constructor.add_default_constructor("map")
_Constructor.add_constructor(None, _Constructor.construct_undefined)


class Section:
    """A mapping of a YAML file with its values and their line numbers. `name`: what messages call it;
    `place`: the `file:line` of this name, if it has one."""

    def __init__(self, file: Path, values: object, *, name: str, place: str = "") -> None:
        self.file, self.name = file, name
        self._place = place or f"{file}:{getattr(values, 'line', 1)}"
        if not isinstance(values, _Marked):
            raise GridError(f"{self._place}: {name} must be {_KINDS[dict]}")
        self._values = values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def where(self, key: str | None = None) -> str:
        """Return the `file:line` of a key, or, without one, of the mapping's own name."""
        return self._place if key is None else f"{self.file}:{self._values.lines[key]}"

    def fault(self, key: str | None, what: str) -> GridError:
        """Return an error about a key, with the message `file:line: task pretrain: what`."""
        return GridError(f"{self.where(key)}: {self.name}: {what}")

    def allow(self, keys: Collection[str]) -> None:
        """Raise GridError if the mapping has other keys than these."""
        for key in self:
            if key not in keys:
                raise self.fault(key, f"nothing is called {key!r} here: {closest_name(key, keys)}")

    def take(self, key: str, kind: type, default: Any = _MISSING) -> Any:
        """Return the value of a key, of type `kind`, or the default for a missing key; else GridError."""
        if key not in self and default is _MISSING:
            raise self.fault(None, f"{key!r} is missing")
        if key not in self:
            return default
        value = self._values[key]
        if not isinstance(value, kind):
            raise self.fault(key, f"{key} is {value!r}; it must be {_KINDS[kind]}")
        return value

    def given(self, key: str) -> Given:
        """Return the value of a key with its `file:line`."""
        return Given(value=self._values[key], where=self.where(key))

    def all(self) -> dict[str, Given]:
        """Return all keys with their values and places."""
        return {key: self.given(key) for key in self}

    def section(self, key: str, *, name: str = "") -> Section:
        """Return the mapping under a key. Raises GridError if the value is no mapping."""
        called = name or f"{self.name}: {key}"
        return Section(self.file, self._values[key], name=called, place=self.where(key))

    def mapping(self, key: str) -> dict[str, Given]:
        """Return the values of the mapping under a key; {} if the key is missing."""
        return self.section(key).all() if key in self else {}


def read_section(path: str | os.PathLike[str], *, name: str) -> Section:
    """Read a YAML file that holds a mapping. Raises GridError if it holds another value or is unreadable."""
    file = Path(path)
    try:
        values = read_yaml(read_text(file), where=str(file))
    except DataError as error:
        raise GridError(str(error)) from None
    if values is None:
        raise GridError(f"{file}:1: there is nothing in {name}")
    return Section(file, values, name=name)


def read_yaml(text: str, *, where: str) -> Any:
    """Parse a text in YAML; None if it is empty. Raises GridError if it is not YAML or has values that JSON
    does not have; the message begins with `where` and the line."""
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
    except YAMLError as error:  # a character that YAML does not allow
        line, way = text.count("\n", 0, getattr(error, "position", 0)) + 1, "not YAML: "
        what = str(error).partition("\n")[0]
    except (ValueError, LookupError, ArithmeticError, AssertionError) as error:  # %YAML 1.3, "\U99999999"
        line, way, what = yaml.reader.line + 1, "not YAML: ", f"this cannot be read ({error})"
    raise GridError(f"{where}:{line}: {way}{' '.join(what.split())}")


def _check_aliases(root: Node) -> None:
    """Refuse aliases that contain themselves, and those that expand to too many values or levels."""
    sizes: dict[int, tuple[int, int]] = {}  # id of a node -> (values, levels); (0, 0) while it is measured

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
    """Yield the keys on the path from the root to a place in the text."""
    for _ in range(_DEEPEST):  # limited, as a node may contain itself
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
