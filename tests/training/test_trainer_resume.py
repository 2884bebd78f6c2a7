"""A run that was killed, stopped or out of disk goes on as if nothing had been, to the last bit."""

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import tiny_run
import torch
from tiny_run import run, tiny_model

from cdlm_lab.training.checkpoints import CheckpointError
from cdlm_lab.training.history import read_history
from cdlm_lab.training.trainer import ResumableTrainer

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2]), "OMP_NUM_THREADS": "1"}
# Checkpoints at 3, 6, 9 fall between records at 1, 4, 8, so sums must survive them too.
SETTINGS = {"log_every": 4, "evaluate_every": 5}


def timeless(history: Any) -> list[dict[str, Any]]:
    return [{name: value for name, value in record.items() if name != "seconds"} for record in history]


def outcome(folder: Path, **changes: Any) -> tuple[list[dict[str, Any]], dict[str, torch.Tensor]]:
    """The history and the last weights of a run that starts, or goes on, in the folder."""
    model = tiny_model()
    result = run(folder, model=model, **SETTINGS, **changes)
    assert timeless(read_history(folder / "history.jsonl")) == timeless(result.history)
    last = tiny_run.TinyModel.from_pretrained(result.last_checkpoint).state_dict()
    return timeless(result.history), {name: value.clone() for name, value in last.items()}


def assert_equal(one: tuple[Any, dict], other: tuple[Any, dict]) -> None:
    assert one[0] == other[0]
    assert all(torch.equal(value, other[1][name]) for name, value in one[1].items())


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory):
    return outcome(tmp_path_factory.mktemp("uninterrupted"))


@pytest.fixture(scope="module")
def uninterrupted_in(uninterrupted, tmp_path_factory: pytest.TempPathFactory):
    """The same in each precision that `auto` may mean on a CPU."""
    half = outcome(tmp_path_factory.mktemp("bfloat16"), precision="bfloat16")
    assert half[0] != uninterrupted[0]
    return {"float32": uninterrupted, "bfloat16": half}


def at_step(step: int, act: Callable[[], None]) -> Callable[[dict[str, Any]], None]:
    return lambda record: act() if record["step"] == step and "loss" in record else None


def start(folder: Path, *, kill_at: int, **changes: Any) -> subprocess.CompletedProcess[str]:
    options = json.dumps(SETTINGS | changes | {"kill_at": kill_at})
    command = [sys.executable, tiny_run.__file__, str(folder), options]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_killed_run(tmp_path: Path, uninterrupted_in, precision: str):
    done = start(tmp_path, kill_at=8, precision=precision)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert [path.name for path in tmp_path.glob("checkpoint-*")] != []
    assert not (tmp_path / "checkpoint-10").exists()
    assert_equal(outcome(tmp_path, precision=precision), uninterrupted_in[precision])


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.05, 0.2])
def test_a_run_killed_at_any_moment(tmp_path: Path, uninterrupted, seconds: float):
    command = [sys.executable, tiny_run.__file__, str(tmp_path), json.dumps(SETTINGS | {"save_every": 1})]
    process = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
    while not (tmp_path / "history.jsonl").exists() and process.poll() is None:
        pass
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    one, other = outcome(tmp_path, save_every=1), uninterrupted
    assert_equal(one, other)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_stopped_run(tmp_path: Path, uninterrupted_in, precision: str, capsys: pytest.CaptureFixture[str]):
    stop = at_step(4, lambda: signal.raise_signal(signal.SIGINT))
    result = run(tmp_path, on_log=stop, precision=precision, **SETTINGS)
    # The signal came while step 4 was recorded, after it was asked for at the end of that step.
    assert (result.steps, result.interrupted, result.last_checkpoint.name) == (5, True, "checkpoint-5")
    assert "Stopped after step 5; the same command goes on from there." in capsys.readouterr().out
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert_equal(outcome(tmp_path, precision=precision), uninterrupted_in[precision])


def makers_of_examples(before: list[psutil.Process]) -> list[psutil.Process]:
    return [one for one in psutil.Process().children() if one not in before]


def test_who_makes_the_examples_changes_nothing(tmp_path: Path, uninterrupted):
    before = psutil.Process().children()
    seen: list[int] = []
    record = at_step(8, lambda: seen.append(len(makers_of_examples(before))))
    run(tmp_path / "seen", on_log=record, **SETTINGS, workers=2)
    assert seen[0] >= 2
    assert not makers_of_examples(before)
    assert_equal(outcome(tmp_path / "seen", workers=2), uninterrupted)


def test_a_killed_run_goes_on_with_other_makers_of_examples(tmp_path: Path, uninterrupted):
    assert start(tmp_path, kill_at=8, workers=2).returncode == -signal.SIGKILL
    assert not (tmp_path / "checkpoint-10").exists()
    assert_equal(outcome(tmp_path, workers=1), uninterrupted)


def test_an_interrupt_that_reaches_the_makers_of_examples_too(
    tmp_path: Path, uninterrupted, capfd: pytest.CaptureFixture[str]
):
    """As one from a terminal or of JupyterLab does."""
    before = psutil.Process().children()

    def interrupt_all() -> None:
        for maker in makers_of_examples(before):
            maker.send_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    result = run(tmp_path, on_log=at_step(4, interrupt_all), **SETTINGS, workers=2)
    assert (result.steps, result.interrupted) == (5, True)
    assert capfd.readouterr().err.count("Stopping after this step") == 1
    assert not makers_of_examples(before)
    assert_equal(outcome(tmp_path, workers=2), uninterrupted)


def test_a_terminated_run_saves_and_then_ends(tmp_path: Path, uninterrupted):
    ended = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: ended.append(number))
    try:
        run(tmp_path, on_log=at_step(4, lambda: signal.raise_signal(signal.SIGTERM)), **SETTINGS)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended == [signal.SIGTERM]
    assert_equal(outcome(tmp_path), uninterrupted)


def test_a_finished_run_is_only_read(tmp_path: Path, uninterrupted):
    first = outcome(tmp_path)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")}
    best = tiny_model()
    result = run(tmp_path, model=best, **SETTINGS)
    assert_equal(first, uninterrupted)
    assert timeless(result.history) == first[0]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")} == files
    weights = tiny_run.TinyModel.from_pretrained(result.best_checkpoint).state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in best.state_dict().items())


def test_a_full_disk_loses_nothing(tmp_path: Path, uninterrupted, monkeypatch: pytest.MonkeyPatch):
    def full(trainer: ResumableTrainer, folder: str) -> None:
        if trainer.state.global_step >= 9:
            raise OSError(errno.ENOSPC, "No space left on device")
        original(trainer, folder)

    original = ResumableTrainer._save_optimizer_and_scheduler
    monkeypatch.setattr(ResumableTrainer, "_save_optimizer_and_scheduler", full)
    with pytest.raises(
        CheckpointError, match=r"checkpoint-9 was not written, the last good one is .*checkpoint-6\."
    ):
        outcome(tmp_path)
    assert [path.name for path in tmp_path.iterdir() if "9" in path.name] == []
    monkeypatch.undo()
    assert_equal(outcome(tmp_path), uninterrupted)


def test_a_half_written_checkpoint_is_not_used(tmp_path: Path, uninterrupted):
    run(tmp_path, on_log=at_step(4, lambda: signal.raise_signal(signal.SIGINT)), **SETTINGS)
    (tmp_path / ".checkpoint-8.unfinished").mkdir()
    (tmp_path / "checkpoint-7").mkdir()
    (tmp_path / "checkpoint-7" / "model.safetensors").write_bytes(b"12")
    with pytest.warns(UserWarning, match=r"checkpoint-7: complete\.json, .* goes on from .*checkpoint-5$"):
        assert_equal(outcome(tmp_path), uninterrupted)
    assert not (tmp_path / ".checkpoint-8.unfinished").exists()


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.pt", "progress.json", "scheduler.pt"])
def test_a_flipped_bit_costs_the_steps_since_the_other_checkpoint(tmp_path: Path, uninterrupted, name: str):
    run(tmp_path, on_log=at_step(8, lambda: signal.raise_signal(signal.SIGINT)), **SETTINGS)
    assert sorted(path.name for path in tmp_path.glob("checkpoint-*")) == ["checkpoint-5", "checkpoint-9"]
    content = bytearray((tmp_path / "checkpoint-9" / name).read_bytes())
    content[-2] ^= 1
    (tmp_path / "checkpoint-9" / name).write_bytes(content)
    with pytest.warns(UserWarning, match=rf"checkpoint-9: {name} is not what was .* goes on from .*point-5$"):
        assert_equal(outcome(tmp_path), uninterrupted)


def test_zeroed_files_are_no_checkpoint(tmp_path: Path):
    run(tmp_path, on_log=at_step(1, lambda: signal.raise_signal(signal.SIGINT)), **SETTINGS)
    for path in (tmp_path / "checkpoint-2").iterdir():
        path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(
        CheckpointError, match=r"checkpoint-2: complete\.json, .* Bring one back .* or delete"
    ):
        outcome(tmp_path)


def test_a_best_checkpoint_that_was_damaged_meanwhile_is_not_taken(tmp_path: Path):
    def damage() -> None:
        weights = tmp_path / "checkpoint-5" / "model.safetensors"
        weights.write_bytes(bytes(weights.stat().st_size))

    with pytest.raises(CheckpointError, match=r"checkpoint-5, the best of the run, is damaged: model\.safe"):
        run(tmp_path, on_log=at_step(8, damage), **SETTINGS)


def test_earlier_records_are_told_again(tmp_path: Path):
    run(tmp_path, on_log=at_step(4, lambda: signal.raise_signal(signal.SIGINT)), **SETTINGS)
    seen: list[dict[str, Any]] = []
    result = run(tmp_path, on_log=seen.append, **SETTINGS)
    assert seen == list(result.history)
    assert [record["step"] for record in seen] == [1, 4, 5, 8, 10]
    assert [record["seconds"] for record in seen] == sorted(record["seconds"] for record in seen)


def test_other_settings_are_refused(tmp_path: Path):
    run(tmp_path, on_log=at_step(4, lambda: signal.raise_signal(signal.SIGINT)), **SETTINGS)
    with pytest.raises(
        CheckpointError, match=r"checkpoint-5 was written with other settings: learning_rate 0\.01 -> 0\.02"
    ):
        run(tmp_path, learning_rate=0.02, **SETTINGS)
    with pytest.raises(FileExistsError, match="holds another run"):
        run(tmp_path, resume=False, **SETTINGS)


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path):
    run(tmp_path, on_log=at_step(4, lambda: signal.raise_signal(signal.SIGINT)), **SETTINGS)
    model = tiny_model()
    model.extra = torch.nn.Linear(2, 2)
    with pytest.raises(
        CheckpointError, match=r"does not fit TinyModel: extra\.bias is missing, extra\.weight is"
    ):
        run(tmp_path, model=model, **SETTINGS)
