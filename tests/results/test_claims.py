"""What recorded runs say of a claim."""

import csv
import json
import re
from pathlib import Path

import pytest
from small_reports import RESULTS, perplexity_report

from cdlm_lab.results import claims
from cdlm_lab.results.reports import MATCHING, fitted_to_train, is_cosine, report_rows
from cdlm_lab.runs.report import read_report

ROW = "x,low,news,perplexity,s0/report.json s1/report.json,cdlm,longformer,perplexity,,kind=perplexity,"


@pytest.fixture
def one_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for two reports, of which the only claim is that CDLM is below Longformer."""
    names = "table,claim,corpus,measure,file,better,other,metric,group,test,headline"
    (tmp_path / "claims.csv").write_text(f"{names}\n{ROW}\n")
    monkeypatch.setattr(claims, "CLAIMS_FILE", tmp_path / "claims.csv")
    monkeypatch.setattr(claims, "SURE", 0.5)  # four clusters cannot have less than an eighth
    return tmp_path


def measured(folder: Path) -> dict[str, str]:
    """Column -> text of the only claim."""
    shown = claims.claims_table(folder)
    (cells,) = shown.rows
    return {column.name: cell.text for column, cell in zip(shown.columns, cells, strict=True)}


@pytest.mark.parametrize(
    ("better", "other", "p", "lower", "expected"),
    [
        (0.6, 0.5, 0.01, False, "holds"),
        (0.5, 0.6, 0.01, False, "does not"),
        (0.6, 0.5, 0.05, False, "undecided"),
        (2.0, 3.0, 0.01, True, "holds"),
        (3.0, 2.0, 0.01, True, "does not"),
    ],
)
def test_verdicts(better: float, other: float, p: float, lower: bool, expected: str):
    assert claims.verdict(better, other, p, lower=lower) == expected


@pytest.mark.parametrize(("other", "expected"), [(1.5, "holds"), (0.5, "does not"), (None, "undecided")])
def test_a_claim_of_two_seeds_has_a_verdict_if_both_have_it(
    other: float | None, expected: str, one_claim: Path
):
    """Of each seed the loss of Longformer against 1 of CDLM; without `other` they do not agree."""
    losses = (1.5, 0.5) if other is None else (other, other)
    for seed, loss in enumerate(losses):
        perplexity_report(one_claim / f"s{seed}", {"longformer": loss, "cdlm": 1.0}, seed=seed)
    values = measured(one_claim)
    assert (values["seeds"], values["there it"]) == ("2", expected)
    assert values["file"] == "s0/report.json, report.json"


@pytest.mark.parametrize("unclean", [0, 1])
def test_a_run_made_with_uncommitted_changes_supports_no_verdict_and_is_marked(unclean: int, one_claim: Path):
    for seed in (0, 1):
        perplexity_report(one_claim / f"s{seed}", {"longformer": 1.5, "cdlm": 1.0}, seed=seed)
        file = one_claim / f"s{seed}" / "report.json"
        commit = "8d0f" + ("-dirty" if seed == unclean else "")
        file.write_text(json.dumps(json.loads(file.read_text()) | {"git_commit": commit}))
        labels = [row.label for row in report_rows(read_report(file))]
        assert [label.endswith(" \u2020") for label in labels] == [seed == unclean] * 2
    values = measured(one_claim)
    assert values["there it"] == "no verdict \u2020"
    assert values["ours"].endswith("\u2020") is (unclean == 0)  # the scores are those of the first


# ---- cosine baselines ----

SPLITS = ("dev", "test")
OF_TODAY = {  # reports whose cosine baselines are shown -> those beside which they are shown
    "scisumm_minilm/matching_cosine": "scisumm_minilm/matching",
    "scisumm_minilm/alignment_cosine": "scisumm_minilm/alignment",
    "scisumm_minilm/matching_cosine_two_sentences": "scisumm_minilm/matching_two_sentences",
    "scisumm_minilm/alignment_cosine_two_sentences": "scisumm_minilm/alignment_two_sentences",
    "storyworld_tiny/matching_cosine": "storyworld_tiny/matching",
    "storyworld_tiny/alignment_cosine": "storyworld_tiny/alignment",
    "storyworld_tiny/matching_cosine_random": "storyworld_tiny/matching_6000",
    "storyworld_tiny/alignment_cosine_random": "storyworld_tiny/alignment_6000",
}


@pytest.mark.parametrize(("of_today", "beside"), OF_TODAY.items())
def test_the_baselines_shown_were_measured_on_the_pairs_of_the_systems_beside_them(
    of_today: str, beside: str
):
    """In alignment the scores of random order tell the pairs: they depend on nothing else."""
    here, there = both = [read_report(RESULTS / f"{name}.json") for name in (of_today, beside)]
    if here.name == MATCHING:
        facts = [
            {(what, split): report.data[what][split] for what in ("pairs", "clusters") for split in SPLITS}
            for report in both
        ]
    else:
        order = [
            [row for row in one.rows if row.system == "random" and row.group == "oracle"] for one in both
        ]
        facts = [{row.metric: row.value for row in rows} for rows in order]
    assert facts[0] == pytest.approx(facts[1])
    assert facts[0]
    baselines = [{row.system for row in one.rows if is_cosine(row.system)} for one in both]
    assert baselines[0] == baselines[1]
    fitted = [{fitted_to_train(one, system) for system in baselines[0]} for one in both]
    assert fitted == [{False}, {True}]
    shown = {row.label for row in report_rows(there) if is_cosine(row.system)}
    assert shown
    assert all(" fitted to train" in label for label in shown)


def test_no_claim_and_no_shipped_model_is_compared_with_a_baseline_fitted_to_train():
    for table in (claims.CLAIMS_FILE, claims.SHIPPED_FILE):
        for row in csv.DictReader(table.read_text(encoding="utf-8").splitlines()):
            compared = [one for one in (row.get("better"), row["other"]) if one and is_cosine(one)]
            files = (row.get("other_file") or row["file"]).split() if compared else []
            for report in (read_report(RESULTS / file) for file in files):
                assert not [one for one in compared if fitted_to_train(report, one)], row["file"]
    shown = (RESULTS / "README.md").read_text(encoding="utf-8")
    tables = re.findall(r"<!-- table [\w-]+ begin -->.*?<!-- table [\w-]+ end -->", shown, re.DOTALL)
    assert tables
    assert not [table for table in tables if "fitted to train" in table]
