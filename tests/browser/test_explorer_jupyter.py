"""Notebook 11 in JupyterLab, in a real browser, with the models behind it: what a new user does first."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import Jupyter, run_all_cells

pytestmark = pytest.mark.browser
NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "11_attention_analysis.ipynb"
SMALL = {"run_folder": "run", "local_cdlm": "", "rand_cdlm": "", "prefix_cdlm": "", "stories": 6, "pairs": 12}


def sources_up_to(title: str) -> list[str]:
    """The code cells of the notebook before the heading, with small parameters."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    texts = [("".join(cell["source"]), cell["cell_type"] == "code") for cell in cells]
    end = next(n for n, (text, _) in enumerate(texts) if text.startswith(title))
    code = [text for text, is_code in texts[:end] if is_code]
    for name, value in SMALL.items():
        code[0], changed = re.subn(rf"^{name} = .*$", f"{name} = {value!r}", code[0], flags=re.M)
        assert changed == 1, f"there is no parameter {name}"
    return code


@pytest.fixture(scope="module")
def lab(jupyter: Jupyter, chromium: Any) -> Iterator[Any]:
    """The page of the notebook after all cells up to "Many pairs" were run."""
    context = chromium.new_context(viewport={"width": 1500, "height": 1100})
    context.set_default_timeout(120_000)
    page = context.new_page()
    sources = sources_up_to("## Many pairs")
    run_all_cells(page, jupyter.write("analysis.ipynb", *sources), len(sources))
    page.locator(".cdlm-x-panel").first.scroll_into_view_if_needed()
    yield page
    context.close()


def word(page: Any, panel: int, doc: int, number: int) -> Any:
    return page.locator(".cdlm-x-panel").nth(panel).locator(f'[data-doc="{doc}"][data-word="{number}"]')


def shades(page: Any, panel: int) -> list[str]:
    words = page.locator(".cdlm-x-panel").nth(panel).locator("[data-doc]")
    return words.evaluate_all("nodes => nodes.map(node => node.style.backgroundColor)")


def verdicts(page: Any) -> list[str]:
    return page.locator(".cdlm-x-verdict").all_inner_texts()


def test_it_opens_on_a_pair_with_its_rank_under_two_models(lab: Any, pictures: Path):
    titles = lab.locator(".cdlm-x-panel").all_inner_texts()
    assert ["Longformer" in titles[0], "CDLM" in titles[1]] == [True, True]
    assert all(re.fullmatch(r"stronger than \d+(\.\d)?% of its document", text) for text in verdicts(lab))
    assert len(verdicts(lab)) == 2
    lab.screenshot(path=pictures / "jupyter_opened.png")


def test_what_if_a_word_is_hidden_and_the_chosen_ones_see_everything_or_not(lab: Any, pictures: Path):
    lab.get_by_role("radio", name="hides").click()
    word(lab, 1, 1, 2).click()
    rows = lab.locator(".cdlm-x-note")
    rows.first.wait_for()
    lab.get_by_role("radio", name="lets see everything").click()
    word(lab, 1, 1, 2).click()
    rows.filter(has_text="\u2192").first.wait_for()  # before -> after
    lab.screenshot(path=pictures / "jupyter_what_if.png")
    lab.get_by_role("radio", name="chooses").click()
    lab.get_by_label("chosen words see everything").uncheck()
    far = lab.locator(".cdlm-x-verdict", has_text="too far apart")
    far.first.wait_for()
    lab.get_by_label("chosen words see everything").check()
    far.first.wait_for(state="detached")


def test_a_view_is_kept_as_a_page_that_needs_no_notebook(
    lab: Any, new_page: Any, jupyter: Jupyter, tmp_path: Path
):
    with lab.expect_download() as download:
        lab.get_by_role("button", name="save as page").click()
    download.value.save_as(tmp_path / "kept.html")
    for file in (tmp_path / "kept.html", jupyter.folder / "run" / "explorer.html"):
        watched = new_page()
        watched.page.goto(file.as_uri())
        assert watched.page.locator(".cdlm-x-panel").count() == 2
        assert any(shades(watched.page, 1))
        watched.check_quiet()


def test_what_is_chosen_is_handed_to_bertviz(lab: Any, pictures: Path):
    frames = lab.locator(".cdlm-bertviz iframe")
    frames.first.scroll_into_view_if_needed()
    frame = lab.frame_locator(".cdlm-bertviz iframe")
    frame.locator("svg line").first.wait_for(state="attached")
    before = frames.first.get_attribute("srcdoc")
    lab.get_by_role("button", name="Show what is chosen above").click()
    lab.wait_for_function(
        "before => document.querySelector('.cdlm-bertviz iframe')?.srcdoc !== before", arg=before
    )
    frame.locator("svg line").first.wait_for(state="attached")
    lab.screenshot(path=pictures / "jupyter_bertviz.png")
    size = lab.viewport_size
    lab.set_viewport_size({"width": 1000, "height": 900})
    button = lab.get_by_role("button", name="Show what is chosen above")
    button.scroll_into_view_if_needed()
    assert button.bounding_box()["width"] > 180, "its words are not cut on a narrow screen"
    lab.screenshot(path=pictures / "jupyter_bertviz_narrow.png")
    lab.set_viewport_size(size)


def test_documents_models_and_own_text_are_opened_in_place(lab: Any, pictures: Path):
    chooser, panel = lab.locator(".cdlm-x-chooser"), lab.locator(".cdlm-x-panel").first
    columns, read = panel.locator(".cdlm-x-column"), chooser.get_by_role("button", name="Read")
    before = columns.first.inner_text()
    documents = chooser.get_by_label("documents", exact=True)
    documents.select_option(index=1)  # of the two stories the other one
    lab.wait_for_function("old => document.querySelector('.cdlm-x-column').innerText !== old", arg=before)
    assert len(verdicts(lab)) == 2, "the pair of that story is chosen and compared"
    chooser.get_by_text("shown", exact=True).click()  # makes its cell the active one, which may move the page
    chooser.locator("summary").click()
    for number in range(3):
        chooser.get_by_role("checkbox").nth(number).check()
    chooser.get_by_role("button", name="show these").click()
    columns.nth(2).wait_for()
    chooser.get_by_label("beside it").select_option("")
    lab.locator(".cdlm-x-panel").nth(1).wait_for(state="detached")
    lab.screenshot(path=pictures / "jupyter_three_documents.png")
    documents.select_option("")
    box = chooser.get_by_label("your own text")
    text = "== one ==\nA fire <m>broke out</m>. <script>window.h=1</script>\n== two"
    box.fill(text)
    read.click()
    refusal = chooser.locator(".cdlm-x-refused", has_text="== at its end is missing")
    refusal.wait_for()
    assert columns.count() >= 3, "what was there stays"
    assert box.is_visible()
    assert box.input_value() == text, "so that it can be mended"
    lab.screenshot(path=pictures / "jupyter_refused.png")
    box.fill(f"{text} ==\nThe blaze.")
    read.click()
    columns.nth(2).wait_for(state="detached")
    refusal.wait_for(state="detached")  # the line is empty
    assert "blaze" in columns.nth(1).inner_text()
    assert lab.evaluate("typeof h") == "undefined"
    word(lab, 0, 1, 1).click()
    lab.locator(".cdlm-x-status", has_text="from blaze in two").wait_for()
    lab.locator(".cdlm-x-arc").first.wait_for()
    lab.screenshot(path=pictures / "jupyter_own_text.png")
