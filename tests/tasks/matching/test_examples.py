"""Pairs of documents: in one sequence, sentence by sentence, in batches; the table of an embedding."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from cdlm_lab.data.records import DocumentPair, PairDocument
from cdlm_lab.examples.tokens import SpecialTokens, Vocabulary
from cdlm_lab.tasks.matching.examples import (
    EncodedSentences,
    MatchExamples,
    PairCollate,
    SentencePairExamples,
    SentencesById,
    SentenceWords,
    embedding_table,
    encode_sentences,
    match_sequence,
    shortened,
)

SPECIAL = SpecialTokens(
    start=1, end=2, cls=3, sep=4, pad=0, mask=5, all_special=frozenset(range(6)), vocabulary_size=100
)


def encoded(*tokens: int, first: int = 10) -> EncodedSentences:
    """Make a document whose sentences have these numbers of tokens; its ids count up from `first`."""
    return EncodedSentences(
        input_ids=np.arange(first, first + sum(tokens), dtype=np.int32),
        sentence=np.repeat(np.arange(len(tokens), dtype=np.int32), tokens),
        sentence_count=len(tokens),
    )


def matched(first: EncodedSentences, second: EncodedSentences, max_length: int):
    return match_sequence(first, second, special=SPECIAL, max_length=max_length)


def document(name: str, *sentences: str) -> PairDocument:
    return PairDocument(id=name, sentences=sentences)


def pair(first: PairDocument, second: PairDocument, *, related: bool = True) -> DocumentPair:
    name = f"{first.id}-{second.id}"
    return DocumentPair(id=name, first=first, second=second, related=related, aligned=None, cluster="c")


A, B, C = document("a", "w1 w2", "w3"), document("b", "w4", "w5 w6 w7"), document("c", "w8")


def test_shortened_documents_are_runs_from_the_start_or_behind_the_headline():
    whole = [document(f"d{n}", *(f"s{n}.{k}" for k in range(2 + n))) for n in range(60)]
    given = [pair(one, other) for one, other in pairwise(whole)]
    short = list(shortened(given, fewest=3, seed=0))
    assert short == list(shortened(given, fewest=3, seed=0)) != list(shortened(given, fewest=3, seed=1))
    assert [(one.id, one.related, one.cluster) for one in short] == [(p.id, True, "c") for p in given]
    starts = set()
    for before, after in zip(given, short, strict=True):
        for old, new in ((before.first, after.first), (before.second, after.second)):
            start = old.sentences.index(new.sentences[0])
            starts.add(start)
            assert new.sentences == old.sentences[start : start + len(new.sentences)]
            assert len(new.sentences) >= min(3, len(old.sentences) - start)
            assert new.id != old.id
    assert starts == {0, 1}
    assert len({len(one.first.sentences) for one in short}) > 20, "some hardly shortened, many by much"


@pytest.fixture
def examples(tokenizer, special) -> MatchExamples:
    pairs = [pair(A, B), pair(A, C, related=False), pair(C, B)]
    documents = SentencesById(pairs, tokenizer)
    return MatchExamples(pairs=pairs, documents=documents, special=special, max_length=16)


def test_a_sequence_by_hand():
    result = matched(encoded(1, 2), encoded(3, first=20), 50)
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
    result = matched(encoded(2, 2, 2, 2), encoded(1, first=30), 12)
    assert result.input_ids.tolist() == [3, 1, 10, 11, 12, 13, 14, 2, 1, 30, 2, 4]
    assert result.sentence.tolist() == [-1, -1, 0, 0, 1, 1, 2, -1, -1, 0, -1, -1]
    assert result.lost_sentences == (1, 0), "a part of the third sentence is there, nothing of the fourth"
    assert result.sentence_count(0) == 4
    # two long ones share alike
    result = matched(encoded(4, 4), encoded(1, 1, 1, 9, 9, first=50), 12)
    assert [(result.side == side).sum() for side in (0, 1)] == [3, 3]
    assert result.lost_sentences == (1, 2)


def test_sentences_are_tokenised_one_by_one_and_one_without_tokens_is_lost(tokenizer, special):
    result = encode_sentences(document("d", "w1 w2", " w3\n", "w4"), tokenizer)
    assert tokenizer.convert_ids_to_tokens(result.input_ids.tolist()) == ["w1", "w2", "w3", "w4"]
    assert (result.sentence.tolist(), result.sentence_count) == ([0, 0, 1, 2], 3)

    class Silent:
        """A tokenizer that drops control characters, as BERT's does."""

        def __call__(self, sentences, **settings):
            return {"input_ids": [[] if "\x07" in s else [9] * len(s.split()) for s in sentences]}

    result = encode_sentences(document("d", "w1", "\x07", "w2 w3"), Silent())
    assert result.sentence.tolist() == [0, 2, 2]
    sequence = match_sequence(result, result, special=special, max_length=40)
    assert (sequence.lost_sentences, sequence.sentence_count(1)) == ((1, 1), 3)
    with pytest.raises(ValueError, match="document e: its sentences have no tokens; leave it out"):
        encode_sentences(document("e", "\x07"), Silent())


def test_examples_of_sequences(examples, tokenizer):
    assert len(examples) == 3
    words = [" ".join(tokenizer.convert_ids_to_tokens(one["input_ids"].tolist())) for one in examples]
    assert words[0] == "[CLS] <doc-s> w1 w2 w3 </doc-s> <doc-s> w4 w5 w6 w7 </doc-s> [SEP]"
    assert words[2] == "[CLS] <doc-s> w8 </doc-s> <doc-s> w4 w5 w6 w7 </doc-s> [SEP]"
    assert [int(example["labels"]) for example in examples] == [1, 0, 1]
    assert {key: (array.dtype.name, array.ndim) for key, array in examples[0].items()} == {
        "input_ids": ("int64", 1),
        "global_attention_mask": ("int64", 1),
        "labels": ("int64", 0),
    }
    assert [replace(examples, max_length=11).length_of(n) for n in range(3)] == [11, 10, 11]
    message = "^max_length is 7; two documents with their frames need at least 8$"
    with pytest.raises(ValueError, match=message):  # before anything is read
        replace(examples, max_length=7)


def test_two_documents_of_one_id(tokenizer):
    same = PairDocument(id="a", sentences=A.sentences)
    assert len(SentencesById([pair(A, B), pair(same, C)], tokenizer)) == 3
    with pytest.raises(ValueError, match=r"^there are two different documents a; name them apart$"):
        SentencesById([pair(A, B), pair(document("a", "w9"), C)], tokenizer)


VOCABULARY = Vocabulary.of_words(("rain", ".", "fell"))
WET, DRY = document("wet", "Rain fell.", "So?", "Rain, rain, rain fell."), document("dry", "No.")
PAIRS = (pair(WET, DRY), pair(DRY, WET, related=False), pair(WET, WET))


def in_words(sentences: int, words: int, vocabulary: Vocabulary = VOCABULARY) -> SentenceWords:
    return SentenceWords(vocabulary=vocabulary, most_sentences=sentences, most_words=words)


def test_words_of_sentences(tokenizer):
    for limits, expected in (
        ((9, 9), [[2, 4, 3, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0], [2, 1, 2, 1, 2, 4, 3]]),
        ((2, 9), [[2, 4, 3], [1, 1, 0]]),  # the longest sentence is not among the two
        ((3, 2), [[2, 4], [1, 1], [2, 1]]),
        ((1, 1), [[2]]),
    ):
        result = in_words(*limits)(WET)
        assert (result.dtype, result.tolist()) == (np.int64, expected)
    # A control character has no piece; 0 in front would make the sentence one of filling.
    silent = document("d", "\x1c w1", "\u200b", "\x85 \u3000.")
    for vocabulary in (VOCABULARY, Vocabulary.of_tokenizer(tokenizer)):
        assert (in_words(9, 9, vocabulary)(silent)[:, 0] > 0).all()
    for limits, name in (((0, 1), "most_sentences"), ((1, 0), "most_words")):
        with pytest.raises(ValueError, match=f"^{name} is 0; it must be at least 1$"):
            in_words(*limits)


def test_examples_of_sentences():
    examples = SentencePairExamples(pairs=PAIRS, encode=in_words(2, 2))
    assert len(examples) == 3
    assert examples[1]["first"].tolist() == [[1, 3]]
    assert examples[1]["second"].tolist() == [[2, 4], [1, 1]]
    assert [float(example["labels"]) for example in examples] == [1, 0, 1]
    assert (examples[0]["labels"].dtype, examples[0]["labels"].shape) == (np.float32, ())
    with pytest.raises(IndexError):
        examples[3]


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


def test_batches_by_hand():
    # the example of the docstring
    batch = collate([example([[5, 7], [6, 0]], [[8]], 1.0), example([[9]], [[4, 3]], 0.0)])
    kinds = {"inputs": torch.int64, "sentence_mask": torch.bool, "labels": torch.float32}
    assert {name: tensor.dtype for name, tensor in batch.items()} == kinds
    assert {name: tensor.tolist() for name, tensor in batch.items()} == {
        "inputs": [[[[5, 7], [6, 0]], [[8, 0], [0, 0]]], [[[9, 0], [0, 0]], [[4, 3], [0, 0]]]],
        "sentence_mask": [[[True, True], [True, False]], [[True, False], [True, False]]],
        "labels": [1, 0],
    }
    # the longest of either side counts
    batch = collate([example([[1]], [[2], [3], [4]]), example([[5, 6, 7]], [[8]])])
    assert batch.keys() == {"inputs", "sentence_mask"}
    assert batch["inputs"].shape == (2, 2, 3, 3)
    assert batch["sentence_mask"].sum(-1).tolist() == [[1, 3], [1, 1]]
    assert batch["inputs"][0, 1].tolist() == [[2, 0, 0], [3, 0, 0], [4, 0, 0]]
    for dtype in (np.float16, np.float32, np.float64):
        batch = collate([example([[0.5, 1], [0, 0]], [[2, 3]], 1.0, dtype)])
        assert batch["inputs"].dtype == torch.float32
        assert batch["inputs"].tolist() == [[[[0.5, 1], [0, 0]], [[2, 3], [0, 0]]]]
        assert batch["sentence_mask"].tolist() == [[[True, True], [True, False]]]  # zeros are a vector too


def plane(mean: float) -> np.ndarray:
    """Return forty vectors of size 6 that lie in a plane, with the given mean."""
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 6))
    return (flat - flat.mean(axis=0) + mean).astype(np.float32)


def test_rows_of_an_embedding_table():
    table = embedding_table(np.array([[1.0, 2], [3, 8], [5, -1]]), size=2)
    assert table.dtype == np.float32
    assert table.tolist() == [[0, 0], [3, 3], [1, 2], [3, 8], [5, -1]]
    vectors = plane(mean=0)
    for size in (2, 3):  # vectors of a plane keep their scalar products
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


def test_a_table_keeps_the_directions_that_differ_most_the_same_every_time():
    vectors = np.zeros((4, 3), dtype=np.float32)
    vectors[:, 1], vectors[:, 2] = [3, -3, 3, -3], [1, 1, -1, -1]
    ((first,), *rest) = embedding_table(vectors, size=1)[2:]
    # mean square 40 / 12
    assert [abs(first), *(row[0] / first for row in rest)] == pytest.approx([(10 / 3) ** 0.5, -1, 1, -1])
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
def test_what_is_no_table(vectors: np.ndarray, size: int, message: str):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        embedding_table(vectors, size=size)
