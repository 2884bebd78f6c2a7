"""The table of each experiment, of its recorded report."""

from pathlib import Path

import pytest

from cdlm_lab.report import read_report
from cdlm_lab.widgets.score_tables import LAYOUTS, pairs_in_words, score_table
from cdlm_lab.widgets.tables import Cell

RESULTS = Path(__file__).resolve().parents[2] / "data" / "results"
# Report, group, a row, the heading of a column and what stands there, and the caption.
SHOWN = [
    (
        "storyworld_tiny/perplexity",
        "",
        "CDLM",
        "perplexity",
        "2.27",
        "n = 400 clusters, 30,103 masked tokens",
    ),
    (
        "ecb_plus_minilm/event_sentences",
        "event",
        "same head word",
        "CoNLL F1",
        "77.9",
        "n = 10 topics, 93,942 pairs",
    ),
    (
        "scisumm_minilm/matching",
        "",
        "gru-han-deep",
        "AAN",
        "75.1 / 75.2",
        "n = 766 pairs, 214 clusters of them",
    ),
    (
        "scisumm_minilm/alignment",
        "released",
        "random",
        "S2ORC",
        "0.3611 / 46.0 / 39.3 / 28.8",
        "n = 383 pairs, 214",
    ),
    (
        "storyworld_tiny/questions",
        "",
        "CDLM",
        "support F1",
        "64.2",
        "n = 300 questions, 120 clusters of them",
    ),
    ("jnlpba_minilm/tagging", "", "doc-arc", "JNLPBA", "71.17 (0.49)", "n = 60 documents of 601,637 words"),
    (
        "wikiqa_minilm/answers",
        "reranked",
        "joint-ie",
        "WikiQA",
        "24.6 (3.1) / 49.3 / 49.7",
        "n = 237 questions, 2,341",
    ),
    ("fm2_minilm/verification", "", "mspp-ie-ie", "FEVER", "81.21 (0.24) / 74.39", "n = 1,380 claims,"),
    ("ecb_plus_minilm/attention", "", "CDLM", "ECB+", "72.1 / 70.3 / 58.0 / 55.7", "n = 1,000 pairs of each"),
]


def test_every_layout_is_tried():
    assert {read_report(RESULTS / f"{one[0]}.json").name for one in SHOWN} == LAYOUTS.keys()


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: shown[0])
def test_ours_stand_beside_theirs(shown: tuple[str, ...]):
    file, group, system, heading, text, caption = shown
    table = score_table(read_report(RESULTS / f"{file}.json"), group=group, caption="Mine")
    column = [one.name for one in table.columns].index(heading)
    (row,) = (row for row in table.rows if row[0].text == system)
    assert row[column].text == text
    assert table.caption.startswith(f"Mine, {caption}")
    assert "Brackets: 95% interval." in table.note or group == "released"


def test_systems_have_labels_and_an_order():
    report = read_report(RESULTS / "scisumm_minilm" / "matching.json")
    table = score_table(report, labels={"gru-han": "GRU", "bert-han": "BERT", "mine": "not measured"})
    assert [row[0] for row in table.rows] == [Cell(text="GRU"), Cell(text="BERT")]
    assert table.caption.startswith("n = 766 pairs")


def test_beside_dev_there_are_no_numbers_of_papers():
    report = read_report(RESULTS / "fm2_minilm" / "verification.json")
    table = score_table(report, split="dev")
    assert [column.name for column in table.columns] == ["system", "label accuracy", "seeds"]
    assert table.caption == "n = 205 claims, 41 groups of them"


def test_a_group_that_was_not_measured():
    with pytest.raises(ValueError, match="there is no row to show"):
        score_table(read_report(RESULTS / "scisumm_minilm" / "matching.json"), group="else")


@pytest.mark.parametrize(
    ("counts", "words"),
    [([1000, 1000], "1,000 pairs"), ([990, 1000], "990\u20131,000 pairs"), ([1], "1 pair"), ([], "no pairs")],
)
def test_numbers_of_pairs(counts: list[int], words: str):
    assert pairs_in_words(counts) == words
