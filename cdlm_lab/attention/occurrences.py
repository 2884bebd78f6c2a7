"""Attention of a word over occurrences of the same word elsewhere in its document (Joerke et al. 2020,
"Doc-ARC", section 2.1).

    e_k = [encoding of the word at occurrence k; embedding of its distance]          (equation 1)
    c   = sum_k a_k e_k,    a = softmax_k(w . e_k)                               (equations 2 and 3)

w has no bias, as in the paper; the released code's bias would be cancelled by the softmax.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from cdlm_lab.attention.pooling import masked_softmax

DISTANCE_BUCKETS = 9  # 0, 1, 2, 3, 4-7, 8-15, 16-31, 32-63, 64 and more (Lee et al. 2017)


class OccurrenceAttention(nn.Module):
    """c of equation 2.

    Args:
        size: of the encodings.
        distance_size: of the embedding of a distance; 20 in the released code, the paper says nothing.
    """

    def __init__(self, size: int, *, distance_size: int = 20) -> None:
        super().__init__()
        self.distances = nn.Embedding(DISTANCE_BUCKETS, distance_size)
        self.score = nn.Linear(size + distance_size, 1, bias=False)  # w

    @property
    def output_size(self) -> int:
        """Of c: `size` and `distance_size` together."""
        return self.score.in_features

    def forward(self, encodings: Tensor, buckets: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Attend to the occurrences of each word.

        Args:
            encodings: (..., K, size), of the word at its occurrences.
            buckets: (..., K) long, of their distances, counted in sentences, 0 to 8; not read where there is
                no occurrence.
            mask: (..., K) bool, True = occurrence, False = filling.

        Returns:
            c (..., size + distance_size), and the weights (..., K), which sum to 1. Both are 0 for a word
            without occurrences, with gradients that are 0 and not nan.
        """
        embedded = self.distances(buckets.masked_fill(~mask, 0)).to(encodings.dtype)
        occurrences = torch.cat([encodings, embedded], dim=-1)
        weights = masked_softmax(self.score(occurrences).squeeze(-1), mask)
        return (weights.unsqueeze(-2) @ occurrences).squeeze(-2), weights
