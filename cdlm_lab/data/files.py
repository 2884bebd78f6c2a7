"""Read corpus files with checks; errors say what is wrong, in which line, and what to do about it.

Files are UTF-8 text, plain or compressed (`.gz`, `.xz`). Lines end at "\n" and nowhere else: news text holds
U+2028 and U+0085, at which `str.splitlines` would break a record in two. JSON is checked
strictly by pydantic: each format declares its fields as a subclass of `Fields`.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import os
import re
import shutil
import stat
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from functools import cache
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import IO, Annotated, Any, Generic, TypeVar

import numpy as np
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Strict,
    TypeAdapter,
    ValidationError,
)

from cdlm_lab.errors import PlainError
from cdlm_lab.progress import tracked

COMPRESSED = (".gz", ".xz")
_LONGEST_NOTE = 400  # characters of a part of a message, which may quote a file
_NAMED = 5  # number of skipped files that a message names
_DAMAGED = (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error)


class DataError(PlainError, ValueError):
    """A fault in a corpus file: `file:line: field ...: what; remedy`, on one line.

    `line` is 1 for a fault of the file as a whole; `field` is then "file" or "folder".
    """

    def __init__(
        self, path: str | Path, what: str, remedy: str, *, line: int = 1, field: str = "file"
    ) -> None:
        super().__init__(printable(f"{path}:{line}: field {_cut(field)}: {_cut(what)}; {remedy}"))
        self.path, self.line, self.field, self.what = Path(path), line, field, what


def shipped_path(*parts: str) -> Path:
    """The path of what comes with the project, such as `notebooks`: in a clone it lies beside the package, in
    a wheel inside of it."""
    package = Path(__file__).resolve().parents[1]
    is_clone = (package.parent / "pyproject.toml").is_file()
    return package.parent.joinpath(*parts) if is_clone else package.joinpath("shipped", *parts)


def _cut(text: str) -> str:
    half = _LONGEST_NOTE // 2
    return text if len(text) <= _LONGEST_NOTE else f"{text[:half]}...{text[-half:]}"


def printable(text: str) -> str:
    """Make a text printable on one line of any terminal or file: white space becomes spaces; control
    characters and what UTF-8 cannot encode, as in the names of some files, become escapes."""
    return "".join(
        character if character.isprintable() else " " if character.isspace() else ascii(character)[1:-1]
        for character in text
    )


def named(places: Sequence[str]) -> str:
    """The number of places and the first few of them: "3: a.md, b/c.html, d.pdf"; "none" without any."""
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


def present_file(folder: str | Path, *names: str) -> Path | None:
    """The first of these files in the folder, plain or compressed; None if there is none."""
    candidates = (Path(folder) / f"{name}{suffix}" for name in names for suffix in ("", *COMPRESSED))
    return next((path for path in candidates if path.is_file()), None)


def read_lines(path: str | Path, *, allow_empty: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file with their numbers from 1, without line ends, one at a time.

    A byte order mark and the carriage returns of Windows are removed. Raises DataError if the file is
    missing, a folder, a pipe or a device, unreadable, damaged, empty or blank (unless `allow_empty`), binary
    (has a NUL byte) or not UTF-8.
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


def _next_line(stream: IO[bytes], path: Path, line: int) -> bytes:
    try:
        return stream.readline()
    except _DAMAGED as error:
        what = f"the compressed file is damaged or cut off ({error})"
        raise DataError(path, what, "copy or download it again", line=line) from None
    except OSError as error:
        raise _unreadable(path, error, line=line) from None


def _decode(raw: bytes, path: Path, *, line: int, start: int) -> str:
    """Decode a line that starts at byte `start` of the (decompressed) file; raises DataError if it cannot."""
    if (place := raw.find(b"\0")) >= 0:
        what = "a NUL byte, so this is a binary file"
        remedy = "save it as plain UTF-8 text (files in UTF-16 look like this too)"
        raise DataError(path, what, remedy, line=line, field=f"byte {start + place}")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        what, field = f"0x{raw[error.start]:02x} is not UTF-8", f"byte {start + error.start}"
        remedy = f"convert the file, for example: iconv -f WINDOWS-1252 -t UTF-8 {path.name}"
        raise DataError(path, what, remedy, line=line, field=field) from None


def _unreadable(path: str | Path, error: OSError, *, line: int = 1) -> DataError:
    if denial := denied(path):
        what, _, remedy = denial.partition(": ")
        return DataError(path, what, remedy, line=line)
    what = f"the file cannot be read ({error.strerror or error})"
    return DataError(path, what, "check its permissions and the disk", line=line)


def denied(path: str | Path) -> str:
    """What of a file or folder, the files directly in it included, this user may not read, and what to do
    about it; "" if all may be read, or it is not there."""
    whole = Path(path).absolute()
    for place in chain(reversed(whole.parents), [whole], _files_in(whole)):
        try:
            need = os.X_OK if stat.S_ISDIR(place.stat().st_mode) else os.R_OK
        except (OSError, ValueError):  # it is not there: what is above it may be searched
            return ""
        need |= os.R_OK if place == whole else 0
        if not os.access(place, need, effective_ids=os.access in os.supports_effective_ids):
            return f"{place} may not be read (permission denied): ask its owner for chmod -R a+rX {place}"
    return ""


def _files_in(path: Path) -> Iterator[Path]:
    """The files directly in a folder; none of a file. Called when the folder is known to be readable."""
    if path.is_dir():
        yield from (entry for entry in sorted(path.iterdir()) if entry.is_file())


def read_text(path: str | Path, *, allow_empty: bool = False) -> str:
    """The text of a whole file, lines joined by "\n". Raises DataError if the file cannot be read, is empty
    (unless `allow_empty`), or is not UTF-8 text."""
    return "\n".join(line for _, line in read_lines(path, allow_empty=allow_empty))


def open_bytes(path: str | Path, *, packed: bool = False) -> IO[bytes]:
    """Open a file for reading bytes, decompressed according to its name or, if `packed`, as it is on disk."""
    path = checked_path(path)
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise DataError(path, "this is a folder, not a file", "give the path of a file in it")
        if not stat.S_ISREG(mode):
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
    """Return a path that reports and messages can show. Raises DataError if it has a NUL or is not UTF-8."""
    if "\0" in str(path):
        raise DataError(path, "a path cannot hold a NUL", "check the spelling of the path", field="path")
    if not _is_whole(str(path)):
        what = "the path is not UTF-8, as some archives write names of other languages"
        raise DataError(path, what, "rename the file or folder", field="path")
    return Path(path)


def home_path(path: str | Path) -> Path:
    """A path with a "~" at its start expanded to the home folder. Raises DataError if that is impossible."""
    try:
        return checked_path(path).expanduser()
    except RuntimeError:
        what, remedy = "no home folder of that name is known", "write the path without ~"
        raise DataError(path, what, remedy, field="path") from None


def entries(folder: str | Path) -> list[Path]:
    """The entries of a folder, sorted by name, without hidden ones (".name")."""
    try:
        return sorted(path for path in Path(folder).iterdir() if not path.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(folder, "there is no such folder", "check the path", field="folder") from None
    except OSError as error:
        raise _unreadable(folder, error) from None


def is_hidden(path: Path, folder: Path) -> bool:
    """Whether a path has a part below a folder that begins with a dot: such are copies that editors and other
    systems leave ("train/.ipynb_checkpoints/a-checkpoint.txt", "._a.txt"), which no reader reads."""
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


@contextmanager
def replaced_file(path: Path, *, binary: bool = False) -> Iterator[IO]:
    """Open a file for writing that replaces `path` once it is completely on disk; if anything fails, `path`
    stays as it was. Text is written as UTF-8 with line feeds."""
    if not path.parent.is_dir():
        raise DataError(path, "there is no such folder to write to", "make it first", field="folder")
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


@contextmanager
def replaced_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder to fill, which replaces `path` once all of it is on disk; if anything fails or the
    process is killed, `path` stays as it was. The next call removes what a killed one left, so only one
    process at a time may replace a folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished, old = (path.with_name(f".{path.name}.{ending}") for ending in ("unfinished", "replaced"))
    try:
        _put_back(old, path)
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        yield unfinished
        flush_folder(unfinished)
        if path.exists():
            path.rename(old)
        unfinished.rename(path)
        flush(path.parent)
    finally:
        _put_back(old, path)
        shutil.rmtree(unfinished, ignore_errors=True)


def _put_back(old: Path, path: Path) -> None:
    """Rename `old` to `path`, or remove it if there is a `path`."""
    if old.exists() and not path.exists():
        old.rename(path)
    shutil.rmtree(old, ignore_errors=True)


def flush_folder(folder: Path) -> None:
    """Write all files of a folder to the disk, with the permissions that files made here by default have:
    safetensors makes files that only their owner may read."""
    mode = stat.S_IMODE(folder.stat().st_mode) & 0o666
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(mode)
        flush(path)
    flush(folder)


def flush(path: Path) -> None:
    """Write a file, or the list of files in a folder, to the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def sha256_of_file(path: str | Path) -> str:
    """Hexadecimal SHA-256 of a file as it lies on disk, compressed or not; the number `sha256sum` prints."""
    with open_bytes(path, packed=True) as stream:
        try:
            return hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise _unreadable(path, error) from None


def sha256_of_parts(parts: Sequence[str]) -> str:
    """Hexadecimal SHA-256 of texts, each preceded by its length, so that different lists differ in bytes."""
    return hashlib.sha256("".join(f"{len(part)}:{part}" for part in parts).encode("utf-8")).hexdigest()


# ---- JSON ----

_LONE_REMEDY = "remove the lone \\ud... escape"
_KINDS = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
# pydantic's error types -> what belongs there, how to write it
_WANTED = {
    "string_type": ("a text", "put it in quotes"),
    "list_type": ("a list", "write it as [...]"),
    "tuple_type": ("a list", "write it as [...]"),
    "dataclass_type": ("an object", "write it as {...}"),
    "dict_type": ("an object", "write it as {...}"),
    "model_type": ("an object", "write it as {...}"),
    "int_type": ("a whole number", "write it as 3"),
    "bool_type": ("true or false", "write it without quotes"),
}
Kind = TypeVar("Kind")
Other = TypeVar("Other")


class _FaultyKeyError(Exception):
    """Raised for a JSON object that has a key twice, or one that is not UTF-8."""

    def __init__(self, key: str, *, given_twice: bool) -> None:
        super().__init__(key)
        twice, half = (
            ("the key is given twice", "keep one"),
            ("half a surrogate pair in the key", _LONE_REMEDY),
        )
        self.key, (self.what, self.remedy) = key, twice if given_twice else half


class FieldFault(ValueError):
    """Raised by validators of `Fields`: what is wrong with the value of a field, and what to do about it."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}; {remedy}")
        self.what, self.remedy = what, remedy


class Fields(BaseModel):
    """Base class for the fields of a JSON object, of exactly the declared types; others are ignored.

    The `description` of a field says how to write it; messages about its value give it as advice.
    """

    model_config = ConfigDict(strict=True, frozen=True)


def _is_whole(text: str) -> bool:
    """Whether a text has no lone surrogates, which UTF-8 cannot encode but JSON escapes can produce."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _whole(text: str) -> str:
    if not _is_whole(text):
        place = next(place for place, one in enumerate(text) if "\ud800" <= one <= "\udfff")
        raise FieldFault(f"half a surrogate pair at character {place}", _LONE_REMEDY)
    return text


def _filled(text: str) -> str:
    if not text.strip():
        raise FieldFault("it is empty", "fill it in, or delete the record")
    return text


def _name(value: object) -> object:
    return str(value) if type(value) is int else value


Text = Annotated[str, AfterValidator(_whole)]  # UTF-8 can encode it: JSON can escape half a surrogate pair
FilledText = Annotated[Text, AfterValidator(_filled)]
Name = Annotated[Text, BeforeValidator(_name)]  # a text or a whole number
FROM_LIST = Strict(False)  # Annotated[tuple[Text, int], FROM_LIST]: a tuple that JSON writes as a list


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonRecord(Generic[Kind]):
    """A JSON value of a file: `path` and `line` say where it is, `fields` is its content, and `within` its
    place in the value of the line: "documents[2]." for the third of a list, "" for the whole value."""

    path: Path
    line: int
    fields: Kind
    within: str = ""

    def error(self, field: str, what: str, remedy: str) -> DataError:
        """The DataError to raise about one of its fields."""
        return DataError(self.path, what, remedy, line=self.line, field=f"{self.within}{field}")

    def checked(self, kind: type[Other], *, remedy: str = "") -> JsonRecord[Other]:
        """The record with `fields` validated as a subclass of `Fields` or another type that pydantic checks.
        Raises DataError at the first fault. `remedy`: advice in place of the descriptions of the fields."""
        try:
            fields = _adapter(kind).validate_python(self.fields)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field, what, to_do = _fault(first)
            remedy = remedy or _description(kind, next(iter(first["loc"]), ""))
            depth = field.count("[") + field.count(".")
            of_value = (
                first["type"] in ("literal_error", "string_type", "int_type", "bool_type") and not depth
            )
            to_do = remedy if remedy and (of_value or depth == 1) else to_do
            where = f"{self.within}{field}".rstrip(".") or "line"
            raise DataError(self.path, what, to_do, line=self.line, field=where) from None
        return JsonRecord(path=self.path, line=self.line, fields=fields, within=self.within)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    has_own = isinstance(kind, type) and (issubclass(kind, BaseModel) or is_dataclass(kind))
    return TypeAdapter(kind, config=None if has_own else ConfigDict(strict=True))


def _description(kind: Any, name: object) -> str:
    """How the field of that name, or other name, is written; "" if the field does not say."""
    for own, field in getattr(kind, "model_fields", {}).items():
        alias = field.validation_alias
        if name in (own, *(alias.choices if isinstance(alias, AliasChoices) else [alias])):
            return field.description or ""
    return ""


def _fault(error: Any) -> tuple[str, str, str]:
    """The field that an error of pydantic is about, what is wrong there, and what to do."""
    kind, value, loc = error["type"], error["input"], list(error["loc"])
    if kind == "missing" and isinstance(loc[-1], str):
        what, remedy = "missing", f'add "{loc[-1]}" to the record'
    elif kind == "too_long":
        what, remedy = f"a list of {len(value)}, too long", "take out what is too much"
    elif kind == "too_short" and value == "":
        what, remedy = "it is empty", "fill it in"
    elif kind in ("missing", "too_short"):
        loc = loc[:-1] if kind == "missing" else loc  # for a tuple, loc ends with the index that is missing
        what = f"a list of {len(value)}, too short" if value else "an empty list"
        remedy = "add what is missing, or delete the record"
    elif kind == "value_error":
        what, _, remedy = str(error["ctx"]["error"]).partition("; ")
        remedy = remedy or "correct the record, or leave it out"
    elif kind == "string_unicode":  # of a Literal; Text says the same
        what, remedy = "half a surrogate pair", _LONE_REMEDY
    elif kind == "literal_error":
        what, remedy = f"{value!r} is unknown", f"write {error['ctx']['expected']}".replace("'", "")
    else:
        wanted, remedy = _WANTED.get(kind, (error["msg"].lower(), "correct the record, or leave it out"))
        what = f"{kind_of(value)} where {wanted} belongs"
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    return path.removeprefix("."), what, remedy


def kind_of(value: object) -> str:
    """The type of a parsed JSON value in words: "a list", "a number"."""
    return _KINDS.get(type(value), "a number")


def read_json_lines(
    path: str | Path,
    kind: type[Kind] = dict,
    *,
    faulty: Callable[[DataError], None] | None = None,
) -> Iterator[JsonRecord[Kind]]:
    """Yield the objects of a JSON-lines file, validated as `kind`, one at a time; blank lines are skipped.
    `faulty`: is given the errors of lines that hold no such object, which are then skipped."""
    complete = "write one complete JSON object on each line"
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            value = parse_json(line, path, line=number, field="line", remedy=complete)
            yield JsonRecord(path=Path(path), line=number, fields=value).checked(kind)
        except DataError as error:
            if faulty is None:
                raise
            faulty(error)


def parse_json(
    source: str, path: str | Path, *, line: int = 1, field: str = "file", remedy: str = "complete the file"
) -> object:
    """Parse a JSON text whose first line in the file is `line`. Every reader parses JSON with this.

    Raises DataError, with `field` and `remedy`, for invalid JSON, and for an object with a key that occurs
    twice (Python would take the last) or is not UTF-8.
    """
    try:
        return json.loads(source, object_pairs_hook=_fields)
    except json.JSONDecodeError as error:
        what, line = f"not JSON ({error.msg})", line + error.lineno - 1
        raise DataError(path, what, remedy, line=line, field=f"column {error.colno}") from None
    except _FaultyKeyError as error:
        raise DataError(path, error.what, error.remedy, line=line, field=ascii(error.key)) from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, endless nesting
        remedy = "write plain records: texts, numbers and lists of them"
        raise DataError(path, f"not JSON ({error})", remedy, line=line, field=field) from None


def _fields(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields: dict[str, object] = {}
    for key, value in pairs:
        if key in fields or not _is_whole(key):
            raise _FaultyKeyError(key, given_twice=key in fields)
        fields[key] = value
    return fields


def read_json(path: Path) -> tuple[str, object]:
    """The (decompressed) text of a JSON file, and its parsed value."""
    source = read_text(path)
    return source, parse_json(source, path)


def read_json_list(path: Path) -> Iterator[JsonRecord[object]]:
    """Yield each element of a JSON file that holds one list, not validated, with the line where it starts."""
    source, value = read_json(path)
    if not isinstance(value, list):
        raise DataError(path, f"{kind_of(value)} where a list belongs", "write it as [{...}, ...]")
    decode, position = json.JSONDecoder().raw_decode, source.index("[") + 1
    line, counted = 1, 0
    for number, item in enumerate(value):
        while source[position] in " \t\r\n,":
            position += 1
        line, counted = line + source.count("\n", counted, position), position
        yield JsonRecord(path=path, line=line, fields=item, within=f"[{number}].")
        _, position = decode(source, position)


# ---- word vectors ----


_HEADER = re.compile(r"([0-9]{1,9}) ([0-9]{1,9})")
_FRACTION = re.compile(r"[-+]?[0-9]*\.[0-9]+([eE][-+]?[0-9]+)?")


def read_word_vectors(path: str | Path) -> tuple[tuple[str, ...], np.ndarray]:
    """Read words and their vectors, float32 (words, size), from a file in GloVe's format: one word per line,
    frequent words first.

    A word may hold spaces ("at name@domain.com", in GloVe 840B) and Unicode's white space, so values are
    counted from the right. The first line determines the size, by its number of values or as word2vec's
    header of two numbers, words and size. If a word is repeated, its first vector is used.
    """
    words: dict[str, None] = {}
    values, size, expected, count = array("f"), 0, 0, 0
    remedy = "write a word and its values, with single spaces between them"
    for line, text in tracked(read_lines(path), desc="reading word vectors", unit="word"):
        plain = text.rstrip(" ")  # word2vec ends its lines with a space
        if line == 1 and (header := _HEADER.fullmatch(plain)):
            expected, size = map(int, header.groups())
        elif plain:
            count += 1
            size = size or max(plain.count(" "), 1)
            word, vector = _word_vector(plain, size)
            if not word:
                what = f"not a word and {size} finite numbers"
                raise DataError(path, what, remedy, line=line, field="line")
            if word not in words:
                words[word] = None
                values.extend(vector)
    if not words:
        raise DataError(path, "no word vectors", remedy)
    if expected not in (0, count):
        what = f"it says {expected:,} words, but there are {count:,}"
        raise DataError(path, what, "copy or download the file again", field="header")
    return tuple(words), np.frombuffer(values, dtype=np.float32).reshape(len(words), size)


def _word_vector(text: str, size: int) -> tuple[str, array]:
    """A word and its vector; "" in place of the word if the line is not as it should be."""
    word, *pieces = text.rsplit(" ", size)
    # One value too many looks like a word with a space; but no word of GloVe ends in a space and a fraction.
    extra = " " in word and _FRACTION.fullmatch(word.rpartition(" ")[2])
    try:
        vector = array("f", map(float, pieces))
    except ValueError:
        return "", array("f")
    sound = word == word.strip(" ") and len(pieces) == size and not extra and all(map(isfinite, vector))
    return word if sound else "", vector
