"""Models of real English by name: in a clone and installed, complete and adapters, with cards, and pushed."""

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import yaml
from huggingface_hub import HfApi
from safetensors.torch import load_file
from ship import cards, ship_run

import cdlm_lab
from cdlm_lab.apply import hub
from cdlm_lab.apply.loading import load
from cdlm_lab.encoders import model_folder
from cdlm_lab.encoders.adapter import attach, name_of_base
from cdlm_lab.encoders.checkpoint import CheckpointError, shipped_names
from cdlm_lab.encoders.encoder import load_language_model
from cdlm_lab.runs.report import open_run
from cdlm_lab.runs.scores import Score
from cdlm_lab.tasks.coreference import experiment
from cdlm_lab.tasks.coreference.model import load_pair_scorer
from cdlm_lab.training.checkpoints import write_model
from cdlm_lab.training.trained import shipped_runs

ROOT = Path(__file__).resolve().parents[2]
FORM = {"max_length": 64, "window": 32}
TEXTS = {"a": "The <m>fire</m> burnt all night.", "b": "A <m>blaze</m> was put out at noon."}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of notebook 01, and one of 03 that trained an adapter on its model; no training."""
    folder = tmp_path_factory.mktemp("runs")
    model, tokenizer = load_language_model("storyworld/cdlm", **FORM)
    write_model(model, tokenizer, folder / "cdlm" / "model")
    kept = {"name": "pretraining", "parameters": {"variant": "cdlm"}, "sessions": []}
    (folder / "cdlm" / "run.json").write_text(json.dumps(kept))
    scorer, tokenizer = load_pair_scorer(folder / "cdlm" / "model", **FORM)
    attach(scorer, tokenizer, "lora", seed=0)
    for weight in (one for one in scorer.parameters() if one.requires_grad):
        torch.nn.init.normal_(weight, std=0.1)
    run = open_run(
        folder / "events",
        name="coreference",
        parameters={
            "corpus": str(folder / "ECB+"),
            "model": str(folder / "cdlm" / "model"),
            "adapter": "lora",
        }
        | FORM,
    )
    (folder / "events" / "model").mkdir()
    write_model(scorer, tokenizer, folder / "events" / "model")
    conll = {"metric": "conll/f1", "split": "test", "group": "event"}
    scores = [
        Score(system="this run", value=0.77, low=0.74, high=0.8, n=1780, **conll),
        Score(metric="threshold", value=0.4),
    ]
    run.write_report(scores=scores)
    return folder


@pytest.fixture
def english(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Both are shipped: the folder of the package."""
    monkeypatch.setattr(model_folder, "ENGLISH", tmp_path / "data" / "models" / "cdlm_lab_models")
    ship_run(runs / "cdlm", "news/cdlm", [str(runs / "events")])
    ship_run(runs / "events", "ecb/events")
    return model_folder.ENGLISH


def test_they_are_opened_by_name_and_answer_as_the_run_did(runs: Path, english: Path):
    assert "news/cdlm" in shipped_names()
    assert "ecb/events" in shipped_runs()
    assert load("news/cdlm").variant == "cdlm"
    model = load("ecb/events")
    assert (model.threshold, type(model.scorer.model).__name__) == (0.4, "PairScorer")
    own = load(runs / "events").clusters(TEXTS)
    assert [list(one) for one in model.clusters(TEXTS)] == [list(one) for one in own]
    assert load(["litbank/nothing", "ecb/events", "storyworld/coreference"]).name == "ecb/events"
    with pytest.raises(
        CheckpointError, match=r"ecb/nothing: no such model; .*ecb/events, news/cdlm, storyworld"
    ):
        load("ecb/nothing")


def test_an_adapter_names_its_base_by_name_and_no_place_of_this_machine(runs: Path, english: Path):
    folder = english / "ecb" / "events"
    assert name_of_base(folder / "model") == "news/cdlm"
    parameters = json.loads((folder / "run.json").read_text())["parameters"]
    assert (parameters["model"], Path(parameters["corpus"]).name) == ("news/cdlm", "ECB+")
    texts = [
        file.read_text()
        for file in folder.rglob("*")
        if file.suffix in (".json", ".md", "") and file.is_file()
    ]
    assert not [text for text in texts if str(runs) in text]
    for file in folder.rglob("*.safetensors"):
        assert {one.dtype for one in load_file(file).values()} == {torch.float16}


def test_a_run_of_a_notebook_opens_it_on_any_corpus(english: Path, tmp_path: Path):
    given = {"trained": "ecb/events", "train_stories": 2, "held_out_stories": 2, "model": "news/cdlm", **FORM}
    run = experiment.prepare(
        experiment.Settings(run_folder=str(tmp_path / "run"), context="documents", **given)
    )
    assert run.encoders[experiment.SYSTEM] == {} or "name" in run.encoders[experiment.SYSTEM]


def test_the_card_has_what_the_hub_reads_and_the_scores(english: Path):
    text = (english / "ecb" / "events" / "README.md").read_text()
    _, front, card = text.split("---\n", 2)
    values = yaml.safe_load(front)
    assert (values["license"], values["datasets"], values["base_model"]) == (
        "cc-by-3.0",
        ["ecbplus"],
        "news/cdlm",
    )
    assert "| this run | event | conll/f1 | 0.77 | [0.74, 0.8] | 1780 |" in card
    assert "purposes of research or education, provided this copyright notice is retained" in card
    assert "research or education" in (english / "ecb" / "events" / "LICENSE").read_text()
    other = (english / "news" / "cdlm" / "README.md").read_text()
    assert "license: other" in other
    assert "conll/f1" in other, "the scores of the run that judged it"


def test_every_model_that_may_be_shipped_has_a_licence():
    groups = {name.partition("/")[0] for name in cards()}
    assert groups == set(model_folder.GROUPS)
    assert {*shipped_names(), *shipped_runs()} <= set(cards())
    for name in [*shipped_names(), *shipped_runs()]:
        folder = model_folder.folder_of_name(name)
        assert (folder / "README.md").is_file()
        assert (folder / "LICENSE").is_file()


@pytest.mark.slow
def test_the_package_is_built_offline_and_found_where_no_clone_is(
    english: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    source = english.parent
    for name in ("pyproject.toml", "README.md", "cdlm_lab_models/__init__.py"):
        shutil.copyfile(ROOT / "data" / "models" / name, source / name)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*command, "-q", "-w", str(tmp_path), str(source)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(tmp_path / "site")
    monkeypatch.setattr(model_folder, "ENGLISH", tmp_path / "no clone")
    assert "ecb/events" not in shipped_runs()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert "ecb/events" in shipped_runs()
    assert len(load("ecb/events").clusters(TEXTS)) in (1, 2)
    assert (tmp_path / "site" / "cdlm_lab_models" / "ecb" / "events" / "LICENSE").is_file()


def test_a_model_is_pushed_with_its_card(english: Path, monkeypatch: pytest.MonkeyPatch):
    asked: list[tuple[str, dict[str, Any]]] = []

    def called(name: str) -> Callable[..., Any]:
        def method(self: HfApi, *given: Any, **named: Any) -> Any:
            asked.append((name, named | {"given": given}))
            return SimpleNamespace(commit_url="https://hub/me/events/commit/1")

        return method

    for name in ("create_repo", "upload_folder"):
        monkeypatch.setattr(HfApi, name, called(name))
    assert cdlm_lab.push_to_hub("ecb/events", "me/events") == "https://hub/me/events/commit/1"
    (created, first), (uploaded, second) = asked
    assert (created, first["private"], uploaded, second["repo_id"]) == (
        "create_repo",
        True,
        "upload_folder",
        "me/events",
    )
    assert (second["folder_path"] / "README.md").is_file()
    (english / "ecb" / "events" / "README.md").unlink()
    with pytest.raises(CheckpointError, match=r"ecb/events: no README\.md in .*; write its card there"):
        hub.push_to_hub("ecb/events", "me/events")
