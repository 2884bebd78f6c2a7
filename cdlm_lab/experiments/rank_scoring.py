"""Percentile ranks of many targets under many models, kept on disk as they come (CDLM section 3.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from transformers import PreTrainedModel

from cdlm_lab.analysis.percentile_rank import candidate_mask, source_scores, target_rank
from cdlm_lab.analysis.source_attention import SourceAttention, attend_to_source
from cdlm_lab.examples.aligned_mentions import AlignedPair
from cdlm_lab.examples.document_sequence import DocumentSequence, document_sequence
from cdlm_lab.examples.encode_document import EncodedDocument
from cdlm_lab.examples.special_tokens import SpecialTokens
from cdlm_lab.experiments.kept_numbers import KeptNumbers
from cdlm_lab.progress import Progress


def target_ranks(
    model: PreTrainedModel,
    pairs: Sequence[AlignedPair],
    documents: Mapping[str, EncodedDocument],
    *,
    special: SpecialTokens,
    max_length: int,
    candidates: str,
    file: Path | None,
    name: str,
) -> np.ndarray:
    """Rank of each pair's target, with the source global.

    Both documents stand in one sequence, in the order of their names, unmarked; what is too long is cut
    around the mentions.

    Args:
        documents: by id.
        candidates: as of `candidate_mask`.
        file: `.npy`; pairs that it holds are not run again. It belongs to one
            model and one list of pairs. None = nothing is kept.
        name: beside the progress bar.

    Returns:
        float32 (pairs, 1 + layers x heads): the paper's percentile rank, then that of each head of each layer
        alone, layer after layer.

    Raises:
        ValueError: the file is of other pairs or of another model.
    """
    width = 1 + model.config.num_hidden_layers * model.config.num_attention_heads
    with KeptNumbers(file, (len(pairs), width)) as ranks:
        done = len(pairs) - len(ranks.missing)
        with Progress(total=len(pairs), initial=done, desc=name, unit="pair") as bar:
            for number in ranks.missing:
                sequence, source, target = _sequence(pairs[number], documents, special, max_length)
                attention = attend_to_source(model, sequence.input_ids, source=source)
                ranks.values[number] = ranks_of(attention, sequence, target=target, candidates=candidates)
                ranks.save_when_due()
                bar.update(1)
    return ranks.values


def ranks_of(
    attention: SourceAttention, sequence: DocumentSequence, *, target: np.ndarray, candidates: str
) -> np.ndarray:
    """(1 + layers x heads,) ranks of the target positions; see `target_ranks`."""
    masks = {
        name: np.isin(np.arange(len(sequence.input_ids)), positions)
        for name, positions in (("source", attention.source), ("target", target))
    }
    among = candidate_mask(sequence.document, **masks, candidates=candidates)
    paper = source_scores(attention.given, attention.received)
    layers, heads = attention.given.shape[:2]
    alone = [
        target_rank(
            source_scores(attention.given, attention.received, layers=[layer], heads=[head]),
            masks["target"],
            among,
        )
        for layer in range(layers)
        for head in range(heads)
    ]
    return np.array([target_rank(paper, masks["target"], among), *alone])


def _sequence(
    pair: AlignedPair, documents: Mapping[str, EncodedDocument], special: SpecialTokens, max_length: int
) -> tuple[DocumentSequence, np.ndarray, np.ndarray]:
    """What the model reads, and the positions of source and target in it."""
    mentions = sorted((pair.source, pair.target), key=lambda mention: mention.document)
    sequence = document_sequence(
        [documents[mention.document] for mention in mentions],
        special=special,
        max_length=max_length,
        around=[mention.tokens for mention in mentions],
    )
    places = {mention.id: sequence.positions(n, mention.tokens) for n, mention in enumerate(mentions)}
    return sequence, places[pair.source.id], places[pair.target.id]
