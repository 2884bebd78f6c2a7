"""What a notebook shows before it trains: a table of facts, among them the size and the estimated time of
each training, or for a finished run the time that it took."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from typing import Any

from cdlm_lab.encoders.precision import precision_in_words
from cdlm_lab.runs.runs import ExperimentRun, SystemRun
from cdlm_lab.training.fine_tuning import TrainingJob
from cdlm_lab.training.history import seconds_of_batch
from cdlm_lab.training.processes import processes_of
from cdlm_lab.training.trained import trained_parameters
from cdlm_lab.views.html import escaped, seconds_in_words
from cdlm_lab.views.tables import Shown, html_table


def facts_table(facts: Iterable[tuple[str, str]]) -> Shown:
    """A table of (name, text) facts, to be shown before training starts."""
    rows = [[escaped(name), escaped(text)] for name, text in facts]
    return html_table(["", "before the start"], rows, texts=2)


def cost_facts(run: SystemRun) -> list[tuple[str, str]]:
    """The training cost of each system as (name, text), estimated by training on one batch of each. For a
    finished run, the time it took."""
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
        text = cost_in_words(run.trial(first), items=run.unit(system), parallel=run.parallel(first))
        rows.append((system.label, f"{text}; times {1 + len(others)} seeds" if others else text))
    return [*rows, *_made_with(run.settings)]


def _made_with(settings: Any) -> list[tuple[str, str]]:
    """Parameters of the opened run that differ from this run's."""
    if not settings.trained:
        return []
    parameters = trained_parameters(settings.trained)
    theirs = [
        f"{name} = {parameters[name]!r}"
        for name, value in asdict(settings).items()
        if name not in ("run_folder", "trained") and parameters.get(name, value) != value
    ]
    return [(f"{settings.trained} was made with", ", ".join(theirs))] if theirs else []


def cost_in_words(job: TrainingJob, *, items: str, parallel: str = "") -> str:
    """Size and estimated time of a training, from one timed batch; its model ends unchanged, on the CPU."""
    model, config = job.model, job.config
    chosen = [job.train_examples[number] for number in range(config.micro_batch_size)]
    seconds, _ = seconds_of_batch(model, partial(job.collate, chosen), precision=config.precision)
    model.to("cpu").eval()
    total = seconds * config.steps * config.batch_size / config.micro_batch_size
    return (
        f"{model.num_parameters() / 1e6:.1f} million parameters; {config.steps:,} updates with "
        f"{config.batch_size} {items}, about {time_in_words(total, processes_of(parallel))}"
    )


def time_taken(run: ExperimentRun) -> list[tuple[str, str]]:
    """The wall time of a finished run, as (name, text); empty for a run that is not finished."""
    if not run.finished:
        return []
    return [("time", f"this run is finished; it took {seconds_in_words(run.finished.seconds)}")]


def time_in_words(seconds: float, processes: int) -> str:
    """The training time of several processes in words; `seconds`: what a single process would take."""
    by = f" with {processes} processes" if processes > 1 else ""
    return f"{seconds_in_words(seconds / processes)}{by}"
