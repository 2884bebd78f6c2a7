"""Parse documents that a user types or pastes as one text, plain or with marked mentions.

    == police report ==
    A <m>fire</m> broke out in the <m>old mill</m> on Monday. Nobody was hurt.

    == newspaper ==
    The <m>blaze at the <m>mill</m></m> was put out after three hours.

A line that starts with "==" is a heading and begins a document; a text without headings is one document,
"document 1". Mentions stand between `<m>` and `</m>` (or `<M>` and `</M>`), may be nested, and must end
before the next blank line. Everything else is text, including other angle brackets.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from cdlm_lab.data.coreference import document_of_spans, words_of_text
from cdlm_lab.data.files import DataError, entries, read_lines
from cdlm_lab.data.records import KINDS, CoreferenceDocument, Kind, Span, TokenSpan, Topic
from cdlm_lab.data.words import visible_word
from cdlm_lab.errors import check_choice

UNNAMED = "document 1"
Line = tuple[int, str]  # number from 1, text up to "\n"; a carriage return is white space like any other
HALF_A_CHARACTER = re.compile(r"[\ud800-\udfff]")


class Section(NamedTuple):
    """The lines of one document; `line` is the number of the line in which it begins, `start` the offset of
    its first line in the text as given."""

    title: str
    line: int
    lines: Sequence[Line]
    start: int = 0

    def no_text(self, source: str | Path) -> DataError:
        """The DataError to raise if the document has no text."""
        what, remedy = f"the document {self.title} has no text", "write some, or leave the document out"
        return DataError(source, what, remedy, line=self.line, field="text")


def pasted_documents(text: str, *, source: str = "documents") -> list[tuple[str, str]]:
    """Title and text of each document, in order. Titles come without "==" and with single spaces, "" if the
    text has no headings; texts are stripped. `source`: name of the text in error messages."""
    lines = lines_of(text, source=source, remedy="write or paste a document")
    documents, titled = [], any(_is_heading(line) for _, line in lines)
    for section in sections_of(source, lines):
        body = "\n".join(line.rstrip("\r") for _, line in section.lines).strip()
        if not body:
            raise section.no_text(source)
        documents.append((section.title if titled else "", body))
    return documents


def as_pasted(documents: Mapping[str, str]) -> str:
    """Documents as one text, each under its heading, as `pasted_documents` reads them."""
    return "\n\n".join((f"== {title} ==\n" if title else "") + body for title, body in documents.items())


def lines_of(text: str, *, source: str, remedy: str) -> list[Line]:
    """The lines of a typed text with their numbers from 1, without a byte order mark. Raises DataError for an
    empty text, with the advice `remedy`, and for half a character (a lone surrogate)."""
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise DataError(source, "the text is empty", remedy, field="text")
    if half := HALF_A_CHARACTER.search(text):
        what, line = f"half a character (U+{ord(half[0]):04X})", text.count("\n", 0, half.start()) + 1
        raise DataError(source, what, "delete it and type it again", line=line, field="text")
    return list(enumerate(text.split("\n"), start=1))


def filled_lines(text: str, *, source: str, remedy: str) -> list[str]:
    """The non-empty lines, stripped. Raises DataError if there are none, or one has a lone surrogate."""
    return [line.strip() for _, line in lines_of(text, source=source, remedy=remedy) if line.strip()]


def sections_of(source: str | Path, lines: Sequence[Line]) -> list[Section]:
    """Divide lines into documents at their headings; all lines are "document 1" if there is no heading."""
    starts = [place for place, (_, line) in enumerate(lines) if _is_heading(line)]
    if not starts:
        return [Section(UNNAMED, 1, lines)]
    for number, line in lines[: starts[0]]:
        if line.strip():
            remedy = "write a heading above it: == title =="
            raise DataError(source, "text before the first heading", remedy, line=number, field="text")
    sections: dict[str, Section] = {}
    for start, end in pairwise([*starts, len(lines)]):
        number, heading = lines[start][0], lines[start][1].strip()
        title = " ".join(heading.strip("=").split())
        if not title or not heading.endswith("=="):
            unclosed = "a line that starts with == is a heading, but == at its end is missing"
            what = "no title" if heading.endswith("==") else unclosed
            raise DataError(source, what, "write it as == title ==", line=number, field="heading")
        if title in sections:
            what = f"a document {title} begins in line {sections[title].line} already"
            raise DataError(source, what, "name them apart", line=number, field="heading")
        above = sum(len(line) + 1 for _, line in lines[: start + 1])
        sections[title] = Section(title, number, lines[start + 1 : end], above)
    return list(sections.values())


def _is_heading(line: str) -> bool:
    """Whether a line begins a document by "==", even if the "==" at its end is missing."""
    return line.lstrip().startswith("==")


TOPIC = "own documents"
_Marked = tuple[int, int, int]  # start and end of a mention in characters, line of its <m>

MARKS = re.compile(r"(</?m>)", re.IGNORECASE)
_NEARLY_A_MARK = re.compile(r"</?m>|\[/?m\]|&lt;/?m&gt;", re.IGNORECASE)  # in joined tokens, without spaces


def parse_marked_documents(text: str, *, kind: Kind, source: str = "text", needs_marks: bool = True) -> Topic:
    """Parse the documents of a text, in order, into one topic named "own documents".

    Tokens are those of `words_of_text`, without invisible characters. An English sentence splitter and blank
    lines end sentences, but never inside a mention. All sentences count as validated. Mentions are all of one
    `kind`, have the ids "{document}:{number}", from 0 in order of their spans, and form singleton clusters.
    `needs_marks`: True = raise DataError if no mention is marked.
    """
    check_choice("kind", kind, KINDS)
    remedy = "write a document with marked mentions" if needs_marks else "write a document"
    lines = lines_of(text, source=source, remedy=remedy)
    documents = _documents(source, lines, kind, begin=len(text) - len(text.removeprefix("\ufeff")))
    return _topic(source, documents, needs_marks=needs_marks)


def marked_texts(
    texts: Mapping[str, str],
    *,
    kind: Kind,
    needs_marks: bool = True,
    found: Mapping[str, Collection[Span]] = MappingProxyType({}),
) -> Topic:
    """Parse texts, given by name, into one topic, each as one document with mentions in <m> and </m>; a line
    that looks like a heading is text. `needs_marks`: True = raise DataError if no mention is marked. `found`:
    of texts without marks, the mentions as spans of characters, none over a blank line."""
    check_choice("kind", kind, KINDS)
    documents = []
    for name, text in texts.items():
        lines = lines_of(text, source=name, remedy="write some, or leave the document out")
        begin = len(text) - len(text.removeprefix("\ufeff"))
        documents.append(_document(name, Section(name, 1, lines, begin), kind, found.get(name, ())))
    return _topic("documents", documents, needs_marks=needs_marks)


def read_marked_documents(path: str | Path, *, kind: Kind, needs_marks: bool = True) -> Topic:
    """Read a topic from a file of documents, or a folder whose `*.txt` (or `*.TXT`) files are one document
    each, named as the file, without a heading. `needs_marks`: True = raise DataError if nothing is marked."""
    check_choice("kind", kind, KINDS)
    path = Path(path)
    if not path.is_dir():
        return _topic(path, _documents(path, list(read_lines(path)), kind), needs_marks=needs_marks)
    named: dict[str, Path] = {}
    for file in entries(path):
        if file.suffix.lower() == ".txt" and (other := named.setdefault(file.stem, file)) is not file:
            what = f"{other.name} is document {file.stem} too"
            raise DataError(file, what, "name them apart", field="file name")
    if not named:
        remedy = "put each document there as a file of its own, or give the path of one file"
        raise DataError(path, "no files named *.txt", remedy, field="folder")
    documents = [_document(file, _whole_file(file), kind) for file in named.values()]
    return _topic(path, documents, needs_marks=needs_marks)


def unmarked(text: str) -> tuple[str, list[int]]:
    """A text without its marks, and for each character as given its place in that."""
    pieces = MARKS.split(text)  # every second one is a mark
    places: list[int] = []
    plain = 0
    for number, piece in enumerate(pieces):
        places += [plain] * len(piece) if number % 2 else range(plain, plain + len(piece))
        plain += 0 if number % 2 else len(piece)
    return "".join(pieces[::2]), places


def nearly_a_mark(documents: Iterable[CoreferenceDocument]) -> str:
    """The first piece of text that resembles a mark but is none, as `< m>` or `[m]`; "" if there is none."""
    match = _NEARLY_A_MARK.search("".join("".join(document.tokens) for document in documents))
    return match[0] if match else ""


def _topic(
    source: str | Path, documents: Sequence[CoreferenceDocument], *, needs_marks: bool = True
) -> Topic:
    if needs_marks and not any(document.mentions for document in documents):
        what, remedy = "no mention in any document", "write <m> before and </m> behind the words of each"
        if nearly := nearly_a_mark(documents):
            what = f"{what}, and {nearly} is not a mark"
        raise DataError(source, what, remedy, field="marks")
    return Topic(id=TOPIC, documents=tuple(documents))


def _documents(
    source: str | Path, lines: Sequence[Line], kind: Kind, *, begin: int = 0
) -> list[CoreferenceDocument]:
    sections = sections_of(source, lines)
    for section in sections:
        if MARKS.search(section.title):
            remedy = "write it as == title =="
            raise DataError(source, "a mark in the title", remedy, line=section.line, field="heading")
    return [_document(source, one._replace(start=begin + one.start), kind) for one in sections]


def _whole_file(path: Path) -> Section:
    lines = list(read_lines(path))
    for number, line in lines:
        if _is_heading(line):
            what = "a heading, but each file of a folder is one document"
            remedy = "take the heading out, or read this file by itself"
            raise DataError(path, what, remedy, line=number, field="heading")
    return Section(path.stem, 1, lines)


def has_marks(text: str) -> bool:
    """Whether a text has a mark of a mention, at its begin or end."""
    return MARKS.search(text) is not None


def with_marks(text: str, spans: Iterable[Span]) -> str:
    """A text with <m> and </m> around spans of its characters, none of which cross."""
    starts, ends = zip(*spans, strict=True) if spans else ((), ())
    marks = [(place, 1, "<m>") for place in starts] + [(place, 0, "</m>") for place in ends]
    places = [0, *(place for place, *_ in sorted(marks)), len(text)]
    pieces = [text[start:end] for start, end in pairwise(places)]
    return "".join(chain.from_iterable(zip(pieces, [*(mark for *_, mark in sorted(marks)), ""], strict=True)))


def _document(
    source: str | Path, section: Section, kind: Kind, found: Collection[Span] = ()
) -> CoreferenceDocument:
    text, places, marked = _without_marks(source, section)
    marked += [(first - section.start, stop - section.start, section.line) for first, stop in found]
    cuts = (place for start, end, _ in marked for place in (start, end))
    words, sentences, before = words_of_text(text, cuts)
    spans: set[TokenSpan] = set()
    for start, end, line in marked:
        span = before[start], before[end]
        if span[0] == span[1]:
            remedy = "write them around the words of a mention"
            raise DataError(source, "no words between <m> and </m>", remedy, line=line, field="marks")
        if span in spans:
            what = f"{' '.join(text[start:end].split())[:40]!r} is marked twice"
            raise DataError(source, what, "take one <m> and </m> out", line=line, field="marks")
        spans.add(span)
    if not words:
        raise section.no_text(source)
    return document_of_spans(
        [
            (name := f"{section.title}:{number}", span, kind, name)
            for number, span in enumerate(sorted(spans))
        ],
        id=section.title,
        topic=TOPIC,
        subtopic=TOPIC,
        tokens=[visible_word(text[first:last]) for first, last in words],
        offsets=[(places[first], places[last - 1] + 1) for first, last in words],
        sentences=sentences,
        validated=range(len(sentences)),
    )


def _without_marks(source: str | Path, section: Section) -> tuple[str, Sequence[int], list[_Marked]]:
    """The text of a document without marks, the place of each of its characters in the text as given, and the
    mentions in it, each with the line of its <m>."""
    pieces: list[str] = []
    places: list[int] = []
    opened: list[tuple[int, int]] = []
    marked: list[_Marked] = []
    given = section.start
    for number, line in [*section.lines, (0, "")]:
        if opened and not line.strip():
            what = "<m> is not closed before the next blank line, heading or end of the text"
            remedy = "write </m> behind the last word of the mention"
            raise DataError(source, what, remedy, line=opened[0][1], field="marks")
        for piece in MARKS.split(f"{line}\n"):
            if piece.lower() == "<m>":
                opened.append((len(places), number))
            elif piece.lower() != "</m>":
                pieces.append(piece)
                places += range(given, given + len(piece))
            elif opened:
                start, first = opened.pop()
                marked.append((start, len(places), first))
            else:
                remedy = "write <m> before the first word of the mention"
                raise DataError(source, "</m> without <m>", remedy, line=number, field="marks")
            given += len(piece)
    return "".join(pieces), places, marked
