"""One progress bar for terminals, notebooks and logs.

`tqdm.auto` draws a widget in a notebook, of which nothing reaches the log of a run without a person in front
of it (papermill). This one is text everywhere. On a terminal it moves ten times a second. Elsewhere every
picture of it stays in the log; so there it is drawn every second at first, and then whenever a sixtieth of
the time so far has passed: a day leaves about 500 lines.

Which of the processes that torchrun started this one is, alone the first; processes that end with the one
that started them; and work shared out among some of these.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import Any, TypeVar

from tqdm import tqdm

Item = TypeVar("Item")
Made = TypeVar("Made")
PAUSE = 0.5  # seconds between two looks at a process
_AT_ONCE = 32  # items that travel together to another process
_IN_WORK = 3  # of these packets, for each process
_THREADS_OF_TOKENIZERS = "TOKENIZERS_PARALLELISM"
_shared: Callable[[Any], Any] | None = None  # what a process that shares out work does with an item


_unseen: ContextVar[float] = ContextVar("seconds until a bar is drawn", default=0.0)


@contextmanager
def bars_after(seconds: float) -> Iterator[None]:
    """Within, no bar is drawn before so many seconds of its work have passed; infinity = never."""
    before = _unseen.set(max(seconds, _unseen.get()))
    try:
        yield
    finally:
        _unseen.reset(before)


class Progress(tqdm):
    """tqdm's bar with the pace described above; off a terminal it goes to standard output, which notebooks
    do not paint red. Arguments as of tqdm; count with `update`, or iterate with `tracked`."""

    def __init__(self, **arguments: Any) -> None:
        arguments.setdefault("delay", _unseen.get())
        unit = arguments.pop("unit", "items").strip().removesuffix("s")
        arguments["unit"] = f" {unit}{'es' if unit.endswith('ch') else 's'}"
        self._live = sys.stderr.isatty()
        self._began = time.monotonic()
        pace = {"mininterval": 0.1, "dynamic_ncols": True} if self._live else {"mininterval": 1.0}
        super().__init__(file=sys.stderr if self._live else sys.stdout, **pace, **arguments)

    def update(self, n: float | None = 1) -> bool | None:
        """Count `n` more; draw when it is time."""
        if not self._live:
            self.mininterval = max(1.0, (time.monotonic() - self._began) / 60)
        return super().update(n)


def tracked(items: Iterable[Item], **arguments: Any) -> Iterator[Item]:
    """The items, with a bar beside them. `total`: how many there are, if they do not say (0 = unknown)."""
    total = arguments.pop("total", None) or (len(items) if hasattr(items, "__len__") else None)
    with Progress(total=total, **arguments) as bar:
        for item in items:
            yield item
            bar.update(1)


def rank() -> int:
    """The number of this process among all, from 0."""
    return int(os.environ.get("RANK", "0"))


def processes_here() -> int:
    """How many of them are on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def is_first() -> bool:
    """Whether this process is the one that writes what all have in common."""
    return rank() == 0


def usable_cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def end_with_parent() -> None:
    """Kill this process as soon as its parent is gone, from a thread that looks twice a second."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PAUSE)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="end with parent", daemon=True).start()


@contextmanager
def forking() -> Iterator[None]:
    """Within, processes may be forked: tokenizers uses no threads, and says nothing of it."""
    before = os.environ.get(_THREADS_OF_TOKENIZERS)
    os.environ[_THREADS_OF_TOKENIZERS] = "false"
    try:
        yield
    finally:
        del os.environ[_THREADS_OF_TOKENIZERS]
        if before is not None:
            os.environ[_THREADS_OF_TOKENIZERS] = before


def shared_out(
    function: Callable[[Item], Made], items: Iterable[Item], *, processes: int, alone: int = 256
) -> Iterator[Made]:
    """`function` of each item, in order, as `map` gives it, computed by several processes.

    Args:
        function: of an item alone; what it takes and gives must be fit to be sent.
        items: read by this process, little ahead of what was given.
        processes: 1 = this one computes all.
        alone: of the first so many, this one does too: for a few items others are not worth their start.

    Raises what the items raise, or the function; BrokenProcessPool if a process was killed.
    """
    items = iter(items)
    yield from map(function, items if processes < 2 else islice(items, alone))
    packet = list(islice(items, _AT_ONCE))
    if not packet:
        return
    fork = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(processes, fork, initializer=_begin_sharing, initargs=(function,))
    waiting: deque[Future[list[Made]]] = deque()
    try:
        with forking():  # of all of them, at the first packet
            waiting.append(pool.submit(_of_packet, packet))
        while waiting:
            if packet := list(islice(items, _AT_ONCE)):
                waiting.append(pool.submit(_of_packet, packet))
            if not packet or len(waiting) >= _IN_WORK * processes:
                yield from waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _begin_sharing(function: Callable[[Any], Any]) -> None:
    """In a process that shares out work; an interrupt is the affair of the one that started it."""
    global _shared
    _shared = function
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent()


def _of_packet(packet: list[Any]) -> list[Any]:
    return [_shared(item) for item in packet]
