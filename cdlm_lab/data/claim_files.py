"""One way to all files of claims: which there are, and which part of them is train, dev or test.

A folder may hold, compressed or not (a plain file goes before a compressed one of the same name):

- FEVER with KGAT's evidence: `bert_dev.json`, `bert_test.json` and, if it is there, `bert_train.json`;
- or else FM2: `fm2_dev.jsonl`, `fm2_test.jsonl` and `fm2_train.jsonl`, or the same without `fm2_`;
- FeverSymmetric, which is a test set of its own, "symmetric": `fever_symmetric_test.jsonl` (version 0.2) or,
  without that, `fever_symmetric_full.jsonl` (version 0.1), both also with `v0.2_` or `v0.1_` before it.

Where the training file is missing, the dev file is parted: a fifth of its pages is dev, the others are train
(`claims.split_claims`, seed 0). A single file of FEVER or FM2, told by its first record, is parted likewise
into train, dev and test, the last two a fifth of the pages each; one of FeverSymmetric is "symmetric".
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cdlm_lab.data.claims import EvidencedClaim, check_most_evidence, split_claims
from cdlm_lab.data.fever_kgat import read_fever
from cdlm_lab.data.fever_symmetric import read_fever_symmetric
from cdlm_lab.data.files import DataError, entries, plain_name, sha256_of_file
from cdlm_lab.data.fm2 import Evidence, check_evidence, read_fm2
from cdlm_lab.data.json_lines import read_json_lines

SETS = ("train", "dev", "test", "symmetric")
HELD_OUT = 0.2  # share of the pages for each split that is parted off a file
READERS_VERSION = "1"  # part of every checksum; raise it when a reader makes other claims of the same files
_NAMES = (("bert_{}.json", "fever"), ("fm2_{}.jsonl", "fm2"), ("{}.jsonl", "fm2"))
_SYMMETRIC = (
    "v0.2_fever_symmetric_test.jsonl",
    "fever_symmetric_test.jsonl",
    "v0.1_fever_symmetric_full.jsonl",
    "fever_symmetric_full.jsonl",
)
_LOOKED_FOR = (
    "give a folder with bert_dev.json and bert_test.json (FEVER), fm2_dev.jsonl and fm2_test.jsonl (FM2) or "
    "fever_symmetric_test.jsonl, or one such file"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Where the claims of a set are. `into`: the splits that its file is parted into; () = it is not."""

    path: Path
    format: str
    into: tuple[str, ...] = ()


def read_claims(
    path: str | Path, split: str, *, evidence: Evidence = "retrieved", most_evidence: int = 5
) -> list[EvidencedClaim]:
    """The claims of one set, in the order of the file.

    Args:
        path: a folder or file, as above.
        split: one of SETS; `claim_sets` says which there are.
        evidence: of FM2, "retrieved" or "gold" (`fm2.read_fm2`); FEVER has the first, FeverSymmetric, which
            has one sentence each, reads the same with both.
        most_evidence: at most so many sentences of a claim, the first ones.

    Raises:
        ValueError: an unknown `split` or `evidence`, `most_evidence` below 1.
        DataError: nothing here that can be read, no such set, gold evidence of FEVER, a file that is parted
            and has no page for the set, and as the readers.
    """
    check_evidence(evidence)
    check_most_evidence(most_evidence)
    part = _part(Path(path), split)
    claims = _reader(part, evidence=evidence, most_evidence=most_evidence)(part.path)
    if not part.into:
        return list(claims)
    found = split_claims(claims, held_out=HELD_OUT, into=part.into)[split]
    if not found:
        what = f"parted into {', '.join(part.into)} by pages, it leaves none for {split}"
        raise DataError(part.path, what, "give a file with more claims", field="file")
    return found


def claim_sets(path: str | Path) -> tuple[str, ...]:
    """Those of SETS that a folder or file has. Raises DataError if there are none."""
    return tuple(name for name in SETS if name in _parts(Path(path)))


def format_of(path: str | Path) -> str:
    """What is here: "fever", "fm2" or "fever_symmetric"; of a folder with claims to train on, what these are.
    Raises DataError if there is nothing that can be read."""
    return next(iter(_parts(Path(path)).values())).format


def checksum_of(path: str | Path, split: str) -> str:
    """SHA-256 (hexadecimal) that names the claims of a set: over name and bytes of its file, and how it is
    parted. Where the folder lies does not matter. Raises ValueError and DataError as `read_claims`, less
    faults inside the files."""
    part = _part(Path(path), split)
    rule = [*part.into, str(HELD_OUT)] if part.into else []
    words = [READERS_VERSION, part.format, split, *rule, part.path.name, sha256_of_file(part.path)]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def _part(path: Path, split: str) -> _Part:
    if split not in SETS:
        raise ValueError(f"split is {split!r}; choose one of {', '.join(SETS)}")
    parts = _parts(path)
    if split not in parts:
        what = f"no claims for {split} here, but for {', '.join(parts)}"
        raise DataError(path, what, _LOOKED_FOR, field="claims")
    return parts[split]


def _parts(path: Path) -> dict[str, _Part]:
    """What is there, by set: first what can be trained on. Never empty."""
    if not path.exists():
        raise DataError(path, "no such file or folder", _LOOKED_FOR, field="claims")
    parts = _parts_of_folder(path) if path.is_dir() else _parts_of_file(path)
    if not parts:
        raise DataError(path, "no claims that can be read", _LOOKED_FOR, field="claims")
    return parts


def _parts_of_folder(folder: Path) -> dict[str, _Part]:
    files: dict[str, Path] = {}
    for file in entries(folder):
        if file.is_file():
            files.setdefault(plain_name(file), file)
    parts: dict[str, _Part] = {}
    for pattern, form in _NAMES:
        named = {split: files[name] for split in SETS[:3] if (name := pattern.format(split)) in files}
        if not parts and {"dev", "test"} <= named.keys():
            parts = {split: _Part(path=file, format=form) for split, file in named.items()}
            if "train" not in parts:
                parted = _Part(path=named["dev"], format=form, into=("train", "dev"))
                parts = {"train": parted, "dev": parted, "test": parts["test"]}
    symmetric = next((files[name] for name in _SYMMETRIC if name in files), None)
    if symmetric:
        parts["symmetric"] = _Part(path=symmetric, format="fever_symmetric")
    return parts


def _parts_of_file(file: Path) -> dict[str, _Part]:
    fields = next(read_json_lines(file)).fields
    if "evidence_sentence" in fields or isinstance(fields.get("evidence"), str):
        return {"symmetric": _Part(path=file, format="fever_symmetric")}
    form = "fm2" if "wikipedia_page" in fields else "fever" if "evidence" in fields else ""
    return {split: _Part(path=file, format=form, into=SETS[:3]) for split in SETS[:3] if form}


def _reader(
    part: _Part, *, evidence: Evidence, most_evidence: int
) -> Callable[[Path], Iterator[EvidencedClaim]]:
    if part.format == "fm2":
        return partial(read_fm2, evidence=evidence, most_evidence=most_evidence)
    if part.format == "fever_symmetric":
        return read_fever_symmetric
    if evidence != "retrieved":
        remedy = 'read with evidence="retrieved"'
        raise DataError(part.path, f"FEVER in KGAT's form has no {evidence} evidence", remedy)
    return partial(read_fever, most_evidence=most_evidence)
