"""Student's t-test over seeds, which the MSPP paper has beside its tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import ttest_ind_from_stats


def t_test_of_seeds(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Two-sided p of Welch's t-test: would other seeds, on these same items, put a and b apart as well?

    A seed of one system has nothing in common with the same seed of another (other weights are drawn, other
    batches are made), so the seeds are two independent samples; which form of the test the paper used it does
    not say. The test says nothing of other items; for these see `seed_scores.compare_means`.

    Args:
        a, b: the score of each system with each seed.

    Returns:
        None where the test says nothing: a single seed of either, or neither system varies.
    """
    if min(len(a), len(b)) < 2 or max(np.ptp(a), np.ptp(b)) < 1e-12:
        return None
    described = [value for one in (a, b) for value in (np.mean(one), np.std(one, ddof=1), len(one))]
    return float(ttest_ind_from_stats(*described, equal_var=False).pvalue)
