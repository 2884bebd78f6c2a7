"""The subwords of a tokenised document, and which of them belong to which of its words.

Every word is tokenised as if a space stood before it, punctuation too: corpora of mentions, as ECB+, consist
of tokens and do not say where their texts had spaces.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cdlm_lab.data.coreference_records import CoreferenceDocument, TokenSpan

from .encoded_by_id import EncodedById
from .tokenise_words import tokenise_words

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EncodedDocument:
    """A document in subwords.

    Attributes:
        document: the record it was made of.
        input_ids: int64 (subword,), no special tokens.
        starts: int64 (tokens + 1,), the first subword of each token, and at the end the number of subwords.
    """

    document: CoreferenceDocument
    input_ids: np.ndarray
    starts: np.ndarray

    def subwords(self, tokens: TokenSpan) -> TokenSpan:
        """The span of subwords of a span of tokens."""
        start, end = tokens
        return int(self.starts[start]), int(self.starts[end])


def encode_document(document: CoreferenceDocument, tokenizer: PreTrainedTokenizerBase) -> EncodedDocument:
    """Tokenise a document word by word; a word without any subword, as a lone control character, is unknown.

    Raises:
        ValueError: there is such a word and the tokenizer has no id for unknown ones.
    """
    ids, words = tokenise_words(document.tokens, tokenizer)
    counts = np.bincount(words, minlength=len(document.tokens))
    if len(silent := np.flatnonzero(counts == 0)):
        if tokenizer.unk_token_id is None:
            what = f"token {silent[0]}, {document.tokens[silent[0]]!r}, has no subword"
            raise ValueError(f"document {document.id}: {what} and the tokenizer no unknown one; leave it out")
        ids = np.insert(ids, counts.cumsum()[silent], tokenizer.unk_token_id)
        counts[silent] = 1
    return EncodedDocument(document=document, input_ids=ids, starts=np.append(0, counts.cumsum()))


class EncodedDocuments(EncodedById[CoreferenceDocument, EncodedDocument]):
    """Documents by their ids; errors as of `EncodedById`."""

    def __init__(self, documents: Iterable[CoreferenceDocument], tokenizer: PreTrainedTokenizerBase) -> None:
        super().__init__(documents, lambda one: encode_document(one, tokenizer), kind="documents")
