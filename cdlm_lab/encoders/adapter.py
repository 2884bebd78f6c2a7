"""Adapters by PEFT: LoRA (Hu et al. 2021) on a Longformer encoder, for models of a few megabytes.

In training each projection of the encoder (query, key and value, local and global, the output of attention,
both feed-forward layers) computes W x + (alpha / rank) B A x; only A and B are trained, and in full the head
and the embeddings of tokens that the tokenizer has added. B starts at 0, so that a model begins as it was.
Afterwards they are merged, and the model is of the class and the size that it had before.

A folder with an adapter has PEFT's two files, the config of the whole model and its tokenizer. It names its
base, and holds a hash of it in half precision, in which models are shipped: on another it would say nonsense.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path

import torch
from peft import LoraConfig, PeftModel, get_peft_model_state_dict, set_peft_model_state_dict
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.encoders.checkpoint import CheckpointError, named_faults, own_randomness, refuse_not_finite
from cdlm_lab.encoders.model_folder import ADAPTER_CONFIG, ADAPTER_WEIGHTS, SCRATCH, Adapter
from cdlm_lab.parameters import ParameterError

RANK, ALPHA = 16, 32
ENCODER, WORDS = "longformer", "word_embeddings"
PROJECTIONS = ("query", "key", "value", "query_global", "key_global", "value_global", "dense")
TARGETS = rf".*{ENCODER}\.encoder\..*\.({'|'.join(PROJECTIONS)})"
BASE_HASH = "base_sha256"  # in the metadata of the weights
_PREFIX = "base_model.model."  # of names in PEFT's files
_ATTACHED = "adapter"  # in `__dict__` of the model, where no module looks for children
_NAMED = ("cls_token", "sep_token", "pad_token", "mask_token", "unk_token", "bos_token", "eos_token")


def attach(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None, adapter: Adapter, *, seed: int
) -> None:
    """Put an adapter on a model's encoder, in place, and freeze the rest but the head and the added tokens;
    nothing happens without `adapter` or if one is on it. Raises ParameterError for a model that reads no
    encoder of its own, one that is no Longformer, or one drawn from a seed."""
    if not adapter or attached(model) is not None:
        return
    base = model.config.name_or_path
    if not hasattr(model, ENCODER) or tokenizer is None:
        raise ParameterError(
            f'adapter is {adapter!r}, but {type(model).__name__} trains no encoder; write ""'
        )
    if model.config.model_type != ENCODER:
        raise ParameterError(
            f'adapter is {adapter!r}, but {base} is no Longformer, which it is for; write ""'
        )
    if not base or base == SCRATCH:
        raise ParameterError(f'adapter is {adapter!r}, but its base would be drawn from a seed; write ""')
    rows = added_tokens(tokenizer)
    digest = hash_of_base(model, rows)
    config = LoraConfig(
        r=RANK,
        lora_alpha=ALPHA,
        target_modules=TARGETS,
        trainable_token_indices={WORDS: rows},
        base_model_name_or_path=base,
    )
    training = model.training
    with own_randomness(seed):
        wrapped = _on(model, config)
    # PEFT would train copies of them inside wrappers, which are no lists of layers
    config.modules_to_save = [name for name, _ in model.named_children() if name != ENCODER]
    for name in config.modules_to_save:
        getattr(model, name).requires_grad_(True)
    model.train(training)
    wrapped.base_hash = digest
    model.__dict__[_ATTACHED] = wrapped


def attached(model: torch.nn.Module) -> PeftModel | None:
    """The adapter that is on a model and not merged; None if there is none."""
    return model.__dict__.get(_ATTACHED)


def merge(model: PreTrainedModel) -> None:
    """Add the adapter that is on a model, if any, to the weights, in place: all layers are as they were."""
    if (wrapped := model.__dict__.pop(_ATTACHED, None)) is not None:
        _merged(wrapped)


def write_adapter(model: PreTrainedModel, folder: Path) -> None:
    """Write the adapter that is on a model into a folder, with the config of the model."""
    wrapped = attached(model)
    head = {f"{_PREFIX}{name}": one for name, one in model.state_dict().items() if not _of_encoder(name)}
    weights = {name: one.contiguous() for name, one in (_state_of(wrapped) | head).items()}
    save_file(weights, folder / ADAPTER_WEIGHTS, metadata={"format": "pt", BASE_HASH: wrapped.base_hash})
    wrapped.peft_config["default"].save_pretrained(folder)
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(folder)


def name_of_base(folder: Path) -> str:
    """The name of the model that the adapter in a folder was made on. Raises CheckpointError: damaged."""
    with named_faults(str(folder), ADAPTER_CONFIG):
        name = json.loads((folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))["base_model_name_or_path"]
        if not isinstance(name, str) or not name:
            raise CheckpointError(f"{folder}: {ADAPTER_CONFIG} names no base_model_name_or_path")
        return name


def merge_from(folder: Path, model: PreTrainedModel, *, with_head: bool) -> None:
    """Merge the adapter in a folder into a model that has the encoder of its base, in place. `with_head`:
    False = the adapter's head is of another model, and is passed over. Raises CheckpointError if the base is
    not the one that the adapter was made on, or the adapter is damaged."""
    with named_faults(str(folder), ADAPTER_CONFIG):
        config = LoraConfig.from_pretrained(str(folder))
        rows = config.trainable_token_indices[WORDS]
    with named_faults(str(folder), ADAPTER_WEIGHTS):
        weights = load_file(folder / ADAPTER_WEIGHTS)
        with safe_open(folder / ADAPTER_WEIGHTS, framework="pt") as opened:
            wanted = (opened.metadata() or {}).get(BASE_HASH)
    if wanted != hash_of_base(model, rows):
        raise CheckpointError(
            f"{folder}: it was made on {name_of_base(folder)}, which has changed since; train it again"
        )
    refuse_not_finite(weights, str(folder))
    weights = {name.removeprefix(_PREFIX): one.float() for name, one in weights.items()}
    head = {name: weights.pop(name) for name in list(weights) if not _of_encoder(name)}
    known = {name for name in model.state_dict() if not _of_encoder(name)} if with_head else head.keys()
    with named_faults(str(folder), ADAPTER_WEIGHTS), own_randomness(0):
        config.modules_to_save = None
        wrapped = _on(model, config)
        factors = {name.removeprefix(_PREFIX) for name in _state_of(wrapped)}
        if differing := (factors ^ weights.keys()) | (known ^ head.keys()):
            raise CheckpointError(f"{folder}: {ADAPTER_WEIGHTS} does not fit: {sorted(differing)[0]}")
        set_peft_model_state_dict(wrapped, {f"{_PREFIX}{name}": one for name, one in weights.items()})
    _merged(wrapped)
    if with_head:
        model.load_state_dict(head, strict=False)


def added_tokens(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """The ids of marks and separators: special tokens beyond those that every tokenizer has."""
    named = {getattr(tokenizer, name, None) for name in _NAMED}
    special = {*tokenizer.all_special_tokens} - named
    return sorted(tokenizer.convert_tokens_to_ids(list(special)))


def hash_of_base(model: PreTrainedModel, rows: list[int]) -> str:
    """A hash of an encoder's weights, rounded to half precision, without the embeddings in `rows`."""
    digest = hashlib.sha256()
    for name, weight in sorted(getattr(model, ENCODER).named_parameters()):
        rounded = weight.detach().cpu().half()
        if f"{WORDS}." in name:
            kept = torch.ones(len(rounded), dtype=torch.bool)
            kept[rows] = False
            rounded = rounded[kept]
        digest.update(name.encode())
        digest.update(rounded.contiguous().numpy().data)
    return digest.hexdigest()


def _on(model: PreTrainedModel, config: LoraConfig) -> PeftModel:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing")  # of transformers, in PEFT
        return PeftModel(model, config)


def _of_encoder(name: str) -> bool:
    return name.startswith(f"{ENCODER}.")


def _state_of(wrapped: PeftModel) -> dict[str, torch.Tensor]:
    # not "auto", for which PEFT asks the hub for the base
    return get_peft_model_state_dict(wrapped, save_embedding_layers=False)


def _merged(wrapped: PeftModel) -> None:
    model = wrapped.merge_and_unload()
    for weight in model.parameters():
        weight.requires_grad_(True)
