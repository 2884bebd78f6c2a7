"""From examples of document-attentive tagging to the batches of the two taggers: what is attended to, words
for the static one and sentences for the dynamic one, is in a batch once, however many words attend to it.

Longest rows decide the size of a batch, so cut long sentences (`split_long`) and put examples together that
share their context (`document_runs`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from cdlm_lab.examples.masking import NOT_MASKED
from cdlm_lab.examples.tag_examples import TagExample, context_of
from cdlm_lab.examples.tag_sequences import SplitDocument
from cdlm_lab.models.sentence_encoder import ENDS
from cdlm_lab.models.word_encoder import word_pieces
from cdlm_lab.models.word_encodings import WordEncodings

NOWHERE = -1
SequenceNumber = tuple[int, int]  # of the document, and of the sequence in it


@dataclass(frozen=True, slots=True, eq=False)
class StaticCollate:
    """Batches of `StaticTagger`; give it to a `Trainer` or `DataLoader` as it is.

    Attributes:
        encodings: of all sequences; what is missing is computed, so `ensure` them beforehand.
        documents: those of the `TagExamples`.
        context: False = for a tagger without context.
        whole_sentences: True = for one whose `context_order` is `sentence`.
    """

    encodings: WordEncodings
    documents: Sequence[SplitDocument]
    _: KW_ONLY
    context: bool = True
    whole_sentences: bool = False

    def __call__(self, examples: Sequence[TagExample]) -> dict[str, Tensor]:
        """Look up encodings and pad.

        Args:
            examples: of a `TagExamples`.

        Returns:
            `targets` (batch, words, size), `attention_mask` (batch, words) bool and `labels` (batch, words);
            with context also `context` (occurrences, size), `places` (batch, words, K) and `buckets` (batch,
            words, K), and of whole sentences `context_lengths`; all as `StaticTagger.forward` takes them,
            encodings in float32. Words of the mask count as tokens in a training.

        Raises:
            ValueError: no examples; errors as of `WordEncodings.ensure`.
        """
        _check(examples)
        targets = [self.encodings.rows(example.words) for example in examples]
        batch = {
            "targets": self._vectors(targets),
            "attention_mask": _mask([len(rows) for rows in targets]),
            "labels": _padded([example.labels for example in examples], fill=NOT_MASKED),
        }
        return batch | (self._occurrences(examples) if self.context else {})

    def _occurrences(self, examples: Sequence[TagExample]) -> dict[str, Tensor]:
        """`context`, `places` and `buckets`: the words attended to, each once, and which each word's are; or
        all words of the sentences that these are in, with `context_lengths`."""
        sequences = context_of(examples)
        sentences = [self.encodings.rows(_words(self.documents, sequence)) for sequence in sequences]
        lengths = torch.tensor([len(rows) for rows in sentences], dtype=torch.int64)
        starts = lengths.cumsum(0) - lengths
        found = _places(examples, sequences)
        there = found["places"][..., 0] >= 0
        row, word = found["places"][there].T
        numbers = starts[row] + word  # among all words of the sentences
        if self.whole_sentences:
            used, found["context_lengths"] = torch.arange(lengths.sum()), lengths
        else:
            used, numbers = torch.unique(numbers, return_inverse=True)
        row = torch.searchsorted(starts, used, right=True) - 1
        chosen = zip(row.tolist(), (used - starts[row]).tolist(), strict=True)
        vectors = np.array([sentences[row][word] for row, word in chosen], dtype=np.float32)
        return found | {
            "context": torch.from_numpy(vectors.reshape(-1, self.encodings.size)),
            "places": torch.full(there.shape, NOWHERE).masked_scatter(there, numbers),
        }

    def _vectors(self, sentences: Sequence[np.ndarray]) -> Tensor:
        """(sentences, longest, size) float32, 0 where there is no word."""
        longest = max(map(len, sentences), default=0)
        vectors = torch.zeros(len(sentences), longest, self.encodings.size)
        view = vectors.numpy()
        for row, rows in zip(view, sentences, strict=True):
            row[: len(rows)] = rows
        return vectors


@dataclass(frozen=True, slots=True, eq=False)
class DynamicCollate:
    """Batches of `DynamicTagger`; give it to a `Trainer` or `DataLoader` as it is.

    Attributes:
        tokenizer: of the tagger; its `model_max_length` is what a sequence may have.
        documents: those of the `TagExamples`.
        context: False = for a tagger without context.
    """

    tokenizer: PreTrainedTokenizerFast
    documents: Sequence[SplitDocument]
    _: KW_ONLY
    context: bool = True

    def __call__(self, examples: Sequence[TagExample]) -> dict[str, Tensor]:
        """Tokenise and pad.

        Args:
            examples: of a `TagExamples`.

        Returns:
            `input_ids`, `attention_mask` and `words` (sequences, tokens); `target_rows` (batch,), `word_mask`
            (batch, words) bool and `labels` (batch, words); with context also `places` (batch, words, K, 2)
            and `buckets` (batch, words, K); all as `DynamicTagger.forward` takes them.

        Raises:
            ValueError: no examples; a sequence that is longer than the model.
        """
        _check(examples)
        targets = [(example.document, example.sentence) for example in examples]
        sequences = sorted({*targets, *(context_of(examples) if self.context else ())})
        row = {sequence: number for number, sequence in enumerate(sequences)}
        batch = self._tokens(sequences) | {
            "target_rows": torch.tensor([row[sequence] for sequence in targets]),
            "word_mask": _mask([len(example.words) for example in examples]),
            "labels": _padded([example.labels for example in examples], fill=NOT_MASKED),
        }
        return batch | (_places(examples, sequences) if self.context else {})

    def _tokens(self, sequences: Sequence[SequenceNumber]) -> dict[str, Tensor]:
        begin, end = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        room = self.tokenizer.model_max_length - ENDS
        ids, words = [], []
        for sequence in sequences:
            pieces, numbers = word_pieces(self.tokenizer, _words(self.documents, sequence), most=room)
            if len(pieces) > room:
                number, place = sequence
                raise ValueError(
                    f"document {self.documents[number].document.id}, sequence {place} has {len(pieces)} "
                    f"pieces, but the model has room for {room}; split it"
                )
            ids.append(np.array([begin, *pieces, end]))
            words.append(np.array([NOWHERE, *numbers, NOWHERE]))
        return {
            "input_ids": _padded(ids, fill=self.tokenizer.pad_token_id),
            "attention_mask": _mask([len(row) for row in ids]).long(),
            "words": _padded(words, fill=NOWHERE),
        }


def _check(examples: Sequence[TagExample]) -> None:
    if not examples:
        raise ValueError("no examples to collate")


def _words(documents: Sequence[SplitDocument], sequence: SequenceNumber) -> tuple[str, ...]:
    number, place = sequence
    return documents[number].document.sentences[place].words


def _places(examples: Sequence[TagExample], sequences: Sequence[SequenceNumber]) -> dict[str, Tensor]:
    """`places` with rows, numbers in `sequences`, instead of numbers in a document, and `buckets`."""
    row_of = {sequence: row for row, sequence in enumerate(sequences)}
    places = []
    for example in examples:
        numbers, inverse = np.unique(example.places[..., 0], return_inverse=True)
        rows = [row_of.get((example.document, number), NOWHERE) for number in numbers.tolist()]
        known = np.array(rows, dtype=np.int64)[inverse].reshape(example.places.shape[:-1])
        places.append(np.stack([known, example.places[..., 1]], axis=-1))
    buckets = [example.buckets for example in examples]
    return {"places": _padded(places, fill=NOWHERE), "buckets": _padded(buckets, fill=0)}


def _mask(lengths: Sequence[int]) -> Tensor:
    """(rows, longest) bool, True = there."""
    longest = max(lengths, default=0)
    return torch.arange(longest) < torch.tensor(lengths, dtype=torch.int64)[:, None]


def _padded(rows: Sequence[np.ndarray], *, fill: int) -> Tensor:
    """Stack integers that differ in their first axis, int64."""
    out = np.full((len(rows), max(map(len, rows)), *rows[0].shape[1:]), fill, dtype=np.int64)
    for place, row in zip(out, rows, strict=True):
        place[: len(row)] = row
    return torch.from_numpy(out)
