"""Sentences on the blue of their weights, of one system and of several, and the bars of their MRR."""

import re

import numpy as np
import pytest
from shown_reads import bars_of, cells_of, grounds_of, plain

from cdlm_lab.data.records import DocumentPair, PairDocument
from cdlm_lab.runs.scores import Score
from cdlm_lab.tasks.matching.view import AlignedColumn, alignment_figure, pair_html
from cdlm_lab.views.html import CROSS
from cdlm_lab.views.tables import SystemRow

SENTENCES = ["One.", "Two.", "Three."]


def compared(*columns, gold=(), sentences=SENTENCES, others=("Other.",)):
    first, second = (PairDocument(id=n, sentences=tuple(s)) for n, s in (("A", sentences), ("B", others)))
    form = {"first": first, "second": second, "aligned": tuple(gold) or None, "cluster": "c"}
    return pair_html(DocumentPair(id="p", related=True, **form), columns)


def page(weights=(0.1, 0.6, 0.3), *, decision=None, shares=True, **more):
    return compared(AlignedColumn(name="A", weights=weights, shares=shares, decision=decision), **more)


def test_number_weight_and_sentence_of_each_row_on_a_ground_scaled_to_the_largest():
    html = page(gold=[1])
    rows = [["1", "10.0%", "One."], ["2", "60.0%", "Two. * the true sentence"], ["3", "30.0%", "Three."]]
    assert cells_of(html) == rows
    assert grounds_of(html) == [21, 128, 64]  # of 0.5 * 255
    assert bars_of(html) == [17, 100, 50]
    assert cells_of(page([1.0], sentences=["Alone."])) == [["1", "100.0%", "Alone."]]
    html = page(gold=[0, 2])
    assert html.count(f"border-left:3px solid {CROSS}") == 2
    assert html.count("border-left:3px solid transparent") == 1
    assert "<b>*</b>: the true sentence." in html
    assert not re.search(f"true sentence|{CROSS}", page())


@pytest.mark.parametrize(
    ("weights", "shares", "texts", "depths"),
    [
        ((0.0, 0.0, 0.0), False, ["0.000"] * 3, [0, 0, 0]),
        ((1 / 3, 1 / 3, 1 / 3), True, ["33.3%"] * 3, [128] * 3),
        ((-0.5, 0.75, 0.75), False, ["\u22120.500", "0.750", "0.750"], [0, 128, 128]),
        ((-0.3, -0.2, -0.1), False, ["\u22120.300", "\u22120.200", "\u22120.100"], [0, 0, 0]),
        (np.array([0.5, 0.5, 0.0], dtype=np.float32), True, ["50.0%", "50.0%", "0.0%"], [128, 128, 0]),
    ],
)
def test_weights_are_written_by_their_kind_and_not_by_their_sum(weights, shares, texts, depths):
    html = page(weights, shares=shares)
    assert [line[1] for line in cells_of(html)] == texts
    assert grounds_of(html) == depths
    assert bars_of(html) == [round(100 * depth / 128) for depth in depths]


def test_the_decision_and_the_other_document():
    html = page(decision=0.9314, others=["Other one.", "Other two.", "3.", "4."])
    assert "probability that they are related: <b>93.1%</b>" in html
    folded = plain(re.search(r"<details.*</details>", html)[0])
    assert folded == "the other document: B1\u2002Other one.2\u2002Other two.3\u20023.4\u20024."
    assert "probability" not in page()


def test_a_cell_for_each_system_scaled_by_itself():
    han = AlignedColumn(name="HAN", weights=[0.5, 0.25, 0.25], shares=True, decision=0.61)
    html = compared(han, AlignedColumn(name="CDLM", weights=[0, 0.2, 0.4]), gold=[2])
    assert cells_of(html) == [
        ["1", "50.0%", "0.000", "One."],
        ["2", "25.0%", "0.200", "Two."],
        ["3", "25.0%", "0.400", "Three. * the true sentence"],
    ]
    assert bars_of(html) == [100, 0, 50, 50, 50, 100]
    assert [depth for depth in grounds_of(html) if depth] == [128, 64, 64, 64, 128]
    heads = [plain(head.replace("<", " <")).split() for head in re.findall(r"<th[ >].*?</th>", html)]
    assert heads == [[], ["HAN", "related:", "61.0%"], ["CDLM"], []]


def row(system, by, mrr, *, label=None, **more):
    name = f"{system}/{by}" if by else system
    score = Score(system=name, metric="mrr", value=mrr, **more)
    return SystemRow(system=name, label=label or system.upper(), scores={"mrr": score})


ROWS = [
    row("random", "", 0.3611, label="Random"),
    row("gru-han", "attention", 0.543, low=0.5, high=0.56),
    row("gru-han", "cosine", 0.4742),
    row("cdlm", "attention", 0.75, label="BERT-HAN + shallow CDA"),
]


def test_a_group_for_each_system_a_colour_for_each_way_and_a_line_for_random_scores():
    figure = alignment_figure(ROWS)
    attention, cosine = figure.data
    assert (attention.name, cosine.name) == ("attention", "cosine")
    assert attention.marker.color != cosine.marker.color
    assert attention.marker.pattern.shape != cosine.marker.pattern.shape
    assert (list(attention.y), list(cosine.y)) == ([0.543, 0.75], [0.4742])
    assert list(attention.x) == ["GRU-HAN", "BERT-HAN +<br>shallow CDA"]
    assert figure.layout.barmode == "group"
    assert list(attention.error_y.array) == pytest.approx([0.017, 0])
    assert list(attention.error_y.arrayminus) == pytest.approx([0.043, 0])
    assert attention.hovertext[0] == "GRU-HAN, attention: MRR 0.5430 (0.5000 to 0.5600)"
    assert cosine.hovertext[0] == "GRU-HAN, cosine: MRR 0.4742"
    (line,), below = figure.layout.shapes, figure.layout.xaxis.title.text
    assert (line.y0, line.line.dash, below) == (0.3611, "dash", "dashed: Random: MRR 0.3611")
    assert not alignment_figure(ROWS[1:]).layout.shapes


def test_sentences_that_were_not_read_have_no_weight_and_are_struck_out():
    html = compared(
        AlignedColumn(name="A", weights=(0.4, 0.6, None), shares=True, others_read=1), others=("X.", "Y.")
    )
    assert [row[1] for row in cells_of(html)] == ["40.0%", "60.0%", "not read"]
    assert [plain(one) for one in re.findall(r"<s [^>]*>.*?</s>", html)] == ["Three.", "Y.", "Struck out"]
    said = "A has not read 1 of 3 sentences of the first document and 1 of 2 sentences of the second"
    assert said in plain(html)
    assert html.index(said) < html.index("One.")
    assert AlignedColumn(name="A", weights=(0.4, None)).strengths == [1.0, 0.0]
    assert AlignedColumn(name="A", weights=(None, None)).strengths == [0.0, 0.0]
    assert AlignedColumn(name="A", weights=(0.4, 0.6)).unread_in_words(2) == ""
