"""Dates of articles as they are written in the wild: ISO, slashes, names of months, seconds since 1970."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from email.utils import parsedate

FIRST_YEAR = 1700  # earlier years are of another calendar (1397 of the Persian one), or a mistake
_ISO = re.compile(r"(\d{4})([-/.]?)(\d{1,2})\2(\d{1,2})(?!\d)")
_PARTS = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})(?!\d)")
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_NAMED = re.compile(rf"(?:{_DAY}\.?\s+)?([^\W\d]{{3,9}})\.?,?\s+(?:{_DAY},?\s+)?(\d{{4}})")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SECONDS = re.compile(r"\d{9,10}(?:\.\d+)?|\d{13}")


def order_of(dates: Iterable[str]) -> str:
    """How the dates of a pile with slashes or dashes name day and month: "month first" or "day first", by
    those that can be read in one way only, such as 8/29/18; "unknown" if some say the one and some the other,
    "month first" if none says anything."""
    first = second = False
    for date in dates:
        if (match := _PARTS.match(date.strip())) and match[2] != ".":
            first, second = first or int(match[1]) > 12, second or int(match[3]) > 12
    return "unknown" if first and second else "day first" if first else "month first"


def day_of(date: str, *, order: str = "month first", today: datetime.date | None = None) -> int | None:
    """The day of a date, as a number of days (`datetime.date.toordinal`); None if it cannot be read as a date
    of the Gregorian calendar between 1700 and tomorrow. Times and time zones are ignored. `order`: of dates
    such as 8/9/18, as `order_of` says; "unknown" = only those that can be read in one way."""
    text = date.strip()
    try:
        day = _read(text, order)
    except (ValueError, OverflowError, OSError):
        return None
    last = (today or datetime.date.today()).toordinal() + 1
    return day.toordinal() if day and day.year >= FIRST_YEAR and day.toordinal() <= last else None


def _read(text: str, order: str) -> datetime.date | None:
    if match := _ISO.match(text):
        return datetime.date(int(match[1]), int(match[3]), int(match[4]))
    if match := _PARTS.match(text):
        first, second, year = int(match[1]), int(match[3]), _year(match[4])
        if match[2] == "." or first > 12:
            return datetime.date(year, second, first)
        if second <= 12 and first != second and order == "unknown":
            return None
        swapped = order == "day first" and second <= 12
        return datetime.date(year, second, first) if swapped else datetime.date(year, first, second)
    if match := _NAMED.search(text):
        name = match[2].lower()[:3]
        if name in _MONTHS and (day := match[1] or match[3]):
            return datetime.date(int(match[4]), _MONTHS.index(name) + 1, int(day))
    if _SECONDS.fullmatch(text):
        seconds = float(text) / (1000 if len(text) == 13 else 1)
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC).date()
    parts = parsedate(text)
    return datetime.date(*parts[:3]) if parts else None


def _year(text: str) -> int:
    """The year of two digits: those up to twenty years from now are of this century."""
    if len(text) == 4:
        return int(text)
    this = datetime.date.today().year
    year = this // 100 * 100 + int(text)
    return year if year <= this + 20 else year - 100


def iso(day: int) -> str:
    """A day as `2018-08-29`."""
    return datetime.date.fromordinal(day).isoformat()
