"""From pairs of documents, each with as many sentences as it has, to one padded batch of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from .vocabulary import FILLING

SIDES = ("first", "second")


class PairCollate:
    """Pads examples of `SentencePairExamples` and stacks them into what `DocumentMatcher.forward` takes; give
    it to a `Trainer` or `DataLoader` as it is.

    Example:

        [{"first": [[5, 7], [6, 0]], "second": [[8]],    "labels": 1.0},
         {"first": [[9]],            "second": [[4, 3]], "labels": 0.0}]
        gives
        {"inputs":        [[[[5, 7], [6, 0]], [[8, 0], [0, 0]]],
                           [[[9, 0], [0, 0]], [[4, 3], [0, 0]]]],
         "sentence_mask": [[[1, 1], [1, 0]],
                           [[1, 0], [1, 0]]],
         "labels":        [1.0, 0.0]}
    """

    def __call__(self, examples: Sequence[Mapping[str, np.ndarray]]) -> dict[str, Tensor]:
        """Pad and stack.

        Args:
            examples: `first` and `second`, all of words, int (sentences, words), or all of vectors, float
                (sentences, size); `labels` () in all or in none.

        Returns:
            `inputs`: (batch, 2, sentences, words) long or (batch, 2, sentences, size) float32, 0 where
            nothing is; `sentence_mask`: (batch, 2, sentences) bool, True = sentence; `labels`: (batch,)
            float32, if there.

        Raises:
            ValueError: no examples; different or other keys; arrays of other than two dimensions, of several
                dtypes or, for vectors, of several sizes.
        """
        _check_keys(examples)
        documents = [[np.asarray(example[side]) for side in SIDES] for example in examples]
        whole = _checked_kind(documents)
        count, width = (max(each.shape[axis] for pair in documents for each in pair) for axis in (0, 1))
        shape = (len(documents), len(SIDES), count, width)
        inputs = torch.full(shape, FILLING, dtype=torch.int64 if whole else torch.float32)
        mask = torch.zeros(shape[:3], dtype=torch.bool)
        for row, pair in enumerate(documents):
            for side, each in enumerate(pair):
                sentences, words = each.shape
                inputs[row, side, :sentences, :words] = torch.tensor(each)
                mask[row, side, :sentences] = True
        batch = {"inputs": inputs, "sentence_mask": mask}
        if "labels" in examples[0]:
            batch["labels"] = torch.tensor([float(example["labels"]) for example in examples])
        return batch


def _check_keys(examples: Sequence[Mapping[str, np.ndarray]]) -> None:
    if not examples:
        raise ValueError("no examples to collate")
    keys = examples[0].keys()
    if keys - {"labels"} != set(SIDES):
        raise ValueError(
            f"examples[0] has the keys {sorted(keys)}; they must be first, second and maybe labels"
        )
    for number, example in enumerate(examples):
        if example.keys() != keys:
            what = f"examples[{number}] has the keys {sorted(example)}, but examples[0] {sorted(keys)}"
            raise ValueError(what)


def _checked_kind(documents: Sequence[Sequence[np.ndarray]]) -> bool:
    """True for words, False for vectors."""
    model = documents[0][0]
    whole = np.issubdtype(model.dtype, np.integer)
    for row, pair in enumerate(documents):
        for side, each in zip(SIDES, pair, strict=True):
            name = f"examples[{row}][{side!r}]"
            if each.ndim != 2:
                raise ValueError(f"{name} has shape {each.shape}; it must be (sentences, words or size)")
            if each.dtype != model.dtype:
                what = f"{name} is {each.dtype}, but examples[0]['first'] {model.dtype}"
                raise ValueError(f"{what}; encode all documents alike")
            if not whole and each.shape[1] != model.shape[1]:
                what = (
                    f"{name} has vectors of size {each.shape[1]}, but examples[0]['first'] {model.shape[1]}"
                )
                raise ValueError(f"{what}; encode all documents alike")
    return whole
