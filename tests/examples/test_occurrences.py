"""Nearest occurrences of the same word: worked by hand, against a slow definition, and fast for a book."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.data.tagged import TaggedDocument, TaggedSentence
from cdlm_lab.examples.tagging import BUCKETS, Occurrences, distance_bucket, nearest_occurrences


def document(*sentences: str) -> TaggedDocument:
    """Sentences that end in `*` are labelled."""
    made = []
    for text in sentences:
        words = tuple(text.removesuffix("*").split())
        made.append(TaggedSentence(words=words, tags=("O",) * len(words) if text.endswith("*") else None))
    return TaggedDocument(id="d", sentences=tuple(made))


def slow(source: TaggedDocument, *, most: int, target: bool) -> list[list[tuple[int, int, int]]]:
    """The definition: (distance, sentence, word) of all occurrences of each word, sorted, the first K."""
    found = []
    for here in source.labelled:
        for place, word in enumerate(source.sentences[here].words):
            same = [
                (abs(there - here), there, other)
                for there, sentence in enumerate(source.sentences)
                for other, text in enumerate(sentence.words)
                if text == word and (target or (there, other) != (here, place))
            ]
            found.append(sorted(same)[:most])
    return found


def rows(found: Occurrences) -> list[list[tuple[int, int, int]]]:
    """The same of what was found; what is not there must be -1 everywhere and stand last."""
    made = []
    for places, distances in zip(found.places.tolist(), found.distances.tolist(), strict=True):
        row = [(distance, *place) for distance, place in zip(distances, places, strict=True)]
        there = [one for one in row if one != (-1, -1, -1)]
        assert row == there + [(-1, -1, -1)] * (len(row) - len(there))
        made.append(there)
    return made


STORY = document("Rose saw a rose", "a dog", "Rose picked a rose a day*", "no", "a rose or Rose", "Rose*")


def test_by_hand():
    found = nearest_occurrences(STORY, most=4)
    assert found.starts.tolist() == [0, 6, 7]
    assert rows(found) == [
        [(0, 2, 0), (2, 0, 0), (2, 4, 3), (3, 5, 0)],  # Rose: of two at distance 2 the earlier first
        [(0, 2, 1)],  # picked
        [(0, 2, 2), (0, 2, 4), (1, 1, 0), (2, 0, 2)],  # a: twice in its own sentence; that of 4 is the fifth
        [(0, 2, 3), (2, 0, 3), (2, 4, 1)],  # rose is not Rose
        [(0, 2, 2), (0, 2, 4), (1, 1, 0), (2, 0, 2)],
        [(0, 2, 5)],
        [(0, 5, 0), (1, 4, 3), (3, 2, 0), (5, 0, 0)],
    ]


def test_without_the_word_itself():
    found = nearest_occurrences(STORY, most=2, target=False)
    assert rows(found) == [
        [(2, 0, 0), (2, 4, 3)],
        [],
        [(0, 2, 4), (1, 1, 0)],  # the other one of its sentence stays
        [(2, 0, 3), (2, 4, 1)],
        [(0, 2, 2), (1, 1, 0)],
        [],
        [(1, 4, 3), (3, 2, 0)],
    ]


def test_of_several_in_an_earlier_sentence_the_first_come_first():
    found = nearest_occurrences(document("x x x", "x*", "x x"), most=3, target=False)
    assert rows(found) == [[(1, 0, 0), (1, 0, 1), (1, 0, 2)]]


def test_kinds_of_arrays():
    found = nearest_occurrences(STORY, most=3)
    assert (found.places.dtype, found.places.shape) == (np.int32, (7, 3, 2))
    assert (found.distances.dtype, found.distances.shape) == (np.int32, (7, 3))
    assert found.starts.dtype == np.int64


WORDS = st.lists(st.sampled_from(["a", "A", "b", "a\0", "ä", "cc"]), max_size=6)
SENTENCES = st.builds(
    lambda words, labelled: TaggedSentence(
        words=tuple(words), tags=("O",) * len(words) if labelled else None
    ),
    WORDS,
    st.booleans(),
)


@given(st.lists(SENTENCES, max_size=9), st.integers(0, 7), st.booleans())
def test_as_the_definition_says(sentences: list[TaggedSentence], most: int, target: bool):
    source = TaggedDocument(id="d", sentences=tuple(sentences))
    found = nearest_occurrences(source, most=most, target=target)
    assert rows(found) == slow(source, most=most, target=target)
    assert found.places.shape == (found.starts[-1], most, 2)
    sizes = [len(source.sentences[number].words) for number in source.labelled]
    assert np.diff(found.starts).tolist() == sizes


def book(words: int, *, labelled: int, seed: int = 0) -> TaggedDocument:
    """Words as often as Zipf says, in sentences of 5 to 34; the first `labelled` sentences are labelled."""
    chance = np.random.default_rng(seed)
    texts = [f"w{number}" for number in np.minimum(chance.zipf(1.2, size=words), 20_000)]
    edges = np.cumsum(chance.integers(5, 35, size=words // 5))
    edges = [0, *edges[edges < words], words]
    sentences = (tuple(texts[a:b]) for a, b in pairwise(edges))
    return TaggedDocument(
        id="book",
        sentences=tuple(
            TaggedSentence(words=each, tags=("O",) * len(each) if number < labelled else None)
            for number, each in enumerate(sentences)
        ),
    )


def test_a_document_of_several_blocks():
    """More labelled words than are looked for at once; the ends and a draw of the rest."""
    source = book(18_000, labelled=10_000)
    found = nearest_occurrences(source, most=5)
    assert found.starts[-1] == 18_000
    chosen = [0, 1, 8191, 8192, 8193, 16383, 16384, 17_999]
    number = np.repeat(np.arange(len(source.sentences)), np.diff(found.starts))
    where = [(number[row], row - found.starts[number[row]]) for row in chosen]
    places = {}
    for s, sentence in enumerate(source.sentences):
        for w, text in enumerate(sentence.words):
            places.setdefault(text, []).append((s, w))
    for row, (s, w) in zip(chosen, where, strict=True):
        same = places[source.sentences[s].words[w]]
        expected = sorted((abs(int(there - s)), there, other) for there, other in same)[:5]
        got = [
            (d, *p) for d, p in zip(found.distances[row].tolist(), found.places[row].tolist(), strict=True)
        ]
        assert [one for one in got if one[0] >= 0] == expected


def test_a_book_takes_no_long():
    """Quadratic work over the most frequent word alone would be 25,000 x 25,000."""
    source = book(150_000, labelled=100_000)
    start = time.process_time()
    found = nearest_occurrences(source, most=25)
    assert time.process_time() - start < 8
    assert found.places.shape == (150_000, 25, 2)


def test_buckets():
    distances = np.array([[0, 1, 2, 3, 4, 7, 8], [15, 16, 31, 32, 63, 64, 10**6]], dtype=np.int32)
    found = distance_bucket(distances)
    assert found.dtype == np.int64
    assert found.tolist() == [[0, 1, 2, 3, 4, 4, 5], [5, 6, 6, 7, 7, 8, 8]]
    assert distance_bucket(np.array([-1])).tolist() == [0], "a row of the embedding, and masked"


def test_names_of_buckets_say_what_is_in_them():
    for number, name in enumerate(BUCKETS):
        ends = [int(end) for end in name.removesuffix("+").split("-")]
        assert distance_bucket(np.array(ends)).tolist() == [number] * len(ends)
    assert len(BUCKETS) == distance_bucket(np.array(10**9)) + 1


def test_how_many():
    with pytest.raises(ValueError, match=r"^most is -1; it must be at least 0$"):
        nearest_occurrences(STORY, most=-1)
