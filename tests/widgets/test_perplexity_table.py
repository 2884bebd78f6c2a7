"""The perplexity table beside the paper's Table 1."""

import math

import pytest

from cdlm_lab.widgets.perplexity_table import (
    PAPER_TABLE_1,
    Perplexity,
    PerplexityRow,
    perplexity_in_words,
    perplexity_table_html,
    perplexity_table_markdown,
)


def row(variant, value, *, p=None, cross=None):
    return PerplexityRow(
        variant=variant,
        clusters=200,
        all_masked=Perplexity(value=value, low=value - 0.5, high=value + 0.25, tokens=41_234, p_next=p),
        cross_document=None
        if cross is None
        else Perplexity(value=cross, low=cross - 1, high=cross + 1, tokens=512),
    )


def test_markdown_exactly():
    rows = [row("cdlm", 4.2), row("longformer", 9.8, p=0.00002), row("local-cdlm", 6.6, p=0.0052)]
    assert perplexity_table_markdown(rows) == (
        "| variant | perplexity [95%] | p (next row) | clusters | tokens | paper: validation / test |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: |\n"
        "| Longformer | 9.80 [9.30, 10.05] | < 0.001 | 200 | 41,234 | 3.89 / 3.94 |\n"
        "| Local CDLM | 6.60 [6.10, 6.85] | 0.005 | 200 | 41,234 | 3.78 / 3.84 |\n"
        "| CDLM | 4.20 [3.70, 4.45] | – | 200 | 41,234 | 3.23 / 3.39 |"
    )


def test_markdown_with_cross_document_tokens_and_without_the_paper():
    rows = [row("rand-cdlm", 6.4, cross=170.0), row("mine | yours", 5.0)]
    assert perplexity_table_markdown(rows, paper={}).splitlines()[2:] == [
        "| Rand CDLM | 6.40 [5.90, 6.65] | – | 170.0 [169.0, 171.0] | – | 200 | 41,234 | 512 |",
        "| mine \\| yours | 5.00 [4.50, 5.25] | – | – | – | 200 | 41,234 | – |",
    ]


def test_the_papers_numbers():
    assert list(PAPER_TABLE_1.values()) == [
        (3.89, 3.94),
        (3.78, 3.84),
        (3.68, 3.81),
        (3.20, 3.41),
        (3.23, 3.39),
    ]


def test_html_is_escaped_and_complete():
    html = perplexity_table_html([row("<script>x</script>", 5.0), row("cdlm", 4.2, cross=6.0)])
    assert "<script" not in html
    for text in (
        "&lt;script&gt;x&lt;/script&gt;",
        "4.20 [3.70, 4.45]",
        "6.00 [5.00, 7.00]",
        "3.23 / 3.39",
        "512",
    ):
        assert text in html


@pytest.mark.parametrize(
    ("value", "words"), [(3.204, "3.20"), (123.45, "123.5"), (1234.5, "1,234"), (math.inf, "infinite")]
)
def test_perplexities_in_words(value, words):
    assert perplexity_in_words(value) == words


def test_rows_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="rows is empty"):
        perplexity_table_markdown([])
    with pytest.raises(ValueError, match="two rows of one variant: cdlm"):
        perplexity_table_markdown([row("cdlm", 4.2), row("cdlm", 4.3)])
    with pytest.raises(ValueError, match=r"the interval \[5.0, 6.0\] does not hold the perplexity 4.0"):
        Perplexity(value=4.0, low=5.0, high=6.0, tokens=1)
    with pytest.raises(ValueError, match=r"at least 1, got 0.5"):
        Perplexity(value=0.5, low=0.4, high=0.6, tokens=1)
    with pytest.raises(ValueError, match=r"at least 1, got nan"):
        Perplexity(value=math.nan, low=1, high=2, tokens=1)
