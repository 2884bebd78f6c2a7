"""Records stay in step with checkpoints, whatever a killed process left behind."""

import errno
from pathlib import Path

import pytest

from cdlm_lab.training import history
from cdlm_lab.training.checkpoints import CheckpointError
from cdlm_lab.training.history import RunHistory, append_record, read_history, truncate_history


def written(path: Path, *steps: int) -> None:
    for step in steps:
        append_record(path, {"step": step, "loss": step / 2})


def test_records_come_back(tmp_path: Path):
    path = tmp_path / "history.jsonl"
    assert read_history(path) == []
    written(path, 1, 2, 2)
    assert read_history(path) == [{"step": s, "loss": s / 2} for s in (1, 2, 2)]
    assert path.read_text().count("\n") == 3


def test_later_records_are_dropped(tmp_path: Path):
    path = tmp_path / "history.jsonl"
    written(path, 1, 2, 3, 4)
    assert (
        truncate_history(path, 2)
        == read_history(path)
        == [{"step": 1, "loss": 0.5}, {"step": 2, "loss": 1.0}]
    )
    assert truncate_history(path, 0) == read_history(path) == []
    assert [file.name for file in tmp_path.iterdir()] == ["history.jsonl"]


def test_a_last_line_cut_off_is_passed_over(tmp_path: Path):
    path = tmp_path / "history.jsonl"
    written(path, 1, 2)
    path.write_text(path.read_text()[:-5])
    assert [record["step"] for record in read_history(path)] == [1]


@pytest.mark.parametrize("line", ["{", "[1]", '{"loss": 1}', '{"step": "1"}'])
def test_a_damaged_line_is_named(tmp_path: Path, line: str):
    path = tmp_path / "history.jsonl"
    path.write_text(f'{{"step": 1}}\n{line}\n{{"step": 3}}\n')
    with pytest.raises(ValueError, match=r"history\.jsonl:2: not a record of training"):
        read_history(path)


def test_nan_is_not_written(tmp_path: Path):
    with pytest.raises(ValueError, match="JSON compliant"):
        append_record(tmp_path / "history.jsonl", {"step": 1, "loss": float("nan")})


def test_who_gets_the_records(tmp_path: Path):
    written(tmp_path / "history.jsonl", 1, 2, 3)
    got: list[int] = []
    first = RunHistory(tmp_path, writer=True, on_log=lambda record: got.append(record["step"]))
    first.begin(2)
    first.add({"step": 3})
    assert got == [1, 2, 3]
    other = RunHistory(tmp_path, writer=False, on_log=lambda record: got.append(-1))
    other.begin(1)
    other.add({"step": 2})
    assert [record["step"] for record in other.records] == [1, 2]
    assert (got, len(read_history(tmp_path / "history.jsonl"))) == ([1, 2, 3], 3)


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(history.os, "write", full)
    with pytest.raises(CheckpointError, match=r"the disk is full: .*history\.jsonl was not written"):
        RunHistory(tmp_path, writer=True, on_log=None).add({"step": 1})
