"""Checked opening of corpus files: what is wrong, in which line, and what to do about it.

Files are UTF-8 text, plain or compressed (`.gz`, `.xz`). Lines end at "\\n" and nowhere else: news text holds
U+2028 and U+0085, at which `str.splitlines` would break a record in two.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

COMPRESSED = (".gz", ".xz")
_BLOCK = 1 << 20  # bytes read at once for a checksum
_DAMAGED = (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error)


class DataError(ValueError):
    """A fault in a corpus file: `file:line: field ...: what; remedy`, on one line.

    Attributes:
        path: the file or folder.
        line: number from 1; 1 as well for a fault of the file as a whole.
        field: the part of the record at fault, "file" or "folder" for the whole.
    """

    def __init__(
        self, path: str | Path, what: str, remedy: str, *, line: int = 1, field: str = "file"
    ) -> None:
        super().__init__(f"{path}:{line}: field {field}: {what}; {remedy}".replace("\n", " "))
        self.path, self.line, self.field = Path(path), line, field


def plain_name(path: str | Path) -> str:
    """Name of a file without `.gz` or `.xz`: "train.txt.src" for "x/train.txt.src.gz"."""
    path = Path(path)
    return path.stem if path.suffix in COMPRESSED else path.name


def plain_stem(path: str | Path) -> str:
    """Name of a file up to its first dot: "train" for "x/train.txt.src.gz"."""
    return plain_name(path).partition(".")[0]


def read_lines(path: str | Path, *, allow_empty: bool = False) -> Iterator[tuple[int, str]]:
    """Lines of a text file with their numbers from 1, without line ends, one at a time.

    A byte order mark and the carriage returns of Windows are dropped. `allow_empty`: a file of nothing but
    white space is no fault.

    Raises:
        DataError: the file is missing, a folder, unreadable, damaged, empty, binary (has a NUL byte) or not
            UTF-8.
    """
    path = Path(path)
    filled, number, start = allow_empty, 0, 0
    with open_bytes(path) as stream:
        while raw := _next_line(stream, path, number + 1):
            number += 1
            text = _decode(raw, path, line=number, start=start).rstrip("\n").removesuffix("\r")
            text = text.removeprefix("\ufeff") if number == 1 else text
            start += len(raw)
            filled = filled or bool(text.strip())
            yield number, text
    if not filled:
        raise DataError(path, "the file is empty", "fill it, or take it out of the corpus")


def read_text(path: str | Path, *, allow_empty: bool = False) -> str:
    """The whole of a text file, lines joined by "\\n". Raises as `read_lines`."""
    return "\n".join(line for _, line in read_lines(path, allow_empty=allow_empty))


def open_bytes(path: str | Path) -> IO[bytes]:
    """A file opened for reading, decompressed by its name.

    Raises:
        DataError: the file is missing, a folder, or may not be read.
    """
    path = Path(path)
    try:
        if path.suffix == ".gz":
            return gzip.open(path, "rb")
        return lzma.open(path, "rb") if path.suffix == ".xz" else path.open("rb")
    except FileNotFoundError:
        raise DataError(path, "there is no such file", "check the spelling of the path") from None
    except IsADirectoryError:
        raise DataError(path, "this is a folder, not a file", "give the path of a file in it") from None
    except OSError as error:
        raise _unreadable(path, error) from None


@contextmanager
def replaced_file(path: Path, *, binary: bool = False) -> Iterator[IO]:
    """A file to write that takes the place of `path` once all of it is on the disk; if anything fails,
    `path` stays as it was. Text is UTF-8 with line feeds."""
    temporary = path.with_name(f".{path.name}.unfinished")
    form = {"mode": "wb"} if binary else {"mode": "w", "encoding": "utf-8", "newline": "\n"}
    try:
        with open(temporary, **form) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def sha256_of_file(path: str | Path) -> str:
    """Hexadecimal SHA-256 of a file as it lies on disk, compressed or not; the number `sha256sum` prints.

    Raises:
        DataError: the file is missing or may not be read.
    """
    digest = hashlib.sha256()
    try:
        with Path(path).open("rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
    except FileNotFoundError:
        raise DataError(path, "there is no such file", "check the spelling of the path") from None
    except OSError as error:
        raise _unreadable(path, error) from None
    return digest.hexdigest()


def _next_line(stream: IO[bytes], path: Path, line: int) -> bytes:
    try:
        return stream.readline()
    except _DAMAGED as error:
        what = f"the compressed file is damaged or cut off ({error})"
        raise DataError(path, what, "copy or download it again", line=line) from None
    except OSError as error:
        raise _unreadable(path, error, line=line) from None


def _decode(raw: bytes, path: Path, *, line: int, start: int) -> str:
    """Text of one line that starts at byte `start` of the (decompressed) file."""
    if (place := raw.find(b"\0")) >= 0:
        remedy = "save it as plain UTF-8 text (files in UTF-16 look like this too)"
        field = f"byte {start + place}"
        raise DataError(path, "a NUL byte, so this is a binary file", remedy, line=line, field=field)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        what = f"0x{raw[error.start]:02x} is not UTF-8"
        remedy = f"convert the file, for example: iconv -f WINDOWS-1252 -t UTF-8 {path.name}"
        field = f"byte {start + error.start}"
        raise DataError(path, what, remedy, line=line, field=field) from None


def _unreadable(path: str | Path, error: OSError, *, line: int = 1) -> DataError:
    what = f"the file cannot be read ({error.strerror or error})"
    return DataError(path, what, "check its permissions and the disk", line=line)
