"""Checked opening of corpus files: what is wrong, in which line, and what to do about it.

Files are UTF-8 text, plain or compressed (`.gz`, `.xz`). Lines end at "\\n" and nowhere else: news text holds
U+2028 and U+0085, at which `str.splitlines` would break a record in two. A line has a greatest length, and a
compressed file a greatest size, so that no file of a few kilobytes can fill the memory.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from cdlm_lab.told import Told

COMPRESSED = (".gz", ".xz")
LONGEST_LINE = 1 << 26  # bytes of a line; the longest cluster of Multi-News has half a million
LONGEST_TEXT = 1 << 30  # of a line of a file read as a whole; HotpotQA's training set is one of 0.6 GB
_MOST_UNPACKED = 200  # times its size on the disk, once that is more than LONGEST_LINE; text has 3 to 20
_LONGEST_NOTE = 400  # characters of a part of a complaint, which may quote a file
_NAMED = 5  # of the things that are passed over
_BLOCK = 1 << 20  # bytes read at once for a checksum
_DAMAGED = (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error)


class DataError(Told, ValueError):
    """A fault in a corpus file: `file:line: field ...: what; remedy`, on one line.

    Attributes:
        path: the file or folder.
        line: number from 1; 1 as well for a fault of the file as a whole.
        field: the part of the record at fault, "file" or "folder" for the whole.
    """

    def __init__(
        self, path: str | Path, what: str, remedy: str, *, line: int = 1, field: str = "file"
    ) -> None:
        said = f"{path}:{line}: field {_cut(field)}: {_cut(what)}; {remedy}"
        super().__init__(printable(said))
        self.path, self.line, self.field = Path(path), line, field


def printable(text: str) -> str:
    """A text on one line that every terminal and every file takes: white space as spaces, and as escapes
    control characters and what is no character in UTF-8, as Python has it in the names of some files."""
    return "".join(
        character if character.isprintable() else " " if character.isspace() else ascii(character)[1:-1]
        for character in text
    )


def named(places: Sequence[str]) -> str:
    """How many there are, and the first few of them: "3: a.md, b/c.html, d.pdf", or "none"."""
    if not places:
        return "none"
    more = f" and {len(places) - _NAMED:,} more" if len(places) > _NAMED else ""
    return f"{len(places):,}: {', '.join(map(printable, places[:_NAMED]))}{more}"


def plain_name(path: str | Path) -> str:
    """Name of a file without `.gz` or `.xz`: "train.txt.src" for "x/train.txt.src.gz"."""
    path = Path(path)
    return path.stem if path.suffix in COMPRESSED else path.name


def plain_stem(path: str | Path) -> str:
    """Name of a file up to its first dot: "train" for "x/train.txt.src.gz"."""
    return plain_name(path).partition(".")[0]


def read_lines(
    path: str | Path, *, allow_empty: bool = False, longest: int = LONGEST_LINE
) -> Iterator[tuple[int, str]]:
    """Lines of a text file with their numbers from 1, without line ends, one at a time.

    A byte order mark and the carriage returns of Windows are dropped. `allow_empty`: a file of nothing but
    white space is no fault. `longest`: bytes that a line may have.

    Raises:
        DataError: the file is missing, a folder, a pipe or a device, unreadable, damaged, empty, binary (has
            a NUL byte) or not UTF-8; a line is too long; a compressed file unpacks to more than text does.
    """
    path = Path(path)
    filled, number, start = allow_empty, 0, 0
    with open_bytes(path) as stream:
        most = _most_unpacked(path)
        while raw := _next_line(stream, path, number + 1, longest=longest, left=most - start):
            number += 1
            text = _decode(raw, path, line=number, start=start).rstrip("\n").removesuffix("\r")
            text = text.removeprefix("\ufeff") if number == 1 else text
            start += len(raw)
            filled = filled or bool(text.strip())
            yield number, text
    if not filled:
        raise DataError(path, "the file is empty", "fill it, or take it out of the corpus")


def read_text(path: str | Path, *, allow_empty: bool = False) -> str:
    """The whole of a text file, lines joined by "\n". Raises as `read_lines`; lines may be longer."""
    return "\n".join(line for _, line in read_lines(path, allow_empty=allow_empty, longest=LONGEST_TEXT))


def open_bytes(path: str | Path, *, packed: bool = False) -> IO[bytes]:
    """A file opened for reading, decompressed by its name, or `packed` as it lies on the disk.

    Raises:
        DataError: the file is missing, not a file but a folder, a pipe or a device, or may not be read; its
            path is not UTF-8.
    """
    path = checked_path(path)
    try:
        if not stat.S_ISREG(mode := path.stat().st_mode):
            if stat.S_ISDIR(mode):
                raise DataError(path, "this is a folder, not a file", "give the path of a file in it")
            what = "this is a pipe, a socket or a device, not a file"
            raise DataError(path, what, "write what it gives into a file")
        if path.suffix == ".gz" and not packed:
            return gzip.open(path, "rb")
        return lzma.open(path, "rb") if path.suffix == ".xz" and not packed else path.open("rb")
    except FileNotFoundError:
        raise DataError(path, "there is no such file", "check the spelling of the path") from None
    except OSError as error:
        raise _unreadable(path, error) from None


def checked_path(path: str | Path) -> Path:
    """A path that can be written down: in reports, in messages, and as the name of what is in it.

    Raises:
        DataError: it is not UTF-8, or holds a NUL.
    """
    if "\0" in str(path):
        raise DataError(path, "a path cannot hold a NUL", "check the spelling of the path", field="path")
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        what = "the path is not UTF-8, as some archives write names of other languages"
        raise DataError(path, what, "rename the file or folder", field="path") from None
    return Path(path)


def home_path(path: str | Path) -> Path:
    """A path in which a "~" at the start means a home folder.

    Raises:
        DataError: nobody is called so, and as `checked_path`.
    """
    try:
        return checked_path(path).expanduser()
    except RuntimeError:
        what, remedy = "no home folder of that name is known", "write the path without ~"
        raise DataError(path, what, remedy, field="path") from None


def entries(folder: str | Path) -> list[Path]:
    """What is in a folder, by name, less what is hidden by a name that begins with a dot.

    Raises:
        DataError: there is no such folder, or it may not be read.
    """
    try:
        return sorted(path for path in Path(folder).iterdir() if not path.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(folder, "there is no such folder", "check the path", field="folder") from None
    except OSError as error:
        raise _unreadable(folder, error) from None


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
    with open_bytes(path, packed=True) as stream:
        try:
            while block := stream.read(_BLOCK):
                digest.update(block)
        except OSError as error:
            raise _unreadable(path, error) from None
    return digest.hexdigest()


def _cut(text: str) -> str:
    half = _LONGEST_NOTE // 2
    return text if len(text) <= _LONGEST_NOTE else f"{text[:half]}...{text[-half:]}"


def _most_unpacked(path: Path) -> int:
    """Bytes that a file may hold; any number if they lie on the disk as they are."""
    plain = path.suffix not in COMPRESSED
    return sys.maxsize if plain else max(LONGEST_LINE, _MOST_UNPACKED * path.stat().st_size)


def _next_line(stream: IO[bytes], path: Path, line: int, *, longest: int, left: int) -> bytes:
    """At most `longest` bytes, and no more than are `left` to the file."""
    try:
        raw = stream.readline(min(longest, left) + 1)
    except _DAMAGED as error:
        what = f"the compressed file is damaged or cut off ({error})"
        raise DataError(path, what, "copy or download it again", line=line) from None
    except OSError as error:
        raise _unreadable(path, error, line=line) from None
    if len(raw) > left:
        what = f"the compressed file unpacks to more than {_MOST_UNPACKED} times its size, as no text does"
        raise DataError(path, what, "unpack it yourself, if it is what you want to read", line=line)
    if len(raw) > longest:
        what = f"longer than {longest:,} bytes"
        raise DataError(path, what, "break it into several lines", line=line, field="line")
    return raw


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
