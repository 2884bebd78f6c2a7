"""A page of tagged sentences in a real browser: a click on a word shows where else it stands."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdlm_lab.tasks.tagging.view import ReadOccurrence, ReadSentence, ReadWord, tagged_page

pytestmark = pytest.mark.browser
HOSTILE = "<img/src=x/onerror=h=1>"


def sentence(number: int) -> ReadSentence:
    """Three entities, each of which stands in the sentence after, too."""
    names = ("Oskmere", "Brandir", HOSTILE)
    after = ("Again", *names)
    words = [
        ReadWord(word=name, gold=None, predicted=f"B-{label}", occurrences=(
            ReadOccurrence(words=after, place=place, distance=1, weight=0.4, sentence=number + 1),) * place)
        for place, (name, label) in enumerate(zip(names, ("ORG", "PER", "LOC"), strict=True), start=1)
    ]  # fmt: skip
    more = [ReadWord(word=word, gold=None, predicted="O", occurrences=()) for word in ("met", "there", ".")]
    return ReadSentence(document="story", number=number, words=(words[0], more[0], *words[1:], *more[1:]))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 1000])
def test_a_click_on_a_word_shows_its_occurrences_and_another_hides_them(
    new_page: Callable[..., Any], tmp_path: Path, pictures: Path, width: int, scheme: str
):
    file = tmp_path / "tagged.html"
    file.write_text(tagged_page([sentence(0), sentence(5)], title="Tagged"), encoding="utf-8")
    page = new_page(color_scheme=scheme, viewport={"width": width, "height": 700}).page
    page.goto(file.as_uri())
    first, second = (page.locator(".cdlm-tagged").nth(place) for place in (0, 1))
    shown = first.locator("tr:visible")
    assert shown.count() == 3, "of the word with the most occurrences"
    word = first.locator("label", has_text="Oskmere")
    word.click()
    assert (shown.count(), second.locator("tr:visible").count()) == (3 + 1, 3), "of this sentence alone"
    page.screenshot(path=pictures / f"tagged-{width}-{scheme}.png")
    word.click()
    assert shown.count() == 3
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert shown.count() == 3 + 2, "the next word, by the keyboard"
    assert page.evaluate("typeof h") == "undefined"
