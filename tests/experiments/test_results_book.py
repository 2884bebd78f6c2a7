"""The book as notebook 12 makes it, of small reports and of the recorded ones."""

import json
from pathlib import Path

import pytest
from small_reports import matching_report, perplexity_report

from cdlm_lab.experiments.results_book import (
    PAPERS,
    TABLES_FILE,
    Book,
    aside_rows,
    book_markdown,
    encoders_html,
    found_rows,
    missing_rows,
    open_book,
    paper_html,
    tables_into,
    write_book,
)
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import open_run

RESULTS = Path(__file__).resolve().parents[2] / "data" / "results"


@pytest.fixture(scope="module")
def recorded() -> Book:
    return open_book(RESULTS)


def test_it_is_kept_with_the_reports_of_every_number(tmp_path: Path):
    perplexity_report(tmp_path / "runs" / "a", {"longformer": 1.5, "cdlm": 1.0})
    run = open_run(tmp_path / "runs" / "book", name="results book", parameters={})
    book = open_book(tmp_path / "runs", own=run.folder)
    assert [row[0] for row in found_rows(book)] == ["a"]
    assert aside_rows(book) == []
    report = write_book(run, book)
    score = report.scores["cdlm-1/storyworld/1/cdlm/perplexity"]
    assert score["value"] == pytest.approx(2.71828, abs=1e-4)
    assert score["low"] < score["value"] < score["high"]
    assert score["reports"] == ["a"]
    assert report.scores["encoder/hidden words/storyworld/storyworld/cdlm"]["reports"] == ["a"]
    assert {"table": "cdlm-1", "system": "rand-cdlm"} in report.tables["not run"]
    assert {"table": "cdlm-1", "system": "cdlm"} not in report.tables["not run"]
    text = (run.folder / TABLES_FILE).read_text(encoding="utf-8")
    assert "| CDLM | 2.72 [" in text
    assert "- From a\n" in text
    again = open_book(tmp_path / "runs")
    assert aside_rows(again) == [["book", "is an earlier results book"]]


def test_every_recorded_report_of_a_table_is_used_or_named(recorded: Book):
    text = book_markdown(recorded)
    aside = {one.name for one in recorded.found.aside}
    for one in recorded.found.reports:
        assert one.name in text, "as a source, or as passed over"
        assert one.name not in aside
    assert "news_clusters_minilm/base_masked_global_1024.json" in aside, "its models are misnamed"


def test_the_recorded_book_has_every_table(recorded: Book):
    text = book_markdown(recorded)
    for start in (
        "CDLM, Table 1",
        "CDLM, Table 6",
        "CDA, Table 2",
        "Doc-ARC, Table 5",
        "MSPP, Tables 3 and 8",
    ):
        assert f"\n## {start}" in f"\n{text}"
    assert text.index("## Doc-ARC, Table 5") < text.index("## MSPP, Table 1")
    assert "| Local CDLM | 100.6 [94.1, 107.6] (p < 0.001 to Rand CDLM) |" in text
    assert ("cda-3", "bert-han-finetuned") in missing_rows(recorded)
    html = "".join(paper_html(recorded, paper) for paper in PAPERS) + encoders_html(recorded)
    assert 'title="news_clusters_minilm/perplexity.json"' in html
    assert html.count("<table") == len(recorded.tables) + 2


def test_names_of_reports_are_text(tmp_path: Path):
    folder = tmp_path / "runs" / "<img src=x>|a"
    matching_report(folder, {"bert-han": (0.5, 0.6)})
    book = open_book(tmp_path / "runs")
    html = paper_html(book, "cda") + "".join(found_rows(book)[0])
    assert "<img" not in html
    assert r"- From \<img src=x>\|a" in book_markdown(book)


def test_wrong_names_stop_it(tmp_path: Path):
    perplexity_report(tmp_path / "a", {"cdlm": 1.0})
    for given in ({"choose": "b"}, {"leave_out": "b"}):
        with pytest.raises(ParameterError, match=f"{next(iter(given))} names 'b'"):
            open_book(tmp_path, **given)


def test_an_empty_folder_is_a_book_of_what_nobody_ran(tmp_path: Path):
    book = open_book(tmp_path)
    assert encoders_html(book) == "nothing was measured with any encoder"
    assert "nobody ran this" in paper_html(book, "cdlm")


def test_the_readme_is_written_from_the_recorded_runs_beside_it(tmp_path: Path):
    assert tables_into("") == "no README was written: readme is empty"
    folder = tmp_path / "data" / "results" / "storyworld_tiny"
    perplexity_report(tmp_path / "run", {"cdlm": 1.0})
    folder.mkdir(parents=True)
    values = json.loads((tmp_path / "run" / "report.json").read_text())
    (folder / "perplexity.json").write_text(json.dumps(values))
    readme = tmp_path / "README.md"
    marks = "<!-- table storyworld-perplexity {} -->"
    readme.write_text(f"{marks.format('begin')}\n{marks.format('end')}\n")
    assert tables_into(str(readme)) == f"{readme}: storyworld-perplexity written anew"
    assert tables_into(str(readme)) == f"{readme}: all tables are as they were"
