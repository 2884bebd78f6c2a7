"""The records of a run, one JSON object per line, consistent with its checkpoints; a bar; and a stop that
loses nothing.

A training record has `step`, `loss` (mean over the steps since the last record, each a mean over masked
tokens, in nats), `learning_rate`, `gradient_norm` (before clipping; None where half precision skipped the
update); an evaluation record has `step`, `eval_loss`, `eval_perplexity`. A model whose loss is a sum of named
parts adds `loss_<name>` and `eval_loss_<name>`, a judge `eval_judged`. Both have `seconds` (since the run
began, without the time between a stop and its resumption), `tokens` (read so far, without padding) and
`total_steps`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from cdlm_lab.data.files import replaced_file
from cdlm_lab.encoders.checkpoint import default_device
from cdlm_lab.encoders.precision import Precision, computing_in
from cdlm_lab.progress import Progress
from cdlm_lab.training.checkpoints import CheckpointError, is_full_disk

Record = dict[str, Any]
HISTORY_FILE = "history.jsonl"
STOP_FILE_VARIABLE = "CDLM_LAB_STOP_FILE"


def append_record(path: Path, record: Record) -> None:
    """Append one line in a single write, so that a killed process leaves whole lines. Raises ValueError if a
    value is nan or infinite."""
    line = json.dumps(record, allow_nan=False) + "\n"
    with open(path, "ab", buffering=0) as file:
        file.write(line.encode("utf-8"))


def read_history(path: Path) -> list[Record]:
    """All records; empty if there is no file. An incomplete last line, as a full disk leaves, is ignored.
    Raises ValueError, with `file:line`, if any other line is not a record."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    records: list[Record] = []
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            record = json.loads(line)
            if not isinstance(record, dict) or not isinstance(record.get("step"), int):
                raise ValueError("no object with a whole number 'step'")
        except ValueError as error:
            if number == len(lines):
                break
            raise ValueError(
                f"{path}:{number}: not a record of training ({error}); remove the line"
            ) from None
        records.append(record)
    return records


def truncate_history(path: Path, step: int) -> list[Record]:
    """Remove the records after `step`, which a resumed run will write again; returns the remaining ones."""
    records = [record for record in read_history(path) if record["step"] <= step]
    with replaced_file(path) as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
    return records


class RunHistory:
    """The records of one run, in memory and in the file; only the `writer`, rank 0, writes, and calls
    `on_log` with each record."""

    def __init__(self, folder: Path, *, writer: bool, on_log: Callable[[Record], None] | None) -> None:
        self.path, self.records = folder / HISTORY_FILE, list[Record]()
        self._writer, self._on_log = writer, on_log

    def begin(self, step: int) -> None:
        """Load the records up to `step` and drop later ones; calls `on_log` with each that remains."""
        if not self._writer:
            self.records = [record for record in read_history(self.path) if record["step"] <= step]
            return
        self.records = truncate_history(self.path, step)
        for record in self.records if self._on_log else ():
            self._on_log(dict(record))

    def add(self, record: Record) -> None:
        """Write a record and call `on_log` with it. Raises CheckpointError if the disk is full."""
        self.records.append(record)
        if not self._writer:
            return
        try:
            append_record(self.path, record)
        except OSError as error:
            if not is_full_disk(error):
                raise
            raise CheckpointError(
                f"the disk is full: {self.path} was not written. Free some space and give the same command "
                "again to go on from the last checkpoint"
            ) from error
        if self._on_log:
            self._on_log(dict(record))


class TrainingBar:
    """A progress bar with steps done, time left and the last losses of a run."""

    def __init__(self, *, total: int, done: int) -> None:
        self._bar = Progress(total=total, initial=done, unit="step")
        self._numbers: dict[str, str] = {}
        self._checking: Progress | None = None

    def advance(self) -> None:
        """Count one step."""
        self._bar.update(1)

    def show(self, **numbers: float) -> None:
        """Show these numbers beside the bar from now on."""
        self._numbers |= {name: f"{value:.4g}" for name, value in numbers.items()}
        self._bar.set_postfix(self._numbers, refresh=False)

    def checking(self, *, total: int) -> None:
        """Count one batch of an evaluation of `total` batches, in its own bar until `checked` is called."""
        if self._checking is None:
            self._checking = Progress(total=total, unit="batch", desc="validation", leave=False)
        self._checking.update(1)

    def checked(self) -> None:
        """End the evaluation's bar."""
        if self._checking is not None:
            self._checking.close()
            self._checking = None

    def close(self) -> None:
        """Draw the final state and release the terminal."""
        self.checked()
        self._bar.close()


class StopRequest:
    """Whether the run should stop: `signal` is the number of the signal received, None if there was none. A
    process that waits for others stops them by creating a file, whose path is in their environment as
    `CDLM_LAB_STOP_FILE`: a signal would kill those that do not handle it yet."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._file = os.environ.get(STOP_FILE_VARIABLE)

    @property
    def requested(self) -> bool:
        """Whether a stop was requested, by signal or by file."""
        return self.signal is not None or (self._file is not None and os.path.exists(self._file))


@contextlib.contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Inside the block, the first interrupt (Ctrl-C, the stop button of a notebook) or SIGTERM is only
    recorded, so that the step can be finished and saved; the second one interrupts at once. Handlers are
    restored afterwards, and a SIGTERM then ends the process. A kernel whose papermill has ended takes that as
    a SIGTERM too. In a thread other than the main one signals cannot be caught, and nothing is changed."""
    request, owner = StopRequest(), os.getpid()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def note(number: int, frame: FrameType | None) -> None:
        if os.getpid() != owner:  # a worker forked inside the block, which this process ends
            if number == signal.SIGTERM:
                os._exit(0)
            return
        if request.signal is not None:
            raise KeyboardInterrupt
        request.signal = number
        print("Stopping after this step; once more stops at once.", flush=True)

    def note_orphaned(code: int) -> None:
        request.signal = request.signal or signal.SIGTERM

    old = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with _parent_may_end(note_orphaned):
            yield request
    finally:
        for number, action in old.items():
            # None means a handler that was not set from Python and cannot be restored from it.
            signal.signal(number, action if action is not None else signal.SIG_DFL)
    if request.signal == signal.SIGTERM:
        signal.raise_signal(signal.SIGTERM)


@contextlib.contextmanager
def _parent_may_end(note: Callable[[int], None]) -> Iterator[None]:
    """Inside the block, `note` is called where a kernel would end at once because the program that started it
    has ended: papermill leaves its kernel to that when it gets a SIGTERM."""
    poller = sys.modules.get("ipykernel.parentpoller")  # its thread looks once a second
    if poller is None:
        yield
        return
    before, poller.os = poller.os, SimpleNamespace(getppid=os.getppid, _exit=note)
    try:
        yield
    finally:
        poller.os = before


def seconds_of_batch(
    model: nn.Module, make: Callable[[], Mapping[str, Tensor]], *, precision: Precision = "auto"
) -> tuple[float, dict[str, Tensor]]:
    """Time forward and backward pass on a batch, twice, since the first time is always slower: returns the
    seconds of the second time, which include making the batch by `make`, and the batch on the device. The
    model, whose output has `loss`, ends on the default device in training mode, its weights unchanged."""
    device = torch.device(default_device())
    model.to(device).train()
    for _ in range(2):
        start = time.perf_counter()
        batch = {name: tensor.to(device) for name, tensor in make().items()}
        with computing_in(precision, device):
            loss = model(**batch)["loss"]
        loss.backward()
        if device.type == "cuda":
            torch.cuda.synchronize()
        seconds = time.perf_counter() - start
    model.zero_grad()
    return seconds, batch
