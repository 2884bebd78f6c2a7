"""Files that are one JSON value as a whole, with the line in every complaint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from cdlm_lab.data.files import DataError, read_text
from cdlm_lab.data.json_lines import JsonRecord, kind_of, parse_json


def read_json(path: Path) -> tuple[str, object]:
    """The text of a file, decompressed, and what it says.

    Raises:
        DataError: as `read_text` and `json_lines.parse_json`.
    """
    source = read_text(path)
    return source, parse_json(source, path)


def read_json_list(path: Path) -> Iterator[tuple[JsonRecord, object]]:
    """Each element of a file that holds one list, and a record without fields that knows the line at which
    the element starts.

    Raises:
        DataError: as `read_json`, and for another value than a list.
    """
    source, value = read_json(path)
    if not isinstance(value, list):
        raise DataError(path, f"{kind_of(value)} where a list belongs", "write it as [{...}, ...]")
    decode, position = json.JSONDecoder().raw_decode, source.index("[") + 1
    line, counted = 1, 0
    for item in value:
        while source[position] in " \t\r\n,":
            position += 1
        line, counted = line + source.count("\n", counted, position), position
        yield JsonRecord(path=path, line=line, fields={}), item
        _, position = decode(source, position)
