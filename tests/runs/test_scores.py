"""The score table: what a row is, how it is written and read."""

import json
from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.runs.report import open_run, read_report
from cdlm_lab.runs.scores import Score, plain_name


def test_rows_are_written_read_and_framed(tmp_path: Path):
    run = open_run(tmp_path, name="x", parameters={})
    first = Score(system="a", split="test", metric="f1", value=np.float32(0.5), n=np.int64(4), seed=7)
    second = Score(metric="tokens", value=10)
    report = run.write_report(scores=[first, second])
    assert read_report(tmp_path) == report
    assert report.rows == [first, second]
    assert json.loads((tmp_path / "report.json").read_text())["scores"] == [
        {"system": "a", "split": "test", "metric": "f1", "value": 0.5, "n": 4, "seed": 7},
        {"metric": "tokens", "value": 10},
    ]
    frame = report.frame
    assert frame.query("system == 'a' and split == 'test'")["value"].tolist() == [0.5]
    assert frame["p"].isna().all()
    assert frame["against"].tolist() == ["", ""]
    assert plain_name(first) == "a/test/f1/seed 7"


@pytest.mark.parametrize("value", [True, "0.5", float("nan"), float("inf"), None])
def test_what_no_value_can_be(value: object):
    with pytest.raises(ValueError, match="value"):
        Score(metric="f1", value=value)
