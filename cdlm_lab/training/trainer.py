"""Train a model on ordered examples: one function for every task whose model returns a loss.

A run that was killed, or stopped by an interrupt, resumes from its last complete checkpoint when `train` is
called again with the same arguments; on the CPU its losses are then bit for bit those of an uninterrupted
run. The best checkpoint is chosen on the validation examples, or by a judge. Several processes
use `torchrun`, with the same code.

Accumulated gradients and several processes give the loss and gradients of the full batch if the model
declares `accepts_loss_kwargs = True` and divides the sum of its losses by the `num_items_in_batch` it is
given (the labels that are not -100 in the whole effective batch). For other models they give the mean over
micro-batches.

Seeding happens only here: Trainer seeds the global generators from `config.seed` when it is created, for
dropout. Examples never use these generators; they are a pure function of their own seed, so that worker
processes (`config.workers`) may make them.

What is changed in transformers.Trainer (5.23), and why:
- It assumes that models whose `forward` has `**kwargs` divide their loss by `num_items_in_batch`. Roberta-,
  Bert- and LongformerForMaskedLM do not, and their accumulated gradients come out several times too large.
  Here a model does so only if it says `accepts_loss_kwargs = True`.
- Its `evaluate` averages the losses of batches, and with several processes counts some examples twice.
- Its checkpoints appear file by file, contain pickled arguments, and lack the losses summed up since the last
  record.
- It replaces non-finite losses in the log by the mean of earlier ones. Here they end the run.
- All its processes start with the same dropout; here process n uses the seed plus n.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.utils.data import Sampler, SequentialSampler
from transformers import PreTrainedModel, PreTrainedTokenizerBase, Trainer, TrainingArguments
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_callback import PrinterCallback, TrainerCallback, TrainerControl, TrainerState

from cdlm_lab.encoders.adapter import attach
from cdlm_lab.encoders.checkpoint import without_bars
from cdlm_lab.encoders.precision import memory_kept, resolve_precision
from cdlm_lab.parameters import ParameterError, closest_name
from cdlm_lab.progress import forking, processes_here
from cdlm_lab.training import checkpoints, history, validation
from cdlm_lab.training.checkpoints import (
    CheckpointError,
    begin_again,
    check_loaded,
    checkpoint_path,
    checkpoint_step,
)
from cdlm_lab.training.config import TrainingConfig, resolve_workers
from cdlm_lab.training.history import Record
from cdlm_lab.training.validation import JUDGED, Judge, Selection, parts_of

SECONDS_BETWEEN_CHECKPOINTS = 600.0  # at most, however rarely the config asks for one


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """A model and the data to train it on."""

    model: PreTrainedModel  # `model(**collate(examples))` returns a mapping with `loss`
    tokenizer: PreTrainedTokenizerBase | None = None  # saved in each checkpoint
    train_examples: Sequence  # in training order; at least steps x batch_size, more are not used
    validation_examples: Sequence
    # Returns `labels` (-100 = no loss), and `input_ids`, `attention_mask` or `sentence_mask`.
    collate: Callable[..., Mapping[str, Tensor]]
    config: TrainingConfig
    judge: Judge | None = None  # decides which checkpoint is best


def parameter_groups(
    model: nn.Module,
    *,
    decayed: Collection[str],
    weight_decay: float,
    learning_rate: float,
    factors: Sequence[tuple[str, float]] = (),
) -> list[dict[str, Any]]:
    """Groups of parameters for AdamW: one for each pair of (decayed or not, factor), the first with factor 1
    even if empty, since Trainer logs its rate. `decayed`: names of parameters with weight decay; `factors`:
    (part of a name, factor on the learning rate) pairs. Raises ParameterError for a part that no parameter's
    name contains, and for a parameter whose name contains two parts."""
    grouped: dict[tuple[float, bool], list[nn.Parameter]] = {(1.0, True): []}
    learning = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    for part, _ in factors:
        if not any(part in name for name in learning):
            names = {piece for name, _ in model.named_parameters() for piece in name.split(".")}
            raise ParameterError(
                f"learning_rate_factors: no parameter's name contains {part!r}; {closest_name(part, names)}"
            )
    for name, parameter in learning.items():
        matching = [(part, factor) for part, factor in factors if part in name]
        if len(matching) > 1:
            parts = " and ".join(repr(part) for part, _ in matching)
            raise ParameterError(
                f"learning_rate_factors: the parameter {name} matches {parts}; keep one of them"
            )
        factor = matching[0][1] if matching else 1.0
        grouped.setdefault((factor, name in decayed), []).append(parameter)
    return [
        {"params": parameters, "weight_decay": weight_decay if decay else 0.0, "lr": learning_rate * factor}
        for (factor, decay), parameters in grouped.items()
    ]


class ResumableTrainer(Trainer, TrainerCallback):
    """transformers.Trainer with exact resumption, also its own callback; created and run by `train`."""

    def __init__(
        self,
        job: TrainingJob,
        folder: Path,
        *,
        on_log: Callable[[Record], None] | None,  # called in rank 0 with each record
        stop: history.StopRequest,  # checked after each step
    ) -> None:
        super().__init__(
            model=job.model,
            args=training_arguments(job.config, folder, judged=job.judge is not None),
            train_dataset=job.train_examples,
            eval_dataset=job.validation_examples,
            data_collator=job.collate,
        )
        self.config, self.folder, self.stop, self.tokenizer_to_save = job.config, folder, stop, job.tokenizer
        self.selection = Selection(judge=job.judge, patience=job.config.patience)
        self.history = history.RunHistory(self.folder, writer=self.is_world_process_zero(), on_log=on_log)
        self._records_are_shown = on_log is not None
        self.bar: history.TrainingBar | None = None
        self.interrupted = False
        self.model_accepts_loss_kwargs = bool(getattr(self.model, "accepts_loss_kwargs", False))
        self.remove_callback(PrinterCallback)  # which `disable_tqdm` adds in place of the bars
        self.add_callback(self)
        self._saved: dict[str, Any] | None = None
        self._seconds_before, self._tokens_before, self._began = 0.0, 0, time.monotonic()
        self._tokens = torch.zeros((), dtype=torch.int64, device=self.args.device)
        self._parts = validation.LossParts(parts_of(self.model), accelerator=self.accelerator)
        if self.accelerator.num_processes > 1:
            torch.manual_seed(self.args.seed + self.accelerator.process_index)

    # ---- beginning and going on

    def run(self, checkpoint: Path | None) -> None:
        """Train from the start (None) or from a complete checkpoint, to the end or until stopped."""
        if checkpoint is not None:
            self._saved = checkpoints.read_progress(checkpoint, config=self.config)
        self.history.begin(checkpoint_step(checkpoint) if checkpoint else 0)
        self._began = self._checkpointed = time.monotonic()
        try:
            if checkpoint is not None and (
                # otherwise Trainer would make one more step if there is more data
                checkpoint_step(checkpoint) >= self.config.steps
                or self.selection.is_over(self.history.records)
            ):
                self.state = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
                self._seconds_before, self._tokens_before = self._saved["seconds"], self._saved["tokens"]
            else:
                with forking() if self.args.dataloader_num_workers else nullcontext():
                    self.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
            self.accelerator.wait_for_everyone()  # rank 0 may still be writing what the others read next
            if self.state.best_global_step and not self.interrupted:
                self._load_best_model()
        finally:
            if self.bar:
                self.bar.close()

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Restore the sums that Trainer does not save, and show a bar where records are not shown."""
        if (saved := self._saved) is not None:
            sums, process = saved["loss_sums"], self.accelerator.process_index
            same_processes = len(sums) == self.accelerator.num_processes
            self._tr_loss += sums[process] if same_processes else sum(sums) / len(sums)
            self._globalstep_last_logged = saved["last_logged_step"]
            self._parts.restore(saved.get("loss_part_sums", []), last_step=saved["last_logged_step"])
            self._seconds_before, self._tokens_before = saved["seconds"], saved["tokens"]
        # `on_log` shows the records itself; in a notebook a text bar beside a live curve is noise.
        shown_elsewhere = self._records_are_shown and not sys.stderr.isatty()
        if state.is_world_process_zero and not shown_elsewhere:
            self.bar = history.TrainingBar(total=state.max_steps, done=state.global_step)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Advance the bar; write a checkpoint if one is due by time, or a process is to stop: all do then."""
        if self.bar:
            self.bar.advance()
        stop, due = self.stop.requested, time.monotonic() - self._checkpointed >= SECONDS_BETWEEN_CHECKPOINTS
        if self.accelerator.num_processes > 1:  # signals reach the processes in different steps
            flags = torch.tensor([[stop, due]], dtype=torch.int64, device=args.device)
            stop, due = self.accelerator.gather(flags).any(0).tolist()
        if (stop or due) and state.global_step < state.max_steps:
            control.should_save, self.interrupted = True, stop
            control.should_training_stop |= stop

    # ---- data and gradients

    def _get_train_sampler(self, train_dataset: Any = None) -> Sampler:
        return SequentialSampler(self.train_dataset if train_dataset is None else train_dataset)

    def get_batch_samples(
        self, epoch_iterator: Iterator, num_batches: int, device: torch.device
    ) -> tuple[list, Tensor | int | None]:
        """As in Trainer, but also count tokens (without padding) without waiting for the device; for batches
        of sentences, count sentences."""
        batches, items = super().get_batch_samples(epoch_iterator, num_batches, device)
        for batch in batches:
            mask = batch.get("attention_mask", batch.get("sentence_mask"))
            self._tokens += batch["input_ids"].numel() if mask is None else mask.sum().to(self._tokens.device)
        return batches, items

    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        """AdamW over the groups of `parameter_groups`."""
        if self.optimizer is None:
            model = self.model if model is None else model
            groups = parameter_groups(
                model,
                decayed=set(self.get_decay_parameter_names(model)),
                weight_decay=self.config.weight_decay,
                learning_rate=self.config.learning_rate,
                factors=self.config.learning_rate_factors,
            )
            kind, arguments = self.get_optimizer_cls_and_kwargs(self.args, model)
            self.optimizer = kind(groups, **arguments)
        return self.optimizer

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """As in Trainer, but also sum up the parts of the loss for the next record."""
        loss, outputs = super().compute_loss(model, inputs, True, num_items_in_batch)
        self._parts.add(outputs)
        return (loss, outputs) if return_outputs else loss

    def floating_point_ops(self, inputs: Any) -> int:
        """0: Trainer would count all parameters again for each micro-batch, for a number that is not used."""
        return 0

    # ---- records

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Turn what Trainer reports into a record, except for its closing summary. Raises FloatingPointError
        if the loss is nan or infinite."""
        if not {"loss", "eval_loss"} & logs.keys():
            return
        loss, step = logs.get("loss", logs.get("eval_loss")), self.state.global_step
        if loss is None or not math.isfinite(loss):
            kind = "training" if "loss" in logs else "validation"
            raise FloatingPointError(
                f"the {kind} loss is {loss} at step {step}: lower the learning rate "
                f"({self.config.learning_rate:g}), lengthen the warm-up ({self.config.warmup_steps} steps) "
                "or use precision 'float32'"
            )
        if "loss" in logs:
            logs |= self._parts.means(step)
        record: Record = {"step": step, **logs}
        if "grad_norm" in record:
            norm = record.pop("grad_norm")
            record["gradient_norm"] = norm if math.isfinite(norm) else None
        record |= {
            "seconds": round(self._seconds(), 3),
            "tokens": self._tokens_read(),
            "total_steps": self.state.max_steps,
        }
        self.history.add(record)
        if self.bar:
            names = {"loss": "loss", "eval_perplexity": "perplexity"}
            self.bar.show(**{shown: record[name] for name, shown in names.items() if name in record})
        self.control = self.callback_handler.on_log(self.args, self.state, self.control, logs)

    def _seconds(self) -> float:
        return self._seconds_before + time.monotonic() - self._began

    def _tokens_read(self) -> int:
        """Tokens that all processes have read since the run began. All processes must call it."""
        tokens = self._tokens
        if self.accelerator.num_processes > 1:
            tokens = self.accelerator.gather(tokens[None]).sum()
        return self._tokens_before + int(tokens.item())

    # ---- evaluation

    def evaluate(
        self, eval_dataset: Any = None, ignore_keys: list[str] | None = None, metric_key_prefix: str = "eval"
    ) -> dict[str, float]:
        """The token-weighted loss on the validation examples, and its exponential, the perplexity."""
        examples = self.eval_dataset if eval_dataset is None else eval_dataset
        batches = validation.SharedBatches(
            len(examples),
            batch_size=self.config.micro_batch_size,
            process=self.accelerator.process_index,
            processes=self.accelerator.num_processes,
        )
        workers = self.args.dataloader_num_workers
        loss, _, parts = validation.validation_loss(
            self.model,
            validation.validation_loader(examples, self.data_collator, batches, workers=workers),
            accelerator=self.accelerator,
            to_device=self._prepare_inputs,
            after_batch=lambda: self.bar.checking(total=len(batches)) if self.bar else None,
        )
        if self.bar:
            self.bar.checked()
        # exp overflows at 709.8; a loss near that is treated as infinite, which `log` refuses.
        perplexity = math.exp(loss) if loss < 700 else math.inf
        metrics = {
            "eval_loss": loss if math.isfinite(perplexity) else perplexity,
            "eval_perplexity": perplexity,
            **parts,
            **self._judged(),
        }
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def _judged(self) -> dict[str, float]:
        """The judge's score in the first process, for all: they must agree on early stopping, even where a
        device does not compute the same twice."""
        scores = self.selection.judged(self.model)
        if self.accelerator.num_processes > 1:
            for name, value in scores.items():
                own = torch.tensor([value], dtype=torch.float64, device=self.args.device)
                scores[name] = float(self.accelerator.gather(own)[0])
        return scores

    def _determine_best_metric(self, metrics: dict[str, float], trial: Any) -> bool:
        """As in Trainer, but save each new best model even if no checkpoint is due, and stop when patience is
        exhausted."""
        best = super()._determine_best_metric(metrics, trial)
        over = self.selection.is_over(self.history.records)
        self.control.should_training_stop |= over
        self.control.should_save |= best or over
        return best

    # ---- checkpoints

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Write a checkpoint; then remove all but this one and one other."""
        step, self._checkpointed = self.state.global_step, time.monotonic()
        random_state = checkpoints.gather_random_state(self.accelerator)
        progress = {
            "config": dataclasses.asdict(self.config),
            "seconds": self._seconds(),
            "tokens": self._tokens_read(),
            "loss_sums": self.accelerator.gather(self._tr_loss[None]).tolist(),
            "last_logged_step": self._globalstep_last_logged,
            "loss_part_sums": self._parts.gathered(),
        }
        if not self.args.should_save:
            return
        with checkpoints.writing_checkpoint(self.folder, step) as folder:
            with without_bars():
                self.model.save_pretrained(folder)
            if self.tokenizer_to_save is not None:
                self.tokenizer_to_save.save_pretrained(folder)
            self._save_optimizer_and_scheduler(str(folder))
            self._save_scaler(str(folder))
            save_file(random_state, folder / checkpoints.RANDOM_STATE_FILE)
            text = json.dumps(progress, indent=1) + "\n"
            (folder / checkpoints.PROGRESS_FILE).write_text(text, encoding="utf-8")
            self.state.save_to_json(str(folder / TRAINER_STATE_NAME))
        checkpoints.keep_only(self.folder, checkpoints.steps_to_keep(self.folder, step))

    def _load_best_model(self) -> None:
        """As in Trainer, but even if the run was moved, and only if undamaged; else CheckpointError."""
        best = checkpoint_path(self.folder, self.state.best_global_step)
        if self.is_world_process_zero() and (damage := checkpoints.damage_of(best)):
            raise CheckpointError(f"{best}, the best of the run, is damaged: {damage}")
        self.state.best_model_checkpoint = str(best)
        super()._load_best_model()

    def _issue_warnings_after_load(self, load_result: Any) -> None:
        """Check the weights strictly: Trainer would warn of tied weights, and only warn of others."""
        check_loaded(self.model, missing=load_result.missing_keys, unexpected=load_result.unexpected_keys)

    def _load_rng_state(self, checkpoint: str | None) -> None:
        if checkpoint and not checkpoints.load_random_state(Path(checkpoint), self.accelerator):
            print("More processes than before: the run goes on with other dropout than it would have had.")

    # ---- end

    def result(self) -> TrainingResult:
        """The result of the run. All processes must call it."""
        best = self.state.best_global_step or None
        return TrainingResult(
            best_checkpoint=checkpoint_path(self.folder, best) if best else None,
            last_checkpoint=checkpoint_path(self.folder, self.state.global_step),
            best_step=best,
            steps=self.state.global_step,
            interrupted=self.interrupted,
            seconds=self._seconds(),
            tokens=self._tokens_read(),
            history=tuple(self.history.records),
        )


@dataclass(frozen=True, kw_only=True)
class TrainingResult:
    """The result of a run."""

    # Folder of the checkpoint with the lowest validation perplexity, or of the one that the judge scored
    # best; `from_pretrained` takes it. None if the run was stopped before its first evaluation.
    best_checkpoint: Path | None
    last_checkpoint: Path  # folder of the last checkpoint
    best_step: int | None  # updates done at the best checkpoint
    steps: int  # updates done; fewer than planned if patience ended
    interrupted: bool  # True if the run was stopped before its end; the same call goes on from there
    seconds: float  # time of the run, without the time between a stop and its resumption
    tokens: int  # tokens read (sentences, for models of sentences), without padding
    history: tuple[Record, ...]  # the records, as in `history.jsonl`


def train(
    job: TrainingJob, folder: Path, *, on_log: Callable[[Record], None] | None = None
) -> TrainingResult:
    """Train, evaluate, keep best and last checkpoint, in this process or as one of torchrun's. The job's
    model ends as the best checkpoint (if stopped: the last).

    `folder`: for `checkpoint-<step>` and `history.jsonl`. `on_log`: called in rank 0 with each record, when
    resumed first with the earlier ones; it replaces the bar.

    Raises:
        ParameterError: a batch size that does not fit the processes; a precision the device does not have.
        ValueError: too few training examples; no validation examples, or none with a label.
        CheckpointError: the last checkpoint has other settings; all are damaged; the disk is full.
        FloatingPointError: a loss is nan or infinite.
    """
    _check_sizes(job)
    attach(job.model, job.tokenizer, job.config.adapter, seed=job.config.seed)
    with history.stop_on_signals() as stop, memory_kept(), as_prepared_before(job.model):
        begin_again(job.model, folder)
        trainer = ResumableTrainer(job, folder, on_log=on_log, stop=stop)
        trainer.run(_starting_point(trainer))
        return trainer.result()


@contextmanager
def as_prepared_before(model: nn.Module) -> Iterator[None]:
    """Undo at the end of the block what Accelerate left on the model: a forward pass in half precision, and a
    mark that it is prepared, with which another training would be one in float32."""
    names = ("forward", "_original_forward", "_is_accelerate_prepared")
    before = {name: model.__dict__[name] for name in names if name in model.__dict__}
    try:
        yield
    finally:
        for name in names:
            model.__dict__.pop(name, None)
        model.__dict__.update(before)


def training_arguments(config: TrainingConfig, folder: Path, *, judged: bool = False) -> TrainingArguments:
    """The settings in transformers' form, which also joins the processes that torchrun started. `judged`:
    True = a judge picks the best checkpoint. ParameterError: a batch size or precision that does not fit."""
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
        logging_steps=config.log_every,
        logging_first_step=True,
        logging_nan_inf_filter=False,
        eval_strategy="steps",
        eval_steps=config.evaluate_every,
        save_strategy="steps",
        save_steps=config.save_every,
        report_to="none",
        disable_tqdm=True,  # progress.py has a bar that also suits log files
        metric_for_best_model=JUDGED if judged else "eval_perplexity",
        greater_is_better=judged,
        ddp_find_unused_parameters=True,  # without global tokens the global projections have no gradient
        dataloader_pin_memory=device == "cuda",
        dataloader_num_workers=workers,
        dataloader_multiprocessing_context="fork" if workers else None,  # examples need no pickling
        remove_unused_columns=False,
    )
    if args.n_gpu > 1:  # Trainer would multiply micro-batches by their number and split them
        warnings.warn(f"of {args.n_gpu} devices one is used: start with torchrun to use all", stacklevel=3)
        args._n_gpu = 1
    args.gradient_accumulation_steps = config.accumulation(processes=args.world_size)
    return args


def _optimisation(config: TrainingConfig, *, device: str) -> dict[str, Any]:
    precision, checkpointing = (
        resolve_precision(config.precision, device=device),
        config.gradient_checkpointing,
    )
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
        "activation_checkpointing": checkpointing,
        "activation_checkpointing_kwargs": {"use_reentrant": False} if checkpointing else None,
    }


def _check_sizes(job: TrainingJob) -> None:
    needed = job.config.steps * job.config.batch_size
    if len(job.train_examples) < needed:
        raise ValueError(
            f"there are {len(job.train_examples)} training examples, but {job.config.steps} steps of "
            f"{job.config.batch_size} take {needed}"
        )
    if len(job.validation_examples) == 0:
        raise ValueError("there are no validation examples: check the size of the corpus and how it is split")


def _starting_point(trainer: ResumableTrainer) -> Path | None:
    """The checkpoint to resume from, after removing what a killed run left. Rank 0 chooses it, since that
    requires reading all of its files."""
    folder, step = trainer.folder, 0
    if trainer.is_world_process_zero():
        folder.mkdir(parents=True, exist_ok=True)
        checkpoints.remove_unfinished(folder)
        last = checkpoints.last_good_checkpoint(folder)
        step = checkpoint_step(last) if last else 0
    if trainer.accelerator.num_processes > 1:
        step = int(trainer.accelerator.gather(torch.tensor([step], device=trainer.args.device))[0])
    return checkpoint_path(folder, step) if step else None
