"""Text, numbers and tables as HTML."""

import base64
from html.parser import HTMLParser

import pytest

from cdlm_lab.widgets.html import (
    bytes_in_words,
    count_in_words,
    escaped,
    image_from_svg,
    seconds_in_words,
    share_in_words,
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
