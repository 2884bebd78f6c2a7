"""What experiments share: trainings of systems with seeds, stored predictions, cost estimates, score rows.

An experiment is a module with the same functions in the same order, which its notebook calls:

    settings = read_settings(globals(), experiment.Settings)
    run = experiment.prepare(settings)    # reads and checks everything, then claims the run folder
    experiment.preview(run)               # what will be read, what is cut off, how long training takes
    experiment.train(run, curves=LiveCurves())
    predictions = experiment.predict(run)
    report = experiment.report(run, experiment.evaluate(run, predictions))
    experiment.some_view(report)          # every view is something for `display`: HTML, a figure, a widget

Each function does only what is still missing in `systems/<training>/`, so a stopped run continues where it
was, and a finished run is opened again with the scores of its report.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, wraps
from itertools import product
from pathlib import Path
from typing import IO, Any, ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np
import pandas as pd
import torch
from pydantic import Field
from torch import nn
from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.clusters import STORYWORLD
from cdlm_lab.data.files import replaced_file
from cdlm_lab.data.text_profile import (
    Record,
    TextProfile,
    texts_of_record,
    with_profile,
)
from cdlm_lab.encoders.checkpoint import CheckpointError
from cdlm_lab.encoders.encoder import AttentionDropout
from cdlm_lab.encoders.model_folder import MODEL_FOLDER, SCRATCH, SYSTEMS_FOLDER, is_model
from cdlm_lab.encoders.precision import Precision, computing_in
from cdlm_lab.examples.collate import batches_by_tokens
from cdlm_lab.parameters import ParameterError, names_in, parameters_of, settings, settings_of
from cdlm_lab.progress import ALONE, Progress, Share
from cdlm_lab.runs import evaluation
from cdlm_lab.runs.evaluation import Evaluation, Measure, Planned
from cdlm_lab.runs.identity import Identity, Inputs
from cdlm_lab.runs.made import began_with, encoder_facts, noting
from cdlm_lab.runs.report import Report, Run, open_run, plain, refuse_taken
from cdlm_lab.runs.scores import Score, split_in_words
from cdlm_lab.training import trainer
from cdlm_lab.training.checkpoints import TRAINING_FOLDER, write_model
from cdlm_lab.training.config import TrainingConfig, Workers
from cdlm_lab.training.fine_tuning import Item, OnLog, Recipe, TrainingJob, config_of_passes, fine_tune
from cdlm_lab.training.history import HISTORY_FILE, read_history
from cdlm_lab.training.processes import processes_of
from cdlm_lab.training.trained import check_as_trained, trained_model
from cdlm_lab.training.trainer import TrainingResult

# ---- systems x seeds in the folder of a run ----


@settings
class EpochSettings:
    """How each system is trained with each seed, for experiments that train all systems alike."""

    seeds: int = Field(default=1, ge=1)
    epochs: int = Field(default=2, ge=1)
    batch_size: int = Field(default=16, ge=1)
    micro_batch_size: int = Field(default=16, ge=1)
    learning_rate: float = 0.001  # the peak; it falls linearly from there
    warmup_steps: int = Field(default=20, ge=0)  # capped at half of all steps
    attention_dropout: AttentionDropout = 0.0
    precision: Precision = "auto"
    parallel: str = ""
    workers: Workers = "auto"

    def __post_init__(self) -> None:
        processes_of(self.parallel)

    def config(self, *, items: int, seed: int, **more: Any) -> TrainingConfig:
        """The config of a training on `items` examples. Raises ParameterError for impossible values."""
        names = ("epochs", "batch_size", "micro_batch_size", "learning_rate", "warmup_steps", "precision")
        given = parameters_of(self, *names, "parallel", "workers")
        return config_of_passes(items=items, seed=seed, **given, **more)


@settings
class StepSettings:
    """How a model is pretrained, by updates instead of epochs: what notebooks 01 and 08 share."""

    projections: Literal["local", "global"] = "local"  # the model's, with which local attention starts
    dropout: float | None = None  # of hidden states; None = the checkpoint's value
    attention_dropout: AttentionDropout = 0.0
    steps: int = 400
    batch_size: int = 4
    micro_batch_size: int = 4
    learning_rate: float = 0.002
    warmup_steps: int = 50
    decay_power: float = 3.0
    precision: Precision = "auto"
    gradient_checkpointing: bool = False
    evaluate_every: int = 100  # checkpoints are written as often
    parallel: str = ""
    workers: Workers = "auto"
    seed: int = 0

    @property
    def training(self) -> TrainingConfig:
        """The training config. Raises ParameterError for impossible values."""
        how_often = {"save_every": self.evaluate_every, "log_every": max(1, self.steps // 100)}
        return settings_of(TrainingConfig, parameters_of(self) | how_often)


def drawn(items: Sequence[Item], most: int, *, seed: int | Sequence[int]) -> tuple[Item, ...]:
    """A random sample of at most `most` items, kept in their original order; 0 means all."""
    if not 0 < most < len(items):
        return tuple(items)
    numbers = np.random.default_rng(seed).permutation(len(items))[:most]
    return tuple(items[number] for number in sorted(numbers))


def story_or_id(name: str, *, mark: str) -> str:
    """The cluster of a question for bootstrap intervals: for storyworld its story, which is the part of the
    id before the last `mark`; for any other corpus its own id, so that each question is its own cluster."""
    return name.rpartition(mark)[0] if name.startswith("storyworld-") else name


@dataclass(frozen=True, slots=True)
class System:
    """One of the compared systems: something that is trained and makes predictions."""

    name: str  # as written in the notebook's parameters
    label: str  # as shown in tables

    @property
    def is_model(self) -> bool:
        """False for a baseline without trained weights, which gives the same result with every seed."""
        return True


class Training(NamedTuple):
    """One system trained with one seed."""

    system: Any  # a `System`
    seed: int

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.system.name}-{self.seed}"

    @property
    def label(self) -> str:
        """The text beside its progress bar."""
        return f"{self.system.label}, seed {self.seed}"

    @property
    def key(self) -> tuple[str, int]:
        """The key of its predictions in the mapping that `predict` returns."""
        return self.system.name, self.seed


@dataclass(frozen=True, kw_only=True)
class ExperimentRun:
    """Settings, run folder and data. All values of its `Settings`, which has a field for each parameter of
    the notebook, are JSON values: other processes and `run.json` receive them through `asdict`."""

    NAME: ClassVar[str]  # name of the experiment in reports
    SHAPES: ClassVar[tuple[str, ...]] = ()  # settings that shape a model; () = no trained one can be opened
    MEASURES: ClassVar[tuple[Measure, ...]] = ()  # the scores of its report, made of the table of items
    origins: ClassVar[Mapping[str, Any]] = {}  # system -> what its model began with, as far as that is known
    # System -> what made the encoder that it reads with or began with; {} = none.
    encoders: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    settings: Any  # has `run_folder`, and `trained` and `parallel` if anything is trained
    opened: Run | None = None  # the folder as locked by this process; None = another process holds it

    @classmethod
    def read(cls, settings: Any) -> Self:
        """Read the data without writing anything; every process of a distributed training calls this."""
        return cls(settings=settings)

    @classmethod
    def open(cls, settings: Any, **reading: Any) -> Self:
        """Read and check everything, then claim the folder of the run: what is refused leaves no trace.
        `reading`: further arguments of `read`. Raises RunError if the folder is not free for this run."""
        if cls.SHAPES:
            check_as_trained(settings, cls.SHAPES)
        claim = {"name": cls.NAME, "parameters": asdict(settings)}
        refuse_taken(settings.run_folder, **claim)
        run = cls.read(settings, **reading)
        run.check()
        return replace(run, opened=open_run(settings.run_folder, **claim, inputs=run.inputs))

    def check(self) -> None:
        """Raise an error of one line if a model of this run is not there or does not fit; writes nothing."""

    @property
    def inputs(self) -> Inputs:
        """The data and models that decide the numbers of this run."""
        return Inputs(data=[self.settings.corpus])

    @cached_property
    def identity(self) -> Identity:
        """What this run is made of."""
        if self.opened:
            return self.opened.identity
        return Identity.of(self.NAME, plain(asdict(self.settings), "parameters"), self.inputs)

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return Path(self.settings.run_folder)

    def records(self, split: str) -> Iterable[Record]:
        """The records of "train" or "dev" whose texts the models read; () = not known."""
        return ()

    @cached_property
    def profile(self) -> TextProfile | None:
        """What the models' training texts are like; None if it is not known. Made once, in seconds."""
        corpus = self.settings.corpus
        world = "storyworld, reports of invented events" if corpus == STORYWORLD else Path(corpus).name
        inputs = (map(texts_of_record, self.records(split)) for split in ("train", "dev"))
        return TextProfile.of(*inputs, trained_on=world)

    @property
    def finished(self) -> Report | None:
        """The report, if this run was already finished when it was opened; else None."""
        return self.opened and self.opened.finished

    @property
    def data(self) -> dict[str, Any]:
        """Facts about the data, stored in the report."""
        return {}

    def items(self, predictions: Any) -> pd.DataFrame:
        """The table of items (`cdlm_lab.runs.items`) of what `predict` returned."""
        raise NotImplementedError

    @property
    def planned(self) -> Sequence[Planned]:
        """The comparisons that were planned before the run, among the systems it may have."""
        return ()

    def own_predictions(self, file: Path, lines: Sequence[tuple[int, Mapping[str, Any]]], split: str) -> Any:
        """Predictions of another program, from (line number, values) of a file; see `runs.own`."""
        raise NotImplementedError

    def evaluated(self, predictions: Any) -> Evaluation:
        """Scores with intervals, and the planned comparisons, from the items of the predictions."""
        return evaluation.evaluate(self.items(predictions), self.MEASURES, self.planned)

    def recipe(self, **more: str) -> Recipe:
        """How other processes rebuild a job of this run; `more`: further arguments of `job_of_run`."""
        names = {"experiment": type(self).__module__, "run": type(self).__name__}
        return Recipe(function=job_of_run, arguments={**names, "settings": asdict(self.settings), **more})


@dataclass(frozen=True, kw_only=True)
class VariantsRun(ExperimentRun):
    """A run that compares the models of the variants in `settings.checkpoints`, and trains none."""

    @property
    def inputs(self) -> Inputs:
        """The corpus and the models."""
        return Inputs(data=[self.settings.corpus], models=self.settings.checkpoints.values())

    @property
    def encoders(self) -> dict[str, Any]:
        """Variant -> what made its model."""
        return {name: encoder_facts(where) for name, where in self.settings.checkpoints.items()}


def with_usual_encoder(settings: Any) -> Any:
    """The settings with the default encoder of their class in place of the one that was given."""
    usual = type(settings)()
    names = [name for name in ("encoders", "model") if hasattr(usual, name)]
    return replace(settings, **parameters_of(usual, *names))


@dataclass(frozen=True, kw_only=True)
class ModelRun(ExperimentRun):
    """A run that trains a single model. An experiment defines

        load(settings)  returns the model that `trained` names, or a new one, and its tokenizer
        job()           returns the model and the data it is trained on

    and overrides what differs below.
    """

    model: Any
    tokenizer: PreTrainedTokenizerBase

    @property
    def inputs(self) -> Inputs:
        """The corpus, and the model that is opened or begun with."""
        trained = self.SHAPES and self.settings.trained
        model = trained_model(trained) if trained else self.settings.model
        return Inputs(data=[self.settings.corpus], models=[str(model)])

    @property
    def label(self) -> str:
        """The text beside the progress bar of the training, which says which model it is."""
        return ""

    def write(self, model: Any, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
        """Write the best model and its tokenizer into `folder`."""
        write_model(model, tokenizer, folder)

    def small_job(self) -> TrainingJob:
        """A training job for a new model on the same examples. If the checkpoint that the run started from is
        missing here, the default one is used, provided that its tokenizer has the same vocabulary."""
        given = replace(self.settings, trained="")
        try:
            model, _ = self.load(given)
        except (ParameterError, CheckpointError):
            model, tokenizer = self.load(with_usual_encoder(given))
            if tokenizer.get_vocab() != self.tokenizer.get_vocab():
                raise
        return replace(self, model=model).job()


def train_model(run: ModelRun, *, on_log: OnLog | None = None) -> TrainingResult | None:
    """Train, and write the best model into `model/`; checkpoints and history go to `training/`. If `trained`
    names a model, does nothing and returns None. Raises Stopped if a stop was requested; calling again
    continues from there."""
    if run.SHAPES and run.settings.trained:
        return None
    form = {"folder": run.folder, "name": run.label, "parallel": run.settings.parallel}
    job, parent = run.job(), run.settings.model if run.settings.model != SCRATCH else ""
    write = noting(run.identity, job, system=run.label, parent=parent, write=with_profile(run, run.write))
    return fine_tune(job, **form, recipe=run.recipe(), on_log=on_log, write=write)


@dataclass(frozen=True, kw_only=True)
class SystemRun(ExperimentRun):
    """A run that trains each of several systems with every seed and predicts data sets. An experiment defines

        job(training)                   returns a new model and the data it is trained on
        load(training)                  returns the trained model with all it needs to predict
        predict_set(loaded, name, bar)  returns predictions for a data set, which have a `save(file)`
        read_predictions(file, name)    reads them from the file; raises if they are for other data

    and overrides what differs below.
    """

    UNIT: ClassVar[str] = "examples"  # what the examples of a batch are called in texts

    settings: Any  # also has `chosen` and `seeds`

    def check(self) -> None:
        """Raise ParameterError if the run in `trained` lacks a model that this run needs."""
        for training in self.trainings:
            self.model_folder(training)

    @property
    def inputs(self) -> Inputs:
        """The corpus, the models that are opened or begun with, and the encoders that stay as they are."""
        learned = [one for one in self.trainings if one.system.is_model]
        opened = map(self.model_folder if self.settings.trained else self.begins_with, learned)
        return Inputs(data=[self.settings.corpus], models=[*filter(None, map(str, opened)), *self.frozen])

    @property
    def origins(self) -> dict[str, Any]:
        """System -> what its first model began with, as far as that is known."""
        learned = {one.system.name: one for one in reversed(self.trainings) if one.system.is_model}
        origins = {name: began_with(self.model_folder(one)) for name, one in learned.items()}
        return {name: origin for name, origin in origins.items() if origin}

    @property
    def encoders(self) -> dict[str, Any]:
        """System -> what made the encoder that it reads with or began with; {} = none."""
        return {one.name: self._encoder(one) for one in self.systems}

    def _encoder(self, system: Any) -> dict[str, Any]:
        first, frozen = self.first(system), self.reads(system)
        if self.settings.trained and system.is_model and not frozen:
            return encoder_facts("", trained=self.model_folder(first))
        return encoder_facts(frozen or (self.begins_with(first) if system.is_model else ""))

    @property
    def frozen(self) -> list[str]:
        """The encoders whose vectors are read, and that are not trained."""
        return [*dict.fromkeys(filter(None, map(self.reads, self.systems)))]

    def reads(self, system: Any) -> str:
        """The encoder whose vectors a system reads and does not train; "" = none."""
        return ""

    def begins_with(self, training: Any) -> str:
        """The checkpoint that a training begins with; "" = none."""
        return ""

    @property
    def systems(self) -> tuple[Any, ...]:
        """The compared systems, each a `System`, in the order of the tables."""
        return self.settings.chosen

    @property
    def trainings(self) -> Sequence[Any]:
        """Every system with every seed; a system without trained weights only once, with seed 0. Subclasses
        may return other objects that have `system`, `name`, `label` and `key`."""
        every = product(self.systems, range(self.settings.seeds))
        return [Training(system, seed) for system, seed in every if system.is_model or not seed]

    def first(self, system: Any) -> Any:
        """The first training of a system, the one with seed 0."""
        return next(one for one in self.trainings if one.system == system)

    def sets(self, training: Any) -> tuple[str, ...]:
        """Names of the data sets that this training predicts."""
        return "dev", "test"

    def parallel(self, training: Any) -> str:
        """The processes that train, such as "ddp 4"; "" means this process alone."""
        return self.settings.parallel

    def trial(self, training: Any) -> TrainingJob:
        """A training job whose first batch is timed to estimate the cost of the training."""
        return self.job(training)

    def unit(self, system: Any) -> str:
        """What the examples of a batch of this system are called in texts, such as "pairs"."""
        return self.UNIT

    def folder_of(self, training: Any) -> Path:
        """The folder of the trained model and its predictions."""
        return self.folder / SYSTEMS_FOLDER / training.name

    def can_begin(self, training: Any) -> bool:
        """False if the checkpoint that this training would start from is not available."""
        return True

    def small_job(self) -> TrainingJob | None:
        """A training job for the last system that can be trained from scratch here; None if there is none. If
        the configured encoder is missing, the default one is used."""
        able = (one for one in reversed(self.trainings) if one.system.is_model and self.can_begin(one))
        if (last := next(able, None)) is None:
            return None
        try:
            return self.job(last)
        except (ParameterError, CheckpointError):
            return replace(self, settings=with_usual_encoder(self.settings)).job(last)

    def model_folder(self, training: Any) -> Path:
        """The folder of the trained model. Raises ParameterError if the run in `trained` lacks it."""
        if (name := self.settings.trained) and training.system.is_model:
            return trained_model(name, training.name)
        return self.folder_of(training) / MODEL_FOLDER

    def files(self, training: Any) -> dict[str, Path]:
        """Data set name -> file of its predictions."""
        return {name: self.folder_of(training) / f"{name}.parquet" for name in self.sets(training)}

    def is_to_train(self, training: Any) -> bool:
        """True if both the model and at least one of its prediction files are missing."""
        unfinished = not all(map(Path.is_file, self.files(training).values()))
        return training.system.is_model and unfinished and not is_model(self.model_folder(training))

    @cached_property
    def _loaded(self) -> dict[str, Any]:
        return {}

    def loaded(self, system: Any) -> Any:
        """The system as trained with seed 0; cached, so that it can read one text after another."""
        if system.name not in self._loaded:
            self._loaded[system.name] = self.load(self.first(system))
        return self._loaded[system.name]


def chosen_systems(names: str, known: Mapping[str, Any], *, parameter: str = "systems") -> tuple[Any, ...]:
    """The named systems, in the order of `known`. Raises ParameterError: unknown name, or none."""
    given = names_in(names, parameter)
    if not given or (unknown := [name for name in given if name not in known]):
        what = repr(unknown[0]) if given else "nothing"
        raise ParameterError(f"{parameter} names {what}; choose among {', '.join(known)}")
    return tuple(system for name, system in known.items() if name in given)


class Curves(Protocol):
    """Shows the learning curves of several trainings, as `views.live_curve.LiveCurves` does."""

    def __call__(self, name: str) -> AbstractContextManager[OnLog]:
        """Context in which the records of one training are shown."""

    def add(self, name: str, records: Iterable[Mapping[str, Any]]) -> None:
        """Show the records of a training that has ended."""


def train(run: SystemRun, *, curves: Curves | None = None) -> None:
    """Train every model that is not trained yet. `curves` shows the learning curves of all; None = only the
    line of progress. Raises Stopped if a stop was requested; calling again continues from there."""
    for training in run.trainings:
        folder = run.folder_of(training)
        if run.is_to_train(training):
            with curves(training.label) if curves else nullcontext() as curve:
                job, parent = run.job(training), run.begins_with(training)
                own = with_profile(run, write_model)
                fine_tune(
                    job,
                    folder=folder,
                    name=training.label,
                    parallel=run.parallel(training),
                    recipe=run.recipe(training=training.name),
                    on_log=curve,
                    write=noting(run.identity, job, system=training.system.name, parent=parent, write=own),
                )
        elif curves and (records := read_history(folder / TRAINING_FOLDER / HISTORY_FILE)):
            curves.add(training.label, records)


SMALL = 60  # most optimizer steps of a small training


def train_small(run: ModelRun | SystemRun, *, on_log: OnLog) -> None:
    """Train the job of `run.small_job()` for a few steps as a demonstration; the model is not used further.
    Does nothing if the run trained its own models. Prints a line if the starting checkpoint is missing."""
    try:
        job = run.small_job() if run.settings.trained else None
    except (ParameterError, CheckpointError) as error:
        print(f"No new one is trained: {error}")
        return
    if job is None:
        return
    steps = min(SMALL, job.config.steps)
    often = {"evaluate_every": steps // 3 or 1, "save_every": steps, "log_every": 2}
    config = replace(job.config, steps=steps, warmup_steps=min(job.config.warmup_steps, steps // 4), **often)
    trainer.train(replace(job, config=config, judge=None), run.folder / "small", on_log=on_log)


def job_of_run(
    *, experiment: str, run: str, settings: Mapping[str, Any], training: str = "", **reading: str
) -> TrainingJob:
    """Rebuild the job of a run in each of several processes, from names alone; `training`: which one, for a
    run with several. `reading`: further arguments of the run's `read`."""
    module = importlib.import_module(experiment)
    again = getattr(module, run).read(module.Settings(**settings), **reading)
    if not training:
        return again.job()
    return again.job(next(one for one in again.trainings if one.name == training))


def predict(run: SystemRun) -> dict[tuple[str, int], dict[str, Any]]:
    """(system, seed) -> data set -> predictions; missing ones are computed and saved, others read."""
    predictions = {}
    for training in run.trainings:
        files = run.files(training)
        missing = [name for name, file in files.items() if not file.is_file()]
        loaded = run.load(training) if missing else None
        for name in missing:
            run.predict_set(loaded, name, f"{training.label}: {split_in_words(name)}").save(files[name])
        predictions[training.key] = {name: run.read_predictions(file, name) for name, file in files.items()}
    return predictions


@dataclass(frozen=True, kw_only=True)
class Scores:
    """The result of `evaluate`: rows of the score table, further tables, more facts about the data, and the
    table of items from which the rows were made (None = that of a finished run, in its folder)."""

    rows: list[Score]
    tables: dict[str, list[dict[str, Any]]]
    data: dict[str, Any] = field(default_factory=dict)
    items: pd.DataFrame | None = None

    @classmethod
    def of(cls, made: Evaluation, *, data: Mapping[str, Any] | None = None, **tables: Any) -> Self:
        """The scores of an evaluation, with its planned comparisons and further `tables`."""
        named = {"comparisons": made.comparisons, **tables}
        return cls(rows=made.rows, tables=named, data=dict(data or {}), items=made.items)


def once(evaluate: Callable[..., Scores]) -> Callable[..., Scores]:
    """Wrap `evaluate(run, ...)` so that for a finished run it returns the scores of the stored report."""

    @wraps(evaluate)
    def scores(run: ExperimentRun, *predictions: Any, **more: Any) -> Scores:
        if made := run.finished:
            return Scores(rows=made.rows, tables=made.tables, data=made.data)
        return evaluate(run, *predictions, **more)

    return scores


def report(run: ExperimentRun, scores: Scores) -> Report:
    """Finish the run and write `report.json`; if it is finished already, return the existing report."""
    if run.finished:
        return run.finished
    data = {**run.data, **scores.data} | ({"began_with": run.origins} if run.origins else {})
    encoders = {system: facts for system, facts in run.encoders.items() if facts}
    form = {"scores": scores.rows, "tables": scores.tables, "data": data, "items": scores.items}
    return run.opened.write_report(**form, encoders=encoders)


# ---- predictions: what a folder holds is of the data and models that its run was begun with ----


def outputs_by_length(
    model: nn.Module,
    examples: Any,
    collate: Callable[..., Mapping[str, torch.Tensor]],
    *,
    batch_size: int,
    lengths: Sequence[int] | None = None,
    read: Callable[[int], Any] | None = None,
    precision: Precision = "float32",
    name: str | None = None,
    unit: str = "example",
    share: Share = ALONE,
) -> Iterator[tuple[list[int], list[Any], Any]]:
    """Yield (indices, examples, model output without labels) for each batch of this process's share, longest
    examples first, so that batches contain little padding.

    Args:
        model: is put into evaluation mode and stays on its device.
        batch_size: of the longest examples; affects only speed and memory.
        lengths: of the examples, in any unit; None = from `examples.length_of`.
        read: function from an index to an example; None = `examples[index]`.
        name: text beside the progress bar; None = no bar.
    """
    lengths = lengths or [examples.length_of(number) for number in range(len(examples))]
    with Progress(total=len(lengths), desc=name, unit=unit, disable=name is None) as bar:
        for numbers in share.of(batches_by_tokens(lengths, [0] * len(lengths), batch_size)):
            chosen = [read(number) if read else examples[number] for number in numbers]
            yield numbers, chosen, output_of(model, chosen, collate, precision=precision)
            bar.update(len(numbers))


@torch.no_grad()  # not inference_mode: the judge of a training predicts between optimizer steps
def output_of(
    model: nn.Module,
    examples: Sequence[Any],
    collate: Callable[..., Mapping[str, torch.Tensor]],
    *,
    precision: Precision = "float32",
) -> Any:
    """The model's output on a batch without its labels, in evaluation mode, on the model's device."""
    model.eval()
    device = next(model.parameters()).device
    batch = {key: tensor.to(device) for key, tensor in collate(examples).items() if key != "labels"}
    with computing_in(precision, device):
        return model(**batch)


def new_file(file: Path, *, binary: bool = False) -> AbstractContextManager[IO]:
    """Open a file that is replaced atomically on closing; its folder is created if it does not exist."""
    file.parent.mkdir(parents=True, exist_ok=True)
    return replaced_file(file, binary=binary)


def write_page(file: Path, page: str) -> None:
    """Write an HTML page atomically."""
    with new_file(file) as opened:
        opened.write(page)
