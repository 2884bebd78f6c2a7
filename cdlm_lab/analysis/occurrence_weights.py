"""How much attention a word pays to its occurrences near and far (Joerke et al. 2020, section 5.2, Figure 4).

The weight is alpha_k of equation 3: those of a word sum to 1 over its occurrences, the word itself among them
if it may be attended to. Then a word that occurs once gives itself 1, whatever the model has learnt, and such
words raise the numbers of distance 0; to leave them out, give only the rows with two occurrences or more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_ROUNDING = 1e-3  # weights of half precision may be that much above 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketWeights:
    """Attention weights of the occurrences in one bucket of distances.

    Attributes:
        bucket: its number.
        count: of the occurrences, at least 1.
        mean: of their weights, in [0, 1].
        quantiles: of their weights, one for each of QUANTILES, rising.
    """

    bucket: int
    count: int
    mean: float
    quantiles: tuple[float, ...]


def weights_by_distance(weights: ArrayLike, buckets: ArrayLike) -> tuple[BucketWeights, ...]:
    """The distribution of attention weights in each bucket that has any, in the order of the buckets.

    Args:
        weights: float (words, K), of each word to each of its occurrences; not looked at where there is none.
        buckets: int (words, K), bucket of the distance of each; -1 = none.

    Raises:
        ValueError: shapes differ or are not (words, K), buckets are no whole numbers or below -1, no word has
            an occurrence, or a weight lies outside [0, 1].
    """
    weights, buckets = np.asarray(weights, dtype=np.float64), np.asarray(buckets)
    if weights.ndim != 2 or weights.shape != buckets.shape:
        raise ValueError(
            f"weights has shape {weights.shape} and buckets {buckets.shape}; both must be (words, K)"
        )
    if buckets.dtype.kind not in "iu" or (buckets < -1).any():
        raise ValueError("buckets must be whole numbers, 0 or more, or -1 where there is no occurrence")
    there = buckets >= 0
    if not there.any():
        raise ValueError("no word has an occurrence to attend to, so there are no weights to describe")
    if wrong := np.argwhere(there & ~((weights >= 0) & (weights <= 1 + _ROUNDING))).tolist():
        row, column = wrong[0]
        raise ValueError(
            f"weights[{row}, {column}] is {weights[row, column]}; an attention weight lies in [0, 1]"
        )
    return tuple(_of_bucket(number, weights[buckets == number]) for number in np.unique(buckets[there]))


def _of_bucket(number: int, weights: np.ndarray) -> BucketWeights:
    return BucketWeights(
        bucket=int(number),
        count=len(weights),
        mean=float(weights.mean()),
        quantiles=tuple(np.quantile(weights, QUANTILES).tolist()),
    )
