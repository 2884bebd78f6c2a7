"""Tables made from the files of benchmarks."""

import json
from pathlib import Path

import pytest

from cdlm_lab.report import RunError
from cdlm_lab.results.readme import cross_document_cost, short, tagging_cost


def cells(table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def test_significant_digits():
    assert [short(value) for value in (0.8436, 9.994, 46.874, 149.94, 894.2)] == [
        "0.84",
        "9.99",
        "46.9",
        "149.9",
        "894",
    ]


def test_costs_stand_beside_the_papers(tmp_path: Path):
    rows = [
        {"text": text, "cda": cda, "ratio": 1.104, "ratio_min": 0.9, "ratio_max": 1.66, "predicted": 1.06}
        | {"added_parameters": 20100}
        for text, cda in (("PAN", "none"), ("PAN", "deep"), ("mine", "shallow"))
    ]
    (tmp_path / "cross_document_attention_benchmark.json").write_text(json.dumps({"rows": rows}))
    assert cells(cross_document_cost(tmp_path)) == [
        ["PAN", "DEEP", "1.10 (0.90-1.66)", "1.06", "1.12", "20,100"],  # 0.637 / 0.568 seconds
        ["mine", "SHALLOW", "1.10 (0.90-1.66)", "1.06", "", "20,100"],
    ]


def test_a_file_that_is_not_there_or_is_another(tmp_path: Path):
    with pytest.raises(RunError, match=r"there is no .*document_tagging_benchmark\.json; run its benchmark"):
        tagging_cost(tmp_path)
    file = tmp_path / "document_tagging_benchmark.json"
    file.write_text("{}")
    with pytest.raises(RunError, match="the field 'rows' is missing"):
        tagging_cost(tmp_path)
    file.write_text("{")
    with pytest.raises(RunError, match="not JSON"):
        tagging_cost(tmp_path)
