"""Records stay in step with checkpoints, progress is visible in a log, the first interrupt waits for the step
and the second does not, and the time of a batch is that of the second run."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from cdlm_lab.training import history
from cdlm_lab.training.checkpoints import CheckpointError
from cdlm_lab.training.history import RunHistory, append_record, read_history, stop_on_signals


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.jsonl"


def written(path: Path, *steps: int) -> list[dict[str, float]]:
    records = [{"step": step, "loss": step / 2} for step in steps]
    for record in records:
        append_record(path, record)
    return records


def test_records_come_back_and_later_ones_are_dropped(path: Path):
    assert read_history(path) == []
    records = written(path, 1, 2, 2, 3, 4)
    assert read_history(path) == records
    assert path.read_text().count("\n") == 5
    assert history.truncate_history(path, 2) == read_history(path) == records[:3]
    path.write_text(path.read_text()[:-5])  # the last line is cut off
    assert read_history(path) == records[:2]
    assert history.truncate_history(path, 0) == read_history(path) == []
    assert [file.name for file in path.parent.iterdir()] == ["history.jsonl"]


@pytest.mark.parametrize("line", ["{", "[1]", '{"loss": 1}', '{"step": "1"}'])
def test_a_damaged_line_is_named(path: Path, line: str):
    path.write_text(f'{{"step": 1}}\n{line}\n{{"step": 3}}\n')
    with pytest.raises(ValueError, match=r"history\.jsonl:2: not a record of training"):
        read_history(path)


def test_who_gets_the_records(path: Path):
    written(path, 1, 2, 3)
    got: list[int] = []
    first = RunHistory(path.parent, writer=True, on_log=lambda record: got.append(record["step"]))
    first.begin(2)
    first.add({"step": 3})
    assert got == [1, 2, 3]
    other = RunHistory(path.parent, writer=False, on_log=lambda record: got.append(-1))
    other.begin(1)
    other.add({"step": 2})
    assert [record["step"] for record in other.records] == [1, 2]
    assert (got, len(read_history(path))) == ([1, 2, 3], 3)


def test_what_is_not_written(path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ValueError, match="JSON compliant"):
        append_record(path, {"step": 1, "loss": float("nan")})

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(history, "append_record", full)
    with pytest.raises(CheckpointError, match=r"the disk is full: .*history\.jsonl was not written"):
        RunHistory(path.parent, writer=True, on_log=None).add({"step": 1})


class Slow(nn.Module):
    """Takes 8 seconds the first time and 2 from then on, by a clock of its own; knows its precision."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.clock = nn.Linear(2, 2), 0.0
        self.types: list[torch.dtype] = []

    def forward(self, x: Tensor) -> Mapping[str, Tensor]:
        self.clock += 2 if self.types else 8
        result = self.weight(x)
        self.types.append(result.dtype)
        return {"loss": result.float().sum()}


def test_the_time_of_a_batch_is_that_of_the_second_run(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Slow().eval()
    monkeypatch.setattr(history.time, "perf_counter", lambda: model.clock)
    seconds, batch = history.seconds_of_batch(model, lambda: {"x": torch.ones(1, 2)}, precision="bfloat16")
    assert seconds == 2
    assert batch["x"].tolist() == [[1, 1]]
    assert model.types == [torch.bfloat16, torch.bfloat16]
    assert model.training


def test_the_first_interrupt_is_noted_and_the_second_obeyed(capsys: pytest.CaptureFixture[str]):
    with stop_on_signals() as stop:
        assert (stop.signal, stop.requested) == (None, False)
        signal.raise_signal(signal.SIGINT)
        assert (stop.signal, stop.requested) == (signal.SIGINT, True)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert "Stopping after this step" in capsys.readouterr().out
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_in_another_thread_nothing_is_changed():
    actual = []

    def inside() -> None:
        with stop_on_signals() as stop:
            actual.append(stop.signal)

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert actual == [None]


def test_a_file_stops_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(history.STOP_FILE_VARIABLE, str(tmp_path / "stop"))
    with stop_on_signals() as stop:
        assert not stop.requested
        (tmp_path / "stop").touch()
        assert (stop.signal, stop.requested) == (None, True)
