"""The cards of the data sets, `data/<name>/README.md`: what a data set is, how large, under which licence.

A card begins with a block of `key: value` lines between two lines of `---`, then says the rest in prose:

    ---
    name: news_clusters
    licence: see below
    shipped: no
    count train clusters: 2712
    sha256 allsides_fulltext_clusters.jsonl.xz: 3354...
    ---
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cdlm_lab.data.files import DataError, read_lines, sha256_of_file

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
