"""Resampling in blocks: the same draws as in one go, and sums that are sums."""

import numpy as np
import pytest

from cdlm_lab.metrics import significance as resampling
from cdlm_lab.metrics.significance import (
    check_resamples,
    percentile_interval,
    resampled_sums,
    row_blocks,
)


def test_blocks_cover_every_row_once():
    for rows, width in [(10, 3), (7, 1 << 21), (1, 1), (5, 0)]:
        blocks = list(row_blocks(rows, width=width))
        assert [row for block in blocks for row in range(block.start, block.stop)] == list(range(rows))
    assert len(list(row_blocks(7, width=1 << 21))) == 7  # one row at a time where not even one fits


def test_sums_are_those_of_a_loop_over_draws(monkeypatch):
    counts = np.array([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]])
    whole = resampled_sums(counts, n_resamples=50, rng=np.random.default_rng(3))
    rng = np.random.default_rng(3)
    slow = [[sum(column) for column in zip(*counts[rng.integers(3, size=3)], strict=True)] for _ in range(50)]
    assert whole.tolist() == slow
    monkeypatch.setattr(resampling, "_NUMBERS_AT_ONCE", 6)  # two resamples at a time
    assert resampled_sums(counts, n_resamples=50, rng=np.random.default_rng(3)).tolist() == slow


def test_interval_of_hand_counted_values():
    # 0, 1, ..., 1000: the 2.5th and 97.5th percentiles are 25 and 975.
    assert percentile_interval(np.arange(1001.0)[::-1]) == (25.0, 975.0)


def test_too_few_resamples():
    check_resamples(1)
    with pytest.raises(ValueError, match=r"^n_resamples is 0; it must be at least 1 \(10,000 is usual\)$"):
        check_resamples(0)
