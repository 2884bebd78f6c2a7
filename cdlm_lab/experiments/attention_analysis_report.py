"""From percentile ranks of many pairs to the report of notebook 11, its table and its figures."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go

from cdlm_lab.analysis.mean_percentile_rank import (
    MeanRank,
    compare_percentile_ranks,
    mean_percentile_rank,
    rank_gap,
)
from cdlm_lab.experiments.attention_analysis import Analysis, ModelRanks
from cdlm_lab.experiments.rank_scoring import FIRST_HEAD, PAPER, RANDOM_SPAN
from cdlm_lab.metrics.significance import holm
from cdlm_lab.report import Report, Run
from cdlm_lab.widgets.rank_figures import head_maps, rank_distributions
from cdlm_lab.widgets.rank_table import SORTS, RankCell, RankRow
from cdlm_lab.widgets.theme import variant_name

Measured = Mapping[str, ModelRanks]  # by variant


def write_analysis_report(run: Run, analysis: Analysis, measured: Measured) -> Report:
    """Means with intervals, what a random span has, gaps between the sorts of pairs, and paired tests."""
    settings = analysis.settings
    return run.write_report(
        scores=scores_of(analysis, measured),
        data={
            "corpus": settings.corpus,
            "split": settings.split,
            "topics": [topic.id for topic in analysis.topics],
        },
        tables={
            "comparisons": comparisons_of(analysis, measured),
            "heads": [
                {"variant": variant, "kind": kind, "points": row.tolist(), "layer": layer}
                for kind in analysis.pairs
                for variant, points in head_differences(analysis, measured, kind).items()
                for layer, row in enumerate(points.round(2))
            ],
        },
    )


def scores_of(analysis: Analysis, measured: Measured) -> dict[str, dict[str, Any]]:
    """`variant/sort/kind`: the mean percentile rank with its 95% interval over topics and, as `chance`, that
    of random spans as long as the targets; `variant/gap/kind`: positives minus negatives."""
    seed = analysis.settings.seed
    scores = {}
    for variant, ranks in measured.items():
        for kind, of_kind in ranks.of_kind.items():
            named = {}
            for sort in SORTS:
                chosen, topics = of_kind[_chosen(analysis, kind, sort)], _topics(analysis, kind, sort)
                named[sort] = chosen[:, PAPER], topics
                mean = mean_percentile_rank(chosen[:, PAPER], clusters=topics, seed=seed)
                scores[f"{variant}/{sort}/{kind}"] = {
                    **_plain(mean),
                    "chance": float(chosen[:, RANDOM_SPAN].mean(dtype=np.float64)),
                }
            (positive, first), (negative, second) = named["positive"], named["negative"]
            gap = rank_gap(positive, negative, positive_clusters=first, negative_clusters=second, seed=seed)
            scores[f"{variant}/gap/{kind}"] = _plain(gap)
    return scores


def comparisons_of(analysis: Analysis, measured: Measured) -> list[dict[str, Any]]:
    """Each variant against the next in paper order, paired pair by pair, topics being what is drawn.

    `difference`: mean rank of `a` minus that of `b`; `p`: of the permutation test; `p_holm`: corrected for
    the rows of one sort and kind.
    """
    rows = []
    for kind in analysis.pairs:
        for sort in SORTS:
            chosen, topics = _chosen(analysis, kind, sort), _topics(analysis, kind, sort)
            found = [
                (
                    a,
                    b,
                    compare_percentile_ranks(
                        *(measured[name].of_kind[kind][chosen, PAPER] for name in (a, b)),
                        clusters=topics,
                        seed=analysis.settings.seed,
                    ),
                )
                for a, b in pairwise(measured)
            ]
            corrected = holm([one.p_permutation for _, _, one in found]) if found else []
            rows += [
                {
                    "cell": f"{sort}/{kind}",
                    "a": a,
                    "b": b,
                    "difference": one.difference,
                    "low": one.low,
                    "high": one.high,
                    "p": one.p_permutation,
                    "p_holm": p_holm,
                    "clusters": one.clusters,
                }
                for (a, b, one), p_holm in zip(found, corrected, strict=True)
            ]
    return rows


def table_rows(report: Report) -> list[RankRow]:
    """Table 6 from the report and nothing else."""
    p_next = {(row["a"], row["cell"]): row["p_holm"] for row in report.tables.get("comparisons", ())}
    cells: dict[str, dict[str, RankCell]] = {}
    for name, score in report.scores.items():
        variant, sort, kind = name.split("/")
        if sort in SORTS:
            cells.setdefault(variant, {})[f"{sort}/{kind}"] = RankCell(
                mean=score["value"],
                low=min(score["low"], score["value"]),  # where all ranks are equal, they differ by rounding
                high=max(score["high"], score["value"]),
                pairs=score["n"],
                chance=score["chance"],
                p_next=p_next.get((variant, f"{sort}/{kind}")),
            )
    return [RankRow(variant=variant, cells=of_variant) for variant, of_variant in cells.items()]


def gap_rows(report: Report) -> list[list[str]]:
    """For a table: each variant, and how many points higher its targets rank if they corefer, by kind."""
    gaps: dict[str, list[str]] = {}
    for name, score in report.scores.items():
        variant, sort, _ = name.split("/")
        if sort == "gap":
            words = f"{score['value']:+.1f} [{score['low']:+.1f}, {score['high']:+.1f}]"
            gaps.setdefault(variant, []).append(words)
    return [[variant_name(variant), *words] for variant, words in gaps.items()]


def ranks_by_cell(analysis: Analysis, measured: Measured) -> dict[str, dict[str, np.ndarray]]:
    """For the figure of distributions: variant -> `sort/kind` -> (pairs,) percentile ranks."""
    return {
        variant: {
            f"{sort}/{kind}": of_kind[_chosen(analysis, kind, sort), PAPER]
            for sort in SORTS
            for kind, of_kind in ranks.of_kind.items()
        }
        for variant, ranks in measured.items()
    }


def distribution_figure(analysis: Analysis, measured: Measured) -> go.Figure:
    """How the ranks of the pairs are spread."""
    title = f"{analysis.settings.corpus}, {analysis.settings.split}"
    return rank_distributions(ranks_by_cell(analysis, measured), title=title)


def head_figures(analysis: Analysis, measured: Measured) -> list[go.Figure]:
    """One figure a kind: which heads of which layers rank coreferring targets higher."""
    return [
        head_maps(head_differences(analysis, measured, kind), title=f"{kind} mentions")
        for kind in analysis.pairs
    ]


def head_differences(analysis: Analysis, measured: Measured, kind: str) -> dict[str, np.ndarray]:
    """For the heat maps: variant -> (layers, heads), mean rank of the targets that corefer minus that of the
    others, by one head of one layer alone; percentage points."""
    found = {}
    for variant, ranks in measured.items():
        positive, negative = (
            ranks.of_kind[kind][_chosen(analysis, kind, sort), FIRST_HEAD:].mean(axis=0) for sort in SORTS
        )
        found[variant] = (positive - negative).reshape(ranks.layers, ranks.heads)
    return found


def _chosen(analysis: Analysis, kind: str, sort: str) -> np.ndarray:
    """bool (pairs of the kind,), True = of the sort."""
    return np.array([pair.corefer == (sort == "positive") for pair in analysis.pairs[kind]])


def _topics(analysis: Analysis, kind: str, sort: str) -> list[str]:
    """The topic of each pair of a sort."""
    return [pair.topic for pair in analysis.pairs[kind] if pair.corefer == (sort == "positive")]


def _plain(mean: MeanRank) -> dict[str, Any]:
    return {
        "value": mean.mean,
        "low": mean.low,
        "high": mean.high,
        "n": mean.pairs,
        "clusters": mean.clusters,
    }
