"""What recorded runs say of a claim."""

import json
from pathlib import Path

import pytest
from claim_tables import claims_table
from small_reports import perplexity_report

from cdlm_lab.results import claims
from cdlm_lab.results.claims_figure import claims_figure
from cdlm_lab.results.reports import report_rows
from cdlm_lab.runs.report import read_report

ROW = "x,low,news,perplexity,s0/report.json s1/report.json,cdlm,longformer,perplexity,,kind=perplexity,"


@pytest.fixture
def one_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for two reports, of which the only claim is that CDLM is below Longformer."""
    names = "table,claim,corpus,measure,file,better,other,metric,group,test,fault"
    (tmp_path / "claims.csv").write_text(f"{names}\n{ROW}\n")
    monkeypatch.setattr(claims, "CLAIMS_FILE", tmp_path / "claims.csv")
    return tmp_path


def measured(folder: Path) -> dict[str, str]:
    """Column -> text of the only claim."""
    shown = claims_table(folder)
    (cells,) = shown.rows
    return {column.name: cell.text for column, cell in zip(shown.columns, cells, strict=True)}


@pytest.mark.parametrize(
    ("other", "expected"), [(1.5, "holds \u2021"), (0.5, "does not \u2021"), (None, "undecided \u2021")]
)
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


def test_a_claim_that_could_not_have_been_shown_is_too_small_to_tell(one_claim: Path):
    """The paper has 0.6% between CDLM and Prefix CDLM; these two seeds are a factor of e apart."""
    row = "Global masked tokens help (CDLM below Prefix)".join(
        ROW.replace("cdlm,longformer", "cdlm,prefix-cdlm").split("low")
    )
    file = one_claim / "claims.csv"
    file.write_text(file.read_text().replace(ROW, row.replace("x,", '"CDLM, 1",', 1)))
    for seed, loss in enumerate((1.5, 0.5)):
        perplexity_report(one_claim / f"s{seed}", {"prefix-cdlm": loss, "cdlm": 1.0}, seed=seed)
    values = measured(one_claim)
    assert values["there it"] == "too small to tell \u2021"
    assert float(values["could show"]) > float(values["paper"]) == 0.6


def test_the_overview_and_the_figure_say_the_same_of_a_claim(one_claim: Path):
    file = one_claim / "claims.csv"
    file.write_text(file.read_text().replace("\nx,", '\n"CDLM, 1",'))
    for seed in (0, 1):
        perplexity_report(one_claim / f"s{seed}", {"longformer": 1.5, "cdlm": 1.0}, seed=seed)
    shown = claims.verdicts_table(one_claim, "cdlm")
    assert [column.name for column in shown.columns] == ["table", "claim", "holds"]
    assert [[cell.text for cell in row] for row in shown.rows] == [["1", "low", "news"]]
    verdict, effect = claims.effect_of(one_claim, claims.claims_of()[0])
    assert (verdict, round(effect, 4)) == ("holds", 39.3469), "percent: 1 - exp(-0.5)"
    figure = claims_figure(one_claim)
    (trace,) = figure.data
    assert (trace.name, list(trace.x), list(trace.y)) == ("holds", [1.0], [0])
    assert trace.marker.size == (19,), "an effect above 20 is drawn as one of 20"


@pytest.mark.parametrize(("unclean", "mark"), [(0, "\u2020"), (1, "\u2020"), (2, "\u00a7")])
def test_what_nobody_can_make_again_or_has_a_fault_has_no_verdict(unclean: int, mark: str, one_claim: Path):
    if unclean == 2:  # neither of the two runs
        (one_claim / "claims.csv").write_text((one_claim / "claims.csv").read_text().rstrip() + "a fault")
    for seed in (0, 1):
        perplexity_report(one_claim / f"s{seed}", {"longformer": 1.5, "cdlm": 1.0}, seed=seed)
        file = one_claim / f"s{seed}" / "report.json"
        commit = "8d0f" + ("-dirty" if seed == unclean else "")
        file.write_text(json.dumps(json.loads(file.read_text()) | {"git_commit": commit}))
        assert [row.label[-1] == "\u2020" for row in report_rows(read_report(file))] == [seed == unclean] * 2
    values = measured(one_claim)
    assert values["there it"] == f"no verdict {mark}"
    assert values["ours"].endswith("\u2020") is (unclean == 0)  # the scores are those of the first
