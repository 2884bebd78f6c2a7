"""How long one batch takes to learn from, for what is told before a training begins."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from cdlm_lab.models.device import default_device
from cdlm_lab.models.precision import Precision, computing_in


def seconds_of_batch(
    model: nn.Module, make: Callable[[], Mapping[str, Tensor]], *, precision: Precision = "auto"
) -> tuple[float, dict[str, Tensor]]:
    """Learn from a batch twice, since the first time is slower than all others.

    The model ends on the default device and in training mode, with its weights as they were and no gradients.

    Args:
        model: `model(**batch)` gives a mapping with `loss`.
        make: gives a batch; its time counts.
        precision: of the forward pass, as of `TrainingConfig`.

    Returns:
        (seconds of the second time, the batch on the device).

    Raises:
        ParameterError: a precision that is not to be had.
    """
    device = torch.device(default_device())
    model.to(device).train()
    for _ in range(2):
        start = time.perf_counter()
        batch = {name: tensor.to(device) for name, tensor in make().items()}
        with computing_in(precision, device):
            loss = model(**batch)["loss"]
        loss.backward()
        if device.type == "cuda":
            torch.cuda.synchronize()
        seconds = time.perf_counter() - start
    model.zero_grad()
    return seconds, batch
