"""Checkpoints are complete or do not exist; older ones outlive whatever happens to a new one."""

import errno
import json
import os
import subprocess
from pathlib import Path

import pytest
import safetensors.torch
import torch
from tiny_run import tiny_config
from torch import nn

from cdlm_lab.training import resume
from cdlm_lab.training.resume import (
    CheckpointError,
    check_loaded,
    complete_checkpoints,
    is_full_disk,
    keep_only,
    last_complete_checkpoint,
    read_progress,
    remove_unfinished,
    writing_checkpoint,
)


def checkpoint(folder: Path, step: int) -> Path:
    with writing_checkpoint(folder, step) as unfinished:
        (unfinished / "weights").write_bytes(b"1234")
        (unfinished / "deep").mkdir()
        (unfinished / "deep" / "part").write_text("ab")
    return folder / f"checkpoint-{step}"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_checkpoint_appears_when_it_is_finished(tmp_path: Path):
    folder = tmp_path / "run"
    assert last_complete_checkpoint(folder) is None
    with writing_checkpoint(folder, 20) as unfinished:
        (unfinished / "weights").write_bytes(b"1234")
        assert complete_checkpoints(folder) == []
    assert names(folder) == ["checkpoint-20"]
    assert json.loads((folder / "checkpoint-20" / "complete.json").read_text()) == {"weights": 4}
    checkpoint(folder, 100)
    checkpoint(folder, 3)
    assert complete_checkpoints(folder) == [folder / f"checkpoint-{step}" for step in (3, 20, 100)]
    assert last_complete_checkpoint(folder) == folder / "checkpoint-100"


def test_incomplete_ones_are_passed_over(tmp_path: Path):
    for step in (1, 2, 3, 4, 5):
        checkpoint(tmp_path, step)
    (tmp_path / "checkpoint-2" / "weights").write_bytes(b"123")
    (tmp_path / "checkpoint-3" / "deep" / "part").unlink()
    (tmp_path / "checkpoint-4" / "complete.json").unlink()
    (tmp_path / "checkpoint-5" / "complete.json").write_text("[")
    (tmp_path / "checkpoint-6").mkdir()
    (tmp_path / "checkpoint-seven").mkdir()
    (tmp_path / "checkpoint-8").touch()
    assert complete_checkpoints(tmp_path) == [tmp_path / "checkpoint-1"]


def test_an_incomplete_one_is_replaced(tmp_path: Path):
    checkpoint(tmp_path, 2)
    (tmp_path / "checkpoint-2" / "weights").unlink()
    checkpoint(tmp_path, 2)
    assert names(tmp_path) == ["checkpoint-2"]
    assert last_complete_checkpoint(tmp_path) == tmp_path / "checkpoint-2"


def test_what_killed_processes_leave_is_removed(tmp_path: Path):
    checkpoint(tmp_path, 1)
    for name in (".checkpoint-2.unfinished", ".checkpoint-0.removed", ".checkpoints", "figures"):
        (tmp_path / name).mkdir()
    remove_unfinished(tmp_path)
    assert names(tmp_path) == [".checkpoints", "checkpoint-1", "figures"]


def test_keep_only(tmp_path: Path):
    for step in (1, 2, 3):
        checkpoint(tmp_path, step)
    (tmp_path / "figures").mkdir()
    keep_only(tmp_path, {2, 9})
    assert names(tmp_path) == ["checkpoint-2", "figures"]


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        RuntimeError("[enforce fail at inline_container.cc:664] . unexpected pos 128 vs 22"),
        RuntimeError("PytorchStreamWriter failed writing file data/0: file write failed"),
        safetensors.SafetensorError(
            "Error while serializing: I/O error: No space left on device (os error 28)"
        ),
    ],
)
def test_a_full_disk_is_told_and_loses_nothing(tmp_path: Path, error: Exception):
    def write() -> None:
        with writing_checkpoint(tmp_path, 2) as unfinished:
            (unfinished / "weights").write_bytes(b"12")
            raise error

    with pytest.raises(
        CheckpointError, match=r"disk is full .*checkpoint-2 was not written, there is no earlier"
    ) as e:
        write()
    assert "\n" not in str(e.value)
    checkpoint(tmp_path, 1)
    with pytest.raises(CheckpointError, match=r"the last good one is .*checkpoint-1"):
        write()
    assert names(tmp_path) == ["checkpoint-1"]


def test_the_disk_may_be_full_when_the_list_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    checkpoint(tmp_path, 1)
    monkeypatch.setattr(resume.os, "fsync", full)
    with pytest.raises(CheckpointError, match="disk is full"):
        checkpoint(tmp_path, 2)
    assert names(tmp_path) == ["checkpoint-1"]


def test_other_faults_are_passed_on(tmp_path: Path):
    for error in (KeyboardInterrupt(), RuntimeError("a bug"), PermissionError(errno.EACCES, "no")):
        with pytest.raises(type(error)), writing_checkpoint(tmp_path, 2):
            raise error
    assert names(tmp_path) == []
    assert not is_full_disk(ValueError("a bug"))


def test_other_settings_are_listed(tmp_path: Path):
    before = json.loads(json.dumps(vars(tiny_config(learning_rate_factors=(("a", 2.0),)))))
    (tmp_path / "progress.json").write_text(json.dumps({"config": before, "seconds": 3}))
    same = tiny_config(learning_rate_factors=(("a", 2.0),))
    assert read_progress(tmp_path, config=same)["seconds"] == 3
    with pytest.raises(CheckpointError, match=r"seed 5 -> 6, learning_rate_factors \[\['a', 2.0\]\] -> \[\]"):
        read_progress(tmp_path, config=tiny_config(seed=6))


def test_weights_that_do_not_fit():
    model = nn.ModuleDict({"embedding": nn.Embedding(3, 2), "head": nn.Linear(2, 3)})
    model["head"].weight = model["embedding"].weight
    check_loaded(model, missing=["head.weight"], unexpected=[])
    with pytest.raises(
        CheckpointError, match=r"does not fit ModuleDict: head\.bias is missing, other is unknown; was"
    ):
        check_loaded(model, missing=["head.weight", "head.bias"], unexpected=["other"])
    with pytest.raises(CheckpointError, match=r"embedding\.weight is missing, head\.weight is missing;"):
        check_loaded(model, missing=["embedding.weight", "head.weight"], unexpected=[])


@pytest.mark.slow
def test_on_a_disk_that_is_really_full(tmp_path: Path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(disk)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk is not allowed here: skipped until run by root")
    try:
        checkpoint(disk, 1)
        weights = {"a": torch.zeros(2**20)}
        writers = [
            lambda path: path.write_bytes(bytes(2**21)),
            lambda path: torch.save(weights, path),
            lambda path: safetensors.torch.save_file(weights, path),
        ]
        for write in writers:
            with (
                pytest.raises(CheckpointError, match=r"disk is full .*last good one is .*checkpoint-1"),
                writing_checkpoint(disk, 2) as unfinished,
            ):
                write(unfinished / "weights")
            assert names(disk) == ["checkpoint-1"]
            assert os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize > 2**19  # the partial one is gone
    finally:
        subprocess.run(["umount", str(disk)], check=True)
