"""A README whose tables are made from the recorded runs beside it."""

import json
from pathlib import Path

import pytest
from small_reports import answer_report, claim_report, perplexity_report

from cdlm_lab.report import RunError
from cdlm_lab.results.readme import TABLES, main, stale_tables, write_readme

MARKED = (
    "# Title\n\n<!-- table storyworld-perplexity begin -->\n<!-- table storyworld-perplexity end -->\n\nEnd."
)


def record(report_folder: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_bytes((report_folder / "report.json").read_bytes())


@pytest.fixture
def readme(tmp_path: Path) -> Path:
    perplexity_report(tmp_path / "run", {"longformer": 1.5, "cdlm": 1.0})
    record(tmp_path / "run", tmp_path / "data" / "results" / "storyworld_tiny" / "perplexity.json")
    file = tmp_path / "README.md"
    file.write_text(MARKED, encoding="utf-8")
    return file


def test_a_stale_table_is_told_with_the_command_and_mended(readme: Path, capsys: pytest.CaptureFixture):
    (told,) = stale_tables(readme)
    assert "README.md:3: table storyworld-perplexity" in told
    assert f"cdlm_lab.results.readme {readme}" in told
    assert main([str(readme), "--check"]) == 1
    assert readme.read_text(encoding="utf-8") == MARKED
    assert main([str(readme)]) == 0
    assert "changed: storyworld-perplexity" in capsys.readouterr().out
    assert main([str(readme), "--check"]) == 0
    assert stale_tables(readme) == []
    text = readme.read_text(encoding="utf-8")
    assert text.startswith(
        "# Title\n\n<!-- table storyworld-perplexity begin -->\n\n| variant | perplexity |"
    )
    assert text.endswith("<!-- table storyworld-perplexity end -->\n\nEnd.")
    row = next(line for line in text.splitlines() if line.startswith("| CDLM |"))
    assert row.startswith("| CDLM | 2.72 [2.5")  # e to the power of 1.0
    assert row.endswith("| *3.23 / 3.39* |")


def test_a_number_that_somebody_changed_is_stale(readme: Path):
    write_readme(readme)
    readme.write_text(readme.read_text(encoding="utf-8").replace("2.72", "2.71"), encoding="utf-8")
    assert len(stale_tables(readme)) == 1


def test_a_report_that_is_not_there_or_not_whole(readme: Path, capsys: pytest.CaptureFixture):
    file = readme.parent / "data" / "results" / "storyworld_tiny" / "perplexity.json"
    values = json.loads(file.read_text())
    del values["tables"]["comparisons"]
    file.write_text(json.dumps(values))
    with pytest.raises(RunError, match=r"perplexity\.json: not as its notebook writes it .*comparisons"):
        write_readme(readme)
    file.unlink()
    assert main([str(readme)]) == 2
    assert "there is no" in capsys.readouterr().err
    assert readme.read_text(encoding="utf-8") == MARKED


def test_tables_of_joint_reading(tmp_path: Path):
    results = tmp_path / "data" / "results"
    answer_report(tmp_path / "answers")
    record(tmp_path / "answers", results / "wikiqa_minilm" / "answers.json")
    claim_report(tmp_path / "claims")
    record(tmp_path / "claims", results / "fm2_minilm" / "verdicts.json")
    (results / "wikiqa_minilm" / "latency.json").write_text("[]")
    names = ("wikiqa", "wikiqa-reranked", "fm2", "fm2-dev")
    readme = tmp_path / "README.md"
    marks = [f"<!-- table {name} begin -->\n<!-- table {name} end -->" for name in names]
    readme.write_text("\n\n".join(marks), encoding="utf-8")
    assert write_readme(readme) == list(names)
    lines = readme.read_text(encoding="utf-8").splitlines()
    rows = {line.split(" | ")[0][2:]: line.split(" | ") for line in lines if line.startswith("| ")}
    # of four questions pairwise has two right with seed 0, three with seed 1
    pairwise = next(line for line in lines if line.startswith("| pairwise |"))
    assert pairwise.startswith("| pairwise | 62.5 ± 17.7 [")
    assert pairwise.endswith("*77.1 / 85.3 / 86.5* |")
    assert rows["random order"][1] == "33.3"
    assert rows["always “supported”"][1].startswith("50.0 [")
    assert rows["joint IE_1"][1].startswith("100.0 [")
    assert rows["joint IE_1"][3] == "*79.25 / 73.56* |"
    assert rows["claim only"][3].strip() == "|", "the paper has none"


def test_of_several_reports_in_a_folder_the_newest_is_taken(tmp_path: Path):
    folder = tmp_path / "results" / "fm2_minilm"
    with pytest.raises(RunError, match="there is no report of 'fact verification' in"):
        TABLES["fm2"](tmp_path / "results")
    claim_report(tmp_path / "claims")
    for name, finished, value in (("a", "2026-02", 0.25), ("b", "2026-01", 0.5)):
        record(tmp_path / "claims", folder / f"{name}.json")
        values = json.loads((folder / f"{name}.json").read_text()) | {"finished": finished}
        (row,) = (row for row in values["scores"] if row["system"] == "joint-ie" and row["split"] == "test")
        row["value"] = value
        (folder / f"{name}.json").write_text(json.dumps(values))
    table = TABLES["fm2"](tmp_path / "results")
    assert next(row[1].text for row in table.rows if row[0].text == "joint IE_1") == "25.0"
    with pytest.raises(RunError, match="the claims of symmetric were not scored"):
        TABLES["fm2-symmetric"](tmp_path / "results")
