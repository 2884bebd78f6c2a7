"""A loss over the items of the effective batch."""

import pytest
import torch

from cdlm_lab.models.loss import over_items


@pytest.mark.parametrize(
    ("items", "in_batch", "expected"),
    [(4, None, 1.5), (4, 12, 0.5), (torch.tensor(3), None, 2), (3, torch.tensor(24), 0.25), (0, None, 6)],
)
def test_the_sum_is_divided_by_the_items_of_the_effective_batch(items, in_batch, expected) -> None:
    found = over_items(torch.tensor(6.0), items=items, num_items_in_batch=in_batch)
    assert found.item() == expected
    assert found.shape == ()
