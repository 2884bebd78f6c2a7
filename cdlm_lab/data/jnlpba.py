"""JNLPBA 2004 (Collier and Kim): names of proteins, DNA, RNA, cell lines and cell types in abstracts.

Two forms of the same annotation. IOB2, as the shared task gave it; the marks are missing in some of its
files, which then are one document each:

    ###MEDLINE:90092414

    glucocorticoid<tab>B-protein
    receptors<tab>I-protein

and standoff of brat, a text and the characters of its names for each abstract, which is what there is of the
training part besides the IOB2 of the task:

    90092414.txt      Number of glucocorticoid receptors in lymphocytes ...
    90092414.ann      T1<tab>protein 10 34<tab>glucocorticoid receptors

The task's own separation into words and sentences is not kept in the standoff. There, sentences are those of
`pair_csv.split_sentences` in each line (the title is the first), put together again where a name goes across
their border; and words those of `coreference_storyworld.token_spans`, cut where a name begins or ends.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

from cdlm_lab.data.coreference_storyworld import token_spans
from cdlm_lab.data.files import DataError, entries, plain_stem, read_lines, read_text
from cdlm_lab.data.pair_csv import split_sentences
from cdlm_lab.data.records import Span
from cdlm_lab.data.tag_reading import Block, TagReading, columns_of, iob2_tags, marked_parts
from cdlm_lab.data.tagged_documents import TaggedDocument, TaggedSentence, TagSpan, outermost, tags_of

MARK = "###MEDLINE:"

_NAME = re.compile(r"T\S*\t(\S+) ([0-9]{1,9}) ([0-9]{1,9})\t(.+)")
_OTHER = re.compile(r"(?:[REAMN]\d+|#\d*|\*)\t.*")  # relations, events, attributes, notes, equivalences
_SPACE = re.compile(r"\s")


def read_jnlpba_iob2(path: str | Path, *, reading: TagReading | None = None) -> Iterator[TaggedDocument]:
    """The abstracts of a file, one at a time, called by what follows `###MEDLINE:`; all of their sentences
    have labels. What stands above the first mark is called by the file. Two abstracts of the test part occur
    twice, with other annotations: the second is called "98281994-2", as in the standoff.

    Args:
        path: of the file, plain or compressed.
        reading: what to do about tags; None for the defaults.

    Raises:
        DataError: (at the first document or later) a line that does not have two columns, an empty word, tags
            as `tag_reading.iob2_tags`, a mark without a name or without sentences, and as `files.read_lines`.
    """
    path, reading = Path(path), reading or TagReading()
    seen: dict[str, int] = {}
    for (line, head), blocks in marked_parts(path, mark=MARK):
        name = head.removeprefix(MARK).strip() if head else plain_stem(path)
        if not name:
            what, remedy = "no name of the abstract", f"write it after {MARK}"
            raise DataError(path, what, remedy, line=line, field="document")
        seen[name] = seen.get(name, 0) + 1
        yield TaggedDocument(
            id=name if seen[name] == 1 else f"{name}-{seen[name]}",
            sentences=tuple(_sentence(block, path, reading) for block in blocks),
        )


def read_jnlpba_standoff(
    folder: str | Path, *, reading: TagReading | None = None
) -> Iterator[TaggedDocument]:
    """The abstracts of a folder in the order of their names, read one at a time; all of their sentences have
    labels. Of names within names the outermost is kept.

    Args:
        folder: of a `.txt` and an `.ann` for each abstract.
        reading: says which labels may occur; None for any.

    Raises:
        DataError: no `.txt` in the folder, or an `.ann` without one; and, while reading, a missing `.ann`, a
            line of it that is not brat's, a name that does not stand in the text where it should, names that
            cross each other, an unknown label, and as `files.read_lines`.
    """
    files = [file for file in entries(folder) if file.suffix == ".txt"]
    remedy = "give the folder that has a .txt and an .ann for each abstract"
    if not files:
        raise DataError(folder, "no .txt files in it", remedy, field="folder")
    texts = {file.stem for file in files}
    for file in entries(folder):
        if file.suffix == ".ann" and file.stem not in texts:
            raise DataError(file, f"there is no {file.stem}.txt beside it", remedy)
    reading = reading or TagReading()
    return (_standoff(file, reading) for file in files)


def _sentence(block: Block, path: Path, reading: TagReading) -> TaggedSentence:
    rows = [columns_of(text, path=path, line=line, count=2) for line, text in block]
    column = ((line, tag) for (line, _), (_, tag) in zip(block, rows, strict=True))
    return TaggedSentence(
        words=tuple(word for word, _ in rows), tags=iob2_tags(column, path=path, reading=reading)
    )


def _standoff(path: Path, reading: TagReading) -> TaggedDocument:
    text, annotations = read_text(path), path.with_suffix(".ann")
    names = outermost(_names(annotations, text, reading))
    cuts = [place for name in names for place in (name.first, name.stop)]
    sentences = []
    for start, end in _sentence_spans(text, names):
        words = token_spans(text[start:end], boundaries=[cut - start for cut in cuts])
        starts = [start + first for first, _ in words]
        spans = [
            TagSpan(
                label=name.label, first=bisect_left(starts, name.first), stop=bisect_left(starts, name.stop)
            )
            for name in names
            if start <= name.first < end
        ]
        try:
            tags = tags_of(spans, len(words))
        except ValueError as error:
            remedy = "put the one inside the other, or leave one of them"
            raise DataError(annotations, f"names cross ({error})", remedy, field="T") from None
        sentence = TaggedSentence(words=tuple(text[start + a : start + b] for a, b in words), tags=tags)
        sentences.append(sentence)
    return TaggedDocument(id=path.stem, sentences=tuple(sentences))


def _names(path: Path, text: str, reading: TagReading) -> list[TagSpan]:
    """The names of an .ann file in characters of `text`; relations, events and notes are passed over."""
    found = []
    for line, row in read_lines(path, allow_empty=True):
        if not row.strip() or _OTHER.fullmatch(row):
            continue
        if not (match := _NAME.fullmatch(row)):
            what = f"{row[:60]!r} is not a name in one piece"
            remedy = "write T1, a tab, label, first character and end, a tab, and the text"
            raise DataError(path, what, remedy, line=line, field="T")
        label, first, stop, said = match[1], int(match[2]), int(match[3]), match[4]
        if _SPACE.sub(" ", text[first:stop]) != _SPACE.sub(" ", said) or not said.strip():
            what = f"{said[:60]!r} is not what stands at {first} to {stop}"
            raise DataError(path, what, "count characters from 0, line ends as one", line=line, field="T")
        iob2_tags([(line, f"B-{label}")], path=path, reading=reading)  # complains of unknown labels
        found.append(TagSpan(label=label, first=first, stop=stop))
    return found


def _sentence_spans(text: str, names: tuple[TagSpan, ...]) -> list[Span]:
    """Characters of the sentences, none of which ends within a name."""
    plain = _SPACE.sub(" ", text)  # as the splitter has it
    spans: list[Span] = []
    place = 0
    for line in text.split("\n"):
        for sentence in split_sentences(line):
            start = plain.index(sentence, place)
            place = start + len(sentence)
            if spans and any(name.first < spans[-1][1] < name.stop for name in names):
                spans[-1] = (spans[-1][0], place)
            else:
                spans.append((start, place))
    return spans
