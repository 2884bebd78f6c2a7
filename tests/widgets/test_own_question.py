"""The boxes for a question of one's own: what clicking does, and what a person is told."""

import pytest

from cdlm_lab.widgets.ask import OwnQuestion, own_question_box

DOCUMENTS = "== a ==\nOne.\n\n== b ==\nTwo."


class Stage:
    """Boxes whose questions are kept; a question with "!" in it cannot be answered."""

    def __init__(self, question: str = "Who?", documents: str = DOCUMENTS) -> None:
        self.asked: list[tuple[str, list[tuple[str, str]]]] = []
        self.while_busy = lambda: None
        self.own = OwnQuestion(self.answer, question=question, documents=documents)

    def answer(self, question, documents):
        self.asked.append((question, documents))
        assert self.own.button.disabled
        assert self.own.message.value == "reading\u2026"
        self.while_busy()
        if "!" in question:
            raise ValueError(f"{question} does not\nfit")
        return f"<b>answer {len(self.asked)}</b>"

    def click(self) -> tuple[str, str]:
        """Answer and message after a click."""
        self.own.button.click()
        assert not self.own.button.disabled
        return self.own.answer.value, self.own.message.value


def test_nothing_is_asked_before_a_click():
    stage = Stage()
    assert stage.asked == []
    assert (stage.own.question.value, stage.own.documents.value) == ("Who?", DOCUMENTS)


def test_a_click_asks_over_the_documents():
    stage = Stage()
    assert stage.click() == ("<b>answer 1</b>", "")
    assert stage.asked == [("Who?", [("a", "One."), ("b", "Two.")])]
    stage.own.question.value = "When?"
    assert stage.click() == ("<b>answer 2</b>", "")
    stage.own.documents.value = "Three."
    assert stage.click() == ("<b>answer 3</b>", "")
    assert stage.asked[1:] == [
        ("When?", [("a", "One."), ("b", "Two.")]),
        ("When?", [("document 1", "Three.")]),
    ]


def test_a_second_click_is_harmless():
    stage = Stage()
    stage.while_busy = stage.own.button.click
    assert stage.click() == ("<b>answer 1</b>", "")
    assert stage.click() == ("<b>answer 1</b>", "")  # one that waited until the first was done
    assert len(stage.asked) == 1


def test_a_mistake_is_one_line_of_text_and_nothing_is_lost():
    stage = Stage()
    stage.click()
    stage.own.question.value = "!<script>x</script>"
    answer, message = stage.click()
    assert message == '<span style="color:#c22">!&lt;script&gt;x&lt;/script&gt; does not fit</span>'
    assert answer == "<b>answer 1</b>", "the answer before stays in sight"
    assert (stage.own.question.value, stage.own.documents.value) == ("!<script>x</script>", DOCUMENTS)
    stage.own.question.value = "Where?"
    assert stage.click() == ("<b>answer 3</b>", "")


@pytest.mark.parametrize(
    ("question", "documents", "told"),
    [
        (" ", DOCUMENTS, "the question is empty; write one"),
        ("Who?", "", "documents:1: field text: the text is empty"),
        ("Who?", "One.\n== <i> ==\nTwo.", "documents:1: field text: text before the first heading"),
        ("Who?", "== <i> ==\n", "the document &lt;i&gt; has no text"),
    ],
)
def test_what_cannot_be_read_is_not_asked(question, documents, told):
    stage = Stage(question, documents)
    answer, message = stage.click()
    assert (answer, stage.asked) == ("", [])
    assert told in message
    assert (stage.own.question.value, stage.own.documents.value) == (question, documents)


def test_after_a_fault_of_the_program_the_button_works_again():
    stage = Stage()
    stage.while_busy = lambda: 1 / 0
    with pytest.raises(ZeroDivisionError):
        stage.own._on_click()
    assert not stage.own.button.disabled
    assert stage.own.message.value == ""


def test_the_box_holds_all_parts():
    box = own_question_box(lambda question, documents: "", question="Who?", documents="One.")
    assert [type(part).__name__ for part in box.children] == [
        *("Text", "HTML", "Textarea", "Button", "HTML", "HTML")
    ]
    assert [box.children[0].value, box.children[2].value] == ["Who?", "One."]
    assert "<code>== its title ==</code>" in box.children[1].value


def test_an_answer_that_is_known_stands_there_at_once_and_is_not_asked_again() -> None:
    asked = []
    parts = OwnQuestion(
        lambda question, documents: asked.append(question) or "found",
        question="Where?",
        documents="A town.",
        answered="<b>known</b>",
    )
    assert parts.answer.value == "<b>known</b>"
    parts.button.click()
    assert not asked
    parts.question.value = "When?"
    parts.button.click()
    assert asked == ["When?"]
    assert parts.answer.value == "found"
