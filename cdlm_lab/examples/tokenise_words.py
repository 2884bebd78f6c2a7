"""Words in pieces, for texts that come in words: which pieces, and of which word each is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def tokenise_words(words: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> tuple[np.ndarray, np.ndarray]:
    """Tokenise word by word, each as if a space stood before it.

    Returns:
        ids: int64 (pieces,), no special tokens.
        numbers: int64 (pieces,), rising, the word of each; a word that the tokenizer makes nothing of, as a
            lone control character, has no piece.
    """
    encoded = tokenizer(
        # With the space a byte-level BPE takes a word for what it is within a text, whatever its settings.
        [f" {word}" for word in words],
        is_split_into_words=True,
        add_special_tokens=False,
        split_special_tokens=True,  # a "[MASK]" or "<m>" that somebody wrote in a text is text
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,  # who asks sees to the length
    )
    return np.array(encoded["input_ids"], dtype=np.int64), np.array(encoded.word_ids(), dtype=np.int64)
