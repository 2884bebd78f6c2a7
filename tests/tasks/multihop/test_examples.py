"""A question and its paragraphs in tokens, and in one sequence."""

import copy
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from cdlm_lab.data.records import MultihopQuestion, Paragraph
from cdlm_lab.encoders.encoder import byte_level_tokenizer
from cdlm_lab.tasks.multihop.examples import (
    NO_SENTENCE,
    QUESTION_MARKS,
    TITLE,
    QuestionMarks,
    QuestionSequence,
    encode_question,
    question_marks_of,
)


def with_marks(tokenizer):
    tokenizer.add_tokens(list(QUESTION_MARKS), special_tokens=True)
    return tokenizer


def without_prefix():
    """A byte-level tokenizer as RoBERTa's, but it adds no space in front of a text and trims no offsets."""
    made = byte_level_tokenizer(iter(["the fire the mayor New York the the fire"]), vocabulary=320)
    made.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.backend_tokenizer.post_processor = None
    return made


@pytest.fixture(scope="module", params=["shipped", "without prefix"])
def byte_level(request, shipped_question_tokenizer):
    return shipped_question_tokenizer if request.param == "shipped" else with_marks(without_prefix())


def question(
    *paragraphs: tuple[str, tuple[str, ...]], text: str = "Who?", name: str = "q"
) -> MultihopQuestion:
    made = tuple(Paragraph(title=title, sentences=tuple(sentences)) for title, sentences in paragraphs)
    return MultihopQuestion(id=name, text=text, paragraphs=made)


def characters(text: str, offsets: np.ndarray) -> list[str]:
    return [text[start:end] for start, end in offsets.tolist()]


def test_a_question_in_tokens_by_hand(tokenizer):
    record = question((" w1 w2", ("w3  w4 ", " w5.", "", "\n", " w6")), text=" w7 w8 ")
    result = encode_question(record, tokenizer)
    (only,) = result.paragraphs
    ids = (result.question_ids, only.title_ids, only.ids)
    assert [" ".join(tokenizer.convert_ids_to_tokens(one.tolist())) for one in ids] == [
        "w7 w8",
        "w1 w2",
        "w3 w4 w5 [UNK] w6",
    ]
    assert result.id == "q"
    assert only.title_offsets.tolist() == [[1, 3], [4, 6]]
    # "w3  w4  w5.\n w6"
    assert only.offsets.tolist() == [[0, 2], [4, 6], [8, 10], [10, 11], [13, 15]]
    assert only.sentence.tolist() == [0, 0, 1, 1, 4]
    (empty,) = encode_question(question(("", ("",))), tokenizer).paragraphs
    shapes = [array.shape for array in (empty.title_ids, empty.title_offsets, empty.ids, empty.offsets)]
    assert shapes == [(0,), (0, 2), (0,), (0, 2)]
    assert empty.sentence.shape == (0,)
    arrays = [
        *ids,
        *(getattr(one, name) for one in (only, empty) for name in ("title_offsets", "offsets", "sentence")),
    ]
    assert {array.dtype for array in [*arrays, empty.ids]} == {np.dtype(np.int32)}


def test_bytes_of_a_letter_have_all_of_it(byte_level):
    record = question(("Ž", (" žl  the fire,",)))
    (only,) = encode_question(record, byte_level).paragraphs
    result = characters(record.paragraphs[0].text, only.offsets)
    # The space in front of the sentence and the second of the two are tokens of their own, of no characters.
    assert byte_level.convert_ids_to_tokens(only.ids.tolist())[:5] == ["Ġ", "Å", "¾", "l", "Ġ"]
    assert result[:5] == ["", "ž", "ž", "l", ""]
    assert "".join(result[5:]) == "thefire,"
    assert only.offsets[:2].tolist() == [[1, 1], [1, 2]]
    assert set(characters("Ž", only.title_offsets)) == {"", "Ž"}


SIGNS = [
    "the", "fire", "New", "York", "žluť", "naïve", "北京", "🙂", "e\u0301", "1,000", "U.S.", "[s]", "<t>",
    "</doc-s>", ".", ",", "(", ")", "“", "’s", "-", "–", "_",
    " ", "  ", "\t", "\n", "\u00a0", "\u2009", "\u3000",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(SIGNS), max_size=9).map("".join)


def assert_offsets_are_of_the_tokens(tokens: list[bytes], text: str, offsets: np.ndarray) -> None:
    """Check that offsets ascend, have no white space around, match their tokens, and cover all text."""
    starts, ends = offsets.T
    assert (np.diff(starts) >= 0).all()
    assert ((starts >= 0) & (starts <= ends) & (ends <= len(text))).all()
    for token, own in zip(tokens, characters(text, offsets), strict=True):
        assert own == own.strip()
        if own:
            assert token.strip(b" ") in own.encode()
            # Longer than its token only if the token is a part of a letter.
            assert len(own) == 1 or own.encode() == token.lstrip(b" ")
        else:
            assert token.decode(errors="ignore").strip() == ""
    covered = {place for start, end in offsets.tolist() for place in range(start, end)}
    assert covered == {place for place, letter in enumerate(text) if letter.strip()}


def byte_tokens(tokenizer, ids: np.ndarray) -> list[bytes]:
    numbers = {chr(n): n for n in [*range(33, 127), *range(161, 173), *range(174, 256)]}
    rest = sorted(pre_tokenizers.ByteLevel.alphabet() - numbers.keys())
    numbers |= dict(zip(rest, sorted(set(range(256)) - set(numbers.values())), strict=True))
    tokens = tokenizer.convert_ids_to_tokens(ids.tolist())
    return [bytes(numbers[letter] for letter in token) for token in tokens]


@given(title=TEXTS, sentences=st.lists(TEXTS, min_size=1, max_size=4))
def test_the_characters_of_any_token(byte_level, title, sentences):
    record = question((title, sentences))
    (only,) = encode_question(record, byte_level).paragraphs
    assert_offsets_are_of_the_tokens(byte_tokens(byte_level, only.title_ids), title, only.title_offsets)
    tokens = byte_tokens(byte_level, only.ids)
    assert_offsets_are_of_the_tokens(tokens, record.paragraphs[0].text, only.offsets)
    borders = np.cumsum([0, *map(len, sentences)])
    for number in range(len(sentences)):
        own = only.offsets[only.sentence == number]
        assert ((own >= borders[number]) & (own <= borders[number + 1])).all()
        assert len(own) > 0 or not sentences[number].strip()


X = NO_SENTENCE


@pytest.fixture(scope="module")
def write(question_tokenizer, sequence_of):
    """Function that makes the sequence of a question with paragraphs (title, sentences)."""

    def write(text: str, *paragraphs: tuple[str, list[str]], max_length: int = 512) -> QuestionSequence:
        return sequence_of(question(*paragraphs, text=text, name="q7"), question_tokenizer, max_length)

    return write


@pytest.fixture(scope="module")
def words(question_tokenizer):
    """Function that returns the tokens of ids as one string."""
    return lambda ids: " ".join(question_tokenizer.convert_ids_to_tokens(np.asarray(ids).tolist()))


def test_a_sequence_by_hand(write, words):
    result = write("w1 w2", ("w10", ["w11 w12", "  w13"]), ("w20 w21", ["w22"]))
    assert words(result.input_ids) == (
        "[CLS] [q] w1 w2 [/q] "
        "<doc-s> <t> w10 </t> [s] w11 w12 [/s] [s] w13 [/s] </doc-s> "
        "<doc-s> <t> w20 w21 </t> [s] w22 [/s] </doc-s> [SEP]"
    )
    first, second = [0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0], [0, 1, 0, 0, 0, 1, 0, 0, 0, 0]
    assert result.global_attention_mask.tolist() == 5 * [1] + first + second
    assert result.paragraph.tolist() == [-1] * 5 + [0] * 12 + [1] * 9 + [-1]
    first, second = [X, X, TITLE, X, X, 0, 0, X, X, 1, X, X], [X, X, TITLE, TITLE, X, X, 0, X, X, X]
    assert result.sentence.tolist() == [X] * 5 + first + second
    offsets = [[0, 3], [0, 3], [4, 7], [9, 12], [0, 3], [4, 7], [0, 3]]  # the third is in "w11 w12  w13"
    assert result.offsets[result.sentence != X].tolist() == offsets
    assert not result.offsets[result.sentence == X].any()
    assert result.paragraph_positions.tolist() == [6, 18]
    assert result.sentence_positions.tolist() == [9, 13, 22]
    assert result.sentence_names.tolist() == [[0, 0], [0, 1], [1, 0]]
    assert result.lost_tokens == 0
    assert result.answerable.tolist() == (result.sentence != X).tolist()
    integers = [getattr(result, name) for name in QuestionSequence.__dataclass_fields__][:8]
    assert {array.dtype for array in integers} == {np.dtype(np.int64)}
    result = write("w1", ("w10", ["w11", "w12"]))
    assert {name: array.tolist() for name, array in result.inputs.items()} == {
        "input_ids": result.input_ids.tolist(),
        "global_attention_mask": [1, 1, 1, 1, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0],
        "answerable": [n in (6, 9, 12) for n in range(16)],
        "paragraph_positions": [5],
        "sentence_positions": [8, 11],
    }


def test_sentences_and_titles_without_tokens(write, words):
    result = write("w1", ("", [" ", "w2", ""]), ("w3", ["w4"]))
    assert words(result.input_ids) == (
        "[CLS] [q] w1 [/q] <doc-s> <t> </t> [s] w2 [/s] </doc-s> "
        "<doc-s> <t> w3 </t> [s] w4 [/s] </doc-s> [SEP]"
    )
    assert result.sentence_names.tolist() == [[0, 1], [1, 0]]
    assert result.offsets[result.sentence == 1].tolist() == [[1, 3]]
    assert result.lost_tokens == 0


# The frame of a question of 1 token and two paragraphs with titles of 1 token: 4 + 1 + 2 x 5 = 15.
LONG = [
    ("w10", ["w11 w12 w13", "w14 w15 w16", "w17 w18 w19"]),  # 15 tokens with marks
    ("w20", ["w21 w22", "w23"]),  # 7 tokens
]
TWO, SHORT = "[s] 11 12 13 [/s] [s] 14 15 16 [/s]", "[s] 21 22 [/s] [s] 23 [/s]"


@pytest.mark.parametrize(
    ("room", "first", "second", "tokens"),
    [
        (22, f"{TWO} [s] 17 18 19 [/s]", SHORT, 0),
        (21, f"{TWO} [s] 17 18 [/s]", SHORT, 1),
        # Room for marks alone is left unused.
        (19, TWO, SHORT, 3),
        (18, TWO, SHORT, 3),
        (16, "[s] 11 12 13 [/s] [s] 14 15 [/s]", SHORT, 4),
        # 13 tokens: 6 for the shorter one, whose second sentence needs 3 more than 4; 7 for the longer.
        (13, "[s] 11 12 13 [/s]", "[s] 21 22 [/s]", 7),
        (6, "[s] 11 [/s]", "[s] 21 [/s]", 10),
    ],
)
def test_what_is_cut(write, words, room, first, second, tokens):
    result = write("w1", *LONG, max_length=15 + room)
    assert words(result.input_ids).replace("w", "") == (
        f"[CLS] [q] 1 [/q] <doc-s> <t> 10 </t> {first} </doc-s> <doc-s> <t> 20 </t> {second} </doc-s> [SEP]"
    )
    assert result.lost_tokens == tokens


def test_no_room(write):
    assert len(write("w1", *LONG, max_length=21).input_ids) == 21
    message = (
        "question q7: max_length is 20; the question, its titles and one token of each paragraph need 21 "
        "with their marks; raise it or leave the question out"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        write("w1", *LONG, max_length=20)


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
