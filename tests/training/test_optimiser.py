"""Every parameter is in one group, with the right decay and the right factor."""

import pytest
from torch import nn

from cdlm_lab.parameters import ParameterError
from cdlm_lab.training.trainer import parameter_groups


def grouped(**settings: object) -> dict[str, tuple[float, float]]:
    """Name -> (weight decay, learning rate)."""
    net = nn.ModuleDict({name: nn.Linear(2, 2) for name in ("local", "query_global", "frozen")})
    net["frozen"].requires_grad_(False)
    names = {id(parameter): name for name, parameter in net.named_parameters()}
    decayed = {name for name in names.values() if name.endswith("weight")}
    groups = parameter_groups(net, decayed=decayed, weight_decay=0.1, learning_rate=2.0, **settings)
    assert (groups[0]["lr"], groups[0]["weight_decay"]) == (2.0, 0.1)
    found = [
        (names[id(p)], (group["weight_decay"], group["lr"])) for group in groups for p in group["params"]
    ]
    assert len(found) == len(dict(found)) == 4
    return dict(found)


def test_without_factors():
    assert grouped() == {
        "local.weight": (0.1, 2.0),
        "local.bias": (0.0, 2.0),
        "query_global.weight": (0.1, 2.0),
        "query_global.bias": (0.0, 2.0),
    }


def test_with_a_factor():
    assert grouped(factors=[("_global", 5.0)]) == {
        "local.weight": (0.1, 2.0),
        "local.bias": (0.0, 2.0),
        "query_global.weight": (0.1, 10.0),
        "query_global.bias": (0.0, 10.0),
    }


def test_the_first_group_has_the_plain_rate_even_if_nothing_else_has():
    assert grouped(factors=[("local", 0.5), ("global", 5.0)])["local.bias"] == (0.0, 1.0)


def test_names_that_match_nothing_or_twice():
    with pytest.raises(ParameterError, match="contains 'query_globl'; did you mean 'query_global'"):
        grouped(factors=[("query_globl", 2.0)])
    with pytest.raises(ParameterError, match=r"query_global\.weight matches 'query' and '_global'"):
        grouped(factors=[("query", 2.0), ("_global", 2.0)])
