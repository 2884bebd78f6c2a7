"""The drop-in layer inside Hugging Face's models: outputs, gradients, checkpoints, returned attentions,
recorder."""

import copy

import pytest
import torch
from torch import Tensor
from transformers import LongformerConfig, LongformerForMaskedLM, LongformerForSequenceClassification

from cdlm_lab.attention.layer import LocalGlobalSelfAttention, replace_self_attention
from cdlm_lab.attention.weights import record_attention

VOCABULARY, LENGTH = 60, 61


def huggingface_model(**changes) -> LongformerForMaskedLM:
    settings = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "attention_window": [8, 8, 16],
        "max_position_embeddings": 140,
        "attention_probs_dropout_prob": 0.0,
        "hidden_dropout_prob": 0.0,
        "pad_token_id": 1,
    }
    torch.manual_seed(0)
    model = LongformerForMaskedLM(LongformerConfig(**settings | changes))
    with torch.no_grad():
        for (
            parameter
        ) in model.parameters():  # the default of 0.02 makes attention uniform: nothing to compare
            parameter.normal_(0, 0.2)
    return model


def batch_of(rows: int = 3, globals_: float = 0.2) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1)
    input_ids = torch.randint(2, VOCABULARY, (rows, LENGTH), generator=generator)
    attention_mask = torch.ones(rows, LENGTH, dtype=torch.long)
    attention_mask[1:2, 40:] = 0
    global_mask = (torch.rand(rows, LENGTH, generator=generator) < globals_).long()
    global_mask[2:3] = 0
    return {
        "input_ids": torch.where(attention_mask.bool(), input_ids, 1),
        "attention_mask": attention_mask,
        "global_attention_mask": global_mask * attention_mask,
    }


@pytest.mark.parametrize("globals_", [0.0, 0.05, 0.2, 1.0])
@pytest.mark.parametrize("backend", ["auto", "sparse", "blockwise", "dense"])
def test_logits_and_gradients_equal_huggingface(backend: str, globals_: float) -> None:
    theirs = huggingface_model()
    ours = replace_self_attention(copy.deepcopy(theirs), backend)
    # one row, unpadded: with padding Hugging Face's own gradient is NaN where a window holds padding alone
    batch = {name: tensor[:1] for name, tensor in batch_of(globals_=globals_).items()}
    gradients = []
    for model in (theirs, ours):
        logits = model(**batch).logits
        torch.nn.functional.cross_entropy(logits[0], batch["input_ids"][0]).backward()
        gradients.append({name: parameter.grad for name, parameter in model.named_parameters()})
    torch.testing.assert_close(ours(**batch).logits, theirs(**batch).logits, rtol=0, atol=2e-5)
    for name, wanted in gradients[0].items():
        if wanted is None or not wanted.any():
            assert gradients[1][name] is None or not gradients[1][name].any(), name
        else:
            torch.testing.assert_close(gradients[1][name], wanted, rtol=1e-3, atol=2e-6, msg=name)


def test_logits_equal_huggingface_in_a_padded_ragged_batch() -> None:
    theirs = huggingface_model()
    ours = replace_self_attention(copy.deepcopy(theirs))
    batch = batch_of()
    present = batch["attention_mask"].bool()
    with torch.no_grad():
        torch.testing.assert_close(
            ours(**batch).logits[present], theirs(**batch).logits[present], rtol=0, atol=2e-5
        )


def test_a_row_alone_equals_the_row_in_its_batch_and_padding_is_inert() -> None:
    model = replace_self_attention(huggingface_model().double())
    batch = batch_of()
    with torch.no_grad():
        together = model(**batch).logits
        alone = model(**{name: tensor[1:2, :40] for name, tensor in batch.items()}).logits
    torch.testing.assert_close(alone[0], together[1, :40], rtol=0, atol=1e-12)


def test_checkpoints_go_both_ways(tmp_path) -> None:
    theirs = huggingface_model()
    ours = replace_self_attention(copy.deepcopy(theirs))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.save_pretrained(tmp_path)
    loaded = LongformerForMaskedLM.from_pretrained(tmp_path)
    batch = batch_of()
    with torch.no_grad():
        torch.testing.assert_close(loaded(**batch).logits[0], theirs(**batch).logits[0], rtol=0, atol=0)


def test_any_longformer_model_is_served() -> None:
    config = huggingface_model().config
    model = replace_self_attention(LongformerForSequenceClassification(config))
    swapped = [module for module in model.modules() if isinstance(module, LocalGlobalSelfAttention)]
    assert [layer.window for layer in swapped] == [8, 8, 16]
    assert len({id(layer.plans) for layer in swapped}) == 1, "the layers share one plan"
    assert model(**batch_of()).logits.shape == (3, 2)


def test_texts_are_not_filled_up_to_a_multiple_of_the_window() -> None:
    lengths = {}
    models = {"theirs": huggingface_model(), "ours": replace_self_attention(huggingface_model())}
    for name, model in models.items():
        embeddings = model.base_model.embeddings
        embeddings.register_forward_hook(lambda _, __, out, name=name: lengths.update({name: out.shape[1]}))
        with torch.no_grad():
            model(**batch_of())
    assert lengths == {"theirs": 64, "ours": LENGTH}


def test_returned_attentions_equal_huggingface() -> None:
    theirs = huggingface_model()
    ours = replace_self_attention(copy.deepcopy(theirs))
    batch = batch_of()
    n_global = batch["global_attention_mask"].sum(1)
    with torch.no_grad():
        expected, actual = (model(**batch, output_attentions=True) for model in (theirs, ours))
    for layer in range(3):
        torch.testing.assert_close(actual.attentions[layer], expected.attentions[layer], rtol=0, atol=2e-6)
        mine, wanted = actual.global_attentions[layer], expected.global_attentions[layer]
        # Hugging Face fills the text up to a multiple of its window and returns that for the global tokens
        wanted = wanted[:, :, :LENGTH]
        assert mine.shape == wanted.shape
        for row in range(3):  # beyond a row's own globals Hugging Face returns filler
            torch.testing.assert_close(
                mine[row, ..., : n_global[row]], wanted[row, ..., : n_global[row]], atol=2e-6, rtol=0
            )


def test_recorded_attention_equals_the_full_matrix() -> None:
    """From and to a global token, a local one and one at the end, against Hugging Face's returned weights
    made dense."""
    theirs = huggingface_model()
    ours = replace_self_attention(copy.deepcopy(theirs))
    batch = {name: tensor[:1] for name, tensor in batch_of().items()}
    globals_ = batch["global_attention_mask"][0].nonzero().flatten()
    local = next(token for token in range(20, LENGTH) if token not in globals_)
    chosen = torch.tensor([[int(globals_[1]), local, LENGTH - 1]])
    with torch.no_grad(), record_attention(ours, chosen) as recorder:
        ours(**batch)
    with torch.no_grad():
        expected = theirs(**batch, output_attentions=True)
    for layer, window in enumerate([8, 8, 16]):
        matrix = torch.zeros(4, LENGTH, LENGTH)
        banded, from_globals = expected.attentions[layer][0], expected.global_attentions[layer][0]
        for query in range(LENGTH):
            matrix[:, query, globals_] = banded[:, query, : len(globals_)]
            for column in range(window + 1):
                key = query - window // 2 + column
                if 0 <= key < LENGTH and key not in globals_:
                    matrix[:, query, key] = banded[:, query, len(globals_) + column]
        matrix[:, globals_] = from_globals[:, :LENGTH].transpose(1, 2)
        for column, token in enumerate(chosen[0].tolist()):
            given, received = (
                recorder.from_tokens[layer][0, :, column],
                recorder.to_tokens[layer][0, :, column],
            )
            torch.testing.assert_close(given[:, :LENGTH], matrix[:, token], rtol=0, atol=2e-6)
            torch.testing.assert_close(received[:, :LENGTH], matrix[:, :, token], rtol=0, atol=2e-6)


def test_recorder_names_what_is_wrong() -> None:
    model = huggingface_model()
    with (
        pytest.raises(ValueError, match="call replace_self_attention"),
        record_attention(model, torch.tensor([[0]])),
    ):
        pass
    replace_self_attention(model)
    with (
        pytest.raises(ValueError, match="token 50 of row 1 is padding"),
        torch.no_grad(),
        record_attention(model, torch.tensor([[0], [50], [0]])),
    ):
        model(**batch_of())
    assert all(getattr(module, "recorder", None) is None for module in model.modules()), "left recording"


def test_dropout_while_training_goes_through_the_exact_slow_path() -> None:
    model = replace_self_attention(huggingface_model(attention_probs_dropout_prob=0.3))
    batch = batch_of()
    model.train()
    torch.manual_seed(0)
    first, second = model(**batch).logits, model(**batch).logits
    assert (first - second).abs().max() > 1e-3
    model.eval()
    with torch.no_grad():
        torch.testing.assert_close(model(**batch).logits, model(**batch).logits, rtol=0, atol=0)


def test_gradient_checkpointing_gives_the_same_gradients() -> None:
    model = replace_self_attention(huggingface_model().double())
    batch = batch_of()
    gradients = []
    for checkpointing in (False, True):
        if checkpointing:
            model.activation_checkpointing_enable()
        model.train()
        model.zero_grad()
        model(**batch).logits.square().mean().backward()
        gradients.append(
            [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
        )
    for plain, recomputed in zip(*gradients, strict=True):
        torch.testing.assert_close(recomputed, plain, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_stays_close_to_float32(dtype: torch.dtype) -> None:
    model = replace_self_attention(huggingface_model())
    batch = batch_of()
    with torch.no_grad():
        exact = model(**batch).logits
        with torch.autocast("cpu", dtype=dtype):
            rounded = model(**batch).logits
    present = batch["attention_mask"].bool()
    # three layers of products in a precision of 2**-8 or 2**-11
    assert (rounded.float() - exact)[present].abs().mean() < 0.02 * exact[present].abs().mean()


def test_unknown_backend_and_models_without_longformer_layers_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown attention backend 'fast'; choose one of auto, sparse"):
        replace_self_attention(huggingface_model(), "fast")
    with pytest.raises(ValueError, match="Linear holds no Longformer self-attention"):
        replace_self_attention(torch.nn.Linear(2, 2))


def test_changing_the_backend_later() -> None:
    model = replace_self_attention(huggingface_model(), "sparse")
    replace_self_attention(model, "dense")
    layers = [module for module in model.modules() if isinstance(module, LocalGlobalSelfAttention)]
    assert [layer.backend for layer in layers] == ["dense"] * 3


def test_memory_is_linear_in_length() -> None:
    """What the backward keeps of the sparse path: twice the length, twice the elements (a full matrix: four
    times)."""

    def kept(length: int) -> int:
        layer = replace_self_attention(torch.nn.ModuleDict({"self": huggingface_layer()}))["self"]
        hidden = torch.randn(1, length, 32, requires_grad=True)
        mask = torch.zeros(1, length)
        mask[0, :16] = 1.0
        total = 0

        def pack(tensor: Tensor) -> Tensor:
            nonlocal total
            total += tensor.numel()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            layer(hidden, attention_mask=mask)
        return total

    assert kept(2048) < 2.1 * kept(1024)


def huggingface_layer() -> torch.nn.Module:
    return huggingface_model().longformer.encoder.layer[0].attention.self
