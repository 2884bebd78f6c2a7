"""The benchmark of inference: the command from end to end."""

from itertools import product

import pytest

from cdlm_lab.benchmarks import inference as benchmark

TASKS = ["pair scoring", "frozen encodings", "sentence encodings", "candidate groups"]


@pytest.mark.usefixtures("memory_measured")
def test_the_command_prints_a_table_and_writes_the_rows(command):
    options = "--items 4 --sentences 4 --stories 1 --batch-size 2 --sentence-batch-size 2 --repeats 1"
    written, printed = command(benchmark, options)
    rows = written["rows"]
    ways = [(row["task"], row["precision"], row["batches"]) for row in rows]
    assert ways == list(product(TASKS, benchmark.PRECISIONS, benchmark.ORDERS))
    assert all(row["tokens_per_second"] > 0 and row["items"] == 4 for row in rows)
    assert written["matmul_gflops"].keys() == set(benchmark.PRECISIONS)
    assert f"| pair scoring | float32 | file | {rows[0]['tokens_per_second']:,.0f} | 1.00 |" in printed
