"""What a run needs on the machine."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from cdlm_lab.batch.plan import Checksums, local_gpus, missing_need


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert missing_need("x") == "there is no x"
    Path("x").mkdir()
    assert missing_need("x") == "x is empty"
    Path("x/a").touch()
    assert missing_need("x") is None
    assert missing_need("x/a") is None


def test_checkpoints_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    need = "hub:org/model"
    assert missing_need(need) == f"org/model is not among the models in {tmp_path}: hf download org/model"
    folder = tmp_path / "models--org--model"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("abc")
    assert missing_need(need) is not None, "known by name only"
    snapshot = folder / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    (snapshot / "pytorch_model.bin").touch()
    told = missing_need(need)
    assert told is not None
    assert "its weights are a pickle" in told
    assert told.endswith(f"python -m cdlm_lab.models.to_safetensors {snapshot} NEW_FOLDER")
    save_file({"a": np.ones(2)}, snapshot / "model.safetensors")
    assert missing_need(need) is not None, "no tokenizer"
    (snapshot / "vocab.txt").touch()
    assert missing_need(need) is None
    assert Checksums(tmp_path / "none").of(need) == "revision abc"


def test_checksums_see_content_and_names_not_times(tmp_path: Path):
    folder = tmp_path / "corpus"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "a").write_text("one")
    memory = tmp_path / "memory.json"

    def now() -> str:
        return Checksums(memory).of(str(folder))

    first = now()
    os.utime(folder / "inner" / "a", (1, 1))
    assert now() == first
    (folder / "inner" / "a").write_text("two")
    second = now()
    assert second != first
    (folder / "inner" / "a").rename(folder / "inner" / "b")
    assert now() not in (first, second)


def test_the_checksum_of_a_model_sees_its_weights_and_its_tokenizer(tmp_path: Path):
    folder = tmp_path / "model"
    folder.mkdir()
    names = ("config.json", "model.safetensors", "tokenizer.json")
    for name in names:
        (folder / name).write_text("one")

    def now() -> str:
        return Checksums(tmp_path / "memory.json").of(str(folder / "config.json"))

    seen = {now()}
    for name in names:
        (folder / name).write_text("another")
        seen.add(now())
    assert len(seen) == 4
    (folder / "checkpoint-1").mkdir()
    (folder / "checkpoint-1" / "model.safetensors").touch()
    assert now() in seen, "folders in it are not read with it"


def test_what_is_remembered_is_not_read_again(tmp_path: Path):
    file, memory = tmp_path / "a", tmp_path / "memory.json"
    file.write_text("one")
    checksums = Checksums(memory)
    real = checksums.of(str(file))
    checksums.save()
    known = json.loads(memory.read_text())
    (entry,) = known.values()
    assert entry[2] == real
    entry[2] = "remembered"
    memory.write_text(json.dumps(known))
    assert Checksums(memory).of(str(file)) == "remembered"
    file.write_text("other")
    assert Checksums(memory).of(str(file)) not in ("remembered", real)


@pytest.mark.parametrize("text", ["{", "[]", "3"])
def test_a_memory_that_cannot_be_read_is_none(text: str, tmp_path: Path):
    (tmp_path / "memory.json").write_text(text)
    (tmp_path / "a").write_text("one")
    assert len(Checksums(tmp_path / "memory.json").of(str(tmp_path / "a"))) == 64


def test_gpus_that_are_left_visible():
    assert local_gpus({"CUDA_VISIBLE_DEVICES": ""}) == []
    assert local_gpus({"CUDA_VISIBLE_DEVICES": "0,3"}) == ["0", "3"]
