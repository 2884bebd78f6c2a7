"""Train a model on ordered examples: one loop for every task whose model returns a loss.

Each step takes the next `batch_size` examples, in micro-batches that the processes share; examples are a pure
function of their index, so that a run goes on at any step by taking them from there. A run that was killed,
or stopped by an interrupt, resumes from its last complete checkpoint when `train` is called again with the
same arguments, also from a folder that was moved; on the CPU its losses are then bit for bit those of an
uninterrupted run. The best checkpoint is chosen on the validation examples, or by a judge. Several processes
use `torchrun`, with the same code: Accelerate joins them.

Accumulated gradients and several processes give the loss and gradients of the full batch if the model
declares `accepts_loss_kwargs = True` and divides the sum of its losses by the `num_items_in_batch` it is
given (the labels that are not -100 in the whole effective batch). For other models they give the mean over
micro-batches. A loss that is not finite ends the run.

Seeding happens only here, for dropout: process n of several uses the seed plus n. Examples never use the
global generators, so that worker processes (`config.workers`) may make them.
"""

from __future__ import annotations

import dataclasses
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator, DistributedDataParallelKwargs
from accelerate.state import AcceleratorState
from accelerate.tracking import LOGGER_TYPE_TO_CLASS, filter_trackers, get_available_trackers
from accelerate.utils import gather_object, send_to_device, set_seed
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import PreTrainedModel, PreTrainedTokenizerBase, get_polynomial_decay_schedule_with_warmup
from transformers.trainer_pt_utils import get_parameter_names

from cdlm_lab.encoders.adapter import attach
from cdlm_lab.encoders.precision import memory_kept, resolve_precision
from cdlm_lab.examples.masking import NOT_MASKED
from cdlm_lab.parameters import ParameterError, closest_name
from cdlm_lab.progress import Share, forking, processes_here
from cdlm_lab.training import checkpoints, history
from cdlm_lab.training.checkpoints import (
    CheckpointError,
    Progress,
    begin_again,
    checkpoint_path,
    load_weights,
)
from cdlm_lab.training.config import TrainingConfig, resolve_workers
from cdlm_lab.training.history import Record
from cdlm_lab.training.validation import Judge, LossSums, Selection, Validation

SECONDS_BETWEEN_CHECKPOINTS = 600.0  # at most, however rarely the config asks for one
# Names of Accelerate's trackers ("tensorboard", "wandb", ...) that also get each record, separated by spaces.
TRACKERS_VARIABLE = "CDLM_LAB_TRACKERS"
_MIXED = {"float32": "no", "bfloat16": "bf16", "float16": "fp16"}
_NOT_DECAYED = [r"bias", r"layernorm", r"rmsnorm", r"(?:^|\.)norm(?:$|\.)", r"_norm(?:$|\.)"]


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
        loop = Loop(job, folder, on_log=on_log, stop=stop)
        loop.run()
        return loop.result()


def _check_sizes(job: TrainingJob) -> None:
    needed = job.config.steps * job.config.batch_size
    if len(job.train_examples) < needed:
        raise ValueError(
            f"there are {len(job.train_examples)} training examples, but {job.config.steps} steps of "
            f"{job.config.batch_size} take {needed}"
        )
    if len(job.validation_examples) == 0:
        raise ValueError("there are no validation examples: check the size of the corpus and how it is split")


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


class Loop:
    """The training of one model in one process, alone or beside others; created and run by `train`."""

    def __init__(
        self,
        job: TrainingJob,
        folder: Path,
        *,
        on_log: Callable[[Record], None] | None,  # called in rank 0 with each record
        stop: history.StopRequest,  # checked after each step
    ) -> None:
        self.job, self.config, self.folder, self.stop = job, job.config, folder, stop
        self.accelerator = accelerator_of(job.config, folder)
        self.device, self.processes = self.accelerator.device, self.accelerator.num_processes
        self.accumulation = job.config.accumulation(processes=self.processes)
        self.workers = resolve_workers(
            job.config.workers, device=self.device.type, processes=processes_here()
        )
        set_seed(job.config.seed, device_specific=True)
        self.model = job.model.to(self.device)
        self.divides_by_items = bool(getattr(job.model, "accepts_loss_kwargs", False))
        self.selection = Selection(judge=job.judge, patience=job.config.patience)
        first = self.accelerator.is_main_process
        self.history = history.RunHistory(folder, writer=first, on_log=on_log)
        self.sums = LossSums(job.model, accelerator=self.accelerator)
        self.validation = Validation(
            job.validation_examples, job.collate, size=job.config.micro_batch_size, workers=self.workers,
            accelerator=self.accelerator,
        )  # fmt: skip
        self.done = Progress()  # `seconds` and `tokens` are those before this process began
        self._tokens = 0  # read by this process since then
        self.interrupted = False
        self._began = self._checkpointed = time.monotonic()
        # `on_log` shows the records itself; in a notebook a text bar beside a live curve is noise.
        self.has_bar = first and (on_log is None or sys.stderr.isatty())
        self.bar: history.TrainingBar | None = None

    def run(self) -> None:
        """Train from the start, or from the last complete checkpoint, to the end or until stopped."""
        checkpoint = checkpoints.starting_point(self.folder, self.accelerator)
        if checkpoint:
            self.done = checkpoints.read_progress(checkpoint, config=self.config)
        self.history.begin(self.done.step)
        try:
            if not self.is_over():
                with forking() if self.workers else nullcontext():
                    self.train(checkpoint)
            self.accelerator.wait_for_everyone()  # rank 0 may still be writing what the others read next
            if (best := self.best_step()) and not self.interrupted:
                self.load_best(checkpoint_path(self.folder, best))
        finally:
            for tracker in self.accelerator.trackers:
                tracker.finish()
            if self.bar:
                self.bar.close()

    def train(self, checkpoint: Path | None) -> None:
        """All steps from the checkpoint on, or from the first."""
        self.begin(checkpoint)
        batches = iter(self.batches())
        if checkpoint and not checkpoints.load_random_state(checkpoint, self.accelerator):
            print("More processes than before: the run goes on with other dropout than it would have had.")
        if self.has_bar:
            self.bar = history.TrainingBar(total=self.config.steps, done=self.done.step)
        while not self.is_over() and not self.interrupted:
            rate, norm = self.step(list(islice(batches, self.accumulation)))
            self.after_step(rate, norm)

    def is_over(self) -> bool:
        """Whether all steps were made, or patience is exhausted."""
        return self.done.step >= self.config.steps or self.selection.is_over(self.history.records)

    def best_step(self) -> int | None:
        """The step of the best evaluation; None before the first."""
        return self.selection.best_step(self.history.records)

    def load_best(self, checkpoint: Path) -> None:
        """Give the model the weights of the best checkpoint. Raises CheckpointError if it is damaged."""
        if self.accelerator.is_main_process and (damage := checkpoints.damage_of(checkpoint)):
            raise CheckpointError(f"{checkpoint}, the best of the run, is damaged: {damage}")
        load_weights(self.model, checkpoint)

    # ---- a step

    def begin(self, checkpoint: Path | None) -> None:
        """Make the optimizer and the schedule, and give them and the model the state of the checkpoint."""
        if checkpoint:
            load_weights(self.model, checkpoint)
        if self.config.gradient_checkpointing:
            self.model.activation_checkpointing_enable({"use_reentrant": False})
        optimizer = optimizer_of(self.model, self.config)
        self.wrapped, self.optimizer = self.accelerator.prepare(self.model, optimizer)
        if checkpoint:
            checkpoints.load_optimizer(self.model, optimizer, checkpoint)
            self.sums.restore(self.done.loss_sums, last_step=self.done.last_logged_step)
            if self.accelerator.scaler and self.done.scaler:
                self.accelerator.scaler.load_state_dict(self.done.scaler)
        self.schedule = get_polynomial_decay_schedule_with_warmup(
            self.optimizer, self.config.warmup_steps, self.config.steps, lr_end=0.0,
            power=self.config.decay_power, last_epoch=self.done.updates - 1,
        )  # fmt: skip

    def batches(self) -> DataLoader:
        """This process's micro-batches from the next step on. In each step it takes every n-th of the step's
        micro-batches, n being the number of processes."""
        size, end = self.config.micro_batch_size, self.config.steps * self.config.batch_size
        first = self.done.step * self.config.batch_size + self.accelerator.process_index * size
        starts = range(first, end, size * self.processes)
        return DataLoader(
            self.job.train_examples,
            batch_sampler=(range(start, start + size) for start in starts),
            collate_fn=self.job.collate,
            pin_memory=self.device.type == "cuda",
            num_workers=self.workers,
            multiprocessing_context="fork" if self.workers else None,  # examples need no pickling
        )

    def step(self, micro_batches: Sequence[Mapping[str, Tensor]]) -> tuple[float, Tensor]:
        """One update; returns its learning rate, and the norm of the gradients before they were clipped."""
        items = sum(batch["labels"].ne(NOT_MASKED).sum() for batch in micro_batches)
        items = items.to(self.device, non_blocking=True)
        if self.processes > 1:
            items = self.accelerator.gather(items[None]).sum()
        for number, batch in enumerate(micro_batches, start=1):
            last = number == self.accumulation
            with nullcontext() if last else self.accelerator.no_sync(self.wrapped):
                self.backward(batch, items.float())
        norm = self.accelerator.clip_grad_norm_(
            self.wrapped.parameters(), self.config.max_gradient_norm or math.inf
        )
        self.optimizer.step()
        rate = self.schedule.get_last_lr()[0]
        if not self.accelerator.optimizer_step_was_skipped:  # as in float16 after an overflow
            self.schedule.step()
            self.done.updates += 1
        self.wrapped.zero_grad()
        self.done.step += 1
        return rate, norm

    def backward(self, batch: Mapping[str, Tensor], items: Tensor) -> None:
        """Add the gradients of a micro-batch. `items`: float32 (), labels in the whole effective batch."""
        mask = batch.get("attention_mask", batch.get("sentence_mask"))
        self._tokens += batch["input_ids"].numel() if mask is None else int(mask.sum())
        inputs = send_to_device(dict(batch), self.device, non_blocking=self.device.type == "cuda")
        self.wrapped.train()
        if self.divides_by_items:  # gradients of processes are averaged, so that each counts n times
            output = self.wrapped(**inputs, num_items_in_batch=items)
            loss = output["loss"] * self.processes
        else:
            output = self.wrapped(**inputs)
            loss = output["loss"] / self.accumulation
        self.accelerator.backward(loss)
        self.sums.add(loss.detach(), output)

    # ---- after a step

    def after_step(self, rate: float, norm: Tensor) -> None:
        """Record, evaluate and save, where it is time to."""
        if self.bar:
            self.bar.advance()
        config, step = self.config, self.done.step
        last = step == config.steps
        stop, due = self.asked()
        if step == 1 or step % config.log_every == 0:
            length = norm.item()
            self.record(
                self.sums.means(step),
                learning_rate=rate,
                gradient_norm=length if math.isfinite(length) else None,
            )
        best = False
        if step % config.evaluate_every == 0 or last:
            self.record(self.evaluate())
            best = self.best_step() == step
        if step % config.save_every == 0 or due or stop or best or self.is_over():
            self.save()
        self.interrupted = stop and not last

    def asked(self) -> tuple[bool, bool]:
        """Whether this or another process was asked to stop; whether a checkpoint is due by time."""
        due = time.monotonic() - self._checkpointed >= SECONDS_BETWEEN_CHECKPOINTS
        asked = [self.stop.requested, due]
        if self.processes > 1:  # signals reach the processes in different steps
            asked = self.accelerator.gather(torch.tensor([asked], device=self.device).int()).any(0).tolist()
        return bool(asked[0]), bool(asked[1])

    def evaluate(self) -> dict[str, float]:
        """The token-weighted loss on the validation examples, its exponential, and the judge's score."""
        with self.validation_bar() as after_batch:
            loss, _, parts = self.validation.loss(self.model, after_batch=after_batch)
        # exp overflows at 709.8; a loss near that is treated as infinite, which `record` refuses.
        perplexity = math.exp(loss) if loss < 700 else math.inf
        shown = loss if math.isfinite(perplexity) else perplexity
        share = Share(self.accelerator.process_index, self.processes, gather_object)
        judged = self.selection.judged(self.model, share)
        for name, value in judged.items() if self.processes > 1 else ():
            # The first one's, for all: they must agree, even where a device does not compute the same twice.
            own = torch.tensor([value], dtype=torch.float64, device=self.device)
            judged[name] = float(self.accelerator.gather(own)[0])
        return {"eval_loss": shown, "eval_perplexity": perplexity, **parts, **judged}

    @contextmanager
    def validation_bar(self) -> Iterator[Callable[[], None]]:
        """Yield what counts a batch of an evaluation, in a bar of its own."""
        total, bar = len(self.validation.numbers), self.bar
        yield (lambda: bar.checking(total=total)) if bar else (lambda: None)
        if bar:
            bar.checked()

    def record(self, values: Record, **more: Any) -> None:
        """Write a record, and give it to the trackers. Raises FloatingPointError if its loss is nan or
        infinite. All processes must call it."""
        kind = "training" if "loss" in values else "validation"
        loss, step = values.get("loss", values.get("eval_loss")), self.done.step
        if not math.isfinite(loss):
            raise FloatingPointError(
                f"the {kind} loss is {loss} at step {step}: lower the learning rate "
                f"({self.config.learning_rate:g}), lengthen the warm-up ({self.config.warmup_steps} steps) "
                "or use precision 'float32'"
            )
        record = {"step": step, **values, **more, "seconds": round(self.seconds(), 3)}
        record |= {"tokens": self.tokens(), "total_steps": self.config.steps}
        self.history.add(record)
        if self.bar:
            names = {"loss": "loss", "eval_perplexity": "perplexity"}
            self.bar.show(**{shown: record[name] for name, shown in names.items() if name in record})
        known = {name: value for name, value in record.items() if name != "step" and value is not None}
        self.accelerator.log(known, step=step)

    def seconds(self) -> float:
        """Seconds since the run began, without those between a stop and its resumption."""
        return self.done.seconds + time.monotonic() - self._began

    def tokens(self) -> int:
        """Tokens that all processes have read since the run began. All processes must call it."""
        own = torch.tensor([self._tokens], device=self.device)
        return self.done.tokens + int(self.accelerator.gather(own).sum())

    def save(self) -> None:
        """Write a checkpoint; then remove all but this one and one other."""
        self._checkpointed = time.monotonic()
        random_state = checkpoints.gather_random_state(self.accelerator)
        scaler = self.accelerator.scaler
        progress = dataclasses.replace(
            self.done,
            config=dataclasses.asdict(self.config),
            best_step=self.best_step(),
            seconds=self.seconds(),
            tokens=self.tokens(),
            last_logged_step=self.sums.last_step,
            loss_sums=self.sums.gathered(),
            scaler=scaler.state_dict() if scaler else None,
        )
        if self.accelerator.is_main_process:
            with checkpoints.writing_checkpoint(self.folder, self.done.step) as folder:
                checkpoints.write_checkpoint(
                    folder, self.model, self.job.tokenizer, self.optimizer, random_state, progress
                )
            checkpoints.keep_only(self.folder, checkpoints.steps_to_keep(self.folder, self.done.step))

    def result(self) -> TrainingResult:
        """The result of the run. All processes must call it."""
        best = self.best_step()
        return TrainingResult(
            best_checkpoint=checkpoint_path(self.folder, best) if best else None,
            last_checkpoint=checkpoint_path(self.folder, self.done.step),
            best_step=best,
            steps=self.done.step,
            interrupted=self.interrupted,
            seconds=self.seconds(),
            tokens=self.tokens(),
            history=tuple(self.history.records),
        )


def accelerator_of(config: TrainingConfig, folder: Path) -> Accelerator:
    """Join the processes that torchrun started, if any, on the default device, with the trackers that the
    environment names. Raises ParameterError: a precision that the device does not have; unknown trackers."""
    cpu = not torch.accelerator.is_available()
    device = "cpu" if cpu else str(torch.accelerator.current_accelerator())
    precision = resolve_precision(config.precision, device=device)
    trackers = os.environ.get(TRACKERS_VARIABLE, "").split()
    for name in trackers:
        if name not in LOGGER_TYPE_TO_CLASS or not filter_trackers([name], str(folder)):
            here = ", ".join(map(str, get_available_trackers())) or "none"
            raise ParameterError(f"{TRACKERS_VARIABLE} names {name!r}; the trackers installed here: {here}")
    if torch.cuda.device_count() > 1 and processes_here() == 1:
        count = torch.cuda.device_count()
        warnings.warn(f"of {count} devices one is used: start with torchrun to use all", stacklevel=2)
    AcceleratorState._reset_state(reset_partial_state=True)  # of another training, in another precision
    accelerator = Accelerator(
        cpu=cpu,
        mixed_precision=_MIXED[precision],
        log_with=trackers or None,
        project_dir=folder,
        # Without global tokens the global projections have no gradient.
        kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)],
    )
    if trackers:
        settings = {name: value or str(value) for name, value in dataclasses.asdict(config).items()}
        accelerator.init_trackers("cdlm_lab", config=settings)
    return accelerator


def optimizer_of(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """AdamW over the groups of `parameter_groups`; biases and norms are not decayed."""
    groups = parameter_groups(
        model,
        decayed=set(get_parameter_names(model, [nn.LayerNorm], _NOT_DECAYED)),
        weight_decay=config.weight_decay,
        learning_rate=config.learning_rate,
        factors=config.learning_rate_factors,
    )
    return torch.optim.AdamW(
        [group | {"initial_lr": group["lr"]} for group in groups],  # from which the schedule goes on
        lr=config.learning_rate,
        betas=(0.9, config.adam_beta2),
        eps=config.adam_epsilon,
        fused=True,
    )


def parameter_groups(
    model: nn.Module,
    *,
    decayed: Collection[str],
    weight_decay: float,
    learning_rate: float,
    factors: Sequence[tuple[str, float]] = (),
) -> list[dict[str, Any]]:
    """Groups of parameters for AdamW: one for each pair of (decayed or not, factor), the first with factor 1
    even if empty, since its rate is recorded. `decayed`: names of parameters with weight decay; `factors`:
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
