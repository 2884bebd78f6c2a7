"""Recorded results shown beside what runs, and the sentence with which a report answers a question."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cdlm_lab.results import recorded
from cdlm_lab.results.answer import answer
from cdlm_lab.results.recorded import recorded_answer, recorded_table
from cdlm_lab.runs.report import Report, read_report

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "data" / "results"
QUESTIONS = "storyworld_tiny/questions"


@pytest.fixture(scope="module")
def report() -> Report:
    return read_report(RESULTS / f"{QUESTIONS}.json")


def test_a_recorded_table_says_that_it_is_where_it_is_from_and_of_what():
    table = recorded_table(QUESTIONS, shown=["train_stories", "encoders"])
    assert table.caption.startswith(
        'recorded: storyworld, test, train_stories = 1200, encoders = "storyworld"'
    )
    assert table.caption.endswith("n = 300 questions in 120 clusters")
    assert table.sources == [
        f"Recorded in data/results/{QUESTIONS}.json; not tested against the rows of this run."
    ]
    assert not any(column.published for column in table.columns), "the papers' numbers stand elsewhere"
    text = table.text()
    assert "p < 0.001 to Longformer" in text
    assert "seeds" in text
    assert "33.3 [29.2, 37.4]" in text


def test_rows_are_chosen_and_named():
    table = recorded_table(
        "storyworld_tiny/coreference", group="event", systems={"this run": "CDLM, documents"}
    )
    assert [row[0].text for row in table.rows] == ["CDLM, documents"]


def test_what_was_made_by_uncommitted_code_is_marked(tmp_path: Path):
    made = json.loads((RESULTS / f"{QUESTIONS}.json").read_text())
    (tmp_path / "x.json").write_text(json.dumps(made | {"git_commit": f"{made['git_commit']}-dirty"}))
    table = recorded_table("x", folder=tmp_path)
    assert [row[0].text for row in table.rows] == ["Longformer \u2020", "CDLM \u2020"]
    assert table.note.endswith("\u2020: made by a program with uncommitted changes.")


def test_without_recorded_results_a_line_says_so(tmp_path: Path):
    line = "Recorded results (data/results/x.json) are part of a clone of the project only."
    assert line in recorded_table("x", folder=tmp_path).data
    assert recorded_answer("x", "a", "b", "f1", folder=tmp_path) == line


def test_the_answer_has_both_scores_their_difference_and_what_the_test_says(report: Report):
    said = answer(report, "cdlm", "longformer", "joint_f1", name="joint F1")
    assert said == (
        "On test (300 questions in 120 clusters), joint F1 in per cent: CDLM has 33.3 [29.2, 37.4] and "
        "Longformer has 18.0 [14.8, 21.4]; the first is 15.2 points higher, p < 0.001: more than chance."
    )
    assert "2.4 points lower, p = 0.521: this may be chance." in answer(report, "cdlm", "longformer", "f1")
    assert recorded_answer(QUESTIONS, "cdlm", "longformer", "f1").startswith(
        f"Recorded on storyworld (data/results/{QUESTIONS}.json). On test"
    )


def test_a_test_of_the_reports_table_counts_too_and_equal_scores_are_said_to_be_equal(report: Report):
    """A row names one test only; others stand in the table of comparisons."""
    tagging = read_report(RESULTS / "storyworld_tiny" / "tagging.json")
    told = answer(tagging, "doc-arc", "bert-lstm", "f1", name="span F1")
    assert told.endswith("the first is 1.7 points higher, p = 0.070: this may be chance.")
    rows = [replace(row, value=0.5, low=0.4, high=0.6) for row in report.rows]
    assert "; they are equal, p " in answer(replace(report, rows=rows), "cdlm", "longformer", "f1")


def test_no_test_and_no_system_are_said_to_be_missing(report: Report):
    assert answer(report, "longformer", "cdlm", "joint_f1").endswith(
        "; the two are not tested against each other, so look at the intervals."
    )
    without = replace(report, rows=[row for row in report.rows if row.system != "longformer"])
    assert (
        answer(without, "cdlm", "longformer", "joint_f1")
        == "This run cannot say it: it has no longformer on test."
    )


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_every_recorded_result_that_a_notebook_shows_is_there(path: Path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    named = {"recorded": recorded, "print": str, "display": str}
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and "recorded_" in source and "import" not in source:
            own = "\n".join(line for line in source.split("\n") if not line.startswith("print(answer("))
            exec(own, dict(named))
