"""One row of the mask is made instead of a square, and nothing else changes."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import LongformerConfig, LongformerModel

from cdlm_lab.attention.layer import mask_by_row, replace_self_attention

LENGTH = 64


class LargestTensor(TorchDispatchMode):
    """Remembers how many numbers the largest result had."""

    numbers = 0

    def __torch_dispatch__(
        self, function: Callable, types: object, args: tuple = (), kwargs: dict | None = None
    ) -> object:
        result = function(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self.numbers = max(self.numbers, result.numel())
        return result


@pytest.fixture
def model() -> LongformerModel:
    torch.manual_seed(0)
    config = LongformerConfig(
        vocab_size=50,
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        attention_window=[8, 8],
        max_position_embeddings=LENGTH + 2,
        pad_token_id=1,
    )
    return LongformerModel(config, add_pooling_layer=False).eval()


def batch() -> dict[str, torch.Tensor]:
    mask, is_global = torch.ones(2, LENGTH, dtype=torch.int64), torch.zeros(2, LENGTH, dtype=torch.int64)
    mask[1, 40:], is_global[:, 3] = 0, 1
    ids = torch.randint(2, 50, (2, LENGTH), generator=torch.Generator().manual_seed(0))
    return {"input_ids": ids, "attention_mask": mask, "global_attention_mask": is_global}


def test_hugging_faces_own_attention_gives_what_it_gave(model: LongformerModel):
    before = model(**batch()).last_hidden_state
    mask_by_row(model)
    assert torch.equal(model(**batch()).last_hidden_state, before)
    assert torch.equal(copy.deepcopy(model)(**batch()).last_hidden_state, before)


def test_without_a_mask_all_are_tokens(model: LongformerModel):
    ids = batch()["input_ids"]
    before = model(ids).last_hidden_state
    mask_by_row(model)
    assert torch.equal(model(ids).last_hidden_state, before)


def test_nothing_is_as_large_as_a_square_of_the_length(model: LongformerModel):
    """The largest is the feed-forward block's; Hugging Face's own mask has length^2 numbers a row."""
    with LargestTensor() as before:
        model(**batch())
    replace_self_attention(model)
    with LargestTensor() as after, torch.no_grad():
        model(**batch())
    assert before.numbers >= 2 * LENGTH**2
    assert after.numbers < LENGTH**2


def test_a_model_that_makes_no_such_mask_stays_as_it_is():
    plain = torch.nn.Linear(2, 2)
    mask_by_row(plain)
    assert "forward" not in vars(plain)
