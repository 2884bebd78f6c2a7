"""The benchmark counts what it should and prints a whole table; no times are asserted."""

import json
import subprocess
import sys

import pytest
import torch

from cdlm_lab.attention.plan import make_plan
from cdlm_lab.benchmarks.attention import markdown, number_of_globals, useful_operations


@pytest.mark.parametrize(("text", "count"), [("15%", 614), ("16", 16), ("0", 0)])
def test_number_of_globals(text: str, count: int) -> None:
    assert number_of_globals(text, 4096) == count


def test_useful_operations_of_a_worked_case() -> None:
    """4 tokens, token 0 global, window 2: locals 1, 2, 3 see 2, 3, 2 locals and the global; it sees all 4."""
    present = torch.ones(1, 4, dtype=torch.bool)
    is_global = torch.tensor([[True, False, False, False]])
    plan = make_plan(attention_mask=present, global_mask=is_global, window=2)
    assert plan.pairs == (2 + 3 + 2) + 3 + 4
    embed = 12 * 64
    projections = 2 * 4 + 3 + 2 * 4 + 1  # keys and values twice, three local queries, one global query
    assert useful_operations(plan) == 3 * (2 * projections * embed**2 + 4 * 14 * embed)


def test_the_command_prints_and_writes_a_whole_table(tmp_path) -> None:
    file = tmp_path / "rows.json"
    command = [sys.executable, "-m", "cdlm_lab.benchmarks.attention", "--lengths", "1024", "--globals", "2%"]
    done = subprocess.run(
        [*command, "--repeats", "1", "--json", str(file)], check=True, capture_output=True, text=True
    )
    written = json.loads(file.read_text(encoding="utf-8"))
    assert written["matmul_gflops"] > 0
    (row,) = written["rows"]
    assert (row["length"], row["globals"]) == (1024, 20)
    assert row["times_faster"] > 0
    assert 0 < row["of_peak"] < 1
    assert markdown(written["rows"]) in done.stdout
