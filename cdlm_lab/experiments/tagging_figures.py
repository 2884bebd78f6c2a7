"""The figures of section 5 of the Doc-ARC paper, from the report of a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import plotly.graph_objects as go

from cdlm_lab.analysis.tf_idf import QuantileShare
from cdlm_lab.examples.occurrences import BUCKETS
from cdlm_lab.experiments.tagging_systems import TAG_SYSTEMS
from cdlm_lab.report import Report
from cdlm_lab.widgets.tagging_figures import (
    QUANTILES,
    DistanceWeights,
    SweepPoint,
    WordGain,
    gain_by_tf_idf_figure,
    shares_by_tf_idf_figure,
    sweep_figure,
    weights_by_distance_figure,
)


def report_figures(report: Report) -> list[go.Figure]:
    """Figures 2 to 5, in this order; those of which the run has no numbers are left out."""
    return [_shares(report), *_gains(report), *_weights(report), *_sweep(report)]


def _corpus(report: Report) -> str:
    return Path(report.data["corpus"]).name


def _shares(report: Report) -> go.Figure:
    return shares_by_tf_idf_figure(
        {_corpus(report): [QuantileShare(**row) for row in report.tables["shares"]]}
    )


def _gains(report: Report) -> list[go.Figure]:
    rows = report.tables["gains"]
    return [
        gain_by_tf_idf_figure(
            {_corpus(report): [_gain(row) for row in rows if (row["a"], row["b"]) == pair]},
            system=TAG_SYSTEMS[pair[0]].label,
            other=TAG_SYSTEMS[pair[1]].label,
        )
        for pair in dict.fromkeys((row["a"], row["b"]) for row in rows)
    ]


def _gain(row: Mapping[str, Any]) -> WordGain:
    return WordGain(
        stratum=row["words"],
        gain=row["difference"],
        low=row["low"],
        high=row["high"],
        words=row["occurrences"],
    )


def _weights(report: Report) -> list[go.Figure]:
    rows = report.tables["weights"]
    figures = []
    for name in dict.fromkeys(row["system"] for row in rows):
        by_bucket = {row["bucket"]: row for row in rows if row["system"] == name}
        weights = [_at_distance(number, by_bucket.get(number)) for number in range(len(BUCKETS))]
        title = f"Attention weight of occurrences, by distance: {TAG_SYSTEMS[name].label}"
        figures.append(weights_by_distance_figure(weights, title=title))
    return figures


def _at_distance(number: int, row: Mapping[str, Any] | None) -> DistanceWeights:
    if row is None:
        return DistanceWeights(bucket=BUCKETS[number], quantiles=(0.0,) * len(QUANTILES), mean=0.0, count=0)
    return DistanceWeights(
        bucket=BUCKETS[number], quantiles=row["quantiles"], mean=row["mean"], count=row["count"]
    )


def _sweep(report: Report) -> list[go.Figure]:
    of_width: dict[int, list[float]] = {}
    for row in report.tables["sweep"]:
        of_width.setdefault(row["occurrences"], []).append(row["f1"])
    if len(of_width) < 2:
        return []
    points = [
        SweepPoint(
            k=width,
            f1=fmean(of_seeds),
            deviation=stdev(of_seeds) if len(of_seeds) > 1 else None,
            seeds=len(of_seeds),
        )
        for width, of_seeds in sorted(of_width.items())
    ]
    return [sweep_figure({_corpus(report): points})]
