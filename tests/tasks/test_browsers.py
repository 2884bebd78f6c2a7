"""The browsers of the tasks: which items pass, how many, what each list shows, and that no choice is lost."""

from dataclasses import replace

import pytest
import shown_reads as reads
from shown_reads import QUESTION, claim, question, ranking, sentence, word

from cdlm_lab.tasks.joint import claims_view
from cdlm_lab.tasks.joint.answers_view import RankingBrowser, ReadRanking
from cdlm_lab.tasks.joint.claims_view import ReadClaim
from cdlm_lab.tasks.multihop.view import question_browser
from cdlm_lab.tasks.tagging.view import tagged_browser

HIGH, LOW = 2.0, -2.0
QUESTIONS = [
    question(0, "bridge", answer=True, support=True),
    question(1, "bridge", answer=False, support=True),
    question(2, "comparison", answer=False, support=False),
    question(3, "comparison", answer=True, support=False),
    question(4, "bridge", answer=False, support=False),
    question(5, "", answer=None, support=None),
]
RANKINGS = [
    ranking(0, 5, pairwise=LOW, joint=HIGH),
    ranking(1, 6, pairwise=HIGH, joint=LOW),
    ranking(2, 20, pairwise=HIGH, joint=HIGH, ae=HIGH),
    ranking(3, 21, pairwise=LOW, joint=LOW, ae=HIGH),
    ranking(4, 10, pairwise=LOW, joint=HIGH),
    ranking(5, 2, pairwise=LOW, joint=HIGH, known=False),
]
CLAIMS = [
    claim(0, "supported", "supported"),
    claim(1, "refuted", "supported"),
    claim(2, "refuted", "refuted"),
    claim(3, "not enough info", "refuted"),
    claim(4, "refuted", None),
]
SENTENCES = [
    sentence(0, word("zero", "O", "O"), word(",", "O", "O")),
    sentence(4, word("one", "B-PER", "B-PER"), word("and", "O", "O", (1.0,))),
    sentence(7, word("two", "B-PER", "O"), word("more", "I-PER", "B-GPE", (0.1, 0.2, 0.3))),
    sentence(2, word("three", "O", "B-GPE"), document="paper <b>"),
    sentence(3, word("four", None, "B-GPE", ()), word("five", None, "O", ()), document="all"),
]


def ranking_browser(items, beside="pairwise"):
    return RankingBrowser(items, beside=beside)


def verdict_browser(items, shares="share"):
    return claims_view.verdict_browser(items, shares=shares)


# Kind -> (how it is made, the items, what is seen of each, what one is called).
MADE = {
    "question": (question_browser, QUESTIONS, [f"Question {n}?" for n in range(6)], "question"),
    "ranking": (ranking_browser, RANKINGS, [f"Question {n}?" for n in range(6)], "question"),
    "claim": (verdict_browser, CLAIMS, [f"Claim {n}." for n in range(5)], "claim"),
    "tagged": (tagged_browser, SENTENCES, [f"sentence {n}" for n in (1, 5, 8, 3, 4)], "sentence"),
}


def entries(part):
    return [label for label, _ in part.options]


def listed(browser):
    return [number for _, number in browser.picker.options]


def shown(browser, texts=MADE["question"][2]):
    """Return the index of the item that is shown; None = none."""
    numbers = [number for number, text in enumerate(texts) if text in reads.words_of(browser.view.value)]
    assert len(numbers) <= 1
    return numbers[0] if numbers else None


def choose(browser, **choice):
    for name, entry in choice.items():
        browser.filters[name].value = entry


SIGNED = ["all (6)", "right (2)", "wrong (3)"]
LABELS = ["supported", "refuted", "not enough info"]


@pytest.mark.parametrize(
    ("kind", "lists", "lines"),
    [
        (
            "question",
            {"answer": SIGNED, "support": SIGNED, "kind": ["all (6)", "bridge (3)", "comparison (2)"]},
            "\u2713\u2717\u2717\u2713\u2717\u00b7",
        ),
        (
            "ranking",
            {
                "answer": ["all (6)", "repaired (2)", "broken (1)", "both right (1)", "both wrong (1)"],
                "candidates": ["all (6)", "up to 5 (2)", "6 to 10 (2)", "11 to 20 (1)", "more than 20 (1)"],
            },
            "\u2713\u2717\u2713\u2717\u2713\u00b7",
        ),
        (
            "claim",
            {
                "verdict": ["all (5)", "right (2)", "wrong (2)"],
                "gold": ["all (5)", *(f"{x} ({n})" for x, n in zip(LABELS, (2, 2, 0), strict=True))],
                "predicted": ["all (5)", *(f"{x} ({n})" for x, n in zip(LABELS, (1, 3, 1), strict=True))],
            },
            "\u2713\u2717\u2713\u2717\u00b7",
        ),
        (
            "tagged",
            {
                "show": ["all (5)", "wrong (2)", "right (2)", "with entities (4)"],
                "document": ["all (5)", "1. novel (3)", "2. paper <b> (1)", "3. all (1)"],
            },
            "\u2713\u2713\u2717\u2717\u00b7",
        ),
    ],
)
def test_it_begins_with_all_items_and_the_first(kind, lists, lines):
    make, items, texts, noun = MADE[kind]
    browser = make(items)
    assert {name: entries(part) for name, part in browser.filters.items()} == lists
    assert [part.description for part in browser.filters.values()] == list(lists)
    assert listed(browser) == list(range(len(items)))
    starts = [f"{sign} {number}. " for number, sign in enumerate(lines, start=1)]
    assert [line[: len(start)] for line, start in zip(entries(browser.picker), starts, strict=True)] == starts
    assert ("zero," if kind == "tagged" else texts[0]) in entries(browser.picker)[0]
    assert texts[0] in reads.words_of(browser.view.value)
    assert browser.position.value == f"1 of {len(items)}"
    assert len(browser.children) == 4 + (kind == "ranking")
    assert browser.children[-1] is browser.view
    assert [browser.previous.tooltip, browser.next.tooltip] == [f"the {noun} before", f"the next {noun}"]
    with pytest.raises(ValueError, match=f"there is no {noun} to show: reads is empty"):
        make([])


@pytest.mark.parametrize(
    ("kind", "choice", "numbers"),
    [
        ("question", {"answer": "wrong", "support": "wrong", "kind": "bridge"}, [4]),
        ("question", {"answer": "right", "support": "wrong", "kind": "comparison"}, [3]),
        ("ranking", {"answer": "repaired"}, [0, 4]),
        ("ranking", {"answer": "repaired", "candidates": "6 to 10"}, [4]),
        ("ranking", {"answer": "broken", "candidates": "more than 20"}, []),
        ("claim", {"verdict": "wrong", "gold": "supported"}, [1]),
        ("claim", {"verdict": "right", "predicted": "not enough info"}, []),
        ("tagged", {"show": "with entities"}, [1, 2, 3, 4]),
        ("tagged", {"show": "wrong", "document": "1. novel"}, [2]),
        ("tagged", {"show": "wrong", "document": "3. all"}, []),
    ],
)
def test_lists_choose_together(kind, choice, numbers):
    make, items, texts, noun = MADE[kind]
    browser = make(items)
    choose(browser, **choice)
    assert listed(browser) == numbers
    assert shown(browser, texts) == (numbers[0] if numbers else None)
    assert browser.position.value == f"{min(1, len(numbers))} of {len(numbers)}"
    chosen = {name: part.value for name, part in browser.filters.items()}
    assert chosen == dict.fromkeys(browser.filters, "all") | choice
    nothing = f'No {noun} is like that; choose "all" in one of the lists above.'
    assert (nothing in browser.view.value) == (not numbers)


def test_counts_are_of_what_an_entry_would_leave_and_leafing_stops_at_the_ends():
    browser = question_browser(QUESTIONS)
    choose(browser, answer="wrong")
    assert {name: entries(part) for name, part in browser.filters.items()} == {
        "answer": ["all (6)", "right (2)", "wrong (3)"],
        "support": ["all (3)", "right (1)", "wrong (2)"],
        "kind": ["all (3)", "bridge (2)", "comparison (1)"],
    }
    ends = []
    for button in (browser.next, browser.next, browser.next, browser.previous):
        button.click()
        ends.append((shown(browser), browser.picker.value, browser.previous.disabled, browser.next.disabled))
    assert ends == [(2, 2, False, False), (4, 4, False, True), (4, 4, False, True), (2, 2, False, False)]
    browser.previous.click()
    browser.previous.click()
    assert (shown(browser), browser.previous.disabled) == (1, True)


def test_the_item_stays_if_it_is_among_those_chosen_and_each_choice_draws_at_most_once():
    browser = question_browser(QUESTIONS)
    browser.picker.value = 4
    drawn = []
    browser.view.observe(lambda change: drawn.append(change.new), names="value")
    for entry, position in (("wrong", "3 of 3"), ("all", "5 of 6")):
        choose(browser, answer=entry)
        assert (shown(browser), browser.picker.value, browser.position.value, drawn) == (4, 4, position, [])
    choose(browser, answer="right")
    assert len(drawn) == 1


def test_nothing_is_lost_by_a_choice_without_items():
    browser = question_browser(QUESTIONS)
    browser.picker.value = 1
    choose(browser, answer="wrong", support="right", kind="comparison")
    assert (browser.picker.value, browser.position.value) == (None, "0 of 0")
    assert [part.disabled for part in (browser.picker, browser.previous, browser.next)] == [True] * 3
    assert entries(browser.filters["kind"]) == ["all (1)", "bridge (1)", "comparison (0)"]
    for by in (-1, 1):  # a click that was under way
        browser._step(by)
    assert shown(browser) is None
    choose(browser, kind="all")
    assert (shown(browser), browser.picker.value, browser.picker.disabled) == (1, 1, False)
    assert [browser.filters[name].value for name in ("answer", "support")] == ["wrong", "right"]


LONG = f"So\u202e\n {'so ' * 40}<b>."


@pytest.mark.parametrize(
    ("kind", "item"),
    [
        ("question", replace(QUESTION, question=LONG, answer_em=True)),
        ("ranking", replace(RANKINGS[0], question=LONG)),
        ("claim", replace(CLAIMS[2], claim=LONG)),
        ("tagged", sentence(0, word(LONG, "O", "O"))),
    ],
)
def test_an_item_is_one_cut_line_of_the_list(kind, item):
    line, _ = MADE[kind][0]([item]).picker.options[0]
    assert line.startswith("\u2713 1. So\u2039U+202E\u203a so so")
    assert line.endswith("\u2026")
    assert len(line) <= 5 + 90
    assert "\n" not in line


def test_hidden_characters_show_in_names_of_labels_and_systems():
    label = "l\u202e"
    item = ReadClaim(id="", claim="C", evidence=(), probabilities={label: 1.0}, shares=None, gold=label)
    browser = verdict_browser([item])
    assert entries(browser.filters["gold"]) == ["all (1)", "l\u2039U+202E\u203a (1)"]
    choose(browser, predicted="l\u2039U+202E\u203a")
    assert listed(browser) == [0]
    scores = {"pairwise": (0.0,), "j\u202e": (0.0,)}
    item = ReadRanking(id="x", question="?", candidates=("a",), right=(True,), scores=scores)
    assert entries(ranking_browser([item]).system) == ["j\u2039U+202E\u203a", "pairwise"]
    assert "> weight<" in verdict_browser(CLAIMS, "weight").view.value


def test_another_system_has_its_own_outcomes_and_choice_and_question_stay():
    browser = ranking_browser(RANKINGS)
    assert entries(browser.system) == ["joint IE_k", "joint AE_k", "pairwise"]
    assert (browser.system.value, browser.system.description) == ("joint IE_k", "system")
    assert "<b>repaired</b>" in browser.view.value
    browser.picker.value = 3
    assert "<b>both wrong</b>" in browser.view.value
    browser.system.value = "joint AE_k"
    assert shown(browser) == 3
    assert "<b>repaired</b>" in browser.view.value
    outcomes = ["all (6)", "repaired (1)", "broken (1)", "both right (1)", "both wrong (2)"]
    assert entries(browser.filters["answer"]) == outcomes
    assert entries(browser.picker)[3] == "\u2713 4. Question 3?"
    choose(browser, answer="both wrong")
    assert (listed(browser), shown(browser)) == ([0, 4], 0)
    choose(browser, candidates="more than 20")
    browser.system.value = "joint IE_k"
    assert (listed(browser), shown(browser)) == ([3], 3)
    choose(browser, candidates="11 to 20")
    browser.system.value = "joint AE_k"
    assert (listed(browser), shown(browser)) == ([], None)


def test_the_system_beside():
    browser = ranking_browser(RANKINGS)
    browser.system.value = "pairwise"
    outcomes = ["all (6)", "repaired (0)", "broken (0)", "both right (2)", "both wrong (3)"]
    assert entries(browser.filters["answer"]) == outcomes
    assert "first by" not in browser.view.value, "it is read alone"
    browser = ranking_browser(RANKINGS, "joint IE_k")
    assert entries(browser.system) == ["pairwise", "joint AE_k", "joint IE_k"]
    assert "first by <bdi>joint IE_k</bdi>" in browser.view.value
    assert "<b>broken</b>" in browser.view.value


def test_labels_have_one_colour_and_names_are_cut_and_stay_apart():
    browser, colours = tagged_browser(SENTENCES), []
    for number, label in ((1, "PER"), (3, "GPE")):
        browser.picker.value = number
        mark = browser.view.value.partition('<mark style="background:')[2]
        assert f">{label} " in mark
        colours.append(mark[:7])
    assert colours[0] != colours[1], "each is the first label of its sentence"
    long = sentence(0, word("so\u202e\n" * 60, "O", "B-<b>"), document="d\u202e " * 60)
    browser = tagged_browser([long, replace(long, document=long.document + "!")])
    documents = entries(browser.filters["document"])
    assert documents[1].startswith("1. d\u2039U+202E\u203a")
    assert all(len(text) <= 3 + 40 + 4 for text in documents)
    assert len(set(documents)) == 3, "long names that begin alike stay apart"
    assert not {"\u202e", "\n"} & set("".join(documents))
