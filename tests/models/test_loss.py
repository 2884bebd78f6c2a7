"""Cross entropy over a vocabulary; a loss over the items of the effective batch."""

import pytest
import torch

from cdlm_lab.models.language_model import ROWS_AT_ONCE, over_items, word_losses


@pytest.mark.parametrize(
    ("items", "in_batch", "expected"),
    [(4, None, 1.5), (4, 12, 0.5), (torch.tensor(3), None, 2), (3, torch.tensor(24), 0.25), (0, None, 6)],
)
def test_the_sum_is_divided_by_the_items_of_the_effective_batch(items, in_batch, expected) -> None:
    found = over_items(torch.tensor(6.0), items=items, num_items_in_batch=in_batch)
    assert found.item() == expected
    assert found.shape == ()


@pytest.mark.parametrize("rows", [0, 1, ROWS_AT_ONCE, 2 * ROWS_AT_ONCE + 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_word_losses_and_their_gradient_are_those_of_pytorch(rows: int, dtype: torch.dtype) -> None:
    """Both compute in float32 and round once; so equal but for the order of sums."""
    generator = torch.Generator().manual_seed(rows)
    logits = (4 * torch.randn(rows, 300, generator=generator)).to(dtype)
    labels = torch.randint(300, (rows,), generator=generator)
    weight = torch.rand(rows, generator=generator)
    found, expected = (logits.clone().requires_grad_() for _ in range(2))
    losses = word_losses(found, labels)
    theirs = torch.nn.functional.cross_entropy(expected.float(), labels, reduction="none")
    (losses * weight).sum().backward()
    (theirs * weight).sum().backward()
    assert losses.dtype == torch.float32
    torch.testing.assert_close(losses, theirs, rtol=1e-6, atol=1e-6)
    rounding = {torch.float32: 1e-5, torch.bfloat16: 2**-8}[dtype]
    assert found.grad is not None
    assert found.grad.dtype == dtype
    torch.testing.assert_close(found.grad, expected.grad, rtol=rounding, atol=1e-7)


def test_word_losses_hold_no_more_than_one_gradient() -> None:
    """What the backward needs is the logits that are there already."""
    logits = torch.randn(8, 300).requires_grad_()
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor) or tensor, lambda x: x):
        word_losses(logits, torch.zeros(8, dtype=torch.int64))
    assert [tensor.data_ptr() for tensor in kept if tensor.is_floating_point()] == [logits.data_ptr()]
