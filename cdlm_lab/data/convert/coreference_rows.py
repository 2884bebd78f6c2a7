"""Coreference as rows: JSON lines of {doc_key, sentences, clusters}, and uCDCR's parquet files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from pyarrow import parquet

from cdlm_lab.data.coreference import document_of_spans
from cdlm_lab.data.files import DataError, Fields, JsonRecord, Text, entries
from cdlm_lab.data.records import CoreferenceDocument, Kind, PassedOver, TokenSpan
from cdlm_lab.data.splits import SPLIT_NAMES

_EVENTS = ("ACT", "NEG_ACT", "EVENT")  # how the types of events begin
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


def ucdcr_files(folder: Path) -> dict[str, Found]:
    """Split -> the two files of uCDCR (Zhukova et al. 2026), `*all_documents.parquet` and
    `*all_mentions.parquet`, and its name in them; {} without both."""
    pair = [
        next((file for file in entries(folder) if file.name.endswith(f"all_{what}.parquet")), None)
        for what in ("documents", "mentions")
    ]
    if None in pair:
        return {}
    names = parquet.read_table(pair[1], columns=["split"]).column("split").unique().to_pylist()
    return {SPLIT_NAMES.get(name, name): (*pair, name) for name in names}  # type: ignore[misc]


def read_ucdcr(
    found: Found, *, passed_over: PassedOver, kind: Kind | None = None
) -> Iterator[CoreferenceDocument]:
    """Yield the documents of a split. A document is named "36_4ecb" after the file of its mentions, its topic
    "36", its sub-topic "36ecb". Mentions whose type begins with ACT, NEG_ACT or EVENT are events, all others
    entities; one of separate words becomes the span from the first to the last. Words given twice
    count once; they, and mentions of words that are not there, are counted. `kind`: only these
    mentions; None = all."""
    documents, mentions, split = found
    texts: dict[str, list[dict[str, Any]]] = {}
    for row in _of_split(documents, split):
        texts.setdefault(row["topic/subtopic_name/doc"], []).append(row)
    of_document: dict[str, list[dict[str, Any]]] = {}
    for number, row in enumerate(_of_split(mentions, split)):
        if row["conll_doc_key"] not in texts:
            passed_over.add("mention of a document that is not there", f"{mentions}:{number + 1}")
        of_document.setdefault(row["conll_doc_key"], []).append(row)
    for key, rows in texts.items():
        unique = {(row["sent_id"], row["token_id"]): row for row in reversed(rows)}
        if len(unique) < len(rows):
            passed_over.add("document whose words are there twice", f"{documents}: {key}")
        rows = [unique[place] for place in sorted(unique)]
        places = {(row["sent_id"], row["token_id"]): place for place, row in enumerate(rows)}
        of_sentence = [row["sent_id"] for row in rows]
        starts = [at for at, one in enumerate(of_sentence) if not at or one != of_sentence[at - 1]]
        topic, subtopic, name = ([*key.split("/"), "", ""])[:3]
        given: list[tuple[str, TokenSpan, Kind, str]] = []
        for row in of_document.get(key, []):
            name = row["doc"]
            is_event = row["mention_full_type"].startswith(_EVENTS)
            of: Kind = "event" if is_event else "entity"
            at = [places.get((row["sent_id"], token)) for token in _numbers(row["tokens_number"])]
            if None in at or not at:
                passed_over.add("mention of words that are not there", f"{mentions}: {row['mention_id']}")
            elif kind in (None, of):
                given.append((row["mention_id"], (min(at), max(at) + 1), of, row["coref_chain"]))
        words = [row["token"].strip() or "_" for row in rows]
        yield _document(documents, 1, given, name, topic, words, [*starts, len(rows)], subtopic=subtopic)


def _of_split(path: Path, split: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parquet.read_table(path, filters=[("split", "=", split)]).to_pylist()
    return rows


def _numbers(value: str | list[int]) -> list[int]:
    return json.loads(value) if isinstance(value, str) else list(value)


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
