"""A bar with the time left, for terminals, notebooks and logs; and a stop that loses nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

from cdlm_lab.progress import Progress

STOP_FILE_VARIABLE = "CDLM_LAB_STOP_FILE"


class TrainingBar:
    """Steps done, time left, and the last losses of a run of many hours."""

    def __init__(self, *, total: int, done: int) -> None:
        self._bar = Progress(total=total, initial=done, unit="step")
        self._facts: dict[str, str] = {}
        self._checking: Progress | None = None

    def advance(self) -> None:
        """One step is done."""
        self._bar.update(1)

    def show(self, **facts: float) -> None:
        """Numbers to stand beside the bar from now on."""
        self._facts |= {name: f"{value:.4g}" for name, value in facts.items()}
        self._bar.set_postfix(self._facts, refresh=False)

    def checking(self, *, total: int) -> None:
        """One batch of an evaluation of `total` batches is done; it has a bar of its own until `checked`."""
        if self._checking is None:
            self._checking = Progress(total=total, unit="batch", desc="validation", leave=False)
        self._checking.update(1)

    def checked(self) -> None:
        """The evaluation is over."""
        if self._checking is not None:
            self._checking.close()
            self._checking = None

    def close(self) -> None:
        """Draw the last state and let go of the terminal."""
        self.checked()
        self._bar.close()


class StopRequest:
    """Remembers that someone asked the run to stop; `signal` is the number of the signal, None if nobody
    sent one.

    One process that waits for others asks them by a file, whose path they have in the environment as
    `CDLM_LAB_STOP_FILE`: a signal would end those that are not ready for it yet.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._file = os.environ.get(STOP_FILE_VARIABLE)

    @property
    def asked(self) -> bool:
        """Whether it was asked, in either way."""
        return self.signal is not None or (self._file is not None and os.path.exists(self._file))


@contextlib.contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Within, the first interrupt (Ctrl-C, the stop button of a notebook) or SIGTERM only notes the request,
    so that the step can be finished and saved; the second one interrupts at once. Handlers are put back
    afterwards, and a SIGTERM then ends the process as it was meant to.

    In a thread that is not the main one signals cannot be caught, and nothing is changed.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    owner = os.getpid()

    def note(number: int, frame: FrameType | None) -> None:
        if os.getpid() != owner:  # one that makes examples, forked within: this one tells it when to end
            if number == signal.SIGTERM:
                os._exit(0)
            return
        if request.signal is not None:
            raise KeyboardInterrupt
        request.signal = number
        print("Stopping after this step; once more stops at once.", file=sys.stderr, flush=True)

    old = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, action in old.items():
            # None stands for a handler that was not set from Python and cannot be put back from it.
            signal.signal(number, action if action is not None else signal.SIG_DFL)
    if request.signal == signal.SIGTERM:
        signal.raise_signal(signal.SIGTERM)
