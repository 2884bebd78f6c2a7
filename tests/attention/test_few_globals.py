"""Few global tokens: outputs and gradients are those of projected keys and values, and it is taken where
it pays."""

import copy

import pytest
import torch
from torch import nn

from cdlm_lab.attention.layer import LocalGlobalSelfAttention
from cdlm_lab.attention.plan import Plan, make_plan
from cdlm_lab.attention.sparse import attend_from_few_globals, attend_from_globals, globals_are_few

HEADS, SIZE = 3, 4


def plan_of(globals_: list[int], length: int = 11) -> Plan:
    """A row for each number of globals, the second one shorter than the others."""
    present = torch.ones(len(globals_), length, dtype=torch.bool)
    present[1:2, 7:] = False
    is_global = torch.zeros_like(present)
    for row, count in enumerate(globals_):
        is_global[row, 2 : 2 + count] = True
    return make_plan(attention_mask=present, global_mask=is_global, window=4)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("globals_", [[1, 2, 0], [3], [0, 1]])
def test_outputs_and_gradients_are_those_of_projected_keys_and_values(
    globals_: list[int], bias: bool
) -> None:
    torch.manual_seed(0)
    plan = plan_of(globals_)
    embed = HEADS * SIZE
    layers = {name: nn.Linear(embed, embed, bias=bias).double() for name in ("query", "key", "value")}
    states = torch.randn(len(plan.order), embed, dtype=torch.float64, requires_grad=True)
    asking = torch.cat([states[row.globals_] for row in plan.rows])
    weights = torch.randn(len(plan.global_order), HEADS, SIZE, dtype=torch.float64)
    inputs = [states, *(weight for layer in layers.values() for weight in layer.parameters())]

    def heads(name: str, tokens: torch.Tensor) -> torch.Tensor:
        return layers[name](tokens).unflatten(-1, (HEADS, SIZE))

    expected = attend_from_globals(
        heads("query", asking), heads("key", states), heads("value", states), plan=plan
    )
    actual = attend_from_few_globals(
        heads("query", asking), states, key=layers["key"], value=layers["value"], plan=plan
    )
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)
    for mine, theirs in zip(
        torch.autograd.grad((actual * weights).sum(), inputs),
        torch.autograd.grad((expected * weights).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-10)


def test_error_in_bfloat16_is_that_of_projected_keys_and_values() -> None:
    """Both against float64, as a layer of a half-precision training computes them."""
    torch.manual_seed(0)
    plan = plan_of([3, 2], length=200)
    layers = {name: nn.Linear(256, 256) for name in ("query", "key", "value")}
    exact = {name: copy.deepcopy(layer).double() for name, layer in layers.items()}
    states = torch.randn(len(plan.order), 256)

    def outputs(layers: dict[str, nn.Linear], states: torch.Tensor, *, few: bool) -> torch.Tensor:
        asking = torch.cat([states[row.globals_] for row in plan.rows])
        query = layers["query"](asking).unflatten(-1, (4, 64))
        if few:
            return attend_from_few_globals(query, states, key=layers["key"], value=layers["value"], plan=plan)
        key, value = (layers[name](states).unflatten(-1, (4, 64)) for name in ("key", "value"))
        return attend_from_globals(query, key, value, plan=plan)

    truth = outputs(exact, states.double(), few=False)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        few, plain = outputs(layers, states, few=True), outputs(layers, states, few=False)
    assert few.dtype == plain.dtype
    assert (few - truth).abs().max() <= 2 * (plain - truth).abs().max()


@pytest.mark.parametrize(
    ("globals_", "few"), [([0, 0], False), ([2, 3], True), ([5, 0], True), ([6, 0], False), ([7, 5], False)]
)
def test_few_is_less_than_seven_tenths_of_a_heads_dimensions_on_average(
    globals_: list[int], few: bool
) -> None:
    # texts without globals cost nothing either way: 5 of 8 is few, 6 of 8 is not, nor are 12 of 16
    assert globals_are_few(plan_of(globals_), head_size=8) == few


class Watched(LocalGlobalSelfAttention):
    """Remembers which way was taken."""

    def _from_few_globals(self, *arguments):
        self.took_few = True
        return super()._from_few_globals(*arguments)


@pytest.mark.parametrize(
    ("settings", "takes"),
    [
        ({}, True),
        ({"backend": "sparse"}, True),
        ({"backend": "blockwise"}, True),
        ({"backend": "dense"}, False),
        ({"globals": 12}, False),
        ({"dropout": 0.1}, False),
        ({"dropout": 0.1, "train": False}, True),
        ({"dtype": torch.bfloat16}, True),
        ({"autocast": True}, True),
        ({"attentions": True}, False),
    ],
)
def test_the_layer_takes_it_where_it_is_exact(settings: dict, takes: bool) -> None:
    projections = {
        f"{part}{kind}": nn.Linear(32, 32) for part in ("query", "key", "value") for kind in ("", "_global")
    }
    layer = Watched(
        projections=projections,
        heads=2,
        window=4,
        dropout=settings.get("dropout", 0.0),
        backend=settings.get("backend", "auto"),
    )
    layer.train(settings.get("train", True)).to(settings.get("dtype", torch.float32))
    layer.took_few = False
    mask = torch.zeros(1, 20)
    mask[0, : settings.get("globals", 2)] = 1.0
    hidden = torch.randn(1, 20, 32, dtype=settings.get("dtype", torch.float32))
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=settings.get("autocast", False)):
        layer(hidden, attention_mask=mask, output_attentions=settings.get("attentions", False))
    assert layer.took_few == takes
