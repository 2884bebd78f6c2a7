"""Whole documents in one sequence, with the way back from its positions to their words.

    [CLS] <doc-s> A fire broke out </doc-s> <doc-s> The blaze spread </doc-s> [SEP]

Nothing is marked and nothing is masked; which tokens are global is for the reader to say. This is what
models see in the attention analysis (CDLM section 3.5) and in the explorer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cdlm_lab.data.coreference_records import TokenSpan

from .encode_document import EncodedDocument
from .packing import equal_share
from .special_tokens import SpecialTokens


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DocumentSequence:
    """One sequence.

    Attributes:
        input_ids: int64 (seq,).
        document: int64 (seq,), number of the document; -1 = special tokens, those that frame it too.
        word: int64 (seq,), number of the word (token of the record) in its document; -1 = special.
        lost_tokens: subwords of each document that did not fit.
    """

    input_ids: np.ndarray
    document: np.ndarray
    word: np.ndarray
    lost_tokens: tuple[int, ...]

    def positions(self, document: int, words: TokenSpan) -> np.ndarray:
        """Positions of a half-open span of words, in order; empty if it did not fit."""
        start, end = words
        return np.flatnonzero((self.document == document) & (self.word >= start) & (self.word < end))

    def word_numbers(self, sizes: Sequence[int]) -> np.ndarray:
        """int64 (seq,), number of each position's word among those of all documents; -1 = special.

        `sizes`: words of each document.
        """
        firsts = np.cumsum([0, *sizes])
        return np.where(self.document < 0, -1, firsts[self.document] + self.word)


def document_sequence(
    documents: Sequence[EncodedDocument],
    *,
    special: SpecialTokens,
    max_length: int,
    around: Sequence[TokenSpan] | None = None,
) -> DocumentSequence:
    """Write documents into one sequence of at most `max_length` tokens.

    What is too long is cut: each document gets an equal share of the room, what a short one leaves goes to
    the others, and a document loses its end, or what is farthest from its span of `around`.

    Args:
        around: a half-open span of words for each document, which is kept in the middle of what is cut;
            None = documents are kept from their starts.

    Raises:
        ValueError: no documents, another number of spans, or no room for one token of each document; a span
            longer than its document's share.
    """
    if not documents:
        raise ValueError("no documents to write into a sequence")
    budget = max_length - special.framing
    lengths = [len(document.input_ids) for document in documents]
    kept, _ = equal_share(lengths, budget=budget, per_document=special.per_document)
    if 0 in kept:
        raise ValueError(
            f"max_length {max_length} has no room for {len(documents)} documents; raise it or leave some out"
        )
    spans = [(0, 0)] * len(documents) if around is None else around
    ids, numbers, words = [[special.cls]], [[-1]], [[-1]]
    for number, (document, span, room) in enumerate(zip(documents, spans, kept, strict=True)):
        start, end = _window(document, span, room)
        text = np.repeat(np.arange(len(document.starts) - 1), np.diff(document.starts))[start:end]
        ids += [[special.start], document.input_ids[start:end], [special.end]]
        numbers += [[-1], np.full(end - start, number), [-1]]
        words += [[-1], text, [-1]]
    return DocumentSequence(
        input_ids=np.concatenate([*ids, [special.sep]]).astype(np.int64),
        document=np.concatenate([*numbers, [-1]]).astype(np.int64),
        word=np.concatenate([*words, [-1]]).astype(np.int64),
        lost_tokens=tuple(length - room for length, room in zip(lengths, kept, strict=True)),
    )


def _window(document: EncodedDocument, span: TokenSpan, room: int) -> TokenSpan:
    """The subwords of a document that are kept: `room` of them, around a span of its words."""
    start, end = document.subwords(span)
    if end - start > room:
        raise ValueError(
            f"document {document.document.id}: words {span} are {end - start} tokens, but it has room for "
            f"{room}; raise max_length or leave documents out"
        )
    first = min(max((start + end - room) // 2, 0), len(document.input_ids) - room)
    return first, first + room
