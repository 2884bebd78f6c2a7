"""Mentions in their sentences, and the colours of gold clusters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.widgets.html import (
    HUES,
    LONGEST_CONTEXT,
    UNKNOWN,
    ShownMention,
    gold_chip,
    gold_colours,
    joined,
    sentence_html,
    shortened,
)

TOKENS = ["The", "storm", "did", "n't", "reach", "the", "harbour", "."]


def test_from_tokens():
    mention = ShownMention.from_tokens(TOKENS, (1, 2), document="d1", gold="STORM")
    assert (mention.before, mention.text, mention.after) == ("The", "storm", "didn't reach the harbour.")
    assert mention.sentence == "The storm didn't reach the harbour."
    whole = ShownMention.from_tokens(["Fire"], (0, 1))
    assert (whole.before, whole.text, whole.after, whole.gold) == ("", "Fire", "", None)


@pytest.mark.parametrize("span", [(2, 2), (-1, 2), (7, 9)])
def test_spans_outside_the_sentence_are_refused(span):
    with pytest.raises(ValueError, match="is no span of the 8 tokens"):
        ShownMention.from_tokens(TOKENS, span)


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("He did n't , she said .", "He didn't, she said."),
        ("the company 's ( new ) chief", "the company's (new) chief"),
        ("`` Stop ! '' he cried", "``Stop!'' he cried"),
        ("$ 6 million", "$6 million"),
        ("'s", "'s"),
        ("", ""),
    ],
)
def test_spaces_are_those_of_print(tokens, text):
    assert joined(tokens.split()) == text


@given(tokens=st.lists(st.text("ab(),.$'", min_size=1, max_size=3), max_size=8))
def test_only_spaces_change(tokens):
    assert joined(tokens).replace(" ", "") == "".join(tokens)


def test_long_texts_are_cut_between_words():
    assert shortened("one two three", 13) == "one two three"
    assert shortened("one two three", 10) == "one two …"
    assert shortened("one two three", 10, at_start=True) == "… three"
    assert shortened("a" * 50, 10) == "a" * 9 + "…"
    assert shortened("a" * 50, 10, at_start=True) == "…" + "a" * 9


@given(text=st.text("ab ", max_size=80), longest=st.integers(2, 60), at_start=st.booleans())
def test_cut_texts_are_short_enough_and_part_of_the_text(text, longest, at_start):
    short = shortened(text, longest, at_start=at_start)
    assert len(short) <= max(longest, 0)
    kept = short.replace("…", "")
    assert text.endswith(kept) if at_start else text.startswith(kept)
    assert (short == text) == (len(text) <= longest)


def test_the_mention_is_marked_and_stands_as_in_print():
    mention = ShownMention(text="storm", before="(", after=", they said", document="d1")
    html = sentence_html(mention, "#123456")
    assert '(<mark style="background:#12345642' in html
    assert ">storm</mark>, they said</bdi>" in html
    assert html.endswith("<bdi>d1</bdi></span>")
    apart = sentence_html(ShownMention(text="storm", before="the", after="rose"), "#123456")
    assert "the <mark" in apart
    assert "</mark> rose</bdi>" in apart


def test_every_text_is_escaped():
    evil = "<script>alert('x')</script>"
    mention = ShownMention(text=evil, before=evil, after=evil, document=evil, gold=evil)
    html = sentence_html(mention, "#123456") + gold_chip(evil, "#123456") + gold_chip(evil * 3, "#123456")
    assert "<script" not in html
    assert "'x'" not in html
    assert html.count("&lt;script&gt;") >= 5


def test_long_sentences_are_cut_around_the_mention():
    words = "word " * 200
    html = sentence_html(ShownMention(text="storm", before=words, after=words), "#123456")
    assert len(html) < 2 * LONGEST_CONTEXT + 250
    assert html.count("…") == 2


def test_a_gold_cluster_that_is_not_known():
    assert "gold not known" in gold_chip(None, UNKNOWN)
    assert gold_colours([[None, "a"]])[None] == UNKNOWN


def test_names_side_by_side_have_different_colours():
    groups = [[f"{group}-{name}" for name in range(len(HUES))] for group in range(5)]
    groups.append([names[0] for names in groups])
    colours = gold_colours(groups)
    for names in groups:
        assert len({colours[name] for name in names}) == len(names)
    assert UNKNOWN not in HUES
    assert len(set(HUES)) == 8


def test_more_names_than_colours_share_them_evenly():
    colours = gold_colours([[str(name) for name in range(3 * len(HUES))]])
    del colours[None]
    assert {list(colours.values()).count(hue) for hue in HUES} == {3}


def test_a_long_name_keeps_its_end():
    html = gold_chip("storyworld-0-test-1:event:rescue", UNKNOWN)
    assert ">storywo\u2026-test-1:event:rescue<" in html
    assert 'title="storyworld-0-test-1:event:rescue"' in html
