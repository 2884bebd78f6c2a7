"""Training in this process or in several, which torchrun starts: what a notebook tells them, and what they
tell it.

The processes run this module. Each makes the same model and the same examples again, by the same function of
the same settings; tokenised corpora are there already. What a notebook does before and after the training,
such as predicting, it does alone.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import shlex
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.data.files import replaced_file
from cdlm_lab.models.device import default_device
from cdlm_lab.ranks import is_first
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.history import HISTORY_FILE, Record, read_history, truncate_history
from cdlm_lab.training.processes import (
    LOG_FILE,
    Processes,
    end_with_parent,
    join_others,
    keep_fault,
    run_processes,
)
from cdlm_lab.training.resume import check_loaded, checkpoint_step, last_good_checkpoint
from cdlm_lab.training.selection import Judge
from cdlm_lab.training.trainer import TrainingResult, train
from cdlm_lab.widgets.markup import seconds_in_words

SETTINGS_FILE, RESULT_FILE = "settings.json", "result.json"


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """A model and what it learns from; all as of `cdlm_lab.training.trainer.train`."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase | None
    train_examples: Sequence
    validation_examples: Sequence
    collate: Callable[..., Mapping[str, Tensor]]
    config: TrainingConfig
    judge: Judge | None = None

    def run(self, folder: Path, *, on_log: Callable[[Record], None] | None = None) -> TrainingResult:
        """Train in this process, or as one of those of torchrun, in the folder of checkpoints and history;
        arguments and errors otherwise as of `train`."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return train(**values, output_dir=folder, on_log=on_log)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How every process makes the same job.

    Attributes:
        function: a public one of a module of `cdlm_lab.experiments`.
        arguments: of the function, by name: texts, numbers, and dataclasses of these.
    """

    function: Callable[..., TrainingJob]
    arguments: Mapping[str, Any]

    def make(self) -> TrainingJob:
        """Raises what the function raises."""
        return self.function(**self.arguments)

    def as_json(self) -> dict[str, Any]:
        """What `of_json` takes."""
        arguments = {
            name: dataclasses.asdict(value) if dataclasses.is_dataclass(value) else value
            for name, value in self.arguments.items()
        }
        module = self.function.__module__.removeprefix(f"{__package__}.")
        return {"module": module, "function": self.function.__name__, "arguments": arguments}

    @classmethod
    def of_json(cls, given: Mapping[str, Any]) -> Recipe:
        """From what `as_json` gave and JSON may have been between."""
        function = getattr(importlib.import_module(f"{__package__}.{given['module']}"), given["function"])
        kinds = typing.get_type_hints(function)
        arguments = {name: _restored(kinds[name], value) for name, value in given["arguments"].items()}
        return cls(function=function, arguments=arguments)


def _restored(kind: Any, value: Any) -> Any:
    """A value of JSON as its annotation has it: dataclasses, and tuples in them, are lost there."""
    if dataclasses.is_dataclass(kind):
        kinds = typing.get_type_hints(kind)
        return kind(**{name: _restored(kinds[name], item) for name, item in value.items()})
    if typing.get_origin(kind) is tuple:
        inner = typing.get_args(kind)
        inner = inner[:1] * len(value) if inner[-1] is Ellipsis else inner
        return tuple(_restored(one, item) for one, item in zip(inner, value, strict=True))
    return value


def time_told(seconds: float, processes: Processes) -> str:
    """How long they train, in words, where one alone takes so many seconds."""
    by = f" with {processes.total} processes" if processes.total > 1 else ""
    return f"{seconds_in_words(seconds / processes.total)}{by}"


def train_in_processes(
    recipe: Recipe | None,
    *,
    job: TrainingJob,
    processes: Processes,
    folder: Path,
    on_log: Callable[[Record], None] | None,
) -> TrainingResult:
    """Train in several processes, or in this one where that is all, in the folder of checkpoints and history.

    Args:
        recipe: how each of several processes makes the job; one needs none.
        job: its model ends as the best checkpoint, on the default device; stopped in several processes,
            it is left as it was.
        on_log: called with each record, when resumed first with earlier ones.

    Raises:
        RuntimeError: a process failed; with its own message.
        CheckpointError: the best checkpoint does not fit the model.
        Others as of `train`.
    """
    if processes.total == 1:
        return job.run(folder, on_log=on_log)
    job.model.cpu()  # where it was looked at before the start it takes the room of another
    _tell(recipe, processes, folder)
    last = last_good_checkpoint(folder)
    truncate_history(folder / HISTORY_FILE, checkpoint_step(last) if last else 0)
    run_processes(
        processes, module=__name__, arguments=[str(folder)], folder=folder, look=_teller(folder, on_log)
    )
    result, model = read_result(folder), job.model
    if not result.interrupted and result.best_checkpoint:
        loaded = model.load_state_dict(load_file(result.best_checkpoint / "model.safetensors"), strict=False)
        check_loaded(model, missing=loaded.missing_keys, unexpected=loaded.unexpected_keys)
        model.to(default_device())
    return result


def _tell(recipe: Recipe, processes: Processes, folder: Path) -> None:
    """Leave the recipe for the processes, and say what is started."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RESULT_FILE).unlink(missing_ok=True)
    with replaced_file(folder / SETTINGS_FILE) as file:
        json.dump(recipe.as_json() | {"sharded": processes.sharded}, file, indent=1)
    if processes.machines > 1:
        command = shlex.join(processes.command(__name__, [str(folder)]))
        print(f"On each other machine, where {folder} is the same folder:\n{command}", flush=True)
    print(f"Starting {processes.told}; what they say goes to {folder / LOG_FILE}.", flush=True)


def train_as_told(folder: Path) -> None:
    """Train as one of several processes, as `settings.json` in the folder says; the first one leaves
    `result.json`. Errors as of the function of the recipe and of `train`."""
    given = json.loads((folder / SETTINGS_FILE).read_text(encoding="utf-8"))
    job = Recipe.of_json(given).make()
    config = dataclasses.replace(job.config, sharded=given["sharded"])
    result = dataclasses.replace(job, config=config).run(folder)
    if is_first():
        write_result(result, folder)


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


def main(folder: Path) -> None:
    """As a program: one of several processes, told by a notebook."""
    end_with_parent()
    try:
        join_others()
        train_as_told(folder)
    except BaseException as error:
        keep_fault(folder, error)
        raise


if __name__ == "__main__":
    from cdlm_lab.experiments import parallel  # the module that experiments import, of which this is a copy

    parallel.main(Path(sys.argv[1]))
