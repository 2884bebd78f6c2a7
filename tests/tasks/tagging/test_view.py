"""A tagged sentence with its spans, the occurrences of a word, and the figures of tagging."""

import re
from dataclasses import replace

import pytest
from shown_reads import legend_of, plain

from cdlm_lab.data.tags import TagSpan
from cdlm_lab.tasks.tagging import view as tagged
from cdlm_lab.tasks.tagging.view import ReadOccurrence, ReadSentence, ReadWord
from cdlm_lab.views.html import CROSS, GLOBAL, HUES, WRONG

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


def read(words, gold, predicted, occurrences=None):
    """Make a sentence of words and tags separated by spaces; `occurrences`: word's index -> occurrences."""
    golds = [None] * len(words.split()) if gold is None else gold.split()
    columns = zip(words.split(), golds, predicted.split(), strict=True)
    words = tuple(
        ReadWord(word=word, gold=g, predicted=p, occurrences=(occurrences or {}).get(number, ()))
        for number, (word, g, p) in enumerate(columns)
    )
    return ReadSentence(document="novel", number=12, words=words)


def html_of(one):
    return tagged.tagged_sentence_html(one, labels=tagged.labels_of_reads([one]))


# Of three true spans one is found, one has another label, one is cut short.
MISTAGGED = read(
    "her letters from Florence .",
    "B-PER B-OBJ I-OBJ B-GPE O",
    "B-PER B-OBJ O B-PER O",
    {3: FLORENCE, 0: (occurrence(place=0),)},
)
RIGHT = read("her letters", "B-PER O", "B-PER O", {0: (occurrence(place=0),) * 2})
OWN = read("her letters", None, "B-PER O")
NOTHING = read("a b", "O O", "O O")


def sentence(html):
    """Return the HTML of the sentence itself."""
    return re.search(r'<div style="font-size:15\.5px[^>]*>(.*?)</div>', html)[1]


def rows(html):
    """Return for each occurrence: its place, its weight, how full the bar is, its sentence, the bold text."""
    cells = []
    for row in re.findall(r"<tr><td.*?</tr>", html):
        where, weight, text = re.findall(r"<td.*?</td>", row)
        full = re.search(rf"width:(\d+)%;background:{GLOBAL}", weight)[1]
        bold = re.search(r"<mark[^>]*font-weight:600[^>]*>(.*?)</mark>", text)[1]
        cells.append((plain(where), plain(weight), int(full), plain(text), bold))
    return cells


def test_spans_whether_they_are_right_and_which_words_are_worth_a_look():
    labels = ((0, "PER"), (1, "OBJ"), (3, "PER"))
    assert MISTAGGED.predicted == tuple(TagSpan(label=x, first=i, stop=i + 1) for i, x in labels)
    assert MISTAGGED.gold[1] == TagSpan(label="OBJ", first=1, stop=3)
    assert (MISTAGGED.right, RIGHT.right, OWN.right, OWN.gold) == (False, True, None, None)
    assert NOTHING.right is True
    assert read("a b", "O O", "O I-PER").right is False
    assert read("a b", "O B-PER", "O I-PER").right is True, "a stray I- starts a span"
    assert (MISTAGGED.notable, RIGHT.notable, OWN.notable) == ((0, 1, 2, 3), (0,), (0,))
    assert (MISTAGGED.first_choice, NOTHING.first_choice) == (3, None)
    both = {0: FLORENCE[:2], 1: FLORENCE[:2], 2: FLORENCE[:2]}
    assert read("of Florence Firenze", None, "B-X I-X O", both).first_choice == 1
    assert read("to at", None, "B-X I-X", both).first_choice == 0
    assert read(", Florence", None, "B-X I-X", {0: FLORENCE[:2]}).first_choice == 1, "punctuation comes last"


def test_the_sentence_with_its_spans():
    html = html_of(MISTAGGED)
    labels = {"GPE": HUES[0], "OBJ": HUES[1], "PER": HUES[2]}
    body = sentence(html)
    texts = "her PER \u2713 letters OBJ \u2717 from \u25c6 gold OBJ Florence PER \u2717 \u25c6 gold GPE."
    assert plain(body) == texts
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
    assert f'<b style="color:{WRONG}">\u2717</b> wrong' in html
    assert f'<b style="color:{CROSS}">\u2713</b> right' in html_of(RIGHT)
    assert "<bdi>novel</bdi>, sentence 1,001<" in html_of(replace(RIGHT, number=1000))
    assert plain(sentence(html_of(OWN))) == "her PER letters", "without gold no span is right or wrong"
    assert plain(html_of(OWN)).endswith("novel, sentence 13her PER letterspredicted span")


def test_a_gold_span_that_ends_inside_a_predicted_one_and_spaces_of_print():
    body = sentence(html_of(read("the Old Man left", "O B-PER I-PER O", "B-PER I-PER I-PER I-PER")))
    assert plain(body) == "the Old Man \u25c6 gold PER left PER \u2717"
    (mark,) = re.findall(r"<mark[^>]*>(.*?)</mark>", body)
    assert plain(mark) == plain(body)
    text = "\u201c Mr. Beebe ! \u201d said ( did n't ) Lucy 's maid ."
    tags = " ".join(["O"] * len(text.split()))
    printed = "\u201cMr. Beebe!\u201d said (didn't) Lucy's maid."
    assert plain(sentence(html_of(read(text, tags, tags)))) == printed


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (
            MISTAGGED,
            "predicted span: \u2713 right, \u2717 wronggold span that was not foundword of which occurrences "
            "are shown",
        ),
        (read("a b", "B-X O", "O O"), "gold span that was not found"),
        (NOTHING, "no spans"),
        (read("a b", None, "O O"), "no span was predicted"),
    ],
)
def test_the_legend_explains_what_is_there(one, words):
    assert legend_of(html_of(one)) == words


def test_occurrences_nearest_first():
    html = html_of(MISTAGGED)
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
    weightless = html_of(read("her", "O", "B-PER", {0: (occurrence(place=0, weight=0.0),)}))
    assert rows(weightless)[0][1:3] == ("0.0%", 0)


def test_the_chosen_word_is_marked_in_the_sentence():
    boxed = r'<b style="font-weight:700;border:1px solid[^>]*>(.*?)</b>'
    assert re.findall(boxed, sentence(html_of(MISTAGGED))) == ["Florence"]
    assert MISTAGGED.elsewhere(0) == 0
    none = html_of(OWN)
    assert not re.search("occurrence|border:1px", none), "a model that attends to nothing"


def test_other_words_with_occurrences_elsewhere_show_them_when_clicked():
    many = read(
        "Florence , her Florence",
        "B-GPE O O O",
        "B-GPE I-GPE B-PER O",
        {0: FLORENCE, 1: FLORENCE[:3], 2: (occurrence(("a", "b", "her"), 2),), 3: FLORENCE},
    )
    first, other = tagged.tagged_page([many], title="Many").split('<div class="cdlm-o cdlm-o1">')
    assert [row[0] for row in rows(first)][:2] == ["here", "this sentence"]
    assert (len(rows(first)), len(rows(other))) == (5, 3)
    assert ",\u2002I-GPE, gold O \u00b7 3 occurrences elsewhere" in plain(other)
    assert '<label><input type="checkbox" class="cdlm-w1">,</label>' in first
    assert "div.cdlm-tagged:has(.cdlm-w1:checked) .cdlm-o1{display:block}" in first
    every = tagged.tagged_sentence_html(many, labels=["GPE", "PER"], every=True)
    assert re.findall(r'class="cdlm-w(\d)"', every) == ["1", "3"], "words that are no entity, too"
