"""Read a pile of articles: JSON lines, CSV, Parquet, a folder of texts, or anything that `datasets` opens.

An article has a text and, all optional, an id, a title, a date and a source. What cannot be used is counted
and named, by file and line, and nothing else is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cdlm_lab.data import files
from cdlm_lab.data.files import DataError, JsonRecord, printable
from cdlm_lab.data.rows import Row, ending_of, is_saved, opened_data_set, rows_of
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


def read_pile(source: str | Path) -> Pile:
    """Read all articles of one of SHAPES. Raises DataError if there is no such thing, or no article in it has
    a text. Rows that cannot be read, texts that are empty, ids that occur twice (the first is kept) and
    dates that cannot be read (the article is kept, without date) are listed in `faults`."""
    faults: dict[str, list[str]] = {}

    def leave_out(error: DataError) -> None:
        place = f"{error.path.name}:{error.line} ({error.what})"
        faults.setdefault("left out: a row that cannot be read", []).append(place)

    rows = tracked(_rows(source, leave_out), desc="reading articles", unit="article")
    return pile_of(rows, source, faults)


def pile_of(rows: Iterable[Row], source: str | Path, faults: dict[str, list[str]] | None = None) -> Pile:
    """The articles of rows from a source, and what is wrong with some of them, beside the faults that are
    known. Raises DataError if none has a text."""
    faults = {} if faults is None else faults
    kept: dict[str, tuple[str, Article]] = {}
    for number, row in enumerate(rows, start=1):
        where = f"{row.path.name}:{row.line}"
        values = {name: _text(row.fields.get(name)) for name in FIELDS}
        name = values["id"] or f"{files.plain_stem(row.path) or 'article'}-{number}"
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


def _rows(source: str | Path, faulty: Callable[[DataError], None]) -> Iterator[Row]:
    path, remedy = files.home_path(source), f"give {' | '.join(SHAPES)}"
    if path.is_dir():
        return _of_datasets(path, saved=True) if is_saved(path) else _of_folder(path, faulty)
    if path.is_file() and ending_of(path):
        return _with_texts(path, faulty)
    if path.is_file() or path.suffix or path.is_absolute() or str(source).count("/") > 1:
        what = "not a pile that can be read" if path.is_file() else "no such file or folder"
        raise DataError(path, what, remedy, field="pile")
    return _of_datasets(path, saved=False)


def _with_texts(path: Path, faulty: Callable[[DataError], None]) -> Iterator[Row]:
    """The rows of a file. Raises DataError for a table without a column `text`."""
    for row in rows_of(path, faulty=faulty):
        if "text" not in row.fields and ending_of(path) != ".jsonl":
            what = f"the heading has no column 'text' (it has {', '.join(map(str, row.fields))})"
            raise DataError(path, what, f"name the columns {', '.join(FIELDS)}", field="heading")
        yield row


def _of_folder(path: Path, faulty: Callable[[DataError], None]) -> Iterator[Row]:
    """Each `.txt` file, at any depth, is an article; hidden files and folders are left out."""
    texts = sorted(file for file in path.rglob("*") if files.plain_name(file).lower().endswith(".txt"))
    for file in texts:
        place = file.relative_to(path)
        if file.is_file() and not files.is_hidden(file, path):
            dated = _DATED_NAME.match(file.name)
            name = place.as_posix().removesuffix(file.suffix)
            try:
                text = files.read_text(file, allow_empty=True)
            except DataError as error:
                faulty(error)
                continue
            fields = {"id": name, "text": text, "date": dated[1] if dated else ""}
            yield JsonRecord(path=place, line=1, fields=fields)


def _of_datasets(path: Path, *, saved: bool) -> Iterator[Row]:
    opened = opened_data_set(str(path), saved=saved, remedy=f"give {' | '.join(SHAPES)}", field="pile")
    for split, rows in opened.items():
        for number, row in enumerate(rows, start=1):
            yield JsonRecord(path=path / split, line=number, fields=row)
