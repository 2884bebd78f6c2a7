"""Coreference data in the JSON files of the paper's code, and in CoNLL-2012, which the scorers read."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import BeforeValidator, Field

from cdlm_lab.data.files import (
    FROM_LIST,
    DataError,
    FieldFault,
    Fields,
    JsonRecord,
    Name,
    Text,
    kind_of,
    plain_name,
    read_json,
    read_json_list,
    read_lines,
    replaced_file,
)
from cdlm_lab.data.records import (
    KINDS,
    SPLIT_NAMES,
    CoreferenceDocument,
    CoreferenceMention,
    Kind,
    PassedOver,
    TokenSpan,
    Topic,
    check_kind,
    check_mention,
    document_of_spans,
    topics_by_name,
)

_FILES: dict[Kind, str] = {"event": "events", "entity": "entities"}
_ECB_NAME = re.compile(r"\d+_\d+(ecb|ecbplus)")


def _number(value: object) -> object:
    """A number from 0, written as such or in quotes."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        return int(value)
    if type(value) is not int or value < 0:
        raise FieldFault(f"{value!r} is not a whole number from 0", "write it as 3")
    return value


_Number = Annotated[int, BeforeValidator(_number)]
_NotEmpty = Annotated[Name, Field(min_length=1)]
# sentence, token id, text, validated
_Document = dict[str, list[Annotated[tuple[_Number, _Number, Text, bool], FROM_LIST]]]


class _Record(Fields):
    doc_id: Text
    tokens_ids: list[_Number] = Field(default_factory=list)
    m_id: _NotEmpty | None = Field(None, description='write it as "m_id": 7')
    cluster_id: _NotEmpty = Field(description='write it as "cluster_id": 7')
    topic: _NotEmpty | None = Field(None, description='write it as "topic": 7')


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """Tokens of a document; `places`: token id -> (sentence, position), None for a token without text."""

    tokens: tuple[str, ...]
    sentences: tuple[TokenSpan, ...]
    validated: tuple[int, ...]
    places: dict[int, tuple[int, int] | None]


class _Mention(NamedTuple):
    """A mention whose sentence is not known yet."""

    document: str
    tokens: TokenSpan
    kind: Kind
    cluster: str


def read_coreference_json(
    folder: str | Path, split: str, *, kinds: Sequence[Kind] = KINDS, passed_over: PassedOver | None = None
) -> Iterator[Topic]:
    """The topics of a split, in order of their first document, in the format of `cross_encoder` and `coref`
    of Cattan et al.: a folder with

        {split}.json            document id -> [[sentence id, token id, text, validated], ...]
        {split}_events.json     [{"doc_id", "m_id", "tokens_ids": [token id], "cluster_id", "topic"}, ...]
        {split}_entities.json   the same for entities

    Ids lose their ".xml"; a mention without `m_id`, or with one that was there before, is numbered. The topic
    of a document is that of its mentions. If they have none, it is its id up to the first "_", where that is
    the topic of another document or the id one of ECB+ (36_1ecb); else they are of one topic, named as the
    split. (Where no mention has a topic: `topics_by_name`.) The sub-topic is "36_ecb" if the id is of ECB+,
    else the topic. A mention of separate tokens becomes the span from the first to the last; two sentences
    with a mention across them are one.

    `split` is the first part of the files' names, usually train, dev or test. Of other `kinds` the files may
    be missing. `passed_over` counts the mentions that cannot be used (without a cluster, of missing tokens or
    documents, across three sentences); None = they are refused.
    """
    if not kinds or not set(kinds) <= set(KINDS):
        raise ValueError(f"kinds is {tuple(kinds)}; choose from {', '.join(KINDS)}")
    return _read_topics(Path(folder), split, tuple(dict.fromkeys(kinds)), passed_over)


def has_mentions(folder: str | Path, split: str, kind: Kind) -> bool:
    """Whether the file with the mentions of a kind is there."""
    return (Path(folder) / f"{split}_{_FILES[kind]}.json").is_file()


def _read_topics(
    folder: Path, split: str, kinds: tuple[Kind, ...], passed_over: PassedOver | None
) -> Iterator[Topic]:
    path = folder / f"{split}.json"
    texts = _read_texts(path)
    topics: dict[str, str] = {}
    mentions: dict[str, dict[str, _Mention]] = {name: {} for name in texts}
    for kind in kinds:
        file = folder / f"{split}_{_FILES[kind]}.json"
        if not file.is_file():
            remedy = f"copy it there, or leave its kind out of kinds, which is {kinds}"
            raise DataError(file, "there is no such file", remedy)
        for raw in read_json_list(file):
            try:
                record = raw.checked(_Record)
                mention = _mention(record, texts, kind)
            except DataError as error:
                name = error.field.rpartition("].")[2].partition("[")[0]
                if passed_over is None or name in ("", "topic"):
                    raise
                passed_over.add(f"{kind} mention whose {name} means nothing", f"{error.path}:{error.line}")
                continue
            document, topic = mention.document, record.fields.topic
            if topic and topics.setdefault(document, topic) != topic:
                what = f"{topic}, but {topics[document]} in another mention of {document}"
                raise record.error("topic", what, "give all mentions of a document one topic")
            start, end = mention.tokens
            if passed_over is not None and any(start < stop < end for _, stop in texts[document].sentences):
                place = f"{record.path}:{record.line}"
                passed_over.add("mention across two sentences, which were joined", place)
            others, name = mentions[document], record.fields.m_id
            others[name if name and name not in others else f"number {len(others)}"] = mention
    if not any(mentions.values()):
        remedy = "annotate some, or take the split out"
        raise DataError(path, f"no mention of kind {' or '.join(kinds)}", remedy, field="mentions")
    documents: dict[str, list[CoreferenceDocument]] = {}
    try:
        for name, topic in _topic_of_each(texts, topics, split).items():
            documents.setdefault(topic, []).append(_document(name, topic, texts[name], mentions[name]))
        result = [Topic(id=topic, documents=tuple(members)) for topic, members in documents.items()]
    except ValueError as error:
        also = 'where events and entities share numbers, read one kind: kinds=("event",)'
        raise DataError(path, str(error), f"correct the mention; {also}", field="mentions") from None
    yield from result


def _topic_of_each(names: Collection[str], known: Mapping[str, str], split: str) -> dict[str, str]:
    """Document -> topic, also for those whose mentions have none."""
    if not known:
        return topics_by_name(names, otherwise=split)
    topics, starts = set(known.values()), {name: name.partition("_")[0] for name in names}
    return {
        name: known.get(name) or (start if start in topics or _ECB_NAME.fullmatch(name) else split)
        for name, start in starts.items()
    }


def _document(name: str, topic: str, text: _Text, mentions: Mapping[str, _Mention]) -> CoreferenceDocument:
    match = _ECB_NAME.fullmatch(name)
    return document_of_spans(
        [(f"{name}:{one}", found.tokens, found.kind, found.cluster) for one, found in mentions.items()],
        id=name,
        topic=topic,
        subtopic=f"{topic}_{match[1]}" if match else topic,
        tokens=text.tokens,
        sentences=text.sentences,
        validated=text.validated,
    )


def _read_texts(path: Path) -> dict[str, _Text]:
    source, value = read_json(path)
    if not isinstance(value, dict):
        what = f"{kind_of(value)} where an object belongs"
        raise DataError(path, what, "write it as {document: [tokens]}", field="file")
    if not value:
        raise DataError(path, "no documents", "add some, or take the split out", field="file")
    texts: dict[str, _Text] = {}
    line, place, start = 1, 0, 0
    for name, rows in value.items():
        if start >= 0:  # one that is written in another way is searched for to the end, but no second one
            start = source.find(json.dumps(name, ensure_ascii=source.isascii()), place)
            line, place = line + source.count("\n", place, max(place, start)), max(place, start)
        record = JsonRecord(path=path, line=line, fields={name: rows})
        record = record.checked(_Document, remedy='write it as [sentence, token id, "text", true]')
        if name.removesuffix(".xml") in texts:
            raise record.error(name, "two documents of this name", "name them apart, without .xml")
        texts[name.removesuffix(".xml")] = _text(record, name)
    return texts


def _text(record: JsonRecord[_Document], name: str) -> _Text:
    tokens: list[str] = []
    sentences: dict[int, TokenSpan] = {}
    validated: dict[int, None] = {}
    places: dict[int, tuple[int, int] | None] = {}
    for number, (sentence, identifier, word, flag) in enumerate(record.fields[name]):
        where = f"{name}[{number}]"
        if identifier in places:
            raise record.error(where, f"a second token {identifier}", "number the tokens of a document apart")
        if sentences and sentence < max(sentences):
            what = f"sentence {sentence} after {max(sentences)}"
            raise record.error(where, what, "put the tokens in order")
        if not word.strip():
            places[identifier] = None
            continue
        start, _ = sentences.setdefault(sentence, (len(tokens), 0))
        places[identifier] = (len(sentences) - 1, len(tokens))
        tokens.append(word.strip())
        sentences[sentence] = (start, len(tokens))
        if flag:
            validated[len(sentences) - 1] = None
    if not tokens:
        raise record.error(name, "the document has no text", "leave it out")
    return _Text(
        tokens=tuple(tokens), sentences=tuple(sentences.values()), validated=tuple(validated), places=places
    )


def _mention(record: JsonRecord[_Record], texts: dict[str, _Text], kind: Kind) -> _Mention:
    name = record.fields.doc_id.removesuffix(".xml")
    if name not in texts:
        raise record.error("doc_id", f"there is no document {name}", "name one of the documents of the split")
    places = []
    for number, identifier in enumerate(record.fields.tokens_ids):
        place = texts[name].places.get(identifier)
        if place is None:
            what = f"the document {name} has no token {identifier} with text"
            raise record.error(f"tokens_ids[{number}]", what, "name tokens of the document by their id")
        places.append(place)
    sentences = {sentence for sentence, _ in places}
    if not places or max(sentences) - min(sentences) > 1:
        what = "tokens of three sentences or more" if places else "no tokens"
        raise record.error("tokens_ids", what, "name tokens of one sentence")
    positions = [position for _, position in places]
    return _Mention(name, (min(positions), max(positions) + 1), kind, record.fields.cluster_id)


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

    `topic`, `subtopic`: from its rows, or ""; `chains`: the scope in which names of chains mean the same;
    `still_open`: chain -> (first token, line) of mentions to be ended; `mentions`: (start, end, chain);
    `mark`: the sentence as its rows name it.
    """

    id: str
    topic: str = ""
    subtopic: str = ""
    chains: str = ""
    tokens: list[str] = field(default_factory=list)
    sentences: list[TokenSpan] = field(default_factory=list)
    mark: str = ""
    still_open: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    mentions: set[tuple[int, int, str]] = field(default_factory=set)

    def record(self, kind: Kind) -> CoreferenceDocument:
        """The finished document."""
        return document_of_spans(
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


class ConllSection:
    """The rows between "#begin document" and "#end document".

    `names`: of the documents of the file so far. `passed_over` counts what cannot be used; None = it is
    refused. `is_marked`: False = there was no #begin.
    """

    def __init__(
        self,
        path: Path,
        line: int,
        name: str,
        names: set[str],
        passed_over: PassedOver | None,
        *,
        is_marked: bool = True,
    ) -> None:
        header = _HEADER.fullmatch(name)
        self.part = f"/{int(header[2])}" if header and int(header[2]) else ""
        self.name = (header[1] if header else name) + self.part
        self.path, self.line, self.names, self.passed_over = path, line, names, passed_over
        self.documents: list[ConllDraft] = []
        self.is_shared_task, self.is_marked = bool(self.part), is_marked
        if not self.name:
            remedy = "write #begin document (name); part 000"
            raise DataError(path, "a document without a name", remedy, line=line, field="#begin")

    def topic(self, kind: Kind) -> Topic:
        """All of it as one topic."""
        self.end()
        for one in self.documents:
            one.topic = one.subtopic = one.chains = self.name
        return Topic(id=self.name, documents=tuple(one.record(kind) for one in self.documents))

    def end(self) -> None:
        """No more rows. Raises DataError if there was no token; mentions that are open are passed over."""
        if not self.documents:
            what = f"{self.name} has no tokens"
            raise DataError(self.path, what, "remove it", line=self.line, field="#begin")
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
            remedy = "write at least a document and its mentions"
            self.pass_over("row of one column", "one column", remedy, line, "row")
            return
        name, word = cells[0], cells[_WORD] if len(cells) >= _FIVE else "_"
        topic, subtopic, sentence = "", "", ""
        if len(cells) == 8 and cells[6] in ("True", "False"):
            topic, subtopic, name, sentence, _, word = cells[:6]
        elif len(cells) >= _SHARED_TASK:
            self.is_shared_task = True
        if not name.strip() or not word.strip():
            remedy = "write a document and a word"
            self.pass_over("row with an empty cell", "an empty cell", remedy, line, "row")
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
                what, remedy = f"{name} comes a second time", "keep the lines of a document together"
                raise DataError(self.path, what, remedy, line=line, field="document")
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
            reason, remedy = "mention that is there already, in the same chain", "write it once"
            self.pass_over(reason, what, remedy, line, column)
        elif sentences > _MOST_SENTENCES:
            what, remedy = f"the mention of {chain} goes across three sentences", "end it in the first"
            self.pass_over("mention across three sentences or more", what, remedy, line, column)
        else:
            draft.mentions.add((start, end, chain))
            if sentences > 1 and self.passed_over is not None:
                self.passed_over.add("mention across two sentences, which were joined", f"{self.path}:{line}")

    def pass_over(self, reason: str, what: str, remedy: str, line: int, column: str) -> None:
        """Count it, or raise DataError where nothing counts."""
        if self.passed_over is None:
            raise DataError(self.path, what, remedy, line=line, field=column)
        self.passed_over.add(reason, f"{self.path}:{line}")

    def cut(self) -> None:
        """No #end: count it, or raise DataError where nothing counts."""
        if self.is_marked:
            what, remedy = f"{self.name} does not end", "write #end document"
            self.pass_over("section without #end document", what, remedy, self.line, "#begin")

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


Level = Literal["corpus", "topic", "document"]
LEVELS: tuple[Level, ...] = get_args(Level)
_BEGIN, _END = re.compile(r"#\s*begin document\s*(.*)"), re.compile(r"#\s*end document")
_OTHERS: dict[Kind, set[str]] = {"event": {"entity", "entities"}, "entity": {"event", "events"}}


def write_conll(
    path: str | Path,
    topics: Iterable[Topic],
    clusters: Mapping[str, Iterable[CoreferenceMention]],
    *,
    level: Level = "topic",
) -> dict[str, int]:
    """Write clusters over the documents of `topics`: a key (`gold_clusters`) or a system's response.

        #begin document (36); part 000
        36_1ecb<tab>36_ecb<tab>0<tab>Police<tab>(1)
        36_1ecb<tab>36_ecb<tab>1<tab>made<tab>(2
        36_1ecb<tab>36_ecb<tab>2<tab>arrests<tab>(3)|2)

        #end document

    A line is a token: document, sub-topic, number in the sentence, word and, last, the mentions that start
    and end at it; an empty line ends a sentence. Clusters go as far as the mark "document" and no further, so
    `level` chooses what is scored as one: the corpus, a topic, or a document. All sentences and singletons
    are written, so that key and response fit each other; the file is there whole or not at all.

    Returns the number that stands in the file for each name, from 1 in order of first appearance. Raises
    ValueError for mentions that do not fit the documents, are in two clusters, or cross or repeat each other
    in one, and for names or tokens with a tab or a line break.
    """
    if level not in LEVELS:
        raise ValueError(f"level is {level!r}; choose one of {', '.join(LEVELS)}")
    topics = list(topics)
    documents = {document.id: document for topic in topics for document in topic.documents}
    if len(documents) < sum(len(topic.documents) for topic in topics) or not documents:
        raise ValueError("two documents of one id, or none at all; give each topic once")
    names = _by_document(clusters, documents)
    numbers: dict[str, int] = {}
    lines: list[str] = []
    for name, section in _sections(topics, level):
        lines.append(f"#begin document ({_plain(name, 'name')}); part 000\n")
        for document in section:
            lines += _rows(document, names.get(document.id, []), numbers)
        lines.append("#end document\n")
    with replaced_file(Path(path)) as file:
        file.writelines(lines)
    return numbers


def _sections(topics: list[Topic], level: Level) -> list[tuple[str, Sequence[CoreferenceDocument]]]:
    documents = [document for topic in topics for document in topic.documents]
    if level == "corpus":
        return [("corpus", documents)]
    if level == "topic":
        return [(topic.id, topic.documents) for topic in topics]
    return [(document.id, [document]) for document in documents]


def _by_document(
    clusters: Mapping[str, Iterable[CoreferenceMention]], documents: Mapping[str, CoreferenceDocument]
) -> dict[str, list[tuple[CoreferenceMention, str]]]:
    """Document -> its mentions with the names of their clusters, checked."""
    members: dict[str, list[tuple[CoreferenceMention, str]]] = {}
    places: dict[str, str] = {}
    for name, mentions in clusters.items():
        for mention in mentions:
            if mention.document not in documents:
                raise ValueError(f"{mention.name}: the topics to be written have no such document")
            check_mention(mention, documents[mention.document])
            if mention.id in places:
                raise ValueError(f"{mention.name} is in the clusters {places[mention.id]} and {name}")
            places[mention.id] = name
            members.setdefault(mention.document, []).append((mention, name))
    for named in members.values():
        named.sort(key=lambda item: (item[0].tokens[0], -item[0].tokens[1]))
        _check_nesting(named)
    return members


def _check_nesting(named: list[tuple[CoreferenceMention, str]]) -> None:
    """Mentions of one cluster must be told apart by their brackets alone."""
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
    document: CoreferenceDocument, named: list[tuple[CoreferenceMention, str]], numbers: dict[str, int]
) -> Iterator[str]:
    """Lines of a document; `named` in order of start, the longer first. New names get their `numbers`."""
    before: dict[int, list[str]] = {}
    after: dict[int, list[str]] = {}
    for mention, name in named:
        number = numbers.setdefault(name, len(numbers) + 1)
        start, end = mention.tokens
        single = end == start + 1
        before.setdefault(start, []).append(f"({number})" if single else f"({number}")
        if not single:
            after.setdefault(end - 1, []).insert(0, f"{number})")
    head = f"{_plain(document.id, 'document')}\t{_plain(document.subtopic, 'sub-topic')}"
    for start, end in document.sentences:
        for position in range(start, end):
            pieces = before.get(position, []) + after.get(position, [])
            word = _plain(document.tokens[position], f"token {position} of document {document.id}")
            yield f"{head}\t{position - start}\t{word}\t{'|'.join(pieces) or '-'}\n"
        yield "\n"


def _plain(text: str, what: str) -> str:
    if not text or set(text) & set("\t\r\n") or (what == "document" and text.startswith("#")):
        raise ValueError(f"{what} {text!r} cannot stand in a CoNLL file: empty, a tab, a line break or a #")
    return text


def read_conll(path: str | Path, *, kind: Kind = "entity") -> Iterator[Topic]:
    """Topics of a CoNLL file, one for each "document" that it marks, one at a time.

    Reads what `write_conll` writes, CoNLL-2012 files (a part other than 0 is added to the names, as in
    "bc/cctv_0001/2"), files of two to four columns (words become "_"), and the eight columns of the paper's
    code (topic, sub-topic, document, sentence, token, word, flag, mentions). Documents are told apart by
    their column, and all their sentences count as validated; two sentences with a mention across them are
    one. A cluster is named by its topic and its number ("36:1"), as numbers mean nothing beyond it; the
    sub-topic is the topic. `kind` is that of the mentions; the format has none.
    """
    check_kind(kind)
    for section in _read_sections(Path(path), None):
        yield section.topic(kind)


def read_conll_corpus(
    files: Sequence[str | Path], *, kind: Kind, name: str, passed_over: PassedOver
) -> list[Topic]:
    """The topics of a cross-document corpus, whatever its files mark as a "document": the corpus, a topic, or
    a document; mentions and rows that cannot be used are counted in `passed_over`.

    The topic of a document is, whichever there is first: that of its rows (eight columns); the name of the
    section, if it holds several documents or has another name; the parts of its name before the last "/"
    ("0/221/0_news_119" is of topic 0 and sub-topic 0/221); its name up to the first "_", if that puts any two
    documents together; and else all are of one topic, `name`. Names of chains mean the same within a section
    of several documents; where each section is one document, within the topic; in rows of CoNLL-2012 (ten
    columns or more, or parts), which know no other documents, within the section alone, which is a topic.

    `files` are those of one split; a document that is in two of them counts once.
    """
    check_kind(kind)
    drafts: dict[str, ConllDraft] = {}
    sections: dict[str, int] = {}
    for file in files:
        for section in _read_sections(Path(file), passed_over):
            if not section.documents:
                passed_over.add("section without tokens", f"{file}:{section.line}")
                continue
            section.end()
            sections[section.name] = sections.get(section.name, 0) + 1
            _place(section, again=sections[section.name] > 1)
            for draft in section.documents:
                if drafts.setdefault(draft.id, draft) is not draft:
                    passed_over.add("document that was read already", f"{file}:{section.line}")
    if not any(draft.mentions for draft in drafts.values()):
        first = next(iter(passed_over.counts.items()), None)
        what = f"no mention in {len(drafts)} documents" + (f" ({first[0]} at {first[1][1]})" if first else "")
        raise DataError(files[0], what, 'write them in the last column, as (1), (1 and 1); "-" is none')
    named = topics_by_name([draft.id for draft in drafts.values() if not draft.topic], otherwise=name)
    topics: dict[str, list[CoreferenceDocument]] = {}
    for draft in drafts.values():
        draft.topic = draft.topic or named[draft.id]
        draft.subtopic, draft.chains = draft.subtopic or draft.topic, draft.chains or draft.topic
        topics.setdefault(draft.topic, []).append(draft.record(kind))
    return [Topic(id=topic, documents=tuple(members)) for topic, members in topics.items()]


def find_conll(corpus: str | Path, kind: Kind) -> dict[str, list[Path]]:
    """The CoNLL files of a corpus, by split: train, dev, test, or "" for files of which nothing names it.

    A folder with the name of a split, or a file name that begins or ends with one, names it
    ("val/topic_3.conll", "dev_events_topic_level.conll", "key-test.conll"); a CoNLL file ends in `.conll` or
    `_conll`. Files named for the other kind of mentions are left out.
    """
    corpus = Path(corpus)
    files = [corpus] if corpus.is_file() else sorted(corpus.rglob("*conll*"))
    by_split: dict[str, list[Path]] = {}
    for file in files:
        *folders, name = file.relative_to(corpus.parent if corpus.is_file() else corpus).parts
        words = re.findall(r"[a-z]+", plain_name(name).lower())
        is_conll = file.is_file() and plain_name(name).endswith((".conll", "_conll"))
        if not is_conll or _OTHERS[kind] & {*folders, *words}:
            continue
        places = [*folders, *words[:1], *words[-2:-1]]  # the last word is conll
        split = next((SPLIT_NAMES[place] for place in places if place in SPLIT_NAMES), "")
        by_split.setdefault("dev" if split == "validation" else split, []).append(file)
    return by_split


def _place(section: ConllSection, *, again: bool) -> None:
    """Give the documents topics and sub-topics ("" if nothing tells them yet), and the scope of their chains
    ("" for the topic). `again`: there was a section of this name before."""
    name = f"{section.name} at line {section.line} of {section.path.name}" if again else section.name
    several = len(section.documents) > 1 or section.documents[0].id != section.name
    for draft in section.documents:
        if draft.topic:
            draft.subtopic, draft.chains = draft.subtopic or draft.topic, name if several else ""
        elif several or section.is_shared_task:
            draft.topic, draft.subtopic, draft.chains = section.name, section.name, name
        else:
            above = draft.id.split("/")[:-1]
            draft.topic, draft.subtopic = "/".join(above[:1]), "/".join(above[:2])


def _read_sections(path: Path, passed_over: PassedOver | None) -> Iterator[ConllSection]:
    """Sections as they are read; the last line of each was read. With `passed_over`, rows outside of a
    section are one, named as the file, and a section without end goes as far as the next one."""
    section: ConllSection | None = None
    names: set[str] = set()
    for line, text in read_lines(path):
        if begin := _BEGIN.match(text):
            if section:
                section.cut()
                yield section
            section = ConllSection(path, line, begin[1].strip(), names, passed_over)
        elif _END.match(text):
            if section:
                yield section
            elif passed_over is None:
                raise DataError(path, "no document has begun", "remove the line", line=line, field="#end")
            section = None
        elif section:
            section.add(text, line)
        elif text.strip() and passed_over is None:
            what, remedy = "a line outside of a document", "write #begin document above it"
            raise DataError(path, what, remedy, line=line, field="row")
        elif text.strip() and not text.startswith("#"):
            passed_over.add("rows without #begin document, which are one document", f"{path}:{line}")
            name = path.name.partition(".")[0]
            section = ConllSection(path, line, name, names, passed_over, is_marked=False)
            section.add(text, line)
    if section:
        section.cut()
        yield section
