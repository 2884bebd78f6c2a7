"""The tour: five small language models trained live on the built-in corpus, and one table of perplexities
(notebook 00).

The base (`longformer`) is trained first, on unrelated documents with local attention; the other four start
from it with equal budgets. A few minutes teach a small model the wording of the reports but little about
using other documents, so the tour first measures the same five models after longer training, which ship with
the project, and labels both results clearly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from cdlm_lab.encoders.model_folder import MODEL_FOLDER, is_model
from cdlm_lab.encoders.precision import Precision, precision_in_words
from cdlm_lab.encoders.variants import VARIANTS
from cdlm_lab.parameters import parameters_of, settings, settings_of
from cdlm_lab.runs.corpora import CACHE_FOLDER, TokenisedSplit
from cdlm_lab.runs.identity import Inputs
from cdlm_lab.runs.report import Report
from cdlm_lab.runs.runs import report
from cdlm_lab.tasks.pretraining import experiment as pretraining
from cdlm_lab.tasks.pretraining import perplexity
from cdlm_lab.tasks.pretraining.experiment import PretrainingRun
from cdlm_lab.tasks.pretraining.perplexity import evaluate
from cdlm_lab.training.checkpoints import TRAINING_FOLDER
from cdlm_lab.training.history import HISTORY_FILE, read_history

__all__ = ["Settings", "evaluate", "predict", "prepare", "report", "train"]
SHIPPED_FOLDER = "shipped_models"  # inside the run folder: a run of notebook 02 on the shipped models


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
    learning_rate: float = 0.001
    precision: Precision = "auto"
    seed: int = 0
    shipped: bool = True

    def of_variant(self, name: str) -> pretraining.Settings:
        """The pretraining settings of a variant."""
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
class TourRun(perplexity.LossesRun):
    """A tour: the pretraining settings of each variant, by name; `cache`: folder of tokenised corpora."""

    NAME: ClassVar[str] = "tour"

    settings: Settings
    variants: Mapping[str, pretraining.Settings]
    cache: str | Path

    @classmethod
    def read(cls, settings: Settings, *, cache: str | Path) -> TourRun:
        """Build the settings of every variant; refuses impossible values."""
        variants = {name: settings.of_variant(name) for name in VARIANTS}
        return cls(settings=settings, variants=variants, cache=cache)

    @property
    def inputs(self) -> Inputs:
        """Storyworld; the models are made from their seeds."""
        return Inputs(data=[self.variants["cdlm"].corpus])

    def check(self) -> None:
        """Raise an error if a model cannot be made or trained so."""
        for given in self.variants.values():
            _ = given.training
        PretrainingRun.load(self.variants["longformer"])

    @property
    def data(self) -> dict[str, Any]:
        """The precision of training, stored in the report."""
        return {"precision": precision_in_words(self.settings.precision)}


def prepare(settings: Settings, *, cache: str | Path = CACHE_FOLDER) -> TourRun:
    """Claim the run folder and check the settings. `cache`: folder of tokenised corpora."""
    run = TourRun.open(settings, cache=cache)
    print(f"training in {run.data['precision']}")
    return run


def train(
    prepared: TourRun, *, curve: Callable[[str], AbstractContextManager[Callable[[Mapping[str, Any]], None]]]
) -> dict[str, Path]:
    """Train the base, then the four variants from it; returns variant name -> folder of its model.

    `curve(name)` is a context manager that yields a callback for a variant's training records, as `LiveCurve`
    does. Variants whose model is already in the run folder are not trained again, so an interrupted tour
    continues where it was; their stored records are replayed.
    """
    models = {}
    for name, of_variant in prepared.variants.items():
        folder = Path(of_variant.run_folder)
        models[name] = folder / MODEL_FOLDER
        with curve(name) as on_log:
            if not is_model(models[name]):
                pretraining.train(PretrainingRun.read(of_variant, cache=prepared.cache), on_log=on_log)
                continue
            for record in read_history(folder / TRAINING_FOLDER / HISTORY_FILE):
                on_log(record)
    return models


def predict(
    prepared: TourRun, models: Mapping[str, Path]
) -> tuple[dict[str, perplexity.ClusterLosses], TokenisedSplit]:
    """The losses of all models on the validation split, in the precision in which shipped ones are measured
    as well, and the tokenised split."""
    form = parameters_of(prepared.settings, "window", "batch_size", "precision") | {"cache": prepared.cache}
    form["kept"] = prepared.folder / perplexity.LOSSES_FOLDER
    return perplexity.measure(models, prepared.variants["cdlm"], split="validation", **form)


def measure_shipped(prepared: TourRun) -> Report:
    """Perplexities of the models that ship with the project: a separate run of notebook 02 in a subfolder of
    this run, so that the results book finds it."""
    given = prepared.settings
    settings = perplexity.Settings(
        run_folder=str(prepared.folder / SHIPPED_FOLDER),
        clusters=given.held_out_clusters,
        precision=given.precision,
        seed=given.seed,
    )
    shipped = perplexity.prepare(settings, cache=prepared.cache)
    return report(shipped, evaluate(shipped, perplexity.predict(shipped)))
