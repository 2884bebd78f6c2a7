"""What happens between the steps of a run."""

from __future__ import annotations

import sys
from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from cdlm_lab.training.progress import TrainingBar


class StepByStep(TrainerCallback):
    """Moves the bar after each step and stops the run when asked.

    Args:
        trainer: the `ResumableTrainer` of the run.
    """

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Take up what a checkpoint brought, and draw a bar where nobody else shows the records."""
        self._trainer.restore_sums()
        # Whoever takes the records shows them; in a notebook a bar of text beside a live curve is noise.
        shown_elsewhere = self._trainer.records_are_shown and not sys.stderr.isatty()
        if state.is_world_process_zero and not shown_elsewhere:
            self._trainer.bar = TrainingBar(total=state.max_steps, done=state.global_step)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Advance; if a process was asked to stop, all do, after a checkpoint."""
        trainer = self._trainer
        if trainer.bar:
            trainer.bar.advance()
        asked = torch.tensor([trainer.stop.asked], dtype=torch.int64, device=args.device)
        if trainer.accelerator.num_processes > 1:  # signals reach the processes in different steps
            asked = trainer.accelerator.gather(asked)
        if asked.any() and state.global_step < state.max_steps:
            trainer.interrupted = True
            control.should_training_stop = control.should_save = True
