"""LitBank's entities as its authors publish them (Bamman et al. 2019): `entities/tsv`, nested spans.

    the<tab>O<tab>B-PER<tab>O<tab>O<tab>
    daughter<tab>O<tab>I-PER<tab>O<tab>O<tab>
    of<tab>O<tab>I-PER<tab>O<tab>O<tab>
    Edward<tab>B-PER<tab>I-PER<tab>O<tab>O<tab>

Each column of tags is a layer of spans. Doc-ARC keeps the outermost ones, "all annotations nested within
another are removed" (section 3), whatever their layer; of two in the same place the one whose column is first
is kept. LitBank has a single such pair, and it lies within a third span: the spans kept of its 100 documents
are those of Doc-ARC's files, without exception.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cdlm_lab.data.files import DataError, entries, plain_name
from cdlm_lab.data.tag_reading import Block, TagReading, columns_of, iob2_tags, line_blocks
from cdlm_lab.data.tagged_documents import TaggedDocument, TaggedSentence, outermost, spans_of, tags_of


def read_litbank(path: str | Path, *, reading: TagReading | None = None) -> TaggedDocument:
    """The document of a file: all of its sentences have labels, its id is the file's name without `.tsv`.

    Args:
        path: of the file.
        reading: what to do about tags, in every column; None for the defaults.

    Raises:
        DataError: a line without tags or with more or less of them than the first of its sentence, an empty
            word, tags as `tag_reading.iob2_tags`, spans that cross each other, and as `files.read_lines`.
    """
    path, reading = Path(path), reading or TagReading()
    sentences = tuple(_sentence(block, path, reading) for block in line_blocks(path))
    return TaggedDocument(id=plain_name(path).removesuffix(".tsv"), sentences=sentences)


def read_litbank_folder(folder: str | Path, *, reading: TagReading | None = None) -> Iterator[TaggedDocument]:
    """The documents of the `.tsv` files in a folder in the order of their names, one at a time.

    LitBank has no split of its own; that of the papers is which names stand in Doc-ARC's folders.

    Raises:
        DataError: no such files, and as `read_litbank`.
    """
    files = [file for file in entries(folder) if file.suffix == ".tsv"]
    if not files:
        raise DataError(folder, "no .tsv files in it", "give the folder entities/tsv", field="folder")
    reading = reading or TagReading()
    return (read_litbank(file, reading=reading) for file in files)


def _sentence(block: Block, path: Path, reading: TagReading) -> TaggedSentence:
    # Each line ends in one or more tabs.
    rows = [columns_of(text.rstrip("\t"), path=path, line=line) for line, text in block]
    for (line, _), row in zip(block, rows, strict=True):
        if len(row) != len(rows[0]):
            what = f"{len(row)} columns where the sentence begins with {len(rows[0])}"
            raise DataError(path, what, "write O where a word is in no span", line=line, field="row")
    spans = []
    for layer in range(1, len(rows[0])):
        column = ((line, row[layer]) for (line, _), row in zip(block, rows, strict=True))
        spans += spans_of(iob2_tags(column, path=path, reading=reading))
    try:
        tags = tags_of(outermost(spans), len(rows))
    except ValueError as error:
        remedy = "put the one inside the other, or leave one of them"
        raise DataError(path, f"spans cross ({error})", remedy, line=block[0][0], field="tag") from None
    return TaggedSentence(words=tuple(row[0] for row in rows), tags=tags)
