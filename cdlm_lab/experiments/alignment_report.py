"""From ranked sentences to the report of notebook 05, its table and its figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np
import plotly.graph_objects as go

from cdlm_lab.experiments.matching_systems import SYSTEMS
from cdlm_lab.experiments.seed_scores import compare_means, mean_score, ratio_score
from cdlm_lab.experiments.sentence_alignment import (
    ENCODINGS,
    GLOBAL_ATTENTION,
    Aligned,
    AlignmentSettings,
    ranked,
)
from cdlm_lab.metrics.ranking import RankedList, released_points, values_per_list
from cdlm_lab.metrics.significance import holm
from cdlm_lab.report import Report, Run
from cdlm_lab.widgets.alignment_figure import alignment_figure
from cdlm_lab.widgets.alignment_table import RANDOM, AlignmentRow

AT = (1, 5, 10)
ORACLE, JOINT, RELEASED = "oracle", "joint", "released"
_COLUMNS = {"mrr": "reciprocal_rank", **{f"at_{n}": f"at_{n}" for n in AT}}
# What ranks best in the papers, or is made to; the other is tested against it.
_FIRST = {"cosine": "attention", ENCODINGS: GLOBAL_ATTENTION}


def write_alignment_report(run: Run, aligned: Aligned, settings: AlignmentSettings) -> Report:
    """MRR and P@N of every system and way of ranking, and the tests between them: given that the documents
    are related (`oracle`), jointly with that decision (`joint`: 0 where it is wrong), and as the released
    code makes CDA's Tables 4 and 5 (`released`: with the unrelated pairs, see
    `metrics.ranking.released_points`)."""
    chance = _chance(aligned, settings)
    coin = (np.full(len(aligned.pairs), 0.5), np.full(len(aligned.unrelated), 0.5))
    scores = _scores(f"{RANDOM}//", [(chance, *coin)], aligned, settings, (ORACLE, RELEASED))
    for system, by in _ways(aligned):
        seeds = [
            (values, aligned.found[system, of_seed], aligned.refused[system, of_seed])
            for of_seed, values in _values(aligned, system, by, settings).items()
        ]
        scores |= _scores(f"{system}/{by}/", seeds, aligned, settings, (ORACLE, JOINT, RELEASED))
    return run.write_report(
        scores=scores,
        data={
            "pairs": len(aligned.pairs),
            "unrelated_pairs": len(aligned.unrelated),
            "clusters": len(set(_clusters(aligned))),
            "sentences": fmean(len(pair.first.sentences) for pair in aligned.pairs),
            "true_sentences": fmean(len(pair.aligned) for pair in aligned.pairs),
            "reading_of_p_at_n": settings.reading,
        },
        tables={"comparisons": _comparisons(aligned, settings)},
    )


def alignment_rows(report: Report, setting: str) -> list[AlignmentRow]:
    """A row for each system and way of ranking, `oracle`, `joint` or `released`; random scores are the first,
    but of `joint`."""
    p_of = {(row["a"], row["by"]): row["p_holm"] for row in report.tables["comparisons"]}
    rows: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for name, score in report.scores.items():
        system, by, of_setting, measure = name.split("/")
        if of_setting == setting:
            rows.setdefault((system, by), {})[measure] = score
    return [
        AlignmentRow(
            system=system,
            label="Random" if system == RANDOM else SYSTEMS[system].label,
            by=by,
            values={name: score["value"] for name, score in of_row.items()},
            intervals={name: (score["low"], score["high"]) for name, score in of_row.items()},
            deviations={
                name: score["deviation"] for name, score in of_row.items() if score["deviation"] is not None
            },
            seeds=of_row["mrr"]["seeds"],
            p=p_of.get((system, by)) if setting == ORACLE else None,
        )
        for (system, by), of_row in rows.items()
    ]


def mrr_figure(report: Report) -> go.Figure:
    """MRR given that the documents are related, as in CDA's Figure 3."""
    return alignment_figure(alignment_rows(report, ORACLE))


def _ways(aligned: Aligned) -> list[tuple[str, str]]:
    """(system, by), in order."""
    return list(dict.fromkeys((system, by) for system, by, _ in aligned.scores))


def _clusters(aligned: Aligned) -> list[str]:
    return [pair.cluster for pair in aligned.pairs]


def _values(
    aligned: Aligned, system: str, by: str, settings: AlignmentSettings
) -> dict[int, dict[str, np.ndarray]]:
    """Seed -> measure -> (pairs,), given that the documents are related."""
    return {
        key[2]: values_per_list(aligned.lists(key), at=AT, reading=settings.reading)
        for key in aligned.scores
        if key[:2] == (system, by)
    }


def _chance(aligned: Aligned, settings: AlignmentSettings) -> dict[str, np.ndarray]:
    """What random scores have: those of equal scores, whose expectation over all orders is exact."""
    lists: list[RankedList] = [ranked(pair, np.zeros(len(pair.first.sentences))) for pair in aligned.pairs]
    return values_per_list(lists, at=AT, reading=settings.reading)


def _scores(
    name: str,
    seeds: Sequence[tuple[Mapping[str, np.ndarray], np.ndarray, np.ndarray]],
    aligned: Aligned,
    settings: AlignmentSettings,
    of: Sequence[str],
) -> dict[str, dict[str, Any]]:
    """Each setting of `of` and measure, after `name`.

    Args:
        seeds: with each seed the values of `_values`, and how probably each related pair is called related
            and each unrelated one unrelated.
    """
    related = _clusters(aligned)
    every = [*related, *(pair.cluster for pair in aligned.unrelated)]
    scores = {}
    for setting, (measure, column) in product(of, _COLUMNS.items()):
        if setting == RELEASED:
            points = [
                released_points(values, reading=settings.reading, found=found, refused=refused)[column]
                for values, found, refused in seeds
            ]
            score = ratio_score(points, every, seed=settings.seed)
        else:
            kept = [values[column] * (found if setting == JOINT else 1) for values, found, _ in seeds]
            score = mean_score(kept, related, seed=settings.seed)
        scores[f"{name}{setting}/{measure}"] = score
    return scores


def _comparisons(aligned: Aligned, settings: AlignmentSettings) -> list[dict[str, Any]]:
    """MRR given that the documents are related: each system's best way against that of the system that it
    builds on, and each other way against it; `p_holm` is corrected for all of these."""
    ways = set(_ways(aligned))
    tested: list[tuple[tuple[str, str], tuple[str, str]]] = []
    for system, by in _ways(aligned):
        other = (system, _FIRST[by]) if by in _FIRST else (SYSTEMS[system].against, by)
        if other in ways:
            tested.append(((system, by), other))
    rows = [_compare(aligned, a, b, settings) for a, b in tested]
    corrected: Iterable[float] = holm([row["p_permutation"] for row in rows])
    return [{**row, "p_holm": p} for row, p in zip(rows, corrected, strict=True)]


def _compare(
    aligned: Aligned, a: tuple[str, str], b: tuple[str, str], settings: AlignmentSettings
) -> Mapping[str, Any]:
    ours, theirs = (
        [one["reciprocal_rank"] for one in _values(aligned, *way, settings).values()] for way in (a, b)
    )
    compared = compare_means(ours, theirs, _clusters(aligned), seed=settings.seed)
    return {"a": a[0], "by": a[1], "b": b[0], "b_by": b[1], "measure": "mrr", **asdict(compared)}
