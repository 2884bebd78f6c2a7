"""A collection of one's own: documents, and which of them point to which, from two JSONL files of a folder.

    documents.jsonl   {"id": "a", "text": "We follow B. It is new."}
                      {"id": "b", "sentences": ["A title", "An earlier work."]}
    links.jsonl       {"first": "b", "second": "a", "sentences": [1]}
                      {"first": "a", "second": "b"}

`sentences` of a link are the numbers, from 0, of the sentences of the first document that point to the
second, if they are known; that document must then be given as sentences, so that the numbers are sure. A text
is split into sentences by sentencex. Both files may be compressed (`documents.jsonl.gz`).
"""

from __future__ import annotations

from pathlib import Path

from cdlm_lab.data.document_links import DocumentLink
from cdlm_lab.data.document_pairs import PairDocument
from cdlm_lab.data.files import DataError
from cdlm_lab.data.json_lines import JsonRecord, read_json_lines
from cdlm_lab.data.pair_csv import split_sentences

DOCUMENTS, LINKS = "documents.jsonl", "links.jsonl"
_SUFFIXES = ("", ".gz", ".xz")


def is_linked_collection(folder: str | Path) -> bool:
    """True if the folder holds documents in this form."""
    return _file(Path(folder), DOCUMENTS) is not None


def read_linked_collection(folder: str | Path) -> tuple[dict[str, PairDocument], tuple[DocumentLink, ...]]:
    """Documents by id, and links, in the order of the files.

    Raises:
        DataError: a file that is not there; a document without id or text, or given twice; a link of a
            document that is not there, with itself, or given twice; sentences that the document has not, or
            of one given as a text; and as `json_lines.read_json_lines`.
    """
    root = Path(folder)
    documents: dict[str, PairDocument] = {}
    split: set[str] = set()  # those given as sentences
    for record in read_json_lines(_there(root, DOCUMENTS)):
        document = _document(record)
        if document.id in documents:
            raise record.error("id", f"{document.id!r} is there already", "give every document its own id")
        documents[document.id] = document
        if "sentences" in record.fields:
            split.add(document.id)
    links: dict[tuple[str, str], DocumentLink] = {}
    for record in read_json_lines(_there(root, LINKS)):
        link = _link(record, documents, split)
        if link.documents in links:
            raise record.error("second", "the same link is there already", "give each link once")
        links[link.documents] = link
    return documents, tuple(links.values())


def _file(folder: Path, name: str) -> Path | None:
    return next((file for suffix in _SUFFIXES if (file := folder / f"{name}{suffix}").is_file()), None)


def _there(folder: Path, name: str) -> Path:
    file = _file(folder, name)
    if file is None:
        raise DataError(folder / name, "no such file", f"put {DOCUMENTS} and {LINKS} into the folder")
    return file


def _document(record: JsonRecord) -> PairDocument:
    identifier = record.text("id")
    if "sentences" in record.fields:
        sentences = tuple(
            " ".join(record.checked_text(f"sentences[{number}]", item).split())
            for number, item in enumerate(record.items("sentences"))
        )
        if "" in sentences:
            raise record.error(f"sentences[{sentences.index('')}]", "it is empty", "leave it out")
    else:
        sentences = tuple(split_sentences(record.text("text")))
    if not identifier or not sentences:
        field = "id" if not identifier else "text"
        raise record.error(field, "it is empty", "fill it in, or delete the line")
    return PairDocument(id=identifier, sentences=sentences)


def _link(record: JsonRecord, documents: dict[str, PairDocument], split: set[str]) -> DocumentLink:
    ends = {field: record.text(field) for field in ("first", "second")}
    for field, name in ends.items():
        if name not in documents:
            raise record.error(field, f"there is no document {name!r}", "add it, or delete the line")
    if ends["first"] == ends["second"]:
        raise record.error("second", "a document linked with itself", "delete the line")
    return DocumentLink(**ends, source=LINKS, in_first=_sentences(record, documents, split))


def _sentences(
    record: JsonRecord, documents: dict[str, PairDocument], split: set[str]
) -> tuple[int, ...] | None:
    """Numbers of the sentences that point; None if the record does not say."""
    if record.fields.get("sentences") is None:
        return None
    first = record.text("first")
    if first not in split:
        what = f"document {first!r} is given as a text"
        raise record.error("sentences", what, "give it as sentences, so that their numbers are sure")
    count = len(documents[first].sentences)
    numbers = set()
    for place, number in enumerate(record.items("sentences")):
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < count:
            what = f"{number!r} is no sentence of {first!r}, which has {count}"
            raise record.error(f"sentences[{place}]", what, "count them from 0")
        numbers.add(number)
    return tuple(sorted(numbers))
