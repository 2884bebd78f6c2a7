"""The masked language model and its loss; precision and kept memory; how long a step takes."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode
from transformers import LongformerConfig, LongformerForMaskedLM

from cdlm_lab.attention.weights import recordable_layers
from cdlm_lab.encoders import estimate, precision
from cdlm_lab.encoders.language_model import (
    COLUMNS,
    ROWS_AT_ONCE,
    CrossDocumentLM,
    wide_logits,
    word_losses,
)
from cdlm_lab.encoders.packed import replace_self_attention
from cdlm_lab.encoders.precision import computing_in, resolve_precision
from cdlm_lab.examples.collate import Collate
from cdlm_lab.parameters import ParameterError


def batch_of(rows: int = 3, length: int = 32) -> dict[str, Tensor]:
    """Make a batch of random tokens: the second row is padded from 20 on; a fifth is masked and global."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 55, (rows, length), generator=generator)
    present = torch.ones(rows, length, dtype=torch.long)
    present[1:2, 20:] = 0
    masked = (torch.rand(rows, length, generator=generator) < 0.2) & present.bool()
    return {
        "input_ids": torch.where(masked, 4, ids) * present + (1 - present),
        "attention_mask": present,
        "global_attention_mask": masked.long(),
        "labels": torch.where(masked, ids, -100),
    }


def test_saved_it_is_the_plain_class_with_its_loss_and_gradients(language_model, tmp_path) -> None:
    language_model.save_pretrained(tmp_path)
    assert not list(tmp_path.glob("*.bin")), "safetensors only"
    theirs = LongformerForMaskedLM.from_pretrained(tmp_path).eval()
    assert theirs.config.architectures == ["LongformerForMaskedLM"]
    assert theirs.lm_head.decoder.weight is theirs.longformer.embeddings.word_embeddings.weight
    batch = {name: tensor[:1] for name, tensor in batch_of().items()}  # padding makes their gradient NaN
    bare = {name: tensor for name, tensor in batch.items() if name != "labels"}
    with torch.no_grad():
        torch.testing.assert_close(theirs(**bare).logits, language_model(**bare).logits, rtol=0, atol=2e-5)
    ours, expected = language_model(**batch).loss, theirs(**batch).loss
    torch.testing.assert_close(ours, expected, rtol=1e-5, atol=0)
    ours.backward()
    expected.backward()
    wanted = dict(theirs.named_parameters())
    for name, parameter in language_model.named_parameters():
        torch.testing.assert_close(parameter.grad, wanted[name].grad, rtol=1e-3, atol=1e-6, msg=name)
    language_model.resize_token_embeddings(60)
    assert language_model.lm_head.decoder.weight is language_model.get_input_embeddings().weight
    assert language_model.lm_head.bias.shape == (60,)


def test_words_that_fill_up_the_vocabulary_change_no_loss_and_no_gradient(language_model) -> None:
    head, generator = language_model.lm_head, torch.Generator().manual_seed(0)
    states, labels = torch.randn(7, head.decoder.in_features, generator=generator), torch.arange(7)
    gradients = []
    for logits in (head(states), wide_logits(head, states)):
        losses = word_losses(logits, labels)
        gradients.append((losses, *torch.autograd.grad(losses.sum(), head.parameters())))
    assert logits.shape[1] % COLUMNS == 0
    assert (logits[:, head.decoder.out_features :] == -torch.inf).all()
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-6)


def test_a_batch_with_its_plan_has_the_same_loss_and_logits(language_model: CrossDocumentLM) -> None:
    whole = batch_of()
    rows = [
        {
            name: row[:length].numpy()
            for name, row in zip(whole, values, strict=True)
            if name != "attention_mask"
        }
        for values, length in zip(zip(*whole.values(), strict=True), (32, 20, 32), strict=True)
    ]
    window = language_model.config.attention_window[0]
    plain, planned = (Collate(pad_token_id=1, window=given)(rows) for given in (None, window))
    assert planned.keys() - plain.keys() == {"plan", "masked_places"}
    expected, found = language_model(**plain), language_model(**planned)
    assert torch.equal(found.loss, expected.loss)
    assert torch.equal(found.logits, expected.logits)


@pytest.mark.gpu
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_on_a_gpu_no_step_waits_for_the_cpu(language_model: CrossDocumentLM, dropout: float) -> None:
    for layer in recordable_layers(language_model):
        layer.dropout = dropout
    row = {name: rows[0].numpy() for name, rows in batch_of(1).items() if name != "attention_mask"}
    made = Collate(pad_token_id=1, window=language_model.config.attention_window[0])([row])
    model = language_model.cuda().train()
    batch = {name: value.to("cuda") for name, value in made.items()}
    model(**batch).loss.backward()  # compiles
    torch.cuda.set_sync_debug_mode("error")
    try:
        model(**batch | {"plan": made["plan"]}).loss.backward()  # a plan of its own, as each step has
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_token_losses_stand_row_after_row(language_model: CrossDocumentLM) -> None:
    batch = batch_of()
    output = language_model(**batch)
    labels = batch.pop("labels")
    logits = language_model(**batch).logits.transpose(1, 2)
    full = nn.functional.cross_entropy(logits, labels, reduction="none")
    torch.testing.assert_close(output.token_loss, full[labels != -100].detach(), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(output.loss, output.token_loss.mean(), rtol=1e-6, atol=0)
    assert output.logits.shape == ((labels != -100).sum(), 55)
    assert output.loss.requires_grad
    assert not output.token_loss.requires_grad, "kept over an evaluation it would keep the graph alive"


@pytest.mark.parametrize("rows", [0, 1, ROWS_AT_ONCE, 2 * ROWS_AT_ONCE + 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_word_losses_and_their_gradient_are_those_of_pytorch(rows: int, dtype: torch.dtype) -> None:
    """Both compute in float32 and round once, so they are equal except for the order of sums."""
    generator = torch.Generator().manual_seed(rows)
    logits = (4 * torch.randn(rows, 300, generator=generator)).to(dtype)
    labels = torch.randint(300, (rows,), generator=generator)
    weight = torch.rand(rows, generator=generator)
    actual, expected = (logits.clone().requires_grad_() for _ in range(2))
    losses = word_losses(actual, labels)
    theirs = nn.functional.cross_entropy(expected.float(), labels, reduction="none")
    (losses * weight).sum().backward()
    (theirs * weight).sum().backward()
    assert losses.dtype == torch.float32
    torch.testing.assert_close(losses, theirs, rtol=1e-6, atol=1e-6)
    rounding = {torch.float32: 1e-5, torch.bfloat16: 2**-8}[dtype]
    assert actual.grad.dtype == dtype
    torch.testing.assert_close(actual.grad, expected.grad, rtol=rounding, atol=1e-7)


# ---- precision


def test_a_model_computes_in_the_wanted_precision_and_a_head_in_float32():
    layer, x = nn.Linear(3, 2), torch.randn(4, 3)
    assert layer(x).dtype == torch.float32
    with torch.no_grad(), computing_in("bfloat16", "cpu"):
        rounded = layer(x)
        with precision.in_full(x.device):
            full = layer(rounded.new_ones(4, 3).float())
        assert layer(x).dtype == torch.bfloat16
    assert (rounded.dtype, full.dtype, layer.weight.dtype) == (torch.bfloat16, torch.float32, torch.float32)
    with torch.no_grad(), computing_in("float32", torch.device("cpu")):
        assert torch.equal(layer(x), layer(x))
        assert layer(x).dtype == torch.float32
    with pytest.raises(ParameterError, match="needs CUDA"), computing_in("float16", "cpu"):
        pass


def assert_chosen_on(device: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check what the precision `auto` means on a device, and the reason that is shown."""
    for module in (precision, estimate):
        monkeypatch.setattr(module, "default_device", lambda: device)
    chosen = shown.partition(":")[0]
    assert resolve_precision("auto", device=device) == chosen
    assert precision.precision_in_words("auto") == shown
    assert precision.precision_in_words("float32") == "float32"
    assert estimate.bytes_per_number("auto") == (4 if chosen == "float32" else 2)
    assert estimate.bytes_per_number("float32") == 4
    assert resolve_precision("auto", device="mps") == "float32"


@pytest.mark.parametrize(
    ("has_bfloat16", "shown"),
    [(True, "bfloat16: this GPU has it"), (False, "float16: this GPU has no bfloat16")],
)
def test_precision_of_a_gpu(monkeypatch: pytest.MonkeyPatch, has_bfloat16: bool, shown: str):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: has_bfloat16)
    assert_chosen_on("cuda", shown, monkeypatch)
    assert resolve_precision("bfloat16", device="cpu") == "bfloat16"
    assert resolve_precision("float16", device="cuda") == "float16"
    with pytest.raises(ParameterError, match="needs CUDA, but the device is 'cpu'"):
        resolve_precision("float16", device="cpu")
    if not has_bfloat16:
        with pytest.raises(ParameterError, match="does not have"):
            resolve_precision("bfloat16", device="cuda")


@pytest.mark.parametrize(
    ("amx", "avx512", "shown"),
    [
        (True, True, "bfloat16: this CPU has AMX and AVX512-BF16"),
        (True, False, "bfloat16: this CPU has AMX"),
        (False, True, "bfloat16: this CPU has AVX512-BF16"),
        (False, False, "float32: this CPU has neither AMX nor AVX512-BF16"),
        (None, None, "float32: this CPU has neither AMX nor AVX512-BF16"),  # a torch that does not know
    ],
)
def test_precision_of_a_cpu(monkeypatch, amx: bool | None, avx512: bool | None, shown: str):
    for name, has in (("_is_amx_tile_supported", amx), ("_is_avx512_bf16_supported", avx512)):
        if has is None:
            monkeypatch.delattr(torch.cpu, name, raising=False)
        else:
            monkeypatch.setattr(torch.cpu, name, lambda has=has: has, raising=False)
    assert_chosen_on("cpu", shown, monkeypatch)
    assert resolve_precision("float32", device="cpu") == "float32"
    slow = "bfloat16: slow, as this CPU has neither AMX nor AVX512-BF16; `auto` would be float32"
    assert precision.precision_in_words("bfloat16") == ("bfloat16" if amx or avx512 else slow)


SCRIPT = """
import resource
from pathlib import Path
import torch
from cdlm_lab.encoders.precision import memory_kept

faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
resident = lambda: int(Path("/proc/self/statm").read_text().split()[1])

def faults_of(steps):
    before = faults()
    for _ in range(steps):
        kept_for_the_backward = [torch.ones(4 << 20) for _ in range(10)]  # 160 MB: 40,960 pages
    return faults() - before

torch.set_num_threads(1)
faults_of(2)
print(faults_of(5))
with memory_kept():
    with memory_kept():
        faults_of(15)
    print(faults_of(5))
    within = resident()
print(within - resident())
print(faults_of(5))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator, until others need the like")
def test_freed_memory_is_kept_within_and_handed_back_at_the_end():
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    before, within, handed_back, after = map(int, ended.stdout.split())
    assert within < 40_960, "five steps touched 204,800 pages"
    assert handed_back > 30_000
    assert after > before / 10, "the outer one ended, so nothing is kept"


# ---- what a step costs

LENGTH = 128


def small_config(window: int, width: int = 64, **dropout: float) -> LongformerConfig:
    sizes = {"hidden_size": width, "intermediate_size": 4 * width, "vocab_size": 500, "num_hidden_layers": 3}
    lengths = {"attention_window": [window] * 3, "max_position_embeddings": 4 * LENGTH + 2}
    return LongformerConfig(**sizes, **lengths, num_attention_heads=4, pad_token_id=1, **dropout)


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("width", "length", "window", "globals_"),
    [(64, 128, 16, 20), (64, 128, 16, 0), (64, 65, 64, 0), (16, 512, 64, 100), (16, 512, 512, 200)],
)
def test_training_operations_and_memory_are_near_what_is_measured(
    width: int, length: int, window: int, globals_: int, dtype: torch.dtype, dropout: float
) -> None:
    """Operations are counted in bfloat16, in which they are matrix products that PyTorch can count. Linear
    layers dominate at width 64, attention at width 16; 65 tokens are not padded to 128."""
    config = small_config(window, width, hidden_dropout_prob=dropout, attention_probs_dropout_prob=0.0)
    torch.manual_seed(0)
    model = replace_self_attention(CrossDocumentLM(config))
    ids = torch.randint(3, 500, (2, length))
    labels = torch.where(torch.arange(length) % 5 == 0, ids, -100)
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}
    batch["global_attention_mask"] = (torch.arange(length) < globals_).long().expand_as(ids)
    tokens = {"global_tokens": globals_, "masked_tokens": length / 5}
    actual = estimate.estimate(config, length=length, batch=2, **tokens, bytes_per_number=dtype.itemsize)
    half = torch.autocast("cpu", dtype=torch.bfloat16)
    with FlopCounterMode(display=False) as counter, half:
        model(**batch).loss.backward()
    assert 2 * actual.training_flops == pytest.approx(counter.get_total_flops(), rel=0.2)
    assert actual.activation_bytes == pytest.approx(kept_bytes(model, batch, dtype), rel=0.2)


def kept_bytes(model: CrossDocumentLM, batch: dict[str, Tensor], dtype: torch.dtype) -> int:
    """Return the bytes that autograd keeps, without weights, plus those of logits and their gradient."""
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    half = torch.autocast("cpu", dtype=dtype, enabled=dtype != torch.float32)
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor), half:
        output = model(**batch)
    return sum(kept.values()) + 2 * output.logits.numel() * 4
