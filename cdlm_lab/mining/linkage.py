"""Complete linkage on the pairs that are similar at all: two clusters are joined only if all their articles
are similar to each other.

The same clusters as `scipy.cluster.hierarchy.linkage(..., "complete")` cut at the threshold, but without a
distance for each pair: a pair that is not listed is never joined, so memory grows with the listed pairs.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import numpy as np


def complete_linkage(
    first: np.ndarray, second: np.ndarray, similarity: np.ndarray, *, items: int
) -> np.ndarray:
    """The cluster of each item, int (item,): the place of its first member.

    Clusters are joined in the order of the similarity of their least similar members; of equal ones, those
    with the smallest places first. `first`, `second`, `similarity`: (pair,), each pair once.
    """
    near: list[dict[int, float]] = [{} for _ in range(items)]
    for one, other, value in zip(first.tolist(), second.tolist(), similarity.tolist(), strict=True):
        near[one][other] = near[other][one] = value
    pairs = ((one, other, value) for one in range(items) for other, value in near[one].items())
    queue = [(-value, one, other) for one, other, value in pairs if one < other]
    heapq.heapify(queue)
    cluster = np.arange(items)
    members = [[item] for item in range(items)]
    while queue:
        value, one, other = heapq.heappop(queue)
        if near[one].get(other) != -value:  # one of them was joined with another cluster since
            continue
        joined = near[other]
        for third in near[one].keys() - joined.keys() - {other}:
            del near[one][third], near[third][one]
        for third in joined.keys() - {one}:
            del near[third][other]
            if third in near[one]:
                least = min(near[one][third], joined[third])
                near[one][third] = near[third][one] = least
                heapq.heappush(queue, (-least, min(one, third), max(one, third)))
        del near[one][other]
        near[other] = {}
        cluster[members[other]] = one
        members[one] += members[other]
        members[other] = []
    return cluster


def joined(pairs: Iterable[tuple[int, int]], *, items: int) -> np.ndarray:
    """The smallest place that each item is connected with by the pairs, int (item,): union-find."""
    parent = list(range(items))

    def root(item: int) -> int:
        while parent[item] != item:
            parent[item] = parent[parent[item]]
            item = parent[item]
        return item

    for one, other in pairs:
        low, high = sorted((root(one), root(other)))
        parent[high] = low
    return np.array([root(item) for item in range(items)], dtype=int)
