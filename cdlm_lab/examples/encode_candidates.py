"""Questions with candidates and claims with evidence in pieces of words, each sentence by itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from cdlm_lab.data.claims import EvidencedClaim
from cdlm_lab.data.records import CandidateSet

from .encoded_by_id import EncodedById
from .joint_sequence import encode_pieces

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class EncodedCandidates(EncodedById[CandidateSet, list[np.ndarray]]):
    """Questions by their ids: of each, int32 (pieces,) of the question and then of each candidate; errors as
    of `EncodedById`."""

    def __init__(self, sets: Iterable[CandidateSet], tokenizer: PreTrainedTokenizerBase) -> None:
        super().__init__(
            sets, lambda one: encode_pieces([one.question, *one.candidates], tokenizer), kind="questions"
        )


class EncodedClaims(EncodedById[EvidencedClaim, list[np.ndarray]]):
    """Claims by their ids: of each, int32 (pieces,) of the claim and then of each evidence; errors as of
    `EncodedById`."""

    def __init__(self, claims: Iterable[EvidencedClaim], tokenizer: PreTrainedTokenizerBase) -> None:
        super().__init__(
            claims, lambda one: encode_pieces([one.text, *one.evidence], tokenizer), kind="claims"
        )
