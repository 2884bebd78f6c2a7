"""The table of answer selection beside Tables 1, 2 and 7 of the MSPP paper."""

import re

import pytest

from cdlm_lab.widgets.answer_table import (
    CORPUS_NAMES,
    MEASURES,
    PAPER_TABLE_1,
    PAPER_TABLES_2_AND_7,
    AnswerRow,
    answer_table_html,
)
from cdlm_lab.widgets.measured_score import MeasuredScore

HOSTILE = '<script>x</script>"\u202e'
SHOWN = "&lt;script&gt;x&lt;/script&gt;&quot;\u2039U+202E\u203a"
SYSTEMS = ["pairwise", "joint-ie_k", "joint-ae_k", "mspp-ie_k", "mspp-ae_k"]


def row(label="pairwise", system="pairwise", *, reranked=False, seeds=1, **scores):
    return AnswerRow(
        label=label,
        system=system,
        reranked=reranked,
        scores=scores or {"map": MeasuredScore(value=0.5)},
        seeds=seeds,
    )


def cells(html):
    """The cells of each row as text, with a bar before the small print."""
    rows = re.findall(r"<tr.*?</tr>", html)
    texts = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", line) for line in rows]
    return [[re.sub(r"<[^>]*>", "", re.sub(r"(?<=.)<div", "|<div", c)) for c in line] for line in texts]


def column(published, corpus, measure):
    return [published[system][corpus][measure] for system in SYSTEMS]


@pytest.mark.parametrize(
    ("corpus", "measure", "numbers"),
    [
        ("asnq", "p_at_1", [(61.8, 0.2), (3.4, 2.3), (3.6, 2.7), (63.0, 0.3), (63.0, 0.3)]),
        ("asnq", "map", [(66.9, 0.1), (8.0, 1.9), (8.0, 2.2), (67.2, 0.2), (67.3, 0.2)]),
        ("asnq", "mrr", [(73.1, 0.1), (10.0, 2.4), (10.2, 2.8), (73.7, 0.2), (73.7, 0.2)]),
        ("wikiqa", "p_at_1", [(77.1, 2.1), (19.7, 1.9), (18.7, 3.9), (82.7, 2.2), (81.9, 2.6)]),
        ("wikiqa", "map", [(85.3, 0.9), (39.4, 1.6), (39.0, 2.8), (88.5, 1.5), (87.9, 1.4)]),
        ("wikiqa", "mrr", [(86.5, 1.0), (40.3, 1.8), (39.7, 2.9), (89.0, 1.5), (89.0, 1.5)]),
        ("trecqa", "p_at_1", [(87.9, 2.2), (30.9, 5.4), (29.7, 6.9), (91.7, 2.2), (88.7, 0.8)]),
        ("trecqa", "map", [(89.3, 0.9), (41.9, 2.4), (42.3, 3.2), (91.1, 0.5), (90.1, 1.0)]),
        ("trecqa", "mrr", [(93.1, 1.0), (50.8, 3.9), (49.2, 5.0), (95.2, 1.3), (93.6, 0.6)]),
    ],
)
def test_table_1(corpus, measure, numbers):
    found = column(PAPER_TABLE_1, corpus, measure)
    assert [(number.value, number.deviation) for number in found] == numbers
    assert {number.table for number in found} == {1}
    assert (list(PAPER_TABLE_1), list(MEASURES)) == (SYSTEMS, ["p_at_1", "map", "mrr"])


@pytest.mark.parametrize(
    ("corpus", "numbers"),
    [
        ("asnq", [(61.8, 0.2), (25.2, 3.1), (25.4, 3.3), (63.9, 0.8), (64.3, 1.1)]),
        ("wikiqa", [(77.1, 2.1), (24.6, 3.1), (26.4, 2.2), (82.7, 3.0), (82.1, 1.1)]),
        ("trecqa", [(87.9, 2.2), (57.6, 4.8), (60.9, 4.9), (92.2, 0.8), (91.2, 2.9)]),
    ],
)
def test_table_2(corpus, numbers):
    found = column(PAPER_TABLES_2_AND_7, corpus, "p_at_1")
    assert [(number.value, number.deviation, number.table) for number in found] == [(*n, 2) for n in numbers]


@pytest.mark.parametrize(
    ("corpus", "average", "reciprocal"),
    [
        ("asnq", [66.9, 44.0, 44.8, 71.3, 71.5], [73.1, 45.6, 46.2, 73.1, 73.4]),
        ("wikiqa", [85.3, 49.3, 50.6, 88.5, 87.9], [86.5, 49.7, 51.1, 89.0, 88.7]),
        ("trecqa", [89.3, 73.7, 74.6, 93.5, 93.5], [93.1, 74.6, 76.7, 95.4, 94.9]),
    ],
)
def test_table_7(corpus, average, reciprocal):
    for measure, numbers in (("map", average), ("mrr", reciprocal)):
        found = column(PAPER_TABLES_2_AND_7, corpus, measure)
        assert [(number.value, number.deviation, number.table) for number in found] == [
            (number, None, 7) for number in numbers
        ]


def test_cells_exactly():
    rows = [
        row("random", "random", seeds=None, p_at_1=MeasuredScore(value=0.17)),
        row(
            "joint",
            "mspp-ie_k",
            seeds=3,
            p_at_1=MeasuredScore(value=0.6126, interval=(0.58, 0.65), deviation=0.012, p=0.0004),
            map=MeasuredScore(value=0.7, interval=(0.66, 0.74), deviation=0.02, p=0.2),
            mrr=MeasuredScore(value=0.71, interval=(0.67, 0.75)),
        ),
        row("cascade", "mspp-ie_k", reranked=True, map=MeasuredScore(value=0.6)),
    ]
    html = answer_table_html(rows, questions=1234, corpus="wikiqa")
    assert "Answers chosen: WikiQA, n = 1,234 questions<" in html
    assert cells(html) == [
        ["system", "P@1", "MAP", "MRR", "seeds", "paper|P@1", "paper|MAP", "paper|MRR"],
        ["random", "17.0", *["\u2013"] * 6],
        [
            "joint",
            "61.3|\u00b1 1.2 [58.0, 65.0]|p &lt; 0.001",
            "70.0|\u00b1 2.0 [66.0, 74.0]|p = 0.200",
            "71.0|[67.0, 75.0]",
            "3",
            *("82.7 (2.2)|Table 1", "88.5 (1.5)|Table 1", "89.0 (1.5)|Table 1"),
        ],
        [
            *("cascade", "\u2013", "60.0", "\u2013", "1"),
            *("82.7 (3.0)|Table 2", "88.5|Table 7", "89.0|Table 7"),
        ],
    ]
    assert re.findall(r"<b>([\d.]+)</b>", html) == ["61.3", "70.0"], "of MRR there are no two"


@pytest.mark.parametrize("corpus", CORPUS_NAMES)
def test_the_papers_columns_say_what_they_are_of(corpus):
    html = answer_table_html([row()], questions=1, corpus=corpus)
    assert html.count('<span style="opacity:0.72">') == 3
    assert "n = 1 question<" in html
    clean = " that have right and wrong candidates" if corpus != "asnq" else ""
    assert f"RoBERTa-base on the test questions of {CORPUS_NAMES[corpus]}{clean}, mean" in html
    assert "(Table 1: all candidates)" in html
    both = answer_table_html(
        [row(), row("b", "own"), row("c", "mspp-ie_k", reranked=True)], questions=9, corpus=corpus
    )
    assert "(Table 1: all candidates; Tables 2 and 7: the pairwise model&#x27;s five best)" in both


@pytest.mark.parametrize(("corpus", "system"), [("storyworld", "pairwise"), ("wikiqa", "own")])
def test_without_numbers_of_the_paper_there_are_no_columns(corpus, system):
    html = answer_table_html([row(system=system)], questions=3, corpus=corpus)
    assert cells(html)[0] == ["system", "P@1", "MAP", "MRR", "seeds"]
    assert "Liello" not in html


def test_the_best_is_bold_and_so_are_its_equals():
    values = {"a": 0.5004, "b": 0.4996, "c": 0.4}
    rows = [row(name, map=MeasuredScore(value=value)) for name, value in values.items()]
    html = answer_table_html(rows, questions=3, corpus="own")
    assert re.findall(r"<b>([\d.]+)</b>", html) == ["50.0", "50.0"]
    assert "Bold: best." in html
    alone = answer_table_html(rows[:1], questions=3, corpus="own")
    assert "<b>" not in alone
    assert "Bold" not in alone


def test_the_note_explains_what_there_is():
    plain = answer_table_html([row()], questions=3, corpus="own")
    for sign in ("Brackets", "\u00b1", "p: "):
        assert sign not in plain
    score = MeasuredScore(value=0.5, interval=(0.4, 0.6), deviation=0.1, p=0.5)
    full = answer_table_html([row(seeds=2, mrr=score)], questions=3, corpus="own")
    for sign in (
        "Brackets: 95% interval.",
        "\u00b1: standard deviation over",
        "p: two-sided, against pairwise",
    ):
        assert sign in full


def test_texts_are_escaped():
    html = answer_table_html([row(HOSTILE, HOSTILE)], questions=3, corpus=HOSTILE)
    assert "<script" not in html
    assert html.count(SHOWN) == 2


def test_rows_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="rows is empty"):
        answer_table_html([], questions=3, corpus="wikiqa")
    with pytest.raises(ValueError, match="two rows of pairwise"):
        answer_table_html([row(), row()], questions=3, corpus="wikiqa")
    with pytest.raises(ValueError, match="questions is 0; the numbers are of at least one"):
        answer_table_html([row()], questions=0, corpus="wikiqa")
    half = MeasuredScore(value=0.5)
    for wrong, message in (
        ({"f1": half}, "unknown measure 'f1'; choose from p_at_1, map, mrr"),
        ({"seeds": 0}, "seeds is 0"),
        ({"map": MeasuredScore(value=0.5, deviation=0.1)}, "a deviation of map over one seed"),
        ({"map": MeasuredScore(value=0.5, deviation=0.1), "seeds": None}, "a deviation of map over one seed"),
        ({"map": MeasuredScore(value=0.5, deviation=-0.1), "seeds": 2}, r"the deviation of map is -0\.1"),
        ({"map": MeasuredScore(value=0.5, p=1.5)}, r"p is 1\.5; it must lie in \[0, 1\]"),
    ):
        with pytest.raises(ValueError, match=f"^pairwise: {message}"):
            row(**wrong)
    with pytest.raises(ValueError, match=r"the score is 50\.0; it must lie in \[0, 1\]"):
        MeasuredScore(value=50.0)
    with pytest.raises(ValueError, match=r"the score: .* is no interval"):
        MeasuredScore(value=0.5, interval=(0.6, 0.4))
