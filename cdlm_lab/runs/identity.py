"""What a run is made of: its parameters, the bytes of its data and models, and the versions of what computes.

`run.json` and `report.json` hold it, and whatever is used again compares it: a run that is resumed or shown
again, its predictions and caches, the answers of `cdlm-lab apply`, the runs of a grid. Two runs with the same
identity have the same numbers; which commit made them is noted beside it, but not compared.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import util
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any, Self

from huggingface_hub import try_to_load_from_cache
from huggingface_hub.errors import HFValidationError

from cdlm_lab.data.cache import Hash, fingerprint, over_files
from cdlm_lab.data.files import DataError, sha256_of_file
from cdlm_lab.encoders.model_folder import (
    CONFIG_FILE,
    MINILM,
    MINILM_PACKAGE,
    SCRATCH,
    folder_of_name,
    name_of_folder,
)
from cdlm_lab.parameters import BY_HOW_MANY, EVALUATED_WITH

# Raise one when the numbers of what it names move: the training loop, or an experiment with its readers,
# systems and scores. A run that was begun with another version is not resumed.
VERSIONS = {
    "training": 2,  # 2: texts are packed once a forward pass, so dropout draws other numbers
    "apply": 1,
    "tour": 1,
    "pretraining": 3,  # 3: a model that goes on from a pretrained one draws other random numbers than that
    "cross-document perplexity": 1,
    "coreference": 1,
    "document matching": 1,
    "sentence alignment": 1,
    "multihop question answering": 1,
    "document-attentive tagging": 1,
    "paragraph pretraining": 1,
    "answer selection": 1,
    "fact verification": 1,
    "attention analysis": 1,
}
TASKS = {  # what a model has learned in a run of each experiment
    "pretraining": "language modelling",
    "paragraph pretraining": "paragraphs",
    "coreference": "coreference",
    "document matching": "matching",
    "multihop question answering": "questions",
    "document-attentive tagging": "tagging",
    "answer selection": "answers",
    "fact verification": "claims",
}
# Parameters that change no score, or only how many scores are averaged.
FREE = (
    *("run_folder", "seed", "seeds", "attention", "precision", *BY_HOW_MANY),
    *("micro_batch_size", "encoder_micro_batch_size", "gradient_checkpointing"),
)
HUB = "hub:"
MADE_FILE = "made.json"  # beside the weights of a model: what made them
# Files beside a model that do not change what it computes
_NO_PART = (MADE_FILE, "text_profile.json", "README.md", "LICENSE")


# ---- fingerprints ----


def fingerprint_of_model(name: str | os.PathLike[str], *, of_file: Hash = sha256_of_file) -> str:
    """A hash of a model, also of one that ships with the project: over config, tokenizer and weights, that is
    all files of its folder; for a name on the hub the revision that this machine has. Raises DataError if it
    is not there."""
    given = os.fspath(name)
    if given == SCRATCH:
        return "made from its seed"
    if (folder := _folder_of_model(given)) is None:
        what = "neither a folder with a model nor a hub model that this machine has"
        raise DataError(given, what, "check the spelling of the name", field="model")
    if not Path(given).is_dir() and folder.parent.name == "snapshots":
        return f"revision {folder.name}"
    files = [file for file in folder.iterdir() if file.is_file() and file.name not in _NO_PART]
    return over_files(folder, sorted(file for file in files if not file.name.startswith(".")), of_file)


def name_of_model(name: str | os.PathLike[str]) -> str:
    """A model as identities name it: one that ships with the project by its name, wherever the clone lies."""
    return name_of_folder(Path(name)) or os.fspath(name)


def _folder_of_model(name: str) -> Path | None:
    path = Path(name.removeprefix(HUB)).expanduser()
    if path.is_dir():
        return path
    if (folder := folder_of_name(name)) is not None:
        return folder if folder.is_dir() else None
    if name == MINILM:
        package = util.find_spec(MINILM_PACKAGE)  # without importing it
        return Path(package.origin).parent / "model" if package and package.origin else None
    file = None
    with suppress(HFValidationError):  # the hub could have no model of this name
        file = try_to_load_from_cache(name.removeprefix(HUB), CONFIG_FILE)
    return Path(file).parent if isinstance(file, str) else None


# ---- identities ----


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Names of what a run reads and opens: files, folders, models."""

    data: Iterable[str] = ()
    models: Iterable[str] = ()
    compared: Iterable[str] = ()  # data that only the evaluation reads, which is repeated when they change


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Everything that decides the numbers of a run; JSON values. `data`, `models`, `compared`: name, as the
    parameters give it, -> fingerprint."""

    name: str  # of the experiment
    parameters: Mapping[str, Any]
    data: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    compared: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, name: str, parameters: Mapping[str, Any], inputs: Inputs, *, of_file: Hash = sha256_of_file
    ) -> Self:
        """The identity of a run as its data and models are now. Raises DataError if one is not there."""
        hashed = {"of_file": of_file}
        return cls(
            name=name,
            parameters=parameters,
            data={str(one): fingerprint(one, **hashed) for one in dict.fromkeys(inputs.data)},
            models={name_of_model(one): fingerprint_of_model(one, **hashed) for one in inputs.models},
            compared={str(one): fingerprint(one, **hashed) for one in dict.fromkeys(inputs.compared)},
            versions={part: VERSIONS[part] for part in (name, "training") if part in VERSIONS},
        )

    @property
    def as_json(self) -> dict[str, dict[str, Any]]:
        """What is made of bytes and versions, as `run.json` and `report.json` hold it beside parameters."""
        return {part: dict(getattr(self, part)) for part in ("data", "models", "compared", "versions")}

    @property
    def digest(self) -> str:
        """16 hexadecimal digits that differ when anything that decides the numbers does."""
        free = (*BY_HOW_MANY, *EVALUATED_WITH, "run_folder")
        decisive = {name: value for name, value in self.parameters.items() if name not in free}
        parts = [self.name, decisive, *(getattr(self, part) for part in ("data", "models", "versions"))]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    def now(self, *, of_file: Hash = sha256_of_file) -> Self:
        """The identity of the same run if it were made now. Raises DataError if something is gone."""
        inputs = Inputs(data=self.data, models=self.models, compared=self.compared)
        return self.of(self.name, self.parameters, inputs, of_file=of_file)


def changed_parameters(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The parameters that decide the numbers and differ between two runs, in words."""
    changed = []
    for name in sorted((old.keys() | new.keys()) - {*BY_HOW_MANY, *EVALUATED_WITH, "run_folder"}):
        before, now = old.get(name), new.get(name)
        words = [repr(side[name]) if name in side else "not given" for side in (old, new)]
        numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (before, now))
        equal = before == now if numbers else words[0] == words[1]  # 4 equals 4.0
        if not equal:
            changed.append(f"{name} is {words[1]}, in the run {words[0]}")
    return changed


def changed_inputs(
    old: Mapping[str, Any], new: Mapping[str, Any], parts: Iterable[str] = ("data", "models", "versions")
) -> list[str]:
    """What differs between the `as_json` of two identities, in words; [] if nothing does."""
    words = []
    for part in parts:
        before, now = old.get(part, {}), new.get(part, {})
        for name in sorted(before.keys() | now.keys()):
            if before.get(name) == now.get(name):
                continue
            if part == "versions":
                words.append(f"version {now.get(name)} of {name}, in the run {before.get(name)}")
            else:
                how = "is read now" if name not in before else "is not read any more"
                how = "has changed" if name in before and name in now else how
                words.append(f"{'the model ' if part == 'models' else ''}{name} {how}")
    return words


# ---- what made a model ----


def made_record(identity: Identity, *, system: str, parent: str, **facts: Any) -> dict[str, Any]:
    """What made a model, for `made.json` beside its weights: its run, and what it began with, through all
    runs before. `parent`: the checkpoint that it began with, "" = none; `facts`: seed, steps, commit."""
    began = name_of_model(parent) if parent else ""
    before = {"name": began, "fingerprint": identity.models.get(began), "made": read_made(parent)}
    return {
        "experiment": identity.name,
        "system": system,
        **facts,
        **identity.as_json,
        "parameters": {name: value for name, value in identity.parameters.items() if name != "run_folder"},
        "parent": before if parent else None,
    }


def read_made(name: str | os.PathLike[str]) -> dict[str, Any] | None:
    """What made a model, from the `made.json` beside its weights; None if that is not known."""
    folder = _folder_of_model(os.fspath(name))
    try:
        made = json.loads((folder / MADE_FILE).read_text(encoding="utf-8")) if folder else None
        return made if isinstance(made, dict) else None
    except (OSError, ValueError, RecursionError):
        return None


def earlier_pretrainings(name: str | os.PathLike[str]) -> int:
    """In how many runs of notebook 01 a model was trained, one after another; 0 if that is not known."""
    return sum(made["experiment"] == "pretraining" for made in _chain(read_made(name)))


def _chain(made: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """What made a model, what made the one that it began with, and so on."""
    return [] if made is None else [made, *_chain((made["parent"] or {"made": None})["made"])]


def lineage(made: Mapping[str, Any] | None, name: str) -> tuple[str, tuple[str, ...]]:
    """The language model from which a model comes, by its variant or else its name, and the tasks that it has
    learned since, in order; language modelling that went on counts. `made`: what made it; None = unknown."""
    chain = _chain(made)
    steps = [(one["experiment"], one["system"]) for one in reversed(chain)]
    name = (chain[-1]["parent"] or {"name": ""})["name"] if chain else name
    languages = len(list(takewhile(lambda step: step[0] == "pretraining", steps)))
    of_base = [place for place, (_, variant) in enumerate(steps[:languages]) if variant != "longformer"]
    known = (of_base[0] if of_base else languages - 1) + 1
    tasks = [TASKS[experiment] for experiment, _ in steps[known:]]
    return (steps[known - 1][1] if known else name), tuple(task for task, _ in groupby(tasks))


def facts_of(made: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    """What made a model, as columns by which tables group: `model`, its name; `name` of the language model
    that it comes from, the `variant` or paragraph `head` of that, its `corpus`, `root` and `steps`; the
    `tasks` learned since; `seed`; and `recipe`, equal for models that differ in their seed or variant alone.
    `made`: as `read_made` returns it; None = not known, which leaves the names alone."""
    if made is None:
        return {"model": name, "name": name}
    parameters, parent = made["parameters"], made["parent"] or {"name": "", "made": None}
    before = facts_of(parent["made"], parent["name"])
    task = TASKS[made["experiment"]]
    kind = next((kind for kind in ("variant", "head") if kind in parameters), "")
    # language modelling that goes on from a variant is one more task of it, as in `lineage`
    if kind == "variant" and before.get("variant", "longformer") != "longformer":
        kind = ""
    if kind:
        root = before.get("root") or parent["name"] or parameters.get("model", "")
        of_base = {"variant": before["variant"]} if "variant" in before else {}
        corpus = parameters.get("corpus") or ", ".join(made["data"])  # where defaults were left out
        own = {**of_base, "name": name, kind: parameters[kind], "corpus": corpus}
        own |= {"root": root, "steps": made["steps"]}
    else:
        tasks = before.get("tasks", [])
        own = before | {"tasks": tasks if tasks[-1:] == [task] else [*tasks, task]}
    began = before.get("recipe", parent["name"])
    free = {*FREE, "variant", *(one for one, value in parameters.items() if value == parent["name"])}
    decisive = {one: value for one, value in parameters.items() if one not in free}
    recipe = hashlib.sha256(json.dumps([made["experiment"], decisive, began], sort_keys=True).encode())
    return own | {"model": name, "seed": made["seed"], "recipe": recipe.hexdigest()[:16]}
