"""Fixtures of the reader tests: files written on the spot, and complaints word by word. Puts this folder on
the path, so that test_files_damaged finds valid_inputs.py."""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cdlm_lab.data.files import DataError

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """write(name, content): a file below tmp_path, with the folders it needs."""

    def _write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return _write


@pytest.fixture(scope="session")
def complains() -> Callable[..., object]:
    """complains(path, line, field, what, remedy): a context that must raise exactly this complaint."""

    @contextmanager
    def _complains(path: Path, line: int, field: str, what: str, remedy: str) -> Iterator[None]:
        expected = f"{path}:{line}: field {field}: {what}; {remedy}"
        with pytest.raises(DataError, match=f"^{re.escape(expected)}$"):
            yield

    return _complains
