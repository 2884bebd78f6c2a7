"""Whatever text a verb is given, it answers, or says in one line what is wrong."""

import re
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from cdlm_lab.apply import loading
from cdlm_lab.data.files import DataError
from cdlm_lab.mining.mine import mine
from cdlm_lab.parameters import ParameterError
from cdlm_lab.views.ask import ask_box

TEXTS = {
    "empty": "",
    "blank": " \n\t ",
    "word": "Fire",
    "sign": ".",
    "NUL": "A \0fire broke\0 out in Telk.",
    "control characters": "A\x01 fire\x1b[2J broke\x7f out\x85 in Telk.",
    "CRLF": "A fire broke out.\r\n\r\nTwo died.\r\n",
    "CR": "A fire broke out.\rTwo died.\r",
    "Chinese": "周一,一家旧工厂发生火灾。两人死亡。",
    "Arabic": "اندلع حريق في المصنع القديم يوم الاثنين. وقتل شخصان.",
    "emoji": "🔥🔥 👩‍👩‍👧 🇩🇪!",
    "hidden": "\u200b\u200d\ufeff\u2060",
    "direction": "\u202eeriF\u202c broke out.",
    "half a character": "A \ud83d fire broke out.",
    "long word": "a" * 5000,
    "no spaces": "火" * 1000,
    "many marks": "e" + "\u0301" * 2000 + " fire",
    "many lines": "\n" * 2000 + "Fire.",
    "long": "A fire broke out. " * 100,
    "tags": "<b>A fire</b> &amp; <script>alert(1)</script>",
}
REFUSED = {"empty", "blank", "hidden", "half a character"}  # by every verb
load = cache(loading.load)
OTHER = "The blaze killed two workers in Telk."


def words(text: str) -> list[tuple[int, int]]:
    return [word.span() for word in re.finditer(r"\w{1,20}", text)][:3]


VERBS: dict[str, Callable[[str], Any]] = {
    "clusters": lambda text: load("storyworld/coreference").clusters({"a": text, "b": OTHER}, mentions=words),
    "clusters of equal texts": lambda text: load("storyworld/coreference").clusters(
        {"a": text, "b": text}, mentions=lambda text: words(text)[:2]
    ),
    "encode": lambda text: load("storyworld/cdlm").encode([text, OTHER]),
    "fill": lambda text: load("storyworld/cdlm").fill(["A [MASK] broke out.", text], pieces=1),
    "attention": lambda text: load("storyworld/cdlm").attention(["The blaze spread.", text], (0, "blaze")),
    "tag": lambda text: load("storyworld/tagging").tag(text),
    "score": lambda text: load("storyworld/matching").score(text, OTHER),
    "align": lambda text: load("storyworld/matching").align(text, text),
    "rank": lambda text: load("storyworld/answers").rank("Who died?", [text, OTHER]),
    "verify": lambda text: load("storyworld/claims").verify(text, [OTHER, text]),
    "answer": lambda text: load("storyworld/questions").answer("Who died?", {"a": text, "b": OTHER}),
}


def outcome(call: Callable[[], Any]) -> str:
    """ "" if there is an answer that can be shown, else the line that says why not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answer = call()
        except ValueError as error:
            said = f"{type(error).__name__}: {error}"
            return said if "\n" not in said and len(said) < 400 else "not one short line"
    assert "<script>" not in answer._repr_html_()
    assert str(answer)
    return ""


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_answers_or_says_in_one_line_why_not(verb: str, name: str) -> None:
    said = outcome(lambda: VERBS[verb](TEXTS[name]))
    assert "Unicode" not in said
    assert said != "not one short line"
    if name in REFUSED - {"hidden"}:
        assert re.search("is empty|half a character", said)
    elif name not in ("hidden", "word", "sign") and verb != "clusters of equal texts":
        assert said == ""


@pytest.mark.parametrize("name", TEXTS)
def test_boxes_answer_or_say_in_one_line_why_not(name: str) -> None:
    shown: list[str] = []
    box = ask_box(load("storyworld/tagging").tag, {"text": OTHER * 10}, show=shown.append)
    (field,) = box.fields.values()
    field.value = TEXTS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        box.button.click()
    assert bool(shown[-1]) != bool(box.message.value)
    assert not box.button.disabled
    assert ("half a character" in box.message.value) == (name == "half a character")


@pytest.mark.parametrize("lines", ["", "{}\n", '{"text": ""}\n', '{"text": "One article."}\n'])
def test_a_pile_of_nothing_is_one_line(lines: str, tmp_path) -> None:
    (tmp_path / "pile.jsonl").write_text(lines)
    with pytest.raises((DataError, ParameterError)) as error:
        mine(tmp_path / "pile.jsonl", tmp_path / "clusters.jsonl")
    assert "\n" not in str(error.value)
