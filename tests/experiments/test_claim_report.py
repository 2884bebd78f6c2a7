"""The report of notebook 10 by hand: accuracies, intervals, tests and mistakes of verdicts that are written
down here."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.data.claims import EvidencedClaim
from cdlm_lab.experiments.fact_verification import (
    ClaimCorpus,
    ClaimPredictions,
    VerificationRun,
    VerificationSettings,
    VerifierSettings,
    comparison_rows,
    confusion_rows,
    score_tables,
    shown_set,
    verification_rows,
    write_claim_report,
)
from cdlm_lab.experiments.runs import FineTuning
from cdlm_lab.models.precision import precision_told
from cdlm_lab.report import Report, open_run

LABELS = ("supported", "refuted")
GOLD = ("supported", "supported", "refuted", "refuted")
CLAIMS = tuple(
    EvidencedClaim(id=f"c{n}", text=f"claim {n}", evidence=("e",), label=label, group=f"page {n // 2}")
    for n, label in enumerate(GOLD)
)
# What each training says of the four claims of test, + = supported.
SAID = {
    ("claim-only", 0): "++++",
    ("claim-only", 1): "++++",
    ("pairwise-sum", 0): "++-+",
    ("pairwise-sum", 1): "+++-",
    ("joint-ie", 0): "++--",
    ("joint-ie", 1): "++--",
}


def said(signs: str, claims: tuple[EvidencedClaim, ...] = CLAIMS) -> ClaimPredictions:
    rows = [[0.75, 0.25] if sign == "+" else [0.25, 0.75] for sign in signs]
    return ClaimPredictions(claims=claims, labels=LABELS, probabilities=np.array(rows))


def run_of(folder: Path, **sets: tuple[EvidencedClaim, ...]) -> VerificationRun:
    names = " ".join(dict.fromkeys(name for name, _ in SAID))
    settings = VerificationSettings(verifiers=VerifierSettings(systems=names), training=FineTuning(seeds=2))
    claims = dict.fromkeys(("train", "dev", "test"), CLAIMS) | sets
    return VerificationRun(settings=settings, claims=claims, folder=folder)


def report_of(run: VerificationRun) -> Report:
    found = {
        key: {name: said(signs, run.claims[name]) for name in run.held_out} for key, signs in SAID.items()
    }
    return write_claim_report(run, open_run(run.folder, name="x", parameters={}), found)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return report_of(run_of(tmp_path_factory.mktemp("claims") / "run"))


def test_accuracy_over_seeds_with_its_interval_over_pages(report: Report):
    joint, pairwise, alone = (
        report.scores[f"{name}/test/label_accuracy"] for name in ("joint-ie", "pairwise-sum", "claim-only")
    )
    assert (joint["value"], joint["low"], joint["high"], joint["deviation"]) == (1, 1, 1, 0)
    assert (pairwise["value"], pairwise["deviation"], pairwise["seeds"]) == (0.75, 0, 2)
    assert (pairwise["low"], pairwise["high"]) == (0.5, 1), "of page 0 all are right, of page 1 half"
    assert (alone["value"], alone["low"], alone["high"]) == (0.5, 0, 1)
    runs = {(row["system"], row["set"], row["seed"]): row["label_accuracy"] for row in report.tables["runs"]}
    assert len(runs) == 3 * 2 * 2
    assert runs["pairwise-sum", "dev", 1] == 0.75


def test_most_frequent_training_label(report: Report):
    score = report.scores["majority/test/label_accuracy"]
    assert (score["value"], score["label"], score["deviation"]) == (0.5, "supported", None)


def test_systems_are_compared_page_by_page(report: Report):
    rows = {(row["a"], row["b"]): row for row in report.tables["comparisons"] if row["set"] == "test"}
    assert list(rows) == [
        ("pairwise-sum", "claim-only"),
        ("joint-ie", "claim-only"),
        ("joint-ie", "pairwise-sum"),
    ]
    row = rows["joint-ie", "pairwise-sum"]
    assert (row["difference"], row["low"], row["high"], row["clusters"]) == (0.25, 0, 0.5, 2)
    assert row["p_holm"] == row["p"] == 1, "of two pages one differs: either sign is as likely"
    both = [rows[name, "claim-only"] for name in ("pairwise-sum", "joint-ie")]
    assert [one["p_holm"] for one in both] == [min(1, 2 * one["p"]) for one in both]
    assert row["p_seeds"] is None, "neither differs from seed to seed"
    assert comparison_rows(report, "test")[2] == [
        "joint IE_1",
        "pairwise, weighted sum",
        "+25.0 [0.0, 50.0]",
        "1.000",
        "\u2013",
    ]


def test_mistakes_are_counted_and_shared_out_over_the_seeds(report: Report):
    (row,) = [
        row
        for row in report.tables["confusion"]
        if (row["system"], row["seed"], row["set"], row["gold"]) == ("pairwise-sum", 1, "test", "refuted")
    ]
    assert row["predicted"] == {"supported": 1, "refuted": 1}
    rows = confusion_rows(report, "test")
    assert rows[2:4] == [
        ["pairwise, weighted sum", "supported", "2", "<b>100.0</b>", "0.0"],
        ["pairwise, weighted sum", "refuted", "2", "50.0", "<b>50.0</b>"],
    ]
    assert len(rows) == 6


def test_rows_of_the_table(report: Report):
    rows = verification_rows(report, "test")
    assert [row.label for row in rows] == [
        "always \u201csupported\u201d",
        "claim only",
        "pairwise, weighted sum",
        "joint IE_1",
    ]
    assert [row.seeds for row in rows] == [None, 2, 2, 2]
    assert [row.accuracy.p for row in rows] == [None, None, None, 1], "against pairwise reading"
    assert rows[2].accuracy.interval == (0.5, 1)
    html = score_tables(report)
    assert html.index("storyworld, test") < html.index("storyworld, dev")
    assert "80.01" in html, "the paper's pairwise reading with a weighted sum, on dev"


def test_a_set_without_labels_is_not_scored_and_one_in_part_by_what_is_known(tmp_path: Path):
    blank = tuple(replace(claim, label=None) for claim in CLAIMS)
    report = report_of(run_of(tmp_path / "run", test=blank, symmetric=(blank[0], *CLAIMS[1:])))
    assert report.data["scored"] == {"dev": 4, "symmetric": 3}
    assert report.data["precision"] == precision_told("auto")
    assert report.data["claims"] == {"train": 4, "dev": 4, "test": 4, "symmetric": 4}
    assert not [name for name in report.scores if "/test/" in name]
    score = report.scores["pairwise-sum/symmetric/label_accuracy"]
    assert score["value"] == pytest.approx(2 / 3)
    assert shown_set(report) == "dev"
    assert "storyworld, FeverSymmetric" in score_tables(report)
    assert {row["set"] for row in report.tables["comparisons"]} == {"dev", "symmetric"}


def test_files_are_named_by_their_checksums(tmp_path: Path):
    for split in ("train", "dev", "test"):
        line = {"id": split, "claim": "c", "evidence": [], "label": "REFUTES"}
        (tmp_path / f"bert_{split}.json").write_text(json.dumps(line) + "\n", encoding="utf-8")
    run = run_of(tmp_path / "run")
    corpus = ClaimCorpus(corpus=str(tmp_path))
    found = report_of(replace(run, settings=replace(run.settings, corpus=corpus))).data["checksums"]
    assert list(found) == ["train", "dev", "test"]
    assert len({*found.values()}) == 3
    assert all(len(checksum) == 64 for checksum in found.values())
    assert report_of(run_of(tmp_path / "other")).data["checksums"] == {}
