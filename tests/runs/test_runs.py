"""What experiments share: numbers kept as they come, and the checkpoint that fits a head."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from cdlm_lab.encoders.checkpoint import HEAD_FILE
from cdlm_lab.encoders.model_folder import FOLDER
from cdlm_lab.parameters import ParameterError
from cdlm_lab.runs import made
from cdlm_lab.runs.made import KeptNumbers
from cdlm_lab.tasks.joint.model import (
    JointHead,
    load_joint_model,
    load_paragraph_model,
    paragraph_head,
    save_paragraph_model,
)
from cdlm_lab.tasks.joint.systems import paragraph_checkpoint


def test_a_stopped_run_finds_what_it_had(tmp_path: Path):
    file = tmp_path / "scores" / "x.npy"
    with contextlib.suppress(KeyboardInterrupt), KeptNumbers(file, (3, 2)) as numbers:
        numbers.values[1:] = ((0.5, 0.25), (0.5, np.nan))
        raise KeyboardInterrupt
    with KeptNumbers(file, (3, 2)) as numbers:
        assert numbers.missing.tolist() == [0, 2], "a row that is half there is not there"
        assert numbers.values[1].tolist() == [0.5, 0.25]
    with pytest.raises(ValueError, match=r"x\.npy holds numbers of shape \(3, 2\), but there are \(2,\)"):
        KeptNumbers(file, (2,))


def test_it_is_saved_when_due_and_not_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "x.npy"
    numbers = KeptNumbers(file, (2,))
    numbers.values[0] = 1
    numbers.save_when_due()
    assert not file.exists()
    monkeypatch.setattr(made, "SAVE_SECONDS", -1.0)
    numbers.save_when_due()
    assert np.load(file)[0] == 1
    monkeypatch.chdir(tmp_path)
    with KeptNumbers(None, (2,)) as numbers:
        numbers.values[:] = 1
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"], "without a file nothing is kept"


REMEDY = "give a run folder of notebook 08 that was pretrained with ie_k, or leave out its systems"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run folders of models that were pretrained with each head, for no step at all."""
    folder = tmp_path_factory.mktemp("runs")
    for kind in ("ie_k", "ae_k"):
        with torch.random.fork_rng():
            model = load_paragraph_model("tiny", head=JointHead(kind=kind, sentences=3, length=8))
        save_paragraph_model(*model, folder / f"mspp-{kind}" / "model")
    return folder


def refused(folder: object, message: str, *, head: str = "ie") -> None:
    with pytest.raises(ParameterError, match=message):
        paragraph_checkpoint(str(folder), head=head)


def test_the_model_of_a_run_folder_or_of_a_folder_of_runs_in_which_the_head_says_which(runs: Path):
    inside = str(runs / "mspp-ie_k" / "model")
    for folder in (runs / "mspp-ie_k", inside, runs):
        assert paragraph_checkpoint(str(folder), head="ie") == inside
    assert paragraph_checkpoint(str(runs), head="ae") == str(runs / "mspp-ae_k" / "model")


def test_of_two_trainings_one_after_the_other_the_last_is_meant(runs: Path, tmp_path: Path):
    for name, model in (("z", "minilm"), ("a", str(tmp_path / "z" / "model"))):
        shutil.copytree(runs / "mspp-ie_k" / "model", tmp_path / name / "model")
        values = {"name": "paragraph pretraining", "parameters": {"head": "ie_k", "model": model}}
        (tmp_path / name / "run.json").write_text(json.dumps(values))
    assert paragraph_checkpoint(str(tmp_path), head="ie") == str(tmp_path / "a" / "model")


def test_a_run_that_comes_with_the_project_is_named():
    model = paragraph_checkpoint("storyworld/paragraphs", head="ie")
    assert model == str(FOLDER / "paragraphs" / "model")
    form, weights = paragraph_head(model)
    joint, _ = load_joint_model(model, head=form)
    assert torch.equal(joint.head.layers[0].weight, weights["layers.0.weight"].float())
    with_ie = r"^mspp is 'storyworld/paragraphs', which was pretrained with"
    refused("storyworld/paragraphs", with_ie, head="ae")
    refused("storyworld/nothing", r"^mspp is 'storyworld/nothing', where there is no model")


def test_folders_that_do_not_say_which(runs: Path, tmp_path: Path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        refused(folder, rf"^mspp is '.*', where there is no model .*; {REMEDY}$")
    refused("", rf'^mspp is ""; {REMEDY}$')
    refused(runs / "mspp-ie_k", r"^mspp is '.*', which was pretrained with ie_k; give a run", head="ae")
    (tmp_path / "a.old-20261122-090400").symlink_to(runs / "mspp-ie_k")
    refused(tmp_path, r"^mspp is '.*', where there is no model pretrained with ie_k")
    for name in ("a", "b"):
        (tmp_path / name).symlink_to(runs / "mspp-ie_k")
    refused(tmp_path, r"^mspp is '.*', where a and b were pretrained with ie_k; keep")
    refused(tmp_path, r"^mspp is '.*', where there is no model pretrained with ae_k", head="ae")


def test_a_model_without_that_head_is_taken_at_its_word_where_it_is_named(runs: Path, tmp_path: Path):
    model = tmp_path / "run" / "model"
    shutil.copytree(runs / "mspp-ie_k" / "model", model)
    (model / HEAD_FILE).unlink()
    assert paragraph_checkpoint(str(model), head="ae") == str(model)
    refused(tmp_path, "where there is no model pretrained with ae_k", head="ae")
