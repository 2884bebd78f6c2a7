"""What every reader of document pairs yields: two texts as sentences, whether they are related, and which
sentences of the first belong to the second. Frozen; records check themselves.

Zhou et al. 2020, "Multilevel Text Alignment with Cross-Document Attention", section 2: document matching
asks for `related`, sentence alignment for `aligned`. Also here: splits that share no document.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isclose
from random import Random
from typing import Protocol, TypeVar

from cdlm_lab.data.splits import SPLIT_NAMES, Split


class BetweenDocuments(Protocol):
    """Anything between two documents: a pair, a link."""

    @property
    def documents(self) -> tuple[str, str]:
        """Ids of the two."""
        ...


Item = TypeVar("Item", bound=BetweenDocuments)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairDocument:
    """A text as sentences, which are numbered from 0. Two documents of one id are the same text.

    Raises:
        ValueError: no id, no sentences, an empty sentence.
    """

    id: str
    sentences: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.id:
            raise ValueError("a document without id; name it")
        if not self.sentences:
            raise ValueError(f"document {self.id} has no sentences; leave it out")
        for number, sentence in enumerate(self.sentences):
            if not sentence.strip():
                raise ValueError(f"document {self.id}: sentence {number} is empty; leave it out")

    def text_of(self, sentences: Iterable[int] | None = None) -> str:
        """The given sentences, or all, with spaces between them."""
        numbers = range(len(self.sentences)) if sentences is None else sentences
        return " ".join(self.sentences[number] for number in numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPair:
    """Two documents, in order: the first cites, copies or reports what the second holds, or does not.

    Attributes:
        id: no other pair of the corpus has it.
        related: whether the relationship of interest holds.
        aligned: numbers of the sentences of `first` that belong to `second`, ascending; None if that is not
            known. Of an unrelated pair none does: (), or None.
        cluster: name of the pairs that belong together, such as those with the same first document.

    Raises:
        ValueError: no id or cluster; `aligned` that is out of order, lies outside the first document, is
            empty in a related pair or holds something in an unrelated one.
    """

    id: str
    first: PairDocument
    second: PairDocument
    related: bool
    aligned: tuple[int, ...] | None
    cluster: str

    def __post_init__(self) -> None:
        if not self.id or not self.cluster:
            name, what = (self.id, "cluster") if self.id else (str(self.documents), "id")
            raise ValueError(f"pair {name}: no {what}; name it")
        if self.aligned is None:
            return
        if self.related and not self.aligned:
            remedy = "write None if it is not known which"
            raise ValueError(f"pair {self.id} is related, but no sentence is aligned; {remedy}")
        if self.aligned and not self.related:
            what = f"it is not related, but sentence {self.aligned[0]} is aligned"
            raise ValueError(f"pair {self.id}: {what}; write () for an unrelated pair")
        check_positions(f"pair {self.id}", self.aligned, self.first)

    @property
    def documents(self) -> tuple[str, str]:
        """Ids of the two documents."""
        return self.first.id, self.second.id


def check_positions(name: str, positions: Sequence[int], document: PairDocument) -> None:
    """Whether positions are numbers of sentences of a document, ascending.

    Args:
        name: what the complaint calls their owner.

    Raises:
        ValueError: they are not.
    """
    count = len(document.sentences)
    for position in positions:
        if not 0 <= position < count:
            what = f"sentence {position} lies outside: document {document.id} has {count}"
            raise ValueError(f"{name}: {what}; sentences are numbered from 0")
    if list(positions) != sorted(set(positions)):
        raise ValueError(f"{name}: sentences {tuple(positions)} are out of order; write each once, ascending")


def twins(documents: Iterable[PairDocument], *, sentences: int = 0) -> dict[str, str]:
    """Documents with the text of an earlier one, as id -> id of the first that has it.

    Args:
        sentences: how many from the start have to be the same; 0 = all.
    """
    first: dict[tuple[str, ...], str] = {}
    owner = {one.id: first.setdefault(one.sentences[: sentences or None], one.id) for one in documents}
    return {name: of for name, of in owner.items() if name != of}


def split_without_leaks(
    pairs: Iterable[Item],
    *,
    shares: Mapping[str, float],
    seed: int,
    drop_crossing: bool = False,
    twin_of: Mapping[str, str] | None = None,
) -> dict[Split, tuple[Item, ...]]:
    """Pairs, or links, in splits of which no two have a document in common; the order within each is kept.

    Documents that pairs connect, directly or through others, stay together. The largest of such groups is
    placed first, each where most pairs are missing, so that sizes are approximate; groups of one size are
    placed in an order drawn by `seed`. Unrelated pairs of documents drawn at random connect nearly
    everything: split the related ones or the links, and draw the unrelated ones of each split thereafter.

    Args:
        shares: of the pairs, for each split by name (train, validation or dev, test); they add up to 1.
        seed: of the draws; with one seed, the same pairs in the same order are always split the same way.
        drop_crossing: cut a group that is larger than the largest split wants to be. The smaller splits grow
            in it, each from a drawn document along the pairs, and pairs between documents of two splits are
            left out.
        twin_of: documents that count as another one, as of `twins`.

    Raises:
        ValueError: an unknown split, shares that are not positive or do not add up to 1, a split that would
            be empty.
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
            places = _cut([ends[number] for number in group], wanted, rng)
        else:
            split = max(wanted, key=lambda name: wanted[name] * len(items) - filled[name])
            places = {document: split for number in group for document in ends[number]}
        home.update(places)
        filled.update(split for number in group if (split := _split_of(ends[number], home)))
    empty = [split for split in wanted if not filled[split]]
    if empty:
        what = f"{len(items)} pairs hang together in {len(groups)} groups, so that {empty[0]} stays empty"
        remedy = "split before unrelated pairs are added, or set drop_crossing"
        raise ValueError(f"{what}; {remedy}")
    found = [(item, _split_of(both, home)) for item, both in zip(items, ends, strict=True)]
    return {split: tuple(item for item, of in found if of == split) for split in wanted}


def check_splits(splits: Mapping[str, Iterable[DocumentPair]]) -> None:
    """Whether splits can be trained and tested on.

    Raises:
        ValueError: a split that has no pairs, or only related or only unrelated ones; a document, by its id
            or by its text, that is in two splits.
    """
    owner: dict[Hashable, tuple[str, str]] = {}
    for split, pairs in splits.items():
        classes: set[bool] = set()
        for pair in pairs:
            classes.add(pair.related)
            for document in (pair.first, pair.second):
                for key in (document.id, document.sentences):
                    other, name = owner.setdefault(key, (split, document.id))
                    if other == split:
                        continue
                    if name == document.id:
                        what = f"document {name} is in {other} and in {split}"
                        raise ValueError(f"{what}; split the pairs with split_without_leaks")
                    what = f"{name} of {other} and {document.id} of {split} are the same text"
                    raise ValueError(f"{what}; leave one of these documents out")
        if not classes:
            raise ValueError(f"{split} has no pairs; give it a larger share")
        if len(classes) == 1:
            name = "related" if classes.pop() else "unrelated"
            raise ValueError(f"all pairs of {split} are {name}; a split needs both kinds")


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


def _split_of(both: Sequence[str], home: Mapping[str, Split]) -> Split | None:
    """The split that both documents are in, if it is one."""
    first, second = (home[document] for document in both)
    return first if first == second else None


def _groups(ends: Sequence[Sequence[str]], rng: Random) -> list[list[int]]:
    """Numbers of the pairs that documents connect, in a drawn order of the groups."""
    parent: dict[str, str] = {}

    def root(document: str) -> str:
        while (above := parent.setdefault(document, document)) != document:
            parent[document] = document = parent[above]
        return document

    for first, second in ends:
        parent[root(first)] = root(second)
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for number, (first, _) in enumerate(ends):
        groups[root(first)].append(number)
    drawn = list(groups.values())
    rng.shuffle(drawn)
    return drawn


def _cut(ends: Sequence[Sequence[str]], shares: Mapping[Split, float], rng: Random) -> dict[str, Split]:
    """Documents of one group; all splits but the largest grow from a drawn document until they have their
    share of the pairs."""
    neighbours: defaultdict[str, list[str]] = defaultdict(list)
    for first, second in ends:
        neighbours[first].append(second)
        neighbours[second].append(first)
    *small, largest = sorted(shares, key=lambda name: shares[name])
    places: dict[str, Split] = {}
    for split in small:
        inside = 0
        for document in _walk(neighbours, places, rng):
            places[document] = split
            inside += sum(places.get(other) == split for other in neighbours[document])
            if inside >= shares[split] * len(ends):
                break
    return dict.fromkeys(neighbours, largest) | places


def _walk(neighbours: Mapping[str, Sequence[str]], taken: Mapping[str, Split], rng: Random) -> Iterator[str]:
    """Documents that were not taken when the walk began, outwards from drawn ones."""
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
