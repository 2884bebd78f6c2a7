"""The tour: five small language models trained live on the embedded corpus, one perplexity table (notebook
00).

The base (`longformer`) is trained first, on unrelated documents with local attention; the other four start
from it with equal budgets. A few minutes teach a small model the wording of the reports and little about
other documents, so the tour also measures the same five models trained for longer, which come with the
project, and says which is which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cdlm_lab.errors import Stopped
from cdlm_lab.experiments.cluster_corpora import VARIANTS, CorpusSettings
from cdlm_lab.experiments.perplexity import measure_variants, write_perplexity_report
from cdlm_lab.experiments.pretraining import ModelSettings, prepare, train_model
from cdlm_lab.models.checkpoint import PREFIX
from cdlm_lab.report import Report, Run, open_run
from cdlm_lab.training.checkpoints import MODEL_FOLDER
from cdlm_lab.training.config import TrainingConfig

# The parameters of notebook 00.
PARAMETERS = (
    "run_folder",
    "train_clusters",
    "held_out_clusters",
    "max_length",
    "window",
    "base_steps",
    "steps",
    "batch_size",
    "learning_rate",
    "precision",
    "seed",
    "shipped",
)
SHIPPED_LENGTH, SHIPPED_WINDOW = 512, 32  # with which the shipped checkpoints were trained


def train_five(
    run: Run,
    *,
    model: ModelSettings,
    corpus: CorpusSettings,
    base_training: TrainingConfig,
    training: TrainingConfig,
    curve: Callable[[str], Callable[[Mapping[str, Any]], None] | None],
) -> dict[str, Path]:
    """Train the base and then the four variants from it; variant name -> folder of its model.

    `curve(name)` gives the callback for a variant's records, or None. Variants whose model stands in the
    run's folder are not trained again, so that an interrupted tour goes on where it was.

    Raises Stopped when a training was asked to stop.
    """
    models: dict[str, Path] = {}
    for name in VARIANTS:
        folder = run.folder / name
        models[name] = folder / MODEL_FOLDER
        if (models[name] / "tokenizer.json").exists():  # written last
            continue
        is_base = name == "longformer"
        start = model if is_base else replace(model, model=str(models["longformer"]))
        prepared = prepare(
            variant=name, model=start, corpus=corpus, training=base_training if is_base else training
        )
        if train_model(prepared, folder, on_log=curve(name)).interrupted:
            raise Stopped(f"stopped while training {name}; the same command goes on from there")
    return models


def measure_shipped(folder: Path, *, clusters: int, seed: int) -> Report:
    """Perplexities of the shipped checkpoints on storyworld's test split, with a report of their own in
    `folder`/shipped.

    Raises CheckpointError when they are not there (see `models.shipped`).
    """
    corpus = CorpusSettings(
        corpus="storyworld",
        train_clusters=clusters,
        held_out_clusters=clusters,
        minimum_documents=3,
        packing="equal_share",
        max_length=SHIPPED_LENGTH,
        mask_probability=0.15,
        seed=seed,
        cache_folder="runs/cache",
    )
    parameters = {"clusters": clusters, "seed": seed}
    run = open_run(folder / "shipped", name="tour, shipped checkpoints", parameters=parameters)
    checkpoints = {name: PREFIX + name for name in VARIANTS}
    losses, split = measure_variants(checkpoints, corpus, split="test", window=SHIPPED_WINDOW, batch_size=8)
    return write_perplexity_report(run, losses, split, seed=seed)
