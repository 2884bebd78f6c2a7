"""One run with a global source: weights against the dense oracle, reach, modes, bad input; and
attention between two sets of tokens, which is cut out of such a run."""

import numpy as np
import pytest
import torch
from attention_cases import longformer
from transformers import LongformerModel

from cdlm_lab.attention.dense import dense_weights
from cdlm_lab.attention.plan import Projections
from cdlm_lab.attention.weights import recordable_layers
from cdlm_lab.encoders.language_model import CrossDocumentLM
from cdlm_lab.encoders.packed import replace_self_attention
from cdlm_lab.encoders.source_attention import SourceAttention, attend_to_source, attention_between

PAD, WORDS, HEADS, WINDOWS = 1, 55, 4, (4, 8)


@pytest.fixture(scope="module")
def model() -> CrossDocumentLM:
    sizes = {"num_hidden_layers": 2, "attention_window": [*WINDOWS], "max_position_embeddings": 42}
    dropout = {"hidden_dropout_prob": 0.5, "attention_probs_dropout_prob": 0.5}
    return replace_self_attention(longformer(CrossDocumentLM, vocab_size=WORDS, **sizes, **dropout))


def text(length: int = 30) -> np.ndarray:
    return np.random.default_rng(length).integers(2, WORDS, size=length)


def expected(
    model: CrossDocumentLM, ids: np.ndarray, result: SourceAttention
) -> list[tuple[np.ndarray, ...]]:
    """Given and received of each layer, from its hidden states and the oracle."""
    present = torch.from_numpy(ids != PAD)[None]
    is_global = torch.from_numpy(result.is_global)[None]
    masks = {"attention_mask": present.long(), "global_attention_mask": is_global.long()}
    weights = []
    with torch.no_grad():
        read = model.longformer(torch.from_numpy(ids)[None], **masks, output_hidden_states=True)
        for number, (layer, window) in enumerate(zip(recordable_layers(model), WINDOWS, strict=True)):
            states = read.hidden_states[number][:, : len(ids)]
            projected = [
                getattr(layer, name)(states).unflatten(-1, (HEADS, -1)) for name in Projections._fields
            ]
            masks = {"attention_mask": present, "global_mask": is_global}
            (matrix,) = dense_weights(Projections(*projected), **masks, window=window)
            source = result.source
            weights.append((matrix[:, source].numpy(), matrix[:, :, source].transpose(1, 2).numpy()))
    return weights


def local(model: CrossDocumentLM, source: list[int], **options) -> list[int]:
    """What the source reaches that is not global itself."""
    result = attend_to_source(model, text(), source=source, source_is_global=False, **options)
    return np.flatnonzero(result.reach).tolist()


@pytest.mark.parametrize("source_is_global", [True, False])
@pytest.mark.parametrize("length", [32, 29])  # the encoder fills the latter up
def test_weights_equal_the_oracle(model, length, source_is_global):
    ids = text(length)
    ids[25:27] = PAD
    options = {"extra_global": [0, 20], "source_is_global": source_is_global}
    result = attend_to_source(model, ids, source=[12, 3, 4], **options)
    assert (result.layers, result.source.tolist()) == ((0, 1), [3, 4, 12])
    is_global = {0, 20} | ({3, 4, 12} if source_is_global else set())
    assert np.flatnonzero(result.is_global).tolist() == sorted(is_global)
    for layer, (given, received) in enumerate(expected(model, ids, result)):
        np.testing.assert_allclose(result.given[layer], given, atol=2e-6)
        np.testing.assert_allclose(result.received[layer], received, atol=2e-6)
    np.testing.assert_allclose(result.given.sum(axis=-1), 1, atol=1e-5)
    # weight can be where, and only where, `reach` says so
    weighed = (result.given > 0).any(axis=(0, 1, 2)) | (result.received > 0).any(axis=(0, 1, 2))
    np.testing.assert_array_equal(weighed, result.reach)


def test_reach_is_half_the_window_of_the_layer(model):
    for layers, reached in (([0], list(range(8, 14))), ([-1], list(range(6, 16)))):
        assert local(model, [10, 11], layers=layers) == reached
        assert local(model, [10, 11], layers=layers, extra_global=[25]) == [*reached, 25]
        assert attend_to_source(model, text(), source=[10, 11], layers=layers).reach.all()
    assert local(model, [10, 11], extra_global=[11]) == list(range(30)), "one global token is enough"
    assert local(model, [2, 20], layers=[0]) == [0, 1, 2, 3, 4, 18, 19, 20, 21, 22]


def test_masks_and_lists_choose_alike(model):
    ids, chosen = text(), np.zeros(30, dtype=bool)
    chosen[[5, 7]] = True
    by_mask = attend_to_source(model, torch.from_numpy(ids), source=chosen, extra_global=~chosen)
    others = [i for i in range(30) if i not in (5, 7)]
    by_list = attend_to_source(model, ids.tolist(), source=(7, 5, 7), extra_global=others)
    assert by_mask.is_global.all()
    for name in ("source", "given", "received", "is_global", "reach"):
        np.testing.assert_array_equal(getattr(by_mask, name), getattr(by_list, name))


def test_training_goes_on_as_it_was(model):
    wanted = attend_to_source(model, text(), source=[5])
    model.train()
    model.lm_head.eval()
    modes = {name: module.training for name, module in model.named_modules()}
    result = attend_to_source(model, text(), source=[5])
    assert {name: module.training for name, module in model.named_modules()} == modes
    np.testing.assert_array_equal(result.given, wanted.given)  # no dropout
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
        ({"layers": []}, "no layer is chosen"),
        ({"input_ids": []}, "input_ids must be whole numbers"),
        ({"input_ids": [[2, 3]]}, "input_ids must be whole numbers"),
        ({"input_ids": [2, 55]}, "input_ids has 55, but the model's ids are 0 to 54"),
        ({"input_ids": text(41)}, "the text has 41 tokens, but the model reads at most 40"),
    ],
)
def test_bad_input_is_named(model, changes, message):
    assert attend_to_source(model, text(40), source=[39]).given.shape == (2, HEADS, 1, 40), "the longest text"
    ids = text()
    ids[28:] = PAD
    arguments = {"input_ids": ids, "source": [1]} | changes
    with pytest.raises(ValueError, match=message):
        attend_to_source(model, **arguments)


# ---- between two sets of tokens


def is_global(*positions: int) -> np.ndarray:
    return np.isin(np.arange(30), positions)


@pytest.mark.parametrize("globals_", [[0, 3, 25], [], range(30)], ids=["some", "none", "all"])
@pytest.mark.parametrize(
    ("queries", "keys"),
    [(range(2, 9), range(15, 26)), (range(30), range(30)), ([29, 3, 3], [25, 0, 28, 27])],
    ids=["far", "everything", "any order, repeated"],
)
def test_weights_between_are_those_of_the_oracle(model, globals_, queries, keys):
    result = attention_between(model, text(), queries=queries, keys=keys, global_mask=is_global(*globals_))
    options = {"extra_global": globals_, "source_is_global": False}
    everything = attend_to_source(model, text(), source=range(30), **options)
    matrix = np.stack([given for given, _ in expected(model, text(), everything)])
    assert result.shape == (2, HEADS, len(queries), len(keys))
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, matrix[:, :, list(queries)][..., list(keys)], rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"queries": [5, 30]}, "queries: position 30 is outside the text of 30 tokens"),
        ({"keys": [-1]}, "keys: position -1 is outside"),
        ({"queries": []}, "queries and keys must each be at least one position"),
        ({"keys": [0.5]}, "keys must be a list of positions"),
        ({"global_mask": [True]}, r"input_ids \(30,\) and global_mask \(1,\) must both be \(seq,\)"),
    ],
)
def test_positions_that_do_not_fit_are_named(model, changes, message):
    chosen = {"queries": [1], "keys": [2], "global_mask": is_global(0)}
    with pytest.raises(ValueError, match=message):
        attention_between(model, text(), **chosen | changes)
    with pytest.raises(ValueError, match="call replace_self_attention"):  # a model with another attention
        attention_between(LongformerModel(model.config), text(), **chosen)
