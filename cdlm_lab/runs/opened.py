"""What opening a trained run as a model needs, whatever its task."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any

from cdlm_lab.data.text_profile import TextProfile
from cdlm_lab.parameters import ParameterError, settings_of
from cdlm_lab.runs.runs import SystemRun, Training
from cdlm_lab.training.checkpoints import TRAINING_FOLDER
from cdlm_lab.training.history import HISTORY_FILE, read_history
from cdlm_lab.training.trained import on_this_machine, trained_model, trained_parameters
from cdlm_lab.training.validation import JUDGED


def settings_of_run(kind: type[Any], run: str, **values: Any) -> Any:
    """The settings of a run on this machine, with `trained` naming the run itself, or the run whose models it
    opened."""
    parameters = trained_parameters(run)
    own = {"trained": parameters.get("trained") or run, "run_folder": "", **values}
    return settings_of(kind, {**on_this_machine(parameters), **own})


def score_on_dev(run: SystemRun, system: Any) -> float:
    """The dev score of a system, by what selected its checkpoint; -inf if no history is kept."""
    records = read_history(run.model_folder(Training(system, 0)).parent / TRAINING_FOLDER / HISTORY_FILE)
    values = (record.get(JUDGED, -record.get("eval_loss", inf)) for record in records)
    return max(values, default=-inf)


def profile_of(run: SystemRun, training: Training) -> TextProfile | None:
    """What texts a trained model knows; None = nothing says it."""
    return TextProfile.load(run.model_folder(training))


def system_named(system: str, systems: Sequence[Any]) -> Any:
    """The system of that name; "" = the last one. Raises ParameterError for an unknown name."""
    by_name = {one.name: one for one in systems}
    if system and system not in by_name:
        raise ParameterError(f"system is {system!r}; choose one of {', '.join(by_name)}")
    return by_name[system] if system else systems[-1]


def model_of_run(run: str) -> Path:
    """The folder of the model that a run made. Raises ParameterError if the run is not finished."""
    try:
        return trained_model(run)
    except ParameterError:
        raise ParameterError(
            f"{run}: the run is not finished; run its notebook with the same parameters"
        ) from None
