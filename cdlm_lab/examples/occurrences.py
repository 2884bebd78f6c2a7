"""Where the words of labelled sentences stand elsewhere in their document (Joerke et al. 2020, "Doc-ARC",
section 2.1: the K closest occurrences of the same word type).

"The 'closest' sequences are those with the minimum absolute difference in sentence index to the target
sentence"; "we allow sequences to attend over the target occurrence itself". The paper leaves open, and we
choose: of occurrences at the same distance the earlier is nearer, and several in one sentence count each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cdlm_lab.data.tagged_documents import TaggedDocument

# Those of Lee et al. 2017, "adapted" (section 2.1): with 0, and 4 is not one of its own.
_LEAST = (1, 2, 3, 4, 8, 16, 32, 64)
BUCKETS = ("0", "1", "2", "3", "4-7", "8-15", "16-31", "32-63", "64+")
_NONE = -1
_ROWS = 8192  # words looked for at once: with K = 50 some 20 MB, however long the book


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Occurrences:
    """The nearest occurrences of each word of the labelled sentences of a document, nearest first.

    Attributes:
        places: int32 (words, K, 2), number of the sentence in the document and of the word in it; -1 where
            there are fewer than K.
        distances: int32 (words, K), between the numbers of the sentences; -1 where there are fewer.
        starts: int64 (labelled sentences + 1,), the first row of each labelled sentence and, last, the number
            of words.
    """

    places: np.ndarray
    distances: np.ndarray
    starts: np.ndarray


def nearest_occurrences(document: TaggedDocument, *, most: int, target: bool = True) -> Occurrences:
    """Find them, by the difference of the numbers of the sentences, at the same difference the earlier first.

    Words are of one type if they are the same string: case counts. The time grows with the words of the
    document and with K times those of labelled sentences.

    Args:
        document: in the sequences that distances are counted in.
        most: K; 0 for a tagger that looks at no other occurrence.
        target: True = the word itself is one of its occurrences; like the others of its sentence it is at
            distance 0. False = it is left out, and only it.

    Raises:
        ValueError: `most` below 0.
    """
    if most < 0:
        raise ValueError(f"most is {most}; it must be at least 0")
    listing = _Listing.of(document)
    labelled = document.labelled
    asked = np.flatnonzero(np.isin(listing.sentence, labelled))
    places = np.full((len(asked), most, 2), _NONE, dtype=np.int32)
    distances = np.full((len(asked), most), _NONE, dtype=np.int32)
    for first in range(0, len(asked), _ROWS):
        rows = slice(first, first + _ROWS)
        found, distance = listing.nearest(asked[rows], most=most, target=target)
        there = found >= 0
        distances[rows] = np.where(there, distance, _NONE)
        places[rows, :, 0] = np.where(there, listing.sentence[found], _NONE)
        places[rows, :, 1] = np.where(there, listing.word[found], _NONE)
    sizes = [len(document.sentences[number].words) for number in labelled]
    return Occurrences(places=places, distances=distances, starts=np.cumsum([0, *sizes], dtype=np.int64))


def distance_bucket(distances: np.ndarray) -> np.ndarray:
    """Numbers in BUCKETS of distances in sentences, int64 of the same shape; 0 too where there is no
    occurrence (-1), so that each is a row of an embedding: masks come from places."""
    return np.searchsorted(_LEAST, distances, side="right")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Listing:
    """The words of a document, numbered through, in two orders in which those of a type stand together.

    Attributes:
        kind, sentence, word: (words,), of each word its type, its sentence and its number in that.
        forth: (words,), numbers of words by type, in the order of the text.
        back: (words,), the same, but from the last sentence to the first; within one in the order of the
            text. So what is nearest in earlier sentences stands in one piece here, as that in later ones
            does in `forth`, with equal distances in the order of the text.
        ends: (types,), where each type ends in both.
    """

    kind: np.ndarray
    sentence: np.ndarray
    word: np.ndarray
    forth: np.ndarray
    back: np.ndarray
    ends: np.ndarray

    @classmethod
    def of(cls, document: TaggedDocument) -> _Listing:
        sizes = np.array([len(sentence.words) for sentence in document.sentences], dtype=np.int64)
        kind = np.fromiter(_types(document), dtype=np.int64, count=sizes.sum())
        sentence = np.repeat(np.arange(len(sizes)), sizes)
        return cls(
            kind=kind,
            sentence=sentence,
            word=np.arange(len(kind)) - np.repeat(np.cumsum(sizes) - sizes, sizes),
            forth=np.argsort(kind, kind="stable"),
            back=np.lexsort((-sentence, kind)),
            ends=np.cumsum(np.bincount(kind)),
        )

    def nearest(self, asked: np.ndarray, *, most: int, target: bool) -> tuple[np.ndarray, np.ndarray]:
        """Numbers (asked, most) of the words nearest to each of those asked about, -1 = none; distances."""
        kind, here = self.kind[asked], self.sentence[asked]
        # One more of the later ones, as the word itself is among them and may be left out.
        earlier = self._run(self.back, -self.sentence, kind, 1 - here, most)
        later = self._run(self.forth, self.sentence, kind, here, most + 1)
        found = np.concatenate([earlier, later], axis=1)
        distance = np.abs(self.sentence[found] - here[:, None])
        wanted = (found >= 0) & (target | (found != asked[:, None]))
        far = len(self.sentence)  # farther than any
        nearest = np.argsort(np.where(wanted, distance, far), axis=1, kind="stable")[:, :most]
        found = np.where(wanted, found, _NONE)
        return np.take_along_axis(found, nearest, axis=1), np.take_along_axis(distance, nearest, axis=1)

    def _run(
        self, order: np.ndarray, rank: np.ndarray, kind: np.ndarray, least: np.ndarray, width: int
    ) -> np.ndarray:
        """Of each type the first `width` words in `order` whose `rank` is at least `least`; -1 = none."""
        span = self.sentence.max() + 2  # ranks lie between -max and max; `least` may be one more
        keys = self.kind[order] * 2 * span + rank[order]
        places = np.searchsorted(keys, kind * 2 * span + least)[:, None] + np.arange(width)
        there = places < self.ends[kind][:, None]
        return np.where(there, order[np.where(there, places, 0)], _NONE)


def _types(document: TaggedDocument) -> Iterator[int]:
    """A number for each word, the same for the same string."""
    numbers: dict[str, int] = {}
    for sentence in document.sentences:
        for word in sentence.words:
            yield numbers.setdefault(word, len(numbers))
