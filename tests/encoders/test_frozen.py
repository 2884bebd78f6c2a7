"""Vectors of sentences and words: layers and means, independent of the batch; no word is lost, and the
fingerprint covers everything that they depend on."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from attention_cases import longformer
from torch import Tensor, nn
from transformers import LongformerModel

from cdlm_lab.encoders import frozen
from cdlm_lab.encoders.encoder import load_tokenizer
from cdlm_lab.encoders.frozen import SentenceEncoder, WordEncoder, load_sentence_encoder, load_word_encoder
from cdlm_lab.encoders.packed import replace_self_attention

SENTENCES = ["w1 w2 w3", "w4", "w5 w6 w7 w8 w9 w10 w11", "w3 w2", "w12 w13 w14 w15"]
WORDS_OF_SENTENCES = [
    ["w1", "w2 w3", "w4"],  # an odd space within a word, which the tokenizer cuts at: two pieces
    ["w4"],
    ["w5", "w6 w7 w8", "w9", "w10", "w11"],
    ["w3", "\t"],  # a word of which the tokenizer leaves nothing
    ["w12", "w13 w14"],
]


@pytest.fixture(scope="module")
def encoder(bert) -> SentenceEncoder:
    return load_sentence_encoder(bert, max_tokens=9)


@pytest.fixture(scope="module")
def word_encoder(bert) -> WordEncoder:
    return load_word_encoder(bert, layers=2, max_tokens=9)


def alone(encoder: SentenceEncoder, *tokens: int) -> np.ndarray:
    """Return the mean of the last states of a text given as token ids, including [CLS] and [SEP]."""
    with torch.no_grad():
        states = encoder.model(torch.tensor([tokens])).last_hidden_state
    return states[0].mean(0).numpy()


class KnownLayers(nn.Module):
    """Replaces an encoder of three layers: the state in layer n is the token's id times 10 ** n, and the
    token's column in the batch."""

    config = SimpleNamespace(hidden_size=2, num_hidden_layers=3, attention_window=[4])
    device = torch.device("cpu")

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **_: bool) -> object:
        self.widths = [*getattr(self, "widths", []), input_ids.shape[1]]
        columns = torch.arange(input_ids.shape[1]).expand_as(input_ids)
        states = [torch.stack([input_ids * 10**n, columns], dim=-1).float() for n in range(4)]
        return SimpleNamespace(hidden_states=tuple(states), last_hidden_state=states[0])


# ---- sentences


def test_the_mean_is_over_tokens_and_batches_are_of_like_length():
    ids = torch.tensor([[2, 4, 9, 9], [1, 2, 3, 6]])
    mask = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1]])
    assert frozen.mean_states(KnownLayers(), ids, mask).tolist() == [[3.0, 0.5], [3.0, 1.5]]
    ids, model = torch.tensor([[5, 0, 0, 0], [1, 3, 5, 7], [2, 4, 0, 0], [1, 1, 4, 0]]), KnownLayers()
    actual = frozen.sentence_vectors(model, ids, (ids > 0).long(), batch_size=2)
    assert actual[:, 0].tolist() == [5.0, 4.0, 3.0, 2.0], "in order"
    assert model.widths == [4, 2]


def test_a_sentence_is_read_between_its_ends_and_cut(encoder: SentenceEncoder):
    # Ids: [CLS] 1, [SEP] 2, w0 5; nine tokens with both ends leave seven words.
    actual = encoder.encode(["w1 w2", "w1 w2 w3 w4 w5 w6 w7 w8 w9", " "])
    for vector, tokens in zip(actual, ([1, 6, 7, 2], [1, *range(6, 13), 2], [1, 2]), strict=True):
        np.testing.assert_allclose(vector, alone(encoder, *tokens), atol=1e-5)
    assert actual.dtype == np.float32


def test_a_sentence_alone_is_the_sentence_in_its_batch(encoder: SentenceEncoder):
    together = encoder.encode(SENTENCES, batch_size=2)
    for sentence, vector in zip(SENTENCES, together, strict=True):
        np.testing.assert_allclose(encoder.encode([sentence])[0], vector, atol=1e-5)
    assert together.shape == (5, encoder.size) == (5, 32)
    assert encoder.encode([]).shape == (0, 32)


def test_every_token_sees_every_other_unless_the_window_is_narrow(bert, encoder: SentenceEncoder):
    narrow = load_sentence_encoder(bert, max_tokens=9, window=2)
    assert np.abs(narrow.encode([SENTENCES[2]]) - encoder.encode([SENTENCES[2]])).max() > 0.01
    first, last = (torch.tensor([[1, word, *range(7, 13), 2]]) for word in (6, 20))
    with torch.no_grad():  # of nine tokens the second changes the last, in the first layer
        output = (encoder.model(ids, output_hidden_states=True) for ids in (first, last))
        states = [one.hidden_states[1][0, -1] for one in output]
    assert (states[0] - states[1]).abs().max() > 1e-3
    narrow, wide = (load_word_encoder(bert, layers=1, max_tokens=9, window=window) for window in (2, None))
    words, other = ([first, "w5", "w6", "w7", "w8", "w9"] for first in ("w1", "w20"))
    moved = [np.abs(one.encode([words])[0] - one.encode([other])[0])[-1].max() for one in (wide, narrow)]
    assert moved[0] > 1e-3
    assert moved[1] < 1e-5, "two layers of a window of 2 reach two places"


def test_the_fingerprint_is_of_all_that_the_vectors_depend_on(bert, roberta):
    def encoders(load, others: list[dict], **form: int) -> list:
        changed = load(bert, **form)
        with torch.no_grad():
            changed.model.encoder.layer[1].output.dense.bias[3] += 1e-3
        words = load(bert, **form)
        words.tokenizer.add_tokens(["w1 w2"])
        plain = [load(bert, **form), load(roberta, **form)]
        return [*plain, changed, words, *(load(bert, **form | other) for other in others)]

    others = [{"max_tokens": 8, "window": 18}, {"window": 2}, {"window": 4}, {"precision": "bfloat16"}]
    sentences = encoders(load_sentence_encoder, others, max_tokens=9)
    words = encoders(load_word_encoder, [*others, {"layers": 1}], max_tokens=9, layers=2)
    marks = [one.fingerprint for one in (*sentences, *words)]
    assert len(set(marks)) == len(marks) == 8 + 9
    assert {len(mark) for mark in marks} == {16}
    again = load_sentence_encoder(bert, max_tokens=9), load_word_encoder(bert, layers=2, max_tokens=9)
    assert [one.fingerprint for one in again] == [marks[0], marks[8]]


# ---- words


def test_a_word_is_the_mean_of_its_pieces_in_each_layer(bert):
    # Ids: w0 has 5; "w2 w3" is (7 + 8) / 2 = 7.5, its columns behind [CLS] (2 + 3) / 2 = 2.5.
    word_encoder = WordEncoder(KnownLayers(), load_tokenizer(bert), layers=2, max_tokens=9)
    first, second, third = word_encoder.encode([["w1", "w2 w3", "w4"], ["w4"], ["w0", "w0 w0 w3"]])
    assert first.tolist() == [[600, 1, 6000, 1], [750, 2.5, 7500, 2.5], [900, 4, 9000, 4]]
    assert second.tolist() == [[900, 1, 9000, 1]]
    assert third.tolist() == [[500, 1, 5000, 1], [600, 3, 6000, 3]]
    assert (first.dtype, word_encoder.size) == (np.float32, 4)
    one = WordEncoder(KnownLayers(), load_tokenizer(bert), layers=1, max_tokens=9)
    actual = one.encode(WORDS_OF_SENTENCES, batch_size=2)
    assert [rows[0, 0] for rows in actual] == [6000, 9000, 10000, 8000, 17000], "in order"
    assert one.model.widths == [9, 5, 3], "batches of like length"


def test_the_last_four_layers_are_concatenated(bert):
    tokenizer = load_tokenizer(bert)
    sizes = {"hidden_size": 8, "num_hidden_layers": 5, "attention_window": [20] * 5, "pad_token_id": 0}
    model = replace_self_attention(longformer(LongformerModel, vocab_size=len(tokenizer), **sizes))
    word_encoder = WordEncoder(model, tokenizer, max_tokens=9)
    with torch.no_grad():
        output = model(torch.tensor([[1, 6, 7, 8, 9, 2]]), output_hidden_states=True)
    states = torch.cat(output.hidden_states[2:], dim=-1)[0]
    assert len(output.hidden_states) == 6
    torch.testing.assert_close(states[:, -8:], output.last_hidden_state[0])
    (actual,) = word_encoder.encode([WORDS_OF_SENTENCES[0]])
    expected = torch.stack([states[1], states[2:4].mean(0), states[4]])
    assert actual.shape == (3, word_encoder.size) == (3, 32)
    np.testing.assert_allclose(actual, expected.numpy(), atol=1e-5)


def test_words_of_a_sentence_alone_are_those_in_its_batch_and_padding_is_inert(bert, word_encoder):
    filled = load_word_encoder(bert, layers=2, max_tokens=9)
    filled.tokenizer.pad_token = "w30"  # filled up with another token
    assert filled.tokenizer.pad_token_id == 35
    for encoder, batch_size in ((word_encoder, 2), (word_encoder, 64), (filled, 64)):
        together = encoder.encode(WORDS_OF_SENTENCES, batch_size=batch_size)
        for words, rows in zip(WORDS_OF_SENTENCES, together, strict=True):
            assert rows.shape == (len(words), 64)
            np.testing.assert_allclose(word_encoder.encode([words])[0], rows, atol=1e-5)


def test_of_a_word_without_room_the_first_pieces_are_read():
    """With a tokenizer that splits words, as all real ones do."""
    word_encoder = load_word_encoder("tiny", layers=1, max_tokens=8)
    assert frozen.PieceCounts(word_encoder.tokenizer)(["so", "strangenesses"])[1] > 6
    (rows,) = word_encoder.encode([["strangenesses" * 20]])
    assert rows.shape == (1, word_encoder.size)
    words = ["so", "strangenesses", "so"]
    ids, numbers = frozen.word_pieces(word_encoder.tokenizer, words, most=3)
    every, of_words = frozen.word_pieces(word_encoder.tokenizer, words)
    for number in range(3):
        assert ids[numbers == number].tolist() == every[of_words == number][:3].tolist()
    with pytest.raises(ValueError, match="split it, or raise max_tokens"):
        word_encoder.encode([["strangenesses", "strangenesses"]])


def test_pieces_and_their_words(bert, word_encoder: WordEncoder):
    unknown, tokenizer = 3, load_tokenizer(bert)
    ids, numbers = frozen.word_pieces(tokenizer, ["", "w2 w3", "\t", " ", "w4", "nobody", "\u200a"])
    assert ids.tolist() == [unknown, 7, 8, unknown, unknown, 9, unknown, unknown]
    assert numbers.tolist() == [0, 1, 1, 2, 3, 4, 5, 6]
    pieces = frozen.PieceCounts(tokenizer)
    assert [pieces(words) for words in (["", "w2 w3", "\t"], [])] == [[1, 2, 1], []]
    assert pieces(["w2 w3", "w4", "w4", ""]) == [2, 1, 1, 1], "some known, one new and twice"
    assert [part.dtype for part in frozen.word_pieces(tokenizer, [])] == [np.int64, np.int64]
    tokenizer.unk_token = None
    with pytest.raises(ValueError, match="the word ' ' has no piece and the tokenizer no unknown one; leave"):
        frozen.word_pieces(tokenizer, ["w1", " "])


def test_sentences_that_are_too_long_and_layers_that_are_not_there_are_refused(bert, word_encoder):
    seven = ["w1"] * 5 + ["w2 w3"]
    assert word_encoder.encode([seven])[0].shape == (6, 64)
    message = r"the sentence 'w1 w1 w1 w1 w1 w2 w3 w4' has 8 pieces, but there is room for 7; split it, or"
    with pytest.raises(ValueError, match=message):
        word_encoder.encode([seven, [*seven, "w4"]])
    for layers in (0, 3):
        with pytest.raises(ValueError, match=rf"layers is {layers}; the encoder has 2, so take 1 to 2"):
            load_word_encoder(bert, layers=layers, max_tokens=9)
