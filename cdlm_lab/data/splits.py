"""The names of splits, and the rules by which corpora without splits are divided."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, islice
from math import isclose
from random import Random
from typing import Literal, TypeVar, get_args

from cdlm_lab.data.records import DocumentPair, PairDocument

Split = Literal["train", "validation", "test"]


SPLITS: tuple[Split, ...] = get_args(Split)


SPLIT_NAMES: dict[str, Split] = {name: name for name in SPLITS} | dict.fromkeys(
    ("valid", "val", "dev", "devel", "development", "testa"), "validation"
)
SPLIT_NAMES["testb"] = "test"  # as in CoNLL-2003, eng.testa and eng.testb


SHARES: dict[str, float] = {"train": 0.90, "validation": 0.05, "test": 0.05}  # of clusters for pre-training


def split_named(name: str) -> Split:
    """The split that a name of SPLIT_NAMES, such as "dev", stands for. Raises ValueError for other names."""
    if name not in SPLIT_NAMES:
        raise ValueError(f"split is {name!r}; choose one of train, dev, test")
    return SPLIT_NAMES[name]


def dealt(names: Iterable[str], shares: Mapping[str, float], *, salt: str = "") -> dict[str, str]:
    """Name of a group -> its split, by a hash of the name, so that adding or reordering groups moves no other
    one. `shares`: of each split, in the order in which hashes are given to them. Where that leaves a split
    empty, as in small corpora, groups are dealt by the rank of their hash: each split has its share, and at
    least one if there are enough."""
    drawn = {name: _share(salt + name) for name in names}
    borders = list(accumulate(shares.values()))
    splits = list(shares)
    by_hash = {name: splits[min(bisect_right(borders, at), len(splits) - 1)] for name, at in drawn.items()}
    if len(set(by_hash.values())) == len(splits) or len(drawn) < len(splits):
        return by_hash
    counts = {split: max(1, round(share * len(drawn))) for split, share in shares.items()}
    largest = max(counts, key=counts.__getitem__)
    counts[largest] = len(drawn) - sum(count for split, count in counts.items() if split != largest)
    ranked = iter(sorted(drawn, key=drawn.__getitem__))
    return {name: split for split, count in counts.items() for name in islice(ranked, count)}


def _share(name: str) -> float:
    return int.from_bytes(hashlib.sha256(name.encode("utf-8")).digest()[:8], "big") / 2**64


def hashed_split(cluster_id: str) -> Split:
    """The split of a cluster by a hash of its id (90/5/5), for corpora that define no splits."""
    return dealt([cluster_id], SHARES)[cluster_id]  # type: ignore[return-value]


# ---- pairs of documents ----

Item = TypeVar("Item")  # a pair or a link; its `documents` are two ids


def twins(documents: Iterable[PairDocument], *, sentences: int = 0) -> dict[str, str]:
    """Id of each document whose text an earlier document has -> id of the first document with that text.
    `sentences`: number of sentences from the start that must be equal; 0 = all."""
    first: dict[tuple[str, ...], str] = {}
    owner = {one.id: first.setdefault(one.sentences[: sentences or None], one.id) for one in documents}
    return {name: original for name, original in owner.items() if name != original}


def split_without_leaks(
    pairs: Iterable[Item],
    *,
    shares: Mapping[str, float],
    seed: int,
    drop_crossing: bool = False,
    twin_of: Mapping[str, str] | None = None,
) -> dict[Split, tuple[Item, ...]]:
    """Divide pairs or links into splits that have no document in common; the order within each is kept.

    Documents that pairs connect, directly or through others, stay in one split. These groups are assigned
    from the largest down, each to the split that lacks most pairs; `seed` draws the order of groups of one
    size. Randomly drawn unrelated pairs connect nearly all documents, so draw them afterwards within each
    split.

    Args:
        shares: share of the pairs by split name (train, validation or dev, test); they must add up to 1.
        drop_crossing: divide a group that is larger than the largest split should be. The smaller splits grow
            in it along the pairs, and pairs between documents of two splits are dropped.
        twin_of: id of a document -> id of the one that it counts as, such as one with the same text.

    Raises ValueError if the shares are invalid or a split stays empty.
    """
    wanted = _checked_shares(shares)
    items, rng, same = list(pairs), Random(seed), twin_of or {}
    ends = [tuple(same.get(document, document) for document in item.documents) for item in items]
    groups = _groups(ends, rng)
    home: dict[str, Split] = {}
    filled: Counter[Split] = Counter()
    largest = max(wanted.values()) * len(items)
    for group in sorted(groups, key=len, reverse=True):
        if drop_crossing and len(group) > largest:
            home |= _cut(group, wanted, rng)
        else:
            split = max(wanted, key=lambda name: wanted[name] * len(items) - filled[name])
            home |= dict.fromkeys(chain(*group), split)
        filled.update(home[first] for first, second in group if home[first] == home[second])
    for split in wanted:
        if not filled[split]:
            what = f"{len(items)} pairs hang together in {len(groups)} groups, so that {split} stays empty"
            raise ValueError(f"{what}; split before unrelated pairs are added, or set drop_crossing")
    splits: dict[Split, list[Item]] = {split: [] for split in wanted}
    for item, (first, second) in zip(items, ends, strict=True):
        if home[first] == home[second]:
            splits[home[first]].append(item)
    return {split: tuple(of_split) for split, of_split in splits.items()}


def check_splits(splits: Mapping[str, Iterable[DocumentPair]]) -> None:
    """Raise ValueError if a split has no pairs, or only related or only unrelated ones, or if two splits
    share a document, by its id or its text."""
    owner: dict[Hashable, tuple[str, str]] = {}
    for split, pairs in splits.items():
        classes: set[bool] = set()
        for pair in pairs:
            classes.add(pair.related)
            for document in (pair.first, pair.second):
                for key in (document.id, document.sentences):
                    other, name = owner.setdefault(key, (split, document.id))
                    if other != split:
                        raise ValueError(_leak(name, other, document.id, split))
        if not classes:
            raise ValueError(f"{split} has no pairs; give it a larger share")
        if len(classes) == 1:
            name = "related" if classes.pop() else "unrelated"
            raise ValueError(f"all pairs of {split} are {name}; a split needs both kinds")


def _leak(first: str, its_split: str, second: str, split: str) -> str:
    if first == second:
        return f"document {first} is in {its_split} and in {split}; split the pairs with split_without_leaks"
    what = f"{first} of {its_split} and {second} of {split} are the same text"
    return f"{what}; leave one of these documents out"


def _checked_shares(shares: Mapping[str, float]) -> dict[Split, float]:
    wanted: dict[Split, float] = {}
    for name, share in shares.items():
        if name not in SPLIT_NAMES:
            raise ValueError(f"{name!r} is no split; choose among train, validation (or dev) and test")
        if not share > 0:
            raise ValueError(f"the share of {name} is {share}; leave the split out, or give it more than 0")
        wanted[SPLIT_NAMES[name]] = share
    if len(wanted) < len(shares) or not isclose(sum(wanted.values()), 1.0, abs_tol=1e-6):
        raise ValueError(f"the shares {dict(shares)} do not add up to 1; name each split once")
    return wanted


Ends = Sequence[str]  # ids of the two documents of a pair


def _groups(ends: Iterable[Ends], rng: Random) -> list[list[Ends]]:
    """Group pairs that are connected by documents; the order of the groups is random."""
    from scipy.cluster.hierarchy import DisjointSet  # here: it takes a second to load

    together = DisjointSet(chain.from_iterable(ends))
    for first, second in ends:
        together.merge(first, second)
    groups: defaultdict[str, list[Ends]] = defaultdict(list)
    for both in ends:
        groups[together[both[0]]].append(both)
    drawn = list(groups.values())
    rng.shuffle(drawn)
    return drawn


def _cut(group: Sequence[Ends], shares: Mapping[Split, float], rng: Random) -> dict[str, Split]:
    """Document -> split, for one group of pairs: every split but the largest grows from a random document
    until it has its share of the pairs, and the largest takes the rest."""
    neighbours: defaultdict[str, list[str]] = defaultdict(list)
    for first, second in group:
        neighbours[first].append(second)
        neighbours[second].append(first)
    *small, largest = sorted(shares, key=lambda name: shares[name])
    places: dict[str, Split] = {}
    for split in small:
        inside = 0
        for document in _walk(neighbours, places, rng):
            places[document] = split
            inside += sum(places.get(other) == split for other in neighbours[document])
            if inside >= shares[split] * len(group):
                break
    return dict.fromkeys(neighbours, largest) | places


def _walk(neighbours: Mapping[str, Sequence[str]], taken: Mapping[str, Split], rng: Random) -> Iterator[str]:
    """Yield, breadth-first from random documents, those that were not in `taken` when the walk began."""
    seen = set(taken)
    starts = [document for document in neighbours if document not in seen]
    rng.shuffle(starts)
    for start in starts:
        queue = [] if start in seen else [start]
        seen.update(queue)
        for document in queue:  # grows while it is walked
            yield document
            fresh = [other for other in dict.fromkeys(neighbours[document]) if other not in seen]
            seen.update(fresh)
            queue.extend(fresh)
