"""Train a model on ordered examples: one function for every task whose model gives a loss.

A run that was killed, or stopped by an interrupt, goes on from its last whole checkpoint when `train` is
called again with the same arguments; on the CPU its losses are then, to the last bit, those of a run that
never stopped. Which checkpoint is best is decided on the validation examples, or by a judge. Several
processes or machines are `torchrun`, with the same code.

Accumulated gradients and several processes give the loss and gradients of the full batch if the model
declares `accepts_loss_kwargs = True` and divides the sum of its losses by the `num_items_in_batch` it is
given (the labels that are not -100 in the whole effective batch). For other models they give the mean over
micro-batches.

Seeding happens here and nowhere else: Trainer seeds Python's, NumPy's and torch's global generators from
`config.seed` when it is made, for dropout. Examples never come from these generators; they are a pure
function of their own seed, so that `config.workers` other processes may make them. Threads are left as they
are; freed memory is kept until the end.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainingArguments

from cdlm_lab.models.kept_memory import memory_kept
from cdlm_lab.models.precision import resolve_precision
from cdlm_lab.ranks import processes_here
from cdlm_lab.training.config import TrainingConfig, resolve_workers
from cdlm_lab.training.history import HISTORY_FILE, Record
from cdlm_lab.training.progress import stop_on_signals
from cdlm_lab.training.resumable import ResumableTrainer
from cdlm_lab.training.resume import (
    checkpoint_path,
    checkpoint_step,
    complete_checkpoints,
    last_good_checkpoint,
    remove_unfinished,
)
from cdlm_lab.training.selection import JUDGED, Judge


@dataclass(frozen=True, kw_only=True)
class TrainingResult:
    """What a run left behind.

    Attributes:
        best_checkpoint: folder of the checkpoint with the lowest validation perplexity, or of the one that
            the judge found best; `from_pretrained` takes it. None if the run was stopped before its first
            evaluation.
        last_checkpoint: folder of the last checkpoint.
        best_step: updates done at the best checkpoint.
        validation_loss: of the best checkpoint, mean over masked tokens in nats.
        validation_perplexity: exp of it.
        steps: updates done; fewer than planned if patience ended.
        interrupted: True if the run was asked to stop before its end; the same call goes on from there.
        seconds: time of the run, without the time between a stop and its resumption.
        tokens: tokens read, or sentences of models that read these; padding not counted.
        history: the records, as in `history.jsonl`.
    """

    best_checkpoint: Path | None
    last_checkpoint: Path
    best_step: int | None
    validation_loss: float | None
    validation_perplexity: float | None
    steps: int
    interrupted: bool
    seconds: float
    tokens: int
    history: tuple[Record, ...]


def train(
    *,
    model: PreTrainedModel,
    train_examples: Sequence,
    validation_examples: Sequence,
    collate: Callable[..., Mapping[str, Tensor]],
    config: TrainingConfig,
    output_dir: str | os.PathLike[str],
    tokenizer: PreTrainedTokenizerBase | None = None,
    on_log: Callable[[Record], None] | None = None,
    resume: bool = True,
    judge: Judge | None = None,
) -> TrainingResult:
    """Train, evaluate, keep best and last checkpoint; `model` ends as the best (stopped: as the last).

    Args:
        model: `model(**collate(examples))` gives a mapping with `loss`. It ends sharded if `config` says so.
        train_examples: in the order of training; at least steps x batch_size, of which no more are used.
        validation_examples: any sequence.
        collate: gives `labels` (-100 = no loss), and `input_ids`, `attention_mask` or `sentence_mask`.
        config, output_dir: the settings; the run's folder, for `checkpoint-<step>` and `history.jsonl`.
        tokenizer: saved in each checkpoint.
        on_log: called in rank 0 with each record, when resumed first with earlier ones; it replaces the bar.
        resume: False = refuse a folder that holds a run.
        judge: decides which checkpoint is best (see `cdlm_lab.training.selection.Selection`).

    Raises:
        ParameterError: a batch size that does not fit the processes; a precision that is not to be had.
        ValueError: too few training examples; no validation examples, or none with a label.
        FileExistsError: `resume` is False and the folder holds a run.
        CheckpointError: the last checkpoint has other settings; none is whole; the disk is full.
        FloatingPointError: a loss is nan or infinite.
    """
    folder = Path(output_dir)
    _check_sizes(train_examples, validation_examples, config)
    with stop_on_signals() as stop, memory_kept():
        trainer = ResumableTrainer(
            config=config,
            tokenizer=tokenizer,
            on_log=on_log,
            stop=stop,
            judge=judge,
            model=model,
            args=training_arguments(config, folder, judged=judge is not None),
            train_dataset=train_examples,
            eval_dataset=validation_examples,
            data_collator=collate,
        )
        trainer.run(_starting_point(trainer, resume=resume))
        return _result(trainer)


def training_arguments(config: TrainingConfig, folder: Path, *, judged: bool = False) -> TrainingArguments:
    """The settings in the words of transformers; this also joins the processes that torchrun started.
    `judged`: True = a judge says which checkpoint is best.

    Raises:
        ParameterError: as in `train`.
    """
    cpu = not torch.accelerator.is_available()
    device = "cpu" if cpu else str(torch.accelerator.current_accelerator())
    workers = resolve_workers(config.workers, device=device, processes=processes_here())
    args = TrainingArguments(
        output_dir=str(folder),
        use_cpu=cpu,
        seed=config.seed,
        max_steps=config.steps,
        per_device_train_batch_size=config.micro_batch_size,
        per_device_eval_batch_size=config.micro_batch_size,
        **_optimisation(config, device=device),
        **_observation(config),
        metric_for_best_model=JUDGED if judged else "eval_perplexity",
        greater_is_better=judged,
        ddp_find_unused_parameters=True,  # without global tokens the global projections have no gradient
        dataloader_pin_memory=device == "cuda",
        dataloader_num_workers=workers,
        dataloader_multiprocessing_context="fork" if workers else None,  # examples need not be pickled
        remove_unused_columns=False,
    )
    if args.n_gpu > 1:  # Trainer would enlarge each micro-batch by their number and split it over them
        warnings.warn(f"of {args.n_gpu} devices one is used: start with torchrun to use all", stacklevel=3)
        args._n_gpu = 1
    args.gradient_accumulation_steps = config.accumulation(processes=args.world_size)
    return args


def _optimisation(config: TrainingConfig, *, device: str) -> dict[str, Any]:
    precision = resolve_precision(config.precision, device=device)
    return {
        "learning_rate": config.learning_rate,
        "lr_scheduler_type": "polynomial",
        "lr_scheduler_kwargs": {"power": config.decay_power, "lr_end": 0.0},
        "warmup_steps": config.warmup_steps,
        "weight_decay": config.weight_decay,
        "adam_beta2": config.adam_beta2,
        "adam_epsilon": config.adam_epsilon,
        "max_grad_norm": config.max_gradient_norm,
        "bf16": precision == "bfloat16",
        "fp16": precision == "float16",
        "activation_checkpointing": config.gradient_checkpointing,
        "activation_checkpointing_kwargs": {"use_reentrant": False}
        if config.gradient_checkpointing
        else None,
    }


def _observation(config: TrainingConfig) -> dict[str, Any]:
    return {
        "logging_steps": config.log_every,
        "logging_first_step": True,
        "logging_nan_inf_filter": False,
        "eval_strategy": "steps",
        "eval_steps": config.evaluate_every,
        "save_strategy": "steps",
        "save_steps": config.save_every,
        "report_to": "none",
        "disable_tqdm": True,  # progress.py has a bar that is fit for logs
    }


def _check_sizes(train_examples: Sequence, validation_examples: Sequence, config: TrainingConfig) -> None:
    needed = config.steps * config.batch_size
    if len(train_examples) < needed:
        raise ValueError(
            f"there are {len(train_examples)} training examples, but {config.steps} steps of "
            f"{config.batch_size} take {needed}"
        )
    if len(validation_examples) == 0:
        raise ValueError("there are no validation examples: check the size of the corpus and how it is split")


def _starting_point(trainer: ResumableTrainer, *, resume: bool) -> Path | None:
    """The checkpoint to go on from, after clearing away what a killed run left. Rank 0 chooses it, as that
    takes reading all of its files."""
    folder, step = trainer.folder, 0
    if not resume and (complete_checkpoints(folder) or (folder / HISTORY_FILE).exists()):
        raise FileExistsError(f"{folder} holds another run: choose another folder, or resume it")
    if trainer.is_world_process_zero():
        folder.mkdir(parents=True, exist_ok=True)
        remove_unfinished(folder)
        last = last_good_checkpoint(folder)
        step = checkpoint_step(last) if last else 0
    if trainer.accelerator.num_processes > 1:
        step = int(trainer.accelerator.gather(torch.tensor([step], device=trainer.args.device))[0])
    return checkpoint_path(folder, step) if step else None


def _result(trainer: ResumableTrainer) -> TrainingResult:
    state, folder = trainer.state, trainer.folder
    best = state.best_global_step or None
    losses = {
        r["step"]: (r["eval_loss"], r["eval_perplexity"]) for r in trainer.history.records if "eval_loss" in r
    }
    loss, perplexity = losses[best] if best else (None, None)
    seconds, tokens = trainer.elapsed()
    return TrainingResult(
        best_checkpoint=checkpoint_path(folder, best) if best else None,
        last_checkpoint=checkpoint_path(folder, state.global_step),
        best_step=best,
        validation_loss=loss,
        validation_perplexity=perplexity,
        steps=state.global_step,
        interrupted=trainer.interrupted,
        seconds=seconds,
        tokens=tokens,
        history=tuple(trainer.history.records),
    )
