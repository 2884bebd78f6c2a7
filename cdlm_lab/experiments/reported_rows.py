"""From the report of any notebook that fills a table of a paper to rows of scores (see `reported_scores`).

Every report names its scores in its own way; `READERS` has what knows that, by the name of the experiment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cdlm_lab.experiments.answer_scores import RANDOM as RANDOM_ORDER
from cdlm_lab.experiments.answer_scores import RANKINGS
from cdlm_lab.experiments.answer_systems import ANSWER_SYSTEMS
from cdlm_lab.experiments.claim_report import MAJORITY, SHOWN_ORDER
from cdlm_lab.experiments.claim_systems import CLAIM_SYSTEMS
from cdlm_lab.experiments.coreference_report import SYSTEM
from cdlm_lab.experiments.matching_systems import SYSTEMS
from cdlm_lab.experiments.reported_scores import (
    ALIGNMENT,
    ANSWERS,
    ATTENTION,
    CLAIMS,
    COREFERENCE,
    DEV,
    MATCHING,
    PERPLEXITY,
    QUESTIONS,
    TAGGING,
    ReportedRow,
    ReportedScore,
    p_values_of,
    score_of,
    tested_score,
)
from cdlm_lab.experiments.tagging_systems import TAG_SYSTEMS
from cdlm_lab.report import Report
from cdlm_lab.widgets.alignment_table import RANDOM
from cdlm_lab.widgets.theme import VARIANTS, variant_name


def reported_rows(report: Report) -> list[ReportedRow]:
    """All rows of a report.

    Raises:
        KeyError, ValueError, TypeError: the report is not as its notebook writes it, or no notebook of tables
            wrote it.
    """
    return READERS[report.name](report)


def checkpoint_in(encoders: str, variant: str) -> str:
    """The checkpoint of a variant by the parameter `encoders`, without looking for it."""
    return f"{encoders.rstrip('/')}/{variant}"


def _perplexities(report: Report) -> list[ReportedRow]:
    """Tested against the next variant."""
    tests = p_values_of(report.tables["comparisons"], "a", "kind")
    rows = []
    for variant in dict.fromkeys(name.partition("/")[0] for name in report.scores):
        measures = ("perplexity", "cross_document_perplexity")
        rows.append(
            ReportedRow(
                group="",
                system=variant,
                label=variant_name(variant),
                checkpoint=str(report.parameters[variant.replace("-", "_")]),
                scores={
                    measure: tested_score(report.scores[name], tests.get((variant, measure)))
                    for measure in measures
                    if (name := f"{variant}/{measure}") in report.scores
                },
            )
        )
    return rows


def _coreference(report: Report) -> list[ReportedRow]:
    """This run, and what it was tested against; p stands in the row of the other."""
    tests = {(row["b"],): (row["p_holm"], row["a"]) for row in report.tables["comparisons"]}
    of_system: dict[str, dict[str, ReportedScore]] = {}
    for name, score in report.scores.items():
        if name.count("/") == 3:
            split, system, measure, part = name.split("/")
            key = f"{DEV if split == 'dev' else ''}{measure}/{part}"
            test = tests.get((system,)) if key == "conll/f1" else None
            of_system.setdefault(system, {})[key] = tested_score(score, test)
    if SYSTEM not in of_system:
        raise ValueError(f"there is no score of {SYSTEM!r}")
    context = report.parameters["context"]
    return [
        ReportedRow(
            group=report.parameters["kind"],
            system=context if system == SYSTEM else system,
            label=system,
            checkpoint=str(report.parameters["model"]) if system == SYSTEM else "",
            scores=scores,
        )
        for system, scores in of_system.items()
    ]


def _with_dev(
    report: Report, system: str, measures: Iterable[str], tests: Mapping[tuple[str, ...], tuple[float, str]]
) -> dict[str, ReportedScore]:
    """Scores named system/split/measure; `tests` by system and measure are of test."""
    found = {}
    for measure in measures:
        if (name := f"{system}/test/{measure}") in report.scores:
            found[measure] = tested_score(report.scores[name], tests.get((system, measure)))
        if (name := f"{system}/dev/{measure}") in report.scores:
            found[f"{DEV}{measure}"] = score_of(report.scores[name])
    return found


def _systems(report: Report) -> list[str]:
    return list(dict.fromkeys(name.partition("/")[0] for name in report.scores))


def _matching_checkpoint(system: str, parameters: Mapping[str, Any]) -> str:
    if system in VARIANTS:
        return checkpoint_in(parameters["encoders"], system)
    # word vectors are no encoder
    return "" if SYSTEMS[system].encoder in ("gru", "words") else parameters["sentence_encoder"]


def _matching(report: Report) -> list[ReportedRow]:
    tests = p_values_of(report.tables["comparisons"], "a", "measure")
    return [
        ReportedRow(
            group="",
            system=system,
            label=SYSTEMS[system].label,
            checkpoint=_matching_checkpoint(system, report.parameters),
            scores=_with_dev(report, system, ("accuracy", "f1"), tests),
        )
        for system in _systems(report)
    ]


def _alignment(report: Report) -> list[ReportedRow]:
    """System and what ranks, `gru-han/cosine`; given that documents are related (`oracle`), jointly with that
    decision (`joint`), and as the released code scores it (`released`)."""
    tests = {
        (row["a"], row["by"]): (row["p_holm"], f"{row['b']}/{row['b_by']}")
        for row in report.tables["comparisons"]
    }
    of_row: dict[tuple[str, str, str], dict[str, ReportedScore]] = {}
    for name, score in report.scores.items():
        system, by, setting, measure = name.split("/")
        test = tests.get((system, by)) if (setting, measure) == ("oracle", "mrr") else None
        of_row.setdefault((setting, system, by), {})[measure] = tested_score(score, test)
    return [
        ReportedRow(
            group=setting,
            system=RANDOM if system == RANDOM else f"{system}/{by}",
            label="Random (exact)" if system == RANDOM else f"{SYSTEMS[system].label}, {by}",
            checkpoint="",  # that of the run of notebook 04, which is another report
            scores=scores,
        )
        for (setting, system, by), scores in of_row.items()
    ]


def _questions(report: Report) -> list[ReportedRow]:
    tests = p_values_of(report.tables["comparisons"], "a", "measure")
    measures = ("em", "f1", "sp_em", "sp_f1", "joint_em", "joint_f1")
    return [
        ReportedRow(
            group="",
            system=variant,
            label=variant_name(variant),
            checkpoint=checkpoint_in(report.parameters["encoders"], variant),
            scores=_with_dev(report, variant, measures, tests),
        )
        for variant in _systems(report)
    ]


def _tagging(report: Report) -> list[ReportedRow]:
    tests = p_values_of(report.tables["comparisons"], "a", "measure")
    return [
        ReportedRow(
            group="",
            system=name,
            label=system.label,
            checkpoint=report.parameters["small_encoder" if system.small else "encoder"],
            scores=_with_dev(report, name, ("precision", "recall", "f1"), tests),
        )
        for name, system in TAG_SYSTEMS.items()
        if f"{name}/test/f1" in report.scores
    ]


def _answers(report: Report) -> list[ReportedRow]:
    """Tested against pairwise; the other tests, of pre-training, stand in the report alone. A random order is
    a row of both rankings, as pairwise is, which ranks all."""
    rows = [row for row in report.tables["comparisons"] if row["b"] == "pairwise"]
    tests = p_values_of(rows, "a", "ranking", "measure")
    found = []
    for group in RANKINGS:
        for name in (*ANSWER_SYSTEMS, RANDOM_ORDER):
            how = group if f"{name}/{group}/test/map" in report.scores else "all"
            if f"{name}/{how}/test/map" not in report.scores:
                continue
            system = ANSWER_SYSTEMS.get(name)
            pretrained = system.head[:2] if system and system.pretrained else ""
            found.append(
                ReportedRow(
                    group=group,
                    system=system.published if system else name,
                    label=system.label if system else "random order",
                    checkpoint=_joint_checkpoint(pretrained, report.parameters) if system else "",
                    scores={
                        f"{before}{measure}": tested_score(
                            report.scores[f"{name}/{how}/{split}/{measure}"],
                            tests.get((name, how, measure)) if split == "test" else None,
                        )
                        for before, split in (("", "test"), (DEV, "dev"))
                        for measure in ("p_at_1", "map", "mrr")
                    },
                )
            )
    return found


def _joint_checkpoint(pretrained: str, parameters: Mapping[str, Any]) -> str:
    """`pretrained`: head of the pre-training with paragraphs, `ie` or `ae`; "" = the plain encoder."""
    if not pretrained:
        return parameters["encoder"]
    return f"{parameters['mspp']}/mspp-{pretrained}"


def _claims(report: Report) -> list[ReportedRow]:
    """Tested against pairwise reading, as the table of notebook 10 has it."""
    tests = {
        (row["a"], row["set"]): (row["p_holm"], CLAIM_SYSTEMS[row["b"]].paper)
        for row in report.tables["comparisons"]
        if CLAIM_SYSTEMS[row["b"]].pairwise
    }
    found = []
    for group in SHOWN_ORDER:
        for name in (MAJORITY, *CLAIM_SYSTEMS):
            score = report.scores.get(f"{name}/{group}/label_accuracy")
            if score is None:
                continue
            system = CLAIM_SYSTEMS.get(name)
            found.append(
                ReportedRow(
                    group=group,
                    system=(system.paper or name) if system else name,
                    label=system.label if system else f"always \u201c{score['label']}\u201d",
                    checkpoint=_joint_checkpoint(system.pretrained, report.parameters) if system else "",
                    scores={
                        "label_accuracy": tested_score(score, tests.get((name, group))),
                        f"{DEV}label_accuracy": score_of(report.scores[f"{name}/dev/label_accuracy"]),
                    },
                )
            )
    return found


def _attention(report: Report) -> list[ReportedRow]:
    """Tested against the next variant."""
    tests = p_values_of(report.tables["comparisons"], "a", "cell")
    of_variant: dict[str, dict[str, ReportedScore]] = {}
    for name, score in report.scores.items():
        variant, _, cell = name.partition("/")
        of_variant.setdefault(variant, {})[cell] = tested_score(score, tests.get((variant, cell)))
        if "chance" in score:
            of_variant[variant][f"chance/{cell}"] = ReportedScore(value=float(score["chance"]))
    return [
        ReportedRow(
            group="",
            system=variant,
            label=variant_name(variant),
            checkpoint=str(report.parameters[variant.replace("-", "_")]),
            scores=scores,
        )
        for variant, scores in of_variant.items()
    ]


READERS: Mapping[str, Callable[[Report], list[ReportedRow]]] = {
    PERPLEXITY: _perplexities,
    COREFERENCE: _coreference,
    MATCHING: _matching,
    ALIGNMENT: _alignment,
    QUESTIONS: _questions,
    TAGGING: _tagging,
    ANSWERS: _answers,
    CLAIMS: _claims,
    ATTENTION: _attention,
}
