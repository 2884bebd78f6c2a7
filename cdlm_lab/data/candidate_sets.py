"""Questions with candidate answers: made of what a reader has read, counted, and the "clean" ones among them.

A question none of whose candidates is right, or all of whose are, ranks the same under every model. The clean
setting of answer sentence selection leaves such questions out of dev and test (MSPP paper, section 4.1 and
appendix A); it cuts WikiQA to 857, 122 and 237 questions, TREC-QA to 65 and 68.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from cdlm_lab.data.files import COMPRESSED, DataError
from cdlm_lab.data.records import CandidateSet

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
