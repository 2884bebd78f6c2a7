"""Dropout of an encoder: that of hidden states, and that of attention weights, which is a choice of its own
because it costs time."""

from __future__ import annotations

from typing import Literal, TypeVar

from transformers import PretrainedConfig

CHECKPOINT = "checkpoint"
AttentionDropout = float | Literal["checkpoint"]
Config = TypeVar("Config", bound=PretrainedConfig)


def check_dropout(dropout: float | None, attention_dropout: AttentionDropout) -> None:
    """Refuse shares that cannot be.

    Args:
        dropout: of hidden states; None = as the checkpoint says.
        attention_dropout: of attention weights; `checkpoint` = as the checkpoint says.

    Raises:
        ValueError: a share outside [0, 1), or another word.
    """
    if dropout is not None and not 0 <= dropout < 1:
        raise ValueError(f"dropout ({dropout}) must be in [0, 1)")
    if attention_dropout == CHECKPOINT:
        return
    if isinstance(attention_dropout, str) or not 0 <= attention_dropout < 1:
        raise ValueError(
            f"attention_dropout ({attention_dropout}) must be in [0, 1), or 'checkpoint' for what the "
            "checkpoint has"
        )


def with_dropout(config: Config, dropout: float | None, attention_dropout: AttentionDropout) -> Config:
    """The config of an encoder, with other dropout where that is asked for; arguments as of
    `check_dropout`."""
    if dropout is not None:
        config.hidden_dropout_prob = dropout
    if attention_dropout != CHECKPOINT:
        config.attention_probs_dropout_prob = attention_dropout
    return config
