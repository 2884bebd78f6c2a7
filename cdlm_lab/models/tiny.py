"""A small Longformer from scratch with its own tokenizer, for the embedded corpus: everything offline in
seconds.

The tokenizer is a byte-level BPE trained on the first storyworld stories of a fixed seed, so it is the
same on every machine. Default sizes: 3 layers of 4 x 32 heads, 128 wide, 1,024 words; 1.0 million weights
at 1,024 positions.

Position embeddings start as sinusoids (Vaswani et al. 2017, section 3.5) and are then learned like all
others. What the model learns about neighbours at one place then holds at every place from the beginning,
and a global token, which sees the whole text, can tell near from far: from embeddings drawn at random, a
global masked token stays at what single words give away for millions of tokens.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import LongformerConfig, PreTrainedTokenizerFast

TOKENIZER_STORIES = 300
TOKENIZER_SEED = 0
SPECIAL = {
    "bos_token": "<s>",
    "pad_token": "<pad>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
}
SEPARATORS = 2  # <doc-s> and </doc-s>, added after training


@dataclass(frozen=True, slots=True, kw_only=True)
class TinySizes:
    """Sizes of the small Longformer.

    `vocabulary`: words, special tokens and document separators included. `initializer_range`: standard
    deviation of all weights at the start. `position_size`: root mean square of the sinusoids that position
    embeddings start as; 0 = drawn at random like the other weights. `dropout`: none by default, for it sees
    each example once.

    Raises ValueError when the heads do not divide the width, or the vocabulary cannot hold all bytes.
    """

    hidden_size: int = 128
    layers: int = 3
    heads: int = 4
    intermediate_size: int = 512
    vocabulary: int = 1024
    initializer_range: float = 0.05
    position_size: float = 0.1
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.hidden_size % self.heads:
            raise ValueError(f"hidden_size ({self.hidden_size}) must be divisible by heads ({self.heads})")
        least = 256 + len(SPECIAL) + SEPARATORS
        if self.vocabulary < least:
            raise ValueError(f"vocabulary ({self.vocabulary}) must be at least {least} to hold all bytes")


def tiny_tokenizer(*, sizes: TinySizes | None = None) -> PreTrainedTokenizerFast:
    """Train the tokenizer (a few seconds), without the separators; room for them is left. The same every
    time."""
    from cdlm_lab.data.storyworld import stories  # here, so that other models load without the generator

    texts = (
        document.text
        for story in stories(seed=TOKENIZER_SEED, split="train", stop=TOKENIZER_STORIES)
        for document in story.cluster.documents
    )
    return byte_level_tokenizer(texts, vocabulary=(sizes or TinySizes()).vocabulary - SEPARATORS)


def byte_level_tokenizer(texts: Iterator[str], *, vocabulary: int) -> PreTrainedTokenizerFast:
    """A byte-level BPE of at most `vocabulary` words trained on `texts`, with RoBERTa's special tokens.

    Each text is read as if a space preceded it, so that its first word is the word it is elsewhere.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL.values()),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer=trainer)
    begin, end = SPECIAL["bos_token"], SPECIAL["eos_token"]
    tokenizer.post_processor = processors.RobertaProcessing(
        (end, tokenizer.token_to_id(end)),
        (begin, tokenizer.token_to_id(begin)),
        add_prefix_space=True,
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        cls_token=begin,
        sep_token=end,
        **SPECIAL,
        clean_up_tokenization_spaces=False,
    )


def start_positions_as_sinusoids(embedding: torch.nn.Embedding, *, size: float) -> None:
    """Set a position embedding to sines and cosines of wavelengths from 2 pi to 20,000 pi, with root mean
    square `size`; its padding row stays zero. Vaswani et al. 2017, section 3.5."""
    positions, width = embedding.weight.shape
    wavelength = torch.exp(torch.arange(0, width, 2) * (math.log(10_000) / width))
    angle = torch.arange(positions)[:, None] / wavelength  # (positions, width / 2)
    with torch.no_grad():
        embedding.weight[:, 0::2] = angle.sin() * (size * math.sqrt(2))
        embedding.weight[:, 1::2] = angle.cos()[:, : width // 2] * (size * math.sqrt(2))
        if embedding.padding_idx is not None:
            embedding.weight[embedding.padding_idx] = 0


def tiny_config(
    tokenizer: PreTrainedTokenizerFast, *, max_length: int, window: int, sizes: TinySizes | None = None
) -> LongformerConfig:
    """Config of the small Longformer for `max_length` positions; `window`: total width of local attention."""
    sizes = sizes or TinySizes()
    return LongformerConfig(
        vocab_size=len(tokenizer),
        hidden_size=sizes.hidden_size,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads,
        intermediate_size=sizes.intermediate_size,
        attention_window=[window] * sizes.layers,
        max_position_embeddings=max_length + tokenizer.pad_token_id + 1,
        type_vocab_size=1,
        initializer_range=sizes.initializer_range,
        hidden_dropout_prob=sizes.dropout,
        attention_probs_dropout_prob=sizes.dropout,
        layer_norm_eps=1e-5,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        sep_token_id=tokenizer.sep_token_id,
    )
