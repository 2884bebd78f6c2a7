"""Rows of a data set, by split: JSON lines, JSON lists, CSV, TSV and parquet files, and all that `datasets`
opens, a folder of `save_to_disk` or "hub:owner/name@revision"."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet

from cdlm_lab.data import files
from cdlm_lab.data.files import DataError, JsonRecord
from cdlm_lab.data.splits import SPLIT_NAMES

HUB = "hub:"
Row = JsonRecord[Any]
Rows = Callable[[], Iterator[Row]]
_WORD = re.compile(r"[a-z]+")
csv.field_size_limit(1 << 26)  # characters of a text; the module's own limit is 131,072


def rows_by_split(corpus: str | Path) -> dict[str, Rows]:
    """Split -> a function that yields its rows, one at a time; the split is "" where no name tells it.

    A file is read whole, whatever its name. In a folder, the name of a file or of its folder tells the split
    ("hotpot_dev.json", "val/a.jsonl", "train-00000-of-00002.parquet"); if any tells one, files that tell none
    are not read. {} for a folder without such files. Raises DataError if there is nothing of that name.
    """
    name = str(corpus)
    if name.startswith(HUB):
        return _of_datasets(name.removeprefix(HUB), saved=False)
    path = files.home_path(corpus)
    if path.is_file():
        return {"": partial(rows_of, path)} if ending_of(path) else {}
    if is_saved(path):
        return _of_datasets(str(path), saved=True)
    found: dict[str, list[Path]] = {}
    for file in _files_of(path):
        found.setdefault(split_of(file, path), []).append(file)
    named = {split: each for split, each in found.items() if split} or found
    return {split: partial(_chained, each) for split, each in named.items()}


def _files_of(folder: Path) -> Iterator[Path]:
    for entry in files.entries(folder):
        below = files.entries(entry) if entry.is_dir() and entry.name.lower() in SPLIT_NAMES else [entry]
        yield from (file for file in below if file.is_file() and ending_of(file))


def _chained(each: list[Path]) -> Iterator[Row]:
    return chain.from_iterable(map(rows_of, each))


def split_of(file: Path, folder: Path) -> str:
    """The split that a file's name, or a folder between `folder` and it, tells: train, validation, test, or
    "" if none does. Of several words in a name the first one that names a split counts."""
    *above, name = file.relative_to(folder).parts
    words = (word for part in [*above, name] for word in _WORD.findall(part.lower()))
    return next((SPLIT_NAMES[word] for word in words if word in SPLIT_NAMES), "")


def ending_of(path: Path) -> str:
    """The ending of a file of rows, without that of its compression; "" of any other file."""
    ending = Path(files.plain_name(path)).suffix.lower()
    return ending if ending in _READ else ""


def rows_of(path: Path, *, faulty: Callable[[DataError], None] | None = None) -> Iterator[Row]:
    """The rows of a file, each an object with the line in which it begins (of parquet, its number). `faulty`:
    is given the errors of single lines and rows, which are then skipped."""
    more = {"faulty": faulty} if faulty and ending_of(path) in (".jsonl", ".csv", ".tsv") else {}
    return _READ[ending_of(path)](path, **more)


def _json(path: Path) -> Iterator[Row]:
    """A list of objects or, as in files of FEVER, JSON lines in a file with this ending."""
    lines = files.read_lines(path)
    start = next((text.lstrip() for _, text in lines if text.strip()), "")
    if start.startswith("{"):
        yield from files.read_json_lines(path)
    else:
        for record in files.read_json_list(path):
            yield record.checked(dict)


def csv_rows(path: Path, *, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """The line in which each row of a CSV or TSV file begins, and its cells; blank lines are none. Raises
    DataError for a file that is no CSV."""
    lines = (f"{line}\n" for _, line in files.read_lines(path))
    quoting = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL  # nothing is quoted between tabs
    reader, line = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True), 1
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        what, remedy = f"no table ({error})", "put texts in quotes and write quotes in them twice"
        raise DataError(path, what, remedy, line=line, field="row") from None


def _table(
    path: Path, delimiter: str = ",", faulty: Callable[[DataError], None] | None = None
) -> Iterator[Row]:
    header: list[str] = []
    for line, cells in csv_rows(path, delimiter=delimiter):
        if header and len(cells) != len(header):
            what = f"{len(cells)} columns instead of {len(header)}"
            error = DataError(path, what, "write one for each name in line 1", line=line, field="row")
            if faulty is None:
                raise error
            faulty(error)
        elif header:
            yield JsonRecord(path=path, line=line, fields=dict(zip(header, cells, strict=True)))
        header = header or [cell.strip() for cell in cells]


def _parquet(path: Path) -> Iterator[Row]:
    number = 0
    try:
        for batch in parquet.ParquetFile(path).iter_batches():
            for fields in batch.to_pylist():
                yield JsonRecord(path=path, line=(number := number + 1), fields=fields)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise DataError(path, f"no parquet ({error})", "copy or download it again") from None


_READ: dict[str, Callable[[Path], Iterator[Row]]] = {
    ".jsonl": files.read_json_lines,
    ".json": _json,
    ".csv": _table,
    ".tsv": partial(_table, delimiter="\t"),
    ".parquet": _parquet,
}


def is_saved(folder: Path) -> bool:
    """Whether `save_to_disk` of `datasets` wrote the folder."""
    return any((folder / state).is_file() for state in ("dataset_dict.json", "state.json"))


def opened_data_set(name: str, *, saved: bool, remedy: str, field: str) -> dict[str, Any]:
    """Split -> the rows of what `datasets` opens, "" where it has no splits: a folder of `save_to_disk` if
    `saved`, else "owner/name@revision". Raises DataError, with `remedy` and `field`, if it cannot."""
    import datasets  # here: it takes a second to load

    hub, _, revision = name.partition("@")
    try:
        if saved:
            opened = datasets.load_from_disk(name)
        else:
            opened = datasets.load_dataset(hub, revision=revision or None)
    except Exception as error:  # it raises many kinds
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(name, f"`datasets` cannot open it ({reason})", remedy, field=field) from None
    return opened if isinstance(opened, dict) else {"": opened}


def _of_datasets(name: str, *, saved: bool) -> dict[str, Rows]:
    remedy = f"give a folder of save_to_disk, or {HUB}owner/name@revision"
    of_split = opened_data_set(name, saved=saved, remedy=remedy, field="corpus")
    return {SPLIT_NAMES.get(split, split): partial(_numbered, name, rows) for split, rows in of_split.items()}


def _numbered(name: str, rows: Any) -> Iterator[Row]:
    return (JsonRecord(path=Path(name), line=number, fields=row) for number, row in enumerate(rows, start=1))
