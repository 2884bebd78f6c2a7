"""Documents in one sequence: where each token comes from, what is cut, and what cannot be written."""

import numpy as np
import pytest

from cdlm_lab.data.records import CoreferenceDocument
from cdlm_lab.examples.packing import document_sequence
from cdlm_lab.examples.tokens import EncodedDocument, SpecialTokens

SPECIAL = SpecialTokens(
    start=1, end=2, cls=3, sep=4, pad=0, mask=5, all_special=frozenset(range(6)), vocabulary_size=100
)


def encoded(name: str, *subwords: int, first: int = 10) -> EncodedDocument:
    """A document whose words have so many subwords each; its ids count up from `first`."""
    words = tuple(f"w{n}" for n in range(len(subwords)))
    record = CoreferenceDocument(
        id=name, topic="t", subtopic="t", tokens=words, sentences=((0, len(words)),), validated=(0,)
    )
    starts = np.cumsum([0, *subwords])
    return EncodedDocument(document=record, input_ids=np.arange(first, first + starts[-1]), starts=starts)


def test_all_of_it_by_hand():
    found = document_sequence([encoded("a", 1, 2), encoded("b", 3, first=20)], special=SPECIAL, max_length=50)
    assert found.input_ids.tolist() == [3, 1, 10, 11, 12, 2, 1, 20, 21, 22, 2, 4]
    assert found.document.tolist() == [-1, -1, 0, 0, 0, -1, -1, 1, 1, 1, -1, -1]
    assert found.word.tolist() == [-1, -1, 0, 1, 1, -1, -1, 0, 0, 0, -1, -1]
    assert found.lost_tokens == (0, 0)
    assert found.positions(0, (1, 2)).tolist() == [3, 4]
    assert found.positions(1, (0, 1)).tolist() == [7, 8, 9]
    assert found.word_numbers([2, 1]).tolist() == [-1, -1, 0, 1, 1, -1, -1, 2, 2, 2, -1, -1]


def test_what_is_too_long_loses_its_end():
    found = document_sequence(
        [encoded("a", *[1] * 9), encoded("b", 1, first=20)], special=SPECIAL, max_length=10
    )
    assert found.input_ids.tolist() == [3, 1, 10, 11, 12, 2, 1, 20, 2, 4]
    assert found.lost_tokens == (6, 0)
    assert found.positions(0, (8, 9)).tolist() == []


@pytest.mark.parametrize(("span", "kept"), [((0, 1), [0, 1, 2]), ((4, 5), [3, 4, 5]), ((8, 9), [6, 7, 8])])
def test_a_window_is_centred_on_its_span_and_shifted_at_the_borders(span, kept):
    found = document_sequence(
        [encoded("a", *[1] * 9), encoded("b", 1, first=20)], special=SPECIAL, max_length=10,
        around=[span, (0, 1)],
    )  # fmt: skip
    assert found.word[found.document == 0].tolist() == kept


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
        document_sequence(documents, special=SPECIAL, **({"max_length": 50} | arguments))
