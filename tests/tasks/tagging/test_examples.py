"""Tagged documents: long sentences, occurrences of words, and the data set."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.data.records import TaggedDocument, TaggedSentence
from cdlm_lab.data.tags import tag_set
from cdlm_lab.tasks.tagging import examples as tagging
from cdlm_lab.tasks.tagging.examples import (
    Occurrences,
    SplitDocument,
    TagExamples,
    context_of,
    document_runs,
    joined,
    nearest_occurrences,
    split_long,
    words_read,
)


def letters(words: tuple[str, ...]) -> list[int]:
    """Return as many subwords for each word as it has letters."""
    return [len(word) for word in words]


def sentence(words: str, tags: str | None = None) -> TaggedSentence:
    return TaggedSentence(words=tuple(words.split()), tags=None if tags is None else tuple(tags.split()))


def document(*sentences: TaggedSentence, name: str = "d") -> TaggedDocument:
    return TaggedDocument(id=name, sentences=sentences)


LONDON = sentence("the old town of Bath by night", "O O O O B-GPE O O")
RAIN = sentence("it rains and it rains")
KINGS = sentence("Ann I and II", "B-PER I-PER O B-PER")
DOCUMENT = document(RAIN, LONDON, KINGS, sentence("so"))


def cut(whole: TaggedDocument, *, most: int = 9, pieces=letters) -> SplitDocument:
    return split_long(whole, pieces=pieces, most=most)


def words_of(split: SplitDocument) -> str:
    return " | ".join(" ".join(each.words) for each in split.document.sentences)


def parts_of(split: SplitDocument, number: int) -> list[TaggedSentence]:
    return [s for s, origin in zip(split.document.sentences, split.origin, strict=True) if origin == number]


def test_long_sentences_are_cut_and_their_tags_joined():
    split = cut(DOCUMENT, most=10)
    assert (
        words_of(split) == "it rains and | it rains | the old town | of Bath by | night | Ann I and II | so"
    )
    assert split.origin == (0, 0, 1, 1, 1, 2, 3)
    assert (split.document.id, split.document.labelled) == ("d", (2, 3, 4, 5))
    assert split.document.sentences[3].tags == ("O", "B-GPE", "O")
    assert split.document.sentences[5] is KINGS, "there is room for all of its 9 pieces"
    tags = joined(split, [["O", "O", "B-LOC"], ["I-LOC", "O", "O"], ("O",), ("B-PER", "O", "O", "O")])
    assert tags == [["O", "O", "B-LOC", "I-LOC", "O", "O", "O"], ["B-PER", "O", "O", "O"]]
    for most, parts in ((17, 1), (16, 2)):  # RAIN has 2 + 5 + 3 + 2 + 5 = 17 letters
        assert len(cut(document(RAIN), most=most).origin) == parts


SIZES = st.lists(st.integers(0, 6), min_size=1, max_size=12)


@given(st.lists(st.tuples(SIZES, st.booleans()), max_size=6), st.integers(6, 15))
def test_no_word_is_lost_and_no_part_is_longer_than_it_must(sentences, most: int):
    original = document(
        *(
            TaggedSentence(
                words=tuple("x" * size + f"-{n}" for n, size in enumerate(sizes)),
                tags=tuple(f"B-{n}" for n in range(len(sizes))) if has_tags else None,
            )
            for sizes, has_tags in sentences
        )
    )

    def pieces(words: tuple[str, ...]) -> list[int]:
        return [word.index("-") for word in words]

    split = cut(original, most=most, pieces=pieces)
    gold = [list(original.sentences[number].tags) for number in original.labelled]
    assert (
        joined(split, [split.document.sentences[number].tags for number in split.document.labelled]) == gold
    )
    for number, whole in enumerate(original.sentences):
        own = parts_of(split, number)
        assert sum((part.words for part in own), ()) == whole.words
        lengths = [sum(pieces(part.words)) for part in own]
        assert max(lengths) <= most
        firsts = [pieces(part.words)[0] for part in own[1:]]  # the next word had no room
        assert all(length + first > most for length, first in zip(lengths, firsts, strict=False))
        assert {part.tags is None for part in own} == {whole.tags is None}
    assert list(split.origin) == sorted(split.origin)


def test_a_word_without_room_is_a_sequence_and_is_counted():
    whole = document(RAIN, LONDON, sentence("sleeping"))
    split = cut(whole, most=4)
    everyone = "it | rains | and | it | rains | the | old | town | of | Bath | by | night | sleeping"
    assert (words_of(split), split.shortened) == (everyone, 4), "rains, rains, night and sleeping"
    assert joined(split, [["O"] * len(s.words) for s in split.document.sentences if s.tags])
    assert cut(whole, most=8).shortened == 0


def examples_of(*sentences: TaggedSentence, most: int = 1) -> TagExamples:
    plain = document(*sentences, name="p")
    return TagExamples([SplitDocument(document=plain, origin=tuple(range(len(sentences))))], TAGS, most=most)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: cut(document(RAIN, sentence(""))), "document d, sentence 1 has no words; leave it out when"),
    (lambda: cut(document(RAIN, sentence("a b", "O"))), "document d, sentence 1 has 2 words, but 1 tags"),
    (lambda: examples_of(RAIN, sentence("Rome", "B-LOC")), "document p, sequence 1 has the tag 'B-LOC';"),
])  # fmt: skip
def test_what_is_refused(call, message: str):
    with pytest.raises(ValueError, match=message):
        call()


def texts(*sentences: str) -> TaggedDocument:
    """Make a document; sentences that end in `*` are labelled."""
    plain = [text.removesuffix("*") for text in sentences]
    tags = ["O " * len(text.split()) if text.endswith("*") else None for text in sentences]
    return document(*map(sentence, plain, tags))


def slow(source: TaggedDocument, *, most: int, target: bool) -> list[list[tuple[int, int, int]]]:
    """Compute by definition the first K of each word's sorted occurrences, (distance, sentence, word)."""
    result = []
    for here in source.labelled:
        for place, word in enumerate(source.sentences[here].words):
            same = [
                (abs(present - here), present, other)
                for present, sentence in enumerate(source.sentences)
                for other, text in enumerate(sentence.words)
                if text == word and (target or (present, other) != (here, place))
            ]
            result.append(sorted(same)[:most])
    return result


def rows(result: Occurrences) -> list[list[tuple[int, int, int]]]:
    """Return a result as (distance, sentence, word); absent occurrences must be last, and -1 everywhere."""
    made = []
    for places, distances in zip(result.places.tolist(), result.distances.tolist(), strict=True):
        row = [(distance, *place) for distance, place in zip(distances, places, strict=True)]
        present = [one for one in row if one != (-1, -1, -1)]
        assert row == present + [(-1, -1, -1)] * (len(row) - len(present))
        made.append(present)
    return made


STORY = texts("Rose saw a rose", "a dog", "Rose picked a rose a day*", "no", "a rose or Rose", "Rose*")


def test_occurrences_by_hand():
    result = nearest_occurrences(STORY, most=4)
    assert result.starts.tolist() == [0, 6, 7]
    assert rows(result) == [
        [(0, 2, 0), (2, 0, 0), (2, 4, 3), (3, 5, 0)],  # Rose: of two at distance 2 the earlier first
        [(0, 2, 1)],  # picked
        [(0, 2, 2), (0, 2, 4), (1, 1, 0), (2, 0, 2)],  # a: twice in its own sentence; that of 4 is the fifth
        [(0, 2, 3), (2, 0, 3), (2, 4, 1)],  # rose is not Rose
        [(0, 2, 2), (0, 2, 4), (1, 1, 0), (2, 0, 2)],
        [(0, 2, 5)],
        [(0, 5, 0), (1, 4, 3), (3, 2, 0), (5, 0, 0)],
    ]
    assert (result.places.dtype, result.places.shape) == (np.int32, (7, 4, 2))
    assert (result.distances.dtype, result.distances.shape) == (np.int32, (7, 4))
    assert result.starts.dtype == np.int64
    # without the word itself the other one of its sentence stays
    assert rows(nearest_occurrences(STORY, most=2, target=False)) == [
        [(2, 0, 0), (2, 4, 3)],
        [],
        [(0, 2, 4), (1, 1, 0)],
        [(2, 0, 3), (2, 4, 1)],
        [(0, 2, 2), (1, 1, 0)],
        [],
        [(1, 4, 3), (3, 2, 0)],
    ]
    # of several in an earlier sentence the first come first
    result = nearest_occurrences(texts("x x x", "x*", "x x"), most=3, target=False)
    assert rows(result) == [[(1, 0, 0), (1, 0, 1), (1, 0, 2)]]


WORDS = st.lists(st.sampled_from(["a", "A", "b", "a\0", "ä", "cc"]), max_size=6).map(tuple)
SENTENCES = st.tuples(WORDS, st.booleans()).map(
    lambda drawn: TaggedSentence(words=drawn[0], tags=("O",) * len(drawn[0]) if drawn[1] else None)
)


@given(st.lists(SENTENCES, max_size=9), st.integers(0, 7), st.booleans())
def test_occurrences_are_as_the_definition_says(sentences: list[TaggedSentence], most: int, target: bool):
    source = document(*sentences)
    result = nearest_occurrences(source, most=most, target=target)
    assert rows(result) == slow(source, most=most, target=target)
    assert result.places.shape == (result.starts[-1], most, 2)
    sizes = [len(source.sentences[number].words) for number in source.labelled]
    assert np.diff(result.starts).tolist() == sizes


def book(words: int, *, labelled: int, seed: int = 0) -> TaggedDocument:
    """Make a book of Zipf-distributed words in sentences of 5 to 34; the first `labelled` are labelled."""
    chance = np.random.default_rng(seed)
    drawn = [f"w{number}" for number in np.minimum(chance.zipf(1.2, size=words), 20_000)]
    edges = np.cumsum(chance.integers(5, 35, size=words // 5))
    sentences = (tuple(drawn[a:b]) for a, b in pairwise([0, *edges[edges < words], words]))
    return document(
        *(
            TaggedSentence(words=each, tags=("O",) * len(each) if number < labelled else None)
            for number, each in enumerate(sentences)
        )
    )


def test_buckets():
    distances = np.array([[0, 1, 2, 3, 4, 7, 8], [15, 16, 31, 32, 63, 64, 10**6]], dtype=np.int32)
    result = tagging.distance_bucket(distances)
    assert result.dtype == np.int64
    assert result.tolist() == [[0, 1, 2, 3, 4, 4, 5], [5, 6, 6, 7, 7, 8, 8]]
    assert tagging.distance_bucket(np.array([-1])).tolist() == [0], "a row of the embedding, and masked"
    for number, name in enumerate(tagging.BUCKETS):
        ends = [int(end) for end in name.removesuffix("+").split("-")]
        assert tagging.distance_bucket(np.array(ends)).tolist() == [number] * len(ends)
    assert len(tagging.BUCKETS) == tagging.distance_bucket(np.array(10**9)) + 1


TAGS = tag_set(("GPE", "PER"))


def split(name: str, *sentences: TaggedSentence, most: int = 99) -> SplitDocument:
    whole = document(*sentences, name=name)
    return split_long(whole, pieces=lambda words: [1] * len(words), most=most)


NOVEL = split(
    "novel",
    sentence("Florence is far"),
    sentence("far away"),
    sentence("Ann left Florence", "B-PER O B-GPE"),
    sentence("Florence left Ann Florence", "B-PER O B-PER I-PER"),
)
PAPER = split("paper", sentence("Ann is far", "B-PER O O"), sentence("Ann"), sentence("Florence"))
DOCUMENTS = (NOVEL, split("empty", sentence("Ann")), PAPER)


@pytest.fixture
def examples() -> TagExamples:
    return TagExamples(DOCUMENTS, TAGS, most=3)


def test_examples_by_hand(examples):
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
    assert len(examples) == 3
    assert examples.sequences.tolist() == [[0, 2], [0, 3], [2, 0]]
    assert [one.words[0] for one in examples] == ["Ann", "Florence", "Ann"]
    assert examples[2].places[0].tolist() == [[0, 0], [1, 0], [-1, -1]], "Ann of the paper, not of the novel"
    without = TagExamples(DOCUMENTS, TAGS, most=3, target=False)[0]
    assert without.places[:, 0].tolist() == [[3, 2], [3, 1], [3, 0]]
    none = TagExamples(DOCUMENTS, TAGS, most=0)[1]
    assert (none.places.shape, none.buckets.shape) == ((4, 0, 2), (4, 0))
    assert context_of([none]) == []


def test_a_document_is_searched_once_and_only_when_read(monkeypatch):
    searched = []
    search = tagging.nearest_occurrences

    def counted(document, **settings):
        searched.append(document.id)
        return search(document, **settings)

    monkeypatch.setattr(tagging, "nearest_occurrences", counted)
    examples = TagExamples(DOCUMENTS, TAGS, most=3)
    assert searched == []
    assert [one.document for one in examples.in_order([2, 1, 0, 2])] == [2, 0, 0, 2]
    assert [one.document for one in examples] == [0, 0, 2]
    assert searched == ["paper", "novel"]


def test_context_and_words_read(examples):
    assert context_of([examples[0]]) == [(0, 2), (0, 3)], "the first Florence is the fourth nearest"
    assert context_of([examples[2], examples[0], examples[0]]) == [(0, 2), (0, 3), (2, 0), (2, 1)]
    assert {type(number) for pair in context_of(list(examples)) for number in pair} == {int}
    labelled = [("Ann", "left", "Florence"), ("Florence", "left", "Ann", "Florence"), ("Ann", "is", "far")]
    # One of the novel is read for itself and for the other; of the context what is near enough.
    assert words_read(examples) == [*labelled, ("Ann",)]
    assert words_read(TagExamples(DOCUMENTS, TAGS, most=4))[0] == ("Florence", "is", "far")
    assert words_read(TagExamples(DOCUMENTS, TAGS, most=0)) == labelled


def sized(sizes: list[int]) -> TagExamples:
    """Make examples of documents with these numbers of labelled sentences."""
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
    whole = [batch for batch in batches if len(batch) == batch_size and len(set(batch[:, 0])) == 1]
    runs = [batch for batch in whole if (np.diff(batch[:, 1]) == 1).all()]
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
