"""Collate functions: from single examples to padded batches of tensors."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from cdlm_lab.attention.plan import Plan, make_plan
from cdlm_lab.errors import check_least
from cdlm_lab.examples.masking import NOT_MASKED

# Padding values of the other keys of an example.
_FILL = {"labels": NOT_MASKED, "global_attention_mask": 0, "cross_document": False, "mention_mask": False}
_FILL |= {"pair_mask": False}


@dataclass(frozen=True, slots=True)
class Collate:
    """Pads examples to the longest of the batch and stacks them; give it to a `Trainer` or `DataLoader`.

    Example:
        >>> longer = {"input_ids": [5, 7, 9], "labels": [-100, 8, -100], "global_attention_mask": [0, 1, 0]}
        >>> shorter = {"input_ids": [5, 9], "labels": [-100, 6], "global_attention_mask": [0, 1]}
        >>> batch = Collate(pad_token_id=0)([longer, shorter])
        >>> {key: values.tolist() for key, values in batch.items()} == {
        ...     "input_ids": [[5, 7, 9], [5, 9, 0]],
        ...     "attention_mask": [[1, 1, 1], [1, 1, 0]],
        ...     "labels": [[-100, 8, -100], [-100, 6, -100]],
        ...     "global_attention_mask": [[0, 1, 0], [0, 1, 0]],
        ... }
        True

    Pairs of mentions have one label for all of the sequence, and a mask for each of the two, `[[0, 1, 0],
    [0, 0, 1]]`; readings of many mentions have a mask for each, and in `pair_mask` and `labels` a row and a
    column.
    """

    pad_token_id: int  # pads `input_ids`; labels are padded with -100, masks with 0 or False
    cross_document: bool = True  # False = drop that key, which no model's `forward` takes
    window: int | None = None  # of the model that is trained: add its `plan`, and where labels of tokens are

    def __call__(self, examples: Sequence[Mapping[str, np.ndarray]]) -> dict[str, Any]:
        """Pad and stack `input_ids` (seq,) and any of `labels`, (seq,) per token or () per sequence,
        `global_attention_mask` (seq,), `cross_document` (seq,), `mention_mask` (2, seq), or (mentions, seq)
        with `pair_mask` and `labels` (mentions, mentions). `attention_mask` is 1 for a token, 0 for padding.
        Integers become int64, fractional labels float32, other masks bool."""
        check_keys(examples, needed={"input_ids"}, optional=_FILL)
        _check_lengths(examples)
        fill = _FILL | {"input_ids": self.pad_token_id}
        batch = collated(examples, needed={"input_ids"}, optional=_FILL, fill=fill)
        if not self.cross_document:
            batch.pop("cross_document", None)
        if self.window is None:
            return batch
        if "labels" in batch and batch["labels"].shape == batch["input_ids"].shape:
            batch["masked_places"] = (batch["labels"].flatten() != NOT_MASKED).nonzero().flatten()
        return batch | {"plan": plan_of(batch, window=self.window)}


def plan_of(batch: Mapping[str, torch.Tensor], *, window: int) -> Plan:
    """The plan of a batch with both masks, made beside the training, in the processes that make batches: on a
    GPU no layer then waits for the CPU. `window`: of the model."""
    masks = batch["attention_mask"] == 1, batch["global_attention_mask"] == 1
    return make_plan(attention_mask=masks[0], global_mask=masks[1], window=window)


def check_keys(
    examples: Sequence[Mapping[str, np.ndarray]], *, needed: Collection[str], optional: Collection[str] = ()
) -> None:
    """Raise ValueError unless there are examples and all have the same keys: those needed, and possibly
    optional ones."""
    if not examples:
        raise ValueError("no examples to collate")
    keys = examples[0].keys()
    if not set(needed) <= keys or keys - set(needed) - set(optional):
        wanted = f"{', '.join(sorted(needed))}, and maybe {', '.join(sorted(optional))}"
        raise ValueError(f"examples[0] has the keys {sorted(keys)}; they must be {wanted}")
    for number, example in enumerate(examples):
        if example.keys() != keys:
            what = f"examples[{number}] has the keys {sorted(example)}, but examples[0] {sorted(keys)}"
            raise ValueError(what)


def _check_lengths(examples: Sequence[Mapping[str, np.ndarray]]) -> None:
    """Raise ValueError unless all arrays of an example are as long as its `input_ids`."""
    of_sequences = "labels" in examples[0] and np.ndim(examples[0]["labels"]) == 0
    for number, example in enumerate(examples):
        length = len(example["input_ids"])
        mentions = len(example["pair_mask"]) if "pair_mask" in example else 2
        of_pairs = (mentions, mentions) if "pair_mask" in example else () if of_sequences else (length,)
        shapes = {"mention_mask": (mentions, length), "pair_mask": of_pairs, "labels": of_pairs}
        for key, values in example.items():
            expected = shapes.get(key, (length,))
            if np.shape(values) != expected:
                what = f"examples[{number}][{key!r}] has shape {np.shape(values)}"
                raise ValueError(f"{what}, but there are {length} input_ids; it must be {expected}")


def collated(
    examples: Sequence[Mapping[str, np.ndarray]],
    *,
    needed: Collection[str],
    optional: Collection[str],
    fill: Mapping[str, int | bool],
) -> dict[str, torch.Tensor]:
    """All keys padded to the longest of the batch, with the value in `fill` or 0, and the `attention_mask` of
    `input_ids`, 1 = token, 0 = padding."""
    check_keys(examples, needed=needed, optional=optional)
    batch = {key: padded([one[key] for one in examples], fill=fill.get(key, 0)) for key in examples[0]}
    ones = [np.ones(len(one["input_ids"]), dtype=np.int64) for one in examples]
    return batch | {"attention_mask": padded(ones)}


def padded(rows: Sequence[np.ndarray], *, fill: int | bool = 0) -> torch.Tensor:
    """Stack arrays of unequal sizes, each padded at its ends with `fill`: (batch, ...). Bool if `fill` is,
    else float32 for floating-point arrays and int64 for integers."""
    arrays = [np.asarray(row) for row in rows]
    shape = [max(sizes) for sizes in zip(*(array.shape for array in arrays), strict=True)]
    whole = np.issubdtype(arrays[0].dtype, np.integer)
    kind = bool if isinstance(fill, bool) else np.int64 if whole else np.float32
    out = np.full((len(arrays), *shape), fill, dtype=kind)
    for number, array in enumerate(arrays):
        out[(number, *map(slice, array.shape))] = array
    return torch.from_numpy(out)


def batches_by_length(
    lengths: Sequence[int], global_counts: Sequence[int], batch_size: int
) -> list[list[int]]:
    """Indices of examples in batches of similar length, then of similar number of global tokens, to save
    padding; only the last may be smaller.

    For evaluation, where the order does not matter. Longest first, so a batch that does not fit into memory
    fails at once.

    Example:
        >>> batches_by_length([10, 40, 10, 40], [1, 2, 3, 4], 2)
        [[3, 1], [2, 0]]
    """
    if len(lengths) != len(global_counts):
        raise ValueError(f"there are {len(lengths)} lengths but {len(global_counts)} global_counts")
    check_least(batch_size=batch_size)
    order = sorted(range(len(lengths)), key=lambda n: (-lengths[n], -global_counts[n], n))
    return [order[first : first + batch_size] for first in range(0, len(order), batch_size)]


def batches_by_tokens(
    lengths: Sequence[int], global_counts: Sequence[int], batch_size: int
) -> list[list[int]]:
    """As `batches_by_length`, but each batch has at most as many tokens, padding included, as `batch_size` of
    the longest examples: of shorter ones it holds more, so that short texts take fewer forward passes.

    Example:
        >>> batches_by_tokens([10, 40, 10, 10, 20], [0] * 5, 1)
        [[1], [4, 0], [2, 3]]
    """
    (order,) = batches_by_length(lengths, global_counts, max(1, len(lengths))) or [[]]
    check_least(batch_size=batch_size)
    room, batches = batch_size * max(lengths, default=0), []
    while order:
        count = max(1, room // max(1, lengths[order[0]]))
        batches.append(order[:count])
        order = order[count:]
    return batches


def like_lengths_together(lengths: Sequence[int], batch_size: int) -> list[int]:
    """An order of training examples in which the `batch_size` examples of each update are sorted by length,
    shortest first: micro-batches need little padding, while each update still has the same examples and so
    the same loss and gradients.

    Example:
        >>> like_lengths_together([30, 10, 20, 9, 8], 3)
        [1, 2, 0, 4, 3]
    """
    check_least(batch_size=batch_size)
    return sorted(range(len(lengths)), key=lambda n: (n // batch_size, lengths[n], n))
