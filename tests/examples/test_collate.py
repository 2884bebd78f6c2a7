from __future__ import annotations

import numpy as np
import pytest
import torch

from cdlm_lab.examples.collate import Collate, batches_by_length, like_lengths_together


def example(length: int, **changes) -> dict[str, np.ndarray]:
    values = {
        "input_ids": np.arange(10, 10 + length),
        "labels": np.full(length, 3),
        "global_attention_mask": np.ones(length, dtype=np.int64),
        "cross_document": np.ones(length, dtype=bool),
    }
    return values | changes


def pair_example(length: int, label) -> dict[str, np.ndarray]:
    return {
        "input_ids": np.arange(10, 10 + length),
        "mention_mask": np.eye(2, length, dtype=bool),
        "labels": label,
    }


def test_the_matrices_of_a_small_batch():
    batch = Collate(pad_token_id=1)([example(2), example(4), example(1)])
    assert {key: value.int().tolist() for key, value in batch.items()} == {
        "input_ids": [[10, 11, 1, 1], [10, 11, 12, 13], [10, 1, 1, 1]],
        "attention_mask": [[1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]],
        "labels": [[3, 3, -100, -100], [3, 3, 3, 3], [3, -100, -100, -100]],
        "global_attention_mask": [[1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]],
        "cross_document": [[1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]],
    }
    assert batch.pop("cross_document").dtype == torch.bool
    assert {value.dtype for value in batch.values()} == {torch.int64}


def test_the_docstring_example():
    given = [
        {"input_ids": [5, 7, 9], "labels": [-100, 8, -100], "global_attention_mask": [0, 1, 0]},
        {"input_ids": [5, 9], "labels": [-100, 6], "global_attention_mask": [0, 1]},
    ]
    batch = Collate(pad_token_id=0)(given)
    assert {key: value.tolist() for key, value in batch.items()} == {
        "input_ids": [[5, 7, 9], [5, 9, 0]],
        "attention_mask": [[1, 1, 1], [1, 1, 0]],
        "labels": [[-100, 8, -100], [-100, 6, -100]],
        "global_attention_mask": [[0, 1, 0], [0, 1, 0]],
    }


def test_the_docstring_example_of_pairs():
    given = [
        {"input_ids": [5, 7, 9], "mention_mask": [[0, 1, 0], [0, 0, 1]], "labels": 1.0},
        {"input_ids": [5, 9], "mention_mask": [[1, 0], [0, 1]], "labels": 0.0},
    ]
    batch = Collate(pad_token_id=0)(given)
    assert {key: value.tolist() for key, value in batch.items()} == {
        "input_ids": [[5, 7, 9], [5, 9, 0]],
        "attention_mask": [[1, 1, 1], [1, 1, 0]],
        "mention_mask": [[[0, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 1, 0]]],
        "labels": [1.0, 0.0],
    }
    assert batch["mention_mask"].dtype == torch.bool
    assert batch["labels"].dtype == torch.float32


@pytest.mark.parametrize(
    ("label", "dtype"),
    [
        (np.array(1, dtype=np.float32), torch.float32),
        (np.float64(1), torch.float32),
        (np.array(1, dtype=np.int32), torch.int64),
    ],
)
def test_labels_of_sequences_keep_their_kind(label, dtype):
    batch = Collate(pad_token_id=0, pad_to_multiple_of=8)([pair_example(4, label), pair_example(3, label)])
    assert batch["labels"].dtype == dtype
    assert batch["labels"].tolist() == [1, 1]
    assert batch["mention_mask"].shape == (2, 2, 8)
    assert batch["mention_mask"].sum(-1).tolist() == [[1, 1], [1, 1]]


def test_a_pad_id_within_the_text_is_attended_to():
    """The mask comes from lengths, not from ids."""
    batch = Collate(pad_token_id=1)([example(3, input_ids=np.array([10, 1, 12]))])
    assert batch["attention_mask"].tolist() == [[1, 1, 1]]


@pytest.mark.parametrize(("multiple", "width"), [(None, 5), (1, 5), (5, 5), (8, 8), (4, 8)])
def test_pad_to_multiple_of(multiple, width):
    batch = Collate(pad_token_id=0, pad_to_multiple_of=multiple)([example(2), example(5)])
    assert {tuple(value.shape) for value in batch.values()} == {(2, width)}


def test_cross_document_can_be_left_out():
    assert "cross_document" not in Collate(pad_token_id=0, cross_document=False)([example(2)])


def test_read_only_arrays_are_copied():
    locked = example(3)
    for values in locked.values():
        values.flags.writeable = False
    batch = Collate(pad_token_id=0)([locked])
    batch["input_ids"][0, 0] = 99
    assert locked["input_ids"][0] == 10


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        ([], "no examples to collate"),
        (
            [example(2), {"input_ids": np.ones(2)}],
            r"examples\[1\] has the keys \['input_ids'\], but examples\[0\]",
        ),
        (
            [example(3), example(3, labels=np.ones(2))],
            r"examples\[1\]\['labels'\] has shape \(2,\), but there are 3",
        ),
        (
            [example(3, mention_mask=np.ones(3))],
            r"\['mention_mask'\] has shape \(3,\), but there are 3 input_ids; it must be \(2, 3\)",
        ),
        (
            [example(3, labels=np.float32(1)), example(3)],
            r"examples\[1\]\['labels'\] has shape \(3,\), but there are 3 input_ids; it must be \(\)",
        ),
        (
            [example(3), example(3, labels=np.float32(1))],
            r"examples\[1\]\['labels'\] has shape \(\), but there are 3 input_ids; it must be \(3,\)",
        ),
        (
            [example(2, weights=np.ones(2))],
            r"has the keys \['cross.*', 'weights'\]; they must be input_ids, and maybe",
        ),
        (
            [{"labels": np.ones(2)}],
            r"has the keys \['labels'\]; they must be input_ids, and maybe cross_document",
        ),
    ],
)
def test_bad_examples(examples, message):
    with pytest.raises(ValueError, match=message):
        Collate(pad_token_id=0)(examples)


def test_bad_multiple():
    with pytest.raises(ValueError, match="pad_to_multiple_of is 0"):
        Collate(pad_token_id=0, pad_to_multiple_of=0)


def test_batches_are_sorted_by_length_then_by_globals():
    lengths = [10, 40, 10, 40, 30]
    global_counts = [1, 2, 3, 4, 9]
    assert batches_by_length(lengths, global_counts, 2) == [[3, 1], [4, 2], [0]]


def test_batches_hold_every_example_once_and_waste_little():
    generator = np.random.default_rng(0)
    lengths = generator.integers(1, 1000, size=503).tolist()
    global_counts = [length // 7 for length in lengths]
    batches = batches_by_length(lengths, global_counts, 8)
    assert sorted(index for batch in batches for index in batch) == list(range(503))
    assert [len(batch) for batch in batches] == [8] * 62 + [7]
    padded = sum(max(lengths[i] for i in batch) * len(batch) for batch in batches)
    assert padded < 1.05 * sum(lengths)
    assert batches == batches_by_length(lengths, global_counts, 8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(([1, 2], [1], 2), "there are 2 lengths but 1 global_counts"), (([1], [1], 0), "batch_size is 0")],
)
def test_bad_batches(arguments, message):
    with pytest.raises(ValueError, match=message):
        batches_by_length(*arguments)


def test_no_examples_give_no_batches():
    assert batches_by_length([], [], 4) == []


def test_the_examples_of_an_update_are_sorted_by_length_and_stay_in_it():
    lengths = np.random.default_rng(0).integers(1, 50, 103).tolist()
    order = like_lengths_together(lengths, 8)
    assert sorted(order) == list(range(103))
    for first in range(0, 103, 8):
        update = order[first : first + 8]
        assert sorted(update) == list(range(first, min(first + 8, 103)))
        assert [lengths[n] for n in update] == sorted(lengths[n] for n in update)
    with pytest.raises(ValueError, match="batch_size is 0; it must be at least 1"):
        like_lengths_together(lengths, 0)
