"""Percentile ranks of many targets under many models, kept on disk as they come (CDLM section 3.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from transformers import PreTrainedModel

from cdlm_lab.analysis.percentile_rank import candidate_mask, chance_rank, source_scores, target_rank
from cdlm_lab.analysis.source_attention import SourceAttention, attend_to_source
from cdlm_lab.examples.aligned_mentions import AlignedPair
from cdlm_lab.examples.document_sequence import DocumentSequence, document_sequence
from cdlm_lab.examples.encode_document import EncodedDocument
from cdlm_lab.examples.special_tokens import SpecialTokens
from cdlm_lab.experiments.kept_numbers import KeptNumbers
from cdlm_lab.models.precision import Precision, computing_in
from cdlm_lab.progress import Progress

# What stands in a row of ranks.
PAPER, RANDOM_SPAN, FIRST_HEAD = 0, 1, 2


def target_ranks(
    model: PreTrainedModel,
    pairs: Sequence[AlignedPair],
    documents: Mapping[str, EncodedDocument],
    *,
    special: SpecialTokens,
    max_length: int,
    candidates: str,
    precision: Precision = "float32",
    file: Path | None,
    bar: Progress | None = None,
) -> np.ndarray:
    """Rank of each pair's target, with the source global.

    Both documents stand in one sequence, in the order of their names, unmarked; what is too long is cut
    around the mentions.

    Args:
        documents: by id.
        candidates: as of `candidate_mask`.
        precision: of the forward pass, as of `resolve_precision`.
        file: `.npy`; pairs that it holds are not run again. It belongs to one
            model and one list of pairs. None = nothing is kept.
        bar: counts pairs, those that `file` holds too; None = no progress is shown.

    Returns:
        float32 (pairs, 2 + layers x heads): the paper's percentile rank; that of a random span of the same
        length, on average; then the target's by each head of each layer alone, layer after layer.

    Raises:
        ValueError: the file is of other pairs or of another model.
    """
    width = FIRST_HEAD + model.config.num_hidden_layers * model.config.num_attention_heads
    bar = bar or Progress(disable=True)
    with KeptNumbers(file, (len(pairs), width)) as ranks, computing_in(precision, model.device):
        bar.update(len(pairs) - len(ranks.missing))
        for number in ranks.missing:
            read = _read(pairs[number], documents, special, max_length)
            attention = attend_to_source(model, read.sequence.input_ids, source=read.source)
            ranks.values[number] = _ranks(attention, read, candidates=candidates)
            ranks.save_when_due()
            bar.update(1)
    return ranks.values


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Read:
    """What the model reads, the positions of source and target in it, and which are punctuation."""

    sequence: DocumentSequence
    source: np.ndarray
    target: np.ndarray
    is_punctuation: np.ndarray


def _ranks(attention: SourceAttention, read: _Read, *, candidates: str) -> np.ndarray:
    """A row of ranks; see `target_ranks`."""
    document = read.sequence.document
    source, target = (np.isin(np.arange(len(document)), places) for places in (read.source, read.target))
    among = candidate_mask(
        document,
        source=source,
        target=target,
        candidates=candidates,
        is_punctuation=read.is_punctuation,
    )
    paper = source_scores(attention.given, attention.received)
    alone = [
        target_rank(source_scores(given[None, None], received[None, None]), target, among)
        for layer in zip(attention.given, attention.received, strict=True)
        for given, received in zip(*layer, strict=True)  # of a head: (source tokens, seq)
    ]
    of_target = document == document[read.target[0]]
    random = chance_rank(paper, target, among, document=of_target)
    return np.array([target_rank(paper, target, among), random, *alone])


def _read(
    pair: AlignedPair, documents: Mapping[str, EncodedDocument], special: SpecialTokens, max_length: int
) -> _Read:
    mentions = sorted((pair.source, pair.target), key=lambda mention: mention.document)
    encoded = [documents[mention.document] for mention in mentions]
    sequence = document_sequence(
        encoded, special=special, max_length=max_length, around=[mention.tokens for mention in mentions]
    )
    words = [not any(map(str.isalnum, word)) for one in encoded for word in one.document.tokens]
    numbers = sequence.word_numbers([len(one.document.tokens) for one in encoded])
    places = {mention.id: sequence.positions(n, mention.tokens) for n, mention in enumerate(mentions)}
    return _Read(
        sequence=sequence,
        source=places[pair.source.id],
        target=places[pair.target.id],
        is_punctuation=np.array(words)[numbers] & (numbers >= 0),
    )
