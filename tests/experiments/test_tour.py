"""The tour: five models from one base, going on after a stop, and the two reports."""

from dataclasses import replace
from pathlib import Path

import torch
from transformers import LongformerForMaskedLM

from cdlm_lab.experiments import perplexity, tour
from cdlm_lab.experiments.cluster_corpora import VARIANTS


def test_five_models_and_none_trained_twice(tmp_path: Path, cache: Path) -> None:
    settings = tour.Settings(
        run_folder=str(tmp_path / "run"), train_clusters=20, held_out_clusters=6, max_length=256,
        base_steps=4, steps=4, batch_size=2, precision="float32",
    )  # fmt: skip
    trained: list[str] = []
    prepared = tour.prepare(settings, cache=cache)
    models = tour.train(prepared, curve=trained.append)
    assert list(models) == list(VARIANTS) == trained
    weights = {name: weights_of(folder) for name, folder in models.items()}
    for name in list(VARIANTS)[1:]:
        assert not torch.equal(weights[name], weights["longformer"]), f"{name} learned nothing"
    assert tour.train(prepared, curve=trained.append) == models
    assert len(trained) == 5, "the second time all models were there"
    live = tour.report(prepared, tour.evaluate(tour.predict(prepared, models), seed=0))
    assert list(dict.fromkeys(row.system for row in live.rows)) == list(VARIANTS)
    assert "Trained here" in perplexity.figure_view(live, title="Trained here").layout.title.text
    shipped = tour.measure_shipped(replace(prepared, settings=replace(settings, held_out_clusters=2)))
    assert (tmp_path / "run" / "shipped" / "report.json").is_file()
    assert {row.clusters for row in shipped.rows} == {2}
    assert len(perplexity.table_view(shipped).rows) == 5


def weights_of(folder: Path) -> torch.Tensor:
    model = LongformerForMaskedLM.from_pretrained(folder)
    return torch.cat([weight.flatten() for weight in model.parameters()])
