"""What may not be read is told from what is not there, in corpora, model folders, runs and reports."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tagging_runs import tiny_parts

from cdlm_lab.data.files import DataError, denied, entries, read_text
from cdlm_lab.encoders.checkpoint import CheckpointError
from cdlm_lab.encoders.encoder import load_encoder, load_language_model
from cdlm_lab.parameters import ParameterError
from cdlm_lab.runs.report import RunError, open_run, read_report
from cdlm_lab.training.checkpoints import save_model
from cdlm_lab.training.trained import trained_model

DENIED = r"{} may not be read \(permission denied\)[:;] ask its owner for chmod -R a\+rX .*{}$"
SHORT = {"max_length": 32, "window": 8}


def denial(name: str) -> str:
    return DENIED.format(name, name)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    run = open_run(folder, name="pretraining", parameters={})
    save_model(*tiny_parts(), folder / "model")
    run.write_report(scores=[])
    return folder / "model"


def test_a_corpus(forbid, tmp_path: Path):
    (tmp_path / "below").mkdir()
    file = tmp_path / "below" / "train.jsonl"
    file.write_text("{}\n")
    assert denied(file) == denied(tmp_path / "nowhere") == denied(file / "below") == denied("a\0b") == ""
    for path, name in ((file, "train.jsonl"), (file.parent, "below")):
        with forbid(path), pytest.raises(DataError, match=denial(name)):
            read_text(file)
    with forbid(file.parent), pytest.raises(DataError, match=denial("below")):
        entries(file.parent)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json", ""])
@pytest.mark.parametrize("load", [load_language_model, load_encoder])
def test_a_model(forbid, model: Path, load: Callable, name: str):
    with forbid(model / name), pytest.raises(CheckpointError, match=denial(name or "model")):
        load(str(model), **SHORT)
    load(str(model), **SHORT)


def test_a_trained_model(forbid, model: Path):
    assert trained_model(str(model.parent)) == model
    for path in (model / "model.safetensors", model.parent, model.parent / "run.json"):
        with forbid(path), pytest.raises(ParameterError, match=denial(path.name)):
            trained_model(str(model.parent))


def test_a_report_and_a_run(forbid, model: Path):
    run = model.parent
    for path in (run / "report.json", run):
        with forbid(path), pytest.raises(RunError, match=denial(path.name)):
            read_report(run)
        with forbid(path), pytest.raises(RunError, match=denial(path.name)):
            open_run(run, name="pretraining", parameters={})
    with forbid(run / "run.json"), pytest.raises(RunError, match=denial("run.json")):
        open_run(run, name="pretraining", parameters={})
    assert open_run(run, name="pretraining", parameters={}).finished
