"""The table of coreference scores beside Tables 2 and 3 of the paper."""

import re

import pytest

from cdlm_lab.metrics.coreference import Score, score
from cdlm_lab.widgets.coreference_table import (
    PAPER_TABLE_2,
    PAPER_TABLE_3,
    CoreferenceRow,
    coreference_table_html,
    coreference_table_markdown,
)


def row(system, first, *, conll=None, **more):
    """A system whose twelve numbers count up from `first` by a thousandth."""
    numbers = iter([first + n / 1000 for n in range(12)])
    scores = {
        measure: Score(recall=next(numbers), precision=next(numbers), f1=next(numbers))
        for measure in ("muc", "b_cubed", "ceaf_e", "lea")
    }
    f1 = first if conll is None else conll
    return CoreferenceRow(
        system=system, scores={**scores, "conll": Score(recall=0, precision=0, f1=f1)}, **more
    )


def lines(html):
    """The cells of each row, as text."""
    rows = re.findall(r"<tr.*?</tr>", html)
    return [
        [re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<t[dh].*?</t[dh]>", line)] for line in rows
    ]


@pytest.mark.parametrize("kind", PAPER_TABLE_2)
def test_the_papers_numbers_fit_each_other(kind):
    """F1 is the harmonic mean, and CoNLL F1 the mean of three, as far as one decimal can show."""
    for numbers in PAPER_TABLE_2[kind].values():
        *measures, conll = numbers
        threes = [measures[place : place + 3] for place in range(0, 12, 3)]
        for recall, precision, f1 in [three for three in threes if three != [None] * 3]:
            # 0.1 for rounding; one triple of the paper (70.0, 68.1, 69.2) is off by 0.16
            assert f1 == pytest.approx(2 * recall * precision / (recall + precision), abs=0.17)
        assert conll == pytest.approx(sum(f1 for _, _, f1 in threes[:3]) / 3, abs=0.1)


def test_the_papers_tables():
    assert {kind: list(table) for kind, table in PAPER_TABLE_2.items()} == {
        "event": [
            "Barhom et al. (2019)",
            "Meged et al. (2020)",
            "Cattan et al. (2020)",
            "Zeng et al. (2020)",
            "Yu et al. (2020)",
            "Allaway et al. (2021)",
            "CDLM",
        ],
        "entity": ["Barhom et al. (2019)", "Cattan et al. (2020)", "Allaway et al. (2021)", "CDLM"],
    }
    cdlm = (87.1, 89.2, 88.1, 84.9, 87.9, 86.4, 83.3, 81.2, 82.2, 76.7, 77.2, 76.9, 85.6)
    assert PAPER_TABLE_2["event"]["CDLM"] == cdlm
    assert [round(f1 - 85.6, 1) for f1 in PAPER_TABLE_3.values()] == [0, -1.4, -1.0, -0.9, -1.5, -0.5]


def test_numbers_of_a_row_are_those_of_the_scorer():
    key = [["a", "b", "c"], ["d"]]
    shown = CoreferenceRow(system="s", scores=score(key, [["a", "b"], ["c", "d"]])).numbers
    # MUC: one of two links, and one of two; B-cubed: recall (4/3 + 1/3 + 1) / 4, precision 3 / 4
    assert shown[:5] == pytest.approx((50, 50, 50, 100 * 2 / 3, 75))
    assert len(shown) == 13
    assert shown[12] == pytest.approx((shown[2] + shown[5] + shown[8]) / 3)


def test_html_cells():
    rows = [
        row("mine", 0.5, conll=0.8, interval=(0.7501, 0.85), p=0.0004),
        row("head word", 0.4, conll=0.6, is_baseline=True),
    ]
    assert lines(coreference_table_html(rows)) == [
        ["", "MUC", "B³", "CEAFe", "LEA", "CoNLL", "", ""],
        ["system", *["R", "P", "F1"] * 4, "F1", "[95%]", "p"],
        ["Baselines"],
        ["head word", *(f"{40 + n / 10:.1f}" for n in range(12)), "60.0", "–", "–"],
        ["Systems"],
        ["mine", *(f"{50 + n / 10:.1f}" for n in range(12)), "80.0", "[75.0, 85.0]", "&lt; 0.001"],
    ]


def test_the_best_f1_of_each_measure_is_bold():
    html = coreference_table_html([row("a", 0.5, conll=0.4), row("b", 0.3, conll=0.6)])
    assert re.findall(r"<b>([\d.]+)</b>", html) == ["50.2", "50.5", "50.8", "51.1", "60.0"]
    assert "<b>" not in coreference_table_html([row("a", 0.5)])


def test_the_papers_rows_stand_below_and_are_muted():
    shown = lines(coreference_table_html([row("mine", 0.5)], kind="event"))
    assert shown[2][0] == "mine"
    assert shown[3] == ["CDLM paper, Table 2: ECB+ test set, events"]
    assert [line[0] for line in shown[4:11]] == list(PAPER_TABLE_2["event"])
    assert shown[7][-4:] == ["–", "–", "–", "84.3"]
    assert shown[11] == ["CDLM paper, Table 3: ECB+ test set, events, ablations"]
    assert shown[12:] == [[name, "", f"{f1:.1f}"] for name, f1 in PAPER_TABLE_3.items()]
    html = coreference_table_html([row("mine", 0.5)], kind="event")
    assert html.count("0.22);opacity:0.72") == 13
    entities = lines(coreference_table_html([row("mine", 0.5)], kind="entity"))
    assert [line[0] for line in entities[4:]] == list(PAPER_TABLE_2["entity"])


def test_columns_that_nobody_fills_are_left_out():
    assert lines(coreference_table_html([row("mine", 0.5)]))[1][-1] == "F1"
    assert lines(coreference_table_html([row("mine", 0.5, p=0.25)]))[2][-1] == "0.250"


def test_what_is_said_below():
    html = coreference_table_html([row("mine", 0.5, interval=(0.4, 0.6))], note="p: against <b>.")
    assert (
        "CoNLL F1: mean of the F1 of MUC, B³ and CEAFe. [95%]: its bootstrap interval. p: against &lt;b"
        in html
    )
    assert "ingletons" not in html
    for table in (coreference_table_html, coreference_table_markdown):
        text = table([row("mine", 0.5)], singletons=False)
        assert "Without singletons: not to be compared" in text
        assert "[95%]" not in text


def test_markdown_exactly():
    rows = [row("a | b", 0.5, conll=0.8, p=0.5), row("head word", 0.4, is_baseline=True)]
    assert coreference_table_markdown(rows, note="ECB+ dev.") == (
        "| system | MUC R / P / F1 | B³ R / P / F1 | CEAFe R / P / F1 | LEA R / P / F1 | CoNLL F1 | p |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| head word | 40.0 / 40.1 / 40.2 | 40.3 / 40.4 / 40.5 | 40.6 / 40.7 / 40.8 | 40.9 / 41.0 / 41.1"
        " | 40.0 | – |\n"
        "| a \\| b | 50.0 / 50.1 / 50.2 | 50.3 / 50.4 / 50.5 | 50.6 / 50.7 / 50.8 | 50.9 / 51.0 / 51.1"
        " | 80.0 | 0.500 |\n"
        "\n"
        "All times 100. CoNLL F1: mean of the F1 of MUC, B³ and CEAFe. ECB+ dev."
    )


def test_markdown_with_the_paper():
    text = coreference_table_markdown([row("mine", 0.5)], kind="event")
    zeng = "85.6 / 89.3 / 87.5 | 77.6 / 89.7 / 83.2 | 84.5 / 80.1 / 82.3 | – | 84.3 |"
    assert f"| Zeng et al. (2020) (CDLM paper, Table 2) | {zeng}" in text
    assert "| Longformer (CDLM paper, Table 3) | – | – | – | – | 84.6 |" in text


def test_names_are_escaped():
    html = coreference_table_html([row("<script>x</script>", 0.5), row("b", 0.4)], note="<script>")
    assert "<script" not in html
    assert "&lt;script&gt;x&lt;/script&gt;" in html


def test_rows_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="rows is empty"):
        coreference_table_html([])
    with pytest.raises(ValueError, match="two rows are called 'a'"):
        coreference_table_markdown([row("a", 0.5), row("a", 0.4)])
    with pytest.raises(ValueError, match="unknown kind 'verbs'; choose one of event, entity, or None"):
        coreference_table_html([row("a", 0.5)], kind="verbs")
    with pytest.raises(ValueError, match="a: no score of lea, conll"):
        CoreferenceRow(
            system="a", scores={m: Score(recall=0, precision=0, f1=0) for m in ("muc", "b_cubed", "ceaf_e")}
        )
    for interval in ((0.6, 0.5), (-0.1, 0.5), (0.5, 55.0)):
        with pytest.raises(ValueError, match=r"is no interval in \[0, 1\]"):
            row("a", 0.5, interval=interval)
    with pytest.raises(ValueError, match=r"p is 1\.5"):
        row("a", 0.5, p=1.5)
