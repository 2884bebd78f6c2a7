"""The explorer in a real browser: scripts from right to left, emoji where texts are cut, the keyboard alone,
and drags that leave the widget."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdlm_lab.explorer.reading import Panel, Selection
from cdlm_lab.explorer.widget.content import Content, ShownDocument
from cdlm_lab.explorer.widget.widget import Explorer

pytestmark = pytest.mark.browser
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"  # one sign for the reader, 8 UTF-16 units
TEXTS = {
    "hebrew": ("הנהר", "עלה", "על", "גדותיו", "."),
    "mixed": ("השר", "אמר", "New", "York", "Times", "אתמול", "."),
    "english": ("The", "river", "rose", "over", "its", "banks", "in", "the", "night", "."),
    "persian": ("می\u200cخواهم", "بروم", "."),
    "emoji": (f"{'x' * 55}{FAMILY}{FAMILY}tail", "end"),
}


def panels(selection: Selection) -> list[Panel]:
    sizes = list(map(len, TEXTS.values()))
    scores, every = np.arange(sum(sizes), dtype=float), np.ones(sum(sizes), bool)
    ranks = np.concatenate([np.linspace(0, 100, size) for size in sizes])
    target = None
    if selection.target:
        target = float(ranks[sum(sizes[: selection.target[0]]) + selection.target[1]])
    return [Panel(name="m", scores=scores, ranks=ranks, reach=every, read=every, target_rank=target)]


@pytest.fixture
def explorer() -> Explorer:
    shown = [
        ShownDocument(name=name, words=words, sentences=((0, len(words)),)) for name, words in TEXTS.items()
    ]
    return Explorer(Content(documents=shown, models=["m"], layers=1, heads=1, answer=panels))


@pytest.fixture
def opened(explorer: Explorer, new_page: Callable[..., Any], tmp_path: Path) -> Any:
    for doc, words in enumerate(TEXTS.values()):
        for word in range(len(words)):
            explorer.choose(Selection(source=(doc, word, word + 1)))
    explorer.choose(Selection())
    watched = new_page(viewport={"width": 1800, "height": 900})
    watched.page.goto(explorer.save_html(tmp_path / "x.html").as_uri())
    return watched


def word(page: Any, name: str, number: int) -> Any:
    return page.locator(f'.cdlm-x-panel [data-doc="{list(TEXTS).index(name)}"][data-word="{number}"]')


def place(page: Any, name: str, number: int) -> dict[str, float]:
    return word(page, name, number).bounding_box()


def focused(page: Any) -> str:
    return page.evaluate("document.activeElement.textContent")


def test_a_sentence_is_read_in_the_direction_of_its_script(opened: Any, pictures: Path):
    page = opened.page
    page.screenshot(path=pictures / "explorer_scripts.png")
    for name, order in {"hebrew": (4, 3, 2, 1, 0), "persian": (2, 1, 0), "english": (0, 1, 2)}.items():
        lefts = [place(page, name, number)["x"] for number in order]
        assert lefts == sorted(lefts), name
    # Hebrew from right to left, and the English name in it from left to right
    lefts = [place(page, "mixed", number)["x"] for number in (6, 5, 2, 3, 4, 1, 0)]
    assert lefts == sorted(lefts), "mixed"
    opened.check_quiet()


def test_what_is_typed_keeps_the_joiners_of_its_script(opened: Any):
    page = opened.page
    page.get_by_role("radio", name="rewrites").click()
    word(page, "persian", 1).click()
    page.locator(".cdlm-x-editor").fill("نمی\u200cروم\u202e")
    page.keyboard.press("Enter")
    assert word(page, "persian", 1).text_content() == "نمی\u200cروم"


def test_a_picture_is_saved_where_a_text_is_cut_at_an_emoji(opened: Any, tmp_path: Path):
    page = opened.page
    word(page, "emoji", 0).click()
    chip = page.locator(".cdlm-x-status .cdlm-x-source").text_content()
    assert chip == f"{'x' * 55}\u2026", "neither half a sign nor a part of a family"
    with page.expect_download(timeout=20_000) as download:
        page.get_by_role("button", name="save as picture").click()
    download.value.save_as(tmp_path / "page.png")
    assert len((tmp_path / "page.png").read_bytes()) > 20_000
    opened.check_quiet()


def test_every_word_is_reached_by_keyboard_alone(opened: Any):
    page = opened.page
    stops = page.locator('.cdlm-x-word[tabindex="0"]')
    assert stops.all_text_contents() == [words[0] for words in TEXTS.values()], "one stop a document"
    stage = page.locator(".cdlm-x-stage")
    page.get_by_role("button", name="save as picture").focus()
    page.keyboard.press("Tab")
    assert focused(page) == TEXTS["hebrew"][0]
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("ArrowLeft")
    assert focused(page) == TEXTS["hebrew"][1], "forward is to the left"
    page.keyboard.press("End")
    assert focused(page) == "."
    page.keyboard.press("Home")
    assert focused(page) == TEXTS["hebrew"][0]
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert focused(page) == "The"
    page.keyboard.press("ArrowRight")
    page.keyboard.press(" ")
    assert page.locator(".cdlm-x-status").inner_text().startswith("from river in english")
    assert stage.locator('[aria-selected="true"]').all_text_contents() == ["river"]
    assert stage.get_by_role("listbox", name="english").count() == 1
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Enter")
    assert stage.locator(".cdlm-x-source").all_text_contents() == ["river", "rose", "over"]
    opened.check_quiet()


def test_lines_are_walked_up_and_down(new_page: Any, tmp_path: Path):
    words = tuple(f"word{n}" for n in range(100))
    shown = [ShownDocument(name=name, words=words, sentences=((0, 50), (50, 100))) for name in "ab"]
    content = Content(documents=shown, models=["m"], layers=1, heads=1, answer=panels)
    page = new_page().page
    page.goto(Explorer(content).save_html(tmp_path / "l.html").as_uri())
    page.locator('.cdlm-x-word[tabindex="0"]').first.focus()
    box = "document.activeElement.getBoundingClientRect().toJSON()"
    before = page.evaluate(box)
    for key, sign in (("ArrowDown", 1), ("ArrowDown", 1), ("ArrowUp", -1)):
        page.keyboard.press(key)
        now = page.evaluate(box)
        assert 10 < sign * (now["top"] - before["top"]) < 40
        assert abs(now["left"] - before["left"]) < 30
        before = now


@pytest.mark.parametrize("lost", [False, True])
def test_a_drag_that_leaves_the_widget_ends_there(lost: bool, opened: Any):
    """`lost`: the browser tells no one that the button was let go, as over another frame."""
    page = opened.page
    start, to = (place(page, "english", number) for number in (1, 3))
    page.mouse.move(start["x"] + 3, start["y"] + 8)
    page.mouse.down()
    page.mouse.move(to["x"] + 3, to["y"] + 8)
    if lost:
        page.evaluate("window.addEventListener('pointerup', e => e.stopImmediatePropagation(), true)")
        page.evaluate("window.dispatchEvent(new PointerEvent('pointercancel'))")
    else:
        page.mouse.move(900, 880)  # below the widget
    page.mouse.up()
    page.mouse.move(start["x"] + 3, start["y"] + 8)
    assert page.locator(".cdlm-x-pending").count() == 0
    sources = page.locator(".cdlm-x-stage .cdlm-x-source").all_text_contents()
    assert sources == ([] if lost else ["river", "rose", "over"])
    page.mouse.move(to["x"] + 3, to["y"] + 8)
    assert page.locator(".cdlm-x-pending").count() == 0, "nothing is dragged any more"
