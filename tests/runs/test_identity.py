"""Fingerprints are of bytes and relative names alone; identities say in words what differs."""

import os
import shutil
from pathlib import Path

import pytest

from cdlm_lab.data.files import DataError
from cdlm_lab.encoders.model_folder import FOLDER
from cdlm_lab.runs import identity
from cdlm_lab.runs.identity import Identity, Inputs, changed_inputs, fingerprint, fingerprint_of_model


def corpus(folder: Path) -> Path:
    for name in ("train.txt", "texts/a.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"This is {name}.")
    return folder


def test_a_folder_of_data_is_its_visible_files_wherever_it_lies(tmp_path: Path):
    first, second = corpus(tmp_path / "a"), corpus(tmp_path / "b" / "c")
    before = fingerprint(first)
    assert fingerprint(second) == before
    for name in (".DS_Store", ".ipynb_checkpoints/train-checkpoint.txt", "texts/._a.txt", "run/x.txt"):
        (second / name).parent.mkdir(exist_ok=True)
        (second / name).write_text("not read")
    (second / "run/run.json").write_text("{}")  # a run that was put into the folder of the corpus
    assert fingerprint(second) == before
    os.utime(second / "train.txt", (1, 1))
    assert fingerprint(second) == before


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "train.txt").write_text("That is train.txt."),  # of the same length
        lambda folder: (folder / "texts/a.txt").rename(folder / "texts/b.txt"),
        lambda folder: (folder / "texts/a.txt").unlink(),
        lambda folder: (folder / "dev.txt").touch(),
    ],
)
def test_any_change_of_a_folder_of_data_shows(change, tmp_path: Path):
    before = fingerprint(corpus(tmp_path))
    status = (tmp_path / "train.txt").stat()
    change(tmp_path)
    os.utime(tmp_path / "train.txt", ns=(status.st_atime_ns, status.st_mtime_ns))  # as rsync and tar leave it
    assert fingerprint(tmp_path) != before


def test_links_are_followed_and_may_lead_back(tmp_path: Path):
    before = fingerprint(corpus(tmp_path / "a"))
    linked = corpus(tmp_path / "b")
    shutil.rmtree(linked / "texts")
    (linked / "texts").symlink_to(tmp_path / "a" / "texts")
    assert fingerprint(linked) == before
    (linked / "itself").symlink_to(linked)
    assert fingerprint(linked) == before
    (tmp_path / "a" / "texts" / "a.txt").write_text("Another text.")
    assert fingerprint(linked) != before


def test_a_file_storyworld_and_what_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from cdlm_lab.data.storyworld import stories

    (tmp_path / "a").write_bytes(b"abc")
    assert fingerprint(tmp_path / "a") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    before = fingerprint("storyworld")
    monkeypatch.setattr(stories, "GENERATOR_VERSION", "2")
    assert before != fingerprint("storyworld") == "generator 2"
    with pytest.raises(DataError, match="no such file or folder; check the spelling"):
        fingerprint(tmp_path / "nowhere")


def test_a_model_is_its_config_tokenizer_and_weights(tmp_path: Path):
    shipped = fingerprint_of_model("storyworld/cdlm")
    copied = Path(shutil.copytree(FOLDER / "cdlm", tmp_path / "cdlm"))
    for name in ("made.json", "README.md", ".lock"):
        (copied / name).write_text("{}")
    assert fingerprint_of_model(copied) == shipped != fingerprint_of_model("storyworld/longformer")
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        kept = (copied / name).read_bytes()
        (copied / name).write_bytes(kept + b" ")
        assert fingerprint_of_model(copied) != shipped
        (copied / name).write_bytes(kept)
    assert fingerprint_of_model(copied) == shipped


def test_a_model_of_the_hub_is_its_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def cached(revision: str) -> None:
        config = tmp_path / "models--a--b" / "snapshots" / revision / "config.json"
        config.parent.mkdir(parents=True)
        config.touch()
        monkeypatch.setattr(identity, "try_to_load_from_cache", lambda name, file: str(config))

    for revision in ("1f2e", "3d4c"):
        cached(revision)
        assert fingerprint_of_model("a/b") == fingerprint_of_model("hub:a/b") == f"revision {revision}"
    monkeypatch.setattr(identity, "try_to_load_from_cache", lambda name, file: None)
    with pytest.raises(DataError, match="neither a folder with a model nor a hub model that this machine"):
        fingerprint_of_model("a/b")


def test_what_differs_between_two_identities_is_said_in_words(tmp_path: Path, monkeypatch):
    data, model = corpus(tmp_path / "a"), tmp_path / "m"
    shutil.copytree(FOLDER / "cdlm", model)
    given = Inputs(data=[str(data)], models=[str(model), "storyworld/cdlm"])
    before = Identity.of("coreference", {"steps": 3, "workers": 2}, given)
    assert changed_inputs(before.as_json, before.now().as_json) == []
    assert before.digest == before.now().digest
    (data / "train.txt").write_text("Another text.")
    (model / "model.safetensors").write_bytes(b"other weights")
    monkeypatch.setitem(identity.VERSIONS, "training", identity.VERSIONS["training"] + 1)
    now = before.now()
    assert changed_inputs(before.as_json, now.as_json) == [
        f"{data} has changed",
        f"the model {model} has changed",
        "version 3 of training, in the run 2",
    ]
    assert before.digest != now.digest
    others = Identity.of("coreference", {"steps": 3}, Inputs(data=["storyworld"])).as_json
    assert changed_inputs(before.as_json, others, ("data",)) == [
        f"{data} is not read any more",
        "storyworld is read now",
    ]


def test_the_digest_is_of_what_decides_the_numbers():
    def digest(**parameters: object) -> str:
        return Identity.of("coreference", {"steps": 3, **parameters}, Inputs(data=["storyworld"])).digest

    shown = {"workers": 4, "parallel": "ddp 2", "run_folder": "b", "compare_with": "c"}
    assert digest(**shown) == digest() != digest(steps=4)
