"""Which of the processes that torchrun started this one is; alone it is the first."""

from __future__ import annotations

import os


def rank() -> int:
    """The number of this process among all, from 0."""
    return int(os.environ.get("RANK", "0"))


def processes_here() -> int:
    """How many of them are on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def is_first() -> bool:
    """Whether this process is the one that writes what all have in common."""
    return rank() == 0
