"""The rows of a CoNLL file between "#begin document" and "#end document", as they are read."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path

from cdlm_lab.data.coreference_records import (
    CoreferenceDocument,
    CoreferenceMention,
    Kind,
    PassedOver,
    TokenSpan,
    Topic,
    joined_sentences,
)
from cdlm_lab.data.files import DataError

_HEADER = re.compile(r"\(?(.*?)\)?; part (\d{1,9})")
# The name of a chain holds neither brackets, bars nor white space: 7, PRK-Misc_ACTOR. There is one way to
# read each piece, lest a cell takes hours.
_PIECE = re.compile(r"\(([^()|\s]++)\)|\(([^()|\s]++)(?!\))|([^()|\s]++)\)")
_COLUMN = re.compile(rf"-|_|\*|({_PIECE.pattern})(\s*+(?:\|\s*+)?({_PIECE.pattern}))*+")
_WORD, _FIVE = 3, 5  # CoNLL-2012 has the word in the fourth column, if there are five or more
_SHARED_TASK = 10  # so many columns or more are those of CoNLL-2012, whose chains end with the document
_COLUMN_REMEDY = 'write "-", or mentions as (1), (1 and 1), with | between them'
_MOST_SENTENCES = 2  # that a mention may go across


@dataclass(slots=True, kw_only=True)
class ConllDraft:
    """A document as far as it was read.

    `topic`, `subtopic`: as its rows say, "" if they do not; `still_open`: chain -> (first token, line) of
    mentions to be ended; `mentions`: (start, end, chain) -> line of its end; `mark`: what its rows say of the
    sentence.
    """

    id: str
    topic: str = ""
    subtopic: str = ""
    tokens: list[str] = field(default_factory=list)
    sentences: list[TokenSpan] = field(default_factory=list)
    mark: str = ""
    still_open: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    mentions: dict[tuple[int, int, str], int] = field(default_factory=dict)

    def record(self, *, topic: str, subtopic: str, chains: str, kind: Kind) -> CoreferenceDocument:
        """The finished document; `chains`: goes before the names of its chains. Sentences that a mention goes
        across are one."""
        sentences = joined_sentences(self.sentences, [(start, end) for start, end, _ in self.mentions])
        starts = [start for start, _ in sentences]
        return CoreferenceDocument(
            id=self.id,
            topic=topic,
            subtopic=subtopic,
            tokens=tuple(self.tokens),
            sentences=sentences,
            validated=tuple(range(len(sentences))),
            mentions=tuple(
                CoreferenceMention(
                    id=f"{self.id}:{start}-{end}:{chain}",
                    document=self.id,
                    tokens=(start, end),
                    sentence=bisect_right(starts, start) - 1,
                    kind=kind,
                    cluster=f"{chains}:{chain}",
                )
                for start, end, chain in sorted(self.mentions)
            ),
        )


class ConllSection:
    """What stands between #begin and #end.

    Args:
        names: of the documents of the file so far.
        passed_over: counts what cannot be used; None = it is refused.
        is_marked: False = there was no #begin.
    """

    def __init__(
        self,
        *,
        path: Path,
        line: int,
        name: str,
        names: set[str],
        passed_over: PassedOver | None = None,
        is_marked: bool = True,
    ) -> None:
        header = _HEADER.fullmatch(name)
        self.part = f"/{int(header[2])}" if header and int(header[2]) else ""
        self.name = (header[1] if header else name) + self.part
        self.path, self.line, self.names, self.passed_over = path, line, names, passed_over
        self.documents: list[ConllDraft] = []
        self.is_shared_task, self.is_marked = bool(self.part), is_marked
        if not self.name:
            raise self.error(
                "a document without a name", "write #begin document (name); part 000", line, "#begin"
            )

    def error(self, what: str, remedy: str, line: int, column: str) -> DataError:
        """A complaint about a line, to be raised."""
        return DataError(self.path, what, remedy, line=line, field=column)

    def topic(self, kind: Kind) -> Topic:
        """All of it as one topic."""
        self.end()
        records = [
            draft.record(topic=self.name, subtopic=self.name, chains=self.name, kind=kind)
            for draft in self.documents
        ]
        return Topic(id=self.name, documents=tuple(records))

    def end(self) -> None:
        """No more rows. Raises DataError if there was no token; mentions that are open are passed over."""
        if not self.documents:
            raise self.error(f"{self.name} has no tokens", "remove it", self.line, "#begin")
        self._end_document()

    def add(self, text: str, line: int) -> None:
        """A line of it: a token, or the end of a sentence."""
        cells = text.rstrip().split("\t") if "\t" in text else text.split()
        if not cells or not text.strip():
            self._end_sentence()
            return
        if text.startswith("#") and self.passed_over is not None:
            self.passed_over.add("line that starts with #", f"{self.path}:{line}")
            return
        if len(cells) < 2:
            self.pass_over(
                "row of one column", "one column", "write at least a document and its mentions", line, "row"
            )
            return
        name, word = cells[0], cells[_WORD] if len(cells) >= _FIVE else "_"
        topic, subtopic, sentence = "", "", ""
        if len(cells) == 8 and cells[6] in ("True", "False"):
            topic, subtopic, name, sentence, _, word = cells[:6]
        elif len(cells) >= _SHARED_TASK:
            self.is_shared_task = True
        if not name.strip() or not word.strip():
            self.pass_over(
                "row with an empty cell", "an empty cell", "write a document and a word", line, "row"
            )
            return
        mentions, column = cells[-1], f"column {len(cells)}"
        if not _COLUMN.fullmatch(mentions):
            what = f"{mentions!r} is none"
            self.pass_over("last column that holds no mentions", what, _COLUMN_REMEDY, line, column)
            mentions = "-"
        draft = self._draft(name + self.part, line)
        draft.topic, draft.subtopic = topic, subtopic
        if sentence != draft.mark:
            self._end_sentence()
        draft.mark = sentence
        draft.tokens.append(word)
        self._add_mentions(draft, mentions, line, column)

    def _draft(self, name: str, line: int) -> ConllDraft:
        if not self.documents or self.documents[-1].id != name:
            self._end_document()
            if name in self.names:
                what = f"{name} comes a second time"
                raise self.error(what, "keep the lines of a document together", line, "document")
            self.names.add(name)
            self.documents.append(ConllDraft(id=name))
        return self.documents[-1]

    def _add_mentions(self, draft: ConllDraft, cell: str, line: int, column: str) -> None:
        """As the scorers do: mentions of one token, then starts, then ends, each of the latest start."""
        last = len(draft.tokens) - 1
        pieces = _PIECE.findall(cell)
        for single, _, _ in pieces:
            if single:
                self._add_mention(draft, last, single, line, column)
        for _, chain, _ in pieces:
            if chain:
                draft.still_open.setdefault(chain, []).append((last, line))
        for _, _, chain in pieces:
            if chain and draft.still_open.get(chain):
                self._add_mention(draft, draft.still_open[chain].pop()[0], chain, line, column)
            elif chain:
                what, remedy = f"{chain}) ends no mention", f"write ({chain} where it starts"
                self.pass_over("end of a mention that does not start", what, remedy, line, column)

    def _add_mention(self, draft: ConllDraft, start: int, chain: str, line: int, column: str) -> None:
        end = len(draft.tokens)
        sentences = 1 + sum(start < border < end for _, border in draft.sentences[-_MOST_SENTENCES:])
        if (start, end, chain) in draft.mentions:
            what = f"the mention of {chain} from token {start} comes a second time"
            self.pass_over(
                "mention that is there already, in the same chain", what, "write it once", line, column
            )
        elif sentences > _MOST_SENTENCES:
            what, remedy = f"the mention of {chain} goes across three sentences", "end it in the first"
            self.pass_over("mention across three sentences or more", what, remedy, line, column)
        else:
            draft.mentions[start, end, chain] = line
            if sentences > 1 and self.passed_over is not None:
                self.passed_over.add("mention across two sentences, which were joined", f"{self.path}:{line}")

    def pass_over(self, reason: str, what: str, remedy: str, line: int, column: str) -> None:
        """Count it, or raise DataError where nothing counts."""
        error = self.error(what, remedy, line, column)
        if self.passed_over is None:
            raise error
        self.passed_over.add(reason, f"{self.path}:{line}")

    def _end_document(self) -> None:
        self._end_sentence()
        for chain, starts in self.documents[-1].still_open.items() if self.documents else ():
            for _, line in starts:
                what = f"the mention ({chain} does not end in its document"
                remedy = f"write {chain}) where it ends"
                self.pass_over("mention that does not end", what, remedy, line, "last column")

    def _end_sentence(self) -> None:
        if not self.documents:
            return
        draft = self.documents[-1]
        start = draft.sentences[-1][1] if draft.sentences else 0
        if start < len(draft.tokens):
            draft.sentences.append((start, len(draft.tokens)))
