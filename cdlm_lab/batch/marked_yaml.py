"""YAML whose every value knows its line, so that a fault in a grid can be named by file and line.

Stricter than `yaml.safe_load`: a key that stands twice, a key that is no text, a date and a value that
contains itself are faults.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cdlm_lab.data.files import DataError, read_text
from cdlm_lab.parameters import closest_name

_KINDS = {dict: "a mapping (name: value)", list: "a list", str: "text"}
_MISSING = object()


class GridError(ValueError):
    """A grid cannot be run as it is written; one line says where, what is wrong, and what to do."""


@dataclass(frozen=True, kw_only=True)
class Given:
    """A value with the place where somebody wrote it, `file:line`."""

    value: Any
    where: str


class _Loader(yaml.SafeLoader):
    """Knows which mappings were looked through for keys that stand twice: what `<<` brings in is written into
    the mapping itself, where a key that it overrules then does stand twice."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.looked_through: set[int] = set()


class Section:
    """A mapping of a YAML file: values, and the lines they stand on.

    Args:
        file: that it is from.
        node: of the mapping.
        name: what messages call it: "the grid", "task pretrain".
        place: `file:line` of its name, if it has one.
    """

    def __init__(self, file: Path, node: yaml.Node, *, name: str, loader: _Loader, place: str = "") -> None:
        self.file, self.name, self._loader = file, name, loader
        self._place = place or f"{file}:{node.start_mark.line + 1}"
        if not isinstance(node, yaml.MappingNode):
            raise GridError(f"{self.where()}: {name} must be {_KINDS[dict]}")
        self._refuse_repeated(node)
        loader.flatten_mapping(node)  # what `<<: *anchor` brings in
        self._nodes = {loader.construct_object(key): (key, value) for key, value in node.value}

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __contains__(self, key: object) -> bool:
        return key in self._nodes

    def where(self, key: str | None = None) -> str:
        """`file:line` of a key, or of the mapping itself, which is that of its name."""
        if key is None:
            return self._place
        return f"{self.file}:{self._nodes[key][0].start_mark.line + 1}"

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
        value = self.given(key).value
        if not isinstance(value, kind):
            raise self.fault(key, f"{key} is {value!r}; it must be {_KINDS[kind]}")
        return value

    def given(self, key: str) -> Given:
        """The value of a key, with its place.

        Raises:
            GridError: it holds something that JSON has not, or itself.
        """
        return Given(value=self._plain(self._nodes[key][1], key, ()), where=self.where(key))

    def all(self) -> dict[str, Given]:
        """All keys with their values; raises as `given`."""
        return {key: self.given(key) for key in self}

    def section(self, key: str, *, name: str = "") -> Section:
        """The mapping under a key.

        Raises:
            GridError: there is something else.
        """
        inner = self._nodes[key][1]
        called = name or f"{self.name}: {key}"
        return Section(self.file, inner, name=called, loader=self._loader, place=self.where(key))

    def is_mapping(self, key: str) -> bool:
        """True if a mapping stands under the key."""
        return isinstance(self._nodes[key][1], yaml.MappingNode)

    def _refuse_repeated(self, node: yaml.MappingNode) -> None:
        if id(node) in self._loader.looked_through:
            return
        self._loader.looked_through.add(id(node))
        seen: set[str] = set()
        for key, value in node.value:
            place = f"{self.file}:{key.start_mark.line + 1}: {self.name}"
            if key.tag == "tag:yaml.org,2002:merge":
                for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    if isinstance(source, yaml.MappingNode):
                        self._refuse_repeated(source)
                continue
            name = self._loader.construct_object(key) if isinstance(key, yaml.ScalarNode) else None
            if not isinstance(name, str):
                shown = getattr(key, "value", "a list")
                raise GridError(f"{place}: {shown} is no name: write it in quotes")
            if name in seen:
                raise GridError(f"{place}: {name!r} stands here twice")
            seen.add(name)

    def _plain(self, node: yaml.Node, key: str, within: tuple[yaml.Node, ...]) -> Any:
        if node in within:
            raise self.fault(key, f"{key} contains itself")
        if isinstance(node, yaml.MappingNode):
            inner = Section(self.file, node, name=f"{self.name}: {key}", loader=self._loader)
            items = inner._nodes.items()
            return {name: inner._plain(value, name, (*within, node)) for name, (_, value) in items}
        if isinstance(node, yaml.SequenceNode):
            return [self._plain(item, key, (*within, node)) for item in node.value]
        value = self._loader.construct_object(node)
        if value is not None and not isinstance(value, bool | int | float | str):
            kind = type(value).__name__
            raise self.fault(key, f"YAML reads {node.value} as a {kind}: write it in quotes if it is text")
        return value


def read_section(path: str | os.PathLike[str], *, name: str) -> Section:
    """The mapping that a YAML file holds.

    Raises:
        GridError: the file is missing, empty, not UTF-8, not YAML, or holds something else.
    """
    file = Path(path)
    try:
        loader = _Loader(read_text(file))
        node = loader.get_single_node()
    except DataError as error:
        raise GridError(str(error)) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise GridError(f"{file}:{line}: not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise GridError(f"{file}:1: not YAML: {str(error).splitlines()[0]}") from None
    if node is None:
        raise GridError(f"{file}:1: there is nothing in {name}")
    return Section(file, node, name=name, loader=loader)
