"""Scores over seeds: from the per-item results of each training to rows of the score table, and the
significance tests between systems."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from cdlm_lab.metrics.paired import holm, t_test_of_seeds
from cdlm_lab.metrics.significance import compare_counts, compare_means, count_scores, mean_score
from cdlm_lab.runs.scores import Score


class Cell(NamedTuple):
    """What a score describes; `group`: the subset or setting that is measured, "" = everything."""

    system: str
    split: str
    metric: str
    group: str = ""


Values = Mapping[Cell, Sequence[np.ndarray]]  # for each seed, one value per item
Clusters = Mapping[str, Sequence[Hashable]]  # split -> the cluster of each item, for the bootstrap
Counts = dict[tuple[str, str], list[np.ndarray]]  # (system, split) -> for each seed (clusters, counts)
Measures = Mapping[str, Callable[[np.ndarray], Any]]  # name -> score computed from summed counts


def score_rows(values: Values, clusters: Clusters, tests: Iterable[Mapping[str, Any]] = ()) -> list[Score]:
    """Rows for a report: of each cell the mean over items and seeds with its confidence interval, and the
    mean of each seed. `tests`: rows of `paired_tests`; a cell gets the p-value of the test in which it is
    system `a`."""
    p_of = {
        Cell(row["a"], row["split"], row["measure"], row["group"]): {"p": row["p_holm"], "against": row["b"]}
        for row in tests
    }
    rows = []
    for cell, seeds in values.items():
        of_split = clusters[cell.split]
        mean = mean_score(seeds, of_split, seed=0) | {"n": len(of_split), "clusters": len(set(of_split))}
        rows.append(Score(**cell._asdict(), **mean, **p_of.get(cell, {})))
        rows += [Score(**cell._asdict(), seed=seed, value=one.mean()) for seed, one in enumerate(seeds)]
    return rows


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


def paired_tests(
    pairs: Iterable[tuple[Cell, Cell]], values: Values, clusters: Clusters
) -> list[dict[str, Any]]:
    """Test the first cell of each pair against the second on the same items, resampling clusters: rows with
    systems `a` and `b`, what was compared, the difference, its interval and p-values. `p_holm` is corrected
    for these pairs; `p_seeds` is of Welch's t-test over the seeds, None where that test is undefined."""
    rows = []
    for a, b in pairs:
        sides = values[a], values[b]
        compared = compare_means(*sides, clusters[a.split], seed=0)
        p_seeds = t_test_of_seeds(*([float(one.mean()) for one in side] for side in sides))
        place = {"split": a.split, "group": a.group, "measure": a.metric}
        rows.append({"a": a.system, "b": b.system, **place, **asdict(compared), "p_seeds": p_seeds})
    return with_p_holm(rows)


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
