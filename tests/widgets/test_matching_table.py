"""The table of matchers beside those of the papers."""

import re

import pytest

from cdlm_lab.widgets.matching_table import (
    CORPORA,
    PAPER_MATCHING,
    MatchingRow,
    matching_table_html,
    p_in_words,
)

HOSTILE = '<script>x</script>"\u202e'
SHOWN = "&lt;script&gt;x&lt;/script&gt;&quot;\u2039U+202E\u203a"


def row(system="bert-han", accuracy=0.5, f1=0.4, **more):
    return MatchingRow(system=system, label=system.upper(), accuracy=accuracy, f1=f1, **more)


def cells(html):
    """The cells of each row as text, with a bar before the small print."""
    rows = re.findall(r"<tr.*?</tr>", html)
    texts = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", line) for line in rows]
    return [[re.sub(r"<[^>]*>", "", re.sub(r"(?<=.)<div", "|<div", c)) for c in line] for line in texts]


def test_the_papers_numbers():
    assert PAPER_MATCHING["bert-avg"]["AAN"] == (53.54, 53.89)
    assert PAPER_MATCHING["bert-han-shallow"]["PAN"] == (86.23, 86.19)
    assert PAPER_MATCHING["gru-han-deep"] == {
        "AAN": (75.08, 75.18),
        "OC": (89.79, 89.92),
        "S2ORC": (91.59, 91.61),
        "PAN": (75.77, 76.71),
    }
    assert PAPER_MATCHING["bert-han-finetuned"] == {"AAN": (73.36, 73.51)}
    assert PAPER_MATCHING["cdlm"] == {
        "AAN": (None, 88.8),
        "OC": (None, 95.3),
        "S2ORC": (None, 96.5),
        "PAN": (None, 82.9),
    }
    assert len(PAPER_MATCHING) == 13


def test_the_two_papers_agree():
    """The CDLM paper repeats, rounded, F1 of the CDA paper: of BERT-HAN, and of CDA at its best."""
    repeated = {"bert-han": (65.0, 86.3, 90.8, 87.4), "gru-han-deep": (75.2, 89.9, 91.6)}
    for system, rounded in repeated.items():
        for corpus, f1 in zip(CORPORA, rounded, strict=False):
            assert PAPER_MATCHING[system][corpus][1] == pytest.approx(f1, abs=0.051)
    assert PAPER_MATCHING["bert-han-finetuned-shallow"]["AAN"][1] == pytest.approx(82.1, abs=0.051)


def test_cells_exactly():
    rows = [
        row(accuracy=0.6789, f1=0.5, accuracy_interval=(0.65, 0.7004), accuracy_deviation=0.0123, seeds=3),
        row("cdlm", 0.9, None, p=0.0004),
    ]
    assert cells(matching_table_html(rows, caption="Pairs", paper=PAPER_MATCHING)) == [
        ["system", "accuracy", "F1", "seeds", "p", *(f"{corpus}|paper" for corpus in CORPORA)],
        [
            *("BERT-HAN", "67.9|\u00b1 1.2 [65.0, 70.0]", "50.0", "3", "\u2013"),
            *("67.3 / 65.0", "86.0 / 86.3", "90.7 / 90.8", "87.6 / 87.4"),
        ],
        ["CDLM", "90.0", "\u2013", "1", "&lt; 0.001", "88.8", "95.3", "96.5", "82.9"],
    ]


def test_columns_that_nobody_fills_are_left_out():
    html = matching_table_html([row(), row("own")], caption="Pairs")
    assert cells(html)[0] == ["system", "accuracy", "F1"]
    assert "seeds" not in html
    assert "not tested" not in html
    assert "Papers" not in html
    only_aan = [row("bert-han-finetuned"), row("own")]
    html = matching_table_html(only_aan, caption="Pairs", paper=PAPER_MATCHING)
    assert cells(html)[0][3:] == ["AAN|paper"]
    assert [line[-1] for line in cells(html)[1:]] == ["73.4 / 73.5", "\u2013"]


def test_the_best_is_bold_and_so_are_its_equals():
    rows = [row("a", 0.90, 0.3), row("b", 0.9004, 0.2), row("c", 0.7, None)]
    html = matching_table_html(rows, caption="Pairs")
    assert re.findall(r"<b>([\d.]+)</b>", html) == ["90.0", "30.0", "90.0"]
    assert "<b>" not in matching_table_html(rows[:1], caption="Pairs")


def test_what_is_said_below():
    tested = row(f1_interval=(0.3, 0.5), f1_deviation=0.1, seeds=2, p=0.5)
    html = matching_table_html([tested], caption="Pairs")
    assert "Brackets: 95% interval. \u00b1: standard deviation over the seeds" in html
    assert "p: two-sided, against the row above of the same family; \u2013: not tested." in html
    assert "Brackets" not in matching_table_html([row()], caption="Pairs")
    assert "\u00b1" not in matching_table_html([row()], caption="Pairs")
    assert 'title="two-sided, against the row above of the same family"' in html


@pytest.mark.parametrize(
    ("p", "words"), [(None, "\u2013"), (0.00099, "&lt; 0.001"), (0.001, "0.001"), (0.0126, "0.013")]
)
def test_p_in_words(p, words):
    assert p_in_words(p) == words


def test_texts_are_escaped():
    hostile = MatchingRow(system="a", label=HOSTILE, accuracy=0.5, f1=0.5)
    html = matching_table_html([hostile], caption=HOSTILE)
    assert "<script" not in html
    assert html.count(SHOWN) == 2


def test_rows_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="rows is empty"):
        matching_table_html([], caption="Pairs")
    with pytest.raises(ValueError, match="two rows of a; give each system once"):
        matching_table_html([row("a"), row("a")], caption="Pairs")
    for wrong, message in (
        ({"accuracy": 50.0}, r"accuracy is 50\.0; it must lie in \[0, 1\]"),
        ({"f1": float("nan")}, "f1 is nan"),
        ({"f1_interval": (0.6, 0.5)}, "f1: .* is no interval"),
        ({"accuracy_interval": (0.6, 1.5)}, "accuracy: .* is no interval"),
        ({"f1_deviation": 0.1}, "a deviation of f1 over one seed; give None"),
        ({"accuracy_deviation": -0.1, "seeds": 2}, r"the deviation of accuracy is -0\.1"),
        ({"seeds": 0}, "seeds is 0"),
        ({"p": 1.5}, r"p is 1\.5"),
    ):
        with pytest.raises(ValueError, match=f"^bert-han: {message}"):
            row(**wrong)
