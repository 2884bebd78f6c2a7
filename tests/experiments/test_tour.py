"""The tour: five models from one base, and going on after a stop."""

import torch

from cdlm_lab.experiments.cluster_corpora import VARIANTS, CorpusSettings
from cdlm_lab.experiments.pretraining import ModelSettings
from cdlm_lab.experiments.tour import train_five
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
