"""How numbers are written, and rows become tables."""

import pytest

from cdlm_lab.results.reports import ReportedRow, ReportedScore
from cdlm_lab.results.tables import (
    as_perplexity,
    in_per_cent,
    in_thousandths,
    measured,
    number_cell,
    of_paper,
    p_of,
    table_of,
)

SCORE = ReportedScore(
    value=0.7157, interval=(0.7, 0.731), deviation=0.012, seeds=3, p=0.0004, against="Longformer"
)


def row(system: str, **scores: ReportedScore) -> ReportedRow:
    return ReportedRow(group="", system=system, label=system.upper(), checkpoint="", scores=scores)


def test_all_that_belongs_to_a_score_stands_in_its_cell():
    cell = number_cell(SCORE, in_per_cent, with_p=True)
    assert cell.text == "71.6"
    assert cell.below == "± 1.2 [70.0, 73.1] (p < 0.001 to Longformer)"
    assert number_cell(ReportedScore(value=0.5, p=0.0401), in_per_cent, with_p=True).below == "(p = 0.040)"
    assert number_cell(SCORE, in_per_cent).below == "± 1.2 [70.0, 73.1]"
    assert number_cell(None, in_per_cent, missing="not run").missing


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ((4.835, 4.69, 4.98), ["4.83", "4.69", "4.98"]),
        ((100.6, 94.13, 107.6), ["100.6", "94.1", "107.6"]),
        ((1234.5, 900.4), ["1,234", "900"]),
    ],
)
def test_bounds_of_a_perplexity_are_written_as_it_is(values: tuple[float, ...], written: list[str]):
    assert as_perplexity(values) == written


def test_a_deviation_has_the_decimals_of_its_value():
    score = ReportedScore(value=455.2, deviation=3.14159)
    assert number_cell(score, as_perplexity).below == "± 3.1"
    assert number_cell(ReportedScore(value=0.33, deviation=0.0221), in_thousandths).below == "± 0.022"


def test_a_row_without_scores_was_not_run_unless_the_paper_alone_has_it():
    columns = [measured("F1", "f1", in_per_cent), p_of("f1")]
    columns.append(of_paper("S2ORC", lambda system: {"a": "1", "b": "2", "c": "3"}[system]))
    table = table_of(
        [row("a", f1=SCORE), row("b"), row("c")], columns, of_others=("c",), sources={"a": "runs/a"}
    )
    assert [[cell.text for cell in cells] for cells in table.rows] == [
        ["A", "71.6", "< 0.001", "1"],
        ["B", "not run", "not run", "2"],
        ["C", "", "", "3"],
    ]
    (_, f1, p, paper), second, third = table.rows
    assert (f1.source, p.source, paper.source) == ("runs/a", "runs/a", "")
    assert second[1].missing
    assert third[0].published
