"""A run on one page in a real browser: what it draws, what is saved from it, and that nothing else runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_reports import RESULTS, recorded_run

from cdlm_lab.results.page import run_page
from cdlm_lab.runs.report import read_report
from cdlm_lab.tasks.pretraining.view import perplexity_figure
from cdlm_lab.views.figures import keep_figure
from cdlm_lab.views.html import still_page

pytestmark = pytest.mark.browser
HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
RECORDS = [{"step": n, "loss": 3 - n / 10, "seconds": n, "total_steps": 8} for n in range(1, 9)]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("run")
    recorded_run(run, RECORDS, system=HOSTILE.replace("/", ""), kind=HOSTILE)
    rows = read_report(RESULTS / "storyworld_tiny" / "perplexity.json").rows
    keep_figure(run, "perplexity", perplexity_figure(rows, title=HOSTILE))
    (run / "answers.html").write_text(still_page("An answer.", title=HOSTILE, note=""))
    page = run.parent / "page.html"
    page.write_text(run_page(run))
    return page


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 1000)])
def test_all_of_a_run_is_seen_and_nothing_else_runs(
    file: Path, new_page: Callable[..., Any], pictures: Path, scheme: str, width: int
):
    watched = new_page(color_scheme=scheme, viewport={"width": width, "height": 1000})
    page = watched.page
    page.goto(file.as_uri())
    page.locator("[data-figure] .main-svg").first.wait_for()
    for fold in page.locator("summary").all():
        fold.click()
    assert page.frame_locator("iframe").locator("body").inner_text().startswith(HOSTILE)
    assert page.locator("svg path").count() > 10, "figure and curve"
    assert HOSTILE in page.locator(".gtitle").text_content()
    page.screenshot(path=pictures / f"run_page_{scheme}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    bar, figure = (page.locator(part).first.bounding_box() for part in (".modebar", "[data-figure]"))
    assert bar["width"] < 50 < bar["height"], "upright, not on the title"
    assert bar["x"] > figure["x"] + figure["width"] - 50
    assert "Share" not in page.locator(".modebar").first.inner_html(), "no button uploads the figure"
    tests = [one.bounding_box() for one in page.get_by_text("to Longformer)").all()]
    assert tests, "p, and against what"
    assert max(one["width"] for one in tests) < 135, "does not widen a column"
    watched.check_quiet()


def test_tables_and_figures_are_saved_from_the_page(file: Path, new_page: Callable[..., Any]):
    watched = new_page()
    page = watched.page
    page.goto(file.as_uri())
    with page.expect_download() as download:
        page.get_by_role("link", name="LaTeX").first.click()
    assert download.value.suggested_filename == "scores-test.tex"
    assert r"\toprule" in Path(download.value.path()).read_text()
    page.locator("[data-figure] .main-svg").first.wait_for()
    page.locator("[data-figure]").hover()
    with page.expect_download() as download:
        page.locator("[data-title*='ownload']").first.click()
    assert download.value.suggested_filename == "figure.svg"
    assert Path(download.value.path()).read_text().startswith("<svg")
    watched.check_quiet()
