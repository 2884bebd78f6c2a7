"""Read a pile of articles: JSON lines, CSV, Parquet, a folder of texts, or anything that `datasets` opens.

An article has a text and, all optional, an id, a title, a date and a source. What cannot be used is counted
and named, by file and line, and nothing else is left out.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from cdlm_lab.data import files
from cdlm_lab.data.files import DataError, printable
from cdlm_lab.data.rows import is_saved, opened_data_set
from cdlm_lab.mining import dates
from cdlm_lab.progress import tracked

FIELDS = ("id", "title", "text", "date", "source")
SHAPES = (
    'a .jsonl with a line {"id": "", "title": "", "text": "", "date": "", "source": ""} for each article '
    "(all but the text may be missing; also .jsonl.gz, .jsonl.xz)",
    "a .csv or .tsv with a heading of these names",
    "a .parquet with these columns",
    "a folder of .txt files (2018-08-29-name.txt: with a date)",
    "a folder that `datasets` saved, or the name of a data set on the hub",
)
_DATED_NAME = re.compile(r"(\d{4}-\d{2}-\d{2})(?!\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Article:
    """An article as it was given; `day`: its date as a number of days, None if it has none."""

    id: str
    title: str
    text: str
    date: str
    source: str
    day: int | None = None

    @property
    def record(self) -> dict[str, str]:
        """Its fields that are not empty, for a line of JSON."""
        return {name: value for name in FIELDS if (value := getattr(self, name))}


@dataclass(frozen=True, kw_only=True)
class Pile:
    """The articles that can be used, in order of day (those without a date last) and then of the input, and
    what was left out or changed: reason -> places."""

    articles: list[Article]
    faults: dict[str, list[str]] = field(default_factory=dict)


class Found(NamedTuple):
    """A record of an input, checked by `pile_of`."""

    where: str  # file and line
    fields: Mapping[str, Any] | str  # or what is wrong with it


def read_pile(source: str | Path) -> Pile:
    """Read all articles of one of SHAPES. Raises DataError if there is no such thing, or no article in it has
    a text. Lines that are no article, texts that are empty, ids that occur twice (the first is kept) and
    dates that cannot be read (the article is kept, without date) are listed in `faults`."""
    return pile_of(tracked(_found(source), desc="reading articles", unit="article"), source)


def pile_of(records: Iterable[Found], source: str | Path) -> Pile:
    """The articles of records from a source. Raises DataError if none has a text."""
    faults: dict[str, list[str]] = {}
    kept: dict[str, tuple[str, Article]] = {}
    for number, (where, fields) in enumerate(records, start=1):
        if isinstance(fields, str):
            faults.setdefault(f"left out: {fields}", []).append(where)
            continue
        values = {name: _text(fields.get(name)) for name in FIELDS}
        name = values["id"] or f"{files.plain_stem(source) or 'article'}-{number}"
        if not values["text"].strip():
            faults.setdefault("left out: without a text", []).append(f"{where} ({printable(name)})")
        elif name in kept:
            place = f"{where} ({printable(name)}, as {kept[name][0]})"
            faults.setdefault("left out: an id that an earlier article has", []).append(place)
        else:
            kept[name] = where, Article(**{**values, "id": name})
    if not kept:
        what = "; ".join(f"{reason}: {files.named(places)}" for reason, places in faults.items())
        remedy = f"give {' | '.join(SHAPES)}"
        raise DataError(source, f"no article with a text ({what or 'nothing in it'})", remedy, field="pile")
    return Pile(articles=_dated(kept.values(), faults), faults=faults)


def _dated(placed: Collection[tuple[str, Article]], faults: dict[str, list[str]]) -> list[Article]:
    """The articles with their days, in order; dates that are none go to `faults`."""
    order = dates.order_of(article.date for _, article in placed)
    articles = []
    for where, article in placed:
        day = dates.day_of(article.date, order=order) if article.date else None
        if article.date and day is None:
            reason = "kept without its date, which is none of the Gregorian calendar from 1700 to today"
            if order == "unknown":
                reason += ", or may be day/month as well as month/day"
            faults.setdefault(reason, []).append(f"{where} ({printable(article.date)})")
        articles.append(replace(article, day=day))
    return sorted(articles, key=lambda one: (one.day is None, one.day or 0))  # stable: then as given


def _text(value: Any) -> str:
    """A value of a record as text; times of Parquet and `datasets` have an ISO form, missing values none."""
    if value is None or value != value:  # nan and NaT
        return ""
    text = value.isoformat() if hasattr(value, "isoformat") else str(value)
    return text.encode("utf-8", "replace").decode("utf-8")  # JSON can escape half a surrogate pair


def _found(source: str | Path) -> Iterator[Found]:
    path = files.home_path(source)
    if path.is_dir():
        rows = _of_datasets(str(path), saved=True) if is_saved(path) else _of_folder(path)
    elif path.is_file():
        name = files.plain_name(path).lower()
        readers = {".jsonl": _of_lines, ".csv": _of_table, ".tsv": _of_table, ".parquet": _of_parquet}
        reader = next((one for ending, one in readers.items() if name.endswith(ending)), None)
        if reader is None:
            raise DataError(path, "not a pile that can be read", f"give {' | '.join(SHAPES)}", field="pile")
        rows = reader(path)
    elif path.suffix or path.is_absolute() or str(source).count("/") > 1:
        raise DataError(path, "no such file or folder", f"give {' | '.join(SHAPES)}", field="pile")
    else:
        rows = _of_datasets(str(source), saved=False)
    yield from rows


def _of_lines(path: Path) -> Iterator[Found]:
    for number, line in files.read_lines(path):
        if not line.strip():
            continue
        where = f"{path.name}:{number}"
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            yield Found(where, "a line that is no JSON")
            continue
        yield Found(where, value if isinstance(value, dict) else "a line that is no JSON object")


def _of_table(path: Path) -> Iterator[Found]:
    lines = (line + "\n" for _, line in files.read_lines(path))
    tab = files.plain_name(path).lower().endswith(".tsv")
    reader = csv.DictReader(lines, delimiter="\t" if tab else ",", restkey="", strict=False)
    if "text" not in (reader.fieldnames or ()):
        what = f"the heading has no column 'text' (it has {', '.join(reader.fieldnames or ['nothing'])})"
        raise DataError(path, what, f"name the columns {', '.join(FIELDS)}", field="heading")
    try:
        for row in reader:
            where = f"{path.name}:{reader.line_num}"
            yield Found(where, "a row of more columns than the heading" if row.get("") else row)
    except csv.Error as error:
        remedy = "write it as a spreadsheet does, with texts in quotes"
        raise DataError(path, f"not CSV ({error})", remedy, line=reader.line_num, field="row") from None


def _of_parquet(path: Path) -> Iterator[Found]:
    import pandas as pd

    try:
        frame = pd.read_parquet(path)
    except (OSError, ValueError) as error:  # pyarrow's errors are of these kinds
        what = f"not Parquet, or damaged ({(str(error).splitlines() or ['?'])[0]})"
        raise DataError(path, what, "copy or download it again") from None
    rows = frame[[name for name in FIELDS if name in frame.columns]].to_dict("records")
    for number, row in enumerate(rows, start=1):
        yield Found(f"{path.name}: row {number}", row)


def _of_folder(path: Path) -> Iterator[Found]:
    """Each `.txt` file, at any depth, is an article; hidden files and folders are left out."""
    texts = sorted(file for file in path.rglob("*") if files.plain_name(file).lower().endswith(".txt"))
    for file in texts:
        place = file.relative_to(path)
        if file.is_file() and not any(part.startswith(".") for part in place.parts):
            dated = _DATED_NAME.match(file.name)
            name = place.as_posix().removesuffix(file.suffix)
            try:
                text = files.read_text(file, allow_empty=True)
            except DataError:
                yield Found(place.as_posix(), "a file that is no text in UTF-8, or may not be read")
                continue
            yield Found(place.as_posix(), {"id": name, "text": text, "date": dated[1] if dated else ""})


def _of_datasets(name: str, *, saved: bool) -> Iterator[Found]:
    opened = opened_data_set(name, saved=saved, remedy=f"give {' | '.join(SHAPES)}", field="pile")
    for split, rows in opened.items():
        for number, row in enumerate(rows):
            yield Found(f"{name}: {split} row {number}".replace(":  ", ": "), row)
