"""Small checkpoints that come with the project: `tiny` trained on storyworld, one for each variant of CDLM.

Their names are `storyworld/<variant>`, as `storyworld/cdlm`, and work wherever a model is named. They lie in
`data/storyworld/checkpoints` in half precision; its README.md says how they were made and what they score.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import torch
from transformers import AutoTokenizer, LongformerForMaskedLM

from cdlm_lab.models.checkpoint import CheckpointError
from cdlm_lab.models.joint_head import HEAD_FILE

PREFIX = "storyworld/"
FOLDER = Path(__file__).resolve().parents[2] / "data" / "storyworld" / "checkpoints"


def shipped_names(folder: Path = FOLDER) -> list[str]:
    """The names of all checkpoints that came with this copy of the project."""
    return sorted(PREFIX + path.parent.name for path in folder.glob("*/model.safetensors"))


def shipped_folder(name: str, folder: Path = FOLDER) -> Path | None:
    """Where a shipped checkpoint lies; None if the name is not of that kind, or is a folder at hand.

    Raises CheckpointError, with the names there are, for a name of that kind that did not come with the
    project.
    """
    if not name.startswith(PREFIX) or Path(name).is_dir():
        return None
    names = shipped_names(folder)
    if name not in names:
        there = ", ".join(names) or "none; they are part of a clone of the repository, not of the package"
        raise CheckpointError(f"{name}: no such checkpoint comes with the project (there are: {there})")
    return folder / name.removeprefix(PREFIX)


def ship(source: str | os.PathLike[str], name: str, folder: Path = FOLDER) -> Path:
    """Copy a trained model of a run into the project, in half precision; returns its folder.

    `source`: a folder that notebook 01 or 08 left, with tokenizer and, of the latter, the head of paragraph
    pre-training. `name`: `storyworld/<variant>`. What stood there is replaced once the new one is complete.
    """
    if not name.startswith(PREFIX) or "/" in name.removeprefix(PREFIX):
        raise ValueError(f"name is {name!r}; it must be {PREFIX}<variant>")
    target = folder / name.removeprefix(PREFIX)
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=folder))
    try:
        LongformerForMaskedLM.from_pretrained(source, dtype=torch.float16).save_pretrained(unfinished)
        AutoTokenizer.from_pretrained(source).save_pretrained(unfinished)
        if (head := Path(source) / HEAD_FILE).is_file():
            shutil.copyfile(head, unfinished / HEAD_FILE)
        unfinished.chmod(0o755)
        shutil.rmtree(target, ignore_errors=True)
        unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return target
