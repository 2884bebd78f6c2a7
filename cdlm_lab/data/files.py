"""Checked opening of corpus files: what is wrong, in which line, and what to do about it.

Files are UTF-8 text, plain or compressed (`.gz`, `.xz`). Lines end at "\n" and nowhere else: news text holds
U+2028 and U+0085, at which `str.splitlines` would break a record in two. A line has a greatest length, and a
compressed file a greatest size, so that no file of a few kilobytes can fill the memory.

JSON, and records from files of one JSON object a line, with the line and the field in every complaint.

Files that are one JSON value as a whole, with the line in every complaint.

The cards of the data sets, `data/<name>/README.md`: what a data set is, how large, under which licence.

A card begins with a block of `key: value` lines between two lines of `---`, then says the rest in prose:

    ---
    name: news_clusters
    licence: see below
    shipped: no
    count train clusters: 2712
    sha256 allsides_fulltext_clusters.jsonl.xz: 3354...
    ---

Word vectors as GloVe is published: text, one word a line, most frequent first.

    the 0.418 0.24968 -0.41242
    at name@domain.com 0.1 -0.2 0.3

A word may hold spaces (GloVe 840B has some) and the odd white space of Unicode, so values are counted from
the right and parted by plain spaces. The first line says how many there are, either by its own values or as
word2vec does, in a header of two numbers: words and values.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import os
import re
import stat
import sys
import zlib
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path
from typing import IO

import numpy as np

from cdlm_lab.data.records import Document
from cdlm_lab.errors import PlainError
from cdlm_lab.progress import tracked

COMPRESSED = (".gz", ".xz")
LONGEST_LINE = 1 << 26  # bytes of a line; the longest cluster of Multi-News has half a million
LONGEST_TEXT = 1 << 30  # of a line of a file read as a whole; HotpotQA's training set is one of 0.6 GB
_MOST_UNPACKED = 200  # times its size on the disk, once that is more than LONGEST_LINE; text has 3 to 20
_LONGEST_NOTE = 400  # characters of a part of a complaint, which may quote a file
_NAMED = 5  # of the things that are passed over
_BLOCK = 1 << 20  # bytes read at once for a checksum
_DAMAGED = (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error)


class DataError(PlainError, ValueError):
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


CARD_NAME = "README.md"
RESULTS = "results"  # the folder beside the data sets that holds reports of recorded runs, and no card
_FENCE = "---"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REMEDY = "begin the card with --- and end the block with --- on a line of its own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The block at the head of a card, and its prose.

    Attributes:
        name: of the data set, the same as its folder.
        licence: as its owners state it.
        shipped: True if the data come with this project.
        counts: what is counted ("train clusters") -> how many.
        checksums: file name -> SHA-256, hexadecimal; empty where the files may differ.
        text: the prose, Markdown.
    """

    name: str
    licence: str
    shipped: bool
    counts: dict[str, int]
    checksums: dict[str, str]
    text: str


def read_card(path: str | Path) -> Card:
    """Read one card.

    Raises:
        DataError: a line of the block is not `key: value`, a key is missing, unknown or there twice, a value
            is not what its key needs, and as `files.read_lines`.
    """
    path = Path(path)
    lines = list(read_lines(path))
    fences = [number for number, line in lines if line.strip() == _FENCE][:2]
    if len(fences) < 2 or fences[0] != 1:
        raise DataError(path, f"no block between two lines of {_FENCE}", _REMEDY, field="block")
    fields = {"name": "", "licence": "", "shipped": ""}
    counts: dict[str, int] = {}
    checksums: dict[str, str] = {}
    for number, key, value in _entries(path, lines[1 : fences[1] - 1]):
        kind, _, what = key.partition(" ")
        if kind == "count" and what:
            counts[what] = _number(value, path, number, key)
        elif kind == "sha256" and what:
            checksums[what] = _matching(_SHA256, value, "64 hexadecimal digits", path, number, key)
        elif key in fields:
            fields[key] = value
        else:
            remedy = "use name, licence, shipped, count ... or sha256 ..."
            raise DataError(path, "unknown key", remedy, line=number, field=key)
    for key, value in fields.items():
        if not value:
            raise DataError(path, "missing", f"add a line `{key}: ...` to the block", field=key)
    if fields["shipped"] not in ("yes", "no"):
        raise DataError(
            path, f"{fields['shipped']!r} is neither yes nor no", "write yes or no", field="shipped"
        )
    return Card(
        name=fields["name"],
        licence=fields["licence"],
        shipped=fields["shipped"] == "yes",
        counts=counts,
        checksums=checksums,
        text="\n".join(line for _, line in lines[fences[1] :]).strip(),
    )


def read_cards(folder: str | Path) -> list[Card]:
    """All cards `<folder>/<name>/README.md` in order of name, `results` apart. Raises as `read_card`."""
    paths = sorted(Path(folder).glob(f"*/{CARD_NAME}"))
    return [read_card(path) for path in paths if path.parent.name != RESULTS]


def check_files(card: Card, folder: str | Path) -> list[str]:
    """Names of the files in `folder` that are the ones of the card, to the last bit.

    Files that are not there are passed over: a user may have fetched some of them only.

    Raises:
        DataError: a file is there, but with other contents.
    """
    present = [name for name in card.checksums if (Path(folder) / name).is_file()]
    for name in present:
        found = sha256_of_file(Path(folder) / name)
        if found != card.checksums[name]:
            what = f"{found} is not {card.checksums[name]} as on the card of {card.name}"
            raise DataError(Path(folder) / name, what, "copy or download the file again", field="sha256")
    return present


def _entries(path: Path, lines: list[tuple[int, str]]) -> Iterator[tuple[int, str, str]]:
    """(line, key, value) of each filled line of the block."""
    seen: dict[str, int] = {}
    for number, line in lines:
        if not line.strip():
            continue
        key, colon, value = (part.strip() for part in line.partition(":"))
        if not (colon and key and value):
            remedy = "write a key, a colon and a value"
            raise DataError(path, "not `key: value`", remedy, line=number, field=key or "key")
        if key in seen:
            what = f"stands in line {seen[key]} already"
            raise DataError(path, what, "keep one of the two lines", line=number, field=key)
        seen[key] = number
        yield number, key, value


def _number(value: str, path: Path, line: int, key: str) -> int:
    return int(_matching(re.compile(r"[0-9]+"), value, "a whole number in plain digits", path, line, key))


def _matching(pattern: re.Pattern[str], value: str, what: str, path: Path, line: int, key: str) -> str:
    if not pattern.fullmatch(value):
        raise DataError(path, f"{value!r} is not {what}", f"write {what}", line=line, field=key)
    return value


_HEADER = re.compile(r"([0-9]+) ([0-9]+)")
_DIGITS = 9  # of a number in it
_FRACTION = re.compile(r"[-+]?[0-9]*\.[0-9]+([eE][-+]?[0-9]+)?")
_REMEDY_WORD_VECTORS = "write a word and its values, with single spaces between them"


def read_word_vectors(path: str | Path, *, limit: int = 0) -> tuple[tuple[str, ...], np.ndarray]:
    """Words and their vectors, float32 (words, size), in the order of the file.

    Of a word that is there twice the first vector is kept.

    Args:
        path: the file, plain or compressed.
        limit: read no more than so many words; 0 = all.

    Raises:
        ValueError: a limit below 0.
        DataError: a line with another number of values than the first line has or says, a value that is no
            finite number in float32, no vectors at all, another number of lines than the first one says; and
            as `files.read_lines`. Lines behind the last word wanted are not read.
    """
    if limit < 0:
        raise ValueError(f"limit is {limit}; it must be a number of words, or 0 for all")
    words: dict[str, None] = {}
    values, size, said, count = array("f"), 0, 0, 0
    for line, text in tracked(read_lines(path), desc="reading word vectors", unit="word", total=limit):
        plain = text.rstrip(" ")  # word2vec ends its lines with a space
        if not plain:
            continue
        if line == 1 and (header := _HEADER.fullmatch(plain)):
            said, size = _sizes(*header.groups(), path=path)
            continue
        count += 1
        size = size or max(plain.count(" "), 1)
        word, vector = _parse_word_vectors(plain, size, path=path, line=line)
        if word not in words:
            words[word] = None
            values.extend(vector)
            if len(words) == limit:
                break
    if not words:
        raise DataError(path, "no word vectors", _REMEDY_WORD_VECTORS)
    if said not in (0, count) and len(words) != limit:
        what = f"it says {said:,} words, but there are {count:,}"
        raise DataError(path, what, "copy or download the file again", field="header")
    return tuple(words), np.frombuffer(values, dtype=np.float32).reshape(len(words), size)


def _sizes(*numbers: str, path: str | Path) -> tuple[int, ...]:
    if max(map(len, numbers)) > _DIGITS:
        what = f"{' '.join(numbers)[:40]!r} is no number of words and of values"
        raise DataError(path, what, _REMEDY_WORD_VECTORS, field="header")
    return tuple(map(int, numbers))


def _parse_word_vectors(text: str, size: int, *, path: str | Path, line: int) -> tuple[str, array]:
    word, *pieces = text.rsplit(" ", size)
    # A value too many looks like a word with a space; but none in GloVe ends in a space and a fraction.
    extra = " " in word and _FRACTION.fullmatch(word.rpartition(" ")[2])
    if not word or word != word.strip(" ") or len(pieces) != size or extra:
        what = f"not a word and a vector of size {size}"
        raise DataError(path, what, _REMEDY_WORD_VECTORS, line=line, field="line")
    vector = array("f", map(_number_word_vectors, pieces))
    for place, number in enumerate(vector):
        if not isfinite(number):
            what, remedy = f"{pieces[place][:40]!r} is no finite number", "correct it, or leave the word out"
            raise DataError(path, what, remedy, line=line, field=f"value {place + 1}")
    return word, vector


def _number_word_vectors(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return nan
