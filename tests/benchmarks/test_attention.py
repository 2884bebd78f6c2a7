"""The benchmark of the attention layer: arithmetic by hand, rows complete, the command from end to end."""

import pytest
import torch

from cdlm_lab.attention.plan import make_plan
from cdlm_lab.benchmarks import attention as benchmark
from cdlm_lab.benchmarks import timing

LENGTH = benchmark.WINDOW  # Hugging Face's layer takes multiples of its window only
CPU = {"device": torch.device("cpu"), "dtype": torch.float32}
FIELDS = {
    *("length", "globals", "huggingface_ms", "ours_ms", "huggingface_mib", "ours_mib"),
    *("times_faster", "times_faster_min", "times_faster_max", "times_less_memory", "of_peak"),
}


@pytest.mark.parametrize(
    ("text", "length", "expected"),
    [("15%", 1024, 154), ("15%", 100, 15), ("0%", 64, 0), ("2.5%", 200, 5), ("16", 1024, 16), ("0", 64, 0)],
)
def test_number_of_globals(text: str, length: int, expected: int):
    assert benchmark.number_of_globals(text, length) == expected  # 15% of 1024 is 153.6


@pytest.mark.parametrize(
    ("present", "is_global", "projections", "pairs"),
    [
        # Tokens 0 (global), 1, 2, 3 and padding, one to each side. Pairs: local to local 2 + 3 + 2, local to
        # global 3, global to all 4; projections: query 3, key 4, value 4, of the global token 1 + 4 + 4
        ([1, 1, 1, 1, 0], [1, 0, 0, 0, 0], 20, 14),
        # No globals: pairs 2 + 3 + 3 + 2, and no global projections
        ([1, 1, 1, 1], [0, 0, 0, 0], 12, 10),
    ],
)
def test_useful_operations(present: list[int], is_global: list[int], projections: int, pairs: int):
    masks = (torch.tensor([mask], dtype=torch.bool) for mask in (present, is_global))
    plan = make_plan(**dict(zip(("attention_mask", "global_mask"), masks, strict=True)), window=2)
    forward = projections * 2 * 768 * 768 + pairs * 4 * 768  # a pair: its score and its share of the values
    assert benchmark.useful_operations(plan) == 3 * forward


def test_both_layers_share_their_weights_and_agree():
    both = benchmark.layers(**CPU)
    theirs, ours = both["huggingface"].state_dict(), both["ours"].state_dict()
    assert list(theirs) == list(ours)
    assert all(torch.equal(theirs[name], ours[name]) for name in theirs)
    hidden, mask = benchmark.make_case(length=LENGTH, n_global=4, **CPU)
    gradients = {}
    for name, layer in both.items():
        hidden.register_hook(lambda gradient, name=name: gradients.setdefault(name, gradient.clone()))
        benchmark.step(layer, hidden, mask)
        assert hidden.grad is None, "the step leaves no gradient to be added to"
    torch.testing.assert_close(gradients["ours"], gradients["huggingface"], rtol=1e-3, atol=1e-4)


def check_row(row: dict[str, float], *, n_global: int) -> None:
    assert set(row) == FIELDS
    assert (row["length"], row["globals"]) == (LENGTH, n_global)
    assert all(value > 0 for name, value in row.items() if name != "globals"), row
    assert row["times_faster_min"] <= row["times_faster"] <= row["times_faster_max"]


def test_rows_are_complete(monkeypatch: pytest.MonkeyPatch, command):
    """All but the memory, which takes a process a layer and case (below, and in the slow test)."""
    memory = {"huggingface": 40.0, "ours": 10.0}
    monkeypatch.setattr(timing, "in_fresh_process", lambda _, name, **case: memory[name])
    report, printed = command(benchmark, f"--lengths {LENGTH} --globals 15% 0 --repeats 1")
    assert report["dtype"] == "float32"
    assert report["matmul_gflops"] > 0
    for row, n_global in zip(report["rows"], (77, 0), strict=True):
        check_row(row, n_global=n_global)
        assert row["times_less_memory"] == 4
        # one pair of runs: the ratio is that of the two times
        assert row["times_faster"] == pytest.approx(row["huggingface_ms"] / row["ours_ms"])
    assert timing.table(benchmark.COLUMNS, report["rows"]) in printed


@pytest.mark.usefixtures("memory_measured")
def test_peak_memory_holds_at_least_what_the_step_must_keep():
    """Query, key and value of 1024 tokens, 768 float32 numbers each: 3 MiB apiece."""
    case = {"length": 1024, "n_global": 0, **CPU}
    assert 3 * 3 < timing.in_fresh_process(benchmark.peak_memory, "ours", **case) < 1000
