"""A run that was killed, stopped or out of disk goes on as if nothing had been, to the last bit."""

import errno
import json
import shutil
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
from tiny_run import ENVIRONMENT, run, timeless, tiny_model

from cdlm_lab.training import checkpoints, trainer
from cdlm_lab.training.checkpoints import CheckpointError
from cdlm_lab.training.history import read_history

# Checkpoints at 3, 6, 9 fall between records at 1, 4, 8, so sums must survive them too.
SETTINGS = {"log_every": 4, "evaluate_every": 5}
Outcome = tuple[list[dict[str, Any]], dict[str, torch.Tensor]]


def outcome(folder: Path, **changes: Any) -> Outcome:
    """The history and the last weights of a run that starts, or goes on, in the folder."""
    result = run(folder, model=tiny_model(), **SETTINGS, **changes)
    assert timeless(read_history(folder / "history.jsonl")) == timeless(result.history)
    last = tiny_run.TinyModel.from_pretrained(result.last_checkpoint).state_dict()
    return timeless(result.history), {name: value.clone() for name, value in last.items()}


def assert_equal(one: Outcome, other: Outcome) -> None:
    assert one[0] == other[0]
    assert all(torch.equal(value, other[1][name]) for name, value in one[1].items())


@pytest.fixture(scope="module")
def uninterrupted_in(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """In each precision that `auto` may mean on a CPU."""
    precisions = ("float32", "bfloat16")
    both = {name: outcome(tmp_path_factory.mktemp(name), precision=name) for name in precisions}
    assert both["float32"][0] != both["bfloat16"][0]
    return both


@pytest.fixture(scope="module")
def uninterrupted(uninterrupted_in: dict[str, Outcome]) -> Outcome:
    return uninterrupted_in["float32"]


def at_step(step: int, act: Callable[[], None]) -> Callable[[dict[str, Any]], None]:
    return lambda record: act() if record["step"] == step and "loss" in record else None


def interrupt_at(step: int) -> Callable[[dict[str, Any]], None]:
    return at_step(step, lambda: signal.raise_signal(signal.SIGINT))


@pytest.fixture(scope="module")
def stopped_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stopped")
    run(folder, on_log=interrupt_at(4), **SETTINGS)
    return folder


@pytest.fixture
def stopped(stopped_once: Path, tmp_path: Path) -> Path:
    """The folder of a run that was stopped after step 5."""
    return Path(shutil.copytree(stopped_once, tmp_path / "stopped"))


def start(folder: Path, *, kill_at: int, **changes: Any) -> None:
    options = json.dumps(SETTINGS | changes | {"kill_at": kill_at})
    command = [sys.executable, tiny_run.__file__, str(folder), options]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert list(folder.glob("checkpoint-*"))
    assert not (folder / "checkpoint-10").exists()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"precision": "float32"}, {"precision": "float32"}),
        ({"precision": "bfloat16"}, {"precision": "bfloat16"}),
        ({"workers": 2}, {"workers": 1}),
    ],
)
def test_a_killed_run(tmp_path: Path, uninterrupted_in, before: dict, after: dict):
    start(tmp_path, kill_at=8, **before)
    assert_equal(outcome(tmp_path, **after), uninterrupted_in[after.get("precision", "float32")])


def test_a_checkpoint_is_due_by_time_too(
    tmp_path: Path, uninterrupted: Outcome, monkeypatch: pytest.MonkeyPatch
):
    for seconds, kept in ((1e6, ["checkpoint-5"]), (0, ["checkpoint-5", "checkpoint-7"])):
        monkeypatch.setattr(trainer, "SECONDS_BETWEEN_CHECKPOINTS", seconds)
        with pytest.raises(ZeroDivisionError):
            run(tmp_path, on_log=at_step(8, lambda: 1 // 0), save_every=10, **SETTINGS)
        assert sorted(one.name for one in tmp_path.glob("checkpoint-*")) == kept
    assert_equal(outcome(tmp_path, save_every=10), uninterrupted)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_stopped_run(tmp_path: Path, uninterrupted_in, precision: str, capsys: pytest.CaptureFixture[str]):
    result = run(tmp_path, on_log=interrupt_at(4), precision=precision, **SETTINGS)
    # The signal came while step 4 was recorded, after a stop was looked for at the end of that step.
    assert (result.steps, result.interrupted, result.last_checkpoint.name) == (5, True, "checkpoint-5")
    assert capsys.readouterr().out == "Stopping after this step; once more stops at once.\n"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert_equal(outcome(tmp_path, precision=precision), uninterrupted_in[precision])


def test_processes_that_make_examples_change_nothing(
    tmp_path: Path, uninterrupted: Outcome, capfd: pytest.CaptureFixture[str]
):
    """An interrupt reaches them too, as one from a terminal or of JupyterLab does."""
    before, counts = psutil.Process().children(), []

    def makers() -> list[psutil.Process]:
        return [one for one in psutil.Process().children() if one not in before]

    def interrupt_all() -> None:
        counts.append(len(makers()))
        for maker in makers():
            maker.send_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    result = run(tmp_path, on_log=at_step(4, interrupt_all), **SETTINGS, workers=2)
    assert counts[0] >= 2
    assert (result.steps, result.interrupted) == (5, True)
    assert capfd.readouterr().out.count("Stopping after this step") == 1
    assert not makers()
    assert_equal(outcome(tmp_path, workers=2), uninterrupted)


def test_a_terminated_run_saves_and_then_ends(tmp_path: Path, uninterrupted: Outcome):
    ended = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: ended.append(number))
    try:
        run(tmp_path, on_log=at_step(4, lambda: signal.raise_signal(signal.SIGTERM)), **SETTINGS)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended == [signal.SIGTERM]
    assert_equal(outcome(tmp_path), uninterrupted)


def test_a_kernel_whose_papermill_was_terminated_saves_and_then_ends(tmp_path: Path, uninterrupted: Outcome):
    """Papermill ends at a SIGTERM and leaves its kernel, which notices that it has no parent any more."""
    command = [sys.executable, tiny_run.__file__, str(tmp_path), json.dumps(SETTINGS | {"orphaned_at": 8})]
    start_and_say = "import subprocess, sys; p = subprocess.Popen(sys.argv[1:]); print(p.pid); p.wait()"
    papermill = [sys.executable, "-u", "-c", start_and_say, *command]
    with subprocess.Popen(papermill, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as started:
        kernel = psutil.Process(int(started.stdout.readline()))
        assert started.wait(300) == -signal.SIGTERM
        psutil.wait_procs([kernel], timeout=300)
    assert sorted(one.name for one in tmp_path.glob("checkpoint-*")) == ["checkpoint-5", "checkpoint-9"]
    assert not (tmp_path / "outcome.json").exists()
    assert_equal(outcome(tmp_path), uninterrupted)


def test_a_finished_run_is_only_read(tmp_path: Path, uninterrupted: Outcome):
    first, best = outcome(tmp_path), tiny_model()
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")}
    result = run(tmp_path, model=best, **SETTINGS)
    assert_equal(first, uninterrupted)
    assert timeless(result.history) == first[0]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")} == files
    weights = tiny_run.TinyModel.from_pretrained(result.best_checkpoint).state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in best.state_dict().items())


def test_a_full_disk_loses_nothing(tmp_path: Path, uninterrupted: Outcome, monkeypatch: pytest.MonkeyPatch):
    def full(tensors: dict[str, torch.Tensor], path: Path) -> None:
        if path.parent.name == ".checkpoint-9.unfinished":
            raise OSError(errno.ENOSPC, "No space left on device")
        original(tensors, path)

    original = checkpoints.save_file
    monkeypatch.setattr(checkpoints, "save_file", full)
    message = r"checkpoint-9 was not written, the last good one is .*checkpoint-6\."
    with pytest.raises(CheckpointError, match=message):
        outcome(tmp_path)
    assert [path.name for path in tmp_path.iterdir() if "9" in path.name] == []
    monkeypatch.undo()
    assert_equal(outcome(tmp_path), uninterrupted)


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "progress.json"])
def test_a_flipped_bit_costs_the_steps_since_the_other_checkpoint(
    tmp_path: Path, uninterrupted: Outcome, name: str
):
    run(tmp_path, on_log=interrupt_at(8), **SETTINGS)
    assert sorted(path.name for path in tmp_path.glob("checkpoint-*")) == ["checkpoint-5", "checkpoint-9"]
    content = bytearray((tmp_path / "checkpoint-9" / name).read_bytes())
    content[-2] ^= 1
    (tmp_path / "checkpoint-9" / name).write_bytes(content)
    with pytest.warns(UserWarning, match=rf"checkpoint-9: {name} is not what was .* goes on from .*point-5$"):
        assert_equal(outcome(tmp_path), uninterrupted)


def test_a_best_checkpoint_that_was_damaged_meanwhile_is_not_taken(tmp_path: Path):
    def damage() -> None:
        weights = tmp_path / "checkpoint-5" / "model.safetensors"
        weights.write_bytes(bytes(weights.stat().st_size))

    with pytest.raises(CheckpointError, match=r"checkpoint-5, the best of the run, is damaged: model\.safe"):
        run(tmp_path, on_log=at_step(8, damage), **SETTINGS)


def test_a_run_goes_on_with_smaller_micro_batches(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """As after a lack of memory: without dropout everything is the same up to rounding, here of float64."""
    settings = SETTINGS | {"batch_size": 4, "micro_batch_size": 4}
    models = [tiny_model(dropout=0.0).double() for _ in range(3)]
    whole = run(tmp_path / "whole", model=models[0], **settings)
    run(tmp_path / "stopped", model=models[1], on_log=interrupt_at(4), **settings)
    capsys.readouterr()
    again = run(tmp_path / "stopped", model=models[2], **settings | {"micro_batch_size": 1})
    assert capsys.readouterr().out.splitlines()[0] == (
        "After step 5 micro-batches have 1 examples, not 4: sums are rounded otherwise, and dropout draws "
        "other numbers."
    )
    for one, other in zip(timeless(whole.history), timeless(again.history), strict=True):
        assert one == pytest.approx(other, rel=1e-6)
    for name, value in models[0].state_dict().items():
        torch.testing.assert_close(models[2].state_dict()[name], value, rtol=0, atol=1e-10)


def test_other_settings_and_another_model_are_refused(stopped: Path):
    message = r"checkpoint-5 was written with other settings: learning_rate 0\.01 -> 0\.02"
    with pytest.raises(CheckpointError, match=message):
        run(stopped, learning_rate=0.02, **SETTINGS)
    model = tiny_model()
    model.extra = torch.nn.Linear(2, 2)
    message = r"does not fit TinyModel: extra\.bias is missing, extra\.weight is"
    with pytest.raises(CheckpointError, match=message):
        run(stopped, model=model, **SETTINGS)


def test_a_moved_run_goes_on(stopped: Path, uninterrupted: Outcome):
    moved = stopped.rename(stopped.parent / "elsewhere")
    assert_equal(outcome(moved), uninterrupted)


def test_no_file_of_a_checkpoint_is_a_pickle(stopped: Path):
    names = {path.name for path in (stopped / "checkpoint-5").iterdir()}
    assert names == {
        "config.json", "model.safetensors", "optimizer.safetensors", "random_state.safetensors",
        "progress.json", "complete.json",
    }  # fmt: skip
