"""A loss that is a sum of named parts, as of two pretraining tasks: what each part comes to.

A model names them in its attribute `loss_parts`; what its `forward` returns has `parts`, name -> (), detached
and divided as the loss is, so that they add up to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from accelerate import Accelerator
from torch import nn


def parts_of(model: nn.Module) -> tuple[str, ...]:
    """Names of the parts of a model's loss; none of most models."""
    return tuple(getattr(model, "loss_parts", ()))


class LossParts:
    """Sums since the last record, of this process.

    Args:
        names: of the parts.
        accelerator: joins the processes.
    """

    def __init__(self, names: Sequence[str], *, accelerator: Accelerator) -> None:
        self._names, self._accelerator = tuple(names), accelerator
        self._sums = torch.zeros(len(names), dtype=torch.float64, device=accelerator.device)
        self._last_step = 0

    def add(self, output: Mapping[str, Any]) -> None:
        """Take in what a micro-batch gave."""
        if self._names:
            self._sums += torch.stack([output["parts"][name].double() for name in self._names])

    def means(self, step: int) -> dict[str, float]:
        """`loss_<name>` -> its mean over the steps since the last call; the sums begin anew. All processes
        must call it."""
        steps, self._last_step = step - self._last_step, step
        of_processes = zip(*self.gathered(), strict=True)
        self._sums.zero_()
        return {
            f"loss_{name}": sum(values) / steps
            for name, values in zip(self._names, of_processes, strict=True)
        }

    def gathered(self) -> list[list[float]]:
        """The sums of each process, for a checkpoint; empty without parts. All processes must call it."""
        return self._accelerator.gather(self._sums[None]).tolist() if self._names else []

    def restore(self, sums: list[list[float]], *, last_step: int) -> None:
        """Take up the sums of a checkpoint, whose last record was of `last_step`."""
        self._last_step = last_step
        if not sums:
            return
        share = self._accelerator.process_index if len(sums) == self._accelerator.num_processes else None
        total = torch.tensor(sums, dtype=torch.float64)
        own = total.sum(dim=0) / self._accelerator.num_processes if share is None else total[share]
        self._sums += own.to(self._sums.device)
