"""What experiments share: numbers kept as they come, and the checkpoint that fits a head."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from cdlm_lab.experiments import runs as kept_numbers
from cdlm_lab.experiments.runs import KeptNumbers
from cdlm_lab.experiments.systems.joint import paragraph_checkpoint
from cdlm_lab.models.checkpoint import HEAD_FILE
from cdlm_lab.models.joint import JointHead, load_paragraph_model, save_paragraph_model
from cdlm_lab.parameters import ParameterError


def stopped_after_two(numbers: KeptNumbers) -> None:
    numbers.values[1] = (0.5, 0.25)
    numbers.values[2] = (0.5, np.nan)
    raise KeyboardInterrupt


def test_a_stopped_run_finds_what_it_had(tmp_path: Path):
    file = tmp_path / "scores" / "x.npy"
    with pytest.raises(KeyboardInterrupt), KeptNumbers(file, (3, 2)) as numbers:
        stopped_after_two(numbers)
    with KeptNumbers(file, (3, 2)) as numbers:
        assert numbers.missing.tolist() == [0, 2], "a row that is half there is not there"
        assert numbers.values[1].tolist() == [0.5, 0.25]


def test_it_is_saved_when_due_and_not_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "x.npy"
    numbers = KeptNumbers(file, (2,))
    numbers.values[0] = 1
    numbers.save_when_due()
    assert not file.exists()
    monkeypatch.setattr(kept_numbers, "SAVE_SECONDS", -1.0)
    numbers.save_when_due()
    assert np.load(file)[0] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


def test_without_a_file_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with KeptNumbers(None, (2,)) as numbers:
        numbers.values[:] = 1
    assert not list(tmp_path.iterdir())


def test_another_run_is_refused(tmp_path: Path):
    np.save(tmp_path / "x.npy", np.zeros(3, dtype=np.float32))
    with pytest.raises(ValueError, match=r"x\.npy holds numbers of shape \(3,\), but there are \(2,\)"):
        KeptNumbers(tmp_path / "x.npy", (2,))


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


def test_a_run_folder_or_its_model(runs: Path):
    inside = str(runs / "mspp-ie_k" / "model")
    assert paragraph_checkpoint(str(runs / "mspp-ie_k"), head="ie") == inside
    assert paragraph_checkpoint(inside, head="ie") == inside


def test_in_a_folder_of_runs_the_head_tells_which(runs: Path, tmp_path: Path):
    for head in ("ie", "ae"):
        found = paragraph_checkpoint(str(runs), head=head)
        assert found == str(runs / f"mspp-{head}_k" / "model")
    (tmp_path / "a.old-20261122-090400").symlink_to(runs / "mspp-ie_k")
    with pytest.raises(ParameterError, match=r"^mspp is '.*', where there is no model pretrained with ie_k"):
        paragraph_checkpoint(str(tmp_path), head="ie")
    for name in ("a", "b"):
        (tmp_path / name).symlink_to(runs / "mspp-ie_k")
    with pytest.raises(ParameterError, match=r"^mspp is '.*', where a and b were pretrained with ie_k; keep"):
        paragraph_checkpoint(str(tmp_path), head="ie")
    with pytest.raises(ParameterError, match=r"^mspp is '.*', where there is no model pretrained with ae_k"):
        paragraph_checkpoint(str(tmp_path), head="ae")


def test_the_other_head_is_refused(runs: Path):
    with pytest.raises(ParameterError, match=r"^mspp is '.*', which was pretrained with ie_k; give a run"):
        paragraph_checkpoint(str(runs / "mspp-ie_k"), head="ae")


def test_a_model_without_that_head_is_taken_at_its_word_where_it_is_named(runs: Path, tmp_path: Path):
    model = tmp_path / "run" / "model"
    model.mkdir(parents=True)
    for file in (runs / "mspp-ie_k" / "model").iterdir():
        if file.name != HEAD_FILE:
            (model / file.name).write_bytes(file.read_bytes())
    assert paragraph_checkpoint(str(model), head="ae") == str(model)
    with pytest.raises(ParameterError, match="where there is no model pretrained with ae_k"):
        paragraph_checkpoint(str(tmp_path), head="ae")


def test_what_is_not_there_or_not_given(tmp_path: Path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ParameterError, match=rf"^mspp is '.*', where there is no model .*; {REMEDY}$"):
            paragraph_checkpoint(str(folder), head="ie")
    with pytest.raises(ParameterError, match=rf'^mspp is ""; {REMEDY}$'):
        paragraph_checkpoint("", head="ie")
