"""The benchmark of inference: every way reads every item, rows complete, the command from end to end."""

from itertools import product

import pytest
from torch import nn

from cdlm_lab.benchmarks import inference as benchmark

TASKS = ["pair scoring", "frozen encodings", "sentence encodings", "candidate groups"]


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(3, 5)


@pytest.mark.usefixtures("memory_measured")
def test_each_way_reads_every_item_in_its_batches():
    seen: list[list[int]] = []
    task = benchmark.Task(
        name="x",
        lengths=[2, 9, 3, 8],
        global_counts=[0] * 4,
        batch_size=2,
        encoder=Layers(),
        read=dict.fromkeys(benchmark.PRECISIONS, seen.append),
    )
    rows = benchmark.measure(task, repeats=1, rates={"float32": 2.0, "bfloat16": 4.0})
    by_file, by_length = [[0, 1], [2, 3]], [[1, 3], [2, 0]]
    assert seen == 4 * [*by_file, *by_length]  # two precisions, a first round and one that counts
    assert [row["padding"] for row in rows[:2]] == pytest.approx([1 - 22 / 34, 1 - 22 / 24])
    first = rows[0]
    assert (first["tokens"], first["items"], first["times_faster"]) == (22, 4, 1)
    # 15 weights, at a rate of 2 operations a second
    assert first["of_rate"] == pytest.approx(first["tokens_per_second"] * 2 * 15 / 2)


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
