"""Readers of clusters of related documents for pre-training: the embedded corpus by name, others by path.

The format of a path is recognised by file names, folder entries or the first record; SHAPES lists all. Where
a corpus has no splits, a hash of each cluster's id decides (90/5/5); few clusters are dealt so that each
split has one. Clusters keep the order of the files.
Clusters of one document and empty documents are yielded; tokenising the corpus drops and counts them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field

from cdlm_lab.data import files
from cdlm_lab.data.convert.ecb_plus import ecb_plus_files, read_ecb_plus_topics
from cdlm_lab.data.convert.scisumm import read_scisumm_corpus, scisumm_files
from cdlm_lab.data.convert.tagged import docarc_files, read_docarc_passages
from cdlm_lab.data.files import DataError, FieldFault, Fields, Text, entries, plain_name, read_lines
from cdlm_lab.data.records import Cluster, Document, Paragraphed
from cdlm_lab.data.rows import HUB, rows_by_split
from cdlm_lab.data.splits import SPLIT_NAMES, SPLITS, Split, dealt, hashed_split
from cdlm_lab.data.words import split_sentences
from cdlm_lab.errors import check_choice

STORYWORLD = "storyworld"
SHAPES = (
    "storyworld (the embedded corpus)",
    "a folder of folders of .txt (one sub-folder = one cluster)",
    'a .jsonl of clusters ({"id": ..., "documents": [...]}; also .jsonl.gz, .jsonl.xz)',
    'Multi-News (a folder of train/val/test.txt.src, or one .src file; or rows of {"document": ...}, '
    "hub:owner/name or a folder of parquet, JSON lines or save_to_disk)",
    "a folder or file of news clusters (allsides_*.jsonl)",
    "the ECB+ folder",
    "a folder in Doc-ARC's format (train, dev and test with a .tsv for each document)",
    "a folder with CL-SciSumm or ScisummNet (cl_scisumm_2018.tar.xz, scisummnet_2019.tar.xz, or unpacked)",
)
READERS_VERSION = "1"  # part of every checksum; raise it when a reader makes other texts of the same files
LEAST_CHARACTERS = 20  # minimum length of a sentence in a paragraph
_SHARES_OF = {"train": 0.90, "validation": 0.05, "test": 0.05}
_FEW = 50  # clusters of a file; up to so many, each split has at least one of them
_SHARES = "where a corpus has no splits, 1 cluster in 20 is for validation and 1 in 20 for test"


class CorpusFormat(NamedTuple):
    """How to read a path: `read(path, split=)` yields clusters, `files(path, split=)` the files they come
    from (without split, of all splits), and `others(path)` the files of a folder that are ignored, perhaps by
    mistake."""

    name: str
    read: Callable[..., Iterator[Cluster]]
    files: Callable[..., Iterable[Path]] = lambda path, split: [path]  # a file that holds all splits
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
    """SHA-256 (hexadecimal) that identifies what `open_corpus` yields for the same arguments: over names and
    bytes of the split's files, wherever the folder lies, or over storyworld's generator version and seed."""
    _check(corpus, split, size)
    if corpus == STORYWORLD:
        from cdlm_lab.data.storyworld.stories import GENERATOR_VERSION

        parts = [STORYWORLD, GENERATOR_VERSION, str(seed), split, str(size)]
        return files.sha256_of_parts([*parts, *(["by topic"] if by_topic else [])])
    path, form = _path(corpus), detect_format(corpus)
    parts = [form.name, READERS_VERSION, split, str(size)]
    parts += [corpus] if corpus.startswith(HUB) else []  # its revision is part of the name
    for file in form.files(path, split=split):
        name = file.relative_to(path).as_posix() if path.is_dir() else file.name
        parts += [name, files.sha256_of_file(file)]
    return files.sha256_of_parts(parts)


def passed_over(corpus: str) -> list[str]:
    """Relative paths of files in a folder of clusters that are not read: no texts, or outside clusters."""
    if corpus == STORYWORLD:
        return []
    path = _path(corpus)
    return [other.relative_to(path).as_posix() for other in detect_format(corpus).others(path)]


def detect_format(corpus: str | Path) -> CorpusFormat:
    """The format of a path. Raises DataError if the path does not exist or has none of SHAPES."""
    path = _path(corpus)
    if str(corpus).startswith(HUB):
        return _ROWS
    if not path.exists():
        raise DataError(path, "no such file or folder", f"give {' | '.join(SHAPES)}", field="corpus")
    of_folder = (form for form in _OF_FOLDERS if any(form.files(path)))
    if form := next(of_folder, None) if path.is_dir() else _file_format(path):
        return form
    what = "not a corpus that can be read"
    if path.is_dir() and any(path.glob("*.txt")):
        what += " (its .txt files must lie in sub-folders, one for each cluster)"
    raise DataError(path, what, f"give {' | '.join(SHAPES)}", field="corpus")


def _file_format(path: Path) -> CorpusFormat | None:
    if _is_multi_news(path):
        return CorpusFormat("multi_news", read_multi_news)
    if not plain_name(path).endswith(".jsonl"):
        return None
    if "docs" in next(files.read_json_lines(path)).fields:
        return CorpusFormat("news_clusters", read_allsides)
    return CorpusFormat("cluster_jsonl", read_cluster_jsonl)


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


# A user's own texts: a folder for each cluster.


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


def cluster_files(path: Path, split: Split | None = None) -> Iterator[Path]:
    """The text files of the clusters of `split` (None = of all splits), in order."""
    for own_split, cluster in _cluster_folders(path):
        if split in (None, own_split):
            yield from _texts(cluster)


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
    split_of = dealt([one.name for one in loose], _SHARES_OF)
    for folder in folders:
        if folder in loose:
            yield split_of[folder.name], folder  # type: ignore[misc]
        else:
            split = named[folder]
            yield from ((split, cluster) for cluster in entries(folder) if cluster.is_dir())


def _texts(folder: Path) -> list[Path]:
    return [entry for entry in entries(folder) if _is_text(entry)]


def _is_text(entry: Path) -> bool:
    return entry.is_file() and plain_name(entry).lower().endswith(".txt")


# JSON lines: a user's own, and news articles on one event.


def _as_split(name: str) -> Split:
    if name not in SPLIT_NAMES:
        raise FieldFault(f"{name!r} is not a split", "write train, validation or test, or leave it out")
    return SPLIT_NAMES[name]


_AS_DOCUMENT = BeforeValidator(lambda item: {"text": item} if isinstance(item, str) else item)


class _Document(Fields):
    id: Text | None = None
    title: Text | None = None
    text: Text


class _Article(_Document):
    id: Text


class _Cluster(Fields):
    id: Text
    documents: list[Annotated[_Document, _AS_DOCUMENT]] = Field(
        min_length=1, description='write each as a text in quotes, or {"text": "..."}'
    )
    split: Annotated[Text, AfterValidator(_as_split)] | None = None


class _Event(_Cluster):
    id: Text = Field(alias="cluster_id")
    documents: list[_Article] = Field(alias="docs", min_length=1)


def read_cluster_jsonl(path: Path, split: Split) -> Iterator[Cluster]:
    """Yield the clusters of a user's own JSON-lines file, one on each line, in order.

        {"id": "flood", "split": "test",
         "documents": ["Text.", {"id": "b", "title": "Title", "text": "Text."}]}

    A title becomes the first line of what the model reads. Documents without an id are numbered from 0.
    Without "split", a hash of the id decides.
    """
    return _read_records(path, split, _Cluster, otherwise=_split_of_few(path))


def _split_of_few(path: Path) -> Callable[[str], Split]:
    """How a file's clusters are split: by a hash, which `dealt` corrects if there are few of them."""
    try:
        ids = [str(record.fields.get("id")) for record in islice(files.read_json_lines(path), _FEW + 1)]
    except DataError:  # is raised when the record is read
        return hashed_split
    return dealt(ids, _SHARES_OF).__getitem__ if len(ids) <= _FEW else hashed_split  # type: ignore[return-value]


def read_allsides(path: Path, split: Split) -> Iterator[Cluster]:
    """Yield clusters of full news articles from AllSides, one event per line; records without a split (those
    of `allsides_weak_clusters`) belong to train.

        {"cluster_id": "a", "split": "train", "docs": [{"id": "b", "title": "Title", "text": "Text."}]}
    """
    return _read_records(path, split, _Event, otherwise=lambda cluster_id: "train")


def _read_records(
    path: Path, split: Split, kind: type[_Cluster], *, otherwise: Callable[[str], Split]
) -> Iterator[Cluster]:
    """Yield the clusters of a split. `otherwise`: id of a cluster -> its split, if the record has none."""
    field = kind.model_fields["documents"].alias or "documents"
    for record in files.read_json_lines(path, kind, unique="id"):
        documents: dict[str, Document] = {}
        for index, one in enumerate(record.fields.documents):
            name = str(index) if one.id is None else one.id
            if name in documents:
                what, remedy = f"{name!r} is in this cluster already", "give every document its own id"
                raise record.error(f"{field}[{index}].id", what, remedy)
            documents[name] = Document(id=name, text=_headed(one.title, one.text), title=one.title)
        if not any(document.text.strip() for document in documents.values()):
            raise record.error(field, "no document has any text", "fill one in, or delete the line")
        if split == (record.fields.split or otherwise(record.fields.id)):
            yield Cluster(id=record.fields.id, documents=tuple(documents.values()))


def _headed(title: str | None, body: str) -> str:
    """The text with the title as its first line; an empty title or body leaves no blank line."""
    return "\n".join(part for part in (title, body) if part)


def read_news_clusters(folder: Path, split: Split) -> Iterator[Cluster]:
    """Yield the clusters of all files of AllSides in a folder (`allsides_*.jsonl`), in order."""
    for file in news_files(folder):
        yield from read_allsides(file, split)


def news_files(folder: Path, split: Split | None = None) -> list[Path]:
    """The files of AllSides in a folder, sorted; each may hold clusters of any split."""
    present = (path for path in entries(folder) if path.is_file())
    return [path for path in present if re.match(r"allsides_.*\.jsonl$", plain_name(path))]


_SEPARATOR = re.compile(r"\|{5}|story_separator_special_tag")


def read_multi_news(path: Path, split: Split) -> Iterator[Cluster]:
    """Multi-News (Fabbri et al. 2019): a folder with `train.txt.src`, `val.txt.src` and `test.txt.src` (or
    `.src.cleaned`), or one such file, whose clusters are split by a hash of their ids (`train-0`).

    Each line is a cluster; `|||||` or `story_separator_special_tag` separates its documents. A separator at
    the end of a line begins no further document (in the released CDLM code it does). NEWLINE_CHAR tokens
    become line breaks. Empty documents and blank lines are kept, as the summaries go by line number.
    """
    if not path.is_dir():
        yield from (cluster for cluster in _read_file(path) if hashed_split(cluster.id) == split)
    elif present := multi_news_files(path, split=split):
        yield from _read_file(present[0])
    else:
        remedy = f"put {'val' if split == 'validation' else split}.txt.src there"
        raise DataError(path, f"no file for the split {split}", remedy, field="folder")


def _is_multi_news(path: Path) -> bool:
    return plain_name(path).endswith((".src", ".src.cleaned"))


def multi_news_files(folder: Path, split: Split | None = None) -> list[Path]:
    """The files of a folder with the clusters of `split` (None = of all), by name; [] if there are none."""
    present: dict[Split, Path] = {}
    for path in entries(folder):
        own_split = SPLIT_NAMES.get(files.plain_stem(path))
        if own_split is None or not path.is_file() or not _is_multi_news(path):
            continue
        if own_split in present:
            what = f"{present[own_split].name} and {path.name} both hold the {own_split} split"
            raise DataError(folder, what, "give the path of one file, or move the other away", field="folder")
        present[own_split] = path
    return [path for own_split, path in present.items() if split in (None, own_split)]


def _read_file(path: Path) -> Iterator[Cluster]:
    separated = False
    for number, line in read_lines(path):
        cluster_id = f"{files.plain_stem(path)}-{number - 1}"
        pieces = _SEPARATOR.split(line)
        separated = separated or len(pieces) > 1
        if len(pieces) > 1 and not pieces[-1].strip():
            pieces.pop()
        texts = ("\n".join(part.strip(" \t") for part in piece.split("NEWLINE_CHAR")) for piece in pieces)
        documents = (Document(id=f"{cluster_id}-{n}", text=text.strip()) for n, text in enumerate(texts))
        yield Cluster(id=cluster_id, documents=tuple(documents))
    if not separated:
        remedy = "separate the documents of a line with ||||| or story_separator_special_tag"
        raise DataError(path, "no line has more than one document", remedy, field="separator")


def read_multi_news_rows(path: Path, split: Split) -> Iterator[Cluster]:
    """Multi-News as the hub has it, rows of {"document": "One. ||||| Two.", "summary": ...}, from anything
    that `rows_by_split` opens. Ids are the split and the number of the row, from 0."""
    rows = rows_by_split(str(path))
    if split not in rows:
        raise DataError(path, f"no rows of the split {split}", "add its file, or read another", field="split")
    for number, row in enumerate(rows[split]()):
        text = row.fields.get("document")
        if not isinstance(text, str):
            what, remedy = "no text", 'write {"document": "One text. ||||| Another one."}'
            raise row.error("document", what, remedy)
        texts = [one.strip() for one in _SEPARATOR.split(text.replace("NEWLINE_CHAR", "\n"))]
        while texts and not texts[-1]:
            texts.pop()
        name = f"{split}-{number}"
        documents = tuple(Document(id=f"{name}-{n}", text=one) for n, one in enumerate(texts))
        yield Cluster(id=name, documents=documents)


def row_files(path: Path, split: Split | None = None) -> list[Path]:
    """All files of a folder whose rows have a `document`; [] if it has no such rows."""
    rows = {} if str(path).startswith(HUB) else rows_by_split(path)
    first = next(chain.from_iterable(each() for each in rows.values()), None)
    if first is None or not isinstance(first.fields.get("document"), str):
        return []
    return sorted(file for file in path.rglob("*") if file.is_file() and not files.is_hidden(file, path))


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


_ROWS = CorpusFormat("multi_news_rows", read_multi_news_rows, row_files)
_OF_FOLDERS = (
    CorpusFormat("news_clusters", read_news_clusters, news_files),
    CorpusFormat("multi_news", read_multi_news, multi_news_files),
    CorpusFormat("ecb_plus", read_ecb_plus_topics, ecb_plus_files),
    CorpusFormat("scisumm", read_scisumm_corpus, scisumm_files),
    CorpusFormat("cluster_folder", read_cluster_folder, cluster_files, other_files),
    CorpusFormat("docarc", read_docarc_passages, docarc_files),
    _ROWS,
)
