"""Coreference scores: worked fractions, published test cases of the scorers, sums over topics, input that is
refused, the best alignment in little memory."""

import random
import re
import tracemalloc
import unicodedata
from dataclasses import astuple
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.tasks.coreference.metrics import (
    Parts,
    joined_topics,
    largest_total,
    parts_by_topic,
    score,
    score_parts,
)

MEASURES = ("muc", "b_cubed", "ceaf_e", "lea")


def letters(text: str) -> list[list[str]]:
    """Make clusters of letters: "ab c" is [[a, b], [c]]."""
    return [list(word) for word in text.split()]


# Worked by hand.

KEY, RESPONSE = letters("abc defg"), letters("ab cd fghi")
WORKED = {
    # abc falls into ab, c; defg into d, e (missing), fg. Of the response: ab stays, c|d, fg|h|i.
    "muc": (((3 - 2) + (4 - 3)) / (2 + 3), ((2 - 1) + (2 - 2) + (4 - 3)) / (1 + 1 + 3)),
    # abc: two mentions keep 2/3, one 1/3. defg: d keeps 1/4, e nothing, f and g 2/4 each.
    "b_cubed": ((2 * 2 / 3 + 1 / 3 + 1 / 4 + 2 * 2 / 4) / 7, (2 * 2 / 2 + 1 / 2 + 1 / 2 + 2 * 2 / 4) / 8),
    # abc with ab, defg with fghi; cd is left over.
    "ceaf_e": ((2 * 2 / (3 + 2) + 2 * 2 / (4 + 4)) / 2, (2 * 2 / (3 + 2) + 2 * 2 / (4 + 4)) / 3),
    # abc keeps the link ab of 3, defg fg of 6. Of the response ab, none of cd, fg of the 6 of fghi.
    "lea": ((3 * 1 / 3 + 4 * 1 / 6) / 7, (2 * 1 / 1 + 2 * 0 / 1 + 4 * 1 / 6) / 8),
}


def test_worked_fractions():
    scores, parts = score(KEY, RESPONSE), score_parts(KEY, RESPONSE)
    for measure, (recall, precision) in WORKED.items():
        f1 = 2 * recall * precision / (recall + precision)
        assert astuple(scores[measure]) == pytest.approx((recall, precision, f1))
    assert astuple(parts["muc"]) == (2, 5, 2, 5)
    assert astuple(parts["b_cubed"]) == pytest.approx((35 / 12, 7, 4, 8))
    assert astuple(parts["ceaf_e"]) == pytest.approx((13 / 10, 2, 13 / 10, 3))
    assert astuple(parts["lea"]) == pytest.approx((5 / 3, 7, 8 / 3, 8))


def test_conll_is_the_mean_of_three():
    conll = score(KEY, RESPONSE)["conll"]
    assert conll.recall == pytest.approx((2 / 5 + 5 / 12 + 13 / 20) / 3)
    assert conll.precision == pytest.approx((2 / 5 + 1 / 2 + 13 / 30) / 3)
    # CEAFe has the same numerator twice, so its F1 is 2 * 1.3 / (2 + 3).
    assert conll.f1 == pytest.approx((2 / 5 + 2 * (5 / 12) * (1 / 2) / (11 / 12) + 2.6 / 5) / 3)
    harmonic = 2 * conll.recall * conll.precision / (conll.recall + conll.precision)
    assert abs(conll.f1 - harmonic) > 0.005


# Recall and precision that the test suites of the reference scorer and of coval publish, in the order of
# MEASURES; None: not published. Cases A: missing and spurious mentions, only singletons, one cluster; B, C:
# both kinds; D, E: those of the B-cubed paper; F to L: those of the MUC paper; M: a key of one cluster; N:
# one of singletons. Left out: H and I, which are M1 and F again, and A7 to A9, which repeat mentions, here an
# error; without the repetitions they are A4.
ALL, NONE = (1, 1), (0, 0)
A_, DEF = "a bc def", "abcdef"
SINGLE = "a b c d e f"
PUBLISHED = {
    "A1": (A_, A_, ALL, ALL, ALL, ALL),
    "A2": (
        *(A_, "a de", (1 / 3, 1), ((1 + 2 * 2 / 3) / 6, (1 + 2) / 3)),
        *(((1 + 4 / 5) / 3, (1 + 4 / 5) / 2), ((1 + 3 * (1 / 3)) / 6, 1)),
    ),
    "A3": (
        *(A_, "a bcx defy z", (3 / 3, 3 / 5), (6 / 6, (1 + 2 * 2 / 3 + 3 * 3 / 4) / 9)),
        *(((1 + 4 / 5 + 6 / 7) / 3, (1 + 4 / 5 + 6 / 7) / 4), (1, (1 + 3 * (1 / 3) + 4 * (3 / 6)) / 9)),
    ),
    "A4": (
        *(A_, "a bcx dy z", (1 / 3, 1 / 3), ((1 + 2 * 2 / 2 + 1 / 3) / 6, (1 + 2 * 2 / 3 + 1 / 2) / 7)),
        *(((1 + 4 / 5 + 2 / 5) / 3, (1 + 4 / 5 + 2 / 5) / 4), ((1 + 2) / 6, (1 + 3 * (1 / 3)) / 7)),
    ),
    "A5": (
        *(A_, "a bcxB dy z", (1 / 3, 1 / 4), ((1 + 2 * 2 / 2 + 1 / 3) / 6, (1 + 2 * 2 / 4 + 1 / 2) / 8)),
        *(((1 + 4 / 6 + 2 / 5) / 3, (1 + 4 / 6 + 2 / 5) / 4), ((1 + 2) / 6, (1 + 4 * (1 / 6)) / 8)),
    ),
    "A6": (
        *(A_, "a bcx dy Bz", (1 / 3, 1 / 4), ((1 + 2 * 2 / 2 + 1 / 3) / 6, (1 + 2 * 2 / 3 + 1 / 2) / 8)),
        *(((1 + 4 / 5 + 2 / 5) / 3, (1 + 4 / 5 + 2 / 5) / 4), ((1 + 2) / 6, (1 + 3 / 3) / 8)),
    ),
    "A10": (A_, SINGLE, NONE, (3 / 6, 6 / 6), None, (1 / 6, 1 / 6)),
    "A11": (A_, DEF, (1, 3 / 5), (1, (1 / 6 + 4 / 6 + 9 / 6) / 6), None, (5 / 6, 4 / 15)),
    "A12": (A_, "a x y c d e z", NONE, ((1 + 1 / 2 + 2 / 3) / 6, 4 / 7), None, (1 / 6, 1 / 7)),
    "A13": (A_, "axycdez", (1 / 3, 1 / 6), ((1 + 1 / 2 + 4 / 3) / 6, (6 / 7) / 7), None, (1 / 6, 1 / 21)),
    "B1": ("ab cde", "bcx de", None, None, None, ((3 / 3) / 5, 2 / 5)),
    "C1": ("ab cde fg", "bcx de fg", None, None, None, ((3 / 3 + 2) / 7, (2 + 2) / 7)),
    "D1": (
        *("12345 67 89ABC", "12345 6789ABC"),
        *((9 / 9, 9 / 10), (1, 16 / 21), None, (1, (5 + 7 * (11 / 21)) / 12)),
    ),
    "E1": (
        *("12345 67 89ABC", "1234589ABC 67"),
        *((9 / 9, 9 / 10), (1, 7 / 12), None, (1, (10 * (20 / 45) + 2) / 12)),
    ),
    "F1": ("ABCD", "AB CD", (2 / 3, 2 / 2), None, None, (2 / 6, 1)),
    "G1": ("AB CD", "ABCD", (2 / 2, 2 / 3), None, None, (1, 2 / 6)),
    "J1": ("ABC", "AC", (1 / 2, 1 / 1), None, None, (1 / 3, 1)),
    "K1": ("BCDEGHJ", "ABC DEF GHI", (3 / 6, 3 / 6), None, None, (3 / 21, (3 / 3 + 3 / 3 + 3 / 3) / 9)),
    "L1": ("ABC DEFG", "AB CD FGH", (2 / 5, 2 / 4), None, None, ((3 / 3 + 4 * 1 / 6) / 7, (2 + 3 / 3) / 7)),
    "M1": (DEF, DEF, ALL, ALL, ALL, ALL),
    "M2": (DEF, SINGLE, NONE, None, None, NONE),
    "M3": (DEF, "ab cde f", None, None, None, (4 / 15, (2 + 3 + 0) / 6)),
    "M4": (DEF, "abcxyz", None, None, None, (3 / 15, 3 / 15)),
    "M5": (DEF, "a b c x y z", NONE, None, None, NONE),
    "M6": (DEF, "ab cxy z", None, None, None, (1 / 15, 2 / 6)),
    "N1": (SINGLE, SINGLE, NONE, ALL, ALL, ALL),
    "N2": (SINGLE, DEF, NONE, None, None, NONE),
    "N3": (SINGLE, "ab cde f", None, None, None, (1 / 6, 1 / 6)),
    "N4": (SINGLE, "a b c x y z", NONE, None, None, (3 / 6, 3 / 6)),
    "N5": (SINGLE, "abcxyz", None, None, None, NONE),
    "N6": (SINGLE, "ab cxy z", None, None, None, NONE),
}


@pytest.mark.parametrize("case", PUBLISHED)
def test_published_case(case):
    key, response, *published = PUBLISHED[case]
    scores = score(letters(key), letters(response))
    for measure, expected in zip(MEASURES, published, strict=True):
        if expected is not None:
            recall, precision = expected
            f1 = 2 * recall * precision / (recall + precision) if recall + precision else 0
            assert astuple(scores[measure]) == pytest.approx((recall, precision, f1)), measure


# Parts of topics.

FIRST = (letters("ab cd e"), letters("ab cde"))
SECOND = (letters("UVWX YZ"), letters("UV WX Y"))
CORPUS = (FIRST[0] + SECOND[0], FIRST[1] + SECOND[1])


def test_parts_by_topic():
    key, response = CORPUS[0] + letters("m"), letters("9") + SECOND[1] + FIRST[1]
    result = parts_by_topic(key, response, topic=unicodedata.category)  # lower case, upper case, digit
    assert list(result) == ["Ll", "Lu", "Nd"]
    assert result["Ll"] == score_parts(letters("ab cd e m"), letters("ab cde"))
    assert result["Lu"] == score_parts(*SECOND)
    assert result["Nd"] == score_parts([], letters("9"))
    without = parts_by_topic(*CORPUS, topic=str.isupper, singletons=False)
    assert without == {
        False: score_parts(letters("ab cd"), letters("ab cde")),
        True: score_parts(letters("UVWX YZ"), letters("UV WX")),
    }


ONE_TOPIC = "take topics that share a cluster as one (joined_topics), or score all at once"


def test_parts_by_topic_of_singletons_and_of_clusters_across_topics():
    result = parts_by_topic(letters("a BC"), letters("a BC"), topic=str.isupper, singletons=False)
    assert result[False] == dict.fromkeys(MEASURES, Parts())
    for key, response, message in (
        (
            CORPUS[0],
            letters("ab cdU"),
            f"response[1] has 'd' of topic False and 'U' of topic True; {ONE_TOPIC}",
        ),
        (letters("aB"), [], "key[0] has 'a' of topic False"),
        ([["a"], []], [], "key[1] is empty"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            parts_by_topic(key, response, topic=str.isupper)


# Input that is refused, clusterings side by side.


@pytest.mark.parametrize(
    ("clusters", "message"),
    [
        ([["a"], []], "[1] is empty; leave out clusters without mentions"),
        ([["x"], ["a", "b", "a"]], "[1] has the mention 'a' twice; name each mention once"),
    ],
)
def test_refused_input(clusters, message):
    for side, of_sides in (("key", (clusters, [["m"]])), ("response", ([["m"]], clusters))):
        with pytest.raises(ValueError, match="^" + re.escape(side + message)):
            score(*of_sides)


def test_a_mention_in_two_clusters_is_named_with_both():
    message = (
        "mention ('d', 3) is in response[0] = [('d', 1), ('d', 3)] and in response[2] = [('d', 3)]; "
        "a mention belongs to one cluster"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        score([[("d", 1)]], [[("d", 1), ("d", 3)], [("d", 2)], [("d", 3)]])


def test_topics_that_share_clusters_are_joined():
    # Mentions are (topic, number). The key joins 3 and 4, one system 1 and 2, the other 2 and 3.
    key = [[(1, 0)], [(2, 0)], [(3, 0), (4, 0)], [(5, 0)]]
    systems = [[(1, 0), (2, 0)], [(5, 0)]], [[(2, 0), (3, 0)]]
    unit = joined_topics(key, *systems, topic=lambda mention: mention[0])
    assert [unit((topic, 9)) for topic in range(1, 6)] == 4 * [{1, 2, 3, 4}] + [{5}]
    for system in systems:
        parts = parts_by_topic(key, system, topic=unit)
        assert list(parts) == [{1, 2, 3, 4}, {5}]
        total = sum((one["ceaf_e"] for one in parts.values()), Parts())
        assert total.score == score(key, system)["ceaf_e"]
    with pytest.raises(KeyError):
        unit((6, 0))
    with pytest.raises(ValueError, match=r"^clusterings\[1\]\[0\] is empty"):
        joined_topics(key, [[]], topic=str)


@given(st.dictionaries(st.tuples(st.integers(0, 4), st.integers(0, 5)), st.integers(0, 20)))
def test_largest_total_tries_every_alignment(weight_of):
    numbers = np.array(list(weight_of), dtype=int).reshape(-1, 2)
    result = largest_total(numbers[:, 0], numbers[:, 1], np.array(list(weight_of.values()), dtype=float))
    totals = (sum(weight_of.get(pair, 0) for pair in enumerate(p)) for p in permutations(range(6), 5))
    assert result == max(totals)


def test_components_are_aligned_one_at_a_time():
    # 4,000 clusters a side in chains of four: one table would take 8 * 4000 * 4000 = 128 million bytes.
    key = [[(n, 0), (n, 1), (n, 2)] for n in range(4000)]
    response = [[(n, 0), (n, 1), (n - 1 if n % 4 else n, 2 if n % 4 else 3)] for n in range(4000)]
    random.Random(0).shuffle(response)
    score(key[:4], response[:4])  # pays for imports and caches
    tracemalloc.start()
    result = score(key, response)["ceaf_e"]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.f1 == pytest.approx(2 / 3)
    assert peak < 20e6
