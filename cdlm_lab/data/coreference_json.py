"""Coreference data in the JSON files of the paper's code (`cross_encoder`, and `coref` of Cattan et al.).

A folder with, for a split:
`{split}.json`            document id -> [[sentence id, token id, text, validated], ...]
`{split}_events.json`     [{"doc_id", "m_id", "tokens_ids": [token id, ...], "cluster_id", "topic", ...}, ...]
`{split}_entities.json`   the same for entities

Fields that are not named here (lemmas, tags, singleton, ...) are not looked at. Ids lose their ".xml". The
topic of a document is that of its mentions or, if they do not say, its id up to the first "_"; the sub-topic
is named as `ecb_plus.read_ecb_plus` does if the id is of ECB+ (36_1ecbplus), else as the topic. A mention of
separate tokens becomes the span from the first to the last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cdlm_lab.data.coreference_records import (
    KINDS,
    CoreferenceDocument,
    CoreferenceMention,
    Kind,
    TokenSpan,
    Topic,
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


def read_coreference_json(
    folder: str | Path, split: str, *, kinds: Sequence[Kind] = KINDS
) -> Iterator[Topic]:
    """The topics of a split, in order of their first document.

    Args:
        folder: where the files are.
        split: first part of their names, as a rule train, dev or test.
        kinds: which mentions to read; the files of the others may be missing.

    Raises:
        ValueError: an unknown kind, or none.
        DataError: (at the first topic) a missing file, broken JSON, a missing or wrong field, a mention of
            tokens or documents that are not there, a document without text, a document in two topics, a
            cluster of both kinds, no mentions. `line` is that at which the mention or document starts.
    """
    if not kinds or not set(kinds) <= set(KINDS):
        raise ValueError(f"kinds is {tuple(kinds)}; choose from {', '.join(KINDS)}")
    return _read_topics(Path(folder), split, tuple(dict.fromkeys(kinds)))


def _read_topics(folder: Path, split: str, kinds: tuple[Kind, ...]) -> Iterator[Topic]:
    path = folder / f"{split}.json"
    texts = _read_texts(path)
    topics: dict[str, str] = {}
    mentions: dict[str, list[CoreferenceMention]] = {name: [] for name in texts}
    for kind in kinds:
        for record in _read_objects(folder / f"{split}_{_FILES[kind]}.json", kinds):
            mention = _mention(record, texts, kind)
            topic = record.optional_text("topic")
            if topic and topics.setdefault(mention.document, topic) != topic:
                what = f"{topic}, but {topics[mention.document]} in another mention of {mention.document}"
                raise record.error("topic", what, "give all mentions of a document one topic")
            mentions[mention.document].append(mention)
    if not any(mentions.values()):
        remedy = "annotate some, or take the split out"
        raise DataError(path, f"no mention of kind {' or '.join(kinds)}", remedy, field="mentions")
    documents: dict[str, list[CoreferenceDocument]] = {}
    try:
        for name, text in texts.items():
            topic = topics.get(name, name.partition("_")[0])
            members = tuple(sorted(mentions[name], key=lambda mention: mention.tokens))
            documents.setdefault(topic, []).append(_document(name, topic, text, members))
        read = [Topic(id=topic, documents=tuple(members)) for topic, members in documents.items()]
    except ValueError as error:
        remedy = (
            'correct the mention; where events and entities share numbers, read one kind: kinds=("event",)'
        )
        raise DataError(path, str(error), remedy, field="mentions") from None
    yield from read


def _document(
    name: str, topic: str, text: _Text, mentions: tuple[CoreferenceMention, ...]
) -> CoreferenceDocument:
    match = _ECB_NAME.fullmatch(name)
    return CoreferenceDocument(
        id=name,
        topic=topic,
        subtopic=f"{topic}_{match[1]}" if match else topic,
        tokens=text.tokens,
        sentences=text.sentences,
        validated=text.validated,
        mentions=mentions,
    )


def _read_texts(path: Path) -> dict[str, _Text]:
    source, value = read_json(path)
    if not isinstance(value, dict):
        what = f"{kind_of(value)} where an object belongs"
        raise DataError(path, what, "write it as {document: [tokens]}", field="file")
    if not value:
        raise DataError(path, "no documents", "add some, or take the split out", field="file")
    texts: dict[str, _Text] = {}
    line, place = 1, 0
    for name, tokens in value.items():
        found = max(place, source.find(json.dumps(name), place))
        line, place = line + source.count("\n", place, found), found
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


def _mention(record: JsonRecord, texts: dict[str, _Text], kind: Kind) -> CoreferenceMention:
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
    if len({sentence for sentence, _ in places}) != 1:
        what = "tokens of several sentences" if places else "no tokens"
        raise record.error("tokens_ids", what, "name tokens of one sentence")
    positions = [position for _, position in places]
    return CoreferenceMention(
        id=f"{name}:{_name(record, 'm_id')}",
        document=name,
        tokens=(min(positions), max(positions) + 1),
        sentence=places[0][0],
        kind=kind,
        cluster=_name(record, "cluster_id"),
    )


def _name(record: JsonRecord, field: str) -> str:
    """A number or a text that names something."""
    value = record.fields.get(field)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        what = f"{kind_of(value)} where a number or a text belongs" if field in record.fields else "missing"
        raise record.error(field, what, f'write it as "{field}": 7')
    return str(value)


def _read_objects(path: Path, kinds: tuple[Kind, ...]) -> Iterator[JsonRecord]:
    """The objects of a file that holds one list, each with the line it starts at."""
    if not path.is_file():
        remedy = f"copy it there, or leave its kind out of kinds, which is {kinds}"
        raise DataError(path, "there is no such file", remedy)
    for number, (whole, item) in enumerate(read_json_list(path)):
        yield whole.record(f"[{number}]", item)
