"""How fast a training goes here, by the speed of a matrix product: for estimates before it starts."""

from __future__ import annotations

import time

import torch
from transformers import LongformerConfig

from cdlm_lab.models.device import default_device
from cdlm_lab.models.estimate import Estimate
from cdlm_lab.models.precision import Precision, resolve_precision

# Share of the matrix-product rate that training reaches in each precision (measured with MiniLM and base-size
# encoders on 2 CPU cores).
EFFICIENCY = {"float32": 0.5, "bfloat16": 0.3, "float16": 0.3}
# How many times as long a step takes with dropout of attention weights.
ATTENTION_DROPOUT = 4 / 3


def bytes_per_number(precision: Precision) -> int:
    """Of what a forward pass in this precision computes."""
    return _dtype(precision).itemsize


def measured_rate(precision: Precision, *, size: int = 1024) -> float:
    """Floating-point operations a second that a training in this precision reaches on the device at hand."""
    dtype = _dtype(precision)
    left = torch.ones(size, size, device=default_device(), dtype=dtype)
    (left @ left).sum().item()
    start = time.perf_counter()
    (left @ left).sum().item()
    rate = 2 * size**3 / (time.perf_counter() - start)
    return EFFICIENCY[str(dtype).removeprefix("torch.")] * rate


def training_seconds(cost: Estimate, config: LongformerConfig, *, rate: float) -> float:
    """Of one example, forward and backward, where so many operations a second are done."""
    slower = ATTENTION_DROPOUT if config.attention_probs_dropout_prob else 1.0
    return slower * cost.training_flops / rate


def _dtype(precision: Precision) -> torch.dtype:
    return getattr(torch, resolve_precision(precision, device=default_device()))
