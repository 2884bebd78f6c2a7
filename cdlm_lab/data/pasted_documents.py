"""A few documents pasted into a box, one below the other.

    == Kiss and Tell ==
    Kiss and Tell is a film starring Shirley Temple.

    == Shirley Temple ==
    As an adult, she served as Chief of Protocol.

A line that starts with "==" is a heading and begins a document; a text without headings is one document. All
else is text. `marked_documents` has the same headings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from cdlm_lab.data.files import DataError

UNNAMED = "document 1"
Line = tuple[int, str]  # number from 1, text up to "\n"; a carriage return is white space like any other
_HALF_A_CHARACTER = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Lines of one document; `line`: where it begins."""

    title: str
    line: int
    lines: Sequence[Line]


def pasted_documents(text: str, *, source: str = "documents") -> list[tuple[str, str]]:
    """Title and text of each document, in order.

    Titles have no "==" and single spaces; texts keep their lines, without white space around them. A text
    without headings is "document 1".

    Args:
        text: in the format above; lines end at "\\n" or "\\r\\n".
        source: what complaints call the text.

    Raises:
        DataError: an empty text, text before the first heading, a heading without title or end, two documents
            of one title, a document without text, half a character (a lone surrogate).
    """
    lines = lines_of(text, source=source, remedy="write or paste a document")
    documents = []
    for section in sections_of(source, lines):
        body = "\n".join(line.rstrip("\r") for _, line in section.lines).strip()
        if not body:
            what = f"the document {section.title} has no text"
            remedy = "write some, or leave the document out"
            raise DataError(source, what, remedy, line=section.line, field="text")
        documents.append((section.title, body))
    return documents


def lines_of(text: str, *, source: str, remedy: str) -> list[Line]:
    """The lines of what somebody typed, without a byte order mark.

    Args:
        remedy: what to do about an empty text.

    Raises:
        DataError: an empty text, half a character (a lone surrogate).
    """
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise DataError(source, "the text is empty", remedy, field="text")
    if half := _HALF_A_CHARACTER.search(text):
        what, line = f"half a character (U+{ord(half[0]):04X})", text.count("\n", 0, half.start()) + 1
        raise DataError(source, what, "delete it and type it again", line=line, field="text")
    return list(enumerate(text.split("\n"), start=1))


def filled_lines(text: str, *, source: str, remedy: str) -> list[str]:
    """The lines that are not empty, without white space at their ends; arguments and errors as of
    `lines_of`."""
    return [line.strip() for _, line in lines_of(text, source=source, remedy=remedy) if line.strip()]


def first_and_others(text: str, *, source: str, first: str, other: str) -> tuple[str, str]:
    """What stands on the first line that is not empty, and the lines after it as one text.

    Args:
        first, other: what these lines are, for messages: "a question", "candidate".

    Raises:
        DataError: as of `lines_of`; nothing but the first line.
    """
    remedy = f"write {first} on the first line and one {other} on each line below"
    line, *others = filled_lines(text, source=source, remedy=remedy)
    if not others:
        raise DataError(source, f"there is {first} but no {other}", remedy, field="text")
    return line, "\n".join(others)


def sections_of(source: str | Path, lines: Sequence[Line]) -> list[Section]:
    """What stands below each heading; all as "document 1" if there is none.

    Raises:
        DataError: text before the first heading, a heading without title or end, two of one title.
    """
    starts = [place for place, (_, line) in enumerate(lines) if is_heading(line)]
    if not starts:
        return [Section(title=UNNAMED, line=1, lines=lines)]
    for number, line in lines[: starts[0]]:
        if line.strip():
            remedy = "write a heading above it: == title =="
            raise DataError(source, "text before the first heading", remedy, line=number, field="text")
    found: dict[str, Section] = {}
    for start, end in pairwise([*starts, len(lines)]):
        number, line = lines[start]
        title = _title(source, number, line.strip())
        if title in found:
            what = f"a document {title} begins in line {found[title].line} already"
            raise DataError(source, what, "name them apart", line=number, field="heading")
        found[title] = Section(title=title, line=number, lines=lines[start + 1 : end])
    return list(found.values())


def is_heading(line: str) -> bool:
    """True = it begins a document, or its heading is not finished."""
    return line.lstrip().startswith("==")


def _title(source: str | Path, line: int, heading: str) -> str:
    title = " ".join(heading.strip("=").split())
    if not heading.endswith("=="):
        what = "a line that starts with == is a heading, but == at its end is missing"
    elif title:
        return title
    else:
        what = "no title"
    raise DataError(source, what, "write it as == title ==", line=line, field="heading")
