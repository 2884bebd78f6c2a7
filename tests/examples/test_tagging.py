"""Tagged documents: long sentences, occurrences of words, and the data set."""

import pickle
import re
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.data.tagged import TaggedDocument, TaggedSentence, tag_set
from cdlm_lab.examples import tagging as tag_examples
from cdlm_lab.examples.tagging import (
    BUCKETS,
    Occurrences,
    SplitDocument,
    TagExamples,
    context_of,
    distance_bucket,
    document_runs,
    joined,
    nearest_occurrences,
    split_long,
    words_read,
)


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
    result = joined(split, [["O", "O", "B-LOC"], ["I-LOC", "O", "O"], ("O",), ("B-PER", "O", "O", "O")])
    assert result == [["O", "O", "B-LOC", "I-LOC", "O", "O", "O"], ["B-PER", "O", "O", "O"]]


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


def document(*sentences: str) -> TaggedDocument:
    """Sentences that end in `*` are labelled."""
    made = []
    for text in sentences:
        words = tuple(text.removesuffix("*").split())
        made.append(TaggedSentence(words=words, tags=("O",) * len(words) if text.endswith("*") else None))
    return TaggedDocument(id="d", sentences=tuple(made))


def slow(source: TaggedDocument, *, most: int, target: bool) -> list[list[tuple[int, int, int]]]:
    """The definition: (distance, sentence, word) of all occurrences of each word, sorted, the first K."""
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
    """The same of what was found; what is not there must be -1 everywhere and stand last."""
    made = []
    for places, distances in zip(result.places.tolist(), result.distances.tolist(), strict=True):
        row = [(distance, *place) for distance, place in zip(distances, places, strict=True)]
        present = [one for one in row if one != (-1, -1, -1)]
        assert row == present + [(-1, -1, -1)] * (len(row) - len(present))
        made.append(present)
    return made


STORY = document("Rose saw a rose", "a dog", "Rose picked a rose a day*", "no", "a rose or Rose", "Rose*")


def test_by_hand():
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


def test_without_the_word_itself():
    result = nearest_occurrences(STORY, most=2, target=False)
    assert rows(result) == [
        [(2, 0, 0), (2, 4, 3)],
        [],
        [(0, 2, 4), (1, 1, 0)],  # the other one of its sentence stays
        [(2, 0, 3), (2, 4, 1)],
        [(0, 2, 2), (1, 1, 0)],
        [],
        [(1, 4, 3), (3, 2, 0)],
    ]


def test_of_several_in_an_earlier_sentence_the_first_come_first():
    result = nearest_occurrences(document("x x x", "x*", "x x"), most=3, target=False)
    assert rows(result) == [[(1, 0, 0), (1, 0, 1), (1, 0, 2)]]


def test_kinds_of_arrays():
    result = nearest_occurrences(STORY, most=3)
    assert (result.places.dtype, result.places.shape) == (np.int32, (7, 3, 2))
    assert (result.distances.dtype, result.distances.shape) == (np.int32, (7, 3))
    assert result.starts.dtype == np.int64


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
    result = nearest_occurrences(source, most=most, target=target)
    assert rows(result) == slow(source, most=most, target=target)
    assert result.places.shape == (result.starts[-1], most, 2)
    sizes = [len(source.sentences[number].words) for number in source.labelled]
    assert np.diff(result.starts).tolist() == sizes


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
    result = nearest_occurrences(source, most=5)
    assert result.starts[-1] == 18_000
    chosen = [0, 1, 8191, 8192, 8193, 16383, 16384, 17_999]
    number = np.repeat(np.arange(len(source.sentences)), np.diff(result.starts))
    where = [(number[row], row - result.starts[number[row]]) for row in chosen]
    places = {}
    for s, sentence in enumerate(source.sentences):
        for w, text in enumerate(sentence.words):
            places.setdefault(text, []).append((s, w))
    for row, (s, w) in zip(chosen, where, strict=True):
        same = places[source.sentences[s].words[w]]
        expected = sorted((abs(int(present - s)), present, other) for present, other in same)[:5]
        got = [
            (d, *p) for d, p in zip(result.distances[row].tolist(), result.places[row].tolist(), strict=True)
        ]
        assert [one for one in got if one[0] >= 0] == expected


def test_a_book_takes_no_long():
    """Quadratic work over the most frequent word alone would be 25,000 x 25,000."""
    source = book(150_000, labelled=100_000)
    start = time.process_time()
    result = nearest_occurrences(source, most=25)
    assert time.process_time() - start < 8
    assert result.places.shape == (150_000, 25, 2)


def test_buckets():
    distances = np.array([[0, 1, 2, 3, 4, 7, 8], [15, 16, 31, 32, 63, 64, 10**6]], dtype=np.int32)
    result = distance_bucket(distances)
    assert result.dtype == np.int64
    assert result.tolist() == [[0, 1, 2, 3, 4, 4, 5], [5, 6, 6, 7, 7, 8, 8]]
    assert distance_bucket(np.array([-1])).tolist() == [0], "a row of the embedding, and masked"


def test_names_of_buckets_say_what_is_in_them():
    for number, name in enumerate(BUCKETS):
        ends = [int(end) for end in name.removesuffix("+").split("-")]
        assert distance_bucket(np.array(ends)).tolist() == [number] * len(ends)
    assert len(BUCKETS) == distance_bucket(np.array(10**9)) + 1


def test_how_many():
    with pytest.raises(ValueError, match=r"^most is -1; it must be at least 0$"):
        nearest_occurrences(STORY, most=-1)


TAGS = tag_set(("GPE", "PER"))


def tagged(words: str, tags: str | None = None) -> TaggedSentence:
    return TaggedSentence(words=tuple(words.split()), tags=None if tags is None else tuple(tags.split()))


def split(name: str, *sentences: TaggedSentence, most: int = 99) -> SplitDocument:
    document = TaggedDocument(id=name, sentences=sentences)
    return split_long(document, pieces=lambda words: [1] * len(words), most_labelled=most, most_context=most)


NOVEL = split(
    "novel",
    tagged("Florence is far"),
    tagged("far away"),
    tagged("Ann left Florence", "B-PER O B-GPE"),
    tagged("Florence left Ann Florence", "B-PER O B-PER I-PER"),
)
EMPTY = split("empty", tagged("Ann"))
PAPER = split("paper", tagged("Ann is far", "B-PER O O"), tagged("Ann"), tagged("Florence"))
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


def test_an_example_without_the_word_itself():
    one = TagExamples(DOCUMENTS, TAGS, most=3, target=False)[0]
    assert one.places[:, 0].tolist() == [[3, 2], [3, 1], [3, 0]]


def test_without_occurrences():
    one = TagExamples(DOCUMENTS, TAGS, most=0)[1]
    assert (one.places.shape, one.buckets.shape) == ((4, 0, 2), (4, 0))
    assert context_of([one]) == []


def test_far_occurrences_are_in_far_buckets():
    far = split("far", tagged("Ann", "O"), *[tagged("x")] * 40, tagged("Ann"), *[tagged("y")] * 30)
    far = SplitDocument(
        document=TaggedDocument(id="far", sentences=(*far.document.sentences, tagged("Ann"))),
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
    labelled = [tagged("Ann saw Ann", "O O O")] * 100
    context = [tagged(" ".join(["Ann"] * 50))] * 400
    examples = TagExamples([split("long", *labelled, *context)], TAGS, most=20)
    examples[0]
    assert 300 * 20 * 9 <= len(pickle.dumps(examples._kept)) < 300 * 20 * 9 + 3000


def test_descriptions(examples):
    assert examples.describe(1) == (
        "novel, sentence 3 (sequence 3): 4 words, 2 spans, 10 occurrences in 2 sequences"
    )
    cut = split("cut", tagged("a b c"), tagged("Ann of b", "B-PER I-PER O"), most=2)
    assert TagExamples([cut], TAGS, most=9).describe(1) == (
        "cut, sentence 1 (sequence 3): 1 words, 0 spans, 2 occurrences in 2 sequences"
    )


def test_context(examples):
    assert context_of([examples[0]]) == [(0, 2), (0, 3)], "the first Florence is the fourth nearest"
    assert context_of([examples[2], examples[0], examples[0]]) == [(0, 2), (0, 3), (2, 0), (2, 1)]
    assert {type(number) for pair in context_of(list(examples)) for number in pair} == {int}


def sized(sizes: list[int]) -> TagExamples:
    """As many labelled sentences in each document."""
    documents = [split(f"d{n}", tagged("x"), *[tagged("Ann", "O")] * size) for n, size in enumerate(sizes)]
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
            (NOVEL, split("p", tagged("x"), tagged("Rome", "B-LOC"))),
            1,
            "document p, sequence 1 has the tag 'B-LOC'; the tags are O, B-GPE, I-GPE, B-PER, I-PER",
        ),
        (
            (SplitDocument(document=TaggedDocument(id="p", sentences=(tagged("a b", "O"),)), origin=(0,)),),
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
