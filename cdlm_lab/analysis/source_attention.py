"""Run a model once with a source span global, and keep what the span attends to and is attended by (CDLM
section 3.5: "We first assign global attention to the tokens in the source span").

Only the source's rows and columns of the attention matrices are ever held, so memory grows with the length of
the text and not with its square.

Sparse attention made dense for a few tokens: from chosen query positions to chosen key positions.

Longformer's attention over a long text has no full matrix, and none is made here: each layer recomputes the
weights of the chosen queries alone. What a tool for short texts wants to see, two sentences of two documents
say, is then an ordinary small matrix of every layer and head.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from cdlm_lab.attention.layer import AttentionRecorder, record_attention, recordable_layers

TOP = 5  # predictions kept of a masked token


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceAttention:
    """Attention from and to a source, and what was predicted elsewhere in the same run.

    Attributes:
        source: int64 (source tokens,), their positions, ascending.
        layers: numbers of the recorded layers, ascending; 0 = first.
        given: float32 (layers, heads, source tokens, seq), the weight that a source token gives to each
            position, alpha_{j,i} in the paper; over all positions it sums to 1.
        received: float32, the same shape, the weight that each position gives to a source token,
            alpha_{i,j}.
        is_global: bool (seq,), True = was global.
        reach: bool (seq,), True = in some recorded layer the model can put weight between this position and a
            source token: one of the two is global, or they are within half the window. False = both weights
            are 0 whatever the text says; so they are of padding.
        predicted: int64 (predicted positions,), ascending.
        predicted_ids: int64 (predicted positions, k), the likeliest tokens there, likeliest first.
        probabilities: float32 (predicted positions, k), theirs, among all tokens of the vocabulary.
        truth_probabilities: float32 (predicted positions,), those of the tokens given as `truth`; empty if
            none were.
    """

    source: np.ndarray
    layers: tuple[int, ...]
    given: np.ndarray
    received: np.ndarray
    is_global: np.ndarray
    reach: np.ndarray
    predicted: np.ndarray
    predicted_ids: np.ndarray
    probabilities: np.ndarray
    truth_probabilities: np.ndarray


def attend_to_source(
    model: PreTrainedModel,
    input_ids: Sequence[int] | np.ndarray | Tensor,
    *,
    source: Iterable[int] | np.ndarray,
    extra_global: Iterable[int] | np.ndarray = (),
    source_is_global: bool = True,
    layers: Iterable[int] | None = None,
    predict: Iterable[int] | np.ndarray = (),
    truth: Sequence[int] | np.ndarray | None = None,
    top_k: int = TOP,
) -> SourceAttention:
    """Run `model` over one sequence, without dropout and gradient, on the device it is on.

    Args:
        model: one that `load_encoder` or `load_language_model` gave; it stays in training if it was.
        input_ids: int (seq,), special tokens included; the model's padding id is padding.
        source: tokens of S: a list of positions, or a bool mask (seq,), True = chosen.
        extra_global: others that are global, likewise.
        source_is_global: False = the source is global only as far as it is in `extra_global`.
        layers: numbers of the layers to record, -1 = last, all that the paper's score needs; None = all.
        predict: positions at which a language model is asked for the token; mask them before.
        truth: int (predicted positions,), ids whose probability is wanted, in the order of ascending
            positions; None = of none.
        top_k: how many tokens are kept of each.

    Raises:
        ValueError: no source; a position outside the text or on padding; a text too long or with unknown ids;
            unknown layers; `predict` without a language-model head; another number of `truth` than of
            positions; attention that is not ours.
    """
    ids = _checked_ids(input_ids, model)
    present = (ids != model.config.pad_token_id).numpy()
    chosen, others, asked = (
        _positions(positions, present, name=name)
        for name, positions in (("source", source), ("extra_global", extra_global), ("predict", predict))
    )
    if not len(chosen):
        raise ValueError("the source is empty; choose at least one token")
    if len(asked):
        _check_prediction(model, top_k)
    if truth is not None and len(truth) != len(asked):
        raise ValueError(f"truth has {len(truth)} ids, but {len(asked)} positions are to be predicted")
    is_global = np.isin(np.arange(len(ids)), np.append(others, chosen) if source_is_global else others)
    text = _Text(ids=ids, present=present, is_global=is_global)
    return _run(model, text, source=chosen, layers=layers, predict=asked, truth=truth, top_k=top_k)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Text:
    """Checked input, all (seq,): `ids` int64, `present` bool, True = no padding, `is_global` bool."""

    ids: Tensor
    present: np.ndarray
    is_global: np.ndarray


def _run(
    model: PreTrainedModel,
    text: _Text,
    *,
    source: np.ndarray,
    layers: Iterable[int] | None,
    predict: np.ndarray,
    truth: Sequence[int] | np.ndarray | None,
    top_k: int,
) -> SourceAttention:
    tokens = torch.from_numpy(source)[None]  # (1, source tokens)
    with (
        evaluating(model),
        torch.inference_mode(),
        record_attention(model.base_model, tokens, layers=layers) as recorder,
    ):
        states = _hidden_states(model, text)
        predicted_ids, probabilities, of_truth = _predictions(model, states[predict], top_k, truth)
    windows = [layer.window for layer in recordable_layers(model.base_model)]
    return SourceAttention(
        source=source,
        layers=recorder.layers,
        **_weights(recorder, length=len(text.ids)),
        is_global=text.is_global,
        reach=_reach(source, text, window=max(windows[layer] for layer in recorder.layers)),
        predicted=predict,
        predicted_ids=predicted_ids,
        probabilities=probabilities,
        truth_probabilities=of_truth,
    )


def _checked_ids(input_ids: Sequence[int] | np.ndarray | Tensor, model: PreTrainedModel) -> Tensor:
    """int64 (seq,) on the CPU."""
    ids = torch.as_tensor(input_ids).cpu()
    if ids.dim() != 1 or not len(ids) or ids.dtype.is_floating_point or ids.dtype == torch.bool:
        raise ValueError(
            f"input_ids must be whole numbers (seq,), not empty; got {ids.dtype} {tuple(ids.shape)}"
        )
    config = model.config
    longest = config.max_position_embeddings - config.pad_token_id - 1
    if len(ids) > longest:
        raise ValueError(f"the text has {len(ids)} tokens, but the model reads at most {longest}; shorten it")
    words = model.get_input_embeddings().num_embeddings
    if (wrong := (ids < 0) | (ids >= words)).any():
        raise ValueError(f"input_ids has {int(ids[wrong][0])}, but the model's ids are 0 to {words - 1}")
    return ids.long()


def _positions(chosen: Iterable[int] | np.ndarray, present: np.ndarray, *, name: str) -> np.ndarray:
    """Ascending positions of a list or a mask, int64, each once, checked to be in the text."""
    given = np.asarray(chosen if isinstance(chosen, np.ndarray) else list(chosen))
    length = len(present)
    if given.dtype == bool:
        if given.shape != (length,):
            raise ValueError(f"the mask {name} has shape {given.shape}, but the text has {length} tokens")
        given = np.flatnonzero(given)
    if not given.size:
        return np.empty(0, dtype=np.int64)
    if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer):
        raise ValueError(
            f"{name} must be a list of positions or a bool mask, got {given.dtype} {given.shape}"
        )
    outside = given[(given < 0) | (given >= length)]
    if len(outside):
        raise ValueError(f"{name}: position {outside[0]} is outside the text of {length} tokens")
    if not present[given].all():
        raise ValueError(f"{name}: position {given[~present[given]][0]} is padding")
    return np.unique(given).astype(np.int64)


def _hidden_states(model: PreTrainedModel, text: _Text) -> Tensor:
    """(seq, dim), of the encoder alone: the vocabulary of every token would be 0.5 GB at 4,096 tokens."""
    batch = {
        "input_ids": text.ids,
        "attention_mask": torch.from_numpy(text.present).long(),
        "global_attention_mask": torch.from_numpy(text.is_global).long(),
    }
    on_device = {name: tensor[None].to(model.device) for name, tensor in batch.items()}
    return model.base_model(**on_device, return_dict=True).last_hidden_state[0]


def _check_prediction(model: PreTrainedModel, top_k: int) -> None:
    if not hasattr(model, "lm_head"):
        raise ValueError(
            f"{type(model).__name__} has no language-model head to predict with; use load_language_model"
        )
    words = model.get_input_embeddings().num_embeddings
    if not 1 <= top_k <= words:
        raise ValueError(f"top_k is {top_k}; it must be from 1 to {words}, the size of the vocabulary")


def _predictions(
    model: PreTrainedModel, states: Tensor, top_k: int, truth: Sequence[int] | np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The likeliest tokens and their probabilities, both (positions, k), and those of the truth, from hidden
    states (positions, dim): the vocabulary is projected for these positions alone."""
    nothing = np.empty(0, dtype=np.float32)
    if not len(states):
        return np.empty((0, top_k), dtype=np.int64), np.empty((0, top_k), dtype=np.float32), nothing
    shares = model.lm_head(states).float().softmax(-1)  # (positions, vocabulary)
    best = shares.topk(top_k)
    of_truth = nothing
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


def _weights(recorder: AttentionRecorder, *, length: int) -> dict[str, np.ndarray]:
    """`given` and `received` without what the model filled the text up with."""
    recorded = {"given": recorder.from_tokens, "received": recorder.to_tokens}
    return {
        name: torch.stack([layer[0, :, :, :length] for layer in layers]).cpu().numpy()
        for name, layers in recorded.items()
    }


def _reach(source: np.ndarray, text: _Text, *, window: int) -> np.ndarray:
    """See `SourceAttention.reach`; `window`: the widest of the recorded layers."""
    if text.is_global[source].any():
        return text.present.copy()
    position = np.arange(len(text.present))
    after = np.searchsorted(source, position).clip(max=len(source) - 1)  # the next source token, or the last
    before = (after - 1).clip(min=0)
    distance = np.minimum(np.abs(source[after] - position), np.abs(position - source[before]))
    return text.present & (text.is_global | (distance <= window // 2))


@torch.no_grad()
def attention_between(
    model: PreTrainedModel,
    input_ids: Sequence[int] | np.ndarray | Tensor,
    *,
    queries: Sequence[int] | np.ndarray | Tensor,
    keys: Sequence[int] | np.ndarray | Tensor,
    global_mask: Sequence[bool] | np.ndarray | Tensor,
) -> np.ndarray:
    """The weights that the tokens at `queries` give to the tokens at `keys`, in every layer and head.

    A weight is exactly 0 where the two are farther apart than half the window and neither is global. The
    model runs once, without dropout; memory grows with the length, not with its square.

    Args:
        model: with our attention inside (see `replace_self_attention`); a head on top is not run.
        input_ids: (seq,), one sequence without padding.
        queries: positions in it, in any order; half-open spans are `range(start, end)`.
        keys: likewise.
        global_mask: (seq,), True = attends to every token and is attended to by every token.

    Returns:
        (layer, head, query, key) float32. A row sums to 1 only over all keys of the text.

    Raises:
        ValueError: masks or positions that do not fit the sequence, nothing chosen, or a model whose
            attention is not ours.
    """
    ids = torch.as_tensor(input_ids, dtype=torch.long, device=model.device)
    is_global = torch.as_tensor(global_mask, dtype=torch.bool, device=model.device)
    if ids.dim() != 1 or is_global.shape != ids.shape:
        raise ValueError(
            f"input_ids {tuple(ids.shape)} and global_mask {tuple(is_global.shape)} must both be (seq,)"
        )
    chosen = _positions_dense_attention(queries, name="queries", length=len(ids), device=ids.device)
    seen = _positions_dense_attention(keys, name="keys", length=len(ids), device=ids.device)
    encoder = model.base_model  # the vocabulary projection of a language model would be work in vain
    with evaluating(model), record_attention(encoder, chosen[None]) as recorder:
        encoder(
            input_ids=ids[None],
            attention_mask=torch.ones_like(ids)[None],
            global_attention_mask=is_global.long()[None],
        )
    # (batch 1, head, query, seq) a layer
    return torch.stack([given[0, :, :, seen] for given in recorder.from_tokens]).float().cpu().numpy()


def _positions_dense_attention(chosen: object, *, name: str, length: int, device: torch.device) -> Tensor:
    """`chosen` as (chosen,) long positions below `length`."""
    positions = torch.as_tensor(chosen, device=device)
    if positions.dim() != 1 or len(positions) == 0 or positions.is_floating_point():
        raise ValueError(f"{name} must be at least one whole position in a row, got {chosen!r}")
    low, high = int(positions.min()), int(positions.max())
    if low < 0 or high >= length:
        raise ValueError(f"{name} run from {low} to {high}, but the sequence has positions 0 to {length - 1}")
    return positions.long()
