"""A few documents pasted into a box, one below the other.

    == Kiss and Tell ==
    Kiss and Tell is a film starring Shirley Temple.

    == Shirley Temple ==
    As an adult, she served as Chief of Protocol.

A line that starts with "==" is a heading and begins a document; a text without headings is one document, as
in `marked_documents`. All else is text.
"""

from __future__ import annotations

import re
from itertools import pairwise

from cdlm_lab.data.files import DataError

UNNAMED = "document 1"
_HALF_A_CHARACTER = re.compile(r"[\ud800-\udfff]")


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
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise DataError(source, "the text is empty", "write or paste a document", field="text")
    if half := _HALF_A_CHARACTER.search(text):
        what, line = f"half a character (U+{ord(half[0]):04X})", text.count("\n", 0, half.start()) + 1
        raise DataError(source, what, "delete it and type it again", line=line, field="text")
    lines = text.split("\n")
    headings = [place for place, line in enumerate(lines) if line.lstrip().startswith("==")]
    if not headings:
        return [(UNNAMED, text.strip())]
    for number, line in enumerate(lines[: headings[0]], start=1):
        if line.strip():
            remedy = "write a heading above it: == title =="
            raise DataError(source, "text before the first heading", remedy, line=number, field="text")
    documents: dict[str, str] = {}
    for start, end in pairwise([*headings, len(lines)]):
        title = _title(source, start + 1, lines[start].strip())
        if title in documents:
            what = f"two documents are called {title}"
            raise DataError(source, what, "name them apart", line=start + 1, field="heading")
        documents[title] = "\n".join(line.rstrip("\r") for line in lines[start + 1 : end]).strip()
        if not documents[title]:
            what, remedy = f"the document {title} has no text", "write some, or leave the document out"
            raise DataError(source, what, remedy, line=start + 1, field="text")
    return list(documents.items())


def _title(source: str, line: int, heading: str) -> str:
    title = " ".join(heading.strip("=").split())
    if not heading.endswith("=="):
        what = "a line that starts with == is a heading, but == at its end is missing"
    elif title:
        return title
    else:
        what = "no title"
    raise DataError(source, what, "write it as == title ==", line=line, field="heading")
