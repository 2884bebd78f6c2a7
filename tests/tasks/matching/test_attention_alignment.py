"""Alignment of sentences: both scores against slow definitions, and what must hold of swaps and lost ones."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import LongformerConfig, LongformerModel

from cdlm_lab.encoders.packed import read_only_globals, replace_self_attention
from cdlm_lab.encoders.source_attention import attention_between
from cdlm_lab.examples.tokens import SpecialTokens
from cdlm_lab.tasks.matching import attention_alignment as sentence_alignment
from cdlm_lab.tasks.matching.attention_alignment import by_encodings, by_global_attention
from cdlm_lab.tasks.matching.examples import EncodedSentences, MatchSequence, match_sequence
from cdlm_lab.tasks.matching.model import PairClassifier

PAD, WORDS, HEADS, LAYERS = 1, 60, 4, 2
SPECIAL = SpecialTokens(
    start=2, end=3, cls=0, sep=4, pad=PAD, mask=5, all_special=frozenset(range(6)), vocabulary_size=WORDS
)


def model_of() -> LongformerModel:
    torch.manual_seed(2)
    config = LongformerConfig(
        vocab_size=WORDS, hidden_size=32, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=48, attention_window=[4, 8], max_position_embeddings=66, pad_token_id=PAD,
        initializer_range=0.3, hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.5,
    )  # fmt: skip
    return replace_self_attention(LongformerModel(config, add_pooling_layer=False)).eval()


@pytest.fixture(scope="module")
def model() -> LongformerModel:
    return model_of()


def document(*tokens: int, seed: int) -> EncodedSentences:
    """Random text in sentences of so many tokens each."""
    return EncodedSentences(
        input_ids=np.random.default_rng(seed).integers(6, WORDS, size=sum(tokens)).astype(np.int32),
        sentence=np.repeat(np.arange(len(tokens), dtype=np.int32), tokens),
        sentence_count=len(tokens),
    )


A, B = document(4, 6, 3, seed=0), document(5, 2, seed=1)


def sequence_of(first: EncodedSentences = A, second: EncodedSentences = B, *, length: int = 60):
    return match_sequence(first, second, special=SPECIAL, max_length=length)


def places(sequence: MatchSequence, side: int, sentence: int | None = None) -> list[int]:
    """Positions of a document, or of one of its sentences, one at a time."""
    chosen = (sequence.side == side) & (True if sentence is None else sequence.sentence == sentence)
    return np.flatnonzero(chosen).tolist()


@pytest.mark.parametrize("side", [0, 1])
def test_attention_is_the_mean_of_exp_of_both_ways_less_1(model, side):
    sequence = sequence_of()
    tokens = places(sequence, 1 - side)
    everything = range(len(sequence.input_ids))
    is_global = [place == 0 or place in tokens for place in everything]
    # (layers, heads, seq, seq): the whole matrix, which the function never holds
    chosen = {"queries": everything, "keys": everything, "global_mask": is_global}
    dense = attention_between(model, sequence.input_ids, **chosen).astype(np.float64)
    expected = []
    for sentence in range(sequence.sentence_count(side)):
        scores = []
        for token in places(sequence, side, sentence):
            both_ways = [dense[..., token, j] + dense[..., j, token] for j in tokens]
            scores.append(np.exp(np.mean(both_ways)) - 1)
        expected.append(np.mean(scores))
    result = by_global_attention(model, sequence, document=side)
    np.testing.assert_allclose(result, expected, rtol=1e-5)
    assert result.dtype == np.float64
    assert np.ptp(result) > 1e-3, "the sentences differ, or the test says nothing"


def test_weak_attention_keeps_its_order_in_single_precision(monkeypatch):
    """As of long texts, where a token has a weight of 1e-4 and sentences differ by 1e-8."""
    sequence = sequence_of()
    weights = np.full((1, 1, 1, len(sequence.input_ids)), 1e-4, dtype=np.float32)
    weights[0, 0, 0, places(sequence, 0, 1)] += 1e-8

    def weak(model, input_ids, *, source, extra_global):
        return SimpleNamespace(given=weights, received=weights)

    monkeypatch.setattr(sentence_alignment, "attend_to_source", weak)
    result = by_global_attention(None, sequence, document=0).astype(np.float32)
    assert result[1] > result[0] == result[2]


@pytest.mark.parametrize("side", [0, 1])
def test_encodings_are_cosines_of_means(model, side):
    sequence = sequence_of()
    with torch.no_grad():
        states = model(
            torch.from_numpy(sequence.input_ids)[None],
            global_attention_mask=torch.tensor([[1] + [0] * (len(sequence.input_ids) - 1)]),
        ).last_hidden_state[0]
    other = states[places(sequence, 1 - side)].double().mean(0)
    expected = [
        torch.cosine_similarity(states[places(sequence, side, n)].double().mean(0), other, dim=0).item()
        for n in range(sequence.sentence_count(side))
    ]
    result = by_encodings(model, sequence, document=side)
    np.testing.assert_allclose(result, expected, rtol=1e-5)
    assert result.dtype == np.float64
    assert np.ptp(result) > 1e-2


def assert_close(mine: list[np.ndarray], others: list[np.ndarray]) -> None:
    for one, other in zip(mine, others, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def all_ways(model: LongformerModel, sequence: MatchSequence, side: int) -> list[np.ndarray]:
    return [way(model, sequence, document=side) for way in (by_global_attention, by_encodings)]


def test_swapped_documents_swap_their_scores_where_positions_say_nothing():
    """Without position embeddings, and with a window over all of it, the order of documents is unknown."""
    model = model_of()
    with torch.no_grad():
        model.embeddings.position_embeddings.weight.zero_()
    for layer in model.encoder.layer:
        layer.attention.self.window = 64
    straight, swapped = sequence_of(A, B), sequence_of(B, A)
    for side in (0, 1):
        assert_close(all_ways(model, straight, side), all_ways(model, swapped, 1 - side))


def test_padding_changes_nothing(model):
    sequence = sequence_of()
    fill = {"input_ids": PAD, "global_attention_mask": 0, "side": -1, "sentence": -1}
    longer = {name: np.append(getattr(sequence, name), np.full(7, value)) for name, value in fill.items()}
    assert_close(all_ways(model, sequence, 0), all_ways(model, replace(sequence, **longer), 0))


@pytest.mark.parametrize("side", [0, 1])
def test_a_lost_sentence_is_one_below_all_others(model, side):
    # 20 - 6 = 14 tokens of text, 7 for each: of five sentences of 3 tokens three are there, one in part
    long = document(3, 3, 3, 3, 3, seed=4)
    sequence = sequence_of(long, document(2, 8, 1, 1, 1, seed=5), length=20)
    lost = sequence.lost_sentences[side]
    assert lost == (2, 3)[side]
    for result in all_ways(model, sequence, side):
        assert result.shape == (5,)
        assert np.isfinite(result).all()
        np.testing.assert_array_equal(result[-lost:], np.full(lost, result[:-lost].min() - 1))


def test_a_long_source_is_read_in_parts(model, monkeypatch):
    sequence = sequence_of()
    whole = by_global_attention(model, sequence, document=1)
    monkeypatch.setattr(sentence_alignment, "_PART", 3)  # 13 tokens: four parts and one token
    parts = by_global_attention(model, sequence, document=1)
    np.testing.assert_allclose(parts, whole, rtol=1e-6)


def test_a_model_in_training_and_the_encoder_of_a_classifier_are_read_alike(model):
    training, classifier = model_of().train(), PairClassifier(model.config).eval()
    classifier.longformer = model
    plain = all_ways(model, sequence_of(), 0)
    assert_close(all_ways(training, sequence_of(), 0), plain)  # without dropout
    assert all(module.training for module in training.modules())
    assert all(weight.grad is None for weight in training.parameters())
    for mine, other in zip(all_ways(classifier, sequence_of(), 0), plain, strict=True):
        np.testing.assert_array_equal(mine, other)


def test_a_last_layer_of_globals_alone_is_refused():
    model = read_only_globals(model_of())
    with pytest.raises(ValueError, match=r"so its text has no states; .* whole_last_layer=True"):
        by_encodings(model, sequence_of(), document=0)
    with pytest.raises(ValueError, match="the last layer computes global tokens only"):
        by_global_attention(model, sequence_of(), document=0)


@pytest.mark.parametrize("way", [by_encodings, by_global_attention])
def test_unknown_documents(model, way):
    with pytest.raises(ValueError, match="document is 2; it must be 0, the"):
        way(model, sequence_of(), document=2)
