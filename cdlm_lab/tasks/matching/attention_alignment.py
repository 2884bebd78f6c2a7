"""Which sentences of a document belong to another one, from a Longformer that read both in one sequence.

CDLM (section 3.3) decides only on whole documents and has no published alignment of sentences. These two
methods need no training: one uses global attention, one hidden states. Scores rank the sentences of one
document; those of two documents, or of the two methods, cannot be compared. A sentence that did not fit into
the sequence gets 1 less than the lowest score of the others.
"""

from __future__ import annotations

import numpy as np
import torch
from transformers import PreTrainedModel

from cdlm_lab.encoders.percentile_rank import source_scores
from cdlm_lab.encoders.source_attention import attend_to_source, evaluating, hidden_states
from cdlm_lab.tasks.matching.examples import MatchSequence

# Source tokens recorded at once: 2.4 GB for 12 layers of 12 heads and 4,096 tokens.
_PART = 512


def by_global_attention(model: PreTrainedModel, sequence: MatchSequence, *, document: int) -> np.ndarray:
    """Score the sentences of a document, float64 (sentences,), by the attention between their tokens and
    those of the other document, all of which are made global, in both directions.

    The score of a token is exp(a) - 1, where a is its attention from and to a source token, averaged over all
    source tokens, heads and layers; that of a sentence is the mean over its tokens. Section 3.5 of CDLM sums
    over the source and the heads of the last layer instead, which suits a source of a few tokens: exp of a
    sum over a document would let one token outweigh all others. Subtracting 1 changes no order, but scores
    such as 1 + 0.001 would tie in single precision.

    Args:
        model: an encoder from `load_encoder`, or a classifier loaded with `whole_last_layer=True`; its
            training mode is restored.
        document: the one whose sentences are scored, 0 or 1.
    """
    _check_document(document)
    tokens = np.flatnonzero(sequence.side == 1 - document)
    is_global = np.union1d(np.flatnonzero(sequence.global_attention_mask), tokens)
    given, received = 0.0, 0.0  # (layers, heads, 1, seq), means over the source
    for start in range(0, len(tokens), _PART):
        part = tokens[start : start + _PART]
        attention = attend_to_source(model, sequence.input_ids, source=part, extra_global=is_global)
        given = given + attention.given.sum(axis=2, keepdims=True, dtype=np.float64) / len(tokens)
        received = received + attention.received.sum(axis=2, keepdims=True, dtype=np.float64) / len(tokens)
    scores = source_scores(given, received, layers="all", reduce="mean")
    return _complete(_sentence_means(scores[:, None] - 1, sequence, document)[:, 0])


def by_encodings(model: PreTrainedModel, sequence: MatchSequence, *, document: int) -> np.ndarray:
    """Score the sentences of a document by their cosine with the other document, float64 (sentences,).

    The vector of a sentence is the mean last hidden state of its tokens, that of the other document the mean
    over all its tokens; both were read in one sequence, with the first token global.
    """
    _check_document(document)
    present = sequence.input_ids != model.config.pad_token_id
    ids, is_global = torch.from_numpy(sequence.input_ids), sequence.global_attention_mask.astype(bool)
    with evaluating(model), torch.inference_mode():
        states = hidden_states(model, ids, present, is_global).cpu().double().numpy()
    if not states[sequence.side >= 0].any():
        raise ValueError(
            "the model's last layer computes global tokens only, so its text has no states; load it with "
            "load_pair_classifier(..., whole_last_layer=True)"
        )
    other = states[sequence.side == 1 - document].mean(axis=0)
    sentences = _sentence_means(states, sequence, document)  # (sentences, dim)
    lengths = np.linalg.norm(sentences, axis=1) * np.linalg.norm(other)
    return _complete(sentences @ other / lengths)


def _check_document(document: int) -> None:
    if document not in (0, 1):
        raise ValueError(f"document is {document!r}; it must be 0, the first, or 1, the second")


def _sentence_means(values: np.ndarray, sequence: MatchSequence, document: int) -> np.ndarray:
    """Means of `values` (seq, n) over the tokens of each sentence: (sentences, n), nan for lost ones."""
    means = np.full((sequence.sentence_count(document), values.shape[1]), np.nan)
    for number in np.unique(sequence.sentence[sequence.side == document]):
        of_sentence = (sequence.side == document) & (sequence.sentence == number)
        means[number] = values[of_sentence].mean(axis=0)
    return means


def _complete(scores: np.ndarray) -> np.ndarray:
    """Scores (sentences,) in which those of lost sentences, nan, are replaced by the lowest minus 1."""
    return np.where(np.isnan(scores), np.nanmin(scores) - 1, scores)
