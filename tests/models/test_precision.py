"""`auto` is what the device is good at; a model computes in the precision asked for, a head in float32."""

import pytest
import torch
from torch import nn

from cdlm_lab.models import precision
from cdlm_lab.models.precision import (
    bfloat16_units,
    computing_in,
    in_full,
    precision_told,
    resolve_precision,
)
from cdlm_lab.parameters import ParameterError


def test_a_model_computes_in_what_is_asked_for_and_a_head_in_float32():
    layer, x = nn.Linear(3, 2), torch.randn(4, 3)
    assert layer(x).dtype == torch.float32
    with torch.no_grad(), computing_in("bfloat16", "cpu"):
        rounded = layer(x)
        with in_full(x.device):
            full = layer(rounded.new_ones(4, 3).float())
        assert layer(x).dtype == torch.bfloat16
    assert (rounded.dtype, full.dtype, layer.weight.dtype) == (torch.bfloat16, torch.float32, torch.float32)
    with torch.no_grad(), computing_in("float32", torch.device("cpu")):
        assert torch.equal(layer(x), layer(x))
        assert layer(x).dtype == torch.float32
    with pytest.raises(ParameterError, match="needs CUDA"), computing_in("float16", "cpu"):
        pass


@pytest.mark.parametrize(("has_bfloat16", "chosen"), [(True, "bfloat16"), (False, "float16")])
def test_precision(monkeypatch: pytest.MonkeyPatch, has_bfloat16: bool, chosen: str):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: has_bfloat16)
    assert resolve_precision("auto", device="cuda") == chosen
    assert resolve_precision("auto", device="mps") == "float32"
    assert resolve_precision("bfloat16", device="cpu") == "bfloat16"
    assert resolve_precision("float16", device="cuda") == "float16"
    with pytest.raises(ParameterError, match="needs CUDA, but the device is 'cpu'"):
        resolve_precision("float16", device="cpu")
    if not has_bfloat16:
        with pytest.raises(ParameterError, match="does not have"):
            resolve_precision("bfloat16", device="cuda")


@pytest.mark.parametrize(
    ("amx", "avx512", "units"),
    [
        (True, True, ("AMX", "AVX512-BF16")),
        (True, False, ("AMX",)),
        (False, True, ("AVX512-BF16",)),
        (False, False, ()),
        (None, None, ()),  # a torch that does not know
    ],
)
def test_precision_of_a_cpu(
    monkeypatch: pytest.MonkeyPatch, amx: bool | None, avx512: bool | None, units: tuple[str, ...]
):
    for name, has in (("_is_amx_tile_supported", amx), ("_is_avx512_bf16_supported", avx512)):
        if has is None:
            monkeypatch.delattr(torch.cpu, name, raising=False)
        else:
            monkeypatch.setattr(torch.cpu, name, lambda has=has: has, raising=False)
    assert bfloat16_units() == units
    assert resolve_precision("auto", device="cpu") == ("bfloat16" if units else "float32")
    assert resolve_precision("float32", device="cpu") == "float32"
    assert resolve_precision("auto", device="mps") == "float32"


@pytest.mark.parametrize(
    ("device", "units", "told"),
    [
        ("cpu", ("AVX512-BF16",), "bfloat16: this CPU has AVX512-BF16"),
        ("cpu", ("AMX", "AVX512-BF16"), "bfloat16: this CPU has AMX and AVX512-BF16"),
        ("cpu", (), "float32: this CPU has neither AMX nor AVX512-BF16"),
        ("cuda", ("it",), "bfloat16: this GPU has it"),
        ("cuda", (), "float16: this GPU has no bfloat16"),
    ],
)
def test_why_a_precision_was_chosen(
    monkeypatch: pytest.MonkeyPatch, device: str, units: tuple[str, ...], told: str
):
    monkeypatch.setattr(precision, "default_device", lambda: device)
    monkeypatch.setattr(precision, "bfloat16_units", lambda: units)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: bool(units))
    assert precision_told("auto") == told
    assert precision_told("float32") == "float32"
