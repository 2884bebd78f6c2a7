"""Clusters of mentions as files that others read: CoNLL, CorefUD, or rows of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cdlm_lab.data.convert.conll import write_conll
from cdlm_lab.data.convert.corefud import write_corefud
from cdlm_lab.data.files import replaced_file
from cdlm_lab.data.marked import unmarked
from cdlm_lab.data.records import CoreferenceDocument, CoreferenceMention, Topic, characters
from cdlm_lab.parameters import ParameterError

ENDINGS = (".conll", ".conllu", ".jsonl", ".json")


def save_clusters(
    path: str | Path,
    topics: Sequence[Topic],
    clusters: Mapping[str, Iterable[CoreferenceMention]],
    *,
    texts: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write clusters of mentions in the documents of `topics`, so that `read_records("coreference", path)`
    reads them again: `.conll` (CoNLL-2012's columns), `.conllu` (CorefUD), `.jsonl` and `.json` (a row a
    document, one's own form).

    Args:
        texts: document -> the text that it was made of. JSON then has it, without marks, and the mentions in
            its characters; else words.

    Raises ParameterError for another ending, or what the format cannot say: two mentions of one cluster that
    cross or stand in the same place, in CoNLL and CorefUD.
    """
    path = Path(path)
    if path.suffix not in ENDINGS:
        raise ParameterError(f"{path} ends in {path.suffix!r}; name a file {', '.join(ENDINGS)}")
    try:
        plain = {name: unmarked(text) for name, text in texts.items()}
        topics = [
            _in_plain_text(topic, {name: places for name, (_, places) in plain.items()}) for topic in topics
        ]
        if path.suffix in (".conll", ".conllu"):
            write = write_conll if path.suffix == ".conll" else write_corefud
            return write(path, topics, clusters)
        rows = _rows(topics, clusters, {name: text for name, (text, _) in plain.items()})
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        text = "\n".join(lines) if path.suffix == ".jsonl" else f"[{f',{chr(10)}'.join(lines)}]"
        with replaced_file(path) as file:
            file.write(f"{text}\n")
    except ValueError as error:
        raise ParameterError(str(error)) from None


def _rows(
    topics: Sequence[Topic],
    clusters: Mapping[str, Iterable[CoreferenceMention]],
    texts: Mapping[str, str],
) -> list[dict[str, Any]]:
    members: dict[str, list[CoreferenceMention]] = {}
    for name, some in clusters.items():
        for mention in some:
            members.setdefault(mention.document, []).append(replace(mention, cluster=name))
    rows = []
    for document in chain.from_iterable(topic.documents for topic in topics):
        mentions = sorted(members.get(document.id, []), key=lambda mention: mention.tokens)
        if document.id in texts and document.offsets:
            rows.append(_in_characters(document, mentions, texts[document.id]))
        else:
            row = asdict(replace(document, mentions=tuple(mentions), offsets=()))
            rows.append({name: value for name, value in row.items() if name != "offsets"})
    return rows


def _in_plain_text(topic: Topic, places: Mapping[str, Sequence[int]]) -> Topic:
    """The topic with offsets in its texts without marks; `places`: document -> those of `unmarked`."""

    def plain(document: CoreferenceDocument) -> CoreferenceDocument:
        of = places.get(document.id, ())
        offsets = tuple((of[start], of[end - 1] + 1) for start, end in document.offsets if of)
        return replace(document, offsets=offsets)

    return replace(topic, documents=tuple(map(plain, topic.documents)))


def _in_characters(
    document: CoreferenceDocument, mentions: Iterable[CoreferenceMention], text: str
) -> dict[str, Any]:
    given = []
    for mention in mentions:
        start, end = characters(document.offsets, *mention.tokens) or (0, 0)
        given.append({"start": start, "end": end, "cluster": mention.cluster, "kind": mention.kind})
    return {"id": document.id, "topic": document.topic, "text": text, "mentions": given}
