"""Answer sentence selection: questions with candidate answers from TREC-QA and ASNQ, as rows of a question,
a candidate and a label (`read_candidate_table`, which reads WikiQA as it lies).

A question whose candidates are all right or all wrong scores the same under every model, so the clean setting
leaves it out of dev and test (MSPP paper, section 4.1 and appendix A), which cuts WikiQA to 857, 122 and 237
questions, TREC-QA to 65 and 68.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from cdlm_lab.data import files
from cdlm_lab.data.files import DataError, JsonRecord, read_lines
from cdlm_lab.data.native import Row, read_candidate_table
from cdlm_lab.data.records import CandidateSet
from cdlm_lab.data.rows import csv_rows
from cdlm_lab.data.splits import SPLIT_NAMES

TOKEN_FILES = {"question": "a.toks", "candidate": "b.toks", "label": "sim.txt", "id": "id.txt"}
_SPLITS = ("train", "dev", "test")
_ASNQ_LABELS = {"1": "0", "2": "0", "3": "0", "4": "1"}


def is_table(fields: Mapping[str, Any]) -> bool:
    """Whether a row is a question with one candidate and its label."""
    texts, labels = {"candidate", "sentence", "answer", "text"}, {"label", "correct"}
    names = {name.lower() for name in fields}
    return "question" in names and bool(texts & names) and bool(labels & names)


def read_asnq(found: Sequence[Path], **_: Any) -> Iterator[CandidateSet]:
    """Yield the questions of an ASNQ file (Garg, Vu and Moschitti 2020); a line is question, sentence, label.

        who wrote the iron heel     The Iron Heel is a novel by Jack London.     4

    Labels say whether the sentence is in the long answer of Natural Questions, and whether it contains the
    short answer: 1 neither, 2 only the latter, 3 only the former, 4 both. Only 4 is right. All lines of one
    question, also those that stand apart, are a set with the id "{file}:{number}"; runs of lines with equal
    questions are counted from 0, listed or not.

    `found`: the file and, perhaps, a list with a question on each line; others are not read.
    """
    path, *listed = found
    wanted = {text.strip() for _, text in read_lines(listed[0])} if listed else None
    return read_candidate_table(_asnq_rows(path, wanted))


def _asnq_rows(path: Path, wanted: set[str] | None) -> Iterator[Row]:
    number, before, ids = -1, None, dict[str, str]()
    for line, cells in csv_rows(path, delimiter="\t"):
        if len(cells) != 3:
            what = f"{len(cells)} columns instead of 3"
            remedy = "write a question, a tab, a sentence, a tab and a label"
            raise DataError(path, what, remedy, line=line, field="row")
        question, sentence, label = cells
        number, before = number + (question != before), question
        if wanted is None or question.strip() in wanted:
            name = ids.setdefault(question.strip(), f"{files.plain_stem(path)}:{number}")
            if label.strip() not in _ASNQ_LABELS:
                what, remedy = f"{label[:40]!r} is no label", "write one of 1, 2, 3, 4"
                raise DataError(path, what, remedy, line=line, field="label")
            yield _row(path, line, name, question, sentence, _ASNQ_LABELS[label.strip()])
    if not ids:
        raise DataError(path, "none of the listed questions is in it", "give the list of this file")


def _row(path: Path, line: int, name: str, question: str, candidate: str, label: str) -> Row:
    fields = {"id": name.strip(), "question": question, "candidate": candidate, "label": label}
    return JsonRecord(path=path, line=line, fields=fields)


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
    return read_candidate_table(_token_rows(path) if path.is_dir() else _xml_rows(path))


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


def _token_rows(folder: Path) -> Iterator[Row]:
    places = {field: folder / name for field, name in TOKEN_FILES.items()}
    for number, lines in enumerate(zip_longest(*map(read_lines, places.values())), start=1):
        if None in lines:
            short = list(places.values())[lines.index(None)]
            longer = next(path for path, line in zip(places.values(), lines, strict=True) if line)
            what = f"line {number} is missing, which {longer.name} has"
            remedy = "lines of the four files belong together; copy them again"
            raise DataError(short, what, remedy, line=number)
        question, candidate, label, name = (text for _, text in lines)
        yield _row(folder, number, name, question, candidate, label)


def _xml_rows(path: Path) -> Iterator[Row]:
    name, begun, question = "", 0, ""  # of the question that is not closed yet
    tag, opened, tokens = "", 0, None  # tag, line and tokens of the element that is not closed yet
    for line, raw in read_lines(path):
        text = raw.strip()
        head = _QUESTION.fullmatch(text)
        if tag and text == f"</{tag}>":
            if not name:
                raise _outside(path, tag, opened + 1)
            if tag == "question":
                question = tokens or ""
            else:
                yield _row(path, opened + 1, name, question, tokens or "", _TAGS[tag])
            tag = ""
        elif tag and (head or text == _CLOSED or text in _OPENING):
            raise _unclosed(path, tag, opened)
        elif tag:
            tokens = " ".join(text.split("\t")) if tokens is None else tokens
        elif text in _OPENING:
            tag, opened, tokens = _OPENING[text], line, None
        elif head:
            if name:
                raise _unclosed(path, f"QApairs id={name!r}", begun)
            name, begun, question = head["id"], line, ""
        elif text == _CLOSED:
            if not name:
                raise _outside(path, _CLOSED, line)
            name = ""
        elif text:
            remedy = f"write one of <QApairs id='...'>, {', '.join(_OPENING)}, {_CLOSED}"
            raise DataError(path, f"{text[:40]!r} where a tag belongs", remedy, line=line, field="tag")
    if tag:
        raise _unclosed(path, tag, opened)
    if name:
        raise _unclosed(path, f"QApairs id={name!r}", begun)


def _unclosed(path: Path, tag: str, line: int) -> DataError:
    what, remedy = f"<{tag}> does not close", "copy the file again, or close it"
    return DataError(path, what, remedy, line=line, field="tag")


def _outside(path: Path, tag: str, line: int) -> DataError:
    remedy = "put it between <QApairs id='...'> and </QApairs>"
    return DataError(path, "it stands outside a question", remedy, line=line, field=tag)


def _present(paths: Mapping[str, Path | None]) -> dict[str, Path]:
    return {SPLIT_NAMES[split]: path for split, path in paths.items() if path is not None}
