"""The loss of a batch that is a part of a larger one."""

from __future__ import annotations

import torch
from torch import Tensor


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
