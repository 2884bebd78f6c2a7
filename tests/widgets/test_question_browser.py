"""Choosing questions and leafing through them: which are chosen, how many, and what is not lost."""

from dataclasses import replace

import pytest

from cdlm_lab.data.questions import Paragraph
from cdlm_lab.widgets.browse import EMPTY, QuestionBrowser, question_browser
from cdlm_lab.widgets.questions import ReadQuestion

PLAIN = ReadQuestion(
    id="q",
    question="Who?",
    kind="bridge",
    gold_answer="A",
    answer="A",
    place=None,
    paragraphs=(Paragraph(title="t", sentences=("A.",)),),
    sentence_probabilities={(0, 0): 0.5},
    paragraph_probabilities=(0.5,),
    supporting=frozenset({(0, 0)}),
    gold_supporting=frozenset({(0, 0)}),
    answer_f1=1.0,
    answer_em=True,
    support_em=True,
    support_f1=1.0,
)


def read(number, kind, *, answer, support):
    return replace(
        PLAIN,
        id=f"q{number}",
        question=f"Question {number}?",
        kind=kind,
        answer_em=answer,
        support_em=support,
    )


READS = [
    read(0, "bridge", answer=True, support=True),
    read(1, "bridge", answer=False, support=True),
    read(2, "comparison", answer=False, support=False),
    read(3, "comparison", answer=True, support=False),
    read(4, "bridge", answer=False, support=False),
    read(5, "", answer=None, support=None),
]


def entries(browser, name):
    return [label for label, _ in browser.filters[name].options]


def listed(browser):
    return [number for _, number in browser.picker.options]


def shown(browser):
    """Number of the question in sight; None = none."""
    html = browser.question.value
    numbers = [number for number, one in enumerate(READS) if one.question in html]
    assert len(numbers) <= 1
    return numbers[0] if numbers else None


def test_it_begins_with_all_questions_and_the_first():
    browser = QuestionBrowser(READS)
    assert listed(browser) == [0, 1, 2, 3, 4, 5]
    assert shown(browser) == 0
    assert browser.position.value == "1 of 6"
    assert entries(browser, "answer") == ["all (6)", "right (2)", "wrong (3)"]
    assert entries(browser, "support") == ["all (6)", "right (2)", "wrong (3)"]
    assert entries(browser, "kind") == ["all (6)", "bridge (3)", "comparison (2)"]


@pytest.mark.parametrize(
    ("choice", "numbers"),
    [
        ({"answer": "right"}, [0, 3]),
        ({"answer": "wrong"}, [1, 2, 4]),
        ({"support": "right"}, [0, 1]),
        ({"support": "wrong"}, [2, 3, 4]),
        ({"kind": "bridge"}, [0, 1, 4]),
        ({"kind": "comparison"}, [2, 3]),
        ({"answer": "wrong", "support": "wrong"}, [2, 4]),
        ({"answer": "wrong", "support": "wrong", "kind": "bridge"}, [4]),
        ({"answer": "right", "support": "wrong", "kind": "comparison"}, [3]),
    ],
)
def test_lists_choose_together(choice, numbers):
    browser = QuestionBrowser(READS)
    for name, entry in choice.items():
        browser.filters[name].value = entry
    assert listed(browser) == numbers
    assert shown(browser) == numbers[0]
    assert browser.position.value == f"1 of {len(numbers)}"
    assert {name: part.value for name, part in browser.filters.items()} == {
        "answer": "all",
        "support": "all",
        "kind": "all",
    } | choice


def test_counts_are_of_what_an_entry_would_leave():
    browser = QuestionBrowser(READS)
    browser.filters["answer"].value = "wrong"
    assert entries(browser, "answer") == ["all (6)", "right (2)", "wrong (3)"]
    assert entries(browser, "support") == ["all (3)", "right (1)", "wrong (2)"]
    assert entries(browser, "kind") == ["all (3)", "bridge (2)", "comparison (1)"]


def test_the_question_stays_if_it_is_among_those_chosen():
    browser = QuestionBrowser(READS)
    browser.picker.value = 4
    assert shown(browser) == 4
    browser.filters["answer"].value = "wrong"
    assert (shown(browser), browser.picker.value, browser.position.value) == (4, 4, "3 of 3")
    browser.filters["answer"].value = "all"
    assert (shown(browser), browser.picker.value, browser.position.value) == (4, 4, "5 of 6")


def test_a_choice_draws_once():
    browser = QuestionBrowser(READS)
    browser.picker.value = 4
    drawn = []
    browser.question.observe(lambda change: drawn.append(change.new), names="value")
    browser.filters["answer"].value = "wrong"
    assert drawn == [], "the question stays, so there is nothing to draw"
    browser.filters["answer"].value = "right"
    assert len(drawn) == 1


def test_nothing_is_lost_by_a_choice_without_questions():
    browser = QuestionBrowser(READS)
    browser.picker.value = 1
    browser.filters["answer"].value = "wrong"
    browser.filters["support"].value = "right"
    browser.filters["kind"].value = "comparison"
    assert browser.question.value == EMPTY
    assert browser.picker.value is None
    assert [part.disabled for part in (browser.picker, browser.previous, browser.next)] == [True] * 3
    assert browser.position.value == "0 of 0"
    assert entries(browser, "kind") == ["all (1)", "bridge (1)", "comparison (0)"]
    browser.filters["kind"].value = "all"
    assert (shown(browser), browser.picker.value, browser.picker.disabled) == (1, 1, False)
    assert [browser.filters[name].value for name in ("answer", "support")] == ["wrong", "right"]


def test_leafing_stops_at_the_ends():
    browser = QuestionBrowser(READS)
    browser.filters["answer"].value = "wrong"
    ends = []
    for button in (browser.next, browser.next, browser.next, browser.previous):
        button.click()
        ends.append((shown(browser), browser.picker.value, browser.previous.disabled, browser.next.disabled))
    assert ends == [(2, 2, False, False), (4, 4, False, True), (4, 4, False, True), (2, 2, False, False)]
    browser.previous.click()
    browser.previous.click()
    assert (shown(browser), browser.previous.disabled) == (1, True)


def test_lines_of_the_list():
    long = replace(PLAIN, question=f"Why\u202e\n {'so ' * 40}<b>?", answer_em=None)
    browser = QuestionBrowser([PLAIN, replace(PLAIN, answer_em=False), long])
    first, second, third = [label for label, _ in browser.picker.options]
    assert [first, second] == ["\u2713 1. Who?", "\u2717 2. Who?"]
    assert third.startswith("\u00b7 3. Why\u2039U+202E\u203a so so")
    assert third.endswith("\u2026")
    assert len(third) <= 5 + 90


def test_the_box_holds_lists_and_question():
    filters, leafing, question = question_browser(READS).children
    assert [part.description for part in filters.children] == ["answer", "support", "kind"]
    assert len(leafing.children) == 4
    assert "Question 0?" in question.value
    with pytest.raises(ValueError, match="reads is empty"):
        question_browser([])
