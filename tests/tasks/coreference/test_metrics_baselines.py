"""Head words, stems, and the baseline of equal head words."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.tasks.coreference.metrics import head_word, same_head, word_stem

HEADS = {
    "Smith": "smith", "the northern bridge": "bridge", "the mayor of the town": "mayor",
    "the driver who fled": "driver", "that man": "man", "Springfield , Ohio": "springfield",
    "in the harbour": "harbour", "from behind the wall": "wall", "took over": "took", "was shot": "shot",
    "to": "to", "in": "in", "the company 's": "company", "the company’s": "company",
    "the year ’ s": "year", "the group 's leader": "leader", "Friday night .": "night",
    "`` strong ''": "strong", "Monday ,": "monday", ", said": "said", "of ,": "of", "A and B": "b",
    "s": "s", "$": "$", "? !": "? !",
}  # fmt: skip


def test_head_words():
    assert {mention: head_word(mention.split()) for mention in HEADS} == HEADS
    charges = ["the", "charges", "against", "him"]
    assert (head_word(charges, stem=True), head_word(charges)) == ("charg", "charges")
    with pytest.raises(ValueError, match="without tokens has no head"):
        head_word([])


@pytest.mark.parametrize("family", [
    "charge charges charged charging", "kill kills killed killing", "miss missed missing",
    "plan plans planned planning", "party parties", "carry carries carried carrying", "say says said saying",
    "shoot shoots shot shooting", "die dies died dying", "lie lies lied lying", "be been being is was",
])  # fmt: skip
def test_forms_of_a_word_share_a_stem(family):
    assert len({word_stem(word) for word in family.split()}) == 1


def test_endings_that_are_none_stay_and_other_words_have_other_stems():
    words = "boss virus crisis gas red king string bee use day 2012 ss"
    for word in words.split():
        assert word_stem(word) == word.removesuffix("e" if len(word) > 3 else "")
    for pair in ("kill killer", "acquire acquisition", "left right", "bus bust", "was has"):
        assert len(set(map(word_stem, pair.split()))) == 2


MENTIONS = [["killed"], ["the", "storm"], ["killing"], ["Storm"], ["the", "storm", "in", "May"], ["storms"]]


def test_same_head_groups_by_stem_within_each_group():
    labels = same_head(MENTIONS, ["a", "a", "a", "a", "b", "a"])
    assert labels.tolist() == [0, 1, 0, 1, 2, 1]
    # Were group and head joined into one text, "a" + "b c" and "a b" + "c" would meet.
    assert same_head([["bc"], ["c"]], ["a", "ab"]).tolist() == [0, 1]
    nothing = same_head([], [])
    assert (nothing.shape, nothing.dtype, labels.dtype) == ((0,), np.int64, np.int64)
    with pytest.raises(ValueError, match="2 mentions, but 1 groups"):
        same_head([["a"], ["b"]], ["t"])


TOKENS = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6)


@given(mentions=st.lists(TOKENS, max_size=8), data=st.data())
def test_labels_agree_with_heads(mentions, data):
    groups = data.draw(st.lists(st.integers(0, 2), min_size=len(mentions), max_size=len(mentions)))
    labels = same_head(mentions, groups)
    names = [(group, head_word(tokens, stem=True)) for group, tokens in zip(groups, mentions, strict=True)]
    for i, j in combinations(range(len(mentions)), 2):
        assert (labels[i] == labels[j]) == (names[i] == names[j])
