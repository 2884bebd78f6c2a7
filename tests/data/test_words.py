"""The tokeniser of all readers and typed texts, in many scripts and with what cannot be seen."""

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.data.marked import parse_marked_documents
from cdlm_lab.data.records import TaggedDocument, TaggedSentence
from cdlm_lab.data.storyworld.stories import stories
from cdlm_lab.data.tags import tagged_text
from cdlm_lab.data.words import plain_word, token_spans, visible_word, words_of
from cdlm_lab.examples.tokens import pieces_of
from cdlm_lab.tasks.coreference.metrics import head_word, same_head
from cdlm_lab.tasks.tagging.examples import nearest_occurrences
from cdlm_lab.tasks.tagging.tf_idf import labelled_words


def nfd(text: str) -> str:
    return unicodedata.normalize("NFD", text)


# Words that are one token each, whatever they consist of; "|" stands between tokens.
TEXTS = {
    "decomposed German": nfd("Die|Bürgermeisterin|aß|süße|Äpfel|."),
    "decomposed Vietnamese": nfd("Thủ|tướng|Việt|Nam"),
    "Hindi": "प्रधानमंत्री|ने|दिल्ली|में|कहा|।",
    "Hindi with a joiner and a non-joiner": "क्‍षेत्र|श्री‌मान",
    "Tamil": "தமிழ்நாடு|முதலமைச்சர்",
    "Hebrew with points": "בְּרֵאשִׁית|בָּרָא",
    "Hebrew acronyms": "צה״ל|ארה\"ב|ג׳ורג׳",
    "Arabic with harakat": "كِتَابٌ|جَدِيدٌ",
    "Persian with a non-joiner": "می‌خواهم|کتاب‌ها",
    "Thai": "นายกรัฐมนตรี|ไทย",
    "soft hyphens": "Donau\xaddampf\xadschiff|fährt",
    "a zero-width space in a long word": "super\u200bcalifragilistic|word",
    "word joiner and byte order mark": "foo\u2060bar|a\ufeffb",
    "marks of direction": "abc\u200edef|x",
    "Chinese": "北京市|，|上海",
    "emoji of several characters": "👩‍👩‍👧|👍🏽|🇩🇪|1️⃣|❤️",
    "inner punctuation": "O'Brien|15-year-old|1,473.50|10:30|U.S.|2.5-fold|PU.1|i.e.",
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "boundaries", "tokens"),
    [
        ("The fire, in 1986.", (), ["The", "fire", ",", "in", "1986", "."]),
        ('"62,689 ducats," she said', (), ['"', "62,689", "ducats", ",", '"', "she", "said"]),
        ("1.456,7. 12,x 3rd", (), ["1.456,7", ".", "12", ",", "x", "3rd"]),
        ("broken-off half–time Ann's ’tis", (), ["broken-off", "half", "–", "time", "Ann's", "’", "tis"]),
        ("Ann's car-park", (3, 6, 9, 0, 14), ["Ann", "'s", "car", "-park"]),
        ("ab", (0, 1, 2, 7), ["a", "b"]),
        (" \n", (1,), []),
    ],
)
def test_token_spans(text, boundaries, tokens):
    spans = token_spans(text, boundaries=boundaries)
    assert [text[start:end] for start, end in spans] == tokens
    assert all(first[1] <= second[0] for first, second in pairwise(spans))


@pytest.mark.parametrize("name", TEXTS)
def test_words_stay_whole(name):
    tokens = TEXTS[name].split("|")
    text = " ".join(tokens)
    assert [text[start:end] for start, end in token_spans(text)] == tokens
    document = tagged_text("a", text)
    assert [word for sentence in document.sentences for word in sentence.words] == tokens
    (typed,) = parse_marked_documents(f"{text} <m>END</m>", kind="event").documents
    assert typed.tokens == (*map(visible_word, tokens), "END")


def test_a_zero_width_space_parts_words_where_a_script_uses_it_so():
    assert words_of("ประเทศ\u200bไทย ភាសា\u200bខ្មែរ") == ["ประเทศ", "ไทย", "ភាសា", "ខ្មែរ"]


def test_what_cannot_be_seen_is_no_token():
    text = "\u200b fire \xad\u200f .\u202c \x07 \ufeff"
    assert [text[start:end] for start, end in token_spans(text)] == ["fire", "."]


@given(st.text(alphabet=st.sampled_from("aé\u0301ि\xad\u200b\u200dไ漢'’-.:1, \n\u3000😀\ufe0f\x00״ב")))
def test_spans_are_in_order_and_hold_everything_visible(text):
    spans = token_spans(text)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(first[1] <= second[0] for first, second in pairwise(spans))
    outside = [one for place, one in enumerate(text) if not any(a <= place < b for a, b in spans)]
    assert all(one.isspace() or unicodedata.category(one) in ("Cc", "Cf") for one in outside)


def test_endings_apart_is_the_only_difference():
    texts = [one.text for story in stories(seed=0, split="test", stop=3) for one in story.cluster.documents]
    texts.append("Ann's and James' brother won't say they're 'Tis 3.5's 5 o'clock.")
    found = set()
    for text in texts:
        spans, apart = (token_spans(text, endings_apart=way) for way in (False, True))
        starts = {start for start, _ in spans}
        assert starts <= {start for start, _ in apart}
        found |= {text[start:end] for start, end in apart if start not in starts}
    assert (
        {"'s", "'re"}
        <= found
        <= {f"{sign}{one}" for sign in "'’" for one in ("s", "m", "d", "re", "ve", "ll")}
    )


def test_words_are_compared_in_one_form():
    word, apart = "Zürich", nfd("Zürich")
    assert plain_word(apart) == plain_word("Zü\xadrich") == word != apart
    assert head_word(["das", apart]) == head_word(["das", word]) == "zürich"
    assert same_head([[apart], ["Zü\xadrich"], [word]], ["t", "t", "t"]).tolist() == [0, 0, 0]
    assert pieces_of(f"{apart}!") == ["zürich", "!"]


def test_the_same_word_elsewhere_in_other_characters():
    """Doc-ARC's occurrences, and TF-IDF, take composed and decomposed letters for the same word."""
    words = [("Zürich",), (nfd("Zürich"), "fell"), ("Zü\xadrich",)]
    document = TaggedDocument(
        id="a", sentences=tuple(TaggedSentence(words=one, tags=("O",) * len(one)) for one in words)
    )
    nearest = nearest_occurrences(document, most=3)
    assert nearest.places[0].tolist() == [[0, 0], [1, 0], [2, 0]]
    other = TaggedDocument(id="b", sentences=document.sentences[:0])
    words = labelled_words([document], others=[other]).set_index("word")
    assert dict(words["occurrences"]) == {"zürich": 3, "fell": 1}
    assert words["score"]["zürich"] > words["score"]["fell"]
