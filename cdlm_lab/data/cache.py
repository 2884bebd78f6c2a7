"""Where what is made of corpora is kept, converted records and tokenised texts; and the one fingerprint by
which data are told from other data."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import platformdirs
from filelock import FileLock

from cdlm_lab.data.files import DataError, replaced_folder, sha256_of_file, sha256_of_parts
from cdlm_lab.parameters import RUN_FILE, ParameterError, local_path
from cdlm_lab.progress import Progress

CACHE_VARIABLE = "CDLM_LAB_CACHE"  # of the environment
STORYWORLD = "storyworld"
_WATCHED = 1 << 30  # bytes from which hashing shows a bar
# What the system says of a folder in which nothing can be written; the last, that a file has its place.
_NOT_WRITTEN = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOTDIR}
_NOT_WRITTEN |= {errno.EEXIST}
Hash = Callable[[Path], str]


def cache_folder(given: str | Path = "") -> Path:
    """The folder of converted and tokenised corpora: `given`, else that of the environment's CDLM_LAB_CACHE,
    else `cdlm_lab` in the user's cache folder. Processes and machines may share it; it may be deleted."""
    if named := str(given) or os.environ.get(CACHE_VARIABLE):
        return Path(local_path(named, CACHE_VARIABLE))
    return platformdirs.user_cache_path("cdlm_lab")


def built_once(folder: Path, build: Callable[[Path], object], *, is_built: Callable[[Path], bool]) -> Path:
    """The folder; unless `is_built` says that it is there, `build` fills it first. One process builds while
    others wait, and the folder has its name only when it is complete. Errors of `build` pass through, and
    nothing is left behind. Raises ParameterError if the cache cannot be written."""
    try:
        if not is_built(folder):  # one that is may be in a cache that cannot be written
            folder.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(folder.with_name(f".{folder.name}.lock")):
                if not is_built(folder):
                    with replaced_folder(folder) as new:
                        build(new)
    except OSError as error:
        if error.errno not in _NOT_WRITTEN:
            raise
        what = f"{folder.parent}: the cache cannot be written ({os.strerror(error.errno)})"
        raise ParameterError(f"{what}; set {CACHE_VARIABLE} to a folder with free space") from error
    return folder


def fingerprint(name: str | os.PathLike[str], *, of_file: Hash = sha256_of_file) -> str:
    """A hash of data: SHA-256 of a file, or over the relative names and the bytes of all files of a folder
    that are not hidden and in no run; for `storyworld` the version of its generator, whose settings are
    parameters; for "hub:owner/name@revision" this name. Raises DataError if there is nothing of that name or
    it cannot be read."""
    if os.fspath(name).startswith("hub:"):
        return os.fspath(name)
    if os.fspath(name) in (STORYWORLD, f"{STORYWORLD} mentions"):
        from cdlm_lab.data.storyworld.stories import GENERATOR_VERSION  # its word stock is large

        return f"generator {GENERATOR_VERSION}"
    path = Path(name).expanduser()
    if path.is_file():
        return of_file(path)
    if not path.is_dir():
        raise DataError(path, "no such file or folder", "check the spelling of the path", field="path")
    return over_files(path, sorted(_files_below(path)), of_file)


def _files_below(folder: Path) -> Iterator[Path]:
    """The files of a folder of data, also behind links; not hidden ones, nor those of a run inside it."""
    seen = set()
    for place, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        run = RUN_FILE in files and Path(place) != folder
        if run or real in seen:  # a link may lead back to where it lies
            folders.clear()
            continue
        seen.add(real)
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(place, name) for name in files if not name.startswith("."))


def hash_as_known(path: Path) -> str:
    """`sha256_of_file`, computed once for each state of a file in a process."""
    state = path.stat()
    return _hash_of(path, state.st_mtime_ns, state.st_size)


@cache
def _hash_of(path: Path, changed: int, size: int) -> str:
    return sha256_of_file(path)


def over_files(folder: Path, files: list[Path], of_file: Hash) -> str:
    """SHA-256 over the names, relative to a folder, and the bytes of files."""
    sizes = [file.stat().st_size for file in files if file.is_file()]  # no pipes, no broken links
    form = {"total": sum(sizes), "desc": f"hashing {folder.name}", "unit": "byte", "unit_scale": True}
    parts = []
    with Progress(**form, disable=sum(sizes) < _WATCHED) as bar:
        for file in files:
            if file.is_file():
                parts += [file.relative_to(folder).as_posix(), of_file(file)]
                bar.update(file.stat().st_size)
    return sha256_of_parts(parts)
