"""Boxes for texts of one's own: what a click asks, how a mistake is told, and what stays in sight."""

import pytest

from cdlm_lab.views import ask
from cdlm_lab.views.ask import ANSWERS, EVIDENCE

LINES = "In 1958.\n\n  It is a cape. \r\n"
DOCUMENTS = "== a ==\nOne.\n\n== b ==\nTwo."
HOSTILE = "!<script>x</script>"
MISTAKE = '<span style="color:#d64545">!&lt;script&gt;x&lt;/script&gt; does not fit</span>'


def candidates_box(answer, **more):
    return ask.own_candidates_box(answer, query=" When? ", candidates=LINES, **more)


def question_box(answer, **more):
    return ask.own_question_box(answer, question="Who?", documents=DOCUMENTS, **more)


def text_box(answer, answered=""):
    return ask.own_text_box(answer, text="Lucy came.", tagged=answered)


# Box -> (how it is made from an answer, what it asks at first).
ON_CLICK = {
    "candidates": (candidates_box, ("When?", ["In 1958.", "It is a cape."])),
    "question": (question_box, ("Who?", [("a", "One."), ("b", "Two.")])),
    "text": (text_box, ("Lucy came.",)),
}


class Stage:
    """A box whose questions are recorded; what has a "!" in it cannot be answered."""

    def __init__(self, name, **more):
        self.asked, self.while_busy = [], lambda: None
        self.box = ON_CLICK[name][0](self.answer, **more)

    def answer(self, *asked):
        self.asked.append(asked)
        assert self.box.button.disabled
        assert self.box.message.value == "reading\u2026"
        self.while_busy()
        if "!" in str(asked):
            raise ValueError(f"{asked[0]} does not\nfit")
        return f"<b>answer {len(self.asked)}</b>"

    def click(self, *values):
        """Answer and message after values were typed and the button clicked."""
        for box, value in zip(self.box.boxes, values, strict=False):
            box.value = value
        self.box.button.click()
        assert not self.box.button.disabled
        return self.box.answer.value, self.box.message.value


@pytest.mark.parametrize("name", ON_CLICK)
def test_a_click_asks_what_stands_in_the_boxes_once_and_a_mistake_is_one_line_of_text(name):
    stage = Stage(name)
    assert (stage.asked, stage.box.answer.value) == ([], ""), "nothing is asked before a click"
    stage.while_busy = stage.box.button.click
    assert stage.click() == ("<b>answer 1</b>", "")
    assert stage.click() == ("<b>answer 1</b>", ""), "one that waited until the first was done"
    assert stage.asked == [ON_CLICK[name][1]]
    stage.while_busy = lambda: None
    assert stage.click("When? Now") == ("<b>answer 2</b>", "")
    assert stage.asked[1][0] == "When? Now"
    others = [box.value for box in stage.box.boxes[1:]]
    assert stage.click(HOSTILE) == ("", MISTAKE), "the answer before was to another text"
    assert [box.value for box in stage.box.boxes] == [HOSTILE, *others]
    assert stage.click("Where?") == ("<b>answer 4</b>", "")
    stage.while_busy = lambda: 1 / 0
    stage.box.boxes[0].value = "a fault of the program"
    with pytest.raises(ZeroDivisionError):
        stage.box._on_click()
    assert (stage.box.button.disabled, stage.box.message.value) == (False, "")


@pytest.mark.parametrize("name", ON_CLICK)
def test_an_answer_that_is_known_stands_there_at_once_and_is_not_asked_again(name):
    stage = Stage(name, answered="<b>known</b>")
    assert stage.box.answer.value == "<b>known</b>"
    assert stage.click() == ("<b>known</b>", "")
    assert not stage.asked
    stage.box.boxes[-1].value = "another"
    assert stage.click() == ("<b>answer 1</b>", "")


@pytest.mark.parametrize(
    ("name", "words", "values", "expected"),
    [
        ("candidates", ANSWERS, (" ", LINES), "the question is empty; write one"),
        ("candidates", EVIDENCE, ("", LINES), "the claim is empty; write one"),
        ("candidates", ANSWERS, ("When?", " \n"), "candidate answer:1: field text: the text is empty"),
        ("candidates", ANSWERS, ("When?", " \n"), "write one candidate answer on each line"),
        ("candidates", EVIDENCE, ("So.", ""), "write one sentence of evidence on each line"),
        ("candidates", ANSWERS, ("When?", "a\nb\ud83d"), "candidate answer:2: field text: half a character"),
        ("question", None, (" ", DOCUMENTS), "the question is empty; write one"),
        ("question", None, ("Who?", ""), "documents:1: field text: the text is empty"),
        ("question", None, ("Who?", "One.\n== b ==\nTwo."), "documents:1: field text: text before the first"),
        ("question", None, ("Who?", "== <i> ==\n"), "the document &lt;i&gt; has no text"),
        ("text", None, (" \n",), "the text is empty; write or paste one"),
    ],
)
def test_what_cannot_be_read_is_not_asked(name, words, values, expected):
    stage = Stage(name, **({"words": words} if words else {}))
    answer, message = stage.click(*values)
    assert (answer, stage.asked) == ("", [])
    assert expected in message
    assert tuple(box.value for box in stage.box.boxes) == values


def test_other_ways_to_write_candidates_and_documents():
    for name, text, expected in (
        ("candidates", "a\na", ["a", "a"]),  # equal lines are two candidates
        ("question", "Three.", [("", "Three.")]),
    ):
        stage = Stage(name)
        stage.click("When?", text)
        assert stage.asked[0][1] == expected


@pytest.mark.parametrize(
    ("make", "more", "hint", "button"),
    [
        (candidates_box, {"words": ANSWERS}, "One candidate answer on each line.", "Rank"),
        (candidates_box, {"words": EVIDENCE}, "One sentence of evidence on each line.", "Judge"),
        (question_box, {}, "each under a line <code>== its title ==</code>.", "Answer"),
        (text_box, {}, "One document, the longer the better", "Tag"),
    ],
)
def test_the_box_holds_all_parts(make, more, hint, button):
    box = make(lambda *asked: "", **more)
    first = [] if make is text_box else ["Text"]
    kinds = [type(part).__name__ for part in box.children]
    assert kinds == [*first, "HTML", "Textarea", "Button", "HTML", "HTML", "HTML"]
    assert "unicode-bidi:plaintext" in box.children[-1].value
    assert all("cdlm-own" in one._dom_classes for one in box.boxes)
    if make is candidates_box:
        assert box.boxes[0].placeholder == ("your claim" if button == "Judge" else "your question")
    assert hint in box.children[len(first)].value
    assert box.button.description == button


def fit(text):
    if "!" in text:
        raise ValueError(f"{text} does not\nfit")
    return text


def own_documents(show, read=fit):
    def clusters(text):
        answer = read(text)
        return lambda at: f"{answer} at {at:.2f}"

    return ask.OwnDocuments("a", find=clusters, threshold=0.5, show=show)


def own_pair(show, read=fit):
    return ask.OwnPair("a", "b", compare=lambda a, b: f"{read(a)} and {b}", show=show)


# Controls with a button -> (how they are made, what they show, where a person types into them).
BELOW = {"documents": (own_documents, "{} at 0.50", "text"), "pair": (own_pair, "{} and b", "first")}


@pytest.mark.parametrize("name", BELOW)
def test_the_answer_is_shown_below_at_once_and_after_each_click(name):
    make, form, box = BELOW[name]
    shown = []
    own = make(shown.append)
    assert shown == [], "nothing is asked before it is shown"
    own.show()
    assert shown == [form.format("a")]
    for text, count, message in (("c", 2, ""), (HOSTILE, 3, MISTAKE), ("d", 4, "")):
        before = len(shown)
        getattr(own, box).value = text
        assert len(shown) == before, "typing alone asks nothing"
        own.button.click()
        assert (len(shown), own.message.value, own.button.disabled) == (count, message, False)
    assert shown[1:] == [form.format("c"), "", form.format("d")], "a mistake takes the answer before away"
    getattr(own, box).value = "!"
    with pytest.raises(ValueError, match="does not\nfit"):  # without a person a mistake stops the run
        own.show()


@pytest.mark.parametrize("name", BELOW)
def test_a_bar_moves_in_the_message_and_is_gone_afterwards(name, capsys):
    messages = []

    def read(text):
        for done in range(3):
            print(f"\rscoring: {done} <pairs>", end="")
            messages.append((own.message.value, own.button.disabled))
        print()
        return text

    own = BELOW[name][0](lambda html: None, read)
    own.button.click()
    lines = [f'<code style="white-space:pre-wrap">scoring: {n} &lt;pairs&gt;</code>' for n in range(3)]
    assert messages == [(line, True) for line in lines]
    assert own.message.value == ""
    own.show()
    assert len(messages) == 6
    assert "scoring" not in capsys.readouterr().out


def test_the_slider_draws_again_without_reading_again_and_boxes_of_a_pair_have_names():
    shown, texts = [], []
    own = own_documents(shown.append, lambda text: texts.append(text) or text)
    own.threshold.value = 0.3
    assert shown == [], "nothing was read yet"
    own.show()
    own.threshold.value = 0.7
    assert (shown, texts) == (["a at 0.30", "a at 0.70"], ["a"])
    own = own_documents(shown.append)
    own.show()
    own.text.value = "!"
    own.button.click()
    own.threshold.value = 0.9
    assert shown[3:] == [""], "the slider draws nothing of the text before"
    pair = own_pair(None)
    assert [box.description for box in (pair.first, pair.second)] == ["first document", "second document"]
    assert pair.button.description == "Compare"
