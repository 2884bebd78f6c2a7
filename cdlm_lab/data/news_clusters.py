"""News articles on one event: AllSides full texts (JSON lines) and NeuS openings (Lee et al. 2022).

AllSides files `allsides_*.jsonl`: one cluster a line, {"cluster_id", "split", "docs": [{"id", "title",
"text"}]}; "split" is train, val or test, and a file without it (the automatic clusters of
`allsides_weak_clusters`) is all for training.

NeuS files `neus_<split>.source`: one cluster a line, `TITLE=> .. ARTICLE=> .. [SEP] TITLE=> .. ARTICLE=> ..`.
Clusters are numbered from 0 as in the AllSides files, which hold the full articles of the same events:
"neus-train-0" is the same event in both.

A folder that holds both is read as its AllSides files alone, since the NeuS openings are parts of the same
texts. All of them may be compressed. The text of a document is its title, a line break, and its body.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cdlm_lab.data.files import DataError, entries, plain_name, plain_stem, read_lines
from cdlm_lab.data.json_lines import JsonRecord, checked_filled, read_json_lines
from cdlm_lab.data.records import Cluster, Document
from cdlm_lab.data.splits import SPLIT_NAMES, Split

_TITLE, _ARTICLE, _SEPARATOR = "TITLE=>", "ARTICLE=>", "[SEP]"
_SPLIT_REMEDY = f"write one of {', '.join(SPLIT_NAMES)}, or leave it out"


def news_files(folder: str | Path, *, split: Split | None = None) -> list[Path]:
    """The files of a folder that may hold clusters of `split` (None: of any), sorted; [] if it has none."""
    files = [path for path in entries(folder) if path.is_file()]
    full_texts = [path for path in files if is_allsides_name(path)]
    if full_texts:
        return full_texts
    openings = [path for path in files if is_neus_name(path)]
    return [path for path in openings if split is None or _split_of_name(path) == split]


def is_allsides_name(path: str | Path) -> bool:
    """True for `allsides_*.jsonl`, compressed or not."""
    name = plain_name(path)
    return name.startswith("allsides_") and name.endswith(".jsonl")


def is_neus_name(path: str | Path) -> bool:
    """True for `*.source`, compressed or not."""
    return plain_name(path).endswith(".source")


def read_news_clusters(path: str | Path, *, split: Split | None = None) -> Iterator[Cluster]:
    """Clusters of a file, or of all files of a folder, in order; `split` None for those of every split.

    Raises:
        DataError: a folder without such files, a malformed record, a cluster without any text, an id that
            occurs twice, and as `files.read_lines`.
    """
    path = Path(path)
    if not path.is_dir():
        yield from read_neus(path, split=split) if is_neus_name(path) else read_allsides(path, split=split)
        return
    if not news_files(path):
        remedy = "put allsides_*.jsonl or neus_<split>.source files there"
        raise DataError(path, "no news clusters here", remedy, field="folder")
    for file in news_files(path, split=split):
        yield from read_news_clusters(file, split=split)


def read_allsides(path: str | Path, *, split: Split | None = None) -> Iterator[Cluster]:
    """Clusters of an AllSides file. Raises as `read_news_clusters`."""
    first_line: dict[str, int] = {}
    for record in read_json_lines(path):
        cluster_id = record.text("cluster_id")
        if cluster_id in first_line:
            what = f"{cluster_id!r} stands in line {first_line[cluster_id]} already"
            raise record.error("cluster_id", what, "give every cluster an id of its own")
        first_line[cluster_id] = record.line
        own_split = record.optional_text("split")
        own_split = "train" if own_split is None else own_split
        if own_split not in SPLIT_NAMES:
            raise record.error("split", f"{own_split!r} is not a split", _SPLIT_REMEDY)
        documents = _allsides_documents(record)
        if split in (None, SPLIT_NAMES[own_split]):
            yield Cluster(id=cluster_id, documents=documents)


def read_neus(path: str | Path, *, split: Split | None = None) -> Iterator[Cluster]:
    """Clusters of a NeuS source file, whose name says the split. Raises as `read_news_clusters`."""
    path = Path(path)
    if _split_of_name(path) is None:
        remedy = "name it neus_train.source, neus_val.source or neus_test.source"
        raise DataError(path, "the name does not say the split", remedy, field="file name")
    if split not in (None, _split_of_name(path)):
        return
    name = plain_stem(path).replace("_", "-")
    for number, line in read_lines(path):
        cluster_id = f"{name}-{number - 1}"
        documents = tuple(
            _neus_document(piece, f"{cluster_id}-{index}", path=path, line=number, index=index)
            for index, piece in enumerate(line.split(_SEPARATOR))
        )
        if not any(document.text for document in documents):
            remedy = "fill one in, or delete the line"
            raise DataError(path, "no document has any text", remedy, line=number, field="line")
        yield Cluster(id=cluster_id, documents=documents)


def _split_of_name(path: Path) -> Split | None:
    """The split of a NeuS file: the last part of its name; None if that is not one."""
    return SPLIT_NAMES.get(plain_stem(path).rpartition("_")[2])


def _allsides_documents(record: JsonRecord) -> tuple[Document, ...]:
    documents: dict[str, Document] = {}
    for index, item in enumerate(record.items("docs")):
        found = record.record(f"docs[{index}]", item)
        document_id, title = found.text("id"), found.optional_text("title")
        if document_id in documents:
            what = f"{document_id!r} is in this cluster already"
            raise found.error("id", what, "list every document of a cluster once")
        text = _title_and_body(title, found.text("text"))
        documents[document_id] = Document(id=document_id, text=text, title=title)
    return checked_filled(record, "docs", tuple(documents.values()))


def _neus_document(piece: str, document_id: str, *, path: Path, line: int, index: int) -> Document:
    head, title_mark, rest = piece.partition(_TITLE)
    title, body_mark, body = rest.partition(_ARTICLE)
    for mark, found in ((_TITLE, title_mark and not head.strip()), (_ARTICLE, body_mark)):
        if not found:
            remedy = f"write {_TITLE} title {_ARTICLE} text, with {_SEPARATOR} between documents"
            what = f"no {mark} where one belongs"
            raise DataError(path, what, remedy, line=line, field=f"document {index + 1}")
    text = _title_and_body(title.strip(), body.strip())
    return Document(id=document_id, text=text, title=title.strip())


def _title_and_body(title: str | None, body: str) -> str:
    """What a model reads: the title as first line; neither part leaves a blank line if it is empty."""
    return "\n".join(part for part in (title, body) if part)
