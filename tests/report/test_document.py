"""report.json says what it must, in JSON that any reader takes, and is written whole or not at all."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from cdlm_lab import report as document
from cdlm_lab import report as values
from cdlm_lab.report import RunError, open_run, read_report


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
        ({"f1": {"value": 2**64}}, "has more than 64 bits"),
        ({"f1": {"value": 1, "label": "\udc80"}}, "has half a surrogate pair"),
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
    with pytest.raises(
        RunError, match=r"report\.json was not written: the disk is full; free some space, and give the same"
    ):
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
    with pytest.raises(RunError, match="format is None, this version of cdlm_lab reads 1 and 2"):
        read_report(path)
    path.write_text(json.dumps({"format": document.FORMAT, "name": "x"}))
    with pytest.raises(RunError, match="the field 'parameters' is missing"):
        read_report(path)


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("name", 3, r"name is 3 \(int\); it must be text$"),
        ("scores", {}, r"scores is {} \(dict\); it must be a list of rows$"),
        ("scores", [3], r"scores\[0\] is 3 \(int\); it must be a mapping$"),
        ("scores", [{"metric": "f1", "value": "x"}], r"scores\[0\]\['value'\]: input should be a valid"),
        ("scores", [{"value": 1}], r"scores\[0\]\['metric'\]: field required$"),
        ("scores", [{"metric": "f1", "value": 1, "hight": 2}], r"scores\[0\]\['hight'\]: unexpected"),
        (
            "scores",
            [{"metric": "f1", "value": 1, "low": 2, "high": 1}],
            r"scores\[0\]: \[2, 1\] is no interval$",
        ),
        ("scores", [{"metric": "f1", "value": 1, "low": 2}], r"scores\[0\]: \[2, None\] is no interval$"),
        (
            "scores",
            [{"metric": "f1", "value": 1, "p": 1.5}],
            r"scores\[0\]: p is 1.5; it must lie in \[0, 1\]$",
        ),
        (
            "scores",
            [{"metric": "f1", "value": 1, "deviation": -1}],
            r"scores\[0\]: the deviation is -1; it must not be negative$",
        ),
        ("scores", [{"metric": "f1", "value": 1}] * 2, r"scores\[1\]: a second row of f1$"),
        ("tables", {"a": [3]}, r"tables\['a'\]\[0\] is 3 \(int\); it must be a mapping$"),
        ("seed", "7", r"seed is the text '7'; it must be a whole number$"),
        ("seconds", float("inf"), r"seconds is inf"),
        ("finished", None, r"finished is None \(NoneType\); it must be text$"),
        ("parameters", {"x": 10**30}, r"parameters\['x'\] has more than 64 bits$"),
        ("data", {"x": "\ud800"}, r"data\['x'\] has half a surrogate pair"),
        ("data", {"x": json.loads("[" * 90 + "]" * 90)}, "has more than 50 levels of lists and mappings$"),
    ],
)
def test_a_report_of_something_else(tmp_path: Path, field: str, value: object, told: str):
    open_run(tmp_path, name="x", parameters={}).write_report(scores={})
    path = tmp_path / "report.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    with pytest.raises(RunError, match=rf"report\.json: {told}") as raised:
        read_report(tmp_path)
    assert "\n" not in str(raised.value)


def test_what_is_no_file_is_no_report(tmp_path: Path):
    (tmp_path / "report.json").mkdir()
    with pytest.raises(RunError, match=r"report\.json: is no file"):
        read_report(tmp_path)
    (tmp_path / "report.json").rmdir()
    os.mkfifo(tmp_path / "report.json")  # to open one would wait for ever
    with pytest.raises(RunError, match=r"report\.json: is no file"):
        read_report(tmp_path)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"format": ' + "9" * 5000 + "}", "", "\0" * 9])
def test_text_that_is_no_json(tmp_path: Path, text: str):
    (tmp_path / "report.json").write_text(text)
    with pytest.raises(RunError, match=r"report\.json:.* not JSON \("):
        read_report(tmp_path)
