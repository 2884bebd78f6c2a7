"""Student's t-test over seeds, which the MSPP paper has beside its tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import ttest_rel


def t_test_of_seeds(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Two-sided p of a paired t-test: would other seeds, on these same items, put a and b apart as well?

    It says nothing of other items; for these see `seed_scores.compare_means`.

    Args:
        a, b: the score of each system with each seed, in the order of the seeds. (Whether the paper's test
            is paired it does not say.)

    Returns:
        None where the test says nothing: a single seed, or one difference with all of them.

    Raises:
        ValueError: another number of seeds.
    """
    if len(a) != len(b):
        raise ValueError(f"a has {len(a)} seeds and b {len(b)}; they must be the same")
    differences = np.subtract(a, b)
    if len(differences) < 2 or np.allclose(differences, differences[0], rtol=0, atol=1e-12):
        return None
    return float(ttest_rel(a, b).pvalue)
