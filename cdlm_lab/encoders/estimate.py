"""What a training step will cost, worked out from the sizes alone: shown before training, accurate to about a
fifth.

With D the width, F the intermediate width, V the vocabulary size and L tokens of which G are global and M
masked, one layer needs these floating-point operations in the forward pass (a multiply-add counts as two):

    projections    2 D^2 (3 L - G)            query of the locals, key and value of all
                 + 2 D^2 (2 L + G)   if G     query_global of the globals, key_global and value_global of all
                 + 2 D^2 L                    output
    feed-forward   4 D F L
    attention      4 D (pairs)                a score and a weighted sum for each pair of tokens that attend

    pairs = (pairs inside the window) (1 - G/L)^2      local to local
          + (L - G) G + G L                            local to global, global to all

and the vocabulary projection needs 2 M D (D + V). A backward pass costs twice the forward pass, in the
attention 2.5 times, since it computes the scores again; gradient checkpointing repeats the layers' forward.

Numbers kept for the backward pass: 11 D + 2 F per token and layer, 2 D more where there are globals, 2 D more
with dropout of hidden states (and D per token for dropout of the embeddings), and 3 V + 5 D per masked token
(logits, their softmax, their gradient). Gradient checkpointing keeps D per token and layer and all numbers of
one layer at a time. A ModernBERT has no separate global projections, 6 D F L in a feed-forward block, whose
inner states are multiplied with others, and 4 F numbers kept.

A number has 4 bytes; under bf16 or fp16 it has 2, except those of masked tokens, the D of checkpointing, and
3 D of a layer (its norms), and the weights of linear layers are copied.

The training speed on this machine is estimated from the speed of a matrix product.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from transformers import LongformerConfig

from cdlm_lab.encoders.checkpoint import default_device
from cdlm_lab.encoders.language_model import LANGUAGE_MODELS
from cdlm_lab.encoders.precision import Precision, resolve_precision
from cdlm_lab.errors import check_least

MASKED_SHARE = 0.15
BACKWARD, ATTENTION_BACKWARD = 2.0, 2.5
# per parameter: float32 weight and gradient, and AdamW's two averages
STATE_BYTES = 16
FLOAT32_BYTES = 4
# Share of the matrix-product rate that training reaches in each precision (measured with MiniLM and base-size
# encoders on 2 CPU cores).
EFFICIENCY = {"float32": 0.5, "bfloat16": 0.3, "float16": 0.3}
ATTENTION_DROPOUT = 4 / 3  # factor on the time of a step with dropout of attention weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The cost of training."""

    parameters: int  # number of parameters; tied ones count once
    forward_flops: float  # floating-point operations of one example's forward pass
    training_flops: float  # the same for forward and backward pass
    activation_bytes: float  # what is kept for the backward of one batch
    state_bytes: int  # weights, gradients and AdamW's averages

    @property
    def peak_bytes(self) -> float:
        """Bytes of weights, gradients, optimiser state and activations together."""
        return self.activation_bytes + self.state_bytes


def estimate(
    config: LongformerConfig,
    *,
    length: int,
    batch: int,
    global_tokens: float,
    masked_tokens: float | None = None,
    bytes_per_number: int = 4,
    gradient_checkpointing: bool = False,
) -> Estimate:
    """The cost of training a language model with this config on `batch` examples of `length` tokens each.

    `global_tokens`, `masked_tokens`: per example, on average; None = 15% of `length`. `bytes_per_number`: 4
    for float32, 2 for bf16 or fp16, in which the forward pass is computed. Raises ValueError for sizes below
    1 or for more global or masked tokens than there are tokens.
    """
    masked = MASKED_SHARE * length if masked_tokens is None else masked_tokens
    check_least(length=length, batch=batch)
    for name, count in (("global_tokens", global_tokens), ("masked_tokens", masked)):
        if not 0 <= count <= length:
            raise ValueError(f"{name} ({count}) must be between 0 and length ({length})")
    width, window = config.hidden_size, config.attention_window
    windows = [window] * config.num_hidden_layers if isinstance(window, int) else window
    linear = config.num_hidden_layers * _linear_flops(config, length, global_tokens)
    attention = 4.0 * width * sum(_pairs(length, global_tokens, window) for window in windows)
    head = 2.0 * masked * width * (width + config.vocab_size)
    again = linear + attention if gradient_checkpointing else 0.0
    kept = _layer_bytes(config, length, global_tokens, bytes_per_number, gradient_checkpointing)
    kept += FLOAT32_BYTES * masked * (3 * config.vocab_size + 5 * width)
    half = bytes_per_number < FLOAT32_BYTES
    with torch.device("meta"):  # shapes only, no memory for weights
        parameters = LANGUAGE_MODELS[config.model_type](config).num_parameters()
    return Estimate(
        parameters=parameters,
        forward_flops=linear + attention + head,
        training_flops=(1 + BACKWARD) * (linear + head) + (1 + ATTENTION_BACKWARD) * attention + again,
        activation_bytes=batch * kept
        + (bytes_per_number * _linear_weights(config, global_tokens) if half else 0),
        state_bytes=STATE_BYTES * parameters,
    )


def _linear_flops(config: LongformerConfig, length: int, global_tokens: float) -> float:
    """Floating-point operations of the linear layers in one layer's forward pass, for one example."""
    width = config.hidden_size
    kind = LANGUAGE_MODELS[config.model_type]
    projected = (6 if global_tokens and kind.global_projections else 4) * length
    of_block = 2.0 * kind.inner_matrices * width * config.intermediate_size * length
    return 2.0 * width * width * projected + of_block


def _pairs(length: int, global_tokens: float, window: int) -> float:
    """The number of (query, key) pairs of one example and head."""
    side = min(window // 2, length - 1)
    # the windows of the first and last tokens are cut off at the ends of the text
    in_window = length * (2 * side + 1) - side * (side + 1)
    local = length - global_tokens
    return in_window * (local / length) ** 2 + local * global_tokens + global_tokens * length


def _layer_bytes(
    config: LongformerConfig, length: int, global_tokens: float, size: int, checkpointing: bool
) -> float:
    """Bytes that all layers and the dropout of the embeddings keep for the backward pass of one example;
    `size`: bytes of a number."""
    width, layers, dropout = config.hidden_size, config.num_hidden_layers, config.hidden_dropout_prob > 0
    kind = LANGUAGE_MODELS[config.model_type]
    numbers = (13 if global_tokens and kind.global_projections else 11) + 2 * dropout
    of_one = size * (numbers * width + 2 * (kind.inner_matrices - 1) * config.intermediate_size)
    of_one += (FLOAT32_BYTES - size) * 3 * width
    of_all = layers * FLOAT32_BYTES * width + of_one if checkpointing else layers * of_one
    return length * (of_all + FLOAT32_BYTES * width * dropout)


def _linear_weights(config: LongformerConfig, global_tokens: float) -> int:
    """The number of weights in the linear layers that are used and in the vocabulary projection."""
    width, kind = config.hidden_size, LANGUAGE_MODELS[config.model_type]
    of_layer = (7 if global_tokens and kind.global_projections else 4) * width**2
    of_layer += kind.inner_matrices * width * config.intermediate_size
    return config.num_hidden_layers * of_layer + width * (width + config.vocab_size)


def bytes_per_number(precision: Precision) -> int:
    """The size in bytes of the numbers that a forward pass in this precision computes."""
    return _dtype(precision).itemsize


def measured_rate(precision: Precision, *, size: int = 1024) -> float:
    """Floating-point operations per second that training in this precision reaches on this device."""
    dtype = _dtype(precision)
    left = torch.ones(size, size, device=default_device(), dtype=dtype)
    (left @ left).sum().item()
    start = time.perf_counter()
    (left @ left).sum().item()
    rate = 2 * size**3 / (time.perf_counter() - start)
    return EFFICIENCY[str(dtype).removeprefix("torch.")] * rate


def training_seconds(cost: Estimate, config: LongformerConfig, *, rate: float) -> float:
    """Seconds for one example, forward and backward, at `rate` floating-point operations per second."""
    slower = ATTENTION_DROPOUT if config.attention_probs_dropout_prob else 1.0
    return slower * cost.training_flops / rate


def _dtype(precision: Precision) -> torch.dtype:
    return getattr(torch, resolve_precision(precision, device=default_device()))
