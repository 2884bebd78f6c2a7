"""Run a model once with a global source span, and record what the span attends to and is attended by (CDLM
section 3.5: "We first assign global attention to the tokens in the source span").

Only the source's rows and columns of the attention matrices are stored, so memory grows with the length of
the text and not with its square. `attention_between` returns the matrix between two sets of tokens, for tools
that display short texts.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import get_ident
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.attention.cut import Cut, cutting
from cdlm_lab.attention.weights import layer_numbers, record_attention, recordable_layers
from cdlm_lab.encoders.interface_attention import record_interface
from cdlm_lab.encoders.language_model import longest
from cdlm_lab.examples.tokens import DOCUMENT_END, DOCUMENT_START

Positions = Iterable[int] | np.ndarray | Tensor
CutAsGiven = str | Mapping[str, Any] | Cut | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceAttention:
    """Attention from and to a source."""

    source: np.ndarray  # int64 (source tokens,), positions, ascending
    layers: tuple[int, ...]  # numbers of the recorded layers, ascending; 0 = first
    # Float32 (layers, heads, source tokens, seq) both: the weight that a source token gives to each position
    # (alpha_{j,i} in the paper; sums to 1), and that each position gives to it (alpha_{i,j}).
    given: np.ndarray
    received: np.ndarray
    is_global: np.ndarray  # bool (seq,), True = was global
    # Bool (seq,), True = in some recorded layer there can be weight between this position and a source token:
    # one of the two is global, or they are within half the window. False = both weights are 0 for any text;
    # that includes padding.
    reach: np.ndarray


def attend_to_source(
    model: PreTrainedModel,
    input_ids: Sequence[int] | np.ndarray | Tensor,
    *,
    source: Positions,
    extra_global: Positions = (),
    source_is_global: bool = True,
    layers: Iterable[int] | None = None,
) -> SourceAttention:
    """Run `model` over one sequence, without dropout and gradient, on its device.

    Args:
        model: from `load_encoder` or `load_language_model`; its training mode is restored.
        input_ids: (seq,), special tokens included; the model's padding id is padding.
        source: tokens of S: positions, or a bool mask (seq,).
        extra_global: further global tokens, in the same form.
        source_is_global: False = source tokens are global only if they are in `extra_global`.
        layers: indices of the layers to record, -1 = last, which suffices for the paper's score; None = all.
    """
    ids = _checked_ids(input_ids, model)
    present = (ids != model.config.pad_token_id).numpy()
    named = {"source": source, "extra_global": extra_global}
    source, others = (np.unique(_positions(given, present, name)) for name, given in named.items())
    if not len(source):
        raise ValueError("the source is empty; choose at least one token")
    is_global = np.isin(np.arange(len(ids)), np.append(others, source) if source_is_global else others)
    if not is_recordable(model):
        return _by_interface(model, ids, source, present, is_global, layers=layers)
    recording = record_attention(model.base_model, torch.from_numpy(source)[None], layers=layers)
    with evaluating(model), torch.inference_mode(), recording as recorder:
        hidden_states(model, ids, present, is_global)
    windows = [layer.window for layer in recordable_layers(model.base_model)]
    return SourceAttention(
        source=source,
        layers=recorder.layers,
        given=_stacked(recorder.from_tokens, len(ids)),
        received=_stacked(recorder.to_tokens, len(ids)),
        is_global=is_global,
        reach=_reach(source, present, is_global, window=max(windows[layer] for layer in recorder.layers)),
    )


def is_recordable(model: PreTrainedModel) -> bool:
    """True if the attention of a model is ours, which can be cut as well."""
    return any(hasattr(module, "recorder") for module in model.base_model.modules())


def _by_interface(
    model: PreTrainedModel,
    ids: Tensor,
    source: np.ndarray,
    present: np.ndarray,
    is_global: np.ndarray,
    *,
    layers: Iterable[int] | None,
) -> SourceAttention:
    """`attend_to_source` of an encoder on transformers' attention interface."""
    recording = record_interface(model.base_model, torch.from_numpy(source))
    with evaluating(model), torch.inference_mode(), recording as recorder:
        hidden_states(model, ids, present, is_global)
    numbers = layer_numbers(layers, count=len(recorder.from_tokens))
    sides = ([of[number] for number in numbers] for of in (recorder.from_tokens, recorder.to_tokens))
    given, received = (_stacked(side, len(ids)) for side in sides)
    form = {"source": source, "given": given, "received": received, "layers": tuple(numbers)}
    reach = torch.stack([recorder.reach[number] for number in numbers]).any(dim=0).cpu().numpy()
    return SourceAttention(**form, is_global=is_global & _has_globals(model), reach=reach)


def _has_globals(model: PreTrainedModel) -> bool:
    return "global_attention_mask" in inspect.signature(model.base_model.forward).parameters


def attention_between(
    model: PreTrainedModel,
    input_ids: Sequence[int] | np.ndarray | Tensor,
    *,
    queries: Positions,
    keys: Positions,
    global_mask: Sequence[bool] | np.ndarray | Tensor,
) -> np.ndarray:
    """The weights that the tokens at `queries` give to those at `keys`, (layer, head, query, key) float32.

    A weight is exactly 0 where the two are farther apart than half the window and neither is global; a row
    sums to 1 only over all keys of the text. Positions come in any order; the text, (seq,), has no padding.
    """
    ids = _checked_ids(input_ids, model)
    is_global = torch.as_tensor(global_mask, dtype=torch.bool).cpu().numpy()
    if is_global.shape != ids.shape:
        shapes = f"input_ids {tuple(ids.shape)} and global_mask {is_global.shape}"
        raise ValueError(f"{shapes} must both be (seq,)")
    everywhere = np.ones(len(ids), dtype=bool)
    queries, keys = _positions(queries, everywhere, "queries"), _positions(keys, everywhere, "keys")
    if not (len(queries) and len(keys)):
        raise ValueError("queries and keys must each be at least one position")
    attention = attend_to_source(model, ids, source=queries, extra_global=is_global, source_is_global=False)
    return attention.given[:, :, np.searchsorted(attention.source, queries)[:, None], keys]


def _checked_ids(input_ids: Sequence[int] | np.ndarray | Tensor, model: PreTrainedModel) -> Tensor:
    """The ids as int64 (seq,) on the CPU; ValueError if the model cannot read them."""
    ids = torch.as_tensor(input_ids).cpu()
    if ids.dim() != 1 or not len(ids) or ids.dtype.is_floating_point or ids.dtype == torch.bool:
        got = f"{ids.dtype} {tuple(ids.shape)}"
        raise ValueError(f"input_ids must be whole numbers (seq,), not empty; got {got}")
    if len(ids) > (most := longest(model.config)):
        raise ValueError(f"the text has {len(ids)} tokens, but the model reads at most {most}; shorten it")
    words = model.get_input_embeddings().num_embeddings
    if (wrong := (ids < 0) | (ids >= words)).any():
        raise ValueError(f"input_ids has {int(ids[wrong][0])}, but the model's ids are 0 to {words - 1}")
    return ids.long()


def _positions(chosen: Positions, present: np.ndarray, name: str) -> np.ndarray:
    """Positions, int64, from a list or a mask; ValueError if one is outside the text or padding."""
    chosen = chosen.cpu().numpy() if isinstance(chosen, Tensor) else chosen
    positions = np.asarray(chosen if isinstance(chosen, np.ndarray) else list(chosen))
    length = len(present)
    if positions.dtype == bool:
        if positions.shape != (length,):
            raise ValueError(f"the mask {name} has shape {positions.shape}, but the text has {length} tokens")
        positions = np.flatnonzero(positions)
    if not positions.size:
        return np.empty(0, dtype=np.int64)
    if positions.ndim != 1 or not np.issubdtype(positions.dtype, np.integer):
        got = f"{positions.dtype} {positions.shape}"
        raise ValueError(f"{name} must be a list of positions or a bool mask, got {got}")
    outside = positions[(positions < 0) | (positions >= length)]
    if len(outside):
        raise ValueError(f"{name}: position {outside[0]} is outside the text of {length} tokens")
    if not present[positions].all():
        raise ValueError(f"{name}: position {positions[~present[positions]][0]} is padding")
    return positions.astype(np.int64)


def hidden_states(model: PreTrainedModel, ids: Tensor, present: np.ndarray, is_global: np.ndarray) -> Tensor:
    """Last hidden states (..., seq, dim) of texts (..., seq), from the encoder alone: logits over the
    vocabulary for every token would take 0.5 GB at 4,096 tokens."""
    states = model.base_model(**_batch(model, ids, present, is_global)).last_hidden_state
    return states.reshape(*ids.shape, -1)


def predicts(model: PreTrainedModel) -> bool:
    """True if a model predicts words: a masked language model of any kind."""
    return model.get_output_embeddings() is not None


def logits_at(model: PreTrainedModel, ids: Tensor, places: np.ndarray, is_global: np.ndarray) -> Tensor:
    """What a masked language model predicts at `places` of texts (rows, seq) without padding, by its own
    forward: (rows, places, vocab). The projection onto the vocabulary is given these places alone."""
    reads = get_ident()

    def of_places(_: nn.Module, given: tuple[Tensor]) -> tuple[Tensor] | None:
        return (given[0][:, places],) if get_ident() == reads else None  # another thread may read meanwhile

    hook = model.get_output_embeddings().register_forward_pre_hook(of_places)
    try:
        everywhere = np.ones(ids.shape, dtype=bool)
        return model(**_batch(model, ids, everywhere, np.tile(is_global, (len(ids), 1)))).logits
    finally:
        hook.remove()


def _batch(model: PreTrainedModel, ids: Tensor, present: np.ndarray, is_global: np.ndarray) -> dict[str, Any]:
    batch = {"input_ids": ids, "attention_mask": torch.from_numpy(present).long()}
    if _has_globals(model):
        batch["global_attention_mask"] = torch.from_numpy(is_global).long()
    on_device = {name: torch.atleast_2d(tensor).to(model.device) for name, tensor in batch.items()}
    return {**on_device, "return_dict": True}


@contextmanager
def apart(model: nn.Module, tokenizer: PreTrainedTokenizerBase | None, cut: CutAsGiven) -> Iterator[None]:
    """Cut attention between documents inside the block: `"documents"` = all of it, `{"layers": [4, 5]}` or
    `{"layers": [4], "heads": [0, 3]}` = in these layers and heads, from 0, `"random"` = as much within
    documents, or a `Cut`; None = nothing. Raises ValueError for a cut that cannot be made, such as of a model
    that reads documents each by itself."""
    if (chosen := Cut.of(cut)) is None:
        yield
        return
    if not (hasattr(model, "base_model") and is_recordable(model)):
        what = f"attention between documents cannot be cut in a {type(model).__name__}"
        raise ValueError(f"{what}; it can in a Longformer or ModernBERT that reads them together")
    known = tokenizer.get_vocab() if isinstance(tokenizer, PreTrainedTokenizerBase) else {}
    if missing := [one for one in (DOCUMENT_START, DOCUMENT_END) if one not in known]:
        what = f"{type(model).__name__} reads no documents between {DOCUMENT_START} and {DOCUMENT_END}"
        raise ValueError(f"{what} (there is no {missing[0]}), so no attention between them can be cut")
    with cutting(model, chosen, separators=(known[DOCUMENT_START], known[DOCUMENT_END])):
        yield


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put the model into evaluation mode inside the block; afterwards restore the mode of each module."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


def _stacked(recorded: Iterable[Tensor], length: int) -> np.ndarray:
    """(layers, heads, source tokens, seq), without positions that the model padded the text with."""
    return torch.stack([layer[0, :, :, :length] for layer in recorded]).cpu().numpy()


def _reach(source: np.ndarray, present: np.ndarray, is_global: np.ndarray, *, window: int) -> np.ndarray:
    """The field `reach` of `SourceAttention`; `window`: the largest of the recorded layers."""
    if is_global[source].any():
        return present.copy()
    position = np.arange(len(present))
    after = np.searchsorted(source, position).clip(max=len(source) - 1)  # next source token's, or the last's
    before = (after - 1).clip(min=0)
    distance = np.minimum(np.abs(source[after] - position), np.abs(position - source[before]))
    return present & (is_global | (distance <= window // 2))
