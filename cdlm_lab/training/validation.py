"""The loss on the validation examples, the choice of the best checkpoint, and early stopping.

The loss is a mean over masked tokens, not over batches, however many processes share it. A model whose loss
is a sum of named parts, such as two pretraining tasks, names them in its attribute `loss_parts`; the output
of its `forward` has `parts`, name -> (), detached and divided like the loss, so that they add up to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.utils.data import DataLoader, Sampler

from cdlm_lab.examples.masking import NOT_MASKED
from cdlm_lab.training.history import Record


def parts_of(model: nn.Module) -> tuple[str, ...]:
    """The names of the parts of a model's loss; empty for most models."""
    return tuple(getattr(model, "loss_parts", ()))


def float64_device(device: torch.device) -> torch.device:
    """The device on which to add up float64 numbers: the CPU for Apple's, which has none, else itself."""
    return torch.device("cpu") if device.type == "mps" else device


class LossParts:
    """The parts of the training loss, summed by this process since the last record."""

    def __init__(self, names: Sequence[str], *, accelerator: Accelerator) -> None:
        self._names, self._accelerator = tuple(names), accelerator
        self._sums = torch.zeros(len(names), dtype=torch.float64, device=float64_device(accelerator.device))
        self._last_step = 0

    def add(self, output: Mapping[str, Any]) -> None:
        """Add the parts in the output of a micro-batch."""
        if self._names:
            parts = [output["parts"][name].to(self._sums.device) for name in self._names]
            self._sums += torch.stack([part.double() for part in parts])

    def means(self, step: int) -> dict[str, float]:
        """`loss_<name>` -> mean since the last call; resets the sums. All processes must call it."""
        steps, self._last_step = step - self._last_step, step
        of_processes = zip(*self.gathered(), strict=True)
        self._sums.zero_()
        return {
            f"loss_{name}": sum(values) / steps
            for name, values in zip(self._names, of_processes, strict=True)
        }

    def gathered(self) -> list[list[float]]:
        """Each process's sums, for a checkpoint; empty if there are no parts. All processes must call it."""
        return self._accelerator.gather(self._sums[None]).tolist() if self._names else []

    def restore(self, sums: list[list[float]], *, last_step: int) -> None:
        """Restore the sums from a checkpoint, whose last record was of `last_step`."""
        self._last_step, processes = last_step, self._accelerator.num_processes
        if sums:
            total = torch.tensor(sums, dtype=torch.float64)
            same = len(sums) == processes
            own = total[self._accelerator.process_index] if same else total.sum(dim=0) / processes
            self._sums += own.to(self._sums.device)


class SharedBatches(Sampler[list[int]]):
    """Batches of indices in order; with several processes each takes every n-th one, without repetitions.

    Accelerate's own sharding repeats examples until all processes have the same number, which would count
    them twice.
    """

    def __init__(self, size: int, *, batch_size: int, process: int = 0, processes: int = 1) -> None:
        starts = range(0, size, batch_size)
        self.total = len(starts)
        self._size, self._batch_size = size, batch_size
        self._own = list(enumerate(starts))[process::processes]

    @property
    def numbers(self) -> list[int]:
        """The numbers, among all batches, of this process's batches."""
        return [number for number, _ in self._own]

    def __len__(self) -> int:
        return len(self._own)

    def __iter__(self) -> Iterator[list[int]]:
        return (list(range(start, min(start + self._batch_size, self._size))) for _, start in self._own)


def validation_loader(
    examples: Any, collate: Callable[..., Mapping[str, Tensor]], batches: SharedBatches, *, workers: int = 0
) -> DataLoader:
    """A loader with that many worker processes. It has its own generator so that evaluations do not change
    the dropout of training: a DataLoader draws from the global one at each pass."""
    return DataLoader(
        examples,
        batch_sampler=batches,
        collate_fn=collate,
        generator=torch.Generator(),
        num_workers=workers,
        multiprocessing_context="fork" if workers else None,
    )


@torch.no_grad()
def validation_loss(
    model: nn.Module,
    loader: DataLoader,
    *,
    accelerator: Accelerator,
    to_device: Callable[[Mapping[str, Tensor]], dict[str, Tensor]],
    after_batch: Callable[[], None],
) -> tuple[float, int, dict[str, float]]:
    """The mean loss over all masked tokens of all batches of all processes: (loss in nats, number of masked
    tokens, `eval_loss_<name>` -> the same mean of that part of the loss).

    The sums of the batches are put in order before they are added up (in float64), so several processes give
    the same number as one, to the last bit. The `model`, put into evaluation mode, returns the mean loss over
    the labels of a batch that are not -100; `loader`: this process's batches, from `validation_loader`.
    Raises ValueError if no token of the validation examples is masked.
    """
    batches = loader.batch_sampler
    assert isinstance(batches, SharedBatches)
    parts = parts_of(accelerator.unwrap_model(model))
    device = float64_device(accelerator.device)
    sums = torch.zeros(2 + len(parts), batches.total, dtype=torch.float64, device=device)
    model.eval()
    for number, batch in zip(batches.numbers, loader, strict=True):
        inputs = to_device(batch)
        masked = inputs["labels"].ne(NOT_MASKED).sum()
        if masked:  # the mean over no tokens is nan
            output = model(**inputs)
            means = torch.stack([output["loss"], *[output["parts"][name] for name in parts]])
            masked, means = masked.to(device).double(), means.to(device).double()
            sums[:, number] = torch.cat([masked[None], means * masked])
        after_batch()
    if accelerator.num_processes > 1:
        sums = accelerator.reduce(sums, reduction="sum")
    count, total, *of_parts = sums.sum(dim=1).tolist()
    if not count:
        raise ValueError(f"no token of the {len(loader.dataset)} validation examples is masked")  # type: ignore[arg-type]
    named = {f"eval_loss_{name}": value / count for name, value in zip(parts, of_parts, strict=True)}
    return total / count, int(count), named


JUDGED = "eval_judged"
Judge = Callable[[nn.Module], float]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """How checkpoints are compared; ties go to the earlier one."""

    # The score of a model in evaluation mode on held-out data, higher is better, the same in every process.
    # None = the lowest validation perplexity is best.
    judge: Judge | None = None
    patience: int = 0  # evaluations without a better one before early stopping; 0 = never

    @property
    def measure(self) -> str:
        """The name of the deciding score in evaluation records."""
        return JUDGED if self.judge else "eval_perplexity"

    def judged(self, model: nn.Module) -> dict[str, float]:
        """The judge's score in the form of a record; empty without a judge."""
        if self.judge is None:
            return {}
        model.eval()
        with torch.no_grad():
            return {JUDGED: float(self.judge(model))}

    def is_over(self, records: Sequence[Record]) -> bool:
        """Whether patience is exhausted after these records of a run."""
        values = [record[self.measure] for record in records if self.measure in record]
        if not self.patience or not values:
            return False
        best = max(values) if self.judge else min(values)
        return len(values) - 1 - values.index(best) >= self.patience
