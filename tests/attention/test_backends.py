"""Every backend against the dense oracle: outputs and gradients, awkward sizes, precisions; few globals."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import pytest
import torch
import torch._dynamo
from attention_cases import DIM, HEADS, SHAPES, BytesWritten, inputs_of, packed, setting_of, unpacked
from torch import Tensor, nn
from torch.nn.attention.flex_attention import flex_attention

from cdlm_lab.attention import flex, sparse
from cdlm_lab.attention.dense import dense_attention, dense_weights, visible
from cdlm_lab.attention.flex import (
    flex_packed_attention,
    fused_flex_attention,
    make_block_mask,
    visible_tiles,
    whole_tiles,
)
from cdlm_lab.attention.layer import LocalGlobalSelfAttention
from cdlm_lab.attention.plan import Plan, Projections, Run, make_plan
from cdlm_lab.attention.sparse import attend_from_few_globals, attend_from_globals, sparse_attention


def by(attend: Callable) -> Callable:
    """The whole attention with one way of computing a tile."""

    def attention(projections, *, plan):
        local_output = attend(*projections[:3], plan.local_tiles) if plan.local_tiles else projections.query
        if not plan.global_tiles:
            return local_output, projections.query_global
        return local_output, attend(*projections[3:], plan.global_tiles)

    return attention


BACKENDS = {
    "sparse": sparse_attention,
    "fused kernel": by(sparse._Fused.apply),
    "products": by(lambda *given: sparse._Products.apply(*given, 0.0, 0)),
    "gathered": lambda projections, *, plan: gathered(projections, plan=plan),
}


def gathered(projections: Projections, *, plan: Plan, dropout: float = 0.0) -> tuple[Tensor, Tensor]:
    """What is computed on other devices than a CPU."""
    parts = (projections[:3], plan.gathered_locals), (projections[3:], plan.gathered_globals)
    return tuple(sparse.by_gathering(*of, groups, dropout) for of, groups in parts)


every_shape = pytest.mark.parametrize("shape", SHAPES)
every_backend = pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)


def computed(backend: Callable, inputs: Projections, plan: Plan) -> Tensor:
    return unpacked(backend(packed(inputs, plan), plan=plan), plan)


@every_shape
@every_backend
def test_outputs_and_gradients_equal_the_oracle_in_float64(backend: Callable, shape: str) -> None:
    setting = setting_of(shape)
    present, inputs = setting["attention_mask"], inputs_of(*SHAPES[shape][:2])
    weight = torch.randn(*present.shape, HEADS, DIM, dtype=torch.float64)
    expected = dense_attention(inputs, **setting)
    wanted = torch.autograd.grad((expected * weight).sum(), inputs)
    output = computed(backend, inputs, make_plan(**setting))
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-12)
    assert not output[~present].any()
    gradients = torch.autograd.grad(
        (output * weight).sum(), inputs, allow_unused=True, materialize_grads=True
    )
    for gradient, one in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(gradient, one, rtol=0, atol=1e-12)
    for row in range(len(present)):  # alone it is the row in its batch
        masks = {name: mask[row : row + 1] for name, mask in setting.items() if name != "window"}
        alone = Projections(*(tensor[row : row + 1] for tensor in inputs))
        actual = computed(backend, alone, make_plan(**masks, window=setting["window"]))
        torch.testing.assert_close(actual[0], output[row], rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@every_backend
def test_error_is_within_twice_that_of_plain_pytorch_in_the_same_precision(backend, dtype) -> None:
    """Both against float64; gradients within three times (the budget of flash-attention's tests)."""
    setting = setting_of("several blocks")
    rounded = inputs_of(*SHAPES["several blocks"][:2], dtype=dtype)
    exact = Projections(*(tensor.detach().double().requires_grad_() for tensor in rounded))
    truth, plain = (dense_attention(given, **setting) for given in (exact, rounded))
    ours = computed(backend, rounded, make_plan(**setting))
    assert (ours - truth).abs().max() <= 2 * (plain - truth).abs().max() + 1e-6
    gradients = [
        torch.autograd.grad(output.sum(), given)
        for output, given in ((ours, rounded), (plain, rounded), (truth, exact))
    ]
    for mine, theirs, true in zip(*gradients, strict=True):
        assert (mine - true).abs().max() <= 3 * (theirs - true).abs().max() + 1e-5


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
    assert torch.equal(sparse._KeptWeights(dropout, seed=3).next(shape) == 0, first == 0)


@pytest.mark.parametrize("attend", [sparse_attention, gathered], ids=["CPU", "elsewhere"])
def test_dropout_keeps_the_expectation(attend: Callable) -> None:
    plan, inputs = make_plan(**setting_of("ragged globals")), inputs_of(*SHAPES["ragged globals"][:2])
    exact = computed(sparse_attention, inputs, plan)
    torch.manual_seed(0)
    draws = [computed(partial(attend, dropout=0.2), inputs, plan) for _ in range(400)]
    mean, deviation = torch.stack(draws).mean(0), torch.stack(draws).std(0)
    assert deviation.max() > 0.1, "dropout did nothing"
    # 5 standard errors of the mean over 400 draws; thousands of values, so 3 would fail by chance
    assert ((mean - exact).abs() <= 5 * deviation / 400**0.5 + 1e-9).all()
    gradient = torch.autograd.grad(draws[0].sum(), inputs.query)[0]
    assert gradient.isfinite().all()
    assert gradient.any()


@pytest.mark.parametrize("attend", [sparse_attention, gathered], ids=["CPU", "elsewhere"])
def test_gradient_with_dropout_is_that_of_the_weights_it_drew(attend: Callable) -> None:
    """The backward computes each tile again with the same random weights (finite differences, same seed)."""
    present = torch.ones(1, 40, dtype=torch.bool)
    plan = make_plan(attention_mask=present, global_mask=torch.arange(40)[None] % 7 == 0, window=8)
    inputs = [tensor.detach().requires_grad_() for tensor in packed(inputs_of(1, 40), plan)]

    def loss(*tensors: Tensor) -> Tensor:
        torch.manual_seed(3)
        local, of_globals = attend(Projections(*tensors), plan=plan, dropout=0.3)
        return local.square().sum() + of_globals.square().sum()

    assert torch.autograd.gradcheck(loss, inputs, fast_mode=True)


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_bytes_written_elsewhere_grow_linearly_with_the_batch(dropout: float) -> None:
    """Slices of tiles, each with a gradient of the whole batch, would take 16 times as many for 4 rows."""
    written = []
    for rows in (1, 4):
        present = torch.ones(rows, 300, dtype=torch.bool)
        plan = make_plan(
            attention_mask=present, global_mask=(torch.arange(300) % 7 == 0).expand(rows, -1), window=64
        )
        inputs = packed(inputs_of(rows, 300, dtype=torch.float32), plan)
        with BytesWritten() as count:
            local, of_globals = gathered(inputs, plan=plan, dropout=dropout)
            torch.autograd.grad(local.sum() + of_globals.sum(), inputs)
        written.append(count.bytes)
    assert 3.5 * written[0] < written[1] < 4.5 * written[0]


@pytest.mark.parametrize(("dtype", "dropout"), [(torch.bfloat16, 0.0), (torch.float32, 0.1)])
def test_many_globals_of_a_long_text_take_no_block_that_the_process_gives_back(
    dtype: torch.dtype, dropout: float
) -> None:
    present = torch.ones(1, 4096, dtype=torch.bool)
    plan = make_plan(attention_mask=present, global_mask=torch.arange(4096)[None] < 614, window=64)
    inputs = packed(inputs_of(1, 4096, dtype=dtype), plan)
    with BytesWritten() as count:
        of_globals = attend_from_globals(*inputs[3:], plan=plan, dropout=dropout)
        torch.autograd.grad(of_globals.sum(), inputs[3:])
    assert 12 * count.largest < HEADS * 2**25, "32 MB for 12 heads: see `memory_kept`"


def test_texts_of_many_lengths_make_products_of_few_shapes() -> None:
    """A product of a new shape takes several times as long, where oneDNN compiles it."""
    shapes = set()
    for length in range(60, 250):
        present = torch.ones(1, length, dtype=torch.bool)
        for tile in make_plan(attention_mask=present, global_mask=~present, window=512).local_tiles:
            sides = (sparse._of(torch.empty(1, length, 1), of, tile) for of in (tile.queries, tile.keys))
            shapes.add(tuple(side.shape for side in sides))
    assert len(shapes) < 40
    present = torch.arange(250) < torch.arange(60, 250)[:, None]
    tiles = make_plan(attention_mask=present, global_mask=~present, window=512).local_tiles
    assert len(tiles) < len(present) / 3, "in one batch they share products"


@every_shape
def test_flex_block_table_is_exact_on_the_cpu(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """FlexAttention has no backward on the CPU; the forward holds block table and pair rule to the oracle."""
    monkeypatch.delattr(Run, "bias")  # it needs no matrix of queries and keys
    inputs = Projections(*(x.detach() for x in inputs_of(*SHAPES[shape][:2], dtype=torch.float32)))
    expected, plan = dense_attention(inputs, **setting_of(shape)), make_plan(**setting_of(shape))
    output = flex_packed_attention(packed(inputs, plan), plan=plan)
    torch.testing.assert_close(unpacked(output, plan), expected, rtol=0, atol=1e-5)


@pytest.fixture
def compilations() -> Iterator[Callable]:
    """A compiler for `torch.compile` that counts in `.count` and leaves the code as it is."""

    def compiler(graph: torch.fx.GraphModule, _: list) -> Callable:
        compiler.count += 1
        return graph.forward

    compiler.count = 0
    torch._dynamo.reset()
    yield compiler
    torch._dynamo.reset()


MODES = {"gradients": torch.enable_grad, "no_grad": torch.no_grad, "inference": torch.inference_mode}
KINDS = [
    (heads, size, dtype, mode)
    for heads, size in ((1, 16), (2, 32))
    for dtype in (torch.float32, torch.bfloat16)
    for mode in ("gradients", "no_grad")
] + [(1, 16, torch.float32, "inference")]


def flex_inputs(length: int, heads: int, size: int, dtype: torch.dtype, device: str = "cpu") -> tuple:
    present = torch.ones(2, length, dtype=torch.bool, device=device)
    is_global = (torch.arange(length, device=device) < 3).expand(2, -1)
    plan = make_plan(attention_mask=present, global_mask=is_global, window=32)
    generator = torch.Generator().manual_seed(length)
    rows = (len(plan.local_order), len(plan.order), len(plan.order))
    inputs = [torch.randn(1, heads, count, size, generator=generator).to(device, dtype) for count in rows]
    return inputs, make_block_mask(plan)


def test_flex_is_compiled_once_for_each_of_nine_kinds_of_inputs_and_for_all_lengths(compilations) -> None:
    assert len(set(KINDS)) == 9
    for number, (heads, size, dtype, mode) in enumerate(KINDS, 1):
        for length in (200, 333):
            with MODES[mode]():
                inputs, block_mask = flex_inputs(length, heads, size, dtype)
                found = fused_flex_attention(*inputs, block_mask=block_mask, backend=compilations)
            if length == 333:
                exact = flex_attention(*(one.float() for one in inputs), block_mask=block_mask)
                tolerance = 1e-5 if dtype == torch.float32 else 0.05
                torch.testing.assert_close(found.float(), exact, rtol=tolerance, atol=tolerance)
        assert compilations.count == number
    assert torch._dynamo.config.recompile_limit == 8, "the limit of others stays"


def test_flex_refuses_more_kinds_than_it_compiles_instead_of_computing_them_unfused(
    compilations, monkeypatch
):
    monkeypatch.setattr(flex, "MOST_KINDS", 2)
    for heads in (1, 2):
        inputs, block_mask = flex_inputs(200, heads, 16, torch.float32)
        fused_flex_attention(*inputs, block_mask=block_mask, backend=compilations)
    inputs, block_mask = flex_inputs(200, 4, 16, torch.float32)
    with pytest.raises(
        RuntimeError, match=r"is compiled for 2 kinds of inputs .*; start a new process"
    ) as told:
        fused_flex_attention(*inputs, block_mask=block_mask, backend=compilations)
    assert "\n" not in str(told.value)


@pytest.mark.gpu
def test_the_ninth_kind_of_inputs_is_fused_too() -> None:
    """Unfused, the scores of two heads alone would take 2 * 8,192 squared numbers, 0.27 GB in bfloat16."""
    torch._dynamo.reset()
    for heads, size in ((2, 16), (4, 16), (8, 16), (2, 32), (4, 32), (8, 32), (2, 64), (4, 64), (8, 64)):
        inputs, block_mask = flex_inputs(4096, heads, size, torch.bfloat16, "cuda")
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        fused_flex_attention(*inputs, block_mask=block_mask)
        assert torch.cuda.max_memory_allocated() - before < 100e6


def test_flex_skips_tiles_that_nobody_sees() -> None:
    attention_mask = torch.ones(1, 1024, dtype=torch.bool)
    plan = make_plan(attention_mask=attention_mask, global_mask=torch.zeros_like(attention_mask), window=64)
    # 8 x 8 tiles of 128: with 32 tokens to each side only the diagonal and its neighbours hold visible pairs
    expected = (torch.arange(8)[:, None] - torch.arange(8)[None]).abs() <= 1
    assert torch.equal(visible_tiles(plan), expected)


@every_shape
def test_whole_tiles_are_those_in_which_all_attend_to_all(shape: str, monkeypatch) -> None:
    monkeypatch.setattr(flex, "TILE", 8)  # in several shapes some tiles are whole
    setting = setting_of(shape)
    plan, (batch, seq) = make_plan(**setting), setting["attention_mask"].shape
    sees = torch.zeros(batch * seq, batch * seq, dtype=torch.bool)
    each = visible(**setting)
    for row in range(batch):
        of_row = slice(row * seq, (row + 1) * seq)
        sees[of_row, of_row] = each[row]
    sees = sees[plan.local_order][:, plan.order]
    expected = torch.zeros_like(whole_tiles(plan))
    for query, key in product(*map(range, expected.shape)):
        tile = sees[8 * query : 8 * (query + 1), 8 * key : 8 * (key + 1)]
        expected[query, key] = tile.numel() == 64 and bool(tile.all())
    assert torch.equal(whole_tiles(plan), expected)
    assert expected.any() == (shape not in ("all global", "one token", "no globals"))


def test_dense_weights_are_distributions() -> None:
    setting, inputs = setting_of("ragged globals"), inputs_of(*SHAPES["ragged globals"][:2])
    weights, present = dense_weights(inputs, **setting), setting["attention_mask"]
    torch.testing.assert_close(weights.sum(-1)[:, 0], present.double(), rtol=0, atol=1e-12)
    assert not weights.permute(0, 3, 1, 2)[~present].any(), "padding keys get no weight"


def test_windows_and_masks_that_cannot_be() -> None:
    mask = torch.ones(1, 4, dtype=torch.bool)
    for window in (7, 0, -2):
        with pytest.raises(ValueError, match=rf"window \({window}\) must be even and at least 2"):
            make_plan(attention_mask=mask, global_mask=mask, window=window)
    with pytest.raises(ValueError, match="masks must be bool"):
        make_plan(attention_mask=mask.long(), global_mask=mask, window=2)
    with pytest.raises(ValueError, match=r"must both be \(batch, seq\)"):
        make_plan(attention_mask=mask, global_mask=mask[:, :3], window=2)


# ---- few global tokens


def plan_of(globals_: list[int], length: int = 11) -> Plan:
    """A row for each number of globals, the second one shorter than the others."""
    present = torch.ones(len(globals_), length, dtype=torch.bool)
    present[1:2, 7:] = False
    is_global = torch.zeros_like(present)
    for row, count in enumerate(globals_):
        is_global[row, 2 : 2 + count] = True
    return make_plan(attention_mask=present, global_mask=is_global, window=4)


def both_ways(layers: dict[str, nn.Linear], states: Tensor, plan: Plan, heads: int) -> list[Tensor]:
    """Few globals without and with projected keys and values."""
    of_globals = torch.cat([states[row.globals_] for row in plan.rows])
    queries = layers["query"](of_globals).unflatten(-1, (heads, -1))
    key, value = (layers[name](states).unflatten(-1, (heads, -1)) for name in ("key", "value"))
    few = attend_from_few_globals(queries, states, key=layers["key"], value=layers["value"], plan=plan)
    return [few, attend_from_globals(queries, key, value, plan=plan)]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("globals_", [[1, 2, 0], [3], [0, 1]])
def test_few_globals_attend_as_with_projected_keys_and_values(globals_: list[int], bias: bool) -> None:
    torch.manual_seed(0)
    plan = plan_of(globals_)
    layers = {name: nn.Linear(12, 12, bias=bias).double() for name in ("query", "key", "value")}
    states = torch.randn(len(plan.order), 12, dtype=torch.float64, requires_grad=True)
    few, projected = both_ways(layers, states, plan, heads=3)
    torch.testing.assert_close(few, projected, rtol=1e-12, atol=1e-12)
    inputs = [states, *(weight for layer in layers.values() for weight in layer.parameters())]
    weights = torch.randn_like(few)
    both = ((one * weights).sum() for one in (few, projected))
    gradients = [torch.autograd.grad(total, inputs, retain_graph=True) for total in both]
    for mine, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-10)


def test_error_of_few_globals_in_bfloat16_is_that_of_projected_keys_and_values() -> None:
    """Both against float64, as a layer of a half-precision training computes them."""
    torch.manual_seed(0)
    plan = plan_of([3, 2], length=200)
    layers = {name: nn.Linear(256, 256) for name in ("query", "key", "value")}
    states = torch.randn(len(plan.order), 256)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        few, plain = both_ways(layers, states, plan, heads=4)
    exact = {name: layer.double() for name, layer in layers.items()}
    truth = both_ways(exact, states.double(), plan, heads=4)[1]
    assert few.dtype == plain.dtype
    assert (few - truth).abs().max() <= 2 * (plain - truth).abs().max()


@pytest.mark.parametrize(
    ("globals_", "few"), [([0, 0], False), ([2, 3], True), ([5, 0], True), ([6, 0], False), ([7, 5], False)]
)
def test_few_is_less_than_seven_tenths_of_a_heads_dimensions_on_average(globals_, few: bool) -> None:
    # texts without globals cost nothing either way: 5 of 8 is few, 6 of 8 is not, nor are 12 of 16
    assert sparse.globals_are_few(plan_of(globals_), head_size=8) == few


@pytest.mark.parametrize(("settings", "takes"), [
    ({}, True), ({"backend": "sparse"}, True), ({"globals": 12}, False),
    ({"backend": "dense"}, False), ({"dropout": 0.1}, False), ({"dropout": 0.1, "train": False}, True),
    ({"dtype": torch.bfloat16}, True), ({"autocast": True}, True), ({"attentions": True}, False),
])  # fmt: skip
def test_the_layer_takes_few_globals_where_it_is_exact(settings: dict, takes: bool, monkeypatch) -> None:
    given = {"backend": "auto", "globals": 2, "dropout": 0.0, "train": True, "dtype": torch.float32}
    given |= {"autocast": False, "attentions": False} | settings
    names = [f"{part}{kind}" for part in ("query", "key", "value") for kind in ("", "_global")]
    form = {"heads": 2, "window": 4, "dropout": given["dropout"], "backend": given["backend"]}
    layer = LocalGlobalSelfAttention(projections={name: nn.Linear(32, 32) for name in names}, **form)
    layer.train(given["train"]).to(given["dtype"])
    taken, original = [], layer._from_few_globals

    def counted(*arguments):
        taken.append(True)
        return original(*arguments)

    monkeypatch.setattr(layer, "_from_few_globals", counted)
    is_global = torch.arange(20)[None] < given["globals"]
    plan = make_plan(attention_mask=torch.ones_like(is_global), global_mask=is_global, window=4)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=given["autocast"]):
        hidden = torch.randn(1, 20, 32, dtype=given["dtype"])
        layer(hidden, attention_mask=plan, output_attentions=given["attentions"])
    assert bool(taken) == takes
