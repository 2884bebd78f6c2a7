"""A user's own texts: one sub-folder = one cluster, one `.txt` file in it = one document.

    my_corpus/
      flood_in_the_valley/   daily.txt  evening_post.txt  radio.txt
      harbour_strike/        a.txt  b.txt

Clusters go to train, validation and test by a hash of their name (90/5/5), unless the folder itself has
sub-folders `train`, `validation` and `test` that hold the clusters. A headline is the first line of a text.
Names that begin with a dot are passed over. So are files that are not `.txt` (`.TXT`, `.txt.gz`, `.txt.xz`)
or do not lie in a cluster, but these are named before a run and in its report (`other_files`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cdlm_lab.data.files import DataError, checked_path, entries, plain_name, read_text
from cdlm_lab.data.records import Cluster, Document
from cdlm_lab.data.splits import SPLIT_NAMES, Split, hashed_split

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
