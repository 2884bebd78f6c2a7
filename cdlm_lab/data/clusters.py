"""Clusters of related documents for pre-training: storyworld by name, all others by path.

Rows of clusters, one's own or published, are read as they lie, whatever they are written in
(`rows_by_split`); so are folders of texts and three corpora of several files. Where a corpus has no splits, a
hash of each cluster's id decides (90/5/5); few clusters are dealt so that each split has one. Clusters keep
the order of the files. Clusters of one document and empty documents are yielded; tokenising the corpus drops
and counts them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field

from cdlm_lab.data import files
from cdlm_lab.data.cache import STORYWORLD, fingerprint, hash_as_known
from cdlm_lab.data.convert.ecb_plus import ecb_plus_files, read_ecb_plus_topics
from cdlm_lab.data.convert.scisumm import collection_files, read_scisumm_corpus
from cdlm_lab.data.convert.tagged import book_files, read_passages
from cdlm_lab.data.files import DataError, FieldFault, Fields, JsonRecord, Text, entries, plain_name
from cdlm_lab.data.records import Cluster, Document, Paragraphed
from cdlm_lab.data.rows import HUB, Row, Rows, rows_by_split, rows_of
from cdlm_lab.data.splits import SHARES, SPLIT_NAMES, SPLITS, Split, dealt, hashed_split
from cdlm_lab.data.words import split_sentences
from cdlm_lab.errors import check_choice

SHAPES = (
    "storyworld (the embedded corpus)",
    "a folder of folders of .txt (one sub-folder = one cluster)",
    'rows of clusters, {"id": ..., "documents": [...]} (JSON lines, parquet, a folder of save_to_disk, '
    "hub:owner/name; a file, or train, dev and test)",
    'Multi-News (train/val/test.txt.src, one of them, or rows of {"document": ...})',
    "a folder or file of news clusters (allsides_*.jsonl)",
    "the ECB+ folder",
    "a folder in Doc-ARC's format (train, dev and test with a .tsv for each document)",
    "a folder with CL-SciSumm or ScisummNet (cl_scisumm_2018.tar.xz, scisummnet_2019.tar.xz, or unpacked)",
)
READERS_VERSION = "2"  # part of every checksum; raise it when a reader makes other texts of the same files
LEAST_CHARACTERS = 20  # minimum length of a sentence in a paragraph
_FEW = 50  # clusters of a file; up to so many, each split has at least one of them
_SHARES = "where a corpus has no splits, 1 cluster in 20 is for validation and 1 in 20 for test"


class CorpusFormat(NamedTuple):
    """How to read a path: `found(path)` is empty if it has another format, `read(path, split=)` yields
    clusters, and `others(path)` are the files of a folder that are ignored, perhaps by mistake."""

    name: str
    found: Callable[[Path], Any]
    read: Callable[..., Iterator[Cluster]]
    others: Callable[[Path], list[Path]] = lambda path: []


def open_corpus(
    corpus: str, *, split: Split, size: int = 0, seed: int = 0, by_topic: bool = False
) -> Iterator[Cluster]:
    """Yield the clusters of one split, one at a time.

    `corpus`: "storyworld", or a path to one of SHAPES. `size`: only so many clusters, the first ones; 0 = all
    (storyworld has no end and needs a number). `seed`: of storyworld; files are read in their own order.
    `by_topic`: of storyworld, yield a digest of each story, with a paragraph per topic, and not its reports.
    Raises DataError if there is no such path or it is none of SHAPES; and, while reading, if a file is faulty
    or the split empty.
    """
    _check(corpus, split, size)
    if corpus == STORYWORLD:  # imported here, as its word stock is large
        from cdlm_lab.data.storyworld.stories import digest, stories

        if by_topic:
            digests = (digest(seed=seed, split=split, index=index) for index in range(size))
            return (Cluster(id=one.id, documents=(one,)) for one in digests)
        return (story.cluster for story in stories(seed=seed, split=split, stop=size))
    return _read(_path(corpus), detect_format(corpus), split, size)


def corpus_checksum(
    corpus: str, *, split: Split, size: int = 0, seed: int = 0, by_topic: bool = False
) -> str:
    """SHA-256 (hexadecimal) that identifies what `open_corpus` yields for the same arguments: over the
    `fingerprint` of the corpus and, of storyworld, the seed."""
    _check(corpus, split, size)
    parts = [str(size), split, READERS_VERSION]
    if corpus == STORYWORLD:
        parts += [str(seed), str(by_topic)]
    else:
        parts += [detect_format(corpus).name]
    return files.sha256_of_parts([*parts, fingerprint(corpus, of_file=hash_as_known)])


def passed_over(corpus: str) -> list[str]:
    """Relative paths of files in a folder of clusters that are not read: no texts, or outside clusters."""
    if corpus == STORYWORLD:
        return []
    path = _path(corpus)
    return [other.relative_to(path).as_posix() for other in detect_format(corpus).others(path)]


def detect_format(corpus: str | Path) -> CorpusFormat:
    """The format of a path. Raises DataError if the path does not exist or has none of SHAPES."""
    path = _path(corpus)
    in_hub = str(corpus).startswith(HUB)
    if not in_hub and not path.exists():
        raise DataError(path, "no such file or folder", f"give {' | '.join(SHAPES)}", field="corpus")
    for form in _OF_FOLDERS if path.is_dir() else [_ROWS]:
        if in_hub or form.found(path):
            return form
    what = "not a corpus that can be read"
    if path.is_dir() and any(path.glob("*.txt")):
        what += " (its .txt files must lie in sub-folders, one for each cluster)"
    raise DataError(path, what, f"give {' | '.join(SHAPES)}", field="corpus")


def _path(corpus: str | Path) -> Path:
    if not str(corpus).strip():
        raise ValueError(f"corpus is {str(corpus)!r}; give {' | '.join(SHAPES)}")
    return Path(corpus) if str(corpus).startswith(HUB) else files.home_path(corpus)


def _check(corpus: str, split: str, size: int) -> None:
    check_choice("split", split, SPLITS)
    if size < 0:
        raise ValueError(f"size is {size}; write 0 for all clusters, or how many at most")
    if corpus == STORYWORLD and size == 0:
        raise ValueError("size is 0, but storyworld has no end; write how many clusters to make")


def _read(path: Path, form: CorpusFormat, split: Split, size: int) -> Iterator[Cluster]:
    empty = True
    for cluster in islice(form.read(path, split=split), size or None):
        empty = False
        yield cluster
    if empty:
        remedy = f"choose another split, or add clusters ({_SHARES})"
        raise DataError(path, f"no cluster of the split {split}", remedy, field="split")


# ---- rows: one's own clusters, news of AllSides, Multi-News ----


def _as_split(name: str) -> Split:
    if name not in SPLIT_NAMES:
        raise FieldFault(f"{name!r} is not a split", "write train, validation or test, or leave it out")
    return SPLIT_NAMES[name]


class _Document(Fields):
    id: Text | None = None
    title: Text | None = None
    text: Text


class _Cluster(Fields):
    id: Text = Field(validation_alias=AliasChoices("id", "cluster_id"))
    documents: list[
        Annotated[_Document, BeforeValidator(lambda item: {"text": item} if isinstance(item, str) else item)]
    ] = Field(
        validation_alias=AliasChoices("documents", "docs"),
        min_length=1,
        description='write each as a text in quotes, or {"text": "..."}',
    )
    split: Annotated[Text, AfterValidator(_as_split)] | None = None


_SEPARATOR = re.compile(r"\|{5}|story_separator_special_tag")


def read_cluster_rows(path: Path, split: Split) -> Iterator[Cluster]:
    """Yield the clusters of a split, in order, from rows of one of these forms:

        {"id": "flood", "split": "test", "documents": ["Text.", {"id": "b", "title": "A", "text": "Text."}]}
        {"cluster_id": "a", "split": "train", "docs": [{"id": "b", "title": "A", "text": "Text."}]}
        {"document": "One text. ||||| Another one.", "summary": "..."}

    One's own: a title becomes the first line of what the model reads, documents without an id are numbered
    from 0. Full news articles of AllSides: records without a split (`allsides_weak_clusters`) belong to
    train. Multi-News (Fabbri et al. 2019), as the hub has it, and a line of its official files: `|||||` or
    `story_separator_special_tag` separates documents, but begins none at the end of a line (in the released
    CDLM code it does); NEWLINE_CHAR tokens become line breaks; empty documents are kept. Names of files tell
    the split, else rows do, else a hash of the ids.
    """
    found = rows_of_clusters(path)
    if split not in found and "" not in found:
        remedy = f"add its file, or read {' or '.join(found)}"
        raise DataError(path, f"no rows of the split {split}", remedy, field="split")
    whole = "" if split in found else _split_of_few(found[""])
    lines: dict[str, int] = {}
    separated = None
    for number, row in enumerate(found.get(split, found.get(""))()):
        if "document" in row.fields and "documents" not in row.fields:
            cluster, own_split = _of_multi_news(row, f"{split if split in found else 'row'}-{number}"), None
            separated = separated or len(cluster.documents) > 1
        else:
            cluster, own_split = _of_row(row, lines)
        if not whole or split == (own_split or whole(cluster.id)):
            yield cluster
    if separated is False:
        remedy = "separate the documents of a line with ||||| or story_separator_special_tag"
        raise DataError(path, "no line has more than one document", remedy, field="separator")


def _split_of_few(read: Rows) -> Callable[[str], Split]:
    """How clusters without splits are divided: by a hash, which `dealt` corrects if there are few of them."""
    try:
        some = [row.fields for row in islice(read(), _FEW + 1)]
    except DataError:  # is raised when the row is read
        return hashed_split
    if some and "docs" in some[0]:
        return lambda name: "train"
    few = len(some) <= _FEW and all("id" in fields for fields in some)
    return dealt([str(one["id"]) for one in some], SHARES).__getitem__ if few else hashed_split  # type: ignore[return-value]


def _of_row(row: Row, lines: dict[str, int]) -> tuple[Cluster, Split | None]:
    """The cluster of a row, and the split that it names. `lines`: id -> line of the earlier rows."""
    given = row.checked(_Cluster).fields
    of, field = ("cluster_id", "docs") if "docs" in row.fields else ("id", "documents")
    if (first := lines.setdefault(given.id, row.line)) != row.line:
        what = f"{given.id!r} stands in line {first} already"
        raise row.error(of, what, f"give each record its own {of}")
    documents: dict[str, Document] = {}
    for index, one in enumerate(given.documents):
        name = str(index) if one.id is None else one.id
        if name in documents:
            what, remedy = f"{name!r} is in this cluster already", "give every document its own id"
            raise row.error(f"{field}[{index}].id", what, remedy)
        text = "\n".join(part for part in (one.title, one.text) if part)
        documents[name] = Document(id=name, text=text, title=one.title)
    if not any(document.text.strip() for document in documents.values()):
        raise row.error(field, "no document has any text", "fill one in, or delete the line")
    return Cluster(id=given.id, documents=tuple(documents.values())), given.split


def _of_multi_news(row: Row, name: str) -> Cluster:
    text, name = row.fields["document"], row.fields.get("id", name)
    if not isinstance(text, str):
        what, remedy = "no text", 'write {"document": "One text. ||||| Another one."}'
        raise row.error("document", what, remedy)
    pieces = _SEPARATOR.split(text)
    if len(pieces) > 1 and not pieces[-1].strip():
        pieces.pop()
    texts = ("\n".join(part.strip(" \t") for part in piece.split("NEWLINE_CHAR")) for piece in pieces)
    documents = (Document(id=f"{name}-{n}", text=text.strip()) for n, text in enumerate(texts))
    return Cluster(id=name, documents=tuple(documents))


def rows_of_clusters(path: Path) -> dict[str, Rows]:
    """Split -> a function that yields its rows; {} if the path has none."""
    if str(path).startswith(HUB):
        return rows_by_split(str(path))
    if found := published_rows(path):
        return found
    rows = rows_by_split(path)
    first = next(chain.from_iterable(each() for each in rows.values()), None)
    return rows if first and {"document", "documents", "docs"} & {*first.fields} else {}


def published_rows(path: Path) -> dict[str, Rows]:
    """The same for files of these names: AllSides (`allsides_*.jsonl`), and the official ones of Multi-News
    (`train.txt.src`, or `.src.cleaned`), each line of which is a row; other files are not read."""
    present = [file for file in entries(path) if file.is_file()] if path.is_dir() else [path]
    if news := [file for file in present if re.match(r"allsides_.*\.jsonl$", plain_name(file))]:
        return {"": lambda: chain.from_iterable(map(rows_of, news))}
    found: dict[str, Rows] = {}
    for file in present:
        split = SPLIT_NAMES.get(files.plain_stem(file), "") if path.is_dir() else ""
        if (path.is_dir() and not split) or not plain_name(file).endswith((".src", ".src.cleaned")):
            continue
        if split in found:
            what = f"{file.name} is a second file of the {split} split"
            raise DataError(path, what, "give the path of one, or move the other away", field="folder")
        found[split] = partial(_lines, file)
    return found


def _lines(file: Path) -> Iterator[Row]:
    stem = files.plain_stem(file)
    for number, text in files.read_lines(file):
        fields = {"document": text, "id": f"{stem}-{number - 1}"}
        yield JsonRecord(path=file, line=number, fields=fields)


# ---- a user's own texts: a folder for each cluster ----


def read_cluster_folder(path: Path, split: Split) -> Iterator[Cluster]:
    """Yield the clusters of a folder, in order of their names.

        my_corpus/flood_in_the_valley/daily.txt, evening_post.txt, radio.txt
        my_corpus/harbour_strike/a.txt, b.txt

    Files end in `.txt` or `.TXT`, plain or compressed; an empty one beside others is an empty document.
    Clusters are dealt by their names, unless they lie in folders `train`, `validation` and `test`.
    """
    seen: dict[str, Path] = {}
    for own_split, folder in _cluster_folders(path):
        if (first := seen.setdefault(folder.name, folder)) != folder:
            what = f"{folder.relative_to(path)} and {first.relative_to(path)} have the same name"
            raise DataError(path, what, "rename one: the name is the id of the cluster", field="folder name")
        if own_split == split:
            yield _read_cluster(folder)


def other_files(path: Path) -> list[Path]:
    """What is not read: all files beside the clusters, within clusters everything that is no text, and hidden
    texts, such as copies that an editor leaves; other hidden files are not listed."""
    clusters = [folder for _, folder in _cluster_folders(path)]
    above = dict.fromkeys([path, *(folder.parent for folder in clusters)])
    beside = (entry for folder in above for entry in entries(folder) if not entry.is_dir())
    inside = (entry for folder in clusters for entry in entries(folder) if not _is_text(entry))
    return [*beside, *inside, *(text for folder in [*above, *clusters] for text in _hidden_texts(folder))]


def _hidden_texts(folder: Path) -> Iterator[Path]:
    for entry in sorted(entry for entry in folder.iterdir() if entry.name.startswith(".")):
        yield from filter(_is_text, sorted(entry.iterdir()) if entry.is_dir() else [entry])


def _read_cluster(folder: Path) -> Cluster:
    documents: dict[str, Document] = {}
    for file in _texts(folder):
        name = plain_name(file)[: -len(".txt")]
        if name in documents:
            what = f"another file of this folder is document {name!r} too"
            raise DataError(file, what, "keep one of them, or rename it", field="file name")
        documents[name] = Document(id=name, text=files.read_text(file, allow_empty=True).strip())
    if not documents:
        remedy = "put one .txt file for each document there, or remove the folder"
        raise DataError(folder, "a cluster without documents", remedy, field="folder")
    if not any(document.text for document in documents.values()):
        remedy = "fill its files, or remove the folder"
        raise DataError(folder, "no document has any text", remedy, field="folder")
    return Cluster(id=folder.name, documents=tuple(documents.values()))


def _cluster_folders(path: Path) -> Iterator[tuple[Split, Path]]:
    """Yield (split, folder) of every cluster, in the order of the names."""
    folders = list(filter(Path.is_dir, entries(path)))
    named = {one: SPLIT_NAMES.get(files.checked_path(one).name) for one in folders}
    loose = [one for one in folders if named[one] is None or _texts(one)]  # a cluster may be called "test"
    split_of = dealt([one.name for one in loose], SHARES)
    for folder in folders:
        if folder in loose:
            yield split_of[folder.name], folder  # type: ignore[misc]
        else:
            split = named[folder]
            yield from ((split, cluster) for cluster in entries(folder) if cluster.is_dir())


def _has_texts(path: Path) -> bool:
    return any(_texts(cluster) for _, cluster in _cluster_folders(path))


def _texts(folder: Path) -> list[Path]:
    return [entry for entry in entries(folder) if _is_text(entry)]


def _is_text(entry: Path) -> bool:
    return entry.is_file() and plain_name(entry).lower().endswith(".txt")


# ---- paragraphs ----


def paragraph_documents(
    corpus: str, split: Split, *, size: int = 0, seed: int = 0, by_topic: bool = False
) -> Iterator[Paragraphed]:
    """Yield the paragraphs of each document of the clusters of `open_corpus`, even if it has none."""
    clusters = open_corpus(corpus, split=split, size=size, seed=seed, by_topic=by_topic)
    return (paragraphed(document) for cluster in clusters for document in cluster.documents)


def paragraphed(document: Document) -> Paragraphed:
    """Divide a text into paragraphs for pre-training (MSPP paper, section 3.4), with single white space.

    A paragraph ends at a line break (the paper's code splits at blank lines, which many corpora do not have,
    and drops paragraphs under 60 characters and documents under 200). Sentences are the source's, else those
    of sentencex; one that crosses a line break belongs to the paragraph where it starts, and one of fewer
    than `LEAST_CHARACTERS` is dropped. A title that is the first line of the text is no paragraph.

    Example:
        >>> text = "Fire in mill\\nA mill burned down. Nobody was hurt in it.\\n\\nToo short.\\n"
        >>> paragraphed(Document(id="a", title="Fire in mill", text=text)).paragraphs
        (('Nobody was hurt in it.',),)
    """
    title, text = document.title, document.text
    start = len(title) if title and (text == title or text.startswith(f"{title}\n")) else 0
    # Split at "\n" alone: news texts have U+2028 and U+0085 within sentences.
    lines: Iterable[list[str]] = map(split_sentences, text[start:].split("\n"))
    if document.sentences:
        breaks = [place for place, character in enumerate(text) if character == "\n"]
        spans = (span for span in document.sentences if span[0] >= start)
        by_line = groupby(spans, key=lambda span: bisect_right(breaks, span[0]))
        lines = ([text[first:stop] for first, stop in members] for _, members in by_line)
    paragraphs = (
        tuple(plain for sentence in line if len(plain := " ".join(sentence.split())) >= LEAST_CHARACTERS)
        for line in lines
    )
    return Paragraphed(id=document.id, paragraphs=tuple(filter(None, paragraphs)))


_ROWS = CorpusFormat("rows", rows_of_clusters, read_cluster_rows)
_OF_FOLDERS = (
    CorpusFormat("rows", published_rows, read_cluster_rows),
    CorpusFormat("ecb_plus", ecb_plus_files, read_ecb_plus_topics),
    CorpusFormat("scisumm", collection_files, read_scisumm_corpus),
    CorpusFormat("cluster_folder", _has_texts, read_cluster_folder, other_files),
    CorpusFormat("docarc", book_files, read_passages),
    _ROWS,
)
