"""One way into the files of answer sentence selection: WikiQA, TREC-QA and ASNQ, known by their names.

Questions with candidate answers: made of what a reader has read, counted, and the "clean" ones among them.

A question none of whose candidates is right, or all of whose are, ranks the same under every model. The clean
setting of answer sentence selection leaves such questions out of dev and test (MSPP paper, section 4.1 and
appendix A); it cuts WikiQA to 857, 122 and 237 questions, TREC-QA to 65 and 68.

ASNQ (Garg, Vu and Moschitti 2020) in its official files: a question, a tab, a sentence, a tab, a label.

    who wrote the iron heel     The Iron Heel is a novel by Jack London.     4
    who wrote the iron heel     It was published in 1908.                    3

There is no header, nothing is quoted, and questions have no ids: neighbouring lines of one question are a
set. The label says whether the sentence stands in the long answer of Natural Questions, and whether the short
answer stands in the sentence: 1 neither, 2 the second, 3 the first, 4 both. Only 4 is right.

The release has `train.tsv` and `dev.tsv`. The MSPP paper took the dev and test sets of Soldaini and Moschitti
2020, who divided the questions of dev.tsv into two lists, `unique.dev` and `unique.test`, a question a line.

WikiQA (Yang, Yih and Meek 2015) in its official files: a row for each sentence that may answer a question.

    QuestionID  Question        DocumentID  DocumentTitle  SentenceID  Sentence                Label
    Q1          what is a kiln  D1          Kiln           D1-0        A kiln is an oven ...   1

Columns are separated by tabs and nothing is quoted: a quotation mark is a character like others, and some
sentences have an odd number of them. All sentences of a question are of one page of Wikipedia, in its order.

TREC-QA (Wang, Smith and Mitamura 2007, as prepared by Yao et al. 2013) in the two forms it goes about in.

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

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Literal, get_args

from cdlm_lab.data.files import (
    COMPRESSED,
    DataError,
    home_path,
    plain_stem,
    read_lines,
    sha256_of_file,
)
from cdlm_lab.data.records import SPLIT_NAMES, CandidateSet

LABELS: Mapping[str, bool] = {"0": False, "1": True}
FIELDS = ("id", "question", "candidate", "label")

_SHOWN = 40  # characters of a faulty label


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRow:
    """A candidate as a file has it, unchecked; `line` is where."""

    line: int
    id: str
    question: str
    candidate: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadQuestion:
    """A question as a file has it, unchecked; `line` is where it begins. `candidates`: line, text, label."""

    id: str
    question: str
    line: int
    candidates: tuple[tuple[int, str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateCounts:
    """What sets hold.

    Attributes:
        questions: how many sets.
        candidates: of all questions together.
        right: how many of these candidates are right.
        without_right: questions that have no right candidate.
        without_wrong: questions that have no wrong candidate.
    """

    questions: int
    candidates: int
    right: int
    without_right: int
    without_wrong: int


def is_clean(candidates: CandidateSet) -> bool:
    """True if the question has a right candidate and a wrong one."""
    return any(candidates.correct) and not all(candidates.correct)


def clean_sets(sets: Iterable[CandidateSet]) -> list[CandidateSet]:
    """The clean ones, in order."""
    return [one for one in sets if is_clean(one)]


def counts_of(sets: Iterable[CandidateSet]) -> CandidateCounts:
    """Questions and candidates of `sets`, which are gone through once."""
    labels = [one.correct for one in sets]
    return CandidateCounts(
        questions=len(labels),
        candidates=sum(map(len, labels)),
        right=sum(map(sum, labels)),
        without_right=sum(not any(correct) for correct in labels),
        without_wrong=sum(all(correct) for correct in labels),
    )


def checked_set(
    read: ReadQuestion, *, files: Mapping[str, Path], labels: Mapping[str, bool] = LABELS
) -> CandidateSet:
    """The set of a question, in the order of the file. White space around texts is dropped, nothing else: a
    candidate that is given twice stays twice, for it is counted twice in published numbers.

    Args:
        read: the question.
        files: each of FIELDS -> the file it stands in.
        labels: how the files write wrong and right.

    Raises:
        DataError: no candidates, an empty id, question or candidate, a label that is not one of `labels`.
    """
    for field, text in (("id", read.id), ("question", read.question)):
        if not text.strip():
            raise DataError(files[field], "it is empty", "fill it in", line=read.line, field=field)
    if not read.candidates:
        what, remedy = f"question {read.id!r} has no candidates", "give it some, or leave it out"
        raise DataError(files["candidate"], what, remedy, line=read.line, field="candidate")
    for line, text, label in read.candidates:
        if not text.strip():
            remedy = "fill it in, or leave it out"
            raise DataError(files["candidate"], "it is empty", remedy, line=line, field="candidate")
        if label.strip() not in labels:
            what, remedy = f"{label[:_SHOWN]!r} is no label", f"write one of {', '.join(labels)}"
            raise DataError(files["label"], what, remedy, line=line, field="label")
    return CandidateSet(
        id=read.id.strip(),
        question=read.question.strip(),
        candidates=tuple(text.strip() for _, text, _ in read.candidates),
        correct=tuple(labels[label.strip()] for _, _, label in read.candidates),
    )


def checked_sets(
    questions: Iterable[ReadQuestion], *, files: Mapping[str, Path], labels: Mapping[str, bool] = LABELS
) -> Iterator[CandidateSet]:
    """The sets of all questions of `files`, one at a time. Arguments are those of `checked_set`.

    Raises:
        DataError: as `checked_set`; two questions of one id; no questions.
    """
    lines: dict[str, int] = {}
    for read in questions:
        made = checked_set(read, files=files, labels=labels)
        if (first := lines.setdefault(made.id, read.line)) != read.line:
            what = f"{made.id!r} is the id of line {first} already, of another question or of other rows"
            remedy = "put the rows of a question together, and give each question its own id"
            raise DataError(files["id"], what, remedy, line=read.line, field="id")
        yield made
    if not lines:
        raise DataError(files["question"], "no questions", "add some, or leave the file out")


def neighbouring_rows(rows: Iterable[CandidateRow]) -> Iterator[ReadQuestion]:
    """Questions of rows: those that follow each other with the same id and question are one."""
    for (name, question), members in groupby(rows, key=lambda row: (row.id, row.question)):
        candidates = tuple((row.line, row.candidate, row.label) for row in members)
        yield ReadQuestion(id=name, question=question, line=candidates[0][0], candidates=candidates)


def in_one_file(path: Path) -> dict[str, Path]:
    """`files` of `checked_set` where one file holds everything."""
    return dict.fromkeys(FIELDS, path)


def present_file(folder: Path, *names: str) -> Path | None:
    """The first of these files that is in the folder, plain or compressed; None if there is none."""
    candidates = (folder / f"{name}{suffix}" for name in names for suffix in ("", *COMPRESSED))
    return next((path for path in candidates if path.is_file()), None)


ASNQ_LABELS = {"1": False, "2": False, "3": False, "4": True}
_COLUMNS = 3


def read_asnq(path: str | Path, listed: str | Path | None = None) -> Iterator[CandidateSet]:
    """The questions of a file, plain or compressed, in order, one at a time.

    A question is called "{file}:{number}", counting from 0, whether it is listed or not. One that comes back
    after another is a set of its own. Blank lines are passed over.

    Args:
        path: of the file.
        listed: a file with a question on each line; only these are read, others are not even checked for
            their labels. None for all.

    Raises:
        DataError: a line without three columns, a list none of whose questions is in the file, and as
            `candidate_sets.checked_sets` and `files.read_lines`.
    """
    path = Path(path)
    wanted = None if listed is None else {text.strip() for _, text in read_lines(listed)}
    questions = neighbouring_rows(_rows(path, wanted))
    return checked_sets(questions, files=in_one_file(path), labels=ASNQ_LABELS)


def asnq_files(folder: str | Path) -> dict[str, tuple[Path, ...]]:
    """train, dev and test -> the arguments of `read_asnq`; those that are there.

    `train.tsv`, `dev.tsv` and `test.tsv`. Without a test.tsv, and with `unique.dev` and `unique.test` beside
    dev.tsv, dev and test are the questions of dev.tsv that these list.
    """
    folder = Path(folder)
    found = {split: present_file(folder, f"{split}.tsv") for split in ("train", "dev", "test")}
    lists = {split: present_file(folder, f"unique.{split}") for split in ("dev", "test")}
    parts = {split: (path,) for split, path in found.items() if path is not None}
    if found["test"] is None and found["dev"] is not None and None not in lists.values():
        parts |= {split: (found["dev"], path) for split, path in lists.items()}
    return parts


def _rows(path: Path, wanted: Collection[str] | None) -> Iterator[CandidateRow]:
    number, before, kept = -1, None, False
    for line, text in read_lines(path):
        if not text.strip():
            continue
        columns = text.split("\t")
        if len(columns) != _COLUMNS:
            what = f"{len(columns)} columns instead of {_COLUMNS}"
            remedy = "write a question, a tab, a sentence, a tab and a label"
            raise DataError(path, what, remedy, line=line, field="row")
        question, sentence, label = columns
        number, before = number + (question != before), question
        if wanted is None or question.strip() in wanted:
            kept = True
            name = f"{plain_stem(path)}:{number}"
            yield CandidateRow(line=line, id=name, question=question, candidate=sentence, label=label)
    if not kept:
        raise DataError(path, "none of the listed questions is in it", "give the list of this file")


HEADER = ["QuestionID", "Question", "DocumentID", "DocumentTitle", "SentenceID", "Sentence", "Label"]
_SPLITS = ("train", "dev", "test")


def read_wikiqa(path: str | Path) -> Iterator[CandidateSet]:
    """The questions of a file, plain or compressed, in order, one at a time; `id` is the QuestionID.

    All of them: `candidate_sets.clean_sets` makes the clean setting. Blank lines are passed over.

    Raises:
        DataError: a first line that is not the header, a row without seven columns, rows of a question that
            do not stand together, and as `candidate_sets.checked_sets` and `files.read_lines`.
    """
    path = Path(path)
    return checked_sets(neighbouring_rows(_wikiqa_rows(path)), files=in_one_file(path))


def wikiqa_files(folder: str | Path) -> dict[str, Path]:
    """train, dev and test -> `WikiQA-train.tsv` and so on, plain or compressed; those that are there."""
    found = {split: present_file(Path(folder), f"WikiQA-{split}.tsv") for split in _SPLITS}
    return {split: path for split, path in found.items() if path is not None}


def _wikiqa_rows(path: Path) -> Iterator[CandidateRow]:
    for line, text in read_lines(path):
        columns = text.split("\t")
        if line == 1:
            if columns != HEADER:
                what, remedy = "not the header of WikiQA", f"begin with {', '.join(HEADER)}, tabs between"
                raise DataError(path, what, remedy, field="header")
            continue
        if not text.strip():
            continue
        if len(columns) != len(HEADER):
            what, remedy = f"{len(columns)} columns instead of {len(HEADER)}", "put a tab between two columns"
            raise DataError(path, what, remedy, line=line, field="row")
        name, question, *_, sentence, label = columns
        yield CandidateRow(line=line, id=name, question=question, candidate=sentence, label=label)


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
        return checked_sets(neighbouring_rows(_trecqa_rows(files)), files=files)
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


def _trecqa_rows(files: dict[str, Path]) -> Iterator[CandidateRow]:
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


READERS_VERSION = "1"  # part of every checksum; raise it when a reader makes other sets of the same files
# What is looked for, in this order.
FORMATS = {
    "wikiqa": "WikiQA-train.tsv, WikiQA-dev.tsv, WikiQA-test.tsv",
    "trecqa": "train, clean-dev, clean-test (folders with a.toks) or TRAIN.xml, DEV.xml, TEST.xml",
    "asnq": "train.tsv, dev.tsv, test.tsv",
}

_READERS: dict[str, Callable[..., Iterator[CandidateSet]]] = {
    "wikiqa": read_wikiqa,
    "trecqa": read_trecqa,
    "asnq": read_asnq,
}


def read_candidate_sets(folder: str | Path, split: str) -> list[CandidateSet]:
    """The questions of a split, in order; all of them, not only the clean ones.

    Args:
        folder: with files of one of FORMATS.
        split: train, dev or test.

    Raises:
        ValueError: an unknown split.
        DataError: as `format_of`, no file of the split, and as the readers.
    """
    name, parts = _parts(folder, split)
    return list(_READERS[name](*parts))


def format_of(folder: str | Path) -> str:
    """The key of FORMATS that a folder is of.

    Raises:
        DataError: there is no such folder, or none of these files in it.
    """
    return _found(folder)[0]


def checksum_of(folder: str | Path, split: str) -> str:
    """SHA-256 (hexadecimal) that names what `read_candidate_sets` gives: over the names and bytes of the
    split's files, wherever the folder lies. Raises as `read_candidate_sets`, less faults inside the files."""
    name, parts = _parts(folder, split)
    values = [name, READERS_VERSION, SPLIT_NAMES[split]]
    for part in parts:
        files = [part / file for file in TOKEN_FILES.values()] if part.is_dir() else [part]
        for file in files:
            values += [file.relative_to(_folder(folder)).as_posix(), sha256_of_file(file)]
    # Each value with its length, so that no two lists of values give the same bytes.
    return hashlib.sha256("".join(f"{len(value)}:{value}" for value in values).encode()).hexdigest()


def _folder(folder: str | Path) -> Path:
    return home_path(folder)


def _found(folder: str | Path) -> tuple[str, dict[str, tuple[Path, ...]]]:
    """The format of a folder, and the arguments of its reader for each split that is there."""
    path = _folder(folder)
    if not path.is_dir():
        raise DataError(path, "there is no such folder", "give the folder of the files", field="folder")
    for name, files in (("wikiqa", wikiqa_files(path)), ("trecqa", trecqa_files(path))):
        if files:
            return name, {split: (file,) for split, file in files.items()}
    if parts := asnq_files(path):
        return "asnq", parts
    what = f"none of these is in it: {'; '.join(f'{names} ({name})' for name, names in FORMATS.items())}"
    raise DataError(path, what, "give the folder of one of these data sets", field="folder")


def _parts(folder: str | Path, split: str) -> tuple[str, tuple[Path, ...]]:
    if split not in SPLIT_NAMES:
        raise ValueError(f"split is {split!r}; choose one of train, dev, test")
    name, parts = _found(folder)
    wanted = SPLIT_NAMES[split].replace("validation", "dev")
    if wanted not in parts:
        what = f"it has no {wanted} set of {name}, only {', '.join(parts)}"
        raise DataError(_folder(folder), what, f"put the file there ({FORMATS[name]})", field="folder")
    return name, parts[wanted]
