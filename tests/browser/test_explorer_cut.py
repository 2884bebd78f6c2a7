"""The explorer of `cdlm_lab.explore` in a real browser: the switch that cuts, by keyboard, and contrast in
light and dark."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cdlm_lab
from cdlm_lab.encoders.encoder import load_language_model
from cdlm_lab.explorer.reading import Selection

pytestmark = pytest.mark.browser
TEXTS = {
    "Blast in a mine": "A blast killed 75 miners on Monday. Rungerens Doendyholt had warned of it for years.",
    "Warning ignored": "The lecturer Doendyholt had warned of the blast in the mine, which killed 75 people.",
}
# The luminance contrast (WCAG 2) of an element's text with what it stands on.
CONTRAST = """(node) => {
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const over = ([r, g, b, a = 1], under) => [r, g, b].map((one, i) => a * one + (1 - a) * under[i]);
  let ground = [], opacity = 1;
  for (let at = node; at; at = at.parentElement) {
    ground.unshift(parts(getComputedStyle(at).backgroundColor));
    opacity *= Number(getComputedStyle(at).opacity);
  }
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
  const below = ground.reduce((under, one) => over(one, under), dark ? [18, 18, 18] : [255, 255, 255]);
  const [r, g, b, a = 1] = parts(getComputedStyle(node).color);
  const light = (rgb) => rgb.map((one) => one / 255)
    .map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
    .reduce((sum, one, i) => sum + one * [0.2126, 0.7152, 0.0722][i], 0);
  const [high, low] = [light(over([r, g, b, a * opacity], below)), light(below)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}"""


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model, tokenizer = load_language_model("storyworld/cdlm", max_length=512, window=32)
    explorer = cdlm_lab.explore(model, tokenizer, TEXTS)
    whole = Selection(source=(0, 8, 9), target=(1, 2, 3), masked=((1, 15, 16),), layer=2)
    for cut in ("documents", "below", "random", ""):
        explorer.choose(replace(whole, cut=cut))
    return explorer.save_html(tmp_path_factory.mktemp("page") / "cut.html")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_cut_is_chosen_by_keyboard_and_shown_side_by_side(
    scheme: str, page_file: Path, new_page: Callable[..., Any], pictures: Path
) -> None:
    watched = new_page(viewport={"width": 1400, "height": 900}, color_scheme=scheme)
    page = watched.page
    page.goto(page_file.as_uri())
    switch = page.get_by_role("combobox", name="attention between documents")
    switch.focus()
    page.keyboard.press("ArrowDown")
    heads = page.locator(".cdlm-x-panel-head b")
    assert heads.all_text_contents() == ["after the cut", "before the cut"]
    assert "attention between documents is cut" in page.locator(".cdlm-x-verdict").first.inner_text()
    assert "stronger than" in page.locator(".cdlm-x-verdict").last.inner_text()
    notes = page.locator(".cdlm-x-truth").all_text_contents()
    assert len(notes) == 2
    assert "\\u2192" in notes[0].encode("unicode_escape").decode(), "the guess before and after"
    switch.select_option("as much cut within documents")
    assert page.locator(".cdlm-x-verdict").first.inner_text().startswith("stronger than")
    switch.select_option("cut")
    page.screenshot(path=pictures / f"explorer_cut_{scheme}.png")
    for text in page.locator("button, select, label, .cdlm-x-muted, .cdlm-x-verdict, .cdlm-x-word").all():
        if text.is_visible() and text.inner_text().strip():
            assert text.evaluate(CONTRAST) >= 4.5, (scheme, text.inner_text()[:60])
    switch.select_option("")
    assert page.locator(".cdlm-x-panel").count() == 1
    watched.check_quiet()


def test_every_control_has_a_name_for_screen_readers(page_file: Path, new_page: Callable[..., Any]) -> None:
    page = new_page().page
    page.goto(page_file.as_uri())
    for control in page.locator("button, select, input, summary, [role=radiogroup], [role=listbox]").all():
        name = control.evaluate(
            "(node) => node.getAttribute('aria-label') || node.labels?.[0]?.textContent || node.textContent"
        )
        assert name.strip(), control.evaluate("(node) => node.outerHTML")
