"""Every encoder on every task."""

from pathlib import Path

from small_reports import SHIPPED, answer_report, matching_report, perplexity_report

from cdlm_lab.results.reports import KnownRuns, find_reports
from cdlm_lab.results.tables import TaskColumn, encoder_table, task_columns


def columns(folder: Path) -> list[TaskColumn]:
    found = find_reports(folder)
    return task_columns(found, KnownRuns(found))


def test_a_row_is_an_encoder_and_a_column_a_task_on_a_corpus(tmp_path: Path):
    perplexity_report(tmp_path / "p", {"longformer": 1.5, "cdlm": 1.0}, checkpoints=SHIPPED)
    answer_report(tmp_path / "a")
    table = encoder_table(columns(tmp_path))
    assert [(column.name, column.below) for column in table.columns] == [
        ("encoder", ""),
        ("hidden words, storyworld", "perplexity"),
        ("answers, WikiQA", "MAP"),
    ]
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}
    assert list(rows) == ["storyworld/cdlm", "storyworld/longformer", "given/mspp-ie"]
    assert rows["storyworld/cdlm"] == ["2.72", "\u2013"]
    assert rows["given/mspp-ie"][0] == "\u2013"
    assert "answers, WikiQA: n = 4 questions, 12 candidates" in table.sources


def test_the_system_is_chosen_on_dev(tmp_path: Path):
    matching_report(tmp_path / "m", {"tf-idf": (1.0, 1.0), "bert-avg": (0.9, 0.2), "bert-han": (0.5, 0.8)})
    (column,) = columns(tmp_path)
    assert list(column.taken) == ["minilm"], "TF-IDF has no encoder"
    assert column.taken["minilm"].row.system == "bert-avg"
    (row,) = encoder_table([column]).rows
    assert row[1].text == "20.0"
    assert row[1].below.endswith("BERT-AVG")
    assert row[1].source == "m: mean of 2 trainings"


def test_a_column_is_of_one_test_set_that_of_most_encoders(tmp_path: Path):
    perplexity_report(tmp_path / "two", {"longformer": 1.5, "cdlm": 1.0}, checkpoints=SHIPPED)
    perplexity_report(tmp_path / "one", {"cdlm": 0.5}, checkpoints=SHIPPED, max_length=64)
    (column,) = columns(tmp_path)
    assert {encoder: one.sources[0].name for encoder, one in column.taken.items()} == {
        "storyworld/longformer": "two",
        "storyworld/cdlm": "two",
    }
    assert column.left == 1
    assert encoder_table([column]).sources[-1].endswith("1 numbers on other test items are not shown here")


def test_there_is_no_table_without_encoders(tmp_path: Path):
    assert columns(tmp_path) == []
    assert encoder_table([]) is None
