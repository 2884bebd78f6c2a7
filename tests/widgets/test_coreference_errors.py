"""Merged and split pairs, the worst first."""

import math
import re

import pytest

from cdlm_lab.widgets.coreference import CoreferenceErrors, PairError, ShownMention, errors_html


def pair(score, first="A", second="B", *, text="w"):
    return PairError(
        first=ShownMention(text=f"{text}1", before="the", after="fell .", document="d1", gold=first),
        second=ShownMention(text=f"{text}2", before="a", document="d2", gold=second),
        score=score,
    )


def sections(html):
    """The merged part and the split part, as text."""
    merged, split = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL).split(">Split")
    return merged, split


def scores(html):
    return [float(number) for number in re.findall(r"font-weight:600\">(\d\.\d{3})<", html)]


def text_of(html):
    return " ".join(re.sub(r"<[^>]*>", " ", html).replace("&ensp;", " ").split())


DISTINCT = [pair(score, f"A{n}", f"B{n}") for n, score in enumerate((0.4, 0.9, 0.6, 0.95))]
SAME = [pair(score, f"A{n}", f"A{n}") for n, score in enumerate((0.4, 0.1, 0.3))]


def test_merged_pairs_fall_and_split_pairs_rise():
    merged, split = sections(errors_html(CoreferenceErrors(merged=tuple(DISTINCT), split=tuple(SAME))))
    assert scores(merged) == [0.95, 0.9, 0.6, 0.4]
    assert scores(split) == [0.1, 0.3, 0.4]
    assert "Merged: 4 pairs" in merged
    assert ": 3 pairs" in split


def test_a_row_has_both_mentions_in_their_sentences():
    html = errors_html(CoreferenceErrors(merged=(pair(0.8125, "STORM", "FIRE"),), split=()))
    assert "0.812 ● STORM the w1 fell . d1 ● FIRE a w2 d2" in text_of(html)
    assert "width:81%" in html
    assert "Merged: 1 pair<" in html
    assert "Split: 0 pairs<" in html
    first, second = re.findall(r"background:(#\w{6})42", html)
    assert first != second


def test_pairs_of_the_same_gold_clusters_are_one_row():
    alike = [pair(0.5, "A", "B"), pair(0.9, "B", "A", text="worst"), pair(0.7, "A", "B"), pair(0.6, "A", "C")]
    merged, _ = sections(errors_html(CoreferenceErrors(merged=tuple(alike), split=())))
    assert scores(merged) == [0.9, 0.6]
    assert "worst1" in merged
    assert "and 2 more pairs like this" in merged
    assert "Merged: 4 pairs" in merged


def test_pairs_without_gold_are_never_alike():
    unknown = tuple(pair(0.5, None, None) for _ in range(3))
    merged, _ = sections(errors_html(CoreferenceErrors(merged=unknown, split=())))
    assert scores(merged) == [0.5] * 3
    assert "like this" not in merged


def test_rows_beyond_the_limit_are_counted_with_those_like_them():
    pairs = (*DISTINCT, pair(0.3, "A0", "B0"), pair(0.2, "X", "Y"))
    merged, _ = sections(errors_html(CoreferenceErrors(merged=pairs, split=()), limit=2))
    assert scores(merged) == [0.95, 0.9]
    assert "… and 4 more pairs, not shown" in merged
    merged, _ = sections(errors_html(CoreferenceErrors(merged=pairs, split=()), limit=5))
    assert "not shown" not in merged


def test_pairs_that_others_misled_are_noted():
    errors = CoreferenceErrors(
        merged=(pair(0.7, "A", "B"), pair(0.5, "A", "C"), pair(0.1, "A", "D")),
        split=(pair(0.2, "A", "A"), pair(0.5, "B", "B"), pair(0.6, "C", "C")),
        threshold=0.5,
    )
    merged, split = sections(errors_html(errors))
    assert merged.count("joined by way of others") == 2  # 0.5 alone would not have joined: it takes more
    assert split.count("kept apart by others") == 1
    without = errors_html(CoreferenceErrors(merged=errors.merged, split=errors.split))
    assert "others" not in without


def test_texts_are_escaped():
    evil = '<script>alert("x")</script>'
    mention = ShownMention(text=evil, before=evil, after=evil, document=evil, gold=evil)
    error = PairError(first=mention, second=mention, score=0.5)
    html = errors_html(CoreferenceErrors(merged=(error,), split=(error,), threshold=0.5))
    assert "<script" not in html
    assert '"x"' not in html
    assert html.count("&lt;script&gt;") > 10


def test_errors_that_make_no_sense_are_refused():
    for score in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=f"the score of a pair is {score}"):
            pair(score)
    with pytest.raises(ValueError, match="limit is 0"):
        errors_html(CoreferenceErrors(merged=(), split=()), limit=0)
