"""Doc-ARC's format (Joerke et al. 2020): a file for each document, a word, a tab and its tag on each line.

    Sir<tab>B-PER
    Walter<tab>I-PER
    slept<tab>O

    He<tab>NULL
    snored<tab>NULL

A blank line ends a sentence; the last may do without. `NULL` is the tag of context: sentences that nobody
labelled. The released files have all of the labelled text first. In LitBank that is where a book begins, so
that the order is that of the book; in JNLPBA it is an abstract, which stands in the context once more, as it
was recognised from the page. `train`, `dev` and `test` are folders, with a list of tags beside them:

    genia_ner_data_full/genia.tagset          B-protein<tab>1
    genia_ner_data_full/train/90110496.tsv
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from cdlm_lab.data.files import COMPRESSED, DataError, entries, plain_name
from cdlm_lab.data.splits import SPLIT_NAMES, Split
from cdlm_lab.data.tag_reading import Block, TagReading, columns_of, iob2_tags, line_blocks
from cdlm_lab.data.tagged_documents import OUTSIDE, TaggedDocument, TaggedSentence

CONTEXT = "NULL"  # the tag of words that nobody labelled
Chosen = Callable[[int], Iterable[int]]

# What folders are called; "development" is what the scripts of Doc-ARC call OntoNotes'.
_FOLDERS: dict[str, Split] = {**SPLIT_NAMES, "development": "validation"}
_SUFFIXES = tuple(f".tsv{suffix}" for suffix in ("", *COMPRESSED))


def read_docarc(path: str | Path, *, reading: TagReading | None = None) -> TaggedDocument:
    """The document of a file, plain or compressed; its id is the name of the file without `.tsv`.

    A word is what stands before the tab, without white space around it; within it there may be some
    ("4 1/2", ". . ."), as in the released books.

    Args:
        path: of the file.
        reading: what to do about tags; None for the defaults.

    Raises:
        DataError: a line that does not have two columns, an empty word, tags as `tag_reading.iob2_tags`,
            `NULL` and other tags in one sentence, no labelled sentence, and as `files.read_lines`.
    """
    return _document(Path(path), reading or TagReading(), labels=None)


def read_docarc_split(
    folder: str | Path, split: str, *, reading: TagReading | None = None, chosen: Chosen | None = None
) -> Iterator[TaggedDocument]:
    """The documents of a split in the order of their names, read one at a time.

    Args:
        folder: with a folder for each split.
        split: train, dev or test.
        reading: what to do about tags; None for the defaults. Labels are those of the list of tags, if the
            reading names none and there is a list.
        chosen: given how many documents there are, the numbers from 0 of those to be read; None for all.

    Raises:
        ValueError: an unknown split.
        DataError: no folder of the split, no files in it, two of one name, a faulty list of tags; and, while
            reading, as `read_docarc`.
    """
    files, labels = docarc_files(folder, split), docarc_labels(folder)
    reading = reading or TagReading()
    numbers = range(len(files)) if chosen is None else chosen(len(files))
    return (_document(files[number], reading, labels=labels) for number in numbers)


def is_docarc_folder(path: str | Path) -> bool:
    """True for a folder with a document in the folder of a split."""
    folders = (Path(path) / name for name in _FOLDERS)
    return any(
        file.name.endswith(_SUFFIXES) for folder in folders if folder.is_dir() for file in entries(folder)
    )


def docarc_files(folder: str | Path, split: str) -> list[Path]:
    """The documents of a split, in the order of their names.

    Raises:
        ValueError: an unknown split.
        DataError: no folder of the split, no files in it, or two of one name.
    """
    if split not in _FOLDERS:
        raise ValueError(f"split is {split!r}; choose one of train, dev, test")
    names = [name for name, meant in _FOLDERS.items() if meant == _FOLDERS[split]]
    inner = next((Path(folder) / name for name in names if (Path(folder) / name).is_dir()), None)
    if inner is None:
        what = f"there is no folder {' or '.join(names)} in it"
        raise DataError(folder, what, "give the folder around train, dev and test", field="folder")
    return _files(inner)


def docarc_labels(folder: str | Path) -> tuple[str, ...] | None:
    """The labels of the list of tags in a folder (`*.tagset`), in its order; None if there is no list.

    Raises:
        DataError: several lists, or a line that does not start with a tag.
    """
    lists = [file for file in entries(folder) if file.suffix == ".tagset"]
    if not lists:
        return None
    if len(lists) > 1:
        what = f"several lists of tags ({', '.join(file.name for file in lists)})"
        raise DataError(folder, what, "leave the one that fits the files", field="folder")
    rows = [row for block in line_blocks(lists[0]) for row in block]
    column = ((line, text.partition("\t")[0].strip()) for line, text in rows)
    tags = iob2_tags(column, path=lists[0], reading=TagReading())  # no sentence: an I- may stand anywhere
    return tuple(dict.fromkeys(tag.partition("-")[2] for tag in tags if tag != OUTSIDE))


def _files(folder: Path) -> list[Path]:
    files = [file for file in entries(folder) if file.name.endswith(_SUFFIXES)]
    if not files:
        raise DataError(folder, "no .tsv files in it", "put a file for each document there", field="folder")
    seen: dict[str, Path] = {}
    for file in files:
        if (other := seen.setdefault(docarc_id(file), file)) is not file:
            raise DataError(file, f"{other.name} is the same document", "leave one of them")
    return files


def docarc_id(path: Path) -> str:
    """What the document of a file is called."""
    return plain_name(path).removesuffix(".tsv")


def _document(path: Path, reading: TagReading, *, labels: Sequence[str] | None) -> TaggedDocument:
    sentences = tuple(_sentence(block, path, reading, labels=labels) for block in line_blocks(path))
    if all(sentence.tags is None for sentence in sentences):
        what = f"no sentence has labels, all tags are {CONTEXT}"
        raise DataError(path, what, "label a sentence (O is a label), or take the file out", field="tag")
    return TaggedDocument(id=docarc_id(path), sentences=sentences)


def _sentence(
    block: Block, path: Path, reading: TagReading, *, labels: Sequence[str] | None
) -> TaggedSentence:
    rows = [columns_of(text, path=path, line=line, count=2) for line, text in block]
    # A book has few words, many times each: every word is kept once.
    words = tuple(sys.intern(word) for word, _ in rows)
    context = [tag == CONTEXT for _, tag in rows]
    if all(context):
        return TaggedSentence(words=words)
    if any(context):
        line = block[context.index(not context[0])][0]
        what, remedy = f"{CONTEXT} and other tags in one sentence", "label all of its words or none"
        raise DataError(path, what, remedy, line=line, field="tag")
    column = ((line, tag) for (line, _), (_, tag) in zip(block, rows, strict=True))
    return TaggedSentence(words=words, tags=iob2_tags(column, path=path, reading=reading, labels=labels))
