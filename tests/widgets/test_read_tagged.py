"""A tagged sentence: its spans as people read them, the occurrences of a word, pages, and hostile texts."""

import html as html_library
import re
from dataclasses import replace

import pytest

from cdlm_lab.data.tagged import TagSpan
from cdlm_lab.widgets.html import CROSS, GLOBAL, HUES, OTHER_COLOURS
from cdlm_lab.widgets.tagged import (
    ReadOccurrence,
    ReadSentence,
    ReadWord,
    labels_of_reads,
    tagged_page,
)
from cdlm_lab.widgets.tagged import (
    tagged_sentence_html as sentence_html,
)

HOSTILE = "<script>x</script>\"'&\u202e"
SHOWN = "&lt;script&gt;x&lt;/script&gt;&quot;&#x27;&amp;\u2039U+202E\u203a"
OUR_TAGS = {"div", "span", "bdi", "b", "u", "mark", "style", "table", "tbody", "tr", "td"}
GREY = "#8c8c8c"
LETTERS = ("her", "letters", "from", "Florence", ".")
LATER = ("In", "Florence", ",", "Florence", "!")


def occurrence(words=LETTERS, place=3, distance=0, weight=0.5, sentence=12):
    return ReadOccurrence(words=words, place=place, distance=distance, weight=weight, sentence=sentence)


FLORENCE = (
    occurrence(LATER, 3, 1, 0.1, 13),
    occurrence(weight=0.2),
    occurrence(("Florence", "stood"), 0, 9, 0.05, 3),
    occurrence(LATER, 1, 1, 0.4, 13),
    occurrence(("Florence", ",", *LETTERS), 0, 0, 0.25, 12),
)


def read(words, gold, predicted, occurrences=None, **changed):
    """A sentence from words and tags separated by spaces; `occurrences` by number of the word."""
    words, predicted = words.split(), predicted.split()
    golds = [None] * len(words) if gold is None else gold.split()
    columns = zip(words, golds, predicted, strict=True)
    return ReadSentence(
        **{"document": "novel", "number": 12} | changed,
        words=tuple(
            ReadWord(word=word, gold=g, predicted=p, occurrences=(occurrences or {}).get(number, ()))
            for number, (word, g, p) in enumerate(columns)
        ),
    )


# Of three true spans one is found, one has another label, one is cut short.
WRONG = read(
    "her letters from Florence .",
    "B-PER B-OBJ I-OBJ B-GPE O",
    "B-PER B-OBJ O B-PER O",
    {3: FLORENCE, 0: (occurrence(place=0),)},
)
RIGHT = read("her letters", "B-PER O", "B-PER O", {0: (occurrence(place=0),) * 2})
OWN = read("her letters", None, "B-PER O")


def plain(html):
    return html_library.unescape(re.sub(r"<[^>]*>", "", html))


def sentence(html):
    """HTML of the sentence itself."""
    return re.search(r'<div style="font-size:15\.5px[^>]*>(.*?)</div>', html)[1]


def legend(html):
    return plain(re.search(r'<div class="cdlm-legend".*?</div>', html)[0])


def rows(html):
    """Of each occurrence: where it is, its weight, how full the bar is, its sentence, and what is bold."""
    found = []
    for row in re.findall(r"<tr><td.*?</tr>", html):
        where, weight, text = re.findall(r"<td.*?</td>", row)
        full = re.search(rf"width:(\d+)%;background:{GLOBAL}", weight)[1]
        bold = re.search(r"<mark[^>]*font-weight:600[^>]*>(.*?)</mark>", text)[1]
        found.append((plain(where), plain(weight), int(full), plain(text), bold))
    return found


def test_spans_and_whether_they_are_right():
    assert WRONG.predicted == tuple(
        TagSpan(label=x, first=i, stop=i + 1) for i, x in ((0, "PER"), (1, "OBJ"), (3, "PER"))
    )
    assert WRONG.gold[1] == TagSpan(label="OBJ", first=1, stop=3)
    assert (WRONG.right, RIGHT.right, OWN.right) == (False, True, None)
    assert OWN.gold is None
    assert read("a b", "O O", "O O").right is True
    assert read("a b", "O O", "O I-PER").right is False
    assert read("a b", "O B-PER", "O I-PER").right is True, "a stray I- starts a span"


def test_which_words_are_worth_a_look():
    assert WRONG.notable == (0, 1, 2, 3)
    assert RIGHT.notable == (0,)
    assert OWN.notable == (0,)
    assert WRONG.first_choice == 3
    assert read("a b", "O O", "O O").first_choice is None
    both = {0: FLORENCE[:2], 1: FLORENCE[:2], 2: FLORENCE[:2]}
    assert read("of Florence Firenze", None, "B-X I-X O", both).first_choice == 1
    assert read("to at", None, "B-X I-X", both).first_choice == 0


def test_the_sentence_with_its_spans():
    html = sentence_html(WRONG)
    labels = {"GPE": HUES[0], "OBJ": HUES[1], "PER": HUES[2]}
    body = sentence(html)
    assert plain(body) == (
        "her PER \u2713 letters OBJ \u2717 from \u25c6 gold OBJ Florence PER \u2717 \u25c6 gold GPE."
    )
    marks = re.findall(r'<mark style="background:(#\w{6})42[^>]*>(.*?)</mark>', body)
    assert [(colour, plain(text)) for colour, text in marks] == [
        (labels["PER"], "her PER \u2713"),
        (labels["OBJ"], "letters OBJ \u2717"),
        (labels["PER"], "Florence PER \u2717"),
    ]
    lines = re.findall(r'<u style="text-decoration:underline dashed 2px (#\w{6})[^>]*>(.*?)</u>', body)
    assert [(colour, plain(text)) for colour, text in lines] == [
        *((labels["OBJ"], text) for text in ("letters", " ", "from")),
        (labels["GPE"], "Florence"),
    ]


def test_a_gold_span_that_ends_inside_a_predicted_one():
    body = sentence(sentence_html(read("the Old Man left", "O B-PER I-PER O", "B-PER I-PER I-PER I-PER")))
    assert plain(body) == "the Old Man \u25c6 gold PER left PER \u2717"
    (mark,) = re.findall(r"<mark[^>]*>(.*?)</mark>", body)
    assert plain(mark) == plain(body)


def test_without_gold_no_span_is_right_or_wrong():
    html = sentence_html(OWN)
    assert plain(sentence(html)) == "her PER letters"
    assert plain(html).endswith("novel, sentence 13her PER letterspredicted span")


def test_the_head_says_where_and_how():
    assert f'<b style="color:{OTHER_COLOURS[0]}">\u2717</b> wrong' in sentence_html(WRONG)
    assert f'<b style="color:{CROSS}">\u2713</b> right' in sentence_html(RIGHT)
    assert "<bdi>novel</bdi>, sentence 1,001<" in sentence_html(replace(RIGHT, number=1000))


def test_spaces_are_those_of_print():
    text = "\u201c Mr. Beebe ! \u201d said ( did n't ) Lucy 's maid ."
    tags = " ".join(["O"] * len(text.split()))
    body = sentence(sentence_html(read(text, tags, tags)))
    assert plain(body) == "\u201cMr. Beebe!\u201d said (didn't) Lucy's maid."


def test_the_legend_explains_what_is_there():
    assert legend(sentence_html(WRONG)) == (
        "predicted span: \u2713 right, \u2717 wronggold span that was not foundword of which occurrences "
        "are shown"
    )
    assert legend(sentence_html(read("a b", "B-X O", "O O"))) == "gold span that was not found"
    assert legend(sentence_html(read("a b", "O O", "O O"))) == "no spans"
    assert legend(sentence_html(read("a b", None, "O O"))) == "no span was predicted"


def test_occurrences_nearest_first():
    html = sentence_html(WRONG)
    assert rows(html) == [
        ("this sentence", "25.0%", 62, "Florence, her letters from Florence.", "Florence"),
        ("here", "20.0%", 50, "her letters from Florence.", "Florence"),
        ("1 sentence after", "40.0%", 100, "In Florence, Florence!", "Florence"),
        ("1 sentence after", "10.0%", 25, "In Florence, Florence!", "Florence"),
        ("9 sentences before", "5.0%", 12, "Florence stood", "Florence"),
    ]
    first, second = re.findall(r"In .*?!", html)
    assert (first.index("<mark"), second.index("<mark")) == (len("In "), len("In Florence, "))
    heading = re.search(r'<div style="margin:8px 0"><div>(.*?)</div>', html)[1]
    assert plain(heading) == "Florence\u2002B-PER, gold B-GPE \u00b7 4 occurrences elsewhere"
    assert "the bar is full at the largest" in html


def test_the_chosen_word_is_marked_in_the_sentence():
    boxed = r'<b style="font-weight:700;border:1px solid[^>]*>(.*?)</b>'
    assert re.findall(boxed, sentence(sentence_html(WRONG))) == ["Florence"]
    html = sentence_html(WRONG, chosen=0)
    assert re.findall(boxed, sentence(html)) == ["her"]
    assert [row[0] for row in rows(html)] == ["here"]
    assert "B-PER &middot; 0 occurrences elsewhere" in html
    assert WRONG.elsewhere(0) == 0
    nothing = sentence_html(WRONG, chosen=4)
    assert "The model attended to no occurrence of this word." in nothing
    for wrong in (-1, 5):
        with pytest.raises(ValueError, match=f"chosen is {wrong}; the sentence has words 0 to 4"):
            sentence_html(WRONG, chosen=wrong)


def test_occurrences_have_the_colour_of_the_predicted_label():
    def colours(html):
        return set(re.findall(r"<mark style=\"background:(#\w{6})42[^>]*font-weight:600", html))

    assert colours(sentence_html(WRONG)) == {HUES[2]}
    assert colours(sentence_html(read("Florence", "B-PER", "O", {0: FLORENCE}))) == {GREY}


def test_a_model_that_attends_to_nothing_has_no_list_and_no_chosen_word():
    html = sentence_html(read("her letters", "B-PER O", "B-PER O"), chosen=0)
    assert "occurrence" not in html
    assert "border:1px" not in html


def test_labels_keep_their_colours_in_all_sentences():
    assert labels_of_reads([RIGHT, WRONG]) == ("GPE", "OBJ", "PER")
    assert f"background:{HUES[0]}42" in sentence(sentence_html(RIGHT))
    assert f"background:{HUES[2]}42" in sentence(sentence_html(RIGHT, labels=labels_of_reads([WRONG])))
    assert f"background:{GREY}42" in sentence(sentence_html(RIGHT, labels=()))


def test_weights_of_nothing():
    html = sentence_html(read("her", "O", "B-PER", {0: (occurrence(place=0, weight=0.0),)}))
    assert rows(html)[0][1:3] == ("0.0%", 0)


def test_texts_are_escaped():
    where = occurrence((HOSTILE, "a", HOSTILE), 2, 3, 1.0, 2)
    word = ReadWord(word=HOSTILE, gold=f"B-{HOSTILE}", predicted=f"I-{HOSTILE}1", occurrences=(where,))
    hostile = ReadSentence(document=HOSTILE, number=12, words=(word, word))
    html = sentence_html(hostile)
    assert "<script" not in html
    assert "\u202e" not in html
    assert set(re.findall(r"<(\w+)", html)) <= OUR_TAGS
    # document; each word, two gold labels, one predicted span; heading: word, two tags; two in the list
    assert plain(html).count(plain(SHOWN)) == 1 + 2 + 2 + 1 + 3 + 2
    page = tagged_page([hostile], title=HOSTILE)
    assert "<script" not in page
    assert page.count(f"<title>{SHOWN}</title>") == 1


def test_a_page_runs_nothing_and_loads_nothing():
    page = tagged_page([WRONG, RIGHT, OWN], title="Test <set>")
    assert page.startswith("<!doctype html>")
    assert page.endswith("</body></html>")
    assert "default-src 'none'; style-src 'unsafe-inline'" in page
    assert "color-scheme:light dark" in page
    assert "3 sentences; 1 of 2 right<" in page
    assert page.count('<div class="cdlm-view cdlm-tagged"') == 3
    assert not re.search(r"https?:|<link|<img|<script|\son\w+=", page)
    assert "1 sentence<" in tagged_page([OWN], title="One")
    with pytest.raises(ValueError, match="reads is empty"):
        tagged_page([], title="None")


def test_on_a_page_other_words_with_occurrences_elsewhere_are_folded():
    many = read(
        "Florence , her Florence",
        "B-GPE O O O",
        "B-GPE I-GPE B-PER O",
        {0: FLORENCE, 1: FLORENCE[:3], 2: (occurrence(("a", "b", "her"), 2),), 3: FLORENCE},
    )
    page = tagged_page([many], title="Many")
    summaries = [plain(found) for found in re.findall(r"<summary>(.*?)</summary>", page)]
    assert summaries == [",\u2002I-GPE, gold O \u00b7 3 occurrences elsewhere"]
    unfolded = page.partition("<details")[0]
    assert [row[0] for row in rows(unfolded)][:2] == ["here", "this sentence"]
    assert len(rows(page)) == 5 + 3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"place": 5}, "an occurrence at word 5 of 5"),
        ({"place": -1}, "an occurrence at word -1 of 5"),
        ({"distance": -2}, "the distance of an occurrence is -2"),
        ({"weight": -0.1}, r"the weight of an occurrence is -0\.1; it must lie in \[0, 1\]"),
        ({"weight": 1.01}, r"the weight of an occurrence is 1\.01"),
        ({"weight": float("nan")}, "the weight of an occurrence is nan"),
    ],
)
def test_occurrences_that_make_no_sense_are_refused(wrong, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        occurrence(**wrong)
    assert occurrence(weight=1.0005).weight == 1.0005, "half precision may give more than 1"


def test_sentences_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match=r"^novel, sentence 12: it has no words"):
        replace(WRONG, words=())
    with pytest.raises(
        ValueError, match=r"^novel, sentence 12: some words have a gold tag and some have not"
    ):
        replace(WRONG, words=(*WRONG.words, *OWN.words))
