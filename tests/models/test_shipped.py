"""Checkpoints that come with the project are named like models and load like any folder."""

from pathlib import Path

import pytest
import torch

from cdlm_lab.models import checkpoint as shipped
from cdlm_lab.models.checkpoint import CheckpointError, ship, shipped_folder, shipped_names
from cdlm_lab.models.encoder import TinySizes, load_language_model
from cdlm_lab.models.joint import JointHead, load_paragraph_model, paragraph_head, save_paragraph_model

SIZES = TinySizes(hidden_size=16, layers=1, heads=2, intermediate_size=16, vocabulary=300)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "model"
    model, tokenizer = load_language_model("tiny", max_length=32, window=8, sizes=SIZES)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_a_shipped_model_is_the_trained_one_in_half_precision(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    target = ship(trained, "storyworld/cdlm", tmp_path)
    assert target == shipped_folder("storyworld/cdlm", tmp_path)
    assert shipped_names(tmp_path) == ["storyworld/cdlm"]
    half = (target / "model.safetensors").stat().st_size
    assert half < 0.6 * (trained / "model.safetensors").stat().st_size

    monkeypatch.setattr(shipped_folder, "__defaults__", (tmp_path,))
    model, tokenizer = load_language_model("storyworld/cdlm", max_length=32, window=8)
    source, source_tokenizer = load_language_model(trained, max_length=32, window=8)
    assert tokenizer.get_vocab() == source_tokenizer.get_vocab()
    for name, weights in source.state_dict().items():
        shipped_weights = model.state_dict()[name]
        assert shipped_weights.dtype == torch.float32
        torch.testing.assert_close(shipped_weights, weights, rtol=2**-11, atol=1e-7)


def test_the_head_of_paragraph_pretraining_is_shipped_too(trained: Path, tmp_path: Path):
    head = JointHead(kind="ie_k", sentences=3, length=8)
    model, tokenizer = load_paragraph_model(trained, head=head, seed=3)
    save_paragraph_model(model, tokenizer, tmp_path / "left")
    target = ship(tmp_path / "left", "storyworld/mspp-ie", tmp_path / "shipped")
    form, weights = paragraph_head(str(target))
    assert form == head
    assert all(torch.equal(weights[name], value) for name, value in model.head.state_dict().items())
    assert paragraph_head(str(ship(trained, "storyworld/mspp-ie", tmp_path / "shipped"))) is None


def test_shipping_again_replaces_and_leaves_nothing_behind(trained: Path, tmp_path: Path):
    ship(trained, "storyworld/cdlm", tmp_path)
    (tmp_path / "cdlm" / "old").write_text("of an older one")
    ship(trained, "storyworld/cdlm", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["cdlm"]
    assert not (tmp_path / "cdlm" / "old").exists()


def test_a_failed_shipment_keeps_what_was_there(trained: Path, tmp_path: Path):
    ship(trained, "storyworld/cdlm", tmp_path)
    with pytest.raises(OSError):
        ship(tmp_path / "nothing", "storyworld/cdlm", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["cdlm"]
    assert (tmp_path / "cdlm" / "model.safetensors").exists()


@pytest.mark.parametrize("name", ["cdlm", "storyworld/a/b"])
def test_a_name_that_is_none(trained: Path, tmp_path: Path, name: str):
    with pytest.raises(ValueError, match="must be storyworld/<variant>"):
        ship(trained, name, tmp_path)


def test_other_names_and_folders_at_hand_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert shipped_folder("allenai/longformer-base-4096", tmp_path) is None
    assert shipped_folder("tiny", tmp_path) is None
    monkeypatch.chdir(tmp_path)
    Path("storyworld/mine").mkdir(parents=True)
    assert shipped_folder("storyworld/mine", tmp_path) is None


def test_what_does_not_come_with_the_project_is_named(tmp_path: Path, trained: Path):
    with pytest.raises(CheckpointError, match="there are: none"):
        shipped_folder("storyworld/cdlm", tmp_path)
    ship(trained, "storyworld/rand-cdlm", tmp_path)
    with pytest.raises(CheckpointError, match=r"there are: storyworld/rand-cdlm\)"):
        shipped_folder("storyworld/cdlm", tmp_path)


def test_the_projects_own_checkpoints_load_and_have_a_card():
    names = shipped_names()
    assert names == sorted(
        f"storyworld/{variant}"
        for variant in ("longformer", "local-cdlm", "rand-cdlm", "prefix-cdlm", "cdlm")
    )
    assert (shipped.FOLDER / "README.md").exists()
    for name in names:
        model, _ = load_language_model(name, max_length=512, window=32)
        assert all(weights.isfinite().all() for weights in model.parameters())
    assert sum(file.stat().st_size for file in shipped.FOLDER.rglob("*")) <= 20e6
