"""The reports of a folder, what is said of the rest, and the rows that they have for tables."""

import json
from pathlib import Path

import pytest
from small_reports import (
    RESULTS,
    answer_report,
    claim_report,
    matching_report,
    perplexity_report,
)

from cdlm_lab.parameters import ParameterError
from cdlm_lab.results.layouts import LAYOUTS
from cdlm_lab.results.reports import EXPERIMENTS, RECORDED, find_reports, report_rows
from cdlm_lab.runs.report import open_run, read_report
from cdlm_lab.views.tables import DEV, SystemRow

ODD = [{"system": "knitting", "split": "test", "metric": "f1", "value": 1}]
LOSSES = {"longformer": 1.5, "cdlm": 1.0}
MADE = "runs/shipped/variants"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    perplexity_report(tmp_path / "deep" / "er" / "a", LOSSES)
    matching_report(tmp_path / "b", {"bert-han": (0.5, 0.6)})
    open_run(tmp_path / "c", name="pretraining", parameters={}).write_report(scores=[])
    return tmp_path


def why(folder: Path, **more) -> dict[str, str]:
    return {one.name: one.why for one in find_reports(folder, **more).aside}


def test_reports_are_found_however_deep(runs: Path):
    found = find_reports(runs)
    assert [one.name for one in found.reports] == ["b", "deep/er/a"]
    assert [row.system for row in found.reports[1].rows] == ["longformer", "cdlm"]
    assert [one.name for one in found.others] == ["c"]
    assert why(runs) == {}


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
    assert [one.name for one in find_reports(results).reports] == ["x/perplexity.json"]
    assert why(results) == {}


def test_what_cannot_be_used_is_said(runs: Path):
    open_run(runs / "going", name="coreference", parameters={}).close()
    whole = json.loads((runs / "b" / "report.json").read_text())
    changes = {
        "old": {"format": 0},
        "half": {"data": {}},
        "other": {"name": "knitting"},
        "odd": {"scores": ODD},
    }
    texts = {name: json.dumps(whole | values) for name, values in changes.items()}
    for name, text in {"broken": "{", **texts}.items():
        (runs / name).mkdir()
        (runs / name / "report.json").write_text(text)
    reasons = why(runs)
    assert reasons["going"] == why(runs, leave_out="*")["going"] == "is not finished"
    assert reasons["broken"].startswith("cannot be read: not JSON")
    assert reasons["old"] == "cannot be read: format is 0, this version of cdlm_lab reads 2"
    assert reasons["half"] == "is not as its notebook writes it (KeyError('pairs'))"
    assert "other" not in reasons, "it fills no table"
    assert "is not as its notebook writes it" in reasons["odd"]
    assert [one.name for one in find_reports(runs).reports] == ["b", "deep/er/a"]
    assert "going" not in why(runs, own=runs / "going"), "the run that looks is not looked into"


def test_some_are_left_out_on_demand(runs: Path):
    assert why(runs, leave_out="deep/* c")["deep/er/a"] == "is left out, as leave_out says (deep/*)"
    assert [one.name for one in find_reports(runs, leave_out="deep/*").reports] == ["b"]
    with pytest.raises(ParameterError, match=r"leave_out names 'deap/\*', which no report in"):
        find_reports(runs, leave_out="b deap/*")
    with pytest.raises(ParameterError, match="which is no folder"):
        find_reports(runs / "none")


def test_recorded_results_and_own_runs_are_read_together(runs: Path, tmp_path: Path):
    found = find_reports(RECORDED, tmp_path, leave_out=f"{tmp_path}/deep/*")
    names = {one.name for one in found.reports}
    assert {f"{tmp_path}/b", "recorded/storyworld_tiny/perplexity"} <= {
        name.removesuffix(".json") for name in names
    }
    assert [one.why for one in found.aside if one.name == f"{tmp_path}/deep/er/a"] != []
    alone = find_reports(RECORDED, tmp_path / "none")
    assert [one.name for one in alone.aside if "no folder" in one.why] == [f"{tmp_path}/none"]
    assert len(alone.reports) == len(names) - 1


def of(name: str, group: str = "") -> tuple:
    report = read_report(RESULTS / name)
    return report, {row.system: row for row in report_rows(report) if row.group == group}


def test_every_experiment_of_tables_has_columns():
    assert EXPERIMENTS.keys() == LAYOUTS.keys()


@pytest.mark.parametrize(
    ("name", "system", "label", "checkpoint", "metric", "against"),
    [
        ("storyworld_tiny/perplexity", "cdlm", "CDLM", f"{MADE}-cdlm-s0/model", "perplexity", ""),
        ("storyworld_tiny/perplexity", "longformer", "Longformer", None, "perplexity", "local-cdlm"),
        ("scisumm_minilm/matching", "bert-han", "BERT-HAN", "minilm", "accuracy", "bert-avg"),
        ("scisumm_minilm/matching", "gru-han", "GRU-HAN", "", "f1", ""),
        ("scisumm_minilm/matching_longformer", "cdlm", "CDLM", "runs/news/cdlm", "f1", "longformer"),
        ("scisumm_minilm/alignment", "gru-han/cosine", "GRU-HAN, cosine", "", "mrr", "gru-han/attention"),
        ("scisumm_minilm/alignment", "random", "Random (exact)", "", "mrr", ""),
        ("storyworld_tiny/questions", "cdlm", "CDLM", "storyworld/cdlm", "sp_f1", "longformer"),
        ("jnlpba_minilm/tagging", "doc-arc", "Doc-ARC", "minilm", "f1", "bert-lstm"),
        ("ecb_plus_minilm/attention", "cdlm", "CDLM", None, "gap/event", ""),
        ("wikiqa_minilm/answers", "mspp-ie", "MSPP IE_k", None, "map", "pairwise"),
        ("wikiqa_minilm/answers", "random", "random order", "", "map", ""),
        ("fm2_minilm/verification", "mspp-ie-ie", None, None, "label_accuracy", "pairwise-sum"),
        ("fm2_minilm/verification", "majority", "always \u201csupported\u201d", "", "label_accuracy", ""),
    ],
)
def test_rows_of_recorded_reports(
    name: str, system: str, label: str | None, checkpoint: str | None, metric: str, against: str
):
    report = read_report(RESULTS / f"{name}.json")
    row = next(row for row in report_rows(report) if row.system == system)
    score = row.scores[metric]
    assert score in report.rows
    assert (score.against, score.p is None) == (against, not against)
    assert label in (None, row.label)
    assert checkpoint in (None, row.checkpoint)
    if f"{DEV}{metric}" in row.scores:
        assert row.scores[f"{DEV}{metric}"].split == "dev"


def test_coreference_has_p_in_the_row_of_the_other():
    report, rows = of("ecb_plus_minilm/event_documents.json", "event")
    assert list(rows) == ["this run", "ecb_event_sentences", "singletons", "one cluster", "same head word"]
    tests = {row["b"]: row["p_holm"] for row in report.tables["comparisons"]}
    for system, row in rows.items():
        assert row.scores["conll/f1"].p == tests.get(system)
        assert row.scores[f"{DEV}conll/f1"].p is None
    recall = rows["this run"].scores["muc/recall"]
    assert (recall.system, recall.split) == ("this run", "test")
    assert recall in report.rows


def groups(rows: list[SystemRow]) -> dict[str, dict[str, SystemRow]]:
    by_group: dict[str, dict[str, SystemRow]] = {}
    for row in rows:
        by_group.setdefault(row.group, {})[row.system] = row
    return by_group


def test_answers(tmp_path: Path):
    report = answer_report(tmp_path / "run")
    by_group = groups(report_rows(report))
    systems = ["pairwise", "joint-ie", "mspp-ie", "random"]
    assert {name: list(rows) for name, rows in by_group.items()} == {"all": systems, "reranked": systems}
    every, again = by_group["all"], by_group["reranked"]
    assert every["pairwise"].scores == again["pairwise"].scores, "it ranks all"
    (score,) = (row for row in report.rows if row.key == ("mspp-ie", "test", "reranked", "map", None))
    assert again["mspp-ie"].scores["map"].value == score.value
    tests = {(row["a"], row["b"]): row["p_holm"] for row in reversed(report.tables["comparisons"])}
    first = every["mspp-ie"].scores["p_at_1"]
    assert (first.p, first.against) == (tests["mspp-ie", "pairwise"], "pairwise")
    checkpoints = [every[name].checkpoint for name in ("mspp-ie", "joint-ie")]
    assert checkpoints == ["given/mspp-ie", "storyworld/longformer"]
    assert every["random"].scores["p_at_1"].low is None


def test_claims(tmp_path: Path):
    report = claim_report(tmp_path / "run")
    rows = groups(report_rows(report))["test"]
    assert list(rows) == ["majority", "claim-only", "pairwise-sum", "joint-ie"]
    assert rows["joint-ie"].label == "joint IE_1"
    score = rows["joint-ie"].scores["label_accuracy"]
    assert (score.value, score.against) == (1.0, "pairwise-sum")
    tests = [row["p_holm"] for row in report.tables["comparisons"] if row["b"] == "pairwise-sum"]
    assert score.p == tests[0]
