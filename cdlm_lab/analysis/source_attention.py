"""Run a model once with a source span global, and keep what the span attends to and is attended by (CDLM
section 3.5: "We first assign global attention to the tokens in the source span").

Only the source's rows and columns of the attention matrices are held, so memory grows with the length of
the text and not with its square. `attention_between` is the matrix between two sets of tokens, which a tool
for short texts can show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from cdlm_lab.attention.weights import record_attention, recordable_layers

TOP = 5  # predictions kept of a masked token
Positions = Iterable[int] | np.ndarray | Tensor


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceAttention:
    """Attention from and to a source, and what was predicted elsewhere in the same run."""

    source: np.ndarray  # int64 (source tokens,), their positions, ascending
    layers: tuple[int, ...]  # numbers of the recorded layers, ascending; 0 = first
    # Float32 (layers, heads, source tokens, seq) both: the weight that a source token gives to each position,
    # alpha_{j,i} in the paper, 1 in sum over all positions; and that each gives to a source token,
    # alpha_{i,j}.
    given: np.ndarray
    received: np.ndarray
    is_global: np.ndarray  # bool (seq,), True = was global
    # Bool (seq,), True = in some recorded layer the model can put weight between this position and a source
    # token: one of the two is global, or they are within half the window. False = both weights are 0 whatever
    # the text says; so they are of padding.
    reach: np.ndarray
    predicted: np.ndarray  # int64 (predicted positions,), ascending
    predicted_ids: np.ndarray  # int64 (predicted positions, k), the likeliest tokens there, likeliest first
    probabilities: np.ndarray  # float32 (predicted positions, k), theirs, among all tokens of the vocabulary
    truth_probabilities: (
        np.ndarray
    )  # float32 (predicted positions,), of the tokens given as `truth`; or empty


def attend_to_source(
    model: PreTrainedModel,
    input_ids: Sequence[int] | np.ndarray | Tensor,
    *,
    source: Positions,
    extra_global: Positions = (),
    source_is_global: bool = True,
    layers: Iterable[int] | None = None,
    predict: Positions = (),
    truth: Sequence[int] | np.ndarray | None = None,
    top_k: int = TOP,
) -> SourceAttention:
    """Run `model` over one sequence, without dropout and gradient, on the device it is on.

    Args:
        model: one of `load_encoder` or `load_language_model`; it stays in training if it was.
        input_ids: (seq,), special tokens included; the model's padding id is padding.
        source: tokens of S: positions, or a bool mask (seq,).
        extra_global: others that are global, likewise.
        source_is_global: False = the source is global only as far as it is in `extra_global`.
        layers: numbers of the layers to record, -1 = last, all that the paper's score needs; None = all.
        predict: positions at which a language model predicts the token; mask them before.
        truth: (predicted positions,), ids whose probability is wanted, by ascending position.
        top_k: how many predictions are kept of each position.
    """
    ids = _checked_ids(input_ids, model)
    present = (ids != model.config.pad_token_id).numpy()
    named = {"source": source, "extra_global": extra_global, "predict": predict}
    source, others, predict = (np.unique(_positions(given, present, name)) for name, given in named.items())
    if not len(source):
        raise ValueError("the source is empty; choose at least one token")
    _check_prediction(model, len(predict), top_k, truth)
    is_global = np.isin(np.arange(len(ids)), np.append(others, source) if source_is_global else others)
    recording = record_attention(model.base_model, torch.from_numpy(source)[None], layers=layers)
    with evaluating(model), torch.inference_mode(), recording as recorder:
        states = hidden_states(model, ids, present, is_global)
        predicted_ids, probabilities, of_truth = _predictions(model, states[predict], top_k, truth)
    windows = [layer.window for layer in recordable_layers(model.base_model)]
    return SourceAttention(
        source=source,
        layers=recorder.layers,
        given=_stacked(recorder.from_tokens, len(ids)),
        received=_stacked(recorder.to_tokens, len(ids)),
        is_global=is_global,
        reach=_reach(source, present, is_global, window=max(windows[layer] for layer in recorder.layers)),
        predicted=predict,
        predicted_ids=predicted_ids,
        probabilities=probabilities,
        truth_probabilities=of_truth,
    )


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
    sums to 1 only over all keys of the text. Positions come in any order, the text, (seq,), without padding.
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
    rows = np.searchsorted(attention.source, queries)
    return attention.given[:, :, rows[:, None], keys]


def _checked_ids(input_ids: Sequence[int] | np.ndarray | Tensor, model: PreTrainedModel) -> Tensor:
    """int64 (seq,) on the CPU."""
    ids = torch.as_tensor(input_ids).cpu()
    if ids.dim() != 1 or not len(ids) or ids.dtype.is_floating_point or ids.dtype == torch.bool:
        got = f"{ids.dtype} {tuple(ids.shape)}"
        raise ValueError(f"input_ids must be whole numbers (seq,), not empty; got {got}")
    longest = model.config.max_position_embeddings - model.config.pad_token_id - 1
    if len(ids) > longest:
        raise ValueError(f"the text has {len(ids)} tokens, but the model reads at most {longest}; shorten it")
    words = model.get_input_embeddings().num_embeddings
    if (wrong := (ids < 0) | (ids >= words)).any():
        raise ValueError(f"input_ids has {int(ids[wrong][0])}, but the model's ids are 0 to {words - 1}")
    return ids.long()


def _positions(chosen: Positions, present: np.ndarray, name: str) -> np.ndarray:
    """Positions of a list or a mask, int64, checked to be in the text."""
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
    """(seq, dim), of the encoder alone: the vocabulary of every token would be 0.5 GB at 4,096 tokens."""
    batch = {
        "input_ids": ids,
        "attention_mask": torch.from_numpy(present).long(),
        "global_attention_mask": torch.from_numpy(is_global).long(),
    }
    on_device = {name: tensor[None].to(model.device) for name, tensor in batch.items()}
    return model.base_model(**on_device, return_dict=True).last_hidden_state[0]


def _check_prediction(
    model: PreTrainedModel, positions: int, top_k: int, truth: Sequence[int] | np.ndarray | None
) -> None:
    if truth is not None and len(truth) != positions:
        raise ValueError(f"truth has {len(truth)} ids, but {positions} positions are to be predicted")
    if not positions:
        return
    if not hasattr(model, "lm_head"):
        what = f"{type(model).__name__} has no language-model head to predict with"
        raise ValueError(f"{what}; use load_language_model")
    words = model.get_input_embeddings().num_embeddings
    if not 1 <= top_k <= words:
        raise ValueError(f"top_k is {top_k}; it must be from 1 to {words}, the size of the vocabulary")


def _predictions(
    model: PreTrainedModel, states: Tensor, top_k: int, truth: Sequence[int] | np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The likeliest tokens and their probabilities, both (positions, k), and those of the truth, from hidden
    states (positions, dim): the vocabulary is projected for these positions alone."""
    of_truth = np.empty(0, dtype=np.float32)
    if not len(states):
        return np.empty((0, top_k), dtype=np.int64), np.empty((0, top_k), dtype=np.float32), of_truth
    shares = model.lm_head(states).float().softmax(-1)  # (positions, vocabulary)
    best = shares.topk(top_k)
    if truth is not None:
        ids = torch.as_tensor(np.asarray(truth), device=shares.device)
        of_truth = shares.gather(1, ids[:, None].long())[:, 0].cpu().numpy()
    return best.indices.cpu().numpy(), best.values.cpu().numpy(), of_truth


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """The model in evaluation mode, then each module as it was."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


def _stacked(recorded: Iterable[Tensor], length: int) -> np.ndarray:
    """(layers, heads, source tokens, seq), without the positions that the model filled the text up with."""
    return torch.stack([layer[0, :, :, :length] for layer in recorded]).cpu().numpy()


def _reach(source: np.ndarray, present: np.ndarray, is_global: np.ndarray, *, window: int) -> np.ndarray:
    """`SourceAttention.reach`; `window`: the widest of the recorded layers."""
    if is_global[source].any():
        return present.copy()
    position = np.arange(len(present))
    after = np.searchsorted(source, position).clip(max=len(source) - 1)  # the next source token, or the last
    before = (after - 1).clip(min=0)
    distance = np.minimum(np.abs(source[after] - position), np.abs(position - source[before]))
    return present & (is_global | (distance <= window // 2))
