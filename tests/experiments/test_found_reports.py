"""What is found in a folder, and what is said of the rest."""

import json
from pathlib import Path

import pytest
from small_reports import matching_report, perplexity_report, pretraining_report

from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import open_run
from cdlm_lab.results.reports import find_reports

LOSSES = {"longformer": 1.5, "cdlm": 1.0}


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    perplexity_report(tmp_path / "deep" / "er" / "a", LOSSES)
    matching_report(tmp_path / "b", {"bert-han": (0.5, 0.6)})
    pretraining_report(tmp_path / "c", variant="cdlm")
    return tmp_path


def why(folder: Path, **more) -> dict[str, str]:
    return {one.name: one.why for one in find_reports(folder, **more).aside}


def test_reports_are_found_however_deep(runs: Path):
    found = find_reports(runs)
    assert [one.name for one in found.reports] == ["b", "deep/er/a"]
    assert [row.system for row in found.reports[1].rows] == ["longformer", "cdlm"]
    assert [one.name for one in found.others] == ["c"]
    assert why(runs) == {"c": "says what its model was trained with; notebook 02 measures it"}


def test_what_a_grid_put_aside_fills_no_table(runs: Path):
    (runs / "b").rename(runs / "b.old-20261122-090400")
    matching_report(runs / "b", {"bert-han": (0.5, 0.7)})
    assert [one.name for one in find_reports(runs).reports] == ["b", "deep/er/a"]
    assert why(runs)["b.old-20261122-090400"] == "was put aside; another run has its place"


def test_recorded_reports_may_be_called_anything(runs: Path, tmp_path_factory: pytest.TempPathFactory):
    results = tmp_path_factory.mktemp("results")
    (results / "x").mkdir()
    (results / "x" / "perplexity.json").write_bytes((runs / "deep/er/a/report.json").read_bytes())
    (results / "benchmark.json").write_text('{"machine": "2 CPU threads"}')
    (results / "list.json").write_text("[]")
    found = find_reports(results)
    assert [one.name for one in found.reports] == ["x/perplexity.json"]
    assert why(results) == {"2 other JSON files": "are no reports of runs"}


def test_what_cannot_be_used_is_said(runs: Path):
    open_run(runs / "going", name="coreference", parameters={}).close()
    for name in ("broken", "old", "half", "other", "odd"):
        (runs / name).mkdir()
    whole = json.loads((runs / "b" / "report.json").read_text())
    (runs / "broken" / "report.json").write_text("{")
    (runs / "old" / "report.json").write_text(json.dumps(whole | {"format": 0}))
    (runs / "half" / "report.json").write_text(json.dumps(whole | {"tables": {}}))
    (runs / "other" / "report.json").write_text(json.dumps(whole | {"name": "knitting"}))
    (runs / "odd" / "report.json").write_text(json.dumps(whole | {"scores": {"no slash": {"value": 1}}}))
    told = why(runs)
    assert told["going"] == "is not finished"
    assert told["broken"].startswith("cannot be read: 1: not JSON")
    assert told["old"] == "cannot be read: format is 0, this version of cdlm_lab reads 1"
    assert told["half"] == "is not as its notebook writes it (KeyError('comparisons'))"
    assert told["other"] == "is of 'knitting', which fills no table"
    assert "is not as its notebook writes it" in told["odd"]
    assert [one.name for one in find_reports(runs).reports] == ["b", "deep/er/a"]


def test_some_are_left_out_on_demand(runs: Path):
    assert why(runs, leave_out="deep/* c")["deep/er/a"] == "is left out, as leave_out says (deep/*)"
    assert [one.name for one in find_reports(runs, leave_out="deep/*").reports] == ["b"]
    with pytest.raises(ParameterError, match=r"leave_out names 'deap/\*', which no report in"):
        find_reports(runs, leave_out="b deap/*")


def test_the_run_that_looks_is_not_looked_into(runs: Path):
    open_run(runs / "book", name="results book", parameters={}).close()
    assert why(runs)["book"] == "is not finished"
    assert "book" not in why(runs, own=runs / "book")


def test_a_folder_that_is_not_there(tmp_path: Path):
    with pytest.raises(ParameterError, match="which is no folder"):
        find_reports(tmp_path / "none")
