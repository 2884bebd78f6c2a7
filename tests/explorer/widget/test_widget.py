"""The explorer from the Python side: who is asked when, what is kept, what an exported page holds."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from cdlm_lab.explorer.reading import Panel, Selection
from cdlm_lab.explorer.widget.content import Content, Opened, ShownDocument, as_json
from cdlm_lab.explorer.widget.widget import Explorer

WORDS = 6
DOCUMENTS = (
    ShownDocument(name="one", words=("a", "b", "c"), sentences=((0, 2), (2, 3))),
    ShownDocument(name="two", words=("d", "</script><script>alert(1)</script>", "."), sentences=((0, 3),)),
)


class Stage:
    """An explorer whose questions are kept."""

    def __init__(self, **arguments) -> None:
        self.asked: list[Selection] = []
        settings = {"models": ["m"], "layers": 2, "heads": 2} | arguments
        self.explorer = Explorer(Content(documents=DOCUMENTS, answer=self.answer, **settings))

    def answer(self, selection: Selection) -> list[Panel]:
        self.asked.append(selection)
        if selection.layer == 0:
            raise ValueError("the first layer is not told <b>")
        scores = np.arange(WORDS, dtype=float) + selection.source[1]
        every = np.ones(WORDS, bool)
        return [Panel(name="m", scores=scores, ranks=scores, reach=every, read=every)]


def test_a_choice_in_the_browser_is_answered_and_remembered():
    stage = Stage()
    first = Selection(source=(0, 1, 2), layer=1)
    stage.explorer.selection = as_json(first)
    assert stage.asked == [first]
    answer = stage.explorer.answer
    stage.explorer.selection = as_json(replace(first, source=(1, 0, 1)))
    assert stage.explorer.answer != answer
    stage.explorer.selection = as_json(first)
    assert stage.explorer.answer == answer
    assert len(stage.asked) == 2, "what was asked before is not asked again"


def test_mistakes_are_told_and_the_last_answer_stays():
    stage = Stage()
    stage.explorer.selection = as_json(Selection(source=(0, 1, 2), layer=1))
    answer = stage.explorer.answer
    stage.explorer.selection = as_json(Selection(source=(0, 1, 2), layer=0))
    assert stage.explorer.message == "the first layer is not told <b>"
    stage.explorer.selection = as_json(Selection(source=(0, 1, 9), layer=1))
    assert "no words 1 to 9" in stage.explorer.message
    assert stage.explorer.answer == answer
    stage.explorer.selection = as_json(Selection(source=(0, 0, 1), layer=1))
    assert stage.explorer.message == ""
    stage.explorer.choose(Selection(source=(0, 0, 1), layer=1))
    with pytest.raises(ValueError, match="not told"):  # from Python they are raised
        stage.explorer.choose(Selection(source=(0, 0, 1), layer=0))


# ---- what else can be opened ----

LISTED = {
    "examples": [
        ["a", "first <b>", [["one", "One"], ["two", "Two"], ["three", "Three"]]],
        ["b", "second", [["two", "Two"]]],
    ],
    "models": [["m", "small"], ["n", "large"]],
}


class Shop:
    """An explorer that can open what LISTED names, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.wanted: list[Opened] = []
        content = self.open(Opened(example="a", models=["m"]))
        self.explorer = Explorer(content, open=self.open, choices=LISTED)

    def open(self, opened: Opened) -> Content:
        self.wanted.append(opened)
        if opened.text == "unreadable":
            raise ValueError("the text is empty; write a document")
        return Content(
            documents=DOCUMENTS[: 1 if opened.example == "b" else 2],
            models=opened.models,
            layers=2,
            heads=2,
            answer=lambda chosen: Stage().answer(chosen) * len(opened.models),
            selection=Selection(source=(0, 0, 1), layer=1),
            opened=replace(opened, documents=opened.documents or ["two"]),
        )


def test_another_example_other_models_and_own_text_are_opened_in_place():
    shop = Shop()
    explorer, states = shop.explorer, []
    assert explorer.choices["examples"][0][:2] == ["a", "first <b>"]
    explorer.observe(
        lambda change: states.append((explorer.options["models"], len(explorer.documents))), "shown"
    )
    explorer.opened = explorer.opened | {"example": "b", "documents": []}
    assert states[-1] == (["m"], 1)
    assert explorer.opened["documents"] == ["two"], "those it begins with"
    assert explorer.answer is not None
    explorer.opened = explorer.opened | {"models": ["n", "m"]}
    assert states[-1] == (["n", "m"], 1)
    assert len(explorer.answer["panels"]) == 2
    explorer.opened = explorer.opened | {"example": "", "text": "A fire."}
    assert shop.wanted[-1] == Opened(example="", text="A fire.", models=["n", "m"])
    assert len(states) == explorer.shown == 3
    page = stored_in(explorer.html())
    assert len(page["answers"]) == 1, "answers of other documents are not in the page"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"example": "c"}, "there is no example 'c'"),
        ({"models": ["m", "x"]}, "models are m, x; choose one or two of the list"),
        ({"models": []}, "models are none"),
        ({"documents": ["four"]}, "one of the documents is not of this example"),
        ({"example": "", "text": "unreadable"}, "the text is empty; write a document"),
        ({"example": "", "text": "x" * 200_001}, "the text has 200,001 characters"),
    ],
)
def test_what_cannot_be_opened_is_said_and_what_is_shown_stays(change, message):
    explorer = Shop().explorer
    before = explorer.opened, explorer.documents, explorer.answer
    explorer.opened = explorer.opened | change
    assert (message in explorer.refused, explorer.message) == (True, "")
    assert (explorer.opened, explorer.documents, explorer.answer) == before
    assert explorer.shown == 0


def stored_in(html: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="stored">(.*?)</script>', html)[1])


def test_a_page_holds_what_was_asked_and_nothing_that_runs(tmp_path):
    stage = Stage()
    for start in (0, 1):
        stage.explorer.choose(Selection(source=(0, start, start + 1), layer=1))
    html = stage.explorer.save_html(tmp_path / "x.html").read_text(encoding="utf-8")
    stored = stored_in(html)
    assert [selection["source"] for selection, _ in stored["answers"]] == [[0, 0, 1], [0, 1, 2]]
    assert stored["documents"][1]["words"][1] == DOCUMENTS[1].words[1]
    assert html.count("<script") == 2
    assert html.count("</script>") == 2
    assert "alert(1)</script" not in html
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", html)
    assert "default-src 'none'" in html


def test_an_export_is_sent_to_the_browser(monkeypatch):
    stage = Stage()
    sent: list[dict] = []
    monkeypatch.setattr(stage.explorer, "send", sent.append)
    stage.explorer._on_message(stage.explorer, {"type": "export"}, [])
    stage.explorer._on_message(stage.explorer, {"type": "something else"}, [])
    assert [message["type"] for message in sent] == ["export"]
    assert sent[0]["html"].startswith("<!doctype html>")
