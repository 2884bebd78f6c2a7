"""Words as vectors, each read in its sentence by a frozen encoder: the inputs of the static tagger (Joerke et
al. 2020, "Doc-ARC", section 4.1: "the last four layers of BERT as a token's representation").

A sentence is read alone, as `[CLS]` pieces `[SEP]`, and every piece of it sees every other; no piece is
global, so a converted BERT computes what BERT does. A word is the mean of its pieces (footnote 1), or of the
first ones if it has more than there is room for.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag
from torch.nn.utils.rnn import pad_sequence
from transformers import LongformerModel, PreTrainedTokenizerFast

from cdlm_lab.collate import batches_by_length
from cdlm_lab.examples.tokenise_words import tokenise_words
from cdlm_lab.models.device import default_device
from cdlm_lab.models.encoder import load_encoder
from cdlm_lab.models.precision import Precision, computing_in, resolve_precision
from cdlm_lab.models.sentence_encoder import BATCH_SIZE, ENDS, SentenceEncoder, lengths_of

LAYERS = 4
SHOWN = 60  # characters of a sentence in a message


class WordEncoder:
    """A frozen encoder of words in sentences.

    Args:
        model: in eval mode, on the device that it is to run on; its weights must not change any more.
        tokenizer: of that model.
        layers: hidden layers whose states are concatenated, from the last one back.
        max_tokens: the most that a sentence may have, `[CLS]` and `[SEP]` included.
        precision: of the forward pass, as of `resolve_precision`; the vectors are float32 in each.

    Raises:
        ValueError: the model has fewer layers.
    """

    def __init__(
        self,
        model: LongformerModel,
        tokenizer: PreTrainedTokenizerFast,
        *,
        layers: int = LAYERS,
        max_tokens: int,
        precision: Precision = "float32",
    ) -> None:
        if not 1 <= layers <= model.config.num_hidden_layers:
            there = model.config.num_hidden_layers
            raise ValueError(f"layers is {layers}; the encoder has {there}, so take 1 to {there}")
        self.model, self.tokenizer = model, tokenizer
        self.layers, self.max_tokens = layers, max_tokens
        self.precision = resolve_precision(precision, device=model.device.type)

    @property
    def size(self) -> int:
        """Of a vector: the model's hidden size times the layers."""
        return self.model.config.hidden_size * self.layers

    @cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change with whatever changes the vectors: weights, tokenizer, layers,
        `max_tokens`, window, precision."""
        sentences = SentenceEncoder(self.model, self.tokenizer, max_tokens=self.max_tokens).fingerprint
        computed = "" if self.precision == "float32" else f" torch.{self.precision}"
        return hashlib.sha256(f"words {self.layers} {sentences}{computed}".encode()).hexdigest()[:16]

    def pieces(self, words: Sequence[str]) -> list[int]:
        """How many pieces each word of a sentence has, 1 or more; `max_tokens` must have room for their sum
        and two."""
        return np.bincount(word_pieces(self.tokenizer, words)[1]).tolist()

    def encode(self, sentences: Sequence[Sequence[str]], *, batch_size: int = BATCH_SIZE) -> list[np.ndarray]:
        """The vectors of the words of each sentence: (words, size), float32.

        Raises:
            ValueError: a sentence has more pieces than `max_tokens` has room for.
        """
        room = self.max_tokens - ENDS
        split = [word_pieces(self.tokenizer, words, most=room) for words in sentences]
        lengths = [len(ids) for ids, _ in split]
        for words, length in zip(sentences, lengths, strict=True):
            if length > room:
                what = f"the sentence {' '.join(words)[:SHOWN]!r} has {length} pieces"
                raise ValueError(f"{what}, but there is room for {room}; split it, or raise max_tokens")
        batches = batches_by_length(lengths, [0] * len(lengths), batch_size)
        with torch.inference_mode(), computing_in(self.precision, self.model.device):
            vectors = [rows for batch in batches for rows in self._encode([split[n] for n in batch])]
        order = np.concatenate([*batches, []]).argsort()
        return [vectors[place] for place in order]

    def _encode(self, batch: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
        begin, end = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        rows = [torch.tensor([begin, *ids.tolist(), end]) for ids, _ in batch]
        ids = pad_sequence(rows, batch_first=True, padding_value=self.tokenizer.pad_token_id)
        mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        device = self.model.device
        output = self.model(ids.to(device), mask.to(device), output_hidden_states=True)
        counts = [np.bincount(numbers) for _, numbers in batch]
        places = np.concatenate(
            [1 + row * ids.shape[1] + np.arange(len(numbers)) for row, (_, numbers) in enumerate(batch)]
        )
        means = [
            _means_of_runs(states.float().flatten(0, 1), places, counts=np.concatenate(counts))
            for states in output.hidden_states[-self.layers :]
        ]
        vectors = torch.cat(means, dim=-1).cpu().numpy()
        return np.split(vectors, np.cumsum([len(words) for words in counts])[:-1])


def word_pieces(
    tokenizer: PreTrainedTokenizerFast, words: Sequence[str], *, most: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The pieces of the words of a sentence, and which word each is of.

    Every word is tokenised as if a space stood before it; one without any piece, as a lone control character,
    is an unknown one.

    Args:
        most: of the pieces of a word only the first so many are taken; None = all.

    Returns:
        ids: int64 (pieces,), no special tokens.
        numbers: int64 (pieces,), rising; every word from 0 to the last has a piece.

    Raises:
        ValueError: a word has no piece and the tokenizer no unknown one.
    """
    if not words:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    ids, numbers = tokenise_words(words, tokenizer)
    if most is not None and len(ids) > most:
        nth = np.arange(len(ids)) - np.searchsorted(numbers, numbers)  # of each piece in its word
        ids, numbers = ids[nth < most], numbers[nth < most]
    silent = np.setdiff1d(np.arange(len(words)), numbers)
    if not len(silent):
        return ids, numbers
    if tokenizer.unk_token_id is None:
        what = f"word {silent[0]}, {words[silent[0]]!r}, has no piece"
        raise ValueError(f"{what} and the tokenizer no unknown one; leave it out")
    places = np.searchsorted(numbers, silent)
    return np.insert(ids, places, tokenizer.unk_token_id), np.insert(numbers, places, silent)


def load_word_encoder(
    name_or_path: str | os.PathLike[str],
    *,
    layers: int = LAYERS,
    max_tokens: int,
    window: int | None = None,
    precision: Precision = "float32",
    seed: int = 0,
) -> WordEncoder:
    """Any encoder that `load_encoder` knows as an encoder of words, on the default device.

    Arguments and errors as of `WordEncoder`, of `load_encoder`, and of `lengths_of`.
    """
    lengths = lengths_of(max_tokens=max_tokens, window=window)
    model, tokenizer = load_encoder(name_or_path, **lengths, seed=seed)
    return WordEncoder(
        model.to(default_device()), tokenizer, layers=layers, max_tokens=max_tokens, precision=precision
    )


def _means_of_runs(states: Tensor, places: np.ndarray, *, counts: np.ndarray) -> Tensor:
    """The means of the first `counts[0]` of the states at `places`, of the next `counts[1]`, ...: (words,
    hidden)."""
    chosen, starts = (
        torch.from_numpy(numbers).to(states.device) for numbers in (places, counts.cumsum() - counts)
    )
    return embedding_bag(chosen, states, starts, mode="mean")
