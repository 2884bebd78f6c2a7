"""Attention pooling: equation 1 in loops, masks, nothing to pool."""

import math

import pytest
import torch

from cdlm_lab.attention.document import AttentionPooling, masked_softmax


@pytest.fixture
def pooling() -> AttentionPooling:
    torch.manual_seed(0)
    return AttentionPooling(3).double()


def test_equals_equation_1_in_loops(pooling: AttentionPooling):
    states = torch.randn(2, 4, 3, dtype=torch.float64)
    mask = torch.tensor([[True, True, True, True], [True, False, True, False]])
    pooled, weights = pooling(states, mask)
    for row in range(2):
        shares = {}
        for i in range(4):
            if mask[row, i]:
                inner = [
                    math.tanh(sum(float(w * x) for w, x in zip(line, states[row, i], strict=True)) + float(b))
                    for line, b in zip(pooling.affine.weight, pooling.affine.bias, strict=True)
                ]
                shares[i] = math.exp(
                    sum(float(u) * x for u, x in zip(pooling.context.weight[0], inner, strict=True))
                )
        total = sum(shares.values())
        for i in range(4):
            assert float(weights[row, i]) == pytest.approx(shares.get(i, 0) / total)
        expected = sum(share / total * states[row, i] for i, share in shares.items())
        torch.testing.assert_close(pooled[row], expected)


def test_filling_is_inert_and_more_dimensions_are_rows(pooling: AttentionPooling):
    states = torch.randn(2, 3, 5, 3, dtype=torch.float64)
    mask = torch.rand(2, 3, 5) < 0.7
    mask[..., 0] = True
    pooled, _ = pooling(states, mask)
    changed = states.masked_fill(~mask[..., None], 1e6)
    torch.testing.assert_close(pooling(changed, mask)[0], pooled)
    torch.testing.assert_close(pooling(states[1, 2][None], mask[1, 2][None])[0][0], pooled[1, 2])


def test_of_nothing_it_is_zero_with_gradients_that_are_numbers(pooling: AttentionPooling):
    states = torch.randn(1, 2, 3, dtype=torch.float64, requires_grad=True)
    pooled, weights = pooling(states, torch.zeros(1, 2, dtype=torch.bool))
    assert not pooled.any()
    assert not weights.any()
    pooled.sum().backward()
    assert not states.grad.any()
    assert all(torch.isfinite(weight.grad).all() for weight in pooling.parameters())


def test_softmax_of_equal_logits_is_even_whatever_their_size():
    mask = torch.tensor([True, False, True])
    assert masked_softmax(torch.tensor([1e4, 5.0, 1e4]), mask).tolist() == [0.5, 0.0, 0.5]
    assert masked_softmax(torch.tensor([-1e30, 5.0, -1e30]), mask).tolist() == [0.5, 0.0, 0.5]
