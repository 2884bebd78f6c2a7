"""Tables to take along: texts stay texts in CSV and LaTeX, and the links hold the files."""

import base64
import csv
import re

import pytest
from shown_reads import HOSTILE, tags_of

from cdlm_lab.views.tables import Cell, Heading, ScoreTable, text_table
from cdlm_lab.views.text import csv_text, download_links, file_name, latex_text

EVIL = r"\input{/etc/passwd} 100% $x$ #1 a_b ^~&" + HOSTILE
TABLE = ScoreTable(
    caption=f"Matching, test, n = 3 {EVIL}",
    columns=(Heading(name="system", is_text=True), Heading(name="F1"), Heading(name="S2ORC", below="paper")),
    rows=[
        (Cell(text="CDLM"), Cell(text="71.6", below="\u00b1 1.2 [70.0, 73.1]", best=True), Cell(text="96.5")),
        (Cell(text=EVIL), Cell(text="\u22123.0"), Cell(text="=1+1")),
    ],
    note="In per cent.\nTwo lines",
)


def test_csv_has_numbers_alone_and_what_is_small_beside_them():
    head, first, second = csv.reader(TABLE.csv().splitlines())
    assert head == ["system", "F1", "F1 (\u00b1, interval, p)", "S2ORC: paper"]
    assert first == ["CDLM", "71.6", "\u00b1 1.2 [70.0, 73.1]", "96.5"]
    assert second[1:] == ["\u22123.0", "", "'=1+1"]


@pytest.mark.parametrize("text", ["=1+1", "+cmd|' /C calc'!A0", "-x", "@SUM(A1)", "\t=1"])
def test_csv_has_no_formulas_but_numbers(text: str):
    assert csv_text([[text, "-3.5", "+1"]]).startswith(("'", "\"'")) or "\u2409" in csv_text([[text]])
    assert csv_text([["-3.5", "+1"]]) == "-3.5,+1\n"


def test_latex_has_rules_of_booktabs_and_no_command_of_a_text():
    lines = TABLE.latex().splitlines()
    shown = [line for line in lines if not line.startswith("%")]
    assert shown[:4] == [
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"system & F1 & S2ORC {\scriptsize paper} \\",
        r"\midrule",
    ]
    assert shown[4] == r"CDLM & \textbf{71.6} {\scriptsize $\pm$ 1.2 [70.0, 73.1]} & 96.5 \\"
    assert shown[5].endswith(r" & $-$3.0 & =1+1 \\")
    assert r"\textbackslash{}input\{/etc/passwd\} 100\% \$x\$ \#1 a\_b" in shown[5]
    assert "% In per cent. Two lines" in lines
    assert latex_text("a\nb < c") == r"a b \textless{} c"


def test_links_hold_the_files():
    html = TABLE.html()
    files = re.findall(r'<a download="([^"]+)" href="data:[a-z/]+;charset=utf-8;base64,([^"]+)"', html)
    texts = {name: base64.b64decode(data).decode() for name, data in files}
    assert texts == {"matching-test.csv": TABLE.csv(), "matching-test.tex": TABLE.latex()}
    assert "script" not in tags_of(html)
    assert 'download="table.csv"' in download_links("", csv="a", latex="b")
    assert file_name("../../Ünder <b>", otherwise="x") == "nder-b"


def test_a_table_of_texts_and_one_without_rows():
    table = text_table(["a", "b", "c"], [["x", "<y>", Cell(text="1.0", below="p 0.5")]], texts=2)
    assert [one.is_text for one in table.columns] == [True, True, False]
    assert "&lt;y&gt;" in table.html()
    assert "p 0.5" in table.text()
    assert "none" in text_table(["a", "b"], []).text()
