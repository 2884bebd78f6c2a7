"""The boxes for candidates of one's own: what clicking does, and what a person is told."""

import pytest

from cdlm_lab.widgets.ask import ANSWERS, EVIDENCE, OwnCandidates, own_candidates_box

LINES = "In 1958.\n\n  It is a cape. \r\n"


class Stage:
    """Boxes whose questions are kept; one with "!" in it cannot be answered."""

    def __init__(self, asked="When?", candidates=LINES, words=ANSWERS):
        self.asked = []
        self.own = OwnCandidates(self.answer, asked=asked, candidates=candidates, words=words)

    def answer(self, asked, candidates):
        self.asked.append((asked, candidates))
        assert self.own.button.disabled
        if "!" in asked:
            raise ValueError(f"{asked} does not\nfit")
        return f"<b>answer {len(self.asked)}</b>"

    def click(self):
        """Answer and message after a click."""
        self.own.button.click()
        assert not self.own.button.disabled
        return self.own.answer.value, self.own.message.value


def test_a_click_asks_with_one_candidate_of_each_line():
    stage = Stage(asked=" When? ")
    assert stage.asked == [], "nothing is asked before a click"
    assert stage.click() == ("<b>answer 1</b>", "")
    assert stage.asked == [("When?", ["In 1958.", "It is a cape."])]
    stage.own.candidates.value = "One alone"
    assert stage.click() == ("<b>answer 2</b>", "")
    assert stage.asked[1] == ("When?", ["One alone"])


def test_equal_lines_are_two_candidates():
    stage = Stage(candidates="a\na")
    stage.click()
    assert stage.asked[0][1] == ["a", "a"]


def test_a_mistake_is_one_line_of_text_and_nothing_is_lost():
    stage = Stage()
    stage.click()
    stage.own.asked.value = "!<script>x</script>"
    answer, message = stage.click()
    assert message == '<span style="color:#c22">!&lt;script&gt;x&lt;/script&gt; does not fit</span>'
    assert answer == "<b>answer 1</b>", "the answer before stays in sight"
    assert (stage.own.asked.value, stage.own.candidates.value) == ("!<script>x</script>", LINES)


@pytest.mark.parametrize(
    ("asked", "candidates", "words", "told"),
    [
        (" ", LINES, ANSWERS, "the question is empty; write one"),
        ("", LINES, EVIDENCE, "the claim is empty; write one"),
        ("When?", " \n", ANSWERS, "candidate answer:1: field text: the text is empty"),
        ("When?", " \n", ANSWERS, "write one candidate answer on each line"),
        ("So.", "", EVIDENCE, "write one sentence of evidence on each line"),
        ("When?", "a\nb\ud83d", ANSWERS, "candidate answer:2: field text: half a character (U+D83D)"),
    ],
)
def test_what_cannot_be_read_is_not_asked(asked, candidates, words, told):
    stage = Stage(asked, candidates, words)
    answer, message = stage.click()
    assert (answer, stage.asked) == ("", [])
    assert told in message


@pytest.mark.parametrize(
    ("words", "placeholder", "hint", "button"),
    [
        (ANSWERS, "your question", "One candidate answer on each line.", "Rank"),
        (EVIDENCE, "your claim", "One sentence of evidence on each line.", "Judge"),
    ],
)
def test_the_box_holds_all_parts(words, placeholder, hint, button):
    box = own_candidates_box(lambda asked, candidates: "", asked="Q", candidates="a\nb", words=words)
    assert [type(part).__name__ for part in box.children] == [
        *("Text", "HTML", "Textarea", "Button", "HTML", "HTML")
    ]
    first, told, second, clicked, *_ = box.children
    assert (first.value, first.placeholder, second.value) == ("Q", placeholder, "a\nb")
    assert (told.value, clicked.description) == (hint, button)


def test_an_answer_that_is_known_stands_there_at_once_and_is_not_asked_again():
    asked = []
    own = OwnCandidates(
        lambda question, candidates: asked.append(question) or "found",
        asked="When?",
        candidates="a",
        answered="<b>known</b>",
    )
    assert own.answer.value == "<b>known</b>"
    own.button.click()
    assert not asked
    own.candidates.value = "a\nb"
    own.button.click()
    assert (asked, own.answer.value) == (["When?"], "found")
