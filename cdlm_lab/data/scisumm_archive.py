"""Files of CL-SciSumm and ScisummNet, from `.tar.xz` archives as they are streamed, or from unpacked folders.

Nothing is written to the disk, so that no member of an archive can end up anywhere.
"""

from __future__ import annotations

import lzma
import tarfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from cdlm_lab.data.files import DataError, checked_path, open_bytes
from cdlm_lab.data.scisumm_papers import decode

TASK, NET = "cl_scisumm_2018", "scisummnet_2019"
TRAINING, TEST, GOLD = "Training-Set-2018", "Test-Set-2018", "Test-Set-2018-Gold"
Place = tuple[str, str]  # set of data, name of a reference paper's folder in it

_MAX_FILE = 1 << 26  # bytes; the longest paper has 0.6 MB
_MAX_TOTAL = 1 << 31
_MAX_MEMBERS = 200_000
_AGAIN = "copy or download it again"


class SciSummFiles:
    """What the archives of a folder hold, sorted by what it is.

    Attributes:
        root: the folder.
        papers: place, name and text of the papers by preference: reference papers come first.
        annotations: place -> path and text of the files that say which sentences cite.
        replaced: path -> how many byte sequences were not UTF-8; only files that have some.
        passed_over: files (path: why) that should have been read, but are links or no files at all.

    Raises:
        DataError: as `read_collection`, neither collection is there, or one has no papers.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.replaced: dict[str, int] = {}
        self.passed_over: list[str] = []
        self.annotations: dict[Place, list[tuple[str, str]]] = {}
        references: list[tuple[Place, str, str]] = []
        citing: list[tuple[Place, str, str]] = []
        found = False
        for collection in (TASK, NET):
            members = read_collection(root, collection, wanted=partial(_kind, collection))
            found, before = found or members is not None, len(references) + len(citing)
            for name, content in members or ():
                where = root / collection / name
                if content is None:
                    self.passed_over.append(f"{where}: a link, or no file")
                    continue
                place, kind = _place(collection, name), _kind(collection, name)
                text, count = decode(content)
                if count:
                    self.replaced[str(where)] = count
                if kind == "annotation":
                    self.annotations.setdefault(place, []).append((str(where), text))
                else:
                    (references if kind == "Reference_XML" else citing).append((place, name, text))
            if members is not None and len(references) + len(citing) == before:
                links = f"; {len(self.passed_over)} links are passed over" if self.passed_over else ""
                raise DataError(root / collection, f"no papers in it{links}", _AGAIN, field="collection")
        if not found:
            remedy = f"put {TASK}.tar.xz or {NET}.tar.xz there"
            raise DataError(root, "neither archives nor folders of CL-SciSumm", remedy, field="folder")
        for files in self.annotations.values():
            files.sort()
        order = (TRAINING, TEST, NET)
        self.papers = [
            paper
            for kind in (references, citing)
            for paper in sorted(kind, key=lambda p: (order.index(p[0][0]), p))
        ]

    def folder_of(self, place: Place) -> Path:
        """Where the files of a reference paper are."""
        return self.root / (NET if place[0] == NET else TASK / Path(place[0])) / place[1]


def read_collection(
    root: Path, name: str, *, wanted: Callable[[str], str]
) -> Iterator[tuple[str, bytes | None]] | None:
    """Names below the collection's own folder, as "Test-Set-2018/A00-2018/...", and contents of its files,
    None of a link and of whatever else is no file.

    Files of an archive come in its order, those of a folder by name.

    Args:
        root: folder with `{name}.tar.xz` or, where that is not, the folder `{name}`; None if it has neither.
        wanted: what a file is, by its name; those of which it says "" are not read.

    Raises:
        DataError: a damaged archive, a member outside the collection's folder or with a name that is not
            UTF-8, too many of them, a file that is too large or cannot be read.
    """
    if (archive := root / f"{name}.tar.xz").is_file():
        return _from_archive(archive, name, wanted)
    folder = root / name
    return _from_folder(folder, wanted) if folder.is_dir() else None


def _from_archive(
    archive: Path, folder: str, wanted: Callable[[str], str]
) -> Iterator[tuple[str, bytes | None]]:
    try:
        # Of a stream that it opens itself, tarfile takes a cut for the end.
        with open_bytes(archive) as packed:
            stream = _Bounded(packed, archive)
            with tarfile.open(fileobj=stream, mode="r|") as members:  # type: ignore[call-overload]
                for number, member in enumerate(members):
                    name = _name_in(archive, member.name, folder)
                    if member.size > _MAX_FILE or number >= _MAX_MEMBERS:
                        what = f"{member.name!r} is too large ({member.size} bytes), or member {number + 1:,}"
                        raise DataError(archive, what, _AGAIN, field="archive")
                    stream.since_last = 0
                    if wanted(name):
                        file = members.extractfile(member) if member.isreg() else None
                        yield name, file and file.read()
            while stream.read(_MAX_FILE):
                pass
    except (tarfile.TarError, lzma.LZMAError, EOFError, OSError) as error:
        raise DataError(archive, f"the archive is damaged ({error})", _AGAIN, field="archive") from None


class _Bounded:
    """A stream of which no more is read than files of the size allowed have: an archive can ask for a name
    of gigabytes."""

    def __init__(self, stream: IO[bytes], archive: Path) -> None:
        self.stream, self.archive = stream, archive
        self.total = self.since_last = 0

    def read(self, size: int) -> bytes:
        """The next bytes. Raises DataError if there are too many of them."""
        data = self.stream.read(size)
        self.total, self.since_last = self.total + len(data), self.since_last + len(data)
        if self.total > _MAX_TOTAL or self.since_last > 2 * _MAX_FILE:
            what = f"more than {2 * _MAX_FILE:,} bytes between two files, or {_MAX_TOTAL:,} in all"
            raise DataError(self.archive, what, _AGAIN, field="archive")
        return data


def _name_in(archive: Path, name: str, folder: str) -> str:
    checked_path(archive / name)
    parts = PurePosixPath(name).parts
    if parts[:1] != (folder,) or ".." in parts:
        what = f"member {name[:200]!r} lies outside the folder {folder}"
        raise DataError(archive, what, _AGAIN, field="archive")
    return "/".join(parts[1:])


def _from_folder(folder: Path, wanted: Callable[[str], str]) -> Iterator[tuple[str, bytes | None]]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not wanted(name):
            continue
        if path.is_symlink() or not path.is_file():
            yield name, None
            continue
        with open_bytes(path) as stream:
            content = stream.read(_MAX_FILE + 1)
        if len(content) > _MAX_FILE:
            raise DataError(path, f"the file is too large (over {_MAX_FILE:,} bytes)", _AGAIN)
        yield name, content


def _kind(collection: str, name: str) -> str:
    """Reference_XML, Citance_XML, annotation, or "" for what is not read."""
    parts = name.split("/")
    if collection == NET:
        if len(parts) == 3 and parts[1] == "Reference_XML" and name.endswith(".xml"):
            return parts[1]
        return "annotation" if len(parts) == 2 and parts[1] == "citing_sentences.json" else ""
    if parts[0] == GOLD:
        return "annotation" if len(parts) == 3 and parts[1] == "Task1" and name.endswith(".csv") else ""
    if parts[0] not in (TRAINING, TEST) or len(parts) != 4:
        return ""
    if parts[2] in ("Reference_XML", "Citance_XML") and name.endswith(".xml"):
        return parts[2]
    ending = ".txt" if parts[0] == TRAINING else ".csv"
    return "annotation" if parts[2] == "annotation" and name.endswith(ending) else ""


def _place(collection: str, name: str) -> Place:
    """The set of data and reference paper that a file belongs to."""
    parts = name.split("/")
    if collection == NET:
        return NET, parts[0]
    if parts[0] == GOLD:
        return TEST, parts[-1].partition("_")[0].removesuffix(".csv")
    return parts[0], parts[1]
