"""TREC-QA (Wang, Smith and Mitamura 2007, as prepared by Yao et al. 2013) in the two forms it goes about in.

Token files, a folder for each split. Line i of one belongs to line i of the others; all is in lower case:

    clean-test/a.toks     who wrote blue mill ?        the question
    clean-test/b.toks     blue mill has 300 pages .    a candidate
    clean-test/sim.txt    0                            1 if it is right
    clean-test/id.txt     32.1                         id of the question

And `TRAIN.xml`, `DEV.xml`, `TEST.xml`, which hold the same pairs with their capitals. They look like XML but
are none ("&" stands bare), and are read line by line. The first line of an element is its tokens, tabs
between; the others (parts of speech, dependencies, names, where the answer is) are passed over:

    <QApairs id='32.1'>
    <question>
    Who     wrote   Blue    Mill    ?
    ...
    </question>
    <negative>
    Blue    Mill    has     300     pages   .
    ...
    </negative>
    </QApairs>

Tokens are joined by spaces and stay what they are ("-lrb-" for a bracket). Questions are told apart by their
ids, whatever their text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Literal, get_args

from cdlm_lab.data.candidate_sets import (
    CandidateRow,
    ReadQuestion,
    checked_sets,
    in_one_file,
    neighbouring_rows,
    present_file,
)
from cdlm_lab.data.files import DataError, read_lines
from cdlm_lab.data.records import CandidateSet

TOKEN_FILES = {"question": "a.toks", "candidate": "b.toks", "label": "sim.txt", "id": "id.txt"}
EmptyQuestions = Literal["drop", "refuse"]

_LABELS = {"positive": "1", "negative": "0"}
_QUESTION = re.compile(r"<QApairs id=(?P<quote>['\"])(?P<id>.+)(?P=quote)>")
_OPENING = {f"<{name}>": name for name in ("question", *_LABELS)}
_CLOSED = "</QApairs>"
_CUT = "copy the file again, or close it"

# The larger training set and the clean questions are what the MSPP paper used, and come first.
_FOLDERS = {
    "train": ("train-all", "train"),
    "dev": ("clean-dev", "raw-dev"),
    "test": ("clean-test", "raw-test"),
}
_FILES = {"train": ("TRAIN-ALL.xml", "TRAIN.xml"), "dev": ("DEV.xml",), "test": ("TEST.xml",)}


def read_trecqa(path: str | Path, *, empty: EmptyQuestions = "drop") -> Iterator[CandidateSet]:
    """The questions of a folder of token files or of an XML file, in order, one at a time.

    Args:
        path: a folder with a.toks, b.toks, sim.txt and id.txt, or a file, plain or compressed.
        empty: what to do with questions without any candidate, of which the official XML files have 1, 1 and
            5 and the token files none: leave them out, or refuse the file.

    Raises:
        ValueError: an unknown `empty`.
        DataError: token files of different lengths; XML with tags that do not close, that are not known or
            that stand outside a question; and as `candidate_sets.checked_sets` and `files.read_lines`.
    """
    if empty not in get_args(EmptyQuestions):
        raise ValueError(f"empty is {empty!r}; choose drop or refuse")
    path = Path(path)
    if path.is_dir():
        files = {field: path / name for field, name in TOKEN_FILES.items()}
        return checked_sets(neighbouring_rows(_rows(files)), files=files)
    questions = (read for read in _questions(path) if read.candidates or empty == "refuse")
    return checked_sets(questions, files=in_one_file(path))


def trecqa_files(folder: str | Path) -> dict[str, Path]:
    """train, dev and test -> a folder of token files, or an XML file if there are no such folders; those that
    are there.

    Of several, the one used by the MSPP paper: train-all before train, clean-dev and clean-test before
    raw-dev and raw-test. The XML files hold the raw questions; `candidate_sets.clean_sets` makes the same 65
    and 68 clean ones of them.
    """
    folder, tokens = Path(folder), {}
    for split, names in _FOLDERS.items():
        present = (folder / name for name in names if (folder / name / TOKEN_FILES["question"]).is_file())
        tokens[split] = next(present, None)
    # Never some of each: a model would be trained on lower case and tested on capitals.
    xml = {split: present_file(folder, *names) for split, names in _FILES.items()}
    found = tokens if any(tokens.values()) else xml
    return {split: path for split, path in found.items() if path is not None}


def _rows(files: dict[str, Path]) -> Iterator[CandidateRow]:
    readers = (read_lines(path) for path in files.values())
    for line, entries in enumerate(zip_longest(*readers), start=1):
        if None in entries:
            short = list(files.values())[entries.index(None)]
            longer = next(path for path, entry in zip(files.values(), entries, strict=True) if entry)
            what = f"line {line} is missing, which {longer.name} has"
            raise DataError(
                short, what, "lines of the four files belong together; copy them again", line=line
            )
        texts = {field: text for field, (_, text) in zip(files, entries, strict=True)}
        yield CandidateRow(line=line, **texts)


def _questions(path: Path) -> Iterator[ReadQuestion]:
    name, start, asked = "", 0, ""
    candidates: list[tuple[int, str, str]] = []
    for line, tag, text in _elements(path):
        if tag == "QApairs":
            if start:
                raise _unclosed(path, f"QApairs id={name!r}", start)
            name, start, asked, candidates = text, line, "", []
        elif not start:
            remedy = "put it between <QApairs id='...'> and </QApairs>"
            raise DataError(path, "it stands outside a question", remedy, line=line, field=tag)
        elif tag == _CLOSED:
            yield ReadQuestion(id=name, question=asked, line=start, candidates=tuple(candidates))
            start = 0
        elif tag == "question":
            asked = text
        else:
            candidates.append((line, text, _LABELS[tag]))
    if start:
        raise _unclosed(path, f"QApairs id={name!r}", start)


def _elements(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, name and text of each element: of QApairs the id, of its end nothing, of others their tokens."""
    tag, start, tokens = "", 0, None
    for line, raw in read_lines(path):
        text = raw.strip()
        opened = _QUESTION.fullmatch(text)
        if tag and text == f"</{tag}>":
            yield start + 1, tag, tokens or ""
            tag = ""
        elif tag and (opened or text == _CLOSED or text in _OPENING):
            raise _unclosed(path, tag, start)
        elif tag:
            tokens = " ".join(text.split("\t")) if tokens is None else tokens
        elif text in _OPENING:
            tag, start, tokens = _OPENING[text], line, None
        elif opened:
            yield line, "QApairs", opened["id"]
        elif text == _CLOSED:
            yield line, _CLOSED, ""
        elif text:
            remedy = f"write one of <QApairs id='...'>, {', '.join(_OPENING)}, {_CLOSED}"
            raise DataError(path, f"{text[:40]!r} where a tag belongs", remedy, line=line, field="tag")
    if tag:
        raise _unclosed(path, tag, start)


def _unclosed(path: Path, tag: str, line: int) -> DataError:
    return DataError(path, f"<{tag}> does not close", _CUT, line=line, field="tag")
