"""Training on a task whose examples are read in several passes, as the papers' fine-tunings are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cdlm_lab.experiments.parallel import Recipe, TrainingJob, train_in_processes
from cdlm_lab.models.dropout import AttentionDropout
from cdlm_lab.models.precision import Precision
from cdlm_lab.parameters import check_least, check_types
from cdlm_lab.progress import Progress
from cdlm_lab.told import Stopped
from cdlm_lab.training.config import TrainingConfig, Workers
from cdlm_lab.training.processes import Processes
from cdlm_lab.training.saved_model import MODEL_FOLDER, TRAINING_FOLDER, save_model

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
