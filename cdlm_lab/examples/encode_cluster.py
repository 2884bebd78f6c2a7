"""The token ids of a cluster's documents, and which tokens state which fact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from cdlm_lab.data.records import Cluster, Document, Fact

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

NO_FACT = -1


class EncodedCluster(TypedDict):
    """One row of a tokenised corpus; lists have one entry for each document that has text.

    `input_ids` and `fact_ids`: int32 (tokens,); a fact's number is that of its first appearance in the
        cluster, -1 = none.
    """

    cluster_id: str
    document_ids: list[str]
    input_ids: list[np.ndarray]
    fact_ids: list[np.ndarray]


def encode_cluster(cluster: Cluster, tokenizer: PreTrainedTokenizerBase) -> EncodedCluster:
    """Tokenise the documents without adding special tokens; documents without text are left out.

    A token belongs to a fact if its characters overlap the fact's; where facts overlap, to the one that
    starts first.

    Args:
        cluster: documents with their facts.
        tokenizer: a fast one, which says where in the text each token stands.
    """
    written = [document for document in cluster.documents if document.text.strip()]
    row = EncodedCluster(cluster_id=cluster.id, document_ids=[], input_ids=[], fact_ids=[])
    if not written:
        return row
    encoded = tokenizer(
        [document.text for document in written],
        add_special_tokens=False,
        split_special_tokens=True,  # a "[MASK]" that somebody wrote in an article is text
        return_offsets_mapping=True,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,  # documents longer than the model are expected; packing sees to them
    )
    numbers = _fact_numbers(written)
    for document, ids, offsets in zip(written, encoded["input_ids"], encoded["offset_mapping"], strict=True):
        if ids:
            row["document_ids"].append(document.id)
            row["input_ids"].append(np.array(ids, dtype=np.int32))
            row["fact_ids"].append(_fact_of_tokens(document.facts, np.array(offsets), numbers=numbers))
    return row


def _fact_numbers(documents: Sequence[Document]) -> dict[str, int]:
    """Fact id -> its number within the cluster, by order of first appearance in the text."""
    numbers: dict[str, int] = {}
    for document in documents:
        for fact in sorted(document.facts, key=lambda fact: fact.start):
            numbers.setdefault(fact.id, len(numbers))
    return numbers


def _fact_of_tokens(facts: Sequence[Fact], offsets: np.ndarray, *, numbers: dict[str, int]) -> np.ndarray:
    """int32 (tokens,), from offsets (tokens, 2), half-open character ranges."""
    found = np.full(len(offsets), NO_FACT, dtype=np.int32)
    starts, ends = offsets[:, 0], offsets[:, 1]
    for fact in sorted(facts, key=lambda fact: fact.start):
        found[(starts < fact.end) & (ends > fact.start) & (found == NO_FACT)] = numbers[fact.id]
    return found
