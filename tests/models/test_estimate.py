"""Estimates of cost against PyTorch's own count of operations."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import LongformerConfig

from cdlm_lab.attention.layer import replace_self_attention
from cdlm_lab.models.estimate import estimate, parameter_count
from cdlm_lab.models.language_model import CrossDocumentLM

LENGTH = 128


def small_config(window: int, width: int = 64) -> LongformerConfig:
    return LongformerConfig(
        vocab_size=500,
        hidden_size=width,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=4 * width,
        attention_window=[window] * 3,
        max_position_embeddings=4 * LENGTH + 2,
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


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("width", "length", "window", "globals_"),
    [(64, 128, 16, 20), (64, 128, 16, 0), (64, 65, 64, 0), (16, 512, 64, 100), (16, 512, 512, 200)],
)
def test_training_operations_and_memory_are_near_what_is_measured(
    width: int, length: int, window: int, globals_: int, dtype: torch.dtype, dropout: float
) -> None:
    """Operations are counted in bfloat16, where they are matrix products that PyTorch can count. Linear
    layers dominate where the width is 64, attention where it is 16; 65 tokens are not filled up to 128."""
    config = small_config(window, width)
    config.hidden_dropout_prob, config.attention_probs_dropout_prob = dropout, 0.0
    torch.manual_seed(0)
    model = replace_self_attention(CrossDocumentLM(config))
    ids = torch.randint(3, 500, (2, length))
    labels = torch.where(torch.arange(length) % 5 == 0, ids, -100)
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}
    batch["global_attention_mask"] = (torch.arange(length) < globals_).long().expand_as(ids)
    found = estimate(
        config,
        length=length,
        batch=2,
        global_tokens=globals_,
        masked_tokens=length / 5,
        bytes_per_number=dtype.itemsize,
    )
    half = torch.autocast("cpu", dtype=torch.bfloat16)
    with FlopCounterMode(display=False) as counter, half:
        model(**batch).loss.backward()
    assert 2 * found.training_flops == pytest.approx(counter.get_total_flops(), rel=0.2)
    assert found.activation_bytes == pytest.approx(kept_bytes(model, batch, dtype), rel=0.2)


def kept_bytes(model: CrossDocumentLM, batch: dict[str, torch.Tensor], dtype: torch.dtype) -> int:
    """Storages that autograd keeps, weights aside, and the logits with their gradient."""
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    half = torch.autocast("cpu", dtype=dtype, enabled=dtype != torch.float32)
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor), half:
        output = model(**batch)
    return sum(kept.values()) + 2 * output.logits.numel() * 4
