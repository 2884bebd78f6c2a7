"""Fixtures for tests of readers: temporary files, and exact error messages."""

import gzip
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cdlm_lab.data.files import DataError


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """`write(name, content)` writes a file below tmp_path, with its folders, compressed if the name ends in
    .gz. Content other than text is written as JSON: one object, or the list of objects of a .jsonl."""

    def _write(name: str, content: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, str | bytes):
            lines = content if ".jsonl" in name else [content]
            content = "".join(json.dumps(line) + "\n" for line in lines)
        if isinstance(content, str):
            content = gzip.compress(content.encode()) if name.endswith(".gz") else content.encode()
        path.write_bytes(content)
        return path

    return _write


@pytest.fixture(scope="session")
def refused() -> Callable[..., object]:
    """`refused(path, "line: field: what; remedy")` is a context that must raise exactly this DataError."""

    @contextmanager
    def _refused(path: Path, message: str) -> Iterator[None]:
        line, _, rest = message.partition(": ")
        with pytest.raises(DataError, match=f"^{re.escape(f'{path}:{line}: field {rest}')}$"):
            yield

    return _refused
