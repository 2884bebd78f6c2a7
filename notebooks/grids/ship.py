"""Copy the trained models of a finished run into the project, in half precision, with card and licence:

    python notebooks/grids/ship.py runs/shipped/coreference storyworld/coreference
    python notebooks/grids/ship.py runs/news/variants-cdlm-s0 news/cdlm runs/news/perplexity-s0

The second is the name by which notebooks open them: those of `shipped.yaml` go to `data/storyworld`, those of
real English (`shipped_english.yaml`), complete or an adapter, to `data/models`, their package.
The card, of `data/models/cards.yaml`, shows the scores of the run, or of the runs that are named after it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from cdlm_lab.data.files import replaced_folder
from cdlm_lab.data.text_profile import PROFILE_FILE
from cdlm_lab.encoders import model_folder
from cdlm_lab.encoders.checkpoint import CheckpointError, shipped_folder, shipped_names
from cdlm_lab.encoders.model_folder import ADAPTER_CONFIG, GROUPS, MODEL_FOLDER, STORYWORLD, is_model
from cdlm_lab.parameters import RUN_FILE, settings
from cdlm_lab.runs.identity import MADE_FILE
from cdlm_lab.runs.report import REPORT_FILE, Report, read_report
from cdlm_lab.runs.scores import Score
from cdlm_lab.training.checkpoints import TRAINING_FOLDER
from cdlm_lab.training.history import HISTORY_FILE, read_history
from cdlm_lab.training.trained import MERGED, SYSTEMS_FOLDER, THRESHOLD, trained_merged, trained_threshold

_LANGUAGE_MODELS = "pretraining"  # name of the runs that train language models
_LONGEST_PATH = 1_000
MOST_SCORES = 20  # in the card of a model
CARDS = Path(__file__).resolve().parents[2] / "data" / "models" / "cards.yaml"


@settings
class About:
    """What a card of a shipped model says beside scores: an entry of `data/models/cards.yaml`."""

    license: str  # as the hub names it
    license_name: str = ""  # of the license "other"
    datasets: tuple[str, ...]
    base_model: str  # "" = none
    texts: str  # what it was trained on, in few words
    terms: str  # of the licence, with what it asks to be quoted
    what: str
    lacks: str  # what the model does not know


def model_card(name: str, about: About, reports: Sequence[Report], *, hours: float = 0.0) -> str:
    """The card of a shipped model as the hub reads it, with the first scores on held-out texts that `reports`
    have, each with its interval and the number of items. `hours`: of its training; 0 = not known."""
    front = {"license": about.license, "license_name": about.license_name, "language": "en"}
    front |= {"datasets": list(about.datasets), "base_model": about.base_model, "library_name": "cdlm_lab"}
    front |= {"tags": ["cdlm_lab", "cross-document", name.partition("/")[0]]}
    given = {key: value for key, value in front.items() if value}
    parts = [
        f"---\n{yaml.safe_dump(given, sort_keys=False, allow_unicode=True)}---\n\n# {name}",
        about.what,
    ]
    parts.append(f'    import cdlm_lab\n    model = cdlm_lab.load("{name}")')
    rows = [row for one in reports for row in one.rows if row.low is not None and row.seed is None]
    if shown := [f"| {_cells(row)} |" for row in rows if row.split not in ("train", "dev")][:MOST_SCORES]:
        head = "| system | of | measure | score | 95% interval | n |\n|---|---|---|---:|---|---:|"
        parts += ["## Scores on held-out texts", "\n".join([head, *shown])]
    parts += ["## What it does not know", about.lacks, "## Training"]
    parts.append(f"On {about.texts}" + (f", in {hours:.2g} hours." if hours else "."))
    return "\n\n".join([*parts, "## Licence", about.terms]) + "\n"


def _cells(row: Score) -> str:
    interval = f"[{row.low:.4g}, {row.high:.4g}]"
    cells = (row.system, row.group, row.metric, f"{row.value:.4g}", interval, "" if row.n is None else row.n)
    return " | ".join(str(one).replace("|", "/") for one in cells)


def ship_run(source: str | os.PathLike[str], name: str, judged: Sequence[str] = ()) -> Path:
    """Copy the trained models of a finished run into the project, in half precision; returns their folder.

    `name`: `<group>/<task>`, such as `ecb/events`; `judged`: runs whose scores the card shows, in place of
    the run's own. An existing folder is replaced once the new one is complete. Raises CheckpointError if
    there is no run or no model in it.
    """
    run = Path(source)
    models = [run / MODEL_FOLDER, *sorted(run.glob(f"{SYSTEMS_FOLDER}/*/{MODEL_FOLDER}"))]
    models = [model for model in models if model.is_dir()]
    if not (run / RUN_FILE).is_file() or not models:
        raise CheckpointError(f"{run}: no finished training is in it; name the folder of a run")
    if damaged := next((model for model in models if not is_model(model)), None):
        raise CheckpointError(f"{damaged}: no whole model; run the notebook of {run} again")
    group, _, task = name.partition("/")
    if group not in GROUPS or not task or "/" in task:
        raise CheckpointError(
            f"name is {name!r}; it must be <group>/<task>, of the groups {', '.join(GROUPS)}"
        )
    target = (model_folder.FOLDER if group == STORYWORLD else model_folder.ENGLISH / group) / task
    with replaced_folder(target) as new:
        values = json.loads((run / RUN_FILE).read_text(encoding="utf-8"))
        about = cards().get(name)
        if about:
            histories = [model.parent / TRAINING_FOLDER / HISTORY_FILE for model in models]
            seconds = [read_history(one)[-1]["seconds"] for one in histories if one.is_file()]
            add_card(name, about, [*judged] or [run], new, hours=sum(seconds) / 3600)
        if values["name"] == _LANGUAGE_MODELS:
            _copy_in_half_precision(models[0], new, about)
            return target
        parameters = {k: _placeless(v) for k, v in values["parameters"].items() if k != "run_folder"}
        kept = {"name": values["name"], "parameters": parameters}
        known = {THRESHOLD: trained_threshold(str(run)), MERGED: trained_merged(str(run))}
        kept |= {name: value for name, value in known.items() if value is not None}
        _write_json(new / RUN_FILE, kept)
        for model in models:
            _copy_in_half_precision(model, new / model.relative_to(run), about)
            history = model.parent / TRAINING_FOLDER / HISTORY_FILE
            if history.is_file():
                (kept_history := new / history.relative_to(run)).parent.mkdir()
                shutil.copyfile(history, kept_history)
    return target


def cards() -> dict[str, About]:
    """What `cards.yaml` says of each model, by name."""
    entries = yaml.safe_load(CARDS.read_text(encoding="utf-8"))["models"]
    return {name: About(**entry | {"datasets": tuple(entry["datasets"])}) for name, entry in entries.items()}


def add_card(name: str, about: About, judged: Sequence[str | Path], folder: Path, *, hours: float) -> None:
    """Write card and licence of a model into a folder; `judged`: runs, or reports, whose scores are shown."""
    reports = [
        read_report(Path(one)) for one in judged if (Path(one) / REPORT_FILE).is_file() or Path(one).is_file()
    ]
    (folder / "README.md").write_text(model_card(name, about, reports, hours=hours), encoding="utf-8")
    (folder / "LICENSE").write_text(f"{name}: {about.license}\n\n{about.terms}\n", encoding="utf-8")


def _copy_in_half_precision(source: Path, target: Path, about: About | None) -> None:
    """Without the places where the run had its data and its encoder; the profile says what `about` says."""
    target.mkdir(parents=True, exist_ok=True)
    for file in sorted(source.iterdir()):
        if file.suffix == ".safetensors":
            with safe_open(file, framework="pt") as opened:
                metadata = opened.metadata()  # includes the settings of a head
            save_file(_in_half_precision(file), target / file.name, metadata=metadata)
        elif file.name in (ADAPTER_CONFIG, MADE_FILE):
            _write_json(target / file.name, _placeless(json.loads(file.read_text(encoding="utf-8"))))
        elif file.name == PROFILE_FILE and about:
            values = json.loads(file.read_text(encoding="utf-8"))
            _write_json(target / file.name, values | {"trained_on": about.texts})
        elif file.is_file():
            shutil.copyfile(file, target / file.name)


def _write_json(file: Path, values: Any) -> None:
    file.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")


def _in_half_precision(file: Path) -> dict[str, torch.Tensor]:
    return {key: one.half() if one.dtype == torch.float32 else one for key, one in load_file(file).items()}


def _placeless(value: Any) -> Any:
    """The name by which a model comes with the project in place of the folder that it was shipped from (which
    an adapter, and a frozen encoder, are opened by), and the end of any other path; in JSON values."""
    if isinstance(value, dict):
        return {_placeless(key): _placeless(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_placeless(one) for one in value]
    if not isinstance(value, str) or len(value) > _LONGEST_PATH:
        return value
    if os.path.isfile(file := Path(value) / "model.safetensors"):
        weights = _in_half_precision(file)
        for name in shipped_names():
            shipped = load_file(shipped_folder(name) / file.name)
            if shipped.keys() == weights.keys() and all(shipped[key].equal(weights[key]) for key in shipped):
                return name
    return "/".join(Path(value).parts[-2:]) if os.path.isabs(value) else value


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("give a run and a name: python notebooks/grids/ship.py RUN ecb/events [RUN WITH SCORES ...]")
    try:
        print(f"{sys.argv[1]}: its models are in {ship_run(sys.argv[1], sys.argv[2], sys.argv[3:])}")
    except ValueError as error:
        sys.exit(str(error))
