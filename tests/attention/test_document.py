"""Attention over vectors of a document, against the equations in loops: pooling, over another document, and
over other occurrences of a word. Filling is inert, and of nothing it is zero."""

import math

import pytest
import torch
from torch import Tensor, nn

from cdlm_lab.attention.document import (
    DISTANCE_BUCKETS,
    AttentionPooling,
    CrossDocumentAttention,
    OccurrenceAttention,
    alignment_weights,
    contextualised,
    masked_softmax,
)
from cdlm_lab.tasks.tagging.examples import BUCKETS

SIZE, DISTANCE, K = 3, 2, 4


def dot(left: Tensor, right: Tensor) -> Tensor:
    return sum(a * b for a, b in zip(left, right, strict=True))


@pytest.fixture
def pooling() -> AttentionPooling:
    torch.manual_seed(0)
    return AttentionPooling(3).double()


def test_pooling_equals_equation_1_in_loops(pooling: AttentionPooling):
    states = torch.randn(2, 4, 3, dtype=torch.float64)
    mask = torch.tensor([[True, True, True, True], [True, False, True, False]])
    pooled, weights = pooling(states, mask)
    lines = list(zip(pooling.affine.weight, pooling.affine.bias, strict=True))
    for row in range(2):
        shares = {}
        for i in mask[row].nonzero().flatten().tolist():
            inner = [math.tanh(float(dot(line, states[row, i]) + bias)) for line, bias in lines]
            shares[i] = math.exp(float(dot(pooling.context.weight[0], inner)))
        total = sum(shares.values())
        assert weights[row].tolist() == pytest.approx([shares.get(i, 0) / total for i in range(4)])
        expected = sum(share / total * states[row, i] for i, share in shares.items())
        torch.testing.assert_close(pooled[row], expected)


def test_pooling_of_more_dimensions_and_of_nothing(pooling: AttentionPooling):
    states = torch.randn(2, 3, 5, 3, dtype=torch.float64)
    mask = torch.rand(2, 3, 5) < 0.7
    mask[..., 0] = True
    pooled, _ = pooling(states, mask)
    torch.testing.assert_close(pooling(states.masked_fill(~mask[..., None], 1e6), mask)[0], pooled)
    torch.testing.assert_close(pooling(states[1, 2][None], mask[1, 2][None])[0][0], pooled[1, 2])
    states.requires_grad_()
    pooled, weights = pooling(states, torch.zeros_like(mask))
    assert not pooled.any()
    assert not weights.any()
    pooled.sum().backward()
    assert not states.grad.any()
    assert all(torch.isfinite(weight.grad).all() for weight in pooling.parameters())


def test_softmax_of_equal_logits_is_even_whatever_their_size():
    mask = torch.tensor([True, False, True])
    assert masked_softmax(torch.tensor([1e4, 5.0, 1e4]), mask).tolist() == [0.5, 0.0, 0.5]
    assert masked_softmax(torch.tensor([-1e30, 5.0, -1e30]), mask).tolist() == [0.5, 0.0, 0.5]


@pytest.fixture
def pairs() -> tuple[Tensor, Tensor, Tensor]:
    """Three queries, five parts, of two pairs; the second pair's other document has only two parts."""
    torch.manual_seed(0)
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    return torch.randn(2, 3, 4).double(), torch.randn(2, 5, 4).double(), mask


def test_cross_document_attention_equals_equation_2_in_loops(pairs):
    queries, parts, mask = pairs
    layer = CrossDocumentAttention(4).double()
    actual, weights = layer(queries, parts, mask)
    for pair in range(2):
        own = parts[pair][mask[pair]]
        for i, query in enumerate(queries[pair]):
            shares = [math.exp(float(dot(part, query))) for part in own]
            of_parts = [share / sum(shares) for share in shares]
            attended = sum(share * part for share, part in zip(of_parts, own, strict=True))
            expected = layer.affine.weight @ torch.cat([query, attended]) + layer.affine.bias
            torch.testing.assert_close(actual[pair, i], expected)
            assert weights[pair, i].tolist() == pytest.approx(of_parts + [0.0] * (5 - len(own)))


def test_a_pair_alone_is_the_pair_in_its_batch_and_filling_is_inert(pairs):
    queries, parts, mask = pairs
    together = alignment_weights(queries, parts, mask)
    alone = alignment_weights(queries[1:], parts[1:, :2], mask[1:, :2])
    torch.testing.assert_close(alone[0], together[1, :, :2])
    changed = parts.masked_fill(~mask[..., None], 1e3)
    torch.testing.assert_close(alignment_weights(queries, changed, mask), together)


@pytest.fixture
def attention() -> OccurrenceAttention:
    torch.manual_seed(0)
    return OccurrenceAttention(SIZE, distance_size=DISTANCE).double()


@pytest.fixture
def occurrences() -> tuple[Tensor, Tensor, Tensor]:
    """Encodings, buckets and mask of (2, 3, K) occurrences; some words have all, some one, some none."""
    generator = torch.Generator().manual_seed(1)
    encodings = torch.randn(2, 3, K, SIZE, dtype=torch.float64, generator=generator)
    buckets = torch.randint(0, DISTANCE_BUCKETS, (2, 3, K), generator=generator)
    mask = torch.rand(2, 3, K, generator=generator) < 0.6
    mask.view(-1, K)[:3] = torch.stack([torch.ones(K), torch.zeros(K), torch.arange(K) == 2]).bool()
    return encodings, buckets, mask


def slow(attention: OccurrenceAttention, encodings, buckets, mask) -> tuple[Tensor, list[float]]:
    """c of one word by the equations, one occurrence after the other, and the weights of all K."""
    present = mask.nonzero().flatten().tolist()
    vectors = {k: torch.cat([encodings[k], attention.distances.weight[buckets[k]]]) for k in present}  # eq. 1
    shares = {k: torch.exp(dot(attention.score.weight[0], e)) for k, e in vectors.items()}
    total, nothing = sum(shares.values()), torch.zeros(SIZE + DISTANCE, dtype=torch.float64)
    c = sum((shares[k] / total * vectors[k] for k in present), nothing)
    return c, [(shares[k] / total).item() if k in present else 0.0 for k in range(K)]


def test_occurrences_equal_the_equations_in_loops_with_gradients(attention: OccurrenceAttention, occurrences):
    encodings, buckets, mask = occurrences
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
    fast = torch.autograd.grad((c * direction).sum(), learnt, retain_graph=True)
    by_hand = torch.autograd.grad(sum((expected[at][0] * direction[at]).sum() for at in every), learnt)
    for one, other in zip(fast, by_hand, strict=True):
        torch.testing.assert_close(one, other)
    filled = encodings.masked_fill(~mask[..., None], 1e6), buckets.masked_fill(~mask, -1), mask
    for actual, before in zip(attention(*filled), (c, weights), strict=True):
        assert torch.equal(actual, before), "filling is inert"


def test_a_worked_example_of_occurrences():
    attention = OccurrenceAttention(1, distance_size=1)
    with torch.no_grad():
        attention.score.weight.copy_(torch.tensor([[math.log(3), 1.0]]))
        attention.distances.weight.copy_(torch.arange(DISTANCE_BUCKETS)[:, None] * math.log(2))
    # scores log 3, log 2 and log 4, of which the third is not there: weights 3/5 and 2/5
    mask = torch.tensor([True, True, False])
    c, weights = attention(torch.tensor([[1.0], [0.0], [0.0]]), torch.tensor([0, 1, 2]), mask)
    assert weights.tolist() == pytest.approx([0.6, 0.4, 0.0])
    assert c.tolist() == pytest.approx([0.6, 0.4 * math.log(2)])
    assert attention.distances.num_embeddings == len(BUCKETS)
    assert attention.score.bias is None


def test_a_word_without_occurrences_gets_zero_and_gradients_that_are_numbers(attention: OccurrenceAttention):
    encodings = torch.randn(2, K, SIZE, dtype=torch.float64, requires_grad=True)
    c, weights = attention(encodings, torch.zeros(2, K).long(), torch.zeros(2, K, dtype=torch.bool))
    assert not c.any()
    assert not weights.any()
    (c.sum() + weights.sum()).backward()
    assert not encodings.grad.any()
    assert all(weight.grad.isfinite().all() for weight in attention.parameters())


def test_rows_of_a_gru_do_not_see_each_other():
    gru, states = nn.GRU(3, 2, batch_first=True, bidirectional=True), torch.randn(3, 4, 3)
    mask = torch.tensor([[1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 0, 0]]).bool()
    actual = contextualised(gru, states, mask)
    torch.testing.assert_close(actual[2, :2], gru(states[2:, :2])[0][0])
    assert not actual[1].any()
    assert not actual[2, 2:].any()
