"""The table of fact verification beside Tables 3 and 8 of the MSPP paper."""

import re

import pytest

from cdlm_lab.widgets.measured_score import MeasuredScore
from cdlm_lab.widgets.verification_table import PAPER_VERIFICATION, VerificationRow, verification_table_html

HOSTILE = '<script>x</script>"\u202e'
SHOWN = "&lt;script&gt;x&lt;/script&gt;&quot;\u2039U+202E\u203a"


def row(label="joint", system="joint-ie_1", *, seeds=1, value=0.5, **score):
    return VerificationRow(
        label=label, system=system, accuracy=MeasuredScore(value=value, **score), seeds=seeds
    )


def cells(html):
    """The cells of each row as text, with a bar before the small print."""
    rows = re.findall(r"<tr.*?</tr>", html)
    texts = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", line) for line in rows]
    return [[re.sub(r"<[^>]*>", "", re.sub(r"(?<=.)<div", "|<div", c)) for c in line] for line in texts]


def test_the_papers_numbers():
    numbers = {name: (paper.dev, paper.deviation, paper.test) for name, paper in PAPER_VERIFICATION.items()}
    assert numbers == {
        "gear": (70.69, None, 71.60),
        "kgat": (78.29, None, 74.07),
        "transformer-xh": (78.05, None, 72.39),
        "pairwise-bert": (73.30, None, 69.75),
        "pairwise-max": (79.82, None, None),
        "pairwise-weighted_sum": (80.01, None, None),
        "joint-bert": (73.67, None, 71.01),
        "joint-ie_1": (79.25, None, 73.56),
        "mspp-ie_k-ie_1": (81.21, 0.24, 74.39),
        "mspp-ie_k-ae_1": (81.10, 0.15, 74.25),
        "mspp-ae_k-ie_1": (81.18, 0.14, 73.77),
        "mspp-ae_k-ae_1": (81.21, 0.16, 74.13),
        "domlin++": (77.48, None, 76.60),
        "dream": (79.16, None, 76.85),
    }


def test_cells_exactly():
    rows = [
        row("most frequent", "own", seeds=None, value=0.4),
        row("max", "pairwise-max", value=0.62, interval=(0.58, 0.66)),
        row("AE", "mspp-ae_k-ae_1", seeds=3, value=0.6512, interval=(0.6, 0.7), deviation=0.01, p=0.03),
    ]
    html = verification_table_html(rows, claims=1380, corpus="FM2")
    assert "Claims verified: FM2, n = 1,380 claims<" in html
    assert cells(html) == [
        ["system", "label accuracy", "seeds", "FEVER dev|paper", "FEVER test|paper"],
        ["most frequent", "40.0", *["\u2013"] * 3],
        ["max", "62.0|[58.0, 66.0]", "1", "79.82", "\u2013"],
        ["AE", "65.1|\u00b1 1.0 [60.0, 70.0]|p = 0.030", "3", "81.21 (0.16)", "74.13"],
    ]
    assert re.findall(r"<b>([\d.]+)</b>", html) == ["65.1"]
    assert "Tables 3 and 8, on FEVER" in html
    assert "p: two-sided, against pairwise" in html


def test_without_numbers_of_the_paper_there_are_no_columns():
    html = verification_table_html([row(system="own")], claims=1, corpus="storyworld")
    assert cells(html)[0] == ["system", "label accuracy", "seeds"]
    assert "n = 1 claim<" in html
    assert "Liello" not in html
    assert "Bold" not in html


def test_texts_are_escaped():
    html = verification_table_html([row(HOSTILE, HOSTILE)], claims=3, corpus=HOSTILE)
    assert "<script" not in html
    assert html.count(SHOWN) == 2


def test_rows_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="rows is empty"):
        verification_table_html([], claims=3, corpus="FM2")
    with pytest.raises(ValueError, match="two rows of joint"):
        verification_table_html([row(), row()], claims=3, corpus="FM2")
    with pytest.raises(ValueError, match="claims is 0; the numbers are of at least one"):
        verification_table_html([row()], claims=0, corpus="FM2")
    with pytest.raises(ValueError, match=r"^joint: a deviation of accuracy over one seed"):
        row(deviation=0.1)
    with pytest.raises(ValueError, match=r"^joint: seeds is 0"):
        row(seeds=0)
