"""Where answers stand in gold paragraphs, in characters."""

import pytest

from cdlm_lab.data.questions import Paragraph, answer_occurrences

PARAGRAPHS = (
    Paragraph(title="Mark Twain", sentences=("Mark wrote it. ", "The Market knew Mark, or mark.")),
    Paragraph(title="Hannibal", sentences=("Twain was here; MARK was not.",)),
    Paragraph(title="A", sentences=("remarkable remarks",)),
)


def found(answer: str | None, *gold: int, paragraphs: tuple[Paragraph, ...] = PARAGRAPHS) -> list[tuple]:
    """The places, with the words that stand there in place of their end."""
    places = answer_occurrences(answer, paragraphs, gold=gold)
    text = {"title": lambda number: paragraphs[number].title, "body": lambda number: paragraphs[number].text}
    return [(number, part, start, text[part](number)[start:end]) for number, part, start, end in places]


def body(text: str) -> tuple[Paragraph, ...]:
    return (Paragraph(title="T", sentences=(text,)),)


def test_places_by_hand():
    assert answer_occurrences("Mark", PARAGRAPHS, gold=(0, 1)) == [
        (0, "title", 0, 4),
        (0, "body", 0, 4),
        (0, "body", 31, 35),
    ]


def test_only_paragraphs_that_are_gold_and_in_their_order():
    assert found("Twain", 0) == [(0, "title", 5, "Twain")]
    assert found("Twain", 1) == [(1, "body", 0, "Twain")]
    assert found("Twain", 1, 0) == [(1, "body", 0, "Twain"), (0, "title", 5, "Twain")]
    assert found("Twain") == []


@pytest.mark.parametrize(
    ("answer", "gold", "places"),
    [
        ("mark", (0,), [(0, "body", 40, "mark")]),  # whole, in its own case
        ("market", (0,), [(0, "body", 19, "Market")]),  # whole, in another
        ("mark", (1, 2), [(1, "body", 16, "MARK")]),  # which goes before parts of words, wherever they are
        ("mark", (2,), [(2, "body", 2, "mark"), (2, "body", 13, "mark")]),  # a part, in its own case
        ("arket", (0,), [(0, "body", 20, "arket")]),
        ("WAIN", (0, 1), [(0, "title", 6, "wain"), (1, "body", 1, "wain")]),  # a part, in another
        ("Samuel", (0, 1, 2), []),
    ],
)
def test_the_strictest_kind_that_there_is(answer, gold, places):
    assert found(answer, *gold) == places


def test_over_the_end_of_a_sentence_and_any_white_space():
    assert found("wrote it. The", 0) == [(0, "body", 5, "wrote it. The")]
    assert found(" Mark \n Twain ", 0) == [(0, "title", 0, "Mark Twain")]
    there = body("to  Žofie\u00a0Ň, to žofie ň")
    assert found("Žofie Ň", 0, paragraphs=there) == [(0, "body", 4, "Žofie\u00a0Ň")]
    assert found("was.here", 1) == []


def test_occurrences_that_overlap():
    there = body("the fire the fire the.")
    assert [start for _, _, start, _ in found("the fire the", 0, paragraphs=there)] == [0, 9]


@pytest.mark.parametrize("answer", ["$1,000", "(or 1.000)", "U.S.", "[s]", "a+b", "1.000"])
def test_signs_are_taken_as_they_are(answer):
    there = body("It cost $1,000 (or 1.000) in the U.S. of [s] a+b.")
    assert [text for *_, text in found(answer, 0, paragraphs=there)] == [answer]


@pytest.mark.parametrize("answer", [None, "", " ", "yes", "no"])
def test_what_no_words_of_the_paragraphs_answer(answer):
    assert found(answer, 0, paragraphs=(Paragraph(title="no", sentences=("yes, no ",)),)) == []


def test_yes_in_another_case_is_a_word():
    assert found("Yes", 0, paragraphs=body("Yes is a band.")) == [(0, "body", 0, "Yes")]
