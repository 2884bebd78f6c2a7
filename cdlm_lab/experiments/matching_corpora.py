"""From the corpus that notebooks 04 and 05 name to pairs of documents in three splits: storyworld, SciSumm, a
collection of one's own with links, or the benchmark's CSV."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path

from cdlm_lab.data.citing_passages import citing_passages
from cdlm_lab.data.document_links import DocumentLink, Hardness, pairs_from_links
from cdlm_lab.data.document_pairs import (
    DocumentPair,
    PairDocument,
    check_splits,
    split_without_leaks,
    twins,
)
from cdlm_lab.data.linked_collection import is_linked_collection, read_linked_collection
from cdlm_lab.data.pair_csv import nltk_sentences, read_pair_csv
from cdlm_lab.data.pair_storyworld import read_storyworld_pairs
from cdlm_lab.data.scisumm import SciSumm, read_scisumm
from cdlm_lab.data.scisumm_archive import NET, TASK
from cdlm_lab.parameters import ParameterError, check_types

SPLITS = ("train", "dev", "test")
SHARES = {"train": 0.6, "dev": 0.15, "test": 0.25}  # of links
SAME_TEXT = "documents with the text of another one, which count as it"
_SUFFIXES = (".csv", ".csv.gz", ".csv.xz")
Pairs = Mapping[str, tuple[DocumentPair, ...]]  # by split


@dataclass(frozen=True, kw_only=True)
class MatchingCorpus:
    """Which documents may belong together.

    Attributes:
        corpus: `storyworld`; the folder of SciSumm; a folder of `documents.jsonl` and `links.jsonl` (see
            data/linked_collection.py); or a folder of `train.csv`, `dev.csv` and `test.csv` as the benchmark
            has them (and `test_positions.csv`, as of PAN, where there are such files).
        train_stories, held_out_stories: of storyworld.
        unrelated: `random` or `similar`. Of storyworld: reports of any two events, or of two of a kind. Of
            linked documents, which SciSumm has too, `similar` ones are drawn among the 20 cited papers whose
            words are most like those of the citing text.
        negatives_per_positive: of linked documents.
        passage_sentences: of these: how long a passage around the citation stands for the citing paper, and
            how much of the cited paper is read from its start; 0 = whole papers, and links whose citing
            sentence is not known as well.
        data_seed: of their splits and draws; models have seeds of their own.
    """

    corpus: str = "storyworld"
    train_stories: int = 150
    held_out_stories: int = 40
    unrelated: Hardness = "random"
    negatives_per_positive: int = 1
    passage_sentences: int = 10
    data_seed: int = 0

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("train_stories", "held_out_stories"):
            if getattr(self, name) < 2:
                raise ParameterError(f"{name} is {getattr(self, name)}; unrelated reports take at least 2")
        if self.negatives_per_positive < 1:
            raise ParameterError(
                f"negatives_per_positive is {self.negatives_per_positive}; without unrelated pairs there is "
                "nothing to tell apart: at least 1"
            )
        if self.passage_sentences < 0:
            raise ParameterError(
                f"passage_sentences is {self.passage_sentences}; write 0 for whole papers, or how many"
            )


def read_matching_pairs(settings: MatchingCorpus, *, lost: dict[str, list[str]] | None = None) -> Pairs:
    """Pairs of train, dev and test. `lost` gets what could not be used of SciSumm, sort -> files and lines,
    and which linked documents have the text of another one.

    No document is in two splits; but the benchmark's CSV files were split by pairs, so there it may be:
    `shared_documents` counts them.

    Raises ParameterError for a corpus that is none of the four, else what the readers raise; ValueError for
    a split with only one sort of pairs.
    """
    if settings.corpus == "storyworld":
        return _checked({split: tuple(_storyworld(split, settings)) for split in SPLITS})
    folder = Path(settings.corpus)
    if files := _csv_files(folder):
        positions = {split: _positions_of(file) for split, file in files.items()}
        # those of one split say how the sentences of all are to be counted
        cut = nltk_sentences if any(positions.values()) else None
        pairs = {
            split: tuple(read_pair_csv(file, positions=positions[split], split=cut))
            for split, file in files.items()
        }
        for split, found in pairs.items():
            check_splits({split: found})
        return pairs
    if is_linked_collection(folder):
        return _checked(linked_pairs(*read_linked_collection(folder), settings, lost))
    if any((folder / name).is_dir() or (folder / f"{name}.tar.xz").is_file() for name in (TASK, NET)):
        scisumm = read_scisumm(folder)
        if lost is not None:
            lost.update(_lost_of(scisumm, folder))
        return _checked(linked_pairs(scisumm.papers, scisumm.links, settings, lost))
    raise ParameterError(
        f"corpus is {settings.corpus!r}; write storyworld, the folder of SciSumm, a folder with "
        "documents.jsonl and links.jsonl, or one with train.csv, dev.csv and test.csv"
    )


def _lost_of(scisumm: SciSumm, folder: Path) -> dict[str, list[str]]:
    found = {
        "not read": scisumm.passed_over,
        "citing text not found in the paper": scisumm.unplaced,
        "characters lost that are not UTF-8": tuple(scisumm.replaced),
    }
    return {
        name: [place.removeprefix(f"{folder}/") for place in places]
        for name, places in found.items()
        if places
    }


def _storyworld(split: str, settings: MatchingCorpus) -> Iterator[DocumentPair]:
    stories = settings.train_stories if split == "train" else settings.held_out_stories
    return read_storyworld_pairs(split, stories, unrelated=settings.unrelated)


def linked_pairs(
    documents: Mapping[str, PairDocument],
    links: Sequence[DocumentLink],
    settings: MatchingCorpus,
    lost: dict[str, list[str]] | None = None,
) -> dict[str, tuple[DocumentPair, ...]]:
    """Links are split first, and unrelated pairs drawn within each split thereafter, so that no document is
    in two of them. Documents of one text, or of one opening where that is read, are in the same split and
    never taken for unrelated to what one of them is linked with. A pair is of the cluster of its first
    document, the whole of it."""
    kept = [link for link in links if link.in_first or not settings.passage_sentences]
    twin_of = _read_alike(documents, kept, opening=settings.passage_sentences)
    if twin_of and lost is not None:
        lost[SAME_TEXT] = [f"{twin} = {first}" for twin, first in twin_of.items()]
    split = split_without_leaks(
        kept, shares=SHARES, seed=settings.data_seed, drop_crossing=True, twin_of=twin_of
    )
    known = [*links, *_links_of_twins(links, twin_of)]
    return {
        name: tuple(_pairs_of(documents, split["validation" if name == "dev" else name], known, settings))
        for name in SPLITS
    }


def _read_alike(
    documents: Mapping[str, PairDocument], links: Sequence[DocumentLink], *, opening: int
) -> dict[str, str]:
    """Twins by their texts; and of the documents that links point to, which are read from their start, by so
    many sentences."""
    whole = twins(documents.values())
    cited = dict.fromkeys(whole.get(link.second, link.second) for link in links)
    starts = twins((documents[name] for name in cited), sentences=opening)
    owner = {name: starts.get(of, of) for name in documents for of in (whole.get(name, name),)}
    return {name: of for name, of in owner.items() if name != of}


def _links_of_twins(links: Sequence[DocumentLink], twin_of: Mapping[str, str]) -> Iterator[DocumentLink]:
    """Between twins, and between all that have the texts of two documents that are linked."""
    of_text: defaultdict[str, list[str]] = defaultdict(list)
    for twin, first in twin_of.items():
        of_text[first] = [*(of_text[first] or [first]), twin]
    same = [(first, second) for names in of_text.values() for first, second in combinations(names, 2)]
    for link in links:
        texts = [twin_of.get(document, document) for document in link.documents]
        if any(text in of_text for text in texts):
            same += product(*(of_text.get(text, [text]) for text in texts))
    for first, second in dict.fromkeys(same):
        if first != second:
            yield DocumentLink(first=first, second=second, source="the same text")


def _pairs_of(
    documents: Mapping[str, PairDocument],
    links: Sequence[DocumentLink],
    known: Sequence[DocumentLink],
    settings: MatchingCorpus,
) -> Iterator[DocumentPair]:
    """Of the links of one split; `known`: those of all."""
    whole: Mapping[str, str] = {}
    if settings.passage_sentences:
        passages = citing_passages(
            documents,
            links,
            length=settings.passage_sentences,
            opening=settings.passage_sentences,
            seed=settings.data_seed,
            known=known,
        )
        documents, links, known = passages.documents, passages.links, passages.known
        whole = passages.paper_of
    pairs = pairs_from_links(
        documents,
        links,
        negatives_per_positive=settings.negatives_per_positive,
        seed=settings.data_seed,
        hard=settings.unrelated,
        known=known,
    )
    for pair in pairs:
        yield replace(pair, cluster=whole.get(pair.cluster, pair.cluster))


def shared_documents(pairs: Pairs) -> dict[str, float]:
    """Share of the pairs of dev and test with a document that train has too."""
    seen = {one.sentences for pair in pairs["train"] for one in (pair.first, pair.second)}
    return {
        split: sum(pair.first.sentences in seen or pair.second.sentences in seen for pair in pairs[split])
        / len(pairs[split])
        for split in ("dev", "test")
    }


def _checked(pairs: Pairs) -> Pairs:
    check_splits(pairs)
    return pairs


def _csv_files(folder: Path) -> dict[str, Path]:
    """File of each split, or nothing if there is none at all.

    Raises ParameterError if some are there and others are not.
    """
    found = {
        split: file
        for split in SPLITS
        for suffix in _SUFFIXES
        if (file := folder / f"{split}{suffix}").is_file()
    }
    if found and (missing := [split for split in SPLITS if split not in found]):
        raise ParameterError(f"{folder}: there is no {missing[0]}.csv; a run needs train, dev and test")
    return found


def _positions_of(file: Path) -> Path | None:
    plain = file.name.partition(".csv")[0]
    named = (file.with_name(f"{plain}_positions{suffix}") for suffix in _SUFFIXES)
    return next((one for one in named if one.is_file()), None)
