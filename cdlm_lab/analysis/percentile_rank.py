"""How high a target ranks under a source by attention: the percentile rank of CDLM, section 3.5.

    s(i|S) ~ exp[ sum over heads k, sum over j in S of (alpha_{i,j}^k + alpha_{j,i}^k) ],    i not in S
    s(T|S) = mean over j in T of s(j|S)
    PR     = rank of s(T|S) among { s(i|S) | i in the document of T, i not in T }, in percent

alpha_{i,j}^k is the weight that token i gives to token j in head k of the last layer, S the source (global),
T the target. Ties count half (mid-rank), so the expected rank of a target of one token drawn at random is
exactly 50, and a model that treats all tokens alike has 50 everywhere. For longer targets 50 is no exact
chance level: s(T|S) is a mean of scores, and where a few scores are large a mean lies above most of them.
`chance_rank` gives what a span of that length has on average.

The notebook released with the paper computes another number, and so cannot be compared to this one:
- It takes the rank of another token. Tokens of S and T are deleted from the scores, T is then looked up where
  it was before: at the token that stands |S| places after T, since S precedes T.
- All layers are averaged, not only the last.
- One direction, what S gives; what S receives is left out. Nothing is exponentiated.
- The rank is the number of candidates that come before T in sorted order, over their number with T among
  them: at best (N - 1) / N, and of equal scores any may come first.
- Sequences of more than 2,000 tokens are left out.

Mean percentile rank over many pairs of mentions (CDLM Table 6), its interval, and tests between models.

Pairs that share documents are not independent: each document of ECB+ is in many pairs, and all documents of a
topic tell of the same things. What is drawn again is therefore not pairs but clusters of them, such as
topics; the mean is always that over all pairs, as in the paper, which has no intervals.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

from cdlm_lab.metrics.significance import (
    Comparison,
    check_resamples,
    compare,
    percentile_interval,
    resampled_sums,
    sums_by_cluster,
)

DIRECTIONS = ("both", "from", "to")
CANDIDATES = ("document", "words", "both_documents")
_REDUCTIONS = {"sum": np.sum, "mean": np.mean, "max": np.max}
_WORD_REDUCTIONS = ("mean", "max")
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
    """s(i|S) of every position i; the defaults are the paper's.

    The weights are summed over the source tokens and the directions, then reduced over heads and layers, then
    exponentiated. They are not normalised: the paper's factor of proportion is one for all tokens and changes
    no rank. (Where exp would overflow, all scores are divided by one number for the same reason.)

    Args:
        given: float (layers, heads, source tokens, seq), weight that each source token j gives to each
            position i: alpha_{j,i}.
        received: the same shape, weight that j receives from i: alpha_{i,j}.
        layers: `last`, `all`, or their numbers in these arrays.
        heads: their numbers; None = all.
        directions: `both`; `from` = what the source gives; `to` = what it receives.
        reduce: over heads, and layers if several: `sum`, `mean` or `max`.

    Returns:
        float64 (seq,). At the source tokens themselves it has no meaning.

    Raises:
        ValueError: shapes differ or are empty, weights are not finite, an unknown name, a layer or head that
            is not there or named twice.
    """
    given, received = _checked_weights(given, received)
    _check_name(directions, DIRECTIONS, what="directions")
    _check_name(reduce, _REDUCTIONS, what="reduce")
    n_layers, n_heads = given.shape[:2]
    if isinstance(layers, str):
        _check_name(layers, ("last", "all"), what="layers")
        layers = [n_layers - 1] if layers == "last" else None
    chosen = np.ix_(_numbers(layers, n_layers, what="layer"), _numbers(heads, n_heads, what="head"))
    arrays = {"both": (given, received), "from": (given,), "to": (received,)}[directions]
    weights = sum(array[chosen].sum(axis=2, dtype=np.float64) for array in arrays)  # (layers, heads, seq)
    total = _REDUCTIONS[reduce](weights, axis=(0, 1))  # (seq,)
    return np.exp(total - max(0.0, total.max() - _LARGEST))


def percentile_rank(target_score: float, candidate_scores: ArrayLike) -> float:
    """Percentage of the candidates below the target, those equal to it counted half; 50 by chance.

    Raises:
        ValueError: no candidates, or a score that is no number.
    """
    scores = np.asarray(candidate_scores, dtype=np.float64)
    if not scores.size:
        raise ValueError("there are no candidates to rank the target among")
    if np.isnan(target_score) or np.isnan(scores).any():
        raise ValueError("a score is not a number (nan); only positions that have a score can be ranked")
    below, equal = (scores < target_score).sum(), (scores == target_score).sum()
    return float(100 * (below + equal / 2) / scores.size)


def target_rank(scores: np.ndarray, target: np.ndarray, candidates: np.ndarray) -> float:
    """Percentile rank of s(T|S), the mean score of the target, among the candidates.

    Args:
        scores: (seq,), as of `source_scores`.
        target: bool (seq,), True = token of T.
        candidates: bool (seq,), True = to be compared with (see `candidate_mask`). Tokens of T never are.

    Raises:
        ValueError: no target, no candidates, masks that do not fit.
    """
    scores = np.asarray(scores, dtype=np.float64)
    target = _mask(target, len(scores), name="target")
    candidates = _mask(candidates, len(scores), name="candidates")
    if not target.any():
        raise ValueError("the target is empty; choose at least one token")
    return percentile_rank(scores[target].mean(), scores[candidates & ~target])


def chance_rank(
    scores: np.ndarray, target: np.ndarray, candidates: np.ndarray, *, document: np.ndarray
) -> float:
    """Mean percentile rank of all spans as long as the target in its document, each ranked as the target is:
    what a target drawn at random has.

    Args:
        scores, target, candidates: as of `target_rank`. The target's own tokens are candidates of the other
            spans.
        document: bool (seq,), True = token of T's document, where spans may lie.

    Raises:
        ValueError: as `target_rank`; the target does not lie in the document, or no span has candidates.
    """
    scores = np.asarray(scores, dtype=np.float64)
    target = _mask(target, len(scores), name="target")
    among = _mask(candidates, len(scores), name="candidates") | target
    places = np.flatnonzero(_mask(document, len(scores), name="document"))
    length = int(target.sum())
    if not length or not np.isin(np.flatnonzero(target), places).all():
        raise ValueError("the target must be at least one token, and all of it in the document")
    spans = np.lib.stride_tricks.sliding_window_view(places, length)  # (spans, length)
    inside, mine = scores[spans], among[spans]
    means = inside.mean(axis=1)
    ordered = np.sort(scores[among])
    below = np.searchsorted(ordered, means, side="left") - (mine & (inside < means[:, None])).sum(axis=1)
    not_above = np.searchsorted(ordered, means, side="right") - (mine & (inside <= means[:, None])).sum(
        axis=1
    )
    count = len(ordered) - mine.sum(axis=1)
    if not (kept := count > 0).any():
        raise ValueError("there are no candidates to rank a span among")
    return float(100 * ((below + not_above) / 2 / np.maximum(count, 1))[kept].mean())


def candidate_mask(
    document: np.ndarray,
    *,
    source: np.ndarray,
    target: np.ndarray,
    candidates: str = "document",
    is_punctuation: np.ndarray | None = None,
) -> np.ndarray:
    """Which tokens the target is ranked among.

    The paper says "the rest of the token scores within the containing document of T". Choices where it is
    silent: special tokens never count, nor do those of the source, which have no score (i not in S). Whether
    punctuation counts is an option; it does by default, as it is tokens of the document too.

    Args:
        document: int (seq,), number of the document of each token; -1 = none: `[CLS]`, `[SEP]`, padding, and
            also separators of documents and marks of mentions, whatever document they stand in.
        source: bool (seq,), True = token of S.
        target: bool (seq,), True = token of T; all in one document.
        candidates: `document` = of T; `words` = the same without punctuation; `both_documents` = of T and S.
        is_punctuation: bool (seq,), only read for `words`.

    Returns:
        bool (seq,).

    Raises:
        ValueError: an unknown name, masks that do not fit, source or target empty or on a token without
            document, a target in two documents or with tokens of the source in it.
    """
    _check_name(candidates, CANDIDATES, what="candidates")
    document = np.asarray(document)
    source = _mask(source, len(document), name="source")
    target = _mask(target, len(document), name="target")
    of_source, of_target = np.unique(document[source]), np.unique(document[target])
    for name, found in (("source", of_source), ("target", of_target)):
        if not len(found):
            raise ValueError(f"the {name} is empty; choose at least one token")
        if found[0] < 0:
            raise ValueError(f"the {name} holds a special token, which is of no document")
    if len(of_target) > 1:
        raise ValueError(f"the target lies in the documents {of_target.tolist()}; it must lie in one")
    if (source & target).any():
        raise ValueError(f"token {np.argmax(source & target)} is both source and target")
    numbers = of_target if candidates != "both_documents" else np.union1d(of_source, of_target)
    mask = np.isin(document, numbers) & ~source & ~target
    if candidates == "words":
        if is_punctuation is None:
            raise ValueError("the candidates `words` need is_punctuation")
        mask &= ~_mask(is_punctuation, len(document), name="is_punctuation")
    return mask


def word_scores(
    scores: np.ndarray, word_of_position: np.ndarray, n_words: int, *, reduce: str = "mean"
) -> np.ndarray:
    """Scores of words from those of their subwords.

    Args:
        scores: (seq,).
        word_of_position: int (seq,), number of the word of each position, below `n_words`; -1 = no word.
        n_words: how many words there are.
        reduce: `mean`, as of a target span, or `max`.

    Returns:
        float64 (n_words,); nan for words that have no position, as those cut off.

    Raises:
        ValueError: an unknown name, shapes that differ, a word out of range.
    """
    _check_name(reduce, _WORD_REDUCTIONS, what="reduce")
    scores, words = np.asarray(scores, dtype=np.float64), np.asarray(word_of_position)
    if scores.shape != words.shape or scores.ndim != 1:
        raise ValueError(
            f"scores has shape {scores.shape} and word_of_position {words.shape}; both are (seq,)"
        )
    if ((words < -1) | (words >= n_words)).any():
        raise ValueError(f"word_of_position must lie between -1 and {n_words - 1}")
    inside, known = words[words >= 0], scores[words >= 0]
    counts = np.bincount(inside, minlength=n_words)
    if reduce == "mean":
        sums = np.bincount(inside, weights=known, minlength=n_words)
        return np.divide(sums, counts, out=np.full(n_words, np.nan), where=counts > 0)
    largest = np.full(n_words, -np.inf)
    np.maximum.at(largest, inside, known)
    return np.where(counts > 0, largest, np.nan)


def ranks_within(scores: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Percentile rank of each element among the others of its group, ties counted half.

    Args:
        scores: (n,); nan = not there, counts for none.
        groups: int (n,), as the document of each word; -1 = in none.

    Returns:
        float64 (n,); nan for what is in no group, not there, or alone in its group.
    """
    scores, groups = np.asarray(scores, dtype=np.float64), np.asarray(groups)
    ranks = np.full(len(scores), np.nan)
    there = np.flatnonzero((groups >= 0) & ~np.isnan(scores))
    if not len(there):
        return ranks
    order = there[np.lexsort((scores[there], groups[there]))]  # by group, in each from low to high
    place = np.arange(len(order))
    new_group = np.append(True, np.diff(groups[order]) != 0)
    # Comparisons, not differences: of two infinite scores the difference is no number.
    new_score = new_group | np.append(True, scores[order][1:] != scores[order][:-1])
    group, tie = np.cumsum(new_group) - 1, np.cumsum(new_score) - 1
    others = np.bincount(group)[group] - 1
    below = place[new_score][tie] - place[new_group][group]
    equal = np.bincount(tie)[tie] - 1
    found = np.divide(below + equal / 2, others, out=np.full(len(order), np.nan), where=others > 0)
    ranks[order] = 100 * found
    return ranks


def _checked_weights(given: np.ndarray, received: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    given, received = np.asarray(given), np.asarray(received)
    if given.ndim != 4 or given.shape != received.shape or not given.size:
        raise ValueError(
            f"given has shape {given.shape} and received {received.shape}; both must be (layers, heads, "
            "source tokens, seq), not empty"
        )
    if not (np.isfinite(given).all() and np.isfinite(received).all()):
        raise ValueError("some attention weights are not finite; the model's weights are broken")
    return given, received


def _check_name(name: str, known: Iterable[str], *, what: str) -> None:
    if name not in known:
        raise ValueError(f"unknown {what} {name!r}; choose one of {', '.join(known)}")


def _numbers(chosen: Sequence[int] | None, count: int, *, what: str) -> list[int]:
    """Numbers of layers or heads, checked; negative ones count from the end."""
    if chosen is None:
        return list(range(count))
    if not len(chosen):
        raise ValueError(f"no {what} is chosen; name at least one")
    for number in chosen:
        if not -count <= number < count:
            raise ValueError(f"there is no {what} {number}; there are {count}, 0 to {count - 1}")
    numbers = [int(number) % count for number in chosen]
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"a {what} is named twice in {list(chosen)}")
    return numbers


def _mask(mask: np.ndarray, length: int, *, name: str) -> np.ndarray:
    mask = np.asarray(mask)
    if mask.dtype != bool or mask.shape != (length,):
        raise ValueError(
            f"{name} must be a bool mask of shape ({length},), True = chosen; got {mask.dtype} {mask.shape}"
        )
    return mask


RESAMPLES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanRank:
    """Mean percentile rank in [0, 100], or a gap between two, its 95% bootstrap interval, and over how much
    they were taken.

    Attributes:
        mean: over all pairs.
        low, high: bounds of the interval, over resampled clusters.
        pairs: how many.
        clusters: how many; an interval over few of them (below about 20) is too narrow.
    """

    mean: float
    low: float
    high: float
    pairs: int
    clusters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankComparison(Comparison):
    """Two models on the same pairs; a positive difference = a ranks targets higher on average.

    Attributes:
        pairs: how many.
    """

    pairs: int


def mean_percentile_rank(
    ranks: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    n_resamples: int = RESAMPLES,
    seed: int = 0,
) -> MeanRank:
    """Mean over pairs, with an interval over clusters of pairs.

    Args:
        ranks: (pairs,), percentile rank of the target of each.
        clusters: (pairs,), name of the cluster of each, as its topic; None = each pair is its own.
        n_resamples: how often to draw.
        seed: of the draws.

    Raises:
        ValueError: no pairs, a rank outside [0, 100], another number of clusters than pairs, only one
            cluster, `n_resamples` < 1.
    """
    check_resamples(n_resamples)
    counts = _counts(ranks, clusters, name="ranks")
    drawn = resampled_sums(counts, n_resamples=n_resamples, rng=np.random.default_rng(seed))
    low, high = percentile_interval(_mean(drawn))
    return MeanRank(
        mean=float(_mean(counts.sum(axis=0))),
        low=low,
        high=high,
        pairs=int(counts[:, 1].sum()),
        clusters=len(counts),
    )


def compare_percentile_ranks(
    ranks_a: ArrayLike,
    ranks_b: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    n_resamples: int = RESAMPLES,
    seed: int = 0,
) -> RankComparison:
    """Paired tests of two models; pair i must be the same for both, with the same source.

    Arguments and errors otherwise as of `mean_percentile_rank`.

    Raises:
        ValueError: also if there is another number of ranks of a than of b.
    """
    if np.shape(ranks_a) != np.shape(ranks_b):
        raise ValueError(
            f"ranks_a has shape {np.shape(ranks_a)} and ranks_b {np.shape(ranks_b)}; both are (pairs,)"
        )
    a, b = _counts(ranks_a, clusters, name="ranks_a"), _counts(ranks_b, clusters, name="ranks_b")
    compared = compare(a, b, _mean, n_resamples=n_resamples, seed=seed)
    return RankComparison(**asdict(compared), pairs=int(a[:, 1].sum()))


def rank_gap(
    positive: ArrayLike,
    negative: ArrayLike,
    *,
    positive_clusters: Sequence[Hashable],
    negative_clusters: Sequence[Hashable],
    n_resamples: int = RESAMPLES,
    seed: int = 0,
) -> MeanRank:
    """Mean rank of the targets that corefer minus that of those that do not, in percentage points: what is
    left of a mean rank without all that lifts coreferring and other mentions alike.

    Clusters are drawn with all their pairs of both sorts; `pairs` of the result counts both. Arguments and
    errors otherwise as of `mean_percentile_rank`.
    """
    check_resamples(n_resamples)
    numbers: dict[Hashable, int] = {}
    sorts = [
        _counts(ranks, clusters, name=name, numbers=numbers)
        for ranks, clusters, name in (
            (positive, positive_clusters, "positive"),
            (negative, negative_clusters, "negative"),
        )
    ]
    counts = np.zeros((len(numbers), 4))
    for place, sort in enumerate(sorts):
        counts[: len(sort), 2 * place : 2 * place + 2] = sort
    drawn = resampled_sums(counts, n_resamples=n_resamples, rng=np.random.default_rng(seed))
    drawn = drawn[(drawn[:, 1] > 0) & (drawn[:, 3] > 0)]
    low, high = percentile_interval(_mean(drawn[:, :2]) - _mean(drawn[:, 2:]))
    total = counts.sum(axis=0)
    return MeanRank(
        mean=float(_mean(total[:2]) - _mean(total[2:])),
        low=low,
        high=high,
        pairs=int(total[1] + total[3]),
        clusters=len(counts),
    )


def _mean(sums: np.ndarray) -> np.ndarray:
    """(..., 2) sums of ranks and numbers of pairs to (...) means."""
    return sums[..., 0] / sums[..., 1]


def _counts(
    ranks: ArrayLike,
    clusters: Sequence[Hashable] | None,
    *,
    name: str,
    numbers: dict[Hashable, int] | None = None,
) -> np.ndarray:
    """(clusters, 2): sum of the ranks of each cluster, and how many they are. `numbers`: of clusters that are
    known already; new ones are added."""
    ranks = np.asarray(ranks, dtype=np.float64)
    if ranks.ndim != 1 or not ranks.size:
        raise ValueError(f"{name} has shape {ranks.shape}; it must be (pairs,), not empty")
    if not ((ranks >= 0) & (ranks <= 100)).all():
        wrong = int(np.argmin((ranks >= 0) & (ranks <= 100)))
        raise ValueError(f"{name}[{wrong}] is {ranks[wrong]}; a percentile rank lies in [0, 100]")
    return sums_by_cluster([ranks, np.ones_like(ranks)], clusters, name=name, numbers=numbers)
