"""From a pile of articles to clusters of reports of one event: `cdlm_lab.mine`, `cdlm-lab mine`.

1. Near duplicates are put aside: of articles whose five-grams have a Jaccard index above 0.7 the first stays.
2. Two articles are similar if the cosine of their TF-IDF vectors is at least 0.12 and their dates are at most
   three days apart; an article without a date is near every day, but takes a cosine of 0.17, and of 0.22
   where no article has a date.
3. Complete linkage: in a cluster all articles are similar to each other.

The thresholds are the best of the train part of AllSides' events (B-cubed F1); data/results/mining.md has the
scores on the others, and what dates and linkage are worth. Similarity across days is never needed, so large
piles are mined in parts of some days each (`mining/parts.py`), with the same result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from pydantic import Field
from scipy.sparse import csr_matrix

from cdlm_lab.mining import similarity
from cdlm_lab.mining.articles import Article, Pile
from cdlm_lab.mining.linkage import complete_linkage, joined
from cdlm_lab.mining.similarity import Pairs
from cdlm_lab.parameters import settings
from cdlm_lab.progress import tracked

SURE_DUPLICATE = 0.5  # least cosine of two articles that are compared word by word
UNDATED = {"some": 0.17, "all": 0.22}  # least cosine where one has no date, if some or all have none
HELD_OUT = 0.05  # share of the clusters for validation, and for test, if split by date


@settings
class MineSettings:
    """How clusters are found."""

    threshold: float = Field(default=0.12, gt=0, le=1)  # least cosine of two articles of a cluster
    threshold_undated: float | None = Field(default=None, gt=0, le=1)  # where one has no date; None = UNDATED
    days: int = Field(default=3, ge=0)  # most days between two articles of a cluster
    duplicates: float = Field(default=0.7, gt=0, le=1)  # Jaccard index above which one is a copy
    least: int = Field(default=2, ge=1)  # articles of a cluster; smaller ones are left out
    most: int = Field(default=0, ge=0)  # larger ones are divided, in order of time; 0 = they stay whole
    dates: bool = True  # False: dates are ignored, and every article is compared with every other
    by_date: bool = False  # True: the last clusters are for test, those before for validation


Compare = Callable[[Sequence[Article], MineSettings], Pairs]


@dataclass(frozen=True, kw_only=True)
class Mined:
    """The clusters of a pile, in order of their first day, and what else became of its articles."""

    clusters: list[list[Article]]  # of at least `least` articles, without near duplicates
    splits: list[str]  # of each cluster: train, validation or test; "" = the reader decides
    labels: dict[str, str]  # id of every article, duplicates too -> id of its cluster: its first article
    copies: dict[str, str]  # id of a near duplicate -> id of the article that stays
    apart: list[str]  # ids of articles that were kept apart
    pile: list[Article]  # all articles, in order of day
    faults: dict[str, list[str]] = field(default_factory=dict)  # reason -> places in the input

    def records(self) -> Iterator[dict[str, Any]]:
        """Each cluster as an object of a line of JSON, which the notebooks take as `corpus`."""
        for cluster, split in zip(self.clusters, self.splits, strict=True):
            record = {"id": cluster[0].id, "documents": [article.record for article in cluster]}
            yield record | ({"split": split} if split else {})

    @property
    def undated(self) -> int:
        """Number of articles without a date."""
        return sum(article.day is None for article in self.pile)

    @property
    def sizes(self) -> Counter[int]:
        """Number of articles -> number of clusters with so many."""
        return Counter(map(len, self.clusters))


def find_clusters(
    pile: Pile,
    chosen: MineSettings | None = None,
    *,
    apart: Collection[Article] = (),
    compare: Compare | None = None,
) -> Mined:
    """The clusters of a pile in memory. `apart`: articles that are to be judged later; those of the pile with
    their ids, their texts (near duplicates) or dates within `days` of theirs are kept apart, and so are those
    without a date. `compare`: finds the similar pairs of articles; None = `all_pairs`."""
    chosen = chosen or MineSettings()
    articles, kept_apart = kept_from(pile.articles, apart, days=chosen.days)
    pairs = (compare or all_pairs)(articles, chosen)
    copies = copies_among(articles, pairs, chosen)
    return clusters_from(replace(pile, articles=articles), pairs, copies, chosen, apart=kept_apart)


def all_pairs(articles: Sequence[Article], chosen: MineSettings) -> Pairs:
    """All pairs of articles that may be of one cluster, found in this process."""
    vectors, days = vectors_of(articles), days_of(articles, dates=chosen.dates)
    return pairs_among(vectors, days, range(len(articles)), chosen)


def days_of(articles: Sequence[Article], *, dates: bool = True) -> np.ndarray:
    """The day of each article, float (article,); nan = without a date, or `dates` are to be ignored."""
    return np.array([np.nan if one.day is None or not dates else one.day for one in articles], dtype=float)


def vectors_of(articles: Sequence[Article]) -> csr_matrix:
    """TF-IDF vectors (article, word), made with a progress bar."""
    counted = tracked(articles, desc="counting words", unit="article")
    return similarity.vectors_of(counted, count=len(articles))


def pairs_among(vectors: csr_matrix, days: np.ndarray, places: range, chosen: MineSettings) -> Pairs:
    """All pairs of the articles at these places with those before them that may be of one cluster."""
    undated = chosen.threshold_undated or UNDATED["all" if np.isnan(days).all() else "some"]
    form = {"least": (chosen.threshold, undated), "window": chosen.days}
    blocks = similarity.similar_pairs(vectors, days, places, **form)
    count = -(-len(places) // similarity.BLOCK)
    parts = [*tracked(blocks, total=count, desc="comparing articles", unit="block")]
    empty = Pairs(*(np.zeros(0, dtype=kind) for kind in (int, int, float)))
    return Pairs(*(np.concatenate(part) for part in zip(empty, *parts, strict=True)))


def copies_among(articles: Sequence[Article], pairs: Pairs, chosen: MineSettings) -> list[tuple[int, int]]:
    """The pairs (first, second) of near duplicates, by their places."""
    close = np.flatnonzero(pairs.cosine >= SURE_DUPLICATE)
    grams: dict[int, frozenset[int]] = {}
    copies = []
    for place in close:
        sides = int(pairs.first[place]), int(pairs.second[place])
        for side in sides:
            if side not in grams:
                grams[side] = similarity.grams_of(articles[side])
        if similarity.jaccard(*(grams[side] for side in sides)) > chosen.duplicates:
            copies.append(sides)
    return copies


def clusters_from(
    pile: Pile,
    pairs: Pairs,
    copies: Iterable[tuple[int, int]],
    chosen: MineSettings,
    *,
    apart: Sequence[str] = (),
) -> Mined:
    """Clusters of the articles that are no copies, from the pairs that are similar."""
    articles = pile.articles
    kept = joined(copies, items=len(articles))  # of each group of copies the first
    own = kept[pairs.first] == pairs.first, kept[pairs.second] == pairs.second
    use = own[0] & own[1]
    cluster = complete_linkage(*(part[use] for part in pairs), items=len(articles))
    members: dict[int, list[Article]] = {}
    for place, article in enumerate(articles):
        if kept[place] == place:
            members.setdefault(int(cluster[place]), []).append(article)
    divided = (part for group in members.values() for part in in_parts(group, chosen.most))
    clusters = [group for group in divided if len(group) >= chosen.least]
    copied = {articles[place].id: articles[first].id for place, first in enumerate(kept) if first != place}
    return Mined(
        clusters=clusters,
        splits=splits_of(len(clusters)) if chosen.by_date else [""] * len(clusters),
        labels={one.id: articles[cluster[kept[place]]].id for place, one in enumerate(articles)},
        copies=copied,
        apart=list(apart),
        pile=articles,
        faults=pile.faults,
    )


def in_parts(group: list[Article], most: int) -> list[list[Article]]:
    """A cluster, or equal parts of it with at most `most` articles (0 = any number), in order of time."""
    count = -(-len(group) // most) if most else 1
    bounds = [round(place * len(group) / count) for place in range(count + 1)]
    return [group[start:stop] for start, stop in pairwise(bounds)]


def splits_of(clusters: int) -> list[str]:
    """The split of each of the clusters in order of time: the last 5% (at least one) for test, those before
    for validation."""
    held_out = max(1, round(HELD_OUT * clusters))
    train = max(0, clusters - 2 * held_out)
    return [*["train"] * train, *["validation"] * min(held_out, clusters), *["test"] * held_out][:clusters]


def kept_from(
    articles: Sequence[Article], apart: Collection[Article], *, days: int
) -> tuple[list[Article], list[str]]:
    """The articles that have nothing to do with those in `apart`, and the ids of the others."""
    if not apart:
        return list(articles), []
    names = {article.id for article in apart}
    dated = {article.day for article in apart if article.day is not None}
    near = {day + shift for day in dated for shift in range(-days, days + 1)}
    kept = [one for one in articles if one.id not in names and one.day is not None and one.day not in near]
    copies = _copied(kept, [article for article in apart if article.day is None])
    ids = {article.id for article in kept} - copies
    return [one for one in kept if one.id in ids], [one.id for one in articles if one.id not in ids]


def _copied(articles: Sequence[Article], originals: Sequence[Article]) -> set[str]:
    """Ids of the articles that share half of the five-grams of one of the originals, or more."""
    holders: dict[int, set[int]] = {}
    sizes = []
    for number, original in enumerate(originals):
        grams = similarity.grams_of(original)
        sizes.append(len(grams))
        for gram in grams:
            holders.setdefault(gram, set()).add(number)
    copies = set()
    for article in articles if originals else ():
        shared = Counter(number for gram in similarity.grams_of(article) for number in holders.get(gram, ()))
        if any(2 * count >= sizes[number] for number, count in shared.items()):
            copies.add(article.id)
    return copies
