"""Convert a model folder with pickled weights into one with safetensors; run by hand, once.

    python notebooks/grids/to_safetensors.py FOLDER NEW_FOLDER

Many models on the hub have no other weights than `pytorch_model.bin`; the library reads safetensors only. The
pickle is opened by `torch.load` with `weights_only=True`, which creates nothing but tensors and plain
containers. The new folder has the weights, config and tokenizer, and appears only after it was loaded: every
weight finite, and with the name and shape that the config requires.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from cdlm_lab.data.files import replaced_folder
from cdlm_lab.encoders.checkpoint import CheckpointError, named_faults, read_config, refuse_not_finite
from cdlm_lab.encoders.encoder import load_encoder
from cdlm_lab.encoders.model_folder import CONFIG_FILE, PICKLES, fault_of_folder

SHORT = 64  # `max_length` in tokens for the trial loading of a model
COPIED = (
    *(CONFIG_FILE, "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt"),
)


def convert(source: Path, target: Path) -> int:
    """Make the folder `target` from the folder `source`; returns the number of weights. Raises
    CheckpointError: `target` exists; `source` is no complete model, or has weights that cannot be read, do
    not fit the config or are not finite."""
    if target.exists() or target.is_symlink():
        raise CheckpointError(f"{target}: is there already; name a new folder, or remove it")
    weights = _weights(source)
    with replaced_folder(target) as new:
        save_file(weights, new / "model.safetensors", metadata={"format": "pt"})
        for name in COPIED:
            if (source / name).is_file():
                shutil.copyfile(source / name, new / name)
        if fault := fault_of_folder(new, name=str(source)):
            raise CheckpointError(fault)
        try:
            config = read_config(str(new))
            most = config.max_position_embeddings - config.pad_token_id - 1
            load_encoder(new, max_length=min(most, SHORT), window=2)
        except CheckpointError as error:
            raise CheckpointError(str(error).replace(str(new), str(source))) from error
    return len(weights)


def _weights(source: Path) -> dict[str, Tensor]:
    """The weights of all files in a folder, by name, none sharing memory with another: a tied one is written
    twice, and tied again when it is loaded."""
    files = sorted(source.glob("model*.safetensors")) or sorted(source.glob(PICKLES))
    if not files:
        raise CheckpointError(f"{source}: no model.safetensors, no pytorch_model.bin; name a model's folder")
    weights: dict[str, Tensor] = {}
    for file in files:
        with named_faults(str(source), file.name):
            pickled = file.suffix == ".bin"
            read = torch.load(file, map_location="cpu", weights_only=True) if pickled else load_file(file)
            weights |= {name: weight.clone().contiguous() for name, weight in read.items()}
    refuse_not_finite({name: one for name, one in weights.items() if one.is_floating_point()}, str(source))
    return weights


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("give two folders: python notebooks/grids/to_safetensors.py FOLDER NEW_FOLDER")
    try:
        count = convert(*map(Path, sys.argv[1:]))
    except (CheckpointError, OSError) as error:
        sys.exit(str(error))
    print(f"{sys.argv[2]}: {count} weights, config and tokenizer, checked")
