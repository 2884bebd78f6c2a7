"""The settings of a training run, checked when they are made.

Defaults are those of the CDLM paper (appendix B): learning rate 3e-5, 500 steps of linear warm-up, then a
polynomial decay of power 3. "The rest of the hyperparameters are the same as for RoBERTa" (Liu et al. 2019,
their table of pretraining hyperparameters): AdamW with beta_2 0.98, epsilon 1e-6 and weight decay 0.01. That
table also says gradient clipping 0.0; the CDLM paper itself is silent. We clip at 1.0 unless told otherwise;
0 clips nothing.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cdlm_lab.models.precision import Precision
from cdlm_lab.parameters import ParameterError, settings
from cdlm_lab.progress import usable_cores

FREE_TO_CHANGE = ("sharded", "workers")  # when a run goes on
Workers = Annotated[int, Field(ge=0)] | Literal["auto"]
MOST_WORKERS = 8  # that `auto` means


@settings
class TrainingConfig:
    """How to train; knows neither model nor data."""

    steps: int = Field(ge=1)  # optimiser updates
    batch_size: int = Field(ge=1)  # examples for one update, over all micro-batches and processes
    # Examples that one process holds at once: fewer need less memory; dropout differs, gradients do not.
    micro_batch_size: int = Field(ge=1)
    evaluate_every: int = Field(ge=1)  # steps between evaluations; the last step is always evaluated
    save_every: int = Field(ge=1)  # steps between checkpoints; a new best one and the last are saved as well
    log_every: int = Field(ge=1)  # steps between records of the training loss; the first is recorded too
    seed: int = Field(ge=0, lt=2**32)  # of dropout
    learning_rate: float = Field(default=3e-5, gt=0)  # the largest, after the warm-up
    warmup_steps: int = Field(default=500, ge=0)  # updates over which the rate grows linearly from 0
    # Afterwards it is learning_rate * (share of steps left) ** decay_power; 0 = it stays as it is.
    decay_power: float = Field(default=3.0, ge=0)
    weight_decay: float = Field(default=0.01, ge=0)  # of AdamW; biases and norms are not decayed
    adam_beta2: float = Field(default=0.98, ge=0, lt=1)  # beta_1 is 0.9
    adam_epsilon: float = Field(default=1e-6, gt=0)
    max_gradient_norm: float = Field(default=1.0, ge=0)  # longer gradients are shortened to this; 0 = never
    precision: Precision = "auto"  # of the forward pass; weights stay float32
    gradient_checkpointing: bool = False  # compute activations twice: a third slower, much less memory
    patience: int = Field(default=0, ge=0)  # evaluations without a new best until training ends; 0 = never
    # (part of a parameter's name, factor): these learn faster or slower. A parameter may match one part only.
    learning_rate_factors: tuple[tuple[str, Annotated[float, Field(ge=0)]], ...] = ()
    sharded: bool = False  # several processes share out weights, gradients and moments: same numbers
    workers: Workers = "auto"  # processes that make examples while the model computes: same numbers

    def __post_init__(self) -> None:
        if self.warmup_steps >= self.steps:
            raise ParameterError(
                f"warmup_steps ({self.warmup_steps}) must be fewer than steps ({self.steps}), and 0 or more"
            )
        self.accumulation(processes=1)

    def accumulation(self, *, processes: int) -> int:
        """Micro-batches that each process goes through for one update. Raises ParameterError: `batch_size` is
        not a multiple of `micro_batch_size` x `processes`."""
        at_once = self.micro_batch_size * processes
        of = f" x {processes} processes = {at_once}" if processes > 1 else ""
        if self.batch_size % at_once:
            raise ParameterError(
                f"batch_size ({self.batch_size}) must be a multiple of "
                f"micro_batch_size ({self.micro_batch_size}){of}"
            )
        return self.batch_size // at_once


def resolve_workers(workers: Workers, *, device: str, processes: int = 1) -> int:
    """What `auto` means on a kind of device: on the CPU none, which would take cores from the model; else as
    many as this program has cores, shared by so many processes on this machine, without one for each of them.
    """
    if workers != "auto":
        return workers
    return 0 if device == "cpu" else max(1, min(MOST_WORKERS, usable_cores() // processes - 1))
