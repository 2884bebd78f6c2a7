"""Numbers that take long to compute, kept on disk as they come, so that a stopped run goes on."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from cdlm_lab.data.files import replaced_file

SAVE_SECONDS = 20.0


class KeptNumbers:
    """An array whose rows are filled in one by one; nan = not yet.

    Use as a context manager: it is saved at the end, and also when the work is interrupted.

    Args:
        file: `.npy`; None = nothing is kept.
        shape: rows first.

    Attributes:
        values: float32 of that shape; write into it.

    Raises:
        ValueError: the file holds an array of another shape.
    """

    def __init__(self, file: Path | None, shape: tuple[int, ...]) -> None:
        self._file, self._saved = file, time.monotonic()
        self.values = np.full(shape, np.nan, dtype=np.float32)
        if file and file.exists():
            self.values = np.load(file, allow_pickle=False)
            if self.values.shape != shape:
                raise ValueError(
                    f"{file} holds numbers of shape {self.values.shape}, but there are {shape}; it is of "
                    "another run: choose another run folder"
                )
        self.missing = np.flatnonzero(np.isnan(self.values.reshape(len(self.values), -1)).any(axis=1))

    def __enter__(self) -> KeptNumbers:
        return self

    def __exit__(self, *error: object) -> None:
        if len(self.missing):
            self._save()

    def save_when_due(self) -> None:
        """Save if the last time was 20 seconds ago."""
        if time.monotonic() - self._saved > SAVE_SECONDS:
            self._save()

    def _save(self) -> None:
        self._saved = time.monotonic()
        if self._file:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with replaced_file(self._file, binary=True) as opened:
                np.save(opened, self.values, allow_pickle=False)
