"""Checkpoints that are complete or do not exist, so that a run killed at any moment can be resumed.

A checkpoint is written under a temporary name, with a list of its files, their sizes and checksums
(`replaced_folder`). What a killed process leaves is removed by the next run. A checkpoint whose files have
changed since is skipped in favour of another one: two are kept. Of the random
generators only torch's are saved: nothing in the library draws from the global ones of Python or NumPy.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from accelerate import Accelerator
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.optim import Optimizer
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.data.files import replaced_folder, sha256_of_file
from cdlm_lab.encoders.adapter import attached, write_adapter
from cdlm_lab.encoders.checkpoint import without_bars
from cdlm_lab.errors import PlainError
from cdlm_lab.progress import is_first, processes_here
from cdlm_lab.training.config import FREE_TO_CHANGE, TrainingConfig

FILE_LIST = "complete.json"
PROGRESS_FILE, OPTIMIZER_FILE = "progress.json", "optimizer.safetensors"
_NAME = re.compile(r"checkpoint-(\d+)")
# Libraries in other languages report a full disk by a message of their own, not as an OSError; PyTorch's
# writer only says that it wrote fewer bytes than expected.
_NO_SPACE = ("no space left", "os error 28", "disk quota exceeded", "file write failed", "unexpected pos")
_FULL_DISK_NUMBERS = (errno.ENOSPC, errno.EDQUOT)
RANDOM_STATE_FILE = "random_state.safetensors"
# In the folder of a run: checkpoints and history of its training.
TRAINING_FOLDER = "training"


class CheckpointError(PlainError, RuntimeError):
    """A checkpoint could not be written or read; the message says which, why, and what to do."""


def checkpoint_path(folder: Path, step: int) -> Path:
    """The path of the finished checkpoint of a step."""
    return folder / f"checkpoint-{step}"


def checkpoint_step(checkpoint: Path) -> int:
    """The number of updates done when the checkpoint was written. Raises ValueError if the folder does not
    have the name of a checkpoint."""
    match = _NAME.fullmatch(checkpoint.name)
    if match is None:
        raise ValueError(f"{checkpoint} is not a checkpoint: its name must be checkpoint-<step>")
    return int(match[1])


def _checkpoints(folder: Path) -> list[Path]:
    """The folders with names of checkpoints, oldest first."""
    named = (path for path in folder.glob("checkpoint-*") if path.is_dir() and _NAME.fullmatch(path.name))
    return sorted(named, key=checkpoint_step)


def complete_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints in a folder whose files have the sizes listed when they were finished, oldest first;
    empty if there is no such folder."""
    return [path for path in _checkpoints(folder) if not damage_of(path, thorough=False)]


def last_good_checkpoint(folder: Path) -> Path | None:
    """The last checkpoint that is undamaged and whose best checkpoint at that time, needed at the end of the
    run, is undamaged too; None if there is no checkpoint at all. Reads all of their files and warns of
    damaged ones. Raises CheckpointError if all are damaged."""
    faults: list[str] = []
    for checkpoint in reversed(_checkpoints(folder)):
        best = best_step(checkpoint) or checkpoint_step(checkpoint)
        needed = dict.fromkeys([checkpoint, checkpoint_path(folder, best)])
        fault = next((f"{path}: {damage}" for path in needed if (damage := damage_of(path))), "")
        if not fault:
            if faults:
                damaged = "; ".join(dict.fromkeys(faults))
                warnings.warn(f"damaged: {damaged}. The run goes on from {checkpoint}", stacklevel=2)
            return checkpoint
        faults.append(fault)
    if faults:
        raise CheckpointError(
            f"no checkpoint can be gone on from: {'; '.join(dict.fromkeys(faults))}. Bring one back from a "
            f"copy, or delete {folder} to train from the beginning"
        )
    return None


def damage_of(checkpoint: Path, *, thorough: bool = True) -> str:
    """A description of the first file of a checkpoint that differs from what was written; "" = none does.
    `thorough`: False = compare only sizes."""
    try:
        listed = json.loads((checkpoint / FILE_LIST).read_text(encoding="utf-8"))
        noted = {name: (kept["size"], kept["sha256"]) for name, kept in listed.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return f"{FILE_LIST}, the list of its files, is missing or cannot be read"
    for name, (size, checksum) in noted.items():
        try:
            if (actual := (checkpoint / name).stat().st_size) != size:
                return f"{name} has {actual} bytes, not {size}"
            if thorough and sha256_of_file(checkpoint / name) != checksum:
                return f"{name} is not what was written (its checksum is another)"
        except (OSError, ValueError) as error:
            missing = isinstance(error, FileNotFoundError)
            return f"{name} {'is missing' if missing else f'cannot be read ({error})'}"
    return ""


def best_step(checkpoint: Path) -> int | None:
    """The step of the best checkpoint when this one was written; None if there was none."""
    try:
        progress = json.loads((checkpoint / PROGRESS_FILE).read_text(encoding="utf-8"))
        return progress["best_step"] or None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def steps_to_keep(folder: Path, step: int) -> set[int]:
    """The steps of two checkpoints: the one just written and the best; if that is the same, the best before
    it, or else the last before it. Should one of the two prove damaged, the run can resume from the other."""
    best = best_step(checkpoint_path(folder, step))
    earlier = [path for path in complete_checkpoints(folder) if checkpoint_step(path) < step]
    if best in (None, step) and earlier:
        best = best_step(earlier[-1]) or checkpoint_step(earlier[-1])
    return {step, best or step}


@dataclass(kw_only=True)
class Progress:
    """How far a run is: what a checkpoint holds beside weights, optimizer and generators."""

    config: dict[str, Any] = field(default_factory=dict)
    step: int = 0
    updates: int = 0  # steps of the schedule; fewer than `step` where float16 skipped some
    best_step: int | None = None
    seconds: float = 0.0
    tokens: int = 0
    last_logged_step: int = 0
    loss_sums: list[list[float]] = field(default_factory=list)  # of each process, since the last record
    scaler: dict[str, Any] | None = None  # of the loss, in float16


def read_progress(checkpoint: Path, *, config: TrainingConfig) -> Progress:
    """The progress in a checkpoint. Raises CheckpointError if it was written with other settings than
    `config`, except for those that may change or that an older version did not have."""
    progress = Progress(**json.loads((checkpoint / PROGRESS_FILE).read_text(encoding="utf-8")))
    now, before = json.loads(json.dumps(asdict(config))), progress.config
    changed = [
        f"{name} {value!r} -> {now[name]!r}"
        for name, value in before.items()
        if name in now and name not in FREE_TO_CHANGE and now[name] != value
    ]
    if changed:
        raise CheckpointError(
            f"{checkpoint} was written with other settings: {', '.join(changed)}. "
            "Go on with the old ones, or choose another folder"
        )
    if (size := before.get("micro_batch_size", config.micro_batch_size)) != config.micro_batch_size:
        after = f"After step {progress.step}"
        drawn = "sums are rounded otherwise, and dropout draws other numbers"
        if is_first():
            print(f"{after} micro-batches have {config.micro_batch_size} examples, not {size}: {drawn}.")
    return progress


def starting_point(folder: Path, accelerator: Accelerator) -> Path | None:
    """The checkpoint to go on from, after removing what a killed run left; None = begin. Rank 0 chooses it,
    since that requires reading all of its files."""
    step = 0
    if accelerator.is_main_process:
        folder.mkdir(parents=True, exist_ok=True)
        remove_unfinished(folder)
        last = last_good_checkpoint(folder)
        step = checkpoint_step(last) if last else 0
    step = int(accelerator.gather(torch.tensor([step], device=accelerator.device))[0])
    return checkpoint_path(folder, step) if step else None


def write_checkpoint(
    folder: Path,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None,
    optimizer: Optimizer,
    random_state: Mapping[str, Tensor],
    progress: Progress,
) -> None:
    """Write the files of a checkpoint, all safetensors and JSON, into a folder of `writing_checkpoint`."""
    with without_bars():
        model.save_pretrained(folder)
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)
    states = {
        f"{name}.{entry}": value.contiguous()
        for name, parameter in model.named_parameters()
        for entry, value in optimizer.state.get(parameter, {}).items()
    }
    save_file(states, folder / OPTIMIZER_FILE)
    save_file(dict(random_state), folder / RANDOM_STATE_FILE)
    text = json.dumps(asdict(progress), indent=1) + "\n"
    (folder / PROGRESS_FILE).write_text(text, encoding="utf-8")


def load_optimizer(model: nn.Module, optimizer: Optimizer, checkpoint: Path) -> None:
    """Give the optimizer of the model's parameters the moments and counts of the checkpoint."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    states: dict[str, dict[str, Tensor]] = {}
    for key, value in load_file(checkpoint / OPTIMIZER_FILE).items():
        name, _, entry = key.rpartition(".")
        states.setdefault(name, {})[entry] = value
    parameters = chain.from_iterable(group["params"] for group in optimizer.param_groups)
    numbered = {number: states.get(names[parameter]) for number, parameter in enumerate(parameters)}
    state = {number: of_parameter for number, of_parameter in numbered.items() if of_parameter}
    optimizer.load_state_dict(optimizer.state_dict() | {"state": state})


def load_weights(model: nn.Module, checkpoint: Path) -> None:
    """Load the weights of a checkpoint into a model, in place. Raises CheckpointError if they do not fit."""
    loaded = model.load_state_dict(load_file(checkpoint / "model.safetensors"), strict=False)
    check_loaded(model, missing=loaded.missing_keys, unexpected=loaded.unexpected_keys)


def check_loaded(model: nn.Module, *, missing: Collection[str], unexpected: Collection[str]) -> None:
    """Raise CheckpointError if `load_state_dict` reported missing weights that are not tied to loaded ones,
    or unexpected ones."""
    weights = model.state_dict()
    loaded = {value.data_ptr() for name, value in weights.items() if name not in missing}
    absent = sorted(name for name in missing if weights[name].data_ptr() not in loaded)
    if absent or unexpected:
        faults = [f"{name} is missing" for name in absent]
        faults += [f"{name} is unknown" for name in sorted(unexpected)]
        more = f" and {len(faults) - 3} more" if len(faults) > 3 else ""
        raise CheckpointError(
            f"the checkpoint does not fit {type(model).__name__}: {', '.join(faults[:3])}{more}; "
            "was it written by another kind of model?"
        )


@contextlib.contextmanager
def writing_checkpoint(folder: Path, step: int) -> Iterator[Path]:
    """Yield an empty folder, in rank 0, to write a checkpoint into; afterwards list its files, flush them to
    the disk and give it its name. If anything fails, nothing of it is left, older checkpoints are untouched,
    and the error is passed on; for a full disk as a CheckpointError."""
    finished = checkpoint_path(folder, step)
    try:
        with replaced_folder(finished) as new:
            yield new
            listed = {
                path.relative_to(new).as_posix(): {
                    "size": path.stat().st_size,
                    "sha256": sha256_of_file(path),
                }
                for path in sorted(path for path in new.rglob("*") if path.is_file())
            }
            (new / FILE_LIST).write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    except BaseException as error:
        if not is_full_disk(error):
            raise
        last = complete_checkpoints(folder)[-1:]
        kept = f"the last good one is {last[0]}" if last else "there is no earlier one"
        raise CheckpointError(
            f"the disk is full: {finished} was not written, {kept}. "
            "Free some space and give the same command again to go on from there"
        ) from error


def is_full_disk(error: BaseException) -> bool:
    """True if the error, or one of its causes, says that the disk or the quota is full."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in _FULL_DISK_NUMBERS:
            return True
        if any(words in str(cause).lower() for words in _NO_SPACE):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def remove_unfinished(folder: Path) -> None:
    """Remove what killed processes left behind. No other process may be writing to the folder."""
    for ending in ("unfinished", "replaced", "removed"):
        for path in folder.glob(f".checkpoint-*.{ending}"):
            shutil.rmtree(path, ignore_errors=True)


def keep_only(folder: Path, steps: Collection[int]) -> None:
    """Remove all checkpoints except those of the given steps; folders with other names are left alone."""
    for path in _checkpoints(folder):
        if checkpoint_step(path) not in steps:
            # Renamed first, so that a process killed half-way does not leave what looks like a checkpoint.
            doomed = folder / f".{path.name}.removed"
            shutil.rmtree(doomed, ignore_errors=True)
            os.replace(path, doomed)
            shutil.rmtree(doomed, ignore_errors=True)


def gather_random_state(accelerator: Accelerator) -> dict[str, Tensor]:
    """The states of all processes' generators for RANDOM_STATE_FILE, "cpu" and, if available, "cuda": uint8
    (process, bytes). All processes must call it."""
    device, states = accelerator.device, {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    gathered = {name: accelerator.gather(state[None].to(device)) for name, state in states.items()}
    return {name: state.cpu().contiguous() for name, state in gathered.items()}


def load_random_state(checkpoint: Path, accelerator: Accelerator) -> bool:
    """Restore the generators of this process; False and no change if fewer processes wrote the checkpoint."""
    states = load_file(checkpoint / RANDOM_STATE_FILE)
    process = accelerator.process_index
    cuda = accelerator.device.type == "cuda"
    if process >= len(states["cpu"]) or (cuda and "cuda" not in states):
        return False
    torch.set_rng_state(states["cpu"][process].clone())
    if cuda:
        torch.cuda.set_rng_state(states["cuda"][process].clone(), accelerator.device)
    return True


# model -> folder of a training -> the weights with which it began, by name, on the CPU
_begun: WeakKeyDictionary[nn.Module, dict[Path, dict[str, Tensor]]] = WeakKeyDictionary()


@torch.no_grad()
def begin_again(model: nn.Module, folder: Path) -> None:
    """Give a model the weights that it had when this process first called this for a training of it in this
    folder. A notebook's cell that is run again trains the same model again: one that was stopped before its
    first checkpoint would begin with weights that have moved. Processes of torchrun train a model once."""
    if processes_here() > 1:
        return
    weights = dict(chain(model.named_parameters(), model.named_buffers()))
    before = _begun.setdefault(model, {}).setdefault(folder.resolve(), {})
    for name, value in weights.items():
        if name in before:
            value.copy_(before[name])
        else:
            before[name] = value.detach().to("cpu", copy=True)


def write_model(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None, folder: Path) -> None:
    """Write a model, or the adapter that is on it, and its tokenizer if given, as safetensors and JSON into a
    folder."""
    if attached(model) is None:
        model.save_pretrained(folder)
    else:
        write_adapter(model, folder)
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)


def save_model(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None,
    folder: Path,
    *,
    write: Callable[[Any, Any, Path], None] = write_model,
) -> None:
    """Let `write` write a model and its tokenizer; under torchrun only rank 0 does. The folder appears when
    it is complete, and until then an earlier one stays."""
    if is_first():
        with replaced_folder(folder) as new, without_bars():
            write(model, tokenizer, new)
