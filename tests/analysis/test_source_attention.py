"""One run with a global source: weights against the dense oracle, reach, predictions, modes, bad input."""

import numpy as np
import pytest
import torch
from transformers import LongformerConfig

from cdlm_lab.analysis.source_attention import SourceAttention, attend_to_source
from cdlm_lab.attention.dense import dense_weights
from cdlm_lab.attention.layer import replace_self_attention
from cdlm_lab.attention.weights import recordable_layers
from cdlm_lab.models.language_model import CrossDocumentLM

PAD, WORDS, HEADS, WINDOWS = 1, 55, 4, (4, 8)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def model() -> CrossDocumentLM:
    torch.manual_seed(2)
    config = LongformerConfig(
        vocab_size=WORDS,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        intermediate_size=48,
        attention_window=list(WINDOWS),
        max_position_embeddings=42,
        pad_token_id=PAD,
        initializer_range=0.3,
        hidden_dropout_prob=0.5,
        attention_probs_dropout_prob=0.5,
    )
    return replace_self_attention(CrossDocumentLM(config)).eval()


def text(length: int = 30) -> np.ndarray:
    return np.random.default_rng(length).integers(2, WORDS, size=length)


def expected(model: CrossDocumentLM, ids: np.ndarray, found: SourceAttention) -> list[tuple[np.ndarray, ...]]:
    """Given and received of each layer, from its hidden states and the oracle."""
    present = torch.from_numpy(ids != PAD)[None]
    is_global = torch.from_numpy(found.is_global)[None]
    weights = []
    with torch.no_grad():
        states = model.longformer(
            torch.from_numpy(ids)[None],
            attention_mask=present.long(),
            global_attention_mask=is_global.long(),
            output_hidden_states=True,
        ).hidden_states
        for number, (layer, window) in enumerate(zip(recordable_layers(model), WINDOWS, strict=True)):
            matrix = dense_weights(
                *(
                    getattr(layer, name)(states[number][:, : len(ids)]).unflatten(-1, (HEADS, -1))
                    for name in ("query", "key", "query_global", "key_global")
                ),
                attention_mask=present,
                global_mask=is_global,
                window=window,
            )[0]
            source = found.source
            weights.append((matrix[:, source].numpy(), matrix[:, :, source].transpose(1, 2).numpy()))
    return weights


@pytest.mark.parametrize("source_is_global", [True, False])
@pytest.mark.parametrize("length", [32, 29])  # the encoder fills the latter up
def test_weights_equal_the_oracle(model, length, source_is_global):
    ids = text(length)
    ids[25:27] = PAD
    found = attend_to_source(
        model, ids, source=[12, 3, 4], extra_global=[0, 20], source_is_global=source_is_global
    )
    assert found.layers == (0, 1)
    assert found.source.tolist() == [3, 4, 12]
    assert np.flatnonzero(found.is_global).tolist() == sorted(
        {0, 20} | ({3, 4, 12} if source_is_global else set())
    )
    for layer, (given, received) in enumerate(expected(model, ids, found)):
        np.testing.assert_allclose(found.given[layer], given, atol=2e-6)
        np.testing.assert_allclose(found.received[layer], received, atol=2e-6)
    np.testing.assert_allclose(found.given.sum(axis=-1), 1, atol=1e-5)
    # weight can be where, and only where, `reach` says so
    weighed = (found.given > 0).any(axis=(0, 1, 2)) | (found.received > 0).any(axis=(0, 1, 2))
    np.testing.assert_array_equal(weighed, found.reach)


@pytest.mark.parametrize(
    ("layers", "reached"), [([0], [8, 9, 10, 11, 12, 13]), ([-1], [6, 7, 8, 9, 10, 11, 12, 13, 14, 15])]
)
def test_reach_is_half_the_window_of_the_layer(model, layers, reached):
    found = attend_to_source(model, text(), source=[10, 11], source_is_global=False, layers=layers)
    assert np.flatnonzero(found.reach).tolist() == reached
    found = attend_to_source(
        model, text(), source=[10, 11], source_is_global=False, extra_global=[25], layers=layers
    )
    assert np.flatnonzero(found.reach).tolist() == [*reached, 25]
    assert attend_to_source(model, text(), source=[10, 11], layers=layers).reach.all()
    found = attend_to_source(model, text(), source=[10, 11], source_is_global=False, extra_global=[11])
    assert found.reach.all(), "one global token of the source is enough"


def test_reach_of_a_source_in_two_places(model):
    found = attend_to_source(model, text(), source=[2, 20], source_is_global=False, layers=[0])
    assert np.flatnonzero(found.reach).tolist() == [0, 1, 2, 3, 4, 18, 19, 20, 21, 22]


def test_masks_and_lists_choose_alike(model):
    ids, chosen = text(), np.zeros(30, dtype=bool)
    chosen[[5, 7]] = True
    by_mask = attend_to_source(model, torch.from_numpy(ids), source=chosen, extra_global=~chosen)
    by_list = attend_to_source(
        model, ids.tolist(), source=(7, 5, 7), extra_global=[i for i in range(30) if i not in (5, 7)]
    )
    assert by_mask.is_global.all()
    for name in ("source", "given", "received", "is_global", "reach"):
        np.testing.assert_array_equal(getattr(by_mask, name), getattr(by_list, name))


def test_one_layer_is_that_of_all(model):
    every, last = (attend_to_source(model, text(), source=[5], layers=layers) for layers in (None, [-1]))
    assert last.layers == (1,)
    # layers that are not recorded compute few global tokens in another way, equal up to rounding
    np.testing.assert_allclose(last.received[0], every.received[1], rtol=1e-4, atol=1e-6)


def test_predictions_are_the_likeliest_of_the_whole_vocabulary(model):
    ids = text()
    found = attend_to_source(model, ids, source=[5], predict=[20, 4], top_k=7)
    is_global = torch.from_numpy(found.is_global)[None].long()
    with torch.no_grad():
        logits = model(torch.from_numpy(ids)[None], global_attention_mask=is_global).logits
    best = logits[0, [4, 20]].softmax(-1).topk(7)
    assert found.predicted.tolist() == [4, 20]
    np.testing.assert_array_equal(found.predicted_ids, best.indices.numpy())
    np.testing.assert_allclose(found.probabilities, best.values.numpy(), atol=1e-6)
    assert attend_to_source(model, ids, source=[5]).predicted_ids.shape == (0, 5)


def test_the_probability_of_the_truth(model):
    ids = text()
    found = attend_to_source(model, ids, source=[5], predict=[20, 4], truth=[7, 9], top_k=55)
    for row, token in enumerate((7, 9)):
        (column,) = np.flatnonzero(found.predicted_ids[row] == token)
        assert found.truth_probabilities[row] == found.probabilities[row, column]
    assert attend_to_source(model, ids, source=[5], predict=[4]).truth_probabilities.shape == (0,)
    with pytest.raises(ValueError, match="truth has 1 ids, but 2 positions"):
        attend_to_source(model, ids, source=[5], predict=[20, 4], truth=[7])


def test_an_encoder_alone_will_do(model):
    whole, alone = (attend_to_source(part, text(), source=[5]) for part in (model, model.longformer))
    np.testing.assert_array_equal(whole.given, alone.given)
    with pytest.raises(ValueError, match="LongformerModel has no language-model head to predict with"):
        attend_to_source(model.longformer, text(), source=[5], predict=[3])


def test_training_goes_on_as_it_was(model):
    wanted = attend_to_source(model, text(), source=[5])
    model.train()
    model.lm_head.eval()
    modes = {name: module.training for name, module in model.named_modules()}
    found = attend_to_source(model, text(), source=[5])
    assert {name: module.training for name, module in model.named_modules()} == modes
    np.testing.assert_array_equal(found.given, wanted.given)  # no dropout
    with pytest.raises(ValueError, match="there is no layer 2"):
        attend_to_source(model, text(), source=[5], layers=[2])
    assert {name: module.training for name, module in model.named_modules()} == modes
    assert all(layer.recorder is None for layer in recordable_layers(model))
    model.eval()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": []}, "the source is empty"),
        ({"source": np.zeros(30, dtype=bool)}, "the source is empty"),
        ({"source": [3, 30]}, "source: position 30 is outside the text of 30 tokens"),
        ({"source": [-1]}, "source: position -1 is outside"),
        ({"source": [28]}, "source: position 28 is padding"),
        ({"source": np.ones(29, dtype=bool)}, r"the mask source has shape \(29,\), but the text has 30"),
        ({"source": [1.5]}, "source must be a list of positions or a bool mask"),
        ({"extra_global": [99]}, "extra_global: position 99 is outside"),
        ({"predict": [28]}, "predict: position 28 is padding"),
        ({"predict": [3], "top_k": 0}, "top_k is 0; it must be from 1 to 55"),
        ({"predict": [3], "top_k": 56}, "top_k is 56"),
        ({"layers": []}, "no layer is chosen"),
        ({"input_ids": []}, "input_ids must be whole numbers"),
        ({"input_ids": [[2, 3]]}, "input_ids must be whole numbers"),
        ({"input_ids": [2, 55]}, "input_ids has 55, but the model's ids are 0 to 54"),
        ({"input_ids": text(41)}, "the text has 41 tokens, but the model reads at most 40"),
    ],
)
def test_bad_input_is_named(model, changes, message):
    ids = text()
    ids[28:] = PAD
    arguments = {"input_ids": ids, "source": [1]} | changes
    with pytest.raises(ValueError, match=message):
        attend_to_source(model, **arguments)


def test_the_longest_text_is_read(model):
    found = attend_to_source(model, text(40), source=[39])
    assert found.given.shape == found.received.shape == (2, HEADS, 1, 40)
