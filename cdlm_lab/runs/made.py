"""What a run leaves beside its report: what made a model, and numbers kept while they are computed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np

from cdlm_lab.data.files import replaced_file
from cdlm_lab.runs.identity import (
    MADE_FILE,
    Identity,
    facts_of,
    lineage,
    made_record,
    name_of_model,
    read_made,
)
from cdlm_lab.runs.report import git_commit, write_json
from cdlm_lab.training.checkpoints import write_model
from cdlm_lab.training.fine_tuning import TrainingJob

Write = Callable[[Any, Any, Path], None]  # writes a model and its tokenizer into a folder


def noting(
    identity: Identity, job: TrainingJob, *, system: str, parent: str, write: Write = write_model
) -> Write:
    """A function that writes a model as `write` does and, beside it, what made it: the identity of its run as
    it is now, and `parent`, the checkpoint that it begins with ("" = none), with what made that."""
    facts = {"seed": job.config.seed, "steps": job.config.steps, "git_commit": git_commit()}
    made = made_record(identity, system=system, parent=parent, **facts)

    def written(model: Any, tokenizer: Any, folder: Path) -> None:
        write(model, tokenizer, folder)
        write_json(folder / MADE_FILE, made)

    return written


def began_with(model: Path) -> dict[str, Any] | None:
    """What a trained model began with: `base`, a language model by its variant or its name, and what that had
    learned `after`, in order. None if it began from nothing, or that is not known."""
    made = read_made(model)
    if not (parent := made and made["parent"]):
        return None
    base, tasks = lineage(parent["made"], parent["name"])
    return {"base": base, "after": list(tasks)}


def encoder_facts(name: str, *, trained: str | Path = "") -> dict[str, Any]:
    """What made the encoder of a system, for its report (`facts_of`); {} if it has none.

    Args:
        name: the encoder that the system reads with or begins with; "" = none.
        trained: the folder of a model that was opened in its place, whose own beginning counts; "" = none.
    """
    if trained:
        parent = (read_made(trained) or {}).get("parent")
        return facts_of(parent["made"], parent["name"]) if parent else {}
    return facts_of(read_made(name), name_of_model(name)) if name else {}


# ---- numbers, kept while they are computed ----

SAVE_SECONDS = 20.0


class KeptNumbers:
    """An array on disk whose rows are filled in one by one, nan = not yet; as a context manager it is saved
    on exit, also after an interruption.

    Fill `values`, float32 of the given shape, by rows; `missing` are the indices of the rows that were absent
    at the start. `file`: `.npy`; None = nothing is saved. Raises ValueError: the file has another shape.
    """

    def __init__(self, file: Path | None, shape: tuple[int, ...]) -> None:
        self._file, self._saved = file, time.monotonic()
        self.values = np.full(shape, np.nan, dtype=np.float32)
        if file and file.exists():
            self.values = np.load(file, allow_pickle=False)
            if self.values.shape != shape:
                what = f"{file} holds numbers of shape {self.values.shape}, but there are {shape}"
                raise ValueError(f"{what}; it is of another run: choose another run folder")
        self.missing = np.flatnonzero(np.isnan(self.values.reshape(len(self.values), -1)).any(axis=1))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if len(self.missing):
            self._save()

    def save_when_due(self) -> None:
        """Save if the last save was more than 20 seconds ago."""
        if time.monotonic() - self._saved > SAVE_SECONDS:
            self._save()

    def _save(self) -> None:
        self._saved = time.monotonic()
        if self._file:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with replaced_file(self._file, binary=True) as opened:
                np.save(opened, self.values, allow_pickle=False)
