"""Text, numbers and tables as HTML, mentions in their sentences, and the colours of gold clusters."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shown_reads import plain

from cdlm_lab.views import html
from cdlm_lab.views.html import HUES, UNKNOWN, ShownMention, escaped, gold_colours, joined, shortened


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("&lt;b&gt; &amp; &#60;", "&amp;lt;b&amp;gt; &amp;amp; &amp;#60;"),
        ("\"' onerror=x", "&quot;&#x27; onerror=x"),
        ("שלום عليكم 👩‍👩‍👧 🌊\nbreak", "שלום عليكم 👩‍👩‍👧 🌊\nbreak"),
        ("a\x00b bell\x07", "a\u2400b bell\u2407"),
        ("\x7f\x85", "\u2421\ufffd"),
        ("\u202ereversed", "\u2039U+202E\u203areversed"),
        ("\u2066x\u2069", "\u2039U+2066\u203ax\u2039U+2069\u203a"),
        ("half \ud83d", "half \ufffd"),
    ],
)
def test_escaped_text_is_no_markup_and_control_characters_are_shown_and_do_nothing(text, shown):
    assert escaped(text) == shown
    escaped(text).encode("utf-8")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (0.25, "0.25 s"), (9.8, "9.8 s"), (42.4, "42 s"), (59.7, "1 min 0 s"), (95, "1 min 35 s"),
     (7260, "2 h 1 min"), (100_000, "1 d 3 h")],
)  # fmt: skip
def test_seconds(seconds, words):
    assert html.seconds_in_words(seconds) == words


@pytest.mark.parametrize(
    ("size", "words"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2.13e9, "2.1 GB"), (141e9, "141 GB")]
)
def test_bytes_and_counts(size, words):
    assert html.bytes_in_words(size) == words
    assert [html.counted(1, "word"), html.counted(4096, "word")] == ["1 word", "4,096 words"]
    assert [html.points_in_words(share) for share in (0.0312, -0.2, 0.0001)] == ["+3.1", "\u221220.0", "0.0"]


def test_tables_set_numbers_flush_right_and_images_carry_their_picture():
    table = html.table_html(("name", "n"), [("a", "1"), ("b", "2")])
    assert plain(table) == "namena1b2"
    assert (table.count("text-align:right"), table.count("text-align:left")) == (3, 3)
    image = html.image_from_svg("<svg>é</svg>", description='a "picture"')
    assert base64.b64decode(image.split("base64,")[1].split('"')[0]).decode() == "<svg>é</svg>"
    assert 'alt="a &quot;picture&quot;"' in image


TOKENS = ["The", "storm", "did", "n't", "reach", "the", "harbour", "."]


def test_mentions_from_tokens():
    mention = ShownMention.from_tokens(TOKENS, (1, 2), document="d1", gold="STORM")
    assert (mention.before, mention.text, mention.after) == ("The", "storm", "didn't reach the harbour.")
    assert mention.sentence == "The storm didn't reach the harbour."
    whole = ShownMention.from_tokens(["Fire"], (0, 1))
    assert (whole.before, whole.text, whole.after, whole.gold) == ("", "Fire", "", None)


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("He did n't , she said .", "He didn't, she said."),
        ("the company 's ( new ) chief", "the company's (new) chief"),
        ("`` Stop ! '' he cried", "``Stop!'' he cried"),
        ("$ 6 million", "$6 million"),
        ("from \u00a3 2m to \u20ac 3m , # 1", "from \u00a32m to \u20ac3m, #1"),
        ("the \u20ac zone", "the \u20ac zone"),
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


FAMILY, ACCENTED, FLAGS = (
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "e\u0301",
    "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7",
)
HINDI = "\u0939\u093f\u0928\u094d\u0926\u0940"  # its first sign is two characters


@pytest.mark.parametrize(
    ("text", "longest", "start", "end"),
    [
        (f"abc{FAMILY}", 5, "abc…", "…"),
        (f"{FAMILY}abc", 5, "…", "…abc"),
        (ACCENTED * 5, 6, f"{ACCENTED * 2}…", f"…{ACCENTED * 2}"),
        (f"a{FLAGS}b", 3, "a…", "…b"),
        (f"a{FLAGS}b", 4, f"a{FLAGS[:2]}…", f"…{FLAGS[2:]}b"),
        (f"{HINDI} x", 4, "\u0939\u093f…", "… x"),
    ],
)  # fmt: skip
def test_no_cut_goes_through_what_a_reader_takes_for_one_sign(text, longest, start, end):
    assert shortened(text, longest) == start
    assert shortened(text, longest, at_start=True) == end


def test_a_long_name_of_a_gold_cluster_is_not_cut_in_a_sign():
    shown = plain(html.gold_chip(FAMILY * 8, "#123456"))
    assert shown.replace(FAMILY, "").strip() == "● …", "whole families only"


@given(text=st.text("ab ", max_size=80), longest=st.integers(2, 60), at_start=st.booleans())
def test_cut_texts_are_short_enough_and_part_of_the_text(text, longest, at_start):
    short = shortened(text, longest, at_start=at_start)
    assert len(short) <= max(longest, 0)
    kept = short.replace("…", "")
    assert text.endswith(kept) if at_start else text.startswith(kept)
    assert (short == text) == (len(text) <= longest)


def test_the_mention_is_marked_and_stands_as_in_print():
    mention = ShownMention(text="storm", before="(", after=", they said", document="d1")
    marked = html.sentence_html(mention, "#123456")
    assert '(<mark style="background:#12345642' in marked
    assert ">storm</mark>, they said</bdi>" in marked
    assert marked.endswith("<bdi>d1</bdi></span>")
    apart = html.sentence_html(ShownMention(text="storm", before="the", after="rose"), "#123456")
    assert "the <mark" in apart
    assert "</mark> rose</bdi>" in apart
    words = "word " * 200
    long = html.sentence_html(ShownMention(text="storm", before=words, after=words), "#123456")
    assert len(long) < 2 * html.LONGEST_CONTEXT + 250
    assert long.count("…") == 2


def test_gold_clusters_have_names_and_colours_that_tell_them_apart():
    assert "gold not known" in html.gold_chip(None, UNKNOWN)
    assert html.document_name("storyworld-0-test-1-0", "Fire at mill") == "Fire at mill"
    assert html.document_name("36_1ecb", "http: news") == "36_1ecb"
    chip = html.gold_chip("storyworld-0-test-1:event:rescue", UNKNOWN)
    assert ">storywo\u2026-test-1:event:rescue<" in chip, "a long name keeps its end"
    assert 'title="storyworld-0-test-1:event:rescue"' in chip
    groups = [[f"{group}-{name}" for name in range(len(HUES))] for group in range(5)]
    groups.append([names[0] for names in groups])
    colours = gold_colours([[None], *groups])
    assert colours[None] == UNKNOWN not in HUES
    for names in groups:  # side by side
        assert len({colours[name] for name in names}) == len(names)
    assert len(set(HUES)) == 8
    many = gold_colours([[str(name) for name in range(3 * len(HUES))]])
    assert [list(many.values()).count(hue) for hue in HUES] == [3] * 8, "used evenly"
