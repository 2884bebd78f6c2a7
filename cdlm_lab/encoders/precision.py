"""The precision of a forward pass: matrix products in the one wanted, weights stay float32; and keeping freed
memory in the process between steps."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Literal

import torch
from torch import Tensor, nn

from cdlm_lab.encoders.checkpoint import default_device
from cdlm_lab.parameters import ParameterError

Precision = Literal["auto", "float32", "bfloat16", "float16"]
# Name of a CPU feature -> private function of torch.cpu, which another version of torch may lack.
_BFLOAT16_UNITS = (("AMX", "_is_amx_tile_supported"), ("AVX512-BF16", "_is_avx512_bf16_supported"))


@contextmanager
def computing_in(precision: Precision, device: torch.device | str) -> Iterator[None]:
    """Let models on `device` compute in a precision inside the block, as in training. Use one block from the
    first batch to the last: it caches the rounded weights, and keeps memory that is freed between batches.
    Raises ParameterError for a precision that the device does not have."""
    kind = torch.device(device).type
    resolved = resolve_precision(precision, device=kind)
    with torch.autocast(kind, dtype=getattr(torch, resolved), enabled=resolved != "float32"), memory_kept():
        yield


def in_full(device: torch.device | str) -> torch.autocast:
    """A context in which a head computes in the precision of its weights, whatever its encoder does: it costs
    next to nothing, while in bfloat16, with 8 binary digits, many scores would tie. Give it states
    `as_weights`."""
    return torch.autocast(torch.device(device).type, enabled=False)


def found_on_cpu(fault: Tensor) -> bool:
    """Whether a fault, bool of any shape, is anywhere in a batch on the CPU; a GPU would wait for the answer,
    and is not asked."""
    return fault.device.type == "cpu" and bool(fault.any())


def as_weights(states: Tensor, head: nn.Module) -> Tensor:
    """Convert hidden states to the dtype of the weights of the head that reads them."""
    # not by `parameters`, which the replicas of `torch.nn.DataParallel` do not have
    weights = (layer.weight for layer in head.modules() if hasattr(layer, "weight"))
    return states.to(next(weights, states).dtype)


def resolve_precision(precision: Precision, *, device: str) -> Precision:
    """Replace `auto` by a precision for a type of device ("cuda", "cpu", ...): on CUDA bfloat16 where the
    device has it, else float16; on a CPU bfloat16 where it has AMX or AVX512-BF16, else float32; elsewhere
    float32. Raises ParameterError: float16 without CUDA, bfloat16 on a CUDA device that has none."""
    native = device != "cuda" or torch.cuda.is_bf16_supported(including_emulation=False)
    if precision == "auto":
        if device == "cuda":
            return "bfloat16" if native else "float16"
        return "bfloat16" if device == "cpu" and bfloat16_units() else "float32"
    if precision == "float16" and device != "cuda":
        raise ParameterError(f"precision is 'float16', which needs CUDA, but the device is {device!r}")
    if precision == "bfloat16" and not native:
        raise ParameterError(
            "precision is 'bfloat16', which this CUDA device does not have: use 'float16' or 'auto'"
        )
    return precision


def bfloat16_units() -> tuple[str, ...]:
    """Features of this CPU that multiply in bfloat16, as far as torch knows; without, bfloat16 is slower."""
    return tuple(name for name, question in _BFLOAT16_UNITS if getattr(torch.cpu, question, bool)())


def precision_in_words(precision: Precision) -> str:
    """The precision of training on the device in use and, where `auto` chose it, the reason, or that it is
    slow there: shown before training and in its report."""
    device = default_device()
    chosen = resolve_precision(precision, device=device)
    if (precision, device) == ("bfloat16", "cpu") and not bfloat16_units():
        return "bfloat16: slow, as this CPU has neither AMX nor AVX512-BF16; `auto` would be float32"
    if precision != "auto":
        return chosen
    if device == "cuda":
        return f"{chosen}: this GPU has {'it' if chosen == 'bfloat16' else 'no bfloat16'}"
    return f"{chosen}: this CPU has {' and '.join(bfloat16_units()) or 'neither AMX nor AVX512-BF16'}"


# ---- memory

# mallopt's parameters, from malloc.h
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_NEVER = -1
# what glibc sets by itself once a program has freed a large block; "large" is at most 32 MB
_LARGE, _USUAL_TRIM_THRESHOLD = 32 << 20, 64 << 20
_within, _counting = 0, Lock()  # number of open `memory_kept` blocks: threads share the allocator


@contextmanager
def memory_kept() -> Iterator[None]:
    """Keep freed memory in this process inside the block and return it at the end; without glibc's allocator
    nothing changes.

    glibc returns free memory to the system at once, and each training step asks for the same hundreds of
    megabytes again, which the system first fills with zeros: in bfloat16 a twelfth of a step of MiniLM, a
    fifth of one of `tiny`. Blocks of more than 32 MB are returned as before: if kept, smaller ones would
    split them, and memory would grow from step to step.
    """
    global _within
    library = ctypes.CDLL(None)
    if not (hasattr(library, "mallopt") and hasattr(library, "malloc_trim")):
        yield
        return
    with _counting:
        library.mallopt(_MMAP_THRESHOLD, _LARGE)
        library.mallopt(_TRIM_THRESHOLD, _NEVER)
        _within += 1
    try:
        yield
    finally:
        with _counting:
            _within -= 1
            if not _within:
                library.mallopt(_TRIM_THRESHOLD, _USUAL_TRIM_THRESHOLD)
                library.malloc_trim(0)
