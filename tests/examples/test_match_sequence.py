"""Two documents in one sequence: where each token comes from, what is cut, and the data set of pairs."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.data.document_pairs import DocumentPair, PairDocument
from cdlm_lab.examples.collate import Collate
from cdlm_lab.examples.document_pairs import (
    EncodedSentences,
    MatchExamples,
    SentencesById,
    encode_sentences,
    match_sequence,
)
from cdlm_lab.examples.tokens import SpecialTokens
from cdlm_lab.models.encoder import byte_level_tokenizer

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
    found = match_sequence(encoded(1, 2), encoded(3, first=20), special=SPECIAL, max_length=50)
    assert found.input_ids.tolist() == [3, 1, 10, 11, 12, 2, 1, 20, 21, 22, 2, 4]
    assert found.global_attention_mask.tolist() == [1] + [0] * 11
    assert found.side.tolist() == [-1, -1, 0, 0, 0, -1, -1, 1, 1, 1, -1, -1]
    assert found.sentence.tolist() == [-1, -1, 0, 1, 1, -1, -1, 0, 0, 0, -1, -1]
    assert found.lost_sentences == (0, 0)
    assert (found.sentence_count(0), found.sentence_count(1)) == (2, 1)
    arrays = (found.input_ids, found.global_attention_mask, found.side, found.sentence)
    assert {array.dtype for array in arrays} == {np.dtype(np.int64)}


def test_what_is_too_long_loses_its_end_and_a_short_one_leaves_room():
    # 12 tokens - 2 - 4 = 6 of text: 1 for the second, 5 for the first, which has 2 + 2 + 2 + 2
    found = match_sequence(encoded(2, 2, 2, 2), encoded(1, first=30), special=SPECIAL, max_length=12)
    assert found.input_ids.tolist() == [3, 1, 10, 11, 12, 13, 14, 2, 1, 30, 2, 4]
    assert found.sentence.tolist() == [-1, -1, 0, 0, 1, 1, 2, -1, -1, 0, -1, -1]
    assert found.lost_sentences == (1, 0), "a part of the third sentence is there, nothing of the fourth"
    assert found.sentence_count(0) == 4


def test_two_long_ones_share_alike():
    found = match_sequence(encoded(4, 4), encoded(1, 1, 1, 9, 9, first=50), special=SPECIAL, max_length=12)
    assert [(found.side == side).sum() for side in (0, 1)] == [3, 3]
    assert found.lost_sentences == (1, 2)


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=6).filter(any),
    st.lists(st.integers(0, 6), min_size=1, max_size=6).filter(any),
    st.integers(8, 60),
)
def test_whatever_is_kept_is_the_beginning_of_each_document(first, second, max_length):
    documents = (encoded(*first), encoded(*second, first=60))
    found = match_sequence(*documents, special=SPECIAL, max_length=max_length)
    assert len(found.input_ids) == min(max_length, 6 + sum(first) + sum(second))
    for side, document in enumerate(documents):
        ids, sentences = (array[found.side == side].tolist() for array in (found.input_ids, found.sentence))
        assert 1 <= len(ids) <= len(document.input_ids)
        assert ids == document.input_ids[: len(ids)].tolist()
        assert sentences == document.sentence[: len(ids)].tolist()
        assert found.sentence_count(side) == document.sentence_count
        assert found.lost_sentences[side] == sum(n not in sentences for n in range(document.sentence_count))
    special = found.side < 0
    assert (special == (found.sentence < 0)).all()
    assert (special == (found.input_ids < 6)).all()


def test_no_room():
    assert len(match_sequence(encoded(5), encoded(5), special=SPECIAL, max_length=8).input_ids) == 8
    with pytest.raises(
        ValueError, match=r"^max_length is 7; two documents with their frames need at least 8$"
    ):
        match_sequence(encoded(5), encoded(5), special=SPECIAL, max_length=7)


def test_sentences_are_tokenised_one_by_one(tokenizer):
    found = encode_sentences(PairDocument(id="d", sentences=("w1 w2", " w3\n", "w4")), tokenizer)
    assert tokenizer.convert_ids_to_tokens(found.input_ids.tolist()) == ["w1", "w2", "w3", "w4"]
    assert found.sentence.tolist() == [0, 0, 1, 2]
    assert found.sentence_count == 3


def test_special_tokens_in_a_text_are_text(tokenizer, special):
    sentences = ("w1 </doc-s> [MASK] w2", "[PAD][CLS]")
    found = encode_sentences(PairDocument(id="d", sentences=sentences), tokenizer)
    unknown = {tokenizer.unk_token_id}
    assert set(found.input_ids[special.is_special(found.input_ids)].tolist()) <= unknown
    assert found.sentence.max() == 1


def test_each_sentence_is_read_as_if_a_space_stood_before_it():
    """A byte-level BPE without a prefix of its own tells a word within a text from one at its start."""
    tokenizer = byte_level_tokenizer(iter(["fire fire fire smoke smoke"]), vocabulary=300)
    tokenizer.backend_tokenizer.pre_tokenizer.add_prefix_space = False
    found = encode_sentences(PairDocument(id="d", sentences=("fire fire", "fire")), tokenizer)
    assert len(set(found.input_ids.tolist())) == 1
    assert found.sentence.tolist() == [0, 0, 1]


def test_a_sentence_without_tokens_is_lost(tokenizer, special):
    class Silent:
        """As BERT's, which drops control characters."""

        def __call__(self, sentences, **settings):
            return {"input_ids": [[] if "\x07" in s else [9] * len(s.split()) for s in sentences]}

    found = encode_sentences(PairDocument(id="d", sentences=("w1", "\x07", "w2 w3")), Silent())
    assert found.sentence.tolist() == [0, 2, 2]
    sequence = match_sequence(found, found, special=special, max_length=40)
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


def test_pairs_in_another_order(examples):
    turned = examples.in_order(np.array([2, 0]))
    assert [p.id for p in turned.pairs] == ["2", "0"]
    assert turned[0]["input_ids"].tolist() == examples[2]["input_ids"].tolist()
    assert turned.documents is examples.documents, "nothing is tokenised again"
    with pytest.raises(IndexError, match="there is no pair -1"):
        examples.in_order([0, -1])


def test_a_document_is_tokenised_once_for_all_of_its_pairs(examples, tokenizer):
    seen = []

    def counting(sentences, **settings):
        seen.append(sentences[0])
        return tokenizer(sentences, **settings)

    documents = SentencesById(examples.pairs, counting)
    assert (sorted(documents), len(documents), "a" in documents, "x" in documents) == (
        ["a", "b", "c"], 3, True, False,
    )  # fmt: skip
    assert seen == []
    counted = replace(examples, documents=documents)
    for number in (0, 1, 2, 0):
        counted.length_of(number)
        counted[number]
    assert sorted(seen) == [" w1 w2", " w4", " w8"]


def test_two_documents_of_one_id(tokenizer):
    same = PairDocument(id="a", sentences=A.sentences)
    assert len(SentencesById([pair("0", A, B), pair("1", same, C)], tokenizer)) == 3
    other = PairDocument(id="a", sentences=("w9",))
    message = "there are two different documents a; name them apart"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        SentencesById([pair("0", A, B), pair("1", other, C)], tokenizer)


def test_examples_go_into_batches(examples):
    batch = Collate(pad_token_id=0)([examples[n] for n in range(3)])
    assert batch["labels"].tolist() == [1, 0, 1]
    assert str(batch["labels"].dtype) == "torch.int64"
    assert batch["attention_mask"].sum(1).tolist() == [13, 10, 11]
    assert batch["global_attention_mask"].tolist() == [[1] + [0] * 12] * 3


def test_no_room_is_said_before_anything_is_read(examples):
    with pytest.raises(ValueError, match="max_length is 7; two documents with their frames need at least 8"):
        replace(examples, max_length=7)


@pytest.mark.parametrize("index", [-1, 3])
def test_indices_outside(examples, index):
    for read in (examples.__getitem__, examples.describe, examples.length_of):
        with pytest.raises(IndexError, match=f"^there is no pair {index}; there are 3, counted from 0$"):
            read(index)
