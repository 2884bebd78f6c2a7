"""Coreference as rows: JSON lines of {doc_key, sentences, clusters}, and uCDCR's parquet files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from cdlm_lab.data.coreference import document_of_spans, kind_of_tag
from cdlm_lab.data.files import DataError, Fields, FilledText, JsonRecord, Name, Text, entries
from cdlm_lab.data.records import CoreferenceDocument, Kind, PassedOver, TokenSpan
from cdlm_lab.data.rows import rows_of
from cdlm_lab.data.splits import SPLIT_NAMES


def _numbers(value: object) -> object:
    """A list that may be written as JSON; anything else as it is."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


Found = tuple[Path, Path, str]  # of uCDCR: all_documents, all_mentions, name of the split in their columns


class _Document(Fields):
    doc_key: Text
    sentences: list[list[Text]]
    clusters: list[list[list[int]]]


def read_jsonlines(
    rows: Iterator[JsonRecord[Any]], *, kind: Kind | None = None, **_: Any
) -> Iterator[CoreferenceDocument]:
    """{"doc_key": "a", "sentences": [["Ann", "left", "."]], "clusters": [[[0, 0], [2, 2]]]}, as most systems
    for single documents write it: first and last word of each mention, counted through the document. Each
    document is a topic of its own, since clusters end with it; `kind`: of all mentions, None = entity."""
    for row in rows:
        given = row.checked(_Document).fields
        tokens = [word for sentence in given.sentences for word in sentence]
        ends = [0, *accumulate(len(sentence) for sentence in given.sentences if sentence)]
        mentions: list[tuple[str, TokenSpan, Kind, str]] = []
        for number, cluster in enumerate(given.clusters):
            for place, span in enumerate(cluster):
                if len(span) != 2 or not 0 <= span[0] <= span[1] < len(tokens):
                    what = f"{span} is no mention in {len(tokens)} words"
                    raise row.error(f"clusters[{number}][{place}]", what, "write [first, last], from 0")
                name = f"{given.doc_key}:{number}:{place}"
                mentions.append((name, (span[0], span[1] + 1), kind or "entity", f"{given.doc_key}:{number}"))
        yield _document(row.path, row.line, mentions, given.doc_key, given.doc_key, tokens, ends)


class _Token(Fields):
    document: Text = Field(alias="topic/subtopic_name/doc")
    sent_id: int
    token_id: int
    token: Text


class _Mention(Fields):
    document: Text = Field(alias="conll_doc_key")
    name: FilledText = Field(alias="doc")
    mention_id: Name
    kind: Text = Field(alias="mention_full_type")
    sent_id: int
    tokens: Annotated[list[int], BeforeValidator(_numbers)] = Field(alias="tokens_number")
    chain: Name = Field(alias="coref_chain")


def ucdcr_files(folder: Path) -> dict[str, Found]:
    """Split -> the two files of uCDCR (Zhukova et al. 2026), `*all_documents.parquet` and
    `*all_mentions.parquet`, and its name in them; {} without both."""
    pair = [
        next((file for file in entries(folder) if file.name.endswith(f"all_{what}.parquet")), None)
        for what in ("documents", "mentions")
    ]
    if None in pair:
        return {}
    names = dict.fromkeys(str(row.fields.get("split")) for row in rows_of(pair[1]))  # type: ignore[arg-type]
    return {SPLIT_NAMES.get(name, name): (*pair, name) for name in names}  # type: ignore[misc]


def read_ucdcr(
    found: Found, *, passed_over: PassedOver, kind: Kind | None = None
) -> Iterator[CoreferenceDocument]:
    """Yield the documents of a split. A document is named "36_4ecb" after the file of its mentions, without
    any "36/36ecb/4"; its topic is "36", its sub-topic "36ecb". Mentions whose type begins with ACT, NEG_ACT
    or EVENT are events, all others entities; one of separate words becomes the span from the first to the
    last. Words given twice count once; they, and mentions of words that are not there, are counted. `kind`:
    only these mentions; None = all."""
    documents, mentions, split = found
    texts: dict[str, list[_Token]] = {}
    for row in _of_split(documents, split):
        texts.setdefault((one := row.checked(_Token).fields).document, []).append(one)
    of_document: dict[str, list[_Mention]] = {}
    for row in _of_split(mentions, split):
        mention = row.checked(_Mention).fields
        if mention.document not in texts:
            passed_over.add("mention of a document that is not there", f"{mentions}:{row.line}")
        of_document.setdefault(mention.document, []).append(mention)
    for key, rows in texts.items():
        unique = {(row.sent_id, row.token_id): row for row in reversed(rows)}
        if len(unique) < len(rows):
            passed_over.add("document whose words are there twice", f"{documents}: {key}")
        rows = [unique[place] for place in sorted(unique)]
        places = {(row.sent_id, row.token_id): place for place, row in enumerate(rows)}
        starts = [at for at, row in enumerate(rows) if not at or row.sent_id != rows[at - 1].sent_id]
        topic, subtopic, *_ = [*key.split("/"), ""]
        name = key
        given: list[tuple[str, TokenSpan, Kind, str]] = []
        for one in of_document.get(key, []):
            name, of = one.name, kind_of_tag(one.kind)
            at = [places.get((one.sent_id, token), -1) for token in one.tokens]
            if not at or min(at) < 0:
                passed_over.add("mention of words that are not there", f"{mentions}: {one.mention_id}")
            elif kind in (None, of):
                given.append((one.mention_id, (min(at), max(at) + 1), of, one.chain))
        words = [row.token.strip() or "_" for row in rows]
        yield _document(documents, 1, given, name, topic, words, [*starts, len(rows)], subtopic=subtopic)


def _of_split(path: Path, split: str) -> Iterator[JsonRecord[Any]]:
    return (row for row in rows_of(path) if str(row.fields.get("split")) == split)


def is_jsonlines(fields: Mapping[str, Any]) -> bool:
    """Whether a row is a document of {doc_key, sentences, clusters}."""
    return {"doc_key", "sentences", "clusters"} <= set(fields)


def _document(
    path: Path,
    line: int,
    mentions: list[tuple[str, TokenSpan, Kind, str]],
    name: str,
    topic: str,
    tokens: list[str],
    borders: list[int],
    *,
    subtopic: str = "",
) -> CoreferenceDocument:
    sentences = list(pairwise(borders))
    form = {"id": name, "topic": topic, "subtopic": subtopic or topic, "tokens": tokens}
    try:
        return document_of_spans(mentions, **form, sentences=sentences, validated=range(len(sentences)))
    except ValueError as error:
        raise DataError(path, str(error), "correct the document", line=line, field="document") from None
