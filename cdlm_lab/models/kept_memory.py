"""Memory that is freed within a step of training is kept for the next one.

The allocator of Linux (glibc) hands what is free at its end back to the system at once, and each step asks
for the same hundreds of megabytes anew, which the system first fills with zeros, page by page: in bfloat16 a
twelfth of a step of MiniLM, a fifth of one of `tiny`. Blocks of more than 32 MB are handed back as before:
kept, they would be cut up by smaller ones, and memory would grow from step to step.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

# mallopt's parameters, of malloc.h
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_NEVER = -1
# what glibc sets by itself once a program has freed a large block; at most 32 MB stand for "large"
_LARGE, _USUAL_TRIM_THRESHOLD = 32 << 20, 64 << 20
_within = 0  # how many of them are open; the allocator is the process's own


@contextmanager
def memory_kept() -> Iterator[None]:
    """Within, freed memory stays with this process; at the end it is handed back. Nothing changes where the
    allocator is not glibc's."""
    global _within
    library = ctypes.CDLL(None)
    if not (hasattr(library, "mallopt") and hasattr(library, "malloc_trim")):
        yield
        return
    library.mallopt(_MMAP_THRESHOLD, _LARGE)
    library.mallopt(_TRIM_THRESHOLD, _NEVER)
    _within += 1
    try:
        yield
    finally:
        _within -= 1
        if not _within:
            library.mallopt(_TRIM_THRESHOLD, _USUAL_TRIM_THRESHOLD)
            library.malloc_trim(0)
