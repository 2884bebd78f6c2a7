"""On a CUDA device: half precision, and resumption with the device's own generator."""

import math
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_run import Examples, run, tiny_model

pytestmark = pytest.mark.gpu


class Repeated(Examples):
    """The same eight examples again and again, which can be learned by heart: all others are random."""

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        return super().__getitem__(index % 8)


@pytest.mark.parametrize("precision", ["auto", "float32", "bfloat16", "float16"])
def test_every_precision_learns(tmp_path: Path, precision: str):
    model = tiny_model(dropout=0.0)
    result = run(
        tmp_path,
        model=model,
        train_examples=Repeated(seed=1, size=800),
        steps=200,
        precision=precision,
        evaluate_every=100,
        save_every=100,
        log_every=20,
    )
    losses = [record["loss"] for record in result.history if "loss" in record]
    assert losses[-1] < losses[0] - 1
    assert all(math.isfinite(loss) for loss in losses)
    assert next(model.parameters()).device.type == "cuda"
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_a_stopped_run_goes_on(tmp_path: Path, precision: str):
    def stop(record: dict) -> None:
        if record["step"] == 4 and "loss" in record:
            signal.raise_signal(signal.SIGINT)

    whole = run(tmp_path / "whole", precision=precision)
    assert run(tmp_path / "stopped", precision=precision, on_log=stop).steps == 5
    again = run(tmp_path / "stopped", precision=precision)
    for one, other in zip(whole.history, again.history, strict=True):
        assert one["step"] == other["step"]
        key = "loss" if "loss" in one else "eval_loss"
        # Not to the last bit: sums on the device may be taken in another order. Other dropout: 0.01.
        assert one[key] == pytest.approx(other[key], rel=1e-4)
