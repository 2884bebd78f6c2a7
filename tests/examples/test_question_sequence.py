"""Questions and their paragraphs in one sequence: the layout, what is global, what is cut.

Word n is `wn`, one id each, so that a text shows where it comes from.
"""

from __future__ import annotations

import copy
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.data.questions import MultihopQuestion, Paragraph
from cdlm_lab.examples.questions import (
    NO_SENTENCE,
    QUESTION_MARKS,
    QUESTION_TYPES,
    SPAN,
    TITLE,
    YES,
    QuestionMarks,
    QuestionSequence,
    question_marks_of,
)

X = NO_SENTENCE


@pytest.fixture(scope="module")
def write(question_tokenizer, sequence_of):
    """The sequence of a question, its paragraphs given as (title, sentences)."""

    def write(question: str, *paragraphs: tuple[str, list[str]], max_length: int = 512) -> QuestionSequence:
        record = MultihopQuestion(
            id="q7",
            text=question,
            paragraphs=tuple(Paragraph(title=t, sentences=tuple(s)) for t, s in paragraphs),
        )
        return sequence_of(record, question_tokenizer, max_length)

    return write


@pytest.fixture(scope="module")
def words(question_tokenizer):
    """The tokens of ids, as one string."""
    return lambda ids: " ".join(question_tokenizer.convert_ids_to_tokens(np.asarray(ids).tolist()))


def test_all_of_it_by_hand(write, words):
    found = write("w1 w2", ("w10", ["w11 w12", "  w13"]), ("w20 w21", ["w22"]))
    assert words(found.input_ids) == (
        "[CLS] [q] w1 w2 [/q] "
        "<doc-s> <t> w10 </t> [s] w11 w12 [/s] [s] w13 [/s] </doc-s> "
        "<doc-s> <t> w20 w21 </t> [s] w22 [/s] </doc-s> [SEP]"
    )
    assert found.global_attention_mask.tolist() == (
        5 * [1]
        + [0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]
        + [0, 1, 0, 0, 0, 1, 0, 0, 0, 0]
    )  # fmt: skip
    assert found.paragraph.tolist() == [-1] * 5 + [0] * 12 + [1] * 9 + [-1]
    assert found.sentence.tolist() == (
        [X] * 5
        + [X, X, TITLE, X, X, 0, 0, X, X, 1, X, X]
        + [X, X, TITLE, TITLE, X, X, 0, X, X, X]
    )  # fmt: skip
    assert found.offsets[found.sentence != X].tolist() == [
        [0, 3], [0, 3], [4, 7], [9, 12],  # "w11 w12  w13"
        [0, 3], [4, 7], [0, 3],
    ]  # fmt: skip
    assert not found.offsets[found.sentence == X].any()
    assert found.paragraph_positions.tolist() == [6, 18]
    assert found.sentence_positions.tolist() == [9, 13, 22]
    assert found.sentence_names.tolist() == [[0, 0], [0, 1], [1, 0]]
    assert (found.lost_sentences, found.lost_tokens) == ((0, 0), 0)
    assert found.answerable.tolist() == (found.sentence != X).tolist()
    integers = [getattr(found, name) for name in QuestionSequence.__dataclass_fields__][:8]
    assert {array.dtype for array in integers} == {np.dtype(np.int64)}


def test_what_a_model_reads(write):
    found = write("w1", ("w10", ["w11", "w12"]))
    assert {name: array.tolist() for name, array in found.inputs.items()} == {
        "input_ids": found.input_ids.tolist(),
        "global_attention_mask": [1, 1, 1, 1, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0],
        "answerable": [n in (6, 9, 12) for n in range(16)],
        "paragraph_positions": [5],
        "sentence_positions": [8, 11],
    }


def test_types_and_marks_are_numbered_as_they_are_named():
    assert (QUESTION_TYPES[SPAN], QUESTION_TYPES[YES]) == ("span", "yes")
    assert tuple(QuestionMarks.__dataclass_fields__) == (
        "question_start", "question_end", "title_start", "title_end", "sentence_start", "sentence_end",
    )  # fmt: skip
    assert QUESTION_MARKS == ("[q]", "[/q]", "<t>", "</t>", "[s]", "[/s]")


def test_marks_that_somebody_wrote_are_text(write, question_tokenizer):
    sign = "[s] </doc-s> [MASK] [/q] <t> w1"
    found = write(sign, (sign, [sign, "[s]"]), ("w2", ["w3 [/s]"]))
    ids = found.input_ids.tolist()
    assert [ids.count(question_tokenizer.convert_tokens_to_ids(mark)) for mark in QUESTION_MARKS] == [
        1,
        1,
        2,
        2,
        3,
        3,
    ]
    assert ids.count(question_tokenizer.convert_tokens_to_ids("</doc-s>")) == 2
    assert question_tokenizer.mask_token_id not in ids
    assert found.sentence_names.tolist() == [[0, 0], [0, 1], [1, 0]]
    assert len(found.paragraph_positions) == 2


def test_sentences_and_titles_without_tokens(write, words):
    found = write("w1", ("", [" ", "w2", ""]), ("w3", ["w4"]))
    assert words(found.input_ids) == (
        "[CLS] [q] w1 [/q] <doc-s> <t> </t> [s] w2 [/s] </doc-s> "
        "<doc-s> <t> w3 </t> [s] w4 [/s] </doc-s> [SEP]"
    )
    assert found.sentence_names.tolist() == [[0, 1], [1, 0]]
    assert found.offsets[found.sentence == 1].tolist() == [[1, 3]]
    assert (found.lost_sentences, found.lost_tokens) == ((2, 0), 0)


def test_white_space_is_no_answer(shipped_question_tokenizer, sequence_of):
    record = MultihopQuestion(id="q", text="?", paragraphs=(Paragraph(title="T", sentences=("a   b",)),))
    found = sequence_of(record, shipped_question_tokenizer)
    body = found.sentence == 0
    assert shipped_question_tokenizer.convert_ids_to_tokens(found.input_ids[body].tolist()) == [
        "Ġa",
        "Ġ",
        "Ġ",
        "Ġb",
    ]
    assert found.answerable[body].tolist() == [True, False, False, True]


# The frame of a question of 1 token and two paragraphs with titles of 1 token: 4 + 1 + 2 x 5 = 15.
LONG = [
    ("w10", ["w11 w12 w13", "w14 w15 w16", "w17 w18 w19"]),  # 15 tokens with marks
    ("w20", ["w21 w22", "w23"]),  # 7 tokens
]


@pytest.mark.parametrize(
    ("room", "first", "second", "lost", "tokens"),
    [
        (
            22,
            "[s] 11 12 13 [/s] [s] 14 15 16 [/s] [s] 17 18 19 [/s]",
            "[s] 21 22 [/s] [s] 23 [/s]",
            (0, 0),
            0,
        ),
        (21, "[s] 11 12 13 [/s] [s] 14 15 16 [/s] [s] 17 18 [/s]", "[s] 21 22 [/s] [s] 23 [/s]", (0, 0), 1),
        # Room for marks alone is left unused.
        (19, "[s] 11 12 13 [/s] [s] 14 15 16 [/s]", "[s] 21 22 [/s] [s] 23 [/s]", (1, 0), 3),
        (18, "[s] 11 12 13 [/s] [s] 14 15 16 [/s]", "[s] 21 22 [/s] [s] 23 [/s]", (1, 0), 3),
        (16, "[s] 11 12 13 [/s] [s] 14 15 [/s]", "[s] 21 22 [/s] [s] 23 [/s]", (1, 0), 4),
        # 13 tokens: 6 for the shorter one, whose second sentence needs 3 more than 4; 7 for the longer.
        (13, "[s] 11 12 13 [/s]", "[s] 21 22 [/s]", (2, 1), 7),
        (6, "[s] 11 [/s]", "[s] 21 [/s]", (2, 1), 10),
    ],
)
def test_what_is_cut(write, words, room, first, second, lost, tokens):
    found = write("w1", *LONG, max_length=15 + room)
    text = words(found.input_ids).replace("w", "")
    assert text == (
        f"[CLS] [q] 1 [/q] <doc-s> <t> 10 </t> {first} </doc-s> <doc-s> <t> 20 </t> {second} </doc-s> [SEP]"
    )
    assert (found.lost_sentences, found.lost_tokens) == (lost, tokens)


def test_no_room(write):
    assert len(write("w1", *LONG, max_length=21).input_ids) == 21
    message = (
        "question q7: max_length is 20; the question, its titles and one token of each paragraph need 21 "
        "with their marks; raise it or leave the question out"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        write("w1", *LONG, max_length=20)


PARAGRAPHS = st.lists(
    st.tuples(st.integers(0, 3), st.lists(st.integers(0, 6), min_size=1, max_size=5).filter(any)),
    min_size=1,
    max_size=4,
)


@given(PARAGRAPHS, st.integers(1, 4), st.integers(1, 140))
def test_whatever_is_kept_is_the_beginning_of_each_paragraph(write, question_tokenizer, sizes, asked, room):
    """Counts add up, nothing is too long, and a longer sequence never loses more."""
    count = iter(range(300))
    make = lambda size: " ".join(f"w{next(count)}" for _ in range(size))  # noqa: E731
    question = make(asked)
    texts = [(make(title), [make(size) for size in body]) for title, body in sizes]
    frame = 4 + asked + sum(4 + title for title, _ in sizes)
    least = frame + 3 * len(sizes)
    found, more = (write(question, *texts, max_length=least + extra) for extra in (room, room + 1))
    full = write(question, *texts)
    assert len(found.input_ids) <= min(least + room, len(full.input_ids))
    assert len(full.input_ids) == frame + sum(size + 2 * bool(size) for _, body in sizes for size in body)
    if len(full.input_ids) <= least + room:
        assert found.input_ids.tolist() == full.input_ids.tolist()
        assert found.lost_tokens == 0
    else:
        assert found.lost_tokens > 0
    for number, (title, sentences) in enumerate(texts):
        here = found.paragraph == number
        written = question_tokenizer.convert_ids_to_tokens(
            found.input_ids[here & (found.sentence >= 0)].tolist()
        )
        assert written == " ".join(sentences).split()[: len(written)]
        assert len(written) >= 1
        assert question_tokenizer.decode(found.input_ids[here & (found.sentence == TITLE)].tolist()) == title
        kept = sorted(set(found.sentence[here & (found.sentence >= 0)].tolist()))
        assert found.sentence_names[found.sentence_names[:, 0] == number, 1].tolist() == kept
        assert found.lost_sentences[number] == len(sentences) - len(kept)
        assert more.lost_sentences[number] <= found.lost_sentences[number]
    body = sum(size for _, sizes_of in sizes for size in sizes_of)
    assert int((found.sentence >= 0).sum()) + found.lost_tokens == body
    assert more.lost_tokens <= found.lost_tokens
    assert found.global_attention_mask.sum() == 3 + asked + len(sizes) + len(found.sentence_positions)


def test_marks_of_a_tokenizer(tokenizer, question_tokenizer):
    known = question_tokenizer.get_vocab()
    assert question_marks_of(question_tokenizer) == QuestionMarks(
        question_start=known["[q]"],
        question_end=known["[/q]"],
        title_start=known["<t>"],
        title_end=known["</t>"],
        sentence_start=known["[s]"],
        sentence_end=known["[/s]"],
    )
    with pytest.raises(ValueError, match=r"has no special token \[q\]: load it with"):
        question_marks_of(tokenizer)
    some = copy.deepcopy(tokenizer)
    some.add_tokens(list(QUESTION_MARKS[:4]), special_tokens=True)
    some.add_tokens(list(QUESTION_MARKS[4:]))  # as ordinary words
    with pytest.raises(ValueError, match=r"has no special token \[s\]: load it with"):
        question_marks_of(some)
