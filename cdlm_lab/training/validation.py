"""The loss on the validation examples, the choice of the best checkpoint, and early stopping.

The loss is a mean over masked tokens, not over batches, however many processes share it. A model whose loss
is a sum of named parts, such as two pretraining tasks, names them in its attribute `loss_parts`; the output
of its `forward` has `parts`, name -> (), detached and divided like the loss, so that they add up to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device
from torch import Tensor, nn
from torch.utils.data import DataLoader

from cdlm_lab.examples.masking import NOT_MASKED
from cdlm_lab.progress import ALONE, Share
from cdlm_lab.training.history import Record


def parts_of(model: nn.Module) -> tuple[str, ...]:
    """The names of the parts of a model's loss; empty for most models."""
    return tuple(getattr(model, "loss_parts", ()))


def float64_device(device: torch.device) -> torch.device:
    """The device on which to add up float64 numbers: the CPU for Apple's, which has none, else itself."""
    return torch.device("cpu") if device.type == "mps" else device


class LossSums:
    """The training loss and its parts, summed by this process since the last record: the loss in float32 on
    the device, the parts in float64."""

    def __init__(self, model: nn.Module, *, accelerator: Accelerator) -> None:
        self.names, self.accelerator, self.last_step = parts_of(model), accelerator, 0
        self._loss = torch.zeros((), device=accelerator.device)
        parts = len(self.names)
        self._parts = torch.zeros(parts, dtype=torch.float64, device=float64_device(accelerator.device))

    def add(self, loss: Tensor, output: Mapping[str, Any]) -> None:
        """Add the loss () of a micro-batch, and the parts in its output."""
        self._loss += loss
        if self.names:
            parts = [output["parts"][name].to(self._parts.device) for name in self.names]
            self._parts += torch.stack([part.double() for part in parts])

    def means(self, step: int) -> dict[str, float]:
        """`loss` and `loss_<name>` -> mean over the steps since the last call; resets the sums. All processes
        must call it."""
        steps, self.last_step = step - self.last_step, step
        loss = self.accelerator.gather(self._loss[None]).mean().item()
        parts = zip(*(parts for _, *parts in self.gathered()), strict=True) if self.names else ()
        self._loss.zero_()
        self._parts.zero_()
        named = zip(self.names, parts, strict=True)
        return {"loss": loss / steps} | {f"loss_{name}": sum(values) / steps for name, values in named}

    def gathered(self) -> list[list[float]]:
        """Each process's sums, for a checkpoint. All processes must call it."""
        own = torch.cat([self._loss[None].to(self._parts), self._parts])
        return self.accelerator.gather(own[None]).tolist()

    def restore(self, sums: Sequence[Sequence[float]], *, last_step: int) -> None:
        """Restore the sums from a checkpoint; `last_step`: that of its last record. Losses of processes are
        averaged, parts added up, also if they were more or fewer processes."""
        self.last_step, processes = last_step, self.accelerator.num_processes
        of_all = torch.tensor(sums, dtype=torch.float64)
        if len(sums) == processes:
            own = of_all[self.accelerator.process_index]
        else:
            own = torch.cat([of_all[:, :1].mean(dim=0), of_all[:, 1:].sum(dim=0) / processes])
        self._loss += own[0].to(self._loss)
        self._parts += own[1:].to(self._parts.device)


class Validation:
    """The loss on the validation examples. They are made and tokenised once for a run, in batches of `size`;
    of these each process keeps every n-th on the CPU, n being the number of processes."""

    def __init__(
        self,
        examples: Any,
        collate: Callable[..., Mapping[str, Tensor]],
        *,
        size: int,
        accelerator: Accelerator,
        workers: int = 0,
    ) -> None:
        self.accelerator, self.examples = accelerator, examples
        self._starts = range(0, len(examples), size)
        own = slice(accelerator.process_index, None, accelerator.num_processes)
        self.numbers = range(len(self._starts))[own]  # of this process's batches, among all
        self._loader = DataLoader(
            examples,
            batch_sampler=[range(start, min(start + size, len(examples))) for start in self._starts[own]],
            collate_fn=collate,
            generator=torch.Generator(),  # the global one is that of dropout, which must not change
            num_workers=workers,
            multiprocessing_context="fork" if workers else None,
        )
        self._kept: list[Mapping[str, Any]] = []

    def batches(self) -> Iterator[Mapping[str, Any]]:
        """This process's batches."""
        if len(self._kept) == len(self.numbers):
            yield from self._kept
            return
        self._kept = []
        for batch in self._loader:
            self._kept.append(deepcopy(batch))  # what a worker process sends keeps files open
            yield self._kept[-1]

    @torch.no_grad()
    def loss(
        self, model: nn.Module, *, after_batch: Callable[[], None] = lambda: None
    ) -> tuple[float, int, dict[str, float]]:
        """The mean loss over all masked tokens of all batches of all processes: (loss in nats, number of
        masked tokens, `eval_loss_<name>` -> the same mean of that part of the loss).

        The sums of the batches are put in order before they are added up (in float64), so several processes
        give the same number as one, to the last bit. The `model`, put into evaluation mode, returns the mean
        loss over the labels of a batch that are not -100. Raises ValueError if no token of the validation
        examples is masked.
        """
        parts, device = parts_of(model), float64_device(self.accelerator.device)
        sums = torch.zeros(2 + len(parts), len(self._starts), dtype=torch.float64, device=device)
        model.eval()
        for number, batch in zip(self.numbers, self.batches(), strict=True):
            masked = batch["labels"].ne(NOT_MASKED).sum()
            if masked:  # the mean over no tokens is nan
                output = model(**send_to_device(batch, self.accelerator.device))
                means = torch.stack([output["loss"], *[output["parts"][name] for name in parts]])
                masked, means = masked.to(device).double(), means.to(device).double()
                sums[:, number] = torch.cat([masked[None], means * masked])
            after_batch()
        if self.accelerator.num_processes > 1:
            sums = self.accelerator.reduce(sums, reduction="sum")
        count, total, *of_parts = sums.sum(dim=1).tolist()
        if not count:
            raise ValueError(f"no token of the {len(self.examples)} validation examples is masked")
        named = {f"eval_loss_{name}": value / count for name, value in zip(parts, of_parts, strict=True)}
        return total / count, int(count), named


JUDGED = "eval_judged"
Judge = Callable[[nn.Module, Share], float]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """How checkpoints are compared; ties go to the earlier one."""

    # The score of a model in evaluation mode on held-out data, of which each process predicts its share; the
    # highest is best. None = the lowest validation perplexity is.
    judge: Judge | None = None
    patience: int = 0  # evaluations without a better one before early stopping; 0 = never

    @property
    def measure(self) -> str:
        """The name of the deciding score in evaluation records."""
        return JUDGED if self.judge else "eval_perplexity"

    def judged(self, model: nn.Module, share: Share = ALONE) -> dict[str, float]:
        """The judge's score in the form of a record; empty without a judge."""
        if self.judge is None:
            return {}
        model.eval()
        with torch.no_grad():
            return {JUDGED: float(self.judge(model, share))}

    def best_step(self, records: Sequence[Record]) -> int | None:
        """The step of the best of these records of a run; None if none is of an evaluation."""
        best = max if self.judge else min
        judged = (record for record in records if self.measure in record)
        chosen = best(judged, key=lambda record: record[self.measure], default=None)
        return chosen and chosen["step"]

    def is_over(self, records: Sequence[Record]) -> bool:
        """Whether patience is exhausted after these records of a run."""
        if not self.patience or (best := self.best_step(records)) is None:
            return False
        later = [record for record in records if self.measure in record and record["step"] > best]
        return len(later) >= self.patience
