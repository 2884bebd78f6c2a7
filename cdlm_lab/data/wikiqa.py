"""WikiQA (Yang, Yih and Meek 2015) in its official files: a row for each sentence that may answer a question.

    QuestionID  Question        DocumentID  DocumentTitle  SentenceID  Sentence                Label
    Q1          what is a kiln  D1          Kiln           D1-0        A kiln is an oven ...   1

Columns are separated by tabs and nothing is quoted: a quotation mark is a character like others, and some
sentences have an odd number of them. All sentences of a question are of one page of Wikipedia, in its order.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cdlm_lab.data.candidate_sets import (
    CandidateRow,
    checked_sets,
    in_one_file,
    neighbouring_rows,
    present_file,
)
from cdlm_lab.data.files import DataError, read_lines
from cdlm_lab.data.records import CandidateSet

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
    return checked_sets(neighbouring_rows(_rows(path)), files=in_one_file(path))


def wikiqa_files(folder: str | Path) -> dict[str, Path]:
    """train, dev and test -> `WikiQA-train.tsv` and so on, plain or compressed; those that are there."""
    found = {split: present_file(Path(folder), f"WikiQA-{split}.tsv") for split in _SPLITS}
    return {split: path for split, path in found.items() if path is not None}


def _rows(path: Path) -> Iterator[CandidateRow]:
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
