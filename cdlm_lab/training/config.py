"""The settings of a training run, checked when they are made.

Defaults are those of the CDLM paper (appendix B): learning rate 3e-5, 500 steps of linear warm-up, then a
polynomial decay of power 3. "The rest of the hyperparameters are the same as for RoBERTa" (Liu et al. 2019,
their table of pretraining hyperparameters): AdamW with beta_2 0.98, epsilon 1e-6 and weight decay 0.01. That
table also says gradient clipping 0.0; the CDLM paper itself is silent. We clip at 1.0 unless told otherwise;
0 clips nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from cdlm_lab.models.precision import Precision
from cdlm_lab.parameters import ParameterError, check_types
from cdlm_lab.progress import usable_cores

FREE_TO_CHANGE = ("sharded", "workers")  # when a run goes on
Workers = int | Literal["auto"]
MOST_WORKERS = 8  # that `auto` means


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How to train; knows neither model nor data.

    Attributes:
        steps: optimiser updates.
        batch_size: examples for one update, over all micro-batches and processes.
        micro_batch_size: examples that one process holds at once; smaller needs less memory, and changes
            dropout but neither loss nor gradients.
        evaluate_every: steps between evaluations on the validation examples; the last step is always
            evaluated.
        save_every: steps between checkpoints; each new best one and the last step are saved as well.
        log_every: steps between records of the training loss (the first step is recorded too).
        seed: of dropout; see `cdlm_lab.training.trainer.train`.
        learning_rate: the largest, reached after the warm-up.
        warmup_steps: updates over which the learning rate grows linearly from 0. Fewer than `steps`.
        decay_power: after the warm-up the rate is `learning_rate * (share of steps left) ** decay_power`; 0 =
            it stays as it is.
        weight_decay: of AdamW; biases and norms are not decayed.
        adam_beta2: decay of the second moment; beta_1 is 0.9.
        adam_epsilon: added to the root of the second moment.
        max_gradient_norm: longer gradients are shortened to this; 0 = never.
        precision: of the forward pass (weights stay float32). `auto`: bfloat16 on CUDA devices and CPUs that
            have it, else float16 on CUDA, else float32; see
            `cdlm_lab.models.precision.resolve_precision`.
        gradient_checkpointing: forget activations and compute them again in the backward pass: a third
            slower, and much less memory.
        patience: evaluations without a better checkpoint after which training ends; 0 = it goes to its end.
        learning_rate_factors: (part of a parameter's name, factor) pairs, for parameters that learn faster or
            slower than the rest, such as freshly initialised global projections. A parameter may match one
            part only.
        sharded: True = several processes share out weights, gradients and moments (see sharding.py), which
            changes memory and speed, not numbers; False = each has all of them. One process has all.
        workers: processes that make examples beside each one that trains, while it computes; they change no
            number. `auto`: some where a GPU would wait for examples, none on the CPU; 0 = none.
    """

    steps: int
    batch_size: int
    micro_batch_size: int
    evaluate_every: int
    save_every: int
    log_every: int
    seed: int
    learning_rate: float = 3e-5
    warmup_steps: int = 500
    decay_power: float = 3.0
    weight_decay: float = 0.01
    adam_beta2: float = 0.98
    adam_epsilon: float = 1e-6
    max_gradient_norm: float = 1.0
    precision: Precision = "auto"
    gradient_checkpointing: bool = False
    patience: int = 0
    learning_rate_factors: tuple[tuple[str, float], ...] = ()
    sharded: bool = False
    workers: Workers = "auto"

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("steps", "batch_size", "micro_batch_size", "evaluate_every", "save_every", "log_every"):
            _require(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("learning_rate", "adam_epsilon"):
            _require(
                0 < getattr(self, name) < math.inf, f"{name} is {getattr(self, name)}; it must be above 0"
            )
        for name in ("decay_power", "weight_decay", "max_gradient_norm", "patience"):
            _require(
                0 <= getattr(self, name) < math.inf, f"{name} is {getattr(self, name)}; it must be 0 or more"
            )
        _require(
            self.workers == "auto" or self.workers >= 0,
            f"workers is {self.workers}; write how many processes make examples, 0 for none, or 'auto'",
        )
        for part, factor in self.learning_rate_factors:
            _require(
                0 <= factor < math.inf,
                f"the learning-rate factor of {part!r} is {factor}; it must be 0 or more",
            )
        _require(0 <= self.adam_beta2 < 1, f"adam_beta2 is {self.adam_beta2}; it must be in [0, 1)")
        _require(0 <= self.seed < 2**32, f"seed is {self.seed}; it must be in [0, 2**32)")
        _require(
            0 <= self.warmup_steps < self.steps,
            f"warmup_steps ({self.warmup_steps}) must be fewer than steps ({self.steps}), and 0 or more",
        )
        self.accumulation(processes=1)

    def accumulation(self, *, processes: int) -> int:
        """Micro-batches that each process goes through for one update.

        Raises:
            ParameterError: `batch_size` is not a multiple of `micro_batch_size` x `processes`.
        """
        at_once = self.micro_batch_size * processes
        of = f" x {processes} processes = {at_once}" if processes > 1 else ""
        _require(
            self.batch_size % at_once == 0,
            f"batch_size ({self.batch_size}) must be a multiple of "
            f"micro_batch_size ({self.micro_batch_size}){of}",
        )
        return self.batch_size // at_once

    def learning_rate_at(self, step: int) -> float:
        """The learning rate of update number `step`, counted from 0: linear warm-up, then polynomial decay to
        0."""
        if step < self.warmup_steps:
            return self.learning_rate * step / self.warmup_steps
        left = 1 - (step - self.warmup_steps) / (self.steps - self.warmup_steps)
        return self.learning_rate * left**self.decay_power


def resolve_workers(workers: Workers, *, device: str, processes: int = 1) -> int:
    """What `auto` means on a kind of device: on the CPU none, which would take cores from the model; else as
    many as this program has cores, shared by so many processes on this machine, without one for each of them.
    """
    if workers != "auto":
        return workers
    return 0 if device == "cpu" else max(1, min(MOST_WORKERS, usable_cores() // processes - 1))


def _require(fulfilled: bool, message: str) -> None:
    if not fulfilled:
        raise ParameterError(message)
