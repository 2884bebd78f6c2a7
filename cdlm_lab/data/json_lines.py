"""JSON, and records from files of one JSON object a line, with the line and the field in every complaint."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cdlm_lab.data.files import DataError, read_lines
from cdlm_lab.data.records import Document

_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}


_LONE_REMEDY = "remove the lone \\ud... escape"
# A text, with what makes it a key, or the border of an object; what is matched is never given up again.
_KEY_OR_BORDER = re.compile(r'(?P<text>"[^"\\]*+(?:\\.[^"\\]*+)*+")(?P<colon>\s*+:)?|[{}]', re.DOTALL)


class _FaultyKeyError(Exception):
    """An object has a key twice, or one that is not UTF-8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonRecord:
    """An object of a JSON line, or one inside it.

    Attributes:
        path, line: where it stands.
        fields: what it holds, as parsed.
        within: the way to it from the line, "documents[2]." for the third of a list, "" for the line itself.
    """

    path: Path
    line: int
    fields: dict[str, object]
    within: str = ""

    def error(self, field: str, what: str, remedy: str) -> DataError:
        """A complaint about one of the record's fields, to be raised."""
        return DataError(self.path, what, remedy, line=self.line, field=f"{self.within}{field}")

    def text(self, field: str) -> str:
        """A field that must be a text. Raises DataError if it is missing or something else."""
        if field not in self.fields:
            raise self.error(field, "missing", f'add "{field}": "..." to the record')
        return self.checked_text(field, self.fields[field])

    def optional_text(self, field: str) -> str | None:
        """A field that may be missing or null. Raises DataError if it is neither that nor a text."""
        value = self.fields.get(field)
        return None if value is None else self.checked_text(field, value)

    def items(self, field: str) -> list[object]:
        """A field that must be a list with at least one item. Raises DataError if it is not."""
        if field not in self.fields:
            raise self.error(field, "missing", f'add "{field}": [...] to the record')
        value = self.fields[field]
        if not isinstance(value, list):
            raise self.error(field, f"{kind_of(value)} where a list belongs", "write it as [...]")
        if not value:
            raise self.error(field, "an empty list", "a cluster needs documents; add some or delete the line")
        return value

    def record(self, field: str, value: object) -> JsonRecord:
        """`value`, found at `field`, as a record of its own. Raises DataError if it is not an object."""
        if not isinstance(value, dict):
            raise self.error(field, f"{kind_of(value)} where an object belongs", "write it as {...}")
        return JsonRecord(path=self.path, line=self.line, fields=value, within=f"{self.within}{field}.")

    def checked_text(self, field: str, value: object) -> str:
        """`value`, found at `field`. Raises DataError if it is not a text or cannot be written as UTF-8."""
        if not isinstance(value, str):
            raise self.error(field, f"{kind_of(value)} where a text belongs", "put it in quotes")
        if not _is_whole(value):
            place = next(place for place, one in enumerate(value) if "\ud800" <= one <= "\udfff")
            raise self.error(field, f"half a surrogate pair at character {place}", _LONE_REMEDY)
        return value


def read_json_lines(path: str | Path) -> Iterator[JsonRecord]:
    """Objects of a JSON-lines file, one at a time; blank lines are passed over.

    Raises:
        DataError: a line is not a JSON object, and as `files.read_lines`.
    """
    for number, line in read_lines(path):
        if line.strip():
            yield _parse(line, Path(path), number)


def checked_filled(record: JsonRecord, field: str, documents: tuple[Document, ...]) -> tuple[Document, ...]:
    """`documents`, found at `field` of the record. Raises DataError if none of them has any text."""
    if not any(document.text.strip() for document in documents):
        raise record.error(field, "no document has any text", "fill one in, or delete the line")
    return documents


def kind_of(value: object) -> str:
    """What a parsed JSON value is, in words: "a list", "a number"."""
    return _KINDS[type(value)]


def parse_json(
    source: str, path: str | Path, *, line: int = 1, field: str = "file", remedy: str = "complete the file"
) -> object:
    """What a JSON text says. Every reader parses here, so that no reader takes the last of two values of a
    key for the only one.

    Args:
        line: number of its first line in the file.
        field, remedy: for the complaint about what is no JSON.

    Raises:
        DataError: it is not JSON, or an object has a key twice or one that is not UTF-8.
    """
    try:
        return json.loads(source, object_pairs_hook=_fields)
    except json.JSONDecodeError as error:
        what, line = f"not JSON ({error.msg})", line + error.lineno - 1
        raise DataError(path, what, remedy, line=line, field=f"column {error.colno}") from None
    except _FaultyKeyError:
        key, place, what, remedy = _faulty_key(source)
        line += source.count("\n", 0, place)
        raise DataError(path, what, remedy, line=line, field=ascii(key)) from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, endless nesting
        remedy = "write plain records: texts, numbers and lists of them"
        raise DataError(path, f"not JSON ({error})", remedy, line=line, field=field) from None


def _fields(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs) or not _is_whole("".join(fields)):
        raise _FaultyKeyError
    return fields


def _faulty_key(source: str) -> tuple[str, int, str, str]:
    """The first key that its object has already, or that is not UTF-8; where it stands, what is wrong, what
    to do. Up to there the source is JSON."""
    objects: list[set[str]] = []
    for found in _KEY_OR_BORDER.finditer(source):
        if found[0] == "{":
            objects.append(set())
        elif found[0] == "}":
            objects.pop()
        elif found["colon"]:
            key = json.loads(found["text"])
            if key in objects[-1]:
                return key, found.start(), "the key is given twice", "keep one of the two"
            if not _is_whole(key):
                return key, found.start(), "half a surrogate pair in the key", _LONE_REMEDY
            objects[-1].add(key)
    raise AssertionError("all keys are as they should be")


def _is_whole(text: str) -> bool:
    """Whether all surrogates are in pairs; JSON can name each half by itself."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _parse(line: str, path: Path, number: int) -> JsonRecord:
    remedy = "write one complete JSON object on each line"
    value = parse_json(line, path, line=number, field="line", remedy=remedy)
    if not isinstance(value, dict):
        what = f"{kind_of(value)} where an object belongs"
        raise DataError(path, what, "write each cluster as {...}", line=number, field="line")
    return JsonRecord(path=path, line=number, fields=value)
