"""Labelled sequences as examples, what context they ask for, and orders in which they share it."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.data.tagged import TaggedDocument, TaggedSentence, tag_set
from cdlm_lab.examples import tagging as tag_examples
from cdlm_lab.examples.tagging import (
    SplitDocument,
    TagExamples,
    context_of,
    document_runs,
    split_long,
    words_read,
)

TAGS = tag_set(("GPE", "PER"))


def sentence(words: str, tags: str | None = None) -> TaggedSentence:
    return TaggedSentence(words=tuple(words.split()), tags=None if tags is None else tuple(tags.split()))


def split(name: str, *sentences: TaggedSentence, most: int = 99) -> SplitDocument:
    document = TaggedDocument(id=name, sentences=sentences)
    return split_long(document, pieces=lambda words: [1] * len(words), most_labelled=most, most_context=most)


NOVEL = split(
    "novel",
    sentence("Florence is far"),
    sentence("far away"),
    sentence("Ann left Florence", "B-PER O B-GPE"),
    sentence("Florence left Ann Florence", "B-PER O B-PER I-PER"),
)
EMPTY = split("empty", sentence("Ann"))
PAPER = split("paper", sentence("Ann is far", "B-PER O O"), sentence("Ann"), sentence("Florence"))
DOCUMENTS = (NOVEL, EMPTY, PAPER)


@pytest.fixture
def examples() -> TagExamples:
    return TagExamples(DOCUMENTS, TAGS, most=3)


def test_an_example(examples):
    one = examples[1]
    assert (one.document, one.sentence) == (0, 3)
    assert one.words == ("Florence", "left", "Ann", "Florence")
    assert one.labels.tolist() == [3, 0, 3, 4]
    assert one.places.tolist() == [
        [[3, 0], [3, 3], [2, 2]],
        [[3, 1], [2, 1], [-1, -1]],
        [[3, 2], [2, 0], [-1, -1]],
        [[3, 0], [3, 3], [2, 2]],
    ]
    assert one.buckets.tolist() == [[0, 0, 1], [0, 1, 0], [0, 1, 0], [0, 0, 1]]
    assert {array.dtype.name for array in (one.labels, one.places, one.buckets)} == {"int64"}


def test_all_examples(examples):
    assert len(examples) == 3
    assert examples.sequences.tolist() == [[0, 2], [0, 3], [2, 0]]
    assert [one.words[0] for one in examples] == ["Ann", "Florence", "Ann"]
    assert examples[2].places[0].tolist() == [[0, 0], [1, 0], [-1, -1]], "Ann of the paper, not of the novel"
    for index in (3, -1):
        with pytest.raises(IndexError, match=f"^there is no example {index}; there are 3, counted from 0$"):
            examples[index]


def test_without_the_word_itself():
    one = TagExamples(DOCUMENTS, TAGS, most=3, target=False)[0]
    assert one.places[:, 0].tolist() == [[3, 2], [3, 1], [3, 0]]


def test_without_occurrences():
    one = TagExamples(DOCUMENTS, TAGS, most=0)[1]
    assert (one.places.shape, one.buckets.shape) == ((4, 0, 2), (4, 0))
    assert context_of([one]) == []


def test_far_occurrences_are_in_far_buckets():
    far = split("far", sentence("Ann", "O"), *[sentence("x")] * 40, sentence("Ann"), *[sentence("y")] * 30)
    far = SplitDocument(
        document=TaggedDocument(id="far", sentences=(*far.document.sentences, sentence("Ann"))),
        origin=(*far.origin, 72),
    )
    assert TagExamples([far], TAGS, most=4)[0].buckets.tolist() == [[0, 7, 8, 0]]


def test_a_document_is_searched_once_and_only_when_read(monkeypatch):
    searched = []
    search = tag_examples.nearest_occurrences

    def counted(document, **settings):
        searched.append(document.id)
        return search(document, **settings)

    monkeypatch.setattr(tag_examples, "nearest_occurrences", counted)
    examples = TagExamples(DOCUMENTS, TAGS, most=3)
    assert searched == []
    turned = examples.in_order([2, 1, 0, 2])
    assert [one.document for one in turned] == [2, 0, 0, 2]
    assert [one.document for one in examples] == [0, 0, 2]
    assert searched == ["paper", "novel"]


def test_only_occurrences_of_labelled_words_are_kept():
    """9 bytes for each of K, and little more; 20,000 words of context would be 160 kB in int64."""
    labelled = [sentence("Ann saw Ann", "O O O")] * 100
    context = [sentence(" ".join(["Ann"] * 50))] * 400
    examples = TagExamples([split("long", *labelled, *context)], TAGS, most=20)
    examples[0]
    assert 300 * 20 * 9 <= len(pickle.dumps(examples._kept)) < 300 * 20 * 9 + 3000


def test_another_order(examples):
    turned = examples.in_order(np.array([2, 0, 2]))
    assert turned.sequences.tolist() == [[2, 0], [0, 2], [2, 0]]
    assert len(examples) == 3
    assert len(examples.in_order([])) == 0
    for index in (3, -1):
        with pytest.raises(IndexError, match=f"there is no example {index}"):
            examples.in_order([0, index])


def test_descriptions(examples):
    assert examples.describe(1) == (
        "novel, sentence 3 (sequence 3): 4 words, 2 spans, 10 occurrences in 2 sequences"
    )
    cut = split("cut", sentence("a b c"), sentence("Ann of b", "B-PER I-PER O"), most=2)
    assert TagExamples([cut], TAGS, most=9).describe(1) == (
        "cut, sentence 1 (sequence 3): 1 words, 0 spans, 2 occurrences in 2 sequences"
    )


def test_context(examples):
    assert context_of([examples[0]]) == [(0, 2), (0, 3)], "the first Florence is the fourth nearest"
    assert context_of([examples[2], examples[0], examples[0]]) == [(0, 2), (0, 3), (2, 0), (2, 1)]
    assert {type(number) for pair in context_of(list(examples)) for number in pair} == {int}


def sized(sizes: list[int]) -> TagExamples:
    """As many labelled sentences in each document."""
    documents = [
        split(f"d{n}", sentence("x"), *[sentence("Ann", "O")] * size) for n, size in enumerate(sizes)
    ]
    return TagExamples(documents, TAGS, most=1)


@given(st.lists(st.integers(0, 12), max_size=8), st.integers(1, 5), st.integers(0, 9))
def test_batches_are_neighbours(sizes: list[int], batch_size: int, seed: int):
    examples = sized(sizes)
    order = document_runs(examples, batch_size=batch_size, rng=np.random.default_rng(seed))
    assert sorted(order.tolist()) == list(range(len(examples)))
    batches = [examples.sequences[order[at : at + batch_size]] for at in range(0, len(order), batch_size)]
    runs = [
        batch
        for batch in batches
        if len(batch) == batch_size and len(set(batch[:, 0])) == 1 and (np.diff(batch[:, 1]) == 1).all()
    ]
    assert len(runs) >= sum(size // batch_size for size in sizes)


def test_orders_come_from_the_generator():
    examples = sized([7, 3, 9, 4])
    orders = [
        document_runs(examples, batch_size=2, rng=np.random.default_rng(seed)).tolist()
        for seed in (0, 0, 1, 2, 3, 4)
    ]
    assert orders[0] == orders[1]
    assert len({tuple(order) for order in orders}) == 5
    firsts = {tuple(sorted(order[n : n + 2])) for order in orders for n in range(0, 23, 2)}
    assert {(0, 1), (1, 2)} <= firsts, "what a document has too many is not always the same"


@pytest.mark.parametrize(
    ("documents", "most", "message"),
    [
        (DOCUMENTS, -1, "most is -1; it must be at least 0"),
        (
            (NOVEL, split("p", sentence("x"), sentence("Rome", "B-LOC"))),
            1,
            "document p, sequence 1 has the tag 'B-LOC'; the tags are O, B-GPE, I-GPE, B-PER, I-PER",
        ),
        (
            (SplitDocument(document=TaggedDocument(id="p", sentences=(sentence("a b", "O"),)), origin=(0,)),),
            1,
            "document p, sequence 0 has 2 words, but 1 tags",
        ),
    ],
)
def test_what_makes_no_examples(documents: tuple, most: int, message: str):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        TagExamples(documents, TAGS, most=most)


def test_batches_have_at_least_one(examples):
    with pytest.raises(ValueError, match=r"^batch_size is 0; it must be at least 1$"):
        document_runs(examples, batch_size=0, rng=np.random.default_rng(0))


def test_words_read(examples):
    assert words_read(examples) == [
        ("Ann", "left", "Florence"),
        ("Florence", "left", "Ann", "Florence"),
        ("Ann", "is", "far"),
        ("Ann",),
    ], "one of the novel that is read for itself and for the other; of the context what is near enough"
    assert words_read(TagExamples(DOCUMENTS, TAGS, most=4))[0] == ("Florence", "is", "far")


def test_words_read_without_context_are_the_labelled_ones():
    assert words_read(TagExamples(DOCUMENTS, TAGS, most=0)) == [
        ("Ann", "left", "Florence"),
        ("Florence", "left", "Ann", "Florence"),
        ("Ann", "is", "far"),
    ]
