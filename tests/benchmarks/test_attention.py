"""The benchmark of the attention layer: arithmetic by hand, rows complete, the command from end to end."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from cdlm_lab.attention.plan import Plan, make_plan
from cdlm_lab.benchmarks import attention as benchmark

# Hugging Face's layer takes multiples of its window only.
LENGTH = benchmark.WINDOW
COLUMNS = {
    *(
        "length",
        "globals",
        "huggingface_ms",
        "ours_ms",
        "times_faster",
        "times_faster_min",
        "times_faster_max",
    ),
    *("huggingface_mib", "ours_mib", "times_less_memory", "of_peak"),
}
on_linux = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(),
    reason="CPU memory: Linux only, until there is another measure",
)


def plan_of(*, present: list[int], is_global: list[int], window: int) -> Plan:
    return make_plan(
        attention_mask=torch.tensor([present], dtype=torch.bool),
        global_mask=torch.tensor([is_global], dtype=torch.bool),
        window=window,
    )


@pytest.mark.parametrize(
    ("text", "length", "expected"),
    [("15%", 1024, 154), ("15%", 100, 15), ("0%", 64, 0), ("2.5%", 200, 5), ("16", 1024, 16), ("0", 64, 0)],
)
def test_number_of_globals(text: str, length: int, expected: int):
    assert benchmark.number_of_globals(text, length) == expected  # 15% of 1024 is 153.6


def test_globals_of_a_case_are_as_many_as_asked_and_spread_from_end_to_end():
    hidden, mask = benchmark.make_case(
        length=64, n_global=10, device=torch.device("cpu"), dtype=torch.float32
    )
    places = (mask[0] > 0).nonzero().flatten()
    assert len(places) == 10
    assert (int(places[0]), int(places[-1])) == (0, 63)
    assert set(places.diff().tolist()) == {7}  # 63 / 9
    assert hidden.shape == (1, 64, 768)
    assert hidden.requires_grad


def test_useful_operations_with_a_global_token():
    """Tokens 0 (global), 1, 2, 3, one token to each side, and padding, which costs nothing.

    pairs: local to local 2 + 3 + 2, local to global 3, global to all 4                         = 14
    projections: query 3, key 4, value 4; of the global token: query 1, key 4, value 4          = 20
    """
    plan = plan_of(present=[1, 1, 1, 1, 0], is_global=[1, 0, 0, 0, 0], window=2)
    forward = 20 * 2 * 768 * 768 + 14 * (2 * 768 + 2 * 768)  # a pair: its score and its share of the values
    assert benchmark.useful_operations(plan) == 3 * forward == 70_907_904


def test_useful_operations_without_globals():
    """pairs 2 + 3 + 3 + 2 = 10; projections 3 x 4 = 12: the global ones are not needed."""
    plan = plan_of(present=[1, 1, 1, 1], is_global=[0, 0, 0, 0], window=2)
    assert benchmark.useful_operations(plan) == 3 * (12 * 2 * 768 * 768 + 10 * 4 * 768)


def test_both_layers_share_their_weights_and_agree():
    place = torch.device("cpu")
    both = benchmark.layers(device=place, dtype=torch.float32)
    theirs, ours = both["huggingface"].state_dict(), both["ours"].state_dict()
    assert list(theirs) == list(ours)
    assert all(torch.equal(theirs[name], ours[name]) for name in theirs)
    hidden, mask = benchmark.make_case(length=LENGTH, n_global=4, device=place, dtype=torch.float32)
    gradients = {}
    for name, layer in both.items():
        hidden.register_hook(lambda gradient, name=name: gradients.setdefault(name, gradient.clone()))
        benchmark.step(layer, hidden, mask)
        assert hidden.grad is None, "the step leaves no gradient to be added to"
    torch.testing.assert_close(gradients["ours"], gradients["huggingface"], rtol=1e-3, atol=1e-4)


def test_markdown():
    row = dict.fromkeys(COLUMNS, 0.0) | {
        "length": 1024,
        "globals": 16,
        "huggingface_ms": 300.4,
        "ours_ms": 99.6,
        "of_peak": 0.456,
        "times_faster": 3.04,
        "times_faster_min": 2.96,
        "times_faster_max": 3.2,
        "huggingface_mib": 120.5,
        "ours_mib": 40.2,
        "times_less_memory": 2.99,
    }
    head, rule, first, second = benchmark.markdown([row, row | {"length": 2048}]).splitlines()
    assert first == "| 1024 | 16 | 300 | 100 | 3.0 (3.0-3.2) | 120 | 40 | 3.0 | 46% |"
    assert second.startswith("| 2048 | 16 |")
    assert head.count("|") == rule.count("|") == first.count("|") == 10


def check_row(row: dict[str, float], *, n_global: int) -> None:
    assert set(row) == COLUMNS
    assert (row["length"], row["globals"]) == (LENGTH, n_global)
    assert all(value > 0 for name, value in row.items() if name != "globals"), row
    assert row["times_faster_min"] <= row["times_faster"] <= row["times_faster_max"]


def test_rows_are_complete(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture):
    """All but the memory, which takes a process a layer and case (below, and in the slow test)."""
    memory = {"huggingface": 40.0, "ours": 10.0}
    monkeypatch.setattr(benchmark, "peak_memory_in_fresh_process", lambda name, **_: memory[name])
    asked = ["--lengths", str(LENGTH), "--globals", "15%", "0", "--repeats", "1", "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", ["attention", *asked, "--json", str(tmp_path / "out.json")])
    benchmark.main()
    report = json.loads((tmp_path / "out.json").read_text())
    assert report["dtype"] == "float32"
    assert report["matmul_gflops"] > 0
    for row, n_global in zip(report["rows"], (77, 0), strict=True):
        check_row(row, n_global=n_global)
        assert row["times_less_memory"] == 4
        # one pair of runs: the ratio is that of the two times
        assert row["times_faster"] == pytest.approx(row["huggingface_ms"] / row["ours_ms"])
    assert benchmark.markdown(report["rows"]) in capsys.readouterr().out


@on_linux
def test_peak_memory_holds_at_least_what_the_step_must_keep():
    """Query, key and value of 1024 tokens, 768 float32 numbers each: 3 MiB apiece."""
    found = benchmark.peak_memory_in_fresh_process(
        "ours", length=1024, n_global=0, device="cpu", dtype="float32"
    )
    assert 3 * 3 < found < 1000


@pytest.mark.slow
@on_linux
def test_the_command_from_end_to_end(tmp_path: Path):
    out = tmp_path / "out.json"
    command = [sys.executable, "-m", "cdlm_lab.benchmarks.attention", "--lengths", str(LENGTH)]
    command += ["--globals", "15%", "--repeats", "1", "--device", "cpu", "--json", str(out)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    (row,) = json.loads(out.read_text())["rows"]
    check_row(row, n_global=77)
    assert benchmark.markdown([row]) in ended.stdout
