"""What the readers of tagged text share: sentences between blank lines, columns, and tags made IOB2.

A tag is `O`, or `B-` or `I-` and a label. In IOB2 every span starts with `B-`; in IOB1 only one that follows
another of its label at once does, and files of either sort hold an `I-` after `O` or after another label.
Such a tag starts a span, as in conlleval and in seqeval's default, and is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from cdlm_lab.data.files import DataError, read_lines
from cdlm_lab.data.tagged_documents import OUTSIDE

Stray = Literal["accept", "refuse"]
Line = tuple[int, str]  # its number from 1, its text
Block = list[Line]

_SHOWN = 40  # characters of a faulty tag


@dataclass(slots=True, kw_only=True)
class TagReading:
    """What a reader does about tags, and what it met; several readers may count into one.

    Attributes:
        stray: an `I-` that follows no span of its label: "accept" = it is read as `B-` and counted, "refuse"
            = a DataError at its line. IOB1 takes "accept".
        labels: those that may occur; any other is a DataError. None: all, or those that the corpus names.
        mended: how many stray tags were read as `B-` so far.
        divided: how many sentences of a split of one document were made documents so far.

    Raises:
        ValueError: an unknown `stray`.
    """

    stray: Stray = "accept"
    labels: Sequence[str] | None = None
    mended: int = 0
    divided: int = 0

    def __post_init__(self) -> None:
        if self.stray not in get_args(Stray):
            raise ValueError(f"stray is {self.stray!r}; choose one of {', '.join(get_args(Stray))}")


def iob2_tags(
    column: Iterable[Line], *, path: Path, reading: TagReading, labels: Sequence[str] | None = None
) -> tuple[str, ...]:
    """The tags of a sentence, every span starting with `B-`.

    Args:
        column: line number and tag of each word.
        path: the file, for complaints.
        reading: says what happens to stray tags and counts them.
        labels: those of the corpus, for a reading that names none.

    Raises:
        DataError: no tag, an unknown label, or a stray `I-` if these are refused.
    """
    known = labels if reading.labels is None else reading.labels
    tags: list[str] = []
    before = ""  # label of the span that may go on
    for line, tag in column:
        prefix, _, label = tag.partition("-")
        if tag != OUTSIDE and (prefix not in ("B", "I") or not label):
            what, remedy = f"{tag[:_SHOWN]!r} is not a tag", "write O, or B- or I- and a label"
            raise DataError(path, what, remedy, line=line, field="tag")
        if label and known is not None and label not in known:
            what, remedy = f"{tag[:_SHOWN]!r} is not a known tag", f"the labels are {', '.join(known)}"
            raise DataError(path, what, remedy, line=line, field="tag")
        if prefix == "I" and label != before:
            if reading.stray == "refuse":
                remedy = 'write B- for I-, or read with stray="accept"'
                raise DataError(path, f"{tag!r} follows no span of its label", remedy, line=line, field="tag")
            reading.mended += 1
            tag = f"B-{label}"
        tags.append(tag)
        before = label
    return tuple(tags)


def line_blocks(path: Path, *, mark: str | None = None) -> Iterator[Block]:
    """Lines between blank ones, with their numbers; a line that starts with `mark` is a block by itself.

    Blank is what holds nothing but white space. Neither the first nor the last block needs a blank line.

    Raises:
        DataError: as `files.read_lines`.
    """
    block: Block = []
    for line, text in read_lines(path):
        marked = mark is not None and text.startswith(mark)
        if block and (marked or not text.strip()):
            yield block
            block = []
        if marked:
            yield [(line, text)]
        elif text.strip():
            block.append((line, text))
    if block:
        yield block


def marked_parts(path: Path, *, mark: str) -> Iterator[tuple[Line, list[Block]]]:
    """The line that begins each document of a file, by its start `mark`, and the blocks up to the next.

    Lines before the first mark are a part too, whose first line is number 1 without text.

    Raises:
        DataError: a part without sentences, and as `files.read_lines`.
    """
    head: Line = (1, "")
    blocks: list[Block] = []
    for block in line_blocks(path, mark=mark):
        if not block[0][1].startswith(mark):
            blocks.append(block)
            continue
        if blocks or head[1]:
            yield _filled(path, head, blocks)
        head, blocks = block[0], []
    yield _filled(path, head, blocks)


def _filled(path: Path, head: Line, blocks: list[Block]) -> tuple[Line, list[Block]]:
    if not blocks:
        what, remedy = "no sentence follows", "delete the line, or write the document below it"
        raise DataError(path, what, remedy, line=head[0], field="document")
    return head, blocks


def columns_of(text: str, *, path: Path, line: int, count: int | None = None, tabs: bool = True) -> list[str]:
    """The columns of a line, without white space around them, the first of them a word.

    Args:
        text: of the line.
        path, line: of the text, for complaints.
        count: how many columns there must be; None: two or more.
        tabs: columns are separated by tabs, so that a word may hold a space; False: by any white space.

    Raises:
        DataError: too few or too many columns, or an empty word.
    """
    columns = [column.strip() for column in text.split("\t")] if tabs else text.split()
    if len(columns) < 2 or (count and len(columns) != count):
        found = "one column" if len(columns) == 1 else f"{len(columns)} columns"
        what = f"{found} instead of {count or 'a word and its tag'}"
        remedy = f"write the word, {'a tab' if tabs else 'white space'} and its tag"
        raise DataError(path, what, remedy, line=line, field="row")
    if not columns[0]:
        raise DataError(path, "an empty word", "write it, or delete the line", line=line, field="word")
    return columns
