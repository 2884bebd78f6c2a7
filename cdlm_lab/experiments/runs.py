"""What experiments repeat: systems x seeds, predictions kept on disk, estimates of time, rows of scores.

An experiment is a module with the same verbs in the same order, which its notebook calls:

    settings = read_settings(globals(), experiment.Settings)
    run = experiment.prepare(settings)    # takes the run's folder, reads, checks; costs nothing
    experiment.preview(run)               # what will be read, what is lost, how long it takes
    experiment.train(run)
    predictions = experiment.predict(run)
    report = experiment.report(run, experiment.evaluate(run, predictions))
    experiment.some_view(report)          # every view is something for `display`: HTML, a figure, a widget

The verbs do what is missing in `systems/<training>/`, so a stopped run goes on, and a finished one is opened
again: its scores are those of its report.
"""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial, wraps
from itertools import product
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from pydantic import Field
from torch import nn
from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.files import replaced_file
from cdlm_lab.examples.collate import batches_by_length
from cdlm_lab.models.checkpoint import CheckpointError
from cdlm_lab.models.encoder import AttentionDropout
from cdlm_lab.models.precision import Precision, computing_in, precision_in_words
from cdlm_lab.parameters import ParameterError, parameters_of, settings
from cdlm_lab.progress import Progress
from cdlm_lab.report import Report, Run, open_run
from cdlm_lab.scores import Score
from cdlm_lab.training import trainer
from cdlm_lab.training.checkpoints import MODEL_FOLDER, TRAINING_FOLDER, save_model
from cdlm_lab.training.config import TrainingConfig, Workers
from cdlm_lab.training.fine_tuning import Item, OnLog, Recipe, TrainingJob, config_of_passes, fine_tune
from cdlm_lab.training.history import HISTORY_FILE, read_history, seconds_of_batch
from cdlm_lab.training.processes import Processes
from cdlm_lab.training.trained import SYSTEMS_FOLDER, as_trained, trained_model, trained_parameters
from cdlm_lab.training.trainer import TrainingResult
from cdlm_lab.widgets.html import escaped, seconds_in_words
from cdlm_lab.widgets.live_curve import LiveCurves, in_notebook
from cdlm_lab.widgets.score_tables import split_in_words
from cdlm_lab.widgets.tables import ScoreTable, Shown, html_table

# ---- systems x seeds in the folder of a run ----


@settings
class EpochSettings:
    """How each system is trained with each seed, where all are trained alike."""

    seeds: int = Field(default=1, ge=1)
    epochs: int = Field(default=2, ge=1)
    batch_size: int = Field(default=16, ge=1)
    micro_batch_size: int = Field(default=16, ge=1)
    learning_rate: float = 0.001  # the largest; it falls linearly
    warmup_steps: int = Field(default=20, ge=0)  # at most half of all
    attention_dropout: AttentionDropout = 0.0
    precision: Precision = "auto"
    parallel: str = ""
    workers: Workers = "auto"

    def __post_init__(self) -> None:
        Processes.of(self.parallel)

    def config(self, *, items: int, seed: int, **more: Any) -> TrainingConfig:
        """With one seed, on so many examples. Raises ParameterError for values that cannot be."""
        names = ("epochs", "batch_size", "micro_batch_size", "learning_rate", "warmup_steps", "precision")
        given = parameters_of(self, *names, "parallel", "workers")
        return config_of_passes(items=items, seed=seed, **given, **more)


def drawn(items: Sequence[Item], most: int, *, seed: int | Sequence[int]) -> tuple[Item, ...]:
    """At most so many of the items, in their order; 0 = all."""
    if not 0 < most < len(items):
        return tuple(items)
    numbers = np.random.default_rng(seed).permutation(len(items))[:most]
    return tuple(items[number] for number in sorted(numbers))


def story_or_id(name: str, *, mark: str) -> str:
    """What a question has in common with others, for intervals: of storyworld what stands before the mark in
    its id, the story; else it is a cluster by itself."""
    return name.rpartition(mark)[0] if name.startswith("storyworld-") else name


@dataclass(frozen=True, slots=True)
class System:
    """What is trained and predicts."""

    name: str  # as a parameter
    label: str  # in tables

    @property
    def is_model(self) -> bool:
        """False if nothing is trained, nor left to chance."""
        return True


class Training(NamedTuple):
    """One system with one seed."""

    system: Any  # a `System`
    seed: int

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.system.name}-{self.seed}"

    @property
    def label(self) -> str:
        """Beside a bar."""
        return f"{self.system.label}, seed {self.seed}"

    @property
    def key(self) -> tuple[str, int]:
        """Of its predictions."""
        return self.system.name, self.seed


@dataclass(frozen=True, kw_only=True)
class ExperimentRun:
    """Settings, the folder of the run, and what was read. The values of its `Settings`, a field for each
    parameter of the notebook, are JSON: other processes and `run.json` get them by `asdict`."""

    NAME: ClassVar[str]  # under which reports know the experiment
    SHAPES: ClassVar[tuple[str, ...]] = ()  # settings that a trained model is made for; () = none is opened
    CHOSEN: ClassVar[tuple[str, ...]] = ()  # setting that says which systems there are

    settings: Any  # with `run_folder`, and `trained` and `parallel` if anything is trained
    opened: Run | None = None  # the folder, which this process holds; None = another one does

    @classmethod
    def read(cls, settings: Any) -> Self:
        """The run, without writing: every process of a training calls it."""
        return cls(settings=settings)

    @classmethod
    def open(cls, settings: Any, **reading: Any) -> Self:
        """Take the folder of the run, then read. `reading`: more of what `read` takes. Raises RunError if the
        folder is not free for this run."""
        settings = as_trained(settings, cls.SHAPES, chosen=cls.CHOSEN) if cls.SHAPES else settings
        opened = open_run(settings.run_folder, name=cls.NAME, parameters=asdict(settings))
        return replace(cls.read(settings, **reading), opened=opened)

    @property
    def folder(self) -> Path:
        """Of the run."""
        return Path(self.settings.run_folder)

    @property
    def finished(self) -> Report | None:
        """The report of a run that is opened again after it was finished."""
        return self.opened and self.opened.finished

    @property
    def data(self) -> dict[str, Any]:
        """For the report."""
        return {}

    def recipe(self, **more: str) -> Recipe:
        """How other processes make a job of this run; `more`: of what `job_of_run` takes."""
        experiment = type(self).__module__.removeprefix(f"{__package__}.")
        names = {"experiment": experiment, "run": type(self).__name__}
        return Recipe(function=job_of_run, arguments={**names, "settings": asdict(self.settings), **more})


def with_usual_encoder(settings: Any) -> Any:
    """The settings, with the encoder that they have if none is given."""
    usual = type(settings)()
    names = [name for name in ("encoder", "encoders", "model") if hasattr(usual, name)]
    return replace(settings, **parameters_of(usual, *names))


@dataclass(frozen=True, kw_only=True)
class ModelRun(ExperimentRun):
    """A single model that is trained. An experiment defines

        load(settings)  the model that `trained` names, or a new one, and its tokenizer
        job()           the model and what it is trained on

    and overrides what differs below.
    """

    model: Any
    tokenizer: PreTrainedTokenizerBase

    @property
    def label(self) -> str:
        """Beside the bar of the training."""
        return ""

    def save(self, model: Any, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
        """Write the best model."""
        save_model(model, tokenizer, folder)

    def small_job(self) -> TrainingJob:
        """A new model, on the same examples; from the usual one if what that of the run began with is not
        here and both read the same tokens."""
        given = replace(self.settings, trained="")
        try:
            model, _ = self.load(given)
        except (ParameterError, CheckpointError):
            model, tokenizer = self.load(with_usual_encoder(given))
            if tokenizer.get_vocab() != self.tokenizer.get_vocab():
                raise
        return replace(self, model=model).job()


def train_model(run: ModelRun, *, on_log: OnLog | None = None) -> TrainingResult | None:
    """Train, and write the best model into `model/`; checkpoints and history go to `training/`. There is
    nothing to do, and no result, if `trained` names a model. Raises Stopped: it was asked to stop; the same
    call goes on from there."""
    if run.SHAPES and run.settings.trained:
        return None
    form = {"folder": run.folder, "name": run.label, "parallel": run.settings.parallel}
    return fine_tune(run.job(), **form, recipe=run.recipe(), on_log=on_log, save=run.save)


@dataclass(frozen=True, kw_only=True)
class SystemRun(ExperimentRun):
    """Systems that are each trained with every seed, and predict data sets. An experiment defines

        job(training)                   a new model and what it is trained on
        load(training)                  the trained model with all it needs
        predict_set(loaded, name, bar)  predictions, with `save(file)`
        read_predictions(file, name)    the same from the file; refuses those of other data

    and overrides what differs below.
    """

    SUFFIX: ClassVar[str] = ".jsonl"  # of files of predictions
    ITEMS: ClassVar[str] = "examples"  # what an update has a batch of
    CHOSEN: ClassVar[tuple[str, ...]] = ("systems",)

    settings: Any  # also with `chosen` and `seeds`

    @classmethod
    def open(cls, settings: Any, **reading: Any) -> Self:
        """Raises ParameterError: what `trained` names has not all models that are to be read."""
        return super().open(settings, **reading).with_models()

    def with_models(self) -> Self:
        """Itself. Raises ParameterError: what `trained` names has not all models of this run."""
        for training in self.trainings:
            self.model_folder(training)
        return self

    @property
    def systems(self) -> tuple[Any, ...]:
        """Each a `System`, in the order of the tables."""
        return self.settings.chosen

    @property
    def trainings(self) -> Sequence[Any]:
        """Each system with each seed, one that leaves nothing to chance once; whatever else stands here has
        `system`, `name`, `label` and `key`."""
        every = product(self.systems, range(self.settings.seeds))
        return [Training(system, seed) for system, seed in every if system.is_model or not seed]

    def first(self, system: Any) -> Any:
        """The first training of a system, with seed 0."""
        return next(one for one in self.trainings if one.system == system)

    def sets(self, training: Any) -> tuple[str, ...]:
        """Names of what is predicted."""
        return "dev", "test"

    def parallel(self, training: Any) -> str:
        """The processes that train, "" = this one."""
        return self.settings.parallel

    def trial(self, training: Any) -> TrainingJob:
        """A job whose first batch shows what a training takes."""
        return self.job(training)

    def items(self, system: Any) -> str:
        """What an update of a system has a batch of."""
        return self.ITEMS

    def folder_of(self, training: Any) -> Path:
        """Where the trained model and its predictions are."""
        return self.folder / SYSTEMS_FOLDER / training.name

    def can_begin(self, training: Any) -> bool:
        """False if what a training starts from is not at hand."""
        return True

    def small_job(self) -> TrainingJob | None:
        """The last of its systems that can be trained anew; None = there is none. If the encoder that it
        began with is not here, it begins with the usual one."""
        able = (one for one in reversed(self.trainings) if one.system.is_model and self.can_begin(one))
        if (last := next(able, None)) is None:
            return None
        try:
            return self.job(last)
        except (ParameterError, CheckpointError):
            return replace(self, settings=with_usual_encoder(self.settings)).job(last)

    def model_folder(self, training: Any) -> Path:
        """Where the trained model is. Raises ParameterError: the run that `trained` names has none."""
        if (name := self.settings.trained) and training.system.is_model:
            return trained_model(name, training.name)
        return self.folder_of(training) / MODEL_FOLDER

    def files(self, training: Any) -> dict[str, Path]:
        """Data set -> where predictions for it are."""
        return {name: self.folder_of(training) / f"{name}{self.SUFFIX}" for name in self.sets(training)}

    def is_to_train(self, training: Any) -> bool:
        """True for a model that is not there, without predictions that were made with it."""
        unfinished = not all(map(Path.is_file, self.files(training).values()))
        return training.system.is_model and unfinished and not self.model_folder(training).is_dir()

    @cached_property
    def _loaded(self) -> dict[str, Any]:
        return {}

    def loaded(self, system: Any) -> Any:
        """A system trained with seed 0; kept, for one text after the other."""
        if system.name not in self._loaded:
            self._loaded[system.name] = self.load(self.first(system))
        return self._loaded[system.name]


def chosen_systems(names: str, known: Mapping[str, Any], *, parameter: str = "systems") -> tuple[Any, ...]:
    """The systems of a list of names, in the order of `known`. Raises ParameterError: unknown, or none."""
    given = names.split()
    if not given or (unknown := [name for name in given if name not in known]):
        what = repr(unknown[0]) if given else "nothing"
        raise ParameterError(f"{parameter} names {what}; choose among {', '.join(known)}")
    return tuple(system for name, system in known.items() if name in given)


def shown_system(name: str, systems: Sequence[Any], *, parameter: str) -> Any:
    """The system of a name, "" = the last. Raises ParameterError for one that is not among them."""
    by_name = {system.name: system for system in systems}
    if name and name not in by_name:
        raise ParameterError(f"{parameter} is {name!r}; choose one of {', '.join(by_name)}")
    return by_name[name] if name else systems[-1]


def train(run: SystemRun) -> None:
    """Train what is not trained yet; a notebook shows the curves of all. Raises Stopped if asked to stop; the
    same call goes on from there."""
    curves = LiveCurves() if in_notebook() else None
    for training in run.trainings:
        folder = run.folder_of(training)
        if run.is_to_train(training):
            with curves(training.label) if curves else nullcontext() as curve:
                fine_tune(
                    run.job(training),
                    folder=folder,
                    name=training.label,
                    parallel=run.parallel(training),
                    recipe=run.recipe(training=training.name),
                    on_log=curve,
                )
        elif curves and (records := read_history(folder / TRAINING_FOLDER / HISTORY_FILE)):
            curves.add(training.label, records)


SMALL = 60  # updates


def train_small(run: ModelRun | SystemRun, *, on_log: OnLog) -> None:
    """Train what `run.small_job()` makes for a few updates, to see how it goes; nothing else reads the model.
    There is nothing to do where a whole training was seen; a line says if what it starts from is not here."""
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
    """The job of a run, for each of several processes, all by their names; `training`: which one of a run
    with several. `reading`: more of what `read` of the run takes."""
    module = importlib.import_module(f"{__package__}.{experiment}")
    again = getattr(module, run).read(module.Settings(**settings), **reading)
    if not training:
        return again.job()
    return again.job(next(one for one in again.trainings if one.name == training))


def predict(run: SystemRun) -> dict[tuple[str, int], dict[str, Any]]:
    """(system, seed) -> data set -> predictions, of which those are made that are not there yet."""
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
    """What `evaluate` makes of predictions: rows of the score table, further tables, and more of the data."""

    rows: list[Score]
    tables: dict[str, list[dict[str, Any]]]
    data: dict[str, Any] = field(default_factory=dict)


def once(evaluate: Callable[..., Scores]) -> Callable[..., Scores]:
    """`evaluate`, whose first argument is the run; of a finished one the scores are those of its report."""

    @wraps(evaluate)
    def scores(run: ExperimentRun, *predictions: Any, **more: Any) -> Scores:
        if made := run.finished:
            return Scores(rows=made.rows, tables=made.tables, data=made.data)
        return evaluate(run, *predictions, **more)

    return scores


def control_table(
    report: Report, split: str, table: Callable[..., ScoreTable], **form: Any
) -> ScoreTable | Shown:
    """The table of a split of which something was taken away; a line if the run was not measured on it."""
    if any(row.split == split for row in report.rows):
        return table(report, split=split, **form)
    return Shown("<p>This run was not measured so.</p>")


def report(run: ExperimentRun, scores: Scores) -> Report:
    """Finish the run: write `report.json`; of one that is finished, its report."""
    if run.finished:
        return run.finished
    return run.opened.write_report(scores=scores.rows, tables=scores.tables, data={**run.data, **scores.data})


# ---- predictions ----


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
) -> Iterator[tuple[list[int], list[Any], Any]]:
    """Numbers of examples, the examples, and the model's output on them without their labels, the longest
    first, so that batches hold little padding.

    Args:
        model: is put into evaluation mode and stays on its device.
        batch_size: changes nothing but speed and memory.
        lengths: of the examples, in whatever unit; None = as `length_of` of them says.
        read: from a number to an example; None = by subscript.
        name: beside the progress bar; None = no bar.
    """
    lengths = lengths or [examples.length_of(number) for number in range(len(examples))]
    with Progress(total=len(lengths), desc=name, unit=unit, disable=name is None) as bar:
        for numbers in batches_by_length(lengths, [0] * len(lengths), batch_size):
            chosen = [read(number) if read else examples[number] for number in numbers]
            yield numbers, chosen, output_of(model, chosen, collate, precision=precision)
            bar.update(len(numbers))


@torch.no_grad()  # not inference_mode: the judge of a training predicts between updates
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
    """`replaced_file` in a folder that is made if it is not there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    return replaced_file(file, binary=binary)


def write_page(file: Path, page: str) -> None:
    """HTML, atomically."""
    with new_file(file) as opened:
        opened.write(page)


def write_rows(file: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """A line of JSON for each, atomically."""
    with new_file(file) as opened:
        opened.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read_rows(file: Path, ids: Iterable[str], *, what: str) -> list[dict[str, Any]]:
    """The rows that `write_rows` wrote, each with an `id`. Raises ValueError: they are of other ids, in
    number or order."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]
    if [row["id"] for row in rows] != list(ids):
        raise of_another_run(file, what)
    return rows


def write_arrays(file: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """As `.npz`, atomically."""
    with new_file(file, binary=True) as opened:
        np.savez(opened, **arrays)


def read_arrays(file: Path) -> dict[str, np.ndarray]:
    """The arrays that `write_arrays` wrote."""
    with np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)


def of_another_run(file: Path, what: str) -> ValueError:
    """To be raised for predictions of other questions, claims, ... than those of this run."""
    return ValueError(f"{file} is of other {what}, so of another run: choose another run folder")


SAVE_SECONDS = 20.0


class KeptNumbers:
    """An array whose rows are filled in one by one, nan = not yet; as a context manager it is saved at the
    end, and also when the work is interrupted.

    Write into `values`, float32 of the shape, rows first; `missing` are the numbers of the rows that were not
    there at the start. `file`: `.npy`; None = nothing is kept. Raises ValueError: it has another shape.
    """

    def __init__(self, file: Path | None, shape: tuple[int, ...]) -> None:
        self._file, self._saved = file, time.monotonic()
        self.values = np.full(shape, np.nan, dtype=np.float32)
        if file and file.exists():
            self.values = np.load(file, allow_pickle=False)
            if self.values.shape != shape:
                raise ValueError(
                    f"{file} holds numbers of shape {self.values.shape}, but there are {shape}; it is of "
                    "another run: choose another run folder"
                )
        self.missing = np.flatnonzero(np.isnan(self.values.reshape(len(self.values), -1)).any(axis=1))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if len(self.missing):
            self._save()

    def save_when_due(self) -> None:
        """Save if the last time was 20 seconds ago."""
        if time.monotonic() - self._saved > SAVE_SECONDS:
            self._save()

    def _save(self) -> None:
        self._saved = time.monotonic()
        if self._file:
            with new_file(self._file, binary=True) as opened:
                np.save(opened, self.values, allow_pickle=False)


# ---- before the start ----


def facts_table(facts: Iterable[tuple[str, str]]) -> Shown:
    """What is known before the start, from (name, text)."""
    rows = [[escaped(name), escaped(text)] for name, text in facts]
    return html_table(["", "before the start"], rows, texts=2)


def cost_facts(run: SystemRun) -> list[tuple[str, str]]:
    """What training each system takes, as (name, text); one batch of each is learned from to know that. Of a
    finished run: what it took."""
    if taken := time_taken(run):
        return taken
    trained = run.settings.trained
    rows = [("precision" if trained else "precision of training", precision_in_words(run.settings.precision))]
    for system in run.systems:
        if not system.is_model:
            continue
        if trained:
            rows.append((system.label, f"is trained already, in {trained}"))
            continue
        first, *others = (training for training in run.trainings if training.system == system)
        text = cost_in_words(run.trial(first), items=run.items(system), parallel=run.parallel(first))
        rows.append((system.label, f"{text}; times {1 + len(others)} seeds" if others else text))
    return [*rows, *_made_with(run.settings)]


def _made_with(settings: Any) -> list[tuple[str, str]]:
    """In what the run that is opened differs from the parameters of the notebook as it comes."""
    if not settings.trained:
        return []
    parameters, defaults = trained_parameters(settings.trained), asdict(type(settings)())
    theirs = [
        f"{name} = {parameters[name]!r}"
        for name, default in defaults.items()
        if name not in ("run_folder", "trained") and parameters.get(name, default) != default
    ]
    return [(f"{settings.trained} was made with", ", ".join(theirs))] if theirs else []


def cost_in_words(job: TrainingJob, *, items: str, parallel: str = "") -> str:
    """What a training takes, from the time of one batch; the model ends as it was, on the CPU."""
    model, config = job.model, job.config
    chosen = [job.train_examples[number] for number in range(config.micro_batch_size)]
    seconds, _ = seconds_of_batch(model, partial(job.collate, chosen), precision=config.precision)
    model.to("cpu").eval()
    total = seconds * config.steps * config.batch_size / config.micro_batch_size
    return (
        f"{model.num_parameters() / 1e6:.1f} million parameters; {config.steps:,} updates with "
        f"{config.batch_size} {items}, about {time_in_words(total, Processes.of(parallel))}"
    )


def time_taken(run: ExperimentRun) -> list[tuple[str, str]]:
    """What a finished run took, as (name, text); nothing of one that is not finished."""
    if not run.finished:
        return []
    return [("time", f"this run is finished; it took {seconds_in_words(run.finished.seconds)}")]


def time_in_words(seconds: float, processes: Processes) -> str:
    """How long several processes train, in words, where one alone takes so many seconds."""
    by = f" with {processes.total} processes" if processes.total > 1 else ""
    return f"{seconds_in_words(seconds / processes.total)}{by}"
