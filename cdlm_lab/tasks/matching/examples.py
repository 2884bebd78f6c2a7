"""Pairs of documents, for models that decide whether they belong together.

For a cross-encoder (CDLM sections 2.2 and 3.3), with a mapping from positions back to sentences:

    [CLS] <doc-s> A fire broke out. Two died. </doc-s> <doc-s> The blaze spread. </doc-s> [SEP]

Only `[CLS]` is global. Sentences are tokenised one by one, each as if a space stood before it, and joined
without marks between them. Documents that are too long are truncated: each gets an equal share of the room,
and what a short one does not need goes to the other. For hierarchical matchers (Zhou et al. 2020, "CDA"):
sentence by sentence, as word numbers or as vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import torch
from sklearn.decomposition import PCA
from torch import Tensor

from cdlm_lab.data.records import DocumentPair, PairDocument
from cdlm_lab.errors import check_least
from cdlm_lab.examples import tokens
from cdlm_lab.examples.collate import check_keys, padded
from cdlm_lab.examples.packing import pack_documents
from cdlm_lab.examples.passes import checked_index
from cdlm_lab.examples.tokens import EncodedById, SpecialTokens, Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EncodedSentences:
    """A tokenised document."""

    input_ids: np.ndarray  # int32 (tokens,), no special tokens
    sentence: np.ndarray  # int32 (tokens,), number of each token's sentence, ascending
    sentence_count: int  # number of sentences in the document


def encode_sentences(document: PairDocument, tokenizer: PreTrainedTokenizerBase) -> EncodedSentences:
    """Tokenise a document sentence by sentence. A sentence of nothing but, say, a control character has no
    tokens; ValueError if none of them has any."""
    encoded = tokens.encode_pieces(document.sentences, tokenizer)
    counts = [len(ids) for ids in encoded]
    if not any(counts):
        raise ValueError(f"document {document.id}: its sentences have no tokens; leave it out")
    return EncodedSentences(
        input_ids=np.concatenate(encoded),
        sentence=np.repeat(np.arange(len(counts), dtype=np.int32), counts),
        sentence_count=len(counts),
    )


def shortened(pairs: Iterable[DocumentPair], *, fewest: int, seed: int) -> Iterator[DocumentPair]:
    """Replace both documents of each pair by a random run of their sentences, at least `fewest`, short runs
    more often than long ones, from the first sentence or the second, as the first may be a headline. Models
    that learn only from whole reports take texts of three sentences for unrelated."""
    for pair in pairs:
        rng = Random(f"shortened/{seed}/{pair.id}")
        first, second = (_shortened(one, fewest, rng) for one in (pair.first, pair.second))
        yield replace(pair, first=first, second=second, aligned=None)


def _shortened(document: PairDocument, fewest: int, rng: Random) -> PairDocument:
    start, longest = rng.randrange(2), len(document.sentences)
    count = rng.randint(fewest, rng.randint(fewest, max(fewest, longest)))
    sentences = document.sentences[start : start + count] or document.sentences
    return PairDocument(id=f"{document.id}, {count} from {start}", sentences=sentences)


class SentencesById(EncodedById[PairDocument, EncodedSentences]):
    """The documents of pairs by id, encoded when first read; one may be in several pairs."""

    def __init__(self, pairs: Iterable[DocumentPair], tokenizer: PreTrainedTokenizerBase) -> None:
        documents = (document for pair in pairs for document in (pair.first, pair.second))
        super().__init__(documents, partial(encode_sentences, tokenizer=tokenizer), kind="documents")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatchSequence:
    """Two documents as one sequence."""

    input_ids: np.ndarray  # int64 (seq,)
    global_attention_mask: np.ndarray  # int64 (seq,), 1 = global: only the first token
    side: np.ndarray  # int64 (seq,), 0 = first document, 1 = second; -1 = any special token
    sentence: np.ndarray  # int64 (seq,), number of the sentence in its document; -1 = special
    lost_sentences: tuple[int, int]  # for each document, number of sentences cut off entirely

    def sentence_count(self, document: int) -> int:
        """The number of sentences of document 0 or 1, lost ones included."""
        return len(np.unique(self.sentence[self.side == document])) + self.lost_sentences[document]


def match_sequence(
    first: EncodedSentences, second: EncodedSentences, *, special: SpecialTokens, max_length: int
) -> MatchSequence:
    """Write two documents into one sequence of at most `max_length` tokens, special ones included."""
    documents = (first, second)
    ids = [document.input_ids for document in documents]
    packed = pack_documents(ids, max_length=max_length, policy="equal_share", special=special)
    side = np.where(packed.is_special, -1, packed.document)
    sentence = np.full_like(side, -1)
    kept = [d.sentence[:count] for d, count in zip(documents, packed.kept_tokens, strict=True)]
    sentence[side >= 0] = np.concatenate(kept)
    lost = (d.sentence_count - len(np.unique(k)) for d, k in zip(documents, kept, strict=True))
    return MatchSequence(
        input_ids=packed.input_ids,
        global_attention_mask=(np.arange(len(side)) == 0).astype(np.int64),
        side=side,
        sentence=sentence,
        lost_sentences=tuple(lost),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class MatchExamples:
    """Map-style dataset of pairs; each sequence is created when it is read.

    `examples[i]` is a dict of `input_ids` int64 (seq,), `global_attention_mask` int64 (seq,), 1 = global, and
    `labels` int64 (), 1 = related.
    """

    pairs: Sequence[DocumentPair]
    documents: Mapping[str, EncodedSentences]  # by id; `SentencesById` encodes each when it is first needed
    special: SpecialTokens
    max_length: int  # of a sequence, special tokens included

    def __post_init__(self) -> None:
        least = self.special.framing + 2 * (self.special.per_document + 1)
        if self.max_length < least:
            what = f"max_length is {self.max_length}"
            raise ValueError(f"{what}; two documents with their frames need at least {least}")

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        sequence = self.describe(index)
        return {
            "input_ids": sequence.input_ids,
            "global_attention_mask": sequence.global_attention_mask,
            "labels": np.array(self.pairs[index].related, dtype=np.int64),
        }

    def describe(self, index: int) -> MatchSequence:
        """The sequence of one pair, with what was truncated from it."""
        return match_sequence(*self._documents_of(index), special=self.special, max_length=self.max_length)

    def length_of(self, index: int) -> int:
        """Number of tokens of a pair's sequence, for batches of similar lengths."""
        frame = self.special.framing + 2 * self.special.per_document
        text = sum(len(document.input_ids) for document in self._documents_of(index))
        return min(frame + text, self.max_length)

    def _documents_of(self, index: int) -> tuple[EncodedSentences, EncodedSentences]:
        first, second = self.pairs[checked_index(index, len(self), "pair")].documents
        return self.documents[first], self.documents[second]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceWords:
    """Converts documents to word numbers: called with one, it gives int64 (sentences, longest), padded with
    0.

    Example: "Rain fell." and "So?", where only `rain` (2) and `.` (3) are known, give [[2, 1, 3], [1, 1, 0]].
    """

    vocabulary: Vocabulary
    most_sentences: int  # per document; the first ones are kept
    most_words: int  # per sentence; the first ones are kept

    def __post_init__(self) -> None:
        check_least(most_sentences=self.most_sentences, most_words=self.most_words)

    def __call__(self, document: PairDocument) -> np.ndarray:
        """The word numbers of a document."""
        kept = document.sentences[: self.most_sentences]
        return padded([self.vocabulary.numbers(text, most=self.most_words) for text in kept]).numpy()


@dataclass(frozen=True, kw_only=True, eq=False)
class SentencePairExamples:
    """Map-style dataset of pairs; a document is encoded when it is first read, and cached.

    `examples[i]` is a dict of `first` and `second`, the results of `encode` for the two documents
    (read-only), and `labels` float32 (), 1 = related, 0 = not.
    """

    pairs: Sequence[DocumentPair]
    # Returns int64 (sentences, words), padded with 0, as `SentenceWords` does; or float32 (sentences, size).
    encode: Callable[[PairDocument], np.ndarray]
    _encoded: dict[str, np.ndarray] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        pair = self.pairs[index]
        for document in (pair.first, pair.second):
            if document.id not in self._encoded:
                self._encoded[document.id] = self.encode(document)
        return {
            "first": self._encoded[pair.first.id],
            "second": self._encoded[pair.second.id],
            "labels": np.array(pair.related, dtype=np.float32),
        }


SIDES = ("first", "second")


class PairCollate:
    """Pads examples of `SentencePairExamples` and stacks them into what `DocumentMatcher.forward` takes.

    Example:

        [{"first": [[5, 7], [6, 0]], "second": [[8]],    "labels": 1.0},
         {"first": [[9]],            "second": [[4, 3]], "labels": 0.0}]
        gives
        {"inputs":        [[[[5, 7], [6, 0]], [[8, 0], [0, 0]]],
                           [[[9, 0], [0, 0]], [[4, 3], [0, 0]]]],
         "sentence_mask": [[[1, 1], [1, 0]],
                           [[1, 0], [1, 0]]],
         "labels":        [1.0, 0.0]}
    """

    def __call__(self, examples: Sequence[Mapping[str, np.ndarray]]) -> dict[str, Tensor]:
        """Pad and stack documents, either all of words, int (sentences, words), or all of vectors, float
        (sentences, size); `labels` must be in all examples or in none. `sentence_mask` is bool (batch, 2,
        sentences), True = sentence."""
        check_keys(examples, needed=SIDES, optional=("labels",))
        documents = [np.asarray(example[side]) for example in examples for side in SIDES]
        masks = [np.ones(len(each), dtype=bool) for each in documents]
        inputs, sentence_mask = padded(documents, fill=tokens.FILLING), padded(masks, fill=False)
        shape = (len(examples), 2)
        batch = {"inputs": inputs.unflatten(0, shape), "sentence_mask": sentence_mask.unflatten(0, shape)}
        if "labels" in examples[0]:
            batch["labels"] = torch.tensor([float(example["labels"]) for example in examples])
        return batch


def embedding_table(vectors: np.ndarray, *, size: int) -> np.ndarray:
    """Turn vectors (words, size) of the words of a `Vocabulary` into initial weights of an embedding, with
    rows for all its numbers: float32 (words + 2, size).

    Padding is zero, an unknown word is the mean of all vectors, then come the vectors. If `size` is less than
    theirs, they are projected onto the `size` directions of largest variance (PCA, so that their mean becomes
    zero) and rescaled to the same mean squared entry as before.
    """
    if vectors.ndim != 2 or not vectors.size:
        raise ValueError(f"vectors has shape {vectors.shape}; it must be (words, size), neither of them 0")
    if not np.isfinite(vectors).all():
        raise ValueError(f"the vector of word {np.argmin(np.isfinite(vectors).all(axis=1))} is not finite")
    count, given = vectors.shape
    if not 1 <= size <= given:
        raise ValueError(f"size is {size}, but the vectors have {given}; take 1 to {given}")
    table = np.zeros((count + tokens.FIRST_WORD, size), dtype=np.float32)
    table[tokens.FIRST_WORD :] = vectors if size == given else _reduced(vectors, size)
    table[tokens.UNKNOWN] = table[tokens.FIRST_WORD :].mean(axis=0, dtype=np.float64)
    return table


def _reduced(vectors: np.ndarray, size: int) -> np.ndarray:
    if len(vectors) < size:
        raise ValueError(f"{len(vectors)} vectors do not span size {size}; give more, or take a smaller size")
    if not np.ptp(vectors, axis=0).any():
        raise ValueError(f"all {len(vectors)} vectors are alike, so that no direction tells them apart")
    reduced = PCA(n_components=size, random_state=0).fit_transform(vectors)
    before, after = (float(np.square(each, dtype=np.float64).mean()) for each in (vectors, reduced))
    return reduced * np.sqrt(before / after)
