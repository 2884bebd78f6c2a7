"""A question and its candidates in one sequence: tokens, types, positions and starts by hand."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.examples.candidates import JointLayout, joint_sequence
from cdlm_lab.examples.tokens import SpecialTokens, encode_pieces
from cdlm_lab.models.encoder import byte_level_tokenizer

SPECIAL = SpecialTokens(
    start=1, end=2, cls=3, sep=4, pad=0, mask=5, all_special=frozenset(range(6)), vocabulary_size=100
)
LAYOUT = JointLayout(sentences=4, length=4)
COMPACT = JointLayout(sentences=4, length=4, positions="compact")
# The question is too long by two pieces, candidate 1 fits to the piece, 2 is absent and 3 has no piece.
PIECES = ([10, 11, 12, 13, 14], np.array([20, 21, 22], dtype=np.int32), None, [])
CANDIDATES = st.lists(st.none() | st.lists(st.integers(6, 99), max_size=6), min_size=3, max_size=3)


def test_all_of_it_by_hand():
    found = joint_sequence(PIECES, layout=LAYOUT, special=SPECIAL)
    assert found.input_ids.tolist() == [3, 10, 11, 12, 4, 20, 21, 22, 4]
    assert found.token_type_ids.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 3]
    assert found.sentence.tolist() == found.token_type_ids.tolist()
    assert found.position_ids.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 12], "sentence 3 starts at 3 * 4"
    assert found.starts.tolist() == [0, 4, -1, 8]
    assert found.cut.tolist() == [2, 0, 0, 0]
    arrays = (found.input_ids, found.token_type_ids, found.position_ids, found.starts, found.cut)
    assert {array.dtype for array in arrays} == {np.dtype(np.int64)}


def test_short_sentences_leave_gaps_in_strided_positions_and_none_in_compact_ones():
    pieces = ([10], [20, 21], [30], None)
    strided = joint_sequence(pieces, layout=LAYOUT, special=SPECIAL)
    compact = joint_sequence(pieces, layout=COMPACT, special=SPECIAL)
    assert strided.position_ids.tolist() == [0, 1, 4, 5, 6, 8, 9]
    assert compact.position_ids.tolist() == [0, 1, 2, 3, 4, 5, 6]
    for name in ("input_ids", "token_type_ids", "starts", "cut"):
        assert getattr(strided, name).tolist() == getattr(compact, name).tolist()


def test_the_layout_of_the_paper():
    layout = JointLayout(sentences=6)
    assert (layout.length, layout.candidates, layout.tokens, layout.positions) == (64, 5, 384, "strided")
    full = joint_sequence([list(range(6, 100))] * 6, layout=layout, special=SPECIAL)
    assert full.position_ids.tolist() == list(range(384))
    assert full.starts.tolist() == [0, 64, 128, 192, 256, 320]
    assert full.cut.tolist() == [94 - 63] * 6


def _padded_positions(pieces: list) -> list[int]:
    """The paper's definition: pad each sentence to L, number all, take the numbers of what is no padding."""
    numbers = []
    for sentence, one in enumerate(pieces):
        row = [] if one is None else ["front", *one][: LAYOUT.length]
        padded = row + ["pad"] * (LAYOUT.length - len(row))
        first = sentence * LAYOUT.length
        numbers += [place for place, token in enumerate(padded, start=first) if token != "pad"]
    return numbers


@given(st.lists(st.integers(6, 99), max_size=6), CANDIDATES)
def test_a_sequence_is_the_padded_one_without_padding(question, candidates):
    pieces = [question, *candidates]
    found = joint_sequence(pieces, layout=LAYOUT, special=SPECIAL)
    assert found.position_ids.tolist() == _padded_positions(pieces)
    assert (found.token_type_ids == found.position_ids // LAYOUT.length).all()
    for number, one in enumerate(pieces):
        own = found.input_ids[found.sentence == number].tolist()
        assert own == ([] if one is None else [3 if number == 0 else 4, *one[:3]])
        assert found.cut[number] == (0 if one is None else len(one) - len(own) + 1)
        start = found.starts[number]
        assert start == -1 if one is None else found.position_ids[start] == number * LAYOUT.length


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sentences": 1}, "sentences is 1; a question and a candidate are 2"),
        ({"sentences": 2, "length": 1}, "length is 1; the front token and one of text need 2"),
        (
            {"sentences": 2, "positions": "padded"},
            "unknown positions 'padded'; choose one of strided, compact",
        ),
    ],
)
def test_messages_about_layouts(settings, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        JointLayout(**settings)


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ([[7], [8]], "there are 2 sentences; the layout has 4"),
        ([[7]] * 5, "there are 5 sentences; the layout has 4"),
        ([None, [7], [8], [9]], "sentence 0, the question or claim, is absent; only candidates may be"),
    ],
)
def test_messages_about_sentences(pieces, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        joint_sequence(pieces, layout=LAYOUT, special=SPECIAL)


def test_texts_are_tokenised_one_by_one(tokenizer):
    found = encode_pieces(["w1  w2", " w3\n", "   ", "[SEP] w4"], tokenizer)
    first = tokenizer.convert_tokens_to_ids("w1")
    assert [ids.tolist() for ids in found[:3]] == [[first, first + 1], [first + 2], []]
    assert tokenizer.sep_token_id not in found[3], "it is somebody's text"
    assert found[3][-1] == first + 3
    assert {ids.dtype for ids in found} == {np.dtype(np.int32)}
    assert encode_pieces([], tokenizer) == []


def test_a_byte_level_tokenizer_reads_the_first_word_as_within_a_text():
    tokenizer = byte_level_tokenizer(iter(["fire fire fire smoke smoke"]), vocabulary=300)
    tokenizer.backend_tokenizer.pre_tokenizer.add_prefix_space = False
    alone, twice, blank = encode_pieces(["fire", "fire fire", " "], tokenizer)
    assert twice.tolist() == [*alone, *alone]
    assert blank.tolist() == []
