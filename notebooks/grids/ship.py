"""Copy the trained models of a finished run, of `shipped.yaml`, into the project, in half precision:

    python notebooks/grids/ship.py runs/shipped/coreference storyworld/coreference

`storyworld/<name>` is the name by which notebooks open them.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from cdlm_lab.data.files import replaced_folder
from cdlm_lab.encoders.checkpoint import FOLDER, PREFIX, CheckpointError, shipped_names
from cdlm_lab.encoders.model_folder import MODEL_FOLDER, is_model
from cdlm_lab.parameters import RUN_FILE
from cdlm_lab.training.checkpoints import TRAINING_FOLDER
from cdlm_lab.training.history import HISTORY_FILE
from cdlm_lab.training.trained import SYSTEMS_FOLDER, THRESHOLD, trained_threshold

_LANGUAGE_MODELS = "pretraining"  # name of the runs that train language models


def ship_run(source: str | os.PathLike[str], name: str, folder: Path = FOLDER) -> Path:
    """Copy the trained models of a finished run into the project, in half precision; returns their folder.

    `name`: `storyworld/<task>`. An existing folder is replaced once the new one is complete. Raises
    CheckpointError if there is no run or no model in it.
    """
    run = Path(source)
    models = [run / MODEL_FOLDER, *sorted(run.glob(f"{SYSTEMS_FOLDER}/*/{MODEL_FOLDER}"))]
    models = [model for model in models if model.is_dir()]
    if not (run / RUN_FILE).is_file() or not models:
        raise CheckpointError(f"{run}: no finished training is in it; name the folder of a run")
    if damaged := next((model for model in models if not is_model(model)), None):
        raise CheckpointError(f"{damaged}: no whole model; run the notebook of {run} again")
    if not name.startswith(PREFIX) or "/" in name.removeprefix(PREFIX):
        raise CheckpointError(f"name is {name!r}; it must be {PREFIX}<task>")
    target = folder / name.removeprefix(PREFIX)
    with replaced_folder(target) as new:
        values = json.loads((run / RUN_FILE).read_text(encoding="utf-8"))
        if values["name"] == _LANGUAGE_MODELS:
            _copy_in_half_precision(models[0], new)
            return target
        parameters = {k: _by_name(v, folder) for k, v in values["parameters"].items() if k != "run_folder"}
        kept = {"name": values["name"], "parameters": parameters}
        if (threshold := trained_threshold(str(run))) is not None:
            kept[THRESHOLD] = threshold
        (new / RUN_FILE).write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        for model in models:
            _copy_in_half_precision(model, new / model.relative_to(run))
            history = model.parent / TRAINING_FOLDER / HISTORY_FILE
            if history.is_file():
                (kept_history := new / history.relative_to(run)).parent.mkdir()
                shutil.copyfile(history, kept_history)
    return target


def _copy_in_half_precision(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for file in sorted(source.iterdir()):
        if file.suffix == ".safetensors":
            with safe_open(file, framework="pt") as opened:
                metadata = opened.metadata()  # includes the settings of a head
            save_file(_in_half_precision(file), target / file.name, metadata=metadata)
        elif file.is_file():
            shutil.copyfile(file, target / file.name)


def _in_half_precision(file: Path) -> dict[str, torch.Tensor]:
    return {key: one.half() if one.dtype == torch.float32 else one for key, one in load_file(file).items()}


def _by_name(value: Any, folder: Path) -> Any:
    """The name by which a model comes with the project, if a parameter is the folder it was shipped from (a
    frozen encoder is opened again by it); other values as they are."""
    if isinstance(value, str) and os.path.isfile(file := Path(value) / "model.safetensors"):
        weights = _in_half_precision(file)
        for name in shipped_names(folder):
            shipped = load_file(folder / name.removeprefix(PREFIX) / file.name)
            if shipped.keys() == weights.keys() and all(shipped[key].equal(weights[key]) for key in shipped):
                return name
    return value


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("give a run and a name: python notebooks/grids/ship.py RUN storyworld/NAME")
    try:
        print(f"{sys.argv[1]}: its models are in {ship_run(sys.argv[1], sys.argv[2])}")
    except ValueError as error:
        sys.exit(str(error))
