"""One training of an experiment, in this process or in several that torchrun starts.

The processes run this module. Each creates the same model and the same examples again, by the same function
with the same arguments; tokenised corpora exist already. What a notebook does before and after the training,
such as predicting, it does alone.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from pydantic import TypeAdapter

from cdlm_lab.data.files import replaced_file
from cdlm_lab.encoders.adapter import attach, merge
from cdlm_lab.encoders.checkpoint import default_device
from cdlm_lab.encoders.conversion import copied_globals, update_unused_globals
from cdlm_lab.encoders.model_folder import MODEL_FOLDER
from cdlm_lab.errors import Stopped
from cdlm_lab.progress import Progress, end_with_parent, is_first
from cdlm_lab.training import checkpoints
from cdlm_lab.training.checkpoints import TRAINING_FOLDER, begin_again, save_model, write_model
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.history import HISTORY_FILE, Record, read_history, truncate_history
from cdlm_lab.training.processes import LOG_FILE, join_others, keep_fault, processes_of, run_processes
from cdlm_lab.training.trainer import TrainingJob, TrainingResult, train

Item = TypeVar("Item")
OnLog = Callable[[Record], None]
PACKAGE = "cdlm_lab."  # of the functions in recipes
SETTINGS_FILE, RESULT_FILE = "settings.json", "result.json"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How each of several processes creates the same job: a public function of `cdlm_lab`,
    and its arguments, which are JSON values."""

    function: Callable[..., TrainingJob]
    arguments: Mapping[str, Any]

    def make(self) -> TrainingJob:
        """Create the job; raises what the function raises."""
        return self.function(**self.arguments)

    def as_json(self) -> dict[str, Any]:
        """The recipe as JSON values, with the function by its name."""
        module = self.function.__module__.removeprefix(PACKAGE)
        return {"module": module, "function": self.function.__name__, "arguments": self.arguments}

    @classmethod
    def of_json(cls, values: Mapping[str, Any]) -> Recipe:
        """The recipe from the result of `as_json`, possibly read back from a file."""
        function = getattr(importlib.import_module(f"{PACKAGE}{values['module']}"), values["function"])
        return cls(function=function, arguments=values["arguments"])


def train_in_processes(
    recipe: Recipe | None, *, job: TrainingJob, processes: int, folder: Path, on_log: OnLog | None
) -> TrainingResult:
    """Train in several processes, each of which creates the job from the `recipe`, or in this one if there is
    only one. The `job`'s model ends as the best checkpoint, on the default device; if several processes are
    stopped, it stays as it was. `on_log`: called with each record, when resumed first with the earlier ones.
    Raises RuntimeError with the message of a process that failed, CheckpointError if the best checkpoint does
    not fit the model."""
    if processes == 1:
        return train(job, folder, on_log=on_log)
    job.model.cpu()  # on the accelerator it would take memory from the processes that train
    torch.cuda.empty_cache()  # which they cannot use as long as this process keeps it for itself
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RESULT_FILE).unlink(missing_ok=True)
    with replaced_file(folder / SETTINGS_FILE) as file:
        json.dump(recipe.as_json(), file, indent=1)
    print(f"Starting {processes} processes; what they say goes to {folder / LOG_FILE}.", flush=True)
    last = checkpoints.last_good_checkpoint(folder)
    truncate_history(folder / HISTORY_FILE, checkpoints.checkpoint_step(last) if last else 0)
    look = _new_records(folder, on_log)
    run_processes(processes, module=__name__, arguments=[str(folder)], folder=folder, look=look)
    result, model = read_result(folder), job.model
    if not result.interrupted and result.best_checkpoint:
        checkpoints.load_weights(model, result.best_checkpoint)
        model.to(default_device())
    return result


def _new_records(folder: Path, on_log: OnLog | None) -> Callable[[], None]:
    """A function that calls `on_log` with the records of the history that are new since its last call."""
    count = 0

    def look() -> None:
        nonlocal count
        records = read_history(folder / HISTORY_FILE) if on_log else []
        for record in records[count:]:
            on_log(record)
        count = max(count, len(records))

    return look


def train_as_one_of_several(folder: Path) -> None:
    """Train as `settings.json` in the folder says; the first process writes `result.json`."""
    settings = json.loads((folder / SETTINGS_FILE).read_text(encoding="utf-8"))
    result = train(Recipe.of_json(settings).make(), folder)
    if is_first():
        write_result(result, folder)


def write_result(result: TrainingResult, folder: Path) -> None:
    """Write the result to the folder for the process that waits for it."""
    with replaced_file(folder / RESULT_FILE, binary=True) as file:
        file.write(TypeAdapter(TrainingResult).dump_json(result))


def read_result(folder: Path) -> TrainingResult:
    """Read the result that `write_result` wrote."""
    return TypeAdapter(TrainingResult).validate_json((folder / RESULT_FILE).read_bytes())


def main(folder: Path) -> None:
    """Run as a program: one of several processes that a notebook started."""
    end_with_parent()
    try:
        join_others()
        train_as_one_of_several(folder)
    except BaseException as error:
        keep_fault(folder, error)
        raise


def config_of_passes(
    *,
    items: int,
    epochs: int,
    batch_size: int,
    warmup_steps: int | None = None,
    parallel: str = "",
    **others: Any,
) -> TrainingConfig:
    """The settings for `epochs` epochs over `items` examples, with evaluation and a checkpoint after each.

    Choices where the papers are silent, as in their released code: the learning rate decays linearly to 0,
    and AdamW has beta_2 0.999, epsilon 1e-8 and no weight decay; notebooks 06 and 09 set others.
    `warmup_steps`: None = a tenth of all steps; at most half of them. `parallel`: processes that share the
    batches, as "ddp 4", which is only checked here. `others`: further fields. Raises ParameterError: invalid
    values.
    """
    an_epoch = max(1, items // batch_size)
    steps = an_epoch * epochs
    config = TrainingConfig(
        steps=steps,
        batch_size=batch_size,
        warmup_steps=steps // 10 if warmup_steps is None else min(warmup_steps, steps // 2),
        decay_power=1.0,
        weight_decay=0.0,
        adam_beta2=0.999,
        adam_epsilon=1e-8,
        evaluate_every=an_epoch,
        save_every=an_epoch,
        log_every=max(1, an_epoch // 10),
        **others,
    )
    config.accumulation(processes=processes_of(parallel))
    return config


def in_training_order(items: Sequence[Item], config: TrainingConfig) -> Iterator[Item]:
    """Yield as many items as training takes; each epoch is shuffled anew."""
    left, epoch = config.steps * config.batch_size, 0
    while left > 0:
        for number in np.random.default_rng([config.seed, epoch]).permutation(len(items))[:left]:
            yield items[number]
        left, epoch = left - len(items), epoch + 1


def fine_tune(
    job: TrainingJob,
    *,
    folder: Path,
    name: str = "",
    parallel: str = "",
    recipe: Recipe | None = None,
    on_log: OnLog | None = None,
    write: Callable[[Any, Any, Path], None] = write_model,
) -> TrainingResult:
    """Train, and `write` the model and its tokenizer into `folder/model` as they were at the lowest
    validation loss, or where the judge scored them highest; of a model with an adapter only that, which is
    then merged. Global projections that began as copies of the local ones and were used by no token are
    copied from them again.

    `name`: of the model, shown beside the progress bar. `parallel`: processes that train, such as "ddp 4";
    several create the job from `recipe`. `on_log`: called with each record of the history; None = show a
    progress bar. Raises Stopped if a stop was requested; the same call resumes from there.
    """
    attach(job.model, job.tokenizer, job.config.adapter, seed=job.config.seed)
    begin_again(job.model, folder / TRAINING_FOLDER)  # what is a copy shows before the first step
    copied = copied_globals(job.model)
    with Progress(total=job.config.steps, desc=name, unit="step", disable=on_log is not None) as bar:
        result = train_in_processes(
            recipe,
            job=job,
            processes=processes_of(parallel, config=job.config),
            folder=folder / TRAINING_FOLDER,
            on_log=on_log or (lambda record: bar.update(record["step"] - bar.n)),
        )
    if result.interrupted:
        of = f" of {name}" if name else ""
        raise Stopped(f"Stopped after step {result.steps}{of}, which is kept: run all cells again to go on.")
    update_unused_globals(copied)
    save_model(job.model, job.tokenizer, folder / MODEL_FOLDER, write=write)
    merge(job.model)
    return result


if __name__ == "__main__":
    from cdlm_lab.training import fine_tuning  # the module itself, of which `__main__` is a copy

    fine_tuning.main(Path(sys.argv[1]))
