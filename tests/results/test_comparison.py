"""Runs side by side: curves, parameters, scores, and the examples behind these."""

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
    assert (runs[0].when, runs[3].when) == ("not finished", "2026-01-01 00:00")


@pytest.mark.parametrize(("names", "expected"), [("", [2, 1, 0]), ("old new", [0, 1]), ("run* old", [3, 0])])
def test_runs_are_chosen_by_name(runs: list[comparison.ComparedRun], names: str, expected: list[int]):
    assert [run.name for run in comparison.chosen_runs(runs, names)] == [NAMES[n] for n in expected]


def test_a_name_that_no_run_has_is_refused(runs: list[comparison.ComparedRun]):
    with pytest.raises(ParameterError, match="compare names 'ol', which no run is called; there are running"):
        comparison.chosen_runs(runs, "ol")
    assert comparison.chosen_runs([], "") == []


def test_curves_lie_over_one_another(runs: list[comparison.ComparedRun]):
    figure = comparison.curves_figure(runs)
    training, validation = figure.data[0::2], figure.data[1::2]
    assert [trace.name for trace in training][-1] == "old: CDLM, seed 0"
    assert "<script" not in training[1].name
    assert training[0].y[0] == 3
    assert [trace.y[0] for trace in validation] == [3.5, 2.5, 1.5, 0.5]
    assert comparison.curves_figure([]) is None


def test_only_parameters_that_differ_are_shown(runs: list[comparison.ComparedRun]):
    table = comparison.parameter_table(runs[1:])
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}
    assert rows == {"corpus": [HOSTILE, HOSTILE, "storyworld"], "learning_rate": ["0.2", "0.1", "0.001"]}
    assert "script" not in tags_of(table.html())
    assert comparison.parameter_table(runs[3:]).rows[0][0].text == "none"


def test_scores_stand_below_each_other_and_open_what_is_behind(runs: list[comparison.ComparedRun], folder):
    (scores,) = comparison.score_comparisons(runs)
    assert [row[0].text for row in scores.table.rows][-2:] == ["Longformer, old", "CDLM, old"]
    assert [run.name for run, _ in scores.behind] == [NAMES[2]] * 2 + ["new"] * 2 + ["old"] * 2
    shown = comparison.compared(find_reports(folder), "old new", folder / "none")
    table = shown.seen.children[-1]
    assert table.html.count('data-open="0"') > 3
    table.opened = 3
    table.clicks += 1
    title, line = shown.examples.children
    assert "CDLM, test: the examples of new" in title.value
    assert "cannot be opened" in line.value
    shown.list.value = [NAMES[2]]
    assert shown.examples.children == ()
    html, text = (shown._repr_mimebundle_()[f"text/{kind}"] for kind in ("html", "plain"))
    assert ("script" in tags_of(html), "script" in tags_of(shown.seen.children[-1].html)) == (False, False)
    assert "parameters that differ" not in text, "of one run"


def test_what_is_not_kept_is_said_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    parts = {"experiment": "multihop question answering", "system": "cdlm", "split": "test"}
    line = examples_of(tmp_path, parameters={"corpus": f"{tmp_path}/{HOSTILE}"}, **parts)
    assert "cannot be opened" in line.value
    assert "<script>" not in line.value
    run = SimpleNamespace(trainings=[SimpleNamespace(key=("other", 0))])
    monkeypatch.setattr("cdlm_lab.tasks.multihop.experiment.MultihopRun.read", lambda given: run)
    assert "trained no cdlm" in examples_of(tmp_path, parameters={}, **parts).value
