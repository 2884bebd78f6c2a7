"""Runs side by side: losses, scores with parameters, and the examples behind these."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from shown_reads import HOSTILE, tags_of
from small_reports import recorded_run, write_history

from cdlm_lab.parameters import ParameterError
from cdlm_lab.results import comparison
from cdlm_lab.results.examples import examples_of
from cdlm_lab.results.reports import find_reports

NAMES = ("old", "new", f"evil{HOSTILE}".replace("/", ""), "running")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three finished runs and one that is not; the second and the third differ in two parameters."""
    top = tmp_path_factory.mktemp("runs")
    for number, name in enumerate(NAMES):
        records = [{"step": step, "loss": 3 / step, "total_steps": 20} for step in range(1, 21)]
        records += [{"step": 20, "eval_loss": 0.5 + number, "eval_perplexity": 2.0}]
        changed = {"learning_rate": number / 10, "corpus": HOSTILE} if number else {}
        recorded_run(top / name, records, finished=f"2026-01-0{number + 1}T00:00:00+00:00", **changed)
        write_history(top / name / "small", [{"step": 1, "loss": 1.0}])
    running = top / "running" / "report.json"
    values = json.loads(running.read_text())
    session = {"started": "2026-01-01T00:00:00+00:00", "seconds": None}
    run = {"name": values["name"], "parameters": values["parameters"], "sessions": [session]}
    running.with_name("run.json").write_text(json.dumps(run))
    running.unlink()
    return top


@pytest.fixture
def runs(folder: Path) -> list[comparison.ComparedRun]:
    return comparison.runs_in(find_reports(folder))


def test_runs_are_listed_the_newest_first_with_their_curves(runs: list[comparison.ComparedRun]):
    assert [run.name for run in runs] == ["running", NAMES[2], "new", "old"]
    assert [list(run.curves) for run in runs] == [["cdlm-0"]] * 4, "a training for show is none of them"
    assert [run.report is None for run in runs] == [True, False, False, False]


@pytest.mark.parametrize(("names", "expected"), [("", [2, 1, 0]), ("old new", [0, 1]), ("run* old", [3, 0])])
def test_runs_are_chosen_by_name(runs: list[comparison.ComparedRun], names: str, expected: list[int]):
    assert [run.name for run in comparison.chosen_runs(runs, names)] == [NAMES[n] for n in expected]


def test_a_name_that_no_run_has_is_refused(runs: list[comparison.ComparedRun]):
    with pytest.raises(ParameterError, match="compare names 'ol', which no run is called; there are running"):
        comparison.chosen_runs(runs, "ol")
    assert comparison.chosen_runs([], "") == []


def test_losses_of_all_runs_are_in_one_figure(runs: list[comparison.ComparedRun]):
    figure = comparison.curves_figure(runs)
    lines = {(trace.name, trace.line.dash): trace.y[0] for trace in figure.data}
    assert lines["old: CDLM, seed 0, training", "solid"] == 3
    assert [value for (_, dash), value in lines.items() if dash != "solid"] == [3.5, 2.5, 1.5, 0.5]
    assert not any("<script" in name for name, _ in lines)
    assert comparison.curves_figure([]) is None


def test_scores_and_parameters_that_differ_are_one_table_that_opens_what_is_behind(
    runs: list[comparison.ComparedRun], folder: Path
):
    scores = comparison.compared_scores(runs)
    assert [run.name for run, _ in scores.behind] == [NAMES[2]] * 2 + ["new"] * 2 + ["old"] * 2
    assert scores.table.rows[-1][0].text == "CDLM, old (corpus storyworld, learning_rate 0.001)"
    assert comparison.compared_scores(runs[3:]).table.rows[0][0].text == "Longformer, old", "of one run none"
    shown = comparison.compared(find_reports(folder), "old new", folder / "none")
    assert shown.table.html.count('data-open="0"') > 3
    shown.table.opened = 3
    shown.table.clicks += 1
    title, line = shown.examples.children
    assert title.value.count("the examples of new")
    assert "cannot be opened" in line.value
    html = shown._repr_mimebundle_()["text/html"]
    assert ("script" in tags_of(html), "script" in tags_of(shown.table.html)) == (False, False)
    assert comparison.compared_scores([]) is None


def test_what_is_not_kept_is_said_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    parts = {"experiment": "multihop question answering", "system": "cdlm", "split": "test"}
    line = examples_of(tmp_path, parameters={"corpus": f"{tmp_path}/{HOSTILE}"}, **parts)
    assert "cannot be opened" in line.value
    assert "<script>" not in line.value
    run = SimpleNamespace(trainings=[SimpleNamespace(key=("other", 0))])
    monkeypatch.setattr("cdlm_lab.tasks.multihop.experiment.MultihopRun.read", lambda given: run)
    assert "trained no cdlm" in examples_of(tmp_path, parameters={}, **parts).value
