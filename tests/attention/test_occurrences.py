"""Attention over occurrences: equations 1 to 3 in loops, with gradients; filling is inert, of nothing it is
zero."""

import math

import pytest
import torch

from cdlm_lab.attention.document import DISTANCE_BUCKETS, OccurrenceAttention
from cdlm_lab.examples.tagging import BUCKETS

SIZE, DISTANCE, K = 3, 2, 4


@pytest.fixture
def attention() -> OccurrenceAttention:
    torch.manual_seed(0)
    return OccurrenceAttention(SIZE, distance_size=DISTANCE).double()


def some(*shape: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Encodings, buckets and mask of (*shape, K) occurrences; some words have all, some one, some none."""
    generator = torch.Generator().manual_seed(1)
    encodings = torch.randn(*shape, K, SIZE, dtype=torch.float64, generator=generator)
    buckets = torch.randint(0, DISTANCE_BUCKETS, (*shape, K), generator=generator)
    mask = torch.rand(*shape, K, generator=generator) < 0.6
    flat = mask.view(-1, K)
    flat[0], flat[1], flat[2] = True, False, torch.arange(K) == 2
    return encodings, buckets, mask


def slow(attention: OccurrenceAttention, encodings, buckets, mask) -> tuple[torch.Tensor, list[float]]:
    """c of one word by the equations, one occurrence after the other, and the weights of all K."""
    w = attention.score.weight[0]
    actual = {}
    for k in range(K):
        if mask[k]:
            actual[k] = torch.cat([encodings[k], attention.distances.weight[buckets[k]]])  # equation 1
    shares = {k: torch.exp(sum(a * b for a, b in zip(w, e, strict=True))) for k, e in actual.items()}
    total = sum(shares.values())
    c = sum(
        (shares[k] / total * actual[k] for k in actual), torch.zeros(SIZE + DISTANCE, dtype=torch.float64)
    )
    return c, [(shares[k] / total).item() if k in actual else 0.0 for k in range(K)]


def test_equals_the_equations_in_loops_with_gradients(attention: OccurrenceAttention):
    encodings, buckets, mask = some(2, 3)
    encodings.requires_grad_()
    c, weights = attention(encodings, buckets, mask)
    assert c.shape == (2, 3, attention.output_size) == (2, 3, SIZE + DISTANCE)
    every = [(row, word) for row in range(2) for word in range(3)]
    expected = {at: slow(attention, encodings[at], buckets[at], mask[at]) for at in every}
    for at, (one, shares) in expected.items():
        torch.testing.assert_close(c[at], one)
        assert weights[at].tolist() == pytest.approx(shares)
    direction = torch.randn(2, 3, SIZE + DISTANCE, dtype=torch.float64)
    learnt = [encodings, attention.score.weight, attention.distances.weight]
    fast = torch.autograd.grad((c * direction).sum(), learnt)
    by_hand = torch.autograd.grad(sum((expected[at][0] * direction[at]).sum() for at in every), learnt)
    for one, other in zip(fast, by_hand, strict=True):
        torch.testing.assert_close(one, other)


def test_a_worked_example():
    attention = OccurrenceAttention(1, distance_size=1)
    with torch.no_grad():
        attention.score.weight.copy_(torch.tensor([[math.log(3), 1.0]]))
        attention.distances.weight.copy_(torch.arange(DISTANCE_BUCKETS)[:, None] * math.log(2))
    # scores log 3, log 2 and log 4, of which the third is not there: weights 3/5 and 2/5
    c, weights = attention(
        torch.tensor([[1.0], [0.0], [0.0]]), torch.tensor([0, 1, 2]), torch.tensor([True, True, False])
    )
    assert weights.tolist() == pytest.approx([0.6, 0.4, 0.0])
    assert c.tolist() == pytest.approx([0.6, 0.4 * math.log(2)])


def test_filling_is_inert(attention: OccurrenceAttention):
    encodings, buckets, mask = some(2, 3)
    c, weights = attention(encodings, buckets, mask)
    actual, same = attention(
        encodings.masked_fill(~mask[..., None], 1e6), buckets.masked_fill(~mask, -1), mask
    )
    assert torch.equal(actual, c)
    assert torch.equal(same, weights)


def test_a_word_without_occurrences_gets_zero_and_gradients_that_are_numbers(attention: OccurrenceAttention):
    encodings = torch.randn(2, K, SIZE, dtype=torch.float64, requires_grad=True)
    c, weights = attention(encodings, torch.zeros(2, K).long(), torch.zeros(2, K, dtype=torch.bool))
    assert not c.any()
    assert not weights.any()
    (c.sum() + weights.sum()).backward()
    assert not encodings.grad.any()
    assert all(weight.grad.isfinite().all() for weight in attention.parameters())


def test_there_are_as_many_embeddings_as_buckets(attention: OccurrenceAttention):
    assert attention.distances.num_embeddings == len(BUCKETS)
    assert attention.score.bias is None
