"""Which checkpoint is the best, and when no better one is to be waited for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from cdlm_lab.training.history import Record

JUDGED = "eval_judged"
Judge = Callable[[nn.Module], float]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """How checkpoints are compared; ties go to the earlier one.

    Attributes:
        judge: gives the score of a model in evaluation mode on held-out data, higher is better; called
            without gradients, in every process, each of which must get the same. None = the lowest
            validation perplexity is best.
        patience: evaluations without a better one after which training ends; 0 = it goes to its end.
    """

    judge: Judge | None = None
    patience: int = 0

    @property
    def measure(self) -> str:
        """Name of what decides, in records of evaluation."""
        return JUDGED if self.judge else "eval_perplexity"

    def judged(self, model: nn.Module) -> dict[str, float]:
        """What the judge says, as a record has it; nothing without a judge."""
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
