"""Coreference in CoNLL files: written for the scorers, and read as several makers write them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from cdlm_lab.data import coreference, files, records
from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import CoreferenceDocument, CoreferenceMention, Kind, PassedOver, TokenSpan, Topic
from cdlm_lab.data.rows import split_of
from cdlm_lab.errors import check_choice

# ---- written ----


def write_conll(
    path: str | Path, topics: Iterable[Topic], clusters: Mapping[str, Iterable[CoreferenceMention]]
) -> None:
    """Write clusters of mentions in the documents of `topics` as CoNLL: a gold key or a system's response.

        #begin document (corpus); part 000
        36_1ecb<tab>36_ecb<tab>0<tab>Police<tab>(1)
        36_1ecb<tab>36_ecb<tab>1<tab>made<tab>(2
        36_1ecb<tab>36_ecb<tab>2<tab>arrests<tab>(3)|2)

        #end document

    A line is a token: document, sub-topic, index in the sentence, word and the mentions that start and end at
    it; clusters are numbered from 1. All sentences and singletons are written, so that key and response
    match. Raises ValueError for mentions that do not fit the documents, are in two clusters, or cross or
    repeat each other in one, and for names or tokens that are empty or have a tab or a line break.
    """
    documents = documents_by_id(topics)
    named = members_by_document(clusters, documents)
    numbers: dict[str, int] = {}
    rows = [row for name, one in documents.items() for row in _rows(one, named.get(name, []), numbers)]
    with files.replaced_file(Path(path)) as file:
        file.writelines(["#begin document (corpus); part 000\n", *rows, "#end document\n"])


def documents_by_id(topics: Iterable[Topic]) -> dict[str, CoreferenceDocument]:
    """The documents to be written, in order. Raises ValueError for two of one id, or none."""
    documents = [document for topic in topics for document in topic.documents]
    by_id = {document.id: document for document in documents}
    if len(by_id) < len(documents) or not documents:
        raise ValueError("two documents of one id, or none at all; give each topic once")
    return by_id


def members_by_document(
    clusters: Mapping[str, Iterable[CoreferenceMention]], documents: Mapping[str, CoreferenceDocument]
) -> dict[str, list[tuple[CoreferenceMention, str]]]:
    """Document -> its (mention, name of cluster), by start and, for equal starts, longest first. Raises
    ValueError for mentions that do not fit the documents, or that brackets cannot tell apart."""
    members: dict[str, list[tuple[CoreferenceMention, str]]] = {}
    places: dict[str, str] = {}
    for name, mentions in clusters.items():
        for mention in mentions:
            if mention.document not in documents:
                raise ValueError(f"{mention.name}: the topics to be written have no such document")
            records.check_mention(mention, documents[mention.document])
            if mention.id in places:
                raise ValueError(f"{mention.name} is in the clusters {places[mention.id]} and {name}")
            places[mention.id] = name
            members.setdefault(mention.document, []).append((mention, name))
    for named in members.values():
        named.sort(key=lambda item: (item[0].tokens[0], -item[0].tokens[1]))
        _check_nesting(named)
    return members


def _check_nesting(named: Iterable[tuple[CoreferenceMention, str]]) -> None:
    """Raise ValueError if mentions of one cluster cross or coincide, as brackets cannot tell these apart."""
    around: dict[str, list[CoreferenceMention]] = {}
    for mention, name in named:
        still_open = around.setdefault(name, [])
        while still_open and still_open[-1].tokens[1] <= mention.tokens[0]:
            still_open.pop()
        if still_open:
            outer = still_open[-1]
            if outer.tokens == mention.tokens or outer.tokens[1] < mention.tokens[1]:
                what = "stand in the same place" if outer.tokens == mention.tokens else "cross each other"
                both = f"{outer.name} and {mention.id} of cluster {name}"
                raise ValueError(f"{both} {what}; CoNLL and CorefUD cannot say so")
        still_open.append(mention)


def _rows(
    document: CoreferenceDocument, named: Iterable[tuple[CoreferenceMention, str]], numbers: dict[str, int]
) -> Iterator[str]:
    """Yield the lines of a document. Clusters that are not in `numbers` yet get the next number there."""
    starts: dict[int, list[str]] = {}
    ends: dict[int, list[str]] = {}
    for mention, name in named:
        number = numbers.setdefault(name, len(numbers) + 1)
        start, end = mention.tokens
        single = end == start + 1
        starts.setdefault(start, []).append(f"({number})" if single else f"({number}")
        if not single:
            ends.setdefault(end - 1, []).insert(0, f"{number})")
    head = f"{plain_cell(document.id, 'document')}\t{plain_cell(document.subtopic, 'sub-topic')}"
    for start, end in document.sentences:
        for position in range(start, end):
            pieces = starts.get(position, []) + ends.get(position, [])
            word = plain_cell(document.tokens[position], f"token {position} of document {document.id}")
            yield f"{head}\t{position - start}\t{word}\t{'|'.join(pieces) or '-'}\n"
        yield "\n"


def plain_cell(text: str, what: str) -> str:
    """The text, which can stand in a cell of a file in columns. Raises ValueError if it cannot."""
    if not text or set(text) & set("\t\r\n") or (what == "document" and text.startswith("#")):
        raise ValueError(f"{what} {text!r} cannot stand in a CoNLL file: empty, a tab, a line break or a #")
    return text


# ---- read ----

Chains = Literal["auto", "document", "topic", "corpus"]
Found = tuple[str, list[Path]]  # name of the split, its files
_BEGIN, _END = re.compile(r"#\s*begin document\s*(.*)"), re.compile(r"#\s*end document")
_PART = re.compile(r"(.*?)\s*;\s*(?:part\s+([0-9]{1,9}))?\s*")
# The name of a chain holds neither brackets, bars nor white space: 7, PRK-Misc_ACTOR. Each piece matches in
# one way only, so that no cell takes hours of backtracking.
_PIECE = re.compile(r"\(([^()|\s]++)\)|\(([^()|\s]++)(?!\))|([^()|\s]++)\)")
_COLUMN = re.compile(rf"-|_|\*|({_PIECE.pattern})(\s*+(?:\|\s*+)?({_PIECE.pattern}))*+")
_COUNTED_NAME = re.compile(r"[^\W\d]*[-_.:#]?([0-9]{1,9})")  # of a chain: 12, E12, T_3
_SHARED_TASK = 10  # rows of at least so many columns are of shared tasks, whose chains end with the document
_DIGITS = 10  # a number of so many is none of a token
_MOST_SENTENCES = 2  # most sentences that a mention may span
_ROW = "write document, part, number, word and mentions, or number, word and mentions"
_NO_MENTION = 'write them in the last column, as (1), (1 and 1); "-" is none'


def conll_files(corpus: Path, endings: tuple[str, ...] = (".conll", "_conll")) -> dict[str, Found]:
    """Split -> its name and its CoNLL files, which have one of these endings; folders or names tell the
    split ("val/topic_3.conll", "dev_events_topic_level.conll"). A file given alone is of no split. {} without
    such files."""
    by_split: dict[str, list[Path]] = {}
    for path in [corpus] if corpus.is_file() else sorted(corpus.rglob("*conll*")):
        whole = path.is_file() and files.plain_name(path).endswith(endings)
        if whole and (path == corpus or not files.is_hidden(path, corpus)):
            by_split.setdefault("" if path == corpus else split_of(path, corpus), []).append(path)
    names = {"": "all", "validation": "dev"}
    return {split: (names.get(split, split), paths) for split, paths in by_split.items()}


def read_conll(
    found: Found, *, passed_over: PassedOver, kind: Kind | None = None, chains: Chains = "auto"
) -> Iterator[CoreferenceDocument]:
    """Yield the documents of a split, whether "#begin document" in its files marks the corpus, a topic, or a
    document. Rows are of one of these forms, columns separated by tabs or else by spaces:

        document, part or sub-topic, number, word, ..., mentions   CoNLL-2012, `write_conll`
        topic, sub-topic, document, sentence, token, word, flag, mentions   Cattan et al.'s code
        number, word, ..., mentions   SemEval-2010, GUM; numbers go up

    A part other than 0 is added to the names, as in "bc/cctv_0001/2". All sentences count as validated; those
    that a mention crosses are joined. `kind`: of all mentions; files named for the other kind are not read;
    None = as files are named, else entity. Brackets that match no other, and documents that are in a second
    file, are counted in `passed_over`.

    The topic of a document is the first of these that exists: the topic in its rows (eight columns); the name
    of its section, if that holds several documents or is named differently; the parts of its name before the
    last "/" (0/221/0_news_119: 0, and 0/221); its name up to the first "_", if two share it; else the split.

    `chains`: within what equal names of chains mean the same chain: a document, which is then a topic of its
    own, a topic or the corpus. "auto": within a section that holds several documents or is named otherwise;
    within the document in files of shared tasks (ten or more columns, or parts); else within the topic, but a
    DataError asks for it if a name is in two documents and can be a number that begins again in each.
    """
    check_choice("chains", chains, get_args(Chains))
    name, paths = found
    kind, paths = _of_kind(paths, kind)
    sections = [one for path in paths for one in _sections(path, passed_over)]
    drafts: dict[str, _Draft] = {}
    for one, draft in ((section, draft) for section in sections for draft in section.drafts):
        if drafts.setdefault(draft.id, draft) is not draft:
            passed_over.add("document that was read already", f"{one.path}:{one.line}")
    if not any(draft.mentions for draft in drafts.values()):
        raise DataError(paths[0], f"no mention in {len(drafts)} documents", _NO_MENTION)
    passed_over.notes.append(_set_chains(sections, chains))
    by_name = coreference.topics_by_name([one.id for one in drafts.values() if not one.topic], otherwise=name)
    reach: dict[str, set[str]] = {}  # name of a chain -> topics, of documents whose chains end with these
    for draft in drafts.values():
        draft.topic = draft.topic or by_name[draft.id]
        draft.subtopic = draft.subtopic or draft.topic
        for _, _, chain in draft.mentions if not draft.chains else ():
            reach.setdefault(chain, set()).add(draft.topic)
        draft.chains = draft.chains or draft.topic
    for chain in (chain for chain, its_topics in reach.items() if chains == "auto" and len(its_topics) > 1):
        what = "chain in two topics, which was taken apart; chains = corpus keeps it"
        passed_over.add(what, f"chain {chain}")
    for draft in drafts.values():
        yield draft.document(kind)


def _of_kind(paths: Sequence[Path], kind: Kind | None) -> tuple[Kind, list[Path]]:
    """The kind of the mentions, and the files that are not named for the other kind."""
    words = {path: {*re.findall(r"[a-z]+", path.name.lower()), path.parent.name} for path in paths}
    events = [path for path, its in words.items() if its & {"event", "events"}]
    entities = [path for path, its in words.items() if its & {"entity", "entities"} and path not in events]
    wanted = kind or ("event" if events else "entity")
    others = entities if wanted == "event" else events
    return wanted, [path for path in paths if path not in others]


class _Row(NamedTuple):
    """What the columns of a row say; `mark`: of its sentence, `number`: of the token, -1 = not told."""

    name: str
    topic: str
    subtopic: str
    mark: str
    number: int
    word: str
    mentions: str


@dataclass(slots=True, kw_only=True)
class _Draft:
    """A document that is being read.

    `topic`, `subtopic`: from its rows, or ""; `chains`: scope in which equal names mean the same chain;
    `still_open`: chain -> (first token, line) of mentions that have not ended yet; `mentions`: (start, end,
    chain).
    """

    id: str
    topic: str = ""
    subtopic: str = ""
    chains: str = ""
    tokens: list[str] = field(default_factory=list)
    sentences: list[TokenSpan] = field(default_factory=list)
    still_open: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    mentions: set[tuple[int, int, str]] = field(default_factory=set)

    def end_sentence(self) -> None:
        """End the current sentence, if it has tokens: the next token begins another one."""
        start = self.sentences[-1][1] if self.sentences else 0
        if start < len(self.tokens):
            self.sentences.append((start, len(self.tokens)))

    def document(self, kind: Kind) -> CoreferenceDocument:
        """Make the finished document, with mentions of a kind."""
        return coreference.document_of_spans(
            [
                (f"{self.id}:{start}-{end}:{chain}", (start, end), kind, f"{self.chains}:{chain}")
                for start, end, chain in sorted(self.mentions)
            ],
            id=self.id,
            topic=self.topic,
            subtopic=self.subtopic,
            tokens=self.tokens,
            sentences=self.sentences,
            validated=range(len(self.sentences)),
        )


@dataclass(slots=True, kw_only=True)
class _Section:
    """What stands between "#begin document" and "#end document"."""

    path: Path
    line: int  # of its beginning
    name: str
    part: str  # "/2", or "" for part 0
    passed_over: PassedOver
    rows: list[tuple[int, list[str]]] = field(default_factory=list)  # line, columns; [] = a blank line
    drafts: list[_Draft] = field(default_factory=list)

    @property
    def is_shared_task(self) -> bool:
        """Whether all its chains end with the document."""
        return any(len(cells) >= _SHARED_TASK for _, cells in self.rows)

    def read(self, names: set[str]) -> None:
        """Make the documents of its rows. `names`: ids of the documents read so far."""
        first = [cells[0] for _, cells in self.rows if cells]
        numbers = [int(one) if one.isdecimal() and len(one) < _DIGITS else None for one in first]
        up = (one is not None and other == one + 1 for one, other in pairwise(numbers))
        numbered = None not in numbers and (len(numbers) == 1 or any(up))
        last = _Row("", "", "", "", -1, "", "")
        for line, cells in self.rows:
            if not cells:
                last = last._replace(mark="\n")
                continue
            row = self._row(cells, numbered, line)
            if not self.drafts or self.drafts[-1].id != row.name:
                self.end()
                if row.name in names:
                    what, remedy = f"{row.name} comes a second time", "keep the lines of a document together"
                    raise DataError(self.path, what, remedy, line=line, field="document")
                names.add(row.name)
                self.drafts.append(_Draft(id=row.name, topic=row.topic, subtopic=row.subtopic))
            elif row.mark != last.mark or (row.number >= 0 and row.number <= last.number):
                self.drafts[-1].end_sentence()
            last = row
            self.drafts[-1].tokens.append(row.word)
            self._add_mentions(self.drafts[-1], row.mentions, line)
        self.end()

    def _row(self, cells: list[str], numbered: bool, line: int) -> _Row:
        topic = subtopic = mark = ""
        number, name, word = -1, cells[0] + self.part, ""
        if len(cells) == 8 and cells[6] in ("True", "False"):
            topic, subtopic, name, mark, word = cells[0], cells[1], cells[2] + self.part, cells[3], cells[5]
        elif numbered and len(cells) > 2:
            number, name, word = int(cells[0]), self.name, cells[1]
        elif len(cells) > 4:
            word = cells[3]
        if not name.strip() or not word.strip():
            what = "a row with an empty cell" if len(cells) > 4 else f"a row of {len(cells)} columns"
            raise DataError(self.path, what, _ROW, line=line, field="row")
        if not _COLUMN.fullmatch(cells[-1].strip()):
            what, remedy = f"{cells[-1]!r} are no mentions", "write (1), (1, 1) or -, with bars between them"
            raise DataError(self.path, what, remedy, line=line, field="last column")
        return _Row(name, topic, subtopic, mark, number, word, cells[-1])

    def _add_mentions(self, draft: _Draft, cell: str, line: int) -> None:
        """As scorers do, read mentions of one token, then starts, then ends, which close the latest start."""
        last = len(draft.tokens) - 1
        pieces = _PIECE.findall(cell)
        for single, _, _ in pieces:
            if single:
                self._add_mention(draft, last, single, line)
        for _, chain, _ in pieces:
            if chain:
                draft.still_open.setdefault(chain, []).append((last, line))
        for _, _, chain in pieces:
            if chain and draft.still_open.get(chain):
                self._add_mention(draft, draft.still_open[chain].pop()[0], chain, line)
            elif chain:
                self._count("end of a mention that does not start", line)

    def _add_mention(self, draft: _Draft, start: int, chain: str, line: int) -> None:
        end = len(draft.tokens)
        sentences = 1 + sum(start < border < end for _, border in draft.sentences[-_MOST_SENTENCES:])
        if (start, end, chain) in draft.mentions:
            self._count("mention that is there already, in the same chain", line)
        elif sentences > _MOST_SENTENCES:
            self._count("mention across three sentences or more", line)
        else:
            draft.mentions.add((start, end, chain))
            if sentences > 1:
                self._count("mention across two sentences, which were joined", line)

    def _count(self, reason: str, line: int) -> None:
        self.passed_over.add(reason, f"{self.path}:{line}")

    def end(self) -> None:
        """Finish the latest document; its mentions that are still open are dropped and counted."""
        for draft in self.drafts[-1:]:
            draft.end_sentence()
            for _, line in (start for starts in draft.still_open.values() for start in starts):
                self._count("mention that does not end", line)


def _sections(path: Path, passed_over: PassedOver) -> Iterator[_Section]:
    """Yield each section that has rows. Rows outside sections form one that is named after the file; a
    section without end reaches to the next one."""
    names: set[str] = set()
    section: _Section | None = None
    for line, text in files.read_lines(path):
        begin = _BEGIN.match(text)
        if begin or _END.match(text):
            yield from _finished(section, names)
            section = _section(path, line, begin[1].strip(), passed_over) if begin else None
        elif text.strip() and not text.startswith("#"):
            section = section or _section(path, line, path.name.partition(".")[0], passed_over)
            plain = text.rstrip()
            cells = plain.split("\t") if "\t" in plain else [cell for cell in plain.split(" ") if cell]
            section.rows.append((line, cells))
        elif section and not text.strip():
            section.rows.append((line, []))
    yield from _finished(section, names)


def _finished(section: _Section | None, names: set[str]) -> Iterator[_Section]:
    if section:
        section.read(names)
        yield from [section] if section.drafts else []


def _section(path: Path, line: int, header: str, passed_over: PassedOver) -> _Section:
    match = _PART.fullmatch(header)
    name = (match[1] if match else header).strip()
    name = name[1:-1].strip() if name.startswith("(") and name.endswith(")") else name
    if not name:
        remedy = "write #begin document (name); part 000"
        raise DataError(path, "a document without a name", remedy, line=line, field="#begin")
    part = f"/{int(match[2])}" if match and int(match[2] or 0) else ""
    return _Section(path=path, line=line, name=name + part, part=part, passed_over=passed_over)


def _have_shared_chains(sections: Sequence[_Section]) -> bool:
    """Whether a name of a chain is in two sections of one document each. Raises DataError if these names can
    be numbers that begin again in each document: no document has one above twice the number of its tokens."""
    first: dict[str, str] = {}
    shared, counted, beyond = False, "", False
    for section in sections:
        (draft,) = section.drafts
        for chain in dict.fromkeys(chain for _, _, chain in sorted(draft.mentions)):
            number = _COUNTED_NAME.fullmatch(chain)
            beyond |= bool(number and int(number[1]) > 2 * len(draft.tokens))
            if (other := first.setdefault(chain, draft.id)) != draft.id:
                shared = True
                if number and not counted:
                    counted, place = f"{chain} is in {other} and in {draft.id}", section
    if counted and not beyond:
        what = f"chain {counted}, and nothing says whether it is the same one"
        remedy = "set chains: it is one chain within a document, topic or corpus"
        raise DataError(place.path, what, remedy, line=place.line, field="chains")
    return shared


_WITHIN = {
    "document": "a document",
    "section": "a section that begins with #begin document",
    "topic": "a topic",
    "corpus": "the corpus",
}


def _set_chains(sections: Sequence[_Section], chains: Chains) -> str:
    """Set the topic and sub-topic of each document ("" if not known yet) and the scope of its chains ("" for
    the topic); return in words what was taken. Raises DataError if `chains` must say it."""
    in_parts = any(section.part for section in sections)
    seen: Counter[str] = Counter()
    by_way: dict[str, list[_Section]] = {}
    for section in sections:
        seen[section.name] += 1
        again = f" at line {section.line} of {section.path.name}" if seen[section.name] > 1 else ""
        # A section of one document may have its name in another form, "corpus/36_1.xml"; else it is a topic.
        one = len(section.drafts) == 1 and section.drafts[0].id.removesuffix(section.part) in section.name
        way = chains
        if chains == "auto":
            alone = "document" if section.is_shared_task or in_parts else "topic"
            way = alone if one else "section"
        by_way.setdefault(way, []).append(section)
        for draft in section.drafts:
            above = draft.id.split("/")[:-1]
            draft.chains = {"section": section.name + again, "corpus": "corpus"}.get(way, "")
            if way == "document":
                draft.topic = draft.subtopic = draft.chains = draft.id
            elif draft.topic:
                draft.subtopic = draft.subtopic or draft.topic
            elif not one:
                draft.topic = draft.subtopic = section.name
            else:
                draft.topic, draft.subtopic = "/".join(above[:1]), "/".join(above[:2])
    shared = chains != "auto" or _have_shared_chains(by_way.get("topic", []))
    within = [_WITHIN[way] for way in by_way if way != "topic" or shared]
    note = f"equal names are one chain within {' or '.join(within)}" if within else ""
    return note or "no chain is in two documents"
