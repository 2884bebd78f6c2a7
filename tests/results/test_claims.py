"""What recorded runs say of a claim."""

from pathlib import Path

import pytest
from small_reports import perplexity_report

from cdlm_lab.results import claims


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
    other: float | None, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Of each seed the loss of Longformer against 1 of CDLM; without `other` they do not agree."""
    losses = (1.5, 0.5) if other is None else (other, other)
    for seed, loss in enumerate(losses):
        perplexity_report(tmp_path / f"s{seed}", {"longformer": loss, "cdlm": 1.0}, seed=seed)
    row = "x,low,news,perplexity,s0/report.json s1/report.json,cdlm,longformer,perplexity,,kind=perplexity,"
    (tmp_path / "claims.csv").write_text(
        f"table,claim,corpus,measure,file,better,other,metric,group,test,headline\n{row}\n"
    )
    monkeypatch.setattr(claims, "CLAIMS_FILE", tmp_path / "claims.csv")
    monkeypatch.setattr(claims, "SURE", 0.5)  # four clusters cannot have less than an eighth
    shown = claims.claims_table(tmp_path)
    (cells,) = shown.rows
    values = {column.name: cell.text for column, cell in zip(shown.columns, cells, strict=True)}
    assert (values["seeds"], values["there it"]) == ("2", expected)
    assert values["file"] == "s0/report.json, report.json"
