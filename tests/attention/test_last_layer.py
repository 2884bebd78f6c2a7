"""A last layer of global tokens alone: their states and gradients are those of the whole layer."""

import copy

import pytest
import torch
from torch import Tensor
from transformers import LongformerConfig, LongformerModel

from cdlm_lab.attention.layer import read_only_globals, replace_self_attention
from cdlm_lab.attention.weights import record_attention


def model_of(*, dropout: float = 0.0, ours: bool = True) -> LongformerModel:
    config = LongformerConfig(
        vocab_size=60,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=48,
        attention_window=8,
        max_position_embeddings=80,
        attention_probs_dropout_prob=dropout,
        hidden_dropout_prob=0.0,
        pad_token_id=1,
    )
    torch.manual_seed(0)
    model = LongformerModel(config, add_pooling_layer=False).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # the default of 0.02 makes attention uniform
            parameter.normal_(0, 0.2)
    return replace_self_attention(model) if ours else model


@pytest.fixture
def batch() -> dict[str, Tensor]:
    """Three rows: some globals, padding, no global at all."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(2, 60, (3, 37), generator=generator)
    mask = torch.ones(3, 37, dtype=torch.int64)
    mask[1, 20:] = 0
    is_global = (torch.rand(3, 37, generator=generator) < 0.2).long() * mask
    is_global[2] = 0
    return {"input_ids": ids, "attention_mask": mask, "global_attention_mask": is_global}


def read_globals(model: LongformerModel, batch: dict[str, Tensor]) -> tuple[Tensor, list[Tensor | None]]:
    """All last states, and gradients of a sum that reads those of global tokens alone."""
    states = model(**batch).last_hidden_state
    weights = torch.linspace(-1, 1, states.shape[-1]) * batch["global_attention_mask"][..., None]
    (states * weights).sum().backward()
    return states.detach(), [parameter.grad for parameter in model.parameters()]


def test_states_and_gradients_are_those_of_the_whole_layer(batch: dict[str, Tensor]) -> None:
    whole = model_of()
    expected, expected_gradients = read_globals(whole, batch)
    actual, gradients = read_globals(read_only_globals(model_of()), batch)
    is_global = batch["global_attention_mask"] == 1
    torch.testing.assert_close(actual[is_global], expected[is_global], rtol=1e-5, atol=1e-5)
    assert not actual[~is_global].any()
    for (name, _), mine, other in zip(whole.named_parameters(), gradients, expected_gradients, strict=True):
        if mine is None:
            assert not other.any(), name
        else:
            torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5, msg=name)


def test_without_a_global_token_all_is_zero(batch: dict[str, Tensor]) -> None:
    batch["global_attention_mask"].zero_()
    assert not read_only_globals(model_of())(**batch).last_hidden_state.any()


def test_attention_weights_are_dropped_while_training(batch: dict[str, Tensor]) -> None:
    model = read_only_globals(model_of(dropout=0.5))
    states = model(**batch).last_hidden_state
    layer = model.encoder.layer[-1].attention.self
    for other in model.encoder.layer[:-1]:
        other.attention.self.dropout = 0.0  # what differs below comes from the last layer
    model.train()
    torch.manual_seed(0)
    dropped = model(**batch).last_hidden_state
    assert (dropped != states).any()
    layer.dropout = 0.0
    torch.testing.assert_close(model(**batch).last_hidden_state, states, rtol=1e-5, atol=1e-5)


def test_gradient_checkpointing_gives_the_same_gradients(batch: dict[str, Tensor]) -> None:
    model = read_only_globals(model_of())
    expected = read_globals(model, batch)[1]
    again = read_only_globals(model_of()).train()
    again.gradient_checkpointing_enable({"use_reentrant": False})
    for mine, other in zip(read_globals(again, batch)[1], expected, strict=True):
        torch.testing.assert_close(mine, other)


def test_a_copy_is_independent(batch: dict[str, Tensor]) -> None:
    model = read_only_globals(model_of())
    twin = copy.deepcopy(model)
    before = twin(**batch).last_hidden_state
    with torch.no_grad():
        for parameter in model.encoder.layer[-1].parameters():
            parameter.zero_()
    torch.testing.assert_close(twin(**batch).last_hidden_state, before, rtol=0, atol=0)


def test_the_parameters_keep_their_names() -> None:
    assert list(read_only_globals(model_of()).state_dict()) == list(model_of().state_dict())


def test_huggingfaces_own_attention_is_left_alone(batch: dict[str, Tensor]) -> None:
    states = read_only_globals(model_of(ours=False))(**batch).last_hidden_state
    torch.testing.assert_close(states, model_of(ours=False)(**batch).last_hidden_state, rtol=0, atol=0)


def test_attention_cannot_be_asked_of_it(batch: dict[str, Tensor]) -> None:
    tokens = torch.zeros(3, 1, dtype=torch.int64)
    model = read_only_globals(model_of())
    with pytest.raises(ValueError, match="has no attention to show"):
        model(**batch, output_attentions=True)
    with pytest.raises(ValueError, match="has no attention to show"), record_attention(model, tokens):
        model(**batch)
