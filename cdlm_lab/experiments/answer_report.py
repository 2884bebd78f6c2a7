"""After a run of notebook 09: the report, and what its tables and figures show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import plotly.graph_objects as go

from cdlm_lab.analysis.joint_diagnosis import JointDiagnosis, diagnose
from cdlm_lab.experiments.answer_corpora import cluster_of
from cdlm_lab.experiments.answer_latency import expected_ratios
from cdlm_lab.experiments.answer_scores import (
    ALL,
    MEASURES,
    RANDOM,
    RERANKED,
    AnswerScores,
    row_label,
)
from cdlm_lab.experiments.answer_selection import AnswerRun, Found
from cdlm_lab.experiments.answer_systems import ANSWER_SYSTEMS, PAIRWISE
from cdlm_lab.report import Report, Run
from cdlm_lab.training.config import precision_told
from cdlm_lab.widgets.answer_table import CORPUS_NAMES, AnswerRow, answer_table_html
from cdlm_lab.widgets.figure_parts import points_in_words
from cdlm_lab.widgets.joint_figures import accuracy_by_place_figure, latency_figure, score_spread_figure
from cdlm_lab.widgets.joint_numbers import Latency
from cdlm_lab.widgets.markup import MUTED, escaped
from cdlm_lab.widgets.matching_table import p_in_words
from cdlm_lab.widgets.measured_score import MeasuredScore

RANDOM_ORDER = "random order"


def diagnoses(run: AnswerRun, found: Found) -> dict[tuple[str, int], JointDiagnosis]:
    """(joint system, seed) -> what its scores on test look like."""
    k = run.settings.models.candidates
    diagnosed = {}
    for system, seed in run.trainings:
        if system.is_joint:
            scores, labels, question = found[system.name, seed]["test"].every.read_together(k)
            diagnosed[system.name, seed] = diagnose(scores, labels, question=question)
    return diagnosed


def write_answer_report(
    run: AnswerRun,
    opened: Run,
    found: Found,
    *,
    diagnosed: dict[tuple[str, int], JointDiagnosis],
    latencies: Sequence[Latency],
) -> Report:
    """Scores of all systems on dev and test, the tests between them, what shows a collapse, and latencies."""
    scored = AnswerScores(run=run, found=found)
    return opened.write_report(
        scores=scored.scores(),
        data={
            "precision": precision_told(run.settings.training.precision),
            "corpus": {split: run.settings.corpus.source_of(split) for split in run.splits},
            "format": {split: one.corpus for split, one in run.splits.items()},
            "checksums": {split: one.checksum for split, one in run.splits.items()},
            "questions": {split: len(one.sets) for split, one in run.splits.items()},
            "candidates": {
                split: sum(len(each.candidates) for each in one.sets) for split, one in run.splits.items()
            },
            "questions_read": {split: one.read.questions for split, one in run.splits.items()},
            "clusters": {split: len(set(map(cluster_of, one.sets))) for split, one in run.splits.items()},
        },
        tables={
            "comparisons": scored.comparisons(),
            "runs": scored.runs(),
            "diagnosis": [
                {"system": name, "seed": seed, **_plain(one)} for (name, seed), one in diagnosed.items()
            ],
            "latency": [asdict(one) for one in latencies],
        },
    )


def answers_table(report: Report, *, ranking: str = ALL, split: str = "test") -> str:
    """The table of one split as HTML. With ranking `all`, the paper's Table 1; with `reranked`, Tables 2 and
    7: pairwise, and the joint systems on its best candidates. Numbers of the paper stand beside those of
    test."""
    name, k = report.data["format"][split], report.parameters["candidates"]
    p_of = {
        (row["a"], row["measure"]): row["p_holm"]
        for row in report.tables["comparisons"]
        if split == "test" and row["ranking"] == ranking and row["b"] == PAIRWISE
    }
    rows = [
        AnswerRow(
            label=RANDOM_ORDER if system == RANDOM else row_label(system, how, k=k),
            system=RANDOM if system == RANDOM else ANSWER_SYSTEMS[system].published,
            reranked=ranking == RERANKED,
            scores={
                measure: _measured(report, f"{system}/{how}/{split}/{measure}", p_of.get((system, measure)))
                for measure in MEASURES
            },
            seeds=None if system == RANDOM else report.parameters["seeds"],
        )
        for system, how in _rows(report, ranking)
    ]
    corpus = name if split == "test" else f"{CORPUS_NAMES.get(name, name)}, {split}"
    return answer_table_html(rows, questions=report.data["questions"][split], corpus=corpus)


def comparison_rows(report: Report, *, ranking: str = ALL) -> list[list[str]]:
    """The tests on test as cells of HTML: both systems, and for each measure the difference in points with
    its interval, and both p-values."""
    tests = [row for row in report.tables["comparisons"] if row["ranking"] == ranking]
    pairs = dict.fromkeys((row["a"], row["b"]) for row in tests)
    of_pair = {(row["a"], row["b"], row["measure"]): row for row in tests}
    return [
        [
            ANSWER_SYSTEMS[a].label,
            ANSWER_SYSTEMS[b].label,
            *(_test_cell(of_pair[a, b, measure]) for measure in MEASURES),
        ]
        for a, b in pairs
    ]


def diagnosis_rows(report: Report) -> list[list[str]]:
    """Joint system, seed, and what became of it, as cells of HTML."""
    return [
        [ANSWER_SYSTEMS[row["system"]].label, str(row["seed"]), escaped(row["verdict"])]
        for row in report.tables["diagnosis"]
    ]


def collapse_figures(diagnosed: dict[tuple[str, int], JointDiagnosis]) -> list[go.Figure]:
    """Spread of scores and accuracy by place, of the joint systems with seed 0."""
    first = {ANSWER_SYSTEMS[name].label: one for (name, seed), one in diagnosed.items() if not seed}
    return [
        score_spread_figure({label: one.spread for label, one in first.items()}),
        accuracy_by_place_figure(first),
    ]


def timing_figure(report: Report) -> go.Figure:
    """Seconds a question, of each system."""
    return latency_figure([Latency(**row) for row in report.tables["latency"]], against=PAIRWISE)


def timing_told(report: Report) -> str:
    """HTML: how many times as long as pairwise reading joint reading takes, measured and by the paper."""
    k, rows = report.parameters["candidates"], report.tables["latency"]
    seconds = {row["system"]: row["seconds"] for row in rows}
    joint = [value for label, value in seconds.items() if label != PAIRWISE]
    quadratic, linear = expected_ratios(k)
    return (
        f"Joint reading takes {np.mean(joint) / seconds[PAIRWISE]:.2f} times as long as pairwise. By the "
        f"paper's arithmetic, for sentences of one length: (k + 1)&sup2; / 4k = {quadratic:.2f} where time "
        f"grows with the square of the sequence, (k + 1) / 2k = {linear:.2f} where it grows with its length; "
        f"it measured 1.14 (k = 5, WikiQA, one A100)."
    )


def _rows(report: Report, ranking: str) -> list[tuple[str, str]]:
    """(system, ranking) of the rows of a table."""
    joint = [name for name in ANSWER_SYSTEMS if f"{name}/{RERANKED}/test/map" in report.scores]
    return [(PAIRWISE, ALL), *((name, ranking) for name in joint), (RANDOM, ALL)]


def _measured(report: Report, key: str, p: float | None) -> MeasuredScore:
    score = report.scores[key]
    interval = (score["low"], score["high"]) if "low" in score else None
    return MeasuredScore(value=score["value"], interval=interval, deviation=score.get("deviation"), p=p)


def _test_cell(row: dict[str, Any]) -> str:
    difference, low, high = (points_in_words(row[name]) for name in ("difference", "low", "high"))
    seeds = "" if row["p_seeds"] is None else f"; over seeds {p_in_words(row['p_seeds'])}"
    p = f"p {p_in_words(row['p_holm'])}{seeds}"
    return f'{difference} [{low}, {high}]<div style="font-size:11px;{MUTED}">{p}</div>'


def _plain(one: JointDiagnosis) -> dict[str, Any]:
    """For the report; None where no group has a candidate."""
    return {
        "collapsed": one.collapsed,
        "verdict": one.verdict,
        "map": one.scores["average_precision"],
        "random_map": one.random["average_precision"],
        "gain": one.gain,
        "median_spread": float(np.median(one.spread)),
        "by_place": one.by_place,
        **{
            name: [None if math.isnan(value) else value for value in getattr(one, name).tolist()]
            for name in ("accuracy", "always_wrong", "first", "first_random")
        },
    }
