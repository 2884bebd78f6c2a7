"""The table of mean percentile ranks beside Table 6 of the paper."""

import math
import re

import pytest

from cdlm_lab.widgets.html import VARIANTS
from cdlm_lab.widgets.rank_table import (
    CELLS,
    PAPER_TABLE_6,
    RankCell,
    RankRow,
    pairs_in_words,
    rank_table_html,
)


def cell(mean, *, pairs=1000, chance=53.1, p=None):
    return RankCell(mean=mean, low=mean - 2.06, high=mean + 1.75, pairs=pairs, chance=chance, p_next=p)


def row(variant, *means, **more):
    return RankRow(
        variant=variant,
        cells={name: cell(mean, **more) for name, mean in zip(CELLS, means, strict=True) if mean is not None},
    )


def lines(html):
    """The cells of each row, as text; small type is set apart by a bar."""
    rows = re.findall(r"<tr.*?</tr>", html)
    return [
        [
            re.sub(r"<[^>]*>", "", cell.replace("<div", " | <div"))
            for cell in re.findall(r"<t[dh].*?</t[dh]>", line)
        ]
        for line in rows
    ]


def test_the_papers_numbers():
    assert tuple(PAPER_TABLE_6) == VARIANTS
    assert CELLS == ("positive/event", "positive/entity", "negative/event", "negative/entity")
    assert [tuple(numbers.values()) for numbers in PAPER_TABLE_6.values()] == [
        (61.9, 59.7, 54.8, 50.5),
        (62.2, 60.8, 54.6, 52.6),
        (70.6, 69.1, 56.6, 53.2),
        (70.7, 69.4, 58.5, 56.5),
        (72.1, 70.3, 58.0, 55.7),
    ]
    assert all(tuple(numbers) == CELLS for numbers in PAPER_TABLE_6.values())


def test_cells_exactly():
    rows = [
        row("cdlm", 72.14, 70, 58, 55, pairs=990),
        row("longformer", 62.16, 60, 54, None, p=0.00002),
        row("mine", 50, 51, 52, None, p=0.0124),
    ]
    assert lines(rank_table_html(rows, paper=PAPER_TABLE_6)) == [
        ["", "same event/entity (positive)", "different (negative)"],
        [
            "variant",
            "events | 990–1,000 pairs",
            "entities | 990–1,000 pairs",
            "events | 990–1,000 pairs",
            "entities | 990 pairs",
        ],
        [
            "Longformer",
            "62.2 [60.1, 63.9] | paper 61.9, p &lt; 0.001",
            "60.0 [57.9, 61.8] | paper 59.7, p &lt; 0.001",
            "54.0 [51.9, 55.8] | paper 54.8, p &lt; 0.001",
            "– | paper 50.5",
        ],
        [
            "CDLM",
            "72.1 [70.1, 73.9] | paper 72.1",
            "70.0 [67.9, 71.8] | paper 70.3",
            "58.0 [55.9, 59.8] | paper 58.0",
            "55.0 [52.9, 56.8] | paper 55.7",
        ],
        [
            "mine",
            "50.0 [47.9, 51.8] | p = 0.012",
            "51.0 [48.9, 52.8] | p = 0.012",
            "52.0 [49.9, 53.8] | p = 0.012",
            "–",
        ],
        ["random span", "53.1", "53.1", "53.1", "53.1"],
    ]


def test_rows_come_in_paper_order():
    shown = lines(rank_table_html([row(variant, 60, 60, 60, 60) for variant in reversed(VARIANTS)]))
    assert [line[0] for line in shown[2:]] == [
        "Longformer",
        "Local CDLM",
        "Rand CDLM",
        "Prefix CDLM",
        "CDLM",
        "random span",
    ]


def test_the_highest_mean_of_coreferring_pairs_is_bold():
    html = rank_table_html([row("cdlm", 72.1, 68, 58, 55), row("longformer", 61.9, 69, 50, 56)])
    assert re.findall(r"<b>([\d.]+)</b>", html) == ["69.0", "72.1"]
    assert "Bold: highest." in html
    alone = rank_table_html([row("cdlm", 72.1, 68, 58, 55)])
    assert "<b>" not in alone
    assert "Bold" not in alone


def test_means_that_are_written_alike_are_both_bold():
    html = rank_table_html([row("cdlm", 70.01, 60, 58, 55), row("longformer", 70.04, 59, 50, 56)])
    assert html.count("<b>70.0</b>") == 2


def test_chance_is_one_number_or_a_range():
    rows = [
        row("cdlm", 70, None, 58, None, chance=53.14),
        row("longformer", 60, 60, 50, None, chance=53.06),
        row("mine", 60, 60, None, None, chance=53.6),
    ]
    assert lines(rank_table_html(rows))[-1] == ["random span", "53.1–53.6", "53.1–53.6", "53.1", "–"]


def test_ranges_are_of_numbers_not_of_letters():
    rows = [row("cdlm", *[50] * 4, chance=100), row("longformer", *[50] * 4, chance=9.5)]
    assert lines(rank_table_html(rows))[-1][1] == "9.5–100.0"


def test_a_column_that_nobody_measured():
    shown = lines(rank_table_html([row("cdlm", 70, None, 58, None)]))
    assert shown[1][2] == "entities | no pairs"
    assert [line[2] for line in shown[2:]] == ["–", "–"]


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ([1000, 1000], "1,000 pairs"),
        ([1000, 990, 995], "990–1,000 pairs"),
        ([1], "1 pair"),
        ([1, 2], "1–2 pairs"),
        ([], "no pairs"),
    ],
)
def test_pairs_in_words(counts, words):
    assert pairs_in_words(counts) == words


def test_what_is_said_below():
    html = rank_table_html([row("cdlm", 70, 70, 58, 55)])
    assert "paired test" not in html
    assert "paper" not in html
    assert "Brackets: 95% interval." in html
    assert "paired test" in rank_table_html([row("cdlm", 70, 70, 58, 55, p=1.0)])


def test_names_are_escaped_and_meaning_needs_no_stylesheet():
    html = rank_table_html([row("<script>x</script>", 70, 70, 58, 55)], paper=PAPER_TABLE_6)
    assert "&lt;script&gt;x&lt;/script&gt;" in html
    # what JupyterLab takes out of an untrusted notebook, or puts into the table of contents
    assert not re.search(r"<(script|style|svg|h\d)", html)


def test_rows_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="rows is empty"):
        rank_table_html([])
    with pytest.raises(ValueError, match="two rows of one variant: cdlm"):
        rank_table_html([row("cdlm", 70, 70, 58, 55), row("cdlm", 70, 70, 58, 55)])
    with pytest.raises(ValueError, match="mine: unknown cell 'positive/verb'; choose from positive/event, "):
        RankRow(variant="mine", cells={"positive/verb": cell(50)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mean": 101.0}, r"mean is 101\.0; a percentile rank lies in \[0, 100\]"),
        ({"mean": math.nan}, "mean is nan"),
        ({"low": -0.1}, r"low is -0\.1"),
        ({"high": math.inf}, "high is inf"),
        ({"chance": 100.5}, r"chance is 100\.5"),
        ({"low": 51.0}, r"the interval \[51\.0, 60\.0\] does not hold the mean 50\.0"),
        ({"high": 49.0}, r"the interval \[40\.0, 49\.0\] does not hold the mean 50\.0"),
        ({"pairs": 0}, "at least one pair, got 0"),
        ({"p_next": 1.5}, r"p_next is 1\.5; it must lie in \[0, 1\]"),
        ({"p_next": math.nan}, "p_next is nan"),
    ],
)
def test_cells_that_make_no_sense_are_refused(change, message):
    given = {"mean": 50.0, "low": 40.0, "high": 60.0, "pairs": 10, "chance": 53.0}
    with pytest.raises(ValueError, match=message):
        RankCell(**(given | change))


def test_bounds_may_touch_the_mean_and_the_ends():
    RankCell(mean=100.0, low=100.0, high=100.0, pairs=1, chance=0.0, p_next=0.0)
