"""Coreference in the JSON files of `cross_encoder` and `coref` of Cattan et al.'s code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from cdlm_lab.data import coreference, files
from cdlm_lab.data.files import DataError, FieldFault, JsonRecord
from cdlm_lab.data.records import KINDS, CoreferenceDocument, Kind, PassedOver, TokenSpan

Found = tuple[str, Path, dict[Kind, Path]]  # name of the split, its texts, mentions by kind
_ECB_NAME = re.compile(r"\d+_\d+(ecb|ecbplus)")
_ENDINGS: dict[Kind, str] = {"event": "events", "entity": "entities"}


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
_Document = list[Annotated[tuple[_Number, _Number, files.Text, bool], files.FROM_LIST]]


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


def json_files(folder: Path) -> dict[str, Found]:
    """Split -> its files, {split}.json and beside it {split}_events.json, {split}_entities.json, or one of
    these."""
    found: dict[str, Found] = {}
    for name, split in (("train", "train"), ("dev", "validation"), ("test", "test")):
        paths = {kind: folder / f"{name}_{ending}.json" for kind, ending in _ENDINGS.items()}
        mentions = {kind: path for kind, path in paths.items() if path.is_file()}
        if mentions and (folder / f"{name}.json").is_file():
            found[split] = name, folder / f"{name}.json", mentions
    return found


def read_json(
    found: Found, *, passed_over: PassedOver, kind: Kind | None = None
) -> Iterator[CoreferenceDocument]:
    """Yield the documents of a split, from files with

        {split}.json            document id -> [[sentence id, token id, text, validated], ...]
        {split}_events.json     [{"doc_id", "m_id", "tokens_ids": [token id], "cluster_id", "topic"}, ...]
        {split}_entities.json   the same for entities

    ".xml" is removed from ids; a mention with no `m_id`, or a repeated one, gets a number as id. The topic of
    a document is that of its mentions. If they have none, it is the document's id up to the first "_", if
    that is the topic of another document or the id is one of ECB+ (36_1ecb); else the name of the split. If
    no mention at all has a topic, the first parts of ids are topics if any two documents share one. The
    sub-topic is "36_ecb" for an id of ECB+, else the topic. A mention of separate tokens becomes the span
    from first to last; sentences that it crosses are joined. Mentions that cannot be used are counted.
    `kind`: only the file of these mentions is read; None = both.
    """
    split, path, mentions = found
    if kind and kind not in mentions:
        other = KINDS[1 - KINDS.index(kind)]
        raise DataError(path, f"no file of {kind} mentions beside it", f"add it, or set kind to {other!r}")
    texts = _texts(path)
    for one in [kind] if kind else mentions:
        for record in files.read_json_list(mentions[one]):
            _add_mention(record.checked(_Mention), one, texts, passed_over)
    known = {text.topic for text in texts.values() if text.topic}
    by_name = coreference.topics_by_name(texts, otherwise=split)
    of_document: dict[str, list[CoreferenceDocument]] = {}
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
        of_document.setdefault(topic, []).append(document)
    for members in of_document.values():
        yield from members


def _texts(path: Path) -> dict[str, _Text]:
    _, value = files.read_json(path)
    if not isinstance(value, dict) or not value:
        raise DataError(path, "no documents", "write it as {document: [[sentence, token, text, true]]}")
    texts: dict[str, _Text] = {}
    for name, rows in value.items():
        record = JsonRecord(path=path, line=1, fields=rows, within=name)
        if name.removesuffix(".xml") in texts:
            raise record.error("", "two documents of this name", "name them apart, without .xml")
        given = record.checked(_Document, remedy='write it as [sentence, token id, "text", true]')
        texts[name.removesuffix(".xml")] = _text(given)
    return texts


def _text(record: JsonRecord[_Document]) -> _Text:
    text, last = _Text(), -1
    for number, (sentence, identifier, word, validated) in enumerate(record.fields):
        if identifier in text.places:
            raise record.error(f"[{number}]", f"a second token {identifier}", "number the tokens apart")
        if text.tokens and sentence < last:
            raise record.error(f"[{number}]", f"sentence {sentence} after {last}", "put the tokens in order")
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
        raise record.error("", "the document has no text", "leave it out")
    return text


def _add_mention(
    record: JsonRecord[_Mention], kind: Kind, texts: Mapping[str, _Text], passed_over: PassedOver
) -> None:
    fields, where = record.fields, f"{record.path}:{record.line}"
    text = texts.get(fields.doc_id.removesuffix(".xml"))
    if text is None:
        return passed_over.add(f"{kind} mention of a document that is not there", where)
    places = [place for one in fields.tokens_ids if (place := text.places.get(one))]
    if not places or len(places) < len(fields.tokens_ids):
        return passed_over.add(f"{kind} mention of tokens that are not there", where)
    (first, start), (last, end) = min(places), max(places)
    if last - first > 1:
        return passed_over.add(f"{kind} mention across three sentences or more", where)
    if fields.topic and text.topic not in ("", fields.topic):
        what = f"{fields.topic}, but {text.topic} in another mention of {fields.doc_id}"
        raise record.error("topic", what, "give all mentions of a document one topic")
    if first < last:
        passed_over.add("mention across two sentences, which were joined", where)
    text.topic = fields.topic or text.topic
    identifier = fields.m_id
    if not identifier or identifier in text.mentions:
        identifier = f"number {len(text.mentions)}"
    text.mentions[identifier] = ((start, end + 1), kind, fields.cluster_id)
    return None
