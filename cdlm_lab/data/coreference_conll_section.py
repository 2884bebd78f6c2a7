"""The rows of a CoNLL file between "#begin document" and "#end document", as they are read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from cdlm_lab.data.coreference_records import (
    CoreferenceDocument,
    CoreferenceMention,
    Kind,
    TokenSpan,
    Topic,
)
from cdlm_lab.data.files import DataError

_HEADER = re.compile(r"\((.*)\); part (\d{1,9})")
_PIECE = re.compile(r"\((\w++)\)|\((\w++)(?!\))|(\w++)\)")  # one way to read each, lest a cell takes hours
_COLUMN = re.compile(rf"-|_|({_PIECE.pattern})(\|?({_PIECE.pattern}))*+")
_WORD, _FIVE = 3, 5  # CoNLL-2012 has the word in the fourth column, if there are five or more
_COLUMN_REMEDY = 'write "-", or mentions as (1), (1 and 1), with | between them'


@dataclass(slots=True, kw_only=True)
class _Draft:
    """A document as far as it was read.

    `still_open`: chain -> (first token, line) of mentions to be ended; `mentions`: (start, end, chain) ->
    index of the sentence; `mark`: what its rows say of the sentence.
    """

    id: str
    tokens: list[str] = field(default_factory=list)
    sentences: list[TokenSpan] = field(default_factory=list)
    mark: str = ""
    still_open: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    mentions: dict[tuple[int, int, str], int] = field(default_factory=dict)

    def record(self, topic: str, kind: Kind) -> CoreferenceDocument:
        """The finished document."""
        return CoreferenceDocument(
            id=self.id,
            topic=topic,
            subtopic=topic,
            tokens=tuple(self.tokens),
            sentences=tuple(self.sentences),
            validated=tuple(range(len(self.sentences))),
            mentions=tuple(
                CoreferenceMention(
                    id=f"{self.id}:{start}-{end}:{chain}",
                    document=self.id,
                    tokens=(start, end),
                    sentence=sentence,
                    kind=kind,
                    cluster=f"{topic}:{chain}",
                )
                for (start, end, chain), sentence in sorted(self.mentions.items())
            ),
        )


class ConllSection:
    """What stands between #begin and #end. `names`: of the documents of the file so far."""

    def __init__(self, *, path: Path, line: int, name: str, names: set[str]) -> None:
        header = _HEADER.fullmatch(name)
        self.part = f"/{int(header[2])}" if header and int(header[2]) else ""
        self.name = (header[1] if header else name) + self.part
        self.path, self.line, self.names = path, line, names
        self.documents: list[_Draft] = []
        if not self.name:
            raise self.error(
                "a document without a name", "write #begin document (name); part 000", line, "#begin"
            )

    def error(self, what: str, remedy: str, line: int, column: str) -> DataError:
        """A complaint about a line, to be raised."""
        return DataError(self.path, what, remedy, line=line, field=column)

    def topic(self, kind: Kind) -> Topic:
        """The finished topic."""
        if not self.documents:
            raise self.error(f"{self.name} has no tokens", "remove it", self.line, "#begin")
        self._end_sentence()
        return Topic(id=self.name, documents=tuple(draft.record(self.name, kind) for draft in self.documents))

    def add(self, text: str, line: int) -> None:
        """A line of it: a token, or the end of a sentence."""
        cells = text.rstrip().split("\t") if "\t" in text else text.split()
        if not cells or not text.strip():
            self._end_sentence()
            return
        if len(cells) < 2:
            raise self.error("one column", "write at least a document and its mentions", line, "row")
        name, sentence, word = cells[0], "", cells[_WORD] if len(cells) >= _FIVE else "_"
        if len(cells) == 8 and cells[6] in ("True", "False"):
            name, sentence, word = cells[2], cells[3], cells[5]
        if not name.strip() or not word.strip():
            raise self.error("an empty cell", "write a document and a word", line, "row")
        if not _COLUMN.fullmatch(cells[-1]):
            raise self.error(f"{cells[-1]!r} is none", _COLUMN_REMEDY, line, f"column {len(cells)}")
        draft = self._draft(name + self.part, line)
        if sentence != draft.mark:
            self._end_sentence()
        draft.mark = sentence
        draft.tokens.append(word)
        self._add_mentions(draft, cells[-1], line, f"column {len(cells)}")

    def _draft(self, name: str, line: int) -> _Draft:
        if not self.documents or self.documents[-1].id != name:
            self._end_sentence()
            if name in self.names:
                what = f"{name} comes a second time"
                raise self.error(what, "keep the lines of a document together", line, "document")
            self.names.add(name)
            self.documents.append(_Draft(id=name))
        return self.documents[-1]

    def _add_mentions(self, draft: _Draft, cell: str, line: int, column: str) -> None:
        """As the scorers do: mentions of one token, then starts, then ends, each of the latest start."""
        last = len(draft.tokens) - 1
        pieces = _PIECE.findall(cell)
        found = [(last, single) for single, _, _ in pieces if single]
        for _, chain, _ in pieces:
            if chain:
                draft.still_open.setdefault(chain, []).append((last, line))
        for _, _, chain in pieces:
            if chain and not draft.still_open.get(chain):
                raise self.error(f"{chain}) ends no mention", f"write ({chain} where it starts", line, column)
            if chain:
                found.append((draft.still_open[chain].pop()[0], chain))
        for start, chain in found:
            if (start, last + 1, chain) in draft.mentions:
                what = f"the mention of {chain} from token {start} comes a second time"
                raise self.error(what, "write it once", line, column)
            draft.mentions[start, last + 1, chain] = len(draft.sentences)

    def _end_sentence(self) -> None:
        if not self.documents:
            return
        draft = self.documents[-1]
        for chain, starts in draft.still_open.items():
            for _, line in starts:
                what = f"the mention ({chain} does not end in its sentence"
                raise self.error(what, f"write {chain}) where it ends", line, "last column")
        start = draft.sentences[-1][1] if draft.sentences else 0
        if start < len(draft.tokens):
            draft.sentences.append((start, len(draft.tokens)))
