"""Choosing tagged sentences, leafing through them, and choosing a word of one."""

from dataclasses import replace

import pytest

from cdlm_lab.widgets.browse import EMPTY_TAGGED as EMPTY
from cdlm_lab.widgets.browse import TaggedBrowser, tagged_browser
from cdlm_lab.widgets.tagged import ReadOccurrence, ReadSentence, ReadWord


def word(text, gold, predicted, weights=(0.25, 0.75)):
    """A word with occurrences in sentences 100, 101, ..., one for each weight."""
    found = tuple(
        ReadOccurrence(words=(text, "there"), place=0, distance=9, weight=weight, sentence=100 + number)
        for number, weight in enumerate(weights)
    )
    return ReadWord(word=text, gold=gold, predicted=predicted, occurrences=found)


def sentence(number, *words, document="novel"):
    return ReadSentence(document=document, number=number, words=words)


READS = [
    sentence(0, word("zero", "O", "O"), word(",", "O", "O")),
    sentence(4, word("one", "B-PER", "B-PER"), word("and", "O", "O", (1.0,))),
    sentence(7, word("two", "B-PER", "O"), word("more", "I-PER", "B-GPE", (0.1, 0.2, 0.3))),
    sentence(2, word("three", "O", "B-GPE"), document="paper <b>"),
    sentence(3, word("four", None, "B-GPE", ()), word("five", None, "O", ()), document="all"),
]


def entries(part):
    return [label for label, _ in part.options]


def listed(browser):
    return [number for _, number in browser.picker.options]


def heading(browser):
    """The word of which occurrences are shown, None = none are."""
    _, found, rest = browser.sentence.value.partition('<bdi style="font-weight:600;overflow-wrap:anywhere">')
    return rest.partition("<")[0] if found else None


def test_it_begins_with_all_sentences_and_the_first():
    browser = TaggedBrowser(READS)
    assert entries(browser.filters["show"]) == ["all (5)", "wrong (2)", "right (2)", "with entities (4)"]
    assert entries(browser.filters["document"]) == [
        *("all (5)", "1. novel (3)", "2. paper <b> (1)", "3. all (1)")
    ]
    assert entries(browser.picker) == [
        "\u2713 1. zero,",
        "\u2713 2. one and",
        "\u2717 3. two more",
        "\u2717 4. three",
        "\u00b7 5. four five",
    ]
    assert "novel</bdi>, sentence 1<" in browser.sentence.value
    assert browser.position.value == "1 of 5"


@pytest.mark.parametrize(
    ("choice", "numbers"),
    [
        ({"show": "wrong"}, [2, 3]),
        ({"show": "right"}, [0, 1]),
        ({"show": "with entities"}, [1, 2, 3, 4]),
        ({"document": "1. novel"}, [0, 1, 2]),
        ({"document": "3. all"}, [4]),
        ({"show": "wrong", "document": "1. novel"}, [2]),
        ({"show": "wrong", "document": "3. all"}, []),
    ],
)
def test_lists_choose_together(choice, numbers):
    browser = TaggedBrowser(READS)
    for name, entry in choice.items():
        browser.filters[name].value = entry
    assert listed(browser) == numbers
    assert (browser.sentence.value == EMPTY) == (not numbers)
    if not numbers:
        assert "No sentence is like that" in EMPTY
        assert (browser.words.options, browser.words.disabled) == ((), True)


def test_the_words_are_those_of_the_sentence():
    browser = TaggedBrowser(READS)
    browser.picker.value = 2
    assert entries(browser.words) == [
        "1. two \u00b7 O \u00b7 2 elsewhere",
        "2. more \u00b7 B-GPE \u00b7 3 elsewhere",
    ]
    assert (browser.words.value, heading(browser)) == (1, "more")
    browser.words.value = 0
    assert heading(browser) == "two"
    browser.next.click()
    assert (browser.words.value, heading(browser)) == (0, "three")


def test_a_sentence_without_entities_lets_choose_a_word():
    browser = TaggedBrowser(READS)
    assert (browser.words.value, heading(browser)) == (None, None)
    assert browser.words.index == 0, "a list without an index is shown empty"
    assert entries(browser.words)[:2] == ["choose a word", "1. zero \u00b7 O \u00b7 2 elsewhere"]
    browser.words.value = 1
    assert heading(browser) == ","
    browser.words.value = None
    assert heading(browser) is None


def test_the_chosen_word_stays_while_the_sentence_does():
    browser = TaggedBrowser(READS)
    browser.picker.value = 2
    browser.words.value = 0
    drawn = []
    browser.sentence.observe(lambda change: drawn.append(change.new), names="value")
    browser.filters["show"].value = "wrong"
    assert (browser.words.value, heading(browser), drawn) == (0, "two", [])
    browser.filters["show"].value = "right"
    assert len(drawn) == 1


def test_one_drawing_for_each_sentence():
    browser = TaggedBrowser(READS)
    drawn = []
    browser.sentence.observe(lambda change: drawn.append(change.new), names="value")
    for number in (1, 2, 4):
        browser.picker.value = number
    assert len(drawn) == 3


def test_a_model_that_attends_to_nothing():
    browser = TaggedBrowser(READS)
    browser.picker.value = 4
    assert browser.words.disabled
    assert heading(browser) is None
    browser.previous.click()
    assert not browser.words.disabled


def test_labels_have_one_colour_in_all_sentences():
    browser = TaggedBrowser(READS)
    colours = []
    for number, label in ((1, "PER"), (3, "GPE")):
        browser.picker.value = number
        mark = browser.sentence.value.partition('<mark style="background:')[2]
        assert f">{label} " in mark
        colours.append(mark[:7])
    assert colours[0] != colours[1], "each is the first label of its sentence"


def test_lines_of_the_lists():
    long = sentence(0, word("so\u202e\n" * 60, "O", "B-<b>"), document="d\u202e " * 60)
    browser = TaggedBrowser([long, replace(long, document=long.document + "!")])
    (line, _), (label, _) = browser.picker.options[0], browser.words.options[0]
    documents = entries(browser.filters["document"])
    for text in (line, label, *documents):
        assert "\u202e" not in text
        assert "\n" not in text
    assert line.startswith("\u2717 1. so\u2039U+202E\u203a so")
    assert len(line) <= 5 + 90
    assert label.endswith("\u2026 \u00b7 B-<b> \u00b7 2 elsewhere")
    assert documents[1].startswith("1. d\u2039U+202E\u203a")
    assert all(len(text) <= 3 + 40 + 4 for text in documents)
    assert len(set(documents)) == 3, "long names that begin alike stay apart"


def test_the_box_holds_lists_words_and_sentence():
    filters, leafing, words, shown = tagged_browser(READS).children
    assert [part.description for part in filters.children] == ["show", "document"]
    assert filters.children[0].layout.width == "205px"
    assert len(leafing.children) == 4
    assert words.description == "word"
    assert "zero" in shown.value
    with pytest.raises(ValueError, match="there is no sentence to show: reads is empty"):
        tagged_browser([])
