"""Document matching (Zhou et al. 2020, "CDA", section 5.2, Tables 2 and 3; CDLM section 3.3, Table 4):
notebook 04.

Each system is trained with each seed; of its passes over the training pairs the one with the lowest loss on
dev is kept. Test pairs are read once by each. All that is finished stays in the run folder: a stopped run
goes on where it was.

Choices where the papers are silent or a small corpus asks for others: passes are a fixed number (CDA stops
after five without a lower dev loss; which one is kept is the same as long as there are enough); learning
rates fall linearly to 0 without a warm-up, as in CDLM's released code (CDA's keeps them constant); CDLM's 8
passes in batches of 32 are parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from cdlm_lab.data.files import named
from cdlm_lab.experiments.fine_tuning import config_of_passes, fine_tune, in_training_order
from cdlm_lab.experiments.match_predictions import MatchPredictions, predict
from cdlm_lab.experiments.matching_corpora import MatchingCorpus, Pairs, read_matching_pairs
from cdlm_lab.experiments.matching_models import Matcher, MatcherParts, MatchingModels, new_matcher
from cdlm_lab.experiments.matching_systems import SYSTEMS, System, systems_named
from cdlm_lab.experiments.parallel import Recipe, TrainingJob
from cdlm_lab.experiments.variants import checkpoint_of
from cdlm_lab.experiments.word_overlap import WordOverlap
from cdlm_lab.models.precision import Precision
from cdlm_lab.parameters import (
    ParameterError,
    check_least,
    check_types,
    parameters_of,
    with_those_of_before,
)
from cdlm_lab.training.config import TrainingConfig, Workers
from cdlm_lab.training.processes import Processes
from cdlm_lab.training.saved_model import MODEL_FOLDER

SPLITS = ("dev", "test")  # that are predicted


@dataclass(frozen=True, kw_only=True)
class MatchingTraining:
    """How systems are trained. The first four are of the hierarchical systems; those with `encoder_` of the
    systems whose encoder is trained, which are Longformers and fine-tuned BERT-HAN.

    Attributes:
        systems: names, separated by spaces.
        seeds: how many times each is trained, with seeds from 0.
        warmup_share: of all updates of a system, during which its learning rate rises to the one given.
        precision: of the forward pass in training, of frozen encodings and of predictions, as of
            `TrainingConfig`.
        parallel: processes that train each system whose encoder is trained, as of `Processes.of`; "" = one.
            The others are trained by one, and pairs are predicted by one.
        workers: as of `TrainingConfig`, for these systems too: what the others read is made already, and
            too large to be sent.
    """

    systems: str = "tf-idf bert-avg bert-han bert-han-shallow gru-han-shallow cdlm"
    seeds: int = 1
    epochs: int = 6
    batch_size: int = 16
    learning_rate: float = 0.002
    encoder_epochs: int = 1
    encoder_batch_size: int = 8
    encoder_micro_batch_size: int = 8
    encoder_learning_rate: float = 0.0005
    warmup_share: float = 0.0
    precision: Precision = "auto"
    parallel: str = ""
    workers: Workers = "auto"

    def __post_init__(self) -> None:
        check_types(self)
        systems_named(self.systems)
        check_least(self, 1, "seeds", "epochs", "encoder_epochs")
        if not 0 <= self.warmup_share <= 0.5:
            raise ParameterError(f"warmup_share is {self.warmup_share}; it must lie between 0 and 0.5")
        Processes.of(self.parallel)


@dataclass(frozen=True, kw_only=True)
class MatchingSettings:
    """All parameters of a run but its folder."""

    corpus: MatchingCorpus = field(default_factory=MatchingCorpus)
    models: MatchingModels = field(default_factory=MatchingModels)
    training: MatchingTraining = field(default_factory=MatchingTraining)

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> MatchingSettings:
        """From the parameters of notebook 04, which are the fields of the three parts."""
        parameters = with_those_of_before(_BEFORE | dict(parameters), PARAMETERS)
        parts = {
            part.name: {name.name: parameters[name.name] for name in fields(kind)}
            for part, kind in zip(fields(cls), _PARTS, strict=True)
        }
        return cls(**{name: kind(**parts[name]) for name, kind in zip(parts, _PARTS, strict=True)})

    @property
    def systems(self) -> tuple[System, ...]:
        """In the order of SYSTEMS."""
        return systems_named(self.training.systems)

    @property
    def parameters(self) -> dict[str, Any]:
        """As `of` takes them."""
        return parameters_of(self)


# What runs had from before these were parameters.
_BEFORE: Mapping[str, Any] = {
    "warmup_share": 0.1,
    "reset_globals": False,
    "parallel": "",
    "workers": "auto",
}
_PARTS = (MatchingCorpus, MatchingModels, MatchingTraining)
# The parameters of notebook 04.
PARAMETERS = ("run_folder", *MatchingSettings().parameters)


@dataclass(frozen=True, kw_only=True)
class MatchingRun:
    """The pairs of a run and the folder that it works in; `lost`: what of the corpus could not be used (see
    `read_matching_pairs`)."""

    settings: MatchingSettings
    pairs: Pairs
    folder: Path
    lost: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def trainings(self) -> list[tuple[System, int]]:
        """Each system with each seed; one that leaves nothing to chance once."""
        seeds = self.settings.training.seeds
        return [
            (system, seed)
            for system in self.settings.systems
            for seed in range(1 if system.encoder == "words" else seeds)
        ]

    def folder_of(self, system: System, seed: int) -> Path:
        """Where a system trained with a seed is kept."""
        return self.folder / "systems" / f"{system.name}-{seed}"

    def is_finished(self, system: System, seed: int) -> bool:
        """True if it is trained and its predictions are there."""
        return all((self.folder_of(system, seed) / f"{split}.npz").is_file() for split in SPLITS)

    @cached_property
    def parts(self) -> MatcherParts:
        """Of its matchers."""
        return MatcherParts(
            settings=self.settings.models,
            training=self.pairs["train"],
            cache=self.folder,
            precision=self.settings.training.precision,
        )

    def matcher(self, system: System, seed: int, *, trained: bool) -> Matcher:
        """A new matcher, or the one that was trained. Errors as of `new_matcher`."""
        kept = self.folder_of(system, seed) / MODEL_FOLDER if trained else None
        return new_matcher(system, self.parts, seed=seed, trained=kept)


def prepare_matching(settings: MatchingSettings, folder: Path) -> MatchingRun:
    """Read the corpus and look whether every system has what it needs; nothing is trained.

    Raises ValueError with one clear line for whatever does not fit.
    """
    for system in settings.systems:
        if system.encoder == "longformer":
            checkpoint_of(settings.models.encoders, system.name)
        training_of(settings, system, seed=0, pairs=1)
    lost: dict[str, list[str]] = {}
    pairs = read_matching_pairs(settings.corpus, lost=lost)
    for name, places in lost.items():
        print(f"{settings.corpus.corpus}: {name}: {named(places)}")
    return MatchingRun(settings=settings, pairs=pairs, folder=folder, lost=lost)


def match_documents(run: MatchingRun) -> dict[tuple[str, int], dict[str, MatchPredictions]]:
    """(system, seed) -> split -> predictions; trained where that was not done yet.

    Raises Stopped when it was asked to stop; the same call goes on from there.
    """
    found = {}
    for system, seed in run.trainings:
        if not run.is_finished(system, seed):
            _train_and_predict(run, system, seed)
        found[system.name, seed] = {
            split: MatchPredictions.load(
                run.folder_of(system, seed) / f"{split}.npz", pairs=len(run.pairs[split])
            )
            for split in SPLITS
        }
    return found


def _train_and_predict(run: MatchingRun, system: System, seed: int) -> None:
    folder = run.folder_of(system, seed)
    if system.encoder == "words":
        overlap = WordOverlap(run.pairs["train"])
        for split in SPLITS:
            overlap.predict(run.pairs[split]).save(folder / f"{split}.npz")
        return
    matcher = run.matcher(system, seed, trained=False)
    config = training_of(run.settings, system, seed=seed, pairs=len(run.pairs["train"]))
    name = f"{system.label}, seed {seed}"
    arguments = {"settings": run.settings, "folder": str(run.folder), "system": system.name, "seed": seed}
    fine_tune(
        _job(matcher, run.pairs, config),
        folder=folder,
        name=name,
        parallel=run.settings.training.parallel if system.trains_encoder else "",
        recipe=Recipe(function=prepare_job, arguments=arguments),
    )
    if matcher.vocabulary is not None:
        matcher.vocabulary.save(folder / MODEL_FOLDER)
    slow = name if system.trains_encoder else None
    for split in SPLITS:
        predictions = predict(
            matcher,
            run.pairs[split],
            batch_size=config.micro_batch_size,
            precision=config.precision,
            name=slow and f"{slow}: {split}",
        )
        predictions.save(folder / f"{split}.npz")


def prepare_job(*, settings: MatchingSettings, folder: str, system: str, seed: int) -> TrainingJob:
    """That of a system and a seed, for each of several processes. Errors as of `prepare_matching`."""
    run, chosen = prepare_matching(settings, Path(folder)), SYSTEMS[system]
    config = training_of(settings, chosen, seed=seed, pairs=len(run.pairs["train"]))
    return _job(run.matcher(chosen, seed, trained=False), run.pairs, config)


def _job(matcher: Matcher, pairs: Pairs, config: TrainingConfig) -> TrainingJob:
    return TrainingJob(
        model=matcher.model,
        tokenizer=matcher.tokenizer,
        train_examples=matcher.examples(list(in_training_order(pairs["train"], config))),
        validation_examples=matcher.examples(pairs["dev"]),
        collate=matcher.collate,
        config=config,
    )


def training_of(settings: MatchingSettings, system: System, *, seed: int, pairs: int) -> TrainingConfig:
    """How a system is trained on so many pairs.

    Raises ParameterError for values that cannot be.
    """
    given = settings.training
    if system.trains_encoder:
        epochs, batch_size, rate = given.encoder_epochs, given.encoder_batch_size, given.encoder_learning_rate
        at_once = given.encoder_micro_batch_size
    else:
        epochs, batch_size, rate = given.epochs, given.batch_size, given.learning_rate
        at_once = batch_size
    config = config_of_passes(
        items=pairs,
        epochs=epochs,
        batch_size=batch_size,
        micro_batch_size=at_once,
        learning_rate=rate,
        precision=given.precision,
        parallel=given.parallel if system.trains_encoder else "",
        workers=given.workers if system.trains_encoder else 0,
        seed=seed,
    )
    return replace(config, warmup_steps=int(given.warmup_share * config.steps))
