"""Documents in one sequence: policies, losses, and documents of words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.data.records import CoreferenceDocument
from cdlm_lab.examples.packing import LossOfText, Packed, document_sequence, pack_documents
from cdlm_lab.examples.tokens import EncodedDocument, SpecialTokens

SPECIAL = SpecialTokens(
    start=0, end=1, cls=2, sep=3, pad=4, mask=5, all_special=frozenset(range(6)), vocabulary_size=1000
)
SIGNS = {0: "<", 1: ">", 2: "C", 3: "S"}


def documents(*lengths: int) -> list[np.ndarray]:
    """Document n has the tokens 100n+100, 100n+101, ..."""
    return [100 * (number + 1) + np.arange(length, dtype=np.int32) for number, length in enumerate(lengths)]


def packed(*lengths: int, max_length: int = 20, policy: str = "whole_documents") -> Packed:
    return pack_documents(documents(*lengths), max_length=max_length, policy=policy, special=SPECIAL)


def picture(example: Packed) -> str:
    """The sequence in signs: C and S frame it, < and > each document, letters a, b, c are text."""
    return "".join(SIGNS.get(token) or "abcdefgh"[token // 100 - 1] for token in example.input_ids.tolist())


NO_FIT, SHARE = "did not fit", "cut to share"
TOO_LONG = "first document longer than the budget"


@pytest.mark.parametrize(
    ("policy", "lengths", "max_length", "expected", "reasons"),
    [
        ("whole_documents", (3, 2, 1), 14, "C<aaa><bb><c>S", ("", "", "")),
        # b does not fit, so packing stops, although c would fit
        ("whole_documents", (3, 5, 1), 13, "C<aaa>S", ("", NO_FIT, NO_FIT)),
        ("whole_documents", (3, 2, 1), 13, "C<aaa><bb>S", ("", "", NO_FIT)),
        ("whole_documents", (9, 1), 8, "C<aaaa>S", (TOO_LONG, NO_FIT)),
        ("whole_documents", (4, 1), 8, "C<aaaa>S", ("", NO_FIT)),
        # 12 text tokens are 4 for each; b needs 1, so a and c share 11, the odd one going to a
        ("equal_share", (9, 1, 9), 20, "C<aaaaaa><b><ccccc>S", (SHARE, "", SHARE)),
        ("equal_share", (9, 1, 2), 20, "C<aaaaaaaaa><b><cc>S", ("", "", "")),
        ("equal_share", (3, 3, 3), 13, "C<aa><bb><c>S", (SHARE, SHARE, SHARE)),
        # one token for each needs 2 + 3 x 3 = 11
        ("equal_share", (3, 3, 3), 11, "C<a><b><c>S", (SHARE, SHARE, SHARE)),
        ("equal_share", (3, 3, 3), 10, "C<aa><bb>S", (SHARE, SHARE, NO_FIT)),
    ],
)
def test_pictures_and_reasons(policy, lengths, max_length, expected, reasons):
    example = packed(*lengths, max_length=max_length, policy=policy)
    assert (picture(example), example.reasons) == (expected, reasons)


def test_arrays_and_losses_of_one_example():
    example = packed(4, 1, 5, max_length=14, policy="whole_documents")
    signs = "C<aaaa><b>S"
    assert picture(example) == signs
    assert example.document.tolist() == [-1, 0, 0, 0, 0, 0, 0, 1, 1, 1, -1]
    assert example.is_special.tolist() == [sign in "C<>S" for sign in signs]
    assert (example.kept_tokens, example.lost_tokens) == ((4, 1, 0), (0, 0, 5))
    assert example.reasons == ("", "", NO_FIT)
    assert example.packed_documents == (0, 1)
    assert example.input_ids.dtype == example.document.dtype == np.int64


CASES = st.tuples(st.lists(st.integers(1, 60), min_size=1, max_size=8), st.integers(5, 200))


@given(case=CASES, policy=st.sampled_from(["whole_documents", "equal_share"]))
def test_every_policy_keeps_beginnings_and_accounts_for_every_token(case, policy):
    lengths, max_length = case
    example = packed(*lengths, max_length=max_length, policy=policy)
    assert len(example.input_ids) <= max_length
    for number, document in enumerate(documents(*lengths)):
        text = example.input_ids[(example.document == number) & ~example.is_special]
        assert text.tolist() == document[: example.kept_tokens[number]].tolist()
        assert example.kept_tokens[number] + example.lost_tokens[number] == len(document)
        assert bool(example.reasons[number]) == bool(example.lost_tokens[number])
    assert sum(example.kept_tokens) > 0
    everything = sum(lengths) + 2 * len(lengths) + 2
    assert (len(example.input_ids) == everything) == (everything <= max_length)
    if policy != "whole_documents":  # the budget is used up when there is text, less a frame without text
        assert len(example.input_ids) >= min(everything, max_length - 2)


@pytest.mark.parametrize(
    ("lengths", "arguments", "message"),
    [
        ((3,), {"policy": "greedy"}, "packing policy is 'greedy'; choose one of whole_documents,"),
        ((3,), {"max_length": 4}, "max_length is 4; a document with its special tokens needs at least 5"),
        ((), {}, "no documents to pack"),
        ((3, 0), {}, r"documents\[1\] is empty"),
    ],
)
def test_bad_input(lengths, arguments, message):
    with pytest.raises(ValueError, match=message):
        packed(*lengths, **arguments)


def test_loss_of_text_adds_up():
    examples = [
        packed(9, 1, max_length=8),  # keeps 4 of 9 and 0 of 1
        packed(3, 5, 1, max_length=13),  # keeps 3, loses 5 and 1
        packed(3, 2, 1, max_length=14),  # keeps all 6
    ]
    loss = LossOfText.over(iter(examples))
    assert (loss.examples, loss.documents, loss.tokens) == (3, 8, 10 + 9 + 6)
    assert loss.tokens_lost == {NO_FIT: 1 + 5 + 1, TOO_LONG: 5}
    assert loss.documents_touched == {NO_FIT: 3, TOO_LONG: 1}
    assert loss.share_lost == pytest.approx(12 / 25)
    assert sum(loss.tokens_lost.values()) + sum(sum(e.kept_tokens) for e in examples) == loss.tokens
    assert str(loss) == (
        "48.0% of 25 tokens in 8 documents were left out (did not fit: 7 tokens of 3 documents; "
        "first document longer than the budget: 5 tokens of 1 document)"
    )
    nothing = LossOfText.over([packed(3, max_length=9, policy="equal_share")])
    assert str(nothing) == "0.0% of 3 tokens in 1 document were left out"
    assert LossOfText.over([]).share_lost == 0


SIX = SpecialTokens(
    start=1, end=2, cls=3, sep=4, pad=0, mask=5, all_special=frozenset(range(6)), vocabulary_size=100
)


def encoded(name: str, *subwords: int, first: int = 10) -> EncodedDocument:
    """A document whose words have so many subwords each; its ids count up from `first`."""
    words = tuple(f"w{n}" for n in range(len(subwords)))
    spans = {"sentences": ((0, len(words)),), "validated": (0,)}
    record = CoreferenceDocument(id=name, topic="t", subtopic="t", tokens=words, **spans)
    starts = np.cumsum([0, *subwords])
    return EncodedDocument(document=record, input_ids=np.arange(first, first + starts[-1]), starts=starts)


def test_documents_of_words_by_hand():
    result = document_sequence([encoded("a", 1, 2), encoded("b", 3, first=20)], special=SIX, max_length=50)
    assert result.input_ids.tolist() == [3, 1, 10, 11, 12, 2, 1, 20, 21, 22, 2, 4]
    assert result.document.tolist() == [-1, -1, 0, 0, 0, -1, -1, 1, 1, 1, -1, -1]
    assert result.word.tolist() == [-1, -1, 0, 1, 1, -1, -1, 0, 0, 0, -1, -1]
    assert result.lost_tokens == (0, 0)
    assert result.positions(0, (1, 2)).tolist() == [3, 4]
    assert result.positions(1, (0, 1)).tolist() == [7, 8, 9]
    assert result.word_numbers([2, 1]).tolist() == [-1, -1, 0, 1, 1, -1, -1, 2, 2, 2, -1, -1]


def test_what_is_too_long_loses_its_end_or_what_is_far_from_its_span():
    two = [encoded("a", *[1] * 9), encoded("b", 1, first=20)]
    result = document_sequence(two, special=SIX, max_length=10)
    assert result.input_ids.tolist() == [3, 1, 10, 11, 12, 2, 1, 20, 2, 4]
    assert result.lost_tokens == (6, 0)
    assert result.positions(0, (8, 9)).tolist() == []
    # centred on the span, and shifted at the borders
    for span, kept in (((0, 1), [0, 1, 2]), ((4, 5), [3, 4, 5]), ((8, 9), [6, 7, 8])):
        result = document_sequence(two, special=SIX, max_length=10, around=[span, (0, 1)])
        assert result.word[result.document == 0].tolist() == kept


@pytest.mark.parametrize(
    ("lengths", "arguments", "message"),
    [
        ([], {}, "no documents"),
        ([1, 1], {"max_length": 6}, "max_length 6 has no room for 2 documents"),
        ([6, 6], {"max_length": 10, "around": [(0, 6), (0, 1)]}, r"words \(0, 6\) are 6 tokens"),
        ([1, 1], {"around": [(0, 1)]}, "shorter|longer|length"),
    ],
)
def test_what_cannot_be_written(lengths, arguments, message):
    documents = [encoded(str(n), *[1] * length) for n, length in enumerate(lengths)]
    with pytest.raises(ValueError, match=message):
        document_sequence(documents, special=SIX, **({"max_length": 50} | arguments))
