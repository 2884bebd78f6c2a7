"""A tagged sentence with its spans, the occurrences of a word, and the figures of tagging."""

import math
import re
from dataclasses import replace

import pytest
from shown_reads import legend_of, plain, words_of

from cdlm_lab.data.tags import TagSpan
from cdlm_lab.tasks.tagging import view as tagged
from cdlm_lab.tasks.tagging.view import ReadOccurrence, ReadSentence, ReadWord
from cdlm_lab.views.html import CROSS, GLOBAL, HUES, UNKNOWN, WRONG

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


def html_of(one, chosen=None, labels=None):
    labels = tagged.labels_of_reads([one]) if labels is None else labels
    return tagged.tagged_sentence_html(one, labels=labels, chosen=chosen)


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


def test_several_sentences_have_one_legend_of_all_their_marks():
    reads = [MISTAGGED, read("a b", "B-X O", "O O"), RIGHT]
    html = tagged.tagged_sentences_html(reads, labels=tagged.labels_of_reads(reads))
    assert html.count('class="cdlm-legend"') == 1
    assert html.index('class="cdlm-legend"') < html.index('class="cdlm-view cdlm-tagged"')
    for words in ("predicted span: \u2713 right", "gold span that was not found", "word of which"):
        assert words in legend_of(html)
    assert html.count('class="cdlm-view cdlm-tagged"') == 3


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
    html = html_of(MISTAGGED, chosen=0)
    assert re.findall(boxed, sentence(html)) == ["her"]
    assert [row[0] for row in rows(html.partition('<div class="cdlm-o')[0])] == ["here"]
    assert "B-PER &middot; 0 occurrences elsewhere" in html
    assert MISTAGGED.elsewhere(0) == 0
    assert "The model attended to no occurrence of this word." in html_of(MISTAGGED, chosen=4)
    for wrong in (-1, 5):
        with pytest.raises(ValueError, match=f"chosen is {wrong}; the sentence has words 0 to 4"):
            html_of(MISTAGGED, chosen=wrong)
    none = html_of(OWN, chosen=0)
    assert not re.search("occurrence|border:1px", none), "a model that attends to nothing"


def test_labels_keep_their_colours_in_all_sentences_and_occurrences():
    def colours(html):
        return set(re.findall(r"<mark style=\"background:(#\w{6})42[^>]*font-weight:600", html))

    assert tagged.labels_of_reads([RIGHT, MISTAGGED]) == ("GPE", "OBJ", "PER")
    for labels, colour in ((None, HUES[0]), (("GPE", "OBJ", "PER"), HUES[2]), ((), UNKNOWN)):
        assert f"background:{colour}42" in sentence(html_of(RIGHT, labels=labels))
    assert colours(html_of(MISTAGGED)) == {HUES[2]}, "that of the predicted label"
    assert colours(html_of(read("Florence", "B-PER", "O", {0: FLORENCE}))) == {UNKNOWN}


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


# Rows of the tables of a report.
NEAR = {"bucket": 0, "quantiles": [0.1, 0.2, 0.4, 0.6, 0.9], "mean": 0.45, "count": 1200}
FAR = {"bucket": 2, "quantiles": [0.0, 0.01, 0.02, 0.05, 0.3], "mean": 0.5, "count": 7}
ALL = {"words": "all words", "difference": 0.0312, "low": 0.01, "high": 0.05, "occurrences": 5321}
TOP = {"words": "top 1%", "difference": -0.2, "low": -0.3, "high": 0.1, "occurrences": 71}


def swept(k, *f1s):
    return [{"occurrences": k, "seed": seed, "f1": f1} for seed, f1 in enumerate(f1s)]


@pytest.mark.parametrize(
    ("record", "wrong", "message"),
    [
        (occurrence(), {"place": 5}, "an occurrence at word 5 of 5"),
        (occurrence(), {"place": -1}, "an occurrence at word -1 of 5"),
        (occurrence(), {"distance": -2}, "the distance of an occurrence is -2"),
        (occurrence(), {"weight": -0.1}, r"the weight of an occurrence is -0\.1; it must lie in \[0, 1\]"),
        (occurrence(), {"weight": 1.01}, r"the weight of an occurrence is 1\.01"),
        (occurrence(), {"weight": float("nan")}, "the weight of an occurrence is nan"),
        (MISTAGGED, {"words": ()}, "novel, sentence 12: it has no words"),
        (MISTAGGED, {"words": MISTAGGED.words + OWN.words}, "novel, sentence 12: some words have a gold tag"),
    ],
)
def test_records_that_make_no_sense_are_refused(record, wrong, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        replace(record, **wrong)
    assert occurrence(weight=1.0005).weight == 1.0005, "half precision may give more than 1"


def axes(figure):
    return figure.layout.xaxis.title.text, figure.layout.yaxis.title.text


def test_shares_stand_in_the_middle_of_their_percentiles():
    parts = [
        {"start": start, "stop": stop, "share": share, "words": words}
        for start, stop, share, words in ((0, 40, 0.0125, 400), (40, 100, 0.5, 1600))
    ]
    figure = tagged.shares_by_tf_idf_figure("JNLPBA", parts)
    (line,) = figure.data
    assert (line.x, line.y) == ((20, 70), (1.25, 50))
    assert line.name == "JNLPBA (n = 2,000 words)"
    assert line.text == ("percentiles 0 to 40, n = 400 words", "percentiles 40 to 100, n = 1,600 words")
    assert line.hovertemplate == "JNLPBA<br>%{text}<br>%{y:.1f}% are entities<extra></extra>"
    assert axes(figure) == ("TF-IDF of the word in its document (percentile)", "share of entities (%)")
    assert figure.layout.xaxis.range == (0, 100)
    assert figure.layout.title.text == "Share of words that are entities, by TF-IDF"


def test_gains_with_their_intervals_and_zero_in_sight():
    figure = tagged.gain_by_tf_idf_figure([ALL, TOP], system="Doc-ARC", other="BERT")
    dots, numbers = figure.data
    assert (dots.x, dots.y) == ((0, 1), (3.12, -20))
    assert dots.error_y.array == pytest.approx((5 - 3.12, 10 + 20))
    assert dots.error_y.arrayminus == (2.12, 10)
    assert dots.hovertext == (
        "all words<br>+3.1 points (+1.0 to +5.0), n = 5,321 words",
        "top 1%<br>\u221220.0 points (\u221230.0 to +10.0), n = 71 words",
    )
    assert (numbers.text, numbers.y) == (("+3.1", "\u221220.0"), dots.y)
    assert numbers.textposition == ("top right", "bottom right"), "beside the dots, away from the zero line"
    labels = [words_of(text) for text in figure.layout.xaxis.ticktext]
    assert labels == ["all words n = 5,321", "top 1% n = 71"]
    assert axes(figure)[1] == "word F1: Doc-ARC \u2212 BERT (points)"
    assert figure.layout.title.text == "Word F1 of Doc-ARC minus that of BERT, by TF-IDF"
    assert figure.layout.showlegend is False
    low, high = figure.layout.yaxis.range
    assert low < -30 < 10 < high
    above = tagged.gain_by_tf_idf_figure([ALL | {"low": 0.02}], system="A", other="B")
    assert above.layout.yaxis.range[0] < 0
    assert above.layout.yaxis.zeroline is True


def test_weights_are_boxes_without_points():
    buckets = ("0", "1", "4-7")
    figure = tagged.weights_by_distance_figure([NEAR, FAR], buckets=buckets, title="Weights")
    boxes, means = figure.data
    assert boxes.x == means.x == (0, 2)
    drawn = (boxes.lowerfence, boxes.q1, boxes.median, boxes.q3, boxes.upperfence)
    assert list(zip(*drawn, strict=True)) == [tuple(NEAR["quantiles"]), tuple(FAR["quantiles"])]
    assert boxes.y is None
    assert means.y == (0.45, 0.5)
    below = "5%: 0.100, 25%: 0.200, 50%: 0.400, 75%: 0.600, 95%: 0.900"
    assert means.hovertext[0] == f"distance 0, n = 1,200<br>mean 0.450<br>{below}"
    labels = [words_of(text) for text in figure.layout.xaxis.ticktext]
    assert labels == ["0 n = 1,200", "1 n = 0", "4-7 n = 7"]
    assert figure.layout.yaxis.range[0] == 0
    assert figure.layout.yaxis.range[1] > 0.9
    assert axes(figure) == ("distance in sentences, and number of occurrences", "attention weight")
    mean_on_top = tagged.weights_by_distance_figure([FAR], buckets=buckets, title="")
    assert mean_on_top.layout.yaxis.range[1] > 0.5, "above all quantiles"


def test_a_sweep_is_a_line_with_a_band_and_its_best_point():
    spread = math.sqrt(0.5)  # of two seeds the deviation is their distance from the mean times the root of 2
    seeds = [*swept(10, 0.72 - 0.02 * spread, 0.72 + 0.02 * spread), *swept(25, 0.71)]
    figure = tagged.sweep_figure("LitBank", [*seeds, *swept(2, 0.7 - 0.01 * spread, 0.7 + 0.01 * spread)])
    band, line = figure.data
    assert (line.x, line.y) == ((2, 10, 25), (70, 72, 71))
    assert line.text == ("", "72.0", "")
    assert line.name == "LitBank (n = 1 to 2 seeds)"
    assert line.hovertext == (
        "LitBank<br>K = 2: F1 70.0 \u00b1 1.0, 2 seeds",
        "LitBank<br>K = 10: F1 72.0 \u00b1 2.0, 2 seeds",
        "LitBank<br>K = 25: F1 71.0, 1 seed",
    )
    assert (band.x, band.y, band.fill) == ((2, 10, 10, 2), (71, 74, 70, 69), "toself")
    assert figure.layout.xaxis.tickvals == (2, 10, 25)
    assert axes(figure) == ("K: occurrences that a word may attend to", "F1 on development documents (%)")
    assert figure.layout.title.text == "F1 by the number of occurrences attended to"
    (alone,) = tagged.sweep_figure("a", [*swept(2, 0.5), *swept(5, 0.6)]).data
    assert alone.name == "a (n = 1 seed)", "no band without a deviation"


DRAWN = {
    "shares": lambda rows: tagged.shares_by_tf_idf_figure("a", rows),
    "gains": lambda rows: tagged.gain_by_tf_idf_figure(rows, system="", other=""),
    "weights": lambda rows: tagged.weights_by_distance_figure(rows, buckets=(), title=""),
    "sweep": lambda rows: tagged.sweep_figure("a", rows),
}


@pytest.mark.parametrize("table", DRAWN)
def test_nothing_is_not_drawn(table):
    with pytest.raises(ValueError, match=f"there is nothing to show: {table} is empty"):
        DRAWN[table]([])
