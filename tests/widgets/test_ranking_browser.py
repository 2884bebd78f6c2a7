"""Choosing ranked questions by what became of them, under one system and then under another."""

import pytest

from cdlm_lab.widgets.browse import EMPTY, RankingBrowser, ranking_browser
from cdlm_lab.widgets.rankings import ReadRanking

HIGH, LOW = 2.0, -2.0  # of the right candidate, which comes second; all others have 0


def read(number, candidates, *, pairwise, joint, ae=LOW, known=True):
    def scores(score):
        return (0.0, score, *(0.0,) * (candidates - 2))

    return ReadRanking(
        id=f"q{number}",
        question=f"Question {number}?",
        candidates=tuple(f"candidate {place}" for place in range(candidates)),
        right=(False, True, *(False,) * (candidates - 2)) if known else None,
        scores={"pairwise": scores(pairwise), "joint IE_k": scores(joint), "joint AE_k": scores(ae)},
    )


READS = [
    read(0, 5, pairwise=LOW, joint=HIGH),
    read(1, 6, pairwise=HIGH, joint=LOW),
    read(2, 20, pairwise=HIGH, joint=HIGH, ae=HIGH),
    read(3, 21, pairwise=LOW, joint=LOW, ae=HIGH),
    read(4, 10, pairwise=LOW, joint=HIGH),
    read(5, 2, pairwise=LOW, joint=HIGH, known=False),
]


def entries(browser, name):
    return [label for label, _ in browser.leafing.filters[name].options]


def listed(browser):
    return [number for _, number in browser.leafing.picker.options]


def shown(browser):
    """Number of the question in sight; None = none."""
    numbers = [number for number, one in enumerate(READS) if one.question in browser.ranking.value]
    assert len(numbers) <= 1
    return numbers[0] if numbers else None


def test_it_begins_with_all_questions_and_the_first():
    browser = RankingBrowser(READS)
    assert [name for name, _ in browser.system.options] == ["joint IE_k", "joint AE_k", "pairwise"]
    assert browser.system.value == "joint IE_k"
    assert entries(browser, "answer") == [
        *("all (6)", "repaired (2)", "broken (1)", "both right (1)", "both wrong (1)")
    ]
    assert entries(browser, "candidates") == [
        *("all (6)", "up to 5 (2)", "6 to 10 (2)", "11 to 20 (1)", "more than 20 (1)")
    ]
    assert [label for label, _ in browser.leafing.picker.options] == [
        "\u2713 1. Question 0?",
        "\u2717 2. Question 1?",
        "\u2713 3. Question 2?",
        "\u2717 4. Question 3?",
        "\u2713 5. Question 4?",
        "\u00b7 6. Question 5?",
    ]
    assert shown(browser) == 0
    assert "<b>repaired</b>" in browser.ranking.value


@pytest.mark.parametrize(
    ("choice", "numbers"),
    [
        ({"answer": "repaired"}, [0, 4]),
        ({"answer": "broken"}, [1]),
        ({"answer": "both right"}, [2]),
        ({"answer": "both wrong"}, [3]),
        ({"candidates": "up to 5"}, [0, 5]),
        ({"candidates": "6 to 10"}, [1, 4]),
        ({"candidates": "11 to 20"}, [2]),
        ({"candidates": "more than 20"}, [3]),
        ({"answer": "repaired", "candidates": "6 to 10"}, [4]),
        ({"answer": "broken", "candidates": "more than 20"}, []),
    ],
)
def test_lists_choose_together(choice, numbers):
    browser = RankingBrowser(READS)
    for name, entry in choice.items():
        browser.leafing.filters[name].value = entry
    assert listed(browser) == numbers
    assert shown(browser) == (numbers[0] if numbers else None)
    assert (browser.ranking.value == EMPTY) == (not numbers)


def test_another_system_has_its_own_outcomes_and_the_question_stays():
    browser = RankingBrowser(READS)
    browser.leafing.picker.value = 3
    assert "<b>both wrong</b>" in browser.ranking.value
    browser.system.value = "joint AE_k"
    assert shown(browser) == 3
    assert "<b>repaired</b>" in browser.ranking.value
    assert entries(browser, "answer") == [
        *("all (6)", "repaired (1)", "broken (1)", "both right (1)", "both wrong (2)")
    ]
    browser.leafing.next.click()
    assert shown(browser) == 4
    assert "<b>both wrong</b>" in browser.ranking.value


def test_the_choice_stays_under_another_system():
    browser = RankingBrowser(READS)
    browser.leafing.filters["answer"].value = "both wrong"
    browser.system.value = "joint AE_k"
    assert browser.leafing.filters["answer"].value == "both wrong"
    assert (listed(browser), shown(browser)) == ([0, 4], 0)
    assert ranking_rows(browser) == [*browser.leafing.rows]
    browser.leafing.filters["candidates"].value = "more than 20"
    browser.system.value = "joint IE_k"
    assert (listed(browser), shown(browser)) == ([3], 3)
    browser.leafing.filters["candidates"].value = "11 to 20"
    browser.system.value = "joint AE_k"
    assert (listed(browser), browser.ranking.value) == ([], EMPTY)


def ranking_rows(browser):
    """The rows of controls in the box, without the list of systems and the question."""
    first, *rows, last = browser.box.children
    assert (first, last) == (browser.system, browser.ranking)
    return rows


def test_the_system_beside_can_be_read_alone():
    browser = RankingBrowser(READS)
    browser.system.value = "pairwise"
    assert entries(browser, "answer") == [
        *("all (6)", "repaired (0)", "broken (0)", "both right (2)", "both wrong (3)")
    ]
    assert "first by" not in browser.ranking.value


def test_another_system_beside():
    browser = RankingBrowser(READS, beside="joint IE_k")
    assert [name for name, _ in browser.system.options] == ["pairwise", "joint AE_k", "joint IE_k"]
    assert "first by <bdi>joint IE_k</bdi>" in browser.ranking.value
    assert "<b>broken</b>" in browser.ranking.value


def test_lines_of_the_list():
    long = ReadRanking(
        id="long",
        question=f"Why\u202e\n {'so ' * 40}<b>?",
        candidates=("a",),
        right=(True,),
        scores={"pairwise": (0.0,), "j\u202e": (0.0,)},
    )
    browser = RankingBrowser([long])
    (line, _), (name, _) = browser.leafing.picker.options[0], browser.system.options[0]
    assert line.startswith("\u2713 1. Why\u2039U+202E\u203a so so")
    assert line.endswith("\u2026")
    assert len(line) <= 5 + 90
    assert name == "j\u2039U+202E\u203a"


def test_the_box_holds_systems_lists_and_question():
    system, filters, leafing, ranking = ranking_browser(READS).children
    assert system.description == "system"
    assert [part.description for part in filters.children] == ["answer", "candidates"]
    assert len(leafing.children) == 4
    assert "Question 0?" in ranking.value


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="there is no question to show: reads is empty"):
        ranking_browser([])
    with pytest.raises(ValueError, match="no scores of 'own'; choose from pairwise, joint IE_k, joint AE_k"):
        ranking_browser(READS, beside="own")
    other = ReadRanking(id="x", question="?", candidates=("a",), right=None, scores={"pairwise": (0.0,)})
    with pytest.raises(ValueError, match="question 'x' has scores of pairwise, the first of pairwise, joint"):
        ranking_browser([*READS, other])
