"""Trained models by the name of their run: a run folder, or a run that comes with the project.

`storyworld/coreference` and the like are run folders without predictions and checkpoints: `run.json` has the
parameters they were trained with, and the models are where a run has them, in half precision, with their
training histories. Language models, from which encoders are loaded, are stored there directly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

from cdlm_lab.data.files import denied
from cdlm_lab.encoders.model_folder import (
    MODEL_FOLDER,
    NO_CONFIG,
    NONE_SHIPPED,
    STORYWORLD,
    SYSTEMS_FOLDER,
    fault_of_weights,
    folder_of_name,
    is_model,
    names_with,
)
from cdlm_lab.parameters import RUN_FILE, ParameterError

REPORT_FILE = "report.json"
THRESHOLD, MERGED = "threshold", "merged"  # of coreference: in its reports, and in shipped runs
Entry = TypeVar("Entry")


def shipped_runs() -> list[str]:
    """The names of all trained runs that come with this copy of the project."""
    return names_with(RUN_FILE)


def folder_of_run(name: str) -> Path:
    """The path of a run of this name, existing or not: in the project, or a folder."""
    return folder_of_name(name) or Path(name)


def trained_run(name: str) -> Path:
    """The folder of a trained run. Raises ParameterError, listing the shipped ones, if there is none."""
    path = folder_of_run(name)
    if denial := denied(path / RUN_FILE):
        raise ParameterError(f"trained is {name!r}: {denial}")
    if (path / RUN_FILE).is_file():
        return path
    known = ", ".join(shipped_runs()) or NONE_SHIPPED
    raise ParameterError(
        f"trained is {name!r}, where no trained run is; name a run folder, one that comes with the project "
        f'({known}), or "" to train'
    )


def trained_parameters(name: str) -> dict[str, Any]:
    """The parameters of a trained run. Raises ParameterError if there is no such run or it is damaged."""
    return dict(_entry(name, "parameters", dict))


def on_this_machine(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a run that another machine may have made: half precision, which is slow or missing on
    many devices, becomes `auto`; attention is computed as this device does it, and in this process alone."""
    here = {"attention": "auto", "parallel": "", "workers": "auto"}
    if parameters.get("precision") != "float32":
        here["precision"] = "auto"
    return {name: here.get(name, value) for name, value in parameters.items()}


def run_name(name: str) -> str:
    """The experiment of a trained run. Raises ParameterError if there is no such run or it is damaged."""
    return _entry(name, "name", str)


def _entry(name: str, key: str, kind: type[Entry]) -> Entry:
    file = trained_run(name) / RUN_FILE
    try:
        value = json.loads(file.read_text(encoding="utf-8"))[key]
        if not isinstance(value, kind):
            raise TypeError(f"{key} is {type(value).__name__}")
        return value
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ParameterError(
            f"trained is {name!r}: {file} cannot be read ({error}); name another run"
        ) from None


def check_as_trained(settings: Any, names: Collection[str]) -> None:
    """Check that the settings in `names`, which shape a model, are those of the run that `trained` names; ""
    passes. No value is replaced, so that the parameters of a notebook say what runs.

    Raises ParameterError, naming all that differ, or if a model that comes with the project, trained on
    storyworld, is to be used on another corpus.
    """
    if not (run := settings.trained):
        return
    parameters = trained_parameters(run)
    of_storyworld = run in shipped_runs() and parameters["corpus"] == STORYWORLD
    if of_storyworld and settings.corpus != STORYWORLD:
        raise ParameterError(
            f"corpus is {settings.corpus!r}, but {run} was trained on {STORYWORLD}; "
            'write trained = "" to train on your corpus'
        )
    given = {name: getattr(settings, name) for name in names if name in parameters}
    if other := {name: value for name, value in given.items() if value != parameters[name]}:
        shown = ", ".join(f"{name} is {value!r}" for name, value in other.items())
        wanted = ", ".join(f"{name} = {json.dumps(parameters[name])}" for name in other)
        raise ParameterError(
            f'{shown}, but {run} was trained with {wanted}; write that, or trained = "" to train with yours'
        )


def trained_model(name: str, training: str = "") -> Path:
    """The model folder of a run; `training`: which, if it has several. ParameterError: it has no such one."""
    run = trained_run(name)
    folder = (run / SYSTEMS_FOLDER / training if training else run) / MODEL_FOLDER
    if denial := denied(folder):
        raise ParameterError(f"trained is {name!r}: {denial}")
    if is_model(folder):
        return folder
    if folder.is_dir():
        fault = fault_of_weights(folder) or f"{folder}: {NO_CONFIG}"
        raise ParameterError(f"trained is {name!r}: {fault}; if its run was killed, run its notebook again")
    others = sorted(path.parent.name for path in run.glob(f"{SYSTEMS_FOLDER}/*/{MODEL_FOLDER}"))
    known = (
        f"its trainings are {', '.join(others)}" if others else "it is of another notebook, or not finished"
    )
    what = f"no trained {training}" if training else "no trained model"
    raise ParameterError(
        f'trained is {name!r}, which has {what}: {known}; choose among these, or "" to train'
    )


def trained_threshold(name: str) -> float | None:
    """The clustering threshold that a finished run chose on dev; None if none. ParameterError: damaged."""
    return _kept_or_reported(name, THRESHOLD, _threshold_in)


def trained_merged(name: str) -> float | None:
    """The share of the mentions that a run learned from which join the gold cluster of an earlier one; None =
    it is not known. ParameterError: damaged."""
    return _kept_or_reported(name, MERGED, lambda report: report["data"].get(MERGED, {}).get("train"))


def _threshold_in(report: Mapping[str, Any]) -> float | None:
    return next((row["value"] for row in report["scores"] if row["metric"] == THRESHOLD), None)


def _kept_or_reported(
    name: str, key: str, in_report: Callable[[Mapping[str, Any]], float | None]
) -> float | None:
    """A number of a run: in its report, or of a shipped one, which has none, in its run file."""
    run = trained_run(name)
    file = run / REPORT_FILE if (run / REPORT_FILE).is_file() else run / RUN_FILE
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        return values.get(key) if file.name == RUN_FILE else in_report(values)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ParameterError(f"{file} cannot be read ({error}); name another run") from None
