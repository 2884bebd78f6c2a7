"""Converted BERT and RoBERTa compute what they did before, on texts that fit their window."""

import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer, BertConfig

from cdlm_lab.models.conversion import copy_local_to_global, longformer_config, tiled_positions
from cdlm_lab.models.encoder import load_encoder, load_language_model

TEXT = "w3 w7 w1 w1 w40 w22 w9 w30 w3 w14"


@pytest.mark.parametrize("kind", ["bert", "roberta"])
@pytest.mark.parametrize("all_global", [False, True])
def test_hidden_states_and_logits_are_kept(
    kind: str, all_global: bool, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(kind)
    original = AutoModelForMaskedLM.from_pretrained(folder).eval()
    ids = AutoTokenizer.from_pretrained(folder)(TEXT, return_tensors="pt")["input_ids"]
    model, _ = load_language_model(folder, max_length=64, window=32)
    encoder, _ = load_encoder(folder, max_length=64, window=32)
    globals_ = torch.full_like(ids, int(all_global))
    with torch.no_grad():
        expected = original(ids, output_hidden_states=True)
        logits = model(ids, global_attention_mask=globals_).logits
        hidden = encoder(ids, global_attention_mask=globals_).last_hidden_state
    torch.testing.assert_close(hidden, expected.hidden_states[-1], rtol=0, atol=1e-5)
    words = expected.logits.shape[-1]
    torch.testing.assert_close(logits[..., :words], expected.logits, rtol=0, atol=1e-5)


def test_positions_are_tiled_past_the_old_limit(roberta) -> None:
    model, _ = load_language_model(roberta, max_length=60, window=8)
    table = model.longformer.embeddings.position_embeddings.weight
    assert len(table) == 62, "padding_idx + 1 rows that nobody uses, then 60 positions"
    torch.testing.assert_close(table[2 + 24 : 2 + 48], table[2 : 2 + 24], rtol=0, atol=0)
    torch.testing.assert_close(table[2 + 48 :], table[2 : 2 + 12], rtol=0, atol=0)


def test_tiling_worked() -> None:
    """Two unused rows, three positions, seven wanted."""
    table = torch.tensor([[9.0], [9.0], [1.0], [2.0], [3.0]])
    tiled = tiled_positions(table, first=2, padding_idx=1, max_length=7)
    assert tiled.flatten().tolist() == [0, 0, 1, 2, 3, 1, 2, 3, 1]


def test_global_projections_start_as_the_local_ones(bert) -> None:
    model, _ = load_language_model(bert, max_length=32, window=8)
    attention = model.longformer.encoder.layer[1].attention.self
    for name in ("query", "key", "value"):
        local, global_ = getattr(attention, name), getattr(attention, f"{name}_global")
        assert torch.equal(local.weight, global_.weight)
        assert torch.equal(local.bias, global_.bias)
        assert local.weight.data_ptr() != global_.weight.data_ptr(), "a copy: they learn apart"
    with torch.no_grad():
        attention.query.weight += 1
    copy_local_to_global(model)
    assert torch.equal(attention.query.weight, attention.query_global.weight)


def test_other_models_are_not_converted() -> None:
    config = BertConfig()
    config.model_type = "albert"
    with pytest.raises(ValueError, match="albert"):
        longformer_config(config, max_length=64, window=8)
