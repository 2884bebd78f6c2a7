"""The benchmark of chosen tokens' attention: both ways give the same numbers, the command from end to end."""

from collections.abc import Callable

import numpy as np
import pytest

from cdlm_lab.benchmarks import source_attention as benchmark
from cdlm_lab.benchmarks import timing
from cdlm_lab.encoders.encoder import TinySizes

SIZES = TinySizes(
    hidden_size=16, layers=2, heads=2, intermediate_size=16, vocabulary=300, initializer_range=0.3
)


def test_both_ways_give_the_rows_and_columns_of_the_source():
    both = benchmark.models(sizes=SIZES, window=16, max_length=96)
    ids, source = benchmark.text_of(90, both["ours"])
    assert source.tolist() == [45, 46, 47]
    (given, received), theirs = (
        benchmark.read(name, both[name], ids, source) for name in ("ours", "huggingface")
    )
    assert given.shape == received.shape == (2, 2, 3, 90)
    np.testing.assert_allclose(given.sum(axis=-1), 1, atol=1e-5)
    np.testing.assert_allclose(theirs[0], given, atol=1e-6)
    np.testing.assert_allclose(theirs[1], received, atol=1e-6)
    assert given.max() > 2 / 90, "of uniform attention nothing could be told"


@pytest.mark.usefixtures("memory_measured")
def test_the_command_prints_a_table_and_writes_the_rows(monkeypatch: pytest.MonkeyPatch, command):
    measured = timing.in_fresh_process

    def of_the_first_length(function: Callable, way: str, *, length: int, **form: object) -> float:
        return measured(function, way, length=length, **form) if length == 128 else 7.0

    monkeypatch.setattr(timing, "in_fresh_process", of_the_first_length)  # a process each takes long
    report, printed = command(benchmark, "--model tiny --lengths 128 256 --window 32 --repeats 2")
    assert [row["length"] for row in report["rows"]] == [128, 256]
    for row in report["rows"]:
        assert row["largest_difference"] < 1e-4
        assert row["times_faster_min"] <= row["times_faster"] <= row["times_faster_max"]
        assert f"| {row['length']} | {row['huggingface_seconds']:.2f} |" in printed
