"""Every backend against the dense oracle: outputs and gradients, awkward sizes, precisions, padding."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from cdlm_lab.attention import sparse
from cdlm_lab.attention.dense import dense_attention, dense_weights, visible_to_local
from cdlm_lab.attention.flex import flex_packed_attention, make_block_mask, visible_tiles
from cdlm_lab.attention.plan import Plan, make_plan
from cdlm_lab.attention.sparse import sparse_attention

HEADS, DIM = 2, 8

# (batch, seq, window, share of globals, share of padding in the last row)
SHAPES = {
    "no globals": (2, 50, 8, 0.0, 0.3),
    "ragged globals": (3, 61, 8, 0.2, 0.4),
    "all global": (2, 20, 4, 1.0, 0.2),
    "one token": (1, 1, 2, 0.0, 0.0),
    "window wider than the text": (2, 30, 128, 0.1, 0.0),
    "several blocks": (2, 300, 64, 0.15, 0.2),
    "length no multiple of the window": (1, 131, 32, 0.05, 0.0),
}


def masks_of(batch: int, seq: int, globals_: float, padding: float) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(batch * seq)
    attention_mask = torch.ones(batch, seq, dtype=torch.bool)
    if padding:
        attention_mask[-1, round(seq * (1 - padding)) :] = False
    global_mask = torch.rand(batch, seq, generator=generator) < globals_
    if batch > 2:
        global_mask[0] = False  # one row without any
        attention_mask[1, 5:15] = False  # padding in the middle
    return attention_mask, global_mask & attention_mask


def inputs_of(batch: int, seq: int, dtype: torch.dtype) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seq)
    return [
        torch.randn(batch, seq, HEADS, DIM, generator=generator, dtype=torch.float64)
        .to(dtype)
        .requires_grad_()
        for _ in range(6)
    ]


def packed(inputs: list[Tensor], plan: Plan) -> list[Tensor]:
    orders = (plan.local_order, plan.order, plan.order, plan.global_order, plan.order, plan.order)
    return [tensor.flatten(0, 1)[order] for tensor, order in zip(inputs, orders, strict=True)]


def unpacked(outputs: tuple[Tensor, Tensor], plan: Plan) -> Tensor:
    batch, seq = plan.shape
    empty = outputs[0].new_zeros(batch * seq, HEADS, DIM)
    full = empty.index_copy(0, plan.local_order, outputs[0]).index_copy(0, plan.global_order, outputs[1])
    return full.view(batch, seq, HEADS, DIM)


def by(attend: Callable) -> Callable:
    """The whole attention with one way of computing a tile."""

    def attention(query, key, value, query_global, key_global, value_global, *, plan):
        local_output = attend(query, key, value, plan.local_tiles) if plan.local_tiles else query
        if not plan.global_tiles:
            return local_output, query_global
        return local_output, attend(query_global, key_global, value_global, plan.global_tiles)

    return attention


BACKENDS = {
    "sparse": sparse_attention,
    "fused kernel": by(sparse._Fused.apply),
    "products": by(lambda *given: sparse._Products.apply(*given, 0.0, 0)),
    "scaled_dot_product_attention": by(lambda *given: sparse._by_sdpa(*given, 0.0)),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
def test_outputs_and_gradients_equal_the_oracle_in_float64(backend, shape) -> None:
    batch, seq, window, globals_, padding = shape
    attention_mask, global_mask = masks_of(batch, seq, globals_, padding)
    inputs = inputs_of(batch, seq, torch.float64)
    weight = torch.randn(batch, seq, HEADS, DIM, dtype=torch.float64)
    expected = dense_attention(*inputs, attention_mask=attention_mask, global_mask=global_mask, window=window)
    expected_gradients = torch.autograd.grad((expected * weight).sum(), inputs)

    plan = make_plan(attention_mask=attention_mask, global_mask=global_mask, window=window)
    output = unpacked(backend(*packed(inputs, plan), plan=plan), plan)
    gradients = torch.autograd.grad((output * weight).sum(), inputs, allow_unused=True)

    torch.testing.assert_close(output, expected, rtol=0, atol=1e-12)
    for gradient, wanted in zip(gradients, expected_gradients, strict=True):
        gradient = torch.zeros_like(wanted) if gradient is None else gradient
        torch.testing.assert_close(gradient, wanted, rtol=0, atol=1e-12)
    assert not output[~attention_mask].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
def test_error_is_within_twice_that_of_plain_pytorch_in_the_same_precision(backend, dtype) -> None:
    """Both against float64; gradients within three times (the budget of flash-attention's tests)."""
    batch, seq, window, globals_, padding = SHAPES["several blocks"]
    attention_mask, global_mask = masks_of(batch, seq, globals_, padding)
    rounded = inputs_of(batch, seq, dtype)
    exact = [tensor.detach().double().requires_grad_() for tensor in rounded]
    setting = {"attention_mask": attention_mask, "global_mask": global_mask, "window": window}
    truth = dense_attention(*exact, **setting)
    truth_gradients = torch.autograd.grad(truth.sum(), exact)
    plain = dense_attention(*rounded, **setting)
    plain_gradients = torch.autograd.grad(plain.sum(), rounded)
    plan = make_plan(**setting)
    ours = unpacked(backend(*packed(rounded, plan), plan=plan), plan)
    our_gradients = torch.autograd.grad(ours.sum(), rounded)

    assert (ours - truth).abs().max() <= 2 * (plain - truth).abs().max() + 1e-6
    for mine, theirs, true in zip(our_gradients, plain_gradients, truth_gradients, strict=True):
        assert (mine - true).abs().max() <= 3 * (theirs - true).abs().max() + 1e-5


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
def test_a_row_alone_equals_the_row_in_its_batch(backend) -> None:
    batch, seq, window, globals_, padding = SHAPES["ragged globals"]
    attention_mask, global_mask = masks_of(batch, seq, globals_, padding)
    inputs = [tensor.detach() for tensor in inputs_of(batch, seq, torch.float64)]
    plan = make_plan(attention_mask=attention_mask, global_mask=global_mask, window=window)
    together = unpacked(backend(*packed(inputs, plan), plan=plan), plan)
    for row in range(batch):
        alone_plan = make_plan(
            attention_mask=attention_mask[row : row + 1],
            global_mask=global_mask[row : row + 1],
            window=window,
        )
        alone_inputs = packed([tensor[row : row + 1] for tensor in inputs], alone_plan)
        alone = unpacked(backend(*alone_inputs, plan=alone_plan), alone_plan)
        torch.testing.assert_close(alone[0], together[row], rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dropout", [0.1, 0.5])
def test_so_many_weights_are_dropped_and_no_two_masks_are_alike(dtype: torch.dtype, dropout: float) -> None:
    kept = sparse._KeptWeights(dropout, seed=3)
    shape = torch.Size((4, 3, 50, 67))
    first, second = (sparse._drop(torch.full(shape, 0.7, dtype=dtype), kept.next(shape)) for _ in range(2))
    whole = torch.tensor(0.7, dtype=dtype)
    for mask in (first, second):
        assert set(mask.unique().tolist()) == {0.0, whole.item()}
    # of 40,200 draws the share is within 5 standard deviations
    deviation = (dropout * (1 - dropout) / first.numel()) ** 0.5
    assert (first == 0).double().mean().item() == pytest.approx(dropout, abs=5 * deviation)
    both = ((first == 0) & (second == 0)).double().mean().item()
    assert both == pytest.approx(dropout**2, abs=5 * dropout / first.numel() ** 0.5)
    again = sparse._KeptWeights(dropout, seed=3)
    assert torch.equal(again.next(shape) == 0, first == 0)


@pytest.mark.parametrize("attend", [sparse._attend, sparse._by_sdpa], ids=["CPU", "elsewhere"])
def test_dropout_keeps_the_expectation(attend: Callable) -> None:
    batch, seq, window, globals_, padding = SHAPES["ragged globals"]
    attention_mask, global_mask = masks_of(batch, seq, globals_, padding)
    plan = make_plan(attention_mask=attention_mask, global_mask=global_mask, window=window)
    inputs = inputs_of(batch, seq, torch.float64)
    exact = unpacked(sparse_attention(*packed(inputs, plan), plan=plan), plan)
    torch.manual_seed(0)
    dropping = by(lambda *given: attend(*given, 0.2))
    draws = [unpacked(dropping(*packed(inputs, plan), plan=plan), plan) for _ in range(400)]
    mean, deviation = torch.stack(draws).mean(0), torch.stack(draws).std(0)
    assert deviation.max() > 0.1, "dropout did nothing"
    # 5 standard errors of the mean over 400 draws; thousands of values, so 3 would fail by chance
    assert ((mean - exact).abs() <= 5 * deviation / 400**0.5 + 1e-9).all()
    gradient = torch.autograd.grad(draws[0].sum(), inputs[0])[0]
    assert gradient.isfinite().all()
    assert gradient.any()


def test_gradient_with_dropout_is_that_of_the_weights_it_drew() -> None:
    """The backward recomputes each block: it must draw the same weights again (finite differences, same
    seed)."""
    attention_mask = torch.ones(1, 40, dtype=torch.bool)
    global_mask = torch.zeros(1, 40, dtype=torch.bool)
    global_mask[0, ::7] = True
    plan = make_plan(attention_mask=attention_mask, global_mask=global_mask, window=8)
    inputs = packed([tensor.detach() for tensor in inputs_of(1, 40, torch.float64)], plan)
    inputs = [tensor.detach().requires_grad_() for tensor in inputs]

    def loss(*tensors: Tensor) -> Tensor:
        torch.manual_seed(3)
        local, of_globals = sparse_attention(*tensors, plan=plan, dropout=0.3)
        return local.square().sum() + of_globals.square().sum()

    assert torch.autograd.gradcheck(loss, inputs, fast_mode=True)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_flex_block_table_is_exact_on_the_cpu(shape) -> None:
    """FlexAttention has no backward on the CPU; the forward holds the block table and the pair rule to the
    oracle."""
    batch, seq, window, globals_, padding = shape
    attention_mask, global_mask = masks_of(batch, seq, globals_, padding)
    inputs = [tensor.detach() for tensor in inputs_of(batch, seq, torch.float32)]
    expected = dense_attention(*inputs, attention_mask=attention_mask, global_mask=global_mask, window=window)
    plan = make_plan(attention_mask=attention_mask, global_mask=global_mask, window=window)
    block_mask = make_block_mask(plan)
    output = unpacked(flex_packed_attention(*packed(inputs, plan), plan=plan, block_mask=block_mask), plan)
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-5)


def test_flex_skips_tiles_that_nobody_sees() -> None:
    attention_mask = torch.ones(1, 1024, dtype=torch.bool)
    plan = make_plan(attention_mask=attention_mask, global_mask=torch.zeros_like(attention_mask), window=64)
    # 8 x 8 tiles of 128: with 32 tokens to each side only the diagonal and its neighbours hold visible pairs
    expected = (torch.arange(8)[:, None] - torch.arange(8)[None]).abs() <= 1
    assert torch.equal(visible_tiles(plan), expected)


def test_what_a_local_token_sees() -> None:
    """Window 2, token 4 global, token 0 padding: rows = queries, columns = keys."""
    attention_mask = torch.tensor([[0, 1, 1, 1, 1, 1]], dtype=torch.bool)
    global_mask = torch.tensor([[0, 0, 0, 0, 1, 0]], dtype=torch.bool)
    sees = visible_to_local(attention_mask=attention_mask, global_mask=global_mask, window=2)[0].int()
    assert sees.tolist() == [
        [0, 1, 0, 0, 1, 0],
        [0, 1, 1, 0, 1, 0],
        [0, 1, 1, 1, 1, 0],
        [0, 0, 1, 1, 1, 0],
        [0, 0, 0, 1, 1, 1],
        [0, 0, 0, 0, 1, 1],
    ]


def test_dense_weights_are_distributions() -> None:
    batch, seq, window, globals_, padding = SHAPES["ragged globals"]
    attention_mask, global_mask = masks_of(batch, seq, globals_, padding)
    query, key, _, query_global, key_global, _ = inputs_of(batch, seq, torch.float64)
    weights = dense_weights(
        query,
        key,
        query_global,
        key_global,
        attention_mask=attention_mask,
        global_mask=global_mask,
        window=window,
    )
    total = weights.sum(-1)[:, 0]
    torch.testing.assert_close(total, attention_mask.double(), rtol=0, atol=1e-12)
    assert not weights.permute(0, 3, 1, 2)[~attention_mask].any(), "padding keys get no weight"


@pytest.mark.parametrize("window", [7, 0, -2])
def test_an_odd_or_empty_window_is_refused(window: int) -> None:
    mask = torch.ones(1, 4, dtype=torch.bool)
    with pytest.raises(ValueError, match=rf"window \({window}\) must be even and at least 2"):
        make_plan(attention_mask=mask, global_mask=mask, window=window)


def test_masks_of_other_types_or_shapes_are_refused() -> None:
    mask = torch.ones(1, 4, dtype=torch.bool)
    with pytest.raises(ValueError, match="masks must be bool"):
        make_plan(attention_mask=mask.long(), global_mask=mask, window=2)
    with pytest.raises(ValueError, match=r"must both be \(batch, seq\)"):
        make_plan(attention_mask=mask, global_mask=mask[:, :3], window=2)
