"""Answer sentence selection: questions with candidate answers from WikiQA, TREC-QA and ASNQ.

A question whose candidates are all right or all wrong scores the same under every model, so the clean setting
leaves it out of dev and test (MSPP paper, section 4.1 and appendix A), which cuts WikiQA to 857, 122 and 237
questions, TREC-QA to 65 and 68.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from cdlm_lab.data import files
from cdlm_lab.data.files import DataError, read_lines
from cdlm_lab.data.records import CandidateSet
from cdlm_lab.data.splits import SPLIT_NAMES

TOKEN_FILES = {"question": "a.toks", "candidate": "b.toks", "label": "sim.txt", "id": "id.txt"}
_SPLITS = ("train", "dev", "test")
_LABELS = {"0": False, "1": True}
_ASNQ_LABELS = {"1": False, "2": False, "3": False, "4": True}

_Row = tuple[int, str, str, str, str]  # line number; id, question, candidate and label, not yet checked


class _Question(NamedTuple):
    """A question that is not yet checked; `candidates`: line number, text and label of each."""

    line: int
    id: str
    question: str
    candidates: list[tuple[int, str, str]]


def is_table(fields: Mapping[str, Any]) -> bool:
    """Whether a row is a question with one candidate and its label."""
    texts, labels = {"candidate", "sentence", "answer", "text"}, {"label", "correct"}
    names = {name.lower() for name in fields}
    return "question" in names and bool(texts & names) and bool(labels & names)


def read_wikiqa(path: Path, **_: Any) -> Iterator[CandidateSet]:
    """Yield the questions of an official WikiQA file (Yang, Yih and Meek 2015); `id` is the QuestionID.

        QuestionID  Question        DocumentID  DocumentTitle  SentenceID  Sentence                Label
        Q1          what is a kiln  D1          Kiln           D1-0        A kiln is an oven ...   1

    Columns are separated by tabs and nothing is quoted: some sentences have an odd number of quotation marks.
    """
    header = ["QuestionID", "Question", "DocumentID", "DocumentTitle", "SentenceID", "Sentence", "Label"]
    table = files.read_table(path, columns=7, row="seven columns, tabs between", header=header)
    rows = ((line, name, question, *others[-2:]) for line, (name, question, *others) in table)
    return _checked(_neighbours(rows), places=path)


def wikiqa_files(folder: Path) -> dict[str, Path]:
    """Split -> the file `WikiQA-{split}.tsv`, for the splits that a folder has."""
    return _present({split: files.present_file(folder, f"WikiQA-{split}.tsv") for split in _SPLITS})


def read_asnq(found: Sequence[Path], **_: Any) -> Iterator[CandidateSet]:
    """Yield the questions of an ASNQ file (Garg, Vu and Moschitti 2020); a line is question, sentence, label.

        who wrote the iron heel     The Iron Heel is a novel by Jack London.     4

    Labels say whether the sentence is in the long answer of Natural Questions, and whether it contains the
    short answer: 1 neither, 2 only the latter, 3 only the former, 4 both. Only 4 is right. All lines of one
    question, also those that stand apart, are a set with the id "{file}:{number}"; runs of lines with equal
    questions are counted from 0, listed or not. All of the file is read before the first set is yielded.

    `found`: the file and, perhaps, a list with a question on each line; others are neither read nor checked.
    """
    path, *listed = found
    wanted = {text.strip() for _, text in read_lines(listed[0])} if listed else None
    parts: dict[str, list[CandidateSet]] = {}
    for one in _checked(_neighbours(_asnq_rows(path, wanted)), places=path, labels=_ASNQ_LABELS):
        parts.setdefault(one.question, []).append(one)
    for first, *others in parts.values():
        if others:
            texts = chain(first.candidates, *(other.candidates for other in others))
            correct = chain(first.correct, *(other.correct for other in others))
            yield replace(first, candidates=tuple(texts), correct=tuple(correct))
        else:
            yield first


def _asnq_rows(path: Path, wanted: set[str] | None) -> Iterator[_Row]:
    number, before, empty = -1, None, True
    row = "a question, a tab, a sentence, a tab and a label"
    for line, (question, sentence, label) in files.read_table(path, columns=3, row=row):
        number, before = number + (question != before), question
        if wanted is None or question.strip() in wanted:
            empty = False
            yield line, f"{files.plain_stem(path)}:{number}", question, sentence, label
    if empty:
        raise DataError(path, "none of the listed questions is in it", "give the list of this file")


def asnq_files(folder: Path) -> dict[str, tuple[Path, ...]]:
    """Split -> `train.tsv`, `dev.tsv`, `test.tsv` of a folder. The release has no test.tsv: there,
    `unique.dev` and `unique.test` list the questions of dev.tsv for dev and test (Soldaini and Moschitti
    2020; MSPP paper)."""
    files_of = {split: files.present_file(folder, f"{split}.tsv") for split in _SPLITS}
    parts = {split: (file,) for split, file in _present(files_of).items() if _has_labels(file)}
    lists = _present({split: files.present_file(folder, f"unique.{split}") for split in ("dev", "test")})
    if "test" not in parts and "validation" in parts and len(lists) == 2:
        parts |= {split: (*parts["validation"], listed) for split, listed in lists.items()}
    return parts


def _has_labels(file: Path) -> bool:
    """Whether the last of three columns is a label of ASNQ: a table with a header is another format."""
    first = next((text for _, text in read_lines(file, allow_empty=True) if text.strip()), "")
    return first.count("\t") == 2 and first.rpartition("\t")[2].strip() in _ASNQ_LABELS


_TAGS = {"positive": "1", "negative": "0"}
_QUESTION = re.compile(r"<QApairs id=(?P<quote>['\"])(?P<id>.+)(?P=quote)>")
_OPENING = {f"<{name}>": name for name in ("question", *_TAGS)}
_CLOSED = "</QApairs>"
# In order of preference: the MSPP paper used the larger training set and the clean questions.
_FOLDERS = {
    "train": ("train-all", "train"),
    "dev": ("clean-dev", "raw-dev"),
    "test": ("clean-test", "raw-test"),
}
_FILES = {"train": ("TRAIN-ALL.xml", "TRAIN.xml"), "dev": ("DEV.xml",), "test": ("TEST.xml",)}


def read_trecqa(path: Path, **_: Any) -> Iterator[CandidateSet]:
    """Yield questions of TREC-QA (Wang, Smith and Mitamura 2007, as prepared by Yao et al. 2013).

    `path`: a folder of parallel token files, in lower case, or an XML file with the same pairs in their
    original case. It is not valid XML ("&" is not escaped); the first line of an element holds its tokens:

        clean-test/a.toks     who wrote blue mill ?        <QApairs id='32.1'>
        clean-test/b.toks     blue mill has 300 pages .    <question>
        clean-test/sim.txt    0                            Who     wrote   Blue    Mill    ?
        clean-test/id.txt     32.1                         </question>
                                                           <negative> ... </negative></QApairs>

    Tokens are joined by spaces and not changed ("-lrb-" stays for a bracket). Questions without candidates,
    of which the XML files have 1, 1 and 5, are left out.
    """
    if not path.is_dir():
        return _checked(_xml_questions(path), places=path)
    places = {field: path / name for field, name in TOKEN_FILES.items()}
    return _checked(_neighbours(_token_rows(places)), places=places)


def trecqa_files(folder: Path) -> dict[str, Path]:
    """Split -> folder of token files, or XML file if there are no such folders at all. The XML files hold the
    raw questions, of which the same 65 and 68 are clean."""
    tokens = {
        split: next((folder / name for name in names if (folder / name / "a.toks").is_file()), None)
        for split, names in _FOLDERS.items()
    }
    # Never a mixture: a model would be trained on lower-case text and tested on text with capitals.
    xml = {split: files.present_file(folder, *names) for split, names in _FILES.items()}
    return _present(tokens if any(tokens.values()) else xml)


def _token_rows(places: dict[str, Path]) -> Iterator[_Row]:
    for number, lines in enumerate(zip_longest(*map(read_lines, places.values())), start=1):
        if None in lines:
            short = list(places.values())[lines.index(None)]
            longer = next(path for path, line in zip(places.values(), lines, strict=True) if line)
            what = f"line {number} is missing, which {longer.name} has"
            remedy = "lines of the four files belong together; copy them again"
            raise DataError(short, what, remedy, line=number)
        question, candidate, label, name = (text for _, text in lines)
        yield number, name, question, candidate, label


def _xml_questions(path: Path) -> Iterator[_Question]:
    current: _Question | None = None  # the question that is not closed yet
    tag, opened, tokens = "", 0, None  # tag, line and tokens of the element that is not closed yet
    for line, raw in read_lines(path):
        text = raw.strip()
        begun = _QUESTION.fullmatch(text)
        if tag and text == f"</{tag}>":
            if current is None:
                raise _outside(path, tag, opened + 1)
            if tag == "question":
                current = current._replace(question=tokens or "")
            else:
                current.candidates.append((opened + 1, tokens or "", _TAGS[tag]))
            tag = ""
        elif tag and (begun or text == _CLOSED or text in _OPENING):
            raise _unclosed(path, tag, opened)
        elif tag:
            tokens = " ".join(text.split("\t")) if tokens is None else tokens
        elif text in _OPENING:
            tag, opened, tokens = _OPENING[text], line, None
        elif begun:
            if current:
                raise _unclosed(path, f"QApairs id={current.id!r}", current.line)
            current = _Question(line, begun["id"], "", [])
        elif text == _CLOSED:
            if current is None:
                raise _outside(path, _CLOSED, line)
            if current.candidates:
                yield current
            current = None
        elif text:
            remedy = f"write one of <QApairs id='...'>, {', '.join(_OPENING)}, {_CLOSED}"
            raise DataError(path, f"{text[:40]!r} where a tag belongs", remedy, line=line, field="tag")
    if tag:
        raise _unclosed(path, tag, opened)
    if current:
        raise _unclosed(path, f"QApairs id={current.id!r}", current.line)


def _unclosed(path: Path, tag: str, line: int) -> DataError:
    what, remedy = f"<{tag}> does not close", "copy the file again, or close it"
    return DataError(path, what, remedy, line=line, field="tag")


def _outside(path: Path, tag: str, line: int) -> DataError:
    remedy = "put it between <QApairs id='...'> and </QApairs>"
    return DataError(path, "it stands outside a question", remedy, line=line, field=tag)


def _present(paths: Mapping[str, Path | None]) -> dict[str, Path]:
    return {SPLIT_NAMES[split]: path for split, path in paths.items() if path is not None}


def _neighbours(rows: Iterable[_Row]) -> Iterator[_Question]:
    """Group rows into questions: consecutive rows with the same id and question are one."""
    for (name, question), members in groupby(rows, key=lambda row: row[1:3]):
        candidates = [(line, text, label) for line, _, _, text, label in members]
        yield _Question(candidates[0][0], name, question, candidates)


def _checked(
    questions: Iterable[_Question], *, places: Path | Mapping[str, Path], labels: Mapping[str, bool] = _LABELS
) -> Iterator[CandidateSet]:
    """Check questions and yield their sets. Duplicate candidates are kept, as published numbers count them.

    `places`: the file of all fields, or of each field; `labels`: label in the file -> whether it means right.
    """
    file_of = places if isinstance(places, Mapping) else dict.fromkeys(TOKEN_FILES, places)
    lines: dict[str, int] = {}
    for one in questions:
        for field in ("id", "question"):
            if not getattr(one, field).strip():
                raise DataError(file_of[field], "it is empty", "fill it in", line=one.line, field=field)
        for line, text, label in one.candidates:
            if not text.strip():
                remedy = "fill it in, or leave it out"
                raise DataError(file_of["candidate"], "it is empty", remedy, line=line, field="candidate")
            if label.strip() not in labels:
                what, remedy = f"{label[:40]!r} is no label", f"write one of {', '.join(labels)}"
                raise DataError(file_of["label"], what, remedy, line=line, field="label")
        name = one.id.strip()
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
