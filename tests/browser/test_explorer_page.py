"""The exported explorer in a real browser: clicks, drags, keys, and a malicious document."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdlm_lab.explorer.reading import Panel, Prediction, Selection
from cdlm_lab.explorer.widget.content import Content, ShownDocument
from cdlm_lab.explorer.widget.widget import Explorer

pytestmark = pytest.mark.browser
HOSTILE = ("<script>h=1</script>", "</script><b>", "<img/src=x/onerror=h=1>", "&lt;", "\u202eabc")
HOSTILE += ("\u05e9\u05dc", "🙂", "x" * 10_000)
WORDS = ("The", "gas", "blast", "killed", "fourteen", "miners", "near", "Telk", ",", "the", "police", "said")
WORDS += (".",)
SECOND = ("The", "explosion", "in", "the", "mine", "was", "the", "worst", "in", "ten", "years", ".")


def documents() -> list[ShownDocument]:
    return [
        ShownDocument(name="morning", words=WORDS, sentences=((0, 8), (8, 13)), mentions=((1, 3, "blast"),)),
        ShownDocument(name="evening", words=SECOND, sentences=((0, 6), (6, 12)), mentions=((1, 2, "blast"),)),
        ShownDocument(name="<i>odd</i>", words=HOSTILE, sentences=((0, len(HOSTILE)),)),
    ]


def panels(selection: Selection) -> list[Panel]:
    """Answers of two models with opposite scores: a word's index or its negative; rewriting reverses them."""
    if selection.edits:
        before = panels(replace(selection, edits=()))
        return [replace(one, scores=4 - one.scores, ranks=100 - one.ranks, before=one) for one in before]
    shown = documents()
    sizes = [len(document.words) for document in shown]
    numbers = np.concatenate([np.arange(size) for size in sizes]).astype(float)
    answers = []
    for name, scores in (("up", numbers), ("down", -numbers)):
        ranks = np.concatenate([100 * np.argsort(np.argsort(part)) / (len(part) - 1)
                                for part in np.split(scores, np.cumsum(sizes)[:-1])])  # fmt: skip
        reach = np.full(len(scores), selection.source_global)
        target = None
        if selection.target:
            place = sum(sizes[: selection.target[0]]) + selection.target[1]
            target = float(ranks[place])
        truth = 0.1 + 0.5 * bool(selection.extra_global)
        hidden = [
            Prediction(span=span, truth_probability=truth, top=(("fire", 0.4),)) for span in selection.masked
        ]
        words = {"reach": reach, "read": np.arange(len(scores)) < len(scores) - 1}
        more = {"target_rank": target, "predictions": tuple(hidden)}
        answers.append(Panel(name=name, scores=2 + scores / 100, ranks=ranks, **words, **more))
    return answers


@pytest.fixture
def explorer() -> Explorer:
    content = Content(
        documents=documents(), models=["up", "down"], layers=2, heads=4, answer=panels, predicts=True
    )  # fmt: skip
    return Explorer(content)


@pytest.fixture
def opened(explorer: Explorer, new_page: Callable[..., Any], tmp_path: Path) -> Any:
    """Open a page with stored answers, most of them with `blast` as source."""
    source = (0, 1, 3)
    for selection in (
        Selection(source=source, source_global=False, layer=1),
        Selection(source=source, masked=((1, 1, 2),), layer=1),
        Selection(source=source, masked=((1, 1, 2),), extra_global=((0, 5, 6),), layer=1),
        Selection(source=source, target=(1, 10, 11), edits=((1, 1, "<b>fire</b> <i>"),), layer=1),
        Selection(source=(1, 4, 5), layer=1),
        Selection(source=source, layer=1),
    ):
        explorer.choose(selection)
    watched = new_page()
    watched.page.goto(explorer.save_html(tmp_path / "x.html").as_uri())
    return watched


def word(page: Any, panel: int, doc: int, number: int) -> Any:
    return page.locator(".cdlm-x-panel").nth(panel).locator(f'[data-doc="{doc}"][data-word="{number}"]')


def shade(locator: Any) -> str:
    return locator.evaluate("node => node.style.backgroundColor")


def test_two_models_side_by_side_and_a_compared_word(opened: Any, pictures: Path):
    page = opened.page
    assert page.locator(".cdlm-x-panel").count() == 2
    assert shade(word(page, 0, 1, 10)) != ""
    assert shade(word(page, 0, 1, 0)) == ""
    assert shade(word(page, 1, 1, 0)) != ""
    word(page, 0, 1, 10).click(modifiers=["Shift"])
    verdicts = page.locator(".cdlm-x-verdict").all_text_contents()
    assert verdicts == ["stronger than 100% of its document", "stronger than 0% of its document"]
    panels = page.locator(".cdlm-x-panel")
    assert panels.locator(".cdlm-x-rank").all_text_contents() == ["above 100%", "above 0%"]
    for number in range(2):
        compared, line = (
            panels.nth(number).locator(one) for one in (".cdlm-x-target", ".cdlm-x-to-target circle")
        )
        assert line.count() == 1, "one line leads to the compared word, however weak it is"
        boxes = [one.bounding_box() for one in (compared, line)]
        middles = [box["y"] + box["height"] / 2 for box in boxes]
        assert abs(middles[0] - middles[1]) < 4
    page.screenshot(path=pictures / "explorer_compared.png")
    opened.check_quiet()


def test_a_click_in_a_mention_takes_all_of_it_and_a_drag_what_it_covers(opened: Any):
    page = opened.page
    word(page, 0, 1, 4).click()
    assert page.locator(".cdlm-x-status").inner_text().startswith("from mine in evening")
    word(page, 0, 0, 2).click()
    assert page.locator(".cdlm-x-status").inner_text().startswith("from gas blast in morning")
    word(page, 0, 0, 4).hover()
    page.mouse.down()
    word(page, 0, 0, 6).hover()
    page.mouse.up()
    sources = page.locator(".cdlm-x-panel").first.locator(".cdlm-x-source")
    assert sources.all_text_contents() == ["fourteen", "miners", "near"]
    assert "no answer for that" in page.locator(".cdlm-x-status").inner_text()


def test_resting_on_a_word_tells_its_rank(opened: Any):
    page = opened.page
    word(page, 0, 1, 10).hover()
    tip = page.locator(".cdlm-x-tip")
    assert tip.inner_text().splitlines()[:2] == ["years", "stronger than 91% of its document"]
    word(page, 0, 1, 11).hover()
    assert "punctuation is not ranked" in tip.inner_text()
    word(page, 0, 0, 1).hover()
    assert "chosen" in tip.inner_text()
    assert "mention of blast" in tip.inner_text()


def test_what_if_a_word_is_hidden_and_others_see_everything(opened: Any):
    page = opened.page
    page.get_by_role("radio", name="hides").click()
    word(page, 0, 1, 1).click()
    rows = page.locator(".cdlm-x-note")
    assert rows.count() == 2
    assert " ".join(rows.first.inner_text().split()) == "10% fire 40%"
    hidden, note = (one.bounding_box() for one in (word(page, 0, 1, 1), rows.first))
    assert 0 <= note["x"] - hidden["x"] - hidden["width"] < 20, "at the word, on its line"
    assert abs(note["y"] - hidden["y"]) < 10
    page.get_by_role("radio", name="lets see everything").click()
    word(page, 0, 0, 5).click()
    assert "10% → 60%" in rows.first.inner_text()
    word(page, 0, 0, 5).click()
    assert "60% → 10%" in rows.first.inner_text()


def test_a_word_is_rewritten_and_both_texts_compared(opened: Any, pictures: Path):
    page = opened.page
    panels, fire = page.locator(".cdlm-x-panel"), "<b>fire</b> <i>"
    word(page, 0, 1, 10).click(modifiers=["Shift"])
    page.get_by_role("radio", name="rewrites").click()
    word(page, 0, 1, 1).click()
    editor = page.get_by_label("in place of explosion")
    assert editor.input_value() == "explosion"
    editor.press("Escape")
    assert editor.count() == 0
    word(page, 1, 1, 1).click()
    editor.fill("\u202e<b>fire</b>   <i>")
    editor.press("Enter")
    assert [word(page, n, 1, 1).text_content() for n in (0, 1)] == [fire, fire]
    assert "explosion → <b>fire</b> <i>" in page.locator(".cdlm-x-status").inner_text()
    verdict = "stronger than 0% of its document, before the rewriting 100%"
    assert page.locator(".cdlm-x-verdict").first.inner_text() == verdict
    assert "rgba(213, 94, 0" in shade(word(page, 0, 1, 10))
    assert "rgba(59, 142, 208" in shade(word(page, 0, 1, 0))
    word(page, 0, 1, 10).hover()
    assert "before the rewriting stronger than 91%" in page.locator(".cdlm-x-tip").inner_text()
    page.screenshot(path=pictures / "explorer_difference.png")
    page.get_by_label("before and after").select_option("both")
    assert panels.count() == 4
    heads = panels.all_inner_texts()
    assert heads[0].startswith("up, after the rewriting")
    assert heads[1].startswith("up, before the rewriting")
    assert [word(page, n, 1, 1).text_content() for n in range(4)] == [fire, "explosion"] * 2
    assert shade(word(page, 0, 1, 0)) != "" == shade(word(page, 1, 1, 0))
    page.screenshot(path=pictures / "explorer_both_texts.png")
    page.get_by_role("button", name="take back").click()
    assert panels.count() == 2
    assert word(page, 0, 1, 1).text_content() == "explosion"
    word(page, 0, 1, 1).click()
    editor.fill("")
    editor.press("Enter")
    assert page.locator(".cdlm-x-rewritten").inner_text() == "", "nothing in its place is no rewriting"
    opened.check_quiet()


def test_search_marks_every_place_and_jumps_from_one_to_the_next(opened: Any, pictures: Path):
    page = opened.page
    box, label = page.get_by_label("find words"), page.locator(".cdlm-x-search .cdlm-x-muted")
    marked = page.locator(".cdlm-x-panel").first.locator(".cdlm-x-hit")
    here = page.locator(".cdlm-x-panel").nth(1).locator(".cdlm-x-here")
    box.fill("IN")
    assert label.inner_text() == "1 of 4"
    assert marked.all_text_contents() == ["miners", "in", "mine", "in"]
    assert here.all_text_contents() == ["miners"]
    box.press("Enter")
    box.press("Enter")
    assert (label.inner_text(), here.all_text_contents()) == ("3 of 4", ["mine"])
    box.press("Shift+Enter")
    page.get_by_label("previous place").click()
    page.get_by_label("previous place").click()
    assert label.inner_text() == "4 of 4"
    page.screenshot(path=pictures / "explorer_search.png")
    box.fill("explosion  in the m")
    assert marked.all_text_contents() == ["explosion", "in", "the", "mine"]
    assert here.count() == 4
    for odd in ("<script>", ".*", "zebra"):
        box.fill(odd)
        assert label.inner_text() == ("1 of 1" if odd == "<script>" else "not there")
    box.fill("")
    assert (label.inner_text(), marked.count()) == ("find", 0)
    opened.check_quiet()


def test_search_brings_a_far_place_into_sight_and_leaves_the_page_where_it_is(new_page: Any, tmp_path: Path):
    words, sentences = tuple(f"w{n}" for n in range(2000)), ((0, 2001),)
    names = [f"d{n}" for n in range(6)]
    documents = [
        ShownDocument(name=name, words=(*words, f"end-{name}"), sentences=sentences) for name in names
    ]
    watched = new_page()
    page = watched.page
    explorer = Explorer(Content(documents=documents, models=["m"], layers=1, heads=1, answer=panels))
    page.goto(explorer.save_html(tmp_path / "far.html").as_uri())
    page.get_by_label("find words").fill("end-d5")
    assert page.evaluate("scrollY") == 0
    inside = """node => {
        const [word, columns, text] = [node, node.closest(".cdlm-x-columns"), node.closest(".cdlm-x-text")]
            .map((one) => one.getBoundingClientRect());
        return word.left >= columns.left && word.right <= columns.right
            && word.top >= text.top && word.bottom <= text.bottom;
    }"""
    assert page.locator(".cdlm-x-here").evaluate(inside)
    watched.check_quiet()


def test_keys_do_what_the_mouse_does(opened: Any):
    page = opened.page
    word(page, 0, 1, 3).click()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.locator(".cdlm-x-status").inner_text().startswith("from mine in evening")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("t")
    assert page.locator(".cdlm-x-panel").first.locator(".cdlm-x-target").all_text_contents() == ["was"]
    page.keyboard.press("Escape")
    assert page.locator(".cdlm-x-target").count() == 1, "that of the legend"
    opened.check_quiet()


def test_documents_are_text_whatever_they_say(opened: Any):
    page = opened.page
    texts = page.locator('.cdlm-x-panel >> nth=0 >> [data-doc="2"]').all_text_contents()
    assert texts[:4] == list(HOSTILE[:4])
    assert texts[4] == "\u2039U+202E\u203aabc"
    assert texts[7] == HOSTILE[7]
    assert page.evaluate("typeof h") == "undefined"
    column = page.locator(".cdlm-x-column").nth(2)
    assert column.evaluate("node => node.scrollWidth <= node.clientWidth + 1")
    assert "<i>odd</i>" in column.inner_text()
    opened.check_quiet()


def test_ten_documents_of_four_thousand_words_are_drawn_at_once(new_page: Any, tmp_path: Path):
    """A click on a word is answered within a time at which users still wait for it."""
    many = [
        ShownDocument(
            name=f"report {n}", words=tuple(f"word{i}" for i in range(410)),
            sentences=tuple((start, start + 10) for start in range(0, 410, 10)),
        )
        for n in range(10)
    ]  # fmt: skip

    def answer(selection: Selection) -> list[Panel]:
        scores, every = np.random.default_rng(selection.source[1]).random(4100), np.ones(4100, bool)
        return [Panel(name="m", scores=scores, ranks=100 * scores, reach=every, read=every)]

    explorer = Explorer(Content(documents=many, models=["m"], layers=1, heads=1, answer=answer))
    for start in (5, 6):
        explorer.choose(Selection(source=(0, start, start + 1)))
    watched = new_page()
    watched.page.goto(explorer.save_html(tmp_path / "many.html").as_uri())
    assert watched.page.locator(".cdlm-x-word[data-word]").count() == 4100
    shades = "nodes => nodes.map(node => node.style.backgroundColor)"
    before = watched.page.locator(".cdlm-x-word").evaluate_all(shades)
    word(watched.page, 0, 0, 5).click()
    after = watched.page.locator(".cdlm-x-word").evaluate_all(shades)
    assert sum(one != other for one, other in zip(before, after, strict=True)) > 1000
    watched.check_quiet()
