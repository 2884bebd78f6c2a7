"""The report of notebook 10 by hand: accuracies, intervals, tests and mistakes of verdicts that are written
down here."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.data.claims import LABELS, EvidencedClaim
from cdlm_lab.experiments import fact_verification
from cdlm_lab.experiments.fact_verification import Settings, VerificationRun
from cdlm_lab.experiments.systems.verifying import ClaimPredictions
from cdlm_lab.experiments.views.claims import shown_set
from cdlm_lab.models.precision import precision_told
from cdlm_lab.report import Report, open_run

GOLD = ("supported", "supported", "refuted", "refuted")
JUDGED = tuple(
    EvidencedClaim(id=f"c{n}", text=f"claim {n}", evidence=("e",), label=label, group=f"page {n // 2}")
    for n, label in enumerate(GOLD)
)
# What each training predicts of the four claims of test, + = supported.
PREDICTED = {
    ("claim-only", 0): "++++",
    ("claim-only", 1): "++++",
    ("pairwise-sum", 0): "++-+",
    ("pairwise-sum", 1): "+++-",
    ("joint-ie", 0): "++--",
    ("joint-ie", 1): "++--",
}


def run_of(
    folder: Path, *, corpus: str = "storyworld", **sets: tuple[EvidencedClaim, ...]
) -> VerificationRun:
    names = " ".join(dict.fromkeys(name for name, _ in PREDICTED))
    settings = Settings(run_folder=str(folder), systems=names, seeds=2, corpus=corpus)
    return VerificationRun(
        settings=settings,
        claims=dict.fromkeys(("train", "dev", "test"), JUDGED) | sets,
        opened=open_run(folder, name=VerificationRun.NAME, parameters={}),
    )


def report_of(run: VerificationRun) -> Report:
    rows = {"+": [0.75, 0.25], "-": [0.25, 0.75]}
    predictions = {
        key: {
            name: ClaimPredictions(
                claims=run.claims[name],
                labels=LABELS[:2],
                probabilities=np.array([rows[sign] for sign in signs]),
            )
            for name in run.held_out
        }
        for key, signs in PREDICTED.items()
    }
    return fact_verification.report(run, fact_verification.evaluate(run, predictions))


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return report_of(run_of(tmp_path_factory.mktemp("claims") / "run"))


def test_accuracy_over_seeds_with_its_interval_over_pages(by_hand: Report):
    scores = {row.system: row for row in by_hand.rows if row.split == "test" and row.seed is None}
    joint, pairwise, alone = (scores[name] for name in ("joint-ie", "pairwise-sum", "claim-only"))
    assert (joint.value, joint.low, joint.high, joint.deviation, joint.n, joint.clusters) == (
        1,
        1,
        1,
        0,
        4,
        2,
    )
    assert (pairwise.value, pairwise.deviation, pairwise.seeds) == (0.75, 0, 2)
    assert (pairwise.low, pairwise.high) == (0.5, 1), "of page 0 all are right, of page 1 half"
    assert (alone.value, alone.low, alone.high) == (0.5, 0, 1)
    majority = scores["majority"]
    assert (majority.value, majority.note, majority.deviation, majority.seeds) == (
        0.5,
        "supported",
        None,
        None,
    )
    each = {(row.system, row.split, row.seed): row.value for row in by_hand.rows if row.seed is not None}
    assert len(each) == 3 * 2 * 2
    assert each["pairwise-sum", "dev", 1] == 0.75


def test_systems_are_compared_page_by_page(by_hand: Report):
    rows = {(row["a"], row["b"]): row for row in by_hand.tables["comparisons"] if row["split"] == "test"}
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
    html = fact_verification.comparisons(by_hand).data
    for cell in ("on test", "joint IE_1", "pairwise, weighted sum", "+25.0 [0.0, 50.0]", "1.000", "\u2013"):
        assert f">{cell}<" in html


def test_mistakes_are_counted_and_shared_out_over_the_seeds(by_hand: Report):
    (row,) = [
        row
        for row in by_hand.tables["confusion"]
        if (row["system"], row["seed"], row["split"], row["gold"]) == ("pairwise-sum", 1, "test", "refuted")
    ]
    assert row["predicted"] == {"supported": 1, "refuted": 1}
    rows = fact_verification.mistakes(by_hand).data.split("<tr")[2:]
    cells = [[cell.partition(">")[2].partition("</td")[0] for cell in row.split("<td")[1:]] for row in rows]
    assert cells[2:4] == [
        ["pairwise, weighted sum", "supported", "2", "<b>100.0</b>", "0.0"],
        ["pairwise, weighted sum", "refuted", "2", "50.0", "<b>50.0</b>"],
    ]
    assert len(cells) == 6


def test_rows_of_the_tables(by_hand: Report):
    test, dev = (table.html() for table in fact_verification.score_tables(by_hand))
    rows = [row for row in test.split("<tr")[2:] if "<td" in row]
    labels = ("always \u201csupported\u201d", "claim only", "pairwise, weighted sum", "joint IE_1")
    for row, label, share in zip(rows, labels, ("50.0", "50.0", "75.0", "100.0"), strict=True):
        assert label in row
        assert share in row
    assert ["(p = 1.000" in row for row in rows] == [False, False, False, True], "against pairwise reading"
    assert "[50.0, 100.0]" in rows[2]
    assert "80.01" in test, "the paper's pairwise reading with a weighted sum, on dev"
    assert "storyworld, dev" in dev


def test_a_set_without_labels_is_not_scored_and_one_in_part_by_what_is_known(tmp_path: Path):
    blank = tuple(replace(claim, label=None) for claim in JUDGED)
    report = report_of(run_of(tmp_path / "run", test=blank, symmetric=(blank[0], *JUDGED[1:])))
    assert report.data["scored"] == {"dev": 4, "symmetric": 3}
    assert report.data["precision"] == precision_told("auto")
    assert report.data["claims"] == {"train": 4, "dev": 4, "test": 4, "symmetric": 4}
    assert {row.split for row in report.rows} == {"dev", "symmetric"}
    score = report.scores["pairwise-sum/symmetric/label_accuracy"]
    assert score["value"] == pytest.approx(2 / 3)
    assert shown_set(report) == "dev"
    first = fact_verification.score_tables(report)[0]
    assert first.caption.startswith("Claims verified: storyworld, FeverSymmetric")
    assert {row["split"] for row in report.tables["comparisons"]} == {"dev", "symmetric"}


def test_files_are_named_by_their_checksums(tmp_path: Path, by_hand: Report):
    for split in ("train", "dev", "test"):
        line = {"id": split, "claim": "c", "evidence": [], "label": "REFUTES"}
        (tmp_path / f"bert_{split}.json").write_text(json.dumps(line) + "\n", encoding="utf-8")
    checksums = report_of(run_of(tmp_path / "run", corpus=str(tmp_path))).data["checksums"]
    assert list(checksums) == ["train", "dev", "test"]
    assert [len(checksum) for checksum in {*checksums.values()}] == [64, 64, 64]
    assert by_hand.data["checksums"] == {}
