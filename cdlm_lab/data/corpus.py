"""One way into every corpus: the embedded one by name, all others by path, whose format is recognised.

Where a corpus does not say which clusters are for training, a hash of their ids does (90/5/5,
`splits.hashed_split`). Clusters keep the order of the files; `size` takes the first ones. Clusters of one
document and empty documents pass: they are dropped and counted when the corpus is tokenised.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from cdlm_lab.data.cluster_folder import (
    cluster_files,
    is_cluster_folder,
    other_files,
    read_cluster_folder,
)
from cdlm_lab.data.cluster_jsonl import read_cluster_jsonl
from cdlm_lab.data.docarc_corpus import read_docarc_passages
from cdlm_lab.data.docarc_tsv import docarc_files, is_docarc_folder
from cdlm_lab.data.ecb_plus_topics import ecb_plus_files, read_ecb_plus_topics
from cdlm_lab.data.files import DataError, home_path, plain_name, sha256_of_file
from cdlm_lab.data.json_lines import read_json_lines
from cdlm_lab.data.multi_news import is_multi_news_name, multi_news_files, read_multi_news
from cdlm_lab.data.news_clusters import is_neus_name, news_files, read_allsides, read_neus, read_news_clusters
from cdlm_lab.data.records import Cluster
from cdlm_lab.data.scisumm_corpus import read_scisumm_corpus, scisumm_files
from cdlm_lab.data.splits import Split, check_split

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
        from cdlm_lab.data.storyworld import stories  # the word stock is large, and only this branch needs it

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
        from cdlm_lab.data.storyworld import GENERATOR_VERSION

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
