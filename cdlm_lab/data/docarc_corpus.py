"""Documents in Doc-ARC's format as plain text for task-adaptive pretraining (Joerke et al. 2020, section 4.1:
"on the full text (both labeled and unlabeled)").

A cluster is one passage of one document: consecutive sentences of at most `PASSAGE_WORDS` words, so that a
pass over the clusters is a pass over all of the text, as the paper's epochs are. (With a document for a
cluster a pass would see one sequence of each book, however long.) 80 words are 100 WordPiece pieces of a
biomedical paper and 70 of a novel on average: they fit the 128 tokens of the paper's Table 9.
Labels are not read. In JNLPBA an abstract stands in the files twice (see `docarc_tsv`), and does here too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cdlm_lab.data.docarc_tsv import docarc_files, docarc_id
from cdlm_lab.data.records import Cluster, Document
from cdlm_lab.data.tag_reading import columns_of, line_blocks

PASSAGE_WORDS = 80


def read_docarc_passages(folder: str | Path, split: str) -> Iterator[Cluster]:
    """The passages of a split in order, read one sentence at a time.

    Words are joined by spaces; the id of a passage is that of its document, a slash, and its number from 1.

    Args:
        folder: with a folder for each split.
        split: train, validation (dev) or test.

    Raises:
        ValueError: an unknown split.
        DataError: as `docarc_tsv.docarc_files`; a line that does not have two columns, an empty word, and as
            `files.read_lines`.
    """
    for file in docarc_files(folder, split):
        for number, words in enumerate(_passages(file), start=1):
            name = f"{docarc_id(file)}/{number}"
            yield Cluster(id=name, documents=(Document(id=name, text=" ".join(words)),))


def _passages(file: Path) -> Iterator[list[str]]:
    """Runs of whole sentences; one of more words than a passage may have is cut."""
    passage: list[str] = []
    for block in line_blocks(file):
        words = [columns_of(text, path=file, line=line, count=2)[0] for line, text in block]
        for start in range(0, len(words), PASSAGE_WORDS):
            part = words[start : start + PASSAGE_WORDS]
            if len(passage) + len(part) > PASSAGE_WORDS:  # never of an empty passage
                yield passage
                passage = []
            passage = passage + part
    if passage:
        yield passage
