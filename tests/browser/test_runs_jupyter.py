"""Trainings and runs in JupyterLab: curves, an interrupt, tables to save, runs side by side."""

import re
from pathlib import Path
from typing import Any

import pytest
from small_reports import recorded_run

from .conftest import Jupyter, run_all_cells

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
START = f"import sys; sys.path.insert(0, {str(ROOT)!r})"
CURVES = """
from cdlm_lab.views.live_curve import LiveCurves
curves = LiveCurves()
for name in ("longformer", "cdlm"):
    with curves(name) as curve:
        for step in range(1, 41):
            curve({"step": step, "loss": 3 - step / 20, "total_steps": 40, "seconds": step})
        curve({"step": 40, "eval_perplexity": 3.0, "total_steps": 40, "seconds": 41})
"""
TABLE = """
from cdlm_lab.views.tables import Cell, text_table
evil = "<img src=x onerror=alert(1)>"
text_table(["system", "F1"], [[evil, Cell(text="71.6", best=True)]], caption="Scores")
"""
INTERRUPT = """
from cdlm_lab.errors import interrupts_in_one_line
from cdlm_lab.progress import tracked
interrupts_in_one_line("Interrupted: run all cells again to go on.")
import time
print("waiting")
for _ in tracked(iter(lambda: time.sleep(0.05), 1), disable=True):
    pass
"""
COMPARE = """
from cdlm_lab.results import comparison
from cdlm_lab.results.reports import find_reports
from pathlib import Path
comparison.compared(find_reports("runs"), "", Path("none"))
"""


def write_runs(folder: Path) -> None:
    """Two runs with curves, that differ in one parameter, one of them with a hostile name."""
    for number, name in enumerate(("first", "<img src=x onerror=alert(1)>")):
        records = [{"step": step, "loss": (3 + number) / step} for step in range(1, 31)]
        records += [{"step": step, "eval_loss": (2 + number) / step} for step in (10, 20, 30)]
        recorded_run(folder / name, records, learning_rate=0.001 * (number + 1))


@pytest.fixture
def watched(jupyter: Jupyter, new_page: Any) -> Any:
    return new_page(viewport={"width": 1440, "height": 1100})


def test_a_curve_has_no_log_below_it_and_a_table_is_saved(jupyter: Jupyter, watched: Any, pictures: Path):
    page = watched.page
    run_all_cells(page, jupyter.write("curves.ipynb", START, CURVES, TABLE), 3)
    curves = page.locator(".jp-Cell").nth(1)
    curves.locator("img").first.wait_for(state="attached")
    text = curves.locator(".jp-OutputArea").inner_text()
    assert text.count("training loss") == 2, "in the folded line, and above the curve"
    assert re.search(r"Longformer: step 40 of 40 \(100%\)", text)
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert download.value.suggested_filename == "scores.csv"
    assert Path(download.value.path()).read_text() == "system,F1\n<img src=x onerror=alert(1)>,71.6\n"
    curves.locator("summary").click()
    page.screenshot(path=pictures / "curves_jupyter.png")
    watched.check_quiet()


def test_an_interrupt_is_one_line(jupyter: Jupyter, watched: Any, pictures: Path):
    page = watched.page
    page.goto(jupyter.write("interrupt.ipynb", START, INTERRUPT))
    page.locator("#jp-main-statusbar", has_text=re.compile(r"\|\s*Idle")).wait_for()
    page.locator(".jp-Cell").first.click()
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Shift+Enter")
    page.locator(".jp-OutputArea", has_text="waiting").first.wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("i")
    page.keyboard.press("i")
    error = page.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stderr']")
    error.first.wait_for()
    assert error.all_inner_texts() == ["Interrupted: run all cells again to go on."]
    page.screenshot(path=pictures / "interrupt_jupyter.png")


def test_runs_stand_side_by_side_and_a_score_opens_its_examples(
    jupyter: Jupyter, watched: Any, pictures: Path
):
    write_runs(jupyter.folder / "runs")
    page = watched.page
    run_all_cells(page, jupyter.write("compare.ipynb", START, COMPARE), 2)
    output = page.locator(".jp-Cell").nth(1).locator(".jp-OutputArea")
    output.locator(".main-svg").first.wait_for()
    output.locator("td", has_text="learning_rate").first.wait_for()
    assert output.locator(".legendtext").count() == 4, "training and validation of two runs"
    page.screenshot(path=pictures / "compare_jupyter.png")
    output.locator("[data-open]").first.click()
    output.get_by_text("cannot be opened").wait_for()
    page.screenshot(path=pictures / "compare_examples_jupyter.png")
    # anywidget says so if a machine takes more than two seconds for a model, and shows it all the same
    watched.complaints[:] = [one for one in watched.complaints if "Failed to initialize model" not in one]
    watched.check_quiet()
