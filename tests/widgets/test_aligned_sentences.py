"""Sentences on the blue of their weights, of one system and of several side by side."""

import re

import numpy as np
import pytest

from cdlm_lab.widgets.aligned import (
    AlignedColumn,
    compared_alignments_html,
)
from cdlm_lab.widgets.html import CROSS, GLOBAL

HOSTILE = "<script>x</script> \"'&\u202e"
SHOWN = "&lt;script&gt;x&lt;/script&gt; &quot;&#x27;&amp;\u2039U+202E\u203a"
SENTENCES = ["One.", "Two.", "Three."]


def page(weights=(0.1, 0.6, 0.3), sentences=SENTENCES, *, decision=None, gold=(), **more):
    column = AlignedColumn(name="A", weights=weights, decision=decision)
    titles = {"title": "A", "other_title": "B"}
    return compared_alignments_html([column], sentences, gold, **titles | more)


def compared(*columns, gold=(), sentences=SENTENCES, **more):
    return compared_alignments_html(columns, sentences, gold, **{"title": "A", "other_title": "B"} | more)


def body(html):
    """Of each row: its cells as text."""
    rows = re.findall(r"<tr.*?</tr>", html)[1:]
    texts = [re.findall(r"<td[^>]*>(.*?)</td>", line) for line in rows]
    return [[re.sub(r"<[^>]*>", "", cell) for cell in line] for line in texts]


def grounds(html):
    """Opacities of the blue grounds, 0 to 255."""
    return [int(found, 16) for found in re.findall(rf"background:{GLOBAL}([0-9a-f]{{2}})", html)]


def bars(html):
    return [int(found) for found in re.findall(rf"width:(\d+)%;background:{GLOBAL}", html)]


def test_number_weight_and_sentence_of_each_row():
    html = page(gold=[1])
    assert body(html) == [
        ["1", "10.0%", "One."],
        ["2", "60.0%", "Two. * the true sentence"],
        ["3", "30.0%", "Three."],
    ]


def test_ground_and_bar_are_scaled_to_the_largest_weight():
    assert grounds(page()) == [21, 128, 64]  # of 0.5 * 255
    assert bars(page()) == [17, 100, 50]


def test_true_sentences_have_a_line_and_words():
    html = page(gold=[0, 2])
    assert html.count(f"border-left:3px solid {CROSS}") == 2
    assert html.count("border-left:3px solid transparent") == 1
    assert "<b>*</b>: the true sentence." in html
    none = page()
    assert "true sentence" not in none
    assert CROSS not in none


@pytest.mark.parametrize(
    ("weights", "texts", "depths"),
    [
        ((0.0, 0.0, 0.0), ["0.000"] * 3, [0, 0, 0]),
        ((0.2, 0.2, 0.2), ["0.200"] * 3, [128] * 3),
        ((1 / 3, 1 / 3, 1 / 3), ["33.3%"] * 3, [128] * 3),
        (
            (-0.5, 0.75, 0.75),
            ["\u22120.500", "0.750", "0.750"],
            [0, 128, 128],
        ),  # add up to 1, but are no shares
        ((-0.3, -0.2, -0.1), ["\u22120.300", "\u22120.200", "\u22120.100"], [0, 0, 0]),
        (np.array([0.5, 0.5, 0.0], dtype=np.float32), ["50.0%", "50.0%", "0.0%"], [128, 128, 0]),
    ],
)
def test_weights_of_all_sorts(weights, texts, depths):
    html = page(weights)
    assert [line[1] for line in body(html)] == texts
    assert grounds(html) == depths
    assert bars(html) == [round(100 * depth / 128) for depth in depths]


def test_one_sentence():
    html = page([1.0], ["Alone."], gold=(0,))
    assert body(html) == [["1", "100.0%", "Alone. * the true sentence"]]
    assert bars(html) == [100]


def test_the_decision_and_the_other_document():
    html = page(decision=0.9314, other_sentences=["Other one.", "Other two."])
    assert "probability that they are related: <b>93.1%</b>" in html
    folded = re.search(r"<details.*</details>", html)[0]
    assert re.sub(r"<[^>]*>", "", folded) == "the other document: B1&ensp;Other one.2&ensp;Other two."
    plain = page()
    assert "probability" not in plain
    assert "<details" not in plain


def test_a_cell_for_each_system_scaled_by_itself():
    html = compared(
        AlignedColumn(name="HAN", weights=[0.5, 0.25, 0.25], decision=0.61),
        AlignedColumn(name="CDLM", weights=[0, 0.2, 0.4]),
        gold=[2],
    )
    assert body(html) == [
        ["1", "50.0%", "0.000", "One."],
        ["2", "25.0%", "0.200", "Two."],
        ["3", "25.0%", "0.400", "Three. * the true sentence"],
    ]
    assert bars(html) == [100, 0, 50, 50, 50, 100]
    assert [depth for depth in grounds(html) if depth] == [128, 64, 64, 64, 128]
    heads = [re.sub(r"<[^>]*>", " ", head).split() for head in re.findall(r"<th[ >].*?</th>", html)]
    assert heads == [[], ["HAN", "related:", "61.0%"], ["CDLM"], []]


def test_texts_are_escaped():
    more = {"title": HOSTILE, "other_title": HOSTILE, "other_sentences": [HOSTILE]}
    html = page([1.0], [HOSTILE], **more)
    assert html.count(SHOWN) == 5  # title, other title twice, both sentences
    columns = [AlignedColumn(name=HOSTILE, weights=[1.0])] * 2
    several = compared(*columns, sentences=[HOSTILE], **more)
    assert several.count(SHOWN) == 7
    for text in (html, several):
        assert "<script" not in text
        assert "\u202e" not in text


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="no sentences to show"):
        page([], [])
    with pytest.raises(ValueError, match="A: 2 weights for 3 sentences; give one for each"):
        page([0.5, 0.5])
    for gold in ([3], [-1]):
        with pytest.raises(ValueError, match=rf"true sentence {gold[0]} is none of the 3"):
            page(gold=gold)
    with pytest.raises(ValueError, match="the weight of sentence 1 is nan; it must be finite"):
        page([0.5, float("nan"), 0.5])
    with pytest.raises(
        ValueError,
        match=r"A: the probability that the documents are related is 93\.1; it must lie in \[0, 1\]",
    ):
        page(decision=93.1)
    with pytest.raises(ValueError, match="columns is empty"):
        compared()
