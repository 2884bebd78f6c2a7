"""Two documents in one sequence, for a model that says whether they belong together (CDLM sections 2.2 and
3.3), with the way back from its positions to their sentences:

    [CLS] <doc-s> A fire broke out. Two died. </doc-s> <doc-s> The blaze spread. </doc-s> [SEP]

Only `[CLS]` is global. Sentences are tokenised one by one, each as if a space stood before it, and joined
without marks between them. What is too long loses its end: each document gets an equal share of the room, and
what a short one leaves goes to the other.

The released code instead cuts each sentence to 33 tokens, frames it in `<s> ... </s>` and each document to
2,022 tokens, and opens the sequence with a token `<g>` of its own.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from cdlm_lab.data.document_pairs import DocumentPair, PairDocument

from .encoded_by_id import EncodedById
from .packing import pack_documents
from .special_tokens import SpecialTokens

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EncodedSentences:
    """A document in tokens.

    Attributes:
        input_ids: int32 (tokens,), no special tokens.
        sentence: int32 (tokens,), number of the sentence of each, ascending.
        sentence_count: how many sentences the document has.
    """

    input_ids: np.ndarray
    sentence: np.ndarray
    sentence_count: int


def encode_sentences(document: PairDocument, tokenizer: PreTrainedTokenizerBase) -> EncodedSentences:
    """Tokenise a document sentence by sentence. One of which nothing is left, as a lone control character,
    has no tokens.

    Raises:
        ValueError: nothing is left of any sentence.
    """
    encoded = tokenizer(
        # With the space a byte-level BPE reads the first word as within a text, whatever its settings.
        [f" {sentence.strip()}" for sentence in document.sentences],
        add_special_tokens=False,
        split_special_tokens=True,  # a "[MASK]" or "</doc-s>" that somebody wrote in an article is text
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,  # documents longer than the model are expected; they are cut below
    )["input_ids"]
    counts = [len(ids) for ids in encoded]
    if not any(counts):
        raise ValueError(f"document {document.id}: its sentences have no tokens; leave it out")
    return EncodedSentences(
        input_ids=np.concatenate([np.array(ids, dtype=np.int32) for ids in encoded]),
        sentence=np.repeat(np.arange(len(counts), dtype=np.int32), counts),
        sentence_count=len(counts),
    )


class SentencesById(EncodedById[PairDocument, EncodedSentences]):
    """The documents of pairs by their ids, of which one may be in many; errors as of `EncodedById`."""

    def __init__(self, pairs: Iterable[DocumentPair], tokenizer: PreTrainedTokenizerBase) -> None:
        documents = (document for pair in pairs for document in (pair.first, pair.second))
        super().__init__(documents, lambda one: encode_sentences(one, tokenizer), kind="documents")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatchSequence:
    """One sequence.

    Attributes:
        input_ids: int64 (seq,).
        global_attention_mask: int64 (seq,), 1 = global: the first token alone.
        side: int64 (seq,), 0 = first document, 1 = second; -1 = special tokens, those that frame it too.
        sentence: int64 (seq,), number of the sentence in its document; -1 = special.
        lost_sentences: of each document, the number of sentences of which nothing is in the sequence.
    """

    input_ids: np.ndarray
    global_attention_mask: np.ndarray
    side: np.ndarray
    sentence: np.ndarray
    lost_sentences: tuple[int, int]

    def sentence_count(self, document: int) -> int:
        """How many sentences document 0 or 1 has, lost ones too."""
        return len(np.unique(self.sentence[self.side == document])) + self.lost_sentences[document]


def match_sequence(
    first: EncodedSentences, second: EncodedSentences, *, special: SpecialTokens, max_length: int
) -> MatchSequence:
    """Write two documents into one sequence of at most `max_length` tokens, special ones included.

    Raises:
        ValueError: there is no room for a token of each.
    """
    _check_room(max_length, special)
    documents = (first, second)
    packed = pack_documents(
        [document.input_ids for document in documents],
        max_length=max_length,
        policy="equal_share",
        special=special,
    )
    side = np.where(packed.is_special, -1, packed.document)
    sentence = np.full_like(side, -1)
    kept = [d.sentence[:count] for d, count in zip(documents, packed.kept_tokens, strict=True)]
    sentence[side >= 0] = np.concatenate(kept)
    return MatchSequence(
        input_ids=packed.input_ids,
        global_attention_mask=(np.arange(len(side)) == 0).astype(np.int64),
        side=side,
        sentence=sentence,
        lost_sentences=(
            first.sentence_count - len(np.unique(kept[0])),
            second.sentence_count - len(np.unique(kept[1])),
        ),
    )


def _check_room(max_length: int, special: SpecialTokens) -> None:
    least = special.framing + 2 * (special.per_document + 1)
    if max_length < least:
        raise ValueError(f"max_length is {max_length}; two documents with their frames need at least {least}")


@dataclass(frozen=True, kw_only=True, eq=False)
class MatchExamples:
    """Map-style dataset of pairs; each sequence is written when it is read.

    `examples[i]` is a dict of `input_ids` int64 (seq,), `global_attention_mask` int64 (seq,), 1 = global, and
    with labels `labels` int64 (), 1 = related.

    Attributes:
        pairs: in order.
        documents: of the pairs, by id; `SentencesById` encodes each once, when it is first needed.
        special: ids of the special tokens.
        max_length: of a sequence, special tokens included.
        labelled: False = the key `labels` is left out.

    Raises:
        ValueError: `max_length` has no room for a token of each document.
    """

    pairs: Sequence[DocumentPair]
    documents: Mapping[str, EncodedSentences]
    special: SpecialTokens
    max_length: int
    labelled: bool = True

    def __post_init__(self) -> None:
        _check_room(self.max_length, self.special)

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        sequence = self.describe(index)
        example = {
            "input_ids": sequence.input_ids,
            "global_attention_mask": sequence.global_attention_mask,
        }
        if self.labelled:
            example["labels"] = np.array(self.pairs[index].related, dtype=np.int64)
        return example

    def in_order(self, order: Sequence[int] | np.ndarray) -> MatchExamples:
        """The pairs of these numbers, in this order; documents stay encoded. Raises IndexError for a pair
        that is not there."""
        return replace(self, pairs=[self.pairs[self._number(index)] for index in order])

    def describe(self, index: int) -> MatchSequence:
        """The sequence of one pair with what was left out of it.

        Raises:
            IndexError: an index below 0 or not below the number of pairs.
            ValueError: a document without any token.
        """
        return match_sequence(*self._documents_of(index), special=self.special, max_length=self.max_length)

    def length_of(self, index: int) -> int:
        """Tokens of a pair's sequence, for batches of like lengths; errors as of `describe`."""
        frame = self.special.framing + 2 * self.special.per_document
        text = sum(len(document.input_ids) for document in self._documents_of(index))
        return min(frame + text, self.max_length)

    def _documents_of(self, index: int) -> tuple[EncodedSentences, EncodedSentences]:
        first, second = self.pairs[self._number(index)].documents
        return self.documents[first], self.documents[second]

    def _number(self, index: int) -> int:
        number = operator.index(index)
        if not 0 <= number < len(self):
            raise IndexError(f"there is no pair {number}; there are {len(self)}, counted from 0")
        return number
