"""Documents cut to whole sentences, so that models read all that is shown of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.records import CoreferenceDocument, TokenSpan, document_of_spans
from cdlm_lab.examples.packing import equal_share
from cdlm_lab.examples.tokens import SpecialTokens, encode_document


def excerpts(
    documents: Sequence[CoreferenceDocument],
    tokenizers: Sequence[PreTrainedTokenizerBase],
    *,
    max_length: int,
    around: Sequence[TokenSpan],
) -> list[tuple[CoreferenceDocument, int]]:
    """Each document with as many whole sentences as fit together into `max_length` tokens of every tokenizer,
    and the number of its first word in the whole document. They are those around a span of words, half-open,
    at least the span's own; each document has an equal share of the room, what a short one leaves goes to the
    others."""
    lengths = [_sentence_lengths(document, tokenizers) for document in documents]
    room, _ = equal_share(
        [int(of.sum()) for of in lengths],
        budget=max_length - SpecialTokens.framing,
        per_document=SpecialTokens.per_document,
    )
    cut = []
    for document, of_sentences, tokens, span in zip(documents, lengths, room, around, strict=True):
        first, last = _fitting(document.sentences, of_sentences, room=tokens, span=span)
        cut.append((_part(document, first, last), document.sentences[first][0]))
    return cut


def _sentence_lengths(
    document: CoreferenceDocument, tokenizers: Sequence[PreTrainedTokenizerBase]
) -> np.ndarray:
    """int64 (sentences,), tokens of each, of the tokenizer that makes the most of it."""
    ends = np.array([0, *(end for _, end in document.sentences)])
    starts = [encode_document(document, tokenizer).starts for tokenizer in tokenizers]
    return np.max([np.diff(of[ends]) for of in starts], axis=0)


def _fitting(
    sentences: Sequence[TokenSpan], lengths: np.ndarray, *, room: int, span: TokenSpan
) -> tuple[int, int]:
    """Half-open span of sentences: that of the span of words, and by turns the next and the one before."""
    first = max(number for number, (start, _) in enumerate(sentences) if start <= span[0])
    last = 1 + max(number for number, (start, _) in enumerate(sentences) if start < max(span[1], 1))
    left, grown = room - int(lengths[first:last].sum()), True
    while grown:
        grown = False
        for side in (last, first - 1):
            if 0 <= side < len(sentences) and lengths[side] <= left:
                left, grown = left - int(lengths[side]), True
                first, last = min(first, side), max(last, side + 1)
    return first, last


def _part(document: CoreferenceDocument, first: int, last: int) -> CoreferenceDocument:
    """Some sentences of a document, half-open, with the mentions in them."""
    start, end = document.sentences[first][0], document.sentences[last - 1][1]
    if (start, end) == (0, len(document.tokens)):
        return document
    mentions = [
        (one.id, (one.tokens[0] - start, one.tokens[1] - start), one.kind, one.cluster)
        for one in document.mentions
        if start <= one.tokens[0] and one.tokens[1] <= end
    ]
    return document_of_spans(
        mentions,
        id=document.id,
        topic=document.topic,
        subtopic=document.subtopic,
        tokens=document.tokens[start:end],
        sentences=[(one - start, other - start) for one, other in document.sentences[first:last]],
        validated=[number - first for number in document.validated if first <= number < last],
    )
