"""Coreference data in the JSON files of the paper's code (`cross_encoder`, and `coref` of Cattan et al.).

A folder with, for a split:
`{split}.json`            document id -> [[sentence id, token id, text, validated], ...]
`{split}_events.json`     [{"doc_id", "m_id", "tokens_ids": [token id, ...], "cluster_id", "topic", ...}, ...]
`{split}_entities.json`   the same for entities

Fields that are not named here (lemmas, tags, singleton, ...) are not looked at. Ids lose their ".xml"; a
mention without `m_id`, or with one that was there before, is numbered. The topic of a document is that of its
mentions. If they do not say, it is its id up to the first "_", where that is the topic of another document or
the id one of ECB+ (36_1ecb); else they are of one topic, named as the split. (Where no mention says its
topic: `coreference_records.topics_by_name`.) The sub-topic is named as `ecb_plus.read_ecb_plus` does if the
id is of ECB+, else as the topic. A mention of separate tokens becomes the span from the first to the last;
two sentences with a mention across them are one.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cdlm_lab.data.coreference_records import (
    KINDS,
    CoreferenceDocument,
    CoreferenceMention,
    Kind,
    PassedOver,
    TokenSpan,
    Topic,
    joined_sentences,
    topics_by_name,
)
from cdlm_lab.data.files import DataError
from cdlm_lab.data.json_file import read_json, read_json_list
from cdlm_lab.data.json_lines import JsonRecord, kind_of

_FILES: dict[Kind, str] = {"event": "events", "entity": "entities"}
_ECB_NAME = re.compile(r"\d+_\d+(ecb|ecbplus)")
_TOKEN_REMEDY = 'write it as [sentence, token id, "text", true]'


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """Tokens of a document; `places`: token id -> (sentence, position), None for a token without text."""

    tokens: tuple[str, ...]
    sentences: tuple[TokenSpan, ...]
    validated: tuple[int, ...]
    places: dict[int, tuple[int, int] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A mention as its record says, its sentence not known yet."""

    name: str
    document: str
    tokens: TokenSpan
    kind: Kind
    cluster: str


def read_coreference_json(
    folder: str | Path,
    split: str,
    *,
    kinds: Sequence[Kind] = KINDS,
    passed_over: PassedOver | None = None,
) -> Iterator[Topic]:
    """The topics of a split, in order of their first document.

    Args:
        folder: where the files are.
        split: first part of their names, as a rule train, dev or test.
        kinds: which mentions to read; the files of the others may be missing.
        passed_over: counts the mentions that cannot be used: without a cluster, of tokens or documents that
            are not there, across three sentences. None = they are refused.

    Raises:
        ValueError: an unknown kind, or none.
        DataError: (at the first topic) a missing file, broken JSON, a missing or wrong field, a document
            without text, a document in two topics, a cluster of both kinds, no mentions. `line` is that at
            which the mention or document starts.
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
    mentions: dict[str, dict[str, _Found]] = {name: {} for name in texts}
    for kind in kinds:
        for record in _read_objects(folder / f"{split}_{_FILES[kind]}.json", kinds):
            try:
                mention = _mention(record, texts, kind)
            except DataError as error:
                if passed_over is None:
                    raise
                field = error.field.rpartition("].")[2].partition("[")[0]
                passed_over.add(f"{kind} mention whose {field} means nothing", f"{error.path}:{error.line}")
                continue
            topic = _name(record, "topic") if record.fields.get("topic") is not None else None
            if topic and topics.setdefault(mention.document, topic) != topic:
                what = f"{topic}, but {topics[mention.document]} in another mention of {mention.document}"
                raise record.error("topic", what, "give all mentions of a document one topic")
            if passed_over is not None and _goes_across(mention, texts):
                place = f"{record.path}:{record.line}"
                passed_over.add("mention across two sentences, which were joined", place)
            others = mentions[mention.document]
            name = mention.name if mention.name and mention.name not in others else f"number {len(others)}"
            others[name] = mention
    if not any(mentions.values()):
        remedy = "annotate some, or take the split out"
        raise DataError(path, f"no mention of kind {' or '.join(kinds)}", remedy, field="mentions")
    documents: dict[str, list[CoreferenceDocument]] = {}
    try:
        for name, topic in _topic_of_each(texts, topics, split).items():
            documents.setdefault(topic, []).append(_document(name, topic, texts[name], mentions[name]))
        read = [Topic(id=topic, documents=tuple(members)) for topic, members in documents.items()]
    except ValueError as error:
        remedy = (
            'correct the mention; where events and entities share numbers, read one kind: kinds=("event",)'
        )
        raise DataError(path, str(error), remedy, field="mentions") from None
    yield from read


def _goes_across(mention: _Found, texts: Mapping[str, _Text]) -> bool:
    start, end = mention.tokens
    return any(start < border < end for _, border in texts[mention.document].sentences)


def _topic_of_each(names: Collection[str], said: Mapping[str, str], split: str) -> dict[str, str]:
    """Document -> topic, for those too whose mentions do not say."""
    if not said:
        return topics_by_name(names, otherwise=split)
    known, starts = set(said.values()), {name: name.partition("_")[0] for name in names}
    return {
        name: said.get(name) or (start if start in known or _ECB_NAME.fullmatch(name) else split)
        for name, start in starts.items()
    }


def _document(name: str, topic: str, text: _Text, mentions: Mapping[str, _Found]) -> CoreferenceDocument:
    match = _ECB_NAME.fullmatch(name)
    sentences = joined_sentences(text.sentences, [mention.tokens for mention in mentions.values()])
    starts = [start for start, _ in sentences]
    validated = {bisect_right(starts, text.sentences[number][0]) - 1 for number in text.validated}
    return CoreferenceDocument(
        id=name,
        topic=topic,
        subtopic=f"{topic}_{match[1]}" if match else topic,
        tokens=text.tokens,
        sentences=sentences,
        validated=tuple(sorted(validated)),
        mentions=tuple(
            CoreferenceMention(
                id=f"{name}:{identifier}",
                document=name,
                tokens=mention.tokens,
                sentence=bisect_right(starts, mention.tokens[0]) - 1,
                kind=mention.kind,
                cluster=mention.cluster,
            )
            for identifier, mention in sorted(mentions.items(), key=lambda item: item[1].tokens)
        ),
    )


def _read_texts(path: Path) -> dict[str, _Text]:
    source, value = read_json(path)
    if not isinstance(value, dict):
        what = f"{kind_of(value)} where an object belongs"
        raise DataError(path, what, "write it as {document: [tokens]}", field="file")
    if not value:
        raise DataError(path, "no documents", "add some, or take the split out", field="file")
    texts: dict[str, _Text] = {}
    line, place, found = 1, 0, 0
    for name, tokens in value.items():
        if found >= 0:  # one that is written in another way is looked for to the end, but no second one
            found = source.find(json.dumps(name, ensure_ascii=source.isascii()), place)
            line, place = line + source.count("\n", place, max(place, found)), max(place, found)
        record = JsonRecord(path=path, line=line, fields={name: tokens})
        if name.removesuffix(".xml") in texts:
            raise record.error(name, "two documents of this name", "name them apart, without .xml")
        texts[name.removesuffix(".xml")] = _text(record, name)
    return texts


def _text(record: JsonRecord, name: str) -> _Text:
    tokens: list[str] = []
    sentences: dict[int, TokenSpan] = {}
    validated: dict[int, None] = {}
    places: dict[int, tuple[int, int] | None] = {}
    for number, row in enumerate(_items(record, name)):
        where = f"{name}[{number}]"
        sentence, identifier, word, flag = _row(record, where, row)
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


def _row(record: JsonRecord, where: str, row: object) -> tuple[int, int, str, bool]:
    if not isinstance(row, list) or len(row) != 4:
        found = f"a list of {len(row)}" if isinstance(row, list) else kind_of(row)
        raise record.error(where, f"{found} where four values belong", _TOKEN_REMEDY)
    sentence, identifier, word, flag = row
    if not isinstance(flag, bool):
        raise record.error(f"{where}[3]", f"{kind_of(flag)} where true or false belongs", _TOKEN_REMEDY)
    word = record.checked_text(f"{where}[2]", word)
    numbers = [_whole(record, f"{where}[{place}]", item) for place, item in enumerate((sentence, identifier))]
    return numbers[0], numbers[1], word, flag


def _items(record: JsonRecord, field: str) -> list[object]:
    value = record.fields.get(field, [])
    if not isinstance(value, list):
        raise record.error(field, f"{kind_of(value)} where a list belongs", "write it as [...]")
    return value


def _whole(record: JsonRecord, where: str, value: object) -> int:
    """A number from 0, written as such or in quotes."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise record.error(where, f"{value!r} is not a whole number from 0", "write it as 3")


def _mention(record: JsonRecord, texts: dict[str, _Text], kind: Kind) -> _Found:
    name = record.text("doc_id").removesuffix(".xml")
    if name not in texts:
        raise record.error("doc_id", f"there is no document {name}", "name one of the documents of the split")
    places = []
    for number, item in enumerate(_items(record, "tokens_ids")):
        where = f"tokens_ids[{number}]"
        identifier = _whole(record, where, item)
        place = texts[name].places.get(identifier)
        if place is None:
            what = f"the document {name} has no token {identifier} with text"
            raise record.error(where, what, "name tokens of the document by their id")
        places.append(place)
    sentences = {sentence for sentence, _ in places}
    if not places or max(sentences) - min(sentences) > 1:
        what = "tokens of three sentences or more" if places else "no tokens"
        raise record.error("tokens_ids", what, "name tokens of one sentence")
    positions = [position for _, position in places]
    return _Found(
        name=_name(record, "m_id") if record.fields.get("m_id") is not None else "",
        document=name,
        tokens=(min(positions), max(positions) + 1),
        kind=kind,
        cluster=_name(record, "cluster_id"),
    )


def _name(record: JsonRecord, field: str) -> str:
    """A number or a text that names something."""
    value = record.fields.get(field)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        what = f"{kind_of(value)} where a number or a text belongs" if field in record.fields else "missing"
        raise record.error(field, what, f'write it as "{field}": 7')
    return record.checked_text(field, str(value))


def _read_objects(path: Path, kinds: tuple[Kind, ...]) -> Iterator[JsonRecord]:
    """The objects of a file that holds one list, each with the line it starts at."""
    if not path.is_file():
        remedy = f"copy it there, or leave its kind out of kinds, which is {kinds}"
        raise DataError(path, "there is no such file", remedy)
    for number, (whole, item) in enumerate(read_json_list(path)):
        yield whole.record(f"[{number}]", item)
