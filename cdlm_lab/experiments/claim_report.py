"""After a run of notebook 10: label accuracy, tests between systems, and what is mistaken for what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from cdlm_lab.data.claim_files import checksum_of
from cdlm_lab.data.claims import EvidencedClaim
from cdlm_lab.experiments.claim_corpora import label_counts, majority_label
from cdlm_lab.experiments.claim_predictions import ClaimPredictions
from cdlm_lab.experiments.claim_systems import CLAIM_SYSTEMS, ClaimSystem, compared_pairs
from cdlm_lab.experiments.fact_verification import Found, VerificationRun
from cdlm_lab.experiments.seed_scores import compare_means, mean_score
from cdlm_lab.experiments.seed_t_test import t_test_of_seeds
from cdlm_lab.metrics.significance import holm
from cdlm_lab.report import Report, Run
from cdlm_lab.training.config import precision_told
from cdlm_lab.widgets.markup import escaped
from cdlm_lab.widgets.matching_table import p_in_words
from cdlm_lab.widgets.measured_score import MeasuredScore
from cdlm_lab.widgets.verification_table import VerificationRow, verification_table_html

MAJORITY = "majority"
MEASURE = "label_accuracy"
SHOWN_ORDER = ("test", "symmetric", "dev")
SET_NAMES = {"symmetric": "FeverSymmetric"}


def write_claim_report(run: VerificationRun, opened: Run, found: Found) -> Report:
    """Label accuracy of all systems on every set that has labels, and of the most frequent training label;
    the tests between systems, and how often each label is taken for each."""
    scored = {name: known for name in run.held_out if len(known := _known(run.claims[name]))}
    right = _right(run, found, scored)
    groups = {name: [run.claims[name][number].group for number in known] for name, known in scored.items()}
    best = majority_label(run.claims)
    scores = {
        f"{system}/{name}/{MEASURE}": mean_score(seeds, groups[name], seed=0)
        for (system, name), seeds in right.items()
    }
    for name, known in scored.items():
        values = np.array([run.claims[name][number].label == best for number in known], dtype=float)
        score = mean_score([values], groups[name], seed=0)
        scores[f"{MAJORITY}/{name}/{MEASURE}"] = score | {"seeds": None, "label": best}
    return opened.write_report(
        scores=scores,
        data={
            "corpus": run.settings.corpus.corpus,
            "precision": precision_told(run.settings.training.precision),
            "checksums": _checksums(run),
            "claims": {name: len(claims) for name, claims in run.claims.items()},
            "scored": {name: len(known) for name, known in scored.items()},
            "groups": {name: len(set(of_set)) for name, of_set in groups.items()},
            "labels": {name: label_counts(claims, run.labels) for name, claims in run.claims.items()},
        },
        tables={
            "comparisons": [row for name in scored for row in _comparisons(run, right, groups, name)],
            "confusion": [
                row for key, of_set in found.items() for row in _confusion(run, key, of_set, scored)
            ],
            "runs": [
                {"system": system, "set": name, "seed": seed, MEASURE: float(values.mean())}
                for (system, name), seeds in right.items()
                for seed, values in enumerate(seeds)
            ],
        },
    )


def score_tables(report: Report) -> str:
    """A table of label accuracy for each set that is scored, as HTML."""
    corpus = Path(report.data["corpus"]).name
    return "".join(
        verification_table_html(
            verification_rows(report, name),
            claims=report.data["scored"][name],
            corpus=f"{corpus}, {SET_NAMES.get(name, name)}",
        )
        for name in SHOWN_ORDER
        if name in report.data["scored"]
    )


def verification_rows(report: Report, name: str) -> list[VerificationRow]:
    """A row for each system of a report on a set: first the most frequent label, then in the order of the
    paper's tables. p is that against pairwise reading, corrected for the systems tested so."""
    first = VerificationRow(
        label=f"always \u201c{report.scores[f'{MAJORITY}/{name}/{MEASURE}']['label']}\u201d",
        system=MAJORITY,
        accuracy=_measured(report.scores[f"{MAJORITY}/{name}/{MEASURE}"]),
        seeds=None,
    )
    p = {
        row["a"]: row["p_holm"]
        for row in report.tables["comparisons"]
        if row["set"] == name and CLAIM_SYSTEMS[row["b"]].pairwise
    }
    rows = []
    for system in CLAIM_SYSTEMS.values():
        if score := report.scores.get(f"{system.name}/{name}/{MEASURE}"):
            accuracy = _measured(score, p=p.get(system.name))
            rows.append(
                VerificationRow(
                    label=system.label, system=system.paper, accuracy=accuracy, seeds=score["seeds"]
                )
            )
    return [first, *rows]


def comparison_rows(report: Report, name: str) -> list[list[str]]:
    """The tests of a report on a set as rows of a table, cells of HTML: both systems, the difference with its
    interval, p corrected, p of the t-test over seeds."""
    return [
        [
            escaped(CLAIM_SYSTEMS[row["a"]].label),
            escaped(CLAIM_SYSTEMS[row["b"]].label),
            f"{100 * row['difference']:+.1f} [{100 * row['low']:.1f}, {100 * row['high']:.1f}]",
            *(p_in_words(row[key]) for key in ("p_holm", "p_seeds")),
        ]
        for row in report.tables["comparisons"]
        if row["set"] == name
    ]


def confusion_rows(report: Report, name: str) -> list[list[str]]:
    """Of each system and gold label, how many claims there are and which share of them is given each label,
    as cells of HTML; with several seeds their mean."""
    return [
        [
            escaped(CLAIM_SYSTEMS[row["system"]].label),
            escaped(row["gold"]),
            f"{row['claims']:,}",
            *(_share_html(share, right=label == row["gold"]) for label, share in row["predicted"].items()),
        ]
        for row in _mean_confusion(report, name)
    ]


def shown_set(report: Report) -> str:
    """The set whose tests and mistakes are shown: test, if it has labels, else dev."""
    return "test" if "test" in report.data["scored"] else "dev"


def _known(claims: Sequence[EvidencedClaim]) -> np.ndarray:
    """Numbers of the claims whose label is known."""
    return np.array([number for number, claim in enumerate(claims) if claim.label is not None], dtype=int)


def _right(
    run: VerificationRun, found: Found, scored: Mapping[str, np.ndarray]
) -> dict[tuple[str, str], list[np.ndarray]]:
    """(system, set) -> with each seed (claims,) of 1 and 0."""
    return {
        (system.name, name): [
            found[system.name, seed][name].right[known].astype(float)
            for seed in range(run.settings.training.seeds)
        ]
        for system in run.systems
        for name, known in scored.items()
    }


def _comparisons(
    run: VerificationRun,
    right: Mapping[tuple[str, str], list[np.ndarray]],
    groups: Mapping[str, Sequence[str]],
    name: str,
) -> list[dict[str, Any]]:
    """`compared_pairs` on a set, groups being what is drawn. `p_holm`: corrected for the systems tested
    against the same kind of other; `p_seeds`: of `t_test_of_seeds`."""
    families: dict[str, list[dict[str, Any]]] = {}
    for a, b in compared_pairs(run.systems):
        sides = [right[system.name, name] for system in (a, b)]
        compared = compare_means(*sides, groups[name], seed=0)
        p_seeds = t_test_of_seeds(*([float(values.mean()) for values in side] for side in sides))
        row = {"a": a.name, "b": b.name, "set": name, "measure": MEASURE, **asdict(compared)}
        families.setdefault(_family(b), []).append(row | {"p_seeds": p_seeds})
    rows = []
    for family in families.values():
        corrected = holm([row["p_permutation"] for row in family])
        rows += [{**row, "p_holm": p} for row, p in zip(family, corrected, strict=True)]
    return rows


def _family(b: ClaimSystem) -> str:
    if not b.reads_evidence:
        return "claim only"
    return "pairwise" if b.pairwise else "plain"


def _confusion(
    run: VerificationRun,
    key: tuple[str, int],
    of_set: Mapping[str, ClaimPredictions],
    scored: Mapping[str, np.ndarray],
) -> list[dict[str, Any]]:
    """How often each label is taken for each, with one seed."""
    rows = []
    for name in scored:
        pairs = [
            (claim.label, label)
            for claim, label in zip(of_set[name].claims, of_set[name].predicted, strict=True)
        ]
        for gold in run.labels:
            counts = {label: pairs.count((gold, label)) for label in run.labels}
            if any(counts.values()):
                rows.append(
                    {"system": key[0], "seed": key[1], "set": name, "gold": gold, "predicted": counts}
                )
    return rows


def _mean_confusion(report: Report, name: str) -> list[dict[str, Any]]:
    """Shares of the labels over the seeds, for each system and gold label in the order of the tables."""
    rows = [row for row in report.tables["confusion"] if row["set"] == name]
    found = []
    for system in CLAIM_SYSTEMS:
        for gold in dict.fromkeys(row["gold"] for row in rows):
            same = [row["predicted"] for row in rows if (row["system"], row["gold"]) == (system, gold)]
            if same:
                claims = sum(same[0].values())
                shares = {label: sum(one[label] for one in same) / (claims * len(same)) for label in same[0]}
                found.append({"system": system, "gold": gold, "claims": claims, "predicted": shares})
    return found


def _checksums(run: VerificationRun) -> dict[str, str]:
    """Of the files; storyworld, which is made, has none."""
    corpus = run.settings.corpus.corpus
    return {} if corpus == "storyworld" else {name: checksum_of(corpus, name) for name in run.claims}


def _measured(score: Mapping[str, Any], *, p: float | None = None) -> MeasuredScore:
    interval = score["low"], score["high"]
    return MeasuredScore(value=score["value"], interval=interval, deviation=score["deviation"], p=p)


def _share_html(share: float, *, right: bool) -> str:
    text = f"{100 * share:.1f}"
    return f"<b>{text}</b>" if right else text
