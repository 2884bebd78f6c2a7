"""A pretraining in several processes: what notebook 01 tells them, and what they tell it.

The processes run pretraining_worker.py, which makes the same examples and the same model again; tokenised
corpora are there already.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import nn

from cdlm_lab.data.files import replaced_file
from cdlm_lab.models.device import default_device
from cdlm_lab.training.history import HISTORY_FILE, Record, read_history, truncate_history
from cdlm_lab.training.processes import LOG_FILE, Processes, run_processes
from cdlm_lab.training.resume import check_loaded, checkpoint_step, last_good_checkpoint
from cdlm_lab.training.trainer import TrainingResult

WORKER = "cdlm_lab.experiments.pretraining_worker"
SETTINGS_FILE, RESULT_FILE = "settings.json", "result.json"


def train_in_processes(
    settings: Mapping[str, Any],
    *,
    model: nn.Module,
    processes: Processes,
    folder: Path,
    on_log: Callable[[Record], None] | None,
) -> TrainingResult:
    """Train in several processes, in the folder of checkpoints and history.

    Args:
        settings: the arguments of `cdlm_lab.experiments.pretraining.prepare`.
        model: ends as the best checkpoint, on the default device; stopped, it is left as it is.
        on_log: called with each record, when resumed first with earlier ones.

    Raises:
        RuntimeError: a process failed; with its own message.
        CheckpointError: no checkpoint is whole; the best does not fit the model.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RESULT_FILE).unlink(missing_ok=True)
    given = {
        name: value if isinstance(value, str) else dataclasses.asdict(value)
        for name, value in settings.items()
    }
    given["training"]["sharded"] = processes.sharded
    with replaced_file(folder / SETTINGS_FILE) as file:
        json.dump(given, file, indent=1)
    if processes.machines > 1:
        command = shlex.join(processes.command(WORKER, [str(folder)]))
        print(f"On each other machine, where {folder} is the same folder:\n{command}", flush=True)
    print(f"Starting {processes.told}; what they say goes to {folder / LOG_FILE}.", flush=True)
    last = last_good_checkpoint(folder)
    truncate_history(folder / HISTORY_FILE, checkpoint_step(last) if last else 0)
    run_processes(
        processes, module=WORKER, arguments=[str(folder)], folder=folder, look=_teller(folder, on_log)
    )
    result = read_result(folder)
    if not result.interrupted and result.best_checkpoint:
        loaded = model.load_state_dict(load_file(result.best_checkpoint / "model.safetensors"), strict=False)
        check_loaded(model, missing=loaded.missing_keys, unexpected=loaded.unexpected_keys)
        model.to(default_device())
    return result


def write_result(result: TrainingResult, folder: Path) -> None:
    """Leave it for the process that waits."""
    values = dataclasses.asdict(result)
    for name in ("best_checkpoint", "last_checkpoint"):
        values[name] = str(values[name]) if values[name] else None
    with replaced_file(folder / RESULT_FILE) as file:
        json.dump(values, file)


def read_result(folder: Path) -> TrainingResult:
    """What `write_result` left."""
    values = json.loads((folder / RESULT_FILE).read_text(encoding="utf-8"))
    for name in ("best_checkpoint", "last_checkpoint"):
        values[name] = Path(values[name]) if values[name] else None
    return TrainingResult(**values | {"history": tuple(values["history"])})


def _teller(folder: Path, on_log: Callable[[Record], None] | None) -> Callable[[], None]:
    """Tells the records that were not told yet."""
    told = 0

    def look() -> None:
        nonlocal told
        records = read_history(folder / HISTORY_FILE) if on_log else []
        for record in records[told:]:
            on_log(record)
        told = max(told, len(records))

    return look
