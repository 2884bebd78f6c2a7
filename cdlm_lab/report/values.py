"""Values as JSON has them, and files that are written whole or not at all."""

from __future__ import annotations

import errno
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cdlm_lab.data.files import replaced_file
from cdlm_lab.told import Told

_HALF_PAIR = re.compile("[\ud800-\udfff]")


class RunError(Told, RuntimeError):
    """A run's folder or report cannot be used; the message says which, why, and what to do."""


def plain_score(score: Any, where: str) -> dict[str, Any]:
    """A score as a mapping with "value"; `where` begins the message if it is none.

    Raises:
        RunError: neither a number nor a mapping with "value"; and as in `plain`.
    """
    values = plain(score, where)
    if isinstance(values, int | float) and not isinstance(values, bool):
        return {"value": values}
    if not isinstance(values, dict) or "value" not in values:
        raise RunError(f"{where} is {score!r}; it must be a number, or a mapping with 'value'")
    return values


def plain(value: Any, where: str) -> Any:
    """The value as JSON has it: tuples become lists, paths text, scalars and arrays of NumPy plain numbers.

    Raises:
        RunError: nan, infinity, a number of more than 64 bits, text that UTF-8 cannot hold, a key that is not
            text, or something that JSON has not; it names the place.
    """
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str) or _HALF_PAIR.search(key):
                raise RunError(f"{where} has the key {key!r}; keys must be text")
        return {key: plain(item, f"{where}[{key!r}]") for key, item in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist(), where)
    if isinstance(value, list | tuple):
        return [plain(item, f"{where}[{number}]") for number, item in enumerate(value)]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise RunError(f"{where} is {value}, which is no score and not in JSON: find out where it comes from")
    if isinstance(value, int) and abs(value) >= 2**64:
        raise RunError(f"{where} has more than 64 bits: find out where it comes from")
    if isinstance(value, str) and _HALF_PAIR.search(value):
        raise RunError(
            f"{where} has half a surrogate pair, which is no character: find out where it comes from"
        )
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise RunError(f"{where} is {value!r} ({type(value).__name__}), which JSON has not")


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Whole or not at all."""
    with replaced_file(path) as file:
        json.dump(values, file, indent=2, ensure_ascii=False, allow_nan=False)
        file.write("\n")


@contextmanager
def kept(path: Path) -> Iterator[None]:
    """Says what to do if a file of a run cannot be written within.

    Raises:
        RunError: the disk is full, or the file may not be written.
    """
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        what = "the disk is full" if full else f"{error.strerror or error}"
        remedy = "free some space" if full else "see to it that it may be written, or choose another folder"
        told = f"{path} was not written: {what}; {remedy}, and give the same command again to go on"
        raise RunError(told) from error
