"""Convert a model folder with pickled weights into one with safetensors; run by hand, once.

    python -m cdlm_lab.encoders.to_safetensors FOLDER NEW_FOLDER

Many models on the hub have no other weights than `pytorch_model.bin`; everything else here reads safetensors
only. This is the one place of the library where a pickle is opened, by `torch.load` with `weights_only=True`,
which creates nothing but tensors and plain containers. The new folder has the weights, config and tokenizer,
and appears only after all of these were read back: every weight equal, finite, and with the name and shape
that the config requires. A folder that has safetensors already is checked and copied in the same way.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from cdlm_lab.data.files import replaced_folder
from cdlm_lab.encoders.checkpoint import CheckpointError, named_faults, read_config, refuse_not_finite
from cdlm_lab.encoders.encoder import load_encoder
from cdlm_lab.encoders.model_folder import CONFIG_FILE, CONVERT, PICKLES, fault_of_folder
from cdlm_lab.errors import print_any_sign
from cdlm_lab.parameters import path_argument

WEIGHTS = "model.safetensors"
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
        save_file(weights, new / WEIGHTS, metadata={"format": "pt"})
        for name in COPIED:
            if (source / name).is_file():
                shutil.copyfile(source / name, new / name)
        _check(new, weights, source)
    return len(weights)


def _weights(source: Path) -> dict[str, Tensor]:
    """The weights of all files in a folder, by name, none sharing memory with another: a tied one is written
    twice, and tied again when it is loaded."""
    files = sorted(source.glob("model*.safetensors")) or sorted(source.glob(PICKLES))
    if not files:
        raise CheckpointError(
            f"{source}: neither model.safetensors nor pytorch_model.bin; name the folder of a model"
        )
    weights: dict[str, Tensor] = {}
    for file in files:
        with named_faults(str(source), file.name):
            pickled = file.suffix == ".bin"
            read = torch.load(file, map_location="cpu", weights_only=True) if pickled else load_file(file)
            weights |= {name: weight.clone().contiguous() for name, weight in read.items()}
    refuse_not_finite({name: one for name, one in weights.items() if one.is_floating_point()}, str(source))
    return weights


def _check(folder: Path, weights: dict[str, Tensor], source: Path) -> None:
    """Raise CheckpointError, naming `source`, unless `folder` holds these weights and can be loaded."""
    if fault := fault_of_folder(folder, name=str(source)):
        raise CheckpointError(fault)
    back = load_file(folder / WEIGHTS)
    same = back.keys() == weights.keys() and all(
        back[name].dtype == weight.dtype and back[name].equal(weight) for name, weight in weights.items()
    )
    if not same:
        raise CheckpointError(f"{folder / WEIGHTS}: reads back as something else; is the disk whole?")
    try:
        config = read_config(str(folder))
        most = config.max_position_embeddings - config.pad_token_id - 1
        load_encoder(folder, max_length=min(most, SHORT), window=2)
    except CheckpointError as error:
        raise CheckpointError(str(error).replace(str(folder), str(source))) from error


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the conversion; returns 0 if the new folder was written, else 2."""
    print_any_sign()
    parser = argparse.ArgumentParser(
        prog=CONVERT, description="A model folder with pytorch_model.bin as one with model.safetensors."
    )
    parser.add_argument(
        "folder", type=path_argument, help="with config.json, pytorch_model.bin and the tokenizer"
    )
    parser.add_argument("new_folder", type=path_argument, help="to make")
    chosen = parser.parse_args(arguments)
    try:
        count = convert(chosen.folder, chosen.new_folder)
    except (CheckpointError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{chosen.new_folder}: {count} weights, config and tokenizer, checked")
    return 0


if __name__ == "__main__":
    sys.exit(main())
