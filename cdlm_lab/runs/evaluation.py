"""From the table of items to what a report says: scores with intervals, and planned comparisons.

An experiment names its measures and its planned comparisons; everything else is the same for all:

- a score is that of summed items, its value the mean over seeds, its interval over clusters;
- a comparison has a p-value over clusters and, with several seeds on both sides, one over seeds. Its `p` is
  the larger of the two: a difference counts only if other items and other seeds would show it as well (an
  intersection-union test, Berger 1982). `p_holm` is corrected within the family, which is fixed by the plan:
  further systems or folders that a user compares are families of their own;
- where the number of clusters allows no corrected p below 5%, the verdict is `too few units`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from statistics import fmean, stdev
from typing import Any, Literal

import numpy as np
import pandas as pd

from cdlm_lab.metrics.paired import (
    SURE,
    Comparison,
    compare,
    holm,
    jackknife_interval,
    least_p,
    scores_of,
    t_test_of_seeds,
)
from cdlm_lab.runs.items import UNTRAINED, checked_items
from cdlm_lab.runs.scores import Score, frame_of

Verdict = Literal["holds", "does not", "undecided", "too few units"]


@dataclass(frozen=True)
class Measure:
    """A score as a function of base metrics of the table of items.

    form: `ratio`, the base metric itself; `f1`, the harmonic mean of precision and recall (0 if both are);
        `mean` of several measures, such as CoNLL F1; `exp`, the exponential of the ratio, such as perplexity,
        whose intervals and differences are made in logarithms; `gap`, the ratio of the first of two base
        metrics less that of the second, of other items.
    of: base metrics, or for `mean` other measures; () = the base metric of the same name.
    counts: base metric whose `den` counts what was measured, for `n`; "" = the last of `of`, of a gap both.
    lower: True = lower is better.
    """

    name: str
    form: Literal["ratio", "f1", "mean", "exp", "gap"] = "ratio"
    of: tuple[Any, ...] = ()
    counts: str = ""
    lower: bool = False

    @property
    def counted(self) -> tuple[str, ...]:
        """The base metrics whose `den` add up to `n`."""
        return self.bases if self.form == "gap" else (self.counts or self.bases[-1],)

    @property
    def bases(self) -> tuple[str, ...]:
        """The base metrics that it reads."""
        if self.form == "mean":
            return tuple(dict.fromkeys(base for one in self.of for base in one.bases))
        return self.of or (self.name,)

    def score(self, sums: Mapping[str, np.ndarray]) -> np.ndarray:
        """The score (...) from base metric -> sums (..., 2) of num and den; for `exp` its logarithm."""
        if self.form == "mean":
            return np.mean([one.score(sums) for one in self.of], axis=0)
        ratios = [_ratio(sums[base]) for base in self.bases]
        if self.form == "gap":
            return ratios[0] - ratios[1]
        if self.form != "f1":
            return ratios[0]
        precision, recall = ratios
        total = precision + recall
        return np.divide(2 * precision * recall, total, out=np.zeros_like(total), where=total > 0)

    def shown(self, value: float) -> float:
        """The value as it is reported."""
        if self.form != "exp":
            return float(value)
        with np.errstate(over="ignore"):
            return float(np.exp(value))


def _ratio(sums: np.ndarray) -> np.ndarray:
    num, den = sums[..., 0], sums[..., 1]
    return np.divide(num, den, out=np.zeros(np.broadcast(num, den).shape), where=den > 0)


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A comparison planned before the run: `a` against `b`, by one measure, on one split and group."""

    a: str
    b: str
    measure: str
    split: str = "test"
    group: str = ""
    group_of_b: str | None = None  # None = the same
    # Comparisons that are corrected together; "" = those of the same measure, split and group.
    family: str = ""
    beside: bool = True  # whether its p stands beside the score of `a`

    @property
    def places(self) -> tuple[tuple[str, str, str], tuple[str, str, str]]:
        """(system, split, group) of `a` and of `b`."""
        group = self.group if self.group_of_b is None else self.group_of_b
        return (self.a, self.split, self.group), (self.b, self.split, group)


class ItemTable:
    """The items of a run, summed by cluster."""

    def __init__(self, items: pd.DataFrame) -> None:
        self.items = checked_items(items)

    @cached_property
    def _places(self) -> dict[tuple[str, str, str], pd.DataFrame]:
        return dict(iter(self.items.groupby(["system", "split", "group"], sort=False)))

    @property
    def places(self) -> list[tuple[str, str, str]]:
        """(system, split, group) in the order of the table."""
        return list(self._places)

    def has(self, place: tuple[str, str, str], measure: Measure) -> bool:
        """Whether all base metrics of the measure are there."""
        return place in self._places and {*measure.bases} <= {*self._places[place]["metric"].unique()}

    def number(self, place: tuple[str, str, str], measure: Measure) -> int:
        """How much was measured: the sum of `den` of the counting base metrics, with the first seed."""
        rows = self._places[place]
        of = rows[rows["metric"].isin(measure.counted) & (rows["seed"] == rows["seed"].min())]
        return round(float(of["den"].sum()))

    def is_trained(self, place: tuple[str, str, str]) -> bool:
        """Whether the system was trained, with one seed or several."""
        return not (self._places[place]["seed"] == UNTRAINED).all()

    def counts(self, place: tuple[str, str, str], measure: Measure) -> tuple[np.ndarray, list[str]]:
        """Sums (seeds, clusters, base metrics, 2), and the names of the clusters. Raises ValueError if the
        seeds were not measured on the same items."""
        rows = self._places[place]
        rows = rows[rows["metric"].isin(measure.bases)]
        items = {
            tuple(sorted(set(zip(one["cluster"], one["item"], strict=True))))
            for _, one in rows.groupby("seed")
        }
        if len(items) > 1:
            raise ValueError(f"{'/'.join(filter(None, place))}: the seeds were measured on different items")
        sums = rows.groupby(["seed", "cluster", "metric"], sort=True)[["num", "den"]].sum()
        seeds, clusters = (sums.index.get_level_values(name).unique() for name in ("seed", "cluster"))
        full = pd.MultiIndex.from_product([seeds, clusters, measure.bases])
        array = sums.reindex(full, fill_value=0.0).to_numpy()
        return array.reshape(len(seeds), len(clusters), len(measure.bases), 2), [*clusters]


def _statistic(measure: Measure, seeds: int) -> Callable[[np.ndarray], np.ndarray]:
    """The mean over seeds of the score, from (..., seeds * base metrics * 2) sums."""

    def of(sums: np.ndarray) -> np.ndarray:
        parts = sums.reshape(*sums.shape[:-1], seeds, len(measure.bases), 2)
        return measure.score({base: parts[..., n, :] for n, base in enumerate(measure.bases)}).mean(axis=-1)

    return of


def _by_cluster(counts: np.ndarray) -> np.ndarray:
    """(seeds, clusters, bases, 2) as (clusters, columns)."""
    return np.moveaxis(counts, 0, 1).reshape(counts.shape[1], -1)


def _of_seeds(counts: np.ndarray, measure: Measure) -> list[float]:
    return [float(scores_of(_statistic(measure, 1), one.sum(axis=0).reshape(-1))) for one in counts]


def score_rows(table: ItemTable, measures: Iterable[Measure]) -> list[Score]:
    """For each system, split, group and measure the score over all seeds with its interval, then, of what was
    trained, the score of each seed. Shares stay within [0, 1]."""
    rows = []
    for place in table.places:
        keys = dict(zip(("system", "split", "group"), place, strict=True))
        for measure in measures:
            if not table.has(place, measure):
                continue
            counts, clusters = table.counts(place, measure)
            of_seeds = [measure.shown(one) for one in _of_seeds(counts, measure)]
            low, high = jackknife_interval(_by_cluster(counts), _statistic(measure, len(counts)))
            bounds = {"low": measure.shown(low), "high": measure.shown(high)} if len(clusters) > 1 else {}
            is_share = (counts[..., 0] <= counts[..., 1]).all() and (counts >= 0).all()
            if bounds and is_share and measure.form in ("ratio", "f1", "mean"):
                bounds = {"low": max(0.0, bounds["low"]), "high": min(1.0, bounds["high"])}
            value = fmean(of_seeds)
            if bounds:  # sums in another order may differ in the last digit
                bounds = {"low": min(bounds["low"], value), "high": max(bounds["high"], value)}
            deviation = stdev(of_seeds) if len(of_seeds) > 1 else None
            trained = table.is_trained(place)
            size = {"n": table.number(place, measure), "clusters": len(clusters)}
            size |= {"deviation": deviation, "seeds": len(of_seeds) if trained else None}
            rows.append(Score(**keys, metric=measure.name, value=value, **bounds, **size))
            rows += [
                Score(**keys, metric=measure.name, seed=seed, value=one)
                for seed, one in enumerate(of_seeds if trained else ())
            ]
    return rows


def comparison_rows(
    table: ItemTable, measures: Iterable[Measure], planned: Iterable[Planned]
) -> list[dict[str, Any]]:
    """The planned comparisons that these systems allow: rows with `a`, `b`, `split`, `group`, `measure`,
    `difference` (of logarithms for `exp`), `low`, `high` (None for a single cluster), `clusters`, `seeds`,
    `p_items`, `p_seeds`, `p`, `p_holm`, `family` and `verdict` (that a is better than b)."""
    by_name = {measure.name: measure for measure in measures}
    rows = []
    for one in planned:
        measure = by_name[one.measure]
        if all(table.has(place, measure) for place in one.places):
            rows.append(_compared(table, measure, one))
    families: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        families.setdefault(row["family"], []).append(row)
    for family in families.values():
        judge(family, lower=[by_name[row["measure"]].lower for row in family])
    return rows


def _compared(table: ItemTable, measure: Measure, one: Planned) -> dict[str, Any]:
    sides = [table.counts(place, measure) for place in one.places]
    if sides[0][1] != sides[1][1]:
        raise ValueError(f"{one.a} and {one.b} were not measured on the same clusters of {one.split}")
    scores = [_of_seeds(counts, measure) for counts, _ in sides]
    seeds = max(map(len, scores))
    if min(map(len, scores)) > 1:
        seeds = min(map(len, scores))
    # a system without chance, such as a baseline, has one seed, which stands for all
    a, b = (
        _by_cluster(np.repeat(counts, seeds, axis=0) if len(counts) == 1 else counts[:seeds])
        for counts, _ in sides
    )
    compared: Comparison = compare(a, b, _statistic(measure, seeds))
    p_seeds = t_test_of_seeds(*scores)
    row = asdict(compared)
    p_items = row.pop("p")
    if len(a) < 2:  # which says nothing about others
        row |= {"low": None, "high": None}
    return {
        "a": one.a,
        "b": one.b,
        "split": one.split,
        "group": one.group,
        "measure": measure.name,
        **row,
        "seeds": seeds,
        "p_items": p_items,
        "p_seeds": p_seeds,
        "p": max(p_items, p_seeds or 0.0),
        "family": one.family or "/".join(filter(None, (measure.name, one.split, one.group))),
    }


def judge(family: Sequence[dict[str, Any]], *, lower: Sequence[bool]) -> None:
    """Add `p_holm` and `verdict` to comparisons that are corrected together; `lower`: of each, whether the
    lower score is better. A recorded one may not say how many `clusters` it has."""
    for row, p, is_lower in zip(family, holm([row["p"] for row in family]), lower, strict=True):
        few = "clusters" in row and least_p(row["clusters"]) * len(family) >= SURE
        row |= {"p_holm": p, "verdict": verdict(row["difference"], p, lower=is_lower, few=few)}


def verdict(difference: float, p: float, *, lower: bool = False, few: bool = False) -> Verdict:
    """What a comparison says of the claim that a is better than b, from the difference of their scores and
    its corrected p. `lower`: True = the lower score is better; `few`: True = no corrected p below 5% is
    possible."""
    if few:
        return "too few units"
    if p >= SURE:
        return "undecided"
    return "holds" if (difference < 0) is lower else "does not"


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What `evaluate` makes of the items of a run."""

    items: pd.DataFrame
    rows: list[Score]
    comparisons: list[dict[str, Any]]

    @property
    def frame(self) -> pd.DataFrame:
        """The scores over all seeds, with their intervals, `n`, clusters and seeds."""
        shown = ["system", "split", "group", "metric", "value", "low", "high", "n", "clusters", "seeds"]
        return frame_of(row for row in self.rows if row.seed is None)[shown]

    @property
    def comparison_frame(self) -> pd.DataFrame:
        """The comparisons: what was compared, the difference with its interval, the p-values, and the verdict
        on the claim that a is better than b."""
        shown = ["a", "b", "measure", "difference", "low", "high", "p_items", "p_seeds", "p_holm", "verdict"]
        return pd.DataFrame(self.comparisons, columns=shown)


def evaluate(items: pd.DataFrame, measures: Sequence[Measure], planned: Sequence[Planned] = ()) -> Evaluation:
    """Scores with intervals, and the planned comparisons; a row of the scores of a system has the p of the
    first comparison in which it is `a`. Raises ValueError if the table is at fault."""
    table = ItemTable(items)
    comparisons = comparison_rows(table, measures, planned)
    keys = ("a", "b", "split", "group", "measure")
    made = {tuple(row[name] for name in keys): row for row in comparisons}
    p_of: dict[tuple[str, ...], dict[str, Any]] = {}
    for one in planned:
        if one.beside and (row := made.get(tuple(getattr(one, name) for name in keys))):
            p_of.setdefault(
                (one.a, one.split, one.group, one.measure), {"p": row["p_holm"], "against": one.b}
            )
    rows = [
        _with_p(row, p_of.get((row.system, row.split, row.group, row.metric), {}))
        for row in score_rows(table, measures)
    ]
    return Evaluation(items=table.items, rows=rows, comparisons=comparisons)


def _with_p(row: Score, test: Mapping[str, Any]) -> Score:
    return Score(**asdict(row) | test) if test and row.seed is None else row
