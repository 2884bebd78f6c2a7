"""report.json says what it must, in JSON that any reader takes, and is written whole or not at all."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.report import RunError, document, open_run, read_report, values


def test_a_report_comes_back_as_it_was(tmp_path: Path):
    run = open_run(tmp_path, name="x", parameters={"seed": 3, "size": np.int64(4)})
    report = run.write_report(
        scores={
            "perplexity": {"value": np.float32(2.5), "low": 2.0, "high": 3, "n": np.int64(40)},
            "f1": 0.5,
        },
        data={"corpus": "ab12"},
        tables={
            "by variant": [
                {"variant": "cdlm", "perplexity": 2.5},
                {"variant": "rand-cdlm", "perplexity": None},
            ]
        },
    )
    assert read_report(tmp_path) == read_report(tmp_path / "report.json") == report
    assert report.scores == {
        "perplexity": {"value": 2.5, "low": 2.0, "high": 3, "n": 40},
        "f1": {"value": 0.5},
    }
    assert (report.seed, report.parameters, report.data) == (3, {"seed": 3, "size": 4}, {"corpus": "ab12"})
    assert report.tables["by variant"][1] == {"variant": "rand-cdlm", "perplexity": None}
    assert {"python", "cdlm_lab", "torch", "transformers", "numpy"} <= report.versions.keys()
    assert report.hardware["cores"] == os.cpu_count()
    assert report.hardware["memory"] > 0
    assert report.peak_memory["cpu"] > 0


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({"f1": float("nan")}, r"scores\['f1'\] is nan"),
        ({"f1": {"value": 0.1, "low": float("-inf")}}, r"scores\['f1'\]\['low'\] is -inf"),
        ({"f1": {"value": np.array([0.5, np.inf])}}, r"scores\['f1'\]\['value'\]\[1\] is inf"),
        ({"f1": {"low": 0.1}}, r"scores\['f1'\] is .*; it must be a number, or a mapping with 'value'"),
        ({"f1": "high"}, "must be a number"),
        ({"f1": True}, "must be a number"),
        ({"f1": {"value": {1, 2}}}, r"\(set\), which JSON has not"),
        ({"f1": {"value": 1, 2: 3}}, "has the key 2; keys must be text"),
    ],
)
def test_what_no_score_can_be(tmp_path: Path, scores: dict[str, object], message: str):
    run = open_run(tmp_path, name="x", parameters={})
    with pytest.raises(RunError, match=message):
        run.write_report(scores=scores)
    assert not (tmp_path / "report.json").exists()
    run.write_report(scores={})  # the run is not lost


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run = open_run(tmp_path, name="x", parameters={})

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(values.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        run.write_report(scores={})
    monkeypatch.undo()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "run.json"]
    run.write_report(scores={})


def test_reports_that_cannot_be_read(tmp_path: Path):
    with pytest.raises(RunError, match=r"there is no .*report\.json: the run has not finished"):
        read_report(tmp_path)
    path = tmp_path / "report.json"
    path.write_text('{"name":\n "x",,')
    with pytest.raises(RunError, match=r"report\.json:2: not JSON"):
        read_report(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RunError, match="not text in UTF-8"):
        read_report(path)
    path.write_text("[]")
    with pytest.raises(RunError, match="format is None, this version of cdlm_lab reads 1"):
        read_report(path)
    path.write_text(json.dumps({"format": document.FORMAT, "name": "x"}))
    with pytest.raises(RunError, match="the field 'parameters' is missing"):
        read_report(path)
