"""Coreference data in the JSON files of Cattan et al.'s code and in CoNLL-2012, which the scorers read."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field

from cdlm_lab.data import coreference, files, records, splits
from cdlm_lab.data.convert.conll_layout import COLUMN, NUMBER, PIECE, Layout, cells_of, layout_of
from cdlm_lab.data.files import DataError, FieldFault, JsonRecord
from cdlm_lab.data.records import CoreferenceDocument, CoreferenceMention, Kind, PassedOver, TokenSpan, Topic
from cdlm_lab.errors import check_choice

_ECB_NAME = re.compile(r"\d+_\d+(ecb|ecbplus)")


def _number(value: object) -> object:
    """A whole number from 0, given as a number or a string of digits. Raises FieldFault for anything else."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        return int(value)
    if type(value) is not int or value < 0:
        raise FieldFault(f"{value!r} is not a whole number from 0", "write it as 3")
    return value


_Number = Annotated[int, BeforeValidator(_number)]
_NotEmpty = Annotated[files.Name, Field(min_length=1)]
# sentence, token id, text, validated
_Document = dict[str, list[Annotated[tuple[_Number, _Number, files.Text, bool], files.FROM_LIST]]]


class _Mention(files.Fields):
    doc_id: files.Text
    tokens_ids: list[_Number] = Field(default_factory=list)
    m_id: _NotEmpty | None = Field(None, description='write it as "m_id": 7')
    cluster_id: _NotEmpty = Field(description='write it as "cluster_id": 7')
    topic: _NotEmpty | None = Field(None, description='write it as "topic": 7')


@dataclass(slots=True, kw_only=True)
class _Text:
    """A document that is being read. `places`: token id -> (sentence, position), None for a token without
    text; `mentions`: id -> (span, kind, cluster)."""

    tokens: list[str] = field(default_factory=list)
    sentences: list[TokenSpan] = field(default_factory=list)
    validated: set[int] = field(default_factory=set)
    places: dict[int, tuple[int, int] | None] = field(default_factory=dict)
    topic: str = ""
    mentions: dict[str, tuple[TokenSpan, Kind, str]] = field(default_factory=dict)


def read_coreference_json(
    folder: str | Path,
    split: str,
    *,
    kinds: Sequence[Kind] = records.KINDS,
    passed_over: PassedOver | None = None,
) -> list[Topic]:
    """Read the topics of a split, ordered by first document, in the format of `cross_encoder` and `coref` of
    Cattan et al.: a folder with

        {split}.json            document id -> [[sentence id, token id, text, validated], ...]
        {split}_events.json     [{"doc_id", "m_id", "tokens_ids": [token id], "cluster_id", "topic"}, ...]
        {split}_entities.json   the same for entities

    ".xml" is removed from ids; a mention with no `m_id`, or a repeated one, gets a number as id. The topic of
    a document is that of its mentions. If they have none, it is the document's id up to the first "_", if
    that is the topic of another document or the id is one of ECB+ (36_1ecb); else the name of the split. If
    no mention at all has a topic, the first parts of ids are topics if any two documents share one. The
    sub-topic is "36_ecb" for an id of ECB+, else the topic. A mention of separate tokens becomes the span
    from first to last; sentences that it crosses are joined.

    Only files of `kinds` are read. `passed_over` counts mentions that cannot be used; None = raise DataError.
    """
    kinds = tuple(dict.fromkeys(kinds))
    if not kinds or not set(kinds) <= set(records.KINDS):
        raise ValueError(f"kinds is {kinds}; choose from {', '.join(records.KINDS)}")
    path = Path(folder) / f"{split}.json"
    texts = _read_texts(path)
    for kind in kinds:
        file = mention_file(folder, split, kind)
        if not file.is_file():
            remedy = f"copy it there, or leave its kind out of kinds, which is {kinds}"
            raise DataError(file, "there is no such file", remedy)
        for record in files.read_json_list(file):
            try:
                _add_mention(record.checked(_Mention), kind, texts, passed_over)
            except DataError as error:
                name = error.field.rpartition("].")[2].partition("[")[0]
                if passed_over is None or name in ("", "topic"):
                    raise
                passed_over.add(f"{kind} mention whose {name} means nothing", f"{error.path}:{error.line}")
    if not any(text.mentions for text in texts.values()):
        what, remedy = f"no mention of kind {' or '.join(kinds)}", "annotate some, or take the split out"
        raise DataError(path, what, remedy, field="mentions")
    try:
        return _topics(texts, split)
    except ValueError as error:
        also = 'where events and entities share numbers, read one kind: kinds=("event",)'
        raise DataError(path, str(error), f"correct the mention; {also}", field="mentions") from None


def mention_file(folder: str | Path, split: str, kind: Kind) -> Path:
    """The file of a split's mentions of a kind, existing or not."""
    return Path(folder) / f"{split}_{'events' if kind == 'event' else 'entities'}.json"


def _read_texts(path: Path) -> dict[str, _Text]:
    source, value = files.read_json(path)
    if not isinstance(value, dict):
        what, remedy = f"{files.kind_of(value)} where an object belongs", "write it as {document: [tokens]}"
        raise DataError(path, what, remedy)
    if not value:
        raise DataError(path, "no documents", "add some, or take the split out")
    texts: dict[str, _Text] = {}
    line, place, start = 1, 0, 0
    for name, rows in value.items():
        if start >= 0:  # a key with other escapes is not found; then stop, as each search reads to the end
            start = source.find(json.dumps(name, ensure_ascii=source.isascii()), place)
            line, place = line + source.count("\n", place, max(place, start)), max(place, start)
        record = JsonRecord(path=path, line=line, fields={name: rows})
        record = record.checked(_Document, remedy='write it as [sentence, token id, "text", true]')
        if name.removesuffix(".xml") in texts:
            raise record.error(name, "two documents of this name", "name them apart, without .xml")
        texts[name.removesuffix(".xml")] = _text(record, name)
    return texts


def _text(record: JsonRecord[_Document], name: str) -> _Text:
    text, last = _Text(), -1
    for number, (sentence, identifier, word, validated) in enumerate(record.fields[name]):
        where = f"{name}[{number}]"
        if identifier in text.places:
            raise record.error(where, f"a second token {identifier}", "number the tokens of a document apart")
        if text.tokens and sentence < last:
            raise record.error(where, f"sentence {sentence} after {last}", "put the tokens in order")
        text.places[identifier] = None
        if not word.strip():
            continue
        if not text.tokens or sentence > last:
            text.sentences.append((len(text.tokens), 0))
        last, index = sentence, len(text.sentences) - 1
        text.places[identifier] = (index, len(text.tokens))
        text.tokens.append(word.strip())
        text.sentences[index] = (text.sentences[index][0], len(text.tokens))
        if validated:
            text.validated.add(index)
    if not text.tokens:
        raise record.error(name, "the document has no text", "leave it out")
    return text


def _add_mention(
    record: JsonRecord[_Mention], kind: Kind, texts: Mapping[str, _Text], passed_over: PassedOver | None
) -> None:
    fields, places = record.fields, []
    name = fields.doc_id.removesuffix(".xml")
    if name not in texts:
        raise record.error("doc_id", f"there is no document {name}", "name one of the documents of the split")
    text = texts[name]
    for number, identifier in enumerate(fields.tokens_ids):
        if (place := text.places.get(identifier)) is None:
            what = f"the document {name} has no token {identifier} with text"
            raise record.error(f"tokens_ids[{number}]", what, "name tokens of the document by their id")
        places.append(place)
    if not places or max(places)[0] - min(places)[0] > 1:
        what = "tokens of three sentences or more" if places else "no tokens"
        raise record.error("tokens_ids", what, "name tokens of one sentence")
    if fields.topic and text.topic not in ("", fields.topic):
        what = f"{fields.topic}, but {text.topic} in another mention of {name}"
        raise record.error("topic", what, "give all mentions of a document one topic")
    text.topic = fields.topic or text.topic
    (first, start), (last, end) = min(places), max(places)
    if first < last and passed_over is not None:
        passed_over.add("mention across two sentences, which were joined", f"{record.path}:{record.line}")
    identifier = fields.m_id
    if not identifier or identifier in text.mentions:
        identifier = f"number {len(text.mentions)}"
    text.mentions[identifier] = ((start, end + 1), kind, fields.cluster_id)


def _topics(texts: Mapping[str, _Text], split: str) -> list[Topic]:
    known = {text.topic for text in texts.values() if text.topic}
    by_name = coreference.topics_by_name(texts, otherwise=split)
    documents: dict[str, list[CoreferenceDocument]] = {}
    for name, text in texts.items():
        ecb, start = _ECB_NAME.fullmatch(name), name.partition("_")[0]
        guess = (start if start in known or ecb else split) if known else by_name[name]
        topic = text.topic or guess
        document = coreference.document_of_spans(
            [(f"{name}:{identifier}", *mention) for identifier, mention in text.mentions.items()],
            id=name,
            topic=topic,
            subtopic=f"{topic}_{ecb[1]}" if ecb else topic,
            tokens=text.tokens,
            sentences=text.sentences,
            validated=text.validated,
        )
        documents.setdefault(topic, []).append(document)
    return [Topic(id=topic, documents=tuple(members)) for topic, members in documents.items()]


# ---- CoNLL: written ----


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
    documents = [document for topic in topics for document in topic.documents]
    by_id = {document.id: document for document in documents}
    if len(by_id) < len(documents) or not documents:
        raise ValueError("two documents of one id, or none at all; give each topic once")
    named = _by_document(clusters, by_id)
    numbers: dict[str, int] = {}
    rows = [row for one in documents for row in _rows(one, named.get(one.id, []), numbers)]
    with files.replaced_file(Path(path)) as file:
        file.writelines(["#begin document (corpus); part 000\n", *rows, "#end document\n"])


def _by_document(
    clusters: Mapping[str, Iterable[CoreferenceMention]], documents: Mapping[str, CoreferenceDocument]
) -> dict[str, list[tuple[CoreferenceMention, str]]]:
    """Document -> its (mention, name of cluster), by start and, for equal starts, longest first."""
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
                raise ValueError(f"{both} {what}; CoNLL cannot say so")
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
    head = f"{_plain(document.id, 'document')}\t{_plain(document.subtopic, 'sub-topic')}"
    for start, end in document.sentences:
        for position in range(start, end):
            pieces = starts.get(position, []) + ends.get(position, [])
            word = _plain(document.tokens[position], f"token {position} of document {document.id}")
            yield f"{head}\t{position - start}\t{word}\t{'|'.join(pieces) or '-'}\n"
        yield "\n"


def _plain(text: str, what: str) -> str:
    if not text or set(text) & set("\t\r\n") or (what == "document" and text.startswith("#")):
        raise ValueError(f"{what} {text!r} cannot stand in a CoNLL file: empty, a tab, a line break or a #")
    return text


# ---- CoNLL: read ----

Chains = Literal["auto", "document", "topic", "corpus"]
_BEGIN, _END = re.compile(r"#\s*begin document\s*(.*)"), re.compile(r"#\s*end document")
_PART = re.compile(r"\s*(?:part\s+([0-9]{1,9}))?\s*")
_COUNTED_NAME = re.compile(r"[^\W\d]*[-_.:#]?([0-9]{1,9})")  # of a chain: 12, E12, T_3
_SHARED_TASK = 10  # rows of at least so many columns are of shared tasks, whose chains end with the document
_MOST_SENTENCES = 2  # most sentences that a mention may span
_OTHERS: dict[Kind, set[str]] = {"event": {"entity", "entities"}, "entity": {"event", "events"}}


@dataclass(slots=True, kw_only=True)
class _Draft:
    """A document that is being read.

    `topic`, `subtopic`: from its rows, or ""; `chains`: scope in which equal names mean the same chain;
    `mark`, `number`: id of the current sentence, and number of the latest token, in the rows; `still_open`:
    chain -> (first token, line) of mentions that have not ended yet; `mentions`: (start, end, chain).
    """

    id: str
    topic: str = ""
    subtopic: str = ""
    chains: str = ""
    tokens: list[str] = field(default_factory=list)
    sentences: list[TokenSpan] = field(default_factory=list)
    mark: str = ""
    number: int = -1
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


class _Section:
    """The rows between "#begin document" and "#end document". `names`: ids of documents read so far."""

    def __init__(
        self,
        path: Path,
        line: int,
        header: str,
        layout: Layout,
        names: set[str],
        passed_over: PassedOver,
    ) -> None:
        before, semicolon, after = header.rpartition(";")
        match = _PART.fullmatch(after) if semicolon else None
        name = (before if match else header).strip()
        name = name[1:-1].strip() if name.startswith("(") and name.endswith(")") else name
        self.part = f"/{int(match[1])}" if match and int(match[1] or 0) else ""
        self.name = name + self.part
        self.path, self.line, self.names, self.passed_over = path, line, names, passed_over
        self.layout = layout
        self.drafts: list[_Draft] = []
        self.is_shared_task = False  # whether all its chains end with the document
        self.has_end = False
        if not name:
            remedy = "write #begin document (name); part 000"
            raise DataError(path, "a document without a name", remedy, line=line, field="#begin")

    def count(self, reason: str, line: int) -> None:
        """Count something that cannot be used, with its line."""
        self.passed_over.add(reason, f"{self.path}:{line}")

    def add(self, text: str, line: int) -> None:
        """Read a line: the row of a token, or a blank line, which ends the sentence."""
        if not text.strip():
            if self.drafts:
                self.drafts[-1].end_sentence()
        elif text.startswith("#"):
            self.count("line that starts with #", line)
        elif len(cells := self._columns(text, line)) > 1:
            self._add_row(cells, line)

    def _columns(self, text: str, line: int) -> list[str]:
        """The columns of a row, the last of mentions; [] if it has none that can be used."""
        layout = self.layout
        cells = cells_of(text, layout.tabs)
        cells = cells[: len(cells) - layout.spare]
        while len(cells) > layout.width and not cells[-1].strip():
            cells.pop()
        if len(cells) < 2:
            self.count("row of one column", line)
            return []
        least = 2 if layout.word is None else layout.word + 2
        if len(cells) + 1 == least and not PIECE.search(cells[-1]):
            cells.append("")
        if len(cells) < least:
            self.count(f"row of {len(cells)} columns, where most have {layout.width}", line)
            return []
        if len(cells) > layout.width and layout.width < _SHARED_TASK:
            self.count(f"row of more than {layout.width} columns, read by its first and last ones", line)
        self.is_shared_task |= len(cells) >= _SHARED_TASK
        return cells

    def _add_row(self, cells: Sequence[str], line: int) -> None:
        layout, mentions = self.layout, cells[-1].strip()
        word = "_" if layout.word is None else cells[layout.word]
        name, topic, subtopic, sentence = cells[0] + self.part, "", "", ""
        if layout.first == "topic":
            topic, subtopic, name, sentence = cells[0], cells[1], cells[2] + self.part, cells[3]
        elif layout.first in ("number", "word"):
            name = self.name
        if layout.first == "number" and not NUMBER.fullmatch(cells[0].strip()):
            self.count("row whose column 1 is no whole number", line)
            return
        if not name.strip() or not word.strip():
            self.count("row with an empty cell", line)
            return
        draft = self._draft(name, line)
        draft.topic, draft.subtopic = topic, subtopic
        number = int(cells[0]) if layout.first == "number" else draft.number + 1
        if sentence != draft.mark or number <= draft.number:
            draft.end_sentence()
        draft.mark, draft.number = sentence, number
        draft.tokens.append(word)
        if layout.word is None:
            self.count('row without a word, which is read as "_"', line)
        if COLUMN.fullmatch(mentions):
            self._add_mentions(draft, mentions, line)
        else:
            self.count(
                "last column that holds no mentions" if mentions else "row without mentions or -", line
            )

    def _draft(self, name: str, line: int) -> _Draft:
        if not self.drafts or self.drafts[-1].id != name:
            self.end()
            if name in self.names:
                what, remedy = f"{name} comes a second time", "keep the lines of a document together"
                raise DataError(self.path, what, remedy, line=line, field="document")
            self.names.add(name)
            self.drafts.append(_Draft(id=name))
        return self.drafts[-1]

    def _add_mentions(self, draft: _Draft, cell: str, line: int) -> None:
        """As scorers do, read mentions of one token, then starts, then ends, which close the latest start."""
        last = len(draft.tokens) - 1
        pieces = PIECE.findall(cell)
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
                self.count("end of a mention that does not start", line)

    def _add_mention(self, draft: _Draft, start: int, chain: str, line: int) -> None:
        end = len(draft.tokens)
        sentences = 1 + sum(start < border < end for _, border in draft.sentences[-_MOST_SENTENCES:])
        if (start, end, chain) in draft.mentions:
            self.count("mention that is there already, in the same chain", line)
        elif sentences > _MOST_SENTENCES:
            self.count("mention across three sentences or more", line)
        else:
            draft.mentions.add((start, end, chain))
            if sentences > 1:
                self.count("mention across two sentences, which were joined", line)

    def is_filled(self) -> bool:
        """Finish the section, and count what it lacks; False if it has no tokens."""
        if not self.has_end:
            self.count("section without #end document", self.line)
        if not self.drafts:
            self.count("section without tokens", self.line)
        self.end()
        return bool(self.drafts)

    def end(self) -> None:
        """Finish the latest document; its mentions that are still open are dropped and counted."""
        if self.drafts:
            self.drafts[-1].end_sentence()
            for _, line in (start for starts in self.drafts[-1].still_open.values() for start in starts):
                self.count("mention that does not end", line)


def _read_sections(path: Path, passed_over: PassedOver) -> Iterator[_Section]:
    """Yield each section when all of it has been read. Rows outside sections form one that is named after the
    file; a section without end reaches to the next one."""
    section: _Section | None = None
    names: set[str] = set()
    layout = layout_of(path)
    for line, text in files.read_lines(path):
        begin, end = _BEGIN.match(text), _END.match(text)
        if begin or end:
            if section:
                section.has_end |= bool(end)
                yield section
            section = _Section(path, line, begin[1].strip(), layout, names, passed_over) if begin else None
            continue
        if not section:
            if not text.strip() or text.startswith("#"):
                continue
            passed_over.add("rows without #begin document, which are one document", f"{path}:{line}")
            section = _Section(path, line, path.name.partition(".")[0], layout, names, passed_over)
            section.has_end = True
        section.add(text, line)
    if section:
        yield section


def read_conll_corpus(
    paths: Sequence[str | Path], *, kind: Kind, name: str, passed_over: PassedOver, chains: Chains = "auto"
) -> list[Topic]:
    """Read the topics of a cross-document corpus, whether "#begin document" in its files marks the corpus, a
    topic, or a document; mentions and rows that cannot be used are counted in `passed_over`.

    Reads the files of `write_conll`, CoNLL-2012 files (a part other than 0 is added to the names, as in
    "bc/cctv_0001/2"), rows that begin with the number of the token and its word (SemEval-2010, GUM), rows of
    a word and mentions, and the eight columns of Cattan et al.'s code (topic, sub-topic, document, sentence,
    token, word, flag, mentions). Columns are separated by tabs, or by spaces if most rows have no tab. Files
    without words, of document and mentions, have "_" for each, which is counted. All sentences count as
    validated; sentences that a mention crosses are joined. `paths`: the files of one split; a document that
    is in two of them is used once. `kind`: of all mentions.

    The topic of a document is the first of these that exists: the topic in its rows (eight columns); the name
    of its section, if that holds several documents or is named differently; the parts of its name before the
    last "/" (0/221/0_news_119: 0, and 0/221); its name up to the first "_", if two share it; else `name`.

    `chains`: within what equal names of chains mean the same chain: a document, which is then a topic of its
    own, a topic or the corpus. "auto": within a section that holds several documents or is named otherwise;
    within the document in files of shared tasks (ten or more columns, or parts); else within the topic, but a
    DataError asks for it if a name is in two documents and can be a number that begins again in each.
    """
    for parameter, value, known in (("kind", kind, records.KINDS), ("chains", chains, get_args(Chains))):
        check_choice(parameter, value, known)
    sections = [one for path in paths for one in _read_sections(Path(path), passed_over) if one.is_filled()]
    drafts: dict[str, _Draft] = {}
    for one, draft in ((section, draft) for section in sections for draft in section.drafts):
        if drafts.setdefault(draft.id, draft) is not draft:
            one.count("document that was read already", one.line)
    if not any(draft.mentions for draft in drafts.values()):
        first = next(iter(passed_over.counts.items()), None)
        what = f"no mention in {len(drafts)} documents" + (f" ({first[0]} at {first[1][1]})" if first else "")
        raise DataError(paths[0], what, 'write them in the last column, as (1), (1 and 1); "-" is none')
    passed_over.notes.append(_set_chains(sections, chains))
    named = coreference.topics_by_name([one.id for one in drafts.values() if not one.topic], otherwise=name)
    topics: dict[str, list[CoreferenceDocument]] = {}
    reach: dict[str, set[str]] = {}  # name of a chain -> topics, of documents whose chains end with these
    for draft in drafts.values():
        draft.topic = draft.topic or named[draft.id]
        draft.subtopic = draft.subtopic or draft.topic
        for _, _, chain in draft.mentions if not draft.chains else ():
            reach.setdefault(chain, set()).add(draft.topic)
        draft.chains = draft.chains or draft.topic
        topics.setdefault(draft.topic, []).append(draft.document(kind))
    for chain in (chain for chain, its_topics in reach.items() if chains == "auto" and len(its_topics) > 1):
        passed_over.add(
            "chain in two topics, which was taken apart; chains = corpus keeps it", f"chain {chain}"
        )
    return [Topic(id=topic, documents=tuple(members)) for topic, members in topics.items()]


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


def find_conll(corpus: str | Path, kind: Kind, *, hidden: bool = False) -> dict[str, list[Path]]:
    """The CoNLL files of a corpus, by split: train, dev, test, or "" for files whose split no name tells.

    The split is named by a folder or by the start or end of a file name ("val/topic_3.conll",
    "dev_events_topic_level.conll", "key-test.conll"); a CoNLL file ends in `.conll` or `_conll`. Files named
    for the other kind of mentions are left out. `hidden`: True = instead those that are not to be read, since
    their name or a folder begins with a dot, as of copies that editors leave.
    """
    corpus = Path(corpus)
    top = corpus.parent if corpus.is_file() else corpus
    by_split: dict[str, list[Path]] = {}
    for path in [corpus] if corpus.is_file() else sorted(corpus.rglob("*conll*")):
        *folders, name = path.relative_to(top).parts
        words = re.findall(r"[a-z]+", files.plain_name(name).lower())
        is_conll = path.is_file() and files.plain_name(name).endswith((".conll", "_conll"))
        if not is_conll or _OTHERS[kind] & {*folders, *words}:
            continue
        if hidden != (path != corpus and files.is_hidden(path, top)):
            continue
        places = [*folders, *words[:1], *words[-2:-1]]  # the last word is conll
        split = next((splits.SPLIT_NAMES[place] for place in places if place in splits.SPLIT_NAMES), "")
        by_split.setdefault("dev" if split == "validation" else split, []).append(path)
    return by_split
