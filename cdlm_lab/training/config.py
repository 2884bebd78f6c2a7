"""The settings of a training run, validated when they are created.

Defaults are those of the CDLM paper (appendix B): learning rate 3e-5, 500 steps of linear warm-up, then a
polynomial decay of power 3. "The rest of the hyperparameters are the same as for RoBERTa" (Liu et al. 2019,
their table of pretraining hyperparameters): AdamW with beta_2 0.98, epsilon 1e-6 and weight decay 0.01. That
table also has gradient clipping 0.0; the CDLM paper itself does not mention it. We clip at 1.0 by default; 0
turns clipping off.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cdlm_lab.encoders.model_folder import Adapter
from cdlm_lab.encoders.precision import Precision
from cdlm_lab.parameters import ParameterError, settings
from cdlm_lab.progress import usable_cores

# Settings that may change when a run is resumed. With another `micro_batch_size`, as after a lack of memory,
# gradients of the whole batch and validation losses are the same up to rounding; dropout draws other numbers.
FREE_TO_CHANGE = ("workers", "micro_batch_size")
Workers = Annotated[int, Field(ge=0)] | Literal["auto"]
MOST_WORKERS = 8  # maximum for `auto`


@settings
class TrainingConfig:
    """How to train; independent of model and data."""

    steps: int = Field(ge=1)  # optimiser updates
    batch_size: int = Field(ge=1)  # examples per update, over all micro-batches and processes
    # Examples per forward pass of a process: fewer need less memory; dropout differs, gradients do not.
    micro_batch_size: int = Field(ge=1)
    evaluate_every: int = Field(ge=1)  # steps between evaluations; the last step is always evaluated
    save_every: int = Field(ge=1)  # steps between checkpoints; a new best one and the last are saved as well
    log_every: int = Field(ge=1)  # steps between records of the training loss; the first step is recorded too
    seed: int = Field(ge=0, lt=2**32)  # random seed of dropout
    learning_rate: float = Field(default=3e-5, gt=0)  # its maximum, after the warm-up
    warmup_steps: int = Field(default=500, ge=0)  # updates over which the rate grows linearly from 0
    # After the warm-up the rate is learning_rate * (fraction of steps left) ** decay_power; 0 = constant.
    decay_power: float = Field(default=3.0, ge=0)
    weight_decay: float = Field(default=0.01, ge=0)  # of AdamW; biases and norms are not decayed
    adam_beta2: float = Field(default=0.98, ge=0, lt=1)  # beta_1 is 0.9
    adam_epsilon: float = Field(default=1e-6, gt=0)
    max_gradient_norm: float = Field(default=1.0, ge=0)  # gradients are clipped to this norm; 0 = never
    precision: Precision = "auto"  # of the forward pass; weights stay float32
    gradient_checkpointing: bool = False  # compute activations twice: a third slower, much less memory
    patience: int = Field(default=0, ge=0)  # evaluations without a new best until early stopping; 0 = never
    # (part of a parameter's name, factor on its learning rate). A parameter may match one part only.
    learning_rate_factors: tuple[tuple[str, Annotated[float, Field(ge=0)]], ...] = ()
    adapter: Adapter = ""  # "lora" = of the encoder only an adapter is trained (`encoders.adapter`)
    workers: Workers = "auto"  # processes that make examples while the model computes: same results

    def __post_init__(self) -> None:
        if self.warmup_steps >= self.steps:
            raise ParameterError(
                f"warmup_steps ({self.warmup_steps}) must be fewer than steps ({self.steps}), and 0 or more"
            )
        self.accumulation(processes=1)

    def accumulation(self, *, processes: int) -> int:
        """The number of micro-batches per process and update. Raises ParameterError if `batch_size` is not a
        multiple of `micro_batch_size` x `processes`."""
        at_once = self.micro_batch_size * processes
        of = f" x {processes} processes = {at_once}" if processes > 1 else ""
        if self.batch_size % at_once:
            raise ParameterError(
                f"batch_size ({self.batch_size}) must be a multiple of "
                f"micro_batch_size ({self.micro_batch_size}){of}"
            )
        return self.batch_size // at_once


def resolve_workers(workers: Workers, *, device: str, processes: int = 1) -> int:
    """Replace `auto` by a number for a type of device: 0 on the CPU, where workers would take cores from the
    model; else the cores of this program, divided by the `processes` on this machine, less one for each
    process itself."""
    if workers != "auto":
        return workers
    return 0 if device == "cpu" else max(1, min(MOST_WORKERS, usable_cores() // processes - 1))
