"""Text, numbers and tables as HTML, mentions in their sentences, and the colours of gold clusters."""

import base64
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.widgets.html import (
    HUES,
    LONGEST_CONTEXT,
    UNKNOWN,
    ShownMention,
    bytes_in_words,
    count_in_words,
    counted,
    escaped,
    gold_chip,
    gold_colours,
    image_from_svg,
    joined,
    points_in_words,
    seconds_in_words,
    sentence_html,
    share_in_words,
    shortened,
    table_html,
)


class _Texts(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.text, self.tags = "", []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


def _parsed(html: str) -> _Texts:
    parser = _Texts()
    parser.feed(html)
    parser.close()
    return parser


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "&lt;b&gt; &amp; &#60;",
        "\"' onerror=x",
        "שלום عليكم",
        "👩‍👩‍👧 🌊",
        "line\nbreak",
    ],
)
def test_escaped_text_is_read_back_as_it_was_and_holds_no_tag(text):
    parsed = _parsed(escaped(text))
    assert parsed.text == text
    assert parsed.tags == []


def test_escaped_text_cannot_leave_an_attribute():
    assert '"' not in escaped('" onclick="x')
    assert "'" not in escaped("' onclick='x")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x00b", "a\u2400b"),
        ("bell\x07", "bell\u2407"),
        ("\x7f\x85", "\u2421\ufffd"),
        ("\u202ereversed", "\u2039U+202E\u203areversed"),
        ("\u2066x\u2069", "\u2039U+2066\u203ax\u2039U+2069\u203a"),
        ("half \ud83d", "half \ufffd"),
    ],
)
def test_control_characters_are_shown_and_do_nothing(text, shown):
    assert escaped(text) == shown
    escaped(text).encode("utf-8")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (0.25, "0.25 s"), (9.8, "9.8 s"), (42.4, "42 s"), (59.7, "1 min 0 s"), (95, "1 min 35 s"),
     (7260, "2 h 1 min"), (100_000, "1 d 3 h")],
)  # fmt: skip
def test_seconds(seconds, words):
    assert seconds_in_words(seconds) == words


@pytest.mark.parametrize(
    ("size", "words"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2.13e9, "2.1 GB"), (141e9, "141 GB")]
)
def test_bytes(size, words):
    assert bytes_in_words(size) == words


def test_counts_and_shares():
    assert count_in_words(4096) == "4,096"
    assert share_in_words(1, 3) == "33.3%"
    assert share_in_words(0, 0) == "0.0%"
    assert [counted(1, "word"), counted(4096, "word")] == ["1 word", "4,096 words"]
    assert [points_in_words(share) for share in (0.0312, -0.2, 0.0001)] == ["+3.1", "\u221220.0", "0.0"]


def test_table_sets_numbers_flush_right():
    html = table_html(("name", "n"), [("a", "1"), ("b", "2")])
    assert _parsed(html).text == "namena1b2"
    assert html.count("text-align:right") == 3
    assert html.count("text-align:left") == 3


def test_table_refuses_a_ragged_row():
    with pytest.raises(ValueError, match="row 1 has 1 cells, but there are 2 columns"):
        table_html(("name", "n"), [("a", "1"), ("b",)])


def test_image_carries_the_picture_itself():
    html = image_from_svg("<svg>é</svg>", description='a "picture"')
    data = html.split("base64,")[1].split('"')[0]
    assert base64.b64decode(data).decode() == "<svg>é</svg>"
    assert 'alt="a &quot;picture&quot;"' in html


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
