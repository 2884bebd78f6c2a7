"""The rank of a target under a source by attention: the percentile rank of CDLM, section 3.5 and Table 6.

    s(i|S) ~ exp[ sum over heads k, sum over j in S of (alpha_{i,j}^k + alpha_{j,i}^k) ],    i not in S
    s(T|S) = mean over j in T of s(j|S)
    PR     = rank of s(T|S) among { s(i|S) | i in the document of T, i not in T }, in percent

alpha_{i,j}^k is the weight that token i gives to token j in head k of the last layer, S the source (global),
T the target. Ties count half (mid-rank), so a random target of one token has 50 in expectation. For longer
targets chance is not 50, as the mean of skewed scores is above most of them: `chance_rank` computes it.

The notebook released with the paper computes something else, so its numbers cannot be compared with these: it
looks T up by its position before S and T are deleted, which is another token's; averages all layers; uses one
direction (what S gives); exponentiates nothing; breaks ties by sorting order; and counts T among the
candidates, so that no rank reaches 100.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

_REDUCTIONS = {"sum": np.sum, "mean": np.mean, "max": np.max}
_LARGEST = 700.0  # exp of more overflows


def source_scores(
    given: np.ndarray,
    received: np.ndarray,
    *,
    layers: str | Sequence[int] = "last",
    heads: Sequence[int] | None = None,
    directions: str = "both",
    reduce: str = "sum",
) -> np.ndarray:
    """s(i|S) for every position i, float64 (seq,); the defaults are the paper's. Since only ranks matter,
    scores are not normalised, and are divided by one number where exp would overflow. Scores of source tokens
    are meaningless. Raises ValueError if a weight is not finite.

    Args:
        given: (layers, heads, source tokens, seq), weight that each source token gives to each position.
        received: the same shape, weight that it receives from each position.
        layers: `last`, `all`, or indices into these arrays.
        heads: indices; None = all.
        directions: `both`; `from` = what the source gives; `to` = what it receives.
        reduce: over heads, and layers if several: `sum`, `mean` or `max`.
    """
    given, received = np.asarray(given), np.asarray(received)
    if not (np.isfinite(given).all() and np.isfinite(received).all()):
        raise ValueError("some attention weights are not finite; the model's weights are broken")
    of_layers = {"last": [-1], "all": range(len(given))}[layers] if isinstance(layers, str) else layers
    chosen = np.ix_(of_layers, range(given.shape[1]) if heads is None else heads)
    arrays = {"both": (given, received), "from": (given,), "to": (received,)}[directions]
    weights = sum(array[chosen].sum(axis=2, dtype=np.float64) for array in arrays)  # (layers, heads, seq)
    total = _REDUCTIONS[reduce](weights, axis=(0, 1))  # (seq,)
    return np.exp(total - max(0.0, total.max() - _LARGEST))


def percentile_rank(target_score: float, candidate_scores: ArrayLike) -> float:
    """Percentage of the candidates with scores below the target's, where ties count half. Raises ValueError
    if there are no candidates, or a score is nan."""
    scores = np.asarray(candidate_scores, dtype=np.float64)
    if not scores.size:
        raise ValueError("there are no candidates to rank the target among")
    if np.isnan(target_score) or np.isnan(scores).any():
        raise ValueError("a score is not a number (nan); only positions that have a score can be ranked")
    below, equal = (scores < target_score).sum(), (scores == target_score).sum()
    return float(100 * (below + equal / 2) / scores.size)


def target_rank(scores: np.ndarray, target: np.ndarray, candidates: np.ndarray) -> float:
    """Percentile rank of s(T|S) among the candidates outside the target; both masks are bool (seq,), and the
    scores are those of `source_scores`."""
    return percentile_rank(scores[target].mean(), scores[candidates & ~target])


def chance_rank(
    scores: np.ndarray, target: np.ndarray, candidates: np.ndarray, *, document: np.ndarray
) -> float:
    """The expected percentile rank of a random target: the mean over all spans of T's document, bool (seq,),
    with the target's length, each ranked as `target_rank` does. The target's tokens are candidates for the
    other spans."""
    among, positions = candidates | target, np.flatnonzero(document)
    spans = np.lib.stride_tricks.sliding_window_view(positions, int(target.sum()))  # (spans, length)
    inside, excluded = scores[spans], among[spans]  # a span is not ranked among its own tokens
    means, ordered = inside.mean(axis=1), np.sort(scores[among])
    below = np.searchsorted(ordered, means, side="left")
    below = below - (excluded & (inside < means[:, None])).sum(axis=1)
    not_above = np.searchsorted(ordered, means, side="right")
    not_above = not_above - (excluded & (inside <= means[:, None])).sum(axis=1)
    count = len(ordered) - excluded.sum(axis=1)
    if not (rankable := count > 0).any():
        raise ValueError("there are no candidates to rank a span among")
    return float(100 * ((below + not_above) / 2 / np.maximum(count, 1))[rankable].mean())


def candidate_mask(document: np.ndarray, *, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The tokens that the target is ranked among, bool (seq,): "the rest of the token scores within the
    containing document of T". Where the paper is silent: special tokens and those of the source never count;
    punctuation does. Raises ValueError: an empty span, one with special tokens, a target in two documents.

    Args:
        document: int (seq,), index of each token's document; -1 = none: `[CLS]`, `[SEP]`, padding, and also
            document separators and mention marks.
        source, target: bool (seq,); the target must be in one document.
    """
    for name, span in (("source", source), ("target", target)):
        if not span.any():
            raise ValueError(f"the {name} is empty; choose at least one token")
        if document[span].min() < 0:
            raise ValueError(f"the {name} holds a special token, which is of no document")
    if len(of_target := np.unique(document[target])) > 1:
        raise ValueError(f"the target lies in the documents {of_target.tolist()}; it must lie in one")
    if (source & target).any():
        raise ValueError(f"token {np.argmax(source & target)} is both source and target")
    return (document == of_target[0]) & ~source & ~target


def word_scores(
    scores: np.ndarray, word_of_position: np.ndarray, n_words: int, *, reduce: str = "mean"
) -> np.ndarray:
    """Scores of words, float64 (n_words,), the `mean` or `max` of those of their subwords (seq,); nan for
    words that were cut off. `word_of_position`: int (seq,), index of each position's word; -1 = no word."""
    is_word = word_of_position >= 0
    inside, known = word_of_position[is_word], scores[is_word].astype(np.float64)
    counts = np.bincount(inside, minlength=n_words)
    if reduce == "mean":
        sums = np.bincount(inside, weights=known, minlength=n_words)
        return np.divide(sums, counts, out=np.full(n_words, np.nan), where=counts > 0)
    largest = np.full(n_words, -np.inf)
    np.maximum.at(largest, inside, known)
    return np.where(counts > 0, largest, np.nan)


def ranks_within(scores: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Percentile rank of each element among the others of its group, ties count half, float64 (n,); nan for
    elements without score (nan) or group (-1), or alone in their group."""
    ranks = np.full(len(scores), np.nan)
    for group in np.unique(groups[groups >= 0]):
        members = np.flatnonzero((groups == group) & ~np.isnan(scores))
        if len(members) > 1:
            ranks[members] = 100 * ((rankdata(scores[members]) - 1) / (len(members) - 1))
    return ranks
