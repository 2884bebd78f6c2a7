"""Pieces of words and whose they are, by a tokenizer of whole words and by a byte-level one."""

import numpy as np
import pytest

from cdlm_lab.examples.tokens import tokenise_words
from cdlm_lab.models.encoder import load_tokenizer


def test_pieces_and_their_words(tokenizer):
    ids, numbers = tokenise_words(["w1", "w3 w2", "\x07", "w9"], tokenizer)
    assert tokenizer.convert_ids_to_tokens(ids) == ["w1", "w3", "w2", "[UNK]", "w9"]
    assert numbers.tolist() == [0, 1, 1, 2, 3]
    assert (ids.dtype, numbers.dtype) == (np.int64, np.int64)


def test_a_word_that_leaves_no_piece_is_skipped(tokenizer):
    _, numbers = tokenise_words(["w1", "\t", "w2"], tokenizer)
    assert numbers.tolist() == [0, 2]


def test_special_tokens_in_a_text_are_text_and_none_is_added(tokenizer):
    ids, _ = tokenise_words(["[MASK]", "<doc-s>", "w1"], tokenizer)
    assert not set(tokenizer.all_special_ids) - {tokenizer.unk_token_id} & set(ids.tolist())
    assert tokenizer.convert_ids_to_tokens([ids[-1]]) == ["w1"]


def test_a_word_is_what_it_is_within_a_text():
    tokenizer = load_tokenizer("tiny")
    ids, _ = tokenise_words(["the", "ferry"], tokenizer)
    assert ids.tolist() == tokenizer(" the ferry", add_special_tokens=False)["input_ids"]
    assert ids.tolist() != tokenizer("theferry", add_special_tokens=False)["input_ids"]


def test_more_words_than_the_model_takes_are_no_reason_to_warn(tokenizer, caplog):
    assert tokenizer.model_max_length == 16
    ids, _ = tokenise_words(["w1"] * 17, tokenizer)
    assert len(ids) == 17
    assert not caplog.records


@pytest.mark.parametrize("words", [["w1"], ("w1", "w2")])
def test_any_sequence_of_words(tokenizer, words):
    assert tokenise_words(words, tokenizer)[1].tolist() == list(range(len(words)))
