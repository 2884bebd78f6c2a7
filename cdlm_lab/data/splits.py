"""Train, validation and test: what corpora call them, and a stable choice where a corpus has none."""

from __future__ import annotations

import hashlib
from typing import Literal

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")
# What files and records call them.
SPLIT_NAMES: dict[str, Split] = {
    "train": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "development": "validation",
    "test": "test",
}
_TRAIN, _VALIDATION = 0.90, 0.95  # cumulative shares: 90% train, 5% validation, 5% test


def hashed_split(cluster_id: str) -> Split:
    """Split of a cluster whose corpus does not say: 90/5/5 by a hash of its id.

    Adding clusters to a corpus, or reading it in another order or on another machine, moves none of the
    others.
    """
    digest = hashlib.sha256(cluster_id.encode("utf-8")).digest()
    share = int.from_bytes(digest[:8], "big") / 2**64
    if share < _TRAIN:
        return "train"
    return "validation" if share < _VALIDATION else "test"


def check_split(split: str) -> None:
    """Raises ValueError for a split that is not one of SPLITS."""
    if split not in SPLITS:
        raise ValueError(f"split is {split!r}; choose one of {', '.join(SPLITS)}")
