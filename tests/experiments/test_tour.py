"""The tour: five models from one base, shipped checkpoints, and going on after a stop."""

import pytest
import torch

from cdlm_lab.experiments.corpora import CorpusSettings
from cdlm_lab.experiments.pretraining import ModelSettings
from cdlm_lab.experiments.tour import chosen_checkpoints, measure_shipped, shipped_checkpoints, train_five
from cdlm_lab.experiments.variants import VARIANTS
from cdlm_lab.report import open_run
from cdlm_lab.training.config import TrainingConfig


def test_five_models_and_none_trained_twice(
    tmp_path, corpus: CorpusSettings, tiny: ModelSettings, training: TrainingConfig
) -> None:
    run = open_run(tmp_path / "run", name="tour", parameters={})
    trained: list[str] = []

    def curve(name: str) -> None:
        trained.append(name)

    settings = {"model": tiny, "corpus": corpus, "base_training": training, "training": training}
    models = train_five(run, **settings, curve=curve)
    assert list(models) == list(VARIANTS) == trained
    weights = {
        name: torch.cat([p.flatten() for p in load(folder).parameters()]) for name, folder in models.items()
    }
    for name in list(VARIANTS)[1:]:
        assert not torch.equal(weights[name], weights["longformer"]), f"{name} learned nothing"
    assert train_five(run, **settings, curve=curve) == models
    assert len(trained) == 5, "the second time all models were there"


def load(folder) -> torch.nn.Module:
    from transformers import LongformerForMaskedLM

    return LongformerForMaskedLM.from_pretrained(folder)


def test_checkpoints_are_chosen_by_name(tmp_path) -> None:
    assert chosen_checkpoints({"cdlm": "some/folder", "longformer": ""}) == {"cdlm": "some/folder"}
    with pytest.raises(ValueError, match="every variant is left out"):
        chosen_checkpoints({"cdlm": ""})
    with pytest.raises(ValueError, match="no checkpoint of bigbird is shipped"):
        chosen_checkpoints({"bigbird": "shipped"})
    assert shipped_checkpoints(tmp_path) == {}


@pytest.mark.skipif(not shipped_checkpoints(), reason="until checkpoints are shipped")
def test_shipped_checkpoints_are_measured(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)  # the cache is relative
    report = measure_shipped(tmp_path, clusters=4, seed=0)
    assert {name.split("/")[0] for name in report.scores} == set(VARIANTS)
    # guessing among 4,096 words would give 4,096
    assert all(score["value"] < 1500 for name, score in report.scores.items() if name.endswith("/perplexity"))
