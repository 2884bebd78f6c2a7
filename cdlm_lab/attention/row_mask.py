"""Hugging Face's Longformer without its mask of length x length.

Its encoder makes a mask (batch, 1, seq, seq) and reads one row of it, which keeps all of it alive until the
backward is over: at 4,096 tokens 67 MB and 50 ms an example on one core.
"""

from __future__ import annotations

import inspect
from types import FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor, nn

_MASK_MAKER = "create_bidirectional_mask"  # of transformers.masking_utils


def mask_by_row(encoder: nn.Module) -> None:
    """Let a `LongformerModel` make the one row that it reads, in place: its forward stays Hugging Face's, but
    for the function by which it makes the mask."""
    forward = inspect.unwrap(type(encoder).forward)
    if _MASK_MAKER in forward.__globals__:
        names = {**forward.__globals__, _MASK_MAKER: _row}
        own = FunctionType(
            forward.__code__, names, forward.__name__, forward.__defaults__, forward.__closure__
        )
        own.__kwdefaults__ = forward.__kwdefaults__
        encoder.forward = MethodType(own, encoder)  # type: ignore[method-assign]


def _row(*, inputs_embeds: Tensor, attention_mask: Tensor, **_: Any) -> Tensor:
    """(batch, 1, 1, seq): 0 = a token, the lowest number = padding.

    `attention_mask`: (batch, seq), 0 = padding.
    """
    row = inputs_embeds.new_zeros(attention_mask.shape)
    return row.masked_fill_(attention_mask == 0, torch.finfo(row.dtype).min)[:, None, None]
