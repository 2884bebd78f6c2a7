"""Time before a training, from operations, the speed of a matrix product and what slows a step down."""

import pytest
from transformers import LongformerConfig

from cdlm_lab.models import precision as of_models
from cdlm_lab.models.estimate import bytes_per_number, estimate, measured_rate, training_seconds

CONFIG = {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2, "attention_window": 4}


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_rate_is_a_share_of_that_of_products(precision: str) -> None:
    assert 1e6 < measured_rate(precision, size=64) < 1e16


def test_half_precision_has_half_the_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (bytes_per_number("float32"), bytes_per_number("bfloat16")) == (4, 2)
    for units, expected in ((("AMX",), 2), ((), 4)):
        monkeypatch.setattr(of_models, "bfloat16_units", lambda units=units: units)
        monkeypatch.setattr("cdlm_lab.models.estimate.default_device", lambda: "cpu")
        assert bytes_per_number("auto") == expected


def test_dropout_of_attention_weights_costs_time_and_no_memory() -> None:
    without, with_it = (LongformerConfig(**CONFIG, attention_probs_dropout_prob=share) for share in (0, 0.1))
    costs = [estimate(config, length=8, batch=1, global_tokens=0) for config in (without, with_it)]
    assert costs[0] == costs[1]
    fast, slow = (
        training_seconds(cost, config, rate=100.0)
        for cost, config in zip(costs, (without, with_it), strict=True)
    )
    assert fast == costs[0].training_flops / 100
    assert slow == pytest.approx(4 / 3 * fast)
