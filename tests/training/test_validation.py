"""Every example is counted once, whatever the number of processes."""

import pytest
import torch
from accelerate import Accelerator
from tiny_run import Examples, PlainModel, collate, tiny_model

from cdlm_lab.training.validation import SharedBatches, validation_loader, validation_loss


@pytest.mark.parametrize("processes", [1, 2, 3, 8])
def test_even_shares_are_filled_up_with_what_does_not_count(processes: int):
    shares = [
        SharedBatches(11, batch_size=2, process=process, processes=processes, even=True)
        for process in range(processes)
    ]
    assert len({len(share) for share in shares}) == 1
    assert all(len(list(share)) == len(share.numbers) == len(share) for share in shares)
    counted = [number for share in shares for number in share.numbers if number is not None]
    assert sorted(counted) == list(range(6))


@pytest.mark.parametrize(
    ("size", "batch_size", "processes"), [(11, 2, 1), (11, 2, 2), (11, 3, 4), (1, 4, 3), (8, 4, 2)]
)
def test_batches_are_shared_without_repeats(size: int, batch_size: int, processes: int):
    shares = [
        SharedBatches(size, batch_size=batch_size, process=process, processes=processes)
        for process in range(processes)
    ]
    numbered = {number: batch for share in shares for number, batch in zip(share.numbers, share, strict=True)}
    assert [index for number in sorted(numbered) for index in numbered[number]] == list(range(size))
    assert sum(map(len, shares)) == len(numbered) == shares[0].total
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def loss(model: PlainModel, examples: object, batch_size: int) -> tuple[float, int]:
    loader = validation_loader(examples, collate, SharedBatches(len(examples), batch_size=batch_size))
    found = validation_loss(
        model, loader, accelerator=Accelerator(cpu=True), to_device=dict, after_batch=lambda: None
    )
    assert found[2] == {}, "a loss without parts"
    return found[:2]


def test_the_batch_size_does_not_matter():
    model, examples = tiny_model(PlainModel).double(), Examples(seed=2, size=11)
    alone, count = loss(model, examples, 1)
    assert count == sum((example["labels"] != -100).sum() for example in [examples[n] for n in range(11)])
    for size in (2, 3, 11, 20):
        assert loss(model, examples, size) == (pytest.approx(alone, rel=1e-12), count)
    assert not model.training


def test_batches_without_masked_tokens_count_nothing():
    model = tiny_model(PlainModel).double()
    examples = [Examples(seed=2, size=11)[n] for n in range(4)]
    bare = [example | {"labels": example["labels"] * 0 - 100} for example in examples]
    assert loss(model, examples + bare, 2) == loss(model, examples, 2)


def test_no_random_number_is_taken():
    before = torch.get_rng_state()
    loss(tiny_model(PlainModel), Examples(seed=2, size=11), 2)
    assert torch.equal(torch.get_rng_state(), before)
