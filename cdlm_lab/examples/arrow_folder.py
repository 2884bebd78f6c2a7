"""A corpus as a memory-mapped Arrow file, made once and read from there ever after.

Folder of one corpus, `<cache_dir>/<fingerprint>/`: the Arrow file and `counts.json`. The folder is written
under another name and renamed when it is complete, and a lock lets one process build while others wait, so
nothing half-made is ever read. The fingerprint names everything that decides what is in it.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datasets import Dataset
from filelock import FileLock

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_COUNTS_FILE = "counts.json"


def tokenizer_fingerprint(tokenizer: PreTrainedTokenizerBase, *parts: str | int) -> str:
    """32 hexadecimal digits that change with the parts and with anything that changes the tokens.

    Args:
        tokenizer: a fast one; hashed is what it does, not where it was loaded from.
        parts: whatever else decides what is in the corpus.

    Raises:
        ValueError: a tokenizer that is not a fast one.
    """
    check_fast(tokenizer)
    rules = json.loads(tokenizer.backend_tokenizer.to_str())
    # Left behind by whatever was tokenised last; no corpus is built with either.
    rules.pop("truncation", None)
    rules.pop("padding", None)
    return hashlib.sha256(json.dumps([*parts, rules], sort_keys=True).encode()).hexdigest()[:32]


def check_fast(tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise ValueError unless the tokenizer is a fast one."""
    if not tokenizer.is_fast:
        raise ValueError(
            f"{type(tokenizer).__name__} is a slow tokenizer, which does not say where in the text a token "
            "stands; load the fast one (a folder with tokenizer.json)"
        )


def built_once(
    cache_dir: Path, *, fingerprint: str, arrow_file: str, build: Callable[[Path], Any]
) -> Dataset:
    """The corpus of that fingerprint, made first if it is not there yet.

    Args:
        cache_dir: holds one folder for each fingerprint; created if missing.
        fingerprint: from `tokenizer_fingerprint`.
        arrow_file: name of the Arrow file.
        build: writes that file at the path it is given and returns its counts, a dataclass; called only if
            the corpus must be made. Whatever it raises passes through, and nothing is left behind.

    Returns:
        A memory-mapped dataset.

    Raises:
        ValueError: a fingerprint that is no file name; a file in the cache that cannot be read.
    """
    folder = _folder(cache_dir, fingerprint)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f".{fingerprint}.lock")):
        # The folder appears under its name only when both files are there.
        if not all((folder / name).is_file() for name in (arrow_file, _COUNTS_FILE)):
            _build(folder, arrow_file, build)
    return _opened(folder / arrow_file)


def kept_counts(cache_dir: Path, *, fingerprint: str, maker: str) -> dict[str, Any]:
    """The counts kept beside a corpus, as plain JSON.

    Args:
        cache_dir, fingerprint: as of `built_once`.
        maker: the function that makes such a corpus, for the message.

    Raises:
        FileNotFoundError: no such corpus has been made.
    """
    path = _folder(cache_dir, fingerprint) / _COUNTS_FILE
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such tokenised corpus; make it with {maker}")
    return json.loads(path.read_text(encoding="utf-8"))


def _folder(cache_dir: Path, fingerprint: str) -> Path:
    if not re.fullmatch(r"[0-9A-Za-z_-]+", fingerprint):
        raise ValueError(
            f"the fingerprint {fingerprint!r} is no file name; take it from the corpus's fingerprint function"
        )
    return Path(cache_dir) / fingerprint


def _build(folder: Path, arrow_file: str, build: Callable[[Path], Any]) -> None:
    """Write the corpus under another name and rename it; the caller holds the lock."""
    # Only killed builds leave these behind: whoever builds holds the lock.
    for leftover in [*folder.parent.glob(f".{folder.name}.*.building"), folder]:
        shutil.rmtree(leftover, ignore_errors=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".building", dir=folder.parent))
    try:
        counts = build(unfinished / arrow_file)
        (unfinished / _COUNTS_FILE).write_text(json.dumps(asdict(counts), indent=2) + "\n", encoding="utf-8")
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _opened(path: Path) -> Dataset:
    """Memory-map the Arrow file."""
    try:
        return Dataset.from_file(str(path))
    except Exception as error:  # pyarrow and datasets raise many kinds for a damaged file
        raise ValueError(
            f"{path} cannot be read ({error}); delete the folder {path.parent} and run again"
        ) from error
