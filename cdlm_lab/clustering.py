"""From scores of pairs of mentions to clusters of mentions: agglomerative clustering, one tree, thresholds.

Every mention starts alone; the two clusters whose pairs score highest on average are joined, again and again,
while that average is above the threshold. A score equal to the threshold joins nothing, as in scikit-learn.

What does not follow from the scores follows from the order of the mentions, and from nothing else, gold
clusters least of all: where several pairs of clusters score the same, scipy's chain of nearest neighbours,
which starts at the first mention, says which are joined first, so the same scores in the same order always
give the same clusters. Labels are numbered from 0 in order of the first mention.

The topic level `predicted`: which documents tell of the same thing, found from their words or read.

As Barhom et al. (2019) did for ECB+, documents are vectors of TF-IDF over words and runs of two and three
words, without English stop words, and K-means puts them into groups, of a number that is given or has the
best silhouette. Cattan et al. (2020) and CDLM read the groups that this gave for the test documents, 20 of
them; `read_predicted_topics` reads a file of that shape.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster import hierarchy
from scipy.sparse import csr_matrix
from scipy.spatial.distance import squareform
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import silhouette_score

from cdlm_lab.data.files import DataError, read_json

Linkage = Literal["average", "complete", "single"]
LINKAGES: tuple[Linkage, ...] = get_args(Linkage)
Item = TypeVar("Item", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdChoice:
    """The best of several thresholds.

    Attributes:
        threshold, score: of the choice.
        tried: (threshold, score) of all candidates, lowest threshold first.
    """

    threshold: float
    score: float
    tried: tuple[tuple[float, float], ...]


def square_scores(
    pairs: ArrayLike, scores: ArrayLike, *, mentions: int, average_orders: bool = False
) -> np.ndarray:
    """The scores of all pairs as a symmetric matrix; a mention with itself scores 1.

    Args:
        pairs: int (pairs, 2), numbers of mentions; each unordered pair once, in either order.
        scores: (pairs,), probabilities that they corefer.
        mentions: how many mentions there are.
        average_orders: each pair is there in both orders, and gets the mean of the two scores.

    Returns:
        float64 (mentions, mentions).

    Raises:
        ValueError: shapes that do not fit, a mention that is not there or is paired with itself, a pair that
            is missing or there too often, a score that is no number of [0, 1].
    """
    pairs, scores = _checked_pairs(pairs, scores, mentions)
    ordered = pairs if average_orders else np.sort(pairs, axis=1)
    places, first, times = np.unique(
        ordered[:, 0] * mentions + ordered[:, 1], return_index=True, return_counts=True
    )
    if (times > 1).any():
        i, j = pairs[first[times > 1][0]].tolist()
        what = "in this order" if average_orders else "in one order or the other"
        raise ValueError(f"mentions {i} and {j} are paired twice {what}; give each pair once")
    left_out = mentions * (mentions - 1) // (1 if average_orders else 2) - len(pairs)
    if left_out:
        expected = np.ones((mentions, mentions), dtype=bool)
        np.fill_diagonal(expected, False)
        expected = expected if average_orders else np.triu(expected)
        i, j = divmod(int(np.setdiff1d(np.flatnonzero(expected), places)[0]), mentions)
        what = f"mentions {i} and {j} have no score{' in this order' if average_orders else ''}"
        raise ValueError(f"{what}, one of {left_out} such pairs of {mentions} mentions; score all pairs")
    square = np.zeros((mentions, mentions))
    square[ordered[:, 0], ordered[:, 1]] = scores
    square = (square + square.T) / 2 if average_orders else square + square.T
    np.fill_diagonal(square, 1.0)
    return square


def _checked_pairs(pairs: ArrayLike, scores: ArrayLike, mentions: int) -> tuple[np.ndarray, np.ndarray]:
    pairs, scores = np.asarray(pairs), np.asarray(scores, dtype=np.float64)
    if mentions < 0:
        raise ValueError(f"mentions is {mentions}; it must be 0 or more")
    pairs = pairs.reshape(0, 2).astype(np.int64) if not pairs.size else pairs
    if pairs.ndim != 2 or pairs.shape[1] != 2 or scores.shape != pairs.shape[:1]:
        raise ValueError(
            f"pairs has shape {pairs.shape} and scores {scores.shape}; they must be (pairs, 2) and (pairs,)"
        )
    if not np.issubdtype(pairs.dtype, np.integer):
        raise ValueError(f"pairs holds {pairs.dtype}; it must hold whole numbers of mentions")
    wrong = ((pairs < 0) | (pairs >= mentions)).any(axis=1) | (pairs[:, 0] == pairs[:, 1])
    if wrong.any():
        row = int(np.argmax(wrong))
        pair = tuple(pairs[row].tolist())
        raise ValueError(f"pairs[{row}] is {pair}; it must be two of the {mentions} mentions, from 0 on")
    bad = ~((scores >= 0) & (scores <= 1))  # true of nan as well
    if bad.any():
        i, j = pairs[np.argmax(bad)].tolist()
        raise ValueError(f"mentions {i} and {j} score {scores[np.argmax(bad)]}; a score lies in [0, 1]")
    return pairs.astype(np.int64), scores


def cluster_mentions(scores: ArrayLike, *, threshold: float, linkage: Linkage = "average") -> np.ndarray:
    """Clusters of mentions, by scikit-learn's agglomerative clustering on the distance 1 - score.

    Args:
        scores: (mentions, mentions), symmetric, the probability of each pair to corefer; the diagonal is not
            looked at. `square_scores` makes it.
        threshold: clusters are joined while the average score between them is above it.
        linkage: `average`; or `complete`, `single`: the lowest, the highest score between two clusters.

    Returns:
        Labels, int64 (mentions,); one mention is a cluster, none are none.

    Raises:
        ValueError: scores that are not square, not symmetric, or no numbers of [0, 1]; a threshold outside
            [0, 1]; an unknown linkage.
    """
    distances = _distances(scores)
    _check_threshold(threshold)
    _check_linkage(linkage)
    if len(distances) < 2:
        return np.arange(len(distances), dtype=np.int64)
    clustering = AgglomerativeClustering(
        n_clusters=None, metric="precomputed", linkage=linkage, distance_threshold=1 - threshold
    )
    return _numbered(clustering.fit_predict(distances))


def merge_tree(scores: ArrayLike, *, linkage: Linkage = "average") -> np.ndarray:
    """The order in which clusters are joined, whatever the threshold; `labels_at` cuts it at one.

    Arguments and errors as `cluster_mentions`; ValueError too if there are no mentions.

    Returns:
        float64 (mentions - 1, 4), a linkage matrix as scipy has it: the two clusters joined (numbers below
        `mentions` are mentions, others rows), the distance between them (1 - score), and their mentions.
    """
    distances = _distances(scores)
    _check_linkage(linkage)
    if not len(distances):
        raise ValueError("there are no mentions; a tree has at least one")
    if len(distances) == 1:
        return np.empty((0, 4))
    return hierarchy.linkage(squareform(distances, checks=False), method=linkage)


def labels_at(tree: ArrayLike, threshold: float) -> np.ndarray:
    """What `cluster_mentions` gives for this threshold, from a tree made once.

    Args:
        tree: (mentions - 1, 4), of `merge_tree`.
        threshold: clusters are joined while the score between them is above it.

    Returns:
        Labels, int64 (mentions,).

    Raises:
        ValueError: a tree of another shape, a threshold outside [0, 1].
    """
    tree = np.asarray(tree, dtype=np.float64)
    _check_threshold(threshold)
    if tree.ndim != 2 or tree.shape[1] != 4:
        raise ValueError(f"tree has shape {tree.shape}; it must be (mentions - 1, 4), as merge_tree gives it")
    if not len(tree):
        return np.zeros(1, dtype=np.int64)
    below = np.nextafter(1 - threshold, -1)  # scipy joins at a distance of the limit itself, scikit-learn not
    return _numbered(hierarchy.fcluster(tree, below, criterion="distance"))


def best_threshold(candidates: Iterable[float], score_of: Callable[[float], float]) -> ThresholdChoice:
    """The candidate with the highest score, to be measured on dev and never on test.

    Neighbouring candidates often give the same clusters. Among those of the highest score, the longest run of
    neighbours counts (of several, that of the lowest thresholds), and in it the middle, the lower of two: the
    choice that is furthest from where the score drops.

    Args:
        candidates: thresholds in any order; one that is there twice counts once.
        score_of: the score of a threshold, higher is better; called once for each, lowest threshold first.

    Raises:
        ValueError: no candidates, one outside [0, 1], a score that is not finite.
    """
    thresholds = sorted({float(candidate) for candidate in candidates})
    if not thresholds:
        raise ValueError("there are no thresholds to choose from; give at least one candidate")
    for threshold in thresholds:
        _check_threshold(threshold)
    scores = [float(score_of(threshold)) for threshold in thresholds]
    for threshold, score in zip(thresholds, scores, strict=True):
        if not math.isfinite(score):
            raise ValueError(f"the score of threshold {threshold} is {score}; it must be finite")
    start, length = _longest_run([score == max(scores) for score in scores])
    place = start + (length - 1) // 2
    return ThresholdChoice(
        threshold=thresholds[place],
        score=scores[place],
        tried=tuple(zip(thresholds, scores, strict=True)),
    )


def clusters_of(items: Sequence[Item], labels: ArrayLike) -> list[tuple[Item, ...]]:
    """Items of one label together, clusters and items in the order of the items.

    Raises:
        ValueError: not one label for each item.
    """
    labels = np.asarray(labels)
    if labels.shape != (len(items),):
        raise ValueError(f"there are {len(items)} items, but labels has shape {labels.shape}; one for each")
    clusters: dict[int, list[Item]] = {}
    for item, label in zip(items, labels.tolist(), strict=True):
        clusters.setdefault(label, []).append(item)
    return [tuple(cluster) for cluster in clusters.values()]


def _distances(scores: ArrayLike) -> np.ndarray:
    """1 - scores, checked, float64 (mentions, mentions), with a diagonal of 0."""
    square = np.array(scores, dtype=np.float64)
    square = square.reshape(0, 0) if square.shape == (0,) else square
    if square.ndim != 2 or square.shape[0] != square.shape[1]:
        raise ValueError(f"scores has shape {square.shape}; it must be (mentions, mentions)")
    np.fill_diagonal(square, 1.0)
    bad = ~((square >= 0) & (square <= 1))  # true of nan as well
    if bad.any():
        i, j = np.argwhere(bad)[0].tolist()
        raise ValueError(f"scores[{i}, {j}] is {square[i, j]}; a score lies in [0, 1]")
    lopsided = square != square.T
    if lopsided.any():
        i, j = np.argwhere(lopsided)[0].tolist()
        both = f"scores[{i}, {j}] is {square[i, j]}, but scores[{j}, {i}] is {square[j, i]}"
        raise ValueError(f"{both}; give both orders one score (square_scores can average them)")
    return 1 - square


def _check_threshold(threshold: float) -> None:
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold is {threshold}; it must lie in [0, 1]")


def _check_linkage(linkage: str) -> None:
    if linkage not in LINKAGES:
        raise ValueError(f"unknown linkage {linkage!r}; choose one of {', '.join(LINKAGES)}")


def _numbered(labels: np.ndarray) -> np.ndarray:
    """The same clusters, numbered from 0 in order of their first mention; int64 (mentions,)."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first)).astype(np.int64)[inverse]


def _longest_run(flags: Sequence[bool]) -> tuple[int, int]:
    """Start and length of the first of the longest runs of True."""
    best, start = (0, 0), 0
    for place, flag in enumerate([*flags, False]):
        if not flag:
            best, start = (max(best, (start, place - start), key=lambda run: run[1])), place + 1
    return best


LONGEST_TERM = 3  # words
# In a collection of some size, a term counts if it is in three documents or more and in half of them or
# fewer, as in the code of Barhom et al.; a small one has no terms to spare.
FEWEST_FOR_LIMITS = 30  # documents
FEWEST_WITH_TERM = 3
LARGEST_SHARE_WITH_TERM = 0.5
MOST_TRIED = 60  # numbers of groups, when the silhouette is to choose
STARTS = 5  # of K-means; the best one counts


def predict_topics(texts: Mapping[str, str], *, clusters: int | None = None, seed: int = 0) -> dict[str, str]:
    """Put documents into groups by their words.

    The order of `texts` does not matter: documents are taken in the order of their ids.

    Args:
        texts: text of each document, by its id.
        clusters: how many groups. None: the number, from 2 to half of the documents (at most `MOST_TRIED`),
            whose groups have the highest silhouette (Rousseeuw 1987), the lower of equals; fewer than four
            different texts are one group, as the silhouette cannot tell.
        seed: of K-means.

    Returns:
        Name of the group of each document, "predicted-1" being that of the first id.

    Raises:
        ValueError: no documents, fewer different texts than groups, texts without a word to go by.
    """
    if not texts:
        raise ValueError("there are no documents to cluster; give at least one")
    names = sorted(texts)
    different = len({texts[name] for name in names})
    if clusters is not None and not 1 <= clusters <= different:
        raise ValueError(f"clusters is {clusters}; it must be from 1 to {different}, the different texts")
    if clusters == 1 or (clusters is None and different < 4):
        return dict.fromkeys(names, "predicted-1")
    vectors = _vectors([texts[name] for name in names])
    if clusters is not None:
        labels = _k_means(vectors, clusters, seed)
    else:
        tried = range(2, min(different // 2, MOST_TRIED) + 1)
        groupings = [_k_means(vectors, count, seed) for count in tried]
        labels = max(groupings, key=lambda grouping: _silhouette(vectors, grouping))
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels.tolist()), start=1)}
    return {name: f"predicted-{numbers[label]}" for name, label in zip(names, labels.tolist(), strict=True)}


def _vectors(texts: list[str]) -> csr_matrix:
    """(documents, terms), rows of length 1, or 0 where none of the terms occurs."""
    small = len(texts) < FEWEST_FOR_LIMITS
    vectoriser = TfidfVectorizer(
        ngram_range=(1, LONGEST_TERM),
        stop_words="english",
        min_df=1 if small else FEWEST_WITH_TERM,
        max_df=1.0 if small else LARGEST_SHARE_WITH_TERM,
    )
    try:
        return vectoriser.fit_transform(texts)
    except ValueError as error:  # "empty vocabulary", "no terms remain"
        what = f"the {len(texts)} documents have no words to tell them apart ({error})"
        raise ValueError(f"{what}; name their topics yourself") from None


def _k_means(vectors: csr_matrix, clusters: int, seed: int) -> np.ndarray:
    with warnings.catch_warnings():
        # Texts that differ in stop words alone are equal vectors; there can be fewer groups than asked for.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KMeans(clusters, n_init=STARTS, random_state=seed).fit_predict(vectors)


def _silhouette(vectors: csr_matrix, labels: np.ndarray) -> float:
    found = len(np.unique(labels))
    return float(silhouette_score(vectors, labels)) if 1 < found < len(labels) else -1.0


def read_predicted_topics(path: str | Path, *, documents: Iterable[str] | None = None) -> dict[str, str]:
    """Groups of documents from a JSON file: a list of groups, each a list of ids of documents.

    Args:
        path: the file; `.gz` and `.xz` are read too.
        documents: ids of those that must be there, and the only ones kept. None: all of the file.

    Returns:
        Name of the group of each document, "predicted-1" being the first of the file.

    Raises:
        DataError: no JSON, or not of this shape; a document that is in two groups, or in none.
    """
    _, groups = read_json(Path(path))
    if not isinstance(groups, list) or not groups:
        raise DataError(path, "no list of groups", 'write [["1_1ecb", "1_2ecb"], ["1_1ecbplus"]]')
    group_of: dict[str, str] = {}
    for number, group in enumerate(groups, start=1):
        field = f"[{number - 1}]"
        if not isinstance(group, list) or not group:
            raise DataError(path, "a group is a list of ids", 'write it as ["1_1ecb"]', field=field)
        for document in group:
            if not isinstance(document, str) or not document:
                what = f"{json.dumps(document)} is no id of a document"
                raise DataError(path, what, 'write it as "1_1ecb"', field=field)
            if document in group_of:
                what = f"document {document} is in {group_of[document]} already"
                raise DataError(path, what, "leave it in one group", field=field)
            group_of[document] = f"predicted-{number}"
    return group_of if documents is None else _kept(group_of, documents, path)


def _kept(group_of: Mapping[str, str], documents: Iterable[str], path: str | Path) -> dict[str, str]:
    wanted = list(dict.fromkeys(documents))
    if missing := [document for document in wanted if document not in group_of]:
        what = f"document {missing[0]} is in no group, one of {len(missing)} such"
        raise DataError(path, what, "add them, or read the documents that the file is for")
    return {document: group_of[document] for document in wanted}
