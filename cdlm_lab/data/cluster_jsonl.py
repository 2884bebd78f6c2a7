"""Clusters as JSON lines, one cluster a line, in `.jsonl`, `.jsonl.gz` or `.jsonl.xz`:

    {"id": "flood", "documents": ["Text.", {"id": "b", "title": "Title", "text": "Text."}], "split": "test"}

A document is a text, or an object with "text" and, if wanted, "id" and "title"; a title becomes the first
line of what the model reads. Documents without an id are numbered from 0. Without "split" (train, validation
or test) the split is a hash of the id, 90/5/5. Other fields are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cdlm_lab.data.json_lines import JsonRecord, checked_filled, kind_of, read_json_lines
from cdlm_lab.data.records import Cluster, Document
from cdlm_lab.data.splits import SPLIT_NAMES, Split, hashed_split


def read_cluster_jsonl(path: str | Path, *, split: Split | None = None) -> Iterator[Cluster]:
    """Clusters of a file in order; `split` None for those of every split.

    Ids are kept in memory to find repeated ones; nothing else is.

    Raises:
        DataError: a malformed line, a cluster without documents or with empty ones only, an id that occurs
            twice, an unknown split, and as `files.read_lines`. Empty documents beside filled ones are no
            fault.
    """
    first_line: dict[str, int] = {}
    for record in read_json_lines(path):
        cluster_id = record.text("id")
        if cluster_id in first_line:
            what = f"{cluster_id!r} stands in line {first_line[cluster_id]} already"
            raise record.error("id", what, "give every cluster an id of its own")
        first_line[cluster_id] = record.line
        own_split, documents = _split_of(record, cluster_id), _documents(record)
        if split in (None, own_split):
            yield Cluster(id=cluster_id, documents=documents)


def _split_of(record: JsonRecord, cluster_id: str) -> Split:
    name = record.optional_text("split")
    if name is None:
        return hashed_split(cluster_id)
    if name not in SPLIT_NAMES:
        raise record.error(
            "split", f"{name!r} is not a split", "write train, validation or test, or leave it out"
        )
    return SPLIT_NAMES[name]


def _documents(record: JsonRecord) -> tuple[Document, ...]:
    documents: dict[str, Document] = {}
    for index, item in enumerate(record.items("documents")):
        document = _document(record, item, index)
        if document.id in documents:
            what = f"{document.id!r} is in this cluster already"
            raise record.error(
                f"documents[{index}].id", what, "give every document of a cluster an id of its own"
            )
        documents[document.id] = document
    return checked_filled(record, "documents", tuple(documents.values()))


def _document(record: JsonRecord, item: object, index: int) -> Document:
    field = f"documents[{index}]"
    if isinstance(item, str):
        return Document(id=str(index), text=record.checked_text(field, item))
    if not isinstance(item, dict):
        what = f"{kind_of(item)} where a document belongs"
        raise record.error(field, what, 'write a text in quotes, or {"text": "..."}')
    found = record.record(field, item)
    title = found.optional_text("title")
    text = "\n".join(part for part in (title, found.text("text")) if part)
    document_id = found.optional_text("id")
    return Document(id=str(index) if document_id is None else document_id, text=text, title=title)
