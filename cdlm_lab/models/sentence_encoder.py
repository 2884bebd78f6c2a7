"""Sentences as vectors: the average of what BERT makes of their tokens (Zhou et al. 2020, "CDA", section
5.1), for BERT-AVG and BERT-HAN.

A sentence is read alone, as `[CLS]` tokens `[SEP]`, and every token of it sees every other; no token is
global, so a converted BERT computes what BERT does.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import LongformerModel, PreTrainedTokenizerFast

from cdlm_lab.collate import batches_by_length
from cdlm_lab.models.device import default_device
from cdlm_lab.models.encoder import load_encoder
from cdlm_lab.models.precision import Precision, computing_in, resolve_precision

BATCH_SIZE = 64  # sentences at once; more are no faster
ENDS = 2  # [CLS] and [SEP]


class SentenceEncoder:
    """A frozen encoder of sentences.

    Args:
        model: in eval mode, on the device that it is to run on; its weights must not change any more.
        tokenizer: of that model.
        max_tokens: what a sentence is cut to, `[CLS]` and `[SEP]` included.
        precision: of the forward pass, as of `resolve_precision`; the vectors are float32 in each.
    """

    def __init__(
        self,
        model: LongformerModel,
        tokenizer: PreTrainedTokenizerFast,
        *,
        max_tokens: int,
        precision: Precision = "float32",
    ) -> None:
        self.model, self.tokenizer, self.max_tokens = model, tokenizer, max_tokens
        self.precision = resolve_precision(precision, device=model.device.type)

    @property
    def size(self) -> int:
        """Of a vector."""
        return self.model.config.hidden_size

    @cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change with whatever changes the vectors: weights, tokenizer,
        `max_tokens`, window, precision."""
        digest = hashlib.sha256(self.tokenizer.backend_tokenizer.to_str().encode())
        if self.precision != "float32":
            digest.update(self.precision.encode())
        digest.update(f"{self.max_tokens} {self.model.config.attention_window}".encode())
        for name, weight in sorted(self.model.state_dict().items()):
            digest.update(name.encode())
            digest.update(weight.detach().cpu().contiguous().numpy())
        return digest.hexdigest()[:16]

    def encode(self, sentences: Sequence[str], *, batch_size: int = BATCH_SIZE) -> np.ndarray:
        """The vectors of sentences: (sentences, size), float32."""
        if not sentences:
            return np.zeros((0, self.size), dtype=np.float32)
        words = self.tokenizer(
            list(sentences),
            add_special_tokens=False,
            split_special_tokens=True,  # a "[SEP]" that somebody wrote in a text is text, as in `Vocabulary`
            verbose=False,  # sentences longer than the model are cut below
        )["input_ids"]
        begin, end = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        rows = [torch.tensor([begin, *tokens[: self.max_tokens - ENDS], end]) for tokens in words]
        ids = pad_sequence(rows, batch_first=True, padding_value=self.tokenizer.pad_token_id)
        mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        device = self.model.device
        with torch.inference_mode(), computing_in(self.precision, device):
            vectors = sentence_vectors(self.model, ids.to(device), mask.to(device), batch_size=batch_size)
        return vectors.float().cpu().numpy()


def mean_states(model: LongformerModel, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
    """The mean of the last hidden states of each sentence's tokens: (sentences, size).

    `[CLS]` and `[SEP]` are tokens like all others, as in sentence-transformers.

    Args:
        input_ids: (sentences, tokens).
        attention_mask: (sentences, tokens), 1 = token, 0 = padding; each sentence has a token.
    """
    states = model(input_ids, attention_mask).last_hidden_state
    there = attention_mask[..., None].to(states.dtype)
    return (states * there).sum(1) / there.sum(1)


def sentence_vectors(
    model: LongformerModel, input_ids: Tensor, attention_mask: Tensor, *, batch_size: int = BATCH_SIZE
) -> Tensor:
    """As `mean_states`, in batches of like length, so that little is spent on padding. Padding comes last."""
    lengths = attention_mask.sum(1).tolist()
    batches = batches_by_length(lengths, [0] * len(lengths), batch_size)
    parts = []
    for rows in batches:
        width = lengths[rows[0]]  # the longest comes first
        parts.append(mean_states(model, input_ids[rows, :width], attention_mask[rows, :width]))
    order = torch.tensor([row for rows in batches for row in rows], device=input_ids.device)
    return torch.cat(parts)[order.argsort()]


def load_sentence_encoder(
    name_or_path: str | os.PathLike[str],
    *,
    max_tokens: int,
    window: int | None = None,
    attention: str = "auto",
    precision: Precision = "float32",
    seed: int = 0,
) -> SentenceEncoder:
    """Any encoder that `load_encoder` knows as a sentence encoder, on the default device.

    Arguments and errors as of `SentenceEncoder`, of `load_encoder`, and of `lengths_of`.
    """
    lengths = lengths_of(max_tokens=max_tokens, window=window)
    model, tokenizer = load_encoder(name_or_path, **lengths, attention=attention, seed=seed)
    return SentenceEncoder(model.to(default_device()), tokenizer, max_tokens=max_tokens, precision=precision)


def lengths_of(*, max_tokens: int, window: int | None) -> dict[str, int]:
    """The arguments `max_length` and `window` of `load_encoder` for sentences.

    Args:
        max_tokens: what a sentence is cut to, `[CLS]` and `[SEP]` included.
        window: total width of attention; None = twice `max_tokens`, so that every token sees every other. It
            costs nothing: short texts are not filled up to the window. A Longformer that has no room for so
            many positions needs a narrower one.

    Raises:
        ValueError: `max_tokens` leaves no room for a token of the sentence.
    """
    if max_tokens <= ENDS:
        raise ValueError(f"max_tokens is {max_tokens}; [CLS] and [SEP] count, so take {ENDS + 1} or more")
    width = 2 * max_tokens if window is None else window
    return {"max_length": max(max_tokens, width), "window": width}
