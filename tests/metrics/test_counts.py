"""Counts and their scores: worked fractions, seqeval, direct implementations, input that is refused."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import f1_score
from seqeval.metrics.sequence_labeling import get_entities

from cdlm_lab.metrics.counts import f1_of, precision_and_recall, span_counts, word_counts


def tags(text: str) -> list[list[list[str]]]:
    """Parse `O Ba Ia | O || Bb` to documents of tags; bars separate sentences, double bars documents."""
    return [
        [[tag if tag == "O" else f"{tag[0]}-{tag[1:]}" for tag in part.split()] for part in row.split("|")]
        for row in text.split("||")
    ]


@pytest.mark.parametrize(
    ("gold", "predicted", "expected"),
    [
        ("O Ba Ia O Bb", "O Ba Ia O Bb", (2, 2, 2)),
        ("O Ba Ia O Bb", "O Bb Ib O Bb", (1, 2, 2)),
        ("Ba Ia Ba Ia", "Ba Ia Ia Ia", (0, 1, 2)),
        ("O O", "O O", (0, 0, 0)),
        # an I- that goes on with no span of its label begins one: after O, another label, or a sentence
        ("O Ba Ia O", "O Ia Ia O", (1, 1, 1)),
        ("Ba Bb O", "Ba Ib O", (2, 2, 2)),
        ("Ba Ia O", "Ba Ib O", (0, 2, 1)),
        ("O Ba | O", "O Ba | Ia", (1, 2, 1)),
        ("Ba | Ba", "Ba | Ia", (2, 2, 2)),
        ("O Ba", "O Ba", (1, 1, 1)),
    ],
)
def test_worked_counts(gold, predicted, expected):
    assert tuple(span_counts(tags(gold), tags(predicted))[0]) == expected


def test_a_row_for_each_document():
    gold, predicted = tags("Ba | O || Ba O || O"), tags("Ba | Bb || Ia O || Bb")
    assert span_counts(gold, predicted).tolist() == [[1, 2, 1], [1, 1, 1], [0, 1, 0]]


TAG = st.sampled_from(["O", "B-a", "I-a", "B-b", "I-b"])
PAIR_OF_SENTENCES = st.lists(st.tuples(TAG, TAG), max_size=6)
PAIRS = st.lists(st.lists(PAIR_OF_SENTENCES, max_size=4), min_size=1, max_size=4)


def sides(pairs: list) -> tuple[list, list]:
    return tuple(
        [[[pair[side] for pair in sentence] for sentence in document] for document in pairs]
        for side in (0, 1)
    )


@settings(max_examples=50)
@given(PAIRS)
def test_scores_of_each_document_and_of_all_are_those_of_seqeval(pairs):
    gold, predicted = sides(pairs)
    rows = span_counts(gold, predicted)
    cases = [*zip(gold, predicted, rows, strict=True)]
    cases.append(([*chain(*gold)], [*chain(*predicted)], rows.sum(axis=0)))
    for wanted, found, counted in cases:
        if wanted:
            assert f1_of(counted) == pytest.approx(f1_score(wanted, found, zero_division=0))
        assert counted[2] == len(get_entities(wanted))
        assert counted[1] == len(get_entities(found))


def test_worked_words():
    gold, predicted = tags("Ba Ia O | Bb || O O"), tags("Ba Ba Bb | Ba || Ib O")
    # right: both words of the first span, whatever their prefixes; the last word, rightly outside, is nothing
    assert word_counts(gold, predicted).tolist() == [[2, 4, 3], [0, 1, 0]]
    chosen = [[[True, False, True], [False]], [[True, True]]]
    assert word_counts(gold, predicted, chosen=chosen).tolist() == [[1, 2, 1], [0, 1, 0]]
    assert word_counts([[[]], []], [[[]], []]).tolist() == [[0, 0, 0], [0, 0, 0]]
    hyphen = [[["B-cell-line", "I-line"]]]
    assert word_counts(hyphen, [[["I-cell-line", "I-cell-line"]]]).tolist() == [[1, 2, 2]]


def test_f1_of_counts_and_what_the_table_of_items_holds_of_them():
    rows = np.array([[3, 4, 6], [0, 0, 5], [0, 5, 0], [0, 0, 0]])
    assert f1_of(rows) == pytest.approx([2 * 0.75 * 0.5 / 1.25, 0, 0, 0])
    assert f1_of(np.ones((2, 5, 3))).shape == (2, 5)
    parts = precision_and_recall(rows, "word_")
    assert [[side.tolist() for side in one] for one in parts.values()] == [
        [[3, 0, 0, 0], [4, 0, 5, 0]],
        [[3, 0, 0, 0], [6, 5, 0, 0]],
    ]
    assert list(parts) == ["word_precision", "word_recall"]


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ("O || O", "O", "predicted has 1 documents and the gold 2"),
        ("O | O || O", "O || O", r"predicted\[0\] has 1 sentences and the gold 2"),
        ("O || O | O O", "O || O | O", r"predicted\[1\]\[1\] has 1 words and the gold 2"),
        ("O | O Sa", "O | O O", r"gold\[0\]\[1\]\[1\] \(document, sentence, word\) is 'S-a'"),
        ("O", "B", r"predicted\[0\]\[0\]\[0\] .* is 'B-'; a tag is O, or B- or I- and a label"),
    ],
)
def test_tags_that_are_refused(gold, predicted, message):
    for counted in (span_counts, word_counts):
        with pytest.raises(ValueError, match=message):
            counted(tags(gold), tags(predicted))


def test_a_mask_of_other_words_is_refused():
    with pytest.raises(ValueError, match=r"chosen\[0\]\[0\] has 1 words and the gold 2"):
        word_counts(tags("O O"), tags("O O"), chosen=[[[True]]])
