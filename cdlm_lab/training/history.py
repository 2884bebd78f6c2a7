"""The records of a run, one JSON object a line, in step with its checkpoints.

A record of training has `step`, `loss` (mean over the steps since the last record, each a mean over masked
tokens, in nats), `learning_rate`, `gradient_norm` (before clipping; None where half precision skipped the
update); a record of evaluation has `step`, `eval_loss`, `eval_perplexity`. A model whose loss is a sum of
named parts adds `loss_<name>` and `eval_loss_<name>`, a judge `eval_judged`. Both have `seconds` (since the
run began, without the time between a stop and its resumption), `tokens` (read so far, padding not counted)
and `total_steps`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cdlm_lab.data.files import replaced_file
from cdlm_lab.training.resume import CheckpointError, is_full_disk

Record = dict[str, Any]
HISTORY_FILE = "history.jsonl"


def append_record(path: Path, record: Record) -> None:
    """Add one line in a single write, so that a killed process leaves whole lines.

    Raises:
        ValueError: a value is nan or infinite.
    """
    line = json.dumps(record, allow_nan=False) + "\n"
    number = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(number, line.encode("utf-8"))
    finally:
        os.close(number)


def read_history(path: Path) -> list[Record]:
    """All records; none if there is no file. A last line that was cut off, as by a full disk, is passed over.

    Raises:
        ValueError: another line is no record (`file:line`).
    """
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
    kept = [record for record in read_history(path) if record["step"] <= step]
    with replaced_file(path) as file:
        file.writelines(json.dumps(record) + "\n" for record in kept)
    return kept


class RunHistory:
    """The records of one run, in memory and, for the writing process, in the file.

    Args:
        folder: of the run.
        writer: True in rank 0, which alone writes and calls `on_log`.
        on_log: called with each record.
    """

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
        """Write a record and pass it on.

        Raises:
            CheckpointError: the disk is full.
        """
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
