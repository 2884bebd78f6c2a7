"""Choosing answers with several candidates at once (Di Liello et al. 2022, "MSPP", section 4 and appendix
B.1): notebook 09.

Each system is trained with each seed; of its passes over the training questions the one with the highest MAP
on dev is kept. Dev and test are ranked once by each, and its best candidates, once more, by each joint system
(Tables 2 and 7), with the same seed and without further training; candidates beyond them stay below, in
the order of pairwise. (The paper does not say what its joint systems were trained on there. The released
scripts train them on pairwise's best candidates, and drop the others from the metrics too.) All that is
finished stays in the run folder: a stopped run goes on where it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from cdlm_lab.data.records import CandidateSet
from cdlm_lab.experiments.answer_corpora import AnswerCorpus, AnswerSplit, read_answers
from cdlm_lab.experiments.answer_models import AnswerModels, Ranker, new_ranker
from cdlm_lab.experiments.answer_predictions import (
    AnswerPredictions,
    rerank_answers,
    score_answers,
    score_examples,
)
from cdlm_lab.experiments.answer_systems import PAIRWISE, AnswerSystem
from cdlm_lab.experiments.fine_tuning import FineTuning, fine_tune
from cdlm_lab.experiments.parallel import Recipe, TrainingJob
from cdlm_lab.metrics.ranking import mean_average_precision
from cdlm_lab.parameters import parameters_of
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.saved_model import MODEL_FOLDER

HELD_OUT = ("dev", "test")  # that are ranked
WEIGHT_DECAY = 0.01  # the paper's


@dataclass(frozen=True, kw_only=True)
class AnswerSettings:
    """All parameters of a run but its folder."""

    corpus: AnswerCorpus = field(default_factory=AnswerCorpus)
    models: AnswerModels = field(default_factory=AnswerModels)
    training: FineTuning = field(default_factory=FineTuning)

    @property
    def parameters(self) -> dict[str, Any]:
        """By name, those of all parts."""
        return parameters_of(self)


# The parameters of notebook 09.
PARAMETERS = ("run_folder", *AnswerSettings().parameters, "own_question")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """What a trained system says of the questions of one split.

    Attributes:
        every: scores of all candidates.
        best: of those alone that the pairwise system with the same seed ranks highest; None = this is it.
    """

    every: AnswerPredictions
    best: AnswerPredictions | None


@dataclass(frozen=True, kw_only=True)
class AnswerRun:
    """The questions of a run and the folder that it works in."""

    settings: AnswerSettings
    splits: dict[str, AnswerSplit]
    folder: Path

    @property
    def systems(self) -> tuple[AnswerSystem, ...]:
        """In the order of the paper's tables; pairwise is the first."""
        return self.settings.models.chosen

    @property
    def trainings(self) -> list[tuple[AnswerSystem, int]]:
        """Each system with each seed."""
        return [(system, seed) for system in self.systems for seed in range(self.settings.training.seeds)]

    def sets(self, split: str) -> tuple[CandidateSet, ...]:
        """The questions of a split."""
        return self.splits[split].sets

    def folder_of(self, system: AnswerSystem, seed: int) -> Path:
        """Where a system trained with a seed is kept."""
        return self.folder / "systems" / f"{system.name}-{seed}"

    def ranker(self, system: AnswerSystem, seed: int, *, trained: bool) -> Ranker:
        """A new one, or the one that was trained. Errors as of `new_ranker` and `checkpoint_of`."""
        models = self.settings.models
        kept = self.folder_of(system, seed) / MODEL_FOLDER
        source = kept if trained else models.checkpoint_of(system)
        training = self.settings.training
        return new_ranker(
            source,
            models.head_of(system),
            seed=seed,
            dropout=training.dropout,
            attention_dropout=training.attention_dropout,
        )

    @cached_property
    def untrained(self) -> dict[str, Ranker]:
        """Pairwise and the first joint system, loaded once for all that looks before the start; not to be
        trained."""
        return {system.name: self.ranker(system, 0, trained=False) for system in self.systems[:2]}

    def examples_of(self, system: AnswerSystem, split: str) -> int:
        """How many examples a split gives, each candidate being in one."""
        k = self.settings.models.head_of(system).layout.candidates
        return sum(-(-len(one.candidates) // k) for one in self.sets(split))

    def config_of(self, system: AnswerSystem, seed: int) -> TrainingConfig:
        """How a system is trained. Raises ParameterError for values that cannot be."""
        config = self.settings.training.config(items=self.examples_of(system, "train"), seed=seed)
        return replace(config, weight_decay=WEIGHT_DECAY)


# (system, seed) -> split
Found = dict[tuple[str, int], dict[str, Ranked]]


def prepare_answers(settings: AnswerSettings, folder: Path) -> AnswerRun:
    """Read the questions and look whether all is there and fits; nothing is trained.

    Raises ValueError with one clear line for whatever does not fit.
    """
    models = settings.models
    for system in models.chosen:  # before the reading, which may take long
        models.checkpoint_of(system)
    run = AnswerRun(settings=settings, splits=read_answers(settings.corpus), folder=folder)
    for system in run.systems:
        run.config_of(system, 0)
        run.ranker(system, 0, trained=False)  # are there positions enough?
    return run


def rank_answers(run: AnswerRun) -> Found:
    """(system, seed) -> split -> scores; trained where that was not done yet.

    Raises Stopped when it was asked to stop; the same call goes on from there.
    """
    found: Found = {}
    for system, seed in run.trainings:
        if not all(file.is_file() for split in HELD_OUT for file in _files(run, system, seed, split)):
            _rank(run, system, seed, pairwise=found.get((PAIRWISE, seed)))
        found[system.name, seed] = {split: _read(run, system, seed, split) for split in HELD_OUT}
    return found


def _files(run: AnswerRun, system: AnswerSystem, seed: int, split: str) -> list[Path]:
    """Where the scores of a split are kept: those of all candidates, and for a joint system those of the best
    of pairwise."""
    kinds = ("", "_reranked") if system.is_joint else ("",)
    return [run.folder_of(system, seed) / f"{split}{kind}.jsonl" for kind in kinds]


def _read(run: AnswerRun, system: AnswerSystem, seed: int, split: str) -> Ranked:
    every, *best = (
        AnswerPredictions.load(file, sets=run.sets(split)) for file in _files(run, system, seed, split)
    )
    return Ranked(every=every, best=best[0] if best else None)


def _rank(run: AnswerRun, system: AnswerSystem, seed: int, *, pairwise: Mapping[str, Ranked] | None) -> None:
    """Write the scores of all splits; `pairwise`: what a joint system ranks anew."""
    if not (run.folder_of(system, seed) / MODEL_FOLDER).is_dir():
        _train(run, system, seed)
    ranker, training = run.ranker(system, seed, trained=True), run.settings.training
    form = {"batch_size": training.micro_batch_size, "precision": training.precision}
    for split in HELD_OUT:
        name = f"{system.label}, seed {seed}: {split}"
        every, *best = _files(run, system, seed, split)
        score_answers(ranker, run.sets(split), **form, name=name).save(every)
        if best and pairwise:
            rerank_answers(ranker, pairwise[split].every, **form).save(best[0])


def _train(run: AnswerRun, system: AnswerSystem, seed: int) -> None:
    arguments = {"settings": run.settings, "folder": str(run.folder), "system": system.name, "seed": seed}
    fine_tune(
        _job(run, system, seed),
        folder=run.folder_of(system, seed),
        name=f"{system.label}, seed {seed}",
        parallel=run.settings.training.parallel,
        recipe=Recipe(function=prepare_job, arguments=arguments),
    )


def prepare_job(*, settings: AnswerSettings, folder: str, system: str, seed: int) -> TrainingJob:
    """That of a system and a seed, for each of several processes. Errors as of `prepare_answers`."""
    run = AnswerRun(settings=settings, splits=read_answers(settings.corpus), folder=Path(folder))
    return _job(run, next(one for one in run.systems if one.name == system), seed)


def _job(run: AnswerRun, system: AnswerSystem, seed: int) -> TrainingJob:
    ranker, config = run.ranker(system, seed, trained=False), run.config_of(system, seed)
    dev, size = ranker.examples(run.sets("dev")), config.steps * config.batch_size

    def judge(model: Any) -> float:
        form = {"batch_size": config.micro_batch_size, "precision": config.precision}
        scored = score_examples(model, dev, ranker.collate, **form)
        return mean_average_precision(scored.groups())

    return TrainingJob(
        model=ranker.model,
        tokenizer=ranker.tokenizer,
        train_examples=ranker.training_examples(run.sets("train"), size=size, seed=seed),
        validation_examples=dev,
        collate=ranker.collate,
        config=config,
        judge=judge,
    )
