"""Models pretrained with paragraphs (MSPP), which notebook 08 leaves and notebooks 09 and 10 fine-tune.

Training in this process or in several, which torchrun starts: what a notebook tells them, and what they
tell it.

The processes run this module. Each makes the same model and the same examples again, by the same function of
the same settings; tokenised corpora are there already. What a notebook does before and after the training,
such as predicting, it does alone.

Training on a task whose examples are read in several passes, as the papers' fine-tunings are.

Numbers that take long to compute, kept on disk as they come, so that a stopped run goes on.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import shlex
import sys
import time
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from safetensors.torch import load_file
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.data.files import replaced_file
from cdlm_lab.errors import Stopped
from cdlm_lab.models.checkpoint import default_device
from cdlm_lab.models.encoder import AttentionDropout
from cdlm_lab.models.joint import paragraph_head
from cdlm_lab.models.precision import Precision
from cdlm_lab.parameters import ParameterError, check_least, check_types
from cdlm_lab.progress import Progress, is_first
from cdlm_lab.report import ASIDE
from cdlm_lab.training.checkpoints import (
    MODEL_FOLDER,
    TRAINING_FOLDER,
    check_loaded,
    checkpoint_step,
    last_good_checkpoint,
    save_model,
)
from cdlm_lab.training.config import TrainingConfig, Workers
from cdlm_lab.training.history import HISTORY_FILE, Record, read_history, truncate_history
from cdlm_lab.training.processes import (
    LOG_FILE,
    Processes,
    end_with_parent,
    join_others,
    keep_fault,
    run_processes,
)
from cdlm_lab.training.trainer import TrainingResult, train
from cdlm_lab.training.validation import Judge
from cdlm_lab.widgets.html import seconds_in_words

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


Item = TypeVar("Item")


def config_of_passes(
    *,
    items: int,
    epochs: int,
    batch_size: int,
    warmup_steps: int | None = None,
    parallel: str = "",
    **others: Any,
) -> TrainingConfig:
    """So many passes over so many items; each is evaluated, and the best one kept.

    Choices where the papers are silent, as in their released code: the learning rate falls linearly to 0, and
    AdamW has beta_2 0.999, epsilon 1e-8 and no weight decay (coreference, document matching, facts). Notebook
    06 has epsilon 1e-6 and weight decay 0.01, as the code for HotpotQA; notebook 09 weight decay 0.01, as the
    MSPP paper.

    Args:
        warmup_steps: None = a tenth of all; at most half of them.
        parallel: processes that share the batches, as of `Processes.of`; it is only checked that they can.
        others: as of `TrainingConfig`.

    Raises:
        ParameterError: values that cannot be.
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
    config.accumulation(processes=Processes.of(parallel).total)
    return config


@dataclass(frozen=True, kw_only=True)
class FineTuning:
    """How each system of notebooks 09 and 10 is trained; in brackets the MSPP paper's values for WikiQA and
    TREC-QA, and for FEVER.

    Attributes:
        seeds: how many times each is trained, with seeds from 0 [5; not told].
        epochs: passes over what is trained on [40; not told].
        patience: passes without a better one on dev after which training ends; 0 = never [not told].
        batch_size: examples of one update [32; 64]; an example is what a system reads at once.
        micro_batch_size: of these held at once.
        learning_rate: the largest [2e-6; 1e-5]; it falls linearly.
        warmup_steps: updates until it is reached [1000; 1000]; at most half of them.
        dropout: of hidden states and head; None = as the checkpoint says.
        attention_dropout: of attention weights; `checkpoint` = as the checkpoint says.
        precision: of the forward pass in training and on held-out data, as of `TrainingConfig`.
        parallel: processes that train, as of `Processes.of`; "" = one. Held-out data are read by one.
        workers: as of `TrainingConfig`.
    """

    seeds: int = 1
    epochs: int = 2
    patience: int = 0
    batch_size: int = 16
    micro_batch_size: int = 16
    learning_rate: float = 0.001
    warmup_steps: int = 20
    dropout: float | None = None
    attention_dropout: AttentionDropout = 0.0
    precision: Precision = "auto"
    parallel: str = ""
    workers: Workers = "auto"

    def __post_init__(self) -> None:
        check_types(self)
        Processes.of(self.parallel)
        check_least(self, 1, "seeds", "epochs", "batch_size", "micro_batch_size")
        check_least(self, 0, "patience", "warmup_steps")

    def config(self, *, items: int, seed: int) -> TrainingConfig:
        """With one seed, on so many examples. Raises ParameterError for values that cannot be."""
        return config_of_passes(
            items=items,
            epochs=self.epochs,
            batch_size=self.batch_size,
            micro_batch_size=self.micro_batch_size,
            learning_rate=self.learning_rate,
            warmup_steps=self.warmup_steps,
            patience=self.patience,
            precision=self.precision,
            parallel=self.parallel,
            workers=self.workers,
            seed=seed,
        )


def in_training_order(items: Sequence[Item], config: TrainingConfig) -> Iterator[Item]:
    """As many items as training takes; each pass is shuffled anew."""
    left, epoch = config.steps * config.batch_size, 0
    while left > 0:
        for number in np.random.default_rng([config.seed, epoch]).permutation(len(items))[:left]:
            yield items[number]
        left, epoch = left - len(items), epoch + 1


def fine_tune(
    job: TrainingJob, *, folder: Path, name: str, parallel: str = "", recipe: Recipe | None = None
) -> None:
    """Train with a bar called `name`, and write the model into `folder/model` as it was at the lowest loss on
    the validation examples, or where the judge found it best. Errors as of `train_in_processes`.

    Args:
        parallel: processes that train, as of `Processes.of`; several make the job as `recipe` says.

    Raises:
        Stopped: it was asked to stop; the same call goes on from there.
    """
    config = job.config
    with Progress(total=config.steps, desc=name, unit="step") as bar:
        result = train_in_processes(
            recipe,
            job=job,
            processes=Processes.of(parallel, config=config),
            folder=folder / TRAINING_FOLDER,
            on_log=lambda record: bar.update(record["step"] - bar.n),
        )
    if result.interrupted:
        raise Stopped(f"stopped in {name}, after step {result.steps}; run again to go on")
    save_model(job.model, job.tokenizer, folder / MODEL_FOLDER)


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


def paragraph_checkpoint(given: str, *, head: str) -> str:
    """The model that was pretrained with a head.

    Args:
        given: the parameter `mspp`: a run folder of notebook 08, a folder with its model, or a folder that
            holds several run folders, of which the head tells the one (those put aside by a grid do not
            count).
        head: `ie` or `ae`.

    Raises:
        ParameterError: it is not there, not given, was pretrained with the other head, or there are several.
            A model without a head of pre-training, as another program may have left, is taken at its word if
            it alone is named.
    """
    kind = f"{head}_k"
    remedy = f"give a run folder of notebook 08 that was pretrained with {kind}, or leave out its systems"
    if not given:
        raise ParameterError(f'mspp is ""; {remedy}')
    if alone := next(filter(_is_model, (Path(given) / MODEL_FOLDER, Path(given))), None):
        pretrained = _kind(alone)
        if pretrained not in (kind, None):
            raise ParameterError(f"mspp is {given!r}, which was pretrained with {pretrained}; {remedy}")
        return str(alone)
    folders = (folder for folder in sorted(Path(given).glob("*/")) if ASIDE not in folder.name)
    models = (folder / MODEL_FOLDER for folder in folders)
    found = [model for model in models if _is_model(model) and _kind(model) == kind]
    if not found:
        raise ParameterError(f"mspp is {given!r}, where there is no model pretrained with {kind}; {remedy}")
    if len(found) > 1:
        names = " and ".join(model.parent.name for model in found[:2])
        raise ParameterError(f"mspp is {given!r}, where {names} were pretrained with {kind}; keep one there")
    return str(found[0])


def _is_model(folder: Path) -> bool:
    return (folder / "config.json").is_file()


def _kind(folder: Path) -> str | None:
    pretrained = paragraph_head(str(folder))
    return pretrained[0].kind if pretrained else None


if __name__ == "__main__":
    from cdlm_lab.experiments import (
        runs as parallel,  # the module that experiments import, of which this is a copy
    )

    parallel.main(Path(sys.argv[1]))
