"""Tables of the papers filled from small reports, and every encoder on every task."""

from pathlib import Path

import pytest
from small_reports import RESULTS, SHIPPED, answer_report, claim_report, matching_report, perplexity_report

from cdlm_lab.results.reports import find_reports
from cdlm_lab.results.series import rows_of_reports
from cdlm_lab.results.tables import (
    PAPER_TABLES,
    FilledTable,
    TaskColumn,
    encoder_table,
    fill_table,
    task_columns,
    top_words,
)
from cdlm_lab.views.tables import ScoreTable

TABLES = {paper.name: paper for paper in PAPER_TABLES}


def filled(folder: Path, name: str) -> list[FilledTable]:
    return fill_table(TABLES[name], rows_of_reports(find_reports(folder).reports))


def columns(folder: Path) -> list[TaskColumn]:
    return task_columns(rows_of_reports(find_reports(folder).reports))


def recorded(folder: Path, file: str) -> None:
    (folder / "recorded.json").write_bytes((RESULTS / file).read_bytes())


def texts(table: ScoreTable) -> dict[str, list[str]]:
    return {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}


def test_ours_stand_beside_theirs_and_what_was_not_run_is_marked(tmp_path: Path):
    perplexity_report(tmp_path / "a", {"longformer": 1.5, "cdlm": 1.0})
    (one,) = filled(tmp_path, "cdlm-1")
    rows = texts(one.table)
    assert list(rows) == ["Longformer", "Local CDLM", "Rand CDLM", "Prefix CDLM", "CDLM"]
    assert rows["CDLM"] == ["2.72", "1", "3.23 / 3.39"]
    assert rows["Rand CDLM"] == ["not run", "not run", "3.68 / 3.81"]
    assert one.table.rows[2][1].missing
    assert one.table.rows[4][1].source == "a"
    assert (
        one.table.caption == "CDLM, Table 1: perplexity \u00b7 storyworld, n = 8 clusters, 80 masked tokens"
    )
    assert one.table.sources == ["From a"]
    assert set(one.rows) == {"longformer", "cdlm"}


def test_what_was_not_taken_is_named_and_each_setting_has_a_table_that_says_what_is_different(tmp_path: Path):
    for name in ("old", "new"):
        perplexity_report(tmp_path / name, {"cdlm": 1.0})
    (one,) = filled(tmp_path, "cdlm-1")
    assert one.table.sources == ["From new", "Not taken, another has it: old (CDLM)"]
    perplexity_report(tmp_path / "b", {"cdlm": 1.0}, max_length=64)
    first_lines = [one.table.sources[0] for one in filled(tmp_path, "cdlm-1")]
    assert first_lines == ["With max_length 512", "With max_length 64"]


def test_a_table_that_was_not_run_has_the_papers_numbers(tmp_path: Path):
    (one,) = filled(tmp_path, "cda-3")
    assert (one.corpus, one.rows) == ("", {})
    assert one.table.caption.endswith("not run yet")
    assert texts(one.table)["BERT-HAN + SHALLOW, fine-tuned"][-1] == "82.0 / 82.1"
    assert filled(tmp_path, "mspp-3-8-symmetric") == [], "no paper has it"


def test_baselines_stand_in_a_table_but_do_not_make_one(tmp_path: Path):
    matching_report(tmp_path / "a", {"tf-idf": (0.5, 0.7), "cdlm": (0.5, 0.6)})
    (one,) = filled(tmp_path, "cdlm-4")
    assert texts(one.table)["TF-IDF cosine"][:2] == ["70.0", "70.0"]
    assert texts(one.table)["CDLM"] == ["60.0", "60.0", "2", "88.8", "95.3", "96.5", "82.9"]
    (none,) = filled(tmp_path, "cda-2")
    assert none.rows == {}


@pytest.mark.parametrize(
    ("name", "row", "first", "last"),
    [
        ("mspp-1", "MSPP IE_k", "87.5", "91.7 (2.2) / 91.1 (0.5) / 95.2 (1.3)"),
        ("mspp-2-7", "joint IE_k", "12.5", "57.6 (4.8) / 73.7 / 74.6"),
        ("mspp-3-8-test", "joint IE_1", "100.0", "79.25 / 73.56"),
        ("mspp-3-8-test", "GEAR", "", "70.69 / 71.60"),
        ("mspp-3-8-dev", "claim only", "50.0", ""),
    ],
)
def test_joint_reading(name: str, row: str, first: str, last: str, tmp_path: Path):
    answer_report(tmp_path / "answers")
    claim_report(tmp_path / "claims")
    (one,) = filled(tmp_path, name)
    cells = texts(one.table)[row]
    assert (cells[0], cells[-1]) == (first, last)


def test_the_recorded_coreference_is_in_both_tables(tmp_path: Path):
    recorded(tmp_path, "ecb_plus_minilm/event_documents.json")
    (table_2,), (table_3,) = filled(tmp_path, "cdlm-2-event"), filled(tmp_path, "cdlm-3")
    rows = texts(table_2.table)
    ours = "Longformer, whole documents"
    assert rows[ours][0] == "84.7 / 80.6 / 82.6"
    assert rows[ours][4] == "75.4"
    assert rows["CDLM, whole documents"][0] == "not run"
    assert rows["paper: CDLM, whole documents"][4] == "85.6"
    barhom = "78.1 / 84.0 / 80.9, 76.8 / 86.1 / 81.2, 79.6 / 73.3 / 76.3, 64.6 / 72.3 / 68.3, 79.5"
    assert rows["paper: Barhom et al. (2019)"][:5] == barhom.split(", ")
    assert texts(table_3.table)[ours][0] == "75.4", "the variant that its model comes from"
    below = {row[0].text: row[5].test for row in table_2.table.rows}
    assert below["same head word"] == f"(p = 1.000 to {ours})"


def test_the_papers_alignments_stand_beside_what_is_scored_as_they_are(tmp_path: Path):
    recorded(tmp_path, "scisumm_minilm/alignment.json")
    (released,) = filled(tmp_path, "cda-4-5-released")
    rows = texts(released.table)
    assert rows["Random (exact)"][0] == "0.356"
    assert rows["Random (exact)"][-2:] == ["0.3611 / 46.0 / 39.3 / 28.8", "0.4215 / 44.2 / 43.3"]
    assert rows["GRU-HAN + DEEP, attention"][0] == "0.459"
    for setting in ("joint", "oracle"):
        (one,) = filled(tmp_path, f"cda-4-5-{setting}")
        assert not any(cell.published for row in one.table.rows for cell in row)


def test_words_of_the_highest_tf_idf(tmp_path: Path):
    recorded(tmp_path, "jnlpba_minilm/tagging.json")
    rows = texts(top_words(find_reports(tmp_path).reports))
    assert rows["JNLPBA"][0].startswith("BAP/TFII-I (protein/DNA), ")
    assert rows["paper: JNLPBA"] == ["Akt-1 (Protein), Plasmin (Protein), Siah-1 (Protein)"]


def test_a_row_is_an_encoder_and_a_column_a_task_on_a_corpus(tmp_path: Path):
    """Each encoder has its own newest number: one of another encoder replaces none."""
    perplexity_report(tmp_path / "p", {"longformer": 1.5, "cdlm": 1.0}, checkpoints=SHIPPED)
    perplexity_report(tmp_path / "q", {"cdlm": 0.9}, checkpoints={"cdlm": "mine/cdlm"})
    answer_report(tmp_path / "a")
    table = encoder_table(columns(tmp_path))
    assert [(column.name, column.below) for column in table.columns] == [
        ("encoder", ""),
        ("hidden words, storyworld", "perplexity"),
        ("answers, WikiQA", "MAP"),
    ]
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}
    assert list(rows) == ["storyworld/cdlm", "storyworld/longformer", "given/mspp-ie", "mine/cdlm"]
    assert (rows["storyworld/cdlm"], rows["mine/cdlm"][0]) == (["2.72", "\u2013"], "2.46")
    assert rows["given/mspp-ie"][0] == "\u2013"
    assert "answers, WikiQA: n = 4 questions, 12 candidates" in table.sources


def test_the_system_is_chosen_on_dev(tmp_path: Path):
    matching_report(tmp_path / "m", {"tf-idf": (1.0, 1.0), "bert-avg": (0.9, 0.2), "bert-han": (0.5, 0.8)})
    matching_report(tmp_path / "later, of fewer pairs", {"bert-avg": (0.6, 0.9)}, train_pairs=5)
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


def test_a_run_that_leaves_out_labels_is_not_measured_on_the_corpus(tmp_path: Path):
    for name, given in {"all": {"labels": "all"}, "two": {"labels": "no yes"}}.items():
        claim_report(tmp_path / name, **given)
    taken = {one.heading: one.taken["minilm"] for one in columns(tmp_path)}
    names = {heading: one.sources[0].name for heading, one in taken.items()}
    assert names == {"claims, FM2": "all", "claims, FM2, no and yes alone": "two"}


def test_there_is_no_table_without_encoders(tmp_path: Path):
    assert columns(tmp_path) == []
    assert encoder_table([]) is None
