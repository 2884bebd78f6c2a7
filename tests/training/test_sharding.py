"""A sharded model computes, saves and loads what it would whole; here in a group of one process, so that it
runs everywhere. test_trainer_processes.py has two."""

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from transformers import LongformerConfig

from cdlm_lab.models.language_model import CrossDocumentLM
from cdlm_lab.training.processes import full_state, is_sharded, layers_of, shard, share_optimizer


@pytest.fixture
def group(tmp_path: Path) -> Iterator[None]:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'meeting'}", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture
def model() -> CrossDocumentLM:
    """Its embeddings are tied to its head."""
    torch.manual_seed(0)
    config = LongformerConfig(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        attention_window=[4, 4],
        max_position_embeddings=18,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=1,
    )
    return CrossDocumentLM(config).train()


def batch(*, global_tokens: bool) -> dict[str, Tensor]:
    ids = torch.arange(2, 18).reshape(2, 8)
    labels = torch.where(ids % 3 == 0, ids, -100)
    marks = (labels != -100).long() if global_tokens else torch.zeros_like(ids)
    return {
        "input_ids": ids,
        "labels": labels,
        "attention_mask": torch.ones_like(ids),
        "global_attention_mask": marks,
    }


def updated(model: nn.Module, optimizer: torch.optim.Optimizer, *, global_tokens: bool) -> float:
    optimizer.zero_grad()
    loss = model(**batch(global_tokens=global_tokens))["loss"]
    loss.backward()
    optimizer.step()
    return loss.item()


def assert_equal(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=0, msg=name)


def test_the_layers_are_the_largest_list_of_modules(model: CrossDocumentLM) -> None:
    assert layers_of(model) == list(model.longformer.encoder.layer)
    assert layers_of(nn.Linear(2, 2)) == []


def test_updates_and_states_are_those_of_the_whole_model(model: CrossDocumentLM, group: None) -> None:
    """The first update has no global token, so that global projections must stay as they are."""
    whole = copy.deepcopy(model)
    shard(model)
    assert is_sharded(model)
    assert not is_sharded(whole)
    assert all(isinstance(weight, DTensor) for weight in model.parameters())
    own, theirs = (torch.optim.AdamW(one.parameters(), weight_decay=0.1) for one in (model, whole))
    share_optimizer(own, model)
    for global_tokens in (False, True, True, False):
        assert updated(model, own, global_tokens=global_tokens) == updated(
            whole, theirs, global_tokens=global_tokens
        )
    assert_equal(full_state(model.state_dict()), whole.state_dict())
    found, expected = full_state(own.state_dict()), theirs.state_dict()
    assert found["param_groups"] == expected["param_groups"]
    for number, moments in expected["state"].items():
        assert_equal(found["state"][number], moments)


def test_a_state_of_a_whole_model_is_loaded_into_a_sharded_one(model: CrossDocumentLM, group: None) -> None:
    whole = copy.deepcopy(model)
    theirs = torch.optim.AdamW(whole.parameters(), weight_decay=0.1)
    updated(whole, theirs, global_tokens=True)
    shard(model)
    own = torch.optim.AdamW(model.parameters(), weight_decay=0.1)
    share_optimizer(own, model)
    model.load_state_dict(whole.state_dict())
    own.load_state_dict(copy.deepcopy(theirs.state_dict()))  # it would share the tensors
    assert updated(model, own, global_tokens=True) == updated(whole, theirs, global_tokens=True)
    assert_equal(full_state(model.state_dict()), whole.state_dict())


def test_in_evaluation_outputs_are_left_as_they_are(model: CrossDocumentLM, group: None) -> None:
    expected = copy.deepcopy(model).eval()(**batch(global_tokens=True))["loss"]
    shard(model)
    with torch.no_grad():
        assert model.eval()(**batch(global_tokens=True))["loss"] == expected
