"""Answer sentence selection: questions with candidate answers from WikiQA, TREC-QA and ASNQ.

The data set of a folder is recognised by the names of its files; FORMATS lists them. A question none of whose
candidates is right, or all of whose are, ranks the same under every model: the clean setting leaves such
questions out of dev and test (MSPP paper, section 4.1 and appendix A), which cuts WikiQA to 857, 122 and 237
questions, TREC-QA to 65 and 68.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from cdlm_lab.data.files import (
    DataError,
    home_path,
    plain_stem,
    present_file,
    read_lines,
    read_table,
    sha256_of_file,
    sha256_of_parts,
)
from cdlm_lab.data.records import CandidateSet, split_named

LABELS: Mapping[str, bool] = {"0": False, "1": True}
READERS_VERSION = "1"  # part of every checksum; raise it when a reader makes other sets of the same files
FORMATS = {  # searched in this order
    "wikiqa": "WikiQA-train.tsv, WikiQA-dev.tsv, WikiQA-test.tsv",
    "trecqa": "train, clean-dev, clean-test (folders with a.toks) or TRAIN.xml, DEV.xml, TEST.xml",
    "asnq": "train.tsv, dev.tsv, test.tsv",
}
_SPLITS = ("train", "dev", "test")


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateCounts:
    """The size of a list of sets: of questions, of their candidates, of those that are right, and of
    questions without a right or without a wrong candidate."""

    questions: int
    candidates: int
    right: int
    without_right: int
    without_wrong: int


class _Row(NamedTuple):
    """A candidate with its question, unchecked."""

    line: int
    id: str
    question: str
    candidate: str
    label: str


class _Question(NamedTuple):
    """A question, unchecked; `candidates`: line, text, label."""

    line: int
    id: str
    question: str
    candidates: tuple[tuple[int, str, str], ...]


def read_candidate_sets(folder: str | Path, split: str) -> list[CandidateSet]:
    """The questions of train, dev or test in a folder of one of FORMATS, in order; not only the clean
    ones."""
    form, parts = _parts(folder, split)
    read: dict[str, Callable[..., Iterator[CandidateSet]]]
    read = {"wikiqa": read_wikiqa, "trecqa": read_trecqa, "asnq": read_asnq}
    return list(read[form](*parts))


def format_of(folder: str | Path) -> str:
    """The key of FORMATS that a folder is of."""
    return _format_and_files(folder)[0]


def checksum_of(folder: str | Path, split: str) -> str:
    """SHA-256 (hexadecimal) that names what `read_candidate_sets` gives: over the names and bytes of the
    split's files, wherever the folder lies."""
    form, parts = _parts(folder, split)
    values = [form, READERS_VERSION, split_named(split)]
    for part in parts:
        for file in [part / name for name in TOKEN_FILES.values()] if part.is_dir() else [part]:
            values += [file.relative_to(home_path(folder)).as_posix(), sha256_of_file(file)]
    return sha256_of_parts(values)


def _parts(folder: str | Path, split: str) -> tuple[str, tuple[Path, ...]]:
    """The format of a folder, and the arguments of its reader for a split."""
    wanted = split_named(split).replace("validation", "dev")
    form, parts = _format_and_files(folder)
    if wanted not in parts:
        what = f"it has no {wanted} set of {form}, only {', '.join(parts)}"
        raise DataError(home_path(folder), what, f"put the file there ({FORMATS[form]})", field="folder")
    return form, parts[wanted]


def _format_and_files(folder: str | Path) -> tuple[str, dict[str, tuple[Path, ...]]]:
    path = home_path(folder)
    if not path.is_dir():
        raise DataError(path, "there is no such folder", "give the folder of the files", field="folder")
    for form, files in (("wikiqa", wikiqa_files(path)), ("trecqa", trecqa_files(path))):
        if files:
            return form, {split: (file,) for split, file in files.items()}
    if parts := asnq_files(path):
        return "asnq", parts
    what = f"none of these is in it: {'; '.join(f'{names} ({name})' for name, names in FORMATS.items())}"
    raise DataError(path, what, "give the folder of one of these data sets", field="folder")


def is_clean(candidates: CandidateSet) -> bool:
    """True if the question has a right candidate and a wrong one."""
    return any(candidates.correct) and not all(candidates.correct)


def clean_sets(sets: Iterable[CandidateSet]) -> list[CandidateSet]:
    """The clean ones, in order."""
    return list(filter(is_clean, sets))


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


def read_wikiqa(path: str | Path) -> Iterator[CandidateSet]:
    """WikiQA (Yang, Yih and Meek 2015) in its official files, one question at a time; `id` is the QuestionID.

        QuestionID  Question        DocumentID  DocumentTitle  SentenceID  Sentence                Label
        Q1          what is a kiln  D1          Kiln           D1-0        A kiln is an oven ...   1

    Columns are separated by tabs and nothing is quoted: some sentences have an odd number of quotation marks.
    """
    header = ["QuestionID", "Question", "DocumentID", "DocumentTitle", "SentenceID", "Sentence", "Label"]
    table = read_table(path, columns=7, row="seven columns, tabs between", header=header)
    rows = (
        _Row(line, name, question, sentence, label) for line, (name, question, *_, sentence, label) in table
    )
    return _checked(_neighbours(rows), files=Path(path))


def wikiqa_files(folder: str | Path) -> dict[str, Path]:
    """The `WikiQA-{split}.tsv` files of a folder, by split."""
    return _present({split: present_file(folder, f"WikiQA-{split}.tsv") for split in _SPLITS})


def read_asnq(path: str | Path, listed: str | Path | None = None) -> Iterator[CandidateSet]:
    """ASNQ (Garg, Vu and Moschitti 2020): question, sentence and label, tabs between; one question at a time.

        who wrote the iron heel     The Iron Heel is a novel by Jack London.     4

    Labels say whether the sentence stands in the long answer of Natural Questions, and whether the short
    answer stands in the sentence: 1 neither, 2 the second, 3 the first, 4 both. Only 4 is right. Neighbouring
    lines of one question are a set, called "{file}:{number}", counting from 0, whether it is listed or not.

    `listed`: a file with a question on each line; only these are read, and others are not even checked.
    """
    path = Path(path)
    wanted = None if listed is None else {text.strip() for _, text in read_lines(listed)}
    labels = {"1": False, "2": False, "3": False, "4": True}
    return _checked(_neighbours(_asnq_rows(path, wanted)), files=path, labels=labels)


def _asnq_rows(path: Path, wanted: set[str] | None) -> Iterator[_Row]:
    number, before, empty = -1, None, True
    row = "a question, a tab, a sentence, a tab and a label"
    for line, (question, sentence, label) in read_table(path, columns=3, row=row):
        number, before = number + (question != before), question
        if wanted is None or question.strip() in wanted:
            empty = False
            yield _Row(line, f"{plain_stem(path)}:{number}", question, sentence, label)
    if empty:
        raise DataError(path, "none of the listed questions is in it", "give the list of this file")


def asnq_files(folder: str | Path) -> dict[str, tuple[Path, ...]]:
    """train, dev and test -> the arguments of `read_asnq`, those that are there.

    `train.tsv`, `dev.tsv` and `test.tsv`; the release has no test.tsv. Where `unique.dev` and `unique.test`
    lie beside dev.tsv (Soldaini and Moschitti 2020, as in the MSPP paper), they list the questions of dev.tsv
    that are dev and test.
    """
    files = _present({split: present_file(folder, f"{split}.tsv") for split in _SPLITS})
    lists = _present({split: present_file(folder, f"unique.{split}") for split in ("dev", "test")})
    parts = {split: (path,) for split, path in files.items()}
    if "test" not in files and "dev" in files and len(lists) == 2:
        parts |= {split: (files["dev"], path) for split, path in lists.items()}
    return parts


TOKEN_FILES = {"question": "a.toks", "candidate": "b.toks", "label": "sim.txt", "id": "id.txt"}
EmptyQuestions = Literal["drop", "refuse"]
_TAGS = {"positive": "1", "negative": "0"}
_QUESTION = re.compile(r"<QApairs id=(?P<quote>['\"])(?P<id>.+)(?P=quote)>")
_OPENING = {f"<{name}>": name for name in ("question", *_TAGS)}
_CLOSED = "</QApairs>"
# The larger training set and the clean questions are what the MSPP paper used, and come first.
_FOLDERS = {
    "train": ("train-all", "train"),
    "dev": ("clean-dev", "raw-dev"),
    "test": ("clean-test", "raw-test"),
}
_FILES = {"train": ("TRAIN-ALL.xml", "TRAIN.xml"), "dev": ("DEV.xml",), "test": ("TEST.xml",)}


def read_trecqa(path: str | Path, *, empty: EmptyQuestions = "drop") -> Iterator[CandidateSet]:
    """TREC-QA (Wang, Smith and Mitamura 2007, as prepared by Yao et al. 2013), one question at a time.

    `path`: a folder of token files, in lower case, whose lines belong together, or an XML file with the same
    pairs in their case. It is no true XML ("&" stands bare); of an element the first line is its tokens:

        clean-test/a.toks     who wrote blue mill ?        <QApairs id='32.1'>
        clean-test/b.toks     blue mill has 300 pages .    <question>
        clean-test/sim.txt    0                            Who     wrote   Blue    Mill    ?
        clean-test/id.txt     32.1                         </question>
                                                           <negative> ... </negative></QApairs>

    Tokens are joined by spaces and stay what they are ("-lrb-" for a bracket).

    `empty`: drop questions without any candidate, of which the official XML files have 1, 1 and 5 and the
    token files none, or refuse the file.
    """
    if empty not in get_args(EmptyQuestions):
        raise ValueError(f"empty is {empty!r}; choose drop or refuse")
    path = Path(path)
    if path.is_dir():
        files = {field: path / name for field, name in TOKEN_FILES.items()}
        return _checked(_neighbours(_token_rows(files)), files=files)
    questions = (one for one in _xml_questions(path) if one.candidates or empty == "refuse")
    return _checked(questions, files=path)


def trecqa_files(folder: str | Path) -> dict[str, Path]:
    """train, dev and test -> a folder of token files, or an XML file if there are no such folders.

    Of several, the one used by the MSPP paper: train-all before train, clean-dev and clean-test before
    raw-dev and raw-test. The XML files hold the raw questions; `clean_sets` makes the same 65 and 68 clean
    ones.
    """
    folder = Path(folder)
    tokens = {
        split: next((path for name in names if ((path := folder / name) / "a.toks").is_file()), None)
        for split, names in _FOLDERS.items()
    }
    # Never some of each: a model would be trained on lower case and tested on capitals.
    xml = {split: present_file(folder, *names) for split, names in _FILES.items()}
    return _present(tokens if any(tokens.values()) else xml)


def _token_rows(files: dict[str, Path]) -> Iterator[_Row]:
    for line, entries in enumerate(zip_longest(*map(read_lines, files.values())), start=1):
        if None in entries:
            short = list(files.values())[entries.index(None)]
            longer = next(path for path, entry in zip(files.values(), entries, strict=True) if entry)
            what = f"line {line} is missing, which {longer.name} has"
            remedy = "lines of the four files belong together; copy them again"
            raise DataError(short, what, remedy, line=line)
        yield _Row(line, **{field: text for field, (_, text) in zip(files, entries, strict=True)})


def _xml_questions(path: Path) -> Iterator[_Question]:
    name, start, question = "", 0, ""
    candidates: list[tuple[int, str, str]] = []
    for line, tag, text in _xml_elements(path):
        if tag == "QApairs":
            if start:
                raise _unclosed(path, f"QApairs id={name!r}", start)
            name, start, question, candidates = text, line, "", []
        elif not start:
            remedy = "put it between <QApairs id='...'> and </QApairs>"
            raise DataError(path, "it stands outside a question", remedy, line=line, field=tag)
        elif tag == _CLOSED:
            yield _Question(start, name, question, tuple(candidates))
            start = 0
        elif tag == "question":
            question = text
        else:
            candidates.append((line, text, _TAGS[tag]))
    if start:
        raise _unclosed(path, f"QApairs id={name!r}", start)


def _xml_elements(path: Path) -> Iterator[tuple[int, str, str]]:
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
    return DataError(
        path, f"<{tag}> does not close", "copy the file again, or close it", line=line, field="tag"
    )


def _present(files: dict[str, Path | None]) -> dict[str, Path]:
    return {split: path for split, path in files.items() if path is not None}


def _neighbours(rows: Iterable[_Row]) -> Iterator[_Question]:
    """Questions of rows: those that follow each other with the same id and question are one."""
    for (name, question), members in groupby(rows, key=lambda row: (row.id, row.question)):
        candidates = tuple((row.line, row.candidate, row.label) for row in members)
        yield _Question(candidates[0][0], name, question, candidates)


def _checked(
    questions: Iterable[_Question], *, files: Path | Mapping[str, Path], labels: Mapping[str, bool] = LABELS
) -> Iterator[CandidateSet]:
    """The set of each question. White space around texts is dropped, nothing else: a candidate that is given
    twice stays twice, for it is counted twice in published numbers.

    `files`: where everything stands, or the file of each field; `labels`: how they write wrong and right.
    """
    file_of = files if isinstance(files, Mapping) else dict.fromkeys(TOKEN_FILES, files)
    lines: dict[str, int] = {}
    for one in questions:
        for field in ("id", "question"):
            if not getattr(one, field).strip():
                raise DataError(file_of[field], "it is empty", "fill it in", line=one.line, field=field)
        name = one.id.strip()
        if not one.candidates:
            what, remedy = f"question {one.id!r} has no candidates", "give it some, or leave it out"
            raise DataError(file_of["candidate"], what, remedy, line=one.line, field="candidate")
        for line, text, label in one.candidates:
            if not text.strip():
                remedy = "fill it in, or leave it out"
                raise DataError(file_of["candidate"], "it is empty", remedy, line=line, field="candidate")
            if label.strip() not in labels:
                what, remedy = f"{label[:40]!r} is no label", f"write one of {', '.join(labels)}"
                raise DataError(file_of["label"], what, remedy, line=line, field="label")
        if (first := lines.setdefault(name, one.line)) != one.line:
            what = f"{name!r} is the id of line {first} already, of another question or of other rows"
            remedy = "put the rows of a question together, and give each question its own id"
            raise DataError(file_of["id"], what, remedy, line=one.line, field="id")
        yield CandidateSet(
            id=name,
            question=one.question.strip(),
            candidates=tuple(text.strip() for _, text, _ in one.candidates),
            correct=tuple(labels[label.strip()] for _, _, label in one.candidates),
        )
    if not lines:
        raise DataError(file_of["question"], "no questions", "add some, or leave the file out")
