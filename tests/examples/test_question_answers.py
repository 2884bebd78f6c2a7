"""Where answers stand in a sequence: all occurrences in gold paragraphs, told as tokens."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.data.questions import MultihopQuestion, Paragraph
from cdlm_lab.examples.questions import TITLE, QuestionSequence, answer_positions


@pytest.fixture(scope="module")
def write(shipped_question_tokenizer, sequence_of):
    return lambda record, max_length=512: sequence_of(record, shipped_question_tokenizer, max_length)


@pytest.fixture(scope="module")
def found(write):
    """The places of an answer: (paragraph, "title" or number of the first token's sentence, text)."""

    def found(
        answer: str | None,
        *paragraphs: tuple[str, tuple[str, ...]],
        gold: tuple[int, ...] = (0,),
        max_length: int = 512,
    ) -> list[tuple[int, str | int, str]]:
        made = tuple(Paragraph(title=title, sentences=sentences) for title, sentences in paragraphs)
        supporting = tuple((made[number].title, 0) for number in gold)
        record = MultihopQuestion(id="q", text="The", paragraphs=made, answer=answer, supporting=supporting)
        sequence = write(record, max_length)
        positions = answer_positions(record, sequence)
        assert positions.dtype == np.int64
        assert positions.shape == (len(positions), 2)
        assert sequence.answerable[positions].all()
        return [place(record, sequence, *each) for each in positions.tolist()]

    return found


def place(
    record: MultihopQuestion, sequence: QuestionSequence, first: int, last: int
) -> tuple[int, str | int, str]:
    number, sentence = int(sequence.paragraph[first]), int(sequence.sentence[first])
    assert sequence.paragraph[last] == number
    assert (sequence.sentence[last] == TITLE) == (sentence == TITLE)
    paragraph = record.paragraphs[number]
    text = paragraph.title if sentence == TITLE else paragraph.text
    start, end = sequence.offsets[first, 0], sequence.offsets[last, 1]
    return number, "title" if sentence == TITLE else sentence, text[start:end]


FIRST = ("Mark Twain", ("Mark wrote it. ", "The Market knew Mark, or mark."))
SECOND = ("Hannibal", ("Twain was here; MARK was not.",))


def test_every_occurrence_in_gold_paragraphs(found):
    assert found("Mark", FIRST, SECOND) == [(0, "title", "Mark"), (0, 0, "Mark"), (0, 1, "Mark")]
    assert found("Twain", FIRST, SECOND, gold=(0, 1)) == [(0, "title", "Twain"), (1, 0, "Twain")]
    assert found("Twain", FIRST, SECOND, gold=(1,)) == [(1, 0, "Twain")]


def test_positions_by_hand(write, shipped_question_tokenizer):
    record = MultihopQuestion(
        id="q",
        text="The",
        paragraphs=(Paragraph(title="fire", sentences=("The fire, ", "the fire.")),),
        answer="fire",
        supporting=(("fire", 0),),
    )
    sequence = write(record)
    assert " ".join(shipped_question_tokenizer.convert_ids_to_tokens(sequence.input_ids.tolist())) == (
        "<s> [q] ĠThe [/q] <doc-s> <t> Ġfire </t> [s] ĠThe Ġfire , [/s] [s] Ġthe Ġfire . [/s] </doc-s> </s>"
    )
    assert answer_positions(record, sequence).tolist() == [[6, 6], [10, 10], [15, 15]]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("market", [(0, 1, "Market")]),  # whole words in any case
        ("mark", [(0, 1, "mark")]),  # the same case goes first
        ("Mark,", [(0, 1, "Mark,")]),
        ("wrote it. The", [(0, 0, "wrote it. The")]),  # over two sentences
        (" Mark \n Twain ", [(0, "title", "Mark Twain")]),
        ("was.here", []),
        ("Samuel", []),
        ("yes", []),
        (None, []),
    ],
)
def test_kinds_of_occurrences(found, answer, expected):
    assert found(answer, FIRST, SECOND) == expected


@pytest.mark.parametrize("answer", ["wain", "WAIN"])
def test_a_part_of_a_word_is_all_of_its_tokens(found, answer):
    [(number, where, text)] = found(answer, FIRST, SECOND)
    assert (number, where) == (0, "title")
    assert text in ("wain", "Twain")


def test_whole_words_in_any_paragraph_go_before_parts_in_another(found):
    inside = ("A", ("remarkable remarks",))
    assert found("mark", inside, SECOND, gold=(0, 1)) == [(1, 0, "MARK")]
    assert [n for n, _, _ in found("mark", inside, SECOND)] == [0, 0]


def test_without_gold_paragraphs_there_is_none(found):
    assert found("Mark", FIRST, gold=()) == []


def test_yes_as_a_word_is_no_span(found):
    assert found("no", ("no", ("no no",))) == []


def test_overlapping_occurrences(found):
    assert found("the fire the", ("A", ("the fire the fire the.",))) == [(0, 0, "the fire the")] * 2


def test_signs_are_taken_as_they_are(found):
    text = ("A", ("It cost $1,000 (or 1.000) in the U.S. of [s] a+b.",))
    for answer in ("$1,000", "(or 1.000)", "U.S.", "[s]", "a+b"):
        assert found(answer, text) == [(0, 0, answer)]
    assert found("1.000", text) == [(0, 0, "1.000")], "a dot is a dot"


def test_letters_of_several_bytes(found):
    text = ("Žofie Ň", (" Byla to  Žofie\u00a0Ň, ne žofie ň.",))
    assert found("Žofie Ň", text) == [(0, "title", "Žofie Ň"), (0, 0, "Žofie\u00a0Ň")]
    assert found("to Žofie", text) == [(0, 0, "to  Žofie")]


def test_what_is_cut_is_left_out(found):
    text = ("A", ("the fire the fire the fire ", "New York"))
    places = [len(found("fire", text, max_length=n)) for n in range(13, 24)]
    # [CLS] [q] The [/q] <doc-s> <t> A </t> ... </doc-s> [SEP] are 10; then [s], the, fire, the, ...
    assert places == [0, 1, 1, 2, 2, 3, 3, 3, 3, 3, 3]
    assert found("A", text, max_length=13) == [(0, "title", "A")]
    whole = found("the fire the fire the", text)
    assert whole == [(0, 0, "the fire the fire the")]
    assert found("the fire the fire the", text, max_length=16) == []
    assert found("the fire the fire the", text, max_length=17) == whole
    # That a whole word is cut does not make a part of one an answer.
    inside = ("A", ("bonfires the fire",))
    assert found("fire", inside) == [(0, 0, "fire")]
    assert found("fire", inside, max_length=15) == []


WORDS = ["New", "York", "new", "Newark", "x", "žluť", "(", ".", ",", " ", " ", "  ", "\u00a0"]


BODIES = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map("".join).filter(str.strip),
    min_size=1,
    max_size=3,
)


@given(BODIES, st.sampled_from(["New", "York", "New York", "žluť", "x", "(New"]), st.integers(0, 40))
def test_as_many_as_a_reader_counts(write, bodies, answer, cut):
    """Against a search place by place in the text with single spaces; then in a shorter sequence."""
    paragraph = Paragraph(title="T", sentences=tuple(bodies))
    record = MultihopQuestion(
        id="q", text="The", paragraphs=(paragraph,), answer=answer, supporting=(("T", 0),)
    )
    full = write(record)
    positions = answer_positions(record, full)
    text = f" {' '.join(paragraph.text.split())} "
    inside = lambda letter: letter.isalnum() or letter == "_"  # noqa: E731
    starts = [place for place in range(len(text)) if text.startswith(answer, place)]
    whole = [n for n in starts if not inside(text[n - 1]) and not inside(text[n + len(answer)])]
    if whole:
        assert len(positions) == len(whole)
        for first, last in positions.tolist():
            found = paragraph.text[full.offsets[first, 0] : full.offsets[last, 1]]
            assert answer in " ".join(found.split())
    shorter = write(record, max_length=13 + cut)
    # A letter of several bytes that is cut within has all of its characters still.
    there = shorter.offsets[shorter.sentence >= 0, 1].max()
    ends = full.offsets[positions[:, 1], 1]
    assert len(answer_positions(record, shorter)) == int((ends <= there).sum())
