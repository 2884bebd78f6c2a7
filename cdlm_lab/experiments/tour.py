"""The tour: five small language models trained live on the embedded corpus, one perplexity table (notebook
00).

The base (`longformer`) is trained first, on unrelated documents with local attention; the other four start
from it with equal budgets. A few minutes teach a small model the wording of the reports and little about
other documents, so the tour also measures checkpoints of the same models that were trained for longer and
are shipped with the project, clearly labelled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cdlm_lab.experiments.corpora import CorpusSettings
from cdlm_lab.experiments.perplexity import measure_variants, write_perplexity_report
from cdlm_lab.experiments.pretraining import MODEL_FOLDER, ModelSettings, prepare, train_model
from cdlm_lab.experiments.variants import VARIANTS
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import Report, Run, open_run
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
    "seed",
    "shipped",
)
# Checkpoints of `tiny` that come with the project, and how they read (see the README.md beside them).
SHIPPED_FOLDER = Path(__file__).resolve().parents[2] / "data" / "storyworld" / "checkpoints"
SHIPPED_LENGTH, SHIPPED_WINDOW = 768, 32
SHIPPED = "shipped"


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

    Raises KeyboardInterrupt when a training was asked to stop.
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
            raise KeyboardInterrupt(f"stopped while training {name}; the same command goes on from there")
    return models


def shipped_checkpoints(folder: Path = SHIPPED_FOLDER) -> dict[str, Path]:
    """The variants' checkpoints that come with the project, variant name -> folder; may be empty."""
    return {name: folder / name for name in VARIANTS if (folder / name / "model.safetensors").exists()}


def measure_shipped(folder: Path, *, clusters: int, seed: int) -> Report | None:
    """Perplexities of the shipped checkpoints on storyworld's test split, with a report of their own in
    `folder/shipped`; None if none are shipped."""
    checkpoints = shipped_checkpoints()
    if not checkpoints:
        return None
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
    parameters = {"clusters": clusters, "seed": seed, "checkpoints": sorted(checkpoints)}
    run = open_run(folder / SHIPPED, name="tour, shipped checkpoints", parameters=parameters)
    losses, split = measure_variants(checkpoints, corpus, split="test", window=SHIPPED_WINDOW, batch_size=8)
    return write_perplexity_report(run, losses, split, seed=seed)


def chosen_checkpoints(wanted: Mapping[str, str]) -> dict[str, str]:
    """Variant name -> folder or hub name, from what a notebook asks for: "shipped" stands for the project's
    own checkpoint, "" leaves the variant out.

    Raises ParameterError when nothing is left, or a checkpoint is asked for that is not shipped.
    """
    shipped = shipped_checkpoints()
    missing = [name for name, choice in wanted.items() if choice == SHIPPED and name not in shipped]
    if missing:
        raise ParameterError(
            f'no checkpoint of {", ".join(missing)} is shipped; give a folder, or "" to skip'
        )
    chosen = {
        name: str(shipped[name]) if choice == SHIPPED else choice for name, choice in wanted.items() if choice
    }
    if not chosen:
        raise ParameterError("every variant is left out; name at least one checkpoint")
    return chosen
