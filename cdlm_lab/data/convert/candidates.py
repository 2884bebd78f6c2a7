"""Answer sentence selection: questions with candidate answers from WikiQA, TREC-QA and ASNQ.

A question whose candidates are all right or all wrong scores the same under every model, so the clean setting
leaves it out of dev and test (MSPP paper, section 4.1 and appendix A), which cuts WikiQA to 857, 122 and 237
questions, TREC-QA to 65 and 68.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, groupby, zip_longest
from pathlib import Path
from typing import NamedTuple

from cdlm_lab.data import files
from cdlm_lab.data.files import DataError, read_lines
from cdlm_lab.data.records import CandidateSet
from cdlm_lab.data.splits import split_named

# Part of every checksum; raise it when a reader makes other sets of the same files.
READERS_VERSION = {"wikiqa": "1", "trecqa": "1", "asnq": "2"}
TOKEN_FILES = {"question": "a.toks", "candidate": "b.toks", "label": "sim.txt", "id": "id.txt"}
_FORMATS = {  # searched in this order
    "wikiqa": "WikiQA-train.tsv, WikiQA-dev.tsv, WikiQA-test.tsv",
    "trecqa": "train, clean-dev, clean-test (folders with a.toks) or TRAIN.xml, DEV.xml, TEST.xml",
    "asnq": "train.tsv, dev.tsv, test.tsv",
}
_SPLITS = ("train", "dev", "test")
_LABELS = {"0": False, "1": True}
_ASNQ_LABELS = {"1": False, "2": False, "3": False, "4": True}

Parts = dict[str, tuple[Path, ...]]  # split (train, dev, test) that a folder has -> arguments of the reader
_Row = tuple[int, str, str, str, str]  # line number; id, question, candidate and label, not yet checked


class _Question(NamedTuple):
    """A question that is not yet checked; `candidates`: line number, text and label of each."""

    line: int
    id: str
    question: str
    candidates: list[tuple[int, str, str]]


def read_candidate_sets(folder: str | Path, split: str) -> list[CandidateSet]:
    """Read the questions of a split (train, dev or test) in a folder, in order; not only the clean ones."""
    form, parts = _parts(folder, split)
    return list(_READERS[form][1](*parts))


def format_of(folder: str | Path) -> str:
    """The name of the data set in a folder: "wikiqa", "trecqa" or "asnq"; raises DataError if none."""
    return _format_and_parts(folder)[0]


def checksum_of(folder: str | Path, split: str) -> str:
    """SHA-256 (hexadecimal) that identifies what `read_candidate_sets` returns: over the names and bytes of
    the split's files, wherever the folder lies."""
    form, parts = _parts(folder, split)
    values = [form, READERS_VERSION[form], split_named(split)]
    for part in parts:
        for file in [part / name for name in TOKEN_FILES.values()] if part.is_dir() else [part]:
            name = file.relative_to(files.home_path(folder)).as_posix()
            values += [name, files.sha256_of_file(file)]
    return files.sha256_of_parts(values)


def _parts(folder: str | Path, split: str) -> tuple[str, tuple[Path, ...]]:
    """The format of a folder, and the arguments of its reader for a split."""
    wanted = split_named(split).replace("validation", "dev")
    form, parts = _format_and_parts(folder)
    if wanted not in parts:
        what, remedy = f"it has no {wanted} set of {form}, only {', '.join(parts)}", _FORMATS[form]
        raise DataError(files.home_path(folder), what, f"put the file there ({remedy})", field="folder")
    return form, parts[wanted]


def _format_and_parts(folder: str | Path) -> tuple[str, Parts]:
    path = files.home_path(folder)
    if not path.is_dir():
        raise DataError(path, "there is no such folder", "give the folder of the files", field="folder")
    for form, (parts_of, _) in _READERS.items():
        if parts := parts_of(path):
            return form, parts
    what = f"none of these is in it: {'; '.join(f'{names} ({form})' for form, names in _FORMATS.items())}"
    raise DataError(path, what, "give the folder of one of these data sets", field="folder")


def read_wikiqa(path: str | Path) -> Iterator[CandidateSet]:
    """Yield the questions of an official WikiQA file (Yang, Yih and Meek 2015); `id` is the QuestionID.

        QuestionID  Question        DocumentID  DocumentTitle  SentenceID  Sentence                Label
        Q1          what is a kiln  D1          Kiln           D1-0        A kiln is an oven ...   1

    Columns are separated by tabs and nothing is quoted: some sentences have an odd number of quotation marks.
    """
    header = ["QuestionID", "Question", "DocumentID", "DocumentTitle", "SentenceID", "Sentence", "Label"]
    table = files.read_table(path, columns=7, row="seven columns, tabs between", header=header)
    rows = ((line, name, question, *others[-2:]) for line, (name, question, *others) in table)
    return _checked(_neighbours(rows), places=Path(path))


def wikiqa_files(folder: Path) -> Parts:
    """Split -> the file `WikiQA-{split}.tsv`, for the splits that a folder has."""
    return _present({split: files.present_file(folder, f"WikiQA-{split}.tsv") for split in _SPLITS})


def read_asnq(path: str | Path, listed: str | Path | None = None) -> Iterator[CandidateSet]:
    """Yield the questions of an ASNQ file (Garg, Vu and Moschitti 2020); a line is question, sentence, label.

        who wrote the iron heel     The Iron Heel is a novel by Jack London.     4

    Labels say whether the sentence is in the long answer of Natural Questions, and whether it contains the
    short answer: 1 neither, 2 only the latter, 3 only the former, 4 both. Only 4 is right. All lines of one
    question, also those that stand apart, are a set with the id "{file}:{number}"; runs of lines with equal
    questions are counted from 0, listed or not. All of the file is read before the first set is yielded.

    `listed`: a file with a question on each line; other questions are neither read nor checked.
    """
    path = Path(path)
    wanted = None if listed is None else {text.strip() for _, text in read_lines(listed)}
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


def asnq_files(folder: Path) -> Parts:
    """Split -> `train.tsv`, `dev.tsv`, `test.tsv` of a folder. The release has no test.tsv: there,
    `unique.dev` and `unique.test` list the questions of dev.tsv for dev and test (Soldaini and Moschitti
    2020; MSPP paper)."""
    parts = _present({split: files.present_file(folder, f"{split}.tsv") for split in _SPLITS})
    lists = _present({split: files.present_file(folder, f"unique.{split}") for split in ("dev", "test")})
    if "test" not in parts and "dev" in parts and len(lists) == 2:
        parts |= {split: (*parts["dev"], *listed) for split, listed in lists.items()}
    return parts


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


def read_trecqa(path: str | Path) -> Iterator[CandidateSet]:
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
    path = Path(path)
    if not path.is_dir():
        return _checked(_xml_questions(path), places=path)
    places = {field: path / name for field, name in TOKEN_FILES.items()}
    return _checked(_neighbours(_token_rows(places)), places=places)


def trecqa_files(folder: Path) -> Parts:
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


def _present(paths: Mapping[str, Path | None]) -> Parts:
    return {split: (path,) for split, path in paths.items() if path is not None}


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


_READERS: dict[str, tuple[Callable[[Path], Parts], Callable[..., Iterator[CandidateSet]]]] = {
    "wikiqa": (wikiqa_files, read_wikiqa),
    "trecqa": (trecqa_files, read_trecqa),
    "asnq": (asnq_files, read_asnq),
}
