"""Sentences cut to the length of an encoder, no word lost, and their tags put together again."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.data.tagged import TaggedDocument, TaggedSentence
from cdlm_lab.examples.tagging import SplitDocument, joined, split_long


def letters(words: tuple[str, ...]) -> list[int]:
    """A word has as many pieces as letters."""
    return [len(word) for word in words]


def sentence(words: str, tags: str | None = None) -> TaggedSentence:
    return TaggedSentence(words=tuple(words.split()), tags=None if tags is None else tuple(tags.split()))


LONDON = sentence("the old town of Bath by night", "O O O O B-GPE O O")
RAIN = sentence("it rains and it rains")
KINGS = sentence("Ann I and II", "B-PER I-PER O B-PER")
DOCUMENT = TaggedDocument(id="d", sentences=(RAIN, LONDON, KINGS, sentence("so")))


def words_of(split: SplitDocument) -> list[str]:
    return [" ".join(each.words) for each in split.document.sentences]


def test_long_sentences_are_cut():
    split = split_long(DOCUMENT, pieces=letters, most_labelled=10, most_context=7)
    assert words_of(split) == [
        "it rains", "and it", "rains", "the old town", "of Bath by", "night", "Ann I and II", "so",
    ]  # fmt: skip
    assert split.origin == (0, 0, 0, 1, 1, 1, 2, 3)
    assert split.document.id == "d"
    assert split.document.labelled == (3, 4, 5, 6)
    assert split.document.sentences[4].tags == ("O", "B-GPE", "O")
    assert split.document.sentences[6] is KINGS, "there is room for all of its 9 pieces"


def test_a_sentence_as_long_as_there_is_room_is_whole():
    for most, parts in ((17, 1), (16, 2)):  # RAIN has 2 + 5 + 3 + 2 + 5 = 17 letters
        split = split_long(
            TaggedDocument(id="r", sentences=(RAIN,)), pieces=letters, most_labelled=1, most_context=most
        )
        assert len(split.origin) == parts


def test_a_span_may_be_cut():
    split = split_long(DOCUMENT, pieces=letters, most_labelled=5, most_context=9)
    parts = [s for s, origin in zip(split.document.sentences, split.origin, strict=True) if origin == 2]
    assert [part.tags for part in parts] == [("B-PER", "I-PER"), ("O", "B-PER")]
    tight = split_long(
        TaggedDocument(id="k", sentences=(KINGS,)), pieces=letters, most_labelled=3, most_context=1
    )
    assert words_of(tight) == ["Ann", "I", "and", "II"]
    assert [part.tags for part in tight.document.sentences][1] == ("I-PER",), "as in the original"


def test_tags_are_joined():
    split = split_long(DOCUMENT, pieces=letters, most_labelled=10, most_context=7)
    found = joined(split, [["O", "O", "B-LOC"], ["I-LOC", "O", "O"], ("O",), ("B-PER", "O", "O", "O")])
    assert found == [["O", "O", "B-LOC", "I-LOC", "O", "O", "O"], ["B-PER", "O", "O", "O"]]


SIZES = st.lists(st.integers(0, 6), min_size=1, max_size=12)


@given(st.lists(st.tuples(SIZES, st.booleans()), max_size=6), st.integers(6, 15), st.integers(6, 15))
def test_no_word_is_lost_and_no_part_is_longer_than_it_must(sentences, most_labelled: int, most_context: int):
    original = TaggedDocument(
        id="d",
        sentences=tuple(
            TaggedSentence(
                words=tuple("x" * size + f"-{n}" for n, size in enumerate(sizes)),
                tags=tuple(f"B-{n}" for n in range(len(sizes))) if labelled else None,
            )
            for sizes, labelled in sentences
        ),
    )

    def pieces(words: tuple[str, ...]) -> list[int]:
        return [word.index("-") for word in words]

    split = split_long(original, pieces=pieces, most_labelled=most_labelled, most_context=most_context)
    gold = [original.sentences[number].tags for number in original.labelled]
    parts = [split.document.sentences[number].tags for number in split.document.labelled]
    assert joined(split, parts) == [list(tags) for tags in gold]
    for number, whole in enumerate(original.sentences):
        own = [
            s for s, origin in zip(split.document.sentences, split.origin, strict=True) if origin == number
        ]
        assert sum((part.words for part in own), ()) == whole.words
        most = most_context if whole.tags is None else most_labelled
        lengths = [sum(pieces(part.words)) for part in own]
        assert max(lengths) <= most
        firsts = [pieces(part.words)[0] for part in own]
        assert all(length + first > most for length, first in zip(lengths, firsts[1:], strict=False)), (
            "the next word had no room"
        )
        assert {part.tags is None for part in own} == {whole.tags is None}
    assert list(split.origin) == sorted(split.origin)


def test_a_word_without_room_is_a_sequence_and_is_counted():
    document = TaggedDocument(id="d", sentences=(RAIN, LONDON, sentence("sleeping")))
    split = split_long(document, pieces=letters, most_labelled=4, most_context=5)
    assert words_of(split) == [
        "it", "rains", "and it", "rains", "the", "old", "town", "of", "Bath", "by", "night", "sleeping",
    ]  # fmt: skip
    assert split.shortened == 2, "night and sleeping"
    assert joined(split, [["O"] * len(s.words) for s in split.document.sentences if s.tags])
    assert split_long(document, pieces=letters, most_labelled=5, most_context=8).shortened == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"most_labelled": 0}, "most_labelled is 0; it must be at least 1"),
        ({"most_context": -1}, "most_context is -1; it must be at least 1"),
    ],
)
def test_what_cannot_be_cut(changes: dict, message: str):
    limits = {"most_labelled": 9, "most_context": 9} | changes
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        split_long(DOCUMENT, pieces=letters, **limits)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (sentence(""), "document d, sentence 1 has no words; leave it out when reading"),
        (sentence("a b", "O"), "document d, sentence 1 has 2 words, but 1 tags"),
    ],
)
def test_sentences_that_are_none(broken: TaggedSentence, message: str):
    document = TaggedDocument(id="d", sentences=(RAIN, broken))
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        split_long(document, pieces=letters, most_labelled=9, most_context=9)


def test_pieces_of_other_words():
    message = "document d, sentence 0 has 5 words, but `pieces` gives numbers for 4"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        split_long(DOCUMENT, pieces=lambda words: [1] * 4, most_labelled=9, most_context=9)


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ([["O"]], "document d has 2 labelled sequences, but there are tags of 1"),
        ([["O"] * 7, ["O"] * 3], "document d, sequence 2 has 4 words, but there are tags of 3"),
    ],
)
def test_tags_that_fit_no_sequence(tags: list, message: str):
    split = split_long(DOCUMENT, pieces=letters, most_labelled=99, most_context=99)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        joined(split, tags)
