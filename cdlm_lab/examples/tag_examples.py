"""Labelled sequences with their words' occurrences elsewhere, as examples of document-attentive taggers
(Joerke et al. 2020, "Doc-ARC", section 2)."""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cdlm_lab.data.tagged_documents import spans_of

from .occurrences import distance_bucket, nearest_occurrences
from .tag_sequences import SplitDocument


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TagExample:
    """A labelled sequence.

    Attributes:
        document: its number among the documents of the examples.
        sentence: its number in that document, in sequences.
        words: its words.
        labels: int64 (words,), numbers of tags.
        places: int64 (words, K, 2), sequence and word of each occurrence, in the same document; -1 = none.
        buckets: int64 (words, K), numbers in `occurrences.BUCKETS`; 0 where there is no occurrence.
    """

    document: int
    sentence: int
    words: tuple[str, ...]
    labels: np.ndarray
    places: np.ndarray
    buckets: np.ndarray


class TagExamples:
    """Map-style dataset with a `TagExample` for each labelled sequence, document after document.

    The occurrences of a document are looked for when one of its examples is first read, and kept: 9 bytes for
    each word of a labelled sequence and each of its K occurrences, nothing for words of the context.

    Attributes:
        documents: that `document` of an example is the number in.
        tags: that labels are the numbers in, see `tagged_documents.tag_set`.
        most: K, occurrences of a word; 0 for a tagger that looks at none.
        target: True = a word is one of its own occurrences.
        sequences: int64 (examples, 2), document and sequence of each example.

    Raises:
        ValueError: `most` below 0; a tag that is not among `tags`; tags of another number than the words.
    """

    def __init__(
        self, documents: Sequence[SplitDocument], tags: Sequence[str], *, most: int, target: bool = True
    ) -> None:
        if most < 0:
            raise ValueError(f"most is {most}; it must be at least 0")
        self.documents, self.tags, self.most, self.target = documents, tuple(tags), most, target
        self._labels = {tag: number for number, tag in enumerate(self.tags)}
        self._found: dict[int, _Kept] = {}
        for split in documents:
            self._check_tags(split)
        pairs = [(n, sentence) for n, split in enumerate(documents) for sentence in split.document.labelled]
        self.sequences = np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def __len__(self) -> int:
        return len(self.sequences)

    def __getitem__(self, index: int) -> TagExample:
        """Raises IndexError for an index below 0 or not below the number of examples."""
        document, number = self._sequence(index)
        sentence = self.documents[document].document.sentences[number]
        if document not in self._found:
            self._found[document] = _keep(self.documents[document], most=self.most, target=self.target)
        places, buckets = self._found[document].of_sentence(number)
        return TagExample(
            document=document,
            sentence=number,
            words=sentence.words,
            labels=np.array([self._labels[tag] for tag in sentence.tags], dtype=np.int64),
            places=places.astype(np.int64),
            buckets=buckets.astype(np.int64),
        )

    def in_order(self, order: Sequence[int] | np.ndarray) -> TagExamples:
        """The examples of these numbers, in this order, one maybe more than once; occurrences that one of the
        two finds, both have. Raises IndexError for an example that is not there."""
        chosen = copy.copy(self)
        chosen.sequences = np.array([self._sequence(n) for n in order], dtype=np.int64).reshape(-1, 2)
        return chosen

    def describe(self, index: int) -> str:
        """One line: the document, where the sequence stands in it, and how much there is to look at.

        Raises:
            IndexError: as `examples[index]`.
        """
        example = self[index]
        split = self.documents[example.document]
        tags = split.document.sentences[example.sentence].tags
        there = example.places[example.places[..., 0] >= 0]
        return (
            f"{split.document.id}, sentence {split.origin[example.sentence]} (sequence {example.sentence}): "
            f"{len(example.words)} words, {len(spans_of(tags))} spans, {len(there)} occurrences in "
            f"{len(np.unique(there[:, 0]))} sequences"
        )

    def _sequence(self, index: int) -> tuple[int, int]:
        number = operator.index(index)
        if not 0 <= number < len(self):
            raise IndexError(f"there is no example {number}; there are {len(self)}, counted from 0")
        document, sentence = self.sequences[number].tolist()
        return document, sentence

    def _check_tags(self, split: SplitDocument) -> None:
        for number in split.document.labelled:
            sentence = split.document.sentences[number]
            where = f"document {split.document.id}, sequence {number}"
            if unknown := set(sentence.tags) - self._labels.keys():
                raise ValueError(f"{where} has the tag {min(unknown)!r}; the tags are {', '.join(self.tags)}")
            if len(sentence.tags) != len(sentence.words):
                raise ValueError(f"{where} has {len(sentence.words)} words, but {len(sentence.tags)} tags")


def context_of(examples: Iterable[TagExample]) -> list[tuple[int, int]]:
    """Document and sequence of all places of some examples, each once, sorted: what has to be encoded so that
    their words can be looked up in it."""
    found = set()
    for example in examples:
        sequences = np.unique(example.places[..., 0])
        found.update((example.document, number) for number in sequences[sequences >= 0].tolist())
    return sorted(found)


def words_read(examples: TagExamples) -> list[tuple[str, ...]]:
    """The words of all sequences that a tagger of these examples reads: theirs, and their places', each once,
    document after document."""
    targets = set(map(tuple, examples.sequences.tolist()))
    places = targets.union(context_of(examples[number] for number in range(len(examples))))
    return [examples.documents[number].document.sentences[place].words for number, place in sorted(places)]


def document_runs(examples: TagExamples, *, batch_size: int, rng: np.random.Generator) -> np.ndarray:
    """An order, int64 (examples,), whose batches are neighbours of one document, for sharing their context.

    What a document has beyond whole batches is taken from its start and its end, how much from which is
    drawn, so that batches differ from one call to the next. These leftovers of all documents, which are
    shuffled, make batches of several documents. Batches are shuffled; only the last can be shorter, so the
    order may be cut into batches from its start.

    Raises:
        ValueError: `batch_size` below 1.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}; it must be at least 1")
    document = examples.sequences[:, 0]
    groups = np.split(np.argsort(document, kind="stable"), np.cumsum(np.bincount(document))[:-1])
    whole, rest = [], []
    for number in rng.permutation(len(groups)):
        own = groups[number]
        spare = len(own) % batch_size
        first = rng.integers(spare + 1)
        stop = len(own) - spare + first
        whole.append(own[first:stop])
        rest += [own[:first], own[stop:]]
    order = np.concatenate([*whole, *rest])
    cut = len(order) - len(order) % batch_size
    return np.concatenate([rng.permutation(order[:cut].reshape(-1, batch_size)).ravel(), order[cut:]])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Kept:
    """The occurrences of a document as small as they go: sequences that are labelled, `starts` of their rows,
    places int32 (words, K, 2), buckets int8 (words, K)."""

    labelled: np.ndarray
    starts: np.ndarray
    places: np.ndarray
    buckets: np.ndarray

    def of_sentence(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Places and buckets of the words of a labelled sequence."""
        nth = np.searchsorted(self.labelled, number)
        rows = slice(self.starts[nth], self.starts[nth + 1])
        return self.places[rows], self.buckets[rows]


def _keep(split: SplitDocument, *, most: int, target: bool) -> _Kept:
    found = nearest_occurrences(split.document, most=most, target=target)
    return _Kept(
        labelled=np.array(split.document.labelled),
        starts=found.starts,
        places=found.places,
        buckets=distance_bucket(found.distances).astype(np.int8),
    )
