"""Two processes do what one does: loss, gradients, validation, records, and resumption."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tiny_run
import torch
from tiny_run import ENVIRONMENT, timeless

TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
pytestmark = pytest.mark.slow


def start(folder: Path, *, processes: int, **options: Any) -> dict[str, Any]:
    launcher = TORCHRUN if processes > 1 else []
    command = [sys.executable, *launcher, tiny_run.__file__, str(folder), json.dumps(options)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    if "kill_at" in options:
        assert done.returncode in (1, -signal.SIGKILL)
        return {}
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "outcome.json").read_text())


@pytest.mark.parametrize("global_from", [0, 99])
def test_two_processes_are_one(tmp_path: Path, global_from: int):
    """With `global_from` 0 the global projections have a gradient in some micro-batches of some processes, so
    that often one process has none; with 99 nowhere, and they must not be decayed either."""
    settings = {"double": True, "model": {"dropout": 0.0}, "micro_batch_size": 1, "global_from": global_from}
    settings |= {"batch_size": 8, "weight_decay": 0.1}
    one = start(tmp_path / "one", processes=1, **settings)
    two = start(tmp_path / "two", processes=2, **settings)
    assert len(one["history"]) == len(two["history"]) == 13
    for a, b in zip(timeless(one["history"]), timeless(two["history"]), strict=True):
        assert a == pytest.approx(b, rel=1e-6)
    for name, value in one["weights"].items():
        torch.testing.assert_close(
            torch.tensor(value), torch.tensor(two["weights"][name]), rtol=0, atol=1e-10
        )
    assert one["best_step"] == two["best_step"]
    written = (tmp_path / "two" / "history.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in written] == two["history"]


def test_two_processes_resume_exactly(tmp_path: Path):
    settings = {"micro_batch_size": 1, "log_every": 4, "evaluate_every": 5}
    whole = start(tmp_path / "whole", processes=2, **settings)
    start(tmp_path / "killed", processes=2, **settings, kill_at=8)
    assert not (tmp_path / "killed" / "outcome.json").exists()
    last = tmp_path / "killed" / "checkpoint-6"
    weights = bytearray((last / "model.safetensors").read_bytes())
    weights[-1] ^= 1  # so that all go on from the one before it
    (last / "model.safetensors").write_bytes(weights)
    again = start(tmp_path / "killed", processes=2, **settings)
    assert timeless(again["history"]) == timeless(whole["history"])
    assert again["weights"] == whole["weights"]


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1)])
def test_a_run_goes_on_in_other_processes(tmp_path: Path, before: int, after: int):
    settings = {"model": {"dropout": 0.0}, "double": True, "micro_batch_size": 1, "log_every": 4}
    whole = start(tmp_path / "whole", processes=1, **settings)
    start(tmp_path / "killed", processes=before, **settings, kill_at=8)
    again = start(tmp_path / "killed", processes=after, **settings)
    for a, b in zip(timeless(whole["history"]), timeless(again["history"]), strict=True):
        assert a == pytest.approx(b, rel=1e-6)
    assert again["weights"].keys() == whole["weights"].keys()
