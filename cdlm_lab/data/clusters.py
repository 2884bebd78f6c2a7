"""Documents as paragraphs of sentences, for paragraph pre-training (Di Liello et al. 2022, "MSPP", section
3.4: sentences of one paragraph are told from those of others).

A paragraph ends at a line break, or several in a row. The paper does not say how it cut texts; its released
code cuts at blank lines, of which many corpora here have none. Sentences are those of the source where
it gives them, and sentencex's elsewhere. A sentence of fewer than `LEAST_CHARACTERS` characters is dropped,
as in the released code, and with the last of its sentences a paragraph. (That code also drops paragraphs
under 60 characters and documents under 200.) A title is no paragraph.

A user's own texts: one sub-folder = one cluster, one `.txt` file in it = one document.

    my_corpus/
      flood_in_the_valley/   daily.txt  evening_post.txt  radio.txt
      harbour_strike/        a.txt  b.txt

Clusters go to train, validation and test by a hash of their name (90/5/5), unless the folder itself has
sub-folders `train`, `validation` and `test` that hold the clusters. A headline is the first line of a text.
Names that begin with a dot are passed over. So are files that are not `.txt` (`.TXT`, `.txt.gz`, `.txt.xz`)
or do not lie in a cluster, but these are named before a run and in its report (`other_files`).

Clusters as JSON lines, one cluster a line, in `.jsonl`, `.jsonl.gz` or `.jsonl.xz`:

    {"id": "flood", "documents": ["Text.", {"id": "b", "title": "Title", "text": "Text."}], "split": "test"}

A document is a text, or an object with "text" and, if wanted, "id" and "title"; a title becomes the first
line of what the model reads. Documents without an id are numbered from 0. Without "split" (train, validation
or test) the split is a hash of the id, 90/5/5. Other fields are passed over.

Multi-News (Fabbri et al. 2019) in its official files: `train.txt.src`, `val.txt.src`, `test.txt.src`.

One cluster a line, documents joined by a separator. Both conventions are read: `|||||` (also in
`*.src.cleaned`) and `story_separator_special_tag`, with or without one more at the end of the line. That last
one begins no document; the released CDLM code takes it for one, and so lets clusters of two documents pass
for three. NEWLINE_CHAR tokens become line breaks. Empty documents between two separators, and blank lines (a
cluster of one empty document), are kept: they are dropped and counted when clusters are tokenised, and line
numbers stay those of the summaries in `*.tgt`. (Elsewhere a cluster without any text is a fault; a published
file with such lines has to be read as it is.)

News articles on one event: AllSides full texts (JSON lines) and NeuS openings (Lee et al. 2022).

AllSides files `allsides_*.jsonl`: one cluster a line, {"cluster_id", "split", "docs": [{"id", "title",
"text"}]}; "split" is train, val or test, and a file without it (the automatic clusters of
`allsides_weak_clusters`) is all for training.

NeuS files `neus_<split>.source`: one cluster a line, `TITLE=> .. ARTICLE=> .. [SEP] TITLE=> .. ARTICLE=> ..`.
Clusters are numbered from 0 as in the AllSides files, which hold the full articles of the same events:
"neus-train-0" is the same event in both.

A folder that holds both is read as its AllSides files alone, since the NeuS openings are parts of the same
texts. All of them may be compressed. The text of a document is its title, a line break, and its body.

One way into every corpus: the embedded one by name, all others by path, whose format is recognised.

Where a corpus does not say which clusters are for training, a hash of their ids does (90/5/5,
`splits.hashed_split`). Clusters keep the order of the files; `size` takes the first ones. Clusters of one
document and empty documents pass: they are dropped and counted when the corpus is tokenised.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path

from cdlm_lab.data.document_pairs import split_sentences
from cdlm_lab.data.ecb_plus import ecb_plus_files, read_ecb_plus_topics
from cdlm_lab.data.files import (
    DataError,
    JsonRecord,
    checked_filled,
    checked_path,
    entries,
    home_path,
    kind_of,
    plain_name,
    plain_stem,
    read_json_lines,
    read_lines,
    read_text,
    sha256_of_file,
)
from cdlm_lab.data.records import SPLIT_NAMES, Cluster, Document, Split, check_split, hashed_split
from cdlm_lab.data.scisumm import read_scisumm_corpus, scisumm_files
from cdlm_lab.data.tagged import docarc_files, is_docarc_folder, read_docarc_passages

_ENDING = ".txt"


def is_cluster_folder(path: str | Path) -> bool:
    """True for a folder with a text in one of the sub-folders that are clusters."""
    return any(_texts(cluster) for _, cluster in _cluster_folders(Path(path)))


def cluster_files(path: str | Path, *, split: Split | None = None) -> Iterator[Path]:
    """The texts of the clusters of `split` (None: of all), in order."""
    for own_split, cluster in _cluster_folders(Path(path)):
        if split in (None, own_split):
            yield from _texts(cluster)


def other_files(path: str | Path) -> list[Path]:
    """Files, and folders within clusters, that are not read: no texts, or texts beside the clusters."""
    path, clusters = Path(path), [folder for _, folder in _cluster_folders(Path(path))]
    above = dict.fromkeys([path, *(folder.parent for folder in clusters)])
    beside = (entry for folder in above for entry in entries(folder) if not entry.is_dir())
    inside = (entry for folder in clusters for entry in entries(folder) if not _is_text(entry))
    return [*beside, *inside]


def read_cluster_folder(path: str | Path, *, split: Split | None = None) -> Iterator[Cluster]:
    """Clusters in order of their names; `split` None for those of every split.

    Raises:
        DataError: a sub-folder without texts, or with empty ones only, two files that would be the same
            document, two folders that would be the same cluster, and as `files.read_lines`. An empty file
            beside a filled one is an empty document.
    """
    path = Path(path)
    seen: dict[str, Path] = {}
    for own_split, folder in _cluster_folders(path):
        if folder.name in seen:
            what = f"{folder.relative_to(path)} and {seen[folder.name].relative_to(path)} have the same name"
            raise DataError(path, what, "rename one: the name is the id of the cluster", field="folder name")
        seen[folder.name] = folder
        if split in (None, own_split):
            yield _read_cluster(folder)


def _read_cluster(folder: Path) -> Cluster:
    documents: dict[str, Document] = {}
    for file in _texts(folder):
        name = plain_name(file)[: -len(_ENDING)]
        if name in documents:
            what = f"another file of this folder is document {name!r} too"
            raise DataError(file, what, "keep one of them, or rename it", field="file name")
        documents[name] = Document(id=name, text=read_text(file, allow_empty=True).strip())
    if not documents:
        remedy = "put one .txt file for each document there, or remove the folder"
        raise DataError(folder, "a cluster without documents", remedy, field="folder")
    if not any(document.text for document in documents.values()):
        raise DataError(
            folder, "no document has any text", "fill its files, or remove the folder", field="folder"
        )
    return Cluster(id=folder.name, documents=tuple(documents.values()))


def _cluster_folders(path: Path) -> Iterator[tuple[Split, Path]]:
    """(split, folder) of every cluster, in order of names."""
    for folder in _sub_folders(path):
        checked_path(folder)
        split = SPLIT_NAMES.get(folder.name)
        if split is None or _texts(folder):  # a cluster may be called "test"
            yield hashed_split(folder.name), folder
        else:
            yield from ((split, cluster) for cluster in _sub_folders(folder))


def _sub_folders(path: Path) -> list[Path]:
    return [entry for entry in entries(path) if entry.is_dir()]


def _texts(folder: Path) -> list[Path]:
    return [entry for entry in entries(folder) if _is_text(entry)]


def _is_text(entry: Path) -> bool:
    return entry.is_file() and plain_name(entry).lower().endswith(_ENDING)


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


ENDINGS = (".src", ".src.cleaned")
_SEPARATOR = re.compile(r"\|{5}|story_separator_special_tag")
_LINE_BREAK = "NEWLINE_CHAR"


def is_multi_news_name(path: str | Path) -> bool:
    """True for `*.src` and `*.src.cleaned`, compressed or not."""
    return plain_name(path).endswith(ENDINGS)


def multi_news_files(folder: str | Path, *, split: Split | None = None) -> list[Path]:
    """The files of a folder with the clusters of `split` (None: of all), by name; [] if there are none.

    Raises:
        DataError: two files for the same split, such as `train.txt.src` beside `train.txt.src.cleaned`.
    """
    found: dict[Split, Path] = {}
    for path in entries(folder):
        own_split = SPLIT_NAMES.get(plain_stem(path))
        if own_split is None or not path.is_file() or not is_multi_news_name(path):
            continue
        if own_split in found:
            what = f"{found[own_split].name} and {path.name} both hold the {own_split} split"
            raise DataError(folder, what, "give the path of one file, or move the other away", field="folder")
        found[own_split] = path
    return [path for own_split, path in found.items() if split in (None, own_split)]


def read_multi_news(path: str | Path, *, split: Split | None = None) -> Iterator[Cluster]:
    """Clusters of a folder of official files, or of a single file; `split` None for those of every split.

    The names in a folder say the split; clusters of a single file are split 90/5/5 by a hash of their ids
    (`train-0` for the first line of `train.txt.src`).

    Raises:
        DataError: a folder without a file for the split, a file without any separator, and as
            `files.read_lines`.
    """
    path = Path(path)
    if not path.is_dir():
        clusters = _read_file(path)
        yield from (cluster for cluster in clusters if split in (None, hashed_split(cluster.id)))
        return
    files = multi_news_files(path, split=split)
    if not files:
        name = {"validation": "val", None: "train"}.get(split, split)
        what = f"no file for the split {split}" if split else "no file for any split"
        raise DataError(path, what, f"put {name}.txt.src there", field="folder")
    for file in files:
        yield from _read_file(file)


def _read_file(path: Path) -> Iterator[Cluster]:
    separated = False
    for number, line in read_lines(path):
        cluster_id = f"{plain_stem(path)}-{number - 1}"
        pieces = _SEPARATOR.split(line)
        separated = separated or len(pieces) > 1
        if len(pieces) > 1 and not pieces[-1].strip():
            pieces.pop()
        documents = tuple(
            Document(id=f"{cluster_id}-{index}", text=_with_line_breaks(piece))
            for index, piece in enumerate(pieces)
        )
        yield Cluster(id=cluster_id, documents=documents)
    if not separated:
        remedy = "separate the documents of a line with ||||| or story_separator_special_tag"
        raise DataError(path, "no line has more than one document", remedy, field="separator")


def _with_line_breaks(piece: str) -> str:
    return "\n".join(line.strip(" \t") for line in piece.split(_LINE_BREAK)).strip()


_TITLE, _ARTICLE, _SEPARATOR_NEWS_CLUSTERS = "TITLE=>", "ARTICLE=>", "[SEP]"
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
            for index, piece in enumerate(line.split(_SEPARATOR_NEWS_CLUSTERS))
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
            remedy = (
                f"write {_TITLE} title {_ARTICLE} text, with {_SEPARATOR_NEWS_CLUSTERS} between documents"
            )
            what = f"no {mark} where one belongs"
            raise DataError(path, what, remedy, line=line, field=f"document {index + 1}")
    text = _title_and_body(title.strip(), body.strip())
    return Document(id=document_id, text=text, title=title.strip())


def _title_and_body(title: str | None, body: str) -> str:
    """What a model reads: the title as first line; neither part leaves a blank line if it is empty."""
    return "\n".join(part for part in (title, body) if part)


STORYWORLD = "storyworld"
SHAPES = (
    "storyworld (the embedded corpus)",
    "a folder of folders of .txt (one sub-folder = one cluster)",
    'a .jsonl of clusters ({"id": ..., "documents": [...]}; also .jsonl.gz, .jsonl.xz)',
    "Multi-News (a folder of train/val/test.txt.src, or one .src file)",
    "a folder or file of news clusters (allsides_*.jsonl, neus_*.source)",
    "the ECB+ folder",
    "a folder in Doc-ARC's format (train, dev and test with a .tsv for each document)",
    "a folder with CL-SciSumm or ScisummNet (cl_scisumm_2018.tar.xz, scisummnet_2019.tar.xz, or unpacked)",
)
_SHARES = "where a corpus has no splits, 1 cluster in 20 is for validation and 1 in 20 for test"
READERS_VERSION = "1"  # part of every checksum; raise it when a reader makes other texts of the same files


@dataclass(frozen=True, slots=True)
class CorpusFormat:
    """How to read a path.

    Attributes:
        name: for messages and reports.
        read: (path, split=) -> its clusters.
        files: (path, split=) -> the files these come from.
        others: path -> files of the folder that are not read and look as if they were meant to be.
    """

    name: str
    read: Callable[..., Iterator[Cluster]]
    files: Callable[..., Iterable[Path]]
    others: Callable[[Path], list[Path]] = lambda path: []


def open_corpus(corpus: str, *, split: Split, size: int = 0, seed: int = 0) -> Iterator[Cluster]:
    """Clusters of one split, one at a time.

    Args:
        corpus: "storyworld", or a path to one of SHAPES.
        size: at most so many, the first ones; 0 = all (storyworld has no end and needs a number).
        seed: of storyworld; files are read in their own order.

    Raises:
        ValueError: `split` or `size` make no sense. Raised here, before anything is read, as is the next.
        DataError: the path does not exist or is none of SHAPES; while reading: what the readers raise, or the
            split has no cluster.
    """
    _check(corpus, split, size)
    if corpus == STORYWORLD:
        from cdlm_lab.data.storyworld.stories import (
            stories,  # the word stock is large, and only this branch needs it
        )

        return (story.cluster for story in stories(seed=seed, split=split, stop=size))
    return _read(_path(corpus), detect_format(corpus), split, size)


def corpus_checksum(corpus: str, *, split: Split, size: int = 0, seed: int = 0) -> str:
    """SHA-256 (hexadecimal) that names what `open_corpus` yields for the same arguments.

    Over the bytes and names of the split's files, or over storyworld's generator version and seed; and over
    split and size. Where the folder lies does not matter.

    Raises:
        ValueError, DataError: as `open_corpus`, less faults inside the files.
    """
    _check(corpus, split, size)
    if corpus == STORYWORLD:
        from cdlm_lab.data.storyworld.stories import GENERATOR_VERSION

        return _digest([STORYWORLD, GENERATOR_VERSION, str(seed), split, str(size)])
    path, found = _path(corpus), detect_format(corpus)
    parts = [found.name, READERS_VERSION, split, str(size)]
    for file in found.files(path, split=split):
        parts += [file.relative_to(path).as_posix() if path.is_dir() else file.name, sha256_of_file(file)]
    return _digest(parts)


def passed_over(corpus: str) -> list[str]:
    """Files in a folder of clusters that `open_corpus` does not read, by their paths in it: those that are no
    texts, and texts outside of the clusters. Raises as `open_corpus`."""
    if corpus == STORYWORLD:
        return []
    path = _path(corpus)
    return [other.relative_to(path).as_posix() for other in detect_format(corpus).others(path)]


def detect_format(corpus: str | Path) -> CorpusFormat:
    """The format of a path, by its name, its entries or its first record.

    Raises:
        DataError: there is no such path, or it is none of SHAPES.
    """
    path = _path(corpus)
    if not path.exists():
        raise DataError(path, "no such file or folder", f"give {' | '.join(SHAPES)}", field="corpus")
    found = _folder_format(path) if path.is_dir() else _file_format(path)
    if found is None:
        what = "not a corpus that can be read"
        if path.is_dir() and any(path.glob("*.txt")):
            what += " (its .txt files must lie in sub-folders, one for each cluster)"
        raise DataError(path, what, f"give {' | '.join(SHAPES)}", field="corpus")
    return found


def _path(corpus: str | Path) -> Path:
    if not str(corpus).strip():
        raise ValueError(f"corpus is {str(corpus)!r}; give {' | '.join(SHAPES)}")
    return home_path(corpus)


def _folder_format(path: Path) -> CorpusFormat | None:
    if news_files(path):
        return CorpusFormat("news_clusters", read_news_clusters, news_files)
    if multi_news_files(path):
        return CorpusFormat("multi_news", read_multi_news, multi_news_files)
    if ecb_plus_files(path):
        return CorpusFormat("ecb_plus", read_ecb_plus_topics, ecb_plus_files)
    if scisumm_files(path):
        return CorpusFormat("scisumm", read_scisumm_corpus, scisumm_files)
    if is_cluster_folder(path):
        return CorpusFormat("cluster_folder", read_cluster_folder, cluster_files, other_files)
    return CorpusFormat("docarc", read_docarc_passages, docarc_files) if is_docarc_folder(path) else None


def _file_format(path: Path) -> CorpusFormat | None:
    if is_neus_name(path):
        return CorpusFormat("news_clusters", read_neus, _only_file)
    if is_multi_news_name(path):
        return CorpusFormat("multi_news", read_multi_news, _only_file)
    if not plain_name(path).endswith(".jsonl"):
        return None
    if "docs" in next(read_json_lines(path)).fields:
        return CorpusFormat("news_clusters", read_allsides, _only_file)
    return CorpusFormat("cluster_jsonl", read_cluster_jsonl, _only_file)


def _read(path: Path, found: CorpusFormat, split: Split, size: int) -> Iterator[Cluster]:
    empty = True
    for cluster in islice(found.read(path, split=split), size or None):
        empty = False
        yield cluster
    if empty:
        remedy = f"choose another split, or add clusters ({_SHARES})"
        raise DataError(path, f"no cluster of the split {split}", remedy, field="split")


def _only_file(path: Path, *, split: Split) -> list[Path]:
    """A single file holds all splits."""
    return [path]


def _check(corpus: str, split: str, size: int) -> None:
    check_split(split)
    if size < 0:
        raise ValueError(f"size is {size}; write 0 for all clusters, or how many at most")
    if corpus == STORYWORLD and size == 0:
        raise ValueError("size is 0, but storyworld has no end; write how many clusters to make")


def _digest(parts: list[str]) -> str:
    # Each part with its length, so that no two lists of parts give the same bytes.
    return hashlib.sha256("".join(f"{len(part)}:{part}" for part in parts).encode("utf-8")).hexdigest()


LEAST_CHARACTERS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraphed:
    """A document as paragraphs of sentences, both in order; no paragraph is empty, but there may be none."""

    id: str
    paragraphs: tuple[tuple[str, ...], ...]


def paragraph_documents(corpus: str, split: Split, *, size: int = 0, seed: int = 0) -> Iterator[Paragraphed]:
    """The documents of a corpus's clusters, one at a time, those without a paragraph too.

    Args:
        corpus, split, size, seed: as of `corpus.open_corpus`; size counts clusters.

    Raises:
        ValueError, DataError: as `corpus.open_corpus`.
    """
    clusters = open_corpus(corpus, split=split, size=size, seed=seed)
    return (paragraphed(document) for cluster in clusters for document in cluster.documents)


def paragraphed(document: Document) -> Paragraphed:
    """The paragraphs of a text, white space made single; a sentence over a line break stays where it starts.

    The title is left out if the text begins with it as a line of its own.

    Example:
        >>> text = "Fire in mill\\nA mill burned down. Nobody was hurt in it.\\n\\nToo short.\\n"
        >>> paragraphed(Document(id="a", title="Fire in mill", text=text)).paragraphs
        (('Nobody was hurt in it.',),)
    """
    body = _after_title(document)
    found = _given_sentences(document, body) if document.sentences else _split_lines(document.text[body:])
    paragraphs = (
        tuple(plain for sentence in sentences if len(plain := " ".join(sentence.split())) >= LEAST_CHARACTERS)
        for sentences in found
    )
    return Paragraphed(id=document.id, paragraphs=tuple(filter(None, paragraphs)))


def _after_title(document: Document) -> int:
    """Where the text goes on after a first line that is the title; 0 if it is not."""
    title, text = document.title, document.text
    return len(title) if title and (text == title or text.startswith(f"{title}\n")) else 0


def _split_lines(text: str) -> Iterator[list[str]]:
    # At "\n" alone: news texts hold U+2028 and U+0085 within sentences.
    return (split_sentences(line) for line in text.split("\n"))


def _given_sentences(document: Document, body: int) -> Iterator[list[str]]:
    """The source's sentences that start at `body` or later, by the line in which they start."""
    text = document.text
    breaks = [place for place, character in enumerate(text) if character == "\n"]
    spans = (span for span in document.sentences if span[0] >= body)
    for _, line in groupby(spans, key=lambda span: bisect_right(breaks, span[0])):
        yield [text[start:end] for start, end in line]
