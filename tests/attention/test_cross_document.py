"""Cross-document attention: equation 2 in loops, masks, and no pair that sees another pair of its batch."""

import math

import pytest
import torch

from cdlm_lab.attention.document import CrossDocumentAttention, alignment_weights


@pytest.fixture
def case() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Three queries, five parts, of two pairs; the second pair's other document has only two parts."""
    torch.manual_seed(0)
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    return torch.randn(2, 3, 4).double(), torch.randn(2, 5, 4).double(), mask


@pytest.mark.parametrize("combine", ["concatenation", "addition"])
def test_equals_equation_2_in_loops(case, combine: str):
    queries, parts, mask = case
    layer = CrossDocumentAttention(4, combine=combine).double()
    actual, weights = layer(queries, parts, mask)
    for pair in range(2):
        for i, query in enumerate(queries[pair]):
            shares = [
                math.exp(float(part @ query)) * bool(present)
                for part, present in zip(parts[pair], mask[pair], strict=True)
            ]
            total = sum(shares)
            attended = sum(share / total * part for share, part in zip(shares, parts[pair], strict=True))
            expected = query + attended
            if combine == "concatenation":
                expected = layer.affine.weight @ torch.cat([query, attended]) + layer.affine.bias
            torch.testing.assert_close(actual[pair, i], expected)
            for share, weight in zip(shares, weights[pair, i], strict=True):
                assert float(weight) == pytest.approx(share / total)


def test_a_pair_alone_is_the_pair_in_its_batch_and_filling_is_inert(case):
    queries, parts, mask = case
    together = alignment_weights(queries, parts, mask)
    torch.testing.assert_close(
        alignment_weights(queries[1:], parts[1:, :2], mask[1:, :2])[0], together[1, :, :2]
    )
    changed = parts.masked_fill(~mask[..., None], 1e3)
    torch.testing.assert_close(alignment_weights(queries, changed, mask), together)


def test_parts_of_the_paper_add_as_many_parameters_as_it_says():
    # 50 hidden units a direction: vectors of 100, and an affine map of 200 to 100
    layer = CrossDocumentAttention(100)
    assert sum(weight.numel() for weight in layer.parameters()) == 20_100
    assert not list(CrossDocumentAttention(100, combine="addition").parameters())


def test_an_unknown_way_to_combine_is_refused():
    with pytest.raises(ValueError, match="combine is 'sum'; choose concatenation or addition"):
        CrossDocumentAttention(4, combine="sum")
