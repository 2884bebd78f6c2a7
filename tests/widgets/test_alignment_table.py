"""The table of found sentences beside those of the CDA paper."""

import re

import pytest

from cdlm_lab.widgets.alignment_table import PAPER_ALIGNMENT, AlignmentRow, alignment_table_html

HOSTILE = "<script>x</script>\u202e"


def row(system="gru-han", by="attention", mrr=0.5, **more):
    values = {"mrr": mrr, "at_1": mrr - 0.1, "at_5": mrr + 0.1}
    return AlignmentRow(system=system, label=system.upper(), by=by, **{"values": values} | more)


def cells(html):
    """The cells of each row as text, with a bar before the small print."""
    rows = re.findall(r"<tr.*?</tr>", html)
    texts = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", line) for line in rows]
    return [[re.sub(r"<[^>]*>", "", re.sub(r"(?<=.)<div", "|<div", c)) for c in line] for line in texts]


def test_the_papers_numbers():
    deep = PAPER_ALIGNMENT["gru-han-deep", "attention"]
    assert deep["S2ORC"] == {"mrr": 0.6474, "at_10": 86.37, "at_5": 76.11, "at_1": 54.90}
    assert deep["PAN"] == {"mrr": 0.6378, "at_10": 52.07, "at_5": 53.82}
    assert PAPER_ALIGNMENT["bert-avg", "cosine"] == {
        "S2ORC": {"mrr": 0.5470, "at_10": 74.18, "at_5": 64.25, "at_1": 45.07}
    }
    assert {corpus: numbers["mrr"] for corpus, numbers in PAPER_ALIGNMENT["random", ""].items()} == {
        "S2ORC": 0.3611,
        "PAN": 0.4215,
    }
    assert PAPER_ALIGNMENT["bert-han-shallow", "attention"]["PAN"]["mrr"] == 0.8386
    assert len(PAPER_ALIGNMENT) == 13


def test_by_attention_is_better_than_by_cosine():
    """As the paper says of Table 4 (section 5.3)."""
    for (system, by), numbers in PAPER_ALIGNMENT.items():
        if by == "cosine":
            assert numbers["S2ORC"]["mrr"] < PAPER_ALIGNMENT[system, "attention"]["S2ORC"]["mrr"]


def test_cells_exactly():
    rows = [
        AlignmentRow(system="random", label="Random", by="", values={"mrr": 0.33333}),
        row(
            intervals={"mrr": (0.45, 0.55), "at_1": (0.3, 0.5)},
            deviations={"mrr": 0.01234, "at_5": 0.02},
            seeds=3,
            p=0.04,
        ),
        row(by="cosine", mrr=0.4, seeds=3),
    ]
    assert cells(alignment_table_html(rows, caption="Found", paper=PAPER_ALIGNMENT)) == [
        ["system", "by", "MRR", "P@10", "P@5", "P@1", "seeds", "p", "S2ORC|paper: MRR", "PAN|paper: MRR"],
        ["Random", "\u2013", "0.3333", "\u2013", "\u2013", "\u2013", "1", "\u2013", "0.3611", "0.4215"],
        [
            *("GRU-HAN", "attention", "0.5000|\u00b1 0.0123 [0.4500, 0.5500]", "\u2013", "60.0|\u00b1 2.0"),
            *("40.0", "3", "0.040", "0.5430", "0.6205"),
        ],
        ["GRU-HAN", "cosine", "0.4000", "\u2013", "50.0", "30.0", "3", "\u2013", "0.4742", "\u2013"],
    ]


def test_without_the_paper_and_with_one_seed():
    html = alignment_table_html([row("own"), row("own", "cosine")], caption="Found")
    assert cells(html)[0] == ["system", "by", "MRR", "P@10", "P@5", "P@1"], "nothing was tested"
    assert "not tested" not in html
    assert "Zhou" not in html
    assert "MRR: mean reciprocal rank of the first true sentence" in html


def test_the_best_of_each_measure_is_bold_and_so_are_its_equals():
    rows = [row("a", mrr=0.50001), row("b", mrr=0.5), row("c", mrr=0.3)]
    html = alignment_table_html(rows, caption="Found")
    assert re.findall(r"<b>([\d.]+)</b>", html) == ["0.5000", "60.0", "40.0"] * 2


def test_texts_are_escaped():
    hostile = AlignmentRow(system="a", label=HOSTILE, by=HOSTILE, values={})
    html = alignment_table_html([hostile], caption=HOSTILE)
    assert "<script" not in html
    assert html.count("&lt;script&gt;x&lt;/script&gt;\u2039U+202E\u203a") == 3


def test_rows_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="rows is empty"):
        alignment_table_html([], caption="Found")
    with pytest.raises(ValueError, match="two rows of gru-han by attention"):
        alignment_table_html([row(), row()], caption="Found")
    for wrong, message in (
        ({"values": {"map": 0.5}}, "unknown measure 'map'; choose from mrr, at_10, at_5, at_1"),
        ({"intervals": {"MRR": (0, 1)}}, "unknown measure 'MRR'"),
        ({"values": {"at_10": 86.4}}, r"at_10 is 86\.4"),
        ({"intervals": {"mrr": (0.6, 0.5)}}, "mrr: .* is no interval"),
        ({"deviations": {"mrr": 0.1}}, "a deviation of mrr over one seed"),
        ({"p": -1}, "p is -1"),
    ):
        with pytest.raises(ValueError, match=f"^gru-han by attention: {message}"):
            row(**wrong)
