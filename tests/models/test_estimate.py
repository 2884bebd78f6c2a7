"""Estimates of cost against PyTorch's own count of operations."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import LongformerConfig

from cdlm_lab.attention.layer import replace_self_attention
from cdlm_lab.models.estimate import estimate, parameter_count
from cdlm_lab.models.language_model import CrossDocumentLM

LENGTH = 128


def small_config(window: int) -> LongformerConfig:
    return LongformerConfig(
        vocab_size=500,
        hidden_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=256,
        attention_window=[window] * 3,
        max_position_embeddings=LENGTH + 2,
        pad_token_id=1,
    )


def test_forward_operations_are_those_that_pytorch_counts() -> None:
    """All tokens global: every pair counts, so the dense backend does just the estimated work twice over
    (it also computes the local scores, which are thrown away; their share is taken off)."""
    config = small_config(window=LENGTH)
    model = replace_self_attention(CrossDocumentLM(config), "dense").eval()
    ids = torch.arange(2, 2 + LENGTH)[None]
    labels = torch.where(torch.arange(LENGTH) % 5 == 0, ids, -100)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(ids, labels=labels)
    dense_attention = 3 * 2 * 2 * 2 * LENGTH * LENGTH * 64  # layers, both kinds, two products
    linear = counter.get_total_flops() - dense_attention
    found = estimate(config, length=LENGTH, batch=1, global_tokens=0, masked_tokens=26)
    pairs = sum(min(LENGTH, i + LENGTH // 2 + 1) - max(0, i - LENGTH // 2) for i in range(LENGTH))
    assert found.forward_flops == pytest.approx(linear + 3 * 2 * 2 * pairs * 64, rel=0.2)


def test_more_globals_cost_more_and_checkpointing_trades_memory_for_work() -> None:
    config = small_config(window=16)
    none, some = (estimate(config, length=LENGTH, batch=2, global_tokens=n) for n in (0, 20))
    assert some.forward_flops > none.forward_flops
    spared = estimate(config, length=LENGTH, batch=2, global_tokens=20, gradient_checkpointing=True)
    assert spared.training_flops > some.training_flops
    assert spared.activation_bytes < some.activation_bytes
    assert some.parameters == parameter_count(CrossDocumentLM(config))


@pytest.mark.parametrize(("length", "globals_"), [(0, 0), (10, 11), (10, -1)])
def test_sizes_that_cannot_be(length: int, globals_: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        estimate(small_config(window=8), length=length, batch=1, global_tokens=globals_)
