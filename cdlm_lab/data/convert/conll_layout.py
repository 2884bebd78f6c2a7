"""What the columns of CoNLL files hold: makers put the word, the document and the number of the token into
different ones, and no file says so."""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from cdlm_lab.data.files import DataError, read_lines

# The name of a chain holds neither brackets, bars nor white space: 7, PRK-Misc_ACTOR. Each piece matches in
# one way only, so that no cell takes hours of backtracking.
PIECE = re.compile(r"\(([^()|\s]++)\)|\(([^()|\s]++)(?!\))|([^()|\s]++)\)")
COLUMN = re.compile(rf"-|_|\*|({PIECE.pattern})(\s*+(?:\|\s*+)?({PIECE.pattern}))*+")
NUMBER = re.compile(r"[0-9]{1,9}")
_DIGIT = re.compile(r"\d")
_COMPOUND = re.compile(r"[0-9]+[-.][0-9]+")  # of a multiword token or an empty node, as in CoNLL-U
_WORD = 3  # CoNLL-2012 has the word in the fourth column, if there are five or more
_REMEDY = "write document, sentence, token, word and mentions"


def cells_of(text: str, tabs: bool) -> list[str]:
    """The columns of a row, by tabs or by runs of spaces: other white space is part of a word. Mentions that
    stand apart in the last column, "(5) | (6)", are one cell."""
    if tabs:
        return text.split("\t")
    cells = [cell for cell in text.replace("\t", " ").split(" ") if cell]
    last = [cells.pop()]  # parts of the last column, in reverse
    while len(cells) > 1 and PIECE.match(last[-1].lstrip("|")):
        alone = cells[-1] == "|"
        if not PIECE.match(cells[-1 - alone]) or not (alone or "|" in (last[-1][0], cells[-1][-1])):
            break
        last += [cells.pop() for _ in range(1 + alone)]
    return [*cells, "".join(reversed(last))]


class Layout(NamedTuple):
    """What the columns of a file hold. `first`: of column 1; `word`: the column of the word, from 0, None =
    none; `width`: usual number of columns; `spare`: empty cells behind the last column of every row; `tabs`:
    whether tabs separate the columns, else runs of spaces."""

    first: Literal["topic", "document", "number", "word"]
    word: int | None
    width: int
    spare: int
    tabs: bool


@dataclass(slots=True, kw_only=True)
class _Columns:
    """Counts over the rows of a file from which its layout is told. `widths`: (whether the last cell can be
    of mentions, number of columns); `steps`: (column, how its cell differs from that of the row before);
    `texts`: column, of the first five -> rows in which it is no number."""

    path: Path
    tabs: bool
    line: int = 0  # of the first row
    widths: Counter[tuple[bool, int]] = field(default_factory=Counter)
    steps: Counter[tuple[int, str]] = field(default_factory=Counter)
    texts: Counter[int] = field(default_factory=Counter)
    topics: int = 0  # rows of the eight columns of Cattan et al.
    named: int = 0  # rows whose first cell has a digit
    first_numbers: bool = True  # whether all first cells are 0 or 1
    spare: int = sys.maxsize
    before: tuple[int, list[str]] = (-1, [])

    def add(self, text: str, line: int) -> None:
        """Count a row."""
        cells = cells_of(text, self.tabs)
        self.line = self.line or line
        filled = next((cell for cell in reversed(cells) if cell.strip()), "")
        self.widths[bool(COLUMN.fullmatch(filled.strip())), len(cells)] += 1
        self.topics += len(cells) == 8 and cells[6] in ("True", "False")
        self.named += _DIGIT.search(cells[0]) is not None
        self.first_numbers = self.first_numbers and cells[0] in ("0", "1")
        for column, cell in enumerate(cells[: _WORD + 2]):
            if not cell.isdecimal():
                self.texts[column] += 1
        if self.spare:
            self.spare = min(self.spare, next((n for n, cell in enumerate(cells[::-1]) if cell.strip()), 0))
        last_line, last = self.before
        if line == last_line + 1:
            for column in (0, _WORD):
                if column < min(len(cells), len(last)):
                    self.steps[column, _step(last[column], cells[column])] += 1
        self.before = line, cells

    def layout(self) -> Layout:
        """The layout that fits most rows. Raises DataError if two columns may hold the words."""
        # Rows that end in mentions, or a sign for none, have all columns; others may lack the last one.
        ending = {width: count for (ends, width), count in self.widths.items() if ends}
        widths = ending or {width: count for (_, width), count in self.widths.items()}
        rows, width = self.widths.total(), max(widths, key=widths.__getitem__) - self.spare
        steps = [self.steps[0, step] for step in ("up", "same", "other")]
        if 2 * self.topics > rows:
            return Layout("topic", 5, width, self.spare, self.tabs)
        if steps[0] > steps[1] + steps[2] or (not any(steps) and self.first_numbers and width > 2):
            return Layout("number", 1 if width > 2 else None, width, self.spare, self.tabs)
        if any(steps) and steps[2] > steps[1]:
            if 2 * self.named > rows:
                what = "column 1 is neither a document, nor a whole number, nor a word"
                raise DataError(self.path, what, _REMEDY, line=self.line, field="columns")
            return Layout("word", 0, width, self.spare, self.tabs)
        counts = self.steps[_WORD, "up"] > 0 and not self.texts[_WORD]
        if width > _WORD + 1 and not counts:
            return Layout("document", _WORD, width, self.spare, self.tabs)
        candidates = [column for column in range(1, width - 1) if self.texts[column]]
        if len(candidates) > 1:
            both = " and ".join(str(column + 1) for column in candidates[:2])
            what = f"of {width} columns, {both} may hold the words"
            raise DataError(self.path, what, _REMEDY, line=self.line, field="columns")
        return Layout("document", next(iter(candidates), None), width, self.spare, self.tabs)


def _step(before: str, after: str) -> str:
    if before == after:
        return "same"
    if bool(_COMPOUND.fullmatch(before)) != bool(_COMPOUND.fullmatch(after)):
        return "none"
    numbers = NUMBER.fullmatch(before) and NUMBER.fullmatch(after)
    return "up" if numbers and int(after) > int(before) else "other"


def layout_of(path: Path) -> Layout:
    """Read a file and tell what its columns hold. Raises DataError if that is not sure."""
    by_sign = {tabs: _Columns(path=path, tabs=tabs) for tabs in (False, True)}
    for line, text in read_lines(path):
        if text.strip() and not text.startswith("#"):
            by_sign["\t" in text].add(text, line)
    columns = max(by_sign.values(), key=lambda one: one.widths.total())
    return columns.layout() if columns.line else Layout("document", None, 0, 0, True)
