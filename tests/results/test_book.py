"""The book as notebook 12 makes it, of small reports and of the recorded ones."""

import json
from pathlib import Path
from typing import Any

import pytest
from small_reports import RESULTS, matching_report, perplexity_report

from cdlm_lab.parameters import ParameterError
from cdlm_lab.results.book import (
    PAPERS,
    TABLES_FILE,
    Book,
    aside_table,
    book_markdown,
    damage_in_words,
    encoders_view,
    missing_rows,
    open_book,
    paper_view,
    report_table,
    write_book,
)
from cdlm_lab.runs.report import open_run


@pytest.fixture(scope="module")
def recorded() -> Book:
    return open_book(str(RESULTS))


def test_it_is_kept_with_the_reports_of_every_number(tmp_path: Path):
    perplexity_report(tmp_path / "runs" / "a", {"longformer": 1.5, "cdlm": 1.0})
    run = open_run(tmp_path / "runs" / "book", name="results book", parameters={})
    book = open_book(str(tmp_path / "runs"), own=run.folder)
    assert report_table(book).data.count("<tr") == 2, "a heading and a report"
    assert aside_table(book).data.count("<tr") == 1
    report = write_book(run, book)
    scores = {(row.group, row.system): row for row in report.rows}
    score = scores["cdlm-1/storyworld/1", "cdlm"]
    assert score.value == pytest.approx(2.71828, abs=1e-4)
    assert score.low < score.value < score.high
    assert (score.metric, score.note) == ("perplexity", "a")
    assert scores["encoder/hidden words/storyworld", "storyworld/cdlm"].note == "a"
    assert {"table": "cdlm-1", "system": "rand-cdlm"} in report.tables["not run"]
    assert {"table": "cdlm-1", "system": "cdlm"} not in report.tables["not run"]
    text = (run.folder / TABLES_FILE).read_text(encoding="utf-8")
    assert "| CDLM | 2.72 [" in text
    assert "- From a\n" in text


def test_every_recorded_report_of_a_table_is_used_or_named(recorded: Book):
    text = book_markdown(recorded)
    assert damage_in_words(recorded) == "no report is damaged"
    aside = {one.name for one in recorded.reports.aside}
    for one in recorded.reports.reports:
        assert one.name in text, "as a source, or as passed over"
        assert one.name not in aside
        assert all(row.scores for row in one.rows)
    assert "news_clusters_minilm/base_masked_global_1024.json" in aside, "its models are misnamed"
    assert "storyworld_tiny/matching_cosine.json" in aside, "TF-IDF alone is a row of no table"


def test_the_recorded_book_has_every_table(recorded: Book):
    text = book_markdown(recorded)
    starts = ("CDLM, Table 1", "CDLM, Table 6", "CDA, Table 2", "Doc-ARC, Table 5", "MSPP, Tables 3 and 8")
    for start in starts:
        assert f"\n## {start}" in f"\n{text}"
    assert text.index("## Doc-ARC, Table 5") < text.index("## MSPP, Table 1")
    assert "| Local CDLM | 18.89 ± 0.25 (p = 0.918 to Rand CDLM) |" in text
    assert ("cda-3", "bert-han-finetuned") in missing_rows(recorded)
    html = "".join(paper_view(recorded, paper).data for paper in PAPERS) + encoders_view(recorded).data
    assert 'title="news_clusters_minilm_4096_full/perplexity.json"' in html
    assert html.count("<table") == len(recorded.tables) + 2


def test_names_of_reports_are_text(tmp_path: Path):
    folder = tmp_path / "runs" / "<img src=x>|a"
    matching_report(folder, {"bert-han": (0.5, 0.6)})
    book = open_book(str(tmp_path / "runs"))
    html = paper_view(book, "cda").data + report_table(book).data
    assert "<img" not in html
    assert r"- From \<img src=x>\|a" in book_markdown(book)


def test_wrong_names_stop_it(tmp_path: Path):
    perplexity_report(tmp_path / "a", {"cdlm": 1.0})
    for given in ({"choose": "b"}, {"leave_out": "b"}):
        with pytest.raises(ParameterError, match=f"{next(iter(given))} names 'b'"):
            open_book(str(tmp_path), **given)


def test_an_empty_folder_is_a_book_of_what_was_not_run(tmp_path: Path):
    book = open_book(str(tmp_path))
    assert encoders_view(book).data == "nothing was measured with any encoder"
    shown = paper_view(book, "cdlm")
    assert "not run yet" in shown.data
    assert '<details style="margin:6px 0"><summary>' in shown.data, "folded"
    assert "without a run: CDLM, Table 1" in repr(shown), "a log shows text"


# What `read_report` refuses, tests/runs has.
DAMAGE: list[tuple[str, dict[str, Any], str]] = [
    ("storyworld_tiny/perplexity", {"scores": 3}, "cannot be read: scores: Input should be a valid array"),
    ("storyworld_tiny/questions", {"data": {}}, "is not as its notebook writes it (KeyErr"),
    ("storyworld_tiny/perplexity", {"identity": {"encoders": {"cdlm": {"seed": "x"}}}}, "is not as its no"),
    ("jnlpba_minilm/tagging", {"tables": {"top": [{"x": 1}]}}, "is not as its notebook writes it (KeyErr"),
]


@pytest.mark.parametrize(("file", "changed", "why"), DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_report_is_named_and_left_out(file: str, changed: dict[str, Any], why: str, tmp_path: Path):
    perplexity_report(tmp_path / "good", {"longformer": 1.5, "cdlm": 1.0})
    values = json.loads((RESULTS / f"{file}.json").read_text()) | changed
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "report.json").write_text(json.dumps(values))
    book = open_book(str(tmp_path))
    assert [one.name for one in book.reports.reports] == ["good"]
    (left,) = book.reports.aside
    assert (left.name, left.why[: len(why)]) == ("bad", why)
    assert len(left.why) < 300
    assert damage_in_words(book) == "1 damaged report left out: bad"
    assert "\n" not in left.why
