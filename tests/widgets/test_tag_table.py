"""The table of taggers beside Tables 2 to 4 of the Doc-ARC paper."""

import re

import pytest

from cdlm_lab.widgets.tag_table import CORPUS_NAMES, PAPER_TAGGING, TagRow, tag_table_html

HOSTILE = '<script>x</script>"\u202e'
SHOWN = "&lt;script&gt;x&lt;/script&gt;&quot;\u2039U+202E\u203a"


def row(label="Doc-ARC", system="doc-arc", deviation=None, seeds=1, **values):
    return TagRow(
        label=label,
        system=system,
        values=values or {"f1": (0.5, 0.4, 0.6)},
        deviation=deviation,
        seeds=seeds,
    )


def cells(html):
    """The cells of each row as text, with a bar before the small print."""
    rows = re.findall(r"<tr.*?</tr>", html)
    texts = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", line) for line in rows]
    return [[re.sub(r"<[^>]*>", "", re.sub(r"(?<=.)<div", "|<div", c)) for c in line] for line in texts]


def test_the_papers_numbers():
    numbers = {
        system: [(of_corpus[c].f1, of_corpus[c].deviation, of_corpus[c].table) for c in CORPUS_NAMES]
        for system, of_corpus in PAPER_TAGGING.items()
    }
    assert numbers == {
        "doc-arc": [(75.75, 0.45, 2), (71.17, 0.49, 2), (84.25, 0.41, 2)],
        "bert-lstm": [(74.22, 0.49, 2), (69.28, 0.39, 2), (82.20, 0.47, 2)],
        "dynamic-doc-arc": [(64.47, 1.27, 3), (65.26, 0.79, 3), (72.55, 0.76, 3)],
        "dynamic-bert": [(56.17, 0.83, 3), (56.96, 0.75, 3), (69.19, 0.67, 3)],
        "dynamic-bert-lstm": [(60.97, 0.40, 3), (62.08, 0.66, 3), (71.32, 0.42, 3)],
        "bert": [(76.90, 0.61, 4), (70.05, 0.81, 4), (84.44, 0.18, 4)],
    }
    assert list(CORPUS_NAMES) == ["litbank", "jnlpba", "ontonotes1000"]


def test_cells_exactly():
    rows = [
        row(
            deviation=0.0123,
            seeds=3,
            precision=(0.401, 0.38, 0.43),
            recall=(0.5126, 0.49, 0.54),
            f1=(0.45, 0.43, 0.4704),
        ),
        row("own", "own", f1=(0.25, 0.2, 0.3)),
        row("BERT", "bert", recall=(0.6, 0.5, 0.7)),
    ]
    html = tag_table_html(rows, spans=1234, corpus="jnlpba")
    assert "Spans found: JNLPBA, n = 1,234 true spans<" in html
    assert cells(html) == [
        ["system", "precision", "recall", "F1", "seeds", "paper|F1 (SD)"],
        [
            *("Doc-ARC", "40.1|[38.0, 43.0]", "51.3|[49.0, 54.0]", "45.0|\u00b1 1.2 [43.0, 47.0]", "3"),
            "71.17 (0.49)|Table 2",
        ],
        ["own", "\u2013", "\u2013", "25.0|[20.0, 30.0]", "1", "\u2013"],
        ["BERT", "\u2013", "60.0|[50.0, 70.0]", "\u2013", "1", "70.05 (0.81)|Table 4"],
    ]


def test_the_papers_column_is_muted_and_says_what_it_is_of():
    html = tag_table_html([row(), row("small", "dynamic-bert")], spans=3, corpus="litbank")
    assert html.count('<span style="opacity:0.72">') == 2
    assert "5 runs (Table 2: a frozen BERT base; Table 3: a trained BERT tiny); not to be compared" in html
    assert "Table 4" not in html


@pytest.mark.parametrize(("corpus", "system"), [("storyworld", "doc-arc"), ("litbank", "own")])
def test_without_numbers_of_the_paper_there_is_no_column(corpus, system):
    html = tag_table_html([row(system=system)], spans=1, corpus=corpus)
    assert cells(html)[0] == ["system", "precision", "recall", "F1"]
    assert "Joerke" not in html
    assert "n = 1 true span<" in html
    assert "seeds" not in html


def test_the_best_is_bold_and_so_are_its_equals():
    rows = [row("a", f1=(0.5004, 0.4, 0.6)), row("b", f1=(0.4996, 0.4, 0.6)), row("c", f1=(0.4, 0.3, 0.5))]
    html = tag_table_html(rows, spans=3, corpus="own")
    assert re.findall(r"<b>([\d.]+)</b>", html) == ["50.0", "50.0"]
    assert "Bold: best." in html
    alone = tag_table_html(rows[:1], spans=3, corpus="own")
    assert "<b>" not in alone
    assert "Bold" not in alone


def test_deviations_are_explained_where_there_are_some():
    assert "\u00b1" not in tag_table_html([row()], spans=3, corpus="own")
    html = tag_table_html([row(deviation=0.01, seeds=2)], spans=3, corpus="own")
    assert "\u00b1: standard deviation of F1 over the seeds" in html


def test_texts_are_escaped():
    html = tag_table_html([row(HOSTILE, HOSTILE)], spans=3, corpus=HOSTILE)
    assert "<script" not in html
    assert html.count(SHOWN) == 2


def test_rows_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="rows is empty"):
        tag_table_html([], spans=3, corpus="litbank")
    with pytest.raises(ValueError, match="two rows of Doc-ARC"):
        tag_table_html([row(), row()], spans=3, corpus="litbank")
    with pytest.raises(ValueError, match="spans is 0; the numbers are of at least one"):
        tag_table_html([row()], spans=0, corpus="litbank")
    for wrong, message in (
        ({"em": (0.5, 0.4, 0.6)}, "unknown measure 'em'; choose from precision, recall, f1"),
        ({"f1": (50.0, 40.0, 60.0)}, r"f1 is 50\.0; it must lie in \[0, 1\]"),
        ({"recall": (0.5, 0.6, 0.4)}, "recall: .* is no interval"),
        ({"deviation": 0.1}, "a deviation of f1 over one seed"),
        ({"deviation": -0.1, "seeds": 2}, r"the deviation of f1 is -0\.1"),
        ({"seeds": 0}, "seeds is 0"),
    ):
        with pytest.raises(ValueError, match=f"^Doc-ARC: {message}"):
            row(**wrong)
