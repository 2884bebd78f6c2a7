"""ASNQ (Garg, Vu and Moschitti 2020) in its official files: a question, a tab, a sentence, a tab, a label.

    who wrote the iron heel     The Iron Heel is a novel by Jack London.     4
    who wrote the iron heel     It was published in 1908.                    3

There is no header, nothing is quoted, and questions have no ids: neighbouring lines of one question are a
set. The label says whether the sentence stands in the long answer of Natural Questions, and whether the short
answer stands in the sentence: 1 neither, 2 the second, 3 the first, 4 both. Only 4 is right.

The release has `train.tsv` and `dev.tsv`. The MSPP paper took the dev and test sets of Soldaini and Moschitti
2020, who divided the questions of dev.tsv into two lists, `unique.dev` and `unique.test`, a question a line.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from cdlm_lab.data.candidate_sets import (
    CandidateRow,
    checked_sets,
    in_one_file,
    neighbouring_rows,
    present_file,
)
from cdlm_lab.data.files import DataError, plain_stem, read_lines
from cdlm_lab.data.records import CandidateSet

LABELS = {"1": False, "2": False, "3": False, "4": True}
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
    return checked_sets(questions, files=in_one_file(path), labels=LABELS)


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
