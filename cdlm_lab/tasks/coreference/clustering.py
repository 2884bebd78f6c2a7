"""Clustering of mentions by the scores of their pairs, and groups of documents from a file.

Mentions: average linkage. Each mention starts as its own cluster; the two clusters whose pairs have the
highest mean score are merged, as long as that mean is above the threshold (equal is not enough, as in
scikit-learn). One tree serves all thresholds. Ties depend only on the order of the mentions: scipy's
nearest-neighbour chain starts at the first. Labels are numbered from 0 by the first mention of a cluster.

Documents (the topic level `predicted`): groups are read from a file, as in Cattan et al. (2020) and CDLM.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from cdlm_lab.data.files import DataError, read_json

Item = TypeVar("Item", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdChoice:
    """The best of several thresholds, its score, and (threshold, score) of all tried, in ascending order."""

    threshold: float
    score: float
    tried: tuple[tuple[float, float], ...]


def square_scores(scores: ArrayLike, *, mentions: int) -> np.ndarray:
    """Turn the scores (pairs,) of (0, 1), (0, 2), ..., (1, 2), ... into a symmetric float64 matrix (mentions,
    mentions) with ones on the diagonal."""
    scores = np.asarray(scores, dtype=np.float64)
    square = squareform(scores) if len(scores) else np.zeros((mentions, mentions))
    np.fill_diagonal(square, 1.0)
    return square


def merge_tree(scores: ArrayLike) -> np.ndarray:
    """Build the average-linkage tree, which serves every threshold, from symmetric coreference probabilities
    (mentions, mentions). Returns scipy's linkage matrix, float64 (mentions - 1, 4): the two clusters merged,
    their distance (1 - score) and their number of mentions. Raises ValueError for a score outside [0, 1]."""
    square = np.array(scores, dtype=np.float64)
    np.fill_diagonal(square, 1.0)
    if len(bad := np.argwhere(~((square >= 0) & (square <= 1)))):  # true of nan as well
        i, j = bad[0].tolist()
        raise ValueError(f"scores[{i}, {j}] is {square[i, j]}; a score lies in [0, 1]")
    if len(square) == 1:
        return np.empty((0, 4))
    return hierarchy.linkage(squareform(1 - square, checks=False), method="average")


def labels_at(tree: ArrayLike, threshold: float) -> np.ndarray:
    """Cut a tree made by `merge_tree` at a threshold: two clusters are one if the score between them is above
    it. Returns the cluster label of each mention, int64 (mentions,)."""
    tree = np.asarray(tree, dtype=np.float64)
    _check_threshold(threshold)
    if not len(tree):
        return np.zeros(1, dtype=np.int64)
    below = np.nextafter(1 - threshold, -1)  # scipy also merges at a distance equal to it, scikit-learn not
    labels = hierarchy.fcluster(tree, below, criterion="distance")
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first)).astype(np.int64)[inverse]


def threshold_of_share(trees: Sequence[np.ndarray], share: float) -> float:
    """The threshold at which this share of the mentions is merged into the cluster of an earlier one,
    (mentions - clusters) / mentions over all trees, halfway between the scores of the last merge and the
    next. It needs no gold.

    >>> threshold_of_share([merge_tree([[1, 0.9, 0.3], [0.9, 1, 0.1], [0.3, 0.1, 1]])], share=1 / 3)
    0.55
    """
    scores = np.sort(np.concatenate([1 - tree[:, 2] for tree in trees]))[::-1]  # no later merge scores higher
    merged = round(share * sum(len(tree) + 1 for tree in trees))
    borders = [1.0, *scores, 0.0, 0.0]
    merged = min(merged, len(scores))
    return float(borders[merged] + borders[merged + 1]) / 2


def best_threshold(candidates: Iterable[float], score_of: Callable[[float], float]) -> ThresholdChoice:
    """Choose the candidate with the highest score, which is to be measured on dev and never on test.

    Neighbouring candidates often give the same clusters and so tie. Of the tied ones, the longest run of
    neighbours is taken (the lowest, if several are as long) and its middle (the lower of two) chosen, which
    is furthest from where the score drops. `score_of` is called once for each candidate, in ascending order.
    """
    thresholds = sorted({float(candidate) for candidate in candidates})
    if not thresholds:
        raise ValueError("there are no thresholds to choose from; give at least one candidate")
    for threshold in thresholds:
        _check_threshold(threshold)
    tried = tuple((threshold, float(score_of(threshold))) for threshold in thresholds)
    for threshold, score in tried:
        if not math.isfinite(score):
            raise ValueError(f"the score of threshold {threshold} is {score}; it must be finite")
    best = max(score for _, score in tried)
    runs = [list(run) for score, run in groupby(tried, key=lambda pair: pair[1]) if score == best]
    longest = max(runs, key=len)
    threshold, score = longest[(len(longest) - 1) // 2]
    return ThresholdChoice(threshold=threshold, score=score, tried=tried)


def clusters_of(items: Sequence[Item], labels: ArrayLike) -> list[tuple[Item, ...]]:
    """Group items by label. Clusters are in the order of their first items; items keep their order."""
    clusters: dict[Hashable, list[Item]] = {}
    for item, label in zip(items, np.asarray(labels).tolist(), strict=True):
        clusters.setdefault(label, []).append(item)
    return [tuple(cluster) for cluster in clusters.values()]


def _check_threshold(threshold: float) -> None:
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold is {threshold}; it must lie in [0, 1]")


def read_predicted_topics(path: str | Path, *, documents: Iterable[str] | None = None) -> dict[str, str]:
    """Read groups of documents from a JSON file (also `.gz`, `.xz`) that holds a list of lists of ids.
    Returns id -> name of its group; the first group of the file is "predicted-1".

    `documents`: ids that must be in the file, and the only ones returned; None = all ids of the file.
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
    wanted = group_of if documents is None else list(dict.fromkeys(documents))
    if missing := [document for document in wanted if document not in group_of]:
        what = f"document {missing[0]} is in no group, one of {len(missing)} such"
        raise DataError(path, what, "add them, or read the documents that the file is for")
    return {document: group_of[document] for document in wanted}
