"""Scores over seeds: from the per-item results of each training to rows of the score table, and the
significance tests between systems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

import numpy as np

from cdlm_lab.metrics.paired import holm
from cdlm_lab.metrics.significance import compare_counts, count_scores
from cdlm_lab.runs.scores import Score


Counts = dict[tuple[str, str], list[np.ndarray]]  # (system, split) -> for each seed (clusters, counts)
Measures = Mapping[str, Callable[[np.ndarray], Any]]  # name -> score computed from summed counts


def count_rows(
    counts: Counts, measures: Measures, tests: Sequence[Mapping[str, Any]], *, of_seeds: Measures
) -> list[Score]:
    """Rows for a report: scores of summed counts with confidence intervals, on test also with the p-value of
    the first matching row of `tests`; then, for each seed, the scores in `of_seeds`."""
    p_of = {(row["a"], row["measure"]): {"p": row["p_holm"], "against": row["b"]} for row in tests[::-1]}
    rows = []
    for (system, split), seeds in counts.items():
        place = {"system": system, "split": split}
        for metric, score in count_scores(seeds, measures, seed=0).items():
            score |= p_of.get((system, metric), {}) if split == "test" else {}
            size = {"n": int(seeds[0][:, -1].sum()), "clusters": len(seeds[0])}
            rows.append(Score(**place, metric=metric, **score, **size))
        for (seed, one), (metric, of) in product(enumerate(seeds), of_seeds.items()):
            rows.append(Score(**place, metric=metric, value=float(of(one.sum(axis=0))), seed=seed))
    return rows


def count_tests(
    pairs: Iterable[tuple[str, str]], counts: Counts, statistic: Callable[[np.ndarray], Any], *, measure: str
) -> list[dict[str, Any]]:
    """Test pairs of systems on test by a statistic of summed counts, resampling the rows (clusters): rows
    with `a`, `b`, `measure`, the difference, its interval, p, and `p_holm`, corrected for these pairs."""
    rows = []
    for a, b in pairs:
        compared = compare_counts(counts[a, "test"], counts[b, "test"], statistic, seed=0)
        rows.append({"a": a, "b": b, "measure": measure, **asdict(compared)})
    return with_p_holm(rows)


def with_p_holm(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of tests with `p_holm` added: their `p` after Holm's correction over all the rows."""
    return [{**row, "p_holm": p} for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True)]
