"""The drop-in layer inside Hugging Face's models: outputs, gradients, checkpoints, returned attentions, the
plan made with the batch, and a last layer that computes global tokens only."""

import copy
import pickle

import pytest
import torch
from attention_cases import VOCABULARY, LargestTensor, led, longformer
from torch import Tensor, nn
from transformers import LongformerForMaskedLM, LongformerForSequenceClassification, LongformerModel

from cdlm_lab.attention.layer import LocalGlobalSelfAttention, with_our_attention
from cdlm_lab.attention.plan import SIDE, make_plan
from cdlm_lab.attention.weights import record_attention
from cdlm_lab.encoders import packed
from cdlm_lab.encoders.packed import read_only_globals, replace_self_attention

LENGTH = 61


def huggingface_model(**changes) -> LongformerForMaskedLM:
    return longformer(LongformerForMaskedLM, **changes)


def batch_of(globals_: float = 0.2, length: int = LENGTH) -> dict[str, Tensor]:
    """Make a batch of three rows: the second has padding, the third has no global token."""
    generator = torch.Generator().manual_seed(1)
    input_ids = torch.randint(2, VOCABULARY, (3, length), generator=generator)
    attention_mask = torch.ones(3, length, dtype=torch.long)
    attention_mask[1, 40:] = 0
    global_mask = (torch.rand(3, length, generator=generator) < globals_).long()
    global_mask[2] = 0
    masks = {"attention_mask": attention_mask, "global_attention_mask": global_mask * attention_mask}
    return {"input_ids": torch.where(attention_mask.bool(), input_ids, 1)} | masks


@pytest.mark.parametrize("globals_", [0.0, 0.05, 0.2, 1.0])
@pytest.mark.parametrize("backend", ["auto", "sparse", "dense"])
def test_logits_and_gradients_equal_huggingface(backend: str, globals_: float) -> None:
    theirs = huggingface_model()
    ours = replace_self_attention(copy.deepcopy(theirs), backend)
    # one row, unpadded: with padding Hugging Face's own gradient is NaN where a window holds padding alone
    batch = {name: tensor[:1] for name, tensor in batch_of(globals_).items()}
    logits = []
    for model in (theirs, ours):
        logits.append(model(**batch).logits)
        nn.functional.cross_entropy(logits[-1][0], batch["input_ids"][0]).backward()
    torch.testing.assert_close(logits[1], logits[0], rtol=0, atol=2e-5)
    for (name, wanted), own in zip(theirs.named_parameters(), ours.parameters(), strict=True):
        if wanted.grad is None or not wanted.grad.any():
            assert own.grad is None or not own.grad.any(), name
        else:
            torch.testing.assert_close(own.grad, wanted.grad, rtol=1e-3, atol=2e-6, msg=name)


@torch.no_grad()
@pytest.mark.parametrize("globals_", [0.0, 0.2])
def test_an_led_computes_what_hugging_faces_does(globals_: float) -> None:
    theirs = led()
    ours, batch = replace_self_attention(copy.deepcopy(theirs)), batch_of(globals_)
    batch["decoder_input_ids"] = batch["input_ids"][:, :5].clip(min=2)
    expected, found = (model(**batch, output_attentions=True) for model in (theirs, ours))
    present = batch["attention_mask"].bool()
    for name in ("logits", "encoder_last_hidden_state"):
        mine, wanted = (one[name] if name == "logits" else one[name][present] for one in (found, expected))
        torch.testing.assert_close(mine, wanted, rtol=0, atol=2e-5)
    for mine, wanted in zip(found.encoder_attentions, expected.encoder_attentions, strict=True):
        torch.testing.assert_close(mine, wanted, rtol=0, atol=2e-6)


@torch.no_grad()
def test_in_a_padded_ragged_batch_logits_equal_huggingface_and_padding_is_inert() -> None:
    theirs, batch = huggingface_model(), batch_of()
    ours, present = replace_self_attention(copy.deepcopy(theirs)), batch["attention_mask"].bool()
    expected = theirs(**batch).logits[present]
    torch.testing.assert_close(ours(**batch).logits[present], expected, rtol=0, atol=2e-5)
    exact = ours.double()
    alone = exact(**{name: tensor[1:2, :40] for name, tensor in batch.items()}).logits
    torch.testing.assert_close(alone[0], exact(**batch).logits[1, :40], rtol=0, atol=1e-12)


@torch.no_grad()
def test_checkpoints_go_both_ways(tmp_path) -> None:
    theirs = huggingface_model()
    ours = replace_self_attention(copy.deepcopy(theirs))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.save_pretrained(tmp_path)
    loaded, batch = LongformerForMaskedLM.from_pretrained(tmp_path), batch_of()
    torch.testing.assert_close(loaded(**batch).logits[0], theirs(**batch).logits[0], rtol=0, atol=0)


def test_any_longformer_model_is_served_and_the_backend_can_be_changed() -> None:
    model = replace_self_attention(longformer(LongformerForSequenceClassification), "sparse")
    swapped = [module for module in model.modules() if isinstance(module, LocalGlobalSelfAttention)]
    assert [layer.window for layer in swapped] == [8, 8, 16]
    assert model(**batch_of()).logits.shape == (3, 2)
    replace_self_attention(model, "dense")
    assert [layer.backend for layer in swapped] == ["dense"] * 3
    with pytest.raises(ValueError, match="attention backend is 'fast'; choose one of auto, sparse"):
        replace_self_attention(model, "fast")
    with pytest.raises(ValueError, match="Linear holds no Longformer or ModernBERT"):
        replace_self_attention(nn.Linear(2, 2))


@torch.no_grad()
def test_neither_padding_nor_a_multiple_of_the_window_is_computed() -> None:
    lengths = []
    for model in (huggingface_model(), replace_self_attention(huggingface_model())):
        model.base_model.embeddings.register_forward_hook(lambda _, __, out: lengths.append(out.shape[1]))
        model(**batch_of())
    assert lengths == [64, LENGTH + 40 + LENGTH]


@torch.no_grad()
def test_returned_attentions_equal_huggingface() -> None:
    theirs, batch = huggingface_model(), batch_of()
    ours, n_global = replace_self_attention(copy.deepcopy(theirs)), batch["global_attention_mask"].sum(1)
    expected, actual = (model(**batch, output_attentions=True) for model in (theirs, ours))
    for layer in range(3):
        torch.testing.assert_close(actual.attentions[layer], expected.attentions[layer], rtol=0, atol=2e-6)
        # Hugging Face fills the text up to a multiple of its window and returns that for the global tokens
        mine, wanted = actual.global_attentions[layer], expected.global_attentions[layer][:, :, :LENGTH]
        assert mine.shape == wanted.shape
        for row, count in enumerate(n_global):  # beyond a row's own globals Hugging Face returns filler
            torch.testing.assert_close(mine[row, ..., :count], wanted[row, ..., :count], atol=2e-6, rtol=0)


def test_weights_are_dropped_while_training_alone() -> None:
    model, batch = replace_self_attention(huggingface_model(attention_probs_dropout_prob=0.3)), batch_of()
    torch.testing.assert_close(model(**batch).logits, model(**batch).logits, rtol=0, atol=0)
    model.train()
    torch.manual_seed(0)
    first, second = model(**batch).logits, model(**batch).logits
    assert (first - second).abs().max() > 1e-3


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@torch.no_grad()
def test_half_precision_stays_close_to_float32(dtype: torch.dtype) -> None:
    model, batch = replace_self_attention(huggingface_model()), batch_of()
    exact, present = model(**batch).logits, batch["attention_mask"].bool()
    with torch.autocast("cpu", dtype=dtype):
        rounded = model(**batch).logits
    # three layers of products in a precision of 2**-8 or 2**-11
    assert (rounded.float() - exact)[present].abs().mean() < 0.02 * exact[present].abs().mean()


def test_in_bfloat16_all_products_have_full_rows() -> None:
    """oneDNN compiles a product for every number of rows; what fills up changes nothing."""
    model, batch, rows = replace_self_attention(huggingface_model()), batch_of(), set()
    for module in model.longformer.modules():
        if isinstance(module, nn.Linear):
            module.register_forward_hook(lambda _, given, __: rows.add(given[0].shape[:-1].numel()))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = model(**batch).logits
    assert rows
    assert not any(count % SIDE for count in rows)
    present = batch["attention_mask"].bool()
    alone = {name: tensor[2:] for name, tensor in batch.items()}
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(model(**alone).logits[0], found[2], rtol=0.05, atol=0.05)
    assert found[present].isfinite().all()


def test_memory_is_linear_in_length() -> None:
    """What autograd keeps doubles with the length (a full matrix would take four times as much)."""

    def kept(length: int) -> int:
        attention = huggingface_model().longformer.encoder.layer[0].attention
        layer = with_our_attention(attention.self, backend="auto")
        present, sizes = torch.ones(1, length, dtype=torch.bool), []
        plan = make_plan(attention_mask=present, global_mask=torch.arange(length)[None] < 16, window=8)

        def pack(tensor: Tensor) -> Tensor:
            sizes.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            layer(torch.randn(1, length, 32, requires_grad=True), attention_mask=plan)
        return sum(sizes)

    assert kept(2048) < 2.1 * kept(1024)


@torch.no_grad()
def test_a_plan_made_with_the_batch_is_used_for_layers_of_its_window(monkeypatch) -> None:
    model, batch = encoder(attention_window=[8, 8, 8]), batch_of()
    expected = model(**batch).last_hidden_state
    masks = {"attention_mask": batch["attention_mask"] > 0, "global_mask": batch["global_attention_mask"] > 0}
    made = make_plan(**masks, window=8)
    other = make_plan(**masks, window=4)
    assert torch.equal(model(**batch, plan=other).last_hidden_state, expected), "made anew"
    with monkeypatch.context() as patched:
        patched.delattr(packed, "make_plan")
        assert torch.equal(model(**batch, plan=pickle.loads(pickle.dumps(made))).last_hidden_state, expected)  # noqa: S301
    with pytest.raises(ValueError, match=r"the plan is of a batch \(3, 61\), but this is \(1, 61\)"):
        model(**{name: tensor[:1] for name, tensor in batch.items()}, plan=made)


@pytest.mark.parametrize("padded", [False, True])
def test_short_texts_without_globals_are_read_as_by_bert(padded: bool, monkeypatch) -> None:
    """Without a plan, and as a backend that has one: states and gradients of 21 tokens, window 40."""
    batch = batch_of(globals_=0.0, length=21)
    del batch["global_attention_mask"]
    if padded:
        batch["attention_mask"][1, 12:] = 0
    is_token = batch["attention_mask"][..., None]
    found = {}
    for backend in ("sparse", "auto"):
        model = replace_self_attention(longformer(LongformerModel, attention_window=[40] * 3), backend)
        states = model(**batch).last_hidden_state * is_token
        (states * torch.linspace(-1, 1, states.shape[-1])).sum().backward()
        gradients = {name: one.grad for name, one in model.named_parameters() if "global" not in name}
        found[backend] = states.detach(), gradients
        monkeypatch.delattr(packed, "make_plan", raising=False)  # what is asked for next needs none
    torch.testing.assert_close(found["auto"], found["sparse"], rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_nothing_is_as_large_as_a_square_of_the_length():
    """The largest tensor is the feed-forward block's; Hugging Face's mask has length^2 elements per row."""
    length, sizes = 600, {"hidden_size": 8, "intermediate_size": 16, "num_attention_heads": 2}
    model, batch = longformer(LongformerModel, max_position_embeddings=602, **sizes), batch_of(length=length)
    with LargestTensor() as before:
        model(**batch)
    replace_self_attention(model)
    with LargestTensor() as after:
        model(**batch)
    assert before.numbers >= 3 * length**2
    assert after.numbers < length**2


# ---- a last layer of global tokens alone


def encoder(**changes) -> LongformerModel:
    return replace_self_attention(longformer(LongformerModel, **changes))


def read_globals(model: LongformerModel, batch: dict[str, Tensor]) -> tuple[Tensor, list[Tensor | None]]:
    """Return the last states, and the gradients of a sum that reads only those of global tokens."""
    states = model(**batch).last_hidden_state
    weights = torch.linspace(-1, 1, states.shape[-1]) * batch["global_attention_mask"][..., None]
    (states * weights).sum().backward()
    return states.detach(), [parameter.grad for parameter in model.parameters()]


def test_states_and_gradients_of_globals_are_those_of_the_whole_layer() -> None:
    whole, model, batch = encoder(), read_only_globals(encoder()), batch_of()
    assert list(model.state_dict()) == list(whole.state_dict())
    (expected, wanted), (actual, gradients) = (read_globals(one, batch) for one in (whole, model))
    is_global = batch["global_attention_mask"] == 1
    torch.testing.assert_close(actual[is_global], expected[is_global], rtol=1e-5, atol=1e-5)
    assert not actual[~is_global].any()
    for (name, _), mine, other in zip(whole.named_parameters(), gradients, wanted, strict=True):
        if mine is None:
            assert not other.any(), name
        else:
            torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5, msg=name)
    batch["global_attention_mask"].zero_()
    assert not model(**batch).last_hidden_state.any(), "without a global token all is zero"
    theirs = longformer(LongformerModel)
    states = theirs(**batch).last_hidden_state
    assert torch.equal(read_only_globals(theirs)(**batch).last_hidden_state, states), "others are left alone"


def test_dropout_of_a_last_layer_of_globals() -> None:
    model, batch = read_only_globals(encoder(attention_probs_dropout_prob=0.5)), batch_of()
    states = model(**batch).last_hidden_state
    for other in model.encoder.layer[:-1]:
        other.attention.self.dropout = 0.0  # what differs below comes from the last layer
    model.train()
    torch.manual_seed(0)
    assert (model(**batch).last_hidden_state != states).any()
    model.encoder.layer[-1].attention.self.dropout = 0.0
    torch.testing.assert_close(model(**batch).last_hidden_state, states, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("globals_only", [False, True])
def test_gradient_checkpointing_gives_the_same_gradients(globals_only: bool) -> None:
    gradients = []
    for checkpointing in (False, True):
        model = encoder().double().train()
        if globals_only:
            read_only_globals(model)
        if checkpointing:
            model.gradient_checkpointing_enable({"use_reentrant": False})
        gradients.append(read_globals(model, batch_of())[1])
    for plain, recomputed in zip(*gradients, strict=True):
        torch.testing.assert_close(recomputed, plain, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "token", "message"),
    [
        (lambda: longformer(LongformerModel), 0, "call replace_self_att"),
        (encoder, 50, "token 50 of row 1 is padding"),
        (lambda: read_only_globals(encoder()), 0, "has no attention to show"),
    ],
)
def test_what_cannot_be_recorded_is_named_and_nothing_is_left_recording(make, token: int, message: str):
    model, tokens = make(), torch.tensor([[0], [token], [0]])
    with pytest.raises(ValueError, match=message), record_attention(model, tokens):
        model(**batch_of())
    assert all(getattr(module, "recorder", None) is None for module in model.modules())
    if "no attention" in message:
        with pytest.raises(ValueError, match=message):
            model(**batch_of(), output_attentions=True)
