"""Attention between two sets of positions, against the full matrix of the dense oracle."""

import numpy as np
import pytest
import torch
from transformers import LongformerConfig, LongformerModel

from cdlm_lab.analysis.source_attention import attention_between
from cdlm_lab.attention.dense import dense_weights
from cdlm_lab.attention.layer import LocalGlobalSelfAttention, replace_self_attention
from cdlm_lab.models.language_model import CrossDocumentLM

LENGTH, HEADS, WINDOWS = 45, 4, [8, 12]  # not a multiple of the windows: Hugging Face pads the text
GLOBALS = [0, 3, 30]
A, B = (
    range(2, 9),
    range(25, 36),
)  # B holds a global token, A holds one, and they are out of each other's window


def config(**changes: object) -> LongformerConfig:
    return LongformerConfig(
        vocab_size=60,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        intermediate_size=48,
        attention_window=WINDOWS,
        max_position_embeddings=80,
        initializer_range=0.2,  # with the usual 0.02 attention is uniform: nothing to compare
        pad_token_id=1,
        **changes,
    )


@pytest.fixture(scope="module")
def model() -> CrossDocumentLM:
    torch.manual_seed(0)
    return replace_self_attention(CrossDocumentLM(config())).eval()


@pytest.fixture(scope="module")
def input_ids() -> torch.Tensor:
    return torch.randint(2, 60, (LENGTH,), generator=torch.Generator().manual_seed(1))


def global_mask(*positions: int) -> np.ndarray:
    return np.isin(np.arange(LENGTH), positions)


@torch.no_grad()
def full_matrix(model: CrossDocumentLM, input_ids: torch.Tensor, is_global: np.ndarray) -> np.ndarray:
    """(layer, head, seq, seq) by the oracle, from the hidden states that each layer read."""
    layers = [module for module in model.modules() if isinstance(module, LocalGlobalSelfAttention)]
    read: list[torch.Tensor] = []
    hooks = [layer.register_forward_pre_hook(lambda _, args: read.append(args[0])) for layer in layers]
    mask = torch.from_numpy(is_global)[None]
    model(input_ids[None], torch.ones(1, LENGTH), global_attention_mask=mask.long())
    for hook in hooks:
        hook.remove()
    names = ("query", "key", "query_global", "key_global")
    weights = [
        dense_weights(
            *(getattr(layer, name)(states[:, :LENGTH]).unflatten(-1, (HEADS, -1)) for name in names),
            attention_mask=torch.ones_like(mask),
            global_mask=mask,
            window=layer.window,
        )[0]
        for layer, states in zip(layers, read, strict=True)
    ]
    return torch.stack(weights).numpy()


@pytest.mark.parametrize("globals_", [GLOBALS, [], range(LENGTH)], ids=["some", "none", "all"])
@pytest.mark.parametrize(
    ("queries", "keys"),
    [(A, B), (B, A), (range(LENGTH), range(LENGTH)), ([40, 3, 3], [30, 0, 44, 41])],
    ids=["A to B", "B to A", "everything", "any order, repeated"],
)
def test_weights_are_those_of_the_full_matrix(model, input_ids, globals_, queries, keys):
    is_global = global_mask(*globals_)
    found = attention_between(model, input_ids, queries=queries, keys=keys, global_mask=is_global)
    expected = full_matrix(model, input_ids, is_global)[:, :, list(queries)][..., list(keys)]
    assert found.shape == (2, HEADS, len(queries), len(keys))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)


def test_what_is_neither_near_nor_global_has_weight_zero(model, input_ids):
    found = attention_between(model, input_ids, queries=A, keys=B, global_mask=global_mask(*GLOBALS))
    seen = np.zeros((len(A), len(B)), dtype=bool)
    seen[list(A).index(3)] = True
    seen[:, list(B).index(30)] = True
    assert (found[:, :, seen] > 0).all()
    assert (found[:, :, ~seen] == 0).all()


def test_rows_over_the_whole_text_sum_to_one(model, input_ids):
    found = attention_between(
        model, input_ids, queries=[0, 20, 44], keys=range(LENGTH), global_mask=global_mask(0)
    )
    np.testing.assert_allclose(found.sum(-1), 1, atol=1e-5)


def test_kinds_of_input_and_of_model_do_not_matter(model, input_ids):
    chosen = {"queries": [1, 2], "keys": [0, 5], "global_mask": global_mask(0)}
    expected = attention_between(model, input_ids, **chosen)
    as_lists = chosen | {"global_mask": chosen["global_mask"].tolist()}
    np.testing.assert_array_equal(attention_between(model, input_ids.tolist(), **as_lists), expected)
    as_arrays = chosen | {"queries": np.array([1, 2]), "keys": torch.tensor([0, 5])}
    np.testing.assert_array_equal(attention_between(model, input_ids.numpy(), **as_arrays), expected)
    encoder = model.longformer
    assert isinstance(encoder, LongformerModel)
    np.testing.assert_array_equal(attention_between(encoder, input_ids, **chosen), expected)


def test_dropout_is_off_and_the_mode_is_given_back(input_ids):
    torch.manual_seed(0)
    shaky = config(attention_probs_dropout_prob=0.5, hidden_dropout_prob=0.5)
    model = replace_self_attention(CrossDocumentLM(shaky)).train()
    chosen = {"queries": A, "keys": A, "global_mask": global_mask(0)}
    first, second = (attention_between(model, input_ids, **chosen) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert model.training
    assert all(getattr(module, "recorder", None) is None for module in model.modules()), "left recording"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"queries": [5, 45]}, "queries: position 45 is outside the text of 45 tokens"),
        ({"keys": [-1]}, "keys: position -1 is outside"),
        ({"queries": []}, "queries must be at least one position"),
        ({"keys": [0.5]}, "keys must be a list of positions"),
        ({"global_mask": [True]}, r"input_ids \(45,\) and global_mask \(1,\) must both be \(seq,\)"),
    ],
)
def test_what_does_not_fit_is_named(model, input_ids, changes, message):
    chosen = {"queries": A, "keys": B, "global_mask": global_mask(0)} | changes
    with pytest.raises(ValueError, match=message):
        attention_between(model, input_ids, **chosen)


def test_a_model_with_another_attention_is_refused(input_ids):
    with pytest.raises(ValueError, match="call replace_self_attention"):
        attention_between(LongformerModel(config()), input_ids, queries=A, keys=B, global_mask=global_mask(0))
