"""Named entities in columns, as in CoNLL-2003 and in OntoNotes made over to it ("OntoNotes-5.0-NER-BIO").

    -DOCSTART- -X- -X- O

    Sir NNP B-NP B-PER
    Walter NNP I-NP I-PER
    slept VBD B-VP O

The first column of a line is the word, the last its tag; what stands between is not read. Columns are
separated by tabs if the line holds one, by white space if not. A blank line ends a sentence, and
`-DOCSTART-` begins a document; files without it are one document each.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cdlm_lab.data.files import plain_name
from cdlm_lab.data.tag_reading import Block, TagReading, columns_of, iob2_tags, marked_parts
from cdlm_lab.data.tagged_documents import TaggedDocument, TaggedSentence

DOCUMENT_START = "-DOCSTART-"


def read_ner_conll(path: str | Path, *, reading: TagReading | None = None) -> Iterator[TaggedDocument]:
    """The documents of a file, one at a time, called by the file and their number ("eng.train:0").

    All sentences have labels. IOB1, in which the English files of CoNLL-2003 were published, is read as any
    other: its `I-` at the start of a span becomes `B-` and is counted as stray.

    Args:
        path: of the file, plain or compressed.
        reading: what to do about tags; None for the defaults.

    Raises:
        DataError: (at the first document or later) a line of one column, tags as `tag_reading.iob2_tags`, a
            document without sentences, and as `files.read_lines`.
    """
    path, reading = Path(path), reading or TagReading()
    for number, (_, blocks) in enumerate(marked_parts(path, mark=DOCUMENT_START)):
        sentences = tuple(_sentence(block, path, reading) for block in blocks)
        yield TaggedDocument(id=f"{plain_name(path)}:{number}", sentences=sentences)


def _sentence(block: Block, path: Path, reading: TagReading) -> TaggedSentence:
    rows = [columns_of(text, path=path, line=line, tabs="\t" in text) for line, text in block]
    column = ((line, row[-1]) for (line, _), row in zip(block, rows, strict=True))
    return TaggedSentence(
        words=tuple(row[0] for row in rows), tags=iob2_tags(column, path=path, reading=reading)
    )
