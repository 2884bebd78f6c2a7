"""Two clusterings of mentions side by side: checks, what clusters share, the best one-to-one alignment."""

from __future__ import annotations

import math
import reprlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

Clusters = Iterable[Iterable[Hashable]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlaps:
    """What two clusterings share.

    Attributes:
        key_sizes: (key,), mentions of each cluster of the key, with or without a twin in the response.
        response_sizes: (response,), those of the response.
        key, response: (pair,), the numbers of two clusters that share mentions, each pair once.
        common: (pair,), how many mentions they share, at least 1.
    """

    key_sizes: np.ndarray
    response_sizes: np.ndarray
    key: np.ndarray
    response: np.ndarray
    common: np.ndarray

    def exchanged(self) -> Overlaps:
        """The response in the role of the key: the recall of this is the precision of that."""
        return Overlaps(
            key_sizes=self.response_sizes,
            response_sizes=self.key_sizes,
            key=self.response,
            response=self.key,
            common=self.common,
        )

    def sum_by_key(self, of_pairs: np.ndarray) -> np.ndarray:
        """(pair,) to (key,): sums over the response clusters that share mentions with a key cluster."""
        return np.bincount(self.key, weights=of_pairs, minlength=len(self.key_sizes))


def overlaps(key: Clusters, response: Clusters, *, singletons: bool = True) -> Overlaps:
    """What the clusters of key and response share; `singletons=False` drops clusters of one mention first.

    Raises:
        TypeError, ValueError: as `checked_clusters`.
    """
    keys, responses = checked_clusters(key, side="key"), checked_clusters(response, side="response")
    if not singletons:
        keys, responses = ([c for c in clusters if len(c) > 1] for clusters in (keys, responses))
    response_of = {mention: number for number, cluster in enumerate(responses) for mention in cluster}
    pairs = Counter(
        (number, response_of[mention])
        for number, cluster in enumerate(keys)
        for mention in cluster
        if mention in response_of
    )
    numbers = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
    return Overlaps(
        key_sizes=np.array([len(cluster) for cluster in keys], dtype=np.int64),
        response_sizes=np.array([len(cluster) for cluster in responses], dtype=np.int64),
        key=numbers[:, 0],
        response=numbers[:, 1],
        common=np.array(list(pairs.values()), dtype=np.int64),
    )


def checked_clusters(clusters: Clusters, *, side: str) -> list[list[Hashable]]:
    """The clusters as lists, no mention twice. `side` is their name in errors: "key" or "response".

    Raises:
        TypeError: clusters or a cluster are a string, a mapping or no iterable, or a mention is not hashable.
        ValueError: a cluster is empty, or a mention is twice in a cluster or in two clusters.
    """
    checked = [
        _as_list(f"{side}[{number}]", cluster, "mentions")
        for number, cluster in enumerate(_as_list(side, clusters, "clusters"))
    ]
    cluster_of: dict[Hashable, int] = {}
    for number, cluster in enumerate(checked):
        if not cluster:
            raise ValueError(f"{side}[{number}] is empty; leave out clusters without mentions")
        for mention in cluster:
            try:
                earlier = cluster_of.setdefault(mention, -1)
            except TypeError as error:
                raise TypeError(
                    f"{side}[{number}] has the mention {reprlib.repr(mention)}, which is not hashable; "
                    "make mentions tuples, strings or numbers"
                ) from error
            if earlier >= 0:
                raise ValueError(_twice(mention, checked, side=side, numbers=(earlier, number)))
            cluster_of[mention] = number
    return checked


def joined_topics(
    *clusterings: Clusters, topic: Callable[[Hashable], Hashable]
) -> Callable[[Hashable], frozenset]:
    """A `topic` for `parts_by_topic` that no cluster crosses: topics that share clusters are taken together.

    ECB+ needs it for entities: a few gold chains, such as a place, run through two topics.

    Args:
        clusterings: the key, and the response of every system that is compared; not iterators, which can be
            read only once.
        topic: the topic of a mention.

    Returns:
        The set of topics that a mention of these clusterings is scored with; KeyError for other topics.

    Raises:
        TypeError, ValueError: as `checked_clusters`.
    """
    unit_of: dict[Hashable, frozenset] = {}
    for number, clusters in enumerate(clusterings):
        for cluster in checked_clusters(clusters, side=f"clusterings[{number}]"):
            topics = {topic(mention) for mention in cluster}
            unit = frozenset(topics.union(*(unit_of.get(one, ()) for one in topics)))
            unit_of.update(dict.fromkeys(unit, unit))
    return lambda mention: unit_of[topic(mention)]


def largest_total(rows: np.ndarray, columns: np.ndarray, weights: np.ndarray) -> float:
    """Largest sum of weights over pairs that share no row and no column; pairs not given weigh 0.

    Rows and columns fall into components that no pair connects, and the best alignment of all is the best of
    each. So no table is larger than one component, of r rows and c columns: 8 * r * c bytes.

    Args:
        rows, columns: (pair,), numbers from 0; each pair once.
        weights: (pair,), none negative.
    """
    if not len(weights):
        return 0.0
    first_column = int(rows.max()) + 1
    nodes = first_column + int(columns.max()) + 1
    graph = coo_array((np.ones(len(rows)), (rows, first_column + columns)), shape=(nodes, nodes))
    _, component = connected_components(graph, directed=False)
    order = np.argsort(component[rows], kind="stable")
    starts = np.flatnonzero(np.diff(component[rows][order])) + 1
    return math.fsum(
        _largest_of_component(rows[pairs], columns[pairs], weights[pairs])
        for pairs in np.split(order, starts)
    )


def _largest_of_component(rows: np.ndarray, columns: np.ndarray, weights: np.ndarray) -> float:
    row_numbers, row = np.unique(rows, return_inverse=True)
    column_numbers, column = np.unique(columns, return_inverse=True)
    table = np.zeros((len(row_numbers), len(column_numbers)))
    table[row, column] = weights
    return math.fsum(table[linear_sum_assignment(table, maximize=True)])


def _as_list(name: str, value: object, content: str) -> list:
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        return list(value)
    hint = "; pass its .values()" if isinstance(value, Mapping) else ""
    raise TypeError(
        f"{name} is {reprlib.repr(value)}, a {type(value).__name__}; it must be a list of {content}{hint}"
    )


def _twice(mention: Hashable, clusters: list[list], *, side: str, numbers: tuple[int, int]) -> str:
    first, second = (f"{side}[{number}]" for number in numbers)
    if first == second:
        return f"{first} has the mention {mention!r} twice; name each mention once"
    first, second = (f"{side}[{number}] = {reprlib.repr(clusters[number])}" for number in numbers)
    return f"mention {mention!r} is in {first} and in {second}; a mention belongs to one cluster"
