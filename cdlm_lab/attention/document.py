"""Attention over vectors of a document: pooling, over another document, and over other occurrences of a word;
and the recurrent layers beneath it.

    y   = sum_i a_i x_i,    a = softmax_i(u^T tanh(W x_i + b))    Zhou et al. 2020, "CDA", equation 1
    q'  = affine([q; sum_v softmax_v(v . q) v])                   equation 2, v over the other's parts
    c   = sum_k a_k e_k,    a = softmax_k(w . e_k)                Joerke et al. 2020, "Doc-ARC", eq. 2, 3
    e_k = [encoding of the word at occurrence k; embedding of its distance]         equation 1

The released code of CDA applies tanh to u^T tanh(...) once more, which is in no equation, and normalises one
of the two directions over the batch instead of over the other document, so that a pair's score depends on the
rest of the batch; here both are as in the paper.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class AttentionPooling(nn.Module):
    """Pools many vectors into one, weighted by learned importance (Yang et al. 2016); W is (size, size)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.affine = nn.Linear(size, size)
        self.context = nn.Linear(size, 1, bias=False)  # u

    def forward(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Pool `states` (..., items, size) where `mask` (..., items) is True: (..., size), and the weights
        (..., items), which sum to 1. Both are 0 where there is no item."""
        weights = masked_softmax(self.context(torch.tanh(self.affine(states))).squeeze(-1), mask)
        return (weights.unsqueeze(-2) @ states).squeeze(-2), weights


def masked_softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last dimension, restricted to items where `mask` is True; all 0 where there is none,
    with gradients of 0 instead of nan."""
    return torch.softmax(logits.masked_fill(~mask, torch.finfo(logits.dtype).min), dim=-1) * mask


def alignment_weights(queries: Tensor, parts: Tensor, mask: Tensor) -> Tensor:
    """softmax_v(v . q) for each of `queries` (batch, queries, size) over the `parts` (batch, parts, size) of
    the other document (equation 2, and equation 3's AttScore): (batch, queries, parts); each row sums to 1,
    or to 0 if there is no part. `mask`: (batch, parts) bool, True = part, False = padding."""
    return masked_softmax(queries @ parts.transpose(1, 2), mask[:, None, :])


class CrossDocumentAttention(nn.Module):
    """Queries of one document attend to the parts of another."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.affine = nn.Linear(2 * size, size)

    def forward(self, queries: Tensor, parts: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The new queries, (batch, queries, size), and the weights, (batch, queries, parts)."""
        weights = alignment_weights(queries, parts, mask)
        attended = weights @ parts  # (batch, queries, size)
        return self.affine(torch.cat([queries, attended], dim=-1)), weights


DISTANCE_BUCKETS = 9  # 0, 1, 2, 3, 4-7, 8-15, 16-31, 32-63, 64 and more (Lee et al. 2017)


class OccurrenceAttention(nn.Module):
    """Attention of a word over occurrences of the same word elsewhere in its document: c of equation 2."""

    # 20 as in the released code; the paper does not say
    def __init__(self, size: int, *, distance_size: int = 20) -> None:
        super().__init__()
        self.distances = nn.Embedding(DISTANCE_BUCKETS, distance_size)
        self.score = nn.Linear(size + distance_size, 1, bias=False)  # w

    @property
    def output_size(self) -> int:
        """The size of c: `size` plus `distance_size`."""
        return self.score.in_features

    def forward(self, encodings: Tensor, buckets: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Attend to the occurrences of each word: c (..., size + distance_size), and the weights (..., K),
        which sum to 1. Both are 0 for a word without occurrences, with gradients of 0 instead of nan.

        Args:
            encodings: (..., K, size), of the word at its occurrences.
            buckets: (..., K) long, of their distances, counted in sentences, 0 to 8.
            mask: (..., K) bool, True = occurrence, False = padding.
        """
        embedded = self.distances(buckets.masked_fill(~mask, 0)).to(encodings.dtype)
        occurrences = torch.cat([encodings, embedded], dim=-1)
        weights = masked_softmax(self.score(occurrences).squeeze(-1), mask)
        return (weights.unsqueeze(-2) @ occurrences).squeeze(-2), weights


def contextualised(rnn: nn.GRU | nn.LSTM, states: Tensor, mask: Tensor) -> Tensor:
    """Run the GRU or LSTM over each row of `states` (rows, items, size) separately: (rows, items, 2 *
    hidden), 0 at padding. `mask`: (rows, items), True = item, False = padding, which must come last."""
    lengths = mask.sum(dim=1)
    rows = lengths.nonzero().flatten()
    output = states.new_zeros(*mask.shape, 2 * rnn.hidden_size)
    if not len(rows):
        return output
    packed = pack_padded_sequence(states[rows], lengths[rows].cpu(), batch_first=True, enforce_sorted=False)
    read, _ = pad_packed_sequence(rnn(packed)[0], batch_first=True, total_length=mask.shape[1])
    return output.index_copy(0, rows, read.to(output.dtype))
