"""The records of a run, one JSON object a line, in step with its checkpoints; a bar; and a stop that loses
nothing.

A record of training has `step`, `loss` (mean over the steps since the last record, each a mean over masked
tokens, in nats), `learning_rate`, `gradient_norm` (before clipping; None where half precision skipped the
update); a record of evaluation has `step`, `eval_loss`, `eval_perplexity`. A model whose loss is a sum of
named parts adds `loss_<name>` and `eval_loss_<name>`, a judge `eval_judged`. Both have `seconds` (since the
run began, without the time between a stop and its resumption), `tokens` (read so far, padding not counted)
and `total_steps`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from cdlm_lab.data.files import replaced_file
from cdlm_lab.models.checkpoint import default_device
from cdlm_lab.models.precision import Precision, computing_in
from cdlm_lab.progress import Progress
from cdlm_lab.training.checkpoints import CheckpointError, is_full_disk

Record = dict[str, Any]
HISTORY_FILE = "history.jsonl"
STOP_FILE_VARIABLE = "CDLM_LAB_STOP_FILE"


def append_record(path: Path, record: Record) -> None:
    """Add one line in a single write, so that a killed process leaves whole lines. Raises ValueError: a value
    is nan or infinite."""
    line = json.dumps(record, allow_nan=False) + "\n"
    with open(path, "ab", buffering=0) as file:
        file.write(line.encode("utf-8"))


def read_history(path: Path) -> list[Record]:
    """All records; none if there is no file. A last line that was cut off, as by a full disk, is passed over.
    Raises ValueError: another line is no record (`file:line`)."""
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
    """Drop the records after `step`, which a resumed run will write again, and return those that stay."""
    records = [record for record in read_history(path) if record["step"] <= step]
    with replaced_file(path) as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
    return records


class RunHistory:
    """The records of one run, in memory and in the file; only the `writer`, rank 0, writes and calls `on_log`
    with each record."""

    def __init__(self, folder: Path, *, writer: bool, on_log: Callable[[Record], None] | None) -> None:
        self.path, self.records = folder / HISTORY_FILE, list[Record]()
        self._writer, self._on_log = writer, on_log

    def begin(self, step: int) -> None:
        """Take up the records up to `step` and drop later ones; `on_log` gets those that stay."""
        if not self._writer:
            self.records = [record for record in read_history(self.path) if record["step"] <= step]
            return
        self.records = truncate_history(self.path, step)
        for record in self.records if self._on_log else ():
            self._on_log(dict(record))

    def add(self, record: Record) -> None:
        """Write a record and pass it on. Raises CheckpointError: the disk is full."""
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
    """Steps done, time left, and the last losses of a run."""

    def __init__(self, *, total: int, done: int) -> None:
        self._bar = Progress(total=total, initial=done, unit="step")
        self._numbers: dict[str, str] = {}
        self._checking: Progress | None = None

    def advance(self) -> None:
        """One step is done."""
        self._bar.update(1)

    def show(self, **numbers: float) -> None:
        """Numbers to stand beside the bar from now on."""
        self._numbers |= {name: f"{value:.4g}" for name, value in numbers.items()}
        self._bar.set_postfix(self._numbers, refresh=False)

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
    """Whether the run is to stop: `signal` is the number of the signal, None if there was none. A process
    that waits for others stops them by a file, whose path they have in the environment as
    `CDLM_LAB_STOP_FILE`: a signal would end those that are not ready for it yet."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._file = os.environ.get(STOP_FILE_VARIABLE)

    @property
    def requested(self) -> bool:
        """Whether a stop was requested, in either way."""
        return self.signal is not None or (self._file is not None and os.path.exists(self._file))


@contextlib.contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Within, the first interrupt (Ctrl-C, the stop button of a notebook) or SIGTERM only notes the request,
    so that the step can be finished and saved; the second one interrupts at once. Handlers are put back
    afterwards, and a SIGTERM then ends the process. In a thread that is not the main one signals cannot be
    caught, and nothing is changed."""
    request, owner = StopRequest(), os.getpid()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def note(number: int, frame: FrameType | None) -> None:
        if os.getpid() != owner:  # one that makes examples, forked within, and ended by this one
            if number == signal.SIGTERM:
                os._exit(0)
            return
        if request.signal is not None:
            raise KeyboardInterrupt
        request.signal = number
        print("Stopping after this step; once more stops at once.", flush=True)

    old = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, action in old.items():
            # None stands for a handler that was not set from Python and cannot be put back from it.
            signal.signal(number, action if action is not None else signal.SIG_DFL)
    if request.signal == signal.SIGTERM:
        signal.raise_signal(signal.SIGTERM)


def seconds_of_batch(
    model: nn.Module, make: Callable[[], Mapping[str, Tensor]], *, precision: Precision = "auto"
) -> tuple[float, dict[str, Tensor]]:
    """Forward and backward on a batch twice, since the first time is slower than all others: (seconds of the
    second time, the batch on the device). The model, whose output has `loss`, ends on the default device and
    in training mode, its weights unchanged. `make` gives a batch; its time counts."""
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
