"""Examples for document-attentive taggers (Joerke et al. 2020, "Doc-ARC"), from tagged documents: labelled
sequences, and the places of other occurrences of their words in the document.

Section 3: "All unlabeled (context) sequences longer than 256 tokens are partitioned into chunks". The same is
done with labelled sentences that are too long; the tags of their parts are joined again before scoring. A
single word that is too long, such as an address, becomes a sequence of which the encoders read only the first
subword tokens.

Section 2.1: "The 'closest' sequences are those with the minimum absolute difference in sentence index to the
target sentence"; "we allow sequences to attend over the target occurrence itself". Where the paper is silent,
we choose: of occurrences at the same distance the earlier is closer, and several in one sentence all count.
"""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cdlm_lab.data.records import TaggedDocument, TaggedSentence
from cdlm_lab.data.words import plain_word
from cdlm_lab.examples.passes import checked_index


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitDocument:
    """A document whose long sentences are split into sequences."""

    # Its sentences are the sequences, with all words of the original in order. The tags are those of the
    # original too, so that the later part of a span that was split starts with `I-`.
    document: TaggedDocument
    origin: tuple[int, ...]  # for each sequence, the index of the original sentence
    shortened: int = 0  # number of words too long for a sequence; only their first pieces are read


def split_long(
    document: TaggedDocument, *, pieces: Callable[[Sequence[str]], list[int]], most: int
) -> SplitDocument:
    """Split sentences between words, so that no sequence is longer than the maximum.

    Each part takes as many words as fit. Tags are ignored: where spans end is unknown for a document that is
    yet to be tagged.

    Args:
        pieces: returns the number of subword tokens of each word of a sentence.
        most: maximum subword tokens of a sequence, special tokens not counted.

    Example: with room for 4 pieces, words of 2, 1, 2 and 3 give sequences of two words, one and one.
    """
    sequences: list[TaggedSentence] = []
    origin: list[int] = []
    shortened = 0
    for number, sentence in enumerate(document.sentences):
        where, words = f"document {document.id}, sentence {number}", len(sentence.words)
        if not words:
            raise ValueError(f"{where} has no words; leave it out when reading")
        if sentence.tags is not None and len(sentence.tags) != words:
            raise ValueError(f"{where} has {words} words, but {len(sentence.tags)} tags")
        sizes = pieces(sentence.words)
        shortened += sum(size > most for size in sizes)
        parts = list(_parts(sentence, sizes, most))
        sequences += parts
        origin += [number] * len(parts)
    cut = TaggedDocument(id=document.id, sentences=tuple(sequences))
    return SplitDocument(document=cut, origin=tuple(origin), shortened=shortened)


def _parts(sentence: TaggedSentence, sizes: Sequence[int], most: int) -> Iterator[TaggedSentence]:
    """The sentence itself if it fits, else its parts."""
    edges, room = [0], most
    for place, size in enumerate(sizes):
        if size > room and place > edges[-1]:
            edges.append(place)
            room = most
        room -= size
    if len(edges) == 1:
        yield sentence
        return
    for first, stop in pairwise([*edges, len(sizes)]):
        tags = None if sentence.tags is None else sentence.tags[first:stop]
        yield TaggedSentence(words=sentence.words[first:stop], tags=tags)


def joined(split: SplitDocument, tags: Sequence[Sequence[str]]) -> list[list[str]]:
    """Join the tags of labelled sequences into those of the original's labelled sentences, in order."""
    by_sentence: dict[int, list[str]] = {}
    for number, given in zip(split.document.labelled, tags, strict=True):
        by_sentence.setdefault(split.origin[number], []).extend(given)
    return list(by_sentence.values())


# Buckets of Lee et al. 2017, "adapted" (section 2.1): 0 is added, and 4 has no bucket of its own.
_LEAST = (1, 2, 3, 4, 8, 16, 32, 64)
BUCKETS = ("0", "1", "2", "3", "4-7", "8-15", "16-31", "32-63", "64+")
_NONE = -1
_ROWS = 8192  # words processed at once: about 20 MB with K = 50, however long the document


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Occurrences:
    """The closest occurrences of each word of a document's labelled sentences, closest first; -1 = none."""

    places: np.ndarray  # int32 (words, K, 2), index of the sentence and of the word in it
    distances: np.ndarray  # int32 (words, K), difference in sentence index
    starts: np.ndarray  # int64 (labelled sentences + 1,), first row of each; last, number of words


def nearest_occurrences(document: TaggedDocument, *, most: int, target: bool = True) -> Occurrences:
    """Find the closest occurrences of words by difference in sentence index; ties go to the earlier.

    Words are the same if they are equal as `plain_word`: case matters. The time grows with the words of the
    document and with K times those of labelled sentences.

    Args:
        document: split into the sequences in which distances are counted.
        most: K; 0 for a tagger without attention to occurrences.
        target: True = the word itself is one of its occurrences; like the others of its sentence it is at
            distance 0. False = it is left out, and only it.
    """
    listing = _Listing.of(document)
    labelled = document.labelled
    queries = np.flatnonzero(np.isin(listing.sentence, labelled))
    places = np.full((len(queries), most, 2), _NONE, dtype=np.int32)
    distances = np.full((len(queries), most), _NONE, dtype=np.int32)
    for first in range(0, len(queries), _ROWS):
        rows = slice(first, first + _ROWS)
        nearest, distance = listing.nearest(queries[rows], most=most, target=target)
        exists = nearest >= 0
        distances[rows] = np.where(exists, distance, _NONE)
        places[rows, :, 0] = np.where(exists, listing.sentence[nearest], _NONE)
        places[rows, :, 1] = np.where(exists, listing.word[nearest], _NONE)
    sizes = [len(document.sentences[number].words) for number in labelled]
    return Occurrences(places=places, distances=distances, starts=np.cumsum([0, *sizes], dtype=np.int64))


def distance_bucket(distances: np.ndarray) -> np.ndarray:
    """Bucket indices (into BUCKETS) of distances in sentences, int64 of the same shape; also 0 where there is
    no occurrence (-1), so that each is a valid row of an embedding: such entries are masked by `places`."""
    return np.searchsorted(_LEAST, distances, side="right")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Listing:
    """The words of a document, numbered consecutively, in two orders in which equal words are adjacent."""

    # For each word (words,): number of its type (equal words), of its sentence, and of the word in that.
    kind: np.ndarray
    sentence: np.ndarray
    word: np.ndarray
    forth: np.ndarray  # (words,), numbers of words by type, in the order of the text
    # (words,), the same, but from the last sentence to the first; within one in the order of the text. So
    # the closest words in earlier sentences are contiguous here, as those in later ones are in `forth`, and
    # equal distances are in the order of the text.
    back: np.ndarray
    ends: np.ndarray  # (types,), end of each type in both orders

    @classmethod
    def of(cls, document: TaggedDocument) -> _Listing:
        sizes = np.array([len(sentence.words) for sentence in document.sentences], dtype=np.int64)
        number_of: dict[str, int] = {}
        words = (word for sentence in document.sentences for word in sentence.words)
        kinds = (number_of.setdefault(plain_word(word), len(number_of)) for word in words)
        kind = np.fromiter(kinds, dtype=np.int64, count=sizes.sum())
        sentence = np.repeat(np.arange(len(sizes)), sizes)
        return cls(
            kind=kind,
            sentence=sentence,
            word=np.arange(len(kind)) - np.repeat(np.cumsum(sizes) - sizes, sizes),
            forth=np.argsort(kind, kind="stable"),
            back=np.lexsort((-sentence, kind)),
            ends=np.cumsum(np.bincount(kind)),
        )

    def nearest(self, queries: np.ndarray, *, most: int, target: bool) -> tuple[np.ndarray, np.ndarray]:
        """Numbers (queries, most) of the words closest to each query word, -1 = none; and distances."""
        kind, here = self.kind[queries], self.sentence[queries]
        # One more of the later ones, since the word itself is among them and may be left out.
        earlier = self._run(self.back, -self.sentence, kind, 1 - here, most)
        later = self._run(self.forth, self.sentence, kind, here, most + 1)
        words = np.concatenate([earlier, later], axis=1)
        distance = np.abs(self.sentence[words] - here[:, None])
        wanted = (words >= 0) & (target | (words != queries[:, None]))
        far = len(self.sentence)  # greater than any distance
        nearest = np.argsort(np.where(wanted, distance, far), axis=1, kind="stable")[:, :most]
        words = np.where(wanted, words, _NONE)
        return np.take_along_axis(words, nearest, axis=1), np.take_along_axis(distance, nearest, axis=1)

    def _run(
        self, order: np.ndarray, rank: np.ndarray, kind: np.ndarray, least: np.ndarray, width: int
    ) -> np.ndarray:
        """For each type the first `width` words in `order` whose `rank` is at least `least`; -1 = none."""
        span = self.sentence.max() + 2  # ranks lie between -max and max; `least` may be one more
        keys = self.kind[order] * 2 * span + rank[order]
        places = np.searchsorted(keys, kind * 2 * span + least)[:, None] + np.arange(width)
        exists = places < self.ends[kind][:, None]
        return np.where(exists, order[np.where(exists, places, 0)], _NONE)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TagExample:
    """A labelled sequence, with the occurrences of its words."""

    document: int  # index among the documents of the examples
    sentence: int  # index of the sequence in that document
    words: tuple[str, ...]
    labels: np.ndarray  # int64 (words,), tag indices
    places: np.ndarray  # int64 (words, K, 2), sequence and word of occurrences in the document; -1 = none
    buckets: np.ndarray  # int64 (words, K), indices into BUCKETS; 0 where there is no occurrence


class TagExamples:
    """Map-style dataset with a `TagExample` for each labelled sequence, document after document.

    The occurrences of a document are found when one of its examples is first read, and cached: 9 bytes for
    each word of a labelled sequence and each of its K occurrences, nothing for words of the context.

    Attributes:
        documents: the documents that `document` of an example is an index into.
        tags: the tags that labels are indices into.
        most: K, maximum occurrences of a word; 0 for a tagger without attention to them.
        target: True = a word is one of its own occurrences.
        sequences: int64 (examples, 2), document and sequence of each example.
    """

    def __init__(
        self, documents: Sequence[SplitDocument], tags: Sequence[str], *, most: int, target: bool = True
    ) -> None:
        self.documents, self.tags, self.most, self.target = documents, tuple(tags), most, target
        self._labels = {tag: number for number, tag in enumerate(self.tags)}
        self._kept: dict[int, tuple[np.ndarray, ...]] = {}  # document -> starts, places, buckets
        pairs = [(n, sentence) for n, split in enumerate(documents) for sentence in split.document.labelled]
        self.sequences = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        for n, number in pairs:
            sentence = documents[n].document.sentences[number]
            where = f"document {documents[n].document.id}, sequence {number}"
            if unknown := set(sentence.tags) - self._labels.keys():
                raise ValueError(f"{where} has the tag {min(unknown)!r}; the tags are {', '.join(self.tags)}")

    def __len__(self) -> int:
        return len(self.sequences)

    def __getitem__(self, index: int) -> TagExample:
        document, number = self._sequence(index)
        source = self.documents[document].document
        if document not in self._kept:
            made = nearest_occurrences(source, most=self.most, target=self.target)
            self._kept[document] = made.starts, made.places, distance_bucket(made.distances).astype(np.int8)
        starts, places, buckets = self._kept[document]
        nth = bisect_left(source.labelled, number)
        rows = slice(starts[nth], starts[nth + 1])
        return TagExample(
            document=document,
            sentence=number,
            words=source.sentences[number].words,
            labels=np.array([self._labels[tag] for tag in source.sentences[number].tags], dtype=np.int64),
            places=places[rows].astype(np.int64),
            buckets=buckets[rows].astype(np.int64),
        )

    def in_order(self, order: Sequence[int] | np.ndarray) -> TagExamples:
        """A dataset of the examples with these indices, in this order, with repetitions if wanted; both
        datasets share their cache of occurrences."""
        chosen = copy.copy(self)
        chosen.sequences = np.array([self._sequence(n) for n in order], dtype=np.int64).reshape(-1, 2)
        return chosen

    def _sequence(self, index: int) -> tuple[int, int]:
        document, sentence = self.sequences[checked_index(index, len(self), "example")].tolist()
        return document, sentence


def context_of(examples: Iterable[TagExample]) -> list[tuple[int, int]]:
    """Document and sequence of all occurrences in some examples, without duplicates, sorted: what must be
    encoded for attention to them."""
    context = set()
    for example in examples:
        sequences = np.unique(example.places[..., 0])
        context.update((example.document, number) for number in sequences[sequences >= 0].tolist())
    return sorted(context)


def words_read(examples: TagExamples) -> list[tuple[str, ...]]:
    """The words of all sequences that a tagger reads for these examples, the labelled ones and those with
    occurrences, without duplicates, document after document."""
    targets = set(map(tuple, examples.sequences.tolist()))
    places = targets.union(context_of(examples[number] for number in range(len(examples))))
    return [examples.documents[number].document.sentences[place].words for number, place in sorted(places)]


def document_runs(examples: TagExamples, *, batch_size: int, rng: np.random.Generator) -> np.ndarray:
    """An order, int64 (examples,), whose batches are neighbours of one document, for sharing context.

    What a document has beyond whole batches is taken from its start and its end in random proportion, so that
    batches differ between calls. These leftovers of all documents are shuffled and form batches of several
    documents. The order of batches is random; only the last can be shorter, so the order may be cut into
    batches from its start.
    """
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
