"""Recorded results shown beside what runs."""

import json
from pathlib import Path

import pytest

from cdlm_lab.results import recorded
from cdlm_lab.results.recorded import recorded_table

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "data" / "results"
QUESTIONS = "storyworld_tiny/questions"


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


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_every_recorded_result_that_a_notebook_shows_is_there(path: Path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    named = {"recorded": recorded, "print": str, "display": str}
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and "recorded_" in source and "import" not in source:
            exec(source, dict(named))
