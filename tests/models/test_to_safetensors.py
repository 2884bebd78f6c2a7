"""Folders with a pickle of weights become folders with safetensors, whole and checked, or nothing is left."""

from __future__ import annotations

import math
import os
import shutil
import stat
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM

from cdlm_lab.batch.plan import missing_need
from cdlm_lab.models import to_safetensors
from cdlm_lab.models.checkpoint import CheckpointError
from cdlm_lab.models.encoder import load_language_model
from cdlm_lab.models.model_folder import fault_of_folder
from cdlm_lab.models.to_safetensors import convert, main


@pytest.fixture
def pickled(roberta: Path, tmp_path: Path) -> Path:
    """As old models of the hub are: a pickle with a buffer, in which tied weights share their memory."""
    folder = Path(shutil.copytree(roberta, tmp_path / "pickled"))
    weights = dict(AutoModelForMaskedLM.from_pretrained(roberta).state_dict())
    assert weights["lm_head.decoder.weight"].data_ptr() == weights[WORDS].data_ptr(), "tied"
    torch.save(weights | {"roberta.embeddings.position_ids": torch.arange(26)[None]}, folder / PICKLE)
    (folder / "model.safetensors").unlink()
    return folder


WORDS, PICKLE = "roberta.embeddings.word_embeddings.weight", "pytorch_model.bin"


def spoil(folder: Path, **changes: torch.Tensor | None) -> None:
    """Other weights in the pickle; None takes one out."""
    weights = torch.load(folder / PICKLE, weights_only=True) | changes
    torch.save({name: weight for name, weight in weights.items() if weight is not None}, folder / PICKLE)


def test_the_command_in_the_message(pickled: Path, roberta: Path, tmp_path: Path, capsys):
    with pytest.raises(CheckpointError, match="pickle") as refused:
        load_language_model(pickled, max_length=32, window=8)
    command = str(refused.value).partition("python -m cdlm_lab.models.to_safetensors ")[2].split()
    assert command == [str(pickled), "NEW_FOLDER"]
    new = tmp_path / "models" / "new"
    assert main([command[0], str(new)]) == 0
    assert capsys.readouterr().out.startswith(f"{new}: ")
    assert fault_of_folder(new) is None
    before, tokenizer_before = load_language_model(roberta, max_length=32, window=8)
    after, tokenizer = load_language_model(new, max_length=32, window=8)
    for name, weight in before.state_dict().items():
        assert torch.equal(after.state_dict()[name], weight), name
    assert tokenizer.get_vocab() == tokenizer_before.get_vocab()
    assert sorted(os.listdir(tmp_path / "models")) == ["new"], "nothing unfinished is left"
    assert stat.S_IMODE((new / "model.safetensors").stat().st_mode) == 0o644


def test_every_weight_is_kept_by_its_name(pickled: Path, tmp_path: Path):
    kept = torch.load(pickled / PICKLE, weights_only=True)
    assert convert(pickled, tmp_path / "new") == len(kept)
    found = load_file(tmp_path / "new" / "model.safetensors")
    assert found.keys() == kept.keys()
    assert all(
        torch.equal(found[name], weight) and found[name].dtype == weight.dtype
        for name, weight in kept.items()
    )


def test_a_pickle_in_parts_and_a_folder_that_needs_nothing(pickled: Path, roberta: Path, tmp_path: Path):
    weights = torch.load(pickled / PICKLE, weights_only=True)
    names = sorted(weights)
    for number, part in enumerate((names[::2], names[1::2]), start=1):
        torch.save(
            {name: weights[name] for name in part}, pickled / f"pytorch_model-0000{number}-of-00002.bin"
        )
    (pickled / PICKLE).unlink()
    assert convert(pickled, tmp_path / "new") == len(names)
    convert(roberta, tmp_path / "copy")
    assert (tmp_path / "copy" / "config.json").read_bytes() == (roberta / "config.json").read_bytes()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({WORDS: torch.full((55, 32), math.nan)}, rf"weights that are not finite: {WORDS}"),
        ({WORDS: torch.zeros(55, 31)}, rf"weights of another shape than the config says: {WORDS}"),
        (
            {"roberta.embeddings.LayerNorm.weight": None},
            r"weights missing: roberta\.embeddings\.LayerNorm\.weight",
        ),
        ({"roberta.other": torch.zeros(2)}, r"weights unexpected: roberta\.other"),
    ],
)
def test_weights_that_would_not_load(pickled: Path, tmp_path: Path, change, complaint: str):
    spoil(pickled, **change)
    with pytest.raises(CheckpointError, match=f"^{pickled}: {complaint}"):
        convert(pickled, tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["pickled"], "nothing is left"


class Opened:
    """What runs code when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("opened",)


def test_a_pickle_that_runs_code_is_not_opened(pickled: Path, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    torch.save({"x": Opened()}, pickled / PICKLE)
    assert main([str(pickled), "new"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"{pickled}: {PICKLE} cannot be used (")
    assert said.count("\n") == 1
    assert not Path("opened").exists()


@pytest.mark.parametrize("content", [b"", b"<html>", b"version https://git-lfs.github.com/spec/v1\n"])
def test_a_file_that_is_no_pickle(pickled: Path, tmp_path: Path, content: bytes):
    (pickled / PICKLE).write_bytes(content)
    with pytest.raises(CheckpointError, match=f"^{pickled}: {PICKLE} cannot be used \\("):
        convert(pickled, tmp_path / "new")


def test_what_is_not_there(pickled: Path, tmp_path: Path):
    new = tmp_path / "new"
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match=r"neither model\.safetensors nor pytorch"):
        convert(tmp_path / "empty", new)
    with pytest.raises(CheckpointError, match="is there already"):
        convert(pickled, tmp_path / "empty")
    (pickled / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match=f"^{pickled}: no tokenizer.json"):
        convert(pickled, new)
    (pickled / "config.json").unlink()
    with pytest.raises(CheckpointError, match=f"^{pickled}: no config.json"):
        convert(pickled, new)


def test_a_disk_that_does_not_keep_what_is_written(pickled: Path, tmp_path: Path, monkeypatch):
    real = to_safetensors.save_file

    def save(weights, file, metadata):
        real({name: weight + 1 for name, weight in weights.items()}, file, metadata)

    monkeypatch.setattr(to_safetensors, "save_file", save)
    with pytest.raises(CheckpointError, match="reads back as something else"):
        convert(pickled, tmp_path / "new")


def test_a_dry_run_sees_what_would_not_load(pickled: Path, roberta: Path, tmp_path: Path):
    need = str(pickled / "config.json")
    assert f"python -m cdlm_lab.models.to_safetensors {pickled} NEW_FOLDER" in str(missing_need(need))
    assert missing_need(str(roberta / "config.json")) is None
    folder = Path(shutil.copytree(roberta, tmp_path / "other"))
    need = str(folder / "config.json")
    (folder / "tokenizer.json").rename(folder / "kept")
    assert str(missing_need(need)).startswith(f"{folder}: no tokenizer.json; ")
    (folder / "kept").rename(folder / "tokenizer.json")
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:-1])
    assert str(missing_need(need)).startswith(f"{folder}: its safetensors cannot be read (")
    (folder / "model.safetensors").unlink()
    assert str(missing_need(need)).startswith(f"{folder}: no model.safetensors; ")
    (folder / "config.json").write_text("[]")
    assert str(missing_need(need)).startswith(f"{folder}: config.json is no JSON object; ")
    (folder / "config.json").unlink()
    assert missing_need(need) == f"there is no {need}"
