"""A run on one page, and as files."""

import csv
import re
import shutil
from pathlib import Path

import pytest
from shown_reads import HOSTILE, QUESTION
from small_reports import RESULTS, recorded_run

from cdlm_lab.batch.command import main as command
from cdlm_lab.results import page
from cdlm_lab.runs.report import RunError, read_report
from cdlm_lab.tasks.multihop.view import questions_page
from cdlm_lab.tasks.pretraining.view import perplexity_figure
from cdlm_lab.views.figures import keep_figure

RECORDS = [{"step": n, "loss": 3 - n / 10, "seconds": n, "total_steps": 9} for n in range(1, 9)]
RECORDS += [{"step": 9, "eval_loss": 1.5, "eval_perplexity": 4.48, "seconds": 9, "total_steps": 9}]
PARTS = {
    "storyworld_tiny/perplexity": ["scores"],
    "storyworld_tiny/questions": ["scores, test", "scores, dev"],
    "storyworld_tiny/coreference": ["scores, test, event", "scores, dev, event"],
    "fm2_minilm/verification": ["scores, test", "scores, dev", "scores, symmetric"],
    "scisumm_minilm/alignment": ["scores, oracle", "scores, released", "scores, joint"],
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with a figure, a curve and a page of examples, all with hostile names."""
    folder = tmp_path / f"run {HOSTILE}".replace("/", "")
    recorded_run(folder, RECORDS, kind=HOSTILE, corpus=HOSTILE)
    rows = read_report(RESULTS / "storyworld_tiny/perplexity.json").rows
    keep_figure(folder, "perplexity", perplexity_figure(rows, title=f"</script>{HOSTILE}"))
    for name in ("answers", "own_question"):
        (folder / f"{name}.html").write_text(questions_page([QUESTION], title=HOSTILE), encoding="utf-8")
    (folder / ".ipynb_checkpoints").mkdir()  # which JupyterLab leaves where a page was opened
    (folder / ".ipynb_checkpoints" / "answers-checkpoint.html").write_bytes(
        (folder / "answers.html").read_bytes()
    )
    (folder / "explorer.html").write_text("<script>alert(1)</script>")
    return folder


@pytest.mark.parametrize("name", PARTS)
def test_every_split_and_part_has_a_table(name: str):
    assert list(page.score_tables_of(read_report(RESULTS / f"{name}.json"))) == PARTS[name]


def test_a_page_has_all_of_a_run_and_only_our_scripts_run(run: Path):
    html = page.run_page(run)
    for part in ("scores, test", "CDLM, seed 0", "kinds (12 rows)", "examples: answers", "to repeat it"):
        assert part in html, part
    assert "examples: own_question" not in html
    assert "alert(1)" not in html
    assert html.count("<script>") == 2, "plotly's, and what draws"
    assert len(re.findall(r"'sha256-[\w+/=]+'", html[:700])) == 2
    assert "default-src 'none'" in html[:300]
    assert not re.search(r"<(img|link)|<[^>]*\son\w+=", html.partition("<script>")[0])
    (run / "figures" / "perplexity.json").unlink()
    assert "<script" not in page.run_page(run)


def test_the_command_writes_the_page_and_the_files(run: Path, capfd: pytest.CaptureFixture[str]):
    file, folder = run.parent / "run.html", run.parent / "files"
    (run / "figures" / "perplexity.json").unlink()
    assert command(["show", str(run), "--html", str(file), "--export", str(folder)]) == 0
    assert file.read_text(encoding="utf-8").startswith("<!doctype html>")
    names = {path.name for path in folder.iterdir()}
    assert {"scores-test.csv", "scores-test.tex", "kinds.csv", "comparisons.tex"} <= names
    with (folder / "kinds.csv").open(newline="") as stream:
        assert next(csv.reader(stream))[:3] == ["system", "split", "kind"]
    shown = capfd.readouterr()
    assert "on one page" in shown.out
    assert "no figures" in shown.out
    assert command(["show", str(run.parent / "none"), "--html", str(file)]) == 2
    assert "holds no run" in capfd.readouterr().err
    assert command(["show", str(run), str(run), "--html", str(file)]) == 2
    assert "take one run" in capfd.readouterr().err


def test_without_a_report_there_is_a_line(tmp_path: Path):
    with pytest.raises(RunError, match="holds no finished run"):
        page.run_page(tmp_path)
    shutil.copy(RESULTS / "storyworld_tiny/questions.json", tmp_path / "report.json")
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "a.json").write_text("x")
    assert page.main([str(tmp_path), "--html", str(tmp_path / "a.html")]) == 2
    assert not (tmp_path / "a.html").exists()
