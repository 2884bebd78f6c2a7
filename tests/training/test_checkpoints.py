"""Checkpoints are complete or do not exist; older ones outlive whatever happens to a new one."""

from __future__ import annotations

import errno
import hashlib
import json
import multiprocessing
import os
import shutil
import stat
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch
from tagging_runs import tiny_parts
from tiny_run import tiny_config
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.data.files import replaced_file
from cdlm_lab.encoders.encoder import load_language_model
from cdlm_lab.encoders.model_folder import is_model
from cdlm_lab.training import checkpoints
from cdlm_lab.training.checkpoints import CheckpointError, complete_checkpoints, writing_checkpoint


def checkpoint(folder: Path, step: int, *, best: int | None = None) -> Path:
    with writing_checkpoint(folder, step) as unfinished:
        (unfinished / "weights").write_bytes(b"1234")
        (unfinished / "progress.json").write_text(json.dumps({"best_step": best}))
        (unfinished / "deep").mkdir()
        (unfinished / "deep" / "part").write_text("ab")
    return folder / f"checkpoint-{step}"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_checkpoint_appears_when_it_is_finished(tmp_path: Path):
    folder = tmp_path / "run"
    assert not complete_checkpoints(folder)
    with writing_checkpoint(folder, 20) as unfinished:
        (unfinished / "weights").write_bytes(b"1234")
        assert complete_checkpoints(folder) == []
    assert names(folder) == ["checkpoint-20"]
    listed = json.loads((folder / "checkpoint-20" / "complete.json").read_text())
    assert listed == {"weights": {"size": 4, "sha256": hashlib.sha256(b"1234").hexdigest()}}
    checkpoint(folder, 100)
    checkpoint(folder, 3)
    assert complete_checkpoints(folder) == [folder / f"checkpoint-{step}" for step in (3, 20, 100)]


def test_incomplete_ones_are_passed_over_and_replaced(tmp_path: Path):
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
    before = names(tmp_path)
    checkpoint(tmp_path, 2)
    assert names(tmp_path) == before
    assert complete_checkpoints(tmp_path)[-1] == tmp_path / "checkpoint-2"


def flip(path: Path) -> None:
    """One bit in the middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 16
    path.write_bytes(content)


def swap_for_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGE: list[tuple[Callable[[Path], object], str, str]] = [
    (flip, "weights", r"weights is not what was written \(its checksum is another\)"),
    (flip, "progress.json", "progress.json is not what was written"),
    (lambda path: os.truncate(path, 3), "weights", "weights has 3 bytes, not 4"),
    (Path.unlink, "deep/part", "deep/part is missing"),
    (lambda path: shutil.rmtree(path.parent), "deep/part", "deep/part is missing"),
    (swap_for_folder, "weights", "weights has [0-9]+ bytes, not 4"),
    (Path.unlink, "complete.json", "complete.json, the list of its files, is missing or cannot be read"),
    (lambda path: path.write_text('{"weights": [1]}'), "complete.json", "complete.json, the list"),
    (lambda path: path.write_text("[" * 100_000), "complete.json", "complete.json, the list"),
]


@pytest.mark.parametrize(("damage", "name", "shown"), DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_one_is_named_and_passed_over(tmp_path: Path, damage: Callable, name: str, shown: str):
    good, bad = checkpoint(tmp_path, 1), checkpoint(tmp_path, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert checkpoints.last_good_checkpoint(tmp_path) == bad
    damage(bad / name)
    with pytest.warns(UserWarning, match=rf"damaged: {bad}: {shown}.*\. The run goes on from {good}") as seen:
        assert checkpoints.last_good_checkpoint(tmp_path) == good
    assert "\n" not in str(seen[0].message)
    damage(good / name)
    message = rf"gone on from: {bad}: {shown}.*; {good}: {shown}.*delete"
    with pytest.raises(CheckpointError, match=message) as raised:
        checkpoints.last_good_checkpoint(tmp_path)
    assert "\n" not in str(raised.value)


def test_one_is_good_if_the_best_before_it_is_there_as_well(tmp_path: Path):
    for step, best in ((1, 1), (2, 2), (3, 2)):
        checkpoint(tmp_path, step, best=best)
    flip(tmp_path / "checkpoint-2" / "weights")
    message = r"damaged: [^;]*checkpoint-2: weights is not .*from .*checkpoint-1$"
    with pytest.warns(UserWarning, match=message):
        assert checkpoints.last_good_checkpoint(tmp_path) == tmp_path / "checkpoint-1"


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ([(3, None)], {3}),
        ([(3, None), (6, None)], {3, 6}),  # nothing was evaluated yet
        ([(3, None), (6, 6)], {3, 6}),
        ([(3, 3), (6, 3)], {3, 6}),
        ([(3, 3), (6, 3), (9, 3)], {3, 9}),
        ([(3, 3), (6, 3), (9, 9)], {3, 9}),  # 6 would need 3 as well
        ([(3, 3), (6, 6), (9, 9)], {6, 9}),
    ],
)
def test_two_are_kept_and_a_run_may_go_on_from_each(tmp_path: Path, written: list, kept: set[int]):
    for step, best in written:
        checkpoint(tmp_path, step, best=best)
        checkpoints.keep_only(tmp_path, checkpoints.steps_to_keep(tmp_path, step))
    assert names(tmp_path) == sorted(f"checkpoint-{step}" for step in kept)
    shutil.rmtree(tmp_path / f"checkpoint-{max(kept)}")
    assert checkpoints.last_good_checkpoint(tmp_path) == (
        tmp_path / f"checkpoint-{min(kept)}" if len(kept) > 1 else None
    )


def test_what_killed_processes_left_and_other_steps_are_removed(tmp_path: Path):
    for step in (1, 2, 3):
        checkpoint(tmp_path, step)
    for name in (".checkpoint-2.unfinished", ".checkpoint-0.removed", ".checkpoints", "figures"):
        (tmp_path / name).mkdir()
    checkpoints.remove_unfinished(tmp_path)
    checkpoints.keep_only(tmp_path, {2, 9})
    assert names(tmp_path) == [".checkpoints", "checkpoint-2", "figures"]


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        RuntimeError("[enforce fail at inline_container.cc:664] . unexpected pos 128 vs 22"),
        RuntimeError("PytorchStreamWriter failed writing file data/0: file write failed"),
        safetensors.SafetensorError("Error: I/O error: No space left on device (os error 28)"),
    ],
)
def test_a_full_disk_is_reported_and_loses_nothing(tmp_path: Path, error: Exception):
    def write() -> None:
        with writing_checkpoint(tmp_path, 2) as unfinished:
            (unfinished / "weights").write_bytes(b"12")
            raise error

    message = r"disk is full: .*checkpoint-2 was not written, there is no earlier"
    with pytest.raises(CheckpointError, match=message) as raised:
        write()
    assert "\n" not in str(raised.value)
    checkpoint(tmp_path, 1)
    with pytest.raises(CheckpointError, match=r"the last good one is .*checkpoint-1"):
        write()
    assert names(tmp_path) == ["checkpoint-1"]


def test_other_faults_are_passed_on(tmp_path: Path):
    for error in (KeyboardInterrupt(), RuntimeError("a bug"), PermissionError(errno.EACCES, "no")):
        with pytest.raises(type(error)), writing_checkpoint(tmp_path, 2):
            raise error
    assert names(tmp_path) == []
    assert not checkpoints.is_full_disk(ValueError("a bug"))


def test_other_settings_are_listed(tmp_path: Path):
    before = json.loads(json.dumps(vars(tiny_config(learning_rate_factors=(("a", 2.0),)))))
    (tmp_path / "progress.json").write_text(json.dumps({"config": before, "step": 4, "updates": 4}))
    same = tiny_config(learning_rate_factors=(("a", 2.0),))
    assert checkpoints.read_progress(tmp_path, config=same).step == 4
    with pytest.raises(CheckpointError, match=r"seed 5 -> 6, learning_rate_factors \[\['a', 2.0\]\] -> \[\]"):
        checkpoints.read_progress(tmp_path, config=tiny_config(seed=6))


def test_weights_that_do_not_fit():
    model = nn.ModuleDict({"embedding": nn.Embedding(3, 2), "head": nn.Linear(2, 3)})
    model["head"].weight = model["embedding"].weight
    checkpoints.check_loaded(model, missing=["head.weight"], unexpected=[])
    message = r"does not fit ModuleDict: head\.bias is missing, other is unknown; was"
    with pytest.raises(CheckpointError, match=message):
        checkpoints.check_loaded(model, missing=["head.weight", "head.bias"], unexpected=["other"])
    with pytest.raises(CheckpointError, match=r"embedding\.weight is missing, head\.weight is missing;"):
        checkpoints.check_loaded(model, missing=["embedding.weight", "head.weight"], unexpected=[])


@pytest.mark.parametrize(("rank", "writes"), [(None, True), ("0", True), ("1", False)])
def test_the_first_process_writes_what_can_be_loaded(tmp_path: Path, monkeypatch, rank, writes: bool):
    monkeypatch.delenv("RANK", raising=False)
    if rank is not None:
        monkeypatch.setenv("RANK", rank)
    model, tokenizer = tiny_parts()
    checkpoints.save_model(model, tokenizer, tmp_path / "model")
    assert (tmp_path / "model").exists() == writes
    if writes:
        assert not list((tmp_path / "model").glob("*.bin"))
        again, words = load_language_model(str(tmp_path / "model"), max_length=32, window=8)
        assert words.get_vocab() == tokenizer.get_vocab()
        for weight, other in zip(again.parameters(), model.parameters(), strict=True):
            torch.testing.assert_close(weight, other, rtol=0, atol=0)


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("after", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_model_is_whole_or_not_there_when_its_process_is_killed(tmp_path: Path, after: str, there: bool):
    model, tokenizer = tiny_parts()
    folder = tmp_path / "model"
    if there:
        checkpoints.save_model(model, tokenizer, folder)
        before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def write(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, new: Path) -> None:
        checkpoints.write_model(model, tokenizer, new)
        every = ("config.json", "model.safetensors", "tokenizer.json")
        for later in every[every.index(after) + 1 :]:
            (new / later).unlink()
        (new / after).write_bytes((new / after).read_bytes()[:100])
        os._exit(9)

    child = multiprocessing.get_context("fork").Process(
        target=checkpoints.save_model, args=(model, tokenizer, folder), kwargs={"write": write}
    )
    child.start()
    child.join(60)
    assert child.exitcode == 9
    assert is_model(folder) == there
    assert names(tmp_path) == [".model.unfinished", *(["model"] if there else [])]
    if there:
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    checkpoints.save_model(model, tokenizer, folder)
    assert names(tmp_path) == ["model"]
    assert is_model(folder)


@pytest.mark.parametrize("umask", [0o002, 0o022, 0o027, 0o077])
def test_what_is_written_follows_the_umask(tmp_path: Path, umask: int):
    before = os.umask(umask)
    try:
        checkpoints.save_model(*tiny_parts(), tmp_path / "model")
        checkpoint(tmp_path / "training", 3)
        with replaced_file(tmp_path / "report.json") as file:
            file.write("{}")
    finally:
        os.umask(before)
    for path in tmp_path.rglob("*"):
        allowed = 0o777 if path.is_dir() else 0o666
        assert stat.S_IMODE(path.stat().st_mode) == allowed & ~umask, path
