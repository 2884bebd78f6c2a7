"""Boxes for texts of one's own: what a click asks, what a person reads of a mistake, and what stays in
sight."""

import pytest

from cdlm_lab.widgets.ask import (
    ANSWERS,
    EVIDENCE,
    ChosenSentences,
    OwnDocuments,
    OwnPair,
    own_candidates_box,
    own_question_box,
    own_text_box,
)

LINES = "In 1958.\n\n  It is a cape. \r\n"
DOCUMENTS = "== a ==\nOne.\n\n== b ==\nTwo."
HOSTILE = "!<script>x</script>"
MISTAKE = '<span style="color:#c22">!&lt;script&gt;x&lt;/script&gt; does not fit</span>'
# Box -> (how it is made from an answer, what it asks at first).
ON_CLICK = {
    "candidates": (
        lambda answer, **more: own_candidates_box(answer, query=" When? ", candidates=LINES, **more),
        ("When?", ["In 1958.", "It is a cape."]),
    ),
    "question": (
        lambda answer, **more: own_question_box(answer, question="Who?", documents=DOCUMENTS, **more),
        ("Who?", [("a", "One."), ("b", "Two.")]),
    ),
    "text": (
        lambda answer, answered="", **more: own_text_box(answer, text="Lucy came.", tagged=answered),
        ("Lucy came.",),
    ),
}


class Stage:
    """A box whose questions are recorded; what has a "!" in it cannot be answered."""

    def __init__(self, make, **more):
        self.asked, self.while_busy = [], lambda: None
        self.box = make(self.answer, **more)

    def answer(self, *asked):
        self.asked.append(asked)
        assert self.box.button.disabled
        assert self.box.message.value == "reading\u2026"
        self.while_busy()
        if "!" in str(asked):
            raise ValueError(f"{asked[0]} does not\nfit")
        return f"<b>answer {len(self.asked)}</b>"

    def click(self):
        """Answer and message after a click."""
        self.box.button.click()
        assert not self.box.button.disabled
        return self.box.answer.value, self.box.message.value


@pytest.fixture(params=ON_CLICK)
def clicked(request):
    return ON_CLICK[request.param]


def test_a_click_asks_what_stands_in_the_boxes_once(clicked):
    make, asked = clicked
    stage = Stage(make)
    assert (stage.asked, stage.box.answer.value) == ([], ""), "nothing is asked before a click"
    stage.while_busy = stage.box.button.click
    assert stage.click() == ("<b>answer 1</b>", "")
    assert stage.click() == ("<b>answer 1</b>", ""), "one that waited until the first was done"
    assert stage.asked == [asked]
    stage.while_busy = lambda: None
    stage.box.boxes[0].value = "When? Now"
    assert stage.click() == ("<b>answer 2</b>", "")
    assert stage.asked[1][0] == "When? Now"


def test_a_mistake_is_one_line_of_text_and_nothing_is_lost(clicked):
    stage = Stage(clicked[0])
    stage.click()
    others = [box.value for box in stage.box.boxes[1:]]
    stage.box.boxes[0].value = HOSTILE
    assert stage.click() == ("<b>answer 1</b>", MISTAKE), "the answer before stays in sight"
    assert [box.value for box in stage.box.boxes] == [HOSTILE, *others]
    stage.box.boxes[0].value = "Where?"
    assert stage.click() == ("<b>answer 3</b>", "")


def test_an_answer_that_is_known_stands_there_at_once_and_is_not_asked_again(clicked):
    stage = Stage(clicked[0], answered="<b>known</b>")
    assert stage.box.answer.value == "<b>known</b>"
    assert stage.click() == ("<b>known</b>", "")
    assert not stage.asked
    stage.box.boxes[-1].value = "another"
    assert stage.click() == ("<b>answer 1</b>", "")


def test_after_a_fault_of_the_program_the_button_works_again(clicked):
    stage = Stage(clicked[0])
    stage.while_busy = lambda: 1 / 0
    with pytest.raises(ZeroDivisionError):
        stage.box._on_click()
    assert (stage.box.button.disabled, stage.box.message.value) == (False, "")


@pytest.mark.parametrize(
    ("name", "more", "values", "expected"),
    [
        ("candidates", {}, (" ", LINES), "the question is empty; write one"),
        ("candidates", {"words": EVIDENCE}, ("", LINES), "the claim is empty; write one"),
        ("candidates", {}, ("When?", " \n"), "candidate answer:1: field text: the text is empty"),
        ("candidates", {}, ("When?", " \n"), "write one candidate answer on each line"),
        ("candidates", {"words": EVIDENCE}, ("So.", ""), "write one sentence of evidence on each line"),
        (
            "candidates",
            {},
            ("When?", "a\nb\ud83d"),
            "candidate answer:2: field text: half a character (U+D83D)",
        ),
        ("question", {}, (" ", DOCUMENTS), "the question is empty; write one"),
        ("question", {}, ("Who?", ""), "documents:1: field text: the text is empty"),
        ("question", {}, ("Who?", "One.\n== b ==\nTwo."), "documents:1: field text: text before the first"),
        ("question", {}, ("Who?", "== <i> ==\n"), "the document &lt;i&gt; has no text"),
        ("text", {}, (" \n",), "the text is empty; write or paste one"),
    ],
)
def test_what_cannot_be_read_is_not_asked(name, more, values, expected):
    stage = Stage(ON_CLICK[name][0], **more)
    for box, value in zip(stage.box.boxes, values, strict=True):
        box.value = value
    answer, message = stage.click()
    assert (answer, stage.asked) == ("", [])
    assert expected in message
    assert tuple(box.value for box in stage.box.boxes) == values


def test_other_ways_to_write_candidates_and_documents():
    stage = Stage(ON_CLICK["candidates"][0])
    stage.box.boxes[1].value = "a\na"
    stage.click()
    assert stage.asked[0][1] == ["a", "a"], "equal lines are two candidates"
    stage = Stage(ON_CLICK["question"][0])
    stage.box.boxes[1].value = "Three."
    stage.click()
    assert stage.asked[0][1] == [("document 1", "Three.")]


@pytest.mark.parametrize(
    ("name", "more", "parts", "hint", "button"),
    [
        ("candidates", {"words": ANSWERS}, 6, "One candidate answer on each line.", "Rank"),
        ("candidates", {"words": EVIDENCE}, 6, "One sentence of evidence on each line.", "Judge"),
        ("question", {}, 6, "each under a line <code>== its title ==</code>.", "Answer"),
        ("text", {}, 5, "One document, the longer the better", "Tag"),
    ],
)
def test_the_box_holds_all_parts(name, more, parts, hint, button):
    box = ON_CLICK[name][0](lambda *asked: "", **more)
    kinds = [type(part).__name__ for part in box.children]
    assert kinds == ["Text", "HTML", "Textarea", "Button", "HTML", "HTML"][6 - parts :]
    if name == "candidates":
        assert box.boxes[0].placeholder == ("your claim" if button == "Judge" else "your question")
    assert hint in box.children[parts - 5].value
    assert box.button.description == button


def fit(text):
    if "!" in text:
        raise ValueError(f"{text} does not\nfit")
    return text


def clusters_of(find):
    def clusters(text):
        read = find(text)
        return lambda at: f"{read} at {at:.2f}"

    return clusters


# Controls with a button -> (how they are made, what they show at first, how a person types into them).
BELOW = {
    "documents": (
        lambda show, find=fit: OwnDocuments("a", find=clusters_of(find), threshold=0.5, show=show),
        "{} at 0.50",
        lambda own, text: setattr(own.text, "value", text),
    ),
    "pair": (
        lambda show, find=fit: OwnPair("a", "b", compare=lambda a, b: f"{find(a)} and {b}", show=show),
        "{} and b",
        lambda own, text: setattr(own.first, "value", text),
    ),
}


@pytest.mark.parametrize("name", BELOW)
def test_the_answer_is_shown_below_at_once_and_after_each_click(name):
    make, form, write = BELOW[name]
    shown = []
    own = make(shown.append)
    assert shown == [], "nothing is asked before it is shown"
    own.show()
    assert shown == [form.format("a")]
    write(own, "c")
    assert len(shown) == 1, "typing alone asks nothing"
    own.button.click()
    assert (shown[1:], own.message.value, own.button.disabled) == ([form.format("c")], "", False)
    write(own, HOSTILE)
    own.button.click()
    assert (len(shown), own.message.value, own.button.disabled) == (2, MISTAKE, False)
    write(own, "d")
    own.button.click()
    assert (shown[2:], own.message.value) == ([form.format("d")], "")


@pytest.mark.parametrize("name", BELOW)
def test_without_a_person_a_mistake_stops_the_run(name):
    make, _, write = BELOW[name]
    own = make(lambda html: None)
    write(own, "!")
    with pytest.raises(ValueError, match="does not\nfit"):
        own.show()


@pytest.mark.parametrize("name", BELOW)
def test_a_bar_moves_in_the_message_and_is_gone_afterwards(name, capsys):
    messages = []

    def find(text):
        for done in range(3):
            print(f"\rscoring: {done} <pairs>", end="")
            messages.append((own.message.value, own.button.disabled))
        print()
        return text

    own = BELOW[name][0](lambda html: None, find)
    own.button.click()
    lines = [f'<code style="white-space:pre-wrap">scoring: {n} &lt;pairs&gt;</code>' for n in range(3)]
    assert messages == [(line, True) for line in lines]
    assert own.message.value == ""
    own.show()
    assert len(messages) == 6
    assert "scoring" not in capsys.readouterr().out


def test_the_slider_draws_again_without_reading_again():
    shown, read = [], []
    own = BELOW["documents"][0](shown.append, lambda text: read.append(text) or text)
    own.threshold.value = 0.3
    assert shown == [], "nothing was read yet"
    own.show()
    own.threshold.value = 0.7
    assert (shown, read) == (["a at 0.30", "a at 0.70"], ["a"])


def test_boxes_of_a_pair_have_names():
    pair = BELOW["pair"][0](None)
    assert [box.description for box in (pair.first, pair.second)] == ["first document", "second document"]
    assert pair.button.description == "Compare"


def test_what_is_chosen_in_the_explorer_is_drawn_by_a_click():
    shown, chosen = [], ["fire"]

    def draw(model, view, direction):
        if not chosen:
            raise ValueError("choose words <first>")
        return f"{model}, {view}, {direction}: {chosen[0]}"

    own = ChosenSentences(draw, models=["Longformer", "CDLM"], show=shown.append)
    own.show()
    own.model.value, own.view.value, own.direction.value = "Longformer", "model", "to"
    assert shown == ["CDLM, head, from: fire"], "nothing is drawn unasked"
    own.button.click()
    assert (shown[1:], own.message.value) == (["Longformer, model, to: fire"], "")
    chosen.clear()
    own.button.click()
    assert "choose words &lt;first&gt;" in own.message.value
    assert (len(shown), own.button.disabled) == (2, False), "the picture stays"
    own.show()
    assert "choose words &lt;first&gt;" in shown[2], "a run without a person goes on"
    assert own.button.layout.flex == "0 0 auto", "its words are not cut where room is short"
    assert own.box.children[0].layout.flex_flow == "row wrap"
