"""The tour: five small language models trained live on the embedded corpus, one perplexity table (notebook
00).

The base (`longformer`) is trained first, on unrelated documents with local attention; the other four start
from it with equal budgets. A few minutes teach a small model the wording of the reports and little about
other documents, so the tour also measures the same five models trained for longer, which come with the
project, and says which is which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from IPython.display import HTML

from cdlm_lab.experiments import perplexity, pretraining
from cdlm_lab.experiments.cluster_corpora import CACHE_FOLDER, VARIANTS, CorpusSettings, TokenisedSplit
from cdlm_lab.experiments.perplexity import evaluate
from cdlm_lab.experiments.runs import cost_in_words, facts_table, finished, finished_fact, report
from cdlm_lab.models.checkpoint import PREFIX
from cdlm_lab.models.precision import Precision, precision_told
from cdlm_lab.parameters import parameters_of, settings, settings_of
from cdlm_lab.report import Report, Run, open_run
from cdlm_lab.training.checkpoints import MODEL_FOLDER, TRAINING_FOLDER
from cdlm_lab.training.history import HISTORY_FILE, read_history

__all__ = ["Settings", "evaluate", "predict", "prepare", "preview", "report", "train"]
SHIPPED_LENGTH, SHIPPED_WINDOW = 512, 32  # with which the shipped checkpoints were trained


@settings
class Settings:
    """The parameters of notebook 00, whose comments say what they mean."""

    run_folder: str = "runs/tour"
    train_clusters: int = 600
    held_out_clusters: int = 60
    max_length: int = 512
    window: int = 32
    base_steps: int = 150
    steps: int = 50
    batch_size: int = 4
    learning_rate: float = 0.002
    precision: Precision = "auto"
    seed: int = 0
    shipped: bool = True

    def of_variant(self, name: str) -> pretraining.Settings:
        """How a variant is trained."""
        is_base = name == "longformer"
        steps, folder = self.base_steps if is_base else self.steps, Path(self.run_folder)
        own = {
            "run_folder": str(folder / name),
            "variant": name,
            "model": "tiny" if is_base else str(folder / "longformer" / MODEL_FOLDER),
            "steps": steps,
            "micro_batch_size": self.batch_size,
            "warmup_steps": steps // 5,
            "decay_power": 1.0,
            "evaluate_every": steps,
        }
        return settings_of(pretraining.Settings, parameters_of(self) | own)


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """How the variants are trained, by name, and the folder of the run."""

    settings: Settings
    variants: Mapping[str, pretraining.Settings]
    opened: Run
    data: Mapping[str, Any]
    cache: str | Path


def prepare(settings: Settings, *, cache: str | Path = CACHE_FOLDER) -> Prepared:
    """Take the run's folder; refuse settings that cannot be. `cache`: for tokenised corpora."""
    opened = open_run(settings.run_folder, name="tour", parameters=parameters_of(settings))
    data = {"precision": precision_told(settings.precision)}
    print(f"training in {data['precision']}")
    variants = {name: settings.of_variant(name) for name in VARIANTS}
    return Prepared(settings=settings, variants=variants, opened=opened, data=data, cache=cache)


def preview(prepared: Prepared) -> HTML:
    """What the base reads and how long it is trained, from one batch; the others take as long a step, or
    little longer."""
    base = pretraining.read(prepared.variants["longformer"], cache=prepared.cache)
    facts = pretraining.facts_of(base)
    others = f"{len(prepared.variants) - 1} models from it, {prepared.settings.steps:,} steps each"
    if made := finished(prepared):
        return facts_table([*facts, finished_fact(made)])
    facts.append(("the base", cost_in_words(pretraining.job_of(base), items="examples")))
    return facts_table([*facts, ("then", others)])


def train(
    prepared: Prepared, *, curve: Callable[[str], AbstractContextManager[Callable[[Mapping[str, Any]], None]]]
) -> dict[str, Path]:
    """Train the base and then the four variants from it; variant name -> folder of its model.

    `curve(name)` is a context that gives what takes a variant's records, as a `LiveCurve` is. Variants whose
    model stands in the run's folder are not trained again, so that an interrupted tour goes on where it was;
    their curves are shown as they were.
    """
    models = {}
    for name, of_variant in prepared.variants.items():
        folder = Path(of_variant.run_folder)
        models[name] = folder / MODEL_FOLDER
        with curve(name) as on_log:
            if not (models[name] / "tokenizer.json").exists():  # written last
                pretraining.train(pretraining.read(of_variant, cache=prepared.cache), on_log=on_log)
                continue
            for record in read_history(folder / TRAINING_FOLDER / HISTORY_FILE):
                on_log(record)
    return models


def predict(
    prepared: Prepared, models: Mapping[str, Path]
) -> tuple[dict[str, perplexity.ClusterLosses], TokenisedSplit]:
    """The losses of the models on the validation split, and its clusters."""
    form = parameters_of(prepared.settings, "window", "batch_size") | {"cache": prepared.cache}
    form["kept"] = prepared.opened.folder / perplexity.LOSSES_FOLDER
    return perplexity.measure(models, prepared.variants["cdlm"], split="validation", **form)


def measure_shipped(prepared: Prepared) -> Report:
    """Perplexities of the shipped checkpoints on storyworld's test split, with a report of their own in
    `shipped/`."""
    clusters, seed = prepared.settings.held_out_clusters, prepared.settings.seed
    sizes = {"train_clusters": clusters, "held_out_clusters": clusters}
    corpus = CorpusSettings(**sizes, max_length=SHIPPED_LENGTH, seed=seed)
    parameters = {"clusters": clusters, "seed": seed}
    folder = prepared.opened.folder / "shipped"
    opened = open_run(folder, name="tour, shipped checkpoints", parameters=parameters)
    checkpoints = {name: PREFIX + name for name in VARIANTS}
    form = {"window": SHIPPED_WINDOW, "batch_size": 8, "cache": prepared.cache}
    form["kept"] = folder / perplexity.LOSSES_FOLDER
    shipped = replace(prepared, opened=opened, data={})
    return report(shipped, evaluate(shipped, perplexity.measure(checkpoints, corpus, split="test", **form)))
