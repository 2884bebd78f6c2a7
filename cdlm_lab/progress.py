"""A text progress bar for terminals, notebooks and logs, and helpers for work in several processes.

In a notebook `tqdm.auto` draws a widget, which leaves nothing in the log of an unattended run (papermill).
This bar is always text. On a terminal it is redrawn ten times a second. Elsewhere every redraw stays in the
log, so it is redrawn once a second at first, and later whenever another sixtieth of the elapsed time has
passed: a day leaves about 500 lines.

The helpers give the rank of this process under torchrun (0 without it) and its share in common work, end a
process together with its parent, and apply a function to items in worker processes.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from tqdm import tqdm

Item = TypeVar("Item")
Made = TypeVar("Made")
PAUSE = 0.5  # seconds between two checks of whether a process is alive
_AT_ONCE = 32  # items in a packet that is sent to a worker process
_IN_WORK = 3  # packets that may wait or be in work for each worker process
_THREADS_OF_TOKENIZERS = "TOKENIZERS_PARALLELISM"
_shared: Callable[[Any], Any] | None = None  # in a worker process: the function to apply


_unseen: ContextVar[float] = ContextVar("seconds until a bar is drawn", default=0.0)


@contextmanager
def bars_after(seconds: float) -> Iterator[None]:
    """In this context a bar is drawn only after it has been running for `seconds`; infinity = never."""
    before = _unseen.set(max(seconds, _unseen.get()))
    try:
        yield
    finally:
        _unseen.reset(before)


class Progress(tqdm):
    """A tqdm bar, drawn if anything is left to do; off a terminal more rarely the longer it runs, and to
    standard output, which notebooks do not show in red. Takes tqdm's arguments; advance it with `update`."""

    def __init__(self, **arguments: Any) -> None:
        arguments.setdefault("delay", _unseen.get())
        nothing_left = arguments.get("initial", 0) == arguments.get("total")
        arguments["disable"] = arguments.get("disable") or nothing_left
        unit = arguments.pop("unit", "items").strip().removesuffix("s")
        arguments["unit"] = f" {unit}{'es' if unit.endswith('ch') else 's'}"
        self._live = sys.stderr.isatty()
        self._began = time.monotonic()
        pace = {"mininterval": 0.1, "dynamic_ncols": True} if self._live else {"mininterval": 1.0}
        super().__init__(file=sys.stderr if self._live else sys.stdout, **pace, **arguments)

    def update(self, n: float | None = 1) -> bool | None:
        """Advance by `n`, and redraw if the time for that has come."""
        if not self._live:
            self.mininterval = max(1.0, (time.monotonic() - self._began) / 60)
        return super().update(n)


def tracked(items: Iterable[Item], **arguments: Any) -> Iterator[Item]:
    """Yield the items while a bar counts them. `total`: their number, if they have no `len` (0 = unknown)."""
    total = arguments.pop("total", None) or (len(items) if hasattr(items, "__len__") else None)
    with Progress(total=total, **arguments) as bar:
        for item in items:
            yield item
            bar.update(1)


def rank() -> int:
    """The rank of this process among those that torchrun started, from 0; 0 without torchrun."""
    return int(os.environ.get("RANK", "0"))


def processes_here() -> int:
    """The number of processes that torchrun started on this machine; 1 without torchrun."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def is_first() -> bool:
    """True in the process of rank 0, which writes the files that all processes share."""
    return rank() == 0


def usable_cores() -> int:
    """The number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """Send this process a signal as soon as its parent has ended, from a daemon thread that checks twice a
    second."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PAUSE)
        os.kill(os.getpid(), number)

    threading.Thread(target=watch, name="end with parent", daemon=True).start()


@dataclass(frozen=True)
class Share:
    """The share of this process in work that several do together: every n-th piece, from its own on."""

    process: int = 0
    processes: int = 1
    # From what this process made to what all have made; all processes must call it.
    gathered: Callable[[list[Any]], list[Any]] = list

    def of(self, pieces: Sequence[Item]) -> Sequence[Item]:
        """The pieces that this process does."""
        return pieces[self.process :: self.processes]


ALONE = Share()


@contextmanager
def forking() -> Iterator[None]:
    """In this context processes may be forked: `tokenizers` uses no threads, and does not warn of forks."""
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
    """Apply a function to each item in worker processes, and yield the results in order, as `map` does.

    Args:
        function: takes an item; items and results must be picklable.
        items: read in this process, only a little ahead of the results.
        processes: number of workers; with 1 this process computes everything itself.
        alone: number of first items computed in this process, as workers do not pay off for a few items.

    Raises what iterating over `items` or the function raises; BrokenProcessPool if a worker was killed.
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
        with forking():  # the first packet starts all workers
            waiting.append(pool.submit(_of_packet, packet))
        while waiting:
            if packet := list(islice(items, _AT_ONCE)):
                waiting.append(pool.submit(_of_packet, packet))
            if not packet or len(waiting) >= _IN_WORK * processes:
                yield from waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _begin_sharing(function: Callable[[Any], Any]) -> None:
    """Initialise a worker process; it ignores interrupts, which its parent handles."""
    global _shared
    _shared = function
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent()


def _of_packet(packet: list[Any]) -> list[Any]:
    return [_shared(item) for item in packet]
