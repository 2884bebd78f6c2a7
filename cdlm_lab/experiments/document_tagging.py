"""Document-attentive tagging (Doc-ARC): notebook 07.

Each system is trained with each seed; of its passes over the training documents the one with the highest F1
on dev is kept. All that is finished stays in the run folder: a stopped run goes on where it was.

The paper gives passes, patience, batch size and rate, and says no more of the training. From the released
code come: what is kept and patience by span F1 on dev (`select_by`), a learning rate that stays as it is
(`schedule`), AdamW with weight decay 0.01 on all but biases and norms (`weight_decay`) and epsilon 1e-6, and
gradients of any length. Ours: a batch has neighbouring sequences of a document, whose contexts overlap, and
batches are shuffled (that costs a fraction of drawing sequences from everywhere; all systems are trained so);
patience ends after that many passes, in the released code after one more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from cdlm_lab.examples.tag_examples import TagExamples, document_runs
from cdlm_lab.examples.tag_sequences import SplitDocument
from cdlm_lab.experiments.fine_tuning import config_of_passes, fine_tune
from cdlm_lab.experiments.parallel import TrainingJob
from cdlm_lab.experiments.tag_corpora import TagCorpus, TaggedCorpus, read_tagged
from cdlm_lab.experiments.tag_predictions import TagPredictions, predict_tags
from cdlm_lab.experiments.tagging_models import Tagger, TaggerParts, TaggingModels, new_tagger
from cdlm_lab.experiments.tagging_systems import TagSystem, tag_systems
from cdlm_lab.metrics.span_f1 import READINGS, f1_of, span_counts
from cdlm_lab.parameters import ParameterError, check_choice, check_least, check_types, parameters_of
from cdlm_lab.progress import tracked
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.saved_model import MODEL_FOLDER

HELD_OUT = ("dev", "test")  # that are tagged
SELECT_BY = ("f1", "loss")
SCHEDULES = ("constant", "linear")


@dataclass(frozen=True, kw_only=True)
class TaggingTraining:
    """Which systems are trained, and how; the paper's values are in brackets.

    Attributes:
        systems: their names, separated by spaces (see experiments/tagging_systems.py).
        seeds: how many times each is trained, with seeds from 0 [5].
        sweep: further numbers of occurrences K that Doc-ARC is trained with, for Figure 5; "" = none.
        epochs, batch_size, learning_rate: of the static systems [30, 16, 0.001].
        encoder_epochs, encoder_learning_rate: where the encoder is trained, in batches of the same size
            [dynamic: 30, 0.0001, batches of 4; fine-tuned BERT: 10, 0.00002].
        patience: passes without a better one on dev after which a training ends; 0 = it goes to its end.
        select_by: which pass is better: that of the higher span F1 on dev, `f1`, or of the lower `loss`.
        schedule: of the learning rate: `constant`, or `linear`, a warm-up of a tenth and then down to 0.
        weight_decay: of AdamW; biases and norms are not decayed.
        reading: of spans, for the scores: `seqeval`, `strict` or `released` (see metrics/span_f1.py).
    """

    systems: str = "bert-lstm doc-arc"
    seeds: int = 1
    sweep: str = ""
    epochs: int = 4
    batch_size: int = 16
    learning_rate: float = 0.003
    encoder_epochs: int = 3
    encoder_learning_rate: float = 0.001
    patience: int = 0
    select_by: str = "f1"
    schedule: str = "constant"
    weight_decay: float = 0.01
    reading: str = "seqeval"

    def __post_init__(self) -> None:
        check_types(self)
        tag_systems(self.systems)
        check_least(self, 1, "seeds", "epochs", "batch_size", "encoder_epochs")
        check_least(self, 0, "patience")
        check_choice(self, SELECT_BY, "select_by")
        check_choice(self, SCHEDULES, "schedule")
        check_choice(self, READINGS, "reading")
        if any(not (one.isdigit() and int(one)) for one in self.sweep.split()):
            raise ParameterError(f'sweep is {self.sweep!r}; write whole numbers above 0, such as "2 5 25"')


@dataclass(frozen=True, kw_only=True)
class TaggingSettings:
    """All parameters of a run but its folder."""

    corpus: TagCorpus = field(default_factory=TagCorpus)
    models: TaggingModels = field(default_factory=TaggingModels)
    training: TaggingTraining = field(default_factory=TaggingTraining)

    @property
    def parameters(self) -> dict[str, Any]:
        """By name, those of all parts."""
        return parameters_of(self)


# The parameters of notebook 07.
PARAMETERS = ("run_folder", *TaggingSettings().parameters, "own_text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """One system with a number of occurrences K (0 = it reads no context) and a seed."""

    system: TagSystem
    most: int
    seed: int

    @property
    def name(self) -> str:
        """As a folder."""
        return f"{self.system.name}{f'-{self.most}' if self.most else ''}-{self.seed}"

    @property
    def label(self) -> str:
        """Beside a progress bar."""
        return f"{self.system.label}{f', K = {self.most}' if self.most else ''}, seed {self.seed}"


@dataclass(frozen=True, kw_only=True)
class TaggingRun:
    """The documents of a run and the folder that it works in."""

    settings: TaggingSettings
    corpus: TaggedCorpus
    folder: Path
    _cut: dict[tuple[bool, bool], list[SplitDocument]] = field(default_factory=dict, repr=False)
    _examples: dict[tuple[bool, bool, int], Mapping[str, TagExamples]] = field(
        default_factory=dict, repr=False
    )

    @property
    def systems(self) -> tuple[TagSystem, ...]:
        """In the order of the tables."""
        return tag_systems(self.settings.training.systems)

    @property
    def trainings(self) -> list[Training]:
        """Each system with each seed, then those of the sweep."""
        given, models = self.settings.training, self.settings.models
        seeds = range(given.seeds)
        found = [
            Training(system=system, most=models.occurrences if system.context else 0, seed=seed)
            for system in self.systems
            for seed in seeds
        ]
        swept = [
            Training(system=system, most=most, seed=seed)
            for system in self.systems
            if system.name == "doc-arc"
            for most in sorted({int(one) for one in given.sweep.split()} - {models.occurrences})
            for seed in seeds
        ]
        return found + swept

    def row_of(self, training: Training) -> str:
        """The name of its scores: that of the system, in the sweep with K."""
        swept = training.most not in (0, self.settings.models.occurrences)
        return f"{training.system.name}-{training.most}" if swept else training.system.name

    def folder_of(self, training: Training) -> Path:
        """Where a trained system is kept."""
        return self.folder / "systems" / training.name

    @cached_property
    def parts(self) -> TaggerParts:
        """Of its taggers."""
        return TaggerParts(settings=self.settings.models, labels=self.corpus.labels, cache=self.folder)

    def tagger(self, training: Training, *, trained: bool) -> Tagger:
        """A new one, or the one that was trained. Errors as of `new_tagger`."""
        kept = self.folder_of(training) / MODEL_FOLDER if trained else None
        return new_tagger(training.system, self.parts, most=training.most, seed=training.seed, trained=kept)

    def is_trained(self, training: Training) -> bool:
        """Whether its model is there."""
        return (self.folder_of(training) / MODEL_FOLDER).is_dir()

    def examples(self, tagger: Tagger, training: Training) -> Mapping[str, TagExamples]:
        """Those of each split. Trainings that read documents alike share them."""
        encoder = training.system.trains_encoder, training.system.small
        key = *encoder, training.most
        if key not in self._examples:
            splits = self.corpus.documents
            if encoder not in self._cut:
                documents = list(chain.from_iterable(splits.values()))
                cut = tagger.cut(tracked(documents, desc="sentences in pieces", unit=" documents"))
                self._cut[encoder] = cut
            every = tagger.examples_of(self._cut[encoder])
            sizes = np.cumsum([len(documents) for documents in splits.values()])
            split_of = np.searchsorted(sizes, every.sequences[:, 0], side="right")
            self._examples[key] = {
                name: every.in_order(np.flatnonzero(split_of == number)) for number, name in enumerate(splits)
            }
        return self._examples[key]

    @property
    def shown(self) -> Training:
        """Whose tags are shown: of the system that is the last in the table, or the last that attends to the
        document, if one does; with seed 0."""
        system = sorted(self.systems, key=lambda one: one.context)[-1]
        return next(one for one in self.trainings if one.system is system)


def prepare_tagging(settings: TaggingSettings, folder: Path) -> TaggingRun:
    """Read the documents; nothing is trained.

    Raises ValueError with one clear line for whatever does not fit.
    """
    run = TaggingRun(settings=settings, corpus=read_tagged(settings.corpus), folder=folder)
    for system in run.systems:
        training_config(settings, system, seed=0, items=1)
    return run


def tag_documents(run: TaggingRun) -> dict[Training, dict[str, TagPredictions]]:
    """Training -> split -> tags; trained where that was not done yet.

    Raises Stopped when it was asked to stop; the same call goes on from there.
    """
    return {training: _tagged(run, training) for training in run.trainings}


def _tagged(run: TaggingRun, training: Training) -> Mapping[str, TagPredictions]:
    if not run.is_trained(training):
        _train(run, training)
    tagger = run.tagger(training, trained=True)
    examples, found = run.examples(tagger, training), {}
    for split in HELD_OUT:
        file = run.folder_of(training) / f"{split}.npz"
        if not file.is_file():
            predict_tags(tagger, examples[split], name=f"{training.label}: {split}").save(file)
        found[split] = TagPredictions.load(file, examples=examples[split])
    return found


def _train(run: TaggingRun, training: Training) -> None:
    tagger = run.tagger(training, trained=False)
    examples = run.examples(tagger, training)
    for split in ("train", "dev"):
        tagger.ready(examples[split])
    train = examples["train"]
    config = training_config(run.settings, training.system, seed=training.seed, items=len(train))

    def judge(model: nn.Module) -> float:
        tagged = predict_tags(replace(tagger, model=model), examples["dev"])
        counts = span_counts(tagged.gold(), tagged.predicted(), reading=run.settings.training.reading)
        return float(f1_of(counts.sum(axis=0)))

    job = TrainingJob(
        model=tagger.model,
        tokenizer=tagger.tokenizer,
        train_examples=train.in_order(in_runs(train, config)),
        validation_examples=examples["dev"],
        collate=tagger.collate_of(train),  # the documents of all splits are the same list
        config=config,
        judge=judge if run.settings.training.select_by == "f1" else None,
    )
    fine_tune(job, folder=run.folder_of(training), name=training.label)


def in_runs(examples: TagExamples, config: TrainingConfig) -> np.ndarray:
    """Numbers of at least as many examples as training takes; the batches of each pass are drawn anew.

    A pass leaves out what does not fill a batch, others in each: batches of the next one must begin where
    training begins one. With fewer examples than a batch has, passes follow each other without a gap.
    """
    size = config.batch_size
    whole = len(examples) // size * size or len(examples)
    passes = -(-config.steps * size // whole)
    return np.concatenate(
        [
            document_runs(examples, batch_size=size, rng=np.random.default_rng([config.seed, number]))[:whole]
            for number in range(passes)
        ]
    )


def training_config(settings: TaggingSettings, system: TagSystem, *, seed: int, items: int) -> TrainingConfig:
    """How a system is trained on so many sequences.

    Raises ParameterError for values that cannot be.
    """
    given = settings.training
    epochs, rate = given.epochs, given.learning_rate
    if system.trains_encoder:
        epochs, rate = given.encoder_epochs, given.encoder_learning_rate
    falls = given.schedule == "linear"
    config = config_of_passes(
        items=items,
        epochs=epochs,
        batch_size=given.batch_size,
        micro_batch_size=given.batch_size,
        learning_rate=rate,
        warmup_steps=None if falls else 0,
        patience=given.patience,
        precision=settings.models.precision,
        workers=0,  # what taggers read is made already, and too large to be sent
        seed=seed,
    )
    return replace(
        config,
        decay_power=1.0 if falls else 0.0,
        weight_decay=given.weight_decay,
        adam_epsilon=1e-6,
        max_gradient_norm=0.0,
    )
