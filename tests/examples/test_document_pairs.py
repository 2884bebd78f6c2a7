"""Pairs of documents: in one sequence, sentence by sentence, in batches; the table of an embedding."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.data.document_pairs import DocumentPair, PairDocument
from cdlm_lab.examples.document_pairs import (
    EncodedSentences,
    MatchExamples,
    PairCollate,
    SentencePairExamples,
    SentencesById,
    SentenceWords,
    embedding_table,
    encode_sentences,
    match_sequence,
)
from cdlm_lab.examples.tokens import SpecialTokens, Vocabulary
from cdlm_lab.models.matching import DocumentMatcher, HierarchicalConfig

SPECIAL = SpecialTokens(
    start=1, end=2, cls=3, sep=4, pad=0, mask=5, all_special=frozenset(range(6)), vocabulary_size=100
)


def encoded(*tokens: int, first: int = 10) -> EncodedSentences:
    """A document whose sentences have so many tokens each; its ids count up from `first`."""
    return EncodedSentences(
        input_ids=np.arange(first, first + sum(tokens), dtype=np.int32),
        sentence=np.repeat(np.arange(len(tokens), dtype=np.int32), tokens),
        sentence_count=len(tokens),
    )


def pair(name: str, first: PairDocument, second: PairDocument, *, related: bool = True) -> DocumentPair:
    return DocumentPair(id=name, first=first, second=second, related=related, aligned=None, cluster=first.id)


A = PairDocument(id="a", sentences=("w1 w2", "w3"))
B = PairDocument(id="b", sentences=("w4", "w5 w6 w7"))
C = PairDocument(id="c", sentences=("w8",))


@pytest.fixture
def examples(tokenizer, special) -> MatchExamples:
    pairs = [pair("0", A, B), pair("1", A, C, related=False), pair("2", C, B)]
    return MatchExamples(
        pairs=pairs, documents=SentencesById(pairs, tokenizer), special=special, max_length=16
    )


def test_all_of_it_by_hand():
    result = match_sequence(encoded(1, 2), encoded(3, first=20), special=SPECIAL, max_length=50)
    assert result.input_ids.tolist() == [3, 1, 10, 11, 12, 2, 1, 20, 21, 22, 2, 4]
    assert result.global_attention_mask.tolist() == [1] + [0] * 11
    assert result.side.tolist() == [-1, -1, 0, 0, 0, -1, -1, 1, 1, 1, -1, -1]
    assert result.sentence.tolist() == [-1, -1, 0, 1, 1, -1, -1, 0, 0, 0, -1, -1]
    assert result.lost_sentences == (0, 0)
    assert (result.sentence_count(0), result.sentence_count(1)) == (2, 1)
    arrays = (result.input_ids, result.global_attention_mask, result.side, result.sentence)
    assert {array.dtype for array in arrays} == {np.dtype(np.int64)}


def test_what_is_too_long_loses_its_end_and_a_short_one_leaves_room():
    # 12 tokens - 2 - 4 = 6 of text: 1 for the second, 5 for the first, which has 2 + 2 + 2 + 2
    result = match_sequence(encoded(2, 2, 2, 2), encoded(1, first=30), special=SPECIAL, max_length=12)
    assert result.input_ids.tolist() == [3, 1, 10, 11, 12, 13, 14, 2, 1, 30, 2, 4]
    assert result.sentence.tolist() == [-1, -1, 0, 0, 1, 1, 2, -1, -1, 0, -1, -1]
    assert result.lost_sentences == (1, 0), "a part of the third sentence is there, nothing of the fourth"
    assert result.sentence_count(0) == 4


def test_two_long_ones_share_alike():
    result = match_sequence(encoded(4, 4), encoded(1, 1, 1, 9, 9, first=50), special=SPECIAL, max_length=12)
    assert [(result.side == side).sum() for side in (0, 1)] == [3, 3]
    assert result.lost_sentences == (1, 2)


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=6).filter(any),
    st.lists(st.integers(0, 6), min_size=1, max_size=6).filter(any),
    st.integers(8, 60),
)
def test_whatever_is_kept_is_the_beginning_of_each_document(first, second, max_length):
    documents = (encoded(*first), encoded(*second, first=60))
    result = match_sequence(*documents, special=SPECIAL, max_length=max_length)
    assert len(result.input_ids) == min(max_length, 6 + sum(first) + sum(second))
    for side, document in enumerate(documents):
        ids, sentences = (
            array[result.side == side].tolist() for array in (result.input_ids, result.sentence)
        )
        assert 1 <= len(ids) <= len(document.input_ids)
        assert ids == document.input_ids[: len(ids)].tolist()
        assert sentences == document.sentence[: len(ids)].tolist()
        assert result.sentence_count(side) == document.sentence_count
        assert result.lost_sentences[side] == sum(n not in sentences for n in range(document.sentence_count))
    special = result.side < 0
    assert (special == (result.sentence < 0)).all()
    assert (special == (result.input_ids < 6)).all()


def test_no_room():
    assert len(match_sequence(encoded(5), encoded(5), special=SPECIAL, max_length=8).input_ids) == 8
    with pytest.raises(
        ValueError, match=r"^max_length is 7; two documents with their frames need at least 8$"
    ):
        match_sequence(encoded(5), encoded(5), special=SPECIAL, max_length=7)


def test_sentences_are_tokenised_one_by_one(tokenizer):
    result = encode_sentences(PairDocument(id="d", sentences=("w1 w2", " w3\n", "w4")), tokenizer)
    assert tokenizer.convert_ids_to_tokens(result.input_ids.tolist()) == ["w1", "w2", "w3", "w4"]
    assert result.sentence.tolist() == [0, 0, 1, 2]
    assert result.sentence_count == 3


def test_a_sentence_without_tokens_is_lost(tokenizer, special):
    class Silent:
        """As BERT's, which drops control characters."""

        def __call__(self, sentences, **settings):
            return {"input_ids": [[] if "\x07" in s else [9] * len(s.split()) for s in sentences]}

    result = encode_sentences(PairDocument(id="d", sentences=("w1", "\x07", "w2 w3")), Silent())
    assert result.sentence.tolist() == [0, 2, 2]
    sequence = match_sequence(result, result, special=special, max_length=40)
    assert sequence.lost_sentences == (1, 1)
    assert sequence.sentence_count(1) == 3
    with pytest.raises(ValueError, match="document e: its sentences have no tokens; leave it out"):
        encode_sentences(PairDocument(id="e", sentences=("\x07",)), Silent())


def test_an_example(examples, tokenizer):
    assert len(examples) == 3
    words = [tokenizer.convert_ids_to_tokens(examples[n]["input_ids"].tolist()) for n in range(3)]
    assert " ".join(words[0]) == "[CLS] <doc-s> w1 w2 w3 </doc-s> <doc-s> w4 w5 w6 w7 </doc-s> [SEP]"
    assert " ".join(words[2]) == "[CLS] <doc-s> w8 </doc-s> <doc-s> w4 w5 w6 w7 </doc-s> [SEP]"
    assert [int(example["labels"]) for example in examples] == [1, 0, 1]
    assert {key: (array.dtype.name, array.ndim) for key, array in examples[0].items()} == {
        "input_ids": ("int64", 1),
        "global_attention_mask": ("int64", 1),
        "labels": ("int64", 0),
    }


def test_without_labels_there_is_no_such_key(examples):
    assert sorted(replace(examples, labelled=False)[0]) == ["global_attention_mask", "input_ids"]


@pytest.mark.parametrize("max_length", [8, 11, 13, 64])
def test_lengths_are_those_of_the_sequences(examples, max_length):
    shorter = replace(examples, max_length=max_length)
    lengths = [shorter.length_of(n) for n in range(3)]
    assert lengths == [len(shorter[n]["input_ids"]) for n in range(3)]
    assert lengths == [min(max_length, length) for length in (13, 10, 11)]


def test_two_documents_of_one_id(tokenizer):
    same = PairDocument(id="a", sentences=A.sentences)
    assert len(SentencesById([pair("0", A, B), pair("1", same, C)], tokenizer)) == 3
    other = PairDocument(id="a", sentences=("w9",))
    message = "there are two different documents a; name them apart"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        SentencesById([pair("0", A, B), pair("1", other, C)], tokenizer)


def test_no_room_is_said_before_anything_is_read(examples):
    with pytest.raises(ValueError, match="max_length is 7; two documents with their frames need at least 8"):
        replace(examples, max_length=7)


VOCABULARY = Vocabulary.of_words(("rain", ".", "fell"))
WET = PairDocument(id="wet", sentences=("Rain fell.", "So?", "Rain, rain, rain fell."))
DRY = PairDocument(id="dry", sentences=("No.",))


def a_pair(first: PairDocument, second: PairDocument, *, related: bool) -> DocumentPair:
    return DocumentPair(
        id=f"{first.id}-{second.id}", first=first, second=second, related=related, aligned=None, cluster="c"
    )


PAIRS = (a_pair(WET, DRY, related=True), a_pair(DRY, WET, related=False), a_pair(WET, WET, related=True))


@pytest.mark.parametrize(
    ("sentences", "words", "expected"),
    [
        (9, 9, [[2, 4, 3, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0], [2, 1, 2, 1, 2, 4, 3]]),
        (2, 9, [[2, 4, 3], [1, 1, 0]]),  # the longest sentence is not among the two
        (3, 2, [[2, 4], [1, 1], [2, 1]]),
        (1, 1, [[2]]),
    ],
)
def test_words_of_sentences(sentences: int, words: int, expected: list):
    encode = SentenceWords(vocabulary=VOCABULARY, most_sentences=sentences, most_words=words)
    result = encode(WET)
    assert result.dtype == np.int64
    assert result.tolist() == expected


def test_no_sentence_is_without_a_word(tokenizer):
    """A control character has no piece; 0 in front would make the sentence one of filling."""
    document = PairDocument(id="d", sentences=("\x1c w1", "\u200b", "\x85 \u3000."))
    for vocabulary in (VOCABULARY, Vocabulary.of_tokenizer(tokenizer)):
        encode = SentenceWords(vocabulary=vocabulary, most_sentences=9, most_words=9)
        assert (encode(document)[:, 0] > 0).all()


@pytest.mark.parametrize("name", ["most_sentences", "most_words"])
def test_limits(name: str):
    limits = {"most_sentences": 1, "most_words": 1} | {name: 0}
    with pytest.raises(ValueError, match=f"^{name} is 0; it must be at least 1$"):
        SentenceWords(vocabulary=VOCABULARY, **limits)


def test_examples():
    encode = SentenceWords(vocabulary=VOCABULARY, most_sentences=2, most_words=2)
    examples = SentencePairExamples(pairs=PAIRS, encode=encode)
    assert len(examples) == 3
    assert examples[1]["first"].tolist() == [[1, 3]]
    assert examples[1]["second"].tolist() == [[2, 4], [1, 1]]
    assert [float(example["labels"]) for example in examples] == [1, 0, 1]
    assert (examples[0]["labels"].dtype, examples[0]["labels"].shape) == (np.float32, ())
    with pytest.raises(IndexError):
        examples[3]


def test_without_labels():
    examples = SentencePairExamples(pairs=PAIRS, encode=lambda _: np.ones((1, 4)), labelled=False)
    assert examples[0].keys() == {"first", "second"}


def test_each_document_is_encoded_once_and_only_when_read():
    read = []

    def encode(document: PairDocument) -> np.ndarray:
        read.append(document.id)
        return np.full((len(document.sentences), 3), len(read), dtype=np.float32)

    examples = SentencePairExamples(pairs=PAIRS, encode=encode)
    assert read == []
    assert [examples[n][side][0, 0] for n in (1, 0, 2) for side in ("first", "second")] == [1, 2, 2, 1, 2, 2]
    assert read == ["dry", "wet"]


collate = PairCollate()


def example(first: object, second: object, label: float | None = None, dtype: type = np.int64) -> dict:
    sides = {"first": np.array(first, dtype=dtype), "second": np.array(second, dtype=dtype)}
    return sides if label is None else sides | {"labels": np.array(label, dtype=np.float32)}


def test_words():
    """The example of the docstring."""
    batch = collate([example([[5, 7], [6, 0]], [[8]], 1.0), example([[9]], [[4, 3]], 0.0)])
    assert batch.keys() == {"inputs", "sentence_mask", "labels"}
    assert batch["inputs"].dtype == torch.int64
    assert batch["inputs"].tolist() == [
        [[[5, 7], [6, 0]], [[8, 0], [0, 0]]],
        [[[9, 0], [0, 0]], [[4, 3], [0, 0]]],
    ]
    assert batch["sentence_mask"].dtype == torch.bool
    assert batch["sentence_mask"].tolist() == [[[True, True], [True, False]], [[True, False], [True, False]]]
    assert batch["labels"].dtype == torch.float32
    assert batch["labels"].tolist() == [1, 0]


def test_the_longest_of_either_side_counts():
    batch = collate([example([[1]], [[2], [3], [4]]), example([[5, 6, 7]], [[8]])])
    assert batch.keys() == {"inputs", "sentence_mask"}
    assert batch["inputs"].shape == (2, 2, 3, 3)
    assert batch["sentence_mask"].sum(-1).tolist() == [[1, 3], [1, 1]]
    assert batch["inputs"][0, 1].tolist() == [[2, 0, 0], [3, 0, 0], [4, 0, 0]]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_vectors(dtype: type):
    batch = collate([example([[0.5, 1], [0, 0]], [[2, 3]], 1.0, dtype)])
    assert batch["inputs"].dtype == torch.float32
    assert batch["inputs"].tolist() == [[[[0.5, 1], [0, 0]], [[2, 3], [0, 0]]]]
    assert batch["sentence_mask"].tolist() == [[[True, True], [True, False]]]  # a vector of zeros is there


SENTENCES = ("Rain fell.", "So?", "It rained on and on, and then it rained.", "Rain, rain!", "The end")
SIZES = ((3, 1), (2, 5), (1, 1), (4, 2))  # sentences of the documents of each pair


def examples_for(encoder: str) -> SentencePairExamples:
    vocabulary = Vocabulary.of_sentences(SENTENCES, least=1)
    encode = SentenceWords(vocabulary=vocabulary, most_sentences=9, most_words=7)
    if encoder == "vectors":
        table = np.random.default_rng(0).normal(size=(len(vocabulary), 6)).astype(np.float32)
        words = encode
        encode = lambda document: table[words(document)].mean(1)  # noqa: E731
    documents = [
        [PairDocument(id=f"{n}{side}", sentences=SENTENCES[-size:]) for side, size in enumerate(sizes)]
        for n, sizes in enumerate(SIZES)
    ]
    pairs = [
        DocumentPair(id=f"{n}", first=first, second=second, related=n % 2 == 0, aligned=None, cluster="c")
        for n, (first, second) in enumerate(documents)
    ]
    return SentencePairExamples(pairs=pairs, encode=encode)


def matcher_for(encoder: str) -> DocumentMatcher:
    torch.manual_seed(0)
    cda = "deep" if encoder == "gru" else "shallow"
    config = HierarchicalConfig(
        encoder=encoder, cda=cda, vocabulary_size=30, word_size=5, vector_size=6, hidden_size=4,
        initializer_range=0.4,
    )  # fmt: skip
    return DocumentMatcher(config).eval()


@pytest.mark.parametrize("encoder", ["gru", "vectors"])
@torch.no_grad()
def test_a_pair_alone_is_the_pair_in_its_batch(encoder: str):
    model, examples = matcher_for(encoder), examples_for(encoder)
    together = model(**collate(list(examples)))
    losses = []
    for n, one in enumerate(examples):
        alone = model(**collate([one]))
        torch.testing.assert_close(alone.logits[0], together.logits[n])
        for side, size in enumerate(SIZES[n]):
            torch.testing.assert_close(alone.attention[0, side, :size], together.attention[n, side, :size])
            assert not together.attention[n, side, size:].any()
        losses.append(alone.loss)
    torch.testing.assert_close(torch.stack(losses).mean(), together.loss)
    assert together.logits.std() > 1e-3  # pairs that are all the same would show nothing


@pytest.mark.parametrize("encoder", ["gru", "vectors"])
@torch.no_grad()
def test_filling_is_inert(encoder: str):
    """More filling, and for vectors other filling, changes nothing."""
    model, batch = matcher_for(encoder), collate(list(examples_for(encoder)))
    before = model(**batch).logits
    inputs, mask = batch["inputs"], batch["sentence_mask"]
    if encoder == "vectors":
        inputs = inputs.masked_fill(~mask[..., None], 99.0)
    else:
        inputs = torch.nn.functional.pad(inputs, (0, 2, 0, 3))
        mask = torch.nn.functional.pad(mask, (0, 3))
    torch.testing.assert_close(model(inputs, mask).logits, before)


WORDS = example([[5, 7]], [[8]])


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        (
            [WORDS, example([[1]], [[0.5, 1]], dtype=np.float32)],
            "examples[1]['first'] is float32, but examples[0]['first'] int64; encode all documents alike",
        ),
        (
            [WORDS | {"second": np.ones((1, 2), dtype=np.float32)}],
            "examples[0]['second'] is float32, but examples[0]['first'] int64; encode all documents alike",
        ),
        (
            [example([[1, 2]], [[1, 2, 3]], dtype=np.float32)],
            "examples[0]['second'] has vectors of size 3, but examples[0]['first'] 2; "
            "encode all documents alike",
        ),
        (
            [example([1, 2], [[3]])],
            "examples[0]['first'] has shape (2,); it must be (sentences, words or size)",
        ),
    ],
)
def test_what_is_no_batch(examples: list, message: str):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        collate(examples)


def test_rows_in_front():
    table = embedding_table(np.array([[1.0, 2], [3, 8], [5, -1]]), size=2)
    assert table.dtype == np.float32
    assert table.tolist() == [[0, 0], [3, 3], [1, 2], [3, 8], [5, -1]]


def plane(mean: float) -> np.ndarray:
    """Forty vectors of size 6 that lie in a plane, about a mean."""
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 6))
    return (flat - flat.mean(axis=0) + mean).astype(np.float32)


@pytest.mark.parametrize("size", [2, 3])
def test_vectors_of_a_plane_keep_their_scalar_products(size: int):
    vectors = plane(mean=0)
    reduced = embedding_table(vectors, size=size)[2:]
    assert reduced.shape == (40, size)
    # As many squares, but fewer entries: for the mean of them to stay, each becomes size / 6 of itself.
    np.testing.assert_allclose(reduced @ reduced.T, vectors @ vectors.T * size / 6, atol=1e-4)


def test_the_mean_goes_and_the_size_of_entries_stays():
    vectors = plane(mean=0.7)
    table = embedding_table(vectors, size=2)
    np.testing.assert_allclose(table[1], 0, atol=1e-5)
    assert np.square(table[2:]).mean() == pytest.approx(np.square(vectors).mean(), rel=1e-5)
    centred = vectors - vectors.mean(axis=0)
    products, stretch = table[2:] @ table[2:].T, np.square(vectors).sum() / np.square(centred).sum()
    np.testing.assert_allclose(products, centred @ centred.T * stretch * 2 / 6, atol=1e-4)


def test_it_keeps_the_directions_that_differ_most():
    vectors = np.zeros((4, 3), dtype=np.float32)
    vectors[:, 1] = [3, -3, 3, -3]
    vectors[:, 2] = [1, 1, -1, -1]
    ((first,), *rest) = embedding_table(vectors, size=1)[2:]
    # mean square 40 / 12
    assert [abs(first), *(row[0] / first for row in rest)] == pytest.approx([(10 / 3) ** 0.5, -1, 1, -1])


def test_the_same_every_time():
    vectors = np.random.default_rng(1).normal(size=(600, 550))  # so large that sklearn draws
    np.testing.assert_array_equal(embedding_table(vectors, size=4), embedding_table(vectors, size=4))


@pytest.mark.parametrize(
    ("vectors", "size", "message"),
    [
        (np.ones((3, 2)), 3, "size is 3, but the vectors have 2; take 1 to 2"),
        (np.ones((3, 2)), 0, "size is 0, but the vectors have 2; take 1 to 2"),
        (np.eye(3, 9), 4, "3 vectors do not span size 4; give more, or take a smaller size"),
        (np.ones((3, 2)), 1, "all 3 vectors are alike, so that no direction tells them apart"),
        (np.ones(3), 1, "vectors has shape (3,); it must be (words, size), neither of them 0"),
        (np.ones((0, 3)), 1, "vectors has shape (0, 3); it must be (words, size), neither of them 0"),
        (np.array([[1.0], [np.nan]]), 1, "the vector of word 1 is not finite"),
    ],
)
def test_what_cannot_be_made(vectors: np.ndarray, size: int, message: str):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        embedding_table(vectors, size=size)
