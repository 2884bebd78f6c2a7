"""report.json says what it must, in JSON that any reader takes, and is written whole or not at all."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.data.files import DataError
from cdlm_lab.runs.items import checked_items, items_of
from cdlm_lab.runs.report import RunError, open_run, read_report
from cdlm_lab.runs.scores import Score, plain_name


def test_a_report_comes_back_as_it_was(tmp_path: Path):
    run = open_run(tmp_path, name="x", parameters={"seed": 3, "size": np.int64(4)})
    rows = [{"variant": "cdlm", "perplexity": np.float32(2.5)}, {"variant": "rand-cdlm", "perplexity": None}]
    names = {"system": "a", "split": "test", "seed": 7}
    first = Score(**names, metric="perplexity", value=np.float32(2.5), low=2.0, high=3, n=np.int64(40))
    scores = [first, Score(metric="f1", value=10)]
    report = run.write_report(scores=scores, data={"corpus": "ab12"}, tables={"by variant": rows})
    assert read_report(tmp_path) == read_report(tmp_path / "report.json") == report
    assert report.rows == scores
    assert (report.seed, report.parameters, report.data) == (3, {"seed": 3, "size": 4}, {"corpus": "ab12"})
    assert report.tables["by variant"] == [{"variant": "cdlm", "perplexity": 2.5}, rows[1]]
    assert {"python", "cdlm_lab", "torch", "transformers", "numpy"} <= report.versions.keys()
    assert report.hardware["cores"] == os.cpu_count()
    assert report.hardware["memory"] > 0
    assert report.peak_memory["cpu"] > 0
    assert json.loads((tmp_path / "report.json").read_text())["scores"] == [
        {"system": "a", "split": "test", "metric": "perplexity", "value": 2.5, "low": 2.0, "high": 3, "n": 40}
        | {"seed": 7},
        {"metric": "f1", "value": 10},
    ]
    assert report.frame.query("system == 'a' and split == 'test'")["value"].tolist() == [2.5]
    assert report.frame["p"].isna().all()
    assert report.frame["against"].tolist() == ["", ""]
    assert plain_name(first) == "a/test/perplexity/seed 7"


def test_a_report_has_the_items_of_its_scores(tmp_path: Path):
    table = items_of({"f1": [0.5, 1.0]}, system="a", split="test", items=["x", "y"])
    report = open_run(tmp_path, name="x", parameters={}).write_report(scores=[], items=table)
    assert report.items.equals(checked_items(table))
    assert read_report(tmp_path).items.equals(report.items)
    recorded = tmp_path / "recorded.json"
    recorded.write_bytes((tmp_path / "report.json").read_bytes())
    with pytest.raises(DataError, match=r"recorded\.items\.parquet:1: .*no such file"):
        _ = read_report(recorded).items


@pytest.mark.parametrize("value", [True, "0.5", float("nan"), float("inf"), None])
def test_what_no_value_can_be(value: object):
    with pytest.raises(ValueError, match="value"):
        Score(metric="f1", value=value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "data is nan, which is no score and not in JSON"),
        ({"low": float("-inf")}, "data['low'] is -inf"),
        ({"value": np.array([0.5, np.inf])}, "data['value'][1] is inf"),
        ({"value": {1, 2}}, "data['value'] is {1, 2} (set), which JSON has not"),
        ({"value": 1, 2: 3}, "data has the key 2; keys must be text"),
        ({"value": 2**64}, "data['value'] has more than 64 bits"),
        ({"label": "\udc80"}, "data['label'] has half a surrogate pair"),
    ],
)
def test_what_is_not_in_json_is_refused_and_the_run_not_lost(tmp_path: Path, value: object, message: str):
    run = open_run(tmp_path, name="x", parameters={})
    with pytest.raises(RunError, match=re.escape(message)):
        run.write_report(scores=[], data=value)
    with pytest.raises(RunError, match=r"scores\[1\]: a second row of f1"):
        run.write_report(scores=[Score(metric="f1", value=1)] * 2)
    assert not (tmp_path / "report.json").exists()
    run.write_report(scores=[])


NOT_JSON = [b'{"name":\n "x",,', b"\xff\xfe\x00", b"[" * 100_000, b"", b"\0" * 9]
NOT_JSON += [b'{"format": ' + b"9" * 5000 + b"}"]


@pytest.mark.parametrize("content", NOT_JSON)
def test_reports_that_are_not_json(tmp_path: Path, content: bytes):
    (tmp_path / "report.json").write_bytes(content)
    with pytest.raises(RunError, match=r"report\.json: not JSON \(.* at line \d column \d+\)$"):
        read_report(tmp_path)


def test_what_is_no_file_is_no_report(tmp_path: Path):
    path = tmp_path / "report.json"
    with pytest.raises(RunError, match=r"there is no .*report\.json: the run has not finished"):
        read_report(tmp_path)
    path.mkdir()
    with pytest.raises(RunError, match=r"report\.json: is no file"):
        read_report(tmp_path)
    path.rmdir()
    os.mkfifo(path)  # to open one would wait for ever
    with pytest.raises(RunError, match=r"report\.json: is no file"):
        read_report(tmp_path)


ROW = {"metric": "f1", "value": 1}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("format", 1, "format is 1, this version of cdlm_lab reads 2$"),
        ("name", ["x"], "name: Input should be a valid string$"),
        ("parameters", [], "parameters: Input should be an object$"),
        ("scores", {}, "scores: Input should be a valid array$"),
        ("scores", [ROW | {"value": "x"}], r"scores\[0\]\['value'\].*: Input should be a valid"),
        ("scores", [{"value": 1}], r"scores\[0\]\['metric'\]: Field required$"),
        ("scores", [ROW | {"hight": 2}], r"scores\[0\]\['hight'\]: Unexpected"),
        ("scores", [ROW | {"low": 2, "high": 1}], r"scores\[0\]: \[2, 1\] is no interval$"),
        ("scores", [ROW | {"low": 2}], r"scores\[0\]: \[2, None\] is no interval$"),
        ("scores", [ROW | {"p": 1.5}], r"scores\[0\]: p is 1.5; it must lie in \[0, 1\]$"),
        ("scores", [ROW | {"deviation": -1}], r"scores\[0\]: the deviation is -1; it must not be negative$"),
        ("scores", [ROW] * 2, r"scores\[1\]: a second row of f1$"),
        ("tables", {"a": [3]}, r"tables\['a'\]\[0\]: Input should be an object$"),
        ("seed", "7", "seed: Input should be a valid integer$"),
        ("seconds", float("inf"), r"not JSON \("),
        ("data", {"x": "\ud800"}, r"not JSON \("),
    ],
)
def test_a_report_of_something_else(tmp_path: Path, field: str, value: object, message: str):
    open_run(tmp_path, name="x", parameters={}).write_report(scores=[])
    path = tmp_path / "report.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    with pytest.raises(RunError, match=rf"report\.json: {message}") as raised:
        read_report(tmp_path)
    assert "\n" not in str(raised.value)
