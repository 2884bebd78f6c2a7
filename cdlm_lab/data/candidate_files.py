"""One way into the files of answer sentence selection: WikiQA, TREC-QA and ASNQ, known by their names."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

from cdlm_lab.data.asnq import asnq_files, read_asnq
from cdlm_lab.data.files import DataError, home_path, sha256_of_file
from cdlm_lab.data.records import CandidateSet
from cdlm_lab.data.splits import SPLIT_NAMES
from cdlm_lab.data.trecqa import TOKEN_FILES, read_trecqa, trecqa_files
from cdlm_lab.data.wikiqa import read_wikiqa, wikiqa_files

READERS_VERSION = "1"  # part of every checksum; raise it when a reader makes other sets of the same files
# What is looked for, in this order.
FORMATS = {
    "wikiqa": "WikiQA-train.tsv, WikiQA-dev.tsv, WikiQA-test.tsv",
    "trecqa": "train, clean-dev, clean-test (folders with a.toks) or TRAIN.xml, DEV.xml, TEST.xml",
    "asnq": "train.tsv, dev.tsv, test.tsv",
}

_READERS: dict[str, Callable[..., Iterator[CandidateSet]]] = {
    "wikiqa": read_wikiqa,
    "trecqa": read_trecqa,
    "asnq": read_asnq,
}


def read_candidate_sets(folder: str | Path, split: str) -> list[CandidateSet]:
    """The questions of a split, in order; all of them, not only the clean ones.

    Args:
        folder: with files of one of FORMATS.
        split: train, dev or test.

    Raises:
        ValueError: an unknown split.
        DataError: as `format_of`, no file of the split, and as the readers.
    """
    name, parts = _parts(folder, split)
    return list(_READERS[name](*parts))


def format_of(folder: str | Path) -> str:
    """The key of FORMATS that a folder is of.

    Raises:
        DataError: there is no such folder, or none of these files in it.
    """
    return _found(folder)[0]


def checksum_of(folder: str | Path, split: str) -> str:
    """SHA-256 (hexadecimal) that names what `read_candidate_sets` gives: over the names and bytes of the
    split's files, wherever the folder lies. Raises as `read_candidate_sets`, less faults inside the files."""
    name, parts = _parts(folder, split)
    values = [name, READERS_VERSION, SPLIT_NAMES[split]]
    for part in parts:
        files = [part / file for file in TOKEN_FILES.values()] if part.is_dir() else [part]
        for file in files:
            values += [file.relative_to(_folder(folder)).as_posix(), sha256_of_file(file)]
    # Each value with its length, so that no two lists of values give the same bytes.
    return hashlib.sha256("".join(f"{len(value)}:{value}" for value in values).encode()).hexdigest()


def _folder(folder: str | Path) -> Path:
    return home_path(folder)


def _found(folder: str | Path) -> tuple[str, dict[str, tuple[Path, ...]]]:
    """The format of a folder, and the arguments of its reader for each split that is there."""
    path = _folder(folder)
    if not path.is_dir():
        raise DataError(path, "there is no such folder", "give the folder of the files", field="folder")
    for name, files in (("wikiqa", wikiqa_files(path)), ("trecqa", trecqa_files(path))):
        if files:
            return name, {split: (file,) for split, file in files.items()}
    if parts := asnq_files(path):
        return "asnq", parts
    what = f"none of these is in it: {'; '.join(f'{names} ({name})' for name, names in FORMATS.items())}"
    raise DataError(path, what, "give the folder of one of these data sets", field="folder")


def _parts(folder: str | Path, split: str) -> tuple[str, tuple[Path, ...]]:
    if split not in SPLIT_NAMES:
        raise ValueError(f"split is {split!r}; choose one of train, dev, test")
    name, parts = _found(folder)
    wanted = SPLIT_NAMES[split].replace("validation", "dev")
    if wanted not in parts:
        what = f"it has no {wanted} set of {name}, only {', '.join(parts)}"
        raise DataError(_folder(folder), what, f"put the file there ({FORMATS[name]})", field="folder")
    return name, parts[wanted]
