"""Coreference scores: worked fractions, the published cases of the scorers, topics added up."""

import unicodedata
from dataclasses import astuple

import numpy as np
import pytest

from cdlm_lab.metrics.coreference import (
    CONLL,
    Parts,
    count_table,
    mean_f1,
    parts_by_topic,
    score,
    score_parts,
    scores_of_parts,
    total_parts,
)
from cdlm_lab.metrics.significance import compare

MEASURES = ("muc", "b_cubed", "ceaf_e", "lea")


def letters(text: str) -> list[list[str]]:
    """Clusters of letters: "ab c" is [[a, b], [c]]."""
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


@pytest.mark.parametrize("measure", MEASURES)
def test_worked_fractions(measure):
    recall, precision = WORKED[measure]
    f1 = 2 * recall * precision / (recall + precision)
    assert astuple(score(KEY, RESPONSE)[measure]) == pytest.approx((recall, precision, f1))


def test_worked_parts():
    parts = score_parts(KEY, RESPONSE)
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


def test_ceaf_takes_the_best_alignment_not_the_nearest_cluster_first():
    # abcde is most like abcfg (6/10), but with de (4/7), fg goes to abcfg (4/7): 8/7 > 6/10 + 0.
    found = score(letters("abcde fg"), letters("abcfg de"))["ceaf_e"]
    assert found.recall == pytest.approx((4 / 7 + 4 / 7) / 2)


def test_a_singleton_of_lea_has_a_link_to_itself():
    # a is single on both sides; b and d are on one side only, and so are the links cd and bc.
    found = score(letters("a b cd"), letters("a bc d"))["lea"]
    assert astuple(found) == pytest.approx((1 / 4, 1 / 4, 1 / 4))


def test_without_singletons():
    # Left are abc defg hi against ab cd: e, f, g, h and i are missing.
    key, response = letters("abc defg hi j k"), letters("ab cd h i j k")
    without, kept = score(key, response, singletons=False), score(key, response)
    assert without["b_cubed"].recall == pytest.approx((2 * 2 / 3 + 1 / 3 + 1 / 4) / 9)
    assert kept["b_cubed"].recall == pytest.approx((2 * 2 / 3 + 1 / 3 + 1 / 4 + 2 * 1 / 2 + 2) / 11)
    assert without["lea"].precision == pytest.approx((2 * 1 + 2 * 0) / 4)
    assert kept["lea"].precision == pytest.approx((2 * 1 + 2 * 0 + 0 + 0 + 1 + 1) / 8)
    assert without["muc"].recall == kept["muc"].recall == 1 / (2 + 3 + 1)


# Recall and precision that the test suites of the reference scorer and of coval publish. Cases A: missing and
# spurious mentions, only singletons, one cluster; B, C: both kinds; D, E: those of the B-cubed paper; F to L:
# those of the MUC paper; M: a key of one cluster; N: one of singletons. Left out: H and I, which are M1 and F
# again, and A7 to A9, which repeat mentions, here an error; without the repetitions they are A4.
PUBLISHED = {
    "A1": ("a bc def", "a bc def", dict.fromkeys(MEASURES, (1, 1))),
    "A2": (
        "a bc def",
        "a de",
        {
            "muc": (1 / 3, 1),
            "b_cubed": ((1 + 2 * 2 / 3) / 6, (1 + 2) / 3),
            "ceaf_e": ((1 + 4 / 5) / 3, (1 + 4 / 5) / 2),
            "lea": ((1 + 3 * (1 / 3)) / 6, 1),
        },
    ),
    "A3": (
        "a bc def",
        "a bcx defy z",
        {
            "muc": (3 / 3, 3 / 5),
            "b_cubed": (6 / 6, (1 + 2 * 2 / 3 + 3 * 3 / 4) / 9),
            "ceaf_e": ((1 + 4 / 5 + 6 / 7) / 3, (1 + 4 / 5 + 6 / 7) / 4),
            "lea": (1, (1 + 3 * (1 / 3) + 4 * (3 / 6)) / 9),
        },
    ),
    "A4": (
        "a bc def",
        "a bcx dy z",
        {
            "muc": (1 / 3, 1 / 3),
            "b_cubed": ((1 + 2 * 2 / 2 + 1 / 3) / 6, (1 + 2 * 2 / 3 + 1 / 2) / 7),
            "ceaf_e": ((1 + 4 / 5 + 2 / 5) / 3, (1 + 4 / 5 + 2 / 5) / 4),
            "lea": ((1 + 2) / 6, (1 + 3 * (1 / 3)) / 7),
        },
    ),
    "A5": (
        "a bc def",
        "a bcxB dy z",
        {
            "muc": (1 / 3, 1 / 4),
            "b_cubed": ((1 + 2 * 2 / 2 + 1 / 3) / 6, (1 + 2 * 2 / 4 + 1 / 2) / 8),
            "ceaf_e": ((1 + 4 / 6 + 2 / 5) / 3, (1 + 4 / 6 + 2 / 5) / 4),
            "lea": ((1 + 2) / 6, (1 + 4 * (1 / 6)) / 8),
        },
    ),
    "A6": (
        "a bc def",
        "a bcx dy Bz",
        {
            "muc": (1 / 3, 1 / 4),
            "b_cubed": ((1 + 2 * 2 / 2 + 1 / 3) / 6, (1 + 2 * 2 / 3 + 1 / 2) / 8),
            "ceaf_e": ((1 + 4 / 5 + 2 / 5) / 3, (1 + 4 / 5 + 2 / 5) / 4),
            "lea": ((1 + 2) / 6, (1 + 3 / 3) / 8),
        },
    ),
    "A10": ("a bc def", "a b c d e f", {"muc": (0, 0), "b_cubed": (3 / 6, 6 / 6), "lea": (1 / 6, 1 / 6)}),
    "A11": (
        "a bc def",
        "abcdef",
        {"muc": (1, 3 / 5), "b_cubed": (1, (1 / 6 + 4 / 6 + 9 / 6) / 6), "lea": (5 / 6, 4 / 15)},
    ),
    "A12": (
        "a bc def",
        "a x y c d e z",
        {"muc": (0, 0), "b_cubed": ((1 + 1 / 2 + 2 / 3) / 6, 4 / 7), "lea": (1 / 6, 1 / 7)},
    ),
    "A13": (
        "a bc def",
        "axycdez",
        {"muc": (1 / 3, 1 / 6), "b_cubed": ((1 + 1 / 2 + 4 / 3) / 6, (6 / 7) / 7), "lea": (1 / 6, 1 / 21)},
    ),
    "B1": ("ab cde", "bcx de", {"lea": ((3 / 3) / 5, 2 / 5)}),
    "C1": ("ab cde fg", "bcx de fg", {"lea": ((3 / 3 + 2) / 7, (2 + 2) / 7)}),
    "D1": (
        "12345 67 89ABC",
        "12345 6789ABC",
        {"muc": (9 / 9, 9 / 10), "b_cubed": (1, 16 / 21), "lea": (1, (5 + 7 * (11 / 21)) / 12)},
    ),
    "E1": (
        "12345 67 89ABC",
        "1234589ABC 67",
        {"muc": (9 / 9, 9 / 10), "b_cubed": (1, 7 / 12), "lea": (1, (10 * (20 / 45) + 2) / 12)},
    ),
    "F1": ("ABCD", "AB CD", {"muc": (2 / 3, 2 / 2), "lea": (2 / 6, 1)}),
    "G1": ("AB CD", "ABCD", {"muc": (2 / 2, 2 / 3), "lea": (1, 2 / 6)}),
    "J1": ("ABC", "AC", {"muc": (1 / 2, 1 / 1), "lea": (1 / 3, 1)}),
    "K1": ("BCDEGHJ", "ABC DEF GHI", {"muc": (3 / 6, 3 / 6), "lea": (3 / 21, (3 / 3 + 3 / 3 + 3 / 3) / 9)}),
    "L1": (
        "ABC DEFG",
        "AB CD FGH",
        {"muc": (2 / 5, 2 / 4), "lea": ((3 * 1 / 3 + 4 * 1 / 6) / 7, (2 + 3 / 3) / 7)},
    ),
    "M1": ("abcdef", "abcdef", dict.fromkeys(MEASURES, (1, 1))),
    "M2": ("abcdef", "a b c d e f", {"muc": (0, 0), "lea": (0, 0)}),
    "M3": ("abcdef", "ab cde f", {"lea": (4 / 15, (2 + 3 + 0) / 6)}),
    "M4": ("abcdef", "abcxyz", {"lea": (3 / 15, 3 / 15)}),
    "M5": ("abcdef", "a b c x y z", {"muc": (0, 0), "lea": (0, 0)}),
    "M6": ("abcdef", "ab cxy z", {"lea": (1 / 15, 2 / 6)}),
    "N1": ("a b c d e f", "a b c d e f", {"muc": (0, 0), "b_cubed": (1, 1), "ceaf_e": (1, 1), "lea": (1, 1)}),
    "N2": ("a b c d e f", "abcdef", {"muc": (0, 0), "lea": (0, 0)}),
    "N3": ("a b c d e f", "ab cde f", {"lea": (1 / 6, 1 / 6)}),
    "N4": ("a b c d e f", "a b c x y z", {"muc": (0, 0), "lea": (3 / 6, 3 / 6)}),
    "N5": ("a b c d e f", "abcxyz", {"lea": (0, 0)}),
    "N6": ("a b c d e f", "ab cxy z", {"lea": (0, 0)}),
}


@pytest.mark.parametrize("case", PUBLISHED)
def test_published_case(case):
    key, response, expected = PUBLISHED[case]
    scores = score(letters(key), letters(response))
    for measure, (recall, precision) in expected.items():
        f1 = 2 * recall * precision / (recall + precision) if recall + precision else 0
        assert astuple(scores[measure]) == pytest.approx((recall, precision, f1)), measure


# Parts of topics.

FIRST = (letters("ab cd e"), letters("ab cde"))
SECOND = (letters("UVWX YZ"), letters("UV WX Y"))
CORPUS = (FIRST[0] + SECOND[0], FIRST[1] + SECOND[1])


def test_parts_of_topics_add_up():
    first, second, corpus = score_parts(*FIRST), score_parts(*SECOND), score_parts(*CORPUS)
    assert astuple(first["muc"]) == (2, 2, 2, 3)
    assert astuple(second["muc"]) == (2, 4, 2, 2)
    assert first["muc"] + second["muc"] == corpus["muc"] == Parts(4, 6, 4, 5)
    for measure, parts in total_parts([first, second]).items():
        assert astuple(parts) == pytest.approx(astuple(corpus[measure])), measure
    assert scores_of_parts(corpus) == score(*CORPUS)
    assert total_parts([]) == dict.fromkeys(MEASURES, Parts())


def test_a_corpus_score_is_no_mean_of_topics():
    recalls = [score(*topic)["muc"].recall for topic in (FIRST, SECOND)]
    assert recalls == [2 / 2, 2 / 4]
    assert score(*CORPUS)["muc"].recall == 4 / 6 != sum(recalls) / 2


def test_parts_by_topic():
    key, response = CORPUS[0] + letters("m"), letters("9") + SECOND[1] + FIRST[1]
    found = parts_by_topic(key, response, topic=unicodedata.category)  # lower case, upper case, digit
    assert list(found) == ["Ll", "Lu", "Nd"]
    assert found["Ll"] == score_parts(letters("ab cd e m"), letters("ab cde"))
    assert found["Lu"] == score_parts(*SECOND)
    assert found["Nd"] == score_parts([], letters("9"))
    without = parts_by_topic(*CORPUS, topic=str.isupper, singletons=False)
    assert without == {
        False: score_parts(letters("ab cd"), letters("ab cde")),
        True: score_parts(letters("UVWX YZ"), letters("UV WX")),
    }


def test_parts_by_topic_keeps_topics_that_have_only_singletons():
    found = parts_by_topic(letters("a BC"), letters("a BC"), topic=str.isupper, singletons=False)
    assert found[False] == dict.fromkeys(MEASURES, Parts())


def test_a_cluster_across_topics_is_refused():
    message = (
        r"^response\[1\] has 'd' of topic False and 'U' of topic True; "
        r"take topics that share a cluster as one \(joined_topics\), or score all at once$"
    )
    with pytest.raises(ValueError, match=message):
        parts_by_topic(CORPUS[0], letters("ab cdU"), topic=str.isupper)
    with pytest.raises(ValueError, match=r"^key\[0\] has 'a' of topic False"):
        parts_by_topic(letters("aB"), [], topic=str.isupper)
    with pytest.raises(ValueError, match=r"^key\[1\] is empty"):
        parts_by_topic([["a"], []], [], topic=str.isupper)


def test_paired_tests_over_topics():
    merged = letters("abcde UVWX YZ")
    a = count_table(parts_by_topic(*CORPUS, topic=str.isupper).values())
    b = count_table(parts_by_topic(CORPUS[0], merged, topic=str.isupper).values())
    assert a.shape == (2, 4 * len(CONLL))
    assert mean_f1(a.sum(axis=0)) == pytest.approx(score(*CORPUS)["conll"].f1)
    assert mean_f1(a)[1] == pytest.approx(score(*SECOND)["conll"].f1)
    difference = score(*CORPUS)["conll"].f1 - score(CORPUS[0], merged)["conll"].f1
    assert compare(a, b, mean_f1, n_resamples=500).difference == pytest.approx(difference)
    of_lea = count_table([score_parts(*CORPUS)], measures=["lea"])
    assert mean_f1(of_lea) == pytest.approx([score(*CORPUS)["lea"].f1])


@pytest.mark.parametrize("counts", [3.0, [1.0, 2, 3], np.zeros((2, 0)), np.zeros((4, 6))])
def test_counts_come_in_fours(counts):
    with pytest.raises(ValueError, match=r"^counts has shape \(.*\); its last axis must hold four numbers"):
        mean_f1(counts)


def test_parts_are_added_to_parts_only():
    with pytest.raises(TypeError, match="unsupported operand"):
        Parts() + 1
    with pytest.raises(KeyError, match="ceaf_e"):
        scores_of_parts({"muc": Parts(), "b_cubed": Parts()})
