"""Cross entropy over a vocabulary, and the loss of a batch that is a part of a larger one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

# Of a vocabulary of 50,000 words, 16 rows stay in a core's cache; 2,048 keep a GPU busy in 400 MB.
ROWS_AT_ONCE = 16
ROWS_AT_ONCE_ELSEWHERE = 2048


def word_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy of each row in natural logarithms, summed in float32 whatever the dtype of `logits`.

    PyTorch's own holds logits, their logarithms and two gradients in float32, four times (rows, vocab); this
    one holds the gradient alone, in the dtype of `logits`, and goes through a few rows at a time.

    Args:
        logits: (rows, vocab).
        labels: (rows,), int64.

    Returns:
        (rows,), float32.
    """
    losses: Tensor = _WordLosses.apply(logits, labels)
    return losses


class _WordLosses(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor) -> Tensor:
        ctx.save_for_backward(logits, labels)
        losses = logits.new_empty(len(labels), dtype=torch.float32)
        for rows in _rows_at_once(logits):
            losses[rows] = torch.nn.functional.cross_entropy(
                logits[rows].float(), labels[rows], reduction="none"
            )
        return losses

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_losses: Tensor) -> tuple[Tensor, None]:
        """Of a row: its probabilities, less 1 at the label, times its gradient."""
        logits, labels = ctx.saved_tensors
        gradient = torch.empty_like(logits)
        for rows in _rows_at_once(logits):
            share = logits[rows].softmax(dim=-1, dtype=torch.float32)
            share.scatter_add_(1, labels[rows, None], share.new_full((len(share), 1), -1.0))
            gradient[rows] = share.mul_(grad_losses[rows, None])
        return gradient, None


def _rows_at_once(logits: Tensor) -> Iterator[slice]:
    most = ROWS_AT_ONCE if logits.device.type == "cpu" else ROWS_AT_ONCE_ELSEWHERE
    for start in range(0, len(logits), most):
        yield slice(start, start + most)


def over_items(total: Tensor, *, items: Tensor | int, num_items_in_batch: Tensor | int | None) -> Tensor:
    """Summed losses over their number in the whole effective batch, so that accumulated micro-batches and
    several processes add up to the loss of the full batch.

    Args:
        total: (), sum of the losses of this batch.
        items: how many these are.
        num_items_in_batch: how many there are in the effective batch, as transformers.Trainer counts them;
            None = those of this batch.

    Returns:
        (). Without items, `total` as it is: 0 then.
    """
    count = items if num_items_in_batch is None else num_items_in_batch
    return total / torch.as_tensor(count, device=total.device).clamp(min=1)
