"""Runs whose trained models are opened by name: those at hand and those that come with the project."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from ship import ship_run

from cdlm_lab.encoders import model_folder
from cdlm_lab.encoders.checkpoint import CheckpointError, shipped_folder, shipped_names
from cdlm_lab.parameters import ParameterError
from cdlm_lab.training import trained
from cdlm_lab.training.trained import (
    check_as_trained,
    shipped_runs,
    trained_model,
    trained_run,
)

PARAMETERS = '{"run_folder": "runs/x", "corpus": "storyworld", "window": 8, "epochs": 3}'


@dataclass(frozen=True)
class Settings:
    trained: str = ""
    corpus: str = "storyworld"
    window: int = 4
    epochs: int = 1


def a_model(folder: Path, seed: int = 0) -> None:
    folder.mkdir(parents=True)
    torch.manual_seed(seed)
    weights = {"weight": torch.randn(3, 2), "places": torch.arange(3)}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt", "head": "its form"})
    (folder / "config.json").write_text('{"dtype": "float32"}')


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of two systems."""
    folder = tmp_path / "run"
    for name in ("gru-0", "cdlm-0"):
        a_model(folder / "systems" / name / "model")
        (folder / "systems" / name / "test.npz").write_bytes(b"predictions")
    checkpoint = folder / "systems" / "cdlm-0" / "training" / "checkpoint-1" / "model"
    a_model(checkpoint)
    (checkpoint.parents[1] / "history.jsonl").write_text('{"step": 1, "seconds": 3600.0}\n')
    (folder / "run.json").write_text(f'{{"name": "matching", "parameters": {PARAMETERS}, "sessions": []}}')
    return folder


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What comes with the project is here."""
    monkeypatch.setattr(model_folder, "FOLDER", tmp_path / "shipped")
    monkeypatch.setattr(model_folder, "ENGLISH", tmp_path / "english")
    return tmp_path / "shipped"


def test_a_shipped_run_has_models_in_half_precision_their_histories_and_nothing_else(
    run: Path, project: Path
):
    assert ship_run(run, "storyworld/matching") == project / "matching"
    assert shipped_runs() == ["storyworld/matching"]
    assert [path.name for path in project.iterdir()] == ["matching"]
    files = {str(path.relative_to(project / "matching")) for path in project.rglob("*") if path.is_file()}
    models = [
        f"systems/{name}/model/{file}"
        for name in ("gru-0", "cdlm-0")
        for file in ("config.json", "model.safetensors")
    ]
    assert files == {"run.json", "LICENSE", "README.md", *models, "systems/cdlm-0/training/history.jsonl"}
    before = load_file(trained_model(str(run), "gru-0") / "model.safetensors")
    after = load_file(trained_model("storyworld/matching", "gru-0") / "model.safetensors")
    assert after["weight"].dtype == torch.float16
    torch.testing.assert_close(after["weight"].float(), before["weight"], rtol=1e-3, atol=1e-3)
    assert after["places"].equal(before["places"])
    with safe_open(trained_model("storyworld/matching", "gru-0") / "model.safetensors", "pt") as file:
        assert file.metadata() == {"format": "pt", "head": "its form"}
    assert "run_folder" not in trained.trained_parameters("storyworld/matching")


def test_a_language_model_is_shipped_as_a_folder_that_encoders_are_opened_from(tmp_path: Path, project: Path):
    a_model(tmp_path / "run" / "model")
    (tmp_path / "run" / "run.json").write_text('{"name": "pretraining", "parameters": {}, "sessions": []}')
    assert ship_run(tmp_path / "run", "storyworld/cdlm") == project / "cdlm"
    files = ["LICENSE", "README.md", "config.json", "model.safetensors"]
    assert sorted(path.name for path in (project / "cdlm").iterdir()) == files
    assert shipped_names() == ["storyworld/cdlm"]
    assert shipped_folder("storyworld/cdlm") == project / "cdlm"
    assert shipped_runs() == []


def test_a_shipped_run_has_the_shipped_name_of_its_encoder(run: Path, project: Path, tmp_path: Path):
    for seed, name in enumerate(("longformer", "cdlm")):
        a_model(tmp_path / name / "model", seed)
        (tmp_path / name / "run.json").write_text('{"name": "pretraining", "parameters": {}}')
    given = {"model": str(tmp_path / "cdlm" / "model"), "title": "a b " * 999}
    (run / "run.json").write_text(json.dumps({"name": "tagging", "parameters": given}))
    for name, encoder in (("longformer", "cdlm/model"), ("cdlm", "storyworld/cdlm")):
        ship_run(tmp_path / name, f"storyworld/{name}")
        ship_run(run, "storyworld/tagging")
        assert trained.trained_parameters("storyworld/tagging") == given | {"model": encoder}


def test_shipping_again_replaces_and_a_failure_leaves_what_was_there(
    run: Path, project: Path, tmp_path: Path
):
    for name in ("matching", "storyworld/a/b", "mine/matching"):
        with pytest.raises(CheckpointError, match=r"must be <group>/<task>"):
            ship_run(run, name)
    ship_run(run, "storyworld/matching")
    (run / "systems" / "cdlm-0").rename(tmp_path / "aside")
    ship_run(run, "storyworld/matching")
    assert not (project / "matching" / "systems" / "cdlm-0").exists()
    (run / "systems" / "gru-0" / "model" / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(CheckpointError, match=r"gru-0/model: no whole model; run the notebook of .* again"):
        ship_run(run, "storyworld/matching")
    assert [path.name for path in project.iterdir()] == ["matching"]
    assert load_file(trained_model("storyworld/matching", "gru-0") / "model.safetensors")


def test_the_settings_that_shape_a_model_must_be_those_it_was_trained_with(run: Path):
    check_as_trained(Settings(), ["window"])
    check_as_trained(Settings(trained=str(run), window=8, epochs=2), ["window"])
    with pytest.raises(
        ParameterError,
        match=r"^window is 4, but .*run was trained with window = 8; write that, or trained = \"\" to train",
    ):
        check_as_trained(Settings(trained=str(run)), ["window"])  # 4 is the default, which is no exception
    with pytest.raises(ParameterError, match=r"^window is 4, epochs is 1, but .* window = 8, epochs = 3;"):
        check_as_trained(Settings(trained=str(run)), ["window", "epochs", "unknown in older runs"])


def test_a_shipped_model_is_for_storyworld_and_one_of_yours_for_any_corpus(run: Path, project: Path):
    ship_run(run, "storyworld/matching")
    check_as_trained(Settings(trained=str(run), corpus="ecb"), [])
    with pytest.raises(
        ParameterError, match=r"corpus is 'ecb', but storyworld/matching was trained on storyworld"
    ):
        check_as_trained(Settings(trained="storyworld/matching", corpus="ecb"), [])


def test_what_is_not_there_is_named_with_what_is(run: Path, project: Path, tmp_path: Path):
    with pytest.raises(
        ParameterError, match=r"'storyworld/x', where no trained run is; .*\(none; install cdlm_lab again"
    ):
        trained_run("storyworld/x")
    ship_run(run, "storyworld/matching")
    with pytest.raises(ParameterError, match=r"one that comes with the project \(storyworld/matching\)"):
        trained_run(str(tmp_path / "nothing"))
    with pytest.raises(ParameterError, match=r"which has no trained bert-0: its trainings are cdlm-0, gru-0"):
        trained_model("storyworld/matching", "bert-0")
    with pytest.raises(ParameterError, match=r"which has no trained model: its trainings are"):
        trained_model(str(run))
    (run / "run.json").write_text("{")
    with pytest.raises(ParameterError, match=r"run.json cannot be read .*; name another run"):
        check_as_trained(Settings(trained=str(run)), [])
