"""The answer to the question of each notebook, made from recorded runs and from the run's own report."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cdlm_lab.results.answer import HEADER, answered, header_answer, score_figure
from cdlm_lab.results.claims import claims_of
from cdlm_lab.runs.report import Report, read_report

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "data" / "results"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))


@pytest.fixture(scope="module")
def report() -> Report:
    return read_report(RESULTS / "storyworld_tiny" / "questions.json")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_header_of_each_notebook_has_the_answer_of_the_recorded_runs(path: Path):
    """Written by: python notebooks/grids/pages.py --headers notebooks"""
    header = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
    (found,) = HEADER.findall(header)
    assert found.partition("\n\n![")[0] == header_answer(path.name[:2])
    assert header.index("**Question") < header.index(found) < header.index("**Paper")


def test_a_run_answers_with_its_intervals_and_the_recorded_answer_stands_below(report: Report):
    own, *recorded = str(answered("06", report)).splitlines()
    assert own.startswith("This run. Pretraining on related documents helps to find the sentences")
    assert (
        "(support F1): holds (CDLM 64.2 [61.2, 67.1] against Longformer 33.1 [29.8, 36.5], p < 0.001)." in own
    )
    assert "undecided (CDLM 51.9" in recorded[0]
    assert recorded[1].startswith("Recorded.")
    assert "holds on storyworld (CDLM 64.2 against Longformer 33.1, p < 0.001)" in recorded[1]


def test_what_a_run_has_not_is_not_answered_and_what_is_not_tested_is_said_to_be(
    report: Report, tmp_path: Path
):
    without = replace(report, rows=[row for row in report.rows if row.system != "longformer"])
    text = str(answered("06", without, folder=tmp_path / "none"))
    assert text.splitlines() == [
        "This run compares none of the systems that the question is about.",
        "Recorded results are part of a clone of the project only.",
    ]
    assert ", not tested)" in str(answered("06", replace(report, tables={})))


def test_a_run_by_uncommitted_code_answers_for_itself_but_is_no_record(report: Report):
    dirty = replace(report, git_commit=f"{report.git_commit}-dirty")
    assert "This run. Pretraining on related documents helps" in str(answered("06", dirty))
    assert "(support F1): holds (" in str(answered("06", dirty))


def test_the_results_book_counts_the_verdicts():
    assert header_answer("12").startswith(f"**Answer.** Of {len(claims_of())} recorded comparisons")


def test_the_figure_has_all_systems_and_hollow_the_control():
    compared = read_report(RESULTS / "storyworld_tiny" / "questions_compared.json")
    figure = score_figure(replace(compared, parameters={}))
    ours, control = figure.data
    assert [round(value, 1) for value in ours.x] == [21.7, 40.1]
    assert (ours.marker.symbol, control.marker.symbol) == ("circle", "circle-open")
    assert control.name == "one document alone"
    assert list(figure.layout.yaxis.categoryarray) == ["CDLM", "Longformer"]  # from below
