"""The attention of any encoder that computes it through transformers' attention interface (BERT, RoBERTa,
ModernBERT with its own masks, ...), from and to a few tokens: what `attention.weights` does for ours.

While `record_interface` is on, a function of ours computes the attention, a block of queries at a time, and
keeps the rows and columns of the source alone: memory grows with the length, not with its square.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

NAME = "cdlm_lab_recorded"
BLOCK = 512  # queries whose weights are computed at once


class InterfaceRecorder:
    """Records, layer by layer, as `attention.weights.AttentionRecorder`, for one text."""

    def __init__(self, source: Tensor) -> None:
        self.source = source  # (source tokens,) positions
        self.from_tokens: list[Tensor] = []  # of each layer, (batch, head, source, seq)
        self.to_tokens: list[Tensor] = []
        self.reach: list[Tensor] = []  # of each layer, bool (seq,), True = may attend to or from the source


_RECORDER: ContextVar[InterfaceRecorder | None] = ContextVar("recorder", default=None)


def _attend(
    module: Any,
    query: Tensor,  # this and the next two: (batch, head, seq, dim)
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,  # (batch, 1, query, key), 0 = attends, lowest number = does not
    scaling: float | None = None,
    dropout: float = 0.0,  # 0 in evaluation mode
    **_: Any,
) -> tuple[Tensor, None]:
    recorder = _RECORDER.get()
    source = recorder.source.to(query.device) if recorder else torch.arange(0)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    outputs, given, received = [], [], []
    for start in range(0, query.shape[2], BLOCK):
        scores = query[:, :, start : start + BLOCK] @ key.transpose(2, 3) * scale
        if attention_mask is not None:
            scores = scores + attention_mask[:, :, start : start + BLOCK]
        weights = scores.float().softmax(-1)
        outputs.append(weights.to(value.dtype) @ value)
        here = source[(source >= start) & (source < start + BLOCK)] - start
        given.append(weights[:, :, here])
        received.append(weights[..., source].transpose(2, 3))
    if recorder:
        everywhere = torch.ones(1, 1, query.shape[2], key.shape[2], dtype=torch.bool, device=query.device)
        sees = everywhere if attention_mask is None else attention_mask == 0
        recorder.reach.append(sees[0, 0, source].any(dim=0) | sees[0, 0, :, source].any(dim=1))
        recorder.from_tokens.append(torch.cat(given, dim=2))
        recorder.to_tokens.append(torch.cat(received, dim=3))
    return torch.cat(outputs, dim=2).transpose(1, 2).contiguous(), None


AttentionInterface.register(NAME, _attend)
AttentionMaskInterface.register(NAME, ALL_MASK_ATTENTION_FUNCTIONS["eager"])


@contextmanager
def record_interface(encoder: PreTrainedModel, source: Tensor) -> Iterator[InterfaceRecorder]:
    """Record the attention of an encoder from and to the positions `source`, ascending, inside the block.
    Raises ValueError if it computed none through the interface."""
    recorder, config = InterfaceRecorder(source), encoder.config
    before, config._attn_implementation = config._attn_implementation, NAME
    token = _RECORDER.set(recorder)
    try:
        yield recorder
    finally:
        _RECORDER.reset(token)
        config._attn_implementation = before
    if not recorder.from_tokens:
        what = f"{type(encoder).__name__} does not return its attention: it is not on transformers' interface"
        raise ValueError(f"{what}; for a Longformer, call replace_self_attention(model) first")
