"""The table of question answering beside Table 5 of the CDLM paper."""

import re

import pytest

from cdlm_lab.widgets.question_table import MEASURES, PAPER_TABLE_5, QuestionRow, question_table_html

HOSTILE = '<script>x</script>"\u202e'
SHOWN = "&lt;script&gt;x&lt;/script&gt;&quot;\u2039U+202E\u203a"


def row(label="CDLM", variant="cdlm", **values):
    return QuestionRow(label=label, variant=variant, values=values or {"f1": (0.5, 0.4, 0.6)})


def cells(html):
    """The cells of each row as text, with a bar before the small print."""
    rows = re.findall(r"<tr.*?</tr>", html)
    texts = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", line) for line in rows]
    return [[re.sub(r"<[^>]*>", "", re.sub(r"(?<=.)<div", "|<div", c)) for c in line] for line in texts]


def test_the_papers_numbers():
    columns = {
        measure: [numbers[measure] for numbers in PAPER_TABLE_5.values()] for measure in PAPER_TABLE_5["cdlm"]
    }
    assert list(PAPER_TABLE_5) == ["longformer", "local-cdlm", "rand-cdlm", "prefix-cdlm", "cdlm"]
    assert columns == {
        "f1": [74.5, 74.1, 72.7, 74.8, 74.7],
        "sp_f1": [83.9, 84.0, 84.8, 84.7, 86.3],
        "joint_f1": [64.5, 64.2, 63.7, 65.2, 66.3],
    }


def test_cells_exactly():
    means = (0.401, 0.5126, 0.3, 0.72, 0.2, 0.41)
    values = {m: (mean, mean - 0.02, mean + 0.03) for m, mean in zip(MEASURES, means, strict=True)}
    rows = [row(**values), row("own", "own", f1=(0.25, 0.2, 0.3))]
    html = question_table_html(rows, questions=1234)
    assert "n = 1,234 questions" in html
    assert cells(html) == [
        [
            *("system", "answer|EM", "answer|F1", "support|EM", "support|F1", "joint|EM", "joint|F1"),
            *("answer|paper F1", "support|paper F1", "joint|paper F1"),
        ],
        [
            *("CDLM", "40.1|[38.1, 43.1]", "51.3|[49.3, 54.3]", "30.0|[28.0, 33.0]", "72.0|[70.0, 75.0]"),
            *("20.0|[18.0, 23.0]", "41.0|[39.0, 44.0]", "74.7", "86.3", "66.3"),
        ],
        ["own", "\u2013", "25.0|[20.0, 30.0]", *["\u2013"] * 4, *["\u2013"] * 3],
    ]


def test_the_papers_columns_are_muted_explained_and_left_out_where_they_are_empty():
    html = question_table_html([row()], questions=3)
    assert html.count('<span style="opacity:0.72">') == 3
    assert "base size on the official development set of 7,405 questions" in html
    without = question_table_html([row(variant="own")], questions=3)
    assert cells(without)[0][-1] == "joint|F1"
    assert "7,405" not in without


def test_the_best_is_bold_and_so_are_its_equals():
    rows = [row("a", f1=(0.5004, 0.4, 0.6)), row("b", f1=(0.4996, 0.4, 0.6)), row("c", f1=(0.4, 0.3, 0.5))]
    html = question_table_html(rows, questions=3)
    assert re.findall(r"<b>([\d.]+)</b>", html) == ["50.0", "50.0"]
    assert "Bold: best." in html
    alone = question_table_html(rows[:1], questions=3)
    assert "<b>" not in alone
    assert "Bold" not in alone


def test_texts_are_escaped():
    html = question_table_html([row(HOSTILE, HOSTILE)], questions=3)
    assert "<script" not in html
    assert html.count(SHOWN) == 1


def test_rows_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="rows is empty"):
        question_table_html([], questions=3)
    with pytest.raises(ValueError, match="two rows of CDLM"):
        question_table_html([row(), row()], questions=3)
    with pytest.raises(ValueError, match="questions is 0; the numbers are of at least one"):
        question_table_html([row()], questions=0)
    for wrong, message in (
        ({"accuracy": (0.5, 0.4, 0.6)}, "unknown measure 'accuracy'; choose from em, f1, sp_em"),
        ({"em": (50.0, 40.0, 60.0)}, r"em is 50\.0; it must lie in \[0, 1\]"),
        ({"em": (float("nan"), 0.4, 0.6)}, "em is nan"),
        ({"em": (0.5, 0.6, 0.4)}, "em: .* is no interval"),
    ):
        with pytest.raises(ValueError, match=f"^CDLM: {message}"):
            row(**wrong)
