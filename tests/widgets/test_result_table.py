"""Tables of the results book as HTML and as Markdown."""

import pytest

from cdlm_lab.widgets.result_table import (
    ResultCell,
    ResultColumn,
    ResultTable,
    markdown_text,
    result_table_html,
    result_table_markdown,
)

COLUMNS = (
    ResultColumn(name="system", is_text=True),
    ResultColumn(name="F1"),
    ResultColumn(name="S2ORC", below="paper: F1", published=True),
)


def table(*rows: tuple[ResultCell, ...], **more) -> ResultTable:
    return ResultTable(caption=more.pop("caption", ""), columns=COLUMNS, rows=rows, **more)


ROW = (
    ResultCell(text="CDLM"),
    ResultCell(text="71.6", below="± 1.2 [70.0, 73.1]", source="runs/a"),
    ResultCell(text="96.5", published=True),
)
NOT_RUN = (
    ResultCell(text="Longformer"),
    ResultCell(text="not run", missing=True),
    ResultCell(text=""),
)


def test_markdown_has_numbers_on_the_right_and_the_papers_in_italics():
    assert result_table_markdown(table(ROW, NOT_RUN)).split("\n") == [
        "| system | F1 | *S2ORC: paper: F1* |",
        "|---|---:|---:|",
        "| CDLM | 71.6 ± 1.2 [70.0, 73.1] | *96.5* |",
        "| Longformer | *not run* |  |",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("IE_k on top 2", "IE_k on top 2"),
        ("_x_ and *y*", r"\_x\_ and \*y\*"),
        ("a|b", r"a\|b"),
        ("<script>", r"\<script>"),
        ("p < 0.001 [1, 2]", "p < 0.001 [1, 2]"),
        ("[a](javascript:b)", r"\[a](javascript:b)"),
        ("`x`\nnext", r"\`x\` next"),
        ("back\\slash", r"back\\slash"),
        ("turn\u202ethis", "turn\u2039U+202E\u203athis"),
    ],
)
def test_markdown_of_text_has_no_markup_in_it(text: str, expected: str):
    assert markdown_text(text) == expected


def test_html_says_where_numbers_are_from_and_escapes_everything():
    evil = ResultCell(text="<b>x</b>", below="<i>", source='"><script>')
    html = result_table_html(table(ROW, (evil, evil, evil), caption="<u>", note="<s>", sources=["<q>"]))
    assert 'title="runs/a"' in html
    for tag in ("<b>x", "<i>", "<script", "<u>", "<s>", "<q>"):
        assert tag not in html
    assert "&lt;q&gt;" in html


def test_what_is_missing_and_what_is_a_papers_is_muted():
    html = result_table_html(table(ROW, NOT_RUN))
    assert "opacity" in html[html.index("96.5") - 60 : html.index("96.5")]
    assert "opacity" in html[html.index("not run") - 60 : html.index("not run")]
    assert "opacity" not in html[html.index("71.6") - 40 : html.index("71.6")]


def test_rows_are_as_long_as_the_columns():
    with pytest.raises(ValueError, match="a row has 2 cells, but there are 3 columns"):
        table(ROW[:2])
    with pytest.raises(ValueError, match="no row to show"):
        table()
